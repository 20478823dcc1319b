//! The receiver of schemes with a congestion header of their own: ordinary delayed ACKs that carry back what
//! the headers said.
//!
//! ```text
//! XCP's header:   the feedbacks of all packets that an ACK newly covers, added up         (D1)
//! a rate:         the newest packet's                                                     dukkipati06 3.2
//! a load factor:  the highest of the packets that an ACK newly covers                     (D2)
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | m | `Receiver::ack_every` | packets | 2 | rfc5681 4.2 |
//!
//! # Deviations
//!
//! - D1. katabi02 3.3 copies the header of each packet to its ACK. A delayed ACK would then lose every second
//!   grant, so it carries the sum, which is what the window changes by either way.
//! - D2. The VCP paper acknowledges every packet. Under delayed ACKs the higher of two load factors is the
//!   one that a sender must not miss.

use brakelight_core::controller::ReceiverReport;
use brakelight_core::feedback::{AckAction, Arrival, Echo, Feedback, Receiver};
use brakelight_core::packet::Header;
use brakelight_core::time::Time;

use super::delayed::{self, Delayed};

parameters! {
    /// Settings: there are none.
    pub struct Config {}
}

/// A receiver that returns congestion headers.
#[derive(Clone, Debug)]
pub struct Explicit {
    acks: Delayed,
    /// What the headers of packets not yet acknowledged said.
    said: Header,
}

impl Explicit {
    /// Returns a receiver at the start of its connection.
    pub fn new(_config: Config, receiver: &Receiver) -> Self {
        Explicit { acks: Delayed::new(delayed::Config::default(), receiver), said: Header::None }
    }
}

/// What an ACK for packets that said `earlier` and one that says `newest` carries.
fn merge(earlier: Header, newest: Header) -> Header {
    match (earlier, newest) {
        (Header::Xcp { feedback_bytes: before, .. }, Header::Xcp { cwnd_bytes, rtt_s, feedback_bytes }) => {
            Header::Xcp { cwnd_bytes, rtt_s, feedback_bytes: before + feedback_bytes }
        }
        (Header::Load { code: before }, Header::Load { code }) => Header::Load { code: code.max(before) },
        (_, newest) => newest,
    }
}

impl Feedback for Explicit {
    fn on_packet(&mut self, arrival: &Arrival) -> AckAction {
        self.said = merge(self.said, arrival.header);
        self.acks.on_packet(arrival)
    }

    fn on_ack_sent(&mut self, now: Time, flush: bool) -> Echo {
        let mut echo = self.acks.on_ack_sent(now, flush);
        echo.report = match core::mem::take(&mut self.said) {
            Header::None => ReceiverReport::None,
            said => ReceiverReport::Header(said),
        };
        echo
    }
}

#[cfg(test)]
mod tests {
    use brakelight_core::ecn::{Ecn, Encoding};
    use brakelight_core::units::Bytes;

    use super::*;
    use crate::feedback::arrivals::arrival;

    fn receiver() -> Explicit {
        let receiver = Receiver { encoding: Encoding::Explicit, ack_every: 2, mss: Bytes(1448) };
        Explicit::new(Config::default(), &receiver)
    }

    fn receive(explicit: &mut Explicit, number: u64, header: Header) -> AckAction {
        explicit.on_packet(&Arrival { number, header, ..arrival(Ecn::NotEct) })
    }

    fn report(explicit: &mut Explicit) -> ReceiverReport {
        explicit.on_ack_sent(Time::from_millis(1), false).report
    }

    #[test]
    fn a_delayed_ack_carries_the_sum_of_xcp_s_feedbacks_once() {
        let mut explicit = receiver();
        let header = |feedback_bytes| Header::Xcp { cwnd_bytes: 3e4, rtt_s: 0.1, feedback_bytes };
        assert_eq!(receive(&mut explicit, 0, header(100.0)), AckAction::Delay);
        assert_eq!(receive(&mut explicit, 1, header(-30.0)), AckAction::Now);
        assert_eq!(report(&mut explicit), ReceiverReport::Header(header(70.0)));
        assert_eq!(report(&mut explicit), ReceiverReport::None);
        receive(&mut explicit, 2, header(5.0));
        assert_eq!(report(&mut explicit), ReceiverReport::Header(header(5.0)));
    }

    #[test]
    fn a_delayed_ack_carries_the_highest_load_and_the_newest_rate() {
        let mut explicit = receiver();
        receive(&mut explicit, 0, Header::Load { code: 3 });
        receive(&mut explicit, 1, Header::Load { code: 1 });
        assert_eq!(report(&mut explicit), ReceiverReport::Header(Header::Load { code: 3 }));
        let rate = |bps| Header::Rate { bps, rtt_s: 0.1 };
        receive(&mut explicit, 2, rate(1e6));
        receive(&mut explicit, 3, rate(2e6));
        assert_eq!(report(&mut explicit), ReceiverReport::Header(rate(2e6)));
    }
}
