//! ABC's figure 7 for real packets: QUIC through one emulated recording, another, and through both in a row
//! by an emulator in an emulator, beside the same code in simulation. Prints the table of `docs/quic.md` and
//! draws its picture.
//!
//! ```text
//! BRAKELIGHT_TRACES=... cargo run --release -p brakelight-cli --example figure_7 -- \
//!     target/release/brakelight FOLDER
//! ```
//!
//! What FOLDER has already is not measured again: 18 runs of a minute, one after the other, that none
//! disturbs another.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Name, controller, queue, and colour. Window controllers; CoDel and PIE are those of the paper's emulator.
const SCHEMES: [(&str, &str, &str, &str); 6] = [
    ("abc", "abc", "abc", "#d55e00"),
    ("cubic", "cubic", "droptail", "#0072b2"),
    ("cubic+codel", "cubic", "codel:target=50ms,interval=100ms,drop=behind-head", "#009e73"),
    ("cubic+pie", "cubic", "pie:target=50ms,max_burst=100ms,variant=mahimahi", "#cc79a7"),
    ("copa", "copa", "droptail", "#e69f00"),
    ("vegas", "vegas", "droptail", "#000000"),
];

/// Name, title, and the links in the order in which data pass them.
const PANELS: [(&str, &str, &[&str]); 3] = [
    ("a", "a: downlink", &["Verizon-LTE-short.down"]),
    ("b", "b: uplink", &["Verizon-LTE-short.up"]),
    ("c", "c: uplink, then downlink", &["Verizon-LTE-short.up", "Verizon-LTE-short.down"]),
];

const SECONDS: u32 = 60;

/// Throughput of the flow in Mbit/s, and the 95th percentile of its RTT in ms, propagation included.
#[derive(Clone, Copy)]
struct Point {
    mbps: f64,
    rtt_ms: f64,
}

struct Row {
    panel: usize,
    scheme: usize,
    simulated: Point,
    real: Point,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(program), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("give the program `brakelight`, and a folder for what it prints".into());
    };
    let program = program.canonicalize()?;
    fs::create_dir_all(&folder)?;
    let mut rows = Vec::new();
    for panel in 0..PANELS.len() {
        for scheme in 0..SCHEMES.len() {
            let simulated = point(&simulate(&program, &folder, panel, scheme)?)?;
            let real = point(&emulate(&program, &folder, panel, scheme)?)?;
            rows.push(Row { panel, scheme, simulated, real });
        }
    }
    fs::write(folder.join("figure-7.svg"), picture(&rows))?;
    std::io::stdout().write_all(table(&rows).as_bytes())?;
    Ok(())
}

fn file(folder: &Path, kind: &str, panel: usize, scheme: usize) -> PathBuf {
    folder.join(format!("{kind}.{}.{}.json", PANELS[panel].0, SCHEMES[scheme].0))
}

/// The median of ten seeds of the real stack in simulation.
fn simulate(program: &Path, folder: &Path, panel: usize, scheme: usize) -> Result<PathBuf, Box<dyn Error>> {
    let result = file(folder, "simulated", panel, scheme);
    if result.exists() {
        return Ok(result);
    }
    let (name, controller, queue, _) = SCHEMES[scheme];
    let links = PANELS[panel].2;
    let mut text = format!("name = \"{name}\"\nduration = \"{SECONDS}s\"\n\n");
    for link in links {
        let _ = write!(
            text,
            "[[link]]\nname = \"{link}\"\ntrace = \"{link}\"\nbuffer = \"250pkt\"\nqueue = \"{queue}\"\n\n"
        );
    }
    let _ = write!(
        text,
        "[[link]]\nname = \"back\"\nrate = \"12Mbps\"\nbuffer = \"250pkt\"\n\n[[flow]]\nname = \"main\"\n\
         controller = \"{controller}\"\nrtt = \"100ms\"\npath = {links:?}\nreverse = [\"back\"]\n"
    );
    let scenario = result.with_extension("toml");
    fs::write(&scenario, text)?;
    let mut command = Command::new(program);
    command.arg("run").arg(scenario).args(["--host", "quinn", "--runs", "10", "--format", "json"]);
    let output = command.stderr(std::process::Stdio::inherit()).output()?;
    keep(&result, output.status.success(), &output.stdout)?;
    Ok(result)
}

/// One run of real packets. The outer emulator has the last link, the delay and the server; the first link is
/// the inner one's.
fn emulate(program: &Path, folder: &Path, panel: usize, scheme: usize) -> Result<PathBuf, Box<dyn Error>> {
    let result = file(folder, "real", panel, scheme);
    if result.exists() {
        return Ok(result);
    }
    let (_, controller, queue, _) = SCHEMES[scheme];
    let (last, first) = PANELS[panel].2.split_last().ok_or("a panel has a link")?;
    let own = format!("'{}'", program.display());
    let client = format!(
        "{own} perf \"$BRAKELIGHT_HOST:4433\" --controller {controller} --own-path --duration {SECONDS}s --format json"
    );
    let mut outer = Command::new(program);
    outer.args(["emulate", "--up", last, "--up-queue", queue, "--down", "12Mbps", "--delay", "50ms"]);
    outer.args(["--server", &format!("exec {own} perf-server --listen 0.0.0.0:4433"), "--"]);
    for link in first {
        outer.arg(program).args(["emulate", "--up", link, "--up-queue", queue, "--"]);
    }
    let output = outer.args(["sh", "-c", &client]).stderr(std::process::Stdio::inherit()).output()?;
    keep(&result, output.status.success(), &output.stdout)?;
    Ok(result)
}

fn keep(file: &Path, good: bool, document: &[u8]) -> Result<(), Box<dyn Error>> {
    if !good {
        return Err(format!("{}: its run failed", file.display()).into());
    }
    Ok(fs::write(file, document)?)
}

fn point(file: &Path) -> Result<Point, Box<dyn Error>> {
    let document: Value = serde_json::from_slice(&fs::read(file)?)?;
    let number = |path: &str| {
        let found = document.pointer(path).and_then(Value::as_f64);
        found.ok_or_else(|| format!("{}: no {path}", file.display()))
    };
    Ok(Point { mbps: number("/runs/0/flows/0/throughput_mbps")?, rtt_ms: number("/runs/0/rtt_ms/p95")? })
}

fn table(rows: &[Row]) -> String {
    let mut text =
        "| panel | scheme | simulated: Mbit/s | p95 RTT ms | real packets: Mbit/s | p95 RTT ms |\n\
                    |---|---|---|---|---|---|\n"
            .to_string();
    for row in rows {
        let (panel, scheme) = (PANELS[row.panel].1, SCHEMES[row.scheme].0);
        let Row { simulated, real, .. } = row;
        let _ = writeln!(
            text,
            "| {panel} | {scheme} | {:.2} | {:.0} | {:.2} | {:.0} |",
            simulated.mbps, simulated.rtt_ms, real.mbps, real.rtt_ms
        );
    }
    text
}

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 50.0;
const TOP: f64 = 60.0;
const GAP: f64 = 60.0;

/// Three panels, less delay to the right as in the paper. Real packets are filled, the simulator's are rings.
fn picture(rows: &[Row]) -> String {
    let width = LEFT + (WIDTH + GAP) * 3.0;
    let height = TOP + HEIGHT + 80.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">QUIC over cellular links: real packets (filled) and simulator (rings)</text>\n"
    );
    for (index, (_, title, _)) in PANELS.iter().enumerate() {
        let points: Vec<&Row> = rows.iter().filter(|row| row.panel == index).collect();
        panel(&mut svg, LEFT + index as f64 * (WIDTH + GAP), title, &points);
    }
    for (index, (name, _, _, colour)) in SCHEMES.iter().enumerate() {
        let x = LEFT + index as f64 * 120.0;
        let y = TOP + HEIGHT + 62.0;
        let _ = writeln!(
            svg,
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"5\" fill=\"{colour}\"/><text x=\"{}\" y=\"{}\">{name}</text>",
            x + 10.0,
            y + 4.0
        );
    }
    svg + "</svg>\n"
}

fn panel(svg: &mut String, x: f64, title: &str, rows: &[&Row]) {
    const TICKS: [f64; 7] = [150.0, 200.0, 300.0, 500.0, 1000.0, 2000.0, 4000.0];
    let points = || rows.iter().flat_map(|row| [row.simulated, row.real]);
    let top = points().map(|point| point.mbps).fold(0.0, f64::max).ceil();
    let slowest = points().map(|point| point.rtt_ms).fold(0.0, f64::max) * 1.2;
    let (low, high) = (100f64.ln(), slowest.ln());
    let across = |rtt_ms: f64| x + WIDTH * (high - rtt_ms.ln()) / (high - low);
    let up = |mbps: f64| TOP + HEIGHT * (1.0 - mbps / top);
    let bottom = TOP + HEIGHT;
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{}\" font-weight=\"bold\">{title}</text>\
         <rect x=\"{x}\" y=\"{TOP}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#888\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">95th percentile of the RTT, ms</text>",
        TOP - 10.0,
        x + WIDTH / 2.0,
        bottom + 36.0
    );
    for tick in TICKS.into_iter().filter(|tick| *tick < slowest) {
        let at = across(tick);
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" stroke=\"#eee\"/>\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{tick}</text>",
            bottom + 18.0
        );
    }
    for tick in 0..=top as u32 {
        let at = up(f64::from(tick));
        let _ = writeln!(
            svg,
            "<line x1=\"{x}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#eee\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
            x + WIDTH,
            x - 6.0,
            at + 4.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{0}\" y=\"{1}\" transform=\"rotate(-90 {0} {1})\" text-anchor=\"middle\">Mbit/s</text>",
        x - 28.0,
        TOP + HEIGHT / 2.0
    );
    for row in rows {
        let colour = SCHEMES[row.scheme].3;
        let (from, to) = (row.simulated, row.real);
        let _ = writeln!(
            svg,
            "<line x1=\"{0:.1}\" y1=\"{1:.1}\" x2=\"{2:.1}\" y2=\"{3:.1}\" stroke=\"{colour}\" stroke-width=\"0.8\"/>\
             <circle cx=\"{0:.1}\" cy=\"{1:.1}\" r=\"5\" fill=\"white\" stroke=\"{colour}\" stroke-width=\"2\"/>\
             <circle cx=\"{2:.1}\" cy=\"{3:.1}\" r=\"5\" fill=\"{colour}\"/>",
            across(from.rtt_ms),
            up(from.mbps),
            across(to.rtt_ms),
            up(to.mbps)
        );
    }
}
