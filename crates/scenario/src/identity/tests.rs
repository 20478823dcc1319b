use std::collections::{BTreeMap, BTreeSet};

use brakelight_core::random::Random;
use brakelight_core::units::Bytes;
use brakelight_links::replay::Recorded;
use brakelight_links::trains::Train;
use brakelight_registry::{CONTROLLERS, ControllerConfig};

use super::*;
use crate::file::{draw, read};
use crate::scheme_string::SchemeString;

const FIRST: &str = r#"
name = "first"
duration = "60s"
[[link]]
name = "up"
trace = "made"
queue = "codel:target=20ms,interval=100ms"
[[flow]]
name = "main"
controller = "cubic"
path = ["up", "loss:rate=0.01"]
rtt = "100ms"
receiver_clock = { offset = "1s" }
"#;

/// The same in other words.
const SAME: &str = r#"
seed = 1
duration = "1min"
trace_offset = "0ms"
record = { series = true, bin = "7s", link_logs = true }
[[link]]
overhead = "4B"
queue = "codel : interval=0.1s, target=0.02s"
trace = "made"
name = "up"
opportunity = "1.504kB"
buffer = "250pkt"
[[flow]]
name = "main"
count = 1
start_within = "100ms"
pacing_burst = 10
ack_delay = "40ms"
traffic = { kind = "backlogged" }
path = ["up", "loss:rate=1e-2"]
rtt = "100000us"
jitter = "0.2ms"
controller = "cubic:beta=0.70"
receiver_clock = { offset = "1000ms", skew_ppm = 0, step_ms = 0.0 }
"#;

fn made(text: &str) -> BTreeMap<String, Trace> {
    BTreeMap::from([("made".to_string(), Trace::parse(text.as_bytes()).unwrap())])
}

fn id(scenario: &Scenario) -> RunId {
    RunId::of(scenario, &made("1\n2\n2\n"), MODELLED)
}

#[test]
fn two_spellings_have_one_identity() {
    let first = read("first.toml", FIRST).unwrap();
    let same = read("same.toml", SAME).unwrap();
    assert_ne!(first.links[0].queue, same.links[0].queue);
    assert_eq!(canonical(&first), canonical(&same));
    assert_eq!(id(&first), id(&same));
}

#[test]
fn an_identity_stays_what_it_was() {
    // Pinned: tables of results are keyed by it. A new option of an algorithm changes it, as CoDel's `delay`.
    assert_eq!(id(&read("first.toml", FIRST).unwrap()).to_string(), "8ec36b42e941338d3baaf478198c43b3");
}

#[test]
fn whatever_changes_a_run_changes_its_identity() {
    let first = read("first.toml", FIRST).unwrap();
    let mut seen = vec![id(&first)];
    let mut differs = |other: RunId| {
        assert!(!seen.contains(&other));
        seen.push(other);
    };
    for (from, to) in [
        ("duration = \"60s\"", "duration = \"61s\""),
        ("duration = \"60s\"", "seed = 2"),
        ("duration = \"60s\"", "measure_from = \"1s\""),
        ("duration = \"60s\"", "trace_offset = \"random\""),
        ("duration = \"60s\"", "record = { state = true }"),
        ("target=20ms", "target=21ms"),
        ("rate=0.01", "rate=0.02"),
        ("\"up\", \"loss:rate=0.01\"", "\"loss:rate=0.01\", \"up\""),
        ("cubic\"", "cubic:beta=0.8\""),
        ("cubic\"", "newreno\""),
        ("rtt = \"100ms\"", "rtt = \"100ms\"\nack_every = 1"),
        ("rtt = \"100ms\"", "rtt = \"100ms\"\ntraffic = \"video\""),
        ("rtt = \"100ms\"", "rtt = \"100ms\"\nmss = \"1000B\""),
        ("offset = \"1s\"", "offset = \"1s\", skew_ppm = 1"),
        ("\"main\"", "\"other\""),
    ] {
        assert!(FIRST.contains(from), "{from}");
        differs(id(&read("first.toml", &FIRST.replace(from, to)).unwrap()));
    }
    differs(RunId::of(&first, &made("1\n2\n3\n"), MODELLED));
    differs(RunId::of(&first, &made("1\n2\n2\n4\n"), MODELLED));
    differs(RunId::of(&first, &made("1\n2\n2\n"), "quinn"));
}

#[test]
fn light_trains_are_of_a_trace_s_identity() {
    let first = read("first.toml", FIRST).unwrap();
    let with = |opportunity: u64, delay_ms: u64, last_ms: u64| {
        let train = |at_ms, last_ms| Train {
            at: Duration::from_millis(at_ms),
            delay: Duration::from_millis(delay_ms),
            opportunities: vec![Duration::ZERO, Duration::from_millis(last_ms)],
        };
        let trains = vec![train(0, last_ms), train(50, 3)];
        let trains = Some(Trains::new(trains, Bytes(opportunity), Trains::IDLE).unwrap());
        let resolution = Duration::from_millis(1);
        let recorded = Recorded { resolution, forward: None, reverse: None, trains };
        let traces =
            made("1\n2\n2\n").into_iter().map(|(name, trace)| (name, trace.with_recorded(recorded.clone())));
        RunId::of(&first, &traces.collect(), MODELLED)
    };
    let ids = [id(&first), with(1400, 20, 3), with(1399, 20, 3), with(1400, 21, 3), with(1400, 20, 4)];
    let distinct: BTreeSet<RunId> = ids.into_iter().collect();
    assert_eq!(distinct.len(), ids.len());
    assert_eq!(with(1400, 20, 3), ids[1]);
}

#[test]
fn drawn_scenarios_have_one_identity_in_any_format_and_another_after_any_change() {
    let mut random = Random::stream(4, "scenarios");
    let none = BTreeMap::new();
    for _ in 0..300 {
        let scenario = draw(&mut random);
        let id = |scenario: &Scenario| RunId::of(scenario, &none, MODELLED);
        let json = serde_json::to_string(&scenario).unwrap();
        assert_eq!(id(&serde_json::from_str(&json).unwrap()), id(&scenario));
        let mut renamed = scenario.clone();
        renamed.name = "another".to_string();
        renamed.record.series = !renamed.record.series;
        assert_eq!(id(&renamed), id(&scenario));
        let changes: [&dyn Fn(&mut Scenario); 7] = [
            &|changed| changed.seed = changed.seed.wrapping_add(1),
            &|changed| changed.links[0].opportunity += Bytes(1),
            &|changed| changed.flows[0].count += 1,
            &|changed| changed.flows[0].pacing_burst += 1,
            &|changed| changed.flows[0].ack_delay = Some(Duration::from_millis(30)),
            &|changed| changed.record.state = !changed.record.state,
            &|changed| changed.flows[0].reverse.push(crate::scenario::Hop::Link("back".to_string())),
        ];
        for change in changes {
            let mut changed = scenario.clone();
            change(&mut changed);
            assert_ne!(id(&changed), id(&scenario), "{json}");
        }
    }
}

#[test]
fn defaults_written_out_name_the_same_algorithm() {
    let mut written = 0;
    for entry in CONTROLLERS {
        let canonical = |options: &[(&str, &str)]| {
            Some(SchemeString::<ControllerConfig>::new(entry.name, options).ok()?.canonical())
        };
        let plain = canonical(&[]);
        assert!(plain.is_some(), "{}", entry.name);
        for parameter in entry.parameters() {
            // Some defaults stand for nothing given, and cannot be given.
            if let Some(given) = canonical(&[(parameter.name, &parameter.default)]) {
                assert_eq!(Some(given), plain, "{} {}", entry.name, parameter.name);
                written += 1;
            }
        }
    }
    assert!(written > 100, "{written}");
}

#[test]
fn a_set_has_the_identity_of_its_runs_in_order() {
    let first = read("first.toml", FIRST).unwrap();
    let (one, two) = (id(&first), id(&Scenario { seed: 2, ..first }));
    let set = RunId::of_set([Some(one), Some(two)]);
    assert!(set.is_some() && set != RunId::of_set([Some(two), Some(one)]));
    assert_eq!(RunId::of_set([Some(one), None]), None);
}

#[test]
fn an_identity_reads_back() {
    let id = id(&read("first.toml", FIRST).unwrap());
    assert_eq!(id.to_string().parse(), Ok(id));
    assert_eq!(serde_json::from_str::<RunId>(&serde_json::to_string(&id).unwrap()).unwrap(), id);
    for wrong in ["", "12", "zz", &"0".repeat(33), &"é".repeat(16)] {
        assert!(wrong.parse::<RunId>().is_err(), "{wrong}");
    }
}
