//! What a peer promised about its ACKs in its transport parameters (RFC 9000 section 18.2).
//!
//! The stack keeps the values to itself, but writes them out as it would send them.

use brakelight_core::time::Duration;
use quinn_proto::transport_parameters::TransportParameters;

use super::frames::Reader;

/// rfc9000 18.2: ack_delay_exponent
const ACK_DELAY_EXPONENT: u64 = 0x0a;
/// rfc9000 18.2: max_ack_delay
const MAX_ACK_DELAY: u64 = 0x0b;

/// A peer's transport parameters that concern its ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The longest that it holds an ACK back: up to 16 s, 25 ms unless it says otherwise.
    pub max_ack_delay: Duration,
    /// Its frames tell the delay in units of two to this power, in microseconds: 0 to 20, 3 unless it says
    /// otherwise.
    pub ack_delay_exponent: u32,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters { max_ack_delay: Duration::from_millis(25), ack_delay_exponent: 3 }
    }
}

impl Parameters {
    /// Returns those of a peer.
    pub fn of(peer: &TransportParameters) -> Self {
        let mut bytes = Vec::new();
        peer.write(&mut bytes);
        Self::read(&bytes).unwrap_or_default()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut found = Parameters::default();
        let mut reader = Reader(bytes);
        while !reader.0.is_empty() {
            let id = reader.varint()?;
            let length = usize::try_from(reader.varint()?).ok()?;
            let mut value = Reader(reader.take(length)?);
            // rfc9000 18.2: larger values are errors, over which the stack closes the connection.
            match id {
                ACK_DELAY_EXPONENT => found.ack_delay_exponent = value.varint()?.min(20) as u32,
                MAX_ACK_DELAY => found.max_ack_delay = Duration::from_millis(value.varint()?.min(1 << 14)),
                _ => {}
            }
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use quinn_proto::Side;

    use super::*;

    fn told(bytes: &[u8]) -> Parameters {
        Parameters::of(&TransportParameters::read(Side::Client, &mut &bytes[..]).unwrap())
    }

    #[test]
    fn what_a_peer_promises_is_read_past_what_else_it_says() {
        // initial_max_data of 100, an exponent of 8, a delay of 300 ms, and a connection id of two bytes.
        let bytes =
            [0x04, 0x02, 0x40, 0x64, 0x0a, 0x01, 0x08, 0x0b, 0x02, 0x41, 0x2c, 0x0f, 0x02, 0xaa, 0xbb];
        let expected = Parameters { max_ack_delay: Duration::from_millis(300), ack_delay_exponent: 8 };
        assert_eq!(told(&bytes), expected);
    }

    #[test]
    fn a_peer_that_says_nothing_promises_what_the_rfc_has_for_it() {
        assert_eq!(told(&[0x0f, 0x00]), Parameters::default());
        assert_eq!(Parameters::read(&[0x0b, 0x05, 0x00]), None);
    }
}
