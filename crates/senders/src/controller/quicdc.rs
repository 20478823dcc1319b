//! QUIC-DC (quicdc): Westwood+ that reacts, besides, when packets begin to queue for too long on their way
//! forward.
//!
//! ```text
//! OWQD_i  from the receiver's timestamps, see `estimate::one_way_queueing`             quicdc eq.3 to eq.5
//! delay event:  OWQD_i >= theta, of a packet sent after the last reaction              quicdc eq.6, D2
//! theta  = a time, or a share of RTT_max - RTT_min, within 5 ms and `most` if given    quicdc 5, D3
//! delay event, loss:    ssthresh = max(BWE RTT_min, 2 MSS), cwnd = min(cwnd, ssthresh) quicdc 3
//! persistent congestion: as Westwood+ after a timeout                                  open-questions#X-64
//! BWE    = Westwood+'s filter, with the weights 2/8 old and 6/8 new in both stages     open-questions#X-60
//! growth = Westwood+'s: slow start below ssthresh, one packet per round trip above     grieco04
//! pacing = pacing_gain cwnd / srtt                                                     D4
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | theta | `threshold` | share or time | 50 % | quicdc 5.2 |
//! | RTT_max | `rtt_max` | time | - | quicdc eq.2 |
//! | - | `most`, `forget` | time, losses | 60 ms, 3 | D3 |
//! | RTT_min | `OneWayQueueing::rtt_min` | time | - | quicdc eq.1 |
//! | BWE, cwnd | `westwood` | bytes/s, bytes | - | quicdc 3 |
//! | - | `baseline`, `horizon` | choice, time | bounded, none | `estimate::one_way_queueing` |
//! | - | `pacing_gain` | 1 | 1 | mvfst CongestionControlFunctions.cpp, calculatePacingRate |
//!
//! # Deviations
//!
//! - D1. The paper's equations are lost in the text at hand; they are what its words say
//!   (open-questions#X-59).
//! - D2. One reaction per round trip, whatever it is to: a packet sent before the last reaction says nothing
//!   new. The paper does not say; without this the window would be set again by every ACK until the queue is
//!   gone, while the estimate falls (open-questions#X-62).
//! - D3. A share needs RTT_max, which the paper measured beforehand. Here it is the largest round trip as of
//!   the last loss, which is what a full buffer shows. A buffer too deep to overflow never shows it, and a
//!   path that once stood still shows far too much. So a share means no more than `most`, which is the
//!   threshold until RTT_max is known, and no less than 5 ms, which a path's jitter reaches. `forget` loss
//!   events in a row, at most one per reaction, without a delay event say that the buffer is full before the
//!   threshold is reached: RTT_max becomes what they showed. A path that loses packets at random is taken for
//!   one with a short buffer, so that theta falls to 5 ms and stays there. The paper's settings are
//!   `most=none,forget=none`.
//! - D4. mvfst's Pacer.cpp spaces bursts of at least five packets at cwnd / srtt, checked every 200 us in the
//!   testbed; the modelled host's QUIC spaces packets at that rate with a credit of ten, or of what the
//!   flow's `pacing_burst` says. Public code that seems to be the authors' never sets mvfst's pacing rate, so
//!   their Westwood+ and QUIC-DC may have been unpaced: `pacing=false`.
//! - D5. The Westwood of Linux 6.12 tcp_westwood.c and of mvfst forget RTT_min after a timeout only, and
//!   after 20 s; here `horizon` does it for the threshold, and the window's RTT_min starts over after a
//!   timeout only.

use alloc::format;
use alloc::string::{String, ToString};

use brakelight_core::controller::{
    AckEvent, Connection, Controller, IdleEvent, LossEvent, SpuriousEvent, Timeout, TimeoutEvent,
};
use brakelight_core::ecn::Encoding;
use brakelight_core::parameters::{Domain, OrNone, Value};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_estimates::one_way_queueing::{Baseline, OneWayQueueing};

use super::westwood::{self, Westwood, estimate_parameters};

/// How long packets may queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// A share of RTT_max - RTT_min.
    Share(f64),
    /// A time.
    Time(Duration),
}

/// What a threshold may be.
struct ThresholdRange;

estimate_parameters! {
    /// QUIC-DC's settings.
    pub struct Config {
        {
        /// One-way queueing delay that counts as congestion: a time, or a share of the largest less the
        /// smallest RTT.
        threshold: Threshold = Threshold::Share(0.5), in ThresholdRange, from "quicdc 5.2";
        /// The largest threshold that a share may mean, and the threshold while the largest RTT is unknown.
        most: Option<Duration> = Some(Duration::from_millis(60)), in OrNone(Duration::from_millis(5)..=Duration::from_secs(10)), from "not in quicdc (D3)";
        /// After how many loss events in a row without a delay event the largest RTT is what they showed.
        forget: Option<u32> = Some(3), in OrNone(1..=1000), from "not in quicdc (D3)";
        }
        filter = Fast from "quicdc eq.7";
        from "not in quicdc; code for mvfst that seems to be its authors': since-loss";
        {
        /// What the one-way delay is compared with.
        baseline: Baseline = Baseline::Bounded, in .., from "quicdc eq.5";
        /// For how long the smallest RTT is remembered that the threshold and the baseline start from.
        horizon: Option<Duration> = None, in OrNone(Duration::from_millis(100)..=Duration::from_secs(3600)), from "not in quicdc";
        /// Pacing rate over window per smoothed RTT.
        pacing_gain: f64 = 1.0, in 0.5..=10.0, from "mvfst CongestionControlFunctions.cpp, calculatePacingRate";
        /// Whether to pace; without, packets leave as the window lets them.
        pacing: bool = true, in .., from "quicdc 5.1; what seems to be the authors' public code does not";
        }
    }
}

/// The least threshold that a share may mean: below it, a path's jitter is a queue.
const LEAST: Duration = Duration::from_millis(5);

/// QUIC-DC's window.
#[derive(Clone, Debug)]
pub struct QuicDc {
    config: Config,
    westwood: Westwood,
    delay: OneWayQueueing,
    /// The largest round trip so far, and as of the last loss.
    largest_rtt: Duration,
    rtt_max: Option<Duration>,
    /// The largest round trip since the last loss or delay event, and as of the losses since the latter.
    since_loss: Duration,
    shown: Duration,
    /// Losses since the last delay event.
    unforeseen: u32,
    srtt: Option<Duration>,
    /// When the window was last reduced.
    reacted_at: Option<Time>,
    delay_events: u64,
}

impl QuicDc {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        let westwood = westwood::Values {
            filter: config.filter,
            sampled: config.sampled,
            rtt_min_expiry: config.rtt_min_expiry,
            ..westwood::Values::default()
        };
        let westwood = westwood::Config::new(westwood).expect("any filter goes with the defaults");
        QuicDc {
            westwood: Westwood::new(westwood, connection),
            delay: OneWayQueueing::new(config.baseline, config.horizon),
            largest_rtt: Duration::ZERO,
            rtt_max: None,
            since_loss: Duration::ZERO,
            shown: Duration::ZERO,
            unforeseen: 0,
            srtt: None,
            reacted_at: None,
            delay_events: 0,
            config,
        }
    }

    /// How long packets may queue, once it is known.
    fn threshold(&self) -> Option<Duration> {
        match self.config.threshold {
            Threshold::Time(time) => Some(time),
            Threshold::Share(share) => {
                let most = self.config.most;
                // Where the buffer shows no delay there is none to take a share of.
                let room = self
                    .rtt_max
                    .and_then(|rtt_max| Some(rtt_max.saturating_sub(self.delay.rtt_min()?)))
                    .filter(|room| !room.is_zero());
                let Some(room) = room else { return most };
                let share = room.mul_f64(share);
                Some(most.map_or(share, |most| share.max(LEAST).min(most)))
            }
        }
    }

    /// Learns from a loss how much the buffer holds.
    fn learn(&mut self, is_news: bool) {
        if is_news {
            self.unforeseen += 1;
            self.shown = self.shown.max(core::mem::take(&mut self.since_loss));
            if self.config.forget == Some(self.unforeseen) {
                self.unforeseen = 0;
                self.largest_rtt = core::mem::take(&mut self.shown);
            }
        }
        self.rtt_max = (!self.largest_rtt.is_zero()).then_some(self.largest_rtt);
    }

    /// Whether something that happened to a packet sent at `sent_at` is news.
    fn is_news(&self, sent_at: Time) -> bool {
        self.reacted_at.is_none_or(|reacted_at| sent_at > reacted_at)
    }
}

impl Controller for QuicDc {
    fn decides_on_send(&self) -> bool {
        false
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.westwood.on_ack(event);
        if let Some(sample) = event.rtt.sample {
            let rtt = sample.saturating_sub(event.ack_delay);
            self.largest_rtt = self.largest_rtt.max(rtt);
            self.since_loss = self.since_loss.max(rtt);
            self.srtt = Some(event.rtt.smoothed);
        }
        let (threshold, reacted_at) = (self.threshold(), self.reacted_at);
        let mut late = false;
        self.delay.on_ack(event, |packet, queueing| {
            // quicdc eq.6
            let exceeds = threshold.is_some_and(|threshold| queueing >= threshold);
            late |= exceeds && reacted_at.is_none_or(|reacted_at| packet.sent_at > reacted_at);
        });
        if late {
            self.westwood.reduce();
            self.reacted_at = Some(event.now);
            self.delay_events += 1;
            self.unforeseen = 0;
            (self.since_loss, self.shown) = (Duration::ZERO, Duration::ZERO);
        }
    }

    fn on_loss(&mut self, event: &LossEvent) {
        self.learn(self.is_news(event.sent_at));
        self.on_ce(event);
    }

    fn on_ce(&mut self, event: &LossEvent) {
        // open-questions#X-62
        if self.is_news(event.sent_at) {
            self.westwood.on_loss(event);
            self.reacted_at = Some(event.now);
        }
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        self.westwood.on_timeout(event);
        if event.kind != Timeout::Pto {
            self.reacted_at = Some(event.now);
        }
    }

    fn on_spurious_loss(&mut self, event: &SpuriousEvent) {
        self.westwood.on_spurious_loss(event);
    }

    fn on_recovery_exit(&mut self, now: Time) {
        self.westwood.on_recovery_exit(now);
    }

    fn on_idle_restart(&mut self, event: &IdleEvent) {
        self.westwood.on_idle_restart(event);
    }

    fn cap_cwnd(&mut self, most: Bytes) {
        self.westwood.cap_cwnd(most);
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.westwood.on_mtu_change(mss);
    }

    fn cwnd(&self) -> Bytes {
        self.westwood.cwnd()
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.westwood.ssthresh()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        if !self.config.pacing {
            return Some(Rate::MAX);
        }
        let bits = 8.0 * self.config.pacing_gain * self.cwnd().as_f64();
        // A smoothed RTT of nothing paces nothing.
        self.srtt.filter(|srtt| !srtt.is_zero()).map(|srtt| Rate::from_bps_f64(bits / srtt.as_secs_f64()))
    }

    fn encoding(&self) -> Encoding {
        self.westwood.encoding()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.westwood.inspect(visit);
        visit("owqd_ms", self.delay.queueing().as_millis_f64());
        if let Some(threshold) = self.threshold() {
            visit("threshold_ms", threshold.as_millis_f64());
        }
        visit("delay_events", self.delay_events as f64);
    }
}

impl Threshold {
    /// The threshold, where it is a time of its own and not a share of what is measured.
    pub(crate) fn time(self) -> Option<Duration> {
        match self {
            Threshold::Time(time) => Some(time),
            Threshold::Share(_) => None,
        }
    }
}

impl Value for Threshold {
    fn unit() -> String {
        "share or time".to_string()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let read = match text.strip_suffix('%') {
            Some(percent) => percent
                .trim()
                .parse()
                .ok()
                .filter(|p: &f64| p.is_finite())
                .map(|p| Threshold::Share(p / 100.0)),
            None => text.parse().ok().map(Threshold::Time),
        };
        read.ok_or_else(|| "a share such as `20%` or a time such as `20ms`".to_string())
    }

    fn show(&self) -> String {
        match self {
            // A share that was read from hundredths shows as them.
            Threshold::Share(share) => format!("{}%", libm::round(share * 1e10) / 1e8),
            Threshold::Time(time) => time.to_string(),
        }
    }
}

impl Domain<Threshold> for ThresholdRange {
    fn admits(&self, value: &Threshold) -> bool {
        match value {
            Threshold::Share(share) => (0.01..=1.0).contains(share),
            Threshold::Time(time) => (Duration::from_micros(100)..=Duration::from_secs(10)).contains(time),
        }
    }

    fn describe(&self) -> String {
        "1% to 100%, or 100us to 10s".to_string()
    }
}

#[cfg(test)]
mod tests;
