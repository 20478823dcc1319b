//! Brake probes (abc17 section 4): packets that leave as brakes, sent once in a while. No honest router or
//! receiver makes accelerates of them, so one that comes back as an accelerate tells of somebody who does.
//!
//! ```text
//! every N packets, a pair of brakes, one right behind the other
//! heard:       the ACK that first covers the pair's first packet says brake
//! suspicious:  it says accelerate, and covers no more than a pair
//! anything else (CE, no mark, a longer ACK) says nothing
//!
//! S = max(S + ln(q1/q0), 0) if suspicious, max(S + ln((1-q1)/(1-q0)), 0) if heard             page54 (CUSUM)
//! verdict: S >= ln(1/alpha); taken back when S is 0 again
//! ```
//!
//! | symbol | field | value | why |
//! |---|---|---|---|
//! | N | `probe` | none | abc17: "once in a while" |
//! | q0 | - | 0.05 | the most that an honest path may let look suspicious |
//! | q1 | - | 0.5 | one that turns half of the brakes |
//! | ln(1/alpha) | `VERDICT` | 6 ln 10 | alpha = 1e-6; six suspicious pairs in a row |
//!
//! An ACK may be lost, and the next one then speaks for its packets too: with the state of ABC's NS and ECE
//! flags a probe whose ACK was lost looks like an accelerate. Therefore probes go in pairs and long ACKs are
//! left out: an ACK of accelerates that covers the first of a pair on an honest path covers the second one
//! and a later packet too, three at least, where no receiver acknowledges more than every second packet
//! (rfc5681 4.2). Lost, thinned and delayed ACKs so never count. What is left takes two accidents at once,
//! the ACK of the first lost and the second packet too. Exact counters (`echo=exact`) need none of this.
//!
//! How seldom an honest path is accused: where suspicious pairs come with probability q0 or less, the mean
//! number of pairs before a verdict is at least 1/alpha (lorden71). Where none come, it is infinite. How soon
//! a hostile one is found out: brakes turned with probability c move S by c ln(q1/q0) + (1-c)
//! ln((1-q1)/(1-q0)) a pair, upwards from c = 0.22 on; at c = 1 six pairs do.

use brakelight_core::controller::{AckEvent, Exact};
use brakelight_core::units::Bytes;

/// ln(1/alpha), in steps of ln(q1/q0), which is ln 10.
const VERDICT: f64 = 6.0;
/// ln((1-q1)/(1-q0)), in those steps.
const HEARD: f64 = -0.278_753_600_952_829;

/// In the tag of the first packet of a pair, and of the second.
pub(super) const FIRST: u64 = 1 << 62;
const SECOND: u64 = 1 << 61;
/// All of it.
pub(super) const TAGS: u64 = FIRST | SECOND;

/// The probes of one flow.
#[derive(Clone, Debug)]
pub(super) struct Probes {
    /// N; none sends no probes.
    every: Option<u64>,
    /// Packets since the last pair began.
    since: u64,
    /// S, in steps of ln(q1/q0).
    suspicion: f64,
    hostile: bool,
}

impl Probes {
    pub(super) fn new(every: Option<u32>) -> Self {
        Probes { every: every.map(u64::from), since: 0, suspicion: 0.0, hostile: false }
    }

    pub(super) fn are_sent(&self) -> bool {
        self.every.is_some()
    }

    /// What the tag of the next packet gets: zero unless it is a probe.
    pub(super) fn on_send(&mut self, retransmission: bool) -> u64 {
        let Some(every) = self.every.filter(|_| !retransmission) else { return 0 };
        self.since += 1;
        if self.since < every {
            return 0;
        }
        if self.since == every {
            return FIRST;
        }
        self.since = 0;
        SECOND
    }

    /// Judges what an ACK says of a pair, and returns how many bytes of its brakes are the sender's own.
    pub(super) fn on_ack(&mut self, event: &AckEvent<'_>) -> Bytes {
        if self.every.is_none() {
            return Bytes::ZERO;
        }
        let (mut own, mut count, mut first) = (Bytes::ZERO, 0, false);
        for packet in event.acked {
            if packet.tag & TAGS != 0 {
                own += packet.size;
                count += 1;
                first |= packet.tag & FIRST != 0;
            }
        }
        let marks = &event.marks;
        let (accelerates, braked) = (marks.accelerate.packets, marks.brake.bytes > Bytes::ZERO);
        // Exact counters outlive lost ACKs: more accelerates than packets that left as such are enough.
        let turned = match marks.exact {
            Exact::Neither => accelerates > 0 && event.acked.len() <= 2,
            _ => accelerates + count > event.acked.len() as u64,
        };
        if first && (turned || braked) {
            self.judge(turned);
        }
        own.min(marks.brake.bytes)
    }

    fn judge(&mut self, suspicious: bool) {
        let step = if suspicious { 1.0 } else { HEARD };
        self.suspicion = (self.suspicion + step).clamp(0.0, VERDICT);
        if self.suspicion >= VERDICT {
            self.hostile = true;
        } else if self.suspicion <= 0.0 {
            self.hostile = false;
        }
    }

    /// Whether somebody on the path turns brakes into accelerates.
    pub(super) fn path_is_hostile(&self) -> bool {
        self.hostile
    }

    /// S, as a share of what a verdict takes.
    pub(super) fn suspicion(&self) -> f64 {
        self.suspicion / VERDICT
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use brakelight_core::controller::{MarkCount, Marks, PacketInfo};
    use brakelight_core::time::{Duration, Time};
    use brakelight_testkit::events::{MSS, ack, packet};

    use super::*;

    fn says(accelerate: u64, brake: u64) -> Marks {
        let count = |packets| MarkCount { packets, bytes: Bytes(packets * MSS.0) };
        Marks {
            accelerate: count(accelerate),
            brake: count(brake),
            exact: Exact::Neither,
            ..Marks::default()
        }
    }

    fn acknowledge(probes: &mut Probes, tags: &[u64], marks: Marks) -> Bytes {
        let acked: Vec<PacketInfo> =
            tags.iter().map(|&tag| PacketInfo { tag, ..packet(0, Time::ZERO) }).collect();
        probes.on_ack(&AckEvent { marks, ..ack(Time::from_secs(1), &acked, Duration::from_millis(100)) })
    }

    #[test]
    fn probes_go_in_pairs_and_never_twice() {
        let mut probes = Probes::new(Some(8));
        let tags: Vec<u64> = (0..18).map(|_| probes.on_send(false)).collect();
        let at = |wanted: u64| (0..18).filter(|&index| tags[index] == wanted).collect::<Vec<_>>();
        assert_eq!((at(FIRST), at(SECOND)), ([7, 16].to_vec(), [8, 17].to_vec()));
        assert!((0..100).all(|_| probes.on_send(true) == 0));
        assert!((0..100).all(|_| Probes::new(None).on_send(false) == 0));
    }

    #[test]
    fn steps_are_the_logarithms_of_the_likelihoods() {
        let (honest, hostile) = (0.05, 0.5);
        let unit = libm::log(hostile / honest);
        assert!((VERDICT * unit - libm::log(1e6)).abs() < 1e-12);
        assert!((HEARD - libm::log((1.0 - hostile) / (1.0 - honest)) / unit).abs() < 1e-15);
    }

    /// HN-U4. Six pairs in a row accuse; 22 that are heard, 6 / 0.2788 rounded up, acquit.
    #[test]
    fn six_pairs_that_come_back_as_accelerates_are_a_verdict() {
        let mut probes = Probes::new(Some(8));
        for pair in 0..6 {
            assert!(!probes.path_is_hostile(), "after {pair}");
            assert_eq!(acknowledge(&mut probes, &[FIRST, SECOND], says(2, 0)), Bytes::ZERO);
        }
        assert!(probes.path_is_hostile());
        for pair in 0..22 {
            assert!(probes.path_is_hostile(), "after {pair}");
            acknowledge(&mut probes, &[FIRST, SECOND], says(0, 2));
        }
        assert!(!probes.path_is_hostile());
    }

    /// HN-U4. Whatever ACKs are lost of a receiver that tells the truth, nothing it says is suspicious.
    #[test]
    fn lost_acks_accuse_nobody() {
        // Every pattern of losses of the ACKs of A A | P P | B | A A, as echoed with two packets per ACK, and
        // one.
        for batches in [
            &[("A", 2), ("P", 2), ("B", 1), ("A", 2)][..],
            &[("A", 1), ("P", 1), ("P", 1), ("A", 1), ("B", 1), ("A", 1)],
            &[("A", 1), ("P", 2), ("A", 1), ("B", 2)],
            &[("B", 1), ("P", 1), ("B", 1), ("A", 2)],
        ] {
            for lost in 0..1_u32 << batches.len() {
                let mut probes = Probes::new(Some(8));
                let (mut covered, mut probe) = (Vec::new(), FIRST);
                for (index, &(kind, packets)) in batches.iter().enumerate() {
                    for _ in 0..packets {
                        covered.push(if kind == "P" { probe } else { 0 });
                        probe = if kind == "P" { SECOND } else { probe };
                    }
                    // Where a router brakes what follows, the first of the pair has a brake behind it.
                    if lost >> index & 1 == 0 {
                        let count = covered.len() as u64;
                        let marks = if kind == "A" { says(count, 0) } else { says(0, count) };
                        acknowledge(&mut probes, &covered, marks);
                        covered.clear();
                    }
                }
                assert_eq!(probes.suspicion(), 0.0, "{batches:?}, lost {lost:b}");
            }
        }
    }

    #[test]
    fn exact_counters_tell_a_turned_probe_among_many_packets() {
        let mut probes = Probes::new(Some(8));
        let exact = |accelerate, brake| Marks { exact: Exact::Bytes, ..says(accelerate, brake) };
        let tags = [0, 0, FIRST, SECOND, 0];
        acknowledge(&mut probes, &tags, exact(2, 3));
        assert_eq!(probes.suspicion(), 0.0);
        for turned in 1..=2 {
            acknowledge(&mut probes, &tags, exact(3 + turned, 2 - turned));
        }
        assert!((probes.suspicion() - 2.0 / 6.0).abs() < 1e-12);
        // One of the two was turned: more accelerates came back, 1, than left, 0.
        acknowledge(&mut probes, &[FIRST, SECOND], exact(1, 1));
        assert!((probes.suspicion() - 3.0 / 6.0).abs() < 1e-12);
    }

    #[test]
    fn what_says_nothing_changes_nothing() {
        let mut probes = Probes::new(Some(8));
        acknowledge(&mut probes, &[FIRST, SECOND, 0], says(3, 0));
        acknowledge(&mut probes, &[FIRST, SECOND], Marks::default());
        acknowledge(&mut probes, &[0, SECOND], says(2, 0));
        assert_eq!(probes.suspicion(), 0.0);
        let ce = MarkCount { packets: 2, bytes: Bytes(2 * MSS.0) };
        acknowledge(&mut probes, &[FIRST, SECOND], Marks { ce, ..Marks::default() });
        assert_eq!(probes.suspicion(), 0.0);
    }

    /// A router that turns half of the brakes is found; one pair in twenty on an honest path is not held
    /// against it.
    #[test]
    fn partial_cheating_is_found_and_accidents_are_not() {
        for (turned, limit, found) in [(0.5, 400, true), (0.3, 2_000, true), (0.05, 100_000, false)] {
            let mut random = brakelight_core::random::Random::stream(1, "brakes");
            let mut probes = Probes::new(Some(8));
            let verdict = (0..limit).position(|_| {
                probes.judge(random.chance(turned));
                probes.path_is_hostile()
            });
            assert_eq!(verdict.is_some(), found, "{turned}: {verdict:?}");
        }
    }
}
