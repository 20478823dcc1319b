//! Numbers in the sentences of the book. The tables beside them are made by commands and held to those by
//! other tests; here the sentences are held to the tables, and counts to what there is.

use brakelight_lab::schemes::{all, defaults};
use brakelight_registry::Registry;
use brakelight_scenario::documents::{Claim, Verdict};
use brakelight_testkit::sources::read;

fn page(path: &str) -> String {
    read(&[path], &[]).remove(0).1
}

/// Asserts that a page says `sentence`, wherever its lines break.
fn says(path: &str, sentence: &str) {
    let text = page(path);
    let text: Vec<&str> = text.split_whitespace().collect();
    assert!(text.join(" ").contains(sentence), "{path} does not say `{sentence}`");
}

/// The numbers in the row of `scheme`, in the table number `nth` of the page that has one.
fn row(path: &str, scheme: &str, nth: usize) -> Vec<f64> {
    let text = page(path);
    let rest = |line: &str| {
        let rest = line.strip_prefix(scheme)?;
        let rest = rest.trim_start_matches([' ', '*', '†']).to_string();
        rest.starts_with(|c: char| c.is_ascii_digit()).then_some(rest)
    };
    let found = text.lines().filter_map(rest).nth(nth);
    let found = found.unwrap_or_else(|| panic!("{path}: no row {nth} of {scheme}"));
    found.split_whitespace().filter_map(|cell| cell.trim_end_matches('≈').parse().ok()).collect()
}

/// Columns of `compare`: throughput, share used in per cent, 95th percentile of queueing.
const USED: usize = 1;
const P95: usize = 2;

/// A number from one to twenty-three in words.
fn in_words(number: f64) -> &'static str {
    const WORDS: [&str; 23] = [
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
        "twenty-one",
        "twenty-two",
        "twenty-three",
    ];
    WORDS[number.round() as usize - 1]
}

#[test]
fn sentences_say_what_the_tables_beside_them_say() {
    for path in ["README.md", "docs/start.md"] {
        let of = |scheme| row(path, scheme, 0);
        let times = of("cubic")[P95] / of("abc")[P95];
        let sentence = match path {
            "README.md" => format!("its p95 queueing delay is an {}h of Cubic's", in_words(times)),
            _ => format!("its p95 delay is {} times as long", in_words(times)),
        };
        says(path, &sentence);
        assert!((of("cubic")[USED] / of("abc")[USED] - 1.0).abs() < 0.05, "{path}");
    }
    let left = 100.0 - row("docs/start.md", "cubic+codel", 0)[USED];
    assert_eq!((100.0 / left).round(), 3.0, "a third of the link is unused: {left}");

    let choose = "docs/guides/choose.md";
    let left = 100.0 - row(choose, "copa", 0)[USED];
    assert_eq!((100.0 / left).round(), 5.0, "a fifth of the link is unused: {left}");
    says(choose, &format!("Alongside Cubic it gets {:.0} %", row(choose, "copa", 3)[4]));

    for path in [choose, "docs/paper/paper.md"] {
        let last = if path == choose { 3 } else { 0 };
        let (short, own) = (row(path, "abc:target=5ms,delta=60ms", 0), row(path, "abc", last));
        assert!(2.0 * short[P95] < own[P95], "less than half: {} and {}", short[P95], own[P95]);
        if path == choose {
            says(path, &format!("uses {:.0} % of the link", short[USED]));
        } else {
            says(path, &format!("costs {:.0} points of utilization", own[USED] - short[USED]));
        }
    }
}

#[test]
fn counts_in_sentences_are_those_of_what_there_is() {
    let by_default = in_words(defaults(&Registry::standard()).len() as f64);
    says("README.md", &format!("compares {by_default} schemes on seven traces"));
    says("docs/commands.md", &format!("{by_default} schemes on the embedded traces"));
    let schemes = all(&Registry::standard()).len();
    says("docs/paper/paper.md", &format!("It includes {schemes} schemes (`brakelight list schemes`)"));
    let manifests = read(&["crates"], &["Cargo.toml"]);
    let is_drawn = |(path, text): &&(String, String)| {
        path.split('/').count() == 3 && !text.contains("\npublish = false")
    };
    let crates = manifests.iter().filter(is_drawn).count();
    let word = in_words(crates as f64);
    says("docs/architecture.md", &format!("{}{} crates", word[..1].to_uppercase(), &word[1..]));
    let examples = read(&["crates/brakelight/examples"], &[".rs"]).len();
    says("README.md", &format!("lists {} examples of at most 40 lines each", in_words(examples as f64)));
    let stories = page("web/src/stories.ts").matches("choice: choice(").count();
    says("README.md", &format!("{} stories", in_words(stories as f64)));
}

#[test]
fn counts_of_verdicts_in_sentences_are_those_of_the_kept_verdicts() {
    let kept = kept();
    let quicdc = kept.iter().filter(|claim| claim.id.starts_with("Q-") && !claim.ours);
    let of = |verdict| quicdc.clone().filter(|claim| claim.verdict == verdict).count();
    let (holds, refuted) = (of(Verdict::Holds), of(Verdict::Refuted));
    says(
        "docs/fidelity.md",
        &format!("{holds} of {} hold, and {} are refuted", quicdc.clone().count(), in_words(refuted as f64)),
    );
}

#[test]
fn what_was_found_is_what_the_kept_verdicts_measured() {
    let kept = kept();
    let measured = |id: &str, claim: &str| -> Vec<f64> {
        let found = kept.iter().find(|kept| kept.id == id && kept.claim.starts_with(claim));
        let found = found.unwrap_or_else(|| panic!("no kept verdict on {id}: {claim}"));
        let values = found.measured.split(", ").filter_map(|part| part.split(": ").last()?.parse().ok());
        values.collect()
    };
    let page = "docs/what-we-found.md";
    let [jain] = measured("Q-T5", "QUIC-DC at 80 %: Jain's index")[..] else { panic!("one index") };
    says(page, &format!("an index of {jain:.3} or 0.63"));
    let times = measured("B-F9", "VCP takes about 3.5 times as long as BMCC");
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    says(page, &format!("{mean:.1} or 1.6 times; the paper has 3.5"));
    let [goodput] = measured("Q-T4", "QUIC-DC at 80 %: goodput")[..] else { panic!("one goodput") };
    says(page, &format!("At 0.5 BDP QUIC-DC has {goodput:.1} Mbit/s"));
    let used = measured("B-F6a", "BMCC uses at least 90 % of the link");
    says(page, &format!("0.898 or {:.3} at 1 Mbit/s", used[1]));
    let [load] = measured("B-F2", "The mean load factor in overload is 105.5 %")[..] else {
        panic!("one load")
    };
    says(page, &format!("{:.0} or 103 % on 1 Mbit/s", 100.0 * load));
    let [options] = measured("B-T2", "12.9 % of the ACKs carry the load")[..] else { panic!("one share") };
    says(page, &format!("0.11 or {options:.2} of the ACKs carry the load"));
}

/// The kept verdicts.
fn kept() -> Vec<Claim> {
    let text = page("docs/reproduction/verdicts.jsonl");
    text.lines().map(|line| serde_json::from_str(line).expect("a claim")).collect()
}

/// Rows of the tables of `docs/abc-adaptive.md`, and the experiments' names for their schemes.
const ADAPTIVE: &[(&str, &str)] = &[
    ("`abc-adaptive`", "adaptive"),
    ("`abc`", "abc"),
    ("`abc:target=5ms,delta=60ms`", "hand"),
    ("the same, knowing the next RTT", "pk"),
    ("`abc:variant=prototype,target=5ms,delta=60ms`", "prototype"),
    ("`xcp`", "xcp"),
    ("`copa`", "copa"),
    ("`bbr3`", "bbr3"),
    ("`cubic`", "cubic"),
    ("`cubic+codel:target=5ms`", "cubic+codel"),
];

#[test]
fn the_tables_of_abc_that_tunes_itself_are_those_of_the_kept_verdicts() {
    let text = page("docs/abc-adaptive.md");
    let results = text.split_once("## Results").expect("a section").1;
    let tables: Vec<&str> = results.split("| | 10 ms | 20 ms | 40 ms | 100 ms | 200 ms |").skip(1).collect();
    let kept = kept();
    let measured = |id: &str, claim: &str| {
        let found = kept.iter().find(|kept| kept.id == id && kept.claim.starts_with(claim));
        found.unwrap_or_else(|| panic!("no kept verdict on {id}: {claim}")).measured.clone()
    };
    for (id, table) in ["ADAPT-R", "ADAPT-G", "ADAPT-H"].into_iter().zip(tables) {
        let use_of_links = measured(id, "Mean use of the links");
        let delay = measured(id, "Geometric mean over the links");
        let value = |text: &str, key: &str| -> f64 {
            let pair = text.split(", ").find_map(|pair| pair.strip_prefix(key));
            pair.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{id}: no `{key}` in {text}"))
        };
        for (shown, scheme) in ADAPTIVE {
            let cell = |rtt: &&str| {
                let key = format!("{scheme} rtt {rtt}ms: ");
                format!("{:.1}, {:.1}", 100.0 * value(&use_of_links, &key), value(&delay, &key))
            };
            let cells: Vec<String> = ["10", "20", "40", "100", "200"].iter().map(cell).collect();
            let row = format!("| {shown} | {} |", cells.join(" | "));
            assert!(table.contains(&row), "docs/abc-adaptive.md, {id}: it should have\n{row}");
        }
    }
}

/// Numbers of `docs/hypotheses.md` that are of the reading in use and rows of the claims too: how the row
/// begins, its column, the claim's id and first words, and for each number in that cell its place among the
/// measured ones. Without places the cell has their mean.
type Held = (&'static str, usize, &'static str, &'static str, &'static [usize]);

const HELD: &[Held] = &[
    ("ABC-F7a: utilization of Copa", 5, "ABC-F7a", "Copa's delay is comparable", &[2]),
    ("ABC-F8, F17: ABC's throughput", 5, "ABC-F8", "ABC has 50 % more throughput than Copa", &[0]),
    ("ABC-F8: ABC's 95th percentile", 5, "ABC-F8", "ABC's 95th percentile delay is 17 % above Copa", &[0]),
    ("ABC-F17: ABC's mean delay", 5, "ABC-F17", "ABC's mean delay is comparable to Copa", &[0]),
    ("ABC-T0: Copa's utilization", 5, "ABC-T0", "Copa's utilization over ABC's", &[0]),
    ("ABC-T0: Copa's delay", 5, "ABC-T0", "Copa's delay over ABC's, propagation", &[0]),
    ("HN-F1: ABC's power over that of Cubic", 6, "HN-F1", "ABC's power, utilization over", &[0]),
    ("HN-F1: ABC's power over the most", 6, "HN-F1", "ABC has the most power of all", &[0]),
    ("HN-F1b, the most power", 6, "HN-F1b", "ABC has up to 47 % more power", &[0]),
    ("HN-EABC: throughput of E-ABC", 6, "HN-EABC", "E-ABC has slightly more throughput", &[0]),
    ("HN-EABC: delay of E-ABC", 6, "HN-EABC", "E-ABC has slightly more delay", &[0]),
    ("HN-VCP: ABC's utilization over", 6, "HN-VCP", "ABC uses 15 % more of the links than VCP", &[0]),
    ("measured | 1.00", 2, "ABC-F12", "The share of the flow of 20 ms", &[0]),
    ("measured | 1.00", 3, "ABC-F12", "The share of the flow of 20 ms", &[1]),
    ("measured | 1.00", 4, "ABC-F12", "The share of the flow of 20 ms", &[2]),
    ("measured | 1.00", 5, "ABC-F12", "The share of the flow of 20 ms", &[3]),
    ("measured | 1.00", 6, "ABC-F12", "The share of the flow of 20 ms", &[4]),
    ("measured | 1.00", 7, "ABC-F12", "The share of the flow of 20 ms", &[5]),
    ("Q-T4: QUIC-DC at 20 to 80 % and Westwood+", 4, "Q-T4", "QUIC-DC at 80 %: goodput", &[0]),
    ("B-F6d since the switch", 2, "B-F6d", "SACK uses only 80 %", &[0]),
    ("B-F6d since the switch", 3, "B-F6d", "CUBIC uses only 80 %", &[0]),
    ("B-F6d since the switch", 4, "B-F6d", "CTCP uses only 80 %", &[0]),
    ("B-F6d since the switch", 5, "B-F6d", "XCP uses more than 95 %", &[4]),
    ("Q-T4: goodput in Mbit/s of Cubic", 4, "Q-T4", "Cubic: goodput", &[0]),
    ("Q-T4: loss of Cubic", 4, "Q-T4", "Cubic: loss", &[0]),
];

#[test]
fn readings_in_use_have_the_numbers_of_the_kept_verdicts() {
    let (kept, text) = (kept(), page("docs/hypotheses.md"));
    let measured = |id: &str, claim: &str| -> Vec<f64> {
        let found = kept.iter().find(|kept| kept.id == id && kept.claim.starts_with(claim));
        let found = found.unwrap_or_else(|| panic!("no kept verdict on {id}: {claim}"));
        let values = found.measured.split([',', ';']).filter_map(|part| part.rsplit(':').next());
        values.filter_map(|value| value.trim().parse().ok()).collect()
    };
    for (row, column, id, claim, places) in HELD {
        let line = text.lines().find(|line| line.starts_with(&format!("| {row}")));
        let line = line.unwrap_or_else(|| panic!("no row `{row}`"));
        let cell = line.split('|').nth(*column).unwrap_or_default();
        let values = measured(id, claim);
        let wanted = match places {
            [] => vec![values.iter().sum::<f64>() / values.len() as f64],
            places => places.iter().map(|place| values[*place]).collect(),
        };
        // A verdict may stand behind a number: `0.75: holds`.
        let shown: Vec<&str> =
            cell.split(',').map(|part| part.split(':').next().unwrap_or("").trim()).collect();
        assert_eq!(shown.len(), wanted.len(), "`{row}`: {cell}");
        for (shown, wanted) in shown.iter().zip(wanted) {
            let digits = shown.split_once('.').map_or(0, |(_, digits)| digits.len());
            let number: f64 = shown.parse().unwrap_or_else(|_| panic!("`{row}`: `{shown}` is no number"));
            let rounding = 0.501 * 10_f64.powi(-(digits as i32));
            assert!((number - wanted).abs() <= rounding, "`{row}`: {shown}, but {id} has {wanted}");
        }
    }
    let load = |rate: &str| measured("B-F2", &format!("The mean load factor in overload is {rate}"))[0];
    let sentence = format!("is {:.3} on 1 Mbit/s and {:.3} on 45 Mbit/s", load("105.5"), load("100.5"));
    says("docs/hypotheses.md", &sentence);
}

/// Every section of `docs/hypotheses.md` has a line that says which runs made its numbers.
#[test]
fn every_hypothesis_names_the_commits_and_the_experiments_of_its_runs() {
    let text = page("docs/hypotheses.md");
    let runs = text.split_once("<!-- runs -->").and_then(|(_, rest)| rest.split_once("<!-- end -->"));
    let rows: Vec<&str> =
        runs.expect("a table of runs").0.lines().filter(|line| line.starts_with("| ")).collect();
    let sections: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let numbers = sections.iter().filter_map(|heading| heading.split_once(". ")).map(|(number, _)| number);
    let files = read(&["experiments"], &[".toml"]);
    for number in numbers {
        let row = rows.iter().find(|row| row.starts_with(&format!("| {number} |")));
        let row = row.unwrap_or_else(|| panic!("hypothesis {number} has no line in the table of runs"));
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let commit = |text: &str| text.len() == 7 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(cells[2..4].iter().all(|cell| cell.split(", ").all(commit)), "{row}");
        let ids = cells[4].strip_prefix('`').and_then(|ids| ids.strip_suffix('`')).unwrap_or("");
        for id in ids.split_whitespace() {
            let known = files.iter().any(|(_, text)| text.contains(&format!("id = \"{id}")));
            assert!(known, "hypothesis {number}: there is no experiment `{id}`");
        }
    }
}
