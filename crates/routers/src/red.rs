//! RED, Random Early Detection (Floyd and Jacobson, 1993), with `gentle`, ECN and Adaptive RED: drops or
//! marks arriving packets with a probability that grows with the average length of the queue.
//!
//! ```text
//! on arrival:
//!   avg = (1 - w_q) avg + w_q q                        q packets wait                   floyd93 section 4
//!   avg = (1 - w_q)^m avg                              none do, for m packet times      floyd93 section 4
//!   p_b = max_p (avg - min_th) / (max_th - min_th)     min_th <= avg < max_th           floyd93 section 4
//!   p_b = max_p + (1 - max_p) (avg - max_th) / max_th  max_th <= avg < 2 max_th, `gentle`  floyd00
//!   p_a = p_b / (1 - count p_b)                        count packets passed since the last
//!                                                                                          floyd93 section 4
//!   with probability p_a mark it if it is capable, else drop it; drop it where avg is above all that
//!                                                                                                  rfc3168 7
//!
//! with `adaptive`, every interval:                                                      floyd01 Figure 2
//!   avg above min_th + 0.6 (max_th - min_th), max_p <= 0.5:    max_p += min(0.01, max_p / 4)
//!   avg below min_th + 0.4 (max_th - min_th), max_p >= 0.01:   max_p *= 0.9
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | min_th | `min_th` | packets | max(5, target C / 2) | floyd01 section 6 |
//! | max_th | `max_th` | packets | 3 min_th | floyd01 section 6 |
//! | w_q | `wq` | 1 | 1 - exp(-1 / C) | floyd01 section 6 |
//! | C | - | packets/s | the link's nominal rate over `mean_packet` | floyd01 section 6 |
//! | - | `target` | s | 5 ms | floyd01 section 6 |
//! | max_p | `max_p` | 1 | 0.1 | ns-2.35 ns-default.tcl, linterm_ |
//! | - | `gentle` | - | true | floyd00; ns-2.35 ns-default.tcl |
//! | alpha, beta | `max_p_step`, `max_p_decay` | 1 | 0.01, 0.9 | floyd01 Figure 2 |
//! | interval | `interval` | s | 500 ms | floyd01 Figure 2 |
//!
//! # Deviations
//!
//! - D1. Queues are counted in packets, whatever their size: floyd93's byte mode is left out.
//! - D2. `wait` is the default of ns-2.35 ns-default.tcl: no drop until 1 / p_b packets passed, so that drops
//!   are 1 / p_b to 2 / p_b packets apart and a third as many. floyd93 has them up to 1 / p_b apart, as here
//!   by default. As in its Figure 2 the packet after a drop counts already, so the largest distance is 1 /
//!   p_b - 1.
//! - D3. Adaptive RED's interval has no timer: an update is made when the next packet arrives, as of its own
//!   time, with the average of the packet before.
//! - D4. max_p stops at 0.01 as floyd01 says; ns-2.35 red.cc, initialize_params, lets it fall to the inverse
//!   of the path's packets on fast links. So few flows, which need less than that, keep the average near
//!   `min_th`.
//! - D5. Idle time begins when the last packet is taken out to be sent.

use brakelight_core::packet::Packet;
use brakelight_core::parameters::{OrNone, ParameterError};
use brakelight_core::queue::{
    Backlog, Dequeued, Dropped, Drops, LinkKind, LinkView, Misfit, Place, Queue, Reason, may_mark_ce,
};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit};

use super::fifo::MarkingFifo;

parameters! {
    /// RED's settings.
    pub struct Config {
        check consistent;
        /// Average length, in packets, from which some are dropped; none: by `target`.
        min_th: Option<f64> = None, in OrNone(0.0..=1e9), from "floyd01 section 6: max(5, target C / 2)";
        /// Average length, in packets, at which the probability is `max_p`; none: three times `min_th`.
        max_th: Option<f64> = None, in OrNone(0.001..=1e9), from "floyd01 section 6: 3 min_th";
        /// Delay that the automatic thresholds lie around.
        target: Duration = Duration::from_millis(5), in Duration::from_nanos(1)..=Duration::from_secs(10), from "floyd01 section 6";
        /// Weight of the newest length in the average; none: an average over one second of packets.
        wq: Option<f64> = None, in OrNone(1e-9..=1.0), from "floyd01 section 6: 1 - exp(-1 / C)";
        /// Probability at `max_th`.
        max_p: f64 = 0.1, in 1e-6..=1.0, from "ns-2.35 ns-default.tcl, linterm_";
        /// Whether the probability rises to 1 at twice `max_th`, instead of at once.
        gentle: bool = true, in .., from "floyd00; ns-2.35 ns-default.tcl";
        /// Whether drops wait until 1 / p_b packets have passed.
        wait: bool = false, in .., from "floyd93 section 4; ns-2.35 ns-default.tcl: true";
        /// Whether ECN-capable packets are marked CE instead of dropped.
        ecn: bool = false, in .., from "floyd93, rfc3168 7";
        /// Adaptive RED: whether `max_p` is moved so that the average lies half way between the thresholds.
        adaptive: bool = false, in .., from "floyd01";
        /// The most that `max_p` rises at once.
        max_p_step: f64 = 0.01, in 0.0..=1.0, from "floyd01 Figure 2, alpha";
        /// Factor by which `max_p` is multiplied when it falls.
        max_p_decay: f64 = 0.9, in 0.0..=1.0, from "floyd01 Figure 2, beta";
        /// How often `max_p` is adjusted.
        interval: Duration = Duration::from_millis(500), in Duration::from_millis(1)..=Duration::from_secs(100), from "floyd01 Figure 2";
        /// Size of a packet, for the automatic settings and the time without packets.
        mean_packet: Bytes = Bytes(1500), in Bytes(1)..=Bytes(1 << 20), from "floyd93: the typical packet";
        /// The buffer, drop-tail, in packets or bytes; none takes the link's.
        limit: Option<Limit> = None, in .., from "the link";
    }
}

fn consistent(config: &Config) -> Result<(), ParameterError> {
    match (config.min_th, config.max_th) {
        (Some(min), Some(max)) if min >= max => Err(ParameterError::Conflict {
            reason: alloc::format!("min_th must lie below max_th: {min} and {max}"),
        }),
        (Some(0.0), None) => {
            Err(ParameterError::Conflict { reason: "min_th = 0 needs a max_th: three times 0 is 0".into() })
        }
        _ => Ok(()),
    }
}

/// A lower threshold that no queue in the buffer reaches never marks, which is a mistake where both are
/// given.
pub(crate) fn fits(config: &Config, link: &LinkKind) -> Result<(), Misfit> {
    let room = config.limit.unwrap_or(link.buffer).in_packets(LinkKind::FULL_PACKET);
    match config.min_th {
        Some(min_th) if min_th > room => {
            Err(Misfit::unreachable("min_th", min_th, format_args!("{room} packets")))
        }
        _ => Ok(()),
    }
}

/// A FIFO under RED.
#[derive(Clone, Debug)]
pub struct Red<P> {
    chooser: Chooser,
    limit: Limit,
    ecn: bool,
    packets: MarkingFifo<P>,
    average: f64,
    wq: f64,
    per_second: f64,
    idle_since: Time,
    adaptive: bool,
    max_p_step: f64,
    max_p_decay: f64,
    interval: Duration,
    next_update: Time,
}

/// Which packets RED drops or marks, by the average queue that its owner keeps, in the owner's unit.
#[derive(Clone, Debug)]
pub(super) struct Chooser {
    law: Law,
    max_p: f64,
    /// Packets let in since the last that was chosen; none while the average is below `min_th`.
    count: Option<u32>,
    random: Random,
}

/// RED's constants.
#[derive(Clone, Debug)]
struct Law {
    min_th: f64,
    max_th: f64,
    gentle: bool,
    wait: bool,
}

/// What is to become of a packet that arrives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Verdict {
    Admit,
    /// Marked, if that can be, else dropped.
    Choose,
    Drop,
}

impl Law {
    /// p_b at this average; none where every packet goes.
    fn probability(&self, average: f64, max_p: f64) -> Option<f64> {
        if average < self.max_th {
            // floyd93 section 4
            Some(max_p * (average - self.min_th) / (self.max_th - self.min_th))
        } else if self.gentle && average < 2.0 * self.max_th {
            // floyd00
            Some(max_p + (1.0 - max_p) * (average - self.max_th) / self.max_th)
        } else {
            None
        }
    }

    /// p_a: p_b made such that the packets between two chosen ones are uniform in number.
    fn spread(&self, p: f64, count: u32) -> f64 {
        let passed = f64::from(count) * p;
        if self.wait {
            // ns-2.35 red.cc, modify_p
            return match passed {
                passed if passed < 1.0 => 0.0,
                passed if passed < 2.0 => p / (2.0 - passed),
                _ => 1.0,
            };
        }
        // floyd93 section 4
        if passed < 1.0 { p / (1.0 - passed) } else { 1.0 }
    }
}

impl Chooser {
    /// RED without `gentle` and `wait`, as floyd93 has it.
    pub(super) fn plain(min_th: f64, max_th: f64, max_p: f64, random: Random) -> Self {
        Chooser { law: Law { min_th, max_th, gentle: false, wait: false }, max_p, count: None, random }
    }

    /// Decides on the packet that comes next.
    pub(super) fn judge(&mut self, average: f64) -> Verdict {
        if average < self.law.min_th {
            self.count = None;
            return Verdict::Admit;
        }
        let count = self.count.map_or(0, |count| count.saturating_add(1));
        self.count = Some(count);
        let Some(p) = self.law.probability(average, self.max_p) else {
            self.count = Some(0);
            return Verdict::Drop;
        };
        if self.random.chance(self.law.spread(p, count)) {
            self.count = Some(0);
            return Verdict::Choose;
        }
        Verdict::Admit
    }

    /// A packet was lost for want of room.
    fn overflow(&mut self) {
        self.count = self.count.map(|_| 0);
    }
}

impl<P: Packet> Red<P> {
    /// Returns an empty queue.
    pub fn new(config: &Config, place: &Place) -> Self {
        // floyd01 section 6
        let per_second = place.nominal.as_bps_f64() / config.mean_packet.bits() as f64;
        let automatic = (config.target.as_secs_f64() * per_second / 2.0).max(5.0);
        let min_th = config.min_th.or(config.max_th.map(|max| max / 3.0)).unwrap_or(automatic);
        let wq = || if per_second > 0.0 { 1.0 - libm::exp(-1.0 / per_second) } else { 1.0 };
        let law = Law {
            min_th,
            max_th: config.max_th.unwrap_or(3.0 * min_th),
            gentle: config.gentle,
            wait: config.wait,
        };
        Red {
            chooser: Chooser { law, max_p: config.max_p, count: None, random: place.random.clone() },
            limit: config.limit.unwrap_or(place.limit),
            ecn: config.ecn,
            packets: MarkingFifo::default(),
            average: 0.0,
            wq: config.wq.unwrap_or_else(wq),
            per_second,
            idle_since: Time::ZERO,
            adaptive: config.adaptive,
            max_p_step: config.max_p_step,
            max_p_decay: config.max_p_decay,
            interval: config.interval,
            next_update: Time::ZERO + config.interval,
        }
    }

    /// Makes the updates of Adaptive RED that are due by `now`.
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            let before = self.chooser.max_p;
            self.chooser.max_p = self.adapt(before);
            self.next_update += self.interval;
            // The average stays what it was, so once this does too, nothing more will happen.
            if self.chooser.max_p == before && self.next_update <= now {
                let behind = now.since(self.next_update).periods(self.interval);
                self.next_update += self.interval * (behind + 1);
            }
        }
    }

    /// One step of Adaptive RED.
    fn adapt(&self, max_p: f64) -> f64 {
        // floyd01 Figure 2
        let Law { min_th, max_th, .. } = self.chooser.law;
        let share = (self.average - min_th) / (max_th - min_th);
        if share > 0.6 && max_p <= 0.5 {
            max_p + self.max_p_step.min(max_p / 4.0)
        } else if share < 0.4 && max_p >= 0.01 {
            max_p * self.max_p_decay
        } else {
            max_p
        }
    }

    /// Takes the queue that a packet finds at `now` into the average.
    fn measure(&mut self, now: Time) {
        // floyd93 section 4
        let waiting = self.packets.backlog().packets;
        if waiting > 0 {
            self.average += self.wq * (f64::from(waiting) - self.average);
        } else {
            let missed = now.since(self.idle_since).as_secs_f64() * self.per_second;
            self.average *= libm::pow(1.0 - self.wq, missed);
        }
    }
}

impl<P: Packet> Queue<P> for Red<P> {
    fn enqueue(&mut self, now: Time, packet: P, _link: &mut impl LinkView, drops: &mut Drops<P>) {
        if self.adaptive && self.next_update <= now {
            self.catch_up(now);
        }
        self.measure(now);
        let verdict = self.chooser.judge(self.average);
        let fits = self.packets.backlog().admits(self.limit, packet.size());
        if !fits {
            drops.push(Dropped { at: now, packet, reason: Reason::Overflow });
            self.chooser.overflow();
        } else if verdict == Verdict::Admit {
            self.packets.push(now, packet);
        } else if verdict == Verdict::Choose && self.ecn && may_mark_ce(&packet) {
            self.packets.push_marked(now, packet);
        } else {
            drops.push(Dropped { at: now, packet, reason: Reason::Early });
        }
        if self.packets.backlog().is_empty() {
            // The only packet was refused: time goes on without any, and has been counted up to here.
            self.idle_since = now;
        }
    }

    fn dequeue(
        &mut self,
        now: Time,
        _link: &mut impl LinkView,
        _drops: &mut Drops<P>,
    ) -> Option<Dequeued<P>> {
        let left = self.packets.pop()?;
        if self.packets.backlog().is_empty() {
            self.idle_since = now;
        }
        Some(left)
    }

    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    fn waiting_since(&self) -> Option<Time> {
        self.packets.head_arrived()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("average_pkts", self.average);
        visit("max_p", self.chooser.max_p);
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.packets.for_each(visit);
    }
}

#[cfg(test)]
mod tests;
