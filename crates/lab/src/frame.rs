//! Rows as columns: what CSV, Arrow and Parquet are made of. Names of columns end in their unit, as in the
//! JSON rows.

use std::collections::{BTreeMap, BTreeSet};

use brakelight_scenario::outcome::{
    FlowOutcome, FlowSeries, LinkOutcome, LinkSeries, MarkCounts, Run, Series, Setup, Summary,
};

use crate::error::Error;
use crate::text::csv;

#[cfg(feature = "arrow")]
mod arrow;
mod ipc;
#[cfg(feature = "parquet")]
pub mod parquet;

/// Columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    columns: Vec<Column>,
}

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: Values,
}

/// The values of a column, all of one type.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Words.
    Text(Vec<String>),
    /// Whole numbers.
    Count(Vec<u64>),
    /// Numbers, some of which may be missing.
    Number(Vec<Option<f64>>),
    /// Yes or no.
    Flag(Vec<bool>),
}

impl Values {
    /// Returns how many there are.
    pub fn len(&self) -> usize {
        match self {
            Values::Text(values) => values.len(),
            Values::Count(values) => values.len(),
            Values::Number(values) => values.len(),
            Values::Flag(values) => values.len(),
        }
    }

    /// Returns `true` if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds `more`. Returns `false` if these are of another type.
    fn append(&mut self, more: Values) -> bool {
        match (self, more) {
            (Values::Text(values), Values::Text(more)) => values.extend(more),
            (Values::Count(values), Values::Count(more)) => values.extend(more),
            (Values::Number(values), Values::Number(more)) => values.extend(more),
            (Values::Flag(values), Values::Flag(more)) => values.extend(more),
            _ => return false,
        }
        true
    }

    /// Value number `row` as CSV has it; nothing where it is missing.
    fn show(&self, row: usize) -> String {
        match self {
            Values::Text(values) => values[row].clone(),
            Values::Count(values) => values[row].to_string(),
            Values::Number(values) => csv::field(values[row]),
            Values::Flag(values) => values[row].to_string(),
        }
    }
}

impl Frame {
    /// Returns a frame of these columns. Fails if they are not equally long, or two have the same name.
    pub fn new(columns: Vec<Column>) -> Result<Self, Error> {
        let wrong = |reason: String| Err(Error::Encode { format: "table", reason });
        let rows = columns.first().map_or(0, |column| column.values.len());
        for (index, column) in columns.iter().enumerate() {
            if column.values.len() != rows {
                return wrong(format!(
                    "column `{}` has {} values, not {rows}",
                    column.name,
                    column.values.len()
                ));
            }
            if columns[..index].iter().any(|other| other.name == column.name) {
                return wrong(format!("two columns are called `{}`", column.name));
            }
        }
        Ok(Frame { columns })
    }

    /// Returns the columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns how many rows there are.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// Returns `keys`, then the columns of this frame but those that a key has the name of. Fails as
    /// [`Frame::new`] does.
    pub fn keyed_by(self, keys: Vec<Column>) -> Result<Self, Error> {
        let own = self.columns.into_iter().filter(|own| keys.iter().all(|key| key.name != own.name));
        let own: Vec<Column> = own.collect();
        Frame::new(keys.into_iter().chain(own).collect())
    }

    /// Returns this frame without the column called `name`.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.columns.retain(|column| column.name != name);
        self
    }

    /// Adds the rows of `more`, which has the same columns; one without columns takes those. Fails if `more`
    /// has others.
    pub fn append(&mut self, more: Frame) -> Result<(), Error> {
        if self.columns.is_empty() {
            *self = more;
            return Ok(());
        }
        let same = self.columns.iter().map(|own| &own.name).eq(more.columns.iter().map(|own| &own.name));
        let mut both = self.columns.iter_mut().zip(more.columns);
        if same && both.all(|(own, more)| own.values.append(more.values)) {
            return Ok(());
        }
        Err(Error::Encode { format: "table", reason: "two parts of it have different columns".into() })
    }

    /// Returns the names of the columns, as a line of CSV.
    pub fn csv_heading(&self) -> String {
        let heading: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        csv::document::<&[String]>(&heading, [])
    }

    /// Returns the rows as lines of CSV, without a heading.
    pub fn csv_rows(&self) -> String {
        let row = |row| self.columns.iter().map(|column| column.values.show(row)).collect::<Vec<_>>();
        csv::lines((0..self.rows()).map(row))
    }
}

/// Returns a run a row, or the medians of several: every number of the JSON row that stands in it once.
pub fn runs<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Frame {
    let rows: Vec<&Run> = runs.into_iter().collect();
    let spread = |pick: fn([f64; 2], [f64; 2]) -> f64| {
        move |run: &&Run| run.spread.map(|spread| pick(spread.throughput_mbps, spread.p95_ms))
    };
    let mut columns = vec![
        text("scheme", &rows, |run| run.scheme.clone()),
        text("trace", &rows, |run| run.trace.clone()),
        count("seed", &rows, |run| run.seed),
        number("duration_s", &rows, |run| Some(run.duration_s)),
        number("capacity_mbps", &rows, |run| Some(run.capacity_mbps)),
        number("throughput_mbps", &rows, |run| Some(run.throughput_mbps)),
        number("goodput_mbps", &rows, |run| Some(run.goodput_mbps)),
        number("utilization", &rows, |run| Some(run.utilization)),
    ];
    columns.extend(summary("queueing_delay", &rows, |run| run.queueing_delay_ms));
    columns.extend(summary("one_way_delay", &rows, |run| run.one_way_delay_ms));
    columns.extend(summary("rtt", &rows, |run| run.rtt_ms));
    columns.extend([
        number("signal_delay_p95_ms", &rows, |run| run.signal_delay_ms.map(|delay| delay.p95)),
        number("loss_percent", &rows, |run| Some(run.loss_percent)),
        count("delivered_packets", &rows, |run| run.delivered_packets),
        count("dropped_packets", &rows, |run| run.dropped_packets),
        count("retransmitted_packets", &rows, |run| run.retransmitted_packets),
    ]);
    columns.extend(marks(&rows, |run| run.marks));
    columns.extend([
        number("jain", &rows, |run| run.jain),
        number("responsiveness_rpm", &rows, |run| run.responsiveness.map(|it| it.rpm)),
        number("working_latency_p98_ms", &rows, |run| run.responsiveness.map(|it| it.working_latency_p98_ms)),
        number("second_half_from_s", &rows, |run| run.second_half.map(|half| half.from_s)),
        number("second_half_throughput_mbps", &rows, |run| run.second_half.map(|half| half.throughput_mbps)),
        number("second_half_utilization", &rows, |run| run.second_half.map(|half| half.utilization)),
        number("second_half_share", &rows, |run| run.second_half?.share),
        number("second_half_queueing_delay_p95_ms", &rows, |run| run.second_half?.p95_ms),
        number("spread_n", &rows, |run| run.spread.map(|spread| spread.n as f64)),
        number("throughput_low_mbps", &rows, spread(|[low, _], _| low)),
        number("throughput_high_mbps", &rows, spread(|[_, high], _| high)),
        number("queueing_delay_p95_low_ms", &rows, spread(|_, [low, _]| low)),
        number("queueing_delay_p95_high_ms", &rows, spread(|_, [_, high]| high)),
        flag("unreliable", &rows, |run| run.unreliable),
    ]);
    Frame { columns }
}

/// Most flows of a run whose applications have columns.
const MOST_APPLICATIONS: usize = 40;

/// Returns a run a row: its identity, the columns of [`runs`] but those of several runs together, its setup,
/// and for every flow whose application saw something a column for each number, `main.completed`.
pub fn every_run<'a>(of: impl IntoIterator<Item = &'a Run>) -> Frame {
    let rows: Vec<&Run> = of.into_iter().collect();
    let several = ["spread_n", "throughput_low_mbps", "throughput_high_mbps"];
    let several = [&several[..], &["queueing_delay_p95_low_ms", "queueing_delay_p95_high_ms"]].concat();
    let mut columns =
        vec![text("run_id", &rows, |run| run.run_id.map_or_else(String::new, |id| id.to_string()))];
    columns
        .extend(runs(rows.iter().copied()).columns.into_iter().filter(|own| !several.contains(&&*own.name)));
    let setup =
        |value: fn(&Setup) -> String| move |run: &&Run| run.setup.as_ref().map_or_else(String::new, value);
    columns.extend([
        number("rtt_ms", &rows, |run| run.setup.as_ref().map(|setup| setup.rtt_ms)),
        text("buffer", &rows, setup(|setup| setup.buffer.clone())),
        text("reverse", &rows, setup(|setup| setup.reverse.clone())),
        number("trace_offset_s", &rows, |run| run.setup.as_ref().and_then(|setup| setup.trace_offset_s)),
        text("trace_spread", &rows, setup(|setup| setup.spread.to_string())),
        text("against", &rows, setup(|setup| setup.against.clone().unwrap_or_default())),
    ]);
    if rows.iter().any(|run| run.fairness.is_some()) {
        columns.extend([
            number("own_mbps", &rows, |run| run.fairness.map(|fairness| fairness.own_mbps)),
            number("competitor_mbps", &rows, |run| run.fairness.map(|fairness| fairness.competitor_mbps)),
            number("competitor_p95_ms", &rows, |run| run.fairness?.competitor_p95_ms),
            number("share", &rows, |run| run.fairness.map(|fairness| fairness.share)),
            number("harm_throughput", &rows, |run| run.fairness?.harm_throughput),
            number("harm_delay", &rows, |run| run.fairness?.harm_delay),
        ]);
    }
    columns.extend(applications(&rows));
    Frame { columns }
}

/// Returns the columns of [`runs`], and for every flow whose application saw something a column for each
/// number, `main.completed`.
pub fn runs_with_applications<'a>(of: impl IntoIterator<Item = &'a Run>) -> Frame {
    let rows: Vec<&Run> = of.into_iter().collect();
    let mut frame = runs(rows.iter().copied());
    frame.columns.extend(applications(&rows));
    frame
}

/// For every flow whose application saw something a column for each number, `main.completed`.
fn applications(rows: &[&Run]) -> Vec<Column> {
    let seen = rows.iter().flat_map(|run| run.flows.iter().take(MOST_APPLICATIONS)).flat_map(|flow| {
        flow.application
            .iter()
            .flat_map(|numbers| numbers.keys())
            .map(|name| (flow.name.clone(), name.clone()))
    });
    let seen: BTreeSet<(String, String)> = seen.collect();
    let columns = seen.into_iter().map(|(flow, name)| {
        number(&format!("{flow}.{name}"), rows, |run| {
            let flow = run.flows.iter().find(|own| own.name == flow)?;
            flow.application.as_ref()?.get(&name).copied()
        })
    });
    columns.collect()
}

/// Numbers by name as a JSON object; empty where there are none.
fn object(values: &BTreeMap<String, f64>) -> String {
    if values.is_empty() { String::new() } else { serde_json::json!(values).to_string() }
}

/// Returns a flow a row, the flows of a run together; `run` is the place of the run. What the application
/// saw, and what the controller showed of itself, are JSON objects, empty where there is nothing.
pub fn flows<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Frame {
    let runs = runs.into_iter().enumerate();
    let rows: Vec<(u64, &FlowOutcome)> =
        runs.flat_map(|(run, row)| row.flows.iter().map(move |flow| (run as u64, flow))).collect();
    let json = |values: Option<&BTreeMap<String, f64>>| values.map_or_else(String::new, object);
    let mut columns = vec![
        count("run", &rows, |(run, _)| *run),
        text("flow", &rows, |(_, flow)| flow.name.clone()),
        text("controller", &rows, |(_, flow)| flow.controller.clone()),
        number("throughput_mbps", &rows, |(_, flow)| Some(flow.throughput_mbps)),
        number("goodput_mbps", &rows, |(_, flow)| Some(flow.goodput_mbps)),
    ];
    columns.extend(summary("rtt", &rows, |(_, flow)| flow.rtt_ms));
    columns.extend([
        number("loss_percent", &rows, |(_, flow)| Some(flow.loss_percent)),
        count("retransmitted_packets", &rows, |(_, flow)| flow.retransmitted_packets),
        text("application", &rows, |(_, flow)| json(flow.application.as_ref())),
        text("state", &rows, |(_, flow)| json(flow.state.as_ref())),
    ]);
    Frame { columns }
}

/// Returns a link a row, the links of a run together; `run` is the place of the run. Which part of DualPI2
/// marked is a JSON object, empty for other queues.
pub fn links<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Frame {
    let runs = runs.into_iter().enumerate();
    let rows: Vec<(u64, &LinkOutcome)> =
        runs.flat_map(|(run, row)| row.links.iter().map(move |link| (run as u64, link))).collect();
    let mut columns = vec![
        count("run", &rows, |(run, _)| *run),
        text("link", &rows, |(_, link)| link.name.clone()),
        text("queue", &rows, |(_, link)| link.queue.clone()),
        number("capacity_mbps", &rows, |(_, link)| Some(link.capacity_mbps)),
        number("throughput_mbps", &rows, |(_, link)| Some(link.throughput_mbps)),
        number("utilization", &rows, |(_, link)| Some(link.utilization)),
    ];
    columns.extend(summary("queueing_delay", &rows, |(_, link)| link.queueing_delay_ms));
    columns.push(count("dropped_packets", &rows, |(_, link)| link.dropped_packets));
    columns.extend(marks(&rows, |(_, link)| link.marks));
    columns.push(text("marked_by", &rows, |(_, link)| object(&link.marked_by)));
    Frame { columns }
}

/// Returns a bin of a link a row: what the links of these runs showed over time, all below each other. A run
/// comes with the place that the column `run` names it by.
pub fn link_series<'a>(runs: impl IntoIterator<Item = (usize, &'a Run, &'a Series)>) -> Frame {
    let mut rows: Vec<(Bin<'a>, &LinkSeries)> = Vec::new();
    for (place, run, series) in runs {
        for link in &series.links {
            rows.extend((0..link.time_s.len()).map(|bin| (Bin { place, run, bin }, link)));
        }
    }
    let value = |values: &[f64], bin: &Bin<'_>| values.get(bin.bin).copied();
    let gap = |values: &[Option<f64>], bin: &Bin<'_>| values.get(bin.bin).copied().flatten();
    let mut columns = bins(&rows);
    columns.extend([
        text("link", &rows, |(_, link)| link.name.clone()),
        number("time_s", &rows, |(bin, link)| value(&link.time_s, bin)),
        number("capacity_mbps", &rows, |(bin, link)| value(&link.capacity_mbps, bin)),
        number("throughput_mbps", &rows, |(bin, link)| value(&link.throughput_mbps, bin)),
        number("queueing_delay_mean_ms", &rows, |(bin, link)| gap(&link.queueing_delay_mean_ms, bin)),
        number("queueing_delay_p95_ms", &rows, |(bin, link)| gap(&link.queueing_delay_p95_ms, bin)),
        number("accelerate_fraction", &rows, |(bin, link)| gap(&link.accelerate_fraction, bin)),
    ]);
    Frame { columns }
}

/// Returns a bin of a flow a row, as [`link_series`] does for links. Every value that a controller showed of
/// itself is a column, without values where a controller does not show it.
pub fn flow_series<'a>(runs: impl IntoIterator<Item = (usize, &'a Run, &'a Series)>) -> Frame {
    let mut rows: Vec<(Bin<'a>, &FlowSeries)> = Vec::new();
    for (place, run, series) in runs {
        for flow in &series.flows {
            rows.extend((0..flow.time_s.len()).map(|bin| (Bin { place, run, bin }, flow)));
        }
    }
    let value = |values: &[f64], bin: &Bin<'_>| values.get(bin.bin).copied();
    let mut columns = bins(&rows);
    columns.extend([
        text("flow", &rows, |(_, flow)| flow.name.clone()),
        number("time_s", &rows, |(bin, flow)| value(&flow.time_s, bin)),
        number("throughput_mbps", &rows, |(bin, flow)| value(&flow.throughput_mbps, bin)),
        number("cwnd_pkts", &rows, |(bin, flow)| value(&flow.cwnd_pkts, bin)),
        number("rtt_ms", &rows, |(bin, flow)| flow.rtt_ms.get(bin.bin).copied().flatten()),
    ]);
    let shown: BTreeSet<&String> = rows.iter().flat_map(|(_, flow)| flow.state.keys()).collect();
    let state = |name: &String| number(name, &rows, |(bin, flow)| value(flow.state.get(name)?, bin));
    columns.extend(shown.into_iter().map(state));
    Frame { columns }
}

/// Returns a frame of a call a row, as [`link_series`] does for bins of links.
pub fn call_frames<'a>(runs: impl IntoIterator<Item = (usize, &'a Run, &'a Series)>) -> Frame {
    let mut rows: Vec<(Bin<'a>, &FlowSeries)> = Vec::new();
    for (place, run, series) in runs {
        for flow in &series.flows {
            rows.extend((0..flow.frames.taken_s.len()).map(|bin| (Bin { place, run, bin }, flow)));
        }
    }
    let gap = |values: &[Option<f64>], bin: &Bin<'_>| values.get(bin.bin).copied().flatten();
    let mut columns = bins(&rows);
    columns.extend([
        text("flow", &rows, |(_, flow)| flow.name.clone()),
        number("taken_s", &rows, |(bin, flow)| flow.frames.taken_s.get(bin.bin).copied()),
        count("size_bytes", &rows, |(bin, flow)| flow.frames.size_bytes.get(bin.bin).copied().unwrap_or(0)),
        flag("key_frame", &rows, |(bin, flow)| flow.frames.is_key.get(bin.bin).copied().unwrap_or(false)),
        number("delay_ms", &rows, |(bin, flow)| gap(&flow.frames.delay_ms, bin)),
        number("playout_delay_ms", &rows, |(bin, flow)| gap(&flow.frames.playout_delay_ms, bin)),
    ]);
    Frame { columns }
}

/// One bin of a time series, or one frame of a call.
struct Bin<'a> {
    place: usize,
    run: &'a Run,
    bin: usize,
}

/// Which run each bin is of.
fn bins<R>(rows: &[(Bin<'_>, R)]) -> Vec<Column> {
    vec![
        count("run", rows, |(bin, _)| bin.place as u64),
        text("scheme", rows, |(bin, _)| bin.run.scheme.clone()),
        text("trace", rows, |(bin, _)| bin.run.trace.clone()),
    ]
}

fn text<R>(name: &str, rows: &[R], value: impl Fn(&R) -> String) -> Column {
    Column { name: name.into(), values: Values::Text(rows.iter().map(value).collect()) }
}

fn count<R>(name: &str, rows: &[R], value: impl Fn(&R) -> u64) -> Column {
    Column { name: name.into(), values: Values::Count(rows.iter().map(value).collect()) }
}

fn flag<R>(name: &str, rows: &[R], value: impl Fn(&R) -> bool) -> Column {
    Column { name: name.into(), values: Values::Flag(rows.iter().map(value).collect()) }
}

fn number<R>(name: &str, rows: &[R], value: impl Fn(&R) -> Option<f64>) -> Column {
    let finite = |row| value(row).filter(|value| value.is_finite());
    Column { name: name.into(), values: Values::Number(rows.iter().map(finite).collect()) }
}

/// Five columns: mean, median, 95th and 99th percentile, maximum.
fn summary<R>(name: &str, rows: &[R], value: impl Fn(&R) -> Option<Summary> + Copy) -> [Column; 5] {
    let part = |part: &str, pick: fn(Summary) -> f64| {
        number(&format!("{name}_{part}_ms"), rows, |row| value(row).map(pick))
    };
    [
        part("mean", |s| s.mean),
        part("p50", |s| s.p50),
        part("p95", |s| s.p95),
        part("p99", |s| s.p99),
        part("max", |s| s.max),
    ]
}

fn marks<R>(rows: &[R], value: impl Fn(&R) -> MarkCounts + Copy) -> [Column; 3] {
    [
        count("accelerate_marks", rows, |row| value(row).accelerate),
        count("brake_marks", rows, |row| value(row).brake),
        count("ce_marks", rows, |row| value(row).ce),
    ]
}

#[cfg(test)]
mod tests {
    use brakelight_scenario::outcome::{Responsiveness, SecondHalf, SignalDelay, Spread};

    use super::*;
    use crate::testing;

    #[test]
    fn rows_are_added_to_equal_columns_alone() {
        let frame = |name: &str, values| {
            Frame::new(vec![Column { name: name.into(), values: Values::Count(values) }]).unwrap()
        };
        let mut all = Frame::default();
        all.append(frame("a", vec![1, 2])).unwrap();
        all.append(frame("a", vec![3])).unwrap();
        assert_eq!(all, frame("a", vec![1, 2, 3]));
        all.append(frame("b", vec![4])).unwrap_err();
        let words = Column { name: "a".into(), values: Values::Text(vec!["4".into()]) };
        all.append(Frame::new(vec![words]).unwrap()).unwrap_err();
    }

    /// Every column of `runs.csv`, and where its value stands in the JSON row.
    const COLUMNS: [(&str, &str); 45] = [
        ("scheme", "/scheme"),
        ("trace", "/trace"),
        ("seed", "/seed"),
        ("duration_s", "/duration_s"),
        ("capacity_mbps", "/capacity_mbps"),
        ("throughput_mbps", "/throughput_mbps"),
        ("goodput_mbps", "/goodput_mbps"),
        ("utilization", "/utilization"),
        ("queueing_delay_mean_ms", "/queueing_delay_ms/mean"),
        ("queueing_delay_p50_ms", "/queueing_delay_ms/p50"),
        ("queueing_delay_p95_ms", "/queueing_delay_ms/p95"),
        ("queueing_delay_p99_ms", "/queueing_delay_ms/p99"),
        ("queueing_delay_max_ms", "/queueing_delay_ms/max"),
        ("one_way_delay_mean_ms", "/one_way_delay_ms/mean"),
        ("one_way_delay_p50_ms", "/one_way_delay_ms/p50"),
        ("one_way_delay_p95_ms", "/one_way_delay_ms/p95"),
        ("one_way_delay_p99_ms", "/one_way_delay_ms/p99"),
        ("one_way_delay_max_ms", "/one_way_delay_ms/max"),
        ("rtt_mean_ms", "/rtt_ms/mean"),
        ("rtt_p50_ms", "/rtt_ms/p50"),
        ("rtt_p95_ms", "/rtt_ms/p95"),
        ("rtt_p99_ms", "/rtt_ms/p99"),
        ("rtt_max_ms", "/rtt_ms/max"),
        ("signal_delay_p95_ms", "/signal_delay_ms/p95"),
        ("loss_percent", "/loss_percent"),
        ("delivered_packets", "/delivered_packets"),
        ("dropped_packets", "/dropped_packets"),
        ("retransmitted_packets", "/retransmitted_packets"),
        ("accelerate_marks", "/marks/accelerate"),
        ("brake_marks", "/marks/brake"),
        ("ce_marks", "/marks/ce"),
        ("jain", "/jain"),
        ("responsiveness_rpm", "/responsiveness/rpm"),
        ("working_latency_p98_ms", "/responsiveness/working_latency_p98_ms"),
        ("second_half_from_s", "/second_half/from_s"),
        ("second_half_throughput_mbps", "/second_half/throughput_mbps"),
        ("second_half_utilization", "/second_half/utilization"),
        ("second_half_share", "/second_half/share"),
        ("second_half_queueing_delay_p95_ms", "/second_half/p95_ms"),
        ("spread_n", "/spread/n"),
        ("throughput_low_mbps", "/spread/throughput_mbps/0"),
        ("throughput_high_mbps", "/spread/throughput_mbps/1"),
        ("queueing_delay_p95_low_ms", "/spread/p95_ms/0"),
        ("queueing_delay_p95_high_ms", "/spread/p95_ms/1"),
        ("unreliable", "/unreliable"),
    ];

    /// Rows in which no two numbers are equal, so that no value can stand in for another; and one that lacks
    /// all that may be missing.
    fn different_rows() -> Vec<Run> {
        let mut next = 0.5;
        let mut another = || {
            next += 1.25;
            next
        };
        let mut delay = || {
            Some(Summary { mean: another(), p50: another(), p95: another(), p99: another(), max: another() })
        };
        let (queueing_delay_ms, one_way_delay_ms, rtt_ms) = (delay(), delay(), delay());
        let full = Run {
            scheme: "abc:delta=100ms,eta=0.9".into(),
            trace: "a \"quoted\" name".into(),
            seed: 7,
            duration_s: 60.125,
            capacity_mbps: 101.5,
            throughput_mbps: 102.5,
            goodput_mbps: 103.5,
            utilization: 0.875,
            queueing_delay_ms,
            one_way_delay_ms,
            rtt_ms,
            signal_delay_ms: Some(SignalDelay { p95: 104.5 }),
            loss_percent: 0.0625,
            delivered_packets: 1_000_001,
            dropped_packets: 1_002,
            retransmitted_packets: 1_003,
            marks: MarkCounts { accelerate: 1_004, brake: 1_005, ce: 1_006 },
            jain: Some(0.984_375),
            responsiveness: Some(Responsiveness { rpm: 109.5, working_latency_p98_ms: 110.5 }),
            second_half: Some(SecondHalf {
                from_s: 30.125,
                throughput_mbps: 111.5,
                utilization: 0.75,
                share: Some(0.25),
                p95_ms: Some(112.5),
            }),
            spread: Some(Spread { n: 10, throughput_mbps: [105.5, 106.5], p95_ms: [107.5, 108.5] }),
            unreliable: true,
            ..Run::default()
        };
        vec![full, Run::default()]
    }

    #[test]
    fn every_field_of_the_csv_file_is_the_value_of_its_column_in_the_json_row() {
        let rows = different_rows();
        let frame = super::runs(&rows);
        let text = frame.csv_heading() + &frame.csv_rows();
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let heading: Vec<String> = reader.headers().unwrap().iter().map(str::to_string).collect();
        assert_eq!(heading, COLUMNS.map(|(name, _)| name));
        let mut read = 0;
        for (record, run) in reader.records().zip(&rows) {
            let (record, json) = (record.unwrap(), serde_json::to_value(run).unwrap());
            for (field, (name, place)) in record.iter().zip(COLUMNS) {
                let expected = match json.pointer(place) {
                    None | Some(serde_json::Value::Null) => String::new(),
                    Some(serde_json::Value::String(text)) => text.clone(),
                    // JSON writes 1.0 where the table has 1.
                    Some(serde_json::Value::Number(number)) if number.is_f64() => {
                        number.as_f64().unwrap().to_string()
                    }
                    Some(other) => other.to_string(),
                };
                assert_eq!(field, expected, "{name}");
            }
            read += 1;
        }
        assert_eq!(read, rows.len());
    }

    #[test]
    fn a_link_says_which_part_of_its_queue_marked() {
        let marked_by =
            [("coupling", 3.0), ("threshold", 12.0)].map(|(part, n)| (part.to_string(), n)).into();
        let dualpi2 = LinkOutcome { marked_by, ..LinkOutcome::default() };
        let row = Run { links: vec![dualpi2, LinkOutcome::default()], ..Run::default() };
        let frame = links([&row]);
        let column = frame.columns().iter().find(|column| column.name == "marked_by").unwrap();
        let expected = vec![r#"{"coupling":3.0,"threshold":12.0}"#.to_string(), String::new()];
        assert_eq!(column.values, Values::Text(expected));
    }

    #[test]
    fn links_and_flows_know_their_run() {
        let runs_: Vec<Run> = testing::outcomes(1).into_iter().take(2).map(|outcome| outcome.run).collect();
        for frame in [links(&runs_), flows(&runs_)] {
            assert_eq!(frame.columns()[0].values, Values::Count(vec![0, 1]));
        }
    }

    #[test]
    fn every_bin_of_a_series_is_a_row_and_what_a_controller_does_not_show_is_missing() {
        let mut outcomes: Vec<_> = testing::outcomes(3).into_iter().take(2).collect();
        let second = outcomes[1].series.as_mut().unwrap();
        second.flows[0].state.insert("ssthresh_pkts".into(), vec![f64::NAN, 7.0]);
        let runs = || {
            let all = outcomes.iter().enumerate();
            all.map(|(place, outcome)| (place, &outcome.run, outcome.series.as_ref().unwrap()))
        };
        let (links, flows) = (link_series(runs()), flow_series(runs()));
        assert_eq!((links.rows(), flows.rows()), (6, 6));
        let column = |frame: &Frame, name: &str| {
            frame.columns().iter().find(|column| column.name == name).unwrap().values.clone()
        };
        assert_eq!(column(&links, "run"), Values::Count(vec![0, 0, 0, 1, 1, 1]));
        let shown = column(&flows, "ssthresh_pkts");
        assert_eq!(shown, Values::Number(vec![None, None, None, None, Some(7.0), None]));
        let Values::Number(times) = column(&flows, "time_s") else { unreachable!("times are numbers") };
        assert_eq!(times[..3], times[3..]);
    }

    #[test]
    fn keys_come_first_and_take_the_place_of_columns_of_their_name() {
        let key = |name: &str| Column { name: name.into(), values: Values::Text(vec!["x".into()]) };
        let frame = runs(&[Run::default()]).keyed_by(vec![key("run_id"), key("scheme")]).unwrap();
        let names: Vec<&str> = frame.columns().iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names[..3], ["run_id", "scheme", "trace"]);
        assert!(runs(&[Run::default()]).keyed_by(vec![key("a"), key("a")]).is_err());
        assert!(runs(&[]).keyed_by(vec![key("a")]).is_err(), "one value, no rows");
    }
}
