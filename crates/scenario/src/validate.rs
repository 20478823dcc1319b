//! What makes a scenario runnable: ranges, names that refer to something, queues that speak their flows'
//! encodings.

use std::collections::HashSet;
use std::fmt::Display;
use std::ops::RangeInclusive;

use brakelight_apps::phases::MOST_PHASES;
use brakelight_apps::request_response::MOST_REQUEST;
use brakelight_apps::socket::MOST_MESSAGE;
use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_links::elements::{ELEMENTS, ElementConfig, Role};
use brakelight_links::link::{fixed, steps};
use brakelight_links::shaper::Side;
use brakelight_registry::{Host, LinkKind, Misfit};

use crate::agreement::{Difference, difference};
use crate::clock::Clock;
use crate::limits::LONGEST_RUN;
use crate::problem::{Invalid, Location, Problem};
use crate::routers;
use crate::scenario::{
    FlowSpec, Hop, LinkSpec, Reordering, Scenario, Service, TraceOffset, Waiting, is_element,
};
use crate::traffic::{Arrivals, Offer, SizeLaw, Traffic};

/// The smallest time that is not none.
const NS: Duration = Duration::from_nanos(1);
/// The longest time within a run, 30 days. Sums of a few stay far inside 64 bits of nanoseconds.
const RUN: Duration = Duration::from_secs(30 * 24 * 3600);
/// The longest round trip and the longest delay of anything on the way.
const TRIP: Duration = Duration::from_secs(3600);
/// The fastest link.
const FASTEST: Rate = Rate::from_bps(10_000_000_000_000);
/// The largest IP packet.
const PACKET: Bytes = Bytes(65_535);
/// The largest transfer.
const TRANSFER: Bytes = Bytes(1_000_000_000_000_000);
/// The most flows of a run, and the most short connections.
const FLOWS: u64 = 1_000_000;
/// The most bins of a time series.
const BINS: u64 = 1_000_000;

/// One table of the scenario, under validation.
struct Check {
    location: Location,
    owner: String,
}

impl Scenario {
    /// Checks that the scenario can be run. What a trace's name refers to is not looked at.
    pub fn validate(&self) -> Result<(), Invalid> {
        let check = Check { location: Location::Scenario, owner: String::new() };
        check.within("duration", self.duration, NS..=LONGEST_RUN)?;
        if self.measure_from >= self.duration {
            return check.range("measure_from", self.measure_from, "less than the duration");
        }
        if let TraceOffset::At(offset) = self.trace_offset {
            check.within("trace_offset", offset, Duration::ZERO..=RUN)?;
        }
        self.validate_record()?;
        if self.links.is_empty() {
            return check.fail("link", missing("link", "at least one link"));
        }
        let mut names = HashSet::new();
        for (index, link) in self.links.iter().enumerate() {
            self.validate_link(index, link, names.insert(&link.name))?;
        }
        if self.flows.is_empty() {
            return check.fail("flow", missing("flow", "at least one flow"));
        }
        names.clear();
        for (index, flow) in self.flows.iter().enumerate() {
            self.validate_flow(index, flow, names.insert(&flow.name))?;
        }
        if self.flow_count() > FLOWS {
            let reason = format!("{} flows are more than the {FLOWS} a run can have", self.flow_count());
            return check.contradiction("flow", reason);
        }
        Ok(())
    }

    /// Returns `true` if a path holds an element of this name.
    fn uses_element(&self, name: &str) -> bool {
        let hops = self.flows.iter().flat_map(|flow| flow.path.iter().chain(&flow.reverse));
        hops.into_iter().any(|hop| matches!(hop, Hop::Element(element) if element.name() == name))
    }

    fn validate_record(&self) -> Result<(), Invalid> {
        let check = Check { location: Location::Record, owner: "record".to_string() };
        let shortest = Duration::from_nanos(self.duration.as_nanos().div_ceil(BINS)).max(NS);
        check.within("bin", self.record.bin, shortest..=self.duration)?;
        let Some(over) = self.record.unfairness else { return Ok(()) };
        let measured = self.duration.saturating_sub(self.measure_from);
        check.within("unfairness", over, Duration::from_millis(20)..=measured)?;
        match self.flow_count() {
            0 | 1 => check.contradiction("unfairness", "it compares flows, and there is one".to_string()),
            _ => Ok(()),
        }
    }

    fn validate_link(&self, index: usize, link: &LinkSpec, new: bool) -> Result<(), Invalid> {
        let check = Check { location: Location::Link(index), owner: format!("link `{}`", link.name) };
        check.name(&link.name)?;
        if is_element(&link.name) || self.uses_element(&link.name) {
            return check.contradiction("name", "a path element has this name: choose another".to_string());
        }
        if !new {
            return check.duplicate("link", &link.name);
        }
        match &link.service {
            Service::Trace(trace) if trace.is_empty() => {
                return check.range("trace", trace, "the name or file of a trace");
            }
            Service::Trace(_) | Service::Radio(_) => {}
            Service::Fixed(rate) => check.within("rate", *rate, Rate::from_bps(1)..=FASTEST)?,
            Service::Steps(given) => {
                for (time, rate) in &given.steps {
                    check.within("steps", *time, NS..=RUN)?;
                    check.within("steps", *rate, Rate::ZERO..=FASTEST)?;
                }
                if given.steps.iter().all(|(_, rate)| *rate == Rate::ZERO) {
                    let reason = "the link never sends: give at least one step with a rate above zero";
                    return check.contradiction("steps", reason.to_string());
                }
                if given.steps.len() as u64 > BINS {
                    return check.contradiction("steps", format!("more than {BINS} steps"));
                }
                // What the element makes of them together: how long they last.
                let values = steps::Values {
                    schedule: steps::Schedule(given.steps.clone()),
                    repeat: given.repeat,
                    ..steps::Values::default()
                };
                if let Err(error) = steps::Config::new(values) {
                    return check.contradiction("steps", error.to_string());
                }
            }
        }
        match link.buffer {
            Limit::Packets(0) => check.range("buffer", link.buffer, "1pkt or more")?,
            Limit::Bytes(size) => check.within("buffer", size, Bytes(1)..=TRANSFER)?,
            Limit::Packets(_) => {}
        }
        check.fits(link)?;
        check.restarts(link)?;
        check.token_bucket_and_delay(link)?;
        check.within("opportunity", link.opportunity, Bytes(1)..=Bytes(1_000_000))?;
        if link.spread && !matches!(link.service, Service::Trace(_)) {
            return check
                .contradiction("spread", "only the opportunities of a `trace` can be spread".to_string());
        }
        check.within("overhead", link.overhead, Bytes::ZERO..=Bytes(10_000))
    }

    fn validate_flow(&self, index: usize, flow: &FlowSpec, new: bool) -> Result<(), Invalid> {
        let check = Check { location: Location::Flow(index), owner: format!("flow `{}`", flow.name) };
        check.name(&flow.name)?;
        if !new {
            return check.duplicate("flow", &flow.name);
        }
        check.within("count", u64::from(flow.count), 1..=FLOWS)?;
        check.within("ack_every", u64::from(flow.ack_every), 1..=1_000)?;
        if let Some(delay) = flow.ack_delay {
            check.within("ack_delay", delay, Duration::from_millis(1)..=Duration::from_secs(1))?;
        }
        for (key, changed) in [("reordering", flow.reordering != Reordering::Fixed), ("undo", !flow.undo)] {
            if changed && flow.host != Host::Quic {
                let reason = "only a host `quic` has it: TCP's reordering window adapts by itself (RFC 8985)";
                return check.contradiction(key, reason.to_string());
            }
        }
        // Linux's UIO_MAXIOV bounds recvmmsg at 1024.
        check.within("read_batch", u64::from(flow.read_batch), 1..=1_024)?;
        if flow.read_batch > 1 && flow.host != Host::Quic {
            let reason = "only a host `quic` has it: TCP acknowledges in the kernel, packet by packet";
            return check.contradiction("read_batch", reason.to_string());
        }
        if flow.traffic.is_in_pieces() && flow.host != Host::Quic {
            let reason = "`repair` needs a host `quic`: TCP has a stream and nothing else".to_string();
            return check.contradiction("traffic", reason);
        }
        check.within("mss", flow.mss, Bytes(64)..=PACKET)?;
        // The IPv4 header is the least a packet carries.
        check.within("overhead", flow.overhead, Bytes(20)..=Bytes(1_000))?;
        if flow.mss + flow.overhead > PACKET {
            let reason = format!("a full packet of {} with headers is larger than {PACKET}", flow.mss);
            return check.contradiction("mss", reason);
        }
        check.within("initial_window", u64::from(flow.initial_window), 1..=10_000)?;
        check.within("pacing_burst", u64::from(flow.pacing_burst), 1..=10_000)?;
        check.within("rtt", flow.rtt, NS..=TRIP)?;
        let most = (TRIP - flow.rtt) / u64::from(flow.count - 1).max(1);
        check.within("rtt_step", flow.rtt_step, Duration::ZERO..=most)?;
        check.within("jitter", flow.jitter, Duration::ZERO..=Duration::from_secs(1))?;
        if flow.start >= self.duration {
            return check.range("start", flow.start, "less than the duration");
        }
        check.within("start_within", flow.start_within, Duration::ZERO..=RUN)?;
        if let Some(stop) = flow.stop {
            check.within("stop", stop, NS..=RUN)?;
            let latest = flow.start + flow.start_within;
            if stop <= latest {
                let valid = format!("later than the latest start, {latest} (`start` plus `start_within`)");
                return check.range("stop", stop, &valid);
            }
        }
        check.clock(&flow.receiver_clock)?;
        self.validate_threshold(&check, flow)?;
        self.validate_path(&check, "path", flow)?;
        self.validate_path(&check, "reverse", flow)?;
        check.traffic(&flow.traffic, self.duration)
    }

    /// A threshold that no queue on the path can reach is a mistake, where the scenario says what the queues
    /// hold.
    fn validate_threshold(&self, check: &Check, flow: &FlowSpec) -> Result<(), Invalid> {
        let Some(threshold) = flow.controller.delay_threshold() else { return Ok(()) };
        let links = flow.path.iter().filter_map(|hop| match hop {
            Hop::Link(name) => self.link(name).map(|index| &self.links[index]),
            Hop::Element(_) => None,
        });
        let room = links
            .map(|link| longest_wait(link, flow))
            .try_fold(Duration::ZERO, |sum, wait| Some(sum + wait?));
        if let Some(room) = room.filter(|room| threshold > *room) {
            let valid = format!("up to {room}, which is all that the buffers on the path hold");
            let (key, value) = ("controller.threshold".to_string(), threshold.to_string());
            return check.fail("controller", Problem::OutOfRange { key, value, valid });
        }
        Ok(())
    }

    fn validate_path(&self, check: &Check, key: &'static str, flow: &FlowSpec) -> Result<(), Invalid> {
        let forward = key == "path";
        let hops = if forward { &flow.path } else { &flow.reverse };
        let mut seen: Vec<&str> = Vec::new();
        for hop in hops {
            let Hop::Link(name) = hop else { continue };
            let Some(index) = self.link(name) else {
                let links: Vec<&str> = self.links.iter().map(|link| link.name.as_str()).collect();
                let elements: Vec<&str> = ELEMENTS.iter().map(|entry| entry.name).collect();
                let valid = format!("{}; or a path element: {}", links.join(", "), elements.join(", "));
                let (what, name, key_text) = ("link".to_string(), name.clone(), key.to_string());
                return check.fail(key, Problem::UnknownName { key: key_text, what, name, valid });
            };
            if seen.contains(&name.as_str()) {
                return check.contradiction(key, format!("passes link `{name}` twice"));
            }
            seen.push(name);
            let link = &self.links[index];
            let encoding = flow.encoding();
            if forward && !link.queue.speaks(encoding) {
                let reason = format!(
                    "queue `{}` of link `{name}` does not speak the ECN encoding `{encoding}` of controller `{}`: \
                     give them links of their own{}",
                    link.queue.name(),
                    flow.controller.name(),
                    routers::how_to_misread(&link.queue)
                );
                return check.contradiction(key, reason);
            }
            let packet = flow.mss + flow.overhead;
            if let (true, Limit::Bytes(buffer)) = (forward, link.buffer)
                && buffer < packet
            {
                let reason =
                    format!("a full packet of {packet} does not fit the buffer of link `{name}`, {buffer}");
                return check.contradiction(key, reason);
            }
        }
        check.tunnels(key, hops)?;
        self.shapers(flow, forward, check, key)?;
        if forward && seen.is_empty() {
            return check.contradiction(key, "holds no link: give at least one".to_string());
        }
        if forward {
            for link in self.links.iter().filter(|link| seen.contains(&link.name.as_str())) {
                let sender = difference(flow.controller.config(), link.queue.config());
                let receiver = difference(flow.feedback.config(), link.queue.config());
                let parts = [("controller", sender), ("feedback", receiver)];
                let ends = parts.into_iter().find_map(|(part, found)| Some((part, found?)));
                if let Some((part, found)) = ends {
                    return check.disagreement(part, found, &format!("the queue of link `{}`", link.name));
                }
            }
            if let Some(found) = difference(flow.feedback.config(), flow.controller.config()) {
                return check.disagreement("feedback", found, "the controller");
            }
        }
        let passed = self.links.iter().filter(|link| seen.contains(&link.name.as_str()));
        let queues = passed.map(|link| (link.name.as_str(), &*link.queue));
        if let (true, Some(reason)) = (forward, routers::lacking(&flow.controller, queues)) {
            return check.contradiction(key, reason);
        }
        Ok(())
    }
}

impl Scenario {
    /// Shapers stand on the way of the data, and those whose setter must know a link have one beside them.
    fn shapers(
        &self,
        flow: &FlowSpec,
        forward: bool,
        check: &Check,
        key: &'static str,
    ) -> Result<(), Invalid> {
        let hops = if forward { &flow.path } else { &flow.reverse };
        for (place, hop) in hops.iter().enumerate() {
            let Hop::Element(element) = hop else { continue };
            let ElementConfig::Shaper(shaper) = element.config() else { continue };
            if !forward {
                let reason = format!(
                    "`{}` stands on the way of the data: put it on `path`, and ACKs pass it on their way back",
                    element.words()
                );
                return check.contradiction(key, reason);
            }
            let link =
                flow.shaped_link(place).and_then(|name| self.links.iter().find(|link| link.name == name));
            let known = link.is_some_and(|link| !matches!(link.service, Service::Radio(_)));
            if shaper.setter.needs_link() && !known {
                let side = if shaper.side == Side::Up { "behind" } else { "before" };
                let reason = format!(
                    "`{}`: the setter `{}` must know the rate of a link {side} it: put a link with a trace, a rate or \
                     steps there, or give `setter=fixed/rate=20Mbps`, `setter=autorate` or `setter=follow`",
                    element.words(),
                    shaper.setter.name()
                );
                return check.contradiction(key, reason);
            }
        }
        Ok(())
    }
}

/// How long a full packet of `flow` can wait in the link's queue, where that follows from the scenario.
fn longest_wait(link: &LinkSpec, flow: &FlowSpec) -> Option<Duration> {
    let Service::Fixed(rate) = &link.service else { return None };
    let packet = flow.mss + flow.overhead;
    let packets = link.queue.fills_up_to(link.buffer)?.in_packets(packet);
    Some(rate.time_for(packet + link.overhead).mul_f64(packets))
}

impl Check {
    /// Every tunnel that begins ends, one at a time.
    fn tunnels(&self, key: &'static str, hops: &[Hop]) -> Result<(), Invalid> {
        let mut inside = false;
        for hop in hops {
            let Hop::Element(element) = hop else { continue };
            let begins = match element.role() {
                Role::TunnelBegins => true,
                Role::TunnelEnds => false,
                Role::Plain | Role::Propagation | Role::Shaper => continue,
            };
            if begins == inside {
                let reason = match begins {
                    true => "`encapsulate` inside a tunnel: let the first one end with `decapsulate`",
                    false => "`decapsulate` without a tunnel: let one begin with `encapsulate`",
                };
                return self.contradiction(key, reason.to_string());
            }
            inside = begins;
        }
        if inside {
            let reason = "the tunnel that begins with `encapsulate` does not end: add `decapsulate`";
            return self.contradiction(key, reason.to_string());
        }
        Ok(())
    }

    /// Restarts come one after the other, and a router that is away keeps nothing.
    fn restarts(&self, link: &LinkSpec) -> Result<(), Invalid> {
        const KEY: &str = "restarts";
        if let (Service::Radio(radio), false) = (&link.service, link.restarts.is_empty()) {
            let reason =
                format!("`{}` has queues of its own, which do not restart: leave it out", radio.name());
            return self.contradiction(KEY, reason);
        }
        let mut up_at = Duration::ZERO;
        for restart in &link.restarts {
            self.within("restarts.at", restart.at, NS..=RUN)?;
            self.within("restarts.down", restart.down, Duration::ZERO..=RUN)?;
            if restart.at < up_at {
                let reason =
                    format!("the restart at {} comes before the router is back, at {up_at}", restart.at);
                return self.contradiction(KEY, reason);
            }
            if restart.waiting == Waiting::Kept && !restart.down.is_zero() {
                let reason =
                    "a router that is away keeps no packets: give `waiting = \"lost\"`, or no `down`";
                return self.contradiction(KEY, reason.to_string());
            }
            up_at = restart.at + restart.down;
        }
        Ok(())
    }

    /// A token bucket is filled at a rate, and a delay line comes before one queue.
    fn token_bucket_and_delay(&self, link: &LinkSpec) -> Result<(), Invalid> {
        self.within("burst", link.burst, Bytes::ZERO..=fixed::Config::LARGEST_BURST)?;
        self.within("delay", link.delay, Duration::ZERO..=TRIP)?;
        if link.burst != Bytes::ZERO && !matches!(link.service, Service::Fixed(_)) {
            let reason = "only a link with a `rate` can have a token bucket".to_string();
            return self.contradiction("burst", reason);
        }
        if link.delay.is_zero() {
            return Ok(());
        }
        if let Service::Radio(radio) = &link.service {
            let reason =
                format!("`{}` has several queues: put the element `delay` on the path", radio.name());
            return self.contradiction("delay", reason);
        }
        if !link.restarts.is_empty() {
            let reason = "a link with `restarts` has no delay line: put the element `delay` on the path";
            return self.contradiction("delay", reason.to_string());
        }
        Ok(())
    }

    /// The queue's settings fit the link.
    fn fits(&self, link: &LinkSpec) -> Result<(), Invalid> {
        let (rate, radio) = match &link.service {
            Service::Fixed(rate) => (Some(*rate), None),
            Service::Radio(radio) => (None, Some(radio.name())),
            Service::Trace(_) | Service::Steps(_) => (None, None),
        };
        let kind = LinkKind { buffer: link.buffer, rate, tells_unused: radio.is_none() };
        match link.queue.fits(&kind) {
            Ok(()) => Ok(()),
            Err(Misfit::OutOfRange { option, value, valid }) => {
                self.fail("queue", Problem::OutOfRange { key: format!("queue.{option}"), value, valid })
            }
            Err(Misfit::AsksForUnused { option }) => {
                let (queue, link) = (link.queue.name(), radio.unwrap_or(&link.name));
                let reason = format!(
                    "`{queue}:{option}` asks the link what it left unused, which `{link}` does not say: leave the \
                     option out"
                );
                self.contradiction("queue", reason)
            }
        }
    }

    fn fail(&self, key: &'static str, problem: Problem) -> Result<(), Invalid> {
        Err(Invalid { location: self.location, key, owner: self.owner.clone(), problem: Box::new(problem) })
    }

    fn range(&self, key: &'static str, value: impl Display, valid: &str) -> Result<(), Invalid> {
        let (value, valid) = (value.to_string(), valid.to_string());
        self.fail(key, Problem::OutOfRange { key: key.to_string(), value, valid })
    }

    fn within<T: PartialOrd + Display>(
        &self,
        key: &'static str,
        value: T,
        range: RangeInclusive<T>,
    ) -> Result<(), Invalid> {
        if range.contains(&value) {
            return Ok(());
        }
        self.range(key, value, &format!("{} to {}", range.start(), range.end()))
    }

    fn contradiction(&self, key: &'static str, reason: String) -> Result<(), Invalid> {
        self.fail(key, Problem::Contradiction { key: key.to_string(), reason })
    }

    /// A constant of `key` that is not what `other` has.
    fn disagreement(&self, key: &'static str, found: Difference, other: &str) -> Result<(), Invalid> {
        let Difference { name, value, valid } = found;
        let valid = format!("{valid}, as {other} has it");
        self.fail(key, Problem::OutOfRange { key: format!("{key}: {name}"), value, valid })
    }

    fn duplicate(&self, what: &str, name: &str) -> Result<(), Invalid> {
        let (key, what, name) = ("name".to_string(), what.to_string(), name.to_string());
        self.fail("name", Problem::Duplicate { key, what, name })
    }

    fn name(&self, name: &str) -> Result<(), Invalid> {
        let valid = |c: char| c.is_alphanumeric() || "-_.+ ".contains(c);
        let trimmed = !name.is_empty() && name.trim() == name;
        if trimmed && name.len() <= 100 && name.chars().all(valid) {
            return Ok(());
        }
        self.range("name", name, "1 to 100 letters, digits, inner spaces and `-_.+`")
    }

    fn clock(&self, clock: &Clock) -> Result<(), Invalid> {
        let within = |name: &str, value: f64, most: f64| {
            if value.abs() <= most {
                return Ok(());
            }
            let key = format!("receiver_clock.{name}");
            let (value, valid) = (value.to_string(), format!("{} to {most}", -most));
            self.fail("receiver_clock", Problem::OutOfRange { key, value, valid })
        };
        within("skew_ppm", clock.skew_ppm, Clock::MOST_PPM)?;
        within("step_ms", clock.step_ms, Clock::MOST_STEP_MS)?;
        self.within("receiver_clock", clock.offset, Duration::ZERO..=RUN)?;
        self.within("receiver_clock", clock.step_at.unwrap_or(Duration::ZERO), Duration::ZERO..=RUN)
    }

    fn traffic(&self, traffic: &Traffic, run: Duration) -> Result<(), Invalid> {
        const KEY: &str = "traffic";
        let some = Rate::from_bps(1)..=FASTEST;
        let size = Bytes(1)..=TRANSFER;
        match traffic {
            // The settings of an application from outside are checked where they are made.
            Traffic::Backlogged | Traffic::Custom(_) => Ok(()),
            Traffic::Size(bytes) => self.part("size", *bytes, size),
            Traffic::OnOff(on_off) => {
                self.part("on", on_off.on, NS..=RUN)?;
                self.part("off", on_off.off, NS..=RUN)?;
                on_off.rate.map_or(Ok(()), |rate| self.part("rate", rate, some))
            }
            Traffic::ShortFlows(short) => {
                self.part("size", short.size.mean(), size)?;
                match short.arrivals {
                    Arrivals::Load(load) => self.part("load", load, some)?,
                    Arrivals::PerSecond(rate) => self.part("per_second", rate, 1e-6..=1e6)?,
                }
                if let SizeLaw::Pareto { shape, .. } = short.size {
                    self.part("pareto_shape", shape, 1.001..=100.0)?;
                }
                let total = short.per_second() * run.as_secs_f64();
                // NaN cannot come here: both factors are finite and checked.
                if total > FLOWS as f64 {
                    let reason =
                        format!("about {total:.0} short flows are more than the {FLOWS} a run can have");
                    return self.contradiction(KEY, reason);
                }
                Ok(())
            }
            Traffic::RateLimited(rate) => self.part("rate", *rate, some),
            Traffic::Phases(phases) => {
                if !(1..=MOST_PHASES).contains(&phases.len()) {
                    let reason = format!("`phases` has {}: 1 to {MOST_PHASES} are valid", phases.len());
                    return self.contradiction(KEY, reason);
                }
                for phase in phases {
                    self.part("phases", phase.length, NS..=RUN)?;
                    if let Offer::Rate(rate) = phase.offer {
                        self.part("phases", rate, some.clone())?;
                    }
                }
                Ok(())
            }
            Traffic::RequestResponse(exchange) => {
                self.part("request", exchange.request, Bytes(1)..=MOST_REQUEST)?;
                self.part("response", exchange.response, size)?;
                self.part("think", exchange.think, Duration::ZERO..=RUN)
            }
            Traffic::Game(game) => {
                self.part("size", game.size, Bytes(1)..=MOST_MESSAGE)?;
                self.part("interval", game.interval, Duration::from_micros(100)..=TRIP)
            }
            Traffic::Video(video) => {
                if video.ladder.is_empty() || video.ladder.windows(2).any(|pair| pair[0] >= pair[1]) {
                    let reason = "`ladder` must hold at least one rate, each higher than the one before";
                    return self.contradiction(KEY, reason.to_string());
                }
                for rate in &video.ladder {
                    self.part("ladder", *rate, some.clone())?;
                }
                self.part("segment", video.segment, Duration::from_millis(100)..=TRIP)?;
                self.part("buffer", video.buffer, video.segment..=RUN)?;
                self.part("startup", video.startup, NS..=video.buffer)
            }
            Traffic::Call(call) => {
                self.part("max_rate", call.max_rate, some)?;
                self.part("min_rate", call.min_rate, Rate::from_bps(1)..=call.max_rate)?;
                self.part("fps", call.fps, 1..=240)?;
                self.part("deadline", call.deadline, NS..=TRIP)?;
                self.part("pause_at", call.pause_at, Duration::ZERO..=RUN)?;
                self.part("pause_for", call.pause_for, Duration::ZERO..=RUN)?;
                self.part("key_frame", call.key_frame, Bytes(1)..=Bytes(10_000_000))?;
                self.part("key_interval", call.key_interval, Duration::ZERO..=RUN)
            }
        }
    }

    /// A part of a flow's traffic.
    fn part<T: PartialOrd + Display>(
        &self,
        name: &str,
        value: T,
        range: RangeInclusive<T>,
    ) -> Result<(), Invalid> {
        if range.contains(&value) {
            return Ok(());
        }
        let (value, valid) = (value.to_string(), format!("{} to {}", range.start(), range.end()));
        self.fail("traffic", Problem::OutOfRange { key: format!("traffic.{name}"), value, valid })
    }
}

fn missing(key: &str, expected: &str) -> Problem {
    Problem::MissingKey { key: key.to_string(), expected: expected.to_string() }
}
