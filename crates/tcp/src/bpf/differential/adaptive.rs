//! The rule of `bpf/adaptive.h` against `abc:variant=adaptive` of `brakelight_routers::abc`, both behind
//! senders that answer the marks one loop delay later, on a link whose rate steps and wavers.

use std::collections::VecDeque;

use brakelight_core::ecn::{Ecn, Mark};
use brakelight_core::parameters::Parameters;
use brakelight_core::queue::{Place, Queue};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_routers::abc::{Abc, Config};
use brakelight_testkit::{Fixed, Sample};

use super::super::objects::router::types::router_settings;
use super::inspect;

unsafe extern "C" {
    fn bl_router_size() -> usize;
    fn bl_router_f(router: *const u64) -> u64;
    fn bl_module_cr(router: *const u64) -> u64;
    fn bl_router_depart(
        router: *mut u64,
        settings: *const router_settings,
        now_ns: u64,
        x_us: u64,
        bytes: u32,
        accelerates: u32,
    ) -> u32;
    fn bl_adaptive_size() -> usize;
    fn bl_adaptive_arrive(adaptive: *mut u64, now_ns: u64, mu: u64, bytes: u32);
    fn bl_adaptive_depart(
        router: *mut u64,
        adaptive: *mut u64,
        settings: *const router_settings,
        now_ns: u64,
        waiting: u64,
        bytes: u32,
        kind: u32,
        ordered: u32,
    ) -> u32;
    fn bl_adaptive_loop_delay_us(adaptive: *const u64) -> u64;
    fn bl_adaptive_error(adaptive: *const u64) -> u64;
    fn bl_adaptive_show(adaptive: *const u64, shown: *mut u64);
    fn bl_backlog_size() -> usize;
    fn bl_backlog_arrive(backlog: *mut u64, slot: u32, bytes: u32);
    fn bl_backlog_depart(backlog: *mut u64, slot: u32, bytes: u32) -> u64;
}

const ONE: f64 = (1_u32 << 20) as f64;

pub(super) fn settings(rate: Rate, eta: f64, buffer: u64) -> router_settings {
    router_settings {
        mu: rate.bps() / 8,
        eta: (eta * ONE) as u64,
        token_limit: (5.0 * ONE) as u64,
        delta_us: 133_000,
        target_us: 50_000,
        window_ns: 20_000_000,
        buffer,
    }
}

/// C state of so many bytes; zero is its start.
pub(super) fn state(bytes: usize) -> Vec<u64> {
    vec![0; bytes.div_ceil(8)]
}

/// The slot of `bpf/router.bpf.c`, of 2^18 ns.
fn slot(arrived: Time) -> u32 {
    (arrived.as_nanos() >> 18) as u32
}

/// The C code, as the programs call it.
struct Programs {
    router: Vec<u64>,
    adaptive: Vec<u64>,
    backlog: Vec<u64>,
    /// Bytes that may wait.
    buffer: u64,
}

impl Programs {
    fn new(packets: u32) -> Self {
        // SAFETY: these only return sizes.
        let [router, adaptive, backlog] =
            unsafe { [bl_router_size(), bl_adaptive_size(), bl_backlog_size()].map(state) };
        Programs { router, adaptive, backlog, buffer: 1500 * u64::from(packets) }
    }

    fn arrive(&mut self, now: Time, rate: Rate, packet: Sample) {
        if answers_marks(packet) {
            let (now, mu) = (now.as_nanos(), rate.bps() / 8);
            // SAFETY: the states are as large as the C code says, zero is their start, and nothing else
            // refers to them.
            unsafe { bl_adaptive_arrive(self.adaptive.as_mut_ptr(), now, mu, packet.size) };
        }
        self.sum(now, packet.size);
    }

    /// Counts bytes as come, whether they find room or not.
    fn sum(&mut self, now: Time, size: u32) {
        // SAFETY: as above.
        unsafe { bl_backlog_arrive(self.backlog.as_mut_ptr(), slot(now), size) };
    }

    fn waiting(&mut self, arrived: Time, size: u32) -> u64 {
        // SAFETY: as above.
        unsafe { bl_backlog_depart(self.backlog.as_mut_ptr(), slot(arrived), size) }
    }

    /// Whether a packet leaves as accelerate; `ordered` as in `bpf/host.c`.
    fn leave(&mut self, now: Time, rate: Rate, waiting: u64, packet: Sample, ordered: u32) -> bool {
        let (settings, now) = (settings(rate, 1.0, self.buffer), now.as_nanos());
        let [router, adaptive] = [&mut self.router, &mut self.adaptive].map(|state| state.as_mut_ptr());
        let kind = kind(packet);
        // SAFETY: as above.
        unsafe {
            bl_adaptive_depart(router, adaptive, &settings, now, waiting, packet.size, kind, ordered) != 0
        }
    }

    /// By the paper's rule, which has no loop.
    fn leave_by_paper(&mut self, now: Time, rate: Rate, sojourn: Duration, packet: Sample) -> bool {
        let (settings, x_us) = (settings(rate, 0.98, self.buffer), sojourn.as_nanos() / 1000);
        let (router, accelerates) = (self.router.as_mut_ptr(), u32::from(packet.ecn == Ecn::Ect1));
        // SAFETY: as above.
        unsafe { bl_router_depart(router, &settings, now.as_nanos(), x_us, packet.size, accelerates) != 0 }
    }

    fn f(&self) -> f64 {
        // SAFETY: as above; it only reads.
        unsafe { bl_router_f(self.router.as_ptr()) as f64 / ONE }
    }

    /// cr, in bit/s.
    fn measured_bps(&self) -> f64 {
        // SAFETY: as above; it only reads.
        unsafe { bl_module_cr(self.router.as_ptr()) as f64 * 8.0 }
    }

    fn loop_delay_ms(&self) -> f64 {
        // SAFETY: as above; it only reads.
        unsafe { bl_adaptive_loop_delay_us(self.adaptive.as_ptr()) as f64 / 1e3 }
    }

    fn error_bytes(&self) -> f64 {
        // SAFETY: as above; it only reads.
        unsafe { bl_adaptive_error(self.adaptive.as_ptr()) as f64 }
    }

    /// mu in bytes per second, and m and w in bytes.
    fn shown(&self) -> [f64; 3] {
        let mut shown = [0_u64; 3];
        // SAFETY: as above; it only reads, and writes three numbers.
        unsafe { bl_adaptive_show(self.adaptive.as_ptr(), shown.as_mut_ptr()) };
        shown.map(|value| value as f64)
    }
}

fn answers_marks(packet: Sample) -> bool {
    matches!(packet.ecn, Ecn::Ect0 | Ecn::Ect1)
}

/// As `bl_adaptive_depart` has it: 0 a brake, 1 an accelerate, 2 neither.
fn kind(packet: Sample) -> u32 {
    match packet.ecn {
        Ecn::Ect0 => 0,
        Ecn::Ect1 => 1,
        Ecn::NotEct | Ecn::Ce => 2,
    }
}

/// A link whose rate steps between 1, 1/2 and 1/4 of a rate every 700 ms, and wavers by a fifth every 3 ms.
pub(super) struct Waver {
    random: Random,
    most: Rate,
    rate: Rate,
    until: Time,
}

impl Waver {
    pub(super) fn new(seed: u64, most: Rate) -> Self {
        let until = Time::ZERO + Duration::from_millis(3);
        Waver { random: Random::stream(seed, "link"), most, rate: most, until }
    }

    pub(super) fn at(&mut self, now: Time) -> Rate {
        while self.until <= now {
            let step = [1.0, 0.25, 0.5, 1.0, 0.5][(self.until.as_nanos() / 700_000_000 % 5) as usize];
            let share = step * (0.8 + 0.4 * self.random.uniform());
            self.rate = Rate::from_bps((self.most.bps() as f64 * share) as u64);
            self.until += Duration::from_millis(3);
        }
        self.rate
    }
}

/// What is compared, over all packets that leave.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    packets: u64,
    by_core: u64,
    by_program: u64,
    /// Packets with different marks; at which tau differs.
    differ: u64,
    tau_apart: u64,
    /// The sum of the differences of f, and the largest between that of the program and what the core's
    /// target rate makes of the program's cr, where tau is the same.
    f_sum: f64,
    f: f64,
    /// The largest difference of mu, over mu; of m and of e, over what the link carries in tau.
    mu: f64,
    outstanding: f64,
    error: f64,
    /// The largest difference of w, over what the link carries in tau.
    to_wait: f64,
    /// tau of the program at the end of the first half and of the whole.
    loop_delays_ms: [f64; 2],
    dropped: u64,
}

fn core(seed: u64, packets: u32, nominal: Rate) -> Abc<Sample> {
    let limit = Limit::Packets(packets);
    let config = Config::from_options([("variant", "adaptive")]).expect("the option is known");
    Abc::new(&config, &Place { limit, nominal, random: Random::stream(seed, "queue") })
}

impl Tally {
    fn compare(&mut self, core: &Abc<Sample>, programs: &Programs, by_core: bool, by_program: bool) {
        self.packets += 1;
        self.by_core += u64::from(by_core);
        self.by_program += u64::from(by_program);
        self.differ += u64::from(by_core != by_program);
        self.f_sum += (inspect(core, "f") - programs.f()).abs();
        if inspect(core, "loop_delay_ms") != programs.loop_delay_ms() {
            self.tau_apart += 1;
            return;
        }
        // abc20 eq.2, with a least share
        let f = inspect(core, "target_rate_bps") / (2.0 * programs.measured_bps());
        self.f = self.f.max((f.clamp(1.0 / 16.0, 1.0) - programs.f()).abs());
        let [mu, outstanding, to_wait] = programs.shown();
        let by_core = inspect(core, "capacity_bps") / 8.0;
        let served = by_core * programs.loop_delay_ms() / 1e3;
        self.mu = self.mu.max((mu / by_core - 1.0).abs());
        let off = |value: f64, name| (value - inspect(core, name)).abs() / served;
        self.outstanding = self.outstanding.max(off(outstanding, "outstanding_bytes"));
        self.to_wait = self.to_wait.max(off(to_wait, "to_wait_bytes"));
        self.error = self.error.max(off(programs.error_bytes(), "forecast_error_bytes"));
    }
}

/// Senders answer the core's marks: each accelerate brings two packets a loop delay later, each brake none.
/// Others come at random, and every three seconds nothing does for 700 ms. In the second half the loop's
/// delay is another. The program takes the core's marks for its orders: where f is rounded another packet
/// gets the bucket's next token, and what that brings is not what is compared.
fn compare(seed: u64, mbps: u64, loop_delays_ms: [u64; 2], limit: u32, packets: u64) -> Tally {
    const SILENCE: Duration = Duration::from_millis(700);
    let mut random = Random::stream(seed, "adaptive");
    let most = Rate::from_mbps(mbps);
    let mut core = core(seed, limit, most);
    let mut link = Waver::new(seed, most);
    let mut programs = Programs::new(limit);
    let mut coming: VecDeque<Time> = VecDeque::new();
    let mut waiting: VecDeque<(Time, Sample)> = VecDeque::new();
    let mut behind_bytes = 0;
    // Not zero, which means never to the C code; the kernel's clock is far from it.
    let (mut free, mut more) = (Time::ZERO, Time::ZERO + Duration::from_millis(5));
    let (mut silent_at, mut id) = (Time::ZERO + Duration::from_secs(3), 0);
    let (mut drops, mut tally) = (Vec::new(), Tally::default());
    while tally.packets < packets {
        let second_half = usize::from(2 * tally.packets >= packets);
        let arrival = coming.front().map_or(more, |at| (*at).min(more));
        if let Some((arrived, packet)) = waiting.front().copied()
            && free.max(arrived) <= arrival
        {
            waiting.pop_front();
            behind_bytes -= u64::from(packet.size);
            let now = free.max(arrived);
            let rate = link.at(now);
            free = now + rate.time_for(Bytes(u64::from(packet.size)));
            let left = core.dequeue(now, &mut Fixed(rate), &mut drops).expect("it holds what waits here");
            assert_eq!(left.packet.id, packet.id);
            let behind = programs.waiting(arrived, packet.size);
            assert!(behind >= behind_bytes && (behind == behind_bytes || tally.dropped > 0));
            let by_core = left.mark == Mark::Accelerate;
            let by_program = programs.leave(now, rate, behind_bytes, packet, u32::from(by_core));
            tally.compare(&core, &programs, by_core, by_program);
            tally.loop_delays_ms[second_half] = programs.loop_delay_ms();
            if by_core {
                let back = now + Duration::from_millis(loop_delays_ms[second_half]);
                // A loop that becomes shorter does not reorder what is under way.
                let back = coming.back().map_or(back, |last| back.max(*last));
                coming.extend([back, back]);
            }
            continue;
        }
        let now = arrival;
        if now >= silent_at {
            silent_at = now + Duration::from_secs(3);
            more = now + SILENCE;
            coming.iter_mut().for_each(|at| *at = (*at).max(more));
            continue;
        }
        let mut ecn = Ecn::Ect1;
        if more <= now {
            more =
                now + Duration::from_secs_f64(random.exponential() * 12.0 * 8.0 * 1500.0 / most.bps() as f64);
            ecn = [Ecn::Ect1, Ecn::Ect1, Ecn::Ect0, Ecn::NotEct][(random.uniform() * 4.0) as usize];
        } else {
            coming.pop_front();
        }
        let size =
            if random.chance(0.9) { 1500 } else { 100 + (random.exponential() * 300.0).min(1000.0) as u32 };
        let rate = link.at(now);
        let before = core.backlog().packets;
        id += 1;
        let packet = Sample::abc(id, size, ecn);
        core.enqueue(now, packet, &mut Fixed(rate), &mut drops);
        if core.backlog().packets > before {
            waiting.push_back((now, packet));
            behind_bytes += u64::from(size);
            programs.arrive(now, rate, packet);
        } else {
            // The queue's owner drops what the program has seen.
            programs.sum(now, size);
            tally.dropped += 1;
        }
    }
    tally
}

#[test]
fn every_estimate_is_the_cores_at_any_rate_and_loop_delay() {
    for (seed, mbps, loop_delays, packets) in [
        (1, 1, [80, 200], 40_000),
        (2, 12, [40, 100], 150_000),
        (3, 24, [20, 10], 200_000),
        (4, 96, [150, 60], 300_000),
        (5, 1000, [30, 8], 600_000),
        (6, 10_000, [12, 24], 1_000_000),
    ] {
        for share in [4, 100] {
            // A fortieth of a second of the rate and a whole one, ten packets at least.
            let limit = u32::try_from(mbps * share / 10 * 2).unwrap().max(10);
            let tally = compare(seed, mbps, loop_delays, limit, packets);
            let numbers = format!("{mbps} Mbit/s, {loop_delays:?} ms, {limit} packets: {tally:?}");
            assert!(tally.by_core * 5 > packets, "{numbers}");
            assert!(tally.by_core.abs_diff(tally.by_program) * 1000 <= tally.by_core, "{numbers}");
            assert!(tally.tau_apart * 1000 <= packets, "{numbers}");
            assert!((tally.loop_delays_ms[0] - loop_delays[0] as f64).abs() <= 2.0, "{numbers}");
            // At 10 Gbit/s the second half is over before lags of it are known.
            let second = (tally.loop_delays_ms[1] - loop_delays[1] as f64).abs() <= 2.0;
            assert!(second || mbps == 10_000, "{numbers}");
            // Rates have nine bits behind the point: at 1/4 Mbit/s 62 bytes of a bin are 32,000 of them.
            assert!(tally.mu < 2e-4, "{numbers}");
            // What is shown of m and e is rounded to bytes.
            assert!(tally.outstanding < 1e-3 && tally.error < 1e-3 && tally.to_wait < 1e-3, "{numbers}");
            // cr may have a small packet in the step of the one before, and forgets both with it: so f by
            // itself is compared in the mean, and with the same cr at every packet.
            assert!(tally.f < 0.002 && tally.f_sum < 1e-4 * packets as f64, "{numbers}");
        }
    }
}

/// Whose marks a closed loop obeys.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Who {
    Core,
    Program,
    /// The paper's rule in the program.
    Paper,
}

/// What a closed loop did: the share of the link that was used, the 95th percentile of the time in the queue,
/// and tau at the end, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    used: f64,
    p95_ms: f64,
    loop_delay_ms: f64,
}

/// Senders of 40 ms of propagation that obey one router's marks, on 12 and 24 Mbit/s by turns of 2 s.
fn obey(who: Who) -> Outcome {
    const BUFFER: u32 = 10_000;
    const END: Duration = Duration::from_secs(60);
    const RTT: Duration = Duration::from_millis(40);
    let rate_at = |now: Time| Rate::from_mbps([12, 24][(now.as_nanos() / 2_000_000_000 % 2) as usize]);
    let mut core = core(1, BUFFER, rate_at(Time::ZERO));
    let mut programs = Programs::new(BUFFER);
    let mut coming: VecDeque<Time> = VecDeque::new();
    let mut waiting: VecDeque<(Time, Sample)> = VecDeque::new();
    let (mut free, mut more) = (Time::ZERO, Time::ZERO + Duration::from_millis(5));
    let (mut carried, mut could, mut id) = (0_u64, 0.0, 0);
    let (mut drops, mut times_ms) = (Vec::new(), Vec::new());
    loop {
        let arrival = coming.front().map_or(more, |at| (*at).min(more));
        if let Some((arrived, packet)) = waiting.front().copied()
            && free.max(arrived) <= arrival
        {
            waiting.pop_front();
            let now = free.max(arrived);
            let rate = rate_at(now);
            free = now + rate.time_for(Bytes(u64::from(packet.size)));
            let accelerates = match who {
                Who::Core => {
                    let left = core.dequeue(now, &mut Fixed(rate), &mut drops).expect("it waits");
                    left.mark == Mark::Accelerate
                }
                Who::Program => {
                    let behind = programs.waiting(arrived, packet.size);
                    programs.leave(now, rate, behind, packet, 2)
                }
                Who::Paper => programs.leave_by_paper(now, rate, now.since(arrived), packet),
            };
            if accelerates {
                coming.extend([now + RTT, now + RTT]);
            }
            carried += u64::from(packet.size);
            times_ms.push(now.since(arrived).as_secs_f64() * 1e3);
            continue;
        }
        if arrival >= Time::ZERO + END {
            break;
        }
        if more <= arrival {
            // abc20 eq.3: a packet more per round trip.
            more = arrival + RTT;
        } else {
            coming.pop_front();
        }
        let rate = rate_at(arrival);
        id += 1;
        let packet = Sample::abc(id, 1500, Ecn::Ect1);
        waiting.push_back((arrival, packet));
        match who {
            Who::Core => core.enqueue(arrival, packet, &mut Fixed(rate), &mut drops),
            Who::Program => programs.arrive(arrival, rate, packet),
            Who::Paper => {}
        }
    }
    for second in (0..60).step_by(2) {
        could += 2.0 * rate_at(Time::ZERO + Duration::from_secs(second)).bps() as f64 / 8.0;
    }
    times_ms.sort_by(f64::total_cmp);
    let loop_delay_ms =
        if who == Who::Core { inspect(&core, "loop_delay_ms") } else { programs.loop_delay_ms() };
    Outcome { used: carried as f64 / could, p95_ms: times_ms[times_ms.len() * 95 / 100], loop_delay_ms }
}

#[test]
fn its_own_loop_is_as_short_as_the_cores_and_shorter_than_the_papers() {
    let [core, program, paper] = [Who::Core, Who::Program, Who::Paper].map(obey);
    let numbers = format!("core {core:?}, program {program:?}, paper {paper:?}");
    assert!((core.used - program.used).abs() < 0.002, "{numbers}");
    assert!((core.p95_ms - program.p95_ms).abs() <= 1.0, "{numbers}");
    assert_eq!((core.loop_delay_ms, program.loop_delay_ms), (40.0, 40.0), "{numbers}");
    assert!(program.used > 0.98 && 4.0 * program.p95_ms < paper.p95_ms, "{numbers}");
}
