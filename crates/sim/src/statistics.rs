//! The observer of a measured run: every link by its meter, every flow by what its packets met. The
//! definitions are those of [`measure`](brakelight_scenario::measure).

use brakelight_core::packet::Direction;
use brakelight_core::path::Departed;
use brakelight_core::queue::Dropped;
use brakelight_core::time::Time;
use brakelight_scenario::measure::{Distribution, LinkMeter};
use brakelight_scenario::outcome::MarkCounts;

use crate::engine::{Observer, Routed};
use crate::report::Reporting;

/// What one link did in the measured interval.
#[derive(Clone, Debug, Default)]
pub struct LinkStatistics {
    /// Its meter.
    pub meter: LinkMeter,
    /// Whether all it carries are data packets that pass no other link, so that its queueing delay is theirs
    /// over the path.
    pub is_whole_path: bool,
}

/// What one flow's data packets did in the measured interval.
#[derive(Clone, Debug)]
pub struct FlowStatistics {
    /// The last link on the way forward, where throughput is counted; `None` on a path without links.
    pub last_link: Option<usize>,
    /// Bytes that left the last link, its overhead included; bytes delivered on a path without links.
    pub bytes: u64,
    /// IP bytes that arrived since the run began.
    pub arrived_bytes: u64,
    /// IP bytes that left the last link since the run began, for time series: where the link's capacity is
    /// counted too. On a path without links those that arrived.
    pub left_bytes: u64,
    /// Packets sent since the run began.
    pub sent: u64,
    /// Packets delivered or dropped before the measured interval.
    pub ended_before: u64,
    /// Packets delivered.
    pub delivered: u64,
    /// Packets dropped on the way.
    pub dropped: u64,
    /// Marks on delivered packets.
    pub marks: MarkCounts,
    /// The sender's RTT samples.
    pub rtt: Distribution,
    /// The delays of its packets, where the scenario records them by flow.
    pub delays: Option<Box<FlowDelays>>,
}

/// The delays of one flow's packets.
#[derive(Clone, Debug, Default)]
pub struct FlowDelays {
    /// Queueing delay over the path, per packet that left its last link.
    pub queueing: Distribution,
    /// One-way delay of those that arrived.
    pub one_way: Distribution,
}

impl FlowStatistics {
    /// Returns a flow that was not heard of yet.
    pub fn new(last_link: Option<usize>, delays: bool) -> Self {
        FlowStatistics {
            last_link,
            bytes: 0,
            arrived_bytes: 0,
            left_bytes: 0,
            sent: 0,
            ended_before: 0,
            delivered: 0,
            dropped: 0,
            marks: MarkCounts::default(),
            rtt: Distribution::default(),
            delays: delays.then(Box::default),
        }
    }
}

/// The observer of a measured run.
#[derive(Clone, Debug)]
pub struct Recorder {
    /// Nothing before this counts.
    pub measure_from: Time,
    /// By link. Links are the first elements.
    pub links: Vec<LinkStatistics>,
    /// Whether a link keeps a log.
    keeps_logs: bool,
    /// By flow.
    pub flows: Vec<FlowStatistics>,
    /// Queueing delay over the path, per data packet that left its last of several links.
    several_links: Distribution,
    /// One-way delay, likewise.
    pub one_way: Distribution,
}

impl Recorder {
    /// Returns a recorder of the given links and flows.
    pub fn new(measure_from: Time, links: Vec<LinkStatistics>, flows: Vec<FlowStatistics>) -> Self {
        Recorder {
            measure_from,
            keeps_logs: links.iter().any(|link| link.meter.log.is_some()),
            links,
            flows,
            several_links: Distribution::default(),
            one_way: Distribution::default(),
        }
    }

    /// Returns the queueing delay over the path, per data packet that left its last link.
    pub fn path_queueing(&self) -> Distribution {
        let mut all = self.several_links.clone();
        for link in self.links.iter().filter(|link| link.is_whole_path) {
            all.merge(&link.meter.queueing);
        }
        all
    }

    #[inline]
    fn is_forward_data<P: Routed>(packet: &P) -> bool {
        packet.is_data() && packet.direction() == Direction::Forward
    }

    /// A packet left the link at position `element`.
    #[inline(never)]
    fn left_link<P: Routed>(&mut self, element: usize, departed: &Departed<P>) {
        let link = &mut self.links[element];
        let packet = &departed.packet;
        if Self::is_forward_data(packet) {
            let flow = &mut self.flows[packet.endpoint()];
            if flow.last_link == Some(element) {
                flow.left_bytes += u64::from(packet.size());
                if departed.at >= self.measure_from {
                    flow.bytes += link.meter.bytes_of(packet);
                    if let Some(delays) = &mut flow.delays {
                        delays.queueing.record(packet.queued());
                    }
                    if !link.is_whole_path {
                        self.several_links.record(packet.queued());
                    }
                }
            }
        }
        link.meter.departed(departed);
    }
}

impl<P: Routed, E: Reporting> Observer<P, E> for Recorder {
    #[inline]
    fn sent(&mut self, _now: Time, packet: &P) {
        if Self::is_forward_data(packet) {
            self.flows[packet.endpoint()].sent += 1;
        }
    }

    #[inline]
    fn entered(&mut self, element: usize, now: Time, packet: &P) {
        if self.keeps_logs
            && let Some(link) = self.links.get_mut(element)
        {
            link.meter.entered(now, packet);
        }
    }

    #[inline(always)]
    fn departed(&mut self, element: usize, departed: &Departed<P>) {
        if element < self.links.len() {
            self.left_link(element, departed);
        }
    }

    fn dropped(&mut self, element: usize, dropped: &Dropped<P>) {
        if let Some(link) = self.links.get_mut(element) {
            link.meter.dropped(dropped);
        }
        if Self::is_forward_data(&dropped.packet) {
            let flow = &mut self.flows[dropped.packet.endpoint()];
            let counter =
                if dropped.at >= self.measure_from { &mut flow.dropped } else { &mut flow.ended_before };
            *counter += 1;
        }
    }

    #[inline]
    fn delivered(&mut self, now: Time, packet: &P) {
        if !Self::is_forward_data(packet) {
            return;
        }
        let flow = &mut self.flows[packet.endpoint()];
        flow.arrived_bytes += u64::from(packet.size());
        if flow.last_link.is_none() {
            flow.left_bytes += u64::from(packet.size());
        }
        if now < self.measure_from {
            flow.ended_before += 1;
            return;
        }
        flow.delivered += 1;
        flow.marks.count(packet.encoding().mark(packet.ecn()));
        if flow.last_link.is_none() {
            flow.bytes += u64::from(packet.size());
        }
        let one_way = now.since(packet.sent_at().unwrap_or(now));
        if let Some(delays) = &mut flow.delays {
            delays.one_way.record(one_way);
        }
        self.one_way.record(one_way);
    }

    #[inline]
    fn accepted(&mut self, now: Time, endpoint: usize, taker: &mut E) {
        if let Some(sample) = taker.take_rtt_sample()
            && now >= self.measure_from
        {
            self.flows[endpoint].rtt.record(sample);
        }
    }
}
