//! A small process that outlives the emulator by a moment, and makes the machine's forwarding as it was. Only
//! a kill of both leaves it changed.

use std::io;
use std::time::{Duration, Instant};

use brakelight_files::survivor::Survivor;
use nix::poll::{PollTimeout, poll};

use crate::nat::{NetworkLock, Table};

/// How long to wait for another emulator that changes the network.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Restores forwarding.
#[derive(Debug)]
pub(crate) struct Supervisor {
    survivor: Survivor,
    /// Held until the network has been changed.
    lock: Option<NetworkLock>,
}

impl Supervisor {
    /// Has forwarding restored when this process ends or the returned value is dropped.
    pub(crate) fn start(table: &Table, lock: NetworkLock) -> io::Result<Self> {
        let survivor = Survivor::start(|_| {
            let _ = restore(table, PATIENCE);
        })?;
        Ok(Supervisor { survivor, lock: Some(lock) })
    }

    /// Releases the lock: the network has been changed, and the table tells other emulators so.
    pub(crate) fn give_way(&mut self) {
        self.lock = None;
    }
}

impl Drop for Supervisor {
    /// Waits until forwarding is restored.
    fn drop(&mut self) {
        self.give_way();
        self.survivor.end();
    }
}

/// Waits until the emulator's own table is gone, and restores forwarding unless another emulator still needs
/// it. If the lock cannot be had in time, it restores without: forwarding that stays on would be worse.
fn restore(table: &Table, patience: Duration) -> io::Result<()> {
    let until = Instant::now() + patience;
    loop {
        let lock = NetworkLock::take(until.saturating_duration_since(Instant::now())).ok();
        // Where tables cannot be read, none can have been made.
        let others = Table::all().unwrap_or_default();
        if !others.contains(table) || Instant::now() > until {
            return if others.iter().all(|other| other == table) { table.before.restore() } else { Ok(()) };
        }
        drop(lock);
        // The kernel is about to remove it: its owner is being killed.
        let _ = poll(&mut [], PollTimeout::from(1u8));
    }
}

#[cfg(test)]
mod tests {
    use nix::sched::{CloneFlags, unshare};

    use super::*;
    use crate::nat::Forwarding;
    use crate::sysctl::{get, set};

    /// Does something in a network of its own; says what was not run where none can be made.
    fn in_a_network(what: &str, test: impl FnOnce() + Send) {
        std::thread::scope(|scope| {
            let run = || {
                let made = unshare(CloneFlags::CLONE_NEWNET).is_ok();
                if made {
                    test();
                }
                made
            };
            if !scope.spawn(run).join().unwrap() {
                brakelight_testkit::skip(&format!("network: {what}"), "no network namespace can be made");
            }
        });
    }

    #[test]
    fn the_network_lock_has_one_holder_at_a_time() {
        in_a_network("network locks", || {
            let first = NetworkLock::take(Duration::ZERO).unwrap();
            assert_eq!(NetworkLock::take(Duration::ZERO).unwrap_err().kind(), io::ErrorKind::TimedOut);
            drop(first);
            drop(NetworkLock::take(PATIENCE).unwrap());
            // It is no emulator's table.
            let _lock = NetworkLock::take(PATIENCE).unwrap();
            assert_eq!(Table::all().unwrap(), []);
        });
    }

    #[test]
    fn forwarding_is_restored_though_the_network_lock_is_never_released() {
        in_a_network("a network lock that is never released", || {
            let _kept = NetworkLock::take(Duration::ZERO).unwrap();
            set("net/ipv4/ip_forward", "1").unwrap();
            let table = Table { token: 7, before: Forwarding { v4: false, v6: None } };
            restore(&table, Duration::from_millis(30)).unwrap();
            assert_eq!(get("net/ipv4/ip_forward").unwrap(), "0");
        });
    }
}
