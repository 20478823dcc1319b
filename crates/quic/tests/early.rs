//! Connections of a quinn application that are resumed with 0-RTT data, towards quinn as it comes.

use std::net::{Ipv4Addr, UdpSocket};

use brakelight_quic::adapter::{ControlSettings, PacketSender, Path};
use brakelight_quic::builder::{EndpointBuilder, adapter_of};
use brakelight_quic::validation::State;
use brakelight_registry::ControllerConfig;

mod support;

use support::{Identity, Receiver};

/// Bytes of the stream: more than the first window.
const BYTES: usize = 60_000;

async fn send(connection: &quinn::Connection) {
    let (mut stream, mut answer) = connection.open_bi().await.unwrap();
    stream.write_all(&[0x5a; BYTES]).await.unwrap();
    stream.finish().unwrap();
    let answer = answer.read_to_end(100).await.unwrap();
    assert_eq!(String::from_utf8(answer).unwrap(), BYTES.to_string());
}

async fn resume(name: &str, options: &[(&str, &str)]) {
    let identity = Identity::new();
    let server = support::receive(Receiver::Quinn, &identity);
    let controller = ControllerConfig::new(name, options).unwrap();
    let builder =
        EndpointBuilder::new(ControlSettings::new(controller, PacketSender::Stack, Path::Own).unwrap());
    let mut endpoint = builder.endpoint(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), None).unwrap();
    let transport = quinn::TransportConfig::default();
    endpoint.set_default_client_config(builder.client(support::client_crypto(&identity), transport));

    let first = endpoint.connect(server, "localhost").unwrap().await.unwrap();
    send(&first).await;
    first.close(0u32.into(), b"");

    let connecting = endpoint.connect(server, "localhost").unwrap();
    let (connection, accepted) = connecting.into_0rtt().unwrap_or_else(|_| panic!("{name}: no ticket"));
    send(&connection).await;
    assert!(accepted.await, "{name}: the server rejected 0-RTT");
    let adapter = adapter_of(&connection).expect("the controller is ours");
    let counters = adapter.counters();
    assert_eq!(adapter.validation(), State::Capable, "{name}: {counters:?}");
    assert_eq!((counters.brake_packets, counters.ce_packets), (0, 0), "{name}: {counters:?}");
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
}

#[test]
fn data_of_0rtt_neither_ends_ecn_nor_comes_back_as_brakes() {
    let controllers: [(&str, &[(&str, &str)]); 3] =
        [("abc", &[]), ("prague", &[]), ("cubic", &[("ecn", "true")])];
    for (name, options) in controllers {
        // One thread: the stream is written before the endpoint sends its first packet.
        support::under_a_still_clock(resume(name, options));
    }
}
