//! Reading a scenario file.

use brakelight_core::parameters::Value;
use brakelight_core::registry::{DEFAULT_QUEUE, Host};
use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Limit, Rate};

use super::table::{Field, Source, Table};
use super::traffic;
use crate::clock::Clock;
use crate::problem::{InputError, Invalid, Place, Problem};
use crate::scenario::{
    FlowSpec, Hop, LinkSpec, Record, Restart, Scenario, Service, Steps, TraceOffset, Waiting, default_bin,
    packet_sizes,
};
use crate::spelled::{ByName, Spelled, Words};
use crate::traffic::Traffic;

const SCENARIO: &[&str] =
    &["name", "seed", "duration", "measure_from", "trace_offset", "record", "link", "flow"];
const RECORD: &[&str] = &["series", "bin", "link_logs", "state", "unfairness"];
const LINK: &[&str] = &[
    "name",
    "trace",
    "rate",
    "steps",
    "radio",
    "repeat",
    "buffer",
    "queue",
    "opportunity",
    "overhead",
    "restarts",
];
const RESTART: &[&str] = &["at", "down", "waiting"];
const FLOW: &[&str] = &[
    "name",
    "count",
    "controller",
    "feedback",
    "host",
    "ack_every",
    "mss",
    "overhead",
    "initial_window",
    "pacing_burst",
    "traffic",
    "start",
    "start_within",
    "stop",
    "rtt",
    "rtt_step",
    "path",
    "reverse",
    "jitter",
    "receiver_clock",
];
const CLOCK: &[&str] = &["offset", "skew_ppm", "step_at", "step_ms"];

/// What a scenario has where its file says nothing.
const DURATION: Duration = Duration::from_secs(60);
const RTT: Duration = Duration::from_millis(100);
const BUFFER: Limit = Limit::Packets(250);

/// The scenario in `text`, checked; `file` is for messages, and its stem names a scenario that does not name itself.
pub fn read(file: &str, text: &str) -> Result<Scenario, InputError> {
    let source = Source { file, text };
    let document = source.parse()?;
    let table = Table::open(&source, String::new(), SCENARIO, document.get_ref(), document.span())?;
    read_table(file, &source, &table)
}

fn read_table(file: &str, source: &Source<'_>, table: &Table<'_>) -> Result<Scenario, InputError> {
    let duration = table.quantity("duration", DURATION)?;
    let links = entries(table, "link", "at least one [[link]]")?;
    let links = links.iter().map(|entry| link(entry.field, entry.index)).collect::<Result<Vec<_>, _>>()?;
    let flows = entries(table, "flow", "at least one [[flow]]")?;
    let flows = flows.iter().map(|entry| flow(entry.field, entry.index)).collect::<Result<Vec<_>, _>>()?;
    let scenario = Scenario {
        name: match table.get("name") {
            Some(field) => field.text("a name")?.to_string(),
            None => stem(file).to_string(),
        },
        seed: table.integer("seed", 1)?,
        duration,
        measure_from: table.quantity("measure_from", Duration::ZERO)?,
        trace_offset: match table.get("trace_offset") {
            Some(field) if field.text("a time, or `random`")? == "random" => TraceOffset::Random,
            Some(field) => TraceOffset::At(field.quantity()?),
            None => TraceOffset::At(Duration::ZERO),
        },
        record: record(table, duration)?,
        links,
        flows,
    };
    scenario.validate().map_err(|invalid| locate(source, table, invalid))?;
    Ok(scenario)
}

/// Gives a complaint by place its file and line.
fn locate(source: &Source<'_>, table: &Table<'_>, invalid: Invalid) -> InputError {
    let inner = |list: &'static str, index: usize| {
        let entries = table.get(list)?.array("tables").ok()?;
        let keys = if list == "link" { LINK } else { FLOW };
        let inner = entries.get(index)?.table(String::new(), keys, "a table").ok()?;
        Some(inner.span_of(invalid.key))
    };
    let span = match invalid.place {
        Place::Scenario => Some(table.span_of(invalid.key)),
        Place::Record => table
            .get("record")
            .and_then(|field| field.table(String::new(), RECORD, "a table").ok())
            .map(|record| record.span_of(invalid.key)),
        Place::Link(index) => inner("link", index),
        Place::Flow(index) => inner("flow", index),
    };
    source.error(span.unwrap_or(0..0), &invalid.owner, *invalid.problem)
}

fn stem(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.strip_suffix(".toml").unwrap_or(name)
}

struct Entry<'a> {
    index: usize,
    field: Field<'a>,
}

/// The tables of `[[key]]`.
fn entries<'a>(
    table: &'a Table<'a>,
    key: &'static str,
    expected: &str,
) -> Result<Vec<Entry<'a>>, InputError> {
    let list = table.require(key, expected)?.array(&format!("a list of tables, each headed [[{key}]]"))?;
    if list.is_empty() {
        return Err(table.missing(key, expected));
    }
    Ok(list.into_iter().enumerate().map(|(index, field)| Entry { index, field }).collect())
}

fn record(table: &Table<'_>, duration: Duration) -> Result<Record, InputError> {
    let Some(field) = table.get("record") else {
        return Ok(Record::summary(duration));
    };
    let table = field.table("record".to_string(), RECORD, "a table such as `{ series = true }`")?;
    Ok(Record {
        series: table.boolean("series", false)?,
        bin: table.quantity("bin", default_bin(duration))?,
        link_logs: table.boolean("link_logs", false)?,
        state: table.boolean("state", false)?,
        unfairness: table.get("unfairness").map(|field| field.quantity()).transpose()?,
    })
}

/// What an entry is called in messages, before it is known to be well formed.
fn called(field: Field<'_>, what: &str, index: usize) -> String {
    match field.peek("name") {
        Some(name) => format!("{what} `{name}`"),
        None => format!("{what} {}", index + 1),
    }
}

fn link(field: Field<'_>, index: usize) -> Result<LinkSpec, InputError> {
    let table = field.table(called(field, "link", index), LINK, "a [[link]]")?;
    let service = service(&table)?;
    let (opportunity, overhead) = match service {
        Service::Trace(_) => (LinkSpec::MAHIMAHI_OPPORTUNITY, LinkSpec::MAHIMAHI_OVERHEAD),
        _ => (LinkSpec::PLAIN_OPPORTUNITY, Bytes::ZERO),
    };
    Ok(LinkSpec {
        name: table.require("name", "a name for paths to refer to")?.text("a name")?.to_string(),
        service,
        buffer: table.quantity("buffer", BUFFER)?,
        queue: match table.get("queue") {
            Some(field) => spelled(field, "queue")?,
            None => Spelled::new(DEFAULT_QUEUE, &[]).expect("the default queue is registered"),
        },
        opportunity: table.quantity("opportunity", opportunity)?,
        overhead: table.quantity("overhead", overhead)?,
        restarts: table.get("restarts").map_or(Ok(Vec::new()), restarts)?,
    })
}

fn restarts(field: Field<'_>) -> Result<Vec<Restart>, InputError> {
    const RESTARTS: &str = "a list of tables such as `[{ at = \"20s\", down = \"1s\" }]`";
    let restart = |field: &Field<'_>| {
        let table = field.table(format!("{}, restarts", field.owner()), RESTART, RESTARTS)?;
        let waiting = table.get("waiting").map_or(Ok(Waiting::Lost), |field: Field<'_>| {
            Waiting::parse(field.text("`lost` or `kept`")?).map_err(|expected| field.malformed(&expected))
        })?;
        Ok(Restart {
            at: table.require("at", "when the router restarts, such as `\"20s\"`")?.quantity()?,
            down: table.quantity("down", Duration::ZERO)?,
            waiting,
        })
    };
    field.array(RESTARTS)?.iter().map(restart).collect()
}

fn service(table: &Table<'_>) -> Result<Service, InputError> {
    const ONE: &str = "give one of `trace`, `rate`, `steps` and `radio`";
    match (table.get("trace"), table.get("rate"), table.get("steps"), table.get("radio")) {
        (Some(trace), None, None, None) => {
            Ok(Service::Trace(trace.text("the name or file of a trace")?.to_string()))
        }
        (None, Some(rate), None, None) => Ok(Service::Fixed(rate.quantity()?)),
        (None, None, Some(steps), None) => {
            Ok(Service::Steps(Steps { steps: schedule(steps)?, repeat: table.boolean("repeat", true)? }))
        }
        (None, None, None, Some(radio)) => spelled(radio, "radio").map(Service::Radio),
        (None, None, None, None) => Err(table.error(Problem::Contradiction {
            key: "service".to_string(),
            reason: format!("nothing says when the link can send: {ONE}"),
        })),
        (trace, rate, steps, radio) => {
            let extra = radio.or(steps).or(rate).or(trace).expect("two of the four are there");
            let reason = format!("the link's service is given twice: {ONE}");
            Err(extra.contradiction(reason))
        }
    }
}

fn schedule(field: Field<'_>) -> Result<Vec<(Duration, Rate)>, InputError> {
    const STEPS: &str = "a list of steps such as `[[\"500ms\", \"12Mbps\"], [\"500ms\", \"24Mbps\"]]`";
    let step = |step: &Field<'_>| match step.array(STEPS)?.as_slice() {
        [time, rate] => Ok((time.quantity()?, rate.quantity()?)),
        _ => Err(step.malformed("a time and a rate such as `[\"500ms\", \"12Mbps\"]`")),
    };
    field.array(STEPS)?.iter().map(step).collect()
}

/// An algorithm by name and options: `"codel:target=50ms"`.
fn spelled<C: ByName>(field: Field<'_>, what: &str) -> Result<Spelled<C>, InputError> {
    let expected = format!("a {what} such as `name` or `name:option=value,option=value`");
    let text = field.text(&expected)?;
    let words = Words::parse(text).ok_or_else(|| field.malformed(&expected))?;
    Spelled::from_words(words).map_err(|error| field.algorithm(error))
}

fn flow(field: Field<'_>, index: usize) -> Result<FlowSpec, InputError> {
    let table = field.table(called(field, "flow", index), FLOW, "a [[flow]]")?;
    let rtt = table.quantity("rtt", RTT)?;
    let controller = spelled(table.require("controller", "a controller, such as `cubic`")?, "controller")?;
    let path = hops(table.require("path", "the links that data passes, such as `[\"up\"]`")?)?;
    let name = match table.get("name") {
        Some(field) => field.text("a name")?.to_string(),
        None => format!("flow{}", index + 1),
    };
    let mut flow = FlowSpec::new(&name, controller, rtt, path);
    if let Some(field) = table.get("feedback") {
        flow.feedback = spelled(field, "feedback")?;
    }
    if let Some(field) = table.get("host") {
        flow.host = match field.text("`tcp` or `quic`")? {
            "tcp" => Host::Tcp,
            "quic" => Host::Quic,
            _ => return Err(field.malformed("a host: `tcp` or `quic`")),
        };
        (flow.mss, flow.overhead) = packet_sizes(flow.host);
    }
    flow.count = table.integer("count", flow.count)?;
    flow.ack_every = table.integer("ack_every", flow.ack_every)?;
    flow.mss = table.quantity("mss", flow.mss)?;
    flow.overhead = table.quantity("overhead", flow.overhead)?;
    flow.initial_window = table.integer("initial_window", flow.initial_window)?;
    flow.pacing_burst = table.integer("pacing_burst", flow.pacing_burst)?;
    flow.traffic = table.get("traffic").map_or(Ok(Traffic::Backlogged), traffic::read)?;
    flow.start = table.quantity("start", flow.start)?;
    flow.start_within = table.quantity("start_within", flow.start_within)?;
    flow.stop = table.get("stop").map(|field| field.quantity()).transpose()?;
    flow.rtt_step = table.quantity("rtt_step", flow.rtt_step)?;
    flow.reverse = table.get("reverse").map_or(Ok(Vec::new()), hops)?;
    flow.jitter = table.quantity("jitter", flow.jitter)?;
    flow.receiver_clock = table.get("receiver_clock").map_or(Ok(Clock::default()), clock)?;
    Ok(flow)
}

fn clock(field: Field<'_>) -> Result<Clock, InputError> {
    let owner = format!("{}, receiver_clock", field.owner());
    let table = field.table(owner, CLOCK, "a table such as `{ offset = \"3s\", skew_ppm = 50 }`")?;
    let number = |key| table.get(key).map_or(Ok(0.0), |field: Field<'_>| field.number());
    Ok(Clock {
        offset: table.quantity("offset", Duration::ZERO)?,
        skew_ppm: number("skew_ppm")?,
        step_at: table.get("step_at").map(|field| field.quantity()).transpose()?,
        step_ms: number("step_ms")?,
    })
}

/// The stations of a path. Names of links and of elements are told apart when the scenario is validated: here every
/// name without options is a link's, unless an element has it.
fn hops(field: Field<'_>) -> Result<Vec<Hop>, InputError> {
    const HOPS: &str = "a list of links and path elements such as `[\"up\", \"loss:rate=0.01\"]`";
    let hop = |field: &Field<'_>| {
        let text = field.text(HOPS)?;
        let words = Words::parse(text).ok_or_else(|| field.malformed("a link or a path element"))?;
        Hop::from_words(words).map_err(|error| field.algorithm(error))
    };
    field.array(HOPS)?.iter().map(hop).collect()
}
