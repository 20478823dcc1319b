//! What a box reads off the flows that pass it: bytes delivered, bytes under way, delays.

use alloc::collections::BTreeMap;

use brakelight_core::packet::Packet;
use brakelight_core::time::{Duration, Time};

use super::{FORGET, SLEEP, Side};

/// A packet that has left and was not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Left {
    size: u32,
    at: Time,
    /// Whether one of the same number had left before: it gives no RTT (rfc6298 3).
    again: bool,
}

/// The flows that can be read, by their numbers.
#[derive(Clone, Debug)]
pub(super) struct Passing {
    side: Side,
    flows: BTreeMap<u32, Flow>,
    delivered: u64,
    under_way: u64,
    readable: u64,
    forgot_at: Time,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    /// What is under way, by sequence number. The simulator's count segments, and do not wrap.
    left: BTreeMap<u32, Left>,
    /// The highest number that left, and the next after it.
    next: u32,
    /// The cumulative acknowledgement heard last.
    acknowledged: u32,
    /// Milliseconds by which the sender's clock is behind this one at least, shortest delay included.
    offset_ms: Option<i64>,
    /// When it was last heard of.
    heard: Time,
}

impl Passing {
    pub(super) fn new(side: Side) -> Self {
        Passing {
            side,
            flows: BTreeMap::new(),
            delivered: 0,
            under_way: 0,
            readable: 0,
            forgot_at: Time::ZERO,
        }
    }

    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    pub(super) fn under_way(&self) -> u64 {
        self.under_way
    }

    pub(super) fn readable(&self) -> u64 {
        self.readable
    }

    /// Data arrives. Returns its delay above the shortest of its flow, where the link is behind.
    pub(super) fn on_arrival(&mut self, now: Time, packet: &impl Packet) -> Option<Duration> {
        packet.sequence()?;
        self.readable += u64::from(packet.size());
        if self.side == Side::Up {
            return None;
        }
        // rfc7323 3.2; clocks are compared in whole milliseconds, and wrap after 49 days.
        let value = i64::from(packet.timestamp()?);
        let flow = self.flows.entry(packet.flow().0).or_default();
        flow.heard = now;
        let here = (now.as_nanos() / 1_000_000) as i64;
        let difference = here - value;
        let least = flow.offset_ms.map_or(difference, |offset| offset.min(difference));
        flow.offset_ms = Some(least);
        Some(Duration::from_millis((difference - least) as u64))
    }

    /// Data leaves the shaper.
    pub(super) fn on_departure(&mut self, now: Time, packet: &impl Packet) {
        let (Side::Up, Some(number)) = (self.side, packet.sequence()) else { return };
        let flow = self.flows.entry(packet.flow().0).or_default();
        if number.wrapping_sub(flow.acknowledged) > u32::MAX / 2 {
            // A copy of what was acknowledged: nobody will acknowledge it again.
            return;
        }
        flow.heard = now;
        let again = number < flow.next;
        flow.next = flow.next.max(number.wrapping_add(1));
        let size = packet.size();
        self.under_way += u64::from(size);
        if let Some(before) = flow.left.insert(number, Left { size, at: now, again }) {
            self.under_way -= u64::from(before.size);
        }
    }

    /// An acknowledgement comes by. Returns the RTT of the newest packet that it newly reports, if that had
    /// left once.
    pub(super) fn on_acknowledgement(&mut self, now: Time, packet: &impl Packet) -> Option<Duration> {
        let says = packet.acknowledgement()?;
        let flow = self.flows.get_mut(&packet.flow().0)?;
        let mut newest: Option<Left> = None;
        let (delivered, under_way) = (&mut self.delivered, &mut self.under_way);
        let mut take = |left: Left| {
            *delivered += u64::from(left.size);
            *under_way -= u64::from(left.size);
            if newest.is_none_or(|newest| newest.at <= left.at) {
                newest = Some(left);
            }
        };
        while let Some(first) = flow.left.first_entry()
            && *first.key() < says.cumulative
        {
            take(first.remove());
        }
        flow.acknowledged = flow.acknowledged.max(says.cumulative);
        for block in says.blocks.iter().filter(|block| block.length > 0) {
            let start = says.cumulative.wrapping_add(u32::from(block.ahead));
            let end = start.saturating_add(u32::from(block.length));
            while let Some((&number, _)) = flow.left.range(start..end).next() {
                if let Some(left) = flow.left.remove(&number) {
                    take(left);
                }
            }
        }
        newest.filter(|left| !left.again).map(|left| now.since(left.at))
    }

    /// Forgets what was under way for too long, every second.
    pub(super) fn forget(&mut self, now: Time) {
        if now.since(self.forgot_at) < Duration::from_secs(1) {
            return;
        }
        self.forgot_at = now;
        let under_way = &mut self.under_way;
        for flow in self.flows.values_mut() {
            flow.left.retain(|_, left| {
                let stays = now.since(left.at) < FORGET;
                if !stays {
                    *under_way -= u64::from(left.size);
                }
                stays
            });
        }
        self.flows.retain(|_, flow| now.since(flow.heard) < SLEEP);
    }
}
