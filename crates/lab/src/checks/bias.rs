//! What the RTT does not show: the delay of data that had to be sent twice (quicdc 5.1.1).

use std::collections::BTreeMap;

use brakelight_core::packet::Direction;
use brakelight_core::time::{Duration, Time};
use brakelight_scenario::experiment::Finding;
use brakelight_scenario::file::read;
use brakelight_sim::engine::{Engine, Observer, Routed};
use brakelight_sim::host::FlowHost;
use brakelight_sim::network::{Network, Traces};
use brakelight_sim::packet::{Kind, SimPacket};
use brakelight_sim::simulation::flow_config;

use super::finding;

/// The lab of the paper with so much random loss; one connection that never stops. An ACK for every packet,
/// at once: a sample of each packet that arrives, with nothing else in it.
const LAB: &str = r#"
duration = "60s"
[[link]]
name = "server"
rate = "10Mbps"
buffer = "125kB"
[[flow]]
name = "main"
controller = "newreno"
host = "quic"
mss = "1215B"
overhead = "79B"
rtt = "50ms"
ack_every = 1
jitter = "0s"
path = ["server", "loss:rate={loss}"]
"#;

/// When each segment of the stream left first, until it arrives, and what data and samples of the RTT took.
#[derive(Default)]
struct Watch {
    left: BTreeMap<u32, Time>,
    segments: u32,
    delay_s: f64,
    delivered: u64,
    samples_s: f64,
    samples: u64,
}

/// The segment of the stream that `packet` carries.
fn segment(packet: &SimPacket) -> Option<u32> {
    match packet.kind() {
        Kind::Data { segment, .. } if packet.direction() == Direction::Forward => Some(segment),
        _ => None,
    }
}

impl Observer<SimPacket, FlowHost> for Watch {
    fn entered(&mut self, element: usize, _now: Time, packet: &SimPacket) {
        // The link comes first; segments leave in order the first time.
        if let (0, Some(segment)) = (element, segment(packet))
            && segment >= self.segments
        {
            self.segments = segment + 1;
            self.left.insert(segment, packet.sent_at);
        }
    }

    fn delivered(&mut self, now: Time, packet: &SimPacket) {
        if let Some(left) = segment(packet).and_then(|segment| self.left.remove(&segment)) {
            self.delay_s += now.since(left).as_secs_f64();
            self.delivered += 1;
        }
    }

    fn accepted(&mut self, _now: Time, _endpoint: usize, taker: &mut FlowHost) {
        if let Some(sample) = taker.take_rtt_sample() {
            self.samples_s += sample.as_secs_f64();
            self.samples += 1;
        }
    }
}

/// By how many milliseconds the mean RTT is below what data took there and an ACK back.
fn bias_ms(loss: &str) -> f64 {
    let scenario = read("lab.toml", &LAB.replace("{loss}", loss)).expect("a valid scenario");
    let network: Network<SimPacket> = Network::build(&scenario, &Traces::new()).expect("links only");
    let host = FlowHost::new(flow_config(&scenario, &scenario.flows[0], 0, "main", Time::ZERO));
    let mut engine = Engine::new(network.elements, vec![host], network.routes, Watch::default());
    engine.run_until(Time::ZERO + scenario.duration);
    let watch = engine.observer();
    let back_s = (Duration::from_millis(25)).as_secs_f64();
    let took_s = watch.delay_s / watch.delivered as f64 + back_s;
    1e3 * (took_s - watch.samples_s / watch.samples as f64)
}

/// Q-RTTBIAS: the more is lost, the further the mean RTT lies below what data took.
pub(super) fn rtt_bias() -> Finding {
    let biases: Vec<f64> = ["0.001", "0.005", "0.02"].into_iter().map(bias_ms).collect();
    let holds = biases[0] > 0.0 && biases.windows(2).all(|pair| pair[0] < pair[1]);
    let shown: Vec<String> = biases.iter().map(|bias| format!("{bias:.2}")).collect();
    finding(holds, format!("{} ms at 0.1, 0.5 and 2 % of loss", shown.join(", ")))
}
