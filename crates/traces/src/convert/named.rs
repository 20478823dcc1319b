//! Tables with many columns: those of time and rate are found by their names.
//!
//! | what | how it is found |
//! |---|---|
//! | the rate | `--column`; else a name that ends in a unit of rates or has one of [`RATES`] |
//! | its direction | one of [`DOWN`], such as `dl` or `rx`; one of [`UP`], such as `ul` or `tx` |
//! | its unit | `--unit`; else the name; else that of a known program; else Mbit/s where no other can be |
//! | the time | `--time-column`; else a name with time, date or start, of the same direction or of none |
//! | the end | the same with end or stop |
//!
//! A name is made of words: `rx_Mbps`, `RxMbps` and `Rx (Mbps)` have the same. A table without rates may be
//! one of [`super::packets`], and its rows may be [`super::idle`].
//!
//! An empty value, `-`, `NA` and `nan` are no value. G-NetTrack (gyokovsolutions.com, manual of G-NetTrack
//! Pro, "Log file": `DL_bitrate` and `UL_bitrate` in kbps) is known by its columns.

use brakelight_core::units::Bytes;

use super::csv;
use super::idle::States;
use super::series::{Sample, Series};
use super::{ConvertError, ConvertOptions, Converted, Format, RateUnit, Selection, packets, shorten, units};

const TIME: &str = "expected a number of the unit that the header names (seconds without one), or a date such as \
                    `2024-05-01T12:00:00.5Z` or `2024.05.01_12.00.00`, no less than on the line before";
const RATE: &str = "expected a rate from 0 to 1e12 bit/s in the unit of its column, or nothing";
const ROW: &str = "expected as many values as the header has names";
const END: &str = "expected an end after the start of the interval by at least a millisecond";

/// What has a rate in its name although it names no unit.
const RATES: [&str; 8] =
    ["bitrate", "throughput", "goodput", "bandwidth", "capacity", "download", "upload", "datarate"];
const DOWN: [&str; 15] = [
    "dl",
    "down",
    "downlink",
    "download",
    "downloaded",
    "downstream",
    "rx",
    "recv",
    "rcvd",
    "receive",
    "received",
    "receiving",
    "ingress",
    "inbound",
    "incoming",
];
const UP: [&str; 15] = [
    "ul",
    "up",
    "uplink",
    "upload",
    "uploaded",
    "upstream",
    "tx",
    "send",
    "sent",
    "sending",
    "transmit",
    "transmitted",
    "egress",
    "outbound",
    "outgoing",
];
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
    let names = split(header.trim());
    if let Some(columns) = of_packets(&names, options) {
        let rows = lines.map(|(line, row)| (line, row.trim_end_matches('\r').to_string()));
        return packets::from_table(rows, &names, &columns, split, options);
    }
    let columns = Columns::choose(header, options)?;
    let mut states = States::of(&columns.names);
    let mut starts: Vec<i64> = Vec::new();
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
        let start = start.filter(|ms| starts.last().is_none_or(|last| *last <= *ms));
        let start = start.ok_or_else(|| refuse("the time", time, TIME))?;
        starts.push(start);
        if states.is_idle(&row) && options.without_idle {
            // The value before does not last until the one after.
            if let Some(sample) = samples.last_mut().filter(|sample| sample.start < start) {
                sample.end.get_or_insert(start);
            }
            continue;
        }
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
    let mut series =
        Series::among(&samples, &starts).ok_or(ConvertError::Empty("row with a time and a rate"))?;
    warnings.extend(series.warning());
    states.finish(&mut series.stretches, options, &mut notes, &mut warnings);
    Converted::of_rates(&series.stretches, Format::Csv, options, notes, warnings)
}

/// Returns `true` if the header is of a table of packets.
pub(super) fn is_packets(header: &str, options: &ConvertOptions) -> bool {
    of_packets(&split(header), options).is_some()
}

/// The columns of a table of packets: it has none of rates, and no option names one.
fn of_packets(names: &[&str], options: &ConvertOptions) -> Option<packets::Columns> {
    let rates = options.column.is_some() || options.unit.is_some() || names.iter().any(|name| is_rate(name));
    if rates { None } else { packets::Columns::of(names) }
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
        let position = |column: &String| {
            let found = names.iter().position(|name| name.eq_ignore_ascii_case(column));
            found.ok_or_else(|| ConvertError::NoColumn { column: column.clone(), names: list(&names) })
        };
        let named = options.time_column.as_ref().map(position).transpose()?;
        let times = |ends: bool| {
            let fits = |name: &&str| {
                let words = words(name);
                let is_end = words.iter().any(|word| ENDS.contains(&word.as_str()));
                units::is_time(name)
                    && Some(*name) != named.map(|named| names[named])
                    && is_end == ends
                    && Way::of(name).is_none_or(|way_of| Some(way_of) == way)
            };
            // One of the direction itself comes before one of none.
            let mut found: Vec<usize> = (0..names.len()).filter(|index| fits(&names[*index])).collect();
            found.sort_by_key(|index| Way::of(names[*index]).is_none());
            found.first().copied()
        };
        let time =
            named.or_else(|| times(false)).ok_or_else(|| ConvertError::NoTime { names: list(&names) })?;
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
    let named = |rates: &[usize]| rates.iter().map(|index| names[*index]).collect::<Vec<_>>();
    match (chosen.as_slice(), wanted) {
        ([one], _) => Ok(*one),
        _ if rates.is_empty() => Err(ConvertError::NoRate { names: list(names) }),
        // A direction would choose one.
        (_, None) if one_each(&named(&rates)) => {
            let example = names[rates[0]].to_string();
            Err(ConvertError::SeveralRates { names: list(&named(&rates)), example })
        }
        ([], Some(way)) => Err(ConvertError::NoRateOfDirection {
            direction: way.selection(),
            example: names[rates[0]].to_string(),
            names: list(&named(&rates)),
        }),
        (several, _) => Err(ConvertError::ManyRates {
            example: names[several[0]].to_string(),
            names: list(&named(several)),
        }),
    }
}

/// Returns `true` if exactly one of these names says each direction.
fn one_each(names: &[&str]) -> bool {
    [Way::Down, Way::Up]
        .iter()
        .all(|way| names.iter().filter(|name| Way::of(name) == Some(*way)).count() == 1)
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
    fn selection(self) -> Selection {
        match self {
            Way::Down => Selection::Down,
            Way::Up => Selection::Up,
        }
    }

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

/// The words of a name, in small letters. `RxMbps` is one, and has two more in it.
fn words(name: &str) -> Vec<String> {
    let of = |text: &str| -> Vec<String> {
        let lower = text.to_ascii_lowercase();
        let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        words.map(String::from).collect()
    };
    let mut apart = String::with_capacity(name.len() + 4);
    let mut characters = name.chars().peekable();
    let mut last = ' ';
    while let Some(c) = characters.next() {
        let before_small = characters.peek().is_some_and(char::is_ascii_lowercase);
        let begins = last.is_ascii_lowercase() || last.is_ascii_uppercase() && before_small;
        if c.is_ascii_uppercase() && begins {
            apart.push(' ');
        }
        apart.push(c);
        last = c;
    }
    let mut words = of(name);
    words.extend(of(&apart));
    words
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
