//! An application of quinn that sends with ABC: what is ours takes a dozen lines.
//!
//! `cargo run -p brakelight-quic --example abc -- 127.0.0.1:4433 certificate.pem` connects to a server that
//! speaks the protocol `abc-example`, sends ten megabytes on one stream, and says what came back.

use std::error::Error;
use std::sync::Arc;

use brakelight_quic::adapter::{ControlSettings, PacketSender, Path};
use brakelight_quic::builder::{EndpointBuilder, adapter_of};
use brakelight_registry::ControllerConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let [server, certificate] = <[String; 2]>::try_from(std::env::args().skip(1).collect::<Vec<_>>())
        .map_err(|_| "say where the server is, and which file holds its certificate")?;

    // What any client of quinn has.
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate)?)?;
    let mut tls = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![b"abc-example".to_vec()];
    let crypto = Arc::new(quinn::crypto::rustls::QuicClientConfig::try_from(tls)?);

    // What is ours: the path is our own, so ABC may mark.
    let builder = EndpointBuilder::new(ControlSettings::new(
        ControllerConfig::new("abc", &[])?,
        PacketSender::Stack,
        Path::Own,
    )?);
    let mut endpoint = builder.endpoint(std::net::UdpSocket::bind("0.0.0.0:0")?, None)?;
    endpoint.set_default_client_config(builder.client(crypto, quinn::TransportConfig::default()));

    let connection = endpoint.connect(server.parse()?, "localhost")?.await?;
    let mut stream = connection.open_uni().await?;
    stream.write_all(&vec![0; 10_000_000]).await?;
    stream.finish()?;
    stream.stopped().await?;
    if let Some(adapter) = adapter_of(&connection) {
        let counters = adapter.counters();
        eprintln!(
            "{} accelerate, {} brake, {} CE",
            counters.accelerate_packets, counters.brake_packets, counters.ce_packets
        );
    }
    Ok(())
}
