//! The first process of the namespaces: it starts programs on either side, sees when they listen and when
//! they end, and takes everything down with it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use brakelight_files::account::Account;
use brakelight_files::process::die_with;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, killpg, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::build::{Sides, build};
use super::capability;
use super::error::short;
use super::listening::Listening;
use super::plan::Plan;
use crate::channel::{Channel, Order, Program, Report, Side};
use crate::inherited;

/// How often a server that does not listen yet is checked.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// How long servers may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// A program that runs.
#[derive(Debug)]
struct Running {
    id: u32,
    own_group: bool,
    awaited: Option<Listening>,
}

/// Builds both sides, then carries out orders until the emulator ends or orders the end. Returns the exit
/// code.
pub(crate) fn run(plan: &Plan, channel: &Channel) -> i32 {
    // The parent is in another process namespace and has no number here.
    die_with(None);
    let (mut sides, fds) = match build(plan) {
        Ok(built) => built,
        Err(error) => {
            let text = short(&error);
            let _ = channel.report(&Report::Failed(text));
            return 1;
        }
    };
    let noted = sides.note.take().map_or(Ok(()), |text| channel.report(&Report::Note(text)));
    if noted.and_then(|()| channel.report(&Report::Ready(fds))).is_err() {
        return 1;
    }
    let mut init = Init { plan, channel, sides, running: BTreeMap::new(), finish_by: None };
    match init.serve() {
        Ok(()) => 0,
        Err(error) => {
            let _ = channel.report(&Report::Failed(error.to_string()));
            1
        }
    }
}

struct Init<'a> {
    plan: &'a Plan,
    channel: &'a Channel,
    sides: Sides,
    running: BTreeMap<i32, Running>,
    finish_by: Option<Instant>,
}

impl Init<'_> {
    fn serve(&mut self) -> io::Result<()> {
        let mut children = SigSet::empty();
        children.add(Signal::SIGCHLD);
        children.thread_block()?;
        let children = SignalFd::with_flags(&children, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        loop {
            let mut fds = [
                PollFd::new(self.channel.as_fd(), PollFlags::POLLIN),
                PollFd::new(children.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut fds, self.timeout()) {
                Err(Errno::EINTR) => continue,
                other => other?,
            };
            let ready = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
            let (ordered, child) = (ready(&fds[0]), ready(&fds[1]));
            if child {
                while children.read_signal()?.is_some() {}
                self.reap()?;
            }
            self.look()?;
            if ordered && !self.obey()? {
                return Ok(());
            }
            if let Some(by) = self.finish_by
                && (Instant::now() >= by || !self.running.values().any(|program| program.own_group))
            {
                return Ok(());
            }
        }
    }

    fn timeout(&self) -> PollTimeout {
        let look = self.running.values().any(|program| program.awaited.is_some()).then_some(LOOK_EVERY);
        let finish = self.finish_by.map(|by| by.saturating_duration_since(Instant::now()));
        match look.into_iter().chain(finish).min() {
            // Rounded up, so that what is waited for is due on return.
            Some(time) => PollTimeout::try_from(time + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX),
            None => PollTimeout::NONE,
        }
    }

    /// Reports every program that has ended. Orphaned processes are reaped without a report.
    fn reap(&mut self) -> io::Result<()> {
        loop {
            let (pid, code) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, code),
                // As shells count.
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, 128 + signal as i32),
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(()),
                Ok(_) | Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            if let Some(program) = self.running.remove(&pid.as_raw()) {
                self.channel.report(&Report::Ended(program.id, code))?;
            }
        }
    }

    /// Reports every server that listens now.
    fn look(&mut self) -> io::Result<()> {
        for program in self.running.values_mut() {
            if program.awaited.as_ref().is_some_and(Listening::now) {
                program.awaited = None;
                self.channel.report(&Report::Listening(program.id))?;
            }
        }
        Ok(())
    }

    /// Carries out one order. Returns `false` if the emulator has closed the channel.
    fn obey(&mut self) -> io::Result<bool> {
        match self.channel.next_order()? {
            None => return Ok(false),
            Some(Order::Run(id, program)) => match self.start(id, program) {
                Ok(()) => self.channel.report(&Report::Started(id))?,
                Err(error) => {
                    let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
                    self.channel.report(&Report::NotStarted(id, errno))?;
                }
            },
            Some(Order::Signal(id, signal)) => {
                if let (Some((pid, program)), Ok(signal)) =
                    (self.running.iter().find(|(_, program)| program.id == id), Signal::try_from(signal))
                {
                    let _ = send(*pid, program, signal);
                }
            }
            Some(Order::Finish) => {
                for (pid, program) in &self.running {
                    if program.own_group {
                        let _ = send(*pid, program, Signal::SIGTERM);
                    }
                }
                self.finish_by = Some(Instant::now() + GRACE);
            }
        }
        Ok(true)
    }

    fn start(&mut self, id: u32, program: Program) -> io::Result<()> {
        let listening = program.listens.then(|| Listening::before(program.side, &self.sides));
        let network = match program.side {
            Side::Inner => &self.sides.inner,
            Side::Outer => &self.sides.outer,
        };
        let child = spawn(program.arguments.as_slice(), &program, network, self.plan.account.as_ref())?;
        let pid = child as i32;
        let awaited = listening.transpose()?.map(|listening| listening.by(pid));
        self.running.insert(pid, Running { id, own_group: program.own_group, awaited });
        Ok(())
    }
}

fn send(pid: i32, program: &Running, signal: Signal) -> nix::Result<()> {
    if program.own_group { killpg(Pid::from_raw(pid), signal) } else { kill(Pid::from_raw(pid), signal) }
}

/// Starts a program in a network namespace. The sockets that it inherits are of the calling process's own,
/// the outer one.
fn spawn(
    arguments: &[std::ffi::OsString],
    program: &Program,
    network: &OwnedFd,
    account: Option<&Account>,
) -> io::Result<u32> {
    let (name, rest) = arguments.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(name);
    command.args(rest).envs(program.environment.iter().map(|(name, value)| (name, value)));
    let [stdin, stdout, stderr] = &program.stdio;
    if let Some(fd) = stdin {
        command.stdin(Stdio::from(fd.try_clone()?));
    }
    if let Some(fd) = stdout {
        command.stdout(Stdio::from(fd.try_clone()?));
    }
    if let Some(fd) = stderr {
        command.stderr(Stdio::from(fd.try_clone()?));
    }
    if program.own_group {
        command.process_group(0);
    }
    let sockets = inherited::open(&program.ports)?;
    let inherited: Vec<RawFd> = sockets.iter().map(AsRawFd::as_raw_fd).collect();
    if !inherited.is_empty() {
        command.env(inherited::VARIABLE, inherited::describe(&inherited));
    }
    let network = network.as_raw_fd();
    let account = account.cloned();
    // SAFETY: the closure makes system calls only; the descriptors outlive the call of `spawn`, in which it
    // runs.
    unsafe {
        command.pre_exec(move || {
            // A shell that waits for its children waits for ever where they may not tell it.
            sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
            let network = std::os::fd::BorrowedFd::borrow_raw(network);
            setns(network, CloneFlags::CLONE_NEWNET)?;
            inherited.iter().try_for_each(|socket| inherited::keep(*socket))?;
            // What init and its parent hold back is not for a program to inherit.
            sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
            capability::become_account(account.as_ref())
        });
    }
    Ok(command.spawn()?.id())
}
