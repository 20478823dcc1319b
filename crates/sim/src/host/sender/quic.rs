//! QUIC's loss recovery (RFC 9002).
//!
//! ```text
//! lost:   three newer packets acknowledged, or out for 9/8 max(srtt, latest rtt) and a newer one
//!         acknowledged  rfc9002 6.1
//!         the threshold of three stays, or grows by what arrives late: number + threshold is then above the
//!         largest that was acknowledged before                                                 rfc9002 6.1.1
//! PTO:    srtt + max(4 rttvar, 1 ms) + max_ack_delay, doubled per timeout; two probes each       rfc9002 6.2
//! persistent congestion: all packets sent over 3 (srtt + max(4 rttvar, 1 ms) + max_ack_delay) are lost
//!                                                                                                rfc9002 7.6
//! ```
//!
//! Deviations:
//! - D1 No handshake: the connection starts with its 1-RTT keys and kInitialRtt.
//! - D2 Packets declared lost are remembered until their payload is acknowledged; if every packet of an
//!   episode arrives late, the episode is undone (RFC 9002 leaves this open; as picoquic's newreno.c, and not
//!   quinn-proto 0.11.19, does it), unless the flow says otherwise.
//! - D3 Where RFC 9002 sends a PING because all that is in flight is payload that arrived in other packets,
//!   those packets are declared lost at once, not when the PING is acknowledged.
//! - D4 What a flow of pieces lost is forgotten at the next ACK: one that arrives after that undoes nothing.

use brakelight_core::controller::{Controller, SpuriousEvent, Timeout, TimeoutEvent};
use brakelight_core::sender::Phase;
use brakelight_core::sender::rtt::GRANULARITY;
use brakelight_core::time::{Duration, Time};
use brakelight_scenario::scenario::Reordering;

use super::super::acks::AckBody;
use super::ack::{Acked, Newest};
use super::scoreboard::{State, Transmission};
use super::{Forced, Sender};

/// rfc9002 6.1.1: kPacketThreshold
const PACKET_THRESHOLD: u32 = 3;
/// rfc9000 18.2: the default of max_ack_delay.
pub(super) const MAX_ACK_DELAY: Duration = Duration::from_millis(25);
/// rfc9002 6.2.4
const PROBES: u8 = 2;
/// rfc9002 7.6.1
const PERSISTENT: u64 = 3;

/// State of QUIC's loss recovery.
#[derive(Clone, Debug)]
pub(super) struct Quic {
    largest: Option<u32>,
    loss_at: Time,
    pto_at: Time,
    backoff: u32,
    /// When the last packet left.
    last_sent_at: Time,
    /// When the first RTT sample was taken.
    first_sample_at: Option<Time>,
    /// Packets declared lost in this episode that have not arrived late.
    missing: u32,
    /// So many newer packets must be acknowledged before one counts as lost.
    threshold: u32,
    reordering: Reordering,
    undo: bool,
}

impl Default for Quic {
    fn default() -> Self {
        Quic {
            largest: None,
            loss_at: Time::MAX,
            pto_at: Time::MAX,
            backoff: 0,
            last_sent_at: Time::ZERO,
            first_sample_at: None,
            missing: 0,
            threshold: PACKET_THRESHOLD,
            reordering: Reordering::Fixed,
            undo: true,
        }
    }
}

impl Quic {
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        // rfc9002 6.2.1: no probe while a loss timer runs.
        if self.loss_at == Time::MAX { self.pto_at } else { self.loss_at }
    }

    /// Packet `number` was declared lost and has arrived after all. The threshold becomes one that would have
    /// waited for it: `largest` is still the newest packet that was acknowledged before.
    fn note_reordering(&mut self, number: u32) {
        if let (Reordering::Adaptive, Some(largest)) = (self.reordering, self.largest) {
            self.threshold = self.threshold.max(largest.saturating_sub(number).saturating_add(1));
        }
    }
}

impl Sender {
    /// The same sender, whose loss detection has these settings.
    pub(in super::super) fn with_quic(mut self, reordering: Reordering, undo: bool) -> Self {
        (self.quic.reordering, self.quic.undo) = (reordering, undo);
        self
    }

    /// The probe timeout with its backoff.
    pub(super) fn pto(&self) -> Duration {
        let base = self.rtt.pto(MAX_ACK_DELAY);
        Duration::from_nanos(base.as_nanos().saturating_mul(1 << self.quic.backoff.min(20)))
    }

    /// Marks the packet numbers that the ACK covers.
    #[inline(never)]
    pub(super) fn acknowledge_numbers(&mut self, ack: &AckBody, sum: &mut Acked) {
        let base = self.transmissions.base();
        let end = self.transmissions.end();
        let Some(first) = ack.detail().ranges.first() else { return };
        let largest = first.end - 1;
        let mut fresh = std::mem::take(&mut self.fresh);
        // Oldest first, as the controller sees them.
        for block in ack.detail().ranges.iter().rev() {
            if let Some(block) = block.intersect(base, end) {
                self.known.insert(block, |part| fresh.push(part));
            }
        }
        for part in fresh.drain(..) {
            for number in part.start..part.end {
                let Transmission { segment, sent_at, .. } = self.transmissions[number];
                if self.transmissions[number].state() == State::Lost {
                    self.quic.note_reordering(number);
                }
                if let Some(segment) = self.segments.get_mut(segment) {
                    segment.delivered = true;
                }
                self.deliver(number, sum);
                if number == largest {
                    // rfc9002 5.1
                    sum.largest_sent_at = Some(sent_at);
                }
            }
        }
        self.fresh = fresh;
        self.quic.largest = self.quic.largest.max(sum.newest().map(|newest| newest.number));
    }

    #[inline(never)]
    pub(super) fn recover_quic(&mut self, now: Time, sum: &Acked) {
        let Some(Newest { number: newest, .. }) = sum.newest() else { return };
        self.quic.backoff = 0;
        if self.rtt.has_sample() {
            self.quic.first_sample_at.get_or_insert(now);
        }
        if self.quic.undo && sum.late > 0 && self.quic.missing > 0 {
            self.quic.missing = self.quic.missing.saturating_sub(sum.late);
            if self.quic.missing == 0 {
                self.counters.undone_episodes += 1;
                self.controller.on_spurious_loss(&SpuriousEvent { now, timeout: false });
                self.note_controller();
                if !self.episode.is_open() {
                    self.end_episode(now);
                }
                self.episode.undo();
            }
        }
        // rfc9002 7.3.2: recovery ends when a packet sent during it is acknowledged.
        let passed = !self.episode.covers(u64::from(newest));
        if passed && !self.episode.is_open() && self.episode.phase() != Phase::Loss {
            self.end_episode(now);
        }
        self.detect_quic_losses(now);
        // What was out when congestion was found to be persistent must be settled besides.
        if passed && self.episode.phase() == Phase::Loss && !self.episode.covers(u64::from(self.oldest)) {
            self.end_episode(now);
        }
    }

    fn detect_quic_losses(&mut self, now: Time) {
        self.quic.loss_at = Time::MAX;
        let Some(largest) = self.quic.largest else { return };
        let longest = self.rtt.smoothed().max(self.rtt.latest());
        // rfc9002 6.1.2
        let delay = (longest * 9 / 8).max(GRANULARITY);
        let lost_before = self.delivery.lost();
        let listed = self.lost.len();
        let mut number = self.oldest.max(self.transmissions.base());
        while number < largest {
            let entry = &self.transmissions[number];
            if entry.state() == State::Outstanding {
                let at = entry.sent_at + delay;
                if largest - number < self.quic.threshold && at > now {
                    self.quic.loss_at = at;
                    break;
                }
                self.mark_lost(number);
            }
            number += 1;
        }
        self.oldest = number;
        self.answer_quic_losses(now, self.delivery.lost() - lost_before, listed);
    }

    /// Reacts to `lost` bytes newly declared lost: the packets from place `listed` in the list on.
    fn answer_quic_losses(&mut self, now: Time, lost: u64, listed: usize) {
        let Some(newest_lost) = self.lost[listed..].last().map(|info| info.number) else { return };
        // rfc9002 7.3.2, B.6: what was sent before the last episode began, even if that has ended, starts no
        // new one.
        if !self.episode.covers(newest_lost) {
            self.quic.missing = 0;
            if !self.episode.is_open() {
                self.end_episode(now);
            }
            self.begin_episode(now, None, lost);
            self.episode.begin(Phase::Recovery, u64::from(self.transmissions.end()));
            // One packet leaves ahead of the reduction: the lost data.
            if self.forced == Forced::None {
                self.forced = Forced::Head;
            }
        }
        self.quic.missing += (self.lost.len() - listed) as u32;
        if self.is_persistent(listed) {
            self.controller.on_timeout(&TimeoutEvent {
                now,
                kind: Timeout::PersistentCongestion,
                inflight: self.inflight(),
                repeated: false,
            });
            self.note_controller();
            // rfc9002 7.6.2: the recovery period is over, and slow start begins.
            self.episode.begin(Phase::Loss, u64::from(self.transmissions.end()));
            self.counters.timeouts += 1;
        }
    }

    /// Whether the packets newly lost, from place `listed` in the list on, are a run without an acknowledged
    /// packet in between that lasts too long (rfc9002 7.6.2).
    fn is_persistent(&self, listed: usize) -> bool {
        let Some(first_sample_at) = self.quic.first_sample_at else { return false };
        let spread = (self.rtt.variation() * 4).max(GRANULARITY);
        let limit = (self.rtt.smoothed() + spread + MAX_ACK_DELAY) * PERSISTENT;
        let mut run: Option<(u64, Time)> = None;
        let mut before = None;
        for info in &self.lost[listed..] {
            let joined = before.is_some_and(|before| {
                (before + 1..info.number)
                    .all(|number| self.transmissions[number as u32].state() != State::Acked)
            });
            if info.sent_at <= first_sample_at {
                continue;
            }
            if !joined || run.is_none() {
                run = Some((info.number, info.sent_at));
            }
            before = Some(info.number);
            if run.is_some_and(|(_, start)| info.sent_at.since(start) > limit) {
                return true;
            }
        }
        false
    }

    #[inline]
    pub(super) fn sent_quic(&mut self, now: Time) {
        self.quic.last_sent_at = now;
        self.quic.pto_at = now + self.pto();
    }

    #[inline(never)]
    pub(super) fn rearm_quic(&mut self, now: Time) {
        if self.delivery.inflight() == 0 {
            self.quic.pto_at = Time::MAX;
            self.quic.loss_at = Time::MAX;
        } else {
            // Without its backoff the timeout may have passed.
            self.quic.pto_at = (self.quic.last_sent_at + self.pto()).max(now);
        }
    }

    pub(super) fn on_quic_deadline(&mut self, now: Time) {
        if self.quic.loss_at <= now {
            self.detect_quic_losses(now);
            // rfc9002 A.9: the probe timeout, which the loss timer had taken the place of, may have passed
            // meanwhile.
            self.rearm_quic(now);
        } else if self.quic.loss_at == Time::MAX && self.quic.pto_at <= now {
            if self.segments.is_empty() && self.unsent == 0 {
                self.lose_the_rest(now);
                return;
            }
            // rfc9002 6.2.4
            self.controller.on_timeout(&TimeoutEvent {
                now,
                kind: Timeout::Pto,
                inflight: self.inflight(),
                repeated: self.quic.backoff > 0,
            });
            self.note_controller();
            self.counters.tail_probes += 1;
            self.quic.backoff += 1;
            self.forced = Forced::Probes(PROBES);
            self.quic.pto_at = now + self.pto();
        }
    }

    /// Declares lost what is still in flight: its payload has arrived in other packets, whose ACKs would have
    /// said if it had arrived as well.
    fn lose_the_rest(&mut self, now: Time) {
        let lost_before = self.delivery.lost();
        let listed = self.lost.len();
        for number in self.transmissions.base()..self.transmissions.end() {
            if self.transmissions[number].state() == State::Outstanding {
                self.mark_lost(number);
            }
        }
        self.answer_quic_losses(now, self.delivery.lost() - lost_before, listed);
        self.report_losses(now);
        self.retire();
        self.rearm_quic(now);
    }
}
