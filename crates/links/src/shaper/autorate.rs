//! cake-autorate 3.x: a shaper's rate by the delay of probes and by the load.
//!
//! Probes, one every `ping_interval / pingers`, go to `pingers` reflectors in turn (`fping`). On each reply:
//!
//! ```text
//! owd        = RTT / 2
//! baseline  += a (owd - baseline)              a = 0.001 above it, 0.9 below; one per reflector
//! delta      = owd - baseline
//! bufferbloat: at least 3 of the last 6 deltas, over all reflectors, are above thr = delay_thr + 1500 B / R
//! avg        = mean of these 6 deltas
//! bufferbloat, 300 ms after the last:   R *= 0.99 - f (0.99 - 0.75)
//!                                       f  = (avg - thr) / (down_thr - thr), in 0 ..= 1
//! else load > 75 %, once per reading of it, 300 ms after bufferbloat:
//!                                       R *= 1 + f (1.04 - 1)
//!                                       f  = (thr - avg) / (thr - up_thr), in 0 ..= 1
//! else, 1 s after any of these:         R *= 0.99 or 1.01, towards the base rate
//! R          = min(max(R, min), max)
//! load       = bytes of the last 200 ms over R
//! ```
//!
//! | symbol | field | unit | default | source: `defaults.sh` of 3.5, unless another is named |
//! |---|---|---|---|---|
//! | min | `min` | bit/s | 5 Mbit/s | `min_dl_shaper_rate_kbps` |
//! | base | `base` | bit/s | 20 Mbit/s | `base_dl_shaper_rate_kbps` |
//! | max | `max` | bit/s | 80 Mbit/s | `max_dl_shaper_rate_kbps`; 35 for the upload |
//! | pingers | `pingers` | 1 | 6 | `no_pingers` |
//! | ping_interval | `ping_interval` | s | 0.3 | `reflector_ping_interval_s` |
//! | up_thr | `up_threshold` | s | 10 ms | `dl_avg_owd_delta_max_adjust_up_thr_ms` |
//! | delay_thr | `delay_threshold` | s | 30 ms | `dl_owd_delta_delay_thr_ms` |
//! | down_thr | `down_threshold` | s | 60 ms | `dl_avg_owd_delta_max_adjust_down_thr_ms` |
//! | 0.001, 0.9 | `BASELINE_UP`, `BASELINE_DOWN` | 1 | | `alpha_baseline_increase`, `_decrease` |
//! | 6, 3 | `WINDOW`, `DELAYED` | 1 | | `bufferbloat_detection_window`, `_thr` |
//! | 0.99, 0.75 | `MIN_DOWN`, `MAX_DOWN` | 1 | | `shaper_rate_min_adjust_down_bufferbloat`, `_max_` |
//! | 1, 1.04 | `MIN_UP`, `MAX_UP` | 1 | | `shaper_rate_min_adjust_up_load_high`, `_max_` |
//! | 0.99, 1.01 | `DECAY_DOWN`, `DECAY_UP` | 1 | | `shaper_rate_adjust_down_load_low`, `_up_` |
//! | 75 % | `HIGH_LOAD` | % | | `high_load_thr` |
//! | 300 ms, 1 s | `BLOAT_PAUSE`, `DECAY_PAUSE` | s | | `bufferbloat_refractory_period_ms`, `decay_` |
//! | 200 ms | `LOAD_INTERVAL` | s | | `monitor_achieved_rates_interval_ms` |
//! | 100 ms | `FIRST_BASELINE` | s | | `cake-autorate.sh`: `dl_owd_baselines_us[pinger]=100000` |
//!
//! As there, numbers are whole kbit/s, microseconds and thousandths: divisions round down.
//!
//! Deviations:
//! 1. One direction. The original drives both, and cuts both when one of them bloats: a round trip does not
//!    say which.
//! 2. All reflectors are the far end of the path, and none is ever replaced.
//! 3. No stall and no timeout of the interface: with the defaults (`min_shaper_rates_enforcement=0`) neither
//!    changes a rate, but for a start without any reply.
//! 4. It sleeps after 60 s without packets, and not after 60 s below 2 Mbit/s.

use alloc::vec;
use alloc::vec::Vec;

use brakelight_core::parameters::ParameterError;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Rate;

use super::{Delay, RateSetter, Seen, Side, Source};

parameters! {
    /// The settings of cake-autorate.
    pub struct Config {
        check ordered;
        /// The lowest rate.
        min: Rate = Rate::from_mbps(5), in Rate::from_bps(100_000)..=Rate::from_mbps(1_000_000), from "defaults.sh";
        /// The rate that it starts at and goes back to while the load is low.
        base: Rate = Rate::from_mbps(20), in Rate::from_bps(100_000)..=Rate::from_mbps(1_000_000), from "defaults.sh";
        /// The highest rate.
        max: Rate = Rate::from_mbps(80), in Rate::from_bps(100_000)..=Rate::from_mbps(1_000_000), from "defaults.sh";
        /// How many reflectors are probed in turn.
        pingers: u32 = 6, in 1..=100, from "defaults.sh";
        /// How often each of them is probed.
        ping_interval: Duration = Duration::from_millis(300), in Duration::from_millis(1)..=Duration::from_secs(60), from "defaults.sh";
        /// The average delta up to which the rate rises fastest.
        up_threshold: Duration = Duration::from_millis(10), in Duration::ZERO..=Duration::from_secs(10), from "defaults.sh";
        /// The delta above which a reply counts as delayed.
        delay_threshold: Duration = Duration::from_millis(30), in Duration::ZERO..=Duration::from_secs(10), from "defaults.sh";
        /// The average delta from which the rate falls fastest.
        down_threshold: Duration = Duration::from_millis(60), in Duration::ZERO..=Duration::from_secs(10), from "defaults.sh";
    }
}

fn ordered(config: &Config) -> Result<(), ParameterError> {
    if config.min <= config.base && config.base <= config.max {
        return Ok(());
    }
    let reason = alloc::format!(
        "min = `{}`, base = `{}`, max = `{}`: valid is min <= base <= max",
        config.min,
        config.base,
        config.max
    );
    Err(ParameterError::Conflict { reason })
}

/// Millionths of the way by which a baseline rises and falls.
const BASELINE_UP: i64 = 1_000;
const BASELINE_DOWN: i64 = 900_000;
/// Replies in the window, and how many of them must be delayed.
const WINDOW: usize = 6;
const DELAYED: usize = 3;
/// Factors of the rate, in thousandths.
const MIN_DOWN: i64 = 990;
const MAX_DOWN: i64 = 750;
const MIN_UP: i64 = 1000;
const MAX_UP: i64 = 1040;
const DECAY_DOWN: i64 = 990;
const DECAY_UP: i64 = 1010;
/// In per cent of the rate.
const HIGH_LOAD: i64 = 75;
const BLOAT_PAUSE: Duration = Duration::from_millis(300);
const DECAY_PAUSE: Duration = Duration::from_millis(1000);
const LOAD_INTERVAL: Duration = Duration::from_millis(200);
/// In microseconds.
const FIRST_BASELINE: i64 = 100_000;
/// The MTU, in bits: `get_max_wire_packet_size_bits`, without overhead.
const PACKET_BITS: i64 = 8 * 1500;

/// cake-autorate, for one direction.
#[derive(Clone, Debug)]
pub struct Autorate {
    config: Config,
    kbps: i64,
    /// By reflector, in microseconds.
    baselines: Vec<i64>,
    /// The last deltas in microseconds, and whether each was delayed.
    deltas: [i64; WINDOW],
    delayed: [bool; WINDOW],
    next: usize,
    /// In per cent.
    load: i64,
    load_is_new: bool,
    departed: u64,
    bloat_at: Time,
    decay_at: Time,
}

impl Autorate {
    /// Returns the setter at its beginning.
    pub fn new(config: &Config, _side: Side) -> Self {
        Autorate {
            kbps: kbps(config.base),
            baselines: vec![FIRST_BASELINE; config.pingers as usize],
            deltas: [0; WINDOW],
            delayed: [false; WINDOW],
            next: 0,
            load: 0,
            load_is_new: false,
            departed: 0,
            bloat_at: Time::ZERO,
            decay_at: Time::ZERO,
            config: config.clone(),
        }
    }

    /// The time that a full packet takes at the rate, in microseconds: `dl_compensation_us`.
    fn compensation(&self) -> i64 {
        1000 * PACKET_BITS / self.kbps
    }

    /// A delta of `reflector` at `now`, in microseconds.
    fn reply(&mut self, now: Time, owd: i64, reflector: usize) {
        let baseline = &mut self.baselines[reflector];
        let share = if owd >= *baseline { BASELINE_UP } else { BASELINE_DOWN };
        *baseline = (share * owd + (1_000_000 - share) * *baseline) / 1_000_000;
        let delta = owd - *baseline;
        let micros = |threshold: Duration| threshold.as_nanos() as i64 / 1000 + self.compensation();
        let [up, threshold, down] =
            [self.config.up_threshold, self.config.delay_threshold, self.config.down_threshold].map(micros);
        self.deltas[self.next] = delta;
        self.delayed[self.next] = delta > threshold;
        self.next = (self.next + 1) % WINDOW;
        let average = self.deltas.iter().sum::<i64>() / WINDOW as i64;
        let bloated = self.delayed.iter().filter(|delayed| **delayed).count() >= DELAYED;
        let may_move = now > self.bloat_at + BLOAT_PAUSE;
        if bloated {
            if may_move {
                let factor = part(average - threshold, down - threshold);
                self.kbps = self.kbps * (1000 * MIN_DOWN - factor * (MIN_DOWN - MAX_DOWN)) / 1_000_000;
                (self.bloat_at, self.decay_at) = (now, now);
            }
        } else if self.load > HIGH_LOAD {
            if may_move && self.load_is_new {
                let factor = part(threshold - average, threshold - up);
                self.kbps = self.kbps * (1000 * MIN_UP - factor * (MIN_UP - MAX_UP)) / 1_000_000;
                self.load_is_new = false;
                self.decay_at = now;
            }
        } else if now > self.decay_at + DECAY_PAUSE {
            let base = kbps(self.config.base);
            self.kbps = match self.kbps > base {
                true => (self.kbps * DECAY_DOWN / 1000).max(base),
                false => (self.kbps * DECAY_UP / 1000).min(base),
            };
            self.decay_at = now;
        }
        self.kbps = self.kbps.max(kbps(self.config.min)).min(kbps(self.config.max));
    }
}

/// `of / whole` in thousandths, in 0 to 1000; all of it where there is no whole.
fn part(of: i64, whole: i64) -> i64 {
    if whole <= 0 { 1000 } else { (1000 * of / whole).clamp(0, 1000) }
}

fn kbps(rate: Rate) -> i64 {
    (rate.bps() / 1000) as i64
}

impl RateSetter for Autorate {
    fn rate(&self) -> Rate {
        Rate::from_bps(self.kbps as u64 * 1000)
    }

    fn interval(&self) -> Duration {
        // `compensated_monitor_achieved_rates_interval_us`: ten full packets at least.
        LOAD_INTERVAL.max(Duration::from_micros(10 * self.compensation() as u64))
    }

    fn probes_every(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.config.ping_interval.as_nanos() / u64::from(self.config.pingers)))
    }

    fn on_delay(&mut self, delay: Delay) {
        if let Source::Probe(number) = delay.source {
            let reflector = (number % u64::from(self.config.pingers)) as usize;
            self.reply(delay.now, delay.value.as_nanos() as i64 / 2000, reflector);
        }
    }

    fn on_tick(&mut self, seen: &Seen<'_>) {
        let micros = self.interval().as_nanos() as i64 / 1000;
        let achieved = 8000 * (seen.departed - self.departed) as i64 / micros;
        self.departed = seen.departed;
        self.load = 100 * achieved / self.kbps;
        self.load_is_new = true;
    }
}
