//! How far a receiver's estimate lies from the load after n packets: ADPM, static marking of as many bits as
//! UNO has, and random marking.
//!
//! ```text
//! ADPM:      n packets in a row at a load that does not change                    bmcc II-B
//! static:    the same with 3 of the 16 bits                                       bmcc V-C
//! random:    each packet marked with probability f / u; f^ = u marked / n
//! ```
//!
//! Random marking's mean square error is f (u - f) / n: over f even between eta_0 and u its root is 0.51 /
//! sqrt(n).

use brakelight_core::ecn::Ecn;
use brakelight_core::random::Random;
use brakelight_estimates::adpm::{Estimate, Layout};

/// How many loads are drawn for each number of packets.
const LOADS: u32 = 200;
/// bmcc table I, II-D
const LAYOUT: Layout = Layout { eta_0: 0.15, eta: 0.75, u: 1.2, bits: 16 };
/// bmcc V-C: the resolution of UNO.
const COARSE: Layout = Layout { bits: 3, ..LAYOUT };

/// Root mean square errors after `n` packets, over loads drawn evenly from where loads are told apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// How many packets came.
    pub n: u32,
    /// ADPM's.
    pub adaptive: f64,
    /// Static marking's, with three bits.
    pub fixed: f64,
    /// Random marking's.
    pub random: f64,
}

fn after(layout: Layout, load: f64, start: u16, n: u32) -> f64 {
    let mut estimate = Estimate::new(layout);
    for hash16 in (0..n).map(|packet| start.wrapping_add(packet as u16)) {
        let marked = load > layout.hash(hash16);
        estimate.on_packet(if marked { Ecn::Ect1 } else { Ecn::Ect0 }, hash16, true);
    }
    estimate.value()
}

/// Returns the errors after `n` packets; a function of `n` and `seed`.
pub fn errors(n: u32, seed: u64) -> Errors {
    let mut random = Random::stream(seed, "adpm");
    let mut squares = [0.0_f64; 3];
    for _ in 0..LOADS {
        let load = LAYOUT.eta_0 + (LAYOUT.u - LAYOUT.eta_0) * random.uniform();
        let start = random.bits() as u16;
        let marked = (0..n).filter(|_| random.chance(load / LAYOUT.u)).count();
        let estimates = [
            after(LAYOUT, load, start, n),
            after(COARSE, load, start, n),
            LAYOUT.u * marked as f64 / f64::from(n),
        ];
        for (square, estimate) in squares.iter_mut().zip(estimates) {
            *square += (estimate - load) * (estimate - load);
        }
    }
    let [adaptive, fixed, random] = squares.map(|square| libm::sqrt(square / f64::from(LOADS)));
    Errors { n, adaptive, fixed, random }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// f (u - f) over f even in (0.15, 1.2): 1.2 * 0.675 - (0.675^2 + 1.05^2 / 12) = 0.2625; its root
    /// is 0.512.
    #[test]
    fn random_marking_errs_by_its_variance() {
        for n in [64, 1024] {
            let error = errors(n, 1).random * f64::from(n).sqrt();
            assert!((error / 0.512 - 1.0).abs() < 0.12, "n = {n}: {error}");
        }
    }

    #[test]
    fn sixteen_times_the_packets_leave_a_sixteenth_of_the_error() {
        let ratio = errors(256, 1).adaptive / errors(4096, 1).adaptive;
        assert!((12.0..21.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn three_bits_stay_as_coarse_however_many_packets_come() {
        assert!((errors(64, 1).fixed / errors(4096, 1).fixed - 1.0).abs() < 0.2);
    }
}
