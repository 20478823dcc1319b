//! The sound of a call: small messages at a fixed beat, beside the frames, which nobody sends again.
//!
//! ```text
//! one message every T_a, of L bytes: 32 kbit/s of Opus in frames of 20 ms, with RTP headers
//! missed: one that took longer than the call's deadline, or that is still missing after it
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | T_a | `INTERVAL` | time | 20 ms | rfc7587 4.2 |
//! | L | `MESSAGE` | B | 92 | rfc7587 3.1.1, speech in full band: 28 to 40 kbit/s; rfc3550 5.1: 12 B |
//!
//! Outcome: `audio_missed_percent` (of those sent whose deadline has passed), `audio_delay_ms_mean`, `_p50`,
//! `_p95`, `_p99` (of all that arrived).
//!
//! Deviations: D1 its rate is fixed, without silence suppression. D2 it pauses with nothing: a camera's pause
//! is not a microphone's.

use std::collections::VecDeque;

use brakelight_core::packet::Direction;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use crate::distribution::{Distribution, visit_distribution};
use crate::socket::{Datagram, Socket};

/// rfc7587 4.2
const INTERVAL: Duration = Duration::from_millis(20);
/// 80 bytes of Opus and a header of RTP, in bytes.
pub const MESSAGE: Bytes = Bytes(92);
/// Messages a second.
pub const PER_SECOND: f64 = 50.0;

/// The sound of a call: microphone and loudspeaker.
#[derive(Clone, Debug)]
pub struct Audio {
    deadline: Duration,
    beat_at: Time,
    /// Messages sent.
    sent: u64,
    /// When those were sent that are neither heard nor given up, and their numbers, oldest first.
    flying: VecDeque<(u64, Time)>,
    /// Messages that came too late, or did not come.
    missed: u64,
    in_time: u64,
    delays: Distribution,
}

impl Audio {
    /// Returns a sound that has not started, of which nobody hears what is older than `deadline`.
    pub fn new(deadline: Duration) -> Self {
        Audio {
            deadline,
            beat_at: Time::MAX,
            sent: 0,
            flying: VecDeque::new(),
            missed: 0,
            in_time: 0,
            delays: Distribution::default(),
        }
    }

    /// Begins at `now`.
    pub fn start(&mut self, now: Time) {
        self.beat_at = now;
    }

    /// Ends.
    pub fn stop(&mut self) {
        self.beat_at = Time::MAX;
    }

    /// Returns when it sends next.
    pub fn next_timer(&self) -> Time {
        self.beat_at
    }

    /// Sends what is due.
    pub fn on_timer(&mut self, socket: &mut impl Socket) {
        let now = socket.now();
        if self.beat_at > now {
            return;
        }
        self.give_up(now);
        self.sent += 1;
        self.flying.push_back((self.sent, now));
        let number = self.sent as u32;
        let payload = MESSAGE.0 as u16;
        socket.send(Datagram { direction: Direction::Forward, payload, number, echo: 0, held_us: 0 });
        // A host that wakes late keeps the beat: what it slept through is left out.
        self.beat_at = self.beat_at + INTERVAL * (now.since(self.beat_at).periods(INTERVAL) + 1);
    }

    /// A message arrived.
    pub fn on_datagram(&mut self, datagram: &Datagram, now: Time) {
        let found = self.flying.iter().position(|(number, _)| *number as u32 == datagram.number);
        // One that was given up may still come: it was counted.
        let Some((_, sent_at)) = found.and_then(|place| self.flying.remove(place)) else { return };
        let delay = now.since(sent_at);
        self.delays.record(delay);
        if delay > self.deadline {
            self.missed += 1;
        } else {
            self.in_time += 1;
        }
    }

    /// Counts those that can no longer come in time. They stay known for as long again, so that their delays
    /// count if they come.
    fn give_up(&mut self, now: Time) {
        while let Some(&(_, sent_at)) = self.flying.front()
            && now.since(sent_at) > self.deadline * 2
        {
            self.flying.pop_front();
            self.missed += 1;
        }
    }

    /// Calls `visit` with what was heard until `now`.
    pub fn outcome(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        let overdue = self.flying.iter().filter(|(_, sent_at)| now.since(*sent_at) > self.deadline).count();
        let missed = self.missed + overdue as u64;
        if missed + self.in_time > 0 {
            visit("audio_missed_percent", 100.0 * missed as f64 / (missed + self.in_time) as f64);
        }
        visit_distribution(
            &self.delays,
            ["audio_delay_ms_mean", "audio_delay_ms_p50", "audio_delay_ms_p95", "audio_delay_ms_p99"],
            visit,
        );
    }
}
