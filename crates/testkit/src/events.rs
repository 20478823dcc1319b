//! Events for the unit tests of controllers: plain ones, to be adjusted by the test.

use brakelight_core::controller::{
    AckEvent, Connection, IdleEvent, LossEvent, Marks, PacketInfo, ReceiverReport, RecoveryState, Rtt,
    SendEvent, SpuriousEvent, Timeout, TimeoutEvent,
};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

/// Payload of every packet: round, so that arithmetic is easy to follow.
pub const MSS: Bytes = Bytes(1000);

/// A connection that starts at time zero with `initial_pkts` packets.
pub fn connection(initial_pkts: u64) -> Connection {
    Connection {
        mss: MSS,
        overhead: Bytes(52),
        initial_window: Bytes(initial_pkts * MSS.0),
        now: Time::ZERO,
        random: Random::stream(1, "controller"),
    }
}

/// `count` packets of one MSS.
pub fn packets(count: u64) -> Bytes {
    Bytes(count * MSS.0)
}

/// The packet `number`, sent at `sent_at`.
pub fn packet(number: u64, sent_at: Time) -> PacketInfo {
    PacketInfo {
        number,
        size: MSS,
        sent_at,
        delivered: Bytes(number * MSS.0),
        delivered_at: sent_at,
        first_sent_at: sent_at,
        inflight: MSS,
        lost: Bytes::ZERO,
        app_limited: false,
        retransmission: false,
        tag: 0,
    }
}

/// An ACK of `acked` at `now` with a sample of `rtt`, which is also the smoothed and the smallest RTT, while
/// the window is the limit and much is in flight.
pub fn ack<'a>(now: Time, acked: &'a [PacketInfo], rtt: Duration) -> AckEvent<'a> {
    let newly_acked = acked.iter().map(|packet| packet.size).sum();
    AckEvent {
        now,
        acked,
        newest: acked.last().map(|packet| packet.number),
        lost: &[],
        newly_acked,
        growth: newly_acked,
        newly_lost: Bytes::ZERO,
        inflight_before: packets(1_000_000),
        inflight: packets(1_000_000),
        delivered: newly_acked,
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

/// A packet that leaves at `now` with `inflight` ahead of it.
pub fn send(now: Time, number: u64, inflight: Bytes) -> SendEvent {
    SendEvent {
        now,
        size: MSS,
        number,
        retransmission: false,
        replaces: None,
        inflight,
        app_limited: false,
        srtt: Some(Duration::from_millis(100)),
    }
}

/// One lost packet, noticed at `now`.
pub fn loss(now: Time) -> LossEvent {
    LossEvent {
        now,
        sent_at: now.saturating_sub(Duration::from_millis(100)),
        inflight: packets(100),
        lost: MSS,
        srtt: Duration::from_millis(100),
        min_rtt: Duration::from_millis(100),
    }
}

/// A first timeout of `kind`.
pub fn timeout(now: Time, kind: Timeout) -> TimeoutEvent {
    TimeoutEvent { now, kind, inflight: packets(100), repeated: false }
}

/// The last episode was a mistake.
pub fn spurious(now: Time, timeout: bool) -> SpuriousEvent {
    SpuriousEvent { now, timeout }
}

/// The end of an idle period, with an RTO of 300 ms.
pub fn idle(now: Time, idle: Duration) -> IdleEvent {
    IdleEvent { now, idle, rto: Duration::from_millis(300) }
}
