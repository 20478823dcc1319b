//! Writing a scenario as the file that [`read`](fn@super::read) turns back into it. Every field is written,
//! so defaults that change later do not change what the file means; the same scenario gives the same bytes.

use brakelight_core::units::Bytes;
use brakelight_links::elements::ElementConfig;
use serde::{Serialize, Serializer};

use super::tables::{ClockTable, FlowTable, LinkTable, RecordTable, RestartTable, ScenarioTable};
use super::traffic::TrafficEntry;
use super::values::{Algorithm, List, Name, Quantity, Station, Step, Text, TraceName};
use crate::clock::Clock;
use crate::scenario::{FlowSpec, Hop, LinkSpec, Record, Reordering, Restart, Scenario, Service};
use crate::scheme_string::{ByName, SchemeString, Words};
use crate::traffic::Traffic;

/// Returns the TOML text of `scenario`.
pub fn write(scenario: &Scenario) -> String {
    toml::to_string(scenario).expect("a scenario's keys are strings and its numbers are TOML's")
}

/// By the words of scenario files: any format of serde's has the same structure.
impl Serialize for Scenario {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ScenarioTable::from(self).serialize(serializer)
    }
}

/// The tables of what decides a run of `scenario`: nothing is left out, and algorithms are spelled by their
/// [canonical](SchemeString::canonical) words. Its name decides nothing, nor does what else is kept of the
/// run.
pub(crate) fn canonical_table(scenario: &Scenario) -> ScenarioTable {
    let mut table = ScenarioTable::from(scenario);
    table.name = None;
    let Record { unfairness, state, flow_delays, .. } = scenario.record;
    let decides = RecordTable {
        state: Some(state),
        flow_delays: flow_delays.then_some(true),
        unfairness: unfairness.map(Quantity),
        ..RecordTable::default()
    };
    table.record = Some(decides);
    for (spec, link) in scenario.links.iter().zip(table.link.iter_mut().flat_map(|list| &mut list.0)) {
        link.queue = Some(Text(Algorithm::new(spec.queue.canonical())));
        if let Service::Radio(radio) = &spec.service {
            link.radio = Some(Text(Algorithm::new(radio.canonical())));
        }
    }
    for (spec, flow) in scenario.flows.iter().zip(table.flow.iter_mut().flat_map(|list| &mut list.0)) {
        flow.controller = Some(Text(Algorithm::new(spec.controller.canonical())));
        flow.feedback = Some(Text(Algorithm::new(spec.feedback.canonical())));
        if let Traffic::Custom(custom) = &spec.traffic {
            flow.traffic =
                Some(TrafficEntry::Custom(Words::canonical(custom.name(), custom.settings()).to_string()));
        }
        flow.pacing_burst = Some(spec.pacing_burst);
        flow.rtt_step = Some(Quantity(spec.rtt_step));
        flow.receiver_clock = Some(ClockTable::from(&spec.receiver_clock));
        flow.path = Some(stations(&spec.path, SchemeString::canonical));
        flow.reverse = Some(stations(&spec.reverse, SchemeString::canonical));
    }
    table
}

fn text(name: &str) -> Text<Name> {
    Text(Name(name.to_string()))
}

fn in_words<C: ByName>(given: &SchemeString<C>) -> Text<Algorithm<C>> {
    Text(Algorithm::new(given.words().clone()))
}

impl From<&Scenario> for ScenarioTable {
    fn from(scenario: &Scenario) -> Self {
        ScenarioTable {
            name: Some(text(&scenario.name)),
            seed: Some(scenario.seed),
            duration: Some(Quantity(scenario.duration)),
            measure_from: Some(Quantity(scenario.measure_from)),
            trace_offset: Some(Text(scenario.trace_offset)),
            record: Some(RecordTable::from(&scenario.record)),
            link: Some(List(scenario.links.iter().map(LinkTable::from).collect())),
            flow: Some(List(scenario.flows.iter().map(FlowTable::from).collect())),
        }
    }
}

impl From<&Record> for RecordTable {
    fn from(record: &Record) -> Self {
        RecordTable {
            series: Some(record.series),
            bin: Some(Quantity(record.bin)),
            link_logs: Some(record.link_logs),
            state: Some(record.state),
            flow_delays: record.flow_delays.then_some(true),
            second_half: record.second_half.then_some(true),
            unfairness: record.unfairness.map(Quantity),
        }
    }
}

impl From<&LinkSpec> for LinkTable {
    fn from(link: &LinkSpec) -> Self {
        let mut table = LinkTable {
            name: Some(text(&link.name)),
            buffer: Some(Quantity(link.buffer)),
            queue: Some(in_words(&link.queue)),
            opportunity: Some(Quantity(link.opportunity)),
            overhead: Some(Quantity(link.overhead)),
            spread: link.spread.then_some(true),
            restarts: (!link.restarts.is_empty())
                .then(|| List(link.restarts.iter().map(RestartTable::from).collect())),
            burst: (link.burst != Bytes::ZERO).then_some(Quantity(link.burst)),
            delay: (!link.delay.is_zero()).then_some(Quantity(link.delay)),
            ..LinkTable::default()
        };
        match &link.service {
            Service::Trace(trace) => table.trace = Some(Text(TraceName(trace.clone()))),
            Service::Fixed(rate) => table.rate = Some(Quantity(*rate)),
            Service::Steps(schedule) => {
                let step = |&(time, rate): &_| Step(Quantity(time), Quantity(rate));
                table.steps = Some(List(schedule.steps.iter().map(step).collect()));
                table.repeat = Some(schedule.repeat);
            }
            Service::Radio(radio) => table.radio = Some(in_words(radio)),
        }
        table
    }
}

impl From<&Restart> for RestartTable {
    fn from(restart: &Restart) -> Self {
        RestartTable {
            at: Some(Quantity(restart.at)),
            down: Some(Quantity(restart.down)),
            waiting: Some(Text(restart.waiting)),
        }
    }
}

impl From<&FlowSpec> for FlowTable {
    fn from(flow: &FlowSpec) -> Self {
        FlowTable {
            name: Some(text(&flow.name)),
            count: Some(flow.count),
            controller: Some(in_words(&flow.controller)),
            feedback: Some(in_words(&flow.feedback)),
            host: Some(Text(flow.host)),
            ack_every: Some(flow.ack_every),
            ack_delay: flow.ack_delay.map(Quantity),
            mss: Some(Quantity(flow.mss)),
            overhead: Some(Quantity(flow.overhead)),
            initial_window: Some(flow.initial_window),
            pacing_burst: (flow.pacing_burst != FlowSpec::PACING_BURST).then_some(flow.pacing_burst),
            reordering: (flow.reordering != Reordering::Fixed).then_some(Text(flow.reordering)),
            undo: (!flow.undo).then_some(false),
            read_batch: (flow.read_batch != 1).then_some(flow.read_batch),
            traffic: Some(TrafficEntry::from(&flow.traffic)),
            start: Some(Quantity(flow.start)),
            start_within: Some(Quantity(flow.start_within)),
            stop: flow.stop.map(Quantity),
            rtt: Some(Quantity(flow.rtt)),
            rtt_step: (!flow.rtt_step.is_zero()).then_some(Quantity(flow.rtt_step)),
            path: Some(stations(&flow.path, |element| element.words().clone())),
            reverse: Some(stations(&flow.reverse, |element| element.words().clone())),
            jitter: Some(Quantity(flow.jitter)),
            receiver_clock: (flow.receiver_clock != Clock::default())
                .then(|| ClockTable::from(&flow.receiver_clock)),
        }
    }
}

fn stations(hops: &[Hop], spell: impl Fn(&SchemeString<ElementConfig>) -> Words) -> List<Text<Station>> {
    let words = |hop: &Hop| match hop {
        Hop::Link(name) => Words { name: name.clone(), options: Vec::new() },
        Hop::Element(element) => spell(element),
    };
    List(hops.iter().map(|hop| Text(Station(words(hop)))).collect())
}

impl From<&Clock> for ClockTable {
    fn from(clock: &Clock) -> Self {
        ClockTable {
            offset: Some(Quantity(clock.offset)),
            skew_ppm: Some(clock.skew_ppm),
            step_at: clock.step_at.map(Quantity),
            step_ms: Some(clock.step_ms),
        }
    }
}
