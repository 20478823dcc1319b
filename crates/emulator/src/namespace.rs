//! The namespaces of an emulation: a network for the command, behind the link, and one for where the link leads, under a first process
//! with whose death everything ends.
//!
//! | process | is | ends when |
//! |---|---|---|
//! | the emulator | outside, as it was called | it is done |
//! | the keeper | its child, which made the namespaces | the emulator dies (parent-death signal), or init has ended |
//! | init | process 1 of the new process namespace | the emulator or the keeper dies (a closed channel; parent-death signal) |
//! | the programs | children of init | the kernel kills them all when init ends |
//!
//! The emulator itself enters no namespace. It is handed the two devices as descriptors, which work wherever their holder is.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Gid, Pid, Uid, fork, getpid, getppid};

use crate::address::Addresses;
use crate::channel::{Channel, Report};
use crate::device::{DeviceError, Port, TunSettings};
use crate::init;
use crate::nat;
use crate::netlink::Netlink;
use crate::supervisor::close_all_but;
use crate::veth;

/// How the names of all interfaces begin that an emulator makes; a number follows.
pub(crate) const INTERFACE: &str = "brakelight";

/// Why there is no place for a command to run in.
#[derive(Debug, thiserror::Error)]
pub enum HouseError {
    /// A step on the way that the system refused.
    #[error("{step}: {source}; `brakelight emulate --doctor` says what is missing and what to do about it")]
    Step {
        /// What was tried.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The same, in the child process that tried it.
    #[error("{0}; `brakelight emulate --doctor` says what is missing and what to do about it")]
    Inside(String),
    /// There is no device.
    #[error("{0}; `brakelight emulate --doctor` says what is missing and what to do about it")]
    Device(#[from] DeviceError),
    /// Something killed the first process of the namespaces.
    #[error("the emulation was ended from outside: the first process of its namespaces is gone")]
    Gone,
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

/// Names the step that went wrong.
pub(crate) trait Doing<T> {
    /// `step` is what was tried, in the words of a sentence.
    fn doing(self, step: &'static str) -> Result<T, HouseError>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, step: &'static str) -> Result<T, HouseError> {
        self.map_err(|source| HouseError::Step { step, source: source.into() })
    }
}

/// Whom programs run as, where that is not whom the emulator runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// User.
    pub uid: Uid,
    /// Primary group.
    pub gid: Gid,
    /// Every group.
    pub groups: Vec<Gid>,
    /// Name, as far as it is known.
    pub name: Option<String>,
    /// Home folder, as far as it is known.
    pub home: Option<std::path::PathBuf>,
}

impl Account {
    /// Who called sudo, where root runs and sudo says so.
    pub fn invoking() -> Option<Self> {
        if !Uid::effective().is_root() {
            return None;
        }
        let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
        let uid = Uid::from_raw(number("SUDO_UID")?);
        let gid = Gid::from_raw(number("SUDO_GID")?);
        if uid.is_root() {
            return None;
        }
        let user = nix::unistd::User::from_uid(uid).ok().flatten();
        let groups = user.as_ref().and_then(|user| {
            let name = std::ffi::CString::new(user.name.as_str()).ok()?;
            nix::unistd::getgrouplist(&name, gid).ok()
        });
        Some(Account {
            uid,
            gid,
            groups: groups.unwrap_or_else(|| vec![gid]),
            name: user.as_ref().map(|user| user.name.clone()),
            home: user.map(|user| user.dir),
        })
    }
}

/// What is to be built.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The addresses of both sides.
    pub(crate) addresses: Addresses,
    /// The outer side is the present network namespace, not one of its own; with the table that hides the inner side behind it.
    pub(crate) attach: Option<nat::Table>,
    /// A user namespace is needed to be allowed the rest.
    pub(crate) user_namespace: bool,
    /// Whom programs run as.
    pub(crate) account: Option<Account>,
    /// The longest packet, bytes.
    pub(crate) mtu: u32,
}

/// Whether this process may change the present network namespace and make others.
pub(crate) fn privileged() -> bool {
    const NET_ADMIN: u32 = 12;
    const SYS_ADMIN: u32 = 21;
    let has = |capabilities: u64| capabilities >> NET_ADMIN & 1 == 1 && capabilities >> SYS_ADMIN & 1 == 1;
    effective_capabilities().is_some_and(has) && owns_network()
}

fn effective_capabilities() -> Option<u64> {
    let status = fs::read_to_string("/proc/thread-self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// Whether the capabilities count for the present network namespace: one made by a user namespace further out does not obey them.
fn owns_network() -> bool {
    Netlink::open().and_then(|mut netlink| netlink.change_nothing()).is_ok()
}

/// Whether the present network namespace is the inner side of an emulation; then the address of its far end.
pub(crate) fn around() -> Option<Ipv4Addr> {
    let far: Ipv4Addr = std::env::var("BRAKELIGHT_HOST").ok()?.parse().ok()?;
    let here = nix::net::if_::if_nameindex().ok()?;
    let inside = here.iter().any(|interface| interface.name().to_bytes().starts_with(INTERFACE.as_bytes()));
    inside.then_some(far)
}

/// Starts the keeper, and through it the namespaces and their first process. What it says comes through the channel.
pub(crate) fn start(plan: &Plan) -> Result<(Pid, Channel), HouseError> {
    let (ours, theirs) = Channel::pair().doing("making a socket pair")?;
    let parent = getpid();
    // SAFETY: the child makes system calls, allocates (glibc's allocator survives a fork) and takes no lock that another thread may have
    // held at the fork; it never returns.
    match unsafe { fork() }.doing("starting a process")? {
        ForkResult::Parent { child } => Ok((child, ours)),
        ForkResult::Child => never_returns(|| {
            // Nor what else the caller has open, for whose end others may wait.
            drop(ours);
            close_all_but(&[theirs.as_fd().as_raw_fd()]);
            keep(plan, theirs, parent)
        }),
    }
}

/// Runs what a child process does, and ends the process whatever happens.
pub(crate) fn never_returns(work: impl FnOnce() -> i32) -> ! {
    // A panic must not unwind into the copy of the caller's stack.
    let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(101);
    // SAFETY: ends this process at once, without running what the parent registered for its own exit.
    unsafe { libc::_exit(code) }
}

/// From now on this process is killed when its parent dies. Wrong when it has died already.
pub(crate) fn die_with(parent: Option<Pid>) -> bool {
    let set = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    set.is_ok() && parent.is_none_or(|parent| getppid() == parent)
}

/// The keeper: makes the namespaces, starts their first process, waits for its end.
fn keep(plan: &Plan, channel: Channel, parent: Pid) -> i32 {
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

/// The sentence without the advice, which the emulator adds.
pub(crate) fn short(error: &HouseError) -> String {
    match error {
        HouseError::Step { step, source } => format!("{step}: {source}"),
        HouseError::Device(error) => error.to_string(),
        other => other.to_string(),
    }
}

fn separate(plan: &Plan) -> Result<(), HouseError> {
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

/// What init holds of the two sides.
#[derive(Debug)]
pub(crate) struct Sides {
    /// The inner network namespace.
    pub(crate) inner: OwnedFd,
    /// The outer one, in which init stays.
    pub(crate) outer: OwnedFd,
    /// The translation, for as long as this is held.
    pub(crate) _translation: Option<nat::Translation>,
    /// Whether /proc shows the processes of this namespace.
    pub(crate) own_proc: bool,
}

/// Builds both sides. Gives what init holds, and the two devices: the outer one first.
pub(crate) fn build(plan: &Plan) -> Result<(Sides, [OwnedFd; 2]), HouseError> {
    let own_proc = own_mounts(plan.attach.is_some());
    let private = plan.attach.is_none();
    if private {
        private_network(plan)?;
        // Nothing is routed there; but who asks for the way out is told at once that there is none.
        let _ = set("net/ipv4/ip_forward", "1");
        let _ = set("net/ipv6/conf/all/forwarding", "1");
        // A device that is made as a router's announces itself as one.
        let _ = set("net/ipv6/conf/default/forwarding", "0");
    }
    let (outer_device, _) = device(plan, true)?;
    let translation = plan
        .attach
        .as_ref()
        .map(|table| nat::Translation::start(table, plan.addresses))
        .transpose()
        .doing("adding a table to nftables")?;
    let outer = fs::File::open("/proc/thread-self/ns/net").doing("holding the outer network namespace")?;
    unshare(CloneFlags::CLONE_NEWNET).doing("making a network namespace")?;
    private_network(plan)?;
    let (inner_device, index) = device(plan, false)?;
    let mut netlink = Netlink::open().doing("opening a netlink socket")?;
    netlink.add_default_route(index, false).doing("adding a default route")?;
    if plan.addresses.v6 {
        netlink.add_default_route(index, true).doing("adding a default route for IPv6")?;
    }
    let inner = fs::File::open("/proc/thread-self/ns/net").doing("holding the inner network namespace")?;
    nix::sched::setns(&outer, CloneFlags::CLONE_NEWNET).doing("returning to the outer side")?;
    let sides = Sides { inner: inner.into(), outer: outer.into(), _translation: translation, own_proc };
    Ok((sides, [outer_device, inner_device]))
}

/// Mounts of this namespace's own: /proc with its processes, and name servers that can be reached from it. Says whether /proc is.
fn own_mounts(attached: bool) -> bool {
    // What is mounted here must not appear outside. Where that cannot be had, as under a root that is no mount, nothing is mounted.
    let slave = MsFlags::MS_REC | MsFlags::MS_SLAVE;
    if mount(None::<&str>, "/", None::<&str>, slave, None::<&str>).is_err() {
        return false;
    }
    if attached && let Some(reachable) = reachable_name_servers() {
        let bind = MsFlags::MS_BIND;
        let _ = mount(Some(reachable), "/etc/resolv.conf", None::<&str>, bind, None::<&str>);
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    // Refused where parts of /proc are covered, as in most containers; then the old one shows the processes outside.
    mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>).is_ok()
}

/// Where the machine resolves names by a service on its loopback interface, which another namespace does not reach: the file in which that
/// service keeps whom it asks.
fn reachable_name_servers() -> Option<&'static Path> {
    let upstream = Path::new("/run/systemd/resolve/resolv.conf");
    let present = fs::read_to_string("/etc/resolv.conf").ok()?;
    let mut servers = present.lines().filter_map(|line| line.strip_prefix("nameserver"));
    (servers.any(|server| server.trim().starts_with("127.")) && upstream.is_file()).then_some(upstream)
}

/// A network namespace that was just made: its loopback interface, and what its programs may do as the users they are.
fn private_network(plan: &Plan) -> Result<(), HouseError> {
    let mut netlink = Netlink::open().doing("opening a netlink socket")?;
    netlink.set_up(1, None).doing("setting up the loopback interface")?;
    // Each is a convenience without which all else works.
    let gid = plan.account.as_ref().map_or(Gid::effective(), |account| account.gid);
    let _ = set("net/ipv4/ping_group_range", &format!("{gid} {gid}"));
    let _ = set("net/ipv4/ip_unprivileged_port_start", "0");
    if plan.addresses.v6 {
        let _ = set("net/ipv6/conf/all/disable_ipv6", "0");
        let _ = set("net/ipv6/conf/default/disable_ipv6", "0");
    }
    Ok(())
}

/// The device of one side, in the present namespace, with its addresses; and its index.
fn device(plan: &Plan, outer: bool) -> Result<(OwnedFd, u32), HouseError> {
    let name = free_name()?;
    let settings = TunSettings { mtu: plan.mtu, ..TunSettings::default() };
    let fd = match Port::tun(&name, &settings) {
        Ok(port) => port.into_fd(),
        Err(DeviceError::Open(_)) => veth::open(&name, plan.mtu)
            .doing("making a pair of virtual Ethernet devices instead of a TUN device")?,
        Err(error) => return Err(error.into()),
    };
    let index = nix::net::if_::if_nametoindex(name.as_str()).doing("finding the TUN device")?;
    if plan.addresses.v6 {
        // No router is asked or played, and no address made up: what stands on the link is known, and what passes it is the programs'.
        for (key, value) in
            [("accept_ra", "0"), ("forwarding", "0"), ("addr_gen_mode", "1"), ("disable_ipv6", "0")]
        {
            let _ = set(&format!("net/ipv6/conf/{name}/{key}"), value);
        }
    }
    let mut netlink = Netlink::open().doing("opening a netlink socket")?;
    netlink.set_up(index, Some(settings.queue)).doing("setting up the TUN device")?;
    for prefix in plan.addresses.prefixes(outer) {
        netlink.add_address(index, prefix).doing("giving the TUN device its address")?;
    }
    Ok((fd, index))
}

/// The name of a TUN device, wherever it is; of anything else, none.
pub(crate) fn tun_name(fd: &OwnedFd) -> Option<String> {
    // SAFETY: a request of zeros is a valid one.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open and the request outlives the call, which writes into it.
    let asked = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNGETIFF as _, &raw mut request) };
    let name = request.ifr_name.iter().take_while(|c| **c != 0).map(|c| *c as u8 as char).collect();
    (asked == 0).then_some(name)
}

/// The first name of ours that no interface of the present namespace has.
fn free_name() -> Result<String, HouseError> {
    let taken = nix::net::if_::if_nameindex().doing("listing the interfaces")?;
    let taken = |name: &str| taken.iter().any(|interface| interface.name().to_bytes() == name.as_bytes());
    let mut names = (0..).map(|number| format!("{INTERFACE}{number}"));
    Ok(names.find(|name| !taken(name)).unwrap_or_default())
}

/// Writes a setting of the present network namespace, `net/ipv4/ip_forward`.
pub(crate) fn set(name: &str, value: &str) -> io::Result<()> {
    write(&format!("/proc/sys/{name}"), value)
}

/// Reads a setting of the present network namespace.
pub(crate) fn get(name: &str) -> io::Result<String> {
    Ok(fs::read_to_string(format!("/proc/sys/{name}"))?.trim().to_string())
}

/// Writes a file of the kernel's, which must not be made where it does not exist.
fn write(path: &str, value: &str) -> io::Result<()> {
    use std::io::Write;
    fs::OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_mounted_where_it_would_appear_outside() {
        let folder = std::env::temp_dir().join(format!("brakelight-mounts-{}", std::process::id()));
        fs::create_dir_all(folder.join("proc")).unwrap();
        let run = || {
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            let alone = unshare(CloneFlags::CLONE_NEWNS).is_ok()
                && mount(None::<&str>, "/", None::<&str>, private, None::<&str>).is_ok();
            if !alone {
                eprintln!("NOT RUN: mounts: no mount namespace can be made");
                return;
            }
            // A root that is no mount cannot be made a slave.
            nix::unistd::chroot(&folder).unwrap();
            std::env::set_current_dir("/").unwrap();
            assert!(!own_mounts(false));
            assert_eq!(fs::read_dir("/proc").unwrap().count(), 0, "/proc was mounted");
        };
        let done = std::thread::scope(|scope| scope.spawn(run).join());
        fs::remove_dir_all(&folder).unwrap();
        done.unwrap();
    }
}
