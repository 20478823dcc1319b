//! The books that [`Checked`](super::Checked) keeps of a flow: what the events add up to, and whether each of
//! them agrees with those before it.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Invariant, Violation};
use crate::controller::{
    AckEvent, Exact, IdleEvent, LossEvent, PacketInfo, RecoveryState, SendEvent, SpuriousEvent, Timeout,
    TimeoutEvent,
};
use crate::time::Time;
use crate::units::Bytes;

/// Violations kept; more of them say little.
const MOST: usize = 16;
/// Packets remembered. A packet declared lost longer ago than this many is forgotten.
pub const REMEMBERED: usize = 1 << 17;

/// What became of a packet, as far as the events tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PacketState {
    InFlight,
    Acked,
    Lost,
    /// Lost when an episode was undone: still lost, or in flight again.
    Unclear,
    Replaced,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    size: u64,
    sent_at: Time,
    tag: u64,
    delivered: u64,
    app_limited: bool,
    retransmission: bool,
    state: PacketState,
}

/// What the events add up to.
#[derive(Clone, Debug, Default)]
pub(super) struct Books {
    pub(super) violations: Vec<Violation>,
    now: Time,
    /// Packets from number `base` on.
    packets: VecDeque<Packet>,
    base: u64,
    next: Option<u64>,
    sent: u64,
    sent_packets: u64,
    inflight: u64,
    unclear: u64,
    delivered: u64,
    lost: u64,
    replaced: u64,
    marked: u64,
    /// What had been delivered when a packet was last announced as application-limited.
    limited_at: Option<u64>,
    round: u64,
    round_end: u64,
    state: RecoveryState,
    /// Since the last end of an episode: whether a loss or a CE mark was told, and whether it was a loss.
    reacted: bool,
    lossy: bool,
    /// The number after the newest packet that was out at the timeout being repaired.
    timeout_end: Option<u64>,
    /// What ended the repair of a timeout, told just before the ACK that did: all below is to be settled by
    /// then.
    repaired_below: Option<u64>,
    /// Whether a loss or a timeout was told whose packets no ACK event has listed yet.
    unlisted: bool,
    /// Whether an episode's end was told since the last ACK event, and whether it was undone.
    ended: bool,
    undone: bool,
    min_rtt: Option<u64>,
    window: Window,
}

/// Rounds in a row, the current one included, of which one must have used the window for it to grow. What
/// was sent in one is acknowledged in the next, and the host may notice a round later that the application
/// ran dry. That makes three; the other three cover what the events do not show when a round is judged. Data
/// that waits for the pacer counts for the host at once (RFC 9002 section 7.8) and here when it leaves, which
/// may be after the round, or never if an application takes it back. No number covers the latter.
///
/// What fewer rounds do was measured with the modelled hosts and every controller. It is the host's
/// `cwnd_limited` that needs them, whatever the controller. With one, an application that pauses breaks it
/// (New Reno over TCP), and with two one of a constant rate (E-ABC over TCP). Three are enough for every kind
/// of traffic on a clean path (`crates/sim/tests/usage.rs`). Of random paths (`crates/sim/tests/contract.rs`)
/// some break three, where delays jump and ACKs are lost, and four, where pauses are random and an ACK stands
/// for four packets. None of 150 broke five.
const USED_WITHIN: u64 = 6;

/// What is known of the window's use.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// The largest packet so far.
    packet: u64,
    /// Bytes sent in this round, and in the one before.
    sent: (u64, u64),
    /// The round that last used the window, and the largest window that was ever used.
    used_in: u64,
    largest_used: Bytes,
    /// Whether an event of this round said that the window was the limit.
    told_limited: bool,
    /// The window before and after its largest growth in this round by an ACK.
    grown: Option<(Bytes, Bytes)>,
}

impl Window {
    fn is_used(&mut self, round: u64, cwnd: Bytes) {
        self.used_in = round;
        self.largest_used = self.largest_used.max(cwnd);
    }
}

/// What a controller allows before an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    pub(super) cwnd: Bytes,
    pub(super) ssthresh: Option<Bytes>,
}

impl Allowed {
    /// Whether `inflight` bytes, or `unpaced` without a pacer, are enough of the window for it to grow: all
    /// but less than `packet`, or more than half in slow start.
    fn is_used_by(self, inflight: u64, unpaced: u64, packet: u64) -> bool {
        let in_slow_start = self.ssthresh.is_some_and(|ssthresh| self.cwnd < ssthresh);
        unpaced + packet > self.cwnd.0 || in_slow_start && 2 * inflight > self.cwnd.0
    }
}

impl Books {
    fn breach(&mut self, invariant: Invariant, detail: String) {
        if self.violations.len() < MOST {
            self.violations.push(Violation { invariant, at: self.now, detail });
        }
    }

    fn expect(&mut self, invariant: Invariant, holds: bool, detail: impl FnOnce() -> String) {
        if !holds {
            self.breach(invariant, detail());
        }
    }

    pub(super) fn advance(&mut self, now: Time) {
        let before = self.now;
        self.expect(Invariant::Time, now >= before, || format!("now is {now:?} after {before:?}"));
        self.now = self.now.max(now);
    }

    fn packet(&mut self, number: u64) -> Option<&mut Packet> {
        let index = number.checked_sub(self.base)?;
        self.packets.get_mut(usize::try_from(index).ok()?)
    }

    pub(super) fn on_send(&mut self, event: &SendEvent, allowed: Allowed) {
        self.advance(event.now);
        self.window.packet = self.window.packet.max(event.size.0);
        self.window.sent.0 += event.size.0;
        // What waits behind a packet that is not limited by the application is not known: enough, perhaps.
        // While losses are repaired, what was sent under the window before is not all acknowledged.
        let waits = !event.app_limited || event.retransmission;
        let inflight = event.inflight.0 + event.size.0;
        // Without its pacer the flow would have sent at once what it sends in a round trip (rfc9002 7.8).
        let unpaced = inflight.max(self.window.sent.0 + self.window.sent.1);
        if waits || allowed.is_used_by(inflight, unpaced, self.window.packet) {
            self.window.is_used(self.round, allowed.cwnd);
        }
        if let Some(next) = self.next {
            self.expect(Invariant::Numbers, event.number == next, || {
                format!("packet {} follows {}", event.number, next.wrapping_sub(1))
            });
        }
        if let Some(number) = event.replaces {
            match self.packet(number).map(|packet| (packet.state, packet.size)) {
                Some((PacketState::InFlight | PacketState::Unclear, size)) => {
                    self.leave_flight(number, size);
                    self.replaced += size;
                    if let Some(packet) = self.packet(number) {
                        packet.state = PacketState::Replaced;
                    }
                }
                other => {
                    self.breach(Invariant::State, format!("packet {number} is replaced but is {other:?}"))
                }
            }
        }
        // Losses are listed by the next ACK event, so less may be in flight than the events so far say.
        self.compare_inflight("on_send: inflight", event.inflight.0, 0, self.inflight + self.unclear);
        let delivered = self.delivered;
        let still_limited = self.limited_at == Some(delivered);
        self.expect(Invariant::Limit, event.app_limited || !still_limited, || {
            format!(
                "packet {} is not application-limited, and none was delivered since one was",
                event.number
            )
        });
        if event.app_limited {
            self.limited_at = Some(delivered);
        }
        if self.packets.is_empty() || self.next != Some(event.number) {
            // The first packet, or numbers that were broken off: begin anew.
            self.packets.clear();
            self.base = event.number;
        }
        self.next = Some(event.number + 1);
        self.sent += event.size.0;
        self.sent_packets += 1;
        self.inflight += event.size.0;
        self.packets.push_back(Packet {
            size: event.size.0,
            sent_at: event.now,
            tag: 0,
            delivered,
            app_limited: event.app_limited,
            retransmission: event.retransmission,
            state: PacketState::InFlight,
        });
    }

    /// What the controller put on the packet just announced.
    pub(super) fn note_tag(&mut self, tag: u64) {
        if let Some(packet) = self.packets.back_mut() {
            packet.tag = tag;
        }
    }

    fn compare_inflight(&mut self, what: &str, told: u64, least: u64, most: u64) {
        self.expect(Invariant::Sums, (least..=most).contains(&told), || {
            format!("{what} is {told}, the packets say {least} to {most}")
        });
    }

    fn leave_flight(&mut self, number: u64, size: u64) {
        match self.packet(number).map(|packet| packet.state) {
            Some(PacketState::InFlight) => self.inflight -= size,
            Some(PacketState::Unclear) => self.unclear -= size,
            _ => {}
        }
    }

    pub(super) fn on_ack(&mut self, event: &AckEvent<'_>, allowed: Allowed) {
        self.advance(event.now);
        if event.round_start {
            self.compare_usage();
            self.window.sent = (0, self.window.sent.0);
        }
        // While losses are repaired, the host may hold less in flight than the window allows.
        let repairs = event.recovery != RecoveryState::Open || self.ended || !event.lost.is_empty();
        let inflight = event.inflight_before.0;
        if repairs || allowed.is_used_by(inflight, inflight, self.window.packet) {
            self.window.is_used(event.round, allowed.cwnd);
        }
        self.window.told_limited |= event.cwnd_limited;
        for (what, list, sum) in
            [("acked", event.acked, event.newly_acked), ("lost", event.lost, event.newly_lost)]
        {
            let sorted = list.windows(2).all(|pair| pair[0].number < pair[1].number);
            self.expect(Invariant::Order, sorted, || format!("`{what}` is not sorted by number"));
            let total: Bytes = list.iter().map(|info| info.size).sum();
            self.expect(Invariant::Sums, total == sum, || {
                format!("newly {what} is {sum:?}, the packets listed are {total:?}")
            });
        }
        let newest = event.acked.last().map(|info| info.number);
        self.expect(Invariant::Order, event.newest == newest, || {
            format!("`newest` is {:?}, the last packet of `acked` is {newest:?}", event.newest)
        });
        let before = self.inflight + self.unclear;
        // What a timer had declared lost left the flight before: some of it is listed now, some has arrived
        // after all.
        let settled = event.newly_lost.0 + event.newly_acked.0;
        let least = if self.unlisted || self.undone { 0 } else { self.inflight.saturating_sub(settled) };
        self.compare_inflight("inflight_before", event.inflight_before.0, least, before);
        for info in event.lost {
            self.lose(info);
        }
        for info in event.acked {
            self.acknowledge(info, event.lost);
        }
        self.compare_sums(event);
        self.compare_round(event);
        self.compare_marks(event);
        self.compare_recovery(event);
        self.compare_growth(event);
        self.compare_rtt(event);
        self.forget();
    }

    fn lose(&mut self, info: &PacketInfo) {
        let number = info.number;
        let size = info.size.0;
        match self.packet(number).map(|packet| packet.state) {
            Some(PacketState::InFlight | PacketState::Unclear) => {
                self.compare_memory(info);
                self.leave_flight(number, size);
                self.lost += size;
                if let Some(packet) = self.packet(number) {
                    packet.state = PacketState::Lost;
                }
            }
            other => self.breach(Invariant::State, format!("packet {number} is lost but is {other:?}")),
        }
    }

    fn acknowledge(&mut self, info: &PacketInfo, lost: &[PacketInfo]) {
        let number = info.number;
        let size = info.size.0;
        if lost.iter().any(|lost| lost.number == number) {
            self.breach(Invariant::Lost, format!("packet {number} is acknowledged and lost at once"));
        }
        match self.packet(number).map(|packet| packet.state) {
            Some(PacketState::InFlight | PacketState::Unclear) => self.leave_flight(number, size),
            Some(PacketState::Lost) => self.lost -= size,
            other => {
                self.breach(Invariant::State, format!("packet {number} is acknowledged but is {other:?}"));
                return;
            }
        }
        self.compare_memory(info);
        self.delivered += size;
        if let Some(packet) = self.packet(number) {
            packet.state = PacketState::Acked;
        }
    }

    fn compare_memory(&mut self, info: &PacketInfo) {
        let Some(&mut sent) = self.packet(info.number) else { return };
        let same = sent.size == info.size.0
            && sent.sent_at == info.sent_at
            && sent.tag == info.tag
            && sent.delivered == info.delivered.0
            && sent.app_limited == info.app_limited
            && sent.retransmission == info.retransmission
            && info.inflight >= info.size
            && info.first_sent_at <= info.sent_at
            && info.delivered_at <= info.sent_at;
        self.expect(Invariant::Memory, same, || format!("{info:?} was sent as {sent:?}"));
    }

    fn compare_sums(&mut self, event: &AckEvent<'_>) {
        let delivered = self.delivered;
        self.expect(Invariant::Sums, event.delivered.0 == delivered, || {
            format!("delivered is {:?}, the packets say {delivered}", event.delivered)
        });
        self.compare_inflight("inflight", event.inflight.0, self.inflight, self.inflight + self.unclear);
        self.compare_inflight("total_lost", event.total_lost.0, self.lost, self.lost + self.unclear);
        let sum = event.delivered.0 + event.total_lost.0 + event.inflight.0 + self.replaced;
        let sent = self.sent;
        self.expect(Invariant::Sums, sum == sent, || {
            format!("delivered + lost + inflight + replaced is {sum}, sent is {sent}")
        });
    }

    fn compare_round(&mut self, event: &AckEvent<'_>) {
        let expected = self.round + u64::from(event.round_start);
        self.expect(Invariant::Round, event.round == expected, || {
            format!("round is {}, round_start {}: it should be {expected}", event.round, event.round_start)
        });
        if event.round_start {
            let end = self.round_end;
            let newest = event.acked.last().map(|info| info.delivered.0);
            self.expect(Invariant::Round, newest.is_some_and(|delivered| delivered >= end), || {
                format!("a round begins, but the newest packet was sent at {newest:?} of {end} delivered")
            });
            self.round_end = event.delivered.0;
        }
        self.round = event.round;
    }

    fn compare_marks(&mut self, event: &AckEvent<'_>) {
        let marks = &event.marks;
        let packets = marks.accelerate.packets + marks.brake.packets + marks.ce.packets;
        self.marked += packets;
        let (marked, sent) = (self.marked, self.sent_packets);
        self.expect(Invariant::Marks, marked <= sent, || format!("{marked} packets marked, {sent} sent"));
        let listed = event.acked.len() as u64;
        let echoed = marks.exact == Exact::Neither;
        self.expect(Invariant::Marks, !echoed || packets <= listed, || {
            format!("an echoed state marks {packets} packets of {listed}")
        });
    }

    fn compare_recovery(&mut self, event: &AckEvent<'_>) {
        let told = event.recovery;
        let fits = match told {
            RecoveryState::Open => {
                // It was open, or the end was told.
                (self.state == RecoveryState::Open && self.timeout_end.is_none()) || self.ended
            }
            RecoveryState::Recovery => self.reacted && self.timeout_end.is_none(),
            RecoveryState::Loss => self.timeout_end.is_some(),
        };
        if let Some(end) = self.repaired_below.take() {
            let out = (self.base..end).find(|&number| {
                self.packet(number).is_some_and(|packet| packet.state == PacketState::InFlight)
            });
            self.expect(Invariant::Recovery, out.is_none(), || {
                format!("the repair of a timeout ends while packet {out:?} that was out is in flight")
            });
        }
        let state = self.state;
        self.expect(Invariant::Recovery, fits, || format!("{told:?} follows {state:?} for no reason told"));
        self.state = told;
        self.ended = false;
        self.undone = false;
        self.unlisted = false;
    }

    fn compare_growth(&mut self, event: &AckEvent<'_>) {
        let most = if event.in_recovery() { Bytes::ZERO } else { event.newly_acked };
        self.expect(Invariant::Growth, event.growth <= most, || {
            format!("growth is {:?} in {:?}, at most {most:?} is right", event.growth, event.recovery)
        });
    }

    fn compare_rtt(&mut self, event: &AckEvent<'_>) {
        let Some(sample) = event.rtt.sample else { return };
        let (sample, min) = (sample.as_nanos(), event.rtt.min.as_nanos());
        let before = self.min_rtt;
        let sound = sample > 0
            && min <= sample
            && before.is_none_or(|before| min <= before)
            && !event.rtt.smoothed.is_zero();
        self.expect(Invariant::Rtt, sound, || format!("{:?} after a minimum of {before:?} ns", event.rtt));
        self.min_rtt = Some(min);
    }

    /// An ACK has changed the window of a controller that promises not to let one grow that is not used.
    /// One that returns to what it was, after a timeout for instance, does not grow.
    pub(super) fn note_window(&mut self, before: Bytes, after: Bytes) {
        if after > before && after > self.window.largest_used + Bytes(self.window.packet) {
            self.window.grown = Some((before, after));
        }
    }

    /// A round ends: what was told of the window in it, and whether that was used.
    fn compare_usage(&mut self) {
        let (round, used_in) = (self.round, self.window.used_in);
        let used = used_in + USED_WITHIN > round;
        let told = core::mem::take(&mut self.window.told_limited);
        self.expect(Invariant::Usage, used || !told, || {
            format!("`cwnd_limited` is set in round {round}, the window was last used in round {used_in}")
        });
        if let Some((before, after)) = self.window.grown.take() {
            self.expect(Invariant::Usage, used, || {
                format!(
                    "cwnd goes from {before:?} to {after:?} in round {round}, the window was last used in \
                     round {used_in}"
                )
            });
        }
    }

    fn forget(&mut self) {
        while let Some(front) = self.packets.front() {
            let forgettable = match front.state {
                PacketState::Acked | PacketState::Replaced => true,
                PacketState::Lost | PacketState::Unclear => self.packets.len() > REMEMBERED,
                PacketState::InFlight => false,
            };
            if !forgettable {
                break;
            }
            self.packets.pop_front();
            self.base += 1;
        }
    }

    pub(super) fn on_episode(&mut self, event: &LossEvent, loss: bool) {
        self.advance(event.now);
        self.unlisted |= loss;
        if loss {
            let open = !self.lossy;
            self.expect(Invariant::Episode, open, || "a loss is told within an episode of losses".into());
            self.lossy = true;
        }
        self.reacted = true;
    }

    pub(super) fn on_timeout(&mut self, event: &TimeoutEvent) {
        self.advance(event.now);
        if event.kind != Timeout::Pto {
            self.unlisted = true;
            self.timeout_end = Some(self.next.unwrap_or_default());
            self.lossy = false;
            self.reacted = true;
            self.ended = false;
            self.state = RecoveryState::Loss;
        }
    }

    pub(super) fn on_spurious_loss(&mut self, event: &SpuriousEvent) {
        self.advance(event.now);
        for packet in &mut self.packets {
            if packet.state == PacketState::Lost {
                packet.state = PacketState::Unclear;
                self.lost -= packet.size;
                self.unclear += packet.size;
            }
        }
        self.undone = true;
        self.lossy = false;
    }

    pub(super) fn on_recovery_exit(&mut self, now: Time) {
        self.advance(now);
        if let Some(end) = self.timeout_end.take()
            && !self.undone
        {
            self.repaired_below = Some(end);
        }
        self.ended = true;
        self.reacted = false;
        self.lossy = false;
        self.state = RecoveryState::Open;
    }

    pub(super) fn on_idle_restart(&mut self, event: &IdleEvent) {
        self.advance(event.now);
        let (inflight, unlisted) = (self.inflight, self.unlisted);
        self.expect(Invariant::Idle, inflight == 0 || unlisted, || format!("{inflight} bytes are in flight"));
    }
}
