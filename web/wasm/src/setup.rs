//! A scenario: as the text of a file, or as the choices of the page.

use brakelight::core::registry::Registry;
use brakelight::scenario::compare::{Compare, FORWARD, MEASURED};
use brakelight::scenario::cost::Cost;
use brakelight::scenario::file;
use brakelight::scenario::scenario::{Hop, Record, Scenario};
use brakelight::scenario::scheme::Scheme;
use brakelight::scenario::scheme_string::Words;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::traces::Shelf;

/// The longest text of a scenario.
const LONGEST: usize = 200_000;
/// The most packets that a page simulates at once: about half a minute.
const MOST_STEPS: f64 = 2e7;
/// The most memory that a run may take by its estimate, bytes.
const MOST_MEMORY: f64 = 4e8;

/// A scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum What {
    /// As the text of a scenario file, in TOML or JSON.
    Text(String),
    /// As choices.
    Setup(Box<Setup>),
}

/// Choices in the units people write. Those that `compare` has mean what they mean there.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Setup {
    /// The scheme.
    pub scheme: String,
    /// The name of the trace.
    pub trace: String,
    /// Propagation delay of the round trip: `100ms`.
    pub rtt: String,
    /// The bottleneck's buffer: `250pkt`.
    pub buffer: String,
    /// Length of the run: `60s`.
    pub duration: String,
    /// Where in its period the trace starts: a time, or `random`.
    pub trace_offset: String,
    /// How many flows of the scheme there are, 1 to 100.
    pub flows: u32,
    /// The scheme of competing flows at the same queue.
    pub against: Option<String>,
    /// How many competing flows there are, 1 to 100.
    pub against_flows: u32,
    /// What the scheme's flows carry, as in a scenario file.
    pub traffic: Value,
    /// Path elements behind the link, as in a scenario file: `loss:rate=0.01`.
    pub elements: Vec<String>,
    /// The same on the way of the ACKs.
    pub ack_elements: Vec<String>,
    /// How many packets one ACK stands for.
    pub ack_every: u32,
    /// The rate of the way back.
    pub reverse_rate: String,
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            scheme: "abc".into(),
            trace: "lte-driving".into(),
            rtt: "100ms".into(),
            buffer: "250pkt".into(),
            duration: "60s".into(),
            trace_offset: "0s".into(),
            flows: 1,
            against: None,
            against_flows: 1,
            traffic: json!("backlogged"),
            elements: Vec::new(),
            ack_elements: Vec::new(),
            ack_every: 2,
            reverse_rate: "12Mbps".into(),
        }
    }
}

impl What {
    /// Returns the scenario, with `seed` in place of its own.
    pub fn scenario(&self, seed: Option<u64>) -> Result<Scenario, String> {
        let mut scenario = match self {
            What::Text(text) => read(text)?,
            What::Setup(setup) => setup.scenario()?,
        };
        if let Some(seed) = seed {
            scenario.seed = seed;
        }
        Ok(scenario)
    }

    /// Returns the scenario as the text of a file, and what a page must know of it.
    pub fn describe(&self, shelf: &Shelf) -> Result<Value, String> {
        let scenario = self.scenario(None)?;
        let traces = shelf.traces(&scenario)?;
        check_cost(&scenario, &Cost::of(&scenario, &traces))?;
        let links: Vec<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
        Ok(json!({
            "toml": file::write(&scenario),
            "name": scenario.name,
            "seed": scenario.seed,
            "duration_s": scenario.duration.as_secs_f64(),
            "links": links,
            "flows": scenario.flow_count(),
        }))
    }
}

impl Setup {
    /// Returns the scenario, checked.
    pub fn scenario(&self) -> Result<Scenario, String> {
        let scheme = Scheme::parse(&self.scheme).map_err(|error| error.to_string())?;
        let duration = parse("duration", &self.duration)?;
        let compare = Compare {
            rtt: parse("rtt", &self.rtt)?,
            buffer: parse("buffer", &self.buffer)?,
            duration,
            trace_offset: match self.trace_offset.as_str() {
                "random" => brakelight::scenario::scenario::TraceOffset::Random,
                time => brakelight::scenario::scenario::TraceOffset::At(parse("trace_offset", time)?),
            },
            against: match &self.against {
                Some(against) => Some(Scheme::parse(against).map_err(|error| error.to_string())?),
                None => None,
            },
            record: Record::summary(duration),
            ..Compare::mahimahi(scheme, &self.trace)
        };
        let mut scenario = compare.scenario().map_err(|error| error.to_string())?;
        for count in [self.flows, self.against_flows] {
            if !(1..=100).contains(&count) {
                return Err(format!("{count} flows: valid are 1 to 100"));
            }
        }
        let (forward, back) = (hops(&self.elements)?, hops(&self.ack_elements)?);
        let reverse = scenario.links.iter_mut().find(|link| link.name != FORWARD);
        if let Some(link) = reverse {
            let rate = parse("reverse_rate", &self.reverse_rate)?;
            link.service = brakelight::scenario::scenario::Service::Fixed(rate);
        }
        for flow in &mut scenario.flows {
            let measured = flow.name == MEASURED;
            flow.count = if measured { self.flows } else { self.against_flows };
            flow.ack_every = self.ack_every;
            flow.path.extend(forward.iter().cloned());
            flow.reverse.extend(back.iter().cloned());
        }
        // Read again, so that it is checked, and applications have the file's own words.
        let mut document = serde_json::to_value(&scenario).map_err(|error| error.to_string())?;
        document["flow"][0]["traffic"] = self.traffic.clone();
        serde_json::from_value(document).map_err(|error| error.to_string())
    }
}

fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|error| format!("`{name}` is `{text}`: {error}"))
}

fn hops(elements: &[String]) -> Result<Vec<Hop>, String> {
    let hop = |text: &String| {
        let words = Words::parse(text).ok_or_else(|| format!("`{text}` is no path element"))?;
        match Hop::from_words(words).map_err(|error| error.to_string())? {
            Hop::Link(name) => Err(format!("there is no path element `{name}`")),
            element => Ok(element),
        }
    };
    elements.iter().map(hop).collect()
}

/// Reads a scenario file, in TOML, or in JSON if it begins with a brace.
pub fn read(text: &str) -> Result<Scenario, String> {
    if text.len() > LONGEST {
        return Err(format!("the scenario has {} bytes: at most {LONGEST} are valid", text.len()));
    }
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| error.to_string());
    }
    file::read_with(&Registry::standard(), "scenario.toml", text).map_err(|error| error.to_string())
}

/// Refuses what would keep a page busy for long, or fill its memory.
pub fn check_cost(scenario: &Scenario, cost: &Cost) -> Result<(), String> {
    if cost.steps <= MOST_STEPS && cost.memory <= MOST_MEMORY {
        return Ok(());
    }
    Err(format!(
        "{}: too much for a page by its estimate ({cost}); shorten it, or run it with the command `brakelight run`",
        scenario.name
    ))
}
