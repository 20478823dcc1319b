//! What client and server of a measurement say to each other: on each stream a request of [`LENGTH`] bytes,
//! then payload.
//!
//! | request | client sends | server answers |
//! |---|---|---|
//! | upload | payload, until it ends or resets the stream | [`Received`], repeated; the last with `done` |
//! | download | nothing more | so many bytes of payload, or payload until it is told to stop |
//! | exchange | so many bytes | so many bytes |
//! | report | nothing more | what it knows as the sender of this connection, as JSON |
//! | token | its [proof](super::token) | one byte, once it has taken the proof |
//!
//! A server that has a token takes no other request before that one.

/// Name of the protocol in the TLS handshake.
pub const ALPN: &[u8] = b"brakelight-perf/1";

/// Bytes of a request.
pub const LENGTH: usize = 17;

/// Bytes of a [`Received`].
pub const RECEIVED_LENGTH: usize = 32;

/// Most bytes of either half of an exchange: what one message may reasonably be.
pub const MOST_EXCHANGED: u64 = 1 << 30;

/// What a client asks for on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Count what I send.
    Upload,
    /// Send me `bytes`, or until I stop you where that is zero.
    Download {
        /// How many.
        bytes: u64,
    },
    /// Take `request` bytes and give `response` bytes.
    Exchange {
        /// Bytes that follow.
        request: u64,
        /// Bytes to answer with.
        response: u64,
    },
    /// Tell me what you know of this connection.
    Report,
    /// Take my proof that I know the token.
    Token,
}

impl Request {
    /// Returns the bytes that are sent.
    pub fn encode(self) -> [u8; LENGTH] {
        let (kind, a, b) = match self {
            Request::Upload => (1, 0, 0),
            Request::Download { bytes } => (2, bytes, 0),
            Request::Exchange { request, response } => (3, request, response),
            Request::Report => (4, 0, 0),
            Request::Token => (5, 0, 0),
        };
        let mut bytes = [kind; LENGTH];
        bytes[1..9].copy_from_slice(&u64::to_be_bytes(a));
        bytes[9..].copy_from_slice(&u64::to_be_bytes(b));
        bytes
    }

    /// Returns the request that `bytes` hold, or `None` if they hold none.
    pub fn decode(bytes: &[u8; LENGTH]) -> Option<Self> {
        let [a, b] = numbers(bytes[1..].first_chunk::<16>()?);
        match bytes[0] {
            1 => Some(Request::Upload),
            2 => Some(Request::Download { bytes: a }),
            3 if a <= MOST_EXCHANGED && b <= MOST_EXCHANGED => {
                Some(Request::Exchange { request: a, response: b })
            }
            4 => Some(Request::Report),
            5 => Some(Request::Token),
            _ => None,
        }
    }
}

/// A receipt: what a receiver has received of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Received {
    /// Payload of the stream.
    pub payload: u64,
    /// Bytes that came for the connection meanwhile, IP and UDP headers included; for its first upload since
    /// it began, with the two or three packets of the handshake.
    pub wire: u64,
    /// From the request to the newest payload.
    pub micros: u64,
    /// Whether nothing more will come.
    pub done: bool,
}

impl Received {
    /// Returns the bytes that are sent.
    pub fn encode(self) -> [u8; RECEIVED_LENGTH] {
        let mut bytes = [0; RECEIVED_LENGTH];
        for (chunk, value) in
            bytes.chunks_exact_mut(8).zip([self.payload, self.wire, self.micros, u64::from(self.done)])
        {
            chunk.copy_from_slice(&value.to_be_bytes());
        }
        bytes
    }

    /// Returns what the bytes hold.
    pub fn decode(bytes: &[u8; RECEIVED_LENGTH]) -> Self {
        let [payload, wire, micros, done] = numbers(bytes);
        Received { payload, wire, micros, done: done != 0 }
    }
}

fn numbers<const BYTES: usize, const COUNT: usize>(bytes: &[u8; BYTES]) -> [u64; COUNT] {
    std::array::from_fn(|at| bytes[at * 8..].first_chunk().map_or(0, |chunk| u64::from_be_bytes(*chunk)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn requests_and_receipts_come_back_as_they_were_sent(a in any::<u64>(), b in any::<u64>(), done in any::<bool>()) {
            let (request, response) = (a % (MOST_EXCHANGED + 1), b % (MOST_EXCHANGED + 1));
            let exchange = Request::Exchange { request, response };
            let kinds = [Request::Upload, Request::Download { bytes: a }, exchange, Request::Report, Request::Token];
            for asked in kinds {
                prop_assert_eq!(Request::decode(&asked.encode()), Some(asked));
            }
            let received = Received { payload: a, wire: b, micros: a ^ b, done };
            prop_assert_eq!(Received::decode(&received.encode()), received);
        }

        #[test]
        fn no_stranger_makes_the_server_promise_more_than_it_may(bytes in any::<[u8; LENGTH]>()) {
            if let Some(Request::Exchange { request, response }) = Request::decode(&bytes) {
                prop_assert!(request.max(response) <= MOST_EXCHANGED);
            }
        }
    }
}
