//! What a display shows while packets pass: counters that the carrying thread sets and others read, without a
//! lock on either side.
//!
//! The thread writes between two steps of a sequence number, so that a reader sees counters of one moment or
//! tries again.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use brakelight_core::time::Duration;

/// Counters of one direction since its run began. They stay zero where the direction has no link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Time of these values: nanoseconds since the run began.
    pub time_nanos: u64,
    /// Bytes the link could have carried.
    pub capacity: u64,
    /// Bytes that left it, its overhead included.
    pub bytes: u64,
    /// Packets that left it.
    pub packets: u64,
    /// Time those packets spent in it: nanoseconds.
    pub queued_nanos: u64,
    /// Packets its queue marked accelerate.
    pub accelerate: u64,
    /// Packets its queue marked brake.
    pub brake: u64,
    /// Packets dropped.
    pub dropped: u64,
}

const FIELDS: usize = 8;

/// Counters that one thread writes and others read without locks.
#[derive(Debug, Default)]
pub struct Live {
    /// Odd while the counters change.
    sequence: AtomicU64,
    counters: [AtomicU64; FIELDS],
    /// The latest delivery that no reader has seen yet: nanoseconds.
    latest: AtomicU64,
}

impl Live {
    /// Updates the counters. Only one thread may call this.
    #[inline]
    pub fn tell(&self, set: impl FnOnce(&mut Counts)) {
        let mut counts = Counts::default();
        set(&mut counts);
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        for (counter, value) in self.counters.iter().zip(counts.values()) {
            counter.store(value, Ordering::Relaxed);
        }
        self.sequence.store(sequence.wrapping_add(2), Ordering::Release);
    }

    /// Records the lateness of a delivery.
    #[inline]
    pub fn late(&self, late: Duration) {
        self.latest.fetch_max(late.as_nanos(), Ordering::Relaxed);
    }

    /// Returns a consistent copy of the counters.
    pub fn counts(&self) -> Counts {
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            let values = std::array::from_fn(|index| self.counters[index].load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && before == self.sequence.load(Ordering::Relaxed) {
                return Counts::of(values);
            }
            std::hint::spin_loop();
        }
    }

    /// Returns the largest lateness since the last call.
    pub fn take_latest(&self) -> Duration {
        Duration::from_nanos(self.latest.swap(0, Ordering::Relaxed))
    }
}

impl Counts {
    fn values(self) -> [u64; FIELDS] {
        [
            self.time_nanos,
            self.capacity,
            self.bytes,
            self.packets,
            self.queued_nanos,
            self.accelerate,
            self.brake,
            self.dropped,
        ]
    }

    fn of(
        [time_nanos, capacity, bytes, packets, queued_nanos, accelerate, brake, dropped]: [u64; FIELDS],
    ) -> Self {
        Counts { time_nanos, capacity, bytes, packets, queued_nanos, accelerate, brake, dropped }
    }

    /// Returns the sample between `before` and these counters.
    pub fn since(&self, before: &Counts) -> Sample {
        let seconds = self.time_nanos.saturating_sub(before.time_nanos) as f64 * 1e-9;
        let mbps = |now: u64, then: u64| {
            if seconds > 0.0 { (now - then) as f64 * 8e-6 / seconds } else { 0.0 }
        };
        let packets = self.packets - before.packets;
        let (accelerate, brake) = (self.accelerate - before.accelerate, self.brake - before.brake);
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        Sample {
            capacity_mbps: mbps(self.capacity, before.capacity),
            throughput_mbps: mbps(self.bytes, before.bytes),
            queueing_delay_ms: share(self.queued_nanos - before.queued_nanos, packets)
                .map(|nanos| nanos * 1e-6),
            accelerate_fraction: share(accelerate, accelerate + brake),
            dropped: self.dropped - before.dropped,
        }
    }
}

/// One direction in the interval between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// What the link could have carried.
    pub capacity_mbps: f64,
    /// What it carried.
    pub throughput_mbps: f64,
    /// Mean time in the link of the packets that left, ms; `None` if no packet left.
    pub queueing_delay_ms: Option<f64>,
    /// Share of accelerates among ABC's marks, 0 to 1; `None` if there were no marks.
    pub accelerate_fraction: Option<f64>,
    /// Packets dropped.
    pub dropped: u64,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn a_sample_is_of_the_time_between_two_looks() {
        let before = Counts { time_nanos: 1_000_000_000, bytes: 1000, capacity: 1000, ..Counts::default() };
        let after = Counts {
            time_nanos: 1_500_000_000,
            bytes: 126_000,
            capacity: 251_000,
            packets: 4,
            queued_nanos: 10_000_000,
            accelerate: 3,
            brake: 1,
            dropped: 2,
        };
        let sample = after.since(&before);
        assert_eq!((sample.throughput_mbps, sample.capacity_mbps), (2.0, 4.0));
        assert_eq!(sample.queueing_delay_ms, Some(2.5));
        assert_eq!((sample.accelerate_fraction, sample.dropped), (Some(0.75), 2));
        assert_eq!(after.since(&after).queueing_delay_ms, None);
    }

    #[test]
    fn a_reader_sees_the_counters_of_one_moment() {
        let live = Arc::new(Live::default());
        let writer = {
            let live = live.clone();
            thread::spawn(move || {
                for n in 1..=100_000 {
                    live.tell(|counts| {
                        counts.time_nanos = n;
                        counts.dropped = n;
                    });
                }
            })
        };
        loop {
            let counts = live.counts();
            assert_eq!(counts.time_nanos, counts.dropped);
            if counts.dropped == 100_000 {
                break;
            }
        }
        writer.join().unwrap();
        live.late(Duration::from_micros(3));
        live.late(Duration::from_micros(2));
        assert_eq!(live.take_latest(), Duration::from_micros(3));
        assert_eq!(live.take_latest(), Duration::ZERO);
    }
}
