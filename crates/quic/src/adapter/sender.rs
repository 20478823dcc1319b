//! From the stack's calls to our controllers' events: what was sent, what became of it, and when a controller is told.
//!
//! The stack tells of one ACK in several calls, RTT and losses last. They are gathered, and told as one event when the next thing
//! happens or the window is asked for: losses before the ACK they came with, as every controller expects.

use std::collections::VecDeque;

use brakelight_core::controller::{
    AckEvent, Connection, Controller, Exact, IdleEvent, LossEvent, MarkCount, Marks, PacketInfo, ReceiveTime,
    Report, SendEvent, SpuriousEvent, Timeout, TimeoutEvent,
};
use brakelight_core::ecn::{Ecn, Encoding, Mark};
use brakelight_core::registry::{AnyController, ControllerConfig};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::Settings;
use super::pacer::Pacer;
use super::peer::Peer;
use super::rtt::Estimator;
use crate::report;
use crate::tap::frames::{Ack, EcnCounts};
use crate::validation::{State, Validation};

/// The exponent of two by which the ack delay of a frame is scaled, unless a peer says otherwise, which none does
/// (rfc9000 18.2).
const ACK_DELAY_EXPONENT: u32 = 3;

/// Packets lost in one episode that may yet turn out to be late.
const MOST_MISTAKES: usize = 64;

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Outstanding,
    Acked,
    Lost,
}

/// One packet, or a datagram whose packets the tap does not see.
#[derive(Clone, Copy, Debug)]
struct Sent {
    info: PacketInfo,
    fate: Fate,
    /// Its packet number, if the tap saw it: the others may not even ask for an ACK.
    number: Option<u64>,
    marked: bool,
    /// Whether the controller knows of it. Of Initial and Handshake packets it does not: some are never acknowledged, as
    /// their keys are dropped before, and controllers wait for news of every packet that they were told of.
    told: bool,
}

/// A packet that was encrypted, and is about to leave.
#[derive(Clone, Copy, Debug)]
struct Sealed {
    number: u64,
    size: u64,
    ecn: Ecn,
    told: Told,
}

/// What a controller was told of a packet that is about to leave, and what it said.
#[derive(Clone, Copy, Debug)]
struct Told {
    number: u64,
    app_limited: bool,
    tag: u64,
}

/// What an ACK frame said.
#[derive(Clone, Copy, Debug)]
struct Frame {
    delay: u64,
    counts: Option<EcnCounts>,
}

/// One ACK, as far as the stack has told of it.
#[derive(Clone, Debug, Default)]
struct Gathered {
    now: Time,
    any: bool,
    acked: Vec<PacketInfo>,
    marked: u64,
    bytes: u64,
    inflight_before: u64,
    lost: Vec<PacketInfo>,
    lost_bytes: u64,
    /// The numbers of those that the tap saw.
    missing: Vec<u64>,
    /// When the newest packet that was lost had been sent.
    loss_sent_at: Option<Time>,
    persistent: bool,
    /// When the newest packet of an ACK with CE had been sent, by the stack's own count.
    ce_sent_at: Option<Time>,
    /// Receive times, and the peer's report.
    times: Vec<ReceiveTime>,
    report: Report,
}

/// What a connection did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that ask for an ACK.
    pub sent_packets: u64,
    /// Of these, those that left with an ECN codepoint.
    pub marked_packets: u64,
    /// Packets acknowledged.
    pub acked_packets: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Their bytes.
    pub lost_bytes: u64,
    /// Episodes taken back as mistakes.
    pub undone_episodes: u64,
    /// Packets that came back with ABC's accelerate.
    pub accelerate_packets: u64,
    /// Packets that came back with ABC's brake.
    pub brake_packets: u64,
    /// Packets that came back with CE.
    pub ce_packets: u64,
    /// Reports of receive times that could be read.
    pub reports: u64,
    /// Datagrams that claimed to be one and could not.
    pub malformed_reports: u64,
}

/// What keeps the next packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gate {
    /// Nothing.
    Open,
    /// The window is full.
    Window,
    /// The pacer, until then.
    Until(Time),
}

/// A connection's congestion control.
#[derive(Debug)]
pub(super) struct Sender {
    mss: u64,
    overhead: u64,
    controller: Box<AnyController>,
    encoding: Encoding,
    validation: Validation,
    /// Whether ECN failed and the controller was told, or replaced.
    fallen_back: bool,
    tapped: bool,
    rtt: Estimator,
    rtt_sample: Option<Duration>,
    pacer: Pacer,
    peer: Peer,

    sent: VecDeque<Sent>,
    sealed: Vec<Sealed>,
    /// Bytes sealed that ask for no ACK.
    quiet: u64,
    eliciting: bool,
    next_number: u64,
    /// Of what was sent last.
    last_number: Option<u64>,
    inflight: u64,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    last_sent_at: Option<Time>,
    total_lost: u64,
    app_limited: bool,
    app_limited_until: u64,
    round: u64,
    round_end: u64,
    largest_acked: Option<(u64, Time)>,

    /// When the last episode began, and whether it repairs losses.
    episode_at: Option<Time>,
    repairing: bool,
    /// Packets declared lost in this episode that have not arrived late; whether the last of them just has. The stack forgets
    /// what it declares lost, but an ACK says of late packets what it says of others.
    missing: Vec<u64>,
    undone: bool,
    frame: Option<Frame>,
    gathered: Gathered,
    counters: Counters,
}

impl Sender {
    pub(super) fn new(settings: &Settings, tapped: bool, now: Time, mtu: u16) -> Self {
        let mss = u64::from(mtu);
        let opening = Connection {
            mss: Bytes(mss),
            overhead: Bytes(settings.overhead),
            initial_window: Bytes(mss * u64::from(settings.initial_window)),
            now,
            random: settings.random.clone(),
        };
        let controller = Box::new(settings.controller.build(&opening));
        let encoding = controller.encoding();
        Sender {
            mss,
            overhead: settings.overhead,
            encoding,
            validation: Validation::new(encoding),
            fallen_back: false,
            tapped,
            rtt: Estimator::default(),
            rtt_sample: None,
            pacer: Pacer::new(mss * u64::from(settings.pacing_burst.max(1)), now),
            peer: Peer::new(&settings.controller, settings.receive_times, encoding, mss),
            controller,
            sent: VecDeque::new(),
            sealed: Vec::new(),
            quiet: 0,
            eliciting: true,
            next_number: 0,
            last_number: None,
            inflight: 0,
            delivered: 0,
            delivered_at: now,
            first_sent_at: now,
            last_sent_at: None,
            total_lost: 0,
            app_limited: false,
            app_limited_until: 0,
            round: 0,
            round_end: 0,
            largest_acked: None,
            episode_at: None,
            repairing: false,
            missing: Vec::new(),
            undone: false,
            frame: None,
            gathered: Gathered::default(),
            counters: Counters::default(),
        }
    }

    // What may be asked.

    pub(super) fn controller(&self) -> &AnyController {
        &self.controller
    }

    pub(super) fn counters(&self) -> Counters {
        self.counters
    }

    pub(super) fn validation(&self) -> State {
        self.validation.state()
    }

    pub(super) fn times(&self) -> super::Times {
        self.peer.times()
    }

    pub(super) fn wants_reports(&self) -> bool {
        self.peer.wants_reports() && self.counters.reports == 0
    }

    pub(super) fn last_number(&self) -> Option<u64> {
        self.last_number
    }

    pub(super) fn inflight(&self) -> Bytes {
        Bytes(self.inflight)
    }

    pub(super) fn smoothed_rtt(&self) -> Option<Duration> {
        self.rtt.measured()
    }

    pub(super) fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.rtt_sample.take()
    }

    /// How fast packets should leave: the controller's rate, or 1.25 windows per round trip (rfc9002 7.7).
    pub(super) fn pacing_rate(&self) -> Rate {
        self.controller.pacing_rate().unwrap_or_else(|| {
            let bits = 1.25 * 8.0 * self.controller.cwnd().as_f64();
            Rate::from_bps_f64(bits / self.rtt.smoothed().as_secs_f64())
        })
    }

    /// What keeps a full packet from leaving at `now`.
    pub(super) fn gate(&mut self, now: Time) -> Gate {
        self.flush();
        if self.inflight + self.mss > self.controller.cwnd().0 && self.inflight > 0 {
            return Gate::Window;
        }
        let at = self.pacer.ready_at(self.mss, self.pacing_rate());
        if at > now { Gate::Until(at) } else { Gate::Open }
    }

    pub(super) fn next_timer(&self) -> Option<Time> {
        self.controller.next_timer()
    }

    pub(super) fn on_timer(&mut self, now: Time) {
        self.flush();
        if self.controller.next_timer().is_some_and(|at| at <= now) {
            self.controller.on_timer(now);
        }
    }

    // What leaves.

    pub(super) fn on_payload(&mut self, eliciting: bool) {
        self.eliciting = eliciting;
    }

    /// The packet `number` was sealed at `now`, and leaves next.
    pub(super) fn on_seal(&mut self, now: Time, number: u64, size: u64) -> Ecn {
        if !self.eliciting {
            self.quiet += size;
            // rfc3168 6.1.4, of pure ACKs: they answer nothing, and their marks would be taken for those of data.
            return Ecn::NotEct;
        }
        self.flush();
        let before: u64 = self.sealed.iter().map(|packet| packet.size).sum();
        let (told, wanted) = self.ask(now, size, self.inflight + before);
        let ecn = if self.validation.codepoint() == Ecn::NotEct { Ecn::NotEct } else { wanted };
        self.validation.on_sent(ecn);
        self.sealed.push(Sealed { number, size, ecn, told });
        ecn
    }

    /// Tells the controller of a packet that is about to leave, and asks for its codepoint.
    fn ask(&mut self, now: Time, size: u64, inflight: u64) -> (Told, Ecn) {
        if inflight == 0 {
            self.restart_after_idle(now);
            // draft-ietf-ccwg-bbr 4.1.2.2
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        let number = self.next_number;
        self.next_number += 1;
        let app_limited = self.app_limited_until > self.delivered;
        let directive = self.controller.on_send(&SendEvent {
            now,
            size: Bytes(size),
            number,
            retransmission: false,
            inflight: Bytes(inflight),
            app_limited,
            srtt: self.rtt.measured(),
        });
        (Told { number, app_limited, tag: directive.tag }, directive.ecn)
    }

    pub(super) fn on_sent(&mut self, now: Time, bytes: u64) {
        self.flush();
        let quiet = std::mem::take(&mut self.quiet);
        let mut sealed = std::mem::take(&mut self.sealed);
        let mut sum: u64 = sealed.iter().map(|packet| packet.size).sum();
        // A probe of the MTU is sealed, but not told of.
        while sum > bytes
            && let Some(probe) = sealed.first()
        {
            sum -= probe.size;
            sealed.remove(0);
        }
        self.last_number = sealed.last().map(|packet| packet.number);
        for packet in &sealed {
            let told = Some(packet.told);
            self.record(now, packet.size, Some(packet.number), packet.ecn.is_capable(), told);
        }
        let mut rest = bytes.saturating_sub(sum + quiet);
        while rest > 0 {
            let size = if self.tapped { rest } else { rest.min(self.mss) };
            let told = (!self.tapped).then(|| self.ask(now, size, self.inflight).0);
            self.record(now, size, None, false, told);
            rest -= size;
        }
        sealed.clear();
        self.sealed = sealed;
        let rate = self.pacing_rate();
        self.pacer.sent(now, bytes, rate);
    }

    fn record(&mut self, now: Time, size: u64, number: Option<u64>, marked: bool, told: Option<Told>) {
        self.inflight += size;
        self.last_sent_at = Some(now);
        self.counters.sent_packets += 1;
        self.counters.marked_packets += u64::from(marked);
        if let Some(number) = number {
            self.peer.on_sent(number, told.map_or(0, |told| told.number), now, size);
        }
        self.sent.push_back(Sent {
            info: PacketInfo {
                number: told.map_or(self.next_number, |told| told.number),
                size: Bytes(size),
                sent_at: now,
                delivered: Bytes(self.delivered),
                delivered_at: self.delivered_at,
                first_sent_at: self.first_sent_at,
                inflight: Bytes(self.inflight),
                lost: Bytes(self.total_lost),
                app_limited: told.is_some_and(|told| told.app_limited),
                retransmission: false,
                tag: told.map_or(0, |told| told.tag),
            },
            fate: Fate::Outstanding,
            number,
            marked,
            told: told.is_some(),
        });
    }

    fn restart_after_idle(&mut self, now: Time) {
        let Some(last) = self.last_sent_at else { return };
        let (idle, rto) = (now.since(last), self.rtt.pto());
        if idle > rto {
            self.controller.on_idle_restart(&IdleEvent { now, idle, rto });
        }
    }

    // What comes back.

    pub(super) fn on_frame(&mut self, ack: &Ack<'_>, newest: bool) {
        if newest {
            self.frame = Some(Frame { delay: ack.delay, counts: ack.ecn });
        }
        if !self.missing.is_empty() {
            for range in ack.ranges() {
                self.missing.retain(|number| !range.contains(number));
            }
            self.undone |= self.missing.is_empty();
        }
    }

    pub(super) fn on_acked(&mut self, now: Time, sent_at: Time, size: u64) {
        self.gather(now);
        // A packet is known by when it was sent, and among those of one moment by its size: they are acknowledged in order.
        let first = self.sent.partition_point(|sent| sent.info.sent_at < sent_at);
        let moment = self.sent.range(first..).take_while(|sent| sent.info.sent_at == sent_at);
        let mut found = None;
        for (place, sent) in moment.enumerate().filter(|(_, sent)| sent.fate == Fate::Outstanding) {
            if sent.info.size == Bytes(size) {
                found = Some(place);
                break;
            }
            found = found.or(sent.number.is_none().then_some(place));
        }
        let info = match found {
            Some(place) => {
                let sent = &mut self.sent[first + place];
                sent.fate = Fate::Acked;
                if !sent.told {
                    self.rtt.sample(now.since(sent_at), Duration::ZERO);
                    return;
                }
                self.gathered.marked += u64::from(sent.marked);
                PacketInfo { size: Bytes(size), ..sent.info }
            }
            // Of a packet that was not told of, such as a probe of the MTU, no more is known.
            None => PacketInfo {
                number: self.next_number.saturating_sub(1),
                size: Bytes(size),
                sent_at,
                delivered: Bytes(self.delivered),
                delivered_at: self.delivered_at,
                first_sent_at: sent_at.min(self.first_sent_at),
                inflight: Bytes(self.inflight),
                lost: Bytes(self.total_lost),
                app_limited: true,
                retransmission: false,
                tag: 0,
            },
        };
        self.gathered.bytes += size;
        self.gathered.acked.push(info);
    }

    pub(super) fn on_end_acks(&mut self, now: Time, inflight: u64, app_limited: bool) {
        self.gather(now);
        self.gathered.inflight_before = inflight + self.gathered.bytes;
        self.inflight = inflight;
        self.app_limited = app_limited;
        if app_limited {
            // draft-ietf-ccwg-bbr 4.1.2.4: what leaves from now on says little about the path.
            self.app_limited_until = (self.delivered + self.gathered.bytes + inflight).max(1);
        }
    }

    pub(super) fn on_congestion(&mut self, now: Time, sent_at: Time, persistent: bool, lost: u64) {
        if lost == 0 {
            // The stack's own reading of CE; the tap's is the better one.
            if !self.tapped {
                self.gather(now);
                self.gathered.ce_sent_at = Some(sent_at);
            }
            return;
        }
        if !self.gathered.any || self.gathered.now != now {
            self.gather(now);
            self.gathered.inflight_before = self.inflight;
        }
        // The oldest are lost first, by number as by time.
        let mut left = lost;
        for sent in &mut self.sent {
            if left == 0 || sent.info.sent_at > sent_at {
                break;
            }
            if sent.fate == Fate::Outstanding && sent.info.size.0 <= left {
                left -= sent.info.size.0;
                sent.fate = Fate::Lost;
                if sent.told {
                    self.gathered.lost.push(sent.info);
                    self.gathered.missing.extend(sent.number);
                }
                self.counters.lost_packets += 1;
            }
        }
        self.counters.lost_bytes += lost;
        self.inflight = self.inflight.saturating_sub(lost);
        self.total_lost += lost;
        self.gathered.lost_bytes += lost;
        self.gathered.loss_sent_at = self.gathered.loss_sent_at.max(Some(sent_at));
        self.gathered.persistent |= persistent;
    }

    /// A datagram from the peer, which may be a report.
    pub(super) fn on_datagram(&mut self, now: Time, datagram: &[u8]) {
        let report = match report::Report::decode(datagram) {
            Ok(report) => report,
            Err(report::Malformed::Foreign) => return,
            Err(_) => {
                self.counters.malformed_reports += 1;
                return;
            }
        };
        if report.is_invitation() {
            return;
        }
        self.counters.reports += 1;
        if self.gathered.now != now {
            self.gather(now);
            self.gathered.inflight_before = self.inflight;
        }
        self.gathered.any = true;
        self.peer.on_report(now, &report, &mut self.gathered.times, &mut self.gathered.report);
    }

    /// Begins to gather what happens at `now`; what happened before is told first.
    fn gather(&mut self, now: Time) {
        if self.gathered.any && self.gathered.now != now {
            self.flush();
        }
        if !self.gathered.any {
            self.gathered.inflight_before = self.inflight;
        }
        self.gathered.any = true;
        self.gathered.now = now;
    }

    /// Tells the controller what was gathered.
    pub(super) fn flush(&mut self) {
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
        self.delivered += gathered.bytes;
        self.counters.acked_packets += gathered.acked.len() as u64;
        gathered.acked.sort_unstable_by_key(|info| info.number);
        let (mut round_start, mut sample) = (false, None);
        let delay = frame.map_or(Duration::ZERO, |frame| {
            Duration::from_micros(frame.delay.min(1 << 32) << ACK_DELAY_EXPONENT)
        });
        if let Some(newest) = gathered.acked.last() {
            self.delivered_at = now;
            self.first_sent_at = newest.sent_at;
            // draft-ietf-ccwg-bbr 4.1.1.3
            round_start = newest.delivered.0 >= self.round_end;
            if round_start {
                self.round += 1;
                self.round_end = self.delivered;
            }
            if self.largest_acked.is_none_or(|(number, _)| newest.number > number) {
                self.largest_acked = Some((newest.number, newest.sent_at));
                let latest = now.since(newest.sent_at);
                // rfc9002 5.3: no more than max_ack_delay, of which 25 ms is the default.
                self.rtt.sample(latest, delay.min(Duration::from_millis(25)));
                sample = Some(latest);
                self.rtt_sample = sample;
            }
        }
        if std::mem::take(&mut self.undone) {
            // Nobody says what becomes of an episode whose packets all arrive late; the modelled host undoes it.
            self.counters.undone_episodes += 1;
            self.controller.on_spurious_loss(&SpuriousEvent { now, timeout: false });
            self.end_episode(now);
        }
        let newest_sent_at = gathered.acked.last().map(|info| info.sent_at);
        // rfc9002 7.3.2
        if let (Some(newest), Some(began)) = (newest_sent_at, self.episode_at)
            && newest > began
        {
            self.end_episode(now);
        }
        if let Some(sent_at) = gathered.loss_sent_at {
            self.answer_loss(now, sent_at, gathered);
        }
        let marks = self.read_marks(frame, gathered);
        let marked_at =
            if self.tapped { newest_sent_at.filter(|_| marks.ce.packets > 0) } else { gathered.ce_sent_at };
        if let Some(sent_at) = marked_at {
            self.answer_ce(now, sent_at, gathered.inflight_before);
        }
        self.peer.complete(now, delay, sample.and(gathered.acked.last()), self.round, &mut gathered.times);
        let rtt = self.rtt.told(sample);
        let event = AckEvent {
            now,
            acked: &gathered.acked,
            lost: &gathered.lost,
            newly_acked: Bytes(gathered.bytes),
            newly_lost: Bytes(gathered.lost_bytes),
            inflight_before: Bytes(gathered.inflight_before),
            inflight: Bytes(self.inflight),
            delivered: Bytes(self.delivered),
            total_lost: Bytes(self.total_lost),
            rtt,
            ack_delay: delay,
            round: self.round,
            round_start,
            marks,
            receive_times: &gathered.times,
            report: gathered.report,
            cwnd_limited: !self.app_limited,
            in_recovery: self.repairing,
        };
        self.controller.on_ack(&event);
    }

    fn answer_loss(&mut self, now: Time, sent_at: Time, gathered: &Gathered) {
        if self.episode_at.is_none_or(|began| sent_at > began) {
            self.end_episode(now);
            let event = self.loss_event(now, sent_at, gathered.inflight_before, gathered.lost_bytes);
            self.controller.on_loss(&event);
            self.episode_at = Some(now);
            self.repairing = true;
            self.missing.clear();
        }
        self.missing.extend(&gathered.missing);
        if self.missing.len() > MOST_MISTAKES {
            // Their like would be looked for in every ACK. One that was never sent keeps the list from becoming empty.
            self.missing.clear();
            self.missing.push(u64::MAX);
        }
        if gathered.persistent {
            self.controller.on_timeout(&TimeoutEvent {
                now,
                kind: Timeout::PersistentCongestion,
                inflight: Bytes(self.inflight),
                repeated: false,
            });
        }
    }

    fn answer_ce(&mut self, now: Time, sent_at: Time, inflight: u64) {
        if self.episode_at.is_none() {
            let event = self.loss_event(now, sent_at, inflight, 0);
            self.controller.on_ce(&event);
            self.episode_at = Some(now);
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
        if self.episode_at.take().is_some() {
            self.repairing = false;
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
        if matches!(self.validation.state(), State::Failed(_)) && !self.fallen_back {
            self.fallen_back = true;
            self.fall_back(gathered.now);
        }
        marks
    }

    /// ECN failed. ABC goes by its second window once marks stay away; what has none, or no use for losses, makes way for
    /// Cubic. Classic controllers and Prague hear of losses anyway.
    fn fall_back(&mut self, now: Time) {
        let mut second = false;
        self.controller.inspect(&mut |name, _| second |= name == "w_nonabc_bytes");
        let lost_without_marks = match self.encoding {
            Encoding::Abc | Encoding::AbcProxied => !second,
            Encoding::Bmcc => true,
            _ => false,
        };
        if let (true, Ok(cubic)) = (lost_without_marks, ControllerConfig::new("cubic", &[])) {
            let opening = Connection {
                mss: Bytes(self.mss),
                overhead: Bytes(self.overhead),
                initial_window: self.controller.cwnd(),
                now,
                random: brakelight_core::random::Random::stream(0, "fallback"),
            };
            *self.controller = cubic.build(&opening);
        }
    }

    pub(super) fn on_mtu(&mut self, mtu: u16) {
        self.flush();
        self.mss = u64::from(mtu);
        self.controller.on_mtu_change(Bytes(self.mss));
    }

    /// Drops what no later call can speak of.
    fn retire(&mut self) {
        // What the tap did not see may never be acknowledged: Initial and Handshake packets, and without the tap pure ACKs.
        let seen = self.largest_acked.map(|(_, at)| at);
        let patience = self.rtt.smoothed() * 2 + Duration::from_millis(100);
        while let Some(front) = self.sent.front() {
            let forgotten =
                front.number.is_none() && seen.is_some_and(|seen| front.info.sent_at + patience < seen);
            if front.fate == Fate::Outstanding && !forgotten {
                break;
            }
            self.sent.pop_front();
        }
    }
}
