//! One end of a connection of quinn-proto, or of its fork noq-proto: what their interfaces have alike.
//!
//! `ends_of!(quinn_proto)` writes it once more for each crate, since the types are of different crates and no
//! trait is over both. Where the two differ, the file of the stack has a function: `endpoint`, `handle`,
//! `poll_transmit`, `write`, `values`. It also has `Watched`, the pass-through around a controller.

/// Writes `pair`, which returns both ends of a connection of the crate `$proto`.
macro_rules! ends_of {
    ($proto:ident) => {
        use std::collections::VecDeque;
        use std::net::{Ipv4Addr, SocketAddr};
        use std::sync::Arc;
        use std::time::{Instant, SystemTime};

        use brakelight_core::ecn::Ecn;
        use brakelight_core::host::{Pair, Setup};
        use brakelight_core::random::Random;
        use bytes::{Bytes, BytesMut};
        use $proto::congestion::{Controller, ControllerFactory};
        use $proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
        use $proto::{
            ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint,
            EndpointConfig, Event, MtuDiscoveryConfig, ServerConfig, StreamEvent, StreamId, TimeSource,
            TransportConfig, VarInt,
        };

        use crate::entropy::{self, Entropy};
        use crate::options::Windows;
        use crate::seen::Seen;
        use crate::side::{Side, Stack, Values};
        use crate::{MOST_DATAGRAM, ZEROES, tls};

        /// Both ends of a connection whose sender has the controller that `inner` makes.
        fn pair(setup: &Setup<'_>, (windows, inner): (Windows, Inner)) -> Result<Pair, String> {
            entropy::check()?;
            let mut random = setup.random.clone();
            let mut entropy = Entropy::new(Random::stream(random.bits(), "pair"));
            entropy.reseed_thread()?;
            let seen = Seen::default();
            let mut transport = transport(setup.datagram, windows);
            transport.congestion_controller_factory(Arc::new(Factory { inner, seen: seen.clone() }));
            let (client, server) = entropy.within(|| configs(Arc::new(transport)))?;
            let sender =
                Side::new(&mut random, Some(&seen), || Quic::new(setup.datagram, Some(client), None))?;
            let receiver =
                Side::new(&mut random, Some(&seen), || Quic::new(setup.datagram, None, Some(server)))?;
            Ok(Pair { sender: Box::new(sender), receiver: Box::new(receiver) })
        }

        type Inner = Arc<dyn ControllerFactory + Send + Sync>;

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
                    endpoint: endpoint(config, server),
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
                match handle(&mut self.endpoint, now, self.peer, ecn, data, &mut answer) {
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
                let transmit = poll_transmit(self.connection()?, now, payload)?;
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
                write(connection.send_stream(stream), Bytes::from_static(&ZEROES[..size.min(ZEROES.len())]))
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
                self.connection()
                    .is_some_and(|connection| connection.datagrams().send(message, false).is_ok())
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
                values(self.connection()?)
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
    };
}
pub(crate) use ends_of;
