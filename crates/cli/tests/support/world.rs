//! What the tests of the emulator watch: the processes and namespaces that belong to one test, and machines
//! to play with.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use super::{Scratch, text};

/// The variable by which a test knows its processes.
const MARK: &str = "BRAKELIGHT_TEST";

/// How long something may take that happens at once on an idle machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Whether emulations are possible here; says what is not run where they are not.
pub fn can_emulate(what: &str) -> bool {
    let output =
        Command::new(env!("CARGO_BIN_EXE_brakelight")).args(["emulate", "--doctor"]).output().unwrap();
    if !output.status.success() {
        brakelight_testkit::skip(what, text(&output.stdout) + &text(&output.stderr));
    }
    output.status.success()
}

/// Whether a program is there; says what is not run without it.
pub fn has(program: &str, what: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        brakelight_testkit::skip(what, format_args!("`{program}` is not installed"));
    }
    found
}

/// Whether this test runs as root.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|file| std::os::unix::fs::MetadataExt::uid(&file) == 0)
}

/// The words that run what follows as a user who is not root, if that can be done.
pub fn as_a_user(what: &str) -> Option<Vec<&'static str>> {
    if !is_root() {
        return Some(Vec::new());
    }
    let words = vec!["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"];
    let binary = env!("CARGO_BIN_EXE_brakelight");
    // `setpriv` itself still has rights when it starts a program: what the user may do is seen by a shell.
    let reachable = Command::new(words[0])
        .args(&words[1..])
        .args(["sh", "-c", "\"$0\" --version", binary])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !reachable {
        brakelight_testkit::skip(what, format_args!("an ordinary user cannot run {binary}"));
    }
    reachable.then_some(words)
}

/// One test's processes.
pub struct World {
    /// Where it works.
    pub scratch: Scratch,
    mark: String,
    before: Vec<String>,
}

impl World {
    /// A world of its own, called after the test.
    pub fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        let mark = format!("{name}-{}", std::process::id());
        let before = scratch.list();
        World { scratch, mark, before }
    }

    /// `before` the emulator, such as the words that make it another user's; then `brakelight emulate` with
    /// these arguments.
    pub fn command(&self, before: &[&str], arguments: &[&str]) -> Command {
        // A gate that runs in the background may have left the signals of terminals ignored: these tests are
        // about them.
        let words = ["env", "--default-signal"].into_iter().chain(before.iter().copied());
        let words: Vec<&str> = words.chain([env!("CARGO_BIN_EXE_brakelight"), "emulate"]).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(arguments).current_dir(self.scratch.path(""));
        command.env(MARK, &self.mark).env_remove("BRAKELIGHT_TRACES").env_remove("BRAKELIGHT_HOST");
        command.env_remove("SUDO_UID").env_remove("SUDO_GID");
        command
    }

    /// Runs it to its end, and sees that nothing remains.
    pub fn run(&self, before: &[&str], arguments: &[&str]) -> Output {
        let output = self.command(before, arguments).stdin(Stdio::null()).output().unwrap();
        self.nothing_is_left(&Namespaces::default());
        output
    }

    /// Starts it, with a pipe from its standard output, and waits until its command has said `ready`.
    pub fn start(&self, before: &[&str], arguments: &[&str]) -> Started {
        let mut command = self.command(before, arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut heard = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        let mut byte = [0];
        while !heard.ends_with("ready\n") {
            if stdout.read(&mut byte).unwrap() == 0 {
                let output = child.wait_with_output().unwrap();
                panic!("not ready: {heard:?} {}", text(&output.stderr));
            }
            heard.push(char::from(byte[0]));
        }
        // The emulator itself enters none. A process in execve(2) shows no environment, so the one that has
        // just said "ready" may be missing for a moment.
        let around: BTreeSet<String> = namespaces_of(&child.id().to_string()).collect();
        let mut namespaces = Namespaces::default();
        eventually("its own network, mounts and processes are missing", || {
            namespaces.seen = now_in_ticks();
            namespaces.names = self.namespaces().difference(&around).cloned().collect();
            let names = &namespaces.names;
            ["net:", "mnt:", "pid:"].iter().all(|kind| names.iter().any(|name| name.starts_with(kind)))
        });
        Started { child, namespaces }
    }

    /// The processes of this test.
    pub fn processes(&self) -> Vec<i32> {
        let mark = format!("{MARK}={}\0", self.mark);
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        pids.filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.windows(mark.len()).any(|window| window == mark.as_bytes())
        })
        .collect()
    }

    /// The namespaces of those processes that are not the test's own.
    pub fn namespaces(&self) -> BTreeSet<String> {
        let own: BTreeSet<String> = namespaces_of("self").collect();
        let all = self.processes().into_iter().flat_map(|pid| namespaces_of(&pid.to_string()));
        all.filter(|namespace| !own.contains(namespace)).collect()
    }

    /// Waits until no process of this test is left; then none may be in those namespaces, and no file may
    /// have been added.
    pub fn nothing_is_left(&self, namespaces: &Namespaces) {
        eventually("processes are left", || self.processes().is_empty());
        let holders = || -> Vec<String> {
            let pids = fs::read_dir("/proc").unwrap().flatten();
            let pids = pids.filter_map(|entry| entry.file_name().into_string().ok());
            pids.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
                .filter(|pid| namespaces_of(pid).any(|namespace| namespaces.names.contains(&namespace)))
                .filter(|pid| started(pid).is_some_and(|start| start <= namespaces.seen))
                .collect()
        };
        eventually("namespaces are left", || holders().is_empty());
        eventually("files are left", || self.scratch.list() == self.before);
    }
}

/// Namespaces that an emulator made.
#[derive(Debug, Default)]
pub struct Namespaces {
    names: BTreeSet<String>,
    /// When they were there last, in the kernel's ticks. The kernel gives a number out again as soon as its
    /// namespace is gone, so who started later may be in another one of that number.
    seen: u64,
}

/// An emulator that runs.
pub struct Started {
    /// Its process.
    pub child: Child,
    namespaces: Namespaces,
}

impl Started {
    /// Sends it a signal, by name.
    pub fn signal(&mut self, signal: &str) {
        self.namespaces.seen = now_in_ticks();
        send(self.child.id() as i32, signal);
    }

    /// Waits for its end.
    pub fn end(self) -> (ExitStatus, String, Namespaces) {
        let output = self.child.wait_with_output().unwrap();
        (output.status, text(&output.stderr), self.namespaces)
    }
}

/// Sends a process a signal, by name.
pub fn send(pid: i32, signal: &str) {
    assert!(Command::new("kill").args(["-s", signal, &pid.to_string()]).status().unwrap().success());
}

/// The exit code as a shell counts.
pub fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap())
}

/// Waits for what must become true.
pub fn eventually(otherwise: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "{otherwise} after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// When a process started: the kernel's ticks since the machine did, proc_pid_stat(5).
fn started(pid: &str) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// The ticks of now, which are those of a process that starts now.
fn now_in_ticks() -> u64 {
    let mut child = Command::new("true").spawn().unwrap();
    let start = started(&child.id().to_string());
    child.wait().unwrap();
    start.unwrap()
}

fn namespaces_of(pid: &str) -> impl Iterator<Item = String> + use<> {
    let links = ["net", "pid", "mnt", "user"].map(|kind| format!("/proc/{pid}/ns/{kind}"));
    links.into_iter().filter_map(|link| Some(fs::read_link(link).ok()?.to_string_lossy().into_owned()))
}

/// A network namespace that plays a machine of one's own, with root in it; and a neighbour at 198.51.100.2,
/// which knows no way back to anything but the machine.
pub struct Machine {
    holder: Child,
}

impl Machine {
    /// Makes one, whose interface is up: the kernel says so some time after both ends are.
    pub fn new() -> Self {
        const SETTING_UP: &str = "unshare --net sleep 1000000 & n=$!
            while [ $(readlink /proc/$n/ns/net) = $(readlink /proc/self/ns/net) ]; do sleep 0.01; done
            ip link set lo up && ip link add eth0 type veth peer name eth0 netns $n \
            && ip addr add 198.51.100.1/24 dev eth0 && ip link set eth0 up \
            && nsenter --target $n --net ip addr add 198.51.100.2/24 dev eth0 \
            && nsenter --target $n --net ip link set eth0 up || exit 1
            while ! ip -br link show eth0 | grep -q ' UP '; do sleep 0.01; done
            echo up && exec cat";
        let mut holder = Command::new("unshare")
            .args(["--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"])
            .args(["sh", "-c", SETTING_UP])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = [0; 3];
        holder.stdout.as_mut().unwrap().read_exact(&mut said).expect("the machine is set up");
        Machine { holder }
    }

    /// The words that run what follows in it.
    pub fn words(&self) -> Vec<String> {
        let pid = self.holder.id().to_string();
        ["nsenter", "--target", &pid, "--user", "--net", "--preserve-credentials", "--"]
            .map(String::from)
            .to_vec()
    }

    /// What a command prints in it.
    pub fn ask(&self, line: &str) -> String {
        let words = self.words();
        let output = Command::new(&words[0]).args(&words[1..]).args(["sh", "-c", line]).output().unwrap();
        text(&output.stdout) + &text(&output.stderr)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}
