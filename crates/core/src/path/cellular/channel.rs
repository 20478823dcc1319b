//! A user's channel: signal-to-noise ratio over time, the index that the user reports, the bits that a
//! resource block pair carries.
//!
//! ```text
//! S(k+1) = a S(k) + sqrt(1 - a^2) sigma N        a = exp(-report / shadow_time)  gudmundson91: shadowing, dB
//! h(k+1) = b h(k) + sqrt(1 - b^2) CN             b = exp(-report / coherence)
//!                                                                       Rayleigh fading, complex, E|h|^2 = 1
//! SNR_dB = snr + offset + S + 10 log10 |h|^2
//! eff    = log2(1 + SNR / G),  G = -ln(5 BER) / 1.5,  BER = 5e-5        piro11: an M-QAM bound with a gap
//! CQI    = the largest whose efficiency is not above eff                ts36213 table 7.2.3-1
//! bits   = efficiency x 120                                             ts36213 7.2.3 (D2)
//! ```
//!
//! # Deviations
//!
//! - D1. First-order processes: Clarke's spectrum, whose autocorrelation oscillates, is not modelled.
//! - D2. A pair of resource blocks has 12 x 14 resource elements; the first three symbols carry control
//!   (ts36213 7.2.3), and 12 of the rest the reference signals of two antenna ports. One layer.
//! - D3. The channel is flat: one index for the whole band. A report holds from the moment it is made,
//!   without delay.
//! - D4. The draws last two minutes and start over.

use alloc::vec::Vec;

use super::{Config, Fading};
use crate::random::Random;
use crate::time::Duration;

/// Time after which the random samples repeat (D4).
pub const LOOP: Duration = Duration::from_secs(120);

/// Resource elements of a pair of resource blocks that carry data (D2).
const ELEMENTS: f64 = 120.0;

/// Bit error rate that the gap is for. piro11
const BIT_ERRORS: f64 = 5e-5;

/// Bits per resource element, by CQI; index 0 is out of range. ts36213 table 7.2.3-1
const EFFICIENCY: [f64; 16] = [
    0.0, 0.1523, 0.2344, 0.3770, 0.6016, 0.8770, 1.1758, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223, 3.9023,
    4.5234, 5.1152, 5.5547,
];

/// Returns the index that a user reports at a signal-to-noise ratio of `snr_db` dB.
pub fn cqi(snr_db: f64) -> u8 {
    let gap = -libm::log(5.0 * BIT_ERRORS) / 1.5;
    let efficiency = libm::log2(1.0 + libm::pow(10.0, snr_db / 10.0) / gap);
    EFFICIENCY.iter().rposition(|&of| of <= efficiency).unwrap_or(0) as u8
}

/// Returns the bits that a pair of resource blocks carries.
pub fn bits(cqi: u8) -> u32 {
    (EFFICIENCY[usize::from(cqi)] * ELEMENTS) as u32
}

/// The channel quality reports of a user over time.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Subframes that a report holds for.
    hold: u64,
    reports: Vec<u8>,
}

impl Channel {
    /// Draws the channel of user `index`.
    pub fn new(config: &Config, index: u32, random: &mut Random) -> Self {
        let hold = config.report.as_millis_f64() as u64;
        let count = LOOP.as_millis_f64() as u64 / hold;
        let step_s = config.report.as_secs_f64();
        let persistence = |time: Duration| libm::exp(-step_s / time.as_secs_f64());
        let fresh = |persistence: f64| libm::sqrt(1.0 - persistence * persistence);
        let (slow, fast) = (persistence(config.shadow_time), persistence(config.coherence));
        // Users lie evenly within the spread, the first at the bottom.
        let place = match config.users {
            1 => 0.0,
            users => f64::from(index) / f64::from(users - 1) - 0.5,
        };
        let mean_db = config.snr + config.spread * place;
        let component = core::f64::consts::FRAC_1_SQRT_2;
        let mut shadow_db = config.shadow * random.normal();
        let mut field = [component * random.normal(), component * random.normal()];
        let reports = (0..count)
            .map(|_| {
                shadow_db = slow * shadow_db + fresh(slow) * config.shadow * random.normal();
                for part in &mut field {
                    *part = fast * *part + fresh(fast) * component * random.normal();
                }
                let fading_db = match config.fading {
                    Fading::None => 0.0,
                    Fading::Rayleigh => 10.0 * libm::log10(field[0] * field[0] + field[1] * field[1]),
                };
                cqi(mean_db + shadow_db + fading_db)
            })
            .collect();
        Channel { hold, reports }
    }

    /// Returns the subframes until the draws start over.
    pub fn subframes(&self) -> u64 {
        self.hold * self.reports.len() as u64
    }

    /// Returns the index in a subframe.
    pub fn cqi(&self, subframe: u64) -> u8 {
        self.reports[(subframe / self.hold % self.reports.len() as u64) as usize]
    }

    /// Returns the bits that a pair of resource blocks carries in a subframe.
    pub fn bits(&self, subframe: u64) -> u32 {
        bits(self.cqi(subframe))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Values;
    use super::*;

    fn draws(config: &Config) -> Channel {
        Channel::new(config, 0, &mut Random::stream(3, "channel"))
    }

    #[test]
    fn the_gap_gives_the_index() {
        // G = 5.53; at 10 dB log2(1 + 10 / 5.53) = 1.489, between index 7 (1.4766) and 8; at 30 dB 7.51,
        // above the last.
        assert_eq!([-20.0, 10.0, 30.0].map(cqi), [0, 7, 15]);
        // 120 x 1.4766 and 120 x 5.5547.
        assert_eq!([0, 7, 15].map(bits), [0, 177, 666]);
    }

    #[test]
    fn shadowing_has_its_deviation_and_its_memory() {
        // Through the index: at most half a step of about 2 dB is lost.
        let config =
            Config::new(Values { fading: Fading::None, snr: 12.0, shadow: 4.0, ..Values::default() })
                .unwrap();
        let channel = draws(&config);
        let values: Vec<f64> = channel.reports.iter().map(|&cqi| f64::from(cqi)).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let covariance = |lag: usize| {
            values.windows(lag + 1).map(|pair| (pair[0] - mean) * (pair[lag] - mean)).sum::<f64>()
        };
        let lag = (config.shadow_time.as_secs_f64() / config.report.as_secs_f64()) as usize;
        let memory = covariance(lag) / covariance(0);
        // exp(-1) = 0.368, from 120 s of memory 0.5 s each: within 0.15.
        assert!((memory - 0.368).abs() < 0.15, "{memory}");
    }

    #[test]
    fn rayleigh_fades_are_as_often_as_deep() {
        // P(|h|^2 < x) = 1 - exp(-x): 10 dB below the mean 9.5 % of the time.
        let config = Config::new(Values { shadow: 0.0, snr: 13.0, ..Values::default() }).unwrap();
        let channel = draws(&config);
        let limit = cqi(3.0);
        let below = channel.reports.iter().filter(|&&cqi| cqi < limit).count() as f64;
        let share = below / channel.reports.len() as f64;
        // What lies between 3 dB and the threshold of its index is not counted: 1 dB at most, 7.6 %.
        assert!((0.065..=0.105).contains(&share), "{share}");
    }

    #[test]
    fn users_lie_within_the_spread() {
        let config = Config::new(Values {
            fading: Fading::None,
            shadow: 0.0,
            users: 3,
            spread: 10.0,
            snr: 12.0,
            ..Values::default()
        })
        .unwrap();
        let at = |index| Channel::new(&config, index, &mut Random::stream(1, "channel")).cqi(0);
        assert_eq!([0, 1, 2].map(at), [7.0, 12.0, 17.0].map(cqi));
    }
}
