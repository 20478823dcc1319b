//! A link's log while it grows: what Mahimahi's `mm-link --uplink-log` writes, dequeue drops included,
//! straight into a file.
//!
//! The thread that carries packets only fills blocks of events; a thread of the log's own lays the delivery
//! opportunities between them and writes. A slow disk costs memory, never time on the path nor an event.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use brakelight_core::time::Time;
use brakelight_core::units::Bytes;
use brakelight_files::invoker::AsInvoker;
use brakelight_links::elements::AnyElement;
use brakelight_scenario::link_log;
use brakelight_scenario::measure::describe_service;
use brakelight_scenario::measure::opportunities::Opportunities;
use brakelight_scenario::outcome::LinkEvent;
use brakelight_scenario::scenario::LinkSpec;

use crate::packet::IpPacket;

/// Events in a block: 128 KiB.
const BLOCK: usize = 8192;

/// Bytes written at once.
const PAGE: usize = 256 * 1024;

/// Why a log could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the log `{path}` cannot be written: {error}")]
pub struct LogError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub error: io::Error,
}

/// A message to the writing thread.
#[derive(Debug)]
enum Message {
    Events(Vec<LinkEvent>),
    End(Time),
}

/// The sending half of a log, which the path holds.
#[derive(Debug)]
pub struct LogWriter {
    block: Vec<LinkEvent>,
    full: Sender<Message>,
    empty: Receiver<Vec<LinkEvent>>,
    written: Receiver<io::Result<u64>>,
    path: PathBuf,
}

/// The receiving half of a log, which the writing thread needs.
#[derive(Debug)]
pub struct LogThread {
    file: File,
    element: AnyElement<IpPacket>,
    opportunity: Bytes,
    incoming: Receiver<Message>,
    outgoing: Sender<Vec<LinkEvent>>,
    written: Sender<io::Result<u64>>,
}

impl LogWriter {
    /// Makes the file at `path`, where none may be, for the link `spec`. `element` is a link of the same kind
    /// that nothing passes: it is asked for capacity. `command` is the command line. Nothing is written until
    /// the thread is [started](LogThread::start).
    pub fn create(
        path: &Path,
        spec: &LinkSpec,
        element: AnyElement<IpPacket>,
        command: &str,
    ) -> Result<(Self, LogThread), LogError> {
        let refuse = |error| LogError { path: path.to_path_buf(), error };
        let mut file = {
            let _user = AsInvoker::begin();
            File::create_new(path).map_err(refuse)?
        };
        let mut header = String::new();
        let service = describe_service(&spec.service);
        link_log::write_header(&spec.name, &service, &spec.queue.words().to_string(), command, &mut header)
            .and_then(|()| file.write_all(header.as_bytes()).map_err(|_| fmt::Error))
            .map_err(|_| refuse(io::Error::other("its header is refused")))?;
        let (full, incoming) = channel();
        let (outgoing, empty) = channel();
        let (result, written) = channel();
        let opportunity = spec.opportunity;
        let thread = LogThread { file, element, opportunity, incoming, outgoing, written: result };
        let block = Vec::with_capacity(BLOCK);
        Ok((LogWriter { block, full, empty, written, path: path.to_path_buf() }, thread))
    }

    /// Appends an event. Events must come in the order of time.
    #[inline]
    pub fn push(&mut self, event: LinkEvent) {
        self.block.push(event);
        if self.block.len() == BLOCK {
            self.hand_over();
        }
    }

    #[cold]
    fn hand_over(&mut self) {
        let next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BLOCK));
        let block = mem::replace(&mut self.block, next);
        // It fails only when the writing thread has failed, which `finish` reports.
        let _ = self.full.send(Message::Events(block));
    }

    /// Writes what is left of a run that ended at `end`, and waits until it is written. Returns how many
    /// events the log holds, opportunities included.
    pub fn finish(mut self, end: Time) -> Result<u64, LogError> {
        self.hand_over();
        let _ = self.full.send(Message::End(end));
        let LogWriter { written, path, full, .. } = self;
        drop(full);
        let written =
            written.recv().unwrap_or_else(|_| Err(io::Error::other("the writing thread has ended")));
        written.map_err(|error| LogError { path, error })
    }
}

impl LogThread {
    /// Starts it. Not before the emulator has made its child processes, which must be copies of a single
    /// thread.
    pub fn start(self) -> io::Result<()> {
        let body = move || {
            let LogThread { file, element, opportunity, incoming, outgoing, written } = self;
            // Nobody may be left to hear of it.
            let _ = written.send(write(file, &element, opportunity, &incoming, &outgoing));
        };
        thread::Builder::new().name("log".to_string()).spawn(body).map(|_| ())
    }
}

/// The body of the writing thread.
fn write(
    mut file: File,
    element: &AnyElement<IpPacket>,
    opportunity: Bytes,
    incoming: &Receiver<Message>,
    outgoing: &Sender<Vec<LinkEvent>>,
) -> io::Result<u64> {
    let capacity = |from, to| element.capacity_between(from, to).map_or(0, |bytes| bytes.0);
    let mut opportunities = Opportunities::new(opportunity);
    let mut page = String::with_capacity(PAGE + 64);
    let mut events = 0;
    let mut written = Ok(());
    // A path that ended without a word has no end to fill up to.
    while let Ok(message) = incoming.recv() {
        let mut emit = |event: LinkEvent| {
            events += 1;
            // Writing to a string does not fail.
            let _ = link_log::write_event(&event, &mut page);
            if page.len() >= PAGE {
                if written.is_ok() {
                    written = file.write_all(page.as_bytes());
                }
                page.clear();
            }
        };
        match message {
            Message::Events(mut block) => {
                for &event in &block {
                    opportunities.lay(event, capacity, &mut emit);
                }
                block.clear();
                let _ = outgoing.send(block);
            }
            Message::End(end) => opportunities.finish(end, capacity, &mut emit),
        }
    }
    written?;
    file.write_all(page.as_bytes())?;
    Ok(events)
}
