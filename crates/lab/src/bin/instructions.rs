//! Counts the instructions of rows of `brakelight bench`, and prints their profiles as JSON: what
//! `scripts/instructions` reads. A smaller program than the command, so that its line tables are small too.

use std::error::Error;
use std::ffi::OsString;
use std::io::Write as _;

use brakelight_lab::bench::profile::profile;
use brakelight_lab::bench::rows::Row;

/// Has a row simulated once in this process, for callgrind to count.
const COUNTED: &str = "--counted";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut out = std::io::stdout();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => return Err("usage: instructions ROW...".into()),
        [COUNTED, name] => writeln!(out, "{}", row(name)?.count()?)?,
        ref names => {
            let program = OsString::from(std::env::current_exe()?);
            let count = |name: &&str| -> Result<_, Box<dyn Error>> {
                Ok(profile(row(name)?, &[program.clone(), COUNTED.into(), name.into()])?)
            };
            let profiles = names.iter().map(count).collect::<Result<Vec<_>, _>>()?;
            writeln!(out, "{}", serde_json::to_string(&profiles)?)?;
        }
    }
    Ok(())
}

fn row(name: &str) -> Result<&'static Row, String> {
    Row::named(name).ok_or_else(|| format!("unknown row `{name}`: valid are {}", Row::names()))
}
