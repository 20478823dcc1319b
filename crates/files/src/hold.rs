//! Marks of what is being made: as long as its maker lives, others can tell that it is not abandoned.
//!
//! The mark is a lock of the kernel's (flock(2)), which goes with the last process that holds it, however
//! that one ends.

use std::fs::File;
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};

/// A mark, as long as this lives.
#[derive(Debug)]
pub struct Hold {
    _lock: Option<Flock<File>>,
}

impl Hold {
    /// Marks the file or folder at `path`. Where the file system knows no locks there is no mark, and others
    /// see none missing.
    pub fn on(path: &Path) -> Self {
        let open = File::open(path).ok();
        Hold { _lock: open.and_then(|file| Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()) }
    }
}

/// Returns `true` if nobody who still lives has marked the file or folder at `path`. Returns `false` if that
/// cannot be told.
pub fn is_abandoned(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    Flock::lock(file, FlockArg::LockSharedNonblock).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_not_abandoned() {
        let folder = std::env::temp_dir().join(format!("brakelight-hold-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let before = is_abandoned(&folder);
        let hold = Hold::on(&folder);
        let meanwhile = is_abandoned(&folder);
        drop(hold);
        let after = is_abandoned(&folder);
        std::fs::remove_dir(&folder).unwrap();
        assert_eq!((before, meanwhile, after), (true, false, true));
    }
}
