//! Requests: messages on the reverse path that are repeated until they are answered. Request and response,
//! and video, ask by them.

use brakelight_core::packet::Direction;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use crate::socket::{Datagram, MOST_MESSAGE, Socket};

/// rfc6298 2.1: before the first answer the client waits so long before it asks again.
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// rfc6298 2.5
const LONGEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Parts a request may have, one packet each.
const MOST_PARTS: u64 = 64;

/// The most that a request may have: [`MOST_PARTS`] messages.
pub(crate) const MOST_REQUEST: Bytes = Bytes(MOST_PARTS * MOST_MESSAGE.0);

/// A client that has one request out at a time.
#[derive(Clone, Debug)]
pub(crate) struct Requester {
    size: Bytes,
    part: Bytes,
    /// The request that is out, or the last one.
    number: u32,
    repeat_at: Time,
    timeout: Duration,
    /// Which parts of it the server has.
    arrived: u64,
    /// Requests the server has whole.
    served: u32,
}

impl Requester {
    /// A client whose requests are `size` bytes, [`MOST_REQUEST`] at most, cut into packets of at most `mss`,
    /// or of more where there would be more than [`MOST_PARTS`].
    pub(crate) fn new(size: Bytes, mss: Bytes) -> Self {
        let part = Bytes(mss.min(MOST_MESSAGE).0.max(size.0.div_ceil(MOST_PARTS)).max(1));
        Requester {
            size,
            part,
            number: 0,
            repeat_at: Time::MAX,
            timeout: FIRST_TIMEOUT,
            arrived: 0,
            served: 0,
        }
    }

    fn parts(&self) -> u64 {
        self.size.0.div_ceil(self.part.0).max(1)
    }

    /// Asks for the next response.
    pub(crate) fn ask(&mut self, socket: &mut impl Socket) {
        self.number += 1;
        self.arrived = 0;
        self.timeout = FIRST_TIMEOUT;
        self.send(socket);
    }

    fn send(&mut self, socket: &mut impl Socket) {
        for part in 0..self.parts() {
            let payload = (self.size.0 - part * self.part.0).min(self.part.0);
            socket.send(Datagram {
                direction: Direction::Reverse,
                payload: payload as u16,
                number: self.number,
                echo: part as u32,
                held_us: 0,
            });
        }
        self.repeat_at = socket.now() + self.timeout;
    }

    /// When the client will ask again.
    pub(crate) fn next_timer(&self) -> Time {
        self.repeat_at
    }

    /// Asks again if nothing of the answer came.
    pub(crate) fn on_timer(&mut self, socket: &mut impl Socket) {
        if self.repeat_at <= socket.now() {
            // rfc6298 5.5
            self.timeout = (self.timeout * 2).min(LONGEST_TIMEOUT);
            self.send(socket);
        }
    }

    /// Something of the answer came: the server has the request.
    pub(crate) fn answered(&mut self) {
        self.repeat_at = Time::MAX;
    }

    /// Part of a request reached the server. Whether the request is now whole and must be served.
    pub(crate) fn reached(&mut self, datagram: &Datagram) -> bool {
        if datagram.number != self.number || datagram.number == self.served {
            return false;
        }
        self.arrived |= 1 << datagram.echo;
        let whole = self.arrived.count_ones() as u64 == self.parts();
        if whole {
            self.served = self.number;
        }
        whole
    }

    /// Asks for nothing more. A request that is still on its way will not be served.
    pub(crate) fn stop(&mut self) {
        self.repeat_at = Time::MAX;
        self.served = self.number;
    }
}
