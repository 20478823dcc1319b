//! Periods of sending and silence, and payload offered at a constant rate.
//!
//! Outcome: `offered_mbps`, `delivered_mbps` (payload, from the flow's start on; the first only where a rate
//! is given) and `backlog_kb`, what was offered and has not arrived.

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use crate::application::Application;
use crate::socket::{ENDLESS, Socket};
use crate::traffic::OnOff;

/// An application that offers payload at a rate, for periods or throughout.
#[derive(Clone, Debug)]
pub struct Paced {
    /// Payload rate while it sends; backlogged without one.
    rate: Option<Rate>,
    /// Periods of sending and of silence; without them it sends throughout.
    periods: Option<OnOff>,
    mss: Bytes,
    started: Option<Time>,
    sending: bool,
    /// When the current period ends.
    turn_at: Time,
    /// When the current period of sending began, and how many packets it has offered.
    since: Time,
    packets: u64,
    tick_at: Time,
    offered: u64,
    delivered: u64,
}

impl Paced {
    /// Returns the payload at `rate` throughout.
    pub fn constant(rate: Rate, mss: Bytes) -> Self {
        Paced::new(Some(rate), None, mss)
    }

    /// Returns an application that sends and is silent in turns.
    pub fn on_off(periods: OnOff, mss: Bytes) -> Self {
        Paced::new(periods.rate, Some(periods), mss)
    }

    fn new(rate: Option<Rate>, periods: Option<OnOff>, mss: Bytes) -> Self {
        Paced {
            rate,
            periods,
            mss,
            started: None,
            sending: false,
            turn_at: Time::MAX,
            since: Time::ZERO,
            packets: 0,
            tick_at: Time::MAX,
            offered: 0,
            delivered: 0,
        }
    }

    fn begin(&mut self, socket: &mut impl Socket) {
        self.sending = true;
        self.since = socket.now();
        self.packets = 0;
        match self.rate {
            Some(_) => self.tick_at = socket.now(),
            None => socket.write(ENDLESS),
        }
        if let Some(periods) = self.periods {
            self.turn_at = socket.now().saturating_add(length(periods.on, periods.random, socket));
        }
    }

    fn pause(&mut self, socket: &mut impl Socket) {
        self.sending = false;
        self.tick_at = Time::MAX;
        if self.rate.is_none() {
            socket.discard_unsent();
        }
        if let Some(periods) = self.periods {
            self.turn_at = socket.now().saturating_add(length(periods.off, periods.random, socket));
        }
    }

    /// Offers every packet due by now. Packet n of a period is due n intervals after its start, without
    /// drift.
    fn offer(&mut self, socket: &mut impl Socket) {
        let Some(rate) = self.rate else { return };
        while self.tick_at <= socket.now() {
            socket.write(self.mss);
            self.offered += self.mss.0;
            self.packets += 1;
            self.tick_at = self.since.saturating_add(rate.time_for(Bytes(self.packets * self.mss.0)));
        }
    }
}

/// The length of a period.
fn length(mean: Duration, random: bool, socket: &mut impl Socket) -> Duration {
    if random { mean.mul_f64(socket.random().exponential()) } else { mean }
}

impl Application for Paced {
    fn start(&mut self, socket: &mut impl Socket) {
        self.started = Some(socket.now());
        self.begin(socket);
        self.offer(socket);
    }

    fn stop(&mut self, socket: &mut impl Socket) {
        self.sending = false;
        self.turn_at = Time::MAX;
        self.tick_at = Time::MAX;
        socket.discard_unsent();
    }

    fn on_timer(&mut self, socket: &mut impl Socket) {
        if self.turn_at <= socket.now() {
            if self.sending { self.pause(socket) } else { self.begin(socket) }
        }
        self.offer(socket);
    }

    fn next_timer(&self) -> Time {
        self.tick_at.min(self.turn_at)
    }

    fn listens(&self) -> bool {
        true
    }

    fn on_delivered(&mut self, socket: &mut impl Socket) {
        self.delivered = socket.delivered().0;
    }

    fn is_over(&self) -> bool {
        self.started.is_some() && self.next_timer() == Time::MAX
    }

    fn outcome(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        let Some(started) = self.started else { return };
        let mbps = |bytes| Rate::over(Bytes(bytes), now.since(started)).as_mbps_f64();
        if self.rate.is_some() {
            visit("offered_mbps", mbps(self.offered));
            visit("backlog_kb", self.offered.saturating_sub(self.delivered) as f64 * 1e-3);
        }
        visit("delivered_mbps", mbps(self.delivered));
    }
}
