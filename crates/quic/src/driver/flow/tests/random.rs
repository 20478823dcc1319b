//! Random paths and applications: whatever happens to the packets, the controller hears what the contract
//! promises.

use std::collections::BTreeMap;

use brakelight_core::random::Random;
use brakelight_scenario::traffic::OnOff;

use super::*;
use crate::adapter::support;

/// A period in which the path is worse.
#[derive(Debug)]
struct Period {
    from: Time,
    until: Time,
}

impl Period {
    fn draw(random: &mut Random, seconds: u64, longest: u64) -> Self {
        let from = Time::from_millis(random.bits() % (seconds * 1000));
        Period { from, until: from + Duration::from_millis(1 + random.bits() % longest) }
    }

    fn contains(&self, at: Time) -> bool {
        self.from <= at && at < self.until
    }
}

/// A link with propagation, and everything that may go wrong on it.
#[derive(Debug)]
struct Weather {
    rate: Rate,
    /// Bytes that wait at the link at most.
    limit: u64,
    delay: Duration,
    /// Shares of the packets that are lost, lost on the way back, held back, and marked.
    lost: f64,
    lost_back: f64,
    held: f64,
    marked: f64,
    /// Nothing is served.
    outages: Vec<Period>,
    /// The router restarts: what waits is lost, and so is what comes meanwhile.
    restarts: Vec<Period>,
    /// Largest packet, in IP bytes, that the path carries.
    mtu: u16,
    /// Packets take longer by this much.
    spikes: Vec<(Period, Duration)>,
}

fn pick<T: Copy>(random: &mut Random, among: &[T]) -> T {
    among[(random.bits() % among.len() as u64) as usize]
}

impl Weather {
    fn draw(random: &mut Random, seconds: u64) -> Self {
        let count = |random: &mut Random| random.bits() % 3;
        let outages = (0..count(random)).map(|_| Period::draw(random, seconds, 3000)).collect();
        let restarts = (0..count(random)).map(|_| Period::draw(random, seconds, 1000)).collect();
        let spikes = (0..count(random))
            .map(|_| (Period::draw(random, seconds, 1000), Duration::from_millis(random.bits() % 2000)))
            .collect();
        Weather {
            rate: pick(random, &[200_000, 1_000_000, 5_000_000, 20_000_000].map(Rate::from_bps)),
            limit: pick(random, &[6_000, 30_000, 150_000, 1_000_000]),
            delay: Duration::from_millis(1 + random.bits() % 100),
            lost: pick(random, &[0.0, 0.0, 0.01, 0.1]),
            lost_back: pick(random, &[0.0, 0.0, 0.1, 0.4]),
            held: pick(random, &[0.0, 0.0, 0.02, 0.2]),
            marked: pick(random, &[0.0, 0.05, 0.5]),
            outages,
            restarts,
            mtu: pick(random, &[1228, 1300, 1400, 1500]),
            spikes,
        }
    }

    /// When a packet that comes to the link at `now` has left it, if it stays that long.
    fn serve(&self, now: Time, busy_until: &mut Time, size: u16) -> Option<Time> {
        let mut start = now.max(*busy_until);
        let waiting = self.rate.bytes_in(start.since(now)).0 + u64::from(size);
        if size > self.mtu || waiting > self.limit.max(u64::from(size)) {
            return None;
        }
        while let Some(outage) = self.outages.iter().find(|outage| outage.contains(start)) {
            start = outage.until;
        }
        *busy_until = start + self.rate.time_for(Bytes(u64::from(size)));
        let left = *busy_until;
        let restarted = |restart: &Period| restart.from <= left && now < restart.until;
        (!self.restarts.iter().any(restarted)).then_some(left)
    }

    fn propagate(&self, at: Time, random: &mut Random) -> Time {
        let spikes = self.spikes.iter().filter(|(period, _)| period.contains(at));
        let held = if random.chance(self.held) {
            Duration::from_millis(random.bits() % 200)
        } else {
            Duration::ZERO
        };
        at + self.delay + held + spikes.map(|(_, more)| *more).max().unwrap_or(Duration::ZERO)
    }

    /// What a router of the flow's own scheme may write.
    fn mark(&self, encoding: Encoding, ecn: Ecn, random: &mut Random) -> Ecn {
        match encoding {
            _ if ecn == Ecn::NotEct || !random.chance(self.marked) => ecn,
            Encoding::Abc | Encoding::AbcProxied | Encoding::Bmcc => {
                pick(random, &[Ecn::Ect0, Ecn::Ect1, Ecn::Ce])
            }
            _ => Ecn::Ce,
        }
    }
}

fn draw_settings(random: &mut Random, seconds: u64) -> FlowSettings {
    let name = pick(random, &support::valid(PacketSender::Driver, crate::adapter::Path::Own));
    let options: &[(&str, &str)] =
        if matches!(name, "cubic" | "newreno") && random.chance(0.5) { &[("ecn", "true")] } else { &[] };
    let rate = Rate::from_bps(100_000 + random.bits() % 20_000_000);
    let mut pause = || Duration::from_millis(10 + random.bits() % 2000);
    let periods = OnOff { on: pause(), off: pause(), rate: Some(rate), random: true };
    let size = Bytes(1 + random.bits() % 3_000_000);
    let traffic = match random.bits() % 5 {
        0 | 1 => Traffic::Backlogged,
        2 => Traffic::Size(size),
        3 => Traffic::RateLimited(rate),
        _ => Traffic::OnOff(periods),
    };
    FlowSettings {
        packet: pick(random, &[1228, 1280, 1500]),
        ack_every: pick(random, &[None, Some(1), Some(2), Some(10)]),
        initial_window: pick(random, &[2, 10, 32]),
        pacing_burst: pick(random, &[1, 10, 32]),
        traffic,
        stop: random.chance(0.2).then(|| Time::from_millis(random.bits() % (seconds * 1000))),
        reports: random.chance(0.7),
        receive_times: random.chance(0.2),
        random: Random::stream(random.bits(), "host"),
        controller_random: Random::stream(random.bits(), "controller"),
        ..settings(name, options)
    }
}

/// One random run; returns what was wrong with it, and how many packets arrived.
fn violations(seed: u64) -> (Vec<String>, u64) {
    const SECONDS: u64 = 8;
    let mut random = Random::stream(seed, "weather");
    let mut settings = draw_settings(&mut random, SECONDS);
    let mut weather = Weather::draw(&mut random, SECONDS);
    let discover_mtu = random.chance(0.4);
    if discover_mtu {
        settings.packet = 1500;
    } else {
        // It is known to carry them.
        weather.mtu = 1500;
    }
    let encoding = encoding(&settings);
    let mut flow = Flow::with_receiver(settings, 0, discover_mtu, |crypto| crypto).unwrap();
    let mut flying: BTreeMap<(Time, u64), Packet> = BTreeMap::new();
    let (mut now, mut busy_until, mut sequence) = (Time::ZERO, Time::ZERO, 0);
    loop {
        while let Some(packet) = flow.poll_transmit(now) {
            let forward = packet.direction == Direction::Forward;
            let lost = random.chance(if forward { weather.lost } else { weather.lost_back });
            let left = if forward { weather.serve(now, &mut busy_until, packet.size) } else { Some(now) };
            let Some(left) = left.filter(|_| !lost) else {
                flow.release(&packet);
                continue;
            };
            sequence += 1;
            let ecn = if forward { weather.mark(encoding, packet.ecn, &mut random) } else { packet.ecn };
            flying.insert((weather.propagate(left, &mut random), sequence), Packet { ecn, ..packet });
        }
        let arrival = flying.first_key_value().map(|((at, _), _)| *at);
        now = match arrival.into_iter().chain(flow.next_wakeup()).min() {
            Some(at) if at <= Time::from_secs(SECONDS) => now.max(at),
            _ => break,
        };
        while let Some(first) = flying.first_entry()
            && first.key().0 <= now
        {
            flow.accept(now, &first.remove(), false);
        }
    }
    let found = flow.adapter().violations();
    (
        found
            .into_iter()
            .map(|line| format!("seed {seed}, {}: {line}", flow.adapter().controller()))
            .collect(),
        sequence,
    )
}

#[test]
fn the_contract_holds_through_quinn_on_random_paths() {
    let runs = std::env::var("BRAKELIGHT_RANDOM_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(24);
    let (mut found, mut packets) = (Vec::new(), 0);
    for seed in 0..runs {
        let (wrong, carried) = violations(seed);
        found.extend(wrong);
        packets += carried;
    }
    assert_eq!(found, Vec::<String>::new());
    assert!(packets > 500 * runs, "{packets} packets in {runs} runs");
}
