//! Schemes on recordings and on the traces fitted to them: `cargo run --release -p brakelight-sim --example
//! recorded_and_synthetic -- FOLDER` prints the last table of `docs/traces.md`.
//!
//! A run lasts a period of the trace. Recorded: the median of ten seeds of the run. Synthetic: the median of
//! ten seeds of the recipe, one run each, and the range of the middle eight, which is what one trace of the
//! same statistics differs from another by.

use std::error::Error;
use std::path::Path;

use brakelight_core::time::Duration;
use brakelight_links::trace::Trace;
use brakelight_scenario::compare::Compare;
use brakelight_scenario::outcome::Run;
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::embedded::{Embedded, FITTED};
use brakelight_scenario::trace::names::read;
use brakelight_sim::{Traces, run};

const SCHEMES: &[(&str, &str)] =
    &[("cubic", "cubic"), ("cubic+codel", "cubic+codel:target=50ms,interval=100ms"), ("abc", "abc")];

const SEEDS: u64 = 10;

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("give the folder of the recordings")?;
    println!("| recording | scheme | utilization %, recorded | synthetic | p95 ms, recorded | synthetic |");
    println!("|---|---|---|---|---|---|");
    for (name, recording) in FITTED {
        let recorded = read(&Path::new(&folder).join(recording))?;
        let recipe = Embedded::find(name).ok_or("a fitted recipe is embedded")?.recipe();
        let mut drawn = Vec::new();
        for seed in 1..=SEEDS {
            let mut recipe = recipe.clone();
            recipe.seed = seed;
            drawn.push(recipe.generate()?);
        }
        for (label, scheme) in SCHEMES {
            let scheme = Scheme::parse(scheme)?;
            let mut real = Results::default();
            let mut synthetic = Results::default();
            for (seed, trace) in (1..).zip(&drawn) {
                real.add(&one(&scheme, &recorded, recipe.duration, seed)?);
                synthetic.add(&one(&scheme, trace, recipe.duration, seed)?);
            }
            let ([utilisation, p95], [u, d]) = (real.quantiles(), synthetic.quantiles());
            println!(
                "| {recording} | {label} | {:.1} | {:.1} ({:.1} to {:.1}) | {:.0} | {:.0} ({:.0} to {:.0}) |",
                utilisation[1], u[1], u[0], u[2], p95[1], d[1], d[0], d[2]
            );
        }
    }
    Ok(())
}

fn one(scheme: &Scheme, trace: &Trace, duration: Duration, seed: u64) -> Result<Run, Box<dyn Error>> {
    let compare = Compare { seed, duration, ..Compare::mahimahi(scheme.clone(), "trace") };
    let traces = Traces::from([("trace".to_string(), trace.clone())]);
    Ok(run(&compare.scenario()?, &traces)?.run)
}

/// Utilisation in percent and 95th percentile of the queueing delay in milliseconds.
#[derive(Default)]
struct Results {
    utilisation: Vec<f64>,
    p95: Vec<f64>,
}

impl Results {
    fn add(&mut self, run: &Run) {
        self.utilisation.push(run.utilization * 100.0);
        self.p95.push(run.queueing_delay_ms.map_or(f64::NAN, |delay| delay.p95));
    }

    /// 10 %, 50 % and 90 % of each.
    fn quantiles(&mut self) -> [[f64; 3]; 2] {
        [&mut self.utilisation, &mut self.p95].map(|values| {
            values.sort_by(f64::total_cmp);
            [0.1, 0.5, 0.9].map(|share| {
                let place = share * (values.len() - 1) as f64;
                let (low, high) = (values[place.floor() as usize], values[place.ceil() as usize]);
                low + (high - low) * place.fract()
            })
        })
    }
}
