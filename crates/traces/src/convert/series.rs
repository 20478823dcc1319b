//! Values of a file, each with its time, made into stretches of whole milliseconds.
//!
//! ```text
//! a value that says its end   lasts until then
//! another                     lasts until the next one; the last as long as the values mostly do
//! values of one time          count as one, their mean
//! a gap                       what no value covers, and what a value without end lasts beyond 5 medians
//! ```
//!
//! A gap is left out and not filled: what the link did there is not known.

use brakelight_core::units::Rate;

/// How many times the median a value without an end may last.
const LONGEST: u64 = 5;

/// A value of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// When it begins, in milliseconds of any origin.
    pub start: i64,
    /// When it ends, after it begins; `None` where the file does not say.
    pub end: Option<i64>,
    /// The rate, in bit/s.
    pub rate: f64,
}

/// Stretches, and what of the file is not in them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Series {
    /// Length in milliseconds and rate of each.
    pub stretches: Vec<(u64, Rate)>,
    gaps: u64,
    left_out_ms: u64,
}

impl Series {
    /// Returns the stretches of values whose times never decrease, or `None` if there is no value.
    pub(super) fn of(samples: &[Sample]) -> Option<Self> {
        let starts: Vec<i64> = samples.iter().map(|sample| sample.start).collect();
        Series::among(samples, &starts)
    }

    /// The same of values among others that were left out: `starts` are those of all of them, and tell how
    /// long values mostly last.
    pub(super) fn among(samples: &[Sample], starts: &[i64]) -> Option<Self> {
        let merged = merged(samples);
        let last = merged.len().checked_sub(1)?;
        let mut lengths: Vec<u64> =
            starts.windows(2).map(|pair| pair[0].abs_diff(pair[1])).filter(|length| *length > 0).collect();
        lengths.sort_unstable();
        let median = lengths.get(lengths.len().saturating_sub(1) / 2).copied().unwrap_or(1_000);
        let mut series = Series::default();
        for (index, sample) in merged.iter().enumerate() {
            let until_next = merged.get(index + 1).map(|next| sample.start.abs_diff(next.start));
            let own = match (sample.end, until_next) {
                (Some(end), _) => end.abs_diff(sample.start),
                (None, Some(next)) if next <= LONGEST * median => next,
                (None, _) => median,
            };
            let length = until_next.map_or(own, |next| own.min(next));
            series.stretches.push((length, Rate::from_bps_f64(sample.rate)));
            let gap = if index == last { 0 } else { until_next.unwrap_or(0) - length };
            series.gaps += u64::from(gap > 0);
            series.left_out_ms = series.left_out_ms.saturating_add(gap);
        }
        Some(series)
    }

    /// Says what was left out, if anything was.
    pub(super) fn warning(&self) -> Option<String> {
        (self.gaps > 0).then(|| {
            format!(
                "{} gaps, {:.1} s in all, hold no value and were left out: what the link did there is not known",
                self.gaps,
                self.left_out_ms as f64 / 1e3
            )
        })
    }
}

/// One value for each time.
fn merged(samples: &[Sample]) -> Vec<Sample> {
    samples
        .chunk_by(|a, b| a.start == b.start)
        .map(|same| Sample {
            start: same[0].start,
            end: same.iter().filter_map(|sample| sample.end).max(),
            rate: same.iter().map(|sample| sample.rate).sum::<f64>() / same.len() as f64,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(samples: &[(i64, Option<i64>, f64)]) -> (Vec<(u64, u64)>, Option<String>) {
        let samples: Vec<Sample> =
            samples.iter().map(|&(start, end, rate)| Sample { start, end, rate }).collect();
        let series = Series::of(&samples).unwrap();
        let stretches = series.stretches.iter().map(|(ms, rate)| (*ms, rate.bps())).collect();
        (stretches, series.warning())
    }

    #[test]
    fn a_value_lasts_until_the_next_and_the_last_as_long_as_most() {
        let open = |start, rate| (start, None, rate);
        assert_eq!(
            series(&[open(10, 5.0), open(30, 7.0), open(50, 9.0)]),
            (vec![(20, 5), (20, 7), (20, 9)], None)
        );
        assert_eq!(series(&[open(7, 5.0)]), (vec![(1_000, 5)], None));
    }

    #[test]
    fn values_of_one_time_count_as_their_mean() {
        let twice = [(0, None, 4.0), (1_000, None, 2.0), (1_000, None, 6.0), (2_000, None, 1.0)];
        assert_eq!(series(&twice).0, [(1_000, 4), (1_000, 4), (1_000, 1)]);
    }

    #[test]
    fn gaps_are_left_out_and_counted() {
        let ends = [(0, Some(100), 4.0), (100, Some(200), 5.0), (1_200, Some(1_300), 6.0)];
        let said =
            "1 gaps, 1.0 s in all, hold no value and were left out: what the link did there is not known";
        assert_eq!(series(&ends), (vec![(100, 4), (100, 5), (100, 6)], Some(said.to_string())));
        let open = [(0, None, 4.0), (100, None, 5.0), (200, None, 5.0), (5_200, None, 6.0)];
        let (stretches, warning) = series(&open);
        assert_eq!(stretches, [(100, 4), (100, 5), (100, 5), (100, 6)]);
        assert!(warning.unwrap().starts_with("1 gaps, 4.9 s in all"));
    }

    #[test]
    fn an_end_after_the_next_value_is_cut_there() {
        assert_eq!(series(&[(0, Some(110), 4.0), (100, Some(200), 5.0)]), (vec![(100, 4), (100, 5)], None));
    }
}
