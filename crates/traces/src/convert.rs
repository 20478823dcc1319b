//! Traces from and to other files.
//!
//! | format | read | written | what becomes an opportunity |
//! |---|---|---|---|
//! | Mahimahi | yes | yes | a line |
//! | CSV, of few or many columns | yes | yes | `opportunity` bytes at the rate of an interval |
//! | two columns of numbers | yes | - | the same |
//! | iperf3's JSON and text, nuttcp's text | yes | - | the same |
//! | Genet's JSON, logs of cake-autorate, flent's data | yes | - | the same |
//! | lists and tables of packets | yes | - | `opportunity` bytes of packets |
//! | logs of links, Mahimahi's and ours | yes | - | a `#` line |
//! | CellReplay's heavy opportunities | yes | - | `opportunity` bytes of lines of 1400 |
//! | pcap, pcapng | yes | - | `opportunity` bytes of arrived IP packets |
//! | qlog | yes | - | `opportunity` bytes of received QUIC packets |
//! | [bltrace](super::recording::file) | yes | yes | what the recording says |
//!
//! A capture or an iperf3 test is taken as one direction of a saturated link; which one, if it holds both, is
//! [`Selection`]'s to say. What arrived is not what could have arrived wherever the sender had nothing to
//! send. A file in any of these formats may be packed by gzip.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Rate};
use brakelight_links::trace::{Trace, TraceError};
use brakelight_links::trains::TrainsError;
use thiserror::Error;

use super::OPPORTUNITY;
use super::recording::{self, RecordingError};
use crate::checksum::sha256;
use crate::input::{self, gzip};

mod arrivals;
mod autorate;
mod cellreplay;
mod columns;
mod converted;
mod csv;
pub mod delays;
mod dialect;
mod flent;
mod genet;
mod idle;
mod iperf3;
mod iperf3_stream;
mod iperf3_text;
mod looks;
mod mm_link;
mod named;
mod nuttcp;
mod packets;
mod pcap;
mod qlog;
mod qlog_early;
mod selection;
mod series;
mod unit;
mod units;

use arrivals::Arrivals;
pub use converted::Converted;
pub use csv::to_csv;
use looks::Look;
use packets::Meaning;
pub use selection::Selection;
pub use unit::RateUnit;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Milliseconds, one opportunity a line.
    Mahimahi,
    /// A table with commas, semicolons or tabs: a time and a rate a line, or many columns of which two are
    /// found by their names.
    Csv,
    /// A time and a rate a line, with blanks between and no header.
    Columns,
    /// A time and the size of a packet a line, or a table of packets.
    Packets,
    /// A packet capture, classic or pcapng.
    Pcap,
    /// What `iperf3 --json` and `iperf3 --json-stream` print.
    Iperf3,
    /// What iperf3 and iperf print without it.
    Iperf3Text,
    /// What `nuttcp -i` prints.
    Nuttcp,
    /// The JSON of Genet and of the traces it took from Pantheon.
    Genet,
    /// A log of cake-autorate.
    CakeAutorate,
    /// A data file of flent.
    Flent,
    /// A log of a link, Mahimahi's or ours.
    LinkLog,
    /// CellReplay's opportunities of a busy link: Mahimahi's format, 1400 bytes a line.
    CellReplay,
    /// qlog of an endpoint that received, as one object or as a sequence of records.
    Qlog,
    /// A recording with delay and loss: our own format.
    Bltrace,
}

/// Every format, by its name.
const FORMATS: [(&str, Format); 16] = [
    ("mahimahi", Format::Mahimahi),
    ("csv", Format::Csv),
    ("columns", Format::Columns),
    ("packets", Format::Packets),
    ("pcap", Format::Pcap),
    ("pcapng", Format::Pcap),
    ("iperf3", Format::Iperf3),
    ("iperf3-text", Format::Iperf3Text),
    ("nuttcp", Format::Nuttcp),
    ("genet", Format::Genet),
    ("cake-autorate", Format::CakeAutorate),
    ("flent", Format::Flent),
    ("link-log", Format::LinkLog),
    ("cellreplay", Format::CellReplay),
    ("qlog", Format::Qlog),
    ("bltrace", Format::Bltrace),
];

/// How a file becomes a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvertOptions {
    /// What one delivery opportunity carries; above 0.
    pub opportunity: Bytes,
    /// What is taken of the file.
    pub selection: Selection,
    /// The unit of the rates; `None`: what the file says.
    pub unit: Option<RateUnit>,
    /// The column of the rates in a table, or the series of a flent file, by its name; `None`: the one whose
    /// name tells so.
    pub column: Option<String>,
    /// The column of the times in a table, by its name; `None`: the one whose name tells so.
    pub time_column: Option<String>,
    /// Leave out the rows of a table in which the application was idle; where no column says so, those of
    /// rate 0.
    pub without_idle: bool,
}

impl ConvertError {
    /// Returns `true` if it is about what stands in the file, and not about what was chosen of it.
    fn is_of_contents(&self) -> bool {
        matches!(
            self,
            ConvertError::Line { .. }
                | ConvertError::Json { .. }
                | ConvertError::Trace(_)
                | ConvertError::Unrecognized(_)
                | ConvertError::Empty(_)
                | ConvertError::NoTime { .. }
                | ConvertError::NoRate { .. }
        )
    }

    /// Returns what is wrong in a line of a text.
    fn line(line: usize, field: &'static str, value: &str, expected: &'static str) -> Self {
        ConvertError::Line { line, field, value: shorten(value), expected }
    }
}

/// What is wrong with a field of another program's JSON.
fn refuse_json(field: impl Into<String>, problem: impl Into<String>) -> ConvertError {
    ConvertError::Json { field: field.into(), problem: problem.into() }
}

/// Reads another program's JSON.
fn json(bytes: &[u8]) -> Result<serde_json::Value, ConvertError> {
    serde_json::from_slice(bytes).map_err(|error| refuse_json("document", format!("not JSON: {error}")))
}

impl Default for ConvertOptions {
    /// Opportunities of [`OPPORTUNITY`] bytes, of a file of one direction.
    fn default() -> Self {
        ConvertOptions {
            opportunity: OPPORTUNITY,
            selection: Selection::default(),
            unit: None,
            column: None,
            time_column: None,
            without_idle: false,
        }
    }
}

/// Why a file did not become a trace.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// As a Mahimahi trace.
    #[error("{0}")]
    Trace(#[from] TraceError),
    /// As a table or another text.
    #[error("line {line}: {field} is `{value}`: {expected}")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// The column.
        field: &'static str,
        /// Its text, shortened.
        value: String,
        /// What would be valid.
        expected: &'static str,
    },
    /// As a capture.
    #[error("packet {packet}: {problem}")]
    Pcap {
        /// The packet, counted from 1.
        packet: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// As JSON of another program.
    #[error("`{field}`: {problem}")]
    Json {
        /// The path of the field.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A table has no column of this name.
    #[error("no column is called `{column}`: the file has {names}")]
    NoColumn {
        /// What was asked for.
        column: String,
        /// The names there are.
        names: String,
    },
    /// No name of a table says that its column is of rates.
    #[error("no column's name says that it holds rates: choose one of {names} with `--column`")]
    NoRate {
        /// The names there are.
        names: String,
    },
    /// No name of a table says that its column is of times.
    #[error(
        "no column's name says that it holds times (`time`, `timestamp`, `start`, `date`): choose one of {names} with \
         `--time-column`"
    )]
    NoTime {
        /// The names there are.
        names: String,
    },
    /// Several columns of a table are of rates.
    #[error(
        "several columns hold rates: choose with `--direction down`, `--direction up` or `--column {example}`; the file has {names}"
    )]
    SeveralRates {
        /// The names of these columns.
        names: String,
        /// One of them.
        example: String,
    },
    /// Several columns are of rates, and no direction tells which is meant.
    #[error(
        "several columns hold rates, and a direction does not choose between them: give `--column {example}` or another of {names}"
    )]
    ManyRates {
        /// The names of these columns.
        names: String,
        /// One of them.
        example: String,
    },
    /// No column of rates is of the direction that was chosen.
    #[error(
        "no rate column's name says `{direction}`: choose one of {names} with `--column`, such as `--column \
         {example}`"
    )]
    NoRateOfDirection {
        /// What was chosen.
        direction: Selection,
        /// The names of the columns of rates.
        names: String,
        /// One of them.
        example: String,
    },
    /// Two columns of numbers may be rates over time, or packets.
    #[error(
        "the second column may be rates or sizes of packets: `--from packets` sums up sizes in bytes, and `--unit Mbit/s` or \
         another reads it as rates"
    )]
    RatesOrSizes,
    /// It is of a program whose files hold no capacity in a form that is read.
    #[error("it looks like {what}: {advice}")]
    LooksLike {
        /// What it is.
        what: &'static str,
        /// What to do with it.
        advice: &'static str,
    },
    /// Nothing says the unit of the rates.
    #[error("nothing says the unit of `{column}`: give `--unit Mbit/s`, `--unit kbit/s` or another")]
    NoUnit {
        /// The name of the column.
        column: String,
    },
    /// The file has one column of rates, whose unit it says itself.
    #[error("{0} have no `{1}`")]
    NoSuchOption(&'static str, &'static str),
    /// A capture holds more than one direction.
    #[error(
        "the capture holds both directions ({directions}): choose one with `--direction from:{example}` or \
         `--direction to:{example}`, or a flow with `--flow ADDRESS:PORT-ADDRESS:PORT`"
    )]
    BothDirections {
        /// An address of the capture.
        example: IpAddr,
        /// The largest directions, in words.
        directions: String,
    },
    /// No packet is of the direction or flow that was chosen.
    #[error("no packet is of `{selection}`: the capture holds {directions}")]
    NothingSelected {
        /// What was chosen.
        selection: Selection,
        /// The largest directions, in words.
        directions: String,
    },
    /// Nobody can tell the directions of a capture.
    #[error(
        "{0} packets were cut before their addresses, so that their direction is not known: capture at least 60 bytes of \
         a packet, or take all of them with `--direction all`"
    )]
    NoAddresses(u64),
    /// The file has no such direction.
    #[error("`{selection}` is not a direction of this file: {valid}")]
    Direction {
        /// What was chosen.
        selection: Selection,
        /// What would be valid.
        valid: &'static str,
    },
    /// It holds nothing.
    #[error("the file holds no {0}")]
    Empty(&'static str),
    /// It is of no known format.
    #[error("the file is neither {0}")]
    Unrecognized(&'static str),
    /// It lasts longer, or carries more, than a trace may.
    #[error(
        "the file lasts {seconds:.0} s and carries {opportunities:.0} opportunities: valid are up to 86400 s and 200 million"
    )]
    TooLong {
        /// Its length.
        seconds: f64,
        /// What it carries.
        opportunities: f64,
    },
    /// As light packet trains.
    #[error("{0}")]
    Trains(TrainsError),
    /// Light packet trains where a capacity is expected.
    #[error(
        "the file holds CellReplay's light packet trains and no capacity: convert its file of heavy opportunities, and          give this one with `--delay`"
    )]
    LightAlone,
    /// What gzip packed cannot be unpacked.
    #[error("{0}")]
    Packed(String),
    /// As a recording.
    #[error("{0}")]
    Recording(#[from] RecordingError),
    /// Not one opportunity comes together.
    #[error("all of the file makes no delivery opportunity of {0}")]
    Silent(Bytes),
}

/// A conversion error, with the file that it concerns.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The file cannot be converted.
    #[error("{}: {error}{}", path.display(), taken_for(*found, error))]
    Convert {
        /// The file.
        path: PathBuf,
        /// Why.
        error: Box<ConvertError>,
        /// The format that it seemed to have; `None` if the user named it.
        found: Option<Format>,
    },
}

/// Says as what a file was read, where another format would help.
fn taken_for(found: Option<Format>, error: &ConvertError) -> String {
    match found.filter(|_| error.is_of_contents()) {
        Some(Format::Mahimahi) => {
            " (read as a trace of Mahimahi, since nothing in it tells another format; `--from` names one)"
                .to_string()
        }
        Some(format) => format!(" (read as {}; `--from` names another format)", format.about()),
        None => String::new(),
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = FORMATS.iter().find(|(name, _)| *name == text);
        found.map(|(_, format)| *format).ok_or_else(|| {
            let valid: Vec<String> = FORMATS.iter().map(|(name, _)| format!("`{name}`")).collect();
            format!("unknown format `{text}`: valid are {}", valid.join(", "))
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = FORMATS.iter().find(|(_, format)| format == self);
        f.write_str(found.expect("every format has a name").0)
    }
}

impl Format {
    /// Returns what a file seems to be, by its first 64 KiB: the magic numbers of captures, the keys of JSON,
    /// the lines that programs print, two numbers a line, the comma or the header of a table, and Mahimahi's
    /// format otherwise.
    pub fn detect(bytes: &[u8]) -> Self {
        if pcap::is_capture(bytes) {
            return Format::Pcap;
        }
        if recording::file::is_recording(bytes) {
            return Format::Bltrace;
        }
        let text = without_mark(bytes);
        if text.first() == Some(&0x1e) {
            return Format::Qlog;
        }
        let head = String::from_utf8_lossy(&text[..text.len().min(input::HEAD)]);
        // The first lines that are neither blank nor a comment of a table.
        let mut rows = csv::rows(head.as_bytes());
        let (line, second) = (rows.next().unwrap_or_default(), rows.next());
        let line = line.as_str();
        if line.starts_with('{') {
            return Format::detect_json(&head);
        }
        if iperf3_text::is_output(&head) {
            Format::Iperf3Text
        } else if nuttcp::is_output(&head) {
            Format::Nuttcp
        } else if autorate::is_log(line) {
            Format::CakeAutorate
        } else if mm_link::is_log(&head, line) {
            Format::LinkLog
        } else if columns::is_row(line.as_bytes()) {
            Format::Columns
        } else if line.contains(',')
            || dialect::is_foreign(line, second.as_deref())
            || line.starts_with(|c: char| c.is_ascii_alphabetic())
        {
            Format::Csv
        } else {
            Format::Mahimahi
        }
    }

    fn detect_json(head: &str) -> Self {
        let has = |key: &str| head.contains(&format!("\"{key}\""));
        if has("qlog_version") || has("qlog_format") || has("file_schema") {
            Format::Qlog
        } else if flent::is_data(has) {
            Format::Flent
        } else if has("bandwidths") || has("timestamps") {
            Format::Genet
        } else {
            Format::Iperf3
        }
    }

    /// Returns what a file of this format is, in words.
    const fn about(self) -> &'static str {
        match self {
            Format::Mahimahi => "a trace of Mahimahi",
            Format::Csv => "a table of rates",
            Format::Columns => "two columns, of times and rates",
            Format::Packets => "a list of packets",
            Format::Pcap => "a packet capture",
            Format::Iperf3 => "iperf3's JSON",
            Format::Iperf3Text => "iperf's text",
            Format::Nuttcp => "nuttcp's text",
            Format::Genet => "Genet's JSON",
            Format::CakeAutorate => "a log of cake-autorate",
            Format::Flent => "flent's data",
            Format::LinkLog => "a log of a link",
            Format::CellReplay => "CellReplay's opportunities",
            Format::Qlog => "qlog",
            Format::Bltrace => "a recording",
        }
    }

    /// Returns the most that a file of this format may hold, unpacked if it was packed.
    pub const fn most(self) -> Bytes {
        match self {
            Format::Mahimahi | Format::CellReplay | Format::LinkLog | Format::Bltrace => input::TRACE,
            Format::Csv
            | Format::Columns
            | Format::Packets
            | Format::Iperf3Text
            | Format::Nuttcp
            | Format::CakeAutorate => input::TABLE,
            Format::Pcap => input::CAPTURE,
            Format::Iperf3 | Format::Genet | Format::Flent | Format::Qlog => input::JSON,
        }
    }
}

/// Makes a trace of the contents of a file, which gzip does not pack. A byte order mark before a text is
/// skipped.
pub fn convert(bytes: &[u8], format: Format, options: ConvertOptions) -> Result<Converted, ConvertError> {
    read(bytes, format, &options).map_err(|error| {
        let told = match format {
            Format::Pcap | Format::Bltrace => matches!(error, ConvertError::Unrecognized(_)),
            _ => error.is_of_contents(),
        };
        match Look::of(bytes).filter(|_| told) {
            Some(Look { what, advice }) => ConvertError::LooksLike { what, advice },
            None => error,
        }
    })
}

fn read(bytes: &[u8], format: Format, options: &ConvertOptions) -> Result<Converted, ConvertError> {
    let plain = without_mark(bytes);
    let text = if format == Format::Csv { dialect::with_commas(plain)? } else { Cow::Borrowed(plain) };
    let text = text.as_ref();
    let first = csv::first_row(text).filter(|_| matches!(format, Format::Csv | Format::Packets));
    let of_packets = first.as_ref().is_some_and(|row| named::is_packets(row, options));
    let named =
        format == Format::Csv && first.as_ref().is_some_and(|row| named::is_header(row) || of_packets);
    check_options(format, named, of_packets, options)?;
    if matches!(format, Format::Mahimahi | Format::CellReplay)
        && csv::first_row(text).is_some_and(|row| cellreplay::is_train(&row))
    {
        return Err(ConvertError::LightAlone);
    }
    let by_name = named || options.column.is_some() || options.time_column.is_some();
    if options.unit.is_none() && (format == Format::Columns || format == Format::Csv && !by_name) {
        match Meaning::of(text) {
            Meaning::Rates => {}
            Meaning::Sizes => return packets::from_list(text, options),
            Meaning::Unclear => return Err(ConvertError::RatesOrSizes),
        }
    }
    let mut converted = match format {
        Format::Mahimahi => {
            let trace = Trace::parse(text)?;
            Converted::of_opportunities(trace.clone(), trace, format, options, Vec::new())
        }
        Format::Bltrace => Converted::of_recording(recording::file::read(bytes)?, options)?,
        Format::Csv if by_name => named::from_table(text, options)?,
        Format::Csv => csv::from_csv(text, options)?,
        Format::Columns => columns::from_columns(text, options)?,
        Format::Packets if of_packets => named::from_table(text, options)?,
        Format::Packets => packets::from_list(text, options)?,
        Format::Pcap => pcap::from_capture(bytes, options)?,
        Format::Iperf3 => iperf3::from_iperf3(text, options)?,
        Format::Iperf3Text => iperf3_text::from_text(text, options)?,
        Format::Nuttcp => nuttcp::from_text(text, options)?,
        Format::Genet => genet::from_json(text, options)?,
        Format::CakeAutorate => autorate::from_log(text, options)?,
        Format::Flent => flent::from_data(text, options)?,
        Format::LinkLog => mm_link::from_log(text, options)?,
        Format::CellReplay => cellreplay::from_heavy(text, options)?,
        Format::Qlog => qlog::from_qlog(text, options)?,
    };
    if converted.resolution > FINE {
        converted.warnings.push(format!(
            "an interval lasts {} ms: an outage or a peak within one is averaged away, so schemes will look better than \
             on the link itself; record intervals of 100 ms or less",
            converted.resolution.as_nanos() / 1_000_000
        ));
    }
    Ok(converted)
}

/// Returns what can be chosen of a file that holds more than one direction, each with its bytes, the most
/// first; nothing if there is nothing to choose.
pub fn selections(bytes: &[u8], format: Format) -> Result<Vec<(Selection, Bytes)>, ConvertError> {
    match format {
        Format::Pcap => pcap::selections(bytes),
        Format::Iperf3 => iperf3::selections(without_mark(bytes)),
        Format::Iperf3Text => Ok(iperf3_text::selections(without_mark(bytes))),
        Format::Csv => Ok(named::selections(&dialect::with_commas(without_mark(bytes))?)),
        Format::Flent => Ok(flent::selections(without_mark(bytes))),
        Format::CakeAutorate => Ok(vec![(Selection::Down, Bytes::ZERO), (Selection::Up, Bytes::ZERO)]),
        _ => Ok(Vec::new()),
    }
}

/// Refuses options that the file has no use for: nobody should believe that they did anything.
fn check_options(
    format: Format,
    named: bool,
    of_packets: bool,
    options: &ConvertOptions,
) -> Result<(), ConvertError> {
    let table = matches!(format, Format::Csv | Format::Columns);
    let one_way = match format {
        Format::Csv => !named && options.column.is_none() && options.time_column.is_none(),
        Format::Mahimahi
        | Format::Columns
        | Format::Nuttcp
        | Format::Genet
        | Format::Qlog
        | Format::LinkLog => true,
        _ => false,
    };
    if one_way && !matches!(options.selection, Selection::OneDirection | Selection::All) {
        let valid = "it holds one only, and choosing is for captures, iperf3, flent, cake-autorate and tables with \
                     several columns of rates";
        return Err(ConvertError::Direction { selection: options.selection, valid });
    }
    let named_ones = matches!(format, Format::Csv | Format::CakeAutorate | Format::Flent);
    if options.column.is_some() && !named_ones {
        return Err(ConvertError::NoSuchOption("files of this format", "--column"));
    }
    if options.time_column.is_some() && format != Format::Csv {
        return Err(ConvertError::NoSuchOption("files of this format", "--time-column"));
    }
    if options.without_idle && (!table || of_packets) {
        return Err(ConvertError::NoSuchOption("files of this format", "--without-idle"));
    }
    if options.unit.is_some() && !table && format != Format::Flent {
        return Err(ConvertError::NoSuchOption("files of this format say their unit and", "--unit"));
    }
    Ok(())
}

/// The longest interval that keeps an outage: what `statistics` counts as one lasts as long.
const FINE: Duration = Duration::from_millis(100);

/// The text without the byte order mark that some editors put before it (rfc3629 6).
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Makes a trace of a file, or of standard input for `-`; its format is what it seems to be, unless one is
/// given.
pub fn convert_file(
    path: &Path,
    format: Option<Format>,
    options: ConvertOptions,
) -> Result<Converted, FileError> {
    let path = path.to_path_buf();
    let given = format;
    let most = |head: &[u8]| match given {
        _ if gzip::is_packed(head) => input::TRACE,
        Some(format) => format.most(),
        None => Format::detect(head).most(),
    };
    let bytes = match input::read_by(&path, most) {
        Ok(bytes) => bytes,
        Err(error) => return Err(FileError::Read { path, error }),
    };
    let hash = sha256(&bytes);
    let bytes = match gzip::unpacked(bytes, most) {
        Ok(bytes) => bytes,
        Err(error) => return Err(FileError::Read { path, error }),
    };
    let format = given.unwrap_or_else(|| Format::detect(&bytes));
    let mut converted = match convert(&bytes, format, options) {
        Ok(converted) => converted,
        Err(error) => {
            let found = given.is_none().then_some(format);
            return Err(FileError::Convert { path, error: Box::new(error), found });
        }
    };
    if format != Format::Bltrace {
        let about = &mut converted.recording.about;
        about.name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        about.source_sha256 = Some(hash);
    }
    Ok(converted)
}

/// Returns the trace as a Mahimahi file.
pub fn to_mahimahi(trace: &Trace) -> String {
    let mut text = String::new();
    for ms in trace.millis() {
        text.push_str(&ms.to_string());
        text.push('\n');
    }
    text
}

/// The longest file that becomes a trace, and the most it may carry.
const MOST: (Duration, f64) = (Duration::from_secs(86_400), 200e6);

/// Opportunities at the rates of successive stretches of whole milliseconds, each as soon as its bits are
/// there. The period is the whole length: its last millisecond gets an opportunity even where none is due.
fn opportunities_in_millis(stretches: &[(u64, Rate)], opportunity: Bytes) -> Result<Trace, ConvertError> {
    let length: u64 = stretches.iter().map(|(ms, _)| ms).sum();
    let bits: f64 = stretches.iter().map(|(ms, rate)| *ms as f64 * 1e-3 * rate.as_bps_f64()).sum();
    let opportunities = bits / opportunity.bits() as f64;
    check_size(length as f64 * 1e-3, opportunities)?;
    if opportunities < 1.0 {
        return Err(ConvertError::Silent(opportunity));
    }
    let whole = opportunity.bits() * 1_000;
    let (mut start, mut milli_bits) = (0, 0);
    let stamps = stretches.iter().flat_map(|&(ms, rate)| {
        let (from, carried, rate) = (start, milli_bits, rate.bps());
        let due = (carried + ms * rate) / whole;
        start += ms;
        milli_bits = (carried + ms * rate) % whole;
        (1..=due).map(move |k| from + (k * whole - carried).div_ceil(rate))
    });
    // The end of the trace, unless something comes then anyway.
    let mut last = 0;
    let stamps = stamps.map(Some).chain([None]).filter_map(|stamp| match stamp {
        Some(ms) => {
            last = ms;
            Some(ms)
        }
        None => (last < length).then_some(length),
    });
    Ok(Trace::from_millis(stamps)?)
}

/// The median length of stretches.
fn resolution(stretches: &[(u64, Rate)]) -> Duration {
    let mut lengths: Vec<u64> = stretches.iter().map(|(ms, _)| *ms).collect();
    lengths.sort_unstable();
    Duration::from_millis(lengths.get(lengths.len() / 2).copied().unwrap_or(0))
}

fn check_size(seconds: f64, opportunities: f64) -> Result<(), ConvertError> {
    if seconds > MOST.0.as_secs_f64() || opportunities > MOST.1 {
        return Err(ConvertError::TooLong { seconds, opportunities });
    }
    Ok(())
}

/// At most 40 characters of some text.
fn shorten(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod people_tests;
#[cfg(test)]
mod programs_tests;
#[cfg(test)]
mod tests;
