//! Pictures of the pages that say what each system is: short runs of the schemes themselves.

use brakelight_scenario::file::read;
use brakelight_scenario::outcome::Series;
use brakelight_scenario::trace::embedded::Embedded;
use brakelight_testkit::sources::hold_picture;
use plotters::prelude::*;

use super::picture::{Axes, draw, line};
use brakelight_sim::{Traces, run};

/// The series of one flow alone on a link: bins of 100 ms.
fn alone(controller: &str, queue: &str, link: &str, rtt: &str, duration: &str) -> Series {
    let text = format!(
        "duration = \"{duration}\"\nrecord = {{ series = true, bin = \"100ms\" }}\n\
         [[link]]\nname = \"link\"\n{link}\nbuffer = \"250pkt\"\nqueue = \"{queue}\"\n\
         [[flow]]\nname = \"flow\"\ncontroller = \"{controller}\"\npath = [\"link\"]\nrtt = \"{rtt}\"\n"
    );
    let scenario = read("book.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let name = "lte-driving";
    let traces = Traces::from([(name.to_string(), Embedded::find(name).expect("an embedded trace").trace())]);
    run(&scenario, &traces).expect("a run").series.expect("series were asked for")
}

/// Points with a value, by the middle of their bins.
fn there(times: &[f64], values: &[Option<f64>]) -> Vec<(f64, f64)> {
    times.iter().zip(values).filter_map(|(time, value)| Some((time + 0.05, (*value)?))).collect()
}

fn points(times: &[f64], values: &[f64]) -> Vec<(f64, f64)> {
    times.iter().zip(values).map(|(time, value)| (time + 0.05, *value)).collect()
}

const LTE: &str = "trace = \"lte-driving\"";

/// What a link could carry, and what three schemes carry of it.
#[test]
fn abc_follows_the_link() {
    let schemes = [("abc", "abc"), ("cubic", "droptail"), ("cubic", "codel:target=50ms,interval=100ms")];
    let series = schemes.map(|(controller, queue)| alone(controller, queue, LTE, "100ms", "15s"));
    let times = &series[0].links[0].time_s;
    let lines = [
        line("what the link can carry", points(times, &series[0].links[0].capacity_mbps)).with_look(3),
        line("abc", points(times, &series[0].links[0].throughput_mbps)).with_look(0),
        line("cubic over CoDel", points(times, &series[2].links[0].throughput_mbps)),
    ];
    let axes = Axes {
        title: "One flow on the embedded trace lte-driving",
        x: 0.0..15.0,
        x_label: "seconds",
        y: 0.0..20.0,
        y_label: "Mbit/s",
        legend: SeriesLabelPosition::UpperRight,
    };
    hold_picture("abc-throughput.svg", &draw(axes, &lines));
    let delays = |place: usize| there(times, &series[place].links[0].queueing_delay_p95_ms);
    let lines = [line("abc", delays(0)), line("cubic", delays(1)), line("cubic over CoDel", delays(2))];
    let axes = Axes {
        title: "How long its packets wait (p95 of every tenth of a second)",
        x: 0.0..15.0,
        x_label: "seconds",
        y: (1.0..5000.0).log_scale(),
        y_label: "ms",
        legend: SeriesLabelPosition::LowerRight,
    };
    hold_picture("abc-delay.svg", &draw(axes, &lines));
}

/// A link that steps between 12 and 24 Mbit/s: the share of accelerates says what it has.
#[test]
fn the_share_of_accelerates_follows_the_steps() {
    let steps = "steps = [[\"2s\", \"12Mbps\"], [\"2s\", \"24Mbps\"]]";
    let series = alone("abc", "abc", steps, "100ms", "8s");
    let link = &series.links[0];
    let percent = |values: &[Option<f64>]| {
        there(&link.time_s, values).into_iter().map(|(time, share)| (time, 100.0 * share)).collect::<Vec<_>>()
    };
    let lines = [
        line("accelerates among 100 packets", percent(&link.accelerate_fraction)).with_look(1),
        line("capacity, Mbit/s", points(&link.time_s, &link.capacity_mbps)).with_look(3),
        line("throughput, Mbit/s", points(&link.time_s, &link.throughput_mbps)).with_look(0),
    ];
    let axes = Axes {
        title: "A link that steps between 12 and 24 Mbit/s",
        x: 0.0..8.0,
        x_label: "seconds",
        y: 0.0..110.0,
        y_label: "Mbit/s, or packets in 100",
        legend: SeriesLabelPosition::UpperRight,
    };
    hold_picture("abc-marks.svg", &draw(axes, &lines));
}

/// BMCC's sender on a link that steps: the load that it has heard, and its window.
#[test]
fn bmcc_hears_the_load() {
    let steps = "steps = [[\"10s\", \"12Mbps\"], [\"10s\", \"24Mbps\"]]";
    let series = alone("bmcc", "bmcc", steps, "80ms", "40s");
    let flow = &series.flows[0];
    let percent = flow.state["load_factor"].iter().map(|load| 100.0 * load).collect::<Vec<_>>();
    let lines = [
        line("load factor as heard, %", points(&flow.time_s, &percent)),
        line("window, packets", points(&flow.time_s, &flow.cwnd_pkts)),
    ];
    let axes = Axes {
        title: "BMCC on a link that steps between 12 and 24 Mbit/s, 80 ms",
        x: 0.0..40.0,
        x_label: "seconds",
        y: 0.0..260.0,
        y_label: "%, or packets",
        legend: SeriesLabelPosition::UpperLeft,
    };
    hold_picture("bmcc-load.svg", &draw(axes, &lines));
}

/// QUIC-DC's one-way queueing delay against its threshold, which it knows after the first loss.
#[test]
fn quicdc_reacts_at_its_threshold() {
    let series = alone("quicdc:most=none,forget=none", "droptail", "rate = \"24Mbps\"", "50ms", "15s");
    let flow = &series.flows[0];
    let state = |name: &str| flow.state.get(name).cloned().unwrap_or_default();
    let lines = [
        line("one-way queueing delay, ms", points(&flow.time_s, &state("owqd_ms"))),
        line("threshold, ms", points(&flow.time_s, &state("threshold_ms"))),
        line("window, packets", points(&flow.time_s, &flow.cwnd_pkts)),
    ];
    let axes = Axes {
        title: "QUIC-DC on 24 Mbit/s, 50 ms, with a buffer of 250 packets",
        x: 0.0..15.0,
        x_label: "seconds",
        y: 0.0..400.0,
        y_label: "ms, or packets",
        legend: SeriesLabelPosition::UpperRight,
    };
    hold_picture("quicdc-threshold.svg", &draw(axes, &lines));
}
