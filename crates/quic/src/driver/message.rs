//! An application's messages in DATAGRAM frames (RFC 9221).
//!
//! ```text
//! | 1 (1 byte) | number (4) | echo (4) | held_us (4) | zeros up to the payload's size |  integers big-endian
//! ```
//!
//! Reports of arrivals travel in DATAGRAM frames too; they begin with another byte (`report`). Which way a
//! message travels is known from the end that it reaches.

use brakelight_apps::Datagram;
use brakelight_core::packet::Direction;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The first byte of a message. RFC 8888's begins with 0x8b.
const TAG: u8 = 1;
/// What the fields take: no message is smaller.
const FIELDS: usize = 13;

/// Whether `bytes`, which came in a DATAGRAM frame, are a message of an application.
pub(super) fn is_message(bytes: &[u8]) -> bool {
    bytes.len() >= FIELDS && bytes[0] == TAG
}

/// A message as bytes: as many as its payload says, but at least those of its fields.
pub(super) fn encode(message: &Datagram) -> Bytes {
    let length = usize::from(message.payload).max(FIELDS);
    let mut out = BytesMut::with_capacity(length);
    out.put_u8(TAG);
    out.put_u32(message.number);
    out.put_u32(message.echo);
    out.put_u32(message.held_us);
    out.put_bytes(0, length - FIELDS);
    out.freeze()
}

/// The message that `bytes` are; `None` if they are something else.
pub(super) fn decode(direction: Direction, mut bytes: &[u8]) -> Option<Datagram> {
    if !is_message(bytes) {
        return None;
    }
    let payload = u16::try_from(bytes.len()).ok()?;
    bytes.advance(1);
    let [number, echo, held_us] = [bytes.get_u32(), bytes.get_u32(), bytes.get_u32()];
    Some(Datagram { direction, payload, number, echo, held_us })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::FeedbackPacket;

    #[test]
    fn a_message_comes_out_as_it_went_in_and_a_report_is_none() {
        let message =
            Datagram { direction: Direction::Reverse, payload: 400, number: 7, echo: u32::MAX, held_us: 9 };
        let bytes = encode(&message);
        assert_eq!((bytes.len(), decode(Direction::Reverse, &bytes)), (400, Some(message)));
        assert_eq!(decode(Direction::Reverse, &bytes[..12]), None);
        assert_eq!(decode(Direction::Reverse, &FeedbackPacket::invitation().encode()), None);
        let small = Datagram { payload: 1, ..message };
        assert_eq!(encode(&small).len(), 13);
    }
}
