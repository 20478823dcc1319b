//! Looking into a run.

use brakelight_core::endpoint::Endpoint;
use brakelight_core::queue::Queue;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_scenario::outcome::MarkCounts;

use super::Simulation;
use crate::packet::SimPacket;
use crate::report::{Reporting, SenderView};

/// Values by name, in the unit the name ends in.
pub type Values = Vec<(&'static str, f64)>;

/// The phase of a flow's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowPhase {
    /// It has not started.
    Waiting,
    /// It has started.
    Running,
    /// It was stopped: nothing is sent that had not been sent by then, except again.
    Stopped,
}

/// One flow, as it stands at a time.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FlowView {
    /// Its name.
    pub name: String,
    /// Its controller's registered name.
    pub controller: &'static str,
    /// Whether it has started or stopped.
    pub phase: FlowPhase,
    /// Its sender.
    pub sender: SenderView,
    /// Payload that arrived at the receiver, each byte counted once.
    pub goodput: Bytes,
    /// What its application says of itself, as in the outcome's `application`.
    pub application: Values,
    /// What its controller shows of itself, and the host's own values, as in the outcome's `state`.
    pub state: Values,
}

/// One link, as it stands at a time.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LinkView {
    /// Its name.
    pub name: String,
    /// Its queue's registered name.
    pub queue: &'static str,
    /// Packets that wait in its queue, or in its queues if it is a radio; the packet being sent is not among
    /// them.
    pub queue_packets: u32,
    /// Their bytes at the IP layer.
    pub queue_bytes: Bytes,
    /// How long the packet has waited that has waited longest; `None` if nothing waits or the queue does not
    /// tell.
    pub sojourn: Option<Duration>,
    /// What it could have carried, used or not, in the last [`CAPACITY_WINDOW`](Self::CAPACITY_WINDOW), or
    /// since the run began.
    pub capacity: Rate,
    /// Packets that left it in the measured interval so far.
    pub delivered_packets: u64,
    /// Their bytes, with what the link counts beyond each packet's IP size.
    pub delivered_bytes: Bytes,
    /// Packets that its queue dropped in the measured interval so far.
    pub dropped_packets: u64,
    /// Packets that its queue marked in the measured interval so far.
    pub marks: MarkCounts,
    /// What its queue shows of itself; that of each of a radio's queues, in turn.
    pub state: Values,
}

impl LinkView {
    /// The time over which [`capacity`](Self::capacity) is a mean. Opportunities of a trace are often some
    /// milliseconds apart.
    pub const CAPACITY_WINDOW: Duration = Duration::from_millis(100);
}

impl<E: Endpoint<SimPacket> + Reporting> Simulation<E> {
    /// Returns how many flows the run has. They are numbered from 0 in the order of the scenario, each of a
    /// `count` by itself.
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }

    /// Returns the number of the flow called `name`; one of a `count` is called `name-1`, `name-2` and so on.
    pub fn flow_called(&self, name: &str) -> Option<usize> {
        self.flows.iter().position(|flow| flow.name == name)
    }

    /// Returns flow number `flow` as it stands, if there is one. Costs nothing until it is asked for.
    pub fn flow(&self, flow: usize) -> Option<FlowView> {
        let instance = self.flows.get(flow)?;
        let host = &self.engine.endpoints()[flow];
        let (mut application, mut state) = (Values::new(), Values::new());
        host.application(self.now(), &mut |name, value| application.push((name, value)));
        host.inspect(&mut |name, value| state.push((name, value)));
        Some(FlowView {
            name: instance.name.clone(),
            controller: self.scenario.flows[instance.spec].controller.name(),
            phase: instance.phase(self.now(), host.next_wakeup()),
            sender: host.sender(),
            goodput: Bytes(host.counters().goodput_bytes),
            application,
            state,
        })
    }

    /// Returns the sender of flow number `flow` as it stands, if there is such a flow: that of
    /// [`flow`](Self::flow), for whoever asks often.
    pub fn sender(&self, flow: usize) -> Option<SenderView> {
        self.engine.endpoints().get(flow).map(Reporting::sender)
    }

    /// Returns how many RTT samples flow number `flow` has taken in the measured interval, and their sum, if
    /// there is such a flow: the difference of two calls gives the mean RTT between them.
    pub fn rtt_samples(&self, flow: usize) -> Option<(u64, Duration)> {
        let rtt = &self.engine.observer().flows.get(flow)?.rtt;
        let sum = u64::try_from(rtt.sum_nanos()).unwrap_or(u64::MAX);
        Some((rtt.count(), Duration::from_nanos(sum)))
    }

    /// Returns every flow as it stands, by number.
    pub fn flows(&self) -> impl Iterator<Item = FlowView> + '_ {
        (0..self.flow_count()).filter_map(|flow| self.flow(flow))
    }

    /// Returns how many links the run has. They are numbered from 0 in the order of the scenario.
    pub fn link_count(&self) -> usize {
        self.scenario.links.len()
    }

    /// Returns the number of the link called `name`.
    pub fn link_called(&self, name: &str) -> Option<usize> {
        self.scenario.link(name)
    }

    /// Returns link number `link` as it stands, if there is one. Costs nothing until it is asked for.
    pub fn link(&self, link: usize) -> Option<LinkView> {
        let spec = self.scenario.links.get(link)?;
        let element = &self.engine.elements()[link];
        let meter = &self.engine.observer().links[link].meter;
        let backlog = element.backlog().unwrap_or_default();
        let now = self.now();
        let from = now.saturating_sub(LinkView::CAPACITY_WINDOW);
        let mut state = Values::new();
        element.for_each_queue(&mut |queue| queue.inspect(&mut |name, value| state.push((name, value))));
        Some(LinkView {
            name: spec.name.clone(),
            queue: spec.queue.name(),
            queue_packets: backlog.packets,
            queue_bytes: backlog.bytes,
            sojourn: element.waiting_since().map(|since| now.since(since)),
            capacity: Rate::over(element.capacity_between(from, now).unwrap_or_default(), now.since(from)),
            delivered_packets: meter.packets,
            delivered_bytes: Bytes(meter.bytes),
            dropped_packets: meter.dropped,
            marks: meter.marks,
            state,
        })
    }

    /// Returns every link as it stands, by number.
    pub fn links(&self) -> impl Iterator<Item = LinkView> + '_ {
        (0..self.link_count()).filter_map(|link| self.link(link))
    }

    /// Returns what link number `link` can carry in `from <= t < to`, used or not, if there is such a link:
    /// IP bytes, with what the link counts beyond each packet's size. The times may lie ahead; then it is
    /// what the link will carry unless its rate is changed.
    pub fn capacity_between(&self, link: usize, from: Time, to: Time) -> Option<Bytes> {
        self.engine.elements()[..self.link_count()].get(link)?.capacity_between(from, to)
    }
}
