//! The tables of `docs/three-systems.md` and of the paper hold what the kept verdicts of
//! `docs/reproduction/ours.md` say. Running them anew takes a minute and needs recordings, so the kept ones
//! are read; `brakelight reproduce FIRST` makes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use brakelight_testkit::part::check;

const PAGE: &str = "../three-systems";

const PAPER: &str = "../paper/paper";

/// The schemes, by their names in the experiments and in the tables.
const SCHEMES: &[(&str, &str)] = &[
    ("abc", "ABC"),
    ("bmcc", "BMCC"),
    ("quicdc", "QUIC-DC"),
    ("bbr3", "BBRv3"),
    ("copa", "Copa"),
    ("cubic+codel", "Cubic+CoDel"),
];

/// The recording with outages of seconds, on which BMCC queues longer than ABC.
const OUTAGES: &str = "ATT-LTE-driving-2016.up";

const DELAY: &str = "95th percentile of queueing, ms";
const LOSS: &str = "Loss, per cent";

/// What the kept verdict on `claim` of experiment `id` shows as measured: values by scheme and, where there
/// are several, by case.
fn kept(id: &str, claim: &str) -> BTreeMap<String, f64> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproduction/ours.md");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let row = text
        .lines()
        .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>())
        .find(|cells| cells.get(1) == Some(&id) && cells.get(2) == Some(&claim))
        .unwrap_or_else(|| panic!("no kept verdict on {id}: {claim}"));
    let value = |pair: &str| -> Option<(String, f64)> {
        let (name, value) = pair.rsplit_once(": ")?;
        Some((name.to_string(), value.parse().ok()?))
    };
    row[4]
        .split(", ")
        .map(|pair| value(pair).unwrap_or_else(|| panic!("{id}: {claim}: `{pair}` is no value")))
        .collect()
}

/// Two digits behind the point, or as many as the first that is not zero needs.
fn loss(percent: f64) -> String {
    match percent {
        0.0 => "0".to_string(),
        0.01.. => format!("{percent:.2}"),
        _ => format!("{percent:.3}"),
    }
}

fn delay(ms: f64) -> String {
    if ms < 9.95 { format!("{ms:.1}") } else { format!("{ms:.0}") }
}

/// One line per case, (how the experiment calls it, how the table does): `share` times `factor`, delay and
/// loss of each scheme.
fn table(id: &str, share: &str, factor: f64, corner: &str, cases: &[(&str, &str)]) -> String {
    let [shares, delays, losses] = [share, DELAY, LOSS].map(|claim| kept(id, claim));
    let names: Vec<&str> = SCHEMES.iter().map(|(_, name)| *name).collect();
    let mut table = format!("| {corner} | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    for (case, name) in cases {
        let cells: Vec<String> = SCHEMES
            .iter()
            .map(|(scheme, _)| {
                let key = format!("{scheme} {case}");
                let of = |values: &BTreeMap<String, f64>| {
                    *values.get(key.trim()).unwrap_or_else(|| panic!("{id}: nothing is kept of {key}"))
                };
                format!("{:.1}; {}; {}", factor * of(&shares), delay(of(&delays)), loss(of(&losses)))
            })
            .collect();
        table += &format!("| {name} | {} |\n", cells.join(" | "));
    }
    table
}

/// The mean of what `values` has of `scheme`, over its cases.
fn mean(values: &BTreeMap<String, f64>, scheme: &str) -> f64 {
    let own = values.iter().filter(|(name, _)| name.split(' ').next() == Some(scheme));
    let own: Vec<f64> = own.map(|(_, value)| *value).collect();
    own.iter().sum::<f64>() / own.len() as f64
}

/// The least and the largest ratio of what `values` has of `scheme` to what it has of ABC, over all cases but
/// `without`.
fn ratios(values: &BTreeMap<String, f64>, scheme: &str, without: &str) -> (f64, f64) {
    let ratio = |(name, value): (&String, &f64)| {
        let (own, case) = name.split_once(' ')?;
        (own == scheme && case != without).then(|| value / values[&format!("abc {case}")])
    };
    let ratios: Vec<f64> = values.iter().filter_map(ratio).collect();
    (ratios.iter().copied().fold(f64::INFINITY, f64::min), ratios.iter().copied().fold(0.0, f64::max))
}

#[test]
fn means_in_the_text_are_those_of_the_kept_verdicts() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/three-systems.md");
    let text = fs::read_to_string(path).expect("the page");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (shares, delays) = (kept("FIRST-R", "Share of the link used"), kept("FIRST-R", DELAY));
    let abc = mean(&shares, "abc");
    let (fixed, fixed_delays) = (kept("FIRST-F", "Share of the link used"), kept("FIRST-F", DELAY));
    let wifi = kept("FIRST-W", "Throughput, Mbit/s");
    let (queue, use_of_link) = (ratios(&delays, "bmcc", OUTAGES), ratios(&shares, "bmcc", OUTAGES));
    assert_eq!(format!("{:.1}", use_of_link.0), format!("{:.1}", use_of_link.1));
    let less = ratios(&fixed, "bmcc", "none");
    let quicdc = ["12", "50", "100"].map(|rate| fixed[&format!("quicdc case {rate}")]);
    let of_quicdc = || shares.iter().filter(|(name, _)| name.starts_with("quicdc ")).map(|(_, share)| *share);
    let recordings = (of_quicdc().fold(f64::INFINITY, f64::min), of_quicdc().fold(0.0, f64::max));
    assert!(fixed_delays.iter().all(|(name, ms)| !name.starts_with("quicdc ") || *ms < 60.0));
    for sentence in [
        format!(
            "On five of six recordings its queue is {:.1} to {:.1} of ABC's, at {:.1} of ABC's throughput",
            queue.0, queue.1, use_of_link.0
        ),
        format!("({:.1} ms at 100 Mbit/s) and no loss", fixed_delays["bmcc case 100"]),
        format!("for {:.0} to {:.0} % less use than ABC", 100.0 * (1.0 - less.1), 100.0 * (1.0 - less.0)),
        format!(
            "On Wi-Fi, ten RTTs per interval, it uses {:.1} of what ABC does",
            wifi["bmcc"] / wifi["abc"]
        ),
        format!(
            "it uses {:.2} to {:.2} of fixed links",
            quicdc.iter().copied().fold(f64::INFINITY, f64::min),
            quicdc.iter().copied().fold(0.0, f64::max)
        ),
        format!("it uses more than BMCC, Copa and Cubic+CoDel, {:.0} % on average", 100.0 * abc),
        format!("**Copa** has ABC's delay with {:.2} of its throughput", mean(&shares, "copa") / abc),
        format!(
            "lowest 95th percentile on average ({:.0} ms) and uses {:.2}",
            mean(&delays, "cubic+codel"),
            mean(&shares, "cubic+codel")
        ),
        format!("it uses {:.2} to {:.2} of the recordings", recordings.0, recordings.1),
    ] {
        assert!(text.contains(&sentence), "docs/three-systems.md does not say `{sentence}`");
    }
}

#[test]
fn the_tables_are_those_of_the_kept_verdicts() {
    let recordings = [
        "Verizon-LTE-short.down",
        "Verizon-LTE-short.up",
        "ATT-LTE-driving-2016.down",
        "ATT-LTE-driving-2016.up",
        "TMobile-LTE-short.down",
        "TMobile-LTE-short.up",
    ]
    .map(|name| (name, name));
    let fixed = [("case 12", "12 Mbit/s"), ("case 50", "50 Mbit/s"), ("case 100", "100 Mbit/s")];
    let share = "Share of the link used";
    let on_recordings = table("FIRST-R", share, 100.0, "recording", &recordings);
    check(PAGE, "recordings", &on_recordings);
    check(PAPER, "recordings", &on_recordings);
    check(PAGE, "fixed", &table("FIRST-F", share, 100.0, "link", &fixed));
    check(PAGE, "wifi", &table("FIRST-W", "Throughput, Mbit/s", 1.0, "link", &[("", "`wifi:mcs=1/7`")]));
}
