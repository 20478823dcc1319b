//! The text of a link log: what Mahimahi's `mm-link --uplink-log` writes and `mm-throughput-graph` reads.
//!
//! ```text
//! # mahimahi mm-link (NAME) [SERVICE] > NAME.log
//! # command line: ...
//! # queue: QUEUE
//! # init timestamp: 0
//! # base timestamp: 0
//! 12 # 1504          at 12 ms a delivery opportunity of 1504 bytes
//! 12 + 1504          a packet of 1504 bytes arrived
//! 12 - 1504 3        one left that had come 3 ms before
//! 12 d 2 3008        two were dropped, of 3008 bytes together
//! ```
//!
//! Times of a real log count from the start of the emulator; its base timestamp says when the link began. A
//! log that is read has times from the link's beginning on, as ours do.

use core::fmt::{self, Write};

use crate::outcome::{LinkEvent, LinkLog};

/// Why a link log was refused. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkLogError {
    /// The line.
    pub line: usize,
    /// Its text, shortened.
    pub text: String,
    /// What would have been valid.
    pub expected: &'static str,
}

impl fmt::Display for LinkLogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: `{}` is not {}", self.line, self.text, self.expected)
    }
}

impl core::error::Error for LinkLogError {}

/// Writes the log; `command` is the command line that made it.
pub fn write(log: &LinkLog, command: &str, out: &mut impl Write) -> fmt::Result {
    write_header(&log.name, &log.service, &log.queue, command, out)?;
    log.events.iter().try_for_each(|event| write_event(event, out))
}

/// Writes what comes before the events: the link, its trace or rate, its queue, the command line.
pub fn write_header(
    name: &str,
    service: &str,
    queue: &str,
    command: &str,
    out: &mut impl Write,
) -> fmt::Result {
    let (name, service, queue) = (Line(name), Line(service), Line(queue));
    writeln!(out, "# mahimahi mm-link ({name}) [{service}] > {name}.log")?;
    writeln!(out, "# command line: {}", Line(command))?;
    writeln!(out, "# queue: {queue}")?;
    writeln!(out, "# init timestamp: 0")?;
    writeln!(out, "# base timestamp: 0")
}

/// Writes one event as a line. An emulator writes a million a second, so it does without the machinery of
/// formatting.
pub fn write_event(event: &LinkEvent, out: &mut impl Write) -> fmt::Result {
    let (ms, kind, first, second) = match *event {
        LinkEvent::Opportunity { ms, bytes } => (ms, " # ", bytes, None),
        LinkEvent::Arrival { ms, bytes } => (ms, " + ", bytes, None),
        LinkEvent::Departure { ms, bytes, delay_ms } => (ms, " - ", bytes, Some(delay_ms)),
        LinkEvent::Drop { ms, packets, bytes } => (ms, " d ", packets, Some(bytes)),
    };
    let mut digits = itoa::Buffer::new();
    out.write_str(digits.format(ms))?;
    out.write_str(kind)?;
    out.write_str(digits.format(first))?;
    if let Some(second) = second {
        out.write_char(' ')?;
        out.write_str(digits.format(second))?;
    }
    out.write_char('\n')
}

/// Text that stays on its line, whatever is in it.
struct Line<'a>(&'a str);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| f.write_char(if c.is_control() { ' ' } else { c }))
    }
}

/// Reads a log, ours or a real one.
pub fn parse(text: &str) -> Result<LinkLog, LinkLogError> {
    let mut log =
        LinkLog { name: String::new(), service: String::new(), queue: String::new(), events: Vec::new() };
    let mut base = None;
    for (index, line) in text.lines().enumerate() {
        let refuse = |expected| LinkLogError { line: index + 1, text: shorten(line), expected };
        if let Some(header) = line.strip_prefix("# ") {
            if let Some(link) = header.strip_prefix("mahimahi mm-link (") {
                let (name, rest) = link.split_once(") [").ok_or_else(|| refuse(TITLE))?;
                let (service, _) = rest.rsplit_once("] > ").ok_or_else(|| refuse(TITLE))?;
                (log.name, log.service) = (name.to_string(), service.to_string());
            } else if let Some(queue) = header.strip_prefix("queue: ") {
                log.queue = queue.to_string();
            } else if let Some(at) = header.strip_prefix("base timestamp: ") {
                base = Some(at.parse().map_err(|_| refuse("a base timestamp in whole milliseconds"))?);
            }
            continue;
        }
        let base =
            base.ok_or_else(|| refuse("the header `# base timestamp: MS`, which comes before events"))?;
        log.events.push(parse_event(line, base).ok_or_else(|| refuse(EVENT))?);
    }
    match base {
        Some(_) => Ok(log),
        None => {
            let line = text.lines().count() + 1;
            let expected = "the header `# base timestamp: MS`: a link log has one";
            Err(LinkLogError { line, text: String::new(), expected })
        }
    }
}

const TITLE: &str = "a title such as `# mahimahi mm-link (Uplink) [trace] > log`";
const EVENT: &str = "an event: `MS # BYTES`, `MS + BYTES`, `MS - BYTES DELAY` or `MS d PACKETS BYTES`";

/// The event of a line, its time counted from `base`.
fn parse_event(line: &str, base: u64) -> Option<LinkEvent> {
    let mut words = line.split(' ');
    let at: u64 = words.next()?.parse().ok()?;
    let ms = u32::try_from(at.checked_sub(base)?).ok()?;
    let kind = words.next()?;
    let mut number = || words.next()?.parse::<u32>().ok();
    let event = match kind {
        "#" => LinkEvent::Opportunity { ms, bytes: number()? },
        "+" => LinkEvent::Arrival { ms, bytes: number()? },
        "-" => LinkEvent::Departure { ms, bytes: number()?, delay_ms: number()? },
        "d" => LinkEvent::Drop { ms, packets: number()?, bytes: number()? },
        _ => return None,
    };
    let departed_before_it_came = matches!(event, LinkEvent::Departure { ms, delay_ms, .. } if delay_ms > ms);
    (words.next().is_none() && !departed_before_it_came).then_some(event)
}

/// At most 40 characters, printable.
fn shorten(text: &str) -> String {
    const MOST: usize = 40;
    let mut shown: String = text.chars().take(MOST).flat_map(char::escape_default).collect();
    if text.chars().count() > MOST {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use brakelight_traces::convert::{ConvertOptions, Format, convert};
    use proptest::prelude::*;

    /// A log as Mahimahi writes it, with the times of a link that began 7 ms after the emulator.
    const REAL: &str = "\
# mahimahi mm-link (Uplink) [/traces/Verizon-LTE-short.up] > up.log
# command line: mm-link up down --uplink-queue=droptail --uplink-queue-args=packets=250
# queue: droptail [max_packets=250]
# init timestamp: 1700000000000
# base timestamp: 7
# mahimahi config: [delay 50 ms]
7 # 1504
9 + 64
10 # 1504
10 - 64 1
12 d 2 3008
";

    fn real() -> LinkLog {
        LinkLog {
            name: "Uplink".to_string(),
            service: "/traces/Verizon-LTE-short.up".to_string(),
            queue: "droptail [max_packets=250]".to_string(),
            events: vec![
                LinkEvent::Opportunity { ms: 0, bytes: 1504 },
                LinkEvent::Arrival { ms: 2, bytes: 64 },
                LinkEvent::Opportunity { ms: 3, bytes: 1504 },
                LinkEvent::Departure { ms: 3, bytes: 64, delay_ms: 1 },
                LinkEvent::Drop { ms: 5, packets: 2, bytes: 3008 },
            ],
        }
    }

    #[test]
    fn reads_a_real_log_from_its_base_on() {
        assert_eq!(parse(REAL).unwrap(), real());
    }

    #[test]
    fn writes_what_mahimahi_writes() {
        let mut text = String::new();
        write(&real(), "brakelight run up.toml", &mut text).unwrap();
        assert_eq!(
            text,
            "\
# mahimahi mm-link (Uplink) [/traces/Verizon-LTE-short.up] > Uplink.log
# command line: brakelight run up.toml
# queue: droptail [max_packets=250]
# init timestamp: 0
# base timestamp: 0
0 # 1504
2 + 64
3 # 1504
3 - 64 1
5 d 2 3008
"
        );
    }

    #[test]
    fn its_opportunities_become_a_trace() {
        let at = |ms| LinkEvent::Opportunity { ms, bytes: 1504 };
        let events = vec![at(0), at(3), LinkEvent::Arrival { ms: 3, bytes: 60 }, at(3), at(9)];
        let mut text = String::new();
        write(&LinkLog { events, ..real() }, "brakelight run", &mut text).unwrap();
        let format = Format::detect(text.as_bytes());
        let made = convert(text.as_bytes(), format, ConvertOptions::default()).unwrap();
        assert_eq!((format, made.trace.millis().collect::<Vec<_>>()), (Format::LinkLog, vec![0, 3, 3, 9]));
    }

    #[test]
    fn a_name_cannot_break_a_line() {
        let log = LinkLog { name: "up\n5 # 1504\r".to_string(), ..real() };
        let mut text = String::new();
        write(&log, "a\nb", &mut text).unwrap();
        assert_eq!(parse(&text).unwrap(), LinkLog { name: "up 5 # 1504 ".to_string(), ..real() });
    }

    #[test]
    fn a_refusal_names_line_text_and_what_would_be_valid() {
        let refusal = |text: &str| parse(text).unwrap_err().to_string();
        let base = "# base timestamp: 3\n";
        for wrong in [
            "x # 1",
            "4 #",
            "4 # 1 2",
            "4 ? 1",
            "4 - 1504",
            "4 # -1",
            "2 # 1504",
            "4",
            "",
            "4 - 1504 2",
            "4  # 9",
        ] {
            let expected = format!("line 2: `{wrong}` is not {EVENT}");
            assert_eq!(refusal(&format!("{base}{wrong}\n")), expected);
        }
        assert!(refusal("1 # 1504\n").starts_with("line 1: `1 # 1504` is not the header `# base timestamp"));
        assert!(refusal("").contains("a link log has one"));
        assert!(
            refusal("# base timestamp: soon\n").ends_with("is not a base timestamp in whole milliseconds")
        );
        assert!(refusal("# mahimahi mm-link (Uplink\n").contains("is not a title such as"));
    }

    fn event() -> impl Strategy<Value = LinkEvent> {
        let (ms, number) = (0..u32::MAX, 0..u32::MAX);
        prop_oneof![
            (ms.clone(), number.clone()).prop_map(|(ms, bytes)| LinkEvent::Opportunity { ms, bytes }),
            (ms.clone(), number.clone()).prop_map(|(ms, bytes)| LinkEvent::Arrival { ms, bytes }),
            (ms.clone(), number.clone(), number.clone()).prop_map(|(ms, bytes, delay)| {
                LinkEvent::Departure { ms, bytes, delay_ms: delay.min(ms) }
            }),
            (ms, number.clone(), number).prop_map(|(ms, packets, bytes)| LinkEvent::Drop {
                ms,
                packets,
                bytes
            }),
        ]
    }

    proptest! {
        #[test]
        fn writing_and_reading_gives_the_same_log(events in proptest::collection::vec(event(), 0..50)) {
            let log = LinkLog { events, ..real() };
            let mut text = String::new();
            write(&log, "command", &mut text).unwrap();
            prop_assert_eq!(parse(&text).unwrap(), log);
        }

        #[test]
        fn no_text_makes_the_parser_panic(lines in proptest::collection::vec("[0-9#+d \\-x:é]{0,12}", 0..8)) {
            let text = format!("# base timestamp: 1\n{}", lines.join("\n"));
            if let Err(error) = parse(&text) {
                let named = format!("line {}: ", error.line);
                prop_assert!(error.line >= 2 && error.to_string().starts_with(&named));
            }
        }
    }
}
