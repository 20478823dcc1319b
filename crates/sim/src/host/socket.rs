//! What an application may do to its flow.

use brakelight_core::time::Time;
use brakelight_core::units::Bytes;

use super::connection::Connection;

/// A flow in the hands of its application, at a moment.
pub(crate) struct Socket<'a> {
    now: Time,
    connection: &'a mut Connection,
}

impl<'a> Socket<'a> {
    /// More than any run can send.
    pub(crate) const ENDLESS: Bytes = Bytes(u64::MAX);

    pub(super) fn new(now: Time, connection: &'a mut Connection) -> Self {
        Socket { now, connection }
    }

    /// The moment.
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// Asks for `size` more bytes of payload to be sent; [`Socket::ENDLESS`] for always more.
    pub(crate) fn write(&mut self, size: Bytes) {
        self.connection.sender.write(size);
    }

    /// Forgets what was never sent.
    pub(crate) fn discard_unsent(&mut self) {
        self.connection.sender.discard_unsent();
    }

    /// Payload that arrived at the other end with nothing missing before it.
    pub(crate) fn delivered(&self) -> Bytes {
        self.connection.receiver.in_order()
    }
}
