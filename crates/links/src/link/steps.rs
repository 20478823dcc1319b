//! Service at rates that change in steps: store and forward, where a packet under way when the rate changes
//! goes on at the new rate.
//!
//! ```text
//! a packet of s bytes taken at t leaves at the earliest f with
//!     integral of R(x) dx from t to f  =  (s + H) * 8
//! ```
//!
//! Work is counted in bit/s times nanoseconds, in integers, so departures are the exact times rounded down to
//! nanoseconds and a busy link does not drift. A rate of zero is an outage: nothing moves until it is over.
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | R(t) | `schedule` | (time, bit/s) ... | 500 ms at 12 Mbit/s, 500 ms at 24 Mbit/s | abc20 Fig. 19 |
//! | - | `repeat` | - | true | otherwise the last rate stays |
//! | - | `offset` | time | 0 s | starts the schedule in its middle |
//! | H | `overhead` | bytes | 0 | rates are meant at the IP layer |
//! | - | `opportunity` | bytes | 1500 | what a queue that counts in opportunities is told one is |

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use brakelight_core::parameters::{ParameterError, Value};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::fixed::BIT_NANOS;
use super::{Service, rate_in_window};

parameters! {
    /// The settings of a link whose rate changes in steps.
    pub struct Config {
        check check;
        /// How long each rate lasts.
        schedule: Schedule = Schedule::default(), in .., from "abc20 Fig. 19";
        /// Whether the schedule starts again after its last step; otherwise the last rate stays.
        repeat: bool = true, in .., from "abc20 Fig. 19";
        /// Where in the schedule the run begins.
        offset: Duration = Duration::ZERO, in Duration::ZERO..=LONGEST, from "the start";
        /// What every packet costs beyond its size at the IP layer.
        overhead: Bytes = Bytes(0), in Bytes(0)..=Bytes(1 << 16), from "rates at the IP layer";
        /// What one delivery opportunity is said to carry.
        opportunity: Bytes = Bytes(1500), in Bytes(1)..=Bytes(1 << 20), from "an Ethernet packet";
    }
}

/// Rates, and how long each lasts: `500ms:12Mbps 500ms:24Mbps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule(pub Vec<(Duration, Rate)>);

impl Default for Schedule {
    fn default() -> Self {
        let half = Duration::from_millis(500);
        Schedule(vec![(half, Rate::from_mbps(12)), (half, Rate::from_mbps(24))])
    }
}

impl Value for Schedule {
    fn unit() -> String {
        "time:rate time:rate ...".to_string()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let refuse = |why: String| format!("a schedule such as `500ms:12Mbps 500ms:24Mbps`: {why}");
        let step = |word: &str| {
            let (time, rate) = word.split_once(':').ok_or_else(|| refuse(format!("`{word}` has no `:`")))?;
            let time = time.parse().map_err(|error| refuse(format!("{error}")))?;
            let rate = rate.parse().map_err(|error| refuse(format!("{error}")))?;
            Ok((time, rate))
        };
        text.split_whitespace().map(step).collect::<Result<_, _>>().map(Schedule)
    }

    fn show(&self) -> String {
        self.0.iter().map(|(time, rate)| format!("{time}:{rate}")).collect::<Vec<_>>().join(" ")
    }
}

/// The fastest rate and the longest schedule: products of the two stay within 128 bits by far.
const FASTEST: Rate = Rate::from_mbps(10_000_000);
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

fn check(config: &Config) -> Result<(), ParameterError> {
    let refuse =
        |value: String, range: String| Err(ParameterError::OutOfRange { name: "schedule", value, range });
    let steps = &config.schedule.0;
    if steps.is_empty() {
        return refuse(config.schedule.show(), "one step or more".to_string());
    }
    let mut period = Duration::ZERO;
    for (time, rate) in steps {
        if time.is_zero() {
            return refuse(time.show(), "a step longer than 0s".to_string());
        }
        if *rate > FASTEST {
            return refuse(rate.show(), format!("a rate from 0bps to {FASTEST}"));
        }
        period = Duration::from_nanos(period.as_nanos().saturating_add(time.as_nanos()));
    }
    if period > LONGEST {
        return refuse(period.show(), format!("a schedule of at most {LONGEST}"));
    }
    if steps.iter().all(|(_, rate)| *rate == Rate::ZERO) {
        return refuse(config.schedule.show(), "at least one step with a rate above zero".to_string());
    }
    Ok(())
}

/// A step, in the schedule's own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    /// bit/s.
    rate: u64,
    /// When it ends, nanoseconds; never, for a last rate that stays.
    end: u64,
    /// Work the link can do before this step, bit/s times nanoseconds.
    before: u128,
}

/// A transmitter whose rate changes in steps.
#[derive(Clone, Debug)]
pub struct Steps {
    steps: Arc<[Step]>,
    /// Length of the schedule, nanoseconds; none when it does not repeat.
    period: Option<u64>,
    /// Work of one period, when it repeats.
    work: u128,
    nominal: Rate,
    offset: u64,
    overhead: u32,
    opportunity: Bytes,
    /// The step that is on when the transmitter is free next, and when its cycle began.
    step: usize,
    cycle_start: u64,
    /// When the transmitter is free, in the schedule's time, rounded down; the fraction is `carry / rate`
    /// nanoseconds.
    free_at: u64,
    carry: u64,
    /// Work not done since the last packet was taken.
    idle: u128,
}

impl Steps {
    /// Returns an idle transmitter. The settings must be valid.
    pub fn new(config: &Config) -> Self {
        let (mut end, mut before) = (0_u64, 0_u128);
        let mut steps = Vec::with_capacity(config.schedule.0.len());
        for (time, rate) in &config.schedule.0 {
            end += time.as_nanos();
            steps.push(Step { rate: rate.bps(), end, before });
            before += u128::from(rate.bps()) * u128::from(time.as_nanos());
        }
        let nominal = Rate::from_bps_f64(before as f64 / end as f64);
        if !config.repeat
            && let Some(last) = steps.last_mut()
        {
            last.end = u64::MAX;
        }
        let offset = match config.repeat {
            true => config.offset.as_nanos() % end,
            false => config.offset.as_nanos(),
        };
        let mut service = Steps {
            steps: steps.into(),
            period: config.repeat.then_some(end),
            work: before,
            nominal,
            offset,
            overhead: config.overhead.0 as u32,
            opportunity: config.opportunity,
            step: 0,
            cycle_start: 0,
            free_at: offset,
            carry: 0,
            idle: 0,
        };
        service.find();
        service
    }

    fn in_schedule(&self, t: Time) -> u64 {
        t.as_nanos().saturating_add(self.offset)
    }

    /// When the present step ends.
    fn end(&self) -> u64 {
        self.cycle_start.saturating_add(self.steps[self.step].end)
    }

    /// Goes on to the next step.
    fn advance(&mut self) {
        self.step += 1;
        if self.step == self.steps.len() {
            self.step = 0;
            self.cycle_start += self.period.unwrap_or(0);
        }
    }

    /// Finds the step that is on at `free_at`, which lies in the present step or after it.
    fn find(&mut self) {
        for _ in 0..8 {
            if self.free_at < self.end() {
                return;
            }
            self.advance();
        }
        (self.cycle_start, self.step) = self.locate(self.free_at);
    }

    /// The start of the cycle and the step that are on at `nanos`.
    fn locate(&self, nanos: u64) -> (u64, usize) {
        let cycle_start = self.period.map_or(0, |period| nanos / period * period);
        let step = self.steps.partition_point(|step| step.end <= nanos - cycle_start);
        (cycle_start, step.min(self.steps.len() - 1))
    }

    /// Work the link can do before `nanos`.
    fn work_before(&self, nanos: u64) -> u128 {
        let (cycle_start, index) = self.locate(nanos);
        let cycles = self.period.map_or(0, |period| cycle_start / period);
        let step = self.steps[index];
        let start = match index.checked_sub(1) {
            Some(previous) => self.steps[previous].end,
            None => 0,
        };
        let within = u128::from(step.rate) * u128::from(nanos - cycle_start - start);
        u128::from(cycles) * self.work + step.before + within
    }

    /// The packet taken last does not leave before the end of time.
    fn never(&mut self) -> Time {
        self.free_at = u64::MAX;
        Time::MAX
    }

    fn rate_between(&self, from: u64, to: u64, now: Time, window: Duration) -> Rate {
        let bits = (self.work_before(to) - self.work_before(from)) as f64 * 1e-9;
        rate_in_window(bits, now, window, self.nominal)
    }
}

/// `cycles` periods after `nanos`, if the clock goes that far. Half of it is left for the last cycle.
fn later(nanos: u64, period: u64, cycles: u128) -> Option<u64> {
    let length = u128::from(period).checked_mul(cycles)?;
    u64::try_from(length).ok()?.checked_add(nanos).filter(|later| *later < u64::MAX / 2)
}

impl Service for Steps {
    fn wake(&mut self, now: Time) {
        let now = self.in_schedule(now);
        // A packet that arrives in the very nanosecond of the last departure still waits for the fraction.
        if now > self.free_at {
            self.idle += self.work_before(now) - self.work_before(self.free_at);
            self.carry = 0;
            self.free_at = now;
            self.find();
        }
    }

    fn ready(&self) -> Time {
        match self.free_at {
            u64::MAX => Time::MAX,
            nanos => Time::from_nanos(nanos - self.offset),
        }
    }

    fn begin(&mut self, size: u32) -> Time {
        self.idle = 0;
        let mut todo = u128::from(self.cost(size).0) * u128::from(BIT_NANOS) + u128::from(self.carry);
        if let Some(period) = self.period
            && todo > self.work
        {
            let cycles = (todo - 1) / self.work;
            todo -= cycles * self.work;
            let Some(free_at) = later(self.free_at, period, cycles) else {
                return self.never();
            };
            self.cycle_start += free_at - self.free_at;
            self.free_at = free_at;
        }
        loop {
            let rate = self.steps[self.step].rate;
            let end = self.end();
            let room = u128::from(rate) * u128::from(end - self.free_at);
            if todo <= room && rate > 0 {
                // Nearly every packet's work fits 64 bits, and dividing 128 bits is a library call.
                let (nanos, carry) = match u64::try_from(todo) {
                    Ok(small) => (small / rate, small % rate),
                    Err(_) => ((todo / u128::from(rate)) as u64, (todo % u128::from(rate)) as u64),
                };
                self.free_at += nanos;
                self.carry = carry;
                return self.ready();
            }
            if end == u64::MAX {
                // The schedule ended with an outage.
                return self.never();
            }
            todo -= room;
            self.free_at = end;
            self.advance();
        }
    }

    fn idle(&mut self, _now: Time) {}

    fn unfinished(&self, now: Time) -> u128 {
        let done = self.work_before(self.in_schedule(now));
        self.work_before(self.free_at).saturating_sub(done) + u128::from(self.carry)
    }

    fn cost(&self, size: u32) -> Bytes {
        Bytes(u64::from(size) + u64::from(self.overhead))
    }

    fn nominal(&self) -> Rate {
        self.nominal
    }

    fn capacity_between(&self, from: Time, to: Time) -> Bytes {
        let bytes = |t: Time| (self.work_before(self.in_schedule(t)) / u128::from(BIT_NANOS)) as u64;
        Bytes(bytes(to).saturating_sub(bytes(from)))
    }

    fn capacity(&mut self, now: Time, window: Duration) -> Rate {
        let to = self.in_schedule(now);
        let from = to.saturating_sub(window.as_nanos()).max(self.offset);
        self.rate_between(from, to, now, window)
    }

    fn unused(&self) -> Bytes {
        Bytes((self.idle / u128::from(BIT_NANOS)) as u64)
    }

    fn opportunity(&self) -> Bytes {
        self.opportunity
    }

    fn lookahead(&mut self, now: Time, ahead: Duration, window: Duration) -> Option<Rate> {
        let from = now.saturating_add(ahead);
        let to = from.saturating_add(window);
        Some(self.rate_between(self.in_schedule(from), self.in_schedule(to), to, window))
    }
}
