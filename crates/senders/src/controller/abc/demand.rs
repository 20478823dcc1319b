//! A sender's demand in its accelerates (abc17 section 6): not all packets leave as accelerates, but as many
//! as it could answer.
//!
//! ```text
//! a demand of d packets per second = d/2 accelerates per second                          abc17 6, footnote 5
//!
//! known:    bucket += (d/2) dt, at most BURST                a packet takes one token and accelerates,
//!                                                            or leaves as a brake
//! measured: bucket += 1/2 for a packet that the application limits, 1 for any other      the same
//! ```
//!
//! An application that limits its flow wants the rate it has: half of its packets ask for two each. Where its
//! packets wait for the window it wants all it can have. Routers pass the accelerates that such a flow did
//! not ask for to those that did, without knowing of it: the token bucket of abc20's Algorithm 1 keeps what a
//! brake does not take.

use alloc::string::{String, ToString};

use brakelight_core::parameters::Value;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

/// Accelerates in a row after a pause: as many as a router's bucket holds.
const BURST: f64 = 5.0;

/// The demand that the sender announces to ABC routers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// What it has while its application limits it, and everything otherwise.
    Measured,
    /// This much, in bytes at the IP layer.
    Known(Rate),
}

impl Value for Demand {
    fn unit() -> String {
        "measured | rate".to_string()
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.trim() == "measured" {
            return Ok(Demand::Measured);
        }
        let expected = || "`measured`, or a rate such as `2Mbps`".to_string();
        let rate: Rate = text.parse().map_err(|_| expected())?;
        if rate == Rate::ZERO { Err(expected()) } else { Ok(Demand::Known(rate)) }
    }

    fn show(&self) -> String {
        match self {
            Demand::Measured => "measured".to_string(),
            Demand::Known(rate) => rate.to_string(),
        }
    }
}

/// Decides which packets ask for more.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    demand: Option<Demand>,
    tokens: f64,
    filled_at: Time,
}

impl Asking {
    pub(super) fn new(demand: Option<Demand>, now: Time) -> Self {
        Asking { demand, tokens: BURST, filled_at: now }
    }

    /// Whether the packet of `size` bytes that leaves at `now` is an accelerate.
    pub(super) fn accelerates(&mut self, now: Time, size: Bytes, app_limited: bool) -> bool {
        // abc17 6, footnote 5
        self.tokens += match self.demand {
            None => return true,
            Some(Demand::Measured) if app_limited => 0.5,
            Some(Demand::Measured) => 1.0,
            Some(Demand::Known(rate)) => {
                let passed: Duration = now.since(self.filled_at);
                0.5 * rate.as_bps_f64() * passed.as_secs_f64() / size.bits() as f64
            }
        };
        self.filled_at = now;
        self.tokens = self.tokens.min(BURST);
        let enough = self.tokens >= 1.0;
        if enough {
            self.tokens -= 1.0;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accelerates among `packets` of 1500 bytes sent every millisecond, 12 Mbit/s.
    fn accelerates(demand: &str, packets: u64, app_limited: bool) -> u64 {
        let mut asking = Asking::new(Some(Demand::parse(demand).unwrap()), Time::ZERO);
        (0..packets).filter(|&ms| asking.accelerates(Time::from_millis(ms), Bytes(1500), app_limited)).count()
            as u64
    }

    /// HN-U5: 4 Mbit/s are 333 packets per second, which 167 accelerates per second ask for.
    #[test]
    fn a_demand_of_d_packets_is_half_as_many_accelerates() {
        assert_eq!(accelerates("4Mbps", 3_000, false), 504);
        assert_eq!(accelerates("12Mbps", 3_000, true), 1_504);
        // More than every packet asking for two cannot be said.
        assert_eq!(accelerates("24Mbps", 3_000, false), 3_000);
        assert_eq!(accelerates("100Mbps", 3_000, false), 3_000);
    }

    #[test]
    fn a_flow_that_its_application_limits_asks_for_what_it_has() {
        assert_eq!(accelerates("measured", 3_000, true), 1_504);
        assert_eq!(accelerates("measured", 3_000, false), 3_000);
    }

    #[test]
    fn a_pause_saves_no_more_than_a_burst() {
        let mut asking = Asking::new(Some(Demand::Known(Rate::from_mbps(1))), Time::ZERO);
        let burst = (0..20).filter(|_| asking.accelerates(Time::from_secs(100), Bytes(1500), true)).count();
        assert_eq!(burst, 5);
    }

    #[test]
    fn a_demand_is_a_rate_or_measured() {
        for text in ["measured", "2Mbps"] {
            assert_eq!(Demand::parse(text).unwrap().show(), text);
        }
        for text in ["", "none of it", "0bps", "-1Mbps"] {
            assert!(Demand::parse(text).is_err(), "{text}");
        }
    }
}
