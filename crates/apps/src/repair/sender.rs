//! The end that sends frames, and sends again what it is asked for.

use super::{Frame, Frames, NACK, ORIGINAL, PARITY, PLI, Packet, RTP};
use crate::socket::{Datagram, Piece, Socket};
use crate::traffic::Repair;

/// Packets that one of parity stands for.
const COVERED: u64 = 5;
/// Shares of repair are those of about so many frames.
const REMEMBERED: f64 = 30.0;

impl Frames {
    /// Returns which share of what is sent is media, of late: 0 to 1.
    pub fn media_share(&self) -> f64 {
        if self.media > 0.0 { self.media / (self.media + self.mended) } else { 1.0 }
    }

    /// Sends a frame of `size` bytes that was just taken.
    pub fn send(&mut self, size: u64, is_key: bool, socket: &mut impl Socket) {
        let count = size.div_ceil(self.room).max(1);
        let parities = if self.repair == Repair::Fec { count.div_ceil(COVERED) } else { 0 };
        let groups = parities.max(1);
        let first = self.next_sequence;
        self.next_sequence += count;
        self.sent_frames += 1;
        let frame = self.first_frame + self.frames.len() as u64;
        let members = |group: u64| ((count - group).div_ceil(groups) as u32, false);
        self.frames.push_back(Frame {
            taken_at: socket.now(),
            size,
            is_key,
            first,
            end: first + count,
            arrived: vec![false; count as usize],
            groups: (0..groups).map(members).collect(),
        });
        let fade = 1.0 - 1.0 / REMEMBERED;
        (self.media, self.mended) = (self.media * fade, self.mended * fade);
        for place in 0..count {
            self.post(Packet::Media(first + place), RTP + part(size, count, place), socket);
        }
        for group in 0..parities {
            // The first packets are the larger ones.
            let bytes = RTP + PARITY + part(size, count, group);
            self.post(Packet::Parity(frame, group as usize), bytes, socket);
        }
    }

    fn post(&mut self, packet: Packet, bytes: u64, socket: &mut impl Socket) {
        let number = self.first_packet.wrapping_add(self.packets.len() as u32);
        self.packets.push_back(packet);
        self.sent_bytes += bytes;
        if matches!(packet, Packet::Media(_)) {
            self.media += bytes as f64;
        } else {
            self.mended += bytes as f64;
            self.repair_bytes += bytes;
        }
        let is_urgent = matches!(packet, Packet::Again(_));
        socket.send_piece(Piece { number, size: bytes.min(u64::from(u16::MAX)) as u16 }, is_urgent);
    }

    /// A message of the receiver arrived. Returns whether it asks for a key frame.
    pub fn on_feedback(&mut self, message: &Datagram, socket: &mut impl Socket) -> bool {
        if message.echo == NACK {
            let place = message.number.wrapping_sub(self.first_request) as usize;
            let asked = self.requests.get_mut(place).map(std::mem::take).unwrap_or_default();
            for sequence in asked {
                if let Some(place) = self.place_of(sequence) {
                    let frame = &self.frames[place];
                    let count = frame.end - frame.first;
                    let bytes = RTP + ORIGINAL + part(frame.size, count, sequence - frame.first);
                    self.post(Packet::Again(sequence), bytes, socket);
                }
            }
        }
        message.echo == PLI
    }
}

/// Bytes of a frame in its packet `place` of `count`: the first ones have a byte more if it cannot be
/// divided.
fn part(size: u64, count: u64, place: u64) -> u64 {
    size / count + u64::from(place < size % count)
}
