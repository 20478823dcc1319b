//! What an agent learns of a monitor interval.

use brakelight::core::time::Time;
use brakelight::sim::Simulation;
use brakelight::sim::report::SenderView;

/// A flow's counters at a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    at: Time,
    sent: u64,
    delivered: u64,
    delivered_bytes: u64,
    lost: u64,
    rtt_samples: u64,
    rtt_sum_s: f64,
}

impl Counters {
    /// Returns those of flow number `flow` now.
    pub fn of(simulation: &Simulation, flow: usize) -> Self {
        let sender = simulation.sender(flow).unwrap_or_default();
        let (rtt_samples, sum) = simulation.rtt_samples(flow).unwrap_or_default();
        Counters {
            at: simulation.now(),
            sent: sender.sent_packets,
            delivered: sender.delivered_packets,
            delivered_bytes: sender.delivered_bytes.0,
            lost: sender.lost_packets,
            rtt_samples,
            rtt_sum_s: sum.as_secs_f64(),
        }
    }

    /// The mean RTT of what was sampled since `before`.
    fn mean_rtt_s(&self, before: &Counters) -> Option<f64> {
        let samples = self.rtt_samples - before.rtt_samples;
        (samples > 0).then(|| (self.rtt_sum_s - before.rtt_sum_s) / samples as f64)
    }
}

/// One monitor interval of one flow. Times are seconds, sizes payload bytes, rates per second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    /// Its length.
    pub length_s: f64,
    /// Packets that were sent, retransmissions included.
    pub sent: f64,
    /// Packets that were acknowledged.
    pub delivered: f64,
    /// Payload that was acknowledged.
    pub delivered_bytes: f64,
    /// Packets that were declared lost.
    pub lost: f64,
    /// Mean of the RTT samples; the smoothed RTT if there was none.
    pub rtt_s: f64,
    /// By how much the mean of the second half is above that of the first, over the length; 0 if unknown.
    pub rtt_gradient: f64,
    /// The smallest RTT of the connection.
    pub min_rtt_s: f64,
    /// The smoothed RTT.
    pub srtt_s: f64,
    /// The window at its end.
    pub cwnd: f64,
    /// Bytes in flight at its end.
    pub inflight: f64,
    /// What the link could have carried, in Mbit/s.
    pub capacity_mbps: f64,
}

impl Interval {
    /// Returns the interval between `begin` and `end`; `middle` lies between them. Before the first RTT
    /// sample an RTT is `rtt_s`.
    pub fn between(
        begin: &Counters,
        middle: &Counters,
        end: &Counters,
        sender: &SenderView,
        rtt_s: f64,
        capacity_mbps: f64,
    ) -> Self {
        let length_s = end.at.since(begin.at).as_secs_f64();
        let known = sender.rtt;
        let srtt_s = known.map_or(rtt_s, |rtt| rtt.smoothed.as_secs_f64());
        let halves = middle.mean_rtt_s(begin).zip(end.mean_rtt_s(middle));
        Interval {
            length_s,
            sent: (end.sent - begin.sent) as f64,
            delivered: (end.delivered - begin.delivered) as f64,
            delivered_bytes: (end.delivered_bytes - begin.delivered_bytes) as f64,
            // A loss that turns out to be a mistake is taken back.
            lost: end.lost.saturating_sub(begin.lost) as f64,
            rtt_s: end.mean_rtt_s(begin).unwrap_or(srtt_s),
            rtt_gradient: halves.map_or(0.0, |(first, second)| (second - first) / length_s),
            min_rtt_s: known.map_or(rtt_s, |rtt| rtt.min.as_secs_f64()),
            srtt_s,
            cwnd: sender.cwnd.as_f64(),
            inflight: sender.inflight.as_f64(),
            capacity_mbps,
        }
    }

    /// Packets sent over packets delivered, 1 if none were delivered.
    pub fn send_ratio(&self) -> f64 {
        if self.delivered > 0.0 { self.sent / self.delivered } else { 1.0 }
    }

    /// Share of packets lost of those lost or delivered.
    pub fn loss(&self) -> f64 {
        let known = self.lost + self.delivered;
        if known > 0.0 { self.lost / known } else { 0.0 }
    }

    /// Delivered payload in Mbit/s.
    pub fn throughput_mbps(&self) -> f64 {
        if self.length_s > 0.0 { self.delivered_bytes * 8e-6 / self.length_s } else { 0.0 }
    }
}
