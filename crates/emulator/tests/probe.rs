//! The thread that waits for a processor as the programs of a run do.

use std::process::Command;
use std::sync::Arc;

use brakelight_core::time::Duration;
use brakelight_emulator::clock::{Epoch, Stop};
use brakelight_emulator::probe::{Probe, Stall};

#[test]
fn a_process_that_stands_still_is_seen() {
    let stop = Arc::new(Stop::new().unwrap());
    let probe = Probe::start(Epoch::start(), stop.clone()).unwrap();
    // On a busy machine a thread stops only when it has a processor.
    let script = "kill -STOP $PPID
        while grep -h ^State: /proc/$PPID/task/*/status | grep -qv stopped; do :; done
        sleep 0.1; kill -CONT $PPID";
    assert!(Command::new("sh").args(["-c", script]).status().unwrap().success());
    stop.set();
    let stalls = probe.end();
    // It may have slept on for a part of the 100 ms.
    assert!(stalls.iter().map(Stall::waited).max() > Some(Duration::from_millis(90)), "{stalls:?}");
}
