//! The BMCC paper's statements about its rules and its analysis.

use brakelight_core::controller::{AckEvent, Controller, ReceiverReport};
use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::feedback::{Feedback, Receiver};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_estimates::adpm::{Estimate, Layout};
use brakelight_registry::{ControllerConfig, FeedbackConfig};
use brakelight_scenario::experiment::Finding;

use super::driven::{MSS, ack, arrival, connection, packet};
use super::finding;
use super::router::{Marked, Router};
use crate::analysis::adpm::{Errors, errors};

#[cfg(test)]
mod figures;
mod model;

use model::{Growth, Sharing, mean_power};

const INTERVAL: Duration = Duration::from_millis(200);
const LAYOUT: Layout = Layout { eta_0: 0.15, eta: 0.75, u: 1.2, bits: 16 };

/// The window of a new flow of 100 packets after `acks` ACKs that say `load`, T = t_p.
fn window_after(load: f64, acks: u64) -> f64 {
    let mut controller =
        ControllerConfig::new("bmcc", &[]).expect("bmcc is registered").build(&connection(100));
    for number in 0..acks {
        let sent_at = Time::from_millis(1);
        let acked = [packet(number, sent_at)];
        let report = ReceiverReport::LoadFactor(LAYOUT.to_option(load));
        controller.on_ack(&AckEvent { report, ..ack(sent_at + INTERVAL, INTERVAL, &acked, 100.0) });
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

/// B-U2: a load above u for one interval, then packets of every hash: each carries 11, and each makes its
/// flow fall to beta(u).
pub(super) fn severe_overload() -> Finding {
    let mut router = Router::of("bmcc", &[("gamma", "1")], Rate::from_mbps(12));
    // 200 packets of 1500 bytes are what the link carries in an interval.
    let arrive = |router: &mut Router, now: Time, id: u64| {
        router.arrive(now, Marked { id, flow: 0, ecn: Ecn::Ect0, encoding: Encoding::Bmcc });
        router.leave(now).expect("it is alone").ecn
    };
    for id in 0..260 {
        arrive(&mut router, Time::ZERO + INTERVAL.mul_f64(id as f64 / 260.0), id);
    }
    let load = router.shown("load_factor");
    let (mut marked, mut fell) = (0_u32, 0_u32);
    let now = Time::ZERO + INTERVAL;
    for id in 0..=u64::from(u16::MAX) {
        let ecn = arrive(&mut router, now, id);
        marked += u32::from(ecn == Ecn::Ce);
        let mut estimate = Estimate::new(LAYOUT);
        estimate.on_packet(ecn, id as u16, true);
        fell += u32::from(estimate.value() == LAYOUT.u);
    }
    let now_load = router.shown("load_factor");
    let every = u32::from(u16::MAX) + 1;
    let holds =
        now_load > LAYOUT.u && marked == every && fell == every && (cut(LAYOUT.u) - 0.65).abs() < 1e-4;
    let measured = format!(
        "at a load of {now_load:.2} (before: {load:.2}) {marked} of {every} hashes are marked, and {fell} receivers say {}, at which {:.2} is left",
        LAYOUT.u,
        cut(LAYOUT.u)
    );
    finding(holds, measured)
}

/// B-CONCAVE: the model of eq. 21 and 22, on the link of figure 5 and on one a thousand times slower.
pub(super) fn concave() -> Finding {
    let (mut holds, mut measured) = (true, Vec::new());
    for capacity in [250_000.0, 250.0] {
        let model = Growth { capacity, rtt_s: 0.2 };
        let windows: Vec<f64> =
            (0..200).map(|step| model.window(model.t_1() + 0.05 * f64::from(step))).collect();
        let slopes: Vec<f64> = windows.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let most = windows.iter().fold(0.0_f64, |most, &window| most.max(window)) / model.product();
        holds &= slopes.is_sorted_by(|a, b| a > b) && most < 1.0;
        measured.push(format!("at most {most:.6} of the product of {:.0} packets", model.product()));
    }
    finding(holds, format!("slopes fall from t_1 on; {}", measured.join(", ")))
}

/// B-U5.
pub(super) fn options() -> Finding {
    let receiver = Receiver { encoding: Encoding::Bmcc, ack_every: 1, mss: Bytes(1448) };
    let mut feedback = FeedbackConfig::new("bmcc", &[]).expect("bmcc is registered").build(&receiver);
    let mut carried = Vec::new();
    for ack in 1..=28_u64 {
        let now = Time::from_millis(ack);
        feedback.on_packet(&arrival(now, ack, Ecn::Ect1));
        if feedback.on_ack_sent(now, false).report != ReceiverReport::None {
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

/// Rates of packets per slot, from equal to as unequal as can be.
const RATES: [[f64; 4]; 4] = [
    [250.0, 250.0, 250.0, 250.0],
    [400.0, 300.0, 200.0, 100.0],
    [700.0, 100.0, 100.0, 100.0],
    [997.0, 1.0, 1.0, 1.0],
];

/// bmcc Lemma 1, in the appendix: where d satisfies a^d >= (1/N) sum a^y_n, it does so for every b from a to
/// 1.
pub(super) fn lemma_1() -> Finding {
    let (mut below, mut tried) = (0, 0);
    for rates in &RATES {
        // From where 1000 packets would leave no number that a double holds.
        for a in [0.5, 0.9, 0.99, 0.9999] {
            // The largest d that does.
            let d = libm::log(mean_power(a, rates)) / libm::log(a);
            for step in 0..=1000 {
                let b = a + (1.0 - a) * f64::from(step) / 1000.0;
                below += u32::from(libm::pow(b, d) < mean_power(b, rates) * (1.0 - 1e-9));
                tried += 1;
            }
        }
    }
    finding(
        below == 0,
        format!("with the largest d that a allows, b^d is below the mean in {below} of {tried} cases"),
    )
}

/// bmcc eq.11: the logarithmic d beside the simpler gamma C / N, which the paper calls less conservative.
pub(super) fn detection_of_unequal_flows() -> Finding {
    let (mut holds, mut measured, mut last) = (true, Vec::new(), f64::INFINITY);
    for rates in &RATES {
        let (by_rates, simple) = (Sharing::unequal(rates, 0.5, 1.2), Sharing::new(1000.0, 4, 0.5, 1.2));
        // Equal rates make the two the same; the more they differ, the smaller d is, and the larger mu.
        holds &= by_rates.packets <= simple.packets * (1.0 + 1e-9) && by_rates.packets < last;
        holds &= by_rates.mu() >= simple.mu() - 1e-12;
        last = by_rates.packets;
        measured.push(format!("{:.0} (mu {:.4})", by_rates.packets, by_rates.mu()));
    }
    let simple = Sharing::new(1000.0, 4, 0.5, 1.2);
    finding(
        holds,
        format!(
            "d {}, as rates of four flows differ more; C / N is {:.0} (mu {:.4})",
            measured.join(", "),
            simple.packets,
            simple.mu()
        ),
    )
}

/// B-F4: 10,000 packets per slot, 550 flows (open-questions#X-51).
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

/// bmcc IV-B, the setting of figure 5: concave once load is heard, 99 % of the product by 6.5 s; what is
/// delivered is the integral.
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
