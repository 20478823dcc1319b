//! The file that `--out` names. Only a regular file is replaced, whole or not at all; everything else that
//! can be written to is written through, as a shell's `>` would.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::folder;
use crate::system::{AsInvoker, Hold};
use crate::text;

/// Links to follow before they are taken for a circle, as Linux does (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// What there is at a path to be written to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Destination {
    /// Nothing, or a regular file, which a new one replaces by renaming.
    Regular(PathBuf),
    /// Standard output of this process, by its path.
    StandardOutput,
    /// A FIFO, a device, or another open file of this process: opened and written to, never replaced.
    Through(PathBuf),
}

/// Writes one file, whole or not at all. A link is followed to the regular file it leads to; a FIFO or a
/// device is written through. Fails with exit code 2 if `path` is a folder, a link to nothing or a socket, or
/// cannot be opened, and with exit code 1 if the data cannot be written.
pub fn write(path: &Path, contents: &str) -> Result<(), Failure> {
    let user = AsInvoker::begin();
    match destination(path) {
        Err(error) => Err(refuse(path, &error)),
        Ok(Destination::StandardOutput) => {
            drop(user);
            text::print(contents)
        }
        Ok(Destination::Through(place)) => {
            // Appending leaves what an open file already holds; a FIFO or a device takes no notice.
            let file = OpenOptions::new().append(true).open(&place);
            let mut file = file.map_err(|error| refuse(path, &error))?;
            file.write_all(contents.as_bytes()).map_err(|error| refuse(path, &error))
        }
        Ok(Destination::Regular(place)) => replace(&place, contents).map_err(|error| refuse(path, &error)),
    }
}

/// Puts a new file in the place of the regular one at `path`, or of none. Its permissions stay.
fn replace(path: &Path, contents: &str) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| io::Error::other("it is not the name of a file"))?;
    let place = path.parent().filter(|place| !place.as_os_str().is_empty()).unwrap_or(Path::new("."));
    folder::clear_abandoned(place, &name.to_string_lossy());
    let staging = path.with_file_name(folder::partial(&name.to_string_lossy()));
    let before = fs::metadata(path).ok().map(|metadata| metadata.permissions());
    folder::making_file(&staging);
    let written = File::create_new(&staging).and_then(|mut file| {
        let _hold = Hold::on(&staging);
        file.write_all(contents.as_bytes())?;
        before.map_or(Ok(()), |permissions| file.set_permissions(permissions))?;
        // A name must not lead to a file whose contents a power failure would lose.
        file.sync_all()?;
        fs::rename(&staging, path)
    });
    folder::clean_up();
    written
}

fn destination(path: &Path) -> io::Result<Destination> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Destination::Regular(path.into()));
        }
        Err(error) => return Err(error),
    };
    if metadata.is_symlink()
        && let Some(descriptor) = own_descriptor(path)
    {
        let through = Destination::Through(path.into());
        return Ok(if descriptor == "1" { Destination::StandardOutput } else { through });
    }
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other("it is a link to nothing"),
        _ => error,
    })?;
    if metadata.is_dir() {
        Err(io::Error::other("it is a folder"))
    } else if metadata.is_file() {
        fs::canonicalize(path).map(Destination::Regular)
    } else {
        Ok(Destination::Through(path.into()))
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

fn refuse(path: &Path, error: &io::Error) -> Failure {
    let shown = path.display();
    Failure::output(
        error,
        format!("--out `{shown}` cannot be written: {error}; give a file in a folder that exists"),
    )
}
