//! Who gets the resource blocks of a slot: of a subframe of LTE, of a slot of NR.
//!
//! ```text
//! proportional fair:  argmax r_i / T_i over users with data          jalali00
//!                     T_i = (1 - 1/t_c) T_i + (1/t_c) R_i            r_i: what the whole subframe would
//!                                                                    carry; R_i: what i got
//! round robin:        users with data in turn
//! ```
//!
//! The chosen user gets what it has data for; what is left goes to the next in the same order.
//!
//! # Deviations
//!
//! - D1. T_i is updated in every subframe for every user, with data or without: one that comes back is served
//!   at once.
//! - D2. The channel is flat, so the choice is made per subframe and not per resource block.

use alloc::vec;
use alloc::vec::Vec;

use brakelight_core::time::Duration;

choices! {
    /// How resource blocks are shared out.
    pub enum Policy {
        /// Proportionally fair.
        ProportionalFair = "pf",
        /// In turn.
        RoundRobin = "rr",
    }
}

/// What a user requests in a slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// Bits that one of its resource blocks carries; in LTE a pair of them.
    pub bits_per_block: u32,
    /// Bits that wait.
    pub waiting: u64,
}

/// The backlog of a user whose data never end.
pub const BACKLOGGED: u64 = u64::MAX;

impl Request {
    fn blocks(&self) -> u64 {
        match self.bits_per_block {
            0 => 0,
            bits => self.waiting.div_ceil(u64::from(bits)),
        }
    }
}

/// A scheduler.
#[derive(Clone, Debug)]
pub struct Scheduler {
    policy: Policy,
    /// 1 / t_c, per slot.
    gain: f64,
    /// T_i, bits per slot.
    averages: Vec<f64>,
    /// Who was first in the last slot that carried anything.
    last: usize,
    granted: Vec<u32>,
}

impl Scheduler {
    /// Returns a scheduler of `users` that nothing is known of, which shares out a slot at a time.
    pub fn new(policy: Policy, time_constant: Duration, slot: Duration, users: usize) -> Self {
        Scheduler {
            policy,
            gain: slot.as_secs_f64() / time_constant.as_secs_f64(),
            averages: vec![0.0; users],
            last: users - 1,
            granted: vec![0; users],
        }
    }

    /// Who is before `other`: r_i / T_i > r_j / T_j, where T may be 0.
    fn precedes(&self, requests: &[Request], user: usize, other: usize) -> bool {
        // jalali00
        f64::from(requests[user].bits_per_block) * self.averages[other]
            > f64::from(requests[other].bits_per_block) * self.averages[user]
    }

    /// Shares out `blocks` resource blocks. Returns how many each user got.
    pub fn share_out(&mut self, requests: &[Request], blocks: u32) -> &[u32] {
        let count = requests.len();
        self.granted.fill(0);
        let (mut left, mut first) = (blocks, None);
        while left > 0 {
            // Ties go in turn.
            let turns = (1..=count).map(|turn| (self.last + turn) % count);
            let mut waiting = turns.filter(|&user| self.granted[user] == 0 && requests[user].blocks() > 0);
            let chosen = match self.policy {
                Policy::RoundRobin => waiting.next(),
                Policy::ProportionalFair => {
                    waiting.reduce(|best, user| if self.precedes(requests, user, best) { user } else { best })
                }
            };
            let Some(user) = chosen else { break };
            let given = requests[user].blocks().min(u64::from(left)) as u32;
            self.granted[user] = given;
            left -= given;
            first = first.or(Some(user));
        }
        self.last = first.unwrap_or(self.last);
        for (user, average) in self.averages.iter_mut().enumerate() {
            let bits = f64::from(self.granted[user]) * f64::from(requests[user].bits_per_block);
            *average += self.gain * (bits - *average);
        }
        &self.granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scheduler(policy: Policy, users: usize) -> Scheduler {
        Scheduler::new(policy, Duration::from_millis(100), Duration::from_millis(1), users)
    }

    fn request(bits_per_block: u32, waiting: u64) -> Request {
        Request { bits_per_block, waiting }
    }

    #[test]
    fn what_one_user_does_not_need_goes_to_the_next() {
        for policy in [Policy::ProportionalFair, Policy::RoundRobin] {
            let mut scheduler = scheduler(policy, 3);
            let requests = [request(100, 950), request(0, 5000), request(200, BACKLOGGED)];
            // 950 bits need 10 blocks of 100; the second user hears nothing.
            assert_eq!(scheduler.share_out(&requests, 50), [10, 0, 40], "{policy:?}");
            let nothing = [request(100, 0), request(100, 0), request(100, 0)];
            assert_eq!(scheduler.share_out(&nothing, 50), [0, 0, 0]);
        }
    }

    #[test]
    fn proportional_fairness_serves_whoever_is_best_against_its_own_average() {
        let mut scheduler = scheduler(Policy::ProportionalFair, 2);
        scheduler.averages = vec![1000.0, 4000.0];
        // 100 / 1000 before 300 / 4000; then T = 1000 + (5000 - 1000) / 100 = 1040 and 3960.
        assert_eq!(scheduler.share_out(&[request(100, BACKLOGGED), request(300, BACKLOGGED)], 50), [50, 0]);
        assert_eq!(scheduler.averages, [1040.0, 3960.0]);
        // 100 / 1040 < 400 / 3960.
        assert_eq!(scheduler.share_out(&[request(100, BACKLOGGED), request(400, BACKLOGGED)], 50), [0, 50]);
    }

    #[test]
    fn steady_users_of_any_rate_get_equal_airtime() {
        for policy in [Policy::ProportionalFair, Policy::RoundRobin] {
            let mut scheduler = scheduler(policy, 3);
            let requests = [50, 200, 600].map(|bits| request(bits, BACKLOGGED));
            let mut blocks = [0; 3];
            for _ in 0..30_000 {
                let granted = scheduler.share_out(&requests, 50).to_vec();
                blocks.iter_mut().zip(granted).for_each(|(sum, granted)| *sum += granted);
            }
            for got in blocks {
                assert!((f64::from(got) / 500_000.0 - 1.0).abs() < 0.01, "{policy:?}: {blocks:?}");
            }
        }
    }
}
