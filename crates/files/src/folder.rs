//! An output folder. Files are written beside it and moved into place once all of them are
//! complete; a run that fails or is interrupted leaves nothing behind.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::system::{self, AsInvoker, Hold, Janitor};

/// What an interrupt has to clean up. Whoever makes a part of it holds the lock: what came while the rest is
/// removed would stay.
static IN_THE_MAKING: Mutex<Option<Making>> = Mutex::new(None);

/// The process that removes what is in the making if this one is killed.
static JANITOR: Mutex<Option<Janitor>> = Mutex::new(None);

/// What goes if the work is given up.
#[derive(Clone, Debug)]
enum Making {
    /// The folder in the making; and the folders that had to be made above it, the lowest first, as far as
    /// they are empty.
    Folder(PathBuf, Vec<PathBuf>),
    /// A file in the making.
    File(PathBuf),
}

/// An output folder in the making. Under sudo it is, with all that is above it and in it, made by the user
/// who called it.
#[derive(Debug)]
pub struct Folder {
    target: PathBuf,
    /// Of a name that nobody can guess, and nobody else's to enter.
    staging: PathBuf,
    /// In it: what becomes the target.
    contents: PathBuf,
    /// The folders that had to be made for the target to have a parent, the lowest first.
    made: Vec<PathBuf>,
    /// Others can tell by it that the folder is still being made.
    hold: Option<Hold>,
    kept: bool,
}

impl Folder {
    /// Makes sure that `target` can be written, before any work is done for it.
    /// `on_removed` is told what runs that were killed had left there, which is removed.
    pub fn create(target: &Path, on_removed: &mut dyn FnMut(&Path)) -> Result<Self, Error> {
        let _user = AsInvoker::begin();
        let refuse = |error: io::Error| refuse(target, error);
        if target.exists() && !target.is_dir() {
            return Err(refuse(io::Error::other("it is a file, not a folder")));
        }
        if target.is_symlink() && !target.exists() {
            return Err(refuse(io::Error::other("it is a link to nothing")));
        }
        let absolute = std::path::absolute(target).map_err(refuse)?;
        let parent = absolute.parent().unwrap_or(&absolute).to_path_buf();
        let made = parent.ancestors().take_while(|folder| !folder.exists()).map(Path::to_path_buf).collect();
        let name = absolute.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        // Inside a folder that exists, so that moving never crosses a file system; beside one that does not.
        let place = if absolute.is_dir() { &absolute } else { &parent };
        // The run that was killed may have found no folder there, and another have made one since.
        for place in [&parent, &absolute] {
            clear_abandoned(place, &name, on_removed);
        }
        let staging = place.join(partial(&name));
        let contents = staging.join("contents");
        let mut folder =
            Folder { target: absolute.clone(), staging, contents, made, hold: None, kept: false };
        let _begun = begin(Making::Folder(folder.staging.clone(), folder.made.clone()));
        if !folder.made.is_empty() {
            fs::create_dir_all(place).map_err(refuse)?;
        }
        // Fails where there is something already, be it a link.
        system::create_private(&folder.staging).map_err(refuse)?;
        folder.hold = Some(Hold::on(&folder.staging));
        fs::create_dir(&folder.contents).map_err(refuse)?;
        Ok(folder)
    }

    /// Writes a file; `name` may hold folders of its own.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> Result<(), Error> {
        let _user = AsInvoker::begin();
        let _going_on = lock();
        let path = self.contents.join(name);
        make_parent(&path)
            .and_then(|()| fs::write(path, contents))
            .map_err(|error| refuse(&self.target, error))
    }

    /// Returns where to write a file of that name.
    pub fn path(&self, name: &str) -> Result<PathBuf, Error> {
        let _user = AsInvoker::begin();
        let _going_on = lock();
        let path = self.contents.join(name);
        make_parent(&path).map_err(|error| refuse(&self.target, error))?;
        Ok(path)
    }

    /// Moves everything into place and says where that is.
    pub fn keep(mut self) -> Result<PathBuf, Error> {
        let _user = AsInvoker::begin();
        let mut in_the_making = lock();
        let moved = sync(&self.contents).and_then(|()| {
            if self.target.is_dir() {
                may_replace(&self.contents, &self.target)?;
                move_into(&self.contents, &self.target)
            } else {
                fs::rename(&self.contents, &self.target)
            }
        });
        moved
            .and_then(|()| fs::remove_dir_all(&self.staging))
            .map_err(|error| refuse(&self.target, error))?;
        self.kept = true;
        self.hold = None;
        *in_the_making = None;
        nothing_in_the_making();
        drop(in_the_making);
        Ok(self.target.clone())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.kept {
            clean_up();
        }
    }
}

/// Returns the name of something in the folder at `target` that is nobody's result, if there is something and
/// none of `results`: an earlier result may be replaced, and what somebody else put there should not get
/// company by mistake.
pub fn other_things(target: &Path, results: &[&str]) -> Option<String> {
    let _user = AsInvoker::begin();
    let entries = fs::read_dir(target).ok()?.flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    // What runs that were killed have left.
    names.retain(|name| !name.ends_with(".partial"));
    names.sort();
    if names.iter().any(|name| results.contains(&name.as_str())) { None } else { names.into_iter().next() }
}

/// The name of what is in the making: one that nobody can guess, so that nobody can have put anything in its
/// place.
pub(crate) fn partial(name: &str) -> String {
    let number = || RandomState::new().hash_one(std::process::id());
    format!(".{name}.{:016x}{:016x}.partial", number(), number())
}

/// Removes what runs that were killed left in `place` on their way to a target called `name`; `on_removed` is
/// told each path.
pub(crate) fn clear_abandoned(place: &Path, name: &str, on_removed: &mut dyn FnMut(&Path)) {
    let (start, end) = (format!(".{name}."), ".partial");
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let file = entry.file_name();
        let random = file.to_str().and_then(|file| file.strip_prefix(&start)?.strip_suffix(end));
        let ours = random.is_some_and(|r| r.len() == 32 && r.bytes().all(|byte| byte.is_ascii_hexdigit()));
        // The program makes no symbolic links. What belongs to another user cannot be removed, and stays.
        if !ours
            || entry.file_type().is_ok_and(|kind| kind.is_symlink())
            || !system::is_abandoned(&entry.path())
        {
            continue;
        }
        let removed = fs::remove_dir_all(entry.path()).or_else(|_| fs::remove_file(entry.path()));
        if removed.is_ok() {
            on_removed(&entry.path());
        }
    }
}

/// Makes a file. From now on an interrupt or a kill removes it, until [`clean_up`].
pub(crate) fn begin_file(path: &Path) -> io::Result<File> {
    let _begun = begin(Making::File(path.to_path_buf()));
    File::create_new(path)
}

/// Starts the process that removes what is in the making if this one is killed. Must be called before other
/// threads are started. Where it cannot be started, the next run removes it.
pub fn start_janitor() {
    *janitor() = Janitor::start().ok();
}

/// From now on an interrupt or a kill removes this, until [`clean_up`]: to be made while the caller keeps
/// what is returned.
fn begin(what: Making) -> MutexGuard<'static, Option<Making>> {
    let mut in_the_making = lock();
    if let Some(janitor) = janitor().as_mut() {
        let told = match &what {
            Making::Folder(folder, made) => janitor.tell(folder, made),
            Making::File(file) => janitor.tell(file, &[]),
        };
        // A janitor that was killed removes nothing; the next run will.
        drop(told);
    }
    *in_the_making = Some(what);
    in_the_making
}

fn nothing_in_the_making() {
    if let Some(janitor) = janitor().as_mut() {
        janitor.forget();
    }
}

fn janitor() -> MutexGuard<'static, Option<Janitor>> {
    JANITOR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what is in the making, if something is.
pub(crate) fn clean_up() {
    if let Some(what) = lock().take() {
        remove(&what);
        nothing_in_the_making();
    }
}

/// Removes what is in the making, if something is, before the process ends. Whoever would make more of it
/// waits as long as the caller keeps what is returned. What others write there meanwhile the janitor removes.
pub fn give_up() -> GivenUp {
    let mut in_the_making = lock();
    if let Some(what) = in_the_making.take() {
        remove(&what);
    }
    GivenUp { _lock: in_the_making }
}

/// That nothing more is made, as long as it lives.
#[derive(Debug)]
#[must_use]
pub struct GivenUp {
    _lock: MutexGuard<'static, Option<Making>>,
}

fn remove(what: &Making) {
    match what {
        Making::Folder(folder, made) => system::remove(folder, made),
        Making::File(file) => {
            let _user = AsInvoker::begin();
            // Nothing can be done about what will not go.
            let _ = fs::remove_file(file);
        }
    }
}

fn lock() -> MutexGuard<'static, Option<Making>> {
    IN_THE_MAKING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn make_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// Has the system write every file below `folder` to the disk: a name must not lead to a file whose contents
/// a power failure would lose.
fn sync(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync(&entry.path())?;
        } else {
            // Windows syncs only what is open for writing.
            OpenOptions::new().append(true).open(entry.path())?.sync_all()?;
        }
    }
    Ok(())
}

/// Fails if a file of `from` would take the place of something in `to` that is no regular file, or one of its
/// folders that of no folder. Links are not followed: where one leads, somebody else may have decided.
fn may_replace(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        let refuse = |what: &str| Err(io::Error::other(format!("`{}` is {what}", place.display())));
        let folder = entry.file_type()?.is_dir();
        match fs::symlink_metadata(&place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(there) if there.is_symlink() => return refuse("a link"),
            Ok(there) if folder && there.is_dir() => may_replace(&entry.path(), &place)?,
            Ok(_) if folder => return refuse("not a folder"),
            Ok(there) if !there.is_file() => return refuse("not a regular file"),
            Ok(_) => {}
        }
    }
    Ok(())
}

/// Moves every file of `from` to its place in `to`, replacing what is there; one file at a time, each of them
/// complete.
fn move_into(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir_all(&place)?;
            move_into(&entry.path(), &place)?;
        } else {
            fs::rename(entry.path(), place)?;
        }
    }
    Ok(())
}

fn refuse(target: &Path, error: io::Error) -> Error {
    Error::Folder { target: target.to_path_buf(), error }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::file::Destination;

    fn nothing(_: &Path) {}

    /// One test, because the folder in the making is one per process.
    #[test]
    fn all_or_nothing() {
        let scratch = std::env::temp_dir().join(format!("brakelight-folder-{}", std::process::id()));
        fs::create_dir_all(&scratch).unwrap();
        let names = |folder: &Path| {
            let mut names: Vec<String> = fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            names
        };

        // Given up: nothing remains, not even the folders above.
        let target = scratch.join("a/b/c");
        let folder = Folder::create(&target, &mut nothing).unwrap();
        folder.write("report.html", "half").unwrap();
        drop(folder);
        assert_eq!(names(&scratch), [] as [&str; 0]);

        // Kept: the files and nothing else.
        let folder = Folder::create(&target, &mut nothing).unwrap();
        folder.write("report.html", "one").unwrap();
        folder.write("series/x.csv", "1").unwrap();
        folder.keep().unwrap();
        assert_eq!(names(&target), ["report.html", "series"]);

        // Into a folder that exists: what else is there stays.
        fs::write(target.join("mine.txt"), "mine").unwrap();
        let folder = Folder::create(&target, &mut nothing).unwrap();
        folder.write("report.html", "two").unwrap();
        folder.write("series/y.csv", "2").unwrap();
        folder.keep().unwrap();
        assert_eq!(names(&target), ["mine.txt", "report.html", "series"]);
        assert_eq!(names(&target.join("series")), ["x.csv", "y.csv"]);
        assert_eq!(fs::read_to_string(target.join("report.html")).unwrap(), "two");

        assert_eq!(other_things(&target, &["report.html"]), None, "an earlier result");
        assert_eq!(other_things(&target, &["runs.json"]).as_deref(), Some("mine.txt"));
        assert_eq!(other_things(&scratch.join("nowhere"), &[]), None);

        // Given up again: what was there stays.
        let folder = Folder::create(&target, &mut nothing).unwrap();
        folder.write("report.html", "half").unwrap();
        drop(folder);
        assert_eq!(names(&target), ["mine.txt", "report.html", "series"]);
        assert_eq!(fs::read_to_string(target.join("report.html")).unwrap(), "two");

        // One file, the same way.
        let write = |path: &Path| match Destination::at(path)? {
            Destination::File(file) => file.write("1\n", &mut nothing),
            Destination::StandardOutput => unreachable!("{} is a file", path.display()),
        };
        write(&scratch.join("one.trace")).unwrap();
        assert_eq!(names(&scratch), ["a", "one.trace"]);
        assert!(write(&scratch.join("nowhere/one.trace")).is_err());
        assert!(write(&scratch.join("a")).is_err());
        assert_eq!(names(&scratch), ["a", "one.trace"]);

        // As any folder is made, and of a name that is another each time.
        let (first, second) = (Folder::create(&scratch.join("x"), &mut nothing).unwrap(), partial("x"));
        let staging = first.staging.clone();
        assert_eq!(staging.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_ne!(staging.file_name().unwrap(), second.as_str());
        let place = first.keep().unwrap();
        fs::create_dir(scratch.join("usual")).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode();
        assert_eq!(mode(&place), mode(&scratch.join("usual")));

        // Given up in the middle of the work, as by an interrupt: nothing comes back.
        let folder = Folder::create(&scratch.join("y/z"), &mut nothing).unwrap();
        let (working, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0.. {
                    let _ = folder.path(&format!("{number}/file"));
                    working.store(true, Ordering::Relaxed);
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            while !working.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let given_up = give_up();
            let at_once = scratch.join("y").exists();
            std::thread::sleep(std::time::Duration::from_millis(20));
            let later = scratch.join("y").exists();
            stop.store(true, Ordering::Relaxed);
            drop(given_up);
            assert!(!at_once && !later, "at once: {at_once}, later: {later}");
        });

        // A file in the way.
        let failure = Folder::create(&target.join("mine.txt/below"), &mut nothing).unwrap_err();
        assert!(failure.to_string().contains("mine.txt/below` cannot be written"), "{failure}");
        fs::remove_dir_all(&scratch).unwrap();
    }
}
