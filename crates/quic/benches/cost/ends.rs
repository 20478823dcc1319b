//! The two ends of a run, each a process of its own.

use std::io::{self, IoSliceMut, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use brakelight_quic::adapter::{ControlSettings, PacketSender, Path};
use brakelight_quic::builder::EndpointBuilder;
use brakelight_quic::driver::net::{self, Hub, Listen, Opening};
use brakelight_quic::io_counts::{IoCounts, IoMeter};
use brakelight_registry::ControllerConfig;
use bytes::Bytes;
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, ConnectionStats, Runtime as _, TransportConfig, UdpPoller};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};

use super::{Cost, Run};

const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
const ALPN: &[u8] = b"cost";
const PIECE: Bytes = Bytes::from_static(&[0x5a; 1 << 16]);
/// Bytes that may be on their way, and bytes of the socket's buffers as far as the system allows them: those
/// of `perf`.
const WINDOW: u32 = 16 << 20;
const SOCKET_BUFFER: usize = 4 << 20;

/// Bytes of the first window: quinn's own, ten packets of 1,472 bytes (RFC 9002 section 7.2).
const INITIAL_WINDOW: u64 = 14_720;

/// Is one end: `receive KIND HOST`, or `send KIND CONTROLLER ADDRESS BYTES MBPS`.
pub fn run(arguments: &[String]) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    runtime.block_on(async {
        match words[..] {
            ["receive", kind, host] => receive(kind, host.parse().expect("an address")).await,
            ["send", kind, controller, address, bytes, rate] => {
                let address = address.parse().expect("an address");
                let (bytes, rate) = (bytes.parse().expect("bytes"), rate.parse().expect("Mbit/s"));
                send(kind, controller, address, bytes, rate).await;
            }
            _ => panic!("what is {words:?}?"),
        }
    });
}

#[allow(clippy::print_stdout)]
fn say(line: &str) {
    println!("{line}");
    io::stdout().flush().expect("somebody listens");
}

pub fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(WINDOW.into()).send_window(u64::from(WINDOW));
    transport
}

pub fn settings(controller: &str, sender: PacketSender) -> ControlSettings {
    let controller = ControllerConfig::new(controller, &[]).expect("a controller");
    ControlSettings::new(controller, sender, Path::Own).expect("it runs here")
}

fn bind(host: IpAddr) -> UdpSocket {
    let socket = UdpSocket::bind((host, 0)).expect("a socket");
    let state = quinn_udp::UdpSocketState::new((&socket).into()).expect("a socket's state");
    let _ = state.set_send_buffer_size((&socket).into(), SOCKET_BUFFER);
    let _ = state.set_recv_buffer_size((&socket).into(), SOCKET_BUFFER);
    socket
}

/// Times of this process since it was made, and the calls of its socket.
struct Stopwatch {
    began: Instant,
    processor: (f64, f64),
    counts: IoCounts,
}

impl Stopwatch {
    fn start(counts: IoCounts) -> Self {
        Stopwatch { began: Instant::now(), processor: processor(), counts }
    }

    fn stop(&self, counts: IoCounts, bytes: u64) -> Cost {
        let (user, system) = processor();
        let counts = counts.since(&self.counts);
        Cost {
            user_s: user - self.processor.0,
            system_s: system - self.processor.1,
            wall_s: self.began.elapsed().as_secs_f64(),
            bytes,
            datagrams_per_send: counts.datagrams_per_send(),
            datagrams_per_receive: counts.datagrams_per_receive(),
            datagrams_per_message: counts.datagrams_per_message(),
        }
    }
}

/// User and system time of this process, in seconds. Their sum is exact; where it is divided, the system
/// estimates by ticks (getrusage(2)).
fn processor() -> (f64, f64) {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let all = time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // proc(5): utime and stime are the 14th and 15th fields, the 12th and 13th after the name.
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11);
    let mut ticks = || fields.next().and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    let (user, system) = (ticks(), ticks());
    let share = if user + system > 0.0 { user / (user + system) } else { 0.5 };
    (all * share, all * (1.0 - share))
}

/// quinn's own socket, whose calls are counted as ours counts them.
#[derive(Debug)]
struct Counting {
    inner: Arc<dyn AsyncUdpSocket>,
    meter: Arc<IoMeter>,
}

impl AsyncUdpSocket for Counting {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.inner.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.inner.try_send(transmit)?;
        let bytes = transmit.contents.len();
        self.meter.on_send(bytes, transmit.segment_size.unwrap_or(bytes));
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let received = self.inner.poll_recv(cx, bufs, meta);
        if let Poll::Ready(Ok(messages)) = received {
            self.meter.on_receive(&meta[..messages]);
        }
        received
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.inner.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

fn stock_endpoint(
    host: IpAddr,
    server: Option<quinn::ServerConfig>,
    meter: &Arc<IoMeter>,
) -> quinn::Endpoint {
    let runtime = Arc::new(quinn::TokioRuntime);
    let inner = runtime.wrap_udp_socket(bind(host)).expect("a socket of the runtime");
    let socket = Arc::new(Counting { inner, meter: meter.clone() });
    let config = quinn::EndpointConfig::default();
    quinn::Endpoint::new_with_abstract_socket(config, server, socket, runtime).expect("an endpoint")
}

/// quinn's own controller called `name`, with a first window of `window` bytes.
pub fn stock_controller(name: &str, window: u64) -> Arc<dyn ControllerFactory + Send + Sync> {
    match name {
        "cubic" => Arc::new(std::mem::take(CubicConfig::default().initial_window(window))),
        "newreno" => Arc::new(std::mem::take(NewRenoConfig::default().initial_window(window))),
        "bbr" => Arc::new(std::mem::take(BbrConfig::default().initial_window(window))),
        _ => panic!("quinn has no `{name}`"),
    }
}

// The receiver.

pub fn server_crypto() -> QuicServerConfig {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_string()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .expect("its own certificate");
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.try_into().expect("a cipher suite of QUIC")
}

/// Takes one stream, answers with what it cost, and ends with standard input.
async fn receive(kind: &str, host: IpAddr) {
    let meter = Arc::new(IoMeter::default());
    let crypto = Arc::new(server_crypto());
    match kind {
        "driver" => {
            let opening = || Opening { transport: transport(), connected: None };
            let limits = net::Limits::default();
            let listen = Listen { crypto, opening: Box::new(opening), limits };
            let settings = settings("cubic", PacketSender::Driver);
            let hub = Hub::bind((host, 0).into(), settings, Some(listen), SOCKET_BUFFER);
            let hub = hub.expect("a hub");
            say(&hub.address().to_string());
            let connection = hub.accept().await.expect("the hub lives").expect("a connection");
            let watch = Stopwatch::start(hub.io_counts());
            let (mut send, mut receive) = connection.accept_bi().await.expect("a stream");
            let mut bytes = 0;
            while let Some(chunk) = receive.read_chunk(usize::MAX).await.expect("bytes") {
                bytes += chunk.len() as u64;
            }
            let cost = watch.stop(hub.io_counts(), bytes);
            send.write_all(&serde_json::to_vec(&cost).expect("numbers")).await.expect("a listener");
            send.finish().expect("a listener");
            connection.closed().await;
        }
        _ => {
            let builder = EndpointBuilder::new(settings("cubic", PacketSender::Stack));
            let endpoint = match kind {
                "stock" => {
                    let mut config = quinn::ServerConfig::with_crypto(crypto);
                    config.transport_config(Arc::new(transport()));
                    stock_endpoint(host, Some(config), &meter)
                }
                "quinn" => {
                    let config = builder.server(crypto, transport());
                    builder.endpoint(bind(host), Some(config)).expect("an endpoint")
                }
                _ => panic!("no receiver is called `{kind}`"),
            };
            let counts = || if kind == "stock" { meter.counts() } else { builder.io_counts() };
            say(&endpoint.local_addr().expect("bound").to_string());
            let connection = endpoint.accept().await.expect("open").await.expect("a connection");
            let watch = Stopwatch::start(counts());
            let (mut send, mut receive) = connection.accept_bi().await.expect("a stream");
            let mut bytes = 0;
            while let Some(chunk) = receive.read_chunk(usize::MAX, true).await.expect("bytes") {
                bytes += chunk.bytes.len() as u64;
            }
            let cost = watch.stop(counts(), bytes);
            send.write_all(&serde_json::to_vec(&cost).expect("numbers")).await.expect("a listener");
            send.finish().expect("a listener");
            connection.closed().await;
        }
    }
    let _ = io::stdin().read(&mut [0]);
}

// The sender.

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

pub fn client_crypto() -> Arc<QuicClientConfig> {
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone))
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    Arc::new(tls.try_into().expect("a cipher suite of QUIC"))
}

/// Gives out payload at a rate.
struct Tap {
    left: u64,
    given: u64,
    began: Instant,
    bytes_per_s: f64,
}

impl Tap {
    fn new(bytes: u64, mbps: u64) -> Self {
        Tap { left: bytes, given: 0, began: Instant::now(), bytes_per_s: mbps as f64 * 1e6 / 8.0 }
    }

    async fn next(&mut self) -> Option<Bytes> {
        if self.left == 0 {
            return None;
        }
        if self.bytes_per_s > 0.0 {
            let due = Duration::from_secs_f64(self.given as f64 / self.bytes_per_s);
            let early = due.saturating_sub(self.began.elapsed());
            // As coarse as timers of the runtime are.
            if early > Duration::from_millis(1) {
                tokio::time::sleep(early).await;
            }
        }
        let piece = PIECE.slice(..self.left.min(PIECE.len() as u64) as usize);
        self.left -= piece.len() as u64;
        self.given += piece.len() as u64;
        Some(piece)
    }
}

fn tell(watch: &Stopwatch, counts: IoCounts, bytes: u64, stats: &ConnectionStats, answer: &[u8]) {
    let run = Run {
        sender: watch.stop(counts, bytes),
        receiver: serde_json::from_slice(answer).expect("the receiver's cost"),
        packets: stats.path.sent_packets,
        lost_packets: stats.path.lost_packets,
        acks: stats.frame_rx.acks,
    };
    say(&serde_json::to_string(&run).expect("numbers"));
}

async fn send(kind: &str, controller: &str, to: SocketAddr, bytes: u64, mbps: u64) {
    let crypto = client_crypto();
    if kind == "driver" {
        let settings = settings(controller, PacketSender::Driver);
        let hub = Hub::bind((ANY, 0).into(), settings, None, SOCKET_BUFFER).expect("a hub");
        let opening = Opening { transport: transport(), connected: None };
        let connection = hub.connect(crypto, opening, to, "localhost").expect("a connection");
        connection.connected().await.expect("a handshake");
        let watch = Stopwatch::start(hub.io_counts());
        let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
        let mut tap = Tap::new(bytes, mbps);
        while let Some(piece) = tap.next().await {
            send.write_chunk(piece).await.expect("a listener");
        }
        send.finish().expect("a listener");
        let mut answer = Vec::new();
        while let Some(chunk) = receive.read_chunk(1 << 16).await.expect("an answer") {
            answer.extend_from_slice(&chunk);
        }
        tell(&watch, hub.io_counts(), bytes, &connection.stats(), &answer);
        connection.close(0, b"");
        hub.wait_idle().await;
        return;
    }
    let meter = Arc::new(IoMeter::default());
    let (endpoint, builder) = match kind {
        "stock" => {
            let mut endpoint = stock_endpoint(ANY, None, &meter);
            let mut transport = transport();
            transport.congestion_controller_factory(stock_controller(controller, INITIAL_WINDOW));
            let mut config = quinn::ClientConfig::new(crypto);
            config.transport_config(Arc::new(transport));
            endpoint.set_default_client_config(config);
            (endpoint, None)
        }
        "quinn" => {
            let builder = EndpointBuilder::new(settings(controller, PacketSender::Stack));
            let mut endpoint = builder.endpoint(bind(ANY), None).expect("an endpoint");
            endpoint.set_default_client_config(builder.client(crypto, transport()));
            (endpoint, Some(builder))
        }
        _ => panic!("no sender is called `{kind}`"),
    };
    let counts = || builder.as_ref().map_or_else(|| meter.counts(), EndpointBuilder::io_counts);
    let connection = endpoint.connect(to, "localhost").expect("an address").await.expect("a handshake");
    let watch = Stopwatch::start(counts());
    let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
    let mut tap = Tap::new(bytes, mbps);
    while let Some(piece) = tap.next().await {
        send.write_chunk(piece).await.expect("a listener");
    }
    send.finish().expect("a listener");
    let answer = receive.read_to_end(1 << 16).await.expect("an answer");
    tell(&watch, counts(), bytes, &connection.stats(), &answer);
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
}

/// Takes every certificate: both ends are this program.
#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}
