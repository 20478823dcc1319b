//! Where ABC's router settles and where it oscillates: a fluid model and the packet simulator on the same
//! axes, a ratio and the number of flows. The ratio is delta over tau for the paper's rule; for the one that
//! tunes itself it is tau over the loop delay that the router reckons with.
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
use brakelight_sim::{RunError, Traces, run};
use serde::Serialize;

use super::fluid::{self, FixedPoint, Fluid, Increase, Model, Swing};
use super::outstanding::{self, Outstanding};

/// Bytes of a packet at the IP layer.
pub(crate) const PACKET: Bytes = Bytes(1500);

/// The router's rule for its target rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// abc20 eq.1. Its delta is varied.
    Paper {
        /// eta.
        eta: f64,
        /// d_t.
        target: Duration,
    },
    /// `variant=adaptive`. The loop delay that it is given is varied.
    Adaptive,
}

/// The bins in which the router that tunes itself counts its loop's delay.
const BIN: Duration = Duration::from_millis(2);

/// A path and a router, of which one ratio and the number of flows are varied.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The router's rule.
    pub rule: Rule,
    /// The link's rate.
    pub rate: Rate,
    /// tau: propagation delay of the round trip.
    pub rtt: Duration,
    /// Length of a run, of which the second half is looked at.
    pub duration: Duration,
    /// The seed.
    pub seed: u64,
}

/// One point of the map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// delta / tau with [`Rule::Paper`], tau over the router's loop delay with [`Rule::Adaptive`].
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

impl Rule {
    /// Returns the ratio at which the theorem's promise of rest begins ([`Rule::Paper`]) or ends
    /// ([`Rule::Adaptive`]).
    pub fn theorem_limit(self) -> f64 {
        match self {
            Rule::Paper { .. } => fluid::THEOREM_LIMIT,
            Rule::Adaptive => outstanding::THEOREM_LIMIT,
        }
    }

    /// Returns the same of the linearized model.
    pub fn linear_limit(self) -> f64 {
        match self {
            Rule::Paper { .. } => fluid::LINEAR_LIMIT,
            Rule::Adaptive => outstanding::LINEAR_LIMIT,
        }
    }
}

impl Setting {
    /// Returns what is varied at `point`: delta, or the loop delay that the router reckons with.
    /// The latter is a whole number of the router's bins.
    pub fn varied(&self, point: Point) -> Duration {
        let tau_s = self.rtt.as_secs_f64();
        match self.rule {
            Rule::Paper { .. } => Duration::from_secs_f64(point.ratio * tau_s),
            Rule::Adaptive => {
                let bins = (tau_s / point.ratio / BIN.as_secs_f64()).round() as u64;
                BIN * bins.max(1)
            }
        }
    }

    /// Returns the model at `point`, one packet more per flow and round trip.
    pub fn model(&self, point: Point) -> Box<dyn Model> {
        let tau_s = self.rtt.as_secs_f64();
        let varied_s = self.varied(point).as_secs_f64();
        let mu_pps = self.rate.as_bps_f64() / PACKET.bits() as f64;
        let flows = f64::from(point.flows);
        match self.rule {
            Rule::Paper { eta, target } => Box::new(Fluid {
                eta,
                delta_s: varied_s,
                target_s: target.as_secs_f64(),
                tau_s,
                mu_pps,
                flows,
                increase: Increase::PerRoundTrip,
            }),
            Rule::Adaptive => Box::new(Outstanding { tau_s, loop_delay_s: varied_s, mu_pps, flows }),
        }
    }

    /// Returns the model's answer, from a standing queue of three round trips.
    pub fn predict(&self, point: Point) -> Predicted {
        let model = self.model(point);
        let swing = model.settle(3.0 * self.rtt.as_secs_f64(), 1_000.0 * model.slowest_s());
        Predicted { rest: model.fixed_point(), swing }
    }

    /// Returns the scenario of `point`: as many ABC flows on a link of that rate, whose buffer never
    /// overflows.
    pub fn scenario(&self, point: Point) -> Result<Scenario, InputError> {
        let varied = self.varied(point);
        let (scheme, name) = match self.rule {
            Rule::Paper { eta, target } => (
                format!("abc:eta={eta},delta={varied},target={target}"),
                format!("delta = {} tau", point.ratio),
            ),
            Rule::Adaptive => (
                format!("abc:variant=adaptive,loop_delay={varied}"),
                format!("tau = {} loop delays", point.ratio),
            ),
        };
        let scheme = Scheme::parse(&scheme)?;
        let buffer = Limit::Bytes(self.rate.bytes_in(Duration::from_secs(10)));
        let mut flow = scheme.flow("abc", self.rtt);
        flow.count = point.flows;
        flow.path = vec![Hop::Link("link".to_string())];
        let scenario = Scenario {
            name: format!("{} flows, {name}", point.flows),
            seed: self.seed,
            duration: self.duration,
            measure_from: self.duration / 2,
            trace_offset: TraceOffset::At(Duration::ZERO),
            links: vec![LinkSpec::fixed("link", self.rate, buffer, scheme.queue().clone())],
            flows: vec![flow],
            record: Record { series: true, bin: self.bin(), ..Record::summary(self.duration) },
        };
        scenario.validate().map_err(|invalid| invalid.of(&scenario.name))?;
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
        rule: Rule::Paper { eta: 0.98, target: Duration::from_millis(50) },
        rate: Rate::from_mbps(24),
        rtt: Duration::from_millis(100),
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

    /// With the loop's delay known, and off by a factor within and beyond the bound.
    #[test]
    fn packets_of_the_rule_that_tunes_itself_rest_and_swing_where_its_model_says() {
        let setting = Setting { rule: Rule::Adaptive, ..SETTING };
        for (flows, ratio) in [(16, 0.5), (16, 1.0), (32, 1.0), (32, 1.7), (32, 4.0), (64, 4.0)] {
            let point = Point { ratio, flows };
            let predicted = setting.predict(point);
            let measured = setting.measure(&setting.scenario(point).unwrap()).unwrap();
            let [low_s, mean_s, high_s] = measured.delay_s;
            if ratio < 2.0 {
                let off = (mean_s / predicted.rest.x_s - 1.0).abs();
                assert!(off < 0.1, "{flows} flows, {ratio} T: {mean_s} s is not {} s", predicted.rest.x_s);
                assert_eq!(setting.verdict(predicted.swing.width_s()), Verdict::Steady);
                assert_ne!(setting.verdict(measured.width_s()), Verdict::Oscillates);
            } else {
                let Swing { low_s: lowest_s, high_s: highest_s, .. } = predicted.swing;
                assert!(
                    (low_s - lowest_s).abs() < 0.008 && (high_s - highest_s).abs() < 0.008,
                    "{measured:?}, {:?}",
                    predicted.swing
                );
                assert_eq!(setting.verdict(predicted.swing.width_s()), Verdict::Oscillates);
                assert_eq!(setting.verdict(measured.width_s()), Verdict::Oscillates);
            }
        }
    }
}
