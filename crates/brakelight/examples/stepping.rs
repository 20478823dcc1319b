//! A run advanced step by step, cloned, and run on in two ways.

use std::error::Error;

use brakelight::prelude::*;

const SCENARIO: &str = "
duration = \"6s\"
link = [{ name = \"link\", rate = \"12Mbps\", buffer = \"100pkt\" }]
flow = [{ name = \"one\", controller = \"cubic\", rtt = \"40ms\", path = [\"link\"] }]
";

/// Steps through the first events, then ends two copies of the run.
pub fn main() -> Result<(), Box<dyn Error>> {
    let scenario = brakelight::scenario::file::read("stepping.toml", SCENARIO)?;
    let mut simulation = Simulation::new(&scenario, &Traces::new())?;
    for _ in 0..3 {
        println!("an event at {:?}", simulation.step());
    }
    while let Some(at) = simulation.advance_to_flow(0).filter(|at| *at < Time::ZERO + Duration::from_secs(1))
    {
        if simulation.delivered_packets() % 500 == 499 {
            println!("{at:?}: {} packets delivered", simulation.delivered_packets());
        }
    }
    let mut other = simulation.clone();
    simulation.advance(simulation.end());
    while other.step().is_some() {}
    let (first, second) = (simulation.finish()?, other.finish()?);
    assert_eq!(first, second, "the steps do not change what comes out");
    println!("{:.2} Mbit/s, however it was advanced", first.run.throughput_mbps);
    Ok(())
}
