//! How much of a verdict hangs on the seeds. A metric is the median over the runs of its point. The check is
//! judged again with each seed alone, and the share of seeds at which it holds says how sure the verdict is.
//!
//! The interval of a median goes from the d-th lowest to the d-th highest of n runs and holds it with a
//! probability of 1 - 2 P(B < d), B binomial(n, 1/2) (conover99 3.2). d is the largest with 95 % and more: 2
//! for ten runs. Fewer than six runs have no such interval. A threshold lies in the interval just where at
//! least d seeds hold and at least d do not.

use super::expression::{Expression, Grid, Value};
use super::table::Table;

/// The confidence of an interval.
const CONFIDENCE: f64 = 0.95;

/// The most numbers whose intervals a note has.
const MOST_INTERVALS: usize = 6;

/// The measurements of each seed alone.
pub(super) struct Seeds(Vec<Table>);

impl Seeds {
    /// Splits the measurements; there is nothing to split where points have one run, or not all as many.
    pub(super) fn of(table: &Table) -> Self {
        Seeds(table.by_seed())
    }

    /// Returns what the seeds say of a check with these verdicts by point; empty where they say nothing else.
    /// `show` is what its row shows.
    pub(super) fn note(
        &self,
        check: &Expression,
        show: Option<&Expression>,
        verdicts: &Grid<bool>,
    ) -> String {
        let alone: Vec<Grid<bool>> = self.0.iter().filter_map(|table| check.check(table).ok()).collect();
        let seeds = alone.len();
        if seeds < 2 || seeds < self.0.len() {
            return String::new();
        }
        let all = alone.iter().filter(|grid| grid.holds()).count();
        let Some(depth) = depth(seeds) else {
            let agree = all == if verdicts.holds() { seeds } else { 0 };
            return if agree { String::new() } else { format!("holds with {all} of {seeds} seeds") };
        };
        let open = |held: usize| (depth..=seeds - depth).contains(&held);
        // How many seeds hold at each point, beside the verdict there.
        let points: Vec<(bool, usize)> = verdicts
            .points()
            .map(|(point, verdict)| (verdict, alone.iter().filter(|grid| grid.is_true_at(point)).count()))
            .collect();
        let deciding: Vec<_> = points
            .iter()
            .filter(|(verdict, _)| *verdict == verdicts.holds())
            .map(|(_, held)| *held)
            .collect();
        let edge = match verdicts.holds() {
            // One point is enough to make a claim fail.
            true => deciding.iter().any(|held| open(*held)),
            false => deciding.iter().all(|held| open(*held)),
        };
        if !edge {
            return String::new();
        }
        let intervals = self.intervals(check, show, depth);
        let separator = if intervals.is_empty() { "" } else { "; 95 % intervals of the medians: " };
        format!("on a knife edge: holds with {all} of {seeds} seeds{separator}{intervals}")
    }

    /// The intervals of the numbers that a row shows, in words; none where there are many.
    fn intervals(&self, check: &Expression, show: Option<&Expression>, depth: usize) -> String {
        let values = |table: &Table| match show {
            Some(show) => show.evaluate(table).map(|value| vec![value]),
            None => check.measured(table),
        };
        let by_seed: Option<Vec<Vec<Value>>> = self.0.iter().map(|table| values(table).ok()).collect();
        let Some(by_seed) = by_seed else { return String::new() };
        let Some((table, first)) = self.0.first().zip(by_seed.first()) else { return String::new() };
        let shown = |place: usize| {
            let grids: Option<Vec<&Grid<f64>>> =
                by_seed.iter().map(|values| values.get(place).and_then(Value::numbers)).collect();
            grids.map(|grids| Grid::between(&grids, depth))
        };
        let intervals: Option<Vec<_>> = (0..first.len()).map(shown).collect();
        match intervals {
            Some(grids) if grids.iter().map(Grid::len).sum::<usize>() <= MOST_INTERVALS => {
                grids.iter().map(|grid| grid.show_intervals(table)).collect::<Vec<_>>().join("; ")
            }
            _ => String::new(),
        }
    }
}

/// Returns d of the median's interval for so many runs; none below six.
pub(super) fn depth(runs: usize) -> Option<usize> {
    let mut below = 0.0;
    let mut term = libm::exp2(-(runs as f64));
    let mut depth = 0;
    // P(B < d + 1) from P(B < d)
    while 2.0 * (below + term) <= 1.0 - CONFIDENCE {
        below += term;
        term *= (runs - depth) as f64 / (depth + 1) as f64;
        depth += 1;
    }
    (depth > 0).then_some(depth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::table::Dimension;
    use crate::outcome::Run;

    /// A throughput of 1 to 10 at `slow` and ten times that at `fast`, by seed, lowest first, of two schemes.
    fn ten_seeds() -> Table {
        let labels = ["slow", "fast"].map(str::to_string).to_vec();
        let mut table = Table::new(&[Dimension { name: "scheme".to_string(), labels }]);
        for seed in 1..=10_u32 {
            for (point, times) in [(0, 1.0), (1, 10.0)] {
                let run = Run { throughput_mbps: times * f64::from(seed), ..Run::default() };
                table.add(&[point], &run);
            }
        }
        table
    }

    fn note_of(table: &Table, check: &str) -> String {
        let check = Expression::parse(check).unwrap();
        Seeds::of(table).note(&check, None, &check.check(table).unwrap())
    }

    #[test]
    fn a_threshold_in_the_interval_of_the_median_is_a_knife_edge() {
        let table = ten_seeds();
        // The medians are 5.5 and 55, their intervals 2 to 9 and 20 to 90.
        let note = note_of(&table, "throughput_mbps['slow'] > 5");
        assert_eq!(note, "on a knife edge: holds with 5 of 10 seeds; 95 % intervals of the medians: 2 to 9");
        for sure in ["throughput_mbps['slow'] > 1.5", "throughput_mbps['slow'] > 9.5"] {
            assert_eq!(note_of(&table, sure), "", "{sure}");
        }
    }

    #[test]
    fn a_claim_that_fails_surely_at_one_point_is_on_no_edge() {
        let table = ten_seeds();
        // It fails at `slow` in all seeds, and at `fast` in half of them.
        assert_eq!(note_of(&table, "throughput_mbps > 55"), "");
        let both = note_of(&table, "throughput_mbps > 2");
        assert!(both.starts_with("on a knife edge: holds with 8 of 10 seeds"), "{both}");
    }

    #[test]
    fn a_single_seed_says_nothing() {
        let mut table = Table::new(&[]);
        table.add(&[], &Run { throughput_mbps: 1.0, ..Run::default() });
        assert_eq!(note_of(&table, "throughput_mbps > 0.5"), "");
        table.add(&[], &Run { throughput_mbps: 4.0, ..Run::default() });
        assert_eq!(note_of(&table, "throughput_mbps > 2"), "holds with 1 of 2 seeds");
    }

    /// Table A3 of conover99, and the text's example.
    #[test]
    fn the_interval_of_a_median_has_the_ranks_of_the_binomial() {
        let ranks = [1, 5, 6, 8, 9, 10, 12, 15, 20, 30].map(depth);
        let expected = [None, None, Some(1), Some(1), Some(2), Some(2), Some(3), Some(4), Some(6), Some(10)];
        assert_eq!(ranks, expected);
    }
}
