//! What was measured for claims, as rows: every run with its place in its experiment's matrix.

use brakelight_scenario::documents::Claim;
use brakelight_scenario::outcome::Run;

use crate::error::Error;
use crate::frame::{self, Column, Frame, Values};
use crate::output::File;
use crate::text::claims::verdict;

/// One run of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The experiment.
    pub experiment: String,
    /// Its place in the matrix: dimension and label.
    pub axes: Vec<(String, String)>,
    /// What came out.
    pub run: Run,
}

/// Judged claims, and what they were judged by.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Judged {
    /// The claims.
    pub claims: Vec<Claim>,
    /// Every run of every experiment, in the order of their files.
    pub measurements: Vec<Measurement>,
}

impl Judged {
    /// Returns a run a row: its experiment, its number, every axis of any experiment (empty where an
    /// experiment does not have it), its `run_id`, and the columns of `runs.csv`.
    pub fn runs_frame(&self) -> Result<Frame, Error> {
        let rows = &self.measurements;
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in rows.iter().flat_map(|row| &row.axes) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let axes = names.into_iter().map(|name| {
            let label = |row: &Measurement| {
                row.axes.iter().find(|(axis, _)| axis == name).map(|(_, label)| label.clone())
            };
            text(name, rows.iter().map(|row| label(row).unwrap_or_default()))
        });
        let number = Column { name: "run".into(), values: Values::Count((0..rows.len() as u64).collect()) };
        let keys = [text("experiment", rows.iter().map(|row| row.experiment.clone())), number];
        let id = |row: &Measurement| row.run.run_id.map(|id| id.to_string()).unwrap_or_default();
        let ids = text("run_id", rows.iter().map(id));
        frame::runs(rows.iter().map(|row| &row.run))
            .keyed_by(keys.into_iter().chain(axes).chain([ids]).collect())
    }

    /// Returns the verdict on each claim: its id and nothing in words.
    fn verdicts(&self) -> Result<Frame, Error> {
        let column = |name, value: fn(&Claim) -> String| text(name, self.claims.iter().map(value));
        Frame::new(vec![
            column("id", |claim| claim.id.clone()),
            column("verdict", |claim| verdict(claim.verdict).to_string()),
        ])
    }

    /// Returns `runs`, `flows`, `links` and `claims` as CSV and, where the feature `parquet` is on, as
    /// Parquet. The column `run` of flows and links is that of their run.
    pub fn files(&self) -> Result<Vec<File>, Error> {
        let runs = || self.measurements.iter().map(|row| &row.run);
        let frames = [
            ("runs", self.runs_frame()?),
            ("flows", frame::flows(runs())),
            ("links", frame::links(runs())),
            ("claims", self.verdicts()?),
        ];
        let mut files = Vec::new();
        for (name, frame) in &frames {
            files.push(File::new(format!("{name}.csv"), frame.csv_heading() + &frame.csv_rows()));
            #[cfg(feature = "parquet")]
            {
                let mut writer = frame::parquet::Writer::new(Vec::new(), frame)?;
                writer.write(frame)?;
                files.push(File::new(format!("{name}.parquet"), writer.finish()?));
            }
        }
        Ok(files)
    }
}

fn text(name: &str, values: impl Iterator<Item = String>) -> Column {
    Column { name: name.to_string(), values: Values::Text(values.collect()) }
}

#[cfg(test)]
mod tests {
    use brakelight_scenario::experiment;
    use brakelight_scenario::trace::names::Names;

    use crate::Simulator;
    use crate::reproduce::Judge;

    #[test]
    fn every_run_is_a_row_and_every_axis_a_column() {
        let file = "id = \"MINE\"\ntitle = \"t\"\nsource = \"s\"\nschemes = [\"vegas\", \"abc:eta={eta}\"]\n\
                    traces = [\"fixed\"]\nseeds = 2\nduration = \"1s\"\n[sweep]\neta = [0.9, 0.95]\n\
                    [[claim]]\nclaim = \"it sends\"\ncheck = \"utilization > 0.01\"\n";
        let experiments = [experiment::read("x.toml", file).unwrap()];
        let judge = Judge { runner: &Simulator, names: &Names::default(), progress: &(), any_cost: false };
        let judged = judge.judged(&experiments).unwrap();
        assert_eq!((judged.measurements.len(), judged.claims.len()), (8, 1));
        assert_eq!(judged.claims, judge.claims(&experiments).unwrap());
        let files = judged.files().unwrap();
        let csv = |name: &str| {
            let file = files.iter().find(|file| file.name == name).unwrap();
            let text = String::from_utf8(file.contents.clone()).unwrap();
            text.lines().map(str::to_string).collect::<Vec<_>>()
        };
        let runs = csv("runs.csv");
        let columns: Vec<&str> = runs[0].split(',').take(6).collect();
        assert_eq!(columns, ["experiment", "run", "scheme", "trace", "eta", "run_id"]);
        assert!(runs.iter().skip(1).all(|row| row.starts_with("MINE,")), "{runs:?}");
        let etas: Vec<&str> = runs.iter().skip(1).filter_map(|row| row.split(',').nth(4)).collect();
        assert_eq!(etas.iter().filter(|eta| **eta == "0.95").count(), 4, "{etas:?}");
        assert_eq!((runs.len(), csv("flows.csv").len()), (9, 9));
        assert_eq!(csv("claims.csv"), ["id,verdict", "MINE,holds"]);
        #[cfg(feature = "parquet")]
        assert!(files.iter().any(|file| file.name == "runs.parquet" && file.contents.starts_with(b"PAR1")));
    }
}
