//! Every scheme on every trace.

use std::path::Path;

use brakelight_core::ecn::Encoding;
use brakelight_core::time::Duration;
use brakelight_core::units::Limit;
use brakelight_links::trace::Trace;
use brakelight_registry::{Host, Registry};
use brakelight_scenario::compare::Compare as One;
pub use brakelight_scenario::compare::Reverse;
use brakelight_scenario::outcome::Setup;
use brakelight_scenario::routers;
use brakelight_scenario::scenario::{Hop, Record, TraceOffset, default_bin};
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::embedded::EMBEDDED;
use brakelight_scenario::trace::names::Names;
use brakelight_scenario::trace::{OPPORTUNITY, conditions};
use brakelight_scenario::traffic::Traffic;
use brakelight_sim::Traces;

use crate::error::Error;
use crate::fairness;
use crate::jobs::{self, Compared, Job, JobOutcome};
use crate::progress::Progress;
use crate::runner::{Runner, Simulator};
use crate::schemes;
use crate::setup::{self, TraceSetup};
pub use crate::setup::{Buffer, Preset};
use crate::table::{Drawn, Table};
use crate::text;

/// A comparison: schemes, traces and setup. What is none is chosen by the [preset](Preset), for each trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// Mahimahi trace files, or names of traces; none stands for the embedded traces that are meant for
    /// comparisons.
    pub traces: Vec<String>,
    /// The schemes; none stands for [`schemes::defaults`] of the standard registry.
    pub schemes: Vec<Scheme>,
    /// The scheme of one competing flow at the same queue.
    pub against: Option<Scheme>,
    /// What the schemes' application does. A competitor is backlogged.
    pub traffic: Traffic,
    /// Propagation delay of the round trip.
    pub rtt: Duration,
    /// The bottleneck's buffer.
    pub buffer: Option<Buffer>,
    /// What limits the way back; a trace is a file or a name, as in `traces`.
    pub reverse: Option<Reverse>,
    /// Whether the opportunities of a trace's millisecond come one after another in it, not all at its end.
    pub spread: Option<bool>,
    /// Length of a run.
    pub duration: Option<Duration>,
    /// Runs of every scheme on every trace, each with a seed of its own; rows are medians, with intervals.
    pub runs: Option<u32>,
    /// The first seed.
    pub seed: u64,
    /// Where in its period a trace starts.
    pub trace_offset: Option<TraceOffset>,
    /// Where the settings come from that are none.
    pub preset: Preset,
    /// Whether to keep the time series of each row's first seed.
    pub series: bool,
    /// Whether to keep each link's log of each row's first seed.
    pub link_logs: bool,
}

impl Default for Compare {
    /// Every scheme on the embedded traces, round trips of 100 ms, and a setup that suits each trace.
    fn default() -> Self {
        Compare {
            traces: Vec::new(),
            schemes: Vec::new(),
            against: None,
            traffic: Traffic::Backlogged,
            rtt: Duration::from_millis(100),
            buffer: None,
            reverse: None,
            spread: None,
            duration: None,
            runs: None,
            seed: 1,
            trace_offset: None,
            preset: Preset::Suited,
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
    /// One per trace and scheme, the schemes of a trace together; then those of the competitor beside its own
    /// kind.
    jobs: Vec<Job>,
    /// For each row the place among the jobs of the competitor beside its own kind at the same queue; none
    /// without a competitor, or where that cannot be run.
    own_kind: Vec<Option<usize>>,
    traces: Traces,
    runs: u32,
    title: String,
    setting: Vec<(String, String)>,
    caveats: Vec<String>,
    notes: Vec<String>,
    /// The scheme that the others are held against, where there are others.
    reference: Option<String>,
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
        let reverse = setup::reverse(request);
        if let Reverse::Trace(name) = &reverse {
            traces.insert(name.clone(), names.load(name).map_err(Error::ReturnTrace)?);
        }
        let mut jobs = Vec::new();
        let mut caveats = Vec::new();
        let (mut setups, mut batches, mut coarse) = (Vec::new(), Vec::new(), Vec::new());
        for (name, label) in given.iter().zip(&labels) {
            let source = names.find(name)?;
            let trace = source.load()?;
            let setup = TraceSetup::new(request, &source, &trace);
            caveats.extend(shallow_buffer(label, &trace, setup.buffer, setup.rtt));
            batches.extend((!setup.spread).then(|| (label, conditions::batch(&trace))));
            coarse.extend(conditions::coarse(&trace).map(|resolution| format!("{label} {resolution}")));
            traces.insert(label.clone(), trace);
            let first = jobs.len();
            for scheme in &schemes {
                for contender in contenders(request, scheme, label) {
                    let job = job(request, &reverse, &contender, label, &setup)?;
                    // A router's second queue may be in the list by itself.
                    if !jobs[first..].iter().any(|other: &Job| other.label == job.label) {
                        jobs.push(job);
                    }
                }
            }
            setups.push((label.clone(), setup));
        }
        caveats.extend(millisecond_grid(&batches, &schemes));
        let told = |job: &Job| {
            let mut told = routers::misread_flows(&job.scenario);
            told.extend(routers::unmarked_flows(&job.scenario));
            told
        };
        for said in jobs.iter().flat_map(told) {
            if !caveats.contains(&said) {
                caveats.push(said);
            }
        }
        let reference = jobs.first().and_then(|job| Some(job.compared.as_ref()?.scheme.clone()));
        let several = jobs.len() > given.len();
        let own_kind = own_kind(request, &reverse, &mut jobs, &setups);
        let mut setting = setup::in_words(request, &setups);
        if let Some(against) = &request.against {
            setting.push(("against".to_string(), against.to_string()));
        }
        Ok(Plan {
            jobs,
            own_kind,
            runs: setup::runs(request),
            title: format!(
                "{} on {}",
                text::count(schemes.len(), "scheme", "schemes"),
                text::count(given.len(), "trace", "traces")
            ),
            setting,
            caveats,
            notes: notes(&schemes, request.against.as_ref(), &coarse),
            reference: reference.filter(|_| several),
            traces,
        })
    }

    /// Returns the first trace, and what results call it.
    pub(crate) fn first_trace(&self) -> (&str, &Trace) {
        let of = |job: &Job| job.compared.as_ref().map(|compared| compared.trace.clone());
        let label = self.jobs.first().and_then(of).unwrap_or_default();
        let (label, trace) = self.traces.get_key_value(&label).expect("a plan has a trace and a job");
        (label, trace)
    }

    /// Adds a row called `name`: the first row's flow, whose data pass `element` too, before the link or
    /// behind it.
    pub(crate) fn add_element(&mut self, name: &str, element: Hop, before: bool) -> Result<(), Error> {
        let mut job = self.jobs.first().expect("a plan has a job").clone();
        let path = &mut job.scenario.flows[0].path;
        path.insert(if before { 0 } else { path.len() }, element);
        job.scenario.name = name.to_string();
        job.scenario.validate().map_err(|invalid| invalid.of(name))?;
        job.label = name.to_string();
        if let Some(compared) = &mut job.compared {
            compared.scheme = name.to_string();
        }
        self.jobs.push(job);
        self.own_kind.push(None);
        Ok(())
    }

    /// Refuses a comparison that would take hours or fill the memory.
    pub fn check_cost(&self) -> Result<(), Error> {
        jobs::check_cost(&self.jobs, &self.traces)
    }

    /// Returns what it compares: one job per trace and scheme, the schemes of a trace together.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs[..self.own_kind.len()]
    }

    /// Returns the traces of its jobs, by the names that their scenarios have for them.
    pub fn traces(&self) -> &Traces {
        &self.traces
    }

    /// Runs it.
    pub fn run(&self, runner: &dyn Runner, progress: &dyn Progress) -> Result<Table, Error> {
        let ran = jobs::run("comparing", &self.jobs, self.runs, &self.traces, runner, progress)?;
        let mut results = ran.jobs;
        let own_kinds = results.split_off(self.own_kind.len());
        if self.jobs.iter().any(|job| job.scenario.flows.len() > 1) {
            results = self.judge(results, &own_kinds);
        }
        // The way back is not what the comparison is about.
        let drawn = Drawn { links: 1, paths: Vec::new() };
        let table = Table::of(results.into_iter().flatten().collect(), &drawn);
        let mut table = Table {
            title: self.title.clone(),
            setting: self.setting.clone(),
            caveats: self.caveats.clone(),
            notes: self.notes.clone(),
            reference: self.reference.clone(),
            failed: ran.failed,
            ..table
        };
        for run in &table.runs {
            let told =
                run.unreliable_because.iter().map(|why| format!("{} on {}: {why}", run.scheme, run.trace));
            table.caveats.extend(told);
        }
        table.hold_against_reference();
        Ok(table)
    }
}

impl Plan {
    /// Writes into every run what it did to its competitor.
    fn judge(
        &self,
        results: Vec<Option<JobOutcome>>,
        own_kinds: &[Option<JobOutcome>],
    ) -> Vec<Option<JobOutcome>> {
        let judged = results.into_iter().zip(&self.own_kind).map(|(result, own_kind)| {
            let JobOutcome { first, mut every, .. } = result?;
            let own_kind = own_kind.and_then(|place| own_kinds[place - self.own_kind.len()].as_ref());
            for run in &mut every {
                let of_seed = |own_kind: &&JobOutcome| {
                    own_kind.every.iter().find(|other| other.seed == run.seed).cloned()
                };
                let other = own_kind.as_ref().and_then(of_seed);
                fairness::judge(run, other.as_ref());
            }
            JobOutcome::of_runs(every, first)
        });
        judged.collect()
    }
}

/// What is compared for one scheme: two where another takes its place beside the competitor. Then both are.
fn contenders(request: &Compare, scheme: &Scheme, label: &str) -> impl Iterator<Item = Scheme> {
    let one = One { against: request.against.clone(), ..One::mahimahi(scheme.clone(), label) };
    one.beside_others().into_iter().chain([scheme.clone()])
}

/// Adds a job of the competitor beside its own kind for every queue and trace among `jobs`, and returns for
/// each of these which it is.
fn own_kind(
    request: &Compare,
    reverse: &Reverse,
    jobs: &mut Vec<Job>,
    setups: &[(String, TraceSetup)],
) -> Vec<Option<usize>> {
    let rows = jobs.len();
    let Some(against) = &request.against else { return vec![None; rows] };
    let mut known: Vec<(String, String, Option<usize>)> = Vec::new();
    let mut places = Vec::new();
    for row in 0..rows {
        let queue = jobs[row].scenario.links[0].queue.clone();
        let label = jobs[row].compared.as_ref().map_or_else(String::new, |compared| compared.trace.clone());
        let words = queue.words().to_string();
        if let Some((_, _, place)) = known.iter().find(|it| (&it.0, &it.1) == (&label, &words)) {
            places.push(*place);
            continue;
        }
        let (_, setup) = setups.iter().find(|it| it.0 == label).expect("every row's trace has a setup");
        // A competitor that cannot be alone at this queue has no own kind there.
        let place = job(request, reverse, &against.behind(queue), &label, setup).ok().map(|mut job| {
            // Nobody looks at it but through the rows.
            (job.scenario.record.series, job.scenario.record.link_logs) = (false, false);
            jobs.push(job);
            jobs.len() - 1
        });
        known.push((label, words, place));
        places.push(place);
    }
    places
}

/// All runs of one scheme on one trace.
fn job(
    request: &Compare,
    reverse: &Reverse,
    scheme: &Scheme,
    label: &str,
    setup: &TraceSetup,
) -> Result<Job, Error> {
    let compare = One {
        traffic: request.traffic.clone(),
        rtt: request.rtt,
        buffer: setup.buffer,
        reverse: reverse.clone(),
        spread: setup.spread,
        duration: setup.duration,
        seed: request.seed,
        trace_offset: setup.start.of(0, 1),
        against: request.against.clone(),
        as_given: true,
        record: Record {
            series: request.series,
            bin: default_bin(setup.duration).min(setup.duration),
            link_logs: request.link_logs,
            flow_delays: request.against.is_some(),
            second_half: true,
            ..Record::summary(setup.duration)
        },
        ..One::mahimahi(scheme.clone(), label)
    };
    Ok(Job {
        label: format!("{scheme} on {label}"),
        scenario: compare.scenario()?,
        compared: Some(Compared {
            scheme: scheme.to_string(),
            trace: label.to_string(),
            setup: Setup {
                rtt_ms: setup.rtt.as_millis_f64(),
                buffer: setup.buffer.to_string(),
                reverse: reverse.to_string(),
                trace_offset_s: None,
                against: request.against.as_ref().map(Scheme::to_string),
                spread: setup.spread,
            },
            deployment: scheme.deployment(),
            start: setup.start,
        }),
    })
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
fn notes(schemes: &[Scheme], against: Option<&Scheme>, coarse: &[String]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in schemes.iter().flat_map(|scheme| scheme.notes()) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    let modelled = |scheme: &&Scheme| scheme.controller().hosted().is_none();
    let quic: Vec<String> = schemes
        .iter()
        .filter(|scheme| modelled(scheme) && scheme.host() == Host::Quic)
        .map(|scheme| format!("`{scheme}`"))
        .collect();
    if !quic.is_empty() {
        notes.push(format!(
            "hosts: {} with the profile `quic` (RFC 9002), the other modeled ones with `tcp`",
            quic.join(", ")
        ));
    }
    for hosted in schemes.iter().chain(against).filter_map(|scheme| scheme.controller().hosted()) {
        let about = hosted.about();
        let host = hosted.name().split('/').next().unwrap_or_default();
        let note = format!("{host}: {}, version {}", about.summary, about.version);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    if let Some(against) = against {
        notes.push(format!(
            "one flow of each scheme shares the queue with one flow of `{against}`; throughput, utilization and delays are those of the scheme's flow"
        ));
        notes.push(format!(
            "harm: how much less throughput and more p95 delay the flow of `{against}` has than when it shares the queue with a second `{against}`"
        ));
    }
    if !coarse.is_empty() {
        notes.push(format!(
            "recorded in bins ({}): gaps, bursts and queues shorter than a bin were averaged away, so delays are lower than on the link",
            coarse.join(", ")
        ));
    }
    notes
}

/// Below this share of a path's bandwidth-delay product a buffer decides more than any scheme.
const SHALLOW: f64 = 0.5;

/// A remark on a buffer that is small for its trace.
fn shallow_buffer(label: &str, trace: &Trace, buffer: Limit, rtt: Duration) -> Option<String> {
    let product = trace.mean_rate(OPPORTUNITY).bytes_in(rtt).as_f64();
    let share = buffer.in_packets(OPPORTUNITY) * OPPORTUNITY.as_f64() / product;
    (share < SHALLOW).then(|| {
        format!(
            "{label}: a buffer of {buffer} is {share:.2} of the bandwidth-delay product; every loss-based scheme, and ABC's second window, starves; try --buffer 1BDP"
        )
    })
}

/// A remark on traces that hand out several packets in one millisecond, where a scheme of L4S is compared:
/// its router's thresholds lie below what that alone makes packets wait.
fn millisecond_grid(traces: &[(&String, f64)], schemes: &[Scheme]) -> Option<String> {
    let l4s = schemes.iter().filter(|scheme| scheme.encoding() == Encoding::L4s);
    let l4s: Vec<String> = l4s.map(|scheme| format!("`{scheme}`")).collect();
    let batches = traces.iter().filter(|(_, batch)| *batch > conditions::MOST_IN_A_MILLISECOND);
    let batches: Vec<String> = batches.map(|(label, batch)| format!("{label} {batch:.1}")).collect();
    (!l4s.is_empty() && !batches.is_empty()).then(|| {
        format!(
            "{} on traces in whole milliseconds: packets leave in batches (packets per busy millisecond: {}) and wait for the next one. What an L4S queue marked them for, this or a queue that stood, is what the lines below each table count; `--spread` removes the batches",
            l4s.join(", "),
            batches.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_by_their_names_unless_two_would_be_called_the_same() {
        let labels = |given: &[&str]| labels(&given.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(labels(&["a/x.up", "lte"]).unwrap(), ["x.up", "lte"]);
        assert_eq!(labels(&["a/x.up", "b/x.up", "c"]).unwrap(), ["a/x.up", "b/x.up", "c"]);
        assert!(labels(&["lte", "lte"]).unwrap_err().to_string().contains("`lte` is given twice"));
    }
}
