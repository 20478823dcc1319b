//! A comparison for people.

use brakelight_core::time::Duration;
use brakelight_scenario::outcome::{Ratio, Run, Summary};
use brakelight_scenario::scheme::short_name;

use super::scatter::{self, Point};
use super::table::{self, Column};
use super::{Screen, application, count, decision, digits, number, number_or_dash};
use crate::decision::Choice;
use crate::summary;
use crate::table::Table;

/// Stands behind a scheme whose router must know the link's rate.
pub(super) const LINK_RATE_MARK: &str = "†";

/// What that means.
pub(super) const LINK_RATE: &str =
    "its router is told the link's true rate; a real one must know or measure it";

/// Returns what to deploy, what was assumed, the drawing, a table per trace, the table over all traces, the
/// notes.
pub fn tables(results: &Table, screen: &Screen) -> String {
    let runs = &results.runs;
    let traces = summary::distinct(runs, |run| &run.trace);
    let reference = results.base();
    let overall = results.overall();
    let decision = results.decision();
    let mut text = String::new();
    if let Some(decision) = &decision {
        text += &decision::table(decision, screen);
        text.push('\n');
    }
    text += &assumptions(results, screen);
    if screen.terminal {
        let point = |row: &'_ summary::Overall| Point {
            name: short_name(&row.scheme),
            delay: match traces.as_slice() {
                [_] => runs.iter().find(|run| run.scheme == row.scheme).and_then(summary::p95),
                _ => row.p95.map(|ratio| ratio.value),
            }
            .unwrap_or(0.0),
            utilization: row.utilization,
            pareto: row.pareto,
        };
        let points: Vec<Point> = overall.iter().map(point).collect();
        let several = traces.len() > 1;
        let unit = if several {
            format!("x {}", short_name(reference.unwrap_or_default()))
        } else {
            "ms".to_string()
        };
        let drawing = scatter::render(&points, &unit, screen);
        if !drawing.is_empty() {
            let over = if several { "geometric means over all traces, " } else { "" };
            text += &format!("Utilization against delay; {over}* on the Pareto frontier\n\n{drawing}\n");
        }
    }
    for trace in &traces {
        text += &one_trace(trace, runs, screen);
        text.push('\n');
    }
    if traces.len() > 1 {
        text += &all_traces(&overall, runs, traces.len(), reference, screen);
        text.push('\n');
    }
    text += &screen.dim("Sorted by power: throughput over the 95th percentile of the one-way delay.");
    if runs.iter().any(|run| run.fairness.is_some()) {
        text += &screen.dim(
            "\nIt is the power of the scheme's own flow, times the share of throughput that the competitor keeps, over the growth of the competitor's delay.",
        );
    }
    text +=
        "\n* on the Pareto frontier: no other scheme has both more throughput and less p95 queueing delay.\n";
    let told = decision.iter().flat_map(|it| &it.choices).any(Choice::needs_link_rate);
    if !told && runs.iter().any(needs_link_rate) {
        text += &format!("{LINK_RATE_MARK} {LINK_RATE}.\n");
    }
    if runs.iter().any(|run| run.interval95.is_some()) {
        text += "± is the 95 % confidence interval of a median, by bootstrap over runs; in parentheses, one that is not symmetric.\n";
    }
    if let Some(versus) = runs.iter().find_map(|run| run.versus.as_ref()).filter(|_| has_intervals(runs)) {
        text += &format!(
            "{SAME} no significant difference from {}, run by run with the same seed and start in the trace.\n",
            short_name(&versus.scheme)
        );
    }
    for note in &results.notes {
        text += &format!("note: {note}\n");
    }
    text
}

/// Stands behind a value that does not differ from the reference scheme's.
pub(super) const SAME: &str = "≈";

/// What the numbers below hold for, and what must be known before they are read.
fn assumptions(results: &Table, screen: &Screen) -> String {
    let wide = results.setting.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = results.setting.iter().map(|(name, value)| format!("{name:wide$}  {value}\n"));
    let mut text: String = lines.map(|line| screen.dim(&line)).collect();
    for caveat in &results.caveats {
        text += &format!("{} {caveat}\n", screen.bold("caution:"));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn has_intervals(runs: &[Run]) -> bool {
    let sure = |ratio: Option<Ratio>| ratio.is_some_and(|ratio| ratio.interval95.is_some());
    runs.iter()
        .filter_map(|run| run.versus.as_ref())
        .any(|versus| sure(versus.throughput) || sure(versus.p95))
}

fn needs_link_rate(run: &Run) -> bool {
    run.deployment.is_some_and(|deployment| deployment.link_rate)
}

/// A scheme's name with its marks.
fn name(scheme: &str, pareto: bool, link_rate: bool) -> String {
    let marks = format!("{}{}", if pareto { "*" } else { "" }, if link_rate { LINK_RATE_MARK } else { "" });
    format!("{} {marks}", short_name(scheme)).trim_end().to_string()
}

/// A value, and how far its interval reaches beyond it on its wider side; both ends of one that reaches more
/// than a quarter of the value on one side, and less than half as far on the other.
fn with_interval(value: f64, interval: Option<[f64; 2]>) -> String {
    let Some([low, high]) = interval else { return number(value) };
    let (below, above) = (value - low, high - value);
    let (reach, digits) = (below.max(above), digits(value));
    if reach > 2.0 * below.min(above) && reach > value.abs() / 4.0 {
        return format!("{} ({low:.digits$}–{high:.digits$})", number(value));
    }
    format!("{} ± {reach:.digits$}", number(value))
}

/// [`SAME`], or as much room.
pub(super) fn mark(ratio: Option<Ratio>) -> &'static str {
    match ratio {
        Some(ratio) if ratio.interval95.is_some() && !ratio.is_significant() => SAME,
        _ => " ",
    }
}

fn one_trace(trace: &str, runs: &[Run], screen: &Screen) -> String {
    let rows = summary::on_trace(runs, trace);
    let points: Vec<_> =
        rows.iter().map(|run| summary::p95(run).map(|delay| (delay, summary::used(run)))).collect();
    let pareto = summary::pareto(&points);
    let fairness = rows.iter().any(|run| run.fairness.is_some());
    let marked = rows.iter().any(|run| run.versus.is_some());
    let mut columns = vec![
        Column::text("scheme"),
        Column::number(if fairness { "own" } else { "throughput" }, "Mbit/s"),
        Column::number("used", "%"),
        Column::number("queueing", "p95 ms"),
        Column::number("p50", "ms").spare(1),
        Column::number("p99", "ms").spare(2),
        Column::number("mean", "ms").spare(3),
        Column::number("loss", "%"),
    ];
    if fairness {
        // What there is of the competitor is worth more than the tail of the delay.
        columns.truncate(4);
        columns[2] = Column::number("used", "%").spare(2);
        columns.extend([
            Column::number("competitor", "Mbit/s"),
            Column::number("share", "%"),
            Column::number("Jain", "").spare(3),
            Column::number("harm", "throughput %"),
            Column::number("harm", "p95 %"),
            Column::number("loss", "%").spare(1),
        ]);
    }
    let table: Vec<Vec<String>> = rows
        .iter()
        .zip(&pareto)
        .map(|(run, pareto)| {
            let delay =
                |value: fn(&Summary) -> f64| number_or_dash(run.queueing_delay_ms.as_ref().map(value));
            let versus = |of: fn(&brakelight_scenario::outcome::Versus) -> Option<Ratio>| {
                if marked { mark(run.versus.as_ref().and_then(of)) } else { "" }
            };
            let interval = run.interval95;
            let p95 = summary::p95(run);
            let p95 =
                p95.map_or_else(|| "–".into(), |p95| with_interval(p95, interval.and_then(|it| it.p95_ms)));
            let mut row = vec![
                name(&run.scheme, *pareto, needs_link_rate(run)),
                with_interval(summary::measured(run), interval.map(|it| it.throughput_mbps))
                    + versus(|versus| versus.throughput),
                format!("{:.1}", 100.0 * summary::used(run)),
                p95 + versus(|versus| versus.p95),
                delay(|d| d.p50),
                delay(|d| d.p99),
                delay(|d| d.mean),
                number(run.loss_percent),
            ];
            if let Some(fairness) = &run.fairness {
                let percent =
                    |share: Option<f64>| share.map_or_else(|| "–".into(), |it| format!("{:.0}", 100.0 * it));
                row.truncate(4);
                row.extend([
                    number(fairness.competitor_mbps),
                    percent(Some(fairness.share)),
                    number_or_dash(run.jain),
                    percent(fairness.harm_throughput),
                    percent(fairness.harm_delay),
                    number(run.loss_percent),
                ]);
            }
            row
        })
        .collect();
    let mut facts = Vec::new();
    if let Some(run) = rows.first() {
        facts.push(format!("{} Mbit/s on average", number(run.capacity_mbps)));
        facts.push(Duration::from_nanos((run.duration_s * 1e9).round() as u64).to_string());
        facts.extend(run.setup.as_ref().map(|setup| format!("buffer {}", setup.buffer)));
    }
    let mut text = format!(
        "{}  {}\n{}",
        screen.bold(trace),
        screen.dim(&facts.join(", ")),
        table::render(&columns, &table, screen)
    );
    for run in rows.iter().filter(|run| run.modes.is_some()) {
        text += &modes(run);
    }
    text += &second_half(&rows);
    rows.iter().filter_map(|run| marked_by(run)).for_each(|line| text += &line);
    let seen = application::render(&rows, screen);
    if !seen.is_empty() {
        text += &format!("\n{seen}");
    }
    text
}

/// By how much the share used must differ in the second half for a row to be named, and by which factor the
/// 95th percentile.
const STARTS_SLOWLY: f64 = 0.03;
const STARTS_LATE: f64 = 1.3;

/// The rows that a longer run would change, with what they did in the second half of this one.
fn second_half(rows: &[&Run]) -> String {
    let differs = |run: &&&Run| {
        let Some(later) = &run.second_half else { return false };
        let (used, whole) = match (&run.fairness, later.share) {
            (Some(fairness), Some(share)) => (share, fairness.share),
            _ => (later.utilization, run.utilization),
        };
        let slower = |a: f64, b: f64| a > STARTS_LATE * b && a > 1.0;
        let delays = later.p95_ms.zip(summary::p95(run));
        (used - whole).abs() > STARTS_SLOWLY || delays.is_some_and(|(a, b)| slower(a, b) || slower(b, a))
    };
    let told = |run: &&Run| {
        let later = run.second_half.unwrap_or_default();
        let share = later.share.map_or_else(
            || format!("{:.1} %", 100.0 * later.utilization),
            |share| format!("share {:.0} %", 100.0 * share),
        );
        format!("{} {share}, p95 {} ms", short_name(&run.scheme), number_or_dash(later.p95_ms))
    };
    let told: Vec<String> = rows.iter().filter(differs).map(told).collect();
    if told.is_empty() {
        String::new()
    } else {
        format!("start-up changes these rows; in the second half alone: {}\n", told.join("; "))
    }
}

/// Less than this used, and a reader asks why.
const USES_LITTLE: f64 = 0.9;

/// What made a queue mark the packets of a row that used little, where the queue says it.
fn marked_by(run: &Run) -> Option<String> {
    let parts = &run.links.first()?.marked_by;
    let all: f64 = parts.values().sum();
    if all == 0.0 || summary::used(run) > USES_LITTLE {
        return None;
    }
    let part = |name: &str| 100.0 * parts.get(name).copied().unwrap_or(0.0) / all;
    Some(format!(
        "marks of {}: {:.0} % because a packet waited beyond the threshold for the link's next opportunity alone, {:.0} % because it \
         stood in a queue that long, {:.0} % by the PI controller, {:.0} % in overload\n",
        short_name(&run.scheme),
        part("link"),
        part("threshold"),
        part("coupling"),
        part("overload")
    ))
}

/// The groups that a row's runs fall into, in words.
fn modes(run: &Run) -> String {
    let groups = run.modes.iter().flatten().map(|mode| {
        let delay = mode.p95_ms.map_or_else(String::new, |p95| format!(", p95 {} ms", number(p95)));
        format!(
            "{} with {} Mbit/s{delay}",
            count(mode.n as usize, "run", "runs"),
            number(mode.throughput_mbps)
        )
    });
    let groups: Vec<String> = groups.collect();
    let (scheme, groups) = (short_name(&run.scheme), groups.join(", "));
    format!("{scheme} ended in one of two ways: {groups}; the row is a run of the larger group\n")
}

fn all_traces(
    overall: &[summary::Overall],
    runs: &[Run],
    traces: usize,
    reference: Option<&str>,
    screen: &Screen,
) -> String {
    let reference = reference.unwrap_or_default();
    let to = format!("/ {}", short_name(reference));
    let link_rate = |scheme: &str| runs.iter().any(|run| run.scheme == scheme && needs_link_rate(run));
    let columns = [
        Column::text("scheme"),
        Column::number("power", "best = 1"),
        Column::number("used", "%"),
        Column::number("throughput", &to),
        Column::number("queueing p95", &to),
        Column::number("one-way p95", &to).spare(1),
        Column::number("loss", "highest %"),
    ];
    let ratio = |ratio: Option<Ratio>, own: bool| {
        let text =
            ratio.map_or_else(|| "–".into(), |it| with_interval(it.value, it.interval95.filter(|_| !own)));
        text + if own { " " } else { mark(ratio) }
    };
    let rows: Vec<Vec<String>> = overall
        .iter()
        .map(|row| {
            let own = row.scheme == reference;
            vec![
                name(&row.scheme, row.pareto, link_rate(&row.scheme)),
                number_or_dash(row.power),
                format!("{:.1}", 100.0 * row.utilization),
                ratio(row.throughput, own),
                ratio(row.p95, own),
                ratio(row.one_way_p95, own),
                number(row.loss_percent),
            ]
        })
        .collect();
    let facts = format!("geometric means over {}", count(traces, "trace", "traces"));
    format!(
        "{}  {}\n{}",
        screen.bold("All traces"),
        screen.dim(&facts),
        table::render(&columns, &rows, screen)
    )
}

#[cfg(test)]
mod tests {
    use brakelight_scenario::outcome::{Interval95, LinkOutcome, Mode, SecondHalf, Versus};

    use super::*;
    use crate::jobs::JobOutcome;
    use crate::table::Drawn;
    use crate::testing;

    fn results() -> Table {
        let outcomes = testing::outcomes(1).into_iter().map(|outcome| JobOutcome::of(vec![outcome]).unwrap());
        Table {
            setting: vec![("RTT".into(), "100ms".into()), ("return path".into(), "no limit".into())],
            caveats: vec!["5g-bursty: a buffer of 10pkt".into()],
            notes: vec!["codel: target = 50ms".into()],
            ..Table::of(outcomes.collect(), &Drawn::default())
        }
    }

    #[test]
    fn an_interval_that_is_not_symmetric_has_both_its_ends() {
        assert_eq!(with_interval(4.18, Some([4.1, 4.28])), "4.18 ± 0.10");
        assert_eq!(with_interval(7.65, Some([0.9, 52.48])), "7.65 (0.90–52.48)");
        assert_eq!(with_interval(3.78, Some([3.53, 3.83])), "3.78 ± 0.25");
        assert_eq!(with_interval(249.0, None), "249");
    }

    #[test]
    fn a_slow_start_and_the_cause_of_low_use_are_told_from_the_run() {
        let mut run = testing::run("prague", "fixed", 6.2, 1.2);
        let half = SecondHalf { utilization: 0.91, p95_ms: Some(1.4), ..SecondHalf::default() };
        run.second_half = Some(half);
        let parts = [("link", 60.0), ("threshold", 37.0), ("coupling", 3.0), ("overload", 0.0)];
        let marked_by = parts.map(|(name, marks)| (name.to_string(), marks)).into();
        run.links = vec![LinkOutcome { marked_by, ..LinkOutcome::default() }];
        assert_eq!(
            second_half(&[&run]),
            "start-up changes these rows; in the second half alone: prague 91.0 %, p95 1.40 ms\n"
        );
        assert_eq!(
            super::marked_by(&run).unwrap(),
            "marks of prague: 60 % because a packet waited beyond the threshold for the link's next opportunity alone, 37 % because it \
             stood in a queue that long, 3 % by the PI controller, 0 % in overload\n"
        );
        run.second_half = Some(SecondHalf { utilization: 0.625, p95_ms: Some(1.3), ..half });
        assert_eq!(second_half(&[&run]), "", "as the whole run");
        run.utilization = 0.95;
        assert_eq!(super::marked_by(&run), None);
    }

    #[test]
    fn the_answer_stands_first_in_every_table_and_the_last_table_is_about_all_traces() {
        let screen = Screen { width: 80, terminal: true, colour: false };
        insta::assert_snapshot!(tables(&results(), &screen));
    }

    #[test]
    fn a_table_says_how_sure_it_is_what_does_not_differ_and_where_there_are_two_modes() {
        let mut results = results();
        results.runs.retain(|run| run.trace == "lte-driving");
        results.runs.truncate(3);
        results.every.clear();
        let [abc, cubic, codel] = &mut results.runs[..] else { panic!("three rows") };
        abc.interval95 = Some(Interval95 {
            throughput_mbps: [abc.throughput_mbps - 0.25, abc.throughput_mbps + 0.05],
            p95_ms: Some([100.0, 150.0]),
            ..Interval95::default()
        });
        let ratio = |low, high| Some(Ratio { value: 1.1, interval95: Some([low, high]) });
        cubic.versus =
            Some(Versus { scheme: "abc".into(), throughput: ratio(1.05, 1.2), p95: ratio(0.9, 1.2) });
        codel.modes = Some([
            Mode { n: 3, throughput_mbps: 1.5, p95_ms: Some(80.0) },
            Mode { n: 5, throughput_mbps: 3.0, p95_ms: Some(160.0) },
        ]);
        insta::assert_snapshot!(tables(&results, &Screen::default()));
    }
}
