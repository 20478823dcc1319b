//! Tells the program which commit it was built from, where that can be known: from the packaged crate's own
//! record, or from Git where this crate lies in its own repository and not merely somewhere inside another
//! one. Never fails.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let folder = Path::new(&folder);
    let mut version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    if let Some(commit) = packaged(folder).or_else(|| checked_out(folder)) {
        println!("cargo:rustc-env=BRAKELIGHT_GIT={commit}");
        version = format!("{version} ({commit})");
    }
    println!("cargo:rustc-env=BRAKELIGHT_VERSION={version}");
}

/// The commit that `cargo package` wrote down.
fn packaged(folder: &Path) -> Option<String> {
    let record = std::fs::read_to_string(folder.join(".cargo_vcs_info.json")).ok()?;
    let (_, rest) = record.split_once("\"sha1\"")?;
    let commit = rest.split('"').nth(1)?;
    is_commit(commit).then(|| commit[..12].to_string())
}

/// The commit that is checked out, and whether files differ from it.
fn checked_out(folder: &Path) -> Option<String> {
    // Unless Git tracks this very file, the repository around it is someone else's.
    git(folder, &["ls-files", "--error-unmatch", "Cargo.toml"])?;
    let commit = git(folder, &["rev-parse", "HEAD"])?;
    if !is_commit(&commit) {
        return None;
    }
    for file in ["HEAD", "logs/HEAD", "index"] {
        if let Some(path) = git(folder, &["rev-parse", "--git-path", file]) {
            println!("cargo:rerun-if-changed={}", folder.join(path).display());
        }
    }
    // What counts as changed is what the program is built from.
    let sources = folder.parent()?;
    println!("cargo:rerun-if-changed={}", sources.display());
    let changed = git(sources, &["status", "--porcelain", "--untracked-files=no", "--", "."])?;
    Some(format!("{}{}", &commit[..12], if changed.is_empty() { "" } else { "-modified" }))
}

fn is_commit(text: &str) -> bool {
    text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
}
