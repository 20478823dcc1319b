//! `emulate`: what the command sees, and that nothing remains, however it ends.

mod support;

use std::io::Write;
use std::process::{Command, Stdio};

use support::world::{
    Machine, Namespaces, World, as_a_user, can_emulate, code, eventually, has, is_root, send,
};
use support::{UNRELIABLE, judge, text, unreliable};

/// A command that says that it runs, and goes on.
const STAYS: &[&str] = &["--", "sh", "-c", "echo ready; exec sleep 1000"];

/// The round trips that ping printed, in milliseconds.
fn round_trips(printed: &str) -> Vec<f64> {
    let times = printed.lines().filter_map(|line| line.split_once("time=")?.1.split_whitespace().next());
    times.map(|time| time.parse().unwrap()).collect()
}

/// A line of shell that sends two packets to each of `hosts`, each by a command of its own: one that had an
/// answer before waits for the next no longer than two round trips.
fn pings(hosts: &str) -> String {
    format!("for host in {hosts}; do ping -c1 -W30 $host && ping -c1 -W30 $host || exit; done")
}

#[test]
fn a_ping_takes_the_delay_of_both_directions_over_both_protocols() {
    if !can_emulate("pings through a path") || !has("ping", "pings through a path") {
        return;
    }
    let world = World::new("emulate-ping");
    let line = format!("{}; exit 7", pings("$BRAKELIGHT_HOST $BRAKELIGHT_HOST6"));
    let output = world.run(
        &[],
        &[
            "--up", "12Mbps", "--down", "fixed", "--queue", "codel", "--delay", "20ms", "--", "sh", "-c",
            &line,
        ],
    );
    let (printed, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(7), "{said}");
    let times = round_trips(&printed);
    assert_eq!(times.len(), 4, "{printed}");
    assert!(times.iter().all(|time| *time >= 40.0), "{times:?}");
    assert!(said.starts_with("emulated: up ") && said.contains("late by"), "{said}");
}

#[test]
fn path_elements_act_in_both_directions_in_the_order_given() {
    if !can_emulate("path elements") || !has("ping", "path elements") {
        return;
    }
    let world = World::new("emulate-elements");
    let output = world.run(
        &[],
        &[
            "--element",
            "delay:delay=30ms",
            "--element",
            "duplicate:rate=1",
            "--",
            "sh",
            "-c",
            "ping -c1 -W30 $BRAKELIGHT_HOST >/dev/null && ping -c2 -i1 -W30 $BRAKELIGHT_HOST",
        ],
    );
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(round_trips(&printed).iter().all(|time| *time >= 60.0), "{printed}");
    assert!(printed.contains("DUP!"), "{printed}");
}

#[test]
fn a_flow_that_its_window_limits_is_named_with_what_to_do() {
    if !can_emulate("a window's limit") || !has("iperf3", "a window's limit") {
        return;
    }
    let world = World::new("emulate-window");
    let warned = |line: &str| {
        let output = world.run(
            &[],
            &[
                "--up",
                "20Mbps",
                "--down",
                "20Mbps",
                "--delay",
                "50ms",
                "--server",
                "iperf3 -s -1 >/dev/null",
                "--",
                "sh",
                "-c",
                line,
            ],
        );
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        let lines = said.lines().filter(|line| line.contains("not by the path"));
        (lines.map(str::to_string).collect::<Vec<_>>(), unreliable(&said))
    };
    // A window of 64 KB carries 5 Mbit/s at 100 ms.
    let (limited, _) = warned("iperf3 -c $BRAKELIGHT_HOST -t 3 -w 32K >/dev/null");
    let [line] = &limited[..] else { panic!("{limited:?}") };
    assert!(line.starts_with("note: ") && line.contains(":5201: limited by its "), "{line}");
    assert!(line.contains(" % of the ") && line.contains("program"), "{line}");
    // A receiver that gets no processor does read late.
    judge("a flow that nothing limits", || {
        let (free, reasons) = warned("iperf3 -c $BRAKELIGHT_HOST -t 3 >/dev/null");
        (if free.is_empty() { Ok(()) } else { Err(free.join("; ")) }, reasons)
    });
}

#[test]
fn standard_streams_and_the_exit_code_are_the_commands() {
    if !can_emulate("the streams of a command") {
        return;
    }
    let world = World::new("emulate-streams");
    let mut child = world
        .command(&[], &["--", "sh", "-c", "cat; echo to error >&2; exit 42"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"in\0and out\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"in\0and out\n");
    assert_eq!(output.status.code(), Some(42));
    let said = text(&output.stderr);
    // A busy machine is said, too.
    let lines = said.lines().filter(|line| !line.starts_with(UNRELIABLE)).count();
    assert!(said.starts_with("to error\nemulated: ") && lines == 2, "{said}");
    world.nothing_is_left(&Namespaces::default());
}

#[test]
fn a_command_that_crashes_gives_the_code_that_a_shell_would() {
    if !can_emulate("crashes") {
        return;
    }
    let world = World::new("emulate-crash");
    for (signal, expected) in [("SEGV", 139), ("KILL", 137), ("TERM", 143)] {
        let line = format!("ulimit -c 0; kill -s {signal} $$");
        assert_eq!(code(world.run(&[], &["--", "sh", "-c", &line]).status), expected);
    }
}

#[test]
fn what_a_command_leaves_in_the_background_ends_with_it() {
    if !can_emulate("background processes") {
        return;
    }
    let world = World::new("emulate-background");
    let line = "setsid sleep 1000 & (trap '' TERM HUP INT; exec sleep 1000) & exit 0";
    let output = world.run(&[], &["--", "sh", "-c", line]);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_server_is_waited_for_and_ended() {
    if !can_emulate("servers") || !has("python3", "servers") {
        return;
    }
    let world = World::new("emulate-server");
    // The server takes its time; the command does not try twice.
    let server = |kind: &str, listen: &str| {
        format!(
            "sleep 0.3; exec python3 -c 'import socket,signal
s=socket.socket(socket.AF_INET6,socket.{kind}); s.bind((\"::\",7)); {listen}signal.pause()'"
        )
    };
    let client = "import os,socket
for family,name in ((socket.AF_INET,'BRAKELIGHT_HOST'),(socket.AF_INET6,'BRAKELIGHT_HOST6')):
    s=socket.socket(family,socket.SOCK_STREAM); s.settimeout(20); s.connect((os.environ[name],7))";
    let tcp = server("SOCK_STREAM", "s.listen(); ");
    let output = world.run(&[], &["--delay", "5ms", "--server", &tcp, "--", "python3", "-c", client]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));

    // Each of several.
    let other = "exec python3 -c 'import socket,signal
s=socket.socket(); s.bind((\"\",8)); s.listen(); signal.pause()'";
    let output = world.run(&[], &["--server", other, "--server", &tcp, "--", "python3", "-c", client]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));

    // A refused datagram comes back as an error.
    let client = |patience: &str| {
        format!(
            "import os,socket
s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.connect((os.environ['BRAKELIGHT_HOST'],7)); s.send(b'x'); s.settimeout({patience})
try: s.recv(1)
except TimeoutError: pass"
        )
    };
    let udp = server("SOCK_DGRAM", "");
    let output = world.run(&[], &["--server", &udp, "--", "python3", "-c", &client("0.5")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let output = world.run(&[], &["--", "python3", "-c", &client("30")]);
    assert_eq!(output.status.code(), Some(1), "nobody listens: {}", text(&output.stderr));

    let output = world.run(&[], &["--server", "exit 3", "--", "echo", "not run"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).contains("exit code 3 before it listened"), "{}", text(&output.stderr));
}

#[test]
fn emulators_within_emulators_join_their_paths() {
    if !can_emulate("nested emulators") || !has("ping", "nested emulators") {
        return;
    }
    let world = World::new("emulate-nested");
    let binary = env!("CARGO_BIN_EXE_brakelight");
    let line = pings("$BRAKELIGHT_HOST $BRAKELIGHT_HOST6");
    for user in [Some(Vec::new()), as_a_user("nested emulators without root")].into_iter().flatten() {
        let inner = ["--delay", "5ms", "--", "sh", "-c", &line];
        let middle = [&["--delay", "20ms", "--", binary, "emulate"][..], &inner].concat();
        let outer = [&["--delay", "10ms", "--", binary, "emulate"][..], &middle].concat();
        let output = world.run(&user, &outer);
        let times = round_trips(&text(&output.stdout));
        assert_eq!(times.len(), 4, "{}", text(&output.stderr));
        assert!(times.iter().all(|time| *time >= 70.0), "{times:?}");
    }
}

#[test]
fn an_ordinary_user_needs_no_root() {
    let Some(user) = as_a_user("emulation without root") else { return };
    if !can_emulate("emulation without root") || !has("python3", "emulation without root") {
        return;
    }
    let world = World::new("emulate-user");
    // Every congestion control may be chosen, and low ports bound.
    let program = "import os,socket
for name in open('/proc/sys/net/ipv4/tcp_available_congestion_control').read().split():
    socket.socket().setsockopt(socket.IPPROTO_TCP,socket.TCP_CONGESTION,name.encode())
socket.socket().bind(('',80))
print(os.getuid(),os.getpid()>1,os.path.exists('/proc/1'))";
    let output = world.run(&user, &["--up", "12Mbps", "--", "python3", "-c", program]);
    let uid = if is_root() {
        "65534".to_string()
    } else {
        text(&Command::new("id").arg("-u").output().unwrap().stdout)
    };
    assert_eq!(text(&output.stdout), format!("{} True True\n", uid.trim()), "{}", text(&output.stderr));
}

#[test]
fn virtual_ethernet_takes_the_place_of_a_closed_tun() {
    if !can_emulate("without /dev/net/tun") || !has("ping", "without /dev/net/tun") {
        return;
    }
    let world = World::new("emulate-veth");
    // A world in which there is no such device.
    let hide = "mount -t tmpfs none /dev/net && exec \"$@\"";
    let words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", hide, "sh"];
    let line = format!("test ! -e /dev/net/tun && {}", pings("$BRAKELIGHT_HOST $BRAKELIGHT_HOST6"));
    let output = world.run(&words, &["--up", "12Mbps", "--delay", "10ms", "--", "sh", "-c", &line]);
    let times = round_trips(&text(&output.stdout));
    assert!(times.len() == 4 && times.iter().all(|time| *time >= 20.0), "{times:?} {}", text(&output.stderr));
}

#[test]
fn with_sudo_the_command_is_the_users() {
    if !is_root() {
        brakelight_testkit::skip("the user behind sudo", "this is not root");
        return;
    }
    if !can_emulate("the user behind sudo") {
        return;
    }
    let world = World::new("emulate-sudo");
    let mut command =
        world.command(&[], &["--", "sh", "-c", "id -u; id -g; id -G; grep CapEff /proc/self/status"]);
    let output = command.env("SUDO_UID", "65534").env("SUDO_GID", "65533").output().unwrap();
    let printed = text(&output.stdout);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[..2], ["65534", "65533"], "{}", text(&output.stderr));
    assert!(!lines[2].split(' ').any(|group| group == "0"), "{printed}");
    assert!(lines[3].ends_with("0000000000000000"), "{printed}");
}

#[test]
fn with_sudo_the_log_is_the_users_and_goes_only_where_that_user_may_write() {
    if !is_root() {
        brakelight_testkit::skip("logs of the user behind sudo", "this is not root");
        return;
    }
    // The user's folder is beside the program, and may be nobody's to reach but root's.
    if as_a_user("logs of the user behind sudo").is_none() || !can_emulate("logs of the user behind sudo") {
        return;
    }
    let world = World::new("emulate-sudo-log");
    let emulate = |log: &str| {
        let mut command = world.command(&[], &["--up", "12Mbps", "--log", log, "--", "true"]);
        command.env("SUDO_UID", "65534").env("SUDO_GID", "65533").output().unwrap()
    };
    // Root's own folder is not the user's to write to.
    let output = emulate("log");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("--log `log` cannot be written"), "{}", text(&output.stderr));
    world.nothing_is_left(&Namespaces::default());

    let home = world.scratch.path("home");
    std::fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(65534), Some(65533)).unwrap();
    // Nor is what the user's links lead to.
    std::os::unix::fs::symlink(world.scratch.path(""), home.join("link")).unwrap();
    assert_eq!(emulate("home/link").status.code(), Some(2));
    let output = emulate("home/a/log");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for file in ["a", "a/log", "a/log/report.html", "a/log/links/true.up.log"] {
        use std::os::unix::fs::MetadataExt;
        let owner = home.join(file).metadata().unwrap();
        assert_eq!((owner.uid(), owner.gid()), (65534, 65533), "{file}");
    }
    std::fs::remove_dir_all(&home).unwrap();
    world.nothing_is_left(&Namespaces::default());
}

#[test]
fn what_passes_the_link_is_the_programs() {
    if !can_emulate("a path without traffic") {
        return;
    }
    let world = World::new("emulate-silence");
    let output = world.run(&[], &["--up", "12Mbps", "--down", "12Mbps", "--", "sleep", "1.5"]);
    let said = text(&output.stderr);
    assert!(
        said.contains("up 0 packets delivered, 0 dropped; down 0 packets delivered, 0 dropped"),
        "{said}"
    );
}

#[test]
fn an_interrupt_at_the_terminal_is_the_commands_to_answer() {
    if !can_emulate("interrupts at a terminal") || !has("script", "interrupts at a terminal") {
        return;
    }
    let world = World::new("emulate-terminal");
    let line = "trap 'n=$((n+1))' INT; echo ready; while [ -z \"$n\" ]; do sleep 0.1; done; sleep 0.3; echo caught $n; exit 5";
    std::fs::write(world.scratch.path("program"), line).unwrap();
    // The shell's own name is brakelight's path. The shell at the terminal is interrupted, too, and
    // which of them outlive that without a trap differs from shell to shell.
    let script = "exec script -qec \"trap : INT; $0 emulate -- sh program; echo code \\$?\" /dev/null";
    let mut child = world
        .command(&["sh", "-c", script], &[])
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut printed = Vec::new();
    let mut byte = [0];
    let mut interrupted = false;
    while std::io::Read::read(&mut stdout, &mut byte).unwrap() == 1 {
        printed.push(byte[0]);
        if !interrupted && printed.ends_with(b"ready") {
            interrupted = true;
            child.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
        }
    }
    child.wait().unwrap();
    let printed = text(&printed);
    assert!(printed.contains("caught 1") && printed.contains("code 5"), "{printed}");
    std::fs::remove_file(world.scratch.path("program")).unwrap();
    world.nothing_is_left(&Namespaces::default());
}

#[test]
fn signals_from_elsewhere_are_handed_on_and_nothing_remains() {
    if !can_emulate("signals") {
        return;
    }
    let world = World::new("emulate-signals");
    for (signal, expected) in [("INT", 130), ("TERM", 143), ("HUP", 129), ("USR1", 138)] {
        let mut started = world.start(&[], STAYS);
        started.signal(signal);
        let (status, said, namespaces) = started.end();
        assert_eq!(code(status), expected, "{signal}: {said}");
        world.nothing_is_left(&namespaces);
    }
    // Who will not end when told to is ended; with all that it has written so far.
    let stubborn = "trap '' TERM; echo ready; while :; do sleep 1; done";
    let mut started = world.start(&[], &["--up", "12Mbps", "--log", "log", "--", "sh", "-c", stubborn]);
    started.signal("TERM");
    let (status, said, namespaces) = started.end();
    assert_eq!(code(status), 143, "{said}");
    std::fs::remove_dir_all(world.scratch.path("log")).unwrap();
    world.nothing_is_left(&namespaces);
}

#[test]
fn a_kill_of_any_of_its_processes_leaves_nothing() {
    if !can_emulate("kills") {
        return;
    }
    let world = World::new("emulate-kill");
    let user = as_a_user("kills without root").unwrap_or_default();
    let server = "python3 -m http.server 7070";
    let serving: &[&str] = if has("python3", "kills with a server") { &["--server", server] } else { &[] };
    let logging = [serving, &["--up", "12Mbps", "--meter"], STAYS].concat();
    // The emulator itself, as root where this is root, and as a user.
    for before in [&[][..], &user] {
        let mut started = world.start(before, &logging);
        started.signal("KILL");
        let (status, _, namespaces) = started.end();
        assert_eq!(code(status), 137);
        world.nothing_is_left(&namespaces);
    }
    // With half a log, in a folder of folders that had to be made.
    let mut started = world.start(&[], &[&["--up", "12Mbps", "--log", "a/b/log"], STAYS].concat());
    assert!(
        world.scratch.list().iter().any(|file| file.ends_with("sh.up.log")),
        "{:?}",
        world.scratch.list()
    );
    started.signal("KILL");
    let (_, _, namespaces) = started.end();
    world.nothing_is_left(&namespaces);
    // The others: the emulator notices, and says so.
    let started = world.start(&[], STAYS);
    let count = world.processes().len();
    started.child.stdout.as_ref().unwrap();
    let emulator = started.child.id() as i32;
    let owner = world.processes().into_iter().find(|pid| parent(*pid) == Some(emulator)).unwrap();
    send(owner, "KILL");
    let (status, said, namespaces) = started.end();
    assert_eq!(code(status), 1, "{count} processes: {said}");
    assert!(said.contains("ended from outside"), "{said}");
    world.nothing_is_left(&namespaces);
}

fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn nat_reaches_the_network_and_leaves_it_as_it_was() {
    if !can_emulate("--nat")
        || ["unshare", "nsenter", "ip", "ping", "nft"].iter().any(|name| !has(name, "--nat"))
    {
        return;
    }
    let world = World::new("emulate-nat");
    let machine = Machine::new();
    let words = machine.words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let state = || {
        machine.ask(
            "cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding; nft list ruleset; ip -br link | cut -d' ' -f1; ip -4 -br addr",
        )
    };
    let before = state();
    assert!(before.starts_with("0\n0\n"), "{before}");

    let line = pings("198.51.100.2");
    let output = world.run(&words, &["--nat", "--delay", "10ms", "--", "sh", "-c", &line]);
    let times = round_trips(&text(&output.stdout));
    assert!(times.len() == 2 && times.iter().all(|time| *time >= 20.0), "{times:?} {}", text(&output.stderr));
    assert_eq!(state(), before);

    // Killed.
    let nat = [&["--nat"], STAYS].concat();
    let started = world.start(&words, &nat);
    let during = state();
    assert!(during.starts_with("1\n1\n") && during.contains("masquerade"), "{during}");
    let emulator = world.processes().into_iter().find(|pid| *pid == started.child.id() as i32).unwrap();
    send(emulator, "KILL");
    let (_, _, namespaces) = started.end();
    world.nothing_is_left(&namespaces);
    eventually(&format!("the network is not as it was, {before}, but {}", state()), || state() == before);

    // Two at a time: the second still forwards when the first has ended, in either way.
    for signal in ["TERM", "KILL"] {
        let mut first = world.start(&words, &nat);
        let mut second = world.start(&words, &nat);
        let both = state();
        assert_eq!(both.matches("masquerade").count() / 2, 2, "{both}");
        first.signal(signal);
        let (_, _, _) = first.end();
        eventually("the first is still there", || state().matches("masquerade").count() / 2 == 1);
        assert!(state().starts_with("1\n1\n"), "{}", state());
        second.signal(signal);
        let (_, _, namespaces) = second.end();
        world.nothing_is_left(&namespaces);
        eventually(&format!("the network is not as it was, {before}, but {}", state()), || state() == before);
    }
}

#[test]
fn nat_without_root_is_refused_with_what_to_do() {
    let Some(user) = as_a_user("--nat without root") else { return };
    let world = World::new("emulate-nat-user");
    let output = world.run(&user, &["--nat", "--", "true"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("run it with sudo"), "{}", text(&output.stderr));
}

#[test]
fn the_doctor_names_what_is_missing_and_the_command_says_it_too() {
    if !can_emulate("the doctor") || !has("unshare", "the doctor") {
        return;
    }
    let world = World::new("emulate-doctor");
    // A world in which users may make no namespaces, and without capabilities, so that root there is one of
    // them.
    let forbidden = "echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set -all --inh-caps -all \"$@\"";
    let words = ["unshare", "--user", "--map-root-user", "sh", "-c", forbidden, "sh"];
    let output = world.run(&words, &["--doctor"]);
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("namespaces           missing  no user namespaces are allowed here"),
        "{printed}"
    );
    assert!(printed.contains("to do: sudo sysctl user.max_user_namespaces="), "{printed}");
    let output = world.run(&words, &["--", "true"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.starts_with("error: making a user namespace") && said.contains("--doctor"), "{said}");
}

/// Start and stop, within limits on namespaces that a leak would soon reach: the kernel itself counts.
/// `BRAKELIGHT_CYCLES` says how often.
#[test]
fn cycles_of_start_and_stop_leave_nothing() {
    if !can_emulate("cycles") || !has("unshare", "cycles") {
        return;
    }
    let cycles: u32 = std::env::var("BRAKELIGHT_CYCLES").map_or(40, |text| text.parse().unwrap());
    let world = World::new("emulate-cycles");
    let limits = "for kind in user net pid mnt; do echo 60 > /proc/sys/user/max_${kind}_namespaces; done; \
        i=0; while [ $i -lt $CYCLES ]; do i=$((i+1)); \"$@\" || exit 9; done; echo $i cycles";
    let words = ["unshare", "--user", "--map-root-user", "sh", "-c", limits, "sh"];
    let interfaces = || std::fs::read_to_string("/proc/net/dev").unwrap().matches("brakelight").count();
    let before = interfaces();
    let arguments = ["--up", "12Mbps", "--", "true"];
    let output = world.command(&words, &arguments).env("CYCLES", cycles.to_string()).output().unwrap();
    assert_eq!(text(&output.stdout), format!("{cycles} cycles\n"), "{}", text(&output.stderr));
    world.nothing_is_left(&Namespaces::default());
    assert_eq!(interfaces(), before);
    eprintln!("{cycles} cycles of start and stop: no process, namespace, interface or file is left");
}
