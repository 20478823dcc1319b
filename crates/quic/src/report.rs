//! Receive times and marks of single packets, as RFC 8888 writes them, in DATAGRAM frames.
//!
//! ```text
//! |V=2|P| FMT=11  |   PT = 205    |          length               |      in words of 32 bits, less one
//! |                 SSRC of RTCP packet sender                    |
//! |                   SSRC of a stream                            |      once per stream
//! |          begin_seq            |          num_reports          |
//! |R|ECN|  Arrival time offset    |R|ECN|  Arrival time offset    |      an odd number is padded
//! |                        Report Timestamp                       |      rfc8888 3.1
//! ```
//!
//! What RTP calls a sequence number is the low half of QUIC's packet number in the 1-RTT space, of which the
//! sender knows the rest; streams are not told apart, so each report has one, and its number is nothing but
//! ours. A report without any stream is an invitation: it says that its sender understands reports and would
//! like some. A peer that knows nothing of this drops datagrams it cannot read, and sends none.
//!
//! # Deviations
//!
//! - D1. Times are as coarse as the format: an offset has 1/1024 s, the timestamp 1/65536 s.

use brakelight_core::ecn::Ecn;
use brakelight_core::time::{Duration, Time};
use bytes::{BufMut, Bytes, BytesMut};

/// V = 2, no padding, FMT = 11: congestion control feedback.
const FIRST: u8 = 0b1000_1011;
/// PT = 205: transport layer feedback.
const KIND: u8 = 205;
/// Packets that one report speaks of at most: those of half a kilobyte, so that every path carries it.
pub const MOST: usize = 240;
/// rfc8888 3.1
const MOST_IN_A_BLOCK: usize = 16_384;
/// Ours: "bl".
const OWN_STREAM: u32 = 0x626c;

/// When a packet arrived, and with which codepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its codepoint as it arrived.
    pub ecn: Ecn,
    /// How long before the report's timestamp; `None` if that is not known.
    pub before: Option<Duration>,
}

/// A run of packets: those that did not arrive are `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The low 16 bits of the first packet's number.
    pub begin: u16,
    /// The packets from there on.
    pub metrics: Vec<Option<Metric>>,
}

/// A feedback packet of RFC 8888.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FeedbackPacket {
    /// What arrived.
    pub blocks: Vec<Block>,
    /// When the report was written, by the receiver's clock, in 1/65536 s modulo 2^32.
    pub timestamp: u32,
}

/// Why a datagram is not a valid feedback packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Something else: not a feedback packet of this kind.
    #[error("not a congestion control feedback packet of RFC 8888")]
    Foreign,
    /// The length field and the datagram do not agree.
    #[error("a feedback packet whose length is not that of its datagram")]
    Length,
    /// A block goes beyond the end, or is longer than allowed.
    #[error("a feedback packet with a block beyond its end")]
    Block,
}

/// Returns `time` in the unit of timestamps.
pub fn timestamp(time: Time) -> u32 {
    ((u128::from(time.as_nanos()) << 16) / 1_000_000_000) as u32
}

impl FeedbackPacket {
    /// Returns an invitation.
    pub fn invitation() -> Self {
        FeedbackPacket::default()
    }

    /// Returns whether this is an invitation.
    pub fn is_invitation(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the bytes of its datagram.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(64);
        out.put_u8(FIRST);
        out.put_u8(KIND);
        out.put_u16(0);
        out.put_u32(OWN_STREAM);
        for block in &self.blocks {
            out.put_u32(OWN_STREAM);
            out.put_u16(block.begin);
            out.put_u16(block.metrics.len() as u16);
            for metric in &block.metrics {
                out.put_u16(metric.as_ref().map_or(0, word));
            }
            if block.metrics.len() % 2 == 1 {
                out.put_u16(0);
            }
        }
        out.put_u32(self.timestamp);
        let words = (out.len() / 4 - 1) as u16;
        out[2..4].copy_from_slice(&words.to_be_bytes());
        out.freeze()
    }

    /// Reads a datagram.
    pub fn decode(datagram: &[u8]) -> Result<Self, Malformed> {
        let (&[first, kind, high, low], rest) = datagram.split_first_chunk().ok_or(Malformed::Foreign)?;
        if (first, kind) != (FIRST, KIND) {
            return Err(Malformed::Foreign);
        }
        if datagram.len() != 4 * (usize::from(u16::from_be_bytes([high, low])) + 1) {
            return Err(Malformed::Length);
        }
        let (_, rest) = rest.split_first_chunk::<4>().ok_or(Malformed::Length)?;
        let (mut rest, timestamp) = rest.split_last_chunk::<4>().ok_or(Malformed::Length)?;
        let mut blocks = Vec::new();
        while !rest.is_empty() {
            let (&[_, _, _, _, b0, b1, n0, n1], after) = rest.split_first_chunk().ok_or(Malformed::Block)?;
            let count = usize::from(u16::from_be_bytes([n0, n1]));
            if count > MOST_IN_A_BLOCK {
                return Err(Malformed::Block);
            }
            let padded = count + count % 2;
            let (words, after) = after.split_at_checked(2 * padded).ok_or(Malformed::Block)?;
            let metrics = words[..2 * count].chunks_exact(2);
            blocks.push(Block {
                begin: u16::from_be_bytes([b0, b1]),
                metrics: metrics.map(|word| metric(u16::from_be_bytes([word[0], word[1]]))).collect(),
            });
            rest = after;
        }
        Ok(FeedbackPacket { blocks, timestamp: u32::from_be_bytes(*timestamp) })
    }
}

/// rfc8888 3.1: 13 bits; 0x1ffe says longer ago than they reach, 0x1fff that it is not known.
const LONG_AGO: u64 = 0x1ffe;
const UNKNOWN: u64 = 0x1fff;

fn word(metric: &Metric) -> u16 {
    let offset = metric.before.map_or(UNKNOWN, |before| {
        let units = (u128::from(before.as_nanos()) * 1024 + 500_000_000) / 1_000_000_000;
        units.min(u128::from(LONG_AGO)) as u64
    });
    0x8000 | u16::from(metric.ecn as u8) << 13 | offset as u16
}

fn metric(word: u16) -> Option<Metric> {
    let offset = u64::from(word & 0x1fff);
    let before = (offset < LONG_AGO).then(|| Duration::from_nanos(offset * 1_000_000_000 / 1024));
    (word & 0x8000 != 0).then(|| Metric { ecn: Ecn::from_bits((word >> 13) as u8), before })
}

/// Arrivals that a receiver has not reported yet.
#[derive(Clone, Debug, Default)]
pub struct Unreported {
    /// Number, time and codepoint, in the order of arrival.
    arrivals: Vec<(u64, Time, Ecn)>,
}

impl Unreported {
    /// The packet `number` arrived with `ecn` when the receiver's clock showed `at`.
    pub fn on_packet(&mut self, number: u64, at: Time, ecn: Ecn) {
        self.arrivals.push((number, at, ecn));
    }

    /// Returns how many packets there are.
    pub fn len(&self) -> usize {
        self.arrivals.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// Returns everything that there is, written when the receiver's clock shows `now`: as many reports as it
    /// takes.
    pub fn take(&mut self, now: Time) -> Vec<FeedbackPacket> {
        self.arrivals.sort_by_key(|&(number, at, _)| (number, at));
        // Of one that arrived twice the first arrival counts (rfc8888 3.1).
        self.arrivals.dedup_by_key(|&mut (number, ..)| number);
        let mut reports: Vec<FeedbackPacket> = Vec::new();
        let mut end = None;
        for (number, at, ecn) in self.arrivals.drain(..) {
            let metric = Metric { ecn, before: Some(now.since(at)) };
            let gap = end.map(|end: u64| number - end);
            match (gap, reports.last_mut().and_then(|report| report.blocks.first_mut())) {
                (Some(gap), Some(block)) if block.metrics.len() as u64 + gap < MOST as u64 => {
                    block.metrics.extend((0..gap).map(|_| None));
                    block.metrics.push(Some(metric));
                }
                _ => reports.push(FeedbackPacket {
                    blocks: vec![Block { begin: number as u16, metrics: vec![Some(metric)] }],
                    timestamp: timestamp(now),
                }),
            }
            end = Some(number + 1);
        }
        reports
    }
}

/// Turns the short numbers and times of reports into whole ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwrapper {
    last: Option<(u32, u64)>,
}

impl Unwrapper {
    /// Returns the time at which a report with this timestamp was written, by the receiver's clock, whose
    /// origin is anywhere.
    pub fn written_at(&mut self, timestamp: u32) -> Time {
        let units = match self.last {
            None => u64::from(timestamp) + (1 << 32),
            // Reports overtake each other: the step may go back.
            Some((before, units)) => {
                units.saturating_add_signed(i64::from(timestamp.wrapping_sub(before).cast_signed()))
            }
        };
        self.last = Some((timestamp, units));
        Time::from_nanos(((u128::from(units) * 1_000_000_000) >> 16) as u64)
    }
}

/// Returns the packet number with the low bits `short` that lies nearest to `near`.
pub fn expand(short: u16, near: u64) -> u64 {
    let step = i64::from(short.wrapping_sub(near as u16).cast_signed());
    near.checked_add_signed(step).unwrap_or(u64::from(short))
}

#[cfg(test)]
mod tests;
