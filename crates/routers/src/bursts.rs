//! Waiting that a queue could not have avoided: for the next time at which its link serves at all.
//!
//! ```text
//! sojourn   = t - arrival                      for a packet that leaves at t
//! standing  = max(0, t' - arrival)             t' the last time before t at which a packet left
//! ```
//!
//! A link that serves in bursts, as every radio with slots does, leaves packets waiting between two of them
//! although no queue stands. A packet that arrived after the burst before has waited for the link alone; one
//! that was there already and was not taken stood in a queue. Where a link serves one packet after another,
//! standing is the sojourn less one packet's transmission.

use brakelight_core::time::{Duration, Time};

choices! {
    /// What counts as a packet's delay.
    pub enum Waiting {
        /// The time that it waited.
        Sojourn = "sojourn",
        /// The part of it before the last packet that left at an earlier instant.
        Persistent = "standing",
    }
}

/// The last two instants at which packets left.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bursts {
    last: Time,
    before: Time,
}

impl Bursts {
    /// A packet is taken at `now`, which never falls.
    pub(super) fn serve(&mut self, now: Time) {
        if now > self.last {
            self.before = self.last;
            self.last = now;
        }
    }

    /// Returns what counts at `now` as the delay of a packet that arrived at `arrived`.
    pub(super) fn delay(&self, counted: Waiting, now: Time, arrived: Time) -> Duration {
        match counted {
            Waiting::Sojourn => now.since(arrived),
            Waiting::Persistent if now > self.last => self.last.since(arrived),
            Waiting::Persistent => self.before.since(arrived),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_burst_is_no_standing_queue() {
        let at = |millis: u64| Time::ZERO + Duration::from_millis(millis);
        let mut bursts = Bursts::default();
        bursts.serve(at(10));
        bursts.serve(at(18));
        bursts.serve(at(18));
        let standing = |arrived: u64| bursts.delay(Waiting::Persistent, at(18), at(arrived));
        // Came after the burst at 10 ms; at it; 4 ms before it.
        assert_eq!([standing(11), standing(10), standing(6)], [0, 0, 4].map(Duration::from_millis));
        assert_eq!(bursts.delay(Waiting::Sojourn, at(18), at(11)), Duration::from_millis(7));
        // Between bursts the last one counts: 18 ms.
        assert_eq!(bursts.delay(Waiting::Persistent, at(24), at(15)), Duration::from_millis(3));
        assert_eq!(bursts.delay(Waiting::Persistent, at(24), at(20)), Duration::ZERO);
    }
}
