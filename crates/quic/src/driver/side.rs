//! One end of a flow that a simulator carries: an endpoint of its own, with the one connection it has.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use brakelight_apps::Datagram;
use brakelight_core::ecn::Ecn;
use brakelight_core::time::Time;
use brakelight_scenario::clock::Clock;
use bytes::{Bytes, BytesMut};
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, Connection, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint,
    EndpointConfig, Event, MtuDiscoveryConfig, ServerConfig, Transmit, TransportConfig, VarInt, crypto,
};

use super::connection_id::Numbered;
use super::end::{Ears, End, Hearing, instant};
use super::identity;
use super::message;
use crate::adapter::{ControllerAdapter, Factory, Times};
use crate::stamps::Stamps;
use crate::tap::frames::{self, Ack};
use crate::tap::parameters::Parameters;
use crate::tap::{Listener, Tap};

/// What may be written to the stack and not yet acknowledged.
const SEND_WINDOW: u64 = 64 << 20;
/// The receiving end's own window, for reports: they are feedback, and few.
const REPORT_WINDOW: u64 = 1 << 20;

/// Settings of one end of a flow.
#[derive(Clone, Debug)]
pub struct SideSettings {
    /// The instant that the clock calls zero.
    pub base: Instant,
    /// Decides connection ids' numbers and the stack's few draws.
    pub seed: [u8; 32],
    /// Bytes of a full UDP datagram, 1200 at least.
    pub datagram: u16,
    /// Whether to begin with 1200 bytes and search for the largest that the path carries, up to `datagram`
    /// (rfc8899); if not, the path is known to carry it.
    pub discover_mtu: bool,
    /// How many packets one ACK of the peer should stand for, asked for by the ACK-frequency extension;
    /// `None` leaves it to the peer.
    pub ack_every: Option<u32>,
    /// By which clock the receiving end says when packets arrived.
    pub clock: Clock,
    /// Whether the receiving end reports at all; one that does not stands for peers that are not ours.
    pub reports: bool,
    /// The connection's number, with which its IDs begin.
    pub connection: u32,
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

/// Whether this end sends data or receives it.
#[derive(Debug)]
enum Role {
    Sending { watch: Arc<Watch>, crypto: Arc<ClientConfig> },
    Receiving { ears: Arc<Ears> },
}

/// What hears all that the sending end's tap does: its adapter, and how far the stream has been sent.
#[derive(Debug)]
struct Watch {
    adapter: Arc<ControllerAdapter>,
    stream_sent: AtomicU64,
}

impl Listener for Watch {
    fn on_ack(&self, ack: &Ack<'_>, newest: bool) {
        self.adapter.on_ack(ack, newest);
    }

    fn on_parameters(&self, parameters: &Parameters) {
        self.adapter.on_parameters(parameters);
    }

    fn on_open(&self, number: u64) {
        self.adapter.on_open(number);
    }

    fn on_early_discarded(&self) {
        self.adapter.on_early_discarded();
    }

    fn on_frames(&self, payload: &[u8]) {
        if let Some(end) = frames::stream_end(payload) {
            self.stream_sent.fetch_max(end, Ordering::Relaxed);
        }
    }

    fn on_seal(&self, number: u64, packet: &[u8], eliciting: bool) -> Option<Ecn> {
        self.adapter.on_seal(number, packet, eliciting)
    }
}

/// One end of a flow.
#[derive(Debug)]
pub struct Side {
    settings: SideSettings,
    endpoint: Endpoint,
    end: Option<(ConnectionHandle, End)>,
    /// Whether the handshake is over.
    connected: bool,
    stamps: Arc<Stamps>,
    role: Role,
    /// Answers that no connection sends.
    answers: VecDeque<Outgoing>,
    buffer: Vec<u8>,
}

const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 4433);
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 4433);

impl Side {
    /// Returns the end that opens the connection with this cryptography, and sends under `adapter`.
    pub fn sending(
        settings: SideSettings,
        crypto: Arc<dyn crypto::ClientConfig>,
        adapter: Arc<ControllerAdapter>,
    ) -> Self {
        let stamps = Arc::new(Stamps::new());
        let factory = Factory::only(adapter.clone());
        let watch = Arc::new(Watch { adapter, stream_sent: AtomicU64::new(0) });
        let (open, listener) = (factory.open(), watch.clone());
        let open = move || {
            // It says which adapter the controller of this connection shares.
            let _ = open();
            listener.clone() as Arc<dyn Listener>
        };
        let tap = Tap::new(Arc::new(open), stamps.clone());
        let mut transport = transport(&settings);
        transport.congestion_controller_factory(factory);
        if let Some(every) = settings.ack_every {
            let mut frequency = AckFrequencyConfig::default();
            frequency.ack_eliciting_threshold(VarInt::from_u32(every.max(1) - 1));
            transport.ack_frequency_config(Some(frequency));
        }
        let mut client = ClientConfig::new(tap.client(crypto));
        client.transport_config(Arc::new(transport));
        let role = Role::Sending { watch, crypto: Arc::new(client) };
        Self::new(settings, None, stamps, role)
    }

    /// Returns the end that waits for the connection and receives, with this cryptography.
    pub fn receiving(settings: SideSettings, crypto: Arc<dyn crypto::ServerConfig>) -> Self {
        let stamps = Arc::new(Stamps::new());
        let ears = Ears::alone();
        let listener = ears.clone();
        let tap = Tap::new(Arc::new(move || listener.clone()), stamps.clone());
        let mut transport = transport(&settings);
        let mut own = quinn_proto::congestion::CubicConfig::default();
        own.initial_window(REPORT_WINDOW);
        transport.congestion_controller_factory(Arc::new(own));
        let mut server = ServerConfig::with_crypto(tap.server(crypto));
        server.transport_config(Arc::new(transport));
        let role = Role::Receiving { ears };
        Self::new(settings, Some(server), stamps, role)
    }

    fn new(settings: SideSettings, server: Option<ServerConfig>, stamps: Arc<Stamps>, role: Role) -> Self {
        let mut config = EndpointConfig::default();
        let mask = u32::from_le_bytes(std::array::from_fn(|place| settings.seed[place]));
        let connection = settings.connection;
        config.rng_seed(Some(settings.seed)).cid_generator(move || Box::new(Numbered::new(connection, mask)));
        // Refused only below 1200, which the caller has checked.
        let _ = config.max_udp_payload_size(settings.datagram.max(1472));
        let endpoint = Endpoint::new(Arc::new(config), server.map(Arc::new), true, None);
        Side {
            settings,
            endpoint,
            end: None,
            connected: false,
            stamps,
            role,
            answers: VecDeque::new(),
            buffer: Vec::new(),
        }
    }

    fn instant(&self, at: Time) -> Instant {
        instant(self.settings.base, at)
    }

    /// What becomes of a new connection.
    fn begin(&mut self, handle: ConnectionHandle, connection: Connection) {
        let (adapter, hearing) = match &self.role {
            Role::Sending { watch, .. } => (Some(watch.adapter.clone()), None),
            Role::Receiving { ears } => {
                (None, Some(Hearing::new(ears.clone(), self.settings.clock, self.settings.reports)))
            }
        };
        let mut end = End::new(self.settings.base, connection, adapter, hearing);
        end.keep_messages();
        self.end = Some((handle, end));
    }

    fn peer(&self) -> SocketAddr {
        match self.role {
            Role::Sending { .. } => SERVER,
            Role::Receiving { .. } => CLIENT,
        }
    }

    /// Returns the connection, once there is one.
    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.end.as_mut().map(|(_, end)| end.connection())
    }

    /// Opens the connection.
    pub fn connect(&mut self, now: Time) -> Result<(), quinn_proto::ConnectError> {
        let at = self.instant(now);
        if let Role::Sending { crypto, .. } = &self.role {
            let config = ClientConfig::clone(crypto);
            let (handle, connection) = self.endpoint.connect(at, config, SERVER, identity::NAME)?;
            self.begin(handle, connection);
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
                if let Some((own, end)) = &mut self.end
                    && *own == handle
                {
                    end.connection().handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                if self.end.is_some() {
                    self.endpoint.ignore(incoming);
                } else if let Ok((handle, connection)) =
                    self.endpoint.accept(incoming, at, &mut self.buffer, None)
                {
                    self.begin(handle, connection);
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                let payload = Bytes::copy_from_slice(&self.buffer[..transmit.size]);
                self.answers.push_back(Outgoing { payload, ecn: Ecn::NotEct, data: false, number: None });
            }
        }
        self.settle();
        if let Some((_, end)) = &mut self.end {
            end.hear(now, ecn);
        }
    }

    /// Acts on every deadline due by `now`.
    pub fn on_deadline(&mut self, now: Time) {
        if let Some((_, end)) = &mut self.end {
            end.on_deadline(now);
        }
        self.settle();
    }

    /// Carries events between the connection and its endpoint.
    fn settle(&mut self) {
        if let Some((handle, end)) = &mut self.end {
            while let Some(event) = end.connection().poll_endpoint_events() {
                if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                    end.connection().handle_event(answer);
                }
            }
        }
    }

    /// Returns what the connection wants its application to know.
    pub fn poll_event(&mut self, now: Time) -> Option<Event> {
        let event = self.end.as_mut()?.1.poll_event(now)?;
        self.connected |= matches!(event, Event::Connected);
        Some(event)
    }

    /// Sends a message of the application. Returns `false` before the handshake is over, when nothing can be
    /// sent yet.
    pub(super) fn send_message(&mut self, message: &Datagram) -> bool {
        if let (true, Some((_, end))) = (self.connected, &mut self.end) {
            // The oldest that wait make room. A connection that is over, or a peer without DATAGRAM frames,
            // takes none.
            let _ = end.connection().datagrams().send(message::encode(message), true);
        }
        self.connected
    }

    /// A message of the application that came and was not taken yet.
    pub(super) fn take_message(&mut self) -> Option<Bytes> {
        self.end.as_mut()?.1.take_message()
    }

    /// Bytes of the stream that this end has sent, up to the farthest.
    pub(super) fn stream_sent(&self) -> u64 {
        match &self.role {
            Role::Sending { watch, .. } => watch.stream_sent.load(Ordering::Relaxed),
            Role::Receiving { .. } => 0,
        }
    }

    /// Returns the next datagram to send.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Outgoing> {
        if let Some(answer) = self.answers.pop_front() {
            return Some(answer);
        }
        let (_, end) = self.end.as_mut()?;
        self.buffer.clear();
        let sent = end.poll_transmit(now, 1, &mut self.buffer);
        let outgoing = sent.map(|transmit| self.outgoing(&transmit));
        if outgoing.is_none() {
            self.settle();
            if let Some((_, end)) = &mut self.end {
                end.note_deadline();
            }
        }
        outgoing
    }

    fn outgoing(&self, transmit: &Transmit) -> Outgoing {
        let payload = Bytes::copy_from_slice(&self.buffer[..transmit.size]);
        // Long headers go without ECN: nobody counts them for us.
        let ecn = self.stamps.find(&payload).unwrap_or(Ecn::NotEct);
        let number = match &self.role {
            Role::Sending { watch, .. } => watch.adapter.last_number(),
            Role::Receiving { .. } => None,
        };
        Outgoing { payload, ecn, data: number.is_some(), number }
    }

    /// Returns when this end must be polled, if nothing arrives before; as of the last time there was nothing
    /// to send.
    pub fn deadline(&self) -> Option<Time> {
        self.end.as_ref().and_then(|(_, end)| end.deadline())
    }

    /// Returns what receive times are made of, at the sending end.
    pub fn times(&self) -> Option<Times> {
        match &self.role {
            Role::Sending { watch, .. } => Some(watch.adapter.times()),
            Role::Receiving { .. } => None,
        }
    }
}

/// The same two bits in the stack's words, where Not-ECT is none.
fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    EcnCodepoint::from_bits(ecn as u8)
}

/// rfc9000 14.1: every path carries datagrams of so many bytes.
const LEAST_DATAGRAM: u16 = 1200;

/// What both ends have in common.
fn transport(settings: &SideSettings) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let least = if settings.discover_mtu { LEAST_DATAGRAM } else { settings.datagram };
    let search = settings.discover_mtu.then(|| {
        let mut search = MtuDiscoveryConfig::default();
        search.upper_bound(settings.datagram);
        search
    });
    transport
        .initial_mtu(least)
        .min_mtu(least)
        .mtu_discovery_config(search)
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

#[cfg(test)]
mod tests;
