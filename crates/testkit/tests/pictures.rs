//! Drawings of the book: the crates and what each uses, read from their manifests; and a packet's way, of
//! which every part is a file. `BRAKELIGHT_BLESS=1` draws them again; without it they must be what the code
//! draws.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use brakelight_core::controller::RecoveryState;
use brakelight_core::sender::{Episode, Phase};
use brakelight_testkit::sources::hold_picture;

const WIDTH: usize = 660;

/// Width and height of a box.
const BOX: (usize, usize) = (196, 92);

/// Which of four columns a crate stands in, so that few lines cross.
const COLUMNS: &[(&str, usize)] = &[
    ("apps", 1),
    ("brakelight", 2),
    ("cli", 0),
    ("core", 1),
    ("emulator", 0),
    ("estimates", 1),
    ("explorer", 2),
    ("files", 0),
    ("lab", 1),
    ("learn", 2),
    ("links", 1),
    ("noq", 0),
    ("quic", 2),
    ("registry", 2),
    ("routers", 2),
    ("sandbox", 3),
    ("scenario", 1),
    ("senders", 0),
    ("sim", 1),
    ("stacks", 0),
    ("tcp", 3),
    ("testkit", 2),
    ("traces", 0),
];

/// An SVG of `height` with `content`.
fn svg(title: &str, height: usize, content: &str) -> String {
    svg_of(WIDTH, title, height, content)
}

/// The same of another width.
fn svg_of(width: usize, title: &str, height: usize, content: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         font-family=\"Helvetica, Arial, sans-serif\">\n<title>{title}</title>\n<defs><marker id=\"tip\" \
         viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\
         <path d=\"M0 0L10 5L0 10z\" fill=\"#555\"/></marker></defs>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n{content}</svg>\n"
    )
}

/// `text` in lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

/// A box with a name and lines below it.
fn boxed(x: usize, y: usize, height: usize, fill: &str, name: &str, lines: &[String]) -> String {
    let mut drawn = format!(
        "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{height}\" rx=\"8\" fill=\"{fill}\" stroke=\"#555\"/>\n\
         <text x=\"{}\" y=\"{}\" font-size=\"16\" font-weight=\"bold\" fill=\"#111\">{name}</text>\n",
        BOX.0,
        x + 10,
        y + 22
    );
    for (index, line) in lines.iter().enumerate() {
        let (x, y) = (x + 10, y + 40 + 15 * index);
        let _ = writeln!(drawn, "<text x=\"{x}\" y=\"{y}\" font-size=\"12.5\" fill=\"#333\">{line}</text>");
    }
    drawn
}

fn arrow(path: &str) -> String {
    format!(
        "<path d=\"{path}\" fill=\"none\" stroke=\"#555\" stroke-width=\"1.5\" marker-end=\"url(#tip)\"/>\n"
    )
}

/// A crate of the workspace.
struct Member {
    summary: String,
    uses: BTreeSet<String>,
}

/// The value of `key` in a manifest.
fn value<'a>(manifest: &'a str, key: &str) -> Option<&'a str> {
    let line = manifest.lines().find(|line| line.starts_with(key))?;
    line.split('"').nth(1)
}

/// The crates by name, and what each uses of the others outside its tests.
fn members() -> BTreeMap<String, Member> {
    let common = brakelight_testkit::sources::read(&["Cargo.toml"], &[]).remove(0).1;
    let mut members = BTreeMap::new();
    for (path, manifest) in brakelight_testkit::sources::read(&["crates"], &["Cargo.toml"]) {
        let parts: Vec<&str> = path.split('/').collect();
        let ["crates", name, "Cargo.toml"] = parts[..] else { continue };
        // Tests alone are no part of the house.
        if manifest.contains("\npublish = false") {
            continue;
        }
        let (mut used, mut uses) = (false, BTreeSet::new());
        for line in manifest.lines() {
            if line.starts_with('[') {
                used = line.ends_with("dependencies]") && !line.contains("dev-") && !line.contains("build-");
            } else if used && let Some(other) = line.strip_prefix("brakelight-") {
                let end = other.find(['.', ' ', '=']).unwrap_or(other.len());
                uses.insert(other[..end].to_string());
            }
        }
        let summary = value(&manifest, "description = ").or_else(|| value(&common, "description = "));
        members
            .insert(name.to_string(), Member { summary: summary.unwrap_or_default().replace('`', ""), uses });
    }
    members
}

/// How many crates stand below `name`, one on the other.
fn level(members: &BTreeMap<String, Member>, name: &str) -> usize {
    members[name].uses.iter().map(|other| level(members, other) + 1).max().unwrap_or(0)
}

fn reaches(members: &BTreeMap<String, Member>, from: &str, to: &str) -> bool {
    members[from].uses.iter().any(|other| other == to || reaches(members, other, to))
}

#[test]
fn the_house_is_drawn_from_the_manifests() {
    let members = members();
    let top = members.keys().map(|name| level(&members, name)).max().expect("there are crates");
    let place = |name: &str| {
        let column = COLUMNS.iter().find(|(known, _)| *known == name);
        let (_, column) = column.unwrap_or_else(|| panic!("the crate {name} has no column"));
        (16 + column * 216, 14 + (top - level(&members, name)) * 132)
    };
    let places: BTreeSet<(usize, usize)> = members.keys().map(|name| place(name)).collect();
    assert_eq!(places.len(), members.len(), "two crates stand in one place: {places:?}");
    let (mut arrows, mut boxes) = (String::new(), String::new());
    for (name, member) in &members {
        let (x, y) = place(name);
        for other in &member.uses {
            // What a crate reaches by another one is not drawn again.
            if member.uses.iter().any(|between| between != other && reaches(&members, between, other)) {
                continue;
            }
            let (to_x, to_y) = place(other);
            let (from, to, y) = (x + BOX.0 / 2, to_x + BOX.0 / 2, y + BOX.1);
            let (a, b) = (y + 26, to_y - 26);
            let line = arrow(&format!("M{from} {y}C{from} {a} {to} {b} {to} {}", to_y - 1));
            // Lines that pass other boxes are pale.
            let far = to_y > y + 132;
            arrows += &if far { line.replace("stroke=\"#555\"", "stroke=\"#bbb\"") } else { line };
        }
        let fill = if name == "core" { "#fde8c8" } else { "#eaf3fb" };
        boxes += &boxed(x, y, BOX.1, fill, name, &wrapped(&member.summary, 30));
    }
    let height = 14 + top * 132 + BOX.1 + 14;
    hold_picture(
        "house.svg",
        &svg_of(WIDTH + 216, "The crates of Brakelight and what each uses", height, &(arrows + &boxes)),
    );
}

/// The parts that a packet passes: column, row, name, what it does, and where it is.
const WAY: &[(usize, usize, &str, &str, &str)] = &[
    (0, 0, "1 application", "has data to send", "crates/apps/src"),
    (0, 1, "2 sender", "numbers packets, keeps timers, repairs losses", "crates/sim/src/host/sender"),
    (1, 1, "controller", "decides window, pacing rate and mark", "crates/senders/src/controller"),
    (0, 2, "3 queue", "keeps it, marks it or drops it", "crates/routers/src"),
    (1, 2, "link", "serves the queue at its rate", "crates/links/src/link.rs"),
    (0, 3, "4 other elements", "delay, loss, jitter, a radio", "crates/links/src"),
    (0, 4, "5 receiver", "joins the data again", "crates/sim/src/host/receiver.rs"),
    (1, 4, "feedback", "says what the ACK carries", "crates/senders/src/feedback"),
];

#[test]
fn a_packet_s_way_names_parts_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let at = |column: usize, row: usize| (110 + column * 256, 14 + row * 124);
    let mut boxes = String::new();
    for (column, row, name, does, path) in WAY {
        assert!(root.join(path).exists(), "there is no {path}");
        let (x, y) = at(*column, *row);
        let mut lines = wrapped(does, 30);
        lines.push(path.strip_prefix("crates/").unwrap_or(path).into());
        let fill = if path.contains("core") { "#fde8c8" } else { "#eaf3fb" };
        boxes += &boxed(x, y, BOX.1, fill, name, &lines);
    }
    let mut arrows = String::new();
    let (left, middle, right) = (110, 110 + BOX.0 / 2, 110 + BOX.0);
    for row in 0..4 {
        let (_, y) = at(0, row);
        arrows += &arrow(&format!("M{middle} {}L{middle} {}", y + BOX.1, y + 123));
    }
    for row in [1, 2, 4] {
        let (x, y) = at(1, row);
        arrows += &arrow(&format!("M{right} {}L{} {}", y + 36, x - 1, y + 36));
        arrows += &arrow(&format!("M{x} {}L{} {}", y + 60, right + 1, y + 60));
    }
    // The ACK comes back to the sender, which tells the controller.
    let (low, high, lane) = (at(0, 4).1 + BOX.1 / 2, at(0, 1).1 + BOX.1 / 2, 60);
    arrows += &arrow(&format!("M{left} {low}L{lane} {low}L{lane} {high}L{} {high}", left - 1));
    let label = format!(
        "<text transform=\"translate(50 {}) rotate(-90)\" text-anchor=\"middle\" font-size=\"14\">\
         6 the ACK, by the way back</text>\n",
        (low + high) / 2
    );
    hold_picture(
        "packet.svg",
        &svg("A packet's way, and the part that decides at each station", 624, &(arrows + &boxes + &label)),
    );
}

/// A change of the recovery state that is drawn: from, to, why, the arrow's path, and where its words stand.
type Change = (RecoveryState, RecoveryState, &'static str, &'static str, (usize, usize));

const CHANGES: &[Change] = &[
    (RecoveryState::Open, RecoveryState::Recovery, "CE, loss", "M226 46H433", (330, 38)),
    (RecoveryState::Recovery, RecoveryState::Open, "repaired", "M434 84H227", (330, 102)),
    (RecoveryState::Open, RecoveryState::Loss, "timeout", "M80 118C80 200 130 236 231 244", (58, 196)),
    (RecoveryState::Recovery, RecoveryState::Loss, "timeout", "M560 118C560 200 530 236 429 244", (590, 196)),
    (
        RecoveryState::Loss,
        RecoveryState::Open,
        "repaired, or spurious",
        "M290 208C280 160 230 140 190 119",
        (352, 158),
    ),
];

/// The changes that an episode's state makes, where the host shapes its answer to CE: from, to, and why.
fn changes() -> BTreeSet<(String, String, &'static str)> {
    let episode = |phase| {
        let mut episode = Episode::default();
        if phase != Phase::Open {
            episode.begin(phase, 10);
        }
        episode
    };
    let mut found = BTreeSet::new();
    for phase in [Phase::Open, Phase::Reduced, Phase::Recovery, Phase::Loss] {
        let before = episode(phase).state(true);
        let mut note = |why, change: &dyn Fn(&mut Episode)| {
            let mut episode = episode(phase);
            change(&mut episode);
            if episode.state(true) != before {
                found.insert((format!("{before:?}"), format!("{:?}", episode.state(true)), why));
            }
        };
        note("repaired", &|episode| episode.finish());
        note("timeout", &|episode| episode.begin(Phase::Loss, 20));
        // Within an episode a CE mark says nothing new, and losses during the repair of a timeout belong to
        // it.
        if phase == Phase::Open {
            note("CE", &|episode| episode.begin(Phase::Reduced, 20));
        }
        if phase != Phase::Loss {
            note("loss", &|episode| episode.begin(Phase::Recovery, 20));
        }
    }
    found
}

#[test]
fn the_contract_s_states_change_as_an_episode_does() {
    let says = |state: RecoveryState| match state {
        RecoveryState::Open => ("nothing is being repaired; cwnd may grow", 30, 26),
        RecoveryState::Recovery => ("losses are being repaired; cwnd must not grow", 434, 26),
        RecoveryState::Loss => ("slow start from one packet", 232, 208),
    };
    let mut drawn = String::new();
    for state in [RecoveryState::Open, RecoveryState::Recovery, RecoveryState::Loss] {
        let (does, x, y) = says(state);
        drawn += &boxed(x, y, BOX.1, "#eaf3fb", &format!("{state:?}"), &wrapped(does, 30));
    }
    let mut known = BTreeSet::new();
    for (from, to, why, path, (x, y)) in CHANGES {
        drawn += &arrow(path);
        let _ = writeln!(
            drawn,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" font-size=\"14\" fill=\"#111\">{why}</text>"
        );
        let whys = ["CE", "loss", "timeout", "repaired"].into_iter().filter(|one| why.contains(one));
        known.extend(whys.map(|why| (format!("{from:?}"), format!("{to:?}"), why)));
    }
    assert_eq!(known, changes(), "the arrows are not the changes that the code makes");
    hold_picture("contract-states.svg", &svg("The recovery state, and what changes it", 312, &drawn));
}

const BLUE: &str = "#0072b2";
const ORANGE: &str = "#d55e00";

/// What the router of the moving picture says, and for how many packets: the link's rate, and the share of
/// accelerates that follows from it.
const PHASES: &[(&str, f64, usize)] =
    &[("12 Mbit/s, full", 0.5, 10), ("24 Mbit/s: a step up", 0.9, 10), ("12 Mbit/s: a step down", 0.3, 10)];

/// Seconds between two packets of the moving picture.
const GAP: f64 = 0.3;

/// Seconds that a packet and its ACK take around the loop.
const TRIP: f64 = 5.0;

/// An animation of an attribute that jumps at given shares of `period`.
fn jumps(attribute: &str, period: f64, begin: f64, at: &[(f64, &str)]) -> String {
    let times: Vec<String> = at.iter().map(|(time, _)| format!("{:.4}", time / period)).collect();
    let values: Vec<&str> = at.iter().map(|(_, value)| *value).collect();
    format!(
        "<animate attributeName=\"{attribute}\" calcMode=\"discrete\" dur=\"{period}s\" begin=\"{begin:.1}s\" \
         repeatCount=\"indefinite\" keyTimes=\"{}\" values=\"{}\"/>",
        times.join(";"),
        values.join(";")
    )
}

/// A text that is there from `from` to `to`, again and again.
fn passing(x: usize, y: usize, words: &str, period: f64, (from, to): (f64, f64)) -> String {
    let mut at = vec![(0.0, "0"), (from, "1"), (to, "0")];
    at.retain(|(time, value)| (*time > 0.0 || (from == 0.0) == (*value == "1")) && *time < period);
    let shown = if from == 0.0 { 1 } else { 0 };
    let jumps = jumps("opacity", period, 0.0, &at);
    format!(
        "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" font-size=\"15\" opacity=\"{shown}\">{words}{jumps}</text>\n"
    )
}

/// ABC's loop, moving: packets leave as accelerates, a token bucket with the router's share f turns some into
/// brakes, and ACKs bring the marks back.
#[test]
fn abc_s_loop_moves() {
    let packets: usize = PHASES.iter().map(|(_, _, packets)| packets).sum();
    let period = packets as f64 * GAP;
    let mut moving = String::new();
    let (mut tokens, mut number) = (0.0, 0);
    let mut words = String::new();
    for (rate, f, count) in PHASES {
        let shown = (number as f64 * GAP, (number + count) as f64 * GAP);
        words += &passing(330, 112, &format!("f = {f}"), period, shown);
        words += &passing(330, 28, rate, period, shown);
        for _ in 0..*count {
            tokens += f;
            let accelerates = tokens > 1.0;
            tokens -= if accelerates { 1.0 } else { 0.0 };
            // It meets the router, which is a fifth of its trip away, when the router says f.
            let begin = number as f64 * GAP - 0.2 * TRIP - period;
            let turns = if accelerates { Vec::new() } else { vec![(0.2 * TRIP, ORANGE)] };
            let colors: Vec<_> = [(0.0, BLUE)].into_iter().chain(turns).collect();
            let fill = jumps("fill", period, begin, &colors);
            let there = jumps("opacity", period, begin, &[(0.0, "1"), (TRIP, "0")]);
            let _ = writeln!(
                moving,
                "<rect x=\"-7\" y=\"-9\" width=\"14\" height=\"18\" rx=\"2\" fill=\"{BLUE}\" opacity=\"0\">{fill}{there}\
                 <animateMotion dur=\"{period}s\" begin=\"{begin:.1}s\" repeatCount=\"indefinite\" calcMode=\"linear\" \
                 keyPoints=\"0;1;1\" keyTimes=\"0;{:.4};1\" path=\"M120 90H540V190H120V130\"/></rect>",
                TRIP / period
            );
            number += 1;
        }
    }
    let mut boxes = String::new();
    for (x, width, name, does) in
        [(20, 110, "sender", "moves cwnd"), (245, 170, "router", ""), (530, 110, "receiver", "echoes marks")]
    {
        let middle = x + width / 2;
        let _ = writeln!(
            boxes,
            "<rect x=\"{x}\" y=\"50\" width=\"{width}\" height=\"80\" rx=\"8\" fill=\"#eaf3fb\" stroke=\"#555\"/>\n\
             <text x=\"{middle}\" y=\"82\" text-anchor=\"middle\" font-size=\"17\" font-weight=\"bold\">{name}</text>\n\
             <text x=\"{middle}\" y=\"112\" text-anchor=\"middle\" font-size=\"14\">{does}</text>"
        );
    }
    let lanes =
        "<path d=\"M130 90H530M540 130V190H120V130\" fill=\"none\" stroke=\"#ccc\" stroke-width=\"2\"/>\n";
    let legend = format!(
        "<rect x=\"150\" y=\"217\" width=\"12\" height=\"15\" fill=\"{BLUE}\"/><text x=\"168\" y=\"230\" font-size=\"14\">\
         accelerate: send two</text>\n<rect x=\"350\" y=\"217\" width=\"12\" height=\"15\" fill=\"{ORANGE}\"/>\
         <text x=\"368\" y=\"230\" font-size=\"14\">brake: send none</text>\n"
    );
    let picture = svg("ABC's loop, moving", 245, &format!("{lanes}{moving}{boxes}{words}{legend}"));
    hold_picture("abc-loop.svg", &picture);
}

/// The bits of `number` in reverse, as a share of 1: evenly spread numbers in an order that looks random.
fn spread(number: u32) -> f64 {
    f64::from(number.reverse_bits()) / 2_f64.powi(32)
}

/// BMCC's receiver: what it thinks of the load, after each packet and its mark.
#[test]
fn bmcc_s_estimate_is_moved_by_packets_that_contradict_it() {
    const LOAD: f64 = 0.8;
    let place = |number: u32, load: f64| (50.0 + 17.0 * f64::from(number), 270.0 - 190.0 * load);
    let mut drawn = String::new();
    for tick in [0.0, 0.4, 0.8, 1.2] {
        let y = place(0, tick).1;
        let _ = writeln!(
            drawn,
            "<path d=\"M50 {y:.1}H640\" stroke=\"#e5e5e5\"/><text x=\"42\" y=\"{:.1}\" text-anchor=\"end\" \
             font-size=\"13\">{tick}</text>",
            y + 4.0
        );
    }
    let y = place(0, LOAD).1;
    let _ = writeln!(
        drawn,
        "<path d=\"M50 {y:.1}H640\" stroke=\"#111\" stroke-dasharray=\"6 4\"/>\
         <text x=\"640\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"14\">the load, {LOAD}</text>",
        y - 8.0
    );
    let (mut estimate, mut path) = (0.15, String::new());
    for number in 1..=34 {
        let h = 0.15 + (1.2 - 0.15) * spread(number);
        let marked = LOAD > h;
        let contradicts = if marked { estimate < h } else { estimate > h };
        let (x, y) = place(number, h);
        let (fill, radius) = (if marked { ORANGE } else { "#fff" }, if contradicts { 7 } else { 4 });
        let _ = write!(path, "{}{x:.1} {:.1}", if number == 1 { "M" } else { "H" }, place(0, estimate).1);
        if contradicts {
            estimate = h;
        }
        let _ = write!(path, "V{:.1}", place(0, estimate).1);
        let _ = writeln!(
            drawn,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{fill}\" stroke=\"{ORANGE}\" stroke-width=\"1.5\"/>"
        );
    }
    assert!((estimate - LOAD).abs() < 0.04, "{estimate}");
    let path = path.replace("H", "L");
    let _ = writeln!(drawn, "<path d=\"{path}\" fill=\"none\" stroke=\"{BLUE}\" stroke-width=\"2.5\"/>");
    drawn += "<text x=\"50\" y=\"300\" font-size=\"14\">34 packets, each at the height of its hash h; filled: marked, \
              as the load is above h</text>\n";
    hold_picture("bmcc-marks.svg", &svg("How marks of many packets tell one load", 312, &drawn));
}

/// Milliseconds at which packets leave, and the time they take by two clocks that differ.
const CLOCKS: &[(f64, f64)] =
    &[(0.0, 40.0), (30.0, 40.0), (60.0, 46.0), (90.0, 58.0), (120.0, 64.0), (160.0, 43.0)];

/// QUIC-DC's measure: the growth of a difference between two clocks.
#[test]
fn quicdc_measures_growth() {
    const THRESHOLD: f64 = 20.0;
    let base = CLOCKS.iter().map(|(_, took)| *took).fold(f64::INFINITY, f64::min);
    let x = |ms: f64| 60.0 + 2.2 * ms;
    let mut drawn = String::from(
        "<text x=\"16\" y=\"34\" font-size=\"15\" font-weight=\"bold\">sender's clock</text>\n\
         <text x=\"16\" y=\"186\" font-size=\"15\" font-weight=\"bold\">receiver's clock</text>\n\
         <path d=\"M16 50H644M16 160H644\" stroke=\"#111\"/>\n",
    );
    for (left, took) in CLOCKS {
        let owqd = took - base;
        let color = if owqd >= THRESHOLD { ORANGE } else { BLUE };
        let (from, to) = (x(*left), x(left + took));
        let _ = writeln!(
            drawn,
            "<path d=\"M{from:.1} 50L{to:.1} 160\" stroke=\"{color}\" stroke-width=\"2.5\"/>\n\
             <text x=\"{to:.1}\" y=\"210\" text-anchor=\"middle\" font-size=\"14\">{took}</text>\n\
             <text x=\"{to:.1}\" y=\"236\" text-anchor=\"middle\" font-size=\"16\" font-weight=\"bold\" \
             fill=\"{color}\">{owqd}</text>"
        );
    }
    drawn += "<text x=\"16\" y=\"210\" font-size=\"14\">difference, ms</text>\n\
              <text x=\"16\" y=\"236\" font-size=\"14\" font-weight=\"bold\">OWQD, ms</text>\n\
              <text x=\"644\" y=\"34\" text-anchor=\"end\" font-size=\"14\">threshold: 20 ms</text>\n";
    hold_picture(
        "quicdc-clocks.svg",
        &svg("One-way queueing delay from two clocks that differ", 250, &drawn),
    );
}
