//! What an application may do to its flow.

use brakelight_core::random::Random;
use brakelight_core::time::Time;
use brakelight_core::units::{Bytes, Rate};

use super::connection::{Connection, Shared};
use crate::engine::Direction;
use crate::packet::Kind;

/// A message without acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Datagram {
    /// Which way it travels.
    pub(crate) direction: Direction,
    /// Its payload.
    pub(crate) payload: u16,
    /// Its number.
    pub(crate) number: u32,
    /// What it answers: a number from the other side.
    pub(crate) echo: u32,
    /// How long ago that one had arrived, in microseconds.
    pub(crate) held_us: u32,
}

/// A flow in the hands of its application, at a moment.
pub(crate) struct Socket<'a> {
    now: Time,
    connection: &'a mut Connection,
    shared: &'a mut Shared,
}

impl<'a> Socket<'a> {
    /// More than any run can send.
    pub(crate) const ENDLESS: Bytes = Bytes(u64::MAX);

    pub(super) fn new(now: Time, connection: &'a mut Connection, shared: &'a mut Shared) -> Self {
        Socket { now, connection, shared }
    }

    /// The moment.
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// Asks for `size` more bytes of payload to be sent; [`Socket::ENDLESS`] for always more.
    pub(crate) fn write(&mut self, size: Bytes) {
        self.connection.sender.write(size);
    }

    /// Payload written and never sent.
    pub(crate) fn unsent(&self) -> Bytes {
        self.connection.sender.unsent()
    }

    /// Forgets what was never sent.
    pub(crate) fn discard_unsent(&mut self) {
        self.connection.sender.discard_unsent();
    }

    /// Payload that arrived at the other end with nothing missing before it.
    pub(crate) fn delivered(&self) -> Bytes {
        self.connection.receiver.in_order()
    }

    /// How fast the controller lets the flow send, once the RTT is known.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.connection.sender.rate()
    }

    /// The flow's stream of random numbers.
    pub(crate) fn random(&mut self) -> &mut Random {
        &mut self.shared.random
    }

    /// Sends a message beside the stream: no controller paces it, nobody sends it again.
    pub(crate) fn send(&mut self, datagram: Datagram) {
        let Datagram { direction, payload, number, echo, held_us } = datagram;
        let kind = Kind::Datagram { number, echo, held_us };
        self.connection.post_datagram(self.shared, self.now, direction, payload, kind);
    }
}
