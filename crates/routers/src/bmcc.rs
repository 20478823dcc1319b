//! The router of BMCC, Binary Marking Congestion Control (Qazi, Andrew and Znati, `bmcc`): the load factor in
//! single ECN bits, by adaptive deterministic packet marking.
//!
//! ```text
//! f >= u, or the packet carries 11:     11                                    bmcc II-A
//! else f > h(packet):                   01
//! else:                                 as it is, 10 or 01
//! ```
//!
//! f is computed in `brakelight_estimates::load_factor`, every t_p; h in `brakelight_estimates::adpm`, the
//! same function at the receiver.
//!
//! With `coexist` 11 is not overload but what it is to everyone else, the mark of an AQM, so that BMCC and
//! TCP answer the same signal and BMCC's bits only say how much (bmcc VI). The AQM is RED (floyd93) on the
//! average queue that the load factor needs anyway:
//!
//! ```text
//! q_av < min:    p_b = 0
//! q_av < max:    p_b = red_max_p (q_av - min) / (max - min)
//! else:          p_b = 1
//! mark or drop with probability p_b / (1 - count p_b), count packets after the last one  floyd93 4, `red.rs`
//! min = max(5 packets, red_target C / 2),  max = 3 min                                ns-2.35 red.cc
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | t_p | `interval` | s | 200 ms | bmcc table I |
//! | t_q | `sample` | s | 10 ms | bmcc II-A |
//! | a | `weight` | 1 | 0.875 | bmcc II-A |
//! | kappa_1 | `queue_weight` | 1 | 0.5 | bmcc table I |
//! | gamma_l | `gamma` | 1 | 0.98 | open-questions#X-33 |
//! | eta_0, eta, u | `eta_0`, `eta`, `u` | 1 | 0.15, 0.75, 1.2 | bmcc table I, II-D |
//! | - | `bits` | bits | 16 | bmcc II-E |
//!
//! # Deviations
//!
//! - D1. gamma_l is "at most 1" in the paper; 0.98 as in the VCP router of abc20, and 1 in the paper's
//!   analysis (open-questions#X-33).
//! - D2. 11 is written at f >= u, as in II-A; III-b says f > u (open-questions#X-36).
//! - D3. A flow that speaks RFC 3168's ECN gets 11 where a BMCC flow would, but never 01: a real router could
//!   not tell the two apart, and 01 means the same as 10 to such a flow.
//! - D4. Packets that cannot be marked are never dropped but by overflow; with `coexist` RED drops them
//!   early.
//! - D5. RED's average is the load factor's, sampled every t_q, not once per packet; the paper says "standard
//!   AQM (such as RED/ECN)".
//! - D6. ACKs wait among data; `acks_first` serves them first, as the simulator of VCP's authors does (see
//!   the page).

use brakelight_core::ecn::{Ecn, Encoding, Mark};
use brakelight_core::packet::Packet;
use brakelight_core::parameters::ParameterError;
use brakelight_core::queue::{
    Backlog, Dequeued, Dropped, Drops, LinkKind, LinkView, Misfit, Place, Queue, Reason, may_mark_ce,
};
use brakelight_core::time::{Duration, Time};
use brakelight_estimates::adpm::Layout;

use super::measured::{Measured, measured_parameters, ordered};
use super::red::{Chooser, Verdict};

measured_parameters! {
    /// The BMCC router's settings.
    pub struct Config {
        check in_order;
        interval from "bmcc table I";
        gamma from "not stated in bmcc: the ABC authors' code";
        /// Load factor below which loads are not told apart.
        eta_0: f64 = 0.15, in 0.001..=0.9, from "bmcc table I";
        /// Load factor from which load is medium.
        eta: f64 = 0.75, in 0.01..=0.99, from "bmcc table I";
        /// Load factor from which load is severe.
        u: f64 = 1.2, in 1.01..=3.0, from "bmcc II-D";
        /// Bits of the packet that make its hash: 16, or 3 for the resolution of UNO.
        bits: u32 = 16, in 1..=16, from "bmcc II-E";
        /// Whether 11 is the mark of an AQM, as TCP understands it, and not overload.
        coexist: bool = false, in .., from "bmcc VI";
        /// RED's target delay: its thresholds lie at half and one and a half of it.
        red_target: Duration = Duration::from_millis(5), in Duration::from_micros(1)..=Duration::from_secs(10), from "ns-2.35 red.cc";
        /// RED's probability at the upper threshold.
        red_max_p: f64 = 0.1, in 0.001..=1.0, from "ns-2.35 red.cc";
    }
}

fn in_order(config: &Config) -> Result<(), ParameterError> {
    ordered(config.eta_0, config.eta)
}

/// The load can be measured on the link, and RED's lower threshold is within the buffer where the link's rate
/// is known.
pub(crate) fn fits(config: &Config, link: &LinkKind) -> Result<(), Misfit> {
    config.load.fits(link)?;
    let Some(rate) = link.rate.filter(|_| config.coexist) else { return Ok(()) };
    // The thresholds lie at half and one and a half of the target, so the lower one is in the buffer up to
    // twice its wait.
    let packets = config.limit.unwrap_or(link.buffer).in_packets(LinkKind::FULL_PACKET);
    let room = rate.time_for(LinkKind::FULL_PACKET).mul_f64(2.0 * packets);
    match config.red_target {
        target if target > room => Err(Misfit::unreachable("red_target", target, room)),
        _ => Ok(()),
    }
}

/// RED, for what TCP understands, on an average in bytes.
fn red(config: &Config, place: &Place) -> Chooser {
    let target_bytes = place.nominal.as_bps_f64() / 8.0 * config.red_target.as_secs_f64();
    let min_bytes = (target_bytes / 2.0).max(LEAST_BYTES);
    Chooser::plain(min_bytes, 3.0 * min_bytes, config.red_max_p, place.random.clone())
}

/// ns-2.35 red.cc, initialize_params: a threshold is at least five packets.
const LEAST_BYTES: f64 = 5.0 * 1500.0;

/// BMCC's router.
#[derive(Clone, Debug)]
pub struct Bmcc<P> {
    measured: Measured<P>,
    layout: Layout,
    /// A load factor, and how many hash values lie below it: most packets meet the same one.
    below: (f64, u32),
    red: Option<Chooser>,
}

impl<P: Packet> Bmcc<P> {
    /// Returns an empty queue.
    pub fn new(config: &Config, place: &Place) -> Self {
        Bmcc {
            measured: config.measured(place),
            layout: Layout { eta_0: config.eta_0, eta: config.eta, u: config.u, bits: config.bits },
            below: (0.0, 0),
            red: config.coexist.then(|| red(config, place)),
        }
    }

    fn stamp(&mut self, packet: &mut P) -> Mark {
        if packet.ecn() == Ecn::Ce || !may_mark_ce(packet) {
            return Mark::None;
        }
        let f = self.measured.load();
        let congested = match &mut self.red {
            // bmcc VI
            Some(red) => red.judge(self.measured.queue_bytes()) != Verdict::Admit,
            // bmcc II-A
            None => f >= self.layout.u,
        };
        if congested {
            packet.set_ecn(Ecn::Ce);
            return Mark::Ce;
        }
        // A mark from upstream stays.
        if packet.encoding() == Encoding::Bmcc && packet.ecn() == Ecn::Ect0 {
            if f != self.below.0 {
                self.below = (f, self.layout.count_below(f));
            }
            // f > h
            if u32::from(self.layout.rank(packet.hash16())) < self.below.1 {
                packet.set_ecn(Ecn::Ect1);
            }
        }
        Mark::None
    }
}

impl<P: Packet> Queue<P> for Bmcc<P> {
    #[inline(always)]
    fn enqueue(&mut self, now: Time, packet: P, link: &mut impl LinkView, drops: &mut Drops<P>) {
        if let Some(red) = &mut self.red
            && !may_mark_ce(&packet)
            && red.judge(self.measured.queue_bytes()) != Verdict::Admit
        {
            self.measured.refuse(now, &packet, link);
            drops.push(Dropped { at: now, packet, reason: Reason::Early });
            return;
        }
        self.measured.enqueue(now, packet, link, drops);
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Time, link: &mut impl LinkView, _drops: &mut Drops<P>) -> Option<Dequeued<P>> {
        let (mut packet, arrived) = self.measured.dequeue(now, link)?;
        let mark = self.stamp(&mut packet);
        Some(Dequeued { packet, arrived, mark })
    }

    fn backlog(&self) -> Backlog {
        self.measured.backlog()
    }

    fn waiting_since(&self) -> Option<Time> {
        self.measured.waiting_since()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("load_factor", self.measured.load());
        visit("average_queue_bytes", self.measured.queue_bytes());
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.measured.for_each(visit);
    }
}

#[cfg(test)]
mod tests;
