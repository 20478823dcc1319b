//! The explorer, a web page, embedded in a program and served to browsers on this machine.
//!
//! `scripts/explorer build` makes the page, in `web/dist`; a build with the feature `embedded` after that has
//! it. A build without it serves nothing and says how to get the page.
#![forbid(unsafe_code)]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// A file of the page: its name and its contents.
pub type File = (&'static str, &'static [u8]);

/// The files of the page; none where the build has no page.
pub const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// How many requests are answered at once.
const THREADS: usize = 4;
/// How long a browser may take to say what it wants, or to take the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest request that is read, bytes.
const LONGEST: u64 = 16_384;

/// Why the page cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The build has no page.
    #[error(
        "this program was built without the explorer: in the sources `make explorer` builds and serves it, and a release has it as the archive `explorer`"
    )]
    NotBuilt,
    /// The port cannot be had.
    #[error("port {port}: {error}; give another one, or 0 for any free one")]
    Port {
        /// The port.
        port: u16,
        /// What the system said.
        error: io::Error,
    },
}

/// Serves files on this machine alone.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    files: &'static [File],
    /// What the page says in its head of what it may load, as a header: a browser heeds that from the first
    /// byte, and for the workers too.
    policy: String,
}

impl Server {
    /// Returns a server of the page at `port` of 127.0.0.1, any free one for 0. Fails if the build has no
    /// page or the port cannot be had.
    pub fn bind(port: u16) -> Result<Self, Error> {
        Self::of(FILES, port)
    }

    /// Returns a server of `files` in place of the page.
    pub fn of(files: &'static [File], port: u16) -> Result<Self, Error> {
        if files.is_empty() {
            return Err(Error::NotBuilt);
        }
        let bind = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) = bind().map_err(|error| Error::Port { port, error })?;
        Ok(Server { listener, address, files, policy: policy(files).map_or_else(String::new, header) })
    }

    /// Returns what to open in a browser.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Opens the page in the user's browser. Fails if the system's command for that does not start.
    pub fn open_in_browser(&self) -> io::Result<()> {
        let (command, arguments): (&str, &[&str]) = if cfg!(target_os = "macos") {
            ("open", &[])
        } else if cfg!(windows) {
            ("cmd", &["/C", "start"])
        } else {
            ("xdg-open", &[])
        };
        let mut command = Command::new(command);
        command
            .args(arguments)
            .arg(self.url())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn()?;
        // It may last as long as the browser.
        thread::spawn(move || child.wait());
        Ok(())
    }

    /// Answers requests until the process ends.
    pub fn run(&self) {
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    loop {
                        match self.listener.accept() {
                            // A browser that goes away misses its answer; nobody else does.
                            Ok((stream, _)) => drop(self.answer(stream)),
                            // Out of file descriptors, for example: later there may be some.
                            Err(_) => thread::sleep(Duration::from_millis(50)),
                        }
                    }
                });
            }
        });
    }

    /// Answers one request.
    fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut reader = BufReader::new((&stream).take(LONGEST));
        let mut request = String::new();
        reader.read_line(&mut request)?;
        // The rest of the request, which decides nothing, up to its empty line.
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 && !line.trim_ascii().is_empty() {
            line.clear();
        }
        let (head, body) = self.respond(&request);
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        stream.flush()
    }

    /// Returns the head and the body of the answer to the first line of a request.
    fn respond(&self, request: &str) -> (String, &'static [u8]) {
        let mut words = request.split_whitespace();
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let path = target.split(['?', '#']).next().unwrap_or_default();
        let name = match path.strip_prefix('/') {
            Some("") => "index.html",
            Some(name) => name,
            None => "",
        };
        let found = self.files.iter().find(|(file, _)| *file == name);
        let (status, kind, body): (&str, &str, &'static [u8]) = match (method, found) {
            ("GET" | "HEAD", Some((file, contents))) => ("200 OK", kind_of(file), contents),
            ("GET" | "HEAD", None) => ("404 Not Found", "text/plain", b"There is no such file.\n"),
            _ => ("405 Method Not Allowed", "text/plain", b"Only GET and HEAD are answered.\n"),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{}X-Content-Type-Options: nosniff\r\n\
             Cache-Control: no-cache\r\nConnection: close\r\n\r\n",
            body.len(),
            self.policy
        );
        (head, if method == "HEAD" { &[] } else { body })
    }
}

/// The content security policy of the page.
fn policy(files: &'static [File]) -> Option<&'static str> {
    const BEFORE: &str = "http-equiv=\"Content-Security-Policy\" content=\"";
    let (_, page) = files.iter().find(|(name, _)| *name == "index.html")?;
    let (_, rest) = std::str::from_utf8(page).ok()?.split_once(BEFORE)?;
    // What ended a header early would be a header of its own.
    rest.split_once('"').map(|(policy, _)| policy).filter(|policy| !policy.contains(char::is_control))
}

fn header(policy: &str) -> String {
    format!("Content-Security-Policy: {policy}\r\n")
}

/// The media type of a file, by the end of its name.
fn kind_of(file: &str) -> &'static str {
    match file.rsplit_once('.').map(|(_, end)| end) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("webmanifest") => "application/manifest+json",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests;
