//! ABC's two windows in `bpf/abc.h` and `bpf/cubic.h` against `brakelight_senders::controller::abc`.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, Exact, IdleEvent, LossEvent, MarkCount, Marks, PacketInfo,
    ReceiverReport, Rtt, SendEvent, SpuriousEvent, Timeout, TimeoutEvent,
};
use brakelight_core::parameters::Parameters;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_senders::controller::abc::{Abc, Config};

use super::super::objects::abc::types::ack as CAck;
use super::path::{Ack, Event, MSS, Path, Roughness};

unsafe extern "C" {
    fn bl_abc_size() -> usize;
    fn bl_abc_init(abc: *mut u64, mss: u32, initial_bytes: u32, now_ns: u64, as_linux: u32);
    fn bl_abc_on_ack(abc: *mut u64, ack: *mut CAck);
    fn bl_abc_on_loss(abc: *mut u64);
    fn bl_abc_on_timeout(abc: *mut u64, now_ns: u64, repeated: u32);
    fn bl_abc_on_spurious_loss(abc: *mut u64);
    fn bl_abc_on_recovery_exit(abc: *mut u64);
    fn bl_abc_on_idle_restart(abc: *mut u64, idle_ns: u64, rto_ns: u64);
    fn bl_abc_pause(abc: *mut u64, now_ns: u64);
    fn bl_abc_cwnd(abc: *const u64) -> u32;
    fn bl_abc_w_abc(abc: *const u64) -> u32;
    fn bl_abc_w_nonabc(abc: *const u64) -> u32;
}

const RTO: Duration = Duration::from_millis(300);

/// The C state, in words of eight bytes so that it is aligned.
struct Fixed(Vec<u64>);

impl Fixed {
    fn new(as_linux: bool) -> Self {
        // SAFETY: it only returns a size.
        let words = unsafe { bl_abc_size() }.div_ceil(8);
        let mut state = vec![0; words];
        // SAFETY: the state is as large as the C code says and aligned to eight bytes.
        unsafe { bl_abc_init(state.as_mut_ptr(), MSS, 10 * MSS, 0, u32::from(as_linux)) };
        Fixed(state)
    }

    fn tell(&mut self, event: &Event) {
        let state = self.0.as_mut_ptr();
        // SAFETY: the state was made by `bl_abc_init` and nothing else refers to it; the ACK lives through
        // the call.
        unsafe {
            match event {
                Event::Ack(ack) => {
                    let mut ack = c_ack(ack);
                    bl_abc_on_ack(state, &raw mut ack);
                }
                Event::Loss(_) => bl_abc_on_loss(state),
                Event::Timeout { at, repeated } => {
                    bl_abc_on_timeout(state, at.as_nanos(), u32::from(*repeated))
                }
                Event::Spurious(_) => bl_abc_on_spurious_loss(state),
                Event::RecoveryExit(_) => bl_abc_on_recovery_exit(state),
                Event::Idle { at, idle } => {
                    bl_abc_pause(state, at.as_nanos());
                    bl_abc_on_idle_restart(state, idle.as_nanos(), RTO.as_nanos());
                }
            }
        }
    }

    /// cwnd, w_abc, w_nonabc.
    fn windows(&self) -> [u32; 3] {
        let state = self.0.as_ptr();
        // SAFETY: the state was made by `bl_abc_init`; these only read it.
        unsafe { [bl_abc_cwnd(state), bl_abc_w_abc(state), bl_abc_w_nonabc(state)] }
    }
}

fn c_ack(ack: &Ack) -> CAck {
    CAck {
        now_ns: ack.at.as_nanos(),
        newest: ack.newest,
        next: ack.next,
        newly_acked: ack.acked * MSS,
        inflight_before: ack.inflight_before * MSS,
        acked_packets: ack.acked,
        srtt_us: (ack.srtt.as_nanos() / 1000) as u32,
        min_rtt_us: (ack.min_rtt.as_nanos() / 1000) as u32,
        accelerate: (ack.accelerate * MSS) as i32,
        brake: (ack.brake * MSS) as i32,
        ce: (ack.ce * MSS) as i32,
        cwnd_limited: u32::from(ack.cwnd_limited),
        in_recovery: u32::from(ack.in_recovery),
        rtt_us: (ack.rtt.as_nanos() / 1000) as u32,
        paced: 0,
    }
}

fn bytes(packets: u32) -> Bytes {
    Bytes(u64::from(packets) * u64::from(MSS))
}

fn sending(now: Time, number: u64, inflight: Bytes) -> SendEvent {
    SendEvent {
        now,
        size: bytes(1),
        number,
        retransmission: false,
        replaces: None,
        inflight,
        app_limited: false,
        srtt: None,
    }
}

fn tell_core(core: &mut Abc, event: &Event) {
    let count = |packets: u32| MarkCount { packets: u64::from(packets), bytes: bytes(packets) };
    match *event {
        Event::Ack(ack) => {
            let packet = PacketInfo {
                number: ack.newest,
                size: bytes(1),
                sent_at: Time::ZERO,
                delivered: Bytes::ZERO,
                delivered_at: Time::ZERO,
                first_sent_at: Time::ZERO,
                inflight: Bytes::ZERO,
                lost: Bytes::ZERO,
                app_limited: false,
                retransmission: false,
                tag: 0,
            };
            let acked = vec![packet; ack.acked as usize];
            // Rounds are told by what has been sent.
            core.on_send(&sending(ack.at, ack.next - 1, bytes(1)));
            core.on_ack(&AckEvent {
                now: ack.at,
                acked: &acked,
                newest: acked.last().map(|packet| packet.number),
                lost: &[],
                newly_acked: bytes(ack.acked),
                growth: bytes(if ack.in_recovery { 0 } else { ack.acked }),
                newly_lost: Bytes::ZERO,
                inflight_before: bytes(ack.inflight_before),
                inflight: bytes(ack.inflight_before.saturating_sub(ack.acked)),
                delivered: Bytes::ZERO,
                total_lost: Bytes::ZERO,
                rtt: Rtt {
                    sample: Some(Duration::from_micros(ack.rtt.as_nanos() / 1000)),
                    smoothed: ack.srtt,
                    variation: Duration::ZERO,
                    min: ack.min_rtt,
                },
                ack_delay: Duration::ZERO,
                round: 0,
                round_start: false,
                marks: Marks {
                    accelerate: count(ack.accelerate),
                    brake: count(ack.brake),
                    ce: count(ack.ce),
                    exact: Exact::Bytes,
                },
                receive_times: &[],
                report: ReceiverReport::None,
                cwnd_limited: ack.cwnd_limited,
                recovery: ack.recovery(),
            });
        }
        Event::Loss(now) => core.on_loss(&LossEvent {
            now,
            sent_at: now,
            inflight: Bytes::ZERO,
            lost: bytes(1),
            srtt: Duration::from_millis(100),
            min_rtt: Duration::from_millis(100),
        }),
        Event::Timeout { at, repeated } => {
            core.on_timeout(&TimeoutEvent { now: at, kind: Timeout::Rto, inflight: Bytes::ZERO, repeated });
        }
        Event::Spurious(now) => core.on_spurious_loss(&SpuriousEvent { now, timeout: false }),
        Event::RecoveryExit(now) => core.on_recovery_exit(now),
        Event::Idle { at, idle } => {
            core.on_send(&sending(at, 0, Bytes::ZERO));
            core.on_idle_restart(&IdleEvent { now: at, idle, rto: RTO });
        }
    }
}

/// The largest difference of each window, in bytes, and the largest window that occurred.
fn differences(rough: Roughness, acks: u32, cubic: &str) -> ([u32; 3], u32) {
    let connection = Connection {
        mss: Bytes(u64::from(MSS)),
        overhead: Bytes(52),
        initial_window: bytes(10),
        now: Time::ZERO,
        random: Random::stream(1, "controller"),
    };
    let config = Config::from_options([("cubic", cubic)]).expect("the option is known");
    let mut core = Abc::new(config, &connection);
    let mut fixed = Fixed::new(cubic == "linux");
    let mut path = Path::new(rough);
    let (mut most, mut largest, mut heard) = ([0; 3], 0, 0);
    while heard < acks {
        for event in path.next(core.cwnd().0) {
            tell_core(&mut core, &event);
            fixed.tell(&event);
            heard += u32::from(matches!(event, Event::Ack(_)));
            let mut of_core = [core.cwnd().0 as u32, 0, 0];
            core.inspect(&mut |name, value| match name {
                "w_abc_bytes" => of_core[1] = value as u32,
                "w_nonabc_bytes" => of_core[2] = value as u32,
                _ => {}
            });
            largest = largest.max(of_core[0]);
            for (most, (core, fixed)) in most.iter_mut().zip(of_core.into_iter().zip(fixed.windows())) {
                *most = (*most).max(core.abs_diff(fixed));
            }
        }
    }
    (most, largest)
}

fn rough(seed: u64) -> Roughness {
    Roughness {
        seed,
        rate: Rate::from_mbps(24),
        loss: 2e-4,
        ce: 1e-4,
        timeout: 2e-5,
        idle: 2e-5,
        marks: true,
    }
}

fn holds(rough: Roughness, acks: u32, cubic: &str) {
    let (most, largest) = differences(rough, acks, cubic);
    assert!(largest > 20 * MSS, "the windows never grew: {largest} bytes, {rough:?}");
    assert!(
        most.iter().all(|difference| *difference <= MSS),
        "cwnd, w_abc, w_nonabc apart by {most:?} bytes, {rough:?}"
    );
}

#[test]
fn over_a_million_acks_no_window_is_a_packet_away_from_the_cores() {
    holds(rough(1), 1_000_000, "rfc9438");
    holds(rough(1), 1_000_000, "linux");
}

#[test]
fn without_marks_the_second_window_is_the_cores_cubic() {
    for cubic in ["rfc9438", "linux"] {
        holds(Roughness { marks: false, ..rough(2) }, 200_000, cubic);
    }
}

#[test]
fn on_fast_and_slow_and_lossy_paths_the_windows_agree() {
    for seed in 3..11 {
        let rate = Rate::from_mbps([1, 3, 12, 48, 96, 200, 400, 1000][seed as usize - 3]);
        let (loss, ce) = if seed % 2 == 0 { (2e-3, 1e-3) } else { (1e-5, 0.0) };
        let rough = Roughness { rate, loss, ce, ..rough(seed) };
        let (most, _) = differences(rough, 50_000, ["rfc9438", "linux"][seed as usize % 2]);
        assert!(most.iter().all(|difference| *difference <= MSS), "apart by {most:?} bytes, {rough:?}");
    }
}

/// The second window in packets at the end of a train of ACKs of one packet each that lasts for nine tenths
/// of a round trip.
fn after_a_train_of_acks(paced: bool) -> u32 {
    let mut fixed = Fixed::new(true);
    let mut ack = |ms: u64, newest: u64, next: u64, packets: u32| {
        let mut ack = CAck {
            now_ns: ms * 1_000_000,
            newest,
            next,
            newly_acked: packets * MSS,
            inflight_before: 1000 * MSS,
            acked_packets: packets,
            srtt_us: 100_000,
            min_rtt_us: 100_000,
            accelerate: 0,
            brake: 0,
            ce: 0,
            cwnd_limited: 1,
            in_recovery: 0,
            rtt_us: 100_000,
            paced: u32::from(paced),
        };
        // SAFETY: the state was made by `bl_abc_init` and nothing else refers to it; the ACK lives through
        // the call.
        unsafe { bl_abc_on_ack(fixed.0.as_mut_ptr(), &raw mut ack) };
        fixed.windows()[2] / MSS
    };
    // From 10 packets to the 16 that HyStart begins with; the round ends with the packet 30.
    ack(100, 9, 30, 10);
    (0..=90).map(|ms| ack(200 + ms, 30 + ms, 1000, 1)).last().expect("there are some")
}

#[test]
fn a_train_of_acks_ends_slow_start_at_half_a_round_trip_and_with_pacing_at_a_whole_one() {
    // Linux 6.12 tcp_cubic.c, hystart_update: with the cushion at 51 ms; after that no window grows by a
    // packet per ACK.
    let (unpaced, paced) = (after_a_train_of_acks(false), after_a_train_of_acks(true));
    assert_eq!(paced, 20 + 91);
    assert!((20 + 50..20 + 60).contains(&unpaced), "{unpaced} packets");
}
