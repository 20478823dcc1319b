//! Adaptive deterministic packet marking (andrew06): a number in single bits of many packets.
//!
//! Routers and receiver compute the same hash h of a packet. A router marks the packets whose hash lies below
//! its value, so a marked packet is a lower bound on the largest value along the path, and an unmarked one an
//! upper bound. After n packets whose hashes are spread evenly the value is known to about 1/n, and a value
//! that does not change is known ever better.
//!
//! ```text
//! router:     f >= u: 11;   else f > h: 01;   else leave as it is          bmcc II-A
//! receiver:   11: f^ = u                                                    bmcc II-B
//!             10 and h < f^, or 01 and h > f^: f^ = h
//! ```
//!
//! The hash of bmcc puts a quarter of the packets into (eta_0, eta), a quarter into (eta, 1) and half into
//! (1, u). Within a band it is taken to be even, and the bands to lie in that order (open-questions#X-72):
//!
//! ```text
//! r = the 16 bits of the packet in reverse order / 2^16                     bmcc II-A, the IPid
//! r < 1/4:   h = eta_0 + (eta - eta_0) 4 r
//! r < 1/2:   h = eta + (1 - eta) (4 r - 1)
//! else:      h = 1 + (u - 1) (2 r - 1)
//! ```
//!
//! Reversing the bits of a counter makes any 2^k packets in a row lie evenly. With `bits` below 16 only that
//! many of them are used: the hash takes 2^bits values, and the estimate stays as coarse, however many
//! packets come. That is static deterministic marking (thommes06), and with 3 bits the resolution of UNO.

use brakelight_core::ecn::Ecn;

/// The layout of the hash values over the range of loads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    /// Values below this are not told apart.
    pub eta_0: f64,
    /// Where low load ends.
    pub eta: f64,
    /// Values from here on are overload.
    pub u: f64,
    /// How many bits of the packet are used, 1 to 16.
    pub bits: u32,
}

impl Layout {
    /// Returns h of a packet with these 16 bits: its IPv4 identification, or a hash of its payload.
    #[inline]
    pub fn hash(&self, hash16: u16) -> f64 {
        self.hash_of_rank(self.rank(hash16))
    }

    /// Returns the place of h among the 2^`bits` hash values, the least of which has place 0.
    #[inline]
    pub fn rank(&self, hash16: u16) -> u16 {
        hash16.reverse_bits() >> (16 - self.bits.clamp(1, 16))
    }

    #[inline]
    fn hash_of_rank(&self, rank: u16) -> f64 {
        let bits = self.bits.clamp(1, 16);
        // 2^-bits from its exponent: a product costs a third of a quotient.
        let r = f64::from(rank) * f64::from_bits(u64::from(1023 - bits) << 52);
        // open-questions#X-72
        if r < 0.25 {
            self.eta_0 + (self.eta - self.eta_0) * (4.0 * r)
        } else if r < 0.5 {
            self.eta + (1.0 - self.eta) * (4.0 * r - 1.0)
        } else {
            1.0 + (self.u - 1.0) * (2.0 * r - 1.0)
        }
    }

    /// Returns how many of the 2^`bits` hash values lie below `value`. A packet's [`hash`](Self::hash) is
    /// below `value` if its [`rank`](Self::rank) is less than that, and not otherwise.
    pub fn count_below(&self, value: f64) -> u32 {
        let (mut low, mut high) = (0_u32, 1 << self.bits.clamp(1, 16));
        while low < high {
            let middle = (low + high) / 2;
            if self.hash_of_rank(middle as u16) < value { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Returns f^ in 16 bits, rounded up: what has reached 1 must not be read as less.
    pub fn to_option(&self, estimate: f64) -> u16 {
        // The cast saturates.
        libm::ceil(estimate / self.u * 65_535.0 - 1e-9) as u16
    }

    /// Returns f^ as it was put in 16 bits.
    pub fn from_option(&self, option: u16) -> f64 {
        f64::from(option) / 65_535.0 * self.u
    }
}

/// A receiver's estimate of the load factor.
#[derive(Clone, Debug)]
pub struct Estimate {
    layout: Layout,
    value: f64,
}

impl Estimate {
    /// Returns what a receiver assumes at first: eta_0.
    pub fn new(layout: Layout) -> Self {
        Estimate { layout, value: layout.eta_0 }
    }

    /// Returns f^, the estimate.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Starts over.
    pub fn reset(&mut self) {
        self.value = self.layout.eta_0;
    }

    /// A packet arrived. With `ce_is_overload` 11 says that the value is at least u; without, that it is at
    /// least 1.
    pub fn on_packet(&mut self, ecn: Ecn, hash16: u16, ce_is_overload: bool) {
        let h = self.layout.hash(hash16);
        // bmcc II-B
        match ecn {
            Ecn::Ce if ce_is_overload => self.value = self.layout.u,
            Ecn::Ce => self.value = self.value.max(1.0),
            Ecn::Ect0 => self.value = self.value.min(h),
            Ecn::Ect1 => self.value = self.value.max(h),
            Ecn::NotEct => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use brakelight_core::random::Random;

    use super::*;

    const LAYOUT: Layout = Layout { eta_0: 0.15, eta: 0.75, u: 1.2, bits: 16 };

    /// What a router with load `f` makes of an unmarked packet.
    fn marked(layout: Layout, f: f64, hash16: u16) -> Ecn {
        if f >= layout.u {
            Ecn::Ce
        } else if f > layout.hash(hash16) {
            Ecn::Ect1
        } else {
            Ecn::Ect0
        }
    }

    fn estimate(layout: Layout, f: f64, packets: impl IntoIterator<Item = u16>) -> f64 {
        let mut estimate = Estimate::new(layout);
        for hash16 in packets {
            estimate.on_packet(marked(layout, f, hash16), hash16, true);
        }
        estimate.value()
    }

    /// B-U6: a quarter, a quarter and a half.
    #[test]
    fn hashes_lie_in_three_bands() {
        let hashes: Vec<f64> = (0..=u16::MAX).map(|bits| LAYOUT.hash(bits)).collect();
        let within = |from: f64, to: f64| hashes.iter().filter(|h| (from..to).contains(h)).count();
        assert_eq!(within(0.15, 0.75), 1 << 14);
        assert_eq!(within(0.75, 1.0), 1 << 14);
        assert_eq!(within(1.0, 1.2), 1 << 15);
        // Worked: bit-reversed 1, 2 and 3 are 1/2, 1/4 and 3/4.
        assert_eq!([0, 1, 2].map(|bits| LAYOUT.hash(bits)), [0.15, 1.0, 0.75]);
        assert!((LAYOUT.hash(3) - 1.1).abs() < 1e-12);
    }

    #[test]
    fn a_rank_is_below_the_count_exactly_if_the_hash_is_below_the_value() {
        let mut random = Random::stream(5, "adpm");
        for bits in 1..=16 {
            let eta_0 = 0.001 + 0.8 * random.uniform();
            let eta = eta_0 + (0.99 - eta_0) * random.uniform();
            let layout = Layout { eta_0, eta, u: 1.01 + 2.0 * random.uniform(), bits };
            let hashes = [0, 1, 2, 3, 0x7fff, u16::MAX].map(|hash16| layout.hash(hash16));
            let values = (0..200).map(|_| 3.5 * random.uniform()).chain(hashes).chain([0.0, eta_0, eta, 1.0]);
            for value in values.collect::<Vec<_>>() {
                let below = layout.count_below(value);
                for hash16 in (0..=u16::MAX).step_by(37) {
                    let is_below = u32::from(layout.rank(hash16)) < below;
                    assert_eq!(is_below, layout.hash(hash16) < value, "{layout:?}, {value}, {hash16}");
                }
            }
        }
    }

    /// B-U6: the resolution is 1/n of the range that the packets cover: n/4 of them lie in a band 0.6 wide,
    /// n/4 in one of 0.25, n/2 in one of 0.2. Up to all 2^16 values.
    #[test]
    fn n_packets_in_a_row_tell_a_value_to_one_in_n() {
        let mut random = Random::stream(3, "adpm");
        for bits in [4_u32, 8, 12, 16] {
            let n = 1_u32 << bits;
            for _ in 0..50 {
                let f = 0.15 + 1.05 * random.uniform();
                let start = random.bits() as u16;
                let packets = (0..n).map(|i| start.wrapping_add(i as u16));
                let wide = if f < 0.75 {
                    0.6
                } else if f < 1.0 {
                    0.25
                } else {
                    0.2
                };
                let share = if f < 1.0 { 4.0 } else { 2.0 };
                let error = (estimate(LAYOUT, f, packets) - f).abs();
                // Up to two packets of the band may be missing at its ends.
                assert!(error <= 2.0 * wide * share / f64::from(n) + 1e-9, "f = {f}, n = {n}: {error}");
            }
        }
    }

    /// B-U6: the mean square error lies orders of magnitude below that of random marking with as many
    /// packets, whose variance is at least p (1 - p) / n, and below static marking with 3 bits.
    #[test]
    fn errs_far_less_than_random_and_static_marking() {
        let mut random = Random::stream(4, "adpm");
        let coarse = Layout { bits: 3, ..LAYOUT };
        let (mut adaptive, mut fixed, mut random_marking) = (0.0, 0.0, 0.0);
        let (n, runs) = (1000_u16, 200);
        for _ in 0..runs {
            let f = 0.15 + 1.05 * random.uniform();
            let start = random.bits() as u16;
            let packets = || (0..n).map(|i| start.wrapping_add(i));
            let square = |estimate: f64| (estimate - f) * (estimate - f);
            adaptive += square(estimate(LAYOUT, f, packets()));
            fixed += square(estimate(coarse, f, packets()));
            let p = f / LAYOUT.u;
            let marked = (0..n).filter(|_| random.chance(p)).count();
            random_marking += square(marked as f64 / f64::from(n) * LAYOUT.u);
        }
        assert!(adaptive * 100.0 < random_marking, "{adaptive} {random_marking}");
        assert!(adaptive * 1000.0 < fixed, "{adaptive} {fixed}");
    }

    #[test]
    fn overload_is_known_from_one_packet() {
        for hash16 in 0..100 {
            assert_eq!(estimate(LAYOUT, 1.2, [hash16]), 1.2);
        }
    }

    /// open-questions#X-52
    #[test]
    fn overload_lasts_until_an_unmarked_packet_denies_it() {
        let mut estimate = Estimate::new(LAYOUT);
        estimate.on_packet(Ecn::Ce, 0, true);
        estimate.on_packet(Ecn::Ect1, 3, true);
        assert_eq!(estimate.value(), 1.2);
        estimate.on_packet(Ecn::Ect0, 3, true);
        assert!((estimate.value() - 1.1).abs() < 1e-12);
        estimate.on_packet(Ecn::Ce, 0, false);
        assert!((estimate.value() - 1.1).abs() < 1e-12);
        estimate.reset();
        assert_eq!(estimate.value(), 0.15);
        estimate.on_packet(Ecn::Ce, 0, false);
        assert_eq!(estimate.value(), 1.0);
    }

    #[test]
    fn the_largest_value_along_the_path_arrives() {
        // Three routers; each marks what it finds unmarked.
        let mut estimate = Estimate::new(LAYOUT);
        for hash16 in 0..=u16::MAX {
            let mut ecn = Ecn::Ect0;
            for f in [0.4, 0.93, 0.6] {
                let says = marked(LAYOUT, f, hash16);
                ecn = if ecn == Ecn::Ect0 { says } else { ecn };
            }
            estimate.on_packet(ecn, hash16, true);
        }
        assert!((estimate.value() - 0.93).abs() < 1e-4, "{}", estimate.value());
    }

    #[test]
    fn sixteen_bits_never_bring_an_overload_below_one() {
        for u in [1.1, 1.2, 1.25, 1.3, 1.5] {
            let layout = Layout { u, ..LAYOUT };
            assert_eq!(layout.from_option(layout.to_option(u)), u);
            for estimate in [1.0, 0.15, 0.75, layout.hash(12345)] {
                let read = layout.from_option(layout.to_option(estimate));
                assert!(read >= estimate - 1e-9 && read < estimate + u / 65_535.0, "{estimate}: {read}");
            }
            assert!(layout.from_option(layout.to_option(1.0)) >= 1.0);
        }
    }
}
