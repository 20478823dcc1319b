//! What the eBPF programs need of this machine.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use super::Scratch;

/// Why tests with these programs cannot run here; nothing if they can.
pub fn missing() -> Option<String> {
    // Tests run beside each other, and each asks.
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let scratch = format!("kernel-doctor-{}", ASKED.fetch_add(1, Ordering::Relaxed));
    // Fails if anything is missing, needed here or not.
    let doctor = Scratch::new(&scratch).brakelight(&["tcp", "doctor", "--format", "json"]);
    let checks: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let needed =
        ["programs may be loaded", "the kernel takes", "describes its own types", "passes the verifier"];
    for check in checks["checks"].as_array().unwrap() {
        let what = check["what"].as_str().unwrap();
        if check["verdict"] == "no" && needed.iter().any(|needed| what.contains(needed)) {
            return Some(format!("{what}: {} ({})", check["found"], check["advice"]));
        }
        let accecn = what.contains("counts bytes by mark") || what.contains("can ask for Accurate ECN");
        if accecn && check["verdict"] != "yes" {
            return Some(format!("{what}: {}", check["found"]));
        }
    }
    for (program, argument) in [
        ("ip", "-V"),
        ("tc", "-V"),
        ("ethtool", "--version"),
        ("nft", "--version"),
        ("socat", "-V"),
        ("bash", "--version"),
    ] {
        let run = Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !run.is_ok_and(|status| status.success()) {
            return Some(format!("no `{program}`: `scripts/setup test` installs it"));
        }
    }
    None
}
