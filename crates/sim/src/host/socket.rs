//! The modelled flow as an application's socket.

use brakelight_apps::{Datagram, Piece, Socket};
use brakelight_core::random::Random;
use brakelight_core::time::Time;
use brakelight_core::units::{Bytes, Rate};

use super::connection::{Connection, Shared};
use crate::packet::Kind;

/// A flow in the hands of its application, at a moment.
pub(super) struct FlowSocket<'a> {
    now: Time,
    connection: &'a mut Connection,
    shared: &'a mut Shared,
}

impl<'a> FlowSocket<'a> {
    pub(super) fn new(now: Time, connection: &'a mut Connection, shared: &'a mut Shared) -> Self {
        FlowSocket { now, connection, shared }
    }
}

impl Socket for FlowSocket<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn write(&mut self, size: Bytes) {
        self.connection.sender.write(size);
    }

    fn unsent(&self) -> Bytes {
        self.connection.sender.unsent()
    }

    fn discard_unsent(&mut self) {
        self.connection.sender.discard_unsent();
    }

    fn delivered(&self) -> Bytes {
        self.connection.receiver.in_order()
    }

    fn rate(&self) -> Option<Rate> {
        self.connection.sender.rate()
    }

    fn random(&mut self) -> &mut Random {
        &mut self.shared.random
    }

    fn send(&mut self, datagram: Datagram) {
        let Datagram { direction, payload, number, echo, held_us } = datagram;
        let kind = Kind::Datagram { number, echo, held_us };
        self.connection.post_datagram(self.shared, self.now, direction, payload, kind);
    }

    fn send_piece(&mut self, piece: Piece, urgent: bool) {
        self.connection.sender.write_piece(piece, urgent);
    }
}
