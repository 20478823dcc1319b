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

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use crate::traffic::Repair;

/// rfc3550 5.1: RTP's header, in bytes.
const RTP: u64 = 12;
/// rfc4588 4: the original sequence number, in bytes.
const ORIGINAL: u64 = 2;
/// rfc8627 4.2.2: the header of parity with a fixed block, in bytes.
const PARITY: u64 = 12;
/// libwebrtc nack_requester.cc, kDefaultRtt
const FIRST_RTT: Duration = Duration::from_millis(100);

/// What a message of the receiver is about, in [`Datagram::echo`](crate::socket::Datagram::echo).
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

    /// Where in `frames` the frame of a packet is, while it is neither shown nor lost.
    fn place_of(&self, sequence: u64) -> Option<usize> {
        let place = self.frames.partition_point(|frame| frame.end <= sequence);
        self.frames.get(place).is_some_and(|frame| frame.first <= sequence).then_some(place)
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
