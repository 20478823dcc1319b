//! The router of MLCP, the Multi-Level feedback Congestion control Protocol (qazi08): VCP's load factor in
//! four bits.
//!
//! ```text
//! code = one of sixteen levels of f                          see `load_factor::Levels`
//! a packet that leaves carries the larger of its own code and the router's
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | t_p | `interval` | s | 200 ms | bmcc table I |
//! | t_q | `sample` | s | 10 ms | bmcc II-A |
//! | a | `weight` | 1 | 0.875 | bmcc II-A |
//! | kappa_1 | `queue_weight` | 1 | 0.5 | bmcc table I |
//! | gamma | `gamma` | 1 | 0.98 | as VCP's |
//! | eta_0, eta, u | `eta_0`, `eta`, `u` | 1 | 0.15, 0.8, 1.2 | D1 |
//!
//! # Deviations
//!
//! - D1. The paper gives the number of bits and the three modes; its table of levels was not at hand. The
//!   lowest level and the last one are those of the same authors' BMCC, low load ends where VCP's does, and
//!   levels are equal steps in between.
//! - D2. The four bits travel in a header of their own, as the paper has it too: there is no room in the IP
//!   header.
//! - D3. ACKs wait among data; `acks_first` serves them first, as the simulator of VCP's authors does.

use brakelight_core::ecn::Mark;
use brakelight_core::packet::Packet;
use brakelight_core::parameters::ParameterError;
use brakelight_core::queue::Place;
use brakelight_estimates::load_factor::Levels;

use super::measured::{Measured, measured_parameters, measured_queue, ordered, raise};

measured_parameters! {
    /// The MLCP router's settings.
    pub struct Config {
        check in_order;
        interval from "bmcc table I";
        gamma from "as VCP's";
        /// Load factor below which loads are not told apart.
        eta_0: f64 = 0.15, in 0.001..=0.9, from "bmcc table I";
        /// Load factor from which load is medium.
        eta: f64 = 0.8, in 0.01..=0.99, from "xia05 3.1";
        /// Load factor from which loads are not told apart.
        u: f64 = 1.2, in 1.01..=3.0, from "bmcc II-D";
    }
}

fn in_order(config: &Config) -> Result<(), ParameterError> {
    ordered(config.eta_0, config.eta)
}

/// MLCP's router.
#[derive(Clone, Debug)]
pub struct Mlcp<P> {
    measured: Measured<P>,
    levels: Levels,
}

impl<P: Packet> Mlcp<P> {
    /// Returns an empty queue.
    pub fn new(config: &Config, place: &Place) -> Self {
        Mlcp {
            measured: config.measured(place),
            levels: Levels { eta_0: config.eta_0, eta: config.eta, u: config.u },
        }
    }

    fn stamp(&mut self, packet: &mut P) -> Mark {
        raise(packet, self.levels.encode(self.measured.load()));
        Mark::None
    }
}

measured_queue!(Mlcp);

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use brakelight_core::packet::Header;
    use brakelight_core::parameters::Parameters;
    use brakelight_core::units::Rate;
    use brakelight_testkit::packet::Sample;

    use super::*;
    use crate::scripted::{Bench, ms, place};

    #[test]
    fn a_packet_carries_the_level_of_the_load_and_keeps_a_higher_one() {
        // 200 packets of 1500 bytes are what the link carries in an interval.
        for (packets, expected) in [(20, 0), (40, 1), (130, 7), (170, 10), (190, 11), (206, 12), (300, 15)] {
            let config = Config::from_options([("gamma", "1")]).unwrap();
            let mut bench = Bench::new(Mlcp::new(&config, &place(250)), Rate::from_mbps(12));
            for _ in 0..packets {
                bench.arrive_as(ms(0), Sample::new(0, 1500));
                bench.leave(ms(0));
            }
            for (before, after) in [(0, expected), (9, expected.max(9)), (15, 15)] {
                let header = Header::Load { code: before };
                bench.arrive_as(ms(200), Sample { header, ..Sample::new(0, 1500) });
                let left = bench.leave(ms(200)).unwrap().packet;
                assert_eq!(left.header, Header::Load { code: after }, "{packets} packets");
            }
        }
    }

    #[test]
    fn levels_in_the_wrong_order_are_refused() {
        let error = Config::from_options([("eta_0", "0.8"), ("eta", "0.5")]).unwrap_err();
        assert_eq!(error.to_string(), "eta_0 = `0.8` is out of range: valid is 0.001 to below eta = 0.5");
    }
}
