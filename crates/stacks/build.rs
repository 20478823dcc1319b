//! Finds the versions of the stacks that this build has, in the workspace's lock file.

use std::path::Path;
use std::{env, fs};

/// Packages whose versions are wanted, and the least that is known of each without a lock file.
const STACKS: [(&str, &str, &str); 5] = [
    ("quinn-proto", "QUINN_VERSION", "0.11"),
    ("noq-proto", "NOQ_VERSION", "1.4"),
    ("s2n-quic-transport", "S2N_VERSION", "0.91"),
    ("quiche", "QUICHE_VERSION", "0.30"),
    ("str0m", "STR0M_VERSION", "0.24"),
];

fn main() {
    let folder = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let lock = Path::new(&folder).join("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let text = fs::read_to_string(&lock).unwrap_or_default();
    for (package, variable, least) in STACKS {
        let version = version(&text, package, least).unwrap_or_else(|| least.to_string());
        println!("cargo::rustc-env={variable}={version}");
    }
}

/// The version of `package` in a lock file that may have several: the one that begins with `least`. One that
/// comes from no registry is a working copy, and says so.
fn version(lock: &str, package: &str, least: &str) -> Option<String> {
    let name = format!("name = \"{package}\"");
    lock.split("[[package]]").filter(|block| block.lines().any(|line| line == name)).find_map(|block| {
        let value = |key: &str| {
            let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
            Some(line.trim_end_matches('"'))
        };
        let version = value("version").filter(|version| version.starts_with(least))?;
        let is_published = value("source").is_some_and(|source| source.starts_with("registry+"));
        Some(if is_published { version.to_string() } else { format!("{version}-working-copy") })
    })
}
