//! ABC in the ECN field as deployed: what receivers, routers and senders say in it, and whom brake probes
//! find out.

use brakelight_core::controller::{Connection, Controller, SendEvent};
use brakelight_core::ecn::{Ecn, Encoding, Mark};
use brakelight_core::feedback::{AckAction, Arrival, Feedback, Receiver};
use brakelight_core::packet::Header;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::{ControllerConfig, FeedbackConfig};
use brakelight_scenario::experiment::Finding;
use brakelight_scenario::file::read;
use brakelight_scenario::trace::embedded::Embedded;
use brakelight_sim::{Traces, run};

use super::finding;
use super::router::{Marked, Router};

/// HN-U3: behind a proxy, with CWR on every packet and an ACK for each, a receiver of RFC 3168 echoes each
/// brake once.
pub(super) fn brake_echoed_once() -> Finding {
    const PACKETS: u64 = 10_000;
    let config = FeedbackConfig::new("rfc3168", &[]).expect("the receiver is registered");
    let receiver = Receiver { encoding: Encoding::AbcProxied, ack_every: 1, mss: Bytes(1448) };
    let mut feedback = config.build(&receiver);
    let mut random = Random::stream(1, "marks");
    let (mut brakes, mut echoed, mut wrong) = (0_u64, 0_u64, 0_u64);
    for number in 0..PACKETS {
        let now = Time::from_millis(number);
        let braked = random.chance(0.5);
        let action = feedback.on_packet(&Arrival {
            now,
            number,
            size: Bytes(1448),
            ecn: if braked { Ecn::Ce } else { Ecn::Ect1 },
            cwr: true,
            header: Header::None,
            hash16: 0,
            sent_at: now,
            urgent: false,
        });
        let echo = feedback.on_ack_sent(now, false).state;
        brakes += u64::from(braked);
        echoed += u64::from(echo == Mark::Brake);
        wrong += u64::from(action != AckAction::Now || (echo == Mark::Brake) != braked);
    }
    finding(wrong == 0 && brakes > 1_000, format!("{brakes} brakes among {PACKETS} packets, {echoed} echoed"))
}

/// HN-U7: ABC's router does not touch what ordinary ECN flows send, whatever f is.
pub(super) fn leaves_ecn_alone() -> Finding {
    const PACKETS: u64 = 20_000;
    let mut random = Random::stream(1, "capacity");
    let mut router = Router::plain();
    let (mut rewritten, mut least, mut most) = (0_u64, 1.0_f64, 0.0_f64);
    for id in 0..PACKETS {
        let now = Time::from_millis(id);
        if id % 40 == 0 {
            router.set_mbps(24.0 * random.uniform());
        }
        let (encoding, ecn) = match id % 4 {
            0 => (Encoding::Classic, Ecn::Ect0),
            1 => (Encoding::Classic, Ecn::Ce),
            2 => (Encoding::None, Ecn::NotEct),
            // The same bits in a flow of ABC: a brake.
            _ => (Encoding::Abc, Ecn::Ect0),
        };
        router.arrive(now, Marked { id, flow: id as u32 % 4, ecn, encoding });
        let packet = router.leave(now).expect("what arrived leaves");
        rewritten += u64::from(packet.ecn != ecn);
        let f = router.shown("f");
        (least, most) = (least.min(f), most.max(f));
    }
    let measured = format!(
        "{rewritten} of {PACKETS} packets of 00, 10 and 11 rewritten, at f from {least:.2} to {most:.2}"
    );
    finding(rewritten == 0 && least < 0.1 && most > 0.9, measured)
}

/// HN-U5: a demand of d packets per second is d/2 accelerates per second.
pub(super) fn sender_demand() -> Finding {
    const SECONDS: u64 = 30;
    let mut worst = 0.0_f64;
    for (mbps, demand) in [(1, "1Mbps"), (3, "3Mbps"), (8, "8Mbps")] {
        let connection = Connection {
            mss: Bytes(1448),
            overhead: Bytes(52),
            initial_window: Bytes(14_480),
            now: Time::ZERO,
            random: Random::stream(1, "check"),
        };
        let config = ControllerConfig::new("abc", &[("demand", demand)]).expect("the options are ABC's");
        let mut sender = config.build(&connection);
        // 12 Mbit/s: a packet a millisecond.
        let accelerates = (0..1_000 * SECONDS).filter(|&number| {
            let event = SendEvent {
                now: Time::from_millis(number),
                size: Bytes(1448),
                number,
                retransmission: false,
                replaces: None,
                inflight: Bytes(144_800),
                app_limited: true,
                srtt: Some(Duration::from_millis(100)),
            };
            Encoding::Abc.mark(sender.on_send(&event).ecn) == Mark::Accelerate
        });
        let per_second = accelerates.count() as f64 / SECONDS as f64;
        let expected = Rate::from_mbps(mbps).as_bps_f64() / 12_000.0 / 2.0;
        worst = worst.max((per_second / expected - 1.0).abs());
    }
    let measured = format!("within {:.2} % of d/2 at 83, 250 and 667 packets per second", 100.0 * worst);
    finding(worst <= 0.02, measured)
}

/// The flow of a path, and whether its probes accuse the path at the end, or ever.
fn probed(behind: &str, back: &str, receiver: &str) -> (bool, bool, f64) {
    let text = format!(
        "duration = \"60s\"\nrecord = {{ series = true, bin = \"100ms\" }}\n\
         [[link]]\nname = \"abc\"\nqueue = \"abc\"\nsteps = [[\"2s\", \"6Mbps\"], [\"2s\", \"18Mbps\"]]\n\
         [[flow]]\nname = \"main\"\ncontroller = \"abc:probe=64\"\npath = [\"abc\"{behind}]\nreverse = [{back}]\n{receiver}\n"
    );
    let scenario = read("probes.toml", &text).expect("a sound scenario");
    let outcome = run(&scenario, &Traces::new()).expect("a run");
    let state = outcome.series.expect("series were asked for").flows.swap_remove(0).state;
    let accused = |verdict: &&f64| **verdict > 0.5;
    let verdicts = &state["path_hostile"];
    let suspicion = state["probe_suspicion"].iter().copied().fold(0.0, f64::max);
    let now = verdicts.last().is_some_and(|verdict| accused(&verdict));
    (now, verdicts.iter().any(|verdict| accused(&verdict)), suspicion)
}

/// HN-U4: brake probes find who turns brakes into accelerates, and accuse no honest path.
pub(super) fn brake_probes() -> Finding {
    const HOSTILE: [&str; 3] = [
        ", \"rewrite:action=cheat\"",
        ", \"rewrite:action=cheat,rate=0.5\"",
        ", \"rewrite:action=cheat,rate=0.3\"",
    ];
    const HONEST: [(&str, &str); 8] = [
        ("", ""),
        ("", "\"ack-loss:rate=0.1\""),
        ("", "\"ack-loss:rate=0.5\""),
        ("", "\"ack-thin:every=4\""),
        (", \"loss:rate=0.01\"", "\"ack-loss:rate=0.1\""),
        (", \"rewrite:action=mark-ce,rate=0.01\"", "\"ack-loss:rate=0.1\""),
        (", \"reorder:rate=0.02,hold=5ms\"", "\"ack-loss:rate=0.1\""),
        (", \"rewrite:action=bleach\"", ""),
    ];
    const RECEIVERS: [&str; 4] =
        ["", "ack_every = 1", "feedback = \"delayed:on_change=ack\"", "feedback = \"delayed:echo=exact\""];
    let (mut missed, mut accused, mut worst, mut honest) = (0, 0, 0.0_f64, 0);
    for receiver in RECEIVERS {
        missed += HOSTILE.iter().filter(|behind| !probed(behind, "", receiver).0).count();
        for (behind, back) in HONEST {
            let (_, ever, suspicion) = probed(behind, back, receiver);
            honest += 1;
            accused += usize::from(ever);
            worst = worst.max(suspicion);
        }
    }
    let measured = format!(
        "{missed} of {} hostile paths not found in 60 s, {accused} of {honest} honest ones accused, at most {:.0} % of the way \
         to a verdict",
        HOSTILE.len() * RECEIVERS.len(),
        100.0 * worst
    );
    finding(missed == 0 && accused == 0, measured)
}

/// ABC-U15: within one second the rate of a wireless link both doubles and halves.
pub(super) fn rate_doubles_and_halves() -> Finding {
    const BIN: Duration = Duration::from_millis(100);
    const BINS: usize = 10;
    let mut shares = Vec::new();
    for name in ["lte-driving", "fit-att-driving-down", "fit-verizon-down", "fit-verizon-up"] {
        let trace = Embedded::find(name).expect("an embedded trace").trace();
        let bins = trace.period().as_nanos() / BIN.as_nanos();
        let at = |bin: u64| Time::from_nanos(bin * BIN.as_nanos());
        let counts: Vec<u64> = (0..bins).map(|bin| trace.count_between(at(bin), at(bin + 1))).collect();
        let seconds = counts.windows(BINS).count();
        // A rate of at least one packet a bin, twice that later, and half of that after it, or the other way
        // round.
        let swings = |window: &&[u64]| {
            let doubles =
                |from: usize| (from..BINS).any(|to| window[from] > 0 && window[to] >= 2 * window[from]);
            let halves =
                |from: usize| (from..BINS).any(|to| 2 * window[to] <= window[from] && window[from] > 1);
            (0..BINS).any(doubles) && (0..BINS).any(halves)
        };
        let both = counts.windows(BINS).filter(swings).count();
        shares.push((name, both as f64 / seconds as f64));
    }
    let words =
        shares.iter().map(|(name, share)| format!("{name}: in {:.0} % of all seconds", 100.0 * share));
    let measured = words.collect::<Vec<_>>().join(", ");
    finding(shares.iter().all(|(_, share)| *share > 0.1), measured)
}
