//! Results.

use std::borrow::Cow;

use brakelight::lab::frame;
use brakelight::lab::table::Drawn;
use brakelight::lab::text::Screen;
use brakelight::lab::{self, origin};
use brakelight::scenario::outcome::{LinkEvent, Outcome, Run, Series};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::{InputError, failed, of_lab};
use crate::frame::Frame;
use crate::travel::{Reduced, packed, reduced_to_bytes, unpacked};

/// Rows of results with their series.
#[pyclass(frozen, module = "brakelight._brakelight")]
pub struct Table {
    /// The table.
    pub table: lab::Table,
    /// Whether its rows are schemes on traces, or one scenario.
    pub compares: bool,
}

/// What a table holds, in bytes.
#[derive(Serialize, Deserialize)]
struct Packed<'a> {
    compares: bool,
    title: Cow<'a, str>,
    setting: Cow<'a, [(String, String)]>,
    caveats: Cow<'a, [String]>,
    notes: Cow<'a, [String]>,
    runs: Cow<'a, [Run]>,
    every: Cow<'a, [Vec<Run>]>,
    first: Cow<'a, [Outcome]>,
    /// Of every first outcome: they are part of no document.
    delays: Vec<Vec<[f64; 2]>>,
    drawn: Vec<(usize, Vec<Vec<usize>>)>,
    reference: Cow<'a, Option<String>>,
    failed: Cow<'a, [String]>,
}

#[pymethods]
impl Table {
    /// The table of these bytes.
    #[new]
    fn new(bytes: &[u8]) -> PyResult<Self> {
        let packed: Packed<'_> = unpacked(bytes)?;
        let mut first = packed.first.into_owned();
        for (outcome, delays) in first.iter_mut().zip(packed.delays) {
            outcome.delays = delays;
        }
        let table = lab::Table {
            title: packed.title.into_owned(),
            setting: packed.setting.into_owned(),
            caveats: packed.caveats.into_owned(),
            notes: packed.notes.into_owned(),
            runs: packed.runs.into_owned(),
            every: packed.every.into_owned(),
            first,
            drawn: packed.drawn.into_iter().map(|(links, paths)| Drawn { links, paths }).collect(),
            reference: packed.reference.into_owned(),
            failed: packed.failed.into_owned(),
            // Packed tables are of comparisons and runs, which give none.
            advice: None,
        };
        Ok(Table { table, compares: packed.compares })
    }

    fn __reduce__<'py>(own: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let Table { table, compares } = own.get();
        let bytes = packed(&Packed {
            compares: *compares,
            title: Cow::Borrowed(&table.title),
            setting: Cow::Borrowed(&table.setting),
            caveats: Cow::Borrowed(&table.caveats),
            notes: Cow::Borrowed(&table.notes),
            runs: Cow::Borrowed(&table.runs),
            every: Cow::Borrowed(&table.every),
            first: Cow::Borrowed(&table.first),
            delays: table.first.iter().map(|outcome| outcome.delays.clone()).collect(),
            drawn: table.drawn.iter().map(|drawn| (drawn.links, drawn.paths.clone())).collect(),
            reference: Cow::Borrowed(&table.reference),
            failed: Cow::Borrowed(&table.failed),
        })?;
        reduced_to_bytes(own.as_any(), &bytes)
    }

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

    /// `runs`, `flows`, `links`, `link_series`, `flow_series`, `frames` or `link_logs`.
    fn frame(&self, kind: &str) -> PyResult<Frame> {
        let runs = || self.table.runs.iter();
        let frame = match kind {
            "runs" => frame::runs_with_applications(runs()),
            "flows" => frame::flows(runs()),
            "links" => frame::links(runs()),
            "link_series" => frame::link_series(self.series()?),
            "flow_series" => frame::flow_series(self.series()?),
            "frames" => self.call_frames()?,
            "link_logs" => self.logs()?,
            other => {
                return Err(InputError::new_err(format!(
                    "unknown table `{other}`: valid are runs, flows, links, link_series, flow_series, frames, link_logs"
                )));
            }
        };
        Frame::of(&frame)
    }

    /// The rows as JSON: an array of objects.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.table.runs).map_err(failed)
    }

    /// What to deploy as JSON: an object, or `null`.
    fn decision(&self) -> PyResult<String> {
        serde_json::to_string(&self.table.decision()).map_err(failed)
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
    /// A frame of a call a row. Fails where there are none.
    fn call_frames(&self) -> PyResult<frame::Frame> {
        let frames = frame::call_frames(self.series()?);
        if frames.rows() == 0 && !self.table.runs.is_empty() {
            return Err(InputError::new_err(
                "there are no frames: only a simulated call has them, such as `compare(..., traffic=\"call\", series=True)`",
            ));
        }
        Ok(frames)
    }

    /// An event of a link's log a row. Fails where there are no logs.
    fn logs(&self) -> PyResult<frame::Frame> {
        let rows = self.table.runs.iter().zip(&self.table.first).enumerate();
        let events: Vec<_> = rows
            .flat_map(|(place, (run, first))| first.link_logs.iter().map(move |log| (place, run, log)))
            .flat_map(|(place, run, log)| log.events.iter().map(move |event| (place, run, log, event)))
            .collect();
        if self.table.first.iter().all(|first| first.link_logs.is_empty()) && !self.table.runs.is_empty() {
            return Err(InputError::new_err(
                "there are no logs of links: ask for them by `record = { link_logs = true }` in the scenario",
            ));
        }
        // Kind, time, packets, bytes and delay.
        let parts = |event: &LinkEvent| match *event {
            LinkEvent::Opportunity { ms, bytes } => ("opportunity", ms, None, bytes, None),
            LinkEvent::Arrival { ms, bytes } => ("arrival", ms, Some(1), bytes, None),
            LinkEvent::Departure { ms, bytes, delay_ms } => ("departure", ms, Some(1), bytes, Some(delay_ms)),
            LinkEvent::Drop { ms, packets, bytes } => ("drop", ms, Some(packets), bytes, None),
        };
        let column = |name: &str, values| frame::Column { name: name.into(), values };
        let text = |of: &dyn Fn(&Run, &str, &LinkEvent) -> String| {
            let values = events.iter().map(|(_, run, log, event)| of(run, &log.name, event));
            frame::Values::Text(values.collect())
        };
        let number = |of: &dyn Fn(&LinkEvent) -> Option<u32>| {
            frame::Values::Number(events.iter().map(|(.., event)| of(event).map(f64::from)).collect())
        };
        let columns = vec![
            column("run", frame::Values::Count(events.iter().map(|(place, ..)| *place as u64).collect())),
            column("scheme", text(&|run, _, _| run.scheme.clone())),
            column("trace", text(&|run, _, _| run.trace.clone())),
            column("link", text(&|_, link, _| link.to_string())),
            column("event", text(&|_, _, event| parts(event).0.to_string())),
            column("time_ms", number(&|event| Some(parts(event).1))),
            column("packets", number(&|event| parts(event).2)),
            column("bytes", number(&|event| Some(parts(event).3))),
            column("delay_ms", number(&|event| parts(event).4)),
        ];
        frame::Frame::new(columns).map_err(of_lab)
    }

    /// Rows with their place and their first seed's series. Fails where there are none.
    fn series(&self) -> PyResult<Vec<(usize, &Run, &Series)>> {
        let rows = self.table.runs.iter().zip(&self.table.first).enumerate();
        let series: Vec<_> =
            rows.filter_map(|(place, (run, first))| Some((place, run, first.series.as_ref()?))).collect();
        if series.is_empty() && !self.table.runs.is_empty() {
            return Err(InputError::new_err(
                "there are no series: ask for them by `series=True`, or by `record` in the scenario",
            ));
        }
        Ok(series)
    }
}
