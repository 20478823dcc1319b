//! Kills at random moments: whatever the command was doing, nothing is left, or the next run removes it and
//! says so.
//!
//! `BRAKELIGHT_KILLS` says how often, over all kinds together (40 unless said otherwise; `scripts/prove` has
//! 1,000).

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use brakelight_core::random::Random;
use support::world::{Namespaces, World, as_a_user, can_emulate, eventually, is_root, send};
use support::{Scratch, TWO_FLOWS, ok, text};

/// How many kills of a kind whose share of all is this many in a hundred.
fn kills(share: u64) -> u64 {
    let all: u64 = std::env::var("BRAKELIGHT_KILLS").map_or(40, |text| text.parse().expect("a number"));
    (all * share / 100).max(2)
}

fn wait(random: &mut Random, most: Duration) {
    std::thread::sleep(most.mul_f64(random.uniform()));
}

fn kill(mut child: Child) -> bool {
    let _ = child.kill();
    !child.wait().unwrap().success()
}

#[test]
fn a_simulation_killed_at_any_moment_leaves_a_whole_result_or_nothing() {
    let scratch = Scratch::new("kills-simulator");
    scratch.write("two.toml", TWO_FLOWS.replace("\"10s\"", "\"5s\""));
    let start = |scratch: &Scratch| {
        let arguments = ["run", "two.toml", "--out", "a/results", "--series", "csv", "--link-logs"];
        let mut command = scratch.command(&arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    // How long one takes here.
    let began = std::time::Instant::now();
    assert!(start(&scratch).wait().unwrap().success());
    let length = began.elapsed();
    let whole = scratch.list();
    fs::remove_dir_all(scratch.path("a")).unwrap();
    let before = scratch.list();
    let mut random = Random::stream(21, "kills of the simulator");
    let (mut killed, mut finished) = (0, 0);
    for _ in 0..kills(40) {
        let child = start(&scratch);
        wait(&mut random, length);
        if kill(child) {
            killed += 1;
        }
        eventually("half a result is left", || scratch.list() == before || scratch.list() == whole);
        if scratch.list() == whole {
            finished += 1;
            fs::remove_dir_all(scratch.path("a")).unwrap();
        }
    }
    eprintln!("simulator: {killed} killed, {finished} results were whole, nothing else is left");
    assert!(killed > 0);
}

#[test]
fn an_emulator_killed_at_any_moment_leaves_nothing() {
    if !can_emulate("kills at any moment") {
        return;
    }
    let world = World::new("kills-emulator");
    let before = world.scratch.list();
    let interfaces = || fs::read_to_string("/proc/net/dev").unwrap().lines().count();
    let devices = interfaces();
    let users: Vec<(&str, Vec<&str>)> = match is_root() {
        true => [Some(("root", Vec::new())), as_a_user("kills without root").map(|words| ("a user", words))]
            .into_iter()
            .flatten()
            .collect(),
        false => vec![("a user", Vec::new())],
    };
    let mut random = Random::stream(21, "kills of the emulator");
    for (name, user) in &users {
        let mut killed = 0;
        let count = kills(40 / users.len() as u64);
        for index in 0..count {
            let log: &[&str] = if index % 2 == 0 && user.is_empty() { &["--log", "a/log"] } else { &[] };
            let arguments = [&["--up", "12Mbps", "--down", "5Mbps"], log, &["--", "sleep", "0.2"]].concat();
            let mut command = world.command(user, &arguments);
            let child =
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            wait(&mut random, Duration::from_millis(500));
            if kill(child) {
                killed += 1;
            }
            eventually("processes are left", || world.processes().is_empty());
            eventually("half a log is left", || {
                let now = world.scratch.list();
                now == before
                    || (now.iter().any(|name| name == "a/log/report.html")
                        && !now.iter().any(|name| name.contains(".partial")))
            });
            let _ = fs::remove_dir_all(world.scratch.path("a"));
        }
        world.nothing_is_left(&Namespaces::default());
        eprintln!(
            "emulator as {name}: {killed} of {count} killed, no process, namespace, device or file is left"
        );
        assert!(killed > 0);
    }
    assert_eq!(interfaces(), devices);
}

#[test]
fn either_end_of_a_measurement_killed_at_any_moment_leaves_nothing_in_the_way() {
    let scratch = Scratch::new("kills-perf");
    let start = |address: &str| {
        let mut command = scratch.command(&["perf-server", "--listen", address]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        let found =
            lines.find_map(|line| Some(line.strip_prefix("listening on ")?.split_once(';')?.0.to_string()));
        // Somebody has to read on, or the server would wait.
        std::thread::spawn(move || lines.for_each(drop));
        (child, found.expect("the server says where it listens"))
    };
    let (mut server, address) = start("127.0.0.1:0");
    let before = scratch.list();
    let mut random = Random::stream(21, "kills of perf");
    let count = kills(15);
    let mut killed = 0;
    for index in 0..count {
        let arguments = ["perf", &address, "--duration", "300ms", "--format", "json"];
        let mut command = scratch.command(&arguments);
        let client = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait(&mut random, Duration::from_millis(500));
        if index % 5 == 4 {
            killed += u64::from(kill(server));
            kill(client);
            // At the same place, at once.
            server = start(&address).0;
        } else {
            killed += u64::from(kill(client));
        }
        assert_eq!(scratch.list(), before);
    }
    ok(&scratch.brakelight(&["perf", &address, "--bytes", "10kB", "--format", "json"]));
    kill(server);
    eprintln!("perf: {killed} of {count} killed; the server, or the next one at its place, serves");
}

/// What a router changes of its machine, in a network of its own.
struct Network(String);

impl Network {
    /// Nothing where it cannot be made.
    fn new() -> Option<Self> {
        let network = Network(format!("blk{}", std::process::id()));
        let name = &network.0;
        let made = Command::new("sh")
            .args([
                "-c",
                &format!(
                    "ip netns add {name} && ip -n {name} link add in type veth peer name out && \
                ip -n {name} link property add dev in altname inside && \
                ip -n {name} link set in up && ip -n {name} link set out up"
                ),
            ])
            .output();
        if !made.is_ok_and(|output| output.status.success()) {
            return None;
        }
        // Each end sees the other a moment later.
        eventually("an end does not see the other", || !network.state().contains("NO-CARRIER"));
        Some(network)
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0, program]).args(arguments).stdin(Stdio::null());
        command
    }

    /// Devices, queue disciplines and offloads, without numbers that count.
    fn state(&self) -> String {
        let ask = "ip -o link | cut -d: -f2,3 | sed 's/state.*//'; tc qdisc show | sed 's/ [0-9a-f]*: / /'; \
            ethtool -k in | grep generic-receive; tc filter show dev in ingress; tc filter show dev out egress";
        let output = self.command("sh", &["-c", ask]).output().unwrap();
        text(&output.stdout)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

#[test]
fn what_a_killed_router_left_is_removed_by_the_next_and_said() {
    let binary = env!("CARGO_BIN_EXE_brakelight");
    let Some(network) = Network::new() else {
        brakelight_testkit::skip("kernel: kills of the router", "no network namespace can be made");
        return;
    };
    let before = network.state();
    let words = [binary, "router", "attach", "in", "--rate", "12Mbps", "--format", "json"];
    let attach_by = |launcher: &[&str], device: &str| {
        let mut words = [launcher, &words].concat();
        words[launcher.len() + 3] = device;
        let mut command = network.command(words[0], &words[1..]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let attach = || attach_by(&[], "in");
    /// Runs it until its first line, and ends it with `signal`; what it said.
    fn once(mut command: Command, signal: &str) -> Result<String, String> {
        let mut child = command.spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
        if !first.is_empty() {
            send(child.id() as i32, signal);
        }
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if first.is_empty() { Err(said) } else { Ok(said) }
    }
    if let Err(said) = once(attach(), "INT") {
        brakelight_testkit::skip("kernel: kills of the router", said);
        return;
    }
    assert_eq!(network.state(), before, "an interrupt leaves something");
    // A running router is never replaced, even by one that cannot see its process, or that uses another name
    // for the device.
    let mut living = attach().spawn().unwrap();
    let mut said = BufReader::new(living.stdout.take().unwrap());
    said.read_line(&mut String::new()).unwrap();
    let with_it = network.state();
    let apart = &["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"][..];
    let others = [(&[][..], "in"), (&[], "inside"), (apart, "in")];
    let tries =
        others.map(|(launcher, device)| (device, once(attach_by(launcher, device), "KILL"), network.state()));
    kill(living);
    for (device, answer, state) in tries {
        let refused = answer.unwrap_err();
        assert!(refused.contains("`in` already has a router"), "{device}: {refused}");
        assert_eq!(state, with_it, "a second router changed the first");
    }
    let said = once(attach_by(&[], "inside"), "INT").unwrap();
    assert!(said.contains("bl-in"), "{said}");
    assert_eq!(network.state(), before, "under another name the next run leaves something: {said}");
    let mut random = Random::stream(21, "kills of the router");
    let (count, mut left) = (kills(5), 0);
    for _ in 0..count {
        let child = attach().spawn().unwrap();
        wait(&mut random, Duration::from_millis(600));
        kill(child);
        // The kernel takes down what the process held a moment later.
        std::thread::sleep(Duration::from_millis(100));
        let changed = network.state() != before;
        let said = once(attach(), "INT").unwrap();
        if changed {
            left += 1;
            assert!(
                said.contains("killed"),
                "something was left, and the next run does not say that it removed it: {said}"
            );
        }
        assert_eq!(network.state(), before, "the next run leaves something: {said}");
    }
    eprintln!("router: {count} killed, {left} left something, which the next run removed and said so");
}
