//! Paths that spoil the marks, over sockets: ABC must get everything across all the same, by the fallback
//! that is documented for each (`docs/quic-deployment.md`).

use std::net::Ipv4Addr;
use std::sync::Arc;

use brakelight_quic::adapter::{self, ControlSettings, Counters, Factory, PacketSender};
use brakelight_quic::builder::adapter_of;
use brakelight_quic::validation::{Fault, State};
use brakelight_registry::ControllerConfig;

mod support;

use support::relay::{self, Path, Rewrite};
use support::{Identity, Receiver};

const BYTES: usize = 1_000_000;

/// Sends [`BYTES`] with ABC over a lossy path that does `rewrite`; gives what the controller was told, and
/// where ECN stands.
fn abc_over(rewrite: Rewrite) -> (Counters, State) {
    sent_over(Path { rewrite, loss: 0.01, reordered: 0.01, answers_wait: false, seed: 1 }, "10")
}

fn sent_over(path: Path, initial_window: &str) -> (Counters, State) {
    support::under_a_still_clock(async {
        let identity = Identity::new();
        let server = support::receive(Receiver::Quinn, &identity);
        let (address, _) = relay::start(server, path);
        assert_eq!(address.ip(), Ipv4Addr::LOCALHOST);
        let abc = ControllerConfig::new("abc", &[("initial_window", initial_window)]).unwrap();
        let factory =
            Factory::new(ControlSettings::new(abc, PacketSender::Stack, adapter::Path::Own).unwrap());
        let mut transport = quinn::TransportConfig::default();
        transport.congestion_controller_factory(factory.clone());
        let endpoint = support::sender(&identity, transport, Arc::clone(&factory).open());
        let connection = endpoint.connect(address, "localhost").unwrap().await.unwrap();
        let (mut stream, mut answer) = connection.open_bi().await.unwrap();
        stream.write_all(&vec![0x5a; BYTES]).await.unwrap();
        stream.finish().unwrap();
        let answer = answer.read_to_end(100).await.unwrap();
        assert_eq!(String::from_utf8(answer).unwrap(), BYTES.to_string());
        let adapter = adapter_of(&connection).expect("the controller is ours");
        let found = (adapter.counters(), adapter.validation());
        connection.close(0u32.into(), b"");
        endpoint.wait_idle().await;
        found
    })
}

#[test]
fn a_path_that_clears_ecn_is_found_out_and_marked_on_no_more() {
    let (counters, state) = abc_over(Rewrite::Bleach);
    assert!(matches!(state, State::Failed(_)), "{state:?}");
    assert_eq!((counters.accelerate_packets, counters.brake_packets, counters.ce_packets), (0, 0, 0));
    // The first ten, and what was on its way before the first ACK.
    assert!(counters.marked_packets <= 12, "{counters:?}");
}

#[test]
fn a_path_that_makes_every_accelerate_a_brake_does_not_stop_the_flow() {
    let (counters, _) = abc_over(Rewrite::Ect1ToEct0);
    assert_eq!((counters.accelerate_packets, counters.ce_packets), (0, 0));
    assert!(counters.brake_packets > 64, "the controller's own doubt begins after 64: {counters:?}");
}

#[test]
fn a_path_that_marks_everything_congested_does_not_stop_the_flow() {
    let (counters, _) = abc_over(Rewrite::AllCe);
    assert_eq!((counters.accelerate_packets, counters.brake_packets), (0, 0));
    assert!(counters.ce_packets > 100, "{counters:?}");
}

#[test]
fn marks_on_more_packets_than_were_sent_with_ecn_are_believed_no_more() {
    // Only the packets between the first ten and the first ACK leave unmarked: a window of several times ten
    // that leaves before the first ACK, and no loss that could hide the excess.
    let path = Path { rewrite: Rewrite::ForgedCe, loss: 0.0, reordered: 0.0, answers_wait: true, seed: 1 };
    let (counters, state) = sent_over(path, "40");
    assert_eq!(state, State::Failed(Fault::TooMany), "{counters:?}");
}

#[test]
fn a_path_that_does_nothing_leaves_every_accelerate() {
    let (counters, state) = abc_over(Rewrite::Nothing);
    assert_eq!((counters.brake_packets, counters.ce_packets, state), (0, 0, State::Capable));
    assert!(counters.accelerate_packets > 600, "{counters:?}");
}
