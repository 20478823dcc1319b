use super::*;
use brakelight_scenario::documents::Runs;
use brakelight_scenario::file;

const GOOD: &str = r#"
name = "good"
duration = "3s"

[[link]]
name = "forward"
rate = "12Mbps"
buffer = "50pkt"
queue = "codel"

[[link]]
name = "reverse"
rate = "12Mbps"

[[flow]]
name = "main"
controller = "cubic:reno_catch_up=false"
rtt = "40ms"
path = ["forward"]
reverse = ["reverse"]
"#;

fn of(text: &str) -> Result<Workload, InputError> {
    Workload::of(&file::read("x.toml", text).unwrap(), &BTreeMap::new(), Hosts::Kernel)
}

fn of_quic(text: &str) -> Result<Workload, InputError> {
    let hosts = Hosts::Quic(PathBuf::from("/opt/it's/here"));
    Workload::of(&file::read("x.toml", text).unwrap(), &BTreeMap::new(), hosts)
}

fn complaint(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from));
    of(&GOOD.replacen(from, to, 1)).unwrap_err().to_string()
}

#[test]
fn a_dumbbell_becomes_two_directions_and_a_pair_of_hosts() {
    let workload = of(GOOD).unwrap();
    assert_eq!(workload.up.link.as_ref().unwrap().spec().name, "forward");
    assert_eq!(workload.down.link.as_ref().unwrap().spec().name, "reverse");
    assert_eq!(
        (workload.up.delay, workload.down.delay),
        (Duration::from_millis(20), Duration::from_millis(20))
    );
    let [flow] = &workload.flows[..] else { panic!("{:?}", workload.flows) };
    assert_eq!((flow.congestion.as_str(), flow.seconds, flow.port), ("cubic", 3, 5201));
    assert!(flow.start < Duration::from_millis(40), "drawn within the first RTT, as in simulation");
    let [server] = &workload.servers()[..] else { panic!("{:?}", workload.servers()) };
    assert_eq!(server, "iperf3 --server --one-off --port 5201 >/dev/null 2>&1 & wait");
    let command = workload.command(Path::new("/some where"));
    assert_eq!(command[4..], ["/some where", "iperf3"]);
    let script = command[2].to_str().unwrap();
    assert!(script.contains("--congestion cubic --time 3 --interval 0.1 --json"), "{script}");
}

#[test]
fn what_real_hosts_cannot_run_is_refused_by_field_with_what_would_be_valid() {
    let complaints = [
        complaint("duration = \"3s\"", "duration = \"3500ms\""),
        complaint("cubic:reno_catch_up=false", "vegas"),
        complaint("cubic:reno_catch_up=false", "cubic:beta=0.5"),
        complaint("cubic:reno_catch_up=false", "newreno:ecn=true"),
        complaint("rtt = \"40ms\"", "rtt = \"40ms\"\nhost = \"quic\""),
        complaint("rtt = \"40ms\"", "rtt = \"40ms\"\nmss = \"1000B\""),
        complaint("rtt = \"40ms\"", "rtt = \"40ms\"\npacing_burst = 5"),
        complaint("rtt = \"40ms\"", "rtt = \"40ms\"\ncount = 2\nrtt_step = \"5ms\""),
        complaint("rtt = \"40ms\"", "rtt = \"40ms\"\ncount = 65"),
        complaint("rtt = \"40ms\"", "rtt = \"40ms\"\nstop = \"1500ms\""),
        complaint("path = [\"forward\"]", "path = [\"forward\", \"reverse\"]"),
        complaint("reverse = [\"reverse\"]", ""),
        complaint("queue = \"codel\"", "queue = \"xcp\""),
    ];
    let expected = [
        "duration = `3500ms` is out of range: valid is whole seconds, which is what iperf3 counts on the emulator",
        "flow `main`: controller: Linux has no `vegas`: valid on the emulator are newreno, bbr, cubic",
        "flow `main`: controller: Linux's cubic does not take `beta=0.5`: on the emulator leave it out",
        "flow `main`: controller: Linux's reno does not take `ecn=true`: on the emulator leave it out",
        "flow `main`: host: the emulator's hosts are kernel TCP: valid is `tcp`, or --host quinn for QUIC",
        "flow `main`: mss: real hosts decide on their packets: leave it out, for 1448 B and 52 B of headers",
        "flow `main`: pacing_burst: that of real hosts is 10: leave it out",
        "flow `main`: rtt: the emulator's path has one delay: give every flow the same",
        "flow: 65 flows; real hosts run at most 64",
        "flow `main`: stop = `1500ms` is out of range: valid is whole seconds, which is what iperf3 counts on the emulator",
        "flow `main`: path: the emulator has one link each way, and it comes first: leave `reverse` out",
        "link `reverse`: name: no flow passes it: the emulator has one link for data and one for acknowledgements",
    ];
    for (complaint, expected) in complaints.iter().zip(expected) {
        assert_eq!(complaint, expected);
    }
    assert!(
        complaints[12].starts_with("link `forward`: queue: queue `xcp` needs a congestion header"),
        "{}",
        complaints[12]
    );
}

#[test]
fn flows_of_quic_keep_their_controllers_words_and_have_a_server_each() {
    let quic = GOOD.replace("cubic:reno_catch_up=false", "abc:second_window=false,floor=3");
    let quic = quic.replace("queue = \"codel\"", "queue = \"abc\"");
    let twice = quic.replace("rtt = \"40ms\"", "rtt = \"40ms\"\ncount = 2\nhost = \"quic\"");
    let workload = of_quic(&twice).unwrap();
    let servers = workload.servers();
    assert_eq!(servers.len(), 2);
    assert_eq!(servers[1], r"exec '/opt/it'\''s/here' perf-server --listen 0.0.0.0:5202 >/dev/null 2>&1");
    let command = workload.command(Path::new("/some where"));
    assert_eq!(command[4..], ["/some where", "/opt/it's/here"]);
    let script = command[2].to_str().unwrap();
    let expected = "try \"$2\" perf \"$BRAKELIGHT_HOST:5201\" --controller 'abc:second_window=false,floor=3' --own-path --duration 3s";
    assert!(script.contains(expected), "{script}");
    let refused = of_quic(&quic).unwrap_err().to_string();
    assert!(refused.starts_with("flow `main`: host: "), "{refused}");
}

#[test]
fn the_document_of_a_sender_gives_its_goodput_and_what_it_saw_of_the_path() {
    let text = r#"{"runs": [{"goodput_mbps": 4.0, "duration_s": 2.0, "retransmitted_packets": 7}]}"#;
    let failed = perf::parse(text, &flow()).unwrap_err().to_string();
    assert_eq!(failed, "flow `main`: perf failed: ", "half a document is none");
    let run = brakelight_scenario::outcome::Run {
        goodput_mbps: 4.0,
        duration_s: 2.0,
        retransmitted_packets: 7,
        rtt_ms: Some(Summary { p50: 41.0, ..Summary::default() }),
        ..Default::default()
    };
    let document = serde_json::to_string(&Runs { runs: vec![run], ..Runs::default() }).unwrap();
    let result = perf::parse(&document, &flow()).unwrap();
    assert_eq!((result.bytes, result.seconds, result.retransmitted), (1_000_000, 2.0, 7));
    assert_eq!(result.summary.unwrap().p50, 41.0);
}

fn flow() -> HostFlow {
    of(GOOD).unwrap().flows.remove(0)
}

fn interval(start: f64, end: f64, bytes: u64) -> String {
    format!(
        r#"{{"streams": [{{"start": {start}, "end": {end}, "bytes": {bytes}, "retransmits": 1, "snd_cwnd": 14480, "rtt": 40500}}]}}"#
    )
}

#[test]
fn a_test_that_ran_gives_what_was_received_and_what_the_sender_saw() {
    let text = format!(
        r#"{{"start": {{"connected": [{{"local_port": 40123}}]}}, "intervals": [{}, {}],
           "end": {{"sum_received": {{"bytes": 2500, "seconds": 2.5}}}}}}"#,
        interval(0.0, 1.0, 1000),
        interval(1.0, 2.0, 2000)
    );
    let start = flow().start;
    let whole = iperf3::parse(&text, &flow(), Duration::ZERO).unwrap();
    assert_eq!(
        (whole.local_port, whole.bytes, whole.seconds, whole.retransmitted),
        (Some(40123), 2500, 2.5, 2)
    );
    assert_eq!(whole.rtt.summary().unwrap().max, 40.5);
    let late = iperf3::parse(&text, &flow(), start + Duration::from_millis(500)).unwrap();
    assert_eq!(
        (late.bytes, late.seconds, late.retransmitted),
        (2000, 1.0, 1),
        "only what began in the measured interval"
    );
}

#[test]
fn a_test_that_failed_says_what_iperf3_said() {
    let failed =
        iperf3::parse(r#"{"error": "unable to connect to server"}"#, &flow(), Duration::ZERO).unwrap_err();
    assert_eq!(failed.to_string(), "flow `main`: iperf3 failed: unable to connect to server");
    let empty = iperf3::parse(r#"{"start": {}}"#, &flow(), Duration::ZERO).unwrap_err();
    assert_eq!(empty.to_string(), "flow `main`: the result of iperf3 has no `local_port`");
}

proptest::proptest! {
    #[test]
    fn any_text_can_be_given_for_a_result(text in "\\PC{0,80}") {
        let _ = iperf3::parse(&text, &flow(), Duration::ZERO);
    }
}
