//! What writing files needs of the operating system: acting as the user who called sudo, the mark of a file
//! that is being written, the process that cleans up after a kill, and a folder that nobody else may enter.
//! On other systems than Linux nothing acts as another user or cleans up after a kill: what a killed run
//! wrote stays.

use std::fs::DirBuilder;
use std::io;
use std::path::Path;

#[cfg(target_os = "linux")]
pub use crate::{
    hold::{Hold, is_abandoned},
    invoker::AsInvoker,
    janitor::{Janitor, remove},
};

#[cfg(not(target_os = "linux"))]
pub use portable::{AsInvoker, Hold, Janitor, is_abandoned, remove};

/// Creates a folder that no other user may enter.
///
/// # Errors
/// Something exists there already, even a link, or the folder cannot be created.
pub fn create_private(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    let builder = {
        let mut builder = DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
    };
    // On Windows a folder has the access rights of the one that it is created in.
    #[cfg(not(unix))]
    let builder = DirBuilder::new();
    builder.create(folder)
}

#[cfg(any(test, not(target_os = "linux")))]
#[cfg_attr(test, allow(dead_code))]
mod portable {
    use std::fs;
    use std::io;
    use std::path::{Path, PathBuf};

    /// Stands for acting as the user who called sudo: here files always belong to whoever runs the program.
    #[derive(Debug)]
    pub struct AsInvoker;

    impl AsInvoker {
        /// Changes nothing.
        pub fn begin() -> Self {
            AsInvoker
        }
    }

    impl Drop for AsInvoker {
        fn drop(&mut self) {}
    }

    /// Stands for the mark of a file that is being written.
    #[derive(Debug)]
    pub struct Hold;

    impl Hold {
        /// Does nothing.
        pub fn on(_path: &Path) -> Self {
            Hold
        }
    }

    /// Returns `false`: without marks a file of a killed run looks like one that is being written.
    pub fn is_abandoned(_path: &Path) -> bool {
        false
    }

    /// Stands for the process that removes what a killed one left.
    #[derive(Debug)]
    pub struct Janitor;

    impl Janitor {
        /// Starts no process.
        pub fn start() -> io::Result<Self> {
            Ok(Janitor)
        }

        /// Does nothing.
        pub fn tell(&mut self, _path: &Path, _parents: &[PathBuf]) -> io::Result<()> {
            Ok(())
        }

        /// Does nothing.
        pub fn forget(&mut self) {}
    }

    /// Removes what is at `path`, and then those of `parents` that are empty. Errors are ignored.
    pub fn remove(path: &Path, parents: &[PathBuf]) {
        let _ = fs::remove_dir_all(path).or_else(|_: io::Error| fs::remove_file(path));
        for parent in parents {
            let _ = fs::remove_dir(parent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_linux_a_folder_is_removed_with_its_contents_and_its_empty_parents() {
        let scratch = std::env::temp_dir().join(format!("brakelight-system-{}", std::process::id()));
        let (kept, lower) = (scratch.join("kept"), scratch.join("kept/a"));
        let folder = lower.join("b");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("file"), "1").unwrap();
        std::fs::write(kept.join("mine"), "1").unwrap();
        portable::remove(&folder, &[lower.clone(), kept.clone()]);
        assert!(!lower.exists());
        assert!(kept.join("mine").exists());
        assert!(create_private(&kept).is_err());
        std::fs::remove_dir_all(&scratch).unwrap();
    }
}
