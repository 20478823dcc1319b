//! Fits today's links: `cargo run --release -p brakelight-traces --example fit_links -- FOLDER`
//! prints the recipes of the folder `traces` that hold `[measured]`, but for what they say about themselves.

use std::error::Error;
use std::path::Path;

use brakelight_traces::fit::measured::{LINKS, fit_measured, read_link};

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("give the folder of the recordings")?;
    for (name, sample, delay, kind) in LINKS {
        let recording = read_link(Path::new(&folder), sample, *delay)?;
        println!("# {name}: {sample}\n{}", fit_measured(&recording, *kind)?);
    }
    Ok(())
}
