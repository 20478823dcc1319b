//! The adversary: searches for the link on which a scheme does worst, compared with what was possible.
//!
//! | module | holds |
//! |---|---|
//! | [`bounds`] | what links may be tried |
//! | [`space`] | from the search's numbers to a link, from a link to a scenario |
//! | [`objective`] | how much damage a link does |
//! | `search` | the optimiser |
//! | `minimise` | the simplest link that still does most of the damage |
//! | `folder` | the journal, by which an attack goes on where it was |
//!
//! A link costs a run of the scheme and one of each reference. Links of a generation run side by side; which
//! ones are tried depends on the seed alone, so the same attack has the same bytes with any number of
//! threads. One fifth of the budget is kept for making the found link simpler.

use std::path::{Path, PathBuf};

use brakelight_core::random::Random;
use brakelight_scenario::documents::Found as Document;
use brakelight_scenario::file;
use brakelight_scenario::median::median;
use brakelight_scenario::outcome::Outcome;
use brakelight_scenario::scenario::Scenario;
use brakelight_scenario::scheme::Scheme;
use brakelight_sim::Traces;

pub use self::bounds::Bounds;
use self::folder::Journal;
pub use self::objective::Objective;
pub use self::space::{Link, Space};
use crate::error::Error;
use crate::figures::{self, Figure};
use crate::output::File;
use crate::parallel;
use crate::progress::Progress;
use crate::runner::{Runner, Simulator};
use crate::text::number;
use crate::values::whole;

pub mod bounds;
mod folder;
mod minimise;
pub mod objective;
mod search;
pub mod space;
#[cfg(test)]
mod tests;

/// What is to be attacked, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Attack {
    /// The scheme.
    pub scheme: Scheme,
    /// What it is compared with, the best of them on each link; none for PK-ABC. Where two flows share the
    /// link, the scheme of the other one; none for the same.
    pub against: Vec<Scheme>,
    /// What is to be as bad as can be.
    pub objective: Objective,
    /// Which links are tried.
    pub space: Space,
    /// Within which bounds.
    pub bounds: Bounds,
    /// How many links are tried.
    pub budget: u32,
    /// Decides which links are tried, and everything that is drawn in their runs.
    pub seed: u64,
}

impl Attack {
    /// How many links are tried unless it is said.
    pub const BUDGET: u32 = 1000;

    /// Returns an attack on `scheme` with all else as it is unless it is said.
    pub fn new(scheme: Scheme) -> Self {
        Attack {
            scheme,
            against: Vec::new(),
            objective: Objective::default(),
            space: Space::default(),
            bounds: Bounds::default(),
            budget: Attack::BUDGET,
            seed: 1,
        }
    }
}

/// What an attack found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// All numbers.
    pub document: Document,
    /// The worst link.
    pub link: Link,
    /// The scheme on it: what `worst.toml` holds.
    pub worst: Scenario,
    /// The best reference on it, where that ran by itself.
    pub reference: Option<Scenario>,
    /// Runs that were made, not read from a journal.
    pub runs: u64,
}

/// What an attack into a folder found and wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// What it found.
    pub found: Found,
    /// The files.
    pub files: Vec<PathBuf>,
    /// What an attack that was killed had left in the folder, and is gone now.
    pub removed: Vec<PathBuf>,
}

/// Attacks a scheme in simulation, and keeps what is known in memory. [`attack_into`] has a folder for it.
pub fn attack(request: &Attack, progress: &dyn Progress) -> Result<Found, Error> {
    attack_with(request, &Simulator, progress)
}

/// Does the same by another runner.
pub fn attack_with(request: &Attack, runner: &dyn Runner, progress: &dyn Progress) -> Result<Found, Error> {
    Session::new(request, Journal::default(), runner, progress)?.attack()
}

/// Attacks a scheme, or goes on with the attack in `folder`, and writes what it finds there: `worst.toml`,
/// `reference.toml` where references ran by themselves, `found.json`, and a figure as SVG and PDF.
pub fn attack_into(
    folder: &Path,
    request: &Attack,
    runner: &dyn Runner,
    progress: &dyn Progress,
) -> Result<Written, Error> {
    check(request)?;
    let journal = Journal::open(folder, request)?;
    let session = Session::new(request, journal, runner, progress)?;
    let found = session.attack()?;
    let json = serde_json::to_string_pretty(&found.document).map_err(|error| Error::json(&error))?;
    let mut files = vec![File::new("worst.toml", file::write(&found.worst))];
    files.extend(
        found.reference.as_ref().map(|reference| File::new("reference.toml", file::write(reference))),
    );
    files.push(File::new("found.json", json + "\n"));
    let figure = figure(&found, runner)?;
    files.extend([File::new("worst.svg", figure.svg()), File::new("worst.pdf", figure.pdf())]);
    let removed = folder::write(folder, &files)?;
    let files = files.iter().map(|file| folder.join(&file.name)).collect();
    Ok(Written { found, files, removed })
}

/// Draws the worst link, what the scheme did on it, and what the reference did.
pub fn figure(found: &Found, runner: &dyn Runner) -> Result<Figure, Error> {
    let run = |scenario: &Scenario| {
        let mut scenario = scenario.clone();
        scenario.record.series = true;
        let outcome = runner.run(&scenario, &Traces::new());
        outcome.map_err(|cause| Error::run(format_args!("{}", scenario.name), cause))
    };
    let own: Outcome = run(&found.worst)?;
    let reference = found.reference.as_ref().map(run).transpose()?;
    Ok(figures::attack(&found.document, &own, reference.as_ref()))
}

/// Says how much damage each of some candidates does.
type Evaluate<'a, T> = dyn FnMut(&[T]) -> Result<Vec<f64>, Error> + 'a;

/// Refuses what cannot be attacked.
fn check(attack: &Attack) -> Result<(), Error> {
    budget(&attack.budget.to_string()).map_err(|reason| Error::Attack(format!("budget: {reason}")))?;
    let shared = attack.objective.has_two_flows();
    if shared && attack.against.len() > 1 {
        let name = attack.objective.name();
        let reason = format!("{name}: one flow runs beside that of `{}`, so give one scheme", attack.scheme);
        return Err(Error::Attack(reason));
    }
    if let (true, Some(other)) = (shared, attack.against.iter().find(|other| other.queue_named())) {
        let reason =
            format!("`{other}` names a queue, but its flow shares that of `{}`: leave it out", attack.scheme);
        return Err(Error::Attack(reason));
    }
    // Whether they can be run at all does not depend on the link.
    let link = attack.space.link(&[], &attack.bounds);
    Ok(objective::scenario(attack, &link, attack.seed).map(|_| ())?)
}

/// Fewer links are no search, and more would fill the memory.
const LEAST_BUDGET: u32 = 8;
const MOST_BUDGET: u32 = 10_000_000;

/// The share of the budget that makes the found link simpler: one part of so many.
const MINIMISING: usize = 5;

/// Seeds that the found link is tried with, its own among them.
const SEEDS: u64 = 5;

/// An attack under way.
struct Session<'a> {
    attack: &'a Attack,
    journal: Journal,
    runner: &'a dyn Runner,
    progress: &'a dyn Progress,
    worst: f64,
    tried: u64,
    simulated: u64,
}

impl<'a> Session<'a> {
    fn new(
        attack: &'a Attack,
        journal: Journal,
        runner: &'a dyn Runner,
        progress: &'a dyn Progress,
    ) -> Result<Self, Error> {
        check(attack)?;
        Ok(Session { attack, journal, runner, progress, worst: f64::NEG_INFINITY, tried: 0, simulated: 0 })
    }

    fn attack(mut self) -> Result<Found, Error> {
        let attack = self.attack;
        let budget = attack.budget as usize;
        let minimising = budget / MINIMISING;
        self.progress.begin(&format!("attacking {}", attack.scheme), budget);
        let random = Random::stream(attack.seed, &format!("attack {}", attack.space.name()));
        let dimension = attack.space.dimension(&attack.bounds);
        let searched = search::search(dimension, budget - minimising, random, &mut |places| {
            let links: Vec<Link> =
                places.iter().map(|place| attack.space.link(place, &attack.bounds)).collect();
            self.evaluate(&links)
        })?;
        let link = attack.space.link(&searched.worst.place, &attack.bounds);
        let damage = searched.worst.damage;
        let enough = attack.objective.share_of(damage, minimise::KEEP);
        let (link, _) = minimise::minimise(link, damage, enough, &attack.bounds, minimising, &mut |links| {
            self.evaluate(links)
        })?;
        self.report(link, damage, &searched)
    }

    /// The damage of each of some links: what the journal knows, and what is simulated now.
    fn evaluate(&mut self, links: &[Link]) -> Result<Vec<f64>, Error> {
        let mut new = Vec::new();
        for link in links {
            if self.journal.damage(link)?.is_none() {
                new.push(link.clone());
            } else {
                self.progress.step("known");
            }
        }
        self.tried += links.len() as u64;
        self.simulated += new.len() as u64;
        let Session { attack, journal, runner, progress, worst, .. } = self;
        let judge = |link: &Link| {
            if progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let mut least = f64::INFINITY;
            for seed in 0..u64::from(attack.bounds.seeds) {
                let judged = objective::judge(attack, link, attack.seed.wrapping_add(seed), *runner)?;
                least = least.min(judged.damage);
            }
            Ok((link.clone(), (least * 1e6).round() as i64))
        };
        parallel::each(&new, judge, &mut |(link, damage): (Link, i64)| {
            *worst = worst.max(damage as f64 / 1e6);
            progress.step(&format!("worst so far: {} {}", number(*worst), attack.objective.unit()));
            journal.add(&link, damage)
        })?;
        let known = |link| Ok(journal.damage(link)?.map_or(f64::NEG_INFINITY, |damage| damage as f64 / 1e6));
        links.iter().map(known).collect()
    }

    /// All that is to be said of the worst link.
    fn report(self, link: Link, before: f64, searched: &search::Searched) -> Result<Found, Error> {
        let attack = self.attack;
        let seeds: Vec<u64> = (0..SEEDS).map(|seed| attack.seed.wrapping_add(seed)).collect();
        let judged = parallel::map(&seeds, |seed| objective::judge(attack, &link, *seed, self.runner))?;
        let mut damages: Vec<f64> = judged.iter().map(|judged| judged.damage).collect();
        let mut random = searched.random.clone();
        let own = judged.into_iter().next().ok_or_else(|| Error::NoRun("no seed".to_string()))?;
        let damage = own.damage;
        let document = Document {
            scheme: attack.scheme.to_string(),
            against: attack.against.iter().map(ToString::to_string).collect(),
            objective: attack.objective.name().to_string(),
            space: attack.space.name().to_string(),
            bounds: attack.bounds.to_string(),
            budget: u64::from(attack.budget),
            seed: attack.seed,
            links: self.tried,
            starts: u64::from(searched.starts),
            unit: attack.objective.unit().to_string(),
            damage,
            damage_before: before,
            damage_random_median: median(&mut random).unwrap_or_default(),
            damage_random_worst: random.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            damage_seeds: [
                damages.iter().copied().fold(f64::INFINITY, f64::min),
                median(&mut damages).unwrap_or_default(),
                damages.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            ],
            own: own.own,
            beside: own.beside,
            link: link.in_words(),
        };
        let worst = objective::scenario(attack, &link, attack.seed)?;
        let alone = 1 + attack.against.len().max(1) as u64;
        let of_a_seed = if attack.objective.has_two_flows() { 1 } else { alone };
        let runs = self.simulated * of_a_seed * u64::from(attack.bounds.seeds);
        Ok(Found { document, link, worst, reference: own.reference, runs })
    }
}

/// Returns a number of links to try, as people write it.
pub fn budget(text: &str) -> Result<u32, String> {
    whole::<LEAST_BUDGET, MOST_BUDGET>(text)
}

/// Returns what `text` names among `all`.
fn by_name<T: Copy>(all: &[(&str, T)], what: &str, text: &str) -> Result<T, String> {
    all.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        format!("`{text}` is no {what}: valid are {}", names.join(", "))
    })
}
