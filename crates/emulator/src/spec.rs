//! One direction of the path as data, and its spelling on the command line.
//!
//! ```text
//! SPEC  = rate | steps | trace        12Mbps
//! steps = time:rate,time:rate,...     500ms:12Mbps,500ms:24Mbps       starts over after the last
//! trace = a known name, a Mahimahi trace file, or a recording (`.bltrace`)
//! queue = NAME[:option=value,...]     codel:target=20ms
//! element, likewise                   jitter:mean=5ms
//! ```
//!
//! A packet passes the link, then what was recorded of delay and loss with its trace, then the path elements,
//! then loss, then the delay line. A trace is counted as Mahimahi counts it, 1504 bytes an opportunity and 4
//! bytes for each packet's TUN header; rates are meant at the IP layer.

use brakelight_core::ecn::Encoding;
use brakelight_core::packet::Direction;
use brakelight_core::parameters::{ParameterError, Value as _};
use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_links::elements::{AnyElement, ElementConfig, Role};
use brakelight_links::link::steps::{self, Schedule};
use brakelight_links::replay::Conditions;
use brakelight_links::trace::Trace;
use brakelight_links::{delay, loss};
use brakelight_registry::{BuildError, ELEMENTS, QUEUES, QueueConfig, Registry};
use brakelight_scenario::build::site;
use brakelight_scenario::measure::describe_service;
use brakelight_scenario::scenario::{LinkSpec, Service, Steps, TraceOffset};
use brakelight_scenario::scheme_string::{SchemeString, Words};
use brakelight_scenario::trace::names::{NameError, Names};

use crate::classify::Classifier;
use crate::packet::{IpPacket, Reading};

/// One direction of the path.
#[derive(Clone, Debug)]
pub struct DirectionSpec {
    /// `up` or `down`; it also seeds the random streams.
    pub name: String,
    /// The link with its queue; `None` if the rate is not limited.
    pub link: Option<Bottleneck>,
    /// The link of the other direction, whose recording may have the delay and loss of this one; they are
    /// replayed unless this direction's own link brings a recording.
    pub opposite: Option<Bottleneck>,
    /// Path elements after the link, in order.
    pub elements: Vec<ElementConfig>,
    /// Probability, 0 to 1, that a packet is lost after the link.
    pub loss: f64,
    /// Propagation delay, added after all other elements.
    pub delay: Duration,
    /// Seed of all random streams.
    pub seed: u64,
    /// How a queue that tells flows apart knows its own.
    pub classifier: Classifier,
}

/// A link that can be built: its trace is found and its queue needs no more than an IP header.
#[derive(Clone, Debug)]
pub struct Bottleneck {
    spec: LinkSpec,
    trace: Option<Trace>,
    /// Where in its period the trace starts.
    pub offset: TraceOffset,
}

/// Why the specification of a direction is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The service is neither a rate nor steps nor a trace.
    #[error(
        "`{text}` is not a link: give a rate (`12Mbps`), steps (`500ms:12Mbps,500ms:24Mbps`), a Mahimahi trace file, or one of the \
         known traces {known}"
    )]
    Service {
        /// The words.
        text: String,
        /// The traces that have a name.
        known: String,
    },
    /// The steps are not right.
    #[error("steps `{text}`: {reason}")]
    Steps {
        /// The words.
        text: String,
        /// What is wrong, and what would be valid.
        reason: String,
    },
    /// The rate is out of range.
    #[error("rate `{rate}` is out of range: valid is 1bps to 1000Gbps")]
    Rate {
        /// The rate.
        rate: Rate,
    },
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] NameError),
    /// The words are not a queue's.
    #[error("`{text}` is not a queue such as `codel` or `codel:target=20ms,interval=100ms`")]
    Words {
        /// The words.
        text: String,
    },
    /// There is no such queue, or not with these options.
    #[error("queue: {0}")]
    Queue(#[from] BuildError),
    /// The queue writes a header that real packets do not have.
    #[error(
        "queue `{name}` needs a congestion header of its own, which real packets do not have: valid are {valid}"
    )]
    Header {
        /// The queue.
        name: &'static str,
        /// Those that work.
        valid: String,
    },
    /// The words are not a path element's.
    #[error("`{text}` is not a path element such as `reorder` or `jitter:mean=5ms`")]
    ElementWords {
        /// The words.
        text: String,
    },
    /// There is no such path element, or not with these options.
    #[error("{0}")]
    Element(BuildError),
    /// A tunnel's end, which needs another one behind it.
    #[error(
        "path element `{name}` is one end of a tunnel, which only a scenario can have: valid are {valid}"
    )]
    Tunnel {
        /// The element.
        name: &'static str,
        /// Those that work.
        valid: String,
    },
    /// A shaper's setter asks for what only a simulation has.
    #[error(
        "shaper: setter = `{name}` must know the link's true rate, which a shaper before real packets does not: \
         valid are setter=fixed/rate=20Mbps, setter=autorate, setter=follow"
    )]
    Setter {
        /// The setter.
        name: &'static str,
    },
    /// A scenario's link asks for what only a simulation has.
    #[error("link `{name}`: {reason}")]
    Link {
        /// The link.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

/// The default buffer, which is Mahimahi's.
pub const BUFFER: Limit = Limit::Packets(250);

impl DirectionSpec {
    /// Returns a direction that nothing limits, delays or loses.
    pub fn open(name: &str, seed: u64) -> Self {
        DirectionSpec {
            name: name.to_string(),
            link: None,
            opposite: None,
            elements: Vec::new(),
            loss: 0.0,
            delay: Duration::ZERO,
            seed,
            classifier: Classifier::default(),
        }
    }

    /// Returns `true` if its queue tells flows apart, so that [`DirectionSpec::classifier`] matters.
    pub fn tells_flows_apart(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.spec.queue.tells_flows_apart())
    }

    /// Returns its elements in the order in which packets pass them. The link, if there is one, is the first.
    ///
    /// # Panics
    /// If `loss` is no probability, or `delay` longer than the delay line's most, an hour.
    pub fn build(&self) -> Vec<AnyElement<IpPacket>> {
        let mut elements: Vec<_> = self.link.iter().map(|link| link.build(self.seed)).collect();
        if let Some((link, direction)) = self.recorded() {
            elements.extend(link.build_recorded(self.seed, direction));
        }
        let refused = |error: ParameterError| -> ! { panic!("direction `{}`: {error}", self.name) };
        let loss = (self.loss > 0.0).then(|| {
            loss::Config::new(loss::Values { rate: self.loss }).unwrap_or_else(|error| refused(error))
        });
        let delay = (!self.delay.is_zero()).then(|| {
            delay::Config::new(delay::Values { delay: self.delay }).unwrap_or_else(|error| refused(error))
        });
        let (loss, delay) = (loss.map(ElementConfig::Loss), delay.map(ElementConfig::Delay));
        for config in self.elements.iter().chain(&loss).chain(&delay) {
            let index = elements.len();
            let name = format!("{} {index} {}", self.name, config.name());
            elements.push(config.build(site(self.seed, &name, index)));
        }
        elements
    }

    /// Returns its link in words, for people.
    pub fn words(&self) -> String {
        match &self.link {
            Some(link) => {
                let spec = link.spec();
                format!("{}, {}, {}", describe_service(&spec.service), spec.queue.words(), spec.buffer)
            }
            None => "no link".to_string(),
        }
    }

    /// The link whose recording is replayed to packets of this direction, and which part of it.
    fn recorded(&self) -> Option<(&Bottleneck, Direction)> {
        let own = self.link.as_ref().map(|link| (link, Direction::Forward));
        let opposite = self.opposite.as_ref().map(|link| (link, Direction::Reverse));
        own.into_iter().chain(opposite).find(|(link, direction)| link.recorded(*direction).is_some())
    }

    /// The recorded delay and loss that are replayed to its packets.
    pub(crate) fn recorded_conditions(&self) -> Option<&Conditions> {
        self.recorded().and_then(|(link, direction)| link.recorded(direction))
    }

    /// Returns `true` if recorded delay is replayed to its packets.
    pub fn replays_delay(&self) -> bool {
        self.recorded_conditions().is_some_and(|conditions| !conditions.delays().is_empty())
    }

    /// Returns how its flows' ECN bits are read.
    pub fn reading(&self) -> Reading {
        match &self.link {
            Some(link) => reading(&link.spec.queue, self.classifier),
            None => Reading::all(Encoding::Classic),
        }
    }
}

impl Bottleneck {
    /// Parses a link called `name` from the specifications of its service and its queue.
    pub fn parse(
        name: &str,
        service: &str,
        queue: &str,
        buffer: Limit,
        names: &Names,
    ) -> Result<Self, SpecError> {
        Self::parse_with(&Registry::standard(), name, service, queue, buffer, names)
    }

    /// Parses a link as [`Bottleneck::parse`] does, with a queue of `registry`.
    pub fn parse_with(
        registry: &Registry,
        name: &str,
        service: &str,
        queue: &str,
        buffer: Limit,
        names: &Names,
    ) -> Result<Self, SpecError> {
        let queue = parse_queue_with(registry, queue)?;
        let (service, trace) = parse_service(service, names)?;
        let spec = match &service {
            Service::Trace(text) => LinkSpec::trace(name, text, buffer, queue),
            _ => LinkSpec {
                name: name.to_string(),
                service,
                buffer,
                queue,
                opportunity: LinkSpec::PLAIN_OPPORTUNITY,
                overhead: Bytes::ZERO,
                spread: false,
                restarts: Vec::new(),
                burst: Bytes::ZERO,
                delay: Duration::ZERO,
            },
        };
        Ok(Bottleneck { spec, trace, offset: TraceOffset::At(Duration::ZERO) })
    }

    /// Returns a scenario's link; `trace` is what its service's name of a trace led to.
    pub fn of_scenario(spec: LinkSpec, trace: Option<Trace>, offset: TraceOffset) -> Result<Self, SpecError> {
        usable(&spec.queue)?;
        let refuse = |reason: &str| SpecError::Link { name: spec.name.clone(), reason: reason.to_string() };
        match &spec.service {
            Service::Radio(_) => Err(refuse("the emulator has no radio: give `trace`, `rate` or `steps`")),
            Service::Trace(name) if trace.is_none() => Err(refuse(&format!("trace `{name}` was not loaded"))),
            _ => Ok(Bottleneck { spec, trace, offset }),
        }
    }

    /// Returns its specification.
    pub fn spec(&self) -> &LinkSpec {
        &self.spec
    }

    /// Returns its trace, if a trace serves it.
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    fn recorded(&self, direction: Direction) -> Option<&Conditions> {
        self.spec.recorded(self.trace.as_ref(), direction)
    }

    fn build_recorded(&self, seed: u64, direction: Direction) -> Option<AnyElement<IpPacket>> {
        self.spec.build_recorded(seed, self.trace.as_ref(), self.offset, direction)
    }

    /// The path element, without packets.
    fn build(&self, seed: u64) -> AnyElement<IpPacket> {
        self.spec
            .build(seed, 0, self.trace.as_ref(), self.offset)
            .expect("a link by trace is only made with its trace")
    }
}

/// Returns a queue that Brakelight brings, by name and options, if real packets can carry what it says.
pub fn parse_queue(text: &str) -> Result<SchemeString<QueueConfig>, SpecError> {
    parse_queue_with(&Registry::standard(), text)
}

/// Returns a queue of `registry` by name and options, if real packets can carry what it says.
pub fn parse_queue_with(registry: &Registry, text: &str) -> Result<SchemeString<QueueConfig>, SpecError> {
    let words = Words::parse(text).ok_or_else(|| SpecError::Words { text: text.to_string() })?;
    let queue = SchemeString::from_words_with(registry, words)?;
    usable(&queue)?;
    Ok(queue)
}

/// Returns a path element of `registry` by name and options.
pub fn parse_element_with(registry: &Registry, text: &str) -> Result<ElementConfig, SpecError> {
    let words = Words::parse(text).ok_or_else(|| SpecError::ElementWords { text: text.to_string() })?;
    let element =
        SchemeString::<ElementConfig>::from_words_with(registry, words).map_err(SpecError::Element)?;
    if is_tunnel(element.role()) {
        let alone = |name: &&str| ElementConfig::new(name, &[]).is_ok_and(|config| !is_tunnel(config.role()));
        let valid: Vec<_> = ELEMENTS.iter().map(|entry| entry.name).filter(alone).collect();
        return Err(SpecError::Tunnel { name: element.name(), valid: valid.join(", ") });
    }
    if let ElementConfig::Shaper(shaper) = &*element
        && shaper.setter.needs_link()
    {
        return Err(SpecError::Setter { name: shaper.setter.name() });
    }
    Ok((*element).clone())
}

fn is_tunnel(role: Role) -> bool {
    matches!(role, Role::TunnelBegins | Role::TunnelEnds)
}

fn usable(queue: &QueueConfig) -> Result<(), SpecError> {
    if queue.traits().writes.is_none() {
        return Ok(());
    }
    Err(SpecError::Header { name: queue.name(), valid: usable_queues().join(", ") })
}

/// Returns queues that need no header besides IP's.
pub fn usable_queues() -> Vec<&'static str> {
    let usable = |name: &&str| QueueConfig::new(name, &[]).is_ok_and(|queue| queue.traits().writes.is_none());
    QUEUES.iter().map(|entry| entry.name).filter(usable).collect()
}

/// When a link can send, and the trace if it goes by one. A known trace's name comes before all else, a file
/// after.
fn parse_service(text: &str, names: &Names) -> Result<(Service, Option<Trace>), SpecError> {
    let text = text.trim();
    if names.list().iter().any(|name| name == text) {
        return Ok((Service::Trace(text.to_string()), Some(names.load(text)?)));
    }
    if let Ok(rate) = text.parse::<Rate>() {
        if rate < Rate::from_bps(1) || rate > Rate::from_mbps(1_000_000) {
            return Err(SpecError::Rate { rate });
        }
        return Ok((Service::Fixed(rate), None));
    }
    match names.load(text) {
        Ok(trace) => Ok((Service::Trace(text.to_string()), Some(trace))),
        Err(NameError::Unknown { known, .. }) => match text.contains(':') {
            true => parse_steps(text).map(|steps| (Service::Steps(steps), None)),
            false => Err(SpecError::Service { text: text.to_string(), known: known.join(", ") }),
        },
        Err(error) => Err(error.into()),
    }
}

fn parse_steps(text: &str) -> Result<Steps, SpecError> {
    let refuse = |reason: String| SpecError::Steps { text: text.to_string(), reason };
    let spaced = text.replace(',', " ");
    let schedule = Schedule::parse(&spaced).map_err(|expected| refuse(format!("not {expected}")))?;
    // The element's own check knows the range.
    let config = steps::Config::new(steps::Values { schedule, ..steps::Values::default() })
        .map_err(|error| refuse(error.to_string()))?;
    Ok(Steps { steps: config.schedule.0.clone(), repeat: true })
}

/// How the ECN bits of flows at this queue are read.
fn reading(queue: &QueueConfig, classifier: Classifier) -> Reading {
    let encoding = queue.own_encoding().unwrap_or(Encoding::Classic);
    if queue.tells_flows_apart() {
        return Reading::of_those(classifier, encoding);
    }
    Reading::all(encoding)
}

#[cfg(test)]
mod tests;
