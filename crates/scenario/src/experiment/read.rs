//! Reading an experiment's file and laying out its matrix.

use brakelight_core::controller::{Connection, Controller};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit, ParseError};

use super::table::{Dimension, LISTS, Point, Table as Measurements};
use super::{Assertion, Check, Experiment, Expression, Job};
use crate::compare::Compare;
use crate::file::table::{Field, Source, Table};
use crate::input::DOCUMENT;
use std::collections::BTreeMap;

use crate::outcome::{FlowOutcome, LinkOutcome, Run, SignalDelay, Summary};
use crate::problem::{InputError, Problem};
use crate::scenario::{FlowSpec, Record, Scenario, TraceOffset};
use crate::scheme::Scheme;
use crate::traffic::Traffic;

const EXPERIMENT: &[&str] = &[
    "id",
    "title",
    "source",
    "note",
    "schemes",
    "traces",
    "seeds",
    "rtt",
    "buffer",
    "duration",
    "trace_offset",
    "against",
    "scenario",
    "sweep",
    "case",
    "claim",
];
const CLAIM: &[&str] = &["id", "claim", "paper", "note", "check", "show"];

/// The most runs of one experiment.
const JOBS: usize = 100_000;
/// The most links and flows of all runs of one experiment together, which take about a kilobyte each.
const PARTS: usize = 1_000_000;
/// The rules' number of seeds.
const SEEDS: u64 = 10;

/// The experiment in `text`; `file` is for messages. Every check is tried on a table with the shape of the
/// measurements to come, so that a name that refers to nothing is found here.
pub fn read(file: &str, text: &str) -> Result<Experiment, InputError> {
    let source = Source { file, text };
    let document = source.parse()?;
    let table = Table::open(&source, String::new(), EXPERIMENT, document.get_ref(), document.span())?;
    let plan = Plan::read(&table)?;
    let (dimensions, jobs) = plan.lay_out(&table)?;
    let mut experiment = Experiment {
        id: required_text(&table, "id", "the id of the figure or claim")?,
        title: required_text(&table, "title", "what the experiment is about")?,
        source: required_text(&table, "source", "where it comes from")?,
        note: optional_text(&table, "note")?,
        dimensions,
        jobs,
        claims: Vec::new(),
    };
    let claims = table.require("claim", "at least one [[claim]]")?;
    let template = template(&experiment);
    for field in claims.array("a list of tables, each headed [[claim]]")? {
        experiment.claims.push(assertion(&experiment.id, &template, field)?);
    }
    Ok(experiment)
}

fn required_text(table: &Table<'_>, key: &'static str, expected: &str) -> Result<String, InputError> {
    table.require(key, expected)?.string(expected)
}

fn optional_text(table: &Table<'_>, key: &'static str) -> Result<String, InputError> {
    table.get(key).map_or(Ok(String::new()), |field| field.string("a text"))
}

/// What the file says of the matrix.
struct Plan<'a> {
    /// Labels and spellings.
    schemes: Vec<(String, String)>,
    traces: Vec<String>,
    seeds: u64,
    /// The text of a scenario, in place of `compare`'s.
    scenario: Option<Field<'a>>,
    /// Names and values.
    sweep: Vec<(String, Vec<String>)>,
    /// The label of each case, and the names and values it stands for.
    cases: Vec<(String, Vec<(String, String)>)>,
}

impl<'a> Plan<'a> {
    fn read(table: &'a Table<'a>) -> Result<Self, InputError> {
        let schemes = table.get("schemes").map_or(Ok(Vec::new()), schemes)?;
        let traces = table.get("traces").map_or(Ok(Vec::new()), |field| {
            field.array("a list of traces")?.iter().map(|trace| trace.string("the name of a trace")).collect()
        })?;
        let seeds = table.integer("seeds", SEEDS)?;
        let scenario = table.get("scenario");
        if let Some(field) = scenario {
            field.text("the text of a scenario file")?;
            for key in ["rtt", "buffer", "duration", "trace_offset", "against"] {
                if let Some(extra) = table.get(key) {
                    let reason = "the scenario says this: leave one out".to_string();
                    return Err(extra.contradiction(reason));
                }
            }
        }
        let sweep = table.get("sweep").map_or(Ok(Vec::new()), |field| {
            let pairs = field.pairs("a table of lists such as `eta = [0.9, 0.98]`")?;
            pairs
                .into_iter()
                .map(|(name, values)| {
                    let list = values.array("a list of values")?;
                    let labels: Vec<String> = list.iter().map(Field::label).collect::<Result<_, _>>()?;
                    if labels.is_empty() {
                        return Err(values.malformed("a list with at least one value"));
                    }
                    Ok((name.to_string(), labels))
                })
                .collect::<Result<Vec<_>, InputError>>()
        })?;
        let cases = table.get("case").map_or(Ok(Vec::new()), |field| {
            field.array("a list of tables, each headed [[case]]")?.iter().map(case).collect()
        })?;
        Ok(Plan { schemes, traces, seeds, scenario, sweep, cases })
    }

    /// The dimensions, and a job for every point and seed.
    fn lay_out(&self, table: &Table<'_>) -> Result<(Vec<Dimension>, Vec<Job>), InputError> {
        let dimensions = self.dimensions(table)?;
        if self.scenario.is_none() && (self.schemes.is_empty() || self.traces.is_empty()) {
            // A file of checks of the program's own runs nothing.
            return match (self.schemes.is_empty(), self.traces.is_empty(), dimensions.is_empty()) {
                (true, true, true) => Ok((dimensions, Vec::new())),
                (false, _, _) => Err(table.missing("traces", "the traces to run on, or a `scenario`")),
                _ => Err(table.missing("schemes", "the schemes to run, or a `scenario`")),
            };
        }
        let sizes: Vec<usize> = dimensions.iter().map(|dimension| dimension.labels.len()).collect();
        let points = sizes.iter().try_fold(1_usize, |product, size| product.checked_mul(*size));
        let runs = points.and_then(|points| points.checked_mul(usize::try_from(self.seeds).ok()?));
        if !runs.is_some_and(|runs| (1..=JOBS).contains(&runs)) {
            let reason = format!("the matrix has {} runs: valid are 1 to {JOBS}", runs.unwrap_or(usize::MAX));
            return Err(table.error(Problem::Contradiction { key: "seeds".to_string(), reason }));
        }
        let mut jobs = Vec::new();
        let mut parts = 0;
        for point in points_of(&sizes) {
            let values = self.values(&dimensions, &point);
            for seed in 1..=self.seeds {
                let scenario = self.scenario(table, &values, seed)?;
                parts += scenario.links.len() + scenario.flows.len();
                if parts > PARTS {
                    let reason = format!(
                        "all its runs together have more than {PARTS} links and flows, the most that they may have"
                    );
                    return Err(table.error(Problem::Contradiction { key: "seeds".to_string(), reason }));
                }
                jobs.push(Job { point: point.clone(), scenario });
            }
        }
        Ok((dimensions, jobs))
    }

    fn dimensions(&self, table: &Table<'_>) -> Result<Vec<Dimension>, InputError> {
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
                return Err(table.error(Problem::Contradiction { key: "sweep".to_string(), reason }));
            }
            if let Some(twice) =
                labels.iter().enumerate().find(|(index, label)| labels[..*index].contains(label))
            {
                let reason = format!("`{}` is there twice", twice.1);
                return Err(table.error(Problem::Contradiction { key: name, reason }));
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

    /// The scenario at a point, given what its placeholders stand for.
    fn scenario(
        &self,
        table: &Table<'_>,
        values: &[(String, String)],
        seed: u64,
    ) -> Result<Scenario, InputError> {
        let value =
            |name: &str| values.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
        let place = || {
            let shown = values.iter().map(|(name, value)| format!("{name} {value}"));
            shown.collect::<Vec<_>>().join(", ")
        };
        let scheme = match (value("scheme"), table.get("schemes")) {
            (Some(text), Some(field)) => {
                let text = fill(text, values, field)?;
                Some(Scheme::parse(&text).map_err(|error| field.located(*error.problem, &place()))?)
            }
            _ => None,
        };
        let Some(field) = self.scenario else {
            let scheme = scheme.expect("without a scenario there are schemes");
            let mut compare = Compare::new(scheme, value("trace").unwrap_or_default());
            compare.seed = seed;
            compare.rtt = filled(table, "rtt", values, compare.rtt)?;
            compare.buffer = filled::<Limit>(table, "buffer", values, compare.buffer)?;
            compare.duration = filled::<Duration>(table, "duration", values, compare.duration)?;
            compare.record = Record::summary(compare.duration);
            if let Some(field) = table.get("trace_offset") {
                compare.trace_offset = match field.text("a time, or `random`")? {
                    "random" => TraceOffset::Random,
                    _ => TraceOffset::At(filled(table, "trace_offset", values, Duration::ZERO)?),
                };
            }
            if let Some(field) = table.get("against") {
                let text = fill(field.text("a scheme")?, values, field)?;
                let against =
                    Scheme::parse(&text).map_err(|error| field.located(*error.problem, &place()))?;
                compare.against = Some(against);
            }
            return compare.scenario().map_err(|error| table.located(*error.problem, &place()));
        };
        let mut values = values.to_vec();
        if let Some(scheme) = &scheme {
            values.push(("controller".to_string(), scheme.controller().words().to_string()));
            values.push(("feedback".to_string(), scheme.feedback().words().to_string()));
            values.push(("queue".to_string(), scheme.queue().words().to_string()));
        }
        // Twice: what a case stands for may hold placeholders of its own.
        let text = fill(field.text("the text of a scenario file")?, &values, field)?;
        let text = fill(&text, &values, field)?;
        let mut scenario = crate::file::read("scenario", &text).map_err(|error| {
            let line = error.line.map_or(String::new(), |line| format!("line {line}, "));
            let owner = match error.owner.as_str() {
                "" => String::new(),
                owner => format!("{owner}, "),
            };
            field.located(*error.problem, &format!("{line}{owner}{}", place()))
        })?;
        scenario.seed = seed;
        Ok(scenario)
    }
}

/// A list of schemes, which are their own labels, or a table from labels to schemes.
fn schemes(field: Field<'_>) -> Result<Vec<(String, String)>, InputError> {
    const SCHEMES: &str = "a list of schemes, or a table such as `{ codel = \"cubic+codel\" }`";
    let text = |field: &Field<'_>| field.string("a scheme");
    if field.is_table() {
        let pairs = field.pairs(SCHEMES)?;
        return pairs.iter().map(|(label, scheme)| Ok((label.to_string(), text(scheme)?))).collect();
    }
    field.array(SCHEMES)?.iter().map(|scheme| Ok((text(scheme)?, text(scheme)?))).collect()
}

fn case(field: &Field<'_>) -> Result<(String, Vec<(String, String)>), InputError> {
    const CASE: &str = "a table with a label under `case`";
    let mut values = Vec::new();
    for (name, value) in field.pairs(CASE)? {
        values.push((name.to_string(), value.label()?));
    }
    match values.iter().position(|(name, _)| name == "case") {
        Some(index) => Ok((values.remove(index).1, values)),
        None => Err(field.malformed(CASE)),
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

/// `text` with every `{name}` replaced by what it stands for. Braces around anything but a lower-case name stay.
fn fill(text: &str, values: &[(String, String)], field: Field<'_>) -> Result<String, InputError> {
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
            return Err(field.error(Problem::UnknownName {
                key: field.key().to_string(),
                what: "placeholder".to_string(),
                name: name.to_string(),
                valid: if valid.is_empty() { "none".to_string() } else { valid },
            }));
        };
        filled.push_str(value);
        rest = &after[name.len() + 2..];
        if filled.len() + rest.len() > DOCUMENT.0 as usize {
            let reason = format!(
                "with its placeholders filled it is longer than {DOCUMENT}, the most that it may hold"
            );
            return Err(field.contradiction(reason));
        }
    }
    Ok(filled + rest)
}

/// The quantity under `key` with its placeholders filled, or `default`.
fn filled<T: std::str::FromStr<Err = ParseError>>(
    table: &Table<'_>,
    key: &'static str,
    values: &[(String, String)],
    default: T,
) -> Result<T, InputError> {
    let Some(field) = table.get(key) else { return Ok(default) };
    if !field.is_text() {
        return field.quantity();
    }
    let text = fill(field.text("a quantity")?, values, field)?;
    text.parse().map_err(|error: ParseError| field.malformed(error.expected))
}

fn assertion(id: &str, template: &Measurements, field: Field<'_>) -> Result<Assertion, InputError> {
    let table = field.table("claim".to_string(), CLAIM, "a [[claim]]")?;
    let expression = |field: Field<'_>| {
        let text = field.text("an expression")?;
        Expression::parse(text).map_err(|error| field.contradiction(format!("`{text}`: {error}")))
    };
    let check = table.require("check", "an expression, `builtin:NAME` or `not-checkable`")?;
    let text = check.text("an expression, `builtin:NAME` or `not-checkable`")?;
    let show = table.get("show").map(expression).transpose()?;
    let note = optional_text(&table, "note")?;
    let checked = if text == "not-checkable" {
        if note.is_empty() {
            return Err(table.missing("note", "why it cannot be checked"));
        }
        Check::NotCheckable
    } else if let Some(name) = text.strip_prefix("builtin:") {
        Check::Builtin(name.trim().to_string())
    } else {
        let parsed = expression(check)?;
        // Whether names refer to something shows on the template; whether the check holds does not matter there.
        parsed.check(template).map_err(|error| check.contradiction(format!("`{text}`: {error}")))?;
        parsed.measured(template).map_err(|error| check.contradiction(format!("`{text}`: {error}")))?;
        Check::Expression { check: parsed, show: show.clone() }
    };
    if let (Some(show), Some(field)) = (&show, table.get("show")) {
        show.evaluate(template)
            .map_err(|error| field.contradiction(format!("`{}`: {error}", show.text())))?;
    }
    Ok(Assertion {
        id: table.get("id").map_or(Ok(id), |field| field.text("an id"))?.to_string(),
        claim: required_text(&table, "claim", "what is claimed")?,
        paper: optional_text(&table, "paper")?,
        note,
        check: checked,
    })
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
    let mut names = BTreeMap::new();
    flow.controller.build(&connection).inspect(&mut |name, _| {
        names.insert(name.to_string(), 1.0);
    });
    names
}

/// The numbers an application may report, by name, as the simulated applications name them.
fn application(traffic: &Traffic) -> Option<BTreeMap<String, f64>> {
    let names: &[&str] = match traffic {
        Traffic::Backlogged => return None,
        Traffic::Size(_) => &["completion_ms"],
        Traffic::OnOff(_) | Traffic::RateLimited(_) => &["offered_mbps", "backlog_kb", "delivered_mbps"],
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
        Traffic::Call(_) => &[
            "bitrate_mbps",
            "frames_shown",
            "frames_late_percent",
            "frames_skipped_percent",
            "freezes",
            "freeze_ms",
            "freeze_percent",
            "frame_delay_ms_mean",
            "frame_delay_ms_p50",
            "frame_delay_ms_p95",
            "frame_delay_ms_p99",
        ],
        Traffic::Custom(custom) => custom.outcome(),
    };
    Some(names.iter().map(|&name| (name.to_string(), 1.0)).collect())
}
