//! A command behind an emulated link, from its start to its end: the namespaces, the thread that carries
//! packets, the server on the outer side, the command on the inner one.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread;

use crate::address::Addresses;
use crate::buffers;
use crate::channel::{Program, Side};
use crate::clock::{Epoch, Stop};
use crate::command::{CommandError, Ender, Namespaces, Setting, Signals};
use crate::device::Port;
use crate::forward::{self, CarriedDirection, Finished, ForwardError, ForwardSettings};
use crate::namespace::build::tun_name;
use crate::namespace::error::NamespaceError;
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
}

/// The result of an emulation.
#[derive(Debug)]
pub struct Ended<W> {
    /// The command's exit code; 128 and the signal's number where a signal ended it.
    pub code: i32,
    /// The result of the direction from the command.
    pub up: Finished<W>,
    /// The result of the direction to the command.
    pub down: Finished<W>,
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
    let ended = run_programs(&mut namespaces, setup.servers, setup.command, setup.ports, &signals);
    let (addresses, mut notes) = (namespaces.addresses(), namespaces.notes().to_vec());
    notes.extend(namespaces.window_limits());
    // Servers say goodbye over the path.
    namespaces.finish();
    stop.set();
    let finished = carrier.join().map_err(|_| EmulationError::Panicked)??;
    let code = ended?;
    let [up, down] = <[Finished<W>; 2]>::try_from(finished)
        .map_err(|_| io::Error::other("a direction did not come back"))?;
    Ok(Ended { code, up, down, addresses, notes })
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

/// Starts the servers one after the other, then the command; waits for the command's end.
fn run_programs(
    namespaces: &mut Namespaces,
    servers: Vec<OsString>,
    command: Vec<OsString>,
    ports: Vec<u16>,
    signals: &Signals,
) -> Result<i32, EmulationError> {
    for line in servers {
        let null = std::fs::File::open("/dev/null")?;
        // Standard output is the command's.
        let output = io::stderr().as_fd().try_clone_to_owned()?;
        let server = namespaces.start(Program {
            side: Side::Outer,
            arguments: vec!["sh".into(), "-c".into(), line],
            environment: Vec::new(),
            listens: true,
            own_group: true,
            stdio: [Some(null.into()), Some(output), None],
            ports: Vec::new(),
        })?;
        namespaces.wait_until_it_listens(server, signals)?;
    }
    let command = namespaces.start(Program {
        side: Side::Inner,
        arguments: command,
        environment: Vec::new(),
        listens: false,
        own_group: false,
        stdio: [None, None, None],
        ports,
    })?;
    Ok(namespaces.wait_for_the_end(command, signals)?)
}
