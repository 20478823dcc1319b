//! A drop-tail FIFO whose load factor is measured: what the routers of VCP, MLCP and BMCC have in common.
//!
//! `acks_first` gives ACKs a FIFO of their own that is served before the other, in the same buffer. No paper
//! mentions it, but the simulator of VCP's authors has it as a switch (drop-tail2.cc), on which MLCP's and
//! BMCC's seem to have been built; without it data both ways clump each other's ACKs, and the load of an
//! interval says how many clumps fell into it.

use brakelight_core::packet::{Header, Packet};
use brakelight_core::parameters::ParameterError;
use brakelight_core::queue::{Backlog, Dropped, Drops, LinkView, Reason};
use brakelight_core::time::Time;
use brakelight_core::units::Limit;
use brakelight_estimates::load_factor::{LoadFactor, LoadFactorSettings};

use super::fifo::Fifo;

/// The FIFO and its load.
#[derive(Clone, Debug)]
pub(super) struct Measured<P> {
    limit: Limit,
    acks_first: bool,
    /// The first is served first: ACKs if `acks_first`, and otherwise nothing. The second has all others.
    bands: [Fifo<P>; 2],
    load: LoadFactor,
}

impl<P: Packet> Measured<P> {
    pub(super) fn new(limit: Limit, acks_first: bool, settings: LoadFactorSettings) -> Self {
        let bands = [Fifo::default(), Fifo::default()];
        Measured { limit, acks_first, bands, load: LoadFactor::new(settings) }
    }

    #[inline(always)]
    pub(super) fn enqueue(&mut self, now: Time, packet: P, link: &mut impl LinkView, drops: &mut Drops<P>) {
        self.load.advance(now, link);
        let cost = link.cost(packet.size());
        let admitted = self.backlog().admits(self.limit, packet.size());
        if admitted {
            let goes_first = self.acks_first && packet.is_ack();
            self.bands[usize::from(!goes_first)].push(now, packet);
        } else {
            drops.push(Dropped { at: now, packet, reason: Reason::Overflow });
        }
        self.load.arrive(cost, admitted);
    }

    /// A packet arrives and is turned away.
    pub(super) fn refuse(&mut self, now: Time, packet: &P, link: &mut impl LinkView) {
        self.load.advance(now, link);
        self.load.arrive(link.cost(packet.size()), false);
    }

    #[inline(always)]
    pub(super) fn dequeue(&mut self, now: Time, link: &mut impl LinkView) -> Option<(P, Time)> {
        self.load.advance(now, link);
        let band = usize::from(self.bands[0].is_empty());
        let (packet, arrived) = self.bands[band].pop()?;
        self.load.leave(link.cost(packet.size()), link);
        Some((packet, arrived))
    }

    /// The load factor of the last whole interval.
    #[inline]
    pub(super) fn load(&self) -> f64 {
        self.load.load()
    }

    /// The average queue in bytes.
    #[inline]
    pub(super) fn queue_bytes(&self) -> f64 {
        self.load.queue_bytes()
    }

    #[inline]
    pub(super) fn backlog(&self) -> Backlog {
        let [first, others] = &self.bands;
        others.backlog().with(first.backlog())
    }

    pub(super) fn waiting_since(&self) -> Option<Time> {
        self.bands.iter().filter_map(Fifo::head_arrived).min()
    }

    pub(super) fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.bands.iter().for_each(|band| band.for_each(visit));
    }
}

/// Declares the settings of a router that measures its load. What all of them have stands here once;
/// `interval from` and `gamma from` give the sources, which differ, and the router's own fields follow.
macro_rules! measured_parameters {
    (
        $(#[$meta:meta])*
        pub struct $Config:ident {
            $(check $check:path;)?
            interval from $interval:literal;
            gamma from $gamma:literal;
            $($own:tt)*
        }
    ) => {
        brakelight_core::parameters! {
            $(#[$meta])*
            pub struct $Config {
                $(check $check;)?
                /// Interval over which the load factor is measured (t_p).
                interval: brakelight_core::time::Duration = brakelight_core::time::Duration::from_millis(200), in brakelight_core::time::Duration::from_millis(1)..=brakelight_core::time::Duration::from_secs(10), from $interval;
                /// How often the queue is sampled (t_q).
                sample: brakelight_core::time::Duration = brakelight_core::time::Duration::from_millis(10), in brakelight_core::time::Duration::from_micros(10)..=brakelight_core::time::Duration::from_secs(10), from "bmcc II-A";
                /// Weight of the old average of the queue (a).
                weight: f64 = 0.875, in 0.0..=0.999, from "bmcc II-A";
                /// Share of the average queue that counts as load (kappa_1).
                queue_weight: f64 = 0.5, in 0.0..=1.0, from $interval;
                /// Share of the capacity to aim at (gamma_l).
                gamma: f64 = 0.98, in 0.1..=1.0, from $gamma;
                $($own)*
                /// What the capacity of an interval is; busy-time needs to know none.
                load: brakelight_estimates::load_factor::CapacityOf = brakelight_estimates::load_factor::CapacityOf::Link, in .., from "bmcc VII";
                /// Whether ACKs leave before everything else.
                acks_first: bool = false, in .., from "xia05, authors' simulator: a switch";
                /// The buffer, drop-tail, in packets or bytes; none takes the link's.
                limit: Option<brakelight_core::units::Limit> = None, in .., from "abc20 7.2: 250 packets";
            }
        }

        impl $Config {
            /// The buffer and the load that these settings describe.
            fn measured<P: brakelight_core::packet::Packet>(
                &self,
                place: &brakelight_core::queue::Place,
            ) -> $crate::measured::Measured<P> {
                let settings = brakelight_estimates::load_factor::LoadFactorSettings {
                    interval: self.interval,
                    sample: self.sample,
                    weight: self.weight,
                    queue_weight: self.queue_weight,
                    gamma: self.gamma,
                    capacity: self.load,
                };
                $crate::measured::Measured::new(self.limit.unwrap_or(place.limit), self.acks_first, settings)
            }
        }
    };
}
pub(super) use measured_parameters;

/// Refuses levels in the wrong order.
pub(super) fn ordered(eta_0: f64, eta: f64) -> Result<(), ParameterError> {
    if eta_0 < eta {
        return Ok(());
    }
    let range = alloc::format!("0.001 to below eta = {eta}");
    Err(ParameterError::OutOfRange { name: "eta_0", value: alloc::format!("{eta_0}"), range })
}

/// Raises the load code that `packet` carries to `code`: the sender hears of the most congested router.
#[inline]
pub(super) fn raise(packet: &mut impl Packet, code: u8) {
    if let Header::Load { code: before } = packet.header()
        && before < code
    {
        packet.set_header(Header::Load { code });
    }
}

/// Generates `impl Queue` for a queue that differs in what it does to a packet that leaves: a field
/// `measured`, and a method `stamp(&mut self, &mut P) -> Mark`.
macro_rules! measured_queue {
    ($Queue:ident) => {
        impl<P: brakelight_core::packet::Packet> brakelight_core::queue::Queue<P> for $Queue<P> {
            #[inline]
            fn enqueue(
                &mut self,
                now: brakelight_core::time::Time,
                packet: P,
                link: &mut impl brakelight_core::queue::LinkView,
                drops: &mut brakelight_core::queue::Drops<P>,
            ) {
                self.measured.enqueue(now, packet, link, drops);
            }

            #[inline]
            fn dequeue(
                &mut self,
                now: brakelight_core::time::Time,
                link: &mut impl brakelight_core::queue::LinkView,
                _drops: &mut brakelight_core::queue::Drops<P>,
            ) -> Option<brakelight_core::queue::Dequeued<P>> {
                let (mut packet, arrived) = self.measured.dequeue(now, link)?;
                let mark = self.stamp(&mut packet);
                Some(brakelight_core::queue::Dequeued { packet, arrived, mark })
            }

            fn backlog(&self) -> brakelight_core::queue::Backlog {
                self.measured.backlog()
            }

            fn waiting_since(&self) -> Option<brakelight_core::time::Time> {
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
    };
}
pub(super) use measured_queue;
