//! Delayed ACKs with the mark echoed: an ACK for every m packets (RFC 5681 section 4.2), and, where marks
//! matter, the state machine of DCTCP that ABC borrows (abc20 section 6; RFC 8257 section 3.2).
//!
//! ```text
//! packet with the mark of the batch:   count it; the m-th sends an ACK
//! packet with another mark:            flush the batch with its mark, start a new one  (open-questions#X-11)
//!                                      and acknowledge it at once, where asked for     (rfc8257 3.2)
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | m | `Receiver::ack_every` | packets | 2 | abc20 section 6 |
//! | - | `echo` | choice | state (prototype: exact) | abc20 section 4.2 |
//! | - | `on_change` | choice | flush | open-questions#X-11 |
//!
//! Deviations:
//! D1 three states besides "no mark", not two: CE is a state of its own, so that the sender can attribute
//!    bytes (open-questions#X-10).
//! D2 packets count towards m whatever their size; RFC 5681 and Linux 6.12 tcp_input.c, __tcp_ack_snd_check,
//!    count full-sized ones.
//! D3 the ACK of a change speaks for the batch before it. RFC 8257 and the ABC paper send one with the new
//! state: that
//!    is `on_change=ack`, which sends both, as Linux 6.12 tcp_dctcp.h, dctcp_ece_ack_update, does, since
//!    4.18.

use brakelight_core::controller::ReceiverReport;
use brakelight_core::ecn::{Encoding, Mark};
use brakelight_core::feedback::{AckAction, Arrival, Echo, Feedback, MarkTotals, Receiver};
use brakelight_core::time::Time;

use crate::controller::abc::Variant;

choices! {
    /// How marks travel back.
    pub enum EchoMode {
        /// One flag per ACK, and an ACK at every change of state: ABC's NS and ECE flags.
        State = "state",
        /// Exact counters on every ACK: Accurate ECN, QUIC. No ACK is forced by a change.
        Exact = "exact",
    }
}

choices! {
    /// What a change of mark sends.
    pub enum OnChange {
        /// The batch before it.
        Flush = "flush",
        /// The batch before it, and the packet that changed.
        Ack = "ack",
    }
}

parameters! {
    /// The receiver's settings.
    pub struct Config {
        /// Whose ABC it is: the prototype echoes exactly.
        variant: Variant = Variant::Paper, in .., from "abc20";
        /// How marks travel back: state in the paper, exact in the prototype.
        echo: Option<EchoMode> = None, in .., from "abc20 4.2";
        /// What a change of mark sends.
        on_change: OnChange = OnChange::Flush, in .., from "rfc8257 3.2";
        /// Whether the sender is told when each packet arrived, as `receive_times` does: what QUIC-DC needs
        /// as ABC's other window.
        receive_times: bool = false, in .., from "not in abc20";
    }
}

/// A receiver that acknowledges every m packets and echoes marks.
#[derive(Clone, Debug)]
pub struct Delayed {
    exact: bool,
    on_change: OnChange,
    receive_times: bool,
    encoding: Encoding,
    ack_every: u32,
    /// Packets not yet acknowledged.
    pending: u32,
    /// The mark of those packets.
    state: Mark,
    /// The mark of the batch before, while it is being flushed.
    flushed: Mark,
    totals: MarkTotals,
    /// Counters before the packet that forced a flush.
    flushed_totals: MarkTotals,
}

impl Delayed {
    /// Returns a receiver at the start of its connection.
    pub fn new(config: Config, receiver: &Receiver) -> Self {
        let by_variant = match config.variant {
            Variant::Paper | Variant::Adaptive => EchoMode::State,
            Variant::Prototype => EchoMode::Exact,
        };
        Delayed {
            exact: config.echo.unwrap_or(by_variant) == EchoMode::Exact,
            on_change: config.on_change,
            receive_times: config.receive_times,
            encoding: receiver.encoding,
            ack_every: receiver.ack_every.max(1),
            pending: 0,
            state: receiver.encoding.mark(receiver.encoding.sent()),
            flushed: Mark::None,
            totals: MarkTotals::default(),
            flushed_totals: MarkTotals::default(),
        }
    }
}

impl Feedback for Delayed {
    fn on_packet(&mut self, arrival: &Arrival) -> AckAction {
        let mark = self.encoding.mark(arrival.ecn);
        self.flushed_totals = self.totals;
        self.totals.count(mark, arrival.size);
        // rfc8257 3.2
        let changed = mark != self.state && !self.exact;
        let flush = changed && self.pending > 0;
        if flush {
            self.pending = 0;
        }
        self.flushed = self.state;
        self.state = mark;
        self.pending += 1;
        // rfc5681 4.2
        let due =
            arrival.urgent || self.pending >= self.ack_every || (changed && self.on_change == OnChange::Ack);
        match (flush, due) {
            (true, true) => AckAction::FlushThenNow,
            (true, false) => AckAction::FlushThenDelay,
            (false, true) => AckAction::Now,
            (false, false) => AckAction::Delay,
        }
    }

    fn on_ack_sent(&mut self, _now: Time, flush: bool) -> Echo {
        let (state, totals) = if flush {
            (self.flushed, self.flushed_totals)
        } else {
            self.pending = 0;
            (self.state, self.totals)
        };
        Echo {
            state,
            totals: self.exact.then_some(totals),
            report: ReceiverReport::None,
            receive_times: self.receive_times,
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

    const ACCELERATE: Ecn = Ecn::Ect1;
    const BRAKE: Ecn = Ecn::Ect0;

    fn receiver(options: &[(&str, &str)], ack_every: u32) -> Delayed {
        let config = Config::from_options(options.iter().copied()).expect("valid options");
        Delayed::new(config, &Receiver { encoding: Encoding::Abc, ack_every, mss: Bytes(1000) })
    }

    /// The ACKs these packets cause: after which packet, how many packets each covers, and the state it
    /// echoes.
    fn acks(receiver: &mut Delayed, packets: &[Ecn]) -> Vec<(usize, u32, Mark)> {
        let (mut acks, mut held) = (Vec::new(), 0);
        for (index, &ecn) in packets.iter().enumerate() {
            let action = receiver.on_packet(&arrival(ecn));
            if matches!(action, AckAction::FlushThenDelay | AckAction::FlushThenNow) {
                acks.push((index, held, receiver.on_ack_sent(Time::ZERO, true).state));
                held = 0;
            }
            held += 1;
            if matches!(action, AckAction::Now | AckAction::FlushThenNow) {
                acks.push((index, held, receiver.on_ack_sent(Time::ZERO, false).state));
                held = 0;
            }
        }
        acks
    }

    /// ABC-U14.
    #[test]
    fn one_ack_for_m_packets_of_one_mark() {
        let expected = [(1, 2, Mark::Accelerate), (3, 2, Mark::Accelerate)];
        assert_eq!(acks(&mut receiver(&[], 2), &[ACCELERATE; 5]), expected);
        assert_eq!(acks(&mut receiver(&[], 1), &[BRAKE; 2]), [(0, 1, Mark::Brake), (1, 1, Mark::Brake)]);
    }

    /// ABC-U14, open-questions#X-11.
    #[test]
    fn a_change_flushes_what_is_pending_under_the_old_mark() {
        let packets = [ACCELERATE, BRAKE, BRAKE, Ecn::Ce, ACCELERATE, ACCELERATE];
        let expected =
            [(1, 1, Mark::Accelerate), (2, 2, Mark::Brake), (4, 1, Mark::Ce), (5, 2, Mark::Accelerate)];
        assert_eq!(acks(&mut receiver(&[], 2), &packets), expected);
    }

    #[test]
    fn a_change_may_be_acknowledged_at_once_besides() {
        let packets = [ACCELERATE, BRAKE, BRAKE, BRAKE, ACCELERATE];
        let expected =
            [(1, 1, Mark::Accelerate), (1, 1, Mark::Brake), (3, 2, Mark::Brake), (4, 1, Mark::Accelerate)];
        assert_eq!(acks(&mut receiver(&[("on_change", "ack")], 2), &packets), expected);
    }

    #[test]
    fn a_change_with_more_than_one_packet_per_ack_never_misattributes() {
        // Every pattern of three marks over six packets: what the ACKs say adds up to what arrived.
        for pattern in 0..729_u32 {
            let packets: Vec<Ecn> = (0..6)
                .map(|place| [ACCELERATE, BRAKE, Ecn::Ce][(pattern / 3_u32.pow(place) % 3) as usize])
                .collect();
            let mut receiver = receiver(&[], 3);
            let mut said: Vec<Mark> = Vec::new();
            for (_, covers, state) in acks(&mut receiver, &packets) {
                said.extend((0..covers).map(|_| state));
            }
            let arrived: Vec<Mark> = packets.iter().map(|&ecn| Encoding::Abc.mark(ecn)).collect();
            assert_eq!(said, arrived[..said.len()]);
            assert!(arrived.len() - said.len() < 3);
        }
    }

    #[test]
    fn exact_counters_need_no_extra_ack() {
        for options in [&[("echo", "exact")], &[("variant", "prototype")]] {
            let mut receiver = receiver(options, 2);
            let mut echoes = Vec::new();
            for ecn in [ACCELERATE, BRAKE, Ecn::Ce, ACCELERATE] {
                if receiver.on_packet(&arrival(ecn)) == AckAction::Now {
                    echoes.push(receiver.on_ack_sent(Time::ZERO, false).totals.expect("counters"));
                }
            }
            assert_eq!(echoes[0], MarkTotals { packets: [1, 1, 0], bytes: [1000, 1000, 0] });
            assert_eq!(echoes[1], MarkTotals { packets: [2, 1, 1], bytes: [2000, 1000, 1000] });
        }
    }

    #[test]
    fn an_option_wins_over_the_variant_in_any_order() {
        let options =
            [[("echo", "state"), ("variant", "prototype")], [("variant", "prototype"), ("echo", "state")]];
        for options in options {
            assert!(!receiver(&options, 2).exact);
        }
    }

    #[test]
    fn an_urgent_packet_is_acknowledged_at_once() {
        let mut receiver = receiver(&[], 2);
        assert_eq!(receiver.on_packet(&Arrival { urgent: true, ..arrival(ACCELERATE) }), AckAction::Now);
    }
}
