//! Files of qlog 0.3 as qvis opens them: the stack writes the events, with the window and the rate of
//! whichever controller runs.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use brakelight_core::units::Bytes;
use quinn::{QlogConfig, TransportConfig};
use serde_json::Value;

use super::Error;

/// Bytes of a log kept before it has a file: many times those of a handshake.
const HELD: usize = 1 << 18;

/// Files of one name that a folder may hold.
const MOST_OF_A_NAME: u32 = 10_000;

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

/// Which logs are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logs {
    /// The folder they go to.
    pub folder: PathBuf,
    /// The most bytes of all of them together.
    pub limit: Bytes,
}

/// Where the files go, one a connection.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    role: Role,
    /// Bytes that may still be written, of all files together.
    left: Arc<AtomicU64>,
}

impl Folder {
    /// Files `ROLE-NAME.sqlog` in the folder at `path`, which is made if it is not there. A file of that name
    /// stays: the new one is called `ROLE-NAME-2.sqlog`, and so on.
    pub fn new(path: &Path, role: Role) -> Result<Self, Error> {
        std::fs::create_dir_all(path)
            .map_err(|error| Error::File { file: path.into(), reason: format!("{error}; give a folder") })?;
        Ok(Folder { path: path.into(), role, left: Arc::new(AtomicU64::new(u64::MAX)) })
    }

    /// Returns the folder of `logs`, with their limit.
    pub fn of(logs: &Logs, role: Role) -> Result<Self, Error> {
        let folder = Folder::new(&logs.folder, role)?;
        folder.left.store(logs.limit.0, Ordering::Relaxed);
        Ok(folder)
    }

    /// Returns `true` if events were left out because the limit was reached.
    pub fn is_full(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Makes a file where nothing is, and so follows no link that somebody laid there.
    fn create(&self, name: &str) -> Result<(PathBuf, File), Error> {
        let stem = format!("{}-{name}", self.role.name());
        for number in 1..=MOST_OF_A_NAME {
            let stem = if number == 1 { stem.clone() } else { format!("{stem}-{number}") };
            let file = self.path.join(stem + ".sqlog");
            match File::create_new(&file) {
                Ok(open) => return Ok((file, open)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::File { file, reason: error.to_string() }),
            }
        }
        let reason = format!("it holds {MOST_OF_A_NAME} logs called {stem}; give another folder");
        Err(Error::File { file: self.path.clone(), reason })
    }

    /// Has the connection of `transport` logged. Its file is made when its name is given, so that those who
    /// never get through a handshake, or never meant to, leave none.
    pub fn log(&self, transport: &mut TransportConfig) -> Unnamed {
        let stage = Arc::new(Mutex::new(Stage::Held(Vec::new())));
        let mut config = QlogConfig::default();
        config
            .writer(Box::new(Completed::new(Staged(stage.clone()), self.role, self.left.clone())))
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
        let (file, open) = self.folder.create(name)?;
        let failed = |error: io::Error| Error::File { file: file.clone(), reason: error.to_string() };
        let mut open = BufWriter::new(open);
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

/// Adds what the stack leaves out and qvis draws nothing without: whose the log is, the length of a packet
/// where qvis looks for it, and the number of a lost one. A client's events begin in one group and go on in
/// another, since the stack calls it by the peer's connection id, which changes in the handshake: qvis would
/// make two connections of it, so all get the first.
struct Completed<W> {
    inner: W,
    role: Role,
    /// The record that is not yet whole.
    record: Vec<u8>,
    group: Option<Value>,
    /// Bytes that may still be written.
    left: Arc<AtomicU64>,
}

impl<W: Write> Completed<W> {
    fn new(inner: W, role: Role, left: Arc<AtomicU64>) -> Self {
        Completed { inner, role, record: Vec::new(), group: None, left }
    }

    /// Takes `length` bytes of what may still be written; the first record that does not fit ends every log
    /// of the folder, so that none has a gap in it.
    fn take(&self, length: usize) -> bool {
        let length = length as u64;
        let take = |left: u64| Some(left.saturating_sub(length));
        let before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        before.is_ok_and(|left| left > length)
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
                let record = match self.complete(&record[start..]) {
                    Some(text) => [&record[..start], text.as_bytes(), b"\n"].concat(),
                    None => record,
                };
                if self.take(record.len()) {
                    self.inner.write_all(&record)?;
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
        let mut completed = Completed::new(Vec::new(), Role::Client, Arc::new(AtomicU64::new(u64::MAX)));
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
    fn logs_end_whole_at_their_limit() {
        let left = Arc::new(AtomicU64::new(60));
        let mut logs = [0, 1].map(|_| Completed::new(Vec::new(), Role::Server, left.clone()));
        for _ in 0..3 {
            for log in &mut logs {
                log.write_all(b"\x1e{\"name\":\"sixteen\"}\n").unwrap();
            }
        }
        // 20 bytes each: two fit, and nothing comes after the one that does not.
        assert_eq!(logs.map(|log| log.inner.len()), [20, 20]);
        assert_eq!(left.load(Ordering::Relaxed), 0);
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
