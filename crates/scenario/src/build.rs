//! From a link as data to the path element that is it: the one place where simulator and emulator make their
//! links, so that both draw the same random numbers from the same seed.

use brakelight_core::packet::{Direction, Duplicate, PacketId};
use brakelight_core::parameters::ParameterError;
use brakelight_core::path::Site;
use brakelight_core::queue::Place;
use brakelight_core::random::Random;
use brakelight_core::time::Duration;
use brakelight_links::elements::{AnyElement, AnyService};
use brakelight_links::link::delaying::Delaying;
use brakelight_links::link::light_heavy::LightHeavy;
use brakelight_links::link::restart::Restarting;
use brakelight_links::link::{Link, Service as _, fixed, steps, traced};
use brakelight_links::replay::{Conditions, Replay};
use brakelight_links::trace::Trace;
use brakelight_links::trains::Trains;

use crate::scenario::{LinkSpec, Service, TraceOffset};

/// Returns what element number `index` gets of its own: a stream of random numbers, and identities for
/// packets it makes. Those have the top bit set; a host's never do.
pub fn site(seed: u64, name: &str, index: usize) -> Site {
    Site { random: Random::stream(seed, name), ids: PacketId(PacketId::FIRST_COPY | (index as u64) << 40) }
}

/// The settings of a link whose scenario was checked.
///
/// # Panics
/// If it was not, and they are outside their ranges.
fn checked<C>(config: Result<C, ParameterError>) -> C {
    config.unwrap_or_else(|error| panic!("a link of a scenario that was not checked: {error}"))
}

impl LinkSpec {
    /// Returns the link as element number `index` of a run with this seed, without packets. `trace` is what
    /// the service's name of a trace led to; a link whose service is another does not look at it.
    ///
    /// `None` if the service is a trace and none is given.
    pub fn build<P: Duplicate>(
        &self,
        seed: u64,
        index: usize,
        trace: Option<&Trace>,
        offset: TraceOffset,
    ) -> Option<AnyElement<P>> {
        let (opportunity, overhead, burst) = (self.opportunity, self.overhead, self.burst);
        let service = match &self.service {
            Service::Trace(_) => {
                let trace = trace?;
                let offset = self.offset(seed, trace, offset);
                let spread = self.spread;
                let values = traced::Values { opportunity, overhead, offset, spread };
                let config = checked(traced::Config::new(values));
                AnyService::Traced(traced::Traced::new(&config, trace.clone()))
            }
            &Service::Fixed(rate) => {
                let config =
                    checked(fixed::Config::new(fixed::Values { rate, overhead, opportunity, burst }));
                AnyService::Fixed(fixed::Fixed::new(&config))
            }
            Service::Steps(schedule) => {
                let config = checked(steps::Config::new(steps::Values {
                    schedule: steps::Schedule(schedule.steps.clone()),
                    repeat: schedule.repeat,
                    offset: Duration::ZERO,
                    overhead,
                    opportunity,
                }));
                AnyService::Steps(steps::Steps::new(&config))
            }
            Service::Radio(radio) => {
                let site = site(seed, &format!("radio {}", self.name), index);
                return Some(AnyElement::Radio(radio.build(&self.queue, self.buffer, site)));
            }
        };
        let random = Random::stream(seed, &format!("queue {}", self.name));
        let place = Place { limit: self.buffer, nominal: service.nominal(), random };
        let limit = place.limit;
        let queue = self.queue.build(&place);
        if !self.delay.is_zero() {
            return Some(AnyElement::Delaying(Box::new(Delaying::new(service, queue, self.delay, limit))));
        }
        if let Some((trains, trace)) = self.trains(trace).zip(trace) {
            let offset = self.offset(seed, trace, offset);
            let link = LightHeavy::new(service, queue, trains.clone(), offset);
            return Some(AnyElement::LightHeavy(Box::new(link)));
        }
        if self.restarts.is_empty() {
            return Some(AnyElement::Link(Link::new(service, queue)));
        }
        Some(AnyElement::Restarting(Box::new(Restarting::new(service, queue, self.restarts.clone()))))
    }

    /// Returns what was recorded of the path beside the capacity of this link: in its own direction, or with
    /// [`Direction::Reverse`] in the other one.
    pub fn recorded<'a>(&self, trace: Option<&'a Trace>, direction: Direction) -> Option<&'a Conditions> {
        self.trace_name()?;
        trace?.recorded()?.conditions(direction)
    }

    /// Returns the light trains that the link replays beside its trace, if they were recorded. A link that
    /// restarts, or has a delay line of its own, replays none: it has the heavy opportunities, and the base
    /// delays behind them.
    pub fn trains<'a>(&self, trace: Option<&'a Trace>) -> Option<&'a Trains> {
        self.trace_name()?;
        let plain = self.restarts.is_empty() && self.delay.is_zero();
        trace?.recorded()?.trains.as_ref().filter(|_| plain)
    }

    /// Returns the element that replays it, in step with the link; `None` where nothing was recorded, or
    /// where the link itself replays it with its light trains.
    pub fn build_recorded<P: Duplicate>(
        &self,
        seed: u64,
        trace: Option<&Trace>,
        offset: TraceOffset,
        direction: Direction,
    ) -> Option<AnyElement<P>> {
        let mut conditions = self.recorded(trace, direction)?.clone();
        if direction == Direction::Forward && self.trains(trace).is_some() {
            if conditions.losses().is_empty() {
                return None;
            }
            conditions = conditions.without_delays();
        }
        let offset = self.offset(seed, trace?, offset);
        let random = Random::stream(seed, &format!("recorded {} {direction:?}", self.name));
        Some(AnyElement::Replay(Box::new(Replay::new(conditions, offset, random))))
    }

    /// Where in `trace` a run begins.
    fn offset(&self, seed: u64, trace: &Trace, offset: TraceOffset) -> Duration {
        match offset {
            TraceOffset::At(offset) => offset,
            TraceOffset::Random => self.drawn_offset(seed, trace),
        }
    }

    /// Returns where in `trace` the link starts in a run with this seed whose offset is random.
    pub fn drawn_offset(&self, seed: u64, trace: &Trace) -> Duration {
        let mut random = Random::stream(seed, &format!("trace offset {}", self.name));
        trace.period().mul_f64(random.uniform())
    }

    /// Returns the name of the trace that serves the link, if one does.
    pub fn trace_name(&self) -> Option<&str> {
        match &self.service {
            Service::Trace(name) => Some(name),
            _ => None,
        }
    }
}
