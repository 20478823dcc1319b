//! What path elements and queues need to know of a packet, be it a struct in memory or bytes on a wire.

use core::num::NonZeroU8;

use crate::ecn::{Ecn, Encoding};
use crate::time::Time;

mod boxed;

pub use boxed::BoxedPacket;

/// The identity of a packet, unique within a run. The check of packet conservation uses it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub struct PacketId(pub u64);

impl PacketId {
    /// The first identity of those that path elements give to packets they make out of others; hosts stay
    /// below it.
    pub const FIRST_COPY: u64 = 1 << 63;

    /// Returns whether a path element made the packet out of another.
    pub const fn is_copy(self) -> bool {
        self.0 >= Self::FIRST_COPY
    }
}

/// The flow a packet belongs to: an index in simulation, a hash of the 5-tuple on real packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub struct FlowId(pub u32);

/// Which way a packet of a flow travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the sender of the payload to the receiver.
    Forward,
    /// From the receiver to the sender.
    Reverse,
}

impl Direction {
    /// Returns the other direction.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Direction::Forward => Direction::Reverse,
            Direction::Reverse => Direction::Forward,
        }
    }
}

/// A packet as queues and path elements see it.
pub trait Packet {
    /// Returns its identity.
    fn id(&self) -> PacketId;
    /// Returns its flow.
    fn flow(&self) -> FlowId;
    /// Returns its size at the IP layer, in bytes.
    fn size(&self) -> u32;
    /// Returns its ECN field.
    fn ecn(&self) -> Ecn;
    /// Rewrites its ECN field.
    fn set_ecn(&mut self, ecn: Ecn);
    /// Returns what its flow means by its ECN field. Real packets do not say: an emulator answers from its
    /// configuration.
    fn encoding(&self) -> Encoding;
    /// Returns when its sender sent it, where known.
    fn sent_at(&self) -> Option<Time> {
        None
    }
    /// Returns the explicit header it carries.
    fn header(&self) -> Header {
        Header::None
    }
    /// Rewrites the explicit header.
    fn set_header(&mut self, _header: Header) {}
    /// Returns what a tunnel has put around it.
    fn tunnel(&self) -> Option<Tunnel> {
        None
    }
    /// Puts an outer header around it, or takes that off: [`size`](Self::size) is then that of both, and the
    /// ECN field the outer one's, which starts as a copy. A packet that cannot be carried stays as it is.
    fn set_tunnel(&mut self, _tunnel: Option<Tunnel>) {}
    /// Returns whether it carries an acknowledgement and nothing else, where that can be told.
    fn is_ack(&self) -> bool {
        false
    }
    /// Returns what it acknowledges, where routers can read it: not of QUIC, which encrypts it. A packet that
    /// carries data may acknowledge something, too.
    fn acknowledgement(&self) -> Option<Acknowledgement> {
        None
    }
    /// Returns where in its stream the data that it carries begins, in the unit of
    /// [`Acknowledgement::cumulative`], where routers can read it: not of QUIC.
    fn sequence(&self) -> Option<u32> {
        None
    }
    /// Returns TCP's timestamp, TSval (rfc7323 3.2), in milliseconds of its sender's clock, where routers can
    /// read it.
    fn timestamp(&self) -> Option<u32> {
        None
    }
    /// Returns whether it travels towards the sender of its flow's data, where that can be told.
    fn travels_back(&self) -> bool {
        false
    }
    /// Returns whether a router made it, to measure a round trip: see [`Duplicate::probe`].
    fn is_probe(&self) -> bool {
        false
    }
    /// Returns a number of the host that sent it: the flow's, where nothing else is known.
    fn source_host(&self) -> u32 {
        self.flow().0
    }
    /// Returns a number of the host that it goes to: the flow's, where nothing else is known.
    fn destination_host(&self) -> u32 {
        self.flow().0
    }
    /// Returns its differentiated services codepoint, 0 to 63 (rfc2474 3): 0 where it has none.
    fn dscp(&self) -> u8 {
        0
    }
    /// Returns 16 bits that differ from packet to packet: the IPv4 identification, or a hash of the payload.
    fn hash16(&self) -> u16 {
        self.id().0 as u16
    }
}

/// What a packet acknowledges, as far as a router that thins ACKs needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acknowledgement {
    /// The cumulative acknowledgement. Its unit is the host's, bytes or segments; it wraps as TCP's does.
    pub cumulative: u32,
    /// SACK blocks, empty ones last.
    pub blocks: [Block; 3],
    /// TCP's ECE and CWR, or other bits that echo congestion: a filter lets every change of them pass.
    pub echo: u8,
    /// Whether a newer ACK that covers all of this may take its place. Not so if it says more than that:
    /// D-SACK, options that are not understood, flags.
    pub replaceable: bool,
}

/// What arrived behind a gap: a SACK block (rfc2018 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Block {
    /// Its distance from the cumulative acknowledgement, in the unit of that; at least 1.
    pub ahead: u16,
    /// Its length; 0 where there is no block.
    pub length: u16,
}

impl Acknowledgement {
    /// Returns whether `newer` says everything that this says and more, so that this one may be dropped.
    pub fn is_covered_by(&self, newer: &Acknowledgement) -> bool {
        let later = newer.cumulative.wrapping_sub(self.cumulative);
        if !self.replaceable || later >= 1 << 31 {
            return false;
        }
        let length = |blocks: &[Block; 3]| blocks.iter().map(|block| u32::from(block.length)).sum::<u32>();
        let covered = |block: &Block| {
            let start = u32::from(block.ahead);
            let end = start + u32::from(block.length);
            block.length == 0
                || newer.blocks.iter().any(|other| {
                    let other_start = later.wrapping_add(u32::from(other.ahead));
                    other_start <= start && end <= other_start.wrapping_add(u32::from(other.length))
                })
        };
        let more = later > 0 || length(&newer.blocks) > length(&self.blocks);
        more && self.blocks.iter().all(covered)
    }
}

/// Returns 16 bits of `bytes`, for packets that bring no counter of their own: routers and receivers of BMCC
/// must agree on them, so all use this. Every bit of the result depends on every byte.
pub fn payload_hash16(bytes: &[u8]) -> u16 {
    // SplitMix64's finalizer over words of eight bytes, the length first so that zeros at the end count.
    let mut hash = bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let word = chunk.iter().fold(0_u64, |word, &byte| word << 8 | u64::from(byte));
        hash ^= word;
        hash = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
    }
    hash as u16
}

/// An outer header: the inner ECN field that it hides and the bytes that it adds, in one non-zero byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tunnel(NonZeroU8);

impl Tunnel {
    /// The largest outer header, in bytes.
    pub const MOST: u32 = 124;

    /// Returns an outer header of `overhead` bytes, rounded up to whole words of four and cut at
    /// [`MOST`](Self::MOST), around a packet with this ECN field.
    pub const fn new(inner: Ecn, overhead: u32) -> Self {
        let words = if overhead > Self::MOST { Self::MOST / 4 } else { overhead.div_ceil(4) };
        match NonZeroU8::new(0x80 | (inner as u8) << 5 | words as u8) {
            Some(bits) => Tunnel(bits),
            None => unreachable!(),
        }
    }

    /// Returns the ECN field of the packet inside.
    pub const fn inner(self) -> Ecn {
        Ecn::from_bits(self.0.get() >> 5)
    }

    /// Returns the bytes of the outer header.
    pub const fn overhead(self) -> u32 {
        4 * (self.0.get() & 0x1f) as u32
    }
}

/// The size of a router's echo request at the IP layer, in bytes: 56 of payload, which is the default of
/// `fping(8)` and `ping(8)`, 8 of ICMP and 20 of IPv4.
pub const PROBE_SIZE: u32 = 84;

/// A packet of which a path element can make a second one. The copy gets an identity of its own. What a
/// simulation or an emulator sends along its paths is of this kind; it owns all that it holds, so that it can
/// be put [behind a pointer](BoxedPacket).
pub trait Duplicate: Packet + Clone + Send + Sync + 'static {
    /// Returns the same packet under another identity.
    fn duplicate(&self, id: PacketId) -> Self;

    /// Returns an echo request of [`PROBE_SIZE`] bytes that a router sends at `now` along this packet's path.
    /// Where that path ends it turns around and comes back as the reply. `None` where the host carries no
    /// packets of routers.
    fn probe(&self, _id: PacketId, _now: Time) -> Option<Self> {
        None
    }
}

/// A congestion header of a scheme that needs more than two bits. It rides in simulated packets, 16 bytes at
/// most.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Header {
    /// None.
    #[default]
    None,
    /// XCP's congestion header (katabi02 section 3.1).
    Xcp {
        /// The sender's window, bytes.
        cwnd_bytes: f32,
        /// The sender's RTT estimate, seconds; zero while unknown.
        rtt_s: f32,
        /// In: the change of window the sender asks for; out: the change it is granted, bytes.
        feedback_bytes: f32,
    },
    /// A rate that routers lower to their own: RCP and E-ABC.
    Rate {
        /// The lowest rate granted so far, bit/s; infinite when sent.
        bps: f32,
        /// The sender's RTT estimate, seconds; zero while unknown.
        rtt_s: f32,
    },
    /// A quantised load factor that routers raise to their own: VCP, MLCP.
    Load {
        /// The code of the highest load so far.
        code: u8,
    },
    /// Sprout's time-to-next (winstein13 section 3.2).
    Flight {
        /// How long the sender pauses after this packet, milliseconds; zero in the middle of a flight.
        pause_ms: u16,
    },
}

/// The headers that routers write to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeaderKind {
    /// [`Header::Xcp`].
    Xcp,
    /// [`Header::Rate`].
    Rate,
    /// [`Header::Load`].
    Load,
}

impl Header {
    /// Returns which of the headers that routers write to it is, if it is one.
    pub const fn kind(self) -> Option<HeaderKind> {
        match self {
            Header::Xcp { .. } => Some(HeaderKind::Xcp),
            Header::Rate { .. } => Some(HeaderKind::Rate),
            Header::Load { .. } => Some(HeaderKind::Load),
            Header::None | Header::Flight { .. } => None,
        }
    }
}
