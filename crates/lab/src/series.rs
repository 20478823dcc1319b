//! Time series as CSV or Parquet, link logs as Mahimahi writes them.

#[cfg(feature = "parquet")]
pub mod parquet;

use brakelight_scenario::link_log;
use brakelight_scenario::outcome::{FlowSeries, LinkSeries, Outcome, Series};

use crate::error::Error;
use crate::output::File;
use crate::text::csv;

/// The file format of time series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SeriesFormat {
    /// Text.
    Csv,
    /// Columns, compressed.
    #[cfg(feature = "parquet")]
    Parquet,
}

/// A table of numbers: named columns of equal length, some of them with gaps.
pub type Columns = Vec<(String, Vec<Option<f64>>)>;

/// Returns the series of one run, one file per link and per flow in the folder `series`, named after `stem`.
pub fn files<'a>(
    stem: &'a str,
    series: &'a Series,
    format: SeriesFormat,
) -> impl Iterator<Item = Result<File, Error>> + 'a {
    let links = series.links.iter();
    let links = links.map(move |link| (format!("{stem}.link-{}", file_name(&link.name)), link_columns(link)));
    let flows = series.flows.iter();
    let flows = flows.map(move |flow| (format!("{stem}.flow-{}", file_name(&flow.name)), flow_columns(flow)));
    links.chain(flows).map(move |(name, columns)| match format {
        SeriesFormat::Csv => Ok(File::new(format!("series/{name}.csv"), to_csv(&columns))),
        #[cfg(feature = "parquet")]
        SeriesFormat::Parquet => Ok(File::new(format!("series/{name}.parquet"), parquet::encode(&columns)?)),
    })
}

/// Returns the links' logs of one run that `command` made, one file per link in the folder `links`, named
/// after `stem`.
pub fn link_logs<'a>(
    stem: &'a str,
    outcome: &'a Outcome,
    command: &'a str,
) -> impl Iterator<Item = Result<File, Error>> + 'a {
    outcome.link_logs.iter().map(move |log| {
        let mut text = String::new();
        let written = link_log::write(log, command, &mut text);
        written.map_err(|error| Error::Encode { format: "link log", reason: error.to_string() })?;
        Ok(File::new(format!("links/{stem}.{}.log", file_name(&log.name)), text))
    })
}

/// Returns `text` as part of a file's name: what a shell or a file system would trip over becomes a hyphen.
pub fn file_name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._+=,".contains(c) { c } else { '-' };
    text.chars().map(plain).collect()
}

fn link_columns(link: &LinkSeries) -> Columns {
    let all = |values: &[f64]| values.iter().copied().map(Some).collect();
    vec![
        ("time_s".into(), all(&link.time_s)),
        ("capacity_mbps".into(), all(&link.capacity_mbps)),
        ("throughput_mbps".into(), all(&link.throughput_mbps)),
        ("queueing_delay_mean_ms".into(), link.queueing_delay_mean_ms.clone()),
        ("queueing_delay_p95_ms".into(), link.queueing_delay_p95_ms.clone()),
        ("accelerate_fraction".into(), link.accelerate_fraction.clone()),
    ]
}

fn flow_columns(flow: &FlowSeries) -> Columns {
    let all = |values: &[f64]| -> Vec<Option<f64>> {
        let finite = values.iter().map(|value| value.is_finite().then_some(*value));
        // A value that a controller stopped showing has no more entries.
        finite.chain(std::iter::repeat(None)).take(flow.time_s.len()).collect()
    };
    let mut columns = vec![
        ("time_s".into(), all(&flow.time_s)),
        ("throughput_mbps".into(), all(&flow.throughput_mbps)),
        ("cwnd_pkts".into(), all(&flow.cwnd_pkts)),
        ("rtt_ms".into(), flow.rtt_ms.clone()),
    ];
    columns.extend(flow.state.iter().map(|(name, values)| (name.clone(), all(values))));
    columns
}

fn to_csv(columns: &Columns) -> String {
    let heading: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let length = columns.first().map_or(0, |(_, values)| values.len());
    let rows = (0..length).map(|row| -> Vec<String> {
        columns.iter().map(|(_, values)| csv::field(values.get(row).copied().flatten())).collect()
    });
    csv::document(&heading, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn series_are_as_long_as_their_time_and_leave_gaps_empty() {
        let outcome = &testing::outcomes(4)[0];
        let series = outcome.series.as_ref().unwrap();
        let text = to_csv(&link_columns(&series.links[0]));
        let mut lines = text.lines();
        let heading = "time_s,capacity_mbps,throughput_mbps,queueing_delay_mean_ms,queueing_delay_p95_ms,accelerate_fraction";
        assert_eq!(lines.next(), Some(heading));
        assert_eq!(lines.clone().count(), 4);
        assert!(lines.all(|line| line.ends_with(",,,")), "the sample begins with an outage: {text}");
        let mut flow = series.flows[0].clone();
        flow.state.insert("ssthresh_pkts".into(), vec![f64::NAN, 7.0]);
        let columns = flow_columns(&flow);
        assert!(columns.iter().all(|(_, values)| values.len() == 4));
        assert_eq!(columns.last().unwrap().1, [None, Some(7.0), None, None]);
    }

    #[test]
    fn names_of_schemes_become_names_of_files() {
        assert_eq!(file_name("abc:delta=133ms,eta=0.98 on ../x"), "abc-delta=133ms,eta=0.98-on-..-x");
    }
}
