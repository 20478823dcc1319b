//! One row of `brakelight bench`, simulated once for a profiler: `scripts/instructions` counts what it costs.

use std::error::Error;
use std::io::Write as _;

use brakelight_sim::bench::Row;

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).ok_or("usage: instructions ROW")?;
    let row = Row::named(&name).ok_or_else(|| format!("unknown row `{name}`"))?;
    writeln!(std::io::stdout(), "{}", row.count()?)?;
    Ok(())
}
