//! Delay control in `bpf/wdc.h` and `bpf/westwood.h` against `controller::quicdc` of `brakelight-senders`,
//! and the peer's clock.
//!
//! The receiver's clock is set otherwise, and runs fast or slow; its timestamps tick as the kernel's do. Both
//! sides see the ticks.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, IdleEvent, LossEvent, Marks, PacketInfo, ReceiveTime, ReceiverReport,
    Rtt, SpuriousEvent, Timeout, TimeoutEvent,
};
use brakelight_core::parameters::Parameters;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_senders::controller::quicdc::{Config, QuicDc};

use super::super::objects::wdc::types::{peer_clock, wdc_ack, wdc_settings};
use super::path::{Ack, Event, MSS, Path, Roughness, SIZE};

unsafe extern "C" {
    fn bl_wdc_size() -> usize;
    fn bl_wdc_init(wdc: *mut u64, mss: u32, initial_bytes: u64, now_us: u64);
    fn bl_wdc_on_ack(wdc: *mut u64, ack: *const wdc_ack, settings: *const wdc_settings);
    fn bl_wdc_on_loss(wdc: *mut u64, now_us: u64, sent_us: u64);
    fn bl_wdc_on_timeout(wdc: *mut u64, now_us: u64, repeated: u32);
    fn bl_wdc_on_spurious_loss(wdc: *mut u64);
    fn bl_wdc_on_recovery_exit(wdc: *mut u64);
    fn bl_wdc_on_idle_restart(wdc: *mut u64, now_us: u64, idle_us: u64, rto_us: u64);
    fn bl_wdc_cwnd(wdc: *const u64) -> u64;
    fn bl_wdc_queueing_us(wdc: *const u64) -> u32;
    fn bl_wdc_delay_events(wdc: *const u64) -> u32;
    fn bl_peer_clock_read(
        clock: *mut peer_clock,
        timestamp: u32,
        now_us: u64,
        tick_us: u32,
        received_us: *mut i64,
    ) -> u32;
}

const RTO: Duration = Duration::from_millis(300);

fn micros(time: Time) -> u64 {
    time.as_nanos() / 1000
}

fn time_of(us: u64) -> Time {
    Time::ZERO + Duration::from_micros(us)
}

fn whole(time: Time) -> Time {
    time_of(micros(time))
}

/// The receiver's timestamps: a clock that was set otherwise and is not quite as fast.
#[derive(Clone, Copy)]
struct Ticks {
    tick_us: u32,
    ppm: i64,
    /// Just before it wraps.
    start: u32,
}

impl Ticks {
    /// Ticks since its start.
    fn count(self, time: Time) -> i64 {
        let us = micros(time) as i64;
        (us + us * self.ppm / 1_000_000) / i64::from(self.tick_us)
    }

    fn at(self, time: Time) -> u32 {
        self.start.wrapping_add(self.count(time) as u32)
    }
}

fn read(clock: &mut peer_clock, timestamp: u32, now_us: u64, tick_us: u32) -> Option<i64> {
    let mut received_us = 0;
    // SAFETY: both live through the call, and the clock is the C code's structure.
    let good =
        unsafe { bl_peer_clock_read(&raw mut *clock, timestamp, now_us, tick_us, &raw mut received_us) };
    (good != 0).then_some(received_us)
}

/// Both controllers and the newest packet measured.
struct Pair {
    core: QuicDc,
    fixed: Vec<u64>,
    settings: wdc_settings,
    clock: peer_clock,
    ticks: Ticks,
    /// The count at the first ACK.
    first: Option<i64>,
    newest_sent: Time,
}

impl Pair {
    fn new(threshold: &str, settings: wdc_settings, ticks: Ticks) -> Self {
        let connection = Connection {
            mss: Bytes(u64::from(MSS)),
            overhead: Bytes(52),
            initial_window: Bytes(u64::from(10 * MSS)),
            now: Time::ZERO,
            random: Random::stream(1, "controller"),
        };
        // In the kernel a share is the paper's.
        let options = [("threshold", threshold), ("most", "none"), ("forget", "none")];
        let config = Config::from_options(options).expect("the options are known");
        // SAFETY: it only returns a size.
        let mut fixed = vec![0; unsafe { bl_wdc_size() }.div_ceil(8)];
        // SAFETY: the state is as large as the C code says and aligned to eight bytes.
        unsafe { bl_wdc_init(fixed.as_mut_ptr(), MSS, u64::from(10 * MSS), 0) };
        let clock = peer_clock::default();
        let core = QuicDc::new(config, &connection);
        Pair { core, fixed, settings, clock, ticks, first: None, newest_sent: Time::ZERO }
    }

    fn ack(&mut self, ack: &Ack) {
        // All times in whole microseconds, as the kernel has them.
        let (now_us, sent_at) = (micros(ack.at), whole(ack.at.saturating_sub(ack.rtt)));
        let now = time_of(now_us);
        let rtt = now.since(sent_at);
        let rtt_us = (rtt.as_nanos() / 1000) as u32;
        let received_us = read(&mut self.clock, self.ticks.at(ack.received), now_us, self.ticks.tick_us)
            .expect("it ticks as it should");
        let count = self.ticks.count(ack.received);
        let told_us = (count - *self.first.get_or_insert(count)) * i64::from(self.ticks.tick_us);
        assert_eq!(received_us, told_us, "the receiver's clock, unwrapped");
        self.newest_sent = self.newest_sent.max(sent_at);
        let packet = PacketInfo {
            number: ack.newest,
            size: Bytes(u64::from(MSS)),
            sent_at,
            delivered: Bytes::ZERO,
            delivered_at: Time::ZERO,
            first_sent_at: Time::ZERO,
            inflight: Bytes::ZERO,
            lost: Bytes::ZERO,
            app_limited: false,
            retransmission: false,
            tag: 0,
        };
        // An offset keeps the receiver's clock above zero; it falls out of the differences.
        let received_at = time_of((told_us + 1_000_000_000) as u64);
        let newly_acked = Bytes(u64::from(ack.acked * MSS));
        self.core.on_ack(&AckEvent {
            now,
            acked: &[packet],
            newest: Some(packet.number),
            lost: &[],
            newly_acked,
            growth: if ack.in_recovery { Bytes::ZERO } else { newly_acked },
            newly_lost: Bytes::ZERO,
            inflight_before: Bytes::ZERO,
            inflight: Bytes::ZERO,
            delivered: Bytes::ZERO,
            total_lost: Bytes::ZERO,
            rtt: Rtt { sample: Some(rtt), smoothed: ack.srtt, variation: Duration::ZERO, min: ack.min_rtt },
            ack_delay: Duration::ZERO,
            round: 0,
            round_start: false,
            marks: Marks::default(),
            receive_times: &[ReceiveTime { number: ack.newest, sent_at, received_at }],
            report: ReceiverReport::None,
            cwnd_limited: ack.cwnd_limited,
            recovery: ack.recovery(),
        });
        let c_ack = wdc_ack {
            now_us,
            received_us,
            newly_acked: ack.acked * MSS,
            rtt_us,
            measured: 1,
            cwnd_limited: u32::from(ack.cwnd_limited),
            in_recovery: u32::from(ack.in_recovery),
            unused: 0,
        };
        // SAFETY: the state was made by `bl_wdc_init` and nothing else refers to it; the rest lives through
        // the call.
        unsafe { bl_wdc_on_ack(self.fixed.as_mut_ptr(), &raw const c_ack, &raw const self.settings) };
    }

    fn tell(&mut self, event: &Event) {
        let state = self.fixed.as_mut_ptr();
        match *event {
            Event::Ack(ref ack) => self.ack(ack),
            Event::Loss(at) => {
                self.core.on_loss(&LossEvent {
                    now: whole(at),
                    sent_at: self.newest_sent,
                    inflight: Bytes::ZERO,
                    lost: Bytes(u64::from(MSS)),
                    srtt: Duration::from_millis(100),
                    min_rtt: Duration::from_millis(100),
                });
                // SAFETY: as above.
                unsafe { bl_wdc_on_loss(state, micros(at), micros(self.newest_sent)) };
            }
            Event::Timeout { at, repeated } => {
                let event =
                    TimeoutEvent { now: whole(at), kind: Timeout::Rto, inflight: Bytes::ZERO, repeated };
                self.core.on_timeout(&event);
                // SAFETY: as above.
                unsafe { bl_wdc_on_timeout(state, micros(at), u32::from(repeated)) };
            }
            Event::Spurious(at) => {
                self.core.on_spurious_loss(&SpuriousEvent { now: whole(at), timeout: false });
                // SAFETY: as above.
                unsafe { bl_wdc_on_spurious_loss(state) };
            }
            Event::RecoveryExit(at) => {
                self.core.on_recovery_exit(whole(at));
                // SAFETY: as above.
                unsafe { bl_wdc_on_recovery_exit(state) };
            }
            Event::Idle { at, idle } => {
                let idle_us = idle.as_nanos() / 1000;
                self.core.on_idle_restart(&IdleEvent { now: whole(at), idle, rto: RTO });
                // SAFETY: as above.
                unsafe { bl_wdc_on_idle_restart(state, micros(at), idle_us, RTO.as_nanos() / 1000) };
            }
        }
    }

    /// cwnd in bytes, OWQD in microseconds, reductions by delay: of the core, of the C code.
    fn state(&self) -> [[u64; 3]; 2] {
        let mut core = [self.core.cwnd().0, 0, 0];
        self.core.inspect(&mut |name, value| match name {
            "owqd_ms" => core[1] = (value * 1e3).round() as u64,
            "delay_events" => core[2] = value as u64,
            _ => {}
        });
        let state = self.fixed.as_ptr();
        // SAFETY: as above; these only read.
        let fixed = unsafe {
            [bl_wdc_cwnd(state), u64::from(bl_wdc_queueing_us(state)), u64::from(bl_wdc_delay_events(state))]
        };
        [core, fixed]
    }
}

fn rough(seed: u64, mbps: u64) -> Roughness {
    let rate = Rate::from_mbps(mbps);
    Roughness { seed, rate, loss: 2e-4, ce: 0.0, timeout: 2e-5, idle: 2e-5, marks: false }
}

/// Holds both against each other; returns the largest difference of cwnd and the number of reductions by
/// delay.
fn hold(rough: Roughness, acks: u32, threshold: &str, settings: wdc_settings, ticks: Ticks) -> (u64, u64) {
    let mut pair = Pair::new(threshold, settings, ticks);
    let mut path = Path::new(rough);
    let (mut most, mut heard) = (0, 0);
    while heard < acks {
        for event in path.next(pair.core.cwnd().0) {
            pair.tell(&event);
            heard += u32::from(matches!(event, Event::Ack(_)));
            let [core, fixed] = pair.state();
            most = most.max(core[0].abs_diff(fixed[0]));
            assert_eq!(core[1..], fixed[1..], "OWQD in us and reductions by delay, {rough:?}");
        }
    }
    (most, pair.state()[0][2])
}

const MILLISECONDS: Ticks = Ticks { tick_us: 1000, ppm: 0, start: u32::MAX - 60_000 };

#[test]
fn over_a_million_acks_the_window_is_less_than_a_packet_away_from_the_cores() {
    let settings = wdc_settings { threshold_us: 20_000, share_ppm: 0 };
    let (most, events) = hold(rough(1, 24), 1_000_000, "20ms", settings, MILLISECONDS);
    assert!(events > 1000, "{events} reductions by delay");
    assert!(most < u64::from(SIZE), "cwnd apart by {most} bytes");
}

#[test]
fn a_share_of_the_buffer_means_the_same_to_both() {
    for (seed, share) in [(2, 10), (3, 50), (4, 80)] {
        let settings = wdc_settings { threshold_us: 0, share_ppm: share * 10_000 };
        let (most, events) = hold(rough(seed, 12), 100_000, &format!("{share}%"), settings, MILLISECONDS);
        assert!(events > 10, "{events} reductions by delay at {share} %");
        assert!(most < u64::from(SIZE), "cwnd apart by {most} bytes at {share} %");
    }
}

#[test]
fn clocks_that_drift_and_ticks_of_a_microsecond_are_read_alike() {
    for (seed, ticks) in [
        (5, Ticks { ppm: 50, ..MILLISECONDS }),
        (6, Ticks { ppm: -50, ..MILLISECONDS }),
        (7, Ticks { tick_us: 1, ppm: 100, start: u32::MAX - 5 }),
    ] {
        for mbps in [1, 96, 1000] {
            let settings = wdc_settings { threshold_us: 10_000, share_ppm: 0 };
            let (most, _) = hold(rough(seed, mbps), 50_000, "10ms", settings, ticks);
            assert!(most < u64::from(SIZE), "cwnd apart by {most} bytes at {mbps} Mbit/s");
        }
    }
}

#[test]
fn timestamps_of_another_unit_are_found_out_within_a_second() {
    for (tick_us, good) in [(1000, true), (10_000, false), (1, false)] {
        // The peer ticks every `tick_us`; milliseconds are expected of it.
        let ticks = Ticks { tick_us, ppm: 0, start: 7 };
        let mut clock = peer_clock::default();
        let mut last = None;
        for ms in (0..1100).step_by(10) {
            last = read(&mut clock, ticks.at(Time::from_millis(ms)), ms * 1000, 1000);
        }
        assert_eq!(last.is_some(), good, "{tick_us} us");
    }
}

#[test]
fn an_ack_that_was_held_up_does_not_condemn_the_clock() {
    let mut clock = peer_clock::default();
    let mut at = |sent: u64, heard: u64| {
        read(&mut clock, MILLISECONDS.at(Time::from_millis(sent)), heard * 1000, 1000)
    };
    assert_eq!(at(0, 0), Some(0));
    // Sent after 300 ms, heard after 1.2 s, and so the first one heard of in more than a second.
    assert_eq!(at(300, 1200), None);
    assert_eq!(at(1250, 1300), Some(1_250_000));
    // Once found good it stays so.
    assert_eq!(at(1300, 9000), Some(1_300_000));
}

#[test]
fn a_clock_is_read_again_after_a_pause_longer_than_its_timestamps_tell() {
    let ticks = Ticks { tick_us: 1, ppm: 0, start: 7 };
    let mut clock = peer_clock::default();
    let mut last = None;
    // 71.6 minutes are 2^32 us.
    for pause in [0, 40 * 60_000, 120 * 60_000] {
        for ms in (0..1500).step_by(10) {
            let ms = pause + ms;
            last = read(&mut clock, ticks.at(Time::from_millis(ms)), ms * 1000, 1);
            assert!(last.is_some(), "{ms} ms");
        }
    }
    assert_eq!(last, Some(1_490_000));
}
