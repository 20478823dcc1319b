//! The daemon of `brakelight shaper`: the rate setters of the simulation on a real device. It sets the rate
//! of a `cake` or `tbf` that stands there, and puts no qdisc there itself.
//!
//! | module | holds |
//! |---|---|
//! | [`control`] | one direction as a state machine: what its setter hears, and when a rate is set |
//! | [`probe`] | echo requests |
//! | this file | the clock and the sockets around them |
//!
//! One thread does everything, and waits in poll(2) in between. Each look at the counters is one question to
//! rtnetlink, and each change one message; the kernel holds the lock of its network configuration for both.

use std::net::IpAddr;
use std::time::Instant;

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Rate;
use brakelight_links::shaper::RateSetter;
pub use brakelight_links::shaper::{SetterConfig, Side};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Serialize;

use crate::error::Error;
use crate::qdisc::{RateQdisc, ShapingKind, ShapingState};

pub mod control;
pub mod probe;

use control::{Control, Counters, LOOK, QdiscFacts};
use probe::{Schedule, Sent, Sockets, UnderWay, is_reflector, size};

/// Bytes of a link header before the IP header, on Ethernet.
const ETHERNET_HEADER: u32 = 14;
/// `ARPHRD_ETHER`, include/uapi/linux/if_arp.h.
const ARPHRD_ETHER: u16 = 1;

/// One direction to shape.
#[derive(Clone, Debug)]
pub struct ShapedDirection {
    /// Up, or down.
    pub side: Side,
    /// The device whose qdisc gets the rate.
    pub device: String,
    /// Who chooses the rate.
    pub setter: SetterConfig,
}

/// What the daemon is to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The device by which probes leave.
    pub device: String,
    /// One or both.
    pub directions: Vec<ShapedDirection>,
    /// Whom probes are sent to.
    pub reflectors: Vec<IpAddr>,
    /// Whether no rate is set.
    pub dry_run: bool,
}

impl Plan {
    /// Refuses what only a simulation can do, and reflectors that are missing or too many.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] with the name of what is wrong.
    pub fn check(&self) -> Result<(), Error> {
        if self.directions.is_empty() {
            return Err(Error::Input("nothing to shape: valid is --up SETTER, --down SETTER or both".into()));
        }
        for ShapedDirection { side, setter, .. } in &self.directions {
            let (option, name) = (option_of(*side), setter.name());
            if setter.needs_link() {
                let share = setter.settings().iter().any(|(option, _)| *option == "rate");
                let instead = if share { format!("`{name}/rate=20Mbps`") } else { "`follow`".to_string() };
                return Err(Error::Input(format!(
                    "{option} {name}: nobody here knows the link's rate, as a simulation does; {instead} needs no such knowledge"
                )));
            }
            if setter.build(*side).probes_every().is_none() {
                continue;
            }
            if self.reflectors.is_empty() {
                return Err(Error::Input(format!(
                    "{option} {name} goes by the delay of probes: --reflector names who answers them, such as `--reflector 9.9.9.9`"
                )));
            }
            let most = reflectors_of(setter);
            if self.reflectors.len() > most {
                return Err(Error::Input(format!(
                    "--reflector: {} addresses are too many, valid is up to {most} for `{name}`, which compares the delays of each with its own",
                    self.reflectors.len()
                )));
            }
        }
        if let Some(bad) = self.reflectors.iter().find(|address| !is_reflector(address)) {
            return Err(Error::Input(format!("--reflector {bad}: valid is the address of one machine")));
        }
        Ok(())
    }
}

fn option_of(side: Side) -> &'static str {
    match side {
        Side::Up => "--up",
        Side::Down => "--down",
    }
}

/// How many reflectors a setter tells apart: those whose delays it keeps separately.
fn reflectors_of(setter: &SetterConfig) -> usize {
    let settings = setter.settings();
    let pingers = settings.iter().find(|(option, _)| *option == "pingers");
    pingers.and_then(|(_, value)| value.parse().ok()).unwrap_or(1)
}

/// How a direction is doing, for reports. Mbit/s are those of link frames.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// Seconds since the start.
    pub t_s: f64,
    /// `up` or `down`.
    pub direction: &'static str,
    /// The device.
    pub device: String,
    /// The rate that is set; in a dry run, the rate that would be.
    pub rate_mbps: f64,
    /// What left since the last report.
    pub left_mbps: f64,
    /// Packets that wait.
    pub waiting_packets: u32,
    /// The last round trip of a probe; `None` before the first.
    pub rtt_ms: Option<f64>,
    /// How often the rate changed since the last report.
    pub changes: u64,
    /// Whether the setter says that nothing it measures shows the link's queue.
    pub blind: bool,
    /// Whether nothing passes, and the setter sleeps.
    pub asleep: bool,
}

/// The daemon. Its end gives each qdisc the rate that it had before.
pub struct Daemon {
    began: Instant,
    dry_run: bool,
    ways: Vec<Way>,
    probes: Option<Probes>,
}

struct Way {
    side: Side,
    qdisc: RateQdisc,
    control: Control,
    /// Whether its rate was ever set.
    touched: bool,
    /// Bytes of a link header.
    header: u32,
    changes: u64,
    reported_at: Time,
    reported_departed: u64,
}

struct Probes {
    sockets: Sockets,
    reflectors: Vec<IpAddr>,
    under_way: UnderWay,
    schedule: Schedule,
}

impl Daemon {
    /// Finds the qdiscs, opens the sockets and sets the first rates. If anything fails, nothing is changed.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] where the plan cannot be carried out here, [`Error::Kernel`] where the kernel
    /// refuses.
    pub fn start(plan: &Plan) -> Result<Self, Error> {
        plan.check()?;
        let now = Time::ZERO;
        let mut ways = Vec::new();
        for ShapedDirection { side, device, setter } in &plan.directions {
            let qdisc = RateQdisc::find(device)?;
            let first = qdisc.first();
            let facts = match first.kind {
                ShapingKind::Cake => QdiscFacts { burst: 0, fifo: false },
                ShapingKind::Tbf { burst, fifo, .. } => QdiscFacts { burst, fifo },
            };
            if facts.fifo && *side == Side::Down && setter.build(*side).probes_every().is_some() {
                return Err(Error::Input(format!(
                    "the tbf on {device} keeps replies behind data, so they do not tell of the link: valid is cake, or tbf with fq_codel below it"
                )));
            }
            let rate = first.rate_bps.map(Rate::from_bps);
            ways.push(Way {
                side: *side,
                control: Control::new(now, setter, *side, facts, &counters(first), rate),
                touched: false,
                header: header_of(device),
                changes: 0,
                reported_at: now,
                reported_departed: 0,
                qdisc,
            });
        }
        let needed = plan.directions.iter().any(|way| way.setter.build(way.side).probes_every().is_some());
        let probes = needed
            .then(|| {
                Sockets::open(&plan.reflectors, &plan.device).map(|sockets| Probes {
                    sockets,
                    reflectors: plan.reflectors.clone(),
                    under_way: UnderWay::default(),
                    schedule: Schedule::new(now),
                })
            })
            .transpose()?;
        let mut daemon = Daemon { began: Instant::now(), dry_run: plan.dry_run, ways, probes };
        daemon.set_rates()?;
        Ok(daemon)
    }

    fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// How often a probe is wanted.
    fn probes_every(&self) -> Option<Duration> {
        self.ways.iter().filter_map(|way| way.control.probes_every()).min()
    }

    /// Waits for what is next, a tenth of a second at most, and does it.
    ///
    /// # Errors
    ///
    /// [`Error::Kernel`] if a device is gone or its qdisc is another one.
    pub fn turn(&mut self) -> Result<(), Error> {
        let every = self.probes_every();
        let looks = self.ways.iter().map(|way| way.control.next_look());
        let probe = self.probes.as_ref().and_then(|probes| probes.schedule.next(every));
        let next = looks.chain(probe).min().unwrap_or(Time::MAX);
        self.wait(next.since(self.now()).min(LOOK))?;
        self.hear()?;
        self.look()?;
        self.probe(every)?;
        self.set_rates()
    }

    /// Waits for so long, or until a reply comes.
    fn wait(&self, time: Duration) -> Result<(), Error> {
        let sockets = self.probes.iter().flat_map(|probes| probes.sockets.readable());
        let mut fds: Vec<_> = sockets.map(|socket| PollFd::new(socket, PollFlags::POLLIN)).collect();
        let ms = u16::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u16::MAX);
        match poll(&mut fds, PollTimeout::from(ms)) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(Error::kernel("waiting for replies", error)),
        }
    }

    /// Takes the replies that have come.
    fn hear(&mut self) -> Result<(), Error> {
        while let Some((sequence, reflector)) =
            self.probes.as_ref().and_then(|probes| probes.sockets.receive())
        {
            let now = self.now();
            let Some(probes) = &mut self.probes else { break };
            let Some((number, sent)) = probes.under_way.answered(sequence, reflector) else { continue };
            let size = size(probes.reflectors[reflector]);
            let mut left = sent.at;
            for way in &mut self.ways {
                match way.side {
                    Side::Up if way.control.left_at(number).is_none() => {
                        // It has left since the last look.
                        way.control.on_counters(now, &counters(&way.qdisc.look()?));
                        left = way.control.left_at(number).unwrap_or(sent.at);
                    }
                    Side::Up => left = way.control.left_at(number).unwrap_or(sent.at),
                    Side::Down => way.control.on_own_packet(size + way.header),
                }
            }
            let value = now.since(left);
            self.ways.iter_mut().for_each(|way| way.control.on_reply(now, value, reflector));
        }
        Ok(())
    }

    /// Reads the counters that are due.
    fn look(&mut self) -> Result<(), Error> {
        for index in 0..self.ways.len() {
            if self.ways[index].control.next_look() <= self.now() {
                let now = self.now();
                let standing = self.ways[index].qdisc.look()?;
                self.ways[index].control.on_counters(now, &counters(&standing));
            }
        }
        Ok(())
    }

    /// Sends the probe that is due.
    fn probe(&mut self, every: Option<Duration>) -> Result<(), Error> {
        let now = self.now();
        let Some(probes) = &mut self.probes else { return Ok(()) };
        if !probes.schedule.is_due(now, every) {
            return Ok(());
        }
        let reflector = probes.under_way.reflector(probes.reflectors.len());
        let size = size(probes.reflectors[reflector]);
        let up = self.ways.iter_mut().find(|way| way.side == Side::Up);
        let number = probes.under_way.add(Sent { at: now, reflector });
        if let Some(way) = up {
            let seen = if way.control.is_fifo() { counters(&way.qdisc.look()?) } else { Counters::default() };
            way.control.on_probe(now, number, size + way.header, &seen);
        }
        probes.sockets.send(reflector, number as u16);
        Ok(())
    }

    /// Sets the rates that have changed.
    fn set_rates(&mut self) -> Result<(), Error> {
        for index in 0..self.ways.len() {
            let now = self.now();
            let way = &mut self.ways[index];
            let Some(rate) = way.control.wants(now) else { continue };
            if !self.dry_run {
                way.qdisc.set(Some(rate.bps()))?;
                way.touched = true;
            }
            way.changes += 1;
            way.control.on_chosen(now, rate);
        }
        Ok(())
    }

    /// Returns how each direction is doing, without beginning a new report.
    pub fn status(&self) -> Vec<Status> {
        let now = self.now();
        self.ways
            .iter()
            .map(|way| {
                let (departed, waiting_packets) = way.control.departed();
                let passed = now.since(way.reported_at).as_secs_f64();
                let bits = (departed - way.reported_departed) as f64 * 8.0;
                Status {
                    t_s: now.as_secs_f64(),
                    direction: option_of(way.side).trim_start_matches('-'),
                    device: way.qdisc.device().to_string(),
                    rate_mbps: way.control.rate().map_or(0.0, |rate| rate.as_mbps_f64()),
                    left_mbps: if passed > 0.0 { bits / passed / 1e6 } else { 0.0 },
                    waiting_packets,
                    rtt_ms: way.control.rtt().map(|rtt| rtt.as_secs_f64() * 1e3),
                    changes: way.changes,
                    blind: way.control.is_blind(),
                    asleep: way.control.is_asleep(),
                }
            })
            .collect()
    }

    /// Begins a new report of the direction with this place in [`status`](Self::status).
    pub fn reported(&mut self, way: usize) {
        let now = self.now();
        let way = &mut self.ways[way];
        (way.changes, way.reported_at) = (0, now);
        way.reported_departed = way.control.departed().0;
    }

    /// Returns what stood on each device, in words.
    pub fn described(&self) -> Vec<String> {
        let mbps = |bps: Option<u64>| {
            bps.map_or("unlimited".to_string(), |bps| format!("{} Mbit/s", bps as f64 / 1e6))
        };
        self.ways
            .iter()
            .map(|way| {
                let first = way.qdisc.first();
                format!("{} on {} had {}", first.kind.name(), way.qdisc.device(), mbps(first.rate_bps))
            })
            .collect()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        for way in &mut self.ways {
            if way.touched {
                // Where another qdisc stands by now, it is left alone.
                let _ = way.qdisc.set(way.qdisc.first().rate_bps);
            }
        }
    }
}

fn counters(standing: &ShapingState) -> Counters {
    Counters {
        left: standing.bytes,
        waiting_bytes: standing.waiting_bytes,
        waiting_packets: standing.waiting_packets,
    }
}

/// Bytes of the link header that a device's packets have in its qdisc.
fn header_of(device: &str) -> u32 {
    let links = nix::ifaddrs::getifaddrs().into_iter().flatten();
    let kinds = links
        .filter(|link| link.interface_name == device)
        .filter_map(|link| link.address.and_then(|address| address.as_link_addr().map(|a| a.hatype())));
    if kinds.into_iter().any(|kind| kind == ARPHRD_ETHER) { ETHERNET_HEADER } else { 0 }
}
