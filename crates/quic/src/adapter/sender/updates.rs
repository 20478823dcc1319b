//! Updates to the controller, made of what was gathered: losses, marks, and the ACK that brought them.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, Exact, LossEvent, MarkCount, Marks, PacketInfo, Recovery,
    RecoveryState, SpuriousEvent, Timeout, TimeoutEvent,
};
use brakelight_core::ecn::{Ecn, Mark};
use brakelight_core::sender::Phase;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_registry::{ControllerConfig, DEFAULT_CONTROLLER};

use super::{Frame, Gathered, PacketState, Sender};
use crate::validation::State;

/// Packets lost in one episode that may yet turn out to be late.
const MOST_MISTAKES: usize = 64;

/// A packet's position in [`Episode`](brakelight_core::sender::Episode).
fn position(sent_at: Time) -> u64 {
    sent_at.as_nanos()
}

impl Sender {
    /// Tells the controller what was gathered.
    pub(in crate::adapter) fn flush(&mut self) {
        if !self.gathered.any {
            return;
        }
        let mut gathered = std::mem::take(&mut self.gathered);
        self.tell(&mut gathered);
        gathered.acked.clear();
        gathered.lost.clear();
        gathered.times.clear();
        // Kept for their memory.
        self.gathered = Gathered {
            acked: gathered.acked,
            lost: gathered.lost,
            times: gathered.times,
            ..Default::default()
        };
        self.retire();
    }

    fn tell(&mut self, gathered: &mut Gathered) {
        let now = gathered.now;
        let frame = self.frame.take();
        self.counters.acked_packets += gathered.acked.len() as u64;
        gathered.acked.sort_unstable_by_key(|info| info.number);
        gathered.lost.sort_unstable_by_key(|info| info.number);
        let (mut round_start, mut sample) = (false, None);
        let delay = frame.map_or(Duration::ZERO, |frame| {
            Duration::from_micros(frame.delay.min(1 << 32) << self.peer_parameters.ack_delay_exponent)
        });
        if let Some(newest) = gathered.acked.last() {
            round_start = self.delivery.acked(now, newest.sent_at, newest.delivered.0);
            if self.largest_acked.is_none_or(|(number, _)| newest.number > number) {
                self.largest_acked = Some((newest.number, newest.sent_at));
                let latest = now.since(newest.sent_at);
                // rfc9002 5.3: no more than the peer promised.
                self.rtt.sample_quic(latest, delay.min(self.peer_parameters.max_ack_delay));
                sample = Some(latest);
                self.rtt_sample = sample;
            }
        }
        if std::mem::take(&mut self.undone) {
            // Nobody says what becomes of an episode whose packets all arrive late; the modelled host undoes
            // it.
            self.counters.undone_episodes += 1;
            self.controller.on_spurious_loss(&SpuriousEvent { now, timeout: false });
            self.end_episode(now);
            self.episode.undo();
        }
        let newest_sent_at = gathered.acked.last().map(|info| info.sent_at);
        // rfc9002 7.3.2
        if newest_sent_at.is_some_and(|newest| !self.episode.covers(position(newest)))
            && !self.is_starting_over()
        {
            self.end_episode(now);
        }
        if let Some(sent_at) = gathered.loss_sent_at {
            self.answer_loss(now, sent_at, gathered);
        }
        let marks = self.read_marks(frame, gathered);
        if matches!(self.validation.state(), State::Failed(_)) && !self.fallen_back {
            self.fallen_back = true;
            self.fall_back(now);
        }
        let marked_at =
            if self.tapped { newest_sent_at.filter(|_| marks.ce.packets > 0) } else { gathered.ce_sent_at };
        if let Some(sent_at) = marked_at {
            self.answer_ce(now, sent_at, gathered.inflight_before);
        }
        self.peer.complete(
            now,
            delay,
            sample.and(gathered.acked.last()),
            self.delivery.round(),
            &mut gathered.times,
        );
        let rtt = self.rtt.told(sample);
        let recovery = self.episode.state(self.held);
        let growth = match recovery {
            RecoveryState::Recovery => Bytes::ZERO,
            // rfc9002 B.5
            _ => {
                let grows = |info: &&PacketInfo| self.episode.may_grow(position(info.sent_at));
                gathered.acked.iter().filter(grows).map(|info| info.size).sum()
            }
        };
        let ssthresh = || self.controller.ssthresh().map(|ssthresh| ssthresh.0);
        let event = AckEvent {
            now,
            acked: &gathered.acked,
            newest: gathered.acked.last().map(|info| info.number),
            lost: &gathered.lost,
            newly_acked: gathered.acked.iter().map(|info| info.size).sum(),
            growth,
            newly_lost: gathered.lost.iter().map(|info| info.size).sum(),
            inflight_before: Bytes(gathered.inflight_before),
            inflight: Bytes(self.delivery.inflight()),
            delivered: self.delivery.delivered(),
            total_lost: Bytes(self.delivery.lost()),
            rtt,
            ack_delay: delay,
            round: self.delivery.round(),
            round_start,
            marks,
            receive_times: &gathered.times,
            report: gathered.report,
            cwnd_limited: self.usage.is_cwnd_limited(self.controller.cwnd().0, ssthresh),
            recovery,
        };
        self.controller.on_ack(&event);
    }

    /// Whether something that had been sent when congestion was found to be persistent is still in flight.
    fn is_starting_over(&self) -> bool {
        if self.episode.phase() != Phase::Loss {
            return false;
        }
        let mut covered = self.sent.iter().take_while(|sent| self.episode.covers(position(sent.sent_at)));
        covered.any(|sent| sent.info.is_some() && sent.state == PacketState::Outstanding)
    }

    fn answer_loss(&mut self, now: Time, sent_at: Time, gathered: &Gathered) {
        // rfc9002 7.3.2, B.6: what was sent before the last episode began, even if that has ended, starts no
        // new one. Nor does anything while persistent congestion is repaired: the window has started over.
        if !self.episode.covers(position(sent_at)) && !self.is_starting_over() {
            self.end_episode(now);
            let event = self.loss_event(now, sent_at, gathered.inflight_before, gathered.lost_bytes);
            self.held = self.controller.recovery() == Recovery::Prr;
            self.controller.on_loss(&event);
            self.episode.begin(Phase::Recovery, position(now) + 1);
            self.missing.clear();
        }
        self.missing.extend(&gathered.missing);
        if self.missing.len() > MOST_MISTAKES {
            // Their like would be looked for in every ACK. One that was never sent keeps the list from
            // becoming empty.
            self.missing.clear();
            self.missing.push(u64::MAX);
        }
        if gathered.persistent {
            self.controller.on_timeout(&TimeoutEvent {
                now,
                kind: Timeout::PersistentCongestion,
                inflight: Bytes(self.delivery.inflight()),
                repeated: false,
            });
            // rfc9002 7.6.2: the recovery period is over, and slow start begins.
            self.episode.begin(Phase::Loss, position(now) + 1);
        }
    }

    fn answer_ce(&mut self, now: Time, sent_at: Time, inflight: u64) {
        // rfc9002 7.3.2, B.7
        if self.episode.is_open() && self.episode.may_grow(position(sent_at)) {
            let event = self.loss_event(now, sent_at, inflight, 0);
            self.held = self.controller.recovery() == Recovery::Prr;
            self.controller.on_ce(&event);
            self.episode.begin(Phase::Reduced, position(now) + 1);
        }
    }

    fn loss_event(&self, now: Time, sent_at: Time, inflight: u64, lost: u64) -> LossEvent {
        LossEvent {
            now,
            sent_at,
            inflight: Bytes(inflight),
            lost: Bytes(lost),
            srtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min(),
        }
    }

    fn end_episode(&mut self, now: Time) {
        if !self.episode.is_open() {
            self.episode.finish();
            self.controller.on_recovery_exit(now);
        }
    }

    /// The marks that the counts of this ACK add to those before it.
    fn read_marks(&mut self, frame: Option<Frame>, gathered: &Gathered) -> Marks {
        let mut marks = Marks { exact: Exact::Packets, ..Marks::default() };
        if !self.tapped {
            if gathered.ce_sent_at.is_some() {
                marks.ce = MarkCount { packets: 1, bytes: Bytes(self.mss) };
            }
            return marks;
        }
        self.validation.on_acked(gathered.marked);
        let Some(frame) = frame else { return marks };
        let new = self.validation.on_counts(frame.counts, gathered.marked);
        for (ecn, packets) in [(Ecn::Ect0, new.ect0), (Ecn::Ect1, new.ect1), (Ecn::Ce, new.ce)] {
            let kind = match self.encoding.mark(ecn) {
                Mark::Accelerate => &mut marks.accelerate,
                Mark::Brake => &mut marks.brake,
                Mark::Ce => &mut marks.ce,
                Mark::None => continue,
            };
            // The counts are of packets; one more or less of each is worth a full one.
            kind.packets += packets;
            kind.bytes += Bytes(packets * self.mss);
        }
        self.counters.accelerate_packets += marks.accelerate.packets;
        self.counters.brake_packets += marks.brake.packets;
        self.counters.ce_packets += marks.ce.packets;
        marks
    }

    /// ECN failed. ABC goes by its second window once marks stay away, classic controllers and Prague by
    /// losses; a controller that has neither makes way for the default one.
    fn fall_back(&mut self, now: Time) {
        if self.survives_without_marks {
            return;
        }
        if let Ok(other) = ControllerConfig::new(DEFAULT_CONTROLLER, &[]) {
            let opening = Connection {
                mss: Bytes(self.mss),
                overhead: Bytes(self.overhead),
                initial_window: self.controller.cwnd(),
                now,
                random: brakelight_core::random::Random::stream(0, "fallback"),
            };
            super::held::replace(&mut self.controller, other.build(&opening));
        }
    }

    pub(in crate::adapter) fn on_mtu(&mut self, mtu: u16) {
        self.flush();
        self.mss = u64::from(mtu);
        self.controller.on_mtu_change(Bytes(self.mss));
    }

    /// Drops what no later call can speak of.
    fn retire(&mut self) {
        // What the tap did not see may never be acknowledged: Initial and Handshake packets, and without the
        // tap pure ACKs.
        let seen = self.largest_acked.map(|(_, at)| at);
        let patience = self.rtt.smoothed() * 2 + Duration::from_millis(100);
        while let Some(front) = self.sent.front() {
            let forgotten =
                front.number.is_none() && seen.is_some_and(|seen| front.sent_at + patience < seen);
            if front.state == PacketState::Outstanding {
                if !forgotten {
                    break;
                }
                if let Some(info) = front.info {
                    self.delivery.replace(info.size.0);
                }
            }
            self.sent.pop_front();
            self.retired += 1;
        }
    }
}
