//! Large buffers of TCP and the packets in them: what the sending kernel hands over in one read is cut into
//! its packets, and packets that leave in the same instant may be handed over in one write.
//!
//! A kernel that sends builds up to 64 KiB at a time and cuts at the last moment. Cutting here instead
//! changes nothing on the path: each packet enters the link, is queued, marked, dropped and delivered by
//! itself. It saves the sender's kernel and the reading thread most of their work.
//!
//! Joining is what a network card does for a receiver at high rates. It is done as there only for packets
//! that a receiver cannot tell from one buffer: successive data of one connection with the same header but
//! for its numbers, and here never for packets that are ECN-capable, since a receiver would count one mark
//! where there were several.
//!
//! ```text
//! virtio_net_hdr, 10 bytes in the machine's own order                              virtio 5.1.6
//!   flags 1: a checksum is open     gso_type 1, 4: TCP over IPv4, over IPv6
//!   hdr_len, gso_size: of the packets inside
//!   csum_start: where TCP begins    csum_offset: where in it the checksum goes
//! ```

/// Bytes of the virtio header before each packet.
pub const HEAD: usize = 10;

const CHECKSUM_OPEN: u8 = 1;
const PLAIN: u8 = 0;
const TCP_OVER_4: u8 = 1;
const TCP_OVER_6: u8 = 4;
/// Flag of the segmentation type: the first packet carries CWR.
const WITH_CWR: u8 = 0x80;

const TCP: u8 = 6;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
/// Where TCP's checksum is in its header.
const TCP_CHECKSUM: usize = 16;
const FIN: u8 = 0x01;
const PUSH: u8 = 0x08;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;

/// The longest headers that are handled, in bytes: IPv6, extension headers, and TCP with all options.
pub const LONGEST: usize = 192;

/// Where things are in a packet: offsets count from the word before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    six: bool,
    /// Where TCP begins.
    tcp: usize,
    /// Where the data begins.
    data: usize,
}

impl Place {
    /// Of a TCP packet whose checksum is open.
    fn find(bytes: &[u8]) -> Option<Self> {
        let six = bytes.get(HEAD)? >> 4 == 6;
        let tcp = HEAD + usize::from(u16::from_ne_bytes([bytes[6], bytes[7]]));
        let least = HEAD + if six { IPV6_HEADER } else { IPV4_HEADER };
        if bytes[0] & CHECKSUM_OPEN == 0 || tcp < least {
            return None;
        }
        // IPv4 says the same once more, and its checksum is over as many bytes.
        if !six && tcp != HEAD + usize::from(bytes[HEAD] & 0x0f) * 4 {
            return None;
        }
        let data = tcp + usize::from(bytes.get(tcp + 12)? >> 4) * 4;
        (data >= tcp + 20 && data <= bytes.len() && data <= LONGEST).then_some(Place { six, tcp, data })
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The one's complement sum of 16-bit words (rfc1071).
fn sum(bytes: &[u8], start: u32) -> u16 {
    let mut sum = bytes.chunks(2).fold(start, |sum, pair| {
        sum + u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))
    });
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Writes into the headers in `bytes` that `length` bytes of the packet follow the word: lengths, IPv4's
/// checksum, and for TCP's the sum of the pseudo header, which is what stands there while it is open.
fn put_length(bytes: &mut [u8], place: Place, length: usize) {
    let tcp_length = (HEAD + length - place.tcp) as u32;
    let addresses = if place.six {
        put_u16(bytes, HEAD + 4, (length - IPV6_HEADER) as u16);
        HEAD + 8..HEAD + 40
    } else {
        put_u16(bytes, HEAD + 2, length as u16);
        put_u16(bytes, HEAD + 10, 0);
        let end = HEAD + usize::from(bytes[HEAD] & 0x0f) * 4;
        let checksum = !sum(&bytes[HEAD..end], 0);
        put_u16(bytes, HEAD + 10, checksum);
        HEAD + 12..HEAD + 20
    };
    let pseudo = sum(&bytes[addresses], tcp_length + u32::from(TCP));
    put_u16(bytes, place.tcp + TCP_CHECKSUM, pseudo);
}

/// The word before a packet, or before a buffer whose packets carry `size` bytes each.
fn put_word(bytes: &mut [u8], place: Place, size: Option<u16>) {
    let kind = match size {
        None => PLAIN,
        Some(_) if place.six => TCP_OVER_6,
        Some(_) => TCP_OVER_4,
    };
    let length = if size.is_some() { (place.data - HEAD) as u16 } else { 0 };
    bytes[0] = CHECKSUM_OPEN;
    bytes[1] = kind;
    bytes[2..4].copy_from_slice(&length.to_ne_bytes());
    bytes[4..6].copy_from_slice(&size.unwrap_or(0).to_ne_bytes());
    bytes[6..8].copy_from_slice(&((place.tcp - HEAD) as u16).to_ne_bytes());
    bytes[8..10].copy_from_slice(&(TCP_CHECKSUM as u16).to_ne_bytes());
}

/// A buffer that holds the data of several packets.
#[derive(Clone, Debug)]
pub struct Large {
    place: Place,
    /// The headers as read, including the virtio header.
    headers: [u8; LONGEST],
    /// Bytes of data in each packet but the last.
    size: usize,
    /// Bytes of data in all.
    data: usize,
}

/// Returns whether the virtio header says that a buffer holds several packets.
pub fn is_large(bytes: &[u8]) -> bool {
    bytes.get(1).is_some_and(|kind| kind & !WITH_CWR != PLAIN)
}

impl Large {
    /// Reads the headers of a buffer of `length` bytes, including the virtio header; `bytes` is its start.
    /// `None` if it cannot be segmented.
    pub fn read(bytes: &[u8], length: usize) -> Option<Self> {
        let place = Place::find(bytes)?;
        let kind = if place.six { TCP_OVER_6 } else { TCP_OVER_4 };
        let size = usize::from(u16::from_ne_bytes([bytes[4], bytes[5]]));
        if bytes[1] & !WITH_CWR != kind || size == 0 || length <= place.data {
            return None;
        }
        let mut headers = [0; LONGEST];
        headers[..place.data].copy_from_slice(&bytes[..place.data]);
        Some(Large { place, headers, size, data: length - place.data })
    }

    /// Returns the number of packets.
    pub fn packets(&self) -> usize {
        self.data.div_ceil(self.size)
    }

    /// Returns the range of packet `index`'s data in the buffer.
    pub fn data_of(&self, index: usize) -> core::ops::Range<usize> {
        let start = self.place.data + index * self.size;
        start..(start + self.size).min(self.place.data + self.data)
    }

    /// Writes the headers of packet `index`, including the virtio header, to the start of `bytes`. Returns
    /// the offset at which its data follows.
    pub fn write_headers(&self, index: usize, bytes: &mut [u8]) -> usize {
        let place = self.place;
        let headers = &mut bytes[..place.data];
        headers.copy_from_slice(&self.headers[..place.data]);
        if !place.six {
            // Each packet has an identification of its own, counted up.
            put_u16(headers, HEAD + 4, u16_at(headers, HEAD + 4).wrapping_add(index as u16));
        }
        let sequence = u32_at(headers, place.tcp + 4).wrapping_add((index * self.size) as u32);
        headers[place.tcp + 4..place.tcp + 8].copy_from_slice(&sequence.to_be_bytes());
        if index > 0 {
            // rfc3168 6.1.2: CWR on the first packet after the window was reduced.
            headers[place.tcp + 13] &= !CWR;
        }
        if index + 1 < self.packets() {
            headers[place.tcp + 13] &= !(FIN | PUSH);
        }
        put_length(headers, place, place.data - HEAD + self.data_of(index).len());
        put_word(headers, place, None);
        place.data
    }
}

/// Successive packets of one connection that are written in one buffer.
#[derive(Clone, Debug)]
pub struct Joined {
    place: Place,
    /// The headers of the first.
    first: [u8; LONGEST],
    /// Bytes of data in each packet but the last.
    size: usize,
    packets: usize,
    data: usize,
    /// Nothing may follow the last packet: it was short or asked to be pushed.
    complete: bool,
    push: bool,
}

/// The most bytes of a buffer: what IPv4's length can say.
const MOST: usize = 65_535;

impl Joined {
    /// Starts with the packet in `bytes`, including the virtio header; `None` if other packets cannot be
    /// joined to it.
    pub fn begin(bytes: &[u8]) -> Option<Self> {
        let place = Place::find(bytes)?;
        let ip = &bytes[HEAD..];
        // Not ECN-capable; no options; no fragment.
        let plain = if place.six {
            ip[1] & 0x30 == 0 && ip[6] == TCP && place.tcp == HEAD + IPV6_HEADER
        } else {
            ip[1] & 0b11 == 0
                && ip[9] == TCP
                && place.tcp == HEAD + IPV4_HEADER
                && ip[0] == 0x45
                && u16_at(ip, 6) & 0x3fff == 0
        };
        let flags = bytes[place.tcp + 13];
        let size = bytes.len() - place.data;
        if !plain || bytes[1] != PLAIN || flags & !(PUSH | ECE) != ACK || size == 0 {
            return None;
        }
        let mut first = [0; LONGEST];
        first[..place.data].copy_from_slice(&bytes[..place.data]);
        let push = flags & PUSH != 0;
        Some(Joined { place, first, size, packets: 1, data: size, complete: push, push })
    }

    /// Appends the packet in `bytes`. Returns `false` if it does not continue the others.
    pub fn join(&mut self, bytes: &[u8]) -> bool {
        let (place, first) = (self.place, &self.first[..self.place.data]);
        let Some(data) = bytes.len().checked_sub(place.data) else { return false };
        if self.complete || data == 0 || data > self.size || MOST < place.data - HEAD + self.data + data {
            return false;
        }
        let same = |from: usize, to: usize| bytes[from..to] == first[from..to];
        let tcp = place.tcp;
        // Everything but lengths, identification, checksums, sequence number and PSH.
        let ip = if place.six {
            same(HEAD, HEAD + 4) && same(HEAD + 6, HEAD + 40)
        } else {
            let identification = u16_at(first, HEAD + 4).wrapping_add(self.packets as u16);
            same(HEAD, HEAD + 2)
                && u16_at(bytes, HEAD + 4) == identification
                && same(HEAD + 6, HEAD + 10)
                && same(HEAD + 12, HEAD + 20)
        };
        let flags = bytes[tcp + 13];
        let alike = ip
            && same(0, HEAD)
            && same(tcp, tcp + 4)
            && same(tcp + 8, tcp + 13)
            && (flags ^ first[tcp + 13]) & !PUSH == 0
            && same(tcp + 14, tcp + 16)
            && same(tcp + 18, place.data);
        if !alike || u32_at(bytes, tcp + 4) != u32_at(first, tcp + 4).wrapping_add(self.data as u32) {
            return false;
        }
        self.packets += 1;
        self.data += data;
        self.push = flags & PUSH != 0;
        self.complete = self.push || data < self.size;
        true
    }

    /// Returns the number of packets.
    pub fn packets(&self) -> usize {
        self.packets
    }

    /// Returns the headers of the joined buffer, including the virtio header, and their length. The data of
    /// the packets follows.
    pub fn headers(&self) -> ([u8; LONGEST], usize) {
        let place = self.place;
        let mut headers = self.first;
        if self.push {
            headers[place.tcp + 13] |= PUSH;
        }
        put_length(&mut headers, place, place.data - HEAD + self.data);
        put_word(&mut headers, place, Some(self.size as u16));
        (headers, place.data)
    }
}

#[cfg(test)]
mod tests;
