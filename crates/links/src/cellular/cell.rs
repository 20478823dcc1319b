//! What the base stations of LTE and of NR have in common: the settings that channels, schedulers, estimators
//! and capacity are made from, in one shape.

use alloc::sync::Arc;

use brakelight_core::time::Duration;

use super::Fading;
use super::channel::Efficiencies;
use super::estimator::Estimate;
use super::scheduler::Policy;

/// A cell. Fields that are also options are explained there.
#[derive(Clone, Debug)]
pub struct Cell {
    /// How long a slot lasts: what is shared out at once. In LTE a subframe.
    pub slot: Duration,
    /// Users.
    pub users: u32,
    /// Resource blocks of a slot; in LTE pairs of them.
    pub blocks: u32,
    /// How many of them are each user's own, and never shared out.
    pub reserved: u32,
    /// Mean signal-to-noise ratio, dB.
    pub snr: f64,
    /// How far the last user's mean lies above the first's, dB.
    pub spread: f64,
    /// Standard deviation of shadowing, dB.
    pub shadow: f64,
    /// How long shadowing lasts.
    pub shadow_time: Duration,
    /// How the channel fades.
    pub fading: Fading,
    /// How long a fade lasts.
    pub coherence: Duration,
    /// Time between reports of the channel: whole slots.
    pub report: Duration,
    /// How blocks are shared out.
    pub scheduler: Policy,
    /// Time constant of proportional fairness.
    pub time_constant: Duration,
    /// Window over which a user's rate is measured: whole slots.
    pub window: Duration,
    /// What a queue is told its user's rate is.
    pub estimate: Estimate,
    /// Bits per resource element, by index.
    pub efficiencies: &'static Efficiencies,
    /// Bits of a block, by slot of a pattern that repeats and by index.
    pub bits: Arc<[[u32; 16]]>,
    /// The share of what is sent that is received and not sent again.
    pub received: f64,
    /// When users change their cell, if they do.
    pub handovers: Option<Handovers>,
}

/// When users change their cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Handovers {
    /// From one to the next, on average.
    pub every: Duration,
    /// Whether the times between them are random, exponential but for the interruption.
    pub random: bool,
    /// How long nothing is carried.
    pub interruption: Duration,
}
