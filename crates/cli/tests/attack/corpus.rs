//! Hostile files: valid ones of every format, changed; and some that were never valid.

use std::collections::BTreeMap;
use std::ffi::OsString;

use brakelight_core::random::Random;
use brakelight_links::trace::Trace;
use brakelight_scenario::cost::Cost;
use brakelight_scenario::scenario::{Scenario, Service};
use brakelight_scenario::trace::OPPORTUNITY;
use brakelight_scenario::trace::names::Names;
use brakelight_scenario::{experiment, file};

use super::Case;
use super::mutate::{self, below, pick, value};

/// What a valid input may cost and still be run: a second or two of a slow machine.
const MOST_STEPS: f64 = 3e5;

/// Scenarios with every kind of link, path, traffic and record between them.
const SCENARIOS: &[&str] = &[
    r#"name = "several"
duration = "300ms"
measure_from = "50ms"
seed = 7
trace_offset = "random"
record = { series = true, bin = "100ms", link_logs = true, state = true, unfairness = "100ms" }

[[link]]
name = "cell"
trace = "lte-driving"
buffer = "250pkt"
queue = "abc:delta=200ms"
restarts = [{ at = "100ms", down = "10ms", waiting = "kept" }]

[[link]]
name = "back"
steps = [["50ms", "12Mbps"], ["50ms", "24Mbps"]]
opportunity = "1500B"
overhead = "4B"
buffer = "60kB"

[[flow]]
name = "download"
controller = "abc"
rtt = "20ms"
path = ["cell", "loss:rate=0.01", "delay:delay=5ms"]
reverse = ["back"]
receiver_clock = { offset = "3s", skew_ppm = 50, step_at = "100ms", step_ms = 100 }

[[flow]]
name = "call"
controller = "cubic"
rtt = "30ms"
path = ["cell"]
traffic = { kind = "call", min_rate = "150kbps", max_rate = "2.5Mbps", fps = 30, deadline = "100ms" }
start = "10ms"
"#,
    r#"duration = "200ms"

[[link]]
name = "air"
radio = "wifi:mcs=1/7,stations=2"
buffer = "250pkt"

[[flow]]
controller = "bbr"
host = "quic"
pacing_burst = 5
mss = "1200B"
overhead = "50B"
initial_window = 4
jitter = "100us"
ack_every = 4
count = 3
rtt = "10ms"
rtt_step = "5ms"
start_within = "20ms"
path = ["air"]
traffic = { kind = "on-off", on = "50ms", off = "10ms", rate = "2Mbps", random = true }
"#,
    r#"duration = "200ms"

[[link]]
name = "a"
rate = "10Mbps"
queue = "dualpi2"

[[link]]
name = "b"
rate = "8Mbps"
queue = "fq_codel:target=5ms,interval=100ms"
buffer = "64kB"

[[flow]]
controller = "prague"
rtt = "10ms"
path = ["encapsulate:overhead=36", "a", "decapsulate:mode=rfc6040", "b"]
traffic = { kind = "short-flows", per_second = 50, size = "30kB", pareto_shape = 1.5 }

[[flow]]
controller = "newreno"
path = ["b"]
traffic = { kind = "request-response", request = "1kB", response = "20kB", think = "10ms" }
stop = "150ms"

[[flow]]
controller = "vegas"
path = ["a"]
traffic = { kind = "video", ladder = ["300kbps", "1Mbps"], segment = "100ms", buffer = "1s", startup = "100ms" }
"#,
];

const EXPERIMENT: &str = r#"id = "X-1"
title = "A claim"
source = "nobody"
schemes = ["abc:eta={eta}", "cubic+codel"]
seeds = 1
scenario = '''
duration = "100ms"

[[link]]
name = "link"
rate = "{rate}Mbps"
buffer = "100pkt"
queue = "{queue}"

[[flow]]
name = "main"
controller = "{controller}"
feedback = "{feedback}"
rtt = "10ms"
path = ["link"]
'''

[sweep]
eta = [0.85, 0.95]
rate = ["4", "6"]

[[claim]]
claim = "It is used"
paper = "much"
check = "mean(utilization) > 0.01 and increasing(utilization, eta) or queueing_delay_ms.p95 <= 10 * 2 ~ 3"
show = "utilization['abc']"
note = "a note"
"#;

const RECIPES: &[&str] = &[
    "about = \"steps\"\nduration = \"300ms\"\n\n[[steps]]\nlasts = \"50ms\"\nrate = \"12Mbps\"\n\n[[steps]]\nlasts = \"50ms\"\nrate = \"24Mbps\"\n",
    "about = \"\"\"\na cell\"\"\"\nduration = \"300ms\"\nseed = 1\n\n[cellular]\nmean = \"5Mbps\"\nsnr = 4.98\nslot = \"1ms\"\nburst = 1.378\n\
     fading = [\n    { sigma = 7.24, lasts = \"8.6s\" },\n    { sigma = 2.14, lasts = \"29.9ms\" },\n]\n\
     outages = { every = \"6.11s\", shortest = \"30ms\", longest = \"1447ms\", exponent = 1.48 }\n",
];

const MAHIMAHI: &str = "1\n2\n2\n5\n9\n9\n9\n14\n20\n27\n31\n40\n";
const CSV: &str = "start_s,mbps\n0,12\n0.1,24.5\n0.2,0\n0.3,1e1\n0.5,6\n";
const IPERF3: &str = r#"{
  "start": { "connected": [{ "socket": 5, "local_port": 45678 }], "version": "iperf 3.12", "test_start": { "protocol": "TCP", "num_streams": 1 } },
  "intervals": [
    { "streams": [{ "socket": 5, "start": 0, "end": 1.000083, "seconds": 1.000083, "bytes": 1310720, "bits_per_second": 10484887.1, "rtt": 20011 }],
      "sum": { "start": 0, "end": 1.000083, "seconds": 1.000083, "bytes": 1310720, "bits_per_second": 10484887.1, "omitted": false } },
    { "streams": [{ "socket": 5, "start": 1.000083, "end": 2.000062, "seconds": 0.999979, "bytes": 655360, "bits_per_second": 5242990.1, "rtt": 20500 }],
      "sum": { "start": 1.000083, "end": 2.000062, "seconds": 0.999979, "bytes": 655360, "bits_per_second": 5242990.1, "omitted": false } }
  ],
  "end": { "sum_sent": { "bytes": 1966080 } }
}
"#;

/// A classic capture of raw IP with a few packets.
fn classic() -> Vec<u8> {
    let mut bytes =
        vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0];
    for packet in 0..12_u32 {
        for word in [1_600_000_000, packet * 3_000, 20, 1_000 + packet] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    }
    bytes
}

/// A pcapng file with one interface and a few packets.
fn next_generation() -> Vec<u8> {
    fn block(kind: u32, body: &[u32]) -> Vec<u8> {
        let length = 12 + 4 * body.len() as u32;
        let words = [kind, length].into_iter().chain(body.iter().copied()).chain([length]);
        words.flat_map(u32::to_le_bytes).collect()
    }
    let mut bytes = block(0x0a0d_0d0a, &[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]);
    // Times in nanoseconds: option 9.
    bytes.extend(block(1, &[101, 0, 0x0001_0009, 9, 0]));
    for packet in 0..12 {
        bytes.extend(block(
            6,
            &[0, 5, packet * 3_000_000, 20, 1_000, 0x45, 0, 0x1140, 0x100_000a, 0x200_000a],
        ));
    }
    bytes
}

fn arguments(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn case(kind: &'static str, name: &str, bytes: Vec<u8>, words: &[&str]) -> Case {
    Case { kind, files: vec![(name.to_string(), bytes)], arguments: arguments(words), ..Case::default() }
}

/// One file and a command that reads it; nothing if it is valid and would run long.
pub fn draw(random: &mut Random) -> Option<Case> {
    match below(random, 22) {
        0..6 => {
            let scenario = *pick(random, SCENARIOS);
            let bytes = document(random, scenario);
            let affordable =
                std::str::from_utf8(&bytes).ok().and_then(|text| file::read("x.toml", text).ok());
            if affordable.is_some_and(|scenario| steps(&scenario) > MOST_STEPS) {
                return None;
            }
            let out: &[&str] = if below(random, 3) == 0 { &["--out", "report"] } else { &[] };
            Some(case("scenario", "x.toml", bytes, &[&["run", "x.toml"], out].concat()))
        }
        6..9 => {
            let bytes = document(random, EXPERIMENT);
            let experiment =
                std::str::from_utf8(&bytes).ok().and_then(|text| experiment::read("x.toml", text).ok());
            let all: f64 = experiment.iter().flat_map(|it| &it.jobs).map(|job| steps(&job.scenario)).sum();
            let case = case("experiment", "x.toml", bytes, &["reproduce", "x.toml"]);
            (all <= MOST_STEPS).then_some(Case { may_fail: true, ..case })
        }
        9..11 => {
            let recipe = *pick(random, RECIPES);
            Some(case("recipe", "x.toml", document(random, recipe), &["trace", "synth", "x.toml"]))
        }
        11..14 => {
            let bytes = document(random, MAHIMAHI);
            let fast =
                Trace::parse(&bytes).is_ok_and(|trace| trace.mean_rate(OPPORTUNITY).as_bps_f64() > 3e8);
            let words: &[&str] = match below(random, 3) {
                0 if !fast => {
                    &["compare", "--trace", "x.down", "--schemes", "abc,cubic", "--duration", "200ms"]
                }
                1 => &["trace", "convert", "x.down", "--to", "csv"],
                _ => &["trace", "show", "x.down"],
            };
            Some(case("mahimahi", "x.down", bytes, words))
        }
        14..16 => {
            let words = &["trace", "convert", "x.csv", "--from", "csv"];
            Some(case(
                "csv",
                "x.csv",
                document(random, CSV),
                if below(random, 2) == 0 { words } else { &words[..3] },
            ))
        }
        16..18 => {
            let words = &["trace", "convert", "x.json", "--from", "iperf3"];
            let words = if below(random, 2) == 0 { &words[..] } else { &words[..3] };
            Some(case("iperf3", "x.json", document(random, IPERF3), words))
        }
        18..20 => {
            let base = if below(random, 2) == 0 { classic() } else { next_generation() };
            let words = &["trace", "convert", "x.pcap", "--from", "pcap"];
            let words = if below(random, 2) == 0 { &words[..] } else { &words[..3] };
            Some(case("capture", "x.pcap", mutate::bytes(random, &base), words))
        }
        20 => {
            let label = *pick(random, &["CERTIFICATE", "PRIVATE KEY", "EC PRIVATE KEY", "X"]);
            let inside: String = (0..below(random, 400))
                .map(|_| *pick(random, &['A', 'b', '0', '/', '+', '=', '\n']))
                .collect();
            let text = format!("-----BEGIN {label}-----\n{inside}\n-----END {label}-----\n");
            // Never a certificate: nothing is listened for, nobody is called.
            let words: &[&str] = match below(random, 2) {
                0 => &["perf-server", "--cert", "x.pem", "--key", "x.pem", "--controller", "none"],
                _ => &["perf", "127.0.0.1:1", "--ca", "x.pem", "--controller", "none"],
            };
            Some(case("pem", "x.pem", mutate::text(random, &text), words))
        }
        _ => {
            let bytes: Vec<u8> = (0..below(random, 5_000)).map(|_| random.bits() as u8).collect();
            let lines: [&[&str]; 6] = [
                &["run", "x"],
                &["trace", "show", "x"],
                &["trace", "synth", "x"],
                &["trace", "convert", "x"],
                &["reproduce", "x"],
                &["compare", "--trace", "x", "--schemes", "cubic", "--duration", "100ms"],
            ];
            let words: &&[&str] = pick(random, &lines[..]);
            Some(case("noise", "x", bytes, words))
        }
    }
}

/// A valid text, changed; now and then one made of nothing but words.
fn document(random: &mut Random, valid: &str) -> Vec<u8> {
    match below(random, 20) {
        0 => valid.as_bytes().to_vec(),
        1 => {
            let lines = (0..below(random, 50)).map(|_| value(random) + "\n");
            lines.collect::<String>().into_bytes()
        }
        _ => mutate::text(random, valid),
    }
}

/// The estimate of what a scenario costs, which is what refuses the costliest.
fn steps(scenario: &Scenario) -> f64 {
    let names = Names::default();
    let mut traces = BTreeMap::new();
    for link in &scenario.links {
        if let Service::Trace(name) = &link.service
            && let Ok(trace) = names.load(name)
        {
            traces.insert(name.clone(), trace);
        }
    }
    let cost = Cost::of(scenario, &traces);
    // What is refused at once costs nothing.
    if cost.is_excessive() { 0.0 } else { cost.steps }
}
