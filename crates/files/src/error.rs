//! What can go wrong.

use std::io;
use std::path::PathBuf;

/// Why something could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An output folder.
    #[error("`{}` cannot be written: {error}; give a folder that exists or can be made", target.display())]
    Folder {
        /// As it was named.
        target: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// An output file.
    #[error("`{}` cannot be written: {error}; give a file in a folder that exists", path.display())]
    File {
        /// As it was named.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A folder that is needed only for a while.
    #[error("{}: {error}", folder.display())]
    Scratch {
        /// Where it should have been.
        folder: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The process that cleans up after a kill could not be started.
    #[error(transparent)]
    Janitor(io::Error),
}
