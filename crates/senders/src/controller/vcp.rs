//! VCP, the Variable-structure congestion Control Protocol (Xia et al., SIGCOMM 2005, `xia05`): the router
//! says low load, high load or overload, and each answer is another control law.
//!
//! ```text
//! low:        w(t + T) = w(t) (1 + xi_s)       xi_s = (1 + xi)^(T / t_rho) - 1,  xi = kappa (1 - 0.8) / 0.8
//!                                                                                            xia05 eq.3, 3.3
//! high:       w(t + T) = w(t) + alpha_s        alpha_s = alpha (T / t_rho)^2                 xia05 eq.4, 3.3
//! overload:   w(t+)    = w(t) beta                                                            xia05 eq.5
//!
//! after a decrease:   the window is frozen for t_rho, then grows as at high load for one T  xia05 3.3
//!                     whatever the load; only then it may fall again
//! ```
//!
//! So two flows grow alike per unit of time whatever their round trips, and end with equal rates.
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | t_rho | `interval` | s | 200 ms | xia05 3.1 |
//! | kappa | `kappa` | 1 | 0.25 | abc20 F; xi = 0.0625 |
//! | - | `low_load` | 1 | 0.8 | xia05 3.1 |
//! | alpha | `alpha` | packets | 1 | xia05 eq.4 |
//! | beta | `beta` | 1 | 0.875 | xia05 eq.5 |
//! | - | `scale_most` | 1 | 2.5 | the authors' simulator: T / t_rho for multiplicative increase |
//! | t_d | `ai_rtt` | s | 200 ms | xia05 3.3; the authors' simulator: 100 ms |
//! | - | `ai_linear` | s | none | the authors' simulator: 500 ms |
//!
//! # Deviations
//!
//! - D1. `freeze=overload` is the authors' simulator: in the frozen time and in the round trip after it only
//!   the answer to overload is replaced, so a lower load is followed at once.
//! - D2. The authors' simulator scales alpha by t_d = 100 ms (`ai_rtt=100ms`), as if T were at least 20 ms in
//!   one of the two factors, and linearly beyond 500 ms (`ai_linear=500ms`). The former bound is not kept.
//! - D3. It also paces windows of at most 64 packets over long round trips. The host sends as ACKs come.
//! - D4. The code of the highest load of an ACK's packets counts, see `feedback/explicit.rs`. A flow whose
//!   path has no VCP router hears of low load only, and of losses.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, IdleEvent, LossEvent, ReceiverReport, SendDirective, SendEvent,
};
use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::packet::Header;
use brakelight_core::parameters::OrNone;
use brakelight_core::time::{Duration, Time};
use brakelight_estimates::load_factor::vcp_code as code;

use super::load::{LoadWindow, window_methods};

choices! {
    /// What the time after a decrease replaces.
    pub enum Freeze {
        /// Every answer.
        Full = "full",
        /// The answer to overload.
        Overload = "overload",
    }
}

parameters! {
    /// VCP's settings.
    pub struct Config {
        /// The routers' interval (t_rho).
        interval: Duration = Duration::from_millis(200), in Duration::from_millis(1)..=Duration::from_secs(10), from "xia05 3.1";
        /// Gain of the multiplicative increase.
        kappa: f64 = 0.25, in 0.01..=10.0, from "abc20 F";
        /// Load factor from which load is high: with kappa it makes xi.
        low_load: f64 = 0.8, in 0.1..=0.99, from "xia05 3.1";
        /// Packets gained per round trip of `ai_rtt` at high load.
        alpha: f64 = 1.0, in 0.01..=1000.0, from "xia05 eq.4";
        /// What a decrease leaves.
        beta: f64 = 0.875, in 0.1..=0.99, from "xia05 eq.5";
        /// Most intervals that a round trip counts as in the multiplicative increase.
        scale_most: f64 = 2.5, in 0.1..=100.0, from "xia05, authors' simulator";
        /// Round trip at which the additive increase is alpha (t_d).
        ai_rtt: Duration = Duration::from_millis(200), in Duration::from_millis(1)..=Duration::from_secs(10), from "xia05 3.3";
        /// Round trip from which the additive increase grows with it, and no longer with its square.
        ai_linear: Option<Duration> = None, in OrNone(Duration::from_millis(1)..=Duration::from_secs(10)), from "xia05 3.3: none; the authors' simulator: 500 ms";
        /// What the time after a decrease replaces.
        freeze: Freeze = Freeze::Full, in .., from "xia05 3.3";
    }
}

/// What the last decrease still does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Nothing.
    Open,
    /// The window stands until then.
    Frozen { until: Time },
    /// It grows as at high load until then.
    Careful { until: Time },
}

/// VCP's window.
#[derive(Clone, Debug)]
pub struct Vcp {
    config: Config,
    xi: f64,
    window: LoadWindow,
    phase: Phase,
    /// What the last ACK said.
    load: u8,
}

impl Vcp {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        Vcp {
            // xia05 3.2
            xi: config.kappa * (1.0 - config.low_load) / config.low_load,
            config,
            window: LoadWindow::new(connection),
            phase: Phase::Open,
            load: code::LOW,
        }
    }

    fn pass_time(&mut self, now: Time) {
        if let Phase::Frozen { until } = self.phase
            && now >= until
        {
            self.phase = Phase::Careful { until: until + self.window.rtt_or(self.config.interval) };
        }
        if let Phase::Careful { until } = self.phase
            && now >= until
        {
            self.phase = Phase::Open;
        }
    }

    fn multiply(&mut self, event: &AckEvent<'_>) {
        // xia05 3.3
        let rtts = self.window.rtts_of(self.config.interval).min(self.config.scale_most);
        self.window.multiply(event, libm::pow(1.0 + self.xi, rtts));
    }

    fn add(&mut self, event: &AckEvent<'_>) {
        // xia05 3.3
        let rtts = self.window.rtts_of(self.config.ai_rtt);
        let most = self.config.ai_linear.map(|bound| bound.as_secs_f64() / self.config.ai_rtt.as_secs_f64());
        self.window.add(event, self.config.alpha * rtts * most.map_or(rtts, |most| rtts.min(most)));
    }
}

impl Controller for Vcp {
    fn on_send(&mut self, _event: &SendEvent) -> SendDirective {
        SendDirective { ecn: Ecn::NotEct, header: Header::Load { code: code::LOW }, tag: 0, cwr: false }
    }

    fn decides_on_send(&self) -> bool {
        false
    }

    fn reads_acked(&self) -> bool {
        false
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.window.hear(event);
        if let ReceiverReport::Header(Header::Load { code }) = event.report {
            self.load = code;
        }
        self.pass_time(event.now);
        let overload = self.load >= code::OVERLOAD;
        let held = overload || self.config.freeze == Freeze::Full;
        match self.phase {
            Phase::Frozen { .. } if held => {}
            Phase::Careful { .. } if held => self.add(event),
            _ if overload && !event.in_recovery() => {
                self.window.decrease(self.config.beta);
                self.phase = Phase::Frozen { until: event.now + self.config.interval };
            }
            _ if self.load == code::HIGH => self.add(event),
            _ if overload => {}
            _ => self.multiply(event),
        }
    }

    fn on_loss(&mut self, _event: &LossEvent) {
        self.window.on_loss();
    }

    fn on_idle_restart(&mut self, event: &IdleEvent) {
        self.window.on_idle_restart(event);
        // What was said before says nothing of now.
        self.load = code::LOW;
    }

    window_methods!();

    fn encoding(&self) -> Encoding {
        Encoding::Explicit
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("load_code", f64::from(self.load));
        visit("frozen", f64::from(u8::from(matches!(self.phase, Phase::Frozen { .. }))));
    }
}

#[cfg(test)]
mod tests {
    use brakelight_core::controller::RecoveryState;
    use brakelight_core::parameters::Parameters;
    use brakelight_core::units::Bytes;
    use brakelight_testkit::events::{ack, connection, loss, packet, packets};

    use super::*;

    fn vcp(options: &[(&str, &str)], initial_pkts: u64) -> Vcp {
        let config = Config::from_options(options.iter().copied()).unwrap();
        Vcp::new(config, &connection(initial_pkts))
    }

    /// An ACK of one packet at `ms` that says `code`, over a round trip of `rtt_ms`.
    fn hear(vcp: &mut Vcp, ms: u64, rtt_ms: u64, code: u8) {
        let now = Time::from_millis(ms);
        let acked = [packet(0, now.saturating_sub(Duration::from_millis(rtt_ms)))];
        let report = ReceiverReport::Header(Header::Load { code });
        vcp.on_ack(&AckEvent { report, ..ack(now, &acked, Duration::from_millis(rtt_ms)) });
    }

    fn cwnd_pkts(vcp: &Vcp) -> f64 {
        vcp.window.packets()
    }

    /// HN-U1: one round trip of t_rho multiplies by 1.0625; 1.0625^12 = 2.07.
    #[test]
    fn doubles_in_twelve_round_trips_at_low_load() {
        let mut vcp = vcp(&[], 1600);
        let mut rounds = 0;
        while cwnd_pkts(&vcp) < 3200.0 {
            for _ in 0..cwnd_pkts(&vcp) as u64 {
                hear(&mut vcp, 200 * rounds, 200, code::LOW);
            }
            rounds += 1;
            if rounds == 1 {
                assert!((cwnd_pkts(&vcp) - 1700.0).abs() < 1e-6);
            }
        }
        assert_eq!(rounds, 12);
    }

    /// xia05 3.3: at T = 50 ms, four round trips multiply by 1.0625 and add 4 * (1/4)^2 packets.
    #[test]
    fn shorter_round_trips_grow_no_faster() {
        let mut quick = vcp(&[], 1600);
        hear(&mut quick, 0, 50, code::LOW);
        assert!((cwnd_pkts(&quick) - 1600.0 - (libm::pow(1.0625, 0.25) - 1.0)).abs() < 1e-9);
        let mut quick = vcp(&[], 1600);
        hear(&mut quick, 0, 50, code::HIGH);
        assert!((cwnd_pkts(&quick) - 1600.0 - 0.0625 / 1600.0).abs() < 1e-9);
        let mut slow = vcp(&[], 1600);
        hear(&mut slow, 0, 2000, code::LOW);
        assert!((cwnd_pkts(&slow) - 1600.0 - (libm::pow(1.0625, 2.5) - 1.0)).abs() < 1e-9);
        let mut typical = vcp(&[("ai_rtt", "100ms")], 1600);
        hear(&mut typical, 0, 200, code::HIGH);
        assert!((cwnd_pkts(&typical) - 1600.0 - 4.0 / 1600.0).abs() < 1e-9);
        // 10 times t_d: 10 x 10 packets, or 10 x 5 where the square ends at 500 ms.
        for (bound, pkts) in [("none", 100.0), ("500ms", 50.0)] {
            let mut slow = vcp(&[("ai_rtt", "100ms"), ("ai_linear", bound)], 1600);
            hear(&mut slow, 0, 1000, code::HIGH);
            assert!((cwnd_pkts(&slow) - 1600.0 - pkts / 1600.0).abs() < 1e-9, "{bound}");
        }
    }

    #[test]
    fn falls_once_stands_still_and_grows_carefully_before_it_may_fall_again() {
        let mut vcp = vcp(&[], 100);
        hear(&mut vcp, 0, 100, code::OVERLOAD);
        assert_eq!(cwnd_pkts(&vcp), 87.5);
        // t_rho of standing still, whatever comes.
        for (ms, code) in [(1, code::OVERLOAD), (100, code::HIGH), (199, code::LOW)] {
            hear(&mut vcp, ms, 100, code);
            assert_eq!(cwnd_pkts(&vcp), 87.5, "at {ms} ms");
        }
        // One round trip of additive increase: (100/200)^2 / 87.5 per packet.
        hear(&mut vcp, 200, 100, code::OVERLOAD);
        assert!((cwnd_pkts(&vcp) - 87.5 - 0.25 / 87.5).abs() < 1e-9);
        hear(&mut vcp, 299, 100, code::OVERLOAD);
        let before = cwnd_pkts(&vcp);
        assert!(before > 87.5 && before < 87.51);
        hear(&mut vcp, 300, 100, code::OVERLOAD);
        assert!((cwnd_pkts(&vcp) - 0.875 * before).abs() < 1e-9);
    }

    /// The authors' simulator.
    #[test]
    fn may_follow_a_lower_load_at_once() {
        let mut vcp = vcp(&[("freeze", "overload")], 100);
        hear(&mut vcp, 0, 200, code::OVERLOAD);
        hear(&mut vcp, 1, 200, code::OVERLOAD);
        assert_eq!(cwnd_pkts(&vcp), 87.5);
        hear(&mut vcp, 2, 200, code::HIGH);
        assert!((cwnd_pkts(&vcp) - 87.5 - 1.0 / 87.5).abs() < 1e-9);
        let before = cwnd_pkts(&vcp);
        hear(&mut vcp, 3, 200, code::LOW);
        assert!((cwnd_pkts(&vcp) - before - 0.0625).abs() < 1e-9);
    }

    #[test]
    fn a_loss_halves_and_a_window_that_is_no_limit_does_not_grow() {
        let mut vcp = vcp(&[], 100);
        vcp.on_loss(&loss(Time::from_millis(5)));
        assert_eq!(vcp.cwnd(), packets(50));
        let acked = [packet(0, Time::ZERO)];
        let event = ack(Time::from_millis(200), &acked, Duration::from_millis(200));
        vcp.on_ack(&AckEvent { cwnd_limited: false, ..event });
        vcp.on_ack(&AckEvent { recovery: RecoveryState::Recovery, ..event });
        assert_eq!(vcp.cwnd(), packets(50));
        vcp.on_ack(&event);
        assert_eq!(vcp.cwnd(), packets(50) + Bytes(63));
    }
}
