//! Small processes that outlive the emulator by a moment: one makes the machine's forwarding as it was, one removes logs that will never be
//! whole. They hold a pidfd and wake up when the emulator ends, in whatever way. Only a kill of both leaves something behind.

use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
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

/// A process that does something once this one has ended, in whatever way.
#[derive(Debug)]
struct Survivor {
    pid: Pid,
    /// Says how it went: closed without a word, or one byte where all was well.
    word: Option<PipeWriter>,
}

impl Survivor {
    /// Starts it. `work` is told whether the word was given that all was well.
    fn start(work: impl FnOnce(bool)) -> io::Result<Self> {
        let emulator = pidfd(getpid())?;
        let (mut heard, word) = io::pipe()?;
        let (mut ready, readied) = io::pipe()?;
        // SAFETY: the child makes system calls and allocates, takes no lock that another thread may have held, and never returns.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => {
                drop((heard, readied));
                // One byte once an interrupt no longer reaches it.
                let _ = ready.read(&mut [0]);
                Ok(Survivor { pid: child, word: Some(word) })
            }
            ForkResult::Child => never_returns(|| {
                drop((word, ready));
                let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None);
                let _ = setsid();
                close_all_but(&[emulator.as_raw_fd(), heard.as_raw_fd(), readied.as_raw_fd()]);
                leave_standard_streams();
                let _ = (&readied).write(&[1]);
                drop(readied);
                let mut fds = [
                    PollFd::new(emulator.as_fd(), PollFlags::POLLIN),
                    PollFd::new(heard.as_fd(), PollFlags::POLLIN),
                ];
                while poll(&mut fds, PollTimeout::NONE) == Err(nix::Error::EINTR) {}
                // All other holders of the writing end are closed or gone with the emulator; so this does not wait.
                work(matches!(heard.read(&mut [0]), Ok(1)));
                0
            }),
        }
    }

    fn end(&mut self, well: bool) {
        if let Some(mut word) = self.word.take() {
            if well {
                let _ = word.write(&[1]);
            }
            drop(word);
            while waitpid(self.pid, None) == Err(nix::Error::EINTR) {}
        }
    }
}

/// Makes forwarding as it was.
#[derive(Debug)]
pub(crate) struct Supervisor {
    survivor: Survivor,
    /// Held until the network has been changed.
    turn: Option<Turn>,
}

impl Supervisor {
    /// From now on the end of this process, or of what is returned, makes forwarding as it was.
    pub(crate) fn start(table: &Table, turn: Turn) -> io::Result<Self> {
        let survivor = Survivor::start(|_| {
            let _ = restore(table);
        })?;
        Ok(Supervisor { survivor, turn: Some(turn) })
    }

    /// The network has been changed, and the table tells other emulators so.
    pub(crate) fn give_way(&mut self) {
        self.turn = None;
    }
}

impl Drop for Supervisor {
    /// Waits until forwarding is as it was.
    fn drop(&mut self) {
        self.give_way();
        self.survivor.end(true);
    }
}

/// Removes a folder, or a file, in the making if this process is killed before it is whole.
#[derive(Debug)]
pub struct Janitor(Survivor);

impl Janitor {
    /// From now on, `path` goes when this process is killed. To be called before there are other threads.
    pub fn watch(path: &Path) -> io::Result<Self> {
        let survivor = Survivor::start(|well| {
            if !well {
                let _ =
                    if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
            }
        })?;
        Ok(Janitor(survivor))
    }
}

impl Drop for Janitor {
    /// From here on the path is its maker's again.
    fn drop(&mut self) {
        self.0.end(true);
    }
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
