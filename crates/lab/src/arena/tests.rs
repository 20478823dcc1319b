use brakelight_links::trace::Trace;
use brakelight_registry::Registry;
use brakelight_scenario::trace::convert::to_mahimahi;

use super::*;
use crate::runner::Simulator;

fn plan(set: &RoundSet, level: Level, names: &[&str]) -> Result<Plan, Error> {
    let registry = Registry::standard();
    let candidates = names.iter().map(|name| Candidate::parse(&registry, name));
    Plan::new(&registry, set, level, candidates.collect::<Result<_, _>>()?)
}

/// The first `count` rounds.
fn few(set: &RoundSet, names: &[&str], count: usize) -> Plan {
    let mut plan = plan(set, Level::Quick, names).unwrap();
    let all = plan.rounds.len();
    plan.rounds.truncate(count);
    let beside = |round: &Round| round.kind.is_beside();
    let kept = plan.rounds.iter().filter(|round| beside(round)).count();
    let entered = all * (1 + names.len());
    let contests = std::mem::take(&mut plan.contests);
    plan.contests = contests
        .into_iter()
        .enumerate()
        .filter(|(place, _)| if *place < entered { place % all < count } else { place - entered < kept })
        .map(|(_, scenario)| scenario)
        .collect();
    plan
}

fn key(text: &str) -> RoundSet {
    RoundSet::of_key(text.as_bytes()).unwrap()
}

#[test]
fn rounds_hang_on_their_key_alone_and_those_of_quick_are_the_first_of_full() {
    let words = |set: &RoundSet, level| -> Vec<String> {
        let (rounds, _) = rounds::draw(set, level).unwrap();
        let registry = Registry::standard();
        let scheme = Scheme::parse("cubic").unwrap();
        let files = rounds.iter().flat_map(|round| round.files(&registry, &scheme).unwrap());
        files.map(|file| sha256(&file.contents)).collect()
    };
    let full = words(&RoundSet::Train, Level::Full);
    let quick = words(&RoundSet::Train, Level::Quick);
    assert_eq!(full[..quick.len()], quick);
    assert_eq!(quick, words(&RoundSet::Train, Level::Quick));
    let secret = key("a key that only its organizer has");
    for other in [RoundSet::Validation, secret.clone(), key("a key that only another has")] {
        let other = words(&other, Level::Quick);
        assert!(quick.iter().all(|digest| !other.contains(digest)), "a round of one set is in another");
    }
    // White space around a key, as editors leave it, is none of it.
    assert_eq!(
        words(&secret, Level::Quick),
        words(&key("a key that only its organizer has\n"), Level::Quick)
    );
}

#[test]
fn twelve_rounds_have_every_family_with_every_kind() {
    let (rounds, traces) = rounds::draw(&RoundSet::Validation, Level::Full).unwrap();
    assert_eq!(rounds.len(), 240);
    for twelve in rounds.chunks(12) {
        let mut pairs: Vec<String> = twelve
            .iter()
            .map(|round| {
                let words = round.in_words();
                let family = if words.contains("radio") {
                    "radio"
                } else if words.contains("steps") {
                    "steps"
                } else if words.contains("fixed") {
                    "fixed"
                } else {
                    "measured"
                };
                let kind = match round.kind {
                    Kind::Alone => "alone",
                    Kind::Several(_) => "several",
                    Kind::Beside(_) => "beside",
                };
                format!("{family} {kind}")
            })
            .collect();
        pairs.sort();
        pairs.dedup();
        assert_eq!(pairs.len(), 12, "{pairs:?}");
    }
    // What is written as a file is what was drawn, and nothing was recorded beside the opportunities.
    for trace in traces.values() {
        let read = Trace::parse(to_mahimahi(trace).as_bytes()).unwrap();
        assert!(read.micros().eq(trace.micros()));
        assert!(trace.recorded().is_none());
    }
}

#[test]
fn a_score_is_worked_out_by_hand() {
    let part = |throughput, delay| Parts { throughput, delay, ..Parts::default() };
    // Cubic leaves 1 + 3 = 4 to gain; the candidate gains .5 of throughput and 1.5 of delay.
    let rounds = [[part(-0.1, -0.4), part(-0.2, -0.8)], [part(-0.6, -0.9), part(-1.0, -2.0)]];
    let (score, parts) = score::of(&rounds);
    assert!((score - 0.5).abs() < 1e-12, "{score}");
    assert!((parts.throughput - 0.125).abs() < 1e-12 && (parts.delay - 0.375).abs() < 1e-12, "{parts:?}");
    let of = |own: Parts| score::of(&[[own, part(-1.0, -1.0)]]).0;
    assert_eq!((of(part(-1.0, -1.0)), of(Parts::default())), (0.0, 1.0));
    assert!(of(Parts::least(Kind::Alone)) < 0.0);
    // A round that the baseline does perfectly leaves nothing to divide by.
    assert_eq!(score::of(&[[part(-0.5, 0.0), Parts::default()]]).0, -0.5);
}

#[test]
fn the_baseline_has_zero_a_sender_with_less_delay_more_and_one_that_never_yields_less() {
    let plan = few(&key("0123456789abcdef"), &["cubic", "copa", "external:cwnd=2000pkt"], 6);
    let arena = plan.run(&Simulator, &()).unwrap();
    let of = |name: &str| arena.candidates.iter().find(|scored| scored.scheme == name).unwrap();
    assert_eq!(of("cubic").score, 0.0);
    assert!(of("cubic").rounds.iter().all(|round| round.utility == round.baseline));
    assert!(of("copa").score > 0.0 && of("copa").parts.delay > 0.0, "{:?}", of("copa").parts);
    let greedy = of("external:cwnd=2000pkt");
    assert!(greedy.score < 0.0 && greedy.parts.harm < 0.0, "{:?}", greedy.parts);
    for scored in &arena.candidates {
        assert!((scored.parts.sum() - scored.score).abs() < 1e-12);
        let [low, high] = scored.interval95.unwrap();
        assert!(low <= scored.score && scored.score <= high, "{} {low} {high}", scored.score);
        for round in &scored.rounds {
            assert!(round.utility.named().iter().all(|(_, value)| (-4.7..=0.0).contains(value)), "{round:?}");
            assert!(round.goodput_mbps <= round.possible_mbps * 2.0, "{round:?}");
        }
    }
    let order: Vec<f64> = arena.candidates.iter().map(|scored| scored.score).collect();
    assert!(order.windows(2).all(|pair| pair[0] >= pair[1]), "{order:?}");
    assert_eq!(plan.run(&Simulator, &()).unwrap(), arena);
    // A hidden set says nothing of its links, and gives no files.
    assert!(plan.files(&Registry::standard()).unwrap().is_empty());
    assert_eq!(arena.candidates[0].rounds[0].round, "1: alone");
}

#[test]
fn a_seal_is_of_the_candidate_the_rounds_and_the_scores() {
    let plan = few(&RoundSet::Train, &["copa", "vegas"], 1);
    let arena = plan.run(&Simulator, &()).unwrap();
    let [one, other] = &arena.candidates[..] else { panic!("{arena:?}") };
    assert_eq!((one.seal.len(), plan.seal(one)), (64, one.seal.clone()));
    assert_ne!(one.seal, other.seal);
    let mut better = one.clone();
    better.rounds[0].utility.delay = 0.0;
    assert_ne!(plan.seal(&better), one.seal);
    let named = Scored { digest: Some("00".to_string()), ..one.clone() };
    assert_ne!(plan.seal(&named), one.seal);
    assert_ne!(few(&RoundSet::Validation, &["copa"], 1).seal(one), one.seal);
}

#[test]
fn recordings_of_an_organizer_take_the_place_of_drawn_links() {
    let trace = Trace::from_millis((1..=2000).filter(|ms| ms % 3 != 0)).unwrap();
    let set = RoundSet::Links(vec![("mine".to_string(), trace)]);
    let plan = few(&set, &["copa"], 2);
    let arena = plan.run(&Simulator, &()).unwrap();
    assert_eq!(arena.set, "hidden");
    let possible = arena.candidates[0].rounds[0].possible_mbps;
    // Two of three milliseconds carry one packet of 1448 bytes of payload.
    assert!((possible - 2.0 / 3.0 * 1448.0 * 8e-3).abs() < 0.01, "{possible}");
}

#[test]
fn what_cannot_compete_is_refused_with_the_reason() {
    let refused = |names: &[&str]| plan(&RoundSet::Train, Level::Quick, names).unwrap_err().to_string();
    assert!(refused(&["abc"]).contains("has the queue `abc`"), "{}", refused(&["abc"]));
    assert!(refused(&["copa", "copa"]).contains("given twice"));
    assert!(refused(&["cobra"]).contains("unknown controller `cobra`"), "{}", refused(&["cobra"]));
    let short = RoundSet::of_key(b"  tooshort\n").unwrap_err().to_string();
    assert!(short.contains("8 bytes") && short.contains("16"), "{short}");
}

#[test]
fn a_candidate_that_fails_in_a_round_has_the_least_of_it_and_keeps_the_others() {
    struct Fails;
    impl Runner for Fails {
        fn run(
            &self,
            scenario: &Scenario,
            traces: &Traces,
        ) -> Result<brakelight_scenario::outcome::Outcome, crate::error::Cause> {
            let is = |name: &str| scenario.flows[0].controller.name() == name;
            assert!(!(is("vegas") && scenario.seed == 1), "on purpose");
            if is("copa") && scenario.seed == 2 {
                return Err("it broke".into());
            }
            Simulator.run(scenario, traces)
        }
    }
    let plan = few(&RoundSet::Train, &["copa", "vegas"], 2);
    let arena = plan.run(&Fails, &()).unwrap();
    let of = |name: &str| arena.candidates.iter().find(|scored| scored.scheme == name).unwrap();
    assert_eq!(of("copa").rounds[1].failed, "it broke");
    assert!(of("vegas").rounds[0].failed.contains("it panicked: on purpose"));
    assert_eq!(of("vegas").rounds[0].utility, Parts::least(Kind::Alone));
    assert!(of("copa").rounds[0].failed.is_empty() && of("vegas").rounds[1].failed.is_empty());
}
