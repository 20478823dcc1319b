//! One link's meter: told what enters, leaves and dies at a link, it says what the link did.

use std::collections::BTreeMap;

use brakelight_core::packet::Packet;
use brakelight_core::path::Departed;
use brakelight_core::queue::Dropped;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use super::opportunities::millisecond;
use super::{Distribution, LinkBins, SignalMeter, mbps, ratio};
use crate::outcome::{LinkEvent, LinkOutcome, MarkCounts};

/// Measurements of one link in the measured interval.
#[derive(Clone, Debug, Default)]
pub struct LinkMeter {
    /// Nothing before this counts, except in the series and in the log.
    pub measure_from: Time,
    /// Bytes the link spends on each packet beyond its IP size.
    pub overhead: u32,
    /// Bytes that left, overhead included.
    pub bytes: u64,
    /// Packets that left.
    pub packets: u64,
    /// Packets its queue dropped.
    pub dropped: u64,
    /// Its queue's marks.
    pub marks: MarkCounts,
    /// Per-packet queueing delay.
    pub queueing: Distribution,
    /// Signal delay.
    pub signal: SignalMeter,
    /// Its time series, if one is recorded; of the whole run.
    pub series: Option<LinkBins>,
    /// Its log, if one is kept; of the whole run.
    pub log: Option<Vec<LinkEvent>>,
}

impl LinkMeter {
    /// A packet arrives at `now`.
    #[inline]
    pub fn entered(&mut self, now: Time, packet: &impl Packet) {
        if let Some(log) = &mut self.log {
            log.push(arrival(now, packet.size() + self.overhead));
        }
    }

    /// Returns the bytes that `packet` takes on the link, overhead included.
    #[inline]
    pub fn bytes_of(&self, packet: &impl Packet) -> u64 {
        u64::from(packet.size() + self.overhead)
    }

    /// A packet left.
    #[inline]
    pub fn departed<P: Packet>(&mut self, departed: &Departed<P>) {
        let bytes = self.bytes_of(&departed.packet);
        if let Some(series) = &mut self.series {
            series.departed(bytes, departed.queued, departed.mark);
        }
        if let Some(log) = &mut self.log {
            log.push(departure(departed.at, departed.queued, bytes as u32));
        }
        if departed.at < self.measure_from {
            return;
        }
        self.bytes += bytes;
        self.packets += 1;
        self.marks.count(departed.mark);
        self.queueing.record(departed.queued);
        self.signal.record(departed.at - departed.queued, departed.queued);
    }

    /// Its queue dropped a packet.
    pub fn dropped<P: Packet>(&mut self, dropped: &Dropped<P>) {
        if let Some(log) = &mut self.log {
            log.push(loss(dropped.at, dropped.packet.size() + self.overhead));
        }
        if dropped.at >= self.measure_from {
            self.dropped += 1;
        }
    }

    /// Returns the link's row: it is called `name`, has the queue registered as `queue`, and could have
    /// carried `capacity` in a measured interval of `length`.
    pub fn outcome(&self, name: &str, queue: &str, capacity: Bytes, length: Duration) -> LinkOutcome {
        LinkOutcome {
            name: name.to_string(),
            queue: queue.to_string(),
            capacity_mbps: mbps(capacity.0, length),
            throughput_mbps: mbps(self.bytes, length),
            utilization: ratio(self.bytes as f64, capacity.as_f64()),
            queueing_delay_ms: self.queueing.summary(),
            dropped_packets: self.dropped,
            marks: self.marks,
            marked_by: BTreeMap::new(),
            misread: false,
        }
    }
}

/// Returns an arrival in a log.
#[inline]
pub fn arrival(now: Time, bytes: u32) -> LinkEvent {
    LinkEvent::Arrival { ms: millisecond(now), bytes }
}

/// Returns a departure in a log.
#[inline]
pub fn departure(at: Time, queued: Duration, bytes: u32) -> LinkEvent {
    let ms = millisecond(at);
    LinkEvent::Departure { ms, bytes, delay_ms: ms - millisecond(at - queued) }
}

/// Returns a dropped packet in a log.
#[inline]
pub fn loss(at: Time, bytes: u32) -> LinkEvent {
    LinkEvent::Drop { ms: millisecond(at), packets: 1, bytes }
}
