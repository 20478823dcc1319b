//! DualPI2, the Dual-Queue Coupled AQM with a PI2 controller (De Schepper, Briscoe and White, RFC 9332
//! appendix A; Linux 6.17 `sch_dualpi2.c`, its first version there): a queue for scalable flows with hardly
//! any delay, one for Classic flows, and one controller that couples their signals so that flows of both
//! kinds get about the same rate.
//!
//! ```text
//! ECT(1) and CE go to the L queue, Not-ECT and ECT(0) to the C queue
//!                                                                  rfc9332 A.1, dualpi2_enqueue; rfc9331 5.1
//!
//! every Tupdate:                                                               rfc9332 A.1, dualpi2_update
//!   curq = the longest that a head of either queue has waited                                  rfc9332 A.2
//!   p'   = p' + alpha (curq - target) + beta (curq - prevq), within 0 and 1
//!   p_C  = p'^2         what Classic packets are dropped or marked with
//!   p_CL = k p'         what L packets are marked with for the sake of Classic flows
//!
//! a packet leaves the L queue:                                                 rfc9332 A.2, dualpi2_dequeue
//!   p'_L = 0 up to minTh, 1 from minTh + range, linear between                 rfc9332 A.1, laqm
//!   p_CL < 1:   marked with max(p'_L, p_CL)
//!   p_CL >= 1:  dropped with p_C, else marked                                  overload
//! a packet leaves the C queue, and p_C chooses it:
//!   ECT(0) and p_C < p_Cmax:  marked
//!   otherwise:                dropped
//!
//! p_Cmax = min(1 / k^2, 1)
//! recur(p): count = count + p; above 1: count = count - 1, and the packet is chosen          rfc9332 A.1
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | target | `target` | s | 15 ms | rfc9332 A.1 |
//! | Tupdate | `tupdate` | s | 15 ms (`linux`: 16 ms) | rfc9332 A.1: min(target, RTT_max / 3) |
//! | alpha | `alpha` | 1/s | 0.15 (`linux`: 0.16) | rfc9332 A.1: 0.1 Tupdate / RTT_max^2, RTT_max = 100 ms |
//! | beta | `beta` | 1/s | 3 (`linux`: 3.2) | rfc9332 A.1: 0.3 / RTT_max |
//! | k | `coupling` | 1 | 2 | rfc9332 A.1 |
//! | minTh | `threshold` | s | 800 us (`linux`: 1 ms) | rfc9332 A.1 |
//! | range | `range` | s | 400 us (`linux`: 0, a step) | rfc9332 A.1 |
//! | Th_len | `threshold_packets` | packets | 1 (`linux`: 0) | rfc9332 A.1 |
//! | w_C | `classic_weight` | 1 | 0.1 | Linux 6.17 `sch_dualpi2.c`; not stated in rfc9332 A.1 (D1) |
//! | tshift | `shift` | s | 30 ms | draft-ietf-tsvwg-aqm-dualq-coupled-03: 2 target (D1) |
//!
//! # The two rules
//!
//! `rules` chooses whose, an option given by itself wins over it.
//!
//! | part | option | `rfc` | `linux` |
//! |---|---|---|---|
//! | how a packet is chosen with p | `choice` | recur: evenly spaced | a random number; two for p'^2 |
//! | native L marking | `range` | ramp, combined by max | step, or else the coupled choice |
//! | too little to act on | `threshold_packets`, - | the native AQM, below Th_len | PI2, below 3000 bytes |
//! | what Th_len counts | - | L packets behind the one that leaves | L packets before it when it came |
//!
//! # Deviations
//!
//! - D1. RFC 9332 leaves the scheduler open. `scheduler=wrr` is that of Linux 6.17 sch_dualpi2.c: a credit of
//!   bytes, weighted w_C to 1 - w_C, that says whose turn it is while both queues hold something.
//!   `scheduler=time-shift` is the FIFO of the RFC's drafts: the head that waited longest, where the L
//!   queue's counts for tshift more.
//! - D2. The delay in laqm is the sojourn time of the packet that leaves (Linux 6.17), not that of the one
//!   behind it, which the RFC's `lq.time()` after `lq.dequeue()` would read. What counts against Th_len is
//!   what is left behind it.
//! - D3. p' is held within 0 and 1, as Linux 6.17 sch_dualpi2.c does; the RFC says "p' can be bounded" in the
//!   text only.
//! - D4. Updates happen at multiples of Tupdate since time zero, whenever the queue is called: what a late
//!   call finds is what a call on time would have found, for heads change in calls only.
//! - D5. A packet that is dropped charges no credit, as in Linux 6.17 sch_dualpi2.c: the scheduler chooses
//!   again.
//! - D6. `delay=standing` takes [`bursts`](super::bursts)' standing time in place of the time that a packet
//!   has waited, in laqm and in the PI controller.
//! - D7. In overload the L packets that are not dropped are all marked. The RFC marks them by recur(p_CL),
//!   whose count then grows without bound, for p_CL is above 1, and goes on marking when overload is over.

use alloc::collections::VecDeque;

use brakelight_core::ecn::{Ecn, Mark};
use brakelight_core::frugal;
use brakelight_core::packet::Packet;
use brakelight_core::parameters::OrNone;
use brakelight_core::queue::{Backlog, Dequeued, Dropped, Drops, LinkView, Place, Queue, Reason};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Limit;

use super::bursts::{Bursts, Waiting};
use super::fifo::Fifo;

choices! {
    /// Which specification all parts follow.
    pub enum Rules {
        /// RFC 9332 appendix A.
        Rfc = "rfc",
        /// Linux 6.17 `sch_dualpi2.c`.
        Linux = "linux",
    }
}

choices! {
    /// How a packet is chosen with a probability.
    pub enum Choice {
        /// By counting up: as evenly as the probability allows.
        Recur = "recur",
        /// By a random number.
        Random = "random",
    }
}

choices! {
    /// How the scheduler chooses between the two queues.
    pub enum Scheduler {
        /// Weighted round robin, by bytes.
        Wrr = "wrr",
        /// The head that waited longest, the L queue's counted for longer than it is.
        TimeShift = "time-shift",
    }
}

choices! {
    /// What happens to the L queue when marking every packet is not enough.
    pub enum Overload {
        /// It is dropped from as the C queue is.
        Drop = "drop",
        /// Both queues grow until the buffer is full.
        Overflow = "overflow",
    }
}

parameters! {
    /// DualPI2's settings.
    pub struct Config {
        /// Whose rules every part below follows unless it is given by itself.
        rules: Rules = Rules::Rfc, in .., from "rfc9332 A";
        /// Delay that the Classic queue settles at.
        target: Duration = Duration::from_millis(15), in Duration::from_micros(1)..=Duration::from_secs(10), from "rfc9332 A.1";
        /// Time between updates of the probabilities; none: the rules'.
        tupdate: Option<Duration> = None, in OrNone(Duration::from_micros(100)..=Duration::from_secs(10)), from "rfc9332 A.1: 15 ms";
        /// Integral gain, 1/s per update; none: the rules'.
        alpha: Option<f64> = None, in OrNone(0.0..=1e4), from "rfc9332 A.1: 0.15";
        /// Proportional gain, 1/s per update; none: the rules'.
        beta: Option<f64> = None, in OrNone(0.0..=1e4), from "rfc9332 A.1: 3";
        /// How much more often an L packet is marked than the base probability says (k).
        coupling: f64 = 2.0, in 0.1..=100.0, from "rfc9332 A.1";
        /// Delay from which L packets are marked; none: the rules'.
        threshold: Option<Duration> = None, in OrNone(Duration::ZERO..=Duration::from_secs(10)), from "rfc9332 A.1: 800 us";
        /// Further delay after which every L packet is marked; none: the rules'.
        range: Option<Duration> = None, in OrNone(Duration::ZERO..=Duration::from_secs(10)), from "rfc9332 A.1: 400 us";
        /// Packets that must wait behind an L packet for its delay to count, or by Linux's rules must have
        /// waited before it when it came; none: the rules'.
        threshold_packets: Option<u32> = None, in .., from "rfc9332 A.1: 1";
        /// What counts as a packet's delay.
        delay: Waiting = Waiting::Sojourn, in .., from "rfc9332 A.1, laqm";
        /// How a packet is chosen; none: the rules'.
        choice: Option<Choice> = None, in .., from "rfc9332 A.1: recur";
        /// How the scheduler chooses between the two queues.
        scheduler: Scheduler = Scheduler::Wrr, in .., from "Linux 6.17 sch_dualpi2.c";
        /// Share of the link that the Classic queue is sure of under wrr.
        classic_weight: f64 = 0.1, in 0.0..=1.0, from "Linux 6.17 sch_dualpi2.c";
        /// Under time-shift: time added to the wait of the L queue's head when the queues are compared.
        shift: Duration = Duration::from_millis(30), in Duration::ZERO..=Duration::from_secs(10), from "draft-ietf-tsvwg-aqm-dualq-coupled-03";
        /// What happens to the L queue when marking every packet is not enough.
        overload: Overload = Overload::Drop, in .., from "rfc9332 A.2";
        /// Whether flows of other encodings may pass, too: to see what misread marks do.
        misread: bool = false, in .., from "ours";
        /// The buffer that both queues share, in packets or bytes; none takes the link's.
        limit: Option<Limit> = None, in .., from "rfc9332 A.1: 250 ms of the highest rate";
    }
}

/// Bytes below which Linux 6.17 sch_dualpi2.c leaves the PI2 controller out: two packets.
const LINUX_FLOOR_BYTES: u64 = 3000;
/// What the credit starts with, and falls back to when both queues are empty, in packets of the largest size.
const MTU_BYTES: f64 = 1500.0;

/// The constants, with the rules' values filled in.
#[derive(Clone, Copy, Debug)]
struct Law {
    target_s: f64,
    tupdate: Duration,
    alpha: f64,
    beta: f64,
    coupling: f64,
    threshold: Duration,
    range: Duration,
    threshold_packets: u32,
    /// Whether those are counted when the packet comes, in place of when it leaves.
    counts_on_entry: bool,
    choice: Choice,
    scheduler: Scheduler,
    classic_weight: f64,
    shift: Duration,
    overload: Overload,
    delay: Waiting,
    /// Bytes behind a packet below which PI2 leaves it alone.
    floor_bytes: u64,
}

impl Law {
    fn new(config: &Config) -> Self {
        let micros = Duration::from_micros;
        let (tupdate, alpha, beta, threshold, range, packets, choice, floor_bytes) = match config.rules {
            Rules::Rfc => (micros(15_000), 0.15, 3.0, micros(800), micros(400), 1, Choice::Recur, 0),
            Rules::Linux => (
                micros(16_000),
                0.16,
                3.2,
                micros(1000),
                Duration::ZERO,
                0,
                Choice::Random,
                LINUX_FLOOR_BYTES,
            ),
        };
        Law {
            target_s: config.target.as_secs_f64(),
            tupdate: config.tupdate.unwrap_or(tupdate),
            alpha: config.alpha.unwrap_or(alpha),
            beta: config.beta.unwrap_or(beta),
            coupling: config.coupling,
            threshold: config.threshold.unwrap_or(threshold),
            range: config.range.unwrap_or(range),
            threshold_packets: config.threshold_packets.unwrap_or(packets),
            // Linux 6.18 sch_dualpi2.c, dualpi2_enqueue_skb: it asks for min_qlen_step when a packet comes.
            counts_on_entry: config.rules == Rules::Linux,
            choice: config.choice.unwrap_or(choice),
            scheduler: config.scheduler,
            classic_weight: config.classic_weight,
            shift: config.shift,
            overload: config.overload,
            delay: config.delay,
            floor_bytes,
        }
    }

    /// p'_L for an L packet that waited `sojourn`, with as many packets `beside` it as the rules count.
    fn native(&self, sojourn: Duration, beside: u32) -> f64 {
        // rfc9332 A.1, laqm
        if beside < self.threshold_packets || sojourn <= self.threshold {
            return 0.0;
        }
        let above = sojourn.saturating_sub(self.threshold);
        if above >= self.range { 1.0 } else { above.as_secs_f64() / self.range.as_secs_f64() }
    }

    /// The credit of an empty scheduler: negative where the L queue comes first.
    fn initial_credit(&self) -> f64 {
        MTU_BYTES * (2.0 * self.classic_weight - 1.0)
    }
}

/// Two queues and the controller that couples them.
#[derive(Clone, Debug)]
pub struct DualPi2<P> {
    law: Law,
    limit: Limit,
    random: Random,
    low: Fifo<P>,
    /// How many L packets each of them found, where the law counts those and asks for any.
    found: VecDeque<u32>,
    classic: Fifo<P>,
    /// p', the base probability.
    base: f64,
    /// The delay at the last update, in seconds.
    previous_s: f64,
    update_at: Time,
    /// What recur has counted up to, per queue.
    low_count: f64,
    classic_count: f64,
    /// Bytes that the Classic queue is owed: above zero it is its turn.
    credit: f64,
    bursts: Bursts,
    marked: Causes,
}

/// How many L packets were marked by each part.
#[derive(Clone, Copy, Debug, Default)]
struct Causes {
    threshold: u64,
    /// By the threshold, too, but the packet waited for the link's next opportunity and stood in no queue.
    link: u64,
    coupling: u64,
    overload: u64,
}

/// What becomes of a packet that leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Pass,
    Mark,
    Drop,
}

impl<P: Packet> DualPi2<P> {
    /// Returns an empty queue.
    pub fn new(config: &Config, place: &Place) -> Self {
        let law = Law::new(config);
        DualPi2 {
            limit: config.limit.unwrap_or(place.limit),
            random: place.random.clone(),
            low: Fifo::default(),
            found: VecDeque::new(),
            classic: Fifo::default(),
            base: 0.0,
            previous_s: 0.0,
            update_at: Time::ZERO + law.tupdate,
            low_count: 0.0,
            classic_count: 0.0,
            credit: law.initial_credit(),
            bursts: Bursts::default(),
            marked: Causes::default(),
            law,
        }
    }

    /// Performs the updates due by `now`, each at its own time.
    fn advance(&mut self, now: Time) {
        while self.update_at <= now {
            if self.base == 0.0 && self.previous_s == 0.0 && self.low.is_empty() && self.classic.is_empty() {
                // Nothing will change before the next packet comes.
                let missed = now.since(self.update_at).periods(self.law.tupdate) + 1;
                self.update_at = self.update_at.saturating_add(self.law.tupdate * missed);
                return;
            }
            self.update(self.update_at);
            self.update_at = self.update_at.saturating_add(self.law.tupdate);
        }
    }

    /// rfc9332 A.2, dualpi2_update
    fn update(&mut self, at: Time) {
        let waited = |fifo: &Fifo<P>| {
            let delay = |arrived| self.bursts.delay(self.law.delay, at, arrived);
            fifo.head_arrived().map_or(0.0, |arrived| delay(arrived).as_secs_f64())
        };
        let current_s = waited(&self.low).max(waited(&self.classic));
        let law = &self.law;
        let step = law.alpha * (current_s - law.target_s) + law.beta * (current_s - self.previous_s);
        let most = match law.overload {
            Overload::Drop => 1.0,
            // Linux 6.17 sch_dualpi2.c: marking every L packet keeps the balance while the queues overflow.
            Overload::Overflow => (1.0 / law.coupling).min(1.0),
        };
        self.base = (self.base + step).clamp(0.0, most);
        self.previous_s = current_s;
    }

    /// p_CL
    fn coupled(&self) -> f64 {
        self.law.coupling * self.base
    }

    /// p_C
    fn squared(&self) -> f64 {
        self.base * self.base
    }

    /// Whether the L queue sends next. An empty queue is passed over.
    fn turn_of_low(&self, now: Time) -> bool {
        match (self.low.head_arrived(), self.classic.head_arrived()) {
            (Some(_), None) => true,
            (None, _) => false,
            (Some(low), Some(classic)) => match self.law.scheduler {
                Scheduler::Wrr => self.credit <= 0.0,
                Scheduler::TimeShift => now.since(low) + self.law.shift >= now.since(classic),
            },
        }
    }

    /// Charges a packet of `size` bytes that left while the other queue held something.
    fn charge(&mut self, from_low: bool, size: u32) {
        let size = f64::from(size);
        let weight = self.law.classic_weight;
        self.credit += if from_low { weight * size } else { (weight - 1.0) * size };
    }

    /// Decides on an L packet that leaves at `now`.
    fn judge_low(&mut self, now: Time, arrived: Time, held: u64) -> Verdict {
        let beside = self.found.pop_front().unwrap_or(self.low.backlog().packets);
        let native = self.law.native(self.bursts.delay(self.law.delay, now, arrived), beside);
        let (base, coupled, squared) = (self.base, self.coupled(), self.squared());
        let quiet = held < self.law.floor_bytes;
        match self.law.choice {
            Choice::Recur => {
                if coupled < 1.0 || self.law.overload == Overload::Overflow {
                    let coupled = if quiet { 0.0 } else { coupled };
                    if !recur(&mut self.low_count, native.max(coupled).min(1.0)) {
                        return Verdict::Pass;
                    }
                    if native >= coupled {
                        self.note_threshold(now, arrived);
                    } else {
                        self.marked.coupling += 1;
                    }
                    Verdict::Mark
                } else if !quiet && recur(&mut self.low_count, squared) {
                    Verdict::Drop
                } else {
                    // rfc9332 A.2: the rest is marked with p_CL, which is at least 1
                    self.marked.overload += 1;
                    Verdict::Mark
                }
            }
            Choice::Random => {
                let overloaded = coupled > 1.0 && !quiet;
                if overloaded {
                    let dropped = self.random.chance(base) && self.random.chance(base);
                    self.marked.overload += u64::from(!dropped);
                    return if dropped { Verdict::Drop } else { Verdict::Mark };
                }
                let by_coupling = !quiet && self.random.chance(coupled);
                let by_delay = native >= 1.0 || (native > 0.0 && self.random.chance(native));
                if by_delay {
                    self.note_threshold(now, arrived);
                }
                self.marked.coupling += u64::from(by_coupling && !by_delay);
                if by_coupling || by_delay { Verdict::Mark } else { Verdict::Pass }
            }
        }
    }

    /// Counts a mark that the threshold made, by what the packet waited for.
    fn note_threshold(&mut self, now: Time, arrived: Time) {
        let stood = self.bursts.delay(Waiting::Persistent, now, arrived);
        if stood <= self.law.threshold {
            self.marked.link += 1;
        } else {
            self.marked.threshold += 1;
        }
    }

    fn judge_classic(&mut self, capable: bool, held: u64) -> Verdict {
        let base = self.base;
        let chosen = held >= self.law.floor_bytes
            && match self.law.choice {
                Choice::Recur => {
                    let squared = self.squared();
                    recur(&mut self.classic_count, squared)
                }
                Choice::Random => self.random.chance(base) && self.random.chance(base),
            };
        // rfc9332 A.2: overload disables ECN; p_C >= p_Cmax is p_CL >= 1
        let saturated = self.coupled() >= 1.0 && self.law.overload == Overload::Drop;
        match (chosen, capable && !saturated) {
            (false, _) => Verdict::Pass,
            (true, true) => Verdict::Mark,
            (true, false) => Verdict::Drop,
        }
    }
}

/// rfc9332 A.1: true for a share `likelihood` of the calls, as evenly as can be.
fn recur(count: &mut f64, likelihood: f64) -> bool {
    *count += likelihood;
    let chosen = *count > 1.0;
    if chosen {
        *count -= 1.0;
    }
    chosen
}

impl<P: Packet> Queue<P> for DualPi2<P> {
    fn enqueue(&mut self, now: Time, packet: P, _link: &mut impl LinkView, drops: &mut Drops<P>) {
        self.advance(now);
        if !self.backlog().admits(self.limit, packet.size()) {
            drops.push(Dropped { at: now, packet, reason: Reason::Overflow });
            return;
        }
        // rfc9331 5.1: CE may have been ECT(1) before, so it goes where it would harm least
        match packet.ecn() {
            Ecn::Ect1 | Ecn::Ce => {
                if self.law.counts_on_entry && self.law.threshold_packets > 0 {
                    frugal::push_back(&mut self.found, self.low.backlog().packets);
                }
                self.low.push(now, packet);
            }
            Ecn::NotEct | Ecn::Ect0 => self.classic.push(now, packet),
        }
    }

    fn dequeue(&mut self, now: Time, _link: &mut impl LinkView, drops: &mut Drops<P>) -> Option<Dequeued<P>> {
        self.advance(now);
        loop {
            let from_low = self.turn_of_low(now);
            let (fifo, other) =
                if from_low { (&mut self.low, &self.classic) } else { (&mut self.classic, &self.low) };
            let contended = !other.is_empty();
            let Some((mut packet, arrived)) = fifo.pop() else {
                self.credit = self.law.initial_credit();
                return None;
            };
            // Linux 6.17 sch_dualpi2.c: without the packet that leaves
            let held = self.backlog().bytes.0;
            self.bursts.serve(now);
            let verdict = if from_low {
                self.judge_low(now, arrived, held)
            } else {
                self.judge_classic(packet.ecn().is_capable(), held)
            };
            let mark = match verdict {
                Verdict::Drop => {
                    drops.push(Dropped { at: now, packet, reason: Reason::Early });
                    continue;
                }
                Verdict::Mark => {
                    packet.set_ecn(Ecn::Ce);
                    Mark::Ce
                }
                Verdict::Pass => Mark::None,
            };
            if contended {
                self.charge(from_low, packet.size());
            }
            return Some(Dequeued { packet, arrived, mark });
        }
    }

    fn backlog(&self) -> Backlog {
        let (low, classic) = (self.low.backlog(), self.classic.backlog());
        Backlog { packets: low.packets + classic.packets, bytes: low.bytes + classic.bytes }
    }

    fn waiting_since(&self) -> Option<Time> {
        self.low.head_arrived().into_iter().chain(self.classic.head_arrived()).min()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("base_probability", self.base);
        visit("low_packets", f64::from(self.low.backlog().packets));
        visit("classic_packets", f64::from(self.classic.backlog().packets));
        visit("marked_by_threshold", self.marked.threshold as f64);
        visit("marked_by_link", self.marked.link as f64);
        visit("marked_by_coupling", self.marked.coupling as f64);
        visit("marked_by_overload", self.marked.overload as f64);
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.low.for_each(visit);
        self.classic.for_each(visit);
    }
}

#[cfg(test)]
mod reference;

#[cfg(test)]
mod tests;
