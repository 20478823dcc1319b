//! Delayed ACKs with the mark echoed: an ACK for every m packets (RFC 5681 section 4.2), and, where marks matter, the
//! two-state machine of DCTCP that ABC borrows (abc20 section 6; RFC 8257 section 3.2).
//!
//! ```text
//! packet with the mark of the batch:   count it; the m-th sends an ACK
//! packet with another mark:            flush the batch with the OLD mark, start a new batch     (mechanisms X-11)
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | m | `Receiver::ack_every` | packets | 2 | abc20 section 6 |
//! | - | `echo` | choice | state | abc20 section 4.2 |
//!
//! Deviations: D1 three states, not two: CE is a state of its own, so that the sender can attribute bytes (X-10).

use super::{AckAction, Arrival, Echo, Feedback, MarkTotals, Receiver};
use crate::controller::Report;
use crate::ecn::{Encoding, Mark};
use crate::time::Time;

choices! {
    /// How marks travel back.
    pub enum EchoMode {
        /// One flag per ACK, and an ACK at every change of state: ABC's NS and ECE flags.
        State = "state",
        /// Exact counters on every ACK: Accurate ECN, QUIC. No ACK is forced by a change.
        Exact = "exact",
    }
}

parameters! {
    /// The receiver's settings.
    pub struct Config {
        /// How marks travel back.
        echo: EchoMode = EchoMode::State, in .., from "abc20 4.2";
    }
}

/// A receiver that acknowledges every m packets and echoes marks.
#[derive(Clone, Debug)]
pub struct Delayed {
    config: Config,
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
    /// A receiver at the start of its connection.
    pub fn new(config: Config, receiver: &Receiver) -> Self {
        Delayed {
            config,
            encoding: receiver.encoding,
            ack_every: receiver.ack_every.max(1),
            pending: 0,
            state: Mark::None,
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
        let flush = self.pending > 0 && mark != self.state && self.config.echo == EchoMode::State;
        if flush {
            self.pending = 0;
        }
        self.flushed = self.state;
        self.state = mark;
        self.pending += 1;
        let due = arrival.urgent || self.pending >= self.ack_every;
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
            totals: (self.config.echo == EchoMode::Exact).then_some(totals),
            report: Report::None,
            receive_times: false,
        }
    }
}
