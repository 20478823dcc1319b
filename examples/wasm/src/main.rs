//! `brakelight-wasm-example SCENARIO.toml`: the outcome as JSON, as the module gives it.

use std::error::Error;
use std::io::Write;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("give the file of a scenario")?;
    let json = brakelight_wasm_example::outcome(&std::fs::read_to_string(file)?)?;
    std::io::stdout().write_all(json.as_bytes())?;
    Ok(())
}
