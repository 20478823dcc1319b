//! Westwood+ (Mascolo et al. 2001; Grieco and Mascolo 2004), with the bandwidth filter of Linux 6.12
//! `tcp_westwood.c`.
//!
//! ```text
//! every Delta = max(RTT, 50 ms):  b = bytes acknowledged / Delta                              grieco04
//!                                 n = w n + (1 - w) b;  BWE = w BWE + (1 - w) n               both stages
//! loss:     ssthresh = max(BWE RTT_min, 2 MSS), cwnd = min(cwnd, ssthresh)                    mascolo01
//! timeout:  the same ssthresh, cwnd = 1 MSS
//! growth:   as NewReno
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | w | `weight` | 1 | 7/8 (fast: 2/8; sigmoid: 0 to 6/8) | Linux 6.12 tcp_westwood.c; quicdc eq.7 |
//! | Delta | `interval` | time | 50 ms | Linux 6.12 tcp_westwood.c, TCP_WESTWOOD_RTT_MIN |
//! | n | `n_bytes_per_s` | bytes/s | first sample | Linux 6.12 tcp_westwood.c, westwood_filter |
//! | BWE | `bwe_bytes_per_s` | bytes/s | first sample | Linux 6.12 tcp_westwood.c, westwood_filter |
//! | RTT_min | `rtt_min` | time | - | Linux 6.12 tcp_westwood.c, update_rtt_min |
//!
//! Deviations:
//! D1 the window is set when the episode starts, as Mascolo has it. Linux 6.12 tcp_westwood.c halves it there
//!    and sets it when recovery ends: `reduction=linux`. By then the filter has seen another round trip,
//!    which matters after slow start.
//! D2 what counts as acknowledged is what the host says, SACKed packets included: that is what Linux 6.12
//!    tcp_westwood.c, westwood_acked_count, reconstructs from duplicate ACKs.
//! D3 after a timeout RTT_min starts over with the next sample, as in Linux 6.12 tcp_westwood.c,
//!    tcp_westwood_event.
//! D4 the filter of the QUIC-DC authors is `filter=fast`. The paper's formula is lost; the weights are those
//!    of code that seems to be theirs, and of an earlier revision of it `filter=sigmoid`
//!    (open-questions#X-60).
//! D5 that code counts no bytes of packets which were sent before the last loss was found, but it counts the
//!    time: `sampled=since-loss`. It takes the next RTT for the smallest where none was smaller for 20 s:
//!    `rtt_min_expiry`.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, IdleEvent, LossEvent, SpuriousEvent, Timeout, TimeoutEvent,
};
use brakelight_core::ecn::Encoding;
use brakelight_core::parameters::OrNone;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::window::{self, AdditiveIncrease};

choices! {
    /// Which implementation's weight the bandwidth filter uses.
    pub enum Filter {
        /// 7/8, as Linux 6.12 tcp_westwood.c.
        Linux = "linux",
        /// 2/8, so that the estimate keeps up with slow start.
        Fast = "fast",
        /// 6/8 of a sigmoid of the number of samples less 16: next to nothing in slow start, 6/8 later.
        Sigmoid = "sigmoid",
    }
}

impl Filter {
    /// The weight of the old value after `samples` of them.
    fn weight(self, samples: u32) -> f64 {
        match self {
            // Linux 6.12 tcp_westwood.c, westwood_do_filter
            Filter::Linux => 0.875,
            // open-questions#X-60
            Filter::Fast => 0.25,
            Filter::Sigmoid => 0.75 / (1.0 + libm::exp(16.0 - f64::from(samples))),
        }
    }
}

choices! {
    /// When the window becomes BWE times RTT_min.
    pub enum Reduction {
        /// When the episode starts.
        Mascolo = "mascolo",
        /// When it ends; half the window until then.
        Linux = "linux",
    }
}

choices! {
    /// Which acknowledged bytes make the bandwidth samples.
    pub enum Sampled {
        /// All.
        All = "all",
        /// Those of packets that were sent after the last loss was found. The time before them counts.
        SinceLoss = "since-loss",
    }
}

/// As `parameters!`, with what Westwood+ and QUIC-DC share of the bandwidth estimate between those that stand
/// before and after it.
macro_rules! estimate_parameters {
    (
        $(#[$meta:meta])*
        pub struct $Config:ident {
            { $($before:tt)* }
            filter = $filter:ident from $of_filter:literal;
            from $source:literal;
            { $($after:tt)* }
        }
    ) => {
        brakelight_core::parameters! {
            $(#[$meta])*
            pub struct $Config {
                $($before)*
                /// Whose weight of the old value both stages of the bandwidth filter have.
                filter: $crate::controller::westwood::Filter = $crate::controller::westwood::Filter::$filter, in .., from $of_filter;
                /// Which acknowledged bytes make the bandwidth samples.
                sampled: $crate::controller::westwood::Sampled = $crate::controller::westwood::Sampled::All, in .., from $source;
                /// After how long without a smaller RTT the next sample becomes the smallest.
                rtt_min_expiry: Option<brakelight_core::time::Duration> = None, in brakelight_core::parameters::OrNone(brakelight_core::time::Duration::from_millis(100)..=brakelight_core::time::Duration::from_secs(3600)), from $source;
                $($after)*
            }
        }
    };
}
pub(super) use estimate_parameters;

estimate_parameters! {
    /// Westwood+'s settings.
    pub struct Config {
        {}
        filter = Linux from "Linux 6.12 tcp_westwood.c, westwood_do_filter";
        from "Linux 6.12 tcp_westwood.c; code for mvfst that seems to be quicdc's authors': since-loss";
        {
        /// Weight of the old value in both stages of the filter, in place of the one that `filter` says.
        weight: Option<f64> = None, in OrNone(0.0..=0.999), from "Linux 6.12 tcp_westwood.c, westwood_do_filter";
        /// Shortest interval of one bandwidth sample.
        interval: Duration = Duration::from_millis(50), in Duration::from_millis(1)..=Duration::from_secs(10), from "Linux 6.12 tcp_westwood.c, TCP_WESTWOOD_RTT_MIN";
        /// When the window becomes the bandwidth estimate times the smallest RTT.
        reduction: Reduction = Reduction::Mascolo, in .., from "its authors: at the start; Linux 6.12 tcp_westwood.c: at the end";
        /// Whether to send ECT(0) and treat CE as a loss.
        ecn: bool = false, in .., from "rfc3168 6.1.2";
        /// Whether the host may pace; without, packets leave as the window lets them, as from mvfst, where
        /// this controller sets no pacing rate.
        pacing: bool = true, in .., from "what seems to be the authors' public code";
        }
    }
}

/// The two-stage low-pass filter over the rate of ACKs.
#[derive(Clone, Copy, Debug)]
struct Bandwidth {
    since: Time,
    acked: Bytes,
    /// First and second stage, once there is a sample.
    stages: Option<(f64, f64)>,
    samples: u32,
}

/// Westwood+'s window.
#[derive(Clone, Debug)]
pub struct Westwood {
    config: Config,
    mss: Bytes,
    cwnd: Bytes,
    ssthresh: Bytes,
    initial_window: Bytes,
    increase: AdditiveIncrease,
    bandwidth: Bandwidth,
    rtt: Option<Duration>,
    /// The smallest RTT, and when it was measured.
    rtt_min: Option<(Duration, Time)>,
    /// Whether the next sample replaces `rtt_min` rather than lowering it.
    reset_rtt_min: bool,
    /// Window and threshold before the last episode.
    before: Option<(Bytes, Bytes)>,
}

impl Bandwidth {
    /// Counts an ACK; a sample is complete when more than `interval` has passed.
    // Linux 6.12 tcp_westwood.c, westwood_update_window: the ACK that completes a sample belongs to the next
    // one.
    fn on_ack(&mut self, now: Time, acked: Bytes, interval: Duration, weight: impl Fn(u32) -> f64) {
        let delta = now.since(self.since);
        if delta > interval {
            let sample = self.acked.as_f64() / delta.as_secs_f64();
            self.samples = self.samples.saturating_add(1);
            let weight = weight(self.samples);
            self.stages = Some(match self.stages {
                // Linux 6.12 tcp_westwood.c, westwood_filter
                None => (sample, sample),
                Some((first, second)) => {
                    let first = weight * first + (1.0 - weight) * sample;
                    (first, weight * second + (1.0 - weight) * first)
                }
            });
            self.since = now;
            self.acked = Bytes::ZERO;
        }
        self.acked += acked;
    }
}

impl Westwood {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        Westwood {
            config,
            mss: connection.mss,
            cwnd: connection.initial_window,
            ssthresh: Bytes(u64::MAX),
            initial_window: connection.initial_window,
            increase: AdditiveIncrease::default(),
            bandwidth: Bandwidth { since: connection.now, acked: Bytes::ZERO, stages: None, samples: 0 },
            rtt: None,
            rtt_min: None,
            reset_rtt_min: false,
            before: None,
        }
    }

    /// What the path holds without a queue: BWE times RTT_min.
    fn pipe(&self) -> Bytes {
        let bwe_bytes_per_s = self.bandwidth.stages.map_or(0.0, |(_, second)| second);
        let pipe_bytes = self.rtt_min.map_or(0.0, |(rtt_min, _)| bwe_bytes_per_s * rtt_min.as_secs_f64());
        Bytes(pipe_bytes as u64).max(Bytes(2 * self.mss.0))
    }

    /// Reacts to congestion that is no loss, and so never a mistake to be taken back: the window becomes the
    /// pipe.
    pub(super) fn reduce(&mut self) {
        self.reduce_to(self.pipe());
        self.cwnd = self.cwnd.min(self.ssthresh);
        self.before = None;
    }

    fn reduce_to(&mut self, ssthresh: Bytes) {
        self.before = Some((self.cwnd, self.ssthresh));
        self.ssthresh = ssthresh;
        self.increase.reset();
    }
}

impl Controller for Westwood {
    fn decides_on_send(&self) -> bool {
        false
    }

    fn reads_acked(&self) -> bool {
        false
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        let interval = self.rtt.map_or(Duration::MAX, |rtt| rtt.max(self.config.interval));
        let (own, filter) = (self.config.weight, self.config.filter);
        let weight = |samples| own.unwrap_or_else(|| filter.weight(samples));
        match self.config.sampled {
            Sampled::All => self.bandwidth.on_ack(event.now, event.newly_acked, interval, weight),
            Sampled::SinceLoss if event.growth == Bytes::ZERO => {}
            Sampled::SinceLoss => self.bandwidth.on_ack(event.now, event.growth, interval, weight),
        }
        if let Some(sample) = event.rtt.sample {
            self.rtt = Some(sample);
            // Linux 6.12 tcp_westwood.c, update_rtt_min
            let expired = |at| self.config.rtt_min_expiry.is_some_and(|expiry| event.now.since(at) > expiry);
            let kept = self.rtt_min.filter(|&(min, at)| !self.reset_rtt_min && min <= sample && !expired(at));
            self.rtt_min = kept.or(Some((sample, event.now)));
            self.reset_rtt_min = false;
        }
        if event.in_recovery() || !event.cwnd_limited {
            return;
        }
        let left = window::slow_start(&mut self.cwnd, self.ssthresh, event.growth);
        self.increase.grow(&mut self.cwnd, self.mss, left);
    }

    // mascolo01
    fn on_loss(&mut self, _event: &LossEvent) {
        let ssthresh = match self.config.reduction {
            Reduction::Mascolo => self.pipe(),
            Reduction::Linux => Bytes(self.cwnd.0 / 2).max(Bytes(2 * self.mss.0)),
        };
        self.reduce_to(ssthresh);
        self.cwnd = self.cwnd.min(self.ssthresh);
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        match event.kind {
            Timeout::Pto => return,
            Timeout::Rto => {
                if !event.repeated {
                    self.reduce_to(self.pipe());
                }
                self.cwnd = self.mss;
            }
            // rfc9002 7.6.2
            Timeout::PersistentCongestion => self.cwnd = self.cwnd.min(Bytes(2 * self.mss.0)),
        }
        self.reset_rtt_min = true;
    }

    fn on_spurious_loss(&mut self, _event: &SpuriousEvent) {
        if let Some((cwnd, ssthresh)) = self.before.take() {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = ssthresh;
        }
    }

    fn on_recovery_exit(&mut self, _now: Time) {
        // Linux 6.12 tcp_westwood.c, CA_EVENT_COMPLETE_CWR
        if self.before.take().is_some() && self.config.reduction == Reduction::Linux {
            self.ssthresh = self.pipe();
            self.cwnd = self.ssthresh;
        }
    }

    fn on_idle_restart(&mut self, event: &IdleEvent) {
        (self.cwnd, self.ssthresh) = window::restarted(self.cwnd, self.ssthresh, self.initial_window, event);
        self.cwnd = self.cwnd.max(self.mss);
        // Silence is not the path's bandwidth.
        self.bandwidth.since = event.now;
        self.bandwidth.acked = Bytes::ZERO;
    }

    fn cap_cwnd(&mut self, most: Bytes) {
        self.cwnd = self.cwnd.min(most).max(self.mss);
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
        self.cwnd = self.cwnd.max(mss);
    }

    fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    fn ssthresh(&self) -> Option<Bytes> {
        Some(self.ssthresh)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        (!self.config.pacing).then_some(Rate::MAX)
    }

    fn encoding(&self) -> Encoding {
        if self.config.ecn { Encoding::Classic } else { Encoding::None }
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("bwe_bps", self.bandwidth.stages.map_or(0.0, |(_, second)| 8.0 * second));
        visit("rtt_min_ms", self.rtt_min.map_or(0.0, |(rtt_min, _)| rtt_min.as_millis_f64()));
    }
}

#[cfg(test)]
mod tests {
    use core::slice;

    use brakelight_testkit::events;

    use super::*;

    /// 10 packets in each 100 ms, then 20: the rate doubles from 100 to 200 packets/s.
    #[test]
    fn a_doubled_rate_passes_both_stages_by_the_new_values_share_squared() {
        let interval = Duration::from_millis(60);
        let estimate = |filter: Filter| {
            let mut bandwidth = Bandwidth { since: Time::ZERO, acked: Bytes::ZERO, stages: None, samples: 0 };
            let mut sample = |ms: u64, packets: u64| {
                let weight = |samples| filter.weight(samples);
                bandwidth.on_ack(Time::from_millis(ms), Bytes(1000 * packets), interval, weight);
                bandwidth.stages.map(|(_, second)| second / 1000.0)
            };
            // The ACK that completes a sample counts for the next one.
            [sample(0, 10), sample(100, 10), sample(200, 20), sample(300, 20), sample(400, 20)]
        };
        // 0.25 * 100 + 0.75 * 175, then 0.25 * 156.25 + 0.75 * 193.75.
        assert_eq!(estimate(Filter::Fast), [None, Some(100.0), Some(100.0), Some(156.25), Some(184.375)]);
        // 7/8 * 100 + 1/8 * 112.5, then 7/8 * 101.5625 + 1/8 * 123.4375.
        let linux = [None, Some(100.0), Some(100.0), Some(101.5625), Some(104.296875)];
        assert_eq!(estimate(Filter::Linux), linux);
    }

    /// The weight is 0.75 / (1 + e^(16 - k)) at sample k: 0.75 / (1 + e^14) = 6.2e-7 at the second, half of
    /// 0.75 at the sixteenth.
    #[test]
    fn the_sigmoid_filter_forgets_in_slow_start_and_remembers_later() {
        assert!(Filter::Sigmoid.weight(2) < 1e-6);
        assert_eq!(Filter::Sigmoid.weight(16), 0.375);
        assert!((Filter::Sigmoid.weight(40) - 0.75).abs() < 1e-9);
    }

    /// Westwood+ with the fast filter after an ACK of one packet every 20 ms, `count` in all; those from the
    /// eleventh to the fifteenth are of packets sent before a loss was found.
    fn after_acks(values: Values, count: u64, rtt: impl Fn(u64) -> Duration) -> Westwood {
        let config = Config::new(Values { filter: Filter::Fast, ..values }).unwrap();
        let mut westwood = Westwood::new(config, &events::connection(10));
        for step in 1..=count {
            let packet = events::packet(step, Time::ZERO);
            let mut event = events::ack(Time::from_millis(20 * step), slice::from_ref(&packet), rtt(step));
            if (11..=15).contains(&step) {
                event.growth = Bytes::ZERO;
            }
            westwood.on_ack(&event);
        }
        westwood
    }

    #[test]
    fn samples_since_a_loss_count_the_time_but_not_the_bytes_before() {
        let estimate = |sampled: Sampled| {
            let westwood =
                after_acks(Values { sampled, ..Values::default() }, 16, |_| Duration::from_millis(60));
            westwood.bandwidth.stages.unwrap().1
        };
        // Samples of 37,500 and 50,000 bytes/s at 80 and 160 ms. Then two of 50,000, or at 320 ms one of
        // three packets in 160 ms.
        assert!((estimate(Sampled::All) - 49_365.234_375).abs() < 1e-6);
        assert!((estimate(Sampled::SinceLoss) - 30_468.75).abs() < 1e-6);
    }

    #[test]
    fn the_smallest_rtt_may_expire() {
        let smallest = |rtt_min_expiry: Option<Duration>, count: u64| {
            let rtt = |step| Duration::from_millis(if step == 1 { 60 } else { 100 });
            let westwood = after_acks(Values { rtt_min_expiry, ..Values::default() }, count, rtt);
            westwood.rtt_min.unwrap().0
        };
        let expiry = Some(Duration::from_secs(20));
        assert_eq!(smallest(None, 1200), Duration::from_millis(60));
        // The first sample came at 20 ms.
        assert_eq!(smallest(expiry, 1001), Duration::from_millis(60));
        assert_eq!(smallest(expiry, 1002), Duration::from_millis(100));
    }
}
