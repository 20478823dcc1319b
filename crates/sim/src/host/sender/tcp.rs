//! TCP's loss recovery: RACK-TLP (RFC 8985), the retransmission timeout (RFC 6298) with F-RTO (RFC 5682), and
//! undoing what turns out to be a mistake (Eifel, RFC 3522 and 4015; DSACK, RFC 3708), in the shape of
//! Linux 6.12 tcp_input.c and tcp_recovery.c.
//!
//! ```text
//! lost:       sent before the newest delivered packet, and sent_at + rack_rtt + reo_wnd <= now  rfc8985 6.2
//! reo_wnd:    0 while no reordering was seen and (>= 3 segments are SACKed or losses are being repaired),
//!             else min(mult * min_rtt / 4, srtt); a DSACK per round trip raises mult by 1, 16 recoveries
//!             without one return it to 1                                                        rfc8985 6.2
//! episode:    ends when all that was sent before it is acknowledged; where a segment sent since is known to
//!             be lost, the next begins at once
//!                                                                Linux 6.12 tcp_input.c, tcp_time_to_recover
//! probe:      2 srtt (+ 200 ms while one packet is out, + 2 ms else) after the last send or ACK, or when the
//!             RTO of the first segment is due, whichever is earlier; in place of the RTO, while nothing is
//!             SACKed and no losses are repaired                                                  rfc8985 7.2
//! RTO:        srtt + rttvar, doubled per timeout, 120 s at most; 1 s before the first sample    rfc6298 2, 5
//! ```
//!
//! Deviations:
//! - D1 The reordering timer runs to the first segment that will count as lost, not to the last: each is
//!   declared at its own moment, at most the spread of their sending times earlier than RFC 8985 has it.
//! - D2 A tail loss probe that repeats a segment replaces it in the count of bytes in flight; Linux 6.12
//!   tcp_output.c, tcp_send_loss_probe, counts both.
//! - D3 A receiver never discards what it SACKed (no reneging).

use brakelight_core::controller::{Controller, SpuriousEvent};
use brakelight_core::sender::Phase;
use brakelight_core::time::{Duration, Time};

use super::super::acks::{AckBody, Sack};
use super::super::ranges::Range;
use super::Sender;
use super::ack::{Acked, Newest};
use super::scoreboard::State;

/// rfc6298 2.4; Linux 6.12 tcp.h, TCP_RTO_MAX
const MAX_RTO: Duration = Duration::from_secs(120);
/// rfc6298 2.1
pub(super) const INITIAL_RTO: Duration = Duration::from_secs(1);
/// rfc5681 2
const DUP_THRESHOLD: u32 = 3;
/// rfc8985 6.2: recoveries for which a widened reordering window is kept.
const REO_PERSIST: u8 = 16;

/// State of TCP's loss recovery.
#[derive(Clone, Debug)]
pub(super) struct Tcp {
    /// The packet sent last among those delivered, and its RTT.
    pub(super) rack: Option<u32>,
    pub(super) rack_rtt: Duration,
    /// One past the highest segment delivered.
    pub(super) fack: u32,
    pub(super) reordering_seen: bool,
    pub(super) reo_mult: u64,
    pub(super) reo_persist: u8,
    /// While a DSACK's round trip lasts: the segment that ends it.
    pub(super) dsack_round: Option<u32>,
    pub(super) reorder_at: Time,

    pub(super) rto_at: Time,
    pub(super) backoff: u32,
    /// Timeouts since `snd_una` last advanced.
    pub(super) timeouts: u32,
    pub(super) probe_at: Time,
    /// While a tail loss probe is out: the segment count when it left, and the segment it repeated.
    pub(super) probe: Option<(u32, Option<u32>)>,

    /// Whether the episode can still be undone.
    pub(super) undoable: bool,
    /// Retransmissions of the episode that no DSACK has called needless; negative when there was none yet.
    pub(super) undo_retransmits: i32,
    pub(super) undo_timeout: bool,
    /// When the episode's first retransmission left.
    pub(super) retransmit_stamp: Option<Time>,
    /// Retransmissions in flight.
    pub(super) retransmits_out: u32,
    /// Whether an episode ended while segments sent after its beginning were already known to be lost.
    pub(super) lost_since: bool,
    pub(super) frto: bool,
    /// F-RTO's second step: new data before retransmissions.
    pub(super) prefer_new: bool,
}

impl Default for Tcp {
    fn default() -> Self {
        Tcp {
            rack: None,
            rack_rtt: Duration::ZERO,
            fack: 0,
            reordering_seen: false,
            reo_mult: 1,
            reo_persist: 0,
            dsack_round: None,
            reorder_at: Time::MAX,
            rto_at: Time::MAX,
            backoff: 0,
            timeouts: 0,
            probe_at: Time::MAX,
            probe: None,
            undoable: false,
            undo_retransmits: -1,
            undo_timeout: false,
            retransmit_stamp: None,
            retransmits_out: 0,
            lost_since: false,
            frto: false,
            prefer_new: false,
        }
    }
}

impl Tcp {
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.reorder_at.min(self.rto_at).min(self.probe_at)
    }

    #[inline]
    pub(super) fn prefers_new(&self) -> bool {
        self.prefer_new
    }

    /// A segment leaves again.
    pub(super) fn retransmitted(&mut self, now: Time) {
        self.retransmit_stamp.get_or_insert(now);
        self.undo_retransmits = self.undo_retransmits.max(0) + 1;
        self.retransmits_out += 1;
    }

    /// A packet was delivered, lost or replaced.
    #[inline]
    pub(super) fn left_flight(&mut self, retransmission: bool) {
        if retransmission {
            self.retransmits_out -= 1;
        }
    }

    /// A tail loss probe leaves: `segment` again, or new data.
    pub(super) fn probe_sent(&mut self, segment: Option<u32>, next: u32) {
        self.probe = Some((next, segment));
    }

    pub(super) fn backoff_ends(&mut self) {
        self.backoff = 0;
    }

    /// Whether an undo is due: each retransmission was needless, or the ACK answers what was sent before any
    /// of them.
    fn may_undo(&self, ack: &AckBody) -> bool {
        self.undoable && (self.undo_retransmits == 0 || self.answers_original(ack))
    }

    /// Eifel (rfc3522 3.2): the echoed timestamp is older than the first retransmission.
    fn answers_original(&self, ack: &AckBody) -> bool {
        self.retransmit_stamp.is_some_and(|stamp| ack.echoed < stamp)
    }
}

impl Sender {
    /// The retransmission timeout with its backoff.
    pub(super) fn rto(&self) -> Duration {
        let base = self.rtt.rto().unwrap_or(INITIAL_RTO);
        // 2^20 seconds is beyond every cap.
        Duration::from_nanos(base.as_nanos().saturating_mul(1 << self.tcp.backoff.min(20))).min(MAX_RTO)
    }

    // Taking an ACK in.

    /// Marks what the ACK covers: everything below the new `snd_una`, and its SACK blocks.
    #[inline]
    pub(super) fn acknowledge_segments(&mut self, ack: &AckBody, sum: &mut Acked) {
        let fack = self.tcp.fack;
        let una = self.segments.base();
        if !self.lists_acked {
            self.acknowledge_in_order(ack.cumulative, fack, sum);
        }
        while self.segments.base() < ack.cumulative {
            let number = self.segments.base();
            let Some(segment) = self.segments.pop_front() else { break };
            if !segment.delivered {
                self.deliver_segment(number, segment.latest, segment.retransmitted, fack, sum);
            }
        }
        let base = self.segments.base();
        if base > una {
            sum.advanced = true;
            self.tcp.fack = self.tcp.fack.max(base);
            self.known.remove_below(base);
        }
        if let Some(sack) = ack.sack() {
            self.acknowledge_blocks(sack, fack, sum);
        }
    }

    /// Delivers the oldest segments without listing them, as far as they are neither SACKed nor sent again
    /// and the oldest transmissions are theirs. Most ACKs cover nothing else.
    #[inline(always)]
    fn acknowledge_in_order(&mut self, cumulative: u32, fack: u32, sum: &mut Acked) {
        let first = self.segments.base();
        let mut bytes = 0;
        let (mut oldest_at, mut newest_at) = sum.fresh;
        let mut delivered = 0;
        while self.segments.base() < cumulative
            && let (Some(segment), Some(entry)) = (self.segments.front(), self.transmissions.front())
            && !(segment.delivered || segment.retransmitted)
            && segment.latest == self.transmissions.base()
            && entry.state() == State::Outstanding
        {
            bytes += u64::from(entry.size);
            oldest_at = oldest_at.min(entry.sent_at);
            newest_at = entry.sent_at;
            delivered = entry.delivered(self.delivery.delivered().0);
            self.segments.pop_front();
            self.transmissions.pop_front();
        }
        let packets = self.segments.base() - first;
        if packets == 0 {
            return;
        }
        self.delivery.deliver(bytes);
        // rfc8985 6.2, step 3
        sum.reordered |= first + 1 < fack;
        sum.original |= self.episode.covers(u64::from(first));
        sum.packets += u64::from(packets);
        sum.bytes += bytes;
        sum.fresh = (oldest_at, newest_at);
        sum.unlisted = Some(Newest { number: self.transmissions.base() - 1, sent_at: newest_at, delivered });
    }

    #[inline(never)]
    fn acknowledge_blocks(&mut self, sack: &Sack, fack: u32, sum: &mut Acked) {
        let (base, next) = (self.segments.base(), self.segments.end());
        for block in sack.blocks() {
            let Some(block) = block.intersect(base, next) else { continue };
            let mut fresh = std::mem::take(&mut self.fresh);
            self.known.insert(block, |part| fresh.push(part));
            for part in fresh.drain(..) {
                sum.sacked = true;
                sum.mixed = true;
                for number in part.start..part.end {
                    let segment = &mut self.segments[number];
                    segment.delivered = true;
                    let (latest, retransmitted) = (segment.latest, segment.retransmitted);
                    self.deliver_segment(number, latest, retransmitted, fack, sum);
                }
                self.tcp.fack = self.tcp.fack.max(part.end);
            }
            self.fresh = fresh;
        }
    }

    #[inline]
    fn deliver_segment(
        &mut self,
        segment: u32,
        latest: u32,
        retransmitted: bool,
        fack: u32,
        sum: &mut Acked,
    ) {
        if !retransmitted {
            // rfc8985 6.2, step 3
            sum.reordered |= segment + 1 < fack;
            sum.original |= self.episode.covers(u64::from(segment));
        }
        self.deliver(latest, sum);
    }

    // Judging it.

    /// What follows from an ACK: undo, losses, the beginning and the end of episodes.
    pub(super) fn recover_tcp(&mut self, now: Time, ack: &AckBody, sum: &Acked) {
        self.tcp.prefer_new = false;
        if sum.advanced {
            self.tcp.timeouts = 0;
        }
        self.update_rack(now, ack, sum);
        let duplicate = ack.duplicate();
        if duplicate.is_some() || self.tcp.dsack_round.is_some() {
            self.note_duplicate(duplicate);
        }
        if self.tcp.probe.is_some() {
            self.end_probe(now, ack, sum);
        }
        if !self.episode.is_open() {
            self.repair(now, ack, sum);
        }
        // rfc3708: every retransmission of the last episode was needless.
        if duplicate.is_some() && self.tcp.undoable && self.tcp.undo_retransmits == 0 {
            self.undo(now);
        }
        self.detect_losses(now);
    }

    /// What follows from an ACK within an episode.
    #[inline(never)]
    fn repair(&mut self, now: Time, ack: &AckBody, sum: &Acked) {
        match self.episode.phase() {
            Phase::Loss => self.repair_timeout(now, ack, sum),
            Phase::Recovery => self.repair_losses(now, ack, sum),
            // Something above must be acknowledged: until CWR has reached the receiver, it goes on echoing CE
            // (Linux 6.12 tcp_input.c, tcp_fastretrans_alert).
            Phase::Reduced if u64::from(self.segments.base()) > self.episode.end() => self.end_episode(now),
            Phase::Open | Phase::Reduced => {}
        }
    }

    /// rfc8985 6.2, step 2
    fn update_rack(&mut self, now: Time, ack: &AckBody, sum: &Acked) {
        self.tcp.reordering_seen |= sum.reordered;
        for info in sum.list.iter().rev() {
            let number = info.number as u32;
            if self.tcp.rack.is_some_and(|rack| number <= rack) {
                break;
            }
            let rtt = now.since(info.sent_at);
            // The ACK of a retransmission may answer the original: it came too soon, or, where `snd_una`
            // advanced, echoes an older timestamp. (A SACK's timestamp says nothing: it stays that of the
            // segment at `snd_una`.)
            if info.retransmission && (rtt < self.rtt.min() || (sum.advanced && ack.echoed < info.sent_at)) {
                continue;
            }
            self.tcp.rack = Some(number);
            self.tcp.rack_rtt = rtt;
            break;
        }
        // What is not listed left once.
        if let Some(newest) = sum.unlisted
            && self.tcp.rack.is_none_or(|rack| newest.number > rack)
        {
            self.tcp.rack = Some(newest.number);
            self.tcp.rack_rtt = now.since(newest.sent_at);
        }
    }

    /// Takes in a DSACK (rfc2883, rfc8985 6.2 step 4).
    #[cold]
    fn note_duplicate(&mut self, duplicate: Option<Range>) {
        let Some(Range { start, .. }) = duplicate else {
            if self.tcp.dsack_round.is_some_and(|end| self.segments.base() >= end) {
                self.tcp.dsack_round = None;
            }
            return;
        };
        if self.tcp.undo_retransmits > 0 && start < self.segments.end() {
            self.tcp.undo_retransmits -= 1;
        }
        if self.tcp.dsack_round.is_none_or(|end| self.segments.base() >= end) {
            self.tcp.dsack_round = Some(self.segments.end());
            self.tcp.reo_mult += 1;
            self.tcp.reo_persist = REO_PERSIST;
        }
    }

    /// Whether a tail loss probe repaired a loss (rfc8985 7.4).
    #[cold]
    fn end_probe(&mut self, now: Time, ack: &AckBody, sum: &Acked) {
        let Some((end, repeated)) = self.tcp.probe else { return };
        if ack.cumulative < end {
            return;
        }
        match repeated {
            None => self.tcp.probe = None,
            // Both the original and the probe arrived.
            Some(segment) if ack.duplicate().is_some_and(|range| range.start == segment) => {
                self.tcp.probe = None
            }
            Some(_) if ack.cumulative > end => {
                self.tcp.probe = None;
                if self.episode.is_open() {
                    self.begin_episode(now, None, self.mss);
                    self.end_episode(now);
                }
            }
            // A plain repetition of the ACK.
            Some(_) if !sum.advanced && !sum.sacked => self.tcp.probe = None,
            Some(_) => {}
        }
    }

    fn repair_losses(&mut self, now: Time, ack: &AckBody, sum: &Acked) {
        if !self.episode.covers(u64::from(self.segments.base())) {
            if self.tcp.may_undo(ack) {
                self.undo(now);
            } else {
                self.leave_recovery(now);
            }
        } else if sum.advanced
            && self.tcp.retransmits_out == 0
            && self.tcp.undoable
            && self.tcp.answers_original(ack)
        {
            // The hole was filled by a late packet, not by a retransmission: the path reorders (Linux 6.12
            // tcp_input.c, tcp_try_undo_partial).
            self.tcp.reordering_seen = true;
            self.undo(now);
        }
    }

    /// rfc5682 2.1 and Linux 6.12 tcp_input.c, tcp_process_loss
    fn repair_timeout(&mut self, now: Time, ack: &AckBody, sum: &Acked) {
        let recovered = !self.episode.covers(u64::from(self.segments.base()));
        if sum.advanced && self.tcp.undoable && self.tcp.answers_original(ack) {
            self.undo(now);
            return;
        }
        if self.tcp.frto {
            // Step 3b: something arrived that was never sent again.
            if sum.original && self.tcp.undoable {
                self.undo(now);
                return;
            }
            if u64::from(self.segments.end()) > self.episode.end() {
                // Step 3a: the new data was answered by a duplicate ACK; the loss was real.
                if sum.sacked || !sum.advanced {
                    self.tcp.frto = false;
                }
            } else if sum.advanced && !recovered {
                // Step 2b
                self.episode.extend(u64::from(self.segments.end()));
                if self.unsent > 0 {
                    self.tcp.prefer_new = true;
                    return;
                }
                self.tcp.frto = false;
            }
        }
        if recovered {
            if self.tcp.may_undo(ack) { self.undo(now) } else { self.leave_recovery(now) }
        }
    }

    fn leave_recovery(&mut self, now: Time) {
        // rfc8985 6.2, step 4
        if self.episode.phase() == Phase::Recovery
            && self.tcp.dsack_round.is_none()
            && self.tcp.reo_persist > 0
        {
            self.tcp.reo_persist -= 1;
            if self.tcp.reo_persist == 0 {
                self.tcp.reo_mult = 1;
            }
        }
        self.tcp.frto = false;
        if self.tcp.undo_timeout {
            self.tcp.undoable = false;
        }
        // What was sent during the episode and is lost is the next one's to answer (Linux 6.12 tcp_input.c,
        // tcp_time_to_recover: lost_out).
        self.tcp.lost_since = self.is_any_lost();
        self.end_episode(now);
    }

    /// Whether a segment has been declared lost and has not arrived, sent again or not.
    fn is_any_lost(&self) -> bool {
        (self.segments.base()..self.segments.end()).any(|number| {
            let segment = &self.segments[number];
            let latest = &self.transmissions[segment.latest];
            !segment.delivered && (latest.is_retransmission() || latest.state() == State::Lost)
        })
    }

    /// Takes the last episode back.
    #[cold]
    pub(super) fn undo(&mut self, now: Time) {
        self.controller.on_spurious_loss(&SpuriousEvent { now, timeout: self.tcp.undo_timeout });
        self.note_controller();
        self.counters.undone_episodes += 1;
        self.tcp.undoable = false;
        self.tcp.frto = false;
        self.tcp.backoff = 0;
        // What is still missing was declared lost by mistake: it is on its way.
        for number in self.transmissions.base()..self.transmissions.end() {
            let entry = &mut self.transmissions[number];
            if entry.state() == State::Lost && entry.segment >= self.segments.base() {
                let segment = self.segments[entry.segment];
                if !segment.delivered && segment.latest == number {
                    entry.set_state(State::Outstanding);
                    self.delivery.take_back(u64::from(entry.size));
                    if entry.is_retransmission() {
                        self.tcp.retransmits_out += 1;
                    }
                    self.oldest = self.oldest.min(number);
                }
            }
        }
        self.lost_queue.clear();
        self.forget_found();
        if !self.episode.is_open() {
            self.end_episode(now);
        }
    }

    fn reordering_window(&self) -> Duration {
        if !self.tcp.reordering_seen && (self.episode.is_repairing() || self.known.count() >= DUP_THRESHOLD) {
            return Duration::ZERO;
        }
        (self.rtt.min() * self.tcp.reo_mult / 4).min(self.rtt.smoothed())
    }

    /// rfc8985 6.2, step 5
    #[inline(always)]
    pub(super) fn detect_losses(&mut self, now: Time) {
        self.tcp.reorder_at = Time::MAX;
        let lost_before = self.delivery.lost();
        self.mark_lost_by_time(now);
        let newly_lost = self.delivery.lost() - lost_before;
        let lost_since = std::mem::take(&mut self.tcp.lost_since);
        if (newly_lost > 0 || lost_since) && !self.episode.is_repairing() {
            self.enter_recovery(now, newly_lost);
        }
    }

    #[inline]
    fn mark_lost_by_time(&mut self, now: Time) {
        let Some(rack) = self.tcp.rack else { return };
        if self.oldest >= rack {
            return;
        }
        let mut number = self.oldest.max(self.transmissions.base());
        while number < rack && self.transmissions[number].state() != State::Outstanding {
            number += 1;
        }
        self.oldest = number;
        if number < rack {
            self.mark_lost_from(number, rack, now);
        }
    }

    /// Declares lost what has been out for too long, from transmission `first` on, up to `rack`.
    #[inline(never)]
    fn mark_lost_from(&mut self, first: u32, rack: u32, now: Time) {
        let allowance = self.tcp.rack_rtt + self.reordering_window();
        let mut number = first;
        while number < rack {
            let entry = &self.transmissions[number];
            if entry.state() == State::Outstanding {
                let at = entry.sent_at + allowance;
                if at > now {
                    self.tcp.reorder_at = at;
                    break;
                }
                self.mark_lost(number);
            }
            number += 1;
        }
        self.oldest = number;
    }

    #[cold]
    fn enter_recovery(&mut self, now: Time, lost: u64) {
        self.begin_undo(false);
        // A window that CE has already reduced in this round trip is not reduced again (Linux 6.12
        // tcp_input.c, tcp_enter_recovery).
        if self.episode.is_open() {
            self.begin_episode(now, None, lost);
        }
        self.episode.begin(Phase::Recovery, u64::from(self.segments.end()));
        self.tcp.probe = None;
    }

    /// From here on the episode can be undone.
    pub(super) fn begin_undo(&mut self, timeout: bool) {
        self.tcp.undoable = true;
        self.tcp.undo_timeout = timeout;
        self.tcp.retransmit_stamp = None;
        let probes = u32::from(matches!(self.tcp.probe, Some((_, Some(_)))));
        let out = self.tcp.retransmits_out.max(probes);
        // Nothing sent again yet is not the same as everything sent again in vain.
        self.tcp.undo_retransmits = if out == 0 { -1 } else { out as i32 };
    }
}
