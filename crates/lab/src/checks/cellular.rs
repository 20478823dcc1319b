//! The base station and its estimators of a user's potential rate (abc17 section 6), fed with packets.

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::packet::{Duplicate, FlowId, Header, Packet, PacketId};
use brakelight_core::parameters::Parameters;
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Limit;
use brakelight_links::cellular::{Cellular, Config};
use brakelight_registry::QueueConfig;
use brakelight_scenario::experiment::Finding;

use super::finding;

const SECONDS: u64 = 60;
const SIZE: u32 = 1500;

/// What a user's packets are told apart by.
#[derive(Clone, Copy, Debug)]
struct Full {
    id: u64,
    user: u32,
}

impl Packet for Full {
    fn id(&self) -> PacketId {
        PacketId(self.id)
    }
    fn flow(&self) -> FlowId {
        FlowId(self.user)
    }
    fn size(&self) -> u32 {
        SIZE
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn set_ecn(&mut self, _ecn: Ecn) {}
    fn encoding(&self) -> Encoding {
        Encoding::None
    }
    fn header(&self) -> Header {
        Header::None
    }
    fn set_header(&mut self, _header: Header) {}
}

impl Duplicate for Full {
    fn duplicate(&self, id: PacketId) -> Self {
        Full { id: id.0, ..*self }
    }
}

/// A base station whose users are each fed at a rate, evenly but for half a gap either way; backlogged above
/// what it carries.
struct Station {
    cellular: Cellular<Full>,
    arrivals: Vec<Arrivals>,
    id: u64,
    /// Packets carried, by user.
    carried: Vec<u64>,
}

struct Arrivals {
    random: Random,
    gap_s: f64,
    next_s: f64,
}

impl Station {
    fn new(options: &[(&str, &str)], mbps: &[f64]) -> Self {
        let users = mbps.len().to_string();
        let all = [options, &[("users", &users)]].concat();
        let config = Config::from_options(all.iter().copied()).expect("valid options");
        let queue = QueueConfig::new("droptail", &[]).expect("droptail is registered");
        let site = Site { random: Random::stream(1, "cellular"), ids: PacketId(1 << 63) };
        let arrivals = mbps
            .iter()
            .enumerate()
            .map(|(user, mbps)| Arrivals {
                random: Random::stream(user as u64, "arrivals"),
                gap_s: 8.0 * f64::from(SIZE) / (mbps * 1e6),
                next_s: 0.0,
            })
            .collect();
        Station {
            cellular: Cellular::new(&config, &queue, Limit::Packets(500), site),
            arrivals,
            id: 0,
            carried: vec![0; mbps.len()],
        }
    }

    /// Goes on to `until`. Says whether a packet of the first user left.
    fn run(&mut self, until: Time) -> bool {
        let before = self.carried[0];
        loop {
            let next = self.arrivals.iter().enumerate().min_by(|a, b| a.1.next_s.total_cmp(&b.1.next_s));
            let (user, arrivals) = next.expect("there are users");
            let arrival = Time::ZERO + Duration::from_secs_f64(arrivals.next_s);
            let wake = self.cellular.next_wakeup().unwrap_or(Time::MAX);
            let now = arrival.min(wake);
            if now > until {
                return self.carried[0] > before;
            }
            if arrival < wake {
                self.cellular.accept(arrival, Full { id: self.id, user: user as u32 });
                self.id += 1;
                let arrivals = &mut self.arrivals[user];
                arrivals.next_s += arrivals.gap_s * (0.5 + arrivals.random.uniform());
            }
            while let Some(output) = self.cellular.poll(now) {
                if let Output::Departed(departed) = output {
                    self.carried[departed.packet.user as usize] += 1;
                }
            }
        }
    }

    fn carried_mbps(&self, user: usize) -> f64 {
        (self.carried[user] * 8 * u64::from(SIZE)) as f64 * 1e-6 / SECONDS as f64
    }

    fn estimate_mbps(&self) -> f64 {
        self.cellular.estimator(0).rate().as_mbps_f64()
    }
}

/// More than a user can be given.
const ALWAYS_MBPS: f64 = 60.0;

const LOADS: [f64; 4] = [0.1, 0.3, 0.5, 0.8];

/// An estimate against what the station gives the user at the same moments when it is backlogged.
struct Compared {
    /// Mean estimate over mean truth.
    ratio: f64,
    /// Mean absolute error over mean truth.
    error: f64,
}

/// Estimates when packets of the first of three users leave, which is when its queue asks; `load` is a share
/// of what it is given when backlogged, and the other users send at `others_mbps` each.
fn compare(estimate: &str, bler: &str, load: f64, others_mbps: f64) -> Compared {
    let options = [("spread", "6"), ("bler", bler), ("estimate", estimate)];
    let naive = [("spread", "6"), ("bler", bler), ("estimate", "naive")];
    let end = Time::from_secs(SECONDS);
    let mut backlogged = Station::new(&naive, &[ALWAYS_MBPS, others_mbps, others_mbps]);
    backlogged.run(end);
    let mbps = load * backlogged.carried_mbps(0);
    let mut station = Station::new(&options, &[mbps, others_mbps, others_mbps]);
    let mut truth = Station::new(&naive, &[ALWAYS_MBPS, others_mbps, others_mbps]);
    let (mut sum, mut expected, mut off) = (0.0, 0.0, 0.0);
    for ms in 1..1000 * SECONDS {
        let now = Time::from_millis(ms);
        truth.run(now);
        if station.run(now) && ms >= 1000 {
            let (is, should_be) = (station.estimate_mbps(), truth.estimate_mbps());
            sum += is;
            expected += should_be;
            off += (is - should_be).abs();
        }
    }
    Compared { ratio: sum / expected, error: off / expected }
}

/// The four loads beside two users that are backlogged, and two that are not.
fn all(estimate: &str, bler: &str) -> ([Compared; 8], String) {
    let cases = [ALWAYS_MBPS, 2.0];
    let compared: [Compared; 8] =
        std::array::from_fn(|index| compare(estimate, bler, LOADS[index % 4], cases[index / 4]));
    let show = |part: &[Compared]| {
        let each: Vec<String> =
            part.iter().map(|c| format!("{:.2} (+-{:.0} %)", c.ratio, 100.0 * c.error)).collect();
        each.join(", ")
    };
    let measured = format!(
        "of the truth at 10, 30, 50, 80 % load: {} beside backlogged users; {} beside 2 Mbit/s each",
        show(&compared[..4]),
        show(&compared[4..])
    );
    (compared, measured)
}

/// abc17 section 6: the estimate with the conditions of the moment is near the truth on average at any load.
pub(super) fn hypothetical() -> Finding {
    let (compared, measured) = all("hypothetical", "0.1");
    finding(compared.iter().all(|compared| (compared.ratio - 1.0).abs() < 0.05), measured)
}

/// The station simulated with the others' data carried over is the truth at every moment, where no blocks are
/// lost.
pub(super) fn truth() -> Finding {
    let (compared, measured) = all("truth", "0");
    let near = |compared: &Compared| (compared.ratio - 1.0).abs() < 0.01 && compared.error < 0.02;
    finding(compared.iter().all(near), measured)
}

/// abc17 6: what the scheduler gave a user that is not backlogged is less than what it would.
pub(super) fn naive() -> Finding {
    let (compared, measured) = all("naive", "0.1");
    let short = [0, 1, 2, 4, 5, 6].iter().all(|&index| compared[index].ratio < 0.8);
    finding(short, measured)
}

/// Proportional fairness: equal shares for users of one mean, and more for each than in turn.
pub(super) fn fairness() -> Finding {
    let carried = |scheduler| {
        let mut station = Station::new(&[("scheduler", scheduler), ("shadow", "0")], &[ALWAYS_MBPS; 4]);
        station.run(Time::from_secs(SECONDS));
        [0, 1, 2, 3].map(|user| station.carried_mbps(user))
    };
    let (fair, turns) = (carried("pf"), carried("rr"));
    let mean = |of: [f64; 4]| of.iter().sum::<f64>() / 4.0;
    let spread = fair.iter().map(|mbps| (mbps / mean(fair) - 1.0).abs()).fold(0.0, f64::max);
    let gain = mean(fair) / mean(turns);
    let measured = format!(
        "four users within {:.1} % of their mean of {:.2} Mbit/s; {gain:.2} times what turns give",
        100.0 * spread,
        mean(fair)
    );
    finding(spread < 0.05 && gain > 1.2, measured)
}
