//! The one stream of a flow, as its application sees it: what was asked for, what the stack has, what has
//! left and what has arrived.
//!
//! The stack takes nothing back that was written to it. So it is given a few packets at a time, and the rest
//! stays here, where an application can still discard it.

use std::collections::BTreeMap;

use brakelight_apps::{Datagram, Socket};
use brakelight_core::random::Random;
use brakelight_core::time::Time;
use brakelight_core::units::{Bytes, Rate};
use quinn_proto::{Connection, StreamId};

use crate::adapter::ControllerAdapter;

/// What is written to the stack at a time, at most.
const CHUNK: usize = 1 << 16;
/// Full packets that the stack is given at a time, once it has fewer beyond what it has sent: one that is
/// being written, and one to spare. So it never has twice as many.
const AHEAD: u64 = 2;

/// The sending end's account of the stream.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// Bytes that the application has asked to be sent; [`u64::MAX`] without end.
    asked: u64,
    /// Of these, what the stack has.
    written: u64,
    /// The application will ask for no more.
    finishing: bool,
}

impl Outgoing {
    /// Writes to the stack what it can send next, of which it has sent `sent` bytes in packets of `packet`.
    /// Returns `false` once the stream is finished.
    pub(super) fn feed(
        &mut self,
        connection: &mut Connection,
        stream: StreamId,
        sent: u64,
        packet: u16,
    ) -> bool {
        let ahead = AHEAD * u64::from(packet);
        while self.written < self.asked && self.written.saturating_sub(sent) < ahead {
            let length = (self.asked - self.written).min(ahead).min(CHUNK as u64) as usize;
            match connection.send_stream(stream).write_chunks(&mut [chunk(length)]) {
                Ok(taken) if taken.bytes > 0 => self.written += taken.bytes as u64,
                // Full: the stack says when it is not.
                _ => return true,
            }
        }
        if self.finishing && self.written == self.asked {
            // Errs if the stream is over already.
            let _ = connection.send_stream(stream).finish();
            return false;
        }
        true
    }

    /// The application will ask for no more.
    pub(super) fn finish(&mut self) {
        self.finishing = true;
    }
}

/// The receiving end's account of the stream.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    in_order: u64,
    total: u64,
    /// Beyond a gap: begin and end of each piece.
    later: BTreeMap<u64, u64>,
}

impl Arrived {
    /// A piece of the stream arrived, none of which had arrived before.
    pub(super) fn add(&mut self, begin: u64, length: u64) {
        self.total += length;
        self.later.insert(begin, begin + length);
        while let Some(piece) = self.later.first_entry()
            && *piece.key() <= self.in_order
        {
            self.in_order = self.in_order.max(piece.remove());
        }
    }

    /// Bytes with nothing missing before them.
    pub(super) fn in_order(&self) -> u64 {
        self.in_order
    }

    /// All bytes, each counted once.
    pub(super) fn total(&self) -> u64 {
        self.total
    }
}

/// A flow in the hands of its application, at a moment.
pub(super) struct FlowSocket<'a> {
    pub(super) now: Time,
    pub(super) outgoing: &'a mut Outgoing,
    /// Bytes of the stream that have left.
    pub(super) sent: u64,
    /// Bytes of the stream that have arrived, in order.
    pub(super) delivered: u64,
    pub(super) adapter: &'a ControllerAdapter,
    pub(super) random: &'a mut Random,
    pub(super) messages: &'a mut Vec<Datagram>,
}

impl Socket for FlowSocket<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn write(&mut self, size: Bytes) {
        self.outgoing.asked = self.outgoing.asked.saturating_add(size.0);
    }

    fn finish(&mut self) {
        self.outgoing.finish();
    }

    fn unsent(&self) -> Bytes {
        Bytes(self.outgoing.asked.saturating_sub(self.sent))
    }

    fn discard_unsent(&mut self) {
        self.outgoing.asked = self.outgoing.written;
    }

    fn delivered(&self) -> Bytes {
        Bytes(self.delivered)
    }

    fn rate(&self) -> Option<Rate> {
        let own = || Some(Rate::over(self.adapter.cwnd(), self.adapter.smoothed_rtt()?));
        let paced = || self.adapter.pacing_rate().and_then(Rate::paced);
        self.adapter.media_rate().or_else(paced).or_else(own)
    }

    fn random(&mut self) -> &mut Random {
        self.random
    }

    fn send(&mut self, datagram: Datagram) {
        self.messages.push(datagram);
    }
}

/// `length` bytes that cost no memory of their own.
fn chunk(length: usize) -> bytes::Bytes {
    static ZEROS: [u8; CHUNK] = [0; CHUNK];
    bytes::Bytes::from_static(&ZEROS[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beyond_a_gap_waits_for_it() {
        let mut arrived = Arrived::default();
        arrived.add(0, 10);
        arrived.add(20, 10);
        arrived.add(40, 5);
        assert_eq!((arrived.in_order(), arrived.total()), (10, 25));
        arrived.add(10, 10);
        assert_eq!(arrived.in_order(), 30);
        arrived.add(30, 10);
        assert_eq!((arrived.in_order(), arrived.total(), arrived.later.len()), (45, 45, 0));
    }
}
