//! The modelled host: both ends of one flow as an [`Endpoint`].
//!
//! One [`FlowHost`] holds the sender and the receiver, so that a flow has one deadline, and ACKs need not
//! carry their contents through the network.
//!
//! | file | holds |
//! |---|---|
//! | `bundle` | a flow of many short connections |
//! | `connection` | one connection: both ends, the ACKs in flight, the packets waiting to leave |
//! | `sender` | what to send and when; loss recovery |
//! | `stages` | the stages that a controller went through |
//! | `receiver` | reassembly, what an ACK says and when it leaves |
//! | `acks` | the contents of ACKs in flight |
//! | `ranges`, `ring` | their parts |
//!
//! What does not depend on the wire format, [`brakelight_core::sender`] does for every host.
//!
//! A real host is never exact. Each ACK leaves late by a draw from 0 to [`FlowConfig::jitter`], uniform, and
//! none overtakes another; without it, flows of equal RTT lock into each other's rhythm, which no real
//! network shows.

mod acks;
mod bundle;
mod connection;
mod ranges;
mod receiver;
mod ring;
mod sender;
mod socket;
mod stages;

use std::collections::BTreeMap;

use brakelight_apps::call::FrameRecord;
use brakelight_apps::{AnyApplication, Application, Datagram};
use brakelight_core::controller::{Controller, ControllerFailure};
use brakelight_core::ecn::Mark;
use brakelight_core::endpoint::Endpoint;
use brakelight_core::packet::FlowId;
use brakelight_core::parameters::ParameterError;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_registry::{AnyController, ControllerConfig, FeedbackConfig, Host};
use brakelight_scenario::clock::Clock;
use brakelight_scenario::outcome::MarkCounts;
use brakelight_scenario::scenario::Reordering;
use brakelight_scenario::traffic::Traffic;
use brakelight_senders::controller::external::{self, External};
use bundle::Bundle;
use connection::{Connection, DATAGRAM_OVERHEAD, Shared};
use socket::FlowSocket;

use crate::engine::Routed;
use crate::packet::{Kind, SimPacket};
use crate::report::SenderView;

/// Settings of a flow.
#[derive(Clone, Debug)]
pub struct FlowConfig {
    /// The flow: the place of its endpoint.
    pub flow: FlowId,
    /// The profile of both hosts.
    pub host: Host,
    /// The sender's controller.
    pub controller: ControllerConfig,
    /// The receiver's feedback.
    pub feedback: FeedbackConfig,
    /// How many packets one ACK stands for: m.
    pub ack_every: u32,
    /// How long the receiver holds back an ACK for fewer.
    pub ack_delay: Duration,
    /// Largest payload of one packet.
    pub mss: Bytes,
    /// Bytes of headers added to each payload, IP included.
    pub overhead: Bytes,
    /// The window before the first ACK, in packets.
    pub initial_window: u32,
    /// QUIC: packets that may leave back to back after a pause, or fewer if the controller wants it.
    pub pacing_burst: u32,
    /// QUIC: the packet threshold of loss detection.
    pub reordering: Reordering,
    /// QUIC: whether a reduction is taken back once all packets of its episode have arrived after all.
    pub undo: bool,
    /// QUIC: how many packets the receiver reads at once.
    pub read_batch: u32,
    /// What the application sends.
    pub traffic: Traffic,
    /// When the flow starts.
    pub start: Time,
    /// When it stops: nothing that was not sent by then is sent, except again.
    pub stop: Option<Time>,
    /// The clock by which the receiver says when packets arrived.
    pub receiver_clock: Clock,
    /// Largest delay of an ACK in the host.
    pub jitter: Duration,
    /// Whether a router on the way may read what ACKs of TCP say.
    pub acks_are_read: bool,
    /// The host's own stream of random numbers.
    pub random: Random,
    /// The controller's.
    pub controller_random: Random,
    /// Whether the host is held to the contract with its controller
    /// ([`brakelight_core::controller`](brakelight_core::controller#the-contract)): a violation panics.
    /// Slower; the outcome is the same.
    pub check_contract: bool,
    /// Whether to keep when the controller changed its stage ([`FlowHost::stages`]).
    pub record_stages: bool,
    /// Whether to keep what became of each frame of a call ([`FlowHost::recorded_frames`]).
    pub record_frames: bool,
}

/// What a flow did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data packets sent, retransmissions included.
    pub sent_packets: u64,
    /// Their payload.
    pub sent_bytes: u64,
    /// Data packets sent again.
    pub retransmitted_packets: u64,
    /// Their payload.
    pub retransmitted_bytes: u64,
    /// Data packets acknowledged.
    pub acked_packets: u64,
    /// Data packets declared lost, some of them by mistake.
    pub lost_packets: u64,
    /// Retransmission timeouts, and QUIC's periods of persistent congestion.
    pub timeouts: u64,
    /// Tail loss probes, and QUIC's probe timeouts.
    pub tail_probes: u64,
    /// Episodes taken back as mistakes.
    pub undone_episodes: u64,
    /// Packets that came back with ABC's accelerate.
    pub accelerate_packets: u64,
    /// Packets that came back with ABC's brake.
    pub brake_packets: u64,
    /// Packets that came back with CE.
    pub ce_packets: u64,
    /// Payload that arrived, each byte counted once.
    pub goodput_bytes: u64,
}

impl Counters {
    /// Returns the sums of both.
    pub fn plus(&self, other: &Counters) -> Counters {
        Counters {
            sent_packets: self.sent_packets + other.sent_packets,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            retransmitted_packets: self.retransmitted_packets + other.retransmitted_packets,
            retransmitted_bytes: self.retransmitted_bytes + other.retransmitted_bytes,
            acked_packets: self.acked_packets + other.acked_packets,
            lost_packets: self.lost_packets + other.lost_packets,
            timeouts: self.timeouts + other.timeouts,
            tail_probes: self.tail_probes + other.tail_probes,
            undone_episodes: self.undone_episodes + other.undone_episodes,
            accelerate_packets: self.accelerate_packets + other.accelerate_packets,
            brake_packets: self.brake_packets + other.brake_packets,
            ce_packets: self.ce_packets + other.ce_packets,
            goodput_bytes: self.goodput_bytes + other.goodput_bytes,
        }
    }

    /// What they say of a sender; the rest as of one that has not started.
    fn view(&self) -> SenderView {
        SenderView {
            sent_packets: self.sent_packets,
            delivered_packets: self.acked_packets,
            lost_packets: self.lost_packets,
            retransmitted_packets: self.retransmitted_packets,
            marks: MarkCounts {
                accelerate: self.accelerate_packets,
                brake: self.brake_packets,
                ce: self.ce_packets,
            },
            ..SenderView::default()
        }
    }
}

/// Both ends of one flow.
#[derive(Clone, Debug)]
pub struct FlowHost {
    shared: Shared,
    life: Life,
    config: Box<FlowConfig>,
    /// [`Time::MAX`] while it is held, and once it has started or stopped.
    start_at: Time,
    stop_at: Time,
    started: bool,
    /// The earliest deadline as of the last time there was nothing to send.
    wake_at: Time,
    /// The earliest of the timers as of then: `wake_at`, unless a packet that waits to leave comes first.
    timer_at: Time,
}

/// What a flow consists of.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)]
enum Life {
    /// One connection and its application.
    One(Single),
    /// Short connections that come and go.
    Many(Box<Bundle>),
}

// Budget: ten thousand flows in a few tens of megabytes, rings aside.
const _: () = assert!(size_of::<FlowHost>() <= 2048);

impl FlowHost {
    /// Returns a flow that has not started.
    pub fn new(config: FlowConfig) -> Self {
        let life = match &config.traffic {
            Traffic::ShortFlows(law) => Life::Many(Box::new(Bundle::new(*law))),
            traffic => Life::One(Single::new(traffic, config.mss, config.record_frames)),
        };
        FlowHost {
            shared: Shared::new(&config),
            life,
            start_at: config.start,
            stop_at: config.stop.unwrap_or(Time::MAX),
            started: false,
            wake_at: config.start,
            timer_at: config.start,
            config: Box::new(config),
        }
    }

    /// Returns what the flow did so far.
    pub fn counters(&self) -> Counters {
        match &self.life {
            Life::One(single) => single.connection.as_ref().map_or(Counters::default(), Connection::counters),
            Life::Many(bundle) => bundle.counters(),
        }
    }

    /// Returns the newest RTT sample that was not taken yet.
    #[inline]
    pub fn take_rtt_sample(&mut self) -> Option<Duration> {
        match &mut self.life {
            Life::One(single) => single.connection.as_mut()?.sender.take_rtt_sample(),
            Life::Many(bundle) => bundle.take_rtt_sample(),
        }
    }

    /// Returns the controller, of a flow that is one connection and has started.
    pub fn controller(&self) -> Option<&AnyController> {
        match &self.life {
            Life::One(single) => single.connection.as_ref().map(|connection| connection.sender.controller()),
            Life::Many(_) => None,
        }
    }

    /// Returns why a controller decides nothing any more, if one of the flow's failed.
    pub fn failure(&self) -> Option<&ControllerFailure> {
        match &self.life {
            Life::One(_) => self.controller().and_then(Controller::failure),
            Life::Many(bundle) => bundle.failure(),
        }
    }

    /// The path's MTU changed: a packet sent from now on has at most `mss` bytes of payload, 1 to 65,535.
    /// Packets that are sent again keep their size.
    pub fn set_mss(&mut self, mss: Bytes) {
        let mss = Bytes(mss.0.clamp(1, u64::from(u16::MAX)));
        self.config.mss = mss;
        match &mut self.life {
            Life::One(single) => single.connection.iter_mut().for_each(|open| open.sender.set_mss(mss)),
            Life::Many(bundle) => bundle.set_mss(mss),
        }
    }

    /// Returns the bytes in flight.
    pub fn inflight(&self) -> Bytes {
        match &self.life {
            Life::One(Single { connection: Some(connection), .. }) => connection.sender.inflight(),
            Life::One(_) => Bytes::ZERO,
            Life::Many(bundle) => bundle.inflight(),
        }
    }

    /// Returns the sender as it stands.
    pub fn sender(&self) -> SenderView {
        match &self.life {
            Life::One(Single { connection: Some(connection), .. }) => connection.sender.view(),
            Life::One(_) => SenderView::default(),
            Life::Many(bundle) => SenderView { inflight: bundle.inflight(), ..bundle.counters().view() },
        }
    }

    /// Returns the mark that an acknowledgement of this flow echoes for all that it newly covers; `None` if
    /// its contents are gone, or the flow is one of many short connections.
    pub fn echoed_mark(&self, ack: &SimPacket) -> Option<Mark> {
        match &self.life {
            Life::One(single) => single.connection.as_ref()?.echoed_mark(ack),
            Life::Many(_) => None,
        }
    }

    /// Returns the stages that the controller went through until `now`, by the keys of `stages.rs`. Empty if
    /// they are not recorded, and of a flow of many connections.
    pub fn stages(&self, now: Time) -> BTreeMap<String, f64> {
        match &self.life {
            Life::One(Single { connection: Some(connection), .. }) => connection.sender.stages(now),
            _ => BTreeMap::new(),
        }
    }

    /// Calls `visit` with state worth plotting: window, bytes in flight, smoothed RTT, and what the
    /// controller shows.
    pub fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("inflight_bytes", self.inflight().as_f64());
        match &self.life {
            Life::Many(bundle) => visit("connections", bundle.open_count() as f64),
            Life::One(single) => {
                let Some(connection) = &single.connection else { return };
                let sender = &connection.sender;
                visit("cwnd_bytes", sender.controller().cwnd().as_f64());
                if let Some(srtt) = sender.smoothed_rtt() {
                    visit("srtt_ms", srtt.as_millis_f64());
                }
                if let Some(rate) = sender.controller().pacing_rate().and_then(Rate::paced) {
                    visit("pacing_rate_bps", rate.as_bps_f64());
                }
                sender.controller().inspect(visit);
            }
        }
    }

    /// Calls `visit` with what the application made of it until `now`, by name, in the unit the name ends in.
    pub fn application(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        match &self.life {
            Life::One(single) => single.application.outcome(now, visit),
            Life::Many(bundle) => bundle.outcome(visit),
        }
    }

    /// Returns what became of each frame of a call; nothing of another application, or if it is not recorded.
    pub fn recorded_frames(&self) -> &[FrameRecord] {
        match &self.life {
            Life::One(single) => single.application.recorded_frames(),
            Life::Many(_) => &[],
        }
    }

    /// Keeps the flow, which has not started, from starting by itself.
    pub fn hold(&mut self) {
        self.start_at = Time::MAX;
        self.note_deadlines();
    }

    /// Starts the flow, which has not started, when it is polled at `now`.
    pub fn start(&mut self, now: Time) {
        self.start_at = now;
        self.wake_by(now);
    }

    /// Stops the flow, which has not stopped, when it is polled at `now`.
    pub fn stop(&mut self, now: Time) {
        self.stop_at = now;
        self.wake_by(now);
    }

    fn wake_by(&mut self, now: Time) {
        self.wake_at = self.wake_at.min(now);
        self.timer_at = self.timer_at.min(now);
    }

    /// Returns `true` if its controller is driven from outside.
    pub fn is_external(&self) -> bool {
        matches!(self.config.controller, ControllerConfig::External(_))
    }

    /// Sets the window of a controller that is driven from outside, now or when the flow starts; any other
    /// keeps its own.
    ///
    /// # Errors
    /// If it is below one packet or above [`external::LARGEST`].
    pub fn set_window(&mut self, cwnd: Bytes) -> Result<(), ParameterError> {
        external::check_cwnd(cwnd, self.config.mss)?;
        let begin = |values: &mut external::Values| values.cwnd = Some(Limit::Bytes(cwnd));
        self.drive(begin, |external| external.set_cwnd(cwnd))
    }

    /// Sets the pacing rate of a controller that is driven from outside, now or when the flow starts; any
    /// other keeps its own.
    ///
    /// # Errors
    /// If it is below [`external::SLOWEST`] or above [`external::FASTEST`].
    pub fn set_pacing_rate(&mut self, rate: Option<Rate>) -> Result<(), ParameterError> {
        let begin = |values: &mut external::Values| values.pacing_rate = rate;
        self.drive(begin, |external| external.set_pacing_rate(rate))
    }

    /// Changes a controller that is driven from outside, and what those of connections to come begin with.
    fn drive(
        &mut self,
        begin: impl FnOnce(&mut external::Values),
        change: impl Fn(&mut External) -> Result<(), ParameterError>,
    ) -> Result<(), ParameterError> {
        let ControllerConfig::External(config) = &self.config.controller else { return Ok(()) };
        let mut values = external::Values::clone(config);
        begin(&mut values);
        self.config.controller = ControllerConfig::External(external::Config::new(values)?);
        match &mut self.life {
            Life::One(single) => match &mut single.connection {
                Some(connection) => connection.sender.drive(&change),
                None => Ok(()),
            },
            Life::Many(bundle) => bundle.drive(&change),
        }
    }

    /// Returns whether the application has all it wanted, and nothing of the flow is on the way.
    pub fn is_complete(&self) -> bool {
        self.started
            && match &self.life {
                Life::One(single) => single.is_complete(),
                Life::Many(bundle) => bundle.is_over(),
            }
    }

    /// Notes when the flow must act though no packet arrives.
    #[inline]
    fn note_deadlines(&mut self) {
        let (timers, leaving) = match &self.life {
            Life::One(single) => single.deadlines(),
            Life::Many(bundle) => (bundle.deadline(), Time::MAX),
        };
        self.timer_at = timers.min(self.start_at).min(self.stop_at);
        self.wake_at = self.timer_at.min(leaving);
    }

    #[inline(never)]
    fn on_deadline(&mut self, now: Time) {
        if self.start_at <= now {
            self.start_at = Time::MAX;
            self.started = true;
            match &mut self.life {
                Life::One(single) => single.start(&self.config, &mut self.shared, now),
                Life::Many(bundle) => bundle.start(&mut self.shared, now),
            }
        }
        if self.stop_at <= now {
            // One that was held until now never starts.
            self.start_at = Time::MAX;
            self.stop_at = Time::MAX;
            match &mut self.life {
                Life::One(single) => single.stop(&mut self.shared, now),
                Life::Many(bundle) => bundle.stop(),
            }
        }
        if let Life::One(single) = &mut self.life {
            single.on_deadline(&mut self.shared, now);
        }
    }
}

impl Endpoint<SimPacket> for FlowHost {
    #[inline]
    fn accept(&mut self, now: Time, packet: SimPacket) {
        match &mut self.life {
            Life::One(single) => single.accept(&mut self.shared, now, &packet),
            Life::Many(bundle) => bundle.accept(&mut self.shared, now, &packet),
        }
        // Any timer may have changed, so the next wake-up looks at all of them.
        self.timer_at = self.wake_at;
    }

    #[inline(always)]
    fn poll_transmit(&mut self, now: Time) -> Option<SimPacket> {
        if self.wake_at <= now {
            if self.timer_at <= now {
                self.on_deadline(now);
            }
            self.wake_at = Time::MAX;
        }
        let packet = match &mut self.life {
            Life::One(Single { connection: Some(connection), .. }) => connection.poll(&mut self.shared, now),
            Life::One(_) => None,
            Life::Many(bundle) => bundle.poll(&self.config, &mut self.shared, now),
        };
        // Deadlines move with every packet; they are compared once, when the moment is over.
        if packet.is_none() {
            self.note_deadlines();
        }
        packet
    }

    #[inline]
    fn is_at_rest(&mut self, now: Time) -> bool {
        let Life::One(Single { connection: Some(connection), .. }) = &self.life else { return false };
        let rests = self.wake_at > now && connection.is_at_rest(now);
        if rests {
            self.note_deadlines();
        }
        rests
    }

    #[inline]
    fn next_wakeup(&self) -> Option<Time> {
        (self.wake_at != Time::MAX).then_some(self.wake_at)
    }

    fn release(&mut self, packet: SimPacket) {
        match &mut self.life {
            Life::One(single) => {
                if let Some(connection) = &mut single.connection {
                    connection.release(&packet);
                }
            }
            Life::Many(bundle) => bundle.release(&packet),
        }
    }
}

/// One connection and its application.
#[derive(Clone, Debug)]
struct Single {
    connection: Option<Connection>,
    application: AnyApplication,
    /// Whether it wants to hear of deliveries.
    listens: bool,
    application_at: Time,
    /// Payload whose arrival the application knows of.
    heard: u64,
}

impl Single {
    fn new(traffic: &Traffic, mss: Bytes, record_frames: bool) -> Self {
        let application = AnyApplication::new(traffic, mss).record_frames(record_frames);
        Single {
            connection: None,
            listens: application.listens(),
            application,
            application_at: Time::MAX,
            heard: 0,
        }
    }

    fn is_complete(&self) -> bool {
        self.application.is_over() && self.connection.as_ref().is_some_and(Connection::is_finished)
    }

    /// The earliest of the timers, and when the first packet that waits leaves.
    #[inline]
    fn deadlines(&self) -> (Time, Time) {
        let Some(connection) = &self.connection else { return (self.application_at, Time::MAX) };
        (connection.timer().min(self.application_at), connection.leaves_at())
    }

    /// Lets the application act, and notes when it wants to act again.
    fn act(
        &mut self,
        shared: &mut Shared,
        now: Time,
        act: impl FnOnce(&mut AnyApplication, &mut FlowSocket<'_>),
    ) {
        let Some(connection) = &mut self.connection else { return };
        act(&mut self.application, &mut FlowSocket::new(now, connection, shared));
        self.application_at = self.application.next_timer();
    }

    fn start(&mut self, config: &FlowConfig, shared: &mut Shared, now: Time) {
        self.connection = Some(Connection::open(config, shared, 0, now));
        self.act(shared, now, |application, socket| application.start(socket));
    }

    fn stop(&mut self, shared: &mut Shared, now: Time) {
        self.act(shared, now, |application, socket| application.stop(socket));
    }

    fn on_deadline(&mut self, shared: &mut Shared, now: Time) {
        if self.application_at <= now {
            self.act(shared, now, |application, socket| application.on_timer(socket));
        }
        if let Some(connection) = &mut self.connection {
            connection.on_deadline(shared, now);
        }
        // What the receiver has just read.
        if self.listens && shared.read_batch > 1 {
            self.hear_delivered(shared, now);
        }
    }

    #[inline]
    fn accept(&mut self, shared: &mut Shared, now: Time, packet: &SimPacket) {
        let Some(connection) = &mut self.connection else { return };
        if let Kind::Datagram { number, echo, held_us } = packet.kind() {
            let payload = packet.size - DATAGRAM_OVERHEAD;
            let datagram = Datagram { direction: packet.direction(), payload, number, echo, held_us };
            return self.hear(shared, now, &datagram);
        }
        connection.accept(shared, now, packet);
        if self.listens {
            self.hear_delivered(shared, now);
        }
    }

    /// Gives a message to the application.
    #[inline(never)]
    fn hear(&mut self, shared: &mut Shared, now: Time, datagram: &Datagram) {
        self.act(shared, now, |application, socket| application.on_datagram(datagram, socket));
    }

    /// Tells the application what has arrived, if it is more than it knows of.
    #[inline(never)]
    fn hear_delivered(&mut self, shared: &mut Shared, now: Time) {
        let Some(connection) = &mut self.connection else { return };
        if let Some(arrived) = connection.receiver.take_pieces() {
            for &number in arrived.iter() {
                self.act(shared, now, |application, socket| application.on_piece(number, socket));
            }
            if let Some(connection) = &mut self.connection {
                connection.receiver.reuse(arrived);
            }
            return;
        }
        let delivered = connection.receiver.in_order().0;
        if delivered > self.heard {
            self.heard = delivered;
            self.act(shared, now, |application, socket| application.on_delivered(socket));
        }
    }
}

#[cfg(test)]
mod application_tests;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod ns2_tests;
#[cfg(test)]
mod quic_tests;
#[cfg(test)]
mod tcp_tests;
#[cfg(test)]
mod tests;
