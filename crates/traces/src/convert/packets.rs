//! Lists of packets: a time and a size a line, as `tshark -T fields -e frame.time_relative -e frame.len`
//! prints them, or a table whose header names both.
//!
//! ```text
//! 1700000000.002806  1514     a packet of 1514 bytes
//! 1700000000.006337  66
//! ```
//!
//! Without a header such a list has the form of a table of rates, and would be a thousand times too fast as
//! one. [`Meaning::of`] tells them apart:
//!
//! | what is seen | packets | rates |
//! |---|---|---|
//! | values | whole numbers, the largest from [`LEAST_LARGEST`] to [`LARGEST`] | any |
//! | times | bursts: less than [`REGULAR`] of the gaps are near the median one | intervals of one length |
//! | distance | milliseconds or less ([`FINE`]) | 100 ms, a second |
//! | repeated | full packets: one size near an MTU in a fifth of the rows | no value in particular |
//!
//! Values with decimals are rates, whatever else is seen. What has signs of both is refused with a question.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::{Arrivals, ConvertError, ConvertOptions, Converted, Format, Selection, units};

const ROW: &str =
    "expected a time in seconds from 0 to 1e10 and the size of a packet in whole bytes, up to 65549";

/// The largest value that may be a size: an IP packet, and a header of Ethernet before it.
const LARGEST: u64 = 65_535 + 14;
/// The least that the largest value of a list of packets is: a header of IPv4 and one of TCP.
const LEAST_LARGEST: u64 = 40;
/// The longest frame of Ethernet without jumbo frames, with two tags.
const FRAME: u64 = 1540;
/// Rates are hardly ever recorded at shorter intervals than this, packets nearly always are.
const FINE: i128 = 10_000_000;
/// A list whose gaps are mostly longer has too few packets for a link.
const SLOW: i128 = 1_000_000_000;
/// How far a gap may be from the median one, as a share of it, in a regular series.
const NEAR: f64 = 0.25;
/// The share of such gaps in a regular series.
const REGULAR: f64 = 0.8;
/// The share of rows that full packets have in a list of packets.
const REPEATED: f64 = 0.2;
/// The share of rows beyond which one value is nearly the only one.
const ONLY: f64 = 0.9;

/// What the second of two columns of numbers means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Rates,
    /// Sizes of packets.
    Sizes,
    /// One of both.
    Unclear,
}

/// A row: nanoseconds, and bytes.
type Row = (i128, u64);

impl Meaning {
    /// Returns what the second column of a text of two columns without a header means.
    pub(super) fn of(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let mut rows = Vec::new();
        for row in text.lines().map(str::trim).filter(|row| !row.is_empty() && !row.starts_with('#')) {
            match pair(row) {
                Some(row) => rows.push(row),
                None => return Meaning::Rates,
            }
        }
        Meaning::of_rows(rows)
    }

    fn of_rows(mut rows: Vec<Row>) -> Self {
        let largest = rows.iter().map(|(_, size)| *size).max().unwrap_or(0);
        if rows.len() < 2 || !(LEAST_LARGEST..=LARGEST).contains(&largest) {
            return Meaning::Rates;
        }
        rows.sort_unstable();
        let mut gaps: Vec<i128> = rows.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        gaps.sort_unstable();
        let median = gaps[gaps.len() / 2];
        let near = |gap: &&i128| ((**gap - median) as f64).abs() <= NEAR * median as f64;
        let regular = median > 0 && gaps.iter().filter(near).count() as f64 >= REGULAR * gaps.len() as f64;
        // In whole milliseconds, but for what floats lose of Unix times.
        let whole_ms = rows.iter().all(|(nanos, _)| (nanos + 1_000).rem_euclid(1_000_000) <= 2_000);
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        rows.iter().for_each(|(_, size)| *counts.entry(*size).or_default() += 1);
        let (common, count) = counts.into_iter().max_by_key(|(_, count)| *count).unwrap_or_default();
        let share = count as f64 / rows.len() as f64;
        let full = count > 1 && share >= REPEATED && is_full(common);
        match (median < FINE, regular) {
            (true, false) => Meaning::Sizes,
            (true, true) if full && !whole_ms => Meaning::Sizes,
            // A rate that changes at every millisecond, by the millisecond.
            (true, true) if whole_ms && !full => Meaning::Rates,
            (true, true) => Meaning::Unclear,
            (false, false) if full && !whole_ms => Meaning::Sizes,
            (false, false) if full || largest <= FRAME && (!whole_ms || median < SLOW) => Meaning::Unclear,
            (false, true) if !whole_ms && largest <= FRAME && (full || share >= ONLY) => Meaning::Unclear,
            (false, true) if full && median < 10 * FINE => Meaning::Unclear,
            _ => Meaning::Rates,
        }
    }
}

/// Returns `true` if full packets are of this size: 1500 bytes less what tunnels and headers take, more what
/// frames add; or jumbo frames.
fn is_full(size: u64) -> bool {
    (1_200..=FRAME).contains(&size) || (8_900..=9_040).contains(&size)
}

/// The time and the size of a row, which are all of it.
fn pair(row: &str) -> Option<Row> {
    let between = |c: char| c.is_ascii_whitespace() || c == ',' || c == ';';
    let mut values =
        row.split(between).map(|value| value.trim_matches('"')).filter(|value| !value.is_empty());
    let row = (nanos(values.next()?)?, size(values.next()?)?);
    values.next().is_none().then_some(row)
}

fn nanos(text: &str) -> Option<i128> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=1e10).contains(seconds))?;
    Some(libm::round(seconds * 1e9) as i128)
}

fn size(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|size| digits && *size <= LARGEST)
}

/// Sums up the sizes of a list without a header.
pub(super) fn from_list(text: &[u8], options: &ConvertOptions) -> Result<Converted, ConvertError> {
    if !matches!(options.selection, Selection::OneDirection | Selection::All) {
        let valid = "a list of times and sizes has no addresses: choose the packets where they are printed, such as by \
                     `tshark -Y ip.src==ADDRESS`";
        return Err(ConvertError::Direction { selection: options.selection, valid });
    }
    let text = String::from_utf8_lossy(text);
    let mut arrivals = Arrivals::default();
    let mut sizes = BTreeSet::new();
    for (line, row) in (1..).zip(text.lines()) {
        let row = row.trim();
        if row.is_empty() || row.starts_with('#') {
            continue;
        }
        let (nanos, size) = pair(row).ok_or_else(|| ConvertError::line(line, "the row", row, ROW))?;
        sizes.insert(size);
        arrivals.push(nanos, size as u32);
    }
    let mut warnings = vec![
        "the second column was read as packet sizes in bytes and summed, over both directions if the list has both; `--unit Mbit/s` reads it as rates"
            .to_string(),
    ];
    warnings.extend(offload(&sizes));
    of_arrivals(arrivals, options, Vec::new(), warnings)
}

/// The columns of a table of packets.
pub(super) struct Columns {
    time: usize,
    size: usize,
    source: Option<usize>,
    target: Option<usize>,
}

impl Columns {
    /// Finds the columns of a time and of a packet's size, if the header names both and no rates.
    pub(super) fn of(names: &[&str]) -> Option<Self> {
        let find = |known: &[&str]| {
            names.iter().position(|name| known.iter().any(|known| name.eq_ignore_ascii_case(known)))
        };
        let source = find(&["source", "ip.src", "ipv6.src", "src", "ip_src", "src_ip", "source_ip"]);
        let target =
            find(&["destination", "ip.dst", "ipv6.dst", "dst", "ip_dst", "dst_ip", "destination_ip"]);
        // Much else has a length, unless there is nothing beside it or it comes from an address.
        let plain = names.len() == 2 || source.is_some();
        let generic = || find(&["length", "len", "size"]).filter(|_| plain);
        let size = find(&[
            "frame.len",
            "ip.len",
            "frame.cap_len",
            "udp.length",
            "tcp.len",
            "packet_size",
            "packet size",
            "packet_length",
            "packet length",
            "packet_len",
            "frame_len",
            "frame_length",
            "pkt_len",
            "pkt_size",
        ])
        .or_else(generic)?;
        let time = (0..names.len()).find(|index| *index != size && units::is_time(names[*index]))?;
        Some(Columns { time, size, source, target })
    }
}

/// Sums up the sizes of a table with a header, of the direction that is chosen.
pub(super) fn from_table(
    rows: impl Iterator<Item = (usize, String)>,
    names: &[&str],
    columns: &Columns,
    split: fn(&str) -> Vec<&str>,
    options: &ConvertOptions,
) -> Result<Converted, ConvertError> {
    let selection = options.selection;
    if !matches!(selection, Selection::OneDirection | Selection::All | Selection::From(_) | Selection::To(_))
    {
        let valid = "a table of packets has addresses or nothing: give `from:ADDRESS`, `to:ADDRESS` or `all`";
        return Err(ConvertError::Direction { selection, valid });
    }
    let unit = units::time(names[columns.time]).unwrap_or(1.0);
    let mut arrivals = Arrivals::default();
    let mut sizes = BTreeSet::new();
    let mut carried: BTreeMap<IpAddr, u64> = BTreeMap::new();
    let mut sources: BTreeSet<String> = BTreeSet::new();
    for (line, row) in rows {
        let values = split(&row);
        let refuse = |field, value: &str, expected| ConvertError::line(line, field, value, expected);
        let value = |column: usize| values.get(column).copied();
        let (Some(time), Some(length)) = (value(columns.time), value(columns.size)) else {
            return Err(refuse("the row", &row, "expected as many values as the header has names"));
        };
        const TIME: &str =
            "expected a number of the unit that the header names (seconds without one), or a date";
        // Milliseconds of a date are as fine as tables have them.
        let seconds = time.parse::<f64>().ok().map(|value| value * unit);
        let nanos = seconds.filter(|at| (0.0..=1e10).contains(at)).map(|at| libm::round(at * 1e9) as i128);
        let nanos = nanos.or_else(|| Some(i128::from(units::milliseconds(time, unit)?) * 1_000_000));
        let nanos = nanos.ok_or_else(|| refuse("the time", time, TIME))?;
        let bytes =
            size(length).ok_or_else(|| refuse("the size", length, "expected whole bytes from 0 to 65549"))?;
        let address = |column: Option<usize>| value(column?)?.parse::<IpAddr>().ok();
        if let Some(source) = columns.source.and_then(value) {
            if !sources.contains(source) {
                sources.insert(source.to_string());
            }
            if let Some(address) = address(columns.source) {
                *carried.entry(address).or_default() += bytes;
            }
        }
        let wanted = match selection {
            Selection::From(from) => address(columns.source) == Some(from),
            Selection::To(to) => address(columns.target) == Some(to),
            _ => true,
        };
        if wanted {
            sizes.insert(bytes);
            arrivals.push(nanos, bytes as u32);
        }
    }
    let directions = || {
        let mut most: Vec<(&IpAddr, &u64)> = carried.iter().collect();
        most.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
        let said = most.iter().take(4).map(|(address, bytes)| format!("from {address} {bytes} bytes"));
        (most.first().map(|(address, _)| **address), said.collect::<Vec<_>>().join(", "))
    };
    if selection == Selection::OneDirection && sources.len() > 1 {
        return Err(match directions() {
            (Some(example), directions) => ConvertError::BothDirections { example, directions },
            (None, _) => ConvertError::Direction {
                selection,
                valid: "the table names several sources: leave the packets of one in it, or take `all`",
            },
        });
    }
    if arrivals.is_empty() && !sources.is_empty() {
        return Err(ConvertError::NothingSelected { selection, directions: directions().1 });
    }
    let notes = vec![format!(
        "the sizes of packets, `{}`, were summed up by the time `{}`",
        names[columns.size], names[columns.time]
    )];
    of_arrivals(arrivals, options, notes, offload(&sizes).into_iter().collect())
}

fn of_arrivals(
    arrivals: Arrivals,
    options: &ConvertOptions,
    mut notes: Vec<String>,
    warnings: Vec<String>,
) -> Result<Converted, ConvertError> {
    let (trace, fine) = arrivals.trace(options.opportunity, "packet")?;
    notes.push(
        "sizes were taken as they are: those of frames (`frame.len`) have 14 bytes of Ethernet's header in them"
            .to_string(),
    );
    let mut converted = Converted::of_opportunities(trace, fine, Format::Packets, options, notes);
    converted.warnings = warnings;
    Ok(converted)
}

/// Warns of packets larger than a link carries: a network card had put them together.
fn offload(sizes: &BTreeSet<u64>) -> Option<String> {
    let largest = *sizes.last().filter(|size| **size > 9_040)?;
    Some(format!(
        "packets of up to {largest} bytes were put together by the network card before they were recorded: their bursts are \
         not the link's"
    ))
}

#[cfg(test)]
mod tests;
