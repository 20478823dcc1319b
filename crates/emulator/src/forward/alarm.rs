//! Two timers of the kernel that wake the thread. The second is set while the first is still pending.
//!
//! Setting a timer that is to go off before all others makes the kernel program the clock's hardware
//! (`hrtimer_reprogram` in kernel/time/hrtimer.c). So does cancelling the one that was first. On a virtual
//! machine each of these leaves the guest and costs several microseconds. A `ppoll` with a timeout does both
//! at every packet that wakes it: it sets a timer when it begins and cancels it when it ends.
//!
//! Here a timer stays set while packets come. Where the wake-up after the next one is foreseen, its timer is
//! set already, behind the first. When the first goes off, the kernel programs the second by itself. What is
//! foreseen decides about cost alone: a timer that was set for the wrong time is set again or not watched.

use std::os::fd::{AsFd, BorrowedFd};

use brakelight_core::time::{Duration, Time};
use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::clock::Epoch;

/// A timer that is off by no more than this is not set again.
const NEAR: Duration = Duration::from_micros(2);

/// The timers, and the times that they are set to.
#[derive(Debug)]
pub(super) struct Alarm {
    epoch: Epoch,
    timers: [TimerFd; 2],
    set: [Option<Time>; 2],
    steps: Steps,
}

impl Alarm {
    pub(super) fn new(epoch: Epoch) -> Result<Self, Errno> {
        let timer = || TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC);
        Ok(Alarm { epoch, timers: [timer()?, timer()?], set: [None; 2], steps: Steps::default() })
    }

    /// Sets the timers so that one goes off at `until`. The wake-up after that one is expected at `then`, or
    /// as far behind it as it is behind the one before, if these were equally far apart.
    pub(super) fn set(&mut self, now: Time, until: Option<Time>, then: Option<Time>) -> Result<(), Errno> {
        let expected = self.steps.after(now, until);
        let then = then.into_iter().chain(expected).min();
        for (index, wanted) in settings(self.set, until, then).into_iter().enumerate() {
            if let Some(at) = wanted.filter(|at| self.set[index] != Some(*at)) {
                let nanos = self.epoch.origin_nanos() + at.as_nanos();
                let at = TimeSpec::new((nanos / 1_000_000_000) as _, (nanos % 1_000_000_000) as _);
                self.timers[index].set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
            }
            self.set[index] = wanted;
        }
        Ok(())
    }

    /// The timers that are to wake the thread.
    pub(super) fn watched(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.timers.iter().zip(&self.set).filter(|(_, set)| set.is_some()).map(|(timer, _)| timer.as_fd())
    }
}

/// What two timers that are set to `set` are to be set to for the next wake-up and the one after it. `None`
/// for a timer that is not to be watched.
fn settings(set: [Option<Time>; 2], until: Option<Time>, then: Option<Time>) -> [Option<Time>; 2] {
    let Some(until) = until else { return [None; 2] };
    let serves = |set: Option<Time>, at: Time| set.is_some_and(|set| set + NEAR >= at && set <= at + NEAR);
    // Of those that do not serve, the earlier one: it has gone off, or would do so too early.
    let first = (0..2).find(|index| serves(set[*index], until)).unwrap_or(usize::from(set[1] < set[0]));
    let mut wanted = set;
    if !serves(set[first], until) {
        wanted[first] = Some(until);
    }
    let other = &mut wanted[1 - first];
    match then.filter(|then| *then > until + NEAR) {
        Some(then) if !serves(*other, then) => *other = Some(then),
        None if other.is_some_and(|other| other + NEAR < until) => *other = None,
        _ => {}
    }
    wanted
}

/// The last wake-ups that were asked for.
#[derive(Clone, Debug, Default)]
struct Steps {
    target: Option<Time>,
    passed: [Time; 2],
}

impl Steps {
    /// When the wake-up after `until` will be if wake-ups go on at equal distances; `None` if they have not
    /// done so.
    fn after(&mut self, now: Time, until: Option<Time>) -> Option<Time> {
        if let Some(target) = self.target.filter(|target| *target <= now) {
            self.passed = [target, self.passed[0]];
        }
        self.target = until;
        let until = until?;
        let step = until.since(self.passed[0]);
        let before = self.passed[0].since(self.passed[1]);
        (step + NEAR >= before && step <= before + NEAR).then_some(until + step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(micros: u64) -> Time {
        Time::ZERO + Duration::from_micros(micros)
    }

    fn at(micros: u64) -> Option<Time> {
        Some(time(micros))
    }

    #[test]
    fn timers_take_turns_and_each_is_set_while_the_other_is_pending() {
        let mut set = [None; 2];
        for n in 1..10 {
            let before = set;
            set = settings(set, at(n * 240), at((n + 1) * 240));
            assert!(set.contains(&at(n * 240)) && set.contains(&at((n + 1) * 240)), "{set:?}");
            let again = set.iter().zip(&before).filter(|(set, before)| set != before).count();
            assert_eq!(again, if n == 1 { 2 } else { 1 });
            // Packets that come meanwhile change nothing.
            assert_eq!(settings(set, at(n * 240), at((n + 1) * 240)), set);
        }
    }

    #[test]
    fn a_timer_that_was_set_for_the_wrong_time_wakes_nobody() {
        // Foreseen too early, with nothing else foreseen.
        let set = settings([at(100), at(340)], at(500), None);
        assert_eq!(set, [at(500), None]);
        // Foreseen too late.
        assert_eq!(settings([at(100), at(340)], at(220), None), [at(220), at(340)]);
        // A microsecond is no reason to set it again.
        assert_eq!(settings([at(100), at(340)], at(341), at(581)), [at(581), at(340)]);
        assert_eq!(settings([at(100), at(340)], None, None), [None; 2]);
    }

    #[test]
    fn wakeups_at_equal_distances_are_expected_to_go_on() {
        let mut steps = Steps::default();
        let mut after = |now, until| steps.after(time(now), at(until));
        assert_eq!(after(10, 1000), None);
        assert_eq!(after(1030, 2000), at(3000));
        // Woken by a packet on the way there.
        assert_eq!(after(1500, 2000), at(3000));
        assert_eq!(after(2030, 3000), at(4000));
        // One left out, then back to the grid.
        assert_eq!(after(3030, 5000), None);
        assert_eq!(after(5030, 6000), None);
        assert_eq!(after(6030, 7000), at(8000));
    }
}
