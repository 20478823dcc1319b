//! The link rate of a Wi-Fi access point, estimated from its batches even where they are not full (abc20
//! section 5.1).
//!
//! ```text
//! cr       = b S / T_IA(b)                          abc20 eq.5  current rate
//! mu_hat   = M S / T_IA(M)                          abc20 eq.6  rate with full batches
//! T_IA(b)  = b S / R + h                            abc20 eq.7  h: all but the frames, independent of b
//! T_IA(M)  = T_IA(b) + (M - b) S / R                abc20 eq.8
//! mu_hat   = min(mu_hat, 2 cr)                      abc20 5.1   a sender can at most double per round trip
//! ```
//!
//! Each batch gives one value when its block ACK ends; they are averaged over the last T, each with the
//! weight of its own T_IA(M): the sum of what full batches would have carried over the sum of the time they
//! would have taken.
//!
//! Two estimates that section 5.1 rejects are here to be seen failing. `estimate=phy` is the PHY rate R of
//! the last batch, which is too high by contention, block ACKs and framing. `estimate=backlog` takes the
//! share of the time in which something waited for the link's utilization: cr over that share. Something
//! waits while a block ACK is on its way, so that small batches pass for a slow link. Neither is capped.
//!
//! # Deviations
//!
//! - D1. T_IA is "the time between receptions of consecutive block ACKs". Where nothing waited for a part of
//!   it, h grows by that idle time and mu_hat falls below the truth, mostly where the cap of 2 cr is lower
//!   still. `estimate=busy` counts from when something waited.
//! - D2. The weights of the paper's moving average are not stated (open-questions#X-73).
//! - D3. With losses, b frames take the air and fewer arrive: R is what b takes, and rates count what
//!   arrives, in the same share for a full batch.
//! - D4. A batch's frames count with their MAC framing in S / R, and without it in cr and mu_hat, which are
//!   rates of IP packets.

use alloc::collections::VecDeque;

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Rate;

use super::{Config, mac};

choices! {
    /// What the queue is told the link's rate is.
    pub enum Estimate {
        /// The estimate, idle time left out of T_IA.
        Busy = "busy",
        /// The estimate as printed.
        Paper = "paper",
        /// What the link carries on average when backlogged: no estimate.
        Truth = "truth",
        /// The bit rate of the physical layer, which the paper rejects.
        Phy = "phy",
        /// The current rate over the share of the time in which something waited, which it rejects too.
        Backlog = "backlog",
    }
}

/// A batch, when its block ACK ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Batch {
    /// Frames sent: b.
    pub frames: u32,
    /// Frames received.
    pub received: u32,
    /// Bytes on the air, MAC framing included.
    pub bytes: u32,
    /// Modulation and coding.
    pub mcs: u8,
    /// Since when something had waited.
    pub busy_since: Time,
}

/// What is remembered of a batch.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Time,
    /// IP bits received, and the time since the block ACK before, s.
    bits: f64,
    inter_s: f64,
    /// The part of that time in which something waited or was on its way, s.
    busy_s: f64,
    /// IP bits that a full batch would have brought, and the time it would have taken, s.
    full_bits: f64,
    full_s: f64,
}

/// The estimator of one queue.
#[derive(Clone, Debug)]
pub struct Estimator {
    /// M.
    full: u32,
    window: Duration,
    kind: Estimate,
    samples: VecDeque<Sample>,
    /// The samples' sums.
    bits: f64,
    inter_s: f64,
    busy_s: f64,
    full_bits: f64,
    full_s: f64,
    last: Option<Time>,
    rate: Rate,
    current: Rate,
    uncapped: Rate,
}

impl Estimator {
    /// Returns an estimator that answers `initial` until the first batch.
    pub fn new(config: &Config, initial: Rate) -> Self {
        Estimator {
            full: mac::full_batch(config),
            window: config.window,
            kind: config.estimate,
            samples: VecDeque::new(),
            bits: 0.0,
            inter_s: 0.0,
            busy_s: 0.0,
            full_bits: 0.0,
            full_s: 0.0,
            last: None,
            rate: initial,
            current: Rate::ZERO,
            uncapped: initial,
        }
    }

    /// A block ACK ends at `now`. Returns T_IA.
    pub fn on_block_ack(&mut self, now: Time, batch: &Batch) -> Duration {
        let last = self.last.replace(now).unwrap_or(batch.busy_since);
        let busy_from = last.max(batch.busy_since);
        let begin = if self.kind == Estimate::Paper { last } else { busy_from };
        let frame_bytes = f64::from(batch.bytes) / f64::from(batch.frames);
        let packet_bits = 8.0 * (frame_bytes - f64::from(mac::mpdu_bytes(0)));
        let missing = f64::from(self.full.saturating_sub(batch.frames));
        // abc20 eq.8
        let more_s = missing * 8.0 * frame_bytes / mac::phy_rate(batch.mcs).as_bps_f64();
        let share = f64::from(batch.received) / f64::from(batch.frames);
        let sample = Sample {
            at: now,
            bits: f64::from(batch.received) * packet_bits,
            inter_s: now.since(last).as_secs_f64(),
            busy_s: now.since(busy_from).as_secs_f64(),
            full_bits: (f64::from(batch.frames) + missing) * share * packet_bits,
            full_s: now.since(begin).as_secs_f64() + more_s,
        };
        self.samples.push_back(sample);
        self.bits += sample.bits;
        self.inter_s += sample.inter_s;
        self.busy_s += sample.busy_s;
        self.full_bits += sample.full_bits;
        self.full_s += sample.full_s;
        while let Some(oldest) = self.samples.front()
            && oldest.at + self.window <= now
        {
            self.bits -= oldest.bits;
            self.inter_s -= oldest.inter_s;
            self.busy_s -= oldest.busy_s;
            self.full_bits -= oldest.full_bits;
            self.full_s -= oldest.full_s;
            self.samples.pop_front();
        }
        if self.samples.len() == 1 {
            // What is left of rounding does not pile up.
            (self.bits, self.inter_s, self.busy_s) = (sample.bits, sample.inter_s, sample.busy_s);
            (self.full_bits, self.full_s) = (sample.full_bits, sample.full_s);
        }
        // abc20 eq.5
        self.current = Rate::from_bps_f64(self.bits / self.inter_s);
        // abc20 eq.6
        self.uncapped = Rate::from_bps_f64(self.full_bits / self.full_s);
        // abc20 5.1
        self.rate = match self.kind {
            Estimate::Phy => mac::phy_rate(batch.mcs),
            Estimate::Backlog => Rate::from_bps_f64(self.bits / self.busy_s),
            Estimate::Busy | Estimate::Paper | Estimate::Truth => {
                self.uncapped.min(self.current.mul_f64(2.0))
            }
        };
        now.since(begin)
    }

    /// Returns the link's rate: mu_hat.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the current rate: cr.
    pub fn current(&self) -> Rate {
        self.current
    }

    /// Returns mu_hat before it is capped.
    pub fn uncapped(&self) -> Rate {
        self.uncapped
    }
}

#[cfg(test)]
mod tests {
    use super::super::Values;
    use super::*;

    fn estimator(estimate: Estimate) -> Estimator {
        let config = Config::new(Values { estimate, frames: 20, ..Values::default() }).unwrap();
        Estimator::new(&config, Rate::from_mbps(1))
    }

    fn batch(frames: u32, busy_since: Time) -> Batch {
        Batch { frames, received: frames, bytes: frames * 1544, mcs: 7, busy_since }
    }

    #[test]
    fn a_part_of_a_batch_tells_what_a_full_one_would_carry() {
        let mut estimator = estimator(Estimate::Paper);
        assert_eq!(estimator.rate(), Rate::from_mbps(1));
        estimator.on_block_ack(Time::from_millis(100), &batch(5, Time::from_millis(98)));
        estimator.on_block_ack(Time::from_millis(102), &batch(5, Time::from_millis(100)));
        // Each: T_IA(20) = 2 ms + 15 * 12352 / 65e6 = 4.8505 ms, for 20 * 12000 bits.
        let expected = 240_000.0 / (2e-3 + 15.0 * 12_352.0 / 65e6);
        assert!((estimator.uncapped().as_bps_f64() / expected - 1.0).abs() < 1e-6);
        // Five packets in 2 ms are 30 Mbit/s, of which the double is more than the estimate.
        assert_eq!(estimator.current(), Rate::from_mbps(30));
        assert_eq!(estimator.rate(), estimator.uncapped());
        // After 38 ms of silence they are 120 kbit in 42 ms, and nothing may more than double.
        estimator.on_block_ack(Time::from_millis(140), &batch(5, Time::from_millis(138)));
        assert_eq!(estimator.current(), Rate::from_bps_f64(120e3 / 40e-3));
        assert_eq!(estimator.rate(), Rate::from_bps_f64(240e3 / 40e-3));
    }

    #[test]
    fn idle_time_counts_only_in_the_estimate_as_printed() {
        let rate = |estimate| {
            let mut estimator = estimator(estimate);
            estimator.on_block_ack(Time::from_millis(100), &batch(5, Time::from_millis(98)));
            estimator.on_block_ack(Time::from_millis(130), &batch(5, Time::from_millis(128)));
            estimator.uncapped().as_bps_f64()
        };
        let more_s = 15.0 * 12_352.0 / 65e6;
        let (busy, paper) = (rate(Estimate::Busy), rate(Estimate::Paper));
        assert!((busy / (240_000.0 / (2e-3 + more_s)) - 1.0).abs() < 1e-6, "{busy}");
        assert!((paper / (480_000.0 / (32e-3 + 2.0 * more_s)) - 1.0).abs() < 1e-6, "{paper}");
    }

    /// abc20 5.1: the PHY rate "will overestimate the link rate", and batching "confounds" the backlogged
    /// share.
    #[test]
    fn the_estimates_that_the_paper_rejects_miss_the_capacity_on_either_side() {
        let rate = |estimate| {
            let mut estimator = estimator(estimate);
            // Two batches of five packets, 2 ms each from the first packet to the block ACK, 30 ms apart.
            estimator.on_block_ack(Time::from_millis(100), &batch(5, Time::from_millis(98)));
            estimator.on_block_ack(Time::from_millis(130), &batch(5, Time::from_millis(128)));
            estimator.rate().as_bps_f64()
        };
        // A full batch of 20 packets takes 2 ms and what 15 more frames take.
        let truth = 240_000.0 / (2e-3 + 15.0 * 12_352.0 / 65e6);
        assert_eq!(rate(Estimate::Phy), 65e6);
        assert!(rate(Estimate::Phy) > 1.3 * truth);
        // 120 kbit in the 4 ms in which something waited.
        assert_eq!(rate(Estimate::Backlog), 30e6);
        assert!(rate(Estimate::Backlog) < 0.7 * truth);
    }

    #[test]
    fn batches_older_than_the_window_are_forgotten() {
        let mut estimator = estimator(Estimate::Busy);
        estimator.on_block_ack(Time::from_millis(100), &batch(1, Time::from_millis(90)));
        estimator.on_block_ack(Time::from_millis(140), &batch(20, Time::from_millis(136)));
        assert!((estimator.uncapped().as_bps_f64() / (240_000.0 / 4e-3) - 1.0).abs() < 1e-6);
    }
}
