//! The modelled host: both ends of one flow as an [`Endpoint`].
//!
//! One [`FlowHost`] holds the sender and the receiver, so that a flow has one deadline, and ACKs need not carry their
//! contents through the network.
//!
//! | file | holds |
//! |---|---|
//! | `connection` | one connection: both ends, the ACKs in flight, the packets waiting to leave |
//! | `sender` | what to send and when; loss recovery |
//! | `receiver` | reassembly, what an ACK says and when it leaves |
//! | `acks` | the contents of ACKs in flight |
//! | `rtt`, `pacer`, `ranges`, `ring` | their parts |
//!
//! A real host is never exact. Each ACK leaves late by a draw from 0 to [`FlowConfig::jitter`], uniform, and none
//! overtakes another; without it, flows of equal RTT lock into each other's rhythm, which no real network shows.

mod acks;
mod connection;
mod pacer;
mod ranges;
mod receiver;
mod ring;
mod rtt;
mod sender;
mod socket;

use brakelight_core::controller::Controller;
use brakelight_core::endpoint::Endpoint;
use brakelight_core::packet::FlowId;
use brakelight_core::random::Random;
use brakelight_core::registry::{AnyController, ControllerConfig, FeedbackConfig, Host};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_scenario::traffic::Traffic;

use crate::packet::SimPacket;
use crate::traffic::{AnyApplication, Application};
use connection::{Connection, Shared};
pub(crate) use socket::Socket;

/// What a flow is made of.
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
    /// Largest payload of one packet.
    pub mss: Bytes,
    /// Bytes of headers added to each payload, IP included.
    pub overhead: Bytes,
    /// The window before the first ACK, in packets.
    pub initial_window: u32,
    /// What the application sends.
    pub traffic: Traffic,
    /// When the flow starts.
    pub start: Time,
    /// When it stops: nothing that was not sent by then is sent, except again.
    pub stop: Option<Time>,
    /// Largest delay of an ACK in the host.
    pub jitter: Duration,
    /// The host's own stream of random numbers.
    pub random: Random,
    /// The controller's.
    pub controller_random: Random,
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

/// Both ends of one flow.
#[derive(Debug)]
pub struct FlowHost {
    shared: Shared,
    connection: Option<Connection>,
    application: AnyApplication,
    config: Box<FlowConfig>,
    start_at: Time,
    stop_at: Time,
    application_at: Time,
    delivered_seen: u64,
}

// Budget: ten thousand flows in a few tens of megabytes, rings aside.
const _: () = assert!(size_of::<FlowHost>() <= 2048);

impl FlowHost {
    /// A flow that has not started.
    pub fn new(config: FlowConfig) -> Self {
        FlowHost {
            shared: Shared::new(&config),
            connection: None,
            application: AnyApplication::new(&config.traffic).expect("backlogged or of a given size"),
            start_at: config.start,
            stop_at: config.stop.unwrap_or(Time::MAX),
            application_at: Time::MAX,
            delivered_seen: 0,
            config: Box::new(config),
        }
    }

    /// What the flow did so far.
    pub fn counters(&self) -> Counters {
        let Some(connection) = &self.connection else { return Counters::default() };
        Counters { goodput_bytes: connection.receiver.received().0, ..*connection.sender.counters() }
    }

    /// The newest RTT sample that was not taken yet.
    pub fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.connection.as_mut()?.sender.take_rtt_sample()
    }

    /// The controller of the connection that is open.
    pub fn controller(&self) -> Option<&AnyController> {
        self.connection.as_ref().map(|connection| connection.sender.controller())
    }

    /// Bytes in flight.
    pub fn inflight(&self) -> Bytes {
        self.connection.as_ref().map_or(Bytes::ZERO, |connection| connection.sender.inflight())
    }

    /// Calls `visit` with state worth plotting: window, bytes in flight, smoothed RTT, and what the controller shows.
    pub fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let Some(connection) = &self.connection else { return };
        let sender = &connection.sender;
        visit("cwnd_bytes", sender.controller().cwnd().as_f64());
        visit("inflight_bytes", sender.inflight().as_f64());
        if let Some(srtt) = sender.smoothed_rtt() {
            visit("srtt_ms", srtt.as_millis_f64());
        }
        if let Some(rate) = sender.controller().pacing_rate().map(Rate::as_bps_f64) {
            visit("pacing_rate_bps", rate);
        }
        sender.controller().inspect(visit);
    }

    /// Calls `visit` with what the application made of it, by name, in the unit the name ends in.
    pub fn application(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        self.application.outcome(now, visit);
    }

    /// Whether the application has all it wanted.
    pub fn is_complete(&self) -> bool {
        self.connection
            .as_ref()
            .is_some_and(|connection| connection.is_finished() && self.application.is_over())
    }

    #[inline]
    fn deadline(&self) -> Time {
        let connection = self.connection.as_ref().map_or(Time::MAX, Connection::deadline);
        connection.min(self.application_at).min(self.start_at).min(self.stop_at)
    }

    /// Lets the application act, and notes when it wants to act again.
    fn with_application(&mut self, now: Time, act: impl FnOnce(&mut AnyApplication, &mut Socket<'_>)) {
        let Some(connection) = &mut self.connection else { return };
        let mut socket = Socket::new(now, connection);
        act(&mut self.application, &mut socket);
        self.application_at = self.application.next_timer();
    }

    fn on_deadline(&mut self, now: Time) {
        if self.start_at <= now {
            self.start_at = Time::MAX;
            self.connection = Some(Connection::open(&self.config, &mut self.shared, 0, now));
            self.with_application(now, |application, socket| application.start(socket));
        }
        if self.stop_at <= now {
            self.stop_at = Time::MAX;
            self.with_application(now, |application, socket| application.stop(socket));
        }
        if self.application_at <= now {
            self.with_application(now, |application, socket| application.on_timer(socket));
        }
        if let Some(connection) = &mut self.connection
            && connection.deadline() <= now
        {
            connection.on_deadline(&mut self.shared, now);
        }
    }
}

impl Endpoint<SimPacket> for FlowHost {
    fn accept(&mut self, now: Time, packet: SimPacket) {
        let Some(connection) = &mut self.connection else { return };
        connection.accept(&mut self.shared, now, &packet);
        if self.application.listens() {
            let delivered = connection.receiver.in_order().0;
            if delivered > self.delivered_seen {
                self.delivered_seen = delivered;
                self.with_application(now, |application, socket| application.on_delivered(socket));
            }
        }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<SimPacket> {
        if self.deadline() <= now {
            self.on_deadline(now);
        }
        self.connection.as_mut()?.poll(&mut self.shared, now)
    }

    fn next_wakeup(&self) -> Option<Time> {
        let at = self.deadline();
        (at != Time::MAX).then_some(at)
    }

    fn release(&mut self, packet: SimPacket) {
        if let Some(connection) = &mut self.connection {
            connection.release(&packet);
        }
    }
}

#[cfg(test)]
mod harness;
#[cfg(test)]
mod tests;
