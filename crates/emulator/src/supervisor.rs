//! A small process that outlives the emulator by a moment, to make the machine's forwarding as it was: it holds a pidfd, and wakes up
//! when the emulator ends, in whatever way. Only a kill of both leaves forwarding switched on.

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, getpid, setsid};

use crate::namespace::never_returns;
use crate::nat::Table;

/// How long whoever changes the network here is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The right to change the present network namespace, held by one emulator at a time. Its name is an abstract socket's, which belongs to
/// the network namespace and goes with its holder.
#[derive(Debug)]
pub(crate) struct Turn {
    _listener: UnixListener,
}

impl Turn {
    /// Waits for the turn.
    pub(crate) fn take() -> io::Result<Self> {
        let name = SocketAddr::from_abstract_name("brakelight-nat")?;
        let until = Instant::now() + PATIENCE;
        loop {
            match UnixListener::bind_addr(&name) {
                Ok(listener) => return Ok(Turn { _listener: listener }),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(error),
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "another emulator holds the network"));
            }
            // Nobody answers; but the connection ends with its holder's turn.
            if let Ok(mut holder) = UnixStream::connect_addr(&name) {
                holder.set_read_timeout(Some(left))?;
                let _ = holder.read(&mut [0]);
            }
        }
    }
}

/// The process that restores.
#[derive(Debug)]
pub(crate) struct Supervisor {
    pid: Pid,
    /// Closed when it is to restore.
    release: Option<OwnedFd>,
    /// Held until the network has been changed.
    turn: Option<Turn>,
}

impl Supervisor {
    /// Starts the process. From now on the end of this one, or of what is returned, makes forwarding as it was.
    pub(crate) fn start(table: &Table, turn: Turn) -> io::Result<Self> {
        let emulator = pidfd(getpid())?;
        let (released, release) = io::pipe()?;
        let (mut ready, readied) = io::pipe()?;
        // SAFETY: the child makes system calls and allocates, takes no lock that another thread may have held, and never returns.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => {
                drop((released, readied));
                // One byte once an interrupt no longer reaches it.
                let _ = ready.read(&mut [0]);
                Ok(Supervisor { pid: child, release: Some(release.into()), turn: Some(turn) })
            }
            ForkResult::Child => never_returns(|| {
                drop((release, ready));
                let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None);
                let _ = setsid();
                close_all_but(&[emulator.as_raw_fd(), released.as_raw_fd(), readied.as_raw_fd()]);
                leave_standard_streams();
                let _ = io::Write::write(&mut &readied, &[1]);
                drop(readied);
                watch(emulator.as_fd(), released.as_fd());
                i32::from(restore(table).is_err())
            }),
        }
    }
}

impl Supervisor {
    /// The network has been changed, and the table tells other emulators so.
    pub(crate) fn give_way(&mut self) {
        self.turn = None;
    }
}

impl Drop for Supervisor {
    /// Waits until forwarding is as it was.
    fn drop(&mut self) {
        self.give_way();
        self.release = None;
        while waitpid(self.pid, None) == Err(nix::Error::EINTR) {}
    }
}

/// Waits until the emulator has ended or wants it.
fn watch(emulator: std::os::fd::BorrowedFd<'_>, released: std::os::fd::BorrowedFd<'_>) {
    let mut fds = [PollFd::new(emulator, PollFlags::POLLIN), PollFd::new(released, PollFlags::POLLIN)];
    while poll(&mut fds, PollTimeout::NONE) == Err(nix::Error::EINTR) {}
}

/// Waits until the emulator's own table has gone, and restores unless another emulator still needs forwarding.
fn restore(table: &Table) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        let turn = Turn::take()?;
        let others = Table::all()?;
        if !others.contains(table) || Instant::now() > until {
            if others.iter().all(|other| other == table) {
                table.before.restore()?;
            }
            return Ok(());
        }
        drop(turn);
        // The kernel is about to remove it: its owner is being killed.
        let _ = poll(&mut [], PollTimeout::from(1u8));
    }
}

/// A descriptor of a process, readable once the process has ended: pidfd_open(2).
fn pidfd(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it for this process.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Closes everything above the standard streams but these: a child must not keep alive what others wait for the end of.
pub(crate) fn close_all_but(kept: &[RawFd]) {
    let mut kept: Vec<RawFd> = kept.to_vec();
    kept.sort_unstable();
    let mut from = 3;
    for fd in kept {
        close_range(from, fd - 1);
        from = fd + 1;
    }
    close_range(from, RawFd::MAX);
}

fn close_range(from: RawFd, to: RawFd) {
    if from <= to {
        // SAFETY: what owned the descriptors was copied into this child by the fork and is never dropped here.
        unsafe { libc::syscall(libc::SYS_close_range, from as u32, to as u32, 0) };
    }
}

/// Puts /dev/null in place of the standard streams, for whose end a pipeline may be waiting.
fn leave_standard_streams() {
    if let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = nix::unistd::dup2_stdin(&null);
        let _ = nix::unistd::dup2_stdout(&null);
        let _ = nix::unistd::dup2_stderr(&null);
    }
}
