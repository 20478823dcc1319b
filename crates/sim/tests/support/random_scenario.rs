//! Short scenarios at random: every controller, queue, host, application, service and path element may be in
//! one.

use std::fmt::Write;

use brakelight_core::random::Random;
use brakelight_links::trace::Trace;
use brakelight_registry::{CONTROLLERS, ControllerConfig, QUEUES};
use brakelight_scenario::file::read;
use brakelight_scenario::scenario::Scenario;
use brakelight_sim::Traces;

const TRAFFIC: &[&str] = &[
    "\"backlogged\"",
    "\"backlogged\"",
    "\"backlogged\"",
    "{ kind = \"size\", size = \"300kB\" }",
    "{ kind = \"on-off\", on = \"300ms\", off = \"200ms\", random = true }",
    "{ kind = \"rate-limited\", rate = \"2Mbps\" }",
    "{ kind = \"request-response\", request = \"300B\", response = \"60kB\", think = \"50ms\" }",
    "{ kind = \"short-flows\", per_second = 12, size = \"30kB\", pareto_shape = 1.5 }",
    "\"game\"",
    "\"video\"",
    "\"call\"",
    "{ kind = \"phases\", phases = [[\"300ms\", \"2Mbps\"], [\"200ms\", \"idle\"], [\"1s\", \"backlogged\"]] }",
];

const FORWARD: &[&str] = &[
    "loss:rate=0.01",
    "loss-steps:steps=400ms:0/100ms:0.1",
    "delay-steps:delays=0s/9ms/3ms,hold=70ms,beat=4ms",
    "gilbert-elliott:p=0.01,r=0.2",
    "policer:rate=4Mbps,burst=20kB",
    "shaper:queue=fq_codel,setter=autorate/min=1Mbps/base=4Mbps/max=8Mbps",
    "shaper:queue=cake,setter=follow/safe=3Mbps",
    "circuit-breaker:rate=3Mbps,burst=20kB,interval=300ms,intervals=2,down=400ms",
    "jitter:mean=3ms,spread=3ms",
    "jitter:distribution=exponential,mean=2ms,keep_order=false",
    "reorder:rate=0.02,hold=6ms",
    "duplicate:rate=0.02",
    "bleach:rate=0.1",
    "delay:delay=13ms",
];

const REVERSE: &[&str] =
    &["ack-loss:rate=0.1", "ack-thin:every=3", "ack-thin:hold=4ms", "jitter", "duplicate:rate=0.02"];

fn below(random: &mut Random, limit: u64) -> u64 {
    random.bits() % limit
}

fn one<'a, T: ?Sized>(random: &mut Random, of: &[&'a T]) -> &'a T {
    of[below(random, of.len() as u64) as usize]
}

/// Up to `most` of them.
fn some(random: &mut Random, of: &[&str], most: u64) -> Vec<String> {
    (0..below(random, most + 1)).map(|_| one(random, of).to_string()).collect()
}

/// One try; it may ask for what no scenario may have together.
fn draft(random: &mut Random) -> String {
    let duration = 1000 + below(random, 2001);
    let mut text = format!("duration = \"{duration}ms\"\nseed = {}\n", random.bits() >> 1);
    if random.chance(0.5) {
        writeln!(text, "measure_from = \"{}ms\"", below(random, duration)).unwrap();
    }
    if random.chance(0.5) {
        text.push_str("trace_offset = \"random\"\n");
    }
    let (series, logs, state) = (random.chance(0.5), random.chance(0.3), random.chance(0.5));
    let unfairness = if random.chance(0.2) { ", unfairness = \"100ms\"" } else { "" };
    writeln!(
        text,
        "record = {{ series = {series}, bin = \"70ms\", link_logs = {logs}, state = {state}{unfairness} }}"
    )
    .unwrap();
    let controllers: Vec<&str> = CONTROLLERS.iter().map(|entry| entry.name).collect();
    let queues: Vec<&str> = QUEUES.iter().map(|entry| entry.name).collect();
    let controller = one(random, &controllers);
    let own = ControllerConfig::new(controller, &[]).unwrap().needs().queue.unwrap_or("droptail");
    let links = 1 + below(random, 2);
    let mut path = Vec::new();
    for link in 0..links {
        let queue = if random.chance(0.6) { own } else { one(random, &queues) };
        let mbps = 5 + below(random, 26);
        let service = match below(random, 8) {
            0 | 1 => "trace = \"saw\"".to_string(),
            2 => "radio = \"wifi:mcs=1/7,period=300ms,stations=2\"".to_string(),
            3 => "radio = \"cellular:users=2\"".to_string(),
            4 => format!(
                "steps = [[\"300ms\", \"{mbps}Mbps\"], [\"70ms\", \"0bps\"], [\"400ms\", \"{}Mbps\"]]",
                mbps / 3 + 1
            ),
            _ => format!("rate = \"{mbps}Mbps\""),
        };
        writeln!(
            text,
            "[[link]]\nname = \"l{link}\"\n{service}\nqueue = \"{queue}\"\nbuffer = \"{}pkt\"",
            10 + below(random, 300)
        )
        .unwrap();
        if random.chance(0.15) {
            let waiting = one(random, &["lost", "kept"]);
            let down = if waiting == "lost" { 40 } else { 0 };
            writeln!(text, "restarts = [{{ at = \"700ms\", down = \"{down}ms\", waiting = \"{waiting}\" }}]")
                .unwrap();
        }
        path.push(format!("l{link}"));
    }
    for flow in 0..=below(random, 3) {
        let controller = if flow == 0 { controller } else { one(random, &controllers) };
        let mut path = path.clone();
        if flow > 0 && random.chance(0.3) {
            path.remove(0);
            path.insert(0, "l0".into());
            path.truncate(1);
        }
        path.extend(some(random, FORWARD, 2));
        if random.chance(0.1) {
            path.insert(0, "encapsulate".into());
            path.push("decapsulate".into());
        }
        let reverse = some(random, REVERSE, 2);
        writeln!(
            text,
            "[[flow]]\ncontroller = \"{controller}\"\nhost = \"{}\"\nrtt = \"{}ms\"\npath = {path:?}\nreverse = {reverse:?}\n\
             ack_every = {}\ntraffic = {}\ncount = {}\nstart = \"{}ms\"\nstart_within = \"30ms\"",
            one(random, &["tcp", "quic"]),
            5 + below(random, 100),
            1 + below(random, 3),
            one(random, TRAFFIC),
            1 + below(random, 2),
            below(random, 300),
        )
        .unwrap();
        if random.chance(0.2) {
            writeln!(text, "stop = \"{}ms\"", 400 + below(random, 900)).unwrap();
        }
    }
    text
}

/// Scenario number `index`, valid, with the traces it may name.
pub fn random_scenario(index: u64) -> (Scenario, Traces) {
    let mut random = Random::stream(index, "random scenario");
    let saw = Trace::from_millis((1..=900).flat_map(|ms| vec![ms; (ms / 150 % 4) as usize])).unwrap();
    let valid = (0..1000).find_map(|_| read("random.toml", &draft(&mut random)).ok());
    (valid.expect("one of a thousand drafts is valid"), Traces::from([("saw".to_string(), saw)]))
}
