//! Who of those who come to a hub is let in, so that strangers cost it a bounded amount of memory and work.
//!
//! A connection is half-open until its handshake is complete. Up to [`Limits::unvalidated`] half-open ones,
//! whoever comes is let in. Above, an address must first show that it can receive, by a Retry (RFC 9000
//! section 8.1.2), which costs the hub no memory. At [`Limits::half_open`] the oldest half-open one makes
//! room: a handshake that lasts longer than it takes that many others to come is given up.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Limits on the connections of a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections with a complete handshake.
    pub connections: usize,
    /// Connections of one address, half-open ones included; of one /64 with IPv6, since hosts choose the
    /// rest.
    pub per_address: usize,
    /// Half-open connections above which an address must show that it can receive.
    pub unvalidated: usize,
    /// Half-open connections at most.
    pub half_open: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { connections: 2_000, per_address: 1_200, unvalidated: 64, half_open: 512 }
    }
}

/// What to do with one who comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Let in.
    Accept,
    /// Let in, in the place of this half-open connection.
    Replace(u64),
    /// Let the address show that it can receive.
    Retry,
    /// Turn away.
    Refuse,
}

/// Those who are in.
#[derive(Debug)]
pub(super) struct Admission {
    limits: Limits,
    addresses: HashMap<IpAddr, usize>,
    /// By number, which is by age.
    half_open: BTreeSet<u64>,
    connected: usize,
}

impl Admission {
    pub(super) fn new(limits: Limits) -> Self {
        Admission { limits, addresses: HashMap::new(), half_open: BTreeSet::new(), connected: 0 }
    }

    /// What to do with one from `remote`, who has `validated` that address or not.
    pub(super) fn judge(&self, remote: SocketAddr, validated: bool) -> Verdict {
        let limits = &self.limits;
        if !validated && self.half_open.len() >= limits.unvalidated {
            return Verdict::Retry;
        }
        let own = self.addresses.get(&owner(remote)).copied().unwrap_or(0);
        if self.connected >= limits.connections || own >= limits.per_address {
            return Verdict::Refuse;
        }
        match self.half_open.first() {
            Some(&oldest) if self.half_open.len() >= limits.half_open => Verdict::Replace(oldest),
            _ => Verdict::Accept,
        }
    }

    /// Connection `number` from `remote` was let in.
    pub(super) fn came(&mut self, number: u64, remote: SocketAddr) {
        self.half_open.insert(number);
        *self.addresses.entry(owner(remote)).or_default() += 1;
    }

    /// Its handshake is complete.
    pub(super) fn connected(&mut self, number: u64) {
        if self.half_open.remove(&number) {
            self.connected += 1;
        }
    }

    /// It is gone.
    pub(super) fn left(&mut self, number: u64, remote: SocketAddr) {
        if !self.half_open.remove(&number) {
            self.connected -= 1;
        }
        let owner = owner(remote);
        if let Some(count) = self.addresses.get_mut(&owner) {
            *count -= 1;
            if *count == 0 {
                self.addresses.remove(&owner);
            }
        }
    }
}

/// Whose an address is: itself with IPv4, its /64 with IPv6.
fn owner(remote: SocketAddr) -> IpAddr {
    match remote.ip().to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            Ipv6Addr::from(network).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { connections: 3, per_address: 2, unvalidated: 1, half_open: 2 };

    fn from(last: u8) -> SocketAddr {
        ([192, 0, 2, last], 1000).into()
    }

    #[test]
    fn strangers_must_show_that_they_can_receive_and_the_oldest_makes_room() {
        let mut door = Admission::new(LIMITS);
        assert_eq!(door.judge(from(1), false), Verdict::Accept);
        door.came(1, from(1));
        assert_eq!(door.judge(from(2), false), Verdict::Retry);
        assert_eq!(door.judge(from(2), true), Verdict::Accept);
        door.came(2, from(2));
        assert_eq!(door.judge(from(3), true), Verdict::Replace(1));
        door.left(1, from(1));
        door.came(3, from(3));
        // Connected ones make no room.
        door.connected(2);
        assert_eq!(door.judge(from(4), true), Verdict::Accept);
    }

    #[test]
    fn neither_one_address_nor_all_together_pass_their_limits() {
        let mut door = Admission::new(LIMITS);
        for number in 1..=2 {
            door.came(number, from(1));
            door.connected(number);
        }
        assert_eq!(door.judge(from(1), true), Verdict::Refuse);
        assert_eq!(door.judge(from(2), true), Verdict::Accept);
        door.came(3, from(2));
        door.connected(3);
        assert_eq!(door.judge(from(3), true), Verdict::Refuse);
        door.left(1, from(1));
        assert_eq!(door.judge(from(1), true), Verdict::Accept);
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one() {
        let host = |last: u16| SocketAddr::from(([0x2001, 0xdb8, 0, 1, 0, 0, 0, last], 1000));
        assert_eq!(owner(host(1)), owner(host(2)));
        assert_eq!(owner("[::ffff:192.0.2.1]:7".parse().unwrap()), owner(from(1)));
    }
}
