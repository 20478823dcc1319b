//! From what a scenario calls a trace to the trace itself.
//!
//! A name is looked for among the embedded traces, then among those that a program made, then in the folder
//! of the user's own traces. Otherwise it is the path of a file in Mahimahi's format or of a
//! [recording](super::recording), `-` for standard input, and last a recording that was fetched. Files of the
//! user's folder go by their file name, with or without its last extension. `#up` or `#down` after the name
//! of a recording takes that direction.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use brakelight_core::suggest::{DidYouMean, nearest};
use brakelight_links::trace::{Trace, TraceError};

use super::catalogue::{self, CATALOGUE, Catalogue};
use super::embedded::{EMBEDDED, Embedded};
use super::recipe::{Recipe, RecipeError};
use super::recording::{About, LinkDirection, RecordingError, file};
use crate::input::{self, gzip};

/// The environment variable that names the folder of the user's own traces.
pub const FOLDER_VARIABLE: &str = "BRAKELIGHT_TRACES";

/// The source of a named trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// To an embedded trace.
    Embedded(&'static Embedded),
    /// To a file.
    File(PathBuf),
    /// To a trace that a program made.
    Given(Trace),
}

/// The traces that have names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    folder: Option<PathBuf>,
    /// Files of the folder, by name.
    files: Vec<PathBuf>,
    /// Traces that a program made.
    given: BTreeMap<String, Trace>,
    /// The folder of fetched recordings.
    cache: Option<PathBuf>,
}

/// Why no trace could be found by a name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// There is no such name, nor such a file.
    #[error(
        "unknown trace `{name}`{}: no such file, and the known traces are {}{}",
        meant(name, known),
        List(known),
        catalogued(name)
    )]
    Unknown {
        /// The name.
        name: String,
        /// What would be valid.
        known: Vec<String>,
    },
    /// Two files of the folder answer to the name.
    #[error("trace `{name}` is ambiguous in {}: {} both match; give the extension", folder.display(), List(matches))]
    Ambiguous {
        /// The name.
        name: String,
        /// The folder.
        folder: PathBuf,
        /// The files.
        matches: Vec<String>,
    },
    /// The folder of the user's own traces cannot be read.
    #[error("{FOLDER_VARIABLE}={}: {error}; it must name a folder that can be read", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A folder that was given in place of a trace has no file.
    #[error("{}: the folder has no file that is not hidden; give one with traces", .0.display())]
    Empty(PathBuf),
    /// The file holds no trace.
    #[error("{}: {error}{}", path.display(), hint(path))]
    Trace {
        /// The file.
        path: PathBuf,
        /// Which line, and what is wrong with it.
        error: TraceError,
    },
    /// The file holds no recording that can be replayed.
    #[error("{}: {error}", path.display())]
    Recording {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: Box<RecordingError>,
    },
    /// A direction of a file that has one only.
    #[error("{}: the file has no directions: leave `#{direction}` out", path.display())]
    NoDirections {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        direction: LinkDirection,
    },
}

/// What to do with a file whose name says that it can become a trace.
fn hint(path: &Path) -> &'static str {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    if ["csv", "json", "log", "pcap", "pcapng", "qlog", "sqlog", "txt"]
        .iter()
        .any(|known| extension == *known)
    {
        "; `brakelight trace convert` makes a trace of such a file"
    } else {
        ""
    }
}

/// What to do with a name of the catalogue whose recording was not fetched.
fn catalogued(name: &str) -> String {
    let catalogue = Catalogue::parse(CATALOGUE);
    let known = catalogue.is_ok_and(|catalogue| catalogue.find(name).is_ok());
    if known { format!("; `brakelight trace fetch {name}` says how to get it") } else { String::new() }
}

fn meant<'a>(name: &str, known: &'a [String]) -> DidYouMean<'a> {
    DidYouMean(nearest(name, known.iter().map(String::as_str)))
}

/// Why no recipe could be found by a name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeNameError {
    /// There is no such embedded trace, nor such a file.
    #[error(
        "unknown recipe `{name}`{}: no such file, and the embedded recipes are {}",
        meant(name, known),
        List(known)
    )]
    Unknown {
        /// The name.
        name: String,
        /// What would be valid.
        known: Vec<String>,
    },
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The file holds no recipe.
    #[error("{}: {error}", path.display())]
    Recipe {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: RecipeError,
    },
}

struct List<'a>(&'a [String]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(index, name)| {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}`{name}`")
        })
    }
}

impl Names {
    /// Returns the embedded traces, and those of the folder that [`FOLDER_VARIABLE`] names, if it is set and
    /// not empty.
    pub fn from_environment() -> Result<Self, NameError> {
        let names = match std::env::var_os(FOLDER_VARIABLE) {
            Some(folder) if !folder.is_empty() => Names::with_folder(Path::new(&folder))?,
            _ => Names::default(),
        };
        Ok(Names { cache: catalogue::cache(), ..names })
    }

    /// Returns the embedded traces and those of `folder`: its files that are not hidden.
    pub fn with_folder(folder: &Path) -> Result<Self, NameError> {
        let list = || -> io::Result<Vec<PathBuf>> {
            let mut files = Vec::new();
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
                if !hidden && path.is_file() {
                    files.push(path);
                }
            }
            files.sort();
            Ok(files)
        };
        let files = list().map_err(|error| NameError::Folder { folder: folder.to_path_buf(), error })?;
        Ok(Names { folder: Some(folder.to_path_buf()), files, ..Names::default() })
    }

    /// Returns every name, embedded ones first.
    pub fn list(&self) -> Vec<String> {
        let embedded = EMBEDDED.iter().map(|embedded| embedded.name.to_string());
        let files = self.files.iter().map(|file| file_name(file));
        embedded.chain(self.given.keys().cloned()).chain(files).collect()
    }

    /// Returns the same with `trace`, which a program made, under `name`: it comes before files of that name
    /// and takes the place of what was given under it before. An embedded trace keeps its name.
    #[must_use]
    pub fn with_trace(mut self, name: &str, trace: Trace) -> Self {
        self.given.insert(name.to_string(), trace);
        self
    }

    /// Returns the files of the folder.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Returns the names of the traces that `given` stands for: itself; the files of a folder, in the order
    /// of their names; or each of a list with commas between.
    pub fn expand(&self, given: &str) -> Result<Vec<String>, NameError> {
        match self.find(given) {
            Ok(Source::File(path)) if path.is_dir() => {
                let files = Names::with_folder(&path)?.files;
                let names = files.into_iter().map(|file| file.display().to_string()).collect::<Vec<_>>();
                if names.is_empty() { Err(NameError::Empty(path)) } else { Ok(names) }
            }
            Err(NameError::Unknown { .. }) if given.contains(',') => {
                let parts = given.split(',').map(|part| self.expand(part.trim()));
                Ok(parts.collect::<Result<Vec<_>, _>>()?.concat())
            }
            // What is wrong with it is said when it is read.
            _ => Ok(vec![given.to_string()]),
        }
    }

    /// Returns where `name` leads.
    pub fn find(&self, name: &str) -> Result<Source, NameError> {
        if let Some(embedded) = Embedded::find(name) {
            return Ok(Source::Embedded(embedded));
        }
        if let Some(trace) = self.given.get(name) {
            return Ok(Source::Given(trace.clone()));
        }
        if let Some(file) = self.files.iter().find(|file| file_name(file) == name) {
            return Ok(Source::File(file.clone()));
        }
        let stem = |file: &&PathBuf| file.file_stem().is_some_and(|stem| stem.to_string_lossy() == name);
        let matches: Vec<&PathBuf> = self.files.iter().filter(stem).collect();
        match (matches.as_slice(), &self.folder) {
            ([file], _) => return Ok(Source::File((*file).clone())),
            ([_, _, ..], Some(folder)) => {
                return Err(NameError::Ambiguous {
                    name: name.to_string(),
                    folder: folder.clone(),
                    matches: matches.iter().map(|file| file_name(file)).collect(),
                });
            }
            _ => {}
        }
        let path = Path::new(name);
        if name == input::STANDARD_INPUT || path.exists() {
            return Ok(Source::File(path.to_path_buf()));
        }
        let fetched = self.cache.as_ref().map(|cache| catalogue::kept_at(cache, name));
        if let Some(file) = fetched.filter(|file| !name.contains(['/', '\\']) && file.is_file()) {
            return Ok(Source::File(file));
        }
        if let Some((file, direction)) = split_direction(name)
            && let Ok(Source::File(path)) = self.find(file)
        {
            return Ok(Source::File(PathBuf::from(format!("{}#{direction}", path.display()))));
        }
        Err(NameError::Unknown { name: name.to_string(), known: self.list() })
    }

    /// Returns the trace that `name` leads to, and what is known about it if it is a recording.
    pub fn load_with_about(&self, name: &str) -> Result<(Trace, Option<About>), NameError> {
        match self.find(name)? {
            Source::File(path) => read_with_about(&path),
            source => Ok((source.load()?, None)),
        }
    }

    /// Returns the trace that `name` leads to.
    pub fn load(&self, name: &str) -> Result<Trace, NameError> {
        self.find(name)?.load()
    }
}

impl Source {
    /// Returns the trace.
    pub fn load(&self) -> Result<Trace, NameError> {
        match self {
            Source::Embedded(embedded) => Ok(embedded.trace()),
            Source::File(path) => read(path),
            Source::Given(trace) => Ok(trace.clone()),
        }
    }
}

/// Reads a file in Mahimahi's format, or a recording, with `#up` or `#down` after its path for one direction.
pub fn read(path: &Path) -> Result<Trace, NameError> {
    read_with_about(path).map(|(trace, _)| trace)
}

/// The same, with what is known about it if it is a recording.
fn read_with_about(path: &Path) -> Result<(Trace, Option<About>), NameError> {
    let (path, direction, bytes) = contents(path)?;
    if file::is_recording(&bytes) {
        let read = file::read(&bytes);
        drop(bytes);
        let trace = read.and_then(|recording| Ok((recording.trace(direction)?, Some(recording.about))));
        return trace.map_err(|error| NameError::Recording { path, error: Box::new(error) });
    }
    match (direction, Trace::parse(&bytes)) {
        (Some(direction), _) => Err(NameError::NoDirections { path, direction }),
        (None, Ok(trace)) => Ok((trace, None)),
        (None, Err(error)) => Err(NameError::Trace { path, error }),
    }
}

/// Returns `true` if this is the path of a file, with or without a direction after it.
pub fn is_file(path: &Path) -> bool {
    path.is_file()
        || path.to_str().and_then(split_direction).is_some_and(|(file, _)| Path::new(file).is_file())
}

/// The file at `path`, the direction that stands after it, and what the file holds.
fn contents(path: &Path) -> Result<(PathBuf, Option<LinkDirection>, Vec<u8>), NameError> {
    let split = path.to_str().filter(|_| !path.exists()).and_then(split_direction);
    let (path, direction) = match split {
        Some((file, direction)) => (PathBuf::from(file), Some(direction)),
        None => (path.to_path_buf(), None),
    };
    match input::read(&path, input::TRACE).and_then(|bytes| gzip::unpacked(bytes, |_| input::TRACE)) {
        Ok(bytes) => Ok((path, direction, bytes)),
        Err(error) => Err(NameError::Read { path, error }),
    }
}

/// The name before `#up` or `#down`, and which of them it is.
fn split_direction(name: &str) -> Option<(&str, LinkDirection)> {
    let (file, direction) = name.rsplit_once('#')?;
    Some((file, direction.parse().ok()?))
}

/// Returns the recipe of the embedded trace called `name`, or the one in the file of that path.
pub fn recipe(name: &str) -> Result<Recipe, RecipeNameError> {
    if let Some(embedded) = Embedded::find(name) {
        return Ok(embedded.recipe());
    }
    let path = PathBuf::from(name);
    let text = |bytes| String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"));
    match input::read(&path, input::DOCUMENT).and_then(text) {
        Ok(text) => text.parse().map_err(|error| RecipeNameError::Recipe { path, error }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let known = EMBEDDED.iter().map(|embedded| embedded.name.to_string()).collect();
            Err(RecipeNameError::Unknown { name: name.to_string(), known })
        }
        Err(error) => Err(RecipeNameError::Read { path, error }),
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
