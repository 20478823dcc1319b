//! The real QUIC stack under the simulator's clock, beside the modelled host.

use std::error::Error;

use brakelight::core::registry::Host;
use brakelight::lab::{quinn::QuicStack, run};
use brakelight::prelude::*;

const SCENARIO: &str = "
name = \"one QUIC flow\"
duration = \"3s\"
link = [{ name = \"link\", rate = \"12Mbps\", buffer = \"100pkt\" }]
flow = [{ name = \"one\", controller = \"cubic\", rtt = \"40ms\", path = [\"link\"] }]
";

/// Runs the same scenario with both.
pub fn main() -> Result<(), Box<dyn Error>> {
    let mut scenario = brakelight::scenario::file::read("quic.toml", SCENARIO)?;
    run::set_host(&mut scenario, Host::Quic);
    let runners: [(&str, &dyn Runner); 2] = [("model", &Simulator), ("stack", &QuicStack)];
    for (name, runner) in runners {
        let table = run::run(&scenario, &Traces::new(), 1, runner, &())?;
        let row = &table.runs[0];
        println!("{name}: {:.2} Mbit/s, {:.2} % lost", row.throughput_mbps, row.loss_percent);
    }
    Ok(())
}
