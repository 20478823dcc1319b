//! CellReplay's recordings in whole runs: light trains after a pause, heavy opportunities under load. Its own
//! recordings are not at hand, so these tests write files of its form whose numbers are known.

use std::fmt::Write as _;

use brakelight_core::packet::Direction;
use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Limit};
use brakelight_links::elements::Order;
use brakelight_links::trace::Trace;
use brakelight_scenario::outcome::Run;
use brakelight_scenario::scenario::{FlowSpec, Hop, LinkSpec, Record, Scenario, TraceOffset};
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::convert::delays::delays;
use brakelight_scenario::trace::convert::{ConvertOptions, Converted, Format, convert};
use brakelight_scenario::traffic::{RequestResponse, Traffic};
use brakelight_sim::{Simulation, Traces, run};
use brakelight_testkit::part;

/// How long the recording is.
const SECONDS: u64 = 20;
/// Base delays one way, in milliseconds: 25 on average, 21 at least.
const BASE_MS: [u64; 9] = [21, 26, 22, 27, 23, 28, 24, 29, 25];

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Nine opportunities of 1400 bytes a millisecond: 100.8 Mbit/s.
fn heavy_file() -> String {
    (1..=1000 * SECONDS).map(|ms| format!("{ms}\n").repeat(9)).collect()
}

/// A train of 50 packets every 100 ms, two packets a millisecond: 22.4 Mbit/s.
fn light_file() -> String {
    let trains = 10 * SECONDS as usize;
    (0..=trains).fold(String::new(), |mut file, k| {
        let _ = write!(file, "{} {}", 100 * k, BASE_MS[k % BASE_MS.len()]);
        (0..50).for_each(|packet| {
            let _ = write!(file, " {}", packet / 2);
        });
        file + "\n"
    })
}

fn recorded() -> Converted {
    let heavy = heavy_file();
    let mut converted = convert(heavy.as_bytes(), Format::Mahimahi, ConvertOptions::default()).unwrap();
    converted.add_delays(&delays(light_file().as_bytes()).unwrap()).unwrap();
    converted
}

/// The recording as CellReplay replays it.
fn light_and_heavy() -> Trace {
    recorded().recording.trace(None).unwrap()
}

/// The same as Mahimahi replays it: the heavy opportunities, and the least base delay at all times.
fn heavy_alone() -> Trace {
    let mut recording = recorded().recording;
    recording.down.trains = None;
    recording.down.delays = vec![(Duration::ZERO, ms(BASE_MS[0]))];
    recording.up.delays = recording.down.delays.clone();
    recording.trace(None).unwrap()
}

/// One flow of packets of 1400 bytes.
fn scenario(traffic: Traffic, seconds: u64) -> Scenario {
    let scheme = Scheme::parse("cubic").unwrap();
    let duration = Duration::from_secs(seconds);
    let link = LinkSpec::trace("link", "recording", Limit::Packets(1_000), scheme.queue().clone());
    let mut flow = scheme.flow("client", ms(300));
    flow.mss = Bytes(1400) - flow.overhead;
    flow = FlowSpec { path: vec![Hop::Link("link".to_string())], traffic, ..flow };
    Scenario {
        name: "cellreplay".to_string(),
        seed: 1,
        duration,
        measure_from: Duration::ZERO,
        trace_offset: TraceOffset::At(Duration::ZERO),
        links: vec![link],
        flows: vec![flow],
        record: Record::summary(duration),
    }
}

fn ran(scenario: &Scenario, trace: Trace) -> Run {
    scenario.validate().unwrap();
    run(scenario, &Traces::from([("recording".to_string(), trace)])).unwrap().run
}

/// Median time from a request to its whole response of so many packets, in ms; half a second of thought
/// between two, on average.
fn response_ms(packets: u64, trace: Trace) -> f64 {
    let (request, response) = (Bytes(100), Bytes(packets * 1_340));
    let traffic = Traffic::RequestResponse(RequestResponse { request, response, think: ms(500) });
    let run = ran(&scenario(traffic, 120), trace);
    run.flows[0].application.as_ref().unwrap()["response_ms_p50"]
}

#[test]
fn a_short_response_takes_the_light_timing() {
    // A request goes back with a base delay; a response of one packet comes with another: 50 ms on average.
    let one = response_ms(1, light_and_heavy());
    assert!((48.0..=52.5).contains(&one), "{one}");
    // Ten packets of an initial window: the last one leaves with the fifth millisecond of the train.
    let ten = response_ms(10, light_and_heavy()) - one;
    assert!((3.5..=5.0).contains(&ten), "{ten}");
    // Replayed by the heavy opportunities they are there within two.
    let heavy = response_ms(10, heavy_alone()) - response_ms(1, heavy_alone());
    assert!((0.5..=2.0).contains(&heavy), "{heavy}");
}

#[test]
fn the_base_delay_is_the_path_s_and_cannot_be_set() {
    let traces = Traces::from([("recording".to_string(), light_and_heavy())]);
    let mut simulation = Simulation::new(&scenario(Traffic::Backlogged, 5), &traces).unwrap();
    let refused = simulation.set_delay(0, Direction::Forward, ms(50), Order::Kept).unwrap_err().to_string();
    assert!(refused.contains("is replayed as it was recorded and cannot be set"), "{refused}");
}

/// A link that restarts, or has a delay line, has the heavy opportunities alone, and the base delay behind.
#[test]
fn a_link_with_a_delay_of_its_own_has_the_heavy_opportunities() {
    let mut own = scenario(Traffic::RateLimited(brakelight_core::units::Rate::from_mbps(1)), 5);
    own.links[0].delay = ms(30);
    let run = ran(&own, light_and_heavy());
    let delay = run.one_way_delay_ms.unwrap();
    assert!((30.0 + 21.0..=30.0 + 31.0).contains(&delay.p50), "{delay:?}");
}

/// The page's table.
#[test]
fn validation_page() {
    let mut table = String::from(
        "| response, packets | light and heavy, ms | heavy and the least delay, ms | difference % |\n|---|---|---|---|\n",
    );
    for packets in [1, 10, 40, 400, 4_000] {
        let (both, heavy) = (response_ms(packets, light_and_heavy()), response_ms(packets, heavy_alone()));
        let difference = 100.0 * (heavy / both - 1.0);
        let _ = writeln!(table, "| {packets} | {both:.1} | {heavy:.1} | {difference:+.0} |");
    }
    part::check("cellreplay", "responses", &table);
}
