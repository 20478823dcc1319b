//! MLCP, the Multi-Level feedback Congestion control Protocol (Qazi and Znati, INFOCOM 2008, `qazi08`): VCP
//! with the load factor in sixteen levels, so that it grows by what is left of the link and falls by what is
//! too much.
//!
//! ```text
//! f < eta:        w(t + T) = w(t) (1 + kappa_2 (1 - f) / f)^(T / t_p)            bmcc eq.3
//! eta <= f < 1:   w(t + T) = w(t) + (T / t_p)^2                                   bmcc eq.4
//! f >= 1:         w(t+) = w(t) beta(f), linear from beta_max at 1 to beta_min at u;   bmcc eq.6
//!                 once per `hold`: max(T, t_p), T + t_p, or either by T
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | t_p | `interval` | s | 200 ms | bmcc table I |
//! | kappa_2 | `kappa` | 1 | 0.35 | bmcc table I |
//! | eta_0, eta, u | `eta_0`, `eta`, `u` | 1 | 0.15, 0.8, 1.2 | as the router's |
//! | beta_max, beta_min | `beta_max`, `beta_min` | 1 | 0.875, 0.65 | bmcc table I |
//! | - | `growth_most` | 1 | 4 | open-questions#X-38 |
//! | - | `hold` | max(T, t_p), T + t_p, or the sum for T < t_p | max(T, t_p) | open-questions#X-37 |
//!
//! # Deviations
//!
//! - D1. Of the paper only the abstract was at hand: four bits (three are nearly as good), several levels of
//!   decrease. The laws are those that the same authors wrote for BMCC, which they say grows like MLCP;
//!   kappa_2 and beta are BMCC's too (open-questions#X-75).
//! - D2. In multiplicative increase a level stands for its upper end, so that the window is not driven beyond
//!   the level.
//! - D3. Four bits are also what MPCP's senders know, after two packets instead of one (li09). Its
//!   signalling, which needs state per flow in routers, is not modelled: MLCP stands for it, one packet
//!   early.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, IdleEvent, LossEvent, ReceiverReport, SendDirective, SendEvent,
};
use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::packet::Header;
use brakelight_estimates::load_factor::Levels;

use super::load::{Law, LoadWindow, law_parameters, window_methods};

law_parameters! {
    /// MLCP's settings.
    pub struct Config {
        eta = 0.8 from "xia05 3.1";
    }
}

/// MLCP's window.
#[derive(Clone, Debug)]
pub struct Mlcp {
    law: Law,
    levels: Levels,
    window: LoadWindow,
    /// What the last ACK said.
    code: u8,
}

impl Mlcp {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        Mlcp {
            law: config.law(),
            levels: Levels { eta_0: config.eta_0, eta: config.eta, u: config.u },
            window: LoadWindow::new(connection),
            code: 0,
        }
    }
}

impl Controller for Mlcp {
    fn on_send(&mut self, _event: &SendEvent) -> SendDirective {
        SendDirective { ecn: Ecn::NotEct, header: Header::Load { code: 0 }, tag: 0, cwr: false }
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
            self.code = code;
        }
        let load = self.levels.decode(self.code);
        if self.code < Levels::OVERLOAD {
            self.window.grow(event, &self.law, load, self.code < Levels::MEDIUM);
        } else if !event.in_recovery() {
            self.window.fall(event.now, &self.law, load);
        }
    }

    fn on_loss(&mut self, _event: &LossEvent) {
        self.window.on_loss();
    }

    fn on_idle_restart(&mut self, event: &IdleEvent) {
        self.window.on_idle_restart(event);
        // What was said before says nothing of now.
        self.code = 0;
    }

    window_methods!();

    fn encoding(&self) -> Encoding {
        Encoding::Explicit
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("load_factor", self.levels.decode(self.code));
    }
}

#[cfg(test)]
mod tests {
    use brakelight_core::time::{Duration, Time};
    use brakelight_testkit::events::{ack, connection, packet};

    use super::*;

    /// An ACK of one packet at `ms` that says `code`, over a round trip of `rtt_ms`.
    fn hear(mlcp: &mut Mlcp, ms: u64, rtt_ms: u64, code: u8) {
        let now = Time::from_millis(ms);
        let acked = [packet(0, now.saturating_sub(Duration::from_millis(rtt_ms)))];
        let report = ReceiverReport::Header(Header::Load { code });
        mlcp.on_ack(&AckEvent { report, ..ack(now, &acked, Duration::from_millis(rtt_ms)) });
    }

    /// What one ACK of a window of 100 packets adds, in packets.
    fn growth_pkts(rtt_ms: u64, code: u8) -> f64 {
        let mut mlcp = Mlcp::new(Config::default(), &connection(100));
        hear(&mut mlcp, 1000, rtt_ms, code);
        mlcp.window.packets() - 100.0
    }

    /// Per window: 0.35 * 0.85 / 0.15 at level 0; level 9 stands for 0.8, 0.35 * 0.25; a packet in medium
    /// load.
    #[test]
    fn grows_by_what_is_left_of_the_link() {
        assert!((growth_pkts(200, 0) - 1.98333).abs() < 1e-4);
        assert!((growth_pkts(200, 9) - 0.0875).abs() < 1e-9);
        for code in [10, 11] {
            assert!((growth_pkts(200, code) - 0.01).abs() < 1e-9);
            assert!((growth_pkts(100, code) - 0.0025).abs() < 1e-9);
        }
        assert!((growth_pkts(2000, 0) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn falls_by_the_level_of_overload_once_per_interval() {
        for (code, beta) in [(12, 0.875), (13, 0.8), (14, 0.725), (15, 0.65)] {
            let mut mlcp = Mlcp::new(Config::default(), &connection(100));
            hear(&mut mlcp, 0, 100, code);
            hear(&mut mlcp, 199, 100, 15);
            assert!((mlcp.window.packets() - 100.0 * beta).abs() < 1e-9, "{code}");
            hear(&mut mlcp, 200, 100, 15);
            assert!((mlcp.window.packets() - 65.0 * beta).abs() < 1e-9, "{code}");
        }
    }

    #[test]
    fn over_long_round_trips_it_falls_once_per_round_trip() {
        let mut mlcp = Mlcp::new(Config::default(), &connection(100));
        hear(&mut mlcp, 0, 500, 15);
        hear(&mut mlcp, 499, 500, 15);
        assert!((mlcp.window.packets() - 65.0).abs() < 1e-9);
        hear(&mut mlcp, 500, 500, 15);
        assert!((mlcp.window.packets() - 42.25).abs() < 1e-9);
    }
}
