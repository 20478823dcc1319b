//! `variant=adaptive`: ABC's target rate without constants of one link and one round trip. Of no paper; the
//! design, what it was measured against and what is proven of it are in docs/abc-adaptive.md.
//!
//! A router knows what it has ordered: each accelerate that leaves brings two packets one loop delay later,
//! each brake none. So what it will have to serve within a loop delay is what waits and what was ordered in
//! the last one, and the rule steers that sum instead of the queue alone:
//!
//! ```text
//! O   = q + P                                    outstanding: what waits, and what is on its way
//! m   = a mean of O over the last tau / 4        m' = (O - m) / (tau / 4)
//! O*  = mu tau + c e g(tau)                      what the link is expected to serve in tau, and a cushion
//! g   = max(tau / 100 ms, 0.7) up to 110 ms, then max(1.1 - 1.5 (tau / 100 ms - 1.1), -0.2)
//! tr  = eta mu - (m - O*) / delta                in place of abc20 eq.1; delta = 0.7 tau
//! tr <= eta mu + (B - q) / tau                   what the buffer has room for
//! f   = min(max(tr / (2 cr), 1/16), 1)                      abc20 eq.2
//! w   = min(max(w - mu dt, 0), P), and two packets more with each accelerate: what will wait in tau
//! an accelerate only if w is 0, or with its two packets at most 7/8 B
//! ```
//!
//! | symbol | field | unit | value | meaning |
//! |---|---|---|---|---|
//! | P | `ordered` | bytes | measured | twice the bytes that left as accelerate in the last tau |
//! | tau | `tau_bins` | bins of 2 ms | estimated, 2 to 400 ms | the loop's delay: see below |
//! | mu | `forecast.mu()` | bytes/s | measured | a forecast of what the link can carry: see below |
//! | e | `forecast.error()` | bytes | measured | mean absolute error of that forecast over one tau |
//! | m | `outstanding_bytes` | bytes | measured | see below |
//! | w | `to_wait` | bytes | measured | see below |
//! | B | `buffer_bytes` | bytes | the link's | what may wait; a packet counts as 1500 bytes |
//! | c | `cushion` | 1 | 1 | mean errors that may wait where tau is 100 ms |
//! | eta | `eta` | 1 | 1 | abc20 has 0.98 |
//! | cr | - | | | as in abc20 |
//!
//! # The cushion
//!
//! e is an error over one tau, so it grows with tau. Up to 110 ms the cushion grows with tau once more, since
//! on longer loops a link's use hangs more on what waits. On still longer ones the errors are as large as
//! what a link carries in many milliseconds, and a queue of them is too long: there a forecast is lowered a
//! little.
//!
//! # Bursts
//!
//! A flow of a long round trip and a small window sends it in one burst. The burst waits behind itself.
//! With O in the place of m its own packets would be braked for it, and the flow would lose its share to
//! those that send all the time. With m the burst moves the marks of all that pass within a quarter of tau.
//!
//! # The least share
//!
//! A sender that hears 64 brakes in a row at the floor of its window, two packets, and sees no queue in its
//! round trip, takes the marks for spoiled and goes by its other window. Where the floors of many flows fill
//! the link the queue is a part of every round trip, the smallest too: a router that brakes all would be left
//! by its senders one by one, and they would fill its buffer. So f is 1/16 at least. Eq.3 at this share takes
//! windows to 1 / (1 - 2/16) = 1.14 packets, below that floor, and shrinks large ones 7/8 as fast.
//!
//! # Shallow buffers
//!
//! A flight that leaves at the link's rate and is all accelerated comes back at twice that rate, and the half
//! of it waits. A mean over tau does not show this. So what is ordered beyond the link's rate within one tau
//! must find room in what is free of the buffer. Where the buffer has tau mu or more this binds nothing but
//! where a queue stands: f is 1 from tr = 2 cr on.
//!
//! That bounds a rate, and f makes a rate of it only where cr is what leaves. While the first half of a
//! flight leaves, cr is less: it is a mean over T. What was ordered arrives one tau later in the same order
//! and at the same distances, so the queue that it will make is known: w, the queue of a link that serves
//! orders at mu (Lindley's recursion). Where it would exceed the buffer the packet is a brake. An eighth of
//! the buffer is left for what nobody ordered: first flights, and a packet more in each round trip of a flow.
//! Orders older than tau have come or never will, so w is at most P: what a sender did not answer is not held
//! against it.
//!
//! # The loop's delay
//!
//! What was ordered in bin k arrives in bin k + tau. For each lag L the router keeps a mean, over about one
//! second, of `(arrived[k] - ordered[k - L])^2` and chooses the lag at which it is least. Another lag takes
//! its place only where its mean is 20 % lower: with several round trips the choice does not flutter. tau is
//! the least lag that was chosen within the last five to ten seconds: the queue of another router on the path
//! is a part of the lag, and comes and goes. Until bins of all lags have been seen, in the first 400 ms, tau
//! is the lag itself, or 100 ms where that is less: while nothing has come back every lag up to now is wrong.
//! The second flight of a flow comes one loop delay after what ordered it, so a start is not given orders for
//! a longer loop. A lag that was wrong so early must not stay the least for seconds.
//!
//! # The forecast
//!
//! mu is a mean over windows of 4 ms to 1 s, no longer than four loop delays, each weighted by the inverse
//! fourth power of the error that it has made lately as a forecast of the next tau. Steady links are
//! followed within milliseconds, noisy ones averaged.
//!
//! # Cost
//!
//! Per packet a few additions. Every 2 ms in which something happens two hundred lags and nine windows. No
//! state per flow.

use alloc::boxed::Box;
use core::mem;

use brakelight_core::queue::LinkView;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit};
use brakelight_estimates::forecast::{Forecast, HISTORY};

/// Length of a bin.
const BIN: Duration = Duration::from_millis(2);
const BIN_S: f64 = 0.002;
/// Loop delays that can be told apart, in bins: up to 400 ms.
const LAGS: usize = 200;
/// Bins of orders that are remembered.
const ORDERS: usize = 256;
/// The loop delay before one is known, in bins: 100 ms, that of abc20.
const FIRST_LAG: usize = 50;
/// For how long the least lag that was chosen is taken for tau, in bins: twice five seconds.
const LEAST_FOR: u64 = 2500;
/// Share of one bin in the means of the lags: about one second.
const LAG_GAIN: f64 = 0.002;
/// By how much a lag must be better than the present one.
const BETTER: f64 = 0.8;
/// The shortest window of the forecast, and the loop delay that counts at least for the longest, in bins.
const SHORTEST_WINDOW: usize = 2;
const LEAST_FOR_WINDOW: usize = 10;
/// The loop delay at which `cushion` mean errors may wait: on shorter ones less, but no less than this share
/// of them.
const CUSHION_TAU_S: f64 = 0.1;
const LEAST_CUSHION: f64 = 0.7;
/// The most of them, on a loop of 110 ms; by how much less on one that is longer by `CUSHION_TAU_S`; and the
/// end of that.
const MOST_CUSHION: f64 = 1.1;
const CUSHION_FALL: f64 = 1.5;
const LONG_CUSHION: f64 = -0.2;
/// The time over which what is outstanding is smoothed, over tau.
const SMOOTHED_OVER_TAU: f64 = 0.25;
/// The least share of accelerates.
pub(super) const LEAST_SHARE: f64 = 1.0 / 16.0;
/// delta over tau: above the 2/3 of abc20's theorem.
const DELTA_OVER_TAU: f64 = 0.7;
const TAU_OVER_DELTA: f64 = 1.0 / DELTA_OVER_TAU;
/// The share of the buffer that may be ordered.
const ORDERED_BUFFER: f64 = 7.0 / 8.0;
/// What a packet counts of a buffer that is given in packets.
const PACKET: Bytes = Bytes(1500);

/// What `variant=adaptive` knows of its link and its loop.
#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    eta: f64,
    cushion: f64,
    /// Bytes that may wait.
    buffer_bytes: f64,
    /// Whether tau was given.
    given: bool,
    tau_bins: usize,
    /// The lag at which arrivals and orders agree best.
    lag: usize,
    /// The least such lag of the last half of ten seconds, and of the present one.
    least: [usize; 2],
    /// The number of the present half.
    half: u64,
    /// The number of the bin that is open, from the start of time; none before the first event.
    bin: Option<u64>,
    /// Up to when the link's capacity has been counted, and the bytes of it that are the open bin's.
    counted: Time,
    part: f64,
    /// Bytes that arrived and that were ordered in the open bin.
    arrived: f64,
    ordered_now: f64,
    /// Bytes ordered in the last bins, by their number modulo [`ORDERS`].
    ordered: Box<[f64; ORDERS]>,
    /// The sum of those of the last tau, up to the end of the last closed bin, and the first of them.
    on_its_way: f64,
    oldest: f64,
    /// Mean squared difference of what arrives and what was ordered, by lag less one, in bytes^2.
    mismatch: Box<[f64; LAGS]>,
    /// Bins since the start, up to the number of lags.
    seen: usize,
    /// mu and e: of what the link could have carried.
    forecast: Forecast,
    /// The mean of what was outstanding lately, and its time; none before the first.
    outstanding_bytes: f64,
    smoothed_at: Option<Time>,
    /// w at `foreseen_at`.
    to_wait: f64,
    foreseen_at: Time,
}

impl Adaptive {
    pub(super) fn new(eta: f64, cushion: f64, loop_delay: Option<Duration>, buffer: Limit) -> Self {
        let bins = |delay: Duration| (delay.as_nanos() / BIN.as_nanos()) as usize;
        let tau_bins = loop_delay.map_or(FIRST_LAG, bins).clamp(1, LAGS);
        Adaptive {
            eta,
            cushion,
            buffer_bytes: buffer.in_packets(PACKET) * PACKET.as_f64(),
            given: loop_delay.is_some(),
            tau_bins,
            lag: tau_bins,
            least: [LAGS; 2],
            half: 0,
            bin: None,
            counted: Time::ZERO,
            part: 0.0,
            arrived: 0.0,
            ordered_now: 0.0,
            ordered: Box::new([0.0; ORDERS]),
            on_its_way: 0.0,
            oldest: 0.0,
            mismatch: Box::new([0.0; LAGS]),
            seen: 0,
            forecast: Forecast::new(BIN_S, SHORTEST_WINDOW, LEAST_FOR_WINDOW),
            outstanding_bytes: 0.0,
            smoothed_at: None,
            to_wait: 0.0,
            foreseen_at: Time::ZERO,
        }
    }

    /// A packet of a flow that answers marks arrives, and takes `cost` of the link.
    pub(super) fn arrive(&mut self, now: Time, cost: Bytes, link: &mut impl LinkView) {
        self.advance(now, link);
        self.arrived += cost.as_f64();
    }

    /// Returns whether the two packets that an accelerate of `cost` brings will find room in the buffer. They
    /// do where nothing will wait: a buffer of two packets would have no accelerates else.
    pub(super) fn has_room(&self, cost: Bytes) -> bool {
        self.to_wait <= 0.0 || self.to_wait + 2.0 * cost.as_f64() <= ORDERED_BUFFER * self.buffer_bytes
    }

    /// A packet leaves as accelerate: it brings two.
    pub(super) fn order(&mut self, cost: Bytes) {
        let brings = 2.0 * cost.as_f64();
        self.ordered_now += brings;
        self.to_wait += brings;
    }

    /// Returns mu and the target rate at `now`, in bit/s, where `waiting` is held.
    pub(super) fn rates_bps(&mut self, now: Time, waiting: Bytes, link: &mut impl LinkView) -> (f64, f64) {
        self.advance(now, link);
        let tau_s = self.tau_bins as f64 * BIN_S;
        let aim = self.eta * self.forecast.mu();
        let ordered = self.ordered_within_tau(now);
        self.smooth(now, waiting.as_f64() + ordered, tau_s);
        let passed = now.since(mem::replace(&mut self.foreseen_at, now));
        let left = self.to_wait - self.forecast.mu() * passed.as_secs_f64();
        self.to_wait = left.max(0.0).min(ordered);
        let cushion = self.cushion * cushion_share(tau_s);
        let wanted = self.forecast.mu() * tau_s + cushion * self.forecast.error();
        // What is ordered within tau beyond what is aimed at; below zero where too much is outstanding.
        let more = (wanted - self.outstanding_bytes) * TAU_OVER_DELTA;
        let room = self.buffer_bytes - waiting.as_f64();
        let more = if more < room { more } else { room };
        (8.0 * self.forecast.mu(), 8.0 * (aim + more / tau_s))
    }

    /// Takes what is outstanding at `now` into its mean.
    fn smooth(&mut self, now: Time, outstanding: f64, tau_s: f64) {
        let share = self
            .smoothed_at
            .replace(now)
            .map_or(1.0, |before| (now.since(before).as_secs_f64() / (SMOOTHED_OVER_TAU * tau_s)).min(1.0));
        self.outstanding_bytes += share * (outstanding - self.outstanding_bytes);
    }

    /// Returns P: bytes ordered in (now - tau, now]. Of the oldest bin as large a part has arrived as has
    /// passed of the open one.
    fn ordered_within_tau(&self, now: Time) -> f64 {
        let passed = now.since(Time::ZERO).as_nanos() % BIN.as_nanos();
        let part = passed as f64 / BIN.as_nanos() as f64;
        self.on_its_way - part * self.oldest + self.ordered_now
    }

    /// Internal state worth plotting.
    pub(super) fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("loop_delay_ms", self.tau_bins as f64 * BIN_S * 1000.0);
        visit("on_its_way_bytes", self.on_its_way + self.ordered_now);
        visit("outstanding_bytes", self.outstanding_bytes);
        visit("to_wait_bytes", self.to_wait);
        visit("forecast_error_bytes", self.forecast.error());
    }

    /// Closes the bins that ended by `now`.
    #[inline]
    fn advance(&mut self, now: Time, link: &mut impl LinkView) {
        let bin = now.since(Time::ZERO).as_nanos() / BIN.as_nanos();
        if self.bin != Some(bin) {
            self.close(now, bin, link);
        }
    }

    fn close(&mut self, now: Time, bin: u64, link: &mut impl LinkView) {
        let passed = now.since(mem::replace(&mut self.counted, now));
        let in_open = Duration::from_nanos(now.since(Time::ZERO).as_nanos() % BIN.as_nanos());
        let Some(open) = self.bin.replace(bin) else {
            // As if the link had always had the rate that it says it had.
            let bytes_per_s = link.capacity(BIN * HISTORY as u64).as_bps_f64() / 8.0;
            self.forecast.assume(bin.wrapping_sub(1), bytes_per_s * BIN_S);
            self.part = bytes_per_s * in_open.as_secs_f64();
            return;
        };
        let bins = bin - open;
        // Up to the end of the last closed bin, and not to the event that came after it: packets come at
        // other places within their bins, and a steady link would seem to waver.
        let part = carried(in_open, link);
        let per_bin = (self.part + carried(passed, link) - part) / bins as f64;
        self.part = part;
        if bins > LAGS as u64 {
            // Nothing came for longer than any loop: what was ordered is not on its way any more.
            self.ordered.fill(0.0);
            self.arrived = 0.0;
            self.ordered_now = 0.0;
            self.forecast.note(open, per_bin, bins);
        } else {
            for closed in open..bin {
                self.compare(closed);
                self.forecast.note(closed, per_bin, 1);
                self.forecast.judge(closed, self.tau_bins);
            }
            if !self.given {
                self.choose_lag();
                self.take_least(bin);
            }
        }
        let last = bin - 1;
        let within = (0..self.tau_bins as u64).map(|back| self.ordered[at(last.wrapping_sub(back), ORDERS)]);
        self.on_its_way = within.sum();
        self.oldest = self.ordered[at(last.wrapping_sub(self.tau_bins as u64 - 1), ORDERS)];
        self.forecast.update(last, self.tau_bins);
    }

    /// Holds what arrived in the bin `closed` against what was ordered in each of those before it.
    fn compare(&mut self, closed: u64) {
        for (index, mismatch) in self.mismatch.iter_mut().enumerate() {
            let before = closed.wrapping_sub(1 + index as u64);
            let off = self.arrived - self.ordered[at(before, ORDERS)];
            *mismatch += LAG_GAIN * (off * off - *mismatch);
        }
        self.ordered[at(closed, ORDERS)] = self.ordered_now;
        self.arrived = 0.0;
        self.ordered_now = 0.0;
        self.seen = (self.seen + 1).min(LAGS);
    }

    fn choose_lag(&mut self) {
        let mut best = self.lag - 1;
        for (index, mismatch) in self.mismatch.iter().enumerate() {
            if *mismatch < self.mismatch[best] {
                best = index;
            }
        }
        if self.mismatch[best] < BETTER * self.mismatch[self.lag - 1] {
            self.lag = best + 1;
        }
    }

    /// Takes the least lag of the last five to ten seconds for tau; at the start the lag itself.
    fn take_least(&mut self, bin: u64) {
        if self.seen < LAGS {
            self.tau_bins = self.lag.min(FIRST_LAG);
            return;
        }
        let half = bin / LEAST_FOR;
        if half != self.half {
            self.least = [self.least[1], LAGS];
            self.half = half;
        }
        self.least[1] = self.least[1].min(self.lag);
        self.tau_bins = self.least[0].min(self.least[1]);
    }
}

/// Returns g, the share of the cushion at a loop delay of `tau_s`.
fn cushion_share(tau_s: f64) -> f64 {
    let loops = tau_s / CUSHION_TAU_S;
    if loops <= MOST_CUSHION {
        loops.max(LEAST_CUSHION)
    } else {
        (MOST_CUSHION - CUSHION_FALL * (loops - MOST_CUSHION)).max(LONG_CUSHION)
    }
}

/// Bytes that the link could have carried in the last `window`.
fn carried(window: Duration, link: &mut impl LinkView) -> f64 {
    if window.is_zero() { 0.0 } else { link.capacity(window).as_bps_f64() / 8.0 * window.as_secs_f64() }
}

/// The place of bin number `bin` in a ring of so many, a power of two: numbers may wrap around.
fn at(bin: u64, ring: usize) -> usize {
    (bin % ring as u64) as usize
}

#[cfg(test)]
mod tests;
