//! TCP's timers: the tail loss probe (RFC 8985 section 7) and the retransmission timeout (RFC 6298). Formulas
//! and deviations: see the head of `tcp`.

use brakelight_core::controller::{Controller, Timeout, TimeoutEvent};
use brakelight_core::sender::Phase;
use brakelight_core::time::{Duration, Time};

use super::ack::Acked;
use super::scoreboard::State;
use super::tcp::INITIAL_RTO;
use super::{Forced, Sender};

/// rfc8985 7.2: room for a delayed ACK; Linux 6.12 tcp_output.c, tcp_schedule_loss_probe, takes its smallest
/// RTO.
const PROBE_ACK_DELAY: Duration = Duration::from_millis(200);
/// rfc8985 7.2; Linux 6.12 tcp.h, TCP_TIMEOUT_MIN at 1000 Hz
const PROBE_SLACK: Duration = Duration::from_millis(2);

impl Sender {
    /// A packet left.
    #[inline]
    pub(super) fn sent_tcp(&mut self, now: Time) {
        if self.tcp.rto_at == Time::MAX && self.tcp.probe_at == Time::MAX {
            self.tcp.rto_at = now + self.rto();
        }
    }

    /// A segment leaves again. The timeout of the segment at `snd_una` starts over (Linux 6.12 tcp_output.c,
    /// tcp_xmit_retransmit_queue).
    pub(super) fn retransmitted_tcp(&mut self, now: Time, segment: u32) {
        self.tcp.retransmitted(now);
        if segment == self.segments.base() {
            self.tcp.rto_at = now + self.rto();
            self.tcp.probe_at = Time::MAX;
        }
    }

    /// When the timeout is due that counts from the last time the segment at `snd_una` was sent.
    fn timeout_of_first(&self, now: Time) -> Time {
        let first = self.segments.front().map_or(now, |first| self.transmissions[first.latest].sent_at);
        (first + self.rto()).max(now + Duration::from_nanos(1))
    }

    /// After an ACK that said something new, or after a burst: sets the tail loss probe in place of the
    /// timeout where one is allowed (rfc8985 7.2).
    pub(super) fn rearm_probe(&mut self, now: Time) {
        let first = self.segments.base();
        let wanted = !self.episode.is_repairing()
            && self.known.is_empty()
            && self.tcp.probe.is_none()
            && !self.segments.is_empty();
        if wanted {
            let one = self.segments.end() - first == 1;
            let wait = match self.smoothed_rtt() {
                Some(srtt) => srtt * 2 + if one { PROBE_ACK_DELAY } else { PROBE_SLACK },
                None => INITIAL_RTO,
            };
            // Where the timeout would come first, the probe takes its moment.
            self.tcp.probe_at = (now + wait).min(self.timeout_of_first(now));
            self.tcp.rto_at = Time::MAX;
        } else if self.tcp.probe_at != Time::MAX {
            // Linux 6.12 tcp_input.c, tcp_rearm_rto: the time that passed under the probe's timer counts.
            self.tcp.rto_at = self.timeout_of_first(now);
            self.tcp.probe_at = Time::MAX;
        }
    }

    pub(super) fn rearm_tcp(&mut self, now: Time, sum: &Acked) {
        if self.segments.is_empty() {
            self.tcp.rto_at = Time::MAX;
            self.tcp.probe_at = Time::MAX;
            self.tcp.reorder_at = Time::MAX;
            return;
        }
        self.probe_stale |= sum.advanced || sum.sacked;
        // rfc6298 5.3; while a probe is set it stands for the timeout.
        if sum.advanced && self.tcp.probe_at == Time::MAX {
            self.tcp.rto_at = now + self.rto();
        }
    }

    pub(super) fn on_tcp_deadline(&mut self, now: Time) {
        if self.tcp.reorder_at <= now {
            self.detect_losses(now);
        }
        if self.tcp.rto_at <= now {
            self.on_rto(now);
        }
        if self.tcp.probe_at <= now {
            self.tcp.probe_at = Time::MAX;
            self.forced = Forced::Tail;
            self.counters.tail_probes += 1;
            // rfc8985 7.3: the timeout starts over from the probe.
            self.tcp.rto_at = now + self.rto();
        }
    }

    /// rfc6298 5.4 to 5.7, rfc5681 3.1, rfc8985 6.3
    fn on_rto(&mut self, now: Time) {
        let inflight = self.inflight();
        // Linux 6.12 tcp_input.c, tcp_enter_loss: an episode that already reduced the threshold is not
        // reduced again.
        let phase = self.episode.phase();
        let unfinished = self.episode.covers(u64::from(self.segments.base()));
        let reduced = match phase {
            Phase::Open => false,
            Phase::Reduced | Phase::Recovery => unfinished,
            Phase::Loss => unfinished || self.tcp.timeouts > 0,
        };
        let repeated = reduced && (phase != Phase::Loss || self.tcp.timeouts > 0);
        let fresh = !self.episode.is_repairing();
        let first = self.segments.base();
        for number in self.oldest.max(self.transmissions.base())..self.transmissions.end() {
            let entry = &self.transmissions[number];
            // rfc8985 6.3: the first segment, and what has been out for a round trip.
            let expired = entry.segment == first || entry.sent_at + self.tcp.rack_rtt <= now;
            if entry.state() == State::Outstanding && expired {
                self.mark_lost(number);
            }
        }
        self.requeue_lost();
        if !repeated {
            self.begin_undo(true);
        }
        self.controller.on_timeout(&TimeoutEvent { now, kind: Timeout::Rto, inflight, repeated });
        self.note_controller();
        self.counters.timeouts += 1;
        self.tcp.frto = fresh || self.tcp.timeouts > 0;
        self.tcp.timeouts += 1;
        self.tcp.backoff += 1;
        self.episode.begin(Phase::Loss, u64::from(self.segments.end()));
        self.prr = None;
        self.tcp.probe = None;
        self.tcp.prefer_new = false;
        self.tcp.probe_at = Time::MAX;
        self.tcp.reorder_at = Time::MAX;
        self.tcp.rto_at = now + self.rto();
        self.forced = Forced::Head;
    }

    /// After a timeout the stream is repaired from `snd_una`.
    fn requeue_lost(&mut self) {
        self.lost_queue.clear();
        for segment in self.segments.base()..self.segments.end() {
            let entry = self.segments[segment];
            if !entry.delivered && self.transmissions[entry.latest].state() == State::Lost {
                self.lost_queue.push_back(segment);
            }
        }
    }
}
