//! The router of VCP, the Variable-structure congestion Control Protocol (xia05): the load factor in two
//! bits.
//!
//! ```text
//! code = 1  low        f < 0.8                                xia05 3.1
//!        2  high       0.8 <= f < 1
//!        3  overload   f >= 1
//! a packet that leaves carries the larger of its own code and the router's
//! ```
//!
//! f is computed in `brakelight_estimates::load_factor`, every t_p.
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | t_rho | `interval` | s | 200 ms | xia05 3.1 |
//! | t_q | `sample` | s | 10 ms | bmcc II-A, "similar to" xia05 |
//! | a | `weight` | 1 | 0.875 | bmcc II-A |
//! | kappa_q | `queue_weight` | 1 | 0.5 | xia05 3.1 |
//! | gamma | `gamma` | 1 | 0.98 | the ABC authors' VCP router (D2) |
//! | - | `low_load` | 1 | 0.8 | xia05 3.1 |
//!
//! # Deviations
//!
//! - D1. The two bits travel in a header of their own, not in the ECN field, so that VCP's codes cannot be
//!   mistaken for ECN's.
//! - D2. The target utilisation is "close to 1" in the paper. The authors' simulator takes 0.975 at 100
//!   Mbit/s and 0.96 at 10; the router of the ABC authors takes 0.98 at any rate.
//! - D3. ACKs wait among data; `acks_first` is the authors' simulator, which serves them first.
//! - D4. The ABC authors' router announces overload in the first half of an interval only, and drains a token
//!   count besides. That is theirs, not VCP's, and is left out.

use brakelight_core::ecn::Mark;
use brakelight_core::packet::Packet;
use brakelight_core::queue::Place;
use brakelight_estimates::load_factor::vcp_code as code;

use super::measured::{Measured, measured_parameters, measured_queue, raise};

measured_parameters! {
    /// The VCP router's settings.
    pub struct Config {
        interval from "xia05 3.1";
        gamma from "abc authors' vcp_packet_queue.cc";
        /// Load factor from which load is high.
        low_load: f64 = 0.8, in 0.1..=0.99, from "xia05 3.1";
    }
}

/// VCP's router.
#[derive(Clone, Debug)]
pub struct Vcp<P> {
    measured: Measured<P>,
    low_load: f64,
}

impl<P: Packet> Vcp<P> {
    /// Returns an empty queue.
    pub fn new(config: &Config, place: &Place) -> Self {
        Vcp { measured: config.measured(place), low_load: config.low_load }
    }

    fn stamp(&mut self, packet: &mut P) -> Mark {
        // xia05 3.1
        let load = self.measured.load();
        let code = if load < self.low_load {
            code::LOW
        } else if load < 1.0 {
            code::HIGH
        } else {
            code::OVERLOAD
        };
        raise(packet, code);
        Mark::None
    }
}

measured_queue!(Vcp);

#[cfg(test)]
mod tests {
    use brakelight_core::packet::Header;
    use brakelight_core::parameters::Parameters;
    use brakelight_core::queue::Queue;
    use brakelight_core::units::Rate;
    use brakelight_testkit::packet::Sample;

    use super::*;
    use crate::scripted::{Bench, ms, place};

    /// The code on a packet that carried `before` after an interval in which `percent` of the link's capacity
    /// arrived.
    fn code_after(percent: u64, before: u8) -> u8 {
        let config = Config::from_options([("gamma", "1")]).unwrap();
        let mut bench = Bench::new(Vcp::new(&config, &place(250)), Rate::from_mbps(12));
        // 200 packets of 1500 bytes are 100 %.
        for packet in 0..2 * percent {
            bench.arrive_as(ms(packet / 2), Sample::new(0, 1500));
            bench.leave(ms(packet / 2));
        }
        bench.arrive_as(ms(201), Sample { header: Header::Load { code: before }, ..Sample::new(0, 1500) });
        match bench.leave(ms(201)).unwrap().packet.header {
            Header::Load { code } => code,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn two_bits_say_low_high_and_overload() {
        assert_eq!([0, 79, 80, 99, 100, 120].map(|percent| code_after(percent, 1)), [1, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn a_router_never_lowers_what_another_said() {
        assert_eq!([0, 90, 120].map(|percent| code_after(percent, 2)), [2, 2, 3]);
        assert_eq!(code_after(0, 3), 3);
    }

    #[test]
    fn packets_of_other_flows_are_left_alone() {
        let mut bench = Bench::new(Vcp::new(&Config::default(), &place(250)), Rate::from_mbps(12));
        bench.arrive_as(ms(300), Sample::new(0, 1500));
        assert_eq!(bench.leave(ms(300)).unwrap().packet.header, Header::None);
    }

    #[test]
    fn acks_leave_first_where_they_shall_and_share_the_buffer() {
        let packet = |id, ack| Sample { ack, ..Sample::new(id, 1500) };
        for (acks_first, expected) in [("true", [2, 0, 1]), ("false", [0, 1, 2])] {
            let config = Config::from_options([("acks_first", acks_first)]).unwrap();
            let mut bench = Bench::new(Vcp::new(&config, &place(3)), Rate::from_mbps(12));
            for (id, ack) in [(0, false), (1, false), (2, true)] {
                bench.arrive_as(ms(0), packet(id, ack));
            }
            assert_eq!(bench.queue.backlog().packets, 3);
            bench.arrive_as(ms(0), packet(3, true));
            assert_eq!(bench.queue.backlog().packets, 3, "the buffer is full");
            let left = expected.map(|_| bench.leave(ms(1)).unwrap().packet.id);
            assert_eq!(left, expected);
        }
    }
}
