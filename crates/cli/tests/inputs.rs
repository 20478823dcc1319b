//! What is read: no more than a file of its kind may hold, and only what the user who called sudo may read.

mod support;

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::process::{Command, Output};

use support::{Scratch, TWO_FLOWS, ok, text};

/// Runs `brakelight` with 3 GiB of addresses, so that a file without an end ends in a failed allocation and
/// not in a full memory, and with so many seconds of processor time, after which the kernel kills it. A
/// machine's load makes a command wait, but not work longer.
fn confined(scratch: &Scratch, seconds: u32, arguments: &[&str]) -> Output {
    let limits = format!("ulimit -v 3145728; ulimit -t {seconds}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command
        .args(["-c", &limits, env!("CARGO_BIN_EXE_brakelight")])
        .args(arguments)
        .current_dir(scratch.path(""))
        .env_remove("BRAKELIGHT_TRACES");
    command.output().unwrap()
}

/// One line that says which limit was passed, exit code 2, and soon.
fn refused(scratch: &Scratch, arguments: &[&str], why: &str) {
    let output = confined(scratch, 20, arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(said.contains(why) && said.lines().count() == 1, "{arguments:?}: {said}");
}

#[test]
fn a_file_without_an_end_is_read_to_a_limit() {
    let scratch = Scratch::new("endless");
    let sparse = |name: &str| File::create(scratch.path(name)).unwrap().set_len(8 << 30).unwrap();
    ["sparse.toml", "sparse.down", "sparse.csv", "sparse.pem"].into_iter().for_each(sparse);
    scratch.write("link.toml", TWO_FLOWS.replacen("rate = \"12Mbps\"", "trace = \"/dev/zero\"", 1));
    for arguments in [
        &["run", "/dev/zero"][..],
        &["run", "sparse.toml"],
        &["run", "link.toml"],
        &["reproduce", "sparse.toml"],
        &["trace", "synth", "/dev/zero"],
        &["trace", "synth", "sparse.toml"],
        &["trace", "show", "/dev/zero"],
        &["trace", "show", "sparse.down"],
        &["trace", "convert", "/dev/zero"],
        &["trace", "convert", "sparse.csv"],
        &["trace", "convert", "sparse.csv", "--from", "csv"],
        &["trace", "convert", "sparse.csv", "--from", "pcap"],
        &["trace", "convert", "sparse.csv", "--from", "iperf3"],
        &["compare", "--trace", "sparse.down"],
        &["perf", "127.0.0.1:4433", "--ca", "/dev/zero"],
        &["perf", "127.0.0.1:4433", "--ca", "sparse.pem"],
        &["perf-server", "--listen", "127.0.0.1:0", "--cert", "sparse.pem", "--key", "sparse.pem"],
    ] {
        refused(&scratch, arguments, "the most that");
    }
}

#[test]
fn placeholders_do_not_expand_without_an_end() {
    let scratch = Scratch::new("placeholders");
    let long = "a".repeat(60_000);
    let many = "{x}".repeat(60_000);
    scratch.write(
        "big.toml",
        format!(
            "id = \"X\"\ntitle = \"t\"\nsource = \"s\"\nseeds = 1\nscenario = \"\"\"\n# {many}\n\"\"\"\n\
             sweep = {{ x = [\"{long}\"] }}\n[[claim]]\nclaim = \"c\"\ncheck = \"1 < 2\"\n"
        ),
    );
    refused(&scratch, &["reproduce", "big.toml"], "the most that");
}

#[test]
fn a_scenario_that_would_take_days_is_refused_with_its_estimate() {
    let scratch = Scratch::new("costly");
    let change = |from: &str, to: &str| TWO_FLOWS.replace(from, to);
    let links: String =
        (0..100_000).map(|n| format!("[[link]]\nname = \"l{n}\"\nrate = \"1Gbps\"\n")).collect();
    let traffic = |what: &str| change("controller = \"cubic\"", &format!("controller = \"cubic\"\n{what}"));
    for (name, scenario) in [
        ("fast", change("12Mbps", "10000Gbps").replace("10Mbps", "10000Gbps").replace("\"10s\"", "\"60s\"")),
        ("flows", change("name = \"early\"", "name = \"early\"\ncount = 999999")),
        ("on-off", traffic("traffic = { kind = \"on-off\", on = \"1ns\", off = \"1ns\" }")),
        ("links", TWO_FLOWS.to_string() + &links),
    ] {
        let file = format!("{name}.toml");
        scratch.write(&file, scenario);
        let output = confined(&scratch, 10, &["run", &file]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(said.lines().count() == 1 && said.len() < 400, "{name}: {said}");
        assert!(said.contains("estimate") && said.contains("--force"), "{name}: {said}");
    }
    // What is asked for by name is done.
    scratch.write("two.toml", TWO_FLOWS);
    ok(&scratch.brakelight(&["run", "two.toml", "--force"]));
}

/// A folder that everybody may enter, with one file that only root may read and one that everybody may.
struct Shared(PathBuf);

impl Shared {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("brakelight-inputs-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        Shared(folder)
    }

    fn write(&self, name: &str, contents: &str, mode: u32) -> String {
        let path = self.0.join(name);
        fs::write(&path, contents).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.display().to_string()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn under_sudo_only_what_the_user_may_read_is_read() {
    const NOBODY: u32 = 65534;
    let folder = Shared::new();
    let secret = folder.write("secret", "root:$6$hash:19000:0:99999:7:::\n", 0o600);
    if chown(&secret, Some(0), Some(0)).is_err() {
        brakelight_testkit::skip("inputs under sudo", "this is not root");
        return;
    }
    let toml = folder.write("secret.toml", "hash = \"$6$hash\"\n", 0o600);
    let public = folder.write("public.down", "1\n2\n", 0o644);
    let brakelight = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_brakelight"));
        command.args(arguments).current_dir(&folder.0).env_remove("BRAKELIGHT_TRACES");
        command.env("SUDO_UID", NOBODY.to_string()).env("SUDO_GID", NOBODY.to_string()).output().unwrap()
    };
    for arguments in [
        &["trace", "show", &secret][..],
        &["trace", "convert", &secret],
        &["trace", "synth", &secret],
        &["compare", "--trace", &secret],
        &["run", &toml],
        &["run", &toml, "--on", "emulator"],
        &["reproduce", &toml],
        &["sweep", &toml],
        &["trace", "fetch", "--catalogue", &toml],
        &["parity", &toml],
        &["emulate", "--up", &secret, "--", "true"],
        &["perf", "127.0.0.1:4433", "--ca", &secret],
        &["perf", "127.0.0.1:4433", "--token", &secret],
        &["perf-server", "--listen", "127.0.0.1:0", "--cert", &secret, "--key", &secret],
    ] {
        let output = brakelight(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("Permission denied"), "{arguments:?}: {said}");
        assert!(!said.contains("hash"), "{arguments:?} tells of what is in the file: {said}");
    }
    ok(&brakelight(&["trace", "show", &public]));
}
