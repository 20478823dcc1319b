//! A drop-tail FIFO whose load factor is measured: what the routers of VCP, MLCP and BMCC have in common.

use super::fifo::Fifo;
use super::{Backlog, Drops, LinkView};
use crate::estimate::load_factor::{LoadFactor, Settings};
use crate::packet::{Header, Packet};
use crate::time::Time;
use crate::units::Limit;

/// The FIFO and its load.
#[derive(Clone, Debug)]
pub(super) struct Measured<P> {
    limit: Limit,
    packets: Fifo<P>,
    load: LoadFactor,
}

impl<P: Packet> Measured<P> {
    pub(super) fn new(limit: Limit, settings: Settings) -> Self {
        Measured { limit, packets: Fifo::default(), load: LoadFactor::new(settings) }
    }

    #[inline]
    pub(super) fn enqueue(&mut self, now: Time, packet: P, link: &mut impl LinkView, drops: &mut Drops<P>) {
        self.load.advance(now, link);
        let cost = link.cost(packet.size());
        let admitted = self.packets.push_within(self.limit, now, packet, drops);
        self.load.arrive(cost, admitted);
    }

    /// A packet arrives and is turned away.
    pub(super) fn refuse(&mut self, now: Time, packet: &P, link: &mut impl LinkView) {
        self.load.advance(now, link);
        self.load.arrive(link.cost(packet.size()), false);
    }

    #[inline]
    pub(super) fn dequeue(&mut self, now: Time, link: &mut impl LinkView) -> Option<(P, Time)> {
        self.load.advance(now, link);
        let (packet, arrived) = self.packets.pop()?;
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

    pub(super) fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    pub(super) fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.packets.for_each(visit);
    }
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

/// Generates `impl Queue` for a queue that differs in what it does to a packet that leaves: a field `measured`, and a
/// method `stamp(&mut self, &mut P) -> Mark`.
macro_rules! measured_queue {
    ($Queue:ident) => {
        impl<P: $crate::packet::Packet> $crate::queue::Queue<P> for $Queue<P> {
            #[inline]
            fn enqueue(
                &mut self,
                now: $crate::time::Time,
                packet: P,
                link: &mut impl $crate::queue::LinkView,
                drops: &mut $crate::queue::Drops<P>,
            ) {
                self.measured.enqueue(now, packet, link, drops);
            }

            #[inline]
            fn dequeue(
                &mut self,
                now: $crate::time::Time,
                link: &mut impl $crate::queue::LinkView,
                _drops: &mut $crate::queue::Drops<P>,
            ) -> Option<$crate::queue::Dequeued<P>> {
                let (mut packet, arrived) = self.measured.dequeue(now, link)?;
                let mark = self.stamp(&mut packet);
                Some($crate::queue::Dequeued { packet, arrived, mark })
            }

            fn backlog(&self) -> $crate::queue::Backlog {
                self.measured.backlog()
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
