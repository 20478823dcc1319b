//! What `--out` names: a folder, with what `compare`, `run` and `emulate` write into it, or a file.

use std::path::Path;

use brakelight_files::file::Destination;
use brakelight_files::folder::{Folder, other_things};
use brakelight_lab::Table;
use brakelight_lab::figures::{self, Figure};
use brakelight_lab::output::{self, Logs};
use brakelight_scenario::documents::Origin;

use crate::failure::Failure;
use crate::text;

/// Files by which a folder is known to hold an earlier result.
const RESULTS: [&str; 11] = [
    "report.html",
    "arena.json",
    "claims.csv",
    "conformance.json",
    "evaluation.json",
    "figures.html",
    "runs.csv",
    "runs.json",
    "runs.jsonl",
    "stability.html",
    "parity.json",
];

/// Makes sure that a folder can be written, before any work is done for it. Refuses one that holds other
/// things than an earlier result, unless `force` says that they may stay beside the new one.
pub fn folder(target: &Path, force: bool) -> Result<Folder, Failure> {
    check_others("out", target, force)?;
    Ok(Folder::create(target, &mut say_removed)?)
}

/// Fails if the folder at `target`, which `--option` names, holds other things than an earlier result, unless
/// `force` is set.
pub fn check_others(option: &str, target: &Path, force: bool) -> Result<(), Failure> {
    match other_things(target, &RESULTS).filter(|_| !force) {
        None => Ok(()),
        Some(name) => Err(Failure::input(format!(
            "--{option} `{}`: the folder holds other files (`{name}`); give an empty or a new one, or --force",
            target.display()
        ))),
    }
}

/// Writes one file, whole or not at all; what is standard output by another name is printed.
pub fn file(path: &Path, contents: &str) -> Result<(), Failure> {
    match Destination::at(path)? {
        Destination::StandardOutput => text::print(contents),
        Destination::File(file) => Ok(file.write(contents, &mut say_removed)?),
    }
}

/// Writes one file that is no text, or to standard output, which must not be a terminal.
pub fn bytes(path: Option<&Path>, contents: &[u8]) -> Result<(), Failure> {
    match path.map(Destination::at).transpose()? {
        Some(Destination::File(file)) => Ok(file.write(contents, &mut say_removed)?),
        _ => text::print_bytes(contents),
    }
}

/// Says that what a killed run had left at `path` is gone.
pub fn say_removed(path: &Path) {
    text::say(&format!("note: removed {}, left by a run that was killed", path.display()));
}

/// Where `--figures` puts figures, if anywhere.
#[derive(Debug)]
pub struct Figures<'a>(Option<&'a Path>);

impl<'a> Figures<'a> {
    /// Makes sure that the folder can be written, as [`folder`] does, before any work is done for it. To be
    /// called before [`folder`]: one folder is in the making at a time.
    pub fn at(target: Option<&'a Path>, force: bool) -> Result<Self, Failure> {
        if let Some(target) = target {
            check_others("figures", target, force)?;
            // Given up at once, since `--out` may name another.
            Folder::create(target, &mut say_removed)?;
        }
        Ok(Figures(target))
    }

    /// Writes what `draw` draws, moves it into place, and says where it is.
    pub fn write(self, draw: impl FnOnce() -> Vec<Figure>) -> Result<(), Failure> {
        let Some(target) = self.0 else { return Ok(()) };
        let folder = Folder::create(target, &mut say_removed)?;
        for file in figures::files(&draw()) {
            folder.write(&file.name, file.contents)?;
        }
        text::say(&format!("figures: {}", folder.keep()?.join("figures.html").display()));
        Ok(())
    }
}

/// Writes everything, moves it into place, and says where it is.
pub fn write(folder: Folder, table: &Table, origin: &Origin, logs: Logs) -> Result<(), Failure> {
    for file in output::files(table, origin, logs) {
        let file = file?;
        folder.write(&file.name, file.contents)?;
    }
    let place = folder.keep()?;
    text::say(&format!("report: {}", place.join("report.html").display()));
    Ok(())
}
