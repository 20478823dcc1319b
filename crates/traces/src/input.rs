//! Reading files that users name: whole, and never more of them than a file of their kind may hold.
//!
//! | kind | most |
//! |---|---|
//! | [`DOCUMENT`]: scenario, experiment, recipe; PEM | 4 MB |
//! | [`JSON`]: what programs print as JSON | 32 MB |
//! | [`TABLE`]: CSV and other text of rates | 256 MB |
//! | [`TRACE`], [`CAPTURE`]: Mahimahi's format, packet captures | 1 GB |
//! | [`STREAM`]: any of them from what is no regular file (a pipe, a device) | 64 MB |
//!
//! A trace that [`gzip`] packed may hold as much once it is unpacked.
//!
//! Memory follows from these: the costliest format takes about 40 bytes for one of the file.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
#[cfg(unix)]
use std::os::fd::AsFd;
#[cfg(windows)]
use std::os::windows::io::AsHandle;
use std::path::Path;

use brakelight_core::units::Bytes;

pub mod gzip;

/// The most that a TOML or PEM file may hold.
pub const DOCUMENT: Bytes = Bytes(4_000_000);
/// The most that JSON of another program may hold.
pub const JSON: Bytes = Bytes(32_000_000);
/// The most that a CSV table or another text of rates may hold.
pub const TABLE: Bytes = Bytes(256_000_000);
/// The most that a trace in Mahimahi's format may hold.
pub const TRACE: Bytes = Bytes(1_000_000_000);
/// The most that a packet capture may hold.
pub const CAPTURE: Bytes = Bytes(1_000_000_000);
/// The most that is read from what is no regular file, whose length nobody knows.
pub const STREAM: Bytes = Bytes(64_000_000);

/// What names the standard input, as other programs have it; a file of this name is `./-`.
pub const STANDARD_INPUT: &str = "-";

/// The start of a file by which its format is told.
pub(crate) const HEAD: usize = 65_536;

/// rfc3629 6: some editors put it before a text; it belongs to none of the formats.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A file holds more than one of its kind may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TooLong {
    most: Bytes,
    kind: Kind,
}

/// What is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A file on a disk.
    Regular,
    /// A pipe or a device.
    Stream,
    /// What was packed in a file.
    Unpacked,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (it, what) = match self.kind {
            Kind::Regular => ("it", "such a file may hold"),
            Kind::Stream => ("it", "is read of what is no regular file"),
            Kind::Unpacked => ("unpacked it", "such a file may hold"),
        };
        write!(f, "{it} is longer than {}, the most that {what}", self.most)
    }
}

impl std::error::Error for TooLong {}

/// Returns the contents of the file at `path` without a byte order mark. Fails if they are longer than
/// `most`, or than [`STREAM`] if it is no regular file.
pub fn read(path: &Path, most: Bytes) -> io::Result<Vec<u8>> {
    read_by(path, |_| most)
}

/// Returns the same, where the limit depends on how the contents begin: `most` is given up to 64 KiB of them.
pub fn read_by(path: &Path, most: impl FnOnce(&[u8]) -> Bytes) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let metadata = file.metadata()?;
    let regular = metadata.is_file();
    let mut bytes = Vec::new();
    file.by_ref().take(HEAD as u64).read_to_end(&mut bytes)?;
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    let most = most(&bytes);
    let most = if regular { most } else { most.min(STREAM) };
    let kind = if regular { Kind::Regular } else { Kind::Stream };
    let too_long = || io::Error::new(io::ErrorKind::FileTooLarge, TooLong { most, kind });
    if regular && metadata.len() > most.0 {
        return Err(too_long());
    }
    // One more than may be there, to see whether it is.
    let rest = (most.0 + 1).saturating_sub(bytes.len() as u64);
    bytes.reserve_exact(metadata.len().min(rest) as usize);
    file.take(rest).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most.0 { Err(too_long()) } else { Ok(bytes) }
}

/// Standard input is read as it was handed to this process, and not opened anew: who handed it over may have
/// had other rights.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    let standard = [STANDARD_INPUT, "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"]
        .iter()
        .any(|name| path == Path::new(name));
    if standard { io::stdin().as_fd().try_clone_to_owned().map(File::from) } else { File::open(path) }
}

#[cfg(windows)]
fn open(path: &Path) -> io::Result<File> {
    if path == Path::new(STANDARD_INPUT) {
        io::stdin().as_handle().try_clone_to_owned().map(File::from)
    } else {
        File::open(path)
    }
}

/// Elsewhere standard input is no file of a name.
#[cfg(not(any(unix, windows)))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_the_limit() {
        let path = std::env::temp_dir().join(format!("brakelight-input-{}", std::process::id()));
        std::fs::write(&path, "12345").unwrap();
        let read_5 = read(&path, Bytes(5));
        let refused = read(&path, Bytes(4)).unwrap_err();
        std::fs::write(&path, "\u{feff}12345").unwrap();
        let marked = read(&path, DOCUMENT);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read_5.unwrap(), b"12345");
        assert_eq!(marked.unwrap(), b"12345");
        assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(refused.to_string(), "it is longer than 4B, the most that such a file may hold");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_read_to_a_limit() {
        let endless = read(Path::new("/dev/zero"), TRACE).unwrap_err();
        assert_eq!(
            endless.to_string(),
            "it is longer than 64MB, the most that is read of what is no regular file"
        );
    }
}
