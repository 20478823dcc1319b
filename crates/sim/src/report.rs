//! What an endpoint can be asked about the flow it runs.

use std::collections::BTreeMap;

use brakelight_apps::call::FrameRecord;
use brakelight_core::controller::{Controller, ControllerFailure, RecoveryState, Rtt};
use brakelight_core::ecn::Mark;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_scenario::outcome::MarkCounts;

use crate::host::FlowHost;
use crate::packet::SimPacket;

/// Counters of one flow since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// Payload bytes handed to the receiving application, each once.
    pub goodput_bytes: u64,
    /// Data packets sent again.
    pub retransmitted_packets: u64,
}

/// What a flow's sender knows and wants. Counts are since the flow began; sizes are payload bytes.
///
/// Of a flow of many short connections, counts and bytes in flight are sums over them; it has no window and
/// no RTT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderView {
    /// The controller's window; zero before the flow starts.
    pub cwnd: Bytes,
    /// The controller's pacing rate, if it sets one.
    pub pacing_rate: Option<Rate>,
    /// Bytes in flight.
    pub inflight: Bytes,
    /// The newest, the smoothed and the smallest RTT; `None` before the first sample.
    pub rtt: Option<Rtt>,
    /// Data packets sent, retransmissions included.
    pub sent_packets: u64,
    /// Data packets acknowledged.
    pub delivered_packets: u64,
    /// Payload acknowledged; that of a retransmission counts again if both arrived.
    pub delivered_bytes: Bytes,
    /// Data packets declared lost, some of them by mistake.
    pub lost_packets: u64,
    /// Data packets sent again.
    pub retransmitted_packets: u64,
    /// Packets that were acknowledged with a mark.
    pub marks: MarkCounts,
    /// Whether losses are being repaired.
    pub recovery: RecoveryState,
    /// Whether the application had nothing to send though the window was open, and what was in flight then is
    /// not yet delivered.
    pub app_limited: bool,
}

/// An endpoint whose state can be read from outside.
pub trait Reporting {
    /// What it is, for the [identity](brakelight_scenario::identity) of its runs.
    const HOST: &'static str;

    /// Returns the counters so far.
    fn counters(&self) -> FlowCounters;

    /// Returns the newest RTT sample that was not taken yet.
    fn take_rtt_sample(&mut self) -> Option<Duration>;

    /// Returns why the flow's controller decides nothing any more, if it failed.
    fn failure(&self) -> Option<&ControllerFailure> {
        None
    }

    /// Returns the sender's window; zero before the flow starts.
    fn cwnd(&self) -> Bytes;

    /// Returns the sender as it stands. An endpoint that does not implement this shows its window and what it
    /// sent again.
    fn sender(&self) -> SenderView {
        let retransmitted_packets = self.counters().retransmitted_packets;
        SenderView { cwnd: self.cwnd(), retransmitted_packets, ..SenderView::default() }
    }

    /// What the sender shows of itself, by name, in the unit the name ends in.
    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64));

    /// Returns the stages that the sender's controller went through until `now`, where the run records state.
    /// None of an endpoint that does not implement this.
    fn stages(&self, _now: Time) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    /// What the application saw until `now`, by name, in the unit the name ends in; nothing for a plain
    /// stream of bytes.
    fn application(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64));

    /// Returns what became of each frame of a call, where that is recorded. Nothing of an endpoint that does
    /// not implement this.
    fn recorded_frames(&self) -> &[FrameRecord] {
        &[]
    }

    /// Returns the mark that `ack`, an acknowledgement on its way, echoes for all that it newly covers. None
    /// if that is not known, as of an endpoint that does not implement this.
    fn echoed_mark(&self, _ack: &SimPacket) -> Option<Mark> {
        None
    }
}

impl Reporting for FlowHost {
    const HOST: &'static str = brakelight_scenario::identity::MODELLED;

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

    fn failure(&self) -> Option<&ControllerFailure> {
        FlowHost::failure(self)
    }

    fn cwnd(&self) -> Bytes {
        self.controller().map_or(Bytes::ZERO, Controller::cwnd)
    }

    fn sender(&self) -> SenderView {
        FlowHost::sender(self)
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        FlowHost::inspect(self, visit);
    }

    fn stages(&self, now: Time) -> BTreeMap<String, f64> {
        FlowHost::stages(self, now)
    }

    fn application(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        FlowHost::application(self, now, visit);
    }

    fn recorded_frames(&self) -> &[FrameRecord] {
        FlowHost::recorded_frames(self)
    }

    fn echoed_mark(&self, ack: &SimPacket) -> Option<Mark> {
        FlowHost::echoed_mark(self, ack)
    }
}
