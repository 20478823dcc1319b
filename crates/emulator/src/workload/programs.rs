//! Any command and its servers in place of a scenario's flow: what passed the path is their row. Nobody tells
//! their windows, round-trip times or retransmissions.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use brakelight_core::time::{Duration, Time};
use brakelight_scenario::measure::{mbps, percent};
use brakelight_scenario::outcome::{FlowOutcome, FlowSeries, Outcome, Run};
use brakelight_scenario::scenario::Scenario;

use super::HostFlow;
use crate::measure::FlowMeter;
use crate::outcome::Directions;

/// The name of a controller that nobody tells.
pub(super) const UNKNOWN: &str = "unknown";

/// Lines that are shown of what a failed program said.
const LAST_LINES: usize = 5;

/// A command, and servers for it on the other side: command lines for the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// Runs on the inner side, as the sender of a scenario does.
    pub command: OsString,
    /// Run on the outer side first, each waited for until it listens.
    pub servers: Vec<OsString>,
    /// Whether data go from the servers to the command, so that the scenario's `path` leads there.
    pub download: bool,
}

impl Programs {
    /// The command at the start of its flow.
    pub(super) fn command(&self, flows: &[HostFlow]) -> Vec<OsString> {
        let start = flows.first().map_or(Duration::ZERO, |flow| flow.start);
        let script = format!("sleep {:.6}; exec sh -c \"$1\"", start.as_secs_f64());
        vec!["sh".into(), "-c".into(), script.into(), "sh".into(), self.command.clone()]
    }
}

/// Returns the outcome of a run. All that passed in the direction of the data is the scenario's one flow.
pub(super) fn outcome(flows: &[HostFlow], scenario: &Scenario, directions: &Directions) -> Outcome {
    let mut outcome = directions.outcome(&scenario.name, scenario.seed);
    let name = flows.first().map_or_else(String::new, |flow| flow.name.clone());
    let meters = &directions.up.flows;
    let total = |value: fn(&FlowMeter) -> u64| meters.iter().map(value).sum::<u64>();
    // As the simulator counts: the part of the measured interval in which the flow exists.
    let from = Time::ZERO + directions.measure_from;
    let first = meters.iter().map(|meter| meter.first).min().unwrap_or(from);
    let last = meters.iter().map(|meter| meter.last).max().unwrap_or(from);
    let active = directions.length().saturating_sub(first.max(from).since(from));
    let (delivered, dropped) = (total(|meter| meter.delivered), total(|meter| meter.dropped));
    let times = [("started_s", first), ("ended_s", last)];
    let row = FlowOutcome {
        name: name.clone(),
        controller: UNKNOWN.to_string(),
        throughput_mbps: mbps(total(|meter| meter.bytes), active),
        goodput_mbps: mbps(total(|meter| meter.payload), active),
        loss_percent: percent(dropped, delivered + dropped),
        application: Some(times.map(|(name, at)| (name.to_string(), at.as_secs_f64())).into()),
        ..FlowOutcome::default()
    };
    outcome.run = Run { flows: vec![row], jain: None, ..outcome.run };
    if let Some(series) = &mut outcome.series {
        series.flows = sum(name, &series.flows).into_iter().collect();
    }
    outcome
}

/// All connections together over time, if there are any.
fn sum(name: String, lines: &[FlowSeries]) -> Option<FlowSeries> {
    let longest = lines.iter().max_by_key(|line| line.time_s.len())?;
    let mut sum = FlowSeries { name, ..longest.clone() };
    sum.throughput_mbps.fill(0.0);
    for line in lines {
        for (sum, value) in sum.throughput_mbps.iter_mut().zip(&line.throughput_mbps) {
            *sum += value;
        }
    }
    Some(sum)
}

/// Returns the last lines that each program wrote to standard error, from their files in `folder`, with the
/// program's name before each.
pub fn said(folder: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |program: &str, stem: &str| {
        let Ok(bytes) = fs::read(folder.join(format!("{stem}.err"))) else { return false };
        let text = String::from_utf8_lossy(&bytes);
        let own: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = own.iter().skip(own.len().saturating_sub(LAST_LINES));
        lines.extend(last.map(|line| format!("{program}: {line}")));
        true
    };
    for place in 1.. {
        if !say(&format!("server {place}"), &format!("server-{place}")) {
            break;
        }
    }
    say("command", "command");
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connections_of_a_command_are_one_line_over_time() {
        let line = |mbps: &[f64]| FlowSeries {
            time_s: (0..mbps.len()).map(|bin| bin as f64).collect(),
            throughput_mbps: mbps.to_vec(),
            rtt_ms: vec![None; mbps.len()],
            ..FlowSeries::default()
        };
        let sum = sum("main".to_string(), &[line(&[1.0]), line(&[2.0, 3.0, 0.5])]).unwrap();
        assert_eq!((sum.name.as_str(), sum.throughput_mbps), ("main", vec![3.0, 3.0, 0.5]));
        assert_eq!(sum.time_s, [0.0, 1.0, 2.0]);
        assert_eq!(super::sum("none".to_string(), &[]), None);
    }
}
