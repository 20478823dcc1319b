//! Everything that can be wrong with what a user gives: one line that names it and says what would be valid,
//! exit code 2, and nothing written.

mod support;

use std::fmt::Write;

use support::{Scratch, text};

/// The command lines, as a shell would split them. Every file they name is in the folder, or is meant not to
/// be.
const LINES: &[&str] = &[
    // Traces.
    "compare --trace missing.down",
    "compare --reverse missing.down",
    "compare --trace empty.down",
    "compare --trace words.down",
    "compare --trace negative.down",
    "compare --trace backwards.down",
    "compare --trace overflow.down",
    "compare --trace blank.down",
    "compare --trace binary.down",
    "compare --trace zero.down",
    "compare --trace folder",
    "compare --trace fixed --trace fixed",
    "trace show missing.down",
    "trace show words.down",
    "trace synth missing.toml",
    "trace synth wrong-recipe.toml",
    "trace synth fixed --duration 0s",
    "trace synth fixed --seed -1",
    "trace synth fixed --out nowhere/fixed.down",
    "trace synth fixed --out folder",
    "trace convert missing.csv",
    "trace convert words.csv",
    "trace convert empty.down",
    "trace convert numbers.down --from pcap",
    "trace convert numbers.down --to csv --bin 0s",
    "trace convert numbers.down --out numbers.down",
    "trace fit numbers.down --out ./numbers.down",
    "trace synth wrong-recipe.toml --out wrong-recipe.toml",
    // Numbers.
    "compare --duration 0s",
    "compare --duration -5s",
    "compare --duration 60",
    "compare --duration 60parsec",
    "compare --duration 99999999999h",
    "compare --rtt 0ms",
    "compare --rtt -1ms",
    "compare --rtt fast",
    "compare --rtt 2000000h --trace fixed --schemes cubic",
    "compare --buffer 0pkt",
    "compare --buffer 0B",
    "compare --buffer -3pkt",
    "compare --buffer 250",
    "compare --buffer 1B --trace fixed --schemes cubic",
    "compare --buffer 99999999999pkt",
    "compare --runs 0",
    "compare --runs many",
    "compare --seed -1",
    "compare --trace-offset soon",
    "attack",
    "attack speed",
    "attack abc --objective speed",
    "attack abc --space everything",
    "attack abc --budget 0",
    "attack abc --bounds rate=5Mbps..1Mbps",
    "attack abc --bounds speed=1Mbps",
    "attack abc --against cubic,bbr --objective starve",
    "attack abc --budget 8 --out zero-buffer.toml",
    "advise --can shaper",
    "advise --trace missing.down --can shaper",
    "advise --trace fixed --can everything",
    "advise --trace fixed --trace-up fixed --can router",
    "advise --trace fixed --trace-up missing.down --can router",
    "advise --trace fixed --can both --rtt 2000000h",
    "evaluate",
    "evaluate speed",
    "evaluate cubic cubic",
    "evaluate cubic --kit rfc5033",
    "evaluate cubic --level none",
    "evaluate cubic --fail-on maybe",
    "evaluate cubic --against nothing.json",
    "evaluate cubic --against zero-buffer.toml",
    "evaluate cubic --only 9.9-everything",
    "evaluate cubic --only 5.1.3 --against nothing.json",
    "evaluate cubic --like speed",
    "evaluate cubic --like newreno --level none",
    "evaluate cubic cubic --like newreno",
    "evaluate abc --like cubic",
    "evaluate cubic --like cubic+codel",
    "evaluate cubic --like newreno --kit bbr",
    "evaluate cubic --like newreno --format junit",
    "stability --flows 4,x",
    "stability --flows 0",
    "stability --ratios 0.5,",
    "stability --ratios 100",
    "stability --rate 0Mbps",
    "stability --rtt 1h",
    "stability --eta 2",
    "stability --target 1h",
    "stability --variant adaptive --eta 0.9",
    "stability --variant adaptive --ratios 0.1",
    "stability --rates 24Mbps..6Mbps",
    "stability --rates 6Mbps..24Mbps --changes 1",
    "stability --rates 6Mbps..24Mbps --variant adaptive",
    "stability --changes 2",
    "stability --variant vcp",
    "stability --out words.down",
    // Schemes.
    "compare --schemes cubik",
    "compare --schemes cubic+coddle",
    "compare --schemes abc:eta=7",
    "compare --schemes abc:gamma=1",
    "compare --schemes abc:eta=0.9,eta=0.8",
    "compare --rtt 50ms --rtt 60ms",
    "compare --schemes bmcc:eta=1.3",
    "compare --schemes bmcc:u=0.7",
    "compare --schemes bmcc:eta_0=0.8",
    "compare --schemes bmcc:beta_max=1",
    "compare --schemes bmcc:beta_max=0",
    "compare --schemes bmcc:beta_min=1",
    "compare --schemes bmcc:beta_min=0",
    "compare --schemes bmcc:beta_min=0.9",
    "compare --schemes bmcc:interval=0s",
    "compare --schemes mlcp:beta_min=0.9",
    "compare --schemes mlcp:interval=0s",
    "compare --schemes mlcp:u=1",
    "compare --schemes vcp:beta=1",
    "compare --schemes vcp:interval=0s",
    "compare --schemes abc,abc",
    "compare --schemes abc+droptail:",
    "compare --schemes=",
    "compare --against cubik",
    "compare --against cubic+codel --trace fixed --schemes cubic",
    "compare --traffic torrent",
    "compare --traffic size",
    // Output.
    "compare --out numbers.down",
    "compare --out numbers.down/below",
    "compare --series csv",
    "compare --link-logs",
    "run good.toml --out numbers.down",
    // Scenarios.
    "run missing.toml",
    "run binary.down",
    "run broken.toml",
    "run unknown-key.toml",
    "run unknown-unit.toml",
    "run unknown-trace.toml",
    "run bad-trace.toml",
    "run unknown-link.toml",
    "run zero-duration.toml",
    "run four-days.toml",
    "run too-much-to-count.toml",
    "run negative-rtt.toml",
    "run zero-buffer.toml",
    "run long-red-target.toml",
    "run high-red-threshold.toml",
    "run high-quicdc-threshold.toml",
    "run restart-of-a-radio.toml",
    "run restart-while-away.toml",
    "run restart-that-keeps.toml",
    "run restart-never.toml",
    "run restart-burnt.toml",
    "run tunnel-without-end.toml",
    "run tunnel-without-beginning.toml",
    "run tunnel-in-tunnel.toml",
    "run tunnel-header.toml",
    "run bmcc-eta-apart.toml",
    "run bmcc-bits-apart.toml",
    "run bmcc-ends-apart.toml",
    "run mlcp-interval-apart.toml",
    "run vcp-low-load-apart.toml",
    "run unfair-to-nobody.toml",
    "run long-unfairness.toml",
    "run good.toml --runs 0",
    // The kernel.
    "tcp load --feedback smoke",
    "tcp load --pacing 5",
    "tcp load --controller reno",
    "tcp load --threshold 20ms",
    "tcp load --controller wdc --threshold 0%",
    "tcp load --controller wdc --threshold 1us",
    "tcp load --controller wdc --threshold soon",
    "tcp load --controller wdc --dev eth0",
    "tcp load --controller wdc --receiver",
    "tcp load --controller wdc --feedback option",
    "tcp load --duration 0s",
    "tcp load --pin --duration 5s",
    "tcp load --name a/b",
    "tcp load --name a-b",
    "tcp watch --interval 0s",
    "router attach",
    "router attach eth0",
    "router attach eth0 --rate 0Mbps",
    "router attach eth0 --rate 12Mbps --from-qdisc ifb0",
    "router attach eth0 --rate 12Mbps --eta 2",
    "router attach eth0 --rate 12Mbps --variant adaptive --target 5ms",
    "router attach eth0 --rate 12Mbps --variant tuned",
    "router attach eth0 --rate 12Mbps --buffer 0pkt",
    "router qdisc set",
    "router qdisc set eth0 --rate 0Mbps",
    "router qdisc set eth0 --unshaped",
    "router qdisc set eth0 --parent 1",
    "router qdisc set eth0 --buffer 5GB",
    "router qdisc set eth0 --token-limit 1",
    "router qdisc set eth0 --encoding morse",
    "router qdisc set eth0 --x guess",
    "router qdisc set eth0 --variant adaptive --delta 60ms",
    "router qdisc set eth0 --variant adaptive --x backlog",
    "router qdisc set no-such-device0",
    "router qdisc show no-such-device0",
    "router qdisc watch no-such-device0",
    "router qdisc remove no-such-device0",
    "shaper",
    "shaper --device eth0",
    "shaper --device eth0 --up pid",
    "shaper --device eth0 --up oracle",
    "shaper --device eth0 --up fixed",
    "shaper --device eth0 --up fixed/share=0.8",
    "shaper --device eth0 --up fixed/rate=0Mbps",
    "shaper --device eth0 --up autorate",
    "shaper --device eth0 --up autorate/min=30Mbps --reflector 192.0.2.1",
    "shaper --device eth0 --up follow --reflector router.example",
    "shaper --device eth0 --up follow --reflector 192.0.2.1,192.0.2.2",
    "shaper --device eth0 --up follow --reflector 224.0.0.1",
    "shaper --device eth0 --down follow --reflector 192.0.2.1",
    "shaper --device no-such-device0 --up fixed/rate=20Mbps",
    "shaper --device no-such-device0 --up fixed/rate=20Mbps --interval 0s",
    "tcp watch --count 0",
    "tcp status --format csv",
    // Emulation.
    "emulate",
    "emulate true",
    "emulate -- no-such-program",
    "emulate -- folder",
    "emulate --up 12Mbauds -- true",
    "emulate --up 0Mbps -- true",
    "emulate --up missing.down -- true",
    "emulate --up words.down -- true",
    "emulate --down backwards.down -- true",
    "emulate --down 5ms:12Mbps,x -- true",
    "emulate --queue codel -- true",
    "emulate --up-queue codel -- true",
    "emulate --up 1Mbps --queue coddle -- true",
    "emulate --up 1Mbps --queue codel:x=1 -- true",
    "emulate --down 1Mbps --down-queue xcp -- true",
    "emulate --up 1Mbps --abc-by ipid=0xabc -- true",
    "emulate --up 1Mbps --queue abc_dual --abc-by port=1 -- true",
    "emulate --up 1Mbps --queue abc_dual --abc-by ipid=65536 -- true",
    "emulate --up 1Mbps --queue abc_dual --abc-by flow-label=0 -- true",
    "emulate --up 1Mbps --queue abc_dual --abc-by address=192.0.2.0/33 -- true",
    "emulate --up 1Mbps --buffer 0pkt -- true",
    "emulate --delay -1ms -- true",
    "emulate --delay soon -- true",
    "emulate --loss 2 -- true",
    "emulate --loss some -- true",
    "emulate --element jiter -- true",
    "emulate --element jitter:mean -- true",
    "emulate --element loss:rate=2 -- true",
    "emulate --element encapsulate -- true",
    "emulate --seed -1 -- true",
    "emulate --log numbers.down -- true",
    // QUIC.
    "perf",
    "perf 127.0.0.1:port",
    "perf 127.0.0.1 --controller cubik",
    "perf 127.0.0.1 --controller cubic:beta",
    "perf 127.0.0.1 --controller abc",
    "perf 127.0.0.1 --compare-stock --controller bbr",
    "perf 127.0.0.1 --controller sprout",
    "perf 127.0.0.1 --controller xcp --own-path",
    "perf 127.0.0.1 --duration 0s",
    "perf 127.0.0.1 --bytes 0B",
    "perf 127.0.0.1 --bytes 1MB --duration 5s",
    "perf 127.0.0.1 --upload --download",
    "perf 127.0.0.1 --request-response --response 2GB",
    "perf 127.0.0.1 --connections 0",
    "perf 127.0.0.1 --pin 12ab",
    "perf 127.0.0.1 --ca missing.pem",
    "perf 127.0.0.1 --ca words.down",
    "perf-server --listen 127.0.0.1:99999",
    "perf-server --controller abc",
    "perf-server --cert words.down",
    "perf-server --cert words.down --key words.down",
    // Words.
    "",
    "compete",
    "compare --format xml",
    "compare --colour",
    "compare extra",
    "run",
    "run good.toml --on mars",
    "run vegas.toml --on emulator",
    "run good.toml --on emulator --host quic",
    "run header.toml --on emulator --host quinn",
    "run half-second.toml --on emulator",
    "run xcp-queue.toml --on emulator",
    "run unknown-link.toml --on emulator",
    "parity",
    "parity missing.toml",
    "parity vegas.toml",
    "parity good.toml --runs 0",
    "parity good.toml --beside none",
    "parity --duration 500ms",
    "parity good.toml --host quic",
    "parity good.toml --host stacks",
    "parity header.toml --host quinn",
    "run good.toml --host sctp",
    "run header.toml --host quinn",
    "run request.toml --host quinn",
    "run tiny.toml --host quinn",
    "list",
    "list everything",
    "reproduce ABC-F99",
    "reproduce B-F",
    "reproduce missing.toml",
    "reproduce good.toml",
];

fn scenario(change: (&str, &str)) -> String {
    let good = "duration = \"1s\"\n\n[[link]]\nname = \"up\"\nrate = \"12Mbps\"\nbuffer = \"250pkt\"\n\n\
        [[flow]]\ncontroller = \"cubic\"\nrtt = \"100ms\"\npath = [\"up\"]\n";
    assert!(good.contains(change.0));
    good.replace(change.0, change.1)
}

fn folder() -> Scratch {
    let scratch = Scratch::new("bad-input");
    scratch.write("empty.down", "");
    scratch.write("words.down", "1\n2\nthree\n");
    scratch.write("negative.down", "1\n-2\n");
    scratch.write("backwards.down", "1\n5\n3\n");
    scratch.write("overflow.down", "1\n99999999999999999999\n");
    scratch.write("blank.down", "1\n\n3\n");
    scratch.write("binary.down", b"1\n2\n\xff\xfe\x00\x1b[2J\n");
    scratch.write("zero.down", "0\n0\n");
    scratch.write("numbers.down", "1\n2\n3\n");
    scratch.write("folder/inside", "");
    scratch.write("words.csv", "start_s,mbps\n0,fast\n");
    scratch.write("wrong-recipe.toml", "about = \"x\"\nduration = \"5s\"\ncelular = 1\n");
    scratch.write("good.toml", scenario(("1s", "1s")));
    scratch.write("header.toml", scenario(("\"cubic\"", "\"sprout\"")));
    let traffic = |what: &str| scenario(("controller =", &format!("{what}\ncontroller =")));
    let request = "{ kind = \"request-response\", request = \"1MB\", response = \"1kB\" }";
    scratch.write("request.toml", traffic(&format!("traffic = {request}")));
    scratch.write("tiny.toml", traffic("mss = \"500B\""));
    scratch.write("broken.toml", scenario(("[[link]]", "[[link]")));
    scratch.write("unknown-key.toml", scenario(("buffer =", "bufer =")));
    scratch.write("unknown-unit.toml", scenario(("12Mbps", "12Mbauds")));
    scratch.write("unknown-trace.toml", scenario(("rate = \"12Mbps\"", "trace = \"missing.down\"")));
    scratch.write("bad-trace.toml", scenario(("rate = \"12Mbps\"", "trace = \"backwards.down\"")));
    scratch.write("unknown-link.toml", scenario(("[\"up\"]", "[\"down\"]")));
    scratch.write("zero-duration.toml", scenario(("1s", "0s")));
    scratch.write("four-days.toml", scenario(("1s", "96h")));
    scratch.write("too-much-to-count.toml", scenario(("1s", "3h")).replace("12Mbps", "1Gbps"));
    scratch.write("negative-rtt.toml", scenario(("100ms", "-100ms")));
    let queue =
        |name: &str| scenario(("buffer = \"250pkt\"", &format!("buffer = \"250pkt\"\nqueue = \"{name}\"")));
    scratch.write("long-red-target.toml", queue("bmcc:coexist=true,red_target=600ms"));
    scratch.write("high-red-threshold.toml", queue("red:min_th=300"));
    scratch.write("high-quicdc-threshold.toml", scenario(("\"cubic\"", "\"quicdc:threshold=300ms\"")));
    let restarts =
        |list: &str| scenario(("buffer = \"250pkt\"", &format!("buffer = \"250pkt\"\nrestarts = [{list}]")));
    let radio = restarts("{ at = \"1s\" }").replace("rate = \"12Mbps\"", "radio = \"wifi\"");
    scratch.write("restart-of-a-radio.toml", radio);
    scratch.write("restart-while-away.toml", restarts("{ at = \"1s\", down = \"2s\" }, { at = \"2s\" }"));
    scratch.write("restart-that-keeps.toml", restarts("{ at = \"1s\", down = \"2s\", waiting = \"kept\" }"));
    scratch.write("restart-never.toml", restarts("{ down = \"2s\" }"));
    scratch.write("restart-burnt.toml", restarts("{ at = \"1s\", waiting = \"burnt\" }"));
    let path = |path: &str| scenario(("[\"up\"]", path));
    scratch.write("tunnel-without-end.toml", path("[\"encapsulate\", \"up\"]"));
    scratch.write("tunnel-without-beginning.toml", path("[\"up\", \"decapsulate:mode=rfc4301\"]"));
    scratch
        .write("tunnel-in-tunnel.toml", path("[\"encapsulate\", \"encapsulate\", \"up\", \"decapsulate\"]"));
    scratch.write("tunnel-header.toml", path("[\"encapsulate:overhead=30\", \"up\", \"decapsulate\"]"));
    scratch.write("vegas.toml", scenario(("\"cubic\"", "\"vegas\"")));
    scratch.write("half-second.toml", scenario(("1s", "500ms")));
    scratch.write("xcp-queue.toml", queue("xcp"));
    let protocol = |controller: &str, queue: &str| {
        scenario(("\"cubic\"", &format!("\"{controller}\"")))
            .replace("buffer = \"250pkt\"", &format!("buffer = \"250pkt\"\nqueue = \"{queue}\""))
    };
    scratch.write("bmcc-eta-apart.toml", protocol("bmcc:eta=0.6", "bmcc"));
    scratch.write("bmcc-bits-apart.toml", protocol("bmcc", "bmcc:bits=3"));
    scratch.write("bmcc-ends-apart.toml", protocol("bmcc:coexist=true", "droptail"));
    scratch.write("mlcp-interval-apart.toml", protocol("mlcp", "mlcp:interval=100ms"));
    scratch.write("vcp-low-load-apart.toml", protocol("vcp:low_load=0.7", "vcp"));
    let unfairness = |over: &str, flows: &str| {
        scenario(("duration = \"1s\"", &format!("duration = \"1s\"\nrecord = {{ unfairness = \"{over}\" }}")))
            .replace("controller = \"cubic\"", &format!("controller = \"cubic\"\ncount = {flows}"))
    };
    scratch.write("unfair-to-nobody.toml", unfairness("500ms", "1"));
    scratch.write("long-unfairness.toml", unfairness("2s", "2"));
    scratch.write("zero-buffer.toml", scenario(("250pkt", "0pkt")));
    scratch
}

#[test]
fn every_bad_input_gets_one_line_exit_code_2_and_leaves_nothing_behind() {
    let scratch = folder();
    let before = scratch.list();
    let mut table = String::new();
    for line in LINES {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let wants_output = matches!(arguments.first(), Some(&"compare")) && !line.contains("--out");
        let out = if wants_output { vec!["--out", "report"] } else { Vec::new() };
        // A series or a link log without a folder is the mistake of that line.
        let out = if line.contains("--series") || line.contains("--link-logs") { Vec::new() } else { out };
        let output = scratch.brakelight(&[arguments, out].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert_eq!(text(&output.stdout), "", "{line}: data although the input was wrong");
        assert_eq!(scratch.list(), before, "{line}: something was left behind");
        // Whoever says nothing at all gets the help.
        if line.is_empty() {
            assert!(said.contains("Usage: brakelight [OPTIONS] <COMMAND>"), "{said}");
            continue;
        }
        let complaint = said.strip_suffix('\n').unwrap_or(&said);
        assert!(
            complaint.starts_with("error: ") && !complaint.contains('\n'),
            "{line}: not one line: {said}"
        );
        assert!(complaint.chars().all(|c| !c.is_control()), "{line}: not fit for a terminal: {said:?}");
        writeln!(table, "{line}\n    {complaint}").unwrap();
    }
    insta::assert_snapshot!(without_lists(&table));
}

/// Lists of names change with every new algorithm, option, trace and claim; the messages do not.
fn without_lists(table: &str) -> String {
    const NAMED: &[&str] = &["controller", "queue", "option", "claim", "trace", "recipe", "link"];
    let shorten = |line: &str| {
        let unknown = NAMED.iter().any(|what| line.contains(&format!("unknown {what} `")));
        let list = ["valid are ", "known traces are ", "embedded recipes are ", "the nearest of "]
            .into_iter()
            .find_map(|before| line.find(before).map(|at| at + before.len()).filter(|_| unknown));
        match list {
            Some(at) => {
                assert!(line.len() > at, "{line}: a list without names");
                format!("{}...", &line[..at])
            }
            None => line.to_string(),
        }
    };
    table.lines().map(|line| shorten(line) + "\n").collect()
}
