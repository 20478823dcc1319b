//! Plans, failures and documents with runs that are made up, and what real runs of controllers give.

use brakelight_scenario::outcome::{Run, Series};

use super::*;
use crate::error::Cause;
use crate::runner::Simulator;
use crate::text::Screen;
use crate::text::conformance::{in_words, markdown};

/// The scheme whose runs are made up.
const TESTED: &str = "vegas";

/// A plan for schemes of one option at most, with commas between them.
fn plan(schemes: &str, reference: &str, level: Level) -> Result<Plan, Error> {
    let schemes: Vec<Scheme> = schemes.split(',').map(|scheme| Scheme::parse(scheme).unwrap()).collect();
    Plan::new(&Registry::standard(), &Scheme::parse(reference).unwrap(), level, &schemes)
}

/// Gives the first flow a square of points: half of the link, and what the tested scheme has more.
struct MadeUp {
    /// What the tested scheme has more, as a share of the link.
    more: f64,
    /// How its runs end otherwise.
    fails: Option<&'static str>,
}

impl Runner for MadeUp {
    fn run(&self, scenario: &Scenario, _: &Traces) -> Result<Outcome, Cause> {
        let is_tested = scenario.flows[0].controller.name() == TESTED;
        match self.fails {
            Some("panics") if is_tested => panic!("division by zero"),
            Some("silent") if is_tested => {
                return Ok(Outcome { series: Some(Series::default()), ..Outcome::default() });
            }
            Some(why) if is_tested => return Err(why.into()),
            _ => {}
        }
        let bin_s = scenario.record.bin.as_secs_f64();
        let count = (scenario.duration.as_secs_f64() / bin_s) as usize;
        let rate_mbps: f64 = scenario.name.split("Mbps").next().unwrap().parse().unwrap();
        let rtt_ms = 100.0 * bin_s;
        // Evenly, and never twice in one place: multiples of irrational numbers.
        let share = |index: usize, step: f64| ((index + 1000 * scenario.seed as usize) as f64 * step).fract();
        let middle = 0.5 + if is_tested { self.more } else { 0.0 };
        let flow = FlowSeries {
            time_s: (0..count).map(|index| index as f64 * bin_s).collect(),
            throughput_mbps: (0..count)
                .map(|index| rate_mbps * (middle + 0.1 * share(index, 0.754_877_666_2)))
                .collect(),
            rtt_ms: (0..count)
                .map(|index| Some(rtt_ms * (1.2 + 0.1 * share(index, 0.569_840_291))))
                .collect(),
            ..FlowSeries::default()
        };
        let series = Some(Series { bin_s, flows: vec![flow], ..Series::default() });
        Ok(Outcome { run: Run::default(), series, ..Outcome::default() })
    }
}

fn made_up(more: f64, fails: Option<&'static str>) -> Conformance {
    plan(TESTED, "newreno", Level::Quick).unwrap().run(&MadeUp { more, fails }, &()).unwrap()
}

#[test]
fn a_level_has_its_links_and_buffers_for_the_reference_and_each_scheme() {
    // Half of 1 Mbit/s times 300 ms is 18.75 kB: twelve packets and a half, rounded away from zero. Half of
    // 20 Mbit/s times 10 ms is 12.5 kB: eight.
    for (level, cells, least) in [(Level::Quick, 9, 13.0), (Level::Full, 27, 8.0)] {
        let plan = plan("vegas,cubic", "newreno", level).unwrap();
        assert_eq!(plan.files().len(), 3 * cells);
        let buffers: Vec<f64> = plan.planned.iter().map(|it| it.path.buffer(it.buffer_bdp)).collect();
        assert_eq!(buffers.iter().copied().reduce(f64::min), Some(least * PACKET));
        let names: Vec<String> = plan.files().into_iter().map(|file| file.name).collect();
        assert!(names.contains(&"scenarios/reference/20Mbps-50ms-0.5bdp.toml".to_string()), "{names:?}");
        assert!(names.contains(&"scenarios/2/1Mbps-300ms-5bdp.toml".to_string()));
    }
    let full = plan("vegas", "newreno", Level::Full).unwrap();
    let range =
        |of: &dyn Fn(&Planned) -> u32| (full.planned.iter().map(of).min(), full.planned.iter().map(of).max());
    assert_eq!(range(&|it| it.path.rate_mbps), (Some(1), Some(1000)));
    assert_eq!(range(&|it| it.path.rtt_ms), (Some(5), Some(300)));
}

#[test]
fn reference_and_scheme_have_other_seeds_and_the_files_say_which() {
    let plan = plan("newreno", "newreno", Level::Quick).unwrap();
    let (reference, own) = plan.planned.split_at(9);
    assert!(reference.iter().all(|it| it.scenario.seed == 1 && it.text.contains("seed = 1\n")));
    assert!(own.iter().all(|it| it.scenario.seed == 6 && it.text.contains("seed = 6\n")));
}

#[test]
fn equal_clouds_conform_and_one_that_takes_more_does_only_once_moved() {
    // 160 points that fill a square evenly leave a part of its edge outside the hull of 152 others.
    let same = &made_up(0.0, None).schemes[0];
    assert!(same.conformance.unwrap() > 0.9, "{:?}", same.conformance);
    let greedy = &made_up(0.2, None).schemes[0];
    assert_eq!(greedy.conformance, Some(0.0));
    assert!(greedy.conformance_t.unwrap() > 0.9, "{:?}", greedy.conformance_t);
    assert!((greedy.throughput_offset_percent.unwrap() - 20.0).abs() < 2.0, "{greedy:?}");
    assert!(greedy.delay_offset_percent.unwrap().abs() < 2.0);
}

#[test]
fn a_run_that_fails_or_panics_leaves_its_links_without_a_number_and_says_why() {
    for (fails, why) in [
        ("no route", "seed 6: no route"),
        ("panics", "seed 6: it panicked: division by zero"),
        ("silent", "seed 6: it has no series"),
    ] {
        let conformance = made_up(0.0, Some(fails));
        let scheme = &conformance.schemes[0];
        assert_eq!((scheme.conformance, scheme.worst), (None, None));
        assert!(scheme.cells.iter().all(|cell| cell.note == why && cell.conformance.is_none()), "{scheme:?}");
        let text = in_words(&conformance, &Screen::default());
        assert!(text.contains("vegas: no link gave a conformance to newreno"), "{text}");
        assert!(text.contains(&format!("20 Mbit/s, 50 ms, 1 BDP: {why}")), "{text}");
    }
}

#[test]
fn schemes_with_a_queue_of_their_own_are_refused_and_so_is_one_given_twice() {
    for (schemes, reference, expected) in [
        ("abc", "cubic", "`abc` has the queue `abc`; with --like all flows share `droptail`"),
        ("cubic", "newreno+codel", "`newreno+codel` has the queue `codel`; with --like"),
        ("cubic,vegas,cubic", "newreno", "`cubic` is given twice; give every scheme once"),
    ] {
        let error = plan(schemes, reference, Level::Quick).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn the_document_is_read_back_and_text_markdown_and_page_have_the_numbers() {
    let conformance = made_up(0.2, None);
    let json = serde_json::to_string(&conformance).unwrap();
    assert_eq!(serde_json::from_str::<Conformance>(&json).unwrap(), conformance);
    let text = in_words(&conformance, &Screen::default());
    assert!(text.starts_with("vegas: conformance to newreno 0.00, Conformance-T "), "{text}");
    assert!(text.contains("more of the link than the reference"), "{text}");
    // The scheme's letters are above those of the reference.
    let (own, reference) = (text.find("┤").unwrap(), text.rfind("┤").unwrap());
    assert!(
        text[own..].starts_with("┤") && text[own..reference].contains('o') && text[reference..].contains('r')
    );
    assert!(markdown(&conformance).contains("| 20 | 50 | 0.5 | 0.00 |"));
    let html = page::html(&conformance);
    assert!(html.contains("Is it like newreno?") && html.contains("\"place\":\"20 Mbit/s, 50 ms, 0.5 BDP\""));
}

/// What real runs give at 1 Mbit/s and 300 ms, where a packet is 12 ms, and at 20 Mbit/s with a long buffer.
fn measured(schemes: &str, reference: &str) -> Conformance {
    let mut plan = plan(schemes, reference, Level::Quick).unwrap();
    plan.retain(|rate_mbps, _, bdp| rate_mbps == 1 || (rate_mbps == 20 && bdp > 1.0));
    plan.run(&Simulator, &()).unwrap()
}

/// The conformance of each scheme.
fn of(conformance: &Conformance) -> Vec<f64> {
    conformance.schemes.iter().map(|scheme| scheme.conformance.unwrap()).collect()
}

#[test]
fn cubic_is_like_cubic_and_reno_and_a_cubic_that_yields_too_little_are_not() {
    let conformance = measured("cubic,newreno,cubic:beta=0.85", "cubic");
    let [cubic, reno, mutant] = of(&conformance)[..] else { panic!("three schemes") };
    assert!(cubic > 0.9, "{cubic}");
    assert!(reno < 0.5 && mutant < 0.5, "{reno} {mutant}");
    let [_, reno, mutant] = &conformance.schemes[..] else { panic!("three schemes") };
    assert!(reno.throughput_offset_percent.unwrap() < -10.0, "{reno:?}");
    assert!(mutant.throughput_offset_percent.unwrap() > 5.0, "{mutant:?}");
    assert!(mutant.conformance_t.unwrap() > mutant.conformance.unwrap() + 0.3, "{mutant:?}");
}

#[test]
fn vegas_is_not_like_reno_and_gives_way_to_it() {
    let conformance = measured("vegas", "newreno");
    assert!(of(&conformance)[0] < 0.2, "{:?}", of(&conformance));
    assert!(conformance.schemes[0].throughput_offset_percent.unwrap() < -20.0);
}

#[cfg(feature = "parallel")]
#[test]
fn one_thread_and_eight_give_the_same_bytes() {
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        serde_json::to_string(&pool.install(|| measured("newreno", "cubic"))).unwrap()
    };
    let one = with(1);
    assert_eq!(one, with(8));
    assert_eq!(one, with(1));
}
