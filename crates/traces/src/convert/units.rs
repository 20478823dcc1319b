//! What the header of a table says of its columns, and times in the forms that tables have.

use toml::value::{Datetime, Offset};

/// The valid names of a column of times.
pub(super) const TIMES: &str =
    "expected a column of times first: `start_s`, `time`, `timestamp`, `time_ms`, `time_us`";

/// The valid names of a column of rates.
pub(super) const RATES: &str = "expected a name that ends in the unit of the rate: bit/s, kbit/s, Mbit/s, Gbit/s (or bps, \
                                kbps, Mbps, Gbps, bits_per_second), bytes/s, kB/s, MB/s (or Bps, kBps, MBps), or the option `--unit`";

/// What has a time in its name.
const TIME_WORDS: [&str; 9] =
    ["t", "time", "times", "timestamp", "start", "begin", "date", "datetime", "epoch"];

/// Returns `true` if a name says that its column is of times, whatever unit ends it.
pub(super) fn is_time(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.split(|c: char| !c.is_alphanumeric()).any(|word| TIME_WORDS.contains(&word))
}

/// Returns the seconds in one of the unit of times of a column called `name`.
pub(super) fn time(name: &str) -> Option<f64> {
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    match words.clone().next_back()? {
        "s" | "sec" | "secs" | "second" | "seconds" => Some(1.0),
        "ms" | "msec" | "millis" | "milliseconds" => Some(1e-3),
        "us" | "usec" | "µs" | "micros" | "microseconds" => Some(1e-6),
        "ns" | "nsec" | "nanos" | "nanoseconds" => Some(1e-9),
        _ => words.any(|word| TIME_WORDS.contains(&word)).then_some(1.0),
    }
}

/// Returns the bit/s in one of the unit of rates that ends `name`. Capitals matter: `MBps` is megabytes and
/// `Mbps` megabits, and what has capitals only may be either.
pub(super) fn rate(name: &str) -> Option<f64> {
    let name = name.trim_end_matches([')', ']']).trim_end();
    let amount = ["ps", "/s", "/sec", "/second", "_per_s", "_per_sec", "_per_second", " per second"]
        .iter()
        .filter_map(|ending| name.strip_suffix(ending))
        .min_by_key(|amount| amount.len())?;
    let word = amount.rsplit(|c: char| !c.is_ascii_alphabetic()).next()?;
    // `RxMbps`: the unit begins where capitals follow small letters.
    let letters = word.as_bytes();
    let begins = |at: &usize| letters[at - 1].is_ascii_lowercase() && letters[*at].is_ascii_uppercase();
    let begin = (1..letters.len()).rev().find(begins);
    bits(word).or_else(|| bits(&word[begin?..]))
}

/// The bits in one of a unit of amounts.
fn bits(unit: &str) -> Option<f64> {
    Some(match unit {
        "b" => 1.0,
        "B" => 8.0,
        "kb" | "Kb" => 1e3,
        "kB" | "KB" => 8e3,
        "mb" | "Mb" => 1e6,
        "MB" => 8e6,
        "gb" | "Gb" => 1e9,
        "GB" => 8e9,
        _ => match unit.to_ascii_lowercase().as_str() {
            "bit" | "bits" => 1.0,
            "byte" | "bytes" | "octets" => 8.0,
            "kbit" | "kbits" | "kilobit" | "kilobits" => 1e3,
            "kbyte" | "kbytes" | "kilobyte" | "kilobytes" => 8e3,
            "mbit" | "mbits" | "megabit" | "megabits" => 1e6,
            "mbyte" | "mbytes" | "megabyte" | "megabytes" => 8e6,
            "gbit" | "gbits" | "gigabit" | "gigabits" => 1e9,
            "gbyte" | "gbytes" | "gigabyte" | "gigabytes" => 8e9,
            _ => return None,
        },
    })
}

/// Returns the milliseconds of a time: a number of `unit` seconds, or a date and time of ISO 8601, which is
/// UTC if it does not say otherwise and counts from 1970.
pub(super) fn milliseconds(text: &str, unit: f64) -> Option<i64> {
    if let Ok(number) = text.parse::<f64>() {
        let seconds = number * unit;
        return (-1e10..=1e10).contains(&seconds).then(|| libm::round(seconds * 1e3) as i64);
    }
    let Datetime { date, time, offset } = match text.parse() {
        Ok(datetime) => datetime,
        Err(_) => with_dots(text)?.parse().ok()?,
    };
    let (date, time) = (date?, time?);
    let minutes = match offset {
        Some(Offset::Custom { minutes }) => i64::from(minutes),
        Some(Offset::Z) | None => 0,
    };
    let days = days(i64::from(date.year), i64::from(date.month), i64::from(date.day));
    let of_day = (days * 24 + i64::from(time.hour)) * 60 + i64::from(time.minute) - minutes;
    let nanos = i64::from(time.nanosecond.unwrap_or(0));
    Some((of_day * 60 + i64::from(time.second.unwrap_or(0))) * 1_000 + (nanos + 500_000) / 1_000_000)
}

/// G-NetTrack's `2024.05.01_12.00.00` as ISO 8601 writes it.
fn with_dots(text: &str) -> Option<String> {
    let (date, time) = text.split_once('_')?;
    Some(format!("{} {}", date.replace('.', "-"), time.replace('.', ":")))
}

/// Days from 1970-01-01 to a day of the Gregorian calendar. The year begins in March, so that the day that
/// leap years add is its last one.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_count_from_1970() {
        let at = |text| milliseconds(text, 1.0);
        assert_eq!(at("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(at("1970-01-02 00:00:00.0015"), Some(86_400_002));
        assert_eq!(at("1969-12-31T23:59:59Z"), Some(-1_000));
        // `date -ud 2000-02-29T12:00:00 +%s`, `date -ud 2100-03-01 +%s`.
        assert_eq!(at("2000-02-29T12:00:00Z"), Some(951_825_600_000));
        assert_eq!(at("2100-03-01T00:00:00Z"), Some(4_107_542_400_000));
        assert_eq!(at("2000-02-29T12:00:00+05:30"), Some(951_825_600_000 - 19_800_000));
        // G-NetTrack's form.
        assert_eq!(at("2019.12.14_10.16.30"), at("2019-12-14T10:16:30Z"));
        for wrong in
            ["2100-02-29T00:00:00Z", "2000-13-01T00:00:00Z", "2000-01-01", "12:00:00", "yesterday", ""]
        {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn units_are_read_at_the_end_of_a_name() {
        for (name, expected) in [
            ("mbps", Some(1e6)),
            ("throughput_mbps", Some(1e6)),
            ("rate (Mbit/s)", Some(1e6)),
            ("MBps", Some(8e6)),
            ("rate_kB/s", Some(8e3)),
            ("bytes_per_second", Some(8.0)),
            ("bits per second", Some(1.0)),
            ("bps", Some(1.0)),
            ("Bps", Some(8.0)),
            ("Gbit/s", Some(1e9)),
            ("MBPS", None),
            ("steps", None),
            ("bytes", None),
            ("rate", None),
            ("packets/s", None),
            ("RxMbps", Some(1e6)),
            ("uploadKB/s", Some(8e3)),
            ("RxPackets/s", None),
        ] {
            assert_eq!(rate(name), expected, "{name}");
        }
        for (name, expected) in [
            ("time", Some(1.0)),
            ("start_s", Some(1.0)),
            ("Timestamp (ms)", Some(1e-3)),
            ("time_us", Some(1e-6)),
            ("mbps", None),
            ("cell", None),
        ] {
            assert_eq!(time(name), expected, "{name}");
        }
    }
}
