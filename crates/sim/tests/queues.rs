//! The signature behaviour of the queue disciplines under real senders, over a link whose rate is known, and
//! the numbers on their pages.

use brakelight_core::time::Duration;
use brakelight_core::units::{Limit, Rate};
use brakelight_scenario::outcome::{Run, Summary};
use brakelight_scenario::scenario::{FlowSpec, Hop, LinkSpec, Record, Scenario, Service, Steps, TraceOffset};
use brakelight_scenario::scheme_string::{SchemeString, Words};
use brakelight_scenario::traffic::Traffic;
use brakelight_sim::{Traces, run};
use brakelight_testkit::part::check;

const LINK: &str = "bottleneck";
const RTT: Duration = Duration::from_millis(100);

/// Flows over one bottleneck with a buffer of 1000 packets, 60 s of which the first 10 are not measured.
struct Bottleneck {
    queue: &'static str,
    service: Service,
    flows: Vec<FlowSpec>,
}

fn flow(controller: &str, count: u32) -> FlowSpec {
    let words = Words::parse(controller).expect("a spelling");
    let controller = SchemeString::from_words(words).expect("a valid controller");
    let path = vec![Hop::Link(LINK.to_string())];
    FlowSpec { count, ..FlowSpec::new("flow", controller, RTT, path) }
}

fn fixed(queue: &'static str, mbps: u64, controller: &str, count: u32) -> Bottleneck {
    Bottleneck { queue, service: Service::Fixed(Rate::from_mbps(mbps)), flows: vec![flow(controller, count)] }
}

impl Bottleneck {
    fn run(self) -> Run {
        run(&self.scenario(), &Traces::new()).expect("a run").run
    }

    fn scenario(self) -> Scenario {
        let words = Words::parse(self.queue).expect("a spelling");
        let queue = SchemeString::from_words(words).expect("a valid queue");
        let link = LinkSpec {
            service: self.service,
            ..LinkSpec::fixed(LINK, Rate::from_mbps(1), Limit::Packets(1000), queue)
        };
        let duration = Duration::from_secs(60);
        Scenario {
            name: self.queue.to_string(),
            seed: 1,
            duration,
            measure_from: Duration::from_secs(10),
            trace_offset: TraceOffset::At(Duration::ZERO),
            links: vec![link],
            flows: self.flows,
            record: Record::summary(duration),
        }
    }
}

fn delay(run: &Run) -> Summary {
    run.queueing_delay_ms.expect("packets")
}

/// The same table on every page: what the discipline does to Cubic, with each of the spellings.
fn measured(queues: &[&'static str]) -> String {
    let mut table = String::from(
        "| queue | link and flows | used % | queueing delay mean / p50 / p95 ms | dropped % | marked % | Jain |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for queue in queues {
        let cubic = if queue.contains("ecn=true") { "cubic:ecn=true" } else { "cubic" };
        let steps =
            (0..6).map(|i| (Duration::from_secs(10), Rate::from_mbps(if i % 2 == 0 { 6 } else { 24 })));
        let varying = Bottleneck {
            queue,
            service: Service::Steps(Steps { steps: steps.collect(), repeat: true }),
            flows: vec![flow(cubic, 1)],
        };
        for (what, bottleneck) in [
            ("12 Mbit/s, one", fixed(queue, 12, cubic, 1)),
            ("12 Mbit/s, ten", fixed(queue, 12, cubic, 10)),
            ("48 Mbit/s, ten", fixed(queue, 48, cubic, 10)),
            ("48 Mbit/s, fifty", fixed(queue, 48, cubic, 50)),
            ("6 and 24 Mbit/s in turn, 10 s each, one", varying),
        ] {
            let run = bottleneck.run();
            let link = &run.links[0];
            let delay = delay(&run);
            let passed = (run.delivered_packets + link.dropped_packets) as f64;
            table += &format!(
                "| `{queue}` | {what} | {:.1} | {:.1} / {:.1} / {:.1} | {:.2} | {:.2} | {} |\n",
                100.0 * link.utilization,
                delay.mean,
                delay.p50,
                delay.p95,
                100.0 * link.dropped_packets as f64 / passed,
                100.0 * link.marks.ce as f64 / passed,
                run.jain.map_or_else(|| "-".to_string(), |jain| format!("{jain:.3}")),
            );
        }
    }
    table
}

/// However many flows and however fast the link, the delay settles at the target: that is what gains that
/// grow with the probability are for.
#[test]
fn pie_settles_at_its_target() {
    for (mbps, flows) in [(12, 5), (12, 20), (48, 10), (48, 50)] {
        for (queue, target_ms) in [("pie", 15.0), ("pie:delay=rate", 15.0), ("pie:target=50ms", 50.0)] {
            let run = fixed(queue, mbps, "cubic", flows).run();
            let mean = delay(&run).mean;
            assert!((mean / target_ms - 1.0).abs() < 0.25, "{queue}, {flows} flows, {mbps}: {mean} ms");
            assert!(run.links[0].utilization > 0.95, "{queue}, {flows} flows: {}", run.links[0].utilization);
        }
    }
}

/// A classic-ECN flow is held by marks: it loses nothing once it has left slow start, and the delay is what
/// drops give.
#[test]
fn classic_ecn_flows_are_marked_instead_of_dropped_by() {
    for queue in ["codel:ecn=true", "fq_codel:ecn=true", "pie:ecn=true", "red:ecn=true,target=50ms"] {
        for (mbps, flows) in [(12, 1), (48, 10)] {
            let marked = fixed(queue, mbps, "cubic:ecn=true", flows).run();
            assert_eq!(marked.links[0].dropped_packets, 0, "{queue}, {flows} flows");
            assert_eq!(marked.retransmitted_packets, 0, "{queue}, {flows} flows");
            assert!(marked.links[0].marks.ce > 10, "{queue}, {flows} flows: {:?}", marked.links[0].marks);
            // Every mark arrives, but for those that were on their way when measuring began or ended.
            let (told, made) = (marked.marks.ce, marked.links[0].marks.ce);
            assert!(told.abs_diff(made) <= 2, "{queue}: {made} marks, {told} arrived");
            // A flow that does not speak ECN has its packets dropped by the same queue.
            let dropped = fixed(queue, mbps, "cubic", flows).run();
            assert!(dropped.links[0].dropped_packets > 4 && dropped.links[0].marks.ce == 0, "{queue}");
            let (with, without) = (delay(&marked).mean, delay(&dropped).mean);
            assert!((0.5..2.0).contains(&(with / without)), "{queue}: {with} and {without} ms");
            // RED's slow average goes on marking a single flow after it has backed off.
            assert!(
                flows == 1 || marked.utilization > 0.85,
                "{queue}, {flows} flows: {}",
                marked.utilization
            );
        }
    }
}

/// The average length lies between the thresholds; Adaptive RED brings it half way between them, however many
/// flows there are, where RED's depends on them.
#[test]
fn red_holds_the_average_queue_between_its_thresholds() {
    let packets = |run: &Run| delay(run).mean * 1e-3 * run.links[0].throughput_mbps * 1e6 / 12_000.0;
    let mut averages = Vec::new();
    for flows in [60, 120, 200] {
        for queue in ["red:min_th=50,max_th=150", "red:min_th=50,max_th=150,adaptive=true"] {
            let run = fixed(queue, 48, "newreno", flows).run();
            let average = packets(&run);
            assert!((50.0..150.0).contains(&average), "{queue}, {flows} flows: {average} packets");
            averages.push(average);
        }
    }
    let spread =
        |of: [f64; 3]| of.iter().fold(0.0_f64, |a, b| a.max(*b)) - of.iter().fold(1e9_f64, |a, b| a.min(*b));
    let plain = spread([averages[0], averages[2], averages[4]]);
    let adaptive = [averages[1], averages[3], averages[5]];
    assert!(spread(adaptive) < plain, "{averages:?}");
    // The middle fifth is 90 to 110.
    for average in adaptive {
        assert!((80.0..120.0).contains(&average), "{averages:?}");
    }
}

#[test]
fn page_of_red() {
    let queues = ["red", "red:target=50ms", "red:target=50ms,ecn=true", "red:target=50ms,adaptive=true"];
    check("red", "measured", &measured(&queues));
}

/// A flow that sends little does not see the queues of those that fill the link.
#[test]
fn fq_codel_isolates_a_sparse_flow() {
    let sparse_rtt_ms = |queue| {
        let mut sparse = FlowSpec { name: "sparse".to_string(), ack_every: 1, ..flow("cubic", 1) };
        sparse.traffic = Traffic::RateLimited(Rate::from_bps(60_000));
        let service = Service::Fixed(Rate::from_mbps(12));
        let run = Bottleneck { queue, service, flows: vec![flow("cubic", 5), sparse] }.run();
        let sparse = run.flows.iter().find(|flow| flow.name == "sparse").expect("the sparse flow");
        assert!(queue != "fq_codel" || sparse.loss_percent == 0.0, "{queue}: {} %", sparse.loss_percent);
        sparse.rtt_ms.expect("round trips").p95
    };
    // 100 ms, its own transmission, at most one packet of another before it, and the hosts' jitter.
    let alone = sparse_rtt_ms("fq_codel");
    assert!(alone < 104.0, "{alone} ms");
    for (queue, more_ms) in [("codel", 5.0), ("codel:target=50ms", 30.0)] {
        let shared = sparse_rtt_ms(queue);
        assert!(shared > alone + more_ms, "{queue}: {shared} ms, FQ-CoDel: {alone} ms");
    }
}

/// Flows get equal shares, however far apart their round trips lie.
#[test]
fn fq_codel_shares_the_link_whatever_the_round_trip() {
    let jain = |queue| {
        let near = FlowSpec { rtt: Duration::from_millis(20), ..flow("cubic", 1) };
        let far = FlowSpec { name: "far".to_string(), rtt: Duration::from_millis(200), ..flow("cubic", 1) };
        let service = Service::Fixed(Rate::from_mbps(24));
        Bottleneck { queue, service, flows: vec![near, far] }.run().jain.expect("two flows")
    };
    // rfc8289 4.2: an interval of a worst-case round trip.
    let (fair, unfair) =
        (jain("fq_codel:target=20ms,interval=200ms"), jain("codel:target=20ms,interval=200ms"));
    assert!(fair > 0.99 && unfair < 0.9, "FQ-CoDel {fair}, CoDel {unfair}");
}

/// A host has its half of the link, however many flows the other one has.
#[test]
fn cake_gives_a_host_of_one_flow_as_much_as_one_of_twenty() {
    let share_of_one = |queue| {
        let alone = FlowSpec { rtt: Duration::from_millis(20), ..flow("cubic", 1) };
        let many = FlowSpec { name: "many".to_string(), count: 20, ..alone.clone() };
        let service = Service::Fixed(Rate::from_mbps(40));
        let run = Bottleneck { queue, service, flows: vec![alone, many] }.run();
        run.flows[0].throughput_mbps / run.links[0].throughput_mbps
    };
    let fair = share_of_one("cake:isolation=dual-dsthost,dsthosts=1/20");
    assert!((fair - 0.5).abs() < 0.025, "{fair}");
    let triple = share_of_one("cake:srchosts=1/20");
    assert!((triple - 0.5).abs() < 0.025, "{triple}");
    let by_flows = share_of_one("cake:isolation=flows,srchosts=1/20");
    assert!(by_flows < 0.1, "{by_flows}");
}

/// Where ACKs fill the way back, dropping those that newer ones cover lets the download go on.
#[test]
fn cake_filters_acks_on_a_slow_way_back() {
    let download = |filter: &str| {
        let mut scenario = fixed("cake:bandwidth=48Mbps", 50, "cubic", 1).scenario();
        let queue = format!("cake:bandwidth=500kbps,ack_filter={filter}");
        let queue = SchemeString::from_words(Words::parse(&queue).expect("a spelling")).expect("a queue");
        scenario.links.push(LinkSpec::fixed("up", Rate::from_mbps(1), Limit::Packets(1000), queue));
        scenario.flows[0].rtt = Duration::from_millis(40);
        scenario.flows[0].reverse = vec![Hop::Link("up".to_string())];
        let run = run(&scenario, &Traces::new()).expect("a run").run;
        (run.flows[0].throughput_mbps, run.links[1].queueing_delay_ms.expect("delays").p95)
    };
    let (off, waits) = download("off");
    assert!(off < 40.0 && waits > 100.0, "{off} Mbit/s, {waits} ms");
    for filter in ["on", "aggressive"] {
        let (filtered, waits) = download(filter);
        assert!(filtered > 45.0 && waits < 10.0, "{filter}: {filtered} Mbit/s, {waits} ms");
    }
}

#[test]
fn page_of_cake() {
    check("cake", "measured", &measured(&["cake", "cake:isolation=flows,diffserv=besteffort"]));
}

/// ABC's windows are equal whatever the round trip: all senders hear the same share of accelerates.
#[test]
fn abc_that_tunes_itself_gives_flows_of_unequal_round_trips_like_windows() {
    let mut logarithms = 0.0;
    let pairs = [(20, 120), (30, 120), (20, 60)];
    for (short, long) in pairs {
        let flows = [short, long].map(|ms| FlowSpec {
            name: format!("{ms}ms"),
            rtt: Duration::from_millis(ms),
            ..flow("abc", 1)
        });
        let service = Service::Fixed(Rate::from_mbps(24));
        let run = Bottleneck { queue: "abc:variant=adaptive", service, flows: flows.into() }.run();
        let packets = |flow: usize, ms: u64| run.flows[flow].throughput_mbps * ms as f64;
        logarithms += (packets(0, short) / packets(1, long)).ln();
    }
    let ratio = (logarithms / pairs.len() as f64).exp();
    assert!((0.5..2.0).contains(&ratio), "the window of the shorter round trip is {ratio:.2} of the other's");
}

/// A loop of 40 ms must not get orders for a longer one while its delay is not known yet: the buffer holds 15
/// ms. With tau of 100 ms in the first 400 ms it lost 167 packets.
#[test]
fn a_start_in_a_shallow_buffer_loses_few_packets_behind_abc_that_tunes_itself() {
    let one = FlowSpec { rtt: Duration::from_millis(40), ..flow("abc", 1) };
    let service = Service::Fixed(Rate::from_mbps(200));
    let mut scenario = Bottleneck { queue: "abc:variant=adaptive", service, flows: vec![one] }.scenario();
    scenario.links[0].buffer = Limit::Packets(250);
    scenario.duration = Duration::from_secs(20);
    scenario.measure_from = Duration::ZERO;
    let lost = run(&scenario, &Traces::new()).expect("a run").run.links[0].dropped_packets;
    assert!(lost <= 40, "{lost} packets");
}

/// Flows at the floor of their windows hear an accelerate now and then, so none takes the marks for spoiled
/// and leaves itself to its second window, which would fill the buffer.
#[test]
fn many_flows_that_start_at_once_share_the_link_of_abc_that_tunes_itself() {
    for (mbps, rtt_ms, flows) in [(12, 40, 32), (24, 20, 32), (6, 40, 16), (24, 40, 64), (6, 40, 32)] {
        let rtt = Duration::from_millis(rtt_ms);
        // Four bandwidth-delay products.
        let buffer = (4 * mbps * rtt_ms / 12) as u32;
        for seed in 1..=3 {
            let many = FlowSpec { rtt, start_within: rtt, ..flow("abc", flows) };
            let service = Service::Fixed(Rate::from_mbps(mbps));
            let mut scenario =
                Bottleneck { queue: "abc:variant=adaptive", service, flows: vec![many] }.scenario();
            scenario.links[0].buffer = Limit::Packets(buffer);
            scenario.duration = Duration::from_secs(40);
            scenario.seed = seed;
            let run = run(&scenario, &Traces::new()).expect("a run").run;
            let jain = run.jain.expect("flows");
            assert!(jain > 0.9, "{flows} flows, {mbps} Mbit/s, {rtt_ms} ms, seed {seed}: {jain}");
        }
    }
}

#[test]
fn page_of_fq_codel() {
    check("fq-codel", "measured", &measured(&["fq_codel", "fq_codel:target=50ms"]));
}

#[test]
fn page_of_pie() {
    check(
        "pie",
        "measured",
        &measured(&["pie", "pie:delay=rate", "pie:ecn=true", "pie:variant=mahimahi,max_burst=100ms"]),
    );
}

/// `abc/dual.rs`, D10: of a share of less than a packet in 20 ms ABC's flow once used so little that it lost
/// the share: 0.33 Mbit/s for 0.72 of each other flow. The paper asks for equal ones.
#[test]
fn a_flow_of_abc_keeps_its_share_beside_twelve_of_cubic() {
    let named = |name: &str, flow: FlowSpec| FlowSpec { name: name.to_string(), ..flow };
    let flows = vec![named("abc", flow("abc", 1)), named("cubic", flow("cubic", 12))];
    let mut scenario =
        Bottleneck { queue: "abc_dual", service: Service::Fixed(Rate::from_mbps(9)), flows }.scenario();
    scenario.links[0].buffer = Limit::Packets(250);
    let run = run(&scenario, &Traces::new()).expect("a run").run;
    let [abc, cubic @ ..] = run.flows.as_slice() else { panic!("no flows") };
    let mean = cubic.iter().map(|flow| flow.throughput_mbps).sum::<f64>() / cubic.len() as f64;
    let ratio = abc.throughput_mbps / mean;
    assert!((0.8..1.25).contains(&ratio), "{} Mbit/s, and {mean} of each other flow", abc.throughput_mbps);
}
