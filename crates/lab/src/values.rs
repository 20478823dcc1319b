//! Values as people write them on a command line; an error says what would be valid.

use std::str::FromStr;

use brakelight_core::parameters::Parameters as _;
use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Limit, Rate, parse_number};
use brakelight_links::delay;
use brakelight_scenario::scenario::TraceOffset;
use brakelight_senders::controller::quicdc::{self, Threshold};

use crate::compare::{Buffer, Reverse};

/// Returns the value that `text` spells.
pub fn human<T: FromStr>(text: &str) -> Result<T, String>
where
    T::Err: ToString,
{
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Returns the message for a value outside its range.
pub fn out_of_range(text: &str, valid: &str) -> String {
    format!("`{text}` is out of range: valid is {valid}")
}

/// Returns a time above zero.
pub fn positive_time(text: &str) -> Result<Duration, String> {
    let time: Duration = human(text)?;
    if time.is_zero() {
        Err(out_of_range(text, "any time above 0, such as `100ms` or `60s`"))
    } else {
        Ok(time)
    }
}

/// Returns a delay on the way, which the delay line bounds.
pub fn delay(text: &str) -> Result<Duration, String> {
    let delay = human(text)?;
    delay::Config::new(delay::Values { delay }).map(|config| config.delay).map_err(|error| error.to_string())
}

/// Returns a probability.
pub fn probability(text: &str) -> Result<f64, String> {
    const VALID: &str = "a number from 0 to 1, such as `0.01` or `1%`";
    let probability = parse_number(text).ok_or_else(|| format!("`{text}` is not {VALID}"))?;
    if (0.0..=1.0).contains(&probability) { Ok(probability) } else { Err(out_of_range(text, VALID)) }
}

/// Returns the whole seconds above zero: what iperf3 counts.
pub fn positive_seconds(text: &str) -> Result<Duration, String> {
    let time = positive_time(text)?;
    if time.as_nanos().is_multiple_of(1_000_000_000) {
        Ok(time)
    } else {
        Err(out_of_range(text, "whole seconds above 0, such as `60s`"))
    }
}

/// Returns a rate above zero.
pub fn positive_rate(text: &str) -> Result<Rate, String> {
    let rate: Rate = human(text)?;
    if rate.bps() == 0 { Err(out_of_range(text, "any rate above 0, such as `12Mbps`")) } else { Ok(rate) }
}

/// Returns how many there are to be: from 1 to 10,000.
pub fn count(text: &str) -> Result<u32, String> {
    const VALID: &str = "a whole number from 1 to 10000";
    let count: u32 = text.parse().map_err(|_| format!("`{text}` is not {VALID}"))?;
    if (1..=10_000).contains(&count) { Ok(count) } else { Err(out_of_range(text, VALID)) }
}

/// Returns a whole number from `LEAST` to `MOST`.
pub fn whole<const LEAST: u32, const MOST: u32>(text: &str) -> Result<u32, String> {
    let valid = |count: &u32| (LEAST..=MOST).contains(count);
    let refusal = || format!("`{text}` is not a whole number from {LEAST} to {MOST}");
    text.parse().ok().filter(valid).ok_or_else(refusal)
}

/// Returns a propagation delay that leaves something to see in a run of a minute.
pub fn propagation(text: &str) -> Result<Duration, String> {
    let time = positive_time(text)?;
    if (Duration::from_millis(1)..=Duration::from_secs(2)).contains(&time) {
        Ok(time)
    } else {
        Err(out_of_range(text, "a time from 1ms to 2s"))
    }
}

/// Returns a whole number.
pub fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a whole number from 0 to {}", u64::MAX))
}

/// Returns a buffer above zero.
pub fn positive_buffer(text: &str) -> Result<Limit, String> {
    let limit: Limit = human(text)?;
    match limit {
        Limit::Packets(0) | Limit::Bytes(Bytes::ZERO) => {
            Err(out_of_range(text, "any size above 0, such as `250pkt` or `1.5MB`"))
        }
        _ => Ok(limit),
    }
}

/// Returns a buffer above zero, which may be given in bandwidth-delay products.
pub fn compared_buffer(text: &str) -> Result<Buffer, String> {
    if Buffer::products_of(text).is_some() { text.parse() } else { positive_buffer(text).map(Buffer::Limit) }
}

/// Returns the limit of a way back.
pub fn reverse(text: &str) -> Result<Reverse, String> {
    match Reverse::parse(text) {
        Reverse::Rate(rate) if rate.bps() == 0 => {
            Err(out_of_range(text, "a rate above 0, a trace, or `none`"))
        }
        reverse => Ok(reverse),
    }
}

/// Returns where in its period a trace starts.
pub fn offset(text: &str) -> Result<TraceOffset, String> {
    if text == "random" {
        return Ok(TraceOffset::Random);
    }
    text.parse()
        .map(TraceOffset::At)
        .map_err(|_| format!("`{text}` is not a time such as `1.5s`, nor `random`"))
}

/// Returns a size above zero.
pub fn positive_size(text: &str) -> Result<Bytes, String> {
    match human(text)? {
        Bytes::ZERO => Err(out_of_range(text, "any size above 0, such as `10MB`")),
        bytes => Ok(bytes),
    }
}

/// Returns the share of the capacity that a router aims at.
pub fn eta(text: &str) -> Result<f64, String> {
    const VALID: &str = "a number from 0.1 to 1";
    let eta: f64 = text.parse().map_err(|_| format!("`{text}` is not {VALID}"))?;
    if (0.1..=1.0).contains(&eta) { Ok(eta) } else { Err(out_of_range(text, VALID)) }
}

/// Returns how many tokens a router's bucket holds.
pub fn token_limit(text: &str) -> Result<f64, String> {
    const VALID: &str = "a number above 1 and below 4096";
    let tokens: f64 = text.parse().map_err(|_| format!("`{text}` is not {VALID}"))?;
    if tokens > 1.0 && tokens < 4096.0 { Ok(tokens) } else { Err(out_of_range(text, VALID)) }
}

/// Returns the queueing delay that QUIC-DC bounds.
pub fn threshold(text: &str) -> Result<Threshold, String> {
    let config = quicdc::Config::from_options([("threshold", text)]);
    config.map(|config| config.threshold).map_err(|error| error.to_string())
}

/// Returns a name that Linux can know a controller by.
pub fn kernel_name(text: &str) -> Result<String, String> {
    // Linux 6.12 kernel/bpf/syscall.c, bpf_obj_name_cpy
    const VALID: &str = "1 to 15 letters, digits, `_` and `.`";
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    if (1..=15).contains(&text.len()) && text.chars().all(plain) {
        Ok(text.to_string())
    } else {
        Err(format!("`{text}` is no name: valid is {VALID}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_times_are_read_as_people_write_them() {
        assert_eq!(probability("1%"), Ok(0.01));
        assert_eq!(probability("0.25"), Ok(0.25));
        assert!(probability("101%").is_err_and(|error| error.contains("from 0 to 1")));
        assert_eq!(positive_time("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(positive_time("2min"), Ok(Duration::from_secs(120)));
    }
}
