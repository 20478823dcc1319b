//! Where the simulator's instructions go, by part, as callgrind counts them. Counts do not depend on what
//! else a machine does, as times do.
//!
//! A part is told by the source file of each instruction, in inlined code too. Code of the standard library
//! counts for the file of the simulator that it stands in. A program without line tables does not tell its
//! files: then the function's name tells the part, and inlined code counts for the function around it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::process::{Command, ExitStatus};

use brakelight_scenario::documents::{PartProfile, PartsBy, SimProfile};

use super::callgrind::{Function, Profile, ProfileSyntaxError};
use super::rows::Row;

/// The program that counts.
const COUNTER: &str = "valgrind";

/// Nothing is counted outside this function: [`advance`](super::rows::advance).
const COUNTED: &str = "brakelight_lab::bench::rows::advance";

/// The parts, by the modules that belong to each, without `brakelight_`. The first that fits is taken.
const PARTS: &[(&str, &[&str])] = &[
    ("scheduler", &["sim::engine::schedule"]),
    ("engine", &["sim::engine", "sim::simulation"]),
    ("statistics", &["sim::statistics", "scenario::measure", "apps::distribution", "apps::histogram"]),
    ("queue", &["routers", "core::queue"]),
    ("path elements", &["links", "core::path", "core::dispatch"]),
    ("controller", &["senders::controller", "senders::any_controller", "core::controller", "estimates"]),
    ("receiver feedback", &["senders::feedback", "senders::any_feedback", "core::feedback"]),
    ("packet", &["sim::packet", "core::packet", "core::ecn"]),
    ("host", &["sim::host", "core::sender", "apps::"]),
];

/// The allocator, other libraries, and what is in none of the [`PARTS`].
const OTHER: &str = "other";

/// Why instructions could not be counted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// valgrind is not installed.
    #[error("{COUNTER} is not installed: it counts the instructions (`apt-get install valgrind`)")]
    NotInstalled,
    /// valgrind could not be started.
    #[error("{COUNTER}: {0}")]
    Start(io::Error),
    /// It failed, or the program under it did.
    #[error("{row}: {COUNTER} ended with {status}: {said}")]
    Failed {
        /// The row.
        row: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// What it printed on standard error.
        said: String,
    },
    /// The program did not print how many packets it delivered.
    #[error("{row}: `{printed}` was printed: valid is a number of packets above 0")]
    Packets {
        /// The row.
        row: &'static str,
        /// What was printed instead.
        printed: String,
    },
    /// What callgrind wrote is not in its format.
    #[error("{row}: the profile behind the number of packets, {error}")]
    Syntax {
        /// The row.
        row: &'static str,
        /// What is wrong with it.
        error: ProfileSyntaxError,
    },
    /// The function that is counted was not found.
    #[error(
        "{row}: no instruction was counted: the program has no symbol `{COUNTED}`, perhaps it is stripped"
    )]
    NothingCounted {
        /// The row.
        row: &'static str,
    },
}

/// Counts the instructions of `row`. `counted` is a program with its arguments that calls [`Row::count`] and
/// prints what it returns.
pub fn profile(row: &'static Row, counted: &[OsString]) -> Result<SimProfile, ProfileError> {
    let output = Command::new(COUNTER)
        // What the user set for other programs would change the counts.
        .args(["--command-line-only=yes", "-q", "--tool=callgrind"])
        .arg(format!("--toggle-collect={COUNTED}"))
        // Behind what the program prints.
        .arg("--callgrind-out-file=/dev/stdout")
        .args(counted)
        // Symbols of the system's libraries would be fetched from there.
        .env_remove("DEBUGINFOD_URLS")
        .output()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ProfileError::NotInstalled,
            _ => ProfileError::Start(error),
        })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
        return Err(ProfileError::Failed { row: row.name, status: output.status, said });
    }
    read(row, &String::from_utf8_lossy(&output.stdout))
}

/// Returns the profile of `row` in what was printed: the number of packets, and from the next line on what
/// callgrind wrote.
fn read(row: &'static Row, printed: &str) -> Result<SimProfile, ProfileError> {
    let (first, rest) = printed.split_once('\n').unwrap_or((printed, ""));
    let packets = first.parse().ok().filter(|packets| *packets > 0);
    let packets: u64 =
        packets.ok_or_else(|| ProfileError::Packets { row: row.name, printed: first.to_string() })?;
    let profile = Profile::parse(rest).map_err(|error| ProfileError::Syntax { row: row.name, error })?;
    if profile.instructions == 0 {
        return Err(ProfileError::NothingCounted { row: row.name });
    }
    let (parts_by, parts) = parts(&profile);
    let per_packet = |instructions: u64| instructions as f64 / packets as f64;
    Ok(SimProfile {
        name: row.name.to_string(),
        packets,
        instructions: profile.instructions,
        instructions_per_packet: per_packet(profile.instructions),
        parts_by,
        parts: parts
            .into_iter()
            .map(|(name, instructions)| PartProfile {
                name: name.to_string(),
                instructions_per_packet: per_packet(instructions),
                percent: 100.0 * instructions as f64 / profile.instructions as f64,
            })
            .collect(),
    })
}

/// The instructions of each part, most first.
fn parts(profile: &Profile) -> (PartsBy, Vec<(&'static str, u64)>) {
    let mut parts = BTreeMap::new();
    let mut add = |part, instructions| *parts.entry(part).or_insert(0) += instructions;
    let mut stretches = profile.functions.iter().flat_map(|function| &function.stretches);
    let has_files = stretches.any(|stretch| own(stretch.file).is_some());
    let parts_by = if has_files { PartsBy::Files } else { PartsBy::Functions };
    for function in &profile.functions {
        match parts_by {
            PartsBy::Files => {
                let mut part = part_of_file(function.file);
                for stretch in &function.stretches {
                    if own(stretch.file).is_some() {
                        part = part_of_file(stretch.file);
                    }
                    add(part, stretch.instructions);
                }
            }
            PartsBy::Functions => {
                let all = function.stretches.iter().map(|stretch| stretch.instructions).sum();
                add(part_of_function(function), all);
            }
        }
    }
    let mut parts: Vec<_> = parts.into_iter().filter(|(_, instructions)| *instructions > 0).collect();
    parts.sort_by_key(|(_, instructions)| std::cmp::Reverse(*instructions));
    (parts_by, parts)
}

/// The path of a source file of this repository, below the folder of the crates.
fn own(file: &str) -> Option<&str> {
    file.rsplit_once("/crates/").map(|(_, path)| path)
}

fn part_of_file(file: &str) -> &'static str {
    let module = own(file).map(|path| path.replacen("/src/", "::", 1).replace('/', "::"));
    module.and_then(|module| part(&module)).unwrap_or(OTHER)
}

/// The part of the first type or module in the function's name that has one: that of `Cubic` in
/// `<brakelight_senders::controller::cubic::Cubic as brakelight_core::controller::Controller>::on_ack`.
fn part_of_function(function: &Function) -> &'static str {
    function.name.split("brakelight_").skip(1).find_map(part).unwrap_or(OTHER)
}

/// The part that a module belongs to.
fn part(module: &str) -> Option<&'static str> {
    let found = PARTS.iter().find(|(_, begins)| begins.iter().any(|begin| module.starts_with(begin)));
    found.map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "100\n# callgrind format\npositions: line\nevents: Ir\n";

    fn s1() -> &'static Row {
        Row::named("S1").unwrap()
    }

    /// What `read` makes of a profile of 100 packets: how parts are known, and the instructions of each.
    fn parts_in(body: &str) -> (PartsBy, Vec<(String, f64)>) {
        let profile = read(s1(), &format!("{HEAD}{body}")).unwrap();
        let shares: f64 = profile.parts.iter().map(|part| part.percent).sum();
        assert!((shares - 100.0).abs() < 1e-9, "{profile:?}");
        let parts = profile.parts.into_iter().map(|part| (part.name, part.instructions_per_packet));
        (profile.parts_by, parts.collect())
    }

    fn own_parts(parts: &[(&str, f64)]) -> Vec<(String, f64)> {
        parts.iter().map(|(name, share)| (name.to_string(), *share)).collect()
    }

    #[test]
    fn parts_are_known_by_files_where_there_are_line_tables() {
        let body = "fl=(1) /home/me/crates/sim/src/engine/schedule.rs\nfn=(1) a\n1 100\n\
            fi=(2) /home/me/crates/links/src/link.rs\n1 300\nfi=(3) /rustc/library/core/src/mem.rs\n1 200\n\
            fl=(4) ./malloc.c\nfn=(2) malloc\n1 50\n\
            fl=(5) /home/me/crates/apps/src/histogram.rs\nfn=(3) brakelight_core::path::b\n1 400\n\
            fl=(6) /home/me/crates/apps/src/bulk.rs\nfn=(4) c\n1 150\n";
        let expected = own_parts(&[
            ("path elements", 5.0),
            ("statistics", 4.0),
            ("host", 1.5),
            ("scheduler", 1.0),
            ("other", 0.5),
        ]);
        assert_eq!(parts_in(body), (PartsBy::Files, expected));
    }

    #[test]
    fn parts_are_known_by_functions_where_there_are_no_line_tables() {
        let body = "fl=(1) ???\n\
            fn=(1) brakelight_sim::engine::schedule::Group::enter\n1 100\n\
            fn=(2) brakelight_sim::engine::Engine<P,L,E,O>::change'2\n1 600\n\
            fn=(3) brakelight_sim::host::sender::send::<impl brakelight_sim::host::sender::Sender>::emit\n1 500\n\
            fn=(4) <brakelight_registry::AnyController as brakelight_core::controller::Controller>::cwnd\n1 200\n\
            fn=(5) <brakelight_sim::host::FlowHost as brakelight_core::endpoint::Endpoint<brakelight_sim::packet::SimPacket>>::accept\n1 300\n\
            fn=(6) malloc\n1 50\n";
        let expected = own_parts(&[
            ("host", 8.0),
            ("engine", 6.0),
            ("controller", 2.0),
            ("scheduler", 1.0),
            ("other", 0.5),
        ]);
        assert_eq!(parts_in(body), (PartsBy::Functions, expected));
    }

    #[test]
    fn a_profile_has_its_totals() {
        let profile = read(s1(), &format!("{HEAD}fn=a\n1 250\n")).unwrap();
        assert_eq!((profile.name.as_str(), profile.packets, profile.instructions), ("S1", 100, 250));
        assert_eq!(profile.instructions_per_packet, 2.5);
    }

    #[test]
    fn what_is_no_profile_is_refused_with_its_reason() {
        for (printed, message) in [
            ("", "S1: `` was printed: valid is a number of packets above 0"),
            ("0\nevents: Ir\n", "S1: `0` was printed: valid is a number of packets above 0"),
            ("hello\n", "S1: `hello` was printed: valid is a number of packets above 0"),
            (
                "9\nevents: Ir\nhello\n",
                "S1: the profile behind the number of packets, line 2: `hello` is unknown: valid is a line of callgrind's format",
            ),
            (
                "9\nevents: Ir\nfn=a\n1 0\n",
                "S1: no instruction was counted: the program has no symbol `brakelight_lab::bench::rows::advance`, perhaps it is stripped",
            ),
        ] {
            assert_eq!(read(s1(), printed).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn every_module_of_the_parts_exists() {
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for module in PARTS.iter().flat_map(|(_, modules)| *modules) {
            let (name, rest) = module.split_once("::").unwrap_or((module, ""));
            let path = crates.join(name).join("src").join(rest.replace("::", "/"));
            assert!(path.is_dir() || path.with_extension("rs").is_file(), "{module}");
        }
    }
}
