//! The frame ACK_RECEIVE_TIMESTAMPS: an ACK frame that says besides when packets arrived
//! (draft-ietf-quic-receive-ts-03).
//!
//! ```text
//! Type (i) = 0x03178307, or 0x03178308 with ECN counts                                receive-ts 4
//! Largest Acknowledged, ACK Delay, ACK Range Count, First ACK Range, {Gap, Length}    rfc9000 19.3
//! [ECT(0), ECT(1), CE counts]                                                         rfc9000 19.3.2
//! Timestamp Range Count, then for each range:                                         receive-ts 4.1
//!     Delta Largest Acknowledged = largest of the frame - largest of the range
//!     Timestamp Delta Count
//!     Timestamp Delta ...        in units of 2^exponent us, in descending order of packets and of times:
//!                                the frame's first counts from the basis, each other from the one before
//! ```
//!
//! All numbers are variable-length integers. Ranges are in descending order of their times, so a packet that
//! arrived late begins a range of its own.
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | max_receive_timestamps_per_ack | `ReceiveTimestamps::most` | packets | 0: no frames | receive-ts 6 |
//! | receive_timestamps_exponent | `ReceiveTimestamps::exponent` | 1 | 0 | receive-ts 6 |
//!
//! # Deviations
//!
//! - D1. A time is rounded down to its unit before differences are taken, so that rounding does not add up.
//! - D2. A reader refuses a frame that its own transport parameters rule out: more timestamps than it asked
//!   for. The draft says that such a frame must not be sent, and not what becomes of one.
//! - D3. That each packet of a range was acknowledged, here or earlier, is for the caller to see to.

use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;

pub use brakelight_core::feedback::ReceiveTimestamps;

/// receive-ts 4: without ECN counts.
pub const TYPE: u64 = 0x0317_8307;
/// receive-ts 4: with ECN counts.
pub const TYPE_WITH_ECN: u64 = 0x0317_8308;
/// receive-ts 6: the transport parameter max_receive_timestamps_per_ack, a temporary value.
pub const MAX_RECEIVE_TIMESTAMPS_PER_ACK: u64 = 0x4ac07;
/// receive-ts 6: the transport parameter receive_timestamps_exponent, a temporary value.
pub const RECEIVE_TIMESTAMPS_EXPONENT: u64 = 0x4ac26;
/// receive-ts 6: larger exponents are invalid.
pub const MAX_EXPONENT: u64 = 20;
/// rfc9000 16: the largest variable-length integer.
pub const MAX_VARINT: u64 = (1 << 62) - 1;

/// When a packet arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The packet's number, at most the largest that the frame acknowledges.
    pub number: u64,
    /// Microseconds since the receiver's basis, below 2^62.
    pub at_us: u64,
}

/// A frame ACK_RECEIVE_TIMESTAMPS.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Frame {
    /// How long the largest packet waited for the ACK, in the unit of ack_delay_exponent.
    pub delay: u64,
    /// Packets acknowledged, the highest range first; never empty, with at least one packet missing between
    /// any two.
    pub ranges: Vec<RangeInclusive<u64>>,
    /// Packets that arrived with ECT(0), ECT(1) and CE since the connection began, where they are counted.
    pub ecn: Option<[u64; 3]>,
    /// When packets arrived. A frame that was read has the latest first.
    pub times: Vec<Arrived>,
}

/// Why bytes are not a frame, or not transport parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It is of another type.
    Type(u64),
    /// It ends within a field.
    Truncated,
    /// A range of packets reaches below packet 0.
    Packet,
    /// A time lies before the basis, or is 2^62 microseconds or more.
    Time,
    /// It has more timestamps than its reader asked for.
    Count {
        /// How many it has so far.
        given: u64,
        /// How many the reader asked for at most.
        most: u64,
    },
    /// An exponent is above 20.
    Exponent(u64),
    /// A transport parameter is not one variable-length integer.
    Length(u64),
    /// A transport parameter comes twice.
    Repeated(u64),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Type(kind) => {
                write!(f, "frame type {kind:#x}: must be {TYPE:#x} or {TYPE_WITH_ECN:#x}")
            }
            Malformed::Truncated => f.write_str("it ends within a field"),
            Malformed::Packet => f.write_str("a range of packets reaches below packet 0"),
            Malformed::Time => f.write_str("a timestamp: must be 0 to 2^62 - 1 us after the basis"),
            Malformed::Count { given, most } => {
                write!(
                    f,
                    "{given} timestamps: must be at most {most}, as max_receive_timestamps_per_ack says"
                )
            }
            Malformed::Exponent(exponent) => {
                write!(f, "receive_timestamps_exponent {exponent}: must be 0 to {MAX_EXPONENT}")
            }
            Malformed::Length(id) => {
                write!(f, "transport parameter {id:#x}: must be one variable-length integer")
            }
            Malformed::Repeated(id) => write!(f, "transport parameter {id:#x}: must not come twice"),
        }
    }
}

impl core::error::Error for Malformed {}

impl Frame {
    /// Returns the bytes of this frame for a peer that asked for timestamps as `asked` says, at most `room`
    /// of them. Where not all timestamps fit, the oldest are left out. So are packets beyond the largest, and
    /// repeated ones.
    ///
    /// Returns `None` if the peer asked for none, in which case an ordinary ACK is to be sent (receive-ts 6);
    /// if even a frame without timestamps is larger than `room`; or if a number cannot be written, or the
    /// ranges are not in order.
    pub fn encode(&self, asked: ReceiveTimestamps, room: usize) -> Option<Vec<u8>> {
        if asked.most == 0 || u64::from(asked.exponent) > MAX_EXPONENT {
            return None;
        }
        let mut out = Vec::with_capacity(64);
        write(&mut out, if self.ecn.is_some() { TYPE_WITH_ECN } else { TYPE })?;
        let (first, further) = self.ranges.split_first()?;
        let largest = *first.end();
        for number in [largest, self.delay, further.len() as u64, largest.checked_sub(*first.start())?] {
            write(&mut out, number)?;
        }
        let mut smallest = *first.start();
        for range in further {
            // rfc9000 19.3.1: largest = previous_smallest - gap - 2
            write(&mut out, smallest.checked_sub(*range.end())?.checked_sub(2)?)?;
            write(&mut out, range.end().checked_sub(*range.start())?)?;
            smallest = *range.start();
        }
        for count in self.ecn.iter().flatten() {
            write(&mut out, *count)?;
        }
        let times = self.latest(largest, asked);
        let mut fitting = times.len();
        loop {
            let lists = stamps(&times[..fitting], largest)?;
            if out.len() + lists.len() <= room {
                out.extend(lists);
                return Some(out);
            }
            // A timestamp in a range of its own takes three numbers, so 24 bytes at most.
            let over = out.len() + lists.len() - room;
            fitting = fitting.checked_sub((over / 32).max(1))?;
        }
    }

    /// Returns the times to be written, in units: the latest first, each packet once.
    fn latest(&self, largest: u64, asked: ReceiveTimestamps) -> Vec<Arrived> {
        let unit = |time: &Arrived| Arrived { at_us: time.at_us >> asked.exponent, ..*time };
        let mut times: Vec<Arrived> =
            self.times.iter().filter(|time| time.number <= largest).map(unit).collect();
        times.sort_by_key(|time| core::cmp::Reverse((time.number, time.at_us)));
        times.dedup_by_key(|time| time.number);
        times.sort_by_key(|time| core::cmp::Reverse((time.at_us, time.number)));
        times.truncate(usize::try_from(asked.most).unwrap_or(usize::MAX));
        times
    }

    /// Reads a frame at the beginning of `bytes`, by what its reader asked for. Returns it with what follows
    /// it.
    ///
    /// # Errors
    /// If the bytes are no such frame, or one that the reader's transport parameters rule out.
    pub fn decode(bytes: &[u8], asked: ReceiveTimestamps) -> Result<(Frame, &[u8]), Malformed> {
        let mut reader = Reader(bytes);
        let with_ecn = match reader.varint()? {
            TYPE => false,
            TYPE_WITH_ECN => true,
            other => return Err(Malformed::Type(other)),
        };
        let largest = reader.varint()?;
        let delay = reader.varint()?;
        let count = reader.varint()?;
        let mut smallest = largest.checked_sub(reader.varint()?).ok_or(Malformed::Packet)?;
        let mut frame = Frame { delay, ..Frame::default() };
        frame.ranges.push(smallest..=largest);
        for _ in 0..count {
            // rfc9000 19.3.1
            let end = smallest.checked_sub(reader.varint()?).and_then(|end| end.checked_sub(2));
            let end = end.ok_or(Malformed::Packet)?;
            smallest = end.checked_sub(reader.varint()?).ok_or(Malformed::Packet)?;
            frame.ranges.push(smallest..=end);
        }
        if with_ecn {
            frame.ecn = Some([reader.varint()?, reader.varint()?, reader.varint()?]);
        }
        let mut before = None;
        for _ in 0..reader.varint()? {
            let start = largest.checked_sub(reader.varint()?).ok_or(Malformed::Packet)?;
            let mut number = Some(start);
            for _ in 0..reader.varint()? {
                let given = frame.times.len() as u64 + 1;
                if given > asked.most {
                    return Err(Malformed::Count { given, most: asked.most });
                }
                let delta = u128::from(reader.varint()?) << asked.exponent;
                let delta = u64::try_from(delta).map_err(|_| Malformed::Time)?;
                let at_us = before.map_or(Some(delta), |before: u64| before.checked_sub(delta));
                let at_us = at_us.filter(|at| *at <= MAX_VARINT).ok_or(Malformed::Time)?;
                let this = number.ok_or(Malformed::Packet)?;
                frame.times.push(Arrived { number: this, at_us });
                number = this.checked_sub(1);
                before = Some(at_us);
            }
        }
        Ok((frame, reader.0))
    }
}

/// The field Receive Timestamps: `times` are in units, and the latest comes first.
// receive-ts 4.1
fn stamps(times: &[Arrived], largest: u64) -> Option<Vec<u8>> {
    let together = |before: &Arrived, after: &Arrived| before.number.checked_sub(1) == Some(after.number);
    let mut out = Vec::with_capacity(2 * times.len() + 8);
    write(&mut out, times.chunk_by(together).count() as u64)?;
    let mut before = None;
    for range in times.chunk_by(together) {
        write(&mut out, largest - range[0].number)?;
        write(&mut out, range.len() as u64)?;
        for time in range {
            write(&mut out, before.map_or(time.at_us, |before| before - time.at_us))?;
            before = Some(time.at_us);
        }
    }
    Some(out)
}

/// Appends the two transport parameters that ask a peer for timestamps; none if `asks` is for none.
// receive-ts 6
pub fn write_parameters(asks: ReceiveTimestamps, out: &mut Vec<u8>) {
    if asks.most == 0 {
        return;
    }
    let mut parameter = |id: u64, value: u64| {
        let mut bytes = Vec::new();
        // Both are far below 2^62, and so is the length.
        let _ = write(&mut bytes, value.min(MAX_VARINT));
        let _ = write(out, id).and_then(|()| write(out, bytes.len() as u64));
        out.extend(bytes);
    };
    parameter(MAX_RECEIVE_TIMESTAMPS_PER_ACK, asks.most);
    if asks.exponent > 0 {
        parameter(RECEIVE_TIMESTAMPS_EXPONENT, u64::from(asks.exponent));
    }
}

/// Reads what a peer asks for from its transport parameters, past all others. It asks for none if it says
/// nothing.
///
/// # Errors
/// If the parameters end early, or one of the two is invalid or comes twice.
pub fn read_parameters(bytes: &[u8]) -> Result<ReceiveTimestamps, Malformed> {
    let (mut most, mut exponent) = (None, None);
    let mut reader = Reader(bytes);
    while !reader.0.is_empty() {
        let id = reader.varint()?;
        let length = reader.varint()?;
        let value = reader.take(length)?;
        let kept = match id {
            MAX_RECEIVE_TIMESTAMPS_PER_ACK => &mut most,
            RECEIVE_TIMESTAMPS_EXPONENT => &mut exponent,
            _ => continue,
        };
        let mut value = Reader(value);
        let number = value.varint().map_err(|_| Malformed::Length(id))?;
        if !value.0.is_empty() {
            return Err(Malformed::Length(id));
        }
        // rfc9000 7.4
        if kept.replace(number).is_some() {
            return Err(Malformed::Repeated(id));
        }
    }
    let most = most.unwrap_or(0);
    match exponent.unwrap_or(0) {
        // receive-ts 6: the exponent must be ignored.
        _ if most == 0 => Ok(ReceiveTimestamps::default()),
        exponent if exponent > MAX_EXPONENT => Err(Malformed::Exponent(exponent)),
        exponent => Ok(ReceiveTimestamps { most, exponent: exponent as u8 }),
    }
}

/// Appends a variable-length integer in as few bytes as it takes; `None` from 2^62 on.
// rfc9000 16
fn write(out: &mut Vec<u8>, value: u64) -> Option<()> {
    match value {
        0..=0x3f => out.push(value as u8),
        0x40..=0x3fff => out.extend((value as u16 | 1 << 14).to_be_bytes()),
        0x4000..=0x3fff_ffff => out.extend((value as u32 | 2 << 30).to_be_bytes()),
        0x4000_0000..=MAX_VARINT => out.extend((value | 3 << 62).to_be_bytes()),
        _ => return None,
    }
    Some(())
}

/// What has not been read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: u64) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(length).map_err(|_| Malformed::Truncated)?;
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    // rfc9000 16
    fn varint(&mut self) -> Result<u64, Malformed> {
        let first = *self.0.first().ok_or(Malformed::Truncated)?;
        let bytes = self.take(1 << (first >> 6))?;
        let value =
            bytes[1..].iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte));
        Ok(value)
    }
}
