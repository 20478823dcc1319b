//! The rounds: which links, round trips, buffers and other flows a sender meets.
//!
//! A set has a key, and round number n is drawn from the stream "arena n" of that key. Twelve rounds in a row
//! have every family of links with every kind of company.
//!
//! | what | drawn | unit |
//! |---|---|---|
//! | mean rate of a drawn link | logarithmic, 2 to 50 | Mbit/s |
//! | round trip | logarithmic, 10 to 200 | ms |
//! | buffer | logarithmic, 0.5 to 8, of the mean rate; at least 10 packets | bandwidth-delay products |
//! | `radio`: SNR, two fadings | 3 to 18; 3 to 8 over 1 to 15 s, 1 to 4 over 30 to 500 ms | dB |
//! | `radio`: outages, in half of them | every 3 to 20 s, for 30 ms to 1 s, exponent 1.5 | |
//! | `steps`: six rates | within a factor of 2 of the mean, for 0.2 to 4 s each | |
//! | `measured`: a recipe of this program with another seed | one of [`MEASURED`] | |
//! | `fixed`: one rate | | |
//! | flows, where there are several | 2, 4 or 8 | |

use brakelight_core::random::Random;
use brakelight_core::time::Duration;
use brakelight_core::units::Rate;
use brakelight_links::replay::Recorded;
use brakelight_links::trace::Trace;
use brakelight_registry::Registry;
use brakelight_scenario::buffer::packets;
use brakelight_scenario::file;
use brakelight_scenario::identity::sha256;
use brakelight_scenario::scenario::Scenario;
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::convert::to_mahimahi;
use brakelight_scenario::trace::embedded::Embedded;
use brakelight_scenario::trace::recipe::{Cellular, Fading, Outages, Recipe};
use brakelight_scenario::trace::{OPPORTUNITY, names::Names};
use brakelight_sim::Traces;

use crate::error::Error;
use crate::evaluate::Level;
use crate::output::File;

/// Rounds of the level `quick`, and of `full`. The first of `full` are those of `quick`.
const QUICK: usize = 48;
const FULL: usize = 240;
/// How long a round is, and from when on it counts: flows have started, and have had time to find the rate.
const DURATION: Duration = Duration::from_secs(30);
const MEASURED_FROM_S: u32 = 5;
/// The bytes of a full packet, and the payload in it.
const PACKET: f64 = 1500.0;
const PAYLOAD: f64 = 1448.0;
/// What a delivery opportunity of a trace counts for a full packet: see
/// [`LinkSpec::trace`](brakelight_scenario::scenario::LinkSpec::trace).
const COUNTED: f64 = 1504.0;
/// Whose recipes are drawn with other seeds.
const MEASURED: [&str; 4] = ["starlink", "wifi", "lte-walking", "fit-att-driving-down"];
/// Beside whom a sender competes.
const COMPETITORS: [&str; 2] = ["cubic", "bbr3"];
/// The fewest bytes of a key that nobody guesses.
const SHORTEST_KEY: usize = 16;
/// What keys belong to: other rounds would have another number here.
const VERSION: &str = "brakelight arena 1";

/// Where rounds come from.
#[derive(Clone, Debug)]
pub enum RoundSet {
    /// For whoever makes a sender.
    Train,
    /// For choosing among senders.
    Validation,
    /// Drawn from the SHA-256 of a key that its organizer keeps.
    Key(String),
    /// The links are recordings that their organizer keeps, each with its name; the rest is drawn from their
    /// contents.
    Links(Vec<(String, Trace)>),
}

impl RoundSet {
    /// Returns hidden rounds drawn from `key`.
    ///
    /// # Errors
    /// If it is shorter than 16 bytes, without white space at its ends.
    pub fn of_key(key: &[u8]) -> Result<Self, Error> {
        let key = key.trim_ascii();
        if key.len() < SHORTEST_KEY {
            let long = key.len();
            return Err(Error::Arena(format!(
                "the key has {long} bytes: valid are {SHORTEST_KEY} and more, such as those of `openssl rand -hex 32`"
            )));
        }
        Ok(RoundSet::Key(sha256(key)))
    }

    /// Returns rounds over the recordings in the folder of `names`, by their names.
    ///
    /// # Errors
    /// If there is none, or one cannot be read.
    pub fn of_folder(names: &Names) -> Result<Self, Error> {
        let mut links = Vec::new();
        for path in names.files() {
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            links.push((name, brakelight_scenario::trace::names::read(path)?));
        }
        links.sort_by(|(one, _), (other, _)| one.cmp(other));
        if links.is_empty() {
            return Err(Error::Arena("the folder holds no recording that can be read".to_string()));
        }
        Ok(RoundSet::Links(links))
    }

    /// Returns how many rounds each set has at a level.
    pub fn size(level: Level) -> usize {
        match level {
            Level::Quick => QUICK,
            Level::Full => FULL,
        }
    }

    /// Returns its name.
    pub fn name(&self) -> &'static str {
        match self {
            RoundSet::Train => "train",
            RoundSet::Validation => "validation",
            RoundSet::Key(_) | RoundSet::Links(_) => "hidden",
        }
    }

    /// Returns whether only its organizer may know its links.
    pub fn is_hidden(&self) -> bool {
        matches!(self, RoundSet::Key(_) | RoundSet::Links(_))
    }

    /// What its rounds are drawn from.
    fn key(&self) -> u64 {
        let text = match self {
            RoundSet::Train | RoundSet::Validation => self.name().to_string(),
            RoundSet::Key(digest) => format!("key {digest}"),
            RoundSet::Links(links) => {
                let digests = links.iter().map(|(_, trace)| sha256(to_mahimahi(trace).as_bytes()));
                format!("links {}", digests.collect::<Vec<_>>().join(" "))
            }
        };
        let digest = sha256(format!("{VERSION} {text}").as_bytes());
        u64::from_str_radix(&digest[..16], 16).unwrap_or_default()
    }
}

/// With whom a sender shares the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// With nobody.
    Alone,
    /// So many flows of its own.
    Several(u32),
    /// One flow of another sender.
    Beside(&'static str),
}

impl Kind {
    pub(super) fn is_beside(self) -> bool {
        matches!(self, Kind::Beside(_))
    }
}

/// What serves the link.
#[derive(Clone, Debug)]
enum Link {
    /// The trace of that name, and what it stands for.
    Trace { name: String, trace: Trace, about: String },
    /// Rates in kbit/s, each held for a while in ms.
    Steps(Vec<(u64, u64)>),
    /// A rate in kbit/s.
    Fixed(u64),
}

/// One link with all that shares it.
#[derive(Clone, Debug)]
pub struct Round {
    number: usize,
    pub(super) kind: Kind,
    link: Link,
    rtt_ms: u32,
    buffer_pkts: u32,
    is_hidden: bool,
}

/// Returns the rounds of `set`, and the traces that they use.
pub(super) fn draw(set: &RoundSet, level: Level) -> Result<(Vec<Round>, Traces), Error> {
    let count = RoundSet::size(level);
    let key = set.key();
    let rounds: Vec<Round> =
        (0..count).map(|number| Round::draw(set, key, number)).collect::<Result<_, _>>()?;
    let mut traces = Traces::new();
    for round in &rounds {
        if let Link::Trace { name, trace, .. } = &round.link {
            traces.insert(name.clone(), trace.clone());
        }
    }
    Ok((rounds, traces))
}

/// A number from a logarithmic distribution.
fn logarithmic(random: &mut Random, low: f64, high: f64) -> f64 {
    low * libm::exp(random.uniform() * libm::log(high / low))
}

fn uniform(random: &mut Random, low: f64, high: f64) -> f64 {
    low + random.uniform() * (high - low)
}

fn one_of<T: Copy>(random: &mut Random, list: &[T]) -> T {
    list[((random.uniform() * list.len() as f64) as usize).min(list.len() - 1)]
}

fn millis(ms: f64) -> Duration {
    Duration::from_millis(ms.round().max(1.0) as u64)
}

impl Round {
    fn draw(set: &RoundSet, key: u64, number: usize) -> Result<Self, Error> {
        let random = &mut Random::stream(key, &format!("arena {number}"));
        // Three kinds and four families: twelve rounds in a row have all pairs.
        let kind = match number % 3 {
            0 => Kind::Alone,
            1 => Kind::Several(one_of(random, &[2, 4, 8])),
            _ => Kind::Beside(COMPETITORS[number / 3 % COMPETITORS.len()]),
        };
        let rtt_ms = logarithmic(random, 10.0, 200.0).round();
        let products = logarithmic(random, 0.5, 8.0);
        let name = format!("arena-{}-{:02}", set.name(), number + 1);
        let link = match set {
            RoundSet::Links(links) => {
                let (about, trace) = &links[number % links.len()];
                Link::Trace { name, trace: capacity(trace), about: about.clone() }
            }
            _ => Link::draw(random, name, number % 4)?,
        };
        let buffer = packets(products, link.mean(), millis(rtt_ms));
        Ok(Round {
            number,
            kind,
            link,
            rtt_ms: rtt_ms as u32,
            buffer_pkts: buffer.max(10),
            is_hidden: set.is_hidden(),
        })
    }

    /// The propagation delay of the round trip, in ms.
    pub(super) fn rtt_ms(&self) -> f64 {
        f64::from(self.rtt_ms)
    }

    /// The share of the link's capacity that can be payload.
    pub(super) fn payload_share(&self) -> f64 {
        match self.link {
            Link::Trace { .. } => PAYLOAD / COUNTED,
            Link::Steps(_) | Link::Fixed(_) => PAYLOAD / PACKET,
        }
    }

    /// Its number, and what it is; of a hidden one only what a score shows anyway.
    pub(super) fn in_words(&self) -> String {
        let link = match &self.link {
            Link::Trace { about, .. } => about.clone(),
            Link::Steps(_) => "steps".to_string(),
            Link::Fixed(_) => "fixed".to_string(),
        };
        let company = match self.kind {
            Kind::Alone => "alone".to_string(),
            Kind::Several(flows) => format!("{flows} flows"),
            Kind::Beside(other) => format!("beside {other}"),
        };
        if self.is_hidden {
            return format!("{}: {company}", self.number + 1);
        }
        let mbps = self.link.mean().as_mbps_f64();
        format!(
            "{}: {link}, {mbps:.1} Mbit/s, {} ms, {} packets, {company}",
            self.number + 1,
            self.rtt_ms,
            self.buffer_pkts
        )
    }

    /// The scenario with `scheme` in it, as a file.
    fn text(&self, registry: &Registry, scheme: &Scheme) -> Result<String, Error> {
        let mut text = format!(
            "name = \"round-{:02}\"\nduration = \"{}s\"\nmeasure_from = \"{MEASURED_FROM_S}s\"\nseed = {}\n\n\
             [[link]]\nname = \"link\"\n",
            self.number + 1,
            DURATION.as_secs_f64(),
            self.number + 1
        );
        text += &match &self.link {
            Link::Trace { name, .. } => format!("trace = \"{name}\"\n"),
            Link::Fixed(kbps) => format!("rate = \"{kbps}kbps\"\n"),
            Link::Steps(steps) => {
                let steps = steps.iter().map(|(ms, kbps)| format!("[\"{ms}ms\", \"{kbps}kbps\"]"));
                format!("steps = [{}]\n", steps.collect::<Vec<_>>().join(", "))
            }
        };
        text += &format!("buffer = \"{}pkt\"\n", self.buffer_pkts);
        let count = if let Kind::Several(flows) = self.kind { flows } else { 1 };
        text += &self.flow("candidate", scheme, count);
        if let Kind::Beside(competitor) = self.kind {
            text += &self.flow("competitor", &Scheme::parse_with(registry, competitor)?, 1);
        }
        Ok(text)
    }

    fn flow(&self, name: &str, scheme: &Scheme, count: u32) -> String {
        let (controller, feedback) = (scheme.controller().words(), scheme.feedback().words());
        let count = if count > 1 { format!("count = {count}\n") } else { String::new() };
        format!(
            "\n[[flow]]\nname = \"{name}\"\n{count}controller = \"{controller}\"\nfeedback = \"{feedback}\"\n\
             rtt = \"{}ms\"\nstart_within = \"1s\"\npath = [\"link\"]\n",
            self.rtt_ms
        )
    }

    /// Returns the scenario with `scheme`, a sender of `registry`.
    pub(super) fn scenario(&self, registry: &Registry, scheme: &Scheme) -> Result<Scenario, Error> {
        let owner = format!("{scheme} in round {}", self.in_words());
        Ok(file::read_with(registry, &owner, &self.text(registry, scheme)?)?)
    }

    /// Returns the scenario with `scheme` as a file, and the trace of its link, if it has one.
    pub(super) fn files(&self, registry: &Registry, scheme: &Scheme) -> Result<Vec<File>, Error> {
        let name = format!("rounds/{:02}.toml", self.number + 1);
        let mut files = vec![File::new(name, self.text(registry, scheme)?)];
        if let Link::Trace { name, trace, .. } = &self.link {
            files.push(File::new(format!("traces/{name}"), to_mahimahi(trace)));
        }
        Ok(files)
    }
}

/// The opportunities of `trace`, without the delays and the loss that were recorded with them: these would
/// bound what any sender can reach.
fn capacity(trace: &Trace) -> Trace {
    let resolution = trace.resolution();
    trace.with_recorded(Recorded { resolution, forward: None, reverse: None, trains: None })
}

impl Link {
    fn draw(random: &mut Random, name: String, family: usize) -> Result<Self, Error> {
        let mbps = logarithmic(random, 2.0, 50.0);
        let recipe = match family {
            0 => Recipe {
                about: "radio".to_string(),
                duration: DURATION,
                seed: random.bits(),
                cellular: Some(radio(random, mbps)),
                measured: None,
                steps: Vec::new(),
            },
            1 => {
                let step = |random: &mut Random| {
                    let kbps = 1e3 * mbps * logarithmic(random, 0.5, 2.0);
                    (logarithmic(random, 200.0, 4000.0).round() as u64, kbps.round() as u64)
                };
                return Ok(Link::Steps((0..6).map(|_| step(random)).collect()));
            }
            2 => {
                let of = one_of(random, &MEASURED);
                let embedded =
                    Embedded::find(of).unwrap_or_else(|| unreachable!("a test draws every recipe"));
                let about = embedded.name.to_string();
                Recipe { about, duration: DURATION, seed: random.bits(), ..embedded.recipe() }
            }
            _ => return Ok(Link::Fixed((1e3 * mbps).round() as u64)),
        };
        let refuse = |error: &dyn std::fmt::Display| Error::Arena(format!("{name}: {error}"));
        let drawn = recipe.generate().map_err(|error| refuse(&error))?;
        // On the grid of the files that hold it, so that whoever replays a round has the same one.
        let trace = Trace::from_millis(drawn.millis()).map_err(|error| refuse(&error))?;
        Ok(Link::Trace { name, trace, about: recipe.about })
    }

    fn mean(&self) -> Rate {
        match self {
            Link::Trace { trace, .. } => trace.mean_rate(OPPORTUNITY),
            Link::Fixed(kbps) => Rate::from_bps(1000 * kbps),
            Link::Steps(steps) => {
                let time: u64 = steps.iter().map(|(ms, _)| ms).sum();
                let sum: u64 = steps.iter().map(|(ms, kbps)| ms * kbps).sum();
                Rate::from_bps(1000 * sum / time.max(1))
            }
        }
    }
}

/// A radio of that mean rate.
fn radio(random: &mut Random, mbps: f64) -> Cellular {
    let snr = uniform(random, 3.0, 18.0);
    let slow =
        Fading { sigma: uniform(random, 3.0, 8.0), lasts: millis(logarithmic(random, 1000.0, 15_000.0)) };
    let fast = Fading { sigma: uniform(random, 1.0, 4.0), lasts: millis(logarithmic(random, 30.0, 500.0)) };
    let burst = uniform(random, 1.0, 4.0);
    let every = millis(logarithmic(random, 3000.0, 20_000.0));
    let outages = Outages { every, shortest: millis(30.0), longest: millis(1000.0), exponent: 1.5 };
    Cellular {
        mean: Rate::from_bps((1e6 * mbps).round() as u64),
        snr,
        snr_limit: Cellular::DEFAULT_SNR_LIMIT,
        fading: vec![slow, fast],
        burst,
        slot: Cellular::DEFAULT_SLOT,
        outages: random.chance(0.5).then_some(outages),
        blockage: None,
        handover: None,
    }
}
