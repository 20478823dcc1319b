//! A rate that never changes.
//!
//! ```text
//! R = rate, or share * mean
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | R | `rate` | bit/s | none | what the owner types into the router |
//! | - | `share` | 1 | 0.95 | the usual advice for SQM: 80 to 95 % of the measured rate |
//! | mean | - | bit/s | | the mean of the link's trace, or its fixed rate |

use brakelight_core::time::Duration;
use brakelight_core::units::Rate;

use super::{RateSetter, Side};
use crate::elements::AnyService;
use crate::link::Service as _;

parameters! {
    /// The settings of a fixed rate.
    pub struct Config {
        /// The rate; without it a share of the link's mean.
        rate: Option<Rate> = None, in brakelight_core::parameters::OrNone(Rate::from_bps(8_000)..=Rate::from_mbps(1_000_000)), from "the owner's";
        /// The share of the link's mean, where no rate is given.
        share: f64 = 0.95, in 0.01..=10.0, from "OpenWrt SQM: 80 to 95 % of the measured rate";
    }
}

/// A rate that never changes.
#[derive(Clone, Debug)]
pub struct Fixed {
    config: Config,
    rate: Rate,
}

impl Fixed {
    /// Returns the setter. Until the link's mean is known a share of it is one of 20 Mbit/s.
    pub fn new(config: &Config, _side: Side) -> Self {
        let rate = config.rate.unwrap_or_else(|| share(config, Rate::from_mbps(20)));
        Fixed { config: config.clone(), rate }
    }
}

fn share(config: &Config, mean: Rate) -> Rate {
    Rate::from_bps_f64((mean.as_bps_f64() * config.share).max(8_000.0))
}

impl RateSetter for Fixed {
    fn rate(&self) -> Rate {
        self.rate
    }

    fn interval(&self) -> Duration {
        Duration::ZERO
    }

    fn on_link(&mut self, service: &AnyService) {
        if self.config.rate.is_none() {
            self.rate = share(&self.config, service.nominal());
        }
    }
}
