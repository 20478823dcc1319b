//! What the tests of the command share.
#![allow(dead_code, reason = "every test binary uses its own part of this")]

pub mod browser;
pub mod kernel;
pub mod world;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Far more than anything that a test waits for takes on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// How a line begins that says why a run in real time is not to be trusted.
pub const UNRELIABLE: &str = "unreliable: ";

/// The reasons why a run in real time is not to be trusted, in what it said.
pub fn unreliable(said: &str) -> Vec<String> {
    said.lines().filter_map(|line| line.strip_prefix(UNRELIABLE)).map(str::to_string).collect()
}

/// Judges a run in real time, which returns what is wrong with it and the reasons why it is unreliable. An
/// unreliable run that is wrong measured the machine: it is made again, twice at most. Returns `false`, and
/// says so, if none could be judged. A connection that ended is a fault on any machine.
pub fn judge(what: &str, run: impl Fn() -> (Result<(), String>, Vec<String>)) -> bool {
    let mut last = String::new();
    for _ in 0..3 {
        let (verdict, reasons) = run();
        assert!(!reasons.iter().any(|why| why.contains("its connection ended")), "{what}: {reasons:?}");
        let Err(fault) = verdict else { return true };
        assert!(!reasons.is_empty(), "{what}: {fault}");
        last = format!("{fault}, in an unreliable run: {}", reasons.join("; "));
    }
    brakelight_testkit::skip(&format!("busy machine: {what}"), format!("three runs were wrong; {last}"));
    false
}

/// A folder of one test's own, empty at first, gone at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A folder called after the test.
    pub fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    /// The path of something in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, contents).unwrap();
        path
    }

    /// Everything in it, folders too, sorted, by path from here.
    pub fn list(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            // What goes meanwhile is not in it.
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                found.push(path.strip_prefix(&self.0).unwrap().to_string_lossy().into_owned());
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// Runs `brakelight` here, with no traces of the user's own.
    pub fn brakelight(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The same, not yet started.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_brakelight"));
        command.args(arguments).current_dir(&self.0).env_remove("BRAKELIGHT_TRACES");
        command
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The lines that a program prints while it runs.
pub struct Lines(Receiver<String>);

impl Lines {
    pub fn of(output: impl Read + Send + 'static) -> Self {
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Lines(lines)
    }

    /// The next one. Fails if the program prints none in [`PATIENCE`] or has ended.
    pub fn next(&self) -> String {
        self.0.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("no further line: {error}"))
    }

    /// The newest that nobody has taken, or the next one. Fails as [`next`](Self::next) does.
    pub fn newest(&self) -> String {
        let next = self.next();
        self.0.try_iter().last().unwrap_or(next)
    }
}

/// Waits until a program ends. Fails if that takes longer than [`PATIENCE`].
pub fn ended(child: &mut Child) -> ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begin.elapsed() >= PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("process {} did not end in {PATIENCE:?}", child.id());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a command printed.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Standard output of a command that must have gone well.
pub fn ok(output: &Output) -> String {
    assert!(output.status.success(), "{}: {}", output.status, text(&output.stderr));
    text(&output.stdout)
}

/// Two flows over two links.
pub const TWO_FLOWS: &str = r#"
name = "two flows"
duration = "10s"

[[link]]
name = "first"
rate = "12Mbps"
buffer = "100pkt"

[[link]]
name = "second"
rate = "10Mbps"
buffer = "100pkt"

[[flow]]
name = "early"
controller = "cubic"
rtt = "50ms"
path = ["first", "second"]

[[flow]]
name = "late"
controller = "newreno"
rtt = "50ms"
path = ["first", "second"]
start = "4s"
"#;
