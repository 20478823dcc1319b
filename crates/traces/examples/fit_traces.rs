//! Fits recipes to recordings: `cargo run --release -p brakelight-traces --example fit_traces -- FILE...`
//! prints one recipe for each. The recipes `traces/fit-*.toml` were made so.

use std::error::Error;
use std::path::Path;

use brakelight_traces::fit::{Effort, fit};
use brakelight_traces::names::read;

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn Error>> {
    for file in std::env::args().skip(1) {
        let recording = read(Path::new(&file))?;
        let mut fit = fit(&recording, Effort::default());
        let name = Path::new(&file).file_name().unwrap_or_default().to_string_lossy().into_owned();
        fit.recipe.about = format!(
            "An LTE link with the statistics of the recording {name}, of which it shares nothing else."
        );
        println!("# {name}: distance {:.2}, of this seed {:.2}", fit.distance, fit.distance_of_trace);
        println!("{}", fit.recipe);
    }
    Ok(())
}
