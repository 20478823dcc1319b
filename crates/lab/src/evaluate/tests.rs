//! Verdicts, regressions and documents, with runs that are made up.

use brakelight_scenario::outcome::{FlowOutcome, LinkOutcome, Outcome, Summary};
use brakelight_scenario::scenario::Scenario;

use super::*;
use crate::error::Cause;
use crate::text::Screen;
use crate::text::evaluation::{in_words, junit, markdown};

/// Gives every flow the same, but for the scheme under test, whose throughput and delay are so many times
/// that of the others.
struct MadeUp {
    tested: &'static str,
    throughput: f64,
    delay: f64,
    /// Panics in runs of the tested scheme.
    panics: bool,
}

const LIKE_THE_REST: MadeUp = MadeUp { tested: "vegas", throughput: 1.0, delay: 1.0, panics: false };

impl Runner for MadeUp {
    fn run(&self, scenario: &Scenario, _: &Traces) -> Result<Outcome, Cause> {
        let has = scenario.flows.iter().any(|flow| flow.controller.name() == self.tested);
        assert!(!(has && self.panics), "division by zero");
        // Seeds lie 5 % apart.
        let noise = 1.0 + 0.01 * (scenario.seed % 5) as f64;
        let throughput = noise * if has { self.throughput } else { 1.0 };
        let delay = noise * if has { self.delay } else { 1.0 };
        let summary = Some(Summary { mean: delay, p50: delay, p95: 20.0 * delay, p99: delay, max: delay });
        let flows = scenario.flows.iter().flat_map(|flow| {
            (0..flow.count).map(move |index| FlowOutcome {
                name: flow.name_of(index),
                throughput_mbps: throughput,
                rtt_ms: summary,
                application: Some(
                    ["completion_ms_p95", "updates_lost_percent", "rtt_ms_p95"]
                        .map(|name| (name.to_string(), delay))
                        .into(),
                ),
                state: Some([("cwnd_bytes".to_string(), 1e4)].into()),
                ..FlowOutcome::default()
            })
        });
        let run = Run {
            seed: scenario.seed,
            throughput_mbps: throughput,
            goodput_mbps: throughput,
            utilization: 0.9 * throughput,
            queueing_delay_ms: summary,
            loss_percent: delay,
            sent_packets: Some(100),
            jain: Some(0.9),
            flows: flows.collect(),
            links: vec![LinkOutcome::default()],
            ..Run::default()
        };
        Ok(Outcome { run, ..Outcome::default() })
    }
}

fn plan(schemes: &str) -> Plan {
    let schemes = Scheme::parse_list(schemes).unwrap();
    Plan::new(&Registry::standard(), "rfc9743", Level::Quick, &schemes).unwrap()
}

fn evaluated(runner: &MadeUp) -> Evaluation {
    plan("vegas").run(runner, &Names::default(), &()).unwrap()
}

fn of<'e>(evaluation: &'e Evaluation, id: &str) -> &'e Criterion {
    evaluation.schemes[0].criteria.iter().find(|criterion| criterion.id == id).unwrap()
}

#[test]
fn every_file_of_a_kit_states_a_bound_its_reason_and_the_word_of_the_rfc() {
    let plan =
        Plan::new(&Registry::standard(), "rfc9743", Level::Full, &Scheme::parse_list("vegas").unwrap());
    let (_, files) = &plan.unwrap().schemes[0];
    let mut ids = Vec::new();
    for planned in files {
        let experiment = &planned.experiment;
        let section = experiment.source.strip_prefix("rfc9743 ").unwrap();
        assert!(planned.name.starts_with(section) && experiment.id == planned.name, "{}", planned.name);
        let seeds = experiment.jobs.iter().map(|job| job.scenario.seed).max();
        assert!(seeds.is_none_or(|seeds| seeds >= 10), "{}: too few seeds", planned.name);
        for claim in &experiment.claims {
            assert!(claim.id.starts_with(section), "{}", claim.id);
            assert!(["MUST", "SHOULD", "should"].contains(&claim.paper.as_str()), "{}", claim.id);
            assert!(!claim.note.is_empty(), "{}: why this bound", claim.id);
            assert!(!ids.contains(&claim.id), "{} is there twice", claim.id);
            ids.push(claim.id.clone());
        }
    }
    assert!(files.windows(2).all(|pair| numbers(&pair[0].name) <= numbers(&pair[1].name)));
}

/// The numbers of the cases and the ids of the criteria in the kit `bbr`, as planned for `scheme`.
fn cases_of(scheme: &str) -> Vec<(u32, String, Option<String>)> {
    let schemes = Scheme::parse_list(scheme).unwrap();
    let plan = Plan::new(&Registry::standard(), "bbr", Level::Quick, &schemes).unwrap();
    let (_, files) = &plan.schemes[0];
    let mut cases = Vec::new();
    for planned in files {
        let experiment = &planned.experiment;
        let number = experiment.source.strip_prefix("ccwg-bbr case ").unwrap();
        assert!(planned.name.starts_with(&format!("{number}-")), "{}", planned.name);
        assert_eq!(experiment.id, planned.name);
        for claim in &experiment.claims {
            assert!(claim.id.starts_with(&format!("{number}-")), "{}", claim.id);
            assert!(!claim.note.is_empty(), "{}: why this bound", claim.id);
            cases.push((number.parse().unwrap(), claim.id.clone(), planned.refused.clone()));
        }
    }
    cases
}

#[test]
fn the_kit_of_bbr_has_all_cases_of_the_draft_and_runs_for_each_version() {
    for version in ["bbr2", "bbr3"] {
        let cases = cases_of(version);
        let mut numbers: Vec<u32> = cases.iter().map(|(number, ..)| *number).collect();
        assert!(numbers.is_sorted());
        numbers.dedup();
        assert_eq!(numbers, (1..=22).collect::<Vec<_>>());
        let mut ids: Vec<&str> = cases.iter().map(|(_, id, _)| id.as_str()).collect();
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
        assert!(cases.iter().all(|(.., refused)| refused.is_none()), "{cases:?}");
    }
}

#[test]
fn a_scheme_that_does_not_show_its_stages_is_judged_by_what_is_seen_outside() {
    let cases = cases_of("cubic");
    let refused = |id: &str| cases.iter().find(|(_, other, _)| other == id).unwrap().2.clone();
    assert!(refused("3-gain").unwrap().contains("drain_start_pacing_gain"), "{:?}", refused("3-gain"));
    assert_eq!(refused("3-queue"), None);
    // The first version has no Refill, but all else.
    let first = cases_of("bbr");
    assert!(first.iter().any(|(_, id, refused)| id == "22-up" && refused.is_some()));
    assert!(first.iter().any(|(_, id, refused)| id == "3-gain" && refused.is_none()));
}

#[test]
fn all_kits_together_are_one_after_the_other() {
    let names = |kit: &str| files(kit, Level::Quick).iter().map(|(name, _)| *name).collect::<Vec<_>>();
    assert_eq!(names("all"), [names("rfc9743"), names("bbr"), names("media")].concat());
    assert!(names("rfc9743").len() > 30 && names("bbr").len() > 22, "{:?}", names("bbr"));
    assert_eq!(names("media").len(), 17);
}

#[test]
fn a_scheme_like_its_baselines_passes_and_what_no_run_decides_is_not_applicable() {
    let evaluation = evaluated(&LIKE_THE_REST);
    assert_eq!(of(&evaluation, "6.3-utilization").measure, "utilization");
    for criterion in &evaluation.schemes[0].criteria {
        let texts = ["5.3.1-principles", "7.10-multipath"];
        let expected =
            if texts.contains(&criterion.id.as_str()) { Judgment::NotApplicable } else { Judgment::Pass };
        assert_eq!(criterion.verdict, expected, "{criterion:?}");
        assert!(expected == Judgment::NotApplicable || criterion.deciding().unwrap().by_seed.len() == 10);
    }
    assert_eq!(evaluation, evaluated(&LIKE_THE_REST), "the same again");
}

#[test]
fn the_interval_decides_between_fail_unsure_and_pass() {
    let at = |throughput| {
        let evaluation = evaluated(&MadeUp { throughput, ..LIKE_THE_REST });
        of(&evaluation, "6.3-utilization").verdict
    };
    // The bound is 0.9 times the baseline, seed by seed, so that the noise cancels out.
    assert_eq!([0.85, 0.89, 0.91].map(at), [Judgment::Fail, Judgment::Fail, Judgment::Pass]);
    // This bound is a number, and seeds are 5 % apart.
    let at = |delay| {
        let evaluation = evaluated(&MadeUp { delay, ..LIKE_THE_REST });
        of(&evaluation, "5.1.2-bufferbloat").verdict
    };
    assert_eq!([2.4, 2.45, 2.51].map(at), [Judgment::Pass, Judgment::Unsure, Judgment::Fail]);
}

#[test]
fn a_run_that_panics_is_a_failed_criterion_with_what_it_said() {
    let evaluation = evaluated(&MadeUp { panics: true, ..LIKE_THE_REST });
    let criterion = of(&evaluation, "6.3-utilization");
    assert_eq!(criterion.verdict, Judgment::Fail);
    assert_eq!(criterion.note, "seed 1: it panicked: division by zero");
    assert_eq!(of(&evaluation, "7.10-multipath").verdict, Judgment::NotApplicable);
}

#[test]
fn three_percent_of_throughput_or_ten_of_delay_is_a_regression_and_the_same_code_has_none() {
    let before = evaluated(&LIKE_THE_REST);
    let regressed = |runner: &MadeUp| {
        let mut after = evaluated(runner);
        against(&mut after, &before).unwrap();
        let criteria = after.schemes.remove(0).criteria.into_iter();
        criteria.filter(|criterion| criterion.regression.is_some()).map(|it| it.id).collect::<Vec<_>>()
    };
    assert_eq!(regressed(&LIKE_THE_REST), Vec::<String>::new());
    let slower = regressed(&MadeUp { throughput: 0.97, ..LIKE_THE_REST });
    assert!(slower.contains(&"6.3-utilization".to_string()), "{slower:?}");
    assert!(!slower.contains(&"6.1-delay".to_string()), "{slower:?}");
    let later = regressed(&MadeUp { delay: 1.1, ..LIKE_THE_REST });
    assert!(later.contains(&"6.1-delay".to_string()) && !later.contains(&"6.3-utilization".to_string()));
    let better = regressed(&MadeUp { throughput: 1.03, delay: 0.9, ..LIKE_THE_REST });
    assert_eq!(better, Vec::<String>::new());
}

#[test]
fn a_baseline_of_other_criteria_or_schemes_is_refused() {
    let before = evaluated(&LIKE_THE_REST);
    let refusal = |before: &Evaluation| plan("vegas").fits(before).unwrap_err().to_string();
    assert_eq!(plan("vegas").fits(&before), Ok(()));
    let other = Evaluation { criteria: "0".into(), ..before.clone() };
    assert!(refusal(&other).starts_with("it has criteria of the version `0`"), "{}", refusal(&other));
    assert_eq!(plan("copa").fits(&before).unwrap_err().to_string(), "it has no scheme `copa`");
    let mut short = before.clone();
    short.schemes[0].criteria.retain(|criterion| criterion.id != "6.3-utilization");
    let error = against(&mut before.clone(), &short).unwrap_err().to_string();
    assert_eq!(error, "criterion `6.3-utilization` of `vegas` is not in it");
}

#[test]
fn criteria_are_chosen_by_how_their_names_begin() {
    let chosen = |words: &[&str]| {
        let mut plan = plan("vegas");
        plan.only(&words.iter().map(ToString::to_string).collect::<Vec<_>>()).map(|()| {
            let evaluation = plan.run(&LIKE_THE_REST, &Names::default(), &()).unwrap();
            let criteria = evaluation.schemes.into_iter().flat_map(|evaluated| evaluated.criteria);
            criteria.map(|criterion| criterion.id).collect::<Vec<_>>()
        })
    };
    assert_eq!(chosen(&["5.1.5-short"]).unwrap(), ["5.1.5-short"]);
    assert_eq!(
        chosen(&["7.8-", "5.1.5"]).unwrap(),
        ["5.1.5-short", "5.1.5-long", "7.8-loss", "7.8-utilization"]
    );
    assert_eq!(chosen(&[]).unwrap().len(), 48);
    let error = chosen(&["5.1.5", "9.9"]).unwrap_err().to_string();
    assert!(error.starts_with("no criterion begins with `9.9`: valid are 5.1.1-backoff, "), "{error}");
}

#[test]
fn a_kit_that_is_not_there_and_a_scheme_named_twice_are_refused() {
    let refused = |kit: &str, names: &[&str]| {
        let schemes: Vec<Scheme> = names.iter().map(|name| Scheme::parse(name).unwrap()).collect();
        Plan::new(&Registry::standard(), kit, Level::Quick, &schemes).unwrap_err()
    };
    let error = refused("rfc5033", &["vegas"]);
    assert!(error.is_input());
    assert_eq!(error.to_string(), "there is no kit `rfc5033`: valid are rfc9743, bbr, media, all");
    let twice = refused("rfc9743", &["vegas", "vegas"]).to_string();
    assert_eq!(twice, "`vegas` is given twice; give every scheme once");
}

#[test]
fn documents_say_what_failed_and_close_what_they_open() {
    let evaluation = evaluated(&MadeUp { throughput: 0.5, ..LIKE_THE_REST });
    let text = in_words(&evaluation, &Screen::default());
    assert!(text.contains("6.3-utilization") && text.contains("fail"), "{text}");
    let table = markdown(&evaluation);
    let loud = table.split("<details>").next().unwrap();
    assert!(loud.contains("| 6.3-utilization | fail |") && !loud.contains("| 7.10-multipath |"), "{table}");
    let xml = junit(&evaluation, FailOn::Any);
    let failing = evaluation.schemes[0].criteria.iter().filter(|it| it.verdict == Judgment::Fail).count();
    assert_eq!(xml.matches("<failure ").count(), failing);
    assert!(failing > 0 && xml.contains(&format!("failures=\"{failing}\"")), "{xml}");
    assert_eq!(xml.matches("<testcase ").count(), xml.matches("</testcase>").count());
    assert!(!junit(&evaluation, FailOn::Regression).contains("<failure "));
    let page = page::html(&evaluation);
    assert!(page.contains("6.3-utilization") && page.contains("Is it fit for the Internet? RFC 9743"));
    let back: Evaluation = serde_json::from_str(&serde_json::to_string(&evaluation).unwrap()).unwrap();
    assert_eq!(back.schemes[0].criteria.len(), evaluation.schemes[0].criteria.len());
}
