//! noq's trait `Controller` for a controller of Brakelight's.

use std::any::Any;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use brakelight_core::controller::Controller as _;
use brakelight_core::time::Time;
use brakelight_core::units::Rate;
use brakelight_registry::ControllerConfig;
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerMetrics};

use crate::sender::Sender;

/// The controller of one path.
///
/// noq reports an ACK in several calls, its losses last. They are gathered, and told when the next call comes
/// or the window is read.
#[derive(Debug)]
pub struct NoqController {
    base: Instant,
    initial_window: u64,
    /// Reading the window may tell the controller of an ACK.
    sender: Mutex<Sender>,
}

impl NoqController {
    /// Returns the controller of `config` for a path that begins at `now`, with datagrams of `mtu` bytes.
    pub fn new(config: &ControllerConfig, now: Instant, mtu: u16) -> Self {
        let sender = Sender::new(config, mtu);
        let initial_window = sender.controller().cwnd().0;
        NoqController { base: now, initial_window, sender: Mutex::new(sender) }
    }

    fn lock(&self) -> MutexGuard<'_, Sender> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sender(&mut self) -> &mut Sender {
        self.sender.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn time(&self, at: Instant) -> Time {
        let nanos = at.saturating_duration_since(self.base).as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Controller for NoqController {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        let now = self.time(now);
        self.sender().on_sent(now, u64::from(bytes), pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.sender().on_cwnd_limited();
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        _bytes: u64,
        pn: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        let (now, sent) = (self.time(now), self.time(sent));
        self.sender().on_acked(now, sent, pn);
    }

    fn on_end_acks(&mut self, now: Instant, _in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        let now = self.time(now);
        self.sender().on_end_acks(now, app_limited);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        let (now, sent) = (self.time(now), self.time(sent));
        if is_ecn {
            self.sender().on_ce(now, sent);
        } else {
            self.sender().on_losses(now, sent, is_persistent_congestion, lost_bytes);
        }
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        let now = self.time(now);
        self.sender().on_lost(now, u64::from(lost_bytes), pn);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.sender().on_spurious();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.sender().on_mtu(u64::from(new_mtu));
    }

    fn window(&self) -> u64 {
        let mut sender = self.lock();
        sender.flush();
        sender.controller().cwnd().0
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut sender = self.lock();
        sender.flush();
        let controller = sender.controller();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = controller.cwnd().0;
        metrics.ssthresh = controller.ssthresh().map(|ssthresh| ssthresh.0);
        // In bytes per second; noq takes none for 1.25 windows per round trip.
        metrics.pacing_rate = controller.pacing_rate().and_then(Rate::paced).map(|rate| rate.bps() / 8);
        metrics.send_quantum = controller.send_quantum().map(|quantum| quantum.0);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let sender = Mutex::new(self.lock().clone());
        Box::new(NoqController { base: self.base, initial_window: self.initial_window, sender })
    }

    fn initial_window(&self) -> u64 {
        self.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
