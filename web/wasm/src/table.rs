//! Outcomes as tables: the columns that `runs.csv` of the command and the tables of the Python package have.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brakelight::lab::frame;
use brakelight::scenario::outcome::{Run, Series};
use serde::Deserialize;
use serde_json::{Value, json};

/// A run that ended.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Its row.
    pub run: Run,
    /// Its time series, where they were kept.
    pub series: Option<Series>,
}

/// Which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Table {
    /// A run a row.
    Runs,
    /// A flow a row.
    Flows,
    /// A link a row.
    Links,
    /// A bin of a link a row.
    LinkSeries,
    /// A bin of a flow a row.
    FlowSeries,
}

/// What file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Text.
    Csv,
    /// An Arrow IPC file.
    Arrow,
}

impl Table {
    /// Returns the file: `text`, or `base64` where its bytes are no text.
    pub fn file(self, form: Form, runs: &[Recorded]) -> Result<Value, String> {
        let rows = || runs.iter().map(|recorded| &recorded.run);
        let all = runs.iter().enumerate();
        let series = all.filter_map(|(place, one)| Some((place, &one.run, one.series.as_ref()?)));
        let frame = match self {
            Table::Runs => frame::every_run(rows()),
            Table::Flows => frame::flows(rows()),
            Table::Links => frame::links(rows()),
            Table::LinkSeries => frame::link_series(series),
            Table::FlowSeries => frame::flow_series(series),
        };
        match form {
            Form::Csv => Ok(json!({ "text": frame.csv_heading() + &frame.csv_rows() })),
            Form::Arrow => {
                let file = frame.arrow_file().map_err(|error| error.to_string())?;
                Ok(json!({ "base64": STANDARD.encode(file) }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workbench::Workbench;

    fn ask(workbench: &mut Workbench, request: &Value) -> Value {
        let answer: Value =
            serde_json::from_str(&workbench.answer(request.to_string().as_bytes(), b"")).unwrap();
        assert_eq!(answer.get("error"), None, "{request}");
        answer["ok"].clone()
    }

    #[test]
    fn what_a_run_returned_becomes_every_table_in_both_forms() {
        let mut workbench = Workbench::new();
        let what = json!({ "setup": { "scheme": "bbr", "trace": "step", "duration": "2s" } });
        ask(&mut workbench, &json!({ "do": "begin", "what": what, "series": true }));
        ask(&mut workbench, &json!({ "do": "advance", "seconds": 10 }));
        let finished = ask(&mut workbench, &json!({ "do": "finish" }));
        let run: Value = serde_json::from_str(finished["outcome"].as_str().unwrap()).unwrap();
        let recorded = json!([{ "run": run, "series": finished["series"] }, { "run": run, "series": null }]);
        for (table, begins, rows) in [
            ("runs", "run_id,scheme,trace,seed,", 2),
            ("flows", "run,flow,controller,", 2),
            ("links", "run,link,queue,", 4),
            ("link-series", "run,scheme,trace,link,time_s,", 200),
            ("flow-series", "run,scheme,trace,flow,time_s,", 100),
        ] {
            let request =
                |form: &str| json!({ "do": "table", "table": table, "form": form, "runs": recorded });
            let csv = ask(&mut workbench, &request("csv"))["text"].as_str().unwrap().to_string();
            assert!(csv.starts_with(begins), "{table}: {csv}");
            assert_eq!(csv.lines().count(), 1 + rows, "{table}");
            let arrow = ask(&mut workbench, &request("arrow"));
            let arrow = STANDARD.decode(arrow["base64"].as_str().unwrap()).unwrap();
            assert!(arrow.starts_with(b"ARROW1\0\0") && arrow.ends_with(b"ARROW1"), "{table}");
        }
    }
}
