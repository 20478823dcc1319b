//! Which ECN codepoint each packet that is about to leave is to carry, from where it was encrypted to where it is sent.
//!
//! Between the two lies the stack, which passes on bytes and no more. A packet is known again by the end of its
//! authentication tag, which nothing changes after encryption: header protection touches the header alone.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, PoisonError};

use brakelight_core::ecn::Ecn;

/// Packets that may lie between encryption and sending. A connection has one batch there, of ten packets at most in
/// quinn; what a connection left behind as it ended makes way for what is new.
const MOST: usize = 4096;

/// Codepoints by packet. Shared by the connections of an endpoint and its socket.
#[derive(Debug, Default)]
pub struct Stamps(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    codepoints: HashMap<u64, Ecn, BuildHasherDefault<AsIs>>,
    /// Oldest first, those taken since included.
    order: VecDeque<u64>,
}

impl Stamps {
    /// None yet.
    pub fn new() -> Self {
        Stamps::default()
    }

    /// Notes that the encrypted `packet` is to carry `ecn`.
    pub fn leave(&self, packet: &[u8], ecn: Ecn) {
        let Some(key) = key(packet) else { return };
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.codepoints.insert(key, ecn);
        inner.order.push_back(key);
        if inner.order.len() > MOST
            && let Some(oldest) = inner.order.pop_front()
        {
            inner.codepoints.remove(&oldest);
        }
    }

    /// The codepoint that was noted for the last packet in `datagram`, if one was.
    pub fn find(&self, datagram: &[u8]) -> Option<Ecn> {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.codepoints.get(&key(datagram)?).copied()
    }
}

/// The last eight bytes of the tag: as good as random, and never the same for two packets that matter.
fn key(packet: &[u8]) -> Option<u64> {
    packet.last_chunk().copied().map(u64::from_ne_bytes)
}

/// Keys are random already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0 << 8 | u64::from(*byte));
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u64) -> Vec<u8> {
        [&[0x40; 20][..], &number.to_be_bytes()].concat()
    }

    #[test]
    fn a_packet_is_known_again_by_its_end() {
        let stamps = Stamps::new();
        stamps.leave(&packet(1), Ecn::Ect1);
        stamps.leave(&packet(2), Ecn::NotEct);
        let coalesced = [packet(7), packet(1)].concat();
        assert_eq!(stamps.find(&coalesced), Some(Ecn::Ect1));
        assert_eq!(stamps.find(&packet(2)), Some(Ecn::NotEct));
        assert_eq!(stamps.find(&packet(3)), None);
        assert_eq!(stamps.find(&[]), None);
    }

    #[test]
    fn a_packet_that_could_not_be_sent_at_once_is_found_again() {
        let stamps = Stamps::new();
        stamps.leave(&packet(1), Ecn::Ect1);
        assert_eq!(stamps.find(&packet(1)), Some(Ecn::Ect1));
        assert_eq!(stamps.find(&packet(1)), Some(Ecn::Ect1));
    }

    #[test]
    fn what_is_never_sent_makes_way() {
        let stamps = Stamps::new();
        (0..=MOST as u64).for_each(|number| stamps.leave(&packet(number), Ecn::Ect1));
        assert_eq!(stamps.find(&packet(0)), None);
        assert_eq!(stamps.find(&packet(1)), Some(Ecn::Ect1));
        assert_eq!(stamps.find(&packet(MOST as u64)), Some(Ecn::Ect1));
    }
}
