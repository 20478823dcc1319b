//! What drives a sender or a receiver by hand: a connection, and the events of one packet.

use brakelight_core::controller::{
    AckEvent, Connection, Marks, PacketInfo, ReceiverReport, RecoveryState, Rtt,
};
use brakelight_core::ecn::Ecn;
use brakelight_core::feedback::Arrival;
use brakelight_core::packet::Header;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

/// Payload of a packet: large, so that rounding to bytes shows in no digit.
pub(super) const MSS: u64 = 1_000_000;

/// The start of a connection with this window.
pub(super) fn connection(window_pkts: u64) -> Connection {
    Connection {
        mss: Bytes(MSS),
        overhead: Bytes(52),
        initial_window: Bytes(window_pkts * MSS),
        now: Time::ZERO,
        random: Random::stream(1, "check"),
    }
}

/// A packet of a backlogged sender.
pub(super) fn packet(number: u64, sent_at: Time) -> PacketInfo {
    PacketInfo {
        number,
        size: Bytes(MSS),
        sent_at,
        delivered: Bytes::ZERO,
        delivered_at: sent_at,
        first_sent_at: sent_at,
        inflight: Bytes(MSS),
        lost: Bytes::ZERO,
        app_limited: false,
        retransmission: false,
        tag: 0,
    }
}

/// The ACK of one packet, over a round trip of `rtt`, while `inflight_pkts` are on their way.
pub(super) fn ack(now: Time, rtt: Duration, acked: &[PacketInfo; 1], inflight_pkts: f64) -> AckEvent<'_> {
    let inflight = Bytes((inflight_pkts * MSS as f64) as u64);
    AckEvent {
        now,
        acked,
        newest: acked.last().map(|packet| packet.number),
        lost: &[],
        newly_acked: Bytes(MSS),
        growth: Bytes(MSS),
        newly_lost: Bytes::ZERO,
        inflight_before: inflight,
        inflight: inflight.saturating_sub(Bytes(MSS)),
        delivered: Bytes(MSS),
        total_lost: Bytes::ZERO,
        rtt: Rtt { sample: Some(rtt), smoothed: rtt, variation: Duration::ZERO, min: rtt },
        ack_delay: Duration::ZERO,
        round: 0,
        round_start: false,
        marks: Marks::default(),
        receive_times: &[],
        report: ReceiverReport::None,
        cwnd_limited: true,
        recovery: RecoveryState::Open,
    }
}

/// A packet that arrives at a receiver as soon as it was sent.
pub(super) fn arrival(now: Time, number: u64, ecn: Ecn) -> Arrival {
    Arrival {
        now,
        number,
        size: Bytes(MSS),
        ecn,
        cwr: false,
        header: Header::None,
        hash16: 0,
        sent_at: now,
        urgent: false,
    }
}
