//! What the peer says of single packets: when each arrived, and with which mark.
//!
//! A peer that reports gives QUIC-DC its one-way delays, and BMCC the marks from which its receiver would
//! estimate the load: that receiver runs here, on what was reported, beside its sender. One that does not
//! report leaves QUIC-DC the round trip: a packet then counts as arrived when its ACK came, less the delay
//! that the receiver admits, and what queues on the way back counts as well.

use std::collections::VecDeque;

use brakelight_core::controller::{PacketInfo, ReceiveTime, ReceiverReport};
use brakelight_core::ecn::Encoding;
use brakelight_core::feedback::{Arrival, Feedback, Receiver};
use brakelight_core::packet::Header;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_registry::{AnyFeedback, Carries, ControllerConfig};

use crate::report::{self, Unwrapper};

/// Round trips without a report after which none is waited for.
const PATIENCE: u64 = 4;
/// Packets remembered for reports: beyond half the range of their short numbers nothing could be told apart.
const MOST: usize = 1 << 15;

/// Where receive times come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// The controller does not ask for them.
    Unused,
    /// No report has come yet.
    Awaited,
    /// The peer's reports.
    Reported,
    /// Round trips: the peer does not report.
    RoundTrip,
}

#[derive(Clone, Copy, Debug)]
struct Logged {
    wire: u64,
    own: u64,
    at: Time,
    size: u64,
}

/// What is known of the peer.
#[derive(Debug)]
pub(super) struct Peer {
    times: Times,
    /// The receiver that runs here, for schemes whose own receiver the peer does not have.
    receiver: Option<Box<AnyFeedback>>,
    log: VecDeque<Logged>,
    clock: Unwrapper,
}

impl Peer {
    pub(super) fn new(controller: &ControllerConfig, times: bool, encoding: Encoding, mss: u64) -> Self {
        let feedback = controller.feedback();
        let times = if times { Times::Awaited } else { Times::Unused };
        let receiver = (feedback.carries() == Carries::LoadFactor)
            .then(|| Box::new(feedback.build(&Receiver { encoding, ack_every: 1, mss: Bytes(mss) })));
        Peer { times, receiver, log: VecDeque::new(), clock: Unwrapper::default() }
    }

    pub(super) fn times(&self) -> Times {
        self.times
    }

    /// Whether the controller has a use for reports.
    pub(super) fn wants_reports(&self) -> bool {
        self.receiver.is_some() || self.times == Times::Awaited
    }

    fn listens(&self) -> bool {
        self.receiver.is_some() || matches!(self.times, Times::Awaited | Times::Reported)
    }

    /// Packet `wire`, which the controller knows as `own`, left.
    pub(super) fn on_sent(&mut self, wire: u64, own: u64, at: Time, size: u64) {
        if self.listens() {
            if self.log.len() == MOST {
                self.log.pop_front();
            }
            self.log.push_back(Logged { wire, own, at, size });
        }
    }

    /// A report came.
    pub(super) fn on_report(
        &mut self,
        now: Time,
        report: &report::FeedbackPacket,
        times: &mut Vec<ReceiveTime>,
        said: &mut ReceiverReport,
    ) {
        if self.times == Times::Awaited {
            self.times = Times::Reported;
        }
        let Some(newest) = self.log.back().map(|packet| packet.wire) else { return };
        let written_at = self.clock.written_at(report.timestamp);
        for block in &report.blocks {
            for (place, metric) in block.metrics.iter().enumerate() {
                let Some(metric) = metric else { continue };
                let wire = report::expand(block.begin.wrapping_add(place as u16), newest);
                // A packet that was never sent, or long ago, tells nothing.
                let Ok(place) = self.log.binary_search_by_key(&wire, |packet| packet.wire) else { continue };
                let packet = self.log[place];
                if let (Times::Reported, Some(before)) = (self.times, metric.before) {
                    let received_at = written_at.saturating_sub(before);
                    times.push(ReceiveTime { number: packet.own, sent_at: packet.at, received_at });
                }
                if let Some(receiver) = &mut self.receiver {
                    receiver.on_packet(&Arrival {
                        now,
                        number: packet.own,
                        size: Bytes(packet.size),
                        ecn: metric.ecn,
                        cwr: false,
                        header: Header::None,
                        hash16: super::hash16(wire),
                        sent_at: packet.at,
                        urgent: false,
                    });
                    let load = receiver.on_ack_sent(now, false).report;
                    if load != ReceiverReport::None {
                        *said = load;
                    }
                }
            }
        }
    }

    /// An ACK that came after `delay` in its receiver, with the packet that gave its RTT sample, in round
    /// trip number `round`.
    pub(super) fn complete(
        &mut self,
        now: Time,
        delay: Duration,
        newest: Option<&PacketInfo>,
        round: u64,
        times: &mut Vec<ReceiveTime>,
    ) {
        if self.times == Times::Awaited && round > PATIENCE {
            self.times = Times::RoundTrip;
            self.log = VecDeque::new();
        }
        if let (Times::RoundTrip, Some(newest)) = (self.times, newest) {
            let received_at = now.saturating_sub(delay).max(newest.sent_at);
            times.push(ReceiveTime { number: newest.number, sent_at: newest.sent_at, received_at });
        }
    }
}
