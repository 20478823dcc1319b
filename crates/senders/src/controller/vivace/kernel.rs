//! The authors' Linux module (PCC-Kernel, `tcp_pcc.c`, branch vivace), which the ABC paper measured. It
//! differs from the UDP program, and so from the paper, in this:
//!
//! - K1, utility. UDP program: of the rate really sent, x^0.9; c = 11.35. Linux module: of the rate asked
//!   for, x; c = 11.
//! - K2, dRTT/dT. UDP program: regression over samples; below 1 % counts as none; falling RTTs are not
//!   rewarded. Linux module: smoothed RTT at the interval's last ACK less that at its first, over the time of
//!   sending; below 3 %, or of less than two packets' time at the rate delivered, counts as none; falling
//!   RTTs are rewarded, except in Starting.
//! - K3, interval. UDP program: an RTT, at least 10 packets. Linux module: until a packet that was sent in it
//!   is answered, at least 50 packets; its first 11 packets are left out of the account, and the last 9 are
//!   not waited for.
//! - K4, starting. UDP program: from 1.2 Mbit/s, twice the rate while utility rises. Linux module: from 4.2
//!   Mbit/s, 1.5 times; losses below 10 % are ignored.
//! - K5, learning. UDP program: pairs, every one of which moves the rate along its gradient. Linux module:
//!   two pairs; where they agree the rate becomes the better one of the second (Probing -> Moving), else four
//!   intervals more.
//! - K6, moving. UDP program: -. Linux module: one interval at the rate; gradient between it and the last
//!   rate, none where they differ by less than 2 %; step = theta_0 gamma m, at least 2.2 % of the rate. A
//!   step up: moving goes on; down: Probing at the new rate.
//! - K7, m. UDP program: 1, 2, 3, 5, 7... Linux module: from 2, one more with each step in the same
//!   direction; each new direction puts that off by a step, at most two.
//! - K8, omega. UDP program: 5 %, 10 points more each time it bites, less when it does not. Linux module: 10
//!   %, 7 points more each time it bites, back to 10 % when it does not or the direction is new.
//! - K9, window. UDP program: without bound. Linux module: 2 rate srtt, at least 4 packets.
//! - K10, timeout. UDP program: halves the rate. Linux module: one packet in flight until the next ACK;
//!   nothing is measured until it is repaired, then the phase goes on with an interval at one of the rates of
//!   Probing; the rate stays.
//! - K11, least rate. UDP program: 100 kbit/s, then Starting. Linux module: two packets per RTT.
//!
//! The first step of Moving compares the rate with itself, so it is always one up by 2.2 %, whatever Probing
//! found. The module's counter of what was answered wraps and drifts; here it only drifts, and is set right
//! after a timeout, as there. A change beyond the whole rate, which wraps there, ends at the least rate.
//! Where the handshake gives no RTT the window is the connection's first one until the first sample; there it
//! is 4 packets.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, LossEvent, Recovery, SendDirective, SendEvent, SpuriousEvent, Timeout,
    TimeoutEvent,
};
use brakelight_core::packet::Header;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::{Gradient, Rules};

/// K5: intervals that decide together.
const INTERVALS: usize = 4;
/// K3
const MIN_PACKETS: i64 = 50;
/// K3: about as many packets at an interval's beginning and end do not count.
const IGNORED_PACKETS: i64 = 10;
/// K4
const START_GROWTH: f64 = 1.5;
/// K4
const START_LOSS: f64 = 0.1;
/// K6: share by which rates must differ to give a gradient.
const LEAST_DIFFERENCE: f64 = 0.02;
/// K6: share of a step's least size, a little above that.
const LEAST_STEP: f64 = 0.022;
/// K7
const FIRST_AMPLIFIER: u32 = 2;
/// K7
const MOST_DELAYED: u32 = 2;
/// K9
const LEAST_WINDOW_PACKETS: u64 = 4;
/// K11
const LEAST_PACKETS_PER_RTT: f64 = 2.0;

/// One monitor interval.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    rate_mbps: f64,
    /// Packets sent before it; none until it began.
    after: Option<i64>,
    /// Packets sent when it ended.
    until: Option<i64>,
    send_start: Time,
    send_end: Time,
    receive_start: Time,
    receive_end: Time,
    first_srtt: Duration,
    last_srtt: Duration,
    delivered: i64,
    lost: i64,
    utility: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Starting,
    Probing,
    Moving,
}

/// What became of a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    None,
    Goes,
    /// Until the next ACK.
    Ended,
}

/// Vivace as the module has it.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    rules: Rules,
    mss: Bytes,
    random: Random,
    phase: Phase,
    rate_mbps: f64,
    last_rate_mbps: f64,
    pacing_mbps: f64,
    cwnd: Bytes,
    srtt: Option<Duration>,
    intervals: [Interval; INTERVALS],
    sending: usize,
    receiving: usize,
    /// All intervals have been sent; their outcome is awaited.
    waiting: bool,
    repair: Repair,
    sent: i64,
    delivered: i64,
    lost: i64,
    /// Packets answered more often than sent, found at the end of a repair.
    spare: i64,
    /// Packets answered, as of the last ACK.
    counted: i64,
    amplifier: u32,
    delayed: u32,
    bound: f64,
    last_utility: f64,
    last_gradient: f64,
}

impl Kernel {
    pub(super) fn new(rules: Rules, connection: &Connection) -> Self {
        let mut kernel = Kernel {
            mss: connection.mss,
            random: connection.random.clone(),
            phase: Phase::Starting,
            rate_mbps: rules.initial_mbps,
            last_rate_mbps: rules.initial_mbps,
            pacing_mbps: rules.initial_mbps,
            cwnd: connection.initial_window,
            srtt: None,
            intervals: [Interval { utility: f64::NEG_INFINITY, ..Interval::default() }; INTERVALS],
            sending: 0,
            receiving: 0,
            waiting: false,
            repair: Repair::None,
            sent: 0,
            delivered: 0,
            lost: 0,
            spare: 0,
            counted: 0,
            amplifier: FIRST_AMPLIFIER,
            delayed: 0,
            bound: rules.bound,
            last_utility: 0.0,
            last_gradient: 0.0,
            rules,
        };
        kernel.plan_probing();
        kernel.begin_interval(connection.now);
        kernel
    }

    // K9
    fn set_window(&mut self) {
        let Some(srtt) = self.srtt else { return };
        let pipe = Rate::from_bps_f64(self.pacing_mbps * 1e6).bytes_in(srtt);
        self.cwnd = Bytes(2 * pipe.0 / self.mss.0 * self.mss.0).max(Bytes(LEAST_WINDOW_PACKETS * self.mss.0));
    }

    fn plan_probing(&mut self) {
        for pair in 0..INTERVALS / 2 {
            let step = self.rules.probe_step * if self.random.chance(0.5) { 1.0 } else { -1.0 };
            for (index, sign) in [(2 * pair, 1.0), (2 * pair + 1, -1.0)] {
                self.intervals[index].rate_mbps = self.rate_mbps * (1.0 + sign * step);
                self.intervals[index].after = None;
            }
        }
        self.restart();
    }

    fn plan_moving(&mut self) {
        self.intervals[0].rate_mbps = self.rate_mbps;
        self.intervals[0].after = None;
        self.restart();
    }

    fn restart(&mut self) {
        (self.sending, self.receiving, self.waiting) = (0, 0, false);
    }

    /// Begins the interval that is next to be sent, or waits at the rate.
    fn begin_interval(&mut self, now: Time) {
        let mut mbps = self.rate_mbps;
        if !self.waiting {
            let interval = &mut self.intervals[self.sending];
            interval.after = Some(self.sent);
            interval.until = None;
            interval.send_start = now;
            (interval.delivered, interval.lost) = (0, 0);
            mbps = interval.rate_mbps;
        }
        self.pacing_mbps = mbps.max(self.rules.min_mbps);
        self.set_window();
    }

    // K1, K2
    fn utility(&self, interval: &Interval) -> f64 {
        if interval.delivered == 0 {
            return 0.0;
        }
        let packet_bits = self.mss.as_f64() * 8.0;
        let receiving_s = interval.receive_end.since(interval.receive_start).as_secs_f64();
        let sending_s = interval.send_end.since(interval.send_start).as_secs_f64();
        let change_s = interval.last_srtt.as_secs_f64() - interval.first_srtt.as_secs_f64();
        let least_change_s = if receiving_s > 0.0 {
            let bps = interval.delivered as f64 * packet_bits / receiving_s;
            2.0 * packet_bits / bps
        } else {
            0.0
        };
        let mut slope = if sending_s > 0.0 { change_s / sending_s } else { 0.0 };
        let starting = self.phase == Phase::Starting;
        if change_s.abs() < least_change_s
            || slope.abs() < self.rules.gradient_filter
            || slope < 0.0 && (starting || self.rules.gradient == Gradient::Positive)
        {
            slope = 0.0;
        }
        let mut loss = interval.lost as f64 / (interval.lost + interval.delivered) as f64;
        if starting && loss < START_LOSS {
            loss = 0.0;
        }
        self.rules.utility(interval.rate_mbps, slope, loss)
    }

    // K4
    fn decide_starting(&mut self, now: Time) {
        let best = self.intervals[0].utility;
        let utility = self.utility(&self.intervals[0]);
        self.last_utility = utility;
        if utility > best {
            self.last_rate_mbps = self.rate_mbps;
            self.rate_mbps *= START_GROWTH;
            self.intervals[0].utility = utility;
            self.intervals[0].rate_mbps = self.rate_mbps;
            self.restart();
        } else {
            (self.rate_mbps, self.last_rate_mbps) = (self.last_rate_mbps, self.rate_mbps);
            self.phase = Phase::Probing;
            self.plan_probing();
        }
        self.begin_interval(now);
    }

    // K5
    fn decide_probing(&mut self, now: Time) {
        for index in 0..INTERVALS {
            self.intervals[index].utility = self.utility(&self.intervals[index]);
        }
        let [a, b, c, d] = self.intervals;
        let same_order = (a.rate_mbps > b.rate_mbps) == (c.rate_mbps > d.rate_mbps);
        let first_is_better = c.utility > d.utility;
        let better = if first_is_better { c } else { d };
        self.last_utility = better.utility;
        if ((a.utility > b.utility) == first_is_better) == same_order {
            self.rate_mbps = better.rate_mbps;
            self.last_rate_mbps = better.rate_mbps;
            self.intervals[0].utility = better.utility;
            self.phase = Phase::Moving;
            self.plan_moving();
        } else {
            self.plan_probing();
        }
        self.begin_interval(now);
    }

    // K6
    fn decide_moving(&mut self, now: Time) {
        let last_utility = self.intervals[0].utility;
        let utility = self.utility(&self.intervals[0]);
        self.intervals[0].utility = utility;
        self.last_utility = utility;
        let difference = self.last_rate_mbps - self.rate_mbps;
        self.last_gradient = if difference.abs() < LEAST_DIFFERENCE * self.rate_mbps {
            0.0
        } else {
            (last_utility - utility) / difference
        };
        let step = self.step(self.last_gradient);
        self.last_rate_mbps = self.rate_mbps;
        self.rate_mbps = (self.rate_mbps + step).max(self.least_mbps());
        if step > 0.0 {
            self.plan_moving();
        } else {
            self.phase = Phase::Probing;
            self.plan_probing();
        }
        self.begin_interval(now);
    }

    // K6, K7, K8
    fn step(&mut self, gradient: f64) -> f64 {
        let up = gradient > 0.0;
        if up == (self.rate_mbps > self.last_rate_mbps) {
            if self.delayed > 0 {
                self.delayed -= 1;
            } else {
                self.amplifier += 1;
            }
        } else {
            self.delayed = (self.delayed + 1).min(MOST_DELAYED);
            self.amplifier = FIRST_AMPLIFIER;
            self.bound = self.rules.bound;
        }
        let mut size = gradient.abs() * self.rules.step * f64::from(self.amplifier);
        if size > self.bound * self.rate_mbps {
            size = self.bound * self.rate_mbps;
            self.bound += self.rules.bound_increment;
        } else {
            self.bound = self.rules.bound;
        }
        let size = size.max(LEAST_STEP * self.rate_mbps);
        if gradient < 0.0 { -size } else { size }
    }

    // K11
    fn least_mbps(&self) -> f64 {
        let per_rtt = self
            .srtt
            .map_or(0.0, |srtt| LEAST_PACKETS_PER_RTT * self.mss.as_f64() * 8e-6 / srtt.as_secs_f64());
        per_rtt.max(self.rules.min_mbps)
    }
}

impl Controller for Kernel {
    fn on_send(&mut self, _event: &SendEvent) -> SendDirective {
        self.sent += 1;
        SendDirective { ecn: self.encoding().sent(), header: Header::None, tag: 0, cwr: false }
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if event.rtt.sample.is_some() || self.srtt.is_some() {
            self.srtt = Some(event.rtt.smoothed);
        }
        let (delivered, lost) = (event.acked.len() as i64, event.lost.len() as i64);
        self.delivered += delivered;
        self.lost += lost;
        self.set_window();
        match self.repair {
            Repair::None => {}
            Repair::Goes => return,
            Repair::Ended => {
                self.repair = Repair::None;
                self.spare = self.delivered + self.lost + (event.inflight.0 / self.mss.0) as i64 - self.sent;
                self.plan_probing();
                self.begin_interval(event.now);
            }
        }
        if !self.waiting {
            let counted = self.counted;
            let interval = &mut self.intervals[self.sending];
            let after = interval.after.unwrap_or(self.sent);
            // K3
            if self.sent - after >= MIN_PACKETS && counted > after {
                interval.until = Some(self.sent);
                interval.send_end = event.now;
                self.sending += 1;
                self.waiting = self.sending == INTERVALS || self.phase != Phase::Probing;
                self.begin_interval(event.now);
            }
        }
        let before = self.counted;
        self.counted = self.delivered + self.lost - self.spare;
        let interval = &mut self.intervals[self.receiving];
        let Some(after) = interval.after else { return };
        if before > after + IGNORED_PACKETS {
            interval.receive_end = event.now;
            interval.last_srtt = event.rtt.smoothed;
            if interval.delivered + interval.lost == 0 {
                interval.receive_start = event.now;
                interval.first_srtt = event.rtt.smoothed;
            }
            interval.delivered += delivered;
            interval.lost += lost;
        }
        if interval.until.is_some_and(|until| until - IGNORED_PACKETS < self.counted) {
            self.receiving += 1;
            match self.phase {
                Phase::Starting => self.decide_starting(event.now),
                Phase::Moving => self.decide_moving(event.now),
                Phase::Probing if self.receiving == INTERVALS => self.decide_probing(event.now),
                Phase::Probing => {}
            }
        }
    }

    fn on_loss(&mut self, _event: &LossEvent) {}

    // K10
    fn on_timeout(&mut self, event: &TimeoutEvent) {
        self.repair = match event.kind {
            Timeout::Pto => return,
            Timeout::Rto => Repair::Goes,
            // The host goes on at once: nothing is left to repair.
            Timeout::PersistentCongestion => Repair::Ended,
        };
        self.cwnd = self.mss;
        self.waiting = true;
        self.pacing_mbps = self.rate_mbps.max(self.rules.min_mbps);
    }

    fn on_spurious_loss(&mut self, event: &SpuriousEvent) {
        self.on_recovery_exit(event.now);
    }

    fn on_recovery_exit(&mut self, _now: Time) {
        if self.repair == Repair::Goes {
            self.repair = Repair::Ended;
        }
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
    }

    fn cwnd(&self) -> Bytes {
        self.cwnd.max(self.mss)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps_f64(self.pacing_mbps * 1e6))
    }

    fn recovery(&self) -> Recovery {
        Recovery::Own
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("rate_bps", self.rate_mbps * 1e6);
        visit("utility", self.last_utility);
        visit("gradient", self.last_gradient);
        visit("starting", f64::from(u8::from(self.phase == Phase::Starting)));
    }
}

#[cfg(test)]
mod tests;
