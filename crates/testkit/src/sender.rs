//! The sending half of a flow: bulk data, packet-threshold loss detection, a retransmission timeout.
//!
//! What it tells its controller is the arithmetic of [`brakelight_core::sender`], with the filters and the
//! episodes of TCP. Only what depends on the wire is its own: which packets are out, which of them are lost,
//! and what is sent again. Each packet carries one unit of data; a lost unit is sent again, in a packet with
//! a number of its own, before new data.

use std::collections::{BTreeSet, VecDeque};

use brakelight_core::controller::{
    AckEvent, Controller, Exact, LossEvent, MarkCount, Marks, PacketInfo, ReceiveTime, ReceiverReport,
    RecoveryState, SendDirective, SendEvent, Timeout, TimeoutEvent,
};
use brakelight_core::ecn::Mark;
use brakelight_core::feedback::Echo;
use brakelight_core::sender::{Checked, Delivery, Episode, Pacer, Phase, RttEstimator};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_registry::AnyController;

use crate::world::{FlowSpec, MSS};

/// Later packets that must arrive before one counts as lost (RFC 9002 section 6.1.1).
const REORDERING: u64 = 3;
/// The timeout before the first sample (RFC 6298 section 2.1).
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// Lost packets are remembered while this many later ones are: those that arrive after all count as
/// delivered.
const REMEMBERED: usize = 4096;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Out,
    Acked,
    Lost,
}

struct Sent {
    info: PacketInfo,
    data: u64,
    state: State,
}

/// What an ACK delivered and found lost, as its event says it.
#[derive(Default)]
struct News<'a> {
    acked: Vec<PacketInfo>,
    lost: Vec<PacketInfo>,
    sample: Option<Duration>,
    marks: Marks,
    receive_times: &'a [ReceiveTime],
    report: ReceiverReport,
    round_start: bool,
}

pub(crate) struct Sender {
    controller: Checked<AnyController>,
    silent: Vec<(Time, Time)>,
    /// Packets by number, from the oldest that is neither acknowledged nor forgotten.
    packets: VecDeque<Sent>,
    next_number: u64,
    largest_acked: Option<u64>,
    next_data: u64,
    /// Data sent and not acknowledged, and what of it is to be sent again.
    unacked: BTreeSet<u64>,
    again: BTreeSet<u64>,
    delivery: Delivery,
    rtt: RttEstimator,
    pacer: Pacer,
    episode: Episode,
    last_progress: Time,
    timeouts: u32,
    cwnd_limited: bool,
    /// Accelerates, brakes and CE counted so far.
    totals: [u64; 3],
    woken_for: Option<Time>,
}

impl Sender {
    /// A sender that holds its host, itself, to the contract.
    pub(crate) fn new(controller: AnyController, flow: &FlowSpec<'_>) -> Self {
        Sender {
            controller: Checked::strict(controller),
            silent: flow.silent.clone(),
            packets: VecDeque::new(),
            next_number: 0,
            largest_acked: None,
            next_data: 0,
            unacked: BTreeSet::new(),
            again: BTreeSet::new(),
            delivery: Delivery::new(flow.start),
            rtt: RttEstimator::tcp(),
            // Evenly from the first packet on: what is seen here shall not depend on the bursts that hosts
            // allow.
            pacer: Pacer::quic(MSS.0, flow.start),
            episode: Episode::default(),
            last_progress: flow.start,
            timeouts: 0,
            cwnd_limited: false,
            totals: [0; 3],
            woken_for: None,
        }
    }

    /// The controller that decides.
    pub(crate) fn controller(&self) -> &AnyController {
        self.controller.inner()
    }

    /// Bytes in flight.
    pub(crate) fn inflight(&self) -> Bytes {
        Bytes(self.delivery.inflight())
    }

    /// When the retransmission timer fires, if anything is out.
    fn timeout_at(&self) -> Option<Time> {
        let rto = self.rtt.rto().unwrap_or(INITIAL_RTO) * (1 << self.timeouts.min(6));
        (self.delivery.inflight() > 0).then(|| self.last_progress + rto)
    }

    /// When the application has something to send again, if it has nothing now. What was lost is sent in any
    /// case.
    fn silent_until(&self, now: Time) -> Option<Time> {
        if !self.again.is_empty() {
            return None;
        }
        self.silent.iter().find(|(from, to)| *from <= now && now < *to).map(|(_, to)| *to)
    }

    fn window_is_open(&self) -> bool {
        self.inflight() + MSS <= self.controller.cwnd()
    }

    /// When the pacer lets the next packet leave; now or earlier means at once.
    fn paced_until(&self) -> Time {
        self.controller.pacing_rate().map_or(Time::ZERO, |rate| self.pacer.ready_at(MSS.0, rate))
    }

    /// Timers that are due.
    pub(crate) fn on_time(&mut self, now: Time) {
        if self.controller.next_timer().is_some_and(|at| at <= now) {
            self.controller.on_timer(now);
        }
        if self.timeout_at().is_some_and(|at| at <= now) {
            self.on_timeout(now);
        }
    }

    /// Everything that is out counts as lost, and is to be sent again.
    fn on_timeout(&mut self, now: Time) {
        let before = self.inflight();
        let event = TimeoutEvent { now, kind: Timeout::Rto, inflight: before, repeated: self.timeouts > 0 };
        self.timeouts += 1;
        self.last_progress = now;
        let mut lost = Vec::new();
        for sent in self.packets.iter_mut().filter(|sent| sent.state == State::Out) {
            sent.state = State::Lost;
            lost.push(sent.info);
            self.delivery.lose(sent.info.size.0);
            self.again.insert(sent.data);
        }
        self.controller.on_timeout(&event);
        self.episode.begin(Phase::Loss, self.next_data);
        self.tell(now, before, &News { lost, ..News::default() });
    }

    /// When to come back, unless an earlier wake-up for the same time is still to come.
    pub(crate) fn wake_at(&mut self, now: Time) -> Option<Time> {
        let mut at = Time::MAX;
        if let Some(timer) = self.controller.next_timer() {
            at = at.min(timer);
        }
        if let Some(timeout) = self.timeout_at() {
            at = at.min(timeout);
        }
        if let Some(end) = self.silent_until(now) {
            at = at.min(end);
        } else if self.window_is_open() {
            at = at.min(self.paced_until());
        }
        let at = (at < Time::MAX).then_some(at.max(now))?;
        if self.woken_for == Some(at) && at > now {
            return None;
        }
        self.woken_for = Some(at);
        // Strictly later, or a timer that stays due would stop time.
        Some(at.max(now + Duration::from_nanos(1)))
    }

    /// Sends a packet if pacing, window and application let it.
    pub(crate) fn send(&mut self, now: Time) -> Option<(u64, SendDirective)> {
        if self.silent_until(now).is_some() {
            if self.window_is_open() {
                self.delivery.limit_by_application();
            }
            return None;
        }
        if !self.window_is_open() {
            self.cwnd_limited = true;
            return None;
        }
        if self.paced_until() > now {
            return None;
        }
        if self.delivery.inflight() == 0 {
            self.last_progress = now;
        }
        self.delivery.begin_flight(now);
        let (data, retransmission) = match self.again.pop_first() {
            Some(data) => (data, true),
            None => (self.next_data, false),
        };
        let number = self.next_number;
        let directive = self.controller.on_send(&SendEvent {
            now,
            size: MSS,
            number,
            retransmission,
            replaces: None,
            inflight: self.inflight(),
            app_limited: self.delivery.is_app_limited(),
            srtt: self.rtt.measured(),
        });
        if let Some(rate) = self.controller.pacing_rate() {
            self.pacer.sent(now, MSS.0, rate);
        }
        let books = self.delivery.send(MSS.0);
        self.next_number += 1;
        self.next_data = self.next_data.max(data + 1);
        self.unacked.insert(data);
        let info = PacketInfo {
            number,
            size: MSS,
            sent_at: now,
            delivered: Bytes(books.delivered),
            delivered_at: books.delivered_at,
            first_sent_at: books.first_sent_at,
            inflight: Bytes(books.inflight),
            lost: Bytes(books.lost),
            app_limited: books.app_limited,
            retransmission,
            tag: directive.tag,
        };
        self.packets.push_back(Sent { info, data, state: State::Out });
        Some((number, directive))
    }

    pub(crate) fn on_ack(&mut self, now: Time, arrivals: &[ReceiveTime], marks: &[Mark], echo: &Echo) {
        let before = self.inflight();
        let mut news = News {
            acked: self.acknowledge(arrivals),
            receive_times: arrivals,
            report: echo.report,
            ..News::default()
        };
        if let Some(&newest) = news.acked.last() {
            news.round_start = self.delivery.acked(now, newest.sent_at, newest.delivered.0);
            news.sample = Some(self.sample_rtt(now, &news.acked));
            self.largest_acked = self.largest_acked.max(Some(newest.number));
            self.last_progress = now;
            self.timeouts = 0;
        }
        news.lost = self.detect_losses();
        self.forget();
        news.marks = self.count(marks, echo);
        self.begin_and_end_episodes(now, &news);
        self.tell(now, before, &news);
    }

    /// Takes what arrived out of flight, and returns it sorted by number.
    fn acknowledge(&mut self, arrivals: &[ReceiveTime]) -> Vec<PacketInfo> {
        let mut acked = Vec::new();
        for arrival in arrivals {
            let Some(first) = self.packets.front() else { break };
            let Some(index) = arrival.number.checked_sub(first.info.number) else { continue };
            let Some(sent) = self.packets.get_mut(index as usize) else { continue };
            match sent.state {
                State::Acked => continue,
                State::Out => self.delivery.deliver(sent.info.size.0),
                State::Lost => self.delivery.deliver_late(sent.info.size.0),
            }
            sent.state = State::Acked;
            self.unacked.remove(&sent.data);
            self.again.remove(&sent.data);
            acked.push(sent.info);
        }
        acked.sort_unstable_by_key(|info| info.number);
        acked
    }

    /// Feeds the filters, as the modelled TCP host does: they see the oldest packet, congestion control the
    /// newest.
    fn sample_rtt(&mut self, now: Time, acked: &[PacketInfo]) -> Duration {
        let (oldest, newest) = (acked[0].sent_at, acked[acked.len() - 1].sent_at);
        let una = self.unacked.first().copied().unwrap_or(self.next_data);
        self.rtt.sample_tcp(now.since(oldest), una, self.next_data);
        let sample = now.since(newest);
        self.rtt.note_min(sample);
        sample
    }

    fn detect_losses(&mut self) -> Vec<PacketInfo> {
        let mut lost = Vec::new();
        for sent in &mut self.packets {
            if self.largest_acked.is_none_or(|largest| sent.info.number + REORDERING > largest) {
                break;
            }
            if sent.state == State::Out {
                sent.state = State::Lost;
                self.delivery.lose(sent.info.size.0);
                if self.unacked.contains(&sent.data) {
                    self.again.insert(sent.data);
                }
                lost.push(sent.info);
            }
        }
        lost
    }

    fn forget(&mut self) {
        while let Some(front) = self.packets.front() {
            let settled = match front.state {
                State::Out => false,
                State::Acked => true,
                State::Lost => self.packets.len() > REMEMBERED,
            };
            if !settled {
                break;
            }
            self.packets.pop_front();
        }
    }

    /// One reaction per episode, which ends when everything that was out at its beginning is acknowledged.
    fn begin_and_end_episodes(&mut self, now: Time, news: &News<'_>) {
        let repaired = self.unacked.first().is_none_or(|&first| !self.episode.covers(first));
        if !self.episode.is_open() && repaired {
            self.episode.finish();
            self.controller.on_recovery_exit(now);
        }
        let newly_lost: Bytes = news.lost.iter().map(|info| info.size).sum();
        if let Some(newest) = news.lost.last()
            && !self.episode.is_repairing()
        {
            self.controller.on_loss(&self.reaction(now, newest.sent_at, newly_lost));
            self.episode.begin(Phase::Recovery, self.next_data);
        }
        if news.marks.ce.packets > 0 && self.episode.is_open() {
            let sent_at = news.acked.last().map_or(self.delivery.newest_sent_at(), |info| info.sent_at);
            self.controller.on_ce(&self.reaction(now, sent_at, Bytes::ZERO));
            self.episode.begin(Phase::Reduced, self.next_data);
        }
    }

    fn reaction(&self, now: Time, sent_at: Time, lost: Bytes) -> LossEvent {
        LossEvent {
            now,
            sent_at,
            inflight: self.inflight() + lost,
            lost,
            srtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min(),
        }
    }

    /// Marks as exact counters carry them, or as every packet of the ACK carried them.
    fn count(&mut self, marks: &[Mark], echo: &Echo) -> Marks {
        let mut counts = [0_u64; 3];
        if let Some(totals) = &echo.totals {
            for (count, (total, seen)) in
                counts.iter_mut().zip(totals.packets.iter().zip(self.totals.iter_mut()))
            {
                *count = u64::from(*total) - *seen;
                *seen = u64::from(*total);
            }
        } else {
            for mark in marks {
                match mark {
                    Mark::None => {}
                    Mark::Accelerate => counts[0] += 1,
                    Mark::Brake => counts[1] += 1,
                    Mark::Ce => counts[2] += 1,
                }
            }
        }
        let [accelerate, brake, ce] =
            counts.map(|packets| MarkCount { packets, bytes: Bytes(packets * MSS.0) });
        Marks { accelerate, brake, ce, exact: Exact::Both }
    }

    fn tell(&mut self, now: Time, inflight_before: Bytes, news: &News<'_>) {
        let bytes = |list: &[PacketInfo]| list.iter().map(|info| info.size).sum();
        let newly_acked: Bytes = bytes(&news.acked);
        let recovery = self.episode.state(false);
        self.controller.on_ack(&AckEvent {
            now,
            acked: &news.acked,
            newest: news.acked.last().map(|packet| packet.number),
            lost: &news.lost,
            newly_acked,
            // As TCP's hosts have it: all but in recovery.
            growth: if recovery == RecoveryState::Recovery { Bytes::ZERO } else { newly_acked },
            newly_lost: bytes(&news.lost),
            inflight_before,
            inflight: self.inflight(),
            delivered: self.delivery.delivered(),
            total_lost: Bytes(self.delivery.lost()),
            rtt: self.rtt.told(news.sample),
            ack_delay: Duration::ZERO,
            round: self.delivery.round(),
            round_start: news.round_start,
            marks: news.marks,
            receive_times: news.receive_times,
            report: news.report,
            cwnd_limited: self.cwnd_limited,
            recovery,
        });
        if news.round_start {
            self.cwnd_limited = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use brakelight_core::controller::Connection;
    use brakelight_core::random::Random;
    use brakelight_registry::ControllerConfig;

    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// A sender of NewReno that has sent its initial window of ten packets and timed out, and when that was.
    fn timed_out() -> (Sender, Time) {
        let config = ControllerConfig::new("newreno", &[]).expect("a registered name");
        let connection = Connection {
            mss: MSS,
            overhead: Bytes(52),
            initial_window: Bytes(10 * MSS.0),
            now: Time::ZERO,
            random: Random::stream(1, "controller"),
        };
        let mut sender = Sender::new(config.build(&connection), &FlowSpec::bulk("newreno", RTT));
        let sent = std::iter::from_fn(|| sender.send(Time::ZERO)).count();
        assert_eq!(sent, 10);
        let due = sender.timeout_at().expect("packets are out");
        assert_eq!(due, Time::ZERO + INITIAL_RTO);
        sender.on_time(due);
        assert_eq!((sender.inflight(), sender.delivery.lost()), (Bytes::ZERO, 10 * MSS.0));
        (sender, due)
    }

    fn acknowledge(sender: &mut Sender, now: Time, numbers: impl IntoIterator<Item = u64>) {
        let arrival = |number| ReceiveTime { number, sent_at: Time::ZERO, received_at: now };
        let arrivals: Vec<_> = numbers.into_iter().map(arrival).collect();
        sender.on_ack(now, &arrivals, &vec![Mark::None; arrivals.len()], &Echo::default());
    }

    #[test]
    fn a_timeout_is_repaired_once_everything_that_was_out_has_arrived() {
        let (mut sender, mut now) = timed_out();
        let mut arrived = 0;
        while arrived < 10 {
            assert_eq!(sender.episode.phase(), Phase::Loss, "{arrived} of 10 have arrived");
            let numbers: Vec<_> = std::iter::from_fn(|| sender.send(now)).map(|(number, _)| number).collect();
            assert!(!numbers.is_empty());
            for number in numbers {
                now += RTT;
                acknowledge(&mut sender, now, [number]);
                arrived += 1;
            }
        }
        assert_eq!(sender.episode.phase(), Phase::Open);
    }

    #[test]
    fn what_arrives_after_a_timeout_declared_it_lost_is_delivered_and_not_sent_again() {
        let (mut sender, due) = timed_out();
        acknowledge(&mut sender, due + RTT, 0..10);
        assert_eq!((sender.delivery.delivered(), sender.delivery.lost()), (Bytes(10 * MSS.0), 0));
        assert_eq!(sender.episode.phase(), Phase::Open);
        sender.send(due + RTT).expect("the window is open");
        assert!(!sender.packets.back().expect("it was sent").info.retransmission);
    }
}
