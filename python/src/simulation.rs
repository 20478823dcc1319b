//! A run that is stepped.

use std::collections::BTreeMap;

use brakelight::core::controller::RecoveryState;
use brakelight::core::ecn::Mark;
use brakelight::core::packet::Direction;
use brakelight::core::path::elements::Order;
use brakelight::core::time::Time;
use brakelight::core::units::{Bytes, Rate};
use brakelight::lab;
use brakelight::lab::frame::{Column, Values};
use brakelight::lab::jobs::JobOutcome;
use brakelight::lab::run::table;
use brakelight::sim::{self, FlowPhase, PacketView};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{InputError, RunError, failed, input, of_lab};
use crate::frame::Frame;
use crate::quantity::{in_seconds, seconds, since_start, time};
use crate::scenario::Scenario;
use crate::table::Table;
use crate::travel::{Word, given};

given! {
    /// One flow, as it stands at a time. Sizes are payload bytes, rates bit/s, times seconds.
    FlowView {
        name: String,
        controller: Word,
        phase: Word,
        cwnd: u64,
        pacing_rate: Option<f64>,
        inflight: u64,
        rtt_s: Option<f64>,
        srtt_s: Option<f64>,
        min_rtt_s: Option<f64>,
        sent_packets: u64,
        delivered_packets: u64,
        delivered_bytes: u64,
        lost_packets: u64,
        retransmitted_packets: u64,
        accelerate_marks: u64,
        brake_marks: u64,
        ce_marks: u64,
        recovery: Word,
        app_limited: bool,
        goodput_bytes: u64,
        application: BTreeMap<Word, f64>,
        state: BTreeMap<Word, f64>,
    }
}

impl From<sim::FlowView> for FlowView {
    fn from(view: sim::FlowView) -> Self {
        let sender = view.sender;
        let rtt = sender.rtt;
        FlowView {
            name: view.name,
            controller: Word(view.controller),
            phase: Word(match view.phase {
                FlowPhase::Waiting => "waiting",
                FlowPhase::Running => "running",
                _ => "stopped",
            }),
            cwnd: sender.cwnd.0,
            pacing_rate: sender.pacing_rate.map(|rate| rate.bps() as f64),
            inflight: sender.inflight.0,
            rtt_s: rtt.and_then(|rtt| rtt.sample).map(in_seconds),
            srtt_s: rtt.map(|rtt| in_seconds(rtt.smoothed)),
            min_rtt_s: rtt.map(|rtt| in_seconds(rtt.min)),
            sent_packets: sender.sent_packets,
            delivered_packets: sender.delivered_packets,
            delivered_bytes: sender.delivered_bytes.0,
            lost_packets: sender.lost_packets,
            retransmitted_packets: sender.retransmitted_packets,
            accelerate_marks: sender.marks.accelerate,
            brake_marks: sender.marks.brake,
            ce_marks: sender.marks.ce,
            recovery: Word(match sender.recovery {
                RecoveryState::Open => "open",
                RecoveryState::Recovery => "recovery",
                RecoveryState::Loss => "loss",
            }),
            app_limited: sender.app_limited,
            goodput_bytes: view.goodput.0,
            application: words(view.application),
            state: words(view.state),
        }
    }
}

impl FlowView {
    fn show(&self, _: Python<'_>) -> PyResult<String> {
        let Self { name, controller: Word(controller), phase: Word(phase), cwnd, inflight, .. } = self;
        Ok(format!("FlowView({name:?}, {controller}, {phase}, cwnd={cwnd}, inflight={inflight})"))
    }
}

/// Values by the names that an algorithm has for them.
fn words(values: impl IntoIterator<Item = (&'static str, f64)>) -> BTreeMap<Word, f64> {
    values.into_iter().map(|(name, value)| (Word(name), value)).collect()
}

given! {
    /// One link, as it stands at a time. Sizes are bytes at the IP layer, rates bit/s, times seconds.
    LinkView {
        name: String,
        queue: Word,
        queue_packets: u32,
        queue_bytes: u64,
        sojourn_s: Option<f64>,
        capacity: f64,
        delivered_packets: u64,
        delivered_bytes: u64,
        dropped_packets: u64,
        accelerate_marks: u64,
        brake_marks: u64,
        ce_marks: u64,
        state: BTreeMap<Word, f64>,
    }
}

impl From<sim::LinkView> for LinkView {
    fn from(view: sim::LinkView) -> Self {
        LinkView {
            name: view.name,
            queue: Word(view.queue),
            queue_packets: view.queue_packets,
            queue_bytes: view.queue_bytes.0,
            sojourn_s: view.sojourn.map(in_seconds),
            capacity: view.capacity.bps() as f64,
            delivered_packets: view.delivered_packets,
            delivered_bytes: view.delivered_bytes.0,
            dropped_packets: view.dropped_packets,
            accelerate_marks: view.marks.accelerate,
            brake_marks: view.marks.brake,
            ce_marks: view.marks.ce,
            state: words(view.state),
        }
    }
}

impl LinkView {
    fn show(&self, _: Python<'_>) -> PyResult<String> {
        let Self { name, queue: Word(queue), queue_packets, capacity, .. } = self;
        Ok(format!("LinkView({name:?}, {queue}, queue_packets={queue_packets}, capacity={capacity:.0})"))
    }
}

/// The number or the name of a flow or a link.
pub enum Which {
    /// Counted from 0, or below 0 from the last.
    Number(i64),
    /// As the scenario has it.
    Name(String),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Which {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(number) = object.extract() {
            return Ok(Which::Number(number));
        }
        let name: Option<String> = object.extract().ok();
        name.map(Which::Name).ok_or_else(|| {
            InputError::new_err(format!("`{}` is no flow or link: valid is its number or its name", *object))
        })
    }
}

/// A run in progress.
#[pyclass(module = "brakelight._brakelight")]
pub struct Simulation {
    /// None once it was finished.
    run: Option<sim::Simulation>,
    scenario: Scenario,
}

impl Simulation {
    fn run(&self) -> PyResult<&sim::Simulation> {
        self.run.as_ref().ok_or_else(finished)
    }

    fn run_mut(&mut self) -> PyResult<&mut sim::Simulation> {
        self.run.as_mut().ok_or_else(finished)
    }

    fn flow_number(&self, which: &Which) -> PyResult<usize> {
        let run = self.run()?;
        let place = match which {
            Which::Number(number) => counted(*number, run.flow_count()),
            Which::Name(name) => run.flow_called(name),
        };
        place.ok_or_else(|| missing("flow", which, run.flows().map(|flow| flow.name)))
    }

    fn link_number(&self, which: &Which) -> PyResult<usize> {
        let run = self.run()?;
        let place = match which {
            Which::Number(number) => counted(*number, run.link_count()),
            Which::Name(name) => run.link_called(name),
        };
        place.ok_or_else(|| missing("link", which, run.links().map(|link| link.name)))
    }

    /// Advances without the GIL; raises what an algorithm in Python raised.
    fn advancing<T: Send>(
        &mut self,
        py: Python<'_>,
        act: impl FnOnce(&mut sim::Simulation) -> T + Send,
    ) -> PyResult<T> {
        let run = self.run_mut()?;
        let done = py.detach(|| act(run));
        self.scenario.failures.take().map_or(Ok(done), Err)
    }
}

/// The place of number `number` of `count`, which counts from the last if it is negative.
fn counted(number: i64, count: usize) -> Option<usize> {
    let place = if number < 0 { i64::try_from(count).ok()?.checked_add(number)? } else { number };
    usize::try_from(place).ok().filter(|place| *place < count)
}

fn finished() -> PyErr {
    RunError::new_err("the simulation has been finished: clone it before, to go on")
}

fn missing(kind: &str, which: &Which, names: impl Iterator<Item = String>) -> PyErr {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    let given = match which {
        Which::Number(number) => format!("number {number}"),
        Which::Name(name) => format!("`{name}`"),
    };
    let last = names.len().saturating_sub(1);
    PyIndexError::new_err(format!(
        "there is no {kind} {given}: valid are 0 to {last}, or {}",
        names.join(", ")
    ))
}

/// Simulated time between two looks at signals.
const STEP_S: f64 = 1.0;

#[pymethods]
impl Simulation {
    #[new]
    fn new(scenario: &Scenario) -> PyResult<Self> {
        let run = sim::Simulation::new(&scenario.scenario, &scenario.traces).map_err(input)?;
        Ok(Simulation { run: Some(run), scenario: scenario.clone() })
    }

    #[getter]
    fn now(&self) -> PyResult<f64> {
        Ok(since_start(self.run()?.now()))
    }

    #[getter]
    fn end(&self) -> PyResult<f64> {
        Ok(since_start(self.run()?.end()))
    }

    fn advance(&mut self, py: Python<'_>, until: f64) -> PyResult<()> {
        let until = time("until", until)?;
        loop {
            let some = (self.run()?.now() + seconds("step", STEP_S)?).min(until);
            self.advancing(py, |run| run.advance(some))?;
            if some == until {
                return Ok(());
            }
            py.check_signals()?;
        }
    }

    fn step(&mut self, py: Python<'_>) -> PyResult<Option<f64>> {
        let at = self.advancing(py, sim::Simulation::step)?;
        Ok(at.map(since_start))
    }

    fn advance_to_flow(&mut self, py: Python<'_>, flow: Which) -> PyResult<Option<f64>> {
        let flow = self.flow_number(&flow)?;
        let at = self.advancing(py, |run| run.advance_to_flow(flow))?;
        Ok(at.map(since_start))
    }

    fn flow(&self, flow: Which) -> PyResult<FlowView> {
        let view = self.run()?.flow(self.flow_number(&flow)?);
        Ok(view.ok_or_else(|| failed("no such flow"))?.into())
    }

    fn flows(&self) -> PyResult<Vec<FlowView>> {
        Ok(self.run()?.flows().map(FlowView::from).collect())
    }

    fn link(&self, link: Which) -> PyResult<LinkView> {
        let view = self.run()?.link(self.link_number(&link)?);
        Ok(view.ok_or_else(|| failed("no such link"))?.into())
    }

    fn links(&self) -> PyResult<Vec<LinkView>> {
        Ok(self.run()?.links().map(LinkView::from).collect())
    }

    fn capacity_between(&self, link: Which, start: f64, stop: f64) -> PyResult<u64> {
        let (link, from, to) = (self.link_number(&link)?, time("start", start)?, time("stop", stop)?);
        if from > to {
            return Err(InputError::new_err(format!("start = `{start}` is after stop = `{stop}`")));
        }
        Ok(self.run()?.capacity_between(link, from, to).unwrap_or_default().0)
    }

    /// The packets that are on their way, a row each.
    fn packets(&self) -> PyResult<Frame> {
        let run = self.run()?;
        let mut packets = Vec::new();
        run.for_each_packet(&mut |packet| packets.push(*packet));
        let flows: Vec<String> = run.flows().map(|flow| flow.name).collect();
        let links: Vec<String> = run.links().map(|link| link.name).collect();
        let text = |name: &str, value: &dyn Fn(&PacketView) -> String| Column {
            name: name.into(),
            values: Values::Text(packets.iter().map(value).collect()),
        };
        let count = |name: &str, value: &dyn Fn(&PacketView) -> u64| Column {
            name: name.into(),
            values: Values::Count(packets.iter().map(value).collect()),
        };
        let number = |name: &str, value: &dyn Fn(&PacketView) -> Option<f64>| Column {
            name: name.into(),
            values: Values::Number(packets.iter().map(value).collect()),
        };
        let named = |names: &[String], place: usize| names.get(place).cloned().unwrap_or_default();
        let columns = vec![
            count("packet", &|packet| packet.id.0),
            text("flow", &|packet| named(&flows, packet.flow)),
            text("link", &|packet| named(&links, packet.element)),
            count("element", &|packet| packet.element as u64),
            text("direction", &|packet| match packet.direction {
                Direction::Forward => "forward".into(),
                Direction::Reverse => "reverse".into(),
            }),
            Column {
                name: "is_data".into(),
                values: Values::Flag(packets.iter().map(|packet| packet.is_data).collect()),
            },
            number("number", &|packet| packet.number.map(f64::from)),
            text("mark", &|packet| {
                let mark = match packet.mark {
                    Mark::None => "none",
                    Mark::Accelerate => "accelerate",
                    Mark::Brake => "brake",
                    Mark::Ce => "ce",
                };
                mark.into()
            }),
            count("size_bytes", &|packet| packet.size.0),
            number("sent_at_s", &|packet| Some(since_start(packet.sent_at))),
            number("queued_ms", &|packet| Some(in_seconds(packet.queued) * 1e3)),
        ];
        Frame::of(&lab::frame::Frame::new(columns).map_err(of_lab)?)
    }

    #[getter]
    fn delivered_packets(&self) -> PyResult<u64> {
        Ok(self.run()?.delivered_packets())
    }

    fn set_window(&mut self, flow: Which, cwnd: u64) -> PyResult<()> {
        let flow = self.flow_number(&flow)?;
        self.run_mut()?.set_window(flow, Bytes(cwnd)).map_err(input)
    }

    #[pyo3(signature = (flow, rate))]
    fn set_pacing_rate(&mut self, flow: Which, rate: Option<f64>) -> PyResult<()> {
        let flow = self.flow_number(&flow)?;
        let rate = rate.map(|rate| bits("rate", rate)).transpose()?;
        self.run_mut()?.set_pacing_rate(flow, rate).map_err(input)
    }

    fn set_link_rate(&mut self, link: Which, rate: f64) -> PyResult<()> {
        let link = self.link_number(&link)?;
        let rate = bits("rate", rate)?;
        self.run_mut()?.set_link_rate(link, rate).map_err(input)
    }

    #[pyo3(signature = (flow, direction, delay, keep_order=true))]
    fn set_delay(&mut self, flow: Which, direction: &str, delay: f64, keep_order: bool) -> PyResult<()> {
        let flow = self.flow_number(&flow)?;
        let direction = match direction {
            "forward" => Direction::Forward,
            "reverse" => Direction::Reverse,
            other => {
                return Err(InputError::new_err(format!(
                    "direction = `{other}`: valid are forward, reverse"
                )));
            }
        };
        let order = if keep_order { Order::Kept } else { Order::Free };
        let delay = seconds("delay", delay)?;
        self.run_mut()?.set_delay(flow, direction, delay, order).map_err(input)
    }

    fn start_flow(&mut self, flow: Which) -> PyResult<()> {
        let flow = self.flow_number(&flow)?;
        self.run_mut()?.start_flow(flow).map_err(input)
    }

    fn hold_flow(&mut self, flow: Which) -> PyResult<()> {
        let flow = self.flow_number(&flow)?;
        self.run_mut()?.hold_flow(flow).map_err(input)
    }

    fn stop_flow(&mut self, flow: Which) -> PyResult<()> {
        let flow = self.flow_number(&flow)?;
        self.run_mut()?.stop_flow(flow).map_err(input)
    }

    fn clone(&self) -> PyResult<Self> {
        let run = self.run()?.clone();
        Ok(Simulation { run: Some(run), scenario: self.scenario.clone() })
    }

    fn __copy__(&self) -> PyResult<Self> {
        self.clone()
    }

    #[pyo3(signature = (memo=None))]
    fn __deepcopy__(&self, memo: Option<Bound<'_, PyAny>>) -> PyResult<Self> {
        drop(memo);
        self.clone()
    }

    fn finish(&mut self) -> PyResult<Table> {
        let outcome = self.run.take().ok_or_else(finished)?.finish().map_err(failed)?;
        let result = JobOutcome::of(vec![outcome]).into_iter().collect();
        Ok(Table { table: table(&self.scenario.scenario, 1, result), compares: false })
    }

    fn __repr__(&self) -> String {
        match &self.run {
            None => "Simulation(finished)".to_string(),
            Some(run) => format!(
                "Simulation({:?}, {:.6} of {:.6} s)",
                self.scenario.scenario.name,
                since_start(run.now()),
                since_start(run.end().max(Time::ZERO))
            ),
        }
    }
}

/// A rate of so many bit/s.
fn bits(name: &str, rate: f64) -> PyResult<Rate> {
    if rate.is_finite() && rate >= 0.0 {
        return Ok(Rate::from_bps_f64(rate));
    }
    Err(InputError::new_err(format!("{name} = `{rate}` is out of range: valid is 0 or more, in bit/s")))
}
