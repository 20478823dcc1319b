//! Files of qlog 0.3 that qvis opens: the stack writes the events, with the window and the rate of whichever controller runs.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use quinn::{QlogConfig, TransportConfig};

use super::Error;

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
    /// Files `ROLE-NUMBER.sqlog` in the folder at `path`, which is made if it is not there.
    pub fn new(path: &Path, role: Role) -> Result<Self, Error> {
        std::fs::create_dir_all(path)
            .map_err(|error| Error::File { file: path.into(), reason: format!("{error}; give a folder") })?;
        Ok(Folder { path: path.into(), role })
    }

    /// Has the connection of `transport` logged as the one called `name`.
    pub fn log(&self, transport: &mut TransportConfig, name: &str) -> Result<(), Error> {
        let file = self.path.join(format!("{}-{name}.sqlog", self.role.name()));
        let open = std::fs::File::create(&file)
            .map_err(|error| Error::File { file: file.clone(), reason: error.to_string() })?;
        let mut config = QlogConfig::default();
        config
            .writer(Box::new(Signed::new(BufWriter::new(open), self.role)))
            .title(Some(format!("brakelight {} {name}", self.role.name())));
        transport.qlog_stream(config.into_stream());
        Ok(())
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
}
