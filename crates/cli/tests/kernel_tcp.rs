//! The eBPF programs in this machine's kernel: a sender, a router with a lossy path before it, and a
//! receiver, each in a network namespace of its own.
#![cfg(feature = "bpf")]

mod support;

use std::collections::VecDeque;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use serde_json::Value;
use support::kernel::missing;
use support::{Lines, PATIENCE, Scratch, ended, ok};

/// What the flow sends.
const BYTES: u64 = 20_000_000;

/// `10.77.2.9` as `fd77:2::9`.
fn ipv6(address: &str) -> String {
    let numbers: Vec<&str> = address.split('.').collect();
    format!("fd77:{}::{}", numbers[2], numbers[3])
}

/// Three namespaces in a row, gone at the end with everything that runs in them.
struct Row {
    /// This run's and this row's own: the kernel has one list of controllers for all namespaces.
    id: String,
    names: [String; 3],
    running: Vec<Child>,
}

fn run(command: &str) {
    let output = Command::new("sh").args(["-c", command]).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Row {
    fn new() -> Self {
        static ROWS: AtomicU32 = AtomicU32::new(0);
        let id = format!("bl{}_{}", std::process::id(), ROWS.fetch_add(1, Ordering::Relaxed));
        let names = ["a", "r", "b"].map(|end| format!("{id}{end}"));
        let row = Row { id, names, running: Vec::new() };
        let [a, r, b] = &row.names;
        for name in &row.names {
            run(&format!("ip netns add {name} && ip -n {name} link set lo up"));
        }
        run(&format!("ip -n {a} link add va type veth peer name ra netns {r}"));
        run(&format!("ip -n {b} link add vb type veth peer name rb netns {r}"));
        let devices =
            [(a, "va", "10.77.1.1"), (r, "ra", "10.77.1.9"), (r, "rb", "10.77.2.9"), (b, "vb", "10.77.2.2")];
        for (name, device, address) in devices {
            let v6 = ipv6(address);
            run(&format!(
                "ip -n {name} addr add {address}/24 dev {device} && ip -n {name} addr add {v6}/64 dev {device} nodad && \
                 ip -n {name} link set {device} up"
            ));
            // Single packets are marked, not trains of them.
            run(&format!("ip netns exec {name} ethtool -K {device} tso off gso off gro off"));
        }
        run(&format!(
            "ip -n {a} route add default via 10.77.1.9 && ip -n {b} route add default via 10.77.2.9"
        ));
        run(&format!(
            "ip -n {a} -6 route add default via fd77:1::9 && ip -n {b} -6 route add default via fd77:2::9"
        ));
        run(&format!(
            "ip netns exec {r} sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding'"
        ));
        row
    }

    fn within(&self, end: usize, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[end], program]).args(arguments).stdin(Stdio::null());
        command
    }

    fn start(&mut self, mut command: Command) -> usize {
        // A group of its own: what a shell starts ends with it.
        self.running.push(command.stdout(Stdio::piped()).process_group(0).spawn().unwrap());
        self.running.len() - 1
    }

    /// Loads programs at an end, and makes their controller the one its connections get.
    fn load(&mut self, end: usize, arguments: &[&str]) {
        let name = format!("{}{end}", self.id);
        let mut load = self.within(end, env!("CARGO_BIN_EXE_brakelight"), &["tcp", "load", "--unrestricted"]);
        load.args(["--name", &name]).args(arguments);
        let child = self.start(load);
        let begin = Instant::now();
        loop {
            let mut choose =
                self.within(end, "sysctl", &["-qw", &format!("net.ipv4.tcp_congestion_control={name}")]);
            let chosen = choose.output().unwrap();
            if chosen.status.success() {
                return;
            }
            assert!(self.running[child].try_wait().unwrap().is_none(), "{name} cannot be registered");
            let said = String::from_utf8_lossy(&chosen.stderr);
            assert!(begin.elapsed() < PATIENCE, "{name} never came: {said}");
        }
    }
}

impl Row {
    /// Starts a receiver at the last end, and waits until it listens.
    fn listen(&mut self, v6: bool, port: u32) {
        let listener = if v6 { "TCP6-LISTEN" } else { "TCP4-LISTEN" };
        let listener = self.within(2, "socat", &["-u", &format!("{listener}:{port},reuseaddr"), "/dev/null"]);
        self.start(listener);
        let listens = || {
            let sockets = self.within(2, "ss", &["-Htln", &format!("sport = :{port}")]).output().unwrap();
            !sockets.stdout.is_empty()
        };
        let begin = Instant::now();
        while !listens() {
            assert!(begin.elapsed() < PATIENCE, "nobody listens");
        }
    }

    /// Sends that many bytes from the first to the last end, at `address`; the connection stays open after
    /// the last byte. Returns the remote end as `tcp watch` shows it.
    fn send(&mut self, above: u32, address: &str, bytes: u64) -> String {
        let port = above + std::process::id() % 10_000;
        let v6 = address.contains(':');
        self.listen(v6, port);
        // After the last byte a few more trickle, until the row is taken down: not every ACK has room or
        // reason for the counts, so only one that comes later is sure to say all of them.
        let send = format!(
            "exec 3<>/dev/tcp/{address}/{port}; head -c {bytes} /dev/zero >&3; while sleep 0.2; do printf x >&3; done"
        );
        let sender = self.within(0, "bash", &["-c", &send]);
        self.start(sender);
        if v6 { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        for child in &mut self.running {
            // A sender that nobody answers would wait for a quarter of an hour, with our output open.
            let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
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

/// A line of the router's statistics.
fn sample(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

impl Row {
    /// What `tcp watch` says at the sender of its connection to `remote`.
    fn heard(&self, remote: &str) -> Option<Value> {
        self.heard_at(0, remote)
    }

    /// What `tcp watch` says at that end of a connection to `remote`.
    fn heard_at(&self, end: usize, remote: &str) -> Option<Value> {
        let program = env!("CARGO_BIN_EXE_brakelight");
        let watch = ["tcp", "watch", "--count", "1", "--format", "json"];
        let document = ok(&self.within(end, program, &watch).output().unwrap());
        let document: Value = serde_json::from_str(&document).unwrap();
        document["connections"].as_array().unwrap().iter().find(|c| c["remote"] == remote).cloned()
    }

    /// Bytes that the sender's connection to `remote` has not seen acknowledged, as its kernel counts them.
    fn unacknowledged(&self, remote: &str) -> u64 {
        let sockets = self.within(0, "ss", &["-Htn", &format!("dst {remote}")]).output().unwrap();
        let sockets = String::from_utf8(sockets.stdout).unwrap();
        // State, Recv-Q, Send-Q, local and remote end.
        let send_queue = sockets.split_whitespace().nth(2).expect("the connection is open");
        send_queue.parse().unwrap()
    }

    /// Packets of the connection to `remote` that arrived twice, as the receiver's DSACKs say. The receiver
    /// does not count their bytes again; the router has.
    fn duplicates(&self, remote: &str) -> u64 {
        let socket = self.within(0, "ss", &["-Htin", &format!("dst {remote}")]).output().unwrap();
        let socket = String::from_utf8(socket.stdout).unwrap();
        let count = socket.split_whitespace().find_map(|word| word.strip_prefix("dsack_dups:"));
        count.map_or(0, |count| count.parse().unwrap())
    }

    /// What the sender heard and what the router sent, `before` and since, once the router has sent `bytes`
    /// more, the sender waits for no acknowledgement, and what it heard grows by no more than the trickle.
    fn settled(&self, remote: &str, lines: &Lines, before: [u64; 3], bytes: u64) -> (Value, Value) {
        const TRICKLE: u64 = 100;
        let begin = Instant::now();
        let sum = |document: &Value| counts(document).iter().sum::<u64>();
        let mut last = 0;
        loop {
            // On a busy machine lines come faster than they are taken.
            let routed = sample(&lines.newest());
            let sent = self.heard(remote);
            assert!(begin.elapsed() < PATIENCE, "{sent:?}, {routed:?}");
            let Some(sent) = sent else { continue };
            let routed_all = sum(&routed) >= before.iter().sum::<u64>() + bytes;
            if routed_all && self.unacknowledged(remote) == 0 && sum(&sent) <= last + TRICKLE {
                return (sent, routed);
            }
            last = sum(&sent);
        }
    }

    /// What a connection to `remote` was as soon as it was like that.
    fn until(&self, remote: &str, like_that: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let seen = self.heard(remote);
            assert!(begin.elapsed() < PATIENCE, "{seen:?}");
            match seen {
                Some(connection) if like_that(&connection) => return connection,
                _ => {}
            }
        }
    }
}

#[test]
fn a_sender_hears_of_every_byte_what_the_router_said_whatever_the_path_loses() {
    if let Some(reason) = missing() {
        brakelight_testkit::skip("kernel: TCP by eBPF through the eBPF router", reason);
        return;
    }
    let mut row = Row::new();
    let router = row.names[1].clone();
    // Data alone is lost: a connection whose SYN is sent again goes on without Accurate ECN (rfc9768 3.1.4).
    run(&format!(
        "ip netns exec {router} nft 'add table ip t; add chain ip t f {{ type filter hook forward priority 0; }}; \
         add rule ip t f iifname ra meta length > 500 numgen random mod 100 < 1 drop'"
    ));
    let mut command =
        row.within(1, env!("CARGO_BIN_EXE_brakelight"), &["router", "attach", "ra", "--rate", "100Mbps"]);
    command.args(["--target", "5ms", "--interval", "300ms", "--format", "json"]).stderr(Stdio::null());
    let attached = row.start(command);
    let lines = Lines::of(row.running[attached].stdout.take().unwrap());
    sample(&lines.next());

    row.load(0, &["--dev", "va"]);
    row.load(2, &["--receiver"]);
    let remote = row.send(20_000, "10.77.2.2", BYTES);
    let (sent, routed) = row.settled(&remote, &lines, [0; 3], BYTES);
    let (by_sender, by_router) = (counts(&sent), counts(&routed));
    let twice = 1500 * row.duplicates(&remote);
    for (heard, said) in by_sender.into_iter().zip(by_router) {
        let within = said / 1000;
        assert!(
            heard <= said + within && said <= heard + within + twice,
            "heard {by_sender:?}, the router sent {by_router:?}, {twice} bytes arrived twice"
        );
    }
    assert!(by_router[0] > BYTES / 10 && by_router[1] > BYTES / 10, "{by_router:?}");
    assert_eq!(row.heard_at(1, &remote), None, "another network namespace has the connection");
    assert_eq!(sent["feedback"], "accecn");
    assert_eq!(sent["marks_spoiled"], false);
    assert!(sent["losses"].as_u64().unwrap() > 10, "one packet in a hundred is lost: {sent}");

    // An interrupt takes everything out of the kernel. `ip netns exec` has become the program itself.
    run(&format!("kill -INT {}", row.running[attached].id()));
    assert_eq!(ended(&mut row.running[attached]).code(), Some(130));
    let links = Command::new("ip").args(["-n", &router, "link"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&links.stdout).contains("bl-ra"));
}

#[test]
fn delay_control_keeps_a_deep_buffer_from_filling() {
    if let Some(reason) = missing() {
        brakelight_testkit::skip("kernel: delay control in the kernel", reason);
        return;
    }
    let mut row = Row::new();
    let router = row.names[1].clone();
    // 400 ms of buffer.
    run(&format!("tc -n {router} qdisc add dev rb root tbf rate 10mbit burst 3100 limit 500000"));
    row.load(0, &["--controller", "wdc", "--threshold", "30ms"]);
    let remote = row.send(30_000, "10.77.2.2", 10_000_000);
    let sent = row.until(&remote, |sent| sent["acked_bytes"].as_u64().unwrap() >= 4_000_000);
    assert_eq!((sent["controller"].as_str(), sent["feedback"].as_str()), (Some("wdc"), Some("timestamps")));
    assert_eq!(sent["threshold_ms"], 30.0);
    assert!(sent["delay_events"].as_u64().unwrap() >= 3, "{sent}");
    assert!(sent["srtt_ms"].as_f64().unwrap() < 200.0, "{sent}");
    assert_eq!(sent["losses"], 0, "the buffer never overflowed: {sent}");
}

#[test]
fn a_shaper_that_stands_already_serves_the_router_in_both_versions_of_ip() {
    if let Some(reason) = missing() {
        brakelight_testkit::skip("kernel: a router around a shaper that stands already", reason);
        return;
    }
    let mut row = Row::new();
    let router = row.names[1].clone();
    run(&format!(
        "ip -n {router} link add shaped type ifb && ip -n {router} link set shaped up && \
         tc -n {router} qdisc add dev shaped root tbf rate 50mbit burst 6200 limit 300000 && \
         tc -n {router} qdisc add dev ra clsact && \
         tc -n {router} filter add dev ra ingress protocol all u32 match u32 0 0 action mirred egress redirect dev shaped"
    ));
    let mut command = row.within(
        1,
        env!("CARGO_BIN_EXE_brakelight"),
        &["router", "attach", "ra", "--from-qdisc", "shaped"],
    );
    command.args(["--target", "5ms", "--interval", "300ms", "--format", "json"]).stderr(Stdio::null());
    let attached = row.start(command);
    let lines = Lines::of(row.running[attached].stdout.take().unwrap());
    sample(&lines.next());
    row.load(0, &["--dev", "va"]);
    row.load(2, &["--receiver"]);
    let mut before = [0; 3];
    for (above, address) in [(40_000, "10.77.2.2"), (50_000, "fd77:2::2")] {
        let remote = row.send(above, address, 5_000_000);
        let (sent, routed) = row.settled(&remote, &lines, before, 5_000_000);
        let by_router = counts(&routed);
        let since: Vec<u64> = by_router.iter().zip(before).map(|(now, before)| now - before).collect();
        before = by_router;
        for (heard, said) in counts(&sent).into_iter().zip(&since) {
            assert!(heard.abs_diff(*said) * 100 <= 5_000_000, "{address}: {sent}, the router sent {since:?}");
        }
        assert!(since[0] > 500_000 && since[1] > 500_000, "{address}: {since:?}");
        assert_eq!(sent["marks_spoiled"], false);
        assert_eq!((&routed["capacity_mbps"], &routed["merged_packets"]), (&50.0.into(), &0.into()));
    }
}

impl Row {
    /// Attaches a router of 20 Mbit/s with that rule, and a way back for what the emulator sends. Returns
    /// what the router says of itself.
    fn routed(&mut self, variant: &str) -> Lines {
        run(&format!("ip -n {} route add 100.64.0.0/14 via 10.77.1.1", self.names[1]));
        run(&format!("ip netns exec {} sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'", self.names[0]));
        let program = env!("CARGO_BIN_EXE_brakelight");
        let mut command = self.within(1, program, &["router", "attach", "ra", "--rate", "20Mbps"]);
        command.args(["--variant", variant, "--interval", "300ms", "--format", "json"]).stderr(Stdio::null());
        let attached = self.start(command);
        let lines = Lines::of(self.running[attached].stdout.take().unwrap());
        sample(&lines.next());
        lines
    }

    /// Starts a sender behind the emulator, which holds back what it sends and gets, 20 ms each way.
    fn send_later(&mut self, command: &[&str]) {
        let program = env!("CARGO_BIN_EXE_brakelight");
        let mut sender = self.within(0, program, &["emulate", "--nat", "--delay", "20ms", "--"]);
        sender.args(command).env_remove("SUDO_UID");
        self.start(sender);
    }
}

/// Waits until fifteen samples in a row are `right`, which else says what they show.
fn until_fifteen(lines: &Lines, right: impl Fn(&VecDeque<Value>) -> Result<(), String>) {
    let begin = Instant::now();
    let mut samples = VecDeque::new();
    loop {
        samples.push_back(sample(&lines.next()));
        if samples.len() < 15 {
            continue;
        }
        let Err(shown) = right(&samples) else { return };
        assert!(begin.elapsed() < PATIENCE, "{shown}");
        samples.pop_front();
    }
}

/// All values of one name.
fn all(samples: &VecDeque<Value>, of: &str) -> Vec<f64> {
    samples.iter().map(|sample| sample[of].as_f64().unwrap()).collect()
}

fn median(samples: &VecDeque<Value>, of: &str) -> f64 {
    let mut values = all(samples, of);
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn the_rule_that_tunes_itself_finds_the_loop_s_delay_and_lets_little_wait() {
    if let Some(reason) = missing() {
        brakelight_testkit::skip("kernel: the self-tuning rule in the eBPF router", reason);
        return;
    }
    const PORT: u32 = 5201;
    let mut row = Row::new();
    let program = env!("CARGO_BIN_EXE_brakelight");
    let lines = row.routed("adaptive");
    row.load(2, &["--receiver"]);
    row.listen(false, PORT);
    let name = format!("{}0", row.id);
    let send = format!(
        "{program} tcp load --dev brakelight0 --unrestricted --quiet --name {name} & \
         until sysctl -qw net.ipv4.tcp_congestion_control={name} 2>/dev/null; do kill -0 $! || exit; sleep 0.1; done; \
         exec 3<>/dev/tcp/10.77.2.2/{PORT}; exec cat /dev/zero >&3"
    );
    row.send_later(&["bash", "-c", &send]);
    // Where the machine stalls, packets come in bursts, and tau is the least lag of up to ten seconds. So
    // this waits for fifteen samples in a row that show the rule at work.
    until_fifteen(&lines, |samples| {
        let names = ["mbps", "delay_p95_ms", "accelerate_percent", "loop_delay_ms"];
        let numbers = names.map(|name| median(samples, name));
        let [mbps, p95_ms, accelerate, loop_delay_ms] = numbers;
        let is_right = (36.0..=50.0).contains(&loop_delay_ms)
            && mbps > 17.0
            && p95_ms < 15.0
            && (40.0..60.0).contains(&accelerate);
        if is_right { Ok(()) } else { Err(format!("{numbers:?}")) }
    });
}

/// Prague over QUIC sends ECT(1) and answers CE as L4S does.
#[test]
fn the_law_for_l4s_marks_what_a_real_sender_answers() {
    if let Some(reason) = missing() {
        brakelight_testkit::skip("kernel: the law for L4S in the eBPF router", reason);
        return;
    }
    let mut row = Row::new();
    let program = env!("CARGO_BIN_EXE_brakelight");
    let lines = row.routed("l4s");
    let mut server = row.within(2, program, &["perf-server", "--quiet", "--listen", "10.77.2.2:4433"]);
    server.stderr(Stdio::null());
    row.start(server);
    row.send_later(&[program, "perf", "10.77.2.2", "--controller", "prague", "--duration", "5m"]);
    // Where the machine stalls its marks come late. So this waits for fifteen samples in a row.
    until_fifteen(&lines, |samples| {
        let [first, last] = [0, 14].map(|place| all(samples, "turned_packets")[place]);
        let (mbps, p95_ms, marked) = (median(samples, "mbps"), median(samples, "delay_p95_ms"), last - first);
        // The buffer holds 150 ms. A sender that stalls loses more than half of the rate, and gets it back by
        // a packet each round trip.
        let is_right = mbps > 5.0 && p95_ms < 30.0 && marked > 0.0;
        if is_right { Ok(()) } else { Err(format!("{mbps} Mbit/s, {p95_ms} ms, {marked} marked")) }
    });
}

#[test]
fn what_is_pinned_outlives_the_command_and_goes_when_told() {
    if let Some(reason) = missing() {
        brakelight_testkit::skip("kernel: pinned controllers", reason);
        return;
    }
    let row = Row::new();
    // `ip netns exec` has mounts of its own, so this file system and its pins are nobody else's.
    let name = &row.id;
    let script = format!(
        "set -e; mount -t bpf bpf /sys/fs/bpf; {bl} tcp load --dev va --pin --name {name}; {bl} tcp status --format json; \
         {bl} tcp load --controller wdc --pin --name {name}w; \
         {bl} tcp load --pin --name {name}x && exit 9; [ $? = 2 ]; {bl} tcp status --format json; {bl} tcp unload; \
         {bl} tcp status --format json; {bl} tcp unload",
        bl = env!("CARGO_BIN_EXE_brakelight")
    );
    let output = row.within(0, "sh", &["-c", &script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("removed the pinned") && said.contains("no pinned programs"), "{said}");
    let documents: Vec<Value> =
        serde_json::Deserializer::from_slice(&output.stdout).into_iter().map(Result::unwrap).collect();
    let pins = |document: &Value| document["pins"].as_array().unwrap().len();
    assert_eq!(documents.iter().map(pins).collect::<Vec<_>>(), [2, 3, 0]);
}

#[test]
fn the_example_of_a_unit_is_one() {
    if Command::new("systemd-analyze").arg("--version").stdout(Stdio::null()).status().is_err() {
        brakelight_testkit::skip("the example of a systemd unit", "no `systemd-analyze`");
        return;
    }
    let scratch = Scratch::new("kernel-unit");
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/brakelight-tcp.service");
    let unit = std::fs::read_to_string(example).unwrap();
    assert!(unit.contains("/usr/local/bin/brakelight tcp load --dev eth0"), "{unit}");
    // It must find the program to be content.
    let unit = unit.replace("/usr/local/bin/brakelight", env!("CARGO_BIN_EXE_brakelight"));
    let path = scratch.path("brakelight-tcp.service");
    std::fs::write(&path, unit).unwrap();
    let output = Command::new("systemd-analyze").arg("verify").arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("brakelight-tcp"), "{said}");
}
