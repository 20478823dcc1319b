//! What a scenario costs to simulate, estimated before it runs: a mistyped unit should be an error message
//! and not a day of waiting or a full memory.
//!
//! The estimate is an upper bound for what flows offer to links, from rates and traces alone: controllers
//! send less.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use brakelight_apps::audio;
use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Rate};
use brakelight_links::elements::RadioConfig;
use brakelight_links::trace::Trace;

use crate::scenario::{FlowSpec, Hop, LinkSpec, Scenario, Service};
use crate::traffic::{Offer, Phase, Traffic};

/// Packets that pass links in a second of a slow machine, each with its share of ACKs and statistics.
const STEPS_PER_SECOND: f64 = 1e6;
/// Memory of one flow: its host, its rings, its controller, its histograms (`docs/speed.md`, F10000).
const FLOW: Bytes = Bytes(40_000);
/// Memory of one link: its queue, its histograms.
const LINK: Bytes = Bytes(60_000);
/// Memory of one flow or link in one bin of the time series.
const BIN: Bytes = Bytes(80);
/// Memory of one event of a link's log.
const EVENT: Bytes = Bytes(24);
/// What a radio that does not say how fast it can be is taken to carry: more than Wi-Fi and LTE do.
const RADIO: Rate = Rate::from_mbps(1_000);

/// The most that runs without being asked for twice: about an hour, and what a small machine has.
const MOST_STEPS: f64 = 4e9;
const MOST_MEMORY: Bytes = Bytes(4_000_000_000);

/// An estimate of the cost of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Packets that pass links, and timers of applications.
    pub steps: f64,
    /// Bytes of memory.
    pub memory: f64,
}

impl Cost {
    /// Of one run of `scenario`. A trace that is not in `traces` counts as nothing.
    pub fn of(scenario: &Scenario, traces: &BTreeMap<String, Trace>) -> Self {
        let seconds = scenario.duration.as_secs_f64();
        let places: HashMap<&str, usize> =
            scenario.links.iter().enumerate().map(|(place, link)| (link.name.as_str(), place)).collect();
        let rates: Vec<f64> =
            scenario.links.iter().map(|link| bps(link, scenario.duration, traces)).collect();
        // What is offered to each link, in bits and packets.
        let mut offered = vec![(0.0, 0.0); rates.len()];
        let mut timers = 0.0;
        for flow in &scenario.flows {
            let own: Vec<usize> = flow.path.iter().filter_map(|hop| place(hop, &places)).collect();
            let narrowest = own.iter().map(|&link| rates[link]).fold(f64::INFINITY, f64::min);
            let count = f64::from(flow.count);
            let bits = count * payload(flow, seconds).min(narrowest * seconds);
            for link in own {
                offered[link].0 += bits;
                offered[link].1 += bits / (flow.mss + flow.overhead).bits() as f64;
            }
            timers += count * events(&flow.traffic) * seconds;
        }
        let packets = offered.iter().zip(&rates).map(|(&(bits, packets), rate)| {
            if bits > 0.0 { packets * (rate * seconds / bits).min(1.0) } else { 0.0 }
        });
        let packets: f64 = packets.sum();
        let (flows, links) = (scenario.flow_count() as f64, scenario.links.len() as f64);
        let mut memory = flows * FLOW.as_f64() + links * LINK.as_f64();
        if scenario.record.series {
            let bins = seconds / scenario.record.bin.as_secs_f64();
            memory += (flows + links) * bins * BIN.as_f64();
        }
        if scenario.record.link_logs {
            memory += 2.0 * packets * EVENT.as_f64();
        }
        Cost { steps: packets + timers + flows + links, memory }
    }

    /// Returns whether so much should be asked for twice.
    pub fn is_excessive(&self) -> bool {
        self.steps > MOST_STEPS || self.memory > MOST_MEMORY.as_f64()
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hours = self.steps / STEPS_PER_SECOND / 3600.0;
        let (time, unit) = if hours < 1.0 { (hours * 60.0, "minutes") } else { (hours, "hours") };
        let memory = self.memory / 1e9;
        write!(f, "{:.2e} packets and timers, {time:.1} {unit}, {memory:.1} GB of memory", self.steps)
    }
}

fn place(hop: &Hop, places: &HashMap<&str, usize>) -> Option<usize> {
    match hop {
        Hop::Link(name) => places.get(name.as_str()).copied(),
        Hop::Element(_) => None,
    }
}

/// The link's mean rate in bits per second; none where neither the scenario nor `traces` says it.
pub(crate) fn known_bps(
    link: &LinkSpec,
    duration: Duration,
    traces: &BTreeMap<String, Trace>,
) -> Option<f64> {
    let known = match &link.service {
        Service::Trace(name) => traces.contains_key(name),
        Service::Radio(radio) => matches!(radio.config(), RadioConfig::Nr(_)),
        Service::Fixed(_) | Service::Steps(_) => true,
    };
    known.then(|| bps(link, duration, traces))
}

/// The link's mean rate in bits per second.
fn bps(link: &LinkSpec, duration: Duration, traces: &BTreeMap<String, Trace>) -> f64 {
    let rate = match &link.service {
        Service::Trace(name) => {
            traces.get(name).map_or(Rate::ZERO, |trace| trace.mean_rate(link.opportunity))
        }
        Service::Fixed(rate) => *rate,
        Service::Radio(radio) => match radio.config() {
            RadioConfig::Nr(config) => config.peak(),
            _ => RADIO,
        },
        Service::Steps(steps) => {
            let all: f64 = steps.steps.iter().map(|(time, _)| time.as_secs_f64()).sum();
            let bits: f64 =
                steps.steps.iter().map(|(time, rate)| time.as_secs_f64() * rate.as_bps_f64()).sum();
            // What does not repeat goes on at the last rate.
            let run = duration.as_secs_f64();
            let last = steps.steps.last().map_or(0.0, |(_, rate)| rate.as_bps_f64());
            return match steps.repeat {
                true => bits / all,
                false => (bits + last * (run - all).max(0.0)) / run,
            };
        }
    };
    rate.as_bps_f64()
}

/// Bits that one flow's application offers in so many seconds; infinite where it always has more.
pub(crate) fn payload(flow: &FlowSpec, seconds: f64) -> f64 {
    let second = match &flow.traffic {
        Traffic::Backlogged | Traffic::RequestResponse(_) | Traffic::Video(_) => f64::INFINITY,
        Traffic::Size(size) => return size.bits() as f64,
        Traffic::OnOff(on_off) => {
            let share = on_off.on.as_secs_f64() / (on_off.on + on_off.off).as_secs_f64();
            on_off.rate.map_or(f64::INFINITY, |rate| rate.as_bps_f64() * share)
        }
        Traffic::ShortFlows(short) => short.per_second() * 8.0 * short.size.mean().as_f64(),
        Traffic::RateLimited(rate) => rate.as_bps_f64(),
        Traffic::Phases(phases) => {
            let bits = |phase: &Phase| match phase.offer {
                Offer::Idle => 0.0,
                Offer::Rate(rate) => rate.as_bps_f64() * phase.length.as_secs_f64(),
                Offer::Backlogged => f64::INFINITY,
            };
            return phases.iter().map(bits).sum();
        }
        Traffic::Game(game) => game.size.bits() as f64 / game.interval.as_secs_f64(),
        Traffic::Call(call) => {
            let audio = if call.audio { audio::PER_SECOND * 8.0 * audio::MESSAGE.as_f64() } else { 0.0 };
            call.max_rate.as_bps_f64() + audio
        }
        Traffic::Custom(custom) => custom.offers().map_or(f64::INFINITY, |rate| rate.as_bps_f64()),
    };
    second * seconds
}

/// Timers of one flow's application in a second.
fn events(traffic: &Traffic) -> f64 {
    match traffic {
        Traffic::OnOff(on_off) => 2.0 / (on_off.on + on_off.off).as_secs_f64(),
        Traffic::ShortFlows(short) => short.per_second(),
        Traffic::Game(game) => 1.0 / game.interval.as_secs_f64(),
        Traffic::Call(call) => f64::from(call.fps) + if call.audio { audio::PER_SECOND } else { 0.0 },
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMBBELL: &str = "duration = \"60s\"\n[[link]]\nname = \"up\"\nrate = \"12Mbps\"\n\
        [[flow]]\nname = \"a\"\ncontroller = \"cubic\"\ncount = 4\npath = [\"up\"]\n";

    fn cost(change: (&str, &str)) -> Cost {
        let text = DUMBBELL.replace(change.0, change.1);
        Cost::of(&crate::file::read("test.toml", &text).unwrap(), &BTreeMap::new())
    }

    #[test]
    fn packets_are_those_that_the_link_can_carry() {
        // 12 Mbit/s are 1,000 packets of 1500 bytes a second, whoever sends them.
        let all = cost(("", ""));
        assert_eq!(all.steps.round(), 60_000.0 + 4.0 + 1.0);
        assert!(!all.is_excessive(), "{all}");
        let limited =
            cost(("count = 4", "count = 2\ntraffic = { kind = \"rate-limited\", rate = \"1.2Mbps\" }"));
        assert_eq!(limited.steps.round(), 12_000.0 + 2.0 + 1.0);
        let steps = cost((
            "rate = \"12Mbps\"",
            "steps = [[\"30s\", \"24Mbps\"], [\"1s\", \"0bps\"]]\nrepeat = false",
        ));
        assert_eq!(steps.steps.round(), 60_000.0 + 4.0 + 1.0);
    }

    #[test]
    fn what_takes_hours_or_fills_the_memory_is_excessive() {
        assert!(cost(("12Mbps", "10000Gbps")).is_excessive());
        assert!(cost(("count = 4", "count = 1000000")).is_excessive());
        let on_off = "count = 4\ntraffic = { kind = \"on-off\", on = \"1ns\", off = \"1ns\" }";
        assert!(cost(("count = 4", on_off)).is_excessive());
        assert!(!cost(("12Mbps", "10Gbps")).is_excessive());
        // 8 layers of 100 MHz: 4.67 Gbit/s, 389,000 packets a second.
        let radio = cost(("rate = \"12Mbps\"", "radio = \"nr:pattern=fdd,layers=8\""));
        assert!((radio.steps / 60.0 - 389_000.0).abs() < 1_000.0, "{radio}");
        let shown = cost(("count = 4", "count = 1000000")).to_string();
        assert_eq!(shown, "1.06e6 packets and timers, 0.0 minutes, 40.0 GB of memory");
    }
}
