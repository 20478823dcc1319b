//! Ramp: marks, or drops, departing packets with a probability that rises with the time they waited.
//!
//! p = most * clamp((sojourn - min) / (max - min), 0, 1)

use brakelight_core::ecn::{Ecn, Mark};
use brakelight_core::packet::{BoxedPacket, Packet};
use brakelight_core::parameters;
use brakelight_core::parameters::ParameterError;
use brakelight_core::queue::{
    Backlog, Dequeued, Dropped, Drops, LinkView, Place, Queue, Reason, may_mark_ce,
};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Limit;
use brakelight_registry::{Algorithm, CustomQueue};
use brakelight_routers::fifo::Fifo;

parameters! {
    /// Settings of [`Ramp`].
    pub struct Config {
        check ascending;
        /// The waiting time up to which nothing happens.
        min: Duration = Duration::from_millis(5), in Duration::ZERO..=Duration::from_secs(10), from "chosen here";
        /// The waiting time from which the probability is the largest.
        max: Duration = Duration::from_millis(50), in Duration::from_micros(1)..=Duration::from_secs(10), from "chosen here";
        /// The largest probability.
        most: f64 = 0.1, in 0.001..=1.0, from "chosen here";
    }
}

fn ascending(config: &Config) -> Result<(), ParameterError> {
    if config.min < config.max {
        return Ok(());
    }
    let reason = format!("min = `{}` is not less than max = `{}`", config.min, config.max);
    Err(ParameterError::Conflict { reason })
}

/// A FIFO with a ramp at its end.
#[derive(Clone, Debug)]
pub struct Ramp<P> {
    config: Config,
    limit: Limit,
    random: Random,
    packets: Fifo<P>,
}

impl<P> Ramp<P> {
    fn hits(&mut self, sojourn: Duration) -> bool {
        let (min, max) = (self.config.min.as_secs_f64(), self.config.max.as_secs_f64());
        let ramp = (sojourn.as_secs_f64() - min) / (max - min);
        self.random.chance(self.config.most * ramp.clamp(0.0, 1.0))
    }
}

impl Algorithm for Ramp<BoxedPacket> {
    type Config = Config;
    const NAME: &'static str = "ramp";
    const SUMMARY: &'static str =
        "Ramp: marks or drops with a probability that rises with the time that packets waited";
}

impl CustomQueue for Ramp<BoxedPacket> {
    fn build(config: &Config, place: &Place) -> Self {
        Ramp {
            config: config.clone(),
            limit: place.limit,
            random: place.random.clone(),
            packets: Fifo::default(),
        }
    }
}

impl<P: Packet> Queue<P> for Ramp<P> {
    fn enqueue(&mut self, now: Time, packet: P, _link: &mut impl LinkView, drops: &mut Drops<P>) {
        self.packets.push_within(self.limit, now, packet, drops);
    }

    fn dequeue(&mut self, now: Time, _link: &mut impl LinkView, drops: &mut Drops<P>) -> Option<Dequeued<P>> {
        loop {
            let (mut packet, arrived) = self.packets.pop()?;
            // The last packet always leaves: without it the link would idle.
            if self.packets.backlog().is_empty() || !self.hits(now.since(arrived)) {
                return Some(Dequeued { packet, arrived, mark: Mark::None });
            }
            if may_mark_ce(&packet) {
                packet.set_ecn(Ecn::Ce);
                let mark = packet.encoding().mark(Ecn::Ce);
                return Some(Dequeued { packet, arrived, mark });
            }
            drops.push(Dropped { at: now, packet, reason: Reason::Early });
        }
    }

    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.packets.for_each(visit);
    }
}
