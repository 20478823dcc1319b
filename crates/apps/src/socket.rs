//! What an application may do to its flow.

use brakelight_core::packet::Direction;
use brakelight_core::random::Random;
use brakelight_core::time::Time;
use brakelight_core::units::{Bytes, Rate};

/// More than any run can send: the size of a transfer without end.
pub const ENDLESS: Bytes = Bytes(u64::MAX);

/// The most payload of one message: what UDP carries in an IP packet of 65,535 bytes.
pub const MOST_MESSAGE: Bytes = Bytes(65_507);

/// A message without acknowledgement, beside the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// Which way it travels.
    pub direction: Direction,
    /// Its payload in bytes. What the fields below take on a real wire is part of it.
    pub payload: u16,
    /// Its number.
    pub number: u32,
    /// What it answers: a number from the other end.
    pub echo: u32,
    /// How long ago that one had arrived, in microseconds.
    pub held_us: u32,
}

/// A part of an application's data that travels in a packet of its own, forward, and is sent once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Its number, by which it is told when it arrives: less than `u32::MAX`.
    pub number: u32,
    /// Its payload in bytes, at most what one packet of the flow carries.
    pub size: u16,
}

/// A flow in the hands of its application, at a moment: one ordered, reliable stream forward, and messages
/// both ways.
pub trait Socket {
    /// Returns the moment.
    fn now(&self) -> Time;

    /// Asks for `size` more bytes of payload to be sent; [`ENDLESS`] for always more.
    fn write(&mut self, size: Bytes);

    /// Says that nothing more will be written. A host whose connections never end need not act on it.
    fn finish(&mut self) {}

    /// Returns the payload that was written and has never been sent.
    fn unsent(&self) -> Bytes;

    /// Forgets what was never sent.
    fn discard_unsent(&mut self);

    /// Returns the payload that arrived at the other end with nothing missing before it.
    fn delivered(&self) -> Bytes;

    /// Returns how fast the controller lets the application send; `None` until the RTT is known.
    fn rate(&self) -> Option<Rate>;

    /// Returns the flow's stream of random numbers.
    fn random(&mut self) -> &mut Random;

    /// Sends a message beside the stream: no controller paces it, nobody sends it again.
    fn send(&mut self, datagram: Datagram);

    /// Sends a piece as the controller and the pacer allow it: behind those that wait, or, if it is `urgent`,
    /// ahead of those that are not. It counts as unsent until it leaves. Nobody sends it again.
    ///
    /// # Panics
    /// On a host that has no pieces. It refuses applications that
    /// [send them](crate::Traffic::is_in_pieces).
    fn send_piece(&mut self, piece: Piece, _urgent: bool) {
        unreachable!("piece {} on a host without pieces", piece.number);
    }
}

/// So that a socket behind a pointer can be lent.
impl<S: Socket + ?Sized> Socket for &mut S {
    fn now(&self) -> Time {
        (**self).now()
    }
    fn write(&mut self, size: Bytes) {
        (**self).write(size);
    }
    fn finish(&mut self) {
        (**self).finish();
    }
    fn unsent(&self) -> Bytes {
        (**self).unsent()
    }
    fn discard_unsent(&mut self) {
        (**self).discard_unsent();
    }
    fn delivered(&self) -> Bytes {
        (**self).delivered()
    }
    fn rate(&self) -> Option<Rate> {
        (**self).rate()
    }
    fn random(&mut self) -> &mut Random {
        (**self).random()
    }
    fn send(&mut self, datagram: Datagram) {
        (**self).send(datagram);
    }
    fn send_piece(&mut self, piece: Piece, urgent: bool) {
        (**self).send_piece(piece, urgent);
    }
}
