use brakelight_core::packet::PacketId;
use brakelight_core::parameters::Parameters;
use brakelight_testkit::packet::Sample;

use super::*;

fn config(options: &[(&str, &str)]) -> Config {
    Config::from_options(options.iter().copied()).unwrap()
}

fn wifi(options: &[(&str, &str)], queue: &str, seed: u64) -> Wifi<Sample> {
    let queue = QueueConfig::new(queue, &[]).unwrap();
    let site = Site { random: Random::stream(seed, "wifi"), ids: PacketId(1 << 63) };
    Wifi::new(&config(options), &queue, Limit::Packets(500), site)
}

/// What a link carries that always has something to send, Mbit/s.
fn backlogged(wifi: &mut Wifi<Sample>) -> f64 {
    let (mut id, mut bytes) = (0, 0);
    for ms in 0..31_000 {
        let now = Time::from_millis(ms);
        // 10 full packets in a millisecond are twice what any link here carries.
        for _ in 0..10 {
            wifi.accept(now, Sample::new(id, 1500));
            id += 1;
        }
        while let Some(output) = wifi.poll(now) {
            if let Output::Departed(departed) = output
                && ms >= 1000
            {
                bytes += departed.packet.size;
            }
        }
    }
    f64::from(bytes) * 8e-6 / 30.0
}

#[test]
fn a_backlogged_link_carries_what_is_said_to_be_its_capacity() {
    for mcs in ["1", "4", "7"] {
        for other in [&[("loss", "0")][..], &[("loss", "0.1"), ("neighbours", "0.5")], &[("ack_every", "0")]]
        {
            let options = [&[("mcs", mcs)], other].concat();
            let mut wifi = wifi(&options, "droptail", 1);
            let capacity = mac::backlogged(&config(&options), mcs.parse().unwrap()).as_mbps_f64();
            let carried = backlogged(&mut wifi);
            assert!((carried / capacity - 1.0).abs() < 0.02, "{options:?}: {carried} of {capacity} Mbit/s");
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
