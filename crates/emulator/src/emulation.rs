//! A command behind an emulated link, from its start to its end: the namespaces, the thread that carries
//! packets, the server on the outer side, the command on the inner one.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use brakelight_core::time::Duration;

use crate::address::Addresses;
use crate::buffers;
use crate::channel::{Program, Side};
use crate::clock::{Epoch, Stop};
use crate::command::{CommandError, Ender, Namespaces, ProgramId, Setting, Signals};
use crate::device::Port;
use crate::forward::{self, CarriedDirection, Finished, ForwardError, ForwardSettings};
use crate::namespace::build::tun_name;
use crate::namespace::error::NamespaceError;
use crate::probe::{Probe, Stall};
use crate::spec::DirectionSpec;
use crate::watch::Watch;

/// A command, its servers, and the path between them.
#[derive(Debug)]
pub struct Setup {
    /// From the command to the outer side.
    pub up: DirectionSpec,
    /// From the outer side to the command.
    pub down: DirectionSpec,
    /// Settings of the two sides.
    pub setting: Setting,
    /// Settings of the thread that carries packets.
    pub forward: ForwardSettings,
    /// Command lines for the shell that are run on the outer side first, each waited for until it listens.
    pub servers: Vec<OsString>,
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// UDP ports of the outer side, for each of which the command inherits a socket
    /// ([`inherited`](crate::inherited)).
    pub ports: Vec<u16>,
    /// How long the command may run and where its output goes, if it is not simply passed through.
    pub bounded: Option<Bounded>,
}

/// A command with an end, and files for what it and its servers print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounded {
    /// When packets stop and the command is told to end (SIGTERM), counted from its start.
    pub limit: Duration,
    /// The folder for `command.out`, `command.err`, `server-1.out`, `server-1.err` and so on. It must exist.
    pub folder: PathBuf,
    /// Environment variables of the command and of every server, besides the emulator's.
    pub environment: Vec<(OsString, OsString)>,
}

/// The result of an emulation.
#[derive(Debug)]
pub struct Ended<W> {
    /// The command's exit code; 128 and the signal's number where a signal ended it.
    pub code: i32,
    /// Whether the command was still running at [`Bounded::limit`].
    pub stopped: bool,
    /// Servers that ended while the command ran, by their places, with their exit codes.
    pub ended_servers: Vec<(usize, i32)>,
    /// The result of the direction from the command.
    pub up: Finished<W>,
    /// The result of the direction to the command.
    pub down: Finished<W>,
    /// When an ordinary thread was left waiting for a processor, as the programs may have been.
    pub stalls: Vec<Stall>,
    /// The addresses that both sides had.
    pub addresses: Addresses,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Why a command could not be run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmulationError {
    /// The namespaces could not be created, or a program could not be run in them.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The thread that carries packets failed.
    #[error(transparent)]
    Forward(#[from] ForwardError),
    /// The thread that carries packets panicked, which is a bug. In builds where a panic aborts, as in the
    /// release build of `brakelight`, the process ends at once, and the command with it.
    #[error("the thread that carries packets panicked, which is a bug in the emulator; its message is above")]
    Panicked,
    /// Another system call failed.
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Runs a command and waits for its end. `watches` are told of what happens on the way up and on the way
/// down; `begin` is called with the clock that they count by, once packets are about to be carried and no
/// more processes are made: the place to start threads.
///
/// Signals to the calling thread are held back and handed on to the command while this runs. The child
/// processes start as copies of the calling one, which therefore should have no other threads at work.
pub fn run<W: Watch + 'static>(
    setup: Setup,
    watches: [W; 2],
    begin: impl FnOnce(Epoch) -> io::Result<()>,
) -> Result<Ended<W>, EmulationError>
where
    Finished<W>: Send,
{
    let signals = Signals::hold()?;
    let socket_buffers = buffers::needed(&setup.up, &setup.down);
    let mut namespaces = Namespaces::open(&setup.setting, socket_buffers)?;
    let devices = namespaces.take_devices().ok_or(CommandError::Namespace(NamespaceError::Gone))?;
    let mtu = setup.setting.mtu;
    // Servers take their time to listen, in which the path would stand idle.
    let servers = start_servers(&mut namespaces, &setup.servers, setup.bounded.as_ref(), &signals)?;
    let [outer, inner] = devices.map(|fd| Arc::new(port(fd, mtu)));
    let [watch_up, watch_down] = watches;
    let directions = vec![
        CarriedDirection {
            direction: setup.up,
            input: inner.clone(),
            output: outer.clone(),
            watch: watch_up,
        },
        CarriedDirection { direction: setup.down, input: outer, output: inner, watch: watch_down },
    ];
    let stop = Arc::new(Stop::new().map_err(io::Error::from)?);
    let epoch = Epoch::start();
    begin(epoch)?;
    let carrier = {
        let (stop, ender, settings) = (stop.clone(), namespaces.ender()?, setup.forward);
        thread::Builder::new().name("brakelight".to_string()).spawn(move || {
            let mut last = Last { ender, well: false };
            let finished = forward::run(directions, &settings, epoch, &stop);
            last.well = finished.is_ok();
            finished
        })?
    };
    let probe = Probe::start(epoch, stop.clone());
    let bounded = setup.bounded.as_ref();
    let ended = run_command(&mut namespaces, setup.command, setup.ports, bounded, &signals);
    if bounded.is_some() {
        // What passes after the command's end, or after its limit, is not measured.
        stop.set();
    }
    let (addresses, mut notes) = (namespaces.addresses(), namespaces.notes().to_vec());
    notes.extend(namespaces.window_limits());
    let ended_servers = servers
        .iter()
        .enumerate()
        .filter_map(|(place, server)| Some((place, namespaces.ended(*server)?)))
        .collect();
    // Servers say goodbye over the path.
    namespaces.finish();
    stop.set();
    let finished = carrier.join().map_err(|_| EmulationError::Panicked)??;
    let stalls = probe?.end();
    let ended = ended?;
    let [up, down] = <[Finished<W>; 2]>::try_from(finished)
        .map_err(|_| io::Error::other("a direction did not come back"))?;
    let (code, stopped) = (ended.unwrap_or(0), ended.is_none());
    Ok(Ended { code, stopped, ended_servers, up, down, stalls, addresses, notes })
}

/// Ends everything if the thread that carries packets ends early: without packets the programs would not end.
struct Last {
    ender: Ender,
    well: bool,
}

impl Drop for Last {
    fn drop(&mut self) {
        if !self.well {
            self.ender.end();
        }
    }
}

/// The port over a TUN device or a packet socket.
fn port(fd: OwnedFd, mtu: u32) -> Port {
    match tun_name(&fd) {
        Some(name) => Port::of_tun(fd, &name, mtu),
        None => Port::of_frames(fd, "veth", mtu),
    }
}

/// Starts the servers one after the other, and waits until each listens.
fn start_servers(
    namespaces: &mut Namespaces,
    servers: &[OsString],
    bounded: Option<&Bounded>,
    signals: &Signals,
) -> Result<Vec<ProgramId>, EmulationError> {
    let mut started = Vec::new();
    for (place, line) in servers.iter().enumerate() {
        let null = File::open("/dev/null")?;
        // Standard output is the command's.
        let stdio = match bounded {
            Some(bounded) => files(&bounded.folder, &format!("server-{}", place + 1))?,
            None => [Some(null.into()), Some(io::stderr().as_fd().try_clone_to_owned()?), None],
        };
        let server = namespaces.start(Program {
            side: Side::Outer,
            arguments: vec!["sh".into(), "-c".into(), line.clone()],
            environment: bounded.map_or_else(Vec::new, |bounded| bounded.environment.clone()),
            listens: true,
            own_group: true,
            stdio,
            ports: Vec::new(),
        })?;
        namespaces.wait_until_it_listens(server, signals)?;
        started.push(server);
    }
    Ok(started)
}

/// Starts the command. Returns its exit code, or `None` if it was still running at its limit.
fn run_command(
    namespaces: &mut Namespaces,
    command: Vec<OsString>,
    ports: Vec<u16>,
    bounded: Option<&Bounded>,
    signals: &Signals,
) -> Result<Option<i32>, EmulationError> {
    let stdio = match bounded {
        Some(bounded) => files(&bounded.folder, "command")?,
        None => [None, None, None],
    };
    let command = namespaces.start(Program {
        side: Side::Inner,
        arguments: command,
        environment: bounded.map_or_else(Vec::new, |bounded| bounded.environment.clone()),
        listens: false,
        // The whole group is told to end at the limit.
        own_group: bounded.is_some(),
        stdio,
        ports,
    })?;
    match bounded {
        Some(bounded) => Ok(namespaces.wait_at_most(command, bounded.limit, signals)?),
        None => Ok(Some(namespaces.wait_for_the_end(command, signals)?)),
    }
}

/// No input, and a file in `folder` for each of the outputs.
fn files(folder: &Path, stem: &str) -> io::Result<[Option<OwnedFd>; 3]> {
    let create = |ending: &str| File::create(folder.join(format!("{stem}.{ending}"))).map(OwnedFd::from);
    Ok([Some(File::open("/dev/null")?.into()), Some(create("out")?), Some(create("err")?)])
}
