//! Whether a scheme is fit for a network: the criteria of a kit, run and judged.
//!
//! A criterion is a claim of an experiment file in `evaluations/`. Its check compares one measurement of the
//! scheme with a bound, which mostly follows from what Cubic and Reno do in the same scenario:
//!
//! ```text
//! within = bound - measured, or measured - bound: seed by seed, with the median's 95 % interval
//! pass     the whole interval is 0 or more
//! unsure   0 lies inside the interval
//! fail     the whole interval is below 0; or a run, or a measurement, failed
//! ```
//!
//! Of several points of a matrix the worst decides. [`against()`] compares with an earlier evaluation.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use brakelight_registry::{DEFAULT_CONTROLLER, Registry};
use brakelight_scenario::cost::Cost;
use brakelight_scenario::documents::{Criterion, Evaluated, Evaluation, Judgment, Point};
use brakelight_scenario::experiment::{
    self, Assertion, Check, EVALUATIONS, Experiment, Margin, TESTED, TESTED_BESIDE_OTHERS, Table,
};
use brakelight_scenario::identity::sha256;
use brakelight_scenario::outcome::Run;
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::names::Names;
use brakelight_sim::Traces;

use crate::error::Error;
use crate::output::File;
use crate::parallel;
use crate::progress::Progress;
use crate::reproduce::{self, traces};
use crate::runner::{Runner, Simulator};

mod against;
pub mod page;
#[cfg(test)]
mod tests;

pub use against::{Mismatch, against};

/// The kits there are: the criteria of RFC 9743, the test cases of draft-ietf-ccwg-bbr, those of RFC 8867
/// and RFC 8869 for calls, and all of them.
pub const KITS: [&str; 4] = ["rfc9743", "bbr", "media", "all"];

/// Controllers that stand for one that cannot run in a file's scenarios: the kits are right if one of them
/// can.
const STAND_INS: [&str; 2] = [DEFAULT_CONTROLLER, "bbr3"];

/// The folders of `kit`, in `evaluations/`.
fn folders(kit: &str) -> &[&str] {
    match KITS.iter().position(|known| *known == kit) {
        // `all` is the last, and has those of the others.
        Some(place) if place + 1 < KITS.len() => &KITS[place..=place],
        Some(_) => &KITS[..KITS.len() - 1],
        None => &[],
    }
}

/// How far an evaluation goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// One scenario or a few for each criterion: a minute.
    Quick,
    /// The same, and ranges of rates, delays, buffers and flows: a quarter of an hour.
    Full,
}

impl Level {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Level::Quick => "quick",
            Level::Full => "full",
        }
    }
}

/// What makes an evaluation fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailOn {
    /// A failed criterion that the kit's document asks for with MUST.
    Must,
    /// Any failed criterion.
    Any,
    /// The same, and any unsure one.
    Unsure,
    /// Nothing but a regression.
    Regression,
}

impl FailOn {
    /// Returns whether `criterion` makes an evaluation fail. A regression always does.
    pub fn includes(self, criterion: &Criterion) -> bool {
        let failed = match self {
            FailOn::Must => criterion.verdict == Judgment::Fail && criterion.requirement == "MUST",
            FailOn::Any => criterion.verdict == Judgment::Fail,
            FailOn::Unsure => criterion.verdict >= Judgment::Unsure,
            FailOn::Regression => false,
        };
        failed || criterion.regression.is_some()
    }
}

/// What is to be evaluated: the files of a kit, read for every scheme.
#[derive(Clone, Debug)]
pub struct Plan {
    kit: &'static str,
    level: Level,
    schemes: Vec<(String, Vec<Planned>)>,
}

/// A file of a kit.
#[derive(Clone, Debug)]
struct Planned {
    /// Its name, without folder and ending.
    name: String,
    /// Its text, with the scheme in it.
    text: String,
    /// What is to run; that of a stand-in where the scheme cannot.
    experiment: Experiment,
    /// Why the scheme cannot run it.
    refused: Option<String>,
}

/// Name and text of every file of `kit` at `level`: one folder after the other, each by section.
fn files(kit: &str, level: Level) -> Vec<(&'static str, &'static str)> {
    folders(kit).iter().flat_map(|folder| files_of(folder, level)).collect()
}

fn files_of(folder: &str, level: Level) -> Vec<(&'static str, &'static str)> {
    let own = EVALUATIONS.iter().filter_map(|(path, text)| {
        let path = path.strip_prefix(folder)?.strip_prefix('/')?.strip_suffix(".toml")?;
        match path.strip_prefix("full/") {
            Some(name) => (level == Level::Full).then_some((name, *text)),
            None => Some((path, *text)),
        }
    });
    let mut files: Vec<_> = own.collect();
    files.sort_by_key(|(name, _)| (numbers(name), *name));
    files
}

/// The numbers of the section that a file's name begins with: 7.10 comes after 7.9.
fn numbers(name: &str) -> Vec<u32> {
    let section = name.split('-').next().unwrap_or_default();
    section.split('.').filter_map(|part| part.parse().ok()).collect()
}

/// What tells the criteria of one version from those of another: the beginning of a hash of their files.
fn version(kit: &str, level: Level) -> String {
    let text: String = files(kit, level).into_iter().flat_map(|(name, text)| [name, "\n", text]).collect();
    sha256(text.as_bytes())[..16].to_string()
}

impl Plan {
    /// Reads the files of `kit` for `schemes`, algorithms of `registry`. A scheme that a file's scenarios
    /// cannot hold is not judged by its criteria; the row says why.
    ///
    /// # Errors
    /// If there is no such kit, a scheme is named twice, or one of its files is wrong.
    pub fn new(registry: &Registry, kit: &str, level: Level, schemes: &[Scheme]) -> Result<Self, Error> {
        let Some(kit) = KITS.iter().find(|known| **known == kit) else {
            return Err(Error::Evaluate(format!("there is no kit `{kit}`: valid are {}", KITS.join(", "))));
        };
        let mut plan = Plan { kit, level, schemes: Vec::new() };
        for scheme in schemes {
            let name = scheme.to_string();
            if plan.schemes.iter().any(|(other, _)| *other == name) {
                return Err(Error::Evaluate(format!("`{name}` is given twice; give every scheme once")));
            }
            let planned =
                files(kit, level).into_iter().map(|(file, text)| planned(registry, file, text, scheme));
            plan.schemes.push((name.clone(), planned.collect::<Result<_, _>>()?));
        }
        Ok(plan)
    }

    /// Leaves out the experiments for which `keep` returns `false`, given the scheme and the experiment's
    /// name.
    pub fn retain(&mut self, keep: impl Fn(&str, &str) -> bool) {
        for (scheme, planned) in &mut self.schemes {
            planned.retain(|planned| keep(scheme, &planned.name));
        }
    }

    /// Leaves out all criteria but those whose names begin with one of `words`; with no words, none. Files
    /// that have no such criterion do not run.
    ///
    /// # Errors
    /// If no criterion's name begins with one of the words.
    pub fn only(&mut self, words: &[String]) -> Result<(), Error> {
        if words.is_empty() {
            return Ok(());
        }
        let mut known: Vec<String> = Vec::new();
        for (_, planned) in &mut self.schemes {
            for planned in planned.iter_mut() {
                let claims = &mut planned.experiment.claims;
                known.extend(claims.iter().map(|claim| claim.id.clone()));
                claims.retain(|claim| words.iter().any(|word| claim.id.starts_with(word.as_str())));
            }
            planned.retain(|planned| !planned.experiment.claims.is_empty());
        }
        match words.iter().find(|word| !known.iter().any(|id| id.starts_with(word.as_str()))) {
            None => Ok(()),
            Some(word) => {
                let mut seen = BTreeSet::new();
                known.retain(|id| seen.insert(id.clone()));
                let known = known.join(", ");
                Err(Error::Evaluate(format!("no criterion begins with `{word}`: valid are {known}")))
            }
        }
    }

    /// Checks that `before` is an evaluation by the same criteria that has all schemes, so that [`against()`]
    /// can compare with it.
    ///
    /// # Errors
    /// If it is not.
    pub fn fits(&self, before: &Evaluation) -> Result<(), Mismatch> {
        let schemes: Vec<&str> = self.schemes.iter().map(|(scheme, _)| scheme.as_str()).collect();
        against::fits(before, [self.kit, self.level.name(), &version(self.kit, self.level)], &schemes)
    }

    /// Runs everything and judges. A scenario that several schemes share, as those of the baselines, runs
    /// once. A run that panics makes the criteria of its file fail.
    ///
    /// # Errors
    /// If a trace cannot be read, or the caller cancels.
    pub fn run(
        &self,
        runner: &dyn Runner,
        names: &Names,
        progress: &dyn Progress,
    ) -> Result<Evaluation, Error> {
        let planned: Vec<&Planned> = self.schemes.iter().flat_map(|(_, planned)| planned).collect();
        let experiments: Vec<Experiment> = planned.iter().map(|planned| planned.experiment.clone()).collect();
        let loaded: Vec<Traces> = experiments
            .iter()
            .map(|experiment| traces(experiment, names).map(Option::unwrap_or_default))
            .collect::<Result<_, _>>()?;
        let runs = reproduce::Plan::new(&experiments, |index| planned[index].refused.is_none());
        let steps = |&(index, job): &(usize, usize)| {
            Cost::of(&experiments[index].jobs[job].scenario, &loaded[index]).steps
        };
        progress.begin("evaluating", runs.distinct.len());
        let outcomes = parallel::map_longest_first(&runs.distinct, steps, |&(index, job)| {
            if progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let scenario = &experiments[index].jobs[job].scenario;
            let run = catch_unwind(AssertUnwindSafe(|| runner.run(scenario, &loaded[index])));
            progress.step(&experiments[index].id);
            Ok(match run {
                Ok(Ok(outcome)) => Ok(outcome.run),
                Ok(Err(cause)) => Err(format!("seed {}: {cause}", scenario.seed)),
                Err(panic) => Err(format!("seed {}: it panicked: {}", scenario.seed, said(&*panic))),
            })
        })?;
        let mut measured: Vec<Measured<'_>> = vec![Vec::new(); experiments.len()];
        for (index, job, distinct) in runs.jobs {
            measured[index].push((job, &outcomes[distinct]));
        }
        let mut judged = planned.iter().zip(&measured).map(|(planned, measured)| planned.judge(measured));
        let schemes = self.schemes.iter().map(|(scheme, planned)| Evaluated {
            scheme: scheme.clone(),
            criteria: judged.by_ref().take(planned.len()).flatten().collect(),
        });
        Ok(Evaluation {
            kit: self.kit.to_string(),
            level: self.level.name().to_string(),
            criteria: version(self.kit, self.level),
            schemes: schemes.collect(),
            ..Evaluation::default()
        })
    }

    /// Returns the experiment files that were run, for `reproduce` to run again: those of a scheme in a
    /// folder of its name.
    pub fn files(&self) -> Vec<File> {
        let of = |(place, (_, planned)): (usize, &(String, Vec<Planned>))| {
            let run = planned
                .iter()
                .filter(|planned| planned.refused.is_none() && !planned.experiment.jobs.is_empty());
            let file = move |planned: &Planned| File::new(replay(place, &planned.name), planned.text.clone());
            run.map(file).collect::<Vec<_>>()
        };
        self.schemes.iter().enumerate().flat_map(of).collect()
    }
}

/// The file that runs a criterion of the scheme at `place` again, within the folder of results.
fn replay(place: usize, experiment: &str) -> String {
    format!("scenarios/{}/{experiment}.toml", place + 1)
}

/// A job of an experiment and its run, or why there is none.
type Measured<'r> = Vec<(usize, &'r Result<Run, String>)>;

/// What a panic said.
pub(crate) fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("nothing")
}

fn planned(registry: &Registry, name: &str, text: &str, scheme: &Scheme) -> Result<Planned, Error> {
    let own = text_for(text, scheme);
    let (experiment, refused) = match experiment::read_with(registry, name, &own) {
        Ok(experiment) => (experiment, None),
        Err(error) => {
            // What is wrong with the file itself is wrong with any scheme.
            let read = |other: &str| {
                let other = Scheme::parse(other).expect("a stand-in is registered");
                experiment::read_with(registry, name, &text_for(text, &other))
            };
            let [first, second] = STAND_INS;
            (read(first).or_else(|_| read(second))?, Some(in_short(&error.problem)))
        }
    };
    Ok(Planned { name: name.to_string(), text: own, experiment, refused })
}

/// The text of a file with `scheme` in it. Beside the standard controls it may take another form.
fn text_for(text: &str, scheme: &Scheme) -> String {
    let standard = Scheme::parse(DEFAULT_CONTROLLER).expect("the default controller is registered");
    let beside = scheme.beside(&standard).unwrap_or_else(|| scheme.clone());
    text.replace(TESTED, &scheme.to_string()).replace(TESTED_BESIDE_OTHERS, &beside.to_string())
}

/// What is wrong, without the long list of what would be valid.
fn in_short(problem: &impl std::fmt::Display) -> String {
    let text = problem.to_string();
    text.split(": valid are").next().unwrap_or_default().to_string()
}

impl Planned {
    fn judge(&self, measured: &Measured<'_>) -> Vec<Criterion> {
        let failed = measured.iter().find_map(|(_, run)| run.as_ref().err());
        let mut table = Table::new(&self.experiment.dimensions);
        for (job, run) in measured {
            if let Ok(run) = run {
                table.add(&self.experiment.jobs[*job].point, run);
            }
        }
        self.experiment.claims.iter().map(|claim| self.criterion(claim, &table, failed)).collect()
    }

    fn criterion(&self, claim: &Assertion, table: &Table, failed: Option<&String>) -> Criterion {
        let measure = match &claim.check {
            Check::Expression { check, .. } => check.left().unwrap_or_default(),
            _ => String::new(),
        };
        let mut criterion = Criterion {
            id: claim.id.clone(),
            experiment: self.name.clone(),
            section: self.experiment.source.split_once(' ').map_or("", |(_, section)| section).to_string(),
            title: self.experiment.title.clone(),
            requirement: claim.paper.clone(),
            criterion: claim.claim.clone(),
            why: claim.note.clone(),
            measure: plain(&measure),
            at_most: true,
            verdict: Judgment::Fail,
            note: String::new(),
            decides: None,
            points: Vec::new(),
            regression: None,
        };
        let margins = match (&self.refused, failed, &claim.check) {
            (Some(refused), _, _) => Err((Judgment::NotApplicable, refused.clone())),
            (_, _, Check::NotCheckable) => Err((Judgment::NotApplicable, claim.note.clone())),
            (_, Some(failed), _) => Err((Judgment::Fail, failed.clone())),
            _ => claim.margins(table).map_err(|error| (Judgment::Fail, in_short(&error.fault))),
        };
        match margins {
            Err((verdict, note)) => (criterion.verdict, criterion.note) = (verdict, note),
            Ok(margins) => fill(&mut criterion, &margins),
        }
        criterion
    }
}

/// A measure as people read it: whose it is goes without saying.
fn plain(measure: &str) -> String {
    measure.replace("[scheme = \"tested\"]", "").replace("[scheme = \"tested\", ", "[")
}

/// Judges by `margins`.
fn fill(criterion: &mut Criterion, margins: &[Margin]) {
    let odd = |margin: &&Margin| {
        let mut numbers = margin.by_seed.iter().chain([&margin.measured, &margin.bound]);
        numbers.any(|number| !number.is_finite())
    };
    if let Some(margin) = margins.iter().find(odd) {
        let place = if margin.place.is_empty() { String::new() } else { format!(" at {}", margin.place) };
        criterion.note = format!("{} is no number{place}", criterion.measure);
        return;
    }
    let verdicts: Vec<Judgment> = margins.iter().map(verdict).collect();
    let Some(worst) = verdicts.iter().max() else {
        criterion.note = "its check is not a single comparison with a bound".to_string();
        return;
    };
    criterion.verdict = *worst;
    criterion.at_most = margins[0].at_most;
    // Of the points with the worst verdict, the one that is least within its bound.
    let share = |margin: &Margin| {
        let within =
            if margin.at_most { margin.bound - margin.measured } else { margin.measured - margin.bound };
        within / margin.bound.abs().max(f64::MIN_POSITIVE)
    };
    let deciding = (0..margins.len()).filter(|place| verdicts[*place] == *worst);
    criterion.decides = deciding.min_by(|a, b| share(&margins[*a]).total_cmp(&share(&margins[*b])));
    criterion.points = margins
        .iter()
        .map(|margin| Point {
            place: margin.place.clone(),
            measured: margin.measured,
            bound: margin.bound,
            baseline: margin.shown,
            within: margin.within,
            by_seed: margin.by_seed.clone(),
        })
        .collect();
}

fn verdict(margin: &Margin) -> Judgment {
    match margin.within {
        Some([low, _]) if low >= 0.0 => Judgment::Pass,
        Some([_, high]) if high < 0.0 => Judgment::Fail,
        _ => Judgment::Unsure,
    }
}

/// Evaluates the controller or scheme `scheme` of `registry` by the files of `kit` whose names `keep`
/// accepts, such as `6.3-wired`. Returns the criteria that failed. It is for tests of one's own controller: a
/// panic in a run is a failed criterion too.
///
/// # Errors
/// If there is no such scheme or kit, or a trace cannot be read.
pub fn failures(
    registry: &Registry,
    scheme: &str,
    kit: &str,
    level: Level,
    keep: impl Fn(&str) -> bool,
) -> Result<Vec<Criterion>, Error> {
    let parsed = Scheme::parse_with(registry, scheme);
    let schemes = [parsed.map_err(|error| Error::Evaluate(error.to_string()))?];
    let mut plan = Plan::new(registry, kit, level, &schemes)?;
    plan.retain(|_, file| keep(file));
    let evaluation = plan.run(&Simulator, &Names::default(), &())?;
    let criteria = evaluation.schemes.into_iter().flat_map(|evaluated| evaluated.criteria);
    Ok(criteria.filter(|criterion| criterion.verdict == Judgment::Fail).collect())
}

/// Returns how many criteria of `evaluated` have each verdict.
pub fn tally(evaluated: &Evaluated) -> BTreeMap<Judgment, usize> {
    let mut tally = BTreeMap::new();
    for criterion in &evaluated.criteria {
        *tally.entry(criterion.verdict).or_default() += 1;
    }
    tally
}
