//! A measuring server, clients that are served by it, and strangers who begin a connection and let it be.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brakelight_quic::adapter::{ControlSettings, PacketSender, Path};
use brakelight_quic::perf::client::{Plan, Until, Work, measure};
use brakelight_quic::perf::identity::{Identity, Trust};
use brakelight_quic::perf::server::{self, Server};
use brakelight_quic::perf::{Control, Error, wire};
use brakelight_registry::ControllerConfig;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{ClientConfig, Connection, Endpoint, EndpointConfig};

fn settings() -> ControlSettings {
    let cubic = ControllerConfig::new("cubic", &[]).unwrap();
    ControlSettings::new(cubic, PacketSender::Driver, Path::Own).unwrap()
}

/// A server at a port of the loopback, which does not serve yet.
pub fn server() -> Server {
    let settings = server::ServerSettings {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        control: settings(),
        identity: Identity::self_signed(),
        token: None,
        qlog: None,
        limits: server::Limits::default(),
    };
    Server::bind(&settings, |_| ()).unwrap()
}

/// What a stranger says in TLS, who trusts no server.
pub fn crypto() -> Arc<QuicClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    tls.alpn_protocols = vec![wire::ALPN.to_vec()];
    Arc::new(tls.try_into().unwrap())
}

/// Where a stranger's connections begin.
pub fn endpoint() -> Endpoint {
    Endpoint::new(Arc::new(EndpointConfig::default()), None, true, None)
}

/// The first packet of a connection, and the connection that expects an answer.
pub fn first_packet(
    endpoint: &mut Endpoint,
    crypto: &Arc<QuicClientConfig>,
    server: SocketAddr,
) -> (Connection, Vec<u8>) {
    let now = Instant::now();
    let (_, mut connection) =
        endpoint.connect(now, ClientConfig::new(crypto.clone()), server, "localhost").unwrap();
    let packet = next_packet(&mut connection).expect("a first packet");
    (connection, packet)
}

/// What a connection has to send, if anything.
pub fn next_packet(connection: &mut Connection) -> Option<Vec<u8>> {
    let mut packet = Vec::new();
    let transmit = connection.poll_transmit(Instant::now(), 1, &mut packet)?;
    packet.truncate(transmit.size);
    Some(packet)
}

/// Far longer than a client is served in, on a machine that leaves it little time.
const SERVED_WITHIN: Duration = Duration::from_secs(60);

/// One byte there and back; how long it took. A client that has waited in vain asks again.
pub fn be_served(server: SocketAddr) -> Duration {
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
    loop {
        match measure(&plan, |_, _| ()) {
            Err(Error::NoAnswer { .. }) if began.elapsed() < SERVED_WITHIN => {}
            ended => {
                ended.expect("a client is served meanwhile");
                return began.elapsed();
            }
        }
    }
}
