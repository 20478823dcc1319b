//! Light packet trains: what a cellular link does for a sender that was idle, as CellReplay records and
//! replays it (cellreplay25).
//!
//! A base station gives little to a device that sends little. CellReplay records both ends. A saturating
//! sender gives the *heavy* opportunities, a [`Trace`](super::trace::Trace). Beside it, on a second device, a
//! short train of packets is sent every some 50 ms. Its first packet gives the *base delay*; when the others
//! arrive after the first, the *light* opportunities.
//!
//! ```text
//! a train begins at t   for the first packet, and when  t + D > r + F
//!     k, D              the recorded train that began last by t; its base delay, on a line to that of k + 1
//!     r = t + D         when the packet is released; it uses opportunity 0
//! within a train        e = t - begin;  j is the first opportunity not used up whose time o[j] >= e
//!     light             r = t + D + (o[j] - e)                    while k has such an opportunity
//!     heavy             r = t + max(D, o[last])                   from then on
//! order                 a packet that would be released before an earlier one waits for it and is heavy
//! ```
//!
//! At `r` a light packet has arrived; a heavy one, and a light one that finds the heavy queue busy, enters
//! the queue that the heavy opportunities serve: [`light_heavy`](super::link::light_heavy).
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | k, D, o | [`Train`] | time | - | a line of CellReplay's `*-delay-light-pdo` |
//! | O | [`opportunity`](Trains::opportunity) | bytes | 1400 | `cellular_queue.hh`, `PACKET_SIZE` |
//! | F | [`idle`](Trains::idle) | time | 1 ms | `--long-to-short-timer-*`, 0 in whole milliseconds |
//! | r | `released` | time | - | - |
//!
//! The paper says what is recorded and why; the rules above are those of its program (`cellular_queue.cc`),
//! which has more of them than the paper. Two of them are to be known. With `max(D, o[last])` a heavy packet
//! takes at least as long as a whole light train, and it is what keeps a busy flow heavy: only a gap longer
//! than `o[last] - D + F` begins a new train. And `D` stays what it was for as long as a train goes on.
//!
//! Deviations:
//! - D1 Times are exact. The program has whole milliseconds, and cuts the base delay to one. Its timer of 0
//!   therefore needs a gap of a millisecond, which is the default here.
//! - D2 A packet larger than an opportunity takes the rest of the next one too. The program refuses such
//!   packets. Up to 1400 bytes both do the same: a packet that does not fit moves on to the next whole.
//! - D3 The recording begins with the run, or with its offset in the trace. The program begins with the first
//!   packet.
//! - D4 The correction of the delay by the size of a packet (`--psize-latency-offset-*`) is left out.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use super::replay::MAX_DELAY;

/// The most that a light opportunity may carry.
pub const MAX_OPPORTUNITY: Bytes = Bytes(1 << 16);

/// A recorded train.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Train {
    /// When it began, since the recording did.
    pub at: Duration,
    /// The base delay, at most [`MAX_DELAY`].
    pub delay: Duration,
    /// When each of its packets arrived after the first, which is at 0: one or more, none earlier than the
    /// one before it, at most [`MAX_DELAY`].
    pub opportunities: Vec<Duration>,
}

/// The light trains of one direction of a link. They start over at the last one, which is only the end of the
/// one before it. Cloning shares the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trains {
    trains: Arc<[Train]>,
    opportunity: Bytes,
    idle: Duration,
}

/// Why recorded trains were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrainsError {
    /// Fewer than two.
    TooFew,
    /// One begins no later than the one before it.
    NotLater(Duration),
    /// A base delay, an opportunity or the idle time above [`MAX_DELAY`].
    TooLong(Duration),
    /// The train that begins then has no opportunity.
    NoOpportunity(Duration),
    /// In the train that begins then one opportunity is before another.
    Decreasing(Duration),
    /// An opportunity carries nothing, or more than [`MAX_OPPORTUNITY`].
    Size(Bytes),
}

impl fmt::Display for TrainsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrainsError::TooFew => write!(f, "there are fewer than two light trains: two or more are valid"),
            TrainsError::NotLater(at) => {
                write!(f, "a light train begins at {at}, no later than the one before it")
            }
            TrainsError::TooLong(time) => {
                write!(f, "a time of a light train is {time}: valid are 0 s to {MAX_DELAY}")
            }
            TrainsError::NoOpportunity(at) => write!(f, "the light train at {at} has no opportunity"),
            TrainsError::Decreasing(at) => {
                write!(f, "the opportunities of the light train at {at} decrease")
            }
            TrainsError::Size(size) => {
                write!(f, "a light opportunity carries {size}: valid are {} to {MAX_OPPORTUNITY}", Bytes(1))
            }
        }
    }
}

impl core::error::Error for TrainsError {}

impl Trains {
    /// What an opportunity carries in CellReplay's recordings.
    pub const OPPORTUNITY: Bytes = Bytes(1400);

    /// How long nothing may wait before a train begins, unless a recording says otherwise.
    pub const IDLE: Duration = Duration::from_millis(1);

    /// Returns the trains of a recording, each of whose opportunities carries `opportunity` bytes at the IP
    /// layer, 1 to [`MAX_OPPORTUNITY`]. `idle` is F above, at most [`MAX_DELAY`].
    pub fn new(trains: Vec<Train>, opportunity: Bytes, idle: Duration) -> Result<Self, TrainsError> {
        if trains.len() < 2 {
            return Err(TrainsError::TooFew);
        }
        if let Some(pair) = trains.windows(2).find(|pair| pair[1].at <= pair[0].at) {
            return Err(TrainsError::NotLater(pair[1].at));
        }
        for train in &trains {
            let last = *train.opportunities.last().ok_or(TrainsError::NoOpportunity(train.at))?;
            if let Some(time) = [train.delay, last].into_iter().find(|time| *time > MAX_DELAY) {
                return Err(TrainsError::TooLong(time));
            }
            if !train.opportunities.is_sorted() {
                return Err(TrainsError::Decreasing(train.at));
            }
        }
        if idle > MAX_DELAY {
            return Err(TrainsError::TooLong(idle));
        }
        if opportunity == Bytes::ZERO || opportunity > MAX_OPPORTUNITY {
            return Err(TrainsError::Size(opportunity));
        }
        Ok(Trains { trains: trains.into(), opportunity, idle })
    }

    /// Returns the trains in the order in which they began.
    pub fn trains(&self) -> &[Train] {
        &self.trains
    }

    /// Returns what a light opportunity carries at the IP layer.
    pub fn opportunity(&self) -> Bytes {
        self.opportunity
    }

    /// Returns how much longer than the last packet of a train the sender must pause before another begins.
    pub fn idle(&self) -> Duration {
        self.idle
    }

    /// Returns the time after which they start over: when the last one began.
    pub fn period(&self) -> Duration {
        self.trains[self.trains.len() - 1].at
    }

    /// Returns the train that holds so far into the recording, and the base delay then.
    pub fn at(&self, at: Duration) -> (&Train, Duration) {
        let (index, delay) = self.find(at);
        (&self.trains[index], delay)
    }

    fn find(&self, at: Duration) -> (usize, Duration) {
        let at = Duration::from_nanos(at.as_nanos() % self.period().as_nanos());
        // Before the first one it is the first; the last one is never it.
        let index = self.trains.partition_point(|train| train.at <= at).saturating_sub(1);
        let (from, to) = (&self.trains[index], &self.trains[index + 1]);
        let into = i128::from(at.saturating_sub(from.at).as_nanos());
        let (low, high) = (i128::from(from.delay.as_nanos()), i128::from(to.delay.as_nanos()));
        let delay = low + (high - low) * into / i128::from((to.at - from.at).as_nanos());
        (index, Duration::from_nanos(delay as u64))
    }
}

/// When a packet comes out of the light part of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// When; never before that of an earlier packet.
    pub at: Time,
    /// How long it waited for a light opportunity, or for packets before it: what is beyond the base delay.
    pub waited: Duration,
    /// Whether the packet has passed the link then, if no other waits in the heavy queue.
    pub light: bool,
}

/// The trains of one run: which one is under way, and what of it is used.
#[derive(Clone, Debug)]
pub struct Progress {
    trains: Trains,
    /// How far into the recording the run begins.
    offset: Duration,
    current: Option<Current>,
    /// The release of the packet before.
    last: Time,
}

/// The train under way.
#[derive(Clone, Copy, Debug)]
struct Current {
    train: usize,
    begun: Time,
    delay: Duration,
    /// The opportunity in use, and the bytes left of it; below 0 those that were taken of the next one.
    next: usize,
    left: i64,
    /// The release of the packet before, but for the order.
    released: Time,
}

impl Current {
    fn step(&mut self, opportunity: i64) {
        self.next += 1;
        self.left = self.left.min(0) + opportunity;
    }
}

impl Progress {
    /// Returns the trains of a run that begins so far into the recording.
    pub fn new(trains: Trains, offset: Duration) -> Self {
        Progress { trains, offset, current: None, last: Time::ZERO }
    }

    /// Returns when a packet of `size` bytes at the IP layer that arrives at `now` is released. Times of
    /// successive calls must not decrease.
    pub fn release(&mut self, now: Time, size: u32) -> Release {
        let (opportunity, size) = (self.trains.opportunity.0 as i64, i64::from(size));
        let busy = |train: &&mut Current| now + train.delay <= train.released + self.trains.idle;
        let (delay, at, light) = match self.current.as_mut().filter(busy) {
            Some(train) => {
                let times = &self.trains.trains[train.train].opportunities;
                let elapsed = now.since(train.begun);
                while times.get(train.next).is_some_and(|time| *time < elapsed) {
                    train.step(opportunity);
                }
                if train.left < size {
                    train.step(opportunity);
                    while train.left <= 0 {
                        train.step(opportunity);
                    }
                }
                train.left -= size;
                let (at, light) = match times.get(train.next) {
                    Some(time) => (train.begun + train.delay + *time, true),
                    None => (now + train.delay.max(times[times.len() - 1]), false),
                };
                train.released = at;
                (train.delay, at, light)
            }
            None => {
                let (train, delay) = self.trains.find(now.since(Time::ZERO) + self.offset);
                let released = now + delay;
                let left = opportunity - size;
                self.current = Some(Current { train, begun: now, delay, next: 0, left, released });
                (delay, released, true)
            }
        };
        let (at, light) = if at < self.last { (self.last, false) } else { (at, light) };
        self.last = at;
        Release { at, waited: at.since(now + delay), light }
    }

    /// Returns when a packet that arrives at `now` is released if it takes the base delay of the recording
    /// and no train begins.
    pub fn release_heavy(&mut self, now: Time) -> Release {
        let (_, delay) = self.trains.find(now.since(Time::ZERO) + self.offset);
        self.last = self.last.max(now + delay);
        Release { at: self.last, waited: self.last.since(now + delay), light: false }
    }
}

#[cfg(test)]
mod tests;
