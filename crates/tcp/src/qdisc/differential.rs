//! The module's fixed point, compiled for this machine, against `brakelight_routers::abc`.

use std::collections::VecDeque;

use brakelight_core::ecn::Ecn;
use brakelight_core::parameters::Parameters;
use brakelight_core::queue::{Place, Queue};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_routers::abc::{Abc, Config};
use brakelight_testkit::{Fixed, Sample};

/// `struct router_settings` of `bpf/router.h`.
#[repr(C)]
struct Law {
    mu: u64,
    eta: u64,
    token_limit: u64,
    delta_us: u64,
    target_us: u64,
    window_ns: u64,
    buffer: u64,
}

/// `struct departure` of `kmod/marking.h`.
#[repr(C)]
pub(crate) struct Departure {
    pub(crate) now_ns: u64,
    pub(crate) sojourn_ns: u64,
    pub(crate) backlog: u64,
    pub(crate) bytes: u32,
    pub(crate) ecn: u8,
}

unsafe extern "C" {
    fn bl_module_router_size() -> usize;
    fn bl_module_adaptive_size() -> usize;
    fn bl_module_enter(adaptive: *mut u64, mu: u64, proxied: u32, now_ns: u64, bytes: u32, ecn: u32);
    fn bl_module_loop_delay_us(adaptive: *const u64) -> u64;
    fn bl_module_leave(
        router: *mut u64,
        adaptive: *mut u64,
        law: *const Law,
        proxied: u32,
        sojourn: u32,
        departure: *const Departure,
    ) -> u32;
    fn bl_module_cr(router: *const u64) -> u64;
    fn bl_module_capacity_size() -> usize;
    fn bl_module_capacity_depart(
        capacity: *mut u64,
        now_ns: u64,
        bytes: u32,
        waits: u32,
        window_ns: u64,
        cr: u64,
        eta: u64,
    ) -> u64;
}

const ONE: f64 = (1_u32 << 20) as f64;

fn law(rate: Rate, adaptive: bool) -> Law {
    Law {
        mu: rate.bps() / 8,
        eta: if adaptive { ONE as u64 } else { (0.98 * ONE).round() as u64 },
        token_limit: (5.0 * ONE) as u64,
        delta_us: 133_000,
        target_us: 50_000,
        window_ns: 20_000_000,
        buffer: 0,
    }
}

/// `struct router`, and `struct adaptive` where that rule is in force, as large as the C code says; zero is
/// their start.
struct Router {
    router: Vec<u64>,
    adaptive: Option<Vec<u64>>,
}

impl Router {
    fn new(adaptive: bool) -> Self {
        // SAFETY: these only return sizes.
        let [router, tuned] = unsafe { [bl_module_router_size(), bl_module_adaptive_size()] }
            .map(|size| vec![0; size.div_ceil(8)]);
        Router { router, adaptive: adaptive.then_some(tuned) }
    }

    /// A packet has been let in.
    fn enter(&mut self, law: &Law, proxied: bool, now: Time, bytes: u32, ecn: Ecn) {
        let (proxied, ecn) = (u32::from(proxied), u32::from(ecn as u8));
        if let Some(adaptive) = &mut self.adaptive {
            // SAFETY: the state is large enough, and nothing else refers to it.
            unsafe { bl_module_enter(adaptive.as_mut_ptr(), law.mu, proxied, now.as_nanos(), bytes, ecn) };
        }
    }

    /// The field that a packet leaves with.
    fn leave(&mut self, law: &Law, proxied: bool, sojourn: bool, departure: &Departure) -> Ecn {
        let (proxied, sojourn) = (u32::from(proxied), u32::from(sojourn));
        let adaptive = self.adaptive.as_mut().map_or(std::ptr::null_mut(), |state| state.as_mut_ptr());
        let router = self.router.as_mut_ptr();
        // SAFETY: the states are large enough, and nothing else refers to them.
        Ecn::from_bits(unsafe { bl_module_leave(router, adaptive, law, proxied, sojourn, departure) } as u8)
    }

    fn cr(&self) -> u64 {
        // SAFETY: as above; it only reads.
        unsafe { bl_module_cr(self.router.as_ptr()) }
    }

    fn loop_delay_ms(&self) -> Option<f64> {
        // SAFETY: as above; it only reads.
        self.adaptive.as_ref().map(|state| unsafe { bl_module_loop_delay_us(state.as_ptr()) } as f64 / 1e3)
    }
}

#[derive(Default)]
struct Tally {
    packets: u64,
    by_core: u64,
    by_module: u64,
    differ: u64,
}

fn random_packet(random: &mut Random, id: u64) -> Sample {
    let size = if random.chance(0.3) { 66 } else { 200 + (random.exponential() * 700.0).min(1300.0) as u32 };
    let ecn = match (random.exponential() * 100.0) as u64 {
        0..=3 => Ecn::NotEct,
        4..=13 => Ecn::Ect0,
        14..=16 => Ecn::Ce,
        _ => Ecn::Ect1,
    };
    Sample::abc(id, size, ecn)
}

fn run(seed: u64, rate: Rate, load: f64, proxied: bool, sojourn: bool, packets: u64) -> Tally {
    let mut random = Random::stream(seed, "module");
    let x = if sojourn { "sojourn" } else { "backlog" };
    let encoding = if proxied { "proxied" } else { "abc" };
    let config = Config::from_options([("x", x), ("encoding", encoding)]).expect("the options are known");
    let place = Place { limit: Limit::Packets(250), nominal: rate, random: Random::stream(seed, "queue") };
    let mut core: Abc<Sample> = Abc::new(&config, &place);
    let (mut link, law, mut module) = (Fixed(rate), law(rate, false), Router::new(false));
    let (mut arrival, mut free) = (Time::ZERO, Time::ZERO);
    let mut waiting: VecDeque<(Time, Sample)> = VecDeque::new();
    let (mut drops, mut tally) = (Vec::new(), Tally::default());
    for id in 0..packets {
        // Loads that swing, so that queues come and go.
        let swing = if id / 3000 % 2 == 0 { 1.25 } else { 0.75 };
        let mean = rate.time_for(Bytes(550)).as_secs_f64();
        arrival += Duration::from_secs_f64(random.exponential() * mean / (load * swing));
        while waiting.front().is_some_and(|(arrived, _)| free.max(*arrived) <= arrival) {
            let (arrived, packet) = waiting.pop_front().expect("it is not empty");
            let now = free.max(arrived);
            free = now + rate.time_for(Bytes(u64::from(packet.size)));
            let left = core.dequeue(now, &mut link, &mut drops).expect("it holds what waits here");
            assert_eq!(left.packet.id, packet.id);
            let departure = Departure {
                now_ns: now.as_nanos(),
                sojourn_ns: now.since(arrived).as_nanos(),
                backlog: waiting.iter().map(|(_, packet)| u64::from(packet.size)).sum(),
                bytes: packet.size,
                ecn: packet.ecn as u8,
            };
            let ecn = module.leave(&law, proxied, sojourn, &departure);
            let accelerate = |ecn| ecn == Ecn::Ect1 || (proxied && ecn == Ecn::Ect0);
            tally.packets += 1;
            tally.by_core += u64::from(accelerate(left.packet.ecn));
            tally.by_module += u64::from(accelerate(ecn));
            tally.differ += u64::from(left.packet.ecn != ecn);
            if matches!(packet.ecn, Ecn::NotEct | Ecn::Ce) {
                assert_eq!(ecn, packet.ecn, "what is no accelerate is left alone");
            }
        }
        let packet = random_packet(&mut random, id);
        let before = core.backlog().packets;
        core.enqueue(arrival, packet, &mut link, &mut drops);
        if core.backlog().packets > before {
            waiting.push_back((arrival, packet));
        }
    }
    tally
}

#[test]
fn marks_are_the_cores_within_a_thousandth_in_both_encodings_and_by_both_delays() {
    let mut all = 0;
    for (seed, mbps) in [(1, 1), (2, 24), (3, 1000)] {
        for (proxied, sojourn) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut sum = Tally::default();
            for load in [0.6, 1.0, 1.2] {
                let tally = run(seed, Rate::from_mbps(mbps), load, proxied, sojourn, 31_000);
                sum.packets += tally.packets;
                sum.by_core += tally.by_core;
                sum.by_module += tally.by_module;
                sum.differ += tally.differ;
            }
            let Tally { packets, by_core, by_module, differ } = sum;
            let numbers = format!(
                "{packets} packets at {mbps} Mbit/s, proxied {proxied}, sojourn {sojourn}: {by_core} accelerates by the core, \
                 {by_module} here, {differ} differ"
            );
            assert!(by_core > 20_000, "{numbers}");
            assert!(by_core.abs_diff(by_module) * 1000 <= by_core, "{numbers}");
            all += packets;
        }
    }
    assert!(all > 1_000_000, "{all} packets");
}

/// Senders answer the core's marks a loop delay later, beside packets of all fields at random, on a link that
/// has the rate, half of it and a quarter by turns. Returns tau at the end, of the core and of the module,
/// too.
fn run_adaptive(
    seed: u64,
    rate: Rate,
    loop_delay: Duration,
    proxied: bool,
    packets: u64,
) -> (Tally, [f64; 2]) {
    let mut random = Random::stream(seed, "module");
    let encoding = if proxied { "proxied" } else { "abc" };
    let config =
        Config::from_options([("variant", "adaptive"), ("encoding", encoding)]).expect("they are known");
    let limit = Limit::Packets(u32::try_from(rate.bps() / 100_000).expect("it is small"));
    let place = Place { limit, nominal: rate, random: Random::stream(seed, "queue") };
    let mut core: Abc<Sample> = Abc::new(&config, &place);
    let rate_at =
        |now: Time| Rate::from_bps(rate.bps() / [1, 4, 2, 4][(now.as_nanos() / 500_000_000 % 4) as usize]);
    let mut module = Router::new(true);
    let mut coming: VecDeque<Time> = VecDeque::new();
    let mut waiting: VecDeque<(Time, Sample)> = VecDeque::new();
    // Not zero, which means never to the module.
    let (mut free, mut more) = (Time::ZERO, Time::ZERO + Duration::from_millis(5));
    let (mut drops, mut tally, mut backlog) = (Vec::new(), Tally::default(), 0);
    let accelerate = |ecn| ecn == Ecn::Ect1 || (proxied && ecn == Ecn::Ect0);
    let mut id = 0;
    while tally.packets < packets {
        let arrival = coming.front().map_or(more, |at| (*at).min(more));
        if let Some((arrived, packet)) = waiting.front().copied()
            && free.max(arrived) <= arrival
        {
            waiting.pop_front();
            let now = free.max(arrived);
            let rate = rate_at(now);
            free = now + rate.time_for(Bytes(u64::from(packet.size)));
            let left = core.dequeue(now, &mut Fixed(rate), &mut drops).expect("it holds what waits here");
            assert_eq!(left.packet.id, packet.id);
            backlog -= u64::from(packet.size);
            let departure = Departure {
                now_ns: now.as_nanos(),
                sojourn_ns: now.since(arrived).as_nanos(),
                backlog,
                bytes: packet.size,
                ecn: packet.ecn as u8,
            };
            let ecn = module.leave(&law(rate, true), proxied, false, &departure);
            tally.packets += 1;
            tally.by_core += u64::from(accelerate(left.packet.ecn));
            tally.by_module += u64::from(accelerate(ecn));
            tally.differ += u64::from(left.packet.ecn != ecn);
            if matches!(packet.ecn, Ecn::NotEct) || (packet.ecn == Ecn::Ce && !proxied) {
                assert_eq!(ecn, packet.ecn, "what is no accelerate is left alone");
            }
            if accelerate(left.packet.ecn) {
                coming.extend([now + loop_delay, now + loop_delay]);
            }
            continue;
        }
        id += 1;
        let mut packet = random_packet(&mut random, id);
        if more <= arrival {
            more = arrival + rate.time_for(Bytes((random.exponential() * 12_000.0) as u64));
        } else {
            packet = Sample::abc(id, 1500, Ecn::Ect1);
            coming.pop_front();
        }
        let before = core.backlog().packets;
        core.enqueue(arrival, packet, &mut Fixed(rate_at(arrival)), &mut drops);
        if core.backlog().packets > before {
            module.enter(&law(rate_at(arrival), true), proxied, arrival, packet.size, packet.ecn);
            waiting.push_back((arrival, packet));
            backlog += u64::from(packet.size);
        }
    }
    let mut tau_ms = [0.0, module.loop_delay_ms().expect("it is that rule")];
    core.inspect(&mut |name, value| {
        if name == "loop_delay_ms" {
            tau_ms[0] = value;
        }
    });
    (tally, tau_ms)
}

#[test]
fn behind_senders_that_answer_the_tuned_marks_are_the_cores_in_both_encodings() {
    for (seed, mbps, loop_delay_ms) in [(1, 4, 60), (2, 24, 40), (3, 100, 110), (4, 1000, 20)] {
        for proxied in [false, true] {
            let loop_delay = Duration::from_millis(loop_delay_ms);
            let packets = 30_000 + mbps * 600;
            let (tally, tau_ms) = run_adaptive(seed, Rate::from_mbps(mbps), loop_delay, proxied, packets);
            let Tally { packets, by_core, by_module, differ } = tally;
            let numbers = format!(
                "{packets} packets at {mbps} Mbit/s, proxied {proxied}: {by_core} accelerates by the core, {by_module} here, \
                 {differ} differ, tau {tau_ms:?} of {loop_delay_ms} ms"
            );
            assert!(by_core * 4 > packets, "{numbers}");
            assert!(by_core.abs_diff(by_module) * 200 <= by_core, "{numbers}");
            assert!(tau_ms.iter().all(|tau_ms| (tau_ms - loop_delay_ms as f64).abs() <= 2.0), "{numbers}");
        }
    }
}

/// ABC's sender, two packets for an accelerate and none for a brake, on a link whose rate nobody tells: what
/// left per second, and the largest delay in each second.
fn closed_loop(rate_at: impl Fn(Time) -> Rate, seconds: usize, adaptive: bool) -> Vec<(f64, f64)> {
    const SIZE: u32 = 1500;
    const RTT: Duration = Duration::from_millis(50);
    // SAFETY: it only returns a size.
    let mut capacity = vec![0_u64; unsafe { bl_module_capacity_size() }.div_ceil(8)];
    let (mut law, mut module) = (law(Rate::ZERO, adaptive), Router::new(false));
    // How many of those to come have been let in.
    let mut entered = 0;
    // The times at which packets arrive, in order: one RTT after what they answer left.
    let mut arrivals: VecDeque<Time> = std::iter::repeat_n(Time::ZERO, 10).collect();
    let mut window = 10.0_f64;
    let mut credit = 0.0;
    let mut free = Time::ZERO;
    let mut seen = vec![(0.0, 0.0_f64); seconds];
    while let Some(arrived) = arrivals.pop_front() {
        // It arrives, waits for the link, and leaves as its last bit does: what a device asks for next it
        // asks for then.
        let now = free.max(arrived);
        let Some(second) = seen.get_mut((now.as_nanos() / 1_000_000_000) as usize) else { break };
        free = now + rate_at(now).time_for(Bytes(u64::from(SIZE)));
        let waiting = arrivals.iter().take_while(|arrival| **arrival <= now).count();
        // The one that leaves is among them, unless it came before.
        for at in std::iter::once(&arrived).chain(&arrivals).take(waiting + 1).skip(entered) {
            module.enter(&law, false, *at, SIZE, Ecn::Ect1);
        }
        entered = waiting;
        let waits = u32::from(waiting > 0);
        // SAFETY: the state is as large as the C code says, zero is its start, and nothing else refers to it.
        let mu = unsafe {
            let state = capacity.as_mut_ptr();
            bl_module_capacity_depart(state, now.as_nanos(), SIZE, waits, law.window_ns, module.cr(), law.eta)
        };
        law.mu = if mu == 0 { 1 << 36 } else { mu };
        if mu > 0 && adaptive && module.adaptive.is_none() {
            module = Router { router: module.router, ..Router::new(true) };
        }
        let departure = Departure {
            now_ns: now.as_nanos(),
            sojourn_ns: now.since(arrived).as_nanos(),
            backlog: waiting as u64 * u64::from(SIZE),
            bytes: SIZE,
            ecn: Ecn::Ect1 as u8,
        };
        let accelerate = module.leave(&law, false, false, &departure) == Ecn::Ect1;
        second.0 += f64::from(SIZE) * 8.0 / 1e6;
        second.1 = second.1.max(now.since(arrived).as_secs_f64());
        // abc20 eq.3: the marks, and one packet per round trip.
        window += if accelerate { 1.0 } else { -1.0 } + 1.0 / window;
        credit += if accelerate { 2.0 } else { 0.0 } + 1.0 / window;
        while credit >= 1.0 {
            credit -= 1.0;
            arrivals.push_back(now + RTT);
        }
        window = window.max(2.0);
        if arrivals.is_empty() {
            arrivals.push_back(now + RTT);
        }
    }
    seen
}

#[test]
fn a_rate_that_nobody_tells_is_found_and_followed_up_and_down() {
    for (adaptive, most_s) in [(false, 0.15), (true, 0.15)] {
        found_and_followed(adaptive, most_s);
    }
}

fn found_and_followed(adaptive: bool, most_s: f64) {
    let at = |mbps| Rate::from_mbps(mbps);
    let second = |time: Time| time.as_nanos() / 1_000_000_000;
    let seen = closed_loop(
        |time| match second(time) {
            0..10 => at(12),
            10..25 => at(36),
            _ => at(6),
        },
        40,
        adaptive,
    );
    let mean = |range: std::ops::Range<usize>| {
        let length = range.len() as f64;
        seen[range].iter().map(|(mbit, _)| mbit).sum::<f64>() / length
    };
    let longest =
        |range: std::ops::Range<usize>| seen[range].iter().map(|(_, delay)| *delay).fold(0.0, f64::max);
    let (slow, fast, slowest) = (mean(5..10), mean(18..25), mean(30..40));
    let numbers = format!(
        "adaptive {adaptive}: {slow:.2} of 12, {fast:.2} of 36, {slowest:.2} of 6 Mbit/s: {seen:.2?}"
    );
    assert!((0.9..=1.001).contains(&(slow / 12.0)), "{numbers}");
    assert!((0.9..=1.001).contains(&(fast / 36.0)), "{numbers}");
    assert!((0.9..=1.001).contains(&(slowest / 6.0)), "{numbers}");
    for settled in [5..10, 18..25, 32..40] {
        assert!(longest(settled.clone()) < most_s, "{settled:?}: {numbers}");
    }
}
