//! What a packet costs at a queue: one enqueue and one dequeue, on a queue that stands.
//!
//! A packet arrives and one leaves every T / n, where T is 20 ms, ABC's window, and n the packets in it; the
//! link is a trace of that rate, so the queue asks a real [`View`]. The backlog is kept at [`STANDING`]
//! packets of 64 bytes of memory, the most a packet may take; what a discipline drops is replaced, at once or
//! in the next steps. Disciplines that control delay are set to a target below the standing delay, so they
//! are measured while they act.

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::packet::{Duplicate, FlowId, Header, HeaderKind, Packet, PacketId};
use brakelight_core::queue::{Drops, Place, Queue};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Limit, Rate};
use brakelight_links::link::View;
use brakelight_links::link::traced::{self, Traced};
use brakelight_links::trace::Trace;
use brakelight_registry::{AnyQueue, Bench, Options, QUEUES, QueueConfig};

/// Packets that wait throughout.
pub const STANDING: u32 = 128;

/// ABC's default window.
const WINDOW: Duration = Duration::from_millis(20);

/// One queue under load.
pub struct Workload {
    name: String,
    queue: AnyQueue<Load>,
    link: Traced,
    drops: Drops<Load>,
    now: Time,
    step: Duration,
    next_id: u64,
    flows: u64,
    /// Of even flows and of odd ones.
    encodings: [Encoding; 2],
    header: Header,
}

impl Workload {
    /// Returns a standing queue of the discipline `name`, `per_window` packets passing per 20 ms, one of each
    /// of so many flows after the other.
    ///
    /// # Panics
    /// If the registry does not know the discipline or its options.
    pub fn new(name: &str, options: Options<'_>, per_window: u64, flows: u64) -> Self {
        let config = QueueConfig::new(name, options).unwrap_or_else(|error| panic!("{error}"));
        let rate = Rate::from_bps(per_window * 1500 * 8 * 50);
        let place =
            Place { limit: Limit::Packets(4 * STANDING), nominal: rate, random: Random::stream(1, "bench") };
        let per_second = 50 * per_window;
        let trace = Trace::from_millis((1..=per_second).map(|i| (i * 1000).div_ceil(per_second)))
            .unwrap_or_else(|error| panic!("{error}"));
        let traits = config.traits();
        let explicit = traits.writes.map(|_| Encoding::Explicit);
        let encoding = config.own_encoding().or(explicit).unwrap_or(Encoding::None);
        let header = match traits.writes {
            // 16 flows of an RTT of 40 ms share two of the windows.
            Some(HeaderKind::Xcp) => {
                let cwnd_bytes = (per_window * 2 * 1500 / 16) as f32;
                Header::Xcp { cwnd_bytes, rtt_s: 0.04, feedback_bytes: f32::INFINITY }
            }
            Some(HeaderKind::Load) => Header::Load { code: 0 },
            Some(HeaderKind::Rate) => Header::Rate { bps: f32::INFINITY, rtt_s: 0.04 },
            None => Header::None,
        };
        let encodings = [encoding, if config.tells_flows_apart() { Encoding::None } else { encoding }];
        let mut workload = Workload {
            name: match traits.bench {
                Bench { packets: [_, _, ..], .. } => format!("{name}/{per_window}"),
                Bench { flows: [_, _, ..], .. } => format!("{name}/{flows} flows"),
                _ => name.to_string(),
            },
            queue: config.build(&place),
            link: Traced::new(&traced::Config::default(), trace),
            drops: Drops::new(),
            now: Time::from_millis(1),
            step: WINDOW / per_window,
            next_id: 0,
            flows,
            encodings,
            header,
        };
        for _ in 0..STANDING {
            workload.enqueue();
        }
        // Past the first window, and past CoDel's first interval.
        workload.run((per_window * 10).max(10_000));
        workload
    }

    /// Returns its row's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Lets `packets` pass. The sum over what left keeps the compiler from leaving anything out.
    pub fn run(&mut self, packets: u64) -> u64 {
        let mut sum = 0;
        for _ in 0..packets {
            self.now += self.step;
            self.enqueue();
            let mut view = View::new(&mut self.link, self.now);
            if let Some(left) = self.queue.dequeue(self.now, &mut view, &mut self.drops) {
                sum += left.packet.id + left.packet.ecn as u64 + u64::from(said(left.packet.header));
            }
            // A replacement may be dropped as well: what is still missing then comes with the next packets.
            let dropped = self.drops.len();
            self.drops.clear();
            for _ in 0..dropped {
                self.enqueue();
            }
            if self.queue.backlog().packets < STANDING {
                self.enqueue();
            }
            self.drops.clear();
        }
        sum
    }

    fn enqueue(&mut self) {
        let flow = self.next_id % self.flows;
        let encoding = self.encodings[(flow % 2) as usize];
        let packet = Load {
            id: self.next_id,
            flow: flow as u32,
            size: 1500,
            ecn: encoding.sent(),
            encoding,
            header: self.header,
            rest: [0; 3],
        };
        self.next_id += 1;
        let mut view = View::new(&mut self.link, self.now);
        self.queue.enqueue(self.now, packet, &mut view, &mut self.drops);
    }
}

/// Returns every registered queue, with few and many of what its cost may depend on.
pub fn workloads() -> Vec<Workload> {
    let mut workloads = Vec::new();
    for entry in QUEUES {
        let config = QueueConfig::new(entry.name, &[]).unwrap_or_else(|error| panic!("{error}"));
        let bench = config.traits().bench;
        for &packets in bench.packets {
            for &flows in bench.flows {
                workloads.push(Workload::new(entry.name, bench.options, packets, flows));
            }
        }
    }
    workloads
}

/// What a router wrote.
fn said(header: Header) -> u32 {
    match header {
        Header::Xcp { feedback_bytes, .. } => feedback_bytes.to_bits(),
        Header::Rate { bps, .. } => bps.to_bits(),
        _ => 0,
    }
}

/// A packet as large in memory as one may be.
#[derive(Clone, Copy, Debug)]
struct Load {
    id: u64,
    flow: u32,
    size: u32,
    ecn: Ecn,
    encoding: Encoding,
    header: Header,
    rest: [u64; 3],
}

const _: () = assert!(size_of::<Load>() == 64);

impl Packet for Load {
    fn id(&self) -> PacketId {
        PacketId(self.id)
    }
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    fn size(&self) -> u32 {
        self.size
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
    fn encoding(&self) -> Encoding {
        self.encoding
    }
    fn header(&self) -> Header {
        self.header
    }
    fn set_header(&mut self, header: Header) {
        self.header = header;
    }
    fn hash16(&self) -> u16 {
        self.rest[0] as u16 ^ self.id as u16
    }
}

impl Duplicate for Load {
    fn duplicate(&self, id: PacketId) -> Self {
        Load { id: id.0, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_keeps_its_queue_standing() {
        for mut workload in workloads() {
            for _ in 0..20 {
                workload.run(500);
                let standing = workload.queue.backlog().packets;
                assert!((100..=STANDING + 1).contains(&standing), "{}: {standing}", workload.name());
            }
        }
    }

    #[test]
    fn codel_is_measured_while_it_drops() {
        let mut workload = workloads().into_iter().find(|workload| workload.name() == "codel").unwrap();
        workload.run(20_000);
        let mut dropping = 0.0;
        workload.queue.inspect(&mut |name, value| {
            if name == "dropping" {
                dropping = value;
            }
        });
        assert_eq!(dropping, 1.0);
    }
}
