//! A trace for people, and its rates for other programs.

use brakelight_core::packet::Direction;
use brakelight_core::time::Duration;
use brakelight_links::replay::Conditions;
use brakelight_links::trace::Trace;
use brakelight_scenario::trace::conditions::{self, PathStatistics, TrainStatistics};
use brakelight_scenario::trace::convert::Converted;
use brakelight_scenario::trace::fit::link::FittedLink;
use brakelight_scenario::trace::recording::About;
use brakelight_scenario::trace::statistics::{self, Statistics};
use brakelight_scenario::trace::{OPPORTUNITY, plot};
use serde_json::{Value, json};

use super::table::{self, Column};
use super::{Screen, csv, number, number_or_dash, thousands};

/// Width of a bin of the rates that are shown.
const BIN: Duration = Duration::from_millis(100);

/// Height of the picture of the rate, and of those of delay and loss below it.
const PLOT_ROWS: usize = 8;
const SMALL_ROWS: usize = 4;

/// The directions of a recording, with what follows the name of a value.
const DIRECTIONS: [(Direction, &str); 2] = [(Direction::Forward, ""), (Direction::Reverse, ", back")];

/// The rate in each bin of 100 ms: when the bin begins, in seconds, and its rate in Mbit/s; then the delay in
/// milliseconds and the loss in percent, ahead and back, as far as they were recorded.
pub fn csv(trace: &Trace) -> String {
    let rates = statistics::rates(trace, BIN, OPPORTUNITY);
    let mut columns = vec![("rate_mbps", rates)];
    for (direction, names) in [
        (Direction::Forward, ["delay_ms", "loss_percent"]),
        (Direction::Reverse, ["delay_back_ms", "loss_back_percent"]),
    ] {
        let recorded = recorded(trace, direction).into_iter().flat_map(series);
        columns.extend(recorded.map(|(which, values)| (names[which], values)));
    }
    let heading: Vec<&str> = std::iter::once("time_s").chain(columns.iter().map(|(name, _)| *name)).collect();
    let rows = (0..columns[0].1.len()).map(|bin| {
        let time = format!("{:.1}", bin as f64 * BIN.as_secs_f64());
        let values =
            columns.iter().map(|(_, values)| values.get(bin).map_or_else(String::new, f64::to_string));
        std::iter::once(time).chain(values).collect::<Vec<_>>()
    });
    csv::document(&heading, rows)
}

fn recorded(trace: &Trace, direction: Direction) -> Option<&Conditions> {
    trace.recorded()?.conditions(direction)
}

/// Light trains, if they were recorded.
fn trains(trace: &Trace) -> Option<TrainStatistics> {
    trace.recorded()?.trains.as_ref().map(TrainStatistics::of)
}

/// Delay (0) and loss (1) over time, as far as they were recorded.
fn series(conditions: &Conditions) -> Vec<(usize, Vec<f64>)> {
    let delays = (!conditions.delays().is_empty()).then(|| (0, conditions::delays(conditions, BIN)));
    let losses = (!conditions.losses().is_empty()).then(|| (1, conditions::losses(conditions, BIN)));
    delays.into_iter().chain(losses).collect()
}

/// What `trace show --format json` prints of a trace.
pub fn document(name: &str, trace: &Trace, statistics: &Statistics, about: Option<&About>) -> Value {
    let path = |direction| recorded(trace, direction).map(PathStatistics::of);
    let mut document = json!({
        "trace": name,
        "statistics": statistics,
        "resolution_ms": trace.resolution().as_millis_f64(),
        "path": { "forward": path(Direction::Forward), "reverse": path(Direction::Reverse) },
        "about": about,
        "limits": conditions::limits(trace),
    });
    if let Some(trains) = trains(trace) {
        document["trains"] = json!(trains);
    }
    document
}

/// What a conversion made, in a line.
pub fn made(converted: &Converted) -> String {
    let statistics = Statistics::of(&converted.trace, OPPORTUNITY);
    format!(
        "trace from {}: {} s, mean {} Mbit/s, longest gap {} ms, resolution {} ms",
        converted.format,
        number(statistics.duration_s),
        number(statistics.mean_mbps),
        statistics.outages.longest_ms,
        converted.resolution.as_nanos() / 1_000_000,
    )
}

/// The trace called `name`: its rate, delay and loss over time as pictures, its statistics `s`, what is known
/// of it, and what it cannot tell.
pub fn in_words(name: &str, trace: &Trace, s: &Statistics, about: Option<&About>, screen: &Screen) -> String {
    let facts = format!(
        "{} s, {} opportunities of 1500 bytes",
        number(s.duration_s),
        thousands(s.opportunities as f64)
    );
    let mut text = format!("{}  {}\n\n", screen.bold(name), screen.dim(&facts));
    let rates = statistics::rates(trace, BIN, OPPORTUNITY);
    let columns = screen.width.saturating_sub(12).min(100);
    let seconds = (s.duration_s * 10.0).round() / 10.0;
    text += &plot::area(&rates, columns, PLOT_ROWS, "Mbit/s", seconds);
    for (direction, head) in DIRECTIONS {
        for (which, values) in recorded(trace, direction).into_iter().flat_map(series) {
            let unit = ["ms, one-way delay", "%, loss"][which];
            text += &plot::area(&values, columns, SMALL_ROWS, &format!("{unit}{head}"), seconds);
        }
    }
    text.push('\n');
    let row = |what: &str, value: String, unit: &str, note: &str| {
        [what, &value, unit, note].map(String::from).to_vec()
    };
    let q = &s.rate_100ms;
    let mut rows = vec![
        row("mean rate", number(s.mean_mbps), "Mbit/s", ""),
        row(
            "rate over 100 ms",
            format!("{} / {} / {}", number(q.p5_mbps), number(q.p50_mbps), number(q.p95_mbps)),
            "Mbit/s",
            "p5 / p50 / p95",
        ),
        row(
            "coefficient of variation",
            format!(
                "{} / {} / {}",
                number(s.variation.cv_20ms),
                number(s.variation.cv_100ms),
                number(s.variation.cv_1s)
            ),
            "",
            "in bins of 20 ms / 100 ms / 1 s",
        ),
        row("outages", s.outages.count.to_string(), "", "100 ms or longer without an opportunity"),
        row("longest gap", s.outages.longest_ms.to_string(), "ms", ""),
        row("time in outages", number(100.0 * s.outages.share), "%", ""),
        row(
            "seconds that double / halve",
            format!("{} / {}", number(100.0 * s.doubles), number(100.0 * s.halves)),
            "%",
            "second half against first half",
        ),
    ];
    for lag in s.autocorrelation.iter().filter(|lag| [100, 1_000, 10_000].contains(&lag.lag_ms)) {
        let what = format!("autocorrelation at {}", Duration::from_millis(u64::from(lag.lag_ms)));
        rows.push(row(&what, number(lag.value), "", "in bins of 100 ms"));
    }
    for (direction, head) in DIRECTIONS {
        let Some(found) = recorded(trace, direction).map(PathStatistics::of) else { continue };
        if let Some(d) = found.delay_ms {
            let value = [d.min, d.p50, d.p95, d.max].map(number).join(" / ");
            rows.push(row(&format!("one-way delay{head}"), value, "ms", "least / p50 / p95 / most"));
        }
        if let Some(loss) = found.loss_percent {
            rows.push(row(&format!("loss{head}"), number(loss), "%", "mean over time"));
        }
    }
    if let Some(t) = trains(trace) {
        let values = [t.opportunities, t.length_ms].map(number).join(" / ");
        let every = format!("packets / ms; one recorded every {} ms", number(t.every_ms));
        rows.push(row("light train", values, "", &every));
        rows.push(row("light rate", number(t.light_mbps), "Mbit/s", "within the trains"));
    }
    rows.push(row(
        "resolution",
        number(trace.resolution().as_millis_f64()),
        "ms",
        "what one value stands for",
    ));
    let columns = [Column::text(""), Column::number("", ""), Column::text(""), Column::text("")];
    text += &table::plain(&columns, &rows, screen);
    let known = about.map(About::words).unwrap_or_default();
    if !known.is_empty() {
        text.push('\n');
    }
    for (key, value) in known {
        text += &format!("{key}: {value}\n");
    }
    for limit in conditions::limits(trace) {
        text += &format!("\nnote: {limit}\n");
    }
    text
}

/// What a fit made beside what it was fitted to, in a table.
pub fn fitted(fit: &FittedLink, screen: &Screen) -> String {
    let of = |trace: &Trace| {
        let s = Statistics::of(trace, OPPORTUNITY);
        let delay = recorded(trace, Direction::Forward).and_then(|it| PathStatistics::of(it).delay_ms);
        let delays = [delay.map(|delay| delay.p50), delay.map(|delay| delay.p95)];
        let known = [
            Some(s.mean_mbps),
            Some(s.rate_100ms.p5_mbps),
            Some(s.rate_100ms.p95_mbps),
            Some(s.variation.cv_100ms),
            Some(s.variation.cv_1s),
            s.autocorrelation_at(1_000),
            Some(100.0 * s.outages.share),
            Some(s.outages.longest_ms as f64),
        ];
        known.into_iter().chain(delays).map(number_or_dash).collect::<Vec<_>>()
    };
    let names = [
        ("mean rate", "Mbit/s"),
        ("rate over 100 ms, p5", "Mbit/s"),
        ("rate over 100 ms, p95", "Mbit/s"),
        ("variation at 100 ms", ""),
        ("variation at 1 s", ""),
        ("autocorrelation at 1 s", ""),
        ("time in outages", "%"),
        ("longest gap", "ms"),
        ("one-way delay, p50", "ms"),
        ("one-way delay, p95", "ms"),
    ];
    let rows = names.into_iter().zip(of(&fit.recorded)).zip(of(&fit.made));
    let rows: Vec<Vec<String>> =
        rows.map(|(((name, unit), recorded), made)| vec![name.into(), recorded, made, unit.into()]).collect();
    let columns = [
        Column::text("statistic"),
        Column::number("recorded", ""),
        Column::number("recipe", ""),
        Column::text(""),
    ];
    table::render(&columns, &rows, screen)
}
