//! BBR version 3 (draft-ietf-ccwg-bbr).
//!
//! ```text
//! max_bw = max over two probing cycles of the delivery rate       bw = min(max_bw, bw_shortterm)
//! pacing rate = pacing_gain * bw * 0.99                           BDP = bw * min_rtt
//! cwnd <= cwnd_gain * BDP + extra_acked, inflight_shortterm, and inflight_longterm (less 15 % in Cruise,
//!   ProbeRTT)
//!
//! state     pacing_gain  cwnd_gain   until
//! Startup   2.77         2           three rounds without 25 % more bandwidth, or a round of
//!                                    recovery that lost > 2 %
//! Drain     0.5          2           in flight <= BDP, or three rounds
//! Down      0.9          2           in flight <= BDP and <= 0.85 inflight_longterm, or time to probe
//! Cruise    1            2           time to probe: 2 to 3 s, or min(BDP in packets, 63) rounds
//!                                    after the last probe
//! Refill    1            2           one round
//! Up        1.25         2.25        three rounds without 25 % more bandwidth, or losses > 2 %
//! ProbeRTT  1            0.5         200 ms and a round; begins 5 s after the smallest recent RTT
//!
//! losses > 2 % while probing: inflight_longterm = max(in flight when they began, 0.7 min(BDP, cwnd)), then
//!                             Down
//! losses otherwise, per round: bw_shortterm = max(bw of the round, 0.7 bw_shortterm), inflight_shortterm
//!                              alike
//! Up without losses at the long-term bound: the bound grows by 1, 2, 4, 8 ... packets a round
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | StartupPacingGain | `startup_pacing_gain` | 1 | 2.77 | ccwg-bbr 4.3.1.1 |
//! | DrainPacingGain | `drain_pacing_gain` | 1 | 0.5 | ccwg-bbr 4.3.2 |
//! | pacing gain of ProbeBW_DOWN | `down_pacing_gain` | 1 | 0.9 | ccwg-bbr 4.3.3.1 |
//! | Beta | `beta` | 1 | 0.7 | ccwg-bbr 4.5.10.2 |
//! | LossThresh | `loss_threshold` | share | 0.02 | ccwg-bbr 4.3.1.3 |
//! | Headroom | `headroom` | share | 0.15 | ccwg-bbr 4.6.1 |
//! | ProbeRTTInterval | `probe_rtt_interval` | time | 5 s | ccwg-bbr 4.3.4 |
//! | MinRTTFilterLen | none: 10 s, or the interval if that is longer | time | 10 s | ccwg-bbr 4.5.7 |
//! | ProbeRTTDuration | `probe_rtt_time` | time | 200 ms | ccwg-bbr 4.3.4.1 |
//! | ecn_factor | `ecn_factor` | 1 | 1/3 | google/bbr v3 tcp_bbr.c, `bbr_ecn_factor` |
//! | ecn_thresh | `ecn_threshold` | share | 0.5 | google/bbr v3 tcp_bbr.c, `bbr_ecn_thresh` |
//! | ecn_max_rtt | `ecn_max_rtt` | time | 5 ms | google/bbr v3 tcp_bbr.c, `bbr_ecn_max_rtt_us` |
//!
//! Deviations: D1 `extra_acked` is the maximum of two successive stretches of five rounds (one in Startup),
//! as in all of Google's versions, not a filter of ten. D2 a lost range counts as one for each ACK that
//! reports a loss (as there). D3 packets are paced one by one; the send quantum enters the window's floor
//! only. D4 an RTT as small as min_rtt renews min_rtt's age (`<=`), as in google/bbr v3, where the draft
//! has `<`; the time of the next ProbeRTT follows the `<` that both have.
//! D5 without a measured handshake the first window is paced as if the RTT were 1 ms, as the draft
//! prescribes. D6 the draft leaves ECN open: none by default. `ecn` switches on what google/bbr's version 3
//! does on routes that are marked for it (`ecn.rs`).

use brakelight_core::time::Duration;

use super::ecn::{EcnSettings, EcnUse};
use super::machine::Machine;
use super::settings::{BbrSettings, Version};

/// BBR version 3: a machine set up by [`Config`].
pub type Bbr3 = Machine;

parameters! {
    /// Settings of BBR version 3.
    pub struct Config {
        /// Pacing gain of Startup.
        startup_pacing_gain: f64 = 2.77, in 1.1..=10.0, from "ccwg-bbr 4.3.1.1";
        /// Pacing gain of Drain.
        drain_pacing_gain: f64 = 0.5, in 0.1..=0.99, from "ccwg-bbr 4.3.2";
        /// Pacing gain while the queue of a probe drains.
        down_pacing_gain: f64 = 0.9, in 0.1..=1.0, from "ccwg-bbr 4.3.3.1";
        /// What is left of the short-term bounds after a round with losses, at least.
        beta: f64 = 0.7, in 0.1..=0.99, from "ccwg-bbr 4.5.10.2";
        /// Share of lost packets from which a probe went too far.
        loss_threshold: f64 = 0.02, in 0.0001..=0.5, from "ccwg-bbr 4.3.1.3";
        /// Share of the long-term bound left free while cruising.
        headroom: f64 = 0.15, in 0.0..=0.9, from "ccwg-bbr 4.6.1";
        /// How old the smallest RTT may become before ProbeRTT looks for it again.
        probe_rtt_interval: Duration = Duration::from_secs(5), in Duration::from_millis(100)..=Duration::from_secs(1000),
            from "ccwg-bbr 4.3.4";
        /// How long ProbeRTT holds half a bandwidth-delay product in flight.
        probe_rtt_time: Duration = Duration::from_millis(200), in Duration::from_millis(1)..=Duration::from_secs(10),
            from "ccwg-bbr 4.3.4.1";
        /// Whether to use ECN, which is for paths whose queues mark at a shallow threshold only, and under
        /// which codepoint.
        ecn: EcnUse = EcnUse::Off, in .., from "google/bbr v3 tcp_bbr.c, bbr_can_use_ecn";
        /// How much of the flight alpha = 1 takes in a round with marks.
        ecn_factor: f64 = 1.0 / 3.0, in 0.0..=1.0, from "google/bbr v3 tcp_bbr.c, bbr_ecn_factor";
        /// Share of marks from which a probe went too far.
        ecn_threshold: f64 = 0.5, in 0.001..=1.0, from "google/bbr v3 tcp_bbr.c, bbr_ecn_thresh";
        /// Smallest RTT above which marks are ignored.
        ecn_max_rtt: Duration = Duration::from_millis(5), in Duration::from_micros(1)..=Duration::from_secs(10),
            from "google/bbr v3 tcp_bbr.c, bbr_ecn_max_rtt_us";
    }
}

impl From<Config> for BbrSettings {
    fn from(config: Config) -> Self {
        BbrSettings {
            version: Version::V3,
            startup_pacing_gain: config.startup_pacing_gain,
            startup_cwnd_gain: 2.0,
            drain_pacing_gain: config.drain_pacing_gain,
            down_pacing_gain: config.down_pacing_gain,
            up_pacing_gain: 1.25,
            cwnd_gain: 2.0,
            up_cwnd_gain: 2.25,
            probe_rtt_cwnd_gain: 0.5,
            loss_threshold: config.loss_threshold,
            beta: config.beta,
            headroom: config.headroom,
            startup_losses: 6,
            // ccwg-bbr 4.5.7: the window covers a whole interval of ProbeRTT.
            min_rtt_window: Duration::from_secs(10).max(config.probe_rtt_interval),
            probe_rtt_interval: config.probe_rtt_interval,
            probe_rtt_time: config.probe_rtt_time,
            probe_wait: Duration::from_secs(2),
            probe_wait_spread: Duration::from_secs(1),
            probe_rounds: 63,
            ecn: EcnSettings {
                codepoint: config.ecn,
                factor: config.ecn_factor,
                threshold: config.ecn_threshold,
                max_rtt: config.ecn_max_rtt,
            },
        }
    }
}
