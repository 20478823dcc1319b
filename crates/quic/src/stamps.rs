//! Which ECN codepoint each packet that is about to leave is to carry, from where it was encrypted to where
//! it is sent.
//!
//! Between the two lies the stack, which passes on bytes and no more. A packet is known again by the end of
//! its authentication tag, which nothing changes after encryption: header protection touches the header
//! alone.

use std::sync::atomic::{AtomicU64, Ordering};

use brakelight_core::ecn::Ecn;

/// Places of one bucket.
const WAYS: usize = 4;

/// Buckets. A connection has one batch between encryption and sending, of ten packets at most in quinn, so
/// that a bucket is hardly ever full; what a connection left behind as it ended makes way for what is new.
const BUCKETS: usize = 2048;

/// Set in a place that is taken.
const TAKEN: u64 = 0b100;

/// The part of a key that is kept.
const KEPT: u64 = !0b111;

/// Codepoints by packet, without a lock. Shared by the connections of an endpoint and its socket.
#[derive(Debug)]
pub struct Stamps {
    noted: Box<[[AtomicU64; WAYS]]>,
    /// The one of every packet, where all are alike and nothing need be noted.
    always: Option<Ecn>,
}

impl Default for Stamps {
    fn default() -> Self {
        let noted = (0..BUCKETS).map(|_| [const { AtomicU64::new(0) }; WAYS]).collect();
        Stamps { noted, always: None }
    }
}

impl Stamps {
    /// Returns a list without stamps.
    pub fn new() -> Self {
        Stamps::default()
    }

    /// Returns all packets of the endpoint, whoever encrypts them, carry `ecn`.
    pub fn always(ecn: Ecn) -> Self {
        Stamps { noted: Box::default(), always: Some(ecn) }
    }

    /// Returns the codepoint of every packet, where all are alike.
    pub fn common(&self) -> Option<Ecn> {
        self.always
    }

    /// Notes that the encrypted `packet` is to carry `ecn`.
    pub fn leave(&self, packet: &[u8], ecn: Ecn) {
        if self.always.is_some() {
            return;
        }
        let Some(key) = key(packet) else { return };
        let noted = key & KEPT | TAKEN | ecn as u64;
        let bucket = self.bucket(key);
        let free = |place: &&AtomicU64| {
            place.compare_exchange(0, noted, Ordering::Release, Ordering::Relaxed).is_ok()
        };
        if !bucket.iter().any(|place| free(&place)) {
            bucket[key as usize % WAYS].store(noted, Ordering::Release);
        }
    }

    /// Returns the codepoint that was noted for the last packet in `datagram`, if one was.
    pub fn find(&self, datagram: &[u8]) -> Option<Ecn> {
        self.always.or_else(|| self.place(datagram).map(|(_, noted)| Ecn::from_bits(noted as u8)))
    }

    /// Forgets the last packet in `datagram`, which has been sent.
    pub fn forget(&self, datagram: &[u8]) {
        if let Some((place, noted)) = self.place(datagram) {
            // Unless another packet has taken the place meanwhile.
            let _ = place.compare_exchange(noted, 0, Ordering::Release, Ordering::Relaxed);
        }
    }

    /// Forgets the packets of `batch`, which has been sent: datagrams of `segment` bytes, the last one of
    /// fewer perhaps.
    pub fn forget_all(&self, batch: &[u8], segment: usize) {
        if self.always.is_none() {
            batch.chunks(segment.max(1)).for_each(|datagram| self.forget(datagram));
        }
    }

    fn place(&self, datagram: &[u8]) -> Option<(&AtomicU64, u64)> {
        let key = key(datagram).filter(|_| self.always.is_none())?;
        self.bucket(key).iter().find_map(|place| {
            let noted = place.load(Ordering::Acquire);
            (noted & TAKEN != 0 && noted & KEPT == key & KEPT).then_some((place, noted))
        })
    }

    /// By bits of the key that are kept.
    fn bucket(&self, key: u64) -> &[AtomicU64; WAYS] {
        &self.noted[(key >> 8) as usize % BUCKETS]
    }
}

/// The last eight bytes of the tag: as good as random, and never the same for two packets that matter.
fn key(packet: &[u8]) -> Option<u64> {
    packet.last_chunk().copied().map(u64::from_be_bytes)
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
        stamps.leave(&packet(8), Ecn::Ect1);
        stamps.leave(&packet(16), Ecn::NotEct);
        let coalesced = [packet(56), packet(8)].concat();
        assert_eq!(stamps.find(&coalesced), Some(Ecn::Ect1));
        assert_eq!(stamps.find(&packet(16)), Some(Ecn::NotEct));
        assert_eq!(stamps.find(&packet(24)), None);
        assert_eq!(stamps.find(&[]), None);
    }

    #[test]
    fn a_packet_is_found_until_it_has_been_sent() {
        let stamps = Stamps::new();
        stamps.leave(&packet(1 << 8), Ecn::Ect1);
        stamps.leave(&packet(2 << 8), Ecn::Ect0);
        assert_eq!(stamps.find(&packet(1 << 8)), Some(Ecn::Ect1));
        assert_eq!(stamps.find(&packet(1 << 8)), Some(Ecn::Ect1));
        stamps.forget(&packet(1 << 8));
        assert_eq!(stamps.find(&packet(1 << 8)), None);
        assert_eq!(stamps.find(&packet(2 << 8)), Some(Ecn::Ect0));
    }

    #[test]
    fn where_all_packets_are_alike_each_is_found_without_having_been_noted() {
        let stamps = Stamps::always(Ecn::NotEct);
        stamps.leave(&packet(8), Ecn::Ect1);
        assert_eq!(stamps.find(&packet(8)), Some(Ecn::NotEct));
        stamps.forget(&packet(8));
        assert_eq!(stamps.find(&[]), Some(Ecn::NotEct));
    }

    #[test]
    fn what_is_never_sent_makes_way() {
        let stamps = Stamps::new();
        let same_bucket = |number: u64| packet(number << 40);
        (0..=WAYS as u64).for_each(|number| stamps.leave(&same_bucket(number), Ecn::Ect1));
        assert_eq!(stamps.find(&same_bucket(0)), None);
        (1..=WAYS as u64).for_each(|number| assert_eq!(stamps.find(&same_bucket(number)), Some(Ecn::Ect1)));
    }

    #[test]
    fn threads_do_not_lose_each_others_packets() {
        let stamps = Stamps::new();
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let stamps = &stamps;
                scope.spawn(move || {
                    for number in 0..20_000_u64 {
                        // Few buckets, so that threads meet.
                        let packet = packet((number * 4 + thread) << 32 | (number % 4) << 8);
                        stamps.leave(&packet, Ecn::Ect1);
                        assert_eq!(stamps.find(&packet), Some(Ecn::Ect1));
                        stamps.forget(&packet);
                    }
                });
            }
        });
    }
}
