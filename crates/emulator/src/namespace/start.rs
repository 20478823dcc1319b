//! Creating the namespaces and starting the first process in them.

use std::os::fd::{AsFd, AsRawFd};

use brakelight_files::process::{close_all_but, die_with, never_returns};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Gid, Pid, Uid, fork, getpid};

use super::error::{Doing, NamespaceError, short};
use super::init;
use super::plan::Plan;
use crate::channel::{Channel, Report};
use crate::sysctl::write;

/// Starts the owner: the process that makes the namespaces and starts their first process, whose reports come
/// through the channel.
pub(crate) fn start(plan: &Plan) -> Result<(Pid, Channel), NamespaceError> {
    let (ours, theirs) = Channel::pair().doing("making a socket pair")?;
    let parent = getpid();
    // SAFETY: the child makes system calls, allocates (glibc's allocator survives a fork) and takes no lock
    // that another thread may have held at the fork; it never returns.
    match unsafe { fork() }.doing("starting a process")? {
        ForkResult::Parent { child } => Ok((child, ours)),
        ForkResult::Child => never_returns(|| {
            // Nor what else the caller has open, for whose end others may wait.
            drop(ours);
            close_all_but(&[theirs.as_fd().as_raw_fd()]);
            own(plan, theirs, parent)
        }),
    }
}

/// The owner: makes the namespaces, starts their first process, waits for its end.
fn own(plan: &Plan, channel: Channel, parent: Pid) -> i32 {
    // An interrupt at the terminal reaches this process too, and is none of its business.
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None);
    if !die_with(Some(parent)) {
        return 1;
    }
    if let Err(error) = separate(plan) {
        let _ = channel.report(&Report::Failed(short(&error)));
        return 1;
    }
    // SAFETY: this process has a single thread; the child never returns.
    match unsafe { fork() } {
        Ok(ForkResult::Parent { child }) => {
            // So that the end of init is the end of the channel.
            drop(channel);
            while waitpid(child, None) == Err(nix::Error::EINTR) {}
            0
        }
        Ok(ForkResult::Child) => never_returns(|| init::run(plan, &channel)),
        Err(error) => {
            let _ = channel.report(&Report::Failed(format!("starting a process: {}", error.desc())));
            1
        }
    }
}

fn separate(plan: &Plan) -> Result<(), NamespaceError> {
    if plan.user_namespace {
        let (uid, gid) = (Uid::effective(), Gid::effective());
        unshare(CloneFlags::CLONE_NEWUSER).doing("making a user namespace")?;
        // Whoever may not set groups may map one group alone: user_namespaces(7).
        write("/proc/self/setgroups", "deny").doing("making a user namespace")?;
        write("/proc/self/uid_map", &format!("{uid} {uid} 1")).doing("mapping the user")?;
        write("/proc/self/gid_map", &format!("{gid} {gid} 1")).doing("mapping the group")?;
    }
    unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS)
        .doing("making a process and a mount namespace")?;
    if plan.attach.is_none() {
        unshare(CloneFlags::CLONE_NEWNET).doing("making a network namespace")?;
    }
    Ok(())
}
