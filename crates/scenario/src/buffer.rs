//! The size of a bottleneck's buffer, as the command line and experiments give it.

use std::str::FromStr;

use brakelight_core::time::Duration;
use brakelight_core::units::{Limit, Rate};
use brakelight_links::trace::Trace;

use crate::trace::OPPORTUNITY;

/// The size of a bottleneck's buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// So much.
    Limit(Limit),
    /// So many bandwidth-delay products: of the trace's mean rate and the propagation delay of the round
    /// trip.
    Products(f64),
}

impl Buffer {
    /// Returns the buffer in packets or bytes on `trace` with this round trip.
    pub fn limit(self, trace: &Trace, rtt: Duration) -> Limit {
        match self {
            Buffer::Limit(limit) => limit,
            Buffer::Products(products) => {
                Limit::Packets(packets(products, trace.mean_rate(OPPORTUNITY), rtt))
            }
        }
    }

    /// Returns what stands before the unit, in capitals or not, where `text` is a number of bandwidth-delay
    /// products.
    pub fn products_of(text: &str) -> Option<&str> {
        let text = text.trim();
        let (number, unit) = text.split_at_checked(text.len().checked_sub(3)?)?;
        unit.eq_ignore_ascii_case("BDP").then_some(number)
    }
}

/// `250pkt`, `1.5MB`, `2BDP`.
impl FromStr for Buffer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(products) = Buffer::products_of(text) else {
            let limit = text.parse().map(Buffer::Limit);
            return limit
                .map_err(|_| format!("`{text}` is not a buffer such as `250pkt`, `1.5MB` or `2BDP`"));
        };
        match products.trim().parse::<f64>() {
            Ok(products) if products > 0.0 && products <= 1e6 => Ok(Buffer::Products(products)),
            Ok(_) => Err(format!("`{text}` is out of range: valid is more than 0BDP and at most 1000000BDP")),
            Err(_) => Err(format!("`{text}` is not a number of bandwidth-delay products such as `2BDP`")),
        }
    }
}

/// Returns bandwidth-delay products in whole packets, rounded up, at least one.
pub fn packets(products: f64, rate: Rate, rtt: Duration) -> u32 {
    let packets = (products * rate.bytes_in(rtt).as_f64() / OPPORTUNITY.as_f64()).ceil();
    packets.clamp(1.0, f64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn a_buffer_is_a_size_or_a_number_of_products_of_the_mean_rate() {
        // Ten opportunities a millisecond.
        let every = (1..=1000).flat_map(|ms| std::iter::repeat_n(ms, 10));
        let steady = Trace::from_millis(every).unwrap();
        let limit = |text: &str| text.parse::<Buffer>().unwrap().limit(&steady, RTT);
        assert_eq!(limit("250pkt"), Limit::Packets(250));
        assert_eq!(limit("2BDP"), Limit::Packets(2000));
        assert_eq!(limit("0.5 BDP"), Limit::Packets(500));
        assert_eq!((limit("2bdp"), limit("2Bdp ")), (Limit::Packets(2000), Limit::Packets(2000)));
        for refused in ["0BDP", "-1BDP", "BDP", "xBDP", "nanBDP", "infBDP", "2"] {
            assert!(refused.parse::<Buffer>().is_err(), "{refused}");
        }
    }
}
