//! Who the hosts are that `--host` asks for.

use brakelight_lab::quinn::{self, QuicStack};
use brakelight_lab::{Runner, Simulator, run};
use brakelight_registry::Host;
use brakelight_scenario::scenario::{FlowSpec, Scenario};

use crate::arguments::HostName;

/// Gives every flow another host, and says how to run it; or which flow cannot have it, and why.
pub fn set(scenario: &mut Scenario, host: HostName) -> Result<&'static dyn Runner, String> {
    let hosted = |flow: &&FlowSpec| flow.controller.hosted().is_some();
    if let Some(flow) = scenario.flows.iter().find(hosted) {
        let (flow, controller) = (&flow.name, flow.controller.name());
        return Err(format!("flow `{flow}`: `{controller}` runs in its own host: leave --host out"));
    }
    let profile = match host {
        HostName::Tcp => Host::Tcp,
        HostName::Quic | HostName::Quinn => Host::Quic,
    };
    run::set_host(scenario, profile);
    if host != HostName::Quinn {
        return Ok(&Simulator);
    }
    quinn::check(scenario)?;
    Ok(&QuicStack)
}
