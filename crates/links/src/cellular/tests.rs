use brakelight_core::packet::PacketId;
use brakelight_core::parameters::Parameters;
use brakelight_core::random::Random;
use brakelight_testkit::packet::Sample;

use super::*;

fn cellular(options: &[(&str, &str)], queue: &str, seed: u64) -> Cellular<Sample> {
    let config = Config::from_options(options.iter().copied()).unwrap();
    let queue = QueueConfig::new(queue, &[]).unwrap();
    let site = Site { random: Random::stream(seed, "cellular"), ids: PacketId(1 << 63) };
    Cellular::new(&config, &queue, Limit::Packets(500), site)
}

const SECONDS: u64 = 30;

/// What each user is given in `SECONDS` when all are backlogged, Mbit/s.
fn backlogged(cellular: &mut Cellular<Sample>) -> Vec<f64> {
    let users = cellular.station.users.len() as u32;
    let mut carried = alloc::vec![0.0; users as usize];
    let mut id = 0;
    for ms in 0..1000 * SECONDS {
        let now = Time::from_millis(ms);
        // Four full packets in a millisecond are more than the best channel carries.
        for flow in (0..users).flat_map(|flow| [flow; 4]) {
            cellular.accept(now, Sample { flow, ..Sample::new(id, 1500) });
            id += 1;
        }
        while let Some(output) = cellular.poll(now) {
            if let Output::Departed(departed) = output {
                carried[departed.packet.flow as usize] += 12e-3 / SECONDS as f64;
            }
        }
    }
    carried
}

#[test]
fn backlogged_users_are_given_what_is_said_to_be_the_capacity() {
    for options in [
        &[("users", "1")][..],
        &[("users", "3"), ("bler", "0"), ("spread", "10")],
        &[("users", "2"), ("scheduler", "rr"), ("bler", "0.3")],
    ] {
        let mut cellular = cellular(options, "droptail", 1);
        let carried: f64 = backlogged(&mut cellular).iter().sum();
        let said = cellular.capacity_between(Time::ZERO, Time::from_secs(SECONDS)).0 as f64;
        let ratio = carried / (said * 8e-6 / SECONDS as f64);
        assert!((ratio - 1.0).abs() < 0.01, "{options:?}: {ratio}");
    }
}

#[test]
fn packets_of_a_user_keep_their_order_whatever_is_lost() {
    let mut cellular = cellular(&[("users", "3"), ("bler", "0.5")], "droptail", 6);
    let mut last = [None; 3];
    let mut random = Random::stream(1, "arrivals");
    for id in 0..6000 {
        let at = Time::from_nanos(id * 1_300_000);
        let flow = (random.uniform() * 3.0) as u32;
        cellular.accept(at, Sample { flow, ..Sample::new(id, 1500) });
        while let Some(output) = cellular.poll(at) {
            // A full queue drops newer packets than it holds.
            if let Output::Departed(Departed { packet, .. }) = output {
                let before = last[packet.flow as usize].replace(packet.id);
                assert!(before < Some(packet.id), "{before:?} before {}", packet.id);
            }
        }
    }
    assert!(last.iter().all(Option::is_some));
}

#[test]
fn a_packet_leaves_when_the_subframe_ends_that_completes_it() {
    // 30 dB: 50 x 666 bits = 4162 bytes a subframe.
    let options = [("snr", "30"), ("shadow", "0"), ("fading", "none"), ("bler", "0")];
    let mut cellular = cellular(&options, "droptail", 1);
    let arrival = Time::from_nanos(2_300_000);
    for id in 0..4 {
        cellular.accept(arrival, Sample::new(id, 1500));
    }
    let mut departures = Vec::new();
    while let Some(wake) = cellular.next_wakeup() {
        while let Some(output) = cellular.poll(wake) {
            departures.push((output.packet().id, output.at()));
        }
    }
    // The first subframe from 3 ms on carries two and 1162 bytes of the third.
    let [first, second] = [4, 5].map(Time::from_millis);
    assert_eq!(departures, [(0, first), (1, first), (2, second), (3, second)]);
}

#[test]
fn a_block_not_received_is_repeated_eight_subframes_later() {
    let options = [("snr", "30"), ("shadow", "0"), ("fading", "none"), ("bler", "0.5")];
    let mut cellular = cellular(&options, "droptail", 2);
    let mut delays = [0; 3];
    for id in 0..400 {
        let at = Time::from_millis(100 * id);
        cellular.accept(at, Sample::new(id, 1500));
        while let Some(wake) = cellular.next_wakeup() {
            while let Some(output) = cellular.poll(wake) {
                let late = output.at().since(at + SUBFRAME).as_nanos();
                assert_eq!(late % (8 * SUBFRAME.as_nanos()), 0);
                let rounds = (late / (8 * SUBFRAME.as_nanos())) as usize;
                delays[rounds.min(2)] += 1;
            }
        }
    }
    // A half, a quarter, and the rest of 400: within three standard deviations.
    for (count, expected) in delays.into_iter().zip([200_i32, 100, 100]) {
        assert!((count - expected).abs() < 30, "{delays:?}");
    }
}

#[test]
fn proportional_fairness_gains_over_turns_where_channels_fade() {
    let given = |scheduler, fading| {
        let options = [("users", "4"), ("scheduler", scheduler), ("fading", fading), ("shadow", "0")];
        let carried = backlogged(&mut cellular(&options, "droptail", 3));
        let mean = carried.iter().sum::<f64>() / 4.0;
        assert!(carried.iter().all(|user| (user / mean - 1.0).abs() < 0.08), "{scheduler}: {carried:?}");
        mean
    };
    let gain = given("pf", "rayleigh") / given("rr", "rayleigh");
    // By waiting for the best of four: log2(1 + SNR (1 + 1/2 + 1/3 + 1/4)) over the mean of log2(1 +
    // SNR |h|^2), about 1.6 at 12 dB behind the gap; less where the average is short and a report holds for 5
    // ms.
    assert!((1.2..=1.7).contains(&gain), "{gain}");
    let gain = given("pf", "none") / given("rr", "none");
    assert!((gain - 1.0).abs() < 0.01, "{gain}");
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let refused = |options: &[(&str, &str)]| {
        alloc::string::ToString::to_string(&Config::from_options(options.iter().copied()).unwrap_err())
    };
    assert!(refused(&[("report", "1500us")]).contains("report must be whole milliseconds"));
    let few = refused(&[("users", "32"), ("blocks", "6"), ("window", "5ms")]);
    assert!(few.contains("window must be at least users / blocks milliseconds"), "{few}");
}
