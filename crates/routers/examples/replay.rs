//! Puts packets into a queue at given times and says what becomes of each: `scripts/kernel-queues` compares
//! this with a kernel.
//!
//! ```text
//! replay QUEUE [option=value,...] [--driven] < EVENTS
//!
//! events, by time, in nanoseconds:
//!   in  TIME NUMBER FLOW SOURCE DESTINATION DSCP ECN SIZE ACK       ACK: -, or what a pure ACK acknowledges
//!   out TIME                                                        only with --driven: a packet may leave
//! said:
//!   out TIME NUMBER ECN
//!   drop TIME NUMBER REASON
//! ```
//!
//! With `--driven` a link takes the next packet when the one before has left, which the events say.
//! Without, it takes whatever the queue gives, at once: the queue has a shaper.
#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::packet::{Acknowledgement, Block, Duplicate, FlowId, Packet, PacketId};
use brakelight_core::queue::{Dequeued, Drops, Place, Queue};
use brakelight_core::random::Random;
use brakelight_core::time::Time;
use brakelight_core::units::{Limit, Rate};
use brakelight_routers::{AnyQueue, QueueConfig};
use brakelight_testkit::Fixed;

/// A packet of the events.
#[derive(Clone, Copy, Debug)]
struct Replayed {
    number: u64,
    flow: u32,
    source: u32,
    destination: u32,
    dscp: u8,
    ecn: Ecn,
    size: u32,
    acknowledges: Option<u32>,
}

impl Packet for Replayed {
    fn id(&self) -> PacketId {
        PacketId(self.number)
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
        if self.ecn == Ecn::NotEct { Encoding::None } else { Encoding::Classic }
    }
    fn is_ack(&self) -> bool {
        self.acknowledges.is_some()
    }
    fn acknowledgement(&self) -> Option<Acknowledgement> {
        let blocks = [Block::default(); 3];
        self.acknowledges.map(|cumulative| Acknowledgement { cumulative, blocks, echo: 0, replaceable: true })
    }
    fn source_host(&self) -> u32 {
        self.source
    }
    fn destination_host(&self) -> u32 {
        self.destination
    }
    fn dscp(&self) -> u8 {
        self.dscp
    }
}

impl Duplicate for Replayed {
    fn duplicate(&self, id: PacketId) -> Self {
        Replayed { number: id.0, ..*self }
    }
}

/// A queue with what it drops, and the packet that a driven link has taken.
struct Replay<W> {
    queue: AnyQueue<Replayed>,
    drops: Drops<Replayed>,
    taken: Option<Dequeued<Replayed>>,
    to: W,
}

impl<W: Write> Replay<W> {
    fn say_drops(&mut self) -> io::Result<()> {
        for drop in self.drops.drain(..) {
            writeln!(self.to, "drop {} {} {:?}", drop.at.as_nanos(), drop.packet.number, drop.reason)?;
        }
        Ok(())
    }

    fn say_out(&mut self, now: Time, left: &Dequeued<Replayed>) -> io::Result<()> {
        writeln!(self.to, "out {} {} {}", now.as_nanos(), left.packet.number, left.packet.ecn as u8)
    }

    fn take(&mut self, now: Time) -> Option<Dequeued<Replayed>> {
        self.queue.dequeue(now, &mut Fixed(Rate::from_mbps(1)), &mut self.drops)
    }

    /// A shaped queue lets go what it does by `until`.
    fn run_shaped(&mut self, until: Time) -> io::Result<()> {
        let mut last = Time::ZERO;
        while !self.queue.backlog().is_empty() && self.queue.held_until() <= until {
            last = last.max(self.queue.held_until());
            let left = self.take(last);
            self.say_drops()?;
            if let Some(left) = left {
                self.say_out(last, &left)?;
            }
        }
        Ok(())
    }
}

fn parse(fields: &[&str]) -> Option<Replayed> {
    let number = |index: usize| fields.get(index)?.parse::<u32>().ok();
    Some(Replayed {
        number: u64::from(number(2)?),
        flow: number(3)?,
        source: number(4)?,
        destination: number(5)?,
        dscp: number(6)? as u8,
        ecn: Ecn::from_bits(number(7)? as u8),
        size: number(8)?,
        acknowledges: number(9),
    })
}

fn run(queue: QueueConfig, driven: bool) -> io::Result<()> {
    let limit = Limit::Packets(1 << 20);
    let place = Place { limit, nominal: Rate::from_mbps(1), random: Random::stream(1, "queue") };
    let to = io::BufWriter::new(io::stdout().lock());
    let mut replay = Replay { queue: queue.build(&place), drops: Drops::new(), taken: None, to };
    let malformed = |line: &str| io::Error::new(io::ErrorKind::InvalidData, format!("no event: `{line}`"));
    for line in io::stdin().lock().lines() {
        let line = line?;
        let fields: Vec<&str> = line.split_whitespace().collect();
        let nanos = fields.get(1).and_then(|time| time.parse().ok()).ok_or_else(|| malformed(&line))?;
        let now = Time::from_nanos(nanos);
        if !driven {
            replay.run_shaped(Time::from_nanos(nanos.saturating_sub(1)))?;
        }
        match fields[0] {
            "in" => {
                let packet = parse(&fields).ok_or_else(|| malformed(&line))?;
                let mut link = Fixed(Rate::from_mbps(1));
                replay.queue.enqueue(now, packet, &mut link, &mut replay.drops);
                replay.say_drops()?;
                if driven && replay.taken.is_none() {
                    replay.taken = replay.take(now);
                }
            }
            "out" if driven => {
                let left = match replay.taken.take() {
                    Some(left) => Some(left),
                    None => replay.take(now),
                };
                if let Some(left) = left {
                    replay.say_out(now, &left)?;
                }
                replay.taken = replay.take(now);
            }
            _ => return Err(malformed(&line)),
        }
        replay.say_drops()?;
        if !driven {
            // What arrives at an idle shaper leaves at once, and not earlier.
            let held = replay.queue.held_until();
            if held <= now {
                while let Some(left) = replay.take(now) {
                    replay.say_drops()?;
                    replay.say_out(now, &left)?;
                }
                replay.say_drops()?;
            }
        }
    }
    if driven {
        return Ok(());
    }
    replay.run_shaped(Time::MAX)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let driven = arguments.iter().any(|argument| argument == "--driven");
    let mut words = arguments.iter().filter(|argument| *argument != "--driven");
    let name = words.next().map_or("", String::as_str);
    let options = words.next().map_or("", String::as_str);
    let options: Vec<(&str, &str)> = options.split(',').filter_map(|option| option.split_once('=')).collect();
    let outcome = QueueConfig::new(name, &options)
        .map_err(|error| error.to_string())
        .and_then(|queue| run(queue, driven).map_err(|error| error.to_string()));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("replay: {error}");
            ExitCode::from(2)
        }
    }
}
