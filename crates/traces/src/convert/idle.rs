//! Rows in which the application was idle. They say nothing of the link, and would be outages of it.
//!
//! | what the table has | what is idle |
//! |---|---|
//! | a column `State`, `Status` or `Activity` | rows in which it is [`IDLE`], as G-NetTrack's `I` |
//! | none | perhaps rows of rate 0: a warning says so where [`LONG`] of them follow one another |
//!
//! `--without-idle` leaves them out, as gaps.

use brakelight_core::time::Duration;
use brakelight_core::units::Rate;

use super::ConvertOptions;

/// What a column of states says of an application that wants nothing.
const IDLE: [&str; 5] = ["i", "idle", "inactive", "paused", "stopped"];
/// The names of a column of states.
const STATES: [&str; 4] = ["state", "status", "activity", "app_state"];
/// What is longer than most outages.
const LONG: Duration = Duration::from_secs(5);

/// Which rows of a table are idle.
pub(super) struct States {
    column: Option<usize>,
    name: String,
    rows: u64,
    idle: u64,
}

impl States {
    pub(super) fn of(names: &[&str]) -> Self {
        let column =
            names.iter().position(|name| STATES.iter().any(|state| name.eq_ignore_ascii_case(state)));
        let name = column.map_or(String::new(), |column| names[column].to_string());
        States { column, name, rows: 0, idle: 0 }
    }

    /// Returns `true` if this row is idle.
    pub(super) fn is_idle(&mut self, row: &[&str]) -> bool {
        self.rows += 1;
        let state = self.column.and_then(|column| row.get(column));
        let idle = state.is_some_and(|state| IDLE.iter().any(|idle| state.eq_ignore_ascii_case(idle)));
        self.idle += u64::from(idle);
        idle
    }

    /// Says what became of the idle rows, or what the rates themselves tell where no column does. Rates of 0
    /// are then left out of `stretches` if that is wanted.
    pub(super) fn finish(
        self,
        stretches: &mut Vec<(u64, Rate)>,
        options: &ConvertOptions,
        notes: &mut Vec<String>,
        warnings: &mut Vec<String>,
    ) {
        if self.idle == 0 {
            return zeros(stretches, options, notes, warnings);
        }
        let name = &self.name;
        let count = format!("in {} of {} rows the application was idle by `{name}`", self.idle, self.rows);
        if options.without_idle {
            notes.push(format!("{count}: they were left out"));
        } else {
            warnings.push(format!(
                "{count}: they count with their rates and are no outages of the link; `--without-idle` leaves them out"
            ));
        }
    }
}

/// Warns of long stretches of rate 0, or leaves out all of them.
pub(super) fn zeros(
    stretches: &mut Vec<(u64, Rate)>,
    options: &ConvertOptions,
    notes: &mut Vec<String>,
    warnings: &mut Vec<String>,
) {
    let is_zero = |(_, rate): &(u64, Rate)| rate.bps() == 0;
    let (mut total, mut run, mut longest) = (0_u64, 0_u64, 0_u64);
    for stretch in stretches.iter() {
        run = if is_zero(stretch) { run.saturating_add(stretch.0) } else { 0 };
        longest = longest.max(run);
        total = total.saturating_add(if is_zero(stretch) { stretch.0 } else { 0 });
    }
    let (total_s, longest_s) = (total as f64 / 1e3, longest as f64 / 1e3);
    if options.without_idle {
        stretches.retain(|stretch| !is_zero(stretch));
        notes.push(format!("{total_s:.1} s of rate 0 were left out"));
    } else if longest >= LONG.as_nanos() / 1_000_000 {
        warnings.push(format!(
            "the rate is 0 for {total_s:.1} s, the longest time {longest_s:.1} s: an outage of the link if the application \
             wanted to send; if it was idle, `--without-idle` leaves rates of 0 out"
        ));
    }
}
