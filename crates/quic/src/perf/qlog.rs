//! Files of qlog 0.3 that qvis opens: the stack writes the events, with the window and the rate of whichever controller runs.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use quinn::{QlogConfig, TransportConfig};

use super::Error;

/// Bytes of a log kept before it has a file: many times those of a handshake.
const HELD: usize = 1 << 18;

/// Which end of a connection a file is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The client.
    Client,
    /// The server.
    Server,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Server => "server",
        }
    }
}

/// Where the files go, one a connection.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    role: Role,
}

impl Folder {
    /// Files `ROLE-NAME.sqlog` in the folder at `path`, which is made if it is not there.
    pub fn new(path: &Path, role: Role) -> Result<Self, Error> {
        std::fs::create_dir_all(path)
            .map_err(|error| Error::File { file: path.into(), reason: format!("{error}; give a folder") })?;
        Ok(Folder { path: path.into(), role })
    }

    /// Has the connection of `transport` logged. Its file is made when its name is given, so that those who never get through
    /// a handshake, or never meant to, leave none.
    pub fn log(&self, transport: &mut TransportConfig) -> Unnamed {
        let stage = Arc::new(Mutex::new(Stage::Held(Vec::new())));
        let mut config = QlogConfig::default();
        config
            .writer(Box::new(Signed::new(Staged(stage.clone()), self.role)))
            .title(Some(format!("brakelight {}", self.role.name())));
        transport.qlog_stream(config.into_stream());
        Unnamed { folder: self.clone(), stage }
    }
}

/// A log without a file.
#[derive(Debug)]
pub struct Unnamed {
    folder: Folder,
    stage: Arc<Mutex<Stage>>,
}

impl Unnamed {
    /// Makes the file of the connection called `name`, and writes to it what was kept.
    pub fn name(self, name: &str) -> Result<(), Error> {
        let file = self.folder.path.join(format!("{}-{name}.sqlog", self.folder.role.name()));
        let failed = |error: io::Error| Error::File { file: file.clone(), reason: error.to_string() };
        let mut open = BufWriter::new(File::create(&file).map_err(failed)?);
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        if let Stage::Held(kept) = &*stage {
            open.write_all(kept).map_err(failed)?;
            *stage = Stage::Open(open);
        }
        Ok(())
    }
}

#[derive(Debug)]
enum Stage {
    Held(Vec<u8>),
    Open(BufWriter<File>),
}

/// What the stack writes to: memory at first, the file later.
struct Staged(Arc<Mutex<Stage>>);

impl Write for Staged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Stage::Open(file) => file.write(bytes),
            Stage::Held(kept) if kept.len() + bytes.len() <= HELD => {
                kept.extend_from_slice(bytes);
                Ok(bytes.len())
            }
            Stage::Held(_) => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Stage::Open(file) => file.flush(),
            Stage::Held(_) => Ok(()),
        }
    }
}

/// Says whose the log is: the stack leaves that unknown, and qvis draws what was sent only where it knows.
struct Signed<W> {
    inner: W,
    role: Role,
    /// The first record, until it is whole.
    head: Option<Vec<u8>>,
}

impl<W: Write> Signed<W> {
    fn new(inner: W, role: Role) -> Self {
        Signed { inner, role, head: Some(Vec::new()) }
    }
}

impl<W: Write> Write for Signed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(head) = &mut self.head else { return self.inner.write(bytes) };
        head.extend_from_slice(bytes);
        if head.contains(&b'\n') {
            let text = String::from_utf8_lossy(head).replacen(
                r#""type":"unknown""#,
                &format!(r#""type":"{}""#, self.role.name()),
                1,
            );
            self.head = None;
            self.inner.write_all(text.as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_record_is_signed_and_the_others_stay_as_they_are() {
        let mut signed = Signed::new(Vec::new(), Role::Client);
        for piece in [r#"{"a":{"type":"#, "\"unknown\"}}\n", "{\"type\":\"unknown\"}\n"] {
            signed.write_all(piece.as_bytes()).unwrap();
        }
        let text = String::from_utf8(signed.inner).unwrap();
        assert_eq!(text, "{\"a\":{\"type\":\"client\"}}\n{\"type\":\"unknown\"}\n");
    }

    #[test]
    fn a_connection_without_a_name_leaves_no_file() {
        let folder = std::env::temp_dir().join(format!("brakelight-qlog-{}", std::process::id()));
        let logs = Folder::new(&folder, Role::Server).unwrap();
        let (mut stranger, mut guest) = (TransportConfig::default(), TransportConfig::default());
        drop(logs.log(&mut stranger));
        let unnamed = logs.log(&mut guest);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        unnamed.name("1").unwrap();
        drop((stranger, guest));
        let text = std::fs::read_to_string(folder.join("server-1.sqlog")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(text.contains(r#""type":"server""#) && text.contains("JSON-SEQ"), "{text}");
    }
}
