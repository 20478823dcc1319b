//! The BMCC paper's statements about its rules and its analysis.

use brakelight_core::controller::{AckEvent, Connection, Controller, Marks, PacketInfo, Report, Rtt};
use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::estimate::adpm::{Estimate, Layout};
use brakelight_core::feedback::{Arrival, Feedback, Receiver};
use brakelight_core::packet::Header;
use brakelight_core::random::Random;
use brakelight_core::registry::{ControllerConfig, FeedbackConfig};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_scenario::experiment::Finding;

use super::finding;
use crate::analysis::adpm::{Errors, errors};

mod model;

use model::{Growth, Sharing};

/// Payload of a packet: large, so that rounding to bytes shows in no digit.
const MSS: u64 = 1_000_000;
const INTERVAL: Duration = Duration::from_millis(200);
const LAYOUT: Layout = Layout { eta_0: 0.15, eta: 0.75, u: 1.2, bits: 16 };

/// The window of a new flow of 100 packets after `acks` ACKs that say `load`, T = t_p.
fn window_after(load: f64, acks: u64) -> f64 {
    let connection = Connection {
        mss: Bytes(MSS),
        overhead: Bytes(52),
        initial_window: Bytes(100 * MSS),
        now: Time::ZERO,
        random: Random::stream(1, "check"),
    };
    let mut controller = ControllerConfig::new("bmcc", &[]).expect("bmcc is registered").build(&connection);
    for number in 0..acks {
        let sent_at = Time::from_millis(1);
        let packet = PacketInfo {
            number,
            size: Bytes(MSS),
            sent_at,
            delivered: Bytes::ZERO,
            delivered_at: sent_at,
            first_sent_at: sent_at,
            inflight: Bytes(MSS),
            lost: Bytes::ZERO,
            app_limited: false,
            retransmission: false,
            tag: 0,
        };
        controller.on_ack(&AckEvent {
            now: sent_at + INTERVAL,
            acked: &[packet],
            lost: &[],
            newly_acked: Bytes(MSS),
            newly_lost: Bytes::ZERO,
            inflight_before: Bytes(100 * MSS),
            inflight: Bytes(99 * MSS),
            delivered: Bytes(MSS),
            total_lost: Bytes::ZERO,
            rtt: Rtt { sample: Some(INTERVAL), smoothed: INTERVAL, variation: Duration::ZERO, min: INTERVAL },
            ack_delay: Duration::ZERO,
            round: 0,
            round_start: false,
            marks: Marks::default(),
            receive_times: &[],
            report: Report::LoadFactor(LAYOUT.to_option(load)),
            cwnd_limited: true,
            in_recovery: false,
        });
    }
    controller.cwnd().as_f64() / MSS as f64
}

/// B-U1: a window of ACKs at eta_0.
pub(super) fn new_flow() -> Finding {
    let factor = window_after(LAYOUT.eta_0, 100) / 100.0;
    finding((factor - 3.0).abs() < 0.05, format!("{factor:.3} per t_p"))
}

fn cut(load: f64) -> f64 {
    window_after(load, 1) / 100.0
}

/// B-U4.
pub(super) fn decrease() -> Finding {
    let cuts = [1.0, 1.1, 1.2].map(cut);
    let holds = cuts.iter().zip([0.875, 0.7625, 0.65]).all(|(cut, expected)| (cut - expected).abs() < 1e-4);
    finding(holds, format!("{:.4} at 1, {:.4} at 1.1, {:.4} at 1.2", cuts[0], cuts[1], cuts[2]))
}

/// B-U3.
pub(super) fn mode_threshold() -> Finding {
    let loads = (0..=200).map(|step| 1.0 + f64::from(step) * 0.001);
    let least = loads.map(|f| f * cut(f)).fold(f64::INFINITY, f64::min);
    finding(LAYOUT.eta < least, format!("{least:.3} is the least of f beta(f), eta is {}", LAYOUT.eta))
}

/// B-U5.
pub(super) fn options() -> Finding {
    let receiver = Receiver { encoding: Encoding::Bmcc, ack_every: 1, mss: Bytes(1448) };
    let mut feedback = FeedbackConfig::new("bmcc", &[]).expect("bmcc is registered").build(&receiver);
    let mut carried = Vec::new();
    for ack in 1..=28_u64 {
        let now = Time::from_millis(ack);
        feedback.on_packet(&Arrival {
            now,
            number: ack,
            size: Bytes(1448),
            ecn: Ecn::Ect1,
            cwr: false,
            header: Header::None,
            hash16: 0,
            sent_at: Time::ZERO,
            urgent: false,
        });
        if feedback.on_ack_sent(now, false).report != Report::None {
            carried.push(ack);
        }
    }
    finding(carried == [1, 3, 6, 10, 15, 21, 28], format!("on ACKs {carried:?}"))
}

/// B-U6: the largest error over random loads, after n packets in a row, times n.
pub(super) fn resolution() -> Finding {
    let mut random = Random::stream(1, "check");
    let (mut holds, mut measured) = (true, Vec::new());
    for bits in [6_u32, 10, 16] {
        let n = 1_u32 << bits;
        let mut worst = 0.0_f64;
        for _ in 0..100 {
            let f = LAYOUT.eta_0 + (LAYOUT.u - LAYOUT.eta_0) * random.uniform();
            let start = random.bits() as u16;
            let mut estimate = Estimate::new(LAYOUT);
            for hash16 in (0..n).map(|packet| start.wrapping_add(packet as u16)) {
                let marked = f > LAYOUT.hash(hash16);
                estimate.on_packet(if marked { Ecn::Ect1 } else { Ecn::Ect0 }, hash16, true);
            }
            worst = worst.max((estimate.value() - f).abs());
        }
        // A band 0.6 wide has a quarter of the packets; two may be missing at its ends.
        holds &= worst * f64::from(n) <= 4.8;
        measured.push(format!("{worst:.1e} after {n}"));
    }
    finding(holds, format!("largest error {}", measured.join(", ")))
}

/// B-U6: the estimate's error against n and against random marking.
pub(super) fn estimate_error() -> Finding {
    let ends = [64, 1024, 1 << 14].map(|n| errors(n, 1));
    let steps = libm::log2(f64::from(ends[2].n) / f64::from(ends[0].n));
    let slope = |of: fn(&Errors) -> f64| libm::log2(of(&ends[2]) / of(&ends[0])) / steps;
    let (adaptive, random) = (slope(|e| e.adaptive), slope(|e| e.random));
    let below = ends.map(|e| (e.random / e.adaptive) * (e.random / e.adaptive));
    let holds =
        below[1] >= 100.0 && below[2] >= 100.0 && (adaptive + 1.0).abs() < 0.1 && (random + 0.5).abs() < 0.1;
    let [first, second, third] = below.map(|times| format!("{times:.0}"));
    finding(
        holds,
        format!(
            "mean square error {first}, {second} and {third} times below random marking's after 64, 1024 and 16384 packets; \
             the error goes with n^{adaptive:.2}, random marking's with n^{random:.2}"
        ),
    )
}

/// Theorem 1: mu, and that rates converge by mu^i. Figure 3's setting: 20 Mbit/s, 1000 bytes, two flows.
pub(super) fn theorem_1() -> Finding {
    let (mut holds, mut measured) = (true, Vec::new());
    for (queue_weight, expected) in [(0.0, 0.9199), (0.5, 0.9060)] {
        let model = Sharing::new(500.0, 2, queue_weight, 1.2);
        let mu = model.mu();
        let mut random = Random::stream(1, "check");
        let backoffs = 12;
        let left = model.imbalance(backoffs, 20_000, &mut random);
        let exponent = libm::log(left) / libm::log(mu);
        holds &= (mu - expected).abs() < 1e-4 && (mu - model.mu_by_integral()).abs() < 1e-7;
        holds &= (exponent - backoffs as f64).abs() < 0.3;
        measured.push(format!(
            "mu = {mu:.4}, an epoch of {:.1} slots, after {backoffs} back-offs mu^{exponent:.2} is left",
            model.epoch_slots()
        ));
    }
    finding(holds, measured.join("; "))
}

/// B-F4: 10,000 packets per slot, 550 flows (mechanisms X-51).
pub(super) fn backoff_over_u() -> Finding {
    let us = [1.15, 1.2, 1.3, 1.4, 1.5];
    let models = us.map(|u| Sharing::new(10_000.0, 550, 0.5, u));
    let mus = models.map(|model| model.mu());
    let heard = models.map(|model| model.detects(1.0 + model.excess()));
    let holds = mus.is_sorted() && heard.is_sorted_by(|a, b| a > b) && heard[1] > 0.95;
    let list = |values: [f64; 5]| values.map(|value| format!("{value:.3}")).join(", ");
    finding(holds, format!("at u = 1.15 to 1.5: E[beta] {}; P {}", list(mus), list(heard)))
}

/// bmcc III-c, with eq. 17.
pub(super) fn mean_cut() -> Finding {
    let model = Sharing::new(500.0, 2, 0.5, 1.2);
    let cuts = [1.055, 1.005].map(|f| model.mean_cut(f));
    let holds = (cuts[0] - 0.84).abs() < 0.01 && (cuts[1] - 0.87).abs() < 0.01;
    finding(holds, format!("{:.3} at 105.5 %, {:.3} at 100.5 %", cuts[0], cuts[1]))
}

/// bmcc IV-B, the setting of figure 5: concave once load is heard, 99 % of the product by 6.5 s; what is delivered is the integral.
pub(super) fn growth_model() -> Finding {
    let model = Growth { capacity: 250_000.0, rtt_s: 0.2 };
    let windows = [1.0, 2.0, 3.0, 6.5].map(|t_s| model.window(t_s));
    let slopes: Vec<f64> = (0..40)
        .map(|step| model.t_1() + 0.1 * f64::from(step))
        .map(|t| model.window(t + 0.1) - model.window(t))
        .collect();
    let integral = model.delivered_by_integral(3.0);
    let off = |delivered: f64| 100.0 * (delivered / integral - 1.0);
    let (corrected, printed) = (off(model.delivered(3.0)), off(model.delivered_as_printed(3.0)));
    let holds =
        slopes.is_sorted_by(|a, b| a > b) && windows[3] > 0.99 * model.product() && corrected.abs() < 0.01;
    let measured = format!(
        "t_1 = {:.3} s; {:.0}, {:.0}, {:.0}, {:.0} packets at 1, 2, 3, 6.5 s; d(3 s) is {:.2} % off the integral, as printed {:.0} %",
        model.t_1(),
        windows[0],
        windows[1],
        windows[2],
        windows[3],
        corrected.abs(),
        printed
    );
    finding(holds, measured)
}
