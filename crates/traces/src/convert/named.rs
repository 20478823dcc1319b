//! Tables with many columns: those of time and rate are found by their names.
//!
//! | what | how it is found |
//! |---|---|
//! | the rate | `--column`; else a name that ends in a unit of rates or has one of [`RATES`] |
//! | its direction | `dl`, `down`, `downlink`, `download`, `rx`; `ul`, `up`, `uplink`, `upload`, `tx` |
//! | its unit | `--unit`; else the name; else that of a known program; else Mbit/s where no other can be |
//! | the time | a name with time, timestamp, date or start, of the same direction or of none |
//! | the end | the same with end or stop |
//!
//! An empty value, `-`, `NA` and `nan` are no value. G-NetTrack (gyokovsolutions.com, manual of G-NetTrack
//! Pro, "Log file": `DL_bitrate` and `UL_bitrate` in kbps) is known by its columns.

use brakelight_core::units::Bytes;

use super::csv;
use super::series::{Sample, Series};
use super::{ConvertError, ConvertOptions, Converted, Format, RateUnit, Selection, shorten, units};

const TIME: &str = "expected a number of the unit that the header names (seconds without one), or a date such as \
                    `2024-05-01T12:00:00.5Z` or `2024.05.01_12.00.00`, no less than on the line before";
const RATE: &str = "expected a rate from 0 to 1e12 bit/s in the unit of its column, or nothing";
const ROW: &str = "expected as many values as the header has names";
const END: &str = "expected an end after the start of the interval by at least a millisecond";

/// What has a rate in its name although it names no unit.
const RATES: [&str; 8] =
    ["bitrate", "throughput", "goodput", "bandwidth", "capacity", "download", "upload", "datarate"];
const DOWN: [&str; 6] = ["dl", "down", "downlink", "download", "rx", "downstream"];
const UP: [&str; 6] = ["ul", "up", "uplink", "upload", "tx", "upstream"];
const ENDS: [&str; 3] = ["end", "stop", "until"];

/// The largest value that is taken as Mbit/s without being told so.
const MOST_MBPS: f64 = 10_000.0;

/// Which columns of a table are meant.
struct Columns<'a> {
    names: Vec<&'a str>,
    time: usize,
    end: Option<usize>,
    rate: usize,
    /// `None` where neither the user nor the name says it.
    unit: Option<RateUnit>,
}

/// Returns `true` if the header is of a table that this module reads.
pub(super) fn is_header(line: &str) -> bool {
    let names = split(line);
    let word = |name: &&str| name.starts_with(|c: char| c.is_ascii_alphabetic());
    let rates = || names.iter().skip(2).any(|name| RateUnit::of_name(name).is_some());
    names.len() > 2 && names.iter().all(|name| name.is_empty() || word(name)) && (names.len() > 3 || rates())
}

pub(super) fn from_table(bytes: &[u8], options: &ConvertOptions) -> Result<Converted, ConvertError> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = (1..).zip(text.lines()).filter(|(_, row)| {
        let row = row.trim();
        !row.is_empty() && !row.starts_with('#')
    });
    let (_, header) = lines.next().ok_or(ConvertError::Empty("header"))?;
    let columns = Columns::choose(header, options)?;
    let mut samples: Vec<Sample> = Vec::new();
    let mut values = Vec::new();
    let mut without = 0_u64;
    for (line, row) in lines {
        let refuse = |field, value: &str, expected| ConvertError::line(line, field, value, expected);
        let row = split(row.trim_end_matches('\r'));
        let value = |column: usize| row.get(column).copied();
        let (Some(time), Some(rate)) = (value(columns.time), value(columns.rate)) else {
            return Err(refuse("the row", &row.join(","), ROW));
        };
        if is_missing(rate) || is_missing(time) {
            without += 1;
            continue;
        }
        let unit = units::time(columns.names[columns.time]).unwrap_or(1.0);
        let start = units::milliseconds(time, unit);
        let start = start.filter(|ms| samples.last().is_none_or(|last| last.start <= *ms));
        let start = start.ok_or_else(|| refuse("the time", time, TIME))?;
        let end = columns.end.and_then(value).filter(|end| !is_missing(end)).map(|text| {
            let end = units::milliseconds(text, unit).filter(|end| *end > start);
            end.ok_or_else(|| refuse("the end", text, END))
        });
        let number: f64 = rate.parse().map_err(|_| refuse("the rate", rate, RATE))?;
        let bps = columns.unit.unwrap_or(RateUnit::MBIT).bps(number);
        if !(0.0..=1e12).contains(&bps) {
            return Err(refuse("the rate", rate, RATE));
        }
        values.push(number);
        samples.push(Sample { start, end: end.transpose()?, rate: bps });
    }
    let rate = columns.names[columns.rate];
    let mut notes = vec![format!(
        "the rate is `{rate}`, the time `{}`{}",
        columns.names[columns.time],
        columns.end.map_or(String::new(), |end| format!(" to `{}`", columns.names[end]))
    )];
    if without > 0 {
        notes.push(format!("{without} rows hold no value and were left out"));
    }
    let mut warnings = Vec::new();
    if columns.unit.is_none() {
        warnings.push(guess(rate, &values)?);
    }
    let series = Series::of(&samples).ok_or(ConvertError::Empty("row with a time and a rate"))?;
    warnings.extend(series.warning());
    Converted::of_rates(&series.stretches, Format::Csv, options, notes, warnings)
}

/// Returns the directions of a table that has a column of rates for each; nothing of any other.
pub(super) fn selections(bytes: &[u8]) -> Vec<(Selection, Bytes)> {
    let Some(header) = csv::first_row(bytes).filter(|row| is_header(row)) else { return Vec::new() };
    let names = split(&header);
    let ways: Vec<Option<Way>> =
        names.iter().filter(|name| is_rate(name)).map(|name| Way::of(name)).collect();
    let both = [(Way::Down, Selection::Down), (Way::Up, Selection::Up)];
    let has_both = both.iter().all(|(way, _)| ways.contains(&Some(*way)));
    both.into_iter().filter(|_| has_both).map(|(_, selection)| (selection, Bytes::ZERO)).collect()
}

/// Says that the values were taken as Mbit/s, or refuses them where they may be something else: whole numbers
/// may count bits or bytes, and large ones kilobits.
fn guess(name: &str, values: &[f64]) -> Result<String, ConvertError> {
    let largest = values.iter().copied().fold(0.0, f64::max);
    if largest <= MOST_MBPS && values.iter().any(|value| value.fract() != 0.0) {
        return Ok(format!(
            "`{name}` names no unit: its values, with decimals and up to {largest:.1}, were taken as Mbit/s; `--unit` says \
             otherwise"
        ));
    }
    Err(ConvertError::NoUnit { column: name.to_string() })
}

impl<'a> Columns<'a> {
    fn choose(header: &'a str, options: &ConvertOptions) -> Result<Self, ConvertError> {
        let names = split(header.trim());
        let wanted = match options.selection {
            Selection::OneDirection | Selection::All => None,
            Selection::Down => Some(Way::Down),
            Selection::Up => Some(Way::Up),
            selection => {
                let valid = "a table has no addresses: give `up` or `down`, or the rate's `--column`";
                return Err(ConvertError::Direction { selection, valid });
            }
        };
        let rate = match &options.column {
            Some(column) => {
                let found = names.iter().position(|name| name.eq_ignore_ascii_case(column));
                found.ok_or_else(|| ConvertError::NoColumn { column: column.clone(), names: list(&names) })?
            }
            None => rate_of(&names, wanted)?,
        };
        let way = wanted.or_else(|| Way::of(names[rate]));
        let times = |ends: bool| {
            let fits = |name: &&str| {
                let words = words(name);
                let is_end = words.iter().any(|word| ENDS.contains(&word.as_str()));
                units::is_time(name)
                    && is_end == ends
                    && Way::of(name).is_none_or(|way_of| Some(way_of) == way)
            };
            // One of the direction itself comes before one of none.
            let mut found: Vec<usize> = (0..names.len()).filter(|index| fits(&names[*index])).collect();
            found.sort_by_key(|index| Way::of(names[*index]).is_none());
            found.first().copied()
        };
        let time = times(false).ok_or_else(|| ConvertError::NoTime { names: list(&names) })?;
        let own = Way::of(names[time]);
        let end = times(true).filter(|end| Way::of(names[*end]) == own);
        let nettrack = names.contains(&"CELLHEX") && ["DL_bitrate", "UL_bitrate"].contains(&names[rate]);
        let known = if nettrack { Some(RateUnit::KBIT) } else { RateUnit::of_name(names[rate]) };
        Ok(Columns { unit: options.unit.or(known), names, time, end, rate })
    }
}

/// The only column of rates, of one direction if one is wanted.
fn rate_of(names: &[&str], wanted: Option<Way>) -> Result<usize, ConvertError> {
    let rates: Vec<usize> = (0..names.len()).filter(|index| is_rate(names[*index])).collect();
    let chosen: Vec<usize> = match wanted {
        Some(wanted) => {
            rates.iter().copied().filter(|index| Way::of(names[*index]) == Some(wanted)).collect()
        }
        None => rates.clone(),
    };
    let named: Vec<&str> = rates.iter().map(|index| names[*index]).collect();
    match (chosen.as_slice(), rates.as_slice()) {
        ([one], _) => Ok(*one),
        ([], []) => Err(ConvertError::NoRate { names: list(names) }),
        _ => Err(ConvertError::SeveralRates { names: list(&named), example: named[0].to_string() }),
    }
}

fn is_rate(name: &str) -> bool {
    let says = |word: &String| RATES.contains(&word.as_str());
    !units::is_time(name) && (RateUnit::of_name(name).is_some() || words(name).iter().any(says))
}

/// The direction that a name tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Down,
    Up,
}

impl Way {
    fn of(name: &str) -> Option<Self> {
        let words = words(name);
        let says = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
        match (says(&DOWN), says(&UP)) {
            (true, false) => Some(Way::Down),
            (false, true) => Some(Way::Up),
            _ => None,
        }
    }
}

/// The words of a name, in small letters.
fn words(name: &str) -> Vec<String> {
    let lower = name.to_ascii_lowercase();
    lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(String::from)
        .collect()
}

fn is_missing(value: &str) -> bool {
    value.is_empty()
        || value == "-"
        || ["na", "n/a", "nan", "null", "none"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// The values of a row: commas within quotes do not count.
fn split(row: &str) -> Vec<&str> {
    let mut quoted = false;
    row.split(|c| {
        quoted ^= c == '"';
        c == ',' && !quoted
    })
    .map(|value| value.trim().trim_matches('"').trim())
    .collect()
}

fn list(names: &[&str]) -> String {
    let shown = names.iter().filter(|name| !name.is_empty()).map(|name| format!("`{}`", shorten(name)));
    shown.take(30).collect::<Vec<_>>().join(", ")
}
