//! The sending end of a connection: what to send next, and when.
//!
//! | file | holds |
//! |---|---|
//! | `scoreboard` | what was sent and what became of it |
//! | `send` | the next packet, and what keeps it from leaving |
//! | `ack` | what an ACK does, common to both profiles, and the events it makes for the controller |
//! | `pieces` | what an application sends once, in packets of their own |
//! | `episode` | the beginning and the end of a reaction to loss or marks |
//! | `tcp` | RACK, F-RTO, undo |
//! | `timeout` | TCP's timers: tail loss probe, RTO |
//! | `quic` | RFC 9002: packet and time thresholds, PTO, persistent congestion |
//! | `sack1` | the recovery of ns-2, with its timer |
//! | `prr` | what may be in flight while TCP repairs losses |
//!
//! The files import each other, since they are one type's methods, split by concept.

mod ack;
mod episode;
mod pieces;
mod prr;
mod quic;
mod sack1;
mod scoreboard;
mod send;
mod tcp;
mod timeout;

use std::collections::{BTreeMap, VecDeque};

use brakelight_core::controller::{Connection, Controller, Decision, PacketInfo, SendDirective};
use brakelight_core::feedback::MarkTotals;
use brakelight_core::parameters::ParameterError;
use brakelight_core::sender::{Delivery, Episode, Pacer, RttEstimator, Usage, most_together};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::{AnyController, Host};
use brakelight_senders::controller::external::External;

use super::Counters;
use super::ranges::{Range, RangeSet};
use super::ring::Ring;
use super::stages::Stages;
use crate::report::SenderView;
pub(super) use pieces::PING;
use pieces::Pieces;
use prr::Prr;
use scoreboard::{Segment, State, Tags, Transmission};
pub(super) use send::Next;

/// Packets that leave whatever the window says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Forced {
    None,
    /// The first lost segment: TCP's after a timeout, ns-2's after three duplicate ACKs, QUIC's at the start
    /// of an episode.
    Head,
    /// TCP's tail loss probe: new data, or the last segment again.
    Tail,
    /// QUIC's probes: new data, or the oldest segment again.
    Probes(u8),
}

/// A packet on its way out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub(super) number: u32,
    /// The segment, or the number of the piece.
    pub(super) segment: u32,
    pub(super) size: u16,
    pub(super) directive: SendDirective,
}

/// The sending end of one connection.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    host: Host,
    mss: u64,
    controller: Box<AnyController>,
    rtt: RttEstimator,
    pacer: Pacer,
    /// What may leave together, unless the controller says otherwise.
    pacing_burst: u64,

    transmissions: Ring<Transmission>,
    tags: Tags,
    segments: Ring<Segment>,
    /// TCP: segments above `snd_una` that were SACKed. QUIC: packet numbers that were acknowledged.
    known: RangeSet,
    /// Segments to send again, in the order they were declared lost.
    lost_queue: VecDeque<u32>,
    /// Every transmission below is settled: acknowledged, lost or superseded.
    oldest: u32,

    /// Payload the application has asked for and that was never sent; `u64::MAX` without end.
    unsent: u64,
    /// What makes up `unsent`, if the application sends pieces.
    pieces: Option<Box<Pieces>>,
    delivery: Delivery,
    last_sent_at: Option<Time>,

    /// By TCP's segments, or QUIC's packet numbers.
    episode: Episode,
    prr: Option<Prr>,
    /// Whether the window holds in this episode, as its controller requests: PRR lowers what is in flight on
    /// TCP, and on QUIC nothing is sent until the window allows it.
    held: bool,
    forced: Forced,
    cwr_pending: bool,
    marks: MarkTotals,

    /// What the window was used for, by segments.
    usage: Usage,
    /// Whether something was sent since the sender last had to stop.
    burst: bool,
    /// Whether nothing changed since the sender last had to stop.
    halted: bool,
    /// The earliest deadline as of then.
    wake_at: Time,
    pace_at: Time,
    /// The controller's window, pacing rate and timer, as of its last event.
    cwnd: u64,
    rate: Option<Rate>,
    controller_at: Time,
    /// Whether a packet that leaves may change them.
    decides_on_send: bool,
    /// Whether the controller, or the host itself, must see each packet that is acknowledged.
    lists_acked: bool,
    /// TCP: whether the tail loss probe must be set anew once the sender stops.
    probe_stale: bool,

    tcp: tcp::Tcp,
    quic: quic::Quic,
    sack1: sack1::Sack1,

    /// Packets declared lost that the controller has not heard of.
    lost: Vec<PacketInfo>,
    /// Newly covered ranges of the current ACK, kept for its memory.
    fresh: Vec<Range>,
    rtt_sample: Option<Duration>,
    counters: Counters,
    /// The stages of the controller, if they are recorded.
    stages: Option<Box<Stages>>,
}

impl Sender {
    pub(super) fn new(
        host: Host,
        controller: Box<AnyController>,
        connection: &Connection,
        pacing_burst: u32,
    ) -> Self {
        let mss = connection.mss.0;
        let pacing_burst = u64::from(pacing_burst) * mss;
        let (rtt, pacer) = match host {
            Host::Tcp | Host::Ns2 => (RttEstimator::tcp(), Pacer::tcp()),
            Host::Quic => (RttEstimator::quic(), Pacer::quic(pacing_burst, connection.now)),
        };
        let mut sender = Sender {
            host,
            mss,
            decides_on_send: controller.decides_on_send(),
            lists_acked: host == Host::Quic || controller.reads_acked(),
            controller,
            rtt,
            pacer,
            pacing_burst,
            transmissions: Ring::default(),
            tags: Tags::default(),
            segments: Ring::default(),
            known: RangeSet::default(),
            lost_queue: VecDeque::new(),
            oldest: 0,
            unsent: 0,
            pieces: None,
            delivery: Delivery::new(connection.now),
            last_sent_at: None,
            episode: Episode::default(),
            prr: None,
            held: false,
            forced: Forced::None,
            cwr_pending: false,
            marks: MarkTotals::default(),
            usage: Usage::default(),
            burst: false,
            halted: false,
            wake_at: Time::MAX,
            pace_at: Time::MAX,
            cwnd: 0,
            rate: None,
            controller_at: Time::MAX,
            probe_stale: false,
            tcp: tcp::Tcp::default(),
            quic: quic::Quic::default(),
            sack1: sack1::Sack1::default(),
            lost: Vec::new(),
            fresh: Vec::new(),
            rtt_sample: None,
            counters: Counters::default(),
            stages: None,
        };
        sender.note_controller();
        sender
    }

    /// Returns the sender, which keeps the stages of its controller if `recorded`.
    pub(super) fn with_stages(mut self, recorded: bool) -> Self {
        self.stages = recorded.then(Box::default);
        self
    }

    /// Returns the stages of the controller until `now`.
    pub(super) fn stages(&self, now: Time) -> BTreeMap<String, f64> {
        self.stages.as_ref().map(|stages| stages.outcome(now)).unwrap_or_default()
    }

    /// Notes in which stage the controller is after an ACK.
    #[cold]
    fn note_stage(&mut self, now: Time) {
        if let (Some(stages), Some(stage)) = (&mut self.stages, self.controller.stage()) {
            let inflight = self.delivery.inflight() as f64;
            stages.note(now, stage, inflight, &*self.controller);
        }
    }

    // What the application and the host may ask.

    pub(super) fn controller(&self) -> &AnyController {
        &self.controller
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The number the next packet will have.
    pub(super) fn next_number(&self) -> u32 {
        self.transmissions.end()
    }

    pub(super) fn inflight(&self) -> Bytes {
        Bytes(self.delivery.inflight())
    }

    pub(super) fn smoothed_rtt(&self) -> Option<Duration> {
        self.rtt.measured()
    }

    /// The sender as it stands.
    pub(super) fn view(&self) -> SenderView {
        SenderView {
            cwnd: self.controller.cwnd(),
            pacing_rate: self.controller.pacing_rate().and_then(Rate::paced),
            inflight: self.inflight(),
            rtt: self.rtt.has_sample().then(|| self.rtt.told(Some(self.rtt.latest()))),
            delivered_bytes: self.delivery.delivered(),
            recovery: self.episode.state(self.held),
            app_limited: self.delivery.is_app_limited(),
            ..self.counters.view()
        }
    }

    /// The newest RTT sample, once.
    pub(super) fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.rtt_sample.take()
    }

    /// How fast the controller lets the application send: its rate of media, or else its pacing rate, or its
    /// window per smoothed RTT.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.controller
            .media_rate()
            .or_else(|| self.controller.pacing_rate().and_then(Rate::paced))
            .or_else(|| Some(Rate::over(self.controller.cwnd(), self.smoothed_rtt()?)))
    }

    /// Adds payload to send.
    pub(super) fn write(&mut self, size: Bytes) {
        self.halted = false;
        self.unsent = self.unsent.saturating_add(size.0);
    }

    /// Payload that was written and never sent.
    pub(super) fn unsent(&self) -> Bytes {
        Bytes(self.unsent)
    }

    /// What is sent for the first time from now on has at most `mss` bytes.
    pub(super) fn set_mss(&mut self, mss: Bytes) {
        self.halted = false;
        self.mss = mss.0;
        self.controller.on_mtu_change(mss);
        self.note_controller();
    }

    /// Forgets what was never sent.
    pub(super) fn discard_unsent(&mut self) {
        self.unsent = 0;
        if let Some(pieces) = &mut self.pieces {
            pieces.clear();
        }
    }

    /// Whether everything written was sent and acknowledged.
    pub(super) fn is_done(&self) -> bool {
        self.unsent == 0 && self.segments.is_empty()
    }

    // Timers.

    /// The earliest thing that must happen though no packet arrives.
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        if self.halted { self.wake_at } else { self.next_timer() }
    }

    /// The earliest of the timers.
    #[inline]
    fn next_timer(&self) -> Time {
        let recovery = match self.host {
            Host::Tcp => self.tcp.deadline(),
            Host::Quic => self.quic.deadline(),
            Host::Ns2 => self.sack1.deadline(),
        };
        recovery.min(self.pace_at).min(self.controller_at)
    }

    /// Acts on every timer due by `now`, except pacing, which [`Sender::next`] looks at.
    #[inline(never)]
    pub(super) fn on_deadline(&mut self, now: Time) {
        self.halted = false;
        // A controller's timer that asks for the past again would never end; it gets one call per moment.
        if self.controller_at <= now {
            self.controller.on_timer(now);
            self.note_controller();
            if self.controller_at <= now {
                self.controller_at = now + Duration::from_nanos(1);
            }
        }
        match self.host {
            Host::Tcp => self.on_tcp_deadline(now),
            Host::Quic => self.on_quic_deadline(now),
            Host::Ns2 => self.on_sack1_deadline(now),
        }
    }

    /// Changes a controller that is driven from outside.
    pub(super) fn drive(
        &mut self,
        change: &impl Fn(&mut External) -> Result<(), ParameterError>,
    ) -> Result<(), ParameterError> {
        if let Some(external) = self.controller.external_mut() {
            change(external)?;
            self.halted = false;
            self.note_controller();
        }
        Ok(())
    }

    /// Takes over what the controller wants after an event.
    #[inline]
    fn note_controller(&mut self) {
        let Decision { cwnd, pacing_rate, next_timer } = self.controller.decision();
        self.cwnd = cwnd.0;
        self.rate = pacing_rate;
        self.controller_at = next_timer.unwrap_or(Time::MAX);
        if self.host == Host::Quic {
            self.limit_burst();
        }
    }

    /// Takes over how much the controller lets leave together.
    #[inline(never)]
    fn limit_burst(&mut self) {
        self.pacer.limit_burst(most_together(&*self.controller, self.pacing_burst, self.mss));
    }

    /// Drops what no later ACK can speak of.
    #[inline]
    fn retire(&mut self) {
        let waits = self.transmissions.front().is_some_and(|front| front.state() == State::Outstanding);
        if !waits || self.host == Host::Quic {
            self.retire_settled();
        }
        self.oldest = self.oldest.max(self.transmissions.base());
    }

    #[inline(never)]
    fn retire_settled(&mut self) {
        if self.host == Host::Quic {
            while self.segments.front().is_some_and(|segment| segment.delivered) {
                self.segments.pop_front();
            }
        }
        while let Some(front) = self.transmissions.front() {
            let settled = match front.state() {
                State::Acked => true,
                State::Outstanding => false,
                State::Lost | State::Superseded => {
                    self.segments.get(front.segment).is_none_or(|segment| segment.delivered)
                }
            };
            if !settled {
                break;
            }
            self.transmissions.pop_front();
        }
        // While losses were repaired, all that was sent since had to wait here.
        self.transmissions.trim();
        self.segments.trim();
        if self.host == Host::Quic {
            self.known.remove_below(self.transmissions.base());
        }
    }
}

#[cfg(test)]
mod tests;
