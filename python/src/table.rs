//! Results.

use brakelight::lab::frame;
use brakelight::lab::text::Screen;
use brakelight::lab::{self, origin};
use brakelight::scenario::outcome::{Run, Series};
use pyo3::prelude::*;

use crate::error::{InputError, failed};
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
            "link_series" => frame::link_series(self.series()?),
            "flow_series" => frame::flow_series(self.series()?),
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
