//! The window of schemes that follow a load factor by multiplicative increase, additive increase and
//! multiplicative decrease: VCP, MLCP and BMCC. Increases are spread over the ACKs of a window; what a loss
//! or a timeout does is Reno's.
//!
//! ```text
//! growth by a factor g per round trip:    w += (g - 1) acked      each byte acknowledged once per round trip
//! growth by b packets per round trip:     w += b MSS acked / w
//! decrease:                               w = beta w
//! loss:                                   w = w / 2               rfc5681 3.1
//! timeout:                                w = 1 MSS               rfc5681 3.1
//! ```

use brakelight_core::controller::{AckEvent, Connection, IdleEvent, SpuriousEvent, Timeout, TimeoutEvent};
use brakelight_core::parameters::ParameterError;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::window;

/// The window, and the RTT that its growth is scaled by.
#[derive(Clone, Debug)]
pub(super) struct LoadWindow {
    mss: Bytes,
    initial_window: Bytes,
    cwnd_bytes: f64,
    /// `cwnd_bytes` before the last episode.
    before_bytes: Option<f64>,
    srtt: Option<Duration>,
    /// No decrease by load before this.
    hold_until: Time,
}

impl LoadWindow {
    pub(super) fn new(connection: &Connection) -> Self {
        LoadWindow {
            mss: connection.mss,
            initial_window: connection.initial_window,
            cwnd_bytes: connection.initial_window.as_f64(),
            before_bytes: None,
            srtt: None,
            hold_until: connection.now,
        }
    }

    /// Takes the RTT from an ACK.
    pub(super) fn hear(&mut self, event: &AckEvent<'_>) {
        if event.rtt.sample.is_some() {
            self.srtt = Some(event.rtt.smoothed);
        }
    }

    /// T over `interval`; 1 before the first sample.
    pub(super) fn rtts_of(&self, interval: Duration) -> f64 {
        self.srtt.map_or(1.0, |srtt| srtt.as_secs_f64() / interval.as_secs_f64())
    }

    /// T; `interval` before the first sample.
    pub(super) fn rtt_or(&self, interval: Duration) -> Duration {
        self.srtt.unwrap_or(interval)
    }

    /// The window, `gain` times per round trip; none without a gain or a sample.
    pub(super) fn pacing_rate(&self, gain: f64) -> Option<Rate> {
        let srtt = self.srtt.filter(|srtt| gain > 0.0 && !srtt.is_zero())?;
        // At least one bit per second: a rate of zero would never send again.
        Some(Rate::over(self.cwnd(), srtt).mul_f64(gain).max(Rate::from_bps(1)))
    }

    /// The window, packets.
    pub(super) fn packets(&self) -> f64 {
        self.cwnd_bytes / self.mss.as_f64()
    }

    /// Grows by what `event` acknowledges of a growth by `factor` per round trip.
    pub(super) fn multiply(&mut self, event: &AckEvent<'_>, factor: f64) {
        if grows(event) {
            self.cwnd_bytes += (factor - 1.0) * event.growth.as_f64();
        }
    }

    /// Grows by what `event` acknowledges of a growth by `pkts` per round trip.
    pub(super) fn add(&mut self, event: &AckEvent<'_>, pkts: f64) {
        if grows(event) {
            self.cwnd_bytes += pkts * self.mss.as_f64() * event.growth.as_f64() / self.cwnd_bytes;
        }
    }

    /// Grows by `law` at load `f`: by a factor at low load, by packets otherwise.
    pub(super) fn grow(&mut self, event: &AckEvent<'_>, law: &Law, f: f64, low: bool) {
        let rtts = self.rtts_of(law.interval);
        if low {
            self.multiply(event, law.factor(f, rtts));
        } else {
            // bmcc eq.4
            self.add(event, rtts * rtts);
        }
    }

    /// Falls by `law` at load `f`, unless it fell within the time that the law holds. Says what is left.
    pub(super) fn fall(&mut self, now: Time, law: &Law, f: f64) -> Option<f64> {
        if now < self.hold_until {
            return None;
        }
        let beta = law.beta(f);
        self.decrease(beta);
        self.hold(now, law);
        Some(beta)
    }

    /// Puts off the next decrease by load.
    pub(super) fn hold(&mut self, now: Time, law: &Law) {
        self.hold_until = now + law.held(self.rtt_or(law.interval));
    }

    /// Multiplies by `beta`.
    pub(super) fn decrease(&mut self, beta: f64) {
        self.cwnd_bytes = (self.cwnd_bytes * beta).max(self.mss.as_f64());
    }

    // rfc5681 3.1
    pub(super) fn on_loss(&mut self) {
        self.before_bytes = Some(self.cwnd_bytes);
        self.decrease(0.5);
    }

    pub(super) fn on_timeout(&mut self, event: &TimeoutEvent) {
        let left = match event.kind {
            Timeout::Pto => return,
            Timeout::Rto => self.mss,
            // rfc9002 7.6.2
            Timeout::PersistentCongestion => Bytes(2 * self.mss.0),
        };
        if !event.repeated {
            self.before_bytes = Some(self.cwnd_bytes);
        }
        self.cwnd_bytes = self.cwnd_bytes.min(left.as_f64());
    }

    pub(super) fn on_spurious_loss(&mut self, _event: &SpuriousEvent) {
        if let Some(before_bytes) = self.before_bytes.take() {
            self.cwnd_bytes = self.cwnd_bytes.max(before_bytes);
        }
    }

    pub(super) fn on_recovery_exit(&mut self) {
        self.before_bytes = None;
    }

    pub(super) fn on_idle_restart(&mut self, event: &IdleEvent) {
        let (left, _) = window::restarted(self.cwnd(), Bytes::ZERO, self.initial_window, event);
        self.cwnd_bytes = left.max(self.mss).as_f64();
    }

    pub(super) fn cap_cwnd(&mut self, most: Bytes) {
        self.cwnd_bytes = self.cwnd_bytes.min(most.as_f64()).max(self.mss.as_f64());
    }

    pub(super) fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
        self.cwnd_bytes = self.cwnd_bytes.max(mss.as_f64());
    }

    pub(super) fn cwnd(&self) -> Bytes {
        // Half a byte, because sums of fractions may lie just below a whole one.
        Bytes((self.cwnd_bytes + 0.5) as u64).max(self.mss)
    }
}

/// A window that was not the limit must not grow, nor one under repair.
fn grows(event: &AckEvent<'_>) -> bool {
    event.cwnd_limited && !event.in_recovery()
}

choices! {
    /// How long MLCP and BMCC do not fall again after a decrease.
    pub enum Hold {
        /// The longer of T and t_p.
        Longer = "longer",
        /// t_p, then T, as VCP: until packets sent after the decrease have arrived, been counted, and been
        /// heard of.
        Sum = "sum",
        /// The sum where T is below t_p, and the longer, which is T, otherwise.
        ByRtt = "by-rtt",
    }
}

/// The rule by which MLCP and BMCC read a load factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Law {
    /// t_p.
    pub(super) interval: Duration,
    /// kappa_2.
    pub(super) kappa: f64,
    pub(super) beta_max: f64,
    pub(super) beta_min: f64,
    pub(super) u: f64,
    /// The most that a window grows by in one round trip.
    pub(super) most: f64,
    pub(super) hold: Hold,
}

impl Law {
    /// The growth by multiplicative increase in a round trip of `rtts` intervals at load `f`.
    pub(super) fn factor(&self, f: f64, rtts: f64) -> f64 {
        // bmcc eq.3
        libm::pow(1.0 + self.kappa * (1.0 - f) / f, rtts).min(self.most)
    }

    /// How long a decrease puts off the next one at this round trip.
    // open-questions#X-37
    pub(super) fn held(&self, rtt: Duration) -> Duration {
        match self.hold {
            // xia05 3.3
            Hold::Sum => self.interval + rtt,
            Hold::ByRtt if rtt < self.interval => self.interval + rtt,
            Hold::Longer | Hold::ByRtt => self.interval.max(rtt),
        }
    }

    /// What a decrease at load `f` leaves.
    pub(super) fn beta(&self, f: f64) -> f64 {
        // bmcc eq.6
        let over = ((f - 1.0) / (self.u - 1.0)).clamp(0.0, 1.0);
        self.beta_max - (self.beta_max - self.beta_min) * over
    }
}

/// Declares the settings of a sender that follows [`Law`]. What MLCP and BMCC have alike stands here once;
/// `eta` differs, and the sender's own fields follow.
macro_rules! law_parameters {
    (
        $(#[$meta:meta])*
        pub struct $Config:ident {
            eta = $eta:literal from $eta_from:literal;
            $($own:tt)*
        }
    ) => {
        brakelight_core::parameters! {
            $(#[$meta])*
            pub struct $Config {
                check in_order;
                /// The routers' interval (t_p).
                interval: brakelight_core::time::Duration = brakelight_core::time::Duration::from_millis(200), in brakelight_core::time::Duration::from_millis(1)..=brakelight_core::time::Duration::from_secs(10), from "bmcc table I";
                /// Gain of the multiplicative increase (kappa_2).
                kappa: f64 = 0.35, in 0.01..=10.0, from "bmcc table I";
                /// Load factor below which loads are not told apart, and that new flows assume.
                eta_0: f64 = 0.15, in 0.001..=0.9, from "bmcc table I";
                /// Load factor from which load is medium.
                eta: f64 = $eta, in 0.01..=0.99, from $eta_from;
                /// Load factor from which load is severe.
                u: f64 = 1.2, in 1.01..=3.0, from "bmcc II-D";
                /// What a decrease leaves at a load factor of 1.
                beta_max: f64 = 0.875, in 0.1..=0.99, from "bmcc table I";
                /// What a decrease leaves at a load factor of u.
                beta_min: f64 = 0.65, in 0.1..=0.99, from "bmcc table I";
                /// The most that a window grows by in one round trip.
                growth_most: f64 = 4.0, in 1.1..=1e6, from "not in bmcc: ours";
                /// How long it does not fall again after a decrease: the longer of T and t_p, their sum, or
                /// the sum if T is below t_p.
                hold: $crate::controller::load::Hold = $crate::controller::load::Hold::Longer, in .., from "not in bmcc; xia05 3.3: sum";
                $($own)*
            }
        }

        impl $Config {
            /// The rule that these settings describe.
            fn law(&self) -> $crate::controller::load::Law {
                $crate::controller::load::Law {
                    interval: self.interval,
                    kappa: self.kappa,
                    beta_max: self.beta_max,
                    beta_min: self.beta_min,
                    u: self.u,
                    most: self.growth_most,
                    hold: self.hold,
                }
            }
        }

        fn in_order(config: &$Config) -> Result<(), brakelight_core::parameters::ParameterError> {
            $crate::controller::load::ordered(config.eta_0, config.eta, config.beta_min, config.beta_max)
        }
    };
}
pub(super) use law_parameters;

/// Refuses levels, or shares that decreases leave, in the wrong order.
pub(super) fn ordered(eta_0: f64, eta: f64, beta_min: f64, beta_max: f64) -> Result<(), ParameterError> {
    let refuse = |name, value: f64, range| {
        Err(ParameterError::OutOfRange { name, value: alloc::format!("{value}"), range })
    };
    if eta_0 >= eta {
        return refuse("eta_0", eta_0, alloc::format!("0.001 to below eta = {eta}"));
    }
    if beta_min > beta_max {
        return refuse("beta_min", beta_min, alloc::format!("0.1 to beta_max = {beta_max}"));
    }
    Ok(())
}

/// Forwards what every controller of this kind does alike to its field `window`.
macro_rules! window_methods {
    () => {
        fn on_timeout(&mut self, event: &brakelight_core::controller::TimeoutEvent) {
            self.window.on_timeout(event);
        }

        fn on_spurious_loss(&mut self, event: &brakelight_core::controller::SpuriousEvent) {
            self.window.on_spurious_loss(event);
        }

        fn on_recovery_exit(&mut self, _now: brakelight_core::time::Time) {
            self.window.on_recovery_exit();
        }

        fn cap_cwnd(&mut self, most: brakelight_core::units::Bytes) {
            self.window.cap_cwnd(most);
        }

        fn on_mtu_change(&mut self, mss: brakelight_core::units::Bytes) {
            self.window.on_mtu_change(mss);
        }

        fn cwnd(&self) -> brakelight_core::units::Bytes {
            self.window.cwnd()
        }
    };
}
pub(super) use window_methods;

#[cfg(test)]
mod tests {
    use super::*;

    const LAW: Law = Law {
        interval: Duration::from_millis(200),
        kappa: 0.35,
        beta_max: 0.875,
        beta_min: 0.65,
        u: 1.2,
        most: 4.0,
        hold: Hold::Longer,
    };

    /// B-U1: 1 + 0.35 * 0.85 / 0.15 = 2.983; at half load 1.35.
    #[test]
    fn idle_capacity_triples_the_window_per_interval() {
        assert!((LAW.factor(0.15, 1.0) - 2.98333).abs() < 1e-4);
        assert!((LAW.factor(0.5, 1.0) - 1.35).abs() < 1e-12);
        assert!((LAW.factor(1.0, 1.0) - 1.0).abs() < 1e-12);
    }

    /// bmcc eq.3: two round trips of half an interval grow like one of a whole; open-questions#X-38 bounds
    /// the long ones.
    #[test]
    fn growth_per_time_does_not_depend_on_the_round_trip_up_to_a_bound() {
        let half = LAW.factor(0.5, 0.5);
        assert!((half * half - LAW.factor(0.5, 1.0)).abs() < 1e-12);
        assert_eq!(LAW.factor(0.15, 10.0), 4.0);
    }

    /// open-questions#X-37: t_p = 200 ms and T = 80 ms add up to 280 ms; T = 300 ms is the longer by itself.
    #[test]
    fn a_hold_by_round_trip_adds_the_interval_to_a_round_trip_that_is_shorter() {
        let held = |hold: Hold, rtt: u64| {
            let law = Law { hold, ..LAW };
            law.held(Duration::from_millis(rtt)).as_nanos() / 1_000_000
        };
        assert_eq!([80, 199, 200, 300].map(|rtt| held(Hold::ByRtt, rtt)), [280, 399, 200, 300]);
        assert_eq!([80, 300].map(|rtt| held(Hold::Longer, rtt)), [200, 300]);
        assert_eq!([80, 300].map(|rtt| held(Hold::Sum, rtt)), [280, 500]);
    }

    /// B-U4, B-U3: 0.875 at 1, 0.65 at 1.2, linear; a decrease never takes the load below 0.78, so never
    /// below eta = 0.75.
    #[test]
    fn the_decrease_is_linear_in_the_overload() {
        for (f, beta) in [(1.0, 0.875), (1.1, 0.7625), (1.2, 0.65), (0.5, 0.875), (7.0, 0.65)] {
            assert!((LAW.beta(f) - beta).abs() < 1e-12, "{f}");
        }
        let least = (0..=200).map(|step| 1.0 + f64::from(step) * 0.001).map(|f| f * LAW.beta(f));
        let least = least.fold(f64::INFINITY, f64::min);
        // open-questions#X-32: the text prints 0.723.
        assert!((least - 0.78).abs() < 1e-12, "{least}");
    }
}
