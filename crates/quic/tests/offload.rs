//! That segmentation and receive offload are used: over this machine's loopback the sender's kernel takes
//! many datagrams in one call, and the receiver's gives many in one message.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use brakelight_quic::adapter::{ControlSettings, PacketSender, Path};
use brakelight_quic::builder::EndpointBuilder;
use brakelight_quic::driver::net::{Hub, Limits, Listen, Opening};
use brakelight_quic::io_counts::IoCounts;
use brakelight_registry::ControllerConfig;
use brakelight_testkit::skip::skip;
use bytes::Bytes;

mod support;

use support::Identity;

const BYTES: u64 = 20_000_000;

/// Whether the kernel has both kinds of offload; says so where it has not.
fn has_offload(what: &str) -> bool {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let state = quinn_udp::UdpSocketState::new((&socket).into()).unwrap();
    let has = state.max_gso_segments() > 1 && state.gro_segments() > 1;
    if !has {
        skip(&format!("kernel: {what}"), "the kernel has no UDP_SEGMENT or no UDP_GRO");
    }
    has
}

fn settings(controller: &str, sender: PacketSender) -> ControlSettings {
    ControlSettings::new(ControllerConfig::new(controller, &[]).unwrap(), sender, Path::Own).unwrap()
}

fn check(controller: &str, sent: &IoCounts, received: &IoCounts) {
    let packets = BYTES / 1500;
    assert!(sent.sent_datagrams > packets && received.received_datagrams > packets, "{sent:?} {received:?}");
    let (send, message) = (sent.datagrams_per_send(), received.datagrams_per_message());
    // Without offload both are 1. How far above they lie follows from the window: on an idle machine far
    // above 4, but a busy one loses datagrams in full buffers, which keeps the window small.
    assert!(send > 2.0, "{controller}: {send:.1} datagrams per call that sends");
    assert!(message > 2.0, "{controller}: {message:.1} datagrams per message that comes");
}

fn block_on<T>(act: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime
        .block_on(async { tokio::time::timeout(Duration::from_secs(60), act).await })
        .expect("the transfer ends")
}

/// Both ends of the driver.
async fn over_the_driver(controller: &str) -> (IoCounts, IoCounts) {
    let identity = Identity::new();
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let opening = || Opening::default();
    let crypto = Arc::new(support::server_crypto(&identity));
    let listen = Listen { crypto, opening: Box::new(opening), limits: Limits::default() };
    let bind =
        |listen| Hub::bind(local, settings(controller, PacketSender::Driver), listen, 4 << 20).unwrap();
    let (server, client) = (bind(Some(listen)), bind(None));
    let crypto = support::client_crypto(&identity);
    let connection = client.connect(crypto, Opening::default(), server.address(), "localhost").unwrap();
    let (mut send, _) = connection.open_bi().await.unwrap();
    let sending = async {
        let piece = Bytes::from_static(&[0x5a; 1 << 16]);
        let mut left = BYTES;
        while left > 0 {
            let piece = piece.slice(..left.min(1 << 16) as usize);
            left -= piece.len() as u64;
            send.write_chunk(piece).await.unwrap();
        }
        send.finish().unwrap();
    };
    let receiving = async {
        let connection = server.accept().await.unwrap().unwrap();
        let (_, mut receive) = connection.accept_bi().await.unwrap();
        let mut bytes = 0;
        while let Some(chunk) = receive.read_chunk(usize::MAX).await.unwrap() {
            bytes += chunk.len() as u64;
        }
        bytes
    };
    let ((), bytes) = tokio::join!(sending, receiving);
    assert_eq!(bytes, BYTES);
    (client.io_counts(), server.io_counts())
}

/// Two applications of quinn.
async fn over_quinn(controller: &str) -> (IoCounts, IoCounts) {
    let identity = Identity::new();
    let socket = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let builder = || EndpointBuilder::new(settings(controller, PacketSender::Stack));
    let (from, to) = (builder(), builder());
    let transport = quinn::TransportConfig::default;
    let config = to.server(Arc::new(support::server_crypto(&identity)), transport());
    let server = to.endpoint(socket(), Some(config)).unwrap();
    let mut client = from.endpoint(socket(), None).unwrap();
    client.set_default_client_config(from.client(support::client_crypto(&identity), transport()));
    let sending = async {
        let address = server.local_addr().unwrap();
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        let mut send = connection.open_uni().await.unwrap();
        let piece = [0x5a; 1 << 16];
        let mut left = BYTES;
        while left > 0 {
            let piece = &piece[..left.min(1 << 16) as usize];
            left -= piece.len() as u64;
            send.write_all(piece).await.unwrap();
        }
        send.finish().unwrap();
        send.stopped().await.unwrap();
    };
    let receiving = async {
        let connection = server.accept().await.unwrap().await.unwrap();
        let mut receive = connection.accept_uni().await.unwrap();
        let mut bytes = 0;
        while let Some(chunk) = receive.read_chunk(usize::MAX, true).await.unwrap() {
            bytes += chunk.bytes.len() as u64;
        }
        // The sender waits for its last ACK.
        connection.closed().await;
        bytes
    };
    let sending = async {
        sending.await;
        client.close(0u32.into(), b"");
    };
    let ((), bytes) = tokio::join!(sending, receiving);
    assert_eq!(bytes, BYTES);
    (from.io_counts(), to.io_counts())
}

#[test]
fn the_driver_sends_and_receives_many_datagrams_in_one_call() {
    if has_offload("offload under the driver") {
        for controller in ["cubic", "abc"] {
            let (sent, received) = block_on(over_the_driver(controller));
            check(controller, &sent, &received);
        }
    }
}

#[test]
fn an_application_of_quinn_sends_and_receives_many_datagrams_in_one_call() {
    if has_offload("offload in quinn") {
        for controller in ["cubic", "abc"] {
            let (sent, received) = block_on(over_quinn(controller));
            check(controller, &sent, &received);
        }
    }
}
