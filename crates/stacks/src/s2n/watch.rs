//! What s2n-quic's events say of a sender: its window, its rates, what is in flight, RTT samples and losses.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brakelight_core::controller::Rtt;
use s2n_quic_core::event::Subscriber;
use s2n_quic_core::event::api::{
    AckRangeReceived, ConnectionClosed, ConnectionInfo, ConnectionMeta, DeliveryRateSampled, MtuUpdated,
    PacingRateUpdated, PacketHeader, PacketLost, RecoveryMetrics,
};

use crate::clock;
use crate::seen::Seen;
use crate::side::Values;

/// What the events said so far. Its copies share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Known(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    values: Values,
    /// Whether there is a connection.
    is_open: bool,
    closed: Option<String>,
}

impl Known {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        // What was noted before a panic is still true.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn values(&self) -> Option<Values> {
        let noted = self.noted();
        noted.is_open.then_some(noted.values)
    }

    pub(super) fn closed(&self) -> Option<String> {
        self.noted().closed.clone()
    }
}

/// Listens to the events of one end.
#[derive(Debug)]
pub(super) struct Watch {
    known: Known,
    seen: Option<Seen>,
    /// The largest number of a packet with data that was acknowledged.
    largest: Option<u64>,
    /// Whether that rose, so that the next metrics have a sample of the RTT (rfc9002 5.1).
    is_sample: bool,
}

impl Watch {
    pub(super) fn new(seen: Option<&Seen>) -> Self {
        Watch { known: Known::default(), seen: seen.cloned(), largest: None, is_sample: false }
    }

    pub(super) fn known(&self) -> Known {
        self.known.clone()
    }
}

impl Subscriber for Watch {
    type ConnectionContext = ();

    fn create_connection_context(&mut self, _meta: &ConnectionMeta, _info: &ConnectionInfo<'_>) {}

    fn on_ack_range_received(&mut self, (): &mut (), _meta: &ConnectionMeta, event: &AckRangeReceived<'_>) {
        let end = *event.ack_range.end();
        if matches!(event.packet_header, PacketHeader::OneRtt { .. })
            && self.largest.is_none_or(|largest| end > largest)
        {
            self.largest = Some(end);
            self.is_sample = true;
        }
    }

    fn on_recovery_metrics(&mut self, (): &mut (), _meta: &ConnectionMeta, event: &RecoveryMetrics<'_>) {
        let mut noted = self.known.noted();
        noted.is_open = true;
        noted.values.cwnd = u64::from(event.congestion_window);
        let Some(seen) = &self.seen else { return };
        let is_sample = std::mem::take(&mut self.is_sample);
        let sample = is_sample.then(|| clock::length(event.latest_rtt));
        let rtt = Rtt {
            sample,
            smoothed: clock::length(event.smoothed_rtt),
            variation: clock::length(event.rtt_variance),
            min: clock::length(event.min_rtt),
        };
        seen.on_metrics(u64::from(event.bytes_in_flight), self.largest.map(|_| rtt));
    }

    fn on_packet_lost(&mut self, (): &mut (), _meta: &ConnectionMeta, event: &PacketLost<'_>) {
        // A probe for a larger packet is expected to be lost.
        if !event.is_mtu_probe {
            self.known.noted().values.lost += 1;
        }
    }

    fn on_pacing_rate_updated(&mut self, (): &mut (), _meta: &ConnectionMeta, event: &PacingRateUpdated) {
        self.known.noted().values.pacing_bps = Some(event.bytes_per_second.saturating_mul(8));
    }

    fn on_delivery_rate_sampled(&mut self, (): &mut (), _meta: &ConnectionMeta, event: &DeliveryRateSampled) {
        let sample = &event.rate_sample;
        if !sample.interval.is_zero() {
            let rate = sample.delivered_bytes as f64 * 8.0 / sample.interval.as_secs_f64();
            self.known.noted().values.bandwidth_bps = Some(rate as u64);
        }
    }

    fn on_mtu_updated(&mut self, (): &mut (), _meta: &ConnectionMeta, event: &MtuUpdated) {
        self.known.noted().values.mtu = event.mtu;
    }

    fn on_connection_closed(&mut self, (): &mut (), _meta: &ConnectionMeta, event: &ConnectionClosed) {
        self.known.noted().closed = Some(event.error.to_string());
    }
}
