//! What is measured of one direction: the link by the simulator's own meter, flows by their 5-tuple, and what
//! a display shows meanwhile. [`outcome`](crate::outcome) makes the row of both directions.
//!
//! Times are those at which things were due, as in the simulator: a departure counts at the time the link
//! scheduled it for. How late the machine was is measured beside them. All counting is by the thread that
//! carries the packets, without a lock, and without an allocation but for a flow's first packet.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

use brakelight_core::ecn::Mark;
use brakelight_core::packet::{FlowId, Packet};
use brakelight_core::path::Output;
use brakelight_core::queue::Dropped;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_links::elements::AnyElement;
use brakelight_scenario::measure::link::{arrival, departure, loss};
use brakelight_scenario::measure::{Distribution, LinkBins, LinkMeter};
use brakelight_scenario::outcome::MarkCounts;
use brakelight_scenario::scenario::LinkSpec;

use crate::clock::Lateness;
use crate::forward::{Facts, Finished};
use crate::log::{LogError, LogThread, LogWriter};
use crate::meter::Live;
use crate::packet::{self, IpPacket};
use crate::spec::DirectionSpec;
use crate::tuple::FiveTuple;
use crate::watch::Watch;

/// The most flows that are counted separately. Packets of all further flows are counted together.
pub const MOST_FLOWS: usize = 10_000;

/// Flows, in the order in which they appear, whose throughput is kept over time.
const MOST_SERIES: usize = 32;

/// What to record of a direction.
#[derive(Clone, Debug)]
pub struct MeasureSettings {
    /// Start of the measured interval. Series and logs also cover the time before.
    pub measure_from: Duration,
    /// Width of a bin of the time series; `None` records no series.
    pub bin: Option<Duration>,
    /// File of the link's log, and the command line to write into it; `None` writes no log.
    pub log: Option<(PathBuf, String)>,
    /// Counters for a live display, if there is one.
    pub live: Option<Arc<Live>>,
}

/// What one flow did in one direction.
#[derive(Clone, Debug)]
pub struct FlowMeter {
    /// Addresses and ports; `None` for the flows that are counted together.
    pub tuple: Option<FiveTuple>,
    /// When its first packet arrived.
    pub first: Time,
    /// When its newest packet was delivered.
    pub last: Time,
    /// IP bytes delivered.
    pub bytes: u64,
    /// Bytes delivered behind the headers of IP and of TCP or UDP, those that came twice included.
    pub payload: u64,
    /// The largest packet so far, and its headers: those of its data packets.
    largest: (u32, u32),
    /// Packets delivered.
    pub delivered: u64,
    /// Packets dropped, at the link or behind it.
    pub dropped: u64,
    /// Marks on delivered packets.
    pub marks: MarkCounts,
    /// Bytes delivered in each bin; the first bin begins at time zero.
    pub bins: Vec<u64>,
}

/// The watch of one direction.
#[derive(Debug)]
pub struct Meter {
    measure_from: Time,
    link: Option<(LinkSpec, LinkMeter)>,
    log: Option<LogWriter>,
    log_thread: Option<LogThread>,
    bin: Option<Duration>,
    bin_end: Time,
    bins_closed: u64,
    flows: Vec<FlowMeter>,
    by_id: HashMap<FlowId, u32, BuildHasherDefault<Already>>,
    /// The flow of the last packet, which is likely the flow of the next.
    newest: (FlowId, u32),
    one_way: Distribution,
    /// What went through the link since the run began.
    through: Through,
    live: Option<(Arc<Live>, LiveState)>,
}

/// Packets at a link since the run began: arrivals are departures and drops and what is left inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Through {
    /// Packets that came.
    pub arrived: u64,
    /// Packets that left.
    pub departed: u64,
    /// Packets that its queue dropped.
    pub dropped: u64,
}

/// Sums for a display since it was last updated.
#[derive(Debug, Default)]
struct LiveState {
    told: Time,
    capacity: u64,
    bytes: u64,
    packets: u64,
    queued_nanos: u64,
    accelerate: u64,
    brake: u64,
    dropped: u64,
    latest: Duration,
}

/// How often a display is told. A wake-up more often than this tells it nothing.
const TELL_EVERY: Duration = Duration::from_millis(20);

/// A hasher that returns the flow's identity, which is a hash already.
#[derive(Clone, Copy, Debug, Default)]
pub struct Already(u64);

impl Hasher for Already {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0 << 8 | u64::from(byte);
        }
    }
    fn write_u32(&mut self, value: u32) {
        // The table looks at the highest bits and at the lowest.
        self.0 = u64::from(value) << 32 | u64::from(value);
    }
}

/// A meter for each direction, and the threads that write the links' logs, which are to be started once
/// packets are about to be carried.
pub fn meters(
    directions: [&DirectionSpec; 2],
    settings: &[MeasureSettings; 2],
) -> Result<([Meter; 2], Vec<LogThread>), LogError> {
    let [mut up, mut down] =
        [Meter::new(directions[0], &settings[0])?, Meter::new(directions[1], &settings[1])?];
    let threads = [up.take_log_thread(), down.take_log_thread()].into_iter().flatten().collect();
    Ok(([up, down], threads))
}

impl Meter {
    /// Returns the watch of `direction`, before its first packet. Its log, if it keeps one, needs [a
    /// thread](Self::take_log_thread).
    pub fn new(direction: &DirectionSpec, settings: &MeasureSettings) -> Result<Self, LogError> {
        let measure_from = Time::ZERO + settings.measure_from;
        let link = direction.link.as_ref().map(|link| {
            let spec = link.spec().clone();
            let overhead = spec.overhead.0 as u32;
            let series = settings.bin.map(|_| LinkBins::default());
            let meter = LinkMeter { measure_from, overhead, series, ..LinkMeter::default() };
            (spec, meter)
        });
        let (log, log_thread) = match (&settings.log, &link, direction.build().into_iter().next()) {
            (Some((path, command)), Some((spec, _)), Some(element)) => {
                let (log, thread) = LogWriter::create(path, spec, element, command)?;
                (Some(log), Some(thread))
            }
            _ => (None, None),
        };
        Ok(Meter {
            measure_from,
            link,
            log,
            log_thread,
            bin: settings.bin,
            bin_end: settings.bin.map_or(Time::MAX, |bin| Time::ZERO + bin),
            bins_closed: 0,
            flows: Vec::with_capacity(64),
            by_id: HashMap::default(),
            newest: (FlowId::default(), NO_FLOW),
            one_way: Distribution::default(),
            through: Through::default(),
            live: settings.live.clone().map(|live| (live, LiveState::default())),
        })
    }

    /// Returns the thread that writes the link's log, where one is kept: to be started once there are no more
    /// processes to be made.
    pub fn take_log_thread(&mut self) -> Option<LogThread> {
        self.log_thread.take()
    }

    /// The flow of `packet`, which has been seen.
    #[inline]
    fn flow(&mut self, id: FlowId) -> Option<&mut FlowMeter> {
        if self.newest.1 == NO_FLOW || self.newest.0 != id {
            self.newest = (id, *self.by_id.get(&id)?);
        }
        self.flows.get_mut(self.newest.1 as usize)
    }

    /// A packet of a flow that may be new.
    fn meet(&mut self, now: Time, id: FlowId, bytes: &[u8]) {
        if self.by_id.contains_key(&id) {
            return;
        }
        let others = self.flows.len() == MOST_FLOWS;
        if self.flows.len() <= MOST_FLOWS {
            self.flows.push(FlowMeter {
                tuple: if others { None } else { FiveTuple::read(bytes) },
                first: now,
                last: now,
                bytes: 0,
                payload: 0,
                largest: (0, 0),
                delivered: 0,
                dropped: 0,
                marks: MarkCounts::default(),
                bins: Vec::new(),
            });
        }
        // Beyond the most, flows are not remembered one by one, or a scan of ports would fill the memory.
        if !others && self.flows.len() <= MOST_FLOWS {
            self.by_id.insert(id, self.flows.len() as u32 - 1);
        }
    }

    /// Adds bytes to a bin of the flow that was looked up last.
    #[inline]
    fn add_to_bin(&mut self, bin: usize, bytes: u64) {
        if self.newest.1 >= MOST_SERIES as u32 {
            return;
        }
        let bins = &mut self.flows[self.newest.1 as usize].bins;
        if bins.len() <= bin {
            bins.resize(bin + 1, 0);
        }
        bins[bin] += bytes;
    }

    /// Closes every bin that ends at `at` or before.
    #[inline]
    fn bins_until(&mut self, at: Time) {
        while at >= self.bin_end {
            self.close_bin();
        }
    }

    #[cold]
    fn close_bin(&mut self) {
        if let Some(series) = self.link.as_mut().and_then(|(_, link)| link.series.as_mut()) {
            series.close(0);
        }
        self.bins_closed += 1;
        self.bin_end += self.bin.unwrap_or(Duration::MAX);
    }
}

/// The number of the bin that `at` is in.
fn bin_of(at: Time, bin: Duration) -> usize {
    (at.as_nanos() / bin.as_nanos()) as usize
}

/// No flow's place.
const NO_FLOW: u32 = u32::MAX;

impl Watch for Meter {
    #[inline]
    fn arrived(&mut self, now: Time, packet: &IpPacket, bytes: &[u8]) {
        let id = packet.flow();
        if self.newest.1 == NO_FLOW || self.newest.0 != id {
            self.meet(now, id, bytes);
        }
        let others = self.flows.len() > MOST_FLOWS && !self.by_id.contains_key(&id);
        let flow = if others { self.flows.last_mut() } else { self.flow(id) };
        if let Some(flow) = flow.filter(|flow| packet.size() > flow.largest.0) {
            flow.largest = (packet.size(), packet::headers(bytes));
        }
        if let Some((_, link)) = &self.link {
            self.through.arrived += 1;
            if let Some(log) = &mut self.log {
                log.push(arrival(now, packet.size() + link.overhead));
            }
        }
    }

    #[inline]
    fn output(&mut self, output: &Output<IpPacket>, _actual: Time) {
        self.bins_until(output.at());
        let Some((_, link)) = &mut self.link else { return };
        match output {
            Output::Departed(departed) | Output::Duplicated(departed) => {
                link.departed(departed);
                self.through.departed += 1;
                let bytes = departed.packet.size() + link.overhead;
                if let Some(log) = &mut self.log {
                    log.push(departure(departed.at, departed.queued, bytes));
                }
                if let Some((_, live)) = &mut self.live {
                    live.bytes += u64::from(bytes);
                    live.packets += 1;
                    live.queued_nanos += departed.queued.as_nanos();
                    live.accelerate += u64::from(departed.mark == Mark::Accelerate);
                    live.brake += u64::from(departed.mark == Mark::Brake);
                }
                if let Some(bin) = self.bin
                    && self.flow(departed.packet.flow()).is_some()
                {
                    self.add_to_bin(bin_of(departed.at, bin), u64::from(departed.packet.size()));
                }
            }
            Output::Dropped(dropped) => {
                link.dropped(dropped);
                self.through.dropped += 1;
                let bytes = dropped.packet.size() + link.overhead;
                if let Some(log) = &mut self.log {
                    log.push(loss(dropped.at, bytes));
                }
                self.lost(dropped, dropped.at);
            }
        }
    }

    #[inline]
    fn lost(&mut self, dropped: &Dropped<IpPacket>, _actual: Time) {
        if let Some((_, live)) = &mut self.live {
            live.dropped += 1;
        }
        if dropped.at >= self.measure_from
            && let Some(flow) = self.flow(dropped.packet.flow())
        {
            flow.dropped += 1;
        }
    }

    #[inline]
    fn delivered(&mut self, scheduled: Time, actual: Time, packet: &IpPacket) {
        if let Some((_, live)) = &mut self.live {
            live.latest = live.latest.max(actual.since(scheduled));
        }
        let counts = scheduled >= self.measure_from;
        if counts {
            self.one_way.record(actual.since(packet.arrived));
        }
        // A link's flows are binned where they leave it, as its capacity is.
        let bin = self.bin.filter(|_| self.link.is_none()).map(|bin| bin_of(scheduled, bin));
        let size = u64::from(packet.size());
        let mark = packet.encoding.mark(packet.ecn());
        let id = packet.flow();
        let others = self.flows.len() > MOST_FLOWS && !self.by_id.contains_key(&id);
        let flow = if others { self.flows.last_mut() } else { self.flow(id) };
        let Some(flow) = flow else { return };
        if counts {
            flow.last = scheduled;
            flow.bytes += size;
            flow.payload += size.saturating_sub(u64::from(flow.largest.1));
            flow.delivered += 1;
            flow.marks.count(mark);
        }
        if let Some(bin) = bin.filter(|_| !others) {
            self.add_to_bin(bin, size);
        }
    }

    #[inline]
    fn rest(&mut self, now: Time, link: Option<&AnyElement<IpPacket>>) {
        let Some((live, state)) = &mut self.live else { return };
        if now.since(state.told) < TELL_EVERY {
            return;
        }
        live.late(std::mem::take(&mut state.latest));
        let from = std::mem::replace(&mut state.told, now);
        let Some(link) = link else { return };
        state.capacity += link.capacity_between(from, now).map_or(0, |bytes| bytes.0);
        live.tell(|counts| {
            counts.time_nanos = now.as_nanos();
            counts.capacity = state.capacity;
            counts.bytes = state.bytes;
            counts.packets = state.packets;
            counts.queued_nanos = state.queued_nanos;
            counts.accelerate = state.accelerate;
            counts.brake = state.brake;
            counts.dropped = state.dropped;
        });
    }

    fn next_rest(&self) -> Option<Time> {
        // An idle link's capacity is news too.
        self.live.as_ref().map(|(_, state)| state.told + TELL_EVERY * 5)
    }
}

/// One direction, measured.
#[derive(Debug)]
pub struct Measured {
    /// Its name.
    pub name: String,
    /// The link, if there is one, with what it did.
    pub link: Option<MeasuredLink>,
    /// Its flows, in the order in which they appeared.
    pub flows: Vec<FlowMeter>,
    /// From arrival at the path to the other device.
    pub one_way: Distribution,
    /// Width of a bin; `None` if no series were recorded.
    pub bin: Option<Duration>,
    /// How late deliveries were.
    pub lateness: Lateness,
    /// What the thread counted.
    pub facts: Facts,
    /// Events in the log, including opportunities; `None` if no log was written.
    pub logged: Option<u64>,
}

/// A link, measured.
#[derive(Debug)]
pub struct MeasuredLink {
    /// What it was.
    pub spec: LinkSpec,
    /// Its counters.
    pub meter: LinkMeter,
    /// What it could have carried in the measured interval: bytes.
    pub capacity: Bytes,
    /// Its packets since the run began.
    pub through: Through,
}

impl Measured {
    /// Returns the measurements of a direction that has ended. Waits until the log is written.
    pub fn of(finished: Finished<Meter>) -> Result<Self, LogError> {
        let Finished { name, watch: mut meter, lateness, facts, link: element } = finished;
        let end = facts.ended;
        meter.bins_until(end);
        let bin = meter.bin;
        let capacity = |from: Time, to: Time| {
            element.as_ref().and_then(|element| element.capacity_between(from, to)).unwrap_or_default()
        };
        let measure_from = meter.measure_from.min(end);
        let through = meter.through;
        let link = meter.link.map(|(spec, mut link)| {
            if let (Some(series), Some(bin)) = (&mut link.series, bin) {
                let start = |index: u64| Time::ZERO + bin * index;
                series.fill_capacity(|index| capacity(start(index), start(index + 1)).0);
            }
            MeasuredLink { spec, meter: link, capacity: capacity(measure_from, end), through }
        });
        let bins = meter.bins_closed as usize;
        for flow in &mut meter.flows {
            if !flow.bins.is_empty() {
                flow.bins.resize(bins, 0);
            }
        }
        let logged = meter.log.map(|log| log.finish(end)).transpose()?;
        Ok(Measured { name, link, flows: meter.flows, one_way: meter.one_way, bin, lateness, facts, logged })
    }
}
