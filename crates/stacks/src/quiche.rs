//! quiche, as it is published, with its own controllers and BoringSSL.
//!
//! quiche reads the clock itself ([the crate's page](crate#time)). It paces by saying when the next datagram
//! should leave, `Connection::get_next_release_time`, and takes that as the time at which it was sent. So a
//! datagram is asked for up to `max_release_into_future` before, and held here until its time, as quiche's
//! own server has the kernel do. `SendInfo::at` is not that time: it is the next datagram's.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use boring::pkey::PKey;
use boring::ssl::{SslContextBuilder, SslMethod, SslOptions, SslSignatureAlgorithm};
use boring::x509::X509;
use brakelight_core::controller::Rtt;
use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::host::{AHEAD, About, HostFactory, HostedController, Pair, Setup};
use brakelight_core::parameters::{OptionValues, ParameterError, Parameters};
use brakelight_core::time::Time;
use brakelight_registry::Options;
use quiche::{CongestionControlAlgorithm, Connection, ConnectionId, RecvInfo};

use crate::entropy;
use crate::options::quiche::Config;
use crate::side::{Side, Stack, Values};
use crate::{ZEROES, clock, tls};

const RENO: &str = "quiche/reno";
const CUBIC: &str = "quiche/cubic";
const BBR2: &str = "quiche/bbr2";
/// rfc9000 2.1: the first stream that the client opens in one direction.
const STREAM: u64 = 2;
/// rfc8999 5.1: the version-independent limit is higher, and this is QUIC version 1's, in bytes.
const CONNECTION_ID: usize = 20;
/// Messages that wait, at most, in each direction.
const MESSAGES: usize = 1000;
/// Datagrams that are held, at most: fewer than a stack is given ahead of what it has sent, or quiche would
/// believe that the application is the limit.
const MOST_HELD: usize = AHEAD as usize - 1;

/// The host `quiche`.
#[derive(Debug)]
pub(crate) struct Quiche;

impl HostFactory for Quiche {
    fn about(&self) -> About {
        About {
            summary: "quiche, Cloudflare's QUIC stack, unmodified (https://github.com/cloudflare/quiche)",
            version: env!("QUICHE_VERSION"),
            licence: "BSD-2-Clause",
            shows: &["bandwidth_bps", "mtu_bytes"],
            // It neither sets nor reads the ECN field.
            encoding: Encoding::None,
            messages: true,
        }
    }

    fn controllers(&self) -> Vec<HostedController> {
        let entry = |name, summary| HostedController { name, summary, parameters: Config::describe };
        vec![
            entry(RENO, "Reno of quiche"),
            entry(CUBIC, "Cubic of quiche"),
            entry(BBR2, "BBRv2 of quiche (`bbr2_gcongestion`)"),
        ]
    }

    fn settings(&self, _controller: &str, options: Options<'_>) -> Result<OptionValues, ParameterError> {
        Ok(Config::from_options(options.iter().copied())?.settings())
    }

    fn pair(&self, setup: &Setup<'_>) -> Result<Pair, String> {
        entropy::check()?;
        entropy::check_boringssl()?;
        clock::check()?;
        let options = setup.settings.iter().map(|(name, value)| (*name, value.as_str()));
        let options = Config::from_options(options).map_err(|error| error.to_string())?;
        let mut random = setup.random.clone();
        let mut end = |opens| Side::new(&mut random, None, || Quic::new(setup, &options, opens));
        Ok(Pair { sender: Box::new(end(true)?), receiver: Box::new(end(false)?) })
    }
}

/// One end.
struct Quic {
    config: quiche::Config,
    own: SocketAddr,
    peer: SocketAddr,
    connection: Option<Connection>,
    /// The next datagrams, each with the time at which it leaves.
    held: VecDeque<(Instant, Vec<u8>)>,
    /// The time of the newest call that told it.
    now: Instant,
    /// The largest datagram, in bytes.
    datagram: usize,
    /// A datagram that arrived: quiche decrypts it in place.
    arrived: Vec<u8>,
    closed: Option<String>,
}

impl Quic {
    fn new(setup: &Setup<'_>, options: &Config, opens: bool) -> Result<Self, String> {
        let datagram = usize::from(setup.datagram).min(options.datagram as usize);
        let config = config(setup, options, datagram).map_err(|error| format!("quiche: {error}"))?;
        let [own, peer] = if opens { [1, 2] } else { [2, 1] };
        let address = |host| SocketAddr::from((Ipv4Addr::new(192, 0, 2, host), 443));
        Ok(Quic {
            config,
            own: address(own),
            peer: address(peer),
            connection: None,
            held: VecDeque::new(),
            now: clock::instant(Time::ZERO),
            datagram,
            arrived: Vec::new(),
            closed: None,
        })
    }

    /// An ID for this end, from the connection's random numbers.
    fn id() -> Option<ConnectionId<'static>> {
        let mut id = vec![0; CONNECTION_ID];
        entropy::fill_from_lent(&mut id).then(|| ConnectionId::from_vec(id))
    }
}

/// The stack's own settings, but for flow control, the controller and the largest datagram.
fn config(
    setup: &Setup<'_>,
    options: &Config,
    datagram: usize,
) -> Result<quiche::Config, Box<dyn std::error::Error>> {
    let mut config = quiche::Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, tls()?)?;
    config.set_application_protos(&[b"brakelight"])?;
    config.verify_peer(false);
    config.set_max_recv_udp_payload_size(usize::from(setup.datagram));
    config.set_max_send_udp_payload_size(datagram);
    let window = options.stream_window.0;
    config.set_initial_max_data(window);
    config.set_initial_max_stream_data_uni(window);
    config.set_max_connection_window(window);
    config.set_max_stream_window(window);
    config.set_initial_max_streams_uni(1);
    config.enable_dgram(true, MESSAGES, MESSAGES);
    config.set_cc_algorithm(match setup.controller {
        RENO => CongestionControlAlgorithm::Reno,
        BBR2 => CongestionControlAlgorithm::Bbr2Gcongestion,
        _ => CongestionControlAlgorithm::CUBIC,
    });
    config.set_initial_congestion_window_packets(options.initial_window as usize);
    config.enable_hystart(options.hystart);
    config.set_enable_cubic_idle_restart_fix(options.idle_restart_fix);
    Ok(config)
}

/// TLS of both ends. X25519 takes its keys by `RAND_bytes`, and the other groups do not. A signature of
/// Ed25519 is no draw. There are no tickets, which would hold the time of day.
fn tls() -> Result<SslContextBuilder, Box<dyn std::error::Error>> {
    let (certificate, key) = tls::certificate();
    let mut builder = SslContextBuilder::new(SslMethod::tls())?;
    builder.set_certificate(&*X509::from_der(&certificate)?)?;
    builder.set_private_key(&*PKey::private_key_from_pkcs8(key.secret_der())?)?;
    builder.set_curves_list("X25519")?;
    builder.set_verify_algorithm_prefs(&[SslSignatureAlgorithm::ED25519])?;
    builder.set_options(SslOptions::NO_TICKET);
    Ok(builder)
}

impl Stack for Quic {
    fn connect(&mut self, _now: Instant) {
        let Some(id) = Self::id() else { return };
        match quiche::connect(Some(tls::NAME), &id, self.own, self.peer, &mut self.config) {
            Ok(connection) => self.connection = Some(connection),
            Err(error) => self.closed = Some(error.to_string()),
        }
    }

    fn receive(&mut self, now: Instant, _ecn: Ecn, payload: &[u8]) {
        self.now = now;
        if self.connection.is_none() {
            let Some(id) = Self::id() else { return };
            match quiche::accept(&id, None, self.own, self.peer, &mut self.config) {
                Ok(connection) => self.connection = Some(connection),
                Err(error) => self.closed = Some(error.to_string()),
            }
        }
        let Some(connection) = &mut self.connection else { return };
        self.arrived.clear();
        self.arrived.extend_from_slice(payload);
        // An error ends the connection, which `settle` sees.
        let _ = connection.recv(&mut self.arrived, RecvInfo { from: self.peer, to: self.own });
    }

    fn transmit(&mut self, now: Instant, payload: &mut Vec<u8>) -> Option<Ecn> {
        self.now = now;
        loop {
            if let Some((at, _)) = self.held.front()
                && *at <= now
            {
                *payload = self.held.pop_front()?.1;
                return Some(Ecn::NotEct);
            }
            let connection = self.connection.as_mut()?;
            let decision = connection.get_next_release_time().filter(|decision| !decision.can_burst());
            let at = decision.and_then(|decision| decision.time(now)).unwrap_or(now);
            if self.held.len() >= MOST_HELD || at > now + connection.max_release_into_future() {
                return None;
            }
            let mut datagram = vec![0; self.datagram];
            let (size, _) = connection.send(&mut datagram).ok()?;
            datagram.truncate(size);
            self.held.push_back((at, datagram));
        }
    }

    fn on_timeout(&mut self, now: Instant) {
        self.now = now;
        if let Some(connection) = &mut self.connection {
            connection.on_timeout();
        }
    }

    fn write(&mut self, size: usize) -> usize {
        let Some(connection) = &mut self.connection else { return 0 };
        // Fails until the other end has said how many streams it takes.
        connection.stream_send(STREAM, &ZEROES[..size.min(ZEROES.len())], false).unwrap_or(0)
    }

    fn finish(&mut self) {
        if let Some(connection) = &mut self.connection {
            // Fails if the connection is over.
            let _ = connection.stream_send(STREAM, &[], true);
        }
    }

    fn read(&mut self) -> u64 {
        let Some(connection) = &mut self.connection else { return 0 };
        let mut read = 0;
        while connection.stream_readable(STREAM)
            && let Ok((size, _)) = connection.stream_discard(STREAM, usize::MAX)
        {
            read += size as u64;
        }
        read
    }

    fn send_message(&mut self, message: &[u8]) -> bool {
        self.connection.as_mut().is_some_and(|connection| connection.dgram_send(message).is_ok())
    }

    fn take_message(&mut self) -> Option<Vec<u8>> {
        let mut message = vec![0; self.datagram];
        let size = self.connection.as_mut()?.dgram_recv(&mut message).ok()?;
        message.truncate(size);
        Some(message)
    }

    fn settle(&mut self) {
        let Some(connection) = &self.connection else { return };
        if self.closed.is_some() || !connection.is_closed() && connection.local_error().is_none() {
            return;
        }
        let error = connection.local_error().or(connection.peer_error());
        self.closed = Some(match error {
            Some(error) if error.reason.is_empty() => format!("error {:#x}", error.error_code),
            Some(error) => String::from_utf8_lossy(&error.reason).into_owned(),
            None if connection.is_timed_out() => "timed out".to_string(),
            None => "closed".to_string(),
        });
    }

    /// BoringSSL encrypts, so the estimate stays. A write takes no more than the window has room for. Frames
    /// of a call take three times as long as in the modelled host all the same.
    fn is_read(&self) -> bool {
        false
    }

    fn deadline(&mut self) -> Option<Instant> {
        let connection = self.connection.as_ref()?;
        let held = self.held.front().map(|(at, _)| *at);
        // The next one is asked for when its time is near.
        let next = connection.get_next_release_time().and_then(|decision| decision.time(self.now));
        let next = next.map(|at| at - connection.max_release_into_future()).filter(|at| *at > self.now);
        [held, next, connection.timeout_instant()].into_iter().flatten().min()
    }

    fn values(&mut self) -> Option<Values> {
        let path = self.connection.as_ref()?.path_stats().next()?;
        Some(Values {
            cwnd: path.cwnd as u64,
            ssthresh: None,
            pacing_bps: None,
            // In bytes per second: of BBRv2 the filter's, of the others the newest sample.
            bandwidth_bps: Some(path.max_bandwidth.unwrap_or(path.delivery_rate).saturating_mul(8)),
            lost: path.lost as u64,
            // Before the first sample there is no smallest.
            rtt: path.min_rtt.map(|min| Rtt {
                sample: None,
                smoothed: clock::length(path.rtt),
                variation: clock::length(path.rttvar),
                min: clock::length(min),
            }),
            mtu: u16::try_from(path.pmtu).unwrap_or(u16::MAX),
        })
    }

    fn closed(&self) -> Option<&str> {
        self.closed.as_deref()
    }
}
