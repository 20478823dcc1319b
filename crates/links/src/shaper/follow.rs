//! A rate that follows a link behind an unknown queue, by what a home router sees. Of no paper: the rule of
//! `abc-adaptive` (docs/abc-adaptive.md), whose missing input is mu itself.
//!
//! ```text
//! x       what every packet of tau / 2 to tau waited beyond the least delay: what stands at the link.
//!         Up, while data is under way and nothing was heard for 3 tau: the silence
//! D       what was delivered, a mean over tau
//! K       what the link is known to carry
//! x > s   D is the link's rate:      close the bin with what was delivered,   K = mu
//! x <= s  D is a lower bound:        close it with max(K, D)
//!         K = max(D, K (1 + g dt / tau)), at most max(K, 2 D), if data waits here
//!         K = max(D, K (1 + g dt / tau)), at most what K was in the last 5 to 10 s, if none does
//! mu, e   the forecast of `abc-adaptive`, of these bins instead of what the link could carry
//! m       = mean of mu (tau + x) over tau / 4
//! R       = mu - (m - mu tau - max(c e max(tau / 100 ms, 0.7), s mu)) / (0.7 tau)
//! ```
//!
//! What is delivered is the link's rate only while something waits there. Elsewhere it is what the shaper
//! lets pass, and a rule that took it for the link's rate would follow itself down. So the rate is learned
//! downwards only while a queue stands, and a search by g per round trip learns it upwards. One packet's
//! delay is no queue: on a radio link each waits for its turn. Only what every packet of a while waited is
//! one, as in CoDel.
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | c | `cushion` | 1 | 1 | docs/abc-adaptive.md |
//! | s | `standing` | s | 4 ms | chosen here: less than CoDel's target |
//! | g | - | 1 | 0.25 | chosen here: a doubling in three round trips |
//! | dt | `interval` | s | 10 ms | chosen here |
//! | - | `probe` | s | 50 ms | cake-autorate: 6 pingers, 0.3 s |
//! | - | `base`, `min`, `max` | bit/s | 20 Mbit/s, 500 kbit/s, 10 Gbit/s | the first as in cake-autorate |
//! | - | `safe` | bit/s | 20 Mbit/s | the owner's: what the link always has |
//!
//! | measured | up | down |
//! |---|---|---|
//! | delivered | by ACKs and SACK blocks; unread: what left, less the growth of mu x | what arrives |
//! | tau | the least RTT of 15 to 30 s, of flows, or of probes | of probes |
//! | x | RTT less tau, of flows, or of probes where none was read for 0.5 s | by timestamps, or of probes |
//!
//! While the senders and not the shaper limit (nothing waits here, and no queue stands there), the rate does
//! not rise, and K stays: less load is no less capacity. Into a link that stands still only a trickle goes.
//!
//! # Blind
//!
//! Flows that can be read tell of the queue in which they wait. Probes need not: they may be answered before
//! it, or pass it on a queue of their own. The setter is blind
//!
//! 1. where nothing was ever measured though data has passed for 2 s, or
//! 2. where only probes are read, more than `safe` passes without waiting here, so that whatever limits it is
//!    elsewhere, and no probe was late by 5 ms in 10 s of that.
//!
//! Then R = `safe`, until a flow can be read or a probe is late. The second may be wrong, on a link with room
//! to spare: nobody could tell.

use brakelight_core::parameters::ParameterError;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Rate;

use super::forecast::Forecast;
use super::{Delay, RateSetter, Seen, Side, Source};

parameters! {
    /// The settings of the rate that follows.
    pub struct Config {
        check ordered;
        /// The rate that it starts at.
        base: Rate = Rate::from_mbps(20), in Rate::from_bps(100_000)..=Rate::from_mbps(1_000_000), from "cake-autorate";
        /// The lowest rate.
        min: Rate = Rate::from_bps(500_000), in Rate::from_bps(100_000)..=Rate::from_mbps(1_000_000), from "a call";
        /// The highest rate.
        max: Rate = Rate::from_mbps(10_000), in Rate::from_bps(100_000)..=Rate::from_mbps(1_000_000), from "none";
        /// The rate that it holds while it is blind.
        safe: Rate = Rate::from_mbps(20), in Rate::from_bps(100_000)..=Rate::from_mbps(1_000_000), from "the owner's";
        /// Mean errors of the forecast that may wait where tau is 100 ms.
        cushion: f64 = 1.0, in 0.0..=10.0, from "docs/abc-adaptive.md";
        /// The delay from which a queue stands at the link.
        standing: Duration = Duration::from_millis(4), in Duration::from_micros(100)..=Duration::from_secs(1), from "chosen here";
        /// How often it sets the rate.
        interval: Duration = Duration::from_millis(10), in Duration::from_millis(1)..=Duration::from_secs(1), from "chosen here";
        /// How often it sends a probe; none for never.
        probe: Option<Duration> = Some(Duration::from_millis(50)), in brakelight_core::parameters::OrNone(Duration::from_millis(1)..=Duration::from_secs(60)), from "cake-autorate";
    }
}

fn ordered(config: &Config) -> Result<(), ParameterError> {
    if config.min <= config.base.min(config.safe) && config.base.max(config.safe) <= config.max {
        return Ok(());
    }
    let Values { min, base, safe, max, .. } = &**config;
    let reason = alloc::format!(
        "min = `{min}`, base = `{base}`, safe = `{safe}`, max = `{max}`: valid is base and safe from min to max"
    );
    Err(ParameterError::Conflict { reason })
}

/// delta over tau, the time of the mean of O over tau, the loop delay at which `cushion` mean errors may
/// wait, and the least share of them: docs/abc-adaptive.md.
const DELTA_OVER_TAU: f64 = 0.7;
const SMOOTHED_OVER_TAU: f64 = 0.25;
const CUSHION_TAU_S: f64 = 0.1;
const LEAST_CUSHION: f64 = 0.7;
/// How many parts tau has, in each of which the least delay is one of what stands.
const PARTS: u64 = 2;
/// g, and the most by which K is ahead of D.
const SEARCH: f64 = 0.25;
const MOST_AHEAD: f64 = 2.0;
/// A link stands still after so many tau of silence.
const SILENT_TAUS: u64 = 3;
/// What is sent into a link that stands still, to hear when it goes again.
const TRICKLE: Rate = Rate::from_bps(50_000);
/// The shortest loop delay that counts: two intervals of the default.
const SHORTEST_TAU: Duration = Duration::from_millis(20);
/// Half of the time for which what the link has carried is worth another try.
const CARRIED_FOR: Duration = Duration::from_secs(5);
/// Half of the time for which the least RTT counts: Starlink's paths change every 15 s.
const LEAST_FOR: Duration = Duration::from_secs(15);
/// A flow's delay is used for so long, a probe's for twice as long.
const FRESH: Duration = Duration::from_millis(500);
/// Blind where the first sample does not come for so long, and without a late one for so long.
const SILENT: Duration = Duration::from_secs(2);
const UNFELT: Duration = Duration::from_secs(10);
/// A probe is late from here.
const LATE: Duration = Duration::from_millis(5);

/// The rule, whoever says what mu and O are.
#[derive(Clone, Debug)]
pub(super) struct Law {
    interval_s: f64,
    cushion: f64,
    /// The mean of what is outstanding, in bytes; none before the first.
    mean: Option<f64>,
}

impl Law {
    pub(super) fn new(interval: Duration, cushion: f64) -> Self {
        Law { interval_s: interval.as_secs_f64(), cushion, mean: None }
    }

    /// Returns R in bytes/s, where mu is in bytes/s, its `error`, `outstanding` and the least cushion `least`
    /// in bytes.
    pub(super) fn target(&mut self, mu: f64, error: f64, tau_s: f64, outstanding: f64, least: f64) -> f64 {
        let mean = self.mean.get_or_insert(outstanding);
        *mean += (self.interval_s / (SMOOTHED_OVER_TAU * tau_s)).min(1.0) * (outstanding - *mean);
        let cushion = self.cushion * error * (tau_s / CUSHION_TAU_S).max(LEAST_CUSHION);
        mu - (*mean - mu * tau_s - cushion.max(least)) / (DELTA_OVER_TAU * tau_s)
    }
}

/// The least delay of the last one to two halves.
#[derive(Clone, Copy, Debug, Default)]
struct Least {
    halves: [Option<Duration>; 2],
    half: u64,
}

impl Least {
    fn add(&mut self, now: Time, value: Duration) {
        let half = now.as_nanos() / LEAST_FOR.as_nanos();
        if half != self.half {
            self.halves = [self.halves[1], None];
            self.half = half;
        }
        self.halves[1] = Some(self.halves[1].map_or(value, |least| least.min(value)));
    }

    fn get(&self) -> Option<Duration> {
        self.halves.iter().flatten().min().copied()
    }
}

/// The most of the last one to two halves of [`CARRIED_FOR`].
#[derive(Clone, Copy, Debug, Default)]
struct Most {
    halves: [f64; 2],
    half: u64,
}

impl Most {
    fn add(&mut self, now: Time, value: f64) {
        let half = now.as_nanos() / CARRIED_FOR.as_nanos();
        if half != self.half {
            self.halves = [self.halves[1], 0.0];
            self.half = half;
        }
        self.halves[1] = self.halves[1].max(value);
    }

    fn get(&self) -> f64 {
        self.halves[0].max(self.halves[1])
    }
}

/// What is known of the delay from one source.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    least: Least,
    /// The last delay above the least, and when it was heard.
    excess: Duration,
    at: Option<Time>,
    /// The least excess of the current part of a loop delay, and of the part before.
    recent: [Option<Duration>; 2],
    part_began: Time,
}

impl Heard {
    fn add(&mut self, delay: Delay) {
        self.least.add(delay.now, delay.value);
        self.excess = delay.value.saturating_sub(self.least.get().unwrap_or(delay.value));
        self.at = Some(delay.now);
        self.recent[1] = Some(self.recent[1].map_or(self.excess, |least| least.min(self.excess)));
    }

    /// Begins another part where this one has lasted for `length`.
    fn turn(&mut self, now: Time, length: Duration) {
        if now.since(self.part_began) >= length {
            self.part_began = now;
            if self.recent[1].is_some() {
                self.recent = [self.recent[1], None];
            }
        }
    }

    /// The excess that every packet of the last part or two had: what stands, and not what one packet met.
    fn standing(&self) -> Duration {
        self.recent.iter().flatten().min().copied().unwrap_or(self.excess)
    }

    fn is_fresh(&self, now: Time, within: Duration) -> bool {
        self.at.is_some_and(|at| now.since(at) <= within)
    }
}

/// A rate that follows the link.
#[derive(Clone, Debug)]
pub struct Follow {
    config: Config,
    side: Side,
    law: Law,
    forecast: Forecast,
    flows: Heard,
    probes: Heard,
    /// Counters of [`Seen`] at the last tick.
    arrived: u64,
    departed: u64,
    delivered: u64,
    readable: u64,
    /// mu x at the last tick, where deliveries are not read.
    queue: f64,
    /// Data passes since, without a pause of [`SILENT`].
    passing_since: Option<Time>,
    passed_at: Time,
    /// When something last contradicted the second kind of blindness.
    felt_at: Time,
    /// Means over half a second: data in bytes/s, and whether something waits here.
    load: f64,
    waits: f64,
    blind: bool,
    /// Mean of what was delivered over a loop delay, and what the link is known to carry, bytes/s.
    carried: f64,
    known: f64,
    /// The most that it was known to carry lately.
    most: Most,
    rate: Rate,
}

impl Follow {
    /// Returns the setter at its beginning.
    pub fn new(config: &Config, side: Side) -> Self {
        Follow {
            side,
            law: Law::new(config.interval, config.cushion),
            forecast: Forecast::new(config.interval.as_secs_f64(), config.base.as_bps_f64() / 8.0),
            flows: Heard::default(),
            probes: Heard::default(),
            arrived: 0,
            departed: 0,
            delivered: 0,
            readable: 0,
            queue: 0.0,
            passing_since: None,
            passed_at: Time::ZERO,
            felt_at: Time::ZERO,
            load: 0.0,
            waits: 0.0,
            blind: false,
            carried: 0.0,
            known: config.base.as_bps_f64() / 8.0,
            most: Most::default(),
            rate: config.base,
            config: config.clone(),
        }
    }

    /// The loop delay: of round trips.
    fn tau(&self) -> Duration {
        let flows = (self.side == Side::Up).then(|| self.flows.least.get()).flatten();
        let heard = flows.or_else(|| self.probes.least.get());
        heard.unwrap_or(Duration::from_millis(100)).max(SHORTEST_TAU).min(Duration::from_millis(500))
    }

    /// For how long nothing of a flow has been heard, where that is longer than the path explains.
    fn silence(&self, now: Time) -> Option<Duration> {
        let expected = self.tau() * SILENT_TAUS;
        self.flows.at.map(|at| now.since(at)).filter(|silence| *silence > expected)
    }

    /// The delay that stands in the link's queue, by the best source; none where nothing was heard.
    fn excess(&self, now: Time) -> Option<Duration> {
        if self.flows.is_fresh(now, FRESH) {
            return Some(self.flows.standing());
        }
        self.probes.is_fresh(now, FRESH + FRESH).then(|| self.probes.standing())
    }

    /// Looks at whether anything that is measured shows the link's queue.
    fn look(&mut self, now: Time, passed: f64, waiting: bool) {
        let share = (self.config.interval.as_secs_f64() / FRESH.as_secs_f64()).min(1.0);
        self.load += share * (passed / self.config.interval.as_secs_f64() - self.load);
        self.waits += share * (f64::from(u8::from(waiting)) - self.waits);
        if passed > 0.0 {
            if now.since(self.passed_at) > SILENT {
                self.passing_since = None;
            }
            self.passing_since.get_or_insert(now);
            self.passed_at = now;
        }
        let Some(since) = self.passing_since.filter(|_| now.since(self.passed_at) <= SILENT) else {
            self.felt_at = now;
            return;
        };
        // Silence after something was heard is an outage: the link stands still, and the rate falls with what
        // is delivered.
        let deaf = self.flows.at.is_none() && self.probes.at.is_none() && now.since(since) > SILENT;
        let reads = self.flows.is_fresh(now, SILENT);
        let answered = self.probes.is_fresh(now, SILENT);
        let late = answered && self.probes.excess >= LATE;
        let above_safe = self.load * 8.0 > self.config.safe.as_bps_f64();
        if reads || late || !answered || (!self.blind && (!above_safe || self.waits > 0.5)) {
            self.felt_at = now;
        }
        self.blind = deaf || now.since(self.felt_at) > UNFELT;
    }
}

impl RateSetter for Follow {
    fn rate(&self) -> Rate {
        self.rate
    }

    fn interval(&self) -> Duration {
        self.config.interval
    }

    fn probes_every(&self) -> Option<Duration> {
        self.config.probe
    }

    fn on_delay(&mut self, delay: Delay) {
        match delay.source {
            Source::Flow => self.flows.add(delay),
            Source::Probe(_) => self.probes.add(delay),
        }
    }

    fn on_tick(&mut self, seen: &Seen<'_>) {
        let arrived = (seen.arrived - self.arrived) as f64;
        let departed = (seen.departed - self.departed) as f64;
        let delivered = (seen.delivered - self.delivered) as f64;
        let readable = (seen.readable - self.readable) as f64;
        (self.arrived, self.departed) = (seen.arrived, seen.departed);
        (self.delivered, self.readable) = (seen.delivered, seen.readable);
        let waiting = seen.waiting.packets > 0;
        self.look(seen.now, arrived, waiting);

        let (tau, mu) = (self.tau(), self.forecast.mu());
        let tau_s = tau.as_secs_f64();
        self.flows.turn(seen.now, tau / PARTS);
        self.probes.turn(seen.now, tau / PARTS);
        let interval_s = self.config.interval.as_secs_f64();
        // While data is under way and nothing comes back, what waits at the link has waited since.
        let still = self.silence(seen.now).filter(|_| seen.under_way > 0);
        let excess_s = still.or_else(|| self.excess(seen.now)).unwrap_or(Duration::ZERO).as_secs_f64();
        let reads = self.side == Side::Up && self.flows.is_fresh(seen.now, UNFELT);
        // Where others pass that cannot be read, what the read ones deliver is a share.
        let carried = match self.side {
            Side::Down => arrived,
            Side::Up if reads => delivered + (arrived - readable).max(0.0),
            Side::Up => {
                let queue = mu * excess_s;
                let growth = queue - core::mem::replace(&mut self.queue, queue);
                let most = MOST_AHEAD * departed.max(mu * interval_s);
                (departed - growth).clamp(0.0, most)
            }
        };
        // Deliveries are the link's rate where something stands there. Elsewhere they are a lower bound.
        let stands = excess_s > self.config.standing.as_secs_f64();
        self.carried += (interval_s / tau_s).min(1.0) * (carried / interval_s - self.carried);
        let carried = if stands { carried } else { self.known.max(self.carried) * interval_s };
        self.forecast.close(carried, tau_s);
        let mu = self.forecast.mu().clamp(0.0, self.config.max.as_bps_f64() / 8.0);
        self.known = if stands {
            mu
        } else {
            // Nothing stands at the link. It may carry more where the senders would send more, and what it
            // carried a while ago where they would not.
            let more = self.known * (1.0 + SEARCH * interval_s / tau_s);
            let most = if waiting { MOST_AHEAD * self.carried } else { self.most.get() };
            self.carried.max(more.min(self.known.max(most)))
        };
        self.most.add(seen.now, self.known);
        let standing = self.config.standing.as_secs_f64() * mu;
        let outstanding = mu * (tau_s + excess_s);
        let mut bytes = self.law.target(mu, self.forecast.error(), tau_s, outstanding, standing);
        if !stands && !waiting {
            bytes = bytes.min(self.rate.as_bps_f64() / 8.0).max(mu);
        }
        let least = if still.is_some() { TRICKLE } else { self.config.min };
        self.rate = match self.blind {
            true => self.config.safe,
            false => Rate::from_bps_f64((8.0 * bytes).max(0.0)).max(least).min(self.config.max),
        };
    }

    fn is_blind(&self) -> bool {
        self.blind
    }
}
