//! The simulation's time as the [`Instant`] that stacks take, and as the clock that some read themselves.
//!
//! [The crate's page](crate#time) says why. [`within`] lends the time to the thread for as long as a call
//! into a stack takes.

use std::sync::OnceLock;
use std::time::{Duration as StdDuration, Instant};

use brakelight_core::time::{Duration, Time};
pub(crate) use lent::check;

/// Stacks subtract from the time; before the start there is room for that.
const BEFORE: StdDuration = StdDuration::from_secs(24 * 60 * 60);

/// The instant at which every simulation of this process starts. Stacks look at differences alone.
fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(|| within(Time::ZERO, Instant::now))
}

/// Runs `act`. A clock that it reads shows `now`.
pub(crate) fn within<R>(now: Time, act: impl FnOnce() -> R) -> R {
    let _loan = lent::Loan::new(now);
    act()
}

/// Returns the instant of a time of the simulation.
pub(crate) fn instant(time: Time) -> Instant {
    start() + StdDuration::from_nanos(time.as_nanos())
}

/// Returns the time of the simulation of an instant; zero before the start.
pub(crate) fn time(instant: Instant) -> Time {
    Time::ZERO + length(instant.saturating_duration_since(start()))
}

/// Returns the same length of time.
pub(crate) fn length(length: StdDuration) -> Duration {
    Duration::from_nanos(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX))
}

/// The time that a thread was lent, and the C library's function that shows it.
mod lent {
    use std::cell::Cell;
    use std::sync::OnceLock;
    use std::time::Instant;

    use brakelight_core::time::Time;

    thread_local! {
        /// The time of the simulation whose stack this thread is inside of.
        static LENT: Cell<Option<Time>> = const { Cell::new(None) };
    }

    /// Lends the thread a time. Dropped, it gives back what was lent before, after a panic too.
    pub(super) struct Loan(Option<Time>);

    impl Loan {
        pub(super) fn new(now: Time) -> Self {
            Loan(LENT.replace(Some(now)))
        }
    }

    impl Drop for Loan {
        fn drop(&mut self) {
            LENT.set(self.0);
        }
    }

    /// Returns why what reads a clock would not see the simulation's time.
    pub(crate) fn check() -> Result<(), String> {
        static FOLLOWS: OnceLock<bool> = OnceLock::new();
        let follows = *FOLLOWS.get_or_init(|| {
            let times = [Time::ZERO, Time::from_nanos(1_234_567_890_123)];
            times.into_iter().all(|now| super::within(now, Instant::now) == super::instant(now))
        });
        if follows {
            return Ok(());
        }
        let reason = "it reads a clock of its own, which cannot follow the simulation in this program: that \
                      takes Linux, and a program of its own, not a library in another";
        Err(reason.to_string())
    }

    #[cfg(target_os = "linux")]
    mod linux {
        use std::ffi::c_int;
        use std::sync::OnceLock;
        use std::time::Duration;

        use super::LENT;
        use crate::clock::BEFORE;
        use crate::tls::TODAY;

        type Function = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> c_int;

        /// The C library's function, which asks the kernel without a system call.
        fn library() -> Option<Function> {
            static LIBRARY: OnceLock<Option<Function>> = OnceLock::new();
            *LIBRARY.get_or_init(|| {
                // SAFETY: The name ends in a zero.
                let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"clock_gettime".as_ptr()) };
                // SAFETY: The function of this name has this type; a null pointer is `None`.
                unsafe { std::mem::transmute::<*mut libc::c_void, Option<Function>>(found) }
            })
        }

        /// Writes what the machine's clock `id` shows.
        ///
        /// # Safety
        /// As for the C library's `clock_gettime`.
        unsafe fn machine(id: libc::clockid_t, shown: *mut libc::timespec) -> c_int {
            match library() {
                // SAFETY: The caller's arguments.
                Some(function) => unsafe { function(id, shown) },
                // SAFETY: The kernel checks its arguments, which are the caller's.
                None => unsafe { libc::syscall(libc::SYS_clock_gettime, id, shown) as c_int },
            }
        }

        /// What `CLOCK_MONOTONIC` shows when a simulation starts.
        fn start() -> Duration {
            static START: OnceLock<Duration> = OnceLock::new();
            *START.get_or_init(|| {
                let mut shown = libc::timespec { tv_sec: 0, tv_nsec: 0 };
                // SAFETY: There is room for what it writes.
                unsafe { machine(libc::CLOCK_MONOTONIC, &mut shown) };
                Duration::new(shown.tv_sec as u64, shown.tv_nsec as u32) + BEFORE
            })
        }

        /// What the clock `id` shows to a thread that was lent a time; `None` to any other.
        fn lent(id: libc::clockid_t) -> Option<Duration> {
            // Not there once the thread ends.
            let now = LENT.try_with(std::cell::Cell::get).ok().flatten()?;
            let since = Duration::from_nanos(now.as_nanos());
            match id {
                libc::CLOCK_MONOTONIC | libc::CLOCK_MONOTONIC_RAW | libc::CLOCK_MONOTONIC_COARSE => {
                    Some(start() + since)
                }
                libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => Some(TODAY + since),
                // The processor's time that a thread or a process used, for one.
                _ => None,
            }
        }

        /// The C library's function of this name, for the whole program.
        ///
        /// # Safety
        /// As for the C library's: `shown` has room for a time.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn clock_gettime(id: libc::clockid_t, shown: *mut libc::timespec) -> c_int {
            if let Some(time) = lent(id)
                && !shown.is_null()
            {
                let [tv_sec, tv_nsec] = [time.as_secs() as i64, i64::from(time.subsec_nanos())];
                // SAFETY: The caller owns the room.
                unsafe { shown.write(libc::timespec { tv_sec, tv_nsec }) };
                return 0;
            }
            // SAFETY: The caller's arguments.
            unsafe { machine(id, shown) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_survives_the_way_there_and_back() {
        for nanos in [0, 1, 999_999_999, 3_600_000_000_000] {
            assert_eq!(time(instant(Time::from_nanos(nanos))), Time::from_nanos(nanos));
        }
        assert_eq!(time(instant(Time::ZERO) - StdDuration::from_secs(1)), Time::ZERO);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_inside_reads_the_simulation_s_time_and_others_read_the_machine_s() {
        check().unwrap();
        let machine = Instant::now();
        let (inside, other) =
            within(Time::from_secs(5), || (Instant::now(), std::thread::spawn(Instant::now).join().unwrap()));
        assert_eq!(inside, instant(Time::from_secs(5)));
        assert!(other >= machine && other < machine + StdDuration::from_secs(3600));
        let panic = std::panic::catch_unwind(|| within(Time::from_secs(5), || panic!("deliberate")));
        assert!(panic.is_err());
        assert!(Instant::now() < machine + StdDuration::from_secs(3600));
        let today = within(Time::from_secs(5), std::time::SystemTime::now);
        assert_eq!(today, std::time::UNIX_EPOCH + crate::tls::TODAY + StdDuration::from_secs(5));
    }
}
