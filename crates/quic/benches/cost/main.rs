//! What a byte costs: processor time of the sender and of the receiver for each byte of payload, over this
//! machine's loopback, of quinn as it comes and of ours.
//!
//! ```text
//! cargo bench -p brakelight-quic --bench cost [-- OPTION=VALUE ...]
//!
//! pairs=all            which: `SENDER:CONTROLLER/RECEIVER` against another, see below; `all` is every row
//! rounds=7             runs of each of a pair, in turns: A B, B A, A B ...
//! megabytes=200        payload of a run, in 10⁶ bytes
//! rate=0               payload in Mbit/s that the sender is given to send; 0 is as fast as it goes
//! link=none            Mbit/s of a link between the ends that spaces packets out and queues 1 MB: two
//!                      network namespaces and a token bucket, tc-tbf(8); needs root
//! count=none           in place of all that: instructions per packet by callgrind, of `stock:CONTROLLER`
//!                      and `ours:CONTROLLER`, see `count.rs`; `all` is every row
//! ```
//!
//! | end | is |
//! |---|---|
//! | `stock` | quinn as it comes, with its own `cubic`, `newreno` or `bbr` |
//! | `quinn` | an application of quinn with `EndpointBuilder` and a controller of ours |
//! | `driver` | our driver with a controller of ours, as `perf` and `perf-server` have it |
//!
//! Each run is two fresh processes, one for each end. They measure themselves from the end of the handshake
//! to the receipt of the last byte: user and system time of all their threads. Beside them stand the
//! datagrams per system call of both ends, which show whether segmentation and receive offload are used, and
//! the packets per ACK. One JSON document goes to standard output. A ratio is a median over the rounds of
//! what the first of a pair cost over what the second cost in the same round; `low` and `high` are its
//! quartiles. The machine should be idle, and the load average is printed beside.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

mod count;
mod ends;
mod link;

/// What one end measured of itself during a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Cost {
    /// Seconds of user time.
    user_s: f64,
    /// Seconds of system time.
    system_s: f64,
    /// Seconds of wall time.
    wall_s: f64,
    /// Bytes of payload.
    bytes: u64,
    datagrams_per_send: f64,
    datagrams_per_receive: f64,
    datagrams_per_message: f64,
}

impl Cost {
    /// Nanoseconds of processor time per byte.
    fn ns_per_byte(&self) -> f64 {
        (self.user_s + self.system_s) * 1e9 / self.bytes.max(1) as f64
    }
}

/// What a run came to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Run {
    sender: Cost,
    receiver: Cost,
    packets: u64,
    lost_packets: u64,
    acks: u64,
}

/// Both ends of a run: who sends with which controller, and who receives.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ends {
    sender: String,
    controller: String,
    receiver: String,
}

impl Ends {
    fn parse(text: &str) -> Self {
        let (sender, receiver) = text.split_once('/').expect("SENDER:CONTROLLER/RECEIVER");
        let (sender, controller) = sender.split_once(':').expect("SENDER:CONTROLLER/RECEIVER");
        let owned = str::to_string;
        Ends { sender: owned(sender), controller: owned(controller), receiver: owned(receiver) }
    }
}

impl std::fmt::Display for Ends {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}/{}", self.sender, self.controller, self.receiver)
    }
}

/// Ours, and what of stock quinn's it is compared with. The senders all send to the same receiver, and the
/// receivers all receive from the same sender, so that one end changes at a time.
const PAIRS: &[(&str, &str)] = &[
    ("quinn:cubic/stock", "stock:cubic/stock"),
    ("quinn:newreno/stock", "stock:newreno/stock"),
    ("quinn:abc/stock", "stock:cubic/stock"),
    ("quinn:quicdc/stock", "stock:cubic/stock"),
    ("driver:cubic/stock", "stock:cubic/stock"),
    ("driver:newreno/stock", "stock:newreno/stock"),
    ("driver:bbr/stock", "stock:bbr/stock"),
    ("driver:abc/stock", "stock:cubic/stock"),
    ("driver:bmcc/stock", "stock:cubic/stock"),
    ("driver:quicdc/stock", "stock:cubic/stock"),
    ("stock:cubic/quinn", "stock:cubic/stock"),
    ("stock:cubic/driver", "stock:cubic/stock"),
    ("driver:cubic/driver", "stock:cubic/stock"),
    ("driver:abc/driver", "stock:cubic/stock"),
    ("driver:bmcc/driver", "stock:cubic/stock"),
    ("driver:quicdc/driver", "stock:cubic/stock"),
];

struct Options {
    pairs: Vec<(Ends, Ends)>,
    rounds: usize,
    bytes: u64,
    rate_mbps: u64,
    count: Vec<String>,
    link: Option<link::Link>,
}

fn options() -> Options {
    let parse = |(ours, stock): &(&str, &str)| (Ends::parse(ours), Ends::parse(stock));
    let all = || PAIRS.iter().map(parse).collect();
    let mut options =
        Options { pairs: all(), rounds: 7, bytes: 200_000_000, rate_mbps: 0, count: Vec::new(), link: None };
    for argument in env::args().skip(1).filter(|argument| argument.contains('=')) {
        let (name, value) = argument.split_once('=').expect("filtered");
        match name {
            "pairs" if value == "all" => options.pairs = all(),
            "pairs" => {
                let pair = |pair: &str| match pair.split_once("~") {
                    Some((ours, stock)) => (Ends::parse(ours), Ends::parse(stock)),
                    None => {
                        let ours = Ends::parse(pair);
                        let known = PAIRS.iter().find(|(known, _)| *known == pair);
                        (ours, Ends::parse(known.expect("A~B, or A of the list").1))
                    }
                };
                options.pairs = value.split(',').map(pair).collect();
            }
            "rounds" => options.rounds = value.parse().expect("rounds=7"),
            "megabytes" => {
                options.bytes = value.parse::<u64>().expect("megabytes=200") * 1_000_000;
            }
            "link" => options.link = Some(link::Link::new(value.parse().expect("link=300"))),
            "count" if value == "all" => options.count = COUNTED.iter().map(ToString::to_string).collect(),
            "count" => options.count = value.split(',').map(String::from).collect(),
            "rate" => options.rate_mbps = value.parse().expect("rate=0"),
            _ => panic!("unknown option `{argument}`"),
        }
    }
    options
}

/// What `count=all` counts.
const COUNTED: &[&str] =
    &["stock:cubic", "ours:cubic", "stock:newreno", "ours:newreno", "ours:abc", "ours:quicdc"];

/// This program again, as one end of a run.
fn end(namespace: Option<&str>, arguments: &[String]) -> Child {
    let program = env::current_exe().expect("this program is a file");
    let mut command = match namespace {
        None => Command::new(program),
        Some(namespace) => {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", namespace]).arg(program);
            command
        }
    };
    command.arg("end").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().expect("this program starts")
}

fn line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line).expect("an end speaks");
    line.trim().to_string()
}

fn run(ends: &Ends, options: &Options) -> Run {
    let link = options.link.as_ref();
    let host = link.map_or("127.0.0.1", |_| link::RECEIVER).to_string();
    let namespace = link.map(link::Link::receiver);
    let mut receiver = end(namespace, &["receive".to_string(), ends.receiver.clone(), host]);
    let address = line(&mut receiver);
    let (bytes, rate) = (options.bytes.to_string(), options.rate_mbps.to_string());
    let arguments = ["send".to_string(), ends.sender.clone(), ends.controller.clone(), address, bytes, rate];
    let mut sender = end(link.map(link::Link::sender), &arguments);
    let told = line(&mut sender);
    let _ = sender.wait();
    // It goes with its standard input.
    drop(receiver.stdin.take());
    let _ = receiver.wait();
    serde_json::from_str(&told).unwrap_or_else(|error| panic!("{ends}: {error}: {told}"))
}

fn quantile(values: &[f64], quantile: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len() - 1) as f64 * quantile;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

fn spread(values: &[f64]) -> Value {
    json!({"median": quantile(values, 0.5), "low": quantile(values, 0.25), "high": quantile(values, 0.75)})
}

/// The medians of what the runs of one side came to.
fn summary(ends: &Ends, runs: &[Run]) -> Value {
    let median = |of: &dyn Fn(&Run) -> f64| quantile(&runs.iter().map(of).collect::<Vec<_>>(), 0.5);
    let cost = |of: &dyn Fn(&Run) -> &Cost| {
        json!({
            "ns_per_byte": median(&|run| of(run).ns_per_byte()),
            "user_share": median(&|run| of(run).user_s / (of(run).user_s + of(run).system_s)),
            "datagrams_per_send": median(&|run| of(run).datagrams_per_send),
            "datagrams_per_receive": median(&|run| of(run).datagrams_per_receive),
            "datagrams_per_message": median(&|run| of(run).datagrams_per_message),
        })
    };
    json!({
        "ends": ends.to_string(),
        "goodput_mbps": median(&|run| 8e-6 * run.receiver.bytes as f64 / run.receiver.wall_s),
        "packets_per_ack": median(&|run| run.packets as f64 / run.acks.max(1) as f64),
        "lost_percent": median(&|run| 100.0 * run.lost_packets as f64 / run.packets.max(1) as f64),
        "sender": cost(&|run| &run.sender),
        "receiver": cost(&|run| &run.receiver),
    })
}

fn compare(ours: &Ends, stock: &Ends, options: &Options) -> Value {
    let (mut of_ours, mut of_stock) = (Vec::new(), Vec::new());
    for round in 0..options.rounds {
        if round % 2 == 0 {
            of_ours.push(run(ours, options));
            of_stock.push(run(stock, options));
        } else {
            of_stock.push(run(stock, options));
            of_ours.push(run(ours, options));
        }
    }
    let ratio = |of: fn(&Run) -> f64| {
        let ratios: Vec<f64> = of_ours.iter().zip(&of_stock).map(|(a, b)| of(a) / of(b)).collect();
        spread(&ratios)
    };
    json!({
        "ours": summary(ours, &of_ours),
        "stock": summary(stock, &of_stock),
        "sender_ratio": ratio(|run| run.sender.ns_per_byte()),
        "receiver_ratio": ratio(|run| run.receiver.ns_per_byte()),
        "both_ratio": ratio(|run| run.sender.ns_per_byte() + run.receiver.ns_per_byte()),
    })
}

fn load_average() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_string()
}

#[allow(clippy::print_stdout)]
fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "end") {
        return ends::run(&arguments[1..]);
    }
    if arguments.first().is_some_and(|first| first == "count") {
        return count::run(&arguments[1..]);
    }
    let options = options();
    if !options.count.is_empty() {
        let rows: Vec<Value> = (options.count.iter())
            .map(|sender| {
                let (kind, controller) = sender.split_once(':').expect("KIND:CONTROLLER");
                let row = count::row(kind, controller).expect("valgrind is installed");
                eprintln!("{row}");
                row
            })
            .collect();
        return println!("{}", serde_json::to_string_pretty(&rows).expect("numbers and words"));
    }
    let before = load_average();
    let mut rows = Vec::new();
    for (ours, stock) in &options.pairs {
        let row = compare(ours, stock, &options);
        let ratio = |name: &str| row[name]["median"].as_f64().unwrap_or(0.0);
        eprintln!(
            "{ours} over {stock}: sender {:.3}, receiver {:.3}, both {:.3}",
            ratio("sender_ratio"),
            ratio("receiver_ratio"),
            ratio("both_ratio")
        );
        rows.push(row);
    }
    let document = json!({
        "rounds": options.rounds,
        "bytes": options.bytes,
        "rate_mbps": options.rate_mbps,
        "link_mbps": options.link.as_ref().map(link::Link::mbps),
        "load_average": {"before": before, "after": load_average()},
        "pairs": rows,
    });
    println!("{}", serde_json::to_string_pretty(&document).expect("numbers and words"));
}
