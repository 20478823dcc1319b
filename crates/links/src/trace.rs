//! A trace of delivery opportunities, in Mahimahi's format: one line is one opportunity, given as a whole
//! number of milliseconds since the start; lines never decrease; after the last one the trace starts again,
//! so its period is the last timestamp.
//!
//! ```text
//! opportunity i of cycle k happens at k * period + ms(i)
//! ```
//!
//! An opportunity at the period of one cycle and one at 0 of the next therefore happen at the same instant.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::replay::Recorded;

/// The latest timestamp a trace may have: 49 days.
pub const MAX_MILLIS: u64 = u32::MAX as u64;

/// The most opportunities a trace may have: as many lines make a file of several gigabytes.
pub const MAX_OPPORTUNITIES: usize = 1 << 30;

const NANOS_PER_MILLI: u64 = 1_000_000;

const NANOS_PER_MICRO: u64 = 1_000;

/// Ticks below a millisecond, in nanoseconds, finest first.
const FINE_TICKS: [u64; 3] = [1_000, 10_000, 100_000];

/// The most instants that a trace of ticks below a millisecond keeps apart: 8 bytes each, so that ten minutes
/// of a gigabit per second take 50 MB.
const MOST_FINE_SLOTS: usize = 1 << 23;

/// All opportunities of one tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    /// The tick within the cycle.
    at: u32,
    /// Opportunities of the cycle before this tick.
    before: u32,
}

/// A parsed trace. Cloning shares the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// One per tick that has an opportunity, and a last one that only ends the count.
    slots: Arc<[Slot]>,
    /// Length of a tick in nanoseconds: a millisecond as read, less once it is [spread](Trace::spread).
    tick: u64,
    digest: Arc<Digest>,
    /// What else was recorded of the path, if anything was.
    recorded: Option<Arc<Recorded>>,
}

/// What a hash made of a trace, once somebody has asked for it.
#[derive(Debug, Default)]
struct Digest {
    words: [AtomicU32; 8],
    known: AtomicBool,
}

impl PartialEq for Digest {
    /// Returns `true`: traces are equal by their slots, whether they were hashed or not.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Digest {}

/// Why a trace was refused. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceError {
    /// There is no line at all.
    Empty,
    /// A line without a number.
    Blank {
        /// The line.
        line: usize,
    },
    /// A line that is not a whole number.
    NotANumber {
        /// The line.
        line: usize,
        /// Its text, shortened.
        text: String,
    },
    /// A negative number.
    Negative {
        /// The line.
        line: usize,
        /// Its text, shortened.
        text: String,
    },
    /// A number above [`MAX_MILLIS`].
    TooLate {
        /// The line.
        line: usize,
        /// Its text, shortened.
        text: String,
    },
    /// A number below the one of the line before.
    Decreasing {
        /// The line.
        line: usize,
        /// Its number.
        value: u64,
        /// The number of the line before.
        previous: u64,
    },
    /// The last timestamp, which is the period, is zero.
    ZeroPeriod {
        /// The last line.
        line: usize,
    },
    /// More lines than a trace may have.
    TooLong {
        /// The first line too many.
        line: usize,
        /// How many are valid.
        most: usize,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const EXPECTED: &str =
            "expected a whole number of milliseconds from 0 to 4294967295, one per delivery opportunity";
        match self {
            TraceError::Empty => write!(f, "the trace is empty: {EXPECTED}, one a line"),
            TraceError::Blank { line } => write!(f, "line {line}: the line is empty: {EXPECTED}"),
            TraceError::NotANumber { line, text } => {
                write!(f, "line {line}: `{text}` is not a whole number: {EXPECTED}")
            }
            TraceError::Negative { line, text } => {
                write!(f, "line {line}: `{text}` is negative: {EXPECTED}")
            }
            TraceError::TooLate { line, text } => {
                write!(f, "line {line}: `{text}` is too large: {EXPECTED}")
            }
            TraceError::Decreasing { line, value, previous } => write!(
                f,
                "line {line}: `{value}` is less than `{previous}` on the line before: timestamps must not decrease"
            ),
            TraceError::ZeroPeriod { line } => write!(
                f,
                "line {line}: the last timestamp is `0`, but it is the trace's period: it must be at least 1"
            ),
            TraceError::TooLong { line, most } => {
                write!(f, "line {line}: the trace is too long: at most {most} opportunities are valid")
            }
        }
    }
}

impl core::error::Error for TraceError {}

impl Trace {
    /// Reads a Mahimahi trace. Spaces around a number, CR LF line ends and blank lines at the very end are
    /// accepted.
    pub fn parse(bytes: &[u8]) -> Result<Self, TraceError> {
        Trace::parse_at_most(bytes, MAX_OPPORTUNITIES)
    }

    fn parse_at_most(bytes: &[u8], most: usize) -> Result<Self, TraceError> {
        let bytes = bytes.trim_ascii_end();
        if bytes.is_empty() {
            return Err(TraceError::Empty);
        }
        let lines = bytes.split(|&byte| byte == b'\n').enumerate();
        Trace::collect(lines.map(|(index, line)| parse_line(index + 1, line)), most)
    }

    /// Returns a trace of these timestamps in milliseconds. Errors count the first as line 1.
    pub fn from_millis(timestamps: impl IntoIterator<Item = u64>) -> Result<Self, TraceError> {
        let checked = timestamps.into_iter().enumerate().map(|(index, value)| match value {
            0..=MAX_MILLIS => Ok(value),
            _ => Err(TraceError::TooLate { line: index + 1, text: alloc::format!("{value}") }),
        });
        Trace::collect(checked, MAX_OPPORTUNITIES)
    }

    fn collect(
        timestamps: impl Iterator<Item = Result<u64, TraceError>>,
        most: usize,
    ) -> Result<Self, TraceError> {
        let mut slots: Vec<Slot> = Vec::new();
        let mut line = 0;
        for value in timestamps {
            let value = value?;
            if line == most {
                return Err(TraceError::TooLong { line: line + 1, most });
            }
            let ms = value as u32;
            match slots.last() {
                Some(last) if last.at > ms => {
                    let previous = u64::from(last.at);
                    return Err(TraceError::Decreasing { line: line + 1, value, previous });
                }
                Some(last) if last.at == ms => {}
                _ => slots.push(Slot { at: ms, before: line as u32 }),
            }
            line += 1;
        }
        let Some(last) = slots.last().copied() else {
            return Err(TraceError::Empty);
        };
        if last.at == 0 {
            return Err(TraceError::ZeroPeriod { line });
        }
        slots.push(Slot { at: last.at, before: line as u32 });
        Ok(Trace { slots: slots.into(), tick: NANOS_PER_MILLI, digest: Arc::default(), recorded: None })
    }

    /// Returns a trace of these instants in microseconds, each with how many opportunities come then; see
    /// [`TraceBuilder`]. Errors count the first instant as line 1.
    pub fn from_micros(instants: impl IntoIterator<Item = (u64, u32)>) -> Result<Self, TraceError> {
        let mut builder = TraceBuilder::default();
        instants.into_iter().try_for_each(|(at, count)| builder.push(at, count))?;
        builder.finish()
    }

    /// Returns the same opportunities with what else was recorded of the path.
    #[must_use]
    pub fn with_recorded(&self, recorded: Recorded) -> Self {
        Trace { recorded: Some(Arc::new(recorded)), digest: Arc::default(), ..self.clone() }
    }

    /// Returns what else was recorded of the path, if anything was.
    pub fn recorded(&self) -> Option<&Recorded> {
        self.recorded.as_deref()
    }

    /// Returns the length of the grid that the opportunities lie on: a millisecond for Mahimahi's format.
    pub fn tick(&self) -> Duration {
        Duration::from_nanos(self.tick)
    }

    /// Returns the time of which the trace keeps the mean alone: what its recording says, or else its tick.
    pub fn resolution(&self) -> Duration {
        self.recorded().map_or(self.tick(), |recorded| recorded.resolution.max(self.tick()))
    }

    /// Returns the instants of one period in microseconds, each with the number of its opportunities.
    pub fn micros(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let tick = self.tick / NANOS_PER_MICRO;
        self.slots.windows(2).map(move |pair| (u64::from(pair[0].at) * tick, pair[1].before - pair[0].before))
    }

    /// Returns the trace with the opportunities of every millisecond spread evenly over the millisecond that
    /// ends there: the k-th of n comes at `ms - 1 + k/n`. Those at 0 stay. A file of milliseconds says only
    /// that they came by its end; replayed at one instant they are bursts that the link may never have had,
    /// which a queue that marks by sojourn takes for congestion. Ticks are 1 us, 10 us where the
    /// period takes more than 71 minutes, 100 us where it takes more than 11 hours; one of more than 119
    /// hours, or one that is spread already, stays as it is.
    #[must_use]
    pub fn spread(&self) -> Self {
        let period = self.period_nanos();
        let fits = |tick: &&u64| period.div_ceil(**tick) <= u64::from(u32::MAX);
        let tick = FINE_TICKS.iter().find(fits).copied().unwrap_or(self.tick);
        if tick >= self.tick {
            return self.clone();
        }
        let ticks = self.tick / tick;
        let mut slots: Vec<Slot> = Vec::with_capacity(self.opportunities() as usize + 1);
        for pair in self.slots.windows(2) {
            let width = u64::from(pair[1].before - pair[0].before);
            let end = u64::from(pair[0].at) * ticks;
            let start = end.saturating_sub(ticks);
            for k in 1..=width {
                let at = (start + (end - start) * k / width) as u32;
                if slots.last().is_none_or(|last| last.at < at) {
                    slots.push(Slot { at, before: pair[0].before + k as u32 - 1 });
                }
            }
        }
        let end = self.end();
        slots.push(Slot { at: (u64::from(end.at) * ticks) as u32, before: end.before });
        Trace { slots: slots.into(), tick, digest: Arc::default(), recorded: self.recorded.clone() }
    }

    /// Returns the time after which the trace repeats: its last timestamp.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period_nanos())
    }

    /// Returns the number of opportunities in one period.
    pub fn opportunities(&self) -> u64 {
        u64::from(self.end().before)
    }

    /// Returns the mean rate when an opportunity carries `opportunity` bytes.
    pub fn mean_rate(&self, opportunity: Bytes) -> Rate {
        Rate::over(Bytes(self.opportunities() * opportunity.0), self.period())
    }

    /// Returns the timestamps of one period in milliseconds, as the file lists them: those of a trace that is
    /// spread are rounded up, to what they were before.
    pub fn millis(&self) -> impl Iterator<Item = u64> + '_ {
        let ticks = NANOS_PER_MILLI / self.tick;
        self.slots.windows(2).flat_map(move |pair| {
            let ms = u64::from(pair[0].at).div_ceil(ticks);
            core::iter::repeat_n(ms, (pair[1].before - pair[0].before) as usize)
        })
    }

    /// Returns what `hash` makes of this trace. It is called once for a trace and all its clones, so every
    /// caller must bring the same hash. Several threads may do so at once.
    pub fn digest(&self, hash: impl FnOnce(&Trace) -> [u8; 32]) -> [u8; 32] {
        let Digest { words, known } = &*self.digest;
        let mut digest = [0; 32];
        if known.load(Ordering::Acquire) {
            for (bytes, word) in digest.chunks_exact_mut(4).zip(words) {
                bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
            }
            return digest;
        }
        digest = hash(self);
        // Another thread may do the same: both store the same words.
        for (bytes, word) in digest.chunks_exact(4).zip(words) {
            word.store(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]), Ordering::Relaxed);
        }
        known.store(true, Ordering::Release);
        digest
    }

    /// Returns the number of opportunities in `from <= t < to`, in O(log n).
    pub fn count_between(&self, from: Time, to: Time) -> u64 {
        self.before(to).saturating_sub(self.before(from))
    }

    /// Returns the number of opportunities before `t`.
    pub fn before(&self, t: Time) -> u64 {
        match t.as_nanos().checked_sub(1) {
            Some(nanos) => self.position(self.locate(nanos)),
            None => 0,
        }
    }

    /// Returns the number of opportunities at or before `t`. O(1) amortised when successive calls with one
    /// count ask for times close to each other, O(log n) at worst; between two slots it costs two
    /// comparisons.
    #[inline]
    pub fn through(&self, count: &mut Count, t: Time) -> u64 {
        let nanos = t.as_nanos();
        if nanos < count.from || nanos >= count.until {
            self.count_anew(count, nanos);
        }
        count.opportunities
    }

    fn count_anew(&self, count: &mut Count, nanos: u64) {
        self.seek(&mut count.cursor, nanos);
        count.from = self.previous_instant(count.cursor);
        count.until = self.instant(count.cursor);
        count.opportunities = self.position(count.cursor);
    }

    fn end(&self) -> Slot {
        self.slots[self.slots.len() - 1]
    }

    fn period_nanos(&self) -> u64 {
        u64::from(self.end().at) * self.tick
    }

    /// The instant of the cursor's slot, in nanoseconds of trace time.
    pub(super) fn instant(&self, cursor: Cursor) -> u64 {
        cursor.cycle_start + u64::from(self.slots[cursor.slot].at) * self.tick
    }

    /// Opportunities before the cursor's slot.
    pub(super) fn position(&self, cursor: Cursor) -> u64 {
        cursor.cycle_before + u64::from(self.slots[cursor.slot].before)
    }

    /// Opportunities in the cursor's slot.
    pub(super) fn width(&self, cursor: Cursor) -> u32 {
        self.slots[cursor.slot + 1].before - self.slots[cursor.slot].before
    }

    /// Moves the cursor to the next slot.
    pub(super) fn step(&self, cursor: &mut Cursor) {
        cursor.slot += 1;
        if cursor.slot + 1 == self.slots.len() {
            cursor.slot = 0;
            cursor.cycle_start += self.period_nanos();
            cursor.cycle_before += self.opportunities();
        }
    }

    /// Moves the cursor to the first slot after `nanos` of trace time.
    pub(super) fn seek(&self, cursor: &mut Cursor, nanos: u64) {
        // Nearly every call moves on by a few slots; a jump is searched for.
        for _ in 0..8 {
            if self.instant(*cursor) > nanos {
                if self.previous_instant(*cursor) <= nanos {
                    return;
                }
                break;
            }
            self.step(cursor);
        }
        *cursor = self.locate(nanos);
    }

    /// The instant of the slot before the cursor's, in nanoseconds of trace time; the origin before the first
    /// one.
    fn previous_instant(&self, cursor: Cursor) -> u64 {
        match cursor.slot.checked_sub(1) {
            Some(previous) => cursor.cycle_start + u64::from(self.slots[previous].at) * self.tick,
            // The last slot of the cycle before happened at the start of this one.
            None => cursor.cycle_start,
        }
    }

    /// The first slot after `nanos` of trace time.
    pub(super) fn locate(&self, nanos: u64) -> Cursor {
        let cycle = nanos / self.period_nanos();
        let at = (nanos % self.period_nanos() / self.tick) as u32;
        // The last slot is at the period, which no remainder reaches: the search ends before it.
        let slot = self.slots[..self.slots.len() - 1].partition_point(|slot| slot.at <= at);
        Cursor { cycle_start: cycle * self.period_nanos(), cycle_before: cycle * self.opportunities(), slot }
    }
}

/// How many opportunities of a trace there were by some time, and for which other times that holds; see
/// [`Trace::through`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    cursor: Cursor,
    /// `from <= t < until` in nanoseconds of trace time: there is no opportunity between the two.
    from: u64,
    until: u64,
    opportunities: u64,
}

impl Count {
    /// To be asked first for a time near the cursor's.
    pub(super) fn near(cursor: Cursor) -> Self {
        Count { cursor, ..Count::default() }
    }
}

/// A place in a trace that repeats for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// When its cycle began, in nanoseconds.
    cycle_start: u64,
    /// Opportunities before its cycle.
    cycle_before: u64,
    /// Index of the slot in the cycle.
    slot: usize,
}

/// Builds a trace of instants in microseconds.
///
/// The last instant is the period. Ticks are 1 us where the period and the number of instants let them:
/// 10 us, 100 us or 1 ms otherwise, an opportunity at the end of its tick. Where all instants are whole
/// milliseconds, the trace is the same as one that was [read](Trace::parse).
#[derive(Clone, Debug)]
pub struct TraceBuilder {
    slots: Vec<Slot>,
    tick: u64,
    /// Opportunities so far.
    before: u32,
    /// The instant pushed last, in microseconds, and how many were pushed.
    last: u64,
    line: usize,
    /// Whether all instants are whole milliseconds.
    whole: bool,
}

impl Default for TraceBuilder {
    fn default() -> Self {
        TraceBuilder { slots: Vec::new(), tick: FINE_TICKS[0], before: 0, last: 0, line: 0, whole: true }
    }
}

impl TraceBuilder {
    /// Adds `count` opportunities at `at`, in microseconds, no earlier than those before. Errors count the
    /// first call as line 1.
    pub fn push(&mut self, at: u64, count: u32) -> Result<(), TraceError> {
        self.line += 1;
        let line = self.line;
        if at < self.last {
            return Err(TraceError::Decreasing { line, value: at, previous: self.last });
        }
        if at > MAX_MILLIS * (NANOS_PER_MILLI / NANOS_PER_MICRO) {
            return Err(TraceError::TooLate { line, text: alloc::format!("{at}") });
        }
        let sum = u64::from(self.before) + u64::from(count);
        if sum > MAX_OPPORTUNITIES as u64 {
            return Err(TraceError::TooLong { line, most: MAX_OPPORTUNITIES });
        }
        self.last = at;
        if count == 0 {
            return Ok(());
        }
        self.whole &= at.is_multiple_of(NANOS_PER_MILLI / NANOS_PER_MICRO);
        while self.in_ticks(at) > u64::from(u32::MAX) {
            self.coarsen(10 * self.tick);
        }
        if self.slots.last().is_none_or(|last| u64::from(last.at) < self.in_ticks(at)) {
            // One more ends the count.
            while self.slots.len() + 1 >= MOST_FINE_SLOTS && self.tick < NANOS_PER_MILLI {
                self.coarsen(10 * self.tick);
            }
            let at = self.in_ticks(at) as u32;
            if self.slots.last().is_none_or(|last| last.at < at) {
                self.slots.push(Slot { at, before: self.before });
            }
        }
        self.before = sum as u32;
        Ok(())
    }

    /// Returns the trace. Fails if there is no opportunity or none after 0.
    pub fn finish(mut self) -> Result<Trace, TraceError> {
        if self.whole {
            self.coarsen(NANOS_PER_MILLI);
        }
        let at = self.slots.last().ok_or(TraceError::Empty)?.at;
        if at == 0 {
            return Err(TraceError::ZeroPeriod { line: self.line });
        }
        self.slots.push(Slot { at, before: self.before });
        Ok(Trace { slots: self.slots.into(), tick: self.tick, digest: Arc::default(), recorded: None })
    }

    /// The tick at or after so many microseconds.
    fn in_ticks(&self, at: u64) -> u64 {
        at.div_ceil(self.tick / NANOS_PER_MICRO)
    }

    /// Makes ticks longer: `tick` is a multiple of what they are.
    fn coarsen(&mut self, tick: u64) {
        let factor = (tick / self.tick) as u32;
        self.tick = tick;
        self.slots.iter_mut().for_each(|slot| slot.at = slot.at.div_ceil(factor));
        // Of several in one tick the first has the count before it.
        self.slots.dedup_by_key(|slot| slot.at);
    }
}

fn parse_line(line: usize, bytes: &[u8]) -> Result<u64, TraceError> {
    let text = bytes.trim_ascii();
    if text.is_empty() {
        return Err(TraceError::Blank { line });
    }
    let mut value = 0_u64;
    for &byte in text {
        if !byte.is_ascii_digit() {
            let negative = text[0] == b'-' && text.len() > 1 && text[1..].iter().all(u8::is_ascii_digit);
            let text = shorten(text);
            return Err(if negative {
                TraceError::Negative { line, text }
            } else {
                TraceError::NotANumber { line, text }
            });
        }
        // Above the limit it only has to stay above it.
        value = (value * 10 + u64::from(byte - b'0')).min(MAX_MILLIS + 1);
    }
    if value > MAX_MILLIS {
        return Err(TraceError::TooLate { line, text: shorten(text) });
    }
    Ok(value)
}

/// At most 40 characters of the line, printable.
fn shorten(text: &[u8]) -> String {
    const MOST: usize = 40;
    let mut shown: String =
        text.iter().take(MOST).flat_map(|byte| byte.escape_ascii()).map(char::from).collect();
    if text.len() > MOST {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests;
