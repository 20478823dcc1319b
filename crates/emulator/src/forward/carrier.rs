//! A direction while it runs: its elements, the packets in it, and what is written next.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use brakelight_core::packet::PacketId;
use brakelight_core::path::{Output, PathElement};
use brakelight_core::time::{Duration, Time};
use brakelight_links::elements::AnyElement;
use smallvec::SmallVec;

use super::pace::Pace;
use super::{CarriedDirection, Facts, Finished, ForwardError, ForwardSettings};
use crate::clock::{Epoch, Lateness};
use crate::device::{LARGEST, Port, Read};
use crate::packet::{Header, IpPacket, Reading, write_ecn};
use crate::segment::{Joined, Large, is_large};
use crate::slots::Slots;
use crate::watch::Watch;

/// Buffers read in a row before what is due elsewhere has its turn.
const BATCH: usize = 32;

/// Packets in one buffer at most: as many of 1448 bytes as fit.
const MOST_JOINED: usize = 44;

/// How often it is looked whether a direction is crowded.
const LOOK: Duration = Duration::from_millis(10);

/// How late the elements before a delay line are looked at, at most.
const SLACK: Duration = Duration::from_millis(1);

/// How long the thread may sleep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rest {
    /// Until when; `None` if only a packet will be a reason to wake up.
    pub(super) until: Option<Time>,
    /// When it will have to wake up after that, where it is known.
    pub(super) then: Option<Time>,
}

impl Rest {
    /// What is due first of both.
    pub(super) fn and(self, other: Rest) -> Rest {
        let mut times = [self.until, other.until, self.then, other.then];
        times.sort_by_key(|time| time.unwrap_or(Time::MAX));
        Rest { until: times[0], then: times[1] }
    }
}

/// A direction that runs.
pub(super) struct Carrier<W> {
    name: String,
    elements: Vec<AnyElement<IpPacket>>,
    /// Whether the first element is a link.
    linked: bool,
    reading: Reading,
    input: Arc<Port>,
    output: Arc<Port>,
    slots: Slots,
    /// Where the rest of a large buffer is read to, and before it room for what went into the slot.
    rest: Box<[u8]>,
    watch: W,
    lateness: Lateness,
    facts: Facts,
    next_id: u64,
    /// Nothing more will come in.
    closed: bool,
    crowded: bool,
    pace: Pace,
    /// How late what happens before the last element may be noticed: no longer than the delay line at the end
    /// is.
    slack: Duration,
    /// When that is looked at next, and how many packets had been read at the last look.
    look_at: Time,
    read_then: u64,
    /// What waits to be written in one buffer, and when each packet was due.
    joined: Option<Joined>,
    waiting: Vec<(Time, IpPacket)>,
    /// Slots of packets that were written. They are given back when all that is due was done: a copy comes
    /// out of its element after the packet that it shares the slot with.
    written: Vec<u32>,
}

impl<W: Watch> Carrier<W> {
    pub(super) fn new(carried: CarriedDirection<W>, settings: &ForwardSettings, facts: Facts) -> Self {
        let room = carried.input.head() + carried.input.mtu();
        debug_assert_eq!(carried.input.head(), carried.output.head());
        Carrier {
            elements: carried.direction.build(),
            linked: carried.direction.link.is_some(),
            reading: carried.direction.reading(),
            slots: Slots::new(room.next_multiple_of(64), settings.slots),
            rest: vec![0; room + LARGEST].into(),
            name: carried.direction.name,
            input: carried.input,
            output: carried.output,
            watch: carried.watch,
            lateness: Lateness::new(),
            next_id: 0,
            closed: false,
            crowded: settings.crowded == 0,
            pace: Pace::new(settings.gather),
            slack: carried.direction.delay.min(SLACK),
            look_at: facts.began + LOOK,
            read_then: 0,
            joined: None,
            waiting: Vec::with_capacity(MOST_JOINED),
            written: Vec::with_capacity(MOST_JOINED),
            facts,
        }
    }

    /// Where packets come from; `None` when none will come any more.
    pub(super) fn input(&self) -> Option<BorrowedFd<'_>> {
        (!self.closed).then(|| self.input.as_fd())
    }

    /// Counts a wake-up.
    pub(super) fn woken(&mut self) {
        self.facts.wakeups += 1;
    }

    /// Whether the rate of packets was recently above
    /// [`ForwardSettings::crowded`](super::ForwardSettings::crowded).
    pub(super) fn is_crowded(&mut self, now: Time, settings: &ForwardSettings) -> bool {
        if now >= self.look_at {
            let passed = LOOK + now.since(self.look_at);
            let read = (self.facts.read - self.read_then) as f64 / passed.as_secs_f64();
            self.crowded = read >= settings.crowded as f64;
            self.look_at = now + LOOK;
            self.read_then = self.facts.read;
        }
        self.crowded
    }

    /// Does everything that is due, each element up to now before the next. Says whether a packet was
    /// delivered.
    pub(super) fn serve(&mut self, epoch: Epoch) -> bool {
        let now = epoch.now();
        let written = self.facts.written;
        for index in 0..self.elements.len() {
            while let Some(output) = self.elements[index].poll(now) {
                self.passed(index, output, now, epoch);
            }
        }
        self.write_waiting(epoch);
        for slot in self.written.drain(..) {
            self.slots.give_back(slot);
        }
        let delivered = self.facts.written > written;
        if delivered {
            self.pace.served();
        }
        delivered
    }

    /// Element `index` says what happened.
    fn passed(&mut self, index: usize, output: Output<IpPacket>, now: Time, epoch: Epoch) {
        let link = index == 0 && self.linked;
        if link {
            self.watch.output(&output, now);
        }
        match output {
            Output::Departed(departed) => self.enter(index + 1, departed.at, departed.packet, epoch),
            Output::Duplicated(departed) => {
                self.facts.made += 1;
                self.slots.share(departed.packet.slot);
                if !link {
                    self.watch.duplicated(departed.at, &departed.packet);
                }
                self.enter(index + 1, departed.at, departed.packet, epoch);
            }
            Output::Dropped(dropped) => {
                self.facts.dropped += 1;
                if !link {
                    self.watch.lost(&dropped, now);
                }
                self.slots.give_back(dropped.packet.slot);
            }
        }
    }

    /// A packet enters element `index` at `at`, or leaves the path.
    #[inline]
    fn enter(&mut self, index: usize, at: Time, packet: IpPacket, epoch: Epoch) {
        match self.elements.get_mut(index) {
            Some(element) => element.accept(at, packet),
            None => self.deliver(at, packet, epoch),
        }
    }

    /// The packet's bytes go to the other side, now or with what follows them.
    fn deliver(&mut self, due: Time, packet: IpPacket, epoch: Epoch) {
        self.pace.delivered(due);
        let head = self.output.head();
        if self.slots.is_shared(packet.slot) {
            // A copy that waits to be written must not have its ECN field changed.
            self.write_waiting(epoch);
        }
        let bytes = &mut self.slots.bytes(packet.slot)[..head + packet.header.size as usize];
        self.facts.rewritten += u64::from(write_ecn(&mut bytes[head..], packet.header.ecn));
        if let Some(joined) = &mut self.joined
            && self.waiting.len() < MOST_JOINED
            && joined.join(bytes)
        {
            self.waiting.push((due, packet));
            return;
        }
        let joined = if self.crowded && self.output.uncut() { Joined::begin(bytes) } else { None };
        self.write_waiting(epoch);
        self.waiting.push((due, packet));
        self.joined = joined;
        if self.joined.is_none() {
            self.write_waiting(epoch);
        }
    }

    /// Writes what waits to be written.
    #[inline]
    fn write_waiting(&mut self, epoch: Epoch) {
        let Some(&(_, first)) = self.waiting.first() else { return };
        let head = self.output.head();
        let joined = self.joined.take().filter(|joined| joined.packets() > 1);
        let actual = epoch.now();
        let written = match joined {
            None => self.output.write(&self.slots.look(first.slot)[..head + first.header.size as usize]),
            Some(joined) => {
                // Of the buffer's own: a slot may hold copies that are still to come.
                let (headers, start) = joined.headers();
                let mut pieces: SmallVec<[IoSlice<'_>; 64]> = SmallVec::new();
                pieces.push(IoSlice::new(&headers[..start]));
                for (_, packet) in &self.waiting {
                    let bytes = &self.slots.look(packet.slot)[..head + packet.header.size as usize];
                    pieces.push(IoSlice::new(&bytes[start..]));
                }
                self.output.write_pieces(&pieces)
            }
        };
        self.facts.writes += 1;
        for (due, packet) in self.waiting.drain(..) {
            if written.is_ok() {
                self.facts.written += 1;
                self.facts.written_bytes += u64::from(packet.header.size);
                self.lateness.record(actual.since(due));
                self.watch.delivered(due, actual, &packet);
            } else {
                self.facts.refused += 1;
            }
            self.written.push(packet.slot);
        }
    }

    /// Takes in what has come, a batch of it. Says whether there may be more.
    pub(super) fn read(&mut self, epoch: Epoch) -> Result<bool, ForwardError> {
        let room = self.input.head() + self.input.mtu();
        for _ in 0..BATCH {
            let Some(slot) = self.slots.take() else {
                return self.overrun();
            };
            let bytes = &mut self.slots.bytes(slot)[..room];
            let read = self.input.read(bytes, &mut self.rest[room..]);
            let failed = |error| ForwardError::Read { name: self.input.name().to_string(), error };
            let length = match read.map_err(failed)? {
                Read::Packet(length) => length,
                nothing => {
                    self.closed = nothing == Read::Closed;
                    self.slots.give_back(slot);
                    return Ok(false);
                }
            };
            let now = epoch.now();
            if length > room || (self.input.uncut() && is_large(bytes)) {
                self.cut(now, slot, length, epoch);
            } else {
                self.arrive(now, slot, length, epoch);
            }
        }
        Ok(true)
    }

    /// What was read at `now` holds several packets, which arrive one behind the other. The first keeps the
    /// slot.
    fn cut(&mut self, now: Time, slot: u32, length: usize, epoch: Epoch) {
        let room = self.input.head() + self.input.mtu();
        let bytes = &self.slots.look(slot)[..room];
        let large = if self.input.uncut() { Large::read(&bytes[..room.min(length)], length) } else { None };
        let Some(large) = large else {
            self.facts.read += 1;
            self.facts.malformed += 1;
            self.slots.give_back(slot);
            return;
        };
        if large.data_of(0).end > room {
            // The kernel cuts to what the interface's MTU allows, so this is none of its buffers.
            self.facts.read += 1;
            self.facts.malformed += 1;
            self.slots.give_back(slot);
            return;
        }
        // The data of all packets but the first lies in one piece: the slot's end goes before the rest.
        self.rest[..room].copy_from_slice(bytes);
        let start = large.write_headers(0, self.slots.bytes(slot));
        self.arrive(now, slot, start + large.data_of(0).len(), epoch);
        for index in 1..large.packets() {
            let Some(slot) = self.slots.take() else {
                self.facts.read += 1;
                self.facts.overrun += 1;
                continue;
            };
            let bytes = self.slots.bytes(slot);
            let start = large.write_headers(index, bytes);
            let data = &self.rest[large.data_of(index)];
            bytes[start..start + data.len()].copy_from_slice(data);
            self.arrive(now, slot, start + data.len(), epoch);
        }
    }

    /// The packet in `slot`, of `length` bytes with what stands before it, enters the path.
    fn arrive(&mut self, now: Time, slot: u32, length: usize, epoch: Epoch) {
        self.facts.read += 1;
        let bytes = &self.slots.look(slot)[..length];
        let packet = bytes.get(self.input.head()..).unwrap_or_default();
        let Ok(header) = Header::read(packet) else {
            self.facts.malformed += 1;
            self.slots.give_back(slot);
            return;
        };
        let encoding = self.reading.of(&header, packet);
        let packet =
            IpPacket { id: PacketId(self.next_id), arrived: now, slot, header, encoding, tunnel: None };
        self.next_id += 1;
        self.facts.read_bytes += u64::from(header.size);
        let head = self.input.head();
        self.watch.arrived(now, &packet, &self.slots.look(slot)[head..head + header.size as usize]);
        self.enter(0, now, packet, epoch);
    }

    /// Packets come and there is no room for them: they are taken off the device and lost.
    #[cold]
    fn overrun(&mut self) -> Result<bool, ForwardError> {
        let (into, rest) = self.rest.split_at_mut(self.input.head() + self.input.mtu());
        for _ in 0..BATCH {
            let failed = |error| ForwardError::Read { name: self.input.name().to_string(), error };
            match self.input.read(into, rest).map_err(failed)? {
                Read::Packet(length) => {
                    let large = Large::read(&into[..length.min(into.len())], length);
                    let packets = large.filter(|_| is_large(into)).map_or(1, |large| large.packets()) as u64;
                    self.facts.read += packets;
                    self.facts.overrun += packets;
                }
                nothing => {
                    self.closed = nothing == Read::Closed;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Everything due by `now` is done. Returns until when the thread may sleep.
    pub(super) fn rest(&mut self, now: Time) -> Rest {
        let link = self.elements.first().filter(|_| self.linked);
        self.watch.rest(now, link);
        let last = self.elements.len().saturating_sub(1);
        let mut rest = Rest { until: self.watch.next_rest(), then: None };
        for (index, element) in self.elements.iter().enumerate() {
            let Some(due) = element.next_wakeup() else { continue };
            let paced = self.pace.wakeups(due);
            rest = rest.and(if index < last {
                Rest { until: paced.until.map(|until| until.max(due + self.slack)), then: None }
            } else {
                paced
            });
        }
        rest
    }

    pub(super) fn finish(mut self, ended: Time) -> Finished<W> {
        let mut inside = 0;
        for element in &self.elements {
            element.for_each(&mut |_| inside += 1);
        }
        self.facts.inside = inside;
        self.facts.missed = self.input.missed();
        self.facts.ended = ended;
        Finished {
            name: self.name,
            watch: self.watch,
            lateness: self.lateness,
            facts: self.facts,
            link: self.elements.into_iter().next().filter(|_| self.linked),
        }
    }
}
