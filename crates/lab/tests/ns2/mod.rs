//! What ns-2 says of the BMCC paper's claims, by the runs that `scripts/ns2` kept in
//! `docs/reproduction/ns2.jsonl`. A claim is judged by them with its own check and tolerance, if every point
//! of the matrix that the check looks at was run there.

use std::collections::BTreeMap;

use brakelight_scenario::documents::{Claim, Verdict};
use brakelight_scenario::experiment::{Assertion, Check, Dimension, Experiment, Table};
use brakelight_scenario::median::median;
use brakelight_scenario::outcome::{FlowOutcome, LinkOutcome, Run, Summary};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The kept runs.
pub const KEPT: &str = "reproduction/ns2.jsonl";
/// The name under which `scripts/ns2` keeps the runs of hypothesis 44.
const PROPERTIES: &str = "properties";
/// The version that all numbers are of.
const VERSION: &str = "2.35";

/// A delay of which the mean alone is known.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Mean {
    mean: f64,
}

impl Mean {
    /// What is not known is no number, and so no metric.
    fn summary(self) -> Summary {
        Summary { mean: self.mean, p50: f64::NAN, p95: f64::NAN, p99: f64::NAN, max: f64::NAN }
    }
}

/// What a run counted, under the names of a row.
#[derive(Clone, Debug, Deserialize)]
struct Counted {
    duration_s: f64,
    throughput_mbps: f64,
    utilization: f64,
    queueing_delay_ms: Mean,
    loss_percent: f64,
    dropped_packets: u64,
    jain: Option<f64>,
    links: Vec<Link>,
    #[serde(default)]
    flows: Vec<FlowOutcome>,
}

#[derive(Clone, Debug, Deserialize)]
struct Link {
    name: String,
    utilization: f64,
    queueing_delay_ms: Mean,
}

impl Counted {
    fn run(self) -> Run {
        let link = |link: Link| LinkOutcome {
            name: link.name,
            utilization: link.utilization,
            queueing_delay_ms: Some(link.queueing_delay_ms.summary()),
            ..LinkOutcome::default()
        };
        Run {
            duration_s: self.duration_s,
            throughput_mbps: self.throughput_mbps,
            utilization: self.utilization,
            queueing_delay_ms: Some(self.queueing_delay_ms.summary()),
            loss_percent: self.loss_percent,
            dropped_packets: self.dropped_packets,
            jain: self.jain,
            links: self.links.into_iter().map(link).collect(),
            flows: self.flows,
            ..Run::default()
        }
    }
}

/// One run of ns-2.
#[derive(Clone, Debug, Deserialize)]
pub struct Kept {
    experiment: String,
    /// Its place in the matrix: a label for each dimension.
    point: BTreeMap<String, String>,
    /// What differs from the settings of `experiments/ns2/paths.tcl`.
    settings: BTreeMap<String, Value>,
    seed: u64,
    ns2: String,
    #[serde(deserialize_with = "run")]
    run: Run,
}

fn run<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Run, D::Error> {
    Counted::deserialize(deserializer).map(Counted::run)
}

/// Reads the kept runs, in the order of their seeds.
pub fn read(text: &str) -> Vec<Kept> {
    let read =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{KEPT}: {error}: {line}"));
    let mut kept: Vec<Kept> = text.lines().map(read).collect();
    for one in &kept {
        assert_eq!(one.ns2, VERSION, "{KEPT}: {} {:?}", one.experiment, one.point);
    }
    kept.sort_by_key(|one| one.seed);
    kept
}

/// The measurements of `experiment`; at which of its points there are any, and how many seconds they are of.
fn table(experiment: &Experiment, kept: &[Kept]) -> (Table, Vec<(Vec<usize>, f64)>) {
    let (mut table, mut points) = (Table::new(&experiment.dimensions), Vec::new());
    let own: Vec<&Kept> = kept.iter().filter(|one| one.experiment == experiment.id).collect();
    // Where a point was run for a short and for a long time, the long one counts.
    let longest = |one: &Kept| {
        let same = own.iter().filter(|other| other.point == one.point);
        same.map(|other| other.run.duration_s).fold(0.0, f64::max)
    };
    for one in own.iter().filter(|one| one.run.duration_s == longest(one)) {
        let place = |dimension: &Dimension| {
            let label = one.point.get(&dimension.name);
            let place = label.and_then(|label| dimension.labels.iter().position(|known| known == label));
            place.unwrap_or_else(|| {
                panic!("{KEPT}: {}: {:?} is no point: {:?}", experiment.id, one.point, dimension)
            })
        };
        let point: Vec<usize> = experiment.dimensions.iter().map(place).collect();
        assert_eq!(one.point.len(), point.len(), "{KEPT}: {}: {:?}", experiment.id, one.point);
        table.add(&point, &one.run);
        points.push((point, one.run.duration_s));
    }
    (table, points)
}

/// What ns-2 says of each claim of `experiment`; none where it cannot run what the check looks at. The note
/// says if it was measured for a shorter time than ours.
pub fn judge(experiment: &Experiment, kept: &[Kept]) -> Vec<Option<Claim>> {
    let (table, ran) = table(experiment, kept);
    if ran.is_empty() {
        return vec![None; experiment.claims.len()];
    }
    // The least seconds of the points that the claim needs, and how much less than ours that is.
    let seconds = |claim: &Assertion| {
        let Check::Expression { check, show } = &claim.check else { return None };
        let parts = [Some(check), show.as_ref()];
        let needed = experiment.jobs.iter().filter(|job| {
            parts.iter().flatten().any(|part| part.looks_at(&experiment.dimensions, &job.point))
        });
        let mut least = (f64::INFINITY, 0.0);
        for job in needed {
            let (_, seconds) = ran.iter().find(|(point, _)| *point == job.point)?;
            let measured = job.scenario.duration - job.scenario.measure_from;
            let own = measured.as_millis_f64().round() / 1e3;
            if *seconds < least.0 {
                least = (*seconds, own);
            }
        }
        Some(least)
    };
    let judged = experiment.judge(Some(&table), &mut |_| None);
    let pairs = experiment.claims.iter().zip(judged);
    let said = pairs.map(|(claim, mut judged)| {
        let (seconds, own) = seconds(claim)?;
        judged.note =
            if seconds < own { format!("over {seconds} s in place of {own}") } else { String::new() };
        Some(judged)
    });
    said.collect()
}

/// A row that ns-2 can run: the experiment's id, what ns-2 says, and what is kept of ours.
pub struct Row<'a> {
    experiment: &'a str,
    theirs: Claim,
    ours: &'a Claim,
}

/// Returns the rows of the paper's own claims that ns-2 can run. `kept_claims` are in the order of the
/// claims of `experiments`.
pub fn rows<'a>(experiments: &'a [Experiment], claims: &'a [Claim], kept: &[Kept]) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    let mut rest = claims;
    for experiment in experiments {
        let (own, others) = rest.split_at(experiment.claims.len());
        rest = others;
        let judged = judge(experiment, kept).into_iter().zip(own);
        rows.extend(judged.filter(|(_, ours)| !ours.ours).filter_map(|(theirs, ours)| {
            theirs.map(|theirs| Row { experiment: &experiment.id, theirs, ours })
        }));
    }
    rows
}

/// What a row's column says: the number, and whether ns-2 says what the paper says.
pub fn cell(theirs: &Claim) -> String {
    let word = if theirs.verdict == Verdict::Holds { "as the paper" } else { "not as the paper" };
    let shorter = if theirs.note.is_empty() { String::new() } else { format!(" ({})", theirs.note) };
    format!("{}: {word}{shorter}", theirs.measured)
}

/// Returns the counts by experiment: rows that ns-2 can run, those where it confirms the paper, and those of
/// them that hold here; and the rows where it does not.
pub fn summary(rows: &[Row<'_>]) -> String {
    let heading = "| | ns-2 can run | ns-2 says what the paper says | of these hold here | ns-2 does not say it | \
                   of these hold here |\n|---|---|---|---|---|---|\n";
    let line = |name: &str, rows: &[&Row<'_>]| {
        let holds = |claim: &Claim| claim.verdict == Verdict::Holds;
        let (with, against): (Vec<&Row<'_>>, Vec<&Row<'_>>) =
            rows.iter().copied().partition(|row| holds(&row.theirs));
        let here = |rows: &[&Row<'_>]| rows.iter().filter(|row| holds(row.ours)).count();
        let (w, a) = (with.len(), against.len());
        format!("| {name} | {} | {w} | {} | {a} | {} |\n", rows.len(), here(&with), here(&against))
    };
    let mut ids: Vec<&str> = rows.iter().map(|row| row.experiment).collect();
    ids.dedup();
    let mut text = heading.to_string();
    for id in &ids {
        text += &line(id, &rows.iter().filter(|row| row.experiment == *id).collect::<Vec<_>>());
    }
    text + &line("all", &rows.iter().collect::<Vec<_>>())
}

/// Returns the counts of all rows in words.
pub fn in_words(rows: &[Row<'_>]) -> String {
    let with: Vec<_> = rows.iter().filter(|row| row.theirs.verdict == Verdict::Holds).collect();
    let here = with.iter().filter(|row| row.ours.verdict == Verdict::Holds).count();
    let share = 100.0 * here as f64 / with.len() as f64;
    let (all, with) = (rows.len(), with.len());
    format!(
        "\nOf {all} rows that ns-2 can run, it says of {with} what the paper says. Of these {here} hold here, {share:.1} %.\n"
    )
}

/// Returns a table of the rows in which ns-2, the paper and we do not all agree.
pub fn differences(rows: &[Row<'_>]) -> String {
    let mut text = String::from("| id | claim | paper | ns-2 | ours |\n|---|---|---|---|---|\n");
    for row in rows {
        if (row.theirs.verdict, row.ours.verdict) == (Verdict::Holds, Verdict::Holds) {
            continue;
        }
        let ours = if row.ours.verdict == Verdict::Holds { "as the paper" } else { "not as the paper" };
        let ours = format!("{}: {ours}", row.ours.measured);
        let cells = [&row.ours.id, &row.ours.claim, &row.ours.paper, &cell(&row.theirs), &ours];
        text += &format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
    }
    text
}

/// Schemes of the experiments that ns-2.35 has itself.
const STOCK: [&str; 4] = ["sack", "cubic", "ctcp", "xcp"];

/// The labels of the schemes at which the check of `claim` looks.
fn schemes<'a>(experiment: &'a Experiment, claim: &Assertion) -> Vec<&'a str> {
    let Check::Expression { check, show } = &claim.check else { return Vec::new() };
    let Some(place) = experiment.dimensions.iter().position(|one| one.name == "scheme") else {
        return Vec::new();
    };
    let parts = [Some(check), show.as_ref()];
    let needed = experiment
        .jobs
        .iter()
        .filter(|job| parts.iter().flatten().any(|part| part.looks_at(&experiment.dimensions, &job.point)));
    needed.map(|job| experiment.dimensions[place].labels[job.point[place]].as_str()).collect()
}

/// Returns the failing rows of the paper's own claims by experiment, and by what ns-2 says of them or why it
/// says nothing. `claims` are in the order of the claims of `experiments`.
pub fn failing(experiments: &[Experiment], claims: &[Claim], kept: &[Kept]) -> String {
    let mut text = String::from(
        "| | fail | ns-2 says what the paper says | ns-2 does not say it | ns-2 could say it, and was not run | ns-2 lacks a \
         scheme |\n|---|---|---|---|---|---|\n",
    );
    let mut all = [0; 4];
    let mut rest = claims;
    for experiment in experiments {
        let (own, others) = rest.split_at(experiment.claims.len());
        rest = others;
        let mut counts = [0; 4];
        for ((claim, ours), theirs) in experiment.claims.iter().zip(own).zip(judge(experiment, kept)) {
            if ours.ours || ours.verdict != Verdict::Fails || !experiment.id.starts_with("B-") {
                continue;
            }
            let schemes = schemes(experiment, claim);
            let has_all = !schemes.is_empty() && schemes.iter().all(|scheme| STOCK.contains(scheme));
            counts[match theirs {
                Some(theirs) if theirs.verdict == Verdict::Holds => 0,
                Some(_) => 1,
                None if has_all => 2,
                None => 3,
            }] += 1;
        }
        let [a, b, c, d] = counts;
        if a + b + c + d > 0 {
            text += &format!("| {} | {} | {a} | {b} | {c} | {d} |\n", experiment.id, a + b + c + d);
        }
        all.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    let [a, b, c, d] = all;
    text + &format!("| all | {} | {a} | {b} | {c} | {d} |\n", a + b + c + d)
}

/// Returns what was run and for how long: seeds and seconds by experiment.
pub fn runs(kept: &[Kept]) -> String {
    let mut by: BTreeMap<&str, Vec<&Kept>> = BTreeMap::new();
    for one in kept {
        by.entry(&one.experiment).or_default().push(one);
    }
    let mut text = String::from("| | runs | seeds | seconds measured |\n|---|---|---|---|\n");
    for (id, runs) in by {
        let values = |value: fn(&Kept) -> u64| {
            let mut values: Vec<u64> = runs.iter().map(|one| value(one)).collect();
            values.sort_unstable();
            values.dedup();
            values.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
        };
        let seconds = values(|one| one.run.duration_s as u64);
        text += &format!("| {id} | {} | {} | {seconds} |\n", runs.len(), values(|one| one.seed));
    }
    text
}

/// Returns the use of the link in figure 6d's setup with a buffer of one BDP, by scheme and by what is
/// changed in ns-2: that of the link forth, and the mean of both ways where data goes both ways, each the
/// median over the seeds, with the least and the most.
pub fn properties(kept: &[Kept]) -> String {
    let mut by: BTreeMap<(String, String, String), Vec<&Kept>> = BTreeMap::new();
    for one in kept {
        let part = match one.experiment.as_str() {
            PROPERTIES => format!("({})", one.point["part"]),
            "B-F6d" if one.point["case"] == "100" && one.point["scheme"] != "xcp" => String::new(),
            _ => continue,
        };
        let common = ["scheme", "queue", "buffer"];
        let changed = one.settings.iter().filter(|(name, _)| !common.contains(&name.as_str()));
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
        let changed: Vec<String> = changed.map(|(name, value)| format!("`{name}={}`", text(value))).collect();
        by.entry((part, changed.join(", "), one.point["scheme"].clone())).or_default().push(one);
    }
    let mut table = String::from(
        "| part | changed | scheme | use of the link | mean of both ways | seeds |\n|---|---|---|---|---|---|\n",
    );
    for ((part, changed, scheme), runs) in by {
        let cell = |value: &dyn Fn(&Run) -> f64| {
            let mut values: Vec<f64> = runs.iter().map(|one| value(&one.run)).collect();
            let middle = median(&mut values).expect("a run");
            match values.as_slice() {
                [least, .., most] => format!("{middle:.3} ({least:.3} to {most:.3})"),
                _ => format!("{middle:.3}"),
            }
        };
        let uses =
            |run: &Run| run.links.iter().map(|link| link.utilization).sum::<f64>() / run.links.len() as f64;
        let is_two_way = runs[0].settings.get("backward").is_none_or(|flows| flows != 0);
        let both = if is_two_way { cell(&uses) } else { String::new() };
        let changed = if changed.is_empty() { "nothing" } else { &changed };
        let forth = cell(&|run| run.utilization);
        table += &format!("| {part} | {changed} | {scheme} | {forth} | {both} | {} |\n", runs.len());
    }
    table
}
