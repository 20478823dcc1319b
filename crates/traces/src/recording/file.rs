//! The file format of recordings, `.bltrace`, versions 1 and 2.
//!
//! ```text
//! 8 bytes    89 42 4c 54 52 0d 0a 1a: `BLTR`, and what a transfer as text would damage
//! 4 bytes    length of the header, little endian
//! header     JSON, UTF-8: see below
//! body       a zlib stream (RFC 1950) of the lists that the header counts, one after another
//! ```
//!
//! ```json
//! {"format": "bltrace", "version": 1, "length_us": 120052000, "reorders": false,
//!  "about": {"technology": "Starlink", "bin_us": 10000, "licence": "MIT"},
//!  "down": {"capacity": {"kind": "opportunities", "values": 487652}, "delays": 11999, "losses": 0},
//!  "up": {"delays": 11999},
//!  "body_sha256": "..."}
//! ```
//!
//! The lists come in the order `down` capacity, delays, losses, trains, then those of `up`; what the header
//! does not count is empty. All numbers are LEB128 (7 bits a byte, the least first, the top bit set on all
//! bytes but the last). Times are in microseconds; the first value of a list holds from 0.
//!
//! | list | a value |
//! |---|---|
//! | opportunities | `2 * gap`: one, `gap` after the one before; or `2 * gap + 1`, then `n - 2`: n at once |
//! | rates | how long it holds, then bit/s |
//! | delays | how long it holds, then the change from the delay before, as `2 * c`, or `-2 * c - 1` below 0 |
//! | losses | how long it holds, then the probability in parts of a billion |
//! | trains | the time since the one before, base delay, count of opportunities; then the gap before each |
//!
//! An opportunity carries 1500 bytes, and the last one is at `length_us`, where the recording starts over.
//! The lengths of every other list but the trains add up to `length_us`. Trains start over by themselves, at
//! the last one. The header says of them `"trains": {"values": 1200, "opportunity": 1400, "idle_us": 1000}`:
//! how many there are, what a light opportunity carries, and after which pause a train begins.
//!
//! Keys that a reader does not know are skipped; what it must know to read the file raises the version. A
//! file with trains has version 2, and any other version 1, so that programs that know no trains read it. A
//! reader keeps the microseconds, except where a recording has more than eight million instants: those are
//! then kept to 10 or 100 us.

use std::io::{self, Read, Write};

use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Rate};
use brakelight_links::replay::CERTAIN;
use brakelight_links::trace::{Trace, TraceBuilder};
use brakelight_links::trains::{Train, Trains};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};

use super::{
    About, LinkDirection, MAX_LENGTH_US, RecordedCapacity, RecordedDirection, Recording, RecordingError,
};
use crate::checksum::sha256;

/// The first bytes of every file.
pub const MAGIC: [u8; 8] = *b"\x89BLTR\r\n\x1a";
/// The latest version that is read, and the one that is written where there are light trains.
pub const VERSION: u32 = 2;
/// The version that is written where there are none.
const WITHOUT_TRAINS: u32 = 1;

/// The longest header.
const MOST_HEADER: usize = 1 << 16;
/// The most values of a list but that of opportunities: 11 hours of one every 10 ms.
const MOST_VALUES: u64 = 1 << 22;
/// The most light opportunities of a direction.
const MOST_LIGHT: u64 = 1 << 24;
/// What any time is cut to before it is checked: nanoseconds have 64 bits.
const MOST_US: u64 = u64::MAX >> 16;
/// The highest rate.
const MOST_BPS: u64 = 1_000_000_000_000;

/// Why a file could not be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// It does not begin as one.
    #[error("it is not a .bltrace file: its first bytes are others")]
    Magic,
    /// It was cut.
    #[error("the file ends in the {0}: it was cut")]
    Cut(&'static str),
    /// The header is too long.
    #[error("the header has {0} bytes: at most {MOST_HEADER} are valid")]
    HeaderLength(usize),
    /// The header is not what it should be.
    #[error("header: {0}")]
    Header(String),
    /// The version is not known.
    #[error("the file has version {0} of the format: this program reads up to {VERSION}")]
    Version(u32),
    /// The body is not the one that the header was written for.
    #[error("the body was changed: its SHA-256 is not the header's `body_sha256`")]
    Hash,
    /// A list is not what the header says.
    #[error("`{direction}`, {list}: {problem}")]
    List {
        /// Which direction.
        direction: LinkDirection,
        /// Which list.
        list: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// There is more than the header counts.
    #[error("the body goes on after the last list of the header")]
    TooMuch,
}

/// The header as JSON.
#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    length_us: u64,
    #[serde(default)]
    reorders: bool,
    #[serde(default)]
    about: About,
    #[serde(default)]
    down: Counts,
    #[serde(default)]
    up: Counts,
    body_sha256: String,
}

/// What a direction holds.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Counts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capacity: Option<CapacityCount>,
    #[serde(default)]
    delays: u64,
    #[serde(default)]
    losses: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trains: Option<TrainCount>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct TrainCount {
    values: u64,
    opportunity: u64,
    idle_us: u64,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct CapacityCount {
    kind: Kind,
    values: u64,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Opportunities,
    Rates,
}

/// Returns `true` if these are the first bytes of such a file.
pub fn is_recording(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Returns the recording in the contents of a file.
pub fn read(bytes: &[u8]) -> Result<Recording, RecordingError> {
    let rest = bytes.strip_prefix(&MAGIC).ok_or(FileProblem::Magic)?;
    let (length, rest) = rest.split_first_chunk::<4>().ok_or(FileProblem::Cut("header"))?;
    let length = u32::from_le_bytes(*length) as usize;
    if length > MOST_HEADER {
        return Err(FileProblem::HeaderLength(length).into());
    }
    let (text, body) = rest.split_at_checked(length).ok_or(FileProblem::Cut("header"))?;
    let header = header(text)?;
    if sha256(body) != header.body_sha256 {
        return Err(FileProblem::Hash.into());
    }
    let mut body = Body::new(ZlibDecoder::new(body));
    let mut direction = |direction, counts: Counts| {
        let mut lists = Lists { body: &mut body, direction, length: header.length_us };
        lists.read(counts)
    };
    let down = direction(LinkDirection::Down, header.down)?;
    let up = direction(LinkDirection::Up, header.up)?;
    if body.byte().is_some() {
        return Err(FileProblem::TooMuch.into());
    }
    let length = Duration::from_micros(header.length_us);
    let recording = Recording { about: header.about, length, reorders: header.reorders, down, up };
    recording.check()?;
    Ok(recording)
}

fn header(text: &[u8]) -> Result<Header, FileProblem> {
    /// The part that every version has.
    #[derive(Deserialize)]
    struct Versioned {
        format: String,
        version: u32,
    }
    let refuse = |error: serde_json::Error| FileProblem::Header(error.to_string());
    let versioned: Versioned = serde_json::from_slice(text).map_err(refuse)?;
    if versioned.format != "bltrace" {
        return Err(FileProblem::Header(format!("`format` is `{}`: valid is `bltrace`", versioned.format)));
    }
    if versioned.version == 0 || versioned.version > VERSION {
        return Err(FileProblem::Version(versioned.version));
    }
    let mut header: Header = serde_json::from_slice(text).map_err(refuse)?;
    if header.version < VERSION {
        // A key that this version does not know.
        (header.down.trains, header.up.trains) = (None, None);
    }
    if header.length_us == 0 || header.length_us > MAX_LENGTH_US {
        let problem = format!("`length_us` is {}: valid are 1 to {MAX_LENGTH_US}", header.length_us);
        return Err(FileProblem::Header(problem));
    }
    for (name, counts) in [("down", &header.down), ("up", &header.up)] {
        let rates = counts.capacity.filter(|capacity| matches!(capacity.kind, Kind::Rates));
        let (rates, trains) =
            (rates.map_or(0, |rates| rates.values), counts.trains.map_or(0, |it| it.values));
        for count in [counts.delays, counts.losses, rates, trains] {
            if count > MOST_VALUES {
                let problem =
                    format!("`{name}` has a list of {count} values: at most {MOST_VALUES} are valid");
                return Err(FileProblem::Header(problem));
            }
        }
    }
    Ok(header)
}

/// The lists of one direction.
struct Lists<'a, R> {
    body: &'a mut Body<R>,
    direction: LinkDirection,
    length: u64,
}

impl<R: Read> Lists<'_, R> {
    fn read(&mut self, counts: Counts) -> Result<RecordedDirection, FileProblem> {
        let capacity = match counts.capacity {
            None => None,
            Some(CapacityCount { kind: Kind::Opportunities, values }) => {
                Some(RecordedCapacity::Opportunities(self.opportunities(values)?))
            }
            Some(CapacityCount { kind: Kind::Rates, values }) => {
                let rates = self.steps("rates", values, MOST_BPS, |_, value| Some(value))?;
                let rates = rates.into_iter().map(|(from, bps)| (from, Rate::from_bps(bps))).collect();
                Some(RecordedCapacity::Rates(rates))
            }
        };
        let signed = |before: u64, value: u64| {
            let half = value >> 1;
            if value & 1 == 0 { before.checked_add(half) } else { before.checked_sub(half + 1) }
        };
        let delays = self.steps("delays", counts.delays, MOST_US, signed)?;
        let delays = delays.into_iter().map(|(from, us)| (from, Duration::from_micros(us))).collect();
        let losses = self.steps("losses", counts.losses, u64::from(CERTAIN), |_, value| Some(value))?;
        let losses = losses.into_iter().map(|(from, loss)| (from, loss as u32)).collect();
        let trains = counts.trains.map(|counts| self.trains(counts)).transpose()?;
        Ok(RecordedDirection { capacity, delays, losses, trains })
    }

    fn refuse(&self, list: &'static str, problem: impl Into<String>) -> FileProblem {
        FileProblem::List { direction: self.direction, list, problem: problem.into() }
    }

    fn opportunities(&mut self, values: u64) -> Result<Trace, FileProblem> {
        const LIST: &str = "opportunities";
        let (mut builder, mut at) = (TraceBuilder::default(), 0_u64);
        for _ in 0..values {
            let first = self.body.number().ok_or(FileProblem::Cut("body"))?;
            let count = match first & 1 {
                0 => Some(1),
                _ => self.body.number().ok_or(FileProblem::Cut("body"))?.checked_add(2),
            };
            let count = count.and_then(|count| u32::try_from(count).ok());
            let count = count.ok_or_else(|| self.refuse(LIST, "more at once than there may be"))?;
            at = at.saturating_add(first >> 1);
            if at > self.length {
                return Err(self.refuse(LIST, "one is after the end"));
            }
            builder.push(at, count).map_err(|error| self.refuse(LIST, error.to_string()))?;
        }
        if at != self.length {
            return Err(self.refuse(LIST, "the last one is not at the end"));
        }
        builder.finish().map_err(|error| self.refuse(LIST, error.to_string()))
    }

    fn trains(&mut self, counts: TrainCount) -> Result<Trains, FileProblem> {
        const LIST: &str = "trains";
        let (mut trains, mut at, mut light) = (Vec::new(), 0_u64, 0_u64);
        for _ in 0..counts.values {
            at = at.saturating_add(self.number()?);
            let (delay, count) = (Duration::from_micros(self.number()?.min(MOST_US)), self.number()?);
            light = light.saturating_add(count);
            if light > MOST_LIGHT {
                return Err(self.refuse(LIST, format!("more than {MOST_LIGHT} light opportunities")));
            }
            let (mut opportunities, mut after) = (Vec::new(), 0_u64);
            for _ in 0..count {
                after = after.saturating_add(self.number()?);
                opportunities.push(Duration::from_micros(after.min(MOST_US)));
            }
            trains.push(Train { at: Duration::from_micros(at.min(MOST_US)), delay, opportunities });
        }
        let idle = Duration::from_micros(counts.idle_us.min(MOST_US));
        Trains::new(trains, Bytes(counts.opportunity), idle)
            .map_err(|error| self.refuse(LIST, error.to_string()))
    }

    /// The next number of the body.
    fn number(&mut self) -> Result<u64, FileProblem> {
        self.body.number().ok_or(FileProblem::Cut("body"))
    }

    /// Values with how long they hold, as times from which they do. `decode` makes a value of the one before
    /// it and what was read.
    fn steps(
        &mut self,
        list: &'static str,
        count: u64,
        most: u64,
        decode: impl Fn(u64, u64) -> Option<u64>,
    ) -> Result<Vec<(Duration, u64)>, FileProblem> {
        let (mut steps, mut from, mut before) = (Vec::new(), 0_u64, 0);
        for _ in 0..count {
            let length = self.body.number().ok_or(FileProblem::Cut("body"))?;
            let value = self.body.number().ok_or(FileProblem::Cut("body"))?;
            let value = decode(before, value).filter(|value| *value <= most);
            before = value.ok_or_else(|| self.refuse(list, format!("a value is outside 0 to {most}")))?;
            if length == 0 {
                return Err(self.refuse(list, "a value holds for 0 us"));
            }
            if from >= self.length {
                return Err(self.refuse(list, "one is after the end"));
            }
            steps.push((Duration::from_micros(from), before));
            from = from.saturating_add(length);
        }
        if count > 0 && from != self.length {
            let problem = format!("its values hold for {from} us, the recording lasts {} us", self.length);
            return Err(self.refuse(list, problem));
        }
        Ok(steps)
    }
}

/// The body, number by number.
struct Body<R> {
    reader: R,
    buffer: Box<[u8]>,
    /// What of the buffer is not read yet.
    at: usize,
    end: usize,
}

impl<R: Read> Body<R> {
    fn new(reader: R) -> Self {
        Body { reader, buffer: vec![0; 1 << 16].into(), at: 0, end: 0 }
    }

    /// The next byte; `None` at the end, and where the stream is damaged.
    #[inline]
    fn byte(&mut self) -> Option<u8> {
        if self.at == self.end {
            self.end = self.reader.read(&mut self.buffer).ok()?;
            self.at = 0;
        }
        let byte = self.buffer[..self.end].get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    /// The next number; `None` where it does not end, or is larger than 64 bits.
    #[inline]
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

/// Returns the contents of the file of a recording. Fails if the recording could not be read again.
pub fn write(recording: &Recording) -> Result<Vec<u8>, RecordingError> {
    recording.check()?;
    let length = recording.length.as_micros();
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let mut counts = |direction: LinkDirection| -> Result<Counts, RecordingError> {
        let recorded = recording.direction(direction);
        let capacity = match &recorded.capacity {
            None => None,
            Some(RecordedCapacity::Opportunities(trace)) => {
                let values = written(write_opportunities(&mut encoder, trace, length));
                let values = values.ok_or_else(|| FileProblem::List {
                    direction,
                    list: "opportunities",
                    problem: format!("the last one is at {}, not at the end", trace.period()),
                })?;
                Some(CapacityCount { kind: Kind::Opportunities, values })
            }
            Some(RecordedCapacity::Rates(rates)) => {
                let values = rates.iter().map(|(from, rate)| (*from, rate.bps()));
                written(write_steps(&mut encoder, values, length));
                Some(CapacityCount { kind: Kind::Rates, values: rates.len() as u64 })
            }
        };
        let mut before = 0;
        let delays = recorded.delays.iter().map(|(from, delay)| {
            let (now, last) = (delay.as_micros(), std::mem::replace(&mut before, delay.as_micros()));
            (*from, if now >= last { (now - last) << 1 } else { (last - now - 1) << 1 | 1 })
        });
        written(write_steps(&mut encoder, delays, length));
        let losses = recorded.losses.iter().map(|(from, loss)| (*from, u64::from(*loss)));
        written(write_steps(&mut encoder, losses, length));
        let (delays, losses) = (recorded.delays.len() as u64, recorded.losses.len() as u64);
        let trains = recorded.trains.as_ref().map(|trains| {
            written(write_trains(&mut encoder, trains));
            let (values, opportunity) = (trains.trains().len() as u64, trains.opportunity().0);
            TrainCount { values, opportunity, idle_us: trains.idle().as_micros() }
        });
        Ok(Counts { capacity, delays, losses, trains })
    };
    let (down, up) = (counts(LinkDirection::Down)?, counts(LinkDirection::Up)?);
    let body = written(encoder.finish());
    let header = Header {
        format: "bltrace".to_string(),
        version: if down.trains.or(up.trains).is_some() { VERSION } else { WITHOUT_TRAINS },
        length_us: length,
        reorders: recording.reorders,
        about: recording.about.clone(),
        down,
        up,
        body_sha256: sha256(&body),
    };
    let header = serde_json::to_vec(&header).expect("the keys are strings");
    if header.len() > MOST_HEADER {
        return Err(FileProblem::HeaderLength(header.len()).into());
    }
    Ok([&MAGIC[..], &(header.len() as u32).to_le_bytes(), &header, &body].concat())
}

/// Memory takes all that is written to it.
fn written<T>(result: io::Result<T>) -> T {
    result.expect("writing to memory does not fail")
}

fn number(out: &mut impl Write, mut number: u64) -> io::Result<()> {
    let (mut bytes, mut count) = ([0; 10], 0);
    loop {
        bytes[count] = (number & 0x7f) as u8 | if number > 0x7f { 0x80 } else { 0 };
        count += 1;
        number >>= 7;
        if number == 0 {
            return out.write_all(&bytes[..count]);
        }
    }
}

/// Writes how many values it returns; `None` if the last opportunity is not at the end.
fn write_opportunities(out: &mut impl Write, trace: &Trace, length: u64) -> io::Result<Option<u64>> {
    let (mut before, mut values) = (0, 0);
    for (at, count) in trace.micros() {
        // Ticks longer than a microsecond round the end up.
        let is_end = at >= length && at - length < trace.tick().as_micros();
        let at = if is_end { length } else { at };
        let gap = at - before;
        number(out, gap << 1 | u64::from(count > 1))?;
        if count > 1 {
            number(out, u64::from(count) - 2)?;
        }
        (before, values) = (at, values + 1);
    }
    Ok((before == length).then_some(values))
}

/// Writes trains, in whole microseconds.
fn write_trains(out: &mut impl Write, trains: &Trains) -> io::Result<()> {
    let mut before = 0;
    for train in trains.trains() {
        let at = train.at.as_micros();
        number(out, at - before)?;
        number(out, train.delay.as_micros())?;
        number(out, train.opportunities.len() as u64)?;
        let mut last = 0;
        for opportunity in &train.opportunities {
            number(out, opportunity.as_micros() - last)?;
            last = opportunity.as_micros();
        }
        before = at;
    }
    Ok(())
}

/// Writes values with how long they hold.
fn write_steps(
    out: &mut impl Write,
    steps: impl Iterator<Item = (Duration, u64)>,
    length: u64,
) -> io::Result<()> {
    let mut steps = steps.peekable();
    while let Some((from, value)) = steps.next() {
        let end = steps.peek().map_or(length, |(next, _)| next.as_micros());
        number(out, end.saturating_sub(from.as_micros()))?;
        number(out, value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
