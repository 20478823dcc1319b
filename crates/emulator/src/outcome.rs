//! Both directions as one row of results, in the shape and by the definitions of the simulator's.
//!
//! The row is about the direction that carried more: data go that way, acknowledgements the other. What a
//! simulation knows and nobody on the path can see, payload and retransmissions, is for whoever knows the
//! application to fill in; until then goodput is what was handed over behind the headers of TCP and UDP.

use brakelight_core::time::{Duration, Time};
use brakelight_scenario::measure::{describe_service, jain, mbps, percent};
use brakelight_scenario::outcome::{
    FlowOutcome, FlowSeries, Lateness, MarkCounts, Outcome, Run, Series, SignalDelay,
};

use crate::clock;
use crate::emulation::Ended;
use crate::log::LogError;
use crate::measure::{FlowMeter, Measured, Meter};
use crate::probe::{self, Stall};

/// If the 99th percentile of the lateness exceeds this, the run is unreliable.
pub const LATE_P99: Duration = Duration::from_millis(1);

/// One delivery later than this makes a run unreliable, and so does a longer wait of an ordinary thread for a
/// processor.
pub const LATE_MOST: Duration = Duration::from_millis(20);

/// Flows of a direction that a row lists.
const MOST_FLOWS: usize = 100;

/// The two directions of a path.
#[derive(Debug)]
pub struct Directions {
    /// From the command to the outer side.
    pub up: Measured,
    /// To the command.
    pub down: Measured,
    /// When measuring began.
    pub measure_from: Duration,
    /// Whether data are known to go up. If not, the row is about the direction of [`Directions::main`].
    pub data_go_up: bool,
    /// When an ordinary thread was left waiting for a processor.
    pub stalls: Vec<Stall>,
}

impl Directions {
    /// Returns what came of both, measured from `measure_from` on. Fails if the log of a link could not be
    /// written to its end.
    pub fn of(ended: Ended<Meter>, measure_from: Duration) -> Result<Self, LogError> {
        let Ended { up, down, stalls, .. } = ended;
        let (up, down) = (Measured::of(up)?, Measured::of(down)?);
        Ok(Directions { up, down, measure_from, data_go_up: false, stalls })
    }

    /// Returns what the run was like, in one line.
    pub fn in_words(&self) -> String {
        let passed = |direction: &Measured| {
            let facts = &direction.facts;
            format!("{} {} packets delivered, {} dropped", direction.name, facts.written, facts.dropped)
        };
        let lateness = self.lateness();
        let late = [lateness.quantile(0.5), lateness.quantile(0.99), lateness.max()]
            .map(|late| format!("{:.3}", late.as_millis_f64()));
        format!(
            "emulated: {}; {}; late by {} ms (median), {} ms (p99), {} ms (most), {}",
            passed(&self.up),
            passed(&self.down),
            late[0],
            late[1],
            late[2],
            self.up.facts.scheduling,
        )
    }

    /// Returns the direction of the data, if that is known. Otherwise it is the direction with the link; if
    /// both or neither have one, the direction that carried more bytes.
    pub fn main(&self) -> &Measured {
        if self.data_go_up {
            return &self.up;
        }
        let weight = |one: &Measured| (one.link.is_some(), one.facts.written_bytes);
        if weight(&self.down) > weight(&self.up) { &self.down } else { &self.up }
    }

    /// Returns the measured interval.
    pub fn length(&self) -> Duration {
        let end = self.main().facts.ended;
        end.since((Time::ZERO + self.measure_from).min(end))
    }

    /// Returns the lateness of both directions together.
    pub fn lateness(&self) -> clock::Lateness {
        let mut both = self.up.lateness.clone();
        both.add(&self.down.lateness);
        both
    }

    /// Returns the row of a run called `scheme`, and its series.
    pub fn outcome(&self, scheme: &str, seed: u64) -> Outcome {
        let main = self.main();
        let length = self.length();
        let link = main.link.as_ref();
        let total = |value: fn(&FlowMeter) -> u64| main.flows.iter().map(value).sum::<u64>();
        let (bytes, delivered, dropped) =
            (total(|flow| flow.bytes), total(|flow| flow.delivered), total(|flow| flow.dropped));
        let row = link.map(|link| link.meter.outcome("", "", link.capacity, length));
        let flows: Vec<FlowOutcome> =
            main.flows.iter().take(MOST_FLOWS).map(|flow| flow_row(flow, length)).collect();
        let rates: Vec<f64> = flows.iter().map(|flow| flow.throughput_mbps).collect();
        let lateness = self.lateness();
        let reasons = self.reasons(&lateness);
        let run = Run {
            scheme: scheme.to_string(),
            trace: link.map_or_else(String::new, |link| describe_service(&link.spec.service)),
            seed,
            duration_s: length.as_secs_f64(),
            capacity_mbps: row.as_ref().map_or(0.0, |row| row.capacity_mbps),
            throughput_mbps: row.as_ref().map_or_else(|| mbps(bytes, length), |row| row.throughput_mbps),
            goodput_mbps: mbps(total(|flow| flow.payload), length),
            utilization: row.as_ref().map_or(0.0, |row| row.utilization),
            queueing_delay_ms: row.as_ref().and_then(|row| row.queueing_delay_ms),
            one_way_delay_ms: main.one_way.summary(),
            rtt_ms: None,
            responsiveness: None,
            second_half: None,
            signal_delay_ms: link.map(|link| SignalDelay { p95: link.meter.signal.p95_ms() }),
            loss_percent: percent(dropped, delivered + dropped),
            delivered_packets: delivered,
            dropped_packets: dropped,
            sent_packets: None,
            left_packets: None,
            retransmitted_packets: 0,
            marks: main.flows.iter().fold(MarkCounts::default(), |sum, flow| sum + flow.marks),
            jain: jain_of(&main.flows.iter().map(|flow| flow.bytes).zip(rates).collect::<Vec<_>>()),
            unfairness: None,
            links: self.links(length),
            flows,
            shapers: Vec::new(),
            run_id: None,
            setup: None,
            deployment: None,
            spread: None,
            interval95: None,
            modes: None,
            versus: None,
            fairness: None,
            lateness_ms: Some(Lateness {
                p50: lateness.quantile(0.50).as_millis_f64(),
                p99: lateness.quantile(0.99).as_millis_f64(),
                max: lateness.max().as_millis_f64(),
            }),
            unreliable: !reasons.is_empty(),
            unreliable_because: reasons,
        };
        Outcome { run, series: self.series(), ..Outcome::default() }
    }

    fn links(&self, length: Duration) -> Vec<brakelight_scenario::outcome::LinkOutcome> {
        let links = [&self.up, &self.down].into_iter().filter_map(|direction| {
            let link = direction.link.as_ref()?;
            Some(link.meter.outcome(&link.spec.name, link.spec.queue.name(), link.capacity, length))
        });
        links.collect()
    }

    fn series(&self) -> Option<Series> {
        let main = self.main();
        let bin = main.bin?;
        let links = [&self.up, &self.down].into_iter().filter_map(|direction| {
            let link = direction.link.as_ref()?;
            Some(link.meter.series.as_ref()?.series(&link.spec.name, bin))
        });
        let flows = main.flows.iter().filter(|flow| !flow.bins.is_empty()).map(|flow| FlowSeries {
            name: name(flow),
            time_s: (0..flow.bins.len() as u64).map(|index| (bin * index).as_secs_f64()).collect(),
            throughput_mbps: flow.bins.iter().map(|&bytes| mbps(bytes, bin)).collect(),
            rtt_ms: vec![None; flow.bins.len()],
            ..FlowSeries::default()
        });
        Some(Series { bin_s: bin.as_secs_f64(), links: links.collect(), flows: flows.collect() })
    }

    /// Reasons why the run is unreliable.
    fn reasons(&self, lateness: &clock::Lateness) -> Vec<String> {
        let mut reasons = Vec::new();
        let p99 = lateness.quantile(0.99);
        if p99 > LATE_P99 {
            reasons
                .push(format!("one delivery in a hundred was more than {p99} late; the limit is {LATE_P99}"));
        }
        let most = lateness.max();
        if most > LATE_MOST {
            reasons.push(format!("a delivery was {most} late; the limit is {LATE_MOST}"));
        }
        let (begin, end) = (Time::ZERO + self.measure_from, self.main().facts.ended);
        if let Some(waited) = probe::longest(&self.stalls, begin, end) {
            reasons.push(format!(
                "an ordinary thread waited {waited} for a processor, and the programs may have too; the limit is {LATE_MOST}"
            ));
        }
        for direction in [&self.up, &self.down] {
            let facts = &direction.facts;
            if facts.overrun > 0 {
                reasons.push(format!(
                    "{}: {} packets did not fit into the emulator itself",
                    direction.name, facts.overrun
                ));
            }
            if let Some(missed @ 1..) = facts.missed {
                reasons.push(format!(
                    "{}: the kernel dropped {missed} packets before they could be read",
                    direction.name
                ));
            }
            if facts.refused * 1000 > facts.written {
                reasons.push(format!(
                    "{}: the other side's kernel did not take {} packets of {}",
                    direction.name,
                    facts.refused,
                    facts.refused + facts.written
                ));
            }
        }
        reasons
    }
}

/// A flow with less than this share of the largest's bytes only talks about another: iperf3's control
/// connection.
const LEAST_SHARE: f64 = 1e-3;

/// Jain's index of the flows that carry data, given by their bytes and rates; none with fewer than two.
fn jain_of(flows: &[(u64, f64)]) -> Option<f64> {
    let most = flows.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0);
    let carry = flows.iter().filter(|(bytes, _)| *bytes as f64 >= LEAST_SHARE * most as f64);
    let rates: Vec<f64> = carry.map(|(_, rate)| *rate).collect();
    if rates.len() > 1 { jain(rates) } else { None }
}

fn name(flow: &FlowMeter) -> String {
    flow.tuple.map_or_else(|| "others".to_string(), |tuple| tuple.to_string())
}

pub(crate) fn flow_row(flow: &FlowMeter, length: Duration) -> FlowOutcome {
    let active = flow.last.since(flow.first).max(Duration::from_millis(1)).min(length);
    FlowOutcome {
        name: name(flow),
        controller: "unknown".to_string(),
        throughput_mbps: mbps(flow.bytes, active),
        goodput_mbps: mbps(flow.payload, active),
        rtt_ms: None,
        queueing_delay_ms: None,
        one_way_delay_ms: None,
        loss_percent: percent(flow.dropped, flow.delivered + flow.dropped),
        retransmitted_packets: 0,
        application: None,
        state: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_only_talks_about_another_is_not_in_jains_index() {
        // One iperf3 test: its data and its control connection.
        assert_eq!(jain_of(&[(60_000_000, 8.0), (1_500, 0.0002)]), None);
        assert_eq!(jain_of(&[(60_000_000, 8.0), (1_500, 0.0002), (60_000_000, 8.0)]), Some(1.0));
        // A flow that starves is no such connection.
        assert!(jain_of(&[(60_000_000, 8.0), (600_000, 0.08)]).is_some_and(|jain| jain < 0.6));
    }
}
