//! What a base station knows of what a user has to send: requests, reports of its buffer, grants (ts38321
//! 5.4.4, 5.4.5).
//!
//! ```text
//! a user asks         in the first slot up after each multiple of `request`, if it has data and the base
//!                     station knows of none
//! the base station    learns of it `turnaround` slots later, and knows of `first_grant` bytes
//! each grant          brings what is then left in the user's buffer, known `turnaround` slots later
//! known               the last report, less what has been granted since the slot it is from
//! ```

use alloc::collections::VecDeque;

use super::harq::{BufferStatus, Timing};

/// A base station's view of one user's buffer.
#[derive(Clone, Debug, Default)]
pub struct Uplink {
    /// What is under way: the slot from which on it is known, and what it says.
    reports: VecDeque<(u64, BufferStatus)>,
    latest: Option<BufferStatus>,
    /// Grants since, by slot: bits.
    grants: VecDeque<(u64, u64)>,
}

impl Uplink {
    /// The base station is told of `report` in `slot`.
    pub fn report(&mut self, slot: u64, report: BufferStatus, timing: &Timing) {
        self.reports.push_back((timing.heard(slot), report));
    }

    /// `bits` are granted for `slot`.
    pub fn grant(&mut self, slot: u64, bits: u64) {
        self.grants.push_back((slot, bits));
    }

    /// Returns the bits that the base station knows of when it decides in `slot`, and has not granted.
    pub fn known(&mut self, slot: u64) -> u64 {
        while let Some((_, report)) = next_if(&mut self.reports, |(from, _)| *from <= slot) {
            // A report that was sent again may be older than the last.
            if self.latest.is_none_or(|latest| latest.sent <= report.sent) {
                self.latest = Some(report);
            }
        }
        if let Some(latest) = self.latest {
            while next_if(&mut self.grants, |(granted, _)| *granted <= latest.sent).is_some() {}
        }
        self.left()
    }

    /// What was said last, less what has been granted since.
    fn left(&self) -> u64 {
        let Some(latest) = self.latest else { return 0 };
        let since = self.grants.iter().filter(|(slot, _)| *slot > latest.sent);
        latest.bits.saturating_sub(since.map(|(_, bits)| bits).sum())
    }

    /// Returns whether the base station knows of nothing, and nothing under way will tell it.
    pub fn is_silent(&self) -> bool {
        match self.reports.is_empty() {
            true => self.left() == 0,
            false => self.reports.iter().all(|(_, report)| report.bits == 0),
        }
    }

    /// Another base station knows nothing.
    pub fn clear(&mut self) {
        *self = Uplink::default();
    }
}

/// Takes the first of `list` if it is so.
fn next_if<T>(list: &mut VecDeque<T>, is_so: impl Fn(&T) -> bool) -> Option<T> {
    if list.front().is_some_and(is_so) { list.pop_front() } else { None }
}
