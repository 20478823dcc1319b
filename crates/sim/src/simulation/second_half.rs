//! The second half of the measured interval by itself: by then flows have started, so that a short run says
//! what a long one would.

use brakelight_core::endpoint::Endpoint;
use brakelight_core::time::Time;
use brakelight_scenario::measure::{Distribution, mbps, ratio};
use brakelight_scenario::outcome::SecondHalf;
use brakelight_scenario::scenario::Scenario;

use super::Simulation;
use crate::packet::SimPacket;
use crate::report::Reporting;

/// What had been counted when the second half began.
#[derive(Clone, Debug)]
pub(super) struct Halfway {
    at: Time,
    /// Bytes that left each link, and those of each flow that left its last one.
    links: Vec<u64>,
    flows: Vec<u64>,
    queueing: Distribution,
}

impl<E: Endpoint<SimPacket> + Reporting> Simulation<E> {
    /// When the second half begins, as long as it has not begun and is to be recorded.
    pub(super) fn second_half_due(&self) -> Option<Time> {
        let Scenario { measure_from, duration, record, .. } = &*self.scenario;
        let due = Time::ZERO + *measure_from + duration.saturating_sub(*measure_from) / 2;
        (record.second_half && self.halfway.is_none()).then_some(due)
    }

    /// Notes what has been counted by now, when the second half begins.
    pub(super) fn begin_second_half(&mut self, at: Time) {
        let recorder = self.engine.observer();
        self.halfway = Some(Halfway {
            at,
            links: recorder.links.iter().map(|link| link.meter.bytes).collect(),
            flows: recorder.flows.iter().map(|flow| flow.bytes).collect(),
            queueing: self.queueing(),
        });
    }

    /// Returns what was counted since the second half began, if it has; the row is that of the link
    /// `bottleneck`.
    pub(super) fn second_half(&self, bottleneck: Option<usize>, to: Time) -> Option<SecondHalf> {
        let Halfway { at, links, flows, queueing } =
            self.halfway.as_ref().filter(|halfway| halfway.at < to)?;
        let recorder = self.engine.observer();
        let (place, length) = (bottleneck?, to.since(*at));
        let bytes = recorder.links[place].meter.bytes - links[place];
        let capacity = self.engine.elements()[place].capacity_between(*at, to)?;
        let own: Vec<u64> =
            recorder.flows.iter().zip(flows).map(|(flow, before)| flow.bytes - before).collect();
        let later = self.queueing().since(queueing);
        Some(SecondHalf {
            from_s: at.since(Time::ZERO).as_nanos() as f64 / 1e9,
            throughput_mbps: mbps(bytes, length),
            utilization: ratio(bytes as f64, capacity.as_f64()),
            share: (own.len() > 1).then(|| ratio(own[0] as f64, own.iter().sum::<u64>() as f64)),
            p95_ms: (later.count() > 0).then(|| later.quantile_ms(0.95)),
        })
    }
}
