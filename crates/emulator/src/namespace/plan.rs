//! The plan of the namespaces, and what this process is allowed to do.

use std::fs;
use std::net::Ipv4Addr;

use brakelight_core::units::Bytes;
use brakelight_files::account::Account;

use crate::address::Addresses;
use crate::nat;
use crate::netlink::Netlink;

/// Prefix of the names of all interfaces that an emulator creates; a number follows.
pub(crate) const INTERFACE: &str = "brakelight";

/// The plan of both sides.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The addresses of both sides.
    pub(crate) addresses: Addresses,
    /// If set, the outer side is the current network namespace, and this nftables table translates the
    /// addresses of the inner side. If not, the outer side is a namespace of its own.
    pub(crate) attach: Option<nat::Table>,
    /// Whether a user namespace must be created first, because this process lacks the capabilities.
    pub(crate) user_namespace: bool,
    /// The account that programs run as.
    pub(crate) account: Option<Account>,
    /// The longest packet, bytes.
    pub(crate) mtu: u32,
    /// The limit of TCP's socket buffers in the new network namespaces, if the machine's is lower; `None`
    /// leaves it.
    pub(crate) socket_buffers: Option<Bytes>,
}

/// Whether this process may change the current network namespace and create others.
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

/// Whether the capabilities apply to the current network namespace. They do not if an outer user namespace
/// owns it.
fn owns_network() -> bool {
    Netlink::open().and_then(|mut netlink| netlink.change_nothing()).is_ok()
}

/// The address of the outer side if the current network namespace is the inner side of an emulation.
pub(crate) fn around() -> Option<Ipv4Addr> {
    let far: Ipv4Addr = std::env::var("BRAKELIGHT_HOST").ok()?.parse().ok()?;
    let here = nix::net::if_::if_nameindex().ok()?;
    let inside = here.iter().any(|interface| interface.name().to_bytes().starts_with(INTERFACE.as_bytes()));
    inside.then_some(far)
}
