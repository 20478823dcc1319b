//! A grid of runs. It may name no scenario: that file would be read.
#![no_main]

use std::path::Path;

use brakelight_lab::Grid;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if text.contains("scenario") {
        return;
    }
    if let Ok(grid) = Grid::parse(Path::new("grid.toml"), text) {
        let _ = grid.runs();
    }
});
