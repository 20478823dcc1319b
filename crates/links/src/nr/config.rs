//! The settings of a base station of 5G, and what follows from them. The head of [`nr`](super) has a table.

use alloc::format;
use alloc::string::String;

use brakelight_core::parameters::ParameterError;
use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Limit, Rate};

use super::frame::{Frame, Pattern, RadioDirection, Spacing, Special};
use super::harq;
use crate::cellular::Fading;
use crate::cellular::cell::{Cell, Handovers};
use crate::cellular::channel::{self, Efficiencies, LOOP};
use crate::cellular::estimator::Estimate;
use crate::cellular::scheduler::Policy;

/// Bits per resource element and layer, by index. ts38214 table 5.2.2.1-3
const EFFICIENCY: Efficiencies = [
    0.0, 0.1523, 0.3770, 0.8770, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223, 3.9023, 4.5234, 5.1152, 5.5547,
    6.2266, 6.9141, 7.4063,
];

/// Subcarriers of a resource block. ts38211 4.4.4.1
const SUBCARRIERS: f64 = 12.0;

/// Time that every pattern divides. ts38213 11.1
const PATTERNS: Duration = Duration::from_millis(20);

/// The longest time between two handovers.
const SELDOM: Duration = Duration::from_secs(60);

choices! {
    /// What RLC does with a block that is given up.
    pub enum RlcMode {
        /// It is sent again when a status report says that it is missing.
        Acknowledged = "am",
        /// Packets that have a part of it are lost.
        Unacknowledged = "um",
    }
}

choices! {
    /// When handovers come.
    pub enum Gaps {
        /// Always the same time after one another.
        Regular = "regular",
        /// At random: the time between two, but for the interruption, is exponential.
        Random = "random",
    }
}

parameters! {
    /// The settings of a base station of 5G.
    pub struct Config {
        check consistent;
        /// Which way packets go.
        direction: RadioDirection = RadioDirection::Down, in .., from "a choice";
        /// Spacing of subcarriers, kHz; a slot lasts 1, 0.5, 0.25 or 0.125 ms.
        scs: Spacing = Spacing::Khz30, in .., from "ts38211 table 4.2-1";
        /// Resource blocks of the carrier (M).
        blocks: u32 = 273, in 11..=273, from "ts38101 table 5.3.2-1: 100 MHz at 30 kHz";
        /// Slots down (D), up (U) and both (S) in turn, or `fdd`.
        pattern: Pattern = Pattern::default(), in .., from "ts38213 11.1; a choice";
        /// Symbols of a special slot: down, guard, up.
        special: Special = Special { down: 10, guard: 2, up: 2 }, in .., from "a choice";
        /// Layers that a block is sent on; at most 4 up.
        layers: u32 = 2, in 1..=8, from "a choice";
        /// Users.
        users: u32 = 1, in 1..=32, from "a choice";
        /// Mean signal-to-noise ratio of a layer over users and shadowing, dB.
        snr: f64 = 15.0, in -10.0..=40.0, from "a choice";
        /// How far the last user's mean lies above the first's, dB.
        spread: f64 = 0.0, in -40.0..=40.0, from "a choice";
        /// Standard deviation of shadowing, dB.
        shadow: f64 = 4.0, in 0.0..=20.0, from "gudmundson91";
        /// How long shadowing lasts: its autocorrelation is 1/e after that.
        shadow_time: Duration = Duration::from_millis(500), in Duration::from_millis(1)..=Duration::from_secs(100), from "gudmundson91";
        /// How the channel fades.
        fading: Fading = Fading::Rayleigh, in .., from "a choice";
        /// How long a fade lasts: the field's autocorrelation is 1/e after that.
        coherence: Duration = Duration::from_millis(20), in Duration::from_millis(1)..=Duration::from_secs(100), from "6 km/h at 3.5 GHz";
        /// Time between reports of the channel, whole slots.
        report: Duration = Duration::from_millis(5), in Duration::from_micros(500)..=Duration::from_millis(320), from "ts38214 5.2.1.4";
        /// How resource blocks are shared out.
        scheduler: Policy = Policy::ProportionalFair, in .., from "abc17 6";
        /// Time constant of proportional fairness (t_c).
        time_constant: Duration = Duration::from_millis(100), in Duration::from_millis(1)..=Duration::from_secs(10), from "jalali00";
        /// Window over which a user's rate is measured (T), whole slots.
        window: Duration = Duration::from_millis(20), in Duration::from_millis(1)..=Duration::from_secs(10), from "abc17 5";
        /// What a queue is told its user's rate is.
        estimate: Estimate = Estimate::Hypothetical, in .., from "abc17 6";
        /// Probability that the first attempt at a block fails.
        bler: f64 = 0.1, in 0.0..=0.9, from "ts38214 5.2.2.1";
        /// Attempts at a block before it is given up.
        attempts: u32 = 4, in 1..=32, from "a choice";
        /// Factor by which each attempt fails less than the one before; 1 without combining.
        combining: f64 = 0.1, in 0.0..=1.0, from "a choice";
        /// Slots from a block down to its feedback at the earliest.
        k1: u32 = 2, in 0..=31, from "ts38213 9.2.3; a choice";
        /// Slots from a grant to the block up that it is for at the earliest.
        k2: u32 = 2, in 0..=32, from "ts38214 6.1.2.1; a choice";
        /// Slots from what a base station hears to its answer at the earliest.
        turnaround: u32 = 3, in 1..=32, from "a choice";
        /// Slots from the end of a block to its packets.
        decode: u32 = 1, in 0..=32, from "a choice";
        /// What the RLC buffer takes from the queue before it is sent; 0 packets for nothing.
        rlc: Limit = Limit::Packets(0), in .., from "a choice";
        /// What RLC does with a block that is given up.
        rlc_mode: RlcMode = RlcMode::Acknowledged, in .., from "ts38322 4.2.1";
        /// Time until a block that was given up is sent again, in acknowledged mode.
        status: Duration = Duration::from_millis(30), in Duration::ZERO..=Duration::from_secs(2), from "ts38322 5.3.4; a choice";
        /// Time between two opportunities to ask for a grant, up.
        request: Duration = Duration::from_millis(10), in Duration::from_micros(125)..=Duration::from_millis(640), from "ts38321 5.4.4; a choice";
        /// The grant that answers a request.
        first_grant: Bytes = Bytes(300), in Bytes(10)..=Bytes(100_000), from "a choice";
        /// Resource blocks up that are each user's without a request.
        configured: u32 = 0, in 0..=273, from "ts38321 5.8.2";
        /// Time between two handovers of a user; 0 s for none.
        handover: Duration = Duration::ZERO, in Duration::ZERO..=SELDOM, from "a choice";
        /// When handovers come.
        handover_gaps: Gaps = Gaps::Regular, in .., from "a choice";
        /// How long nothing is carried in a handover.
        interruption: Duration = Duration::from_millis(50), in Duration::from_millis(1)..=Duration::from_secs(5), from "ts38300 9.2.3; a choice";
        /// Whether a handover forwards packets that left the queue but were not delivered; otherwise they are
        /// lost.
        forward: bool = true, in .., from "ts38300 9.2.3.2";
    }
}

fn consistent(config: &Config) -> Result<(), ParameterError> {
    let conflict = |reason: String| Err(ParameterError::Conflict { reason });
    let slot = config.scs.slot();
    for (name, value) in [("report", config.report), ("window", config.window)] {
        if !value.as_nanos().is_multiple_of(slot.as_nanos()) {
            return conflict(format!("{name} = {value} must be whole slots of {slot}"));
        }
    }
    if !LOOP.as_nanos().is_multiple_of(config.report.as_nanos()) {
        return conflict(format!(
            "report = {} must divide {LOOP}, after which the channel repeats",
            config.report
        ));
    }
    if config.blocks > config.scs.most_blocks() {
        let most = config.scs.most_blocks();
        return conflict(format!("blocks must be at most {most} at this spacing of subcarriers"));
    }
    if config.direction == RadioDirection::Up && config.layers > 4 {
        return conflict("layers must be at most 4 up".into());
    }
    let frame = config.frame();
    let pattern = slot * frame.period();
    if !PATTERNS.as_nanos().is_multiple_of(pattern.as_nanos()) {
        return conflict(format!("pattern must divide {PATTERNS}: its slots last {pattern}"));
    }
    if !frame.carries(config.direction) {
        return conflict("pattern has no slot that carries data in this direction".into());
    }
    for (direction, what) in
        [(RadioDirection::Down, "down for grants"), (RadioDirection::Up, "up for feedback and requests")]
    {
        if !frame.controls(direction) {
            return conflict(format!("pattern has no slot {what}"));
        }
    }
    // abc17 section 3.2, rate measurement timescales: window >= N S / M, here in slots that carry something.
    let needed = pattern.max(slot * u64::from(config.users.div_ceil(config.blocks)));
    if config.window < needed {
        return conflict(format!("window must be at least {needed}: one pattern"));
    }
    if config.configured * config.users > config.blocks {
        return conflict("configured must be at most blocks / users".into());
    }
    if !config.handover.is_zero() && config.handover <= config.interruption {
        return conflict("handover must be longer than interruption, or 0 s for none".into());
    }
    Ok(())
}

impl Config {
    /// Returns its slots and their pattern.
    pub(super) fn frame(&self) -> Frame {
        Frame::new(&self.pattern, self.special)
    }

    /// Returns the share of resource elements that carry no data. ts38306 4.1.2
    fn overhead(&self) -> f64 {
        match (self.scs, self.direction) {
            (Spacing::Khz120, RadioDirection::Down) => 0.18,
            (Spacing::Khz120, RadioDirection::Up) => 0.10,
            (_, RadioDirection::Down) => 0.14,
            (_, RadioDirection::Up) => 0.08,
        }
    }

    /// Returns what the station shares with that of LTE.
    pub(super) fn cell(&self) -> Cell {
        let frame = self.frame();
        let bits = |slot| {
            let symbols = f64::from(frame.data(self.direction, slot));
            let elements = SUBCARRIERS * symbols * (1.0 - self.overhead()) * f64::from(self.layers);
            channel::bits_of(&EFFICIENCY, elements)
        };
        Cell {
            slot: self.scs.slot(),
            users: self.users,
            blocks: self.blocks,
            reserved: self.reserved(),
            snr: self.snr,
            spread: self.spread,
            shadow: self.shadow,
            shadow_time: self.shadow_time,
            fading: self.fading,
            coherence: self.coherence,
            report: self.report,
            scheduler: self.scheduler,
            time_constant: self.time_constant,
            window: self.window,
            estimate: self.estimate,
            efficiencies: &EFFICIENCY,
            bits: (0..frame.period()).map(bits).collect(),
            received: harq::received(self),
            handovers: (!self.handover.is_zero()).then_some(Handovers {
                every: self.handover,
                random: self.handover_gaps == Gaps::Random,
                interruption: self.interruption,
            }),
        }
    }

    /// Returns the blocks of a slot that are a user's own.
    pub(super) fn reserved(&self) -> u32 {
        if self.direction == RadioDirection::Up { self.configured } else { 0 }
    }

    /// Returns the rate of the carrier at the best index: more it never carries. ts38306 4.1.2
    pub fn peak(&self) -> Rate {
        let cell = self.cell();
        let bits: u64 = cell.bits.iter().map(|slot| u64::from(slot[slot.len() - 1])).sum();
        let pattern_s = cell.slot.as_secs_f64() * cell.bits.len() as f64;
        Rate::from_bps_f64((bits * u64::from(self.blocks)) as f64 / pattern_s)
    }
}
