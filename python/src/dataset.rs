//! What senders saw and did in the arena's rounds, interval by interval: a table to learn from.
//!
//! ```text
//! row t     the observation of monitor interval t; the action that led to interval t + 1; its reward
//! action    log2(window at the end of interval t + 1 / window at the end of interval t), within [-1, 1]
//! ```
//!
//! The sender is watched, not steered: its packets are those that it sends without anybody watching.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brakelight::core::controller::{
    AckEvent, Connection, Controller, ControllerFailure, Decision, IdleEvent, LossEvent, Recovery,
    SendDirective, SendEvent, SpuriousEvent, Stage, TimeoutEvent,
};
use brakelight::core::ecn::Encoding;
use brakelight::core::registry::{ControllerConfig, ControllerFactory, DynController, Needs, Registry};
use brakelight::core::time::{Duration, Time};
use brakelight::core::units::{Bytes, Rate};
use brakelight::lab::arena::Plan;
use brakelight::lab::frame::parquet::Writer;
use brakelight::lab::frame::{Column, Frame, Values};
use brakelight::lab::{Error, Progress};
use brakelight::scenario::identity::{MODELLED, RunId};
use brakelight::scenario::measure::describe_service;
use brakelight::scenario::scenario::Scenario;
use brakelight::scenario::scheme_string::{SchemeString, Words};
use brakelight::sim::{Simulation, Traces};
use brakelight_learn::interval::{Counters, FIRST_RTT, Interval, Span};
use brakelight_learn::monitor::{Limits, Specification};
use brakelight_learn::preset::{Memory, Preset};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::arena::{candidate, known, level};
use crate::error::{failed, of_lab};
use crate::registry::{Algorithms, interned};
use crate::work::{Watch, watched};

/// Whose observations and rewards the table has.
const PRESET: Preset = Preset::Default;

/// The numbers of an observation, in the preset's order.
const OBSERVED: [&str; 8] = [
    "observation_rtt_ratio",
    "observation_rtt_gradient",
    "observation_send_ratio",
    "observation_throughput_share",
    "observation_loss",
    "observation_window_share",
    "observation_inflight_share",
    "observation_interval_rtts",
];

/// The actions that the preset has.
const ACTIONS: (f64, f64) = (-1.0, 1.0);

/// The sender that every set has the identity of: that of the arena's baseline.
const BASELINE: &str = "cubic";

/// Simulated time between two looks at whether to stop.
const STEP: Duration = Duration::from_secs(1);

/// One monitor interval of a flow that was watched.
#[derive(Clone, Debug)]
struct Measured {
    span: Span,
    interval: Interval,
    memory: Memory,
    observation: [f32; 8],
    pacing_mbps: Option<f64>,
}

/// The intervals of one flow.
type Log = Arc<Mutex<Vec<Measured>>>;

fn held(log: &Log) -> MutexGuard<'_, Vec<Measured>> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A controller that is watched.
#[derive(Clone, Debug)]
struct Watched {
    inner: Box<dyn DynController>,
    specification: Arc<Specification>,
    log: Log,
    mss: Bytes,
    span: Span,
    counted: Counters,
    at_begin: Counters,
    /// None before the middle.
    at_middle: Option<Counters>,
    memory: Memory,
}

impl Watched {
    fn new(
        inner: Box<dyn DynController>,
        specification: Arc<Specification>,
        log: Log,
        connection: &Connection,
    ) -> Self {
        let begin = connection.now;
        let end = begin + specification.interval(FIRST_RTT.as_secs_f64());
        Watched {
            inner,
            specification,
            log,
            mss: connection.mss,
            span: Span { begin, end },
            counted: Counters::default(),
            at_begin: Counters::default(),
            at_middle: None,
            memory: Memory::default(),
        }
    }

    /// Measures the intervals that were over before `now`, before what happens now is counted. Nothing
    /// happened at their ends: what was counted last is what was counted then.
    fn pass(&mut self, now: Time) {
        while now > self.span.end {
            let middle = self.at_middle.unwrap_or(self.counted);
            let counters = [&self.at_begin, &middle, &self.counted];
            let interval = Interval::between(&self.span, counters, self.inner.cwnd(), self.mss);
            let mut observation = [0.0; 8];
            PRESET.observe(&interval, &mut self.memory, &mut observation);
            held(&self.log).push(Measured {
                span: self.span,
                interval,
                memory: self.memory,
                observation,
                pacing_mbps: self.inner.pacing_rate().map(Rate::as_mbps_f64),
            });
            let begin = self.span.end;
            self.span = Span { begin, end: begin + self.specification.interval(interval.rtt_s) };
            self.at_begin = self.counted;
            self.at_middle = None;
        }
        if self.at_middle.is_none() && now > self.span.middle() {
            self.at_middle = Some(self.counted);
        }
    }
}

impl Controller for Watched {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        self.pass(event.now);
        self.counted.on_send(event);
        self.inner.on_send(event)
    }

    fn decides_on_send(&self) -> bool {
        self.inner.decides_on_send()
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.pass(event.now);
        self.counted.on_ack(event);
        self.inner.on_ack(event);
    }

    fn on_loss(&mut self, event: &LossEvent) {
        self.pass(event.now);
        self.inner.on_loss(event);
    }

    fn on_ce(&mut self, event: &LossEvent) {
        self.pass(event.now);
        self.inner.on_ce(event);
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        self.pass(event.now);
        self.inner.on_timeout(event);
    }

    fn on_spurious_loss(&mut self, event: &SpuriousEvent) {
        self.pass(event.now);
        self.inner.on_spurious_loss(event);
    }

    fn on_recovery_exit(&mut self, now: Time) {
        self.pass(now);
        self.inner.on_recovery_exit(now);
    }

    fn on_idle_restart(&mut self, event: &IdleEvent) {
        self.pass(event.now);
        self.inner.on_idle_restart(event);
    }

    fn cap_cwnd(&mut self, most: Bytes) {
        self.inner.cap_cwnd(most);
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
        self.inner.on_mtu_change(mss);
    }

    fn on_timer(&mut self, now: Time) {
        self.pass(now);
        self.inner.on_timer(now);
    }

    fn next_timer(&self) -> Option<Time> {
        self.inner.next_timer()
    }

    fn cwnd(&self) -> Bytes {
        self.inner.cwnd()
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.inner.ssthresh()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.inner.pacing_rate()
    }

    fn media_rate(&self) -> Option<Rate> {
        self.inner.media_rate()
    }

    fn send_quantum(&self) -> Option<Bytes> {
        self.inner.send_quantum()
    }

    fn decision(&self) -> Decision {
        self.inner.decision()
    }

    fn recovery(&self) -> Recovery {
        self.inner.recovery()
    }

    fn encoding(&self) -> Encoding {
        self.inner.encoding()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.inner.inspect(visit);
    }

    fn stage(&self) -> Option<Stage> {
        self.inner.stage()
    }

    fn failure(&self) -> Option<&ControllerFailure> {
        self.inner.failure()
    }
}

/// Builds the controllers of one kind of flow, watched.
#[derive(Debug)]
struct Watching {
    inner: ControllerConfig,
    specification: Arc<Specification>,
    /// Of each of its flows: when it starts, and where its intervals go.
    flows: Vec<(Time, Log)>,
}

impl ControllerFactory for Watching {
    fn needs(&self) -> Needs {
        self.inner.needs()
    }

    fn build(&self, connection: &Connection) -> Box<dyn DynController> {
        let inner: Box<dyn DynController> = Box::new(self.inner.build(connection));
        // A registry builds one to look at, which belongs to no flow.
        let flow = self.flows.iter().find(|(start, _)| *start == connection.now);
        let log = flow.map(|(_, log)| Arc::clone(log)).unwrap_or_default();
        Box::new(Watched::new(inner, Arc::clone(&self.specification), log, connection))
    }
}

/// What is observed: a monitor interval is a round trip long, and 10 ms at least.
fn specification() -> Specification {
    let limits = Limits { least_bps: 1e4, most_bps: 1e10, most_cwnd: 1e8 };
    Specification { preset: PRESET, interval_rtts: Some(1.0), interval_ms: 10.0, history: 1, limits }
}

/// One flow of one round.
struct Episode {
    round: usize,
    flow: String,
    seed: u64,
    rtt_ms: f64,
    steps: Vec<Step>,
}

/// One monitor interval, and what was done after it.
struct Step {
    measured: Measured,
    capacity_mbps: f64,
    /// The action and its reward; none after the last interval but one.
    done: Option<(f64, f64)>,
}

/// Runs a round with its candidate watched, and returns an episode for each of the candidate's flows.
fn watch_round(
    registry: &Registry,
    round: usize,
    scenario: &Scenario,
    traces: &Traces,
    name: &'static str,
    watch: &Watch,
) -> Result<Vec<Episode>, Error> {
    let said = |error: &dyn std::fmt::Display| Error::Arena(format!("{}: {error}", scenario.name));
    let spec = &scenario.flows[0];
    let start = |flow| Time::ZERO + spec.drawn_start(scenario.seed, flow);
    let flows: Vec<(Time, Log)> = (0..spec.count).map(|flow| (start(flow), Log::default())).collect();
    let watching = Watching {
        inner: spec.controller.config().clone(),
        specification: Arc::new(specification()),
        flows: flows.clone(),
    };
    let mut registry = registry.clone();
    let added = registry.add_controller_factory(name, "A controller that is watched", Arc::new(watching));
    added.map_err(|error| said(&error))?;
    let mut watched = scenario.clone();
    watched.flows[0].controller =
        SchemeString::from_words_with(&registry, Words { name: name.into(), options: Vec::new() })
            .map_err(|error| said(&error))?;
    let mut run = Simulation::new(&watched, traces).map_err(|error| said(&error))?;
    while run.now() < run.end() {
        if watch.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let some = (run.now() + STEP).min(run.end());
        run.advance(some);
    }
    if let Some(failure) = run.failure() {
        return Err(said(&failure));
    }
    let rtt_s = spec.rtt.as_secs_f64();
    let episodes = flows.iter().enumerate().map(|(number, (_, log))| {
        let measured = std::mem::take(&mut *held(log));
        let capacities: Vec<f64> = measured
            .iter()
            .map(|own| {
                let bytes = run.capacity_between(0, own.span.begin, own.span.end).unwrap_or_default();
                Rate::over(bytes, own.span.end.since(own.span.begin)).as_mbps_f64()
            })
            .collect();
        let windows: Vec<f64> = measured.iter().map(|own| own.interval.cwnd).collect();
        let rewards: Vec<f64> = measured
            .iter()
            .zip(&capacities)
            .map(|(own, capacity)| PRESET.reward(&own.interval, &own.memory, *capacity, rtt_s).total())
            .collect();
        let done = |place: usize| {
            let (before, after) = (windows.get(place)?, windows.get(place + 1)?);
            let action = (after / before).log2().clamp(ACTIONS.0, ACTIONS.1);
            Some((action, *rewards.get(place + 1)?))
        };
        let steps = measured.into_iter().zip(&capacities).enumerate();
        Episode {
            round,
            flow: spec.name_of(number as u32),
            seed: scenario.seed,
            rtt_ms: spec.rtt.as_millis_f64(),
            steps: steps
                .map(|(place, (measured, capacity))| Step {
                    measured,
                    capacity_mbps: *capacity,
                    done: done(place),
                })
                .collect(),
        }
    });
    Ok(episodes.collect())
}

/// Returns the rows of these episodes of `controller` in `rounds`. The first episode has the number `first`.
fn rows(controller: &str, rounds: &[Scenario], first: u64, episodes: &[Episode]) -> Result<Frame, Error> {
    let each: Vec<(u64, usize, &Episode, &Step)> = (first..)
        .zip(episodes)
        .flat_map(|(number, episode)| {
            let steps = episode.steps.iter().enumerate();
            steps.map(move |(step, own)| (number, step, episode, own))
        })
        .collect();
    type Row<'a> = (u64, usize, &'a Episode, &'a Step);
    let text = |name: &str, value: &dyn Fn(&Row<'_>) -> String| Column {
        name: name.into(),
        values: Values::Text(each.iter().map(value).collect()),
    };
    let count = |name: &str, value: &dyn Fn(&Row<'_>) -> u64| Column {
        name: name.into(),
        values: Values::Count(each.iter().map(value).collect()),
    };
    let number = |name: &str, value: &dyn Fn(&Row<'_>) -> Option<f64>| Column {
        name: name.into(),
        values: Values::Number(each.iter().map(value).collect()),
    };
    let flag = |name: &str, value: &dyn Fn(&Row<'_>) -> bool| Column {
        name: name.into(),
        values: Values::Flag(each.iter().map(value).collect()),
    };
    let of_interval = |name: &str, value: fn(&Interval) -> f64| {
        number(name, &|(_, _, _, own)| Some(value(&own.measured.interval)))
    };
    let mut columns = vec![
        count("episode", &|(number, ..)| *number),
        count("step", &|(_, step, ..)| *step as u64),
        count("round", &|(_, _, episode, _)| episode.round as u64 + 1),
        text("link", &|(_, _, episode, _)| describe_service(&rounds[episode.round].links[0].service)),
        text("beside", &|(_, _, episode, _)| {
            let others = rounds[episode.round].flows[1..].iter();
            others.map(|flow| flow.controller.words().to_string()).collect::<Vec<_>>().join(", ")
        }),
        text("flow", &|(_, _, episode, _)| episode.flow.clone()),
        text("controller", &|_| controller.to_string()),
        count("seed", &|(_, _, episode, _)| episode.seed),
        number("propagation_rtt_ms", &|(_, _, episode, _)| Some(episode.rtt_ms)),
        number("time_s", &|(_, _, _, own)| Some(own.measured.span.end.since(Time::ZERO).as_secs_f64())),
    ];
    for (place, name) in OBSERVED.iter().enumerate() {
        columns.push(number(name, &|(_, _, _, own)| Some(f64::from(own.measured.observation[place]))));
    }
    columns.extend([
        number("action", &|(_, _, _, own)| own.done.map(|(action, _)| action)),
        number("reward", &|(_, _, _, own)| own.done.map(|(_, reward)| reward)),
        flag("terminated", &|_| false),
        flag("truncated", &|(_, step, episode, _)| step + 2 == episode.steps.len()),
        of_interval("interval_ms", |own| own.length_s * 1e3),
        of_interval("throughput_mbps", Interval::throughput_mbps),
        number("capacity_mbps", &|(_, _, _, own)| Some(own.capacity_mbps)),
        of_interval("rtt_ms", |own| own.rtt_s * 1e3),
        of_interval("loss", Interval::loss),
        of_interval("sent_packets", |own| own.sent),
        of_interval("delivered_packets", |own| own.delivered),
        of_interval("lost_packets", |own| own.lost),
        of_interval("cwnd_bytes", |own| own.cwnd),
        number("pacing_mbps", &|(_, _, _, own)| own.measured.pacing_mbps),
    ]);
    Frame::new(columns)
}

/// What was written: rows, episodes, and the identity of the set.
type Written = (u64, u64, String);

/// Writes what each of `controllers` saw and did in the first `rounds` rounds of a known set.
#[pyfunction]
#[pyo3(signature = (path, controllers, set, level, rounds, progress))]
pub fn arena_dataset(
    py: Python<'_>,
    path: PathBuf,
    controllers: Vec<(String, Option<String>)>,
    set: &str,
    level: &str,
    rounds: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Written> {
    let algorithms = Algorithms::current();
    let entered = controllers.into_iter().map(|(text, digest)| candidate(&algorithms, &text, digest));
    let mut entered = entered.collect::<PyResult<Vec<_>>>()?;
    let names: Vec<String> = entered.iter().map(|own| own.scheme.to_string()).collect();
    // The rounds have the identity that the arena gives them.
    let baseline = candidate(&algorithms, BASELINE, None)?;
    let base = names.iter().position(|name| *name == baseline.scheme.to_string()).unwrap_or(names.len());
    if base == names.len() {
        entered.push(baseline);
    }
    let plan = Plan::new(&algorithms.registry, &known(set), self::level(level), entered).map_err(of_lab)?;
    let (scenarios, traces) = plan.scenarios(base);
    let ids = scenarios.iter().map(|scenario| Some(RunId::of(scenario, traces, MODELLED)));
    let set_id = RunId::of_set(ids).map_or_else(String::new, |id| id.to_string());
    let rounds = rounds.min(scenarios.len());
    let name = interned(py, "watched");
    let about = [
        ("brakelight.table", "arena-steps".to_string()),
        ("brakelight.set", set.to_string()),
        ("brakelight.set_id", set_id.clone()),
        ("brakelight.level", level.to_string()),
        ("brakelight.controllers", serde_json::to_string(&names).map_err(failed)?),
        ("brakelight.specification", serde_json::to_string(&specification()).map_err(failed)?),
    ];
    let registry = &algorithms.registry;
    let (rows_of, episodes) = watched(py, progress, &algorithms.failures, |watch| {
        watch.begin("watching", names.len() * rounds);
        let mut written: Option<Writer<File>> = None;
        let (mut rows_of, mut episodes) = (0, 0);
        // The rows of one controller at a time are in memory, and are a row group.
        for (place, controller) in names.iter().enumerate() {
            let (scenarios, traces) = plan.scenarios(place);
            let scenarios = &scenarios[..rounds];
            let each = scenarios.par_iter().enumerate().map(|(round, scenario)| {
                let episodes = watch_round(registry, round, scenario, traces, name, watch)?;
                watch.step(&format!("{controller} in {}", scenario.name));
                Ok(episodes)
            });
            let all: Vec<Episode> = each.collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect();
            let frame = rows(controller, scenarios, episodes, &all)?;
            let writer = match &mut written {
                Some(writer) => writer,
                None => {
                    let file = File::create(&path).map_err(|error| {
                        Error::Failed(format!("{} cannot be written: {error}", path.display()))
                    })?;
                    written.insert(Writer::about(file, &frame, &about)?)
                }
            };
            writer.write(&frame)?;
            rows_of += frame.rows() as u64;
            episodes += all.len() as u64;
        }
        if let Some(writer) = written {
            writer.finish()?;
        }
        Ok((rows_of, episodes))
    })?;
    Ok((rows_of, episodes, set_id))
}
