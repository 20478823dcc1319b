//! What iperf3 prints for people, and its elder iperf: one line an interval.
//!
//! ```text
//! [  5]   0.10-0.20   sec   206 KBytes  16.9 Mbits/sec    0   54.1 KBytes
//!  id     interval          transfer     bitrate          Retr  Cwnd: of a sender
//! ```
//!
//! The bitrate is taken: its units count in thousands, those of bytes per second in 1024 (iperf3, `units.c`,
//! `unit_snprintf`). It has three digits, so the mean of many is right to a thousandth. Of the two ends the
//! receiver knows what the link carried. A client is the receiver in reverse mode (`-R`) and has the server's
//! lines after `--get-server-output`.

use std::collections::BTreeMap;

use brakelight_core::units::{Bytes, Rate};

use super::{ConvertError, ConvertOptions, Converted, Format, Selection, iperf3, shorten};

/// One end's lines.
#[derive(Default)]
struct End {
    /// Not the program that printed the file, but its peer.
    is_server: bool,
    reverse: bool,
    both_ways: bool,
    /// Its header has columns that senders have.
    counts_sent: bool,
    /// Its header has columns that receivers of UDP have.
    counts_received: bool,
    /// The rows of each stream, by its name.
    streams: BTreeMap<String, Vec<Interval>>,
    /// What it sent and what arrived, by the totals in the end, in Mbit/s.
    sent: Option<f64>,
    received: Option<f64>,
    omitted: u64,
    /// What follows is the summary, whose header is of both ends.
    at_summary: bool,
}

/// From one millisecond to another at a rate.
struct Interval {
    start: u64,
    end: u64,
    bps: f64,
}

/// Returns `true` if these are lines of iperf.
pub(super) fn is_output(head: &str) -> bool {
    head.lines().any(|line| line.starts_with("[ ID]") && line.contains("Interval"))
}

pub(super) fn from_text(bytes: &[u8], options: &ConvertOptions) -> Result<Converted, ConvertError> {
    let text = String::from_utf8_lossy(bytes);
    let mut ends = vec![End::default()];
    for (line, row) in (1..).zip(text.lines()) {
        let end = ends.last_mut().expect("there is always one");
        if row.starts_with("Server output:") {
            let is_server = !end.is_server;
            let (reverse, both_ways) = (end.reverse, end.both_ways);
            ends.push(End { is_server, reverse, both_ways, ..End::default() });
            continue;
        }
        end.is_server |= row.starts_with("Accepted connection from");
        end.reverse |= row.starts_with("Reverse mode");
        if let Some(problem) = row.strip_prefix("iperf3: error - ") {
            let problem = format!("iperf3 failed: {}", shorten(problem));
            return Err(ConvertError::Json { field: "error".to_string(), problem });
        }
        end.read(line, row)?;
    }
    let own = &ends[0];
    let direction = direction(own, options.selection)?;
    let mut notes = Vec::new();
    let mut warnings = Vec::new();
    let mut chosen = own;
    if own.is_sender(direction) {
        match ends.get(1).filter(|server| !server.is_sender(direction) && !server.streams.is_empty()) {
            Some(server) => {
                notes.push(iperf3::RECEIVERS.to_string());
                chosen = server;
            }
            None => warnings.push(iperf3::sender_only(own.sent.zip(own.received), "output")),
        }
    }
    let intervals = chosen.intervals(chosen.role(direction))?;
    let mut at = intervals.first().map_or(0, |interval| interval.start);
    let mut stretches = Vec::with_capacity(intervals.len());
    for interval in intervals {
        if interval.end > at {
            stretches.push((interval.end - at, Rate::from_bps_f64(interval.bps)));
            at = interval.end;
        }
    }
    notes.push(
        "iperf counts payload: the headers, about 3.5 % for TCP in 1500-byte packets, are not in these rates"
            .to_string(),
    );
    if chosen.omitted > 0 {
        notes.push(format!("{} intervals of the warm-up (--omit) were left out", chosen.omitted));
    }
    Converted::of_rates(&stretches, Format::Iperf3Text, options, notes, warnings)
}

/// Returns both directions of a test that went both ways; nothing of any other.
pub(super) fn selections(bytes: &[u8]) -> Vec<(Selection, Bytes)> {
    let text = String::from_utf8_lossy(bytes);
    let both = text.lines().any(|line| line.starts_with("[ ID][Role]"));
    let directions = [Selection::Down, Selection::Up];
    directions.into_iter().filter(|_| both).map(|selection| (selection, Bytes::ZERO)).collect()
}

/// The direction of the data, as the client has it.
fn direction(own: &End, selection: Selection) -> Result<Selection, ConvertError> {
    let refuse = |valid| Err(ConvertError::Direction { selection, valid });
    let ran = if own.is_server {
        if own.counts_sent { Selection::Down } else { Selection::Up }
    } else if own.reverse {
        Selection::Down
    } else {
        Selection::Up
    };
    match (selection, own.both_ways) {
        (Selection::Up | Selection::Down, true) => Ok(selection),
        (_, true) => refuse(iperf3::BOTH_WAYS),
        (Selection::OneDirection | Selection::All, false) => Ok(ran),
        (Selection::Up | Selection::Down, false) if selection == ran => Ok(ran),
        (Selection::Up, false) => refuse(iperf3::DOWN_ONLY),
        (Selection::Down, false) => refuse(iperf3::UP_ONLY),
        (_, false) => {
            refuse("iperf's lines have no packets: give `up`, from the client to the server, or `down`")
        }
    }
}

impl End {
    fn read(&mut self, line: usize, row: &str) -> Result<(), ConvertError> {
        self.at_summary |= row.starts_with("- - -");
        let Some((name, rest)) = row.trim_start().strip_prefix('[').and_then(|row| row.split_once(']'))
        else {
            return Ok(());
        };
        let (name, rest) = (name.trim(), rest.trim_start());
        if name == "ID" && self.at_summary {
            return Ok(());
        }
        if name == "ID" {
            self.both_ways |= rest.starts_with("[Role]") || rest.starts_with("Role");
            self.counts_sent |= rest.contains("Retr") || rest.contains("Cwnd");
            self.counts_sent |= rest.contains("Total Datagrams") && !rest.contains("Jitter");
            self.counts_received |= rest.contains("Jitter");
            return Ok(());
        }
        // A test of both directions names the role of the stream: `[TX-C]`.
        let (role, rest) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((role, rest)) => (role.split('-').next().unwrap_or_default(), rest),
            None => ("", rest),
        };
        self.both_ways |= !role.is_empty();
        let Some((interval, values)) = rest.split_once("sec") else { return Ok(()) };
        let refuse = |field, value: &str, expected| ConvertError::line(line, field, value.trim(), expected);
        let Some((start, end)) = interval.split_once('-') else { return Ok(()) };
        let to_ms = |text: &str| {
            let seconds = text.trim().parse::<f64>().ok().filter(|seconds| (0.0..=1e6).contains(seconds))?;
            Some(libm::round(seconds * 1e3) as u64)
        };
        const INTERVAL: &str = "expected two times in seconds, from 0 to 1e6, such as `0.10-0.20`";
        let (Some(start), Some(end)) = (to_ms(start), to_ms(end)) else {
            return Err(refuse("the interval", interval, INTERVAL));
        };
        const RATE: &str = "expected a bitrate such as `16.9 Mbits/sec`, up to 1e12 bit/s";
        let mut words = values.split_ascii_whitespace();
        let (_, _, amount, unit) = (words.next(), words.next(), words.next(), words.next());
        let rate = amount.and_then(|amount| Some(amount.parse::<f64>().ok()? * bits(unit?)?));
        let Some(bps) = rate.filter(|bps| (0.0..=1e12).contains(bps)) else {
            return Err(refuse("the bitrate", values, RATE));
        };
        match values.split_ascii_whitespace().next_back() {
            Some("sender") => self.sent = Some(bps / 1e6),
            Some("receiver") => self.received = Some(bps / 1e6),
            Some("(omitted)") => self.omitted += 1,
            _ => {
                let stream = format!("{role}{name}");
                let rows = self.streams.entry(stream).or_default();
                // iperf 2 ends with a total that begins at 0 again.
                if end <= start && rows.is_empty() && self.omitted > 0 {
                    // The warm-up ended within it: it starts by one clock and ends by another.
                    self.omitted += 1;
                } else if end > start && rows.last().is_none_or(|last| last.end <= start + 1) {
                    rows.push(Interval { start, end, bps });
                }
            }
        }
        Ok(())
    }

    /// Returns `true` if this end sent the data of the direction.
    fn is_sender(&self, direction: Selection) -> bool {
        if self.both_ways {
            return (direction == Selection::Up) != self.is_server;
        }
        let client_sends = !self.is_server && !self.reverse && !self.counts_received;
        self.counts_sent || client_sends
    }

    /// What this end calls the rows of the direction: in a test of both it names what it did itself.
    fn role(&self, direction: Selection) -> &'static str {
        match (self.both_ways, self.is_sender(direction)) {
            (false, _) => "",
            (true, true) => "TX",
            (true, false) => "RX",
        }
    }

    /// The rows of the sum of the streams, or of the only one.
    fn intervals(&self, role: &str) -> Result<&[Interval], ConvertError> {
        let of_role: Vec<(&String, &Vec<Interval>)> =
            self.streams.iter().filter(|(name, _)| name.starts_with(role)).collect();
        let sum = of_role.iter().find(|(name, _)| name.ends_with("SUM"));
        match (sum, of_role.as_slice()) {
            (Some((_, rows)), _) | (None, [(_, rows)]) => Ok(rows),
            (None, []) => Err(ConvertError::Empty("interval of iperf")),
            (None, _) => Err(ConvertError::Json {
                field: "[SUM]".to_string(),
                problem: format!("missing, although there are {} streams", of_role.len()),
            }),
        }
    }
}

/// The bits in one of a unit such as `Mbits/sec`.
fn bits(unit: &str) -> Option<f64> {
    let unit = unit.strip_suffix("/sec")?;
    let (prefix, base, bits) = match (unit.strip_suffix("bits"), unit.strip_suffix("Bytes")) {
        (Some(prefix), _) => (prefix, 1_000.0_f64, 1.0),
        (None, Some(prefix)) => (prefix, 1_024.0, 8.0),
        _ => return None,
    };
    let exponent = match prefix {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    Some(bits * base.powi(exponent))
}
