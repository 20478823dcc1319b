//! Inputs for the tests that throw rubbish at parsers.

use brakelight_core::random::Random;

/// How many inputs to try: `BRAKELIGHT_FUZZ_INPUTS`, or 20,000.
pub fn fuzz_inputs() -> u64 {
    match std::env::var("BRAKELIGHT_FUZZ_INPUTS") {
        Ok(text) => text.parse().expect("BRAKELIGHT_FUZZ_INPUTS is a number"),
        Err(_) => 20_000,
    }
}

/// One text of `corpus` with a few edits: bytes, characters of the language, pieces of other lines, numbers
/// at the edges of their types.
pub fn mutate(corpus: &[String], random: &mut Random) -> String {
    const PIECES: &[&str] = &[
        "0",
        "-1",
        "1e308",
        "nan",
        "inf",
        "18446744073709551615",
        "0x7f",
        "1_000",
        "999999999h",
        "0pkt",
        "\"",
        "'",
        "[",
        "]",
        "{",
        "}",
        "=",
        ",",
        ":",
        "(",
        ")",
        "+",
        "*",
        "/",
        "<",
        ">",
        "\n",
        "[[flow]]",
        "none",
        "..",
        "#",
        "é",
        "\u{0}",
        "\u{1F6A6}",
        "s",
        "ms",
        "Mbps",
        "true",
        "random",
        "infMbps",
        "1.7976931348623157e308s",
    ];
    let pick = |random: &mut Random, n: usize| (random.bits() % n.max(1) as u64) as usize;
    let mut text: Vec<char> = corpus[pick(random, corpus.len())].chars().collect();
    for _ in 0..1 + pick(random, 4) {
        let at = pick(random, text.len() + 1);
        let end = (at + pick(random, 8)).min(text.len());
        match pick(random, 6) {
            0 => drop(text.drain(at..end)),
            1 => {
                text.splice(at..end, PIECES[pick(random, PIECES.len())].chars());
            }
            2 => {
                text.splice(at..at, PIECES[pick(random, PIECES.len())].chars());
            }
            3 => {
                // A line of the corpus in another place.
                let donor = &corpus[pick(random, corpus.len())];
                let line = donor.lines().nth(pick(random, donor.lines().count())).unwrap_or_default();
                let start = text[..at].iter().rposition(|&c| c == '\n').map_or(0, |newline| newline + 1);
                text.splice(start..start, format!("{line}\n").chars());
            }
            4 => {
                // One digit becomes another.
                if let Some(digit) = text[at..].iter().position(char::is_ascii_digit) {
                    text[at + digit] = char::from(b'0' + pick(random, 10) as u8);
                }
            }
            _ => text.truncate(if pick(random, 20) == 0 { at } else { text.len() }),
        }
    }
    text.into_iter().collect()
}
