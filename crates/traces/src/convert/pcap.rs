//! Packet captures, classic and pcapng. Each packet counts its length on the wire without the link's header;
//! times are rounded down to milliseconds since the first packet.
//!
//! A capture is of one direction if no address of it both sends and receives. A trace of one that is not, of
//! the whole of it, would be of no link: whoever converts it chooses a direction or a flow.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use brakelight_core::units::Bytes;
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{
    Block, IDB_MAGIC, InterfaceDescriptionBlock, LegacyPcapReader, Linktype, OptionCode, PcapBlockOwned,
    PcapError, PcapNGReader,
};

use self::packet::{Frame, Packet};
use super::{Arrivals, ConvertError, ConvertOptions, Converted, Format, Selection};

mod packet;

/// Large enough for nearly any packet; grows for larger blocks.
const BUFFER: usize = 1 << 18;

/// What a reader may grow to.
const LARGEST_BUFFER: usize = 1 << 26;

/// How many directions a message names.
const MOST_SAID: usize = 4;

const NANOS: u128 = 1_000_000_000;

/// The first four bytes of captures: pcapng, and pcap in either order with times in micro- and nanoseconds.
const MAGIC: [[u8; 4]; 5] = [
    [0x0a, 0x0d, 0x0d, 0x0a],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
];

/// Whether these are the first bytes of a capture.
pub(super) fn is_capture(bytes: &[u8]) -> bool {
    MAGIC.iter().any(|magic| bytes.starts_with(magic))
}

pub(super) fn from_capture(bytes: &[u8], options: &ConvertOptions) -> Result<Converted, ConvertError> {
    let selection = options.selection;
    if matches!(selection, Selection::Up | Selection::Down) {
        let valid = "a capture does not say which end is the user's: give `from:ADDRESS` or `to:ADDRESS`";
        return Err(ConvertError::Direction { selection, valid });
    }
    let (capture, whole) = capture(bytes, selection)?;
    let mut notes = Vec::new();
    if !whole {
        notes.push(format!(
            "the capture breaks off inside packet {}, which was left out",
            capture.packets + 1
        ));
    }
    for (count, what) in [
        (capture.without_time, "carry no time (simple packet blocks)"),
        (capture.other, "are not IP"),
        (if selection == Selection::All { 0 } else { capture.cut }, "were cut before their addresses"),
    ] {
        if count > 0 {
            notes.push(format!("{count} packets {what} and were left out"));
        }
    }
    capture.check()?;
    let (trace, fine) = capture.arrived.trace(options.opportunity, "packet that carries a time")?;
    Ok(Converted::of_opportunities(trace, fine, Format::Pcap, options, notes))
}

/// Returns the senders and receivers of a capture of both directions with their bytes, the most first; all of
/// it where nobody can tell the directions; nothing if there is one direction only.
pub(super) fn selections(bytes: &[u8]) -> Result<Vec<(Selection, Bytes)>, ConvertError> {
    let (capture, _) = capture(bytes, Selection::OneDirection)?;
    match capture.check() {
        Ok(()) => return Ok(Vec::new()),
        Err(ConvertError::BothDirections { .. }) => {}
        Err(_) => return Ok(vec![(Selection::All, capture.bytes(|_| true))]),
    }
    let ends = capture.directions.keys().flat_map(|&(from, to)| [from, to]);
    let ends: BTreeSet<IpAddr> = ends.collect();
    // From one end of two is to the other: each set of packets once.
    let mut known = BTreeSet::new();
    let mut found = Vec::new();
    for selection in ends.iter().copied().map(Selection::From).chain(ends.iter().copied().map(Selection::To))
    {
        let is_of = |&(from, to): &(IpAddr, IpAddr)| match selection {
            Selection::From(address) => from == address,
            Selection::To(address) => to == address,
            _ => false,
        };
        let pairs: Vec<_> = capture.directions.keys().copied().filter(is_of).collect();
        if !pairs.is_empty() && known.insert(pairs) {
            found.push((selection, capture.bytes(is_of)));
        }
    }
    found.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    Ok(found)
}

/// Reads a capture. The second value is `false` if its last packet is cut short.
fn capture(bytes: &[u8], selection: Selection) -> Result<(Capture, bool), ConvertError> {
    const NEITHER: ConvertError = ConvertError::Unrecognized("a pcap nor a pcapng file");
    if !is_capture(bytes) {
        return Err(NEITHER);
    }
    let mut capture = Capture { selection, ..Capture::default() };
    let buffer = BUFFER.min(bytes.len() + 64);
    let whole = if bytes.starts_with(&MAGIC[0]) {
        let mut reader = PcapNGReader::new(buffer, bytes).map_err(|_| NEITHER)?;
        read(&mut reader, &mut capture)?
    } else {
        let mut reader = LegacyPcapReader::new(buffer, bytes).map_err(|_| NEITHER)?;
        read(&mut reader, &mut capture)?
    };
    Ok((capture, whole))
}

/// Reads every block. Returns `false` if the last one is cut short.
fn read(reader: &mut impl PcapReaderIterator, capture: &mut Capture) -> Result<bool, ConvertError> {
    loop {
        let packet = capture.packets + 1;
        let refuse = |problem| Err(ConvertError::Pcap { packet, problem });
        match reader.next() {
            Ok((offset, block)) => {
                capture.take(&block)?;
                reader.consume(offset);
            }
            Err(PcapError::Eof) => return Ok(true),
            Err(PcapError::UnexpectedEof) => return Ok(false),
            Err(PcapError::Incomplete(_)) => {
                if reader.refill().is_err() {
                    return refuse("cannot be read");
                }
            }
            Err(PcapError::BufferTooSmall) => {
                let grown = (reader.data().len() * 2).max(2 * BUFFER);
                if reader.reader_exhausted() {
                    return Ok(false);
                }
                if grown > LARGEST_BUFFER || !reader.grow(grown) {
                    return refuse("claims to be longer than 32 MB");
                }
                if reader.refill().is_err() {
                    return refuse("cannot be read");
                }
            }
            Err(_) => return refuse("is not a packet or block of a capture"),
        }
    }
}

/// How an interface of a capture counts.
#[derive(Clone, Copy)]
struct Interface {
    /// What its frames are.
    link: Linktype,
    /// Ticks per second.
    resolution: u64,
    /// Seconds to add.
    offset_s: i64,
}

/// Packets as they arrived.
#[derive(Default)]
struct Capture {
    selection: Selection,
    interfaces: Vec<Interface>,
    packets: u64,
    without_time: u64,
    /// Frames that hold no IP packet.
    other: u64,
    /// Packets whose addresses were not captured.
    cut: u64,
    /// IP bytes from the first address to the second.
    directions: BTreeMap<(IpAddr, IpAddr), u64>,
    /// The packets that were selected.
    arrived: Arrivals,
}

impl Capture {
    fn take(&mut self, block: &PcapBlockOwned<'_>) -> Result<(), ConvertError> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let resolution = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
                self.interfaces = vec![Interface { link: header.network, resolution, offset_s: 0 }];
                Ok(())
            }
            PcapBlockOwned::Legacy(packet) => {
                let resolution = self.interfaces.first().map_or(1, |interface| interface.resolution);
                let ticks = u128::from(packet.ts_sec) * u128::from(resolution) + u128::from(packet.ts_usec);
                self.arrive(0, ticks, packet.data, packet.origlen)
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                self.interfaces.clear();
                Ok(())
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
                let packet = self.packets + 1;
                let resolution = resolution(description.if_tsresol).ok_or(ConvertError::Pcap {
                    packet,
                    problem: "its interface counts time in less than 2^-63 or 10^-19 s",
                })?;
                let (link, offset_s) = (description.linktype, offset(description));
                self.interfaces.push(Interface { link, resolution, offset_s });
                Ok(())
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let ticks = u128::from(packet.ts_high) << 32 | u128::from(packet.ts_low);
                self.arrive(packet.if_id as usize, ticks, packet.data, packet.origlen)
            }
            PcapBlockOwned::NG(Block::SimplePacket(_)) => {
                self.packets += 1;
                self.without_time += 1;
                Ok(())
            }
            PcapBlockOwned::NG(_) => Ok(()),
        }
    }

    /// Takes a frame of `wire` bytes, of which `data` were captured.
    fn arrive(&mut self, interface: usize, ticks: u128, data: &[u8], wire: u32) -> Result<(), ConvertError> {
        self.packets += 1;
        let refuse = |problem| Err(ConvertError::Pcap { packet: self.packets, problem });
        let Some(&Interface { link, resolution, offset_s }) = self.interfaces.get(interface) else {
            return refuse("names an interface that is not described");
        };
        if !packet::is_known(link) {
            return refuse("its link is none of Ethernet, Linux cooked capture, raw IP and loopback");
        }
        let length = match packet::parse(link, data, wire) {
            Frame::Ip(packet) => {
                let direction = self.directions.entry((packet.source, packet.destination)).or_default();
                *direction += u64::from(packet.length);
                self.selects(&packet).then_some(packet.length)
            }
            Frame::Cut(length) => {
                self.cut += 1;
                (self.selection == Selection::All).then_some(length)
            }
            Frame::Other => {
                self.other += 1;
                None
            }
        };
        if let Some(length) = length {
            let nanos =
                (ticks * NANOS / u128::from(resolution)) as i128 + i128::from(offset_s) * NANOS as i128;
            self.arrived.push(nanos, length);
        }
        Ok(())
    }

    fn selects(&self, packet: &Packet) -> bool {
        match self.selection {
            Selection::From(address) => packet.source == address,
            Selection::To(address) => packet.destination == address,
            Selection::Flow(from, to) => packet.ports.is_some_and(|(source, destination)| {
                SocketAddr::new(packet.source, source) == from
                    && SocketAddr::new(packet.destination, destination) == to
            }),
            _ => true,
        }
    }

    /// The IP bytes of the directions that are asked for.
    fn bytes(&self, wanted: impl Fn(&(IpAddr, IpAddr)) -> bool) -> Bytes {
        Bytes(self.directions.iter().filter(|(pair, _)| wanted(pair)).map(|(_, bytes)| bytes).sum())
    }

    /// Refuses what may be several directions, or none of it.
    fn check(&self) -> Result<(), ConvertError> {
        let directions = || {
            let mut largest: Vec<_> = self.directions.iter().collect();
            largest.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
            let said = largest.iter().take(MOST_SAID);
            let said: Vec<String> =
                said.map(|((from, to), bytes)| format!("{bytes} bytes from {from} to {to}")).collect();
            let rest = largest.len().saturating_sub(MOST_SAID);
            said.join(", ") + &if rest > 0 { format!(" and {rest} others") } else { String::new() }
        };
        match self.selection {
            Selection::OneDirection if self.cut > 0 => Err(ConvertError::NoAddresses(self.cut)),
            Selection::OneDirection => {
                let sources: BTreeSet<&IpAddr> = self.directions.keys().map(|(from, _)| from).collect();
                match self.directions.keys().find(|(_, to)| sources.contains(to)) {
                    Some((from, _)) => {
                        Err(ConvertError::BothDirections { example: *from, directions: directions() })
                    }
                    None => Ok(()),
                }
            }
            selection if self.arrived.is_empty() && !self.directions.is_empty() => {
                Err(ConvertError::NothingSelected { selection, directions: directions() })
            }
            _ => Ok(()),
        }
    }
}

/// Ticks per second: a negative power of 10, or with the high bit of 2.
// pcapng draft 4.2, if_tsresol
fn resolution(code: u8) -> Option<u64> {
    let exponent = u32::from(code & 0x7f);
    if code & 0x80 == 0 { 10_u64.checked_pow(exponent) } else { 1_u64.checked_shl(exponent) }
}

/// Seconds to add to every time of the interface, in the byte order of its section.
// pcapng draft 4.2, if_tsoffset
fn offset(description: &InterfaceDescriptionBlock<'_>) -> i64 {
    let option = description.options.iter().find(|option| option.code == OptionCode::IfTsoffset);
    let Some(value) = option.and_then(|option| <[u8; 8]>::try_from(option.value.get(..8)?).ok()) else {
        return 0;
    };
    if description.block_type == IDB_MAGIC { i64::from_le_bytes(value) } else { i64::from_be_bytes(value) }
}
