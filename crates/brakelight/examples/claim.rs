//! A claim of a paper, run and judged; and one of one's own.

use std::error::Error;

use brakelight::lab::reproduce::Judge;
use brakelight::prelude::*;
use brakelight::scenario::experiment;

const MINE: &str = "
id = \"MINE\"
title = \"ABC keeps the queue short\"
source = \"this example\"
schemes = [\"abc\", \"cubic\"]
traces = [\"step\"]
seeds = 3
duration = \"3s\"

[[claim]]
claim = \"ABC's p95 queueing delay is less than half of Cubic's\"
check = \"queueing_delay_ms.p95['abc'] < 0.5 * queueing_delay_ms.p95['cubic']\"
";

/// Judges both.
pub fn main() -> Result<(), Box<dyn Error>> {
    for claim in lab::reproduce(&["ABC-U1".into()])? {
        println!("{}: {:?}: {}", claim.id, claim.verdict, claim.claim);
    }
    let names = Names::from_environment()?;
    let judge = Judge { runner: &Simulator, names: &names, progress: &(), any_cost: false };
    for claim in judge.claims(&[experiment::read("mine.toml", MINE)?])? {
        println!("{}: {:?}: measured {}", claim.id, claim.verdict, claim.measured);
    }
    Ok(())
}
