//! A call's frames in packets of their own, as RTP carries them, and what is done about those that are lost.
//!
//! ```text
//! a frame: n = ceil(size / room) packets of about the same size, each with RTP's header
//! fec:  p = ceil(n / 5) packets of parity; parity g covers packets g, g + p, g + 2 p, ...   rfc8627 1.1.4
//!       one missing packet of each g is recovered
//! nack: the receiver asks for what is missing below the newest packet at once, and again
//!       each RTT, ten times at most; the sender sends it again ahead of what waits   rfc4585 6.2.1, rfc4588
//! a frame can be shown once it is whole and the one before it could be, or once it is whole and a key frame
//! a frame with a gap is given up once it is older than the deadline; without `nack` once three packets
//!       that left after its last have arrived. The receiver asks for a key frame then (PLI, rfc4585
//!       6.3.1), and again every 200 ms; frames before the key frame are lost
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | room | `room` | B | the flow's MSS less headers | rfc3550 5.1, rfc4588 4, rfc8627 4.2.2 |
//! | - | `COVERED` | packets | 5 | own choice: 20 % of parity |
//! | RTT | `rtt` | time | 100 ms at first | libwebrtc nack_requester.cc, kDefaultRtt |
//! | - | `MOST_ASKED` | 1 | 10 | libwebrtc nack_requester.cc, kMaxNackRetries |
//! | - | `NEWER` | packets | 3 | rfc9002 6.1.1 |
//! | - | `ASK_AGAIN` | time | 200 ms | libwebrtc video_receive_stream2.h, kMaxWaitForKeyFrame |
//!
//! Outcome: `frames_lost_percent` (of those sent whose deadline has passed: never whole, or without the
//! frames that they build on), `repair_percent` (of the bytes handed to the flow: sent again, or parity),
//! `key_frame_requests`.
//!
//! Deviations: D1 the receiver knows how old a frame is, where RTP's timestamps say it up to the least delay
//! of the path. D2 it takes the RTT from requests that were answered, where RTCP's reports carry it. D3
//! parity has a fixed share; libwebrtc's follows loss and RTT. D4 feedback is neither bundled nor held back
//! for RTCP's share of the bandwidth, nor encrypted. D5 every frame builds on the one before it, without
//! layers.

use std::collections::VecDeque;

use brakelight_core::packet::Direction;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use crate::socket::{Datagram, Piece, Socket};
use crate::traffic::Repair;

/// rfc3550 5.1: RTP's header, in bytes.
const RTP: u64 = 12;
/// rfc4588 4: the original sequence number, in bytes.
const ORIGINAL: u64 = 2;
/// rfc8627 4.2.2: the header of parity with a fixed block, in bytes.
const PARITY: u64 = 12;
/// Packets that one of parity stands for.
const COVERED: u64 = 5;
/// libwebrtc nack_requester.cc, kDefaultRtt
const FIRST_RTT: Duration = Duration::from_millis(100);
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
/// Shares of repair are those of about so many frames.
const REMEMBERED: f64 = 30.0;

/// What a message of the receiver is about, in [`Datagram::echo`].
const NACK: u32 = 1;
const PLI: u32 = 2;

/// A frame that can be shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ready {
    /// When it was taken.
    pub taken_at: Time,
    /// Its size.
    pub size: u64,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
enum Packet {
    /// Packet of this sequence number.
    Media(u64),
    /// The same again.
    Again(u64),
    /// Parity of a frame, for one of its groups.
    Parity(u64, usize),
}

/// A frame that was sent and is neither shown nor lost.
#[derive(Clone, Debug)]
struct Frame {
    taken_at: Time,
    size: u64,
    is_key: bool,
    /// Sequence number of its first packet, and of the first that is no longer its own.
    first: u64,
    end: u64,
    /// Which of its packets arrived.
    arrived: Vec<bool>,
    /// For each group, how many packets are missing, and whether its parity arrived.
    groups: Vec<(u32, bool)>,
}

impl Frame {
    fn group(&self, place: u64) -> usize {
        (place % self.groups.len() as u64) as usize
    }

    /// Whether a packet of it is missing below sequence number `heard`.
    fn has_gap(&self, heard: u64) -> bool {
        let known = heard.saturating_sub(self.first) as usize;
        self.arrived.iter().take(known).any(|&arrived| !arrived)
    }

    fn is_whole_key(&self) -> bool {
        self.is_key && self.is_whole()
    }

    fn is_whole(&self) -> bool {
        self.groups.iter().all(|&(missing, parity)| missing <= u32::from(parity))
    }
}

/// A packet that the receiver misses.
#[derive(Clone, Copy, Debug)]
struct Missing {
    sequence: u64,
    asked_at: Time,
    times: u8,
}

/// Frames on their way: both ends.
#[derive(Clone, Debug)]
pub struct Frames {
    repair: Repair,
    deadline: Duration,
    room: u64,

    // The sender.
    /// Packets sent, and the number of the first of them.
    packets: VecDeque<Packet>,
    first_packet: u32,
    next_sequence: u64,
    /// Frames, and the number of the first of them.
    frames: VecDeque<Frame>,
    first_frame: u64,
    /// Bytes of media and of repair, of late.
    media: f64,
    mended: f64,
    sent_bytes: u64,
    repair_bytes: u64,
    sent_frames: u64,

    // The receiver.
    /// Above the newest sequence number that arrived.
    heard: u64,
    missing: VecDeque<Missing>,
    /// What NACKs that are on the way ask for, and the number of the first of them.
    requests: VecDeque<Vec<u64>>,
    first_request: u32,
    rtt: Duration,
    /// While the frames that follow cannot be shown: when to ask for a key frame again.
    broken_until: Option<Time>,
    key_requests: u64,
    ready: VecDeque<Ready>,
    lost: u64,
}

impl Frames {
    /// Returns frames over packets of at most `mss`, of use for `deadline`.
    pub fn new(repair: Repair, mss: Bytes, deadline: Duration) -> Self {
        let extra = match repair {
            Repair::Nack => ORIGINAL,
            Repair::Fec => PARITY,
            Repair::Stream | Repair::None => 0,
        };
        Frames {
            repair,
            deadline,
            room: mss.0.saturating_sub(RTP + extra).max(1),
            packets: VecDeque::new(),
            first_packet: 0,
            next_sequence: 0,
            frames: VecDeque::new(),
            first_frame: 0,
            media: 0.0,
            mended: 0.0,
            sent_bytes: 0,
            repair_bytes: 0,
            sent_frames: 0,
            heard: 0,
            missing: VecDeque::new(),
            requests: VecDeque::new(),
            first_request: 0,
            rtt: FIRST_RTT,
            broken_until: None,
            key_requests: 0,
            ready: VecDeque::new(),
            lost: 0,
        }
    }

    // The sender.

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
                if let Some(frame) = self.frame_of(sequence) {
                    let count = frame.end - frame.first;
                    let bytes = RTP + ORIGINAL + part(frame.size, count, sequence - frame.first);
                    self.post(Packet::Again(sequence), bytes, socket);
                }
            }
        }
        message.echo == PLI
    }

    /// The frame of a packet, while it is neither shown nor lost.
    fn frame_of(&self, sequence: u64) -> Option<&Frame> {
        let place = self.frames.partition_point(|frame| frame.end <= sequence);
        self.frames.get(place).filter(|frame| frame.first <= sequence)
    }

    // The receiver.

    /// The piece `number` arrived.
    pub fn on_piece(&mut self, number: u32, socket: &mut impl Socket) {
        let place = number.wrapping_sub(self.first_packet) as usize;
        let Some(&packet) = self.packets.get(place) else { return };
        let now = socket.now();
        match packet {
            Packet::Media(sequence) | Packet::Again(sequence) => {
                self.note_found(now, sequence, matches!(packet, Packet::Again(_)));
                self.note_gap(sequence, socket);
                let place = self.frames.partition_point(|frame| frame.end <= sequence);
                if let Some(frame) = self.frames.get_mut(place)
                    && frame.first <= sequence
                {
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
        let asked: Vec<u64> = gap.filter(|&sequence| self.frame_of(sequence).is_some()).collect();
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

    /// Forgets what is of no use to a frame that still waits.
    fn forget(&mut self) {
        let oldest = self.frames.front().map_or(self.next_sequence, |front| front.first);
        while self.missing.front().is_some_and(|missing| missing.sequence < oldest) {
            self.missing.pop_front();
        }
        while self.requests.front().is_some_and(|asked| asked.iter().all(|&sequence| sequence < oldest)) {
            self.requests.pop_front();
            self.first_request = self.first_request.wrapping_add(1);
        }
        let first_frame = self.first_frame;
        while let Some(packet) = self.packets.front() {
            let is_past = match *packet {
                Packet::Media(sequence) | Packet::Again(sequence) => sequence < oldest,
                Packet::Parity(frame, _) => frame < first_frame,
            };
            if !is_past {
                break;
            }
            self.packets.pop_front();
            self.first_packet = self.first_packet.wrapping_add(1);
        }
    }

    /// Returns the next frame to show, in order, once.
    pub fn pop_ready(&mut self) -> Option<Ready> {
        self.ready.pop_front()
    }

    /// Returns how many frames can no longer be shown in time at `now`, and how many were sent whose time has
    /// come.
    pub fn lost(&self, now: Time) -> (u64, u64) {
        let waiting = self.frames.len() as u64;
        let overdue = self.frames.iter().filter(|frame| now.since(frame.taken_at) > self.deadline).count();
        (self.lost + overdue as u64, self.sent_frames - waiting + overdue as u64)
    }

    /// Calls `visit` with what was repaired until `now`.
    pub fn outcome(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        let (lost, of) = self.lost(now);
        if of > 0 {
            visit("frames_lost_percent", 100.0 * lost as f64 / of as f64);
        }
        if self.sent_bytes > 0 {
            visit("repair_percent", 100.0 * self.repair_bytes as f64 / self.sent_bytes as f64);
        }
        visit("key_frame_requests", self.key_requests as f64);
    }
}

/// Bytes of a frame in its packet `place` of `count`: the first ones have a byte more if it cannot be
/// divided.
fn part(size: u64, count: u64, place: u64) -> u64 {
    size / count + u64::from(place < size % count)
}

#[cfg(test)]
mod tests {
    use brakelight_core::random::Random;
    use brakelight_core::units::Rate;

    use super::*;

    const MSS: Bytes = Bytes(1_200);
    const DEADLINE: Duration = Duration::from_millis(400);

    /// A flow without a network: what was sent, which way, and by whom.
    struct Wire {
        now: Time,
        pieces: Vec<(Piece, bool)>,
        messages: Vec<Datagram>,
        random: Random,
    }

    impl Wire {
        fn new() -> Self {
            let random = Random::stream(1, "wire");
            Wire { now: Time::ZERO, pieces: Vec::new(), messages: Vec::new(), random }
        }

        fn at(&mut self, ms: u64) -> &mut Self {
            self.now = Time::from_millis(ms);
            self
        }
    }

    impl Socket for Wire {
        fn now(&self) -> Time {
            self.now
        }
        fn write(&mut self, _size: Bytes) {
            unreachable!("frames travel in pieces");
        }
        fn unsent(&self) -> Bytes {
            Bytes::ZERO
        }
        fn discard_unsent(&mut self) {}
        fn delivered(&self) -> Bytes {
            Bytes::ZERO
        }
        fn rate(&self) -> Option<Rate> {
            None
        }
        fn random(&mut self) -> &mut Random {
            &mut self.random
        }
        fn send(&mut self, datagram: Datagram) {
            self.messages.push(datagram);
        }
        fn send_piece(&mut self, piece: Piece, urgent: bool) {
            self.pieces.push((piece, urgent));
        }
    }

    fn frames(repair: Repair) -> (Frames, Wire) {
        (Frames::new(repair, MSS, DEADLINE), Wire::new())
    }

    /// The frames that can be shown, by when they were taken.
    fn shown(frames: &mut Frames) -> Vec<f64> {
        std::iter::from_fn(|| frames.pop_ready())
            .map(|ready| ready.taken_at.since(Time::ZERO).as_millis_f64())
            .collect()
    }

    /// Has these pieces arrive at `ms`.
    fn arrive(frames: &mut Frames, wire: &mut Wire, ms: u64, numbers: impl IntoIterator<Item = u32>) {
        for number in numbers {
            frames.on_piece(number, wire.at(ms));
        }
    }

    #[test]
    fn a_frame_is_split_evenly_into_packets_that_fit() {
        let (mut frames, mut wire) = frames(Repair::None);
        frames.send(3_000, true, &mut wire);
        let sizes: Vec<u16> = wire.pieces.iter().map(|(piece, _)| piece.size).collect();
        assert_eq!(sizes, [1_012, 1_012, 1_012]);
        frames.send(1_188, false, &mut wire);
        frames.send(1_189, false, &mut wire);
        let sizes: Vec<u16> = wire.pieces[3..].iter().map(|(piece, _)| piece.size).collect();
        assert_eq!(sizes, [1_200, 607, 606]);
        arrive(&mut frames, &mut wire, 50, [0, 1]);
        assert!(shown(&mut frames).is_empty());
        arrive(&mut frames, &mut wire, 60, [2, 3]);
        assert_eq!(frames.pop_ready(), Some(Ready { taken_at: Time::ZERO, size: 3_000 }));
        assert_eq!(frames.pop_ready(), Some(Ready { taken_at: Time::ZERO, size: 1_188 }));
    }

    #[test]
    fn a_missing_packet_is_asked_for_at_once_and_sent_ahead_of_the_others() {
        let (mut frames, mut wire) = frames(Repair::Nack);
        frames.send(3_000, true, &mut wire);
        arrive(&mut frames, &mut wire, 50, [0, 2]);
        let asked = wire.messages.pop().expect("a NACK");
        // A feedback header of 12 bytes and one entry.
        assert_eq!((asked.direction, asked.payload, asked.echo), (Direction::Reverse, 16, NACK));
        assert!(!frames.on_feedback(&asked, wire.at(100)));
        // 1000 bytes of the frame, RTP's header, and the original sequence number.
        assert_eq!(wire.pieces.last(), Some(&(Piece { number: 3, size: 1_014 }, true)));
        arrive(&mut frames, &mut wire, 150, [3]);
        assert_eq!(shown(&mut frames), [0.0]);
        // (7 * 100 ms + 100 ms) / 8
        assert_eq!(frames.rtt, Duration::from_millis(100));
        assert_eq!(frames.next_timer(), Time::MAX);
    }

    #[test]
    fn a_request_is_repeated_each_rtt_and_ten_times_at_most() {
        let (mut frames, mut wire) = frames(Repair::Nack);
        let mut asked_at = Vec::new();
        frames.deadline = Duration::from_secs(10);
        frames.send(3_000, true, &mut wire);
        arrive(&mut frames, &mut wire, 50, [2]);
        // Packets 0 and 1 fit one entry.
        assert_eq!(wire.messages[0].payload, 16);
        while frames.next_timer() < Time::from_secs(9) {
            wire.now = frames.next_timer();
            asked_at.push(wire.now.since(Time::ZERO).as_millis_f64());
            frames.on_timer(&mut wire);
        }
        assert_eq!(asked_at, [150.0, 250.0, 350.0, 450.0, 550.0, 650.0, 750.0, 850.0, 950.0]);
        assert_eq!(wire.messages.len(), 10);
    }

    #[test]
    fn a_frame_that_stays_broken_costs_those_that_build_on_it() {
        let (mut frames, mut wire) = frames(Repair::Nack);
        frames.send(1_000, true, wire.at(0));
        frames.send(1_000, false, wire.at(33));
        frames.send(1_000, false, wire.at(67));
        arrive(&mut frames, &mut wire, 100, [0, 2]);
        assert_eq!(shown(&mut frames), [0.0]);
        // Of use until 433 ms.
        while frames.next_timer() < Time::from_millis(433) {
            wire.now = frames.next_timer();
            frames.on_timer(&mut wire);
        }
        assert_eq!(frames.next_timer(), Time::from_millis(433));
        wire.messages.clear();
        frames.on_timer(wire.at(433));
        let asked = wire.messages.pop().expect("a PLI");
        assert_eq!((asked.payload, asked.echo), (12, PLI));
        assert!(frames.on_feedback(&asked, wire.at(450)));
        assert_eq!(frames.lost(wire.now), (2, 3));
        // And again after 200 ms, until a key frame is whole.
        assert_eq!(frames.next_timer(), Time::from_millis(633));
        frames.on_timer(wire.at(633));
        assert_eq!((wire.messages.len(), frames.key_requests), (1, 2));
        frames.send(1_000, true, wire.at(700));
        arrive(&mut frames, &mut wire, 750, [3]);
        assert_eq!(shown(&mut frames), [700.0]);
        assert_eq!(frames.next_timer(), Time::MAX);
    }

    #[test]
    fn without_repair_three_newer_packets_give_a_frame_up() {
        let (mut frames, mut wire) = frames(Repair::None);
        for frame in 0..6 {
            frames.send(1_000, frame == 0, wire.at(33 * frame));
        }
        arrive(&mut frames, &mut wire, 200, [0, 2, 3]);
        assert_eq!((shown(&mut frames), wire.messages.len()), (vec![0.0], 0));
        arrive(&mut frames, &mut wire, 210, [4]);
        assert_eq!((frames.lost, wire.messages.len()), (4, 1));
        // A packet that comes late is of no use any more.
        arrive(&mut frames, &mut wire, 220, [1, 5]);
        assert_eq!((shown(&mut frames).len(), frames.lost), (0, 5));
    }

    #[test]
    fn parity_recovers_one_packet_of_each_of_its_groups() {
        // Seven packets and two of parity: groups of packets 0, 2, 4, 6 and of 1, 3, 5.
        for (lost, is_whole) in
            [(vec![2, 3], true), (vec![2, 4], false), (vec![1, 7], true), (vec![0, 7], false)]
        {
            let (mut frames, mut wire) = frames(Repair::Fec);
            frames.send(8_000, true, &mut wire);
            assert_eq!(wire.pieces.len(), 9);
            // 8000 / 7 and headers of 12 and 12 bytes: what every packet of the frame fits into.
            assert_eq!((wire.pieces[0].0.size, wire.pieces[7].0.size), (1_155, 1_167));
            arrive(&mut frames, &mut wire, 50, (0..9).filter(|number| !lost.contains(number)));
            assert_eq!(!shown(&mut frames).is_empty(), is_whole, "{lost:?}");
        }
        let (mut frames, mut wire) = frames(Repair::Fec);
        frames.send(6_000, true, &mut wire);
        assert!((frames.media_share() - 6_072.0 / 8_120.0).abs() < 1e-3, "{}", frames.media_share());
    }

    /// What comes late, and whole, is shown late: nothing was lost.
    #[test]
    fn a_late_frame_without_a_gap_is_not_given_up() {
        let (mut frames, mut wire) = frames(Repair::Nack);
        frames.send(3_000, true, &mut wire);
        arrive(&mut frames, &mut wire, 900, [0, 1]);
        assert_eq!(frames.next_timer(), Time::MAX);
        arrive(&mut frames, &mut wire, 910, [2]);
        assert_eq!((shown(&mut frames), frames.lost), (vec![0.0], 0));
        assert!(wire.messages.is_empty());
    }

    /// Whatever is lost, doubled or late, every frame is shown at most once, in order, or counted as lost,
    /// and what is kept stays bounded.
    #[test]
    fn every_frame_is_shown_once_or_lost() {
        for seed in 0..60 {
            for repair in [Repair::None, Repair::Nack, Repair::Fec] {
                let (mut frames, mut wire) = frames(repair);
                let mut random = Random::stream(seed, "losses");
                let mut flying: Vec<(u64, u32)> = Vec::new();
                let mut control: Vec<(u64, Datagram)> = Vec::new();
                let (mut posted, mut is_key, mut last, mut count) = (0, true, -1.0, 0);
                for ms in 0..6_000_u64 {
                    if ms % 33 == 0 && ms < 5_000 {
                        let size = 1 + (random.uniform() * 9_000.0) as u64;
                        frames.send(size, std::mem::take(&mut is_key), wire.at(ms));
                    }
                    for &(at, number) in flying.iter().filter(|(at, _)| *at == ms) {
                        assert_eq!(at, ms);
                        frames.on_piece(number, wire.at(ms));
                    }
                    for &(_, message) in control.iter().filter(|(at, _)| *at == ms) {
                        is_key |= frames.on_feedback(&message, wire.at(ms));
                    }
                    if frames.next_timer() <= Time::from_millis(ms) {
                        frames.on_timer(wire.at(ms));
                        assert!(frames.next_timer() > wire.now, "seed {seed}, {repair:?}");
                    }
                    for taken in shown(&mut frames) {
                        assert!(taken > last, "seed {seed}, {repair:?}: {taken} after {last}");
                        last = taken;
                        count += 1;
                    }
                    for (piece, _) in wire.pieces.drain(posted..) {
                        let copies = if random.chance(0.1) { 0 } else { 1 + u64::from(random.chance(0.02)) };
                        let late = if random.chance(0.05) { 20 } else { 0 };
                        flying.extend((0..copies).map(|copy| (ms + 40 + late + copy, piece.number)));
                    }
                    posted = wire.pieces.len();
                    for message in wire.messages.drain(..) {
                        if !random.chance(0.1) {
                            control.push((ms + 40, message));
                        }
                    }
                    flying.retain(|(at, _)| *at > ms);
                    control.retain(|(at, _)| *at > ms);
                }
                let (lost, of) = frames.lost(Time::from_secs(100));
                assert_eq!((count + lost, of), (152, 152), "seed {seed}, {repair:?}");
                assert!(count > 20, "seed {seed}, {repair:?}: {count} of 152");
                assert!(
                    frames.packets.len() < 400 && frames.requests.len() < 40 && frames.missing.len() < 100
                );
            }
        }
    }
}
