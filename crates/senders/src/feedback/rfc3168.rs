//! The ordinary TCP receiver: delayed ACKs (RFC 5681 section 4.2), and CE echoed until the sender says CWR
//! (RFC 3168 section 6.1.3). It is what Cubic and NewReno meet when they use ECN, and what ABC meets behind a
//! proxy.
//!
//! ```text
//! packet with CWR:   stop echoing                                                        rfc3168 6.1.3
//! packet with CE:    echo ECE on every ACK from now on                                   rfc3168 6.1.3
//! every m-th packet: an ACK                                                              rfc5681 4.2
//! ```
//!
//! A packet may carry both: CWR is about the marks before it, so it comes first (open-questions#X-13; Linux
//! 6.12 tcp_input.c does so too: tcp_ack clears the echo before tcp_event_data_recv sets it). Where the
//! sender sets CWR on every packet, each CE is echoed on exactly one ACK if every packet is acknowledged by
//! itself; with m = 2 a CE packet followed by another before the ACK goes unechoed.
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | m | `Receiver::ack_every` | packets | 2 | rfc5681 4.2 |

use brakelight_core::controller::ReceiverReport;
use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::feedback::{AckAction, Arrival, Echo, Feedback, Receiver};
use brakelight_core::time::Time;

parameters! {
    /// Settings: there are none.
    pub struct Config {}
}

/// A receiver that latches CE.
#[derive(Clone, Debug)]
pub struct Rfc3168 {
    encoding: Encoding,
    ack_every: u32,
    /// Packets not yet acknowledged.
    pending: u32,
    /// Whether ECE is being echoed.
    echoing: bool,
    /// The last field other than CE: what an ACK without ECE stands for.
    unmarked: Ecn,
}

impl Rfc3168 {
    /// Returns a receiver at the start of its connection.
    pub fn new(_config: Config, receiver: &Receiver) -> Self {
        Rfc3168 {
            encoding: receiver.encoding,
            ack_every: receiver.ack_every.max(1),
            pending: 0,
            echoing: false,
            unmarked: receiver.encoding.sent(),
        }
    }
}

impl Feedback for Rfc3168 {
    #[inline]
    fn on_packet(&mut self, arrival: &Arrival) -> AckAction {
        // rfc3168 6.1.3
        if arrival.cwr {
            self.echoing = false;
        }
        match arrival.ecn {
            Ecn::Ce => self.echoing = true,
            // Behind the proxy an ACK without ECE stands for an accelerate, whatever arrived: the flag has
            // two values.
            _ if self.encoding == Encoding::AbcProxied => {}
            other => self.unmarked = other,
        }
        self.pending += 1;
        if arrival.urgent || self.pending >= self.ack_every { AckAction::Now } else { AckAction::Delay }
    }

    #[inline]
    fn on_ack_sent(&mut self, _now: Time, _flush: bool) -> Echo {
        self.pending = 0;
        let state = self.encoding.mark(if self.echoing { Ecn::Ce } else { self.unmarked });
        Echo { state, totals: None, report: ReceiverReport::None, receive_times: false }
    }
}

#[cfg(test)]
mod tests {
    use brakelight_core::ecn::Mark;
    use brakelight_core::units::Bytes;

    use super::*;
    use crate::feedback::arrivals::arrival;

    fn receiver(encoding: Encoding, ack_every: u32) -> Rfc3168 {
        Rfc3168::new(Config::default(), &Receiver { encoding, ack_every, mss: Bytes(1000) })
    }

    fn echo(receiver: &mut Rfc3168, ecn: Ecn, cwr: bool) -> Mark {
        assert_eq!(receiver.on_packet(&Arrival { cwr, ..arrival(ecn) }), AckAction::Now);
        receiver.on_ack_sent(Time::ZERO, false).state
    }

    #[test]
    fn echoes_ce_on_every_ack_until_cwr_arrives() {
        let mut receiver = receiver(Encoding::Classic, 1);
        assert_eq!(echo(&mut receiver, Ecn::Ect0, false), Mark::None);
        assert_eq!(echo(&mut receiver, Ecn::Ce, false), Mark::Ce);
        assert_eq!(echo(&mut receiver, Ecn::Ect0, false), Mark::Ce);
        assert_eq!(echo(&mut receiver, Ecn::Ect0, true), Mark::None);
        assert_eq!(echo(&mut receiver, Ecn::Ce, true), Mark::Ce, "CWR is about the marks before it");
        assert_eq!(echo(&mut receiver, Ecn::Ect0, true), Mark::None);
    }

    /// HN-U3: with CWR on every packet and an ACK for each, every brake is echoed exactly once.
    #[test]
    fn echoes_each_brake_once_when_every_packet_carries_cwr() {
        let mut receiver = receiver(Encoding::AbcProxied, 1);
        for index in 0..100_u32 {
            let braked = index * index % 7 < 3;
            let ecn = if braked { Ecn::Ce } else { Ecn::Ect1 };
            assert_eq!(echo(&mut receiver, ecn, true), if braked { Mark::Brake } else { Mark::Accelerate });
        }
    }

    /// A receiver that knows RFC 3168 and nothing more cannot tell that its marks were bleached.
    #[test]
    fn an_ack_without_ece_is_an_accelerate_behind_the_proxy_even_for_a_bleached_packet() {
        let mut receiver = receiver(Encoding::AbcProxied, 1);
        assert_eq!(echo(&mut receiver, Ecn::NotEct, true), Mark::Accelerate);
        assert_eq!(echo(&mut receiver, Ecn::Ce, true), Mark::Brake);
        assert_eq!(echo(&mut receiver, Ecn::NotEct, true), Mark::Accelerate);
    }

    /// open-questions#X-13: with two packets per ACK a brake in front is overwritten, and one behind speaks
    /// for both.
    #[test]
    fn two_packets_per_ack_miscount_brakes() {
        let mut receiver = receiver(Encoding::AbcProxied, 2);
        let mut pair = |first, second| {
            assert_eq!(receiver.on_packet(&Arrival { cwr: true, ..arrival(first) }), AckAction::Delay);
            assert_eq!(receiver.on_packet(&Arrival { cwr: true, ..arrival(second) }), AckAction::Now);
            receiver.on_ack_sent(Time::ZERO, false).state
        };
        assert_eq!(pair(Ecn::Ce, Ecn::Ect1), Mark::Accelerate);
        assert_eq!(pair(Ecn::Ect1, Ecn::Ce), Mark::Brake);
    }
}
