//! The sending end of a connection: what to send next, and when.
//!
//! | file | holds |
//! |---|---|
//! | `scoreboard` | what was sent and what became of it |
//! | `ack` | what an ACK does, common to both profiles, and the events it makes for the controller |
//! | `tcp` | RACK-TLP, RTO with F-RTO, undo |
//! | `quic` | RFC 9002: packet and time thresholds, PTO, persistent congestion |
//! | `prr` | what may be in flight while TCP repairs losses |

mod ack;
mod prr;
mod quic;
mod scoreboard;
mod tcp;

use std::collections::VecDeque;

use brakelight_core::controller::{
    Connection, Controller, IdleEvent, LossEvent, PacketInfo, Recovery, Rtt, SendDirective, SendEvent,
};
use brakelight_core::feedback::MarkTotals;
use brakelight_core::registry::{AnyController, Host};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::Counters;
use super::pacer::Pacer;
use super::ranges::{Range, RangeSet};
use super::ring::Ring;
use super::rtt::RttEstimator;
use prr::Prr;
use scoreboard::{Segment, State, Transmission};

/// RTT assumed before the first sample: RFC 6298's initial RTO stands for TCP's.
const TCP_INITIAL_RTT: Duration = Duration::from_secs(1);
/// rfc9002 6.2.2
const QUIC_INITIAL_RTT: Duration = Duration::from_millis(333);

/// Where the sender stands between two congestion episodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// No episode.
    Open,
    /// A CE mark was answered; nothing is lost. Linux calls it CWR.
    Reduced,
    /// Losses are being repaired.
    Recovery,
    /// A timeout is being repaired.
    Loss,
}

/// Packets that leave whatever the window says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Forced {
    None,
    /// The first lost segment: TCP's after a timeout, QUIC's at the start of an episode.
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

    transmissions: Ring<Transmission>,
    segments: Ring<Segment>,
    /// TCP: segments above the left edge that were SACKed. QUIC: packet numbers that were acknowledged.
    known: RangeSet,
    /// Segments to send again, in the order they were declared lost.
    lost_queue: VecDeque<u32>,
    /// Every transmission below is settled: acknowledged, lost or superseded.
    oldest: u32,

    /// Payload the application has asked for and that was never sent; `u64::MAX` without end.
    unsent: u64,
    inflight: u64,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    total_lost: u64,
    /// Deliveries up to here were of packets sent while the application was the limit.
    app_limited_until: u64,
    round: u64,
    round_end: u64,
    last_sent_at: Option<Time>,

    phase: Phase,
    /// TCP: the segment, QUIC: the packet number whose acknowledgement ends the episode.
    recovery_end: u32,
    prr: Option<Prr>,
    forced: Forced,
    cwr_pending: bool,
    marks: MarkTotals,

    /// Whether the window stopped the sender in this round trip, and the most it had in flight (Linux,
    /// `tcp_cwnd_validate`).
    window_limited: bool,
    max_inflight: u64,
    usage_end: u32,
    /// Whether something was sent since the sender last had to stop.
    burst: bool,
    /// Whether nothing changed since the sender last had to stop.
    halted: bool,
    pace_at: Time,
    /// The controller's window and timer, as of its last event.
    cwnd: u64,
    controller_at: Time,
    /// TCP: whether the tail loss probe must be set anew once the sender stops.
    probe_stale: bool,

    tcp: tcp::Tcp,
    quic: quic::Quic,

    // Lists of the current ACK, kept for their memory.
    acked: Vec<PacketInfo>,
    lost: Vec<PacketInfo>,
    fresh: Vec<Range>,
    rtt_sample: Option<Duration>,
    counters: Counters,
}

impl Sender {
    pub(super) fn new(host: Host, controller: Box<AnyController>, connection: &Connection) -> Self {
        let mss = connection.mss.0;
        let (rtt, pacer) = match host {
            Host::Tcp => (RttEstimator::new(TCP_INITIAL_RTT, tcp::MIN_RTO), Pacer::tcp()),
            Host::Quic => (RttEstimator::new(QUIC_INITIAL_RTT, Duration::ZERO), Pacer::quic(mss)),
        };
        let mut sender = Sender {
            host,
            mss,
            controller,
            rtt,
            pacer,
            transmissions: Ring::default(),
            segments: Ring::default(),
            known: RangeSet::default(),
            lost_queue: VecDeque::new(),
            oldest: 0,
            unsent: 0,
            inflight: 0,
            delivered: 0,
            delivered_at: connection.now,
            first_sent_at: connection.now,
            total_lost: 0,
            app_limited_until: 0,
            round: 0,
            round_end: 0,
            last_sent_at: None,
            phase: Phase::Open,
            recovery_end: 0,
            prr: None,
            forced: Forced::None,
            cwr_pending: false,
            marks: MarkTotals::default(),
            window_limited: false,
            max_inflight: 0,
            usage_end: 0,
            burst: false,
            halted: false,
            pace_at: Time::MAX,
            cwnd: 0,
            controller_at: Time::MAX,
            probe_stale: false,
            tcp: tcp::Tcp::default(),
            quic: quic::Quic::default(),
            acked: Vec::new(),
            lost: Vec::new(),
            fresh: Vec::new(),
            rtt_sample: None,
            counters: Counters::default(),
        };
        sender.note_controller();
        sender
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
        Bytes(self.inflight)
    }

    pub(super) fn smoothed_rtt(&self) -> Option<Duration> {
        self.rtt.has_sample().then(|| self.rtt.smoothed())
    }

    /// The newest RTT sample, once.
    pub(super) fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.rtt_sample.take()
    }

    /// How fast the controller lets the flow send: its pacing rate, or its window per smoothed RTT.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.controller
            .pacing_rate()
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

    /// Forgets what was never sent.
    pub(super) fn discard_unsent(&mut self) {
        self.unsent = 0;
    }

    /// Whether everything written was sent and acknowledged.
    pub(super) fn is_done(&self) -> bool {
        self.unsent == 0 && self.segments.is_empty()
    }

    // Timers.

    /// The earliest thing that must happen though no packet arrives.
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        let recovery = match self.host {
            Host::Tcp => self.tcp.deadline(),
            Host::Quic => self.quic.deadline(),
        };
        recovery.min(self.pace_at).min(self.controller_at)
    }

    /// Acts on every timer due by `now`, except pacing, which [`Sender::poll`] looks at.
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
        }
    }

    /// Takes over what the controller wants after an event.
    #[inline]
    fn note_controller(&mut self) {
        self.cwnd = self.controller.cwnd().0;
        self.controller_at = self.controller.next_timer().unwrap_or(Time::MAX);
    }

    // Sending.

    /// What may be in flight.
    #[inline]
    fn window(&self) -> u64 {
        match &self.prr {
            Some(prr) => prr.window(),
            None => self.cwnd,
        }
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        let rate = self.controller.pacing_rate();
        if rate.is_some() || self.host == Host::Tcp {
            return rate;
        }
        // rfc9002 7.7
        let bytes = self.controller.cwnd().as_f64();
        Some(Rate::from_bps_f64(1.25 * 8.0 * bytes / self.rtt.smoothed().as_secs_f64()))
    }

    /// The next packet, if one may leave now.
    #[inline]
    pub(super) fn poll(&mut self, now: Time) -> Option<Outgoing> {
        if self.halted {
            return None;
        }
        let outgoing = self.poll_unhalted(now);
        self.halted = outgoing.is_none();
        outgoing
    }

    fn poll_unhalted(&mut self, now: Time) -> Option<Outgoing> {
        self.pace_at = Time::MAX;
        if self.forced != Forced::None
            && let Some(outgoing) = self.poll_forced(now)
        {
            return Some(outgoing);
        }
        let retransmission = match self.next_lost() {
            Some(segment) if !(self.tcp.prefers_new() && self.unsent > 0) => Some(segment),
            _ => None,
        };
        let size = match retransmission {
            Some(segment) => u64::from(self.segments[segment].size),
            None => self.unsent.min(self.mss),
        };
        if size == 0 {
            self.stopped(now, false);
            if self.inflight < self.window() {
                // draft-ietf-ccwg-bbr 4.1.2.4: what leaves from now on says little about the path.
                self.app_limited_until = (self.delivered + self.inflight).max(1);
            }
            return None;
        }
        // One packet may always be out: a window below one packet would wait for an ACK that never comes.
        if self.inflight + size > self.window() && self.inflight > 0 {
            self.stopped(now, true);
            return None;
        }
        let rate = self.pacing_rate();
        if let Some(rate) = rate {
            let at = self.pacer.ready_at(size, rate);
            if at > now {
                self.pace_at = at;
                // rfc9002 7.8: a sender that only waits for its pacer counts as limited by its window.
                self.stopped(now, self.host == Host::Quic);
                return None;
            }
        }
        Some(match retransmission {
            Some(segment) => {
                self.lost_queue.pop_front();
                self.emit(now, Some(segment), size, rate)
            }
            None => self.emit(now, None, size, rate),
        })
    }

    fn poll_forced(&mut self, now: Time) -> Option<Outgoing> {
        let forced = self.forced;
        self.forced = match forced {
            Forced::Probes(count) if count > 1 => Forced::Probes(count - 1),
            _ => Forced::None,
        };
        let lost = self.next_lost();
        let segment = match forced {
            Forced::None => return None,
            Forced::Head => Some(lost?),
            Forced::Tail | Forced::Probes(_) if self.unsent > 0 => None,
            // rfc8985 7.3: the highest segment.
            Forced::Tail => Some(self.highest_unsacked()?),
            // rfc9002 6.2.4: lost data first, or else what left longest ago.
            Forced::Probes(_) => Some(lost.or_else(|| self.oldest_undelivered())?),
        };
        if segment.is_some() && segment == lost {
            self.lost_queue.pop_front();
        }
        let size = match segment {
            Some(segment) => u64::from(self.segments[segment].size),
            None => self.unsent.min(self.mss),
        };
        if forced == Forced::Tail {
            self.tcp.probe_sent(segment, self.segments.end());
        }
        let rate = self.pacing_rate();
        Some(self.emit(now, segment, size, rate))
    }

    /// The first segment that is lost and not yet sent again.
    #[inline]
    fn next_lost(&mut self) -> Option<u32> {
        while let Some(&segment) = self.lost_queue.front() {
            if let Some(entry) = self.segments.get(segment)
                && !entry.delivered
                && self.transmissions[entry.latest].state == State::Lost
            {
                return Some(segment);
            }
            self.lost_queue.pop_front();
        }
        None
    }

    fn highest_unsacked(&self) -> Option<u32> {
        (self.segments.base()..self.segments.end()).rev().find(|&segment| !self.segments[segment].delivered)
    }

    fn oldest_undelivered(&self) -> Option<u32> {
        (self.segments.base()..self.segments.end())
            .filter(|&segment| !self.segments[segment].delivered)
            .min_by_key(|&segment| self.segments[segment].latest)
    }

    /// Sends `segment` again, or `size` new bytes, paced at `rate`.
    fn emit(&mut self, now: Time, segment: Option<u32>, size: u64, rate: Option<Rate>) -> Outgoing {
        let number = self.transmissions.end();
        let retransmission = segment.is_some();
        if self.inflight == 0 {
            self.restart_after_idle(now);
            // draft-ietf-ccwg-bbr 4.1.2.2
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        let app_limited = self.app_limited_until > self.delivered;
        let mut directive = self.controller.on_send(&SendEvent {
            now,
            size: Bytes(size),
            number: u64::from(number),
            retransmission,
            inflight: Bytes(self.inflight),
            app_limited,
            srtt: self.smoothed_rtt(),
        });
        if let Some(rate) = rate {
            self.pacer.sent(now, size, rate);
        }
        let segment = match segment {
            Some(segment) => {
                self.supersede(now, segment, number);
                segment
            }
            None => {
                if self.unsent != u64::MAX {
                    self.unsent -= size;
                }
                directive.cwr |= std::mem::take(&mut self.cwr_pending);
                let segment = self.segments.end();
                self.segments.push(Segment {
                    latest: number,
                    size: size as u16,
                    delivered: false,
                    retransmitted: false,
                });
                segment
            }
        };
        self.inflight += size;
        self.transmissions.push(Transmission {
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: self.total_lost,
            tag: directive.tag,
            inflight: self.inflight as u32,
            segment,
            size: size as u16,
            state: State::Outstanding,
            app_limited,
            retransmission,
        });
        if let Some(prr) = &mut self.prr {
            prr.sent(size);
        }
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += size;
        self.burst = true;
        self.last_sent_at = Some(now);
        match self.host {
            Host::Tcp => self.sent_tcp(now),
            Host::Quic => self.sent_quic(now),
        }
        self.note_controller();
        Outgoing { number, segment, size: size as u16, directive }
    }

    /// Notes that `segment` leaves again as transmission `number`.
    fn supersede(&mut self, now: Time, segment: u32, number: u32) {
        let entry = &mut self.segments[segment];
        let before = std::mem::replace(&mut entry.latest, number);
        entry.retransmitted = true;
        self.counters.retransmitted_packets += 1;
        self.counters.retransmitted_bytes += u64::from(entry.size);
        if self.host == Host::Tcp {
            self.retransmitted_tcp(now, segment);
            let old = &mut self.transmissions[before];
            if old.state == State::Outstanding {
                old.state = State::Superseded;
                self.inflight -= u64::from(old.size);
                let was_retransmission = old.retransmission;
                self.tcp.left_flight(was_retransmission);
            }
        }
    }

    fn restart_after_idle(&mut self, now: Time) {
        let Some(last) = self.last_sent_at else { return };
        let idle = now.since(last);
        let rto = match self.host {
            Host::Tcp => self.rto(),
            Host::Quic => self.pto(),
        };
        // rfc5681 4.1; Linux, tcp_slow_start_after_idle_check: nothing is outstanding at all.
        if self.segments.is_empty() && idle > rto {
            self.controller.on_idle_restart(&IdleEvent { now, idle, rto });
            self.note_controller();
        }
    }

    /// The sender has to stop; `by_window` tells why.
    #[inline]
    fn stopped(&mut self, now: Time, by_window: bool) {
        if self.burst || by_window {
            // Linux, tcp_cwnd_validate: what the window was used for is judged over one round trip.
            let una = self.segments.base();
            if by_window
                || una >= self.usage_end
                || (!self.window_limited && self.inflight > self.max_inflight)
            {
                self.window_limited = by_window;
                self.max_inflight = self.inflight;
                self.usage_end = self.segments.end();
            }
        }
        if (self.burst || self.probe_stale) && self.host == Host::Tcp {
            self.rearm_probe(now);
        }
        self.burst = false;
        self.probe_stale = false;
    }

    /// Whether the window may grow (Linux, tcp_is_cwnd_limited): in slow start it may be up to twice what was used.
    fn is_cwnd_limited(&self) -> bool {
        if self.window_limited {
            return true;
        }
        self.cwnd < 2 * self.max_inflight
            && self.controller.ssthresh().is_some_and(|ssthresh| self.cwnd < ssthresh.0)
    }

    // Episodes.

    fn mark_lost(&mut self, number: u32) {
        let entry = &mut self.transmissions[number];
        debug_assert_eq!(entry.state, State::Outstanding);
        entry.state = State::Lost;
        let size = u64::from(entry.size);
        self.inflight -= size;
        self.total_lost += size;
        self.counters.lost_packets += 1;
        let info = entry.info(number);
        let (segment, retransmission) = (entry.segment, entry.retransmission);
        self.lost.push(info);
        if self.host == Host::Tcp {
            self.tcp.left_flight(retransmission);
        }
        if let Some(entry) = self.segments.get(segment)
            && !entry.delivered
            && entry.latest == number
        {
            self.lost_queue.push_back(segment);
        }
    }

    /// Tells the controller that an episode begins, and lets PRR take over where it may.
    fn begin_episode(&mut self, now: Time, by_mark: bool, lost: u64) {
        let prior = self.controller.cwnd().0;
        let prr = self.host == Host::Tcp && self.controller.recovery() == Recovery::Prr;
        let sent_at = match self.lost.last() {
            Some(info) if !by_mark => info.sent_at,
            _ => self.last_acked_sent_at(),
        };
        let event = LossEvent {
            now,
            sent_at,
            inflight: Bytes(self.inflight + lost),
            lost: Bytes(lost),
            srtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min(),
        };
        if by_mark {
            self.controller.on_ce(&event);
            self.cwr_pending = true;
        } else {
            self.controller.on_loss(&event);
        }
        self.note_controller();
        self.prr = prr.then(|| Prr::new(prior, self.inflight));
    }

    fn last_acked_sent_at(&self) -> Time {
        self.acked.last().map_or(self.first_sent_at, |info| info.sent_at)
    }

    fn end_episode(&mut self, now: Time) {
        self.phase = Phase::Open;
        self.prr = None;
        self.controller.on_recovery_exit(now);
        self.note_controller();
    }

    fn rtt(&self, sample: Option<Duration>) -> Rtt {
        Rtt { sample, smoothed: self.rtt.smoothed(), variation: self.rtt.variation(), min: self.rtt.min() }
    }

    /// Drops what no later ACK can speak of.
    #[inline]
    fn retire(&mut self) {
        if self.host == Host::Quic {
            while self.segments.front().is_some_and(|segment| segment.delivered) {
                self.segments.pop_front();
            }
        }
        while let Some(front) = self.transmissions.front() {
            let settled = match front.state {
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
        let base = self.transmissions.base();
        self.oldest = self.oldest.max(base);
        if self.host == Host::Quic {
            self.known.remove_below(base);
        }
    }
}
