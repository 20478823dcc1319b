//! PCC Vivace-latency (Dong et al., "PCC Vivace: Online-Learning Congestion Control", NSDI 2018).
//!
//! ```text
//! Time is cut into monitor intervals (MI) of one RTT. An MI's packets say what it was worth:
//! u = x^t - b x max(0, dRTT/dT) - c x L                 x: Mbit/s sent, L: share lost, dRTT/dT: slope of a
//!                                                       regression
//!
//! Starting:   an MI at twice the rate of the last, as soon as that one's outcome is known, while u rises
//! Learning:   MIs at r (1 + eps) and r (1 - eps) in random order; when both outcomes are known
//!             gamma = (u1 - u2) / (x1 - x2),   delta_r = m(tau) theta_0 gamma
//!             tau: decisions in the same direction so far;   m(tau) = tau up to 3, then 2 tau - 3
//!             |delta_r| <= omega r,   omega = omega_0 + k delta
//!             k grows by one whenever the bound bites, shrinks to what delta_r needs when it does not, and
//!             starts over
//!             with a new direction;   r += delta_r
//! Between the end of a pair and its outcome packets leave at r and are not counted.
//! Timeout:    r is halved and learning starts over;  below the lowest rate: Starting from there
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | t | `exponent` | 1 | 0.9 | vivace18 3.1 |
//! | b | `latency_weight` | 1 | 900 | vivace18 3.1 |
//! | c | `loss_weight` | 1 | 11.35 | vivace18 3.1 |
//! | eps | `probe_step` | share | 0.05 | vivace18 4 |
//! | theta_0 | `step` | Mbit/s | 1 | vivace18 4 |
//! | omega_0 | `bound` | share | 0.05 | vivace18 4 |
//! | delta | `bound_increment` | share | 0.1 | vivace18 4 |
//! | - | `gradient_filter` | 1 | 0.01 | vivace18 4 |
//! | - | `initial_rate` | rate | 1.2 Mbit/s | PCC-Uspace `pcc.h` |
//! | - | `min_rate` | rate | 100 kbit/s | PCC-Uspace `pcc.h` |
//!
//! Deviations: D1 falling RTTs are not rewarded (`gradient=signed` does that): the utility of the authors'
//! later code, which treats a negative slope as none. D2 an MI lasts until it has at least 10 packets, as in
//! the authors' WebRTC port: a regression over fewer means nothing. D3 a pair in which the slower MI lost
//! more is measured once more before it is believed; the paper gives the idea without a rule, this is the one
//! of the same port. D4 the slope is taken over the newest packet of each ACK, so that delayed ACKs do not
//! look like queues. D5 nothing bounds what is in flight, as in the source, whose window is 100,000 packets;
//! a timeout is then the only way out of an outage. D6 a timeout is one only if nothing was acknowledged for
//! an RTT. TCP's also fires when a retransmission is lost while ACKs flow; then the intervals under way,
//! whose losses it misstates, are dropped and the rate stays. D7 `variant=kernel` is another controller,
//! imitated in `vivace/kernel.rs`, where K1 to K11 say how it differs; the table above is for the default.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, LossEvent, Recovery, SendDirective, SendEvent, SpuriousEvent,
    TimeoutEvent,
};
use brakelight_core::parameters::OrNone;
use brakelight_core::time::Time;
use brakelight_core::units::{Bytes, Rate};

mod kernel;
mod uspace;

use kernel::Kernel;
use uspace::Uspace;

choices! {
    /// Which implementation of Vivace the controller follows.
    pub enum Variant {
        /// The paper's, as the UDP program has it.
        Uspace = "uspace",
        /// The Linux module's.
        Kernel = "kernel",
    }
}

choices! {
    /// How falling RTTs count in the utility.
    pub enum Gradient {
        /// Nothing.
        Positive = "positive",
        /// As much as rising ones cost.
        Signed = "signed",
    }
}

/// The range of a rate.
const RATES: core::ops::RangeInclusive<Rate> = Rate::from_bps(1_000)..=Rate::from_mbps(10_000);

parameters! {
    /// Vivace's settings. What is `none` follows the variant.
    pub struct Config {
        /// Whose Vivace; options given besides win.
        variant: Variant = Variant::Uspace, in .., from "vivace18";
        /// Exponent of the rate's worth; none: the variant's.
        exponent: Option<f64> = None, in OrNone(0.1..=1.0), from "vivace18 3.1: 0.9; PCC-Kernel: 1";
        /// Cost of a rising RTT.
        latency_weight: f64 = 900.0, in 0.0..=100000.0, from "vivace18 3.1";
        /// Cost of losses; none: the variant's.
        loss_weight: Option<f64> = None, in OrNone(0.0..=10000.0), from "vivace18 3.1: 11.35; PCC-Kernel: 11";
        /// What falling RTTs are worth; none: the variant's.
        gradient: Option<Gradient> = None, in .., from "abc20's baseline: positive; PCC-Kernel: signed";
        /// By how much the rates of a pair differ from the rate.
        probe_step: f64 = 0.05, in 0.001..=0.5, from "vivace18 4";
        /// Rate change for a unit of gradient, Mbit/s; none: the variant's.
        step: Option<f64> = None, in OrNone(0.001..=100.0), from "vivace18 4: 1; PCC-Kernel: 0.2";
        /// Bound of a change, as a share of the rate; none: the variant's.
        bound: Option<f64> = None, in OrNone(0.001..=1.0), from "vivace18 4: 0.05; PCC-Kernel: 0.1";
        /// By how much the bound grows each time it bites; none: the variant's.
        bound_increment: Option<f64> = None, in OrNone(0.0..=1.0), from "vivace18 4: 0.1; PCC-Kernel: 0.07";
        /// Slopes of the RTT below this count as none; none: the variant's.
        gradient_filter: Option<f64> = None, in OrNone(0.0..=1.0), from "vivace18 4: 0.01; PCC-Kernel: 0.03";
        /// Rate of the first monitor interval; none: the variant's.
        initial_rate: Option<Rate> = None, in OrNone(RATES), from "PCC-Uspace pcc.h: 1.2Mbps; PCC-Kernel: 4.194304Mbps";
        /// The rate never falls below this; none: the variant's.
        min_rate: Option<Rate> = None, in OrNone(RATES), from "PCC-Uspace pcc.h: 100kbps; PCC-Kernel: 8.192kbps";
    }
}

/// The settings with the variant worked in.
#[derive(Clone, Copy, Debug)]
struct Rules {
    exponent: f64,
    latency_weight: f64,
    loss_weight: f64,
    gradient: Gradient,
    probe_step: f64,
    step: f64,
    bound: f64,
    bound_increment: f64,
    gradient_filter: f64,
    initial_mbps: f64,
    min_mbps: f64,
}

impl From<&Config> for Rules {
    fn from(config: &Config) -> Self {
        let kernel = config.variant == Variant::Kernel;
        let or = |given: Option<f64>, uspace: f64, module: f64| {
            given.unwrap_or(if kernel { module } else { uspace })
        };
        let falling = if kernel { Gradient::Signed } else { Gradient::Positive };
        Rules {
            exponent: or(config.exponent, 0.9, 1.0),
            latency_weight: config.latency_weight,
            loss_weight: or(config.loss_weight, 11.35, 11.0),
            gradient: config.gradient.unwrap_or(falling),
            probe_step: config.probe_step,
            step: or(config.step, 1.0, 0.2),
            bound: or(config.bound, 0.05, 0.1),
            bound_increment: or(config.bound_increment, 0.1, 0.07),
            gradient_filter: or(config.gradient_filter, 0.01, 0.03),
            // PCC-Kernel: 512 kB/s and 1 kB/s
            initial_mbps: or(config.initial_rate.map(Rate::as_mbps_f64), 1.2, 4.194_304),
            min_mbps: or(config.min_rate.map(Rate::as_mbps_f64), 0.1, 0.008_192),
        }
    }
}

impl Rules {
    /// vivace18 eq.1
    fn utility(&self, mbps: f64, gradient: f64, loss: f64) -> f64 {
        libm::pow(mbps, self.exponent)
            - self.latency_weight * mbps * gradient
            - self.loss_weight * mbps * loss
    }
}

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)]
enum Control {
    Uspace(Uspace),
    Kernel(Kernel),
}

/// PCC Vivace-latency.
#[derive(Clone, Debug)]
pub struct Vivace {
    control: Control,
}

impl Vivace {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        let rules = Rules::from(&config);
        let control = match config.variant {
            Variant::Uspace => Control::Uspace(Uspace::new(rules, connection)),
            Variant::Kernel => Control::Kernel(Kernel::new(rules, connection)),
        };
        Vivace { control }
    }

    fn control(&self) -> &dyn Controller {
        match &self.control {
            Control::Uspace(control) => control,
            Control::Kernel(control) => control,
        }
    }

    fn control_mut(&mut self) -> &mut dyn Controller {
        match &mut self.control {
            Control::Uspace(control) => control,
            Control::Kernel(control) => control,
        }
    }
}

impl Controller for Vivace {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        self.control_mut().on_send(event)
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.control_mut().on_ack(event);
    }

    fn on_loss(&mut self, _event: &LossEvent) {}

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        self.control_mut().on_timeout(event);
    }

    fn on_spurious_loss(&mut self, event: &SpuriousEvent) {
        self.control_mut().on_spurious_loss(event);
    }

    fn on_recovery_exit(&mut self, now: Time) {
        self.control_mut().on_recovery_exit(now);
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.control_mut().on_mtu_change(mss);
    }

    fn cwnd(&self) -> Bytes {
        self.control().cwnd()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.control().pacing_rate()
    }

    fn recovery(&self) -> Recovery {
        Recovery::Own
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.control().inspect(visit);
    }
}
