//! The numbers that claims state beside what was measured, and how far off all of them are.
//!
//! ```text
//! error of a number n, measured m:   |ln(m / n)|;   of a bound: 0 where it is kept, else |ln(m / bound)|
//! ```
//!
//! Counts of claims that hold decide on knife edges: a number that is off by 14 % counts as one that is
//! exact, and one that is off by 16 % as one that is off by a factor of ten. The error tells these apart.

use brakelight_scenario::documents::{Claim, ExperimentTally, NumberError, Tally, Verdict};
use brakelight_scenario::experiment::{Check, Experiment, Target};

/// Ratios beyond this factor, or below its inverse, count as this.
pub(crate) const WIDEST: f64 = 8.0;

/// A measured number beside the number of a claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Number {
    /// What was measured, as a multiple of the claim's number.
    pub(crate) ratio: f64,
    /// Whether the claim states a bound.
    pub(crate) bound: bool,
    /// How far off it is: see the head of the module.
    pub(crate) error: f64,
}

/// The numbers that a verdict shows as measured: for each value, that of every point.
fn measured(shown: &str) -> Vec<Vec<f64>> {
    let value = |text: &str| {
        let labeled = text.contains(": ");
        let number = |part: &str| match part.rsplit_once(": ") {
            Some((_, number)) => number.parse().ok(),
            None if labeled => None,
            None => part.parse().ok(),
        };
        text.split(", ").filter_map(number).collect()
    };
    shown.split("; ").map(value).collect()
}

/// How far `value` is from what `target` allows, in factors; 0 within.
fn off(value: f64, target: Target) -> f64 {
    if value > target.most {
        libm::log(value / target.most)
    } else if value < target.least {
        libm::log(target.least / value.max(1e-9))
    } else {
        0.0
    }
}

/// Returns the numbers above zero that `claim` states. Of several points the one that is farthest off counts,
/// or the one farthest from the number where all are allowed.
pub(crate) fn numbers(check: &Check, claim: &Claim) -> Vec<Number> {
    let Check::Expression { check, show: None } = check else { return Vec::new() };
    let values = measured(&claim.measured);
    if values.len() != check.measured_values() {
        return Vec::new();
    }
    let number = |target: Target| {
        let ratio = |value: f64| value / target.number;
        let distance = |value: f64| libm::log(ratio(value).max(1e-9)).abs();
        let far = |value: f64| (off(value, target), distance(value));
        let positive = values[target.subject].iter().copied().filter(|value| *value >= 0.0);
        let value = positive.max_by(|a, b| far(*a).partial_cmp(&far(*b)).expect("logarithms of numbers"))?;
        let bound = target.is_bound();
        let error = if bound { off(value, target) } else { distance(value) };
        let error = error.min(libm::log(WIDEST));
        (target.number > 0.0).then_some(Number { ratio: ratio(value), bound, error })
    };
    check.targets().into_iter().filter_map(number).collect()
}

/// How far off the numbers of many claims are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// How many numbers there are.
    pub count: usize,
    /// The mean of |ln(measured / stated)|.
    pub mean: f64,
    /// Its 90th percentile.
    pub p90: f64,
}

impl Errors {
    /// Returns those of the papers' own claims, without the variants that no paper has; `None` where no claim
    /// states a number that was measured. `claims` are the verdicts on all claims of `experiments`, in their
    /// order.
    pub fn of(experiments: &[Experiment], claims: &[Claim]) -> Option<Errors> {
        let stated = experiments.iter().flat_map(|experiment| &experiment.claims).zip(claims);
        let papers = stated.filter(|(_, claim)| !claim.ours);
        let numbers = papers.flat_map(|(stated, claim)| numbers(&stated.check, claim));
        let mut errors: Vec<f64> = numbers.map(|number| number.error).collect();
        errors.sort_by(f64::total_cmp);
        let count = errors.len();
        // The nearest rank.
        let p90 = *errors.get((count * 9).div_ceil(10).saturating_sub(1))?;
        Some(Errors { count, mean: errors.iter().sum::<f64>() / count as f64, p90 })
    }

    /// Returns it as it stands in a document.
    pub fn document(&self) -> NumberError {
        NumberError { numbers: self.count, mean: self.mean, p90: self.p90 }
    }

    /// Returns a sentence for a page.
    pub fn in_words(&self) -> String {
        let Errors { count, mean, p90 } = self;
        format!(
            "Of {count} numbers that claims state, ours is off by {mean:.3} on average and by at most {p90:.3} in nine of \
             ten, as |ln(ours / paper)|. A bound that is kept is off by 0, and a factor beyond {WIDEST} counts as {WIDEST}."
        )
    }
}

/// Returns how many of the papers' own claims have which verdict, and how far off their numbers are. `claims`
/// are the verdicts on all claims of `experiments`, in their order.
pub fn tally(experiments: &[Experiment], claims: &[Claim]) -> Tally {
    let mut tally = Tally::default();
    for claim in claims.iter().filter(|claim| !claim.ours) {
        *match claim.verdict {
            Verdict::Holds => &mut tally.holds,
            Verdict::Fails => &mut tally.fails,
            Verdict::Refuted => &mut tally.refuted,
            Verdict::NeedsRecordings => &mut tally.needs_recordings,
            Verdict::NotCheckable => &mut tally.not_checkable,
        } += 1;
    }
    tally.error = Errors::of(experiments, claims).map(|errors| errors.document());
    tally
}

/// Returns the [`tally`] of each of `experiments`, in their order. `claims` are the verdicts on all of their
/// claims, in that order.
pub fn tallies(experiments: &[Experiment], claims: &[Claim]) -> Vec<ExperimentTally> {
    let mut rest = claims;
    let of = |experiment: &Experiment| {
        let (own, others) = rest.split_at(experiment.claims.len().min(rest.len()));
        rest = others;
        ExperimentTally { id: experiment.id.clone(), tally: tally(std::slice::from_ref(experiment), own) }
    };
    experiments.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use brakelight_scenario::experiment;

    use super::*;

    /// The numbers of one claim with this check, measured as `shown`; and all of its experiment's errors.
    fn read(check: &str, shown: &str) -> (Vec<Number>, Option<Errors>) {
        let text = format!(
            "id = \"X\"\ntitle = \"t\"\nsource = \"s\"\nschemes = [\"abc\"]\ntraces = [\"fixed\"]\n\
             [[claim]]\nclaim = \"c\"\ncheck = \"{check}\""
        );
        let experiment = experiment::read("x.toml", &text).unwrap();
        let mut claim = experiment.judge(None, &mut |_| None).remove(0);
        claim.measured = shown.into();
        let found = numbers(&experiment.claims[0].check, &claim);
        (found, Errors::of(&[experiment], &[claim]))
    }

    fn ratios(check: &str, shown: &str) -> Vec<(f64, bool)> {
        read(check, shown).0.iter().map(|number| (number.ratio, number.bound)).collect()
    }

    #[test]
    fn a_number_is_the_ratio_of_what_was_measured_to_what_is_stated() {
        assert_eq!(ratios("utilization ~ 0.5", "0.6"), [(1.2, false)]);
        assert_eq!(ratios("utilization < 0.5", "0.25"), [(0.5, true)]);
        assert_eq!(
            ratios("utilization ~ 0.5 and throughput_mbps ~ 1", "0.5; 2"),
            [(1.0, false), (2.0, false)]
        );
        assert_eq!(ratios("utilization ~ 0.5 and throughput_mbps ~ 1", "0.5"), []);
        assert_eq!(ratios("utilization < throughput_mbps", "0.5; 1"), []);
    }

    #[test]
    fn of_several_points_the_one_farthest_off_counts() {
        let shown = "case no loss, 2 flows: 1, case b: 8, case c: 0.5";
        assert_eq!(ratios("utilization ~ 1", shown), [(8.0, false)]);
        assert_eq!(ratios("utilization >= 2", shown), [(0.25, true)]);
    }

    #[test]
    fn a_number_is_off_by_its_logarithm_and_a_bound_by_what_it_is_broken_by() {
        let error = |check: &str, shown: &str| read(check, shown).0[0].error;
        let near = |is: f64, should: f64| assert!((is - should).abs() < 1e-9, "{is}, not {should}");
        near(error("utilization ~ 0.5", "0.6"), 1.2_f64.ln());
        near(error("utilization ~ 0.5", "0.25"), 2.0_f64.ln());
        near(error("utilization < 0.5", "0.01"), 0.0);
        near(error("utilization < 0.5", "0.75"), 1.5_f64.ln());
        near(error("utilization ~ 0.5", "0"), 8.0_f64.ln());
    }

    #[test]
    fn a_tally_counts_the_papers_own_claims_alone() {
        let text = |id: &str, claims: &str| {
            format!(
                "id = \"{id}\"\ntitle = \"t\"\nsource = \"s\"\nschemes = [\"abc\"]\ntraces = [\"fixed\"]\n{claims}"
            )
        };
        let claim =
            |check: &str, more: &str| format!("[[claim]]\nclaim = \"c\"\ncheck = \"{check}\"\n{more}");
        let first =
            text("X", &(claim("utilization ~ 0.5", "") + &claim("utilization ~ 0.5", "ours = true\n")));
        let experiments = [first, text("Y", &claim("utilization < 0.5", ""))]
            .map(|text| experiment::read("x.toml", &text).unwrap());
        let mut claims: Vec<Claim> =
            experiments.iter().flat_map(|experiment| experiment.judge(None, &mut |_| None)).collect();
        for (claim, (measured, verdict)) in claims.iter_mut().zip([
            ("0.25", Verdict::Fails),
            ("0.5", Verdict::Holds),
            ("0.4", Verdict::Holds),
        ]) {
            (claim.measured, claim.verdict) = (measured.into(), verdict);
        }
        let all = tally(&experiments, &claims);
        assert_eq!((all.holds, all.fails, all.refuted), (1, 1, 0));
        let error = all.error.unwrap();
        // ln 2 of the number, and 0 of the bound that is kept.
        assert_eq!(error.numbers, 2);
        assert!((error.mean - 2.0_f64.ln() / 2.0).abs() < 1e-9 && (error.p90 - 2.0_f64.ln()).abs() < 1e-9);
        let each = tallies(&experiments, &claims);
        assert_eq!(each.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["X", "Y"]);
        assert_eq!((each[0].tally.holds, each[0].tally.fails, each[1].tally.holds), (0, 1, 1));
        assert_eq!(each[1].tally.error.unwrap().mean, 0.0);
    }

    #[test]
    fn the_errors_of_many_numbers_are_their_mean_and_the_ninth_of_ten() {
        let (_, errors) = read("utilization ~ 0.5 and throughput_mbps ~ 1", "0.5; 2");
        let errors = errors.unwrap();
        assert_eq!(errors.count, 2);
        assert!((errors.mean - 2.0_f64.ln() / 2.0).abs() < 1e-9 && (errors.p90 - 2.0_f64.ln()).abs() < 1e-9);
        assert_eq!(read("utilization < throughput_mbps", "0.5; 1").1, None);
    }
}
