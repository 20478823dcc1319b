//! The IP packet in a captured frame: its addresses, ports and length.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pcap_parser::Linktype;

/// What a captured frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// An IP packet.
    Ip(Packet),
    /// An IP packet whose addresses were not captured, and its length in bytes.
    Cut(u32),
    /// Something else: ARP, a neighbour's announcement.
    Other,
}

/// An IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    /// Of the source and of the destination, where there are any.
    pub(super) ports: Option<(u16, u16)>,
    /// In bytes, with its headers.
    pub(super) length: u32,
}

/// Returns `true` if frames of this link are understood.
pub(super) fn is_known(link: Linktype) -> bool {
    header(link).is_some()
}

/// How the header of a link is laid out.
#[derive(Clone, Copy)]
struct Header {
    /// In bytes.
    length: usize,
    /// Where its EtherType is; without one, the packet's own version tells.
    protocol: Option<usize>,
}

/// <https://www.tcpdump.org/linktypes.html>; 12 and 14 are raw IP on the BSDs.
fn header(link: Linktype) -> Option<Header> {
    let header = |length, protocol| Some(Header { length, protocol });
    match link {
        Linktype::ETHERNET => header(14, Some(12)),
        Linktype::LINUX_SLL => header(16, Some(14)),
        Linktype::LINUX_SLL2 => header(20, Some(0)),
        Linktype::NULL | Linktype::LOOP => header(4, None),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 | Linktype(12) | Linktype(14) => header(0, None),
        _ => None,
    }
}

const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const PPPOE: u16 = 0x8864;

/// Returns what a frame of `wire` bytes holds, of which `data` were captured. The link must be known.
pub(super) fn parse(link: Linktype, data: &[u8], wire: u32) -> Frame {
    let Some(Header { length, protocol }) = header(link) else { return Frame::Other };
    let half = |at: usize| Some(u16::from_be_bytes([*data.get(at)?, *data.get(at + 1)?]));
    let mut begin = length;
    if let Some(mut at) = protocol {
        // A frame cut within its own header may hold anything.
        let Some(mut kind) = half(at) else { return Frame::Cut(wire.saturating_sub(begin as u32)) };
        while VLAN.contains(&kind) && begin < length + 16 {
            (at, begin) = (begin + 2, begin + 4);
            let Some(inner) = half(at) else { return Frame::Cut(wire.saturating_sub(begin as u32)) };
            kind = inner;
        }
        if kind == PPPOE {
            begin += 8;
            kind = if half(begin - 2) == Some(0x21) { 0x0800 } else { 0x86dd };
        }
        if kind != 0x0800 && kind != 0x86dd {
            return Frame::Other;
        }
    }
    let rest = wire.saturating_sub(begin as u32);
    match data.get(begin..) {
        Some(packet) if !packet.is_empty() => ip(packet, rest),
        _ => Frame::Cut(rest),
    }
}

/// The IP packet that begins `data`, in a frame with `rest` bytes for it.
fn ip(data: &[u8], rest: u32) -> Frame {
    let word = |at: usize| u16::from_be_bytes([data[at], data[at + 1]]);
    let (source, destination, claimed, protocol, header) = match data[0] >> 4 {
        4 if data.len() >= 20 => {
            let address = |at: usize| -> [u8; 4] { data[at..at + 4].try_into().expect("four bytes") };
            // Only the first fragment begins with ports.
            let protocol = if word(6) & 0x1fff == 0 { data[9] } else { 0 };
            let (source, destination) = (Ipv4Addr::from(address(12)), Ipv4Addr::from(address(16)));
            let header = usize::from(data[0] & 0x0f) * 4;
            (IpAddr::from(source), IpAddr::from(destination), u32::from(word(2)), protocol, header)
        }
        6 if data.len() >= 40 => {
            let address = |at: usize| -> [u8; 16] { data[at..at + 16].try_into().expect("sixteen bytes") };
            let (source, destination) = (Ipv6Addr::from(address(8)), Ipv6Addr::from(address(24)));
            let claimed = if word(4) == 0 { 0 } else { u32::from(word(4)) + 40 };
            (IpAddr::from(source), IpAddr::from(destination), claimed, data[6], 40)
        }
        4 | 6 => return Frame::Cut(rest),
        _ => return Frame::Other,
    };
    // TCP, UDP, DCCP, SCTP.
    let has_ports = [6, 17, 33, 132].contains(&protocol) && header >= 20;
    let ports = data.get(header..header + 4).filter(|_| has_ports);
    let ports = ports
        .map(|ports| (u16::from_be_bytes([ports[0], ports[1]]), u16::from_be_bytes([ports[2], ports[3]])));
    // Ethernet pads short frames; a host that joins packets may leave a length of 0.
    let length = if claimed == 0 { rest } else { claimed.min(rest) };
    Frame::Ip(Packet { source, destination, ports, length })
}

#[cfg(test)]
mod tests;
