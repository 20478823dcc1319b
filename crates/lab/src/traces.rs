//! What `brakelight trace` does with files: other files into traces, recipes into traces, recordings into
//! recipes.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use brakelight_core::time::Duration;
use brakelight_links::trace::Trace;
use brakelight_scenario::trace::OPPORTUNITY;
use brakelight_scenario::trace::convert::delays::delay_file;
use brakelight_scenario::trace::convert::{
    self, ConvertError, ConvertOptions, Converted, FileError, Format, convert_file,
};
use brakelight_scenario::trace::fit::link::{FitError, FittedLink, LinkKind, fit_link};
use brakelight_scenario::trace::names::{self, RecipeNameError};
use brakelight_scenario::trace::recipe::RecipeError;
use brakelight_scenario::trace::recording::{Recording, RecordingError, file};

/// Width of a bin of a synthetic trace as CSV.
const BIN: Duration = Duration::from_millis(100);

/// A file of another program, and what is taken of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Source<'a> {
    /// The file; `-` is standard input.
    pub file: &'a Path,
    /// What it is; `None`: what it seems to be.
    pub from: Option<Format>,
    /// What is taken of it.
    pub options: ConvertOptions,
    /// A file of delays to put beside the capacity.
    pub delay: Option<&'a Path>,
}

/// What a trace is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Milliseconds, one delivery opportunity a line.
    Mahimahi,
    /// The rate in bins.
    Csv,
    /// A recording.
    Bltrace,
}

impl Form {
    /// The name of each.
    pub const NAMES: [&'static str; 3] = ["mahimahi", "csv", "bltrace"];

    /// Returns what a file is expected to hold by its name.
    pub fn of_file(path: Option<&Path>) -> Self {
        match path.and_then(Path::extension) {
            Some(extension) if extension == "bltrace" => Form::Bltrace,
            Some(extension) if extension == "csv" => Form::Csv,
            _ => Form::Mahimahi,
        }
    }
}

impl FromStr for Form {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "mahimahi" => Ok(Form::Mahimahi),
            "csv" => Ok(Form::Csv),
            "bltrace" => Ok(Form::Bltrace),
            _ => Err(format!("`{text}` is not a format: valid are {}", Form::NAMES.join(", "))),
        }
    }
}

/// What is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// Text.
    Text(String),
    /// Bytes that are no text.
    Bytes(Vec<u8>),
}

/// Why a file was not made into another.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceFileError {
    /// The file did not become a trace.
    #[error(transparent)]
    File(#[from] FileError),
    /// No recipe by this name.
    #[error(transparent)]
    Name(#[from] RecipeNameError),
    /// The recipe makes no trace.
    #[error("{name}: {error}")]
    Recipe {
        /// Its name.
        name: String,
        /// Why.
        error: RecipeError,
    },
    /// No recipe was fitted.
    #[error("{}: {error}", file.display())]
    Fit {
        /// The file.
        file: PathBuf,
        /// Why.
        error: FitError,
    },
    /// The delays do not go with the capacity.
    #[error(transparent)]
    Delays(#[from] ConvertError),
    /// The recording cannot be written.
    #[error(transparent)]
    Recording(#[from] RecordingError),
}

/// Reads a file of another program, with the delays beside it.
pub fn read(source: Source<'_>) -> Result<Converted, TraceFileError> {
    let mut converted = convert_file(source.file, source.from, source.options)?;
    if let Some(delay) = source.delay {
        converted.add_delays(&delay_file(delay)?)?;
    }
    Ok(converted)
}

/// Returns the file of what the recipe of that name or in that file makes, with another seed or length where
/// they are given. A recording has its delay and loss too.
pub fn synthetic(
    name: &str,
    seed: Option<u64>,
    duration: Option<Duration>,
    form: Form,
) -> Result<Written, TraceFileError> {
    let mut recipe = names::recipe(name)?;
    recipe.seed = seed.unwrap_or(recipe.seed);
    recipe.duration = duration.unwrap_or(recipe.duration);
    let refused = |error| TraceFileError::Recipe { name: name.to_string(), error };
    let mut recording = recipe.record().map_err(refused)?;
    recording.about.name = Some(name.to_string());
    let trace = recording.trace(None)?;
    written(&trace, &recording, form, BIN)
}

/// Reads a file of another program and fits a recipe to it, with rates that hold for `bin`.
pub fn fitted(
    source: Source<'_>,
    kind: LinkKind,
    bin: Option<Duration>,
) -> Result<(Converted, FittedLink), TraceFileError> {
    let file = source.file.to_path_buf();
    let converted = read(source)?;
    let name =
        file.file_name().map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into());
    match fit_link(&name, &converted.recording, kind, bin) {
        Ok(fitted) => Ok((converted, fitted)),
        Err(error) => Err(TraceFileError::Fit { file, error }),
    }
}

/// Returns a trace as a file: of a recording what `form` can hold, rates in bins of `bin`, above 0.
pub fn written(
    trace: &Trace,
    recording: &Recording,
    form: Form,
    bin: Duration,
) -> Result<Written, TraceFileError> {
    Ok(match form {
        Form::Mahimahi => Written::Text(convert::to_mahimahi(trace)),
        Form::Csv => Written::Text(convert::to_csv(trace, bin, OPPORTUNITY)),
        Form::Bltrace => Written::Bytes(file::write(recording)?),
    })
}
