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
//! 4. A rate is set only if it differs by [`DEAD_BAND`]. On `tbf`, whose every change lets a burst pass, a
//!    change by less than [`LARGE`] waits until the burst before is [`BURST_SHARE`] of what the rate carried,
//!    and [`LONGEST_PAUSE`] at most. Falls and rises wait alike: a rate that falls sooner than it rises is
//!    the least of what its setter said, and setters that hear of their own rate then follow it down.
//! 5. In a queue that does not keep flows apart, probes wait behind data. What a probe waited here is taken
//!    off its round trip: it left once as many bytes had left as had left or waited before it. While one
//!    waits, the counters are read every [`CLOSE_LOOK`]. What the rate alone says would be wrong, since
//!    bursts pass.

use std::collections::VecDeque;

use brakelight_core::queue::Backlog;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_links::shaper::{AnySetter, Delay, RateSetter, SLEEP, Seen, SetterConfig, Side, Source};

/// A rate closer than this to the one that is set is not set: less than the step of any setter.
pub const DEAD_BAND: f64 = 0.005;

/// The share of the rate that bursts of changes may be.
pub const BURST_SHARE: f64 = 0.05;

/// A change by this share does not wait.
pub const LARGE: f64 = 0.1;

/// The longest that a change waits: the loop delay of a short path.
pub const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Between two looks while a probe waits behind data: half of the delay that `follow` takes for a queue.
pub const CLOSE_LOOK: Duration = Duration::from_millis(2);

/// Between two looks where no setter asks for one: a setter that sleeps, or that never acts.
pub const LOOK: Duration = Duration::from_millis(100);

/// Ticks that are made up for after a look that came late. A machine that stood still for longer begins anew.
const LATE_TICKS: u64 = 100;

/// How long a probe may be under way: `fping --timeout 10000`.
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
    /// The rate that was chosen last: that of the qdisc, unless nothing is set.
    chosen: Option<Rate>,
    /// When the rate was set last.
    set_at: Time,
    /// Probes that wait in the qdisc: the number of each, the counter of bytes once it has left, and when it
    /// came.
    waiting: VecDeque<(u64, u64, Time)>,
    /// When probes left it.
    left_at: VecDeque<(u64, Time)>,
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
            chosen: rate,
            set_at: Time::ZERO,
            waiting: VecDeque::new(),
            left_at: VecDeque::new(),
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
        let idle = if self.waiting.is_empty() { idle } else { self.last.at + CLOSE_LOOK };
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

    /// Returns the rate that was chosen last, by the setter or by whoever put the qdisc there; `None` if it
    /// is unlimited.
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

    /// A probe of its own of `size` bytes passes the qdisc, or is about to.
    pub fn on_own_packet(&mut self, size: u32) {
        self.own += u64::from(size);
    }

    /// The probe of this number was handed to the qdisc, with `counters` just before.
    pub fn on_probe(&mut self, now: Time, number: u64, size: u32, counters: &Counters) {
        self.on_own_packet(size);
        if self.qdisc.fifo && counters.waiting_bytes > 0 {
            let ahead = u64::from(counters.waiting_bytes) + u64::from(size);
            self.waiting.push_back((number, counters.left + ahead, now));
        } else {
            self.on_left(number, now);
        }
    }

    fn on_left(&mut self, number: u64, at: Time) {
        while self.left_at.front().is_some_and(|(_, left)| at.since(*left) > PROBE_TIMEOUT) {
            self.left_at.pop_front();
        }
        self.left_at.push_back((number, at));
    }

    /// Returns when the probe of this number left the qdisc, as far as the looks say.
    pub fn left_at(&self, number: u64) -> Option<Time> {
        self.left_at.iter().rev().find(|(other, _)| *other == number).map(|(_, at)| *at)
    }

    /// The counters were read, not before `now`.
    pub fn on_counters(&mut self, now: Time, counters: &Counters) {
        let before = self.last;
        self.see_probes(before.at, counters.left);
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

    /// Notes which probes have left since the look before, and takes them to have left right after it. A
    /// round trip that is too long for once does less harm than one that is too short, which all others are
    /// compared with.
    fn see_probes(&mut self, before: Time, counter: u64) {
        while let Some((number, _, came)) =
            self.waiting.front().copied().filter(|(_, mark, _)| *mark <= counter)
        {
            self.waiting.pop_front();
            self.on_left(number, before.max(came));
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

    /// A reply to a probe came from a reflector, by number: its round trip without what it waited in queues
    /// of this machine.
    pub fn on_reply(&mut self, now: Time, value: Duration, reflector: usize) {
        self.rtt = Some(value);
        self.setter.on_delay(Delay { now, value, source: Source::Probe(reflector as u64) });
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
        let pause = f64::from(self.qdisc.burst) * 8.0 / (BURST_SHARE * rate.as_bps_f64());
        let pause = Duration::from_secs_f64(pause).min(LONGEST_PAUSE);
        let waits = change.abs() < LARGE && now.since(self.set_at) < pause;
        (change.abs() >= DEAD_BAND && !waits).then_some(wanted)
    }

    /// The rate was chosen.
    pub fn on_chosen(&mut self, now: Time, rate: Rate) {
        self.chosen = Some(rate);
        self.set_at = now;
    }
}

#[cfg(test)]
mod tests;
