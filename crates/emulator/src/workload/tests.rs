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
    let hosts = Hosts::Quic(vec!["/opt/it's/here".into(), "hosts".into()]);
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
    assert_eq!(command[4..], ["/some where"]);
    assert!(workload.ports().is_empty());
    let script = command[2].to_str().unwrap();
    assert!(script.contains("--congestion cubic --time 3 --interval 0.1 --json"), "{script}");
}

#[test]
fn a_links_delay_line_takes_the_place_of_half_the_round_trip() {
    let workload =
        of(&GOOD.replacen("name = \"forward\"", "name = \"forward\"\ndelay = \"15ms\"", 1)).unwrap();
    assert_eq!((workload.up.delay, workload.down.delay), (Duration::ZERO, Duration::from_millis(20)));
    assert_eq!(workload.up.link.as_ref().unwrap().spec().delay, Duration::from_millis(15));
}

#[test]
fn what_real_hosts_cannot_run_is_refused_by_field_with_what_would_be_valid() {
    let complaints = [
        complaint("duration = \"3s\"", "duration = \"3500ms\""),
        complaint("cubic:reno_catch_up=false", "vegas"),
        complaint("cubic:reno_catch_up=false", "cubic:beta=0.5"),
        complaint("cubic:reno_catch_up=false", "newreno:ecn=true"),
        complaint("rtt = \"40ms\"", "rtt = \"40ms\"\ntraffic = \"video\""),
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
        "flow `main`: traffic: iperf3 always has more to send: leave it out, or take --host quinn, which runs every application",
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
        complaints[13].starts_with("link `forward`: queue: queue `xcp` needs a congestion header"),
        "{}",
        complaints[13]
    );
}

#[test]
fn flows_of_quic_are_one_program_with_a_socket_for_each() {
    let quic = GOOD.replace("cubic:reno_catch_up=false", "abc:second_window=false,floor=3");
    let quic = quic.replace("queue = \"codel\"", "queue = \"abc\"");
    let twice = quic.replace("rtt = \"40ms\"", "rtt = \"40ms\"\ncount = 2\nhost = \"quic\"");
    // What only iperf3 cannot do.
    let twice = twice.replace("duration = \"3s\"", "duration = \"2500ms\"\nmeasure_from = \"1s\"");
    let workload =
        of_quic(&twice.replace("count = 2", "count = 2\ntraffic = \"call\"\nack_every = 4")).unwrap();
    assert!(workload.servers().is_empty());
    assert_eq!(workload.ports(), [5201, 5202]);
    let command = workload.command(Path::new("/some where"));
    let files = ["/some where/scenario.toml", "/some where/run.json", "/some where/series.json"];
    assert_eq!(command[..2], ["/opt/it's/here", "hosts"]);
    assert_eq!(command[2..], files);
    let refused = of_quic(&quic).unwrap_err().to_string();
    assert!(refused.starts_with("flow `main`: host: "), "{refused}");
    let large = of_quic(&twice.replace("count = 2", "count = 2\nmss = \"1500B\"")).unwrap_err().to_string();
    assert_eq!(
        large,
        "flow `main`: mss: packets of 1565 B, headers of 65 B included, do not pass the emulator's devices: \
         valid are packets up to 1500 B and headers from 28 B"
    );
}

#[test]
fn what_the_program_wrote_becomes_the_flows_results() {
    let quic =
        GOOD.replace("cubic:reno_catch_up=false", "abc").replace("queue = \"codel\"", "queue = \"abc\"");
    let quic = quic.replace("rtt = \"40ms\"", "rtt = \"40ms\"\nhost = \"quic\"\nstop = \"2s\"");
    let workload = of_quic(&quic).unwrap();
    let folder = std::env::temp_dir().join(format!("brakelight-hosts-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let missing = workload.host_results(&folder).unwrap_err().to_string();
    let row = brakelight_scenario::outcome::FlowOutcome {
        name: "main".to_string(),
        goodput_mbps: 4.0,
        retransmitted_packets: 7,
        rtt_ms: Some(Summary { p50: 41.0, ..Summary::default() }),
        application: Some([("frames_shown".to_string(), 60.0)].into()),
        ..Default::default()
    };
    let run = brakelight_scenario::outcome::Run { duration_s: 3.0, flows: vec![row], ..Default::default() };
    let write = |run| {
        let document = Runs { runs: vec![run], ..Runs::default() };
        std::fs::write(folder.join("run.json"), serde_json::to_string(&document).unwrap()).unwrap();
    };
    write(run.clone());
    let results = workload.host_results(&folder).unwrap();
    write(brakelight_scenario::outcome::Run { flows: Vec::new(), ..run });
    let strange = workload.host_results(&folder).unwrap_err().to_string();
    std::fs::remove_dir_all(&folder).unwrap();
    let [flow] = &results.flows[..] else { panic!("{results:?}") };
    // From its start, within the first RTT, until its stop.
    assert!((1.96..=2.0).contains(&flow.seconds), "{flow:?}");
    assert!((flow.bytes as f64 * 8e-6 / flow.seconds - 4.0).abs() < 1e-3, "{flow:?}");
    assert_eq!((flow.retransmitted, flow.rtt_ms.map(|rtt| rtt.p50)), (7, Some(41.0)));
    assert_eq!(flow.application.as_ref().unwrap()["frames_shown"], 60.0);
    assert!(missing.starts_with("the flows' result of QUIC cannot be read: "), "{missing}");
    assert_eq!(strange, "flow `main`: the result of QUIC has no `flow`");
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
    let (whole, rtt) = iperf3::parse(&text, &flow(), Duration::ZERO).unwrap();
    assert_eq!(
        (whole.local_port, whole.bytes, whole.seconds, whole.retransmitted),
        (Some(40123), 2500, 2.5, 2)
    );
    assert_eq!((rtt.summary(), whole.rtt_ms.unwrap().max), (whole.rtt_ms, 40.5));
    let (late, _) = iperf3::parse(&text, &flow(), start + Duration::from_millis(500)).unwrap();
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
