//! Whether programs had to wait for a processor while a run went on.
//!
//! The lateness of packets is that of the thread that carries them, which goes before all ordinary threads
//! where it may. The programs at the two ends are ordinary: on a busy machine they can stand still while no
//! packet is late. So a thread as ordinary as theirs sleeps again and again, and keeps when it was left
//! waiting.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use brakelight_core::time::{Duration, Time};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::clock::{Epoch, Stop};
use crate::outcome::LATE_MOST;

/// How long it sleeps each time, in milliseconds.
const SLEEP_MS: u16 = 5;

/// A time in which an ordinary thread got no processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// When the thread was to go on.
    pub from: Time,
    /// When it did.
    pub to: Time,
}

impl Stall {
    /// Returns how long the thread waited.
    pub fn waited(&self) -> Duration {
        self.to.since(self.from)
    }
}

/// The thread.
#[derive(Debug)]
pub struct Probe(JoinHandle<Vec<Stall>>);

impl Probe {
    /// Starts the thread, which ends once `stop` is set.
    pub fn start(epoch: Epoch, stop: Arc<Stop>) -> io::Result<Self> {
        // A thread that begins late has waited, too.
        let begun = epoch.now();
        thread::Builder::new().name("probe".to_string()).spawn(move || watch(&stop, epoch, begun)).map(Probe)
    }

    /// Waits for its end, and returns the stalls longer than [`LATE_MOST`], in order.
    pub fn end(self) -> Vec<Stall> {
        self.0.join().unwrap_or_default()
    }
}

fn watch(stop: &Stop, epoch: Epoch, begun: Time) -> Vec<Stall> {
    let mut stalls = Vec::new();
    let sleep = Duration::from_millis(u64::from(SLEEP_MS));
    let mut due = begun + sleep;
    loop {
        let mut flag = [PollFd::new(stop.as_fd(), PollFlags::POLLIN)];
        // An interrupted sleep is a short one.
        let is_set = matches!(poll(&mut flag, PollTimeout::from(SLEEP_MS)), Ok(1..));
        let now = epoch.now();
        if now > due + LATE_MOST {
            stalls.push(Stall { from: due, to: now });
        }
        if is_set {
            return stalls;
        }
        due = now + sleep;
    }
}

/// Returns the longest wait that has a part between `begin` and `end`; `None` if there was none.
pub(crate) fn longest(stalls: &[Stall], begin: Time, end: Time) -> Option<Duration> {
    stalls.iter().filter(|stall| stall.to > begin && stall.from < end).map(Stall::waited).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waits_of_the_measured_time_count() {
        let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        let stalls = [(10, 210), (490, 520), (900, 950), (1_000, 1_400)];
        let stalls = stalls.map(|(from, to)| Stall { from: at(from), to: at(to) });
        assert_eq!(longest(&stalls, at(500), at(1_000)), Some(Duration::from_millis(50)));
        assert_eq!(longest(&stalls, at(500), at(900)), Some(Duration::from_millis(30)));
        assert_eq!(longest(&stalls, at(210), at(490)), None);
    }
}
