//! A home router 10 ms before links that were recorded: `cargo run -p brakelight-sim --example shaping --
//! FOLDER [NAME...]` prints the tables of `docs/shaping.md` for the recordings `NAME` in `FOLDER`, or for the
//! ten of that page.
//!
//! ```text
//! up:     sender - shaper - 10 ms - link - 10 ms - receiver,  20 ms back
//! down:   sender - 10 ms - link - 10 ms - shaper - receiver,  20 ms back
//! ```
//!
//! Delay is what the path adds to its 20 ms, the shaper's queue included.

use std::error::Error;
use std::path::Path;

use brakelight_scenario::outcome::Run;
use brakelight_scenario::trace::OPPORTUNITY;
use brakelight_scenario::trace::names::read;
use brakelight_sim::{Traces, run};

/// The recordings of the page.
const RECORDINGS: &[&str] = &[
    "ATT-LTE-driving-2016.down",
    "ATT-LTE-driving-2016.up",
    "TMobile-LTE-short.down",
    "TMobile-LTE-short.up",
    "Verizon-LTE-short.down",
    "Verizon-LTE-short.up",
    "5g-sa-1.down",
    "5g-nsa-1.down",
    "5g-nsa-2.down",
    "starlink.down",
];

/// Who sets the rate, and how the page calls it. `{mean}` is the link's mean, which gives cake-autorate the
/// limits that its owner would: a quarter of the mean, the mean, and twice the mean.
const SETTERS: &[(&str, &str)] = &[
    ("none", ""),
    ("50 %", "fixed/share=0.5"),
    ("80 %", "fixed/share=0.8"),
    ("95 %", "fixed/share=0.95"),
    ("autorate", "autorate/min={min}/base={mean}/max={max}"),
    ("follow", "follow/base={mean}/safe={mean}"),
    ("oracle", "oracle"),
];

const SENDERS: &[(&str, u32)] = &[("cubic", 1), ("cubic", 8), ("bbr3", 1), ("bbr3", 8)];

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("give the folder of the recordings")?;
    let named: Vec<String> = arguments.collect();
    let all: Vec<&str> = match named.is_empty() {
        true => RECORDINGS.to_vec(),
        false => named.iter().map(String::as_str).collect(),
    };
    let setters: Vec<&str> = SETTERS.iter().map(|(name, _)| *name).collect();
    println!("| recording | senders | side | {} |", setters.join(" | "));
    println!("|---|---|---|{}", "---|".repeat(setters.len()));
    let sides: &[&str] = match std::env::var("SIDE").as_deref() {
        Ok("down") => &["down"],
        Ok("both") => &["up", "down"],
        _ => &["up"],
    };
    for name in all {
        let trace = read(&Path::new(&folder).join(name))?;
        let kbps = trace.mean_rate(OPPORTUNITY).bps() / 1000;
        for &(controller, count) in SENDERS {
            for side in sides {
                let mut cells = Vec::new();
                for (_, setter) in SETTERS {
                    let text = scenario(kbps, controller, count, side, setter);
                    let scenario = brakelight_scenario::file::read("shaping.toml", &text)?;
                    let traces = Traces::from([("recorded".to_string(), trace.clone())]);
                    cells.push(cell(&run(&scenario, &traces)?.run));
                }
                println!("| {name} | {count} {controller} | {side} | {} |", cells.join(" | "));
            }
        }
    }
    Ok(())
}

/// Throughput in Mbit/s, p95 of what the path adds to its 20 ms, in ms, and the share of time blind.
fn cell(run: &Run) -> String {
    let p95 = run.one_way_delay_ms.map_or(f64::NAN, |delay| delay.p95 - 20.0);
    let delivered: f64 = run.flows.iter().map(|flow| flow.throughput_mbps).sum();
    let blind = run.shapers.first().map_or(0.0, |shaper| shaper.blind);
    let blind = if blind > 0.0 { format!(", blind {:.0} %", 100.0 * blind) } else { String::new() };
    format!("{delivered:.2}, {p95:.0}{blind}")
}

fn scenario(kbps: u64, controller: &str, count: u32, side: &str, setter: &str) -> String {
    let setter = setter
        .replace("{min}", &format!("{}kbps", kbps / 4))
        .replace("{mean}", &format!("{kbps}kbps"))
        .replace("{max}", &format!("{}kbps", kbps * 2));
    let shaper = format!("\"shaper:queue=cake,side={side},setter={setter}\"");
    let delay = "\"delay:delay=10ms\"";
    let path = match (setter.is_empty(), side) {
        (true, _) => format!("{delay}, \"link\", {delay}"),
        (false, "down") => format!("{delay}, \"link\", {delay}, {shaper}"),
        (false, _) => format!("{shaper}, {delay}, \"link\", {delay}"),
    };
    format!(
        r#"
duration = "60s"
measure_from = "5s"
[[link]]
name = "link"
trace = "recorded"
buffer = "1000pkt"
[[flow]]
name = "own"
controller = "{controller}"
host = "tcp"
rtt = "40ms"
count = {count}
path = [{path}]
"#
    )
}
