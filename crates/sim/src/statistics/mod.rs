//! What a run is watched for. Everything is streamed: memory does not depend on the simulated duration.
//!
//! The definitions are those of Mahimahi's throughput graph, so that numbers can be laid beside real runs:
//!
//! - a link's *capacity* counts every delivery opportunity, used or not; its *throughput* every byte that left it,
//!   headers, link overhead and retransmissions included; *utilisation* is their ratio;
//! - a packet's *queueing delay* at a link is departure minus arrival, its own transmission included, of packets that
//!   left; over a path it is the sum over its links; propagation is not in it;
//! - *one-way delay* is arrival at the receiver minus the moment the packet left its sender.

mod distribution;
mod series;
mod signal;

use brakelight_core::ecn::Mark;
use brakelight_core::path::Departed;
use brakelight_core::queue::Dropped;
use brakelight_core::time::{Duration, Time};

use brakelight_scenario::outcome::LinkEvent;

use crate::engine::{Direction, Observer, Routed};
use crate::link_log::millisecond;
use crate::report::Reporting;

pub use distribution::Distribution;
pub use series::{LinkBin, LinkSeries};
pub use signal::SignalDelay;

/// Marks that one router, or one flow's receiver, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkTally {
    /// ABC's accelerates.
    pub accelerate: u64,
    /// ABC's brakes.
    pub brake: u64,
    /// Congestion experienced.
    pub ce: u64,
}

impl std::ops::Add for MarkTally {
    type Output = MarkTally;
    fn add(self, other: MarkTally) -> MarkTally {
        MarkTally {
            accelerate: self.accelerate + other.accelerate,
            brake: self.brake + other.brake,
            ce: self.ce + other.ce,
        }
    }
}

impl MarkTally {
    #[inline]
    fn count(&mut self, mark: Mark) {
        match mark {
            Mark::None => {}
            Mark::Accelerate => self.accelerate += 1,
            Mark::Brake => self.brake += 1,
            Mark::Ce => self.ce += 1,
        }
    }
}

/// What one link did in the measured interval.
#[derive(Clone, Debug, Default)]
pub struct LinkStatistics {
    /// Bytes the link spends on each packet beyond its IP size.
    pub overhead: u32,
    /// Bytes that left, overhead included.
    pub bytes: u64,
    /// Packets that left.
    pub packets: u64,
    /// Packets its queue dropped.
    pub dropped: u64,
    /// Its queue's marks.
    pub marks: MarkTally,
    /// Whether all it carries are data packets that pass no other link, so that `queueing` is theirs over the path.
    pub is_whole_path: bool,
    /// Per-packet queueing delay.
    pub queueing: Distribution,
    /// Signal delay.
    pub signal: SignalDelay,
    /// Its time series, if one is recorded.
    pub series: Option<LinkSeries>,
    /// Its log, if one is kept; of the whole run, not only of the measured interval.
    pub log: Option<Vec<LinkEvent>>,
}

/// What one flow's data packets did in the measured interval.
#[derive(Clone, Debug)]
pub struct FlowStatistics {
    /// The last link on the way forward, where throughput is counted; `None` on a path without links.
    pub last_link: Option<usize>,
    /// Bytes that left the last link, its overhead included; bytes delivered on a path without links.
    pub bytes: u64,
    /// IP bytes that arrived since the run began, for time series.
    pub arrived_bytes: u64,
    /// Packets delivered.
    pub delivered: u64,
    /// Packets dropped on the way.
    pub dropped: u64,
    /// Marks on delivered packets.
    pub marks: MarkTally,
    /// The sender's RTT samples.
    pub rtt: Distribution,
}

impl FlowStatistics {
    /// A flow that was not heard of yet.
    pub fn new(last_link: Option<usize>) -> Self {
        FlowStatistics {
            last_link,
            bytes: 0,
            arrived_bytes: 0,
            delivered: 0,
            dropped: 0,
            marks: MarkTally::default(),
            rtt: Distribution::default(),
        }
    }
}

/// The observer of a measured run.
#[derive(Clone, Debug)]
pub struct Recorder {
    /// Nothing before this counts.
    pub measure_from: Time,
    /// By element; `None` for elements that are not links.
    pub links: Vec<Option<Box<LinkStatistics>>>,
    /// By flow.
    pub flows: Vec<FlowStatistics>,
    /// Queueing delay over the path, per data packet that left its last of several links.
    several_links: Distribution,
    /// One-way delay, likewise.
    pub one_way: Distribution,
}

impl Recorder {
    /// A recorder of the given elements and flows.
    pub fn new(
        measure_from: Time,
        links: Vec<Option<Box<LinkStatistics>>>,
        flows: Vec<FlowStatistics>,
    ) -> Self {
        Recorder {
            measure_from,
            links,
            flows,
            several_links: Distribution::default(),
            one_way: Distribution::default(),
        }
    }

    /// Queueing delay over the path, per data packet that left its last link.
    pub fn path_queueing(&self) -> Distribution {
        let mut all = self.several_links.clone();
        for link in self.links.iter().flatten().filter(|link| link.is_whole_path) {
            all.merge(&link.queueing);
        }
        all
    }

    #[inline]
    fn is_forward_data<P: Routed>(packet: &P) -> bool {
        packet.is_data() && packet.direction() == Direction::Forward
    }
}

impl<P: Routed, E: Reporting> Observer<P, E> for Recorder {
    #[inline]
    fn entered(&mut self, element: usize, now: Time, packet: &P) {
        if let Some(link) = &mut self.links[element]
            && let Some(log) = &mut link.log
        {
            log.push(LinkEvent::Arrival { ms: millisecond(now), bytes: packet.size() + link.overhead });
        }
    }

    #[inline]
    fn departed(&mut self, element: usize, departed: &Departed<P>) {
        let Some(link) = &mut self.links[element] else { return };
        let packet = &departed.packet;
        let bytes = u64::from(packet.size() + link.overhead);
        if let Some(series) = &mut link.series {
            series.departed(bytes, departed.queued, departed.mark);
        }
        if let Some(log) = &mut link.log {
            let ms = millisecond(departed.at);
            let delay_ms = ms - millisecond(departed.at - departed.queued);
            log.push(LinkEvent::Departure { ms, bytes: bytes as u32, delay_ms });
        }
        if departed.at < self.measure_from {
            return;
        }
        link.bytes += bytes;
        link.packets += 1;
        link.marks.count(departed.mark);
        link.queueing.record(departed.queued);
        link.signal.record(departed.at - departed.queued, departed.queued);
        if Self::is_forward_data(packet) {
            let flow = &mut self.flows[packet.endpoint()];
            if flow.last_link == Some(element) {
                flow.bytes += bytes;
                if !link.is_whole_path {
                    self.several_links.record(packet.queued());
                }
            }
        }
    }

    fn dropped(&mut self, element: usize, dropped: &Dropped<P>) {
        if let Some(link) = &mut self.links[element]
            && let Some(log) = &mut link.log
        {
            let bytes = dropped.packet.size() + link.overhead;
            log.push(LinkEvent::Drop { ms: millisecond(dropped.at), packets: 1, bytes });
        }
        if dropped.at < self.measure_from {
            return;
        }
        if let Some(link) = &mut self.links[element] {
            link.dropped += 1;
        }
        if Self::is_forward_data(&dropped.packet) {
            self.flows[dropped.packet.endpoint()].dropped += 1;
        }
    }

    #[inline]
    fn delivered(&mut self, now: Time, packet: &P) {
        if !Self::is_forward_data(packet) {
            return;
        }
        let flow = &mut self.flows[packet.endpoint()];
        flow.arrived_bytes += u64::from(packet.size());
        if now < self.measure_from {
            return;
        }
        flow.delivered += 1;
        flow.marks.count(packet.encoding().mark(packet.ecn()));
        if flow.last_link.is_none() {
            flow.bytes += u64::from(packet.size());
        }
        self.one_way.record(now.since(packet.sent_at().unwrap_or(now)));
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

/// Jain's fairness index (jain84): (sum x)^2 / (n sum x^2), 1 when all are equal, 1/n when one has everything. `None` for
/// an empty or all-zero list.
pub fn jain(rates: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for rate in rates {
        n += 1.0;
        sum += rate;
        squares += rate * rate;
    }
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

/// `bytes` in `time` as Mbit/s; zero for no time.
pub fn mbps(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bytes as f64 * 8e-6 / time.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_one_for_equal_shares_and_one_over_n_for_one_winner() {
        assert_eq!(jain([3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain([8.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain([]), None);
        assert_eq!(jain([0.0]), None);
    }
}
