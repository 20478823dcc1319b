//! Those who come to a measuring server and want nothing good: they cost it little, and others are served
//! meanwhile.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brakelight_core::registry::ControllerConfig;
use brakelight_quic::adapter::{ControlSettings, PacketSender, Path};
use brakelight_quic::perf::client::{Plan, Until, Work, measure};
use brakelight_quic::perf::identity::{Identity, Trust};
use brakelight_quic::perf::server::{self, Server};
use brakelight_quic::perf::{Control, wire};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{ClientConfig, Endpoint, EndpointConfig};

fn settings() -> ControlSettings {
    let cubic = ControllerConfig::new("cubic", &[]).unwrap();
    ControlSettings::new(cubic, PacketSender::Driver, Path::Own).unwrap()
}

fn serve() -> SocketAddr {
    let settings = server::ServerSettings {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        control: settings(),
        identity: Identity::self_signed(),
        token: None,
        qlog: None,
        limits: server::Limits::default(),
    };
    let server = Server::bind(&settings, |_| ()).unwrap();
    let address = server.address();
    std::thread::spawn(move || server.serve());
    address
}

fn crypto() -> Arc<QuicClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    tls.alpn_protocols = vec![wire::ALPN.to_vec()];
    Arc::new(tls.try_into().unwrap())
}

/// The first packet of a connection that will not go on.
fn first_packet(crypto: &Arc<QuicClientConfig>, server: SocketAddr) -> Vec<u8> {
    let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, true, None);
    let config = ClientConfig::new(crypto.clone());
    let now = Instant::now();
    let (_, mut connection) = endpoint.connect(now, config, server, "localhost").unwrap();
    let mut packet = Vec::new();
    let transmit = connection.poll_transmit(now, 1, &mut packet).unwrap();
    packet.truncate(transmit.size);
    packet
}

/// Answers by the type of their long header (RFC 9000 17.2): Initial and Retry.
fn answers(socket: &UdpSocket) -> (usize, usize) {
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let (mut initials, mut retries) = (0, 0);
    let mut buffer = [0; 2048];
    while let Ok(length) = socket.recv(&mut buffer) {
        match buffer[..length].first().map(|first| first & 0xf0) {
            Some(0xc0) => initials += 1,
            Some(0xf0) => retries += 1,
            _ => {}
        }
    }
    (initials, retries)
}

/// One byte there and back; how long it took.
fn be_served(server: SocketAddr) -> Duration {
    let plan = Plan {
        server,
        server_name: "localhost".to_string(),
        trust: Trust::Anyone,
        token: None,
        control: Control::Ours(Box::new(settings())),
        work: Work::Upload,
        until: Until::Bytes(1),
        connections: 1,
        probe: None,
        qlog: None,
    };
    let began = Instant::now();
    measure(&plan, |_, _| ()).unwrap();
    began.elapsed()
}

#[test]
fn under_load_first_packets_are_answered_by_retry_and_kept_by_nobody() {
    const STRANGERS: usize = 300;
    let server = serve();
    let crypto = crypto();
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (mut initials, mut retries) = (0, 0);
    // In portions that the sockets' buffers hold.
    for _ in 0..STRANGERS / 50 {
        for _ in 0..50 {
            socket.send_to(&first_packet(&crypto, server), server).unwrap();
        }
        let found = answers(&socket);
        initials += found.0;
        retries += found.1;
    }
    assert!(
        retries >= STRANGERS / 2,
        "{retries} of {STRANGERS} were answered by Retry, {initials} by Initial"
    );
    // Who is there answers the Retry and is let in.
    let took = be_served(server);
    assert!(took < Duration::from_secs(2), "served after {took:?}");
}
