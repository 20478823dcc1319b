//! How far a measurement is from its bound, seed by seed: what a verdict needs that knows when it is unsure.

use super::expression::{ExpressionError, Grid, Sides, Value};
use super::table::Table;
use super::{Assertion, Check, edge};

/// What one point of the matrix says of a check that is a single comparison, such as `loss <= bound`.
#[derive(Clone, Debug, PartialEq)]
pub struct Margin {
    /// The point in words; empty where there is but one.
    pub place: String,
    /// The left side, of the medians over the seeds.
    pub measured: f64,
    /// The right side, of the same.
    pub bound: f64,
    /// Whether the bound is the most, rather than the least, that is allowed.
    pub at_most: bool,
    /// What the claim's `show` is there; none where the claim has none, or no number.
    pub shown: Option<f64>,
    /// The left side, of each seed alone.
    pub by_seed: Vec<f64>,
    /// The median's 95 % interval of how far the left side is within the bound, below zero outside: the
    /// difference is taken seed by seed. None with fewer than six seeds.
    pub within: Option<[f64; 2]>,
}

impl Assertion {
    /// Returns the margins of its check, one for each point of the matrix; none if it is not a single
    /// comparison with `<`, `<=`, `>` or `>=`.
    ///
    /// # Errors
    /// If the measurements lack something.
    pub fn margins(&self, table: &Table) -> Result<Vec<Margin>, ExpressionError> {
        let Check::Expression { check, show } = &self.check else { return Ok(Vec::new()) };
        let Some(Sides { grid: sides, at_most }) = check.sides(table)? else { return Ok(Vec::new()) };
        let shown = show.as_ref().map(|show| show.evaluate(table)).transpose()?;
        let shown = shown.as_ref().and_then(Value::numbers);
        let alone = table.by_seed();
        let alone: Vec<Grid<[f64; 2]>> = alone
            .iter()
            .filter_map(|seed| check.sides(seed).transpose())
            .map(|sides| sides.map(|sides| sides.grid))
            .collect::<Result<_, _>>()?;
        let inside = |sides: &[f64; 2]| if at_most { sides[1] - sides[0] } else { sides[0] - sides[1] };
        let differences: Vec<Grid<f64>> = alone.iter().map(|grid| grid.map(inside)).collect();
        let within = edge::depth(alone.len())
            .map(|depth| Grid::between(&differences.iter().collect::<Vec<_>>(), depth));
        let margins = sides.cells().map(|(point, both)| Margin {
            place: sides.label(table, point),
            measured: both[0],
            bound: both[1],
            at_most,
            shown: shown.and_then(|shown| shown.beside(&sides, point)).copied(),
            by_seed: alone.iter().filter_map(|grid| grid.beside(&sides, point)).map(|both| both[0]).collect(),
            within: within.as_ref().and_then(|within| within.beside(&sides, point)).copied(),
        });
        Ok(margins.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::read;
    use crate::outcome::Run;

    /// Ten seeds of two schemes: `a` loses 1 to 10 %, `b` twice that.
    fn margins(check: &str) -> Vec<Margin> {
        let text = format!(
            "id = \"x\"\ntitle = \"t\"\nsource = \"s\"\nschemes = {{ a = \"cubic\", b = \"newreno\" }}\ntraces = [\"one\"]\n\
             [[claim]]\nclaim = \"c\"\ncheck = \"{check}\"\nshow = \"loss_percent['b']\""
        );
        let experiment = read("x.toml", &text).unwrap();
        let mut table = Table::new(&experiment.dimensions);
        for seed in 1..=10_u32 {
            for (scheme, times) in [(0, 1.0), (1, 2.0)] {
                table.add(&[scheme, 0], &Run { loss_percent: times * f64::from(seed), ..Run::default() });
            }
        }
        experiment.claims[0].margins(&table).unwrap()
    }

    #[test]
    fn a_margin_is_taken_seed_by_seed() {
        let [margin] = &margins("loss_percent['a'] <= loss_percent['b'] + 1")[..] else {
            panic!("one point")
        };
        assert_eq!((margin.measured, margin.bound, margin.shown), (5.5, 12.0, Some(11.0)));
        assert_eq!(margin.by_seed, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
        // b + 1 - a is 2 to 11; of ten values the second lowest and highest.
        assert_eq!(margin.within, Some([3.0, 10.0]));
        let [least] = &margins("loss_percent['a'] >= 0.5 * loss_percent['b']")[..] else { panic!("one") };
        assert_eq!((least.at_most, least.within), (false, Some([0.0, 0.0])), "pairs agree in all seeds");
    }

    #[test]
    fn every_point_has_its_margin_and_what_is_no_bound_has_none() {
        let both = margins("loss_percent < 12");
        assert_eq!(both.iter().map(|margin| margin.place.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert!(margins("loss_percent['a'] ~ 5").is_empty());
        assert!(margins("loss_percent['a'] < 20 and loss_percent['b'] < 30").is_empty());
    }
}
