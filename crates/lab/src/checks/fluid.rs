//! Statements about ABC's fluid model, and the one statement about VCP.

use brakelight_scenario::experiment::Finding;

use super::finding;
use crate::analysis::fluid::{Fluid, Increase, Model};

/// How long the model runs, in propagation delays.
const LENGTH: f64 = 1_000.0;

/// The model with this `A`, one flow adding packets at the rate that gives it.
fn fluid(a: f64, delta_s: f64, tau_s: f64, target_s: f64) -> Fluid {
    let (eta, mu_pps) = (0.98, 1000.0);
    let increase = Increase::Every(1.0 / (mu_pps * (a + 1.0 - eta)));
    Fluid { eta, delta_s, target_s, tau_s, mu_pps, flows: 1.0, increase }
}

/// Whether a run from `start_s` ends at the fixed point, within a tenth of a millisecond.
fn converges(fluid: &Fluid, start_s: f64) -> bool {
    let rest = fluid.fixed_point();
    let end = fluid.settle(start_s, LENGTH * fluid.tau_s);
    (end.low_s - rest.x_s).abs() < 1e-4
        && (end.high_s - rest.x_s).abs() < 1e-4
        && (end.rate - rest.rate).abs() < 1e-3
}

/// ABC-U8: with delta above 2/3 tau the model converges to the fixed points of theorem 1, and with half of
/// tau it oscillates; in between the theorem promises nothing.
pub(super) fn stability() -> Finding {
    let (mut runs, mut converged) = (0, 0);
    for tau_s in [0.02, 0.1, 0.2] {
        for ratio in [0.68, 0.8, 1.0, 1.33, 3.0] {
            for (a, target_s) in [(-0.01, 0.0), (0.005, 0.05), (0.05, 0.0), (0.14, 0.05)] {
                let fluid = fluid(a, ratio * tau_s, tau_s, target_s);
                for start_s in [0.0, 0.3] {
                    runs += 1;
                    converged += u32::from(converges(&fluid, start_s));
                }
            }
        }
    }
    let swing_ms = 1e3 * fluid(0.05, 0.05, 0.1, 0.0).settle(0.3, 100.0).width_s();
    let measured = format!(
        "{converged} of {runs} runs with delta from 0.68 to 3 tau end at the fixed point; at 0.5 tau x swings by {swing_ms:.1} ms"
    );
    finding(converged == runs && swing_ms > 1.0, measured)
}

/// ABC-U12: VCP multiplies its window by 1 + 0.0625 per RTT at most.
pub(super) fn vcp_doubling() -> Finding {
    let rtts = (1..).find(|&rtts| libm::pow(1.0625, f64::from(rtts)) >= 2.0).expect("it grows");
    finding(rtts == 12, format!("{rtts} RTTs, at 1.0625 per RTT"))
}
