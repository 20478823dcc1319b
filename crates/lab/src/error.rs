//! Errors.

use std::fmt;
use std::io;
use std::path::PathBuf;

use brakelight_core::suggest::{DidYouMean, nearest, nearest_few};
use brakelight_scenario::cost::Cost;
use brakelight_scenario::problem::InputError;
use brakelight_scenario::trace::names::NameError;
use brakelight_sim::{RunError, SetupError};

/// Why a runner could not run a scenario, in its own words.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a job of the lab failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A scheme, a scenario or an experiment is wrong.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A trace is unknown, or cannot be read.
    #[error(transparent)]
    Trace(#[from] NameError),
    /// The trace of the return path is unknown, or cannot be read.
    #[error("return path: {0}")]
    ReturnTrace(NameError),
    /// The trace of a link is unknown, or cannot be read.
    #[error("{owner}: link `{link}`: trace: {error}")]
    LinkTrace {
        /// The scenario: its file, or its name.
        owner: String,
        /// The link.
        link: String,
        /// Why.
        error: NameError,
    },
    /// A comparison names a trace twice.
    #[error("`{0}` is given twice; give every trace once")]
    SameTrace(String),
    /// A file cannot be read.
    #[error("{file}: {error}; give {what} file that can be read")]
    Unreadable {
        /// The file.
        file: String,
        /// What it should be: `a scenario`.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// A file is not text.
    #[error("{file}:{line}: not UTF-8 text; {what} is a TOML file")]
    NotText {
        /// The file.
        file: String,
        /// The first line that is not.
        line: usize,
        /// What it should be: `a scenario`.
        what: &'static str,
    },
    /// A scenario cannot run with the hosts that were asked for.
    #[error("{owner}: {reason}")]
    Host {
        /// The scenario: its file, or its name.
        owner: String,
        /// Which flow cannot, and why.
        reason: String,
    },
    /// A run would take hours or fill the memory, and was not allowed to.
    #[error("{label}: the estimate for one run is {cost}; make it smaller, or allow it")]
    TooCostly {
        /// What would be run.
        label: String,
        /// The estimate.
        cost: Cost,
    },
    /// There is no claim of this name.
    #[error(
        "unknown claim `{id}`{}: the nearest of {} are {}; `list claims` shows all",
        DidYouMean(nearest(id, known.iter().map(String::as_str))),
        known.len(),
        nearest_few(id, known.iter().map(String::as_str), 3).join(", ")
    )]
    UnknownClaim {
        /// The name.
        id: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// A recording that everybody must get for themselves is not there.
    #[error(
        "{0}; the recordings are not part of the project: put them in a folder and set BRAKELIGHT_TRACES to it, or give scenario files"
    )]
    Recording(NameError),
    /// A grid is wrong.
    #[error("{grid}: {reason}")]
    Grid {
        /// The grid: its file, or its name.
        grid: String,
        /// What is wrong with it, and what is valid.
        reason: String,
    },
    /// The folder of a sweep has one already.
    #[error("{}: there is a sweep already; resume it, or give another folder", .0.display())]
    SweepExists(PathBuf),
    /// Another sweep is writing into the folder.
    #[error("{}: another sweep is running there; wait for it, or give another folder", .0.display())]
    SweepRunning(PathBuf),
    /// An attack cannot be made.
    #[error("{0}")]
    Attack(String),
    /// An evaluation cannot be made.
    #[error("{0}")]
    Evaluate(String),
    /// A contest of the arena cannot be held.
    #[error("{0}")]
    Arena(String),
    /// The folder of an attack holds another one.
    #[error("{}: the folder already holds another attack; repeat that one, or give another folder", .0.display())]
    AttackExists(PathBuf),
    /// Another attack is writing into the folder.
    #[error("{}: another attack is running there; wait for it, or give another folder", .0.display())]
    AttackRunning(PathBuf),
    /// A file cannot be written, or not read back.
    #[error("{}: {error}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The results cannot be put where they belong.
    #[error(transparent)]
    Output(#[from] brakelight_files::Error),
    /// A run failed.
    #[error("{label}: {cause}")]
    Run {
        /// Which: the job and its seed.
        label: String,
        /// Why.
        cause: Cause,
    },
    /// Some runs failed, and others went on: the first of them, and why.
    #[error("{0}")]
    Failed(String),
    /// A job was given no seed, or has no run.
    #[error("{0}: there was no run")]
    NoRun(String),
    /// Whoever was handed rows could not take them.
    #[error("{0}")]
    Sink(Cause),
    /// A result could not be written in a format.
    #[error("{format}: {reason}")]
    Encode {
        /// The format: `JSON`, `Parquet`.
        format: &'static str,
        /// Why.
        reason: String,
    },
    /// The progress callback asked to stop.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// Returns `true` if a stack that others wrote ended its own run: other runs can go on.
    pub fn is_of_one_run(&self) -> bool {
        let Error::Run { cause, .. } = self else { return false };
        matches!(cause.downcast_ref::<RunError>(), Some(RunError::Stack { .. }))
    }

    /// Returns `true` if the caller's input was wrong, and `false` if a run or a result failed.
    pub fn is_input(&self) -> bool {
        if let Error::Run { cause, .. } = self
            && let Some(RunError::Setup(SetupError::TooLong(_))) = cause.downcast_ref::<RunError>()
        {
            return true;
        }
        !matches!(
            self,
            Error::Run { .. }
                | Error::Failed(_)
                | Error::NoRun(_)
                | Error::Sink(_)
                | Error::Encode { .. }
                | Error::Cancelled
        )
    }

    pub(crate) fn json(error: &serde_json::Error) -> Self {
        Error::Encode { format: "JSON", reason: error.to_string() }
    }

    pub(crate) fn run(label: impl fmt::Display, cause: impl Into<Cause>) -> Self {
        Error::Run { label: label.to_string(), cause: cause.into() }
    }
}
