//! Accurate ECN (RFC 9768): delayed ACKs that carry exact counters of the marks that arrived.
//!
//! ```text
//! every packet:                                count it, and its bytes, under its mark     rfc9768 3.2
//! CE after a packet without:                   ACK at once                                 rfc9768 3.2.2.5.1
//! n CE packets since the last ACK:             ACK at once                                 rfc9768 3.2.2.5.1
//! m packets since the last ACK:                ACK                                         rfc5681 4.2
//! ```
//!
//! The counters run from the start of the connection, so a lost ACK costs nothing but time.
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | n | `increment` | packets | 2 | rfc9768 3.2.2.5.1 |
//! | m | `Receiver::ack_every` | packets | 2 | rfc5681 4.2 |
//!
//! # Deviations
//!
//! - D1. The ACE field counts packets modulo 8, and the option carries bytes modulo 2^24; here neither wraps:
//!   the sender's way of undoing it (rfc9768 A.2) is for paths that lose more ACKs than an experiment does.
//! - D2. Every ACK carries the option.
//! - D3. Marks other than CE are counted too, for encodings that have them.

use brakelight_core::controller::ReceiverReport;
use brakelight_core::ecn::{Encoding, Mark};
use brakelight_core::feedback::{AckAction, Arrival, Echo, Feedback, MarkTotals, Receiver};
use brakelight_core::time::Time;

parameters! {
    /// The receiver's settings.
    pub struct Config {
        /// CE packets since the last ACK that make it send one at once (n).
        increment: u32 = 2, in 1..=6, from "rfc9768 3.2.2.5.1";
    }
}

/// A receiver of Accurate ECN, which counts packets by their codepoints.
#[derive(Clone, Debug)]
pub struct AccEcn {
    increment: u32,
    encoding: Encoding,
    ack_every: u32,
    /// Packets not yet acknowledged.
    pending: u32,
    /// Those among them that carried CE.
    pending_ce: u32,
    /// The newest packet's mark.
    state: Mark,
    totals: MarkTotals,
}

impl AccEcn {
    /// Returns a receiver at the start of its connection.
    pub fn new(config: Config, receiver: &Receiver) -> Self {
        AccEcn {
            increment: config.increment,
            encoding: receiver.encoding,
            ack_every: receiver.ack_every.max(1),
            pending: 0,
            pending_ce: 0,
            state: Mark::None,
            totals: MarkTotals::default(),
        }
    }
}

impl Feedback for AccEcn {
    fn on_packet(&mut self, arrival: &Arrival) -> AckAction {
        let mark = self.encoding.mark(arrival.ecn);
        self.totals.count(mark, arrival.size);
        self.pending += 1;
        // rfc9768 3.2.2.5.1
        let marked = mark == Mark::Ce;
        let changed = marked && self.state != Mark::Ce;
        self.pending_ce += u32::from(marked);
        self.state = mark;
        let due =
            arrival.urgent || changed || self.pending_ce >= self.increment || self.pending >= self.ack_every;
        if due { AckAction::Now } else { AckAction::Delay }
    }

    fn on_ack_sent(&mut self, _now: Time, _flush: bool) -> Echo {
        self.pending = 0;
        self.pending_ce = 0;
        Echo {
            state: Mark::None,
            totals: Some(self.totals),
            report: ReceiverReport::None,
            receive_times: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use brakelight_core::ecn::Ecn;
    use brakelight_core::parameters::Parameters;
    use brakelight_core::units::Bytes;

    use super::*;
    use crate::feedback::arrivals::arrival;

    /// After which packets an ACK leaves, and how many CE packets it reports in all.
    fn acks(options: &[(&str, &str)], ack_every: u32, packets: &[Ecn]) -> Vec<(usize, u32)> {
        let config = Config::from_options(options.iter().copied()).expect("valid options");
        let receiver = Receiver { encoding: Encoding::L4s, ack_every, mss: Bytes(1000) };
        let mut receiver = AccEcn::new(config, &receiver);
        let mut acks = Vec::new();
        for (index, &ecn) in packets.iter().enumerate() {
            if receiver.on_packet(&arrival(ecn)) == AckAction::Now {
                let totals = receiver.on_ack_sent(Time::ZERO, false).totals.expect("counters");
                assert_eq!(totals.bytes[2], 1000 * u64::from(totals.packets[2]));
                acks.push((index, totals.packets[2]));
            }
        }
        acks
    }

    const PLAIN: Ecn = Ecn::Ect1;
    const CE: Ecn = Ecn::Ce;

    #[test]
    fn without_marks_every_second_packet_is_acknowledged() {
        assert_eq!(acks(&[], 2, &[PLAIN; 5]), [(1, 0), (3, 0)]);
    }

    #[test]
    fn the_first_ce_after_a_packet_without_is_reported_at_once() {
        assert_eq!(acks(&[], 8, &[PLAIN, CE, PLAIN, PLAIN, CE]), [(1, 1), (4, 2)]);
    }

    #[test]
    fn a_run_of_ce_is_reported_every_n_packets() {
        assert_eq!(acks(&[], 8, &[CE; 7]), [(0, 1), (2, 3), (4, 5), (6, 7)]);
        assert_eq!(acks(&[("increment", "3")], 8, &[CE; 7]), [(0, 1), (3, 4), (6, 7)]);
    }

    #[test]
    fn a_lost_ack_loses_no_count() {
        let all = acks(&[], 2, &[CE, PLAIN, CE, CE, PLAIN, PLAIN]);
        assert_eq!(all, [(0, 1), (2, 2), (4, 3)], "each says the sum, not the news");
    }
}
