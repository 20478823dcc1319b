//! Short bursts of packets at a higher rate, to find out early how much the path carries.
//!
//! libwebrtc: probe_controller.cc (when), probe_bitrate_estimator.cc (the result).

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

/// libwebrtc probe_controller.cc: kMinProbePacketsSent, kMinProbeDuration, kMaxWaitingTimeForProbingResult,
/// first_exponential_probe_scale, second_exponential_probe_scale, step_size and further_probe_threshold
const PACKETS: u32 = 5;
const LENGTH: Duration = Duration::from_millis(15);
const PATIENCE: Duration = Duration::from_secs(1);
const FIRST_SCALES: [f64; 2] = [3.0, 6.0];
const NEXT_SCALE: f64 = 2.0;
const NEXT_THRESHOLD: f64 = 0.7;
/// libwebrtc probe_bitrate_estimator.cc: kMinReceivedProbesRatio, kMinReceivedBytesRatio, kMaxProbeInterval,
/// kMaxValidRatio, kMinRatioForUnsaturatedLink, kTargetUtilizationFraction
const LEAST_SHARE: f64 = 0.8;
const LONGEST_S: f64 = 1.0;
const LARGEST_RATIO: f64 = 2.0;
const UNSATURATED_RATIO: f64 = 0.9;
const UTILIZATION: f64 = 0.95;

/// A burst: what was sent of it and what is known to have arrived.
#[derive(Clone, Copy, Debug)]
struct Cluster {
    bps: f64,
    begun_at: Time,
    sent: u32,
    sent_bytes: u64,
    arrived: u32,
    bytes: u64,
    first_sent: Time,
    last_sent: Time,
    last_sent_size: u64,
    first_arrival: Time,
    last_arrival: Time,
    first_arrival_size: u64,
}

impl Cluster {
    fn new(bps: f64, now: Time) -> Self {
        Cluster {
            bps,
            begun_at: now,
            sent: 0,
            sent_bytes: 0,
            arrived: 0,
            bytes: 0,
            first_sent: Time::MAX,
            last_sent: Time::ZERO,
            last_sent_size: 0,
            first_arrival: Time::MAX,
            last_arrival: Time::ZERO,
            first_arrival_size: 0,
        }
    }

    fn least_bytes(&self) -> u64 {
        Rate::from_bps_f64(self.bps).bytes_in(LENGTH).0
    }

    fn is_sent(&self) -> bool {
        self.sent >= PACKETS && self.sent_bytes >= self.least_bytes()
    }

    fn add(&mut self, sent: Time, arrival: Time, size: u64) {
        self.arrived += 1;
        self.bytes += size;
        self.first_sent = self.first_sent.min(sent);
        if sent >= self.last_sent {
            (self.last_sent, self.last_sent_size) = (sent, size);
        }
        if arrival < self.first_arrival {
            (self.first_arrival, self.first_arrival_size) = (arrival, size);
        }
        self.last_arrival = self.last_arrival.max(arrival);
    }

    /// The rate that the path carried, in bit/s.
    fn result(&self) -> Option<f64> {
        let enough = f64::from(self.arrived) >= LEAST_SHARE * f64::from(PACKETS)
            && self.bytes as f64 >= LEAST_SHARE * self.least_bytes() as f64;
        let sent_s = self.last_sent.since(self.first_sent).as_secs_f64();
        let arrived_s = self.last_arrival.since(self.first_arrival).as_secs_f64();
        let is_length = |length: f64| length > 0.0 && length <= LONGEST_S;
        if !enough || !is_length(sent_s) || !is_length(arrived_s) {
            return None;
        }
        let sent_bps = 8.0 * (self.bytes - self.last_sent_size) as f64 / sent_s;
        let arrived_bps = 8.0 * (self.bytes - self.first_arrival_size) as f64 / arrived_s;
        if arrived_bps > LARGEST_RATIO * sent_bps {
            return None;
        }
        // Where less arrives than was sent, the link was full: stay a little below what it carries.
        let saturated = arrived_bps < UNSATURATED_RATIO * sent_bps;
        Some(if saturated { UTILIZATION * arrived_bps } else { sent_bps.min(arrived_bps) })
    }
}

/// The probes of one connection: two at first, and another after each that found room.
#[derive(Clone, Debug)]
pub(super) struct Probes {
    max_bps: f64,
    /// The bursts under way, by the tag of their packets less one.
    clusters: [Option<Cluster>; 2],
    /// Tag of the first of them.
    first_tag: u64,
    /// Rates of bursts that wait.
    waiting: [Option<f64>; 2],
    /// The best result since the last one was taken.
    found_bps: Option<f64>,
    /// A result above this is reason for one more burst.
    further_bps: f64,
    is_over: bool,
}

impl Probes {
    /// Returns the first two probes of a connection that starts at `start_bps`.
    pub(super) fn new(enabled: bool, start_bps: f64, max_bps: f64) -> Self {
        let mut probes = Probes {
            max_bps,
            clusters: [None; 2],
            first_tag: 1,
            waiting: [None; 2],
            found_bps: None,
            further_bps: f64::INFINITY,
            is_over: !enabled,
        };
        if enabled {
            probes.plan(FIRST_SCALES.map(|scale| Some(scale * start_bps)));
        }
        probes
    }

    fn plan(&mut self, rates: [Option<f64>; 2]) {
        self.first_tag += 2;
        self.clusters = [None; 2];
        self.waiting = rates.map(|rate| rate.map(|bps| bps.min(self.max_bps)));
        let largest = self.waiting.iter().flatten().fold(0.0, |most: f64, bps| most.max(*bps));
        // At the largest rate there is nothing further to find.
        self.further_bps = if largest < self.max_bps { NEXT_THRESHOLD * largest } else { f64::INFINITY };
    }

    /// Returns the rate of the burst that is being sent or comes next, in bit/s.
    pub(super) fn bps(&self) -> Option<f64> {
        if self.is_over {
            return None;
        }
        let sending = self.clusters.iter().flatten().find(|cluster| !cluster.is_sent());
        sending.map(|cluster| cluster.bps).or(self.waiting.iter().flatten().next().copied())
    }

    /// A packet leaves. Returns its tag: zero outside of bursts.
    pub(super) fn on_send(&mut self, now: Time, size: Bytes) -> u64 {
        if self.is_over {
            return 0;
        }
        let open = self.clusters.iter().position(|slot| slot.is_some_and(|cluster| !cluster.is_sent()));
        let index = open.or_else(|| {
            let index = self.waiting.iter().position(Option::is_some)?;
            self.clusters[index] = self.waiting[index].take().map(|bps| Cluster::new(bps, now));
            Some(index)
        });
        let Some(index) = index else { return 0 };
        if let Some(cluster) = &mut self.clusters[index] {
            cluster.sent += 1;
            cluster.sent_bytes += size.0;
        }
        self.first_tag + index as u64
    }

    /// A packet with `tag` arrived.
    pub(super) fn on_arrival(&mut self, tag: u64, sent: Time, arrival: Time, size: Bytes) {
        let Some(index) = tag.checked_sub(self.first_tag).filter(|index| tag != 0 && *index < 2) else {
            return;
        };
        if let Some(cluster) = &mut self.clusters[index as usize] {
            cluster.add(sent, arrival, size.0);
            if cluster.is_sent()
                && let Some(bps) = cluster.result()
            {
                self.found_bps = Some(bps);
            }
        }
    }

    /// Returns what a burst found since the last call, in bit/s. If there was room and `may_go_on`, plans the
    /// next burst.
    pub(super) fn take(&mut self, may_go_on: bool, now: Time) -> Option<f64> {
        let found = self.found_bps.take();
        if let Some(bps) = found
            && bps > self.further_bps
            && may_go_on
        {
            self.plan([Some(NEXT_SCALE * bps), None]);
        } else if self.clusters.iter().flatten().any(|cluster| now.since(cluster.begun_at) > PATIENCE) {
            self.is_over = true;
        }
        found
    }

    /// Ends probing.
    pub(super) fn stop(&mut self) {
        self.is_over = true;
    }
}
