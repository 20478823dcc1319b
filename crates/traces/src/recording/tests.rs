use brakelight_core::packet::Direction;

use super::*;

fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// 12 Mbit/s for 10 ms, then nothing for 5 ms.
fn rates() -> Recording {
    let mut recording = Recording::new(ms(15));
    let rates = vec![(ms(0), Rate::from_mbps(12)), (ms(10), Rate::ZERO)];
    recording.up.capacity = Some(RecordedCapacity::Rates(rates));
    recording
}

#[test]
fn rates_become_opportunities_in_the_microsecond_in_which_their_bits_are_there() {
    let instants: Vec<(u64, u32)> = rates().trace(None).unwrap().micros().collect();
    let every_ms = (1..=10).map(|ms| (1_000 * ms, 1));
    assert_eq!(instants, every_ms.chain([(15_000, 1)]).collect::<Vec<_>>());
    let mut faster = Recording::new(ms(1));
    faster.down.capacity = Some(RecordedCapacity::Rates(vec![(ms(0), Rate::from_mbps(36))]));
    let instants: Vec<(u64, u32)> = faster.trace(None).unwrap().micros().collect();
    assert_eq!(instants, [(334, 1), (667, 1), (1_000, 1)]);
}

#[test]
fn a_rate_that_changes_keeps_what_was_carried() {
    let mut recording = Recording::new(us(1_500));
    let rates = vec![(us(0), Rate::from_mbps(12)), (us(500), Rate::from_mbps(24))];
    recording.down.capacity = Some(RecordedCapacity::Rates(rates));
    // Half a packet by 500 us, the other half in 250.
    let instants: Vec<(u64, u32)> = recording.trace(None).unwrap().micros().collect();
    assert_eq!(instants, [(750, 1), (1_250, 1), (1_500, 1)]);
}

#[test]
fn a_direction_has_its_own_conditions_ahead_and_the_other_s_back() {
    let mut recording = rates();
    recording.up.delays = vec![(ms(0), ms(20))];
    recording.down.losses = vec![(ms(0), 7)];
    recording.about.bin_us = Some(5_000);
    let trace = recording.trace(None).unwrap();
    let recorded = trace.recorded().unwrap();
    assert_eq!(recorded.conditions(Direction::Forward).unwrap().delay(ms(3)), ms(20));
    assert_eq!(recorded.conditions(Direction::Reverse).unwrap().loss(ms(3)), 7);
    assert_eq!(trace.resolution(), ms(5));
    let error = recording.trace(Some(LinkDirection::Down)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the recording has no capacity `down`: `#up` after the file's name takes the other direction"
    );
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let refusal = |change: fn(&mut Recording)| {
        let mut recording = rates();
        change(&mut recording);
        recording.check().unwrap_err().to_string()
    };
    assert_eq!(
        refusal(|it| it.length = Duration::ZERO),
        "the recording lasts 0 us: valid are 1 to 4294967295000"
    );
    assert_eq!(
        refusal(|it| it.up.delays = vec![(ms(1), ms(5))]),
        "`up`: the first value begins at 1ms: it must begin at 0 s"
    );
    assert_eq!(refusal(|it| it.length = ms(10)), "`up`: a value begins at 10ms, after the period");
    let mut silent = rates();
    silent.up.capacity = Some(RecordedCapacity::Rates(vec![(ms(0), Rate::from_bps(1))]));
    assert_eq!(
        silent.trace(None).unwrap_err().to_string(),
        "the recording carries 0 opportunities of 1.5kB: valid are 1 to 1073741824"
    );
}
