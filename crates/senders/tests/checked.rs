//! An honest host breaks nothing; each breach, made by hand, is named.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, Exact, IdleEvent, LossEvent, MarkCount, Marks, PacketInfo,
    ReceiverReport, RecoveryState, SendEvent, SpuriousEvent, Timeout, TimeoutEvent,
};
use brakelight_core::random::Random;
use brakelight_core::sender::checked::{Checked, Invariant, REMEMBERED};
use brakelight_core::sender::{Delivery, Episode, Phase, RttEstimator};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_senders::controller::newreno::NewReno;
use brakelight_senders::{AnyController, ControllerConfig};

const MSS: u64 = 1_000;

/// A host of a few lines, which tells the truth unless a test bends it.
struct Host {
    controller: Checked<AnyController>,
    now: Time,
    delivery: Delivery,
    rtt: RttEstimator,
    episode: Episode,
    sent: Vec<PacketInfo>,
}

/// What an ACK event says, for a test to change.
struct AckUpdate {
    acked: Vec<PacketInfo>,
    lost: Vec<PacketInfo>,
    newly_acked: u64,
    growth: Option<u64>,
    inflight: u64,
    delivered: u64,
    total_lost: u64,
    round: u64,
    round_start: bool,
    marks: Marks,
    recovery: RecoveryState,
    now: Time,
    min_rtt: Option<Duration>,
    cwnd_limited: bool,
}

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

impl Host {
    fn new() -> Self {
        let connection = Connection {
            mss: Bytes(MSS),
            overhead: Bytes(52),
            initial_window: Bytes(10 * MSS),
            now: Time::ZERO,
            random: Random::stream(1, "controller"),
        };
        let config = ControllerConfig::new("newreno", &[]).unwrap();
        Host {
            controller: Checked::new(config.build(&connection)),
            now: Time::ZERO,
            delivery: Delivery::new(Time::ZERO),
            rtt: RttEstimator::tcp(),
            episode: Episode::default(),
            sent: Vec::new(),
        }
    }

    fn send_as(&mut self, number: u64, app_limited: Option<bool>, replaces: Option<u64>) {
        self.delivery.begin_flight(self.now);
        let app_limited = app_limited.unwrap_or(self.delivery.is_app_limited());
        let directive = self.controller.on_send(&SendEvent {
            now: self.now,
            size: Bytes(MSS),
            number,
            retransmission: false,
            replaces,
            inflight: Bytes(self.delivery.inflight()),
            app_limited,
            srtt: self.rtt.measured(),
        });
        let books = self.delivery.send(MSS);
        self.sent.push(PacketInfo {
            number,
            size: Bytes(MSS),
            sent_at: self.now,
            delivered: Bytes(books.delivered),
            delivered_at: books.delivered_at,
            first_sent_at: books.first_sent_at,
            inflight: Bytes(books.inflight),
            lost: Bytes(books.lost),
            app_limited,
            retransmission: false,
            tag: directive.tag,
        });
    }

    fn send(&mut self, count: u64) {
        for _ in 0..count {
            self.send_as(self.sent.len() as u64, None, None);
        }
    }

    /// An ACK 100 ms later, with what `bend` makes of it.
    fn ack_bent(&mut self, acked: &[u64], lost: &[u64], bend: impl FnOnce(&mut AckUpdate)) {
        self.now += Duration::from_millis(100);
        let inflight_before = self.delivery.inflight();
        let list = |numbers: &[u64]| numbers.iter().map(|&n| self.sent[n as usize]).collect::<Vec<_>>();
        let (acked, lost) = (list(acked), list(lost));
        for _ in &acked {
            self.delivery.deliver(MSS);
        }
        for _ in &lost {
            self.delivery.lose(MSS);
        }
        let mut round_start = false;
        let mut sample = None;
        if let Some(newest) = acked.last() {
            round_start = self.delivery.acked(self.now, newest.sent_at, newest.delivered.0);
            let rtt = self.now.since(newest.sent_at);
            self.rtt.sample_tcp(rtt, 0, 1);
            self.rtt.note_min(rtt);
            sample = Some(rtt);
        }
        if let (Some(newest), true) = (lost.last(), self.episode.is_open()) {
            let newest = *newest;
            self.lose(newest);
        }
        let mut update = AckUpdate {
            newly_acked: acked.len() as u64 * MSS,
            growth: None,
            acked,
            lost,
            inflight: self.delivery.inflight(),
            delivered: self.delivery.delivered().0,
            total_lost: self.delivery.lost(),
            round: self.delivery.round(),
            round_start,
            marks: Marks::default(),
            recovery: self.episode.state(false),
            now: self.now,
            min_rtt: None,
            cwnd_limited: true,
        };
        bend(&mut update);
        let mut rtt = self.rtt.told(sample);
        rtt.min = update.min_rtt.unwrap_or(rtt.min);
        let growth = if update.recovery == RecoveryState::Recovery { 0 } else { update.newly_acked };
        self.controller.on_ack(&AckEvent {
            now: update.now,
            newly_lost: Bytes(update.lost.len() as u64 * MSS),
            acked: &update.acked,
            newest: update.acked.last().map(|packet| packet.number),
            lost: &update.lost,
            newly_acked: Bytes(update.newly_acked),
            growth: Bytes(update.growth.unwrap_or(growth)),
            inflight_before: Bytes(inflight_before),
            inflight: Bytes(update.inflight),
            delivered: Bytes(update.delivered),
            total_lost: Bytes(update.total_lost),
            rtt,
            ack_delay: Duration::ZERO,
            round: update.round,
            round_start: update.round_start,
            marks: update.marks,
            receive_times: &[],
            report: ReceiverReport::None,
            cwnd_limited: update.cwnd_limited,
            recovery: update.recovery,
        });
    }

    fn ack(&mut self, acked: &[u64], lost: &[u64]) {
        self.ack_bent(acked, lost, |_| {});
    }

    fn lose(&mut self, newest: PacketInfo) {
        self.episode.begin(Phase::Recovery, self.sent.len() as u64);
        self.controller.on_loss(&LossEvent {
            now: self.now,
            sent_at: newest.sent_at,
            inflight: Bytes(self.delivery.inflight()),
            lost: Bytes(MSS),
            srtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min(),
        });
    }

    fn time_out(&mut self) {
        self.episode.begin(Phase::Loss, self.sent.len() as u64);
        let inflight = Bytes(self.delivery.inflight());
        let event = TimeoutEvent { now: self.now, kind: Timeout::Rto, inflight, repeated: false };
        self.controller.on_timeout(&event);
    }

    fn recover(&mut self) {
        self.episode.finish();
        self.controller.on_recovery_exit(self.now);
    }

    /// The invariants broken, each once.
    fn broken(&self) -> Vec<Invariant> {
        let mut broken: Vec<_> = self.controller.violations().iter().map(|v| v.invariant).collect();
        broken.sort();
        broken.dedup();
        broken
    }
}

/// Sends ten packets, has half of them acknowledged, and lets `breach` go wrong.
fn broken_by(breach: impl FnOnce(&mut Host)) -> Vec<Invariant> {
    let mut host = Host::new();
    host.send(10);
    host.ack(&[0, 1, 2, 3, 4], &[]);
    assert_eq!(host.broken(), vec![]);
    breach(&mut host);
    host.broken()
}

#[test]
fn an_honest_host_breaks_nothing() {
    let broken = broken_by(|host| {
        // A loss and its repair.
        host.ack(&[6, 7, 8], &[5]);
        host.send(3);
        host.recover();
        host.ack(&[9, 10], &[]);
        // A timeout, whose losses the next ACK lists, and its undoing.
        host.time_out();
        host.send(1);
        host.ack(&[13], &[11, 12]);
        host.send(1);
        host.controller.on_spurious_loss(&SpuriousEvent { now: host.now, timeout: true });
        host.delivery.take_back(2 * MSS);
        host.recover();
        host.ack(&[11, 12, 14], &[]);
        // An idle period, and a probe that replaces a packet.
        host.delivery.limit_by_application();
        let (idle, rto) = (Duration::from_secs(1), Duration::from_millis(300));
        host.controller.on_idle_restart(&IdleEvent { now: host.now, idle, rto });
        host.send(1);
        host.delivery.replace(MSS);
        host.send_as(16, None, Some(15));
        host.ack(&[16], &[]);
    });
    assert_eq!(broken, vec![]);
}

/// A window of 190 MB is odd, but the packets in it are as the host says.
#[test]
fn a_packet_in_flight_is_remembered_however_many_there_are() {
    let mut host = Host::new();
    host.send(REMEMBERED as u64 + 10);
    host.ack(&[0], &[]);
    host.ack(&[1, 2], &[]);
    assert_eq!(host.broken(), []);
}

#[test]
fn time_that_falls_is_caught() {
    assert_eq!(broken_by(|host| host.ack_bent(&[5], &[], |update| update.now = ms(50))), [Invariant::Time]);
}

#[test]
fn a_number_left_out_is_caught() {
    assert_eq!(broken_by(|host| host.send_as(11, None, None)), [Invariant::Numbers]);
}

#[test]
fn a_packet_acknowledged_twice_is_caught() {
    let broken = broken_by(|host| {
        host.ack(&[6], &[]);
        let again = host.sent[6];
        host.ack_bent(&[7], &[], |update| {
            update.acked.insert(0, again);
            update.newly_acked += MSS;
        });
    });
    assert_eq!(broken, [Invariant::State]);
}

#[test]
fn a_loss_of_what_was_acknowledged_is_caught() {
    let broken = broken_by(|host| {
        let first = host.sent[0];
        host.ack_bent(&[5], &[6], |update| update.lost.insert(0, first));
    });
    assert!(broken.contains(&Invariant::State), "{broken:?}");
}

#[test]
fn a_packet_lost_and_acknowledged_at_once_is_caught() {
    let broken = broken_by(|host| {
        let both = host.sent[6];
        host.ack_bent(&[5], &[6], |update| {
            update.acked.push(both);
            update.newly_acked += MSS;
            update.delivered += MSS;
            update.total_lost -= MSS;
        });
    });
    assert_eq!(broken, [Invariant::Lost]);
}

/// What an undo puts back in flight must leave the list of losses: the fault that Checked was written for.
#[test]
fn a_loss_reported_after_its_packet_is_in_flight_again_is_caught() {
    let broken = broken_by(|host| {
        host.ack_bent(&[5], &[6], |update| {
            update.inflight += MSS;
            update.total_lost -= MSS;
        })
    });
    assert_eq!(broken, [Invariant::Sums]);
}

#[test]
fn bytes_that_do_not_add_up_are_caught() {
    assert_eq!(broken_by(|host| host.ack_bent(&[5], &[], |update| update.delivered += 1)), [Invariant::Sums]);
    assert_eq!(
        broken_by(|host| host.ack_bent(&[5], &[], |update| update.newly_acked -= 1)),
        [Invariant::Sums]
    );
    assert_eq!(broken_by(|host| host.ack_bent(&[5], &[], |update| update.inflight += 1)), [Invariant::Sums]);
}

#[test]
fn a_packet_remembered_otherwise_than_it_was_sent_is_caught() {
    for bend in [
        (|info: &mut PacketInfo| info.tag = 7) as fn(&mut PacketInfo),
        |info| info.delivered += Bytes(MSS),
        |info| info.app_limited = true,
        |info| info.sent_at = ms(1),
        |info| info.first_sent_at = ms(1),
    ] {
        let broken = broken_by(|host| host.ack_bent(&[5], &[], |update| bend(&mut update.acked[0])));
        assert_eq!(broken, [Invariant::Memory]);
    }
}

#[test]
fn packets_out_of_order_are_caught() {
    assert_eq!(
        broken_by(|host| host.ack_bent(&[5, 6], &[], |update| update.acked.swap(0, 1))),
        [Invariant::Order]
    );
}

#[test]
fn an_application_limit_lifted_before_anything_is_delivered_is_caught() {
    let broken = broken_by(|host| {
        host.ack(&[5, 6, 7, 8, 9], &[]);
        host.delivery.limit_by_application();
        host.send(1);
        host.send_as(11, Some(false), None);
    });
    assert_eq!(broken, [Invariant::Limit]);
}

#[test]
fn more_marks_than_packets_are_caught() {
    let marks = |packets, exact| Marks {
        brake: MarkCount { packets, bytes: Bytes(packets * MSS) },
        exact,
        ..Marks::default()
    };
    let bent = |marks| broken_by(|host| host.ack_bent(&[5], &[], |update| update.marks = marks));
    assert_eq!(bent(marks(11, Exact::Bytes)), [Invariant::Marks]);
    assert_eq!(bent(marks(10, Exact::Bytes)), []);
    assert_eq!(bent(marks(2, Exact::Neither)), [Invariant::Marks]);
}

#[test]
fn a_round_that_begins_without_a_packet_of_its_own_is_caught() {
    let begins = |update: &mut AckUpdate| {
        update.round += 1;
        update.round_start = true;
    };
    assert_eq!(broken_by(|host| host.ack_bent(&[5], &[], begins)), [Invariant::Round]);
    assert_eq!(broken_by(|host| host.ack_bent(&[5], &[], |update| update.round += 2)), [Invariant::Round]);
}

#[test]
fn a_timeout_reported_as_open_is_caught() {
    let broken = broken_by(|host| {
        host.time_out();
        host.ack_bent(&[5], &[], |update| update.recovery = RecoveryState::Open);
    });
    assert_eq!(broken, [Invariant::Recovery]);
}

#[test]
fn a_repair_that_ends_while_something_is_out_is_caught() {
    let broken = broken_by(|host| {
        host.time_out();
        host.ack(&[5, 6], &[]);
        host.recover();
        host.ack(&[7], &[]);
    });
    assert_eq!(broken, [Invariant::Recovery]);
}

#[test]
fn recovery_without_a_loss_is_caught() {
    let broken =
        broken_by(|host| host.ack_bent(&[5], &[], |update| update.recovery = RecoveryState::Recovery));
    assert_eq!(broken, [Invariant::Recovery]);
}

#[test]
fn two_losses_reported_in_one_episode_are_caught() {
    let broken = broken_by(|host| {
        host.ack(&[6], &[5]);
        let newest = host.sent[6];
        host.lose(newest);
    });
    assert_eq!(broken, [Invariant::Episode]);
}

#[test]
fn growth_by_more_than_was_acknowledged_or_in_recovery_is_caught() {
    let broken = broken_by(|host| host.ack_bent(&[5], &[], |update| update.growth = Some(MSS + 1)));
    assert_eq!(broken, [Invariant::Growth]);
    let broken = broken_by(|host| host.ack_bent(&[6], &[5], |update| update.growth = Some(1)));
    assert_eq!(broken, [Invariant::Growth]);
}

#[test]
fn a_smallest_rtt_that_rises_is_caught() {
    let rises = |update: &mut AckUpdate| update.min_rtt = Some(Duration::from_millis(150));
    assert_eq!(broken_by(|host| host.ack_bent(&[5], &[], rises)), [Invariant::Rtt]);
}

/// Sends two packets of a window of ten in each of `rounds` round trips.
fn use_little(host: &mut Host, rounds: u64, cwnd_limited: bool) {
    host.ack_bent(&[5, 6, 7, 8, 9], &[], |update| update.cwnd_limited = cwnd_limited);
    for _ in 0..rounds {
        host.delivery.limit_by_application();
        host.send(2);
        let end = host.sent.len() as u64;
        host.ack_bent(&[end - 2, end - 1], &[], |update| update.cwnd_limited = cwnd_limited);
    }
}

#[test]
fn a_window_that_is_called_the_limit_and_was_not_used_is_caught() {
    assert_eq!(broken_by(|host| use_little(host, 8, true)), [Invariant::Usage]);
    assert_eq!(broken_by(|host| use_little(host, 8, false)), []);
    // What was sent before tells for a while.
    assert_eq!(broken_by(|host| use_little(host, 2, true)), []);
}

/// Grows by a packet per ACK, whatever is said.
#[derive(Clone, Debug)]
struct Grower(Bytes);

impl Controller for Grower {
    fn on_ack(&mut self, _event: &AckEvent<'_>) {
        self.0 += Bytes(MSS);
    }
    fn on_loss(&mut self, _event: &LossEvent) {}
    fn on_timeout(&mut self, _event: &TimeoutEvent) {}
    fn cwnd(&self) -> Bytes {
        self.0
    }
}

#[test]
fn a_window_that_grows_unused_is_caught_where_its_controller_promises_that_none_does() {
    for (promised, expected) in [(true, vec![Invariant::Usage]), (false, vec![])] {
        let broken = broken_by(|host| {
            let grower = AnyController::Custom(std::boxed::Box::new(Grower(Bytes(10 * MSS))));
            host.controller.replace(grower);
            host.controller = host.controller.clone().growing_by_use(promised);
            use_little(host, 8, false);
        });
        assert_eq!(broken, expected, "promised: {promised}");
    }
}

#[test]
fn a_restart_after_idleness_with_packets_in_flight_is_caught() {
    let broken = broken_by(|host| {
        let (idle, rto) = (Duration::from_secs(1), Duration::from_millis(300));
        host.controller.on_idle_restart(&IdleEvent { now: host.now, idle, rto });
    });
    assert_eq!(broken, [Invariant::Idle]);
}

#[test]
#[should_panic(expected = "contract, Idle")]
fn a_strict_check_panics_at_the_first_violation() {
    let connection = Connection {
        mss: Bytes(MSS),
        overhead: Bytes(52),
        initial_window: Bytes(MSS),
        now: Time::ZERO,
        random: Random::stream(1, "controller"),
    };
    let mut checked = Checked::strict(NewReno::new(Default::default(), &connection));
    let event = SendEvent {
        now: Time::ZERO,
        size: Bytes(MSS),
        number: 0,
        retransmission: false,
        replaces: None,
        inflight: Bytes::ZERO,
        app_limited: false,
        srtt: None,
    };
    checked.on_send(&event);
    let (idle, rto) = (Duration::from_secs(1), Duration::from_millis(300));
    checked.on_idle_restart(&IdleEvent { now: Time::ZERO, idle, rto });
}

#[test]
fn the_checker_passes_on_what_it_is_asked_and_given() {
    let connection = Connection {
        mss: Bytes(MSS),
        overhead: Bytes(52),
        initial_window: Bytes(10 * MSS),
        now: Time::ZERO,
        random: Random::stream(1, "controller"),
    };
    let build = |name| ControllerConfig::new(name, &[]).unwrap().build(&connection);
    let (mut checked, mut plain) = (Checked::strict(build("bbr")), build("bbr"));
    assert!(plain.pacing_rate().is_some());
    for most in [10, 4, 1] {
        checked.cap_cwnd(Bytes(most * MSS));
        plain.cap_cwnd(Bytes(most * MSS));
        assert_eq!(checked.cwnd(), Bytes(most * MSS));
        assert_eq!((checked.cwnd(), checked.pacing_rate()), (plain.cwnd(), plain.pacing_rate()));
    }
}
