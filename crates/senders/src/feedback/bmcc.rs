//! BMCC's receiver (bmcc II-B, II-E): an estimate of the load factor from the marks of many packets, sent
//! back in a TCP option.
//!
//! ```text
//! f^ = u on 11; h on 10 with h < f^, and on 01 with h > f^            bmcc II-B, `estimates::adpm`
//!
//! an option on the first ACK after f^ changed, the i-th one i ACKs after the one before:      bmcc II-E
//! on ACKs 1, 3, 6, 10, ... since the change
//! ```
//!
//! The option is 16 bits, in 1/65535 of u, rounded up. If f^ changes every n ACKs, about sqrt(2 n) of them
//! carry it.
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | eta_0, eta, u | `eta_0`, `eta`, `u` | 1 | 0.15, 0.75, 1.2 | bmcc table I, II-D; as the router's |
//! | - | `bits` | bits | 16 | as the router's |
//! | - | `forget` | s | 1 s | open-questions#X-52 |
//! | m | `Receiver::ack_every` | packets | 2 | rfc5681 4.2 |
//!
//! # Deviations
//!
//! - D1. f^ starts over at eta_0 after `forget` without a packet: the paper's estimate would last for ever
//!   (open-questions#X-52).
//! - D2. The paper acknowledges every packet. Under delayed ACKs an ACK says what f^ is then, and an option
//!   is at most one packet later than it could be; CE alone is flushed at once, as DCTCP has it.
//! - D3. With `coexist` 11 is an AQM's mark (bmcc VI), which has taken the place of what the packet said of
//!   the load. It is read as f^ >= 1. Were it not, f^ would stand still at whatever it was while every packet
//!   is marked, and if that was low load, the window would triple between two decreases: on 45 Mbit/s beside
//!   NewReno the flow kept the AQM marking and lost 4 % of its packets.

use brakelight_core::controller::ReceiverReport;
use brakelight_core::feedback::{AckAction, Arrival, Echo, Feedback, Receiver};
use brakelight_core::time::{Duration, Time};
use brakelight_estimates::adpm::{Estimate, Layout};

use super::delayed::{self, Delayed};

parameters! {
    /// The receiver's settings.
    pub struct Config {
        /// Load factor below which loads are not told apart.
        eta_0: f64 = 0.15, in 0.001..=0.9, from "bmcc table I";
        /// Load factor from which load is medium.
        eta: f64 = 0.75, in 0.01..=0.99, from "bmcc table I";
        /// Load factor from which load is severe.
        u: f64 = 1.2, in 1.01..=3.0, from "bmcc II-D";
        /// Bits of the packet that make its hash.
        bits: u32 = 16, in 1..=16, from "bmcc II-E";
        /// Whether 11 is the mark of an AQM, and not overload.
        coexist: bool = false, in .., from "bmcc VI";
        /// Silence after which the estimate starts over.
        forget: Duration = Duration::from_secs(1), in Duration::from_millis(1)..=Duration::from_secs(1000), from "not in bmcc: ours";
    }
}

/// A receiver that estimates the load factor.
#[derive(Clone, Debug)]
pub struct Bmcc {
    acks: Delayed,
    layout: Layout,
    estimate: Estimate,
    coexist: bool,
    forget: Duration,
    last_arrival: Time,
    /// f^ as the last option said it.
    said: Option<u16>,
    /// i: ACKs from the last option to the next one.
    spacing: u32,
    /// ACKs since the last option.
    since: u32,
}

impl Bmcc {
    /// Returns a receiver at the start of its connection.
    pub fn new(config: Config, receiver: &Receiver) -> Self {
        let Values { eta_0, eta, u, bits, coexist, forget } = *config;
        let layout = Layout { eta_0, eta, u, bits };
        Bmcc {
            acks: Delayed::new(delayed::Config::default(), receiver),
            layout,
            estimate: Estimate::new(layout),
            coexist,
            forget,
            last_arrival: Time::ZERO,
            said: None,
            spacing: 1,
            since: 0,
        }
    }

    /// The option of the next ACK, if it carries one.
    fn option(&mut self) -> Option<u16> {
        let now = self.layout.to_option(self.estimate.value());
        // bmcc II-E
        self.since += 1;
        if self.said != Some(now) {
            self.spacing = 1;
        } else if self.since < self.spacing {
            return None;
        }
        self.said = Some(now);
        self.spacing += 1;
        self.since = 0;
        Some(now)
    }
}

impl Feedback for Bmcc {
    fn on_packet(&mut self, arrival: &Arrival) -> AckAction {
        if arrival.now.since(self.last_arrival) > self.forget {
            self.estimate.reset();
        }
        self.last_arrival = arrival.now;
        self.estimate.on_packet(arrival.ecn, arrival.hash16, !self.coexist);
        self.acks.on_packet(arrival)
    }

    fn on_ack_sent(&mut self, now: Time, flush: bool) -> Echo {
        let mut echo = self.acks.on_ack_sent(now, flush);
        if let Some(option) = self.option() {
            echo.report = ReceiverReport::LoadFactor(option);
        }
        echo
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use brakelight_core::ecn::{Ecn, Encoding};
    use brakelight_core::parameters::Parameters;
    use brakelight_core::units::Bytes;

    use super::*;
    use crate::feedback::arrivals::arrival;

    fn receiver(options: &[(&str, &str)]) -> Bmcc {
        let config = Config::from_options(options.iter().copied()).unwrap();
        Bmcc::new(config, &Receiver { encoding: Encoding::Bmcc, ack_every: 1, mss: Bytes(1000) })
    }

    /// What the ACK of a packet with this field and hash says of the load.
    fn hear(bmcc: &mut Bmcc, ms: u64, ecn: Ecn, hash16: u16) -> Option<f64> {
        let packet = Arrival { now: Time::from_millis(ms), hash16, ..arrival(ecn) };
        assert_eq!(bmcc.on_packet(&packet), AckAction::Now);
        match bmcc.on_ack_sent(packet.now, false).report {
            ReceiverReport::LoadFactor(option) => Some(bmcc.layout.from_option(option)),
            ReceiverReport::None => None,
            other => panic!("{other:?}"),
        }
    }

    /// B-U5.
    #[test]
    fn options_leave_on_acks_1_3_6_10_after_a_change() {
        let mut bmcc = receiver(&[]);
        let options = |bmcc: &mut Bmcc, acks: u64| -> Vec<u64> {
            // Hash 0 is eta_0: an unmarked packet never changes the estimate below it.
            (1..=acks).filter(|_| hear(bmcc, 1, Ecn::Ect1, 0).is_some()).collect()
        };
        assert_eq!(options(&mut bmcc, 30), [1, 3, 6, 10, 15, 21, 28]);
        assert!((hear(&mut bmcc, 1, Ecn::Ect1, 2).unwrap() - 0.75).abs() < 1e-4);
        // The change was ACK 1.
        assert_eq!(options(&mut bmcc, 9), [2, 5, 9]);
    }

    #[test]
    fn says_the_tighter_bound_at_once_and_overload_from_one_packet() {
        let mut bmcc = receiver(&[]);
        assert!((hear(&mut bmcc, 0, Ecn::Ect0, 5).unwrap() - 0.15).abs() < 1e-4);
        assert!((hear(&mut bmcc, 1, Ecn::Ect1, 2).unwrap() - 0.75).abs() < 1e-4);
        assert!((hear(&mut bmcc, 2, Ecn::Ect1, 3).unwrap() - 1.1).abs() < 1e-4);
        assert!((hear(&mut bmcc, 3, Ecn::Ect0, 1).unwrap() - 1.0).abs() < 1e-4);
        assert_eq!(hear(&mut bmcc, 4, Ecn::Ce, 1), Some(1.2));
    }

    /// bmcc VI.
    #[test]
    fn beside_tcp_ce_says_only_that_the_link_is_full() {
        let mut bmcc = receiver(&[("coexist", "true")]);
        hear(&mut bmcc, 0, Ecn::Ce, 1);
        assert_eq!(bmcc.estimate.value(), 1.0);
        hear(&mut bmcc, 0, Ecn::Ect1, 3);
        hear(&mut bmcc, 0, Ecn::Ce, 1);
        assert!((bmcc.estimate.value() - 1.1).abs() < 1e-12);
    }

    #[test]
    fn silence_makes_the_estimate_start_over() {
        let mut bmcc = receiver(&[]);
        hear(&mut bmcc, 0, Ecn::Ce, 1);
        hear(&mut bmcc, 1000, Ecn::Ect1, 0);
        assert_eq!(bmcc.estimate.value(), 1.2);
        hear(&mut bmcc, 2001, Ecn::Ect1, 0);
        assert_eq!(bmcc.estimate.value(), 0.15);
    }

    /// B-T2's shape: with a change every n ACKs, i options take i (i + 1) / 2 ACKs, so about sqrt(2 n) of n.
    #[test]
    fn the_overhead_falls_with_the_root_of_the_time_between_changes() {
        for n in [50_u32, 200, 800, 3200] {
            let mut bmcc = receiver(&[]);
            let mut options = 0;
            for ack in 0..n * 20 {
                let change = if ack / n % 2 == 0 { (Ecn::Ect1, 2) } else { (Ecn::Ect0, 0) };
                options += u32::from(hear(&mut bmcc, 1, change.0, change.1).is_some());
            }
            let i = (1..).find(|i| (i + 1) * (i + 2) / 2 > n).expect("there is one");
            assert_eq!(options, 20 * i, "n = {n}");
            assert!((f64::from(i) / libm::sqrt(2.0 * f64::from(n)) - 1.0).abs() < 0.15);
        }
    }
}
