//! What distinguishes versions 2 and 3: numbers, and a few rules.

use brakelight_core::time::Duration;

use super::ecn::EcnSettings;

/// Whose rules hold where the two differ in more than a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// `google/bbr`, branch v2alpha, `tcp_bbr2.c`.
    V2,
    /// facebook/mvfst, `Bbr2.cpp`: version 2 with the rules of `mvfst.rs`.
    Mvfst,
    /// draft-ietf-ccwg-bbr.
    V3,
}

/// The numbers; `v2.rs` and `v3.rs` say where they come from.
#[derive(Clone, Debug)]
pub struct BbrSettings {
    pub(super) version: Version,
    pub(super) startup_pacing_gain: f64,
    pub(super) startup_cwnd_gain: f64,
    pub(super) drain_pacing_gain: f64,
    pub(super) down_pacing_gain: f64,
    pub(super) up_pacing_gain: f64,
    pub(super) cwnd_gain: f64,
    pub(super) up_cwnd_gain: f64,
    pub(super) probe_rtt_cwnd_gain: f64,
    pub(super) loss_threshold: f64,
    pub(super) beta: f64,
    pub(super) headroom: f64,
    pub(super) startup_losses: u32,
    pub(super) min_rtt_window: Duration,
    pub(super) probe_rtt_interval: Duration,
    pub(super) probe_rtt_time: Duration,
    pub(super) probe_wait: Duration,
    pub(super) probe_wait_spread: Duration,
    pub(super) probe_rounds: u32,
    pub(super) ecn: EcnSettings,
}
