//! How many datagrams each system call of a socket carries: whether generic segmentation offload (GSO) and
//! generic receive offload (GRO) are used is counted here, not assumed.
//!
//! A call of `sendmsg` with a segment size sends many datagrams, which the kernel or the network card cuts
//! (udp(7), `UDP_SEGMENT`). A call of `recvmmsg` brings many messages, and each message may be many datagrams
//! that the kernel has joined (udp(7), `UDP_GRO`).

use std::sync::atomic::{AtomicU64, Ordering};

use quinn_udp::RecvMeta;

/// System calls of a socket, and what they carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounts {
    /// Calls that sent something.
    pub sends: u64,
    /// Datagrams that they sent.
    pub sent_datagrams: u64,
    /// Calls that brought something.
    pub receives: u64,
    /// Messages that they brought.
    pub received_messages: u64,
    /// Datagrams in these messages.
    pub received_datagrams: u64,
}

impl IoCounts {
    /// Returns the mean number of datagrams in a call that sent; zero if there was none.
    pub fn datagrams_per_send(&self) -> f64 {
        self.sent_datagrams as f64 / self.sends.max(1) as f64
    }

    /// Returns the mean number of datagrams in a call that received; zero if there was none.
    pub fn datagrams_per_receive(&self) -> f64 {
        self.received_datagrams as f64 / self.receives.max(1) as f64
    }

    /// Returns the mean number of datagrams that the kernel joined into a message; zero if none came.
    pub fn datagrams_per_message(&self) -> f64 {
        self.received_datagrams as f64 / self.received_messages.max(1) as f64
    }

    /// Returns what was added since `before`.
    pub fn since(&self, before: &IoCounts) -> IoCounts {
        IoCounts {
            sends: self.sends - before.sends,
            sent_datagrams: self.sent_datagrams - before.sent_datagrams,
            receives: self.receives - before.receives,
            received_messages: self.received_messages - before.received_messages,
            received_datagrams: self.received_datagrams - before.received_datagrams,
        }
    }
}

/// Counts the calls of a socket. Threads may share it.
#[derive(Debug, Default)]
pub struct IoMeter {
    sends: AtomicU64,
    sent_datagrams: AtomicU64,
    receives: AtomicU64,
    received_messages: AtomicU64,
    received_datagrams: AtomicU64,
}

impl IoMeter {
    /// One call sent `bytes` as datagrams of `segment` bytes, the last one of fewer perhaps.
    pub fn on_send(&self, bytes: usize, segment: usize) {
        self.sends.fetch_add(1, Ordering::Relaxed);
        self.sent_datagrams.fetch_add(bytes.div_ceil(segment.max(1)) as u64, Ordering::Relaxed);
    }

    /// One call brought `messages`.
    pub fn on_receive(&self, messages: &[RecvMeta]) {
        let datagrams = messages.iter().map(|meta| meta.len.div_ceil(meta.stride.max(1)) as u64).sum();
        self.receives.fetch_add(1, Ordering::Relaxed);
        self.received_messages.fetch_add(messages.len() as u64, Ordering::Relaxed);
        self.received_datagrams.fetch_add(datagrams, Ordering::Relaxed);
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> IoCounts {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        IoCounts {
            sends: get(&self.sends),
            sent_datagrams: get(&self.sent_datagrams),
            receives: get(&self.receives),
            received_messages: get(&self.received_messages),
            received_datagrams: get(&self.received_datagrams),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_counts_once_and_each_of_its_datagrams_too() {
        let meter = IoMeter::default();
        meter.on_send(2500, 1000);
        meter.on_send(300, 300);
        let before = meter.counts();
        let message = |len, stride| RecvMeta { len, stride, ..RecvMeta::default() };
        meter.on_receive(&[message(2500, 1000), message(1000, 1000)]);
        let counts = meter.counts();
        assert_eq!((counts.sends, counts.sent_datagrams, counts.datagrams_per_send()), (2, 4, 2.0));
        let after = counts.since(&before);
        let received = (after.receives, after.received_messages, after.received_datagrams);
        assert_eq!((after.sends, received), (0, (1, 2, 4)));
        assert_eq!((after.datagrams_per_receive(), after.datagrams_per_message()), (4.0, 2.0));
    }

    #[test]
    fn a_socket_that_did_nothing_has_no_mean() {
        let counts = IoCounts::default();
        assert_eq!((counts.datagrams_per_send(), counts.datagrams_per_message()), (0.0, 0.0));
    }
}
