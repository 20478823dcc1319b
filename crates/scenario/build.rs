//! Lists the files of `experiments/`, so that adding one takes no second step.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("experiments");
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        let name = file.file_name().expect("a file has a name").to_string_lossy().into_owned();
        writeln!(list, "    ({name:?}, include_str!({file:?})),").expect("a string takes any text");
    }
    list.push(']');
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("experiments.rs");
    fs::write(&out, list).unwrap_or_else(|error| panic!("{}: {error}", out.display()));
}
