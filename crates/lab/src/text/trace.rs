//! A trace for people, and its rates for other programs.

use brakelight_core::path::trace::Trace;
use brakelight_core::time::Duration;
use brakelight_scenario::trace::convert::Converted;
use brakelight_scenario::trace::statistics::{self, Statistics};
use brakelight_scenario::trace::{OPPORTUNITY, plot};

use super::table::{self, Column};
use super::{Screen, csv, number, thousands};

/// Width of a bin of the rates that are shown.
const BIN: Duration = Duration::from_millis(100);

/// Height of the picture.
const PLOT_ROWS: usize = 8;

/// The rate in each bin of 100 ms: when the bin begins, in seconds, and its rate in Mbit/s.
pub fn csv(trace: &Trace) -> String {
    let rates = statistics::rates(trace, BIN, OPPORTUNITY);
    let rows = rates
        .iter()
        .enumerate()
        .map(|(bin, rate)| [format!("{:.1}", bin as f64 * BIN.as_secs_f64()), rate.to_string()]);
    csv::document(&["time_s", "rate_mbps"], rows)
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

/// The trace called `name`: its rate over time as a picture, and its statistics `s`.
pub fn in_words(name: &str, trace: &Trace, s: &Statistics, screen: &Screen) -> String {
    let facts = format!(
        "{} s, {} opportunities of 1500 bytes",
        number(s.duration_s),
        thousands(s.opportunities as f64)
    );
    let mut text = format!("{}  {}\n\n", screen.bold(name), screen.dim(&facts));
    let rates = statistics::rates(trace, BIN, OPPORTUNITY);
    let columns = screen.width.saturating_sub(12).min(100);
    text += &plot::area(&rates, columns, PLOT_ROWS, "Mbit/s", (s.duration_s * 10.0).round() / 10.0);
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
    let columns = [Column::text(""), Column::number("", ""), Column::text(""), Column::text("")];
    text + &table::plain(&columns, &rows, screen)
}
