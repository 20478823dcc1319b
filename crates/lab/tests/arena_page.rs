//! The table of docs/arena.md is what the built-in senders score today. It takes minutes of two processors,
//! so `scripts/prove` runs it; `BRAKELIGHT_BLESS=1` writes the table anew.

use brakelight_lab::arena::{Arena, Candidate, Plan, RoundSet, Scored};
use brakelight_lab::evaluate::Level;
use brakelight_lab::{Simulator, schemes};
use brakelight_registry::{DEFAULT_QUEUE, Registry};
use brakelight_testkit::part;

/// The senders that need no router.
fn senders(registry: &Registry) -> Vec<String> {
    let all = schemes::all(registry).into_iter();
    all.filter(|scheme| scheme.queue().name() == DEFAULT_QUEUE).map(|scheme| scheme.to_string()).collect()
}

fn scores(registry: &Registry, set: &RoundSet) -> Arena {
    let candidates =
        senders(registry).iter().map(|name| Candidate::parse(registry, name)).collect::<Result<_, _>>();
    let plan = Plan::new(registry, set, Level::Full, candidates.expect("schemes")).expect("a contest");
    plan.run(&Simulator, &()).expect("scores")
}

fn with_interval(scored: &Scored) -> String {
    let [low, high] = scored.interval95.expect("rounds have an interval");
    format!("{:.2} ({low:.2} to {high:.2})", scored.score)
}

#[test]
#[ignore = "minutes of simulations: scripts/prove"]
fn the_scores_of_the_book_are_what_the_command_gives() {
    let registry = Registry::standard();
    let train = scores(&registry, &RoundSet::Train);
    let validation = scores(&registry, &RoundSet::Validation);
    let mut table = String::from(
        "| sender | `validation`: score | throughput | delay | loss | fairness | harm | `train`: score |\n|---|---|---|---|---|---|---|---|\n",
    );
    for scored in &validation.candidates {
        assert!(scored.rounds.iter().all(|round| round.failed.is_empty()), "{}", scored.scheme);
        let other =
            train.candidates.iter().find(|other| other.scheme == scored.scheme).expect("the same senders");
        let parts = scored.parts.named().map(|(_, value)| format!("{value:+.2}")).join(" | ");
        table += &format!(
            "| `{}` | {} | {parts} | {} |\n",
            scored.scheme,
            with_interval(scored),
            with_interval(other)
        );
    }
    part::check("../arena", "arena", &table);
}
