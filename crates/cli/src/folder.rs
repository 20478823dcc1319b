//! The folder that `--out` names. Files are written beside it and moved into place once all of them are complete; a run that
//! fails or is interrupted leaves nothing behind.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::failure::Failure;

/// What an interrupt has to clean up: the folder, or the file, in the making.
static IN_THE_MAKING: Mutex<Option<PathBuf>> = Mutex::new(None);

/// An output folder in the making.
#[derive(Debug)]
pub struct Folder {
    target: PathBuf,
    staging: PathBuf,
    /// The topmost folder that had to be made for the target to have a parent.
    made: Option<PathBuf>,
    kept: bool,
}

impl Folder {
    /// Makes sure that `target` can be written, before any work is done for it.
    pub fn create(target: &Path) -> Result<Self, Failure> {
        let refuse = |error: io::Error| refuse(target, &error);
        if target.exists() && !target.is_dir() {
            return Err(refuse(io::Error::other("it is a file, not a folder")));
        }
        let absolute = std::path::absolute(target).map_err(refuse)?;
        let parent = absolute.parent().unwrap_or(&absolute).to_path_buf();
        let made = parent.ancestors().take_while(|folder| !folder.exists()).last().map(Path::to_path_buf);
        let name = absolute.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        // Inside a folder that exists, so that moving never crosses a file system; beside one that does not.
        let place = if absolute.is_dir() { &absolute } else { &parent };
        let staging = place.join(format!(".{name}.{}.partial", std::process::id()));
        let folder = Folder { target: absolute.clone(), staging, made, kept: false };
        *lock() = Some(folder.made.clone().unwrap_or_else(|| folder.staging.clone()));
        fs::create_dir_all(&folder.staging).map_err(refuse)?;
        Ok(folder)
    }

    /// Writes a file; `name` may hold folders of its own.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> Result<(), Failure> {
        let path = self.path(name)?;
        fs::write(path, contents).map_err(|error| refuse(&self.target, &error))
    }

    /// Where to write a file of that name.
    pub fn path(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.staging.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| refuse(&self.target, &error))?;
        }
        Ok(path)
    }

    /// What goes if the work is given up: the folder in the making, or the topmost that had to be made for it.
    pub fn in_the_making(&self) -> &Path {
        self.made.as_deref().unwrap_or(&self.staging)
    }

    /// Moves everything into place and says where that is.
    pub fn keep(mut self) -> Result<PathBuf, Failure> {
        let moved = if self.target.is_dir() {
            move_into(&self.staging, &self.target).and_then(|()| fs::remove_dir_all(&self.staging))
        } else {
            fs::rename(&self.staging, &self.target)
        };
        moved.map_err(|error| refuse(&self.target, &error))?;
        self.kept = true;
        *lock() = None;
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

/// Writes one file, whole or not at all.
pub fn write_file(path: &Path, contents: &str) -> Result<(), Failure> {
    let refuse = |error: io::Error| {
        let shown = path.display();
        Failure::input(format!(
            "--out `{shown}` cannot be written: {error}; give a file in a folder that exists"
        ))
    };
    let name = path.file_name().ok_or_else(|| refuse(io::Error::other("it is not the name of a file")))?;
    if path.is_dir() {
        return Err(refuse(io::Error::other("it is a folder")));
    }
    let staging = path.with_file_name(format!(".{}.{}.partial", name.to_string_lossy(), std::process::id()));
    *lock() = Some(staging.clone());
    let written = fs::write(&staging, contents).and_then(|()| fs::rename(&staging, path));
    clean_up();
    written.map_err(refuse)
}

/// Removes the folder in the making, if there is one. An interrupt calls it too.
pub fn clean_up() {
    if let Some(place) = lock().take() {
        // Nothing can be done about what will not go.
        let _ = if place.is_dir() { fs::remove_dir_all(place) } else { fs::remove_file(place) };
    }
}

/// What else an interrupt has to take down.
static AT_INTERRUPT: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

/// Has an interrupt do this before the process ends; in place of what was asked for before.
pub fn at_interrupt(act: impl FnOnce() + Send + 'static) {
    *AT_INTERRUPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(Box::new(act));
}

/// From now on an interrupt leaves nothing half-written behind.
pub fn clean_up_on_interrupt() {
    // A second handler would be refused; there is none.
    let _ = ctrlc::set_handler(|| {
        clean_up();
        let act = AT_INTERRUPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(act) = act {
            act();
        }
        // 128 + SIGINT, as shells count.
        std::process::exit(130);
    });
}

fn lock() -> std::sync::MutexGuard<'static, Option<PathBuf>> {
    IN_THE_MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Moves every file of `from` to its place in `to`, replacing what is there; one file at a time, each of them complete.
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

fn refuse(target: &Path, error: &io::Error) -> Failure {
    Failure::input(format!(
        "--out `{}` cannot be written: {error}; give a folder that exists or can be made",
        target.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let folder = Folder::create(&target).unwrap();
        folder.write("report.html", "half").unwrap();
        drop(folder);
        assert_eq!(names(&scratch), [] as [&str; 0]);

        // Kept: the files and nothing else.
        let folder = Folder::create(&target).unwrap();
        folder.write("report.html", "one").unwrap();
        folder.write("series/x.csv", "1").unwrap();
        folder.keep().unwrap();
        assert_eq!(names(&target), ["report.html", "series"]);

        // Into a folder that exists: what else is there stays.
        fs::write(target.join("mine.txt"), "mine").unwrap();
        let folder = Folder::create(&target).unwrap();
        folder.write("report.html", "two").unwrap();
        folder.write("series/y.csv", "2").unwrap();
        folder.keep().unwrap();
        assert_eq!(names(&target), ["mine.txt", "report.html", "series"]);
        assert_eq!(names(&target.join("series")), ["x.csv", "y.csv"]);
        assert_eq!(fs::read_to_string(target.join("report.html")).unwrap(), "two");

        // Given up again: what was there stays.
        let folder = Folder::create(&target).unwrap();
        folder.write("report.html", "half").unwrap();
        drop(folder);
        assert_eq!(names(&target), ["mine.txt", "report.html", "series"]);
        assert_eq!(fs::read_to_string(target.join("report.html")).unwrap(), "two");

        // One file, the same way.
        write_file(&scratch.join("one.trace"), "1\n").unwrap();
        assert_eq!(names(&scratch), ["a", "one.trace"]);
        assert_eq!(write_file(&scratch.join("nowhere/one.trace"), "1\n").unwrap_err().code, 2);
        assert_eq!(write_file(&scratch.join("a"), "1\n").unwrap_err().code, 2);
        assert_eq!(names(&scratch), ["a", "one.trace"]);

        // A file in the way.
        let failure = Folder::create(&target.join("mine.txt/below")).unwrap_err();
        assert_eq!(failure.code, 2);
        assert!(failure.message.contains("mine.txt/below` cannot be written"), "{failure}");
        fs::remove_dir_all(&scratch).unwrap();
    }
}
