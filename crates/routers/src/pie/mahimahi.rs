//! Mahimahi's PIE (`pie_packet_queue.cc`, after draft-ietf-aqm-pie-09 and Linux 4.4), imitated so that what
//! was measured with it can be compared. It differs from RFC 8033 in this:
//!
//! - M1, gains. RFC 8033: alpha, beta per second of delay, divided by 2048 to 1 in seven steps. Mahimahi: the
//!   same numbers per millisecond, divided by 128 below 0.01, 32 below 0.1, else 16: 62.5 times the RFC's
//!   from 0.001 on, 250 to 16,000 times below.
//! - M2, T_UPDATE. RFC 8033: 15 ms, by a timer. Mahimahi: 30 ms; by the first packet to come or go in a
//!   millisecond more than 30 after the last update was due. Updates missed are all made then, with the queue
//!   of that moment: without the packet that comes or goes.
//! - M3, delay. RFC 8033: timestamps, or a rate of any precision. Mahimahi: whole milliseconds: bytes over a
//!   rate in whole bytes per millisecond.
//! - M4, rate. RFC 8033: a measurement of 16384 bytes, weight 1/4. Mahimahi: of more than 16384 bytes, the
//!   packet that it starts with included; weight 1/8, in whole numbers, so that a fraction is lost twice; a
//!   measurement within one millisecond goes on.
//! - M5, bytes. RFC 8033: of the IP packet; two packets of the mean size are let be. Mahimahi: with the 4
//!   bytes of the TUN header; less than two of 1504 are let be.
//! - M6, burst allowance. RFC 8033: MAX_BURST at the start, and when calm. Mahimahi: 0 at the start;
//!   MAX_BURST when calm and once a rate is known, which is then forgotten; each measurement takes its own
//!   time off as well.
//! - M7, let in while calm. RFC 8033: by the last delay. Mahimahi: by the one before it.
//! - M8, decay. RFC 8033: where d = d_old = 0. Mahimahi: not in an update that ends above 1, nor while
//!   packets wait that take less than a millisecond.
//! - M9, options. RFC 8033: ECN, cap, de-randomisation, on and off. Mahimahi: none.
//! - M10, order. RFC 8033: -. Mahimahi: an update, the tail drop, the random drop: as here.

use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use super::Config;

/// M5: the largest packet with its TUN header.
const PACKET_SIZE: u64 = 1504;

/// Mahimahi's controller. Times are whole milliseconds, rates whole bytes per millisecond.
#[derive(Clone, Debug)]
pub(super) struct Mahimahi {
    alpha: f64,
    beta: f64,
    target_ms: i64,
    max_burst_ms: i64,
    tupdate_ms: i64,
    dq_threshold: u64,
    pub(super) prob: f64,
    burst_ms: i64,
    delay_ms: i64,
    delay_old_ms: i64,
    /// Since when bytes are counted, and how many.
    counting: Option<(i64, u64)>,
    rate: u64,
    last_update_ms: i64,
    waiting: u64,
}

impl Mahimahi {
    pub(super) fn new(config: &Config) -> Self {
        let ms = |duration: Duration| (duration.as_nanos() / 1_000_000) as i64;
        Mahimahi {
            alpha: config.alpha,
            beta: config.beta,
            target_ms: ms(config.target),
            max_burst_ms: ms(config.max_burst),
            tupdate_ms: config.tupdate.map_or(30, ms),
            dq_threshold: config.dq_threshold.0,
            prob: 0.0,
            burst_ms: 0,
            delay_ms: 0,
            delay_old_ms: 0,
            counting: None,
            rate: 0,
            last_update_ms: 0,
            waiting: 0,
        }
    }

    /// Whether a packet that arrives is to be dropped.
    pub(super) fn chooses(&self, random: &mut Random) -> bool {
        // M7
        let calm = self.delay_old_ms < self.target_ms / 2 && self.prob < 0.2;
        self.burst_ms == 0 && !calm && self.waiting >= 2 * PACKET_SIZE && random.chance(self.prob)
    }

    /// A packet that takes `cost` bytes is let in.
    pub(super) fn enters(&mut self, cost: Bytes) {
        self.waiting += cost.0;
    }

    /// A packet that took `cost` bytes has left the queue.
    pub(super) fn leaves(&mut self, now: Time, cost: Bytes) {
        self.waiting -= cost.0;
        let now_ms = millis(now);
        if self.counting.is_none() && self.waiting >= self.dq_threshold {
            self.counting = Some((now_ms, 0));
        }
        if let Some((since_ms, count)) = &mut self.counting {
            *count += cost.0;
            let took_ms = now_ms - *since_ms;
            // M4
            if *count > self.dq_threshold && took_ms > 0 {
                let sample = *count / took_ms as u64;
                self.rate = match self.rate {
                    0 => sample,
                    rate => rate - (rate >> 3) + (sample >> 3),
                };
                self.counting = (self.waiting >= self.dq_threshold).then_some((now_ms, 0));
                // M6
                self.burst_ms = (self.burst_ms - took_ms).max(0);
            }
        }
        self.advance(now);
    }

    /// M2: makes the updates that were due, with the queue as it is.
    #[inline]
    pub(super) fn advance(&mut self, now: Time) {
        let now_ms = millis(now);
        while now_ms - self.last_update_ms > self.tupdate_ms {
            let before = (self.prob, self.delay_old_ms, self.delay_ms, self.burst_ms, self.rate);
            self.update();
            self.last_update_ms += self.tupdate_ms;
            // Idle for long: the rest would change nothing.
            let after = (self.prob, self.delay_old_ms, self.delay_ms, self.burst_ms, self.rate);
            if before == after {
                let behind = (now_ms - self.last_update_ms - 1).max(0) / self.tupdate_ms;
                self.last_update_ms += behind * self.tupdate_ms;
            }
        }
    }

    fn update(&mut self) {
        self.delay_old_ms = self.delay_ms;
        // M3
        self.delay_ms = self.waiting.checked_div(self.rate).unwrap_or(0) as i64;
        let mut decays = self.delay_ms != 0 || self.waiting == 0;
        // M1
        let p = self.alpha * (self.delay_ms - self.target_ms) as f64
            + self.beta * (self.delay_ms - self.delay_old_ms) as f64;
        let divisor = if self.prob < 0.01 {
            128.0
        } else if self.prob < 0.1 {
            32.0
        } else {
            16.0
        };
        self.prob += p / divisor;
        if self.prob < 0.0 {
            self.prob = 0.0;
        } else if self.prob > 1.0 {
            self.prob = 1.0;
            decays = false;
        }
        // M8
        if self.delay_ms == 0 && self.delay_old_ms == 0 && decays {
            self.prob *= 0.98;
        }
        self.burst_ms = (self.burst_ms - self.tupdate_ms).max(0);
        // M6
        let half_ms = self.target_ms / 2;
        if self.prob == 0.0 && self.delay_ms < half_ms && self.delay_old_ms < half_ms && self.rate > 0 {
            self.counting = None;
            self.rate = 0;
            self.burst_ms = self.max_burst_ms;
        }
    }

    /// Probability, delay and burst allowance, for plots.
    pub(super) fn shown(&self) -> (f64, f64, f64) {
        (self.prob, self.delay_ms as f64, self.burst_ms as f64)
    }
}

fn millis(at: Time) -> i64 {
    (at.as_nanos() / 1_000_000) as i64
}

#[cfg(test)]
mod tests {
    use brakelight_core::parameters::Parameters;

    use super::*;

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() <= 1e-9 * expected.abs(), "{value}, not {expected}");
    }

    #[test]
    fn mahimahis_arithmetic_is_in_whole_milliseconds_and_sixty_times_as_strong() {
        let config =
            Config::from_options([("variant", "mahimahi"), ("target", "50ms"), ("max_burst", "100ms")])
                .unwrap();
        let mut queue = Mahimahi::new(&config);
        for _ in 0..100 {
            queue.enters(Bytes(1504));
        }
        // The departure at 0 leaves 99 packets, starts the measurement and is counted: 1504. The one at 10 ms
        // makes 12 packets, 16544 + 1504 = 18048 > 16384: after 11 packets, at 10 ms, it is 16544 already.
        // 16544 / 10 = 1654 B/ms.
        for now in 0..=10 {
            queue.leaves(ms(now), Bytes(1504));
        }
        assert_eq!(queue.rate, 1654);
        // 11 more in 11 ms are 16544 again: 16544 / 11 = 1504. 1654 - 206 + 188 = 1636.
        for now in 11..=21 {
            queue.leaves(ms(now), Bytes(1504));
        }
        assert_eq!(queue.rate, 1636);
        // At 30 ms no update is due yet, at 31 ms it is: 78 packets of 1504 bytes over 1636 are 71.7, that is
        // 71 ms.
        queue.advance(ms(30));
        assert_eq!(queue.prob, 0.0);
        queue.advance(ms(31));
        // (0.125 (71 - 50) + 1.25 (71 - 0)) / 128 = (2.625 + 88.75) / 128 = 0.714
        close(queue.prob, 91.375 / 128.0);
        // Next at 61: (0.125 * 21 + 0) / 16
        queue.advance(ms(61));
        close(queue.prob, 91.375 / 128.0 + 2.625 / 16.0);
        assert_eq!(queue.last_update_ms, 60);
    }

    #[test]
    fn mahimahi_starts_without_a_burst_allowance_and_gets_one_when_calm() {
        let config =
            Config::from_options([("variant", "mahimahi"), ("target", "50ms"), ("max_burst", "100ms")])
                .unwrap();
        let mut queue = Mahimahi::new(&config);
        assert_eq!(queue.burst_ms, 0);
        // Calm, but without a rate: none.
        queue.advance(ms(100));
        assert_eq!((queue.burst_ms, queue.last_update_ms), (0, 90));
        // With a rate, and 4 packets that take 4 ms: 0.125 (4 - 50) + 1.25 (4 - 0) < 0. MAX_BURST, and no
        // rate any more.
        (queue.rate, queue.waiting) = (1504, 4 * 1504);
        queue.advance(ms(121));
        assert_eq!((queue.burst_ms, queue.rate, queue.prob), (100, 0, 0.0));
        // 30 ms less with each update.
        queue.advance(ms(151));
        assert_eq!(queue.burst_ms, 70);
    }

    #[test]
    fn mahimahi_lets_packets_in_by_the_delay_before_the_last() {
        let config = Config::from_options([("variant", "mahimahi"), ("target", "50ms")]).unwrap();
        let mut random = Random::stream(1, "test");
        let new = Mahimahi { prob: 0.199, delay_ms: 90, waiting: 90_000, ..Mahimahi::new(&config) };
        let mut any = |queue: Mahimahi| (0..100).any(|_| queue.chooses(&mut random));
        assert!(!any(Mahimahi { delay_old_ms: 24, ..new.clone() }));
        assert!(any(Mahimahi { delay_old_ms: 25, ..new.clone() }));
        assert!(any(Mahimahi { delay_old_ms: 24, prob: 0.2, ..new.clone() }));
        assert!(!any(Mahimahi { delay_old_ms: 25, waiting: 3007, ..new.clone() }));
        assert!(!any(Mahimahi { delay_old_ms: 25, burst_ms: 1, ..new }));
    }
}
