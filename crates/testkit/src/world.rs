//! A closed loop for testing controllers: flows over one link with a FIFO buffer, each with its own
//! propagation delay.
//!
//! It is deliberately plainer than a simulated host: bulk data, packets lost after three later ones arrived
//! and sent again, a retransmission timeout, ACKs as the flow's feedback wants them and never lost. What a
//! controller does over a path whose rate and delay are known exactly can be checked against arithmetic here.
//!
//! The flows stand on [`brakelight_core::sender`], as every host does, and run their controllers inside
//! [`Checked::strict`](brakelight_core::sender::Checked::strict): a flow that breaks the contract between
//! host and controller panics.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use brakelight_core::controller::{Connection, Controller, ReceiveTime, SendDirective};
use brakelight_core::ecn::{Ecn, Mark};
use brakelight_core::feedback::{AckAction, Arrival, Echo, Feedback, Receiver};
use brakelight_core::packet::Header;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::{AnyController, AnyFeedback, ControllerConfig, FeedbackConfig};

use crate::sender::Sender;

/// Payload of every packet.
pub const MSS: Bytes = Bytes(1448);
/// Headers on the wire.
pub const OVERHEAD: Bytes = Bytes(52);
/// How long a receiver holds back an ACK.
const DELAYED_ACK: Duration = Duration::from_millis(40);

/// The bottleneck.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its rate from each time on; the first entry holds from the start.
    pub rates: Vec<(Time, Rate)>,
    /// Packets it can hold, the one being sent included.
    pub buffer: usize,
    /// Sojourn time from which ECN-capable packets are marked.
    pub mark_above: Option<Duration>,
    /// A token bucket that drops what exceeds its rate and its depth, before the queue.
    pub policer: Option<(Rate, Bytes)>,
}

impl Link {
    /// Returns a link of one rate.
    pub fn fixed(rate: Rate, buffer: usize) -> Self {
        Link { rates: vec![(Time::ZERO, rate)], buffer, mark_above: None, policer: None }
    }

    fn rate(&self, now: Time) -> Rate {
        self.rates.iter().rev().find(|(from, _)| *from <= now).expect("a rate from the start").1
    }
}

/// One flow.
#[derive(Clone, Debug)]
pub struct FlowSpec<'a> {
    /// Registered name of the controller.
    pub controller: &'a str,
    /// Its options.
    pub options: &'a [(&'a str, &'a str)],
    /// Options of its feedback.
    pub feedback: &'a [(&'a str, &'a str)],
    /// Propagation delay there and back.
    pub rtt: Duration,
    /// When it starts.
    pub start: Time,
    /// When it has nothing to send.
    pub silent: Vec<(Time, Time)>,
    /// Packets per ACK.
    pub ack_every: u32,
}

impl<'a> FlowSpec<'a> {
    /// Returns a bulk flow over `rtt`, with an ACK for every packet.
    pub fn bulk(controller: &'a str, rtt: Duration) -> Self {
        FlowSpec {
            controller,
            options: &[],
            feedback: &[],
            rtt,
            start: Time::ZERO,
            silent: Vec::new(),
            ack_every: 1,
        }
    }
}

/// A packet that passed the link.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// When it left the queue.
    pub at: Time,
    /// Its flow.
    pub flow: usize,
    /// How long it waited, its own transmission included.
    pub sojourn: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    flow: usize,
    number: u64,
    sent_at: Time,
    ecn: Ecn,
    cwr: bool,
    header: Header,
    queued_at: Time,
}

#[derive(Debug)]
struct Ack {
    arrivals: Vec<ReceiveTime>,
    marks: Vec<Mark>,
    echo: Echo,
}

#[derive(Debug)]
enum Event {
    Departure,
    Arrival(Packet),
    Ack(usize, Ack),
    /// The flow's sender may have something to do.
    Wake(usize),
    /// The receiver's timers.
    Report(usize),
}

struct Entry(Time, u64, Event);

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

struct ReceiverSide {
    feedback: AnyFeedback,
    pending: Vec<ReceiveTime>,
    pending_marks: Vec<Mark>,
    deadline: Option<Time>,
}

/// Flows over a link.
pub struct World {
    link: Link,
    queue: VecDeque<Packet>,
    /// Bytes in the policer's bucket, and since when.
    tokens: (f64, Time),
    senders: Vec<Sender>,
    receivers: Vec<ReceiverSide>,
    rtts: Vec<Duration>,
    events: BinaryHeap<Reverse<Entry>>,
    sequence: u64,
    now: Time,
    /// Every packet that passed the link.
    pub passed: Vec<Passed>,
    /// When which flow's packet was dropped.
    pub drops: Vec<(Time, usize)>,
}

impl World {
    /// Returns a world with these flows.
    pub fn new(link: Link, flows: &[FlowSpec<'_>]) -> Self {
        let link_depth = link.policer.map_or(0.0, |(_, depth)| depth.as_f64());
        let mut world = World {
            link,
            queue: VecDeque::new(),
            tokens: (link_depth, Time::ZERO),
            senders: Vec::new(),
            receivers: Vec::new(),
            rtts: Vec::new(),
            events: BinaryHeap::new(),
            sequence: 0,
            now: Time::ZERO,
            passed: Vec::new(),
            drops: Vec::new(),
        };
        for (index, flow) in flows.iter().enumerate() {
            let config = ControllerConfig::new(flow.controller, flow.options).expect("a known controller");
            let connection = Connection {
                mss: MSS,
                overhead: OVERHEAD,
                initial_window: Bytes(10 * MSS.0),
                now: flow.start,
                random: Random::stream(index as u64 + 1, "controller"),
            };
            let controller = config.build(&connection);
            let receiver = Receiver { encoding: controller.encoding(), ack_every: flow.ack_every, mss: MSS };
            let feedback = FeedbackConfig::new(config.needs().feedback, flow.feedback)
                .expect("its feedback")
                .build(&receiver);
            world.receivers.push(ReceiverSide {
                feedback,
                pending: Vec::new(),
                pending_marks: Vec::new(),
                deadline: None,
            });
            world.senders.push(Sender::new(controller, flow));
            world.rtts.push(flow.rtt);
            world.schedule(flow.start, Event::Wake(index));
        }
        world
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse(Entry(at, self.sequence, event)));
    }

    /// Returns the flow's controller.
    pub fn controller(&self, flow: usize) -> &AnyController {
        self.senders[flow].controller()
    }

    /// Returns the bytes of the flow in flight.
    pub fn inflight(&self, flow: usize) -> Bytes {
        self.senders[flow].inflight()
    }

    /// Runs until `end`, and shows `watch` each flow's controller after each of its ACKs.
    pub fn run(&mut self, end: Time, mut watch: impl FnMut(Time, usize, &AnyController)) {
        while let Some(Reverse(Entry(at, _, _))) = self.events.peek()
            && *at <= end
        {
            let Some(Reverse(Entry(at, _, event))) = self.events.pop() else { break };
            self.now = at;
            match event {
                Event::Departure => self.depart(),
                Event::Arrival(packet) => self.arrive(packet),
                Event::Ack(flow, ack) => {
                    self.senders[flow].on_ack(at, &ack.arrivals, &ack.marks, &ack.echo);
                    watch(at, flow, self.senders[flow].controller());
                    self.pump(flow);
                }
                Event::Wake(flow) => self.pump(flow),
                Event::Report(flow) => self.report(flow),
            }
        }
        self.now = end;
    }

    /// Lets the sender send what it may, and arranges its next wake-up.
    fn pump(&mut self, flow: usize) {
        self.senders[flow].on_time(self.now);
        while let Some((number, directive)) = self.senders[flow].send(self.now) {
            let SendDirective { ecn, header, cwr, .. } = directive;
            let packet = Packet { flow, number, sent_at: self.now, ecn, cwr, header, queued_at: self.now };
            if self.queue.len() >= self.link.buffer || self.policed() {
                self.drops.push((self.now, flow));
                continue;
            }
            self.queue.push_back(packet);
            if self.queue.len() == 1 {
                self.serve();
            }
        }
        if let Some(at) = self.senders[flow].wake_at(self.now) {
            self.schedule(at, Event::Wake(flow));
        }
    }

    /// Whether the policer drops a packet that arrives now.
    fn policed(&mut self) -> bool {
        let Some((rate, depth)) = self.link.policer else { return false };
        let (tokens, since) = self.tokens;
        let refilled = tokens + rate.as_bps_f64() / 8.0 * self.now.since(since).as_secs_f64();
        let tokens = refilled.min(depth.as_f64());
        let size = (MSS + OVERHEAD).as_f64();
        let short = tokens < size;
        self.tokens = (if short { tokens } else { tokens - size }, self.now);
        short
    }

    fn serve(&mut self) {
        let time = self.link.rate(self.now).time_for(MSS + OVERHEAD);
        self.schedule(self.now + time, Event::Departure);
    }

    fn depart(&mut self) {
        let mut packet = self.queue.pop_front().expect("a packet in service");
        let sojourn = self.now.since(packet.queued_at);
        self.passed.push(Passed { at: self.now, flow: packet.flow, sojourn });
        if self.link.mark_above.is_some_and(|above| sojourn > above) && packet.ecn.is_capable() {
            packet.ecn = Ecn::Ce;
        }
        let half = self.rtts[packet.flow] / 2;
        self.schedule(self.now + half, Event::Arrival(packet));
        if !self.queue.is_empty() {
            self.serve();
        }
    }

    fn arrive(&mut self, packet: Packet) {
        let encoding = self.senders[packet.flow].controller().encoding();
        let receiver = &mut self.receivers[packet.flow];
        let urgent = receiver.pending.last().is_some_and(|last| last.number + 1 != packet.number);
        let arrival = Arrival {
            now: self.now,
            number: packet.number,
            size: MSS,
            ecn: packet.ecn,
            cwr: packet.cwr,
            header: packet.header,
            hash16: packet.number as u16,
            sent_at: packet.sent_at,
            urgent,
        };
        let action = receiver.feedback.on_packet(&arrival);
        let flush = matches!(action, AckAction::FlushThenDelay | AckAction::FlushThenNow);
        let now = matches!(action, AckAction::Now | AckAction::FlushThenNow);
        if flush {
            self.acknowledge(packet.flow, true);
        }
        let receiver = &mut self.receivers[packet.flow];
        receiver.pending.push(ReceiveTime {
            number: packet.number,
            sent_at: packet.sent_at,
            received_at: self.now,
        });
        receiver.pending_marks.push(encoding.mark(packet.ecn));
        if now {
            self.acknowledge(packet.flow, false);
        } else if receiver.deadline.is_none() {
            let due = self.now + DELAYED_ACK;
            receiver.deadline = Some(due);
            self.schedule(due, Event::Report(packet.flow));
        }
        if let Some(at) = self.receivers[packet.flow].feedback.next_report() {
            self.schedule(at.max(self.now), Event::Report(packet.flow));
        }
    }

    fn report(&mut self, flow: usize) {
        let receiver = &self.receivers[flow];
        let delayed = receiver.deadline.is_some_and(|due| due <= self.now);
        let due = receiver.feedback.next_report().is_some_and(|at| at <= self.now);
        if delayed || due {
            self.acknowledge(flow, false);
        }
        if due && let Some(at) = self.receivers[flow].feedback.next_report() {
            self.schedule(at.max(self.now), Event::Report(flow));
        }
    }

    fn acknowledge(&mut self, flow: usize, flush: bool) {
        let receiver = &mut self.receivers[flow];
        let echo = receiver.feedback.on_ack_sent(self.now, flush);
        let ack = Ack {
            arrivals: std::mem::take(&mut receiver.pending),
            marks: std::mem::take(&mut receiver.pending_marks),
            echo,
        };
        receiver.deadline = None;
        let at = self.now + (self.rtts[flow] - self.rtts[flow] / 2);
        self.schedule(at, Event::Ack(flow, ack));
    }

    /// Returns the flow's rate on the wire between two times.
    pub fn throughput(&self, flow: usize, from: Time, to: Time) -> Rate {
        let packets =
            self.passed.iter().filter(|p| p.flow == flow && p.at > from && p.at <= to).count() as u64;
        Rate::over(Bytes(packets * (MSS + OVERHEAD).0), to.since(from))
    }

    /// Returns the sojourn times between two times, sorted.
    pub fn sojourns(&self, from: Time, to: Time) -> Vec<Duration> {
        let mut sojourns: Vec<_> =
            self.passed.iter().filter(|p| p.at > from && p.at <= to).map(|p| p.sojourn).collect();
        sojourns.sort();
        sojourns
    }

    /// Returns the given quantile of the sojourn times between two times.
    pub fn sojourn_quantile(&self, from: Time, to: Time, quantile: f64) -> Duration {
        let sojourns = self.sojourns(from, to);
        sojourns[((sojourns.len() as f64 * quantile) as usize).min(sojourns.len() - 1)]
    }
}

/// Returns what the controller shows under this name.
pub fn inspect(controller: &AnyController, name: &str) -> f64 {
    let mut found = None;
    controller.inspect(&mut |key, value| {
        if key == name {
            found = Some(value);
        }
    });
    found.unwrap_or_else(|| panic!("the controller shows no `{name}`"))
}
