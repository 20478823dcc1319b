//! Reading an experiment's file and laying out its matrix.

use std::collections::BTreeMap;
use std::str::FromStr;

use brakelight_apps::phases::{self, MOST_PHASES};
use brakelight_core::controller::{Connection, Controller};
use brakelight_core::random::Random;
use brakelight_core::time::Time;
use brakelight_core::units::{Bytes, ParseError};
use brakelight_registry::Registry;
use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};

use super::table::{Dimension, LISTS, Point, Table as Measurements};
use super::tables::{ClaimTable, ExperimentTable, Filled, Label, Paired, Pairs};
use super::{Argument, Assertion, Check, Experiment, Expression, Job};
use crate::buffer::Buffer;
use crate::compare::Compare;
use crate::document::{Document, Node, Reason, Refusal};
use crate::file::values::{Text, Textual};
use crate::input::DOCUMENT;
use crate::outcome::{FlowOutcome, LinkOutcome, Run, SignalDelay, Summary};
use crate::problem::{InputError, Problem};
use crate::scenario::{FlowSpec, Record, Scenario, TraceOffset};
use crate::scheme::Scheme;
use crate::traffic::Traffic;

/// The most runs of one experiment.
const JOBS: usize = 100_000;
/// The most links and flows of all runs of one experiment together, which take about a kilobyte each.
const PARTS: usize = 1_000_000;
/// The rules' number of seeds.
const SEEDS: u64 = 10;

/// Returns the experiment in `text` with algorithms that Brakelight brings; `file` is for messages. Every
/// check is tried on a table with the shape of the measurements to come, so that a name that refers to
/// nothing is found here.
///
/// # Errors
/// What is wrong first, with file, line, key, value and what would be valid.
pub fn read(file: &str, text: &str) -> Result<Experiment, InputError> {
    read_with(&Registry::standard(), file, text)
}

/// Returns the experiment in `text`, as [`read`] reads it, with algorithms of `registry`.
///
/// # Errors
/// As [`read`].
pub fn read_with(registry: &Registry, file: &str, text: &str) -> Result<Experiment, InputError> {
    resolve(registry, &Document::parse(file, text)?)
}

/// Returns the experiment that `deserializer` holds, with the words of experiment files and algorithms of
/// `registry`: [`Experiment`]'s own `Deserialize` knows those that Brakelight brings.
///
/// # Errors
/// Those of the deserializer, and what is wrong with the experiment in the words of [`read`], without file
/// and line.
pub fn deserialize_with<'de, D: Deserializer<'de>>(
    registry: &Registry,
    deserializer: D,
) -> Result<Experiment, D::Error> {
    resolve(registry, &Document::of(Node::deserialize(deserializer)?)).map_err(D::Error::custom)
}

/// By the words of experiment files, with algorithms that Brakelight brings.
impl<'de> Deserialize<'de> for Experiment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_with(&Registry::standard(), deserializer)
    }
}

/// As the file that it was read from says it, whatever its jobs and claims are now.
impl Serialize for Experiment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.table.serialize(serializer)
    }
}

fn resolve(registry: &Registry, document: &Document<'_>) -> Result<Experiment, InputError> {
    let table = document.read::<ExperimentTable>();
    table.and_then(|table| experiment(registry, table)).map_err(|refusal| document.error(refusal))
}

fn experiment(registry: &Registry, table: ExperimentTable) -> Result<Experiment, Refusal> {
    let plan = Plan::new(registry, &table)?;
    let (dimensions, jobs) = plan.lay_out()?;
    let mut experiment = Experiment {
        id: required(table.id.as_ref(), "id")?,
        title: required(table.title.as_ref(), "title")?,
        source: required(table.source.as_ref(), "source")?,
        note: optional(table.note.as_ref()),
        rule: optional(table.rule.as_ref()),
        dimensions,
        jobs,
        claims: Vec::new(),
        table: ExperimentTable::default(),
    };
    let claims = table.claim.as_ref().ok_or_else(|| Refusal::missing("claim", "at least one [[claim]]"))?;
    let template = template(&experiment);
    let ours = table.ours.unwrap_or(false);
    for (index, claim) in claims.0.iter().enumerate() {
        let read = assertion(&experiment.id, ours, &template, claim);
        experiment.claims.push(read.map_err(|refusal| refusal.at(index).under("claim"))?);
    }
    experiment.table = table;
    Ok(experiment)
}

/// The string of `key`, which must be there.
fn required<T: Textual>(text: Option<&Text<T>>, key: &str) -> Result<String, Refusal> {
    text.map(|text| text.0.show()).ok_or_else(|| Refusal::missing(key, &T::expected()))
}

fn optional<T: Textual>(text: Option<&Text<T>>) -> String {
    text.map_or(String::new(), |text| text.0.show())
}

/// A contradiction that no single key is to blame for.
fn contradiction(key: impl Into<String>, reason: String) -> Refusal {
    Refusal::new(Reason::Other(Problem::Contradiction { key: key.into(), reason }))
}

/// What the file says of the matrix.
struct Plan<'a> {
    registry: &'a Registry,
    table: &'a ExperimentTable,
    /// Labels and spellings.
    schemes: Vec<(String, String)>,
    traces: Vec<String>,
    seeds: u64,
    /// Names and values.
    sweep: Vec<(String, Vec<String>)>,
    /// The label of each case, and the names and values it stands for.
    cases: Vec<(String, Vec<(String, String)>)>,
}

impl<'a> Plan<'a> {
    fn new(registry: &'a Registry, table: &'a ExperimentTable) -> Result<Self, Refusal> {
        if table.scenario.is_some() {
            let extra = [
                ("rtt", table.rtt.is_some()),
                ("buffer", table.buffer.is_some()),
                ("duration", table.duration.is_some()),
                ("trace_offset", table.trace_offset.is_some()),
                ("against", table.against.is_some()),
            ];
            if let Some((key, _)) = extra.iter().find(|(_, there)| *there) {
                return Err(Refusal::contradiction(key, "the scenario says this: leave one out"));
            }
        }
        let traces = table.traces.iter().flat_map(|list| &list.0);
        let sweep = table.sweep.iter().flat_map(|pairs| &pairs.0);
        let cases = table.case.iter().flat_map(|list| &list.0).enumerate();
        Ok(Plan {
            registry,
            table,
            schemes: table.schemes.as_ref().map_or(Vec::new(), |schemes| schemes.labelled()),
            traces: traces.map(|trace| trace.0.show()).collect(),
            seeds: table.seeds.unwrap_or(SEEDS),
            sweep: sweep
                .map(|(name, labels)| {
                    (name.clone(), labels.0.0.iter().map(|label| label.0.clone()).collect())
                })
                .collect(),
            cases: cases
                .map(|(index, values)| case(values).map_err(|refusal| refusal.at(index).under("case")))
                .collect::<Result<_, _>>()?,
        })
    }

    /// The dimensions, and a job for every point and seed.
    fn lay_out(&self) -> Result<(Vec<Dimension>, Vec<Job>), Refusal> {
        let dimensions = self.dimensions()?;
        if self.table.scenario.is_none() && (self.schemes.is_empty() || self.traces.is_empty()) {
            // A file of checks of the program's own runs nothing.
            return match (self.schemes.is_empty(), self.traces.is_empty(), dimensions.is_empty()) {
                (true, true, true) => Ok((dimensions, Vec::new())),
                (false, _, _) => Err(Refusal::missing("traces", "the traces to run on, or a `scenario`")),
                _ => Err(Refusal::missing("schemes", "the schemes to run, or a `scenario`")),
            };
        }
        let sizes: Vec<usize> = dimensions.iter().map(|dimension| dimension.labels.len()).collect();
        let points = sizes.iter().try_fold(1_usize, |product, size| product.checked_mul(*size));
        let runs = points.and_then(|points| points.checked_mul(usize::try_from(self.seeds).ok()?));
        if !runs.is_some_and(|runs| (1..=JOBS).contains(&runs)) {
            let reason = format!("the matrix has {} runs: valid are 1 to {JOBS}", runs.unwrap_or(usize::MAX));
            return Err(contradiction("seeds", reason));
        }
        let mut jobs = Vec::new();
        let mut parts = 0;
        for point in points_of(&sizes) {
            let values = self.values(&dimensions, &point);
            for seed in 1..=self.seeds {
                let (scenario, buffer) = self.scenario(&values, seed)?;
                parts += scenario.links.len() + scenario.flows.len();
                if parts > PARTS {
                    let reason = format!(
                        "all its runs together have more than {PARTS} links and flows, the most that they may have"
                    );
                    return Err(contradiction("seeds", reason));
                }
                jobs.push(Job { point: point.clone(), scenario, buffer });
            }
        }
        Ok((dimensions, jobs))
    }

    fn dimensions(&self) -> Result<Vec<Dimension>, Refusal> {
        let list = [
            ("scheme", self.schemes.iter().map(|(label, _)| label.clone()).collect::<Vec<_>>()),
            ("trace", self.traces.clone()),
            ("case", self.cases.iter().map(|(label, _)| label.clone()).collect()),
        ];
        let list = list.into_iter().map(|(name, labels)| (name.to_string(), labels));
        let mut dimensions: Vec<Dimension> = Vec::new();
        for (name, labels) in list.chain(self.sweep.iter().cloned()) {
            if labels.is_empty() {
                continue;
            }
            let taken = dimensions.iter().any(|dimension| dimension.name == name);
            if taken || LISTS.contains(&name.as_str()) {
                let reason = format!("`{name}` is the name of another dimension: choose another");
                return Err(contradiction("sweep", reason));
            }
            if let Some(twice) =
                labels.iter().enumerate().find(|(index, label)| labels[..*index].contains(label))
            {
                let reason = format!("`{}` is given twice", twice.1);
                return Err(contradiction(name, reason));
            }
            dimensions.push(Dimension { name, labels });
        }
        Ok(dimensions)
    }

    /// What every placeholder stands for at `point`.
    fn values(&self, dimensions: &[Dimension], point: &Point) -> Vec<(String, String)> {
        let mut values = Vec::new();
        for (dimension, &index) in dimensions.iter().zip(point) {
            if dimension.name == "case" {
                values.extend(self.cases[index].1.iter().cloned());
            }
            let value = match dimension.name.as_str() {
                "scheme" => &self.schemes[index].1,
                _ => &dimension.labels[index],
            };
            values.push((dimension.name.clone(), value.clone()));
        }
        values
    }

    /// The scenario at a point, given what its placeholders stand for, and its buffer where that depends on
    /// the trace.
    fn scenario(
        &self,
        values: &[(String, String)],
        seed: u64,
    ) -> Result<(Scenario, Option<Buffer>), Refusal> {
        let value =
            |name: &str| values.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
        let place = || {
            let shown = values.iter().map(|(name, value)| format!("{name} {value}"));
            shown.collect::<Vec<_>>().join(", ")
        };
        let refuse = |error: InputError| Refusal::new(Reason::Other(*error.problem)).owned_by(place());
        let read_scheme = |text: &str, key: &str| {
            let text = fill(text, values, key)?;
            Scheme::parse_with(self.registry, &text).map_err(|error| refuse(error).under(key))
        };
        let scheme = match (value("scheme"), &self.table.schemes) {
            (Some(text), Some(_)) => Some(read_scheme(text, "schemes")?),
            _ => None,
        };
        let Some(text) = &self.table.scenario else {
            let scheme = scheme.expect("without a scenario there are schemes");
            let mut compare = Compare::mahimahi(scheme, value("trace").unwrap_or_default());
            compare.seed = seed;
            compare.rtt = filled(self.table.rtt.as_ref(), "rtt", values, compare.rtt)?;
            let mut products = None;
            match self.table.buffer.as_ref().map(|given| buffer(&given.text, values)).transpose()? {
                None => {}
                Some(Buffer::Limit(limit)) => compare.buffer = limit,
                Some(given) => products = Some(given),
            }
            compare.duration = filled(self.table.duration.as_ref(), "duration", values, compare.duration)?;
            compare.record = Record::summary(compare.duration);
            if let Some(Text(offset)) = &self.table.trace_offset {
                compare.trace_offset = match offset.0.as_str() {
                    "random" => TraceOffset::Random,
                    text => TraceOffset::At(quantity(text, "trace_offset", values)?),
                };
            }
            if let Some(Text(against)) = &self.table.against {
                compare.against = Some(read_scheme(&against.0, "against")?);
            }
            return compare.scenario().map(|scenario| (scenario, products)).map_err(refuse);
        };
        let mut values = values.to_vec();
        if let Some(scheme) = &scheme {
            values.push(("controller".to_string(), scheme.controller().words().to_string()));
            values.push(("feedback".to_string(), scheme.feedback().words().to_string()));
            values.push(("queue".to_string(), scheme.queue().words().to_string()));
        }
        // Twice: what a case stands for may hold placeholders of its own.
        let text = fill(&text.0.0, &values, "scenario")?;
        let text = fill(&text, &values, "scenario")?;
        let mut scenario = crate::file::read_with(self.registry, "scenario", &text).map_err(|error| {
            let line = error.line.map_or(String::new(), |line| format!("line {line}, "));
            let owner = match error.owner.as_str() {
                "" => String::new(),
                owner => format!("{owner}, "),
            };
            let owner = format!("{line}{owner}{}", place());
            Refusal::new(Reason::Other(*error.problem)).under("scenario").owned_by(owner)
        })?;
        scenario.seed = seed;
        Ok((scenario, None))
    }
}

/// The label of a case, and the names and values it stands for.
fn case(pairs: &Pairs<Label>) -> Result<(String, Vec<(String, String)>), Refusal> {
    let mut values: Vec<_> = pairs.0.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect();
    match values.iter().position(|(name, _)| name == "case") {
        Some(index) => Ok((values.remove(index).1, values)),
        None => Err(Refusal::malformed(<Label as Paired>::TABLE)),
    }
}

/// All points of a matrix of these sizes, the last coordinate fastest.
fn points_of(sizes: &[usize]) -> Vec<Point> {
    sizes.iter().fold(vec![Point::new()], |points, size| {
        let extend =
            |point: Point| (0..*size).map(move |index| point.iter().copied().chain([index]).collect());
        points.into_iter().flat_map(extend).collect()
    })
}

/// `text` with every `{name}` replaced by what it stands for. Braces around anything but a lower-case name
/// stay.
fn fill(text: &str, values: &[(String, String)], key: &str) -> Result<String, Refusal> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, after) = rest.split_at(open);
        filled.push_str(before);
        let name = after[1..].split('}').next().unwrap_or_default();
        let closed = after[1..].len() > name.len();
        let placeholder = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if !closed || name.is_empty() || !name.chars().all(placeholder) {
            filled.push('{');
            rest = &after[1..];
            continue;
        }
        let Some((_, value)) = values.iter().find(|(other, _)| other == name) else {
            let valid = values.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
            let problem = Problem::UnknownName {
                key: key.to_string(),
                what: "placeholder".to_string(),
                name: name.to_string(),
                valid: if valid.is_empty() { "none".to_string() } else { valid },
            };
            return Err(Refusal::new(Reason::Other(problem)).under(key));
        };
        filled.push_str(value);
        rest = &after[name.len() + 2..];
        if filled.len() + rest.len() > DOCUMENT.0 as usize {
            let reason = format!(
                "with its placeholders filled it is longer than {DOCUMENT}, the most that it may hold"
            );
            return Err(Refusal::contradiction(key, reason));
        }
    }
    Ok(filled + rest)
}

/// The quantity of `key` with its placeholders filled, or `default`.
fn filled<T: FromStr<Err = ParseError>>(
    given: Option<&Filled<T>>,
    key: &str,
    values: &[(String, String)],
    default: T,
) -> Result<T, Refusal> {
    given.map_or(Ok(default), |given| quantity(&given.text, key, values))
}

/// A buffer with its placeholders filled.
fn buffer(text: &str, values: &[(String, String)]) -> Result<Buffer, Refusal> {
    if Buffer::products_of(&fill(text, values, "buffer")?).is_none() {
        return quantity(text, "buffer", values).map(Buffer::Limit);
    }
    fill(text, values, "buffer")?.parse().map_err(|reason| Refusal::contradiction("buffer", reason))
}

fn quantity<T: FromStr<Err = ParseError>>(
    text: &str,
    key: &str,
    values: &[(String, String)],
) -> Result<T, Refusal> {
    fill(text, values, key)?
        .parse()
        .map_err(|error: ParseError| Refusal::malformed(error.expected).under(key))
}

fn assertion(
    id: &str,
    ours: bool,
    template: &Measurements,
    table: &ClaimTable,
) -> Result<Assertion, Refusal> {
    let expression = |text: &str, key: &str| {
        Expression::parse(text).map_err(|error| Refusal::contradiction(key, format!("`{text}`: {error}")))
    };
    let check = required(table.check.as_ref(), "check")?;
    let show = table.show.as_ref().map(|show| expression(&show.0.0, "show")).transpose()?;
    let note = optional(table.note.as_ref());
    let checked = if check == "not-checkable" {
        if note.is_empty() {
            return Err(Refusal::missing("note", "why it cannot be checked"));
        }
        Check::NotCheckable
    } else if let Some(name) = check.strip_prefix("builtin:") {
        Check::Builtin(name.trim().to_string())
    } else {
        let parsed = expression(&check, "check")?;
        // Whether names refer to something shows on the template; whether the check holds does not matter
        // there.
        let tried = parsed.check(template).map(|_| ()).and_then(|()| parsed.measured(template).map(|_| ()));
        tried.map_err(|error| Refusal::contradiction("check", format!("`{check}`: {error}")))?;
        Check::Expression { check: parsed, show: show.clone() }
    };
    if let Some(show) = &show {
        show.evaluate(template)
            .map_err(|error| Refusal::contradiction("show", format!("`{}`: {error}", show.text())))?;
    }
    Ok(Assertion {
        id: table.id.as_ref().map_or_else(|| id.to_string(), |id| id.0.show()),
        claim: required(table.claim.as_ref(), "claim")?,
        paper: optional(table.paper.as_ref()),
        note,
        check: checked,
        ours: table.ours.unwrap_or(ours),
        recordings: table.recordings.unwrap_or(false),
        refuted: table.refuted.as_ref().map(|text| argument(&text.0.show())).transpose()?,
    })
}

/// An argument that needs no measurement.
fn argument(text: &str) -> Result<Argument, Refusal> {
    if let Some(name) = text.strip_prefix("builtin:") {
        return Ok(Argument::Builtin(name.trim().to_string()));
    }
    let refuse =
        |error: &dyn std::fmt::Display| Refusal::contradiction("refuted", format!("`{text}`: {error}"));
    let parsed = Expression::parse(text).map_err(|error| refuse(&error))?;
    let points = parsed.check(&Measurements::new(&[])).map_err(|error| refuse(&error))?;
    Ok(Argument::Numbers { holds: points.holds() })
}

/// A table with the shape of the measurements to come, every number 1.
fn template(experiment: &Experiment) -> Measurements {
    let mut table = Measurements::new(&experiment.dimensions);
    let mut last: Option<&Point> = None;
    for job in &experiment.jobs {
        if last != Some(&job.point) {
            table.add(&job.point, &template_run(&job.scenario));
        }
        last = Some(&job.point);
    }
    table
}

/// The most flows of one kind that get names in a template.
const NAMED: u32 = 100;

fn template_run(scenario: &Scenario) -> Run {
    let one = Some(Summary { mean: 1.0, p50: 1.0, p95: 1.0, p99: 1.0, max: 1.0 });
    let flows = scenario.flows.iter().flat_map(|flow| {
        (0..flow.count.min(NAMED)).map(move |index| FlowOutcome {
            name: flow.name_of(index),
            rtt_ms: one,
            application: application(&flow.traffic),
            state: scenario.record.state.then(|| state(flow)),
            ..FlowOutcome::default()
        })
    });
    let links = scenario.links.iter().map(|link| LinkOutcome {
        name: link.name.clone(),
        queueing_delay_ms: one,
        ..LinkOutcome::default()
    });
    Run {
        queueing_delay_ms: one,
        one_way_delay_ms: one,
        rtt_ms: one,
        signal_delay_ms: Some(SignalDelay { p95: 1.0 }),
        sent_packets: Some(1),
        left_packets: Some(1),
        jain: (scenario.flow_count() > 1).then_some(1.0),
        unfairness: scenario.record.unfairness.map(|_| 1.0),
        links: links.collect(),
        flows: flows.collect(),
        ..Run::default()
    }
}

/// The numbers that a flow's controller shows of itself, by name.
fn state(flow: &FlowSpec) -> BTreeMap<String, f64> {
    let connection = Connection {
        mss: flow.mss,
        overhead: flow.overhead,
        initial_window: Bytes(u64::from(flow.initial_window) * flow.mss.0),
        now: Time::ZERO,
        random: Random::stream(0, "template"),
    };
    // What the host adds.
    let mut names = BTreeMap::from([("cwnd_bytes".to_string(), 1.0)]);
    let controller = flow.controller.build(&connection);
    controller.inspect(&mut |name, _| {
        names.insert(name.to_string(), 1.0);
    });
    let Some(stage) = controller.stage() else { return names };
    // What BBR shows once it has it.
    names.insert("inflight_longterm_bytes".to_string(), 1.0);
    let mut values: Vec<String> = names.keys().cloned().collect();
    values.push("inflight_bytes".to_string());
    for name in stage.names {
        let mut endings: Vec<String> = ["entries", "s", "longest_s"].map(String::from).into();
        endings.extend(stage.names.iter().filter(|next| *next != name).map(|next| format!("to_{next}")));
        endings.extend(values.iter().flat_map(|value| [format!("start_{value}"), format!("end_{value}")]));
        names.extend(endings.iter().map(|ending| (format!("{name}_{ending}"), 1.0)));
    }
    names
}

/// What a call shows.
const CALL: &[&str] = &[
    "bitrate_mbps",
    "frames_shown",
    "frames_late_percent",
    "frames_skipped_percent",
    "freezes",
    "freeze_ms",
    "freeze_percent",
    "quality_mos",
    "frame_delay_ms_mean",
    "frame_delay_ms_p50",
    "frame_delay_ms_p95",
    "frame_delay_ms_p99",
];
/// What it shows besides with a jitter buffer.
const PLAYED: &[&str] = &[
    "playout_delay_ms_mean",
    "playout_delay_ms_p50",
    "playout_delay_ms_p95",
    "playout_delay_ms_p99",
    "freezes_per_minute",
    "freeze_ms_mean",
    "frames_missed_percent",
];
/// What it shows besides with frames in packets of their own.
const REPAIRED: &[&str] = &["frames_lost_percent", "repair_percent", "key_frame_requests"];
/// What it shows besides with sound.
const AUDIO: &[&str] = &[
    "audio_missed_percent",
    "audio_delay_ms_mean",
    "audio_delay_ms_p50",
    "audio_delay_ms_p95",
    "audio_delay_ms_p99",
];

/// The numbers an application may report, by name, as the simulated applications name them.
fn application(traffic: &Traffic) -> Option<BTreeMap<String, f64>> {
    let names: &[&str] = match traffic {
        Traffic::Backlogged => return None,
        Traffic::Size(_) => &["completion_ms"],
        Traffic::OnOff(_) | Traffic::RateLimited(_) => &["offered_mbps", "backlog_kb", "delivered_mbps"],
        Traffic::Phases(phases) => &phases::OUTCOME[..=phases.len().min(MOST_PHASES)],
        Traffic::ShortFlows(_) => &[
            "flows_started",
            "flows_completed",
            "completion_ms_mean",
            "completion_ms_p50",
            "completion_ms_p95",
            "completion_ms_p99",
        ],
        Traffic::RequestResponse(_) => {
            &["responses", "response_ms_mean", "response_ms_p50", "response_ms_p95", "response_ms_p99"]
        }
        Traffic::Game(_) => {
            &["updates", "updates_lost_percent", "rtt_ms_mean", "rtt_ms_p50", "rtt_ms_p95", "rtt_ms_p99"]
        }
        Traffic::Video(_) => {
            &["bitrate_mbps", "switches", "stalls", "stall_ms", "stall_percent", "startup_ms"]
        }
        Traffic::Call(call) => {
            let sound = AUDIO.iter().filter(|_| call.audio);
            let played = PLAYED.iter().filter(|_| call.jitter_buffer);
            let repaired = REPAIRED.iter().filter(|_| traffic.is_in_pieces());
            let names = CALL.iter().chain(played).chain(repaired).chain(sound);
            return Some(names.map(|&name| (name.to_string(), 1.0)).collect());
        }
        Traffic::Custom(custom) => custom.outcome(),
    };
    Some(names.iter().map(|&name| (name.to_string(), 1.0)).collect())
}
