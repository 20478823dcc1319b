//! Our controllers behind the stack's trait: window controllers for any quinn application, all others under
//! our own driver.
//!
//! | file | holds |
//! |---|---|
//! | `sender` | from the stack's calls to our events |
//! | `peer` | receive times and marks of single packets |
//! | `support` | which controllers can run, and where |
//!
//! ```text
//! let factory = Factory::new(settings);                   // one per endpoint, or per connection
//! let tap = Tap::new(factory.open(), stamps.clone());     // around the TLS configuration
//! transport.congestion_controller_factory(factory);
//! ```
//!
//! A connection's controller and its tap share one [`ControllerAdapter`]: the stack makes the session and
//! then the controller of a connection in one call on one thread, and the factory takes what its tap has just
//! opened. Without the tap a controller works as every other of quinn does: it hears of CE where the stack's
//! own validation lets it, and of no other mark.

use std::any::Any;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use brakelight_core::controller::Controller as _;
use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::{Carries, ControllerConfig};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use crate::tap::frames::Ack;
use crate::tap::parameters::Parameters;
use crate::tap::{Listener, Open};
use crate::validation::State;

mod peer;
mod sender;
pub mod support;

pub use peer::Times;
use sender::Sender;
pub use sender::{Counters, SendAdmission};
pub use support::{PacketSender, Path, Unsupported};

/// A window so large that the stack's pacer stands aside (quinn-proto, `Pacer::delay`).
const OPEN: u64 = 1 << 40;
/// A window into which nothing fits.
const SHUT: u64 = 1;
/// The controller must be asked.
const UNKNOWN: u64 = 0;

/// Returns the 16 bits by which routers tell packet `wire` from others: as an IPv4 identification that counts
/// packets.
pub fn hash16(wire: u64) -> u16 {
    wire as u16
}

/// Settings of a connection's congestion control.
#[derive(Clone, Debug)]
pub struct ControlSettings {
    controller: ControllerConfig,
    packet_sender: PacketSender,
    /// The window before the first ACK, in packets, unless the controller sets its own.
    pub initial_window: u32,
    /// Packets that may leave back to back after a pause, under our driver.
    pub pacing_burst: u32,
    /// Packets that leave within this time at the pacing rate may leave together, under our driver: as many
    /// as one transmission holds, and half of the window at most. Zero, the default, spaces each packet.
    pub pacing_interval: Duration,
    /// Bytes of IP and UDP headers that go with each datagram.
    pub overhead: u64,
    /// The controller's stream of random numbers.
    pub random: Random,
    /// Whether the controller is to be told when packets arrived: QUIC-DC is, and ABC with it as the other
    /// window.
    pub receive_times: bool,
}

impl ControlSettings {
    /// Returns settings with the defaults of RFC 9002, or why `controller` cannot run at `packet_sender` on
    /// `path`.
    pub fn new(
        controller: ControllerConfig,
        packet_sender: PacketSender,
        path: Path,
    ) -> Result<Self, Unsupported> {
        support::check(&controller, packet_sender, path)?;
        let random = Random::stream(0, "controller");
        let receive_times = controller.feedback().carries() == Carries::ReceiveTimes;
        Ok(ControlSettings {
            controller,
            packet_sender,
            initial_window: 10,
            pacing_burst: 10,
            pacing_interval: Duration::ZERO,
            overhead: 28,
            random,
            receive_times,
        })
    }

    /// Returns the controller.
    pub fn controller(&self) -> &ControllerConfig {
        &self.controller
    }

    /// Returns the same under our driver, where all runs that runs in an application of quinn.
    pub fn under_driver(self) -> Self {
        ControlSettings { packet_sender: PacketSender::Driver, ..self }
    }

    /// Returns who sends its packets.
    pub fn packet_sender(&self) -> PacketSender {
        self.packet_sender
    }

    /// Returns what its packets mean by ECN.
    pub fn encoding(&self) -> Encoding {
        support::encoding(&self.controller)
    }
}

/// One connection's congestion controller, adapted to the QUIC stack. The stack, the tap and observers share
/// it.
#[derive(Debug)]
pub struct ControllerAdapter {
    settings: ControlSettings,
    tapped: bool,
    /// The window that the stack was told, which asks for it several times per packet, or [`UNKNOWN`].
    /// Written under the lock.
    window: AtomicU64,
    /// Whether anything may have changed since all was told.
    changed: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    base: Option<Instant>,
    sender: Option<Sender>,
    open: bool,
    /// When the driver last asked whether a packet may leave.
    now: Time,
}

impl ControllerAdapter {
    /// Returns the adapter of a connection that has not begun. Time zero is `base` on the stack's clock, or
    /// the connection's first instant where `base` is `None`.
    pub fn new(settings: ControlSettings, tapped: bool, base: Option<Instant>) -> Self {
        let inner = Mutex::new(Inner { base, ..Inner::default() });
        ControllerAdapter {
            settings,
            tapped,
            window: AtomicU64::new(UNKNOWN),
            changed: AtomicBool::new(true),
            inner,
        }
    }

    /// Returns the registered name of its controller.
    pub fn controller(&self) -> &'static str {
        self.settings.controller.name()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Sender) -> T) -> Option<T> {
        self.change().sender.as_mut().map(act)
    }

    /// The lock, for what may change the window.
    fn change(&self) -> MutexGuard<'_, Inner> {
        let inner = self.lock();
        self.window.store(UNKNOWN, Ordering::Relaxed);
        self.changed.store(true, Ordering::Relaxed);
        inner
    }

    /// Returns what the connection did so far.
    pub fn counters(&self) -> Counters {
        self.with(|sender| sender.counters()).unwrap_or_default()
    }

    /// Returns the state of ECN validation.
    pub fn validation(&self) -> State {
        self.with(|sender| sender.validation()).unwrap_or(State::Testing)
    }

    /// Returns where receive times come from.
    pub fn times(&self) -> Times {
        self.with(|sender| sender.times()).unwrap_or(Times::Unused)
    }

    /// Returns the controller's window; zero before the connection begins.
    pub fn cwnd(&self) -> Bytes {
        self.with(|sender| sender.controller().cwnd()).unwrap_or(Bytes::ZERO)
    }

    /// Returns the bytes in flight.
    pub fn inflight(&self) -> Bytes {
        self.with(|sender| sender.inflight()).unwrap_or(Bytes::ZERO)
    }

    /// Returns the smoothed RTT, or `None` before the first sample.
    pub fn smoothed_rtt(&self) -> Option<Duration> {
        self.with(|sender| sender.smoothed_rtt()).flatten()
    }

    /// Returns the newest RTT sample that was not taken yet.
    pub fn take_rtt_sample(&self) -> Option<Duration> {
        self.with(Sender::take_rtt_sample).flatten()
    }

    /// Returns the controller's pacing rate, if it has one.
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.with(|sender| sender.controller().pacing_rate()).flatten()
    }

    /// Returns the rate at which the controller lets an encoder produce, if that is another than its pacing
    /// rate.
    pub fn media_rate(&self) -> Option<Rate> {
        self.with(|sender| sender.controller().media_rate()).flatten()
    }

    /// Calls `visit` with what the controller shows of itself.
    pub fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.with(|sender| sender.controller().inspect(visit));
    }

    /// Breaches of the contract between host and controller, in words.
    #[cfg(test)]
    pub(crate) fn violations(&self) -> Vec<String> {
        let told =
            |sender: &mut Sender| sender.controller().violations().iter().map(ToString::to_string).collect();
        self.with(told).unwrap_or_default()
    }

    // For the driver.

    /// Opens or shuts the window that the stack sees. Returns whether the next packet may leave at `now`, and
    /// how many full ones may leave together if it may: `most` at most, and one at least.
    pub(crate) fn admit(&self, now: Time, most: usize) -> (SendAdmission, usize) {
        let mut inner = self.lock();
        inner.now = now;
        let Some(sender) = &mut inner.sender else {
            inner.open = true;
            return (SendAdmission::Now, 1);
        };
        let admission = sender.admission(now);
        let open = admission == SendAdmission::Now;
        let room = if open && most > 1 { sender.room(now).clamp(1, most) } else { 1 };
        inner.open = open;
        // Everything gathered has been told.
        self.window.store(if open { OPEN } else { SHUT }, Ordering::Relaxed);
        (admission, room)
    }

    /// Opens the window that the stack sees: the connection is closed, and only says so.
    pub(crate) fn open_for_good(&self) {
        self.change().open = true;
    }

    /// A datagram came from the peer.
    pub(crate) fn on_datagram(&self, now: Time, datagram: &[u8]) {
        self.with(|sender| sender.on_datagram(now, datagram));
    }

    /// Tells the controller what has been gathered.
    pub(crate) fn flush(&self) {
        if self.changed.load(Ordering::Relaxed) {
            self.with(Sender::flush);
        }
    }

    /// Tells the controller what has been gathered. Returns the RTT sample that it brought, if it did.
    pub(crate) fn settle(&self) -> Option<Duration> {
        if !self.changed.load(Ordering::Relaxed) {
            return None;
        }
        let mut inner = self.change();
        self.changed.store(false, Ordering::Relaxed);
        let sender = inner.sender.as_mut()?;
        sender.flush();
        sender.take_rtt_sample()
    }

    /// The number of the packet that was just sent, if it asks for an ACK, after the handshake.
    pub(crate) fn last_number(&self) -> Option<u64> {
        self.with(|sender| sender.last_number()).flatten()
    }

    /// Whether the peer's reports would be of use, and none has come.
    pub(crate) fn wants_reports(&self) -> bool {
        self.with(|sender| sender.wants_reports()).unwrap_or(false)
    }

    /// When the controller wants to be called.
    pub(crate) fn next_timer(&self) -> Option<Time> {
        self.with(|sender| sender.next_timer()).flatten()
    }

    /// Calls the controller if it wants to be.
    pub(crate) fn on_timer(&self, now: Time) {
        self.with(|sender| sender.on_timer(now));
    }
}

impl Listener for ControllerAdapter {
    fn on_ack(&self, ack: &Ack<'_>, newest: bool) {
        self.with(|sender| sender.on_frame(ack, newest));
    }

    fn on_parameters(&self, parameters: &Parameters) {
        self.with(|sender| sender.on_parameters(parameters));
    }

    fn on_early_discarded(&self) {
        self.with(Sender::on_early_discarded);
    }

    fn on_seal(&self, number: u64, packet: &[u8], eliciting: bool) -> Option<Ecn> {
        let mut inner = self.lock();
        let Inner { base: Some(base), sender: Some(sender), now, .. } = &mut *inner else { return None };
        let stack = self.settings.packet_sender == PacketSender::Stack;
        if stack && sender.needs_time() {
            // The stack says no time here. The driver has said it just before; elsewhere there is the clock
            // that the stack reads.
            *now = time(*base, Instant::now());
        }
        let ecn = sender.on_seal(*now, number, packet.len() as u64, eliciting);
        if stack && sender.chooses() {
            // The controller was asked, and may have changed its window.
            self.window.store(open_window(sender), Ordering::Relaxed);
        }
        Some(ecn)
    }
}

/// quinn's `Controller` trait for a connection: passes every call on to the connection's
/// [`ControllerAdapter`].
///
/// The stack reports an ACK packet by packet, and then its end. The packets are kept until the end comes, so
/// that the adapter is locked once. An ACK without an end, which only a Retry brings, is told with the next
/// call.
#[derive(Clone, Debug)]
pub struct QuinnController {
    adapter: Arc<ControllerAdapter>,
    initial_window: u64,
    /// Packets acknowledged whose ACK has not ended: when each was sent, and its bytes.
    acked: Vec<(Instant, u64)>,
    acked_at: Instant,
}

impl QuinnController {
    /// Returns the adapter that the calls are passed to.
    pub fn adapter(&self) -> &Arc<ControllerAdapter> {
        &self.adapter
    }

    fn begin(adapter: Arc<ControllerAdapter>, at: Instant, mtu: u16) -> Self {
        let mut inner = adapter.lock();
        let base = *inner.base.get_or_insert(at);
        let now = time(base, at);
        let sender = Sender::new(&adapter.settings, adapter.tapped, now, mtu);
        let initial_window = sender.controller().cwnd().0;
        inner.sender = Some(sender);
        drop(inner);
        QuinnController { adapter, initial_window, acked: Vec::new(), acked_at: at }
    }

    /// Calls `act` with the sender and the clock, once the sender knows of every packet acknowledged.
    fn with(&mut self, act: impl FnOnce(&mut Sender, Instant)) {
        let mut inner = self.adapter.change();
        if let Inner { base: Some(base), sender: Some(sender), .. } = &mut *inner {
            if !self.acked.is_empty() {
                let now = time(*base, self.acked_at);
                // Packets of a batch have one time.
                let mut before: Option<(Instant, Time)> = None;
                let packets = self.acked.drain(..).map(|(sent, bytes)| {
                    let at = match before {
                        Some((instant, at)) if instant == sent => at,
                        _ => time(*base, sent),
                    };
                    before = Some((sent, at));
                    (at, bytes)
                });
                sender.on_acked(now, packets);
            }
            act(sender, *base);
        }
    }
}

/// The window of an application of quinn. The stack sends while what is in flight with the next packet stays
/// below the window, so a window of exactly one packet would let none go.
fn open_window(sender: &Sender) -> u64 {
    sender.controller().cwnd().0.saturating_add(1)
}

fn time(base: Instant, at: Instant) -> Time {
    Time::from_nanos(at.saturating_duration_since(base).as_nanos() as u64)
}

impl Controller for QuinnController {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        self.with(|sender, base| sender.on_sent(time(base, now), bytes));
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _app_limited: bool, _rtt: &RttEstimator) {
        if now != self.acked_at && !self.acked.is_empty() {
            self.with(|_, _| ());
        }
        self.acked_at = now;
        self.acked.push((sent, bytes));
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        self.with(|sender, base| sender.on_end_acks(time(base, now), in_flight, app_limited));
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost_bytes: u64) {
        self.with(|sender, base| {
            sender.on_congestion(time(base, now), time(base, sent), persistent, lost_bytes);
        });
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.with(|sender, _| sender.on_mtu(new_mtu));
    }

    fn window(&self) -> u64 {
        let known = self.adapter.window.load(Ordering::Relaxed);
        if known != UNKNOWN {
            return known;
        }
        let mut inner = self.adapter.lock();
        let open = inner.open;
        let Some(sender) = &mut inner.sender else { return SHUT };
        sender.flush();
        let window = match self.adapter.settings.packet_sender {
            PacketSender::Driver if open => OPEN,
            PacketSender::Driver => SHUT,
            PacketSender::Stack => open_window(sender),
        };
        self.adapter.window.store(window, Ordering::Relaxed);
        window
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.adapter.cwnd().0;
        metrics.ssthresh =
            self.adapter.with(|sender| sender.controller().ssthresh()).flatten().map(|ssthresh| ssthresh.0);
        metrics.pacing_rate = self.adapter.pacing_rate().and_then(Rate::paced).map(Rate::bps);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

thread_local! {
    /// The adapter whose session has just begun on this thread, and for which factory.
    static OPENED: RefCell<Option<(usize, Arc<ControllerAdapter>)>> = const { RefCell::new(None) };
}

/// Makes controllers for a quinn endpoint.
#[derive(Debug)]
pub struct Factory {
    settings: ControlSettings,
    /// The one connection it is for, if it is for one.
    only: Option<Arc<ControllerAdapter>>,
}

impl Factory {
    /// Returns a factory for any number of connections.
    pub fn new(settings: ControlSettings) -> Arc<Self> {
        Arc::new(Factory { settings, only: None })
    }

    /// Returns a factory for one connection.
    pub fn only(adapter: Arc<ControllerAdapter>) -> Arc<Self> {
        Arc::new(Factory { settings: adapter.settings.clone(), only: Some(adapter) })
    }

    /// Returns what a [`Tap`](crate::tap::Tap) calls as a connection begins.
    pub fn open(self: &Arc<Self>) -> Open {
        let factory = self.clone();
        Arc::new(move || {
            let adapter = factory
                .only
                .clone()
                .unwrap_or_else(|| Arc::new(ControllerAdapter::new(factory.settings.clone(), true, None)));
            OPENED.set(Some((Arc::as_ptr(&factory) as usize, adapter.clone())));
            adapter
        })
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let own = Arc::as_ptr(&self) as usize;
        let opened = OPENED.take().filter(|(factory, _)| *factory == own).map(|(_, adapter)| adapter);
        let adapter = opened
            .or_else(|| self.only.clone())
            .unwrap_or_else(|| Arc::new(ControllerAdapter::new(self.settings.clone(), false, None)));
        Box::new(QuinnController::begin(adapter, now, current_mtu))
    }
}

#[cfg(test)]
mod tests;
