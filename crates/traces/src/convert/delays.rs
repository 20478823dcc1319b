//! Files of one-way delay over time, to be put beside a capacity.
//!
//! | format | what is taken |
//! |---|---|
//! | LeoReplayer's | one whole number of milliseconds a line, each for the next 10 ms, both ways alike |
//! | IRTT's JSON (`irtt client -o`) | one-way delays of every packet, and loss in bins of a second |
//! | CellReplay's `*-delay-light-pdo` | light packet trains and their base delays |
//!
//! LeoReplayer's shell applies one list to both directions ("The value on line i specifies the one-way delay
//! (in milliseconds) for that interval", Lai et al., LeoCC, SIGCOMM 2025, `traces/README.md` of its program).
//! IRTT's one-way delays are as good as the two clocks; where one is negative or missing, half of the round
//! trip is taken for all.

use std::fmt;
use std::path::Path;

use brakelight_core::time::Duration;
use brakelight_links::replay::{CERTAIN, MAX_DELAY};
use brakelight_links::trains::Trains;
use serde_json::Value;

use super::{ConvertError, FileError, cellreplay, json, refuse_json, shorten, without_mark};
use crate::input::{self, gzip};
use crate::recording::RecordedDirection;

/// How long a line of LeoReplayer's holds.
const LINE: Duration = Duration::from_millis(10);
/// The width of the bins in which losses are counted.
const LOSS_BIN: Duration = Duration::from_secs(1);

/// What a file of delays is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayFormat {
    /// A number of milliseconds for every 10 ms.
    LeoReplayer,
    /// What `irtt client -o` writes.
    Irtt,
    /// CellReplay's light packet trains.
    CellReplay,
}

impl fmt::Display for DelayFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DelayFormat::LeoReplayer => "leoreplayer",
            DelayFormat::Irtt => "irtt",
            DelayFormat::CellReplay => "cellreplay",
        })
    }
}

/// Delays and losses of both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct Delays {
    /// What they were read from.
    pub format: DelayFormat,
    /// Towards the user; no capacity.
    pub down: RecordedDirection,
    /// From the user; no capacity.
    pub up: RecordedDirection,
    /// For how long they were recorded.
    pub length: Duration,
    /// Light trains of the direction of the capacity, in the place of its delays; those of `down` are then
    /// the other direction's.
    pub trains: Option<Trains>,
    /// What the user should know about them, a sentence each.
    pub notes: Vec<String>,
}

/// Returns the delays in the contents of a file.
pub fn delays(bytes: &[u8]) -> Result<Delays, ConvertError> {
    let text = without_mark(bytes).trim_ascii_start();
    if text.first() == Some(&b'{') {
        return of_irtt(text);
    }
    let text = String::from_utf8_lossy(text);
    let columns = text.lines().next().map_or(0, |line| line.split_ascii_whitespace().count());
    if columns > 1 { cellreplay::of_light(&text) } else { of_list(&text) }
}

/// Returns the delays in the file at `path`, or of standard input for `-`.
pub fn delay_file(path: &Path) -> Result<Delays, FileError> {
    let path = path.to_path_buf();
    let read = input::read(&path, input::TABLE).and_then(|bytes| gzip::unpacked(bytes, |_| input::TABLE));
    match read {
        Err(error) => Err(FileError::Read { path, error }),
        Ok(bytes) => {
            delays(&bytes).map_err(|error| FileError::Convert { path, error: Box::new(error), found: None })
        }
    }
}

fn of_list(text: &str) -> Result<Delays, ConvertError> {
    const EXPECTED: &str =
        "expected one whole number of milliseconds a line, from 0 to 60000, for every 10 ms";
    let mut list = Vec::new();
    for (line, value) in (1..).zip(text.trim_end().lines()) {
        let value = value.trim();
        let ms = value.parse().ok().filter(|ms| *ms <= 60_000_u64).map(Duration::from_millis);
        let ms = ms.ok_or_else(|| ConvertError::line(line, "the delay", &shorten(value), EXPECTED))?;
        list.push((LINE * (line as u64 - 1), ms));
    }
    if list.is_empty() {
        return Err(ConvertError::Empty("delay"));
    }
    let length = LINE * list.len() as u64;
    let direction = RecordedDirection { delays: merged(list), ..RecordedDirection::default() };
    Ok(Delays {
        format: DelayFormat::LeoReplayer,
        up: direction.clone(),
        down: direction,
        length,
        trains: None,
        notes: vec!["the delay was taken for both directions, as LeoReplayer does".to_string()],
    })
}

/// A packet of IRTT's: times in nanoseconds since the first was sent.
struct Probe {
    sent: u64,
    /// Up, down, and the round trip; none where it was lost.
    delays: Option<(i64, i64, i64)>,
    /// Where it was lost, if that is known.
    lost: (bool, bool),
}

fn of_irtt(text: &[u8]) -> Result<Delays, ConvertError> {
    let document = json(text)?;
    let trips = document.get("round_trips").and_then(Value::as_array);
    let trips =
        trips.ok_or_else(|| refuse_json("round_trips", "missing: expected the list of IRTT's packets"))?;
    let mut probes = Vec::new();
    let mut first = None;
    for (index, trip) in trips.iter().enumerate() {
        probes.push(
            probe(trip, &mut first)
                .map_err(|(field, problem)| refuse_json(format!("round_trips[{index}].{field}"), problem))?,
        );
    }
    probes.sort_by_key(|probe| probe.sent);
    let last = probes.last().ok_or(ConvertError::Empty("packet of IRTT"))?.sent;
    let interval = last / (probes.len() as u64 - 1).max(1);
    let length = Duration::from_nanos(last + interval.max(1_000));
    let answered = probes.iter().filter_map(|probe| probe.delays);
    if answered.clone().count() == 0 {
        return Err(ConvertError::Empty("packet of IRTT that was answered"));
    }
    let clocks = answered.clone().all(|(up, down, _)| up >= 0 && down >= 0);
    let mut notes = Vec::new();
    if !clocks {
        notes.push(
            "a one-way delay is missing or negative, so the clocks differed: half of each round trip was taken for both \
             directions"
                .to_string(),
        );
    }
    let list = |pick: fn((i64, i64, i64)) -> i64| {
        let values = probes.iter().filter_map(|probe| {
            let delays = probe.delays?;
            let nanos = if clocks { pick(delays) } else { delays.2 / 2 };
            let micros = (nanos.max(0) as u64 / 1_000).min(MAX_DELAY.as_micros());
            Some((Duration::from_micros(probe.sent / 1_000), Duration::from_micros(micros)))
        });
        let mut values: Vec<(Duration, Duration)> = values.collect();
        values.dedup_by_key(|(from, _)| *from);
        if let Some(first) = values.first_mut() {
            first.0 = Duration::ZERO;
        }
        merged(values)
    };
    let direction = |pick, lost: fn(&Probe) -> bool| RecordedDirection {
        delays: list(pick),
        losses: losses(&probes, lost),
        ..RecordedDirection::default()
    };
    let up = direction(|(up, _, _)| up, |probe| probe.lost.0);
    let down = direction(|(_, down, _)| down, |probe| probe.lost.1);
    Ok(Delays { format: DelayFormat::Irtt, down, up, length, trains: None, notes })
}

/// One packet; which field is wrong, and how, where it cannot be read. `first` is when the first was sent.
fn probe(trip: &Value, first: &mut Option<i64>) -> Result<Probe, (&'static str, String)> {
    const SENT: &str = "timestamps.client.send.wall";
    let sent = trip.pointer("/timestamps/client/send/wall").and_then(Value::as_i64);
    let sent = sent.ok_or_else(|| (SENT, "missing: expected nanoseconds".to_string()))?;
    let since = sent.checked_sub(*first.get_or_insert(sent)).and_then(|since| u64::try_from(since).ok());
    let since = since.filter(|since| *since <= 86_400_000_000_000);
    let since =
        since.ok_or_else(|| (SENT, format!("{sent} is not within a day after the first packet's")))?;
    let lost = trip.get("lost").map_or("false", |lost| lost.as_str().unwrap_or("true"));
    let lost = match lost {
        "false" => None,
        "true_up" => Some((true, false)),
        "true_down" => Some((false, true)),
        // Somewhere: as likely on either way.
        "true" => Some((true, true)),
        other => {
            return Err(("lost", format!("`{other}` is not one of `false`, `true`, `true_up`, `true_down`")));
        }
    };
    if let Some(lost) = lost {
        return Ok(Probe { sent: since, delays: None, lost });
    }
    let nanos = |name: &str| trip.get("delay").and_then(|delay| delay.get(name)).and_then(Value::as_i64);
    let rtt = nanos("rtt").filter(|rtt| *rtt >= 0);
    let rtt = rtt.ok_or_else(|| ("delay.rtt", "missing: expected nanoseconds".to_string()))?;
    let delays = Some((nanos("send").unwrap_or(-1), nanos("receive").unwrap_or(-1), rtt));
    Ok(Probe { sent: since, delays, lost: (false, false) })
}

/// Losses in bins of a second; one that nobody can place counts half.
fn losses(probes: &[Probe], lost: fn(&Probe) -> bool) -> Vec<(Duration, u32)> {
    if !probes.iter().any(lost) {
        return Vec::new();
    }
    let bins = probes.chunk_by(|a, b| a.sent / LOSS_BIN.as_nanos() == b.sent / LOSS_BIN.as_nanos());
    let mut losses: Vec<(Duration, u32)> = bins
        .map(|bin| {
            let weight = |probe: &&Probe| if probe.lost == (true, true) { 0.5 } else { 1.0 };
            let count: f64 = bin.iter().filter(|probe| lost(probe)).map(|probe| weight(&probe)).sum();
            let from = LOSS_BIN * (bin[0].sent / LOSS_BIN.as_nanos());
            (from, (count / bin.len() as f64 * f64::from(CERTAIN)) as u32)
        })
        .collect();
    if let Some(first) = losses.first_mut() {
        first.0 = Duration::ZERO;
    }
    merged(losses)
}

/// The same without values that are those before them.
fn merged<T: PartialEq>(mut values: Vec<(Duration, T)>) -> Vec<(Duration, T)> {
    values.dedup_by(|next, before| next.1 == before.1);
    values
}

#[cfg(test)]
mod tests;
