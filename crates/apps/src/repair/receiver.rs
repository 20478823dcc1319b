//! The end that shows frames, and asks for what it misses.

use brakelight_core::packet::Direction;
use brakelight_core::time::{Duration, Time};

use super::{Frame, Frames, Missing, NACK, PLI, Packet, Ready};
use crate::socket::{Datagram, Socket};
use crate::traffic::Repair;

/// libwebrtc nack_requester.cc, kMaxNackRetries
const MOST_ASKED: u8 = 10;
/// rfc9002 6.1.1, kPacketThreshold
const NEWER: u64 = 3;
/// libwebrtc video_receive_stream2.h, kMaxWaitForKeyFrame
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// rfc4585 6.1: the header of a feedback message, in bytes, which is all of a PLI.
const FEEDBACK: u16 = 12;
/// rfc4585 6.2.1: what an entry of a NACK takes, and how many packets it can name.
const ENTRY: u16 = 4;
const NAMED: u64 = 17;

impl Frames {
    /// The piece `number` arrived.
    pub fn on_piece(&mut self, number: u32, socket: &mut impl Socket) {
        let place = number.wrapping_sub(self.first_packet) as usize;
        let Some(&packet) = self.packets.get(place) else { return };
        let now = socket.now();
        match packet {
            Packet::Media(sequence) | Packet::Again(sequence) => {
                self.note_found(now, sequence, matches!(packet, Packet::Again(_)));
                self.note_gap(sequence, socket);
                if let Some(place) = self.place_of(sequence) {
                    let frame = &mut self.frames[place];
                    let place = sequence - frame.first;
                    if !std::mem::replace(&mut frame.arrived[place as usize], true) {
                        let group = frame.group(place);
                        frame.groups[group].0 -= 1;
                    }
                }
            }
            Packet::Parity(frame, group) => {
                let place = frame.checked_sub(self.first_frame);
                if let Some(frame) = place.and_then(|place| self.frames.get_mut(place as usize)) {
                    frame.groups[group].1 = true;
                }
            }
        }
        self.advance(socket);
    }

    /// A packet that was missing may have come.
    fn note_found(&mut self, now: Time, sequence: u64, is_answer: bool) {
        let Some(place) = self.missing.iter().position(|missing| missing.sequence == sequence) else {
            return;
        };
        let found = self.missing.remove(place);
        if let (Some(Missing { asked_at, times: 1, .. }), true) = (found, is_answer) {
            // rfc6298 2.3, alpha
            self.rtt = (self.rtt * 7 + now.since(asked_at)) / 8;
        }
    }

    /// Asks for what is missing below packet `sequence`, which arrived.
    fn note_gap(&mut self, sequence: u64, socket: &mut impl Socket) {
        let gap = self.heard..sequence;
        self.heard = self.heard.max(sequence + 1);
        if self.repair != Repair::Nack || gap.is_empty() {
            return;
        }
        let now = socket.now();
        let asked: Vec<u64> = gap.filter(|&sequence| self.place_of(sequence).is_some()).collect();
        let missing = |&sequence: &u64| Missing { sequence, asked_at: now, times: 1 };
        self.missing.extend(asked.iter().map(missing));
        self.ask(asked, socket);
    }

    /// Sends a NACK (rfc4585 6.2.1).
    fn ask(&mut self, sequences: Vec<u64>, socket: &mut impl Socket) {
        let mut entries: u16 = 0;
        let mut below = None;
        for &sequence in &sequences {
            if below.is_none_or(|below| sequence >= below) {
                below = Some(sequence + NAMED);
                entries += 1;
            }
        }
        if entries == 0 {
            return;
        }
        let number = self.first_request.wrapping_add(self.requests.len() as u32);
        self.requests.push_back(sequences);
        socket.send(Datagram {
            direction: Direction::Reverse,
            payload: FEEDBACK + entries.saturating_mul(ENTRY),
            number,
            echo: NACK,
            held_us: 0,
        });
    }

    /// Acts on what is due.
    pub fn on_timer(&mut self, socket: &mut impl Socket) {
        let now = socket.now();
        let (rtt, mut again) = (self.rtt, Vec::new());
        self.missing.retain_mut(|missing| {
            if now.since(missing.asked_at) < rtt {
                return true;
            }
            missing.asked_at = now;
            missing.times += 1;
            again.push(missing.sequence);
            missing.times < MOST_ASKED
        });
        again.sort_unstable();
        self.ask(again, socket);
        self.advance(socket);
    }

    /// Returns when the receiver wants to act.
    pub fn next_timer(&self) -> Time {
        let asked = self.missing.iter().map(|missing| missing.asked_at).min();
        let again = asked.map_or(Time::MAX, |at| at + self.rtt);
        let waited = match self.frames.front() {
            Some(front) if front.has_gap(self.heard) => front.taken_at + self.deadline,
            _ => Time::MAX,
        };
        again.min(waited).min(self.broken_until.unwrap_or(Time::MAX))
    }

    /// Shows what can be shown, and gives up what cannot come any more.
    fn advance(&mut self, socket: &mut impl Socket) {
        let now = socket.now();
        while let Some(front) = self.frames.front() {
            if front.is_whole() && (front.is_key || self.broken_until.is_none()) {
                self.broken_until = None;
                self.ready.push_back(Ready { taken_at: front.taken_at, size: front.size });
            } else if self.broken_until.is_some() && !front.is_key && front.first < self.heard {
                self.lost += 1;
            } else if self.is_hopeless(front, now) || self.frames.iter().any(Frame::is_whole_key) {
                self.lost += 1;
                self.broken_until.get_or_insert(now);
            } else {
                break;
            }
            self.frames.pop_front();
            self.first_frame += 1;
        }
        self.forget();
        if self.broken_until.is_some_and(|at| at <= now) {
            self.broken_until = Some(now + ASK_AGAIN);
            self.key_requests += 1;
            let (direction, payload) = (Direction::Reverse, FEEDBACK);
            socket.send(Datagram { direction, payload, number: 0, echo: PLI, held_us: 0 });
        }
    }

    /// Whether the receiver waits for a frame no longer.
    fn is_hopeless(&self, frame: &Frame, now: Time) -> bool {
        let is_passed = self.repair != Repair::Nack && frame.end + NEWER <= self.heard;
        is_passed || (now.since(frame.taken_at) >= self.deadline && frame.has_gap(self.heard))
    }

    /// Returns the next frame to show, in order, once.
    pub fn pop_ready(&mut self) -> Option<Ready> {
        self.ready.pop_front()
    }
}
