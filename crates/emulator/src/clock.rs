//! Time in nanoseconds, how precisely a thread sleeps, and how late it was.
//!
//! All threads of an emulator count from one [`Epoch`]. A thread that is to sleep precisely asks for a timer
//! slack of one nanosecond and, where it may, for SCHED_FIFO; what it got is part of the result, as is the
//! lateness of everything it did.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};

use brakelight_core::time::{Duration, Time};
use hdrhistogram::Histogram;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::time::{ClockId, clock_gettime};

/// The origin of the run's clock, on the system's monotonic one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Nanoseconds of CLOCK_MONOTONIC.
    origin: u64,
}

/// Nanoseconds of CLOCK_MONOTONIC.
fn monotonic() -> u64 {
    // The call cannot fail: the clock exists on every Linux and the pointer is the library's own.
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |now| now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

impl Epoch {
    /// Starts the clock: time zero is now.
    pub fn start() -> Self {
        Epoch { origin: monotonic() }
    }

    /// Returns the time that has passed.
    #[inline]
    pub fn now(self) -> Time {
        Time::from_nanos(monotonic().saturating_sub(self.origin))
    }

    /// Returns the nanoseconds of CLOCK_MONOTONIC at time zero, for comparison with other processes' clocks.
    pub fn origin_nanos(self) -> u64 {
        self.origin
    }
}

/// A stop flag that threads can poll. Once set, it stays set.
#[derive(Debug)]
pub struct Stop(EventFd);

impl Stop {
    /// Returns a flag that is not set.
    pub fn new() -> Result<Self, nix::Error> {
        EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).map(Stop)
    }

    /// Sets the flag.
    pub fn set(&self) {
        // It fails only when the counter is full, and then it is set.
        let _ = self.0.write(1);
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// How a thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// SCHED_FIFO: before all ordinary threads.
    Fifo,
    /// As any other thread.
    Ordinary,
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scheduling::Fifo => "SCHED_FIFO",
            Scheduling::Ordinary => "SCHED_OTHER",
        })
    }
}

/// The priority asked for: the lowest of its class, which is above every ordinary thread and below the
/// kernel's own.
const PRIORITY: libc::c_int = 1;

/// Makes this thread sleep precisely: a timer slack of 1 ns and, if `fifo` asks for it and the system
/// permits, SCHED_FIFO.
pub fn sleep_precisely(fifo: bool) -> Scheduling {
    // A slack of zero would mean the default. It cannot fail for a thread's own slack.
    let _ = nix::sys::prctl::set_timerslack(1);
    if !fifo {
        return Scheduling::Ordinary;
    }
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    // A child of this process must not inherit the privilege.
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the pointer is to a parameter block on this stack, which the kernel reads during the call; 0 is
    // this thread.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        0 => Scheduling::Fifo,
        _ => Scheduling::Ordinary,
    }
}

/// How late deliveries were: the time from when a packet was due to when it was handed over.
#[derive(Clone, Debug)]
pub struct Lateness {
    histogram: Histogram<u64>,
}

impl Default for Lateness {
    fn default() -> Self {
        Lateness::new()
    }
}

impl Lateness {
    /// The largest recorded lateness, nanoseconds; larger values count as this.
    const MOST: u64 = 100_000_000_000;

    /// Returns an empty histogram. Values are kept to three significant digits.
    pub fn new() -> Self {
        let histogram = Histogram::new_with_max(Self::MOST, 3).expect("three digits up to 100 s are valid");
        Lateness { histogram }
    }

    /// One more.
    #[inline]
    pub fn record(&mut self, late: Duration) {
        self.histogram.saturating_record(late.as_nanos());
    }

    /// Adds what another thread counted.
    pub fn add(&mut self, other: &Lateness) {
        self.histogram.add(&other.histogram).expect("all have the same limits");
    }

    /// Returns how many were counted.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the lateness that a share `quantile` (0 to 1) of the deliveries did not exceed; zero if there
    /// were none.
    pub fn quantile(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.histogram.value_at_quantile(quantile))
    }

    /// Returns the latest.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.histogram.max())
    }

    /// Returns the share of deliveries, 0 to 1, that were later than `limit`.
    pub fn share_above(&self, limit: Duration) -> f64 {
        if self.histogram.is_empty() {
            return 0.0;
        }
        1.0 - self.histogram.quantile_below(limit.as_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_does_not_go_back_and_all_who_share_an_epoch_agree() {
        let epoch = Epoch::start();
        let copy = epoch;
        let mut last = epoch.now();
        for _ in 0..10_000 {
            let now = copy.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn lateness_is_counted_to_three_digits() {
        let mut lateness = Lateness::new();
        assert_eq!((lateness.quantile(0.5), lateness.share_above(Duration::ZERO)), (Duration::ZERO, 0.0));
        for micros in 1..=1000 {
            lateness.record(Duration::from_micros(micros));
        }
        let near = |measured: Duration, micros: u64| {
            let exact = Duration::from_micros(micros).as_nanos() as f64;
            (measured.as_nanos() as f64 / exact - 1.0).abs() < 2e-3
        };
        assert!(near(lateness.quantile(0.5), 500), "{}", lateness.quantile(0.5));
        assert!(near(lateness.quantile(0.99), 990), "{}", lateness.quantile(0.99));
        assert!((lateness.share_above(Duration::from_micros(900)) - 0.1).abs() < 2e-3);
        let mut both = Lateness::new();
        both.record(Duration::from_secs(1000));
        both.add(&lateness);
        assert_eq!(both.count(), 1001);
        assert!(near(both.max(), 100_000_000));
    }
}
