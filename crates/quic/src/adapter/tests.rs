use super::*;

const MTU: u64 = 1200;

fn adapter(name: &str, tapped: bool, base: Instant) -> (Arc<ControllerAdapter>, Box<dyn Controller>) {
    let config = ControllerConfig::new(name, &[]).unwrap();
    let settings = ControlSettings::new(config, PacketSender::Stack, Path::Own).unwrap();
    let adapter = Arc::new(ControllerAdapter::new(settings, tapped, Some(base)));
    let controller = Factory::only(adapter.clone()).build(base, MTU as u16);
    (adapter, controller)
}

fn ms(base: Instant, ms: u64) -> Instant {
    base + std::time::Duration::from_millis(ms)
}

/// Tells `adapter` of an ACK of `count` packets of the MTU sent at `sent`.
fn acknowledge(adapter: &ControllerAdapter, sent: u64, now: u64, count: u64, inflight: u64) {
    let (sent, now) = (Time::from_millis(sent), Time::from_millis(now));
    adapter.with(|sender| {
        (0..count).for_each(|_| sender.on_acked(now, [(sent, MTU)]));
        sender.on_end_acks(now, inflight, false);
    });
}

#[test]
fn the_window_of_a_stack_leaves_room_for_what_the_controller_allows() {
    let base = Instant::now();
    let (adapter, controller) = adapter("newreno", false, base);
    assert_eq!(controller.window(), adapter.cwnd().0 + 1);
    assert_eq!(controller.initial_window(), 10 * MTU);
}

#[test]
fn slow_start_doubles_the_window_in_a_round_trip_and_a_loss_halves_it() {
    let base = Instant::now();
    let (adapter, mut controller) = adapter("newreno", false, base);
    controller.on_sent(ms(base, 0), 10 * MTU, 9);
    // Two packets per ACK: NewReno takes no more of one into account (rfc3465 2.2).
    (0..5).for_each(|ack| acknowledge(&adapter, 0, 50 + ack, 2, (8 - 2 * ack) * MTU));
    assert_eq!(controller.window(), 20 * MTU + 1);
    controller.on_sent(ms(base, 60), 20 * MTU, 29);
    controller.on_congestion_event(ms(base, 120), ms(base, 60), false, 2 * MTU);
    assert_eq!(controller.window(), 10 * MTU + 1);
    // The same episode.
    controller.on_congestion_event(ms(base, 121), ms(base, 60), false, MTU);
    assert_eq!(controller.window(), 10 * MTU + 1);
    let counters = adapter.counters();
    assert_eq!((counters.lost_packets, counters.lost_bytes), (3, 3 * MTU));
}

// rfc9002 7.8
#[test]
fn a_window_that_was_used_grows_though_the_application_has_run_dry_since_and_one_that_was_not_does_not() {
    let base = Instant::now();
    for (packets, window) in [(10, 20), (3, 10)] {
        let (adapter, mut controller) = adapter("newreno", false, base);
        controller.on_sent(ms(base, 0), packets * MTU, packets - 1);
        adapter.with(|sender| {
            let now = Time::from_millis(50);
            for acked in (2..=packets).step_by(2) {
                (0..2).for_each(|_| sender.on_acked(now + Duration::from_millis(acked), [(Time::ZERO, MTU)]));
                sender.on_end_acks(now + Duration::from_millis(acked), (packets - acked) * MTU, true);
            }
        });
        assert_eq!(controller.window(), window * MTU + 1, "{packets} of 10 packets in flight");
    }
}

/// rfc9002 7.8: ten packets that wait for their pacer do not fill a window of a hundred.
#[test]
fn a_wait_for_the_pacer_with_little_behind_it_lets_no_window_grow() {
    let base = Instant::now();
    for (initial_window, grows) in [(100, false), (15, true)] {
        let config = ControllerConfig::new("newreno", &[]).unwrap();
        let mut settings = ControlSettings::new(config, PacketSender::Driver, Path::Own).unwrap();
        settings.initial_window = initial_window;
        let adapter = Arc::new(ControllerAdapter::new(settings, false, Some(base)));
        let mut controller = Factory::only(adapter.clone()).build(base, MTU as u16);
        controller.on_sent(base, 10 * MTU, 9);
        (0..5).for_each(|ack| acknowledge(&adapter, 0, 50 + ack, 2, (8 - 2 * ack) * MTU));
        let window = adapter.cwnd().0 / MTU;
        assert_eq!(window > u64::from(initial_window), grows, "{window} packets of {initial_window}");
    }
}

#[test]
fn whoever_goes_by_receive_times_asks_for_them() {
    let asks = |name: &str, options: &[(&str, &str)]| {
        let config = ControllerConfig::new(name, options).unwrap();
        ControlSettings::new(config, PacketSender::Driver, Path::Own).unwrap().receive_times
    };
    assert!(asks("quicdc", &[]));
    assert!(asks("abc", &[("other", "quicdc")]), "as the other window");
    assert!(!asks("abc", &[]) && !asks("cubic", &[]));
}

// rfc9002 B.5
#[test]
fn packets_sent_before_an_episode_do_not_let_the_window_grow() {
    let base = Instant::now();
    for ce in [false, true] {
        let (adapter, mut controller) = adapter("newreno", false, base);
        controller.on_sent(ms(base, 0), 10 * MTU, 9);
        (0..5).for_each(|ack| acknowledge(&adapter, 0, 50 + ack, 2, (8 - 2 * ack) * MTU));
        controller.on_sent(ms(base, 60), 20 * MTU, 19);
        controller.on_congestion_event(ms(base, 120), ms(base, 60), false, if ce { 0 } else { MTU });
        // More than a window of packets sent before the episode, before any sent in it.
        acknowledge(&adapter, 60, 121, 8, 12 * MTU);
        controller.on_sent(ms(base, 122), MTU, 20);
        // The same, along with the packet that ends the episode.
        adapter.with(|sender| {
            let now = Time::from_millis(182);
            (0..10).for_each(|_| sender.on_acked(now, [(Time::from_millis(60), MTU)]));
            sender.on_acked(now, [(Time::from_millis(122), MTU)]);
            sender.on_end_acks(now, MTU, false);
        });
        assert_eq!(controller.window(), 10 * MTU + 1, "CE: {ce}");
        // What is sent in the episode and after it does: a window of it earns one packet.
        controller.on_sent(ms(base, 183), 10 * MTU, 30);
        acknowledge(&adapter, 183, 243, 9, MTU);
        assert_eq!(controller.window(), 11 * MTU + 1, "CE: {ce}");
    }
}

// rfc9002 7.3.2, B.6
#[test]
fn a_packet_sent_before_recovery_and_found_lost_after_it_reduces_nothing() {
    let base = Instant::now();
    let (adapter, mut controller) = adapter("newreno", false, base);
    controller.on_sent(ms(base, 0), 20 * MTU, 19);
    controller.on_congestion_event(ms(base, 60), ms(base, 0), false, MTU);
    let reduced = controller.window();
    controller.on_sent(ms(base, 61), 4 * MTU, 23);
    acknowledge(&adapter, 61, 121, 4, 15 * MTU);
    controller.on_congestion_event(ms(base, 121), ms(base, 0), false, MTU);
    assert_eq!(controller.window(), reduced);
    // The same of CE.
    controller.on_congestion_event(ms(base, 122), ms(base, 0), false, 0);
    assert_eq!(controller.window(), reduced);
}

#[test]
fn persistent_congestion_leaves_the_smallest_window() {
    let base = Instant::now();
    let (adapter, mut controller) = adapter("newreno", false, base);
    controller.on_sent(ms(base, 0), 10 * MTU, 9);
    acknowledge(&adapter, 0, 50, 5, 5 * MTU);
    controller.on_congestion_event(ms(base, 5000), ms(base, 0), true, 5 * MTU);
    assert!(controller.window() <= 2 * MTU + 1, "{}", controller.window());
}

#[test]
fn a_window_that_the_application_does_not_fill_does_not_grow() {
    let base = Instant::now();
    let (adapter, mut controller) = adapter("newreno", false, base);
    controller.on_sent(ms(base, 0), 2 * MTU, 1);
    adapter.with(|sender| {
        (0..2).for_each(|_| sender.on_acked(Time::from_millis(50), [(Time::ZERO, MTU)]));
        sender.on_end_acks(Time::from_millis(50), 0, true);
    });
    assert_eq!(controller.window(), 10 * MTU + 1);
}

/// Sends ten packets at once, which empties the bucket, and asks when the next may leave.
fn after_a_burst(pacing_interval: Duration) -> (Arc<ControllerAdapter>, SendAdmission) {
    let base = Instant::now();
    let config = ControllerConfig::new("cubic", &[]).unwrap();
    let mut settings = ControlSettings::new(config, PacketSender::Driver, Path::Public).unwrap();
    // 1.25 * 12 MB in the 333 ms of RFC 9002 6.2.2 are 45,045 bytes a millisecond.
    settings.initial_window = 12_000_000 / MTU as u32;
    settings.pacing_interval = pacing_interval;
    let adapter = Arc::new(ControllerAdapter::new(settings, true, Some(base)));
    let mut controller = Factory::only(adapter.clone()).build(base, MTU as u16);
    assert_eq!(adapter.admit(Time::ZERO, 40), (SendAdmission::Now, 10));
    for number in 0..10 {
        adapter.on_seal(number, &[0; MTU as usize], true);
    }
    controller.on_sent(base, 10 * MTU, 9);
    let (admission, _) = adapter.admit(Time::ZERO, 40);
    (adapter, admission)
}

#[test]
fn packets_are_spaced_one_by_one_without_a_pacing_interval() {
    let (_, admission) = after_a_burst(Duration::ZERO);
    let SendAdmission::Until(at) = admission else { panic!("{admission:?}") };
    // 1,200 of 45,045 bytes a millisecond.
    assert_eq!(at.as_nanos() / 100, 266);
}

#[test]
fn packets_that_go_within_the_pacing_interval_wait_for_each_other() {
    let (adapter, admission) = after_a_burst(Duration::from_millis(1));
    let SendAdmission::Until(at) = admission else { panic!("{admission:?}") };
    // Rounded down to bytes.
    assert_eq!(at.as_nanos() / 1000, 999);
    // Nor does one leave before the others when there are tokens for it.
    assert_eq!(adapter.admit(Time::from_nanos(500_000), 40), (admission, 1));
    assert_eq!(adapter.admit(Time::from_millis(1), 40), (SendAdmission::Now, 37));
    assert_eq!(adapter.admit(Time::from_millis(1), 20), (SendAdmission::Now, 20));
}

#[test]
fn packets_acknowledged_carry_what_was_known_when_they_were_sent() {
    let base = Instant::now();
    let (adapter, mut controller) = adapter("cubic", true, base);
    // Three packets and a pure ACK, sealed and sent one by one, as the driver does.
    for (number, eliciting) in [(0, true), (1, true), (2, false), (3, true)] {
        let size = if eliciting { MTU } else { 40 };
        adapter.on_seal(number, &vec![0; size as usize], eliciting);
        controller.on_sent(ms(base, number), size, number);
    }
    assert_eq!(adapter.inflight(), Bytes(3 * MTU));
    adapter.with(|sender| {
        sender.on_acked(Time::from_millis(60), [(Time::from_millis(0), MTU)]);
        sender.on_acked(Time::from_millis(60), [(Time::from_millis(3), MTU)]);
        sender.on_end_acks(Time::from_millis(60), MTU, false);
    });
    adapter.flush();
    assert_eq!(adapter.take_rtt_sample(), Some(Duration::from_millis(57)));
    assert_eq!(adapter.inflight(), Bytes(MTU));
    assert_eq!(adapter.counters().sent_packets, 3);
}

/// rfc9000 13.4.2.1: a packet arrives out of order between two ACKs with one largest packet, and both ACKs
/// come at once.
#[test]
fn an_ack_that_names_no_larger_packet_still_counts_marks() {
    let base = Instant::now();
    let (adapter, mut controller) = adapter("abc", true, base);
    for number in 0..4 {
        adapter.on_seal(number, &[0; MTU as usize], true);
        controller.on_sent(ms(base, number), MTU, number);
    }
    let hear = |frame: &[u8], newest, acked: &[u64]| {
        crate::tap::frames::acks(frame, |ack| adapter.on_ack(ack, newest)).unwrap();
        adapter.with(|sender| {
            let now = Time::from_millis(60);
            acked.iter().for_each(|&sent| sender.on_acked(now, [(Time::from_millis(sent), MTU)]));
            sender.on_end_acks(now, MTU, false);
        });
    };
    hear(&frame(&[3, 0, 1, 0, 0, 1, 0, 3, 0]), true, &[0, 1, 3]);
    hear(&frame(&[3, 0, 0, 3, 0, 4, 0]), false, &[2]);
    adapter.flush();
    assert_eq!(adapter.validation(), State::Capable);
    assert_eq!(adapter.counters().accelerate_packets, 4);
}

#[test]
fn each_connection_finds_the_tap_that_was_opened_for_it() {
    let config = ControllerConfig::new("abc", &[]).unwrap();
    let factory = Factory::new(ControlSettings::new(config, PacketSender::Stack, Path::Own).unwrap());
    let other = Factory::new(factory.settings.clone());
    let adapter_of = |controller: Box<dyn Controller>| {
        let quinn_controller = controller.into_any().downcast::<QuinnController>().unwrap();
        quinn_controller.adapter().clone()
    };
    let listener = factory.open()();
    let tapped = adapter_of(factory.clone().build(Instant::now(), 1200));
    assert!(tapped.tapped);
    assert_eq!(listener.on_seal(0, &[0; 1200], true), Some(Ecn::Ect1));
    assert_eq!(tapped.with(|sender| sender.validation()), Some(State::Testing));
    // A connection without a tap, or with somebody else's, is on its own.
    assert!(!adapter_of(factory.clone().build(Instant::now(), 1200)).tapped);
    factory.open()();
    assert!(!adapter_of(other.build(Instant::now(), 1200)).tapped);
}

fn inputs() -> u64 {
    std::env::var("BRAKELIGHT_FUZZ_INPUTS").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000)
}

/// An ACK frame with these integers, each in eight bytes.
fn frame(integers: &[u64]) -> Vec<u8> {
    let mut bytes = vec![0x03];
    for integer in integers {
        bytes.extend((integer & (u64::MAX >> 2) | 0b11 << 62).to_be_bytes());
    }
    bytes
}

/// Calls in an order and with values that no stack would use, of which every connection must survive each.
#[test]
fn no_input_makes_an_adapter_panic_or_shut_its_window() {
    let names = support::valid(PacketSender::Driver, Path::Own);
    let base = Instant::now();
    let mut random = Random::stream(11, "adapter");
    let mut done = 0;
    while done < inputs() {
        let name = names[(random.bits() % names.len() as u64) as usize];
        let settings =
            ControlSettings::new(ControllerConfig::new(name, &[]).unwrap(), PacketSender::Driver, Path::Own)
                .unwrap();
        let adapter = Arc::new(ControllerAdapter::new(settings, random.chance(0.8), Some(base)));
        let mut controller = Factory::only(adapter.clone()).build(base, MTU as u16);
        let mut now_ms = 0;
        let mut number = 0;
        for _ in 0..200 {
            done += 1;
            now_ms += if random.chance(0.01) { random.bits() % 100_000 } else { random.bits() % 20 };
            let now = Time::from_millis(now_ms);
            let past = Time::from_millis(now_ms.saturating_sub(random.bits() % 300));
            let size = if random.chance(0.9) { MTU } else { random.bits() % 3000 };
            match random.bits() % 10 {
                0..=3 => {
                    adapter.on_seal(number, &vec![0; size as usize], random.chance(0.9));
                    controller.on_sent(ms(base, now_ms), size, number);
                    number += 1;
                }
                4 | 5 => {
                    let any: Vec<u64> = (0..7).map(|_| random.bits() >> (random.bits() % 64)).collect();
                    let (largest, counts) = (any[0], [any[4], any[5], any[6]]);
                    let acked =
                        frame(&[largest, any[1], 0, any[2] % (largest + 1), counts[0], counts[1], counts[2]]);
                    let newest = random.chance(0.9);
                    let read = crate::tap::frames::acks(&acked, |ack| adapter.on_ack(ack, newest));
                    assert!(read.is_ok() || largest > u64::MAX >> 2, "{read:?}");
                    adapter.with(|sender| {
                        (0..random.bits() % 4).for_each(|_| sender.on_acked(now, [(past, size)]));
                        sender.on_end_acks(now, random.bits() % 100_000, random.chance(0.3));
                    });
                }
                6 => {
                    let lost = random.bits() % (4 * MTU);
                    adapter.with(|sender| sender.on_congestion(now, past, random.chance(0.1), lost));
                }
                7 => {
                    let mut report = crate::report::Unreported::default();
                    (0..random.bits() % 20).for_each(|_| {
                        let at = Time::from_nanos(random.bits() >> 20);
                        report.on_packet(
                            number.saturating_sub(random.bits() % 64),
                            at,
                            Ecn::from_bits(random.bits() as u8),
                        );
                    });
                    for report in report.take(Time::from_nanos(random.bits() >> 20)) {
                        let mut bytes = report.encode().to_vec();
                        let place = (random.bits() % bytes.len() as u64) as usize;
                        bytes[place] ^= 1 << (random.bits() % 8);
                        adapter.on_datagram(now, &bytes);
                    }
                }
                8 => adapter.on_timer(now),
                _ => {
                    adapter.admit(now, 1);
                }
            }
            assert!(controller.window() >= 1);
            assert!(adapter.cwnd() > Bytes::ZERO, "{name}");
        }
    }
}
