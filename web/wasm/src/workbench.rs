//! What a worker keeps between requests, and every request.

use brakelight::core::registry::Registry;
use brakelight::core::time::{Duration, Time};
use brakelight::lab::listing;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::decision::{self, Candidate};
use crate::experiments;
use crate::job::Job;
use crate::parting;
use crate::setup::What;
use crate::table::{Form, Recorded, Table};
use crate::traces::Shelf;
use crate::watch::Watch;

/// How many runs can be watched side by side.
pub const LANES: usize = 2;

/// A request of the page. The names of the fields are those of the JSON.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Everything that can be chosen, with options, ranges, defaults and sources.
    Registry,
    /// Keeps the file as a trace called `name`.
    TraceFile {
        /// What scenarios call it.
        name: String,
        /// Its format: `mahimahi`, `csv`, `pcap` or `iperf3`; what it seems to be where none is given.
        format: Option<String>,
        /// Which direction of a capture or of an iperf3 test in both directions.
        direction: Option<String>,
    },
    /// Keeps what the generator makes of `recipe` as a trace called `name`.
    TraceRecipe {
        /// What scenarios call it.
        name: String,
        /// The generator's parameters.
        recipe: Value,
    },
    /// Says what a trace is like.
    TraceShow {
        /// Its name.
        name: String,
    },
    /// Returns a trace as a Mahimahi file.
    TraceText {
        /// Its name.
        name: String,
    },
    /// Checks a scenario, and returns it as the text of a file.
    Scenario {
        /// The scenario.
        what: What,
    },
    /// Begins a run.
    Begin {
        /// The scenario.
        what: What,
        /// Its seed, in place of its own.
        seed: Option<u64>,
        /// Its length in seconds, if shorter than its own: a first look.
        at_most_s: Option<f64>,
        /// Whether to keep time series.
        #[serde(default)]
        series: bool,
    },
    /// Goes on with the run that was begun, by so much of its time.
    Advance {
        /// Simulated seconds.
        seconds: f64,
    },
    /// Ends the run and returns its outcome.
    Finish,
    /// Opens a run to be looked into.
    Watch {
        /// 0 or 1: two can be open side by side.
        lane: usize,
        /// The scenario.
        what: What,
        /// Its seed, in place of its own.
        seed: Option<u64>,
    },
    /// Advances an open run to a time, and returns what it looks like then. A time of the past begins it
    /// anew.
    Frame {
        /// Which.
        lane: usize,
        /// The time, seconds.
        until_s: f64,
    },
    /// Finds where two scenarios with the same seed first do something different.
    Part {
        /// One.
        one: What,
        /// The other.
        other: What,
        /// The seed of both.
        seed: Option<u64>,
    },
    /// Returns the outcomes of runs as a file: a table with the columns that the command and the Python
    /// package give it.
    Table {
        /// Which table.
        table: Table,
        /// What file.
        form: Form,
        /// The outcomes that `finish` returned.
        runs: Vec<Recorded>,
    },
    /// Says what to deploy, by what somebody can change; `null` where there is nothing to choose from.
    Decide {
        /// The schemes, each with its runs in the order of their seeds.
        schemes: Vec<Candidate>,
    },
    /// Returns the scenarios of an experiment behind the papers' claims: those of its first seed.
    Experiment {
        /// The name of its file.
        file: String,
    },
}

/// What a worker keeps.
#[derive(Debug)]
pub struct Workbench {
    shelf: Shelf,
    job: Option<Job>,
    lanes: [Option<Watch>; LANES],
}

impl Default for Workbench {
    fn default() -> Self {
        Self::new()
    }
}

impl Workbench {
    /// Returns one that keeps nothing yet.
    pub const fn new() -> Self {
        Workbench { shelf: Shelf::new(), job: None, lanes: [const { None }; LANES] }
    }

    /// Answers one request: `{"ok": ...}`, or `{"error": "..."}` in the user's words.
    pub fn answer(&mut self, request: &[u8], file: &[u8]) -> String {
        let answer = match serde_json::from_slice(request) {
            Ok(request) => self.perform(request, file),
            Err(error) => Err(format!("the request cannot be read: {error}")),
        };
        match answer {
            Ok(value) => json!({ "ok": value }).to_string(),
            Err(message) => json!({ "error": message }).to_string(),
        }
    }

    /// Performs one request.
    pub fn perform(&mut self, request: Request, file: &[u8]) -> Result<Value, String> {
        match request {
            Request::Registry => registry(),
            Request::TraceFile { name, format, direction } => {
                self.shelf.keep_file(name, format.as_deref(), direction.as_deref(), file)
            }
            Request::TraceRecipe { name, recipe } => self.shelf.keep_recipe(name, recipe),
            Request::TraceShow { name } => self.shelf.show(&name),
            Request::TraceText { name } => Ok(json!({ "text": self.shelf.text(&name)? })),
            Request::Scenario { what } => what.describe(&self.shelf),
            Request::Begin { what, seed, at_most_s, series } => {
                let mut scenario = what.scenario(seed)?;
                if let Some(most) = at_most_s {
                    scenario.duration = scenario.duration.min(seconds(most)?);
                    scenario.measure_from = scenario.measure_from.min(scenario.duration / 2);
                }
                scenario.record.series = series;
                scenario.record.link_logs = false;
                let job = Job::begin(&scenario, &self.shelf)?;
                let state = job.state();
                self.job = Some(job);
                Ok(state)
            }
            Request::Advance { seconds: by } => {
                let job = self.job.as_mut().ok_or("no run was begun")?;
                job.advance(seconds(by)?);
                Ok(job.state())
            }
            Request::Finish => self.job.take().ok_or("no run was begun")?.finish(),
            Request::Watch { lane, what, seed } => {
                let place = self.lanes.get_mut(lane).ok_or_else(|| format!("there is no lane {lane}"))?;
                let watch = Watch::open(what.scenario(seed)?, &self.shelf)?;
                Ok(place.insert(watch).describe())
            }
            Request::Frame { lane, until_s } => {
                let watch = self.lanes.get_mut(lane).and_then(Option::as_mut).ok_or("nothing is watched")?;
                Ok(watch.frame(Time::ZERO + seconds(until_s)?)?)
            }
            Request::Part { one, other, seed } => {
                parting::find(&one.scenario(seed)?, &other.scenario(seed)?, &self.shelf)
            }
            Request::Table { table, form, runs } => table.file(form, &runs),
            Request::Decide { schemes } => decision::decide(schemes),
            Request::Experiment { file } => experiments::scenarios(&file, &self.shelf),
        }
    }
}

/// A length of simulated time that a request may ask for.
fn seconds(value: f64) -> Result<Duration, String> {
    if (0.0..=86_400.0).contains(&value) {
        Ok(Duration::from_secs_f64(value))
    } else {
        Err(format!("{value} s is no time: valid is 0 to 86400"))
    }
}

/// Everything that can be named, from the one registry.
fn registry() -> Result<Value, String> {
    let registry = Registry::standard();
    let lists = [
        listing::schemes(&registry),
        listing::controllers(&registry),
        listing::queues(&registry),
        listing::feedbacks(&registry),
        listing::elements(&registry),
        listing::radios(&registry),
        listing::applications(&registry),
        listing::traces().map_err(|error| error.to_string())?,
    ];
    let mut all: serde_json::Map<String, Value> =
        lists.into_iter().map(|list| (list.key.to_string(), Value::Array(list.json))).collect();
    all.insert("version".into(), json!(env!("CARGO_PKG_VERSION")));
    all.insert("recipes".into(), crate::traces::recipes());
    Ok(Value::Object(all))
}
