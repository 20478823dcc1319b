//! One end of a connection: packets and time in, packets and deadlines out.
//!
//! The sending end has a [`Governor`], and lets a packet that needs the window go only when the governor's gate is open: the
//! controller's rate holds instead of the stack's pacer, whatever the window. ACKs and probes pass as the stack sends them. The
//! receiving end reports times and marks of single packets to a peer that invites it to.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use brakelight_core::ecn::Ecn;
use brakelight_core::time::{Duration, Time};
use brakelight_scenario::clock::Clock;
use bytes::{Bytes, BytesMut};
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, Connection, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint,
    EndpointConfig, Event, HashedConnectionIdGenerator, ServerConfig, Transmit, TransportConfig, VarInt,
    crypto,
};

use super::identity::{self, Identity, IdentityError};
use crate::adapter::{Factory, Gate, Governor, Times};
use crate::report::{Report, Unreported};
use crate::stamps::Stamps;
use crate::tap::frames::Ack;
use crate::tap::{Listener, Tap};

/// Invitations sent before a peer is taken not to report.
const INVITATIONS: u32 = 5;
/// How long the receiving end waits for a second packet to report (rfc9000 18.2, as max_ack_delay).
const REPORT_DELAY: Duration = Duration::from_millis(25);
/// What may be written to the stack and not yet acknowledged.
const SEND_WINDOW: u64 = 64 << 20;
/// The receiving end's own window, for reports: they are feedback, and few.
const REPORT_WINDOW: u64 = 1 << 20;

/// What an end is made of.
#[derive(Clone, Debug)]
pub struct SideSettings {
    /// The instant that the clock calls zero.
    pub base: Instant,
    /// Decides connection ids' numbers and the stack's few draws.
    pub seed: [u8; 32],
    /// Bytes of a full UDP datagram, 1200 at least.
    pub datagram: u16,
    /// How many packets one ACK of the peer should stand for, asked for by the ACK-frequency extension; `None` leaves it to the
    /// peer.
    pub ack_every: Option<u32>,
    /// By which clock the receiving end says when packets arrived.
    pub clock: Clock,
    /// Whether the receiving end reports at all; one that does not stands for peers that are not ours.
    pub reports: bool,
}

/// A datagram that is to be sent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Its UDP payload.
    pub payload: Bytes,
    /// The codepoint it must carry.
    pub ecn: Ecn,
    /// Whether it is a packet that asks for an ACK, of the sending end, after the handshake.
    pub data: bool,
    /// Its number in the 1-RTT space, at the sending end.
    pub number: Option<u64>,
}

/// The numbers of 1-RTT packets that were decrypted.
#[derive(Debug, Default)]
struct Ears(Mutex<Vec<u64>>);

impl Ears {
    fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Listener for Ears {
    fn on_ack(&self, _: &Ack<'_>, _: bool) {}

    fn on_open(&self, number: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(number);
    }

    // rfc3168 6.1.4
    fn on_seal(&self, _: u64, _: &[u8], _: bool) -> Option<Ecn> {
        Some(Ecn::NotEct)
    }
}

/// Whether this end sends data or receives it.
#[derive(Debug)]
enum Role {
    Sending {
        governor: Arc<Governor>,
        crypto: Arc<ClientConfig>,
        invitations: u32,
        invite_at: Option<Time>,
    },
    Receiving {
        ears: Arc<Ears>,
        unreported: Unreported,
        invited: bool,
        report_at: Option<Time>,
        reported: u64,
    },
}

/// One end of one connection.
#[derive(Debug)]
pub struct Side {
    settings: SideSettings,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    stamps: Arc<Stamps>,
    role: Role,
    /// Answers that no connection sends.
    answers: VecDeque<Outgoing>,
    buffer: Vec<u8>,
    pace_at: Option<Time>,
    deadline: Option<Time>,
}

const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 4433);
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 4433);

impl Side {
    /// The end that opens the connection and sends, under `governor`.
    pub fn sending(
        settings: SideSettings,
        identity: &Identity,
        governor: Arc<Governor>,
    ) -> Result<Self, IdentityError> {
        let stamps = Arc::new(Stamps::new());
        let factory = Factory::only(governor.clone());
        let tap = Tap::new(factory.open(), stamps.clone());
        let mut transport = transport(&settings);
        transport.congestion_controller_factory(factory);
        if let Some(every) = settings.ack_every {
            let mut frequency = AckFrequencyConfig::default();
            frequency.ack_eliciting_threshold(VarInt::from_u32(every.max(1) - 1));
            transport.ack_frequency_config(Some(frequency));
        }
        let mut client = ClientConfig::new(tap.client(identity.client()?));
        client.transport_config(Arc::new(transport));
        let role =
            Role::Sending { governor, crypto: Arc::new(client), invitations: INVITATIONS, invite_at: None };
        Ok(Self::new(settings, None, stamps, role))
    }

    /// The end that waits for the connection and receives, with this cryptography.
    pub fn receiving(settings: SideSettings, crypto: Arc<dyn crypto::ServerConfig>) -> Self {
        let stamps = Arc::new(Stamps::new());
        let ears = Arc::new(Ears::default());
        let listener = ears.clone();
        let tap = Tap::new(Arc::new(move || listener.clone()), stamps.clone());
        let mut transport = transport(&settings);
        let mut own = quinn_proto::congestion::CubicConfig::default();
        own.initial_window(REPORT_WINDOW);
        transport.congestion_controller_factory(Arc::new(own));
        let mut server = ServerConfig::with_crypto(tap.server(crypto));
        server.transport_config(Arc::new(transport));
        let role = Role::Receiving {
            ears,
            unreported: Unreported::default(),
            invited: false,
            report_at: None,
            reported: 0,
        };
        Self::new(settings, Some(server), stamps, role)
    }

    fn new(settings: SideSettings, server: Option<ServerConfig>, stamps: Arc<Stamps>, role: Role) -> Self {
        let mut config = EndpointConfig::default();
        let key = u64::from_le_bytes(std::array::from_fn(|place| settings.seed[place]));
        config
            .rng_seed(Some(settings.seed))
            .cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(key)));
        // Refused only below 1200, which the caller has checked.
        let _ = config.max_udp_payload_size(settings.datagram.max(1472));
        let endpoint = Endpoint::new(Arc::new(config), server.map(Arc::new), true, None);
        Side {
            settings,
            endpoint,
            connection: None,
            stamps,
            role,
            answers: VecDeque::new(),
            buffer: Vec::new(),
            pace_at: None,
            deadline: None,
        }
    }

    fn instant(&self, at: Time) -> Instant {
        self.settings.base + std::time::Duration::from_nanos(at.as_nanos())
    }

    fn peer(&self) -> SocketAddr {
        match self.role {
            Role::Sending { .. } => SERVER,
            Role::Receiving { .. } => CLIENT,
        }
    }

    /// The connection, once there is one.
    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection)
    }

    /// Opens the connection.
    pub fn connect(&mut self, now: Time) -> Result<(), quinn_proto::ConnectError> {
        let at = self.instant(now);
        if let Role::Sending { crypto, .. } = &self.role {
            let config = ClientConfig::clone(crypto);
            self.connection = Some(self.endpoint.connect(at, config, SERVER, identity::NAME)?);
        }
        Ok(())
    }

    /// A datagram arrived.
    pub fn handle(&mut self, now: Time, ecn: Ecn, payload: &[u8]) {
        let at = self.instant(now);
        let peer = self.peer();
        self.buffer.clear();
        let data = BytesMut::from(payload);
        match self.endpoint.handle(at, peer, None, codepoint(ecn), data, &mut self.buffer) {
            None => {}
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some((own, connection)) = &mut self.connection
                    && *own == handle
                {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                if self.connection.is_some() {
                    self.endpoint.ignore(incoming);
                } else if let Ok(connection) = self.endpoint.accept(incoming, at, &mut self.buffer, None) {
                    self.connection = Some(connection);
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                let payload = Bytes::copy_from_slice(&self.buffer[..transmit.size]);
                self.answers.push_back(Outgoing { payload, ecn: Ecn::NotEct, data: false, number: None });
            }
        }
        self.settle(now);
        self.hear(now, ecn);
    }

    /// Acts on every deadline due by `now`.
    pub fn on_deadline(&mut self, now: Time) {
        let at = self.instant(now);
        if let Some((_, connection)) = &mut self.connection
            && connection.poll_timeout().is_some_and(|due| due <= at)
        {
            connection.handle_timeout(at);
        }
        if let Role::Sending { governor, .. } = &self.role {
            governor.flush();
            governor.on_timer(now);
        }
        self.settle(now);
        self.invite(now);
        if let Role::Receiving { report_at, .. } = &self.role
            && report_at.is_some_and(|due| due <= now)
        {
            self.report(now);
        }
    }

    /// Carries events between the connection and its endpoint.
    fn settle(&mut self, _now: Time) {
        if let Some((handle, connection)) = &mut self.connection {
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(answer);
                }
            }
        }
    }

    /// What the connection wants its application to know.
    pub fn poll_event(&mut self, now: Time) -> Option<Event> {
        let event = self.connection.as_mut()?.1.poll()?;
        if let (Event::Connected, Role::Sending { invite_at, .. }) = (&event, &mut self.role) {
            *invite_at = Some(now);
            self.invite(now);
        }
        Some(event)
    }

    /// Reads the datagrams of the peer, and notes the packets that arrived.
    fn hear(&mut self, now: Time, ecn: Ecn) {
        let Some((_, connection)) = &mut self.connection else { return };
        let mut out_of_order = false;
        match &mut self.role {
            Role::Sending { governor, .. } => {
                while let Some(datagram) = connection.datagrams().recv() {
                    governor.on_datagram(now, &datagram);
                }
                governor.flush();
            }
            Role::Receiving { ears, unreported, invited, report_at, reported } => {
                while let Some(datagram) = connection.datagrams().recv() {
                    let report = Report::decode(&datagram);
                    *invited |= self.settings.reports && report.is_ok_and(|report| report.is_invitation());
                }
                let clock = self.settings.clock.read(now);
                for number in ears.take() {
                    out_of_order |= number != *reported;
                    *reported = (*reported).max(number + 1);
                    if *invited {
                        unreported.on_packet(number, clock, ecn);
                    }
                }
                if !unreported.is_empty() {
                    let due = unreported.len() >= 2 || out_of_order || ecn == Ecn::Ce;
                    let at = if due { now } else { now + REPORT_DELAY };
                    *report_at = Some(report_at.map_or(at, |before| before.min(at)));
                }
                if report_at.is_some_and(|due| due <= now) {
                    self.report(now);
                }
            }
        }
    }

    /// Asks the peer for reports, if the controller has a use for them and none has come.
    fn invite(&mut self, now: Time) {
        let Role::Sending { governor, invitations, invite_at, .. } = &mut self.role else { return };
        if invite_at.is_none_or(|at| at > now) {
            return;
        }
        let waiting = governor.wants_reports();
        if !waiting || *invitations == 0 {
            *invite_at = None;
            return;
        }
        *invitations -= 1;
        *invite_at = Some(now + governor.smoothed_rtt().unwrap_or(REPORT_DELAY).max(REPORT_DELAY));
        if let Some((_, connection)) = &mut self.connection {
            // A peer without DATAGRAM frames refuses, and is one that does not report.
            let _ = connection.datagrams().send(Report::invitation().encode(), true);
        }
    }

    /// Writes everything unreported into datagrams.
    fn report(&mut self, now: Time) {
        let Role::Receiving { unreported, report_at, .. } = &mut self.role else { return };
        *report_at = None;
        let clock = self.settings.clock.read(now);
        let Some((_, connection)) = &mut self.connection else { return };
        for report in unreported.take(clock) {
            let _ = connection.datagrams().send(report.encode(), true);
        }
    }

    /// The next datagram to send.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Outgoing> {
        if let Some(answer) = self.answers.pop_front() {
            return Some(answer);
        }
        let at = self.instant(now);
        let (_, connection) = self.connection.as_mut()?;
        let mut gate = Gate::Open;
        if let Role::Sending { governor, .. } = &self.role {
            gate = governor.set_gate(now);
        }
        self.buffer.clear();
        let sent = connection.poll_transmit(at, 1, &mut self.buffer);
        self.pace_at = match gate {
            Gate::Until(at) if sent.is_none() => Some(at),
            _ => None,
        };
        let outgoing = sent.map(|transmit| self.outgoing(&transmit));
        if outgoing.is_none() {
            self.settle(now);
            self.note_deadline();
        }
        outgoing
    }

    fn outgoing(&self, transmit: &Transmit) -> Outgoing {
        let payload = Bytes::copy_from_slice(&self.buffer[..transmit.size]);
        // Long headers go without ECN: nobody counts them for us.
        let ecn = self.stamps.find(&payload).unwrap_or(Ecn::NotEct);
        let number = match &self.role {
            Role::Sending { governor, .. } => governor.last_number(),
            Role::Receiving { .. } => None,
        };
        Outgoing { payload, ecn, data: number.is_some(), number }
    }

    fn note_deadline(&mut self) {
        let base = self.settings.base;
        let timer = self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        let timer = timer.map(|at| Time::from_nanos(at.saturating_duration_since(base).as_nanos() as u64));
        let own = match &self.role {
            Role::Sending { governor, invite_at, .. } => [governor.next_timer(), *invite_at],
            Role::Receiving { report_at, .. } => [*report_at, None],
        };
        self.deadline = [timer, self.pace_at].into_iter().chain(own).flatten().min();
    }

    /// When this end must be polled, if nothing arrives before; as of the last time there was nothing to send.
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// What receive times are made of, at the sending end.
    pub fn times(&self) -> Option<Times> {
        match &self.role {
            Role::Sending { governor, .. } => Some(governor.times()),
            Role::Receiving { .. } => None,
        }
    }
}

/// The same two bits in the stack's words, where Not-ECT is none.
fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    EcnCodepoint::from_bits(ecn as u8)
}

/// What both ends have in common.
fn transport(settings: &SideSettings) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(settings.datagram)
        .min_mtu(settings.datagram)
        .mtu_discovery_config(None)
        .max_idle_timeout(None)
        .stream_receive_window(VarInt::MAX)
        .receive_window(VarInt::MAX)
        .send_window(SEND_WINDOW)
        .allow_spin(false)
        .enable_segmentation_offload(false)
        .datagram_receive_buffer_size(Some(1 << 20))
        .datagram_send_buffer_size(1 << 20);
    transport
}
