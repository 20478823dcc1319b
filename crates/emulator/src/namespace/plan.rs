//! What the namespaces are to be like, and what this process may do.

use std::fs;
use std::net::Ipv4Addr;

use crate::account::Account;
use crate::address::Addresses;
use crate::nat;
use crate::netlink::Netlink;

/// How the names of all interfaces begin that an emulator makes; a number follows.
pub(crate) const INTERFACE: &str = "brakelight";

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
