//! Connection IDs that begin with their connection's number, so that connections can share a socket.
//!
//! ```text
//! | number (4 bytes) | count of those issued, masked (4) |       integers big-endian
//! ```
//!
//! RFC 9000 section 5.1 asks for IDs that tell observers nothing. These do; both ends are one process, and
//! nobody else is on the path.

use std::time::Duration;

use brakelight_core::packet::Direction;
use quinn_proto::{ConnectionId, ConnectionIdGenerator};

/// Bytes of every ID.
const LENGTH: usize = 8;
/// rfc8999 5.1: the most significant bit of the first byte.
const LONG_HEADER: u8 = 0x80;
/// rfc8999 5.1: the first byte and the version.
const BEFORE_IDS: usize = 1 + 4;

/// The IDs of one end of one connection.
#[derive(Debug)]
pub(super) struct Numbered {
    connection: u32,
    mask: u32,
    issued: u32,
}

impl Numbered {
    /// IDs of connection number `connection`. Ends with different masks issue different ones.
    pub(super) fn new(connection: u32, mask: u32) -> Self {
        Numbered { connection, mask, issued: 0 }
    }
}

impl ConnectionIdGenerator for Numbered {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; LENGTH];
        id[..4].copy_from_slice(&self.connection.to_be_bytes());
        id[4..].copy_from_slice(&(self.issued ^ self.mask).to_be_bytes());
        self.issued = self.issued.wrapping_add(1);
        ConnectionId::new(&id)
    }

    fn cid_len(&self) -> usize {
        LENGTH
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The number of the connection that a datagram belongs to, which travels in `direction`; `None` if it is not
/// a QUIC packet of such a connection.
///
/// A packet with a short header has its receiver's ID. Of those with a long header the client's is read,
/// wherever it stands: the first ID by which a client addresses a server is random (RFC 9000 section 7.2).
pub(super) fn connection_of(direction: Direction, datagram: &[u8]) -> Option<u32> {
    let first = datagram.first()?;
    let id = if first & LONG_HEADER == 0 {
        datagram.get(1..1 + LENGTH)?
    } else {
        let (destination, rest) = long_id(datagram.get(BEFORE_IDS..)?)?;
        match direction {
            Direction::Forward => long_id(rest)?.0,
            Direction::Reverse => destination,
        }
    };
    let number = id.first_chunk::<4>().filter(|_| id.len() == LENGTH)?;
    Some(u32::from_be_bytes(*number))
}

/// An ID behind its length, and what follows it.
fn long_id(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_end_differ_and_begin_with_the_connection() {
        let mut own = Numbered::new(7, 0x1234_5678);
        let [first, second] = [own.generate_cid(), own.generate_cid()];
        assert_ne!(first, second);
        assert_eq!(first[..4], [0, 0, 0, 7]);
        assert_eq!(first.len(), own.cid_len());
    }

    #[test]
    fn a_datagram_finds_its_connection_by_the_clients_id_or_by_a_short_headers() {
        let short = [&[0x40][..], &[0, 0, 1, 2, 9, 9, 9, 9], &[0; 20]].concat();
        assert_eq!(connection_of(Direction::Forward, &short), Some(0x102));
        assert_eq!(connection_of(Direction::Reverse, &short), Some(0x102));
        // Version 1, a destination of 20 random bytes, a source of 8.
        let random = [0xab; 20];
        let to_server =
            [&[0xc0, 0, 0, 0, 1, 20][..], &random, &[8, 0, 0, 0, 5, 1, 1, 1, 1], &[0; 9]].concat();
        assert_eq!(connection_of(Direction::Forward, &to_server), Some(5));
        let to_client = [&[0xc0, 0, 0, 0, 1, 8, 0, 0, 0, 5, 1, 1, 1, 1][..], &[8], &[0xee; 8]].concat();
        assert_eq!(connection_of(Direction::Reverse, &to_client), Some(5));
    }

    #[test]
    fn what_is_cut_short_or_has_ids_of_another_length_belongs_to_no_connection() {
        let long = [&[0xc0, 0, 0, 0, 1, 8, 0, 0, 0, 5, 1, 1, 1, 1][..], &[8], &[0xee; 8]].concat();
        for length in 0..14 {
            assert_eq!(connection_of(Direction::Reverse, &long[..length]), None, "{length}");
        }
        for length in 0..long.len() {
            assert_eq!(connection_of(Direction::Forward, &long[..length]), None, "{length}");
        }
        let other = [&[0xc0, 0, 0, 0, 1, 4, 0, 0, 0, 5][..], &[0]].concat();
        assert_eq!(connection_of(Direction::Reverse, &other), None);
    }
}
