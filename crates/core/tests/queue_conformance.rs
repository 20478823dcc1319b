//! What every queue discipline must keep, whatever it does: run over the registry with default options, and over the
//! options that switch other behaviour on. A new line in the registry is tested without a line here.
//!
//! | property | where |
//! |---|---|
//! | packets are conserved by id, and the right one is reported as dropped | `Tester::take`, `check_conserved` |
//! | packets of one flow leave in the order they came, per lane of the queue | `Tester::dequeue`, `lane` |
//! | the counters are the sums over what is held, within the limit of each buffer | `Tester::check_conserved` |
//! | a mark is reported where and only where the ECN field says so, and only legal changes are made | `check_mark` |
//! | an explicit header keeps its kind and is made no more generous | `check_header` |
//! | the same operations give the same decisions | `same_operations_give_the_same_decisions` |
//! | no panic, and `None` only from an empty queue | everywhere |

use std::collections::BTreeMap;

use brakelight_core::ecn::{Ecn, Encoding, Mark};
use brakelight_core::packet::Header;
use brakelight_core::queue::abc_dual::Buffers;
use brakelight_core::queue::{Dropped, Drops, Place, Queue, Reason};
use brakelight_core::random::Random;
use brakelight_core::registry::{AnyQueue, Options, QUEUES, QueueConfig};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit};
use brakelight_testkit::{Outages, Sample};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// Options that switch on what the defaults leave off; each is tested like a queue of its own.
const VARIATIONS: &[(&str, Options<'_>)] = &[
    ("abc", &[("variant", "prototype")]),
    ("abc", &[("integral", "1s"), ("target", "10ms")]),
    ("abc", &[("marking", "hotnets"), ("x", "sojourn"), ("feedback", "enqueue")]),
    ("bmcc", &[("coexist", "true")]),
    ("bmcc", &[("load", "busy-time"), ("interval", "20ms"), ("bits", "3")]),
    ("abc_dual", &[("weights", "zombie"), ("variant", "prototype")]),
    ("abc_dual", &[("weights", "loss"), ("period", "10ms"), ("counters", "2"), ("top", "1")]),
    ("abc_dual", &[("weights", "fixed"), ("buffers", "shared")]),
    ("abc_dual", &[("measure", "departures"), ("demand", "marks")]),
    ("codel", &[("ecn", "true")]),
    ("codel", &[("drop", "behind-head")]),
    ("dualpi2", &[("rules", "linux")]),
    ("dualpi2", &[("scheduler", "time-shift"), ("overload", "overflow")]),
    ("eabc", &[("flows_window", "1ms"), ("floor", "0.01")]),
    ("rcp", &[("period", "1ms"), ("ceiling", "false")]),
    ("xcp", &[("residues", "false")]),
    ("xcpw", &[("residues", "false"), ("gamma", "0")]),
    ("fq_codel", &[("flows", "3"), ("quantum", "300B"), ("ce_threshold", "5ms")]),
    ("fq_codel", &[("ecn", "false"), ("drop_batch", "1"), ("memory_limit", "30kB")]),
    ("pie", &[("ecn", "true"), ("delay", "rate"), ("derandomize", "true"), ("max_burst", "0s")]),
    ("pie", &[("active_above", "0.1"), ("cap", "false"), ("tupdate", "1ms")]),
    ("pie", &[("variant", "mahimahi"), ("target", "20ms"), ("max_burst", "100ms")]),
    ("red", &[("ecn", "true"), ("adaptive", "true"), ("wait", "true"), ("interval", "10ms")]),
    ("red", &[("gentle", "false"), ("wq", "0.2"), ("min_th", "3")]),
    ("vcp", &[("load", "busy-time"), ("interval", "20ms")]),
];

const ENCODINGS: [Encoding; 7] = [
    Encoding::None,
    Encoding::Classic,
    Encoding::Abc,
    Encoding::AbcProxied,
    Encoding::Bmcc,
    Encoding::L4s,
    Encoding::Explicit,
];

#[derive(Clone, Copy, Debug)]
enum Operation {
    Enqueue { flow: u32, size: u32, ecn: u8 },
    Dequeue,
    Wait { micros: u64 },
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        5 => (0..8_u32, 40..1501_u32, 0..4_u8)
            .prop_map(|(flow, size, ecn)| Operation::Enqueue { flow, size, ecn }),
        3 => Just(Operation::Dequeue),
        3 => prop_oneof![0..3_000_u64, 0..3_000_u64, 0..300_000_u64]
            .prop_map(|micros| Operation::Wait { micros }),
    ]
}

/// Bursts, so that queues fill and disciplines get to act: single operations rarely build a backlog.
fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let burst = (operation(), 1..40_usize).prop_map(|(operation, times)| vec![operation; times]);
    prop::collection::vec(burst, 1..40).prop_map(|bursts| bursts.concat())
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (1..60_u32).prop_map(Limit::Packets),
        (0..90_000_u64).prop_map(|bytes| Limit::Bytes(Bytes(bytes))),
        Just(Limit::Packets(1000)),
    ]
}

/// What a sender might write, sense or nonsense: by the packet's number, so that every kind is met.
fn header(id: u64) -> Header {
    const NUMBERS: [f32; 8] = [15e3, 0.1, 0.0, -1.0, 1e30, f32::INFINITY, f32::NAN, 1e-30];
    let number = |skip: u64| NUMBERS[(id / skip % 8) as usize];
    match id % 8 {
        0 => Header::Load { code: (id / 8) as u8 },
        1 => Header::Xcp { cwnd_bytes: number(8), rtt_s: number(64), feedback_bytes: number(512) },
        2 => Header::Rate { bps: number(8), rtt_s: number(64) },
        3 | 4 => Header::Rate { bps: f32::INFINITY, rtt_s: 0.1 },
        _ => Header::Xcp { cwnd_bytes: 15e3, rtt_s: 0.1, feedback_bytes: f32::INFINITY },
    }
}

/// Whether a router may turn `before` into `after` on a packet of a flow that reads `encoding`. Nothing ever leaves
/// CE, nothing is written into Not-ECT, and a brake never becomes an accelerate.
fn legal(encoding: Encoding, before: Ecn, after: Ecn) -> bool {
    use Ecn::{Ce, Ect0, Ect1};
    match (before, after) {
        _ if before == after => true,
        (Ect1, Ect0) => encoding == Encoding::Abc,
        (Ect0, Ect1) => encoding == Encoding::Bmcc,
        (Ect0 | Ect1, Ce) => !matches!(encoding, Encoding::None | Encoding::Explicit),
        _ => false,
    }
}

/// What keeps its order: a flow, and where a queue keeps two lanes apart by the ECN field, as DualPI2 must, a flow's
/// packets of one lane (rfc9331 5.1: CE goes with ECT(1), whatever it was before).
fn lane(queue: &str, packet: &Sample) -> (u32, bool) {
    (packet.flow, queue == "dualpi2" && matches!(packet.ecn, Ecn::Ect1 | Ecn::Ce))
}

/// What a queue decided: the packet's id, and its mark and what it wrote into its header, or the reason of its drop.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Decision {
    Delivered(u64, Mark, Option<u32>),
    Dropped(u64, Reason),
}

struct Tester {
    name: &'static str,
    queue: AnyQueue<Sample>,
    encodings: Vec<Encoding>,
    limit: Limit,
    /// How many buffers of that size it has.
    buffers: u32,
    link: Outages,
    now: Time,
    idle_since: Option<Time>,
    next_id: u64,
    /// Every packet inside, as it entered, and when.
    inside: BTreeMap<u64, (Sample, Time)>,
    last_of_lane: BTreeMap<(u32, bool), u64>,
    drops: Drops<Sample>,
    decisions: Vec<Decision>,
    operations: u64,
}

impl Tester {
    fn new(config: &QueueConfig, limit: Limit, seed: u64) -> Self {
        let random = Random::stream(seed, "queue");
        let place = Place { limit, nominal: Outages::RATE, random };
        Tester {
            name: config.name(),
            queue: config.build(&place),
            encodings: ENCODINGS.into_iter().filter(|&encoding| config.speaks(encoding)).collect(),
            limit,
            buffers: match config {
                QueueConfig::AbcDual(config) if config.dual.buffers == Buffers::Own => 2,
                _ => 1,
            },
            link: Outages::new(),
            now: Time::ZERO,
            idle_since: Some(Time::ZERO),
            next_id: 0,
            inside: BTreeMap::new(),
            last_of_lane: BTreeMap::new(),
            drops: Drops::new(),
            decisions: Vec::new(),
            operations: 0,
        }
    }

    fn apply(&mut self, operation: Operation) {
        self.link.now = self.now;
        match operation {
            Operation::Wait { micros } => self.now += Duration::from_micros(micros),
            Operation::Enqueue { flow, size, ecn } => self.enqueue(flow, size, ecn),
            Operation::Dequeue => self.dequeue(),
        }
        assert_eq!(self.queue.backlog().packets as usize, self.inside.len());
        // Looking at every packet costs more than all else.
        self.operations += 1;
        if self.operations.is_multiple_of(8) || self.inside.len() < 3 {
            self.check_conserved();
        }
    }

    fn enqueue(&mut self, flow: u32, size: u32, ecn: u8) {
        // A flow speaks one encoding; what does not speak ECN sends Not-ECT.
        let encoding = self.encodings[flow as usize % self.encodings.len()];
        let ecn = match encoding {
            Encoding::None | Encoding::Explicit => Ecn::NotEct,
            _ => Ecn::from_bits(ecn),
        };
        let header = if encoding == Encoding::Explicit { header(self.next_id) } else { Header::None };
        let packet = Sample { flow, ecn, encoding, header, ..Sample::new(self.next_id, size) };
        self.next_id += 1;
        if let Some(since) = self.idle_since.take() {
            self.link.unused = Outages::RATE.bytes_in(self.now.since(since));
        }
        self.inside.insert(packet.id, (packet, self.now));
        self.queue.enqueue(self.now, packet, &mut self.link, &mut self.drops);
        self.take_drops();
    }

    fn dequeue(&mut self) {
        let left = self.queue.dequeue(self.now, &mut self.link, &mut self.drops);
        self.take_drops();
        match left {
            None => assert!(self.inside.is_empty(), "nothing came out of a queue that holds something"),
            Some(left) => {
                self.link.unused = Bytes::ZERO;
                let (entered, at) = self.take(&left.packet);
                assert_eq!(left.arrived, at, "arrival time of packet {}", left.packet.id);
                check_mark(&entered, &left.packet, left.mark);
                let said = check_header(entered.header, left.packet.header);
                if let Some(last) = self.last_of_lane.insert(lane(self.name, &entered), entered.id) {
                    assert!(last < entered.id, "flow {} is reordered: {last}, {}", entered.flow, entered.id);
                }
                self.decisions.push(Decision::Delivered(entered.id, left.mark, said));
            }
        }
        if self.inside.is_empty() {
            self.idle_since.get_or_insert(self.now);
        }
    }

    fn take_drops(&mut self) {
        for Dropped { at, packet, reason } in std::mem::take(&mut self.drops) {
            assert_eq!(at, self.now, "time of a drop");
            assert_ne!(reason, Reason::Lost, "a queue loses nothing");
            let (entered, _) = self.take(&packet);
            assert!(legal(entered.encoding, entered.ecn, packet.ecn));
            self.decisions.push(Decision::Dropped(entered.id, reason));
        }
    }

    /// Takes the packet that left, one way or the other, out of those inside.
    fn take(&mut self, left: &Sample) -> (Sample, Time) {
        let (entered, at) = self.inside.remove(&left.id).expect("left twice, or never entered");
        // Headers may hold what is no number, and equals nothing: `check_header` looks at them.
        let plain = |packet: Sample| Sample { ecn: entered.ecn, header: Header::None, ..packet };
        assert_eq!(plain(*left), plain(entered), "a packet was altered");
        (entered, at)
    }

    fn check_conserved(&self) {
        let mut held = BTreeMap::new();
        self.queue.for_each(&mut |packet| {
            assert!(held.insert(packet.id, *packet).is_none(), "packet {} is held twice", packet.id);
        });
        assert!(held.keys().eq(self.inside.keys()), "held: {:?}", held.keys());
        let backlog = self.queue.backlog();
        assert_eq!(backlog.packets as usize, held.len());
        assert_eq!(backlog.bytes.0, held.values().map(|packet| u64::from(packet.size)).sum::<u64>());
        match self.limit {
            Limit::Packets(most) => assert!(backlog.packets <= self.buffers * most),
            Limit::Bytes(most) => assert!(backlog.bytes.0 <= u64::from(self.buffers) * most.0),
        }
    }
}

fn check_mark(entered: &Sample, left: &Sample, mark: Mark) {
    let (encoding, before, after) = (entered.encoding, entered.ecn, left.ecn);
    assert!(legal(encoding, before, after), "{encoding}: {before:?} became {after:?}");
    if mark == Mark::None && (encoding, before, after) != (Encoding::Bmcc, Ecn::Ect0, Ecn::Ect1) {
        // BMCC's 01 is a bound on the load, no mark.
        assert_eq!(before, after, "{encoding}: a change that no mark reports");
    } else if encoding != Encoding::Bmcc {
        assert_eq!(encoding.mark(after), mark, "{encoding}: a mark that the packet does not carry");
    }
}

/// What a router wrote into a header, if it wrote anything.
fn check_header(entered: Header, left: Header) -> Option<u32> {
    // What is no number asks for nothing that could be exceeded.
    let within =
        |after: f32, before: f32| assert!(before.is_nan() || after <= before, "{before} became {after}");
    let changed = |after: f32, before: f32| (after.to_bits() != before.to_bits()).then_some(after.to_bits());
    match (entered, left) {
        (
            Header::Xcp { cwnd_bytes, rtt_s, feedback_bytes: before },
            Header::Xcp { cwnd_bytes: same_cwnd, rtt_s: same_rtt, feedback_bytes: after },
        ) => {
            assert_eq!((cwnd_bytes.to_bits(), rtt_s.to_bits()), (same_cwnd.to_bits(), same_rtt.to_bits()));
            // Whoever knows neither window nor RTT is told to change nothing.
            if cwnd_bytes > 0.0 && rtt_s > 0.0 && cwnd_bytes.is_finite() && rtt_s.is_finite() {
                within(after, before);
            }
            changed(after, before)
        }
        (Header::Rate { bps: before, rtt_s }, Header::Rate { bps: after, rtt_s: same }) => {
            assert_eq!(rtt_s.to_bits(), same.to_bits());
            within(after, before);
            changed(after, before)
        }
        (Header::Load { code: before }, Header::Load { code: after }) => {
            assert!(after >= before, "load {before} became {after}");
            (after != before).then_some(u32::from(after))
        }
        (before, after) => {
            assert_eq!(before, after, "a header became another");
            None
        }
    }
}

fn configs() -> Vec<(String, QueueConfig)> {
    let defaults = QUEUES.iter().map(|entry| (entry.name, &[][..]));
    defaults
        .chain(VARIATIONS.iter().copied())
        .map(|(name, options)| (format!("{name} {options:?}"), QueueConfig::new(name, options).unwrap()))
        .collect()
}

/// Applies the operations, then empties the queue.
fn run(config: &QueueConfig, limit: Limit, seed: u64, operations: &[Operation]) -> Vec<Decision> {
    let mut tester = Tester::new(config, limit, seed);
    for &operation in operations {
        tester.apply(operation);
    }
    while !tester.inside.is_empty() {
        tester.apply(Operation::Wait { micros: 1000 });
        tester.apply(Operation::Dequeue);
    }
    tester.apply(Operation::Dequeue);
    tester.decisions
}

/// Runs `property` on every queue with `cases` random inputs each.
fn for_every_queue(
    cases: u32,
    property: impl Fn(&QueueConfig, Limit, u64, &[Operation]) -> Result<(), TestCaseError>,
) {
    for (name, config) in configs() {
        let mut runner = TestRunner::new(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::with_cases(cases)
        });
        let outcome = runner.run(&(operations(), limit(), any::<u64>()), |(operations, limit, seed)| {
            property(&config, limit, seed, &operations)
        });
        if let Err(error) = outcome {
            panic!("{name}: {error}");
        }
    }
}

#[test]
fn every_queue_keeps_what_a_queue_must_keep() {
    for_every_queue(300, |config, limit, seed, operations| {
        run(config, limit, seed, operations);
        Ok(())
    });
}

#[test]
fn same_operations_give_the_same_decisions() {
    for_every_queue(100, |config, limit, seed, operations| {
        prop_assert_eq!(run(config, limit, seed, operations), run(config, limit, seed, operations));
        Ok(())
    });
}

/// A queue that stands for five seconds: every discipline that controls delay must have dropped, marked or said something.
/// Without this the properties above could hold for want of any decision.
#[test]
fn every_queue_that_controls_delay_acts_on_a_standing_queue() {
    for (name, config) in configs() {
        let mut tester = Tester::new(&config, Limit::Packets(1000), 1);
        for round in 0..5000 {
            for flow in 0..if round < 100 { 3 } else { 1 } {
                tester.apply(Operation::Enqueue { flow: flow + round % 7, size: 1500, ecn: 1 });
            }
            tester.apply(Operation::Dequeue);
            tester.apply(Operation::Wait { micros: 1000 });
        }
        let acted = tester.decisions.iter().any(|decision| match decision {
            Decision::Delivered(_, mark, said) => *mark != Mark::None || said.is_some(),
            Decision::Dropped(_, reason) => *reason == Reason::Early,
        });
        let expected = config.name() != "droptail";
        let what = if acted { "acts on" } else { "neither drops early nor marks nor says anything in" };
        assert_eq!(acted, expected, "{name} {what} a queue that stands for five seconds");
    }
}

#[test]
fn every_entry_says_what_it_is_and_where_its_numbers_come_from() {
    for entry in QUEUES {
        assert!(!entry.summary.is_empty());
        for parameter in (entry.parameters)() {
            assert!(!parameter.meaning.is_empty(), "{}: {}", entry.name, parameter.name);
            assert!(!parameter.source.is_empty(), "{}: {}", entry.name, parameter.name);
        }
    }
}
