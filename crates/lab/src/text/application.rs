//! What the applications of a comparison saw, for people.

use brakelight_scenario::outcome::Run;
use brakelight_scenario::scheme::short_name;

use super::table::{self, Column};
use super::{Screen, number_or_dash};

/// An application's number that has a column, as the application names it, with the column's heading and
/// unit. The last number says how soon the column goes where the screen is narrow.
struct Shown(&'static str, &'static str, &'static str, u8);

/// Of all applications, in the order of their columns. What one does not report has no column.
const SHOWN: &[Shown] = &[
    Shown("bitrate_mbps", "rate", "Mbit/s", 0),
    Shown("frame_delay_ms_p50", "frame delay", "p50 ms", 2),
    Shown("frame_delay_ms_p95", "frame delay", "p95 ms", 0),
    Shown("playout_delay_ms_p95", "playout", "p95 ms", 1),
    Shown("frames_late_percent", "late", "%", 3),
    Shown("frames_missed_percent", "missed", "%", 0),
    Shown("freezes_per_minute", "freezes", "1/min", 0),
    Shown("freeze_percent", "frozen", "%", 1),
    Shown("quality_mos", "quality", "1 to 5", 2),
    Shown("audio_missed_percent", "sound missed", "%", 2),
    Shown("startup_ms", "start", "ms", 1),
    Shown("stalls", "stalls", "", 0),
    Shown("stall_percent", "stalled", "%", 1),
    Shown("responses", "responses", "", 1),
    Shown("response_ms_p50", "response", "p50 ms", 2),
    Shown("response_ms_p95", "response", "p95 ms", 0),
    Shown("updates_lost_percent", "updates lost", "%", 0),
    Shown("rtt_ms_p95", "updates", "p95 ms", 0),
    Shown("flows_completed", "completed", "", 1),
    Shown("completion_ms_p50", "completion", "p50 ms", 2),
    Shown("completion_ms_p95", "completion", "p95 ms", 0),
];

/// Returns a table of what the applications of these rows saw; nothing if none of them reports a number that
/// has a column. Of a scheme with several flows it has the mean over these.
pub fn render(rows: &[&Run], screen: &Screen) -> String {
    let is_reported = |shown: &&Shown| rows.iter().any(|run| mean(run, shown.0).is_some());
    let shown: Vec<&Shown> = SHOWN.iter().filter(is_reported).collect();
    if shown.is_empty() {
        return String::new();
    }
    let mut columns = vec![Column::text("application of")];
    columns
        .extend(shown.iter().map(|Shown(_, title, unit, spare)| Column::number(title, unit).spare(*spare)));
    let row = |run: &&Run| {
        let mut row = vec![short_name(&run.scheme).to_string()];
        row.extend(shown.iter().map(|shown| number_or_dash(mean(run, shown.0))));
        row
    };
    let cells: Vec<Vec<String>> = rows.iter().map(row).collect();
    table::render(&columns, &cells, screen)
}

/// The mean of a number over the flows that report it.
fn mean(run: &Run, name: &str) -> Option<f64> {
    let seen = run.flows.iter().filter_map(|flow| flow.application.as_ref()?.get(name).copied());
    let values: Vec<f64> = seen.filter(|value| value.is_finite()).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use brakelight_scenario::outcome::FlowOutcome;

    use super::*;
    use crate::testing;

    fn row(scheme: &str, flows: &[&[(&str, f64)]]) -> Run {
        let flow = |seen: &&[(&str, f64)]| FlowOutcome {
            application: Some(seen.iter().map(|&(name, value)| (name.to_string(), value)).collect()),
            ..FlowOutcome::default()
        };
        Run { flows: flows.iter().map(flow).collect(), ..testing::run(scheme, "lte-walking", 2.0, 40.0) }
    }

    #[test]
    fn a_row_has_what_its_application_saw_on_average_and_a_dash_where_it_saw_nothing() {
        let calls = row("gcc", &[&[("frame_delay_ms_p95", 90.0)], &[("frame_delay_ms_p95", 110.0)]]);
        let other = row("cubic", &[&[("freeze_percent", 12.5), ("frames_shown", 99.0)], &[]]);
        let screen = Screen { width: 80, ..Screen::default() };
        insta::assert_snapshot!(render(&[&calls, &other], &screen), @"
        application of  frame delay  frozen
                             p95 ms       %
        ───────────────────────────────────
        gcc                     100       –
        cubic                     –    12.5
        ");
    }

    #[test]
    fn a_stream_of_bytes_has_no_table() {
        let bulk = testing::run("cubic", "lte-walking", 2.0, 40.0);
        assert_eq!(render(&[&bulk, &row("abc", &[&[("frames_shown", 3.0)]])], &Screen::default()), "");
    }
}
