//! The law of `bpf/l4s.h` against `abc_l4s` of `brakelight_routers`, as the programs and as the module call
//! it, on a link whose rate steps and wavers, under loads that come and go.

use std::collections::VecDeque;

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::queue::{Place, Queue};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_routers::abc_l4s::{AbcL4s, Config};
use brakelight_testkit::{Fixed, Sample};

use super::super::objects::router::types::router_settings;
use super::adaptive::{Waver, settings, state};
use super::inspect;
use crate::qdisc::differential::Departure;

unsafe extern "C" {
    fn bl_l4s_size() -> usize;
    fn bl_l4s_arrive(l4s: *mut u64, now_ns: u64, mu: u64);
    fn bl_l4s_depart(l4s: *mut u64, now_ns: u64, mu: u64, arrived_ns: u64, waiting: u64) -> u32;
    fn bl_l4s_show(l4s: *const u64, shown: *mut u64);
    fn bl_router_size() -> usize;
    fn bl_module_l4s_size() -> usize;
    fn bl_module_enter_l4s(l4s: *mut u64, mu: u64, now_ns: u64);
    fn bl_module_leave_l4s(
        router: *mut u64,
        l4s: *mut u64,
        settings: *const router_settings,
        departure: *const Departure,
    ) -> u32;
}

/// The module's state.
struct Module {
    router: Vec<u64>,
    l4s: Vec<u64>,
}

impl Module {
    fn new() -> Self {
        // SAFETY: these only return sizes.
        let [router, l4s] = unsafe { [bl_router_size(), bl_module_l4s_size()] }.map(state);
        Module { router, l4s }
    }

    fn arrive(&mut self, now: Time, rate: Rate) {
        // SAFETY: the state is as large as the C code says, zero is its start, and nothing else refers to it.
        unsafe { bl_module_enter_l4s(self.l4s.as_mut_ptr(), rate.bps() / 8, now.as_nanos()) }
    }

    fn leave(&mut self, rate: Rate, departure: &Departure) -> Ecn {
        let settings = settings(rate, 1.0, 0);
        let (router, l4s) = (self.router.as_mut_ptr(), self.l4s.as_mut_ptr());
        // SAFETY: as above.
        Ecn::from_bits(unsafe { bl_module_leave_l4s(router, l4s, &settings, departure) } as u8)
    }
}

/// The C code's state, as the programs call it.
struct Program(Vec<u64>);

impl Program {
    fn new() -> Self {
        // SAFETY: it only returns a size.
        Program(state(unsafe { bl_l4s_size() }))
    }

    fn arrive(&mut self, now: Time, rate: Rate) {
        // SAFETY: the state is as large as the C code says, zero is its start, and nothing else refers to it.
        unsafe { bl_l4s_arrive(self.0.as_mut_ptr(), now.as_nanos(), rate.bps() / 8) }
    }

    fn marks(&mut self, now: Time, rate: Rate, arrived: Time, waiting: u64) -> bool {
        let (now, arrived) = (now.as_nanos(), arrived.as_nanos());
        // SAFETY: as above.
        unsafe { bl_l4s_depart(self.0.as_mut_ptr(), now, rate.bps() / 8, arrived, waiting) != 0 }
    }

    /// mu in bytes per second, e and Q* in bytes.
    fn shown(&self) -> [f64; 3] {
        let mut shown = [0_u64; 3];
        // SAFETY: as above; it only reads, and writes three numbers.
        unsafe { bl_l4s_show(self.0.as_ptr(), shown.as_mut_ptr()) };
        shown.map(|value| value as f64)
    }
}

/// What is compared, over all packets that leave.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    packets: u64,
    by_core: u64,
    differ: u64,
    /// Packets with another mark by the module than by the programs.
    module_differs: u64,
    /// The largest difference of mu over mu, and of e and Q* over what the link carries in 40 ms.
    mu: f64,
    error: f64,
    may_wait: f64,
}

impl Tally {
    fn compare(&mut self, core: &AbcL4s<Sample>, program: &Program, by_core: Ecn, by_program: Ecn) {
        self.packets += 1;
        self.by_core += u64::from(by_core == Ecn::Ce);
        self.differ += u64::from(by_core != by_program);
        let [mu, error, may_wait] = program.shown();
        let rate = inspect(core, "capacity_bps") / 8.0;
        self.mu = self.mu.max((mu / rate - 1.0).abs());
        let off = |value: f64, name| (value - inspect(core, name)).abs() / (0.04 * rate);
        self.error = self.error.max(off(error, "forecast_error_bytes"));
        self.may_wait = self.may_wait.max(off(may_wait, "may_wait_bytes"));
    }
}

/// Packets of ECT(1), one of twenty with CE, come in bursts, at loads of 0.3 to 1.3 of the link by turns of a
/// second, and none for 800 ms every seven seconds.
fn compare(seed: u64, mbps: u64, packets: u64) -> Tally {
    let mut random = Random::stream(seed, "l4s");
    let most = Rate::from_mbps(mbps);
    let limit = Limit::Packets(100_000);
    let place = Place { limit, nominal: most, random: Random::stream(seed, "queue") };
    let mut core: AbcL4s<Sample> = AbcL4s::new(&Config::default(), &place);
    let (mut link, mut program, mut module) = (Waver::new(seed, most), Program::new(), Module::new());
    let mut waiting: VecDeque<(Time, Sample)> = VecDeque::new();
    let mut behind_bytes = 0;
    let (mut free, mut come) = (Time::ZERO, Time::ZERO + Duration::from_millis(5));
    let (mut drops, mut tally) = (Vec::new(), Tally::default());
    let mut id = 0;
    while tally.packets < packets {
        if let Some((arrived, packet)) = waiting.front().copied()
            && free.max(arrived) <= come
        {
            waiting.pop_front();
            behind_bytes -= u64::from(packet.size);
            let now = free.max(arrived);
            let rate = link.at(now);
            free = now + rate.time_for(Bytes(u64::from(packet.size)));
            let left = core.dequeue(now, &mut Fixed(rate), &mut drops).expect("it holds what waits here");
            assert_eq!(left.packet.id, packet.id);
            let marked = program.marks(now, rate, arrived, behind_bytes);
            let by_program = if marked { Ecn::Ce } else { packet.ecn };
            let departure = Departure {
                now_ns: now.as_nanos(),
                sojourn_ns: now.since(arrived).as_nanos(),
                backlog: behind_bytes,
                bytes: packet.size,
                ecn: packet.ecn as u8,
            };
            tally.module_differs += u64::from(module.leave(rate, &departure) != by_program);
            tally.compare(&core, &program, left.packet.ecn, by_program);
            continue;
        }
        let now = come;
        let second = now.as_nanos() / 1_000_000_000;
        let load = [0.3, 1.3, 0.6, 1.0, 0.9][(second % 5) as usize];
        for _ in 0..1 + (8.0 * random.uniform()) as u32 {
            let size = if random.chance(0.9) { 1500 } else { 100 + (1000.0 * random.uniform()) as u32 };
            let rate = link.at(now);
            let ecn = if random.chance(0.05) { Ecn::Ce } else { Ecn::Ect1 };
            id += 1;
            let packet = Sample { ecn, encoding: Encoding::L4s, ..Sample::new(id, size) };
            core.enqueue(now, packet, &mut Fixed(rate), &mut drops);
            program.arrive(now, rate);
            module.arrive(now, rate);
            waiting.push_back((now, packet));
            behind_bytes += u64::from(size);
        }
        // The rate is 0.62 of its most on average.
        let gap_s = 4.5 * 1360.0 * 8.0 / (0.62 * load * most.bps() as f64);
        come = now + Duration::from_secs_f64(gap_s * random.exponential());
        if second % 7 == 6 && come.as_nanos() / 1_000_000_000 == second {
            come += Duration::from_millis(800);
        }
    }
    assert!(drops.is_empty(), "the buffer has room for all");
    tally
}

#[test]
fn every_mark_is_the_cores_at_any_rate() {
    for (seed, mbps, packets) in [(1, 1, 40_000), (2, 12, 100_000), (3, 96, 300_000), (4, 1000, 600_000)] {
        let tally = compare(seed, mbps, packets);
        let numbers = format!("{mbps} Mbit/s: {tally:?}");
        assert!(tally.by_core * 10 > packets && tally.by_core * 20 < 19 * packets, "{numbers}");
        // Where Q* falls between two packets, a byte may decide.
        assert!(tally.differ * 1000 <= packets, "{numbers}");
        assert_eq!(tally.module_differs, 0, "{numbers}");
        assert!(tally.mu < 2e-4 && tally.error < 1e-3 && tally.may_wait < 4e-3, "{numbers}");
    }
}
