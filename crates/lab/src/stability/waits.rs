//! How long a packet can wait at ABC's router on links that move: the proven bound, and what packets do on
//! the stairs that come closest to it.

use brakelight_core::time::Duration;
use brakelight_core::units::Rate;
use brakelight_scenario::documents::Origin;
use brakelight_scenario::problem::InputError;
use brakelight_scenario::scenario::Scenario;
use brakelight_scenario::scheme::Scheme;
use brakelight_sim::{Traces, run};
use serde::Serialize;

use crate::analysis::bound::{Bound, Class, Law, Path};
use crate::analysis::stability::PACKET;
use crate::attack::Link;
use crate::attack::space::Setting;
use crate::error::Error;
use crate::parallel;
use crate::progress::Progress;

/// Factors by which a link may change in a round trip.
pub const CHANGES: &str = "1.1,1.25,1.5,2,4,8";

/// How long the stairs stay at their top and at their foot: both come to rest.
const REST: Duration = Duration::from_secs(5);

/// Links, and the router before them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Links {
    /// The least and the greatest capacity.
    pub rates: [Rate; 2],
    /// tau: propagation delay of the round trip.
    pub rtt: Duration,
    /// eta.
    pub eta: f64,
    /// d_t.
    pub target: Duration,
    /// Length of a run.
    pub duration: Duration,
    /// The seed.
    pub seed: u64,
}

/// The JSON document.
#[derive(Clone, Debug, Serialize)]
pub struct Waits {
    /// Where it comes from.
    pub origin: Origin,
    /// The least capacity.
    pub low_mbps: f64,
    /// The greatest.
    pub high_mbps: f64,
    /// tau, propagation delay of the round trip.
    pub rtt_ms: f64,
    /// Share of the capacity that the router aims at.
    pub eta: f64,
    /// d_t, queueing delay below which the router drains nothing.
    pub target_ms: f64,
    /// The factors that were asked for.
    #[serde(skip)]
    pub changes: Vec<f64>,
    /// The points, the factors of a number of flows together.
    pub points: Vec<Wait>,
}

/// The longest wait on one class of links.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Wait {
    /// How many flows there are.
    pub flows: u32,
    /// The largest factor by which the capacity changes in a round trip.
    pub change: f64,
    /// The bound of the fluid model; none where the flows' additive increase alone can fill the slowest link.
    pub fluid_ms: Option<f64>,
    /// The bound of packets; none likewise.
    pub packets_ms: Option<f64>,
    /// The longest wait of a simulated packet on stairs from the greatest capacity to the least and back.
    pub stairs_ms: f64,
}

impl Links {
    fn bound(&self, flows: u32, change: f64) -> Bound {
        let [low, high] = self.rates;
        Bound {
            law: Law { eta: self.eta, target_s: self.target.as_secs_f64(), ..Law::PAPER },
            path: Path {
                tau_s: self.rtt.as_secs_f64(),
                flows: f64::from(flows),
                packet_bits: PACKET.bits() as f64,
            },
            class: Class { low_bps: low.as_bps_f64(), high_bps: high.as_bps_f64(), change, outage_s: 0.0 },
        }
    }

    /// The stairs: down by the factor once in a round trip and a window of measurement, and up again.
    fn stairs(&self, flows: u32, change: f64) -> Result<Scenario, InputError> {
        let [low, high] = self.rates.map(|rate| rate.bps() / 1000);
        let window_ms = (1e3 * Law::PAPER.window_s) as u64;
        let (each_ms, rest_ms) = (self.rtt.as_micros().div_ceil(1000) + window_ms, REST.as_micros() / 1000);
        let mut down = vec![high];
        while let Some(above) = down.last().copied().filter(|rate| *rate > low) {
            // Upwards, so that the factor is kept.
            down.push(((above as f64 / change).ceil() as u64).clamp(low, above - 1));
        }
        let last = down.len() - 1;
        let lasts = |place| if place == 0 || place == last { rest_ms } else { each_ms };
        let falls = down.iter().enumerate().map(|(place, rate)| (lasts(place), *rate));
        let rises = down[..last].iter().skip(1).rev().map(|rate| (each_ms, *rate));
        let link = Link {
            rtt_ms: self.rtt.as_micros().div_ceil(1000),
            buffer_pkts: 1_000_000,
            steps: falls.chain(rises).collect(),
            ..Link::default()
        };
        let scheme = Scheme::parse(&format!("abc:eta={},target={}", self.eta, self.target))?;
        let name = format!("{flows} flows, a factor of {change}");
        let setting = Setting { name, seed: self.seed, duration: self.duration };
        let mut scenario = link.scenario(&scheme, None, false, &setting)?;
        // That of the bound, and not whole milliseconds, in which links of a search are written.
        scenario.flows[0].rtt = self.rtt;
        scenario.flows[0].count = flows;
        Ok(scenario)
    }
}

/// Computes the bounds for every number of `flows` and every factor of `changes`, and runs the stairs.
///
/// # Errors
/// The stairs are no valid scenario, or a run fails.
pub fn waits(
    links: &Links,
    changes: &[f64],
    flows: &[u32],
    origin: Origin,
    progress: &dyn Progress,
) -> Result<Waits, Error> {
    let points = flows.iter().flat_map(|&flows| changes.iter().map(move |&change| (flows, change)));
    let scenarios = points
        .map(|(flows, change)| Ok((flows, change, links.stairs(flows, change)?)))
        .collect::<Result<Vec<_>, Error>>()?;
    progress.begin("stairs", scenarios.len());
    let points = parallel::map(&scenarios, |(flows, change, scenario)| {
        if progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let outcome = run(scenario, &Traces::new()).map_err(|error| Error::run(&scenario.name, error))?;
        progress.step(&scenario.name);
        let bound = links.bound(*flows, *change);
        let delay = outcome.run.links.first().and_then(|link| link.queueing_delay_ms);
        Ok(Wait {
            flows: *flows,
            change: *change,
            fluid_ms: bound.fluid_s().map(|s| 1e3 * s),
            packets_ms: bound.packets_s().map(|s| 1e3 * s),
            stairs_ms: delay.map_or(0.0, |delay| delay.max),
        })
    })?;
    let [low, high] = links.rates;
    Ok(Waits {
        origin,
        low_mbps: low.as_mbps_f64(),
        high_mbps: high.as_mbps_f64(),
        rtt_ms: links.rtt.as_millis_f64(),
        eta: links.eta,
        target_ms: links.target.as_millis_f64(),
        changes: changes.to_vec(),
        points,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the stairs of a link of this round trip.
    fn stairs(rtt: Duration) -> Scenario {
        let rates = [6, 24].map(Rate::from_mbps);
        let (duration, target) = (Duration::from_secs(20), Duration::from_millis(50));
        let links = Links { rates, rtt, eta: 0.98, target, duration, seed: 1 };
        links.stairs(1, 2.0).unwrap()
    }

    #[test]
    fn packets_have_the_round_trip_of_the_bound() {
        for rtt in [100_000, 100_400, 20_001].map(Duration::from_micros) {
            let scenario = stairs(rtt);
            assert_eq!(scenario.flows[0].rtt, rtt);
            assert_eq!(scenario.validate(), Ok(()));
        }
    }
}
