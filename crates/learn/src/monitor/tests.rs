use brakelight_core::controller::{Marks, PacketInfo, ReceiverReport, RecoveryState, Rtt};
use brakelight_core::random::Random;

use super::*;

const MSS: Bytes = Bytes(1000);

/// Always acts alike, and remembers what it saw.
#[derive(Clone, Debug, Default)]
struct Steady {
    action: f64,
    seen: Vec<Interval>,
    observed: Vec<Vec<f32>>,
}

impl Agent for Steady {
    fn observe(&mut self, interval: Option<&Interval>, _memory: &Memory, observation: &[f32]) {
        self.seen.extend(interval);
        self.observed.push(observation.to_vec());
    }

    fn act(&mut self) -> (f64, Option<Time>) {
        (self.action, None)
    }
}

fn specification(preset: Preset) -> Specification {
    let limits = Limits { least_bps: 1e6, most_bps: 3e6, most_cwnd: 160_000.0 };
    Specification { preset, interval_rtts: Some(1.0), interval_ms: 10.0, history: 2, limits }
}

fn monitor(preset: Preset, action: f64) -> Monitor<Steady> {
    let connection = Connection {
        mss: MSS,
        overhead: Bytes(52),
        initial_window: Bytes(10_000),
        now: Time::from_millis(5),
        random: Random::stream(0, "monitor"),
    };
    let agent = Steady { action, ..Steady::default() };
    Monitor::new(Arc::new(specification(preset)), agent, &connection, Rate::from_mbps(2))
}

fn send(monitor: &mut Monitor<Steady>, at_ms: u64, number: u64) {
    let now = Time::from_millis(at_ms);
    let (retransmission, replaces, app_limited, srtt) = (false, None, false, None);
    let inflight = Bytes(number * 1000);
    monitor.on_send(&SendEvent {
        now,
        size: MSS,
        number,
        retransmission,
        replaces,
        inflight,
        app_limited,
        srtt,
    });
}

/// An ACK of one packet with this RTT, after `delivered` and with `lost` packets in all.
fn ack(monitor: &mut Monitor<Steady>, at_ms: u64, rtt_ms: u64, delivered: u64, lost: u64) {
    let now = Time::from_millis(at_ms);
    let packet = PacketInfo {
        number: 0,
        size: MSS,
        sent_at: Time::ZERO,
        delivered: Bytes::ZERO,
        delivered_at: Time::ZERO,
        first_sent_at: Time::ZERO,
        inflight: MSS,
        lost: Bytes::ZERO,
        app_limited: false,
        retransmission: false,
        tag: 0,
    };
    let rtt = Duration::from_millis(rtt_ms);
    monitor.on_ack(&AckEvent {
        now,
        acked: &[packet],
        newest: Some(packet.number),
        lost: &[],
        newly_acked: MSS,
        growth: MSS,
        newly_lost: Bytes::ZERO,
        inflight_before: Bytes(3000),
        inflight: Bytes(2000),
        delivered: Bytes(delivered * 1000),
        total_lost: Bytes(lost * 1000),
        rtt: Rtt { sample: Some(rtt), smoothed: rtt, variation: rtt, min: Duration::from_millis(20) },
        ack_delay: Duration::ZERO,
        round: 0,
        round_start: false,
        marks: Marks::default(),
        receive_times: &[],
        report: ReceiverReport::None,
        cwnd_limited: true,
        recovery: RecoveryState::Open,
    });
}

#[test]
fn measures_an_interval_and_decides_a_nanosecond_after_it() {
    let mut monitor = monitor(Preset::Default, 0.5);
    // The first decision is taken at once, on an RTT that is not known.
    let root_2 = 2f64.sqrt();
    assert_eq!(monitor.cwnd(), Bytes((10_000.0 * root_2) as u64));
    assert_eq!(monitor.next_timer(), Some(Time::from_millis(105)));
    (0..6).for_each(|number| send(&mut monitor, 6, number));
    ack(&mut monitor, 40, 20, 1, 0);
    ack(&mut monitor, 60, 60, 2, 1);
    monitor.on_timer(Time::from_millis(105));
    let after = Time::from_millis(105) + Duration::from_nanos(1);
    assert_eq!((monitor.cwnd(), monitor.next_timer()), (Bytes((10_000.0 * root_2) as u64), Some(after)));
    monitor.on_timer(after);
    assert_eq!(monitor.cwnd(), Bytes(20_000));
    // The mean RTT was 40 ms.
    assert_eq!(monitor.next_timer(), Some(Time::from_millis(145)));
    let seen = monitor.agent.seen[0];
    assert_eq!((seen.length_s, seen.sent, seen.delivered, seen.lost), (0.1, 6.0, 2.0, 1.0));
    assert_eq!((seen.delivered_bytes, seen.inflight, seen.mss), (2000.0, 2000.0, 1000.0));
    let seconds = |millis| Duration::from_millis(millis).as_secs_f64();
    assert_eq!((seen.rtt_s, seen.min_rtt_s, seen.srtt_s), (seconds(40), seconds(20), seconds(60)));
    // 20 ms in the first half, 60 ms in the second.
    assert!((seen.rtt_gradient - 0.4).abs() < 1e-9);
    assert_eq!(seen.throughput_mbps(), 0.16);
    // The newest of two intervals is the last; before there was one, there was nothing.
    let observed = monitor.agent.observed.last().unwrap();
    assert_eq!(observed.len(), 16);
    assert!(observed[..8].iter().all(|number| *number == 0.0) && observed[8] == 1.0);
}

#[test]
fn an_interval_without_acks_has_the_last_rtt_and_no_throughput() {
    let mut monitor = monitor(Preset::Default, 0.0);
    monitor.on_timer(Time::from_millis(105));
    let seen = monitor.agent.seen[0];
    assert_eq!((seen.rtt_s, seen.delivered, seen.send_ratio(), seen.loss()), (0.1, 0.0, 1.0, 0.0));
}

#[test]
fn what_it_sets_stays_within_the_limits() {
    let mut most = monitor(Preset::Default, 7.0);
    let mut least = monitor(Preset::Default, f64::NEG_INFINITY);
    for monitor in [&mut most, &mut least] {
        for _ in 0..20 {
            let at = monitor.next_timer().unwrap();
            monitor.on_timer(at);
        }
    }
    assert_eq!((most.cwnd(), least.cwnd()), (Bytes(160_000), MSS));
    // Orca src/orca-server-mahimahi.cc, `MIN_CWND`: 4 packets.
    let mut orca = monitor(Preset::Orca, -1.0);
    for _ in 0..20 {
        let at = orca.next_timer().unwrap();
        orca.on_timer(at);
    }
    assert_eq!(orca.cwnd(), Bytes(4_000));
    let mut paced = monitor(Preset::Aurora, 20.0);
    assert_eq!((paced.cwnd(), paced.pacing_rate()), (Bytes(160_000), Some(Rate::from_mbps(3))));
    paced.agent.action = f64::NAN;
    for _ in 0..2 {
        let at = paced.next_timer().unwrap();
        paced.on_timer(at);
    }
    assert_eq!(paced.pacing_rate(), Some(Rate::from_mbps(3)), "an action that is no number decides nothing");
}

#[test]
fn a_specification_that_makes_no_sense_is_refused_by_field() {
    let good = specification(Preset::Orca);
    assert_eq!(good.check(), Ok(()));
    let text = serde_json::to_string(&good).unwrap();
    assert_eq!(serde_json::from_str::<Specification>(&text).unwrap(), good);
    for (wrong, words) in [
        (Specification { history: 0, ..good.clone() }, "history = `0` is out of range: valid is 1 to 1000"),
        (Specification { interval_ms: 0.0, ..good.clone() }, "interval_ms = `0` is out of range"),
        (Specification { interval_rtts: Some(f64::NAN), ..good.clone() }, "interval_rtts = `NaN`"),
        (Specification { limits: Limits { most_bps: 1.0, ..good.limits }, ..good.clone() }, "most_bps = `1`"),
        (Specification { limits: Limits { most_cwnd: 1.0, ..good.limits }, ..good }, "most_cwnd = `1`"),
    ] {
        let refused = wrong.check().unwrap_err();
        assert!(refused.starts_with(words), "{refused}");
    }
}
