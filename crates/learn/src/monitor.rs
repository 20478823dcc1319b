//! The controller that an agent drives.
//!
//! ```text
//! at the end of an interval:   observation = history of what was measured; the agent is told
//! a nanosecond later:          cwnd or pacing rate = what its action makes of the last
//! ACKs, losses, timeouts:      change nothing
//! ```
//!
//! The nanosecond lets a simulation stand still between the two, with every event of the interval done: an
//! environment then hands out the observation and takes the action, and the packets are those of an agent
//! that answers at once.

use std::fmt::Debug;
use std::sync::Arc;

use brakelight_core::controller::{
    AckEvent, Connection, Controller, LossEvent, Recovery, SendDirective, SendEvent, TimeoutEvent,
};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_senders::controller::external::{FASTEST, LARGEST, SLOWEST};
use serde::{Deserialize, Serialize};

use crate::interval::{Counters, FIRST_RTT, Interval, Span};
use crate::preset::{Decision, Memory, Preset};

/// An interval is never longer: an agent that fills a deep buffer must not wait for minutes.
const LONGEST_S: f64 = 10.0;

/// What an agent may set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The lowest pacing rate, bit/s.
    pub least_bps: f64,
    /// The highest pacing rate, bit/s.
    pub most_bps: f64,
    /// The largest window, bytes.
    pub most_cwnd: f64,
}

/// What an agent is made for: what it observes, when, and what its actions do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Specification {
    /// Observations and actions.
    pub preset: Preset,
    /// The length of a monitor interval in mean RTTs of the last; absent where `interval_ms` decides.
    pub interval_rtts: Option<f64>,
    /// The length of a monitor interval in ms; with `interval_rtts` the least that it is.
    pub interval_ms: f64,
    /// Intervals in an observation, the newest last.
    pub history: usize,
    /// What its actions lead to at most.
    pub limits: Limits,
}

impl Specification {
    /// Returns how many numbers an observation has.
    pub fn width(&self) -> usize {
        self.history * self.preset.features()
    }

    /// Returns the length of an interval after one whose mean RTT was `rtt_s`.
    pub fn interval(&self, rtt_s: f64) -> Duration {
        let least_s = self.interval_ms * 1e-3;
        let length_s = self.interval_rtts.map_or(least_s, |rtts| (rtts * rtt_s).max(least_s));
        Duration::from_secs_f64(length_s.min(LONGEST_S))
    }

    /// Returns the observation before the first interval.
    pub fn nothing(&self) -> Vec<f32> {
        let numbers = self.preset.nothing().iter().map(|number| *number as f32);
        numbers.cycle().take(self.width()).collect()
    }

    /// Says what is wrong with it, if anything.
    ///
    /// # Errors
    /// A number is out of range: the field, the value and what is valid.
    pub fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: f64, least: f64, most: f64| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err(format!("{name} = `{value}` is out of range: valid is {least} to {most}"))
        };
        within("interval_rtts", self.interval_rtts.unwrap_or(1.0), 1e-3, 100.0)?;
        within("interval_ms", self.interval_ms, 0.1, 1e4)?;
        within("history", self.history as f64, 1.0, 1000.0)?;
        let (slowest, fastest) = (SLOWEST.as_bps_f64(), FASTEST.as_bps_f64());
        within("least_bps", self.limits.least_bps, slowest, fastest)?;
        within("most_bps", self.limits.most_bps, self.limits.least_bps, fastest)?;
        within("most_cwnd", self.limits.most_cwnd, 1e5, LARGEST.as_f64())
    }
}

/// Whoever decides.
pub trait Agent: Clone + Debug + Send + Sync + 'static {
    /// An interval is over; before the first, there is none.
    fn observe(&mut self, interval: Option<&Interval>, memory: &Memory, observation: &[f32]);

    /// Returns the action that follows from the last observation, and the end of the next interval where that
    /// is not for the connection to say.
    fn act(&mut self) -> (f64, Option<Time>);
}

/// The controller: it measures intervals, asks the agent, and sets what it decides.
#[derive(Clone, Debug)]
pub struct Monitor<A> {
    specification: Arc<Specification>,
    agent: A,
    mss: Bytes,
    span: Span,
    counted: Counters,
    at_begin: Counters,
    /// None before the middle.
    at_middle: Option<Counters>,
    memory: Memory,
    observation: Vec<f32>,
    /// The mean RTT of the last interval.
    last_rtt_s: f64,
    /// Whether the interval is over and the agent's decision is due.
    deciding: bool,
    /// The window that the agent set, bytes.
    cwnd: f64,
    /// The pacing rate that it set, bit/s, where it sets one.
    rate_bps: Option<f64>,
}

impl<A: Agent> Monitor<A> {
    /// Returns the controller at the start of `connection`, whose first decision is taken. A `preset` that
    /// sets rates begins with `start_rate`.
    pub fn new(
        specification: Arc<Specification>,
        agent: A,
        connection: &Connection,
        start_rate: Rate,
    ) -> Self {
        let paces = matches!(specification.preset.decide(0.0), Decision::Rate(_));
        let limits = specification.limits;
        let mut monitor = Monitor {
            observation: specification.nothing(),
            agent,
            mss: connection.mss,
            span: Span { begin: connection.now, end: connection.now },
            counted: Counters::default(),
            at_begin: Counters::default(),
            at_middle: None,
            memory: Memory::default(),
            last_rtt_s: FIRST_RTT.as_secs_f64(),
            deciding: false,
            // Where the rate decides, the window only bounds what is in flight.
            cwnd: if paces { limits.most_cwnd } else { connection.initial_window.as_f64() },
            rate_bps: paces.then(|| start_rate.as_bps_f64().clamp(limits.least_bps, limits.most_bps)),
            specification,
        };
        monitor.agent.observe(None, &monitor.memory, &monitor.observation);
        monitor.decide();
        monitor
    }

    /// Does what the agent decides, which says when the next interval is over.
    fn decide(&mut self) {
        let (action, until) = self.agent.act();
        let Limits { least_bps, most_bps, most_cwnd } = self.specification.limits;
        match self.specification.preset.decide(action) {
            Decision::Rate(factor) => {
                self.rate_bps = self.rate_bps.map(|rate| (rate * factor).clamp(least_bps, most_bps));
            }
            Decision::Window(factor) => self.cwnd = (self.cwnd * factor).min(most_cwnd),
        }
        self.cwnd = self.cwnd.max(self.specification.preset.least_packets() * self.mss.as_f64());
        let begin = self.span.begin;
        self.span.end = until.unwrap_or_else(|| begin + self.specification.interval(self.last_rtt_s));
    }

    /// Measures the interval that is over, and tells the agent.
    fn close(&mut self, now: Time) {
        self.span.end = now;
        let middle = self.at_middle.unwrap_or(self.counted);
        let counters = [&self.at_begin, &middle, &self.counted];
        let interval = Interval::between(&self.span, counters, Controller::cwnd(self), self.mss);
        let features = self.specification.preset.features();
        self.observation.copy_within(features.., 0);
        let newest = self.observation.len() - features;
        self.specification.preset.observe(&interval, &mut self.memory, &mut self.observation[newest..]);
        self.agent.observe(Some(&interval), &self.memory, &self.observation);
        self.last_rtt_s = interval.rtt_s;
        self.span.begin = now;
        self.at_begin = self.counted;
        self.at_middle = None;
        self.deciding = true;
    }

    /// Keeps what was counted up to the interval's middle.
    fn pass(&mut self, now: Time) {
        if self.at_middle.is_none() && now > self.span.middle() {
            self.at_middle = Some(self.counted);
        }
    }
}

/// How long after an interval the decision takes effect.
const DECISION: Duration = Duration::from_nanos(1);

impl<A: Agent> Controller for Monitor<A> {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        self.pass(event.now);
        self.counted.on_send(event);
        SendDirective::default()
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.pass(event.now);
        self.counted.on_ack(event);
    }

    fn on_loss(&mut self, _event: &LossEvent) {}

    fn on_timeout(&mut self, _event: &TimeoutEvent) {}

    fn cap_cwnd(&mut self, most: Bytes) {
        self.cwnd = self.cwnd.min(most.as_f64()).max(self.mss.as_f64());
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
        self.cwnd = self.cwnd.max(mss.as_f64());
    }

    fn on_timer(&mut self, now: Time) {
        if self.deciding {
            self.deciding = false;
            self.decide();
        } else if now >= self.span.end {
            self.close(now);
        }
    }

    fn next_timer(&self) -> Option<Time> {
        Some(if self.deciding { self.span.begin + DECISION } else { self.span.end })
    }

    fn cwnd(&self) -> Bytes {
        Bytes(self.cwnd as u64)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate_bps.map(Rate::from_bps_f64)
    }

    fn recovery(&self) -> Recovery {
        Recovery::Own
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("interval_ms", self.span.end.since(self.span.begin).as_millis_f64());
    }
}

#[cfg(test)]
mod tests;
