//! A look at the claims in two minutes: the first seed alone, and the experiments that two cores then have
//! time for, the cheapest first. What there is no time for is said by name.

use std::collections::BTreeSet;

use brakelight_scenario::cost::Cost;
use brakelight_scenario::experiment::Experiment;
use brakelight_scenario::identity;
use brakelight_scenario::trace::names::Names;

use crate::error::Error;

/// Packets and timers, by their estimate, that two cores simulate in less than two minutes.
const STEPS: f64 = 1.2e8;

/// What of some experiments there is time for.
#[derive(Clone, Debug, PartialEq)]
pub struct Quick {
    /// Those that run, in their order, with their first seed alone.
    pub experiments: Vec<Experiment>,
    /// The names of all others, in their order.
    pub left_out: Vec<String>,
}

impl Quick {
    /// Of `experiments`, with the traces in `names`. What their runs cost is estimated, so the choice is the
    /// same on every machine.
    ///
    /// # Errors
    /// If a trace is there and cannot be read.
    pub fn of(experiments: Vec<Experiment>, names: &Names) -> Result<Self, Error> {
        Quick::within(STEPS, experiments, names)
    }

    fn within(steps: f64, mut experiments: Vec<Experiment>, names: &Names) -> Result<Self, Error> {
        let mut priced = Vec::with_capacity(experiments.len());
        for (index, experiment) in experiments.iter_mut().enumerate() {
            // The runs of a point stand together, and differ in their seed.
            experiment.jobs.dedup_by(|next, kept| next.point == kept.point);
            priced.push((index, runs(experiment, names)?));
        }
        let all = |runs: &[(String, f64)]| runs.iter().map(|(_, steps)| steps).sum::<f64>();
        priced.sort_by(|(_, one), (_, other)| all(one).total_cmp(&all(other)));
        let (mut left, mut known, mut chosen) = (steps, BTreeSet::new(), BTreeSet::new());
        for (index, runs) in priced {
            // A run that another experiment has too costs nothing more.
            let more: f64 = runs.iter().filter(|(id, _)| !known.contains(id)).map(|(_, steps)| steps).sum();
            if more <= left {
                left -= more;
                chosen.insert(index);
                known.extend(runs.into_iter().map(|(id, _)| id));
            }
        }
        let mut quick = Quick { experiments: Vec::new(), left_out: Vec::new() };
        for (index, experiment) in experiments.into_iter().enumerate() {
            match chosen.contains(&index) {
                true => quick.experiments.push(experiment),
                false => quick.left_out.push(experiment.id),
            }
        }
        Ok(quick)
    }

    /// Says what was not done, in a sentence or two.
    pub fn note(&self) -> String {
        let seeds = "quick: one seed of each run, so orderings and medians are a first look";
        match &self.left_out[..] {
            [] => seeds.to_string(),
            names => format!("{seeds}; left out for their length: {}", names.join(", ")),
        }
    }
}

/// The runs of an experiment by what distinguishes them, with their estimates; none where a recording is not
/// there.
fn runs(experiment: &Experiment, names: &Names) -> Result<Vec<(String, f64)>, Error> {
    let Some(traces) = super::traces(experiment, names)? else { return Ok(Vec::new()) };
    let run = |job: &super::Job| (identity::canonical(&job.scenario), Cost::of(&job.scenario, &traces).steps);
    let mut runs: Vec<_> = experiment.jobs.iter().map(run).collect();
    runs.sort_by(|one, other| one.0.cmp(&other.0));
    runs.dedup_by(|next, kept| next.0 == kept.0);
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use brakelight_scenario::experiment;

    use super::*;
    use crate::reproduce::all;

    fn made(id: &str, schemes: &str, duration: &str) -> Experiment {
        let text = format!(
            "id = \"{id}\"\ntitle = \"t\"\nsource = \"s\"\nschemes = {schemes}\ntraces = [\"fixed\"]\nseeds = 3\n\
             duration = \"{duration}\"\n[[claim]]\nclaim = \"c\"\ncheck = \"utilization > 0\""
        );
        experiment::read("x.toml", &text).unwrap()
    }

    fn ids(experiments: &[Experiment]) -> Vec<&str> {
        experiments.iter().map(|experiment| experiment.id.as_str()).collect()
    }

    #[test]
    fn the_first_seed_of_every_point_is_kept() {
        let quick = Quick::of(vec![made("A", "[\"cubic\", \"vegas\"]", "1s")], &Names::default()).unwrap();
        let seeds: Vec<_> =
            quick.experiments[0].jobs.iter().map(|job| (job.point[0], job.scenario.seed)).collect();
        assert_eq!(seeds, [(0, 1), (1, 1)]);
        assert_eq!(quick.note(), "quick: one seed of each run, so orderings and medians are a first look");
    }

    #[test]
    fn the_cheapest_run_and_the_others_are_named() {
        let two = "[\"cubic\", \"vegas\"]";
        let made = || vec![made("A", two, "100s"), made("B", two, "10s"), made("C", "[\"cubic\"]", "40s")];
        let one = |index: usize| {
            let runs = runs(&made()[index], &Names::default()).unwrap();
            runs.iter().map(|(_, steps)| steps).sum::<f64>()
        };
        // One seed of B, and all of C, which has three.
        let quick = Quick::within(one(1) / 3.0 + one(2), made(), &Names::default()).unwrap();
        assert_eq!(ids(&quick.experiments), ["B", "C"]);
        assert_eq!(quick.left_out, ["A"]);
        assert!(quick.note().ends_with("; left out for their length: A"), "{}", quick.note());
        let none = Quick::within(0.0, made(), &Names::default()).unwrap();
        assert!(none.experiments.is_empty() && none.left_out.len() == 3);
    }

    /// Two experiments with the same runs cost as much as one.
    #[test]
    fn a_shared_run_counts_once() {
        let made = || vec![made("A", "[\"cubic\"]", "100s"), made("B", "{ same = \"cubic\" }", "100s")];
        let one: f64 = runs(&made()[0], &Names::default()).unwrap().iter().map(|(_, steps)| steps).sum();
        let quick = Quick::within(one / 3.0 * 1.01, made(), &Names::default()).unwrap();
        assert_eq!(ids(&quick.experiments), ["A", "B"]);
    }

    #[test]
    fn most_experiments_fit() {
        let quick = Quick::of(all().unwrap(), &Names::default()).unwrap();
        assert!(quick.experiments.len() > 2 * quick.left_out.len(), "{:?}", quick.left_out);
    }
}
