//! What was sent on one path, what became of it, and the controller's events made of that.
//!
//! What hosts have in common is done by [`brakelight_core::sender`]. noq says neither how long a receiver
//! held an ACK back, nor when Initial and Handshake packets are forgotten: those that nothing is heard of
//! are dropped from the books.

use std::collections::VecDeque;

use brakelight_core::controller::{
    AckEvent, Controller, Exact, IdleEvent, LossEvent, MarkCount, Marks, PacketInfo, ReceiveTime, Recovery,
    RecoveryState, SendEvent, SpuriousEvent, Timeout, TimeoutEvent,
};
use brakelight_core::sender::{Delivery, Episode, Phase, RttEstimator, Stop, Usage};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_registry::{AnyController, Carries, ControllerConfig};

use crate::connection;

/// The longest that a receiver holds an ACK back (rfc9000 18.2, `max_ack_delay`).
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// Beyond two round trips, after which a packet of which nothing is heard is dropped from the books.
const PATIENCE: Duration = Duration::from_millis(100);

/// The controller in its place. The tests hold its host to the contract of events.
#[cfg(not(test))]
type Held = AnyController;
#[cfg(test)]
type Held = brakelight_core::sender::Checked<AnyController>;

/// A packet in flight, or one whose predecessors are.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// noq's number, which other packet number spaces have too.
    pn: u64,
    info: PacketInfo,
    outstanding: bool,
}

/// One ACK, as far as noq has told of it.
#[derive(Clone, Debug, Default)]
struct Gathered {
    now: Time,
    any: bool,
    inflight_before: u64,
    acked: Vec<PacketInfo>,
    lost: Vec<PacketInfo>,
    lost_bytes: u64,
    /// When the newest packet that was lost had been sent, and the newest of an ACK with CE.
    loss_sent_at: Option<Time>,
    ce_sent_at: Option<Time>,
    persistent: bool,
    spurious: bool,
}

/// The congestion control of one path. Sizes are UDP payload.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    mss: u64,
    controller: Held,
    /// Whether the controller is told when packets arrived.
    takes_times: bool,
    rtt: RttEstimator,
    delivery: Delivery,
    usage: Usage,
    episode: Episode,
    /// Whether the window holds in this episode, as its controller requests.
    held: bool,
    sent: VecDeque<Sent>,
    next_number: u64,
    largest_acked: Option<(u64, Time)>,
    last_sent_at: Option<Time>,
    gathered: Gathered,
}

/// A packet's position in an [`Episode`]: noq names episodes by when packets were sent.
fn position(sent_at: Time) -> u64 {
    sent_at.as_nanos()
}

impl Sender {
    /// Returns the sender of a path that begins at time zero, with datagrams of `mtu` bytes.
    pub(crate) fn new(config: &ControllerConfig, mtu: u16) -> Self {
        let controller = config.build(&connection(Time::ZERO, mtu));
        #[cfg(test)]
        let controller = Held::new(controller).growing_by_use(!config.needs().grows_unused);
        Sender {
            mss: u64::from(mtu),
            controller,
            takes_times: config.feedback().carries() == Carries::ReceiveTimes,
            rtt: RttEstimator::quic(),
            delivery: Delivery::new(Time::ZERO),
            usage: Usage::default(),
            episode: Episode::default(),
            held: false,
            sent: VecDeque::new(),
            next_number: 0,
            largest_acked: None,
            last_sent_at: None,
            gathered: Gathered::default(),
        }
    }

    pub(crate) fn controller(&self) -> &Held {
        &self.controller
    }

    /// A packet of `size` bytes left.
    pub(crate) fn on_sent(&mut self, now: Time, size: u64, pn: u64) {
        self.flush();
        self.on_timer(now);
        if size > self.mss {
            // What is larger than the path is known to carry probes its MTU, and noq does not say that it is
            // lost.
            return;
        }
        let inflight = self.delivery.inflight();
        if inflight == 0 {
            self.restart_after_idle(now);
            self.delivery.begin_flight(now);
        }
        let number = self.next_number;
        self.next_number += 1;
        let directive = self.controller.on_send(&SendEvent {
            now,
            size: Bytes(size),
            number,
            retransmission: false,
            replaces: None,
            inflight: Bytes(inflight),
            app_limited: self.delivery.is_app_limited(),
            srtt: self.rtt.measured(),
        });
        let books = self.delivery.send(size);
        let info = PacketInfo {
            number,
            size: Bytes(size),
            sent_at: now,
            delivered: Bytes(books.delivered),
            delivered_at: books.delivered_at,
            first_sent_at: books.first_sent_at,
            inflight: Bytes(books.inflight),
            lost: Bytes(books.lost),
            app_limited: books.app_limited,
            retransmission: false,
            tag: directive.tag,
        };
        self.last_sent_at = Some(now);
        self.sent.push_back(Sent { pn, info, outstanding: true });
    }

    /// There was more to send than the window let go.
    pub(crate) fn on_cwnd_limited(&mut self) {
        self.stopped(Stop::Window, self.delivery.inflight());
    }

    /// Packet `pn`, which was sent at `sent_at`, is acknowledged.
    pub(crate) fn on_acked(&mut self, now: Time, sent_at: Time, pn: u64) {
        self.gather(now);
        let first = self.sent.partition_point(|sent| sent.info.sent_at < sent_at);
        let mut moment = self.sent.range_mut(first..).take_while(|sent| sent.info.sent_at == sent_at);
        let Some(sent) = moment.find(|sent| sent.outstanding && sent.pn == pn) else {
            // A probe of the MTU, or one that was dropped from the books.
            return;
        };
        sent.outstanding = false;
        self.delivery.deliver(sent.info.size.0);
        self.gathered.acked.push(sent.info);
    }

    /// The packets that one ACK acknowledges have been named.
    pub(crate) fn on_end_acks(&mut self, now: Time, app_limited: bool) {
        self.gather(now);
        let before = self.gathered.inflight_before;
        if app_limited {
            self.stopped(Stop::Application, before);
            self.delivery.limit_by_application();
        } else {
            // noq does not say how much waits for its pacer: as much as is in flight is taken for granted, so
            // a window of which less than half is used does not grow.
            self.stopped(Stop::Pacer { waiting: before }, before);
        }
    }

    /// Packet `pn` of `size` bytes is declared lost.
    pub(crate) fn on_lost(&mut self, now: Time, size: u64, pn: u64) {
        self.gather(now);
        let own = |sent: &&mut Sent| sent.outstanding && sent.pn == pn && sent.info.size.0 == size;
        let Some(sent) = self.sent.iter_mut().find(own) else { return };
        sent.outstanding = false;
        self.delivery.lose(size);
        self.gathered.lost.push(sent.info);
    }

    /// Packets were declared lost, of which the newest had been sent at `sent_at`.
    pub(crate) fn on_losses(&mut self, now: Time, sent_at: Time, persistent: bool, bytes: u64) {
        self.gather(now);
        self.gathered.lost_bytes += bytes;
        self.gathered.loss_sent_at = self.gathered.loss_sent_at.max(Some(sent_at));
        self.gathered.persistent |= persistent;
    }

    /// An ACK counted more packets with CE; the newest that it acknowledged had been sent at `sent_at`.
    pub(crate) fn on_ce(&mut self, now: Time, sent_at: Time) {
        self.gather(now);
        self.gathered.ce_sent_at = Some(sent_at);
    }

    /// Everything that was declared lost in the last episode has arrived.
    pub(crate) fn on_spurious(&mut self) {
        self.flush();
        self.gathered.spurious = true;
    }

    /// The path's packets are `mss` bytes long.
    pub(crate) fn on_mtu(&mut self, mss: u64) {
        self.flush();
        self.mss = mss;
        self.controller.on_mtu_change(Bytes(mss));
    }

    /// Begins to gather what happens at `now`; what happened before is told first.
    fn gather(&mut self, now: Time) {
        if self.gathered.any && self.gathered.now != now {
            self.flush();
        }
        if !self.gathered.any {
            self.gathered.inflight_before = self.delivery.inflight();
        }
        (self.gathered.any, self.gathered.now) = (true, now);
    }

    fn stopped(&mut self, stop: Stop, inflight: u64) {
        let acked = self.largest_acked.map_or(0, |(number, _)| number + 1);
        let by_window = stop.is_by_window(inflight, self.controller.cwnd().0);
        self.usage.stopped(by_window, acked, self.next_number, inflight);
    }

    /// Tells the controller what was gathered.
    pub(crate) fn flush(&mut self) {
        if !self.gathered.any {
            return;
        }
        let mut gathered = std::mem::take(&mut self.gathered);
        self.on_timer(gathered.now);
        self.tell(&mut gathered);
        self.retire();
    }

    fn tell(&mut self, gathered: &mut Gathered) {
        let now = gathered.now;
        gathered.acked.sort_unstable_by_key(|info| info.number);
        gathered.lost.sort_unstable_by_key(|info| info.number);
        let newest = gathered.acked.last().copied();
        let (mut round_start, mut sample) = (false, None);
        let mut times = Vec::new();
        if let Some(newest) = newest {
            round_start = self.delivery.acked(now, newest.sent_at, newest.delivered.0);
            if self.largest_acked.is_none_or(|(number, _)| newest.number > number) {
                self.largest_acked = Some((newest.number, newest.sent_at));
                let latest = now.since(newest.sent_at);
                self.rtt.sample_quic(latest, Duration::ZERO);
                sample = Some(latest);
                if self.takes_times {
                    let PacketInfo { number, sent_at, .. } = newest;
                    times.push(ReceiveTime { number, sent_at, received_at: now });
                }
            }
        }
        if gathered.spurious {
            self.controller.on_spurious_loss(&SpuriousEvent { now, timeout: false });
            self.end_episode(now);
            self.episode.undo();
        }
        // rfc9002 7.3.2
        let is_past = newest.is_some_and(|newest| !self.episode.covers(position(newest.sent_at)));
        if is_past && !self.is_starting_over() {
            self.end_episode(now);
        }
        if let Some(sent_at) = gathered.loss_sent_at {
            self.answer_loss(now, sent_at, gathered);
        }
        let mut marks = Marks { exact: Exact::Packets, ..Marks::default() };
        if let Some(sent_at) = gathered.ce_sent_at {
            marks.ce = MarkCount { packets: 1, bytes: Bytes(self.mss) };
            self.answer_ce(now, sent_at, gathered.inflight_before);
        }
        let recovery = self.episode.state(self.held);
        let grows = |info: &&PacketInfo| self.episode.may_grow(position(info.sent_at));
        let growth = match recovery {
            RecoveryState::Recovery => Bytes::ZERO,
            // rfc9002 B.5
            _ => gathered.acked.iter().filter(grows).map(|info| info.size).sum(),
        };
        let ssthresh = || self.controller.ssthresh().map(|ssthresh| ssthresh.0);
        let event = AckEvent {
            now,
            acked: &gathered.acked,
            newest: newest.map(|info| info.number),
            lost: &gathered.lost,
            newly_acked: gathered.acked.iter().map(|info| info.size).sum(),
            growth,
            newly_lost: gathered.lost.iter().map(|info| info.size).sum(),
            inflight_before: Bytes(gathered.inflight_before),
            inflight: Bytes(self.delivery.inflight()),
            delivered: self.delivery.delivered(),
            total_lost: Bytes(self.delivery.lost()),
            rtt: self.rtt.told(sample),
            round: self.delivery.round(),
            round_start,
            marks,
            receive_times: &times,
            cwnd_limited: self.usage.is_cwnd_limited(self.controller.cwnd().0, ssthresh),
            recovery,
            ..AckEvent::default()
        };
        self.controller.on_ack(&event);
    }

    /// Whether something that had been sent when congestion was found to be persistent is still in flight.
    fn is_starting_over(&self) -> bool {
        self.episode.phase() == Phase::Loss
            && self
                .sent
                .iter()
                .take_while(|sent| self.episode.covers(position(sent.info.sent_at)))
                .any(|sent| sent.outstanding)
    }

    fn answer_loss(&mut self, now: Time, sent_at: Time, gathered: &Gathered) {
        // rfc9002 7.3.2, B.6
        if !self.episode.covers(position(sent_at)) && !self.is_starting_over() {
            self.end_episode(now);
            let event = self.loss_event(now, sent_at, gathered.inflight_before, gathered.lost_bytes);
            self.held = self.controller.recovery() == Recovery::Prr;
            self.controller.on_loss(&event);
            self.episode.begin(Phase::Recovery, position(now) + 1);
        }
        if gathered.persistent {
            self.controller.on_timeout(&TimeoutEvent {
                now,
                kind: Timeout::PersistentCongestion,
                inflight: Bytes(self.delivery.inflight()),
                repeated: false,
            });
            // rfc9002 7.6.2
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
        let (srtt, min_rtt) = (self.rtt.smoothed(), self.rtt.min());
        LossEvent { now, sent_at, inflight: Bytes(inflight), lost: Bytes(lost), srtt, min_rtt }
    }

    fn end_episode(&mut self, now: Time) {
        if !self.episode.is_open() {
            self.episode.finish();
            self.controller.on_recovery_exit(now);
        }
    }

    fn restart_after_idle(&mut self, now: Time) {
        let Some(last) = self.last_sent_at else { return };
        let (idle, rto) = (now.since(last), self.rtt.pto(MAX_ACK_DELAY));
        if idle > rto {
            self.controller.on_idle_restart(&IdleEvent { now, idle, rto });
        }
    }

    /// noq has no timer for a controller: one that wants to be called is when something happens.
    fn on_timer(&mut self, now: Time) {
        if self.controller.next_timer().is_some_and(|at| at <= now) {
            self.controller.on_timer(now);
        }
    }

    /// Drops what no later call can speak of, and what nothing will be heard of.
    fn retire(&mut self) {
        let newest = self.largest_acked.map(|(_, at)| at);
        let patience = self.rtt.smoothed() * 2 + PATIENCE;
        while let Some(front) = self.sent.front() {
            if front.outstanding {
                // rfc9002 6.1.1, 6.1.2: of 1-RTT packets this old noq would have said that they are lost.
                if newest.is_none_or(|newest| front.info.sent_at + patience >= newest) {
                    break;
                }
                self.delivery.replace(front.info.size.0);
            }
            self.sent.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use brakelight_core::random::Random;

    use super::*;
    use crate::valid;

    fn sender(name: &str) -> Sender {
        Sender::new(&ControllerConfig::new(name, &[]).unwrap(), 1200)
    }

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn an_ack_that_brings_losses_lowers_the_window_once_for_an_episode() {
        let mut sender = sender("newreno");
        for pn in 0..10 {
            sender.on_sent(ms(0), 1200, pn);
        }
        assert_eq!(sender.controller().cwnd(), Bytes(12_000));
        sender.on_acked(ms(50), ms(0), 9);
        sender.on_end_acks(ms(50), false);
        for pn in 0..3 {
            sender.on_lost(ms(50), 1200, pn);
        }
        sender.on_losses(ms(50), ms(0), false, 3600);
        sender.flush();
        assert_eq!(sender.controller().cwnd(), Bytes(6_000));
        assert_eq!(sender.delivery.inflight(), 6 * 1200);
        sender.on_lost(ms(51), 1200, 3);
        sender.on_losses(ms(51), ms(0), false, 1200);
        sender.flush();
        assert_eq!(sender.controller().cwnd(), Bytes(6_000), "the same episode");
    }

    #[test]
    fn a_probe_of_the_mtu_is_unknown_and_a_handshake_packet_is_forgotten() {
        let mut sender = sender("newreno");
        // Both spaces number from 0; of the Initial packet nothing is heard.
        sender.on_sent(ms(0), 1200, 0);
        sender.on_sent(ms(20), 100, 0);
        sender.on_sent(ms(20), 1400, 1);
        assert_eq!(sender.delivery.inflight(), 1300);
        sender.on_acked(ms(40), ms(20), 0);
        sender.on_acked(ms(40), ms(20), 1);
        sender.on_end_acks(ms(40), false);
        sender.flush();
        assert_eq!(sender.delivery.inflight(), 1200);
        sender.on_sent(ms(500), 1200, 2);
        sender.on_acked(ms(520), ms(500), 2);
        sender.on_end_acks(ms(520), false);
        sender.flush();
        assert_eq!(sender.delivery.inflight(), 0);
    }

    /// Every controller, on paths that lose and mark at random: none hears anything that the contract of
    /// events forbids.
    #[test]
    fn every_controller_hears_what_the_contract_promises() {
        for name in valid() {
            let mut sender = sender(name);
            let mut random = Random::stream(7, name);
            let (mut pn, mut now) = (0, Time::ZERO);
            for _ in 0..400 {
                let (begin, first) = (now, pn);
                let window = sender.controller().cwnd().0;
                while sender.delivery.inflight() + 1200 <= window && pn - first < 60 {
                    sender.on_sent(now, 1200, pn);
                    pn += 1;
                }
                now += Duration::from_millis(20 + random.bits() % 20);
                let (mut lost, mut acked) = (Vec::new(), false);
                for packet in first..pn {
                    match random.bits() % 40 {
                        0 => lost.push(packet),
                        _ => {
                            sender.on_acked(now, begin, packet);
                            acked = true;
                        }
                    }
                }
                if acked {
                    sender.on_end_acks(now, random.bits().is_multiple_of(4));
                    if random.bits().is_multiple_of(20) {
                        sender.on_ce(now, begin);
                    }
                }
                lost.iter().for_each(|packet| sender.on_lost(now, 1200, *packet));
                if !lost.is_empty() {
                    sender.on_losses(now, begin, false, 1200 * lost.len() as u64);
                }
                sender.flush();
                assert!(sender.controller().cwnd().0 >= 1200, "{name}");
            }
            let violations = sender.controller().violations();
            assert!(violations.is_empty(), "{name}: {violations:?}");
            assert!(sender.delivery.delivered().0 > 100_000, "{name}");
        }
    }
}
