//! Both sides of an emulation: their mounts, network namespaces, devices and addresses.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::Gid;

use super::error::{Doing, NamespaceError};
use super::plan::{INTERFACE, Plan};
use crate::buffers;
use crate::device::{DeviceError, Port, TunSettings};
use crate::nat;
use crate::netlink::Netlink;
use crate::sysctl::set;
use crate::veth;
use crate::window_limited;

/// What init keeps open of the two sides.
#[derive(Debug)]
pub(crate) struct Sides {
    /// The inner network namespace.
    pub(crate) inner: OwnedFd,
    /// The outer one, in which init stays.
    pub(crate) outer: OwnedFd,
    /// The address translation, which ends when this is dropped.
    pub(crate) _translation: Option<nat::Translation>,
    /// Whether /proc shows the processes of this namespace.
    pub(crate) own_proc: bool,
    /// What the user should know of them.
    pub(crate) note: Option<String>,
}

/// Builds both sides. Returns what init keeps open, and descriptors for the emulator: of the outer device, of
/// the inner one, then those that hear of the TCP sockets of the sides that are its own.
pub(crate) fn build(plan: &Plan) -> Result<(Sides, Vec<OwnedFd>), NamespaceError> {
    let own_proc = own_mounts(plan.attach.is_some());
    let private = plan.attach.is_none();
    if private {
        private_network(plan)?;
        plan.socket_buffers.and_then(buffers::raise);
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
    // Sockets of the real network are none of ours. A kernel without sock_diag only gives no warning.
    let outer_listener = if private { window_limited::open().ok() } else { None };
    let outer = fs::File::open("/proc/thread-self/ns/net").doing("holding the outer network namespace")?;
    unshare(CloneFlags::CLONE_NEWNET).doing("making a network namespace")?;
    private_network(plan)?;
    // Both sides have the same limits, so one note says it.
    let note = plan.socket_buffers.and_then(buffers::raise);
    let (inner_device, index) = device(plan, false)?;
    let mut netlink = Netlink::open().doing("opening a netlink socket")?;
    netlink.add_default_route(index, false).doing("adding a default route")?;
    if plan.addresses.v6 {
        netlink.add_default_route(index, true).doing("adding a default route for IPv6")?;
    }
    let inner_listener = window_limited::open().ok();
    let inner = fs::File::open("/proc/thread-self/ns/net").doing("holding the inner network namespace")?;
    nix::sched::setns(&outer, CloneFlags::CLONE_NEWNET).doing("returning to the outer side")?;
    let sides = Sides { inner: inner.into(), outer: outer.into(), _translation: translation, own_proc, note };
    let devices = [outer_device, inner_device].into_iter();
    Ok((sides, devices.chain(outer_listener).chain(inner_listener).collect()))
}

/// Mounts /proc of this process namespace, and a resolv.conf with reachable name servers. Returns whether
/// /proc was mounted.
fn own_mounts(attached: bool) -> bool {
    // What is mounted here must not appear outside. Where that cannot be had, as under a root that is no
    // mount, nothing is mounted.
    let slave = MsFlags::MS_REC | MsFlags::MS_SLAVE;
    if mount(None::<&str>, "/", None::<&str>, slave, None::<&str>).is_err() {
        return false;
    }
    if attached && let Some(reachable) = reachable_name_servers() {
        let bind = MsFlags::MS_BIND;
        let _ = mount(Some(reachable), "/etc/resolv.conf", None::<&str>, bind, None::<&str>);
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    // Refused where parts of /proc are covered, as in most containers; then the old one shows the processes
    // outside.
    mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>).is_ok()
}

/// The resolv.conf of the upstream name servers, if the machine uses a resolver on its loopback interface,
/// which other namespaces cannot reach.
fn reachable_name_servers() -> Option<&'static Path> {
    let upstream = Path::new("/run/systemd/resolve/resolv.conf");
    let present = fs::read_to_string("/etc/resolv.conf").ok()?;
    let mut servers = present.lines().filter_map(|line| line.strip_prefix("nameserver"));
    (servers.any(|server| server.trim().starts_with("127.")) && upstream.is_file()).then_some(upstream)
}

/// Configures a new network namespace: the loopback interface, and the sysctls that let unprivileged programs
/// ping and bind low ports.
fn private_network(plan: &Plan) -> Result<(), NamespaceError> {
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

/// What carries the packets of one side.
enum End {
    Tun(OwnedFd),
    Pair(veth::Wire),
}

/// Creates the device of one side in the current namespace, with its addresses. Returns its descriptor and
/// index.
fn device(plan: &Plan, outer: bool) -> Result<(OwnedFd, u32), NamespaceError> {
    let name = free_name()?;
    let settings = TunSettings { mtu: plan.mtu, ..TunSettings::default() };
    let end = match Port::tun(&name, &settings) {
        Ok(port) => End::Tun(port.into_fd()),
        Err(DeviceError::Open(_)) => End::Pair(
            veth::open(&name, plan.mtu)
                .doing("making a pair of virtual Ethernet devices instead of a TUN device")?,
        ),
        Err(error) => return Err(error.into()),
    };
    let index = nix::net::if_::if_nametoindex(name.as_str()).doing("finding the TUN device")?;
    if plan.addresses.v6 {
        // No router is asked or played, and no address made up: what stands on the link is known, and what
        // passes it is the programs'.
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
    let fd = match end {
        End::Tun(fd) => fd,
        End::Pair(mut wire) => {
            let near = netlink.wait_until_connected(index);
            near.and_then(|()| wire.wait_until_connected())
                .doing("waiting until the pair of virtual Ethernet devices is connected")?;
            wire.socket
        }
    };
    Ok((fd, index))
}

/// The name of a TUN device, in whatever namespace it is. `None` if the descriptor is no TUN device.
pub(crate) fn tun_name(fd: &OwnedFd) -> Option<String> {
    // SAFETY: a request of zeros is a valid one.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open and the request outlives the call, which writes into it.
    let asked = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNGETIFF as _, &raw mut request) };
    let name = request.ifr_name.iter().take_while(|c| **c != 0).map(|c| *c as u8 as char).collect();
    (asked == 0).then_some(name)
}

/// The first name with our prefix that no interface of the current namespace has.
fn free_name() -> Result<String, NamespaceError> {
    let taken = nix::net::if_::if_nameindex().doing("listing the interfaces")?;
    let taken = |name: &str| taken.iter().any(|interface| interface.name().to_bytes() == name.as_bytes());
    let mut names = (0..).map(|number| format!("{INTERFACE}{number}"));
    Ok(names.find(|name| !taken(name)).unwrap_or_default())
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
                brakelight_testkit::skip("network: mounts", "no mount namespace can be made");
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
