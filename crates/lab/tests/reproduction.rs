//! The pages of the papers' claims hold what the kept verdicts say, `docs/reproduction/verdicts.jsonl`: one
//! claim a line, as `brakelight reproduce --format json` prints them. Judging all of them anew takes minutes
//! and needs recordings. With `BRAKELIGHT_BLESS=1` in the environment the pages and figures are written
//! again; with `BRAKELIGHT_VERDICTS=FILE` as well, a document that `reproduce --format json` printed, the
//! verdicts in it replace the kept ones.

use std::env;
use std::fs;
use std::path::PathBuf;

use brakelight_core::time::Time;
use brakelight_lab::figures::claims as figure;
use brakelight_lab::reproduce::{Errors, all};
use brakelight_lab::text::claims::{counts, sections_beside};
use brakelight_links::trace::Trace;
use brakelight_scenario::documents::{Claim, Claims, Verdict};
use brakelight_scenario::experiment::{Assertion, Experiment};
use brakelight_testkit::part::check;
use brakelight_testkit::skip::recording;

mod ns2;

/// The pages: their files, their rows in the index, and how the ids of their experiments begin.
const PAGES: [(&str, &str, &[&str]); 5] = [
    ("abc", "[ABC (NSDI 2020)](reproduction/abc.md)", &["ABC-"]),
    ("hotnets", "[ABC (HotNets 2017)](reproduction/hotnets.md)", &["HN-"]),
    ("bmcc", "[BMCC and those it is compared with](reproduction/bmcc.md)", &["B-"]),
    ("quicdc", "[QUIC-DC](reproduction/quicdc.md)", &["Q-"]),
    ("ours", "", &["FIRST-", "ADAPT-"]),
];

/// The kept verdicts.
const KEPT: &str = "reproduction/verdicts.jsonl";

fn bless() -> bool {
    env::var_os("BRAKELIGHT_BLESS").is_some()
}

fn docs(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file)
}

fn read_docs(file: &str) -> String {
    fs::read_to_string(docs(file)).unwrap_or_else(|error| panic!("docs/{file}: {error}"))
}

/// Puts `verdicts`, which are in the order of `experiments`, to their claims.
fn put(verdicts: Vec<Claim>, experiments: &[Experiment], into: &mut [Option<Claim>]) {
    let claims: Vec<_> =
        experiments.iter().flat_map(|one| one.claims.iter().map(move |c| (one, c))).collect();
    let mut next = 0;
    for mut verdict in verdicts {
        let same = |(_, claim): &(_, &Assertion)| claim.id == verdict.id && claim.claim == verdict.claim;
        let Some(ahead) = claims[next..].iter().position(same) else { continue };
        // The page says the setup once, above the table.
        let setup = &claims[next + ahead].0.note;
        let note = verdict.note.strip_suffix(setup.as_str()).unwrap_or(&verdict.note);
        verdict.note = note.strip_suffix("; ").unwrap_or(note).to_string();
        into[next + ahead] = Some(verdict);
        next += ahead + 1;
    }
}

/// The kept verdict on every claim of `experiments`, in their order.
fn kept(experiments: &[Experiment]) -> Vec<Claim> {
    let claims: Vec<_> = experiments.iter().flat_map(|experiment| &experiment.claims).collect();
    let mut found = vec![None; claims.len()];
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    put(read_docs(KEPT).lines().map(read).collect(), experiments, &mut found);
    if let Some(path) = env::var_os("BRAKELIGHT_VERDICTS").filter(|_| bless()) {
        let document = fs::read_to_string(path).expect("a document that can be read");
        let document: Claims =
            serde_json::from_str(&document).expect("what `reproduce --format json` prints");
        put(document.claims, experiments, &mut found);
    }
    let kept = claims.iter().zip(found).map(|(claim, found)| {
        let found = found.unwrap_or_else(|| panic!("no kept verdict on {}: {}", claim.id, claim.claim));
        assert_eq!((&found.paper, found.ours), (&claim.paper, claim.ours), "{}: {}", claim.id, claim.claim);
        found
    });
    kept.collect()
}

/// Holds a file to what it should be, or writes it.
fn hold(file: &str, text: &str) {
    if bless() {
        fs::write(docs(file), text).expect("docs can be written");
    }
    let same = fs::read_to_string(docs(file)).is_ok_and(|kept| kept == text);
    assert!(same, "docs/{file} is stale: BRAKELIGHT_BLESS=1 writes it again");
}

/// Claims that hang on recordings, in a sentence.
fn on_recordings(claims: &[&Claim]) -> String {
    let hang = claims.iter().filter(|claim| claim.verdict == Verdict::NeedsRecordings);
    let ends = |end: &str| hang.clone().filter(|claim| claim.note.ends_with(end)).count();
    match (ends("holds on our recordings"), ends("fails on our recordings")) {
        (0, 0) => String::new(),
        (hold, fail) => format!(
            "\nOf the {} that hang on recordings, {hold} hold on ours and {fail} fail, as each says.\n",
            hang.clone().count()
        ),
    }
}

/// What of the papers' claims that can be judged holds, by paper.
fn shares(papers: &[(&str, Vec<&Claim>)]) -> String {
    let mut table = String::from("| | judged | hold | hold or are refuted |\n|---|---|---|---|\n");
    for (name, claims) in papers {
        let of = |which| claims.iter().filter(|claim| claim.verdict == which).count();
        let (hold, refuted) = (of(Verdict::Holds), of(Verdict::Refuted));
        let judged = hold + refuted + of(Verdict::Fails);
        let cell = |count: usize| format!("{count}, {:.1} %", 100.0 * count as f64 / judged as f64);
        table += &format!("| {name} | {judged} | {} | {} |\n", cell(hold), cell(hold + refuted));
    }
    table
}

#[test]
fn the_page_of_what_was_found_names_every_refuted_claim() {
    let page = read_docs("what-we-found.md");
    let section = page.split_once("## Claims that cannot hold as stated").expect("a section").1;
    let table = section.split("## ").next().unwrap_or_default();
    let experiments = all().expect("the experiments can be read");
    for claim in kept(&experiments).iter().filter(|claim| claim.verdict == Verdict::Refuted) {
        assert!(table.contains(&claim.id), "docs/what-we-found.md lacks {}: {}", claim.id, claim.claim);
    }
}

/// The table of groups names the ids of claims in its first column, and their number of failing rows in the
/// second.
#[test]
fn every_failing_row_is_in_a_group_with_its_cause_or_with_what_was_tried() {
    let page = read_docs("what-we-found.md");
    let section = page.split_once("## Claims that we could not make hold").expect("a section").1;
    let section = section.split("## ").next().unwrap_or_default();
    let experiments = all().expect("the experiments can be read");
    let kept = kept(&experiments);
    let fails = |claim: &&Claim| !claim.ours && claim.verdict == Verdict::Fails;
    let mut grouped = Vec::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let ids: Vec<&str> = cells[1].split(", ").map(|id| id.trim_matches('`')).collect();
        let count = kept.iter().filter(fails).filter(|claim| ids.contains(&claim.id.as_str())).count();
        assert_eq!(cells[2], count.to_string(), "docs/what-we-found.md: rows of {}", cells[1]);
        // Where the cause is not known, three experiments were tried at least: hypotheses or words, with a
        // comma or a semicolon between them.
        let tried = cells[3].split([',', ';']).count();
        let known = cells[4].starts_with("Shown. ") || cells[4].starts_with("Open. ") && tried >= 3;
        assert!(known, "docs/what-we-found.md: {}: {tried} tried, {}", cells[1], cells[4]);
        grouped.extend(ids.iter().map(|id| id.to_string()));
    }
    for claim in kept.iter().filter(fails) {
        assert!(
            grouped.contains(&claim.id),
            "docs/what-we-found.md: no cause of {}: {}",
            claim.id,
            claim.claim
        );
    }
}

/// What the slower of two recordings carries, interval by interval, as a share of what `down` carries, over
/// a run of 60 s.
fn slower_of_both(up: &Trace, down: &Trace, interval_ms: u64) -> f64 {
    let carried = |trace: &Trace, from: u64| {
        trace.count_between(Time::from_millis(from), Time::from_millis(from + interval_ms))
    };
    let starts = (0..60_000).step_by(interval_ms as usize);
    let slower: u64 = starts.map(|from| carried(up, from).min(carried(down, from))).sum();
    slower as f64 / down.count_between(Time::ZERO, Time::from_secs(60)) as f64
}

#[test]
fn the_slower_of_two_cellular_links_carries_four_fifths_of_the_downlink() {
    let names = ["traces/Verizon-LTE-short.up", "traces/Verizon-LTE-short.down"];
    let [Some(up), Some(down)] = names.map(recording) else { return };
    let [up, down] = [up, down].map(|path| {
        let bytes = fs::read(path).expect("a recording can be read");
        Trace::parse(&bytes).expect("a recording is a trace")
    });
    let share = slower_of_both(&up, &down, 100);
    let check = format!("check = \"utilization['abc'] / {share:.3} >= 0.85\"");
    assert!(read_docs("../experiments/abc-f7c.toml").contains(&check), "ABC-F7c has no `{check}`");
}

#[test]
fn the_pages_say_what_the_kept_verdicts_say() {
    let experiments = all().expect("the experiments can be read");
    let kept = kept(&experiments);
    let line = |claim: &Claim| serde_json::to_string(claim).expect("claims are text") + "\n";
    hold(KEPT, &kept.iter().map(line).collect::<String>());
    let simulated = ns2::read(&read_docs(ns2::KEPT));
    let (mut index, mut variants, mut own) = (Vec::new(), Vec::new(), Vec::new());
    let mut errors = String::from("| | numbers | mean error | 90th percentile |\n|---|---|---|---|\n");
    let mut seen = 0;
    for (page, row, ids) in PAGES {
        let (mut its, mut shown, mut rest) = (Vec::new(), Vec::new(), &kept[..]);
        for experiment in &experiments {
            let (these, others) = rest.split_at(experiment.claims.len());
            rest = others;
            if ids.iter().any(|id| experiment.id.starts_with(id)) {
                its.push(experiment.clone());
                shown.extend(these);
            }
        }
        seen += shown.len();
        let verdicts: Vec<Claim> = shown.iter().copied().cloned().collect();
        let file = format!("reproduction/{page}");
        let theirs: Vec<Option<String>> = its
            .iter()
            .flat_map(|one| ns2::judge(one, &simulated))
            .map(|said| Some(ns2::cell(&said?)))
            .collect();
        check(&format!("../{file}"), "claims", &sections_beside(&its, &verdicts, "ns-2", &theirs));
        if let Some(figure) = figure(page, &its, &verdicts) {
            hold(&format!("{file}.svg"), &figure.svg());
            let words = figure.caption();
            check(
                &format!("../{file}"),
                "figure",
                &format!(
                    "![What was measured beside the numbers of the claims, as ratios]({page}.svg)\n\n*{words}*\n"
                ),
            );
        }
        let (ours, papers): (Vec<&Claim>, Vec<&Claim>) = shown.into_iter().partition(|claim| claim.ours);
        let part =
            |id: &str| ours.iter().copied().filter(|claim| claim.id.starts_with(id)).collect::<Vec<_>>();
        let summary = if row.is_empty() {
            own.push(("[Three systems side by side](reproduction/ours.md)", part("FIRST-")));
            own.push(("[ABC that tunes itself](reproduction/ours.md)", part("ADAPT-")));
            counts(&[
                ("three systems side by side", part("FIRST-")),
                ("ABC that tunes itself", part("ADAPT-")),
            ])
        } else {
            let mut said = on_recordings(&papers);
            if let Some(off) = Errors::of(&its, &verdicts) {
                said += &format!("\n{}\n", off.in_words());
                errors += &format!("| {row} | {} | {:.3} | {:.3} |\n", off.count, off.mean, off.p90);
            }
            let table = counts(&[("of the paper", papers.clone()), ("of no paper", ours.clone())]);
            index.push((row, papers));
            variants.extend(ours);
            table + &said
        };
        check(&format!("../{file}"), "summary", &summary);
    }
    assert_eq!(seen, kept.len(), "an experiment is on no page, or on two");
    check("../what-we-found", "found", &shares(&index));
    index.push(("of no paper, beside the papers' figures", variants));
    index.extend(own);
    index.push(("all", kept.iter().collect()));
    let said = on_recordings(&kept.iter().collect::<Vec<_>>());
    check("../reproduction", "counts", &(counts(&index) + &said));
    check("../reproduction", "errors", &errors);
}

#[test]
fn the_pages_say_what_ns2_says_of_the_claims() {
    let experiments = all().expect("the experiments can be read");
    let kept = kept(&experiments);
    let simulated = ns2::read(&read_docs(ns2::KEPT));
    let rows = ns2::rows(&experiments, &kept, &simulated);
    check("../reproduction/bmcc", "ns2", &ns2::summary(&rows));
    check("../reproduction/bmcc", "failing", &ns2::failing(&experiments, &kept, &simulated));
    check("ns2", "summary", &(ns2::summary(&rows) + &ns2::in_words(&rows)));
    check("ns2", "differences", &ns2::differences(&rows));
    check("ns2", "runs", &ns2::runs(&simulated));
    check("ns2", "properties", &ns2::properties(&simulated));
}

/// The table of causes is by hand; each failing row of the paper has one.
#[test]
fn every_failing_row_of_bmcc_has_a_cause() {
    let page = read_docs("reproduction/bmcc.md");
    let table = page.split_once("<!-- causes -->").expect("a table").1;
    let table = table.split("<!-- end -->").next().unwrap_or_default();
    let rows = table.lines().filter_map(|line| line.split('|').nth(2)?.trim().parse::<usize>().ok());
    let experiments = all().expect("the experiments can be read");
    let kept = kept(&experiments);
    let fails = kept.iter().filter(|claim| claim.id.starts_with("B-") && claim.verdict == Verdict::Fails);
    assert_eq!(rows.sum::<usize>(), fails.filter(|claim| !claim.ours).count(), "docs/reproduction/bmcc.md");
}

#[test]
fn ns2_judges_a_claim_if_it_ran_every_point_that_the_check_looks_at() {
    let text = "id = \"X\"\ntitle = \"t\"\nsource = \"s\"\nschemes = { sack = \"newreno\", bmcc = \"bmcc\" }\n\
                traces = [\"fixed\"]\n[sweep]\nstep = [1, 2]\n\
                [[claim]]\nclaim = \"a\"\ncheck = \"utilization['sack', step = 1] ~ 0.8\"\n\
                [[claim]]\nclaim = \"b\"\ncheck = \"utilization['sack'] ~ 0.8\"\n\
                [[claim]]\nclaim = \"c\"\ncheck = \"utilization['sack', step = 1] > utilization['bmcc', step = 1]\"\n\
                [[claim]]\nclaim = \"d\"\ncheck = \"utilization['sack', step = 1] < 0.7\"\n";
    let experiment = brakelight_scenario::experiment::read("x.toml", text).expect("an experiment");
    let line = |seed: u64, utilization: f64| {
        format!(
            "{{\"experiment\":\"X\",\"point\":{{\"scheme\":\"sack\",\"trace\":\"fixed\",\"step\":\"1\"}},\
             \"settings\":{{}},\"seed\":{seed},\"ns2\":\"2.35\",\"run\":{{\"duration_s\":95,\"throughput_mbps\":9,\"utilization\":{utilization},\"queueing_delay_ms\":{{\"mean\":1}},\
             \"loss_percent\":0,\"dropped_packets\":0,\"links\":[]}}}}\n"
        )
    };
    let simulated = ns2::read(&(line(2, 0.81) + &line(1, 0.77) + &line(3, 0.78)));
    let said: Vec<Option<Verdict>> =
        ns2::judge(&experiment, &simulated).iter().map(|claim| Some(claim.as_ref()?.verdict)).collect();
    // The second lacks a case, the third a scheme.
    assert_eq!(said, [Some(Verdict::Holds), None, None, Some(Verdict::Fails)]);
    let first = ns2::judge(&experiment, &simulated).swap_remove(0).expect("it is judged");
    assert_eq!(ns2::cell(&first), "0.78: as the paper");
}
