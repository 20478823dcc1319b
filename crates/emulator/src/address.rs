//! Which addresses the two sides of an emulation get: one subnet per nesting level, chosen so that it
//! collides with nothing that the present namespace uses, nor with the emulations around it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::netlink::{Netlink, Prefix};

/// Subnets to choose from: 100.64.0.0/14, a part of the shared address space (rfc6598 7), 24 bits each.
const SUBNETS: u32 = 1 << 10;

/// Leading bits of an IPv4 subnet.
pub(crate) const V4_LENGTH: u8 = 24;

/// Leading bits of an IPv6 subnet.
pub(crate) const V6_LENGTH: u8 = 64;

/// Below fd00::/8 (rfc4193 3.2.2), a global ID drawn once.
const V6_GLOBAL: [u16; 3] = [0xfd5b, 0xa1e6, 0x8d27];

/// The addresses of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    subnet: u32,
    /// Whether there is IPv6.
    pub v6: bool,
}

impl Addresses {
    /// Addresses that are free in the present namespace. `around` is the far end of an emulation around this
    /// one.
    pub(crate) fn choose(around: Option<Ipv4Addr>, v6: bool) -> io::Result<Self> {
        let mut netlink = Netlink::open()?;
        let mut used = netlink.addresses()?;
        used.extend(netlink.routes()?.iter().map(|route| route.to));
        used.extend(around.map(|address| Prefix { address: IpAddr::V4(address), length: V4_LENGTH }));
        free(&used, v6).ok_or_else(|| io::Error::other("no subnet of 100.64.0.0/14 is free here"))
    }

    /// Returns the outer side, in IPv4: `$BRAKELIGHT_HOST`.
    pub fn outer(&self) -> Ipv4Addr {
        v4(self.subnet, 1)
    }

    /// Returns the inner side, in IPv4.
    pub fn inner(&self) -> Ipv4Addr {
        v4(self.subnet, 2)
    }

    /// Returns the outer side, in IPv6: `$BRAKELIGHT_HOST6`.
    pub fn outer6(&self) -> Option<Ipv6Addr> {
        self.v6.then(|| v6(self.subnet, 1))
    }

    /// Returns the inner side, in IPv6.
    pub fn inner6(&self) -> Option<Ipv6Addr> {
        self.v6.then(|| v6(self.subnet, 2))
    }

    /// What an interface of the outer side is given, or of the inner side.
    pub(crate) fn prefixes(&self, outer: bool) -> Vec<Prefix> {
        let (address, address6) =
            if outer { (self.outer(), self.outer6()) } else { (self.inner(), self.inner6()) };
        let first = Prefix { address: IpAddr::V4(address), length: V4_LENGTH };
        let second = address6.map(|address| Prefix { address: IpAddr::V6(address), length: V6_LENGTH });
        std::iter::once(first).chain(second).collect()
    }
}

fn v4(subnet: u32, host: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits((100 << 24) | (64 << 16) | (subnet << 8) | host)
}

fn v6(subnet: u32, host: u16) -> Ipv6Addr {
    let [a, b, c] = V6_GLOBAL;
    Ipv6Addr::new(a, b, c, subnet as u16, 0, 0, 0, host)
}

/// The subnet after the highest that is in use, because the levels further out may not be seen from here; any
/// free one where that was the last.
fn free(used: &[Prefix], v6: bool) -> Option<Addresses> {
    let last = used.iter().filter_map(subnet_of).max();
    let start = last.map_or(0, |last| last + 1);
    (start..SUBNETS)
        .chain(0..start)
        .map(|subnet| Addresses { subnet, v6 })
        .find(|addresses| !used.iter().any(|prefix| collides(addresses, prefix)))
}

/// The number of one of our subnets.
fn subnet_of(prefix: &Prefix) -> Option<u32> {
    match prefix.address {
        IpAddr::V4(address) if prefix.length >= V4_LENGTH => {
            let offset = address.to_bits().checked_sub(v4(0, 0).to_bits())?;
            Some(offset >> 8).filter(|subnet| *subnet < SUBNETS)
        }
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => {
            let [a, b, c, subnet, ..] = address.segments();
            let ours = [a, b, c] == V6_GLOBAL && prefix.length >= V6_LENGTH;
            Some(u32::from(subnet)).filter(|subnet| ours && *subnet < SUBNETS)
        }
    }
}

/// Whether a range in use overlaps our subnets. A default route does not count: it covers everything.
fn collides(addresses: &Addresses, used: &Prefix) -> bool {
    match used.address {
        _ if used.length == 0 => false,
        IpAddr::V4(address) => {
            let bits = u32::from(used.length.min(V4_LENGTH));
            (address.to_bits() ^ addresses.outer().to_bits()) >> (32 - bits) == 0
        }
        IpAddr::V6(address) => {
            let bits = u32::from(used.length.min(V6_LENGTH));
            (address.to_bits() ^ v6(addresses.subnet, 0).to_bits()) >> (128 - bits) == 0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        let (address, length) = text.split_once('/').unwrap();
        Prefix { address: address.parse().unwrap(), length: length.parse().unwrap() }
    }

    fn outer(used: &[&str]) -> String {
        let used: Vec<Prefix> = used.iter().map(|text| prefix(text)).collect();
        free(&used, true).map_or("none".to_string(), |addresses| addresses.outer().to_string())
    }

    #[test]
    fn takes_the_first_subnet_where_nothing_else_is_used() {
        assert_eq!(outer(&["192.0.2.2/24", "0.0.0.0/0", "::/0", "fe80::1/64"]), "100.64.0.1");
        let addresses = free(&[], true).unwrap();
        assert_eq!(addresses.inner().to_string(), "100.64.0.2");
        assert_eq!(addresses.outer6().unwrap().to_string(), "fd5b:a1e6:8d27::1");
        assert_eq!(addresses.inner6().unwrap().to_string(), "fd5b:a1e6:8d27::2");
        assert_eq!(free(&[], false).unwrap().outer6(), None);
    }

    #[test]
    fn goes_past_every_level_that_can_be_seen_because_the_others_are_below() {
        assert_eq!(outer(&["100.64.3.2/24", "0.0.0.0/0"]), "100.64.4.1");
        assert_eq!(outer(&["fd5b:a1e6:8d27:7::2/64"]), "100.64.8.1");
    }

    #[test]
    fn stays_clear_of_wider_ranges_of_others() {
        assert_eq!(outer(&["100.64.0.0/16"]), "100.65.0.1");
        assert_eq!(outer(&["100.67.255.2/24"]), "100.64.0.1", "after the last comes the first");
        assert_eq!(outer(&["100.64.0.0/10"]), "none");
        assert_eq!(outer(&["fd00::/8"]), "none");
    }
}
