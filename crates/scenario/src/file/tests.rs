//! Files are read as written, refused with a message that helps, and never make the reader panic.

use std::fmt::Write;

use brakelight_core::random::Random;
use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_links::elements::ELEMENTS;
use brakelight_registry::{CONTROLLERS, Host, QUEUES, Registry};
use brakelight_testkit::mutate::fuzz_inputs;

use super::{APPLICATIONS, read, read_traffic, traffic_words, write};
use crate::clock::Clock;
use crate::scenario::{
    Direction, FlowSpec, Hop, LinkSpec, Record, Reordering, Restart, Scenario, Service, Steps, TraceOffset,
    Waiting,
};
use crate::scheme_string::{SchemeString, Words};
use crate::traffic::{
    self, Arrivals, Call, Game, Offer, OnOff, Phase, RequestResponse, ShortFlows, SizeLaw, Traffic, Video,
};

const FULL: &str = r#"
name = "everything"
seed = 18446744073709551615
duration = "2min"
measure_from = "2s"
trace_offset = "random"
record = { series = true, bin = "50ms", link_logs = true, state = true, flow_delays = true, second_half = true, unfairness = "2s" }

[[link]]
name = "up"
trace = "lte-driving"
buffer = "250pkt"
queue = "droptail:limit=100pkt"

[[link]]
name = "down"
rate = "12Mbps"
buffer = "1.5MB"
opportunity = "1504B"
overhead = "4B"
burst = "10kB"
delay = "25ms"

[[link]]
name = "wired"
steps = [["500ms", "12Mbps"], ["0.5s", "24Mbit/s"]]
repeat = false

[[flow]]
name = "main"
count = 3
controller = "reno:beta=0.7,abc_limit=3"
feedback = "delayed:echo=exact"
host = "quic"
ack_every = 1
ack_delay = "10ms"
mss = "1200B"
overhead = "65B"
initial_window = 32
pacing_burst = 5
traffic = { kind = "on-off", on = "1s", off = "500ms", rate = "1Mbps", random = true }
start = "1s"
start_within = "10ms"
stop = "60s"
rtt = "80ms"
rtt_step = "7ms"
path = ["up", "loss:rate=0.01", "wired"]
reverse = ["ack-loss:rate=0.1", "down"]
jitter = "0s"
receiver_clock = { offset = "1h", skew_ppm = -50, step_at = "20s", step_ms = 2.5 }

[[flow]]
controller = "newreno"
path = ["wired"]
traffic = "video"
"#;

#[test]
fn reads_every_field() {
    let scenario = read("dir/file.toml", FULL).unwrap();
    assert_eq!(scenario.name, "everything");
    assert_eq!(scenario.seed, u64::MAX);
    assert_eq!(scenario.duration, Duration::from_secs(120));
    assert_eq!(scenario.measure_from, Duration::from_secs(2));
    assert_eq!(scenario.trace_offset, TraceOffset::Random);
    let record = Record {
        series: true,
        bin: Duration::from_millis(50),
        link_logs: true,
        state: true,
        flow_delays: true,
        second_half: true,
        unfairness: Some(Duration::from_secs(2)),
    };
    assert_eq!(scenario.record, record);
    let [up, down, wired] = scenario.links.as_slice() else { panic!("three links") };
    assert_eq!(up.service, Service::Trace("lte-driving".to_string()));
    assert_eq!((up.opportunity, up.overhead), (Bytes(1504), Bytes(4)));
    assert_eq!(up.queue.words(), &Words::new("droptail", &[("limit", "100pkt")]));
    assert_eq!(down.service, Service::Fixed(Rate::from_mbps(12)));
    assert_eq!(down.buffer, Limit::Bytes(Bytes(1_500_000)));
    assert_eq!((down.burst, down.delay), (Bytes(10_000), Duration::from_millis(25)));
    assert_eq!((up.burst, up.delay), (Bytes::ZERO, Duration::ZERO));
    let half = Duration::from_millis(500);
    let steps = vec![(half, Rate::from_mbps(12)), (half, Rate::from_mbps(24))];
    assert_eq!(wired.service, Service::Steps(Steps { steps, repeat: false }));
    let [main, other] = scenario.flows.as_slice() else { panic!("two flows") };
    assert_eq!((main.count, main.ack_every, main.initial_window, main.pacing_burst), (3, 1, 32, 5));
    assert_eq!(main.ack_delay, Some(Duration::from_millis(10)));
    assert_eq!(main.controller.name(), "newreno");
    assert_eq!(main.host, Host::Quic);
    assert_eq!(main.stop, Some(Duration::from_secs(60)));
    let lossy = Hop::Element(SchemeString::new("loss", &[("rate", "0.01")]).unwrap());
    assert_eq!(main.path, [Hop::Link("up".to_string()), lossy, Hop::Link("wired".to_string())]);
    assert_eq!(main.name_of(2), "main-3");
    assert_eq!((main.rtt_of(0), main.rtt_of(2)), (Duration::from_millis(80), Duration::from_millis(94)));
    assert_eq!(main.propagation(1, Direction::Reverse), Duration::from_micros(43_500));
    let clock = Clock {
        offset: Duration::from_secs(3600),
        skew_ppm: -50.0,
        step_at: Some(Duration::from_secs(20)),
        step_ms: 2.5,
    };
    assert_eq!((main.receiver_clock, other.receiver_clock), (clock, Clock::default()));
    assert_eq!(other.name_of(0), "flow2");
    assert_eq!(other.traffic, Traffic::Video(Video::default()));
    assert_eq!((other.rtt, other.start_within), (Duration::from_millis(100), Duration::from_millis(100)));
    assert_eq!((other.mss, other.overhead), (Bytes(1448), Bytes(52)));
}

#[test]
fn a_file_without_a_name_is_called_by_its_stem() {
    let text = FULL.replace("name = \"everything\"", "");
    assert_eq!(read("dir/two flows.toml", &text).unwrap().name, "two flows");
}

/// The least that runs; every bad input below is one edit away from it.
const LEAST: &str = r#"duration = "60s"
[[link]]
name = "up"
rate = "12Mbps"
[[flow]]
name = "main"
controller = "newreno"
path = ["up"]
"#;

#[test]
fn refuses_bad_inputs_in_the_users_words() {
    let add = |line: &str| format!("{LEAST}{line}\n");
    let top = |line: &str| format!("{line}\n{LEAST}");
    let swap = |from: &str, to: &str| {
        assert!(LEAST.contains(from), "{from}");
        LEAST.replace(from, to)
    };
    let traffic = |table: &str| add(&format!("traffic = {table}"));
    let inputs = [
        String::new(),
        "duration =".to_string(),
        "duration = \"60s\"\nduration = \"60s\"".to_string(),
        "\u{0}".to_string(),
        top("durations = \"60s\""),
        top("link_log = 1"),
        swap("60s", "0s"),
        swap("60s", "-5s"),
        swap("60s", "60"),
        swap("\"60s\"", "60"),
        swap("60s", "sixty seconds"),
        swap("60s", "1e99h"),
        swap("60s", "99999999h"),
        top("measure_from = \"60s\""),
        top("seed = -1"),
        top("seed = 1.5"),
        top("seed = 18446744073709551616"),
        top("trace_offset = \"-1s\""),
        top("trace_offset = 5"),
        top("record = true"),
        top("record = { bin = \"0s\" }"),
        top("record = { bin = \"61s\" }"),
        top("record = { bins = \"1s\" }"),
        swap("[[link]]", "[link]"),
        swap("rate = \"12Mbps\"", ""),
        swap("rate = \"12Mbps\"", "rate = \"0bps\""),
        swap("rate = \"12Mbps\"", "rate = \"12\""),
        swap("rate = \"12Mbps\"", "rate = \"12 MB/s\""),
        swap("rate = \"12Mbps\"", "rate = \"12Mbps\"\ntrace = \"lte\""),
        swap("rate = \"12Mbps\"", "radio = \"wifi\"\nqueue = \"vcp:load=busy-time\""),
        swap("rate = \"12Mbps\"", "steps = []"),
        swap("rate = \"12Mbps\"", "steps = [[\"1s\"]]"),
        swap("rate = \"12Mbps\"", "steps = [[\"0s\", \"1Mbps\"]]"),
        swap("rate = \"12Mbps\"", "steps = [[\"1s\", \"0bps\"]]"),
        swap("rate = \"12Mbps\"", "trace = \"\""),
        swap("name = \"up\"", ""),
        swap("name = \"up\"", "name = \"up:1\""),
        swap("name = \"up\"", "name = \"loss\""),
        swap("rate = \"12Mbps\"", "rate = \"12Mbps\"\n[[link]]\nname = \"up\"\nrate = \"1Mbps\""),
        swap("rate = \"12Mbps\"", "rate = \"12Mbps\"\nbuffer = \"0pkt\""),
        swap("rate = \"12Mbps\"", "rate = \"12Mbps\"\nbuffer = \"-1pkt\""),
        swap("rate = \"12Mbps\"", "rate = \"12Mbps\"\nbuffer = 250"),
        swap("rate = \"12Mbps\"", "rate = \"12Mbps\"\nbuffer = \"1kB\""),
        swap("rate = \"12Mbps\"", "steps = [[\"1s\", \"1Mbps\"]]\nburst = \"3kB\""),
        swap("rate = \"12Mbps\"", "rate = \"12Mbps\"\nburst = \"10GB\""),
        swap("rate = \"12Mbps\"", "rate = \"12Mbps\"\ndelay = \"2h\""),
        swap("rate = \"12Mbps\"", "radio = \"wifi\"\ndelay = \"2ms\""),
        swap("rate = \"12Mbps\"", "rate = \"12Mbps\"\ndelay = \"2ms\"\nrestarts = [{ at = \"1s\" }]"),
        swap("rate = \"12Mbps\"", "rate = \"12Mbps\"\nqueue = \"droptale\""),
        swap("rate = \"12Mbps\"", "rate = \"12Mbps\"\nqueue = \"droptail:target=5ms\""),
        swap("rate = \"12Mbps\"", "rate = \"12Mbps\"\nqueue = \"droptail:limit\""),
        swap("newreno", "newrino"),
        swap("newreno", "newreno:beta=2"),
        swap("newreno", "newreno:beta=much"),
        swap("newreno", "quicdc:threshold=20"),
        swap("newreno", "quicdc:threshold=150%"),
        swap("newreno", "quicdc:threshold=251ms"),
        swap("controller = \"newreno\"", ""),
        swap("controller = \"newreno\"", "controller = [\"newreno\"]"),
        swap("path = [\"up\"]", ""),
        swap("path = [\"up\"]", "path = []"),
        swap("path = [\"up\"]", "path = \"up\""),
        swap("path = [\"up\"]", "path = [\"uplink\"]"),
        swap("path = [\"up\"]", "path = [\"lost:rate=0.1\"]"),
        swap("path = [\"up\"]", "path = [\"up\", \"loss:rate=2\"]"),
        swap("path = [\"up\"]", "path = [\"up\", \"loss:odds=2\"]"),
        swap("path = [\"up\"]", "path = [\"up\", \"up\"]"),
        swap("newreno", "xcp"),
        swap("newreno", "rcp"),
        add("reverse = [\"down\"]"),
        add("rtt = \"0ms\""),
        add("rtt = \"2h\""),
        add("count = 61\nrtt_step = \"60s\""),
        add("count = 0"),
        add("count = 5000000000"),
        add("count = \"two\""),
        add("ack_every = 0"),
        add("ack_delay = \"0s\""),
        add("pacing_burst = 0"),
        add("mss = \"10B\""),
        add("mss = \"65500B\""),
        add("host = \"sctp\""),
        add("feedback = \"delayed:volume=loud\""),
        add("start = \"60s\""),
        add("start = \"10s\"\nstop = \"5s\""),
        add("stop = \"50ms\""),
        add("jitter = \"2s\""),
        add("reordering = \"rack\""),
        add("host = \"tcp\"\nreordering = \"adaptive\""),
        add("host = \"tcp\"\nundo = false"),
        add("host = \"tcp\"\nread_batch = 32"),
        add("host = \"quic\"\nread_batch = 0"),
        add("receiver_clock = \"fast\""),
        add("receiver_clock = { drift = 1 }"),
        add("receiver_clock = { skew_ppm = 6000 }"),
        add("receiver_clock = { step_ms = nan }"),
        add("[[flow]]\nname = \"main\"\ncontroller = \"newreno\"\npath = [\"up\"]"),
        traffic("\"torrent\""),
        traffic("\"size\""),
        traffic("{ size = \"1MB\" }"),
        traffic("{ kind = \"size\" }"),
        traffic("{ kind = \"size\", size = \"0B\" }"),
        traffic("{ kind = \"size\", rate = \"1Mbps\" }"),
        traffic("{ kind = \"on-off\", on = \"0s\", off = \"1s\" }"),
        traffic("\"phases\""),
        traffic("{ kind = \"phases\" }"),
        traffic("{ kind = \"phases\", phases = [] }"),
        traffic("{ kind = \"phases\", phases = [\"1s\"] }"),
        traffic("{ kind = \"phases\", phases = [[\"1s\"]] }"),
        traffic("{ kind = \"phases\", phases = [[\"1s\", \"bulk\"]] }"),
        traffic("{ kind = \"phases\", phases = [[\"0s\", \"idle\"]] }"),
        traffic("{ kind = \"phases\", phases = [[\"1s\", \"0bps\"]] }"),
        traffic("{ kind = \"short-flows\", size = \"10kB\" }"),
        traffic("{ kind = \"short-flows\", size = \"10kB\", load = \"1Mbps\", per_second = 1 }"),
        traffic("{ kind = \"short-flows\", size = \"1B\", load = \"1Tbps\" }"),
        traffic("{ kind = \"short-flows\", size = \"1B\", load = \"1Gbps\" }"),
        traffic("{ kind = \"short-flows\", size = \"10kB\", per_second = nan }"),
        traffic("{ kind = \"short-flows\", size = \"10kB\", per_second = 1, pareto_shape = 1.0 }"),
        traffic("{ kind = \"request-response\", request = \"5MB\", response = \"1kB\" }"),
        traffic("{ kind = \"game\", size = \"65508B\", interval = \"20ms\" }"),
        traffic("{ kind = \"video\", ladder = [\"2Mbps\", \"1Mbps\"] }"),
        traffic("{ kind = \"video\", startup = \"31s\" }"),
        traffic("{ kind = \"call\", min_rate = \"9Mbps\" }"),
        traffic("{ kind = \"call\", fps = 0 }"),
    ];
    let mut table = String::new();
    for input in &inputs {
        let edit = input.lines().filter(|line| !LEAST.lines().any(|known| known == *line));
        let edit = edit.collect::<Vec<_>>().join(" / ").replace('\0', "(a zero byte)");
        let mut error = read("in.toml", input).expect_err(input).to_string();
        if let Some(options) =
            error.find("unknown option").and_then(|at| error[at..].find(": ").map(|end| at + end))
        {
            // Which options an algorithm has is not this crate's business.
            error.replace_range(options.., ": valid are (options)");
        }
        for (list, stand_in) in
            [(CONTROLLERS, "(controllers)"), (QUEUES, "(queues)"), (ELEMENTS, "(elements)")]
        {
            let names: Vec<&str> = list.iter().map(|entry| entry.name).collect();
            for lead in ["valid are ", "a path element: "] {
                error = error.replace(&format!("{lead}{}", names.join(", ")), &format!("{lead}{stand_in}"));
            }
        }
        writeln!(table, "{}\n    {error}\n", if edit.is_empty() { input.trim() } else { &edit }).unwrap();
    }
    insta::assert_snapshot!(table);
}

#[test]
fn numbers_a_line_even_when_the_field_is_absent() {
    let text = format!(
        "{LEAST}\n[[flow]]\nname = \"late\"\ncontroller = \"newreno\"\npath = [\"up\"]\nstop = \"1ms\"\n"
    );
    assert_eq!(read("a.toml", &text).unwrap_err().line, Some(14));
    let text = text.replace("stop = \"1ms\"", "overhead = \"65500B\"\nmss = \"64B\"");
    assert_eq!(read("a.toml", &text).unwrap_err().line, Some(14));
}

/// Draws a scenario that uses every part of the language.
pub(crate) fn draw(random: &mut Random) -> Scenario {
    fn below(random: &mut Random, n: u64) -> u64 {
        random.bits() % n
    }
    fn time(random: &mut Random) -> Duration {
        let most = [1_000, 1_000_000, 1_000_000_000, 60_000_000_000][below(random, 4) as usize];
        Duration::from_nanos(1 + below(random, most))
    }
    fn rate(random: &mut Random) -> Rate {
        let most = [10_000, 10_000_000, 10_000_000_000][below(random, 3) as usize];
        Rate::from_bps(1 + below(random, most))
    }
    fn size(random: &mut Random) -> Bytes {
        Bytes(1 + below(random, 65_000))
    }
    let duration = Duration::from_secs(1 + below(random, 1000));
    let links: Vec<LinkSpec> = (0..1 + below(random, 4))
        .map(|index| {
            let service = match below(random, 4) {
                3 => Service::Radio(SchemeString::new("wifi", &[("mcs", "1/7"), ("stations", "2")]).unwrap()),
                0 => Service::Trace("a \"quoted\" \\ name\n".to_string()),
                1 => Service::Fixed(rate(random)),
                _ => Service::Steps(Steps {
                    steps: (0..1 + below(random, 5)).map(|_| (time(random), rate(random))).collect(),
                    repeat: random.chance(0.5),
                }),
            };
            let buffer = match below(random, 2) {
                0 => Limit::Packets(1 + below(random, 1000) as u32),
                _ => Limit::Bytes(Bytes(70_000 + below(random, 1_000_000_000))),
            };
            let queue = match below(random, 2) {
                0 => SchemeString::new("fifo", &[]),
                _ => SchemeString::new("droptail", &[("limit", "30kB")]),
            };
            let restarts = match (&service, below(random, 2)) {
                (Service::Radio(_), _) | (_, 0) => Vec::new(),
                _ => vec![
                    Restart { at: time(random), down: Duration::ZERO, waiting: Waiting::Kept },
                    Restart { at: Duration::from_secs(86_400), down: time(random), waiting: Waiting::Lost },
                ],
            };
            let spread = matches!(service, Service::Trace(_)) && random.chance(0.5);
            let burst = match (&service, below(random, 2)) {
                (Service::Fixed(_), 1) => size(random),
                _ => Bytes::ZERO,
            };
            let delay = match (&service, restarts.is_empty(), below(random, 2)) {
                (Service::Radio(_), _, _) | (_, false, _) | (_, _, 0) => Duration::ZERO,
                _ => time(random).min(Duration::from_secs(3600)),
            };
            LinkSpec {
                name: format!("link {index}"),
                service,
                buffer,
                queue: queue.unwrap(),
                opportunity: size(random),
                overhead: Bytes(below(random, 50)),
                spread,
                restarts,
                burst,
                delay,
            }
        })
        .collect();
    let flows = (0..1 + below(random, 3)).map(|index| {
        let mut path: Vec<Hop> = links.iter().map(|link| Hop::Link(link.name.clone())).collect();
        if random.chance(0.5) {
            let jitter = SchemeString::new("jitter", &[("max", "5ms"), ("keep_order", "false")]);
            path.push(Hop::Element(jitter.unwrap()));
        }
        let controller = SchemeString::new("newreno", &[("beta", "0.7")]).unwrap();
        let mut flow = FlowSpec::new(&format!("flow.{index}"), controller, time(random), path);
        flow.count = 1 + below(random, 100) as u32;
        flow.rtt_step = Duration::from_nanos(below(random, 1_000));
        flow.start = Duration::from_nanos(below(random, duration.as_nanos()));
        flow.ack_delay = random.chance(0.5).then(|| Duration::from_micros(1_000 + below(random, 20_000)));
        if flow.host == Host::Quic {
            flow.reordering = if random.chance(0.5) { Reordering::Adaptive } else { Reordering::Fixed };
            flow.undo = random.chance(0.5);
            flow.read_batch = 1 + below(random, 64) as u32;
        }
        flow.start_within = time(random);
        flow.stop = random.chance(0.5).then(|| flow.start + flow.start_within + time(random));
        if random.chance(0.5) {
            flow.receiver_clock = Clock {
                offset: time(random),
                skew_ppm: 200.0 * random.uniform() - 100.0,
                step_at: random.chance(0.5).then(|| time(random)),
                step_ms: 2e3 * random.uniform() - 1e3,
            };
        }
        flow.traffic = match below(random, 10) {
            0 => Traffic::Backlogged,
            1 => Traffic::Size(size(random)),
            2 => Traffic::OnOff(OnOff {
                on: time(random),
                off: time(random),
                rate: random.chance(0.5).then(|| rate(random)),
                random: random.chance(0.5),
            }),
            3 => Traffic::ShortFlows(ShortFlows {
                arrivals: match below(random, 2) {
                    0 => Arrivals::PerSecond(0.1 + 100.0 * random.uniform()),
                    _ => Arrivals::Load(Rate::from_bps(1 + below(random, 1000))),
                },
                size: match below(random, 2) {
                    0 => SizeLaw::Fixed(size(random)),
                    _ => SizeLaw::Pareto { mean: size(random), shape: 1.1 + random.uniform() },
                },
            }),
            4 => Traffic::RateLimited(rate(random)),
            5 => Traffic::RequestResponse(RequestResponse {
                request: size(random),
                response: size(random),
                think: time(random),
            }),
            6 => Traffic::Game(Game { size: size(random), interval: Duration::from_millis(7) }),
            8 => Traffic::Phases(vec![
                Phase { length: time(random), offer: Offer::Rate(rate(random)) },
                Phase { length: time(random), offer: Offer::Idle },
                Phase { length: time(random), offer: Offer::Backlogged },
            ]),
            7 => Traffic::Video(Video { ladder: vec![rate(random)], ..Video::default() }),
            _ => Traffic::Call(Call { max_rate: Rate::from_mbps(20), fps: 25, ..Call::default() }),
        };
        flow
    });
    let flows = flows.collect();
    Scenario {
        name: "drawn \u{7}\u{1F6A6}".to_string(),
        seed: random.bits(),
        duration,
        measure_from: Duration::from_nanos(below(random, duration.as_nanos())),
        trace_offset: match below(random, 2) {
            0 => TraceOffset::Random,
            _ => TraceOffset::At(time(random)),
        },
        links,
        flows,
        record: Record { series: random.chance(0.5), state: random.chance(0.5), ..Record::summary(duration) },
    }
}

#[test]
fn what_is_written_reads_back_the_same() {
    let mut random = Random::stream(1, "scenarios");
    for _ in 0..2_000 {
        let scenario = draw(&mut random);
        let text = write(&scenario);
        assert_eq!(scenario.validate(), Ok(()), "{text}");
        let again = read("drawn.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(again, scenario, "{text}");
        assert_eq!(write(&again), text);
    }
}

#[test]
fn any_format_has_the_structure_and_the_words_of_the_file() {
    let mut random = Random::stream(3, "scenarios");
    for _ in 0..300 {
        let scenario = draw(&mut random);
        let json = serde_json::to_string(&scenario).unwrap();
        assert_eq!(serde_json::from_str::<Scenario>(&json).unwrap(), scenario, "{json}");
        let tree = serde_json::to_value(&scenario).unwrap();
        assert_eq!(serde_json::from_value::<Scenario>(tree.clone()).unwrap(), scenario, "{tree}");
        let text = toml::to_string(&scenario).unwrap();
        assert_eq!(text, write(&scenario));
        assert_eq!(toml::from_str::<Scenario>(&text).unwrap(), scenario, "{text}");
        assert_eq!(toml::from_str::<serde_json::Value>(&text).unwrap(), tree, "{text}");
    }
}

/// An edit of a JSON document.
type Edit<'a> = &'a dyn Fn(&mut serde_json::Value);

#[test]
fn what_is_wrong_with_json_is_said_as_of_a_file() {
    let mut valid = serde_json::to_value(read("in.toml", LEAST).unwrap()).unwrap();
    let refused = |change: Edit<'_>| {
        let mut changed = valid.clone();
        change(&mut changed);
        serde_json::from_value::<Scenario>(changed).unwrap_err().to_string()
    };
    let inputs: [(Edit<'_>, &str); 7] = [
        (
            &|json| json["flow"][0]["rtt"] = 5.into(),
            "flow `main`: rtt = `5` is not a time such as `100ms`, `1.5s` or `200us`",
        ),
        (
            &|json| json["flow"][0]["host"] = serde_json::json!(["tcp", 1]),
            "flow `main`: host = `[tcp, 1]` is not `tcp`, `quic` or `ns2`, in quotes",
        ),
        (
            &|json| json["seed"] = serde_json::json!(1.5),
            "seed = `1.5` is not a whole number from 0 to 18446744073709551615",
        ),
        (
            &|json| json["record"]["bins"] = 1.into(),
            "record: unknown key `bins` (did you mean `bin`?): valid are series, bin, link_logs, state, flow_delays, second_half, unfairness",
        ),
        (
            &|json| json["link"][0]["name"] = serde_json::Value::Null,
            "link 1: `name` is missing: give a name for paths to refer to",
        ),
        (
            &|json| json["flow"][0]["traffic"] = serde_json::json!({"kind": "size"}),
            "flow `main`, traffic: `size` is missing: give the size of the transfer",
        ),
        (&|json| json["duration"] = "0s".into(), "duration = `0s` is out of range: valid is 1ns to 280800s"),
    ];
    for (change, message) in inputs {
        assert_eq!(refused(change), message);
    }
    // What is null is not there.
    valid["measure_from"] = serde_json::Value::Null;
    let read_back: Scenario = serde_json::from_value(valid).unwrap();
    assert_eq!(read_back, read("in.toml", LEAST).unwrap());
}

#[test]
fn never_panics_and_what_it_accepts_reads_back() {
    let mut random = Random::stream(2, "scenario files");
    let mut accepted = 0;
    let inputs = fuzz_inputs();
    let corpus = [FULL.to_string(), LEAST.to_string(), write(&draw(&mut random)), write(&draw(&mut random))];
    for _ in 0..inputs {
        let text = brakelight_testkit::mutate::mutate(&corpus, &mut random);
        match read("fuzz.toml", &text) {
            Ok(scenario) => {
                accepted += 1;
                let again = write(&scenario);
                assert_eq!(read("fuzz.toml", &again).as_ref(), Ok(&scenario), "{again}");
            }
            Err(error) => {
                assert!(error.line.is_some(), "{error}");
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        }
    }
    // The mutations must leave enough alive that the deeper checks are reached.
    assert!(accepted > inputs / 20, "{accepted} of {inputs} accepted");
}

/// What `text` of a flow's traffic is read as.
fn traffic_of(text: &str) -> Traffic {
    let link = "[[link]]\nname = \"l\"\nrate = \"1Mbps\"\n";
    let flow = format!("[[flow]]\ncontroller = \"cubic\"\nrtt = \"1ms\"\npath = [\"l\"]\ntraffic = {text}\n");
    let scenario = read("test.toml", &format!("duration = \"1s\"\n{link}{flow}"));
    scenario.unwrap_or_else(|error| panic!("{text}: {error}")).flows.remove(0).traffic
}

#[test]
fn cloud_gaming_is_a_call_with_fitting_numbers() {
    let call = |numbers: &str| traffic_of(&format!("{{ kind = \"call\", statistical = true, {numbers} }}"));
    let at_60 = call(
        r#"fps = 60, min_rate = "2.5Mbps", max_rate = "25Mbps", deadline = "100ms", key_frame = "168750B""#,
    );
    assert_eq!(traffic_of("\"gaming\""), at_60);
    assert_eq!(traffic_of("{ kind = \"gaming\", fps = 60 }"), at_60);
    let at_120 = call(
        r#"fps = 120, min_rate = "3.5Mbps", max_rate = "35Mbps", deadline = "100ms", key_frame = "118125B""#,
    );
    assert_eq!(traffic_of("{ kind = \"gaming\", fps = 120 }"), at_120);
}

#[test]
fn traffic_alone_is_read_as_in_a_scenario_and_written_in_words_that_are_read() {
    let registry = Registry::standard();
    for text in ["call", "gaming", "{ kind = \"call\", fps = 60 }", r#"{"kind": "size", "size": "1MB"}"#] {
        let traffic = read_traffic(&registry, text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(read_traffic(&registry, &traffic_words(&traffic)).unwrap(), traffic, "{text}");
    }
    assert_eq!(traffic_words(&Traffic::Backlogged), "backlogged");
    let refused = |text| read_traffic(&registry, text).unwrap_err().to_string();
    assert!(refused("torrent").starts_with("traffic = `torrent`"), "{}", refused("torrent"));
    assert!(refused("{ kind = \"call\", frames = 3 }").contains("frames"));
    assert!(refused("{\"kind\": \"call\", \"fps\": \"many\"}").contains("fps"));
}

#[test]
fn the_list_of_applications_has_their_names_and_defaults() {
    let names: Vec<&str> = APPLICATIONS.iter().map(|entry| entry.name).collect();
    assert_eq!(names, traffic::NAMES);
    for entry in APPLICATIONS {
        let (mut least, mut full) = (format!("{{ kind = \"{}\"", entry.name), String::new());
        for parameter in entry.parameters() {
            let text = match (parameter.unit.as_str(), parameter.default.as_str()) {
                ("size", "required") => "\"10kB\"".to_string(),
                ("time", "required") => "\"1s\"".to_string(),
                ("rate", "required") => "\"1Mbps\"".to_string(),
                ("list of pairs", "required") => "[[\"1s\", \"1Mbps\"]]".to_string(),
                // One of two that exclude each other must be there.
                (_, "none") if parameter.name == "per_second" => "1".to_string(),
                (_, "none") => continue,
                ("number" | "true | false", default) => default.to_string(),
                ("list of rates", default) => format!("{:?}", default.split(", ").collect::<Vec<_>>()),
                (_, default) => format!("{default:?}"),
            };
            let has_default = !["required", "none"].contains(&parameter.default.as_str());
            let given = if has_default { &mut full } else { &mut least };
            given.push_str(&format!(", {} = {text}", parameter.name));
        }
        let (least, full) = (format!("{least} }}"), format!("{least}{full} }}"));
        assert_eq!(traffic_of(&full), traffic_of(&least), "{}", entry.name);
    }
}
