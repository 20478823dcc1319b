//! What `--out` names: a folder, with what `compare`, `run` and `emulate` write into it, or a file.

use std::path::Path;

use brakelight_files::file::Destination;
use brakelight_files::folder::Folder;
use brakelight_lab::Table;
use brakelight_lab::output::{self, Logs};
use brakelight_scenario::documents::Origin;

use crate::failure::Failure;
use crate::text;

/// Makes sure that a folder can be written, before any work is done for it.
pub fn folder(target: &Path) -> Result<Folder, Failure> {
    Ok(Folder::create(target, &mut say_removed)?)
}

/// Writes one file, whole or not at all; what is standard output by another name is printed.
pub fn file(path: &Path, contents: &str) -> Result<(), Failure> {
    match Destination::at(path)? {
        Destination::StandardOutput => text::print(contents),
        Destination::File(file) => Ok(file.write(contents, &mut say_removed)?),
    }
}

fn say_removed(path: &Path) {
    text::say(&format!("note: removed {}, which a run that was killed had left", path.display()));
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
