//! The eBPF programs in this machine's kernel: a sender, a router with a lossy path before it, and a receiver, each in a
//! network namespace of its own.
#![cfg(feature = "bpf")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Scratch, ok};

/// What the flow sends.
const BYTES: u64 = 20_000_000;
/// Far more than anything here takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Why the test cannot run here; nothing if it can.
fn missing() -> Option<String> {
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
    let doctor = ok(&Scratch::new("kernel-doctor").brakelight(&["tcp", "doctor", "--format", "json"]));
    let checks: Value = serde_json::from_str(&doctor).unwrap();
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
    None
}

/// Three namespaces in a row, gone at the end with everything that runs in them.
struct Row {
    names: [String; 3],
    running: Vec<Child>,
}

fn run(command: &str) {
    let output = Command::new("sh").args(["-c", command]).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Row {
    fn new() -> Self {
        let names = ["a", "r", "b"].map(|end| format!("bl{}{end}", std::process::id()));
        let row = Row { names, running: Vec::new() };
        let [a, r, b] = &row.names;
        for name in &row.names {
            run(&format!("ip netns add {name} && ip -n {name} link set lo up"));
        }
        run(&format!("ip -n {a} link add va type veth peer name ra netns {r}"));
        run(&format!("ip -n {b} link add vb type veth peer name rb netns {r}"));
        let devices =
            [(a, "va", "10.77.1.1"), (r, "ra", "10.77.1.9"), (r, "rb", "10.77.2.9"), (b, "vb", "10.77.2.2")];
        for (name, device, address) in devices {
            run(&format!(
                "ip -n {name} addr add {address}/24 dev {device} && ip -n {name} link set {device} up"
            ));
            // Single packets are marked, not trains of them.
            run(&format!("ip netns exec {name} ethtool -K {device} tso off gso off gro off"));
        }
        run(&format!(
            "ip -n {a} route add default via 10.77.1.9 && ip -n {b} route add default via 10.77.2.9"
        ));
        run(&format!("ip netns exec {r} sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'"));
        row
    }

    fn within(&self, end: usize, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[end], program]).args(arguments).stdin(Stdio::null());
        command
    }

    fn start(&mut self, mut command: Command) -> usize {
        self.running.push(command.stdout(Stdio::piped()).spawn().unwrap());
        self.running.len() - 1
    }

    /// Loads programs at an end, and makes their controller the one its connections get.
    fn load(&mut self, end: usize, arguments: &[&str]) {
        // A name of this run's own: the kernel has one list for all namespaces.
        let name = format!("bl{}{end}", std::process::id());
        let mut load = self.within(end, env!("CARGO_BIN_EXE_brakelight"), &["tcp", "load", "--unrestricted"]);
        load.args(["--name", &name]).args(arguments);
        let child = self.start(load);
        let begin = Instant::now();
        loop {
            let mut choose =
                self.within(end, "sysctl", &["-qw", &format!("net.ipv4.tcp_congestion_control={name}")]);
            if choose.stderr(Stdio::null()).status().unwrap().success() {
                return;
            }
            assert!(self.running[child].try_wait().unwrap().is_none(), "{name} cannot be registered");
            assert!(begin.elapsed() < PATIENCE, "{name} never came");
        }
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        for child in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

/// Accelerate, brake and CE bytes of a document.
fn counts(document: &Value) -> [u64; 3] {
    ["accelerate_bytes", "brake_bytes", "ce_bytes"].map(|kind| document[kind].as_u64().unwrap())
}

/// The next line of the router's statistics.
fn next_sample(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> Value {
    serde_json::from_str(&lines.next().expect("the router goes on").unwrap()).unwrap()
}

/// What the sender heard of its connection to `port` so far.
fn heard(scratch: &Scratch, remote: &str) -> Option<Value> {
    let document = ok(&scratch.brakelight(&["tcp", "watch", "--count", "1", "--format", "json"]));
    let document: Value = serde_json::from_str(&document).unwrap();
    document["connections"].as_array().unwrap().iter().find(|c| c["remote"] == remote).cloned()
}

#[test]
fn a_sender_hears_of_every_byte_what_the_router_said_whatever_the_path_loses() {
    if let Some(reason) = missing() {
        eprintln!("not run: TCP by eBPF through the eBPF router: {reason}");
        return;
    }
    let scratch = Scratch::new("kernel-tcp");
    let mut row = Row::new();
    let router = row.names[1].clone();
    run(&format!(
        "ip netns exec {router} nft 'add table ip t; add chain ip t f {{ type filter hook forward priority 0; }}; \
         add rule ip t f iifname ra numgen random mod 100 < 1 drop'"
    ));
    let mut command =
        row.within(1, env!("CARGO_BIN_EXE_brakelight"), &["router", "attach", "ra", "--rate", "100Mbps"]);
    command.args(["--target", "5ms", "--interval", "300ms", "--format", "json"]).stderr(Stdio::null());
    let attached = row.start(command);
    let stdout: ChildStdout = row.running[attached].stdout.take().unwrap();
    let mut lines = BufReader::new(stdout).lines();
    next_sample(&mut lines);

    row.load(0, &["--dev", "va"]);
    row.load(2, &["--receiver"]);
    let port = 20_000 + std::process::id() % 40_000;
    let listener = row.within(2, "socat", &["-u", &format!("TCP-LISTEN:{port},reuseaddr"), "/dev/null"]);
    row.start(listener);
    let listens = || {
        let sockets = row.within(2, "ss", &["-Htln", &format!("sport = :{port}")]).output().unwrap();
        !sockets.stdout.is_empty()
    };
    let begin = Instant::now();
    while !listens() {
        assert!(begin.elapsed() < PATIENCE, "nobody listens");
    }
    // The connection stays open after the last byte, until the row is taken down.
    let send = format!("exec 3<>/dev/tcp/10.77.2.2/{port}; head -c {BYTES} /dev/zero >&3; read -r _ <&3");
    let sender = row.within(0, "bash", &["-c", &send]);
    row.start(sender);

    let (begin, remote) = (Instant::now(), format!("10.77.2.2:{port}"));
    let sent = loop {
        assert!(begin.elapsed() < PATIENCE, "{:?}", heard(&scratch, &remote));
        next_sample(&mut lines);
        match heard(&scratch, &remote) {
            Some(connection) if counts(&connection).iter().sum::<u64>() >= BYTES => break connection,
            _ => {}
        }
    };
    // The line that is being written now may be older than the last packet.
    next_sample(&mut lines);
    let routed = next_sample(&mut lines);
    let (by_sender, by_router) = (counts(&sent), counts(&routed));
    for (heard, said) in by_sender.into_iter().zip(by_router) {
        assert!(heard.abs_diff(said) * 1000 <= said, "heard {by_sender:?}, the router sent {by_router:?}");
    }
    assert!(by_router[0] > BYTES / 10 && by_router[1] > BYTES / 10, "{by_router:?}");
    assert_eq!(sent["feedback"], "accecn");
    assert_eq!(sent["marks_spoiled"], false);
    assert!(sent["losses"].as_u64().unwrap() > 10, "one packet in a hundred is lost: {sent}");

    // An interrupt takes everything out of the kernel. `ip netns exec` has become the program itself.
    run(&format!("kill -INT {}", row.running[attached].id()));
    assert_eq!(row.running[attached].wait().unwrap().code(), Some(130));
    let links = Command::new("ip").args(["-n", &router, "link"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&links.stdout).contains("bl-ra"));
}
