//! The thread that carries packets: from a device through the elements of a direction to the other device,
//! under a real clock.
//!
//! ```text
//! wake up at t:   everything that was due by t happens at its own time, element by element; packets that
//!                 leave the last element are written
//!                 packets are read and enter the first element at the time they were read
//! sleep until:    the next event is due, or a packet comes
//! ```
//!
//! One thread may carry one direction or both. Carrying both in one costs the least processor time: what a
//! write causes on the other side, an acknowledgement or the next data, can be read before the thread sleeps,
//! and so costs no wake-up of its own.
//!
//! A wake-up of this thread, and of the program that receives what it writes, costs more than everything else
//! that is done for a packet. So several packets share one if that makes none of them later than
//! [`ForwardSettings::gather`]:
//!
//! - Packets that follow each other at a steady distance below that, as behind a link that is never idle, are
//!   expected to continue so: the thread wakes up for the last of as many as fit. Packets at a larger
//!   distance, or in groups as from a trace of milliseconds, are delivered when they are due.
//! - Nothing before a delay line needs a wake-up of its own: elements keep their own time, so a link that is
//!   polled late gives the same result as one that is polled in time.
//! - Above [`ForwardSettings::crowded`] packets per second a direction works as network cards do at such
//!   rates: it polls once per `gather` instead of at every packet, and writes data in buffers of several
//!   packets if [`segment`](crate::segment) allows it.
//!
//! Below that rate every packet is read when it comes and written alone.

use std::os::fd::AsFd;
use std::sync::Arc;

use brakelight_core::time::{Duration, Time};
use brakelight_links::elements::AnyElement;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::clock::{self, Epoch, Lateness, Scheduling, Stop};
use crate::device::Port;
use crate::packet::IpPacket;
use crate::spec::DirectionSpec;
use crate::watch::Watch;

mod alarm;
mod carrier;
mod pace;
#[cfg(test)]
mod tests;

use alarm::Alarm;
use carrier::{Carrier, Rest};

/// The thread polls instead of sleeping for waits shorter than this: sleeping and waking up take longer.
const SPIN: Duration = Duration::from_micros(8);

/// Rounds of delivering and reading between two checks of the stop flag.
const ROUNDS: usize = 16;

/// One direction, ready to run.
#[derive(Debug)]
pub struct CarriedDirection<W> {
    /// The link and the elements that packets pass.
    pub direction: DirectionSpec,
    /// The port that packets are read from.
    pub input: Arc<Port>,
    /// The port that packets are written to.
    pub output: Arc<Port>,
    /// The watch that is told of events.
    pub watch: W,
}

/// Settings of the thread that carries packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardSettings {
    /// Whether to ask for SCHED_FIFO.
    pub fifo: bool,
    /// The most packets a direction may hold at once.
    pub slots: usize,
    /// Rate, in packets per second, from which a direction counts as crowded.
    pub crowded: u64,
    /// How late a delivery may be so that several share a wake-up.
    pub gather: Duration,
}

impl Default for ForwardSettings {
    /// Two packets of 1500 bytes share a wake-up from 96 Mbit/s; crowded is what is above 600.
    fn default() -> Self {
        ForwardSettings { fifo: true, slots: 1 << 18, crowded: 50_000, gather: Duration::from_micros(125) }
    }
}

/// The result of one direction.
#[derive(Debug)]
pub struct Finished<W> {
    /// The direction's name.
    pub name: String,
    /// The watch, with what it recorded.
    pub watch: W,
    /// How late deliveries were.
    pub lateness: Lateness,
    /// Counters of the thread.
    pub facts: Facts,
    /// The link at the end, which can be asked for the capacity it had.
    pub link: Option<AnyElement<IpPacket>>,
}

/// Counters of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// When the thread began.
    pub began: Time,
    /// When it ended.
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
    /// Packets that were not valid IP packets and were dropped.
    pub malformed: u64,
    /// Packets dropped because the path held [`ForwardSettings::slots`] packets already.
    pub overrun: u64,
    /// Packets that the kernel of the other side refused.
    pub refused: u64,
    /// Packets that the kernel dropped before they could be read; `None` if unknown.
    pub missed: Option<u64>,
    /// Packets whose ECN field was changed on the way.
    pub rewritten: u64,
    /// How often the thread slept and woke up.
    pub wakeups: u64,
    /// Number of writes: fewer than packets if several were written in one buffer.
    pub writes: u64,
    /// How the thread was scheduled.
    pub scheduling: Scheduling,
}

impl Facts {
    fn new(began: Time, scheduling: Scheduling) -> Self {
        Facts {
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
            missed: None,
            rewritten: 0,
            wakeups: 0,
            writes: 0,
            scheduling,
        }
    }

    /// Returns whether every packet is accounted for.
    pub fn conserved(&self) -> bool {
        let out = self.written + self.dropped + self.inside + self.malformed + self.overrun + self.refused;
        self.read + self.made == out
    }
}

/// Why carrying packets failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForwardError {
    /// Reading from a device failed.
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

/// Carries packets in all directions until `stop` is set. Times count from `epoch`.
pub fn run<W: Watch>(
    directions: Vec<CarriedDirection<W>>,
    settings: &ForwardSettings,
    epoch: Epoch,
    stop: &Stop,
) -> Result<Vec<Finished<W>>, ForwardError> {
    let scheduling = clock::sleep_precisely(settings.fifo);
    let began = epoch.now();
    let mut carriers: Vec<Carrier<W>> = directions
        .into_iter()
        .map(|direction| Carrier::new(direction, settings, Facts::new(began, scheduling)))
        .collect();
    let mut alarm = Alarm::new(epoch).map_err(ForwardError::Wait)?;
    let mut ready = vec![true; carriers.len()];
    // When the devices of a crowded direction were to be looked at.
    let mut looked = began;
    loop {
        for _ in 0..ROUNDS {
            let written = carriers.iter_mut().fold(false, |written, carrier| carrier.serve(epoch) | written);
            if written {
                // It may have been answered already.
                ready.fill(true);
            }
            if ready.iter().all(|ready| !ready) {
                break;
            }
            for (carrier, ready) in carriers.iter_mut().zip(&mut ready).filter(|(_, ready)| **ready) {
                *ready = carrier.read(epoch)?;
            }
        }
        let now = epoch.now();
        let mut rest = Rest::default();
        let mut crowded = false;
        for carrier in &mut carriers {
            rest = rest.and(carrier.rest(now));
            crowded |= carrier.is_crowded(now, settings);
        }
        let stopped = if ready.contains(&true) {
            // There is more to do at once.
            look::<W>(&[], &mut ready, &alarm, stop, Some(TimeSpec::new(0, 0)))?
        } else if crowded {
            looked += settings.gather;
            if looked <= now {
                looked = now;
                look::<W>(&[], &mut ready, &alarm, stop, Some(TimeSpec::new(0, 0)))?
            } else {
                alarm.set(now, Some(looked), Some(looked + settings.gather)).map_err(ForwardError::Wait)?;
                look::<W>(&[], &mut ready, &alarm, stop, None)?
            }
        } else if rest.until.is_some_and(|until| until.since(now) < SPIN) {
            continue;
        } else {
            alarm.set(now, rest.until, rest.then).map_err(ForwardError::Wait)?;
            look(&carriers, &mut ready, &alarm, stop, None)?
        };
        if stopped {
            break;
        }
        for carrier in &mut carriers {
            carrier.woken();
        }
    }
    let ended = epoch.now();
    Ok(carriers.into_iter().map(|carrier| carrier.finish(ended)).collect())
}

/// Sleeps until a packet comes to one of `watched`, a timer goes off, or `timeout` is over; says which
/// direction may have packets, and whether all is to end.
fn look<W: Watch>(
    watched: &[Carrier<W>],
    ready: &mut [bool],
    alarm: &Alarm,
    stop: &Stop,
    timeout: Option<TimeSpec>,
) -> Result<bool, ForwardError> {
    // The stop, one or two directions, and two timers: no allocation.
    let mut fds: smallvec::SmallVec<[PollFd<'_>; 5]> = smallvec::SmallVec::new();
    fds.push(PollFd::new(stop.as_fd(), PollFlags::POLLIN));
    for carrier in watched {
        // A device that is gone reports that for ever: the stop stands in its place.
        fds.push(PollFd::new(carrier.input().unwrap_or(stop.as_fd()), PollFlags::POLLIN));
    }
    if timeout.is_none() {
        fds.extend(alarm.watched().map(|timer| PollFd::new(timer, PollFlags::POLLIN)));
    }
    match ppoll(&mut fds, timeout, None) {
        Ok(_) => {}
        Err(Errno::EINTR) => return Ok(false),
        Err(error) => return Err(ForwardError::Wait(error)),
    }
    let any = |fd: &PollFd<'_>| fd.any().unwrap_or(true);
    // Those that were not watched may have packets.
    ready.fill(true);
    for (ready, fd) in ready.iter_mut().zip(&fds[1..][..watched.len()]) {
        *ready = any(fd);
    }
    Ok(any(&fds[0]))
}
