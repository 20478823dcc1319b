//! How often peers acknowledge: those that have the extension draft-ietf-quic-ack-frequency as they are asked
//! to, and the others as they like.

use std::net::{Ipv4Addr, UdpSocket};

use brakelight_quic::adapter::{self, ControlSettings, PacketSender};
use brakelight_quic::builder::EndpointBuilder;
use brakelight_registry::ControllerConfig;

#[path = "../../quic/tests/support/mod.rs"]
mod support;

use support::relay::{self, Path, Rewrite};
use support::{Identity, Receiver};

const BYTES: usize = 1_000_000;

/// A transfer through a relay that carries one datagram at a time.
struct Transfer {
    /// Frames that asked for a frequency.
    asked: u64,
    packets_per_ack: f64,
}

async fn transfer(receiver: Receiver, controller: &str) -> Transfer {
    let identity = Identity::new();
    let server = support::receive(receiver, &identity);
    let path = Path { rewrite: Rewrite::Nothing, loss: 0.0, reordered: 0.0, answers_wait: false, seed: 1 };
    let (address, _) = relay::start(server, path);
    let controller = ControllerConfig::new(controller, &[]).unwrap();
    let settings = ControlSettings::new(controller, PacketSender::Stack, adapter::Path::Own).unwrap();
    let builder = EndpointBuilder::new(settings);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut endpoint = builder.endpoint(socket, None).unwrap();
    let crypto = support::client_crypto(&identity);
    endpoint.set_default_client_config(builder.client(crypto, quinn::TransportConfig::default()));
    let connection = endpoint.connect(address, "localhost").unwrap().await.unwrap();
    let (mut stream, mut answer) = connection.open_bi().await.unwrap();
    stream.write_all(&vec![0x5a; BYTES]).await.unwrap();
    stream.finish().unwrap();
    let answer = answer.read_to_end(100).await.unwrap();
    assert_eq!(String::from_utf8(answer).unwrap(), BYTES.to_string());
    let stats = connection.stats();
    connection.close(0u32.into(), b"");
    let packets_per_ack = stats.path.sent_packets as f64 / stats.frame_rx.acks as f64;
    Transfer { asked: stats.frame_tx.ack_frequency, packets_per_ack }
}

fn run(receiver: Receiver, controller: &str) -> Transfer {
    support::under_a_still_clock(transfer(receiver, controller))
}

#[test]
fn a_peer_with_the_extension_acknowledges_less_often_where_that_suits_the_controller() {
    let cubic = run(Receiver::Quinn, "cubic");
    assert!(cubic.asked >= 1 && cubic.packets_per_ack > 6.0, "{}", cubic.packets_per_ack);
}

#[test]
fn a_peer_with_the_extension_is_asked_for_acks_in_small_steps_where_marks_count() {
    assert!(run(Receiver::Quinn, "abc").asked >= 1);
}

#[test]
fn a_peer_is_asked_for_nothing_where_each_ack_is_a_sample() {
    assert_eq!(run(Receiver::Quinn, "copa").asked, 0);
}

#[cfg(feature = "s2n")]
#[test]
fn a_peer_without_the_extension_is_not_asked_and_takes_all_bytes() {
    for controller in ["cubic", "abc"] {
        assert_eq!(run(Receiver::S2n, controller).asked, 0, "{controller}");
    }
}
