//! Experiments are laid out as their files say, judged by what was measured, and refused with a message that
//! helps.

use std::fmt::Write;

use brakelight_core::random::Random;
use brakelight_core::time::Duration;
use brakelight_core::units::{Limit, Rate};
use brakelight_links::trace::Trace;
use brakelight_testkit::mutate::{fuzz_inputs, mutate};

use super::{EMBEDDED, Experiment, Finding, Table, read};
use crate::documents::{Claim, Verdict};
use crate::outcome::{Run, Summary};
use crate::scenario::Service;

/// The inputs of [`never_panics`] are made and read by so many tests, each its share, because one core would
/// take half a minute for all.
const SHARES: u64 = 8;

const MATRIX: &str = r#"
id = "EX-1"
title = "A matrix"
source = "nowhere 1"
note = "made up"
schemes = { fast = "newreno:beta={beta}", slow = "newreno:beta=0.5" }
traces = ["one", "two"]
seeds = 3
rtt = "{rtt}"
buffer = "100pkt"
duration = "30s"
trace_offset = "random"

[sweep]
beta = [0.6, 0.7]
rtt = ["20ms", "200ms"]

[[claim]]
claim = "fast is faster"
paper = "1.5x"
check = "throughput_mbps['fast', beta = 0.7, rtt = '20ms'] / throughput_mbps['slow', beta = 0.7, rtt = '20ms'] ~ 1.5"

[[claim]]
id = "EX-1b"
claim = "a longer way is slower"
check = "decreasing(throughput_mbps, rtt)"
show = "mean(throughput_mbps, trace)"

[[claim]]
claim = "an algorithm does as it says"
check = "builtin:algorithm"

[[claim]]
claim = "the curve of a lost figure"
check = "not-checkable"
note = "the figure is lost"
"#;

const CASES: &str = r#"
id = "EX-2"
title = "A scenario of its own"
source = "nowhere 2"
schemes = ["newreno", "newreno:beta=0.7,limit=9pkt"]
seeds = 2
scenario = '''
duration = "{until}"
[[link]]
name = "up"
rate = "24Mbps"
queue = "{queue}"
[[flow]]
name = "a"
controller = "{controller}"
feedback = "{feedback}"
traffic = { kind = "size", size = "1MB" }
rtt = "20ms"
path = ["up"]
'''

[[case]]
case = "short"
until = "10s"

[[case]]
case = "long"
until = "20s"

[[claim]]
claim = "it finishes"
check = "flows.a.application.completion_ms < 10"
"#;

fn experiment(text: &str) -> Experiment {
    read("x.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_matrix_has_a_job_for_every_point_and_seed() {
    let experiment = experiment(MATRIX);
    let names: Vec<&str> = experiment.dimensions.iter().map(|dimension| dimension.name.as_str()).collect();
    assert_eq!(names, ["scheme", "trace", "beta", "rtt"]);
    assert_eq!(experiment.jobs.len(), 2 * 2 * 2 * 2 * 3);
    assert_eq!(experiment.traces(), ["one", "two"]);
    assert_eq!(experiment.builtins().collect::<Vec<_>>(), ["algorithm"]);
    let job = &experiment.jobs[22];
    assert_eq!((job.point.as_slice(), job.scenario.seed), ([0, 1, 1, 1].as_slice(), 2));
    let job = &job.scenario;
    assert_eq!(job.flows[0].controller.words().to_string(), "newreno:beta=0.7");
    assert_eq!(job.flows[0].rtt, Duration::from_millis(200));
    assert_eq!(job.links[0].service, Service::Trace("two".to_string()));
    assert_eq!(job.links[0].buffer, Limit::Packets(100));
    assert_eq!(job.duration, Duration::from_secs(30));
    assert_eq!(experiment.jobs[47].scenario.flows[0].controller.words().to_string(), "newreno:beta=0.5");
}

#[test]
fn a_buffer_in_bandwidth_delay_products_is_sized_by_each_trace_and_rtt() {
    let mut experiment = experiment(&MATRIX.replacen("buffer = \"100pkt\"", "buffer = \"4BDP\"", 1));
    let job = |experiment: &Experiment, index: usize| experiment.jobs[index].scenario.links[0].buffer;
    assert_eq!(job(&experiment, 0), Limit::Packets(250));
    // One opportunity a millisecond: 20 and 200 packets are one product.
    let steady = Trace::from_millis(1..=1000).unwrap();
    experiment.size_buffers(|name| (name == "one").then_some(&steady));
    assert_eq!((job(&experiment, 0), job(&experiment, 3)), (Limit::Packets(80), Limit::Packets(800)));
    let other = experiment.jobs.iter().find(|job| job.point[1] == 1).unwrap();
    assert_eq!(other.scenario.links[0].buffer, Limit::Packets(250));
    for (buffer, reason) in [("0BDP", "out of range"), ("xBDP", "not a number")] {
        let text = MATRIX.replacen("buffer = \"100pkt\"", &format!("buffer = \"{buffer}\""), 1);
        let error = read("x.toml", &text).expect_err(buffer).to_string();
        assert!(error.contains("buffer") && error.contains(reason), "{error}");
    }
}

#[test]
fn a_scenario_of_its_own_takes_the_parts_of_the_scheme_and_the_values_of_the_case() {
    let experiment = experiment(CASES);
    assert_eq!(experiment.jobs.len(), 2 * 2 * 2);
    let last = &experiment.jobs[7].scenario;
    assert_eq!((last.duration, last.seed), (Duration::from_secs(20), 2));
    assert_eq!(last.links[0].service, Service::Fixed(Rate::from_mbps(24)));
    assert_eq!(last.links[0].queue.words().to_string(), "droptail:limit=9pkt");
    assert_eq!(last.flows[0].controller.words().to_string(), "newreno:beta=0.7");
}

/// Measurements in which `fast` has `ratio` times the throughput of `slow`, and a longer way is slower.
fn measured(experiment: &Experiment, ratio: f64) -> Table {
    let mut table = Table::new(&experiment.dimensions);
    for job in &experiment.jobs {
        let base = if job.point[0] == 0 { ratio } else { 1.0 };
        let throughput = base / (1 + job.point[3]) as f64;
        let queueing_delay_ms = Some(Summary::default());
        table.add(&job.point, &Run { throughput_mbps: throughput, queueing_delay_ms, ..Run::default() });
    }
    table
}

#[test]
fn judges_every_claim_by_what_was_measured() {
    let experiment = experiment(MATRIX);
    let mut builtin = |name: &str| {
        assert_eq!(name, "algorithm");
        Some(Finding { holds: false, measured: "0.4".to_string(), note: "by hand".to_string() })
    };
    let claims = experiment.judge(Some(&measured(&experiment, 1.6)), &mut builtin);
    let verdicts: Vec<Verdict> = claims.iter().map(|claim| claim.verdict).collect();
    assert_eq!(verdicts, [Verdict::Holds, Verdict::Holds, Verdict::Fails, Verdict::NotCheckable]);
    assert_eq!((claims[0].id.as_str(), claims[1].id.as_str()), ("EX-1", "EX-1b"));
    assert_eq!(claims[0].measured, "one: 1.6, two: 1.6");
    assert!(claims[1].measured.starts_with("fast beta 0.6 rtt 20ms: 1.6, "), "{}", claims[1].measured);
    assert_eq!((claims[2].measured.as_str(), claims[2].note.as_str()), ("0.4", "by hand; made up"));
    assert_eq!(claims[3].note, "the figure is lost; made up");
    let claims = experiment.judge(Some(&measured(&experiment, 1.8)), &mut builtin);
    assert_eq!(claims[0].verdict, Verdict::Fails);
    assert_eq!(claims[0].note, "not at one, two; made up");
}

#[test]
fn without_its_recordings_a_claim_needs_them() {
    let experiment = experiment(MATRIX);
    let claims = experiment.judge(None, &mut |_| None);
    let verdicts: Vec<Verdict> = claims.iter().map(|claim| claim.verdict).collect();
    use Verdict::{Fails, NeedsRecordings, NotCheckable};
    assert_eq!(verdicts, [NeedsRecordings, NeedsRecordings, Fails, NotCheckable]);
    assert_eq!(claims[2].note, "there is no check `algorithm`; made up");
}

/// The first claim of the matrix with more keys, judged on measurements in which `fast` has `ratio` times the
/// throughput.
fn judged_with(keys: &str, ratio: f64) -> Claim {
    let text = MATRIX.replacen("paper = \"1.5x\"", &format!("paper = \"1.5x\"\n{keys}"), 1);
    let experiment = experiment(&text);
    let mut builtin = |name: &str| match name {
        "right" => Some(Finding { holds: true, measured: "4 > 3".into(), note: String::new() }),
        "wrong" => Some(Finding { holds: false, measured: "4 < 3".into(), note: String::new() }),
        _ => None,
    };
    experiment.judge(Some(&measured(&experiment, ratio)), &mut builtin).swap_remove(0)
}

#[test]
fn a_claim_that_fails_is_refuted_by_an_argument_that_holds() {
    let verdict = |argument: &str, ratio| judged_with(&format!("refuted = \"{argument}\""), ratio).verdict;
    assert_eq!(verdict("not (2.8 ~ 6)", 1.8), Verdict::Refuted);
    assert_eq!(verdict("2.8 ~ 6", 1.8), Verdict::Fails);
    assert_eq!(verdict("builtin:right", 1.8), Verdict::Refuted);
    assert_eq!(verdict("builtin:wrong", 1.8), Verdict::Fails);
    assert_eq!(verdict("builtin:unknown", 1.8), Verdict::Fails);
    // What holds, holds.
    assert_eq!(verdict("not (2.8 ~ 6)", 1.5), Verdict::Holds);
    let claim = judged_with("refuted = \"builtin:right\"", 1.8);
    assert_eq!(claim.note, "not at one, two; 4 > 3; made up");
}

#[test]
fn a_number_of_other_recordings_is_shown_with_ours_and_not_counted() {
    for (ratio, said) in [(1.5, "holds on our recordings"), (1.8, "not at one, two; fails on our recordings")]
    {
        let claim = judged_with("recordings = true", ratio);
        assert_eq!(claim.verdict, Verdict::NeedsRecordings);
        assert_eq!(claim.note, format!("{said}; made up"));
        assert!(!claim.measured.is_empty());
    }
}

#[test]
fn a_claim_of_no_paper_is_told_apart() {
    assert!(judged_with("ours = true", 1.5).ours && !judged_with("", 1.5).ours);
    let all = experiment(&MATRIX.replacen("note = \"made up\"", "note = \"made up\"\nours = true", 1));
    assert!(all.judge(None, &mut |_| None).iter().all(|claim| claim.ours));
}

/// Which claims depend on recordings that are not the paper's is a rule: those that state a number, and run
/// on recordings. No claim is taken out of the count by itself.
#[test]
fn a_claim_depends_on_recordings_if_it_states_a_number_of_them() {
    for (file, text) in EMBEDDED {
        let experiment = read(file, text).unwrap_or_else(|error| panic!("{error}"));
        let recorded =
            experiment.traces().iter().any(|name| name.ends_with(".up") || name.ends_with(".down"));
        for claim in &experiment.claims {
            let number = claim.paper.contains(|c: char| c.is_ascii_digit());
            assert_eq!(
                claim.recordings,
                recorded && number && !claim.ours,
                "{file}: {}, {}",
                claim.claim,
                claim.paper
            );
            assert!(!(claim.ours && claim.refuted.is_some()), "{file}: {}", claim.claim);
        }
    }
}

#[test]
fn a_missing_measurement_fails_the_claim() {
    let experiment = experiment(CASES);
    let mut table = Table::new(&experiment.dimensions);
    for job in &experiment.jobs {
        table.add(&job.point, &Run::default());
    }
    let claims = experiment.judge(Some(&table), &mut |_| None);
    assert_eq!(claims[0].verdict, Verdict::Fails);
    assert!(
        claims[0].note.contains("unknown metric `flows.a.application.completion_ms`"),
        "{}",
        claims[0].note
    );
}

#[test]
fn refuses_bad_files_in_the_users_words() {
    let mut shown = String::new();
    let swaps = [
        (MATRIX, "id = \"EX-1\"", ""),
        (MATRIX, "seeds = 3", "seeds = 0"),
        (MATRIX, "seeds = 3", "seeds = 100000"),
        (MATRIX, "seeds = 3", "seed = 3"),
        (MATRIX, "traces = [\"one\", \"two\"]", ""),
        (MATRIX, "traces = [\"one\", \"two\"]", "traces = [\"one\", \"one\"]"),
        (MATRIX, "{beta}", "{gamma}"),
        (MATRIX, "[0.6, 0.7]", "[0.6, 7]"),
        (MATRIX, "[0.6, 0.7]", "[]"),
        (MATRIX, "[0.6, 0.7]", "[[0.6]]"),
        (MATRIX, "[0.6, 0.7]", "0.6"),
        (MATRIX, "beta = [0.6, 0.7]", "trace = [0.6, 0.7]"),
        (MATRIX, "\"20ms\", ", "\"0ms\", "),
        (MATRIX, "buffer = \"100pkt\"", "buffer = 100"),
        (MATRIX, "newreno:beta=0.5", "newrino"),
        (MATRIX, "beta = 0.7, rtt = '20ms'", "beta = 0.8, rtt = '20ms'"),
        (MATRIX, "decreasing(throughput_mbps, rtt)", "decreasing(throughput, rtt"),
        (MATRIX, "decreasing(throughput_mbps, rtt)", "throughput_mbps"),
        (MATRIX, "\"mean(throughput_mbps, trace)\"", "\"mean(speed, trace)\""),
        (MATRIX, "note = \"the figure is lost\"", ""),
        (MATRIX, "claim = \"fast is faster\"", ""),
        (MATRIX, "paper = \"1.5x\"", "refuted = \"throughput_mbps > 1\""),
        (MATRIX, "paper = \"1.5x\"", "refuted = \"1 + 1\""),
        (MATRIX, "paper = \"1.5x\"", "recordings = \"yes\""),
        (CASES, "24Mbps", "24"),
        (CASES, "\"{controller}\"", "\"{control}\""),
        (CASES, "case = \"short\"", ""),
        (CASES, "case = \"short\"", "case = \"long\""),
        (CASES, "until = \"10s\"", ""),
        (CASES, "seeds = 2", "seeds = 2\nrtt = \"1s\""),
        (CASES, "flows.a.", "flows.b."),
    ];
    for (text, from, to) in swaps {
        assert!(text.contains(from), "{from}");
        let error = read("x.toml", &text.replacen(from, to, 1)).expect_err(to).to_string();
        let error = match error.find("valid are capacity_mbps") {
            Some(at) => format!("{}valid are (metrics)", &error[..at]),
            None => error,
        };
        let error = match error.find("unknown controller") {
            Some(at) => format!("{}unknown controller ...", &error[..at]),
            None => error,
        };
        writeln!(shown, "{from} -> {to}\n    {error}").unwrap();
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn every_file_of_the_project_is_embedded_and_reads() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    names.sort();
    assert_eq!(names, EMBEDDED.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    let mut ids = Vec::new();
    for (file, text) in EMBEDDED {
        let experiment = read(file, text).unwrap_or_else(|error| panic!("{error}"));
        assert!(!ids.contains(&experiment.id), "{file}: the id {} is taken", experiment.id);
        let seeds = experiment.jobs.iter().map(|job| job.scenario.seed).max().unwrap_or(10);
        // Long runs may have fewer than the rules' ten, and then say so.
        let says = ["of the paper's ten", "of the rules' ten"].iter().any(|of| experiment.note.contains(of));
        assert!(seeds >= 10 || says, "{file}: {seeds} seeds, and the note does not say so");
        ids.push(experiment.id);
    }
}

/// Reads one of [`SHARES`] equal parts of the inputs, rounded up.
fn never_panics(share: u64) {
    let mut random = Random::stream(5, &format!("experiments {share}"));
    let corpus = [MATRIX.to_string(), CASES.to_string()];
    let inputs = fuzz_inputs().div_ceil(SHARES);
    let mut accepted = 0;
    for _ in 0..inputs {
        let text = mutate(&corpus, &mut random);
        match read("fuzz.toml", &text) {
            Ok(experiment) => {
                accepted += 1;
                experiment.judge(None, &mut |_| None);
            }
            Err(error) => assert!(error.line.is_some() && !error.to_string().contains('\n'), "{error}"),
        }
    }
    assert!(accepted > inputs / 20, "{accepted} of {inputs} accepted");
}

/// A test for each share of the inputs.
macro_rules! shares {
    ($($name:ident $first:literal)*) => {
        $(
            #[test]
            fn $name() {
                never_panics($first);
            }
        )*

        #[test]
        fn every_input_is_in_a_share() {
            assert_eq!([$($first),*], std::array::from_fn::<u64, { SHARES as usize }, _>(|share| share as u64));
        }
    };
}

shares! {
    never_panics_0 0
    never_panics_1 1
    never_panics_2 2
    never_panics_3 3
    never_panics_4 4
    never_panics_5 5
    never_panics_6 6
    never_panics_7 7
}
