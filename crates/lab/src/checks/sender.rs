//! ABC's sender and its receiver, fed with marks.

use brakelight_core::controller::{AckEvent, Controller, MarkCount, Marks};
use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::feedback::{AckAction, Feedback, Receiver};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_registry::{AnyController, ControllerConfig, FeedbackConfig, Options};
use brakelight_scenario::experiment::Finding;

use super::driven::{MSS, ack, arrival, connection, packet};
use super::finding;

const RTT: Duration = Duration::from_millis(100);
/// The rules of Equation 3 by themselves.
const MARKS_ALONE: Options<'_> =
    &[("additive_increase", "false"), ("second_window", "false"), ("floor", "1")];

struct Sender {
    controller: AnyController,
    now: Time,
}

impl Sender {
    fn new(options: Options<'_>, window_pkts: u64) -> Self {
        let config = ControllerConfig::new("abc", options).expect("the options are ABC's");
        Sender { controller: config.build(&connection(window_pkts)), now: Time::ZERO }
    }

    fn window_pkts(&self) -> f64 {
        self.controller.cwnd().as_f64() / MSS as f64
    }

    /// One ACK of one packet, with this share of it accelerated and the rest braked, while `inflight_pkts`
    /// are on their way.
    fn ack(&mut self, accelerate: f64, inflight_pkts: f64) {
        self.now += Duration::from_millis(1);
        let sent_at = self.now.saturating_sub(RTT);
        let acked = [packet(self.now.as_nanos(), sent_at)];
        let up = Bytes(libm::round(accelerate * MSS as f64) as u64);
        let count = |bytes: Bytes| MarkCount { packets: u64::from(bytes > Bytes::ZERO), bytes };
        let marks = Marks { accelerate: count(up), brake: count(Bytes(MSS) - up), ..Marks::default() };
        self.controller.on_ack(&AckEvent { marks, ..ack(self.now, RTT, &acked, inflight_pkts) });
    }

    /// The ACKs of `acks` packets, a share `f` of which accelerate, spread evenly.
    fn acks(&mut self, acks: u64, f: f64) {
        for index in 0..acks {
            let before = (index as f64 * f + 1e-9) as u64;
            let after = ((index + 1) as f64 * f + 1e-9) as u64;
            self.ack((after - before) as f64, 1e4);
        }
    }
}

/// ABC-U1: after one RTT with a share f of accelerates, w is 2 w f.
pub(super) fn window_after_one_rtt() -> Finding {
    let mut worst = 0.0_f64;
    for window_pkts in [10, 100, 1000] {
        for percent in [10, 25, 50, 75, 90, 100] {
            let f = f64::from(percent) / 100.0;
            let mut sender = Sender::new(MARKS_ALONE, window_pkts);
            sender.acks(window_pkts, f);
            let expected_pkts = 2.0 * window_pkts as f64 * f;
            worst = worst.max((sender.window_pkts() - expected_pkts).abs());
        }
    }
    // Marks come in whole packets: each accelerate too few or too many moves the window by two.
    finding(worst <= 2.0, format!("within {worst:.3} packets of 2 w f, for w = 10 to 1000 and f = 0.1 to 1"))
}

/// HN-U2: f = 0 throttles, f = 1/2 keeps, f = 1 doubles.
pub(super) fn extremes() -> Finding {
    let after = [0.0, 0.5, 1.0].map(|f| {
        let mut sender = Sender::new(MARKS_ALONE, 100);
        sender.acks(100, f);
        sender.window_pkts()
    });
    // The window keeps one packet: without any in flight a sender would hear no ACK again.
    let holds = after[0] <= 1.0 && (after[1] - 100.0).abs() <= 1.0 && (after[2] - 200.0).abs() <= 1.0;
    finding(holds, format!("100 packets become {:.1}, {:.1} and {:.1}", after[0], after[1], after[2]))
}

/// ABC-U5: a share p of the ACKs changes the window by (2f - 1) p w.
pub(super) fn lost_acks() -> Finding {
    let mut worst = 0.0_f64;
    let mut signs = true;
    for every in [1_u64, 2, 4, 10] {
        for percent in [10, 30, 70, 100] {
            let (p, f) = (1.0 / every as f64, f64::from(percent) / 100.0);
            let mut sender = Sender::new(MARKS_ALONE, 1000);
            sender.acks(1000 / every, f);
            let change_pkts = sender.window_pkts() - 1000.0;
            let expected_pkts = (2.0 * f - 1.0) * p * 1000.0;
            worst = worst.max((change_pkts - expected_pkts).abs());
            signs &= change_pkts.signum() == expected_pkts.signum();
        }
    }
    let measured =
        format!("within {worst:.3} packets of (2f - 1) p w, for w = 1000, p = 0.1 to 1 and f = 0.1 to 1");
    finding(worst <= 2.0 && signs, measured)
}

/// ABC-U6: whatever it starts from, the window settles at 1 / (1 - 2f).
pub(super) fn steady_window() -> Finding {
    let mut worst = 0.0_f64;
    for f in [0.45, 0.49, 0.495] {
        let expected_pkts = 1.0 / (1.0 - 2.0 * f);
        for window_pkts in [10, 500] {
            let mut sender = Sender::new(&[("second_window", "false")], window_pkts);
            for _ in 0..200_000 {
                sender.ack(f, 1e4);
            }
            worst = worst.max((sender.window_pkts() / expected_pkts - 1.0).abs());
        }
    }
    let measured = format!(
        "within {:.2} % of 1 / (1 - 2f), for f = 0.45, 0.49 and 0.495, from 10 and from 500 packets",
        100.0 * worst
    );
    finding(worst <= 0.01, measured)
}

/// ABC-U13: neither window exceeds twice what is in flight.
pub(super) fn window_cap() -> Finding {
    let mut worst = 0.0_f64;
    let mut reached = true;
    for second in ["true", "false"] {
        let mut sender = Sender::new(&[("second_window", second)], 100);
        for inflight_pkts in [100.0, 60.0, 200.0, 25.0] {
            for _ in 0..1_000 {
                sender.ack(1.0, inflight_pkts);
                worst = worst.max(sender.window_pkts() / inflight_pkts);
            }
            reached &= second == "true" || sender.window_pkts() > 1.99 * inflight_pkts;
        }
        // The smaller window governs; the other one is capped too, and shows itself.
        let mut shown = 0.0_f64;
        sender.controller.inspect(&mut |name, value| {
            if name.starts_with("w_") {
                shown = shown.max(value / MSS as f64);
            }
        });
        reached &= shown > 0.0;
        worst = worst.max(shown / 25.0);
    }
    finding(worst <= 2.0 && reached, format!("at most {worst:.3} times what is in flight"))
}

/// ABC-U14: an ACK for every second packet, and one at once when the mark changes.
pub(super) fn mark_echo() -> Finding {
    let config = FeedbackConfig::new("delayed", &[]).expect("the receiver is registered");
    let receiver = Receiver { encoding: Encoding::Abc, ack_every: 2, mss: Bytes(MSS) };
    let mut feedback = config.build(&receiver);
    let mut random = Random::stream(1, "marks");
    let (mut pending, mut last) = (0, None);
    let (mut changes, mut at_once, mut steady_acks, mut wrong) = (0_u32, 0_u32, 0_u32, 0_u32);
    for number in 0..10_000_u64 {
        let now = Time::from_millis(number);
        let ecn = if random.chance(0.5) { Ecn::Ect1 } else { Ecn::Ect0 };
        let action = feedback.on_packet(&arrival(now, number, ecn));
        // A change flushes what waits; where nothing waits there is nothing to be told apart.
        let change = pending > 0 && last.is_some_and(|last| last != ecn);
        pending = if change { 1 } else { pending + 1 };
        let expected = match (change, pending == 2) {
            (true, _) => AckAction::FlushThenDelay,
            (false, true) => AckAction::Now,
            (false, false) => AckAction::Delay,
        };
        changes += u32::from(change);
        at_once += u32::from(change && matches!(action, AckAction::FlushThenDelay | AckAction::FlushThenNow));
        steady_acks += u32::from(action == AckAction::Now);
        wrong += u32::from(action != expected);
        if matches!(action, AckAction::FlushThenDelay | AckAction::FlushThenNow) {
            feedback.on_ack_sent(now, true);
        }
        if matches!(action, AckAction::Now | AckAction::FlushThenNow) {
            feedback.on_ack_sent(now, false);
            pending = 0;
        }
        last = Some(ecn);
    }
    let measured = format!(
        "{at_once} of {changes} changes acknowledged at once, {steady_acks} ACKs for two packets each, {wrong} other"
    );
    finding(wrong == 0 && at_once == changes && changes > 1_000, measured)
}
