//! Functions for the emulator's child processes: how they end, and which descriptors they keep.

use std::os::fd::RawFd;

use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};

/// Runs `work` in a child process, then exits with its result; with 101 if it panics.
pub(crate) fn never_returns(work: impl FnOnce() -> i32) -> ! {
    // A panic must not unwind into the copy of the caller's stack.
    let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(101);
    // SAFETY: ends this process at once, without running what the parent registered for its own exit.
    unsafe { libc::_exit(code) }
}

/// Has the kernel kill this process when its parent dies. Returns `false` if `parent` is dead already, or if
/// the kernel refuses.
pub(crate) fn die_with(parent: Option<Pid>) -> bool {
    let set = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    set.is_ok() && parent.is_none_or(|parent| getppid() == parent)
}

/// Closes every descriptor from 3 upwards that is not in `kept`: a child must not keep open a pipe or socket
/// whose end others wait for.
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
        // SAFETY: what owned the descriptors was copied into this child by the fork and is never dropped
        // here.
        unsafe { libc::syscall(libc::SYS_close_range, from as u32, to as u32, 0) };
    }
}
