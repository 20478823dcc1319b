//! Packet captures, classic and pcapng. Each packet counts its length on the wire without the link's header;
//! times are rounded down to milliseconds since the first packet.

use brakelight_core::path::trace::Trace;
use brakelight_core::units::Bytes;
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{
    Block, IDB_MAGIC, InterfaceDescriptionBlock, LegacyPcapReader, Linktype, OptionCode, PcapBlockOwned,
    PcapError, PcapNGReader,
};

use super::{ConvertError, Converted, check_size};

/// Large enough for nearly any packet; grows for larger blocks.
const BUFFER: usize = 1 << 18;

/// What a reader may grow to.
const LARGEST_BUFFER: usize = 1 << 26;

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

pub(super) fn from_capture(bytes: &[u8], opportunity: Bytes) -> Result<Converted, ConvertError> {
    const NEITHER: ConvertError = ConvertError::Unrecognized("a pcap nor a pcapng file");
    if !is_capture(bytes) {
        return Err(NEITHER);
    }
    let mut arrivals = Arrivals::default();
    let buffer = BUFFER.min(bytes.len() + 64);
    let whole = if bytes.starts_with(&MAGIC[0]) {
        let mut reader = PcapNGReader::new(buffer, bytes).map_err(|_| NEITHER)?;
        read(&mut reader, &mut arrivals)?
    } else {
        let mut reader = LegacyPcapReader::new(buffer, bytes).map_err(|_| NEITHER)?;
        read(&mut reader, &mut arrivals)?
    };
    let mut notes = Vec::new();
    if !whole {
        notes.push(format!(
            "the capture breaks off inside packet {}, which was left out",
            arrivals.packets + 1
        ));
    }
    if arrivals.without_time > 0 {
        notes.push(format!(
            "{} packets carry no time (simple packet blocks) and were left out",
            arrivals.without_time
        ));
    }
    Ok(Converted { trace: arrivals.trace(opportunity)?, notes })
}

/// Reads every block; false when the last one is cut short.
fn read(reader: &mut impl PcapReaderIterator, arrivals: &mut Arrivals) -> Result<bool, ConvertError> {
    loop {
        let packet = arrivals.packets + 1;
        let refuse = |problem| Err(ConvertError::Pcap { packet, problem });
        match reader.next() {
            Ok((offset, block)) => {
                arrivals.take(&block)?;
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
    /// Bytes of the link's header.
    header: u32,
    /// Ticks per second.
    resolution: u64,
    /// Seconds to add.
    offset_s: i64,
}

/// Packets as they arrived.
#[derive(Default)]
struct Arrivals {
    interfaces: Vec<Interface>,
    packets: u64,
    without_time: u64,
    /// Time in nanoseconds, IP bytes.
    arrived: Vec<(i128, u32)>,
}

impl Arrivals {
    fn take(&mut self, block: &PcapBlockOwned<'_>) -> Result<(), ConvertError> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let resolution = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
                let header = link_header(header.network);
                self.interfaces = vec![Interface { header, resolution, offset_s: 0 }];
                Ok(())
            }
            PcapBlockOwned::Legacy(packet) => {
                let resolution = self.interfaces.first().map_or(1, |interface| interface.resolution);
                let ticks = u128::from(packet.ts_sec) * u128::from(resolution) + u128::from(packet.ts_usec);
                self.arrive(0, ticks, packet.origlen)
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
                let (header, offset_s) = (link_header(description.linktype), offset(description));
                self.interfaces.push(Interface { header, resolution, offset_s });
                Ok(())
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let ticks = u128::from(packet.ts_high) << 32 | u128::from(packet.ts_low);
                self.arrive(packet.if_id as usize, ticks, packet.origlen)
            }
            PcapBlockOwned::NG(Block::SimplePacket(_)) => {
                self.packets += 1;
                self.without_time += 1;
                Ok(())
            }
            PcapBlockOwned::NG(_) => Ok(()),
        }
    }

    fn arrive(&mut self, interface: usize, ticks: u128, length: u32) -> Result<(), ConvertError> {
        self.packets += 1;
        let Some(&Interface { header, resolution, offset_s }) = self.interfaces.get(interface) else {
            return Err(ConvertError::Pcap {
                packet: self.packets,
                problem: "names an interface that is not described",
            });
        };
        let nanos = (ticks * NANOS / u128::from(resolution)) as i128 + i128::from(offset_s) * NANOS as i128;
        self.arrived.push((nanos, length.saturating_sub(header)));
        Ok(())
    }

    fn trace(mut self, opportunity: Bytes) -> Result<Trace, ConvertError> {
        // Several queues of one adapter may deliver slightly out of order.
        self.arrived.sort_by_key(|(nanos, _)| *nanos);
        let (Some(&(first, _)), Some(&(last, _))) = (self.arrived.first(), self.arrived.last()) else {
            return Err(ConvertError::Empty("packet that carries a time"));
        };
        let total: f64 = self.arrived.iter().map(|(_, bytes)| f64::from(*bytes)).sum();
        check_size((last - first) as f64 * 1e-9, total / opportunity.as_f64())?;
        if total < opportunity.as_f64() {
            return Err(ConvertError::Silent(opportunity));
        }
        let mut bytes = 0;
        let stamps = self.arrived.iter().flat_map(|&(nanos, length)| {
            bytes += u64::from(length);
            let due = bytes / opportunity.0;
            bytes %= opportunity.0;
            std::iter::repeat_n(((nanos - first) / 1_000_000) as u64, due as usize)
        });
        Ok(Trace::from_millis(stamps)?)
    }
}

/// Bytes of the link's header: the rest of a frame is the IP packet.
fn link_header(link: Linktype) -> u32 {
    match link {
        Linktype::ETHERNET => 14,
        Linktype::LINUX_SLL => 16,
        Linktype::LINUX_SLL2 => 20,
        Linktype::NULL | Linktype::LOOP => 4,
        _ => 0,
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
