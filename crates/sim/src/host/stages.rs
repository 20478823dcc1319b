//! The stages that a controller went through: how often and how long it was in each, where it went from
//! there, and with which values.
//!
//! They are seen at ACKs. With `STAGE` and `NEXT` for names of stages, and `VALUE` for what the controller
//! shows of itself, `inflight_bytes` or `cwnd_bytes`:
//!
//! | key | meaning |
//! |---|---|
//! | `STAGE_entries` | how often it came into the stage |
//! | `STAGE_s` | how long it was there, all together, in seconds |
//! | `STAGE_longest_s` | how long at most at a time |
//! | `STAGE_to_NEXT` | how often it went from there to `NEXT` |
//! | `STAGE_start_VALUE` | `VALUE` after the ACK with which it last came there |
//! | `STAGE_end_VALUE` | `VALUE` after the last ACK before it left, or after the last of all |

use std::collections::BTreeMap;

use brakelight_core::controller::{Controller, Stage};
use brakelight_core::time::Time;

/// What was seen of one stage.
#[derive(Clone, Debug, Default)]
struct Seen {
    entries: u32,
    seconds: f64,
    longest: f64,
    to: BTreeMap<usize, u32>,
    start: Vec<(&'static str, f64)>,
    end: Vec<(&'static str, f64)>,
}

/// The stages until now.
#[derive(Clone, Debug, Default)]
pub(super) struct Stages {
    names: &'static [&'static str],
    seen: Vec<Seen>,
    /// The present stage, and since when.
    present: Option<(usize, Time)>,
}

impl Stages {
    /// Notes the `stage` of `controller` at `now`, after an ACK that left so many bytes in flight.
    pub(super) fn note(&mut self, now: Time, stage: Stage, inflight: f64, controller: &dyn Controller) {
        self.names = stage.names;
        self.seen.resize_with(stage.names.len(), Seen::default);
        let changed = match self.present {
            Some((index, since)) if index != stage.index => {
                let left = &mut self.seen[index];
                left.leave(now, since);
                *left.to.entry(stage.index).or_default() += 1;
                true
            }
            Some(_) => false,
            None => true,
        };
        let seen = &mut self.seen[stage.index];
        seen.end.clear();
        seen.end.push(("inflight_bytes", inflight));
        seen.end.push(("cwnd_bytes", controller.cwnd().as_f64()));
        controller.inspect(&mut |name, value| seen.end.push((name, value)));
        if changed {
            seen.entries += 1;
            seen.start.clone_from(&seen.end);
            self.present = Some((stage.index, now));
        }
    }

    /// Returns all of it until `now`. Stages that were never seen have zeros, and no values.
    pub(super) fn outcome(&self, now: Time) -> BTreeMap<String, f64> {
        let mut outcome = BTreeMap::new();
        for (index, (name, seen)) in self.names.iter().zip(&self.seen).enumerate() {
            let mut seen = seen.clone();
            if let Some((present, since)) = self.present
                && present == index
            {
                seen.leave(now, since);
            }
            outcome.insert(format!("{name}_entries"), f64::from(seen.entries));
            outcome.insert(format!("{name}_s"), seen.seconds);
            outcome.insert(format!("{name}_longest_s"), seen.longest);
            for (next, other) in self.names.iter().enumerate().filter(|(next, _)| *next != index) {
                let times = seen.to.get(&next).copied().unwrap_or_default();
                outcome.insert(format!("{name}_to_{other}"), f64::from(times));
            }
            for (value, number) in seen.start {
                outcome.insert(format!("{name}_start_{value}"), number);
            }
            for (value, number) in seen.end {
                outcome.insert(format!("{name}_end_{value}"), number);
            }
        }
        outcome
    }
}

impl Seen {
    fn leave(&mut self, now: Time, since: Time) {
        let seconds = now.since(since).as_secs_f64();
        self.seconds += seconds;
        self.longest = self.longest.max(seconds);
    }
}
