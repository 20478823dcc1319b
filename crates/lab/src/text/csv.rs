//! Rows for other programs, by RFC 4180: a heading, commas, quotes where they are needed.

use brakelight_scenario::outcome::{Run, Summary};

/// A document with a heading.
pub fn document<R: AsRef<[String]>>(heading: &[&str], rows: impl IntoIterator<Item = R>) -> String {
    let mut text = String::new();
    line(&mut text, heading.iter().copied());
    for row in rows {
        line(&mut text, row.as_ref().iter().map(String::as_str));
    }
    text
}

fn line<'a>(text: &mut String, fields: impl Iterator<Item = &'a str>) {
    for (index, field) in fields.enumerate() {
        if index > 0 {
            text.push(',');
        }
        // rfc4180 2.6, 2.7
        if field.contains([',', '"', '\n', '\r']) {
            text.push('"');
            text.push_str(&field.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(field);
        }
    }
    text.push('\n');
}

/// A number, or nothing.
pub fn field(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string())
}

/// The rows of `compare` and `run`: the JSON rows without their links and flows.
pub fn runs(runs: &[Run]) -> String {
    const HEADING: &[&str] = &[
        "scheme",
        "trace",
        "seed",
        "duration_s",
        "capacity_mbps",
        "throughput_mbps",
        "goodput_mbps",
        "utilization",
        "queueing_delay_mean_ms",
        "queueing_delay_p50_ms",
        "queueing_delay_p95_ms",
        "queueing_delay_p99_ms",
        "queueing_delay_max_ms",
        "one_way_delay_mean_ms",
        "one_way_delay_p50_ms",
        "one_way_delay_p95_ms",
        "one_way_delay_p99_ms",
        "one_way_delay_max_ms",
        "rtt_mean_ms",
        "rtt_p50_ms",
        "rtt_p95_ms",
        "rtt_p99_ms",
        "rtt_max_ms",
        "signal_delay_p95_ms",
        "loss_percent",
        "delivered_packets",
        "dropped_packets",
        "retransmitted_packets",
        "accelerate_marks",
        "brake_marks",
        "ce_marks",
        "jain",
        "spread_n",
        "throughput_low_mbps",
        "throughput_high_mbps",
        "queueing_delay_p95_low_ms",
        "queueing_delay_p95_high_ms",
        "unreliable",
    ];
    document(HEADING, runs.iter().map(row))
}

fn row(run: &Run) -> Vec<String> {
    let mut row = vec![run.scheme.clone(), run.trace.clone(), run.seed.to_string()];
    let rates = [run.duration_s, run.capacity_mbps, run.throughput_mbps, run.goodput_mbps, run.utilization];
    row.extend(rates.map(|value| field(Some(value))));
    for summary in [run.queueing_delay_ms, run.one_way_delay_ms, run.rtt_ms] {
        let parts = |s: Summary| [s.mean, s.p50, s.p95, s.p99, s.max].map(Some);
        row.extend(summary.map_or([None; 5], parts).map(field));
    }
    row.push(field(run.signal_delay_ms.map(|delay| delay.p95)));
    row.push(field(Some(run.loss_percent)));
    let counts = [run.delivered_packets, run.dropped_packets, run.retransmitted_packets];
    row.extend(counts.map(|count| count.to_string()));
    row.extend([run.marks.accelerate, run.marks.brake, run.marks.ce].map(|count| count.to_string()));
    row.push(field(run.jain));
    row.push(run.spread.map_or_else(String::new, |spread| spread.n.to_string()));
    let spread = run.spread.map_or([None; 4], |spread| {
        let ([a, b], [c, d]) = (spread.throughput_mbps, spread.p95_ms);
        [a, b, c, d].map(Some)
    });
    row.extend(spread.map(field));
    row.push(run.unreliable.to_string());
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_only_what_needs_it() {
        let rows =
            [["plain".to_string(), "a,b".to_string()], ["say \"x\"".to_string(), "two\nlines".to_string()]];
        assert_eq!(
            document(&["one", "two"], rows),
            "one,two\nplain,\"a,b\"\n\"say \"\"x\"\"\",\"two\nlines\"\n"
        );
    }

    #[test]
    fn every_row_is_as_long_as_the_heading() {
        let text = runs(&[Run::default()]);
        let lengths: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(lengths, [38, 38]);
    }
}
