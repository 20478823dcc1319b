//! Endpoints for tests over sockets of this machine: receivers of two stacks as they come, and a sender of
//! ours.
#![allow(dead_code)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use brakelight_quic::socket::StampingSocket;
use brakelight_quic::stamps::Stamps;
use brakelight_quic::tap::{Open, Tap};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

pub mod relay;
pub mod stranger;

/// The longest that a transfer may take, by the clock of [`under_a_still_clock`].
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a transfer between sockets of this machine on one thread, under a clock that stands still while
/// anything is left to do, and then goes on to the next timer. A loaded machine makes the transfer slower and
/// changes nothing else: no probe, delayed ACK or release by the relay comes because a thread had to wait for
/// a processor. Both stacks and the relay go by tokio's clock; our driver does not.
pub fn under_a_still_clock<T>(transfer: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let ended = runtime.block_on(async { tokio::time::timeout(PATIENCE, transfer).await });
    ended.expect("the transfer ends")
}

/// Protocol name of these tests.
const ALPN: &[u8] = b"sink";

/// A certificate for `localhost`, made for the test.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
    pem: (String, String),
}

impl Identity {
    /// A fresh one.
    pub fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_string()]).unwrap();
        Identity {
            certificate: made.cert.der().clone(),
            key: PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()),
            pem: (made.cert.pem(), made.signing_key.serialize_pem()),
        }
    }
}

/// Which stack receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// quinn, as it comes.
    Quinn,
    /// s2n-quic, as it comes.
    #[cfg(feature = "s2n")]
    S2n,
}

/// Starts a receiver on the runtime that reads every stream to its end, and answers with the number of bytes
/// in text.
pub fn receive(receiver: Receiver, identity: &Identity) -> SocketAddr {
    match receiver {
        Receiver::Quinn => receive_with_quinn(identity),
        #[cfg(feature = "s2n")]
        Receiver::S2n => receive_with_s2n(identity),
    }
}

/// Cryptography of a server with `identity`.
pub fn server_crypto(identity: &Identity) -> QuicServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![identity.certificate.clone()], identity.key.clone_key().into())
        .unwrap();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.max_early_data_size = u32::MAX;
    QuicServerConfig::try_from(tls).unwrap()
}

fn receive_with_quinn(identity: &Identity) -> SocketAddr {
    let crypto = server_crypto(identity);
    let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    let endpoint = quinn::Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = endpoint.local_addr().unwrap();
    tokio::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            let Ok(connection) = incoming.await else { continue };
            tokio::spawn(async move {
                while let Ok((mut answer, mut stream)) = connection.accept_bi().await {
                    let mut total = 0;
                    while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX, true).await {
                        total += chunk.bytes.len();
                    }
                    // The receiver begins one too, in the middle of things.
                    connection.force_key_update();
                    let _ = answer.write_all(total.to_string().as_bytes()).await;
                    let _ = answer.finish();
                }
            });
        }
    });
    address
}

#[cfg(feature = "s2n")]
fn receive_with_s2n(identity: &Identity) -> SocketAddr {
    let (certificate, key) = &identity.pem;
    let tls = s2n_quic::provider::tls::rustls::Server::builder()
        .with_certificate(certificate.as_str(), key.as_str())
        .unwrap()
        .with_application_protocols([ALPN].into_iter())
        .unwrap()
        .build()
        .unwrap();
    let mut server =
        s2n_quic::Server::builder().with_tls(tls).unwrap().with_io("127.0.0.1:0").unwrap().start().unwrap();
    let address = server.local_addr().unwrap();
    tokio::spawn(async move {
        while let Some(mut connection) = server.accept().await {
            tokio::spawn(async move {
                while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
                    let (mut stream, mut answer) = stream.split();
                    let mut total = 0;
                    while let Ok(Some(chunk)) = stream.receive().await {
                        total += chunk.len();
                    }
                    let _ = answer.send(total.to_string().into_bytes().into()).await;
                    let _ = answer.finish();
                }
            });
        }
    });
    address
}

/// Cryptography of a client that trusts `identity`, and keeps what it needs to resume a connection with 0-RTT
/// data.
pub fn client_crypto(identity: &Identity) -> Arc<QuicClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity.certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.enable_early_data = true;
    Arc::new(QuicClientConfig::try_from(tls).unwrap())
}

/// A client of ours whose connections tell what `open` makes what passes, and which sends through the
/// stamping socket.
pub fn sender(identity: &Identity, transport: quinn::TransportConfig, open: Open) -> quinn::Endpoint {
    let stamps = Arc::new(Stamps::new());
    let tap = Tap::new(open, stamps.clone());
    let crypto = tap.client(client_crypto(identity));
    let mut config = quinn::ClientConfig::new(crypto);
    config.transport_config(Arc::new(transport));
    let runtime = quinn::default_runtime().unwrap();
    let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let socket = StampingSocket::new(runtime.wrap_udp_socket(socket).unwrap(), stamps);
    let endpoint_config = quinn::EndpointConfig::default();
    let mut endpoint =
        quinn::Endpoint::new_with_abstract_socket(endpoint_config, None, Arc::new(socket), runtime).unwrap();
    endpoint.set_default_client_config(config);
    endpoint
}
