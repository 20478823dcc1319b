//! A scenario made in code, and what came out of it.

use std::error::Error;

use brakelight::prelude::*;
use brakelight::scenario::file;

/// Two flows of different controllers share a link of 12 Mbit/s.
pub fn main() -> Result<(), Box<dyn Error>> {
    let queue = SchemeString::new("codel", &[("target", "20ms")])?;
    let link = LinkSpec::fixed("link", Rate::from_mbps(12), Limit::Packets(100), queue);
    let path = vec![Hop::Link(link.name.clone())];
    let flow = |name: &str| -> Result<FlowSpec, Box<dyn Error>> {
        let controller = SchemeString::new(name, &[])?;
        Ok(FlowSpec::new(name, controller, Duration::from_millis(60), path.clone()))
    };
    let duration = Duration::from_secs(10);
    let scenario = Scenario {
        name: "two flows".into(),
        seed: 1,
        duration,
        measure_from: Duration::from_secs(2),
        trace_offset: TraceOffset::At(Duration::ZERO),
        links: vec![link],
        flows: vec![flow("cubic")?, flow("bbr")?],
        record: Record::summary(duration),
    };
    scenario.validate().map_err(|invalid| invalid.problem.to_string())?;
    println!("{}", file::write(&scenario));
    let run = brakelight::sim::run(&scenario, &Traces::new())?.run;
    for flow in &run.flows {
        println!("{}: {:.2} Mbit/s", flow.name, flow.throughput_mbps);
    }
    Ok(())
}
