//! Results.

use std::collections::BTreeSet;

use brakelight::lab::frame::{self, Column, Values};
use brakelight::lab::text::Screen;
use brakelight::lab::{self, origin};
use brakelight::scenario::outcome::{FlowSeries, LinkSeries, Series};
use pyo3::prelude::*;

use crate::error::{InputError, failed, of_lab};
use crate::frame::Frame;

/// Rows of results with their series.
#[pyclass(frozen, module = "brakelight._brakelight")]
pub struct Table {
    /// The table.
    pub table: lab::Table,
    /// Whether its rows are schemes on traces, or one scenario.
    pub compares: bool,
}

#[pymethods]
impl Table {
    #[getter]
    fn title(&self) -> &str {
        &self.table.title
    }

    #[getter]
    fn setting(&self) -> Vec<(String, String)> {
        self.table.setting.clone()
    }

    #[getter]
    fn notes(&self) -> Vec<String> {
        self.table.notes.clone()
    }

    fn warnings(&self) -> Vec<String> {
        self.table.warnings()
    }

    /// `runs`, `flows`, `links`, `link_series` or `flow_series`.
    fn frame(&self, kind: &str) -> PyResult<Frame> {
        let runs = || self.table.runs.iter();
        let frame = match kind {
            "runs" => frame::runs(runs()),
            "flows" => frame::flows(runs()),
            "links" => frame::links(runs()),
            "link_series" => self.link_series()?,
            "flow_series" => self.flow_series()?,
            other => {
                return Err(InputError::new_err(format!(
                    "unknown table `{other}`: valid are runs, flows, links, link_series, flow_series"
                )));
            }
        };
        Frame::of(&frame)
    }

    /// The rows as JSON: an array of objects.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.table.runs).map_err(failed)
    }

    fn csv(&self) -> String {
        self.table.csv()
    }

    fn text(&self, width: usize) -> String {
        let screen = Screen { width, ..Screen::default() };
        if self.compares { self.table.comparison(&screen) } else { self.table.scenarios(&screen) }
    }

    fn html(&self, seed: u64) -> String {
        self.table.report(&origin::origin(seed)).html()
    }
}

impl Table {
    /// Rows with their first seed's series. Fails where there are none.
    fn series(&self) -> PyResult<Vec<(usize, &Series)>> {
        let first = self.table.first.iter().enumerate();
        let series: Vec<_> = first.filter_map(|(row, first)| Some((row, first.series.as_ref()?))).collect();
        if series.is_empty() && !self.table.runs.is_empty() {
            return Err(InputError::new_err(
                "there are no series: ask for them by `series=True`, or by `record` in the scenario",
            ));
        }
        Ok(series)
    }

    fn link_series(&self) -> PyResult<lab::frame::Frame> {
        let series = self.series()?;
        let links: Vec<(usize, &LinkSeries)> =
            series.iter().flat_map(|(row, series)| series.links.iter().map(|link| (*row, link))).collect();
        let mut columns = self.keys(links.iter().map(|(row, link)| (*row, link.time_s.len())));
        columns.push(words("link", links.iter().map(|(_, link)| (link.name.as_str(), link.time_s.len()))));
        let mut add = |name: &str, pick: &dyn Fn(&LinkSeries) -> Vec<Option<f64>>| {
            columns.push(numbers(name, links.iter().flat_map(|(_, link)| pick(link)).collect()));
        };
        add("time_s", &|link| all(&link.time_s));
        add("capacity_mbps", &|link| all(&link.capacity_mbps));
        add("throughput_mbps", &|link| all(&link.throughput_mbps));
        add("queueing_delay_mean_ms", &|link| link.queueing_delay_mean_ms.clone());
        add("queueing_delay_p95_ms", &|link| link.queueing_delay_p95_ms.clone());
        add("accelerate_fraction", &|link| link.accelerate_fraction.clone());
        lab::frame::Frame::new(columns).map_err(of_lab)
    }

    fn flow_series(&self) -> PyResult<lab::frame::Frame> {
        let series = self.series()?;
        let flows: Vec<(usize, &FlowSeries)> =
            series.iter().flat_map(|(row, series)| series.flows.iter().map(|flow| (*row, flow))).collect();
        let mut columns = self.keys(flows.iter().map(|(row, flow)| (*row, flow.time_s.len())));
        columns.push(words("flow", flows.iter().map(|(_, flow)| (flow.name.as_str(), flow.time_s.len()))));
        let mut add = |name: &str, pick: &dyn Fn(&FlowSeries) -> Vec<Option<f64>>| {
            columns.push(numbers(name, flows.iter().flat_map(|(_, flow)| pick(flow)).collect()));
        };
        add("time_s", &|flow| all(&flow.time_s));
        add("throughput_mbps", &|flow| all(&flow.throughput_mbps));
        add("cwnd_pkts", &|flow| all(&flow.cwnd_pkts));
        add("rtt_ms", &|flow| flow.rtt_ms.clone());
        // What the controllers show of themselves: each its own, none where it does not.
        let shown: BTreeSet<&String> = flows.iter().flat_map(|(_, flow)| flow.state.keys()).collect();
        for name in shown {
            add(name, &|flow| {
                let values = flow.state.get(name).map_or(&[][..], Vec::as_slice);
                let known = values.iter().map(|value| value.is_finite().then_some(*value));
                known.chain(std::iter::repeat(None)).take(flow.time_s.len()).collect()
            });
        }
        lab::frame::Frame::new(columns).map_err(of_lab)
    }

    /// Place, scheme and trace of rows, each as often as it is given with.
    fn keys(&self, rows: impl Iterator<Item = (usize, usize)> + Clone) -> Vec<Column> {
        let each = |(row, times)| std::iter::repeat_n(row as u64, times);
        let runs = &self.table.runs;
        vec![
            Column { name: "run".into(), values: Values::Count(rows.clone().flat_map(each).collect()) },
            words("scheme", rows.clone().map(|(row, times)| (runs[row].scheme.as_str(), times))),
            words("trace", rows.map(|(row, times)| (runs[row].trace.as_str(), times))),
        ]
    }
}

fn words<'a>(name: &str, values: impl Iterator<Item = (&'a str, usize)>) -> Column {
    let values = values.flat_map(|(text, times)| std::iter::repeat_n(text.to_string(), times));
    Column { name: name.into(), values: Values::Text(values.collect()) }
}

fn numbers(name: &str, values: Vec<Option<f64>>) -> Column {
    Column { name: name.into(), values: Values::Number(values) }
}

fn all(values: &[f64]) -> Vec<Option<f64>> {
    values.iter().copied().map(Some).collect()
}
