//! Files of qlog 0.3 as qvis opens them: the stack writes the events, with the window and the rate of whichever controller runs.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use quinn::{QlogConfig, TransportConfig};
use serde_json::Value;

use super::Error;

/// Bytes of a log kept before it has a file: many times those of a handshake.
const HELD: usize = 1 << 18;

/// rfc7464 2.2
const SEPARATOR: u8 = 0x1e;

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
            .writer(Box::new(Completed::new(Staged(stage.clone()), self.role)))
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

/// Adds what the stack leaves out and qvis draws nothing without: whose the log is, the length of a packet where qvis looks for
/// it, and the number of a lost one. A client's events begin in one group and go on in another, since the stack calls it by the
/// peer's connection id, which changes in the handshake: qvis would make two connections of it, so all get the first.
struct Completed<W> {
    inner: W,
    role: Role,
    /// The record that is not yet whole.
    record: Vec<u8>,
    group: Option<Value>,
}

impl<W: Write> Completed<W> {
    fn new(inner: W, role: Role) -> Self {
        Completed { inner, role, record: Vec::new(), group: None }
    }

    /// A record with what it lacked; none if nothing is to be added.
    fn complete(&mut self, record: &[u8]) -> Option<String> {
        let mut record: Value = serde_json::from_slice(record).ok()?;
        if let Some(point) = record.pointer_mut("/trace/vantage_point") {
            point["type"] = self.role.name().into();
            return Some(record.to_string());
        }
        let mine = record.get_mut("group_id")?;
        *mine = self.group.get_or_insert_with(|| mine.clone()).clone();
        let lost = record["name"] == "recovery:packet_lost";
        let data = record.get_mut("data")?;
        let header = data.get("header").unwrap_or(&Value::Null);
        let (length, number) = (header.get("length").cloned(), header.get("packet_number").cloned());
        if let Some(length) = length {
            data["raw"]["length"] = length;
        }
        if let (true, Some(number)) = (lost, number) {
            data["packet_number"] = number;
        }
        Some(record.to_string())
    }
}

impl<W: Write> Write for Completed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.record.extend_from_slice(part);
            if part.ends_with(b"\n") {
                // rfc7464 2.2: a record begins with a separator.
                let start = usize::from(self.record.first() == Some(&SEPARATOR));
                let record = std::mem::take(&mut self.record);
                match self.complete(&record[start..]) {
                    Some(text) => {
                        self.inner.write_all(&record[..start])?;
                        self.inner.write_all(text.as_bytes())?;
                        self.inner.write_all(b"\n")?;
                    }
                    None => self.inner.write_all(&record)?,
                }
            }
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
    fn records_get_what_they_lack_and_the_others_stay_as_they_are() {
        let mut completed = Completed::new(Vec::new(), Role::Client);
        let pieces = [
            "\u{1e}{\"trace\":{\"vantage_point\":{\"type\":",
            "\"unknown\"}}}\n\u{1e}{\"name\":\"x\", \"data\":{}}\n",
            "\u{1e}{\"name\":\"x\",\"group_id\":\"1\",\"data\":{}}\n",
            "\u{1e}{\"name\":\"recovery:packet_lost\",\"group_id\":\"2\",\"data\":{\"header\":{\"packet_number\":7,\"length\":9}}}\n",
        ];
        pieces.iter().for_each(|piece| completed.write_all(piece.as_bytes()).unwrap());
        let text = String::from_utf8(completed.inner).unwrap();
        let records: Vec<&str> = text.split('\u{1e}').skip(1).collect();
        assert_eq!(records[0], "{\"trace\":{\"vantage_point\":{\"type\":\"client\"}}}\n");
        assert_eq!(records[1], "{\"name\":\"x\", \"data\":{}}\n");
        let lost: Value = serde_json::from_str(records[3]).unwrap();
        assert_eq!(lost["group_id"], "1");
        assert_eq!((&lost["data"]["packet_number"], &lost["data"]["raw"]["length"]), (&7.into(), &9.into()));
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

    #[test]
    fn a_log_takes_the_place_of_nothing_and_follows_no_link() {
        let folder = std::env::temp_dir().join(format!("brakelight-qlog-links-{}", std::process::id()));
        let logs = Folder::new(&folder, Role::Server).unwrap();
        std::fs::write(folder.join("victim"), "mine").unwrap();
        std::os::unix::fs::symlink("victim", folder.join("server-1.sqlog")).unwrap();
        std::fs::write(folder.join("server-2.sqlog"), "earlier").unwrap();
        for name in ["1", "2", "2"] {
            let mut transport = TransportConfig::default();
            logs.log(&mut transport).name(name).unwrap();
        }
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        let (victim, earlier) = (read("victim"), read("server-2.sqlog"));
        let new = ["server-1-2.sqlog", "server-2-2.sqlog", "server-2-3.sqlog"].map(read);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!((victim.as_str(), earlier.as_str()), ("mine", "earlier"));
        assert!(new.iter().all(|text| text.contains("JSON-SEQ")), "{new:?}");
    }
}
