//! What queues see of an IP packet: a small value with its size, ECN bits, flow and hash, read from the
//! header once, and the rewriting of the ECN field in the bytes when the packet leaves.
//!
//! | of the packet | read from |
//! |---|---|
//! | size | IPv4's total length, IPv6's payload length and 40 |
//! | ECN | the two low bits of IPv4's type of service, of IPv6's traffic class (rfc3168 5) |
//! | DSCP | the six high bits of IPv4's type of service, of IPv6's traffic class (rfc2474 3) |
//! | flow | hash of addresses, protocol and, except for fragments and protocols without them, ports |
//! | hosts | hashes of the addresses |
//! | acknowledgement | TCP's number, flags and options (rfc9293 3.1) |
//! | `hash16`: 16 bits that differ between packets | IPv4's identification, or [a hash](#hash) |
//!
//! # Hash
//!
//! BMCC compares loads with a hash of 16 bits that router and receiver compute alike. IPv4's identification
//! is one where the sender counts it up, as Linux 6.12 ip.h, ip_select_ident_segs, does for TCP; IPv6 has
//! none, and IPv4 need not have one in packets that may not be fragmented (rfc6864 4.1): they come with 0.
//! IPv6's flow label is the same in all packets of a flow. So the hash is the identification unless that is 0
//! or the protocol is UDP, whose receivers are not told it, and otherwise [`payload_hash16`] of bytes that a
//! router on the way does not change: of TCP the sequence and acknowledgement numbers, of UDP the first 32
//! bytes of the datagram, of anything else the first 32 bytes behind the IP header.

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::packet::{
    Acknowledgement, Block, Duplicate, FlowId, Packet, PacketId, Tunnel, payload_hash16,
};
use brakelight_core::time::Time;

use crate::classify::Classifier;

/// The metadata of an IP packet that queues need. Its bytes are in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpPacket {
    /// Identity, unique within one direction of a run.
    pub id: PacketId,
    /// When it was read.
    pub arrived: Time,
    /// The slot its bytes lie in.
    pub slot: u32,
    /// What its header says.
    pub header: Header,
    /// How its flow's ECN bits are read, as the emulator is configured.
    pub encoding: Encoding,
    /// The outer header that a tunnel on the path has added.
    pub tunnel: Option<Tunnel>,
}

// Budget: a packet is at most one cache line.
const _: () = assert!(size_of::<IpPacket>() <= 64);

/// Fields of a packet's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Hash of the 5-tuple.
    pub flow: FlowId,
    /// The packet's length, header included: bytes.
    pub size: u32,
    /// 16-bit hash of the packet; see the module documentation.
    pub hash16: u16,
    /// The ECN field.
    pub ecn: Ecn,
    /// The differentiated services codepoint.
    pub dscp: u8,
    /// Hashes of the addresses.
    pub hosts: Hosts,
    /// What TCP acknowledges.
    pub acknowledges: Option<TcpAck>,
}

/// Hashes of a packet's addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hosts {
    /// Of the source.
    pub source: u32,
    /// Of the destination.
    pub destination: u32,
}

/// What a TCP header acknowledges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpAck {
    /// The acknowledgement number.
    pub number: u32,
    /// ECE and CWR, as the two low bits.
    pub echo: u8,
    /// Whether the packet carries nothing else: no data.
    pub pure: bool,
    /// Whether a newer ACK may replace it: no flags but these, no options but padding and timestamps.
    pub replaceable: bool,
}

/// Why bytes are not a valid IP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// Neither IPv4 nor IPv6.
    #[error("the IP version is {version}, not 4 or 6")]
    Version {
        /// The first four bits.
        version: u8,
    },
    /// Fewer bytes than the header says, or than a header has.
    #[error("the packet has {have} bytes and should have {need}")]
    Truncated {
        /// The bytes there are.
        have: usize,
        /// The bytes there should be.
        need: usize,
    },
    /// IPv4's header length is below 20 bytes or beyond the packet.
    #[error("the header length is {bytes} bytes, not 20 or more within the packet")]
    HeaderLength {
        /// The length given.
        bytes: usize,
    },
}

impl Packet for IpPacket {
    #[inline]
    fn id(&self) -> PacketId {
        self.id
    }
    #[inline]
    fn flow(&self) -> FlowId {
        self.header.flow
    }
    #[inline]
    fn size(&self) -> u32 {
        self.header.size + self.tunnel.map_or(0, Tunnel::overhead)
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
    fn ecn(&self) -> Ecn {
        self.header.ecn
    }
    #[inline]
    fn set_ecn(&mut self, ecn: Ecn) {
        self.header.ecn = ecn;
    }
    #[inline]
    fn encoding(&self) -> Encoding {
        self.encoding
    }
    #[inline]
    fn is_ack(&self) -> bool {
        self.header.acknowledges.is_some_and(|ack| ack.pure)
    }
    fn acknowledgement(&self) -> Option<Acknowledgement> {
        let TcpAck { number, echo, replaceable, .. } = self.header.acknowledges?;
        Some(Acknowledgement { cumulative: number, blocks: [Block::default(); 3], echo, replaceable })
    }
    #[inline]
    fn source_host(&self) -> u32 {
        self.header.hosts.source
    }
    #[inline]
    fn destination_host(&self) -> u32 {
        self.header.hosts.destination
    }
    #[inline]
    fn dscp(&self) -> u8 {
        self.header.dscp
    }
    #[inline]
    fn hash16(&self) -> u16 {
        self.header.hash16
    }
}

impl Duplicate for IpPacket {
    fn duplicate(&self, id: PacketId) -> Self {
        IpPacket { id, ..*self }
    }
}

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
/// Protocols whose first four bytes are two ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
pub(crate) const WITH_PORTS: [u8; 5] = [TCP, UDP, 33, 132, 136];

const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;

/// IPv4's "more fragments" and its fragment offset.
const FRAGMENT: u16 = 0x3fff;

/// What lies behind the IP header.
pub(crate) struct Upper<'a> {
    pub(crate) protocol: u8,
    /// The packet is a part of a larger one.
    pub(crate) fragment: bool,
    /// IPv4's identification, or 0.
    identification: u16,
    pub(crate) bytes: &'a [u8],
}

impl Header {
    /// Reads the header of the packet that `bytes` begin with; bytes behind it are padding and do not count.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        match bytes.first().map(|first| first >> 4) {
            Some(4) => Self::read_v4(bytes),
            Some(6) => Self::read_v6(bytes),
            Some(version) => Err(Malformed::Version { version }),
            None => Err(Malformed::Truncated { have: 0, need: IPV4_HEADER }),
        }
    }

    // rfc791 3.1
    fn read_v4(bytes: &[u8]) -> Result<Self, Malformed> {
        let Some(header) = bytes.first_chunk::<IPV4_HEADER>() else {
            return Err(Malformed::Truncated { have: bytes.len(), need: IPV4_HEADER });
        };
        let size = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let start = usize::from(header[0] & 0x0f) * 4;
        let packet = bytes.get(..size).ok_or(Malformed::Truncated { have: bytes.len(), need: size })?;
        let behind = packet.get(start..).filter(|_| start >= IPV4_HEADER);
        let upper = Upper {
            protocol: header[9],
            fragment: u16::from_be_bytes([header[6], header[7]]) & FRAGMENT != 0,
            identification: u16::from_be_bytes([header[4], header[5]]),
            bytes: behind.ok_or(Malformed::HeaderLength { bytes: start })?,
        };
        let addresses = mix(SEED, u64_of(&header[12..20]));
        let host = |address: &[u8]| mix(SEED, u64_of(address));
        let hosts = Hosts::of(host(&header[12..16]), host(&header[16..20]));
        Ok(Header { hosts, ..Self::of(size, header[1], addresses, &upper) })
    }

    // rfc8200 3
    fn read_v6(bytes: &[u8]) -> Result<Self, Malformed> {
        let Some(header) = bytes.first_chunk::<IPV6_HEADER>() else {
            return Err(Malformed::Truncated { have: bytes.len(), need: IPV6_HEADER });
        };
        let size = IPV6_HEADER + usize::from(u16::from_be_bytes([header[4], header[5]]));
        let packet = bytes.get(..size).ok_or(Malformed::Truncated { have: bytes.len(), need: size })?;
        let addresses = header[8..].chunks_exact(8).fold(SEED, |hash, part| mix(hash, u64_of(part)));
        let upper = skip_extensions(header[6], &packet[IPV6_HEADER..]);
        let host = |address: &[u8]| mix(mix(SEED, u64_of(&address[..8])), u64_of(&address[8..]));
        let hosts = Hosts::of(host(&header[8..24]), host(&header[24..40]));
        let class = header[0] << 4 | header[1] >> 4;
        Ok(Header { hosts, ..Self::of(size, class, addresses, &upper) })
    }

    /// `class` is the type of service, or the traffic class.
    fn of(size: usize, class: u8, addresses: u64, upper: &Upper<'_>) -> Self {
        let ports = match upper.bytes.first_chunk::<4>() {
            // Only a packet's first fragment has the ports: without them all its fragments are of one flow.
            Some(ports) if !upper.fragment && WITH_PORTS.contains(&upper.protocol) => {
                u32::from_be_bytes(*ports)
            }
            _ => 0,
        };
        let flow = mix(addresses, u64::from(ports) << 8 | u64::from(upper.protocol));
        let hash16 = match upper.identification {
            identification if identification != 0 && upper.protocol != UDP => identification,
            _ => payload_hash16(upper.telling()),
        };
        Header {
            flow: FlowId((flow >> 32) as u32),
            size: size as u32,
            hash16,
            ecn: Ecn::from_bits(class),
            dscp: class >> 2,
            hosts: Hosts::default(),
            acknowledges: if upper.protocol == TCP && !upper.fragment {
                TcpAck::read(upper.bytes)
            } else {
                None
            },
        }
    }
}

impl Hosts {
    fn of(source: u64, destination: u64) -> Self {
        Hosts { source: (source >> 32) as u32, destination: (destination >> 32) as u32 }
    }
}

impl TcpAck {
    /// Reads the header that a segment begins with; `None` if it acknowledges nothing, or opens a connection.
    fn read(segment: &[u8]) -> Option<Self> {
        const HEADER: usize = 20;
        const SYN: u8 = 0x02;
        const ACK: u8 = 0x10;
        const ECE_AND_CWR: u8 = 0xc0;
        let header = segment.first_chunk::<HEADER>()?;
        let flags = header[13];
        let length = 4 * usize::from(header[12] >> 4);
        let options = segment.get(HEADER..length)?;
        if flags & (ACK | SYN) != ACK {
            return None;
        }
        Some(TcpAck {
            number: u32::from_be_bytes([header[8], header[9], header[10], header[11]]),
            echo: (flags & ECE_AND_CWR) >> 6,
            pure: segment.len() == length,
            // The low bits beside the length are reserved, or part of Accurate ECN's counter.
            replaceable: flags & !ECE_AND_CWR == ACK && header[12] & 0x0f == 0 && only_timestamps(options),
        })
    }
}

/// Whether TCP options are padding and timestamps alone (rfc9293 3.1, rfc7323 3.2).
fn only_timestamps(mut options: &[u8]) -> bool {
    const END: u8 = 0;
    const NOTHING: u8 = 1;
    const TIMESTAMPS: u8 = 8;
    loop {
        options = match options {
            [] | [END, ..] => return true,
            [NOTHING, rest @ ..] => rest,
            [TIMESTAMPS, 10, rest @ ..] if rest.len() >= 8 => &rest[8..],
            _ => return false,
        };
    }
}

/// Returns how many bytes the headers of IP and of TCP or UDP take in the packet that `bytes` begin with; 0
/// where it is no such packet.
pub fn headers(bytes: &[u8]) -> u32 {
    let ip = match bytes.first().map(|first| (first >> 4, first & 15)) {
        Some((4, words)) => 4 * usize::from(words),
        Some((6, _)) => 40,
        _ => return 0,
    };
    let protocol = if ip == 40 && bytes[0] >> 4 == 6 { bytes.get(6) } else { bytes.get(9) };
    let upper = match protocol {
        // rfc9293 3.1: the data offset, in words of four bytes
        Some(&TCP) => bytes.get(ip + 12).map_or(0, |offset| 4 * usize::from(offset >> 4)),
        Some(&UDP) => 8,
        _ => 0,
    };
    (ip + upper) as u32
}

impl<'a> Upper<'a> {
    /// Bytes that differ between packets and that no router changes.
    fn telling(&self) -> &'a [u8] {
        let whole = !self.fragment;
        let range = match self.protocol {
            // rfc9293 3.1: sequence and acknowledgement number
            TCP if whole => 4..12,
            // rfc768: behind ports, length and checksum
            UDP if whole => 8..40,
            _ => 0..32,
        };
        let end = range.end.min(self.bytes.len());
        self.bytes.get(range.start..end).unwrap_or(&[])
    }
}

/// Finds what lies behind IPv6's extension headers (rfc8200 4). What ends within one of them has no ports.
pub(crate) fn skip_extensions(first: u8, bytes: &[u8]) -> Upper<'_> {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT_HEADER: u8 = 44;
    const AUTHENTICATION: u8 = 51;
    const DESTINATION: u8 = 60;
    const MOBILITY: u8 = 135;
    let mut upper = Upper { protocol: first, fragment: false, identification: 0, bytes };
    loop {
        let Some(&[next, length]) = upper.bytes.first_chunk::<2>() else { return upper };
        let length = match upper.protocol {
            HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY => (usize::from(length) + 1) * 8,
            // rfc4302 2.2: in words of four bytes, less two
            AUTHENTICATION => (usize::from(length) + 2) * 4,
            FRAGMENT_HEADER => 8,
            _ => return upper,
        };
        let Some(behind) = upper.bytes.get(length..) else { return upper };
        if upper.protocol == FRAGMENT_HEADER {
            // rfc8200 4.5: an offset of 13 bits, two reserved, "more fragments"
            let offset = u16::from_be_bytes([upper.bytes[2], upper.bytes[3]]);
            upper.fragment = offset & 0xfff9 != 0;
        }
        upper.protocol = next;
        upper.bytes = behind;
        if upper.fragment {
            return upper;
        }
    }
}

/// Where the mixing of a flow's hash begins: any odd number.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// One round of SplitMix64's finalizer over what was and what comes.
fn mix(hash: u64, value: u64) -> u64 {
    let mut mixed = hash ^ value;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn u64_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// Writes `ecn` into a packet that [`Header::read`] accepted, and updates IPv4's checksum. Returns `false` if
/// the packet had that ECN field already.
#[inline]
pub fn write_ecn(bytes: &mut [u8], ecn: Ecn) -> bool {
    let bits = ecn as u8;
    if bytes[0] >> 4 == 6 {
        let old = bytes[1];
        bytes[1] = old & !0x30 | bits << 4;
        return bytes[1] != old;
    }
    let old = bytes[1];
    let new = old & !0b11 | bits;
    if new == old {
        return false;
    }
    bytes[1] = new;
    // rfc1624 eq.3: HC' = ~(~HC + ~m + m'), of the word that holds the type of service. The other byte of the
    // word is the same before and after.
    let word = |low: u8| u32::from(u16::from_be_bytes([bytes[0], low]));
    let checksum = u16::from_be_bytes([bytes[10], bytes[11]]);
    let sum = u32::from(!checksum) + u32::from(!(word(old) as u16)) + word(new);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    bytes[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    true
}

/// How the ECN bits of one direction's packets are read, which depends on the queue they go to.
#[derive(Clone, Debug)]
pub struct Reading {
    encoding: Encoding,
    own: Own,
}

/// Which ECN-capable packets have the queue's own encoding.
#[derive(Clone, Debug)]
enum Own {
    /// All of them.
    All,
    /// Those of flows that were seen to accelerate, a bit for each by its hash.
    Accelerating(Box<[u64]>),
    /// Those whose header says so.
    Header(Classifier),
}

impl Reading {
    /// Flows that are told apart, a power of two. Two that fall together are taken for one; of a thousand
    /// flows one in 64 shares.
    const FLOWS: usize = 1 << 16;

    /// All ECN-capable packets use `encoding`.
    pub fn all(encoding: Encoding) -> Self {
        Reading { encoding, own: Own::All }
    }

    /// Packets that `classifier` finds use `encoding`, other ECN-capable ones classic ECN. By
    /// [`Classifier::Accelerates`] a flow uses classic ECN until it has sent ECT(1): classic senders never
    /// set ECT(1), and ABC's set it on all data (abc20 4.2), although an earlier router may have turned some
    /// into ECT(0).
    pub fn of_those(classifier: Classifier, encoding: Encoding) -> Self {
        let own = match classifier {
            Classifier::Accelerates => Own::Accelerating(vec![0; Self::FLOWS / 64].into()),
            classifier => Own::Header(classifier),
        };
        Reading { encoding, own }
    }

    /// Returns the encoding of an IP packet with this header.
    #[inline]
    pub fn of(&mut self, header: &Header, packet: &[u8]) -> Encoding {
        if header.ecn == Ecn::NotEct {
            return Encoding::None;
        }
        if self.encoding == Encoding::L4s {
            // rfc9331 4.1: ECT(1) and CE
            return if header.ecn == Ecn::Ect0 { Encoding::Classic } else { Encoding::L4s };
        }
        let own = match &mut self.own {
            Own::All => true,
            Own::Header(classifier) => classifier.by_header(packet),
            Own::Accelerating(seen) => {
                let place = header.flow.0 as usize % Self::FLOWS;
                let (word, bit) = (&mut seen[place / 64], 1 << (place % 64));
                if header.ecn == Ecn::Ect1 {
                    *word |= bit;
                }
                *word & bit != 0
            }
        };
        if own { self.encoding } else { Encoding::Classic }
    }
}

#[cfg(test)]
mod tests;
