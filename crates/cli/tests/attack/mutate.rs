//! What is done to a valid input to make it hostile.

use brakelight_core::random::Random;

/// Numbers where programs go wrong.
pub const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "255",
    "256",
    "65535",
    "65536",
    "1e3",
    "1e9",
    "1e18",
    "1e308",
    "1e309",
    "-1e308",
    "5e-324",
    "0.1",
    "1.5",
    "-0.5",
    "0x7f",
    "1_000",
    "+5",
    "nan",
    "-nan",
    "inf",
    "-inf",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999999",
    "00000000000000000001",
    "1.7976931348623157e308",
    "0.00000000000000000000001",
];

/// Units, right and wrong.
pub const UNITS: &[&str] = &[
    "", "s", "ms", "us", "ns", "m", "h", "bps", "kbps", "Mbps", "Gbps", "Tbps", "B", "kB", "MB", "GB", "pkt",
    "%", "parsec", " ", "é",
];

/// Words that are something elsewhere in the program, or nothing.
pub const WORDS: &[&str] = &[
    "abc",
    "cubic",
    "cubic+codel",
    "newreno+fq_codel",
    "droptail",
    "codel",
    "pie",
    "red",
    "dualpi2",
    "xcp",
    "wifi",
    "cellular",
    "up",
    "down",
    "fixed",
    "step",
    "lte-driving",
    "true",
    "false",
    "null",
    "[]",
    "{}",
    "\"\"",
    "random",
    "quic",
    "tcp",
    "abc:eta=7",
    "+",
    ":",
    "a+b+c",
    "cubic:",
    "cubic:=",
    "cubic:a=b=c",
    "=",
    ",",
    ",,,",
    "*",
    "..",
    "/",
    "/dev/null",
    "-",
    "--",
    "%s%n",
    "$(x)",
    "`x`",
    "\u{0}",
    "\u{1b}[2J",
    "\u{202e}",
    "\u{feff}",
    "\u{7}",
    "\r",
    "\n",
    "\t",
    "é",
    "\u{1f4a9}",
    "'",
    "\"",
    "\\",
    "{seed}",
    "{controller}",
    "{{",
    "}}",
];

/// A place before the end of a list of `length`, which is not empty.
pub fn below(random: &mut Random, length: usize) -> usize {
    (random.bits() % length as u64) as usize
}

/// One of them.
pub fn pick<'a, T>(random: &mut Random, all: &'a [T]) -> &'a T {
    &all[below(random, all.len())]
}

/// A value that an option or a key may be given.
pub fn value(random: &mut Random) -> String {
    match below(random, 8) {
        0 | 1 => pick(random, NUMBERS).to_string(),
        2 | 3 => format!("{}{}", pick(random, NUMBERS), pick(random, UNITS)),
        4 => pick(random, WORDS).to_string(),
        5 => format!("{}{}{}", pick(random, WORDS), pick(random, &[":", "+", ",", "="]), pick(random, WORDS)),
        6 => pick(random, WORDS).repeat(1 + below(random, 3000)),
        _ => (0..below(random, 40))
            .map(|_| char::from_u32(random.bits() as u32 % 0x3000).unwrap_or('?'))
            .collect(),
    }
}

/// Changes a text as one that knows its lines, words and numbers.
pub fn text(random: &mut Random, text: &str) -> Vec<u8> {
    let mut text = text.to_string();
    for _ in 0..1 + below(random, 3) {
        text = once(random, &text);
    }
    match below(random, 12) {
        0 => bytes(random, text.as_bytes()),
        1 => text.replace('\n', "\r\n").into_bytes(),
        2 => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        _ => text.into_bytes(),
    }
}

fn once(random: &mut Random, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    if lines.is_empty() {
        return value(random);
    }
    let at = below(random, lines.len());
    match below(random, 12) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at].clone()),
        2 => {
            let other = below(random, lines.len());
            lines.swap(at, other);
        }
        3 => lines[at] = format!("{} = {}", pick(random, WORDS), value(random)),
        // A list or a table within itself, deeply.
        4 => {
            let depth = 1 << below(random, 15);
            let (open, close) =
                *pick(random, &[("[", "]"), ("{a=", "}"), ("{\"a\":", "}"), ("[[", "]]"), ("(", ")")]);
            lines[at] = format!("x = {}1{}", open.repeat(depth), close.repeat(depth));
        }
        5 => lines[at] = lines[at].repeat(1 + below(random, 2000)),
        6 => lines.truncate(at),
        7 => {
            let block = lines[at..].to_vec();
            for _ in 0..below(random, 100) {
                lines.extend(block.iter().take(12).cloned());
            }
        }
        // A number, with its unit or without.
        _ => {
            let numbered: Vec<usize> =
                (0..lines.len()).filter(|&line| lines[line].contains(|c: char| c.is_ascii_digit())).collect();
            let line = if numbered.is_empty() { at } else { *pick(random, &numbered) };
            lines[line] = with_another_value(random, &lines[line]);
        }
    }
    lines.join("\n") + "\n"
}

/// The line with one of its numbers or words replaced.
fn with_another_value(random: &mut Random, line: &str) -> String {
    let mut spans = Vec::new();
    let mut start = None;
    for (at, c) in line.char_indices().chain([(line.len(), ' ')]) {
        let inside = c.is_alphanumeric() || "._-+".contains(c);
        match (start, inside) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                spans.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    let Some(span) = (!spans.is_empty()).then(|| pick(random, &spans).clone()) else { return value(random) };
    let unit = line[span.clone()].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').to_string();
    let new = if below(random, 2) == 0 { format!("{}{unit}", pick(random, NUMBERS)) } else { value(random) };
    format!("{}{new}{}", &line[..span.start], &line[span.end..])
}

/// Changes bytes that nobody reads as text.
pub fn bytes(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + below(random, 6) {
        if bytes.is_empty() {
            bytes.push(random.bits() as u8);
        }
        let at = below(random, bytes.len());
        match below(random, 8) {
            0 => bytes[at] ^= 1 << below(random, 8),
            1 => bytes[at] = *pick(random, &[0, 1, 0x7f, 0x80, 0xff]),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..(at + 1 + below(random, 16)).min(bytes.len()))),
            4 => {
                let piece = bytes[at..(at + 64).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            // A length or a count of four bytes.
            5 => {
                let end = (at + 4).min(bytes.len());
                let word =
                    pick(random, &[0_u32, 1, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1000_0000])
                        .to_le_bytes();
                bytes[at..end].copy_from_slice(&word[..end - at]);
            }
            6 => bytes.extend((0..below(random, 64)).map(|_| random.bits() as u8)),
            _ => {
                let other = below(random, bytes.len());
                bytes.swap(at, other);
            }
        }
    }
    bytes
}
