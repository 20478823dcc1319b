//! AIMD: a window that grows by so many packets per round trip, and falls to a share of itself when a packet
//! is lost.
//!
//! on ACK:      cwnd += increase * acked * mss / cwnd      in congestion avoidance
//!              cwnd += acked                              in slow start, below ssthresh
//! on loss:     cwnd  = ssthresh = decrease * cwnd
//! on timeout:  cwnd  = 1 packet

use brakelight_core::controller::{AckEvent, Connection, Controller, LossEvent, Timeout, TimeoutEvent};
use brakelight_core::parameters;
use brakelight_core::units::Bytes;
use brakelight_registry::{Algorithm, CustomController};

parameters! {
    /// Settings of [`Aimd`].
    pub struct Config {
        /// Packets gained per round trip.
        increase: f64 = 1.0, in 0.01..=100.0, from "Chiu and Jain 1989";
        /// What a loss leaves of the window.
        decrease: f64 = 0.5, in 0.1..=0.95, from "Chiu and Jain 1989";
    }
}

/// The window.
#[derive(Clone, Debug)]
pub struct Aimd {
    config: Config,
    mss: f64,
    cwnd_bytes: f64,
    ssthresh_bytes: f64,
}

impl Aimd {
    fn falls_to(&mut self, bytes: f64) {
        self.cwnd_bytes = bytes.max(self.mss);
    }
}

impl Algorithm for Aimd {
    type Config = Config;
    const NAME: &'static str = "aimd";
    const SUMMARY: &'static str =
        "AIMD: so many packets more per round trip, a share of the window after a loss";
}

impl CustomController for Aimd {
    fn build(config: &Config, connection: &Connection) -> Self {
        Aimd {
            config: config.clone(),
            mss: connection.mss.as_f64(),
            cwnd_bytes: connection.initial_window.as_f64(),
            ssthresh_bytes: f64::INFINITY,
        }
    }
}

impl Controller for Aimd {
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if event.in_recovery() || !event.cwnd_limited {
            return;
        }
        let acked = event.growth.as_f64();
        self.cwnd_bytes += if self.cwnd_bytes < self.ssthresh_bytes {
            acked
        } else {
            self.config.increase * acked * self.mss / self.cwnd_bytes
        };
        // No path holds more: the window of TCP's header, scaled.
        self.cwnd_bytes = self.cwnd_bytes.min(f64::from(1 << 30));
    }

    fn on_loss(&mut self, _event: &LossEvent) {
        self.falls_to(self.config.decrease * self.cwnd_bytes);
        self.ssthresh_bytes = self.cwnd_bytes;
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        match event.kind {
            Timeout::Pto => {}
            Timeout::Rto => {
                self.ssthresh_bytes = (self.config.decrease * self.cwnd_bytes).max(self.mss);
                self.falls_to(0.0);
            }
            // Its loss came before, and lowered the threshold.
            Timeout::PersistentCongestion => self.falls_to(0.0),
        }
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss.as_f64();
        self.falls_to(self.cwnd_bytes);
    }

    fn cwnd(&self) -> Bytes {
        Bytes(self.cwnd_bytes as u64)
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.ssthresh_bytes.is_finite().then_some(Bytes(self.ssthresh_bytes as u64))
    }
}
