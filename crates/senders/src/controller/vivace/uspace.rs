//! The paper's Vivace, with the constants of the UDP program (PCC-Uspace): the head of `vivace.rs` describes
//! it.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, LossEvent, PacketInfo, Recovery, SendDirective, SendEvent, Timeout,
    TimeoutEvent,
};
use brakelight_core::packet::Header;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::{Gradient, Rules};

/// Fewest packets of a monitor interval (D2).
const MIN_PACKETS: u64 = 10;
/// Length of a monitor interval before there is an RTT sample.
const INITIAL_RTT: Duration = Duration::from_millis(100);
/// PCC-Uspace: a window of 100,000 packets bounds nothing (D5).
const WINDOW_PACKETS: u64 = 100_000;

/// One monitor interval: packets sent at one rate, and what became of them.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    /// Mbit/s at which to send.
    rate_mbps: f64,
    start: Time,
    /// When it may end.
    due: Time,
    /// Whether its last packet was sent.
    closed: bool,
    last_sent: Time,
    sent: u64,
    sent_bytes: u64,
    /// Packets acknowledged or lost.
    settled: u64,
    lost_bytes: u64,
    regression: Regression,
}

/// Slope of the RTT over the time of sending, by least squares.
#[derive(Clone, Copy, Debug, Default)]
struct Regression {
    count: f64,
    sum_x: f64,
    sum_y: f64,
    sum_xx: f64,
    sum_xy: f64,
}

impl Regression {
    fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        self.sum_x += x;
        self.sum_y += y;
        self.sum_xx += x * x;
        self.sum_xy += x * y;
    }

    /// Zero where there are too few points.
    fn slope(&self) -> f64 {
        let spread = self.count * self.sum_xx - self.sum_x * self.sum_x;
        if self.count < 2.0 || spread <= 0.0 {
            return 0.0;
        }
        (self.count * self.sum_xy - self.sum_x * self.sum_y) / spread
    }
}

impl Interval {
    fn settle(&mut self, packet: &PacketInfo, lost: bool) {
        self.settled += 1;
        if lost {
            self.lost_bytes += packet.size.0;
        }
    }

    fn is_known(&self) -> bool {
        self.closed && self.settled >= self.sent
    }

    /// Mbit/s actually sent: the last packet's own time at the rate included.
    fn sent_mbps(&self) -> f64 {
        let bits = self.sent_bytes as f64 * 8.0;
        let last = bits / self.sent as f64 / (self.rate_mbps * 1e6);
        bits * 1e-6 / (self.last_sent.since(self.start).as_secs_f64() + last)
    }

    fn loss(&self) -> f64 {
        self.lost_bytes as f64 / self.sent_bytes as f64
    }

    fn utility(&self, rules: &Rules) -> f64 {
        let slope = self.regression.slope();
        let gradient = match rules.gradient {
            _ if slope.abs() < rules.gradient_filter => 0.0,
            Gradient::Positive => slope.max(0.0),
            Gradient::Signed => slope,
        };
        rules.utility(self.sent_mbps(), gradient, self.loss())
    }
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The rate and the utility of the last interval, in Mbit/s.
    Starting(Option<(f64, f64)>),
    Learning {
        /// Whether the present pair is measured for the second time.
        again: bool,
    },
}

/// Vivace as the paper and the UDP program have it.
#[derive(Clone, Debug)]
pub(super) struct Uspace {
    rules: Rules,
    mss: Bytes,
    random: Random,
    phase: Phase,
    /// Mbit/s around which pairs are measured.
    rate_mbps: f64,
    /// The intervals whose outcome decides next: one in Starting, two in Learning.
    block: [Interval; 2],
    intervals: usize,
    /// The interval whose packets are leaving.
    sending: Option<usize>,
    /// Which block: packets of earlier ones no longer count.
    serial: u64,
    /// Decisions in one direction, signed.
    trend: i64,
    /// Bounds that bit in one direction, signed.
    bitten: i64,
    last_utility: f64,
    last_gradient: f64,
    last_ack: Time,
    srtt: Duration,
}

impl Uspace {
    pub(super) fn new(rules: Rules, connection: &Connection) -> Self {
        Uspace {
            mss: connection.mss,
            random: connection.random.clone(),
            phase: Phase::Starting(None),
            rate_mbps: rules.initial_mbps,
            block: [Interval::default(); 2],
            intervals: 0,
            sending: None,
            serial: 0,
            trend: 0,
            bitten: 0,
            last_utility: 0.0,
            last_gradient: 0.0,
            last_ack: connection.now,
            srtt: INITIAL_RTT,
            rules,
        }
    }

    /// Plans the next intervals.
    fn plan(&mut self) {
        self.serial += 1;
        let rate = self.rate_mbps;
        let step = match self.phase {
            Phase::Starting(_) => 0.0,
            Phase::Learning { .. } if self.random.chance(0.5) => self.rules.probe_step,
            Phase::Learning { .. } => -self.rules.probe_step,
        };
        self.intervals = if step == 0.0 { 1 } else { 2 };
        self.block =
            [1.0, -1.0].map(|sign| Interval { rate_mbps: rate * (1.0 + sign * step), ..Interval::default() });
    }

    fn begin(&mut self, index: usize, now: Time, srtt: Option<Duration>) {
        let interval = &mut self.block[index];
        interval.start = now;
        interval.due = now + srtt.unwrap_or(INITIAL_RTT);
        self.sending = Some(index);
    }

    /// The tag of a packet of an interval: which block, which of its intervals.
    fn tag(&self, index: usize) -> u64 {
        self.serial * 2 + index as u64
    }

    fn interval_of(&mut self, packet: &PacketInfo) -> Option<&mut Interval> {
        let index = (packet.tag % 2) as usize;
        (packet.tag > 0 && packet.tag / 2 == self.serial).then(|| &mut self.block[index])
    }

    /// All outcomes of the block are known.
    fn decide(&mut self) {
        let [first, second] = self.block;
        let utility = first.utility(&self.rules);
        self.last_utility = utility;
        match self.phase {
            Phase::Starting(Some((rate, best))) if utility <= best => {
                self.rate_mbps = rate;
                self.phase = Phase::Learning { again: false };
            }
            Phase::Starting(_) => {
                self.phase = Phase::Starting(Some((self.rate_mbps, utility)));
                self.rate_mbps *= 2.0;
            }
            Phase::Learning { again } => {
                let rates = first.rate_mbps - second.rate_mbps;
                if !again && rates * (first.loss() - second.loss()) < 0.0 {
                    self.phase = Phase::Learning { again: true };
                    return;
                }
                self.phase = Phase::Learning { again: false };
                let change = first.sent_mbps() - second.sent_mbps();
                if change * rates > 0.0 {
                    self.climb((utility - second.utility(&self.rules)) / change);
                }
            }
        }
    }

    /// Moves the rate along the gradient.
    fn climb(&mut self, gradient: f64) {
        self.last_gradient = gradient;
        let sign = if gradient > 0.0 { 1 } else { -1 };
        // vivace18 4: confidence amplifier
        self.trend = if self.trend * sign > 0 { self.trend + sign } else { sign };
        let tau = self.trend.abs();
        let amplifier = if tau <= 3 { tau } else { 2 * tau - 3 };
        let wanted = amplifier as f64 * self.rules.step * gradient;
        // vivace18 4: dynamic change boundary
        if self.bitten * sign < 0 {
            self.bitten = 0;
        }
        let bound = |bitten: i64| {
            self.rate_mbps * (self.rules.bound + bitten.abs() as f64 * self.rules.bound_increment)
        };
        let most = bound(self.bitten);
        let change = if wanted.abs() > most {
            self.bitten += sign;
            most * sign as f64
        } else {
            while self.bitten != 0 && wanted.abs() <= bound(self.bitten - sign) {
                self.bitten -= sign;
            }
            wanted
        };
        self.set_rate(self.rate_mbps + change);
    }

    /// PCC-Uspace pcc.h: below the lowest rate it starts again.
    fn set_rate(&mut self, mbps: f64) {
        let least = self.rules.min_mbps;
        self.rate_mbps = mbps.max(least);
        if mbps < least {
            self.phase = Phase::Starting(None);
        }
    }

    fn target_mbps(&self) -> f64 {
        self.sending.map_or(self.rate_mbps, |index| self.block[index].rate_mbps)
    }
}

impl Controller for Uspace {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        match self.sending {
            None if self.intervals == 0 => {
                self.plan();
                self.begin(0, event.now, event.srtt);
            }
            Some(index) => {
                let interval = &mut self.block[index];
                if event.now >= interval.due && interval.sent >= MIN_PACKETS {
                    interval.closed = true;
                    self.sending = None;
                    if index + 1 < self.intervals {
                        self.begin(index + 1, event.now, event.srtt);
                    }
                }
            }
            None => {}
        }
        let tag = self.sending.map_or(0, |index| {
            let interval = &mut self.block[index];
            interval.sent += 1;
            interval.sent_bytes += event.size.0;
            interval.last_sent = event.now;
            self.tag(index)
        });
        SendDirective { ecn: self.encoding().sent(), header: Header::None, tag, cwr: false }
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if !event.acked.is_empty() {
            self.last_ack = event.now;
            self.srtt = event.rtt.smoothed;
        }
        for packet in event.acked {
            if let Some(interval) = self.interval_of(packet) {
                interval.settle(packet, false);
            }
        }
        for packet in event.lost {
            if let Some(interval) = self.interval_of(packet) {
                interval.settle(packet, true);
            }
        }
        if let (Some(newest), Some(rtt)) = (event.acked.last(), event.rtt.sample)
            && !newest.retransmission
            && let Some(interval) = self.interval_of(newest)
        {
            let sent = newest.sent_at.since(interval.start).as_secs_f64();
            interval.regression.add(sent, rtt.as_secs_f64());
        }
        if self.intervals > 0 && self.block[..self.intervals].iter().all(Interval::is_known) {
            self.decide();
            self.intervals = 0;
        }
    }

    fn on_loss(&mut self, _event: &LossEvent) {}

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        if event.kind == Timeout::Pto {
            return;
        }
        self.intervals = 0;
        self.sending = None;
        if event.now.since(self.last_ack) < self.srtt {
            return;
        }
        // PCC-Uspace pcc.h: onTimeout
        self.phase = Phase::Learning { again: false };
        self.trend = 0;
        self.bitten = 0;
        self.set_rate(self.rate_mbps * 0.5);
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
    }

    fn cwnd(&self) -> Bytes {
        Bytes(WINDOW_PACKETS * self.mss.0)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps_f64(self.target_mbps() * 1e6))
    }

    fn recovery(&self) -> Recovery {
        Recovery::Own
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("rate_bps", self.rate_mbps * 1e6);
        visit("utility", self.last_utility);
        visit("gradient", self.last_gradient);
        visit("starting", f64::from(u8::from(matches!(self.phase, Phase::Starting(_)))));
    }
}

#[cfg(test)]
mod tests;
