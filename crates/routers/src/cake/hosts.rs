//! Which packets are of one flow, and which flows of one host (cake18 III-C).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use brakelight_core::packet::Packet;
use brakelight_core::parameters::Value;

use super::tin::{Fairness, Hashes};

choices! {
    /// What is kept apart, and what shares fairly.
    pub enum Isolation {
        /// Nothing: one queue.
        Flowblind = "flowblind",
        /// A queue for each source host.
        SrcHost = "srchost",
        /// A queue for each destination host.
        DstHost = "dsthost",
        /// A queue for each pair of hosts.
        Hosts = "hosts",
        /// A queue for each flow; all share equally.
        Flows = "flows",
        /// A queue for each flow; source hosts share equally, and the flows of each.
        DualSrcHost = "dual-srchost",
        /// A queue for each flow; destination hosts share equally, and the flows of each.
        DualDstHost = "dual-dsthost",
        /// A queue for each flow; neither source nor destination hosts gain by many flows.
        TripleIsolate = "triple-isolate",
    }
}

impl Isolation {
    pub(super) fn fairness(self) -> Fairness {
        Fairness {
            sources: matches!(self, Isolation::DualSrcHost | Isolation::TripleIsolate),
            destinations: matches!(self, Isolation::DualDstHost | Isolation::TripleIsolate),
        }
    }
}

/// How many flows each host has: those of the first host, then those of the second, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups(Vec<u32>);

impl Groups {
    /// The most hosts, and the most flows of one.
    const MOST: usize = 65_536;

    /// Returns the host of flow number `flow`; flows behind the list have a host each.
    fn host(&self, flow: u32) -> u32 {
        let mut left = flow;
        for (host, &flows) in self.0.iter().enumerate() {
            if left < flows {
                return host as u32;
            }
            left -= flows;
        }
        (self.0.len() as u32).wrapping_add(left)
    }
}

impl Value for Groups {
    fn unit() -> String {
        "flows of each host".to_string()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let one =
            |part: &str| part.trim().parse().ok().filter(|flows| (1..=Groups::MOST as u32).contains(flows));
        let all = text.split('/').map(one).collect::<Option<Vec<u32>>>();
        all.filter(|all| all.len() <= Groups::MOST)
            .map(Groups)
            .ok_or_else(|| "numbers of flows, 1 to 65536, with `/` between them".to_string())
    }

    fn show(&self) -> String {
        self.0.iter().map(u32::to_string).collect::<Vec<_>>().join("/")
    }
}

/// Makes hashes of packets.
#[derive(Clone, Debug)]
pub(super) struct Identify {
    isolation: Isolation,
    sources: Option<Groups>,
    destinations: Option<Groups>,
    perturbation: u64,
}

impl Identify {
    pub(super) fn new(
        isolation: Isolation,
        sources: Option<Groups>,
        destinations: Option<Groups>,
        perturbation: u64,
    ) -> Self {
        Identify { isolation, sources, destinations, perturbation }
    }

    pub(super) fn hashes(&self, packet: &impl Packet) -> Hashes {
        let host = |groups: &Option<Groups>, own: u32| groups.as_ref().map_or(own, |it| it.host(own));
        let source = self.mix(0, host(&self.sources, packet.source_host()));
        let destination = self.mix(1, host(&self.destinations, packet.destination_host()));
        let flow = match self.isolation {
            Isolation::Flowblind => 0,
            Isolation::SrcHost => source,
            Isolation::DstHost => destination,
            // Not the bare difference, which is 0 for a host that talks to itself.
            Isolation::Hosts => source ^ destination.rotate_left(16),
            Isolation::Flows | Isolation::DualSrcHost | Isolation::DualDstHost | Isolation::TripleIsolate => {
                self.mix(2, packet.flow().0)
            }
        };
        Hashes { flow, source, destination }
    }

    fn mix(&self, kind: u64, value: u32) -> u32 {
        // SplitMix64's finalizer.
        let mut hash = (kind << 32 | u64::from(value)) ^ self.perturbation;
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (hash ^ (hash >> 31)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_counted_off_to_hosts() {
        let groups = Groups::parse("1/20").unwrap();
        assert_eq!([0, 1, 20, 21, 22].map(|flow| groups.host(flow)), [0, 1, 1, 2, 3]);
        assert_eq!(groups.show(), "1/20");
        for bad in ["", "0", "1/", "1/x", "70000"] {
            assert!(Groups::parse(bad).is_err(), "{bad}");
        }
    }
}
