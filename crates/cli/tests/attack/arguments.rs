//! Hostile arguments and environments.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use brakelight_core::random::Random;

use super::Case;
use super::mutate::{below, pick, value};

/// Commands with their options. All of them end at once: where a valid line would wait for others, change the
/// machine or take long, something in it is wrong in any case.
const COMMANDS: &[(&[&str], &[&str])] = &[
    (
        &["compare", "--trace", "fixed", "--schemes", "cubic", "--duration", "100ms"],
        &[
            "--trace",
            "--schemes",
            "--against",
            "--rtt",
            "--buffer",
            "--seed",
            "--trace-offset",
            "--format",
            "--series",
            "--out",
        ],
    ),
    // Refused: only one of them is a number of seeds, or a length.
    (&["compare", "--trace", "fixed", "--format", "none"], &["--duration", "--runs", "--force"]),
    (&["run", "good.toml"], &["--host", "--format", "--series", "--out"]),
    (&["run", "missing.toml"], &["--runs", "--on", "--host", "--force", "--out"]),
    (
        &["stability", "--format", "none"],
        &["--flows", "--ratios", "--rate", "--rtt", "--eta", "--target", "--out"],
    ),
    (&["list"], &["--format", "", "schemes", "traces"]),
    (&["trace", "show"], &["--format", ""]),
    (&["trace", "synth", "fixed", "--duration", "100ms"], &["--seed", "--out"]),
    (&["trace", "synth"], &["--seed", ""]),
    (&["trace", "convert", "trace.down"], &["--from", "--to", "--bin", "--out"]),
    (&["reproduce"], &["--host", "--format", "missing.toml"]),
    (&["bench", "--format", "none"], &["--row", "--with-ns3", "--profile", "--counted"]),
    (&["parity", "missing.toml"], &["--runs", "--beside", "--duration", "--host", "--out"]),
    (
        &["perf", "127.0.0.1:1", "--pin", "none"],
        &["--controller", "--duration", "--bytes", "--connections", "--ca", "--qlog-limit"],
    ),
    (&["perf-server", "--cert", "missing.pem"], &["--listen", "--controller", "--key", "--qlog-limit"]),
    (
        &["tcp", "load", "--controller", "none"],
        &["--feedback", "--threshold", "--name", "--pacing", "--duration"],
    ),
    (&["tcp", "status", "--format", "none"], &["", "--name"]),
    (&["router", "attach", "no such device"], &["--rate", "--eta", "--buffer", "--from-qdisc", "--delta"]),
    (
        &["router", "qdisc", "set", "no such device"],
        &["--rate", "--parent", "--buffer", "--token-limit", "--x", "--encoding"],
    ),
    (
        &["shaper", "--device", "no such device"],
        &["--up", "--down", "--down-device", "--reflector", "--interval"],
    ),
    (
        &["emulate", "--seed", "none"],
        &[
            "--up",
            "--down",
            "--queue",
            "--up-queue",
            "--delay",
            "--loss",
            "--buffer",
            "--log",
            "--server",
            "--",
        ],
    ),
    (&[], &["", "--", "-", "--version=", "help", "compare", "-V0"]),
];

/// Variables that the command, its libraries or the C library read.
const VARIABLES: &[&str] = &[
    "BRAKELIGHT_TRACES",
    "SUDO_UID",
    "SUDO_GID",
    "SUDO_USER",
    "COLUMNS",
    "LINES",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "HOME",
    "PATH",
    "RAYON_NUM_THREADS",
    "RUST_MIN_STACK",
    "RUST_BACKTRACE",
    "TZ",
    "XDG_CACHE_HOME",
];

const GOOD: &str = "duration = \"100ms\"\n\n[[link]]\nname = \"up\"\nrate = \"12Mbps\"\nbuffer = \"250pkt\"\n\n\
    [[flow]]\ncontroller = \"cubic\"\nrtt = \"10ms\"\npath = [\"up\"]\n";

fn files() -> Vec<(String, Vec<u8>)> {
    let files = [
        ("good.toml", GOOD),
        ("trace.down", "1\n2\n5\n"),
        ("traces/mine", "1\n2\n"),
        ("traces/not-one", "x\n"),
    ];
    files.map(|(name, text)| (name.to_string(), text.into())).to_vec()
}

/// A value as the system takes it: any bytes but NUL.
fn given(random: &mut Random) -> OsString {
    let mut bytes = value(random).into_bytes();
    if below(random, 10) == 0 {
        bytes.extend([0xff, 0xfe, 0x80]);
    }
    bytes.retain(|&byte| byte != 0);
    // A line of more than 128 KiB is refused by the system.
    bytes.truncate(100_000);
    OsString::from_vec(bytes)
}

pub fn draw(random: &mut Random) -> Option<Case> {
    let (command, options) = *pick(random, COMMANDS);
    let mut arguments: Vec<OsString> = command.iter().map(OsString::from).collect();
    for _ in 0..1 + below(random, 4) {
        let option = *pick(random, options);
        let value = given(random);
        if option.starts_with("--") && below(random, 4) == 0 {
            let mut joined = OsString::from(option);
            joined.push("=");
            joined.push(value);
            arguments.push(joined);
        } else {
            if !option.is_empty() {
                arguments.push(option.into());
            }
            if below(random, 8) > 0 {
                arguments.push(value);
            }
        }
    }
    // Outputs go into the test's folder, or nowhere.
    let outside = arguments.iter().any(|argument| argument.to_string_lossy().contains('/'));
    (!outside).then(|| Case { kind: "arguments", files: files(), arguments, ..Case::default() })
}

pub fn draw_environment(random: &mut Random) -> Option<Case> {
    let lines: [&[&str]; 5] = [
        &["list", "traces"],
        &["trace", "show", "fixed"],
        &["run", "good.toml"],
        &["compare", "--trace", "mine", "--schemes", "cubic", "--duration", "100ms"],
        &["run", "good.toml", "--out", "report"],
    ];
    let arguments = pick(random, &lines).iter().map(OsString::from).collect();
    let mut environment = vec![("BRAKELIGHT_TRACES", OsString::from("traces"))];
    for _ in 0..1 + below(random, 3) {
        environment.push((*pick(random, VARIABLES), given(random)));
    }
    Some(Case { kind: "environment", files: files(), arguments, environment, may_fail: false })
}
