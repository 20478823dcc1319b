//! Lists the files of the page, where it was built: nothing else must be there for this crate to be built.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let variable = |name: &str| PathBuf::from(env::var_os(name).expect("cargo sets it"));
    let page = variable("CARGO_MANIFEST_DIR").join("../../web/dist");
    // The folder above changes when the page is built for the first time, if there is such a folder.
    // (`dist/..` would not name it: a path through a folder that is missing leads nowhere.)
    let above = page.parent().expect("the page has a folder above it").to_path_buf();
    let watched = if page.is_dir() { page.clone() } else { above };
    println!("cargo:rerun-if-changed=build.rs");
    if watched.is_dir() {
        println!("cargo:rerun-if-changed={}", watched.display());
    }
    let list = if env::var_os("CARGO_FEATURE_EMBEDDED").is_some() { list(&page) } else { "&[]".to_string() };
    fs::write(variable("OUT_DIR").join("files.rs"), list).expect("cargo's folder can be written");
}

/// The files of the folder as Rust: their names and contents.
fn list(page: &Path) -> String {
    let entries = fs::read_dir(page).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        let name = file.file_name().expect("a file has a name").to_string_lossy();
        writeln!(list, "    ({name:?}, include_bytes!({file:?})),").expect("a string takes any text");
    }
    list + "]"
}
