//! The driver over real sockets, towards receivers as they come: every controller's bytes arrive, and who
//! does not report receive times gets what is documented.

use std::net::Ipv4Addr;
use std::sync::Arc;

use brakelight_quic::adapter::support::valid;
use brakelight_quic::adapter::{ControlSettings, ControllerAdapter, PacketSender, Path, Times};
use brakelight_quic::driver::net::{Hub, Opening};
use brakelight_registry::ControllerConfig;
use bytes::Bytes;

#[path = "../../quic/tests/support/mod.rs"]
mod support;

use support::{Identity, Receiver};

/// Sends `bytes` under `controller`: what the receiver counted, and what controlled it.
async fn send(receiver: Receiver, controller: &str, bytes: usize) -> (String, Arc<ControllerAdapter>) {
    let identity = Identity::new();
    let server = support::receive(receiver, &identity);
    let config = ControllerConfig::new(controller, &[]).unwrap();
    let settings = ControlSettings::new(config, PacketSender::Driver, Path::Own).unwrap();
    let hub = Hub::bind((Ipv4Addr::LOCALHOST, 0).into(), settings, None, 1 << 20).unwrap();
    let crypto = support::client_crypto(&identity);
    let connection = hub.connect(crypto, Opening::default(), server, "localhost").unwrap();
    connection.connected().await.unwrap();
    let (mut stream, mut answer) = connection.open_bi().await.unwrap();
    stream.write_chunk(Bytes::from(vec![7; bytes])).await.unwrap();
    stream.finish().unwrap();
    let mut text = Vec::new();
    while let Some(chunk) = answer.read_chunk(usize::MAX).await.unwrap() {
        text.extend_from_slice(&chunk);
    }
    connection.close(0, b"done");
    hub.wait_idle().await;
    (String::from_utf8(text).unwrap(), connection.adapter().clone())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[test]
fn every_controllers_bytes_arrive_whole_at_a_receiver_that_was_never_told() {
    for controller in valid(PacketSender::Driver, Path::Own) {
        let (text, adapter) = runtime().block_on(send(Receiver::Quinn, controller, 200_000));
        assert_eq!(text, "200000", "{controller}");
        assert_eq!(adapter.controller(), controller);
        let counters = adapter.counters();
        assert!(
            counters.sent_packets >= 130 && counters.malformed_reports == 0,
            "{controller}: {counters:?}"
        );
    }
}

#[test]
fn a_receiver_that_does_not_report_leaves_quicdc_the_round_trip() {
    let receivers = [
        Receiver::Quinn,
        #[cfg(feature = "s2n")]
        Receiver::S2n,
    ];
    for receiver in receivers {
        let (text, adapter) = runtime().block_on(send(receiver, "quicdc", 3_000_000));
        assert_eq!(text, "3000000", "{receiver:?}");
        assert_eq!((adapter.times(), adapter.counters().reports), (Times::RoundTrip, 0), "{receiver:?}");
    }
}

#[test]
fn a_connection_ends_with_its_hub() {
    runtime().block_on(async {
        // Nobody answers there: it is a socket of this test.
        let silent = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let config = ControllerConfig::new("bbr", &[]).unwrap();
        let settings = ControlSettings::new(config, PacketSender::Driver, Path::Own).unwrap();
        let hub = Hub::bind((Ipv4Addr::LOCALHOST, 0).into(), settings, None, 1 << 16).unwrap();
        let crypto = support::client_crypto(&Identity::new());
        let server = silent.local_addr().unwrap();
        let connection = hub.connect(crypto, Opening::default(), server, "localhost").unwrap();
        let waiting = tokio::spawn({
            let connection = connection.clone();
            async move { connection.connected().await }
        });
        drop(hub);
        let gone = waiting.await.unwrap().unwrap_err().to_string();
        assert_eq!(gone, "its endpoint is gone");
        assert_eq!(connection.closed().await, gone);
        assert!(connection.open_bi().await.is_err());
    });
}
