//! The process that removes unfinished output if this one is killed.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::invoker::AsInvoker;
use crate::survivor::Survivor;

/// Removes what this process was making if it is killed.
#[derive(Debug)]
pub struct Janitor(Survivor);

impl Janitor {
    /// Starts the process that removes, which has nothing to remove yet. Must be called before other threads
    /// are started.
    pub fn start() -> io::Result<Self> {
        Ok(Janitor(Survivor::start(|told| {
            let mut paths = newest(told).into_iter();
            if let Some(path) = paths.next() {
                remove(&path, &paths.collect::<Vec<_>>());
            }
        })?))
    }

    /// Has `path` removed if this process is killed from now on, and then those of `parents`, in this order,
    /// that are empty; in place of what was to be removed before. To be called before `path` is made.
    pub fn tell(&mut self, path: &Path, parents: &[PathBuf]) -> io::Result<()> {
        let paths: Vec<&Path> = std::iter::once(path).chain(parents.iter().map(PathBuf::as_path)).collect();
        self.0.tell(&message(&paths))
    }

    /// Has nothing removed from now on: all that was made is to stay, or is gone.
    pub fn forget(&mut self) {
        // If it cannot be told, it will not find what it should remove.
        let _ = self.0.tell(&message(&[]));
    }
}

impl Drop for Janitor {
    /// Ends the watch: what was made stays.
    fn drop(&mut self) {
        self.forget();
        self.0.end();
    }
}

/// Paths as they are told to a janitor: how many, then each with its length.
fn message(paths: &[&Path]) -> Vec<u8> {
    let mut bytes = (paths.len() as u32).to_ne_bytes().to_vec();
    for path in paths {
        let path = path.as_os_str().as_bytes();
        bytes.extend_from_slice(&(path.len() as u32).to_ne_bytes());
        bytes.extend_from_slice(path);
    }
    bytes
}

/// The paths of the newest message that came whole: of one cut short by a kill, nothing has been made yet.
fn newest(mut told: &[u8]) -> Vec<PathBuf> {
    fn number(bytes: &mut &[u8]) -> Option<usize> {
        let (number, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(u32::from_ne_bytes(*number) as usize)
    }
    fn paths(bytes: &mut &[u8]) -> Option<Vec<PathBuf>> {
        let count = number(bytes)?;
        let mut paths = Vec::new();
        for _ in 0..count {
            let length = number(bytes)?;
            let (path, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            paths.push(PathBuf::from(OsStr::from_bytes(path)));
        }
        Some(paths)
    }
    let mut newest = Vec::new();
    while let Some(paths) = paths(&mut told) {
        newest = paths;
    }
    newest
}

/// Removes a folder or file, and then those of `parents`, in this order, that are empty. Errors are ignored.
pub fn remove(path: &Path, parents: &[PathBuf]) {
    let _user = AsInvoker::begin();
    let _ = std::fs::remove_dir_all(path).or_else(|_| std::fs::remove_file(path));
    for parent in parents {
        let _ = std::fs::remove_dir(parent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_janitor_goes_by_the_newest_message_that_came_whole() {
        let (first, second) = (message(&[Path::new("/a/b"), Path::new("/a")]), message(&[Path::new("/c")]));
        assert_eq!(newest(&[]), [] as [PathBuf; 0]);
        assert_eq!(newest(&first), [PathBuf::from("/a/b"), PathBuf::from("/a")]);
        assert_eq!(newest(&[first.clone(), second.clone()].concat()), [PathBuf::from("/c")]);
        for cut in 0..second.len() {
            assert_eq!(newest(&[&first, &second[..cut]].concat()).len(), 2, "cut at {cut}");
        }
        assert_eq!(newest(&[first, message(&[])].concat()), [] as [PathBuf; 0]);
    }

    #[test]
    fn what_was_moved_away_in_time_stays_with_the_folders_above_it() {
        let top = std::env::temp_dir().join(format!("brakelight-janitor-{}", std::process::id()));
        let parents = [top.join("a/b"), top.join("a"), top.clone()];
        let staging = top.join("a/b/.log.partial");
        // Killed before: nothing is left.
        std::fs::create_dir_all(staging.join("links")).unwrap();
        remove(&staging, &parents);
        assert!(!top.exists());
        // Killed between the move and the word that all is well.
        std::fs::create_dir_all(&staging).unwrap();
        std::fs::rename(&staging, top.join("a/b/log")).unwrap();
        remove(&staging, &parents);
        assert!(top.join("a/b/log").is_dir());
        std::fs::remove_dir_all(&top).unwrap();
    }
}
