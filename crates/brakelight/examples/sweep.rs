//! A grid of runs to Parquet, or to CSV where the feature `parquet` is off.

use std::error::Error;

use brakelight::prelude::*;

/// Sweeps schemes, round trips and seeds into a folder below the system's temporary one.
pub fn main() -> Result<(), Box<dyn Error>> {
    let grid = Grid::new()
        .axis("scheme", ["abc", "cubic"])
        .axis("trace", ["lte-driving"])
        .axis("duration", ["2s"])
        .axis("rtt", ["20ms", "100ms"])
        .axis("link.forward.buffer", ["50pkt", "250pkt"]);
    let grid = Grid { runs: 2, ..grid };
    let sweep = Sweep::new(&grid, &Names::from_environment()?)?;
    sweep.check(false)?;
    let path = std::env::temp_dir().join(format!("brakelight-example-sweep-{}", std::process::id()));
    let folder = Folder { path: &path, shard: Shard::WHOLE, resume: true, figures: false };
    let written = folder.run(&sweep, &Simulator, &())?;
    println!("{} runs in {}:", written.runs, path.display());
    for file in &written.files {
        println!("  {}, {} bytes", file.display(), file.metadata()?.len());
    }
    std::fs::remove_dir_all(&path)?;
    Ok(())
}
