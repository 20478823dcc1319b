//! The frames of a 1-RTT packet, read only as far as it takes to find the ACKs among them (RFC 9000
//! section 19).
//!
//! Every frame that an endpoint of version 1 may send is skipped by its own length, the extensions DATAGRAM
//! (RFC 9221), ACK_FREQUENCY and IMMEDIATE_ACK (draft-ietf-quic-ack-frequency) and RESET_STREAM_AT
//! (draft-ietf-quic-reliable-stream-reset) included. A frame of any other type has no known length, so
//! reading ends there; a peer may not send one that was not negotiated, and the stack closes the connection
//! over it.

use std::ops::RangeInclusive;

/// ECN counts of an ACK frame: packets received with each codepoint since the connection began, in one packet
/// number space (RFC 9000 section 19.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct EcnCounts {
    /// Packets that arrived with ECT(0).
    pub ect0: u64,
    /// Packets that arrived with ECT(1).
    pub ect1: u64,
    /// Packets that arrived with CE.
    pub ce: u64,
}

impl EcnCounts {
    /// Returns the packets that arrived with any of the three. Saturates: counts are a stranger's, up to 2^62
    /// each.
    pub fn total(&self) -> u64 {
        self.ect0.saturating_add(self.ect1).saturating_add(self.ce)
    }
}

/// An ACK frame, borrowed from the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// Largest packet number acknowledged.
    pub largest: u64,
    /// How long the receiver held it back, in units of two to the power of its ack_delay_exponent
    /// microseconds.
    pub delay: u64,
    /// The counts, where the frame has them (type 0x03).
    pub ecn: Option<EcnCounts>,
    /// Packets below the largest that the first range adds to it.
    first: u64,
    /// Gap and length of every further range, each a variable-length integer; known to be whole and in range.
    further: &'a [u8],
}

impl Ack<'_> {
    /// Returns the acknowledged packet numbers, largest range first.
    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<u64>> {
        let mut smallest = self.largest - self.first;
        let mut rest = Reader(self.further);
        let further = std::iter::from_fn(move || {
            let gap = rest.varint()?;
            let length = rest.varint()?;
            // rfc9000 19.3.1: checked when the frame was read.
            let largest = smallest - gap - 2;
            smallest = largest - length;
            Some(smallest..=largest)
        });
        std::iter::once(self.largest - self.first..=self.largest).chain(further)
    }
}

/// Why parsing stopped before the end of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A frame ends after the packet does, or says something impossible.
    Malformed,
    /// A frame of a type that is not known, so that neither is its length.
    Unknown(u64),
}

/// Shows `visit` every ACK frame of the decrypted `payload` of a 1-RTT packet, in order. What was shown
/// before an error stays true.
pub fn acks<'a>(payload: &'a [u8], mut visit: impl FnMut(&Ack<'a>)) -> Result<(), Stop> {
    let mut reader = Reader(payload);
    while !reader.0.is_empty() {
        let kind = reader.varint().ok_or(Stop::Malformed)?;
        if let 0x02 | 0x03 = kind {
            visit(&reader.ack(kind == 0x03).ok_or(Stop::Malformed)?);
        } else {
            reader.skip(kind)?;
        }
    }
    Ok(())
}

/// Returns how far the STREAM frames of the decrypted `payload` reach: the largest offset that lies behind
/// one of them. `None` without any. Of a payload that cannot be read, what comes before the fault counts.
pub fn stream_end(payload: &[u8]) -> Option<u64> {
    let mut reader = Reader(payload);
    let mut end = None;
    while let Some(kind) = reader.varint() {
        let behind = match kind {
            0x08..=0x0f => reader.stream(kind),
            0x02 | 0x03 => reader.ack(kind == 0x03).map(|_| 0),
            _ => reader.skip(kind).ok().map(|()| 0),
        };
        let Some(behind) = behind else { break };
        if let 0x08..=0x0f = kind {
            end = end.max(Some(behind));
        }
    }
    end
}

/// Returns whether the decrypted `payload` of a packet asks for an ACK: whether it has a frame that is
/// neither ACK nor PADDING nor CONNECTION_CLOSE (rfc9002 2). What cannot be read does.
#[inline]
pub fn is_eliciting(payload: &[u8]) -> bool {
    // Most packets begin with data: rfc9000 19.8, a type of one byte.
    matches!(payload.first(), Some(0x08..=0x0f)) || has_eliciting(payload)
}

fn has_eliciting(payload: &[u8]) -> bool {
    let mut reader = Reader(payload);
    while !reader.0.is_empty() {
        let quiet = match reader.varint() {
            Some(kind @ (0x02 | 0x03)) => reader.ack(kind == 0x03).is_some(),
            Some(kind @ (0x00 | 0x1c | 0x1d)) => reader.skip(kind).is_ok(),
            _ => false,
        };
        if !quiet {
            return true;
        }
    }
    false
}

pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    // rfc9000 16
    pub(super) fn varint(&mut self) -> Option<u64> {
        let first = *self.0.first()?;
        if first < 0x40 {
            self.0 = &self.0[1..];
            return Some(u64::from(first));
        }
        let length = 1 << (first >> 6);
        let bytes = self.take(length)?;
        let rest =
            bytes[1..].iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte));
        Some(rest)
    }

    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn varints(&mut self, count: u32) -> Option<()> {
        (0..count).try_for_each(|_| self.varint().map(drop))
    }

    /// A length and as many bytes.
    fn bytes(&mut self) -> Option<()> {
        let length = usize::try_from(self.varint()?).ok()?;
        self.take(length).map(drop)
    }

    // rfc9000 19.3
    fn ack(&mut self, counts: bool) -> Option<Ack<'a>> {
        let largest = self.varint()?;
        let delay = self.varint()?;
        let further = self.varint()?;
        let first = self.varint()?;
        let mut smallest = largest.checked_sub(first)?;
        let start = self.0;
        for _ in 0..further {
            let gap = self.varint()?;
            let length = self.varint()?;
            smallest = smallest.checked_sub(gap)?.checked_sub(2)?.checked_sub(length)?;
        }
        let further = &start[..start.len() - self.0.len()];
        let ecn = if counts {
            Some(EcnCounts { ect0: self.varint()?, ect1: self.varint()?, ce: self.varint()? })
        } else {
            None
        };
        Some(Ack { largest, delay, ecn, first, further })
    }

    /// Reads the STREAM frame whose type `kind` has just been read: the offset behind its data
    /// (rfc9000 19.8).
    fn stream(&mut self, kind: u64) -> Option<u64> {
        self.varint()?;
        let offset = if kind & 0x04 == 0 { 0 } else { self.varint()? };
        let length = match kind & 0x02 {
            0 => self.0.len() as u64,
            _ => self.varint()?,
        };
        self.take(usize::try_from(length).ok()?)?;
        offset.checked_add(length)
    }

    /// Steps over the frame whose type `kind` has just been read.
    fn skip(&mut self, kind: u64) -> Result<(), Stop> {
        let skipped = match kind {
            // rfc9000 19.1: a run of padding is a run of zeros.
            0x00 => {
                let padding = self.0.iter().take_while(|byte| **byte == 0).count();
                self.take(padding).map(drop)
            }
            // PING, IMMEDIATE_ACK, HANDSHAKE_DONE
            0x01 | 0x1f | 0x1e => Some(()),
            // RESET_STREAM: stream, error code, final size
            0x04 => self.varints(3),
            // STOP_SENDING: stream, error code
            0x05 => self.varints(2),
            // CRYPTO: offset, data
            0x06 => self.varint().and_then(|_| self.bytes()),
            // NEW_TOKEN
            0x07 => self.bytes(),
            // STREAM: stream, offset and length where their bits say so, data
            0x08..=0x0f => {
                self.varints(if kind & 0x04 == 0 { 1 } else { 2 }).and_then(|()| self.data(kind & 0x02 != 0))
            }
            // MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID
            0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 => self.varints(1),
            // MAX_STREAM_DATA, STREAM_DATA_BLOCKED: stream, offset
            0x11 | 0x15 => self.varints(2),
            // NEW_CONNECTION_ID: sequence, retire prior to, connection id of one byte's length, reset token
            0x18 => self.varints(2).and_then(|()| {
                let length = usize::from(*self.take(1)?.first()?);
                self.take(length + 16).map(drop)
            }),
            // PATH_CHALLENGE, PATH_RESPONSE
            0x1a | 0x1b => self.take(8).map(drop),
            // CONNECTION_CLOSE of the transport: error code, frame type, reason
            0x1c => self.varints(2).and_then(|()| self.bytes()),
            // CONNECTION_CLOSE of the application: error code, reason
            0x1d => self.varint().and_then(|_| self.bytes()),
            // RESET_STREAM_AT: stream, error code, final size, reliable size
            0x24 => self.varints(4),
            // rfc9221 4: DATAGRAM, with or without a length
            0x30 | 0x31 => self.data(kind == 0x31),
            // ACK_FREQUENCY: sequence, threshold, delay, reordering threshold
            0xaf => self.varints(4),
            unknown => return Err(Stop::Unknown(unknown)),
        };
        skipped.ok_or(Stop::Malformed)
    }

    /// Data with a length before it, or up to the end of the packet.
    fn data(&mut self, length: bool) -> Option<()> {
        if length {
            return self.bytes();
        }
        self.0 = &[];
        Some(())
    }
}

#[cfg(test)]
mod tests;
