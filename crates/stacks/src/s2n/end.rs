//! One end of a connection of s2n-quic: its endpoint without sockets, threads and clocks.
//!
//! s2n-quic-transport is driven as its own event loop does it: datagrams that arrived, what the application
//! did, deadlines, datagrams to send. The application's futures are polled after each of these, so that
//! nobody need be woken.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use brakelight_core::ecn::Ecn;
use brakelight_core::host::{AHEAD, Pair, Setup};
use brakelight_core::random::Random;
use brakelight_core::time::Time;
use bytes::Bytes;
use s2n_quic_core::connection::id::{ConnectionInfo, Generator, LocalId, Validator};
use s2n_quic_core::connection::limits::Limits;
use s2n_quic_core::connection::{InitialId, close};
use s2n_quic_core::datagram::default::{Endpoint as Datagrams, Receiver, Sender};
use s2n_quic_core::endpoint::limits::{ConnectionAttempt, Limiter, Outcome};
use s2n_quic_core::endpoint::{Endpoint as _, Type};
use s2n_quic_core::inet::{ExplicitCongestionNotification, SocketAddress, datagram};
use s2n_quic_core::io::{rx, tx};
use s2n_quic_core::path::{Tuple, migration, mtu};
use s2n_quic_core::query::Once;
use s2n_quic_core::recovery::congestion_controller;
use s2n_quic_core::stream::StreamType;
use s2n_quic_core::time::Timestamp;
use s2n_quic_core::{dc, packet, random, stateless_reset, token};
use s2n_quic_transport::connection::{Connection, Implementation};
use s2n_quic_transport::endpoint::connect::{Attempt, Connect};
use s2n_quic_transport::endpoint::handle::{Acceptor, Connector};
use s2n_quic_transport::endpoint::{self, Endpoint};
use s2n_quic_transport::stream::{DefaultStreamManager, ReceiveStream, SendStream};

use super::timestamp;
use super::tls::Tls;
use super::watch::{Known, Watch};
use crate::entropy::{self, Entropy};
use crate::options::s2n::Config as Options;
use crate::seen::Seen;
use crate::side::{Side, Stack, Values};
use crate::{ZEROES, clock, tls};

/// IPv4 and UDP headers, which s2n-quic counts into a packet's size, in bytes.
const HEADERS: u16 = 28;
/// The largest packet of s2n-quic's own, headers included (`MaxMtu::default`), in bytes.
const MOST_PACKET: u16 = 1500;
/// Bytes of a connection ID, as s2n-quic's own provider draws them.
const CONNECTION_ID: usize = 16;
/// Datagrams asked for in one go: no more than a stack is given ahead of what it has sent, or s2n-quic would
/// believe that the application is the limit.
const AT_ONCE: usize = AHEAD as usize;
/// Messages that an end holds.
const MESSAGES: usize = 1000;

/// Both ends of a connection whose sender has the controller that `controllers` makes.
pub(super) fn pair<C: congestion_controller::Endpoint>(
    setup: &Setup<'_>,
    options: &Options,
    controllers: C,
) -> Result<Pair, String> {
    entropy::check()?;
    let mut random = setup.random.clone();
    let mut entropy = Entropy::new(Random::stream(random.bits(), "pair"));
    entropy.reseed_thread()?;
    let (client, server) = entropy.within(|| Ok::<_, String>((Tls::client()?, Tls::server()?)))?;
    let limits = limits(options).map_err(|error| error.to_string())?;
    let seen = Seen::default();
    let sender = Side::new(&mut random, Some(&seen), || {
        let settings = Settings::<C, true>::new(setup.datagram, controllers, client, limits, Some(&seen))?;
        let known = settings.watch.known();
        let (endpoint, connector) = Endpoint::new_client(settings);
        Ok(Quic::new(endpoint, Handle::Opens(connector, None), known, setup.datagram))
    })?;
    let receiver = Side::new(&mut random, Some(&seen), || {
        let controllers = s2n_quic_core::recovery::cubic::Endpoint::default();
        let settings = Settings::<_, false>::new(setup.datagram, controllers, server, limits, None)?;
        let known = settings.watch.known();
        let (endpoint, acceptor) = Endpoint::new_server(settings);
        Ok(Quic::new(endpoint, Handle::Accepts(acceptor), known, setup.datagram))
    })?;
    Ok(Pair { sender: Box::new(sender), receiver: Box::new(receiver) })
}

/// The stack's own limits, but for flow control.
fn limits(options: &Options) -> Result<Limits, impl std::fmt::Display> {
    let window = options.stream_window.0;
    let send = u32::try_from(options.send_window.0).unwrap_or(u32::MAX);
    Limits::new()
        .with_data_window(window)
        .and_then(|limits| limits.with_unidirectional_data_window(window))
        .and_then(|limits| limits.with_max_send_buffer_size(send))
}

/// The parts of an endpoint; `CLIENT` says whether it opens connections.
struct Settings<C, const CLIENT: bool> {
    controllers: C,
    tls: Tls,
    limits: Limits,
    mtu: mtu::Manager<mtu::Config>,
    watch: Watch,
    datagrams: Datagrams,
    accepts: Plain,
    tokens: Plain,
    close: close::Development,
    migration: migration::default::Validator,
    interceptor: packet::interceptor::Disabled,
    dc: dc::Disabled,
    random: Drawn,
    ids: Drawn,
    resets: Drawn,
}

impl<C, const CLIENT: bool> std::fmt::Debug for Settings<C, CLIENT> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").finish_non_exhaustive()
    }
}

impl<C, const CLIENT: bool> Settings<C, CLIENT> {
    fn new(
        datagram: u16,
        controllers: C,
        tls: Tls,
        limits: Limits,
        seen: Option<&Seen>,
    ) -> Result<Self, String> {
        let most = datagram.saturating_add(HEADERS).min(MOST_PACKET);
        let mtu = mtu::Config::builder().with_max_mtu(most).and_then(mtu::Builder::build);
        let mtu = mtu.map_err(|error| error.to_string())?;
        let datagrams = Datagrams::builder().with_send_capacity(MESSAGES);
        let datagrams = datagrams.and_then(|builder| builder.with_recv_capacity(MESSAGES));
        let datagrams = match datagrams.map_err(|error| error.to_string())?.build() {
            Ok(datagrams) => datagrams,
            Err(never) => match never {},
        };
        let mut manager = mtu::Manager::new(mtu);
        manager.set_endpoint_config(mtu);
        Ok(Settings {
            controllers,
            tls,
            limits,
            mtu: manager,
            watch: Watch::new(seen),
            datagrams,
            accepts: Plain,
            tokens: Plain,
            close: close::Development,
            migration: migration::default::Validator,
            interceptor: packet::interceptor::Disabled::default(),
            dc: dc::Disabled::default(),
            random: Drawn,
            ids: Drawn,
            resets: Drawn,
        })
    }
}

impl<C: congestion_controller::Endpoint, const CLIENT: bool> endpoint::Config for Settings<C, CLIENT> {
    type TLSEndpoint = Tls;
    type CongestionControllerEndpoint = C;
    type Connection = Implementation<Self>;
    type ConnectionLock = Mutex<Self::Connection>;
    type ConnectionIdFormat = Drawn;
    type StatelessResetTokenGenerator = Drawn;
    type RandomGenerator = Drawn;
    type TokenFormat = Plain;
    type EndpointLimits = Plain;
    type ConnectionLimits = Limits;
    type Mtu = mtu::Config;
    type StreamManager = DefaultStreamManager;
    type ConnectionCloseFormatter = close::Development;
    type EventSubscriber = Watch;
    type PathHandle = Tuple;
    type PathMigrationValidator = migration::default::Validator;
    type PacketInterceptor = packet::interceptor::Disabled;
    type DatagramEndpoint = Datagrams;
    type DcEndpoint = dc::Disabled;

    const ENDPOINT_TYPE: Type = if CLIENT { Type::Client } else { Type::Server };

    fn context(&mut self) -> endpoint::Context<'_, Self> {
        endpoint::Context {
            congestion_controller: &mut self.controllers,
            connection_id_format: &mut self.ids,
            stateless_reset_token_generator: &mut self.resets,
            random_generator: &mut self.random,
            tls: &mut self.tls,
            endpoint_limits: &mut self.accepts,
            token: &mut self.tokens,
            connection_limits: &mut self.limits,
            mtu: &mut self.mtu,
            connection_close_formatter: &mut self.close,
            event_subscriber: &mut self.watch,
            path_migration: &mut self.migration,
            packet_interceptor: &mut self.interceptor,
            datagram: &mut self.datagrams,
            dc: &mut self.dc,
        }
    }
}

/// Random numbers of the connection whose stack the thread is inside of, and what is made of them.
#[derive(Debug)]
struct Drawn;

impl Drawn {
    fn fill(bytes: &mut [u8]) {
        // Only while an end is dropped is there no stream, and then nobody reads them.
        let _ = entropy::fill_from_lent(bytes);
    }
}

impl random::Generator for Drawn {
    fn public_random_fill(&mut self, bytes: &mut [u8]) {
        Drawn::fill(bytes);
    }

    fn private_random_fill(&mut self, bytes: &mut [u8]) {
        Drawn::fill(bytes);
    }
}

impl Generator for Drawn {
    fn generate(&mut self, _info: &ConnectionInfo<'_>) -> LocalId {
        let mut id = [0; CONNECTION_ID];
        Drawn::fill(&mut id);
        LocalId::try_from_bytes(&id).expect("the length is valid")
    }
}

impl Validator for Drawn {
    fn validate(&self, _info: &ConnectionInfo<'_>, bytes: &[u8]) -> Option<usize> {
        (bytes.len() >= CONNECTION_ID).then_some(CONNECTION_ID)
    }
}

impl stateless_reset::token::Generator for Drawn {
    // As s2n-quic's own provider: a token that is drawn anew means nothing to the peer.
    const ENABLED: bool = false;

    fn generate(&mut self, _id: &[u8]) -> stateless_reset::Token {
        let mut token = [0; stateless_reset::token::LEN];
        Drawn::fill(&mut token);
        token.into()
    }
}

/// Every connection is accepted at once, and none has a token for the next.
#[derive(Debug)]
struct Plain;

impl Limiter for Plain {
    fn on_connection_attempt(&mut self, _attempt: &ConnectionAttempt<'_>) -> Outcome {
        Outcome::allow()
    }
}

impl token::Format for Plain {
    const TOKEN_LEN: usize = 0;

    fn generate_new_token(
        &mut self,
        _context: &mut token::Context<'_>,
        _source: &LocalId,
        _output: &mut [u8],
    ) -> Option<()> {
        None
    }

    fn generate_retry_token(
        &mut self,
        _context: &mut token::Context<'_>,
        _original: &InitialId,
        _output: &mut [u8],
    ) -> Option<()> {
        None
    }

    fn validate_token(&mut self, _context: &mut token::Context<'_>, _token: &[u8]) -> Option<InitialId> {
        None
    }
}

/// What the application has of its endpoint.
enum Handle {
    Opens(Connector, Option<Attempt>),
    Accepts(Acceptor),
}

/// One end.
struct Quic<C: congestion_controller::Endpoint, const CLIENT: bool> {
    endpoint: Endpoint<Settings<C, CLIENT>>,
    handle: Handle,
    connection: Option<Connection>,
    sends: Option<SendStream>,
    receives: Option<ReceiveStream>,
    /// Datagrams that wait to be handed over, all of the newest call.
    leaving: Leaving,
    path: Tuple,
    known: Known,
    /// The time of the newest call.
    now: Timestamp,
    closed: Option<String>,
}

impl<C: congestion_controller::Endpoint, const CLIENT: bool> Quic<C, CLIENT> {
    fn new(endpoint: Endpoint<Settings<C, CLIENT>>, handle: Handle, known: Known, datagram: u16) -> Self {
        let (own, peer) = if CLIENT { (1, 2) } else { (2, 1) };
        Quic {
            endpoint,
            handle,
            connection: None,
            sends: None,
            receives: None,
            leaving: Leaving {
                queue: VecDeque::new(),
                datagram: usize::from(datagram.min(MOST_PACKET - HEADERS)),
            },
            path: Tuple { remote_address: address(peer).into(), local_address: address(own).into() },
            known,
            now: timestamp(Time::ZERO),
            closed: None,
        }
    }

    /// Acts on deadlines, and asks for datagrams.
    fn drive(&mut self) {
        self.endpoint.transmit(&mut self.leaving, &self.now);
    }

    /// Polls what the application waits for: the connection, then its one stream.
    fn poll_application(&mut self, context: &mut Context<'_>) {
        if self.connection.is_none() {
            let polled = match &mut self.handle {
                Handle::Opens(_, None) => Poll::Pending,
                Handle::Opens(_, Some(attempt)) => Pin::new(attempt).poll(context).map(Some),
                Handle::Accepts(acceptor) => acceptor.poll_accept(context).map(|found| found.map(Ok)),
            };
            match polled {
                Poll::Ready(Some(Ok(connection))) => self.connection = Some(connection),
                Poll::Ready(Some(Err(error))) => {
                    self.closed.get_or_insert_with(|| error.to_string());
                }
                Poll::Ready(None) | Poll::Pending => {}
            }
            if let Handle::Opens(_, attempt) = &mut self.handle
                && (self.connection.is_some() || self.closed.is_some())
            {
                *attempt = None;
            }
        }
        let Some(connection) = &mut self.connection else { return };
        if CLIENT && self.sends.is_none() {
            if let Poll::Ready(Ok(stream)) = connection.poll_open_stream(StreamType::Unidirectional, context)
            {
                self.sends = Some(stream.into());
            }
        } else if !CLIENT && self.receives.is_none() {
            let polled = connection.poll_accept(Some(StreamType::Unidirectional), context);
            if let Poll::Ready(Ok(Some(stream))) = polled {
                self.receives = Some(stream.into());
            }
        }
    }
}

/// Addresses of documentation, as the other stacks here have.
fn address(end: u8) -> SocketAddress {
    SocketAddress::from(std::net::SocketAddr::from(([192, 0, 2, end], 4433)))
}

impl<C: congestion_controller::Endpoint, const CLIENT: bool> Stack for Quic<C, CLIENT> {
    fn connect(&mut self, now: Instant) {
        self.now = timestamp(clock::time(now));
        if let Handle::Opens(connector, attempt) = &mut self.handle {
            let peer = Connect::new(*self.path.remote_address).with_server_name(tls::NAME);
            *attempt = Some(connector.connect(peer));
        }
    }

    fn receive(&mut self, now: Instant, ecn: Ecn, payload: &[u8]) {
        self.now = timestamp(clock::time(now));
        let header =
            datagram::Header { path: self.path, ecn: ExplicitCongestionNotification::new(ecn as u8) };
        self.endpoint.receive(&mut Arrived(Some((header, payload.to_vec()))), &self.now);
    }

    fn transmit(&mut self, now: Instant, payload: &mut Vec<u8>) -> Option<Ecn> {
        self.now = timestamp(clock::time(now));
        if self.leaving.queue.is_empty() {
            self.drive();
        }
        let (ecn, datagram) = self.leaving.queue.pop_front()?;
        *payload = datagram;
        Some(ecn)
    }

    fn on_timeout(&mut self, now: Instant) {
        self.now = timestamp(clock::time(now));
        self.drive();
    }

    fn write(&mut self, size: usize) -> usize {
        let Some(stream) = &mut self.sends else { return 0 };
        let mut chunk = [Bytes::from_static(&ZEROES[..size.min(ZEROES.len())])];
        let sent = stream.tx_request().and_then(|mut request| request.send(&mut chunk).poll(None));
        sent.map_or(0, |response| response.bytes.consumed)
    }

    fn finish(&mut self) {
        if let Some(stream) = &mut self.sends {
            // Fails if the connection is over.
            let _ = stream.finish();
        }
    }

    fn read(&mut self) -> u64 {
        let Some(stream) = &mut self.receives else { return 0 };
        let mut read = 0;
        loop {
            let mut chunks = [const { Bytes::new() }; 8];
            let received =
                stream.rx_request().and_then(|mut request| request.receive(&mut chunks).poll(None));
            match received {
                Ok(response) if response.bytes.consumed > 0 => read += response.bytes.consumed as u64,
                _ => return read,
            }
        }
    }

    fn send_message(&mut self, message: &[u8]) -> bool {
        let Some(connection) = &self.connection else { return false };
        let message = Bytes::copy_from_slice(message);
        let mut query = Once::new_mut(|sender: &mut Sender| sender.send_datagram(message).is_ok());
        connection.datagram_mut(&mut query).is_ok() && Result::from(query).unwrap_or(false)
    }

    fn take_message(&mut self) -> Option<Vec<u8>> {
        let connection = self.connection.as_ref()?;
        let mut query = Once::new_mut(Receiver::recv_datagram);
        connection.datagram_mut(&mut query).ok()?;
        Some(Result::from(query).ok()??.to_vec())
    }

    fn settle(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            self.poll_application(&mut context);
            match self.endpoint.poll_wakeups(&mut context, &self.now) {
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(_)) | Poll::Pending => break,
            }
        }
        if self.closed.is_none() {
            self.closed = self.known.closed();
        }
    }

    fn deadline(&mut self) -> Option<Instant> {
        let start = clock::instant(Time::ZERO);
        if !self.leaving.queue.is_empty() {
            return Some(start);
        }
        let at = self.endpoint.timeout()?;
        Some(start + at.saturating_duration_since(timestamp(Time::ZERO)))
    }

    fn values(&mut self) -> Option<Values> {
        self.known.values()
    }

    fn closed(&self) -> Option<&str> {
        self.closed.as_deref()
    }
}

/// The one datagram that arrived.
struct Arrived(Option<(datagram::Header<Tuple>, Vec<u8>)>);

impl rx::Queue for Arrived {
    type Handle = Tuple;

    fn for_each<F: FnMut(datagram::Header<Tuple>, &mut [u8])>(&mut self, mut on_packet: F) {
        if let Some((header, mut payload)) = self.0.take() {
            on_packet(header, &mut payload);
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// Datagrams to send.
struct Leaving {
    queue: VecDeque<(Ecn, Vec<u8>)>,
    /// The largest, in bytes.
    datagram: usize,
}

impl tx::Queue for Leaving {
    type Handle = Tuple;

    const SUPPORTS_ECN: bool = true;

    fn push<M: tx::Message<Handle = Tuple>>(&mut self, mut message: M) -> Result<tx::Outcome, tx::Error> {
        if !self.has_capacity() {
            return Err(tx::Error::AtCapacity);
        }
        let mut payload = vec![0; self.datagram];
        let len = message.write_payload(tx::PayloadBuffer::new(&mut payload), 0)?;
        payload.truncate(len);
        let ecn = Ecn::from_bits(message.ecn() as u8);
        let index = self.queue.len();
        self.queue.push_back((ecn, payload));
        Ok(tx::Outcome { len, index })
    }

    fn capacity(&self) -> usize {
        AT_ONCE.saturating_sub(self.queue.len())
    }
}
