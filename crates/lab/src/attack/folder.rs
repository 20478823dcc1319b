//! The folder of an attack: a journal of the links that were tried, and what was found.
//!
//! `evaluations.jsonl` begins with a line that says which attack it is, and has one line per link, in the
//! order in which the search asked for them. The search itself is not stored: it is run again, and what the
//! journal knows is not simulated again. So an attack that was interrupted, or one with a larger budget, goes
//! on where the journal ends, and the bytes do not depend on interruptions.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use brakelight_files::{file, folder};
use serde::{Deserialize, Serialize};

use super::Attack;
use super::space::Link;
use crate::error::Error;
use crate::output;
use crate::sweep::folder::Lock;

/// The name of the journal.
const JOURNAL: &str = "evaluations.jsonl";

/// The first line: what makes an attack what it is. Its budget may grow.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Heading {
    version: u32,
    scheme: String,
    against: Vec<String>,
    objective: String,
    space: String,
    bounds: String,
    seed: u64,
}

/// Of the format, and of the meaning of a damage.
const VERSION: u32 = 1;

/// A further line.
#[derive(Serialize, Deserialize)]
struct Line {
    /// In millionths, so that it is read as it was written.
    damage: i64,
    link: Link,
}

/// What is known of links.
#[derive(Debug, Default)]
pub(super) struct Journal {
    known: HashMap<String, i64>,
    file: Option<(PathBuf, File, Lock)>,
}

impl Journal {
    /// Opens the journal in `folder`, which is made if it is not there. Fails if it is that of another
    /// attack, or if another process has it.
    pub fn open(folder: &Path, attack: &Attack) -> Result<Self, Error> {
        let unusable = |error: io::Error| Error::Unwritable { path: folder.to_path_buf(), error };
        if folder.exists() && !folder.is_dir() {
            return Err(unusable(io::Error::other("it is a file, not a folder")));
        }
        fs::create_dir_all(folder).map_err(unusable)?;
        let path = folder.join(JOURNAL);
        let failed = |error: io::Error| Error::Unwritable { path: path.clone(), error };
        let mut file = file::append(&path).map_err(failed)?;
        let Some(lock) = Lock::of(&file).map_err(failed)? else {
            return Err(Error::AttackRunning(folder.to_path_buf()));
        };
        let heading = Heading {
            version: VERSION,
            scheme: attack.scheme.to_string(),
            against: attack.against.iter().map(ToString::to_string).collect(),
            objective: attack.objective.name().to_string(),
            space: attack.space.name().to_string(),
            bounds: attack.bounds.to_string(),
            seed: attack.seed,
        };
        let mut known = HashMap::new();
        let mut whole = 0;
        let mut reader = BufReader::new(&file);
        let mut text = Vec::new();
        while reader.read_until(b'\n', &mut text).map_err(failed)? > 0 {
            // What ends early was being written when its process ended.
            if text.last() != Some(&b'\n') {
                break;
            }
            if whole == 0 {
                if serde_json::from_slice::<Heading>(&text).ok().as_ref() != Some(&heading) {
                    return Err(Error::AttackExists(folder.to_path_buf()));
                }
            } else if let Ok(line) = serde_json::from_slice::<Line>(&text) {
                known.insert(key(&line.link)?, line.damage);
            }
            whole += text.len() as u64;
            text.clear();
        }
        file.set_len(whole).and_then(|()| file.seek(SeekFrom::End(0))).map_err(failed)?;
        let mut journal = Journal { known, file: Some((path.clone(), file, lock)) };
        if whole == 0 {
            journal.write(&heading)?;
        }
        Ok(journal)
    }

    /// What is known of `link`, in millionths.
    pub fn damage(&self, link: &Link) -> Result<Option<i64>, Error> {
        Ok(self.known.get(&key(link)?).copied())
    }

    /// Adds a link that was not known.
    pub fn add(&mut self, link: &Link, damage: i64) -> Result<(), Error> {
        if self.known.insert(key(link)?, damage).is_none() {
            self.write(&Line { damage, link: link.clone() })?;
        }
        Ok(())
    }

    fn write(&mut self, line: &impl Serialize) -> Result<(), Error> {
        let Some((path, file, _)) = &mut self.file else { return Ok(()) };
        let text = serde_json::to_string(line).map_err(|error| Error::json(&error))? + "\n";
        file.write_all(text.as_bytes()).map_err(|error| Error::Unwritable { path: path.clone(), error })
    }
}

/// By what a link is known.
fn key(link: &Link) -> Result<String, Error> {
    serde_json::to_string(link).map_err(|error| Error::json(&error))
}

/// Writes files of results into a folder that is there, all of them or none. Returns what a process that was
/// killed had left there, and is gone now.
pub(super) fn write(place: &Path, files: &[output::File]) -> Result<Vec<PathBuf>, Error> {
    let mut removed = Vec::new();
    let folder = folder::Folder::create(place, &mut |path| removed.push(path.to_path_buf()))?;
    for file in files {
        folder.write(&file.name, &file.contents)?;
    }
    folder.keep()?;
    Ok(removed)
}
