//! Every scheme on every trace.

use std::path::Path;

use brakelight_core::path::trace::Trace;
use brakelight_core::registry::{Host, Registry};
use brakelight_core::time::Duration;
use brakelight_core::units::Limit;
use brakelight_scenario::compare::Compare as One;
use brakelight_scenario::scenario::{Record, TraceOffset, default_bin};
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::OPPORTUNITY;
use brakelight_scenario::trace::embedded::EMBEDDED;
use brakelight_scenario::trace::names::Names;
use brakelight_sim::Traces;

use crate::error::Error;
use crate::jobs::{self, Job};
use crate::progress::Progress;
use crate::runner::{Runner, Simulator};
use crate::schemes;
use crate::table::{Drawn, Table};
use crate::text;

/// A comparison: schemes, traces and setup.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// Mahimahi trace files, or names of traces; none stands for the embedded traces that are meant for
    /// comparisons.
    pub traces: Vec<String>,
    /// The schemes; none stands for [`schemes::defaults`] of the standard registry.
    pub schemes: Vec<Scheme>,
    /// The scheme of one competing flow at the same queue.
    pub against: Option<Scheme>,
    /// Propagation delay of the round trip.
    pub rtt: Duration,
    /// The bottleneck's buffer.
    pub buffer: Limit,
    /// Length of a run.
    pub duration: Duration,
    /// Seeds to run; rows are medians, with their spread.
    pub runs: u32,
    /// The first seed.
    pub seed: u64,
    /// Where in its period a trace starts.
    pub trace_offset: TraceOffset,
    /// Whether to keep the time series of each row's first seed.
    pub series: bool,
    /// Whether to keep each link's log of each row's first seed.
    pub link_logs: bool,
}

impl Default for Compare {
    /// Every scheme on the embedded traces: round trips of 100 ms, 250 packets of buffer, one run of 60 s
    /// each.
    fn default() -> Self {
        Compare {
            traces: Vec::new(),
            schemes: Vec::new(),
            against: None,
            rtt: Duration::from_millis(100),
            buffer: Limit::Packets(250),
            duration: Duration::from_secs(60),
            runs: 1,
            seed: 1,
            trace_offset: TraceOffset::At(Duration::ZERO),
            series: false,
            link_logs: false,
        }
    }
}

/// Runs a comparison in simulation. Trace names are those of the embedded traces and of the folder that
/// `BRAKELIGHT_TRACES` names. Fails before the first run if a trace is unknown, or the scenarios are wrong or
/// would take hours.
pub fn compare(request: &Compare) -> Result<Table, Error> {
    let plan = Plan::new(request, &Names::from_environment()?)?;
    plan.check_cost()?;
    plan.run(&Simulator, &())
}

/// A validated comparison that has not run yet.
#[derive(Clone, Debug)]
pub struct Plan {
    request: Compare,
    /// One per trace and scheme, the schemes of a trace together.
    jobs: Vec<Job>,
    traces: Traces,
    notes: Vec<String>,
    schemes: usize,
}

impl Plan {
    /// Plans a comparison whose traces `names` knows.
    pub fn new(request: &Compare, names: &Names) -> Result<Self, Error> {
        let schemes = match request.schemes.as_slice() {
            [] => schemes::defaults(&Registry::standard()),
            given => given.to_vec(),
        };
        let given = match request.traces.as_slice() {
            [] => EMBEDDED.iter().filter(|trace| trace.default).map(|trace| trace.name.to_string()).collect(),
            given => given.to_vec(),
        };
        let labels = labels(&given)?;
        let mut traces = Traces::new();
        let mut jobs = Vec::new();
        let mut shallow = Vec::new();
        for (name, label) in given.iter().zip(&labels) {
            let trace = names.load(name)?;
            shallow.extend(shallow_buffer(label, &trace, request));
            traces.insert(label.clone(), trace);
            for scheme in &schemes {
                let compare = One {
                    rtt: request.rtt,
                    buffer: request.buffer,
                    duration: request.duration,
                    seed: request.seed,
                    trace_offset: request.trace_offset,
                    against: request.against.clone(),
                    record: Record {
                        series: request.series,
                        bin: default_bin(request.duration).min(request.duration),
                        link_logs: request.link_logs,
                        ..Record::summary(request.duration)
                    },
                    ..One::new(scheme.clone(), label)
                };
                jobs.push(Job {
                    label: format!("{scheme} on {label}"),
                    scenario: compare.scenario()?,
                    names: Some((scheme.to_string(), label.clone())),
                });
            }
        }
        let mut notes = notes(&schemes, request.against.as_ref());
        notes.extend(shallow);
        Ok(Plan { request: request.clone(), jobs, traces, notes, schemes: schemes.len() })
    }

    /// Refuses a comparison that would take hours or fill the memory.
    pub fn check_cost(&self) -> Result<(), Error> {
        jobs::check_cost(&self.jobs, &self.traces)
    }

    /// Returns what it runs: one job per trace and scheme, the schemes of a trace together.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// Runs it.
    pub fn run(&self, runner: &dyn Runner, progress: &dyn Progress) -> Result<Table, Error> {
        let Compare { runs, seed, trace_offset, .. } = self.request;
        let results = jobs::run("comparing", &self.jobs, runs, &self.traces, runner, progress)?;
        // The way back is not what the comparison is about.
        let table = Table::of(results, &Drawn { links: 1, paths: Vec::new() });
        let mut setting = vec![
            ("RTT".to_string(), self.request.rtt.to_string()),
            ("buffer".to_string(), self.request.buffer.to_string()),
            ("duration".to_string(), self.request.duration.to_string()),
            ("seed".to_string(), seeds(seed, runs)),
            ("traces from".to_string(), describe_offset(trace_offset)),
        ];
        if let Some(against) = &self.request.against {
            setting.push(("against".to_string(), against.to_string()));
        }
        let title = format!(
            "{} on {}",
            text::count(self.schemes, "scheme", "schemes"),
            text::count(self.traces.len(), "trace", "traces")
        );
        let reference = table.runs.first().map(|run| run.scheme.clone()).filter(|_| self.schemes > 1);
        Ok(Table { title, setting, notes: self.notes.clone(), reference, ..table })
    }
}

/// Returns `7`, or `7 to 16`.
pub fn seeds(first: u64, runs: u32) -> String {
    match runs {
        1 => first.to_string(),
        _ => format!("{first} to {}, medians", first.wrapping_add(u64::from(runs - 1))),
    }
}

/// What traces are called in results: a file by its name, unless two would be called the same.
fn labels(given: &[String]) -> Result<Vec<String>, Error> {
    if let Some(twice) = given.iter().enumerate().find(|(i, name)| given[..*i].contains(name)) {
        return Err(Error::SameTrace(twice.1.clone()));
    }
    let short = |name: &String| {
        let file = Path::new(name).file_name();
        file.map_or_else(|| name.clone(), |file| file.to_string_lossy().into_owned())
    };
    let shorts: Vec<String> = given.iter().map(short).collect();
    let unique = |name: &String| shorts.iter().filter(|other| *other == name).count() == 1;
    Ok(given
        .iter()
        .zip(&shorts)
        .map(|(name, short)| if unique(short) { short.clone() } else { name.clone() })
        .collect())
}

/// What a reader must know of the settings: presets, host profiles, a competitor.
fn notes(schemes: &[Scheme], against: Option<&Scheme>) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in schemes.iter().flat_map(|scheme| scheme.notes()) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    let quic: Vec<String> = schemes
        .iter()
        .filter(|scheme| scheme.host() == Host::Quic)
        .map(|scheme| format!("`{scheme}`"))
        .collect();
    if !quic.is_empty() {
        notes.push(format!(
            "hosts: {} with the profile `quic` (RFC 9002), all others with `tcp`",
            quic.join(", ")
        ));
    }
    if let Some(against) = against {
        notes.push(format!("every scheme shares its queue with one flow of `{against}`"));
    }
    notes
}

/// Below this share of a path's bandwidth-delay product a buffer decides more than any scheme.
const SHALLOW: f64 = 0.5;

/// A remark on a buffer that is small for its trace.
fn shallow_buffer(label: &str, trace: &Trace, request: &Compare) -> Option<String> {
    let product = trace.mean_rate(OPPORTUNITY).bytes_in(request.rtt).as_f64();
    let buffer = match request.buffer {
        Limit::Packets(packets) => f64::from(packets) * OPPORTUNITY.as_f64(),
        Limit::Bytes(bytes) => bytes.as_f64(),
    };
    (buffer < SHALLOW * product).then(|| {
        format!(
            "{label}: a buffer of {} is {:.2} of the bandwidth-delay product; every scheme that probes by losses, and ABC's second window, starves: --buffer {}kB would hold one",
            request.buffer,
            buffer / product,
            (product / 1e3).ceil()
        )
    })
}

/// Returns in words where traces begin.
pub fn describe_offset(offset: TraceOffset) -> String {
    match offset {
        TraceOffset::At(start) if start.is_zero() => "their beginning".into(),
        TraceOffset::At(start) => start.to_string(),
        TraceOffset::Random => "a random place".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_by_their_names_unless_two_would_be_called_the_same() {
        let labels = |given: &[&str]| labels(&given.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(labels(&["a/x.up", "lte"]).unwrap(), ["x.up", "lte"]);
        assert_eq!(labels(&["a/x.up", "b/x.up", "c"]).unwrap(), ["a/x.up", "b/x.up", "c"]);
        assert!(labels(&["lte", "lte"]).unwrap_err().to_string().contains("`lte` is there twice"));
    }
}
