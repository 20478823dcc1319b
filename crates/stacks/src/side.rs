//! One end of a connection, whatever its stack: the simulation's time, the connection's random numbers, and
//! what is known of the sender.

use std::time::Instant;

use brakelight_core::controller::Rtt;
use brakelight_core::ecn::Ecn;
use brakelight_core::host::{End, SenderState, Transmit};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use crate::entropy::Entropy;
use crate::seen::Seen;
use crate::{clock, frames};

/// One end of a connection in the terms of its stack.
pub(crate) trait Stack: Send {
    /// A call begins at `now`, of whatever kind.
    fn arrive_at(&mut self, _now: Instant) {}
    /// Opens the connection.
    fn connect(&mut self, now: Instant);
    /// A datagram arrived.
    fn receive(&mut self, now: Instant, ecn: Ecn, payload: &[u8]);
    /// Writes the next datagram. Returns its ECN field, or `None` if there is none.
    fn transmit(&mut self, now: Instant, payload: &mut Vec<u8>) -> Option<Ecn>;
    /// Acts on deadlines due by `now`.
    fn on_timeout(&mut self, now: Instant);
    /// Takes up to `size` bytes of the stream. Returns how many.
    fn write(&mut self, size: usize) -> usize;
    /// The stream ends.
    fn finish(&mut self);
    /// Returns how many bytes of the stream can be read, which then are.
    fn read(&mut self) -> u64;
    /// Sends a message. Returns `false` if it cannot.
    fn send_message(&mut self, message: &[u8]) -> bool;
    /// Returns the next message that arrived.
    fn take_message(&mut self) -> Option<Vec<u8>>;
    /// Passes events between the stack's parts, and acts on those for the application. Called last in every
    /// call.
    fn settle(&mut self);
    /// Returns whether rustls encrypts its packets, so that [`frames`] reads them.
    fn is_read(&self) -> bool {
        true
    }
    /// Returns the earliest deadline.
    fn deadline(&mut self) -> Option<Instant>;
    /// Returns the controller's values, once there is a connection.
    fn values(&mut self) -> Option<Values>;
    /// Returns why the connection is over.
    fn closed(&self) -> Option<&str>;
}

/// What a stack shows of its controller.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Values {
    /// Bytes.
    pub(crate) cwnd: u64,
    /// Bytes.
    pub(crate) ssthresh: Option<u64>,
    /// Bits per second.
    pub(crate) pacing_bps: Option<u64>,
    /// Bits per second.
    pub(crate) bandwidth_bps: Option<u64>,
    /// Packets declared lost.
    pub(crate) lost: u64,
    /// The RTT, where no pass-through sees its samples.
    pub(crate) rtt: Option<Rtt>,
    /// The largest datagram that the path is known to carry, in bytes.
    pub(crate) mtu: u16,
}

/// An end with its random numbers.
pub(crate) struct Side<S> {
    stack: S,
    entropy: Entropy,
    /// What a pass-through around the controller saw, where there is one.
    seen: Option<Seen>,
    /// The time of the newest call.
    now: Time,
    wake_at: Option<Time>,
    /// Whether it opened the connection: the end that sends.
    opens: bool,
    /// Datagrams sent.
    sent: u64,
    /// Bytes of the stream that were sent at least once.
    streamed: u64,
    values: Values,
}

impl<S: Stack> Side<S> {
    /// Returns the end that `make` makes, with random numbers of its own.
    pub(crate) fn new(
        random: &mut Random,
        seen: Option<&Seen>,
        make: impl FnOnce() -> Result<S, String>,
    ) -> Result<Self, String> {
        let mut entropy = Entropy::new(Random::stream(random.bits(), "end"));
        let now = Time::ZERO;
        let stack = clock::within(now, || entropy.within(make))?;
        Ok(Side {
            stack,
            entropy,
            seen: seen.cloned(),
            now,
            wake_at: None,
            opens: false,
            sent: 0,
            streamed: 0,
            values: Values::default(),
        })
    }

    /// Calls the stack, whose time is `now`.
    fn call<R>(&mut self, now: Time, act: impl FnOnce(&mut S) -> R) -> R {
        self.now = now;
        let Side { stack, entropy, .. } = self;
        let act = || {
            stack.arrive_at(clock::instant(now));
            let done = act(stack);
            stack.settle();
            done
        };
        let done = clock::within(now, || entropy.within(act));
        // Each call takes what is its own, and there is but one stream.
        self.streamed = self.streamed.max(frames::take());
        self.wake_at = self.stack.deadline().map(clock::time);
        done
    }

    /// Takes note of the sender's values.
    fn look(&mut self) {
        if self.opens {
            self.values = self.stack.values().unwrap_or(self.values);
        }
    }
}

impl<S: Stack> End for Side<S> {
    fn connect(&mut self, now: Time) {
        self.opens = true;
        self.call(now, |stack| stack.connect(clock::instant(now)));
    }

    fn receive(&mut self, now: Time, ecn: Ecn, payload: &[u8]) {
        self.call(now, |stack| stack.receive(clock::instant(now), ecn, payload));
        self.look();
    }

    fn transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<Transmit> {
        let ecn = self.call(now, |stack| stack.transmit(clock::instant(now), payload))?;
        self.sent += 1;
        // What the other end sends are ACKs.
        Some(Transmit { ecn, data: self.opens })
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.wake_at
    }

    fn on_wakeup(&mut self, now: Time) {
        if self.wake_at.is_some_and(|at| at <= now) {
            self.call(now, |stack| stack.on_timeout(clock::instant(now)));
            self.look();
        }
    }

    fn write(&mut self, now: Time, size: u64) -> u64 {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        self.call(now, |stack| stack.write(size)) as u64
    }

    fn stream_sent(&self) -> Option<u64> {
        self.stack.is_read().then_some(self.streamed)
    }

    fn finish(&mut self, now: Time) {
        self.call(now, Stack::finish);
    }

    fn read(&mut self, now: Time) -> u64 {
        self.call(now, Stack::read)
    }

    fn send_message(&mut self, now: Time, message: &[u8]) -> bool {
        self.call(now, |stack| stack.send_message(message))
    }

    fn take_message(&mut self) -> Option<Vec<u8>> {
        self.call(self.now, Stack::take_message)
    }

    fn state(&self) -> SenderState {
        let noted = self.seen.as_ref().map(Seen::read);
        SenderState {
            cwnd: Bytes(self.values.cwnd),
            pacing_rate: self.values.pacing_bps.map(Rate::from_bps),
            inflight: noted.map(|noted| Bytes(noted.inflight)),
            rtt: noted.map_or(self.values.rtt, |noted| noted.rtt),
            sent_packets: self.sent,
            lost_packets: self.values.lost,
        }
    }

    fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.seen.as_ref()?.take_sample()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let Values { ssthresh, bandwidth_bps, mtu, .. } = self.values;
        // Before the first loss there is none.
        if let Some(ssthresh) = ssthresh.filter(|bytes| *bytes < u64::MAX) {
            visit("ssthresh_bytes", ssthresh as f64);
        }
        if let Some(bandwidth) = bandwidth_bps {
            visit("bandwidth_bps", bandwidth as f64);
        }
        if mtu > 0 {
            visit("mtu_bytes", f64::from(mtu));
        }
    }

    fn closed(&self) -> Option<String> {
        self.stack.closed().map(ToString::to_string)
    }
}
