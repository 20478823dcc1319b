//! From a recording that somebody brings to a `[measured]` recipe: in which bins, with what taken for known,
//! and how near the trace of the recipe came.

use std::fmt;
use std::str::FromStr;

use brakelight_core::time::Duration;
use brakelight_links::trace::Trace;

use super::super::recipe::{Recipe, RecipeError};
use super::super::recording::{Recording, RecordingError};
use super::measured::{Kind, fit_measured};

/// What is taken for known about a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkKind {
    /// Nothing but the rate in each bin: opportunities come evenly within one.
    #[default]
    Binned,
    /// The time of each burst: the recipe has the times between them.
    Bursts,
    /// The same, and another path every 15 s.
    Starlink,
}

/// Every kind, by its name.
const KINDS: [(&str, LinkKind); 3] =
    [("binned", LinkKind::Binned), ("bursts", LinkKind::Bursts), ("starlink", LinkKind::Starlink)];

/// Bins of a recording that has single packets.
const FINE_BIN: Duration = Duration::from_millis(100);
/// Coarser than this a recording does not have the times of bursts.
const OF_BURSTS: Duration = Duration::from_millis(1);
/// With fewer bins there are not ten lags of a quarter of the length.
const LEAST_BINS: u64 = 40;

/// A recipe beside the recording that it was fitted to.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedLink {
    /// The recipe, its seed chosen and what it is said in `about`.
    pub recipe: Recipe,
    /// What a link replays of the recording.
    pub recorded: Trace,
    /// What it replays of the recipe.
    pub made: Trace,
    /// What the user should know about it, a sentence each.
    pub notes: Vec<String>,
}

/// Why no recipe was fitted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// A bin that the recording cannot fill, or that no recipe may have.
    #[error(
        "bin {bin}: whole milliseconds from {least} to 10s are valid, for one value of the recording stands for {resolution}"
    )]
    Bin {
        /// What was asked for.
        bin: Duration,
        /// The least that is valid.
        least: Duration,
        /// The time that one value of the recording stands for.
        resolution: Duration,
    },
    /// A kind that needs the times of bursts.
    #[error(
        "kind `{kind}` needs the time of every packet, and one value of the recording stands for {resolution}: `binned` is valid"
    )]
    Kind {
        /// What was asked for.
        kind: LinkKind,
        /// The time that one value of the recording stands for.
        resolution: Duration,
    },
    /// Too few bins to tell how long anything lasts.
    #[error(
        "the recording lasts {length}, which is {bins} bins of {bin}: at least {LEAST_BINS} bins are valid"
    )]
    Short {
        /// Its length.
        length: Duration,
        /// How many bins that is.
        bins: u64,
        /// The bin.
        bin: Duration,
    },
    /// The recording cannot be replayed.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// What was fitted is outside the ranges of a recipe.
    #[error("the recipe would be invalid: {0}")]
    Recipe(#[from] RecipeError),
}

impl LinkKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// What the fit takes for known, with bins of `bin`; of Starlink, whose bins are 50 ms, where none is
    /// given.
    fn known(self, bin: Option<Duration>, resolution: Duration) -> Kind {
        let (fine, paths, bursts, lost) = match self {
            LinkKind::Binned => (FINE_BIN, None, false, 0.0),
            LinkKind::Bursts => (FINE_BIN, None, true, 0.0),
            LinkKind::Starlink => (Kind::STARLINK.bin, Kind::STARLINK.paths, true, Kind::STARLINK.lost),
        };
        let coarse = Duration::from_millis((resolution.as_micros() + 500) / 1_000);
        let own = if resolution <= OF_BURSTS { fine } else { coarse };
        Kind { bin: bin.unwrap_or(own), paths, bursts, lost }
    }
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LinkKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = KINDS.iter().find(|(name, _)| *name == text);
        known.map(|(_, kind)| *kind).ok_or_else(|| {
            let names = KINDS.map(|(name, _)| format!("`{name}`")).join(", ");
            format!("`{text}` is not a kind of link: valid are {names}")
        })
    }
}

/// Fits a recipe to a recording that is called `name`. `bin` is how long a rate of the recipe holds: what one
/// value of the recording stands for where none is given, and 100 ms (50 ms of Starlink) where it has single
/// packets. Deterministic, and the same on every machine. Fails if the recording is too short or too coarse.
pub fn fit_link(
    name: &str,
    recording: &Recording,
    kind: LinkKind,
    bin: Option<Duration>,
) -> Result<FittedLink, FitError> {
    let recorded = recording.trace(None)?;
    let resolution = recorded.resolution();
    if kind != LinkKind::Binned && resolution > OF_BURSTS {
        return Err(FitError::Kind { kind, resolution });
    }
    let known = kind.known(bin, resolution);
    let (bin, length) = (known.bin, recorded.period());
    let least = Duration::from_millis((resolution.as_micros() / 1_000).max(1));
    let whole = bin.as_nanos().is_multiple_of(1_000_000);
    if !whole || bin < least || bin > Duration::from_secs(10) {
        return Err(FitError::Bin { bin, least, resolution });
    }
    let bins = length.as_nanos() / bin.as_nanos();
    if bins < LEAST_BINS {
        return Err(FitError::Short { length, bins, bin });
    }
    let mut recipe = fit_measured(recording, known)?;
    recipe.about = format!(
        "Fitted to {name}: {} in bins of {bin}. The recipe shares nothing else with its recording.",
        recipe.duration
    );
    recipe.check()?;
    let made = recipe.generate()?;
    let notes = notes(&recipe, known, length);
    Ok(FittedLink { recipe, recorded, made, notes })
}

/// What a fit to so little cannot tell, and what was looked for in vain.
fn notes(recipe: &Recipe, known: Kind, length: Duration) -> Vec<String> {
    let mut notes = vec![format!(
        "one recording: what lasts longer than {} is not in the recipe, nor is what comes once in a longer time",
        length / 4
    )];
    let measured = recipe.measured.as_ref();
    match (known.paths, measured.and_then(|measured| measured.paths.as_ref())) {
        (Some(every), None) => {
            notes.push(format!("no gap of more than 40ms: the recipe has no other path every {every}"));
        }
        (_, Some(paths)) if paths.lost > 0.0 => notes.push(format!(
            "`paths.lost` is {}, which is published of Starlink and not measured here",
            paths.lost
        )),
        _ => {}
    }
    if measured.is_some_and(|measured| measured.delay.is_none()) {
        notes
            .push("no delay: the recording has none; `--delay FILE` puts it beside the capacity".to_string());
    }
    notes
}

#[cfg(test)]
mod tests;
