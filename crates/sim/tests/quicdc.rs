//! QUIC-DC's signature (quicdc 3 and 5.1) on the modelled host: the queueing delay is bounded by the
//! threshold, no more than one reaction per round trip, and neither the receiver's clock nor the way back
//! matters.

use brakelight_core::time::Duration;
use brakelight_scenario::experiment::{self, EMBEDDED};
use brakelight_scenario::file::read;
use brakelight_scenario::outcome::{FlowSeries, Outcome, Run};
use brakelight_sim::{Traces, run};

/// The lab of the paper: 10 Mbit/s, 50 ms, 2 BDP unless `edit` says otherwise.
fn scenario(controller: &str, edit: impl Fn(String) -> String) -> String {
    edit(format!(
        r#"
duration = "60s"
measure_from = "5s"
record = {{ series = true, bin = "50ms" }}

[[link]]
name = "server"
rate = "10Mbps"
buffer = "125kB"

[[flow]]
name = "main"
controller = "{controller}"
host = "quic"
mss = "1215B"
overhead = "79B"
rtt = "50ms"
path = ["server"]
"#
    ))
}

fn outcome(text: &str) -> Outcome {
    let scenario = read("lab.toml", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    run(&scenario, &Traces::new()).expect("a scenario that runs")
}

fn lab(controller: &str) -> Outcome {
    outcome(&scenario(controller, |text| text))
}

fn flow(outcome: &Outcome) -> &FlowSeries {
    &outcome.series.as_ref().expect("series").flows[0]
}

fn queueing_max_ms(run: &Run) -> f64 {
    run.queueing_delay_ms.expect("packets").max
}

fn queueing_mean_ms(run: &Run) -> f64 {
    run.queueing_delay_ms.expect("packets").mean
}

fn delay_events(outcome: &Outcome) -> f64 {
    *flow(outcome).state["delay_events"].last().expect("a bin")
}

/// A packet's own transmission, which the link counts as queueing.
const TRANSMISSION_MS: f64 = 1.0352;

#[test]
fn the_queueing_delay_stays_within_a_tenth_of_the_threshold_once_started() {
    for threshold_ms in [20.0, 40.0, 60.0, 80.0] {
        let outcome = lab(&format!("quicdc:threshold={threshold_ms}ms"));
        let worst = queueing_max_ms(&outcome.run) - TRANSMISSION_MS;
        assert!(worst <= 1.1 * threshold_ms, "{worst} ms at {threshold_ms} ms");
        assert!(worst >= threshold_ms, "{worst} ms at {threshold_ms} ms: the event never came");
        assert_eq!(outcome.run.dropped_packets, 0);
        assert!(outcome.run.utilization > 0.99, "{}", outcome.run.utilization);
    }
}

#[test]
fn the_mean_queueing_delay_rises_strictly_with_the_threshold() {
    let means: Vec<f64> = [5, 10, 20, 40, 60, 80, 95]
        .iter()
        .map(|threshold| queueing_mean_ms(&lab(&format!("quicdc:threshold={threshold}ms")).run))
        .collect();
    assert!(means.windows(2).all(|pair| pair[0] < pair[1]), "{means:?}");
}

/// The window falls at most once in any 50 ms, which is the smallest round trip.
#[test]
fn there_is_at_most_one_reaction_per_round_trip() {
    for threshold in ["2ms", "10ms", "80ms"] {
        let outcome = lab(&format!("quicdc:threshold={threshold}"));
        let events = &flow(&outcome).state["delay_events"];
        let most = events.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
        assert!(most <= 1.0, "{most} at {threshold}");
        assert!(delay_events(&outcome) >= 5.0, "{threshold}");
    }
}

/// The sawtooth from the empty path to the threshold: one packet more per round trip. With T the RTT, dT/dt =
/// c/T, so the mean over time is 2/3 (b^3 - a^3) / (b^2 - a^2).
#[test]
fn the_mean_rtt_is_that_of_the_closed_form_sawtooth() {
    for threshold_ms in [20.0, 50.0, 80.0] {
        let outcome = lab(&format!("quicdc:threshold={threshold_ms}ms"));
        let (a, b) = (50.0 + TRANSMISSION_MS, 50.0 + TRANSMISSION_MS + threshold_ms);
        let expected = 2.0 / 3.0 * (b * b * b - a * a * a) / (b * b - a * a);
        let mean = outcome.run.rtt_ms.expect("samples").mean;
        assert!((mean / expected - 1.0).abs() < 0.05, "{mean} for {expected} at {threshold_ms}");
    }
}

#[test]
fn the_offset_of_the_receivers_clock_changes_nothing() {
    let clock = |line: &str| {
        let mut run = outcome(&scenario("quicdc:threshold=40ms", |text| text + line)).run;
        // The scenarios differ, and so do their identities.
        run.run_id = None;
        run
    };
    let plain = clock("");
    assert_eq!(clock("receiver_clock = { offset = \"17min\" }\n"), plain);
}

#[test]
fn a_skewed_or_a_stepping_clock_hardly_changes_anything() {
    let clock = |line: &str| {
        outcome(&scenario("quicdc:threshold=40ms", |text| {
            text.replace("duration = \"60s\"", "duration = \"120s\"") + line
        }))
    };
    let plain = clock("");
    for line in [
        "receiver_clock = { skew_ppm = 50 }\n",
        "receiver_clock = { skew_ppm = -50 }\n",
        "receiver_clock = { skew_ppm = 50, step_at = \"30s\", step_ms = 100 }\n",
        "receiver_clock = { offset = \"1s\", step_at = \"30s\", step_ms = -100 }\n",
    ] {
        let other = clock(line);
        let mean = queueing_mean_ms(&other.run) / queueing_mean_ms(&plain.run);
        assert!((mean - 1.0).abs() < 0.05, "{line}: {mean}");
        assert!(other.run.goodput_mbps > 0.99 * plain.run.goodput_mbps, "{line}");
    }
}

/// Without the bound a skew of 50 ppm is 6 ms after 120 s: the plain sum lets a fast clock pass for a queue.
#[test]
fn the_plain_sum_takes_skew_for_a_queue() {
    let mean = |baseline: &str, skew: i32| {
        let controller = format!("quicdc:threshold=10ms,baseline={baseline}");
        let text = scenario(&controller, |text| {
            text.replace("duration = \"60s\"", "duration = \"120s\"")
                .replace("measure_from = \"5s\"", "measure_from = \"90s\"")
                + &format!("receiver_clock = {{ skew_ppm = {skew} }}\n")
        });
        queueing_mean_ms(&outcome(&text).run)
    };
    let plain = mean("minimum", 0);
    assert!(mean("minimum", 50) < 0.8 * plain);
    assert!((mean("bounded", 50) / plain - 1.0).abs() < 0.05);
}

/// Q-REV.
#[test]
fn congestion_on_the_way_back_causes_no_delay_event_and_slows_vegas() {
    let back = |busy: bool| {
        move |text: String| {
            let start = if busy { "0s" } else { "59s" };
            text.replace("path = [\"server\"]", "path = [\"server\"]\nreverse = [\"client\"]")
                + &format!(
                    "[[link]]\nname = \"client\"\nrate = \"10Mbps\"\nbuffer = \"125kB\"\n\
                     [[flow]]\nname = \"other\"\ncontroller = \"newreno\"\nrtt = \"50ms\"\npath = [\"client\"]\n\
                     start = \"{start}\"\n"
                )
        }
    };
    // Half of what the way forward carries: every delay event would be a mistake.
    let half = |text: String| {
        text.replace("host =", "traffic = { kind = \"rate-limited\", rate = \"5Mbps\" }\nhost =")
    };
    let of = |controller: &str, busy: bool| outcome(&half(scenario(controller, back(busy))));
    let share = |controller: &str| {
        let goodput = |busy: bool| of(controller, busy).run.flows[0].goodput_mbps;
        goodput(true) / goodput(false)
    };
    for threshold in ["10ms", "20ms", "80ms"] {
        let controller = format!("quicdc:threshold={threshold}");
        assert_eq!(delay_events(&of(&controller, true)), 0.0, "{threshold}");
        assert!(share(&controller) > 0.99, "{} at {threshold}", share(&controller));
    }
    assert!(share("vegas") < 0.85, "{}", share("vegas"));
}

#[test]
fn a_share_is_learnt_at_the_first_loss_and_bounds_the_queue_from_then_on() {
    let papers = "quicdc:threshold=50%,most=none,forget=none";
    let outcome = outcome(&scenario(papers, |text| text.replace("5s", "10s")));
    let threshold = *flow(&outcome).state["threshold_ms"].last().expect("a bin");
    // Half of the 100 ms that the buffer holds.
    assert!((48.0..53.0).contains(&threshold), "{threshold}");
    assert_eq!(outcome.run.dropped_packets, 0);
    assert!(queueing_max_ms(&outcome.run) < 1.1 * threshold + TRANSMISSION_MS);
}

#[test]
fn reordering_and_lost_acks_do_not_pass_for_queues() {
    let rough = |text: String| {
        text.replace(
            "path = [\"server\"]",
            "path = [\"server\", \"reorder:rate=0.01,hold=8ms,overtaken_by=2\"]",
        ) + "reverse = [\"ack-loss:rate=0.2\"]\n"
    };
    let outcome = outcome(&scenario("quicdc:threshold=40ms", rough));
    let worst = queueing_max_ms(&outcome.run) - TRANSMISSION_MS;
    assert!(worst <= 1.1 * 40.0, "{worst}");
    assert!(outcome.run.utilization > 0.97, "{}", outcome.run.utilization);
    assert!(outcome.run.duration_s >= Duration::from_secs(55).as_secs_f64());
}

/// Goodput in Mbit/s, loss in % and mean RTT in ms of tables 1 to 4, in the order of the experiments'
/// schemes.
const PAPER: [[(f64, f64, f64); 8]; 4] = [
    [
        (9.16, 0.02, 55.75),
        (9.17, 0.01, 63.83),
        (9.16, 0.03, 88.60),
        (9.16, 0.02, 123.82),
        (9.18, 0.07, 170.23),
        (9.15, 0.65, 102.33),
        (9.10, 1.03, 190.32),
        (9.20, 0.07, 159.26),
    ],
    [
        (9.06, 0.03, 52.74),
        (9.16, 0.03, 55.98),
        (9.14, 0.14, 68.33),
        (9.16, 0.04, 84.86),
        (9.15, 0.26, 90.53),
        (9.12, 0.66, 87.94),
        (9.16, 0.39, 104.82),
        (9.17, 0.14, 93.78),
    ],
    [
        (7.08, 0.63, 52.51),
        (7.75, 0.53, 52.63),
        (8.51, 0.83, 53.64),
        (8.39, 0.83, 52.44),
        (8.22, 0.64, 53.11),
        (9.12, 0.87, 57.21),
        (9.19, 0.15, 63.06),
        (7.39, 0.37, 52.39),
    ],
    [
        (3.30, 0.44, 52.45),
        (3.58, 1.24, 52.23),
        (3.44, 1.42, 52.11),
        (3.75, 1.77, 52.26),
        (3.68, 1.33, 52.29),
        (6.27, 1.20, 51.41),
        (5.53, 0.24, 51.32),
        (3.34, 0.81, 52.48),
    ],
];

/// The lab's tables as the experiments run them, with the first seed.
fn lab_table() -> String {
    let mut table = String::from(
        "| buffer | scheme | goodput (paper) | loss (paper) | mean RTT (paper) |\n|---|---|---|---|---|\n",
    );
    let buffers = ["4 BDP", "2 BDP", "1 BDP", "0.5 BDP"];
    for (index, (buffer, paper)) in buffers.iter().zip(PAPER).enumerate() {
        let name = format!("q-t{}.toml", index + 1);
        let (file, text) = EMBEDDED.iter().find(|(file, _)| *file == name).expect("an experiment");
        let experiment = experiment::read(file, text).unwrap_or_else(|error| panic!("{error}"));
        let jobs = experiment.jobs.iter().filter(|job| job.scenario.seed == 1);
        for (job, (goodput, loss, rtt)) in jobs.zip(paper) {
            let scheme = &experiment.dimensions[0].labels[job.point[0]];
            let outcome = run(&job.scenario, &Traces::new()).expect("a scenario that runs").run;
            let took_ms = outcome.flows[0].application.as_ref().expect("a transfer")["completion_ms"];
            table += &format!(
                "| {buffer} | {scheme} | {:.2} ({goodput:.2}) | {:.2} ({loss:.2}) | {:.1} ({rtt:.1}) |\n",
                800_000.0 / took_ms,
                outcome.loss_percent,
                outcome.rtt_ms.expect("samples").mean,
            );
        }
    }
    table
}

/// With `BRAKELIGHT_BLESS=1` in the environment the page is rewritten instead.
#[test]
fn the_page_shows_the_lab_as_it_is_measured() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/validation/quicdc.md");
    let page = std::fs::read_to_string(path).expect("a page");
    let (open, close) = ("<!-- lab -->\n", "<!-- end -->");
    let start = page.find(open).expect("the part") + open.len();
    let end = start + page[start..].find(close).expect("its end");
    let table = lab_table();
    if page[start..end] == table {
        return;
    }
    if std::env::var_os("BRAKELIGHT_BLESS").is_some() {
        let page = format!("{}{table}{}", &page[..start], &page[end..]);
        return std::fs::write(path, page).expect("a writable page");
    }
    panic!("the part `lab` is stale. It should read:\n{table}");
}

/// A buffer of 2.4 s never overflows where the delay is bounded, so no loss says what it holds.
#[test]
fn a_buffer_that_never_fills_does_not_lengthen_the_queue() {
    let outcome = outcome(&scenario("quicdc", |text| text.replace("125kB", "3MB")));
    assert_eq!(outcome.run.dropped_packets, 0);
    assert!(queueing_max_ms(&outcome.run) < 1.1 * 60.0 + TRANSMISSION_MS);
    assert!(outcome.run.utilization > 0.98, "{}", outcome.run.utilization);
}

/// The way stands still for 2.5 s: the largest round trip says nothing of the buffer.
#[test]
fn a_gap_does_not_lengthen_the_queue_for_ever() {
    let outcome = outcome(&scenario("quicdc", |text| {
        text.replace("\"5s\"", "\"30s\"").replace(
            "rate = \"10Mbps\"",
            "steps = [[\"10s\", \"10Mbps\"], [\"2500ms\", \"0Mbps\"], [\"60s\", \"10Mbps\"]]",
        )
    }));
    let threshold = *flow(&outcome).state["threshold_ms"].last().expect("a bin");
    assert!(threshold <= 60.0, "{threshold}");
    assert!(queueing_max_ms(&outcome.run) < 1.1 * 60.0 + TRANSMISSION_MS, "{:?}", outcome.run);
}
