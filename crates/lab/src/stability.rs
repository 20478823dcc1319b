//! Where ABC's router settles and where it oscillates, by a fluid model and by packets.

use crate::analysis::stability::{Measured, Point, Predicted, Rule, Setting, Verdict};
use brakelight_scenario::documents::Origin;
use serde::Serialize;

use crate::error::Error;
use crate::parallel;
use crate::progress::Progress;
use crate::report::page;

mod lists;
pub mod waits;

pub use lists::{FLOWS, LOOP_RATIOS, RATIOS, changes, eta, flows, ratios};

/// Propagation delays that the pictures of the model over time show.
const SHOWN: f64 = 60.0;

const SCRIPT: &str = include_str!("stability/stability.js");
const BODY: &str = include_str!("stability/stability.html");

/// The map: the JSON document of `stability`.
#[derive(Clone, Debug, Serialize)]
pub struct Map {
    /// Where it comes from.
    pub origin: Origin,
    /// The link's rate.
    pub rate_mbps: f64,
    /// tau, propagation delay of the round trip.
    pub rtt_ms: f64,
    /// The router's rule, as `abc:variant=` has it.
    pub variant: &'static str,
    /// Share of the capacity that the router aims at; `paper` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eta: Option<f64>,
    /// d_t, queueing delay below which the router drains nothing; `paper` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_ms: Option<f64>,
    /// Length of a run.
    pub duration_s: f64,
    /// The ratio above which (`paper`) or below which (`adaptive`) the theorem promises stability.
    pub theorem_limit: f64,
    /// The same by the linearized model.
    pub linear_limit: f64,
    /// The ratios that were asked for.
    #[serde(skip)]
    pub ratios: Vec<f64>,
    /// The router's rule.
    #[serde(skip)]
    pub rule: Rule,
    /// The points, the ratios of a number of flows together.
    pub points: Vec<Row>,
}

/// One point of the map.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What is varied.
    #[serde(flatten)]
    pub varied: Varied,
    /// How many flows there are.
    pub flows: u32,
    /// What the fluid model says.
    pub fluid: Fluid,
    /// What packets do.
    pub packets: Packets,
}

/// What is varied, beside the number of flows.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum Varied {
    /// The paper's rule.
    Delta {
        /// delta over the round trip.
        delta_over_tau: f64,
        /// delta, time in which a queue above the target is drained.
        delta_ms: f64,
    },
    /// The rule that tunes itself.
    LoopDelay {
        /// The round trip over the loop delay that the router reckons with.
        tau_over_loop_delay: f64,
        /// That loop delay.
        loop_delay_ms: f64,
    },
}

/// The fluid model at one point.
#[derive(Clone, Debug, Serialize)]
pub struct Fluid {
    /// The queueing delay at which the model rests.
    pub rest_ms: f64,
    /// The least queueing delay at the end.
    pub low_ms: f64,
    /// The greatest.
    pub high_ms: f64,
    /// How much it swings.
    pub verdict: Verdict,
    /// x over time from an empty queue, one value each fifth of a round trip.
    #[serde(skip)]
    pub series_ms: Vec<f64>,
}

/// Simulated packets at one point.
#[derive(Clone, Debug, Serialize)]
pub struct Packets {
    /// 5th percentile of the queueing delay in the second half.
    pub p5_ms: f64,
    /// Its mean.
    pub mean_ms: f64,
    /// Its 95th percentile.
    pub p95_ms: f64,
    /// Share of the capacity used, 0 to 1.
    pub utilization: f64,
    /// How much it swings.
    pub verdict: Verdict,
    /// The queueing delay over time, one value each fifth of a round trip.
    #[serde(skip)]
    pub series_ms: Vec<f64>,
}

/// Measures the map at every number of `flows` and every one of `ratios`, delta over tau. Fails before the
/// first run if a value is out of range.
pub fn map(
    setting: &Setting,
    ratios: &[f64],
    flows: &[u32],
    origin: Origin,
    progress: &dyn Progress,
) -> Result<Map, Error> {
    let points = flows.iter().flat_map(|&flows| ratios.iter().map(move |&ratio| Point { ratio, flows }));
    // All of them before the first run, so that a wrong value is answered at once.
    let scenarios =
        points.map(|point| Ok((point, setting.scenario(point)?))).collect::<Result<Vec<_>, Error>>()?;
    progress.begin("settling", scenarios.len());
    let points = parallel::map(&scenarios, |(point, scenario)| {
        if progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let predicted = setting.predict(*point);
        let measured = setting.measure(scenario).map_err(|error| Error::run(&scenario.name, error))?;
        progress.step(&scenario.name);
        Ok(row(setting, *point, &predicted, &measured))
    })?;
    let (variant, eta, target_ms) = match setting.rule {
        Rule::Paper { eta, target } => ("paper", Some(eta), Some(target.as_millis_f64())),
        Rule::Adaptive => ("adaptive", None, None),
    };
    Ok(Map {
        origin,
        rate_mbps: setting.rate.as_mbps_f64(),
        rtt_ms: setting.rtt.as_millis_f64(),
        variant,
        eta,
        target_ms,
        duration_s: setting.duration.as_millis_f64() / 1e3,
        theorem_limit: setting.rule.theorem_limit(),
        linear_limit: setting.rule.linear_limit(),
        ratios: ratios.to_vec(),
        rule: setting.rule,
        points,
    })
}

fn row(setting: &Setting, point: Point, predicted: &Predicted, measured: &Measured) -> Row {
    let ms = |seconds: f64| 1e3 * seconds;
    let bin_s = setting.bin().as_secs_f64();
    let mut series_ms = Vec::new();
    setting.model(point).solve(0.0, SHOWN * setting.rtt.as_secs_f64(), &mut |t_s, x_s, _| {
        if t_s >= series_ms.len() as f64 * bin_s {
            series_ms.push(ms(x_s));
        }
    });
    let varied_ms = setting.varied(point).as_millis_f64();
    let varied = match setting.rule {
        Rule::Paper { .. } => Varied::Delta { delta_over_tau: point.ratio, delta_ms: varied_ms },
        Rule::Adaptive => Varied::LoopDelay { tau_over_loop_delay: point.ratio, loop_delay_ms: varied_ms },
    };
    Row {
        varied,
        flows: point.flows,
        fluid: Fluid {
            rest_ms: ms(predicted.rest.x_s),
            low_ms: ms(predicted.swing.low_s),
            high_ms: ms(predicted.swing.high_s),
            verdict: setting.verdict(predicted.swing.width_s()),
            series_ms,
        },
        packets: Packets {
            p5_ms: ms(measured.delay_s[0]),
            mean_ms: ms(measured.delay_s[1]),
            p95_ms: ms(measured.delay_s[2]),
            utilization: measured.utilization,
            verdict: setting.verdict(measured.width_s()),
            series_ms: measured.series_s.iter().map(|&x_s| ms(x_s)).collect(),
        },
    }
}

/// Returns the page, with what its script draws.
pub fn html(map: &Map, setting: &Setting) -> String {
    let series: Vec<_> =
        map.points.iter().map(|row| [thin(&row.fluid.series_ms), thin(&row.packets.series_ms)]).collect();
    let data = serde_json::json!({
        "document": map,
        "series_ms": series,
        "bin_s": setting.bin().as_secs_f64(),
    });
    page("ABC's stability", BODY, &data, SCRIPT)
}

/// Hundredths of a millisecond are enough for a picture, and make it a quarter as heavy.
fn thin(series_ms: &[f64]) -> Vec<f64> {
    series_ms.iter().map(|ms| (ms * 100.0).round() / 100.0).collect()
}
