//! Public recordings: downloaded when asked for, verified, converted, kept.
//!
//! What was fetched lies in a folder as `NAME.bltrace` and is found there by its name, without a network.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use brakelight_links::trace::Trace;
use brakelight_scenario::identity::sha256;
use brakelight_scenario::input;
use brakelight_scenario::trace::OPPORTUNITY;
use brakelight_scenario::trace::catalogue::{
    CACHE_VARIABLE, CATALOGUE, Catalogue, CatalogueEntry, CatalogueError, CatalogueFile, cache, kept_at,
};
use brakelight_scenario::trace::convert::ConvertError;
use brakelight_scenario::trace::names::{self, NameError};
use brakelight_scenario::trace::recording::{RecordingError, file};
use brakelight_scenario::trace::statistics::Statistics;

use crate::text::table::{self, Column};
use crate::text::{Screen, number};

/// How files of the network are read.
pub trait Download {
    /// Returns the contents of the file at `url`, of `most` bytes at most. Fails with what went wrong, in
    /// words.
    fn get(&self, url: &str, most: u64) -> Result<Vec<u8>, String>;
}

/// A recording that lies in the folder.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// Where.
    pub path: PathBuf,
    /// What a link replays of it.
    pub trace: Trace,
    /// Whether it was there before, so that nothing was downloaded.
    pub was_there: bool,
    /// What the user should know about it, a sentence each.
    pub notes: Vec<String>,
}

/// Why a recording was not fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The user has no home, and no folder was named.
    #[error("no folder to keep recordings in: set {CACHE_VARIABLE}")]
    NoFolder,
    /// The file of a catalogue cannot be read.
    #[error(transparent)]
    Unreadable(#[from] crate::error::Error),
    /// A catalogue is wrong.
    #[error("{file}: {error}")]
    Catalogue {
        /// Its file.
        file: String,
        /// Why.
        error: CatalogueError,
    },
    /// The data set is no single file.
    #[error("`{name}` cannot be fetched as a file. From {page}: {what}")]
    ByHand {
        /// The entry.
        name: String,
        /// The page of the data set.
        page: String,
        /// What to do.
        what: String,
    },
    /// The address is not one that is read.
    #[error("{0}: valid are addresses that begin with `https://` or `http://`")]
    Address(String),
    /// The file was not to be had.
    #[error("{url}: {reason}")]
    Download {
        /// Its address.
        url: String,
        /// Why not.
        reason: String,
    },
    /// Another file came than the catalogue says.
    #[error("{url}: the file has changed: its SHA-256 is {found}, but the catalogue says {expected}")]
    Hash {
        /// Its address.
        url: String,
        /// The hash of what came.
        found: String,
        /// That of the catalogue.
        expected: String,
    },
    /// What came cannot be converted.
    #[error("`{name}`: {error}")]
    Convert {
        /// The entry.
        name: String,
        /// Why.
        error: Box<ConvertError>,
    },
    /// The recording cannot be written or replayed.
    #[error("`{name}`: {error}")]
    Recording {
        /// The entry.
        name: String,
        /// Why.
        error: RecordingError,
    },
    /// The folder cannot be written.
    #[error("{}: {error}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// What lies in the folder cannot be read.
    #[error("{0}; `--again` downloads it again")]
    Kept(NameError),
}

/// Returns the catalogue in the file at `path`; the one that comes with the program, if there is none.
pub fn catalogue(path: Option<&Path>) -> Result<Catalogue, FetchError> {
    let (file, parsed) = match path {
        None => ("catalogue.toml".to_string(), Catalogue::parse(CATALOGUE)),
        Some(path) => {
            (path.display().to_string(), Catalogue::parse(&crate::input::text(path, "a catalogue")?))
        }
    };
    parsed.map_err(|error| FetchError::Catalogue { file, error })
}

/// Returns the folder that recordings are kept in. Fails where the user has no home and
/// [`CACHE_VARIABLE`] is not set.
pub fn folder() -> Result<PathBuf, FetchError> {
    cache().ok_or(FetchError::NoFolder)
}

/// Returns the recording of `entry` from `folder`; it is downloaded first if it is not there, or if `again`.
pub fn fetch(
    entry: &CatalogueEntry,
    folder: &Path,
    download: &dyn Download,
    again: bool,
) -> Result<Fetched, FetchError> {
    let path = kept_at(folder, &entry.name);
    if path.is_file() && !again {
        let trace = names::read(&path).map_err(FetchError::Kept)?;
        return Ok(Fetched { path, trace, was_there: true, notes: Vec::new() });
    }
    if let Some(what) = &entry.by_hand {
        let (name, page) = (entry.name.clone(), entry.page.clone());
        return Err(FetchError::ByHand { name, page, what: what.clone() });
    }
    let mut contents = Vec::new();
    let (mut hashes, mut notes) = (Vec::new(), Vec::new());
    for file in entry.files() {
        let (bytes, hash) = get(file, download)?;
        if file.sha256.is_none() {
            notes.push(format!("{}: the catalogue has no hash of this file; it is {hash}", file.url));
        }
        contents.push(bytes);
        hashes.push(hash);
    }
    let name = || entry.name.clone();
    let converted = entry.convert(&contents);
    let refuse = |error| FetchError::Convert { name: name(), error: Box::new(error) };
    let (mut recording, more) = converted.map_err(refuse)?;
    notes.extend(more);
    recording.about.source_sha256 = Some(hashes.join(" "));
    let refuse = |error| FetchError::Recording { name: name(), error };
    let trace = recording.trace(None).map_err(refuse)?;
    let bytes = file::write(&recording).map_err(refuse)?;
    write(folder, &path, &bytes)?;
    Ok(Fetched { path, trace, was_there: false, notes })
}

/// The contents of a file, and their hash, which is the one that the catalogue says.
fn get(file: &CatalogueFile, download: &dyn Download) -> Result<(Vec<u8>, String), FetchError> {
    let url = &file.url;
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return Err(FetchError::Address(url.clone()));
    }
    let got = download.get(url, input::TRACE.0);
    let bytes = got.map_err(|reason| FetchError::Download { url: url.clone(), reason })?;
    let found = sha256(&bytes);
    match &file.sha256 {
        Some(expected) if !expected.eq_ignore_ascii_case(&found) => {
            Err(FetchError::Hash { url: url.clone(), found, expected: expected.clone() })
        }
        _ => Ok((bytes, found)),
    }
}

/// Writes the file whole or not at all: a name must not lead to half of a recording.
fn write(folder: &Path, path: &Path, bytes: &[u8]) -> Result<(), FetchError> {
    let refuse = |error| FetchError::Write { path: path.to_path_buf(), error };
    fs::create_dir_all(folder).map_err(refuse)?;
    let staging = path.with_extension(format!("part{}", std::process::id()));
    let written = fs::write(&staging, bytes).and_then(|()| fs::rename(&staging, path));
    written.map_err(|error| {
        // What is left of it would only be in the way.
        let _ = fs::remove_file(&staging);
        refuse(error)
    })
}

/// Returns the recordings of a catalogue as a table, those marked that lie in `folder`.
pub fn list(catalogue: &Catalogue, folder: &Path, screen: &Screen) -> String {
    let rows: Vec<Vec<String>> = catalogue
        .entries
        .iter()
        .map(|entry| {
            let here = kept_at(folder, &entry.name).is_file();
            let how = match &entry.by_hand {
                _ if here => "here",
                Some(_) => "by hand",
                None => "fetch",
            };
            [entry.name.as_str(), how, &entry.licence, &entry.about].map(String::from).to_vec()
        })
        .collect();
    table::render(&["trace", "how", "license", "about"].map(Column::text), &rows, screen)
        + "\n`brakelight trace fetch NAME` downloads one, whose name is then a trace.\n"
}

/// Returns what to know about a recording that was fetched, a line each.
pub fn in_words(entry: &CatalogueEntry, fetched: &Fetched) -> Vec<String> {
    let how = if fetched.was_there { "was there already" } else { "fetched" };
    let s = Statistics::of(&fetched.trace, OPPORTUNITY);
    let mut lines = vec![
        format!(
            "{} {how}: {} s, mean {} Mbit/s, in {}",
            entry.name,
            number(s.duration_s),
            number(s.mean_mbps),
            fetched.path.display()
        ),
        format!("license: {}", entry.licence),
        format!("cite: {}", entry.citation),
        format!("from: {}", entry.page),
    ];
    lines.extend(fetched.notes.iter().map(|note| format!("note: {note}")));
    lines
}

/// Downloads over HTTP, with the certificates that the system trusts.
#[cfg(feature = "fetch")]
#[derive(Clone, Debug)]
pub struct Http(ureq::Agent);

#[cfg(feature = "fetch")]
impl Default for Http {
    /// Gives up where a connection takes 30 s, or a file ten minutes.
    fn default() -> Self {
        use std::sync::Arc;
        use std::time::Duration;

        use ureq::tls::{Certificate, RootCerts, TlsConfig};

        let trusted = rustls_native_certs::load_native_certs().certs;
        let trusted = trusted.iter().map(|certificate| Certificate::from_der(certificate).to_owned());
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::from(trusted.collect::<Vec<_>>()))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let config = ureq::Agent::config_builder()
            .tls_config(tls)
            .timeout_connect(Some(Duration::from_secs(30)))
            .timeout_global(Some(Duration::from_secs(600)))
            .user_agent(concat!("brakelight/", env!("CARGO_PKG_VERSION")))
            .build();
        Http(config.into())
    }
}

#[cfg(feature = "fetch")]
impl Download for Http {
    fn get(&self, url: &str, most: u64) -> Result<Vec<u8>, String> {
        let mut response = self.0.get(url).call().map_err(|error| error.to_string())?;
        let body = response.body_mut().with_config().limit(most);
        body.read_to_vec().map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests;
