//! What happens to ACKs on their way costs little: the newest says what those before it said.

use brakelight_registry::ControllerConfig;
use brakelight_scenario::file::read;
use brakelight_sim::{Traces, run};

/// The goodput of half a minute, after 5 s, on a link of 20 Mbit/s and 50 ms whose ACKs pass `reverse`.
fn goodput_mbps(controller: &str, host: &str, reverse: &str) -> f64 {
    let queue = ControllerConfig::new(controller, &[]).unwrap().needs().queue.unwrap_or("droptail");
    let text = format!(
        "duration = \"30s\"\nmeasure_from = \"5s\"\n[[link]]\nname = \"link\"\nrate = \"20Mbps\"\n\
         buffer = \"250pkt\"\nqueue = \"{queue}\"\n[[flow]]\ncontroller = \"{controller}\"\nhost = \"{host}\"\n\
         path = [\"link\"]\nreverse = [{reverse}]\nrtt = \"50ms\"\n"
    );
    let scenario = read("acks.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let outcome = run(&scenario, &Traces::new()).unwrap();
    outcome.run.flows[0].throughput_mbps
}

/// A burst of ten packets, which a lost ACK lets go, would meet a queue that marks after a millisecond.
#[test]
fn prague_over_quic_fills_a_link_on_which_acks_are_lost() {
    for rate in ["0.01", "0.1", "0.3"] {
        let reverse = format!("\"ack-loss:rate={rate}\"");
        for host in ["tcp", "quic"] {
            let mbps = goodput_mbps("prague", host, &reverse);
            assert!(mbps > 17.5, "{host}, ACK loss of {rate}: {mbps:.2} Mbit/s");
        }
    }
}

/// rfc3449 5.2: an ACK is dropped only where a newer one takes its place.
#[test]
fn thinned_acks_let_flows_fill_the_link() {
    // ABC goes by the mark of each packet, and an ACK of many says less of them.
    for (controller, least) in [("cubic", 18.0), ("newreno", 18.0), ("bbr3", 18.0), ("abc", 10.0)] {
        for host in ["tcp", "quic"] {
            for every in [2, 8, 16] {
                let mbps = goodput_mbps(controller, host, &format!("\"ack-thin:every={every}\""));
                assert!(mbps > least, "{controller} on {host}, every {every}: {mbps:.2} Mbit/s");
            }
        }
    }
}
