//! From a scenario's links and paths to the engine's elements and routes.
//!
//! Links are shared by everyone who names them; all other elements belong to one flow, except that flows
//! whose propagation delay is the same share one delay line, since a FIFO is all it is.
//!
//! Behind a link whose trace was recorded with delay or loss comes one element that replays them, for all who
//! pass the link. What was recorded in the other direction is replayed to those who come back from it, unless
//! a link on their way back replays a recording itself. Recorded delay takes the place of half the RTT in its
//! direction, as does the delay line of a link.

use std::collections::BTreeMap;

use brakelight_core::packet::{Duplicate, Tunnel};
use brakelight_core::path::Site;
use brakelight_core::time::Duration;
use brakelight_links::delay;
use brakelight_links::elements::{AnyElement, AnyService, ElementConfig, Role};
use brakelight_links::shaper::Side;
use brakelight_links::trace::Trace;
use brakelight_registry::AnyQueue;
use brakelight_scenario::build::site;
use brakelight_scenario::problem::InputError;
use brakelight_scenario::scenario::{Direction, FlowSpec, Hop, LinkSpec, Scenario, Service};
use brakelight_scenario::scheme_string::SchemeString;

use crate::engine::Routes;

/// The traces a scenario names, resolved.
pub type Traces = BTreeMap<String, Trace>;

/// Why a scenario could not be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A link's trace was not among those resolved.
    #[error("link `{link}`: its trace `{trace}` was not resolved")]
    MissingTrace {
        /// The link.
        link: String,
        /// The trace.
        trace: String,
    },
    /// A path names a link that does not exist.
    #[error("flow `{flow}`: its path names the unknown link `{link}`")]
    UnknownLink {
        /// The flow.
        flow: String,
        /// The link.
        link: String,
    },
    /// A flow can deliver more than its sender can count.
    #[error(transparent)]
    TooLong(#[from] InputError),
    /// A flow's ends cannot be what they should.
    #[error("flow `{flow}`: {reason}")]
    Host {
        /// The flow.
        flow: String,
        /// Why not.
        reason: String,
    },
}

/// Elements and routes. Links come first, in the scenario's order.
#[derive(Debug)]
pub struct Network<P> {
    /// The path elements.
    pub elements: Vec<AnyElement<P>>,
    /// Where each flow's packets go.
    pub routes: Routes,
    /// Per flow: the links on its way forward, in order.
    pub forward_links: Vec<Vec<usize>>,
}

impl<P: Duplicate> Network<P> {
    /// Builds what `scenario` describes.
    pub fn build(scenario: &Scenario, traces: &Traces) -> Result<Self, SetupError> {
        let links =
            scenario.links.iter().enumerate().map(|(index, link)| build_link(scenario, index, link, traces));
        let mut builder = Builder {
            scenario,
            traces,
            elements: links.collect::<Result<_, _>>()?,
            routes: Routes::default(),
            delays: BTreeMap::new(),
            replays: BTreeMap::new(),
            shared: BTreeMap::new(),
            shapers: BTreeMap::new(),
        };
        let mut forward_links = Vec::new();
        for flow in &scenario.flows {
            let links: Vec<usize> = flow
                .path
                .iter()
                .filter_map(|hop| match hop {
                    Hop::Link(name) => scenario.link(name),
                    Hop::Element(_) => None,
                })
                .collect();
            for index in 0..flow.count {
                let forward = builder.route(flow, index, Direction::Forward)?;
                let reverse = builder.route(flow, index, Direction::Reverse)?;
                builder.routes.assign(forward, reverse);
                forward_links.push(links.clone());
            }
        }
        Ok(Network { elements: builder.elements, routes: builder.routes, forward_links })
    }

    /// Returns the links that can be [joined](crate::engine::Engine::join) to the delay lines behind them,
    /// each with its line, by their positions among the elements. They are of fixed rate, only data passes
    /// them, and their queues are Brakelight's own: one from outside may tell others what it does, and when.
    pub fn joints(&self) -> Vec<(usize, usize)> {
        let mut pairs = self.routes.pairs();
        pairs.retain(|&(link, line)| match (&self.elements[link], &self.elements[line]) {
            (AnyElement::Link(link), AnyElement::Delay(line)) => match link.service() {
                AnyService::Fixed(fixed) if !matches!(link.queue(), AnyQueue::Custom(_)) => {
                    fixed.longest_transmission(LARGEST).is_some_and(|time| time < line.delay())
                }
                _ => false,
            },
            _ => false,
        });
        pairs
    }
}

/// No packet has more bytes at the IP layer, tunnels included.
const LARGEST: u32 = u16::MAX as u32 + Tunnel::MOST;

fn build_link<P: Duplicate>(
    scenario: &Scenario,
    index: usize,
    link: &LinkSpec,
    traces: &Traces,
) -> Result<AnyElement<P>, SetupError> {
    let name = match &link.service {
        Service::Trace(name) => name.as_str(),
        _ => "",
    };
    link.build(scenario.seed, index, traces.get(name), scenario.trace_offset)
        .ok_or_else(|| SetupError::MissingTrace { link: link.name.clone(), trace: name.to_string() })
}

struct Builder<'a, P> {
    scenario: &'a Scenario,
    traces: &'a Traces,
    elements: Vec<AnyElement<P>>,
    routes: Routes,
    /// Delay lines by their delay and direction.
    delays: BTreeMap<(Duration, bool), usize>,
    /// Replays of recorded delay and loss, by the place of their link and whether it is ahead.
    replays: BTreeMap<(usize, bool), usize>,
    /// Routes already laid, by the elements they pass.
    shared: BTreeMap<Vec<usize>, u32>,
    /// Shapers, by their options: one serves all flows that name it alike.
    shapers: BTreeMap<String, usize>,
}

impl<'a, P: Duplicate> Builder<'a, P> {
    /// The route of one direction of flow `index` of `flow`.
    fn route(&mut self, flow: &FlowSpec, index: u32, direction: Direction) -> Result<u32, SetupError> {
        let mut elements = Vec::new();
        let mut delayed = false;
        for (place, hop) in flow.hops(direction).iter().enumerate() {
            match hop {
                Hop::Link(name) => {
                    let link = self.scenario.link(name).ok_or_else(|| SetupError::UnknownLink {
                        flow: flow.name.clone(),
                        link: name.clone(),
                    })?;
                    elements.push(link);
                    delayed |= self.replay(link, Direction::Forward, &mut elements);
                    delayed |= !self.scenario.links[link].delay.is_zero();
                }
                Hop::Element(config) if config.role() == Role::Shaper => {
                    elements.push(self.shaper(flow, place, config));
                }
                Hop::Element(config) => {
                    let name = format!("{direction:?} {place} {} {}", config.name(), flow.name_of(index));
                    let element = config.build(self.site(&name));
                    elements.push(self.add(element));
                }
            }
        }
        if !flow.hops(direction).iter().any(|hop| self.is_recorded(hop)) {
            let back = flow.hops(direction.opposite()).iter().filter_map(|hop| self.link(hop));
            for link in back.collect::<Vec<_>>() {
                delayed |= self.replay(link, Direction::Reverse, &mut elements);
            }
        }
        let delay = flow.propagation(index, direction);
        if !delay.is_zero() && !delayed {
            elements.push(self.delay(delay, direction == Direction::Forward));
        }
        if direction == Direction::Reverse {
            self.pass_back(flow, &mut elements);
        }
        Ok(match self.shared.get(&elements) {
            Some(&route) => route,
            None => {
                let route = self.routes.add(&elements);
                self.shared.insert(elements, route);
                route
            }
        })
    }

    /// The shaper at `place` of the path of `flow`, which stands before or behind the nearest link on its
    /// side.
    fn shaper(&mut self, flow: &FlowSpec, place: usize, config: &SchemeString<ElementConfig>) -> usize {
        let key = config.words().to_string();
        if let Some(&element) = self.shapers.get(&key) {
            return element;
        }
        let mut element = config.build(self.site(&format!("shaper {key}")));
        let link = flow.shaped_link(place).and_then(|name| self.scenario.link(name));
        let service = link.and_then(|link| match &self.elements[link] {
            AnyElement::Link(link) => Some(link.service()),
            AnyElement::Restarting(link) => Some(link.link().service()),
            AnyElement::Delaying(link) => Some(link.link().service()),
            AnyElement::LightHeavy(link) => Some(link.link().service()),
            _ => None,
        });
        if let (Some(service), AnyElement::Shaper(shaper)) = (service, &mut element) {
            shaper.set_truth(service);
        }
        let element = self.add(element);
        self.shapers.insert(key, element);
        element
    }

    /// Lets what comes back pass the shapers of the path: first those behind the link, last those before it.
    fn pass_back(&self, flow: &FlowSpec, route: &mut Vec<usize>) {
        for hop in &flow.path {
            let Hop::Element(config) = hop else { continue };
            let ElementConfig::Shaper(settings) = &**config else { continue };
            let Some(&element) = self.shapers.get(&config.words().to_string()) else { continue };
            match settings.side {
                Side::Up => route.push(element),
                Side::Down => route.insert(0, element),
            }
        }
    }

    fn link(&self, hop: &Hop) -> Option<usize> {
        match hop {
            Hop::Link(name) => self.scenario.link(name),
            Hop::Element(_) => None,
        }
    }

    /// Whether delay or loss was recorded of the link's own direction.
    fn is_recorded(&self, hop: &Hop) -> bool {
        let link = self.link(hop).map(|link| &self.scenario.links[link]);
        link.is_some_and(|link| link.recorded(self.trace(link), Direction::Forward).is_some())
    }

    fn trace(&self, link: &LinkSpec) -> Option<&'a Trace> {
        self.traces.get(link.trace_name()?)
    }

    /// Adds what was recorded in the direction of `link`, or in the other one, to a route, if anything was.
    /// Returns `true` if that is a delay.
    fn replay(&mut self, link: usize, direction: Direction, route: &mut Vec<usize>) -> bool {
        let scenario = self.scenario;
        let spec = &scenario.links[link];
        let (trace, offset) = (self.trace(spec), scenario.trace_offset);
        let key = (link, direction == Direction::Forward);
        let Some(conditions) = spec.recorded(trace, direction) else { return false };
        let is_delay = !conditions.delays().is_empty();
        let known = self.replays.get(&key).copied();
        let element = known.or_else(|| {
            let built = spec.build_recorded(scenario.seed, trace, offset, direction)?;
            let element = self.add(built);
            self.replays.insert(key, element);
            Some(element)
        });
        route.extend(element);
        is_delay
    }

    fn delay(&mut self, delay: Duration, forward: bool) -> usize {
        if let Some(&element) = self.delays.get(&(delay, forward)) {
            return element;
        }
        let site = self.site("delay");
        // Half of a round trip, which the scenario's check bounds as the element does.
        let config = delay::Config::new(delay::Values { delay }).unwrap_or_else(|error| panic!("{error}"));
        let element = self.add(ElementConfig::Delay(config).build(site));
        self.delays.insert((delay, forward), element);
        element
    }

    /// What the next element gets of its own.
    fn site(&self, name: &str) -> Site {
        site(self.scenario.seed, name, self.elements.len())
    }

    fn add(&mut self, element: AnyElement<P>) -> usize {
        self.elements.push(element);
        self.elements.len() - 1
    }
}
