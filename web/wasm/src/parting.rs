//! Where two schemes first do something different: the first packet that one of them sends at another time.

use brakelight::core::time::Time;
use brakelight::scenario::cost::Cost;
use brakelight::scenario::scenario::Scenario;
use brakelight::sim::Simulation;
use serde_json::{Value, json};

use crate::setup::check_cost;
use crate::traces::Shelf;

/// The most packets that are compared.
const MOST_PACKETS: u64 = 200_000;

/// Returns the first packet of the first flow that the two do not send at the same time: its number, counted
/// from 1, and when each sends it. `number` is null if there is none.
pub fn find(one: &Scenario, other: &Scenario, shelf: &Shelf) -> Result<Value, String> {
    let open = |scenario: &Scenario| {
        let traces = shelf.traces(scenario)?;
        check_cost(scenario, &Cost::of(scenario, &traces))?;
        Simulation::new(scenario, &traces).map_err(|error| error.to_string())
    };
    let (mut one, mut other) = (Sends::of(open(one)?), Sends::of(open(other)?));
    for number in 1..=MOST_PACKETS {
        let (first, second) = (one.next(), other.next());
        if first != second {
            let seconds = |time: Option<Time>| time.map(Time::as_secs_f64);
            return Ok(json!({ "number": number, "one_s": seconds(first), "other_s": seconds(second) }));
        }
        if first.is_none() {
            break;
        }
    }
    Ok(json!({ "number": null }))
}

/// When the first flow sends.
struct Sends {
    simulation: Simulation,
    told: u64,
    sent: u64,
}

impl Sends {
    fn of(simulation: Simulation) -> Self {
        Sends { simulation, told: 0, sent: 0 }
    }

    /// Returns when the next packet is sent; `None` if none is by the end.
    fn next(&mut self) -> Option<Time> {
        while self.told == self.sent {
            self.simulation.advance_to_flow(0)?;
            self.sent = self.simulation.flow(0)?.sender.sent_packets;
        }
        self.told += 1;
        Some(self.simulation.now())
    }
}
