//! ABC's router with other traffic on its link (Goyal et al., NSDI 2020, section 4.3): two queues, weighted
//! so that long flows get the same in both.
//!
//! ```text
//! a packet goes to ABC's queue or to the other one by its flow            abc20 4.3
//! the link serves the queue whose next packet starts first:               goyal96 (start-time fair queueing)
//!   S = max(v, F)    F = S + bytes / weight    v = S of the packet in service
//! ABC's marks follow eq.1 and 2 with its own share of the link: mu = share mu_link  abc20 4.3
//!
//! every T, with rates averaged over tau (`weights.rs`):                   abc20 4.3
//!   r_i    = rate of each of a queue's K heaviest flows, by Space-Saving
//!   short  = rate of the queue - sum of r_i
//!   demand = (1 + X) r_i of a heavy flow, `short` of all others of a queue together
//!   weight of a queue = sum of the max-min fair allocations of its demands
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | K | `top` | flows | 10 | open-questions#X-19; not stated in abc20 |
//! | - | `counters` | flows | 64 | D1 |
//! | X | `headroom` | 1 | 0.1 | abc20 4.3 |
//! | T | `period` | s | 100 ms | open-questions#X-19; not stated in abc20 |
//! | tau | `averaging` | s | 500 ms | the authors' router: a gain of 0.25/1000 per packet at 96 Mbit/s |
//! | - | `least` | 1 | 0.05 | open-questions#X-19; the authors' router |
//! | - | `weights` | choice | max-min | abc20 4.3 |
//! | - | `classify` | choice | flow | open-questions#X-12 |
//! | - | `demand` | choice | rates | D9 |
//! | - | `measure`, `buffers` | choice | arrivals, own | D4, D7 |
//!
//! All options of `abc` are options of this queue too, and mean the same; `limit` is the buffer of each
//! queue.
//!
//! `weights` also offers what abc20 compares with. `zombie` is RCP's way: as many parts for a queue as it has
//! flows, by a zombie list of SRED (`zombie.rs`). `loss` is XCP's: the weights move until the window that the
//! loss rate of the other queue stands for is ABC's own (`loss.rs`). `fixed` keeps one half each.
//!
//! # Deviations
//!
//! - D1. Space-Saving with K counters would be right only if short flows were few. It has `counters`, several
//!   times K, and a flow's rate is what it certainly has, count less error, so that a short flow that
//!   inherited a large count is not taken for a long one. Memory stays O(K).
//! - D2. Short flows are granted what they have before heavy flows share the rest: they are many, and taken
//!   as one flow they would starve (open-questions#X-19).
//! - D3. What nobody demands goes to both queues in halves, but the other queue gets no more of it than it
//!   demands. Shared in proportion to the demands (open-questions#X-19) it would hold ABC back where it
//!   starts: averages lag behind a flow that doubles every round trip, and ABC, unlike Cubic, sends no more
//!   than its share even while the link is idle. Shared in halves whatever the demands, a flow of 1 kbit/s in
//!   the other queue would take half of what a link gains when it grows.
//! - D4. Rates are counted where packets arrive, those that will be dropped among them, as the authors'
//!   router does: what a queue was allowed to send says less of what its flows want. `measure=departures`
//!   reads abc20's "throughput" by the letter; then a queue that bursts of short flows overflow loses weight
//!   for it. The authors' router picks the queue of each packet at random by weight, knows long flows by
//!   their ports, takes the sum of all rates for the capacity, and keeps a weight within 20 % of the queue's
//!   actual share.
//! - D5. Scheduler: start-time fair queueing between the two queues. Deficit round robin would give the same
//!   shares; with a weight of 5 % its round is 20 packets, which on a slow link is a delay of its own.
//! - D6. No weight falls below `least`, so a queue that fell silent can speak up again. While the other queue
//!   has nothing at all to send, ABC's share is not reduced for it.
//! - D7. Each queue has a buffer of its own, as in the authors' router; abc20 says nothing about buffers.
//!   `buffers=shared` has one for both: when it is full, the queue that holds more for its weight loses its
//!   newest packet.
//! - D8. `classify=ect1` sends accelerates to ABC's queue and everything else to the other one. It is there
//!   to show why it does not do: a packet that an earlier router braked looks like ordinary ECN
//!   (open-questions#X-12).
//! - D10. T of eq. 1 is at least the time of four packets at ABC's share. A packet that leaves is itself in
//!   the window, so cr over less time than that is too large, f too small, and ABC uses less than its share.
//!   Its demand is then below what it has, and its weight falls to `least` and stays there: beside four
//!   flows of Cubic on lte-walking one ABC flow had 0.44 Mbit/s and each of the others 2.15. With this rule
//!   each has 1.81.

use alloc::vec::Vec;

use brakelight_core::ecn::{Ecn, Encoding, Mark};
use brakelight_core::packet::{FlowId, Packet};
use brakelight_core::parameters::{self, List, Parameter, ParameterError, Parameters};
use brakelight_core::queue::{Backlog, Dequeued, Dropped, Drops, LinkView, Place, Queue, Reason};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit, Rate};

use self::loss::LossIntervals;
pub use self::weights::max_min_share;
use self::weights::{Meter, Shares};
use self::zombie::ZombieList;
use super::Abc;
use crate::fifo::Fifo;

mod loss;
pub(super) mod weights;
mod zombie;

choices! {
    /// How the weights of the two queues are found.
    pub enum Weights {
        /// Max-min fair over the demands of heavy flows.
        MaxMin = "max-min",
        /// By the number of flows in each, as RCP.
        Zombie = "zombie",
        /// By the loss rate of the other queue, as XCP.
        Loss = "loss",
        /// One half each.
        Fixed = "fixed",
    }
}

choices! {
    /// The demand assumed for a heavy ABC flow.
    pub enum DemandOf {
        /// X more than it has.
        Rates = "rates",
        /// That, and no more than two packets for each accelerate it brings.
        Marks = "marks",
    }
}

choices! {
    /// Where the rates of flows are measured.
    pub enum Measured {
        /// Where packets leave.
        Departures = "departures",
        /// Where packets arrive, those that will be dropped among them.
        Arrivals = "arrivals",
    }
}

choices! {
    /// Whether the two queues share the buffer.
    pub enum Buffers {
        /// One for both queues.
        Shared = "shared",
        /// As large a one for each.
        Own = "own",
    }
}

choices! {
    /// How ABC's packets are told from others.
    pub enum Classify {
        /// The flow's encoding: what a proxy's address, a flow label or an IPID say in a real network.
        Flow = "flow",
        /// ECT(1) on the packet.
        Ect1 = "ect1",
    }
}

parameters! {
    /// What the two queues need beside ABC's own settings.
    pub struct DualSettings {
        check consistent;
        /// How the weights are found.
        weights: Weights = Weights::MaxMin, in .., from "abc20 4.3";
        /// Heavy flows of each queue that have a demand of their own (K).
        top: u32 = 10, in 1..=10_000, from "not stated in abc20: ours";
        /// Flows of each queue that are watched for that.
        counters: u32 = 64, in 1..=100_000, from "several times K";
        /// By how much a heavy flow's demand exceeds its rate (X).
        headroom: f64 = 0.1, in 0.0..=10.0, from "abc20 4.3";
        /// The demand assumed for a heavy ABC flow.
        demand: DemandOf = DemandOf::Rates, in .., from "abc20 4.3; marks: abc17 6";
        /// Where the rates of flows are measured.
        measure: Measured = Measured::Arrivals, in .., from "abc20's code";
        /// Whether the two queues share the buffer.
        buffers: Buffers = Buffers::Own, in .., from "abc20's code";
        /// Time between two computations of the weights.
        period: Duration = Duration::from_millis(100), in Duration::from_millis(1)..=Duration::from_secs(100), from "not stated in abc20: ours";
        /// Time over which rates are averaged.
        averaging: Duration = Duration::from_millis(500), in Duration::from_millis(1)..=Duration::from_secs(1000), from "abc20's code";
        /// The least weight of a queue.
        least: f64 = 0.05, in 0.001..=0.5, from "not in abc20: ours";
        /// How ABC's packets are told from others.
        classify: Classify = Classify::Flow, in .., from "abc20 4.3";
    }
}

fn consistent(settings: &DualSettings) -> Result<(), ParameterError> {
    if settings.counters < settings.top {
        let reason =
            alloc::format!("counters = {} cannot find the top = {} flows", settings.counters, settings.top);
        return Err(ParameterError::Conflict { reason });
    }
    Ok(())
}

/// The settings of both halves; each name belongs to one of them.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Config {
    /// What the two queues need.
    pub dual: DualSettings,
    /// What ABC's marks need.
    pub abc: super::Config,
}

impl Parameters for Config {
    fn with_options<'a>(
        self,
        options: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ParameterError> {
        let own = DualSettings::describe();
        let is_own = |option: &(&str, &str)| own.iter().any(|parameter| parameter.name == option.0);
        let (dual, abc): (Vec<_>, Vec<_>) = options.into_iter().partition(is_own);
        let abc = self.abc.with_options(abc).map_err(|error| match error {
            ParameterError::Unknown { name, known } => {
                let own: Vec<_> = own.iter().map(|parameter| parameter.name).collect();
                ParameterError::Unknown { name, known: alloc::format!("{}, {known}", own.join(", ")) }
            }
            other => other,
        });
        Ok(Config { dual: self.dual.with_options(dual)?, abc: abc? })
    }

    fn settings(&self) -> parameters::OptionValues {
        let mut settings = self.dual.settings();
        settings.extend(self.abc.settings());
        settings
    }

    fn describe() -> List {
        let mut list: Vec<Parameter> = DualSettings::describe();
        list.extend(super::Config::describe());
        list
    }
}

/// One of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Abc,
    Other,
}

impl Class {
    const BOTH: [Class; 2] = [Class::Abc, Class::Other];

    fn opposite(self) -> Class {
        match self {
            Class::Abc => Class::Other,
            Class::Other => Class::Abc,
        }
    }
}

/// ABC's router with other traffic beside it.
#[derive(Clone, Debug)]
pub struct AbcDual<P> {
    settings: DualSettings,
    limit: Limit,
    abc: Abc<P>,
    other: Fifo<P>,
    /// When the next packet of each queue starts, in bytes per weight after the packet in service.
    starts: [f64; 2],
    meters: [Meter; 2],
    /// Accelerates that heavy ABC flows brought; counted for `demand=marks`.
    asked: Meter,
    rule: Rule,
    /// For the scheduler, ABC's first.
    weights: [f64; 2],
    /// ABC's part of the link's rate.
    share: f64,
    /// The least T of eq. 1.
    window: Duration,
    next_update: Time,
}

/// What each way of finding weights keeps.
#[derive(Clone, Debug)]
enum Rule {
    MaxMin(Shares),
    Zombie([ZombieList; 2]),
    Loss(LossIntervals),
    Fixed,
}

impl<P: Packet> AbcDual<P> {
    /// Returns an empty queue.
    pub fn new(config: &Config, place: &Place) -> Self {
        let settings = config.dual.clone();
        let meter = || Meter::new(&settings);
        let mut random = place.random.clone();
        let rule = match settings.weights {
            Weights::MaxMin => Rule::MaxMin(Shares::new(&settings)),
            Weights::Zombie => Rule::Zombie([ZombieList::new(&mut random), ZombieList::new(&mut random)]),
            Weights::Loss => Rule::Loss(LossIntervals::default()),
            Weights::Fixed => Rule::Fixed,
        };
        // The limit is kept here, so ABC's own queue has none.
        let abc =
            super::Values { limit: Some(Limit::Packets(u32::MAX)), ..super::Values::clone(&config.abc) };
        let abc = super::Config::new(abc).expect("any limit goes with any other option");
        AbcDual {
            limit: config.abc.limit.unwrap_or(place.limit),
            abc: Abc::new(&abc, place),
            other: Fifo::default(),
            starts: [0.0; 2],
            meters: [meter(), meter()],
            asked: meter(),
            rule,
            weights: [0.5; 2],
            share: 0.5,
            window: abc.window,
            next_update: Time::ZERO + settings.period,
            settings,
        }
    }

    fn class(&self, packet: &P) -> Class {
        let abc = match self.settings.classify {
            // On a path with other meanings of the field a flow is known by what its sender sets.
            Classify::Flow if self.abc.config.misread => packet.encoding().sent() == Ecn::Ect1,
            Classify::Flow => matches!(packet.encoding(), Encoding::Abc | Encoding::AbcProxied),
            Classify::Ect1 => packet.ecn() == Ecn::Ect1,
        };
        if abc { Class::Abc } else { Class::Other }
    }

    fn backlog_of(&self, class: Class) -> Backlog {
        match class {
            Class::Abc => self.abc.packets.backlog(),
            Class::Other => self.other.backlog(),
        }
    }

    fn total(&self) -> Backlog {
        let [abc, other] = Class::BOTH.map(|class| self.backlog_of(class));
        Backlog { packets: abc.packets + other.packets, bytes: abc.bytes + other.bytes }
    }

    /// Makes room for a packet of `size` bytes in `class`; false when that class has to do without it.
    fn make_room(
        &mut self,
        now: Time,
        class: Class,
        size: u32,
        link: &mut impl LinkView,
        drops: &mut Drops<P>,
    ) -> bool {
        if self.settings.buffers == Buffers::Own {
            return self.backlog_of(class).admits(self.limit, size);
        }
        while !self.total().admits(self.limit, size) {
            let held = |class: Class, more: u32| {
                (self.backlog_of(class).bytes.0 + u64::from(more)) as f64 / self.weights[class as usize]
            };
            let longest = class.opposite();
            if held(class, size) >= held(longest, 0) {
                return false;
            }
            let newest = match longest {
                Class::Other => self.other.pop_back(),
                Class::Abc => self.abc.packets.pop_back(),
            };
            let Some((packet, _)) = newest else { return false };
            if longest == Class::Abc {
                self.abc.waiting -= link.cost(packet.size());
            }
            self.note_drop(now, longest);
            drops.push(Dropped { at: now, packet, reason: Reason::Overflow });
        }
        true
    }

    fn note_drop(&mut self, now: Time, class: Class) {
        if let (Rule::Loss(losses), Class::Other) = (&mut self.rule, class) {
            losses.on_drop(now, self.settings.period);
        }
    }

    /// The queue whose next packet starts first.
    fn next_class(&self) -> Class {
        if self.abc.packets.is_empty() {
            Class::Other
        } else if self.other.is_empty() || self.starts[0] <= self.starts[1] {
            Class::Abc
        } else {
            Class::Other
        }
    }

    // goyal96, with v moved to zero after every packet
    fn served(&mut self, class: Class, cost: Bytes) {
        if self.abc.packets.is_empty() && self.other.is_empty() {
            self.starts = [0.0; 2];
            return;
        }
        let (own, its) = (class as usize, class.opposite() as usize);
        self.starts[its] = (self.starts[its] - self.starts[own]).max(0.0);
        self.starts[own] = cost.as_f64() / self.weights[own];
    }

    /// Computes the weights that were due by `now`. Nothing but time passed since the last packet, so periods
    /// in which nothing happened are one step, however many they are.
    fn update(&mut self, now: Time, link: &mut impl LinkView) {
        let missed = now.since(self.next_update).periods(self.settings.period);
        self.next_update += self.settings.period * (missed + 1);
        if missed > 0 {
            self.meters.iter_mut().chain([&mut self.asked]).for_each(|meter| meter.age(missed));
        }
        let weight = match &mut self.rule {
            Rule::MaxMin(shares) => {
                let capacity_bps = link.capacity(self.settings.averaging).as_bps_f64();
                let asked = (self.settings.demand == DemandOf::Marks).then_some(&self.asked);
                shares.abc_weight(&mut self.meters, asked, capacity_bps)
            }
            Rule::Zombie([abc, other]) => {
                let (abc, other) = (abc.flows(), other.flows());
                Some(abc / (abc + other))
            }
            Rule::Loss(losses) => losses.abc_weight(self.weights[0], self.meters[0].mean_f()),
            Rule::Fixed => None,
        };
        self.meters.iter_mut().chain([&mut self.asked]).for_each(|meter| meter.age(1));
        let Some(weight) = weight else { return };
        let least = self.settings.least;
        self.weights[0] = weight.clamp(least, 1.0 - least);
        self.weights[1] = 1.0 - self.weights[0];
        self.share = weight.max(least);
        let share = link.capacity(self.settings.averaging).mul_f64(self.share);
        self.abc.set_window(window(self.window, link.opportunity(), share));
    }
}

/// Packets that a window holds where ABC has its share.
const WINDOW_PACKETS: f64 = 4.0;

/// T of eq. 1 where ABC's share of the link is `share`: `window`, or the time in which four packets of size
/// `packet` leave at that rate, but no more than a second (D10).
pub fn window(window: Duration, packet: Bytes, share: Rate) -> Duration {
    let of_packets_s = WINDOW_PACKETS * packet.bits() as f64 / share.as_bps_f64().max(1.0);
    window.max(Duration::from_secs_f64(of_packets_s.min(1.0)))
}

impl<P: Packet> Queue<P> for AbcDual<P> {
    fn enqueue(&mut self, now: Time, packet: P, link: &mut impl LinkView, drops: &mut Drops<P>) {
        if now >= self.next_update {
            self.update(now, link);
        }
        let (class, flow) = (self.class(&packet), packet.flow());
        if let Rule::Zombie(lists) = &mut self.rule {
            lists[class as usize].on_packet(flow);
        }
        if let (Rule::Loss(losses), Class::Other) = (&mut self.rule, class) {
            losses.on_packet();
        }
        let cost = link.cost(packet.size());
        if self.settings.measure == Measured::Arrivals {
            self.meters[class as usize].add(flow, cost);
        }
        if self.settings.demand == DemandOf::Marks && self.abc.read(&packet) == Mark::Accelerate {
            self.asked.add(flow, cost);
        }
        if !self.make_room(now, class, packet.size(), link, drops) {
            self.note_drop(now, class);
            drops.push(Dropped { at: now, packet, reason: Reason::Overflow });
            return;
        }
        match class {
            Class::Abc => self.abc.enqueue(now, packet, &mut Share { link, share: self.share }, drops),
            Class::Other => self.other.push(now, packet),
        }
    }

    fn dequeue(&mut self, now: Time, link: &mut impl LinkView, drops: &mut Drops<P>) -> Option<Dequeued<P>> {
        if now >= self.next_update {
            self.update(now, link);
        }
        let class = self.next_class();
        let left = match class {
            Class::Abc => {
                let left = self.abc.dequeue(now, &mut Share { link, share: self.share }, drops)?;
                self.meters[0].note_f(self.abc.last.f);
                left
            }
            Class::Other => {
                let (packet, arrived) = self.other.pop()?;
                Dequeued { packet, arrived, mark: Mark::None }
            }
        };
        let cost = link.cost(left.packet.size());
        self.served(class, cost);
        if self.settings.measure == Measured::Departures {
            self.meters[class as usize].add(left.packet.flow(), cost);
        }
        Some(left)
    }

    fn backlog(&self) -> Backlog {
        self.total()
    }

    fn waiting_since(&self) -> Option<Time> {
        self.abc.waiting_since().into_iter().chain(self.other.head_arrived()).min()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("abc_share", self.share);
        visit("abc_backlog_bytes", self.abc.packets.backlog().bytes.as_f64());
        visit("other_backlog_bytes", self.other.backlog().bytes.as_f64());
        self.abc.inspect(visit);
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.abc.packets.for_each(visit);
        self.other.for_each(visit);
    }
}

/// The link as ABC's queue sees it: a part of it.
pub(super) struct Share<'a, L> {
    pub(super) link: &'a mut L,
    pub(super) share: f64,
}

impl<L: LinkView> LinkView for Share<'_, L> {
    fn capacity(&mut self, window: Duration) -> Rate {
        self.link.capacity(window).mul_f64(self.share)
    }

    fn unused(&mut self) -> Bytes {
        Bytes((self.link.unused().as_f64() * self.share) as u64)
    }

    fn opportunity(&self) -> Bytes {
        self.link.opportunity()
    }

    fn cost(&self, size: u32) -> Bytes {
        self.link.cost(size)
    }

    fn lookahead(&mut self, ahead: Duration, window: Duration) -> Option<Rate> {
        self.link.lookahead(ahead, window).map(|rate| rate.mul_f64(self.share))
    }
}

/// A flow as the estimators know it.
fn key(flow: FlowId) -> u32 {
    flow.0
}

#[cfg(test)]
mod tests;
