//! Schemes over the base station of 5G, and the station beside recordings: tables of docs/validation/nr.md.
//! The recordings are in the folder `links` of the one that BRAKELIGHT_SHARED names, `../shared` beside the
//! workspace by default; without them, says what it did not compare.

use std::fmt::Write;

use brakelight_core::packet::PacketId;
use brakelight_core::path::Site;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Limit;
use brakelight_links::elements::{AnyRadio, RadioConfig};
use brakelight_registry::QueueConfig;
use brakelight_scenario::file::read;
use brakelight_scenario::outcome::Run;
use brakelight_scenario::trace::OPPORTUNITY;
use brakelight_scenario::trace::fit::measured::read_link;
use brakelight_sim::{Traces, run};
use brakelight_testkit::part::check;
use brakelight_testkit::{Sample, skip};

/// One flow for 12 s behind a station of 20 MHz, the first two not counted: used %, p95 of the queueing delay
/// in ms, lost %. Means of two seeds.
fn flow(radio: &str, controller: &str, queue: &str) -> [f64; 3] {
    let one = |seed: u64| {
        let text = format!(
            "name = \"nr\"\nduration = \"12s\"\nmeasure_from = \"2s\"\nseed = {seed}\n\
             [[link]]\nname = \"cell\"\nradio = \"{radio}\"\nbuffer = \"1000pkt\"\nqueue = \"{queue}\"\n\
             [[flow]]\nname = \"flow\"\ncontroller = \"{controller}\"\nrtt = \"50ms\"\npath = [\"cell\"]\n"
        );
        let scenario = read("nr.toml", &text).expect("a scenario");
        let Run { utilization, queueing_delay_ms, loss_percent, .. } =
            run(&scenario, &Traces::default()).expect("a run").run;
        [100.0 * utilization, queueing_delay_ms.expect("packets passed").p95, loss_percent]
    };
    let runs = [1, 2].map(one);
    [0, 1, 2].map(|column| runs.iter().map(|run| run[column]).sum::<f64>() / 2.0)
}

const CELL: &str = "nr:blocks=51,snr=15";

#[test]
fn a_queue_does_not_see_what_waits_below_it() {
    let mut table = String::from(
        "| RLC buffer | scheme | used % | queueing delay p95, ms | lost % |\n|---|---|---|---|---|\n",
    );
    let mut p95 = Vec::new();
    for (scheme, controller, queue) in
        [("cubic+codel", "cubic", "codel"), ("abc", "abc", "abc:x=sojourn"), ("cubic", "cubic", "droptail")]
    {
        for depth in ["0pkt", "50pkt", "400pkt"] {
            let [used, delay, lost] = flow(&format!("{CELL},rlc={depth}"), controller, queue);
            writeln!(table, "| {depth} | `{scheme}` | {used:.1} | {delay:.0} | {lost:.2} |").unwrap();
            p95.push(delay);
        }
    }
    // The deeper the buffer below, the longer CoDel's packets wait. ABC's do not: it takes its rate from the
    // station. Drop-tail's wait anyway, and for as much longer as there is more to fill.
    assert!(p95[2] > 2.0 * p95[0], "{table}");
    assert!(p95[3..6].iter().all(|delay| (delay / p95[3] - 1.0).abs() < 0.3), "{table}");
    assert!(p95[8] > p95[6] && p95[8] < 1.5 * p95[6], "{table}");
    check("nr", "buffer", &table);
}

#[test]
fn handovers_and_errors_and_grants_cost_what_they_cost() {
    let mut table = String::from(
        "| station | scheme | used % | queueing delay p95, ms | lost % |\n|---|---|---|---|---|\n",
    );
    let stations = [
        ("as it is", ""),
        ("no combining, two attempts, acknowledged mode", ",combining=1,attempts=2"),
        ("the same, unacknowledged mode", ",combining=1,attempts=2,rlc_mode=um"),
        ("handover every 4 s, 108 ms, forwarding", ",handover=4s,interruption=108ms"),
        ("the same, lost", ",handover=4s,interruption=108ms,forward=false"),
        (
            "the same, lost, RLC buffer of 200 packets",
            ",handover=4s,interruption=108ms,forward=false,rlc=200pkt",
        ),
        ("uplink", ",direction=up"),
    ];
    for (name, options) in stations {
        for (scheme, controller, queue) in [("abc", "abc", "abc"), ("cubic", "cubic", "droptail")] {
            let [used, delay, lost] = flow(&format!("{CELL}{options}"), controller, queue);
            writeln!(table, "| {name} | `{scheme}` | {used:.1} | {delay:.0} | {lost:.2} |").unwrap();
        }
    }
    check("nr", "schemes", &table);
}

/// What bins of 100 ms show of a link: mean and best rate, and how many bins have less than half of the mean
/// of their neighbours.
fn bins(mbps: &[f64]) -> String {
    let mean = mbps.iter().sum::<f64>() / mbps.len() as f64;
    let best = mbps.iter().copied().fold(0.0, f64::max);
    let dips = mbps.windows(3).filter(|three| three[1] < 0.25 * (three[0] + three[2])).count();
    let per_minute = dips as f64 / (mbps.len() as f64 / 600.0);
    format!("{mean:.0} | {best:.0} | {per_minute:.0}")
}

const BIN: Duration = Duration::from_millis(100);

#[test]
fn recordings_show_rates_and_hide_slots_and_handovers() {
    let mut table = String::from(
        "| link | mean, Mbit/s | best 0.1 s | bins below half of their neighbors, a minute |\n|---|---|---|---|\n",
    );
    for sample in ["5g-sa-1", "5g-nsa-1"] {
        let Some(path) = skip::recording(&format!("links/iperf3-text/{sample}.down.txt")) else { return };
        let (folder, file) = (path.parent().unwrap(), format!("{sample}.down.txt"));
        let trace = read_link(folder, &file, None).unwrap().trace(None).unwrap();
        let each = (0..trace.period().as_nanos() / BIN.as_nanos()).map(|bin| {
            let from = Time::ZERO + BIN * bin;
            (trace.count_between(from, from + BIN) * OPPORTUNITY.bits()) as f64 * 1e-6 / BIN.as_secs_f64()
        });
        writeln!(table, "| recorded, `{sample}` | {} |", bins(&each.collect::<Vec<_>>())).unwrap();
    }
    for (name, options) in [
        ("`nr`, default", vec![]),
        ("`nr`, handover of 30 ms every 3 s", vec![("handover", "3s"), ("interruption", "30ms")]),
        ("`nr`, handover of 108 ms every 3 s", vec![("handover", "3s"), ("interruption", "108ms")]),
        ("`nr`, fades of 200 ms", vec![("coherence", "200ms")]),
    ] {
        let config = RadioConfig::new("nr", &options).unwrap();
        let queue = QueueConfig::new("droptail", &[]).unwrap();
        let site = Site { random: Random::stream(1, "nr"), ids: PacketId(1 << 63) };
        let radio: AnyRadio<Sample> = config.build(&queue, Limit::Packets(100), site);
        let each = (0..600).map(|bin| {
            let from = Time::ZERO + BIN * bin;
            radio.capacity_between(from, from + BIN).bits() as f64 * 1e-6 / BIN.as_secs_f64()
        });
        writeln!(table, "| {name} | {} |", bins(&each.collect::<Vec<_>>())).unwrap();
    }
    check("nr", "recorded", &table);
}

/// The example is a scenario that runs, and both of its flows get something.
#[test]
fn the_example_runs() {
    let text = include_str!("../../../docs/examples/nr-uplink.toml");
    let scenario = read("nr-uplink.toml", text).expect("a scenario");
    let run = run(&scenario, &Traces::default()).expect("a run").run;
    assert!(run.flows.iter().all(|flow| flow.throughput_mbps > 0.05), "{run:?}");
}
