//! A sweep into a folder: a journal that grows as runs finish, and tables made of it at the end.
//!
//! `runs.jsonl` has one line per finished run. It is only ever appended to, so whatever ends a sweep, the
//! runs before it are kept. The tables are written from it in the order of the grid: their bytes do not
//! depend on interruptions.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use brakelight_files::{file, folder};
use brakelight_scenario::identity::RunId;
use brakelight_scenario::outcome::Run;
use serde::{Deserialize, Serialize};

use super::{Row, Shard, Sweep};
use crate::error::Error;
use crate::figures::rows::Rows;
use crate::frame::Frame;
use crate::parallel;
use crate::progress::Progress;
use crate::runner::Runner;

/// The name of the journal.
const JOURNAL: &str = "runs.jsonl";

/// Lines of the journal that are read at once.
const ROWS: usize = 1024;

/// Runs of a row group of Parquet, whose columns are in memory at once.
const GROUP: u64 = 16 * ROWS as u64;

/// The most row groups of a file, but for the last: of each group a reader must know where its columns are,
/// and so must the writer until the end.
const MOST_GROUPS: u64 = 1024;

/// Returns the runs of a row group of a sweep of so many runs.
pub(super) fn group(runs: u64) -> u64 {
    (runs / MOST_GROUPS).max(GROUP)
}

/// The output folder of a sweep and its options.
#[derive(Clone, Debug)]
pub struct Folder<'a> {
    /// Where it is; it is made if it is not there.
    pub path: &'a Path,
    /// The part of the grid to run.
    pub shard: Shard,
    /// Whether to keep the runs that the folder's journal has. Otherwise a folder with a journal is refused.
    pub resume: bool,
    /// Whether to keep what figures show of the runs: some bytes of each.
    pub figures: bool,
}

/// The result of a sweep into a folder.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// Runs of the shard.
    pub runs: u64,
    /// How many of them the folder had already.
    pub kept: u64,
    /// The tables.
    pub files: Vec<PathBuf>,
    /// What a sweep that was killed had left in the folder, and is gone now.
    pub removed: Vec<PathBuf>,
    /// What figures show of the runs.
    pub rows: Rows,
    /// Which runs a stack that others wrote has ended, and why: these are in no table, and are run again by a
    /// sweep that goes on.
    pub failed: Vec<String>,
}

/// A line of the journal.
#[derive(Serialize, Deserialize)]
struct Line {
    index: u64,
    run_id: RunId,
    run: Run,
}

impl Folder<'_> {
    /// Runs what is missing, then writes `runs`, `flows` and `links` as CSV and, where the feature `parquet`
    /// is on, as Parquet.
    pub fn run(&self, sweep: &Sweep, runner: &dyn Runner, progress: &dyn Progress) -> Result<Written, Error> {
        let path = self.path.join(JOURNAL);
        let failed = |error: io::Error| Error::Unwritable { path: path.clone(), error };
        let unusable = |error: io::Error| Error::Unwritable { path: self.path.to_path_buf(), error };
        if self.path.exists() && !self.path.is_dir() {
            return Err(unusable(io::Error::other("it is a file, not a folder")));
        }
        fs::create_dir_all(self.path).map_err(unusable)?;
        if path.exists() && !self.resume {
            return Err(Error::SweepExists(self.path.to_path_buf()));
        }
        let journal = file::append(&path).map_err(failed)?;
        // Until the tables are written too.
        let Some(_lock) = Lock::of(&journal).map_err(failed)? else {
            return Err(Error::SweepRunning(self.path.to_path_buf()));
        };
        let mut end = end_of_lines(&journal).map_err(failed)?;
        let mut places = Places::of(sweep, runner, &path, self.shard)?;
        let kept = places.len();
        let runs = (0..sweep.runs()).filter(|run| self.shard.has(*run)).count() as u64;
        let missing: Vec<u64> =
            (0..sweep.runs()).filter(|run| self.shard.has(*run) && !places.has(*run)).collect();
        let mut journal = BufWriter::new(journal);
        let failed_runs = sweep.run(&missing, runner, progress, &mut |Row { index, run_id, run }| {
            let line = Line { index, run_id, run: finite(run) };
            let line = serde_json::to_string(&line).map_err(|error| Error::json(&error))? + "\n";
            journal.write_all(line.as_bytes()).map_err(failed)?;
            let begin = end;
            end += line.len() as u64;
            places.insert(index, begin..end);
            // What ends the process takes what is buffered with it.
            journal.flush().map_err(failed)
        })?;
        drop(journal);
        let mut removed = Vec::new();
        let folder = folder::Folder::create(self.path, &mut |path| removed.push(path.to_path_buf()))?;
        let mut tables = Tables { place: self.path, folder, tables: Vec::new(), group: group(runs), held: 0 };
        let mut figures = Rows::default();
        let (mut journal, mut at) = (BufReader::new(File::open(&path).map_err(failed)?), 0_u64);
        let mut ordered = places.ordered();
        loop {
            let lines = ordered.by_ref().take(ROWS).map(|(index, place)| {
                // Most lines follow each other: what is buffered stays so.
                let place = place.unwrap_or(at);
                journal.seek_relative(place.cast_signed() - at.cast_signed()).map_err(failed)?;
                let mut line = String::new();
                at = place + journal.read_line(&mut line).map_err(failed)? as u64;
                Ok((index, line))
            });
            let lines = lines.collect::<Result<Vec<_>, Error>>()?;
            if lines.is_empty() {
                break;
            }
            let rows = parallel::map(&lines, |(index, line)| {
                let Line { run_id, run, .. } =
                    serde_json::from_str(line).map_err(|error| Error::json(&error))?;
                Ok(Row { index: *index, run_id, run })
            });
            let rows = rows?;
            if self.figures {
                rows.iter().for_each(|row| figures.add(&sweep.place(row.index), &row.run));
            }
            tables.write(sweep, &rows)?;
        }
        drop(ordered);
        let files = tables.finish()?;
        Ok(Written { runs, kept, files, removed, rows: figures, failed: failed_runs })
    }
}

/// A lock on the journal for this process: it goes with the process, however that one ends.
#[derive(Debug)]
pub(crate) struct Lock {
    #[cfg(unix)]
    journal: File,
}

#[cfg(unix)]
impl Lock {
    /// Locks the journal; none if another process has it. A file system that knows no locks is taken to have
    /// no other sweep.
    pub(crate) fn of(journal: &File) -> io::Result<Option<Self>> {
        use rustix::fs::{FlockOperation, flock};
        use rustix::io::Errno;

        let journal = journal.try_clone()?;
        let locked =
            !matches!(flock(&journal, FlockOperation::NonBlockingLockExclusive), Err(Errno::WOULDBLOCK));
        Ok(locked.then_some(Lock { journal }))
    }
}

#[cfg(unix)]
impl Drop for Lock {
    /// Unlocks by word: a child process that was just begun may still have the file open.
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.journal, rustix::fs::FlockOperation::Unlock);
    }
}

/// Elsewhere there is no such lock.
#[cfg(not(unix))]
impl Lock {
    pub(crate) fn of(_: &File) -> io::Result<Option<Self>> {
        Ok(Some(Lock {}))
    }
}

/// Which runs of a shard a journal has, and where their lines begin.
#[derive(Debug)]
pub(crate) struct Places {
    shard: Shard,
    /// Lines at the beginning that are the first runs of the shard, in their order. Most journals are nothing
    /// else, and these take no memory.
    first: u64,
    /// Where these end.
    end: u64,
    /// Where the lines of the other runs begin.
    others: BTreeMap<u64, u64>,
}

impl Places {
    /// Returns those of the journal at `path`. A line that ends early, or is of no run of the grid, is no
    /// run. A run that has another number in the journal, since the grid had fewer axes, values or seeds,
    /// is known by its identity. Lines are checked side by side: making the identity of a run anew takes
    /// longer than reading its line.
    pub(crate) fn of(sweep: &Sweep, runner: &dyn Runner, path: &Path, shard: Shard) -> Result<Self, Error> {
        let failed = |error: io::Error| Error::Unwritable { path: path.to_path_buf(), error };
        let mut places = Places { shard, first: 0, end: 0, others: BTreeMap::new() };
        // Of runs that are not where the journal says.
        let mut elsewhere: HashMap<RunId, u64> = HashMap::new();
        let mut reader = BufReader::new(File::open(path).map_err(failed)?);
        let mut at = 0;
        loop {
            let mut lines = Vec::with_capacity(ROWS);
            while lines.len() < ROWS {
                let mut line = Vec::new();
                let read = reader.read_until(b'\n', &mut line).map_err(failed)? as u64;
                if read == 0 {
                    break;
                }
                lines.push((at, line));
                at += read;
            }
            if lines.is_empty() {
                break;
            }
            let read = parallel::map(&lines, |(at, line)| {
                let Ok(Line { index, run_id, .. }) = serde_json::from_slice(line) else { return Ok(None) };
                let own = index < sweep.runs() && sweep.run_id(index, runner).is_ok_and(|own| own == run_id);
                Ok(Some((index, run_id, own, *at..*at + line.len() as u64)))
            })?;
            for (index, run_id, own, bytes) in read.into_iter().flatten() {
                match own {
                    true if shard.has(index) => places.insert(index, bytes),
                    true => {}
                    false => drop(elsewhere.insert(run_id, bytes.start)),
                }
            }
        }
        if elsewhere.is_empty() {
            return Ok(places);
        }
        let missing: Vec<u64> =
            (0..sweep.runs()).filter(|run| shard.has(*run) && !places.has(*run)).collect();
        for some in missing.chunks(ROWS) {
            let ids = parallel::map(some, |index| sweep.run_id(*index, runner))?;
            for (index, id) in some.iter().zip(ids) {
                if let Some(at) = elsewhere.get(&id) {
                    places.others.insert(*index, *at);
                }
            }
        }
        Ok(places)
    }

    /// Returns every run and where its line begins in the journal at `path`.
    pub(crate) fn starts(self, path: &Path) -> Result<Vec<(u64, u64)>, Error> {
        let failed = |error: io::Error| Error::Unwritable { path: path.to_path_buf(), error };
        let mut reader = BufReader::new(File::open(path).map_err(failed)?);
        let mut at = 0;
        let start = |(run, place): (u64, Option<u64>)| {
            if let Some(place) = place {
                return Ok((run, place));
            }
            let begin = at;
            at += reader.skip_until(b'\n').map_err(failed)? as u64;
            Ok((run, begin))
        };
        self.ordered().map(start).collect()
    }

    /// Returns how many there are.
    pub(crate) fn len(&self) -> u64 {
        self.first + self.others.len() as u64
    }

    /// Returns how many runs take no memory, and how many do.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> (u64, usize) {
        (self.first, self.others.len())
    }

    fn has(&self, run: u64) -> bool {
        run < self.shard.run(self.first) || self.others.contains_key(&run)
    }

    /// Adds the run whose line is these bytes of the journal.
    fn insert(&mut self, run: u64, bytes: std::ops::Range<u64>) {
        if self.others.is_empty() && run == self.shard.run(self.first) && bytes.start == self.end {
            (self.first, self.end) = (self.first + 1, bytes.end);
        } else if !self.has(run) {
            self.others.insert(run, bytes.start);
        }
    }

    /// Returns every run in the order of the grid, and where its line begins: where the last one ended if
    /// nothing is said.
    pub(crate) fn ordered(self) -> impl Iterator<Item = (u64, Option<u64>)> {
        let shard = self.shard;
        let first = (0..self.first).map(move |place| (shard.run(place), None));
        first.chain(self.others.into_iter().map(|(run, at)| (run, Some(at))))
    }
}

/// The length of a journal, once a line that ends early has been ended.
fn end_of_lines(mut journal: &File) -> io::Result<u64> {
    let length = journal.seek(SeekFrom::End(0))?;
    if length == 0 {
        return Ok(0);
    }
    journal.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    journal.read_exact(&mut last)?;
    if last == *b"\n" {
        return Ok(length);
    }
    journal.write_all(b"\n")?;
    Ok(length + 1)
}

/// The same without what JSON has no number for.
fn finite(mut run: Run) -> Run {
    for flow in &mut run.flows {
        for values in [&mut flow.application, &mut flow.state].into_iter().flatten() {
            values.retain(|_, value| value.is_finite());
        }
    }
    run
}

/// The tables in the making: all of them are moved into place together.
struct Tables<'a> {
    /// Where they will be.
    place: &'a Path,
    folder: folder::Folder,
    tables: Vec<Making>,
    /// Runs of a row group of Parquet.
    group: u64,
    /// Runs that have come since the last one.
    held: u64,
}

/// One table in its formats.
struct Making {
    name: &'static str,
    csv: BufWriter<File>,
    #[cfg(feature = "parquet")]
    parquet: crate::frame::parquet::Writer<BufWriter<File>>,
    /// The columns of the next row group so far: less than half of what the rows take.
    #[cfg(feature = "parquet")]
    group: Frame,
}

impl Making {
    /// Writes the rows that have come since the last row group.
    #[cfg(feature = "parquet")]
    fn write_group(&mut self) -> Result<(), Error> {
        self.parquet.write(&std::mem::take(&mut self.group))
    }
}

impl Tables<'_> {
    fn write(&mut self, sweep: &Sweep, rows: &[Row]) -> Result<(), Error> {
        let frames = [
            ("runs", sweep.runs_frame(rows)?),
            ("flows", sweep.flows_frame(rows)?),
            ("links", sweep.links_frame(rows)?),
        ];
        if self.tables.is_empty() {
            for (name, frame) in &frames {
                self.tables.push(self.begin(sweep, name, frame)?);
            }
        }
        self.held += rows.len() as u64;
        let is_group = self.held >= self.group;
        for (table, (name, frame)) in self.tables.iter_mut().zip(frames) {
            let written = table.csv.write_all(frame.csv_rows().as_bytes());
            written.map_err(|error| unwritable(self.place, name, "csv", error))?;
            #[cfg(feature = "parquet")]
            {
                table.group.append(frame)?;
                if is_group {
                    table.write_group()?;
                }
            }
        }
        if is_group {
            self.held = 0;
        }
        Ok(())
    }

    #[cfg_attr(not(feature = "parquet"), allow(unused_variables))]
    fn begin(&self, sweep: &Sweep, name: &'static str, frame: &Frame) -> Result<Making, Error> {
        let create = |ending: &str| {
            let file = File::create_new(self.folder.path(&format!("{name}.{ending}"))?);
            file.map(BufWriter::new).map_err(|error| unwritable(self.place, name, ending, error))
        };
        let mut csv = create("csv")?;
        let heading = csv.write_all(frame.csv_heading().as_bytes());
        heading.map_err(|error| unwritable(self.place, name, "csv", error))?;
        Ok(Making {
            name,
            csv,
            #[cfg(feature = "parquet")]
            parquet: {
                let axes = serde_json::to_string(&sweep.axes()).map_err(|error| Error::json(&error))?;
                let about = [("brakelight.table", name.to_string()), ("brakelight.axes", axes)];
                crate::frame::parquet::Writer::about(create("parquet")?, frame, &about)?
            },
            #[cfg(feature = "parquet")]
            group: Frame::default(),
        })
    }

    /// Moves every table into place.
    fn finish(self) -> Result<Vec<PathBuf>, Error> {
        let mut files = Vec::new();
        for mut table in self.tables {
            #[cfg(feature = "parquet")]
            if self.held > 0 {
                table.write_group()?;
            }
            let name = table.name;
            table.csv.flush().map_err(|error| unwritable(self.place, name, "csv", error))?;
            files.push(self.place.join(format!("{name}.csv")));
            #[cfg(feature = "parquet")]
            {
                let flushed = table.parquet.finish()?.flush();
                flushed.map_err(|error| unwritable(self.place, name, "parquet", error))?;
                files.push(self.place.join(format!("{name}.parquet")));
            }
        }
        self.folder.keep()?;
        Ok(files)
    }
}

fn unwritable(folder: &Path, name: &str, ending: &str, error: io::Error) -> Error {
    Error::Unwritable { path: folder.join(format!("{name}.{ending}")), error }
}
