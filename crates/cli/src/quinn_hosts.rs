//! `quinn-hosts`: the process that has both ends of a scenario's QUIC flows on the emulator, whether quinn is
//! their stack or a host from outside. It runs on the
//! inner side, where its senders' sockets are, and inherits those of its receivers from the outer side;
//! between them lies the emulated path.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::PathBuf;

use brakelight_emulator::inherited;
use brakelight_emulator::outcome::LATE_MOST;
use brakelight_lab::{hosted, input, quinn};
use brakelight_quic::driver::measured::{self, FlowPlan};
use brakelight_registry::Registry;
use brakelight_scenario::documents::Runs;
use brakelight_sim::host::FlowConfig;
use brakelight_sim::simulation::flow_configs;
use clap::Args;

use crate::failure::Failure;

/// The command's name.
pub const COMMAND: &str = "quinn-hosts";

/// `quinn-hosts`.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// The scenario
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Where the document of the run goes
    #[arg(value_name = "RUN.json")]
    pub run: PathBuf,
    /// Where the time series go, if the scenario records them
    #[arg(value_name = "SERIES.json")]
    pub series: PathBuf,
}

/// Runs the command.
pub fn execute(registry: &Registry, arguments: &Arguments) -> Result<(), Failure> {
    let receivers = inherited::sockets().map_err(Failure::run)?;
    let scenario = input::scenario(registry, &arguments.scenario)?;
    let far = std::env::var("BRAKELIGHT_HOST").ok().and_then(|text| text.parse::<Ipv4Addr>().ok());
    let far =
        far.ok_or_else(|| Failure::run("$BRAKELIGHT_HOST is no address: this command is the emulator's"))?;
    let configs = flow_configs(&scenario);
    if receivers.len() != configs.len() {
        let (flows, sockets) = (configs.len(), receivers.len());
        return Err(Failure::run(format!(
            "{flows} flows inherit {sockets} sockets: this command is the emulator's"
        )));
    }
    let plan = |((name, config), receiver): ((String, FlowConfig), UdpSocket)| {
        if config.controller.hosted().is_some() {
            return hosted::plan(name, config, receiver);
        }
        FlowPlan::of(name, quinn::settings(&config), config.mss, receiver)
    };
    let flows = configs.into_iter().zip(receivers).map(plan).collect();
    let (run, series) = measured::run(&scenario, flows, IpAddr::V4(far), LATE_MOST).map_err(Failure::run)?;
    let write = |path: &PathBuf, json: serde_json::Result<String>| {
        let written = json.map_err(Failure::run).map(|json| std::fs::write(path, json))?;
        written.map_err(|error| Failure::run(format!("{}: {error}", path.display())))
    };
    write(&arguments.run, serde_json::to_string(&Runs { runs: vec![run], ..Runs::default() }))?;
    if scenario.record.series {
        write(&arguments.series, serde_json::to_string(&series))?;
    }
    Ok(())
}
