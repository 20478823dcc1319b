//! XCP's router (Katabi, Handley, Rohrs, SIGCOMM 2002, `katabi02`).
//!
//! Packets carry their sender's window and RTT, and come back with the change of window that the tightest
//! router grants. A router decides on the sum once per control interval d, its mean RTT, and shares it out
//! packet by packet:
//!
//! ```text
//! phi  = alpha d S - beta Q,  S = C - y                katabi02 eq.1    bytes
//! h    = max(0, gamma y d - |phi|)                     katabi02 eq.2    bytes shuffled between flows
//! xi_p = (h + max(phi, 0)) / (d sum(rtt s / cwnd))     katabi02 eq.6
//! xi_n = (h + max(-phi, 0)) / (d sum(s))               katabi02 eq.9
//!
//! on every packet that leaves:
//!   H = min(H, xi_p rtt^2 s / cwnd - xi_n rtt s)       katabi02 eq.3, eq.4, eq.7
//!   while anything of this interval's two sums is left katabi02 A: residue_pos_fbk, residue_neg_fbk
//! ```
//!
//! So what is gained is the same for every flow, and what is lost is in proportion to what each has. d is
//! sum(rtt rtt s / cwnd) / sum(rtt s / cwnd), the mean over flows, not over packets (katabi02 A).
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | alpha | `alpha` | 1 | 0.55 | abc20 7.3; katabi02 5: 0.4 |
//! | beta | `beta` | 1 | 0.4 | abc20 7.3; katabi02 5: 0.226 |
//! | gamma | `gamma` | 1 | 0.1 | katabi02 3.5.2 |
//! | C | - | bytes/s | measured | what the link could have carried in the interval, used or not (D1) |
//! | y | - | bytes/s | measured | what arrived in the interval, whatever its flow |
//! | Q | `persistent` | bytes | measured | least queue over max(2 ms, (d - q/C) / 2) (xcpq.cc; D3) |
//! | d | `mean_rtt_s` | s | measured | 50 ms before the first header; clamped to 1 ms to 1 s (xcpq.cc) |
//!
//! # Deviations
//!
//! - D1. katabi02's link has one capacity. Here C is what passed of the link's delivery opportunities in the
//!   control interval, as in the ABC authors' code (<https://github.com/prateshg/ABC-NSDI2020>). All rates
//!   are in the link's bytes, framing included.
//! - D2. Timers are looked at when a packet arrives or leaves, and act as at the time they were due: nothing
//!   happens between.
//! - D3. katabi02 takes the least queue that an arriving packet saw in a propagation RTT; the ns-2 code of
//!   the specification's authors (`xcpq.cc`) takes departures and half that time, the packet that leaves
//!   included, so that it never reads zero. Here departures and half the time, without that packet.
//! - D4. An interval in which nothing arrived keeps the mean RTT; `xcpq.cc` falls back to 50 ms, and a link
//!   with outages would forget.
//! - D5. Theorem 1 of katabi02 asks for alpha < pi / (4 sqrt 2) = 0.555 and beta = alpha^2 sqrt 2, which
//!   is 0.428 for 0.55; abc20's 0.4 is taken as printed (open-questions#X-45).
//! - D6. What a flow does not want of its share counts as taken from it, as in `xcpq.cc`; katabi02 A has
//!   three cases for that.

use brakelight_core::ecn::Mark;
use brakelight_core::packet::{Header, Packet};
use brakelight_core::queue::{Backlog, Dequeued, Drops, LinkView, Place, Queue};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit};

use super::fifo::Fifo;

parameters! {
    /// The settings of XCP's router.
    pub struct Config {
        /// Share of the spare rate given out per control interval.
        alpha: f64 = 0.55, in 0.001..=2.0, from "abc20 7.3";
        /// Share of the persistent queue drained per control interval.
        beta: f64 = 0.4, in 0.0..=2.0, from "abc20 7.3";
        /// Least share of the traffic that is shuffled between flows.
        gamma: f64 = 0.1, in 0.0..=1.0, from "katabi02 3.5.2";
        /// Whether the feedback granted in an interval is limited to the interval's two sums.
        residues: bool = true, in .., from "katabi02 A";
        /// The buffer, drop-tail, in packets or bytes; none takes the link's.
        limit: Option<Limit> = None, in .., from "abc20 7.2: 250 packets";
    }
}

/// The control interval before a header was seen (xcpq.cc).
pub(super) const INITIAL_S: f64 = 0.05;
/// The longest RTT that counts, and the shortest control interval (xcpq.cc).
pub(super) const LONGEST_S: f64 = 1.0;
pub(super) const SHORTEST_S: f64 = 0.001;
/// The shortest period of the persistent queue (xcpq.cc).
const SHORTEST_QUEUE_PERIOD_S: f64 = 0.002;

/// What a packet's congestion header says, as far as it makes sense.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sender {
    /// Window, bytes.
    pub(super) cwnd_bytes: f64,
    /// RTT, seconds.
    pub(super) rtt_s: f64,
    /// The change of window granted so far, bytes.
    pub(super) asked_bytes: f64,
}

impl Sender {
    /// The sender of a packet with `header`; `None` where it says nothing to go by.
    #[inline]
    pub(super) fn of(header: Header) -> Option<Sender> {
        let Header::Xcp { cwnd_bytes, rtt_s, feedback_bytes } = header else { return None };
        let known = |value: f32| value.is_finite() && value > 0.0;
        (known(cwnd_bytes) && known(rtt_s) && !feedback_bytes.is_nan()).then_some(Sender {
            cwnd_bytes: f64::from(cwnd_bytes),
            rtt_s: f64::from(rtt_s),
            asked_bytes: f64::from(feedback_bytes),
        })
    }

    /// rtt s / cwnd: the time the sender takes per packet of `size` bytes, in seconds.
    #[inline]
    pub(super) fn spacing_s(&self, size: f64) -> f64 {
        self.rtt_s * size / self.cwnd_bytes
    }

    /// The RTT as the mean takes it, in seconds.
    #[inline]
    pub(super) fn counted_rtt_s(&self) -> f64 {
        self.rtt_s.min(LONGEST_S)
    }

    /// The header of the packet, granted a change of `granted_bytes`.
    #[inline]
    pub(super) fn header(&self, granted_bytes: f64) -> Header {
        Header::Xcp {
            cwnd_bytes: self.cwnd_bytes as f32,
            rtt_s: self.rtt_s as f32,
            feedback_bytes: granted_bytes as f32,
        }
    }
}

/// The two sums that a router shares out: throughput to be gained and to be lost, bytes/s per control
/// interval.
///
/// katabi02 eq.1 and eq.2, divided by d; so is `persistent`, Q.
pub(super) fn sums(config: [f64; 3], spare: f64, arriving: f64, persistent: f64) -> (f64, f64) {
    let [alpha, beta, gamma] = config;
    let change = alpha * spare - beta * persistent;
    let shuffled = (gamma * arriving - libm::fabs(change)).max(0.0);
    (change.max(0.0) + shuffled, (-change).max(0.0) + shuffled)
}

/// What the link could have carried in the `window` that ended `lag` ago, bytes/s.
pub(super) fn capacity_before(link: &mut impl LinkView, lag: Duration, window: Duration) -> f64 {
    if lag.is_zero() {
        return link.capacity(window).as_bps_f64() / 8.0;
    }
    let both = window + lag;
    let since_start = link.capacity(both).as_bps_f64() * both.as_secs_f64();
    let since_end = link.capacity(lag).as_bps_f64() * lag.as_secs_f64();
    ((since_start - since_end) / window.as_secs_f64() / 8.0).max(0.0)
}

/// The first of the times `due`, `due + period`, ... after `now`, but for one: a timer that changes nothing
/// any more is not run through an outage of hours, and runs once more at its end.
pub(super) fn skip(due: Time, period: Duration, now: Time) -> Time {
    let missed = now.since(due).periods(period.max(Duration::from_nanos(1)));
    due.saturating_add(Duration::from_nanos(missed * period.as_nanos()))
}

/// What arrived in a control interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Interval {
    bytes: u64,
    /// sum(rtt s / cwnd), seconds.
    spacing_s: f64,
    /// sum(rtt * rtt s / cwnd), seconds squared.
    rtt_spacing: f64,
}

/// XCP's router.
#[derive(Clone, Debug)]
pub struct Xcp<P> {
    config: Config,
    limit: Limit,
    packets: Fifo<P>,
    /// What the packets held will take of the link.
    waiting: Bytes,
    /// d.
    mean_rtt_s: f64,
    interval: Interval,
    /// The length of the interval under way, and when it ends.
    period: Duration,
    control_due: Time,
    /// The shares: throughput gained per second of spacing, throughput lost per byte.
    gain_per_spacing: f64,
    loss_per_byte: f64,
    /// What is left of the two sums, bytes/s.
    gain_left: f64,
    loss_left: f64,
    /// C of the last interval, bytes/s.
    capacity: f64,
    /// Q, the least queue of the period under way, and when that ends.
    persistent: Bytes,
    least: Bytes,
    queue_due: Time,
}

impl<P: Packet> Xcp<P> {
    /// Returns an empty queue.
    pub fn new(config: &Config, place: &Place) -> Self {
        let initial = Duration::from_secs_f64(INITIAL_S);
        Xcp {
            limit: config.limit.unwrap_or(place.limit),
            config: config.clone(),
            packets: Fifo::default(),
            waiting: Bytes::ZERO,
            mean_rtt_s: INITIAL_S,
            interval: Interval::default(),
            period: initial,
            control_due: Time::ZERO + initial,
            gain_per_spacing: 0.0,
            loss_per_byte: 0.0,
            gain_left: 0.0,
            loss_left: 0.0,
            capacity: place.nominal.as_bps_f64() / 8.0,
            persistent: Bytes::ZERO,
            least: Bytes::ZERO,
            queue_due: Time::ZERO + initial,
        }
    }

    /// Lets the timers act that were due by `now`, in their order.
    #[inline]
    fn catch_up(&mut self, now: Time, link: &mut impl LinkView) {
        while self.queue_due.min(self.control_due) <= now {
            if self.queue_due <= self.control_due {
                self.end_queue_period(now);
            } else {
                self.end_interval(now, link);
            }
        }
    }

    /// Begins the next period of the persistent queue.
    #[cold]
    fn end_queue_period(&mut self, now: Time) {
        let settled = self.persistent == self.least && self.least == self.waiting;
        self.persistent = self.least;
        self.least = self.waiting;
        let drain_s = if self.capacity > 0.0 { self.waiting.as_f64() / self.capacity } else { f64::MAX };
        let period_s = (0.5 * (self.mean_rtt_s - drain_s)).max(SHORTEST_QUEUE_PERIOD_S);
        let period = Duration::from_secs_f64(period_s);
        self.queue_due += period;
        if settled && self.queue_due < now {
            self.queue_due = skip(self.queue_due, period, now);
        }
    }

    /// katabi02 A: on estimation-control timeout.
    #[cold]
    fn end_interval(&mut self, now: Time, link: &mut impl LinkView) {
        let interval = core::mem::take(&mut self.interval);
        (self.gain_left, self.loss_left) = (0.0, 0.0);
        (self.gain_per_spacing, self.loss_per_byte) = (0.0, 0.0);
        if interval.bytes > 0 {
            self.capacity = capacity_before(link, now.since(self.control_due), self.period);
            let arriving = interval.bytes as f64 / self.period.as_secs_f64();
            if interval.spacing_s > 0.0 {
                self.mean_rtt_s = (interval.rtt_spacing / interval.spacing_s).max(SHORTEST_S);
            }
            let gains = [self.config.alpha, self.config.beta, self.config.gamma];
            let spare = self.capacity - arriving;
            (self.gain_left, self.loss_left) =
                sums(gains, spare, arriving, self.persistent.as_f64() / self.mean_rtt_s);
            // katabi02 eq.6, eq.9
            if interval.spacing_s > 0.0 {
                self.gain_per_spacing = self.gain_left / interval.spacing_s;
            }
            self.loss_per_byte = self.loss_left / interval.bytes as f64;
        }
        self.period = Duration::from_secs_f64(self.mean_rtt_s);
        self.control_due += self.period;
        if interval.bytes == 0 && self.control_due < now {
            self.control_due = skip(self.control_due, self.period, now);
        }
    }

    /// What a packet of `size` bytes may change its sender's window by, bytes; the residues pay for it.
    #[inline]
    fn grant(&mut self, sender: &Sender, size: f64) -> f64 {
        // katabi02 eq.4, eq.7, divided by rtt
        let mut gain = self.gain_per_spacing * sender.spacing_s(size);
        let mut loss = self.loss_per_byte * size;
        if !self.config.residues {
            return ((gain - loss) * sender.rtt_s).min(sender.asked_bytes);
        }
        gain = gain.min(self.gain_left);
        loss = loss.min(self.loss_left);
        let asked = sender.asked_bytes / sender.rtt_s;
        let granted = (gain - loss).min(asked);
        if asked < gain - loss {
            // D6
            loss = (loss + (gain - loss - asked)).min(self.loss_left);
            gain = asked + loss;
        }
        self.gain_left = (self.gain_left - gain).max(0.0);
        self.loss_left = (self.loss_left - loss).max(0.0);
        granted * sender.rtt_s
    }

    fn write(&mut self, packet: &mut P, size: f64) {
        let header = packet.header();
        match Sender::of(header) {
            Some(sender) => {
                let granted_bytes = self.grant(&sender, size);
                packet.set_header(sender.header(granted_bytes));
            }
            None => {
                // No RTT yet, no change.
                if let Header::Xcp { cwnd_bytes, rtt_s, .. } = header {
                    packet.set_header(Header::Xcp { cwnd_bytes, rtt_s, feedback_bytes: 0.0 });
                }
            }
        }
    }
}

impl<P: Packet> Queue<P> for Xcp<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, link: &mut impl LinkView, drops: &mut Drops<P>) {
        self.catch_up(now, link);
        let cost = link.cost(packet.size());
        // katabi02 A: on arrival, whether or not there is room.
        self.interval.bytes += cost.0;
        if let Some(sender) = Sender::of(packet.header()) {
            let spacing_s = sender.spacing_s(cost.as_f64());
            self.interval.spacing_s += spacing_s;
            self.interval.rtt_spacing += sender.counted_rtt_s() * spacing_s;
        }
        if self.packets.push_within(self.limit, now, packet, drops) {
            self.waiting += cost;
        }
    }

    fn dequeue(&mut self, now: Time, link: &mut impl LinkView, _drops: &mut Drops<P>) -> Option<Dequeued<P>> {
        self.catch_up(now, link);
        let (mut packet, arrived) = self.packets.pop()?;
        let cost = link.cost(packet.size());
        self.waiting -= cost;
        self.least = self.least.min(self.waiting);
        self.write(&mut packet, cost.as_f64());
        Some(Dequeued { packet, arrived, mark: Mark::None })
    }

    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    fn waiting_since(&self) -> Option<Time> {
        self.packets.head_arrived()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("mean_rtt_s", self.mean_rtt_s);
        visit("capacity_bps", self.capacity * 8.0);
        visit("persistent_bytes", self.persistent.as_f64());
        visit("gain_left_bps", self.gain_left * 8.0);
        visit("loss_left_bps", self.loss_left * 8.0);
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.packets.for_each(visit);
    }
}

#[cfg(test)]
mod tests;
