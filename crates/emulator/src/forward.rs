//! The thread that carries packets: from a device through the elements of a direction to the other device, under a real clock.
//!
//! ```text
//! wake up at t:   everything that was due by t happens at its own time, element by element; what leaves the last is written
//!                 packets are read and enter the first element at the time they were read
//! sleep until:    the next thing is due, or a packet comes
//! ```
//!
//! One thread may carry one direction or both. Both in one is what an idle machine's processor time is best spent on: what a write
//! brings about on the other side, an acknowledgement or the next data, is there to be read before the thread sleeps, and so costs
//! no wake-up of its own.

use std::os::fd::AsFd;
use std::sync::Arc;

use brakelight_core::packet::PacketId;
use brakelight_core::path::elements::AnyElement;
use brakelight_core::path::{Output, PathElement};
use brakelight_core::time::{Duration, Time};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::clock::{self, Epoch, Lateness, Scheduling, Stop};
use crate::device::{Port, Read};
use crate::packet::{Header, IpPacket, Reading, write_ecn};
use crate::slots::Slots;
use crate::spec::Direction;
use crate::watch::Watch;

/// One direction, ready to run.
#[derive(Debug)]
pub struct Lane<W> {
    /// What packets pass.
    pub direction: Direction,
    /// Where they are read from.
    pub input: Arc<Port>,
    /// Where they are written to.
    pub output: Arc<Port>,
    /// Who is told.
    pub watch: W,
}

/// How a thread is to behave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether to ask for SCHED_FIFO.
    pub fifo: bool,
    /// The most packets a direction may hold at once.
    pub slots: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { fifo: true, slots: 1 << 18 }
    }
}

/// What became of one direction.
#[derive(Debug)]
pub struct Finished<W> {
    /// The direction's name.
    pub name: String,
    /// Who was told.
    pub watch: W,
    /// How late deliveries were.
    pub lateness: Lateness,
    /// What was counted.
    pub facts: Facts,
    /// The link as it was when the thread ended, for what it could have carried.
    pub link: Option<AnyElement<IpPacket>>,
}

/// What was counted in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// When the thread began and ended.
    pub began: Time,
    /// See `began`.
    pub ended: Time,
    /// Packets read.
    pub read: u64,
    /// Bytes of those, at the IP layer.
    pub read_bytes: u64,
    /// Packets written.
    pub written: u64,
    /// Bytes of those, at the IP layer.
    pub written_bytes: u64,
    /// Packets that elements dropped.
    pub dropped: u64,
    /// Packets that elements made.
    pub made: u64,
    /// Packets still inside when the thread ended.
    pub inside: u64,
    /// Packets that were no IP packets and went no further.
    pub malformed: u64,
    /// Packets that found no slot: the path held more than [`Settings::slots`].
    pub overrun: u64,
    /// Packets that the other side's kernel did not take.
    pub refused: u64,
    /// Packets whose ECN field left different from how it came.
    pub rewritten: u64,
    /// How often the thread slept and woke up.
    pub wakeups: u64,
    /// How the thread was scheduled.
    pub scheduling: Scheduling,
}

impl Facts {
    /// Whether every packet is accounted for.
    pub fn conserved(&self) -> bool {
        let out = self.written + self.dropped + self.inside + self.malformed + self.overrun + self.refused;
        self.read + self.made == out
    }
}

/// Why a thread could not go on.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// A device failed.
    #[error("interface `{name}`: reading failed: {error}")]
    Read {
        /// The interface.
        name: String,
        /// What the system said.
        error: Errno,
    },
    /// Waiting failed.
    #[error("waiting for packets failed: {0}")]
    Wait(Errno),
}

/// Packets read in a row before what is due elsewhere has its turn.
const BATCH: usize = 64;

/// Carries packets until `stop` is set: the body of a thread. The clock of all directions is `epoch`'s.
pub fn run<W: Watch>(
    lanes: Vec<Lane<W>>,
    settings: &Settings,
    epoch: Epoch,
    stop: &Stop,
) -> Result<Vec<Finished<W>>, ForwardError> {
    let scheduling = clock::sleep_precisely(settings.fifo);
    let began = epoch.now();
    let mut carriers: Vec<Carrier<W>> =
        lanes.into_iter().map(|lane| Carrier::new(lane, settings, scheduling, began)).collect();
    let mut ready = vec![true; carriers.len()];
    loop {
        for carrier in &mut carriers {
            carrier.serve(epoch);
        }
        for (carrier, ready) in carriers.iter_mut().zip(&mut ready) {
            if *ready {
                carrier.read(epoch)?;
                carrier.serve(epoch);
            }
        }
        let now = epoch.now();
        let due = carriers.iter_mut().filter_map(|carrier| carrier.rest(now)).min();
        let timeout = due.map(|due| due.since(now));
        if wait(&carriers, &mut ready, timeout, stop)? {
            break;
        }
        for carrier in &mut carriers {
            carrier.facts.wakeups += 1;
        }
    }
    let ended = epoch.now();
    Ok(carriers.into_iter().map(|carrier| carrier.finish(ended)).collect())
}

/// Sleeps until a packet comes or `timeout` is over; says which direction has packets, and whether all is to end.
fn wait<W>(
    carriers: &[Carrier<W>],
    ready: &mut [bool],
    timeout: Option<Duration>,
    stop: &Stop,
) -> Result<bool, ForwardError> {
    // One or two directions and the stop: no allocation.
    let mut fds: smallvec::SmallVec<[PollFd<'_>; 3]> = smallvec::SmallVec::new();
    fds.push(PollFd::new(stop.as_fd(), PollFlags::POLLIN));
    for carrier in carriers {
        // A device that is gone reports that for ever: the stop stands in its place.
        let fd = if carrier.closed { stop.as_fd() } else { carrier.input.as_fd() };
        fds.push(PollFd::new(fd, PollFlags::POLLIN));
    }
    let timeout = timeout.map(|timeout| {
        let nanos = timeout.as_nanos();
        TimeSpec::new((nanos / 1_000_000_000) as _, (nanos % 1_000_000_000) as _)
    });
    match ppoll(&mut fds, timeout, None) {
        Ok(_) => {}
        Err(Errno::EINTR) => {
            ready.fill(false);
            return Ok(false);
        }
        Err(error) => return Err(ForwardError::Wait(error)),
    }
    let any = |fd: &PollFd<'_>| fd.any().unwrap_or(true);
    for ((ready, fd), carrier) in ready.iter_mut().zip(&fds[1..]).zip(carriers) {
        *ready = any(fd) && !carrier.closed;
    }
    Ok(any(&fds[0]))
}

/// A direction that runs.
struct Carrier<W> {
    name: String,
    elements: Vec<AnyElement<IpPacket>>,
    /// Whether the first element is a link.
    linked: bool,
    reading: Reading,
    input: Arc<Port>,
    output: Arc<Port>,
    slots: Slots,
    watch: W,
    lateness: Lateness,
    facts: Facts,
    next_id: u64,
    /// Nothing more will come in.
    closed: bool,
}

impl<W: Watch> Carrier<W> {
    fn new(lane: Lane<W>, settings: &Settings, scheduling: Scheduling, began: Time) -> Self {
        let head = lane.input.head();
        debug_assert_eq!(head, lane.output.head());
        let facts = Facts {
            began,
            ended: began,
            read: 0,
            read_bytes: 0,
            written: 0,
            written_bytes: 0,
            dropped: 0,
            made: 0,
            inside: 0,
            malformed: 0,
            overrun: 0,
            refused: 0,
            rewritten: 0,
            wakeups: 0,
            scheduling,
        };
        Carrier {
            elements: lane.direction.build(),
            linked: lane.direction.link.is_some(),
            reading: lane.direction.reading(),
            slots: Slots::new((lane.input.mtu() + head).next_multiple_of(64), settings.slots),
            name: lane.direction.name,
            input: lane.input,
            output: lane.output,
            watch: lane.watch,
            lateness: Lateness::new(),
            facts,
            next_id: 0,
            closed: false,
        }
    }

    /// Does everything that is due, each element up to now before the next.
    fn serve(&mut self, epoch: Epoch) {
        let now = epoch.now();
        for index in 0..self.elements.len() {
            while let Some(output) = self.elements[index].poll(now) {
                self.passed(index, output, now, epoch);
            }
        }
    }

    /// Element `index` says what happened.
    fn passed(&mut self, index: usize, output: Output<IpPacket>, now: Time, epoch: Epoch) {
        if index == 0 && self.linked {
            self.watch.output(&output, now);
        }
        match output {
            Output::Departed(departed) => self.enter(index + 1, departed.at, departed.packet, epoch),
            Output::Duplicated(departed) => {
                self.facts.made += 1;
                self.slots.share(departed.packet.slot);
                if index > 0 || !self.linked {
                    self.watch.duplicated(departed.at, &departed.packet);
                }
                self.enter(index + 1, departed.at, departed.packet, epoch);
            }
            Output::Dropped(dropped) => {
                self.facts.dropped += 1;
                if index > 0 || !self.linked {
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

    /// The packet's bytes go to the other side.
    fn deliver(&mut self, due: Time, packet: IpPacket, epoch: Epoch) {
        let head = self.output.head();
        let size = packet.header.size;
        let bytes = &mut self.slots.bytes(packet.slot)[..head + size as usize];
        self.facts.rewritten += u64::from(write_ecn(&mut bytes[head..], packet.header.ecn));
        let actual = epoch.now();
        if self.output.write(bytes).is_ok() {
            self.facts.written += 1;
            self.facts.written_bytes += u64::from(size);
            self.lateness.record(actual.since(due));
            self.watch.delivered(due, actual, &packet);
        } else {
            self.facts.refused += 1;
        }
        self.slots.give_back(packet.slot);
    }

    /// Takes in what has come, a batch of it.
    fn read(&mut self, epoch: Epoch) -> Result<(), ForwardError> {
        let head = self.input.head();
        for _ in 0..BATCH {
            let Some(slot) = self.slots.take() else {
                return self.overrun();
            };
            let bytes = self.slots.bytes(slot);
            let failed = |error| ForwardError::Read { name: self.input.name().to_string(), error };
            let length = match self.input.read(bytes).map_err(failed)? {
                Read::Packet(length) => length,
                Read::Empty => {
                    self.slots.give_back(slot);
                    return Ok(());
                }
                Read::Closed => {
                    self.closed = true;
                    self.slots.give_back(slot);
                    return Ok(());
                }
            };
            self.facts.read += 1;
            match bytes[..length].get(head..).map(Header::read) {
                Some(Ok(header)) => self.arrive(epoch.now(), slot, header, epoch),
                _ => {
                    self.facts.malformed += 1;
                    self.slots.give_back(slot);
                }
            }
        }
        Ok(())
    }

    fn arrive(&mut self, now: Time, slot: u32, header: Header, epoch: Epoch) {
        let encoding = self.reading.of(&header);
        let packet = IpPacket { id: PacketId(self.next_id), arrived: now, slot, header, encoding };
        self.next_id += 1;
        self.facts.read_bytes += u64::from(header.size);
        let head = self.input.head();
        let bytes = &self.slots.bytes(slot)[head..head + header.size as usize];
        self.watch.arrived(now, &packet, bytes);
        self.enter(0, now, packet, epoch);
    }

    /// Packets come and there is no room for them: they are taken off the device and lost.
    #[cold]
    fn overrun(&mut self) -> Result<(), ForwardError> {
        let mut scrap = [0; 2048];
        for _ in 0..BATCH {
            let failed = |error| ForwardError::Read { name: self.input.name().to_string(), error };
            match self.input.read(&mut scrap).map_err(failed)? {
                Read::Packet(_) => {
                    self.facts.read += 1;
                    self.facts.overrun += 1;
                }
                Read::Empty => break,
                Read::Closed => {
                    self.closed = true;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Everything due by `now` is done. Returns when something is due next.
    fn rest(&mut self, now: Time) -> Option<Time> {
        let link = self.elements.first().filter(|_| self.linked);
        self.watch.rest(now, link);
        let due = self.elements.iter().filter_map(PathElement::next_wakeup).min();
        match (due, self.watch.next_rest()) {
            (Some(due), Some(rest)) => Some(due.min(rest)),
            (due, rest) => due.or(rest),
        }
    }

    fn finish(mut self, ended: Time) -> Finished<W> {
        let mut inside = 0;
        for element in &self.elements {
            element.for_each(&mut |_| inside += 1);
        }
        self.facts.inside = inside;
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
