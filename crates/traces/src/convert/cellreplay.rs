//! CellReplay's recordings of cellular links: two files for each direction (cellreplay25, and its program's
//! `mm-cellular`).
//!
//! | its name there | what is in it | read as |
//! |---|---|---|
//! | `*-heavy-pdo`, also `*-pdo` | as Mahimahi's, but 1400 bytes a line | the capacity: `--from cellreplay` |
//! | `*-delay-light-pdo` | light packet trains, one a line | `--delay` |
//! | `latency-offset-*` | delay by packet size | not read |
//!
//! A line of trains is whole numbers of milliseconds with blanks between: when the train began, its base
//! delay one way, and when each of its packets arrived after the first. The base delay is half of a measured
//! round trip, and the same in the files of both directions. What the numbers do in a replay is
//! `brakelight_links::trains`.
//!
//! A recording has opportunities of 1500 bytes: 15 heavy ones make 14, each when its last byte is there.

use brakelight_core::time::Duration;
use brakelight_core::units::Bytes;
use brakelight_links::replay::MAX_DELAY;
use brakelight_links::trace::Trace;
use brakelight_links::trains::{Train, Trains};

use super::delays::{DelayFormat, Delays};
use super::{ConvertError, ConvertOptions, Converted, Format};
use crate::recording::RecordedDirection;

const TIME: &str = "expected a whole number of milliseconds, from 0 to 86400000";
const DELAY: &str = "expected a whole number of milliseconds, from 0 to 60000";

/// The latest that a train may begin: a day.
const LONGEST: Duration = Duration::from_secs(86_400);

/// Whether a line is of light trains: three whole numbers or more. A Mahimahi file has one, and two are a
/// time and a rate.
pub(super) fn is_train(line: &str) -> bool {
    let whole = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    line.split_ascii_whitespace().count() > 2 && line.split_ascii_whitespace().all(whole)
}

/// Makes a trace of the file of heavy opportunities.
pub(super) fn from_heavy(text: &[u8], options: &ConvertOptions) -> Result<Converted, ConvertError> {
    let heavy = Trace::parse(text)?;
    let trace = of_full_packets(&heavy, options.opportunity)?;
    let notes = vec![said(options.opportunity)];
    Ok(Converted::of_opportunities(trace.clone(), trace, Format::CellReplay, options, notes))
}

/// What a user should know about heavy opportunities.
pub(super) fn said(opportunity: Bytes) -> String {
    let own = Trains::OPPORTUNITY;
    format!("CellReplay's opportunities carry {own}: they were gathered into ones of {opportunity}")
}

/// Heavy opportunities as ones of `opportunity` bytes. The trace keeps its length.
pub(super) fn of_full_packets(heavy: &Trace, opportunity: Bytes) -> Result<Trace, ConvertError> {
    let (mut bytes, mut last) = (0, 0);
    let mut instants: Vec<(u64, u32)> = Vec::new();
    for (at, count) in heavy.micros() {
        bytes += u64::from(count) * Trains::OPPORTUNITY.0;
        last = at;
        if bytes >= opportunity.0 {
            instants.push((at, (bytes / opportunity.0) as u32));
            bytes %= opportunity.0;
        }
    }
    match instants.last() {
        None => return Err(ConvertError::Silent(opportunity)),
        // The end is the period.
        Some((at, _)) if *at < last => instants.push((last, 1)),
        Some(_) => {}
    }
    Ok(Trace::from_micros(instants)?)
}

/// Returns the light trains in the contents of a file, for the direction of the capacity that they are put
/// beside. Their base delays are the delays of the other one.
pub(super) fn of_light(text: &str) -> Result<Delays, ConvertError> {
    let mut trains: Vec<Train> = Vec::new();
    let (mut replaced, mut sorted) = (0_u64, 0_u64);
    for (number, line) in (1..).zip(text.trim_end().lines()) {
        let mut words = line.split_ascii_whitespace();
        let at = time(number, "the time", words.next(), LONGEST, TIME)?;
        let delay = time(number, "the base delay", words.next(), MAX_DELAY, DELAY)?;
        let field = "a light opportunity";
        let mut opportunities: Vec<Duration> =
            words.map(|word| time(number, field, Some(word), MAX_DELAY, DELAY)).collect::<Result<_, _>>()?;
        if opportunities.is_empty() {
            const EXPECTED: &str = "expected when each packet arrived after the first, such as `0 3 7`";
            return Err(ConvertError::line(number, "the light opportunities", "", EXPECTED));
        }
        if !opportunities.is_sorted() {
            opportunities.sort_unstable();
            sorted += 1;
        }
        if trains.last().is_some_and(|last| last.at > at) {
            const EXPECTED: &str = "it must not be before that of the line above";
            return Err(ConvertError::line(
                number,
                "the time",
                &(at.as_micros() / 1_000).to_string(),
                EXPECTED,
            ));
        }
        if trains.pop_if(|last| last.at == at).is_some() {
            replaced += 1;
        }
        trains.push(Train { at, delay, opportunities });
    }
    let count = trains.len();
    let base = trains.iter().map(|train| (train.at, train.delay)).collect::<Vec<_>>();
    let trains = Trains::new(trains, Trains::OPPORTUNITY, Trains::IDLE).map_err(ConvertError::Trains)?;
    let mut notes = vec![format!(
        "{count} light trains serve a flow after a pause, and the capacity one that goes on; the base delay was taken for \
         both directions"
    )];
    if replaced > 0 {
        notes.push(format!("{replaced} trains that begin with the next one were left out"));
    }
    if sorted > 0 {
        notes.push(format!("{sorted} trains had packets out of order: their arrivals were sorted"));
    }
    Ok(Delays {
        format: DelayFormat::CellReplay,
        length: trains.period(),
        down: RecordedDirection { delays: from_zero(base), ..RecordedDirection::default() },
        up: RecordedDirection::default(),
        trains: Some(trains),
        notes,
    })
}

/// Delays without those that repeat the one before, the first from 0.
fn from_zero(mut delays: Vec<(Duration, Duration)>) -> Vec<(Duration, Duration)> {
    delays.dedup_by_key(|(_, delay)| *delay);
    if let Some(first) = delays.first_mut() {
        first.0 = Duration::ZERO;
    }
    delays
}

/// A time in whole milliseconds.
fn time(
    line: usize,
    field: &'static str,
    word: Option<&str>,
    most: Duration,
    expected: &'static str,
) -> Result<Duration, ConvertError> {
    let word = word.unwrap_or_default();
    let ms = word.parse().ok().filter(|ms: &u64| *ms <= most.as_micros() / 1_000);
    let ms = ms.ok_or_else(|| ConvertError::line(line, field, word, expected))?;
    Ok(Duration::from_millis(ms))
}

#[cfg(test)]
mod tests;
