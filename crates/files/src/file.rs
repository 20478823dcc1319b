//! An output file. Only a regular file is replaced, whole or not at all; everything else that
//! can be written to is written through, as a shell's `>` would.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::folder;
use crate::system::{AsInvoker, Hold};

/// Links to follow before they are taken for a circle, as Linux does (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// What there is at a path to be written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Standard output of this process, by its path: for the caller to print to.
    StandardOutput,
    /// Anything else.
    File(FileDestination),
}

/// A path to be written to, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDestination {
    /// As it was named.
    path: PathBuf,
    way: Way,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Way {
    /// Nothing, or a regular file, which a new one replaces by renaming.
    Regular(PathBuf),
    /// A FIFO, a device, or another open file of this process: opened and written to, never replaced.
    Through(PathBuf),
}

impl Destination {
    /// What there is at `path`. A link is followed to the regular file it leads to. Fails if `path` is a
    /// folder or a link to nothing.
    pub fn at(path: &Path) -> Result<Self, Error> {
        let _user = AsInvoker::begin();
        destination(path).map_err(|error| refuse(path, error))
    }
}

impl FileDestination {
    /// Writes one file, whole or not at all; a FIFO or a device is written through. `on_removed` is told what
    /// runs that were killed had left there, which is removed. Fails if the destination is a socket, or
    /// cannot be opened or written.
    pub fn write(&self, contents: impl AsRef<[u8]>, on_removed: &mut dyn FnMut(&Path)) -> Result<(), Error> {
        let _user = AsInvoker::begin();
        let written = match &self.way {
            Way::Through(place) => {
                // Appending leaves what an open file already holds; a FIFO or a device takes no notice.
                let file = OpenOptions::new().append(true).open(place);
                file.and_then(|mut file| file.write_all(contents.as_ref()))
            }
            Way::Regular(place) => replace(place, contents.as_ref(), on_removed),
        };
        written.map_err(|error| refuse(&self.path, error))
    }
}

/// Puts a new file in the place of the regular one at `path`, or of none. Its permissions stay.
fn replace(path: &Path, contents: &[u8], on_removed: &mut dyn FnMut(&Path)) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| io::Error::other("it is not the name of a file"))?;
    let place = path.parent().filter(|place| !place.as_os_str().is_empty()).unwrap_or(Path::new("."));
    folder::clear_abandoned(place, &name.to_string_lossy(), on_removed);
    let staging = path.with_file_name(folder::partial(&name.to_string_lossy()));
    let before = fs::metadata(path).ok().map(|metadata| metadata.permissions());
    let written = folder::begin_file(&staging).and_then(|mut file| {
        let _hold = Hold::on(&staging);
        file.write_all(contents)?;
        before.map_or(Ok(()), |permissions| file.set_permissions(permissions))?;
        // A name must not lead to a file whose contents a power failure would lose.
        file.sync_all()?;
        fs::rename(&staging, path)
    });
    folder::clean_up();
    written
}

/// Opens the file at `path` to append to it and to read it; a new one if nothing is there. Fails if a link is
/// there, or anything else that is no regular file: in a folder of results, somebody else may have decided
/// where a link leads.
///
/// # Errors
/// What the system says, or that it is no regular file.
pub fn append(path: &Path) -> io::Result<File> {
    let _user = AsInvoker::begin();
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_symlink() => return Err(io::Error::other("it is a link")),
        Ok(there) if !there.is_file() => return Err(io::Error::other("it is not a regular file")),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true).read(true);
    // Nor one that was put there since.
    #[cfg(target_os = "linux")]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW);
    options.open(path)
}

fn destination(path: &Path) -> io::Result<Destination> {
    let file = |way| Destination::File(FileDestination { path: path.into(), way });
    let regular = |place| file(Way::Regular(place));
    let through = || file(Way::Through(path.into()));
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(regular(path.into()));
        }
        Err(error) => return Err(error),
    };
    if metadata.is_symlink()
        && let Some(descriptor) = own_descriptor(path)
    {
        return Ok(if descriptor == "1" { Destination::StandardOutput } else { through() });
    }
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other("it is a link to nothing"),
        _ => error,
    })?;
    if metadata.is_dir() {
        Err(io::Error::other("it is a folder"))
    } else if metadata.is_file() {
        fs::canonicalize(path).map(regular)
    } else {
        Ok(through())
    }
}

/// The number of the open file of this process that the link at `path` leads to, as `/dev/stdout` and
/// `/dev/fd/3` do. Such a link must not be followed to the file's name: what is open may be appended to, or
/// have no name any more.
fn own_descriptor(path: &Path) -> Option<String> {
    let descriptors = fs::canonicalize("/proc/self/fd").ok()?;
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = fs::canonicalize(parent).ok()?;
        let name = path.file_name()?;
        if folder == descriptors {
            return Some(name.to_string_lossy().into_owned());
        }
        path = folder.join(fs::read_link(folder.join(name)).ok()?);
    }
    None
}

fn refuse(path: &Path, error: io::Error) -> Error {
    Error::File { path: path.to_path_buf(), error }
}
