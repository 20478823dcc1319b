//! The signature behaviour of the classic end-to-end controllers over a path whose rate and delay are known.

use brakelight_core::controller::Controller;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Rate;
use brakelight_registry::AnyController;
use brakelight_testkit::{FlowSpec, Link, MSS, OVERHEAD, World, inspect};

const RTT: Duration = Duration::from_millis(100);

fn secs(secs: u64) -> Time {
    Time::from_secs(secs)
}

fn window_pkts(controller: &AnyController) -> f64 {
    controller.cwnd().as_f64() / MSS.as_f64()
}

fn alone(name: &str, options: &[(&str, &str)], mbps: u64, buffer: usize) -> World {
    let flow = FlowSpec { options, ..FlowSpec::bulk(name, RTT) };
    World::new(Link::fixed(Rate::from_mbps(mbps), buffer), &[flow])
}

/// Share of the link used between two times.
fn used(world: &World, mbps: u64, from: u64, to: u64) -> f64 {
    world.throughput(0, secs(from), secs(to)).as_mbps_f64() / mbps as f64
}

fn mean_sojourn_ms(world: &World, from: u64, to: u64) -> f64 {
    let sojourns = world.sojourns(secs(from), secs(to));
    sojourns.iter().map(|sojourn| sojourn.as_millis_f64()).sum::<f64>() / sojourns.len() as f64
}

/// NewReno's sawtooth runs between half of what the path holds and all of it: with a buffer of one
/// bandwidth-delay product the link never idles, with a fifth of it it does.
#[test]
fn newreno_swings_between_half_and_all_of_the_path() {
    let mut world = alone("newreno", &[], 12, 100);
    let (mut low, mut high) = (f64::MAX, 0.0_f64);
    world.run(secs(90), |now, _, controller| {
        if now > secs(20) {
            (low, high) = (low.min(window_pkts(controller)), high.max(window_pkts(controller)));
        }
    });
    // 101 packets in the pipe (100 ms and one of its own) and 100 in the buffer.
    assert!((200.0..204.0).contains(&high) && (99.0..103.0).contains(&low), "{low} to {high}");
    assert!(used(&world, 12, 20, 90) > 0.999);
    let mut shallow = alone("newreno", &[], 12, 20);
    shallow.run(secs(90), |_, _, _| {});
    let share = used(&shallow, 12, 20, 90);
    assert!((0.82..0.90).contains(&share), "{share}");
}

/// CUBIC goes to seven tenths and is back at its maximum after K = cbrt(0.3 W_max / 0.4) seconds.
#[test]
fn cubic_returns_to_its_maximum_after_k() {
    let mut world = alone("cubic", &[("fast_convergence", "false")], 12, 100);
    let (mut last, mut peaks) = (0.0, Vec::new());
    world.run(secs(90), |now, _, controller| {
        let window = window_pkts(controller);
        if now > secs(20) && window < 0.8 * last {
            assert!((0.69..0.71).contains(&(window / last)), "{last} to {window}");
            peaks.push((now, last));
        }
        last = window;
    });
    assert!(peaks.len() >= 8, "{peaks:?}");
    for pair in peaks.windows(2) {
        let (period_s, w_max) = (pair[1].0.since(pair[0].0).as_secs_f64(), pair[0].1);
        let k_s = (0.3 * w_max / 0.4).cbrt();
        // The round trip that repairs the loss comes on top.
        assert!((0.95 * k_s..1.25 * k_s).contains(&period_s), "{period_s} s, K = {k_s} s, W_max = {w_max}");
    }
}

#[test]
fn hystart_leaves_slow_start_before_the_queue_overflows() {
    let drops = |hystart| {
        let mut world = alone("cubic", &[("hystart", hystart)], 12, 250);
        world.run(secs(3), |_, _, _| {});
        world.drops.len()
    };
    let (classic, plusplus, off) = (drops("classic"), drops("plusplus"), drops("off"));
    // HyStart++ grows on by a quarter for five rounds, which this buffer does not hold.
    assert!(classic == 0 && plusplus * 2 < off, "{classic}, {plusplus} and {off} drops");
}

/// brakmo95 3.3: between alpha and beta packets in the queue, without loss.
#[test]
fn vegas_holds_two_to_four_packets_in_the_queue() {
    let mut world = alone("vegas", &[], 12, 250);
    world.run(secs(60), |now, _, controller| {
        let queued = inspect(controller, "diff_pkts");
        assert!(now < secs(5) || (1.9..=4.1).contains(&queued), "{queued} packets at {now:?}");
    });
    assert!(world.drops.is_empty());
    assert!(used(&world, 12, 5, 60) > 0.999);
    // Two to four packets wait, and the packet's own millisecond.
    let mean_ms = mean_sojourn_ms(&world, 5, 60);
    assert!((3.0..=5.0).contains(&mean_ms), "{mean_ms} ms");
}

/// Growing in every round trip, as Linux 6.12 tcp_vegas.c does, sees the queue one doubling later.
#[test]
fn vegas_in_linux_overshoots_where_brakmos_does_not() {
    let peak = |slow_start| {
        let mut peak = 0.0_f64;
        let mut world = alone("vegas", &[("slow_start", slow_start)], 12, 400);
        world.run(secs(3), |_, _, controller| peak = peak.max(window_pkts(controller)));
        peak
    };
    let (alternate, every) = (peak("alternate"), peak("every"));
    assert!(
        alternate < 2.0 * 101.0 && every > 3.0 * 101.0,
        "{alternate} and {every} packets in a pipe of 101"
    );
}

/// mascolo01: after a loss the window is BWE times RTT_min, which is what the path holds without a queue.
#[test]
fn westwood_sets_its_window_to_the_pipe() {
    let mut world = alone("westwood", &[], 12, 20);
    let (mut last, mut cuts) = (0.0, 0);
    world.run(secs(90), |now, _, controller| {
        let window = window_pkts(controller);
        // After slow start the filter has yet to catch up.
        if now > secs(40) && window < last - 2.0 {
            cuts += 1;
            let bwe_pkts_per_s = inspect(controller, "bwe_bps") / 8.0 / MSS.as_f64();
            let pipe_pkts = bwe_pkts_per_s * inspect(controller, "rtt_min_ms") * 1e-3;
            assert!((window - pipe_pkts).abs() < 1.0, "{window}, not {pipe_pkts}");
            assert!((99.0..103.0).contains(&window), "{window} packets in a pipe of 101");
        }
        last = window;
    });
    assert!(cuts >= 5, "{cuts}");
    // Where NewReno, which halves, idles (see above).
    assert!(used(&world, 12, 40, 90) > 0.99, "{}", used(&world, 12, 40, 90));
}

/// tan06: on a long fat path the delay window fills what Reno takes a minute and a half to reach.
#[test]
fn compound_fills_the_path_where_reno_does_not() {
    let share = |name| {
        let mut world = alone(name, &[], 200, 400);
        world.run(secs(40), |_, _, _| {});
        used(&world, 200, 5, 40)
    };
    let (compound, reno) = (share("ctcp"), share("newreno"));
    assert!(compound > 0.97 && reno < 0.80, "{compound} and {reno}");
}

/// copa18 2.1: 1 / delta packets in the queue, give or take the swing, and v stays at 1.
#[test]
fn copa_keeps_its_target_in_the_queue() {
    let mut world = alone("copa", &[("mode", "default"), ("rules", "paper")], 12, 250);
    world.run(secs(60), |now, _, controller| {
        assert!(
            now < secs(20) || inspect(controller, "velocity") < 1.5,
            "{}",
            inspect(controller, "velocity")
        );
    });
    assert!(world.drops.is_empty());
    assert!(used(&world, 12, 20, 60) > 0.999);
    // 1 / (0.5 * 1000 packets/s) = 2 ms of waiting; the mean of the swing is a little more, and 1 ms is the
    // packet's own.
    let waiting_ms = mean_sojourn_ms(&world, 20, 60) - 1.0;
    assert!((1.8..=2.8).contains(&waiting_ms), "{waiting_ms} ms");
}

/// copa18 3: the window turns one RTT after the queue has crossed the target on the way down, and up to half
/// an RTT later on the way up, which makes periods of four to five RTTs and a queue that is nearly empty once
/// in each.
#[test]
fn copa_swings_with_a_period_of_four_to_five_round_trips() {
    // A target of ten packets: with two, a packet is too coarse to see the shape.
    let mut world = alone("copa", &[("mode", "default"), ("rules", "paper"), ("delta", "0.1")], 12, 250);
    let (mut falls, mut high, mut low_pkts, mut high_pkts) = (Vec::new(), false, f64::MAX, 0.0_f64);
    world.run(secs(60), |now, _, controller| {
        if now < secs(20) {
            return;
        }
        // The pipe holds 101 packets.
        let queued_pkts = window_pkts(controller) - 101.0;
        (low_pkts, high_pkts) = (low_pkts.min(queued_pkts), high_pkts.max(queued_pkts));
        if high && queued_pkts < 8.0 {
            falls.push(now);
        }
        high = queued_pkts > 16.0 || high && queued_pkts >= 8.0;
    });
    let period_s = falls[falls.len() - 1].since(falls[0]).as_secs_f64() / (falls.len() - 1) as f64;
    let rtt_s = 0.100 + mean_sojourn_ms(&world, 20, 60) * 1e-3;
    assert!((4.0..=5.0).contains(&(period_s / rtt_s)), "{period_s} s, {rtt_s} s");
    assert!(low_pkts < 2.0 && (20.0..=25.0).contains(&high_pkts), "{low_pkts} to {high_pkts} packets queued");
}

#[test]
fn copa_answers_a_flow_that_fills_the_queue_and_only_that() {
    let shares = |rules, other| {
        let options = &[("rules", rules)];
        let flow = |name| FlowSpec {
            options: if name == "copa" { options } else { &[] },
            ..FlowSpec::bulk(name, RTT)
        };
        let late = FlowSpec { start: secs(2), ..flow(other) };
        let link = Link::fixed(Rate::from_mbps(24), 200);
        let mut world = World::new(link, &[flow("copa"), late]);
        let (mut competitive, mut acks) = (0.0, 0.0);
        world.run(secs(80), |now, flow, controller| {
            if flow == 0 && now > secs(20) {
                competitive += inspect(controller, "competitive");
                acks += 1.0;
            }
        });
        let mbps = |flow| world.throughput(flow, secs(20), secs(80)).as_mbps_f64();
        (mbps(0), mbps(1), competitive / acks)
    };
    let (first, second, competitive) = shares("paper", "copa");
    assert!((0.9..1.1).contains(&(first / second)), "two Copas: {first} and {second} Mbit/s");
    assert!(competitive < 0.05, "{competitive}");
    // Two flows of the authors' program have 11.4 and 9.6 Mbit/s here (docs/validation/copa.md).
    let (first, second, competitive) = shares("program", "copa");
    assert!((0.83..1.2).contains(&(first / second)), "two Copas: {first} and {second} Mbit/s");
    assert!(competitive < 0.2, "{competitive}");
    for rules in ["paper", "program"] {
        let (copa, cubic, competitive) = shares(rules, "cubic");
        assert!(competitive > 0.8, "{rules}: {competitive}");
        assert!(copa > 24.0 / 4.0 && cubic > 24.0 / 4.0, "{rules}: {copa} beside CUBIC's {cubic} Mbit/s");
    }
}

/// Its own swings must empty the queue, or it takes itself for a competitor. At 20 ms the paper's rules do
/// not empty it; packets of the authors' program wait 4 ms there and 5 at 40 ms (docs/validation/copa.md).
#[test]
fn a_lone_copa_does_not_take_itself_for_a_competitor() {
    let waiting_ms = |rules, rtt| {
        let options = &[("rules", rules)];
        let flow = FlowSpec { options, ..FlowSpec::bulk("copa", Duration::from_millis(rtt)) };
        let mut world = World::new(Link::fixed(Rate::from_mbps(12), 250), &[flow]);
        world.run(secs(30), |_, _, _| {});
        mean_sojourn_ms(&world, 5, 30) - 1.0
    };
    for rtt_ms in [20, 40] {
        let waiting_ms = waiting_ms("program", rtt_ms);
        assert!(waiting_ms < 6.0, "{rtt_ms} ms: {waiting_ms} ms");
    }
    assert!(waiting_ms("paper", 20) > 50.0, "{} ms", waiting_ms("paper", 20));
}

/// What the closed loop's arithmetic rests on.
#[test]
fn a_packet_takes_one_millisecond_at_twelve_megabits() {
    assert_eq!(Rate::from_mbps(12).time_for(MSS + OVERHEAD), Duration::from_millis(1));
}
