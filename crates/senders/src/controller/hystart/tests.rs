use super::*;

const MSS: Bytes = Bytes(1000);

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn classic() -> Classic {
    let settings = Settings {
        low_window_pkts: 16.0,
        ack_delta: ms(2),
        train: 0.5,
        divisor: 8.0,
        delay_floor: ms(4),
        delay_ceiling: ms(16),
    };
    let mut classic = Classic::new(settings, Time::ZERO);
    // A round of a thousand packets is on its way.
    classic.sent(999);
    classic
}

fn sample(now_ms: u64, rtt: Duration) -> Sample {
    Sample {
        now: Time::from_millis(now_ms),
        rtt,
        newest: now_ms,
        cwnd_pkts: 20.0,
        // The cushion is 1 ms.
        cwnd: Bytes(20_000),
        srtt: ms(100),
        delay_min: ms(100),
    }
}

#[test]
fn a_train_longer_than_half_the_smallest_rtt_ends_slow_start() {
    let mut classic = classic();
    // (100 + 1) / 2 = 50.5 ms into the round, which begins with the first ACK.
    let found = (0..100).find(|&now| classic.found(&sample(now, ms(100))));
    assert_eq!(found, Some(51));
}

#[test]
fn a_gap_breaks_the_train() {
    let mut classic = classic();
    let found = (0..100).find(|&now| now != 20 && now != 21 && classic.found(&sample(now, ms(100))));
    assert_eq!(found, None);
}

#[test]
fn a_small_window_is_not_looked_at() {
    let mut classic = classic();
    let found = (0..100).find(|&now| classic.found(&Sample { cwnd_pkts: 15.9, ..sample(now, ms(300)) }));
    assert_eq!(found, None);
}

#[test]
fn eight_samples_above_the_rise_end_slow_start_and_one_below_forbids_it() {
    // ACKs 3 ms apart make no train. 100 ms / 8 = 12.5 ms of rise.
    let found = |rtt: &dyn Fn(u64) -> Duration| {
        let mut classic = classic();
        (1..33).find(|&index| classic.found(&sample(3 * index, rtt(index))))
    };
    assert_eq!(found(&|_| ms(113)), Some(9), "eight samples must have gone before");
    assert_eq!(found(&|_| ms(112)), None);
    assert_eq!(found(&|index| if index == 3 { ms(112) } else { ms(200) }), None);
}

#[test]
fn the_rise_is_at_least_four_and_at_most_sixteen_milliseconds() {
    let found = |delay_min, rtt| {
        let mut classic = classic();
        (1..33).any(|index| classic.found(&Sample { delay_min, ..sample(3 * index, rtt) }))
    };
    assert!(!found(ms(10), ms(14)) && found(ms(10), ms(15)));
    assert!(!found(ms(500), ms(516)) && found(ms(500), ms(517)));
}

#[test]
fn the_cushion_shrinks_with_the_rate() {
    assert_eq!(cushion(Bytes(20_000), ms(100)), ms(1));
    // 2 * 62.5 MB / 0.1 s = 1.25 GB/s: 262,144 bytes take 0.2097 ms.
    assert_eq!(cushion(Bytes(62_500_000), ms(100)).as_micros(), 209);
}

/// A round of `count` ACKs with this RTT; whether slow start ended in it.
fn round(plus: &mut PlusPlus, number: &mut u64, count: u64, rtt: Duration) -> bool {
    let mut found = false;
    for _ in 0..count {
        found |= plus.found(*number, Some(rtt));
        plus.sent(*number + count);
        *number += 1;
    }
    found
}

#[test]
fn hystart_plus_plus_slows_down_first_and_ends_after_five_rounds() {
    let (mut plus, mut number) = (PlusPlus::new(), 0);
    plus.sent(9);
    assert!(!round(&mut plus, &mut number, 10, ms(100)));
    assert!(!round(&mut plus, &mut number, 10, ms(112)));
    assert_eq!(plus.growth(Bytes(2 * MSS.0), MSS), Bytes(2 * MSS.0), "12 ms is less than 100 / 8");
    assert!(!round(&mut plus, &mut number, 10, ms(126)));
    assert_eq!(plus.phase, Phase::Css { baseline: ms(126), rounds: 0 }, "14 ms are 112 / 8");
    assert_eq!(plus.growth(Bytes(2 * MSS.0), MSS), Bytes(MSS.0 / 2));
    for _ in 0..4 {
        assert!(!round(&mut plus, &mut number, 10, ms(130)));
    }
    assert!(round(&mut plus, &mut number, 10, ms(130)), "the round it began in counts as the first of five");
}

#[test]
fn hystart_plus_plus_takes_a_false_alarm_back() {
    let (mut plus, mut number) = (PlusPlus::new(), 0);
    plus.sent(9);
    round(&mut plus, &mut number, 10, ms(100));
    round(&mut plus, &mut number, 10, ms(120));
    assert!(matches!(plus.phase, Phase::Css { .. }));
    round(&mut plus, &mut number, 10, ms(119));
    assert_eq!(plus.phase, Phase::SlowStart);
}

#[test]
fn hystart_plus_plus_needs_eight_samples_and_limits_stretch_acks() {
    let (mut plus, mut number) = (PlusPlus::new(), 0);
    plus.sent(6);
    round(&mut plus, &mut number, 7, ms(100));
    round(&mut plus, &mut number, 7, ms(200));
    assert_eq!(plus.phase, Phase::SlowStart);
    assert_eq!(plus.growth(Bytes(20 * MSS.0), MSS), Bytes(8 * MSS.0));
}
