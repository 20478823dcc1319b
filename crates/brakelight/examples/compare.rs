//! Schemes on a trace, as a table.

use std::error::Error;

use brakelight::prelude::*;

/// Compares ABC with Cubic, alone and behind CoDel.
pub fn main() -> Result<(), Box<dyn Error>> {
    let request = Compare {
        traces: vec!["lte-driving".into()],
        schemes: Scheme::parse_list("abc,cubic,cubic+codel")?,
        duration: Some(Duration::from_secs(5)),
        runs: Some(2),
        ..Compare::default()
    };
    let table = lab::compare(&request)?;
    println!("{}", table.comparison(&Screen::default()));
    let best = table.overall();
    println!("most power: {}", best[0].scheme);
    Ok(())
}
