//! Hostile inputs, generated: files of every format that the command reads, its arguments, its environment.
//! Whatever they hold gives a result or one line and exit code 2: no panic, no abort, no hang, within 4 GB of
//! memory and 20 s.
//!
//! `BRAKELIGHT_ATTACK_INPUTS` says how many (200 unless said otherwise; `scripts/prove` has 2,000). Input N
//! is the same on every machine, and a failure names it: `BRAKELIGHT_ATTACK_ONLY=N` runs it alone and keeps
//! its files.

mod arguments;
mod corpus;
mod mutate;
#[path = "../support/mod.rs"]
mod support;

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use brakelight_core::random::Random;
use support::Scratch;

/// Address space of a run, in KiB.
const MOST_KIB: u64 = 4 << 20;
/// Time of all processors that a run may take, in seconds.
const MOST_SECONDS: u64 = 20;
/// Longer than a run that waits for nothing takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(240);

/// Inputs that something was found with: a tab in a message, 65,536 threads. They are run however few are
/// asked for.
const FOUND: &[u64] = &[470, 1467];

/// One input, and the command that is given it.
#[derive(Debug, Default)]
pub struct Case {
    /// What kind of input it is.
    pub kind: &'static str,
    /// Files by name.
    pub files: Vec<(String, Vec<u8>)>,
    /// The arguments.
    pub arguments: Vec<OsString>,
    /// What is set in the environment.
    pub environment: Vec<(&'static str, OsString)>,
    /// Whether exit code 1 may be the answer to a valid input: a claim that does not hold.
    pub may_fail: bool,
}

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Done,
    Failed,
    Refused,
}

fn draw(index: u64) -> Case {
    let mut random = Random::stream(index, "hostile inputs");
    // Inputs that are valid and long say nothing: others take their place.
    loop {
        let case = match (random.uniform() * 100.0) as u32 {
            0..70 => corpus::draw(&mut random),
            70..90 => arguments::draw(&mut random),
            _ => arguments::draw_environment(&mut random),
        };
        if let Some(case) = case {
            return case;
        }
    }
}

/// Runs a case in one folder, with what it prints in another, and fails with what was wrong about its end.
fn run(case: &Case, scratch: &Scratch, outputs: &Scratch) -> Result<End, String> {
    for (name, bytes) in &case.files {
        scratch.write(name, bytes);
    }
    let before = scratch.list();
    // Files, because a pipe that fills would be a hang of the test's own.
    let (stdout, stderr) = (outputs.path("stdout"), outputs.path("stderr"));
    let limits = format!("ulimit -v {MOST_KIB} && ulimit -t {MOST_SECONDS} && exec \"$@\"");
    let mut child = Command::new("/bin/sh")
        .args(["-c", &limits, "sh", env!("CARGO_BIN_EXE_brakelight")])
        .args(&case.arguments)
        .current_dir(scratch.path(""))
        .env_remove("BRAKELIGHT_TRACES")
        .env("RUST_BACKTRACE", "0")
        .envs(case.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(File::create(&stdout).unwrap())
        .stderr(File::create(&stderr).unwrap())
        .spawn()
        .unwrap();
    let until = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if Instant::now() > until {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let read = |path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    let end = judge(case, status, &read(&stdout), &read(&stderr));
    match end {
        Ok(End::Refused) if scratch.list() != before => Err("something was left behind".to_string()),
        end => end,
    }
}

fn judge(case: &Case, status: Option<ExitStatus>, stdout: &str, stderr: &str) -> Result<End, String> {
    let Some(status) = status else { return Err(format!("it hangs: no end after {PATIENCE:?}: {stderr}")) };
    if stderr.contains("panicked at") {
        return Err(format!("it panicked: {stderr}"));
    }
    if let Some(signal) = status.signal() {
        return Err(format!("signal {signal} ended it: {stderr}"));
    }
    match status.code() {
        Some(0) => Ok(End::Done),
        Some(1) if case.may_fail => Ok(End::Failed),
        Some(2) => {
            let complaint = stderr.strip_suffix('\n').unwrap_or(stderr);
            let one_line = complaint.starts_with("error: ") && !complaint.contains('\n');
            // Whoever says nothing at all gets the help.
            if !case.arguments.is_empty() && !one_line {
                return Err(format!("not one line: {stderr:?}"));
            }
            if complaint.chars().any(|c| c.is_control() && c != '\n') {
                return Err(format!("not fit for a terminal: {stderr:?}"));
            }
            if !stdout.is_empty() {
                return Err(format!("data although the input was wrong: {stdout:?}"));
            }
            Ok(End::Refused)
        }
        code => Err(format!("exit code {code:?}: {stderr}")),
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

/// The inputs are run by so many tests, each by its share.
const SHARES: u64 = 4;

/// Runs every [`SHARES`]th input, from `share` on.
fn no_input_makes_the_command_panic_abort_or_hang(share: u64) {
    let only = number("BRAKELIGHT_ATTACK_ONLY");
    let first = only.unwrap_or(0);
    let end = only.map_or_else(|| number("BRAKELIGHT_ATTACK_INPUTS").unwrap_or(200), |index| index + 1);
    let mut ends = std::collections::BTreeMap::new();
    let mut faults = Vec::new();
    let outputs = Scratch::new(&format!("attack-outputs-{share}"));
    let again = FOUND.iter().copied().filter(|index| only.is_none() && *index >= end);
    for index in (first..end).chain(again).filter(|index| index % SHARES == share) {
        let case = draw(index);
        let scratch = Scratch::new(&format!("attack-{share}"));
        match run(&case, &scratch, &outputs) {
            Ok(end) => *ends.entry((case.kind, end)).or_insert(0) += 1,
            Err(fault) => {
                let (arguments, environment) = (&case.arguments, &case.environment);
                faults.push(format!("input {index} ({}), {arguments:?} {environment:?}: {fault}", case.kind));
            }
        }
        if only.is_some() {
            let (arguments, folder) = (&case.arguments, scratch.path(""));
            eprintln!("{}: {arguments:?} {:?} in {}", case.kind, case.environment, folder.display());
            std::mem::forget(scratch);
        }
    }
    for ((kind, end), count) in &ends {
        eprintln!("{kind}: {count} {end:?}");
    }
    assert_eq!(faults, [] as [String; 0], "{} of {} inputs", faults.len(), (end - first) / SHARES);
    // A generator whose inputs are all refused at the first byte, or all valid, attacks nothing.
    let count =
        |end| ends.iter().filter(|((_, which), _)| *which == end).map(|(_, count)| count).sum::<u32>();
    if only.is_none() {
        assert!(count(End::Done) > 0 && count(End::Refused) > count(End::Done), "{ends:?}");
    }
}

#[test]
fn no_generated_input_makes_the_command_panic_abort_or_hang_0() {
    no_input_makes_the_command_panic_abort_or_hang(0);
}

#[test]
fn no_generated_input_makes_the_command_panic_abort_or_hang_1() {
    no_input_makes_the_command_panic_abort_or_hang(1);
}

#[test]
fn no_generated_input_makes_the_command_panic_abort_or_hang_2() {
    no_input_makes_the_command_panic_abort_or_hang(2);
}

#[test]
fn no_generated_input_makes_the_command_panic_abort_or_hang_3() {
    no_input_makes_the_command_panic_abort_or_hang(3);
}

#[test]
fn an_input_is_the_same_whenever_it_is_drawn() {
    for index in 0..50 {
        assert_eq!(format!("{:?}", draw(index)), format!("{:?}", draw(index)), "input {index}");
    }
}
