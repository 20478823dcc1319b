use brakelight_core::random::Random;
use brakelight_core::time::Duration;
use brakelight_registry::{QUEUES, find};
use brakelight_scenario::scheme::Scheme;
use brakelight_sim::{Traces, run};

use super::*;
use crate::attack::Link;
use crate::attack::space::Setting;

const PACKET_BITS: f64 = 12_000.0;

/// Steps of the fluid in a round trip.
const STEPS: usize = 200;

fn bound(tau_s: f64, flows: f64, [low, high]: [f64; 2], change: f64) -> Bound {
    Bound {
        law: Law::PAPER,
        path: Path { tau_s, flows, packet_bits: PACKET_BITS },
        class: Class { low_bps: low * 1e6, high_bps: high * 1e6, change, outage_s: 0.0 },
    }
}

/// A class below 24 Mbit/s with a factor of at most 6, a round trip of 20 to 200 ms, and up to three flows.
fn drawn(random: &mut Random) -> Bound {
    let high = 24.0;
    let low = high / libm::pow(16.0, random.uniform());
    let change = 1.0 + 5.0 * random.uniform() * random.uniform();
    let tau_s = 0.02 + 0.18 * random.uniform();
    let flows = (random.uniform() * 4.0).floor().min(0.8 * low * 1e6 * tau_s / PACKET_BITS);
    bound(tau_s, flows, [low, high], change)
}

/// Capacities of the class, each for at least one round trip: those of a random walk that likes long falls,
/// there and back, so that the last may come before the first. As times in round trips and rates in bit/s.
fn walk(random: &mut Random, class: &Class) -> Vec<(f64, f64)> {
    let span = class.high_bps / class.low_bps;
    let change = class.change.min(span);
    let mut rate = if random.chance(0.5) { class.high_bps } else { class.low_bps };
    let mut falls = rate > class.low_bps;
    let mut steps = Vec::new();
    for _ in 0..10 {
        let long = if random.chance(0.3) { 40.0 } else { 2.0 };
        let time = if random.chance(0.6) { 1.0 } else { 1.0 + long * random.uniform() };
        steps.push((time, rate));
        falls ^= random.chance(0.2) || (rate <= class.low_bps) == falls && rate != class.high_bps;
        let factor = if random.chance(0.7) { change } else { libm::pow(change, random.uniform()) };
        rate = if falls { rate / factor } else { rate * factor }.clamp(class.low_bps, class.high_bps);
    }
    let back: Vec<_> = steps.iter().rev().copied().collect();
    steps.extend(back);
    steps
}

/// What the fluid did on a link: its longest wait, s, and the share of the capacity that it used.
fn pour(bound: &Bound, steps: &[(f64, f64)]) -> (f64, f64) {
    let Law { eta, delta_s, target_s, .. } = bound.law;
    let h_s = bound.path.tau_s / STEPS as f64;
    let mut capacity = Vec::new();
    for _ in 0..2 {
        for (time, bps) in steps {
            capacity.extend(std::iter::repeat_n(*bps, (time * STEPS as f64).ceil() as usize));
        }
    }
    let (mut queue, mut used, mut could) = (0.0_f64, 0.0, 0.0);
    let mut ordered = vec![0.0; STEPS];
    // The work that had come, and the work that could be done, up to each step.
    let (mut come, mut done) = (vec![0.0], vec![0.0]);
    for (step, mu) in capacity.iter().enumerate() {
        let order = mu * (eta - (queue / mu - target_s).max(0.0) / delta_s).max(0.0);
        let arrives = core::mem::replace(&mut ordered[step % STEPS], order) + bound.added_bps();
        let serves = mu.min(arrives + queue / h_s);
        queue += h_s * (arrives - serves);
        used += serves;
        could += mu;
        done.push(done[step] + h_s * mu);
        come.push(done[step + 1] + queue);
    }
    let mut waited = 0;
    let mut leaves = 0;
    for (step, work) in come.iter().enumerate() {
        while leaves < done.len() && done[leaves] < *work - 1e-3 {
            leaves += 1;
        }
        if leaves < done.len() {
            waited = waited.max(leaves.saturating_sub(step));
        }
    }
    (waited as f64 * h_s, used / could)
}

#[test]
fn the_constants_are_those_that_abc_comes_with() {
    let abc = find(QUEUES, "abc").expect("abc has a router").parameters();
    let default = |name: &str| {
        let listed = abc.iter().find(|parameter| parameter.name == name);
        listed.unwrap_or_else(|| panic!("abc has no option `{name}`")).default.to_string()
    };
    let seconds = |name: &str| default(name).parse::<Duration>().unwrap().as_secs_f64();
    let number = |name: &str| default(name).parse::<f64>().unwrap();
    // What it stands for hangs on the variant, so that the table has it in words.
    assert_eq!(default("eta"), "none");
    let meaning =
        abc.iter().find(|parameter| parameter.name == "eta").map_or("", |parameter| parameter.meaning);
    let (_, words) = meaning.split_once("none: ").expect("what none stands for");
    let eta = words.split(',').next().unwrap_or_default().parse().expect("the paper's eta");
    let law = Law {
        eta,
        delta_s: seconds("delta"),
        target_s: seconds("target"),
        window_s: seconds("window"),
        tokens: number("token_limit"),
    };
    assert_eq!(Law::PAPER, law);
}

#[test]
fn a_fluid_on_links_of_the_class_waits_no_longer_and_uses_no_less() {
    let mut random = Random::stream(1, "bound");
    for _ in 0..400 {
        let bound = drawn(&mut random);
        let (waited_s, use_) = pour(&bound, &walk(&mut random, &bound.class));
        let most_s = bound.fluid_s().unwrap() + 3.0 * bound.path.tau_s / STEPS as f64;
        assert!(waited_s <= most_s, "{bound:?}: waited {waited_s} s, the bound is {most_s} s");
        assert!(
            use_ >= bound.least_use() - 0.01,
            "{bound:?}: used {use_}, the bound is {}",
            bound.least_use()
        );
    }
}

#[test]
fn stairs_come_close_to_the_fluid_s_bound() {
    for (change, span, share) in
        [(1.2, 4.0, 0.6), (1.5, 4.0, 0.75), (2.0, 2.0, 0.95), (2.0, 16.0, 0.8), (4.0, 4.0, 0.95)]
    {
        let bound = bound(0.1, 0.0, [24.0 / span, 24.0], change);
        let mut stairs = vec![(10.0, 24e6)];
        let mut rate = 24e6;
        while rate > bound.class.low_bps {
            rate = (rate / change).max(bound.class.low_bps);
            stairs.push((1.0, rate));
        }
        stairs.push((30.0, rate));
        let (waited_s, _) = pour(&bound, &stairs);
        let most_s = bound.fluid_s().unwrap();
        assert!(waited_s >= share * most_s, "factor {change}, span {span}: {waited_s} of {most_s}");
    }
}

/// The longest queueing delay of packets on a link, s, without the start.
fn packets_s(bound: &Bound, steps: &[(f64, f64)], seed: u64) -> f64 {
    let loop_s = bound.path.tau_s + bound.law.window_s;
    let steps: Vec<_> = steps
        .iter()
        .map(|(time, bps)| ((time * loop_s * 1e3).ceil() as u64, (bps / 1e3).round() as u64))
        .collect();
    let link =
        Link { rtt_ms: (bound.path.tau_s * 1e3) as u64, buffer_pkts: 1_000_000, steps, ..Link::default() };
    let setting = Setting { name: "a link of the class".into(), seed, duration: Duration::from_secs(20) };
    let mut scenario = link.scenario(&Scheme::parse("abc").unwrap(), None, false, &setting).unwrap();
    scenario.flows[0].count = bound.path.flows as u32;
    let outcome = run(&scenario, &Traces::new()).unwrap();
    outcome.run.links[0].queueing_delay_ms.unwrap().max / 1e3
}

#[test]
fn packets_on_links_of_the_class_wait_no_longer() {
    let runs = std::env::var("BRAKELIGHT_BOUND_RUNS").map_or(150, |runs| runs.parse().unwrap());
    let mut random = Random::stream(1, "packets of the bound");
    let mut shares = Vec::new();
    for seed in 0..runs {
        let high = 6.0 * libm::pow(8.0, random.uniform());
        let low = high / libm::pow(8.0, random.uniform());
        let change = 1.0 + 5.0 * random.uniform() * random.uniform();
        let tau_s = (20.0 + 180.0 * random.uniform()).floor() / 1e3;
        let most = (0.5 * low * 1e6 * tau_s / PACKET_BITS).floor().clamp(1.0, 8.0);
        let bound = bound(tau_s, (1.0 + random.uniform() * most).floor().min(most), [low, high], change);
        let Some(most_s) = bound.packets_s() else { continue };
        let waited_s = packets_s(&bound, &walk(&mut random, &bound.class), seed);
        assert!(waited_s <= most_s, "{bound:?}: waited {waited_s} s, the bound is {most_s} s");
        shares.push(waited_s / most_s);
    }
    // What `make prove` prints.
    shares.sort_by(f64::total_cmp);
    let at = |share: f64| shares[((shares.len() - 1) as f64 * share) as usize];
    let [median, p95, most] = [0.5, 0.95, 1.0].map(at);
    eprintln!("{runs} links: {median:.2} of the bound in the median, {p95:.2} at p95, {most:.2} at most");
}

/// The rule that tunes itself, as a fluid (docs/abc-adaptive.md), with a forecast that is drawn anew for each
/// round trip from what the link had in the last four, and an error as large as the link allows: the most
/// that waited and was on its way, bits, and the longest wait, s.
fn pour_adaptive(bound: &Bound, steps: &[(f64, f64)], random: &mut Random) -> f64 {
    let tau_s = bound.path.tau_s;
    let h_s = tau_s / STEPS as f64;
    let delta_s = ADAPTIVE_DELTA_OVER_TAU * tau_s;
    let mut capacity = Vec::new();
    for (time, bps) in steps {
        capacity.extend(std::iter::repeat_n(*bps, (time * STEPS as f64).ceil() as usize));
    }
    let (mut queue, mut mean, mut leaves_bps) = (0.0_f64, 0.0, 0.0_f64);
    let mut ordered = vec![0.0; STEPS];
    let (mut come, mut done) = (vec![0.0], vec![0.0]);
    let mut forecast_bps = bound.class.high_bps;
    let mut error_bits = 0.0;
    for (step, mu) in capacity.iter().enumerate() {
        if step % STEPS == 0 {
            let past = &capacity[step.saturating_sub(4 * STEPS)..=step];
            let [least, most] = [f64::min, f64::max].map(|of| past.iter().copied().fold(past[0], of));
            forecast_bps = least + (most - least) * if random.chance(0.6) { 1.0 } else { random.uniform() };
            error_bits = tau_s * (bound.class.high_bps - bound.class.low_bps) * random.uniform().sqrt();
        }
        let on_its_way: f64 = ordered.iter().sum::<f64>() * h_s;
        let outstanding = queue + on_its_way;
        mean += (outstanding - mean) * h_s / (ADAPTIVE_SIGMA_OVER_TAU * tau_s);
        let cushion = adaptive_cushion(tau_s) * error_bits;
        let target = forecast_bps - (mean - forecast_bps * tau_s - cushion) / delta_s;
        let order =
            target.clamp(2.0 * ADAPTIVE_LEAST_SHARE * leaves_bps, target.max(0.0).max(leaves_bps / 8.0));
        let arrives = core::mem::replace(&mut ordered[step % STEPS], order) + bound.added_bps();
        let serves = mu.min(arrives + queue / h_s);
        queue += h_s * (arrives - serves);
        leaves_bps = serves;
        done.push(done[step] + h_s * mu);
        come.push(done[step + 1] + queue);
    }
    let (mut waited, mut leaves) = (0, 0);
    for (step, work) in come.iter().enumerate() {
        while leaves < done.len() && done[leaves] < *work - 1e-3 {
            leaves += 1;
        }
        if leaves < done.len() {
            waited = waited.max(leaves.saturating_sub(step));
        }
    }
    waited as f64 * h_s
}

#[test]
fn a_fluid_behind_the_rule_that_tunes_itself_waits_no_longer_whatever_its_forecast() {
    let mut random = Random::stream(1, "adaptive bound");
    let mut most = 0.0_f64;
    for _ in 0..200 {
        let bound = drawn(&mut random);
        let Some(most_s) = bound.adaptive_s() else { continue };
        let steps = walk(&mut random, &bound.class);
        let waited_s = pour_adaptive(&bound, &steps, &mut random);
        assert!(waited_s <= most_s, "{bound:?}: waited {waited_s} s, the bound is {most_s} s");
        most = most.max(waited_s / most_s);
    }
    // A bound that nothing comes near would say little.
    assert!(most > 0.3, "{most}");
}
