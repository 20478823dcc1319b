//! The marks of `bpf/router.h` against those of `brakelight_routers::abc` with x = sojourn.

use brakelight_core::ecn::{Ecn, Mark};
use brakelight_core::parameters::Parameters;
use brakelight_core::queue::{Place, Queue};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_routers::abc::{Abc, Config};
use brakelight_testkit::{Fixed, Sample};

use super::super::objects::router::types::router_settings;
use super::path::SIZE;

unsafe extern "C" {
    fn bl_router_size() -> usize;
    fn bl_router_depart(
        router: *mut u64,
        settings: *const router_settings,
        now_ns: u64,
        x_us: u64,
        bytes: u32,
        accelerates: u32,
    ) -> u32;
    fn bl_router_f(router: *const u64) -> u64;
}

const ONE: f64 = (1_u32 << 20) as f64;

/// Accelerates of the core, of the C code, packets on which they differ, the largest difference of f.
fn run(seed: u64, rate: Rate, load: f64, packets: u64) -> (u64, u64, u64, f64) {
    let mut random = Random::stream(seed, "router");
    let config = Config::from_options([("x", "sojourn")]).expect("the option is known");
    let place = Place { limit: Limit::Packets(250), nominal: rate, random: Random::stream(seed, "queue") };
    let mut core: Abc<Sample> = Abc::new(&config, &place);
    let mut link = Fixed(rate);
    let settings = router_settings {
        mu: rate.bps() / 8,
        eta: (0.98 * ONE) as u64,
        token_limit: (5.0 * ONE) as u64,
        delta_us: 133_000,
        target_us: 50_000,
        window_ns: 20_000_000,
        buffer: 0,
    };
    // SAFETY: it only returns a size.
    let mut fixed = vec![0_u64; unsafe { bl_router_size() }.div_ceil(8)];
    let service = rate.time_for(Bytes(u64::from(SIZE)));
    let (mut arrival, mut free) = (Time::ZERO, Time::ZERO);
    let (mut by_core, mut by_fixed, mut differ, mut apart) = (0, 0, 0, 0.0_f64);
    let mut waiting: std::collections::VecDeque<(Time, Ecn)> = std::collections::VecDeque::new();
    let mut drops = Vec::new();
    for id in 0..packets {
        // Loads that swing, so that queues come and go.
        let swing = 1.0 + 0.5 * f64::from(u8::from(id / 5000 % 2 == 0)) - 0.25;
        arrival += Duration::from_secs_f64(random.exponential() * service.as_secs_f64() / (load * swing));
        while !waiting.is_empty() && free.max(waiting[0].0) <= arrival {
            let (arrived, ecn) = waiting.pop_front().expect("it is not empty");
            let now = free.max(arrived) + service;
            free = now;
            let left = core.dequeue(now, &mut link, &mut drops).expect("it holds what waits here");
            let accelerates = ecn == Ecn::Ect1;
            let x_us = now.since(arrived).as_nanos() / 1000;
            // SAFETY: the state is as large as the C code says, zero is its start, and nothing else refers to
            // it.
            let stays = unsafe {
                bl_router_depart(
                    fixed.as_mut_ptr(),
                    &settings,
                    now.as_nanos(),
                    x_us,
                    SIZE,
                    u32::from(accelerates),
                )
            };
            by_core += u64::from(left.mark == Mark::Accelerate);
            by_fixed += u64::from(stays);
            differ += u64::from((left.mark == Mark::Accelerate) != (stays != 0));
            let mut f = 0.0;
            core.inspect(&mut |name, value| {
                if name == "f" {
                    f = value;
                }
            });
            // SAFETY: as above; it only reads.
            apart = apart.max((f - unsafe { bl_router_f(fixed.as_ptr()) } as f64 / ONE).abs());
        }
        let ecn = if random.chance(0.1) { Ecn::Ect0 } else { Ecn::Ect1 };
        let before = core.backlog().packets;
        core.enqueue(arrival, Sample::abc(id, SIZE, ecn), &mut link, &mut drops);
        if core.backlog().packets > before {
            waiting.push_back((arrival, ecn));
        }
    }
    (by_core, by_fixed, differ, apart)
}

#[test]
fn marks_are_the_cores_within_a_thousandth_at_any_rate_and_load() {
    for (seed, mbps) in [(1, 1), (2, 12), (3, 24), (4, 96), (5, 1000), (6, 10_000)] {
        let (mut by_core, mut by_fixed, mut differ, mut apart) = (0, 0, 0, 0.0_f64);
        // Above 1 the buffer is full and nearly everything is braked.
        for load in [0.5, 0.95, 1.3] {
            let (core, fixed, differing, f) = run(seed, Rate::from_mbps(mbps), load, 200_000);
            by_core += core;
            by_fixed += fixed;
            differ += differing;
            apart = apart.max(f);
        }
        assert!(by_core > 100_000, "{by_core} accelerates at {mbps} Mbit/s");
        let numbers = format!(
            "{by_core} accelerates by the core, {by_fixed} here, {differ} packets differ, f by {apart}"
        );
        assert!(by_core.abs_diff(by_fixed) * 1000 <= by_core, "{numbers}, at {mbps} Mbit/s");
        // Where packets follow each other faster than the window's 2048 steps, cr may lack what leaves in
        // one; f is below 1 from cr = eta mu / 2 on.
        let most = if mbps > 1000 { 2.0 / 0.98 / 2048.0 } else { 1e-4 };
        assert!(apart < most, "{numbers}, at {mbps} Mbit/s");
    }
}
