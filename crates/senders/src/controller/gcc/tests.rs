use brakelight_core::controller::{PacketInfo, ReceiveTime};
use brakelight_core::parameters::Parameters;
use brakelight_testkit::events::{ack, connection, packet, packets, send, timeout};

use super::trendline::{Deltas, Rules};
use super::*;
use std::string::ToString;

const RTT: Duration = Duration::from_millis(100);

fn rules() -> Rules {
    Rules { window: 20, k_up: 0.0087, k_down: 0.039, overuse_ms: 10.0 }
}

fn assert_near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not {expected} within {tolerance}");
}

/// A detector after `groups` groups that were sent every 10 ms and arrived every `arrived_ms`.
fn after(groups: u64, arrived_ms: u64) -> Trendline {
    let mut trendline = Trendline::new(rules(), 12.5);
    for group in 1..=groups {
        let deltas = Deltas { sent_ms: 10.0, arrived_ms: arrived_ms as f64 };
        trendline.update(deltas, Time::from_millis(group * arrived_ms));
    }
    trendline
}

#[test]
fn the_slope_is_the_delay_gained_per_time_of_arrival() {
    // 1 ms in 11 ms. The smoothed delay follows its input at a distance that settles as 0.9^i does.
    assert_near(after(150, 11).slope(), 1.0 / 11.0, 1e-6);
    // 1 ms less in 9 ms.
    assert_near(after(150, 9).slope(), -1.0 / 9.0, 1e-6);
}

#[test]
fn a_rising_delay_is_over_use_and_a_falling_one_under_use() {
    assert_eq!(after(19, 11).usage(), Usage::Normal, "the window is not full");
    assert_eq!(after(40, 11).usage(), Usage::Overuse);
    assert_eq!(after(40, 10).usage(), Usage::Normal);
    assert_eq!(after(40, 9).usage(), Usage::Underuse);
}

#[test]
fn the_threshold_falls_by_39_percent_in_10_ms_while_the_delay_stands() {
    // gcc16 eq.5 with k_down: 12.5 (1 - 0.039 * 10). The first adaptation has no time before it.
    assert_near(after(2, 10).threshold_ms(), 12.5, 1e-9);
    assert_near(after(3, 10).threshold_ms(), 7.625, 1e-9);
    assert_near(after(4, 10).threshold_ms(), 6.0, 1e-9);
}

#[test]
fn a_spike_of_delay_does_not_raise_the_threshold() {
    let before = after(40, 10).threshold_ms();
    let mut trendline = after(40, 10);
    for group in 1..=5 {
        let deltas = Deltas { sent_ms: 10.0, arrived_ms: 60.0 };
        trendline.update(deltas, Time::from_millis(400 + 60 * group));
    }
    assert!(trendline.threshold_ms() <= before + 15.0, "{}", trendline.threshold_ms());
    assert_eq!(trendline.usage(), Usage::Overuse);
}

#[test]
fn packets_sent_within_5_ms_are_one_group() {
    let mut groups = Groups::default();
    let at = Time::from_millis;
    let mut add = |sent, arrived| groups.add(at(sent), at(arrived), at(arrived + 50));
    assert_eq!(add(0, 100), None);
    assert_eq!(add(4, 107), None);
    // The first group's last packet was sent at 4 and arrived at 107; no group came before it.
    assert_eq!(add(20, 120), None);
    assert_eq!(add(40, 145), Some(Deltas { sent_ms: 16.0, arrived_ms: 13.0 }));
    // Sent before the group began: not in order, and not counted.
    assert_eq!(add(30, 146), None);
    // Packets that queued and come at once belong together, though they were sent apart.
    assert_eq!(add(60, 147), None);
    assert_eq!(add(90, 200), Some(Deltas { sent_ms: 40.0, arrived_ms: 27.0 }));
}

#[test]
fn a_clock_that_steps_three_seconds_starts_the_groups_over() {
    let mut groups = Groups::default();
    let at = Time::from_millis;
    for (sent, arrived) in [(0, 100), (20, 120), (40, 4140)] {
        groups.add(at(sent), at(arrived), at(sent + 150));
    }
    assert_eq!(groups.add(at(60), at(4160), at(210)), None);
    assert_eq!(groups.add(at(80), at(4180), at(230)), None, "the first after the step");
}

/// A throughput after `count` packets of 1000 bytes, sent every `sent_ms` and arriving every `arrived_ms`.
fn throughput(count: u64, sent_ms: u64, arrived_ms: u64) -> Throughput {
    let mut throughput = Throughput::default();
    for packet in 0..count {
        let at = |ms: u64| Time::from_millis(ms * packet);
        throughput.add(at(sent_ms), at(arrived_ms), Bytes(1000));
    }
    throughput
}

#[test]
fn the_throughput_is_the_lesser_of_what_was_sent_and_what_arrived_from_ten_packets_on() {
    assert_eq!(throughput(9, 10, 10).bps(), None);
    // Nine of ten packets in nine gaps: 1000 bytes in 10 ms.
    assert_near(throughput(10, 10, 10).bps().unwrap(), 800e3, 1e-6);
    assert_near(throughput(50, 10, 20).bps().unwrap(), 400e3, 1e-6);
    assert_near(throughput(50, 20, 10).bps().unwrap(), 400e3, 1e-6);
}

#[test]
fn the_throughput_forgets_what_is_older_than_a_second_unless_twenty_packets_would_not_be_left() {
    let mut throughput = throughput(100, 10, 10);
    for packet in 0..60 {
        let at = Time::from_millis(1000 + 20 * packet);
        throughput.add(at, at, Bytes(1000));
    }
    // All of the last second came every 20 ms.
    assert_near(throughput.bps().unwrap(), 400e3, 1e-6);
    for packet in 0..21 {
        let at = Time::from_millis(2200 + 100 * packet);
        throughput.add(at, at, Bytes(1000));
    }
    // Of those every 100 ms there are more than twenty in 2 s: one leaves for each that comes.
    assert_near(throughput.bps().unwrap(), 80e3, 1e-6);
    let at = Time::from_secs(60);
    throughput.add(at, at, Bytes(1000));
    assert_eq!(throughput.bps(), None, "the others came more than 5 s before");
}

#[test]
fn one_long_gap_does_not_lower_the_throughput() {
    let mut throughput = throughput(50, 10, 10);
    // 200 ms of nothing, and then what was sent meanwhile at once.
    for packet in 0..20 {
        throughput.add(Time::from_millis(500 + 10 * packet), Time::from_millis(690 + packet), Bytes(1000));
    }
    // 69 packets were sent in 690 ms. They arrived in 709 ms, of which 200 count as 10.
    assert_near(throughput.bps().unwrap(), 800e3, 1e-6);
}

#[test]
fn packets_that_arrive_out_of_order_are_put_in_order() {
    let mut throughput = Throughput::default();
    for packet in [0, 2, 1, 4, 3, 6, 5, 8, 7, 9] {
        let at = Time::from_millis(10 * packet);
        throughput.add(at, at, Bytes(1000));
    }
    assert_near(throughput.bps().unwrap(), 800e3, 1e-6);
    throughput.add(Time::from_millis(100), Time::from_millis(100), Bytes(1000));
    // The receiver's clock stepped back by more than a second.
    let mut throughput = throughput.clone();
    throughput.add(Time::from_secs(9), Time::from_secs(9), Bytes(1000));
    throughput.add(Time::from_secs(9), Time::from_secs(7), Bytes(1000));
    assert_eq!(throughput.bps(), None);
}

fn aimd(start_bps: f64) -> Aimd {
    Aimd::new(0.85, start_bps, (5e3, 1e9))
}

#[test]
fn over_use_leaves_85_percent_of_what_arrives_and_holds() {
    let mut aimd = aimd(1.2e6);
    let second = Time::from_secs;
    aimd.update(Usage::Overuse, Some(1e6), RTT, second(1));
    assert_near(aimd.bps(), 0.85e6, 1e-6);
    aimd.update(Usage::Underuse, Some(1e6), RTT, second(2));
    assert_near(aimd.bps(), 0.85e6, 1e-6);
    // Near the last over-use the rate grows by half a packet per response time: 28,333 bits a frame are
    // three packets of 9,444 bits, over 2 (100 + 100) ms.
    aimd.update(Usage::Normal, Some(1e6), RTT, second(3));
    aimd.update(Usage::Normal, Some(1e6), RTT, second(4));
    assert_near(aimd.bps(), 0.85e6 + 0.85e6 / 30.0 / 3.0 / 0.4, 1e-6);
}

#[test]
fn without_over_use_the_rate_grows_by_8_percent_a_second_up_to_half_above_what_arrives() {
    let mut aimd = aimd(300e3);
    let second = Time::from_secs;
    aimd.update(Usage::Normal, Some(300e3), RTT, second(1));
    aimd.update(Usage::Normal, Some(300e3), RTT, second(2));
    // The first step, from hold, is the least: 1 kbit/s.
    assert_near(aimd.bps(), 1.08 * 301e3, 1e-6);
    for time in 3..60 {
        aimd.update(Usage::Normal, Some(300e3), RTT, second(time));
    }
    assert_near(aimd.bps(), 1.5 * 300e3 + 10e3, 1e-6);
}

/// The target after a second in which `lost` of 100 packets were lost, from 1 Mbit/s.
fn with_loss(lost: usize) -> f64 {
    let mut loss = LossBased::new(0.02, 0.1, 1e6, 5e3);
    loss.update(1e6, None, RTT, Time::ZERO);
    loss.count(100 - lost, lost);
    loss.update(1e9, None, RTT, Time::from_millis(2500));
    loss.bps()
}

#[test]
fn losses_below_2_percent_let_the_rate_grow_and_above_10_percent_halve_as_much() {
    // gcc-02 6
    assert_near(with_loss(2), 1.081e6, 1e-3);
    assert_near(with_loss(3), 1e6, 1e-3);
    assert_near(with_loss(10), 1e6, 1e-3);
    assert_near(with_loss(20), 0.9e6, 1e-3);
}

#[test]
fn the_delay_bounds_what_losses_allow() {
    let mut loss = LossBased::new(0.02, 0.1, 1e6, 5e3);
    loss.update(0.5e6, None, RTT, Time::ZERO);
    assert_near(loss.bps(), 0.5e6, 1e-6);
}

/// Sends a burst of the first rate, 900 kbit/s, that arrives with `gap_us` between its packets of 1000 bytes.
fn burst(gap_us: u64) -> Option<f64> {
    let mut probes = Probes::new(true, 300e3, 5e6);
    assert_eq!(probes.bps(), Some(900e3));
    let at = |index: u64, gap_us: u64| Time::from_nanos(1000 * gap_us * index);
    // 1000 bytes at 900 kbit/s take 8889 us.
    let tags: std::vec::Vec<_> = (0..5).map(|index| probes.on_send(at(index, 8889), Bytes(1000))).collect();
    assert_eq!(probes.bps(), Some(1.8e6), "the second burst follows");
    for (index, tag) in tags.into_iter().enumerate() {
        let index = index as u64;
        probes.on_arrival(tag, at(index, 8889), at(index, gap_us), Bytes(1000));
    }
    probes.take(true, Time::from_millis(100))
}

#[test]
fn a_burst_finds_the_lesser_of_what_was_sent_and_what_arrived() {
    assert_near(burst(8889).unwrap(), 900e3, 100.0);
    // A little slower than sent: that is what the link carries.
    assert_near(burst(9500).unwrap(), 8e9 / 9500.0, 100.0);
    // Much slower: the link was full, and a queue is left.
    assert_near(burst(16_000).unwrap(), 0.95 * 500e3, 100.0);
    // Faster than twice the rate: the packets were held together on their way.
    assert_eq!(burst(4000), None);
}

#[test]
fn no_further_burst_follows_while_losses_are_the_limit() {
    for may_go_on in [true, false] {
        let mut probes = Probes::new(true, 300e3, 5e6);
        let at = |index: u64| Time::from_nanos(4_444_000 * index);
        let tags: std::vec::Vec<_> = (0..11).map(|index| probes.on_send(at(index), Bytes(1000))).collect();
        for (index, tag) in tags.into_iter().enumerate() {
            probes.on_arrival(tag, at(index as u64), at(index as u64), Bytes(1000));
        }
        // 1.8 Mbit/s of 1.8 arrived: twice that comes next.
        assert_near(probes.take(may_go_on, Time::from_millis(100)).unwrap(), 1.8e6, 1e3);
        assert_eq!(probes.bps().map(libm::round), may_go_on.then_some(3_600_360.0));
    }
}

#[test]
fn an_application_is_the_limit_once_it_left_four_fifths_of_half_a_second_unused() {
    // 65 % of 1 Mbit/s are 81,250 bytes a second, so 40,625 in half a second. What counts is the unused part:
    // at 1000 bytes in 20 ms, 625 bytes each time, so 32,500 of them after 52.
    let mut app = AppLimit::default();
    for packet in 0..=53 {
        app.on_send(Time::from_millis(20 * packet), Bytes(1000), 1e6);
        assert_eq!(app.is_limited(), packet > 52, "packet {packet}");
    }
    // At 1 Mbit/s 350 bytes more than 65 % go each time: half of the budget is left after 37.
    let mut count = 0;
    while app.is_limited() {
        count += 1;
        app.on_send(Time::from_millis(20 * 53 + 8 * count), Bytes(1000), 1e6);
    }
    assert_eq!(count, 37);
}

fn gcc(options: &[(&str, &str)]) -> Gcc {
    Gcc::new(Config::from_options(options.iter().copied()).unwrap(), &connection(10))
}

/// Reports packets sent every 8 ms, which is 1 Mbit/s, from the packet `from` on. Each takes 50 ms, and
/// `grows_ms` more than the one before.
fn run(gcc: &mut Gcc, from: u64, count: u64, grows_ms: u64) {
    for number in from..from + count {
        let sent_at = Time::from_millis(8 * number);
        let received_at = sent_at + Duration::from_millis(50 + (number - from) * grows_ms);
        let acked: [PacketInfo; 1] = [packet(number, sent_at)];
        let times = [ReceiveTime { number, sent_at, received_at }];
        let mut event = ack(received_at + Duration::from_millis(50), &acked, RTT);
        event.receive_times = &times;
        gcc.on_ack(&event);
    }
}

#[test]
fn a_growing_delay_lowers_the_target_to_85_percent_of_what_arrives() {
    let mut gcc = gcc(&[("initial_rate", "1Mbps"), ("probing", "false")]);
    run(&mut gcc, 0, 100, 0);
    let before = gcc.media_rate().unwrap().as_mbps_f64();
    assert!(before > 1.0, "{before}");
    // They arrive every 10 ms from here on: 0.8 Mbit/s.
    run(&mut gcc, 100, 60, 2);
    let target = gcc.media_rate().unwrap().as_mbps_f64();
    assert!((0.85 * 0.8..0.85).contains(&target), "{target}: 0.85 of what lies between 0.8 and 1");
}

#[test]
fn over_use_halves_the_rate_where_nothing_is_known_of_the_throughput() {
    let mut gcc = gcc(&[("initial_rate", "1Mbps"), ("probing", "false")]);
    run(&mut gcc, 0, 250, 0);
    run(&mut gcc, 250, 60, 2);
    let before = gcc.media_rate().unwrap().as_bps_f64();
    // The receiver's clock steps back: what arrived before says nothing any more.
    let (sent_at, received_at) = (Time::from_millis(2900), Time::from_millis(1));
    let acked = [packet(310, sent_at)];
    let times = [ReceiveTime { number: 310, sent_at, received_at }];
    let mut event = ack(Time::from_secs(3), &acked, RTT);
    event.receive_times = &times;
    gcc.on_ack(&event);
    assert_near(gcc.media_rate().unwrap().as_bps_f64(), before / 2.0, 1.0);
}

#[test]
fn a_standing_delay_lets_the_target_grow() {
    let mut gcc = gcc(&[("initial_rate", "1Mbps"), ("probing", "false")]);
    run(&mut gcc, 0, 500, 0);
    // Nothing is lost and nothing queues: 8 % a second for almost 4 s, from 1 Mbit/s.
    let target = gcc.media_rate().unwrap().as_mbps_f64();
    assert!((1.2..=1.08_f64.powi(4)).contains(&target), "{target}");
}

/// Reports 20 s of packets sent every 8 ms, of which every `nth` is lost, and returns the target in Mbit/s.
fn with_losses(model: &str, nth: u64) -> f64 {
    let mut gcc = gcc(&[("initial_rate", "1Mbps"), ("probing", "false"), ("loss_model", model)]);
    for number in 0..2500 {
        let sent_at = Time::from_millis(8 * number);
        gcc.on_send(&send(sent_at, number, Bytes::ZERO));
        let received_at = sent_at + Duration::from_millis(50);
        let told = [packet(number, sent_at)];
        let times = [ReceiveTime { number, sent_at, received_at }];
        let is_lost = number % nth == 0;
        let mut event = ack(received_at + Duration::from_millis(50), if is_lost { &[] } else { &told }, RTT);
        if is_lost {
            event.lost = &told;
        } else {
            event.receive_times = &times;
        }
        gcc.on_ack(&event);
    }
    gcc.media_rate().unwrap().as_mbps_f64()
}

#[test]
fn the_model_of_losses_keeps_the_rate_where_the_draft_gives_it_up() {
    // 125 packets a second. One in nine is more than 10 %, and one in twenty is between 2 and 10 %.
    assert!(with_losses("draft", 9) < 0.5, "{}", with_losses("draft", 9));
    assert!(with_losses("v2", 9) > 0.85, "{}", with_losses("v2", 9));
    let (draft, v2) = (with_losses("draft", 20), with_losses("v2", 20));
    // At most 1.2 times what arrives after a hold: 0.95 Mbit/s.
    assert!(draft < 1.02 && (1.1..1.2).contains(&v2), "{draft} and {v2}");
    assert_near(with_losses("draft", 3000), with_losses("v2", 3000), 0.05);
}

#[test]
fn the_window_holds_the_round_trip_and_350_ms() {
    let mut gcc = gcc(&[("initial_rate", "1Mbps"), ("probing", "false")]);
    assert_eq!(gcc.cwnd(), packets(10));
    run(&mut gcc, 0, 1, 0);
    let bytes = gcc.media_rate().unwrap().as_bps_f64() / 8.0 * 0.45;
    assert_eq!(gcc.cwnd(), Bytes(bytes as u64));
}

#[test]
fn a_timeout_takes_a_fifth_off_once_a_second() {
    let mut gcc = gcc(&[("initial_rate", "1Mbps"), ("probing", "false")]);
    gcc.on_timeout(&timeout(Time::from_secs(1), Timeout::Pto));
    assert_eq!(gcc.media_rate(), Some(Rate::from_mbps(1)));
    for ms in [1000, 1500] {
        gcc.on_timeout(&timeout(Time::from_millis(ms), Timeout::PersistentCongestion));
        assert_eq!(gcc.media_rate(), Some(Rate::from_bps(800_000)));
    }
    gcc.on_timeout(&timeout(Time::from_millis(2000), Timeout::PersistentCongestion));
    assert_eq!(gcc.media_rate(), Some(Rate::from_bps(640_000)));
}

#[test]
fn the_first_packets_are_bursts_at_three_and_six_times_the_first_rate() {
    let mut gcc = gcc(&[]);
    let mut rates = std::vec![];
    for number in 0..11 {
        rates.push(gcc.media_rate().unwrap().bps() / 1000);
        gcc.on_send(&send(Time::from_millis(number), number, Bytes::ZERO));
    }
    assert_eq!(rates, [900, 900, 900, 900, 900, 1800, 1800, 1800, 1800, 1800, 300]);
}

/// Media rate and pacing rate in bit/s, and what leaves at once, of a call whose first frame has left.
fn paced(options: &[(&str, &str)]) -> (u64, u64, Bytes) {
    let mut gcc = gcc(&[&[("probing", "false")], options].concat());
    gcc.on_send(&SendEvent { app_limited: true, ..send(Time::ZERO, 0, Bytes::ZERO) });
    gcc.on_ack(&ack(Time::from_millis(100), &[packet(0, Time::ZERO)], RTT));
    (gcc.media_rate().unwrap().bps(), gcc.pacing_rate().unwrap().bps(), gcc.send_quantum().unwrap())
}

#[test]
fn a_frame_leaves_at_once_and_a_call_is_paced_a_tenth_above_the_target() {
    let mss = packets(1);
    // A kbit/s more than at the start. 1.1 Mbit/s for 40 ms, and a packet that may begin before that is used
    // up.
    assert_eq!(paced(&[("initial_rate", "1Mbps")]), (1_001_000, 1_101_100, Bytes(5505) + mss));
    assert_eq!(paced(&[("initial_rate", "1Mbps"), ("burst", "0s")]).2, mss);
    assert_eq!(paced(&[("initial_rate", "1Mbps"), ("pacing_gain", "1")]).1, 1_001_000);
    assert_eq!(paced(&[("initial_rate", "100Mbps")]).2, Bytes(63_000) + mss);
}

#[test]
fn a_flow_that_always_has_more_to_send_is_paced_at_its_target() {
    let mut bulk = gcc(&[("probing", "false")]);
    bulk.on_send(&send(Time::ZERO, 0, Bytes::ZERO));
    bulk.on_ack(&ack(Time::from_millis(100), &[packet(0, Time::ZERO)], RTT));
    assert_eq!(bulk.pacing_rate(), bulk.media_rate());
}

#[test]
fn packets_of_a_probe_leave_one_by_one_and_the_encoder_follows_its_rate() {
    let probing = gcc(&[]);
    assert_eq!(probing.send_quantum(), Some(packets(1)));
    assert_eq!(probing.media_rate(), probing.pacing_rate(), "there must be something to probe with");
}

#[test]
fn refuses_rates_out_of_order() {
    let refused =
        |options: &[(&str, &str)]| Config::from_options(options.iter().copied()).unwrap_err().to_string();
    assert_eq!(
        refused(&[("max_rate", "200kbps")]),
        "initial_rate = 300kbps is not within min_rate = 5kbps and max_rate = 200kbps"
    );
    assert!(refused(&[("low_loss", "0.2")]).contains("low_loss = 0.2 is above high_loss = 0.1"));
}
