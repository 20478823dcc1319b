//! The programs' fixed point against the core's floating point: both are told the same events, as a run of
//! the core's own sender over a link that varies, marks, loses, and times out gives them.

mod adaptive;
mod delay;
mod l4s;
mod path;
mod recovery;
mod router;
mod window;

use brakelight_core::queue::Queue;
use brakelight_testkit::Sample;

/// Returns what `core` shows under that name.
fn inspect(core: &impl Queue<Sample>, wanted: &str) -> f64 {
    let mut found = f64::NAN;
    core.inspect(&mut |name, value| {
        if name == wanted {
            found = value;
        }
    });
    found
}
