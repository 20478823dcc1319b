use brakelight_core::units::Rate;

use super::*;

mod applications;
mod hostile;
mod random;

const CONTROLLER: &str = "cubic";

/// A path: a queue before a link, and propagation.
struct Path {
    rate: Rate,
    limit: usize,
    delay: Duration,
    /// What a router does to the ECN field of the packet with this place among the forward ones.
    rewrite: fn(u64, Ecn) -> Ecn,
    /// Which of them are lost.
    lose: fn(u64, Ecn) -> bool,
    /// Which of them are held back for 10 ms after the link.
    hold: fn(u64) -> bool,
    /// What is done to the flow after the packet with this place among all that arrive.
    meddle: fn(u64, &mut Flow),
    /// What the receiver makes of its own cryptography.
    wrap: fn(Arc<dyn ServerConfig>) -> Arc<dyn ServerConfig>,
}

fn keep(_: u64, ecn: Ecn) -> Ecn {
    ecn
}

impl Default for Path {
    fn default() -> Self {
        let delay = Duration::from_millis(20);
        Path {
            rate: Rate::from_mbps(10),
            limit: 100,
            delay,
            rewrite: keep,
            lose: |_, _| false,
            hold: |_| false,
            meddle: |_, _| {},
            wrap: |crypto| crypto,
        }
    }
}

/// What came of a run.
struct Seen {
    flow: Flow,
    /// When each packet left, which way, with how many bytes and which codepoint.
    left: Vec<(Time, Direction, u16, Ecn)>,
    end: Time,
}

fn settings(name: &str, options: &[(&str, &str)]) -> FlowSettings {
    FlowSettings {
        controller: ControllerConfig::new(name, options).unwrap(),
        packet: 1500,
        ack_every: Some(2),
        initial_window: 10,
        pacing_burst: 10,
        traffic: Traffic::Backlogged,
        start: Time::ZERO,
        stop: None,
        receiver_clock: Clock::default(),
        reports: true,
        receive_times: false,
        jitter: Duration::from_micros(200),
        random: Random::stream(3, "host"),
        controller_random: Random::stream(3, "controller"),
    }
}

fn run(settings: FlowSettings, path: &Path, seconds: u64) -> Seen {
    let mut flow = Flow::with_receiver(settings, 0, false, path.wrap).unwrap();
    let end = Time::from_secs(seconds);
    let mut left = Vec::new();
    let mut queue: VecDeque<(u64, Packet)> = VecDeque::new();
    let mut served_at = Time::ZERO;
    let mut held: Option<(Time, Packet)> = None;
    let mut transit: VecDeque<(Time, Packet)> = VecDeque::new();
    let mut back: VecDeque<(Time, Packet)> = VecDeque::new();
    let (mut place, mut arrived) = (0, 0);
    let mut now = Time::ZERO;
    loop {
        while let Some(packet) = flow.poll_transmit(now) {
            left.push((now, packet.direction, packet.size, packet.ecn));
            if packet.direction == Direction::Reverse {
                back.push_back((now + path.delay, packet));
                continue;
            }
            place += 1;
            if (path.lose)(place, packet.ecn) || queue.len() >= path.limit {
                flow.release(&packet);
            } else {
                if queue.is_empty() {
                    served_at = now + path.rate.time_for(Bytes(u64::from(packet.size)));
                }
                queue.push_back((place, Packet { ecn: (path.rewrite)(place, packet.ecn), ..packet }));
            }
        }
        let serve = (!queue.is_empty()).then_some(served_at);
        let next = [
            flow.next_wakeup(),
            serve,
            transit.front().map(|p| p.0),
            back.front().map(|p| p.0),
            held.map(|p| p.0),
        ];
        now = match next.into_iter().flatten().min() {
            Some(at) if at <= end => now.max(at),
            _ => break,
        };
        if serve.is_some_and(|at| at <= now)
            && let Some((place, packet)) = queue.pop_front()
        {
            if (path.hold)(place) {
                held = Some((now + path.delay + Duration::from_millis(10), packet));
            } else {
                transit.push_back((now + path.delay, packet));
            }
            if let Some((_, next)) = queue.front() {
                served_at = now + path.rate.time_for(Bytes(u64::from(next.size)));
            }
        }
        let due = |at: Time| held.is_some_and(|(until, _)| until <= at);
        if transit.front().is_none_or(|&(at, _)| due(at))
            && let Some(packet) = held.take_if(|(until, _)| *until <= now)
        {
            transit.push_front(packet);
        }
        for way in [&mut transit, &mut back] {
            while way.front().is_some_and(|&(at, _)| at <= now)
                && let Some((_, packet)) = way.pop_front()
            {
                flow.accept(now, &packet, false);
                arrived += 1;
                (path.meddle)(arrived, &mut flow);
            }
        }
    }
    let on_the_way =
        usize::from(held.is_some()) + queue.len() + transit.len() + back.len() + flow.outbox.len();
    assert_eq!(flow.in_transit(), on_the_way, "payloads are kept for packets on their way, and no others");
    assert_eq!(flow.adapter().violations(), Vec::<String>::new());
    Seen { flow, left, end }
}

/// What the application says of itself.
fn outcome(seen: &Seen, name: &str) -> Option<f64> {
    let mut found = None;
    seen.flow.application(seen.end, &mut |key, value| {
        if key == name {
            found = Some(value);
        }
    });
    found
}

fn mbps(seen: &Seen, seconds: u64) -> f64 {
    seen.flow.received() as f64 * 8e-6 / seconds as f64
}

#[test]
fn a_stream_fills_the_link() {
    let seen = run(settings(CONTROLLER, &[]), &Path::default(), 5);
    assert!(mbps(&seen, 5) > 8.5, "{}", mbps(&seen, 5));
    assert!(seen.left.iter().all(|packet| packet.2 <= 1500));
}

#[test]
fn the_same_seed_gives_the_same_packets_at_the_same_times() {
    let path = Path { lose: |place, _| place % 97 == 0, limit: 30, ..Path::default() };
    let [a, b] = [0, 1].map(|_| run(settings("abc", &[]), &path, 3));
    assert_eq!(a.left, b.left);
    assert!(a.left.len() > 1000);
    let other = FlowSettings { random: Random::stream(4, "host"), ..settings("abc", &[]) };
    assert_ne!(run(other, &path, 3).left, a.left);
}

#[test]
fn a_transfer_ends_when_its_last_byte_arrives() {
    let traffic = Traffic::Size(Bytes(1_000_000));
    let path = Path { lose: |place, _| place % 50 == 0, ..Path::default() };
    let seen = run(FlowSettings { traffic, ..settings(CONTROLLER, &[]) }, &path, 30);
    assert_eq!(seen.flow.received(), 1_000_000);
    let took = outcome(&seen, "completion_ms").unwrap();
    assert!((840.0..10_000.0).contains(&took), "{took}");
}

/// The stack's own pacer would let 1.25 windows per round trip go, in bursts of ten; a controller that paces
/// is obeyed.
#[test]
fn a_rate_controller_paces_its_packets_itself() {
    for name in ["bbr", "bbr3", "vivace"] {
        let seen = run(FlowSettings { pacing_burst: 1, ..settings(name, &[]) }, &Path::default(), 10);
        assert!(mbps(&seen, 10) > 7.5, "{name}: {}", mbps(&seen, 10));
        let late = seen.left.iter().filter(|packet| packet.0 > Time::from_secs(8) && packet.2 > 1000);
        let times: Vec<Time> = late.map(|packet| packet.0).collect();
        let gaps = times.windows(2).filter(|pair| pair[1].since(pair[0]) < Duration::from_micros(500));
        let bunched = gaps.count() as f64 / times.len() as f64;
        assert!(bunched < 0.2, "{name}: {bunched} of the packets leave right behind another");
    }
}

/// A control for media paces half as fast again as its encoder produces. The application is told the
/// encoder's rate, as by the modelled host: an encoder at the pacing rate would fill the queue.
#[test]
fn an_encoder_is_told_the_rate_of_media_and_not_the_pacing_rate() {
    let traffic = Traffic::Call(brakelight_apps::traffic::Call::default());
    let seen = run(FlowSettings { traffic, ..settings("scream", &[]) }, &Path::default(), 5);
    let adapter = seen.flow.adapter();
    let [media, paced] = [adapter.media_rate().unwrap(), adapter.pacing_rate().unwrap()];
    assert!(paced > media, "{paced} and {media}");
    let (outgoing, random) = (&mut Outgoing::default(), &mut Random::stream(1, "test"));
    let messages = &mut Vec::new();
    let now = seen.end;
    let socket = FlowSocket { now, outgoing, sent: 0, delivered: 0, adapter, random, messages };
    assert_eq!(brakelight_apps::Socket::rate(&socket), Some(media));
}

/// What the receiver counted is what the sender was told, packet for packet.
#[test]
fn marks_come_back_by_the_ack_counts() {
    let rewrite = |place: u64, ecn| match (ecn, place % 10) {
        (Ecn::Ect1, 3 | 6) => Ecn::Ect0,
        (Ecn::Ect1, 9) => Ecn::Ce,
        (ecn, _) => ecn,
    };
    let traffic = Traffic::Size(Bytes(1_000_000));
    let seen =
        run(FlowSettings { traffic, ..settings("abc", &[]) }, &Path { rewrite, ..Path::default() }, 60);
    let counters = seen.flow.adapter().counters();
    let mut told = [0; 3];
    let mut place = 0;
    for &(_, direction, _, ecn) in &seen.left {
        if direction == Direction::Forward {
            place += 1;
            match rewrite(place, ecn) {
                Ecn::Ect1 => told[0] += 1,
                Ecn::Ect0 => told[1] += 1,
                Ecn::Ce => told[2] += 1,
                Ecn::NotEct => {}
            }
        }
    }
    assert_eq!(seen.flow.received(), 1_000_000);
    assert_eq!([counters.accelerate_packets, counters.brake_packets, counters.ce_packets], told);
    assert!(told.iter().all(|&count| count > 50), "{told:?}");
}

/// One packet is held back on the way long enough to be declared lost, and then arrives.
#[test]
fn an_episode_whose_packet_only_came_late_is_taken_back() {
    // Cubic grows to fill the path by then; without the undo it would lose three tenths of its window for
    // nothing.
    let late = |hold| {
        run(
            FlowSettings { jitter: Duration::ZERO, ..settings("cubic", &[]) },
            &Path { hold, limit: 1000, ..Path::default() },
            3,
        )
    };
    let held = late(|place| place == 700);
    let counters = held.flow.adapter().counters();
    assert_eq!((counters.lost_packets, counters.undone_episodes), (1, 1));
    let straight = late(|_| false);
    assert_eq!(straight.flow.adapter().counters().lost_packets, 0);
    let (with, without) = (held.flow.adapter().cwnd().as_f64(), straight.flow.adapter().cwnd().as_f64());
    assert!(with > 0.9 * without, "{with} against {without}");
}

/// What a controller wants of each packet is on it: probes leave as brakes.
#[test]
fn each_packet_carries_the_codepoint_its_controller_chose() {
    let seen = run(settings("abc", &[("probe", "100")]), &Path::default(), 3);
    let forward = seen.left.iter().filter(|packet| packet.1 == Direction::Forward && packet.3 != Ecn::NotEct);
    let codepoints: Vec<Ecn> = forward.map(|packet| packet.3).collect();
    let brakes = codepoints.iter().filter(|ecn| **ecn == Ecn::Ect0).count();
    assert!(brakes.abs_diff(codepoints.len() / 50) <= 2, "{brakes} of {}", codepoints.len());
}
