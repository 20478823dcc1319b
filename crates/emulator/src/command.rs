//! Programs in the [`Namespaces`], seen from the emulator: starting them, waiting for their end, forwarding
//! signals.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use brakelight_core::time;
use brakelight_core::units::Bytes;
use brakelight_files::account::Account;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use crate::address::Addresses;
use crate::channel::{Channel, Order, Program, Report};
use crate::namespace::error::{Doing, NamespaceError};
use crate::namespace::plan::{self, Plan};
use crate::namespace::start::start;
use crate::nat::{Forwarding, NetworkLock, Table};
use crate::netlink::Netlink;
use crate::supervisor::{PATIENCE, Supervisor};
use crate::sysctl;
use crate::window_limited::{Buffers, Listener, Tally};

/// How long a server is given until it listens.
const LISTEN_WITHIN: Duration = Duration::from_secs(30);

/// How long a command that is told to end (SIGTERM, SIGHUP) is given before it is killed.
const END_WITHIN: Duration = Duration::from_secs(5);

/// Why a program could not be run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The namespaces could not be created, or are gone.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// `--nat` without the right to change the present network.
    #[error("--nat changes the network of this machine and needs root: run it with sudo, or leave --nat out")]
    NatNeedsRoot,
    /// A program could not be started.
    #[error("`{program}` cannot be run: {source}")]
    NotRun {
        /// Its name.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// A server ended before it listened.
    #[error("the server ended with exit code {code} before it listened")]
    ServerEnded {
        /// Its exit code.
        code: i32,
    },
    /// A signal came before the command had begun.
    #[error("interrupted by signal {signal} before the command had begun")]
    Interrupted {
        /// Its number.
        signal: i32,
    },
    /// A server did not come to listen.
    #[error(
        "the server did not listen on any TCP or UDP port within {seconds} s; --server takes a command that stays and listens"
    )]
    ServerSilent {
        /// How long it was given.
        seconds: u64,
    },
}

/// Settings of the two sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Whether the outer side is the real network, which the command reaches by address translation.
    pub nat: bool,
    /// The longest packet: bytes at the IP layer.
    pub mtu: u32,
    /// Whether the machine's limits of TCP's socket buffers stay as they are, even where they would hold a
    /// flow back more than the path does.
    pub keep_sysctls: bool,
}

/// A program that was started, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProgramId(u32);

/// The namespaces of both sides and the programs in them. Dropping it ends all of them.
#[derive(Debug)]
pub struct Namespaces {
    owner: Pid,
    channel: Option<Channel>,
    devices: Option<[OwnedFd; 2]>,
    listeners: Vec<Listener>,
    tally: Tally,
    buffers: Buffers,
    // Before the supervisor, which waits for it to be gone.
    supervisor: Option<Supervisor>,
    environment: Vec<(OsString, OsString)>,
    addresses: Addresses,
    notes: Vec<String>,
    programs: u32,
    started: BTreeSet<u32>,
    refused: BTreeMap<u32, i32>,
    listening: BTreeSet<u32>,
    ended: BTreeMap<u32, i32>,
}

impl Namespaces {
    /// Builds both sides.
    ///
    /// `socket_buffers` is the limit that TCP's socket buffers need there, if one is known.
    pub fn open(setting: &Setting, socket_buffers: Option<Bytes>) -> Result<Self, CommandError> {
        let privileged = plan::privileged();
        if setting.nat && !privileged {
            return Err(CommandError::NatNeedsRoot);
        }
        let around = plan::around();
        let buffers = match socket_buffers {
            _ if setting.keep_sysctls => Buffers::Kept,
            Some(_) => Buffers::Enough,
            None => Buffers::Unknown,
        };
        let socket_buffers = socket_buffers.filter(|_| !setting.keep_sysctls);
        let account = Account::invoking();
        let has_v6 = Path::new("/proc/net/if_inet6").exists();
        let mut notes = Vec::new();
        // Within another emulation, whose networks are ours to change, the paths are joined: the far end
        // stays the same.
        let attach = setting.nat || (around.is_some() && privileged);
        let (plan, supervisor) = if attach {
            let lock =
                NetworkLock::take(PATIENCE).doing("waiting for other emulators to change the network")?;
            let v6 = has_v6 && v6_can_be_forwarded(&mut notes).doing("reading the routes")?;
            let table = table(v6).doing("reading the tables of nftables")?;
            let supervisor = Supervisor::start(&table, lock).doing("starting the supervisor")?;
            table.before.switch_on().doing("switching forwarding on")?;
            let addresses = Addresses::choose(around, v6).doing("choosing addresses")?;
            let plan = Plan {
                addresses,
                attach: Some(table),
                user_namespace: false,
                account,
                mtu: setting.mtu,
                socket_buffers,
            };
            (plan, Some(supervisor))
        } else {
            let addresses = Addresses::choose(around, has_v6).doing("choosing addresses")?;
            let plan = Plan {
                addresses,
                attach: None,
                user_namespace: !privileged,
                account,
                mtu: setting.mtu,
                socket_buffers,
            };
            (plan, None)
        };
        let (owner, channel) = start(&plan)?;
        let mut namespaces = Namespaces {
            owner,
            channel: Some(channel),
            devices: None,
            listeners: Vec::new(),
            tally: Tally::default(),
            buffers,
            supervisor,
            environment: environment(&plan, around.is_some() && attach && !setting.nat),
            addresses: plan.addresses,
            notes,
            programs: 0,
            started: BTreeSet::new(),
            refused: BTreeMap::new(),
            listening: BTreeSet::new(),
            ended: BTreeMap::new(),
        };
        let mut fds = loop {
            match namespaces.channel().next_report().doing("building the namespaces")? {
                Some(Report::Note(text)) => namespaces.notes.push(text),
                Some(Report::Ready(fds)) => break fds,
                Some(Report::Failed(why)) => return Err(NamespaceError::Inside(why).into()),
                _ => return Err(NamespaceError::Gone.into()),
            }
        };
        let listeners = fds.split_off(fds.len().min(2));
        namespaces.listeners = listeners.into_iter().map(Listener::from).collect();
        namespaces.devices = fds.try_into().ok();
        // Only now does the table stand that tells other emulators of this one.
        if let Some(supervisor) = &mut namespaces.supervisor {
            supervisor.give_way();
        }
        if namespaces.devices.is_none() { Err(NamespaceError::Gone.into()) } else { Ok(namespaces) }
    }

    /// Returns the addresses of both sides.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Notes for the user.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Takes the two devices, the outer one first. `None` from the second call on.
    pub fn take_devices(&mut self) -> Option<[OwnedFd; 2]> {
        self.devices.take()
    }

    /// Starts a program, with `$BRAKELIGHT_HOST` and `$BRAKELIGHT_HOST6` set.
    pub fn start(&mut self, mut program: Program) -> Result<ProgramId, CommandError> {
        let name =
            program.arguments.first().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        self.programs += 1;
        let id = self.programs;
        let own = std::mem::take(&mut program.environment);
        program.environment = self.environment.iter().cloned().chain(own).collect();
        self.channel()
            .order(&Order::Run(id, program))
            .map_err(|source| CommandError::NotRun { program: name.clone(), source })?;
        loop {
            if self.started.remove(&id) {
                return Ok(ProgramId(id));
            }
            if let Some(errno) = self.refused.remove(&id) {
                return Err(CommandError::NotRun {
                    program: name,
                    source: io::Error::from_raw_os_error(errno),
                });
            }
            self.hear()?;
        }
    }

    /// Returns a handle that ends everything from another thread:
    /// [`wait_for_the_end`](Self::wait_for_the_end) then returns [`NamespaceError::Gone`].
    pub fn ender(&self) -> io::Result<Ender> {
        Ok(Ender(self.channel().try_clone()?))
    }

    /// Sends a signal to a program. Does nothing if the program has ended.
    pub fn signal(&self, program: ProgramId, signal: Signal) {
        let _ = self.channel().order(&Order::Signal(program.0, signal as i32));
    }

    /// Waits until a program that was started with [`Program::listens`] listens.
    pub fn wait_until_it_listens(
        &mut self,
        program: ProgramId,
        signals: &Signals,
    ) -> Result<(), CommandError> {
        let until = Instant::now() + LISTEN_WITHIN;
        loop {
            if self.listening.contains(&program.0) {
                return Ok(());
            }
            if let Some(code) = self.ended.get(&program.0) {
                return Err(CommandError::ServerEnded { code: *code });
            }
            match self.wait(Some(until), signals)? {
                Event::Reported => {}
                Event::Signal(signal, _) => return Err(CommandError::Interrupted { signal: signal as i32 }),
                Event::TimedOut => {
                    return Err(CommandError::ServerSilent { seconds: LISTEN_WITHIN.as_secs() });
                }
            }
        }
    }

    /// Waits until a program ends, and forwards signals that the terminal did not send to it. Returns the
    /// exit code as a shell counts.
    pub fn wait_for_the_end(&mut self, program: ProgramId, signals: &Signals) -> Result<i32, CommandError> {
        let mut kill = None;
        loop {
            if let Some(code) = self.ended.get(&program.0) {
                return Ok(*code);
            }
            match self.wait(kill.map(|(until, _)| until), signals)? {
                Event::Reported => {}
                // The terminal tells all of its foreground processes, the program among them.
                Event::Signal(_, Sender::Terminal) => {}
                Event::Signal(signal, Sender::Process) => {
                    self.signal(program, signal);
                    if kill.is_none() && matches!(signal, Signal::SIGTERM | Signal::SIGHUP) {
                        kill = Some((Instant::now() + END_WITHIN, 128 + signal as i32));
                    }
                }
                Event::TimedOut => return Ok(kill.map_or(0, |(_, code)| code)),
            }
        }
    }

    /// Waits until a program ends, at most for `limit`. Returns the exit code as a shell counts, or `None` at
    /// the limit. Any signal ends the wait with [`CommandError::Interrupted`].
    pub fn wait_at_most(
        &mut self,
        program: ProgramId,
        limit: time::Duration,
        signals: &Signals,
    ) -> Result<Option<i32>, CommandError> {
        let until = Instant::now() + Duration::from_nanos(limit.as_nanos());
        loop {
            if let Some(code) = self.ended.get(&program.0) {
                return Ok(Some(*code));
            }
            match self.wait(Some(until), signals)? {
                Event::Reported => {}
                Event::Signal(signal, _) => return Err(CommandError::Interrupted { signal: signal as i32 }),
                Event::TimedOut => return Ok(None),
            }
        }
    }

    /// Returns the exit code of a program that has ended by now.
    pub fn ended(&self, program: ProgramId) -> Option<i32> {
        self.ended.get(&program.0).copied()
    }

    /// Returns what to tell the user of flows that their windows limited, and not the path, as far as the
    /// kernel counted by now.
    pub fn window_limits(&mut self) -> Option<String> {
        for listener in &self.listeners {
            // What cannot be had is not missed: it only makes a warning.
            let _ = listener.finish(&mut self.tally);
        }
        self.tally.warning(self.buffers)
    }

    /// Ends everything: servers get SIGTERM and up to two seconds.
    pub fn finish(mut self) {
        self.close();
    }

    fn close(&mut self) {
        let Some(channel) = self.channel.take() else { return };
        if channel.order(&Order::Finish).is_ok() {
            while let Ok(Some(_)) = channel.next_report() {}
        }
        while waitpid(self.owner, None) == Err(Errno::EINTR) {}
        self.supervisor = None;
    }

    fn channel(&self) -> &Channel {
        self.channel.as_ref().expect("open until it is closed")
    }

    /// Waits for a report, a signal or a time.
    fn wait(&mut self, until: Option<Instant>, signals: &Signals) -> Result<Event, CommandError> {
        let timeout = match until {
            None => PollTimeout::NONE,
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
                PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
            }
        };
        let (reported, signalled) = {
            let mut fds = vec![
                PollFd::new(self.channel().as_fd(), PollFlags::POLLIN),
                PollFd::new(signals.fd.as_fd(), PollFlags::POLLIN),
            ];
            fds.extend(
                self.listeners.iter().map(|listener| PollFd::new(listener.as_fd(), PollFlags::POLLIN)),
            );
            match poll(&mut fds, timeout) {
                Err(Errno::EINTR) => return Ok(Event::Reported),
                other => other.doing("waiting for the command")?,
            };
            let ready = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
            (ready(&fds[0]), ready(&fds[1]))
        };
        for listener in &self.listeners {
            listener.hear(&mut self.tally, &BTreeSet::new());
        }
        if signalled && let Some((signal, sender)) = signals.next() {
            return Ok(Event::Signal(signal, sender));
        }
        if reported {
            self.hear()?;
            return Ok(Event::Reported);
        }
        let late = until.is_some_and(|until| Instant::now() >= until);
        Ok(if late { Event::TimedOut } else { Event::Reported })
    }

    /// Takes in one report.
    fn hear(&mut self) -> Result<(), CommandError> {
        match self.channel().next_report().doing("listening to the namespaces")? {
            Some(Report::Started(id)) => {
                self.started.insert(id);
            }
            Some(Report::NotStarted(id, errno)) => {
                self.refused.insert(id, errno);
            }
            Some(Report::Listening(id)) => {
                self.listening.insert(id);
            }
            Some(Report::Ended(id, code)) => {
                self.ended.insert(id, code);
            }
            Some(Report::Failed(why)) => return Err(NamespaceError::Inside(why).into()),
            Some(Report::Ready(_) | Report::Note(_)) | None => return Err(NamespaceError::Gone.into()),
        }
        Ok(())
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        self.close();
    }
}

/// Ends a [`Namespaces`] from another thread.
#[derive(Debug)]
pub struct Ender(Channel);

impl Ender {
    /// Ends it.
    pub fn end(&self) {
        let _ = self.0.order(&Order::Finish);
    }
}

/// Returns whether an executable of that name exists: as a path if the name has a `/`, otherwise in `PATH`.
pub fn exists(name: &OsStr) -> bool {
    let executable =
        |path: &Path| path.is_file() && nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok();
    if name.as_bytes().contains(&b'/') {
        return executable(Path::new(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    !name.is_empty() && std::env::split_paths(&path).any(|folder| executable(&folder.join(name)))
}

/// What came first.
enum Event {
    Reported,
    Signal(Signal, Sender),
    TimedOut,
}

/// Who sent a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    /// The kernel, to all processes in the terminal's foreground.
    Terminal,
    /// Some process, to this one.
    Process,
}

/// Blocks signals to this thread and collects them, until this is dropped.
#[derive(Debug)]
pub struct Signals {
    fd: SignalFd,
    before: SigSet,
}

impl Signals {
    /// Blocks the signals that would end the emulator or that belong to the command. Threads started from now
    /// on block them too.
    pub fn hold() -> io::Result<Self> {
        let mut held = SigSet::empty();
        for signal in [
            Signal::SIGINT,
            Signal::SIGTERM,
            Signal::SIGHUP,
            Signal::SIGQUIT,
            Signal::SIGUSR1,
            Signal::SIGUSR2,
        ] {
            held.add(signal);
        }
        let mut before = SigSet::empty();
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&held), Some(&mut before))?;
        let fd = SignalFd::with_flags(&held, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Signals { fd, before })
    }

    fn next(&self) -> Option<(Signal, Sender)> {
        let info = self.fd.read_signal().ok()??;
        let signal = Signal::try_from(info.ssi_signo as i32).ok()?;
        let sender = if info.ssi_code == libc::SI_KERNEL { Sender::Terminal } else { Sender::Process };
        Some((signal, sender))
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // What is still held back was meant for a command that has ended.
        while self.next().is_some() {}
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.before), None);
    }
}

/// The environment variables of every program. An emulation nested in another one keeps the address of the
/// outer one's far end.
fn environment(plan: &Plan, joined: bool) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = Vec::new();
    let mut set = |name: &str, value: OsString| variables.push((name.into(), value));
    if !joined {
        set("BRAKELIGHT_HOST", plan.addresses.outer().to_string().into());
        if let Some(address) = plan.addresses.outer6() {
            set("BRAKELIGHT_HOST6", address.to_string().into());
        }
    }
    if let Some(account) = &plan.account {
        if let Some(name) = &account.name {
            set("USER", name.into());
            set("LOGNAME", name.into());
        }
        if let Some(home) = &account.home {
            set("HOME", home.into());
        }
    }
    variables
}

/// Whether IPv6 can be forwarded without harm: with forwarding on, the kernel drops routes learned from
/// router advertisements.
fn v6_can_be_forwarded(notes: &mut Vec<String>) -> io::Result<bool> {
    if sysctl::get("net/ipv6/conf/all/disable_ipv6").is_ok_and(|value| value != "0") {
        return Ok(false);
    }
    if sysctl::get("net/ipv6/conf/all/forwarding")? != "0" {
        return Ok(true);
    }
    let advertised = Netlink::open()?.routes()?.iter().any(|route| route.advertised);
    if advertised {
        notes.push(
            "IPv4 only: this machine has its IPv6 routes from a router's advertisements, and would lose them if it forwarded IPv6"
                .to_string(),
        );
    }
    Ok(!advertised)
}

/// The nftables table of this emulator. The forwarding settings from before the first emulator are taken from
/// the tables of those that run already.
fn table(v6: bool) -> io::Result<Table> {
    let others = Table::all()?;
    let mut before = Forwarding::read(v6)?;
    for other in others {
        before.v4 &= other.before.v4;
        before.v6 = match (before.v6, other.before.v6) {
            (Some(now), Some(then)) => Some(now && then),
            (now, then) => now.or(then),
        };
    }
    let mut token = [0; 8];
    // SAFETY: the buffer is there, and as long as it says.
    let filled = unsafe { libc::getrandom(token.as_mut_ptr().cast(), token.len(), 0) };
    if filled != token.len() as isize {
        return Err(io::Error::last_os_error());
    }
    Ok(Table { token: u64::from_ne_bytes(token), before })
}
