//! A controller of ours and the stack's own Cubic in turns, and what ours costs.
//!
//! Both upload to the same server with the same transport settings. Processor time is that of this process,
//! the sender's, so the receiver's does not dilute it. Turns alternate, and which goes first alternates too,
//! so that a machine that warms up or grows busy treats both alike.

use brakelight_scenario::median::median;
use serde::Serialize;

use super::Control;
use super::client::{Measurement, Plan};

/// Pairs of runs.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// In the order in which they were run.
    pub pairs: Vec<Pair>,
    /// Median over the pairs of our goodput over the stack's.
    pub throughput_ratio: f64,
    /// Median over the pairs of our processor time per byte over the stack's.
    pub processor_per_byte_ratio: f64,
}

/// One run of each.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Pair {
    /// With the plan's controller.
    pub ours: Side,
    /// With quinn's Cubic.
    pub stock: Side,
}

/// One run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Side {
    /// Payload that arrived, all connections together, in Mbit/s.
    pub goodput_mbps: f64,
    /// Processor time of this process, in seconds for each 10⁹ bytes of payload.
    pub processor_s_per_gb: f64,
}

impl Side {
    fn of(measured: &Measurement) -> Self {
        let bytes: u64 = measured.flows.iter().map(|flow| flow.received.payload).sum();
        let rates = measured.flows.iter().filter(|flow| flow.received.micros > 0);
        Side {
            goodput_mbps: rates
                .map(|flow| 8.0 * flow.received.payload as f64 / flow.received.micros as f64)
                .sum(),
            processor_s_per_gb: measured.processor.as_secs_f64() / (bytes.max(1) as f64 * 1e-9),
        }
    }
}

/// Measures `plan` and the same plan with quinn's Cubic `pairs` times each. `measure` is called for every run
/// with the number of the pair, from 0 on. Fails as soon as `measure` does.
pub fn compare<E>(
    plan: &Plan,
    pairs: u32,
    mut measure: impl FnMut(u32, &Plan) -> Result<Measurement, E>,
) -> Result<Comparison, E> {
    let stock = Plan { control: Control::StockCubic, ..plan.clone() };
    let mut once = |pair, plan: &Plan| measure(pair, plan).map(|measured| Side::of(&measured));
    let mut done = Vec::new();
    for pair in 0..pairs {
        done.push(if pair % 2 == 0 {
            let ours = once(pair, plan)?;
            Pair { ours, stock: once(pair, &stock)? }
        } else {
            let stock = once(pair, &stock)?;
            Pair { ours: once(pair, plan)?, stock }
        });
    }
    let ratio = |of: fn(&Side) -> f64| {
        let mut ratios: Vec<f64> = done.iter().map(|pair| of(&pair.ours) / of(&pair.stock)).collect();
        median(&mut ratios).unwrap_or(0.0)
    };
    let throughput_ratio = ratio(|side| side.goodput_mbps);
    let processor_per_byte_ratio = ratio(|side| side.processor_s_per_gb);
    Ok(Comparison { pairs: done, throughput_ratio, processor_per_byte_ratio })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use brakelight_registry::ControllerConfig;

    use super::*;
    use crate::adapter::{ControlSettings, PacketSender, Path};
    use crate::perf::client::{Flow, Until, Work};
    use crate::perf::identity::Trust;
    use crate::perf::wire::Received;

    fn plan() -> Plan {
        let controller = ControllerConfig::new("cubic", &[]).unwrap();
        let settings = ControlSettings::new(controller, PacketSender::Stack, Path::Public).unwrap();
        Plan {
            server: ([127, 0, 0, 1], 1).into(),
            server_name: String::new(),
            trust: Trust::Anyone,
            token: None,
            control: Control::Ours(Box::new(settings)),
            work: Work::Upload,
            until: Until::Time(Duration::from_secs(1)),
            connections: 1,
            probe: None,
            qlog: None,
        }
    }

    /// A run of a second in which one connection carried `payload` bytes, for a quarter of a second of
    /// processor time.
    fn measured(payload: u64) -> Measurement {
        let received = Received { payload, micros: 1_000_000, ..Received::default() };
        let flows = vec![Flow { received, ..Flow::default() }];
        Measurement { flows, processor: Duration::from_millis(250), ..Measurement::default() }
    }

    #[test]
    fn who_goes_first_alternates_and_ratios_are_medians_over_pairs() {
        let mut turns = Vec::new();
        // In pair 0 ours carries half of what the stack does, then as much, then twice as much.
        let compared = compare::<()>(&plan(), 3, |pair, plan| {
            let ours = matches!(plan.control, Control::Ours(_));
            turns.push((pair, ours));
            Ok(measured(if ours { 1_000_000 << pair } else { 2_000_000 }))
        })
        .unwrap();
        assert_eq!(turns, [(0, true), (0, false), (1, false), (1, true), (2, true), (2, false)]);
        assert_eq!(compared.pairs[2].ours.goodput_mbps, 32.0);
        assert_eq!(compared.pairs[0].stock.processor_s_per_gb, 125.0);
        assert_eq!((compared.throughput_ratio, compared.processor_per_byte_ratio), (1.0, 1.0));
    }

    #[test]
    fn the_first_run_that_fails_ends_it() {
        let mut runs = 0;
        let failed = compare(&plan(), 3, |_, _| {
            runs += 1;
            if runs == 2 { Err("gone") } else { Ok(measured(1)) }
        });
        assert_eq!((failed.unwrap_err(), runs), ("gone", 2));
    }
}
