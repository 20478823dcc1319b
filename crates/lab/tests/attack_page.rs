//! The tables of docs/attack.md are what the searches find today. They take a minute of two processors, so
//! `scripts/prove` runs them; `BRAKELIGHT_BLESS=1` writes the tables anew.

use brakelight_lab::attack::{Attack, Bounds, Objective, Space, attack};
use brakelight_scenario::documents::Found as Document;
use brakelight_scenario::scheme::Scheme;
use brakelight_testkit::part;

/// Where nothing else is said.
const BOUNDS: &str = "duration=20s,rate=1Mbps..12Mbps";

/// Returns what one command finds.
fn found(scheme: &str, objective: Objective, space: Space, bounds: &str, budget: u32, seed: u64) -> Document {
    let attacked = Scheme::parse(scheme).expect("a scheme");
    let bounds: Bounds = bounds.parse().expect("bounds");
    let request = Attack { objective, space, bounds, budget, seed, ..Attack::new(attacked) };
    attack(&request, &()).expect("a search").document
}

/// From the least to the most damage of the five seeds.
fn range(document: &Document) -> String {
    let [low, _, high] = document.damage_seeds;
    format!("{low:.1} to {high:.1}")
}

#[test]
#[ignore = "a minute of searches: scripts/prove"]
fn known_failures_are_found_again() {
    let low_rate = "duration=20s,rate=10Mbps..12Mbps,rtt=40ms,buffer=0.5..1";
    let rows = [
        (
            "Copa leaves a link unused because of delay that is not its queue's (`ccac21`)",
            ("copa", Objective::Waste, Space::Delay, BOUNDS, 300, 1),
        ),
        (
            "Copa starves beside Copa because of such delay (`arun22`)",
            ("copa", Objective::Starve, Space::Delay, BOUNDS, 300, 1),
        ),
        (
            "BBR starves beside BBR likewise (`arun22`)",
            ("bbr", Objective::Starve, Space::Delay, BOUNDS, 800, 4),
        ),
        (
            "Vivace starves beside Vivace likewise (`arun22`)",
            ("vivace", Objective::Starve, Space::Delay, BOUNDS, 1500, 2),
        ),
        (
            "AIMD leaves a link with a small buffer unused where ACKs come in bursts (`ccac21`)",
            ("newreno", Objective::Waste, Space::Delay, BOUNDS, 600, 1),
        ),
        (
            "Short pulses hold AIMD down, the low-rate attack (`ccfuzz22`)",
            ("newreno", Objective::Waste, Space::Cross, low_rate, 800, 1),
        ),
    ];
    let mut table = String::from(
        "| known failure | command | random links: median, worst | damage |\n|---|---|---|---|\n",
    );
    for (failure, (scheme, objective, space, bounds, budget, seed)) in rows {
        let document = found(scheme, objective, space, bounds, budget, seed);
        let unit = &document.unit;
        let own = if bounds == BOUNDS { String::new() } else { format!(", bounds `{bounds}`") };
        table += &format!(
            "| {failure} | `{scheme}`, `{}`, `{}`, {budget} links, seed {seed}{own} | {:.1}, {:.1} {unit} | {} {unit} |\n",
            objective.name(),
            space.name(),
            document.damage_random_median,
            document.damage_random_worst,
            range(&document),
        );
        // A failure that a search no longer finds must not be blessed away.
        assert!(document.damage_seeds[0] > document.damage_random_median, "{failure}: {document:?}");
    }
    part::check("../attack", "known failures", &table);
}

#[test]
#[ignore = "a minute of searches: scripts/prove"]
fn the_worst_links_of_four_schemes_are_these() {
    let mut table = String::from(
        "| | `delay`, ms | `waste`, points | random links at worst: ms, points |\n|---|---|---|---|\n",
    );
    for scheme in ["abc", "abc-adaptive", "xcp", "bbr3"] {
        let of = |objective| found(scheme, objective, Space::Steps, BOUNDS, 300, 1);
        let (delay, waste) = (of(Objective::Delay), of(Objective::Waste));
        let [low, _, high] = delay.damage_seeds;
        table += &format!(
            "| `{scheme}` | {low:.0} to {high:.0} | {} | {:.0}, {:.1} |\n",
            range(&waste),
            delay.damage_random_worst,
            waste.damage_random_worst
        );
    }
    part::check("../attack", "worst links", &table);
}

#[test]
#[ignore = "a minute of searches: scripts/prove"]
fn what_searches_do_not_find_is_this() {
    let starve = |budget, seed| found("bbr", Objective::Starve, Space::Delay, BOUNDS, budget, seed);
    let mut table = String::from("| search | damage |\n|---|---|\n");
    for (budget, seed) in [(800, 1), (800, 3), (800, 4), (800, 5), (1500, 2)] {
        let document = starve(budget, seed);
        table += &format!(
            "| `bbr`, `starve`, `delay`, {budget} links, seed {seed} | {} times |\n",
            range(&document)
        );
    }
    for (space, budget) in [(Space::Cross, 300), (Space::Delay, 600)] {
        let document = found("bbr", Objective::Waste, space, BOUNDS, budget, 1);
        table += &format!(
            "| `bbr`, `waste`, `{}`, {budget} links, seed 1 | {} points |\n",
            space.name(),
            range(&document)
        );
    }
    part::check("../attack", "not found", &table);
}

#[test]
#[ignore = "a minute of searches: scripts/prove"]
fn the_longest_waits_that_searches_find_are_these() {
    let bounds =
        "duration=20s,rate=6Mbps..24Mbps,change=2,rtt=100ms,buffer=100,correlation=120ms..2s,variation=3";
    let mut table = String::from(
        "| | longest wait, ms | once the link is simple, five seeds | random links: median, worst |\n|---|---|---|---|\n",
    );
    for scheme in ["abc", "abc-adaptive", "prague+dualpi2", "cubic+codel", "bbr3", "cubic"] {
        let document = found(scheme, Objective::Longest, Space::Steps, bounds, 300, 1);
        let [low, _, high] = document.damage_seeds;
        table += &format!(
            "| `{scheme}` | {:.0} | {low:.0} to {high:.0} | {:.0}, {:.0} |\n",
            document.damage_before, document.damage_random_median, document.damage_random_worst
        );
    }
    part::check("../abc-bound", "searches", &table);
}

/// The least that `abc` uses of links of the class.
#[test]
#[ignore = "a minute of searches: scripts/prove"]
fn the_least_use_that_searches_find_is_this() {
    let mut table = String::from(
        "| the link changes by at most | least use, % | once the link is simple, five seeds | random links: median, worst |\n\
         |---|---|---|---|\n",
    );
    for change in ["1.25", "2", "4"] {
        let bounds = format!(
            "duration=20s,rate=6Mbps..24Mbps,change={change},rtt=100ms,buffer=100,correlation=120ms..2s,variation=3"
        );
        let document = found("abc", Objective::Waste, Space::Steps, &bounds, 300, 1);
        let used = |wasted: f64| 100.0 - wasted;
        let [low, _, high] = document.damage_seeds;
        table += &format!(
            "| {change} | {:.1} | {:.1} to {:.1} | {:.1}, {:.1} |\n",
            used(document.damage_before),
            used(high),
            used(low),
            used(document.damage_random_median),
            used(document.damage_random_worst)
        );
    }
    part::check("../abc-bound", "least use", &table);
}
