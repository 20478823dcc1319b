//! A link's log, event by event, on request: what Mahimahi's `mm-link --uplink-log` writes.
//!
//! This is the one record that grows with the run. Events carry whole milliseconds, as Mahimahi's do.

use brakelight_core::time::{Duration, Time};
use brakelight_scenario::outcome::{LinkEvent, LinkLog};
use brakelight_scenario::scenario::LinkSpec;

/// A millisecond of the log.
pub fn millisecond(at: Time) -> u32 {
    (at.as_nanos() / 1_000_000) as u32
}

/// Lays the link's delivery opportunities, which nobody watched, between the events that somebody did.
///
/// `capacity` says how many bytes the link could have carried in `from <= t < to`. A millisecond's capacity is logged as
/// opportunities of the link's own size, and one smaller for what is left.
pub fn with_opportunities(
    spec: &LinkSpec,
    service: String,
    queue: String,
    events: &[LinkEvent],
    end: Time,
    capacity: impl Fn(Time, Time) -> u64,
) -> LinkLog {
    let opportunity = spec.opportunity.0.max(1);
    let mut log = Vec::with_capacity(events.len() * 2);
    let mut events = events.iter().copied().peekable();
    let milliseconds = millisecond(end);
    for ms in 0..milliseconds {
        let from = Time::from_millis(u64::from(ms));
        let mut bytes = capacity(from, from + Duration::from_millis(1));
        while bytes > 0 {
            let one = bytes.min(opportunity);
            log.push(LinkEvent::Opportunity { ms, bytes: one as u32 });
            bytes -= one;
        }
        while let Some(event) = events.next_if(|event| event_ms(event) <= ms) {
            log.push(event);
        }
    }
    log.extend(events);
    LinkLog { name: spec.name.clone(), service, queue, events: log }
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
    use brakelight_core::units::{Limit, Rate};
    use brakelight_scenario::spelled::Spelled;

    #[test]
    fn opportunities_come_before_what_happened_in_their_millisecond() {
        let queue = Spelled::new("droptail", &[]).unwrap();
        let spec = LinkSpec::fixed("link", Rate::from_mbps(12), Limit::Packets(250), queue);
        let arrival = LinkEvent::Arrival { ms: 0, bytes: 1500 };
        let departure = LinkEvent::Departure { ms: 1, bytes: 1500, delay_ms: 1 };
        let log = with_opportunities(
            &spec,
            "12Mbps".into(),
            "droptail".into(),
            &[arrival, departure],
            Time::from_millis(2),
            |_, _| 2000,
        );
        let opportunity = |ms, bytes| LinkEvent::Opportunity { ms, bytes };
        assert_eq!(
            log.events,
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
}
