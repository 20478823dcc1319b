//! COBALT: CoDel and BLUE side by side on one queue (cake18 III-D; Linux 6.1 `sch_cake.c`).
//!
//! ```text
//! over target:   sojourn > target, and > 4 packets' time, and on ingress > 2 packets' time of each bulk flow
//! over target, not dropping:         dropping; next = now + interval y; n = 1 if it was 0
//! n > 0, next has come, dropping:    mark or drop; n = n + 1; next = next + interval y
//! n > 0, next has come, otherwise:   n = n - 1; next = next + interval y, until next has not come
//! each packet, besides:              drop with p
//! the buffer is full:                p = p + 1/256, once per target; dropping, next = now
//! the queue is served and is empty:  p = p - 1/4096, once per target; n decays as above, by one
//!
//! y = 1 / sqrt(n), by Newton's method:   y = y / 2 (3 - n y^2)
//! ```
//!
//! y of a queue that was never used is 0, as in Linux: there the state begins as zeros. Its first signal so
//! comes with the packet after the first that is over the target. Once n has changed, y is what it says.

use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};

/// What all queues of a tin share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Law {
    pub(super) target: Duration,
    pub(super) interval: Duration,
    /// How long a full packet takes at the tin's rate.
    pub(super) packet_time: Duration,
}

/// What BLUE adds, in units of 2^-32: 1/256.
const P_INCREMENT: u32 = 1 << 24;
/// What BLUE takes away: 1/4096.
const P_DECREMENT: u32 = 1 << 20;

/// Roots that are computed to the full; above them one step from the one before is exact enough.
const ROOTS: usize = 16;

/// 1 / sqrt(n) in units of 2^-32 for n below [`ROOTS`]; 1 for n = 0.
const INVERSE_ROOTS: [u32; ROOTS] = {
    let mut roots = [u32::MAX; ROOTS];
    let mut n = 1;
    while n < ROOTS {
        let mut y = roots[n - 1];
        let mut step = 0;
        while step < 4 {
            y = newton(n as u32, y);
            step += 1;
        }
        roots[n] = y;
        n += 1;
    }
    roots
};

/// One step of Newton's method towards 1 / sqrt(n), in units of 2^-32.
const fn newton(n: u32, y: u32) -> u32 {
    let square = (y as u64 * y as u64) >> 32;
    // Two bits less, so that the next product fits into 64.
    let factor = (3_u64 << 32).wrapping_sub(n as u64 * square) >> 2;
    (factor.wrapping_mul(y as u64) >> 31) as u32
}

/// What becomes of a packet at the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// It is marked, being capable of it.
    pub(super) mark: bool,
    /// It is dropped, unless it is the last.
    pub(super) drop: bool,
}

/// COBALT's state for one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct State {
    /// CoDel's n.
    pub(super) count: u32,
    /// CoDel's y, in units of 2^-32.
    inverse_root: u32,
    /// When CoDel's next signal is due, or until when it stays awake.
    pub(super) next: Time,
    /// When BLUE last changed `p`.
    blue_at: Time,
    /// BLUE's p, in units of 2^-32.
    pub(super) p: u32,
    /// Whether CoDel is dropping.
    pub(super) dropping: bool,
}

impl State {
    /// Whether nothing of it is left that would matter to the next packet.
    pub(super) fn is_at_rest(&self, now: Time) -> bool {
        self.p == 0 && self.count == 0 && now >= self.next
    }

    /// A packet was dropped because the buffer is full.
    pub(super) fn overflowed(&mut self, law: &Law, now: Time) {
        if now.since(self.blue_at) > law.target {
            self.p = self.p.saturating_add(P_INCREMENT);
            self.blue_at = now;
        }
        self.dropping = true;
        self.next = now;
        self.count = self.count.max(1);
    }

    /// The queue was served and had nothing.
    pub(super) fn found_empty(&mut self, law: &Law, now: Time) {
        if self.p > 0 && now.since(self.blue_at) > law.target {
            self.p = self.p.saturating_sub(P_DECREMENT);
            self.blue_at = now;
        }
        self.dropping = false;
        if self.is_due(now) {
            self.count -= 1;
            self.step(law);
        }
    }

    /// The packet at the head arrived at `arrived` and may leave; `capable` says whether it may be marked.
    pub(super) fn decide(
        &mut self,
        law: &Law,
        now: Time,
        arrived: Time,
        capable: bool,
        ingress_flows: u32,
        random: &mut Random,
    ) -> Verdict {
        let sojourn = now.since(arrived);
        let over = sojourn > law.target
            && sojourn > law.packet_time * (2 * u64::from(ingress_flows))
            && sojourn > law.packet_time * 4;
        let due = self.is_due(now);
        let mut late = now > self.next;
        if over {
            if !self.dropping {
                self.dropping = true;
                self.next = now + self.spacing(law);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        let mut verdict = Verdict { mark: false, drop: false };
        if due && self.dropping {
            verdict = Verdict { mark: capable, drop: !capable };
            self.count = self.count.saturating_add(1);
            self.step(law);
            late = now > self.next;
        } else if due {
            while self.is_due(now) {
                self.count -= 1;
                self.step(law);
                late = now > self.next;
            }
        }
        // BLUE drops what could be marked, too: such a flow does not react to marks.
        if self.p > 0 && (random.bits() >> 32) < u64::from(self.p) {
            verdict.drop = true;
        }
        if self.count == 0 {
            self.next = now + law.interval;
        } else if late && !verdict.drop {
            self.next = now;
        }
        verdict
    }

    fn is_due(&self, now: Time) -> bool {
        self.count > 0 && now >= self.next
    }

    /// The time between signals: interval / sqrt(n).
    fn spacing(&self, law: &Law) -> Duration {
        let nanos = (u128::from(law.interval.as_nanos()) * u128::from(self.inverse_root)) >> 32;
        Duration::from_nanos(nanos as u64)
    }

    /// The count has changed by one: the next signal is due so much later.
    fn step(&mut self, law: &Law) {
        self.inverse_root = match INVERSE_ROOTS.get(self.count as usize) {
            Some(root) => *root,
            None => newton(self.count, self.inverse_root),
        };
        self.next += self.spacing(law);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::ms;

    const LAW: Law = Law {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        packet_time: Duration::from_micros(100),
    };

    fn random() -> Random {
        Random::stream(1, "cobalt")
    }

    /// Decides on a packet that has waited so many ms.
    fn decide(state: &mut State, now: u64, waited: u64) -> Verdict {
        state.decide(&LAW, ms(now), ms(now - waited), true, 0, &mut random())
    }

    #[test]
    fn the_roots_are_those_of_the_counts() {
        for (n, root) in INVERSE_ROOTS.iter().enumerate().skip(1) {
            let root = f64::from(*root) / 4_294_967_296.0;
            assert!((root - 1.0 / (n as f64).sqrt()).abs() < 1e-3, "{n}: {root}");
        }
        // Four steps from 1: 0.5, 0.625, 0.693359, 0.706708.
        assert!((f64::from(INVERSE_ROOTS[2]) / 4_294_967_296.0 - 0.706_708).abs() < 1e-6);
        let mut y = INVERSE_ROOTS[ROOTS - 1];
        for n in ROOTS as u32..2000 {
            y = newton(n, y);
            let root = f64::from(y) / 4_294_967_296.0;
            assert!((root * f64::from(n).sqrt() - 1.0).abs() < 2e-3, "{n}: {root}");
        }
    }

    #[test]
    fn signals_come_an_interval_over_the_root_of_their_number_apart() {
        // Used before: n went to 1 and back to 0, so y is 1.
        let mut state = State { count: 1, ..State::default() };
        state.found_empty(&LAW, ms(1000));
        assert_eq!((state.count, state.inverse_root), (0, u32::MAX));
        decide(&mut state, 1200, 0);
        let mut marks = std::vec::Vec::new();
        for now in 1300..2000 {
            if decide(&mut state, now, 20).mark {
                marks.push(now);
            }
        }
        // 100 ms after the first packet over the target; then 100 / sqrt(2), 100 / sqrt(3), ... later, each
        // with the first packet after it was due.
        let mut due = 1400.0_f64;
        let mut expected = std::vec::Vec::new();
        while due < 1999.0 {
            expected.push(due.ceil() as u64);
            due += 100.0 / (expected.len() as f64 + 1.0).sqrt();
        }
        assert_eq!(marks, expected);
        assert_eq!(marks[..6], [1400, 1471, 1529, 1579, 1624, 1664]);
    }

    #[test]
    fn a_queue_that_was_never_used_signals_with_the_second_packet_over_the_target() {
        let mut state = State::default();
        assert!(!decide(&mut state, 1000, 6).mark);
        assert!(decide(&mut state, 1001, 6).mark);
        // The next one is due 100 / sqrt(2) later.
        let next = (1002..1200).find(|&now| decide(&mut state, now, 6).mark);
        assert_eq!(next, Some(1071));
    }

    #[test]
    fn the_count_decays_at_the_pace_at_which_it_rose() {
        let mut state = State::default();
        let first = 1000;
        for now in first..1400 {
            decide(&mut state, now, 20);
        }
        let risen = state.count;
        assert!(risen > 5, "{risen}");
        let mut below = 0;
        while state.count > 0 {
            below += 1;
            decide(&mut state, 1400 + below, 0);
        }
        // sum of 100 / sqrt(n) for n from risen - 1 down to 1, and y = 1 for the last.
        let expected: f64 = (1..risen).map(|n| 100.0 / f64::from(n).sqrt()).sum();
        assert!((below as f64 - expected).abs() < 110.0, "{below} ms, not {expected}");
    }

    #[test]
    fn a_packet_below_the_target_or_four_packets_time_is_left_alone() {
        let slow = Law { packet_time: Duration::from_millis(10), ..LAW };
        let mut state = State::default();
        for now in 1000..3000 {
            let verdict = state.decide(&slow, ms(now), ms(now - 40), true, 0, &mut random());
            assert_eq!(verdict, Verdict { mark: false, drop: false });
            let verdict = state.decide(&slow, ms(now), ms(now - 60), true, 3, &mut random());
            assert_eq!(verdict, Verdict { mark: false, drop: false });
        }
    }

    #[test]
    fn blue_rises_by_a_256th_per_target_and_falls_by_a_4096th() {
        let mut state = State::default();
        for now in 100..112 {
            state.overflowed(&LAW, ms(now));
        }
        // At 100 and 106 ms: more than 5 ms apart.
        assert_eq!(state.p, 2 * P_INCREMENT);
        let mut steps = 0;
        let mut now = 112;
        while state.p > 0 {
            now += 6;
            state.found_empty(&LAW, ms(now));
            steps += 1;
        }
        assert_eq!(steps, 32);
    }

    #[test]
    fn blue_drops_its_share_of_packets_that_could_be_marked() {
        let mut state = State { p: 1 << 30, ..State::default() };
        let mut random = random();
        let dropped =
            (0..10_000).filter(|_| state.decide(&LAW, ms(1000), ms(1000), true, 0, &mut random).drop).count();
        // A quarter; the standard deviation is 43.
        assert!((2370..2630).contains(&dropped), "{dropped}");
    }
}
