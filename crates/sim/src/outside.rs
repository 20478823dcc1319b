//! Hosts from outside in the simulator: flows whose two ends are a transport that others wrote
//! ([`brakelight_core::host`]), beside flows of the modelled host.
//!
//! | file | holds |
//! |---|---|
//! | `flow` | both ends of one connection, with its application, as an endpoint of the engine |
//! | `bundle` | short connections that come and go, each such a flow |
//! | `inbox` | what has arrived and was not read yet |
//! | `payloads` | the payloads of packets on their way |
//! | `watch` | a run in a thread of its own, so that a stack that panics or hangs ends its own run alone |
//!
//! [`run`](crate::run) takes this way by itself for a scenario that has such a flow. Whoever steps a run
//! makes it with [`Simulation::with_hosts`](crate::Simulation::with_hosts) and [`host`].

mod bundle;
mod flow;
mod inbox;
mod payloads;
mod watch;

use std::collections::BTreeMap;

use brakelight_apps::call::FrameRecord;
use brakelight_apps::traffic::Traffic;
use brakelight_core::controller::ControllerFailure;
use brakelight_core::ecn::Mark;
use brakelight_core::endpoint::Endpoint;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_scenario::scenario::Scenario;

use crate::host::{FlowConfig, FlowHost};
use crate::packet::SimPacket;
use crate::report::{FlowCounters, Reporting, SenderView};
pub use bundle::HostedBundle;
use flow::Beacon;
pub use flow::HostedFlow;
pub use inbox::Inbox;
pub(crate) use watch::run;

/// Both ends of a flow: the modelled host's, or those of a host from outside.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // Of both there are few.
pub enum AnyHost {
    /// The modelled host.
    Modelled(FlowHost),
    /// A host from outside.
    Hosted(Box<HostedFlow>),
    /// Short connections of a host from outside.
    Bundled(Box<HostedBundle>),
}

impl AnyHost {
    /// Returns when a connection of a host from outside ended before its time, and why, if one did.
    pub fn closed(&self) -> Option<(Time, &str)> {
        match self {
            AnyHost::Modelled(_) => None,
            AnyHost::Hosted(flow) => flow.closed(),
            AnyHost::Bundled(bundle) => bundle.closed(),
        }
    }
}

/// Returns both ends of a flow: those of the host from outside that its controller lives in, or else the
/// modelled ones.
///
/// # Errors
/// The reason why the host from outside cannot have such a flow.
pub fn host(config: FlowConfig) -> Result<AnyHost, String> {
    host_told(config, &Beacon::default())
}

/// The same, where a host from outside tells `beacon` where it is.
fn host_told(config: FlowConfig, beacon: &Beacon) -> Result<AnyHost, String> {
    Ok(match (config.controller.hosted().cloned(), &config.traffic) {
        (None, _) => AnyHost::Modelled(FlowHost::new(config)),
        (Some(hosted), &Traffic::ShortFlows(law)) => {
            AnyHost::Bundled(Box::new(HostedBundle::new(config, law, &hosted, beacon)?))
        }
        (Some(hosted), _) => AnyHost::Hosted(Box::new(HostedFlow::new(config, &hosted, beacon)?)),
    })
}

/// Returns whether a flow of `scenario` lives in a host from outside.
pub fn is_needed(scenario: &Scenario) -> bool {
    scenario.flows.iter().any(|flow| flow.controller.hosted().is_some())
}

impl Endpoint<SimPacket> for AnyHost {
    fn accept(&mut self, now: Time, packet: SimPacket) {
        match self {
            AnyHost::Modelled(host) => host.accept(now, packet),
            AnyHost::Hosted(flow) => flow.accept(now, packet),
            AnyHost::Bundled(bundle) => bundle.accept(now, packet),
        }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<SimPacket> {
        match self {
            AnyHost::Modelled(host) => host.poll_transmit(now),
            AnyHost::Hosted(flow) => flow.poll_transmit(now),
            AnyHost::Bundled(bundle) => bundle.poll_transmit(now),
        }
    }

    fn is_at_rest(&mut self, now: Time) -> bool {
        match self {
            AnyHost::Modelled(host) => host.is_at_rest(now),
            AnyHost::Hosted(_) | AnyHost::Bundled(_) => false,
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        match self {
            AnyHost::Modelled(host) => host.next_wakeup(),
            AnyHost::Hosted(flow) => flow.next_wakeup(),
            AnyHost::Bundled(bundle) => bundle.next_wakeup(),
        }
    }

    fn release(&mut self, packet: SimPacket) {
        match self {
            AnyHost::Modelled(host) => host.release(packet),
            AnyHost::Hosted(flow) => flow.release(packet),
            AnyHost::Bundled(bundle) => bundle.release(packet),
        }
    }
}

impl Reporting for AnyHost {
    /// The name and the version of a host from outside are settings of its controller.
    const HOST: &'static str = brakelight_scenario::identity::MODELLED;

    fn counters(&self) -> FlowCounters {
        match self {
            AnyHost::Modelled(host) => Reporting::counters(host),
            AnyHost::Hosted(flow) => flow.counters(),
            AnyHost::Bundled(bundle) => bundle.counters(),
        }
    }

    fn take_rtt_sample(&mut self) -> Option<Duration> {
        match self {
            AnyHost::Modelled(host) => host.take_rtt_sample(),
            AnyHost::Hosted(flow) => flow.take_rtt_sample(),
            AnyHost::Bundled(bundle) => bundle.take_rtt_sample(),
        }
    }

    fn failure(&self) -> Option<&ControllerFailure> {
        match self {
            AnyHost::Modelled(host) => host.failure(),
            AnyHost::Hosted(_) | AnyHost::Bundled(_) => None,
        }
    }

    fn cwnd(&self) -> Bytes {
        match self {
            AnyHost::Modelled(host) => Reporting::cwnd(host),
            AnyHost::Hosted(flow) => flow.sender().cwnd,
            AnyHost::Bundled(_) => Bytes::ZERO,
        }
    }

    fn sender(&self) -> SenderView {
        match self {
            AnyHost::Modelled(host) => host.sender(),
            AnyHost::Hosted(flow) => flow.sender(),
            AnyHost::Bundled(bundle) => bundle.sender(),
        }
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        match self {
            AnyHost::Modelled(host) => host.inspect(visit),
            AnyHost::Hosted(flow) => flow.inspect(visit),
            AnyHost::Bundled(bundle) => bundle.inspect(visit),
        }
    }

    fn application(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        match self {
            AnyHost::Modelled(host) => host.application(now, visit),
            AnyHost::Hosted(flow) => flow.application(now, visit),
            AnyHost::Bundled(bundle) => bundle.application(visit),
        }
    }

    fn stages(&self, now: Time) -> BTreeMap<String, f64> {
        match self {
            AnyHost::Modelled(host) => host.stages(now),
            AnyHost::Hosted(_) | AnyHost::Bundled(_) => BTreeMap::new(),
        }
    }

    fn recorded_frames(&self) -> &[FrameRecord] {
        match self {
            AnyHost::Modelled(host) => host.recorded_frames(),
            AnyHost::Hosted(flow) => flow.recorded_frames(),
            AnyHost::Bundled(_) => &[],
        }
    }

    fn echoed_mark(&self, ack: &SimPacket) -> Option<Mark> {
        match self {
            AnyHost::Modelled(host) => host.echoed_mark(ack),
            AnyHost::Hosted(_) | AnyHost::Bundled(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
