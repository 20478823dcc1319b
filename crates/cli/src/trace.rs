//! `trace`: looks at traces, makes them, converts them.

use std::path::Path;

use brakelight_core::path::trace::Trace;
use brakelight_core::time::Duration;
use brakelight_scenario::trace::names::{self, Names};
use brakelight_scenario::trace::statistics::{self, Statistics};
use brakelight_scenario::trace::{OPPORTUNITY, convert, plot};
use serde_json::json;

use crate::arguments::{self, Convert, ConvertFrom, ConvertTo, Format, Show, Synth};
use crate::failure::Failure;
use crate::file;
use crate::text::table::{self, Column};
use crate::text::{self, Screen, number};

/// Height of the picture.
const PLOT_ROWS: usize = 8;

/// Runs the command.
pub fn execute(arguments: &arguments::Trace) -> Result<(), Failure> {
    match arguments {
        arguments::Trace::Show(arguments) => show(arguments),
        arguments::Trace::Synth(arguments) => synth(arguments),
        arguments::Trace::Convert(arguments) => convert(arguments),
    }
}

fn show(arguments: &Show) -> Result<(), Failure> {
    let names = Names::from_environment().map_err(Failure::input)?;
    let trace = names.load(&arguments.trace).map_err(Failure::input)?;
    let statistics = Statistics::of(&trace, OPPORTUNITY);
    match arguments.format {
        Format::Json => text::print_json(&json!({ "trace": arguments.trace, "statistics": statistics })),
        Format::Csv => {
            let width = Duration::from_millis(100);
            let rates = statistics::rates(&trace, width, OPPORTUNITY);
            let rows = rates
                .iter()
                .enumerate()
                .map(|(bin, rate)| [format!("{:.1}", bin as f64 * 0.1), rate.to_string()]);
            text::print(&text::csv::document(&["time_s", "rate_mbps"], rows))
        }
        Format::Table => {
            text::print(&in_words(&arguments.trace, &trace, &statistics, &text::standard_output()))
        }
    }
}

fn in_words(name: &str, trace: &Trace, s: &Statistics, screen: &Screen) -> String {
    let facts = format!(
        "{} s, {} opportunities of 1500 bytes",
        number(s.duration_s),
        text::thousands(s.opportunities as f64)
    );
    let mut text = format!("{}  {}\n\n", screen.bold(name), screen.dim(&facts));
    let rates = statistics::rates(trace, Duration::from_millis(100), OPPORTUNITY);
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

fn synth(arguments: &Synth) -> Result<(), Failure> {
    let mut recipe = names::recipe(&arguments.recipe).map_err(Failure::input)?;
    if let Some(seed) = arguments.seed {
        recipe.seed = seed;
    }
    if let Some(duration) = arguments.duration {
        recipe.duration = duration;
    }
    let trace =
        recipe.generate().map_err(|error| Failure::input(format!("{}: {error}", arguments.recipe)))?;
    write(&convert::to_mahimahi(&trace), arguments.out.as_deref())
}

fn convert(arguments: &Convert) -> Result<(), Failure> {
    let from = arguments.from.map(|from| match from {
        ConvertFrom::Mahimahi => convert::Format::Mahimahi,
        ConvertFrom::Csv => convert::Format::Csv,
        ConvertFrom::Pcap => convert::Format::Pcap,
        ConvertFrom::Iperf3 => convert::Format::Iperf3,
    });
    let converted = convert::convert_file(&arguments.file, from).map_err(Failure::input)?;
    for note in &converted.notes {
        text::say(&format!("note: {note}"));
    }
    let text = match arguments.to {
        ConvertTo::Mahimahi => convert::to_mahimahi(&converted.trace),
        ConvertTo::Csv => convert::to_csv(&converted.trace, arguments.bin, OPPORTUNITY),
    };
    write(&text, arguments.out.as_deref())
}

/// Writes to a file or to standard output.
fn write(text: &str, out: Option<&Path>) -> Result<(), Failure> {
    match out {
        None => text::print(text),
        Some(path) => file::write(path, text),
    }
}
