//! What an agent learns of a monitor interval.

use brakelight_core::controller::{AckEvent, SendEvent};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

/// The RTT before the first sample. A connection does not know its path's, so neither does an agent.
pub const FIRST_RTT: Duration = Duration::from_millis(100);

/// What a sender has counted since its connection began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    sent: u64,
    delivered: u64,
    delivered_bytes: Bytes,
    lost_bytes: Bytes,
    rtt_samples: u64,
    rtt_sum: Duration,
    inflight: Bytes,
    srtt: Option<Duration>,
    min_rtt: Option<Duration>,
}

impl Counters {
    /// Counts a packet that leaves.
    pub fn on_send(&mut self, event: &SendEvent) {
        self.sent += 1;
        self.inflight = event.inflight + event.size;
    }

    /// Counts what an ACK says.
    pub fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.delivered += event.acked.len() as u64;
        self.delivered_bytes = event.delivered;
        // A loss that turns out to be a mistake is taken back.
        self.lost_bytes = event.total_lost;
        self.inflight = event.inflight;
        if let Some(sample) = event.rtt.sample {
            self.rtt_samples += 1;
            self.rtt_sum += sample;
            self.srtt = Some(event.rtt.smoothed);
            self.min_rtt = Some(event.rtt.min);
        }
    }

    /// The mean RTT of what was sampled since `before`.
    fn mean_rtt_s(&self, before: &Counters) -> Option<f64> {
        let samples = self.rtt_samples - before.rtt_samples;
        (samples > 0).then(|| self.rtt_sum.saturating_sub(before.rtt_sum).as_secs_f64() / samples as f64)
    }
}

/// The time of a monitor interval.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// When it began.
    pub begin: Time,
    /// When it is over.
    pub end: Time,
}

impl Span {
    /// Returns the end of its first half.
    pub fn middle(&self) -> Time {
        self.begin + self.end.since(self.begin) / 2
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
    /// The payload of a full packet.
    pub mss: f64,
}

impl Interval {
    /// Returns the interval of the time `span`: what was counted when it began, in its middle and at its end.
    /// The window at its end is `cwnd`. Before the first RTT sample an RTT is [`FIRST_RTT`].
    pub fn between(span: &Span, [begin, middle, end]: [&Counters; 3], cwnd: Bytes, mss: Bytes) -> Self {
        let length_s = span.end.since(span.begin).as_secs_f64();
        let srtt_s = end.srtt.unwrap_or(FIRST_RTT).as_secs_f64();
        let halves = middle.mean_rtt_s(begin).zip(end.mean_rtt_s(middle));
        Interval {
            length_s,
            sent: (end.sent - begin.sent) as f64,
            delivered: (end.delivered - begin.delivered) as f64,
            delivered_bytes: end.delivered_bytes.saturating_sub(begin.delivered_bytes).as_f64(),
            lost: end.lost_bytes.saturating_sub(begin.lost_bytes).as_f64() / mss.as_f64(),
            rtt_s: end.mean_rtt_s(begin).unwrap_or(srtt_s),
            rtt_gradient: halves.map_or(0.0, |(first, second)| (second - first) / length_s),
            min_rtt_s: end.min_rtt.unwrap_or(FIRST_RTT).as_secs_f64(),
            srtt_s,
            cwnd: cwnd.as_f64(),
            inflight: end.inflight.as_f64(),
            mss: mss.as_f64(),
        }
    }

    /// Returns packets sent over packets delivered, 1 if none were delivered.
    pub fn send_ratio(&self) -> f64 {
        if self.delivered > 0.0 { self.sent / self.delivered } else { 1.0 }
    }

    /// Returns the share of packets lost of those lost or delivered.
    pub fn loss(&self) -> f64 {
        let known = self.lost + self.delivered;
        if known > 0.0 { self.lost / known } else { 0.0 }
    }

    /// Returns what was declared lost, in Mbit/s.
    pub fn lost_mbps(&self) -> f64 {
        if self.length_s > 0.0 { self.lost * self.mss * 8e-6 / self.length_s } else { 0.0 }
    }

    /// Returns delivered payload in Mbit/s.
    pub fn throughput_mbps(&self) -> f64 {
        if self.length_s > 0.0 { self.delivered_bytes * 8e-6 / self.length_s } else { 0.0 }
    }
}
