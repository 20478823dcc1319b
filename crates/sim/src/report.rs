//! What an endpoint can be asked about the flow it runs.

use brakelight_core::controller::Controller;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use crate::host::FlowHost;

/// Counters of one flow since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// Payload bytes handed to the receiving application, each once.
    pub goodput_bytes: u64,
    /// Data packets sent again.
    pub retransmitted_packets: u64,
}

/// A look at a flow's endpoint from outside.
pub trait Reporting {
    /// Counters so far.
    fn counters(&self) -> FlowCounters;

    /// The newest RTT sample that was not taken yet.
    fn take_rtt_sample(&mut self) -> Option<Duration>;

    /// The sender's window; zero before the flow starts.
    fn cwnd(&self) -> Bytes;

    /// What the sender shows of itself, by name, in the unit the name ends in.
    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64));

    /// What the application saw until `now`, by name, in the unit the name ends in; nothing for a plain stream of bytes.
    fn application(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64));
}

impl Reporting for FlowHost {
    fn counters(&self) -> FlowCounters {
        let counters = FlowHost::counters(self);
        FlowCounters {
            goodput_bytes: counters.goodput_bytes,
            retransmitted_packets: counters.retransmitted_packets,
        }
    }

    #[inline]
    fn take_rtt_sample(&mut self) -> Option<Duration> {
        FlowHost::take_rtt_sample(self)
    }

    fn cwnd(&self) -> Bytes {
        self.controller().map_or(Bytes::ZERO, Controller::cwnd)
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        FlowHost::inspect(self, visit);
    }

    fn application(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        FlowHost::application(self, now, visit);
    }
}
