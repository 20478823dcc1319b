//! The router of Accel-Brake Control (Goyal et al., NSDI 2020, `abc20`; its first form, HotNets 2017,
//! `abc17`).
//!
//! Every packet that leaves says whether its sender may send two packets for its ACK (accelerate) or none
//! (brake):
//!
//! ```text
//! tr = eta mu - (mu / delta) max(x - d_t, 0)          abc20 eq.1     target rate
//! f  = min(tr / (2 cr), 1), and 0 where tr <= 0       abc20 eq.2     share of accelerates
//!
//! on every packet that leaves as accelerate or brake:                abc20 Algorithm 1
//!   token = min(token + f, tokenLimit)
//!   accelerate and token > 1:   token = token - 1, the packet stays accelerate
//!   accelerate otherwise:       the packet becomes brake
//!   brake:                      the packet stays brake: the share along a path is the least of its routers'
//! ```
//!
//! mu is what the link could have carried in the last T, used or not; cr is what left this queue in the last
//! T. Dividing by the rate that leaves, not by the one that arrives, is the point: ACK clocking turns the
//! rate that leaves now into the rate that arrives one round trip later.
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | eta | `eta` | 1 | 0.98 | abc20 7.2 |
//! | delta | `delta` | s | 133 ms | abc20 7.2; abc17: 100 ms / 0.75 |
//! | d_t | `target` | s | 50 ms | abc17 5; not stated in abc20 (D1) |
//! | T | `window` | s | 20 ms | abc17 5; not stated in abc20 for cellular links (D1) |
//! | tokenLimit | `token_limit` | tokens | 5 | abc17 5, MAXSPARE; not stated in abc20 (D1) |
//! | mu, cr | - | bit/s | measured | in the link's bytes: what it charges for a packet, framing included |
//! | x | `x` | s | backlog / mu | abc20 C: x = q / mu (D2) |
//!
//! # The three rules
//!
//! `marking` chooses the bucket's rule, `variant` that and the target rate's too. An option given by itself
//! wins over both.
//!
//! | part | option | `nsdi` (`variant=paper`) | `hotnets` | `prototype` (`variant=prototype`) |
//! |---|---|---|---|---|
//! | level at the start | `token_start` | 0 | 0 | tokenLimit |
//! | cap | `token_cap` | before the test | after it | after it |
//! | the queue ran empty | `token_idle` | nothing | 0 (`idle_period`) | eta / 2 per opportunity not used |
//! | eta multiplies | `eta_of` | mu | - | cr |
//! | x | `x` | bytes that wait / mu | - | (packets that wait + 1) opportunities / mu |
//!
//! `prototype` is the authors' own router in their emulator (<https://github.com/prateshg/ABC-NSDI2020>;
//! open-questions#X-6, X-46).
//!
//! # Deviations
//!
//! - D1. Values that abc20 does not state are those of abc17, which the authors' router uses too
//!   (open-questions#X-2, X-5, X-6).
//! - D2. "Observed queuing delay" is read as q / mu, q being what waits behind the packet that leaves;
//!   `x=sojourn` takes the time that packet waited instead (open-questions#X-46), and `x=standing` the part
//!   of it that was no waiting for a burst of the link's ([`bursts`](super::bursts)).
//! - D3. Eq. 2 has no lower bound, and none for cr = 0: f is 0 where tr <= 0, and 1 where nothing was
//!   measured (open-questions#X-8).
//! - D4. Algorithm 1 speaks of "each outgoing packet". Here CE packets, packets of flows that do not speak
//!   ABC, and Not-ECT packets, ACKs among them, leave the bucket alone: counting CE would turn it into a gain
//!   (open-questions#X-7). They do count in cr, for they use the link. The authors' router counts Not-ECT
//!   packets in neither rate.
//! - D5. The authors' router measures in whole milliseconds and credits a whole opportunity when a packet
//!   used a part of one; here time is exact and the credit goes by the bytes not used.
//! - D6. `encoding`: a packet is read as its flow's encoding says, so accelerate and brake are told apart in
//!   either. The authors' router speaks the proxied one only, where brake is CE. With `misread` all packets
//!   are read as ABC's own. Then ordinary ECN's ECT(0) is a brake to it, and fills the bucket as one.
//! - D7. `lookahead` is abc20's PK-ABC, for links that know their future: eta mu(t + RTT) in the first term,
//!   the present mu in the second, or with `lookahead_drain` the future one in both (open-questions#X-20).
//! - D8. `integral` is what abc17 section 6 proposes and gives no formula for, "a penalty based on the
//!   integral of the queuing delay", as in a PI controller (rfc8033 4.2), against the queue that additive
//!   increase of many flows keeps: `tr -= mu I`, `I' = (x - d_t) / (delta T_i)`, held within 0 and 1/2. In
//!   steady state I takes the place of `(x - d_t) / delta`, so x rests at d_t however many flows there are.

mod adaptive;
mod config;
pub mod dual;
pub mod l4s;

use alloc::boxed::Box;

use brakelight_core::ecn::{Ecn, Encoding, Mark};
use brakelight_core::packet::Packet;
use brakelight_core::queue::{Backlog, Dequeued, Drops, LinkView, Place, Queue};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit};
use brakelight_estimates::sliding_rate::SlidingRate;

use self::adaptive::Adaptive;
use self::config::Rules;
pub use self::config::{Cap, Codes, Config, DelayOf, EtaOf, Feedback, Idle, Marking, Test, Values, Variant};
use super::bursts::{Bursts, Waiting};
use super::fifo::Fifo;

/// ABC's router.
#[derive(Clone, Debug)]
pub struct Abc<P> {
    config: Config,
    rules: Rules,
    limit: Limit,
    encoding: Option<Encoding>,
    target_s: f64,
    per_delta: f64,
    bps_per_byte: f64,
    packets: Fifo<P>,
    /// What the packets held will take of the link.
    waiting: Bytes,
    /// When the queue ran empty, until a packet leaves again.
    emptied_at: Option<Time>,
    /// cr, or with `feedback=enqueue` the rate that enters.
    measured: SlidingRate,
    token: f64,
    integral: Option<Integral>,
    /// The target rate of `variant=adaptive`.
    adaptive: Option<Box<Adaptive>>,
    last: Control,
    bursts: Bursts,
}

/// The penalty on the integral of the queueing delay; D8.
#[derive(Clone, Copy, Debug)]
struct Integral {
    /// 1 / (delta T_i), 1/s^2.
    per_time: f64,
    /// I: share of mu taken off the target rate.
    share: f64,
    /// Up to when it has been summed.
    at: Time,
}

impl Integral {
    /// The most that may be taken off.
    const MOST: f64 = 0.5;

    fn new(integral: Duration, delta: Duration) -> Self {
        Integral {
            per_time: 1.0 / (delta.as_secs_f64() * integral.as_secs_f64()),
            share: 0.0,
            at: Time::ZERO,
        }
    }

    /// Sums up to `now` with a delay that is `above_s` above the target.
    fn update(&mut self, now: Time, above_s: f64) -> f64 {
        let passed_s = now.since(self.at).as_secs_f64();
        self.at = now;
        self.share = (self.share + above_s * passed_s * self.per_time).clamp(0.0, Self::MOST);
        self.share
    }
}

/// The control law's values at the last packet that it was computed for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Control {
    mu_bps: f64,
    cr_bps: f64,
    tr_bps: f64,
    f: f64,
}

/// Eq. 1: what the link aims at, less what drains the bits above a target delay at a rate mu. Below zero
/// where the queue is long.
#[inline]
pub(super) fn target_rate_bps(
    aim_bps: f64,
    mu_bps: f64,
    waiting_bits: f64,
    target_s: f64,
    per_delta: f64,
) -> f64 {
    // abc20 eq.1
    let above_bits = waiting_bits - mu_bps * target_s;
    let drain_bps = if above_bits > 0.0 { above_bits * per_delta } else { 0.0 };
    aim_bps - drain_bps
}

impl<P: Packet> Abc<P> {
    /// Returns an empty queue.
    pub fn new(config: &Config, place: &Place) -> Self {
        let rules = config.rules();
        let limit = config.limit.unwrap_or(place.limit);
        Abc {
            rules,
            limit,
            encoding: config.reading(),
            target_s: config.target.as_secs_f64(),
            per_delta: 1.0 / config.delta.as_secs_f64(),
            bps_per_byte: 8.0 / config.window.as_secs_f64(),
            packets: Fifo::default(),
            waiting: Bytes::ZERO,
            emptied_at: Some(Time::ZERO),
            measured: SlidingRate::new(config.window),
            token: rules.start,
            integral: config.integral.map(|integral| Integral::new(integral, config.delta)),
            adaptive: (config.variant == Variant::Adaptive)
                .then(|| Box::new(Adaptive::new(rules.eta, config.cushion, config.loop_delay, limit))),
            last: Control::default(),
            bursts: Bursts::default(),
            config: config.clone(),
        }
    }

    /// Sets d_t, the queueing delay below which nothing is drained, from the next packet on.
    pub fn set_target(&mut self, target: Duration) {
        self.target_s = target.as_secs_f64();
    }

    /// Sets T, the window over which rates are measured, from the next packet on.
    fn set_window(&mut self, window: Duration) {
        self.bps_per_byte = 8.0 / window.as_secs_f64();
        self.measured.set_window(window);
    }

    /// Eq. 1 and 2 for the packet that leaves at `now` and arrived at `arrived`.
    fn control(&mut self, now: Time, arrived: Time, link: &mut impl LinkView) -> Control {
        let cr_bps = self.measured.bytes(now).as_f64() * self.bps_per_byte;
        let ((mu_bps, tr_bps), least) = match &mut self.adaptive {
            Some(adaptive) => (adaptive.rates_bps(now, self.waiting, link), adaptive::LEAST_SHARE),
            None => (self.rates_bps(now, arrived, cr_bps, link), 0.0),
        };
        // abc20 eq.2; open-questions#X-8
        let f = if tr_bps <= 2.0 * least * cr_bps {
            least
        } else if tr_bps < 2.0 * cr_bps {
            0.5 * tr_bps / cr_bps
        } else {
            1.0
        };
        Control { mu_bps, cr_bps, tr_bps, f }
    }

    /// Returns mu and the target rate of eq. 1.
    fn rates_bps(&mut self, now: Time, arrived: Time, cr_bps: f64, link: &mut impl LinkView) -> (f64, f64) {
        let mu_bps = link.capacity(self.measured.window()).as_bps_f64();
        // x mu: what waits, in bits. mu (x - d_t) then needs no division by a mu that may be 0.
        let waiting_bits = match self.rules.x {
            DelayOf::Backlog => self.waiting.bits() as f64,
            DelayOf::Packets => {
                (u64::from(self.packets.backlog().packets + 1) * link.opportunity().bits()) as f64
            }
            DelayOf::Sojourn => now.since(arrived).as_secs_f64() * mu_bps,
            DelayOf::Persistent => {
                self.bursts.delay(Waiting::Persistent, now, arrived).as_secs_f64() * mu_bps
            }
        };
        let aim_bps = match (self.rules.eta_of, self.config.lookahead) {
            (EtaOf::Cr, _) => cr_bps,
            (EtaOf::Mu, None) => mu_bps,
            (EtaOf::Mu, Some(ahead)) => {
                link.lookahead(ahead, self.measured.window()).map_or(mu_bps, |rate| rate.as_bps_f64())
            }
        };
        let mut tr_bps =
            target_rate_bps(self.rules.eta * aim_bps, mu_bps, waiting_bits, self.target_s, self.per_delta);
        if self.config.lookahead_drain && mu_bps > 0.0 {
            let drain_bps = self.rules.eta * aim_bps - tr_bps;
            tr_bps += drain_bps * (1.0 - aim_bps / mu_bps);
        }
        if let Some(integral) = &mut self.integral
            && mu_bps > 0.0
        {
            tr_bps -= mu_bps * integral.update(now, waiting_bits / mu_bps - self.target_s);
        }
        (mu_bps, tr_bps)
    }

    /// What the time without packets since the last dequeue does to the bucket: for `idle` the queue was
    /// empty.
    fn credit_idle_time(&mut self, idle: Duration, link: &mut impl LinkView) {
        match self.rules.idle {
            Idle::Keep => {}
            Idle::Reset => {
                // abc17 Algorithm 1: on each idle period
                if link.unused() > Bytes::ZERO && idle >= self.config.idle_period {
                    self.token = 0.0;
                }
            }
            Idle::Credit => {
                let unused = link.unused();
                if unused > Bytes::ZERO {
                    self.token += 0.5 * self.rules.eta * unused.as_f64() / link.opportunity().as_f64();
                }
            }
        }
    }

    /// Algorithm 1: fills the bucket for one packet and, where that packet may accelerate, says whether it
    /// does.
    fn take_token(&mut self, f: f64, accelerates: bool) -> bool {
        // abc20 Algorithm 1
        self.token += f;
        if self.rules.cap == Cap::Before && self.token > self.config.token_limit {
            self.token = self.config.token_limit;
        }
        let enough = match self.config.token_test {
            Test::Above => self.token > 1.0,
            Test::AtLeast => self.token >= 1.0,
        };
        let taken = accelerates && enough;
        if taken {
            self.token -= 1.0;
        }
        if self.rules.cap == Cap::After && self.token > self.config.token_limit {
            self.token = self.config.token_limit;
        }
        taken
    }

    /// What `packet` says when it comes.
    fn read(&self, packet: &P) -> Mark {
        self.encoding.unwrap_or(packet.encoding()).mark(packet.ecn())
    }

    /// Marks `packet`, which stays an accelerate only if there is a token for it and `has_room`.
    fn mark(&mut self, f: f64, has_room: bool, packet: &mut P) -> Mark {
        let encoding = self.encoding.unwrap_or(packet.encoding());
        match encoding.mark(packet.ecn()) {
            Mark::Accelerate if self.take_token(f, has_room) => Mark::Accelerate,
            Mark::Accelerate => {
                packet.set_ecn(if encoding == Encoding::AbcProxied { Ecn::Ce } else { Ecn::Ect0 });
                Mark::Brake
            }
            Mark::Brake => {
                self.take_token(f, false);
                Mark::None
            }
            Mark::Ce | Mark::None => Mark::None,
        }
    }
}

impl<P: Packet> Queue<P> for Abc<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, link: &mut impl LinkView, drops: &mut Drops<P>) {
        let cost = link.cost(packet.size());
        // A flow that answers accelerates and brakes.
        let answers = self.adaptive.is_some() && matches!(self.read(&packet), Mark::Accelerate | Mark::Brake);
        if self.packets.push_within(self.limit, now, packet, drops) {
            self.waiting += cost;
            if self.config.feedback == Feedback::Enqueue {
                self.measured.add(now, cost);
            }
            if let Some(adaptive) = self.adaptive.as_mut().filter(|_| answers) {
                adaptive.arrive(now, cost, link);
            }
        }
    }

    fn dequeue(&mut self, now: Time, link: &mut impl LinkView, _drops: &mut Drops<P>) -> Option<Dequeued<P>> {
        let (mut packet, arrived) = self.packets.pop()?;
        let cost = link.cost(packet.size());
        self.waiting -= cost;
        if self.config.feedback == Feedback::Dequeue {
            self.measured.add(now, cost);
        }
        // The packet that came to an empty queue is the first to leave since.
        let idle = self.emptied_at.take().map_or(Duration::ZERO, |emptied_at| arrived.since(emptied_at));
        self.credit_idle_time(idle, link);
        self.emptied_at = self.packets.is_empty().then_some(now);
        self.bursts.serve(now);
        self.last = self.control(now, arrived, link);
        let has_room = self.adaptive.as_ref().is_none_or(|adaptive| adaptive.has_room(cost));
        let mark = self.mark(self.last.f, has_room, &mut packet);
        if let (Some(adaptive), Mark::Accelerate) = (&mut self.adaptive, mark) {
            adaptive.order(cost);
        }
        Some(Dequeued { packet, arrived, mark })
    }

    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    fn waiting_since(&self) -> Option<Time> {
        self.packets.head_arrived()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("f", self.last.f);
        visit("tokens", self.token);
        visit("target_rate_bps", self.last.tr_bps);
        visit("capacity_bps", self.last.mu_bps);
        visit("measured_rate_bps", self.last.cr_bps);
        if let Some(integral) = &self.integral {
            visit("integral_share", integral.share);
        }
        if let Some(adaptive) = &self.adaptive {
            adaptive.inspect(visit);
        }
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.packets.for_each(visit);
    }
}

#[cfg(test)]
mod tests;
