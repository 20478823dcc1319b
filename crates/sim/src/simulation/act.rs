//! Acting upon a run. Every action takes effect at the present time, after the events that were performed and
//! before any other. The same actions at the same times give the same outcome.

use brakelight_core::endpoint::Endpoint;
use brakelight_core::packet::Direction;
use brakelight_core::parameters::ParameterError;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_links::delay;
use brakelight_links::elements::{AnyElement, Order};
use brakelight_links::link::adjusted;
use brakelight_links::varying_delay::VaryingDelay;

use super::Simulation;
use super::view::FlowPhase;
use crate::engine::Routed;
use crate::packet::SimPacket;
use crate::report::Reporting;

/// Why an action could not be taken. The run is as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ActionError {
    /// There are not so many flows.
    #[error("there is no flow number {flow}: the run has {count}, numbered from 0")]
    NoFlow {
        /// The number that was given.
        flow: usize,
        /// How many flows there are.
        count: usize,
    },
    /// There are not so many links.
    #[error("there is no link number {link}: the run has {count}, numbered from 0")]
    NoLink {
        /// The number that was given.
        link: usize,
        /// How many links there are.
        count: usize,
    },
    /// The flow decides for itself.
    #[error(
        "flow `{flow}`: its controller `{controller}` decides for itself: only `external` is driven from outside"
    )]
    NotExternal {
        /// The flow.
        flow: String,
        /// Its controller.
        controller: &'static str,
    },
    /// The link's rate cannot be set.
    #[error(
        "link `{link}`: the rate of a radio follows from its channel: only links with a trace, a rate or steps can be given another"
    )]
    Radio {
        /// The link.
        link: String,
    },
    /// The path has no delay line, or several.
    #[error("flow `{flow}`: its {} path has {lines} delay lines: it must have one", way(.direction))]
    NotOneDelay {
        /// The flow.
        flow: String,
        /// The way that was given.
        direction: Direction,
        /// How many delay lines that way has.
        lines: usize,
    },
    /// The path has no delay line: its delay is replayed.
    #[error(
        "flow `{flow}`: the delay of its {} path is replayed as it was recorded and cannot be set; a `delay` \
         element on the path can be, and adds to it",
        way(.direction)
    )]
    RecordedDelay {
        /// The flow.
        flow: String,
        /// The way that was given.
        direction: Direction,
    },
    /// The flow is at another point of its life.
    #[error("flow `{flow}` has {}: {action}", match .phase { FlowPhase::Waiting => "not started", FlowPhase::Running => "started", FlowPhase::Stopped => "stopped" })]
    Phase {
        /// The flow.
        flow: String,
        /// Where it is.
        phase: FlowPhase,
        /// What can be done, and when.
        action: &'static str,
    },
    /// The value is out of range.
    #[error(transparent)]
    OutOfRange(#[from] ParameterError),
}

fn way(direction: &Direction) -> &'static str {
    match direction {
        Direction::Forward => "forward",
        Direction::Reverse => "reverse",
    }
}

/// On links and paths, whatever the hosts are.
impl<E: Endpoint<SimPacket> + Reporting> Simulation<E> {
    /// Gives link number `link` another rate from now on, from zero, at which nothing moves, to 10 Tbit/s. It
    /// counts packets as it did before. A packet under way goes on at the new rate.
    ///
    /// It does not matter what served the link before: a trace or a schedule of steps ends here, and the link
    /// keeps the new rate until another is set. What it could have carried in the past does not change.
    ///
    /// # Errors
    /// If there is no such link, if it is a radio, whose rate follows from its channel, or if the rate is out
    /// of range.
    pub fn set_link_rate(&mut self, link: usize, rate: Rate) -> Result<(), ActionError> {
        let count = self.link_count();
        let spec = self.scenario.links.get(link).ok_or(ActionError::NoLink { link, count })?;
        if rate > adjusted::FASTEST {
            let range = format!("{} to {}", Rate::ZERO, adjusted::FASTEST);
            return Err(ParameterError::OutOfRange { name: "rate", value: rate.to_string(), range }.into());
        }
        let now = self.now();
        self.acted = true;
        if !self.engine.change_element(link, |element| element.set_rate(now, rate)) {
            return Err(ActionError::Radio { link: spec.name.clone() });
        }
        Ok(())
    }

    /// Changes the propagation delay of flow number `flow` in one direction from now on, from zero to an
    /// hour: that of its `delay` element, or else the half of its `rtt` that the path ends with. Other flows
    /// are not affected.
    ///
    /// What is under way arrives as it would have. After a longer delay was set to a shorter one, packets
    /// wait for those before them, unless `order` is [`Order::Free`]: then they overtake them.
    ///
    /// # Errors
    /// If there is no such flow, if its path has several delay lines in that direction or none, or if the
    /// delay is out of range. A path that replays recorded delay has a line only where it has a `delay`
    /// element; what is set there adds to what was recorded.
    pub fn set_delay(
        &mut self,
        flow: usize,
        direction: Direction,
        delay: Duration,
        order: Order,
    ) -> Result<(), ActionError> {
        self.check_flow(flow)?;
        delay::Config::new(delay::Values { delay })?;
        self.acted = true;
        let route = self.engine.route(flow, direction);
        let is_delay = |element: &AnyElement<SimPacket>| {
            matches!(element, AnyElement::Delay(_) | AnyElement::VaryingDelay(_))
        };
        let lines: Vec<usize> =
            route.iter().copied().filter(|&element| is_delay(&self.engine.elements()[element])).collect();
        let &[line] = lines.as_slice() else {
            let (flow, lines) = (self.flows[flow].name.clone(), lines.len());
            let replays = |element: &usize| match &self.engine.elements()[*element] {
                AnyElement::Replay(replay) => replay.delays(),
                AnyElement::LightHeavy(_) => true,
                _ => false,
            };
            if lines == 0 && route.iter().any(replays) {
                return Err(ActionError::RecordedDelay { flow, direction });
            }
            return Err(ActionError::NotOneDelay { flow, direction, lines });
        };
        let shared = match &self.engine.elements()[line] {
            AnyElement::Delay(shared) => shared,
            _ => {
                self.engine.change_element(line, |element| {
                    if let AnyElement::VaryingDelay(own) = element {
                        own.set(delay, order);
                    }
                });
                return Ok(());
            }
        };
        // Flows of equal delay share a line. From its first change on a flow has its own; the line before it
        // runs empty.
        let last = shared.last_departure(|packet| packet.endpoint() == flow);
        // At the same time either line could be first.
        let earliest = last.map_or(Time::ZERO, |last| last + Duration::from_nanos(1));
        let own = VaryingDelay::new(delay, order, earliest);
        let added = self.engine.add_element(AnyElement::VaryingDelay(Box::new(own)));
        self.engine.divert(flow, direction, line, added);
        Ok(())
    }

    fn check_flow(&self, flow: usize) -> Result<(), ActionError> {
        let count = self.flow_count();
        if flow < count { Ok(()) } else { Err(ActionError::NoFlow { flow, count }) }
    }
}

/// On flows of the modelled host.
impl Simulation {
    /// Sets the window of flow number `flow`, whose controller is `external`: from one packet to 1 TB of
    /// payload. Before the flow has started, it is the window that it will start with. Of a flow of short
    /// connections all have it, those to come too.
    ///
    /// # Errors
    /// If there is no such flow, if another controller decides for it, or if the window is out of range.
    pub fn set_window(&mut self, flow: usize, cwnd: Bytes) -> Result<(), ActionError> {
        self.check_external(flow)?;
        self.acted = true;
        Ok(self.engine.change_endpoint(flow, |host| host.set_window(cwnd))?)
    }

    /// Sets the pacing rate of flow number `flow`, whose controller is `external`: from 1 kbit/s to 10 Tbit/s
    /// of payload. `None` leaves pacing to the host: TCP's sends as ACKs come, QUIC's at 1.25 windows per
    /// smoothed RTT. Before the flow has started, it is the rate that it will start with. Of a flow of short
    /// connections all have it, those to come too.
    ///
    /// # Errors
    /// If there is no such flow, if another controller decides for it, or if the rate is out of range.
    pub fn set_pacing_rate(&mut self, flow: usize, rate: Option<Rate>) -> Result<(), ActionError> {
        self.check_external(flow)?;
        self.acted = true;
        Ok(self.engine.change_endpoint(flow, |host| host.set_pacing_rate(rate))?)
    }

    /// Keeps flow number `flow` from starting by itself: [`start_flow`](Self::start_flow) will start it.
    ///
    /// # Errors
    /// If there is no such flow, or if it has started or stopped.
    pub fn hold_flow(&mut self, flow: usize) -> Result<(), ActionError> {
        self.check_phase(flow, &[FlowPhase::Waiting], "only one that has not started can be held")?;
        self.acted = true;
        self.flows[flow].start = Time::MAX;
        self.engine.change_endpoint(flow, |host| host.hold());
        Ok(())
    }

    /// Starts flow number `flow` now, before its time or after it was held.
    ///
    /// # Errors
    /// If there is no such flow, or if it has started or stopped.
    pub fn start_flow(&mut self, flow: usize) -> Result<(), ActionError> {
        self.check_phase(flow, &[FlowPhase::Waiting], "a flow starts once")?;
        let now = self.now();
        self.acted = true;
        self.flows[flow].start = now;
        self.engine.change_endpoint(flow, |host| host.start(now));
        Ok(())
    }

    /// Stops flow number `flow` now, as its scenario's `stop` would: nothing is sent from now on that has not
    /// been sent, except again. One that has not started never will.
    ///
    /// # Errors
    /// If there is no such flow, or if it has stopped.
    pub fn stop_flow(&mut self, flow: usize) -> Result<(), ActionError> {
        self.check_phase(flow, &[FlowPhase::Waiting, FlowPhase::Running], "a flow stops once")?;
        let now = self.now();
        self.acted = true;
        self.flows[flow].stop = Some(now);
        self.engine.change_endpoint(flow, |host| host.stop(now));
        Ok(())
    }

    fn check_external(&self, flow: usize) -> Result<(), ActionError> {
        self.check_flow(flow)?;
        if self.engine.endpoints()[flow].is_external() {
            return Ok(());
        }
        let instance = &self.flows[flow];
        let controller = self.scenario.flows[instance.spec].controller.name();
        Err(ActionError::NotExternal { flow: instance.name.clone(), controller })
    }

    fn check_phase(&self, flow: usize, valid: &[FlowPhase], action: &'static str) -> Result<(), ActionError> {
        self.check_flow(flow)?;
        let instance = &self.flows[flow];
        let phase = instance.phase(self.now(), self.engine.endpoints()[flow].next_wakeup());
        if valid.contains(&phase) {
            return Ok(());
        }
        Err(ActionError::Phase { flow: instance.name.clone(), phase, action })
    }
}
