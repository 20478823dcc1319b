//! What `compare`, `run` and `emulate` write into the folder of `--out`.

use brakelight_lab::Table;
use brakelight_lab::output::{self, Logs};
use brakelight_scenario::documents::Origin;

use crate::failure::Failure;
use crate::folder::Folder;
use crate::text;

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
