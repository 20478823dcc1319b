use super::*;
use crate::packet::PacketId;
use crate::parameters::Parameters;
use crate::path::sample::Sample;

fn config(options: &[(&str, &str)]) -> Config {
    Config::from_options(options.iter().copied()).unwrap()
}

fn wifi(options: &[(&str, &str)], queue: &str, seed: u64) -> Wifi<Sample> {
    let queue = QueueConfig::new(queue, &[]).unwrap();
    let site = Site { random: Random::stream(seed, "wifi"), ids: PacketId(1 << 63) };
    Wifi::new(&config(options), &queue, Limit::Packets(500), site)
}

/// What an access point did with packets that came at a steady rate.
struct Fed {
    carried_mbps: f64,
    estimate_mbps: f64,
    uncapped_mbps: f64,
    current_mbps: f64,
    /// Batch sizes and inter-ACK times.
    batches: Vec<(u32, f64)>,
}

/// Feeds full packets at `mbps`, evenly spaced and a little uneven, for `seconds`; all but the first second counts.
fn feed(wifi: &mut Wifi<Sample>, mbps: f64, seconds: u64) -> Fed {
    let mut random = Random::stream(9, "arrivals");
    let gap_s = 12_000.0 / (mbps * 1e6);
    let (mut at_s, mut id) = (0.0, 0);
    let mut fed = Fed {
        carried_mbps: 0.0,
        estimate_mbps: 0.0,
        uncapped_mbps: 0.0,
        current_mbps: 0.0,
        batches: Vec::new(),
    };
    let (mut bytes, mut seen, mut estimates) = (0_u64, None, 0.0);
    let end = Time::ZERO + Duration::from_secs(seconds);
    let warm = Time::ZERO + Duration::from_secs(1);
    loop {
        let arrival = Time::ZERO + Duration::from_secs_f64(at_s);
        let wake = wifi.next_wakeup().unwrap_or(Time::MAX);
        let now = arrival.min(wake);
        if now >= end {
            break;
        }
        if wake > arrival {
            wifi.accept(arrival, Sample::new(id, 1500));
            id += 1;
            at_s += gap_s * (0.5 + random.uniform());
        }
        while let Some(output) = wifi.poll(now) {
            if let Output::Departed(departed) = output
                && departed.at >= warm
            {
                bytes += u64::from(departed.packet.size);
            }
        }
        if let Some(observed) = wifi.observed()
            && seen != Some(observed.at)
            && observed.at >= warm
        {
            seen = Some(observed.at);
            fed.batches.push((observed.frames, observed.inter_ack.as_secs_f64()));
            estimates += 1.0;
            fed.estimate_mbps += wifi.estimator(0).rate().as_mbps_f64();
            fed.uncapped_mbps += wifi.estimator(0).uncapped().as_mbps_f64();
            fed.current_mbps += wifi.estimator(0).current().as_mbps_f64();
        }
    }
    fed.carried_mbps = bytes as f64 * 8e-6 / (seconds - 1) as f64;
    fed.estimate_mbps /= estimates;
    fed.uncapped_mbps /= estimates;
    fed.current_mbps /= estimates;
    fed
}

#[test]
fn a_backlogged_link_carries_what_is_said_to_be_its_capacity() {
    for mcs in ["1", "4", "7"] {
        for other in [&[("loss", "0")][..], &[("loss", "0.1"), ("neighbours", "0.5")], &[("ack_every", "0")]]
        {
            let options = [&[("mcs", mcs)], other].concat();
            let mut wifi = wifi(&options, "droptail", 1);
            let capacity = mac::backlogged(&config(&options), mcs.parse().unwrap()).as_mbps_f64();
            let carried = feed(&mut wifi, 1.5 * capacity, 31).carried_mbps;
            assert!((carried / capacity - 1.0).abs() < 0.02, "{options:?}: {carried} of {capacity} Mbit/s");
        }
    }
}

#[test]
fn the_estimate_is_within_five_per_cent_of_what_a_backlogged_link_carries() {
    // Below half of the capacity the cap of twice the current rate is what counts.
    for mcs in ["1", "4", "7"] {
        for estimate in ["paper", "busy"] {
            let options = [("mcs", mcs), ("estimate", estimate), ("loss", "0.05")];
            let truth = feed(&mut wifi(&options, "droptail", 2), 200.0, 31).carried_mbps;
            for load in [0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2] {
                let fed = feed(&mut wifi(&options, "droptail", 1), load * truth, 31);
                let expected = truth.min(2.0 * fed.carried_mbps);
                let off = fed.estimate_mbps / expected - 1.0;
                assert!(off.abs() < 0.05, "{options:?}, load {load}: {:+.1} %", 100.0 * off);
            }
        }
    }
}

/// abc20 Fig. 5: the slope of inter-ACK time over batch size is S / R, S with its framing. Batch sizes are set, not left to the
/// load: where the queue makes them, whatever holds up a batch also makes it larger, and the slope comes out steeper.
#[test]
fn inter_ack_times_grow_by_a_frame_s_time_with_each_frame_of_a_batch() {
    let mut batches = Vec::new();
    for frames in ["2", "4", "8", "12", "16", "20", "25", "30"] {
        let options = [("mcs", "2"), ("loss", "0"), ("frames", frames)];
        batches.extend(feed(&mut wifi(&options, "droptail", 3), 30.0, 31).batches);
    }
    let (mut n, mut sum_b, mut sum_t, mut sum_bb, mut sum_bt) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (b, t_s) in batches.iter().map(|&(b, t_s)| (f64::from(b), t_s)) {
        n += 1.0;
        sum_b += b;
        sum_t += t_s;
        sum_bb += b * b;
        sum_bt += b * t_s;
    }
    let slope_s = (n * sum_bt - sum_b * sum_t) / (n * sum_bb - sum_b * sum_b);
    let expected_s = 8.0 * 1544.0 / mac::phy_rate(2).as_bps_f64();
    assert!((slope_s / expected_s - 1.0).abs() < 0.05, "{slope_s} s is not {expected_s} s");
    let longest_s = batches.iter().map(|&(_, t_s)| t_s).fold(0.0, f64::max);
    assert!(longest_s > 0.018, "full batches take about 20 ms");
}

/// What came out, with everything that can differ.
fn outputs(wifi: &mut Wifi<Sample>, late: Option<u64>) -> Vec<(Time, u64, bool, Duration)> {
    let mut random = Random::stream(5, "arrivals");
    let mut lateness = Random::stream(late.unwrap_or(0), "lateness");
    let mut out = Vec::new();
    let (mut at, mut id) = (Time::ZERO, 0);
    let end = Time::ZERO + Duration::from_secs(4);
    let mut drain = |wifi: &mut Wifi<Sample>, now: Time| {
        while let Some(output) = wifi.poll(now) {
            let queued = match &output {
                Output::Departed(departed) | Output::Duplicated(departed) => departed.queued,
                Output::Dropped(_) => Duration::ZERO,
            };
            out.push((output.at(), output.packet().id, matches!(output, Output::Dropped(_)), queued));
        }
    };
    while at < end {
        // Arrivals come on time, wake-ups up to 5 ms late.
        while let Some(wake) = wifi.next_wakeup()
            && wake < at
        {
            let late = if late.is_some() {
                Duration::from_micros((lateness.uniform() * 5000.0) as u64)
            } else {
                Duration::ZERO
            };
            if wake + late >= at {
                break;
            }
            drain(wifi, wake + late);
        }
        let flow = (random.uniform() * 3.0) as u32;
        wifi.accept(at, Sample { flow, ..Sample::new(id, 100 + (random.uniform() * 1400.0) as u32) });
        drain(wifi, at);
        id += 1;
        at += Duration::from_micros((random.exponential() * 250.0) as u64);
    }
    drain(wifi, end + Duration::from_secs(20));
    out
}

#[test]
fn a_late_clock_changes_nothing_and_nothing_is_lost() {
    for queues in ["shared", "per-station"] {
        for queue in ["droptail", "codel", "abc"] {
            let options = [
                ("stations", "3"),
                ("queues", queues),
                ("loss", "0.3"),
                ("retries", "2"),
                ("mcs", "0..7"),
                ("period", "50ms"),
            ];
            let exact = outputs(&mut wifi(&options, queue, 4), None);
            for late in 1..4 {
                assert_eq!(outputs(&mut wifi(&options, queue, 4), Some(late)), exact, "{queues} {queue}");
            }
            let mut ids: Vec<u64> = exact.iter().map(|output| output.1).collect();
            assert!(exact.windows(2).all(|pair| pair[0].0 <= pair[1].0), "in order of time");
            assert!(exact.iter().any(|output| output.2), "some are dropped");
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), exact.len(), "each comes out once");
            assert_eq!(ids.len() as u64, ids.last().unwrap() + 1, "and all of them");
        }
    }
}

#[test]
fn frames_of_a_station_keep_their_order_whatever_is_lost() {
    let options = [("stations", "3"), ("loss", "0.4"), ("retries", "1")];
    let mut wifi = wifi(&options, "droptail", 6);
    let mut last = [None; 3];
    let mut random = Random::stream(1, "arrivals");
    for id in 0..3000 {
        let at = Time::from_millis(id);
        let flow = (random.uniform() * 3.0) as u32;
        wifi.accept(at, Sample { flow, ..Sample::new(id, 1500) });
        while let Some(output) = wifi.poll(at) {
            let packet = *output.packet();
            let before = last[packet.flow as usize].replace(packet.id);
            assert!(before < Some(packet.id), "{before:?} before {}", packet.id);
        }
    }
}

#[test]
fn stations_with_queues_of_their_own_share_alike_and_those_of_a_shared_one_do_not() {
    // Station 0 sends four times as much as station 1, together twice what the link carries.
    let share = |queues| {
        let mut wifi = wifi(&[("stations", "2"), ("queues", queues), ("mcs", "3")], "droptail", 7);
        let mut carried = [0.0; 2];
        for id in 0..80_000 {
            let at = Time::from_nanos(id * 250_000);
            wifi.accept(at, Sample { flow: u32::from(id % 5 == 0), ..Sample::new(id, 1500) });
            while let Some(output) = wifi.poll(at) {
                if let Output::Departed(departed) = output {
                    carried[departed.packet.flow as usize] += 1.0;
                }
            }
        }
        carried[1] / (carried[0] + carried[1])
    };
    let own = share("per-station");
    assert!((0.42..=0.55).contains(&own), "own queues: {own}");
    let shared = share("shared");
    assert!((0.17..=0.3).contains(&shared), "a shared queue: {shared}");
}
