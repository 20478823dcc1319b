//! Lists the files of `experiments/` and `evaluations/`, so that adding one takes no second step.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    for folder in ["experiments", "evaluations"] {
        embed(folder);
    }
}

/// Writes a list of the names and texts of all files below `folder` that end in `.toml`.
fn embed(folder: &str) {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join(folder);
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix(&root).expect("it is below").to_string_lossy().replace('\\', "/");
        writeln!(list, "    ({name:?}, include_str!({file:?})),").expect("a string takes any text");
    }
    list.push(']');
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join(format!("{folder}.rs"));
    fs::write(&out, list).unwrap_or_else(|error| panic!("{}: {error}", out.display()));
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.map(|entry| entry.expect("a readable folder").path()) {
        // `experiments/ns2` holds files of another program.
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
}
