//! A run that is looked into: flows, links and single packets.

use std::collections::HashMap;

use brakelight::core::packet::{Direction, PacketId};
use brakelight::core::time::{Duration, Time};
use brakelight::core::units::{Bytes, Rate};
use brakelight::scenario::cost::Cost;
use brakelight::scenario::outcome::MarkCounts;
use brakelight::scenario::scenario::{FlowSpec, Scenario};
use brakelight::sim::{FlowPhase, FlowView, LinkView, Simulation, Traces};
use serde_json::{Map, Value, json};

use crate::setup::check_cost;
use crate::traces::Shelf;

/// The most packets that a frame shows.
const MOST_PACKETS: usize = 1_500;
/// How finely a packet's arrival at an element is known.
const GRAIN: Duration = Duration::from_millis(1);
/// The most looks between two frames.
const MOST_LOOKS: u64 = 64;

/// An open run.
#[derive(Debug)]
pub struct Watch {
    scenario: Scenario,
    traces: Traces,
    simulation: Simulation,
    /// Where each packet is, and since when.
    places: HashMap<PacketId, (usize, Time)>,
}

impl Watch {
    /// Opens a run of `scenario` at its beginning.
    pub fn open(scenario: Scenario, shelf: &Shelf) -> Result<Self, String> {
        let traces = shelf.traces(&scenario)?;
        check_cost(&scenario, &Cost::of(&scenario, &traces))?;
        let simulation = Simulation::new(&scenario, &traces).map_err(|error| error.to_string())?;
        Ok(Watch { scenario, traces, simulation, places: HashMap::new() })
    }

    /// Returns what does not change: the length, the links, and of every flow its propagation delays.
    pub fn describe(&self) -> Value {
        let flow = |flow: &FlowSpec, index| {
            json!({
                "name": flow.name_of(index),
                "controller": flow.controller.words().to_string(),
                "forward_ms": flow.propagation(index, Direction::Forward).as_millis_f64(),
                "reverse_ms": flow.propagation(index, Direction::Reverse).as_millis_f64(),
                "mss": flow.mss.0,
            })
        };
        let flows: Vec<Value> = self
            .scenario
            .flows
            .iter()
            .flat_map(|spec| (0..spec.count).map(move |index| flow(spec, index)))
            .collect();
        let link = |link: &brakelight::scenario::scenario::LinkSpec| json!({ "name": link.name, "queue": link.queue.words().to_string(), "buffer": link.buffer.to_string() });
        json!({
            "name": self.scenario.name,
            "end_s": self.simulation.end().as_secs_f64(),
            "flows": flows,
            "links": self.scenario.links.iter().map(link).collect::<Vec<_>>(),
        })
    }

    /// Advances to `until`, at most to the end, and returns what the run looks like then. A time of the past
    /// begins it anew.
    pub fn frame(&mut self, until: Time) -> Result<Value, String> {
        let until = until.min(self.simulation.end());
        if until < self.simulation.now() {
            self.simulation =
                Simulation::new(&self.scenario, &self.traces).map_err(|error| error.to_string())?;
            self.places.clear();
        }
        // Only what is on its way at the end is shown: looks begin one round trip before it.
        let longest =
            self.scenario.flows.iter().map(|flow| flow.rtt_of(flow.count)).max().unwrap_or_default();
        let from = until.saturating_sub(longest);
        if from > self.simulation.now() {
            self.simulation.advance(from);
            self.look();
        }
        let left = until.since(self.simulation.now());
        let grain = GRAIN.max(left / MOST_LOOKS);
        while self.simulation.now() < until {
            let next = (self.simulation.now() + grain).min(until);
            self.simulation.advance(next);
            self.look();
        }
        Ok(self.picture())
    }

    /// Notes which packets came to another element.
    fn look(&mut self) {
        let now = self.simulation.now();
        let before = std::mem::take(&mut self.places);
        let places = &mut self.places;
        self.simulation.for_each_packet(&mut |packet| {
            let since = match before.get(&packet.id) {
                Some(&(element, since)) if element == packet.element => since,
                _ => now,
            };
            places.insert(packet.id, (packet.element, since));
        });
    }

    fn picture(&self) -> Value {
        let links = self.simulation.link_count();
        let mut packets = Vec::new();
        self.simulation.for_each_packet(&mut |packet| {
            let since = self.places.get(&packet.id).map_or(self.simulation.now(), |&(_, since)| since);
            packets.push((
                packet.id,
                json!([
                    packet.flow,
                    if packet.element < links { packet.element as i64 } else { -1 },
                    u8::from(packet.direction == Direction::Reverse),
                    packet.mark as u8,
                    since.as_secs_f64(),
                    packet.number,
                    packet.sent_at.as_secs_f64(),
                    packet.id.0,
                ]),
            ));
        });
        packets.sort_unstable_by_key(|&(id, _)| id);
        let all = packets.len();
        let packets: Vec<Value> = packets.into_iter().take(MOST_PACKETS).map(|(_, packet)| packet).collect();
        json!({
            "now_s": self.simulation.now().as_secs_f64(),
            "flows": self.simulation.flows().map(|view| flow(&view)).collect::<Vec<_>>(),
            "links": self.simulation.links().map(|view| link(&view)).collect::<Vec<_>>(),
            "packets": packets,
            "packets_on_their_way": all,
        })
    }
}

fn values(state: &[(&'static str, f64)]) -> Value {
    Value::Object(state.iter().map(|&(name, value)| (name.to_string(), json!(value))).collect::<Map<_, _>>())
}

fn marks(marks: MarkCounts) -> Value {
    json!({ "accelerate": marks.accelerate, "brake": marks.brake, "ce": marks.ce })
}

fn flow(view: &FlowView) -> Value {
    let sender = &view.sender;
    json!({
        "name": view.name,
        "phase": match view.phase {
            FlowPhase::Waiting => "waiting",
            FlowPhase::Stopped => "stopped",
            _ => "running",
        },
        "cwnd_bytes": sender.cwnd.0,
        "inflight_bytes": sender.inflight.0,
        "pacing_mbps": sender.pacing_rate.map(Rate::as_mbps_f64),
        "srtt_ms": sender.rtt.map(|rtt| rtt.smoothed.as_millis_f64()),
        "min_rtt_ms": sender.rtt.map(|rtt| rtt.min.as_millis_f64()),
        "sent": sender.sent_packets,
        "delivered": sender.delivered_packets,
        "lost": sender.lost_packets,
        "marks": marks(sender.marks),
        "state": values(&view.state),
    })
}

fn link(view: &LinkView) -> Value {
    let Bytes(queue_bytes) = view.queue_bytes;
    json!({
        "name": view.name,
        "queue_packets": view.queue_packets,
        "queue_bytes": queue_bytes,
        "sojourn_ms": view.sojourn.map(Duration::as_millis_f64),
        "capacity_mbps": view.capacity.as_mbps_f64(),
        "delivered": view.delivered_packets,
        "dropped": view.dropped_packets,
        "marks": marks(view.marks),
        "state": values(&view.state),
    })
}
