//! How long a run may be, so that nothing in it is counted by a number that is too short.
//!
//! A modelled sender keeps one entry for each packet, and these are most of a run's memory. So they hold
//! times and totals in fewer than 64 bits. What could leave these bits is refused before the run.
//!
//! | counted | bits | refused |
//! |---|---|---|
//! | how long before a packet left something happened, ns | 48 | a run above [`LONGEST_RUN`] |
//! | bytes delivered since a packet left | 40 | a flow that can deliver more than [`MOST_DELIVERED`] |
//! | packets of a connection | 32 | a flow that can deliver more than [`MOST_PACKETS`] |
//!
//! A radio that does not say how fast it can be is not asked: the Wi-Fi and LTE models carry less than 2^32
//! packets in the longest run. Real senders count in 64 bits and have no such limits.

use std::collections::BTreeMap;

use brakelight_core::time::Duration;
use brakelight_core::units::Bytes;
use brakelight_links::trace::Trace;

use crate::cost::{known_bps, payload};
use crate::problem::{InputError, Problem};
use crate::scenario::{FlowSpec, Hop, Scenario};
use crate::traffic::{SizeLaw, Traffic};

/// The longest run: 78 hours. 2^48 ns are 78 hours and 11 minutes.
pub const LONGEST_RUN: Duration = Duration::from_secs(78 * 3600);
/// The most that one flow may be able to deliver: 2^40 bytes.
pub const MOST_DELIVERED: Bytes = Bytes(1 << 40);
/// The most packets that one flow may be able to deliver. As many again may be lost.
pub const MOST_PACKETS: u64 = 1 << 31;

impl Scenario {
    /// Checks that no flow can deliver more than its sender can count. A link whose trace is not in
    /// `traces` refuses nothing.
    ///
    /// # Errors
    /// The first flow that can, with the longest `duration` in which it cannot.
    pub fn check_counters(&self, traces: &BTreeMap<String, Trace>) -> Result<(), InputError> {
        self.flows.iter().try_for_each(|flow| self.check_flow(flow, traces))
    }

    fn check_flow(&self, flow: &FlowSpec, traces: &BTreeMap<String, Trace>) -> Result<(), InputError> {
        let links = flow.path.iter().filter_map(|hop| match hop {
            Hop::Link(name) => self.links.iter().find(|link| link.name == *name),
            Hop::Element(_) => None,
        });
        let rates = links.filter_map(|link| Some((link, known_bps(link, self.duration, traces)?)));
        let Some((link, bps)) = rates.min_by(|(_, one), (_, other)| one.total_cmp(other)) else {
            return Ok(());
        };
        let ends = flow.stop.map_or(self.duration, |stop| stop.min(self.duration));
        let seconds = ends.saturating_sub(flow.start).as_secs_f64();
        let packets = (flow.mss + flow.overhead).as_f64() * MOST_PACKETS as f64;
        let most_bits = 8.0 * packets.min(MOST_DELIVERED.as_f64());
        if one_connection(flow, seconds).min(bps * seconds) <= most_bits {
            return Ok(());
        }
        let longest = flow.start + Duration::from_secs_f64((most_bits / bps).floor().max(1e-3));
        let valid = format!(
            "up to {longest}, in which link `{}` carries what one connection can count: 2^40 bytes and 2^31 packets",
            link.name
        );
        let problem = Problem::OutOfRange { key: "duration".into(), value: self.duration.to_string(), valid };
        let owner = format!("flow `{}`", flow.name);
        Err(InputError { file: None, line: None, owner, problem: Box::new(problem) })
    }
}

/// Bits that the longest connection of a flow has to send in so many seconds; infinite where it always has
/// more.
fn one_connection(flow: &FlowSpec, seconds: f64) -> f64 {
    match &flow.traffic {
        Traffic::ShortFlows(short) => match short.size {
            SizeLaw::Fixed(size) => size.bits() as f64,
            // Its tail has no end.
            SizeLaw::Pareto { .. } => payload(flow, seconds),
        },
        _ => payload(flow, seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(duration: &str, rate: &str, flow: &str) -> Result<(), String> {
        let text = format!(
            "duration = \"{duration}\"\n[[link]]\nname = \"up\"\nrate = \"{rate}\"\n\
             [[flow]]\nname = \"a\"\ncontroller = \"cubic\"\npath = [\"up\"]\n{flow}\n"
        );
        let scenario = crate::file::read("long.toml", &text).map_err(|error| error.to_string())?;
        scenario.check_counters(&BTreeMap::new()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_run_of_more_than_78_hours_is_refused() {
        assert_eq!(check("78h", "12Mbps", ""), Ok(()));
        assert_eq!(
            check("79h", "12Mbps", "").unwrap_err(),
            "long.toml:1: duration = `284400s` is out of range: valid is 1ns to 280800s"
        );
    }

    #[test]
    fn a_flow_that_can_deliver_more_than_its_sender_counts_is_refused() {
        // 2^40 bytes at 1 Gbit/s are 8796 s.
        assert_eq!(check("8796s", "1Gbps", ""), Ok(()));
        assert_eq!(
            check("3h", "1Gbps", "").unwrap_err(),
            "flow `a`: duration = `10800s` is out of range: valid is up to 8796s, in which link `up` carries what \
             one connection can count: 2^40 bytes and 2^31 packets"
        );
        // Small packets run out first: 2^31 of 104 bytes.
        assert_eq!(check("1700s", "1Gbps", "mss = \"64B\"\noverhead = \"40B\""), Ok(()));
        assert!(check("1800s", "1Gbps", "mss = \"64B\"\noverhead = \"40B\"").is_err());
    }

    #[test]
    fn what_ends_or_has_less_to_send_may_run_longer() {
        assert_eq!(check("3h", "1Gbps", "stop = \"1h\""), Ok(()));
        assert_eq!(check("3h", "1Gbps", "traffic = { kind = \"size\", size = \"1GB\" }"), Ok(()));
        assert_eq!(check("3h", "1Gbps", "traffic = { kind = \"rate-limited\", rate = \"10Mbps\" }"), Ok(()));
    }
}
