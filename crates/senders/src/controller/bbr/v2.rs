//! BBR version 2, as its source has it (`google/bbr`, branch v2alpha, `tcp_bbr2.c`).
//!
//! The machine is that of version 3, described in `v3.rs`; the two differ by the defaults below and in these
//! rules:
//!
//! ```text
//! Startup ends    when the maximum filter (version 3: the newest sample) stops growing for three rounds,
//!                 or after 8 (6) ACKs with losses in a round of recovery that lost more than 2 %
//! Drain ends      at in flight <= BDP only (version 3: or after three rounds)
//! Up ends         after min_rtt, at in flight >= 1.25 BDP (version 3: when the bandwidth stops growing)
//! a Startup that ended by losses bounds in flight by the BDP (version 3: or by what the last round
//!   delivered)
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | high_gain | `startup_pacing_gain` | 1 | 2.885 | tcp_bbr2.c `bbr_high_gain` |
//! | startup_cwnd_gain | `startup_cwnd_gain` | 1 | 2.885 | tcp_bbr2.c `bbr_startup_cwnd_gain` |
//! | pacing_gain of DOWN | `down_pacing_gain` | 1 | 0.75 (mvfst: 0.9) | tcp_bbr2.c `bbr_pacing_gain` |
//! | beta | `beta` | 1 | 0.7 | tcp_bbr2.c `bbr_beta`, counted from the other side |
//! | loss_thresh | `loss_threshold` | share | 0.02 | tcp_bbr2.c `bbr_loss_thresh` |
//! | inflight_headroom | `headroom` | share | 0.15 | tcp_bbr2.c `bbr_inflight_headroom` |
//! | probe_rtt_win | `probe_rtt_interval` | time | 5 s | tcp_bbr2.c `bbr_probe_rtt_win_ms` |
//! | ecn_factor | `ecn_factor` | 1 | 1/3 | tcp_bbr2.c `bbr_ecn_factor` |
//! | ecn_thresh | `ecn_threshold` | share | 0.5 | tcp_bbr2.c `bbr_ecn_thresh` |
//! | ecn_max_rtt | `ecn_max_rtt` | time | 5 ms | tcp_bbr2.c `bbr_ecn_max_rtt_us` |
//!
//! Deviations: those of version 3 (`v3.rs`), and: D7 the response to CE (`ecn.rs`) is off by
//! default as in the source, which wants it for paths that mark at a shallow threshold only; the source sends
//! ECT(0), `ecn` says which codepoint. D8 ProbeRTT computes its window once, at its start. D9 the window is
//! restored after fast recovery too, where the source restores it after a timeout only; both stay below the
//! model's bounds. D10 `rules=mvfst` has the rules of `mvfst.rs`; its Startup gains are 2.89.

use brakelight_core::parameters::OrNone;
use brakelight_core::time::Duration;

use super::ecn::{EcnSettings, EcnUse};
use super::machine::Machine;
use super::settings::{BbrSettings, Version};

/// BBR version 2: a machine set up by [`Config`].
pub type Bbr2 = Machine;

choices! {
    /// Whose version 2.
    pub enum Rules {
        /// google/bbr, `tcp_bbr2.c`.
        Linux = "linux",
        /// facebook/mvfst, `Bbr2.cpp`.
        Mvfst = "mvfst",
    }
}

parameters! {
    /// Settings of BBR version 2.
    pub struct Config {
        /// Whose rules hold where Linux and mvfst differ.
        rules: Rules = Rules::Linux, in .., from "tcp_bbr2.c; mvfst Bbr2.cpp";
        /// Pacing gain of Startup; Drain paces at its inverse.
        startup_pacing_gain: f64 = 2.885, in 1.1..=10.0, from "tcp_bbr2.c: bbr_high_gain";
        /// Window gain of Startup and Drain.
        startup_cwnd_gain: f64 = 2.885, in 1.0..=10.0, from "tcp_bbr2.c: bbr_startup_cwnd_gain";
        /// Pacing gain while the queue of a probe drains; none takes that of the rules, 0.75 or 0.9.
        down_pacing_gain: Option<f64> = None, in OrNone(0.1..=1.0), from "tcp_bbr2.c: bbr_pacing_gain; mvfst kProbeBwDownPacingGain";
        /// What is left of the short-term bounds after a round with losses, at least.
        beta: f64 = 0.7, in 0.1..=0.99, from "tcp_bbr2.c: bbr_beta";
        /// Share of lost packets from which a probe went too far.
        loss_threshold: f64 = 0.02, in 0.0001..=0.5, from "tcp_bbr2.c: bbr_loss_thresh";
        /// Share of the long-term bound left free while cruising.
        headroom: f64 = 0.15, in 0.0..=0.9, from "tcp_bbr2.c: bbr_inflight_headroom";
        /// How old the smallest RTT may become before ProbeRTT looks for it again.
        probe_rtt_interval: Duration = Duration::from_secs(5), in Duration::from_millis(100)..=Duration::from_secs(1000),
            from "tcp_bbr2.c: bbr_probe_rtt_win_ms";
        /// Whether to use ECN, which is for paths whose queues mark at a shallow threshold only, and under
        /// which codepoint.
        ecn: EcnUse = EcnUse::Off, in .., from "tcp_bbr2.c: bbr_ecn_enable";
        /// How much of the flight alpha = 1 takes in a round with marks.
        ecn_factor: f64 = 1.0 / 3.0, in 0.0..=1.0, from "tcp_bbr2.c: bbr_ecn_factor";
        /// Share of marks from which a probe went too far.
        ecn_threshold: f64 = 0.5, in 0.001..=1.0, from "tcp_bbr2.c: bbr_ecn_thresh";
        /// Smallest RTT above which marks are ignored.
        ecn_max_rtt: Duration = Duration::from_millis(5), in Duration::from_micros(1)..=Duration::from_secs(10),
            from "tcp_bbr2.c: bbr_ecn_max_rtt_us";
    }
}

impl From<Config> for BbrSettings {
    fn from(config: Config) -> Self {
        let (version, down_pacing_gain, startup_losses) = match config.rules {
            Rules::Linux => (Version::V2, 0.75, 8),
            Rules::Mvfst => (Version::Mvfst, 0.9, 3),
        };
        BbrSettings {
            version,
            startup_pacing_gain: config.startup_pacing_gain,
            startup_cwnd_gain: config.startup_cwnd_gain,
            drain_pacing_gain: 1.0 / config.startup_pacing_gain,
            down_pacing_gain: config.down_pacing_gain.unwrap_or(down_pacing_gain),
            up_pacing_gain: 1.25,
            cwnd_gain: 2.0,
            up_cwnd_gain: 2.0,
            probe_rtt_cwnd_gain: 0.5,
            loss_threshold: config.loss_threshold,
            beta: config.beta,
            headroom: config.headroom,
            startup_losses,
            min_rtt_window: Duration::from_secs(10).max(config.probe_rtt_interval),
            probe_rtt_interval: config.probe_rtt_interval,
            probe_rtt_time: Duration::from_millis(200),
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
