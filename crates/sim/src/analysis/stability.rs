//! Where ABC's router settles and where it oscillates: the fluid model and the packet simulator on the same
//! axes, delta over tau and the number of flows.
//!
//! The packets know what the model leaves out: rates measured over a window, whole packets, a share of
//! accelerates that ends at 1, and the sender's own clock. Their verdict is taken from the queueing delay in
//! bins of a fifth of a round trip over the second half of a run.

use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_scenario::outcome::LinkSeries;
use brakelight_scenario::problem::InputError;
use brakelight_scenario::scenario::{Hop, LinkSpec, Record, Scenario, TraceOffset};
use brakelight_scenario::scheme::Scheme;
use serde::Serialize;

use super::fluid::{FixedPoint, Fluid, Increase, Swing};
use crate::{RunError, Traces, run};

/// Bytes of a packet at the IP layer.
const PACKET: Bytes = Bytes(1500);

/// A path and a router, of which delta and the number of flows are varied.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The link's rate.
    pub rate: Rate,
    /// tau: propagation delay of the round trip.
    pub rtt: Duration,
    /// eta.
    pub eta: f64,
    /// d_t.
    pub target: Duration,
    /// Length of a run, of which the second half is looked at.
    pub duration: Duration,
    /// The seed.
    pub seed: u64,
}

/// One point of the map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// delta / tau.
    pub ratio: f64,
    /// Flows.
    pub flows: u32,
}

/// The model's prediction for a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// Where it rests.
    pub rest: FixedPoint,
    /// How it moves at the end.
    pub swing: Swing,
}

/// The packet simulation's measurement at a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The queueing delay over the second half: 5th percentile, mean, 95th percentile, s.
    pub delay_s: [f64; 3],
    /// Share of the capacity used.
    pub utilization: f64,
    /// The queueing delay over the whole run, a bin each fifth of a round trip, s.
    pub series_s: Vec<f64>,
}

/// Whether a point is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It rests, but for a twentieth of a round trip, or a packet where that is more.
    Steady,
    /// It swings by up to three twentieths.
    Ripples,
    /// It swings by more.
    Oscillates,
}

impl Measured {
    /// Returns the width of the swing from the 5th to the 95th percentile, in seconds.
    pub fn width_s(&self) -> f64 {
        self.delay_s[2] - self.delay_s[0]
    }
}

impl Setting {
    /// Returns the model at `point`, one packet more per flow and round trip.
    pub fn fluid(&self, point: Point) -> Fluid {
        let tau_s = self.rtt.as_secs_f64();
        Fluid {
            eta: self.eta,
            delta_s: point.ratio * tau_s,
            target_s: self.target.as_secs_f64(),
            tau_s,
            mu_pps: self.rate.as_bps_f64() / PACKET.bits() as f64,
            flows: f64::from(point.flows),
            increase: Increase::PerRoundTrip,
        }
    }

    /// Returns the model's answer, from a standing queue of three round trips.
    pub fn predict(&self, point: Point) -> Predicted {
        let fluid = self.fluid(point);
        let swing = fluid.settle(3.0 * fluid.tau_s, 1_000.0 * fluid.tau_s);
        Predicted { rest: fluid.fixed_point(), swing }
    }

    /// Returns the scenario of `point`: as many ABC flows on a link of that rate, whose buffer never
    /// overflows.
    pub fn scenario(&self, point: Point) -> Result<Scenario, InputError> {
        let delta = Duration::from_secs_f64(point.ratio * self.rtt.as_secs_f64());
        let scheme = format!("abc:eta={},delta={delta},target={}", self.eta, self.target);
        let scheme = Scheme::parse(&scheme)?;
        let buffer = Limit::Bytes(self.rate.bytes_in(Duration::from_secs(10)));
        let mut flow = scheme.flow("abc", self.rtt);
        flow.count = point.flows;
        flow.path = vec![Hop::Link("link".to_string())];
        let scenario = Scenario {
            name: format!("{} flows, delta = {} tau", point.flows, point.ratio),
            seed: self.seed,
            duration: self.duration,
            measure_from: self.duration / 2,
            trace_offset: TraceOffset::At(Duration::ZERO),
            links: vec![LinkSpec::fixed("link", self.rate, buffer, scheme.queue().clone())],
            flows: vec![flow],
            record: Record { series: true, bin: self.bin(), ..Record::summary(self.duration) },
        };
        scenario.validate().map_err(|invalid| InputError {
            file: None,
            line: None,
            owner: scenario.name.clone(),
            problem: invalid.problem,
        })?;
        Ok(scenario)
    }

    /// Returns the width of a bin of [`Measured::series_s`].
    pub fn bin(&self) -> Duration {
        self.rtt / 5
    }

    /// Runs the scenario of a point.
    pub fn measure(&self, scenario: &Scenario) -> Result<Measured, RunError> {
        let outcome = run(scenario, &Traces::new())?;
        let link = outcome.series.as_ref().and_then(|series| series.links.first());
        let series_s = link.map(delays).unwrap_or_default();
        let mut second: Vec<f64> = series_s[series_s.len() / 2..].to_vec();
        second.sort_by(f64::total_cmp);
        let quantile = |q: f64| second.get((q * second.len() as f64) as usize).copied().unwrap_or(0.0);
        let mean = second.iter().sum::<f64>() / second.len().max(1) as f64;
        Ok(Measured {
            delay_s: [quantile(0.05), mean, quantile(0.95)],
            utilization: outcome.run.utilization,
            series_s,
        })
    }

    /// Returns the verdict on an oscillation of `width_s`.
    pub fn verdict(&self, width_s: f64) -> Verdict {
        let tau_s = self.rtt.as_secs_f64();
        let packet_s = PACKET.bits() as f64 / self.rate.as_bps_f64();
        if width_s <= (0.05 * tau_s).max(packet_s) {
            Verdict::Steady
        } else if width_s <= 0.15 * tau_s {
            Verdict::Ripples
        } else {
            Verdict::Oscillates
        }
    }
}

/// The mean queueing delay of every bin, s; a bin in which nothing left counts as empty.
fn delays(link: &LinkSeries) -> Vec<f64> {
    link.queueing_delay_mean_ms.iter().map(|ms| ms.unwrap_or(0.0) * 1e-3).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTING: Setting = Setting {
        rate: Rate::from_mbps(24),
        rtt: Duration::from_millis(100),
        eta: 0.98,
        target: Duration::from_millis(50),
        duration: Duration::from_secs(40),
        seed: 1,
    };

    /// Fixed points and swings of the model, found again by packets: nothing of the model is in the router's
    /// code.
    #[test]
    fn packets_rest_and_swing_where_the_model_says() {
        for (flows, ratio) in [(16, 1.0), (16, 2.0), (32, 1.33), (32, 0.2), (32, 0.4)] {
            let point = Point { ratio, flows };
            let predicted = SETTING.predict(point);
            let measured = SETTING.measure(&SETTING.scenario(point).unwrap()).unwrap();
            let [low_s, mean_s, high_s] = measured.delay_s;
            let Swing { low_s: lowest_s, high_s: highest_s, .. } = predicted.swing;
            if ratio > 0.7 {
                let off = (mean_s / predicted.rest.x_s - 1.0).abs();
                assert!(off < 0.05, "{flows} flows, {ratio} tau: {mean_s} s is not {} s", predicted.rest.x_s);
                assert_eq!(SETTING.verdict(predicted.swing.width_s()), Verdict::Steady);
                assert_ne!(SETTING.verdict(measured.width_s()), Verdict::Oscillates);
            } else {
                // An oscillation spends little time at its ends, and packets add a ripple of their own.
                assert!(
                    (low_s - lowest_s).abs() < 0.008 && (high_s - highest_s).abs() < 0.004,
                    "{measured:?}"
                );
                assert_eq!(SETTING.verdict(predicted.swing.width_s()), Verdict::Oscillates);
                assert_eq!(SETTING.verdict(measured.width_s()), Verdict::Oscillates);
            }
        }
    }
}
