use super::*;

/// 20 ms with 20 packets of 1500 bytes acknowledged (12 Mbit/s) and 2 lost (1.2 Mbit/s); a window of 40.
fn interval() -> Interval {
    Interval {
        length_s: 0.02,
        sent: 24.0,
        delivered: 20.0,
        delivered_bytes: 30_000.0,
        lost: 2.0,
        rtt_s: 0.06,
        rtt_gradient: 0.25,
        min_rtt_s: 0.03,
        srtt_s: 0.05,
        cwnd: 60_000.0,
        inflight: 45_000.0,
        mss: 1500.0,
    }
}

fn observed(preset: Preset, interval: &Interval, memory: &mut Memory) -> Vec<f32> {
    let mut numbers = vec![0.0; preset.features()];
    preset.observe(interval, memory, &mut numbers);
    numbers
}

/// Orca rl-module/envwrapper.py, `get_state`.
#[test]
fn orca_observes_the_seven_numbers_of_its_authors_program() {
    let mut memory = Memory { most_mbps: 24.0 };
    let pacing = 1.2 * 60_000.0 * 8e-6 / 0.05 / 24.0;
    let expected = [
        12.0 / 24.0,        // throughput, over the highest
        pacing,             // pacing rate, over the same
        5.0 * 1.2 / 24.0,   // five times the rate of losses, over the same
        20.0 / 40.0,        // ACKs over the window in packets
        0.02,               // seconds since the last report
        0.03 / 0.05,        // smallest RTT over the smoothed one
        1.25 * 0.03 / 0.05, // the delay's factor of the reward
    ];
    for (seen, wanted) in observed(Preset::Orca, &interval(), &mut memory).iter().zip(expected) {
        assert!((f64::from(*seen) - wanted).abs() < 1e-6, "{seen} is not {wanted}");
    }
    assert_eq!(memory.most_mbps, 24.0);
    // A delay up to 1.25 times the smallest costs nothing.
    let short = Interval { srtt_s: 0.037, ..interval() };
    assert_eq!(observed(Preset::Orca, &short, &mut memory)[6], 1.0);
}

/// Orca rl-module/envwrapper.py, `get_state`: (throughput - 5 losses) / highest throughput * delay_metric.
#[test]
fn orca_is_rewarded_as_in_its_authors_program() {
    let memory = Memory { most_mbps: 24.0 };
    let reward = Preset::Orca.reward(&interval(), &memory, 48.0, 0.03);
    assert!((reward.total() - (12.0 - 5.0 * 1.2) / 24.0 * 0.75).abs() < 1e-12, "{reward:?}");
    assert!(reward.delay <= 0.0 && reward.loss <= 0.0);
}

/// Orca rl-module/envwrapper.py, `map_action`: 4^a in whole percents.
#[test]
fn orca_scales_the_window_by_powers_of_four_in_whole_percents() {
    assert_eq!(Preset::Orca.action_bounds(), (-1.0, 1.0));
    for (action, factor) in
        [(1.0, 4.0), (0.5, 2.0), (0.1, 1.14), (0.0, 1.0), (-0.5, 0.5), (-1.0, 0.25), (9.0, 4.0)]
    {
        assert_eq!(Preset::Orca.decide(action), Decision::Window(factor), "{action}");
    }
}

/// PCC-RL src/common/sender_obs.py and src/gym/network_sim.py, `run_for_dur`.
#[test]
fn aurora_observes_and_is_rewarded_as_in_its_authors_simulator() {
    let mut memory = Memory::default();
    assert_eq!(observed(Preset::Aurora, &interval(), &mut memory), [0.25, 2.0, 1.2]);
    // 20 packets in 20 ms are 1000 a second.
    let reward = Preset::Aurora.reward(&interval(), &memory, 48.0, 0.03);
    let expected = 1e-3 * (10.0 * 1000.0 - 1e3 * 0.06 - 2e3 * 2.0 / 22.0);
    assert!((reward.total() - expected).abs() < 1e-12, "{reward:?}");
}
