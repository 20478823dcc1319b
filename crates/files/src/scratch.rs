//! Folders for what is needed only for a while.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::system::{self, AsInvoker, Janitor};

/// A folder below the system's temporary one, gone when this is dropped. Nobody can guess its name, nobody
/// else may enter it, and under sudo it belongs to the user: programs can be put there and run.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes a folder whose name begins with `brakelight-` and `what`. Fails where there is something
    /// already, be it a link.
    pub fn new(what: &str) -> Result<Self, Error> {
        Scratch::at(place(what))
    }

    /// [`new`](Self::new), with a process that removes it if this one is killed. Must be called before there
    /// are other threads.
    pub fn watched(what: &str) -> Result<(Self, Janitor), Error> {
        let folder = place(what);
        let mut janitor = Janitor::start().map_err(Error::Janitor)?;
        janitor.tell(&folder, &[]).map_err(Error::Janitor)?;
        Ok((Scratch::at(folder)?, janitor))
    }

    fn at(folder: PathBuf) -> Result<Self, Error> {
        let _user = AsInvoker::begin();
        let made = system::create_private(&folder);
        match made {
            Ok(()) => Ok(Scratch(folder)),
            Err(error) => Err(Error::Scratch { folder, error }),
        }
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Where a folder goes that is made now.
fn place(what: &str) -> PathBuf {
    let number = || RandomState::new().hash_one(std::process::id());
    std::env::temp_dir().join(format!("brakelight-{what}-{:016x}{:016x}", number(), number()))
}

impl Drop for Scratch {
    fn drop(&mut self) {
        system::remove(&self.0, &[]);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_is_its_makers_alone_and_of_another_name_each_time() {
        let (one, other) = (Scratch::new("test").unwrap(), Scratch::new("test").unwrap());
        assert_ne!(one.path(), other.path());
        assert_eq!(one.path().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        let path = one.path().to_path_buf();
        drop(one);
        assert!(!path.exists());
    }
}
