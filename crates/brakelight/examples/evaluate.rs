//! A controller judged by criteria of RFC 9743, as a test of it would.

use std::error::Error;

use brakelight::lab::evaluate::{self, Level};
use brakelight::prelude::*;

/// Judges a controller by what it does on wired paths, and one that grows too fast by what it does to others.
pub fn main() -> Result<(), Box<dyn Error>> {
    // With a controller of your own: `registry.add_controller::<Mine>()?`, and its name below.
    let registry = Registry::standard();
    let failed = evaluate::failures(&registry, "cubic", "rfc9743", Level::Quick, |file| file == "6.3-wired")?;
    assert!(failed.is_empty(), "{failed:?}");

    let aggressive = "newreno:beta=0.95";
    let failed =
        evaluate::failures(&registry, aggressive, "rfc9743", Level::Quick, |file| file == "5.2.1-standard")?;
    for criterion in failed {
        let point = criterion.deciding().expect("a number decides");
        println!("{}: {} where {} is the least", criterion.id, point.measured, point.bound);
    }
    Ok(())
}
