//! `arena`: one score for each sender, on links that it need not have met.

use std::path::{Path, PathBuf};

use brakelight_lab::Simulator;
use brakelight_lab::arena::{Candidate, Plan, RoundSet};
use brakelight_lab::text::{arena as words, count};
use brakelight_registry::Registry;
use brakelight_scenario::trace::names::Names;
use clap::{Args, ValueEnum};

use crate::evaluate::LevelName;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{origin, output, text};

/// The rounds that everybody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SetName {
    /// For making a sender
    Train,
    /// For choosing among senders
    Validation,
}

/// How the scores are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// One JSON document
    Json,
    /// A table for a pull request
    Markdown,
}

/// `arena`.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// The senders that compete, such as `copa` or `bbr3`
    #[arg(value_name = "CANDIDATE", required = true)]
    pub candidates: Vec<String>,
    /// The rounds that everybody knows
    #[arg(long, default_value = "validation", value_enum)]
    pub set: SetName,
    /// Rounds that only their organizer knows: a file with a key of at least 16 bytes, from which they are
    /// drawn, or a folder of recordings
    #[arg(long, value_name = "PATH", conflicts_with = "set")]
    pub hidden: Option<PathBuf>,
    /// How far to go: 48 rounds, or 240
    #[arg(long, default_value = "quick", value_enum)]
    pub level: LevelName,
    /// Write arena.json and arena.md into this folder; of a known set also the scenarios with the first
    /// candidate, and their traces
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write even into a folder that holds other files
    #[arg(long)]
    pub force: bool,
    /// How to print the scores
    #[arg(long, default_value = "text", value_enum)]
    pub format: Format,
}

/// Runs the command. It fails where a candidate's run fails, after everything has been printed.
pub fn execute(registry: &Registry, arguments: &Arguments) -> Result<(), Failure> {
    let candidates = arguments.candidates.iter().map(|text| Ok(Candidate::parse(registry, text)?));
    let candidates = candidates.collect::<Result<Vec<_>, Failure>>()?;
    let set = match (&arguments.hidden, arguments.set) {
        (Some(path), _) => hidden(path)?,
        (None, SetName::Train) => RoundSet::Train,
        (None, SetName::Validation) => RoundSet::Validation,
    };
    let plan = Plan::new(registry, &set, arguments.level.into(), candidates)?;
    let folder = arguments.out.as_deref().map(|out| output::folder(out, arguments.force)).transpose()?;
    let mut arena = plan.run(&Simulator, &Bar::default())?;
    arena.origin = origin::origin(1);
    if let Some(folder) = folder {
        folder.write("arena.json", text::json(&arena)?)?;
        folder.write("arena.md", words::markdown(&arena))?;
        for file in plan.files(registry)? {
            folder.write(&file.name, file.contents)?;
        }
        text::say(&format!("scores: {}", folder.keep()?.join("arena.json").display()));
    }
    match arguments.format {
        Format::Text => text::print(&words::in_words(&arena, &text::standard_output()))?,
        Format::Json => text::print_json(&arena)?,
        Format::Markdown => text::print(&words::markdown(&arena))?,
    }
    match arena
        .candidates
        .iter()
        .flat_map(|scored| &scored.rounds)
        .filter(|round| !round.failed.is_empty())
        .count()
    {
        0 => Ok(()),
        failed => Err(Failure::run(format!("{} failed", count(failed, "run", "runs")))),
    }
}

/// The rounds of an organizer's file or folder.
fn hidden(path: &Path) -> Result<RoundSet, Failure> {
    let refuse =
        |reason: &dyn std::fmt::Display| Failure::input(format!("--hidden `{}`: {reason}", path.display()));
    if path.is_dir() {
        let names = Names::with_folder(path).map_err(|error| refuse(&error))?;
        return RoundSet::of_folder(&names).map_err(|error| refuse(&error));
    }
    let key = std::fs::read(path)
        .map_err(|error| refuse(&format!("{error}; give a file with a key, or a folder of recordings")))?;
    RoundSet::of_key(&key).map_err(|error| refuse(&error))
}
