//! noq-proto, as it is published, with its own controllers.

use std::any::Any;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::host::{About, HostFactory, HostedController, Pair, Setup};
use brakelight_core::parameters::{OptionValues, ParameterError, Parameters};
use brakelight_core::random::Random;
use brakelight_registry::Options;
use bytes::{Bytes, BytesMut};
use noq_proto::congestion::{
    Bbr3Config, Controller, ControllerFactory, ControllerMetrics, CubicConfig, NewRenoConfig,
};
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig,
    Event, FourTuple, MtuDiscoveryConfig, PathId, RttEstimator, ServerConfig, StreamEvent, StreamId,
    TimeSource, TransportConfig, VarInt,
};

use crate::entropy::{self, Entropy};
use crate::options::{Windows, newreno, plain};
use crate::seen::Seen;
use crate::side::{Side, Stack, Values};
use crate::{MOST_DATAGRAM, ZEROES, tls};

const NEWRENO: &str = "noq/newreno";
const CUBIC: &str = "noq/cubic";
const BBR3: &str = "noq/bbr3";

/// The host `noq`.
#[derive(Debug)]
pub(crate) struct Noq;

impl HostFactory for Noq {
    fn about(&self) -> About {
        About {
            summary: "noq-proto, the QUIC stack of noq, unmodified (https://github.com/n0-computer/noq)",
            version: env!("NOQ_VERSION"),
            licence: "MIT OR Apache-2.0",
            shows: &["ssthresh_bytes", "bandwidth_bps", "mtu_bytes"],
            encoding: Encoding::Classic,
            messages: true,
        }
    }

    fn controllers(&self) -> Vec<HostedController> {
        let entry = |name, summary, parameters| HostedController { name, summary, parameters };
        vec![
            entry(NEWRENO, "New Reno of noq-proto", newreno::Config::describe),
            entry(CUBIC, "Cubic of noq-proto", plain::Config::describe),
            entry(BBR3, "BBRv3 of noq-proto", plain::Config::describe),
        ]
    }

    fn settings(&self, controller: &str, options: Options<'_>) -> Result<OptionValues, ParameterError> {
        let options = options.iter().copied();
        Ok(match controller {
            NEWRENO => newreno::Config::from_options(options)?.settings(),
            _ => plain::Config::from_options(options)?.settings(),
        })
    }

    fn pair(&self, setup: &Setup<'_>) -> Result<Pair, String> {
        entropy::check()?;
        let mut random = setup.random.clone();
        let mut entropy = Entropy::new(Random::stream(random.bits(), "pair"));
        entropy.reseed_thread()?;
        let (windows, inner) = congestion(setup).map_err(|error| error.to_string())?;
        let seen = Seen::default();
        let mut transport = transport(setup.datagram, windows);
        transport.congestion_controller_factory(Arc::new(Factory { inner, seen: seen.clone() }));
        let (client, server) = entropy.within(|| configs(Arc::new(transport)))?;
        let sender = Side::new(&mut random, &seen, || Quic::new(setup.datagram, Some(client), None))?;
        let receiver = Side::new(&mut random, &seen, || Quic::new(setup.datagram, None, Some(server)))?;
        Ok(Pair { sender: Box::new(sender), receiver: Box::new(receiver) })
    }
}

type Inner = Arc<dyn ControllerFactory + Send + Sync>;

/// The windows and the controller of a connection.
fn congestion(setup: &Setup<'_>) -> Result<(Windows, Inner), ParameterError> {
    let options = setup.settings.iter().map(|(name, value)| (*name, value.as_str()));
    Ok(match setup.controller {
        NEWRENO => {
            let options = newreno::Config::from_options(options)?;
            let windows = options.windows();
            let mut config = NewRenoConfig::default();
            config.initial_window(windows.initial).loss_reduction_factor(options.beta as f32);
            (windows, Arc::new(config))
        }
        BBR3 => {
            let windows = plain::Config::from_options(options)?.windows();
            let mut config = Bbr3Config::default();
            config.initial_window(windows.initial);
            (windows, Arc::new(config))
        }
        _ => {
            let windows = plain::Config::from_options(options)?.windows();
            let mut config = CubicConfig::default();
            config.initial_window(windows.initial);
            (windows, Arc::new(config))
        }
    })
}

/// The stack's own settings, but for flow control and the largest datagram.
fn transport(datagram: u16, windows: Windows) -> TransportConfig {
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(datagram.min(MOST_DATAGRAM));
    let mut transport = TransportConfig::default();
    transport
        .mtu_discovery_config(Some(discovery))
        .stream_receive_window(VarInt::from_u32(windows.stream))
        .send_window(windows.send);
    transport
}

fn configs(transport: Arc<TransportConfig>) -> Result<(ClientConfig, ServerConfig), String> {
    let client = QuicClientConfig::try_from(tls::client()?).map_err(|error| error.to_string())?;
    let server = QuicServerConfig::try_from(tls::server()?).map_err(|error| error.to_string())?;
    let mut client = ClientConfig::new(Arc::new(client));
    client.transport_config(transport.clone());
    let mut server = ServerConfig::with_crypto(Arc::new(server));
    server.transport_config(transport).time_source(Arc::new(Today));
    Ok((client, server))
}

/// The time of day for tokens.
struct Today;

impl TimeSource for Today {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + tls::TODAY
    }
}

/// One end.
struct Quic {
    endpoint: Endpoint,
    /// The other end's address.
    peer: SocketAddr,
    /// The settings of the end that opens the connection, until it does.
    client: Option<ClientConfig>,
    connection: Option<(ConnectionHandle, Connection)>,
    stream: Option<StreamId>,
    /// Datagrams of no connection.
    responses: VecDeque<(Ecn, Vec<u8>)>,
    closed: Option<String>,
}

impl Quic {
    fn new(
        datagram: u16,
        client: Option<ClientConfig>,
        server: Option<ServerConfig>,
    ) -> Result<Self, String> {
        let mut config = EndpointConfig::default();
        config.max_udp_payload_size(datagram).map_err(|error| error.to_string())?;
        let peer = if client.is_some() { 2 } else { 1 };
        Ok(Quic {
            endpoint: Endpoint::new(Arc::new(config), server.map(Arc::new), true),
            peer: SocketAddr::from((Ipv4Addr::new(192, 0, 2, peer), 443)),
            client,
            connection: None,
            stream: None,
            responses: VecDeque::new(),
            closed: None,
        })
    }

    fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection)
    }

    /// The connection with its one stream, once there are both.
    fn stream(&mut self) -> Option<(&mut Connection, StreamId)> {
        let stream = self.stream?;
        Some((self.connection()?, stream))
    }

    fn on_event(&mut self, event: Event) {
        let Some((_, connection)) = &mut self.connection else { return };
        match event {
            // The client's; the server reads what the other opens.
            Event::Connected if connection.side().is_client() => {
                self.stream = connection.streams().open(Dir::Uni);
            }
            Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                self.stream = connection.streams().accept(Dir::Uni);
            }
            Event::ConnectionLost { reason } => self.closed = Some(reason.to_string()),
            _ => {}
        }
    }
}

impl Stack for Quic {
    fn connect(&mut self, now: Instant) {
        let Some(client) = self.client.take() else { return };
        match self.endpoint.connect(now, client, self.peer, tls::NAME) {
            Ok(opened) => self.connection = Some(opened),
            Err(error) => self.closed = Some(error.to_string()),
        }
    }

    fn receive(&mut self, now: Instant, ecn: Ecn, payload: &[u8]) {
        let mut answer = Vec::new();
        let ecn = EcnCodepoint::from_bits(ecn as u8);
        let data = BytesMut::from(payload);
        let path = FourTuple::new(self.peer, None);
        match self.endpoint.handle(now, path, ecn, data, &mut answer) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, now, &mut answer, None) {
                    Ok(accepted) => self.connection = Some(accepted),
                    Err(error) => self.closed = Some(error.cause.to_string()),
                }
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some(connection) = self.connection() {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                answer.truncate(transmit.size);
                self.responses.push_back((codepoint(transmit.ecn), answer));
            }
            None => {}
        }
    }

    fn transmit(&mut self, now: Instant, payload: &mut Vec<u8>) -> Option<Ecn> {
        if let Some((ecn, answer)) = self.responses.pop_front() {
            *payload = answer;
            return Some(ecn);
        }
        let transmit = self.connection()?.poll_transmit(now, NonZeroUsize::MIN, payload)?;
        payload.truncate(transmit.size);
        Some(codepoint(transmit.ecn))
    }

    fn on_timeout(&mut self, now: Instant) {
        if let Some(connection) = self.connection() {
            connection.handle_timeout(now);
        }
    }

    fn write(&mut self, size: usize) -> usize {
        let Some((connection, stream)) = self.stream() else { return 0 };
        let chunks = &mut [Bytes::from_static(&ZEROES[..size.min(ZEROES.len())])][..];
        connection.send_stream(stream).write_chunks(&mut { chunks }).unwrap_or(0)
    }

    fn finish(&mut self) {
        if let Some((connection, stream)) = self.stream() {
            // Fails if the connection is over.
            let _ = connection.send_stream(stream).finish();
        }
    }

    fn read(&mut self) -> u64 {
        let Some((connection, stream)) = self.stream() else { return 0 };
        let mut stream = connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(true) else { return 0 };
        let mut read = 0;
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            read += chunk.bytes.len() as u64;
        }
        // It is asked for what it has to send after each call.
        let _ = chunks.finalize();
        read
    }

    fn send_message(&mut self, message: &[u8]) -> bool {
        let message = Bytes::copy_from_slice(message);
        self.connection().is_some_and(|connection| connection.datagrams().send(message, false).is_ok())
    }

    fn take_message(&mut self) -> Option<Vec<u8>> {
        self.connection()?.datagrams().recv().map(Vec::from)
    }

    fn settle(&mut self) {
        loop {
            let Some((handle, connection)) = &mut self.connection else { return };
            if let Some(event) = connection.poll_endpoint_events() {
                if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(answer);
                }
            } else if let Some(event) = connection.poll() {
                self.on_event(event);
            } else {
                return;
            }
        }
    }

    fn deadline(&mut self) -> Option<Instant> {
        self.connection()?.poll_timeout()
    }

    fn values(&mut self) -> Option<Values> {
        let connection = self.connection()?;
        let path = connection.path_stats(PathId::ZERO)?;
        let ControllerMetrics { ssthresh, pacing_rate, bandwidth_estimate, .. } =
            connection.congestion_state(PathId::ZERO)?.metrics();
        Some(Values {
            cwnd: path.cwnd,
            ssthresh,
            // In bytes per second.
            pacing_bps: pacing_rate.map(|rate| rate.saturating_mul(8)),
            bandwidth_bps: bandwidth_estimate,
            lost: path.lost_packets,
            mtu: path.current_mtu,
        })
    }

    fn closed(&self) -> Option<&str> {
        self.closed.as_deref()
    }
}

fn codepoint(ecn: Option<EcnCodepoint>) -> Ecn {
    Ecn::from_bits(ecn.map_or(0, |codepoint| codepoint as u8))
}

/// Makes the stack's controllers, each with a pass-through around it.
struct Factory {
    inner: Inner,
    seen: Seen,
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let controller = self.inner.clone().build(now, current_mtu);
        Box::new(Watched { controller, seen: self.seen.clone() })
    }
}

/// A controller of the stack, and what is seen of it. Every method of the trait is passed on.
#[derive(Debug)]
struct Watched {
    controller: Box<dyn Controller>,
    seen: Seen,
}

impl Controller for Watched {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest_pn: u64) {
        self.controller.on_sent(now, bytes, largest_pn);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.seen.on_sent(bytes.into());
        self.controller.on_packet_sent(now, bytes, pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.controller.on_cwnd_limited();
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.seen.on_ack(now - sent, rtt.get(), rtt.min());
        self.controller.on_ack(now, sent, bytes, pn, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.seen.on_inflight(in_flight);
        self.controller.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        let controller = &mut self.controller;
        controller.on_congestion_event(
            now,
            sent,
            is_persistent_congestion,
            is_ecn,
            lost_bytes,
            largest_lost_pn,
        );
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        self.seen.on_lost(lost_bytes.into());
        self.controller.on_packet_lost(lost_bytes, pn, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.controller.on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.controller.on_mtu_update(new_mtu);
    }

    fn on_ack_frequency_update(&mut self, ack_eliciting_threshold: u64, requested_max_ack_delay: Duration) {
        self.controller.on_ack_frequency_update(ack_eliciting_threshold, requested_max_ack_delay);
    }

    fn window(&self) -> u64 {
        self.controller.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.controller.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Watched { controller: self.controller.clone_box(), seen: self.seen.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.controller.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.controller.into_any()
    }
}
