//! From the stack's calls to our controllers' events: what was sent, what became of it, and when a controller
//! gets an update.
//!
//! The stack reports one ACK in several calls, RTT and losses last. They are gathered, and passed on as one
//! event when the next call comes or the window is read: losses before the ACK that brought them, as every
//! controller expects.
//!
//! | file | holds |
//! |---|---|
//! | `departures` | what leaves, and what the controller says to it |
//! | `arrivals` | what ACKs, losses and reports say, gathered |
//! | `held` | the controller in its place |
//! | `updates` | events for the controller, made of what was gathered |

use std::collections::VecDeque;

use brakelight_core::controller::{Connection, Controller, PacketInfo, ReceiveTime, ReceiverReport};
use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::sender::{Delivery, Episode, Pacer, RttEstimator, Usage, most_together};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use self::held::Held;
use super::peer::Peer;
use super::{ControlSettings, PacketSender};
use crate::socket::MOST_DATAGRAMS;
use crate::tap::frames::EcnCounts;
use crate::tap::parameters::Parameters;
use crate::validation::{State, Validation};

mod arrivals;
mod departures;
mod held;
mod updates;

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PacketState {
    Outstanding,
    Acked,
    Lost,
}

/// One packet, or a datagram whose packets the tap does not see.
#[derive(Clone, Copy, Debug)]
struct Sent {
    sent_at: Time,
    size: u64,
    /// What the controller will hear of it, if it knows of it. Of Initial and Handshake packets it does not:
    /// some are never acknowledged, as their keys are dropped before, and controllers wait for news of every
    /// packet that they were told of.
    info: Option<PacketInfo>,
    state: PacketState,
    /// Its packet number, if the tap saw it: the others may not even ask for an ACK.
    number: Option<u64>,
    marked: bool,
}

/// A packet that was encrypted, and is about to leave.
#[derive(Clone, Copy, Debug)]
struct Sealed {
    number: u64,
    size: u64,
    ecn: Ecn,
    /// The update that the controller has already had about it, where the controller chooses its codepoint.
    update: Option<SendUpdate>,
}

/// An update to the controller about a packet that is about to leave.
#[derive(Clone, Copy, Debug)]
struct SendUpdate {
    /// The number by which the controller knows the packet.
    number: u64,
    /// The tag that the controller gave it.
    tag: u64,
}

/// What an ACK frame said.
#[derive(Clone, Copy, Debug)]
struct Frame {
    delay: u64,
    counts: Option<EcnCounts>,
}

/// One ACK, as far as the stack has told of it.
#[derive(Clone, Debug, Default)]
struct Gathered {
    now: Time,
    any: bool,
    acked: Vec<PacketInfo>,
    marked: u64,
    inflight_before: u64,
    lost: Vec<PacketInfo>,
    /// Bytes that the stack declares lost, those included that the controller does not know of.
    lost_bytes: u64,
    /// The numbers of those that the tap saw.
    missing: Vec<u64>,
    /// When the newest packet that was lost had been sent.
    loss_sent_at: Option<Time>,
    persistent: bool,
    /// When the newest packet of an ACK with CE had been sent, by the stack's own count.
    ce_sent_at: Option<Time>,
    /// Receive times, and the peer's report.
    times: Vec<ReceiveTime>,
    report: ReceiverReport,
}

/// What a connection did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that ask for an ACK.
    pub sent_packets: u64,
    /// Of these, those that left with an ECN codepoint.
    pub marked_packets: u64,
    /// Packets acknowledged.
    pub acked_packets: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Their bytes.
    pub lost_bytes: u64,
    /// Episodes taken back as mistakes.
    pub undone_episodes: u64,
    /// Packets that came back with ABC's accelerate.
    pub accelerate_packets: u64,
    /// Packets that came back with ABC's brake.
    pub brake_packets: u64,
    /// Packets that came back with CE.
    pub ce_packets: u64,
    /// Reports of receive times that could be read.
    pub reports: u64,
    /// Datagrams that claimed to be one and could not.
    pub malformed_reports: u64,
}

/// Whether the next full packet may leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendAdmission {
    /// It may leave now.
    Now,
    /// It must wait for an ACK: the congestion window is full.
    Window,
    /// The pacer holds it until then.
    Until(Time),
}

/// Bytes that leave together at `rate`: what goes in `interval`, a packet of `mss` bytes at least, and half
/// of the window `cwnd` at most, so that ACKs keep coming. No more than one transmission holds.
fn together(rate: Rate, interval: Duration, mss: u64, cwnd: u64) -> u64 {
    let bytes = (rate.as_bps_f64() * interval.as_secs_f64() / 8.0) as u64;
    bytes.min(cwnd / 2).min(MOST_DATAGRAMS as u64 * mss).max(mss)
}

/// A connection's congestion control.
#[derive(Debug)]
pub(super) struct Sender {
    mss: u64,
    overhead: u64,
    controller: Box<Held>,
    encoding: Encoding,
    validation: Validation,
    /// Whether ECN failed and the controller was told, or replaced.
    fallen_back: bool,
    /// Whether the controller still answers congestion without ECN.
    survives_without_marks: bool,
    tapped: bool,
    /// Whether the controller chooses the codepoint of each packet, and so must be asked before it is
    /// encrypted.
    chooses: bool,
    /// Whether our pacer spaces packets out: where the stack has its own, nobody would look at it.
    paced: bool,
    /// The peer's limits on its ACKs.
    peer_parameters: Parameters,
    rtt: RttEstimator,
    rtt_sample: Option<Duration>,
    pacer: Pacer,
    pacing_burst: u64,
    pacing_interval: Duration,
    /// Until when packets wait to leave together.
    paced_until: Option<Time>,
    peer: Peer,

    sent: VecDeque<Sent>,
    /// Packets that have left `sent` at its front, and the place, counted from the first ever, of the one to
    /// be acknowledged next if ACKs come in order.
    retired: u64,
    expected: u64,
    sealed: Vec<Sealed>,
    /// Their bytes.
    sealed_bytes: u64,
    /// Bytes sealed that ask for no ACK.
    quiet: u64,
    next_number: u64,
    /// Of what was sent last.
    last_number: Option<u64>,
    /// What became of the packets that the controller knows of.
    delivery: Delivery,
    /// Bytes in flight by the stack's count: Initial and Handshake packets, and probes of the MTU, included.
    inflight: u64,
    last_sent_at: Option<Time>,
    /// What the window was used for, by the controller's numbers.
    usage: Usage,
    largest_acked: Option<(u64, Time)>,

    /// The congestion episode, by when packets were sent: that is how the stack names them.
    episode: Episode,
    /// Whether the window holds in this episode, as its controller requests.
    held: bool,
    /// Packets declared lost in this episode that have not arrived late; whether the last of them just has.
    /// The stack forgets what it declares lost, but an ACK says of late packets what it says of others.
    missing: Vec<u64>,
    undone: bool,
    frame: Option<Frame>,
    gathered: Gathered,
    counters: Counters,
}

impl Sender {
    pub(super) fn new(settings: &ControlSettings, tapped: bool, now: Time, mtu: u16) -> Self {
        let mss = u64::from(mtu);
        let opening = Connection {
            mss: Bytes(mss),
            overhead: Bytes(settings.overhead),
            initial_window: Bytes(mss * u64::from(settings.initial_window)),
            now,
            random: settings.random.clone(),
        };
        let controller =
            Box::new(held::hold(settings.controller.build(&opening), &settings.controller.needs()));
        let encoding = controller.encoding();
        Sender {
            mss,
            overhead: settings.overhead,
            encoding,
            validation: Validation::new(encoding),
            fallen_back: false,
            survives_without_marks: settings.controller.survives_without_marks(),
            tapped,
            chooses: matches!(encoding, Encoding::Abc | Encoding::AbcProxied | Encoding::Bmcc),
            paced: settings.packet_sender == PacketSender::Driver,
            peer_parameters: Parameters::default(),
            rtt: RttEstimator::quic(),
            rtt_sample: None,
            pacer: Pacer::quic(mss * u64::from(settings.pacing_burst.max(1)), now),
            pacing_burst: u64::from(settings.pacing_burst.max(1)),
            pacing_interval: settings.pacing_interval,
            paced_until: None,
            peer: Peer::new(&settings.controller, settings.receive_times, encoding, mss),
            controller,
            sent: VecDeque::new(),
            retired: 0,
            expected: 0,
            sealed: Vec::new(),
            sealed_bytes: 0,
            quiet: 0,
            next_number: 0,
            last_number: None,
            delivery: Delivery::new(now),
            inflight: 0,
            last_sent_at: None,
            usage: Usage::default(),
            largest_acked: None,
            episode: Episode::default(),
            held: false,
            missing: Vec::new(),
            undone: false,
            frame: None,
            gathered: Gathered::default(),
            counters: Counters::default(),
        }
    }

    // What may be asked.

    pub(super) fn controller(&self) -> &Held {
        &self.controller
    }

    pub(super) fn counters(&self) -> Counters {
        self.counters
    }

    pub(super) fn validation(&self) -> State {
        self.validation.state()
    }

    pub(super) fn times(&self) -> super::Times {
        self.peer.times()
    }

    pub(super) fn wants_reports(&self) -> bool {
        self.peer.wants_reports() && self.counters.reports == 0
    }

    pub(super) fn last_number(&self) -> Option<u64> {
        self.last_number
    }

    pub(super) fn inflight(&self) -> Bytes {
        Bytes(self.inflight)
    }

    pub(super) fn smoothed_rtt(&self) -> Option<Duration> {
        self.rtt.measured()
    }

    pub(super) fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.rtt_sample.take()
    }

    /// How fast packets should leave: the controller's rate, or 1.25 windows per round trip (rfc9002 7.7).
    pub(super) fn pacing_rate(&self) -> Rate {
        self.controller.pacing_rate().unwrap_or_else(|| {
            let bits = 1.25 * 8.0 * self.controller.cwnd().as_f64();
            Rate::from_bps_f64(bits / self.rtt.smoothed().as_secs_f64())
        })
    }

    /// Bytes that the controller lets leave together, if it says so: one packet at the least.
    fn quantum(&self) -> u64 {
        self.controller.send_quantum().map_or(u64::MAX, |quantum| quantum.0.max(self.mss))
    }

    /// Returns whether a full packet may leave at `now`.
    pub(super) fn admission(&mut self, now: Time) -> SendAdmission {
        self.flush();
        let cwnd = self.controller.cwnd().0;
        if self.inflight + self.mss > cwnd && self.inflight > 0 {
            return SendAdmission::Window;
        }
        let rate = self.pacing_rate();
        let quantum = self.quantum();
        let burst = most_together(&*self.controller, self.pacing_burst * self.mss, self.mss);
        if self.pacing_interval.is_zero() {
            self.pacer.limit_burst(burst);
            let at = self.pacer.ready_at(self.mss, rate);
            return if at > now { SendAdmission::Until(at) } else { SendAdmission::Now };
        }
        if let Some(at) = self.paced_until.filter(|at| *at > now) {
            return SendAdmission::Until(at);
        }
        self.paced_until = None;
        let together = together(rate, self.pacing_interval, self.mss, cwnd).min(quantum);
        self.pacer.limit_burst(together.max(burst));
        if self.pacer.ready_at(self.mss, rate) <= now {
            return SendAdmission::Now;
        }
        // Once the tokens are used up, the next packets wait for each other.
        let at = self.pacer.ready_at(together, rate);
        self.paced_until = Some(at);
        SendAdmission::Until(at)
    }

    /// Full packets that window and pacer let go together at `now`.
    pub(super) fn room(&self, now: Time) -> usize {
        let window = self.controller.cwnd().0.saturating_sub(self.inflight);
        let tokens = self.pacer.tokens_at(now, self.pacing_rate());
        (window.min(tokens) / self.mss) as usize
    }

    pub(super) fn next_timer(&self) -> Option<Time> {
        self.controller.next_timer()
    }

    pub(super) fn on_timer(&mut self, now: Time) {
        self.flush();
        if self.controller.next_timer().is_some_and(|at| at <= now) {
            self.controller.on_timer(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_together_is_a_packet_at_least_and_half_a_window_at_most() {
        let bytes = |mbps, cwnd| together(Rate::from_mbps(mbps), Duration::from_millis(1), 1452, cwnd);
        assert_eq!(bytes(8, 1 << 20), 1452);
        // 100 Mbit/s are 12,500 bytes a millisecond.
        assert_eq!(bytes(100, 1 << 20), 12_500);
        assert_eq!(bytes(100, 20_000), 10_000);
        assert_eq!(bytes(10_000, 1 << 30), 40 * 1452);
        assert_eq!(together(Rate::from_mbps(100), Duration::ZERO, 1452, 1 << 20), 1452);
    }
}
