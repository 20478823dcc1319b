//! What calls get on a moving link: GCC, NADA, SCReAM and ABC over six queues, alone and beside a download,
//! and over recordings where they are here; and what the repair of lost packets does.
//! It makes the tables and the picture of `docs/guides/calls.md`:
//!
//! ```sh
//! BRAKELIGHT_BLESS=1 cargo test -p brakelight-sim --test calls -- --ignored
//! ```

use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use brakelight_scenario::file::read;
use brakelight_scenario::trace::fit::measured::read_link;
use brakelight_sim::{Traces, run};
use brakelight_testkit::skip;
use brakelight_testkit::sources::hold_picture;
use brakelight_traces::embedded::Embedded;

/// Seeds of each cell. The interval from the second smallest to the second largest of ten covers the median
/// with 97.9 % (binomial).
const SEEDS: u64 = 10;
const SECONDS: u32 = 60;

/// The traces, and what the guide calls them: those that the program brings, then recordings.
const TRACES: [(&str, &str); 5] = [
    ("lte-driving", "driving"),
    ("lte-walking", "walking"),
    ("leoreplayer/starlink.bw", "Starlink"),
    ("columns/5g_115_walking.txt", "5G"),
    ("columns/office-wifi_0.txt", "Wi-Fi"),
];
/// How many the program brings.
const BROUGHT: usize = 2;

/// A queue: its name on the page, alone and beside others, its buffer, and what ECN means there to SCReAM.
struct Queue {
    name: &'static str,
    alone: &'static str,
    beside: &'static str,
    buffer: &'static str,
    ecn: &'static str,
}

const QUEUES: [Queue; 6] = [
    Queue { name: "ABC's router", alone: "abc", beside: "abc_dual", buffer: "250pkt", ecn: "none" },
    Queue { name: "ABC for L4S", alone: "abc_l4s", beside: "abc_l4s", buffer: "1000pkt", ecn: "l4s" },
    Queue { name: "DualPI2", alone: "dualpi2", beside: "dualpi2", buffer: "1000pkt", ecn: "l4s" },
    Queue { name: "CAKE", alone: "cake", beside: "cake", buffer: "1000pkt", ecn: "classic" },
    Queue { name: "FQ-CoDel", alone: "fq_codel", beside: "fq_codel", buffer: "1000pkt", ecn: "classic" },
    Queue { name: "drop-tail", alone: "droptail", beside: "droptail", buffer: "1000pkt", ecn: "none" },
];

/// The place of a queue among them.
fn queue(name: &str) -> usize {
    QUEUES.iter().position(|queue| queue.name == name).expect("one of the queues")
}

/// The controllers, and their colors in the picture (Okabe and Ito's, which color-blind readers can tell
/// apart).
const CONTROLLERS: [(&str, &str); 4] =
    [("gcc", "#0072b2"), ("nada", "#e69f00"), ("scream", "#009e73"), ("abc", "#d55e00")];

/// What a call got in one run.
#[derive(Clone, Copy, Debug)]
struct Call {
    delay_p95_ms: f64,
    freezes_per_minute: f64,
    mbps: f64,
    missed_percent: f64,
}

/// One cell of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Setting {
    trace: usize,
    is_beside: bool,
    queue: usize,
    controller: usize,
}

impl Setting {
    /// Those on the program's own traces; ABC's marks have no place where ECT(1) is L4S's.
    fn all() -> Vec<Setting> {
        let mut all = Vec::new();
        for trace in 0..BROUGHT {
            for is_beside in [false, true] {
                for (queue, spec) in QUEUES.iter().enumerate() {
                    for (controller, (name, _)) in CONTROLLERS.iter().enumerate() {
                        if spec.ecn != "l4s" || *name != "abc" {
                            all.push(Setting { trace, is_beside, queue, controller });
                        }
                    }
                }
            }
        }
        all
    }

    /// Those on recordings: beside a download, in the queues that a network has today.
    fn recorded() -> Vec<Setting> {
        let today = ["DualPI2", "FQ-CoDel", "drop-tail"].map(queue);
        let beside = Setting::all().into_iter().filter(|setting| setting.trace == 0 && setting.is_beside);
        let cells: Vec<_> = beside.filter(|setting| today.contains(&setting.queue)).collect();
        (BROUGHT..TRACES.len())
            .flat_map(|trace| cells.iter().map(move |cell| Setting { trace, ..*cell }))
            .collect()
    }

    fn scenario(self, seed: u64, repair: &str) -> String {
        let queue = &QUEUES[self.queue];
        let controller = match CONTROLLERS[self.controller].0 {
            "scream" => format!("scream:max_rate=2.5Mbps,ecn={}", queue.ecn),
            "abc" => "abc".to_string(),
            media => format!("{media}:max_rate=2.5Mbps"),
        };
        let mut text = format!(
            "duration = \"{SECONDS}s\"\nseed = {seed}\ntrace_offset = \"random\"\n[[link]]\nname = \"cell\"\n\
             trace = \"{}\"\nqueue = \"{}\"\nbuffer = \"{}\"\n[[flow]]\nname = \"call\"\n\
             controller = \"{controller}\"\nhost = \"quic\"\nmss = \"1200B\"\nrtt = \"60ms\"\npath = [\"cell\"]\n\
             traffic = {{ kind = \"call\", statistical = true, jitter_buffer = true, repair = \"{repair}\" }}\n",
            TRACES[self.trace].0,
            if self.is_beside { queue.beside } else { queue.alone },
            queue.buffer
        );
        if self.is_beside {
            text +=
                "[[flow]]\nname = \"download\"\ncontroller = \"cubic\"\nrtt = \"60ms\"\npath = [\"cell\"]\n";
        }
        text
    }

    fn call(self, seed: u64, traces: &Traces) -> Call {
        Call::of(&self.scenario(seed, "nack"), traces)
    }
}

impl Call {
    /// The call in the scenario `text`, whose first flow it is.
    fn of(text: &str, traces: &Traces) -> Call {
        let scenario = read("calls.toml", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let outcome = run(&scenario, traces).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let seen = outcome.run.flows[0].application.as_ref().expect("a call");
        Call {
            delay_p95_ms: seen["frame_delay_ms_p95"],
            freezes_per_minute: seen["freezes_per_minute"],
            mbps: seen["bitrate_mbps"],
            missed_percent: seen["frames_missed_percent"],
        }
    }
}

fn traces() -> Traces {
    let found = |name| Embedded::find(name).expect("an embedded trace").trace();
    TRACES[..BROUGHT].iter().map(|(name, _)| (name.to_string(), found(name))).collect()
}

/// The recordings, if they are here.
fn recordings() -> Option<Traces> {
    let read = |(name, _): &(&str, &str)| {
        let path = skip::recording(&format!("links/{name}"))?;
        let folder = path.ancestors().nth(2).expect("two folders above the file");
        Some((name.to_string(), read_link(folder, name, None).unwrap().trace(None).unwrap()))
    };
    TRACES[BROUGHT..].iter().map(read).collect()
}

/// Every cell of `settings` with the calls of all seeds, on as many threads as there are processors.
fn measure(settings: &[Setting], traces: &Traces) -> Vec<(Setting, Vec<Call>)> {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut measured: Vec<(usize, Vec<Call>)> = std::thread::scope(|scope| {
        let work = || {
            let mut mine = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(setting) = settings.get(index) else { return mine };
                mine.push((index, (1..=SEEDS).map(|seed| setting.call(seed, traces)).collect()));
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("runs that end")).collect()
    });
    measured.sort_by_key(|(index, _)| *index);
    measured.into_iter().map(|(index, calls)| (settings[index], calls)).collect()
}

/// The median of ten, and the interval that covers it with 97.9 %.
fn median(calls: &[Call], of: fn(&Call) -> f64) -> (f64, f64, f64) {
    let mut values: Vec<f64> = calls.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    let count = values.len();
    let middle = (values[(count - 1) / 2] + values[count / 2]) / 2.0;
    (middle, values[1], values[count - 2])
}

/// How lost packets are repaired.
const REPAIRS: [&str; 4] = ["stream", "none", "nack", "fec"];

/// A call of GCC over a link that loses 2 % of its packets, whatever is sent.
fn lossy(seed: u64, repair: &str) -> String {
    format!(
        "duration = \"{SECONDS}s\"\nseed = {seed}\n[[link]]\nname = \"line\"\nrate = \"8Mbps\"\n\
         queue = \"droptail\"\nbuffer = \"1000pkt\"\n[[flow]]\nname = \"call\"\n\
         controller = \"gcc:max_rate=2.5Mbps\"\nhost = \"quic\"\nmss = \"1200B\"\nrtt = \"60ms\"\n\
         path = [\"line\", \"loss:rate=0.02\"]\n\
         traffic = {{ kind = \"call\", statistical = true, jitter_buffer = true, repair = \"{repair}\" }}\n"
    )
}

/// What each repair is worth to a call of GCC: on a lossy link, and beside a download in CAKE.
fn repairs(traces: &Traces) -> String {
    let mut table =
        "| `repair` | 2 % lost at random | CAKE, walking | CAKE, driving |\n|---|---|---|---|\n".to_string();
    let beside = |trace| Setting { trace, is_beside: true, queue: queue("CAKE"), controller: 0 };
    for repair in REPAIRS {
        let calls = |scenario: &dyn Fn(u64) -> String| -> Vec<Call> {
            (1..=SEEDS).map(|seed| Call::of(&scenario(seed), traces)).collect()
        };
        let cells = [
            cell(Some(&calls(&|seed| lossy(seed, repair)))),
            cell(Some(&calls(&|seed| beside(1).scenario(seed, repair)))),
            cell(Some(&calls(&|seed| beside(0).scenario(seed, repair)))),
        ];
        let _ = writeln!(table, "| `{repair}` | {} |", cells.join(" | "));
    }
    table
}

fn cell(calls: Option<&Vec<Call>>) -> String {
    let Some(calls) = calls else { return " ".to_string() };
    let (delay, low, high) = median(calls, |call| call.delay_p95_ms);
    let (freezes, few, many) = median(calls, |call| call.freezes_per_minute);
    let (mbps, ..) = median(calls, |call| call.mbps);
    let (missed, ..) = median(calls, |call| call.missed_percent);
    format!(
        "{delay:.0} ({low:.0} to {high:.0}); {freezes:.1} ({few:.1} to {many:.1}); {missed:.0}; {mbps:.1}"
    )
}

fn table(measured: &[(Setting, Vec<Call>)]) -> String {
    let mut table = String::new();
    for (trace, (_, name)) in TRACES.iter().enumerate() {
        for is_beside in [false, true] {
            let is_here = |setting: &Setting| setting.trace == trace && setting.is_beside == is_beside;
            if !measured.iter().any(|(setting, _)| is_here(setting)) {
                continue;
            }
            let with = if is_beside { "beside a download" } else { "alone" };
            let _ = writeln!(
                table,
                "| {name}, {with} | `gcc` | `nada` | `scream` | `abc` |\n|---|---|---|---|---|"
            );
            for (queue, spec) in QUEUES.iter().enumerate() {
                if !measured.iter().any(|(setting, _)| is_here(setting) && setting.queue == queue) {
                    continue;
                }
                let cells: Vec<String> = (0..CONTROLLERS.len())
                    .map(|controller| {
                        let sought = Setting { trace, is_beside, queue, controller };
                        cell(measured.iter().find(|(setting, _)| *setting == sought).map(|(_, calls)| calls))
                    })
                    .collect();
                let _ = writeln!(table, "| {} | {} |", spec.name, cells.join(" | "));
            }
            table.push('\n');
        }
    }
    table
}

const WIDTH: f64 = 300.0;
const ROW: f64 = 46.0;
const LEFT: f64 = 92.0;
const ABOVE: f64 = 46.0;
const GAP: f64 = 30.0;
/// The axis of delays, ms, logarithmic.
const RANGE: (f64, f64) = (30.0, 15_000.0);
const TICKS: [f64; 5] = [50.0, 100.0, 400.0, 1_000.0, 5_000.0];

/// Frame delays of all cells: a point at the median, a line over its interval.
fn picture(measured: &[(Setting, Vec<Call>)]) -> String {
    let height = QUEUES.len() as f64 * ROW;
    let (whole_width, whole_height) = (LEFT + 2.0 * (WIDTH + GAP), 2.0 * (height + ABOVE + GAP) + 10.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {whole_width} {whole_height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<title>95th percentile of the frame delay of calls, by \
         queue and controller</title>\n<rect width=\"{whole_width}\" height=\"{whole_height}\" fill=\"white\"/>\n"
    );
    for (index, (name, color)) in CONTROLLERS.iter().enumerate() {
        let x = LEFT + 90.0 * index as f64;
        let _ = writeln!(
            svg,
            "<circle cx=\"{x}\" cy=\"12\" r=\"4\" fill=\"{color}\"/><text x=\"{}\" y=\"16\">{name}</text>",
            x + 9.0
        );
    }
    let along = |ms: f64| {
        let share = libm::log(ms.clamp(RANGE.0, RANGE.1) / RANGE.0) / libm::log(RANGE.1 / RANGE.0);
        share * WIDTH
    };
    for (trace, (_, name)) in TRACES[..BROUGHT].iter().enumerate() {
        for (column, with) in ["alone", "beside a download"].into_iter().enumerate() {
            let (left, top) =
                (LEFT + column as f64 * (WIDTH + GAP), ABOVE + trace as f64 * (height + ABOVE + GAP));
            let _ = writeln!(
                svg,
                "<text x=\"{left}\" y=\"{}\">{name}, {with}: p95 of the frame delay, ms</text>\n\
                 <rect x=\"{left}\" y=\"{top}\" width=\"{WIDTH}\" height=\"{height}\" fill=\"none\" stroke=\"#999\"/>",
                top - 8.0
            );
            for tick in TICKS {
                let x = left + along(tick);
                let _ = writeln!(
                    svg,
                    "<path d=\"M{x:.1} {top}v{height}\" stroke=\"#ddd\"/>\
                     <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{tick}</text>",
                    top + height + 15.0
                );
            }
            for (queue, spec) in QUEUES.iter().enumerate() {
                let middle = top + (queue as f64 + 0.5) * ROW;
                if column == 0 {
                    let _ = writeln!(
                        svg,
                        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
                        left - 6.0,
                        middle + 4.0,
                        spec.name
                    );
                }
                for (controller, (_, color)) in CONTROLLERS.iter().enumerate() {
                    let sought = Setting { trace, is_beside: column == 1, queue, controller };
                    let Some((_, calls)) = measured.iter().find(|(setting, _)| *setting == sought) else {
                        continue;
                    };
                    let (delay, low, high) = median(calls, |call| call.delay_p95_ms);
                    let y = middle + (controller as f64 - 1.5) * 10.0;
                    let _ = writeln!(
                        svg,
                        "<path d=\"M{:.1} {y}H{:.1}\" stroke=\"{color}\" stroke-width=\"2\"/>\
                         <circle cx=\"{:.1}\" cy=\"{y}\" r=\"4\" fill=\"{color}\"/>",
                        left + along(low),
                        left + along(high),
                        left + along(delay)
                    );
                }
            }
        }
    }
    svg.push_str("</svg>\n");
    svg
}

#[test]
fn every_cell_of_the_guide_runs_and_a_seed_repeats_itself() {
    let traces = traces();
    let setting = Setting { trace: 1, is_beside: true, queue: queue("DualPI2"), controller: 2 };
    let (first, again) = (setting.call(1, &traces), setting.call(1, &traces));
    assert_eq!(format!("{first:?}"), format!("{again:?}"));
    assert!(first.mbps > 0.15, "{first:?}");
    let other = setting.call(2, &traces);
    assert_ne!(format!("{first:?}"), format!("{other:?}"));
    for setting in Setting::all() {
        let text = setting.scenario(1, "nack");
        read("calls.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}

/// No frame is missed with NACKs where 2 % of the packets are lost, and most are without repair.
#[test]
fn repair_is_worth_its_bytes() {
    let missed = |repair| Call::of(&lossy(1, repair), &Traces::new()).missed_percent;
    assert!(missed("none") > 30.0 && missed("nack") < 0.1 && missed("fec") < 10.0);
}

#[test]
#[ignore = "two minutes of calls: scripts/prove"]
fn the_guide_has_what_calls_get() {
    let traces = traces();
    let measured = measure(&Setting::all(), &traces);
    hold_picture("calls.svg", &picture(&measured));
    brakelight_testkit::part::check("../guides/calls", "calls", &table(&measured));
    brakelight_testkit::part::check("../guides/calls", "repairs", &repairs(&traces));
}

#[test]
#[ignore = "a minute of calls on fast links: scripts/prove"]
fn the_guide_has_what_calls_get_on_recordings() {
    let Some(traces) = recordings() else { return };
    let measured = measure(&Setting::recorded(), &traces);
    brakelight_testkit::part::check("../guides/calls", "recorded", &table(&measured));
}
