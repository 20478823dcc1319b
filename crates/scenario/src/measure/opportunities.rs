//! A link's log, event by event, on request: what Mahimahi's `mm-link --uplink-log` writes.
//!
//! This is the one record that grows with the run. Events carry whole milliseconds, as Mahimahi's do.
//! Delivery opportunities, which nobody watches, are laid between the events that somebody did.

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use crate::outcome::LinkEvent;

/// Returns a millisecond of the log.
#[inline]
pub fn millisecond(at: Time) -> u32 {
    (at.as_nanos() / 1_000_000) as u32
}

/// Lays a link's delivery opportunities between its events, as they come.
///
/// A millisecond's capacity is logged as opportunities of the link's own size, and one smaller for what is
/// left; they come before what happened in their millisecond.
#[derive(Clone, Debug)]
pub struct Opportunities {
    opportunity: u64,
    /// The first millisecond whose opportunities are still to be logged.
    next_ms: u32,
}

impl Opportunities {
    /// Returns the log of a link whose delivery opportunity carries `opportunity`.
    pub fn new(opportunity: Bytes) -> Self {
        Opportunities { opportunity: opportunity.0.max(1), next_ms: 0 }
    }

    /// Gives `emit` the opportunities before `event` that it was not given yet, then `event`. `capacity` says
    /// how many bytes the link could have carried in `from <= t < to`.
    pub fn lay<C>(&mut self, event: LinkEvent, capacity: C, emit: &mut impl FnMut(LinkEvent))
    where
        C: Fn(Time, Time) -> u64,
    {
        self.until(event_ms(&event) + 1, capacity, emit);
        emit(event);
    }

    /// Gives `emit` the opportunities of every millisecond before `end` that it was not given yet.
    pub fn finish<C>(&mut self, end: Time, capacity: C, emit: &mut impl FnMut(LinkEvent))
    where
        C: Fn(Time, Time) -> u64,
    {
        self.until(millisecond(end), capacity, emit);
    }

    fn until<C>(&mut self, end_ms: u32, capacity: C, emit: &mut impl FnMut(LinkEvent))
    where
        C: Fn(Time, Time) -> u64,
    {
        while self.next_ms < end_ms {
            let ms = self.next_ms;
            let from = Time::from_millis(u64::from(ms));
            let mut bytes = capacity(from, from + Duration::from_millis(1));
            while bytes > 0 {
                let one = bytes.min(self.opportunity);
                emit(LinkEvent::Opportunity { ms, bytes: one as u32 });
                bytes -= one;
            }
            self.next_ms += 1;
        }
    }
}

/// Returns the whole log of a link that ran until `end`, from its events; see [`Opportunities`].
pub fn with_opportunities(
    opportunity: Bytes,
    events: &[LinkEvent],
    end: Time,
    capacity: impl Fn(Time, Time) -> u64,
) -> Vec<LinkEvent> {
    let mut opportunities = Opportunities::new(opportunity);
    let mut log = Vec::with_capacity(events.len() * 2);
    for &event in events {
        // What happens at the very end comes after every opportunity; those of its own millisecond are not
        // the run's.
        if event_ms(&event) < millisecond(end) {
            opportunities.lay(event, &capacity, &mut |event| log.push(event));
        } else {
            opportunities.finish(end, &capacity, &mut |event| log.push(event));
            log.push(event);
        }
    }
    opportunities.finish(end, &capacity, &mut |event| log.push(event));
    log
}

fn event_ms(event: &LinkEvent) -> u32 {
    match *event {
        LinkEvent::Opportunity { ms, .. }
        | LinkEvent::Arrival { ms, .. }
        | LinkEvent::Departure { ms, .. }
        | LinkEvent::Drop { ms, .. } => ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opportunities_come_before_what_happened_in_their_millisecond() {
        let arrival = LinkEvent::Arrival { ms: 0, bytes: 1500 };
        let departure = LinkEvent::Departure { ms: 1, bytes: 1500, delay_ms: 1 };
        let opportunity = |ms, bytes| LinkEvent::Opportunity { ms, bytes };
        let log = with_opportunities(Bytes(1500), &[arrival, departure], Time::from_millis(2), |_, _| 2000);
        assert_eq!(
            log,
            [
                opportunity(0, 1500),
                opportunity(0, 500),
                arrival,
                opportunity(1, 1500),
                opportunity(1, 500),
                departure
            ]
        );
    }

    #[test]
    fn opportunities_fill_silence_and_stop_at_the_end() {
        let departure = LinkEvent::Departure { ms: 3, bytes: 1500, delay_ms: 0 };
        let log = with_opportunities(Bytes(1500), &[departure], Time::from_millis(3), |_, _| 1500);
        let opportunity = |ms| LinkEvent::Opportunity { ms, bytes: 1500 };
        assert_eq!(log, [opportunity(0), opportunity(1), opportunity(2), departure]);
    }
}
