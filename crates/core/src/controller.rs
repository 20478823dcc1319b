//! Congestion controllers: the sender's half of an algorithm.
//!
//! A controller is told what happened and asked three things: how much may be in flight, how fast to send,
//! and what to put on the next packet. Loss detection, retransmission, pacing and PRR belong to the host that
//! runs it.
//!
//! The controllers are in `brakelight-senders`.
//!
//! # The contract
//!
//! What a controller may rely on, whatever host runs it. [`sender`](crate::sender) implements the arithmetic
//! once for every host, and [`Checked`](crate::sender::Checked) holds a host to every sentence.
//!
//! - time: `now` never falls from one call to the next.
//! - numbers: Each packet announced by `on_send` has a number one higher than the packet before.
//! - state: Only packets that were announced are acknowledged or lost; each is acknowledged at most once, and
//!   declared lost only while it is in flight.
//! - lost: What an event calls lost is not in flight and not acknowledged by the same event; only
//!   `on_spurious_loss` puts it back in flight.
//! - sums: `sent = delivered + lost + inflight + replaced`, in bytes, at every event; `newly_acked` and
//!   `newly_lost` are the sums of the packets listed; a host may list none in `acked` for a controller that
//!   does not read them.
//! - memory: An acknowledged or lost packet comes back with the size, time, tag and `delivered` that it was
//!   sent with.
//! - order: `acked` and `lost` are sorted by number.
//! - limit: Once a packet is announced as application-limited, so is every packet until something more is
//!   delivered.
//! - marks: No more packets are marked than were sent; an echoed state marks no more than its ACK
//!   acknowledges.
//! - round: `round` rises by one exactly where `round_start` is set, which takes the ACK of a packet sent
//!   since the round began.
//! - recovery: `Recovery` follows a loss or a CE mark, `Loss` a timeout. `Loss` ends when everything that was
//!   out at the timeout is repaired, or when the timeout turns out to be spurious.
//! - episode: One `on_loss` per episode: before the next comes the end of the last.
//! - growth: `growth` is at most `newly_acked`, and zero in `Recovery`.
//! - rtt: Samples are positive, `rtt.min` never rises, and no sample is smaller.
//! - idle: `on_idle_restart` comes only while nothing is in flight.
//! - usage: `cwnd_limited` is set only if the window was used in this round trip or the five before it: a
//!   packet left that filled it, or half of it in slow start, or that was not application-limited; or two
//!   round trips together sent as much, which a pacer may spread; or losses were repaired (RFC 9002 section
//!   7.8). At the end of any other round trip a controller that lets no unused window grow has none larger
//!   than it was in use ([`Needs::grows_unused`](crate::facts::Needs) names those that go by a rule of
//!   their own).

use alloc::string::String;

use crate::ecn::{Ecn, Encoding};
use crate::packet::Header;
use crate::random::Random;
use crate::time::{Duration, Time};
use crate::units::{Bytes, Rate};

/// The connection that a controller is built for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Largest payload of one packet: TCP's MSS. Windows count payload bytes.
    pub mss: Bytes,
    /// Bytes of headers added to each payload on the wire.
    pub overhead: Bytes,
    /// The window before the first ACK (RFC 6928: 10 packets), unless the algorithm sets its own.
    pub initial_window: Bytes,
    /// When the connection starts.
    pub now: Time,
    /// The controller's own stream of random numbers.
    pub random: Random,
}

dispatched! {
    /// A controller: told what happened, asked for a window, a rate and a codepoint.
    ///
    /// Every method that takes a `now` is given a value no smaller than the one before. All sizes are payload
    /// bytes.
    pub trait Controller by pass_to_controller {
        /// A packet is about to leave: returns what to put on it. Called for every packet, retransmissions
        /// included.
        fn on_send(&mut self, _event: &SendEvent) -> SendDirective {
            SendDirective { ecn: self.encoding().sent(), header: Header::None, tag: 0, cwr: false }
        }

        /// Returns `false` if `on_send` never changes the [`decision`](Controller::decision), so that a host
        /// need not ask for it again.
        fn decides_on_send(&self) -> bool {
            true
        }

        /// Returns `false` if `on_ack` never reads [`AckEvent::acked`], so that a host need not list packets.
        fn reads_acked(&self) -> bool {
            true
        }

        /// An ACK that acknowledged, lost or said something.
        fn on_ack(&mut self, event: &AckEvent<'_>);

        /// A loss starts a congestion episode: at most once per round trip, before `on_ack` of the same ACK.
        /// Single losses are in [`AckEvent::lost`].
        fn on_loss(&mut self, event: &LossEvent);

        /// A CE mark starts a congestion episode: at most once per round trip. Single marks are in
        /// [`AckEvent::marks`]. Classic controllers treat it as a loss (RFC 3168 section 6.1.2).
        fn on_ce(&mut self, event: &LossEvent) {
            self.on_loss(event);
        }

        /// A timer of the host's loss recovery fired.
        fn on_timeout(&mut self, event: &TimeoutEvent);

        /// The last episode was a mistake: nothing was lost. Undo it.
        fn on_spurious_loss(&mut self, _event: &SpuriousEvent) {}

        /// Every packet sent in the recovery period has been acknowledged.
        fn on_recovery_exit(&mut self, _now: Time) {}

        /// The flow sends again after nothing was in flight for longer than its RTO.
        fn on_idle_restart(&mut self, _event: &IdleEvent) {}

        /// Lowers the window to `most`, which is at least one packet. Keeps all other state, so that the
        /// window can rise again at once. A controller that bounds the window of another controller, as ABC
        /// does, calls it.
        fn cap_cwnd(&mut self, _most: Bytes) {}

        /// The path's packet size changed.
        fn on_mtu_change(&mut self, _mss: Bytes) {}

        /// A timer the controller asked for by [`next_timer`](Controller::next_timer) is due.
        fn on_timer(&mut self, _now: Time) {}

        /// Returns when the controller wants `on_timer`.
        fn next_timer(&self) -> Option<Time> {
            None
        }

        /// Returns how much may be in flight. Never below one packet.
        fn cwnd(&self) -> Bytes;

        /// Returns where slow start ends, if the algorithm has one.
        fn ssthresh(&self) -> Option<Bytes> {
            None
        }

        /// Returns how fast to send; `None` leaves it to the host: TCP's sends in bursts as ACKs come, QUIC's
        /// paces at 1.25 windows per round trip. With [`Rate::MAX`] no host paces.
        fn pacing_rate(&self) -> Option<Rate> {
            None
        }

        /// Returns at what rate the application may produce payload, where that is not the rate of pacing: a
        /// control for media paces faster than its encoder produces, so that a large frame leaves soon.
        /// `None` stands for the pacing rate, or without one the window per smoothed RTT.
        fn media_rate(&self) -> Option<Rate> {
            None
        }

        /// Returns how many bytes may leave together, at most, where packets are paced; `None` leaves it to
        /// the host. The name is BBR's (draft-ietf-ccwg-bbr, `BBR.send_quantum`). QUIC's hosts send no more
        /// than this together, but always one packet. Their own limit of ten packets holds too, unless there
        /// is a `media_rate`: a large frame may leave at once. TCP's host spaces each packet by itself.
        fn send_quantum(&self) -> Option<Bytes> {
            None
        }

        /// Returns what a host asks after every event, by one call in place of three.
        fn decision(&self) -> Decision {
            Decision { cwnd: self.cwnd(), pacing_rate: self.pacing_rate(), next_timer: self.next_timer() }
        }

        /// Returns whether the host's PRR shapes the window while losses are repaired, asked when an episode
        /// starts: it lowers what is in flight step by step to the `cwnd` that the controller has then
        /// (RFC 6937). A controller that models the path itself says no, and its `cwnd` holds throughout.
        fn recovery(&self) -> Recovery {
            Recovery::Prr
        }

        /// Returns what the flow means by its ECN bits.
        fn encoding(&self) -> Encoding {
            Encoding::None
        }

        /// State worth plotting, by name, in the unit the name ends in. At most a handful.
        fn inspect(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}

        /// Returns which stage of its algorithm it is in, such as BBR's Startup; none if it has no stages.
        fn stage(&self) -> Option<Stage> {
            None
        }

        /// Returns why it decides nothing any more, if a program that others wrote decided and failed. Its
        /// run has then failed too.
        fn failure(&self) -> Option<&ControllerFailure> {
            None
        }
    }
}

/// Why a controller decides nothing any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControllerFailure {
    /// When it failed.
    pub at: Time,
    /// What happened, in words.
    pub reason: String,
}

/// Where a controller stands in its algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stage {
    /// All stages that the controller may be in, each in lower case, words joined by underscores.
    pub names: &'static [&'static str],
    /// The present one, as an index into `names`.
    pub index: usize,
}

impl Stage {
    /// Returns the name of the present stage.
    pub fn name(self) -> &'static str {
        self.names[self.index]
    }
}

/// What a controller has decided, until the next event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// [`Controller::cwnd`].
    pub cwnd: Bytes,
    /// [`Controller::pacing_rate`].
    pub pacing_rate: Option<Rate>,
    /// [`Controller::next_timer`].
    pub next_timer: Option<Time>,
}

/// Who shapes the window during recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// The host, by proportional rate reduction towards the controller's window.
    Prr,
    /// Nobody: the controller's own window holds.
    Own,
}

/// A packet about to leave.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct SendEvent {
    /// When it leaves.
    pub now: Time,
    /// Its payload.
    pub size: Bytes,
    /// Its number; each transmission has its own, rising by one.
    pub number: u64,
    /// Whether its payload was sent before.
    pub retransmission: bool,
    /// The packet still in flight that it replaces there: TCP's tail loss probe sends again what was not
    /// declared lost. That packet will be neither acknowledged nor lost.
    pub replaces: Option<u64>,
    /// Bytes in flight without it, and without what it replaces.
    pub inflight: Bytes,
    /// Whether there was nothing else to send, so that the window was not the limit.
    pub app_limited: bool,
    /// Smoothed RTT, once there is a sample.
    pub srtt: Option<Duration>,
}

/// What to put on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct SendDirective {
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its explicit header.
    pub header: Header,
    /// Comes back in [`PacketInfo::tag`] when the packet is acknowledged or lost.
    pub tag: u64,
    /// Sets CWR on the packet whether or not a reaction to CE is to be reported: a receiver of RFC 3168 then
    /// stops echoing. After `on_ce` the host sets CWR on the next new packet by itself (RFC 3168
    /// section 6.1.2).
    pub cwr: bool,
}

/// One packet that was acknowledged or lost, with what was known when it was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketInfo {
    /// Its number.
    pub number: u64,
    /// Its payload.
    pub size: Bytes,
    /// When it was sent.
    pub sent_at: Time,
    /// Bytes the flow had delivered when it was sent.
    pub delivered: Bytes,
    /// When the last of those was acknowledged.
    pub delivered_at: Time,
    /// When the first packet of that delivery's flight was sent (draft-ietf-ccwg-bbr, 4.1.1.2).
    pub first_sent_at: Time,
    /// Bytes in flight when it was sent, itself included.
    pub inflight: Bytes,
    /// Bytes the flow had lost when it was sent.
    pub lost: Bytes,
    /// Whether the flow was limited by its application when it was sent.
    pub app_limited: bool,
    /// Whether it was a retransmission: its RTT is ambiguous where numbers do not tell (TCP without
    /// timestamps).
    pub retransmission: bool,
    /// What [`SendDirective::tag`] said.
    pub tag: u64,
}

/// Packets and bytes that came back with one kind of mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MarkCount {
    /// Packets.
    pub packets: u64,
    /// Payload bytes.
    pub bytes: Bytes,
}

/// Which of the two counts of a [`MarkCount`] was carried by the ACK; the other is derived from the packet
/// size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Exact {
    /// Packets: QUIC's ACK frame.
    Packets,
    /// Bytes: Accurate ECN.
    #[default]
    Bytes,
    /// Both.
    Both,
    /// Neither: one echoed state stands for everything the ACK newly covers (the NS and ECE flags).
    Neither,
}

/// New marks reported by one ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Marks {
    /// ABC's accelerates.
    pub accelerate: MarkCount,
    /// ABC's brakes.
    pub brake: MarkCount,
    /// Congestion experienced.
    pub ce: MarkCount,
    /// Which of the counts is exact.
    pub exact: Exact,
}

/// An RTT sample and the filters over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Rtt {
    /// This ACK's sample, if it gave one, with the receiver's reported delay left in.
    pub sample: Option<Duration>,
    /// Smoothed (RFC 6298; RFC 9002 5.3). The initial RTT before the first sample.
    pub smoothed: Duration,
    /// Mean deviation.
    pub variation: Duration,
    /// The smallest sample of the connection.
    pub min: Duration,
}

/// When one packet arrived, on the receiver's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveTime {
    /// The packet's number.
    pub number: u64,
    /// When it was sent, on the sender's clock.
    pub sent_at: Time,
    /// When it arrived, on the receiver's clock, whose offset and skew are unknown.
    pub received_at: Time,
}

/// What a scheme's receiver sends back besides marks.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum ReceiverReport {
    /// Nothing.
    #[default]
    None,
    /// The explicit header of the newest packet, as it arrived.
    Header(Header),
    /// BMCC's estimate of the load factor, in 1/65535 of the scheme's maximum.
    LoadFactor(u16),
    /// Sprout's forecast: bytes that may be in flight in each of the next eight 20 ms ticks, cumulative, with
    /// the number of bytes the receiver has counted.
    Forecast {
        /// Cumulative deliverable bytes at ticks 1 to 8, in units of one MSS.
        packets: [u16; 8],
        /// Bytes received or known lost, counted by the receiver.
        received: Bytes,
    },
}

/// Everything one ACK says, to the controller. The default says nothing, and stands for what a small host
/// does not know.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckEvent<'a> {
    /// When the ACK arrived.
    pub now: Time,
    /// Packets it newly acknowledged, oldest first. A host may list none for a controller that
    /// [does not read them](Controller::reads_acked).
    pub acked: &'a [PacketInfo],
    /// The number of the newest packet that it newly acknowledged, listed or not; `None` if there is none.
    pub newest: Option<u64>,
    /// Packets declared lost since the last event, oldest first.
    pub lost: &'a [PacketInfo],
    /// Bytes newly acknowledged.
    pub newly_acked: Bytes,
    /// Bytes of `newly_acked` by which a window that counts bytes may grow. On QUIC those of packets sent
    /// after the last episode began, by loss or by CE (RFC 9002 appendix B.5), and all after persistent
    /// congestion; on TCP all (Linux asks only for the state). Zero in [`RecoveryState::Recovery`].
    pub growth: Bytes,
    /// Bytes newly declared lost.
    pub newly_lost: Bytes,
    /// Bytes in flight just before the ACK.
    pub inflight_before: Bytes,
    /// Bytes in flight after it.
    pub inflight: Bytes,
    /// Bytes delivered since the connection began, these included.
    pub delivered: Bytes,
    /// Bytes lost since the connection began, less those that arrived late or whose loss was taken back.
    pub total_lost: Bytes,
    /// RTT.
    pub rtt: Rtt,
    /// How long the receiver held the ACK back, where it says so.
    pub ack_delay: Duration,
    /// Round trips so far: one more each time a packet sent after the last round's end is acknowledged.
    pub round: u64,
    /// Whether this ACK began a new round.
    pub round_start: bool,
    /// New marks.
    pub marks: Marks,
    /// Receive times of newly reported packets, where the receiver sends them.
    pub receive_times: &'a [ReceiveTime],
    /// What else the scheme's receiver said.
    pub report: ReceiverReport,
    /// Whether the window was the limit in the last round trip. A window that was not needed must not grow.
    /// False, too, where TCP's `snd_una` stands still and the host shapes recovery: duplicate ACKs open no
    /// window (RFC 5681).
    pub cwnd_limited: bool,
    /// Where the sender stands after this ACK.
    pub recovery: RecoveryState,
}

impl AckEvent<'_> {
    /// Returns `true` during fast recovery, in which the window must not grow. After a timeout it grows by
    /// slow start while losses are repaired (RFC 5681 section 3.1), so in [`RecoveryState::Loss`] this
    /// returns `false`.
    #[inline]
    pub fn in_recovery(&self) -> bool {
        self.recovery == RecoveryState::Recovery
    }
}

/// Where a sender stands between two congestion episodes (Linux 6.12 include/uapi/linux/tcp.h,
/// `enum tcp_ca_state`, where `Open` is also TCP_CA_Disorder and, unless the host brings the window down,
/// TCP_CA_CWR).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RecoveryState {
    /// Nothing is being repaired.
    #[default]
    Open,
    /// Fast recovery: losses, or a CE mark whose reduction the host spreads over a round trip, are being
    /// dealt with (RFC 6582, RFC 9002 section 7.3.2).
    Recovery,
    /// A retransmission timeout or persistent congestion is being repaired by slow start (RFC 5681
    /// section 3.1, RFC 8985 section 6.3, RFC 9002 section 7.6). It lasts until everything that was
    /// outstanding then is repaired.
    Loss,
}

/// The start of a congestion episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossEvent {
    /// When it was noticed.
    pub now: Time,
    /// When the newest lost or marked packet was sent.
    pub sent_at: Time,
    /// Bytes in flight when it was noticed, the lost ones included.
    pub inflight: Bytes,
    /// Bytes declared lost in this event; zero for a CE mark.
    pub lost: Bytes,
    /// Smoothed RTT.
    pub srtt: Duration,
    /// Smallest RTT of the connection.
    pub min_rtt: Duration,
}

/// Which timer fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// TCP's retransmission timeout: everything in flight counts as lost (RFC 6298, RFC 5681 section 3.1).
    Rto,
    /// QUIC's probe timeout: by itself no sign of congestion (RFC 9002 section 6.2).
    Pto,
    /// Nothing arrived for so long that the window starts over (RFC 9002 section 7.6). The loss that showed
    /// it came as `on_loss` just before, if it began an episode, so the threshold has been dealt with.
    PersistentCongestion,
}

/// A timer of loss recovery fired.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeoutEvent {
    /// When.
    pub now: Time,
    /// Which.
    pub kind: Timeout,
    /// Bytes in flight before.
    pub inflight: Bytes,
    /// Whether the same data already timed out before.
    pub repeated: bool,
}

/// An episode that turned out to be a mistake.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpuriousEvent {
    /// When it was noticed.
    pub now: Time,
    /// Whether the episode began with a timeout rather than a loss.
    pub timeout: bool,
}

/// The end of an idle period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IdleEvent {
    /// When sending resumes.
    pub now: Time,
    /// How long ago the last packet was sent.
    pub idle: Duration,
    /// The retransmission timeout at that moment.
    pub rto: Duration,
}
