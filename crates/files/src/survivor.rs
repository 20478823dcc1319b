//! A small process that outlives this one by a moment, to undo what only that moment can undo. It holds a
//! pidfd and wakes up when this process ends, in whatever way. Only a kill of both leaves something behind.

use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, getpid, setsid};

use crate::process::{close_all_but, never_returns};

/// A process that runs an action once this process has ended, in whatever way.
#[derive(Debug)]
pub struct Survivor {
    pid: Pid,
    /// Pipe to the process.
    word: Option<PipeWriter>,
}

impl Survivor {
    /// Starts the process. `work` is given all that was written into the pipe. Must be called before other
    /// threads are started.
    pub fn start(work: impl FnOnce(&[u8])) -> io::Result<Self> {
        let watched = pidfd(getpid())?;
        let (mut heard, word) = io::pipe()?;
        let (mut ready, readied) = io::pipe()?;
        // SAFETY: there are no other threads, which might have held a lock at the fork (the allocator's, for
        // one): whoever calls this promises it. The child never returns.
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
                close_all_but(&[watched.as_raw_fd(), heard.as_raw_fd(), readied.as_raw_fd()]);
                leave_standard_streams();
                let _ = (&readied).write(&[1]);
                drop(readied);
                let mut told = Vec::new();
                let mut buffer = [0; 4096];
                loop {
                    let mut fds = [
                        PollFd::new(watched.as_fd(), PollFlags::POLLIN),
                        PollFd::new(heard.as_fd(), PollFlags::POLLIN),
                    ];
                    while poll(&mut fds, PollTimeout::NONE) == Err(nix::Error::EINTR) {}
                    // All other holders of the writing end are closed or gone with this process's parent; so
                    // this does not wait.
                    match heard.read(&mut buffer) {
                        Ok(0) => break,
                        Ok(length) => told.extend_from_slice(&buffer[..length]),
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(_) => break,
                    }
                }
                work(&told);
                0
            }),
        }
    }

    /// Writes `bytes` into the pipe.
    pub fn tell(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.word.as_mut().map_or(Ok(()), |word| word.write_all(bytes))
    }

    /// Closes the pipe, which has the process do its work now, and waits for its end.
    pub fn end(&mut self) {
        if let Some(word) = self.word.take() {
            drop(word);
            while waitpid(self.pid, None) == Err(nix::Error::EINTR) {}
        }
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

/// Replaces the standard streams by /dev/null, because a pipeline may wait for their end.
fn leave_standard_streams() {
    if let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = nix::unistd::dup2_stdin(&null);
        let _ = nix::unistd::dup2_stdout(&null);
        let _ = nix::unistd::dup2_stderr(&null);
    }
}
