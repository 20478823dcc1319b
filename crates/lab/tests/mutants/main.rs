//! Controllers made wrong on purpose, one fault each. A criterion that is about the fault must find it. Those
//! that nothing finds are listed as such, so that nobody takes a pass for more than it says.

mod controller;

use std::sync::Arc;

use brakelight_lab::Simulator;
use brakelight_lab::evaluate::{Level, Plan};
use brakelight_registry::Registry;
use brakelight_scenario::documents::Judgment;
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::names::Names;

use Made::{By, Options};
use controller::Fault;

/// How a mutant is made.
#[derive(Clone, Copy)]
enum Made {
    /// A controller of its own.
    By(Fault),
    /// One of ours with wrong options.
    Options(&'static str),
}

/// A mutant, and what is expected of the criterion that is about its fault.
struct Case {
    /// What is wrong with it.
    fault: &'static str,
    made: Made,
    kit: &'static str,
    experiment: &'static str,
    criterion: &'static str,
    found: bool,
}

const fn case(
    fault: &'static str,
    made: Made,
    kit: &'static str,
    experiment: &'static str,
    criterion: &'static str,
) -> Case {
    Case { fault, made, kit, experiment, criterion, found: true }
}

/// New Reno, and a criterion of RFC 9743 that stands in the file of its own name.
const fn reno(fault: &'static str, made: Fault, criterion: &'static str) -> Case {
    case(fault, By(made), "rfc9743", criterion, criterion)
}

/// The same, in a file of another name.
const fn reno_in(
    fault: &'static str,
    made: Fault,
    experiment: &'static str,
    criterion: &'static str,
) -> Case {
    case(fault, By(made), "rfc9743", experiment, criterion)
}

const fn bbr(fault: &'static str, made: Made, experiment: &'static str, criterion: &'static str) -> Case {
    case(fault, made, "bbr", experiment, criterion)
}

const fn not_found(case: Case) -> Case {
    Case { found: false, ..case }
}

const MUTANTS: &[Case] = &[
    reno("ignores losses: beta is 1", Fault::IgnoresLoss, "5.1.3-loss"),
    reno("ignores losses below 10 %", Fault::IgnoresLossBelowTenPercent, "5.1.3-loss"),
    reno("never leaves slow start", Fault::NeverLeavesSlowStart, "5.1.3-loss"),
    reno("reacts to losses two seconds late", Fault::ReactsLate, "5.1.3-loss"),
    reno("reacts to every tenth loss", Fault::ReactsToEveryTenthLoss, "5.1.3-loss"),
    reno("reacts to losses once a second", Fault::ReactsOncePerSecond, "5.1.3-loss"),
    reno("ignores losses after five seconds", Fault::TiresOfLosses, "5.1.3-loss"),
    reno("sends eight windows for a round trip, every two seconds", Fault::ProbesEightfold, "5.1.3-loss"),
    reno("has an additive increase of 1/RTT^2", Fault::FavorsShortRtts, "5.1.4-rtt"),
    reno("stops growing after five seconds", Fault::StopsGrowing, "5.1.4-fairness"),
    reno("keeps nine tenths of its largest window", Fault::KeepsItsShare, "5.1.4-fairness"),
    reno("grows while the application is the limit", Fault::GrowsWhenLimited, "5.1.3-limited"),
    reno("sends 300 packets more after a pause", Fault::BurstsAfterIdle, "5.1.3-idle"),
    reno_in("ignores timeouts", Fault::IgnoresTimeouts, "5.1.1-overload", "5.1.1-loss"),
    reno_in("has four packets in flight at least", Fault::Floor(4), "5.1.1-overload", "5.1.1-loss"),
    reno("has a window of 2000 packets", Fault::FixedLargeWindow, "5.2-silence"),
    reno("panics at a timeout", Fault::PanicsAtTimeouts, "5.2-silence"),
    reno_in("adds ten packets per round trip", Fault::GrowsTimes(10), "5.2.1-standard", "5.2.1-harm"),
    reno_in("acts like eight flows", Fault::ActsLikeMany(8), "5.2.1-standard", "5.2.1-harm"),
    reno_in("yields to every queue", Fault::Yields, "5.2.1-standard", "5.2.1-starved"),
    reno_in("has no slow start", Fault::NoSlowStart, "5.1.5-short", "5.1.5-short"),
    reno_in("sends at 20 Mbit/s, whatever happens", Fault::ConstantRate, "5.3.2-policer", "5.3.2-policed"),
    reno_in("falls to one packet at every loss", Fault::CollapsesAtLoss, "6.1-taildrop", "6.1-utilization"),
    reno_in("waits three seconds after a loss", Fault::SilentAfterLoss, "6.1-taildrop", "6.1-utilization"),
    reno_in("has four packets in flight at most", Fault::Capped(4), "6.3-wired", "6.3-utilization"),
    reno_in("paces at 2 Mbit/s", Fault::PacesTooSlowly, "6.3-wired", "6.3-utilization"),
    reno_in("panics at a loss", Fault::Panics, "6.3-wired", "6.3-utilization"),
    reno_in("ignores CE", Fault::IgnoresCe, "7.1-aqm", "7.1-delay"),
    reno_in("has a hundred packets in flight at least", Fault::Floor(100), "7.1-aqm", "7.1-delay"),
    reno_in("panics at CE", Fault::PanicsAtCe, "7.1-aqm", "7.1-delay"),
    reno_in("takes CE for three losses and a timeout", Fault::CollapsesAtCe, "7.1-aqm", "7.1-utilization"),
    reno_in("takes 10 % more delay for a loss", Fault::FleesFromDelay, "7.3-delay", "7.3-utilization"),
    reno_in("has a window of 64 kB at most", Fault::Capped(44), "7.5-satellite", "7.5-utilization"),
    reno_in(
        "takes an RTT above 300 ms for a loss",
        Fault::TakesLongRttsForTimeouts,
        "7.5-satellite",
        "7.5-utilization",
    ),
    reno_in("keeps half of its largest window", Fault::KeepsHighest, "7.9-change", "7.9-loss"),
    reno_in("has twenty packets in flight at least", Fault::Floor(20), "7.11-datacenter", "7.11-loss"),
    bbr(
        "Startup gains 10 % a round",
        Options("bbr3:startup_pacing_gain=1.1"),
        "1-startup-plateau",
        "1-bandwidth",
    ),
    bbr(
        "Startup goes on at any loss below a half",
        Options("bbr3:loss_threshold=0.5"),
        "2-startup-loss",
        "2-exit",
    ),
    bbr("Drain does not drain", Options("bbr3:drain_pacing_gain=0.99"), "3-drain-inflight", "3-gain"),
    bbr("paces half as fast again as it means to", By(Fault::PacesTooFast), "3-drain-outside", "3-queue"),
    bbr("Down does not drain", Options("bbr3:down_pacing_gain=1"), "8-down-inflight", "8-gain"),
    bbr("ProbeRTT lasts five seconds", Options("bbr3:probe_rtt_time=5s"), "10-probe-rtt", "10-most"),
    bbr("ProbeRTT never ends", By(Fault::EndlessProbeRtt), "10-probe-rtt", "10-resumes"),
    bbr(
        "ProbeRTT never comes",
        Options("bbr3:probe_rtt_interval=1000s"),
        "20-startup-probe-rtt",
        "20-enters",
    ),
    not_found(bbr("does not pace", By(Fault::NoPacing), "21-up-loss-bounded", "21-loss")),
    not_found(reno_in("never grows after a loss", Fault::NeverGrowsAgain, "7.9-change", "7.9-utilization")),
    not_found(reno("keeps its window when idle", Fault::KeepsWindowWhenIdle, "5.1.3-idle")),
    not_found(reno("begins with 400 packets", Fault::BeginsWith(400), "5.1.5-short")),
];

/// The name of a mutant's scheme.
fn scheme(place: usize, case: &Case) -> String {
    match case.made {
        By(_) => format!("mutant-{place}"),
        Options(text) => text.to_string(),
    }
}

fn registry() -> Registry {
    let mut registry = Registry::standard();
    for (place, case) in MUTANTS.iter().enumerate() {
        if let By(fault) = case.made {
            let name = Box::leak(scheme(place, case).into_boxed_str());
            registry.add_controller_factory(name, "A controller with a fault", Arc::new(fault)).unwrap();
        }
    }
    registry
}

/// Holds the table of docs/evaluation.md to the list above.
#[test]
fn the_book_lists_every_mutant_and_what_finds_it() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/evaluation.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("<!-- mutants -->\n").unwrap();
    let (shown, after) = rest.split_once("<!-- end -->").unwrap();
    let mut made = "| made from | fault | criterion | found |\n|---|---|---|---|\n".to_string();
    for case in MUTANTS {
        let from = if case.kit == "bbr" { "BBRv3" } else { "New Reno" };
        let found = if case.found { "yes" } else { "no" };
        made += &format!("| {from} | {} | {} | {found} |\n", case.fault, case.criterion);
    }
    if std::env::var_os("BRAKELIGHT_BLESS").is_some() {
        let new = format!("{before}<!-- mutants -->\n{made}<!-- end -->{after}");
        std::fs::write(path, new).unwrap();
    } else {
        assert_eq!(shown, made, "BRAKELIGHT_BLESS=1 writes it again");
    }
}

#[test]
fn nine_of_ten_mutants_are_found() {
    assert!(MUTANTS.len() >= 40);
    let found = MUTANTS.iter().filter(|case| case.found).count();
    assert!(found * 10 >= MUTANTS.len() * 9, "{found} of {}", MUTANTS.len());
}

/// Returns the mutants of `kit` of which something else is true than the list says.
fn surprises(kit: &str) -> Vec<String> {
    let registry = registry();
    let cases: Vec<(String, &Case)> =
        MUTANTS.iter().enumerate().map(|(place, case)| (scheme(place, case), case)).collect();
    let cases: Vec<(String, &Case)> = cases.into_iter().filter(|(_, case)| case.kit == kit).collect();
    let schemes: Vec<Scheme> =
        cases.iter().map(|(name, _)| Scheme::parse_with(&registry, name).unwrap()).collect();
    let mut plan = Plan::new(&registry, kit, Level::Quick, &schemes).unwrap();
    let texts: Vec<String> = schemes.iter().map(ToString::to_string).collect();
    plan.retain(|scheme, experiment| {
        cases.iter().zip(&texts).any(|((_, case), text)| text == scheme && case.experiment == experiment)
    });
    let evaluation = plan.run(&Simulator, &Names::default(), &()).unwrap();
    let mut surprises = Vec::new();
    for (evaluated, (_, case)) in evaluation.schemes.iter().zip(&cases) {
        let criterion = evaluated.criteria.iter().find(|criterion| criterion.id == case.criterion).unwrap();
        let point = criterion.deciding().map(|point| (point.measured, point.bound, point.within));
        let said = format!(
            "{}: {} {:?} {point:?} {}",
            case.fault, case.criterion, criterion.verdict, criterion.note
        );
        if (criterion.verdict == Judgment::Fail) != case.found {
            surprises.push(said);
        }
        if case.fault.starts_with("panics") {
            assert!(criterion.note.contains("it panicked: a "), "{}: {}", case.fault, criterion.note);
        }
    }
    surprises
}

#[test]
fn mutants_of_new_reno_fail_the_criterion_of_their_fault() {
    let surprises = surprises("rfc9743");
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}

#[test]
fn mutants_of_bbr_fail_the_case_of_their_fault() {
    let surprises = surprises("bbr");
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}
