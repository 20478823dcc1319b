//! QUIC's ordinary receiver, which says besides when each packet arrived, by its own clock: what a sender
//! needs to measure one-way delays.
//!
//! ```text
//! every m-th packet, and what the host calls urgent:   an ACK                         rfc9000 13.2.1, 13.2.2
//! on every ACK:   ECN counters                                                        rfc9000 19.3.2
//!                 the arrival time of every packet since the last ACK, in the order of arrival      quicdc 3
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | m | `Receiver::ack_every` | packets | 2 | rfc9000 13.2.2 |
//! | max_receive_timestamps_per_ack | `frame_times` | packets | 64 | receive-ts 6: no default |
//! | receive_timestamps_exponent | `frame_exponent` | 1 | 0 | receive-ts 6 |
//!
//! # Deviations
//!
//! - D1. Times are exact to the nanosecond. With `frame` they travel in ACK_RECEIVE_TIMESTAMPS frames
//!   (`feedback::receive_timestamps`): in units of 2^`frame_exponent` microseconds, and no more than
//!   `frame_times` in one.
//! - D2. An arrival is reported once: what a lost ACK said stays unsaid. The draft lets a receiver repeat
//!   itself.

use brakelight_core::controller::ReceiverReport;
use brakelight_core::ecn::{Encoding, Mark};
use brakelight_core::feedback::{
    AckAction, Arrival, Echo, Feedback, MarkTotals, ReceiveTimestamps, Receiver,
};
use brakelight_core::time::Time;

parameters! {
    /// How times travel.
    pub struct Config {
        /// Whether times travel in ACK_RECEIVE_TIMESTAMPS frames, or exactly as they are.
        frame: bool = false, in .., from "receive-ts 4";
        /// The most timestamps in one frame (max_receive_timestamps_per_ack).
        frame_times: u32 = 64, in 1..=1024, from "receive-ts 6: no default";
        /// Times are told in units of two to this power, in microseconds (receive_timestamps_exponent).
        frame_exponent: u32 = 0, in 0..=20, from "receive-ts 6";
    }
}

/// A receiver that reports arrival times.
#[derive(Clone, Debug)]
pub struct ReceiveTimes {
    encoding: Encoding,
    ack_every: u32,
    /// Packets not yet acknowledged.
    pending: u32,
    totals: MarkTotals,
    frame: Option<ReceiveTimestamps>,
}

impl ReceiveTimes {
    /// Returns a receiver at the start of its connection.
    pub fn new(config: Config, receiver: &Receiver) -> Self {
        ReceiveTimes {
            encoding: receiver.encoding,
            ack_every: receiver.ack_every.max(1),
            pending: 0,
            totals: MarkTotals::default(),
            frame: config.frame.then(|| ReceiveTimestamps {
                most: config.frame_times.into(),
                exponent: config.frame_exponent as u8,
            }),
        }
    }
}

impl Feedback for ReceiveTimes {
    fn on_packet(&mut self, arrival: &Arrival) -> AckAction {
        self.totals.count(self.encoding.mark(arrival.ecn), arrival.size);
        self.pending += 1;
        // rfc9000 13.2.2
        if arrival.urgent || self.pending >= self.ack_every { AckAction::Now } else { AckAction::Delay }
    }

    fn on_ack_sent(&mut self, _now: Time, _flush: bool) -> Echo {
        self.pending = 0;
        Echo {
            state: Mark::None,
            totals: Some(self.totals),
            report: ReceiverReport::None,
            receive_times: true,
        }
    }

    fn receive_timestamps(&self) -> Option<ReceiveTimestamps> {
        self.frame
    }
}

#[cfg(test)]
mod tests {
    use brakelight_core::ecn::Ecn;
    use brakelight_core::units::Bytes;

    use super::*;
    use crate::feedback::arrivals::arrival;

    fn receiver(encoding: Encoding) -> ReceiveTimes {
        ReceiveTimes::new(Config::default(), &Receiver { encoding, ack_every: 2, mss: Bytes(1000) })
    }

    #[test]
    fn every_second_packet_is_acknowledged_and_an_urgent_one_at_once() {
        let mut receiver = receiver(Encoding::None);
        let mut actions = [false, false, true].map(|urgent| {
            let action = receiver.on_packet(&Arrival { urgent, ..arrival(Ecn::NotEct) });
            if action == AckAction::Now {
                assert!(receiver.on_ack_sent(Time::ZERO, false).receive_times);
            }
            action
        });
        actions.reverse();
        assert_eq!(actions, [AckAction::Now, AckAction::Now, AckAction::Delay]);
    }

    #[test]
    fn marks_come_back_as_exact_counters() {
        let mut receiver = receiver(Encoding::Abc);
        for ecn in [Ecn::Ect1, Ecn::Ect0, Ecn::Ce, Ecn::Ect1] {
            receiver.on_packet(&arrival(ecn));
        }
        let totals = receiver.on_ack_sent(Time::ZERO, false).totals.expect("counters");
        assert_eq!(totals, MarkTotals { packets: [2, 1, 1], bytes: [2000, 1000, 1000] });
    }
}
