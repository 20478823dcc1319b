//! Scenarios on the emulator: short runs by kernel TCP and by QUIC. They need iperf3 and a machine that lets
//! a user make namespaces and TUN devices; where something is missing, what was not run is said.

mod support;

use std::process::Command;

use brakelight_scenario::link_log;
use brakelight_scenario::outcome::LinkEvent;
use serde_json::Value;
use support::{Scratch, UNRELIABLE, judge, ok, text, unreliable};

const SCENARIO: &str = "name = \"two flows\"\nduration = \"2s\"\nmeasure_from = \"500ms\"\n\n\
    [[link]]\nname = \"forward\"\nrate = \"8Mbps\"\nbuffer = \"40pkt\"\nqueue = \"codel\"\n\n\
    [[link]]\nname = \"reverse\"\nrate = \"8Mbps\"\nbuffer = \"100pkt\"\n\n\
    [[flow]]\nname = \"one\"\ncontroller = \"cubic\"\nrtt = \"20ms\"\npath = [\"forward\"]\nreverse = [\"reverse\"]\n\n\
    [[flow]]\nname = \"other\"\ncontroller = \"newreno\"\nrtt = \"20ms\"\npath = [\"forward\"]\nreverse = [\"reverse\"]\n";

/// Whether the machine can run hosts behind an emulated link; says what it lacks.
fn can_run(scratch: &Scratch, what: &str) -> bool {
    if Command::new("iperf3").arg("--version").output().is_err() {
        brakelight_testkit::skip(what, "iperf3 is not installed");
        return false;
    }
    can_emulate(scratch, what)
}

/// Whether the machine can emulate a link; says what it lacks.
fn can_emulate(scratch: &Scratch, what: &str) -> bool {
    let tried = scratch.brakelight(&["emulate", "--", "true"]);
    if !tried.status.success() {
        brakelight_testkit::skip(what, format_args!("no emulator here: {}", text(&tried.stderr).trim()));
    }
    tried.status.success()
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} in {value}"))
}

#[test]
fn a_scenario_by_kernel_tcp_gives_the_document_of_a_simulation_and_a_log_that_agrees() {
    let scratch = Scratch::new("emulated-run");
    if !can_run(&scratch, "a scenario by kernel TCP") {
        return;
    }
    scratch.write("two.toml", SCENARIO);
    let line = "run two.toml --on emulator --format json --out out --link-logs --series csv";
    let output = scratch.brakelight(&line.split(' ').collect::<Vec<_>>());
    let document: Value = serde_json::from_str(&ok(&output)).unwrap();
    let row = &document["runs"][0];
    assert_eq!((&row["scheme"], &row["trace"]), (&"two flows".into(), &"8Mbps".into()));
    assert!((number(row, "/capacity_mbps") - 8.0).abs() < 0.05, "{row}");
    let utilization = number(row, "/utilization");
    assert!((0.01..=1.0).contains(&utilization), "{row}");
    assert!(number(row, "/queueing_delay_ms/p95") > 0.0 && number(row, "/lateness_ms/p99") >= 0.0, "{row}");
    assert!(number(row, "/duration_s") >= 1.5, "{row}");
    let flows = row["flows"].as_array().unwrap();
    let names: Vec<_> =
        flows.iter().map(|flow| (flow["name"].as_str(), flow["controller"].as_str())).collect();
    assert_eq!(names, [(Some("one"), Some("cubic")), (Some("other"), Some("newreno"))]);
    for flow in flows {
        assert!(number(flow, "/goodput_mbps") > 0.0, "{flow}");
        assert!(number(flow, "/throughput_mbps") > number(flow, "/goodput_mbps") * 0.5, "{flow}");
        assert!(number(flow, "/rtt_ms/p50") >= 20.0, "{flow}");
    }
    if row["unreliable"] == true {
        assert!(text(&output.stderr).contains(UNRELIABLE), "{}", text(&output.stderr));
        assert!(!row["unreliable_because"].as_array().unwrap().is_empty());
    }

    // The log, by our own parser: of the whole run, of which the row measures all but the first half second.
    let files = scratch.list();
    let read = |name: &str| std::fs::read_to_string(scratch.path(&format!("out/{name}"))).unwrap();
    let log = link_log::parse(&read("links/two-flows.8Mbps.forward.log")).unwrap();
    let count = |which: fn(&LinkEvent) -> bool| log.events.iter().filter(|event| which(event)).count() as i64;
    let arrived = count(|event| matches!(event, LinkEvent::Arrival { .. }));
    let departed = count(|event| matches!(event, LinkEvent::Departure { .. }));
    let dropped = count(|event| matches!(event, LinkEvent::Drop { .. }));
    let inside = arrived - departed - dropped;
    assert!((0..=40).contains(&inside), "{arrived} came, {departed} left, {dropped} were dropped");
    let late =
        log.events.iter().filter(|event| matches!(event, LinkEvent::Drop { ms, .. } if *ms >= 500)).count();
    assert_eq!(row["links"][0]["dropped_packets"], late);
    assert!(files.contains(&"out/report.html".to_string()), "{files:?}");
    let series = read("series/two-flows.8Mbps.flow-one.csv");
    assert!(series.lines().count() > 10, "{series}");
    assert!(!files.iter().any(|name| name.contains("partial")), "{files:?}");
}

#[test]
fn parity_judges_a_scenario_by_the_table_and_says_so_by_its_exit_code() {
    let scratch = Scratch::new("emulated-parity");
    if !can_run(&scratch, "parity of a scenario") {
        return;
    }
    // Nothing but the queue's delay can differ by much: one second of one flow.
    let one = SCENARIO.split("[[flow]]\nname = \"other\"").next().unwrap();
    scratch.write("one.toml", one);
    let output = scratch.brakelight(&["parity", "one.toml", "--format", "json", "--out", "out"]);
    let document: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    let row = &document["rows"][0];
    let cells = row["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    assert_eq!(number(row, "/simulator/runs"), 10.0);
    assert_eq!(number(&cells[0], "/tolerance_percent"), 8.0, "cubic at CoDel");
    let within = cells.iter().all(|cell| number(cell, "/off_percent") <= number(cell, "/tolerance_percent"));
    assert_eq!(row["verdict"], if within { "within" } else { "outside" });
    assert_eq!(output.status.code(), Some(if within { 0 } else { 1 }), "{}", text(&output.stderr));
    assert!(scratch.list().contains(&"out/parity.json".to_string()));
}

#[test]
fn abc_by_quic_gives_the_document_of_a_simulation_with_the_marks_that_its_packets_carried() {
    let scratch = Scratch::new("emulated-quic");
    if !can_emulate(&scratch, "a scenario by QUIC") {
        return;
    }
    let abc = SCENARIO.replace("queue = \"codel\"", "queue = \"abc\"");
    let abc = abc.replace("\"cubic\"", "\"abc\"").replace("\"newreno\"", "\"abc:second_window=false\"");
    scratch.write("two.toml", abc.replace("duration = \"2s\"", "duration = \"2500ms\""));
    let line = "run two.toml --on emulator --host quinn --format json --out out --series csv";
    let output = scratch.brakelight(&line.split(' ').collect::<Vec<_>>());
    let document: Value = serde_json::from_str(&ok(&output)).unwrap();
    let row = &document["runs"][0];
    let flows = row["flows"].as_array().unwrap();
    let names: Vec<_> =
        flows.iter().map(|flow| (flow["name"].as_str(), flow["controller"].as_str())).collect();
    assert_eq!(names, [(Some("one"), Some("abc")), (Some("other"), Some("abc"))]);
    for flow in flows {
        assert!(number(flow, "/goodput_mbps") > 0.0, "{flow}");
        assert!(number(flow, "/throughput_mbps") > number(flow, "/goodput_mbps"), "{flow}");
        assert!(number(flow, "/rtt_ms/p50") >= 20.0, "{flow}");
        assert!(number(flow, "/application/ended_s") > number(flow, "/application/started_s"), "{flow}");
    }
    // A flow's rates are over the two seconds that were to be measured, the row's over what these took.
    let together: f64 = flows.iter().map(|flow| number(flow, "/goodput_mbps") * 2.0).sum();
    let carried = number(row, "/goodput_mbps") * number(row, "/duration_s");
    assert!((carried / together - 1.0).abs() < 0.01, "{row}");
    // A router of ABC turns accelerates into brakes, and marks no CE.
    let (accelerates, brakes) = (number(row, "/marks/accelerate"), number(row, "/marks/brake"));
    assert!(accelerates > 100.0 && brakes > 100.0, "{row}");
    assert_eq!(number(row, "/marks/ce"), 0.0);
    // The series have the senders' windows and round trips. A bin in which no ACK came has no sample.
    let series = std::fs::read_to_string(scratch.path("out/series/two-flows.8Mbps.flow-one.csv")).unwrap();
    let columns: Vec<&str> = series.lines().next().unwrap().split(',').collect();
    let rows: Vec<Vec<&str>> = series.lines().skip(1).map(|line| line.split(',').collect()).collect();
    for (column, least) in [("cwnd_pkts", 1.0), ("rtt_ms", 20.0)] {
        let place = columns.iter().position(|name| *name == column).unwrap_or_else(|| panic!("{columns:?}"));
        let cells = rows.iter().map(|row| row[place]).filter(|cell| !cell.is_empty());
        let samples: Vec<f64> = cells.map(|cell| cell.parse().unwrap()).collect();
        assert!(samples.len() * 2 > rows.len(), "{column}: {series}");
        assert!(samples.iter().all(|sample| *sample >= least), "{column}: {series}");
    }
}

/// A flow alone on a link of 12 Mbit/s, 40 ms, for three seconds.
fn over(traffic: &str) -> String {
    let flow = format!("controller = \"cubic\"\nrtt = \"40ms\"\npath = [\"link\"]\ntraffic = {traffic}\n");
    format!(
        "duration = \"3s\"\n[[link]]\nname = \"link\"\nrate = \"12Mbps\"\nbuffer = \"100pkt\"\n[[flow]]\n{flow}"
    )
}

/// Every application over real packets beside the same code in simulation. What lies between them is the
/// machine: what it adds to each round trip, and where a loss falls for that. On an idle machine that is a
/// millisecond or two. The bounds hold where others keep it busy, and would not hold for an application that
/// stands still, hears nothing of the other end, or has another clock: a delay may be 50 % and 100 ms longer,
/// or 15 % and 1 ms shorter, a count or a rate 40 % lower or 30 % higher, and a share differ by 10 in a
/// hundred. They hold for runs that do not call themselves unreliable.
#[test]
fn every_application_does_on_the_emulator_as_in_simulation() {
    let scratch = Scratch::new("emulated-applications");
    if !can_emulate(&scratch, "applications by QUIC") {
        return;
    }
    let kinds: [(&str, &[&str]); 9] = [
        ("\"backlogged\"", &[]),
        ("{ kind = \"size\", size = \"1MB\" }", &["completion_ms"]),
        (
            "{ kind = \"on-off\", on = \"500ms\", off = \"500ms\", rate = \"4Mbps\" }",
            &["delivered_mbps", "offered_mbps"],
        ),
        ("{ kind = \"rate-limited\", rate = \"2Mbps\" }", &["offered_mbps", "delivered_mbps"]),
        (
            "{ kind = \"request-response\", request = \"4kB\", response = \"12kB\", think = \"50ms\" }",
            &["responses", "response_ms_p50"],
        ),
        ("\"game\"", &["updates", "updates_lost_percent", "rtt_ms_p50"]),
        (
            "{ kind = \"video\", segment = \"500ms\", buffer = \"4s\", startup = \"1s\" }",
            &["bitrate_mbps", "stalls", "startup_ms"],
        ),
        ("\"call\"", &["bitrate_mbps", "frames_shown", "frames_late_percent", "frame_delay_ms_p50"]),
        (
            "{ kind = \"short-flows\", per_second = 5, size = \"15kB\" }",
            &["flows_started", "flows_completed", "completion_ms_p50"],
        ),
    ];
    for (traffic, names) in kinds {
        scratch.write("a.toml", over(traffic));
        let run = |more: &str| {
            let line = format!("run a.toml --host quinn --format json{more}");
            let output = scratch.brakelight(&line.split(' ').collect::<Vec<_>>());
            let document: Value = serde_json::from_str(&ok(&output)).unwrap();
            (document["runs"][0]["flows"][0].clone(), unreliable(&text(&output.stderr)))
        };
        let (simulated, _) = run("");
        let keys = |flow: &Value| -> Vec<String> {
            flow["application"].as_object().into_iter().flat_map(|values| values.keys().cloned()).collect()
        };
        let mut expected = keys(&simulated);
        expected.extend(["ended_s".to_string(), "started_s".to_string()]);
        expected.sort();
        let compare = |emulated: &Value| {
            let paths = names.iter().map(|name| format!("/application/{name}"));
            for path in paths.chain(["/goodput_mbps".to_string()]) {
                let [simulated, emulated] = [&simulated, emulated].map(|flow| number(flow, &path));
                let (least, most) = if path.contains("_ms") {
                    (simulated * 0.85 - 1.0, simulated * 1.5 + 100.0)
                } else if path.contains("_percent") {
                    (simulated - 10.0, simulated + 10.0)
                } else {
                    (simulated * 0.6, simulated * 1.3)
                };
                if !(least..=most).contains(&emulated) {
                    return Err(format!("{path} is {emulated}, simulated {simulated}"));
                }
            }
            Ok(())
        };
        judge(traffic, || {
            let (emulated, reasons) = run(" --on emulator");
            assert_eq!(keys(&emulated), expected, "{traffic}");
            (compare(&emulated), reasons)
        });
    }
}

#[test]
fn parity_of_quic_holds_the_stack_and_its_model_against_the_emulator() {
    let scratch = Scratch::new("emulated-quic-parity");
    if !can_emulate(&scratch, "parity of QUIC") {
        return;
    }
    let one = SCENARIO.split("[[flow]]\nname = \"other\"").next().unwrap();
    scratch.write("one.toml", one);
    let line = "parity one.toml --host quinn --format json --out out";
    let output = scratch.brakelight(&line.split(' ').collect::<Vec<_>>());
    let document: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    let row = &document["rows"][0];
    let cells = row["cells"].as_array().unwrap();
    let sides: Vec<_> = cells.iter().map(|cell| (cell["of"].as_str(), cell["name"].as_str())).collect();
    let expected = [
        (Some("simulator"), Some("throughput_mbps")),
        (Some("simulator"), Some("p95_ms")),
        (Some("modelled"), Some("throughput_mbps")),
        (Some("modelled"), Some("p95_ms")),
    ];
    assert_eq!(sides, expected);
    assert_eq!(
        (number(&cells[0], "/tolerance_percent"), number(&cells[1], "/tolerance_percent")),
        (10.0, 30.0)
    );
    assert_eq!((number(row, "/simulator/runs"), number(row, "/modelled/runs")), (10.0, 10.0));
    assert!(number(row, "/modelled/throughput_mbps") > 0.0, "{row}");
    let within = cells.iter().all(|cell| number(cell, "/off_percent") <= number(cell, "/tolerance_percent"));
    assert_eq!(row["verdict"], if within { "within" } else { "outside" });
    assert_eq!(output.status.code(), Some(if within { 0 } else { 1 }), "{}", text(&output.stderr));
    assert!(scratch.list().contains(&"out/report.html".to_string()));
}

/// One flow on a link of 8 Mbit/s with a short return path, for three seconds.
const ONE: &str = "name = \"one\"\nduration = \"3s\"\nmeasure_from = \"1s\"\n\n\
    [[link]]\nname = \"forward\"\nrate = \"8Mbps\"\nbuffer = \"40pkt\"\n\n\
    [[flow]]\nname = \"main\"\ncontroller = \"abc\"\nhost = \"quic\"\nrtt = \"20ms\"\npath = [\"forward\"]\n";

/// Sends datagrams of 1,200 bytes at 4 Mbit/s until it is stopped, and says when it begins. What it could not
/// send while it had no processor it does not send later in a burst.
const SENDER: &str = "import os, socket, sys, time\n\
    to = (os.environ['BRAKELIGHT_HOST'], 5000)\n\
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
    print('for', os.environ['BRAKELIGHT_SECONDS'], flush=True)\n\
    due = time.monotonic()\n\
    while True:\n\
    \x20   out.sendto(bytes(1200), to)\n\
    \x20   due = max(due + 1228 * 8 / 4e6, time.monotonic())\n\
    \x20   time.sleep(max(0, due - time.monotonic()))\n";

/// Takes datagrams.
const SINK: &str = "import socket\n\
    into = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
    into.bind(('', 5000))\n\
    while True:\n\
    \x20   into.recv(2000)\n";

/// Sends without end to whoever connects.
const SOURCE: &str = "import socket\n\
    into = socket.create_server(('', 5001))\n\
    peer, _ = into.accept()\n\
    while True:\n\
    \x20   peer.sendall(bytes(65536))\n";

/// Reads for two seconds and a half.
const READER: &str = "import os, socket, time\n\
    peer = socket.create_connection((os.environ['BRAKELIGHT_HOST'], 5001))\n\
    end = time.monotonic() + 2.5\n\
    while time.monotonic() < end:\n\
    \x20   peer.recv(65536)\n";

/// Whether programs can be run behind an emulated link here; says what is missing.
fn can_run_programs(scratch: &Scratch, what: &str) -> bool {
    if Command::new("python3").arg("--version").output().is_err() {
        brakelight_testkit::skip(what, "python3 is not installed");
        return false;
    }
    can_emulate(scratch, what)
}

#[test]
fn a_command_takes_the_place_of_a_flow_and_is_stopped_at_the_end_of_the_run() {
    let scratch = Scratch::new("emulated-command");
    if !can_run_programs(&scratch, "a command in place of a flow") {
        return;
    }
    scratch.write("one.toml", ONE);
    scratch.write("sender.py", SENDER);
    scratch.write("sink.py", SINK);
    let output = scratch.brakelight(&[
        "run",
        "one.toml",
        "--on",
        "emulator",
        "--command",
        "python3 sender.py",
        "--server",
        "python3 sink.py",
        "--format",
        "json",
        "--out",
        "out",
        "--series",
        "csv",
        "--link-logs",
    ]);
    let said = text(&output.stderr);
    let document: Value = serde_json::from_str(&ok(&output)).unwrap();
    assert!(said.contains("takes the place of flow `main`"), "{said}");
    let row = &document["runs"][0];
    let flows = row["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 1);
    assert_eq!((&flows[0]["name"], &flows[0]["controller"]), (&"main".into(), &"unknown".into()));
    // 4 Mbit/s of a link of 8, on which nothing waits or is lost; a busy machine sends less. The link's log,
    // below, says how much.
    let throughput = number(row, "/throughput_mbps");
    assert!((0.5..=4.2).contains(&throughput), "{row}");
    let duration = number(row, "/duration_s");
    assert!((duration - 2.0).abs() < 0.2, "{row}");
    // The flow's throughput is that of its own time, which begins late where Python is slow to start.
    let began = number(&flows[0], "/application/started_s").max(1.0);
    let active = number(&flows[0], "/application/ended_s") - began;
    let own = number(&flows[0], "/throughput_mbps");
    assert!((own * active / (throughput * duration) - 1.0).abs() < 0.05, "{row}");
    assert!((number(row, "/capacity_mbps") - 8.0).abs() < 0.1, "{row}");
    assert_eq!(number(row, "/dropped_packets"), 0.0, "{row}");
    assert!(number(row, "/one_way_delay_ms/p50") >= 10.0, "{row}");
    // What the sender printed, its series and the link's log are among the results.
    let read = |name: &str| std::fs::read_to_string(scratch.path(&format!("out/{name}"))).unwrap();
    assert_eq!(read("programs/seed-1.command.out").trim(), "for 3");
    let series = read("series/one.8Mbps.flow-main.csv");
    assert!(series.lines().count() > 20, "{series}");
    let log = link_log::parse(&read("links/one.8Mbps.forward.log")).unwrap();
    let left: Vec<(u32, u32)> = log
        .events
        .iter()
        .filter_map(|event| match event {
            LinkEvent::Departure { ms, bytes, .. } => Some((*ms, *bytes)),
            _ => None,
        })
        .collect();
    assert!(left.len() as f64 >= number(row, "/delivered_packets"), "{} left: {row}", left.len());
    let end = left.last().unwrap().0;
    let measured: u32 = left.iter().filter(|(ms, _)| *ms >= 1_000).map(|(_, bytes)| bytes).sum();
    let logged = f64::from(measured) * 8.0 / f64::from(end - 1_000) / 1e3;
    assert!((throughput / logged - 1.0).abs() < 0.05, "{logged} by the log: {row}");
    let report = read("report.html");
    assert!(report.contains("python3 sender.py") && report.contains("python3 sink.py"));
}

#[test]
fn a_download_puts_the_path_between_the_server_and_the_command() {
    let scratch = Scratch::new("emulated-download");
    if !can_run_programs(&scratch, "a download in place of a flow") {
        return;
    }
    // Long enough for the command to end first on a busy machine, too.
    scratch.write("one.toml", ONE.replace("duration = \"3s\"", "duration = \"10s\""));
    scratch.write("reader.py", READER);
    scratch.write("source.py", SOURCE);
    let run = |more: &[&str]| {
        let line = ["run", "one.toml", "--on", "emulator", "--command", "python3 reader.py"];
        let server = ["--server", "python3 source.py", "--format", "json"];
        scratch.brakelight(&[&line[..], &server[..], more].concat())
    };
    let output = run(&["--download"]);
    let said = text(&output.stderr);
    let document: Value = serde_json::from_str(&ok(&output)).unwrap();
    let row = &document["runs"][0];
    // TCP fills the link, and what it puts into the buffer waits there.
    assert!((5.0..=8.1).contains(&number(row, "/throughput_mbps")), "{row}");
    assert!(number(row, "/queueing_delay_ms/p95") > 1.0, "{row}");
    assert!(said.contains("the command ended after"), "{said}");
    assert!(number(row, "/duration_s") < 8.5, "{row}");
    // The other way round the link carries ACKs, which is said.
    let output = run(&[]);
    let said = text(&output.stderr);
    ok(&output);
    assert!(said.contains("if the servers send the data, add --download"), "{said}");
}

#[test]
fn a_command_that_fails_is_named_with_its_exit_code_and_its_last_words() {
    let scratch = Scratch::new("emulated-failing");
    if !can_emulate(&scratch, "a command that fails") {
        return;
    }
    scratch.write("one.toml", ONE);
    let run = |more: &[&str]| {
        let output =
            scratch.brakelight(&[&["run", "one.toml", "--on", "emulator", "--command"], more].concat());
        (output.status.code(), text(&output.stderr))
    };
    let (code, said) = run(&["echo first >&2; echo no such host >&2; exit 7"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("command: first\ncommand: no such host\n"), "{said}");
    assert!(said.ends_with("one: the command ended with exit code 7; its last lines are above\n"), "{said}");
    let (code, said) = run(&["true"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the command ended before `measure_from` = 1s"), "{said}");
    let (code, said) = run(&["sleep 2", "--server", "echo port taken >&2; exit 3"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("server 1: port taken\n"), "{said}");
    assert!(said.contains("the server ended with exit code 3 before it listened"), "{said}");
    let (code, said) = run(&["sleep 2"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("no packet passed from the command while it was measured"), "{said}");
}

#[test]
fn a_command_where_there_is_no_place_for_it_is_refused_in_one_line() {
    let scratch = Scratch::new("emulated-command-refused");
    scratch.write("one.toml", ONE);
    scratch.write("two.toml", SCENARIO);
    scratch.write("stop.toml", format!("{ONE}stop = \"2s\"\n"));
    let refusals = [
        ("one.toml --command x", "--command: programs run in real time; add --on emulator"),
        ("two.toml --on emulator --command x", "leave one of the 2 flows"),
        ("stop.toml --on emulator --command x", "flow `main`: stop: the command is stopped at the end"),
        ("one.toml --on emulator --command x --server ", "--server: it is empty"),
        ("one.toml --on emulator --command ", "--command: it is empty"),
        ("one.toml --on emulator --command x --host quinn", "cannot be used with"),
        ("one.toml --on emulator --server x", "--command <CMD>"),
        ("one.toml --on emulator --download", "--command <CMD>"),
    ];
    for (line, expected) in refusals {
        let line = format!("run {line}");
        let output = scratch.brakelight(&line.split(' ').collect::<Vec<_>>());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(expected), "{line}: {said}");
        assert!(output.stdout.is_empty(), "{line}");
    }
}
