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
//! The table of efficiencies and the resource elements of a block are those of the standard: LTE's are here,
//! NR's in [`nr`](crate::nr). A handover, which only NR has, begins a channel of its own: shadowing and
//! fading are drawn anew, and nothing is carried before it has ended.
//!
//! # Deviations
//!
//! - D1. First-order processes: Clarke's spectrum, whose autocorrelation oscillates, is not modelled.
//! - D2. A pair of resource blocks has 12 x 14 resource elements; the first three symbols carry control
//!   (ts36213 7.2.3), and 12 of the rest the reference signals of two antenna ports. One layer.
//! - D3. The channel is flat: one index for the whole band. A report holds from the moment it is made,
//!   without delay.
//! - D4. The draws last two minutes and start over.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use brakelight_core::random::Random;
use brakelight_core::time::Duration;

use super::Fading;
use super::cell::{Cell, Handovers};

/// Time after which the random samples repeat (D4).
pub const LOOP: Duration = Duration::from_secs(120);

/// Resource elements of a pair of resource blocks that carry data (D2).
const ELEMENTS: f64 = 120.0;

/// Bit error rate that the gap is for. piro11
const BIT_ERRORS: f64 = 5e-5;

/// Bits per resource element, by index; index 0 is out of range.
pub type Efficiencies = [f64; 16];

/// Those of LTE. ts36213 table 7.2.3-1
pub const EFFICIENCY: Efficiencies = [
    0.0, 0.1523, 0.2344, 0.3770, 0.6016, 0.8770, 1.1758, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223, 3.9023,
    4.5234, 5.1152, 5.5547,
];

/// Returns the index that a user reports at a signal-to-noise ratio of `snr_db` dB.
pub fn index(efficiencies: &Efficiencies, snr_db: f64) -> u8 {
    let gap = -libm::log(5.0 * BIT_ERRORS) / 1.5;
    let efficiency = libm::log2(1.0 + libm::pow(10.0, snr_db / 10.0) / gap);
    efficiencies.iter().rposition(|&of| of <= efficiency).unwrap_or(0) as u8
}

/// Returns the bits that a block of `elements` resource elements for data carries, by index.
pub fn bits_of(efficiencies: &Efficiencies, elements: f64) -> [u32; 16] {
    efficiencies.map(|efficiency| (efficiency * elements) as u32)
}

/// Returns the bits that LTE's pairs of resource blocks carry, by index.
pub fn lte_bits() -> [u32; 16] {
    bits_of(&EFFICIENCY, ELEMENTS)
}

/// The channel quality reports of a user over time.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Slots that a report holds for.
    hold: u64,
    reports: Vec<u8>,
    /// Bits of a block, by slot of the pattern and by index.
    bits: Arc<[[u32; 16]]>,
    /// The slots of a loop in which nothing is carried, since the user changes its cell.
    interruptions: Vec<Range<u64>>,
}

impl Channel {
    /// Draws the channel of user `index`.
    pub fn new(cell: &Cell, index: u32, random: &mut Random) -> Self {
        let slot_ns = cell.slot.as_nanos();
        let hold = cell.report.as_nanos() / slot_ns;
        let count = LOOP.as_nanos() / slot_ns / hold;
        let step_s = cell.report.as_secs_f64();
        let persistence = |time: Duration| libm::exp(-step_s / time.as_secs_f64());
        let fresh = |persistence: f64| libm::sqrt(1.0 - persistence * persistence);
        let (slow, fast) = (persistence(cell.shadow_time), persistence(cell.coherence));
        // Users lie evenly within the spread, the first at the bottom.
        let place = match cell.users {
            1 => 0.0,
            users => f64::from(index) / f64::from(users - 1) - 0.5,
        };
        let mean_db = cell.snr + cell.spread * place;
        let component = core::f64::consts::FRAC_1_SQRT_2;
        let interruptions = match &cell.handovers {
            None => Vec::new(),
            Some(handovers) => interruptions(handovers, cell, index, hold * count, random),
        };
        let mut handovers = interruptions.iter().map(|slots| slots.start).peekable();
        let mut shadow_db = cell.shadow * random.normal();
        let mut field = [component * random.normal(), component * random.normal()];
        let reports = (0..count)
            .map(|report| {
                shadow_db = slow * shadow_db + fresh(slow) * cell.shadow * random.normal();
                for part in &mut field {
                    *part = fast * *part + fresh(fast) * component * random.normal();
                }
                if handovers.next_if(|&slot| slot <= report * hold).is_some() {
                    shadow_db = cell.shadow * random.normal();
                    field = [component * random.normal(), component * random.normal()];
                }
                let fading_db = match cell.fading {
                    Fading::None => 0.0,
                    Fading::Rayleigh => 10.0 * libm::log10(field[0] * field[0] + field[1] * field[1]),
                };
                self::index(cell.efficiencies, mean_db + shadow_db + fading_db)
            })
            .collect();
        Channel { hold, reports, bits: cell.bits.clone(), interruptions }
    }

    /// Returns the slots until the draws start over.
    pub fn slots(&self) -> u64 {
        self.hold * self.reports.len() as u64
    }

    /// Returns the index in a slot.
    pub fn cqi(&self, slot: u64) -> u8 {
        self.reports[(slot / self.hold % self.reports.len() as u64) as usize]
    }

    /// Returns the bits that a block carries in a slot.
    pub fn bits(&self, slot: u64) -> u32 {
        if self.is_interrupted(slot) {
            return 0;
        }
        self.bits[(slot % self.bits.len() as u64) as usize][usize::from(self.cqi(slot))]
    }

    /// Returns whether the bits of a block differ from slot to slot while a report holds.
    pub fn varies_within_reports(&self) -> bool {
        self.bits.len() > 1 || !self.interruptions.is_empty()
    }

    /// Returns whether the user is between two cells.
    pub fn is_interrupted(&self, slot: u64) -> bool {
        self.interruption(slot).is_some()
    }

    /// Returns whether the user leaves its cell as this slot begins.
    pub fn leaves_cell(&self, slot: u64) -> bool {
        self.interruption(slot).is_some_and(|slots| slots.start == slot % self.slots())
    }

    fn interruption(&self, slot: u64) -> Option<&Range<u64>> {
        if self.interruptions.is_empty() {
            return None;
        }
        let slot = slot % self.slots();
        let next = self.interruptions.partition_point(|slots| slots.end <= slot);
        self.interruptions.get(next).filter(|slots| slots.contains(&slot))
    }
}

/// Lays out the handovers of user `index` over a loop of `length` slots. Those of several users take turns.
fn interruptions(
    handovers: &Handovers,
    cell: &Cell,
    index: u32,
    length: u64,
    random: &mut Random,
) -> Vec<Range<u64>> {
    let slots = |time: Duration| time.as_nanos().div_ceil(cell.slot.as_nanos());
    let (every, lasts) = (slots(handovers.every), slots(handovers.interruption));
    let gap = |random: &mut Random| match handovers.random {
        // What is left after the interruption is exponential, so that the mean is the same.
        true => lasts + (((every - lasts) as f64 * random.exponential()) as u64).max(1),
        false => every,
    };
    let mut start = match handovers.random {
        true => gap(random) - lasts,
        false => (every * u64::from(index + 1)).div_ceil(u64::from(cell.users)),
    };
    let mut interruptions = Vec::new();
    while start + lasts < length {
        interruptions.push(start..start + lasts);
        start += gap(random);
    }
    interruptions
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Values};
    use super::*;

    fn draws(config: &Config) -> Channel {
        Channel::new(&config.cell(), 0, &mut Random::stream(3, "channel"))
    }

    fn cqi(snr_db: f64) -> u8 {
        index(&EFFICIENCY, snr_db)
    }

    #[test]
    fn the_gap_gives_the_index() {
        // G = 5.53; at 10 dB log2(1 + 10 / 5.53) = 1.489, between index 7 (1.4766) and 8; at 30 dB 7.51,
        // above the last.
        assert_eq!([-20.0, 10.0, 30.0].map(cqi), [0, 7, 15]);
        // 120 x 1.4766 and 120 x 5.5547.
        assert_eq!([0, 7, 15].map(|index: usize| lte_bits()[index]), [0, 177, 666]);
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
        let cell = config.cell();
        let at = |index| Channel::new(&cell, index, &mut Random::stream(1, "channel")).cqi(0);
        assert_eq!([0, 1, 2].map(at), [7.0, 12.0, 17.0].map(cqi));
    }
}
