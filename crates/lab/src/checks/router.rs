//! ABC's router, fed with packets.

use brakelight_core::ecn::{Ecn, Encoding, Mark};
use brakelight_core::packet::{Duplicate, FlowId, Packet, PacketId};
use brakelight_core::queue::{Drops, LinkView, Place, Queue};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_registry::{AnyQueue, Options, QueueConfig};
use brakelight_scenario::experiment::Finding;

use super::finding;

const SIZE: u32 = 1500;
/// One packet per millisecond.
const FULL: Rate = Rate::from_mbps(12);

#[derive(Clone, Copy, Debug)]
pub(super) struct Marked {
    pub(super) id: u64,
    pub(super) flow: u32,
    pub(super) ecn: Ecn,
    pub(super) encoding: Encoding,
}

impl Marked {
    /// A packet of a flow that means nothing by its ECN field.
    pub(super) fn plain(id: u64, ecn: Ecn) -> Self {
        Marked { id, flow: 0, ecn, encoding: Encoding::None }
    }
}

impl Packet for Marked {
    fn id(&self) -> PacketId {
        PacketId(self.id)
    }
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    fn size(&self) -> u32 {
        SIZE
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
    fn encoding(&self) -> Encoding {
        self.encoding
    }
}

impl Duplicate for Marked {
    fn duplicate(&self, id: PacketId) -> Self {
        Marked { id: id.0, ..*self }
    }
}

/// A link of a fixed rate.
struct FixedRate(Rate);

impl LinkView for FixedRate {
    fn capacity(&mut self, _window: Duration) -> Rate {
        self.0
    }
    fn unused(&mut self) -> Bytes {
        Bytes::ZERO
    }
    fn opportunity(&self) -> Bytes {
        Bytes(u64::from(SIZE))
    }
    fn lookahead(&mut self, _ahead: Duration, _window: Duration) -> Option<Rate> {
        None
    }
}

pub(super) struct Router {
    queue: AnyQueue<Marked>,
    link: FixedRate,
    drops: Drops<Marked>,
}

impl Router {
    fn new(options: Options<'_>) -> Self {
        Router::of("abc", options, FULL)
    }

    /// ABC's router as it is.
    pub(super) fn plain() -> Self {
        Router::new(&[])
    }

    pub(super) fn set_mbps(&mut self, mbps: f64) {
        self.link.0 = Rate::from_bps_f64(mbps * 1e6);
    }

    /// The router with a second queue, at a link of this rate.
    pub(super) fn dual(mbps: u64) -> Self {
        Router::of("abc_dual", &[], Rate::from_mbps(mbps))
    }

    /// Any queue, at a link of this rate.
    pub(super) fn of(queue: &str, options: Options<'_>, rate: Rate) -> Self {
        let place =
            Place { limit: Limit::Packets(10_000), nominal: FULL, random: Random::stream(1, "router") };
        let config = QueueConfig::new(queue, options).expect("a registered queue takes these options");
        Router { queue: config.build(&place), link: FixedRate(rate), drops: Drops::new() }
    }

    pub(super) fn arrive(&mut self, now: Time, packet: Marked) {
        self.queue.enqueue(now, packet, &mut self.link, &mut self.drops);
    }

    pub(super) fn leave(&mut self, now: Time) -> Option<Marked> {
        Some(self.queue.dequeue(now, &mut self.link, &mut self.drops)?.packet)
    }

    pub(super) fn shown(&self, name: &str) -> f64 {
        let mut shown = f64::NAN;
        self.queue.inspect(&mut |other, value| {
            if other == name {
                shown = value;
            }
        });
        shown
    }
}

fn accelerate(id: u64) -> Marked {
    Marked { id, flow: 0, ecn: Ecn::Ect1, encoding: Encoding::Abc }
}

fn is(mark: Mark, packet: &Marked) -> bool {
    packet.encoding.mark(packet.ecn) == mark
}

/// ABC-U2: at no time have more packets left as accelerates than the sum of f allows.
pub(super) fn token_bucket() -> Finding {
    let mut random = Random::stream(1, "capacity");
    let mut router = Router::new(&[]);
    let (mut allowed, mut accelerates, mut slack) = (0.0, 0_u64, f64::INFINITY);
    for id in 0..100_000_u64 {
        let now = Time::from_millis(id);
        // The capacity wanders, so that f visits all of 0 to 1.
        if id % 50 == 0 {
            router.link.0 = FULL.mul_f64(2.5 * random.uniform());
        }
        // Sometimes two arrive, so that there is a queue to drain.
        router.arrive(now, accelerate(2 * id));
        if random.chance(0.02) && router.queue.backlog().packets < 200 {
            router.arrive(now, accelerate(2 * id + 1));
        }
        let Some(packet) = router.leave(now) else { continue };
        allowed += router.shown("f");
        accelerates += u64::from(is(Mark::Accelerate, &packet));
        slack = f64::min(slack, allowed - accelerates as f64);
    }
    let share = accelerates as f64 / allowed;
    let measured = format!(
        "{accelerates} accelerates where {allowed:.0} are allowed ({:.1} %), never more at any time",
        100.0 * share
    );
    // The bucket must also be of use: most of what f allows gets through.
    finding(slack >= -1e-6 && share > 0.8, measured)
}

/// The share of accelerates behind routers with these eta, at f = eta / 2 each.
fn share_behind(etas: &[&str]) -> f64 {
    const PACKETS: u64 = 20_000;
    let mut routers: Vec<Router> = etas.iter().map(|eta| Router::new(&[("eta", eta)])).collect();
    let mut accelerates = 0;
    for id in 0..PACKETS {
        let mut packet = accelerate(id);
        for router in &mut routers {
            // Each router forwards at its link's rate, so mu = cr.
            let now = Time::from_millis(id);
            router.arrive(now, packet);
            packet = router.leave(now).expect("what arrived leaves");
        }
        accelerates += u64::from(is(Mark::Accelerate, &packet));
    }
    accelerates as f64 / PACKETS as f64
}

/// ABC-U3: the share behind two routers is the lesser one's, in either order.
pub(super) fn routers_in_series() -> Finding {
    let pairs = [["0.9", "0.5"], ["0.5", "0.9"], ["0.98", "0.96"], ["0.2", "0.7"]];
    let mut worst = 0.0_f64;
    for pair in pairs {
        let least = pair.iter().map(|eta| share_behind(&[eta])).fold(f64::INFINITY, f64::min);
        worst = worst.max((share_behind(&pair) - least).abs());
    }
    let all = share_behind(&["0.9", "0.4", "0.6"]);
    worst = worst.max((all - share_behind(&["0.4"])).abs());
    finding(
        worst <= 0.01,
        format!("within {worst:.4} of the least share, over five paths of two or three routers"),
    )
}

/// ABC-U4: marks only go from accelerate to brake, and CE stays.
pub(super) fn marks_only_fall() -> Finding {
    let mut random = Random::stream(1, "marks");
    let (mut wrong, mut braked, mut total) = (0_u64, 0_u64, 0_u64);
    for (variant, encoding) in [
        ("paper", Encoding::Abc),
        ("paper", Encoding::AbcProxied),
        ("prototype", Encoding::Abc),
        ("prototype", Encoding::AbcProxied),
    ] {
        let mut router = Router::new(&[("variant", variant)]);
        for id in 0..20_000_u64 {
            if id % 40 == 0 {
                router.link.0 = FULL.mul_f64(2.0 * random.uniform());
            }
            let ecn = Ecn::from_bits(random.bits() as u8);
            let now = Time::from_millis(id);
            router.arrive(now, Marked { id, flow: 0, ecn, encoding });
            let Some(packet) = router.leave(now) else { continue };
            total += 1;
            let (was, is) = (encoding.mark(ecn), encoding.mark(packet.ecn));
            let fell = was == Mark::Accelerate && is == Mark::Brake;
            braked += u64::from(fell);
            wrong += u64::from(!fell && packet.ecn != ecn);
        }
    }
    finding(
        wrong == 0 && braked > 1_000,
        format!("of {total} packets {braked} were braked, {wrong} rewritten otherwise"),
    )
}

/// ABC-U7: arrivals at the target rate of Equation 1 drain the queue to d_t within delta.
pub(super) fn drain() -> Finding {
    let (delta_s, target_s) = (0.133, 0.050);
    let mut slowest = 0.0_f64;
    for waiting in [60_u64, 100, 150, 180] {
        let mut router = Router::new(&[("delta", "133ms"), ("target", "50ms")]);
        for id in 0..=waiting {
            router.arrive(Time::from_secs(1), accelerate(id));
        }
        router.leave(Time::from_secs(1));
        let mu_bps = router.shown("capacity_bps");
        let tr_bps = router.shown("target_rate_bps");
        let x_s = (waiting * u64::from(SIZE) * 8) as f64 / mu_bps;
        // x' = (tr - mu) / mu while the target rate of this moment holds.
        let drained_s = (x_s - target_s) / (1.0 - tr_bps / mu_bps);
        slowest = slowest.max(drained_s);
    }
    let measured = format!("{:.1} ms at the slowest, delta being 133 ms", 1e3 * slowest);
    finding(slowest > 0.0 && slowest <= delta_s, measured)
}
