//! Connections that this end has closed, for as long as their peers may not know of it.
//!
//! The stack answers packets to a closed connection with its CONNECTION_CLOSE for three probe timeouts, which
//! on a short path are a tenth of a second (RFC 9000 section 10.2.1). A peer that does not hear for longer
//! would then be told by a stateless reset that the connection is gone, and never why. The same section
//! allows to answer for longer, and to keep no more for it than the packet. It asks to answer ever more
//! seldom: here to the first, second, fourth, eighth packet.

use std::collections::{HashMap, VecDeque};

use brakelight_core::time::{Duration, Time};
use quinn_proto::{ConnectionHandle, Transmit};

/// How long packets are answered after the stack has forgotten the connection: a peer that probes is heard
/// every few seconds at least.
const LASTS: Duration = Duration::from_secs(5);

/// How many connections at most. One takes about a kilobyte, what the endpoint keeps of it included.
const MOST: usize = 1024;

/// What is left of a connection.
#[derive(Debug)]
struct Parting {
    transmit: Transmit,
    contents: Box<[u8]>,
    heard: u64,
}

/// Closed connections by the endpoint's handle, which stays theirs until they are let go.
#[derive(Debug, Default)]
pub(super) struct Partings {
    kept: HashMap<ConnectionHandle, Parting>,
    /// By age.
    ends: VecDeque<(Time, ConnectionHandle)>,
}

impl Partings {
    /// Keeps the packet that closed `handle`.
    pub(super) fn keep(
        &mut self,
        now: Time,
        handle: ConnectionHandle,
        transmit: Transmit,
        contents: Box<[u8]>,
    ) {
        self.kept.insert(handle, Parting { transmit, contents, heard: 0 });
        self.ends.push_back((now + LASTS, handle));
    }

    /// Returns the answer to a packet for `handle`, if there is one this time.
    pub(super) fn answer(&mut self, handle: ConnectionHandle) -> Option<(&Transmit, &[u8])> {
        let parting = self.kept.get_mut(&handle)?;
        parting.heard += 1;
        parting.heard.is_power_of_two().then_some((&parting.transmit, &*parting.contents))
    }

    /// Lets go one whose time is over, or the oldest where there are too many.
    pub(super) fn let_go(&mut self, now: Time) -> Option<ConnectionHandle> {
        let &(end, handle) = self.ends.front()?;
        if end > now && self.ends.len() <= MOST {
            return None;
        }
        self.ends.pop_front();
        self.kept.remove(&handle);
        Some(handle)
    }

    /// Returns when the next one is to be let go.
    pub(super) fn next(&self) -> Option<Time> {
        self.ends.front().map(|&(end, _)| end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transmit() -> Transmit {
        let destination = ([192, 0, 2, 1], 1000).into();
        Transmit { destination, ecn: None, size: 3, segment_size: None, src_ip: None }
    }

    #[test]
    fn packets_are_answered_ever_more_seldom_and_not_for_ever() {
        let (mut partings, handle) = (Partings::default(), ConnectionHandle(7));
        partings.keep(Time::ZERO, handle, transmit(), Box::new([1, 2, 3]));
        let answered = (0..100).filter(|_| partings.answer(handle).is_some()).count();
        assert_eq!(answered, 7);
        assert_eq!(partings.next(), Some(Time::ZERO + LASTS));
        assert_eq!(partings.let_go(Time::ZERO), None);
        assert_eq!(partings.let_go(Time::ZERO + LASTS), Some(handle));
        assert!(partings.answer(handle).is_none() && partings.next().is_none());
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut partings = Partings::default();
        for number in 0..=MOST {
            partings.keep(Time::ZERO, ConnectionHandle(number), transmit(), Box::new([]));
        }
        assert_eq!(partings.let_go(Time::ZERO), Some(ConnectionHandle(0)));
        assert_eq!(partings.let_go(Time::ZERO), None);
    }
}
