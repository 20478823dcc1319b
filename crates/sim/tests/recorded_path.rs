//! Recordings with delay and loss, replayed in whole runs.

use std::path::PathBuf;

use brakelight_core::packet::Direction;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Limit, Rate};
use brakelight_links::elements::Order;
use brakelight_links::replay::CERTAIN;
use brakelight_scenario::outcome::Outcome;
use brakelight_scenario::scenario::{FlowSpec, Hop, LinkSpec, Record, Scenario, TraceOffset};
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::scheme_string::SchemeString;
use brakelight_scenario::trace::convert::delays::delay_file;
use brakelight_scenario::trace::convert::{ConvertOptions, convert_file};
use brakelight_scenario::trace::embedded::Embedded;
use brakelight_scenario::trace::recording::{RecordedCapacity, RecordedDirection, Recording};
use brakelight_sim::{Simulation, Traces, run};
use brakelight_testkit::skip;

fn within(what: &str, range: std::ops::RangeInclusive<f64>, found: f64) {
    assert!(range.contains(&found), "{what}: {found}, expected {range:?}");
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A flow whose controller sends 1,500 bytes every millisecond whatever happens, over the recording.
fn every_millisecond(recording: &Recording, seconds: u64, change: impl Fn(&mut Scenario)) -> Outcome {
    let scheme = Scheme::parse("external:cwnd=10000pkt,pacing_rate=12Mbps").unwrap();
    let duration = Duration::from_secs(seconds);
    let link = LinkSpec::trace("link", "recording", Limit::Packets(10_000), scheme.queue().clone());
    let flow = FlowSpec { path: vec![Hop::Link("link".to_string())], ..scheme.flow("probe", ms(300)) };
    let mut scenario = Scenario {
        name: "recorded".to_string(),
        seed: 1,
        duration,
        measure_from: Duration::ZERO,
        trace_offset: TraceOffset::At(Duration::ZERO),
        links: vec![link],
        flows: vec![flow],
        record: Record::summary(duration),
    };
    change(&mut scenario);
    scenario.validate().unwrap();
    let traces = Traces::from([("recording".to_string(), recording.trace(None).unwrap())]);
    run(&scenario, &traces).unwrap()
}

/// 1 Gbit/s for five seconds.
fn gigabit() -> Recording {
    let mut recording = Recording::new(Duration::from_secs(5));
    let rates = vec![(Duration::ZERO, Rate::from_mbps(1_000))];
    recording.down.capacity = Some(RecordedCapacity::Rates(rates));
    recording
}

#[test]
fn recorded_delay_takes_the_place_of_half_the_round_trip_in_its_direction() {
    let mut recording = gigabit();
    recording.down.delays = vec![(ms(0), ms(20)), (ms(2_500), ms(40))];
    let ahead = every_millisecond(&recording, 5, |_| {}).run;
    let delay = ahead.one_way_delay_ms.unwrap();
    within("delay ahead, mean of its halves", 29.5..=30.5, delay.mean);
    within("delay ahead, p95", 40.0..=40.2, delay.p95);
    // Half of the 300 ms that nobody recorded.
    within("mean round trip", 179.0..=182.0, ahead.rtt_ms.unwrap().mean);
    recording.up.delays = vec![(ms(0), ms(30))];
    let both = every_millisecond(&recording, 5, |_| {}).run;
    within("mean round trip, both recorded", 59.0..=62.0, both.rtt_ms.unwrap().mean);
}

#[test]
fn a_links_own_delay_takes_the_place_of_half_the_round_trip_and_of_its_buffer() {
    let run = every_millisecond(&gigabit(), 5, |scenario| {
        let queue = scenario.links[0].queue.clone();
        let link = LinkSpec::fixed("link", Rate::from_mbps(12), Limit::Packets(24), queue);
        // At 12 Mbit/s the delay line holds 20 of the 24 packets, and the sender's rate is the link's.
        scenario.links[0] = LinkSpec { delay: ms(20), ..link };
    })
    .run;
    // 20 ms in the delay line, a packet's time on the link, 150 ms back.
    within("mean round trip", 170.0..=175.0, run.rtt_ms.unwrap().mean);
    let deep = every_millisecond(&gigabit(), 5, |scenario| {
        let queue = scenario.links[0].queue.clone();
        let link = LinkSpec::fixed("link", Rate::from_mbps(6), Limit::Packets(24), queue);
        scenario.links[0] = LinkSpec { delay: ms(20), ..link };
    })
    .run;
    // At half the rate what gets in fills the buffer: the delay line has 10 of it, the queue 14.
    within("delay of a full buffer", 44.0..=50.0, deep.one_way_delay_ms.unwrap().p50);
}

#[test]
fn what_was_recorded_back_is_replayed_once() {
    let mut recording = gigabit();
    recording.up = RecordedDirection { delays: vec![(ms(0), ms(30))], ..RecordedDirection::default() };
    recording.down.delays = vec![(ms(0), ms(20))];
    // A link on the way back with a recording of its own: its delay ahead is 20 ms.
    let run = every_millisecond(&recording, 2, |scenario| {
        let back = LinkSpec { name: "back".to_string(), ..scenario.links[0].clone() };
        scenario.links.push(back);
        scenario.flows[0].reverse = vec![Hop::Link("back".to_string())];
    });
    within("median round trip", 40.0..=42.0, run.run.rtt_ms.unwrap().p50);
}

#[test]
fn packets_are_lost_as_often_as_was_recorded_and_none_is_out_of_order() {
    let mut recording = gigabit();
    recording.down.losses = vec![(ms(0), CERTAIN / 10), (ms(2_500), 0)];
    let run = every_millisecond(&recording, 5, |_| {}).run;
    within("loss, percent", 4.0..=6.0, run.loss_percent);
    recording.down.losses.clear();
    // Falls by 380 ms at once, so that packets that kept their delay would overtake as many others: more than
    // RACK's reordering window.
    recording.down.delays = vec![(ms(0), ms(400)), (ms(2_500), ms(20))];
    let in_order = every_millisecond(&recording, 5, |_| {}).run;
    assert_eq!(in_order.retransmitted_packets, 0);
    recording.reorders = true;
    let out_of_order = every_millisecond(&recording, 5, |_| {}).run;
    assert!(out_of_order.retransmitted_packets > 0, "{out_of_order:?}");
}

/// What was recorded is not the flow's to set; what the flow's own `delay` element adds is.
#[test]
fn a_delay_that_was_recorded_cannot_be_set_and_one_beside_it_adds_to_it() {
    let mut recording = gigabit();
    recording.down.delays = vec![(ms(0), ms(20))];
    let scheme = Scheme::parse("external:cwnd=2pkt").unwrap();
    let link = LinkSpec::trace("link", "recording", Limit::Packets(100), scheme.queue().clone());
    let mut flow = FlowSpec { path: vec![Hop::Link("link".to_string())], ..scheme.flow("probe", ms(100)) };
    let traces = Traces::from([("recording".to_string(), recording.trace(None).unwrap())]);
    let simulation = |flow: &FlowSpec| {
        let scenario = Scenario {
            name: "recorded".to_string(),
            seed: 1,
            duration: Duration::from_secs(5),
            measure_from: Duration::ZERO,
            trace_offset: TraceOffset::At(Duration::ZERO),
            links: vec![link.clone()],
            flows: vec![flow.clone()],
            record: Record::summary(Duration::from_secs(5)),
        };
        Simulation::new(&scenario, &traces).unwrap()
    };
    let mut bare = simulation(&flow);
    let refused = bare.set_delay(0, Direction::Forward, ms(50), Order::Kept).unwrap_err().to_string();
    assert!(refused.contains("is replayed as it was recorded and cannot be set"), "{refused}");
    flow.path.push(Hop::Element(SchemeString::new("delay", &[("delay", "5ms")]).unwrap()));
    let mut beside = simulation(&flow);
    beside.advance(Time::from_secs(1));
    beside.set_delay(0, Direction::Forward, ms(50), Order::Kept).unwrap();
    beside.advance(Time::from_secs(3));
    let rtt = beside.flow(0).unwrap().sender.rtt.unwrap().sample.unwrap().as_millis_f64();
    // 20 ms recorded, 50 ms set, 50 ms back.
    within("round trip", 120.0..=122.0, rtt);
}

fn sample(name: &str) -> Option<PathBuf> {
    skip::recording(&format!("links/{name}"))
}

/// The recording has a number for every 10 ms; 1 packet per ms takes the delay that it says. The link's own
/// queueing is left out: LeoReplayer's delay was measured beside it, by packets of a queue of their own.
#[test]
fn starlink_replayed_has_the_delay_that_was_recorded() {
    let (Some(capacity), Some(delay)) =
        (sample("leoreplayer/starlink.bw"), sample("leoreplayer/starlink.delay"))
    else {
        return;
    };
    let mut converted = convert_file(&capacity, None, ConvertOptions::default()).unwrap();
    converted.add_delays(&delay_file(&delay).unwrap()).unwrap();
    let mut recording = converted.recording;
    let text = std::fs::read_to_string(&delay).unwrap();
    let mut values: Vec<f64> = text.lines().map(|line| line.trim().parse().unwrap()).collect();
    values.sort_unstable_by(f64::total_cmp);
    let recorded = |share: f64| values[(share * values.len() as f64) as usize];
    let whole = every_millisecond(&recording, 120, |_| {}).run;
    let through = whole.one_way_delay_ms.unwrap();
    within("p50 through the link as well, ms above the recorded", 0.0..=3.0, through.p50 - recorded(0.5));
    let rates = vec![(Duration::ZERO, Rate::from_mbps(1_000))];
    recording.down.capacity = Some(RecordedCapacity::Rates(rates));
    let path = every_millisecond(&recording, 120, |_| {}).run.one_way_delay_ms.unwrap();
    within("p50 of the delay, ms from the recorded", -1.0..=1.0, path.p50 - recorded(0.5));
    within("p95 of the delay, ms from the recorded", -1.0..=1.0, path.p95 - recorded(0.95));
}

/// The recipe `starlink` as a link: every 15 s what is under way is lost, and the delay is the recipe's.
#[test]
fn the_recipe_of_starlink_delays_and_loses_in_a_run() {
    let recipe = Embedded::find("starlink").unwrap().recipe();
    let run = |recording: &Recording| every_millisecond(recording, 120, |_| {}).run;
    let mut recording = recipe.record().unwrap();
    let lossy = run(&recording);
    // Eight changes in 120 s, and half of the 11 ms before each.
    within("lost, %", 0.02..=0.055, lossy.loss_percent);
    within("one-way delay, p50", 10.0..=16.0, lossy.one_way_delay_ms.unwrap().p50);
    recording.down.losses.clear();
    recording.up.losses.clear();
    within("lost without, %", 0.0..=0.0, run(&recording).loss_percent);
}
