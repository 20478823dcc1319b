//! A shaper before a link that it does not own: a queue served at a rate that a *rate setter* chooses. It is
//! what a home router has: an AQM that only works while it, and not the link, is the bottleneck.
//!
//! ```text
//! side=up:    data -> [ queue -> rate R ] -> ... -> link -> ...      the home router, before the link
//!             ACKs <---------------------- ... <----------- ...
//! side=down:  data -> ... -> link -> ... -> [ queue -> rate R ]      its ingress, behind the link
//!             ACKs <- ... <------------------------------------
//! ```
//!
//! One shaper serves all flows that name it with the same options, and sees their ACKs go by. What its setter
//! knows is what a home router sees:
//!
//! | seen | how | in the real world |
//! |---|---|---|
//! | bytes that arrived and left | counters | the qdisc's |
//! | bytes delivered, RTT (`up`) | data that left against ACKs and SACK blocks | TCP, not QUIC |
//! | delay on the way here (`down`) | arrival less TSval, less the smallest such difference | rfc7323 3.2 |
//! | RTT of probes | echo requests, away from the home side | `fping` |
//!
//! A data packet that passes twice gives no RTT (Karn's rule, rfc6298 3). What was lost behind the shaper
//! counts as under way until it is acknowledged, and for [`FORGET`] at most.
//!
//! Deviations from a real router:
//! 1. Rates take effect at once and are exact; `tc qdisc change` takes a few milliseconds.
//! 2. Probes do not wait in the shaper's own queue. In `cake` a flow that sends little does not wait either.
//! 3. Probes go out only while data passes: a setter sleeps after [`SLEEP`] without packets.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};

use brakelight_core::packet::{Duplicate, PacketId};
use brakelight_core::path::{Departed, Output, PathElement, Site};
use brakelight_core::queue::Place;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_routers::AnyQueue;

use crate::elements::AnyService;
use crate::link::{Link, fixed};

pub mod autorate;
mod choice;
pub mod constant;
pub mod follow;
mod forecast;
pub mod oracle;
mod passing;
pub mod setter;

pub use choice::QueueChoice;
use passing::Passing;
pub use setter::{AnySetter, Delay, RateSetter, SETTERS, Seen, SetterConfig, Source};

choices! {
    /// On which side of the link the shaper stands.
    pub enum Side {
        /// Before it: the upload, at the router.
        Up = "up",
        /// Behind it: the download, at the home side's ingress.
        Down = "down",
    }
}

parameters! {
    /// The settings of a shaper.
    pub struct Config {
        /// The queue, with its options behind slashes: `fq_codel/target=5ms`.
        queue: QueueChoice = QueueChoice::named("cake"), in .., from "what cake-autorate drives";
        /// Who sets the rate, with its options behind slashes: `autorate/max=80Mbps`.
        setter: SetterConfig = SetterConfig::named("fixed"), in .., from "what most routers have";
        /// On which side of the link it stands.
        side: Side = Side::Up, in .., from "the upload";
        /// What the queue holds, unless its own options say.
        limit: Limit = Limit::Bytes(Bytes(4 << 20)), in .., from "Linux 6.1 sch_cake.c: its least memory";
    }
}

/// A setter that saw no packet for so long sleeps until the next: cake-autorate, defaults.sh,
/// `sustained_idle_sleep_thr_s`.
pub const SLEEP: Duration = Duration::from_secs(60);

/// For how long a packet that was not acknowledged is taken to be under way.
pub const FORGET: Duration = Duration::from_secs(3);

/// A queue served at a rate that a setter chooses.
#[derive(Clone, Debug)]
pub struct Shaper<P>(Box<Inner<P>>);

#[derive(Clone, Debug)]
struct Inner<P> {
    side: Side,
    link: Link<P, AnyQueue<P>, AnyService>,
    setter: AnySetter,
    /// The rate that the link has.
    rate: Rate,
    /// What happened and has not been polled.
    happened: VecDeque<Output<P>>,
    passing: Passing,
    arrived: u64,
    departed: u64,
    /// The link's true service, for setters that may know it.
    truth: Option<Box<AnyService>>,
    /// The last packet that went where probes go.
    template: Option<P>,
    probes: Probes,
    /// When the setter acts next; [`Time::MAX`] while it sleeps or never does.
    tick: Time,
    /// When the last packet came.
    busy: Time,
    account: Account,
}

/// Echo requests under way.
#[derive(Clone, Debug)]
struct Probes {
    next_id: u64,
    /// When the next is sent; [`Time::MAX`] while the setter sleeps or sends none.
    due: Time,
    sent: u64,
    under_way: BTreeMap<u64, (u64, Time)>,
}

/// What a shaper did, for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Account {
    /// Integral of the rate over time while packets passed, in bits.
    pub rate_bits: f64,
    /// The time of that, in seconds.
    pub awake_s: f64,
    /// For how much of it the setter was blind, in seconds.
    pub blind_s: f64,
    /// The lowest and the highest rate, in bit/s.
    pub lowest_bps: f64,
    /// The highest rate, in bit/s.
    pub highest_bps: f64,
    /// Echo requests sent.
    pub probes: u64,
    /// Up to when it is counted.
    at: Time,
}

impl<P: Duplicate> Shaper<P> {
    /// Returns a shaper without packets.
    pub fn new(config: &Config, site: Site) -> Self {
        let setter = config.setter.build(config.side);
        let rate = setter.rate();
        let service = fixed::Config::new(fixed::Values { rate, ..fixed::Values::default() })
            .map(|config| AnyService::Fixed(fixed::Fixed::new(&config)));
        let service = service.unwrap_or_else(|error| panic!("a setter's first rate: {error}"));
        let place = Place { limit: config.limit, nominal: rate, random: site.random };
        let account =
            Account { lowest_bps: rate.as_bps_f64(), highest_bps: rate.as_bps_f64(), ..Account::default() };
        Shaper(Box::new(Inner {
            side: config.side,
            link: Link::new(service, config.queue.0.build(&place)),
            setter,
            rate,
            happened: VecDeque::new(),
            passing: Passing::new(config.side),
            arrived: 0,
            departed: 0,
            truth: None,
            template: None,
            probes: Probes { next_id: site.ids.0, due: Time::MAX, sent: 0, under_way: BTreeMap::new() },
            tick: Time::MAX,
            busy: Time::ZERO,
            account,
        }))
    }

    /// Tells it the true service of the link that it stands before. Setters that a real router could run look
    /// at no more than its mean.
    pub fn set_truth(&mut self, service: &AnyService) {
        let inner = &mut *self.0;
        inner.truth = Some(Box::new(service.clone()));
        inner.setter.on_link(service);
        inner.apply_rate(Time::ZERO);
        let rate = inner.rate.as_bps_f64();
        (inner.account.lowest_bps, inner.account.highest_bps) = (rate, rate);
    }

    /// Returns its queue.
    pub fn queue(&self) -> &AnyQueue<P> {
        self.0.link.queue()
    }

    /// Returns the name of its setter.
    pub fn setter(&self) -> &'static str {
        self.0.setter.name()
    }

    /// Returns the rate that is set.
    pub fn rate(&self) -> Rate {
        self.0.rate
    }

    /// Returns whether its setter says that nothing it measures shows the link's queue.
    pub fn is_blind(&self) -> bool {
        self.0.setter.is_blind()
    }

    /// Returns what it did up to `now`.
    pub fn account(&self, now: Time) -> Account {
        let mut inner = (self.0.setter.is_blind(), self.0.rate, self.0.account);
        inner.2.advance(now, inner.1, inner.0, self.0.tick != Time::MAX);
        inner.2.probes = self.0.probes.sent;
        inner.2
    }
}

impl Account {
    fn advance(&mut self, now: Time, rate: Rate, blind: bool, awake: bool) {
        let passed = now.since(self.at).as_secs_f64();
        self.at = now;
        if awake {
            self.rate_bits += rate.as_bps_f64() * passed;
            self.awake_s += passed;
            self.blind_s += if blind { passed } else { 0.0 };
        }
    }
}

impl<P: Duplicate> Inner<P> {
    /// Does everything due by `now`, in order of time.
    fn advance(&mut self, now: Time) {
        loop {
            let link = self.link.next_wakeup().unwrap_or(Time::MAX);
            let due = link.min(self.tick).min(self.probes.due);
            if due > now || due == Time::MAX {
                return;
            }
            while let Some(output) = self.link.poll(due) {
                self.left(output);
            }
            if self.probes.due <= due {
                self.send_probe(due);
            }
            if self.tick <= due {
                self.act(due);
            }
        }
    }

    /// Something left the queue.
    fn left(&mut self, output: Output<P>) {
        if let Output::Departed(departed) = &output {
            self.departed += u64::from(departed.packet.size());
            self.passing.on_departure(departed.at, &departed.packet);
        }
        self.happened.push_back(output);
    }

    /// The setter acts.
    fn act(&mut self, now: Time) {
        self.account.advance(now, self.rate, self.setter.is_blind(), true);
        if now.since(self.busy) >= SLEEP {
            self.tick = Time::MAX;
            self.probes.due = Time::MAX;
            self.probes.under_way.clear();
            return;
        }
        self.passing.forget(now);
        let seen = Seen {
            now,
            arrived: self.arrived,
            departed: self.departed,
            delivered: self.passing.delivered(),
            under_way: self.passing.under_way(),
            readable: self.passing.readable(),
            waiting: self.link.backlog(),
            truth: self.truth.as_deref(),
        };
        self.setter.on_tick(&seen);
        self.tick = now + self.setter.interval();
        self.apply_rate(now);
    }

    fn apply_rate(&mut self, now: Time) {
        let rate = self.setter.rate();
        if rate == self.rate {
            return;
        }
        self.rate = rate;
        self.account.lowest_bps = self.account.lowest_bps.min(rate.as_bps_f64());
        self.account.highest_bps = self.account.highest_bps.max(rate.as_bps_f64());
        self.link.set_rate(now, rate);
        while let Some(output) = self.link.poll(now) {
            self.left(output);
        }
    }

    fn send_probe(&mut self, now: Time) {
        let Some(every) = self.setter.probes_every() else {
            self.probes.due = Time::MAX;
            return;
        };
        self.probes.due = now + every;
        let id = PacketId(self.probes.next_id);
        let Some(probe) = self.template.as_ref().and_then(|template| template.probe(id, now)) else { return };
        self.probes.next_id += 1;
        self.probes.under_way.insert(id.0, (self.probes.sent, now));
        self.probes.sent += 1;
        // One that no reply came to is forgotten with its number: `fping --timeout 10000`.
        while let Some(first) = self.probes.under_way.first_entry()
            && now.since(first.get().1) > Duration::from_secs(10)
        {
            first.remove();
        }
        self.happened.push_back(Output::Duplicated(Departed::passed(now, probe)));
    }

    /// A reply to a probe.
    fn reply(&mut self, now: Time, id: PacketId) {
        if let Some((number, at)) = self.probes.under_way.remove(&id.0) {
            self.measured(Delay { now, value: now.since(at), source: Source::Probe(number) });
        }
    }

    /// A delay was measured, and the rate may change by it.
    fn measured(&mut self, delay: Delay) {
        self.setter.on_delay(delay);
        self.account.advance(delay.now, self.rate, self.setter.is_blind(), self.tick != Time::MAX);
        self.apply_rate(delay.now);
    }

    /// Packets come again: the setter wakes.
    fn wake(&mut self, now: Time) {
        self.busy = now;
        if self.tick == Time::MAX && !self.setter.interval().is_zero() {
            self.account.advance(now, self.rate, false, false);
            self.tick = now + self.setter.interval();
            if let Some(every) = self.setter.probes_every() {
                self.probes.due = now + every;
            }
        }
    }

    fn goes_where_probes_go(&self, packet: &P) -> bool {
        packet.travels_back() == (self.side == Side::Down)
    }
}

impl<P: Duplicate> PathElement<P> for Shaper<P> {
    fn accept(&mut self, now: Time, packet: P) {
        let inner = &mut *self.0;
        inner.advance(now);
        let away = inner.goes_where_probes_go(&packet);
        if packet.is_probe() {
            if !away {
                inner.reply(now, packet.id());
            }
            inner.happened.push_back(Output::Departed(Departed::passed(now, packet)));
            return;
        }
        inner.wake(now);
        if away {
            inner.template = Some(packet.clone());
        }
        if packet.travels_back() {
            if let Some(value) = inner.passing.on_acknowledgement(now, &packet) {
                inner.measured(Delay { now, value, source: Source::Flow });
            }
            inner.happened.push_back(Output::Departed(Departed::passed(now, packet)));
            return;
        }
        inner.arrived += u64::from(packet.size());
        if let Some(value) = inner.passing.on_arrival(now, &packet) {
            inner.measured(Delay { now, value, source: Source::Flow });
        }
        inner.link.accept(now, packet);
        inner.advance(now);
    }

    fn poll(&mut self, now: Time) -> Option<Output<P>> {
        if self.0.happened.is_empty() {
            self.0.advance(now);
        }
        self.0.happened.pop_front()
    }

    fn next_wakeup(&self) -> Option<Time> {
        let inner = &*self.0;
        if let Some(output) = inner.happened.front() {
            return Some(output.at());
        }
        let due = inner.link.next_wakeup().unwrap_or(Time::MAX).min(inner.tick).min(inner.probes.due);
        (due != Time::MAX).then_some(due)
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.0.link.for_each(visit);
        let entered = |output: &&Output<P>| !matches!(output, Output::Duplicated(_));
        self.0.happened.iter().filter(entered).for_each(|output| visit(output.packet()));
    }
}

#[cfg(test)]
mod tests;
