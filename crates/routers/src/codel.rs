//! CoDel, Controlled Delay (Nichols, Jacobson et al., RFC 8289): drops at the head once packets have waited
//! longer than a target for a whole interval, then ever more often until they no longer do.
//!
//! ```text
//! sojourn >= target, and more than an MTU waits, for a whole interval:
//!                                                                    drop the head, enter the dropping state
//! in the dropping state:  the n-th drop is due interval / sqrt(n) after the one before          rfc8289 5.6
//! sojourn < target, or no more than an MTU waits:                    leave it
//! entered again within 16 intervals of the last drop:  n goes on from how far it had risen      rfc8289 5.5
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | TARGET | `target` | s | 5 ms | rfc8289 4.3 |
//! | INTERVAL | `interval` | s | 100 ms | rfc8289 4.2 |
//! | maxpacket | `mtu` | bytes | 1500 | rfc8289 5.5: the largest packet seen (D1) |
//! | - | `ecn` | - | false | rfc8289 3, where it may mark instead |
//! | - | `drop` | - | `head` | rfc8289 5.5; `behind-head` is Mahimahi's (D3) |
//! | - | `delay` | - | `sojourn` | rfc8289 5.5; `standing` for links that serve in bursts (D4) |
//!
//! # Deviations
//!
//! - D1. `mtu` is given, not learned: the first packets are then treated as all others.
//! - D2. With `ecn` a marked packet leaves at once and the next drop or mark is scheduled, as Linux 6.12
//!   codel_impl.h, codel_dequeue, does: RFC 8289 names marking and gives no code for it. Every drop and mark
//!   counts in n, also the one that ends the dropping state, as there.
//! - D3. `drop=behind-head`: Mahimahi's `codel_packet_queue.cc` computes everything as above but takes the
//!   packet behind the head away and delivers the head: what it pops next hides the variable that was meant
//!   to receive it. Runs measured with Mahimahi's CoDel are to be compared with this.
//! - D4. `delay=standing` takes [`bursts`](super::bursts)' standing time in place of the sojourn time.

use brakelight_core::ecn::{Ecn, Mark};
use brakelight_core::packet::Packet;
use brakelight_core::parameters::ParameterError;
use brakelight_core::queue::{
    Backlog, Dequeued, Dropped, Drops, LinkView, Place, Queue, Reason, may_mark_ce,
};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit};

use super::bursts::{Bursts, Waiting};
use super::fifo::Fifo;

choices! {
    /// Which packet is dropped.
    pub enum DropAt {
        /// The head.
        Head = "head",
        /// The one behind the head, as in Mahimahi.
        BehindHead = "behind-head",
    }
}

parameters! {
    /// CoDel's settings.
    pub struct Config {
        check consistent;
        /// Sojourn time that the queue may settle at.
        target: Duration = Duration::from_millis(5), in Duration::from_nanos(1)..=Duration::from_secs(10), from "rfc8289 4.3";
        /// Time for which the sojourn time must exceed it: a worst-case round trip.
        interval: Duration = Duration::from_millis(100), in Duration::from_nanos(1)..=Duration::from_secs(100), from "rfc8289 4.2";
        /// The backlog that is never dropped from: one packet of the largest size.
        mtu: Bytes = Bytes(1500), in Bytes(0)..=Bytes(1 << 20), from "rfc8289 5.5: the largest packet";
        /// Whether ECN-capable packets are marked CE instead of dropped.
        ecn: bool = false, in .., from "rfc8289 3";
        /// Which packet is dropped.
        drop: DropAt = DropAt::Head, in .., from "rfc8289 5.5";
        /// What counts as a packet's delay.
        delay: Waiting = Waiting::Sojourn, in .., from "rfc8289 5.5";
        /// The buffer, drop-tail, in packets or bytes; none takes the link's.
        limit: Option<Limit> = None, in .., from "the link";
    }
}

fn consistent(config: &Config) -> Result<(), ParameterError> {
    if config.ecn && config.drop == DropAt::BehindHead {
        let reason = "ecn needs drop=head: Mahimahi's CoDel, which drop=behind-head imitates, does not mark";
        return Err(ParameterError::Conflict { reason: reason.into() });
    }
    Ok(())
}

/// A FIFO under CoDel.
#[derive(Clone, Debug)]
pub struct CoDel<P> {
    law: Law,
    limit: Limit,
    packets: Fifo<P>,
    state: State,
}

impl<P: Packet> CoDel<P> {
    /// Returns an empty queue.
    pub fn new(config: &Config, place: &Place) -> Self {
        CoDel {
            law: Law {
                target: config.target,
                interval: config.interval,
                mtu: config.mtu,
                ecn: config.ecn,
                drop: config.drop,
                delay: config.delay,
            },
            limit: config.limit.unwrap_or(place.limit),
            packets: Fifo::default(),
            state: State::default(),
        }
    }
}

impl<P: Packet> Queue<P> for CoDel<P> {
    fn enqueue(&mut self, now: Time, packet: P, _link: &mut impl LinkView, drops: &mut Drops<P>) {
        self.packets.push_within(self.limit, now, packet, drops);
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Time, _link: &mut impl LinkView, drops: &mut Drops<P>) -> Option<Dequeued<P>> {
        self.state.dequeue(&self.law, now, &mut self.packets, drops)
    }

    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    fn waiting_since(&self) -> Option<Time> {
        self.packets.head_arrived()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("dropping", f64::from(u8::from(self.state.dropping)));
        visit("drops_in_a_row", f64::from(self.state.count));
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.packets.for_each(visit);
    }
}

/// CoDel's constants, without the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    pub(super) target: Duration,
    pub(super) interval: Duration,
    pub(super) mtu: Bytes,
    pub(super) ecn: bool,
    pub(super) drop: DropAt,
    pub(super) delay: Waiting,
}

impl Law {
    /// When the drop after the `count`-th is due, if that one was due at `last`.
    fn next_drop(&self, last: Time, count: u32) -> Time {
        // rfc8289 5.6
        let nanos = self.interval.as_nanos() as f64 / libm::sqrt(f64::from(count));
        last + Duration::from_nanos(nanos as u64)
    }
}

/// CoDel's state for one FIFO.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// When the sojourn time will have been above the target for an interval, if it stays there.
    first_above: Option<Time>,
    drop_next: Time,
    count: u32,
    last_count: u32,
    dropping: bool,
    bursts: Bursts,
}

impl State {
    /// Packets that were dropped for want of room count as well.
    pub(super) fn overflowed(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// Takes the next packet out of `fifo` that is not to be dropped.
    #[inline(always)]
    pub(super) fn dequeue<P: Packet>(
        &mut self,
        law: &Law,
        now: Time,
        fifo: &mut Fifo<P>,
        drops: &mut Drops<P>,
    ) -> Option<Dequeued<P>> {
        // The head is looked at where it lies: in nearly every call it leaves as it is.
        let Some((size, head_arrived)) = fifo.head_size().zip(fifo.head_arrived()) else {
            self.first_above = None;
            self.dropping = false;
            return None;
        };
        let mut behind = fifo.backlog();
        behind.remove(size);
        self.bursts.serve(now);
        let ok_to_drop = self.ok_to_drop(law, now, head_arrived, behind);
        if ok_to_drop && (!self.dropping || now >= self.drop_next) {
            return self.drop_or_mark(law, now, fifo, drops);
        }
        self.dropping = self.dropping && ok_to_drop;
        let (packet, arrived) = fifo.pop()?;
        Some(Dequeued { packet, arrived, mark: Mark::None })
    }

    /// Takes the next packet out of `fifo` where the head is to be dropped or marked.
    #[inline(never)]
    fn drop_or_mark<P: Packet>(
        &mut self,
        law: &Law,
        now: Time,
        fifo: &mut Fifo<P>,
        drops: &mut Drops<P>,
    ) -> Option<Dequeued<P>> {
        let mut head = fifo.pop()?;
        let mut mark = Mark::None;
        if self.dropping {
            // rfc8289 5.5: several drops may be due at once
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if law.ecn && may_mark_ce(&head.0) {
                    head.0.set_ecn(Ecn::Ce);
                    mark = Mark::Ce;
                    self.drop_next = law.next_drop(self.drop_next, self.count);
                    break;
                }
                self.dropping = self.drop_one(law, now, &mut head, fifo, drops);
                if self.dropping {
                    self.drop_next = law.next_drop(self.drop_next, self.count);
                }
            }
        } else {
            if law.ecn && may_mark_ce(&head.0) {
                head.0.set_ecn(Ecn::Ce);
                mark = Mark::Ce;
            } else {
                self.drop_one(law, now, &mut head, fifo, drops);
            }
            self.dropping = true;
            // rfc8289 5.5: the rate that controlled the queue last time is a good one to start from
            let risen = self.count - self.last_count;
            let recently = now.since(self.drop_next) < law.interval * 16;
            self.count = if risen > 1 && recently { risen } else { 1 };
            self.last_count = self.count;
            self.drop_next = law.next_drop(now, self.count);
        }
        Some(Dequeued { packet: head.0, arrived: head.1, mark })
    }

    /// Whether a packet that arrived at `arrived` and leaves `behind` it may be dropped.
    fn ok_to_drop(&mut self, law: &Law, now: Time, arrived: Time, behind: Backlog) -> bool {
        // rfc8289 5.5, dodequeue
        if self.bursts.delay(law.delay, now, arrived) < law.target || behind.bytes <= law.mtu {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + law.interval);
                false
            }
            Some(first_above) => now >= first_above,
        }
    }

    /// Drops a packet and says whether the one that was taken out in its place may be dropped as well.
    fn drop_one<P: Packet>(
        &mut self,
        law: &Law,
        now: Time,
        head: &mut (P, Time),
        fifo: &mut Fifo<P>,
        drops: &mut Drops<P>,
    ) -> bool {
        // Nothing is dropped unless more than an MTU waits behind it.
        let Some(next) = fifo.pop() else {
            return false;
        };
        let arrived = next.1;
        let (packet, _) = match law.drop {
            DropAt::Head => core::mem::replace(head, next),
            DropAt::BehindHead => next,
        };
        drops.push(Dropped { at: now, packet, reason: Reason::Early });
        self.ok_to_drop(law, now, arrived, fifo.backlog())
    }
}

#[cfg(test)]
mod tests;
