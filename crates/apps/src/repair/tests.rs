use brakelight_core::packet::Direction;
use brakelight_core::random::Random;
use brakelight_core::units::Rate;

use super::*;
use crate::socket::{Datagram, Piece, Socket};

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
    for (lost, is_whole) in [(vec![2, 3], true), (vec![2, 4], false), (vec![1, 7], true), (vec![0, 7], false)]
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
            assert!(frames.packets.len() < 400 && frames.requests.len() < 40 && frames.missing.len() < 100);
        }
    }
}
