//! A receiver that lies: it acknowledges packets that were lost, and conceals marks (RFC 9743 section 7.6).
//!
//! ```text
//! a gap below what arrives:  acknowledge what is missing, with probability L, once for each gap
//! packet with CE:            echo what an unmarked packet would
//! every m-th packet:         an ACK                                                      rfc5681 4.2
//! ```
//!
//! The first is the optimistic acknowledgement of savage99 section 4.3, as far as it stays within what was
//! sent: the sender takes a loss for a delivery, and has no reason to slow down. The data are lost for good.
//! What a receiver gains by it is a share of the link that others lose. With L = 1 a sender that reacts to
//! losses alone would grow without end, so it is 0.9 at most.
//!
//! The other attacks of savage99 need no receiver of their own. Hosts count bytes, so an ACK cannot be
//! divided below a packet: `ack_every = 1` is all of it. ACKs that come twice are made by the path element
//! `duplicate` on the way back.
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | L | `losses` | share | 0.5 | chosen here: every second gap |
//! | - | `marks` | - | true | rfc3540 1: receivers that conceal CE |
//! | m | `Receiver::ack_every` | packets | 2 | rfc5681 4.2 |

use brakelight_core::controller::ReceiverReport;
use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::feedback::{AckAction, Arrival, Echo, Feedback, MarkTotals, Receiver};
use brakelight_core::time::Time;

parameters! {
    /// What it lies about.
    pub struct Config {
        /// Share of the gaps that it acknowledges though nothing arrived.
        losses: f64 = 0.5, in 0.0..=0.9, from "a choice";
        /// Whether it conceals CE marks.
        marks: bool = true, in .., from "rfc3540 1";
    }
}

/// A receiver that acknowledges what was lost, and conceals marks.
#[derive(Clone, Debug)]
pub struct Lying {
    config: Config,
    encoding: Encoding,
    ack_every: u32,
    /// Packets not yet acknowledged.
    pending: u32,
    /// The last ECN field, as it is told.
    told: Ecn,
    totals: MarkTotals,
}

impl Lying {
    /// Returns a receiver at the start of its connection.
    pub fn new(config: Config, receiver: &Receiver) -> Self {
        Lying {
            config,
            encoding: receiver.encoding,
            ack_every: receiver.ack_every.max(1),
            pending: 0,
            told: receiver.encoding.sent(),
            totals: MarkTotals::default(),
        }
    }
}

impl Feedback for Lying {
    fn on_packet(&mut self, arrival: &Arrival) -> AckAction {
        self.told = match arrival.ecn {
            Ecn::Ce if self.config.marks => self.encoding.sent(),
            other => other,
        };
        self.totals.count(self.encoding.mark(self.told), arrival.size);
        self.pending += 1;
        if arrival.urgent || self.pending >= self.ack_every { AckAction::Now } else { AckAction::Delay }
    }

    fn on_ack_sent(&mut self, _now: Time, _flush: bool) -> Echo {
        self.pending = 0;
        let state = self.encoding.mark(self.told);
        Echo { state, totals: Some(self.totals), report: ReceiverReport::None, receive_times: false }
    }

    fn claims(&self, missing: u64) -> bool {
        // A number's bits, mixed by splitmix64, so that neighbors differ: the same packet, the same lie.
        let mut bits = missing.wrapping_add(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        ((bits >> 11) as f64) < self.config.losses * (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use brakelight_core::ecn::Mark;
    use brakelight_core::parameters::Parameters;
    use brakelight_core::units::Bytes;

    use super::*;
    use crate::feedback::arrivals::arrival;

    fn receiver(options: &[(&str, &str)]) -> Lying {
        let config = Config::from_options(options.iter().copied()).expect("valid options");
        Lying::new(config, &Receiver { encoding: Encoding::Classic, ack_every: 1, mss: Bytes(1000) })
    }

    #[test]
    fn a_mark_is_concealed_in_the_echo_and_in_the_counters() {
        for (options, told, count) in [(&[][..], Mark::None, 0), (&[("marks", "false")], Mark::Ce, 1)] {
            let mut receiver = receiver(options);
            assert_eq!(receiver.on_packet(&arrival(Ecn::Ce)), AckAction::Now);
            let echo = receiver.on_ack_sent(Time::ZERO, false);
            assert_eq!((echo.state, echo.totals.unwrap().packets[2]), (told, count));
        }
    }

    #[test]
    fn it_claims_its_share_of_what_is_missing_and_the_same_again() {
        for (losses, share) in [("0", 0.0), ("0.5", 0.5), ("0.9", 0.9)] {
            let receiver = receiver(&[("losses", losses)]);
            let claimed = (0..10_000).filter(|number| receiver.claims(*number)).count() as f64 / 1e4;
            // Four standard deviations of 10,000 draws at a half.
            assert!((claimed - share).abs() <= 0.02, "{claimed} of {share}");
            assert!((0..100).all(|number| receiver.claims(number) == receiver.claims(number)));
        }
        assert!(Config::from_options([("losses", "1")].iter().copied()).is_err());
    }
}
