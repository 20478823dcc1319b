//! The beginning and the end of a reaction to loss or marks, common to both profiles.

use brakelight_core::controller::{Controller, LossEvent, Recovery};
use brakelight_core::time::Time;
use brakelight_core::units::Bytes;
use brakelight_registry::Host;

use super::Sender;
use super::prr::Prr;
use super::scoreboard::State;

impl Sender {
    /// Takes transmission `number` out of flight as lost, and queues its segment to be sent again. A piece is
    /// forgotten.
    pub(super) fn mark_lost(&mut self, number: u32) {
        let entry = &mut self.transmissions[number];
        debug_assert_eq!(entry.state(), State::Outstanding);
        entry.set_state(State::Lost);
        let size = u64::from(entry.size);
        self.delivery.lose(size);
        self.counters.lost_packets += 1;
        let info =
            entry.info(number, self.tags.of(number), self.delivery.delivered().0, self.delivery.lost());
        let (segment, retransmission) = (entry.segment, entry.is_retransmission());
        self.lost.push(info);
        if self.host == Host::Tcp {
            self.tcp.left_flight(retransmission);
        }
        let Some(entry) = self.segments.get_mut(segment) else { return };
        if self.pieces.is_some() {
            entry.delivered = true;
        } else if !entry.delivered && entry.latest == number {
            self.lost_queue.push_back(segment);
        }
    }

    /// Forgets losses that the controller has not heard of and that were none: the packets have arrived, or
    /// are in flight again.
    #[cold]
    pub(super) fn forget_found(&mut self) {
        let Sender { lost, transmissions, .. } = self;
        lost.retain(|info| {
            transmissions.get(info.number as u32).is_some_and(|packet| packet.state() == State::Lost)
        });
    }

    /// Tells the controller that an episode begins, with `lost` bytes lost, or because of a CE mark on a
    /// packet sent at `marked`, and lets PRR take over where it may.
    pub(super) fn begin_episode(&mut self, now: Time, marked: Option<Time>, lost: u64) {
        let prior = self.controller.cwnd().0;
        self.held = self.host != Host::Ns2 && self.controller.recovery() == Recovery::Prr;
        let prr = self.host == Host::Tcp && self.held;
        let newest_lost = self.lost.last().map_or(self.delivery.newest_sent_at(), |info| info.sent_at);
        let event = LossEvent {
            now,
            sent_at: marked.unwrap_or(newest_lost),
            inflight: Bytes(self.delivery.inflight() + lost),
            lost: Bytes(lost),
            srtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min(),
        };
        if marked.is_some() {
            self.controller.on_ce(&event);
            self.cwr_pending = true;
        } else {
            self.controller.on_loss(&event);
        }
        self.note_controller();
        self.prr = prr.then(|| Prr::new(prior, self.delivery.inflight()));
    }

    /// Ends the episode.
    pub(super) fn end_episode(&mut self, now: Time) {
        self.episode.finish();
        self.prr = None;
        self.controller.on_recovery_exit(now);
        self.note_controller();
    }
}
