//! What every controller owes its host, whatever happens.
//!
//! A plain host performs random operations against the controller, in an order a real host could produce: it
//! sends what the window allows, acknowledges, declares lost, marks, times out, undoes, idles, changes the
//! packet size and lets time pass. After each the controller must be sound, and the same operations must give
//! the same decisions.

use std::collections::VecDeque;

use brakelight_core::controller::{
    AckEvent, Connection, Controller, IdleEvent, LossEvent, MarkCount, Marks, PacketInfo, ReceiveTime,
    ReceiverReport, RecoveryState, SendEvent, SpuriousEvent, Timeout, TimeoutEvent,
};
use brakelight_core::ecn::{Ecn, Encoding, Mark};
use brakelight_core::packet::Header;
use brakelight_core::random::Random;
use brakelight_core::sender::{Checked, Delivery, Episode, Phase, RttEstimator};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::{AnyController, Carries, ControllerConfig, Registry};
use proptest::prelude::*;

use super::{label, runner};

#[derive(Clone, Copy, Debug)]
enum Operation {
    /// Up to so many packets, as far as the window allows.
    Send {
        packets: u8,
    },
    /// The oldest packets arrive; the first `braked` of eight carry the worse mark.
    Ack {
        packets: u8,
        braked: u8,
        queue_us: u32,
        limited: bool,
    },
    /// The oldest packets are lost.
    Loss {
        packets: u8,
    },
    /// The newest packet acknowledged carried CE.
    Ce,
    Timeout {
        kind: u8,
    },
    Spurious,
    /// Nothing in flight for so long.
    Idle {
        ms: u16,
    },
    Mtu {
        mss: u16,
    },
    CapCwnd {
        packets: u8,
    },
    /// The clock jumps to the controller's timer.
    Timer,
    Wait {
        us: u32,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => (1_u8..40).prop_map(|packets| Operation::Send { packets }),
        10 => (1_u8..20, 0_u8..=8, prop_oneof![0_u32..2_000, 0_u32..500_000], prop::bool::weighted(0.9)).prop_map(
            |(packets, braked, queue_us, limited)| Operation::Ack { packets, braked, queue_us, limited }
        ),
        2 => (1_u8..5).prop_map(|packets| Operation::Loss { packets }),
        1 => Just(Operation::Ce),
        1 => (0_u8..3).prop_map(|kind| Operation::Timeout { kind }),
        1 => Just(Operation::Spurious),
        1 => (1_u16..20_000).prop_map(|ms| Operation::Idle { ms }),
        1 => (200_u16..9_000).prop_map(|mss| Operation::Mtu { mss }),
        1 => (1_u8..100).prop_map(|packets| Operation::CapCwnd { packets }),
        3 => Just(Operation::Timer),
        4 => prop_oneof![0_u32..5_000, 0_u32..3_000_000].prop_map(|us| Operation::Wait { us }),
    ]
}

/// What the host did and what the controller decided, to be compared between runs.
#[derive(Clone, Debug, PartialEq)]
struct Decision {
    cwnd: Bytes,
    pacing_rate: Option<Rate>,
    timer: Option<Time>,
    sent: Option<(Ecn, u64)>,
}

struct Host<C> {
    controller: C,
    mss: Bytes,
    now: Time,
    next_number: u64,
    inflight: VecDeque<(PacketInfo, Ecn)>,
    header: Header,
    delivery: Delivery,
    rtt: RttEstimator,
    recovery: Episode,
    /// Lost by a timeout, and not yet reported.
    lost: Vec<PacketInfo>,
    /// The packet number that must be passed before the next CE counts.
    ce_until: u64,
    episode: Option<SpuriousEvent>,
    timed_out: bool,
    sent: Option<(Ecn, u64)>,
}

/// Sequences of events that are tried.
const CASES: u32 = 256;

const BASE_RTT: Duration = Duration::from_millis(20);

const MSS: Bytes = Bytes(1448);

const START: Time = Time::from_millis(5);

/// The controller at the start of its connection.
fn built(config: &ControllerConfig) -> AnyController {
    config.build(&Connection {
        mss: MSS,
        overhead: Bytes(52),
        initial_window: Bytes(10 * MSS.0),
        now: START,
        random: Random::stream(7, "controller"),
    })
}

impl Host<Checked<AnyController>> {
    fn strict(config: &ControllerConfig) -> Self {
        Host::new(Checked::strict(built(config)))
    }
}

impl<C: Controller> Host<C> {
    fn new(controller: C) -> Self {
        let (mss, now) = (MSS, START);
        Host {
            controller,
            mss,
            now,
            next_number: 0,
            inflight: VecDeque::new(),
            header: Header::None,
            delivery: Delivery::new(now),
            rtt: RttEstimator::quic(),
            recovery: Episode::default(),
            lost: Vec::new(),
            ce_until: 0,
            episode: None,
            timed_out: false,
            sent: None,
        }
    }

    fn inflight(&self) -> Bytes {
        Bytes(self.delivery.inflight())
    }

    fn send(&mut self, packets: u8) {
        for index in 0..packets {
            let inflight = self.inflight();
            // The first packet may always leave, as a probe would.
            if index > 0 && inflight + self.mss > self.controller.cwnd() {
                break;
            }
            self.delivery.begin_flight(self.now);
            let number = self.next_number;
            self.next_number += 1;
            let before = self.controller.decision();
            let directive = self.controller.on_send(&SendEvent {
                now: self.now,
                size: self.mss,
                number,
                retransmission: false,
                replaces: None,
                inflight,
                app_limited: false,
                srtt: self.rtt.measured(),
            });
            assert!(
                self.controller.decides_on_send() || self.controller.decision() == before,
                "a packet that left changed {before:?} to {:?}",
                self.controller.decision()
            );
            self.header = directive.header;
            self.sent = Some((directive.ecn, directive.tag));
            let books = self.delivery.send(self.mss.0);
            let packet = PacketInfo {
                number,
                size: self.mss,
                sent_at: self.now,
                delivered: Bytes(books.delivered),
                delivered_at: books.delivered_at,
                first_sent_at: books.first_sent_at,
                inflight: Bytes(books.inflight),
                lost: Bytes(books.lost),
                app_limited: books.app_limited,
                retransmission: false,
                tag: directive.tag,
            };
            self.inflight.push_back((packet, directive.ecn));
        }
    }

    fn take(&mut self, packets: u8) -> Vec<(PacketInfo, Ecn)> {
        let count = usize::from(packets).min(self.inflight.len());
        self.inflight.drain(..count).collect()
    }

    fn ack(&mut self, packets: u8, braked: u8, queue_us: u32, limited: bool) {
        let inflight_before = self.inflight();
        let acked = self.take(packets);
        let Some(&(newest, _)) = acked.last() else { return };
        let earliest = newest.sent_at + BASE_RTT + Duration::from_micros(u64::from(queue_us));
        self.now = self.now.max(earliest);
        let encoding = self.controller.encoding();
        let mut marks = Marks::default();
        let mut count = |mark: Mark, size: Bytes| {
            let kind: &mut MarkCount = match mark {
                Mark::Accelerate => &mut marks.accelerate,
                Mark::Brake => &mut marks.brake,
                Mark::Ce => &mut marks.ce,
                Mark::None => return,
            };
            kind.packets += 1;
            kind.bytes += size;
        };
        for (index, (packet, ecn)) in acked.iter().enumerate() {
            // ABC's brake is the other ECT codepoint, the brake of all others is CE.
            let worse = if encoding == Encoding::Abc { Ecn::Ect0 } else { Ecn::Ce };
            let arrives = if index % 8 < usize::from(braked) && ecn.is_capable() { worse } else { *ecn };
            count(encoding.mark(arrives), packet.size);
        }
        let newly_acked = acked.iter().map(|(packet, _)| packet.size).sum();
        let sample = self.now.since(newest.sent_at);
        self.rtt.sample_quic(sample, Duration::ZERO);
        for (packet, _) in &acked {
            self.delivery.deliver(packet.size.0);
        }
        let round_start = self.delivery.acked(self.now, newest.sent_at, newest.delivered.0);
        let infos: Vec<PacketInfo> = acked.iter().map(|(packet, _)| *packet).collect();
        let receive_times: Vec<ReceiveTime> = infos
            .iter()
            .map(|packet| ReceiveTime {
                number: packet.number,
                sent_at: packet.sent_at,
                received_at: self.now.saturating_sub(BASE_RTT / 2),
            })
            .collect();
        if !self.recovery.is_open() && !self.recovery.covers(newest.number) {
            self.recovery.finish();
            self.episode = None;
            self.controller.on_recovery_exit(self.now);
        }
        let lost = std::mem::take(&mut self.lost);
        let recovery = self.recovery.state(false);
        let event = AckEvent {
            now: self.now,
            acked: if self.controller.reads_acked() { &infos } else { &[] },
            newest: infos.last().map(|packet| packet.number),
            lost: &lost,
            newly_acked,
            growth: if recovery == RecoveryState::Recovery { Bytes::ZERO } else { newly_acked },
            newly_lost: lost.iter().map(|packet| packet.size).sum(),
            inflight_before,
            inflight: self.inflight(),
            delivered: self.delivery.delivered(),
            total_lost: Bytes(self.delivery.lost()),
            rtt: self.rtt.told(Some(sample)),
            ack_delay: Duration::ZERO,
            round: self.delivery.round(),
            round_start,
            marks,
            receive_times: &receive_times,
            report: self.report(queue_us),
            cwnd_limited: limited,
            recovery,
        };
        self.timed_out = false;
        self.controller.on_ack(&event);
    }

    /// What a receiver of the controller's scheme could report.
    fn report(&self, salt: u32) -> ReceiverReport {
        match self.header {
            Header::None if self.controller.encoding() == Encoding::Bmcc => {
                ReceiverReport::LoadFactor((salt % 65_536) as u16)
            }
            Header::None => ReceiverReport::None,
            Header::Xcp { cwnd_bytes, rtt_s, .. } => {
                let feedback_bytes = (salt % 20_001) as f32 - 10_000.0;
                ReceiverReport::Header(Header::Xcp { cwnd_bytes, rtt_s, feedback_bytes })
            }
            Header::Rate { rtt_s, .. } => {
                ReceiverReport::Header(Header::Rate { bps: salt as f32 * 1000.0, rtt_s })
            }
            Header::Load { .. } => ReceiverReport::Header(Header::Load { code: (salt % 16) as u8 }),
            Header::Flight { .. } => {
                let packets = std::array::from_fn(|tick| (salt % 64) as u16 * (tick as u16 + 1) / 8);
                let received = self.delivery.delivered() + Bytes(self.delivery.lost());
                ReceiverReport::Forecast { packets, received }
            }
        }
    }

    fn episode(&self, lost: Bytes, sent_at: Time) -> LossEvent {
        LossEvent {
            now: self.now,
            sent_at,
            inflight: self.inflight() + lost,
            lost,
            srtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min(),
        }
    }

    fn lose(&mut self, packets: u8) {
        let inflight_before = self.inflight();
        let taken = self.take(packets);
        let Some(&(newest, _)) = taken.last() else { return };
        let now_lost = self.declare_lost(&taken);
        let mut lost = std::mem::take(&mut self.lost);
        lost.extend(taken.iter().map(|(packet, _)| *packet));
        let newly_lost = lost.iter().map(|packet| packet.size).sum();
        if self.recovery.is_open() {
            self.recovery.begin(Phase::Recovery, self.next_number);
            self.episode = Some(SpuriousEvent { now: self.now, timeout: false });
            self.controller.on_loss(&self.episode(now_lost, newest.sent_at));
        }
        let event = AckEvent {
            now: self.now,
            acked: &[],
            newest: None,
            lost: &lost,
            newly_acked: Bytes::ZERO,
            growth: Bytes::ZERO,
            newly_lost,
            inflight_before,
            inflight: self.inflight(),
            delivered: self.delivery.delivered(),
            total_lost: Bytes(self.delivery.lost()),
            rtt: self.rtt.told(None),
            ack_delay: Duration::ZERO,
            round: self.delivery.round(),
            round_start: false,
            marks: Marks::default(),
            receive_times: &[],
            report: ReceiverReport::None,
            cwnd_limited: true,
            recovery: self.recovery.state(false),
        };
        self.controller.on_ack(&event);
    }

    /// Takes `packets` out of flight, and returns their bytes.
    fn declare_lost(&mut self, packets: &[(PacketInfo, Ecn)]) -> Bytes {
        for (packet, _) in packets {
            self.delivery.lose(packet.size.0);
        }
        packets.iter().map(|(packet, _)| packet.size).sum()
    }

    fn timeout(&mut self, kind: Timeout) {
        let event = TimeoutEvent { now: self.now, kind, inflight: self.inflight(), repeated: self.timed_out };
        if kind == Timeout::Rto {
            let taken = self.take(u8::MAX);
            self.declare_lost(&taken);
            self.lost.extend(taken.iter().map(|(packet, _)| *packet));
            self.timed_out = true;
        }
        self.controller.on_timeout(&event);
        if kind != Timeout::Pto {
            self.recovery.begin(Phase::Loss, self.next_number);
            self.episode = Some(SpuriousEvent { now: self.now, timeout: true });
        }
    }

    /// Fires the controller's timer as often as it is due; it must move on.
    fn fire_timers(&mut self, name: &str) {
        for _ in 0..8 {
            match self.controller.next_timer() {
                Some(at) if at <= self.now => self.controller.on_timer(self.now),
                _ => return,
            }
        }
        panic!("{name}: its timer stays at {:?} while it is {:?}", self.controller.next_timer(), self.now);
    }

    fn perform(&mut self, name: &str, operation: Operation) -> Decision {
        self.sent = None;
        match operation {
            Operation::Send { packets } => self.send(packets),
            Operation::Ack { packets, braked, queue_us, limited } => {
                self.ack(packets, braked, queue_us, limited)
            }
            Operation::Loss { packets } => self.lose(packets),
            Operation::Ce => {
                if self.next_number > self.ce_until && self.recovery.is_open() {
                    self.ce_until = self.next_number;
                    self.controller.on_ce(&self.episode(Bytes::ZERO, self.now));
                }
            }
            Operation::Timeout { kind: 0 } => self.timeout(Timeout::Rto),
            Operation::Timeout { kind: 1 } => self.timeout(Timeout::Pto),
            Operation::Timeout { .. } => self.timeout(Timeout::PersistentCongestion),
            Operation::Spurious => {
                if let Some(episode) = self.episode.take() {
                    self.controller.on_spurious_loss(&SpuriousEvent { now: self.now, ..episode });
                    self.recovery.finish();
                    self.controller.on_recovery_exit(self.now);
                }
            }
            Operation::Idle { ms } => {
                if self.inflight.is_empty() {
                    let idle = Duration::from_millis(u64::from(ms));
                    self.now += idle;
                    self.fire_timers(name);
                    let rto = self.rtt.smoothed() + Duration::from_millis(200);
                    if idle > rto {
                        self.controller.on_idle_restart(&IdleEvent { now: self.now, idle, rto });
                    }
                }
            }
            Operation::Mtu { mss } => {
                self.mss = Bytes(u64::from(mss));
                self.controller.on_mtu_change(self.mss);
            }
            Operation::CapCwnd { packets } => {
                self.controller.cap_cwnd(Bytes(u64::from(packets) * self.mss.0))
            }
            Operation::Timer => {
                if let Some(at) = self.controller.next_timer() {
                    self.now = self.now.max(at);
                }
            }
            Operation::Wait { us } => self.now += Duration::from_micros(u64::from(us)),
        }
        self.fire_timers(name);
        Decision {
            cwnd: self.controller.cwnd(),
            pacing_rate: self.controller.pacing_rate(),
            timer: self.controller.next_timer(),
            sent: self.sent,
        }
    }
}

fn check(name: &str, host: &Host<impl Controller>, decision: &Decision) -> Result<(), TestCaseError> {
    prop_assert!(decision.cwnd >= host.mss, "{name}: cwnd {:?} is below one packet", decision.cwnd);
    prop_assert!(decision.cwnd.0 < 1 << 50, "{name}: cwnd {:?} has run away", decision.cwnd);
    if let Some(rate) = decision.pacing_rate {
        prop_assert!(rate > Rate::ZERO, "{name}: a pacing rate of zero");
        prop_assert!(rate.bps() < 1 << 60, "{name}: a pacing rate of {rate}");
    }
    prop_assert!(decision.timer.is_none_or(|at| at > host.now), "{name}: a timer in the past");
    let mut broken = None;
    host.controller.inspect(&mut |what, value| {
        if !value.is_finite() {
            broken = Some((what, value));
        }
    });
    prop_assert!(broken.is_none(), "{name}: {broken:?}");
    Ok(())
}

/// Holds the controller to what every host relies on: its window, its rate and its timer are sound whatever
/// happens, and the same events give the same decisions. Acknowledged packets are listed in the first run. In
/// the second they are listed only for a controller that says that it reads them.
///
/// # Panics
/// Panics with the shortest sequence of events found under which it is not so.
pub fn stays_sound_and_repeats_itself(config: &ControllerConfig) {
    let name = config.name();
    let outcome = runner(CASES).run(&prop::collection::vec(operation(), 1..250), |operations| {
        let (mut host, mut again) = (Host::strict(config), Host::new(built(config)));
        for &operation in &operations {
            let decision = host.perform(name, operation);
            check(name, &host, &decision)?;
            prop_assert_eq!(&decision, &again.perform(name, operation), "differs");
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{}: {error}", label(config));
    }
}

/// Holds the controller to what the first round trip needs: a window of at least one packet, and an ECN field
/// that says what the encoding says.
///
/// # Panics
/// Panics if it is not so.
pub fn can_start(config: &ControllerConfig) {
    let mut host = Host::strict(config);
    host.send(4);
    assert!(!host.inflight.is_empty(), "{}", label(config));
    assert_eq!(host.sent.map(|(ecn, _)| ecn), Some(host.controller.encoding().sent()), "{}", label(config));
}

/// Holds what the controller says it needs against what it does: it sends the header that it reads, and its
/// queue speaks its encoding.
///
/// # Panics
/// Panics if it is not so.
pub fn is_as_it_says(config: &ControllerConfig, registry: &Registry) {
    let needs = config.needs();
    let mut host = Host::strict(config);
    host.send(1);
    let routers = host.header.kind();
    assert_eq!(routers, needs.reads, "{}: the header that it sends", label(config));
    let encoding = host.controller.encoding();
    if let Some(queue) = needs.queue {
        let queue = registry.queue(queue, &[]).expect("the queue that it brings is registered");
        assert!(queue.speaks(encoding), "{}: `{}` does not speak its encoding", label(config), queue.name());
        assert_eq!(queue.traits().writes, needs.reads, "{}: what `{}` writes", label(config), queue.name());
    }
    let told = config.feedback().carries() == Carries::ReceiveTimes;
    assert!(told || !needs.receive_times, "{}: its feedback carries no receive times", label(config));
}
