//! What every path element must do; for a queue, in links with every service; for a radio, with a queue:
//!
//! - packets are conserved by identity, at any time;
//! - packets keep the order they are promised to keep;
//! - outputs come in order of time, none from the future;
//! - an element that will do nothing wants no wake-up, and none wants one in the past;
//! - called late, it drops, marks and schedules exactly as when called on time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use brakelight_core::ecn::Encoding;
use brakelight_core::packet::{Header, PacketId};
use brakelight_core::parameters::Parameters;
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::queue::Place;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Limit;
use brakelight_links::elements::{AnyElement, AnyService, ElementConfig, Order, RadioConfig};
use brakelight_links::link::delaying::Delaying;
use brakelight_links::link::light_heavy::LightHeavy;
use brakelight_links::link::restart::{Restart, Restarting, Waiting};
use brakelight_links::link::{Link, Service, fixed, steps, traced};
use brakelight_links::trace::Trace;
use brakelight_links::trains::{Train, Trains};
use brakelight_registry::{Options, QueueConfig};

use super::{ENCODINGS, label};
use crate::Sample;

/// One element under test: how to build it, what it promises, which flows may pass it.
pub struct Case {
    name: String,
    order: Order,
    speaks: Vec<Encoding>,
    build: Box<dyn Fn() -> AnyElement<Sample>>,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Case").field(&self.name).finish()
    }
}

/// Returns a path element.
pub fn element(config: ElementConfig) -> Case {
    let site = || Site { random: Random::stream(5, "element"), ids: PacketId(1 << 40) };
    Case {
        name: label(&config),
        order: config.order(),
        speaks: ENCODINGS.to_vec(),
        build: Box::new(move || config.build(site())),
    }
}

fn spoken(queue: &QueueConfig) -> Vec<Encoding> {
    ENCODINGS.into_iter().filter(|encoding| queue.speaks(*encoding)).collect()
}

fn place(service: &AnyService) -> Place {
    Place { limit: Limit::Packets(60), nominal: service.nominal(), random: Random::stream(5, "queue") }
}

/// Returns a queue in links, one for each way to serve it.
pub fn links(queue: &QueueConfig) -> Vec<Case> {
    let case = |(name, service): (&str, AnyService)| {
        let config = queue.clone();
        Case {
            name: format!("{} on {name}", label(queue)),
            order: Order::PerFlow,
            speaks: spoken(queue),
            build: Box::new(move || {
                AnyElement::Link(Link::new(service.clone(), config.build(&place(&service))))
            }),
        }
    };
    services().into_iter().map(case).collect()
}

/// Returns a queue in links whose router restarts while packets wait, with and without them.
pub fn restarting_links(queue: &QueueConfig) -> Vec<Case> {
    let restart = |at_ms, down_ms, waiting| Restart {
        at: Duration::from_millis(at_ms),
        down: Duration::from_millis(down_ms),
        waiting,
    };
    let restarts = vec![
        restart(40, 0, Waiting::Kept),
        restart(150, 30, Waiting::Lost),
        restart(151, 0, Waiting::Lost),
        restart(700, 0, Waiting::Kept),
        restart(1500, 400, Waiting::Lost),
    ];
    let case = |(name, service): (&str, AnyService)| {
        let (config, restarts) = (queue.clone(), restarts.clone());
        Case {
            name: format!("{} restarted on {name}", label(queue)),
            order: Order::PerFlow,
            speaks: spoken(queue),
            build: Box::new(move || {
                let queue = config.build(&place(&service));
                AnyElement::Restarting(Box::new(Restarting::new(service.clone(), queue, restarts.clone())))
            }),
        }
    };
    services().into_iter().map(case).collect()
}

/// Returns a queue in links behind a delay line that shares its limit.
pub fn delaying_links(queue: &QueueConfig) -> Vec<Case> {
    let case = |(name, service): (&str, AnyService)| {
        let config = queue.clone();
        Case {
            name: format!("{} behind a delay line on {name}", label(queue)),
            order: Order::PerFlow,
            speaks: spoken(queue),
            build: Box::new(move || {
                let place = place(&service);
                let (limit, queue) = (place.limit, config.build(&place));
                let delay = Duration::from_millis(25);
                AnyElement::Delaying(Box::new(Delaying::new(service.clone(), queue, delay, limit)))
            }),
        }
    };
    services().into_iter().map(case).collect()
}

/// Returns a queue in links with light trains before it.
pub fn light_heavy_links(queue: &QueueConfig) -> Vec<Case> {
    let case = |(name, service): (&str, AnyService)| {
        let config = queue.clone();
        Case {
            name: format!("{} behind light trains on {name}", label(queue)),
            order: Order::PerFlow,
            speaks: spoken(queue),
            build: Box::new(move || {
                let queue = config.build(&place(&service));
                let link = LightHeavy::new(service.clone(), queue, trains(), Duration::from_millis(77));
                AnyElement::LightHeavy(Box::new(link))
            }),
        }
    };
    services().into_iter().map(case).collect()
}

/// Trains of unlike lengths, whose base delay rises and falls by more than the time between them.
fn trains() -> Trains {
    let train = |k: u64| Train {
        at: Duration::from_millis(50 * k),
        delay: Duration::from_millis(10 + k * k * 37 % 90),
        opportunities: (0..1 + k * 13 % 29).map(|packet| Duration::from_micros(700 * packet)).collect(),
    };
    Trains::new((0..20).map(train).collect(), Trains::OPPORTUNITY, Trains::IDLE).unwrap()
}

/// Returns a radio with queues of this kind.
pub fn radio(config: RadioConfig, queue: &QueueConfig) -> Case {
    let name = format!("{} on {}", queue.name(), label(&config));
    let (speaks, queue) = (spoken(queue), queue.clone());
    let site = || Site { random: Random::stream(5, "radio"), ids: PacketId(1 << 40) };
    Case {
        name,
        order: Order::PerFlow,
        speaks,
        build: Box::new(move || AnyElement::Radio(config.build(&queue, Limit::Packets(60), site()))),
    }
}

/// A bursty trace with repeated timestamps and two outages, one of them across its end.
fn bursty() -> Trace {
    let mut timestamps = Vec::new();
    for ms in 0..2000_u64 {
        let quiet = (400..900).contains(&ms) || ms > 1700;
        let opportunities = if quiet { 0 } else { (ms * ms / 7) % 4 };
        timestamps.extend((0..opportunities).map(|_| ms));
    }
    timestamps.push(2000);
    Trace::from_millis(timestamps).unwrap()
}

fn services() -> Vec<(&'static str, AnyService)> {
    let traced = |options: Options<'_>, trace: Trace| {
        let config = traced::Config::from_options(options.iter().copied()).unwrap();
        AnyService::Traced(traced::Traced::new(&config, trace))
    };
    let fixed = |options: Options<'_>| {
        AnyService::Fixed(fixed::Fixed::new(&fixed::Config::from_options(options.iter().copied()).unwrap()))
    };
    let steps = |options: Options<'_>| {
        AnyService::Steps(steps::Steps::new(&steps::Config::from_options(options.iter().copied()).unwrap()))
    };
    vec![
        ("trace", traced(&[], bursty())),
        ("trace, offset", traced(&[("offset", "777ms")], bursty())),
        ("trace, one opportunity", traced(&[("overhead", "0B")], Trace::from_millis([3]).unwrap())),
        ("fixed", fixed(&[])),
        ("token bucket", fixed(&[("rate", "7Mbps"), ("burst", "20kB")])),
        ("fixed, uneven", fixed(&[("rate", "7Mbps"), ("overhead", "38B")])),
        ("steps", steps(&[])),
        (
            "steps, outage",
            steps(&[("schedule", "300ms:20Mbps 450ms:0bps 1333us:3Mbps"), ("offset", "200ms")]),
        ),
        ("steps, held", steps(&[("schedule", "300ms:1Mbps 200ms:9Mbps"), ("repeat", "false")])),
    ]
}

/// Bursts above and trickles below any of the links' rates, with idle gaps; many arrivals fall exactly on a
/// millisecond, where opportunities and deadlines are.
fn arrivals(case: &Case, seed: u64) -> Vec<(Time, Sample)> {
    let mut random = Random::stream(seed, "arrivals");
    let mut now = Time::ZERO;
    let mut list = Vec::new();
    while list.len() < 1500 {
        let burst = 1 + random.bits() % 120;
        let mean_gap = [0.0, 2e-4, 1e-3, 8e-3][(random.bits() % 4) as usize];
        for _ in 0..burst {
            now += Duration::from_secs_f64(mean_gap * random.exponential());
            if random.chance(0.3) {
                now = Time::from_millis(now.as_nanos().div_ceil(1_000_000));
            }
            let id = list.len() as u64;
            let encoding = case.speaks[(random.bits() % case.speaks.len() as u64) as usize];
            let size = match random.bits() % 8 {
                0..=4 => 1500,
                5 => 40 + (random.bits() % 1460) as u32,
                6 => 52,
                _ => 9000,
            };
            let flow = case.speaks.iter().position(|other| *other == encoding).unwrap() as u32
                + 8 * (random.bits() % 3) as u32;
            let header = match encoding {
                Encoding::Explicit => Header::Load { code: 0 },
                Encoding::None if flow >= 16 => Header::Rate { bps: f32::INFINITY, rtt_s: 0.1 },
                Encoding::None if flow >= 8 => {
                    Header::Xcp { cwnd_bytes: 60_000.0, rtt_s: 0.1, feedback_bytes: 1500.0 }
                }
                _ => Header::None,
            };
            let sent_at = Some(now.saturating_sub(Duration::from_millis(20)));
            let ecn = encoding.sent();
            let probe = Sample { flow, ecn, encoding, header, sent_at, ..Sample::new(id, size) };
            list.push((now, probe));
        }
        now += Duration::from_secs_f64(0.05 * random.exponential());
        if random.chance(0.05) {
            now += Duration::from_secs(3);
        }
    }
    list
}

/// Runs an element over arrivals, checking what can be checked on the way.
struct Harness<'a> {
    case: &'a Case,
    element: AnyElement<Sample>,
    outputs: Vec<Output<Sample>>,
    inside: BTreeSet<u64>,
    now: Time,
    wakeups: usize,
}

impl<'a> Harness<'a> {
    fn new(case: &'a Case) -> Self {
        let element = (case.build)();
        assert_eq!(element.next_wakeup(), None, "{}: nothing will happen without a packet", case.name);
        Harness { case, element, outputs: Vec::new(), inside: BTreeSet::new(), now: Time::ZERO, wakeups: 0 }
    }

    fn accept(&mut self, now: Time, probe: Sample) {
        assert!(now >= self.now);
        self.now = now;
        assert!(self.inside.insert(probe.id));
        self.element.accept(now, probe);
    }

    fn poll(&mut self, now: Time) {
        assert!(now >= self.now);
        self.now = now;
        let name = &self.case.name;
        while let Some(output) = self.element.poll(now) {
            assert!(output.at() <= now, "{name}: {output:?} comes from the future at {now:?}");
            if let Some(before) = self.outputs.last() {
                assert!(before.at() <= output.at(), "{name}: {before:?} is reported before {output:?}");
            }
            if let Output::Duplicated(copy) = &output {
                assert!(self.inside.insert(copy.packet.id), "{name}: {copy:?} has another's identity");
            }
            let id = output.packet().id;
            assert!(self.inside.remove(&id), "{name}: {output:?} was not inside");
            self.outputs.push(output);
        }
        let next = self.element.next_wakeup();
        assert!(next.is_none_or(|next| next > now), "{name}: wants to be woken at {next:?} after {now:?}");
    }

    fn check_inside(&self) {
        let mut found = BTreeSet::new();
        self.element.for_each(&mut |packet| assert!(found.insert(packet.id), "{packet:?} is inside twice"));
        assert_eq!(found, self.inside, "{}", self.case.name);
    }

    /// Wakes the element at every time it asks for, each up to `lateness` late, before `until`.
    fn wake_until(&mut self, until: Time, lateness: &mut impl FnMut() -> Duration) {
        while let Some(due) = self.element.next_wakeup() {
            let at = (due + lateness()).max(self.now);
            if at >= until {
                return;
            }
            self.wakeups += 1;
            self.poll(at);
        }
    }
}

fn on_time<'a>(case: &'a Case, arrivals: &[(Time, Sample)]) -> Harness<'a> {
    let mut harness = Harness::new(case);
    for (count, &(at, probe)) in arrivals.iter().enumerate() {
        harness.wake_until(at, &mut || Duration::ZERO);
        harness.accept(at, probe);
        harness.poll(at);
        if count % 50 == 0 {
            harness.check_inside();
        }
    }
    harness.wake_until(Time::MAX, &mut || Duration::ZERO);
    harness.check_inside();
    harness
}

/// Wake-ups up to 5 ms late, arrivals on time but polled only now and then.
fn late<'a>(case: &'a Case, arrivals: &[(Time, Sample)], seed: u64) -> Harness<'a> {
    let mut random = Random::stream(seed, "lateness");
    let mut harness = Harness::new(case);
    for (count, &(at, probe)) in arrivals.iter().enumerate() {
        harness.wake_until(at, &mut || Duration::from_nanos(random.bits() % 5_000_000));
        harness.accept(at, probe);
        if count % 50 == 0 {
            harness.check_inside();
        }
        if random.chance(0.5) {
            harness.poll(at);
        }
    }
    harness.wake_until(Time::MAX, &mut || Duration::from_nanos(random.bits() % 5_000_000));
    harness.check_inside();
    harness
}

/// Holds the element to conservation, and to silence once nothing is inside.
///
/// # Panics
/// Panics if it is not so.
pub fn conserves_packets_and_ends_quietly(case: &Case) {
    for seed in 0..3 {
        let arrivals = arrivals(case, seed);
        let harness = on_time(case, &arrivals);
        assert!(harness.inside.is_empty(), "{}: {} never came out", case.name, harness.inside.len());
        assert_eq!(harness.element.next_wakeup(), None, "{}", case.name);
        // A link wakes up for a packet's turn and for its departure; nothing else wakes up twice for a
        // packet, except radios, which do for every slot and every try, and shapers, whose setters act and
        // probe at times of their own.
        let slots = matches!(harness.element, AnyElement::Radio(_) | AnyElement::Shaper(_));
        assert!(
            slots || harness.wakeups <= 2 * arrivals.len(),
            "{}: {} wake-ups for {} packets",
            case.name,
            harness.wakeups,
            arrivals.len()
        );
    }
}

/// Holds the element to the order that it promises.
///
/// # Panics
/// Panics if it is not so.
pub fn keeps_its_order(case: &Case) {
    let harness = on_time(case, &arrivals(case, 11));
    let departed = harness.outputs.iter().filter_map(|output| match output {
        Output::Departed(departed) => Some(departed.packet),
        _ => None,
    });
    let mut last: BTreeMap<u32, u64> = BTreeMap::new();
    for packet in departed {
        let group = match case.order {
            Order::Kept => 0,
            Order::PerFlow => packet.flow,
            Order::Free => continue,
        };
        let before = last.insert(group, packet.id);
        assert!(before < Some(packet.id), "{}: {packet:?} left after {before:?}", case.name);
    }
}

/// Holds the element to the same outputs whether it is called on time or up to 5 ms late.
///
/// # Panics
/// Panics if it is not so.
pub fn does_the_same_when_called_late(case: &Case) {
    for seed in 0..4 {
        let arrivals = arrivals(case, 100 + seed);
        let exact = on_time(case, &arrivals);
        let late = late(case, &arrivals, seed);
        for (exact, late) in exact.outputs.iter().zip(&late.outputs) {
            assert_eq!(exact, late, "{}, seed {seed}", case.name);
        }
        assert_eq!(exact.outputs.len(), late.outputs.len(), "{}, seed {seed}", case.name);
    }
}

/// Holds the element to the same outputs when it is built again.
///
/// # Panics
/// Panics if it is not so.
pub fn repeats_itself(case: &Case) {
    let arrivals = arrivals(case, 42);
    assert_eq!(on_time(case, &arrivals).outputs, on_time(case, &arrivals).outputs, "{}", case.name);
}

/// Looks at whether the other properties say anything of a link: packets wait in it, and most of them get
/// through.
///
/// # Panics
/// Panics if no packet waits, or nine of ten are dropped.
pub fn is_put_to_the_test(case: &Case) {
    let arrivals = arrivals(case, 100);
    let harness = on_time(case, &arrivals);
    let drops = harness.outputs.iter().filter(|output| matches!(output, Output::Dropped(_))).count();
    let queued = harness.outputs.iter().filter(
        |output| matches!(output, Output::Departed(departed) if departed.queued > Duration::from_millis(5)),
    );
    assert!(queued.count() > 0, "{}: no packet ever waited", case.name);
    assert!(drops < arrivals.len() * 9 / 10, "{}: {drops} drops", case.name);
}
