//! The simulated packet: a plain value of 64 bytes that moves through rings.
//!
//! What does not fit (the contents of an ACK) stays with the host and is addressed by slot; see
//! [`host`](crate::host).

use std::fmt;

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::packet::{
    Acknowledgement, Block, Direction, Duplicate, FlowId, Header, PROBE_SIZE, Packet, PacketId, Tunnel,
};
use brakelight_core::time::{Duration, Time};

use crate::engine::Routed;

/// A packet of the modelled host.
///
/// Every field takes any bits, so that an `Option` around a packet has its tag beside it, and a packet is
/// copied as four words of 16 bytes. With enums in here, tags hide in them, copies go around the hiding
/// place, and the processor stalls on reading in one piece what was written in two. Hence the numbers;
/// methods read them.
#[derive(Clone, Copy, PartialEq)]
pub struct SimPacket {
    /// Its identity, unique within a run.
    pub id: PacketId,
    /// When its sender sent it.
    pub sent_at: Time,
    /// Time spent in queues so far.
    pub queued: Duration,
    /// The flow, which is the endpoint that owns it.
    pub flow: FlowId,
    /// Which of the flow's connections it belongs to; a flow of short connections has many, one after the
    /// other.
    pub connection: u32,
    /// The two numbers of its [`Kind`]; then the tag of its header, and the header, or what it acknowledges:
    /// the cumulative number and three blocks.
    words: [u32; 6],
    /// IP bytes.
    pub size: u16,
    /// The tag of its [`Kind`].
    kind: u8,
    /// Its [`Ecn`] field.
    ecn: u8,
    /// The place of its [`Encoding`] in [`ENCODINGS`].
    encoding: u8,
    /// How many elements it has entered. The engine's.
    hop: u8,
    /// Its [`Direction`], 2 for TCP's CWR, and what comes with an acknowledgement that routers can read.
    way: u8,
    /// What a tunnel has put around it. One byte, every value of which means something.
    tunnel: Option<Tunnel>,
}

/// The fields of a new packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Contents {
    /// Its identity, unique within a run.
    pub id: PacketId,
    /// When its sender sends it.
    pub sent_at: Time,
    /// What it carries.
    pub kind: Kind,
    /// The flow, which is the endpoint that owns it.
    pub flow: FlowId,
    /// Which of the flow's connections it belongs to.
    pub connection: u32,
    /// IP bytes.
    pub size: u16,
    /// Its ECN field.
    pub ecn: Ecn,
    /// What its flow means by that field.
    pub encoding: Encoding,
    /// Which way it travels.
    pub direction: Direction,
    /// TCP's CWR: the sender has reacted to CE.
    pub cwr: bool,
}

/// What a packet carries. Numbers count packets, so a connection may send 2^32 of them. A run in which one
/// could deliver half as many is refused ([`MOST_PACKETS`](brakelight_scenario::limits::MOST_PACKETS)).
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// A segment of the stream.
    Data {
        /// The transmission: each has its own number, rising by one.
        number: u32,
        /// The segment of the stream it carries.
        segment: u32,
        /// The scheme's explicit header.
        header: Header,
    },
    /// An acknowledgement, whose contents lie in the host.
    Ack {
        /// Where.
        slot: u32,
        /// Which use of that place.
        generation: u32,
    },
    /// A message of an application that needs no acknowledgement.
    Datagram {
        /// Its number.
        number: u32,
        /// The number of the newest message from the other side.
        echo: u32,
        /// How long ago that one had arrived, in microseconds.
        held_us: u32,
    },
    /// A router's echo request, or the reply to it.
    Probe,
    /// A packet of a real stack, whose bytes lie in the endpoint.
    Wire {
        /// Where.
        slot: u32,
        /// Which use of that place.
        generation: u32,
        /// What routers take for its hash.
        hash: u16,
        /// Whether it carries data, rather than only an acknowledgement.
        data: bool,
    },
}

// Budget: a packet is one cache line.
const _: () = assert!(size_of::<SimPacket>() <= 64);
// An enum of few values in it would hold the tag of an `Option`.
const _: () = assert!(size_of::<Option<SimPacket>>() > size_of::<SimPacket>());

/// Every encoding, in the order of the enum.
const ENCODINGS: [Encoding; 8] = {
    use Encoding::*;
    [None, Classic, Abc, AbcProxied, Bmcc, L4s, Explicit, None]
};

/// In [`SimPacket::way`].
const REVERSE: u8 = 1;
const CWR: u8 = 2;
/// Routers can read what it acknowledges, or its sequence number; whether a newer one may replace it; and
/// TCP's ECE.
const TELLS: u8 = 4;
const REPLACEABLE: u8 = 8;
const ECE: u8 = 16;
/// It is a reply to a probe.
const TURNED: u8 = 32;

/// Tags of [`Kind`]; a [`Kind::Wire`] without data has one of its own.
const DATA: u8 = 0;
const ACK: u8 = 1;
const DATAGRAM: u8 = 2;
const WIRE: u8 = 3;
const WIRE_ACK: u8 = 4;
const PROBE: u8 = 5;

/// In the place of a connection's number: probes are a flow of their own to queues.
const OF_PROBES: u32 = u32::MAX;

impl SimPacket {
    /// Returns a packet that has entered nothing yet.
    #[inline]
    pub fn new(contents: &Contents) -> Self {
        let Contents { id, sent_at, kind, flow, connection, size, ecn, encoding, direction, cwr } = *contents;
        let (tag, [first, second], [tag_of_header, a, b, c]) = match kind {
            Kind::Data { number, segment, header } => (DATA, [number, segment], words_of(header)),
            Kind::Ack { slot, generation } => (ACK, [slot, generation], [0; 4]),
            Kind::Datagram { number, echo, held_us } => (DATAGRAM, [number, echo], [held_us, 0, 0, 0]),
            Kind::Probe => (PROBE, [0; 2], [0; 4]),
            Kind::Wire { slot, generation, hash, data } => {
                (if data { WIRE } else { WIRE_ACK }, [slot, generation], [u32::from(hash), 0, 0, 0])
            }
        };
        SimPacket {
            id,
            sent_at,
            queued: Duration::ZERO,
            flow,
            connection,
            words: [first, second, tag_of_header, a, b, c],
            size,
            kind: tag,
            ecn: ecn as u8,
            encoding: encoding as u8,
            hop: 0,
            way: direction as u8 | if cwr { CWR } else { 0 },
            tunnel: None,
        }
    }

    /// Returns what it carries.
    #[inline]
    pub fn kind(&self) -> Kind {
        let [first, second, third, ..] = self.words;
        match self.kind {
            DATA => Kind::Data { number: first, segment: second, header: self.header() },
            ACK => Kind::Ack { slot: first, generation: second },
            DATAGRAM => Kind::Datagram { number: first, echo: second, held_us: third },
            PROBE => Kind::Probe,
            tag => Kind::Wire { slot: first, generation: second, hash: third as u16, data: tag == WIRE },
        }
    }

    /// Lets routers read what an ACK acknowledges, in segments. The lowest bit of `echo` is kept.
    pub fn set_acknowledgement(&mut self, says: &Acknowledgement) {
        if self.kind != ACK {
            return;
        }
        let blocks = says.blocks.map(|Block { ahead, length }| u32::from(ahead) << 16 | u32::from(length));
        self.words[2] = says.cumulative;
        self.words[3..].copy_from_slice(&blocks);
        let flag = |flag: u8, on: bool| if on { flag } else { 0 };
        self.way |= TELLS | flag(REPLACEABLE, says.replaceable) | flag(ECE, says.echo & 1 != 0);
    }

    /// Lets routers read TCP's sequence number, which counts segments, and timestamp.
    #[inline]
    pub fn set_readable(&mut self) {
        self.way |= TELLS;
    }

    /// Returns whether it carries TCP's CWR.
    #[inline]
    pub fn cwr(&self) -> bool {
        self.way & CWR != 0
    }
}

/// A header as a tag and three numbers.
#[inline]
fn words_of(header: Header) -> [u32; 4] {
    // Few packets have one.
    if matches!(header, Header::None) { [0; 4] } else { words_of_some(header) }
}

#[inline(never)]
fn words_of_some(header: Header) -> [u32; 4] {
    match header {
        Header::None => [0; 4],
        Header::Xcp { cwnd_bytes, rtt_s, feedback_bytes } => {
            [1, cwnd_bytes.to_bits(), rtt_s.to_bits(), feedback_bytes.to_bits()]
        }
        Header::Rate { bps, rtt_s } => [2, bps.to_bits(), rtt_s.to_bits(), 0],
        Header::Load { code } => [3, u32::from(code), 0, 0],
        Header::Flight { pause_ms } => [4, u32::from(pause_ms), 0, 0],
    }
}

/// The header that [`words_of`] made these of.
#[inline]
fn header_of([tag, a, b, c]: [u32; 4]) -> Header {
    // Few packets have one.
    if tag == 0 {
        return Header::None;
    }
    match tag {
        1 => Header::Xcp {
            cwnd_bytes: f32::from_bits(a),
            rtt_s: f32::from_bits(b),
            feedback_bytes: f32::from_bits(c),
        },
        2 => Header::Rate { bps: f32::from_bits(a), rtt_s: f32::from_bits(b) },
        3 => Header::Load { code: a as u8 },
        _ => Header::Flight { pause_ms: a as u16 },
    }
}

impl fmt::Debug for SimPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimPacket")
            .field("id", &self.id)
            .field("sent_at", &self.sent_at)
            .field("queued", &self.queued)
            .field("flow", &self.flow)
            .field("connection", &self.connection)
            .field("kind", &self.kind())
            .field("size", &self.size)
            .field("ecn", &self.ecn())
            .field("encoding", &self.encoding())
            .field("hop", &self.hop)
            .field("direction", &self.direction())
            .field("cwr", &self.cwr())
            .field("tunnel", &self.tunnel)
            .finish()
    }
}

impl Packet for SimPacket {
    #[inline]
    fn id(&self) -> PacketId {
        self.id
    }
    /// Each connection of a flow is a flow to the queues it passes; the first one has the flow's own
    /// identity.
    #[inline]
    fn flow(&self) -> FlowId {
        // Fibonacci hashing spreads the others over the rest of the numbers.
        FlowId(self.flow.0.wrapping_add(self.connection.wrapping_mul(0x9e37_79b1)))
    }
    #[inline]
    fn size(&self) -> u32 {
        u32::from(self.size) + self.tunnel.map_or(0, Tunnel::overhead)
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.ecn)
    }
    #[inline]
    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn as u8;
    }
    #[inline]
    fn encoding(&self) -> Encoding {
        ENCODINGS[usize::from(self.encoding % 8)]
    }
    #[inline]
    fn tunnel(&self) -> Option<Tunnel> {
        self.tunnel
    }
    #[inline]
    fn set_tunnel(&mut self, tunnel: Option<Tunnel>) {
        self.tunnel = tunnel;
    }
    #[inline]
    fn sent_at(&self) -> Option<Time> {
        Some(self.sent_at)
    }
    #[inline]
    fn header(&self) -> Header {
        let [_, _, header @ ..] = self.words;
        if self.kind == DATA { header_of(header) } else { Header::None }
    }
    #[inline]
    fn set_header(&mut self, header: Header) {
        if self.kind == DATA {
            self.words[2..].copy_from_slice(&words_of(header));
        }
    }
    #[inline]
    fn is_ack(&self) -> bool {
        self.kind == ACK
    }
    fn acknowledgement(&self) -> Option<Acknowledgement> {
        if self.way & TELLS == 0 || self.kind != ACK {
            return None;
        }
        let [_, _, cumulative, blocks @ ..] = self.words;
        Some(Acknowledgement {
            cumulative,
            blocks: blocks.map(|block| Block { ahead: (block >> 16) as u16, length: block as u16 }),
            echo: u8::from(self.way & ECE != 0),
            replaceable: self.way & REPLACEABLE != 0,
        })
    }
    fn sequence(&self) -> Option<u32> {
        (self.kind == DATA && self.way & TELLS != 0).then_some(self.words[1])
    }
    fn timestamp(&self) -> Option<u32> {
        // Linux's clock of timestamps has ticks of a millisecond.
        (self.way & TELLS != 0).then(|| (self.sent_at.as_nanos() / 1_000_000) as u32)
    }
    #[inline]
    fn travels_back(&self) -> bool {
        self.way & REVERSE != 0
    }
    #[inline]
    fn is_probe(&self) -> bool {
        self.kind == PROBE
    }
    /// Each flow has a host of its own at either end.
    #[inline]
    fn source_host(&self) -> u32 {
        self.flow.0
    }
    #[inline]
    fn destination_host(&self) -> u32 {
        self.flow.0
    }
    /// Like an IPv4 identification: a counter per connection that starts anywhere. A copy has its original's.
    #[inline]
    fn hash16(&self) -> u16 {
        let [number, _, hash, ..] = self.words;
        if matches!(self.kind, WIRE | WIRE_ACK) {
            return hash as u16;
        }
        let start = Packet::flow(self).0.wrapping_mul(0x9e37_79b1) >> 16;
        number.wrapping_add(start) as u16
    }
}

impl Duplicate for SimPacket {
    fn duplicate(&self, id: PacketId) -> Self {
        SimPacket { id, ..*self }
    }

    fn probe(&self, id: PacketId, now: Time) -> Option<Self> {
        Some(SimPacket {
            id,
            sent_at: now,
            queued: Duration::ZERO,
            connection: OF_PROBES,
            words: [0; 6],
            size: PROBE_SIZE as u16,
            kind: PROBE,
            ecn: Ecn::NotEct as u8,
            encoding: Encoding::None as u8,
            way: self.way & REVERSE,
            tunnel: None,
            ..*self
        })
    }
}

impl Routed for SimPacket {
    #[inline]
    fn endpoint(&self) -> usize {
        self.flow.0 as usize
    }
    #[inline]
    fn direction(&self) -> Direction {
        if self.way & REVERSE == 0 { Direction::Forward } else { Direction::Reverse }
    }
    #[inline]
    fn hop(&self) -> u8 {
        self.hop
    }
    #[inline]
    fn set_hop(&mut self, hop: u8) {
        self.hop = hop;
    }
    #[inline]
    fn add_queued(&mut self, queued: Duration) {
        self.queued += queued;
    }
    #[inline]
    fn queued(&self) -> Duration {
        self.queued
    }
    #[inline]
    fn is_data(&self) -> bool {
        !matches!(self.kind, ACK | WIRE_ACK | PROBE)
    }
    #[inline]
    fn turn_around(&mut self) -> bool {
        let turns = self.kind == PROBE && self.way & TURNED == 0;
        if turns {
            self.way = (self.way ^ REVERSE) | TURNED;
        }
        turns
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers() -> impl Strategy<Value = Header> {
        prop_oneof![
            Just(Header::None),
            any::<[f32; 3]>().prop_map(|[cwnd_bytes, rtt_s, feedback_bytes]| Header::Xcp {
                cwnd_bytes,
                rtt_s,
                feedback_bytes
            }),
            any::<[f32; 2]>().prop_map(|[bps, rtt_s]| Header::Rate { bps, rtt_s }),
            any::<u8>().prop_map(|code| Header::Load { code }),
            any::<u16>().prop_map(|pause_ms| Header::Flight { pause_ms }),
        ]
    }

    fn kinds() -> impl Strategy<Value = Kind> {
        prop_oneof![
            (any::<[u32; 2]>(), headers()).prop_map(|([number, segment], header)| Kind::Data {
                number,
                segment,
                header
            }),
            any::<[u32; 2]>().prop_map(|[slot, generation]| Kind::Ack { slot, generation }),
            any::<[u32; 3]>().prop_map(|[number, echo, held_us]| Kind::Datagram { number, echo, held_us }),
            (any::<[u32; 2]>(), any::<u16>(), any::<bool>())
                .prop_map(|([slot, generation], hash, data)| Kind::Wire { slot, generation, hash, data }),
        ]
    }

    proptest! {
        #[test]
        fn a_packet_is_what_it_was_made_from(
            kind in kinds(), header in headers(), code in 0_usize..7, bits in 0_u8..4, reverse: bool, cwr: bool
        ) {
            let direction = if reverse { Direction::Reverse } else { Direction::Forward };
            let contents = Contents {
                id: PacketId(1),
                sent_at: Time::from_nanos(2),
                kind,
                flow: FlowId(3),
                connection: 0,
                size: 40,
                ecn: Ecn::NotEct,
                encoding: ENCODINGS[code],
                direction,
                cwr,
            };
            let mut packet = SimPacket::new(&contents);
            prop_assert_eq!(packet.kind(), kind);
            prop_assert_eq!((packet.encoding() as usize, packet.direction(), packet.cwr()), (code, direction, cwr));
            packet.set_ecn(Ecn::from_bits(bits));
            prop_assert_eq!(packet.ecn() as u8, bits);
            packet.set_header(header);
            match packet.kind() {
                Kind::Data { header: carried, .. } => prop_assert_eq!((carried, packet.header()), (header, header)),
                other => prop_assert_eq!((other, packet.header()), (kind, Header::None)),
            }
            packet.set_tunnel(Some(Tunnel::new(Ecn::Ce, 20)));
            prop_assert_eq!(packet.size(), 60);
        }
    }
}
