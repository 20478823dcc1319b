//! What all users of a base station together are given when all are backlogged, over time: it repeats as the
//! channels' draws do.

use alloc::sync::Arc;
use alloc::vec::Vec;

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::cell::Cell;
use super::channel::Channel;
use super::scheduler::{BACKLOGGED, Request, Scheduler};

/// A share of one, in parts.
const ONE: u128 = 1_000_000;

/// Cumulative sums of the bits served since the start of a loop.
#[derive(Clone, Debug)]
pub struct Capacity {
    /// Between two sums.
    step: Duration,
    /// One more than steps in a loop.
    sums: Arc<[u64]>,
    /// The share of what is sent that is received, in parts of [`ONE`].
    received: u128,
}

impl Capacity {
    /// Lets the scheduler share out one loop of `channels`.
    pub fn new(cell: &Cell, channels: &[Channel]) -> Self {
        let mut scheduler = Scheduler::new(cell.scheduler, cell.time_constant, cell.slot, channels.len());
        let per_step = cell.report.as_nanos() / cell.slot.as_nanos();
        let varies = channels.iter().any(Channel::varies_within_reports);
        let shared = cell.blocks - cell.reserved * cell.users;
        let mut requests = Vec::with_capacity(channels.len());
        let (mut sum, mut sums) = (0, Vec::new());
        for slot in 0..channels[0].slots() {
            let begins = slot % per_step == 0;
            if begins {
                sums.push(sum);
            }
            if begins || varies {
                requests.clear();
                requests.extend(
                    channels
                        .iter()
                        .map(|channel| Request { bits_per_block: channel.bits(slot), waiting: BACKLOGGED }),
                );
            }
            let granted = scheduler.share_out(&requests, shared);
            let given = granted.iter().zip(&requests);
            sum += given
                .map(|(&blocks, of)| u64::from(blocks + cell.reserved) * u64::from(of.bits_per_block))
                .sum::<u64>();
        }
        sums.push(sum);
        Capacity {
            step: cell.report,
            sums: sums.into(),
            received: (cell.received * ONE as f64 + 0.5) as u128,
        }
    }

    /// Returns the bytes in `from <= t < to`. Adjacent intervals add up exactly.
    pub fn between(&self, from: Time, to: Time) -> Bytes {
        Bytes(self.until(to).saturating_sub(self.until(from)))
    }

    /// Returns the mean rate.
    pub fn nominal(&self) -> Rate {
        let end = self.step * (self.sums.len() as u64 - 1);
        Rate::over(self.between(Time::ZERO, Time::ZERO + end), end)
    }

    /// Bytes before `t`.
    fn until(&self, t: Time) -> u64 {
        let steps = self.sums.len() as u64 - 1;
        let nanos = t.since(Time::ZERO).as_nanos();
        let (whole, rest) = (nanos / self.step.as_nanos(), nanos % self.step.as_nanos());
        let (loops, step) = (u128::from(whole / steps), (whole % steps) as usize);
        let (before, after) = (u128::from(self.sums[step]), u128::from(self.sums[step + 1]));
        let within = (after - before) * u128::from(rest) / u128::from(self.step.as_nanos());
        let bits = loops * u128::from(self.sums[steps as usize]) + before + within;
        (bits * self.received / (8 * ONE)) as u64
    }
}

#[cfg(test)]
mod tests {
    use brakelight_core::random::Random;

    use super::super::{Config, Values};
    use super::*;

    #[test]
    fn adjacent_intervals_add_up_across_the_loop() {
        let config = Config::new(Values { users: 3, ..Values::default() }).unwrap();
        let mut random = Random::stream(1, "channels");
        let cell = config.cell();
        let channels: Vec<Channel> = (0..3).map(|index| Channel::new(&cell, index, &mut random)).collect();
        let capacity = Capacity::new(&cell, &channels);
        let cuts = [0, 1, 4_999_999, 5_000_000, 7_654_321, 119_999_999_999, 121_000_000_001, 500_000_000_000];
        let parts: u64 = cuts
            .windows(2)
            .map(|pair| capacity.between(Time::from_nanos(pair[0]), Time::from_nanos(pair[1])).0)
            .sum();
        assert_eq!(parts, capacity.between(Time::ZERO, Time::from_nanos(500_000_000_000)).0);
        let second = |s: u64| capacity.between(Time::from_secs(s), Time::from_secs(s + 1)).0;
        assert!(second(7).abs_diff(second(127)) <= 1, "the draws repeat");
    }

    #[test]
    fn a_steady_channel_carries_its_index() {
        // 30 dB: index 15, 666 bits; 50 of them a millisecond, 10 % not received.
        let config = Config::new(Values {
            snr: 30.0,
            shadow: 0.0,
            fading: super::super::Fading::None,
            ..Values::default()
        })
        .unwrap();
        let channel = Channel::new(&config.cell(), 0, &mut Random::stream(1, "channel"));
        assert_eq!(Capacity::new(&config.cell(), &[channel]).nominal(), Rate::from_bps(50 * 666 * 900));
    }
}
