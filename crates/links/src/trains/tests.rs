use alloc::vec;

use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn train(begin: u64, delay: u64, opportunities: &[u64]) -> Train {
    Train { at: ms(begin), delay: ms(delay), opportunities: opportunities.iter().map(|&o| ms(o)).collect() }
}

/// Two trains of four packets in 30 ms, 100 ms apart: 20 ms of base delay, then 40 ms, then 20 ms again.
fn recorded() -> Vec<Train> {
    vec![train(0, 20, &[0, 10, 20, 30]), train(100, 40, &[0, 5, 10, 15]), train(200, 20, &[0])]
}

fn progress() -> Progress {
    let trains = Trains::new(recorded(), Trains::OPPORTUNITY, Trains::IDLE).unwrap();
    Progress::new(trains, Duration::ZERO)
}

/// Releases of full packets that come at these ms: when, in ms, and whether they are light.
fn released(arrivals: &[u64]) -> Vec<(u64, bool)> {
    let mut progress = progress();
    let release = |&ms| {
        let release = progress.release(at(ms), 1400);
        (release.at.as_nanos() / 1_000_000, release.light)
    };
    arrivals.iter().map(release).collect()
}

#[test]
fn a_burst_takes_the_light_opportunities_and_then_the_heavy_ones() {
    // Four opportunities at 20, 30, 40, 50 ms; the fifth packet would be at max(20, 30) and keeps the order.
    let light = [20, 30, 40, 50].map(|ms| (ms, true));
    assert_eq!(released(&[0; 6]), [&light[..], &[(50, false), (50, false)]].concat());
}

#[test]
fn the_delay_beyond_the_base_is_what_a_packet_waited() {
    let mut progress = progress();
    let waited: Vec<Duration> = (0..5).map(|_| progress.release(at(0), 1400).waited).collect();
    assert_eq!(waited, [0, 10, 20, 30, 30].map(ms));
}

#[test]
fn a_packet_takes_the_first_opportunity_that_has_not_passed() {
    // The opportunity at 10 ms is used by the second packet; it has passed at 11 ms.
    assert_eq!(released(&[0, 0, 10]), [(20, true), (30, true), (40, true)]);
    assert_eq!(released(&[0, 0, 11]), [(20, true), (30, true), (40, true)]);
    // It passes unused where a train outlives a pause.
    let trains = Trains::new(recorded(), Trains::OPPORTUNITY, ms(15)).unwrap();
    let mut progress = Progress::new(trains, Duration::ZERO);
    let release = |ms| progress.release(at(ms), 1400).at;
    assert_eq!([0, 13].map(release), [20, 40].map(at));
}

#[test]
fn a_pause_begins_a_train_of_the_recording_s_place() {
    // A packet of 60 ms is 40 ms after the queue ran empty: base delay 20 + 20 * 60 / 100.
    assert_eq!(released(&[0, 60]), [(20, true), (80 + 12, true)]);
    // At 150 ms the second train is under way: 40 - 20 * 50 / 100, and its opportunities are 5 ms apart.
    assert_eq!(released(&[0, 150, 150]), [(20, true), (180, true), (185, true)]);
    // At 201 ms the recording has started over, 1 ms ago.
    assert_eq!(released(&[0, 201, 201]), [(20, true), (221, true), (231, true)]);
}

#[test]
fn a_pause_of_no_more_than_the_idle_time_goes_on_with_the_train() {
    // Released at 20 ms: a packet of 1 ms comes as its queue has been empty for a millisecond.
    assert_eq!(released(&[0, 1]), [(20, true), (30, true)]);
    assert!(released(&[0, 2])[1].1);
    assert_eq!(progress_after(&[0, 2]).begun, at(2));
    assert_eq!(progress_after(&[0, 1]).begun, at(0));
}

fn progress_after(arrivals: &[u64]) -> Current {
    let mut progress = progress();
    for &ms in arrivals {
        progress.release(at(ms), 1400);
    }
    progress.current.unwrap()
}

#[test]
fn a_busy_flow_stays_heavy_until_a_pause_as_long_as_a_train() {
    // Heavy from the fifth packet on: released max(20, 30) after it comes.
    let arrivals: Vec<u64> = [0; 4].into_iter().chain((20..60).step_by(5)).collect();
    let heavy = |list: &[(u64, bool)]| list[4..].iter().all(|(_, light)| !light);
    assert!(heavy(&released(&arrivals)));
    assert_eq!(released(&arrivals)[11], (55 + 30, false));
    // 55 + 30 - 20 + 1 = 66 ms is the last that goes on.
    let with = |next| [&arrivals[..], &[next]].concat();
    assert_eq!(released(&with(66)).pop(), Some((66 + 30, false)));
    assert!(released(&with(67)).pop().is_some_and(|(_, light)| light));
}

#[test]
fn small_packets_share_an_opportunity_and_large_ones_take_of_the_next() {
    let released = |sizes: &[u32]| -> Vec<u64> {
        let mut progress = progress();
        sizes.iter().map(|&size| progress.release(at(0), size).at.as_nanos() / 1_000_000).collect()
    };
    assert_eq!(released(&[40, 1360, 700, 700]), [20, 20, 30, 30]);
    // Nobody splits a packet that would fit into an opportunity of its own.
    assert_eq!(released(&[1000, 1000, 400]), [20, 30, 30]);
    // 2100 bytes are one and a half: the next begins in the second half.
    assert_eq!(released(&[2100, 700, 1400]), [20, 30, 40]);
    // Two opportunities of debt leave the second one out.
    assert_eq!(released(&[2800, 1400]), [20, 40]);
}

#[test]
fn fourteen_packets_of_1500_bytes_take_fifteen_opportunities() {
    let opportunities: Vec<u64> = (0..100).collect();
    let trains = vec![train(0, 20, &opportunities), train(100, 20, &[0])];
    let trains = Trains::new(trains, Trains::OPPORTUNITY, Trains::IDLE).unwrap();
    let mut progress = Progress::new(trains, Duration::ZERO);
    let left: Vec<u64> = (0..29).map(|_| progress.release(at(0), 1500).at.as_nanos() / 1_000_000).collect();
    assert_eq!((left[0], left[13], left[14], left[28]), (20, 33, 35, 50));
}

#[test]
fn a_train_of_a_shorter_delay_does_not_overtake() {
    // Released at 92 + ... by a train with a higher base delay than the next.
    let trains = vec![train(0, 50, &[0]), train(10, 5, &[0]), train(20, 5, &[0])];
    let trains = Trains::new(trains, Trains::OPPORTUNITY, Duration::ZERO).unwrap();
    let mut progress = Progress::new(trains, Duration::ZERO);
    assert_eq!(progress.release(at(0), 1400), Release { at: at(50), waited: ms(0), light: true });
    // Its own train: 15 ms would be its release.
    let second = progress.release(at(10), 1400);
    assert_eq!(second, Release { at: at(50), waited: ms(35), light: false });
}

#[test]
fn a_run_may_begin_in_the_middle() {
    let trains = Trains::new(recorded(), Trains::OPPORTUNITY, Trains::IDLE).unwrap();
    let mut progress = Progress::new(trains, ms(150));
    assert_eq!(progress.release(at(0), 1400).at, at(30));
    assert_eq!(progress.release_heavy(at(50)).at, at(70));
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let refused = |trains, bytes, idle| Trains::new(trains, Bytes(bytes), idle).unwrap_err();
    let fine = recorded;
    assert_eq!(refused(vec![train(0, 1, &[0])], 1400, ms(0)), TrainsError::TooFew);
    let same = vec![train(5, 1, &[0]), train(5, 1, &[0])];
    assert_eq!(refused(same, 1400, ms(0)), TrainsError::NotLater(ms(5)));
    let long = vec![train(0, 60_001, &[0]), train(5, 1, &[0])];
    assert_eq!(refused(long, 1400, ms(0)), TrainsError::TooLong(ms(60_001)));
    let late = vec![train(0, 1, &[60_001]), train(5, 1, &[0])];
    assert_eq!(refused(late, 1400, ms(0)), TrainsError::TooLong(ms(60_001)));
    let empty = vec![train(0, 1, &[0]), train(5, 1, &[])];
    assert_eq!(refused(empty, 1400, ms(0)), TrainsError::NoOpportunity(ms(5)));
    let decreasing = vec![train(0, 1, &[4, 3]), train(5, 1, &[0])];
    assert_eq!(refused(decreasing, 1400, ms(0)), TrainsError::Decreasing(ms(0)));
    assert_eq!(refused(fine(), 0, ms(0)), TrainsError::Size(Bytes(0)));
    assert_eq!(refused(fine(), 65_537, ms(0)), TrainsError::Size(Bytes(65_537)));
    assert_eq!(refused(fine(), 1400, ms(60_001)), TrainsError::TooLong(ms(60_001)));
}
