//! What every queue discipline must keep, whatever it does.
//!
//! | property | where |
//! |---|---|
//! | packets are conserved by id, and the right one is dropped | `Tester::take`, `check_conserved` |
//! | packets of one flow leave in the order they came, per class of the queue | `Tester::dequeue`, `class` |
//! | the counters are the sums over what is held, within the limits | `Tester::check_conserved` |
//! | marks are reported as the ECN field says, and only legal changes made | `check_mark` |
//! | an explicit header keeps its kind and is made no more generous | `check_header` |
//! | the same operations give the same decisions | [`repeats_itself`] |
//! | what has waited longest arrived when the queue says, if it says | `Tester::check_conserved` |
//! | no panic, and `None` only from a queue that is empty or holds back what it has | everywhere |

use std::collections::BTreeMap;

use brakelight_core::ecn::{Ecn, Encoding, Mark};
use brakelight_core::packet::Header;
use brakelight_core::queue::{Dropped, Drops, Place, Queue as _, Reason};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit};
use brakelight_registry::{AnyQueue, QueueConfig};
use proptest::prelude::*;

use super::{ENCODINGS, label, runner};
use crate::{Outages, Sample};

/// A queue under test, and what may be expected of it.
#[derive(Clone, Debug)]
pub struct Queue {
    /// Its settings.
    pub config: QueueConfig,
    /// How many buffers of the limit's size it has.
    pub buffers: u32,
    /// Whether it keeps packets apart by their ECN field, so that a flow's packets keep their order only
    /// among those of one kind.
    pub classes_by_ecn: bool,
    /// Whether it drops early, marks or writes a header when packets stand in it for seconds.
    pub acts: bool,
}

impl Queue {
    /// Returns a queue of one buffer and one class that acts on standing packets.
    pub fn new(config: QueueConfig) -> Self {
        Queue { config, buffers: 1, classes_by_ecn: false, acts: true }
    }
}

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

/// Whether a router may turn `before` into `after` on a packet of a flow that reads `encoding`. Nothing ever
/// leaves CE, nothing is written into Not-ECT, and a brake never becomes an accelerate.
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

/// What keeps its order: a flow, and where a queue keeps two classes apart by the ECN field, as DualPI2 must,
/// a flow's packets of one class (rfc9331 5.1: CE goes with ECT(1), whatever it was before).
fn class(queue: &Queue, packet: &Sample) -> (u32, bool) {
    (packet.flow, queue.classes_by_ecn && matches!(packet.ecn, Ecn::Ect1 | Ecn::Ce))
}

/// What a queue decided: the packet's id, and its mark and what it wrote into its header, or the reason of
/// its drop.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Decision {
    Delivered(u64, Mark, Option<u32>),
    Dropped(u64, Reason),
}

struct Tester<'a> {
    subject: &'a Queue,
    queue: AnyQueue<Sample>,
    encodings: Vec<Encoding>,
    limit: Limit,
    link: Outages,
    now: Time,
    idle_since: Option<Time>,
    next_id: u64,
    /// Every packet inside, as it entered, and when.
    inside: BTreeMap<u64, (Sample, Time)>,
    last_of_class: BTreeMap<(u32, bool), u64>,
    drops: Drops<Sample>,
    decisions: Vec<Decision>,
    operations: u64,
}

impl<'a> Tester<'a> {
    fn new(subject: &'a Queue, limit: Limit, seed: u64) -> Self {
        let config = &subject.config;
        let random = Random::stream(seed, "queue");
        let place = Place { limit, nominal: Outages::RATE, random };
        Tester {
            subject,
            queue: config.build(&place),
            encodings: ENCODINGS.into_iter().filter(|&encoding| config.speaks(encoding)).collect(),
            limit,
            link: Outages::new(),
            now: Time::ZERO,
            idle_since: Some(Time::ZERO),
            next_id: 0,
            inside: BTreeMap::new(),
            last_of_class: BTreeMap::new(),
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
            None => {
                let held = self.queue.held_until() > self.now;
                assert!(held || self.inside.is_empty(), "nothing came out of a queue that holds something");
            }
            Some(left) => {
                self.link.unused = Bytes::ZERO;
                let (entered, at) = self.take(&left.packet);
                assert_eq!(left.arrived, at, "arrival time of packet {}", left.packet.id);
                check_mark(&entered, &left.packet, left.mark);
                let said = check_header(entered.header, left.packet.header);
                if let Some(last) = self.last_of_class.insert(class(self.subject, &entered), entered.id) {
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
        if let Some(since) = self.queue.waiting_since() {
            assert_eq!(Some(since), self.inside.values().map(|&(_, at)| at).min());
        }
        assert_eq!(backlog.bytes.0, held.values().map(|packet| u64::from(packet.size)).sum::<u64>());
        match self.limit {
            Limit::Packets(most) => assert!(backlog.packets <= self.subject.buffers * most),
            Limit::Bytes(most) => assert!(backlog.bytes.0 <= u64::from(self.subject.buffers) * most.0),
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

/// Applies the operations, then empties the queue.
fn run(queue: &Queue, limit: Limit, seed: u64, operations: &[Operation]) -> Vec<Decision> {
    let mut tester = Tester::new(queue, limit, seed);
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

/// Runs `property` on the queue with `cases` random inputs.
fn hold(queue: &Queue, cases: u32, property: impl Fn(Limit, u64, &[Operation]) -> Result<(), TestCaseError>) {
    let inputs = (operations(), limit(), any::<u64>());
    let outcome = runner(cases).run(&inputs, |(operations, limit, seed)| property(limit, seed, &operations));
    if let Err(error) = outcome {
        panic!("{}: {error}", label(&queue.config));
    }
}

/// Holds the queue to conservation, order, honest marks and its limit.
///
/// # Panics
/// Panics with the shortest sequence of calls found under which it is not so.
pub fn keeps_what_a_queue_must_keep(queue: &Queue) {
    hold(queue, 300, |limit, seed, operations| {
        run(queue, limit, seed, operations);
        Ok(())
    });
}

/// Holds the queue to the same decisions for the same calls.
///
/// # Panics
/// Panics with the shortest sequence of calls found under which it is not so.
pub fn repeats_itself(queue: &Queue) {
    hold(queue, 100, |limit, seed, operations| {
        prop_assert_eq!(run(queue, limit, seed, operations), run(queue, limit, seed, operations));
        Ok(())
    });
}

/// Lets packets stand in the queue for five seconds: every discipline that controls delay must have dropped,
/// marked or said something. Without this the other properties could hold for want of any decision.
///
/// # Panics
/// Panics if the queue did not act and should have, or the other way about.
pub fn acts_on_a_standing_queue(queue: &Queue) {
    let mut tester = Tester::new(queue, Limit::Packets(1000), 1);
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
    let what = if acted { "acts on" } else { "neither drops early nor marks nor says anything in" };
    assert_eq!(acted, queue.acts, "{} {what} a queue that stands for five seconds", label(&queue.config));
}
