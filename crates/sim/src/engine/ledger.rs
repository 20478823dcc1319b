//! Double-entry bookkeeping of packets: what went in came out or is still inside, by identity.

use core::fmt;

use brakelight_core::packet::PacketId;

/// The packets that entered the network and those that left it, for the check of conservation.
///
/// Their identities are kept as one sum of hashes. Each is added when its packet enters and subtracted when
/// it leaves, which is O(1) in memory. Two different multisets of packets have the same sum with
/// probability of about 2^-64.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ledger {
    /// How many entered.
    entered: u64,
    /// How many left.
    left: u64,
    /// The sum of the hashes of those that entered, less those that left, modulo 2^64.
    hashes: u64,
}

/// The error that packets appeared or disappeared through a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unbalanced {
    /// Packets that were sent or duplicated.
    pub entered: u64,
    /// Packets that were delivered or dropped.
    pub left: u64,
    /// Packets found inside elements.
    pub inside: u64,
}

impl Ledger {
    /// A packet was sent, or made by duplication.
    #[inline]
    pub fn entered(&mut self, id: PacketId) {
        self.entered += 1;
        self.hashes = self.hashes.wrapping_add(mix(id.0));
    }

    /// A packet was delivered or dropped.
    #[inline]
    pub fn left(&mut self, id: PacketId) {
        self.left += 1;
        self.hashes = self.hashes.wrapping_sub(mix(id.0));
    }

    /// Checks this ledger against what is `inside`, listed as entered.
    pub fn balance(&self, inside: &Ledger) -> Result<(), Unbalanced> {
        if self.entered == self.left + inside.entered && self.hashes == inside.hashes {
            return Ok(());
        }
        Err(Unbalanced { entered: self.entered, left: self.left, inside: inside.entered })
    }
}

impl fmt::Display for Unbalanced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "packets are not conserved: {} entered, {} left, {} are inside",
            self.entered, self.left, self.inside
        )
    }
}

impl std::error::Error for Unbalanced {}

/// The two halves of a product folded together, as wyhash mixes.
#[inline]
fn mix(id: u64) -> u64 {
    let product = u128::from(id ^ 0xa076_1d64_78bd_642f) * 0xe703_7ed1_a0b4_28db;
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_a_packet_swapped_for_another() {
        let mut ledger = Ledger::default();
        ledger.entered(PacketId(1));
        ledger.entered(PacketId(2));
        ledger.left(PacketId(1));
        let mut inside = Ledger::default();
        inside.entered(PacketId(3));
        assert!(ledger.balance(&inside).is_err());
        let mut inside = Ledger::default();
        inside.entered(PacketId(2));
        assert_eq!(ledger.balance(&inside), Ok(()));
    }
}
