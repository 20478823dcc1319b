//! What a packet costs with NewReno as a module, and built in: `cargo run --release -p brakelight-sandbox
//! --example cost`. Of five runs of each the quickest counts.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use brakelight_registry::Registry;
use brakelight_scenario::file;
use brakelight_sim::{Simulation, Traces};

const SCENARIO: &str = r#"
    duration = "60s"
    [[link]]
    name = "bottleneck"
    rate = "48Mbps"
    buffer = "400pkt"
    [[flow]]
    name = "one"
    controller = "NAME"
    rtt = "40ms"
    path = ["bottleneck"]
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut registry = Registry::standard();
    brakelight_sandbox::add_to(&mut registry)?;
    for name in ["newreno", "wasm"] {
        let scenario = file::read_with(&registry, "cost.toml", &SCENARIO.replace("NAME", name))?;
        let mut quickest = f64::INFINITY;
        let mut packets = 0;
        for _ in 0..5 {
            let mut simulation = Simulation::new(&scenario, &Traces::new())?;
            let begun = Instant::now();
            simulation.advance(simulation.end());
            quickest = quickest.min(begun.elapsed().as_secs_f64());
            packets = simulation.delivered_packets();
        }
        println!("{name}: {packets} packets, {:.0} ns for each", quickest * 1e9 / packets as f64);
    }
    Ok(())
}
