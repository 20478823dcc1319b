//! Tests that a machine cannot run. All of them end here: [`skip`] says what was not run, and where every
//! test must run it fails instead.
//!
//! `BRAKELIGHT_REQUIRE=1` says that every test must run; `scripts/check` sets it in continuous integration
//! (`CI=true`). What may be left out even there is in [`MAY_SKIP`], with the reason.

use std::fmt::Display;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A test that may be left out where every test must run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaySkip {
    /// What is not run: the name that [`skip`] is given, or its beginning.
    pub what: &'static str,
    /// Only where the test does not run as root.
    pub only_without_root: bool,
    /// Why.
    pub reason: &'static str,
}

const fn without_root(what: &'static str) -> MaySkip {
    MaySkip {
        what,
        only_without_root: true,
        reason: "it needs root; the workflow runs the tests of these crates a second time as root",
    }
}

/// Everything that may be left out where every test must run.
pub const MAY_SKIP: &[MaySkip] = &[
    MaySkip {
        what: "recording ",
        only_without_root: false,
        reason: "the recordings of real links are not in the repository: their licences do not let it have them",
    },
    MaySkip {
        what: "busy machine: ",
        only_without_root: false,
        reason: "a run in real time says itself that its numbers do not hold",
    },
    without_root("devices under --out"),
    without_root("inputs under sudo"),
    without_root("the user behind sudo"),
    without_root("logs of the user behind sudo"),
    without_root("kernel: "),
    without_root("network: "),
];

/// Says on standard error that `what` is not run, and why.
///
/// # Panics
///
/// If the environment says that every test must run (`BRAKELIGHT_REQUIRE=1`) and [`MAY_SKIP`] does not have
/// `what`.
pub fn skip(what: &str, why: impl Display) {
    let required =
        std::env::var_os("BRAKELIGHT_REQUIRE").is_some_and(|value| !value.is_empty() && value != "0");
    match judge(what, required, is_root()) {
        Ok(()) => {
            // Not by a macro: those go to the test's own captured output, which nobody sees of a test that
            // passes.
            let _ = writeln!(std::io::stderr(), "NOT RUN: {what}: {why}");
        }
        Err(fault) => panic!("{what} was not run: {why}; {fault}"),
    }
}

/// Returns the path of `file` in the folder of recordings: the one that `BRAKELIGHT_SHARED` names, by default
/// `../shared` beside the workspace. Where it is not there, says so as [`skip`] does and returns `None`.
pub fn recording(file: &str) -> Option<PathBuf> {
    let shared = match std::env::var_os("BRAKELIGHT_SHARED") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
    };
    let path = shared.join(file);
    if path.exists() {
        return Some(path);
    }
    skip(&format!("recording {file}"), format_args!("it is not in {}", shared.display()));
    None
}

/// Fails if `what` may not be left out.
fn judge(what: &str, required: bool, root: bool) -> Result<(), String> {
    let may = MAY_SKIP.iter().any(|entry| what.starts_with(entry.what) && !(entry.only_without_root && root));
    if !required || may {
        Ok(())
    } else {
        Err("BRAKELIGHT_REQUIRE says that every test must run but those of crates/testkit/src/skip.rs"
            .to_string())
    }
}

/// Returns whether this process runs as root. Returns `false` where that cannot be told.
pub fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().nth(1));
    effective == Some("0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_every_test_must_run_only_what_the_list_has_may_be_left_out() {
        assert!(judge("anything", false, false).is_ok());
        assert!(judge("anything", true, false).is_err());
        assert!(judge("recording of a train", true, true).is_ok());
        assert!(judge("inputs under sudo", true, false).is_ok());
        assert!(judge("inputs under sudo", true, true).is_err());
    }

    /// A test that prints this by itself would pass where it must run.
    #[test]
    fn no_test_says_by_itself_that_it_was_not_run() {
        let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let mut folders = vec![std::path::PathBuf::from(crates)];
        let mut found = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() && !path.is_symlink() && !path.ends_with("target") {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "rs")
                    && !path.ends_with("testkit/src/skip.rs")
                {
                    let text = std::fs::read_to_string(&path).unwrap().to_lowercase();
                    let says =
                        ["\"not run", "\"did not run", "\"skipped:"].iter().any(|words| text.contains(words));
                    // The name of a command that an emulator must not have run.
                    if says && !path.ends_with("cli/tests/emulate.rs") {
                        found.push(path);
                    }
                }
            }
        }
        assert_eq!(found, [] as [std::path::PathBuf; 0], "these should call `skip`");
    }
}
