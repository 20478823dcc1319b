//! What this machine and this user have of what an emulation needs; what is missing, and what to do about it,
//! in plain words. Nothing is changed: what cannot be known by looking is tried in a child process.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use brakelight_files::process::never_returns;
use nix::sched::{CloneFlags, unshare};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Gid, Uid, fork};

use crate::clock::{Scheduling, sleep_precisely};
use crate::command::exists;
use crate::namespace::plan::privileged;
use crate::nat::Table;
use crate::netlink::Netlink;
use crate::sysctl::get;
use crate::workload;

/// The state of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There.
    Good,
    /// Not there, and something else will do.
    Limited,
    /// Not there, and nothing works without it.
    Missing,
}

/// One finding about this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub what: &'static str,
    /// How it is.
    pub state: State,
    /// In words.
    pub says: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

impl Finding {
    fn good(what: &'static str, says: impl Into<String>) -> Self {
        Finding { what, state: State::Good, says: says.into(), remedy: None }
    }

    fn limited(what: &'static str, says: impl Into<String>, remedy: impl Into<String>) -> Self {
        Finding { what, state: State::Limited, says: says.into(), remedy: Some(remedy.into()) }
    }

    fn missing(what: &'static str, says: impl Into<String>, remedy: impl Into<String>) -> Self {
        Finding { what, state: State::Missing, says: says.into(), remedy: Some(remedy.into()) }
    }
}

impl fmt::Display for Finding {
    /// A line, and one more for the remedy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Good => "ok",
            State::Limited => "limited",
            State::Missing => "missing",
        };
        write!(f, "{:<20} {state:<8} {}", self.what, self.says)?;
        match &self.remedy {
            Some(remedy) => write!(f, "\n{:<29} to do: {remedy}", ""),
            None => Ok(()),
        }
    }
}

/// Examines everything. Must be called before other threads are started, because it forks.
pub fn examine() -> Vec<Finding> {
    let privileged = privileged();
    vec![namespaces(privileged), tun(), timing(), ipv6(), congestion_controls(), nat(privileged), programs()]
}

fn namespaces(privileged: bool) -> Finding {
    const WHAT: &str = "namespaces";
    if privileged {
        return Finding::good(WHAT, "this user may create network namespaces");
    }
    match in_a_child(try_namespaces) {
        Ok(()) => Finding::good(WHAT, "user namespaces are open to this user; root is not needed"),
        Err(error) => {
            let (says, remedy) = why_no_namespaces(&error, |name| get(name).ok());
            Finding::missing(WHAT, says, remedy)
        }
    }
}

/// Which sysctl keeps users from creating namespaces, and the remedy.
fn why_no_namespaces(error: &io::Error, setting: impl Fn(&str) -> Option<String>) -> (String, String) {
    let is = |name: &str, value: &str| setting(name).is_some_and(|found| found == value);
    let sudo = "or run brakelight with sudo";
    if is("kernel/unprivileged_userns_clone", "0") {
        (
            "user namespaces are switched off for users (kernel.unprivileged_userns_clone = 0)".into(),
            format!("sudo sysctl kernel.unprivileged_userns_clone=1, {sudo}"),
        )
    } else if is("user/max_user_namespaces", "0") {
        (
            "no user namespaces are allowed here (user.max_user_namespaces = 0)".into(),
            format!("sudo sysctl user.max_user_namespaces=10000, {sudo}"),
        )
    } else if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        (
            "AppArmor removes the capabilities of user namespaces (kernel.apparmor_restrict_unprivileged_userns = 1)"
                .into(),
            format!("sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, {sudo}"),
        )
    } else {
        (
            format!("a user namespace with a network is refused: {error}"),
            format!(
                "in a container, start it with more rights (docker run --privileged, or --cap-add NET_ADMIN,SYS_ADMIN \
                 --security-opt seccomp=unconfined --device /dev/net/tun); elsewhere, {}",
                sudo.trim_start_matches("or ")
            ),
        )
    }
}

/// Creates the namespaces that an emulation creates, and checks that they can be configured.
fn try_namespaces() -> io::Result<()> {
    let (uid, gid) = (Uid::effective(), Gid::effective());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET)?;
    Netlink::open()?.change_nothing()
}

fn tun() -> Finding {
    const WHAT: &str = "/dev/net/tun";
    let instead = "AF_PACKET on virtual Ethernet is used instead, which costs more processor time";
    match fs::OpenOptions::new().read(true).write(true).open(WHAT) {
        Ok(_) => Finding::good(WHAT, "this user may open it"),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Finding::limited(
            WHAT,
            format!("this user may not open it; {instead}"),
            "sudo chmod 666 /dev/net/tun (as it is on most systems; what a TUN device may do is decided by namespaces)",
        ),
        Err(error) => Finding::limited(
            WHAT,
            format!("it cannot be opened ({error}); {instead}"),
            "sudo modprobe tun; in a container, docker run --device /dev/net/tun",
        ),
    }
}

fn timing() -> Finding {
    const WHAT: &str = "timing";
    // What a thread asks for ends with it.
    match std::thread::spawn(|| sleep_precisely(true)).join() {
        Ok(Scheduling::Fifo) => {
            Finding::good(WHAT, "SCHED_FIFO is permitted: packets are on time on a busy machine too")
        }
        _ => Finding::limited(
            WHAT,
            "SCHED_FIFO is not permitted: on a busy machine packets will be late, and the run will say so",
            "add the line `YOU - rtprio 1` with your name to /etc/security/limits.conf and log in again, or use sudo",
        ),
    }
}

fn ipv6() -> Finding {
    const WHAT: &str = "IPv6";
    if Path::new("/proc/net/if_inet6").exists() {
        Finding::good(WHAT, "both sides have addresses of both kinds")
    } else {
        Finding::limited(
            WHAT,
            "the kernel has none: both sides have IPv4 only",
            "boot without ipv6.disable=1",
        )
    }
}

fn congestion_controls() -> Finding {
    const WHAT: &str = "congestion controls";
    let available = get("net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    let has = |name: &str| available.split_whitespace().any(|other| other == name);
    let lacking: Vec<&str> =
        workload::kernels().map(|(_, kernel)| kernel.name).filter(|name| !has(name)).collect();
    if lacking.is_empty() {
        return Finding::good(
            WHAT,
            format!(
                "{available}; programs may choose each of them for their sockets (iperf3 -C), while the default of a namespace can \
                 only be one of net.ipv4.tcp_allowed_congestion_control"
            ),
        );
    }
    let modules: Vec<String> = lacking.iter().map(|name| format!("tcp_{name}")).collect();
    Finding::limited(
        WHAT,
        format!("{available}; not loaded: {}", lacking.join(", ")),
        format!("sudo modprobe -a {}", modules.join(" ")),
    )
}

fn nat(privileged: bool) -> Finding {
    const WHAT: &str = "--nat";
    if !privileged {
        return Finding::limited(
            WHAT,
            "it changes the network of this machine, which this user is not allowed to do",
            "sudo brakelight emulate --nat ...: the command still runs as your user",
        );
    }
    match Table::all() {
        Ok(_) => Finding::good(WHAT, "nftables is there"),
        Err(error) => Finding::limited(
            WHAT,
            format!("nftables cannot be used ({error})"),
            "sudo modprobe nf_tables nft_masq; Linux 5.12 or newer is needed",
        ),
    }
}

fn programs() -> Finding {
    const WHAT: &str = "programs";
    let lacking: Vec<&str> = ["ping", "iperf3"].into_iter().filter(|name| !exists(name.as_ref())).collect();
    if lacking.is_empty() {
        return Finding::good(WHAT, "ping and iperf3 are installed");
    }
    let packages: Vec<&str> =
        lacking.iter().map(|name| if *name == "ping" { "iputils-ping" } else { *name }).collect();
    Finding::limited(
        WHAT,
        format!("not found: {}", lacking.join(", ")),
        format!("sudo apt install {}", packages.join(" ")),
    )
}

/// Runs `work` in a child process and returns its error.
fn in_a_child(work: fn() -> io::Result<()>) -> io::Result<()> {
    // SAFETY: the child makes system calls and allocates, takes no lock that another thread may have held,
    // and never returns.
    match unsafe { fork() }? {
        // The numbers of errors fit into an exit code.
        ForkResult::Child => never_returns(|| match work() {
            Ok(()) => 0,
            Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
        }),
        ForkResult::Parent { child } => loop {
            match waitpid(child, None) {
                Ok(WaitStatus::Exited(_, 0)) => return Ok(()),
                Ok(WaitStatus::Exited(_, code)) => return Err(io::Error::from_raw_os_error(code)),
                Ok(_) => return Err(io::Error::other("the process that tried was killed")),
                Err(nix::Error::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_that_forbids_namespaces_is_named_with_its_remedy() {
        let refused = io::Error::from_raw_os_error(libc::EPERM);
        for (name, value) in [
            ("kernel/unprivileged_userns_clone", "0"),
            ("user/max_user_namespaces", "0"),
            ("kernel/apparmor_restrict_unprivileged_userns", "1"),
        ] {
            let (says, remedy) =
                why_no_namespaces(&refused, |asked| (asked == name).then(|| value.to_string()));
            let dotted = name.replace('/', ".");
            assert!(says.contains(&format!("{dotted} = {value}")), "{says}");
            assert!(remedy.contains(&format!("sudo sysctl {dotted}=")), "{remedy}");
        }
        let (says, remedy) = why_no_namespaces(&refused, |_| None);
        assert!(says.contains("Operation not permitted") && remedy.contains("container"), "{says} {remedy}");
    }

    #[test]
    fn an_error_of_the_child_is_told() {
        assert!(in_a_child(|| Ok(())).is_ok());
        let error = in_a_child(|| Err(io::Error::from_raw_os_error(libc::ENOSPC))).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    }
}
