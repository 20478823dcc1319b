//! Functions for processes: how children end, which descriptors they keep, and memory that this one no longer
//! needs.

use std::os::fd::RawFd;

use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};

/// Ends this process when it is dropped, which is when a panic unwinds.
struct Leave;

impl Drop for Leave {
    fn drop(&mut self) {
        leave(101);
    }
}

fn leave(code: i32) -> ! {
    // SAFETY: ends this process at once, without running what the parent registered for its own exit.
    unsafe { libc::_exit(code) }
}

/// Runs `work` in a child process, then exits with its result; with 101 if it panics. Where a panic aborts,
/// it ends this process by itself. Either way nothing unwinds into the copy of the caller's stack.
pub fn never_returns(work: impl FnOnce() -> i32) -> ! {
    let unwinding = Leave;
    let code = work();
    std::mem::forget(unwinding);
    leave(code)
}

/// Has the kernel kill this process when its parent dies. Returns `false` if `parent` is dead already, or if
/// the kernel refuses.
pub fn die_with(parent: Option<Pid>) -> bool {
    let set = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    set.is_ok() && parent.is_none_or(|parent| getppid() == parent)
}

/// Closes every descriptor from 3 upwards that is not in `kept`: a child must not keep open a pipe or socket
/// whose end others wait for.
pub fn close_all_but(kept: &[RawFd]) {
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

/// Gives memory that is free back to the kernel. The C library of GNU otherwise keeps what lies below
/// anything that is in use; others are left alone.
pub fn release_free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes the allocator's own locks and touches only what is free.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, fork};

    use super::*;

    fn ended(work: impl FnOnce() -> i32) -> WaitStatus {
        // SAFETY: the child takes no lock and never returns.
        match unsafe { fork() }.unwrap() {
            ForkResult::Parent { child } => waitpid(child, None).unwrap(),
            ForkResult::Child => never_returns(work),
        }
    }

    #[test]
    fn a_child_ends_with_its_result_or_with_101_if_it_unwinds() {
        assert!(matches!(ended(|| 7), WaitStatus::Exited(_, 7)));
        // Without the hook, which prints and may wait for a lock that another thread held at the fork.
        let unwinding = || -> i32 { std::panic::resume_unwind(Box::new(())) };
        assert!(matches!(ended(unwinding), WaitStatus::Exited(_, 101)));
    }
}
