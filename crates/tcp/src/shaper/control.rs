//! One direction of the shaper as a state machine: counters and replies go in, rates come out. It has no
//! clock and no socket, so the tests drive it by a virtual clock.
//!
//! The setters are those of the simulation ([`brakelight_links::shaper`]), and this gives them what the path
//! element gives them there. Differences to the path element:
//!
//! 1. Counters are read, and not kept: at a tick they are what the looks before and after it say, in a
//!    straight line. Where a look came late, no tick is left out.
//! 2. Bytes count link headers, as the qdisc's rate does. What arrived is what left and what waits: a packet
//!    that was dropped never arrived.
//! 3. Nobody reads passing flows: no bytes are known as delivered.
//! 4. A rate is set only if it differs by [`DEAD_BAND`]. On `tbf`, whose every change lets a burst pass, it
//!    is set at most so often that these bursts are [`BURST_SHARE`] of it; a fall by [`FALL`] never waits.
//! 5. In a queue that does not keep flows apart, probes wait behind data. What a probe waited here is taken
//!    off its round trip: the time in which the rates since it was sent serve what waited before it.

use std::collections::VecDeque;

use brakelight_core::queue::Backlog;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_links::shaper::{AnySetter, Delay, RateSetter, SLEEP, Seen, SetterConfig, Side, Source};

/// A rate closer than this to the one that is set is not set: less than the step of any setter.
pub const DEAD_BAND: f64 = 0.005;

/// The share of the rate that bursts of changes may be.
pub const BURST_SHARE: f64 = 0.05;

/// A rate that falls by this share is set at once.
pub const FALL: f64 = 0.1;

/// Between two looks where no setter asks for one: a setter that sleeps, or that never acts.
pub const LOOK: Duration = Duration::from_millis(100);

/// Ticks that are made up for after a look that came late. A machine that stood still for longer begins anew.
const LATE_TICKS: u64 = 100;

/// How long a probe may be under way, and so the rates are remembered: `fping --timeout 10000`.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Counters of a qdisc. Bytes are those of link frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes that left.
    pub left: u64,
    /// Bytes that wait.
    pub waiting_bytes: u32,
    /// Packets that wait.
    pub waiting_packets: u32,
}

/// What is fixed about the qdisc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QdiscFacts {
    /// Bytes that pass at each change of the rate.
    pub burst: u32,
    /// Whether a packet waits behind those of all other flows.
    pub fifo: bool,
}

/// One direction: its setter, and what the setter has heard.
#[derive(Clone, Debug)]
pub struct Control {
    setter: AnySetter,
    qdisc: QdiscFacts,
    /// The rates that the qdisc had, each with the time from which on: the last is in force. None before the
    /// first is set on an unlimited qdisc.
    rates: VecDeque<(Time, Rate)>,
    /// The rate that was chosen last: that of the qdisc, unless nothing is set.
    chosen: Option<Rate>,
    /// No rise before this.
    hold_until: Time,
    tick: Time,
    /// When data last passed.
    busy: Time,
    asleep: bool,
    last: Look,
    /// Bytes of its own probes that are in the counters.
    own: u64,
    /// The counters at the beginning.
    first: u64,
    rtt: Option<Duration>,
}

/// The counters of data at one time, from the beginning on.
#[derive(Clone, Copy, Debug, Default)]
struct Look {
    at: Time,
    arrived: u64,
    departed: u64,
    waiting_bytes: u32,
    waiting_packets: u32,
}

impl Control {
    /// Returns one at its beginning: the qdisc has counted so much, and has that rate unless it is unlimited.
    pub fn new(
        now: Time,
        config: &SetterConfig,
        side: Side,
        qdisc: QdiscFacts,
        counters: &Counters,
        rate: Option<Rate>,
    ) -> Self {
        let setter = config.build(side);
        let interval = setter.interval();
        let arrived = u64::from(counters.waiting_bytes);
        Control {
            qdisc,
            rates: rate.map(|rate| (now, rate)).into_iter().collect(),
            chosen: rate,
            hold_until: Time::ZERO,
            tick: if interval.is_zero() { Time::MAX } else { now + interval },
            busy: now,
            asleep: false,
            last: Look { at: now, arrived, ..Look::default() },
            own: 0,
            first: counters.left,
            rtt: None,
            setter,
        }
    }

    /// Returns when it wants to see the counters again.
    pub fn next_look(&self) -> Time {
        let idle = self.last.at + LOOK;
        if self.asleep { idle } else { self.tick.min(idle) }
    }

    /// Returns how often it wants a probe sent; `None` while it sleeps, or for never.
    pub fn probes_every(&self) -> Option<Duration> {
        self.setter.probes_every().filter(|_| !self.asleep)
    }

    /// Returns whether its setter says that nothing it measures shows the link's queue.
    pub fn is_blind(&self) -> bool {
        self.setter.is_blind()
    }

    /// Returns whether nothing has passed for so long that the setter sleeps.
    pub fn is_asleep(&self) -> bool {
        self.asleep
    }

    /// Returns the rate that was chosen last, by the setter or by whoever put the qdisc there; `None` if it is
    /// unlimited.
    pub fn rate(&self) -> Option<Rate> {
        self.chosen
    }

    /// Returns the last round trip of a probe, without what it waited here.
    pub fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// Returns the bytes of data that have left, and the packets that wait.
    pub fn departed(&self) -> (u64, u32) {
        (self.last.departed, self.last.waiting_packets)
    }

    /// A probe of `size` bytes was handed to the qdisc, or came back through it.
    pub fn on_own_packet(&mut self, size: u32) {
        self.own += u64::from(size);
    }

    /// The counters were read.
    pub fn on_counters(&mut self, now: Time, counters: &Counters) {
        let before = self.last;
        let left = counters.left.saturating_sub(self.first);
        // Probes that have not left yet, or smaller ones than it was told of, hide no data of later.
        self.own = self.own.min(left.saturating_sub(before.departed));
        let departed = left - self.own;
        let look = Look {
            at: now,
            departed,
            arrived: (departed + u64::from(counters.waiting_bytes)).max(before.arrived),
            waiting_bytes: counters.waiting_bytes,
            waiting_packets: counters.waiting_packets,
        };
        self.last = look;
        if look.departed > before.departed || look.waiting_packets > 0 {
            self.busy = now;
            if self.asleep {
                self.asleep = false;
                self.tick = now + self.setter.interval();
            }
        }
        if self.asleep || self.tick == Time::MAX {
            return;
        }
        let interval = self.setter.interval();
        if now.since(self.tick) > interval * LATE_TICKS {
            self.tick = now;
        }
        while self.tick <= now {
            self.act(&before, &look);
            self.tick += self.setter.interval();
        }
        if now.since(self.busy) >= SLEEP {
            self.asleep = true;
        }
    }

    /// The setter acts at a time between two looks.
    fn act(&mut self, before: &Look, after: &Look) {
        let whole = after.at.since(before.at).as_secs_f64();
        let part = self.tick.since(before.at).as_secs_f64();
        let share = if whole > 0.0 { (part / whole).min(1.0) } else { 1.0 };
        let between = |before: u64, after: u64| before + ((after - before) as f64 * share) as u64;
        self.setter.on_tick(&Seen {
            now: self.tick,
            arrived: between(before.arrived, after.arrived),
            departed: between(before.departed, after.departed),
            delivered: 0,
            under_way: 0,
            readable: 0,
            waiting: Backlog { packets: after.waiting_packets, bytes: Bytes(u64::from(after.waiting_bytes)) },
            truth: None,
        });
    }

    /// A reply to a probe came from a reflector, by number: its round trip without what it waited in queues of
    /// this machine.
    pub fn on_reply(&mut self, now: Time, value: Duration, reflector: usize) {
        self.rtt = Some(value);
        self.setter.on_delay(Delay { now, value, source: Source::Probe(reflector as u64) });
    }

    /// Returns what a probe has waited in the qdisc until `now`, if it was sent at `sent` and `ahead` bytes
    /// waited there: the time in which the rates since then served these bytes.
    pub fn waited(&self, sent: Time, now: Time, ahead: u32) -> Duration {
        if !self.qdisc.fifo {
            return Duration::ZERO;
        }
        let mut bits = f64::from(ahead) * 8.0;
        let mut waited = Duration::ZERO;
        for (index, (from, rate)) in self.rates.iter().enumerate() {
            let until = self.rates.get(index + 1).map_or(now, |(next, _)| *next);
            let length = until.since((*from).max(sent));
            let served = length.as_secs_f64() * rate.as_bps_f64();
            if served >= bits {
                return waited + Duration::from_secs_f64(bits / rate.as_bps_f64());
            }
            bits -= served;
            waited += length;
        }
        waited
    }

    /// Returns what a packet waits in the qdisc that comes now, by the last look.
    pub fn waits(&self) -> Duration {
        match self.rates.back() {
            Some((_, rate)) if self.qdisc.fifo => {
                Duration::from_secs_f64(f64::from(self.last.waiting_bytes) * 8.0 / rate.as_bps_f64())
            }
            _ => Duration::ZERO,
        }
    }

    /// Returns whether a packet waits behind those of all other flows.
    pub fn is_fifo(&self) -> bool {
        self.qdisc.fifo
    }

    /// Returns the rate to set now, if there is one.
    pub fn wants(&self, now: Time) -> Option<Rate> {
        let wanted = self.setter.rate();
        let Some(rate) = self.rate() else { return Some(wanted) };
        let change = wanted.as_bps_f64() / rate.as_bps_f64() - 1.0;
        let waits = now < self.hold_until && change > -FALL;
        (change.abs() >= DEAD_BAND && !waits).then_some(wanted)
    }

    /// The rate was chosen, and the qdisc has it from now on if it `is_set`.
    pub fn on_chosen(&mut self, now: Time, rate: Rate, is_set: bool) {
        self.chosen = Some(rate);
        let pause = f64::from(self.qdisc.burst) * 8.0 / (BURST_SHARE * rate.as_bps_f64());
        self.hold_until = now + Duration::from_secs_f64(pause);
        if !is_set {
            return;
        }
        while self.rates.get(1).is_some_and(|(at, _)| now.since(*at) > PROBE_TIMEOUT) {
            self.rates.pop_front();
        }
        self.rates.push_back((now, rate));
    }
}

#[cfg(test)]
mod tests;
