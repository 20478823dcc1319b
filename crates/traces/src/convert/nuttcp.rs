//! What nuttcp prints with `-i`: the receiver's intervals, one after another.
//!
//! ```text
//!    18.7500 MB /   1.00 sec =  157.2843 Mbps     0 retrans
//!  1119.0000 MB /  10.00 sec =  938.9970 Mbps 13 %TX 12 %RX 0 retrans    the total, which is left out
//! ```

use brakelight_core::units::Rate;

use super::{ConvertError, ConvertOptions, Converted, Format, RateUnit};

const ROW: &str = "expected `AMOUNT MB / LENGTH sec = RATE Mbps`, of up to 86400 s and 1e12 bit/s";

/// Returns `true` if these are lines of nuttcp.
pub(super) fn is_output(head: &str) -> bool {
    head.lines().any(|line| line.contains(" sec = ") && line.contains("B / "))
}

pub(super) fn from_text(bytes: &[u8], options: &ConvertOptions) -> Result<Converted, ConvertError> {
    let text = String::from_utf8_lossy(bytes);
    let mut stretches = Vec::new();
    for (line, row) in (1..).zip(text.lines()) {
        let Some((_, values)) = row.split_once("B /") else { continue };
        // The total tells the use of the processors.
        if values.contains("%TX") {
            continue;
        }
        let refuse = || ConvertError::line(line, "the row", row.trim(), ROW);
        let mut words = values.split_ascii_whitespace();
        let (length, sec, equals, rate, unit) =
            (words.next(), words.next(), words.next(), words.next(), words.next());
        let number = |text: Option<&str>| text?.parse::<f64>().ok();
        let unit = unit.and_then(RateUnit::of_name);
        let (Some(seconds), Some("sec"), Some("="), Some(rate), Some(unit)) =
            (number(length), sec, equals, number(rate), unit)
        else {
            return Err(refuse());
        };
        let (ms, bps) = (libm::round(seconds * 1e3), unit.bps(rate));
        if !(1.0..=86.4e6).contains(&ms) || !(0.0..=1e12).contains(&bps) {
            return Err(refuse());
        }
        stretches.push((ms as u64, Rate::from_bps_f64(bps)));
    }
    if stretches.is_empty() {
        return Err(ConvertError::Empty("interval of nuttcp (`nuttcp -i1`)"));
    }
    let notes = vec![
        "nuttcp counts payload: the headers, about 3.5 % for TCP in 1500-byte packets, are not in these rates".to_string(),
    ];
    Converted::of_rates(&stretches, Format::Nuttcp, options, notes, Vec::new())
}
