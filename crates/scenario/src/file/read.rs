//! Reading a scenario file: what its tables leave out is filled in, names are looked up, and the whole is
//! checked.

use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_links::elements::RadioConfig;
use brakelight_registry::{DEFAULT_QUEUE, Registry};
use serde::de::{Deserialize, Deserializer, Error};

use super::tables::{ClockTable, FlowTable, LinkTable, RecordTable, RestartTable, ScenarioTable};
use super::values::{Algorithm, Kind, List, Quantity, Station, Step, Text};
use crate::clock::Clock;
use crate::document::{Document, Node, Reason, Refusal};
use crate::problem::InputError;
use crate::scenario::{
    FlowSpec, Hop, LinkSpec, Record, Restart, Scenario, Service, Steps, TraceOffset, Waiting, ack_delay,
    default_bin,
};
use crate::scheme_string::{ByName, SchemeString};

/// What a scenario has where its file says nothing.
const DURATION: Duration = Duration::from_secs(60);
const RTT: Duration = Duration::from_millis(100);
const BUFFER: Limit = Limit::Packets(250);
/// What a scenario without a name is called that comes from no file.
const UNNAMED: &str = "scenario";

/// Returns the scenario in `text`, checked, of algorithms that Brakelight brings; `file` is for messages, and
/// its stem names a scenario that does not name itself.
///
/// # Errors
/// What is wrong first, with file, line, key, value and what would be valid.
pub fn read(file: &str, text: &str) -> Result<Scenario, InputError> {
    read_with(&Registry::standard(), file, text)
}

/// Returns the scenario in `text`, as [`read`] reads it, of algorithms of `registry`.
///
/// # Errors
/// As [`read`].
pub fn read_with(registry: &Registry, file: &str, text: &str) -> Result<Scenario, InputError> {
    resolve(registry, &Document::parse(file, text)?, stem(file))
}

/// Returns the scenario that `deserializer` holds, with the words of scenario files, of algorithms of
/// `registry`: [`Scenario`]'s own `Deserialize` knows those that Brakelight brings.
///
/// ```
/// use brakelight_registry::Registry;
/// use brakelight_scenario::file;
///
/// let text = r#"{
///     "link": [{"name": "up", "rate": "12Mbps"}],
///     "flow": [{"controller": "cubic", "path": ["up"]}]
/// }"#;
/// let mut json = serde_json::Deserializer::from_str(text);
/// let scenario = file::deserialize_with(&Registry::standard(), &mut json).unwrap();
/// assert_eq!(scenario.flows[0].controller.name(), "cubic");
/// ```
///
/// # Errors
/// Those of the deserializer, and what is wrong with the scenario in the words of [`read`], without file and
/// line.
pub fn deserialize_with<'de, D: Deserializer<'de>>(
    registry: &Registry,
    deserializer: D,
) -> Result<Scenario, D::Error> {
    let document = Document::of(Node::deserialize(deserializer)?);
    resolve(registry, &document, UNNAMED).map_err(D::Error::custom)
}

/// By the words of scenario files, of algorithms that Brakelight brings.
impl<'de> Deserialize<'de> for Scenario {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_with(&Registry::standard(), deserializer)
    }
}

fn resolve(registry: &Registry, document: &Document<'_>, unnamed: &str) -> Result<Scenario, InputError> {
    let table = document.read::<ScenarioTable>();
    table.and_then(|table| scenario(registry, table, unnamed)).map_err(|refusal| document.error(refusal))
}

fn stem(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.strip_suffix(".toml").unwrap_or(name)
}

fn or<T>(given: Option<Quantity<T>>, default: T) -> T {
    given.map_or(default, |quantity| quantity.0)
}

fn scenario(registry: &Registry, table: ScenarioTable, unnamed: &str) -> Result<Scenario, Refusal> {
    let duration = or(table.duration, DURATION);
    let links = entries(table.link, "link", "at least one [[link]]", |_, entry| link(registry, entry))?;
    let flows =
        entries(table.flow, "flow", "at least one [[flow]]", |index, entry| flow(registry, index, entry))?;
    let scenario = Scenario {
        name: table.name.map_or_else(|| unnamed.to_string(), |name| name.0.0),
        seed: table.seed.unwrap_or(1),
        duration,
        measure_from: or(table.measure_from, Duration::ZERO),
        trace_offset: table.trace_offset.map_or(TraceOffset::At(Duration::ZERO), |offset| offset.0),
        record: record(table.record.unwrap_or_default(), duration),
        links,
        flows,
    };
    scenario.validate()?;
    Ok(scenario)
}

/// The tables of `[[key]]`, of which there is at least one.
fn entries<T, R>(
    list: Option<List<T>>,
    key: &str,
    expected: &str,
    mut read: impl FnMut(usize, T) -> Result<R, Refusal>,
) -> Result<Vec<R>, Refusal> {
    let list = list.map(|list| list.0).filter(|list| !list.is_empty());
    let list = list.ok_or_else(|| Refusal::missing(key, expected))?.into_iter().enumerate();
    list.map(|(index, entry)| read(index, entry).map_err(|refusal| refusal.at(index).under(key))).collect()
}

fn record(table: RecordTable, duration: Duration) -> Record {
    Record {
        series: table.series.unwrap_or(false),
        bin: or(table.bin, default_bin(duration)),
        link_logs: table.link_logs.unwrap_or(false),
        state: table.state.unwrap_or(false),
        flow_delays: table.flow_delays.unwrap_or(false),
        second_half: table.second_half.unwrap_or(false),
        unfairness: table.unfairness.map(|over| over.0),
    }
}

fn link(registry: &Registry, table: LinkTable) -> Result<LinkSpec, Refusal> {
    let service = service(
        registry,
        table.trace.map(|trace| trace.0.0),
        table.rate,
        table.steps,
        table.repeat,
        table.radio,
    )?;
    let (opportunity, overhead) = match service {
        Service::Trace(_) => (LinkSpec::MAHIMAHI_OPPORTUNITY, LinkSpec::MAHIMAHI_OVERHEAD),
        _ => (LinkSpec::PLAIN_OPPORTUNITY, Bytes::ZERO),
    };
    let name = table.name.ok_or_else(|| Refusal::missing("name", "a name for paths to refer to"))?;
    Ok(LinkSpec {
        name: name.0.0,
        service,
        buffer: or(table.buffer, BUFFER),
        queue: match table.queue {
            Some(given) => algorithm(registry, given, "queue")?,
            None => SchemeString::new(DEFAULT_QUEUE, &[]).expect("the default queue is registered"),
        },
        opportunity: or(table.opportunity, opportunity),
        overhead: or(table.overhead, overhead),
        spread: table.spread.unwrap_or(false),
        restarts: match table.restarts {
            Some(list) => restarts(list)?,
            None => Vec::new(),
        },
        burst: or(table.burst, Bytes::ZERO),
        delay: or(table.delay, Duration::ZERO),
    })
}

fn restarts(list: List<RestartTable>) -> Result<Vec<Restart>, Refusal> {
    let restart = |(index, table): (usize, RestartTable)| {
        let missing = || {
            let refusal = Refusal::missing("at", "when the router restarts, such as `\"20s\"`");
            refusal.at(index).under("restarts")
        };
        Ok(Restart {
            at: table.at.ok_or_else(missing)?.0,
            down: or(table.down, Duration::ZERO),
            waiting: table.waiting.map_or(Waiting::Lost, |waiting| waiting.0),
        })
    };
    list.0.into_iter().enumerate().map(restart).collect()
}

fn service(
    registry: &Registry,
    trace: Option<String>,
    rate: Option<Quantity<Rate>>,
    steps: Option<List<Step>>,
    repeat: Option<bool>,
    radio: Option<Text<Algorithm<RadioConfig>>>,
) -> Result<Service, Refusal> {
    const ONE: &str = "give one of `trace`, `rate`, `steps` and `radio`";
    match (trace, rate, steps, radio) {
        (Some(trace), None, None, None) => Ok(Service::Trace(trace)),
        (None, Some(rate), None, None) => Ok(Service::Fixed(rate.0)),
        (None, None, Some(steps), None) => {
            let steps = steps.0.into_iter().map(|Step(time, rate)| (time.0, rate.0)).collect();
            Ok(Service::Steps(Steps { steps, repeat: repeat.unwrap_or(true) }))
        }
        (None, None, None, Some(radio)) => algorithm(registry, radio, "radio").map(Service::Radio),
        (None, None, None, None) => {
            let reason = format!("nothing says when the link can send: {ONE}");
            Err(Refusal::contradiction("service", reason))
        }
        (_, rate, steps, radio) => {
            let there = [("radio", radio.is_some()), ("steps", steps.is_some()), ("rate", rate.is_some())];
            let extra = there.iter().find(|(_, there)| *there).map_or("trace", |(key, _)| key);
            Err(Refusal::contradiction(extra, format!("the link's service is given twice: {ONE}")))
        }
    }
}

fn algorithm<C: ByName + Kind>(
    registry: &Registry,
    given: Text<Algorithm<C>>,
    key: &str,
) -> Result<SchemeString<C>, Refusal> {
    SchemeString::from_words_with(registry, given.0.words)
        .map_err(|error| Refusal::new(Reason::Algorithm(error)).under(key))
}

fn flow(registry: &Registry, index: usize, table: FlowTable) -> Result<FlowSpec, Refusal> {
    let controller =
        table.controller.ok_or_else(|| Refusal::missing("controller", "a controller, such as `cubic`"))?;
    let controller = algorithm(registry, controller, "controller")?;
    let path = table
        .path
        .ok_or_else(|| Refusal::missing("path", "the links that data passes, such as `[\"up\"]`"))?;
    let path = hops(registry, path, "path")?;
    let name = table.name.map_or_else(|| format!("flow{}", index + 1), |name| name.0.0);
    let mut flow = FlowSpec::new(&name, controller, or(table.rtt, RTT), path);
    if let Some(feedback) = table.feedback {
        flow.feedback = algorithm(registry, feedback, "feedback")?;
    }
    if let Some(host) = table.host {
        flow.set_host(host.0);
    }
    flow.count = table.count.unwrap_or(flow.count);
    flow.ack_every = table.ack_every.unwrap_or(flow.ack_every);
    let delay = table.ack_delay.map(|delay| delay.0);
    flow.ack_delay = delay.filter(|delay| *delay != ack_delay(flow.host));
    flow.mss = or(table.mss, flow.mss);
    flow.overhead = or(table.overhead, flow.overhead);
    flow.initial_window = table.initial_window.unwrap_or(flow.initial_window);
    flow.pacing_burst = table.pacing_burst.unwrap_or(flow.pacing_burst);
    flow.reordering = table.reordering.map_or(flow.reordering, |reordering| reordering.0);
    flow.undo = table.undo.unwrap_or(flow.undo);
    flow.read_batch = table.read_batch.unwrap_or(flow.read_batch);
    if let Some(traffic) = table.traffic {
        flow.traffic = traffic.resolve(registry).map_err(|refusal| refusal.under("traffic"))?;
    }
    flow.start = or(table.start, flow.start);
    flow.start_within = or(table.start_within, flow.start_within);
    flow.stop = table.stop.map(|stop| stop.0);
    flow.rtt_step = or(table.rtt_step, flow.rtt_step);
    if let Some(reverse) = table.reverse {
        flow.reverse = hops(registry, reverse, "reverse")?;
    }
    flow.jitter = or(table.jitter, flow.jitter);
    flow.receiver_clock = clock(table.receiver_clock.unwrap_or_default());
    Ok(flow)
}

fn clock(table: ClockTable) -> Clock {
    Clock {
        offset: or(table.offset, Duration::ZERO),
        skew_ppm: table.skew_ppm.unwrap_or(0.0),
        step_at: table.step_at.map(|at| at.0),
        step_ms: table.step_ms.unwrap_or(0.0),
    }
}

/// The stations of a path. Names of links and of elements are told apart when the scenario is validated: here
/// every name without options is a link's, unless an element has it.
fn hops(registry: &Registry, list: List<Text<Station>>, key: &str) -> Result<Vec<Hop>, Refusal> {
    let hop = |(index, Text(Station(words))): (usize, Text<Station>)| {
        Hop::from_words_with(registry, words)
            .map_err(|error| Refusal::new(Reason::Algorithm(error)).at(index).under(key))
    };
    list.0.into_iter().enumerate().map(hop).collect()
}
