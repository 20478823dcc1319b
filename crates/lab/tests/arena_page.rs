//! The table of docs/arena.md is what the built-in senders score today. It takes minutes of two processors,
//! so `scripts/prove` runs it; `BRAKELIGHT_BLESS=1` writes the table anew.

use std::sync::{Arc, Mutex};

use brakelight_core::controller::{AckEvent, Connection, Controller, LossEvent, Recovery, TimeoutEvent};
use brakelight_core::units::Bytes;
use brakelight_lab::arena::{Arena, Candidate, Plan, RoundSet, Scored};
use brakelight_lab::evaluate::Level;
use brakelight_lab::{Runner, Simulator, schemes};
use brakelight_registry::{ControllerFactory, DEFAULT_QUEUE, DynController, Registry};
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

/// The windows that are tried in every round, in packets.
const WINDOWS: [u64; 8] = [4, 8, 16, 32, 64, 128, 256, 512];

/// After so many ACKs a flow looks at its smallest RTT.
const LOOKS_AFTER: u64 = 10;

/// A sender that learned the public rounds by heart: it knows a round by the RTT of its first packets, and
/// takes the window that was best there. In a round that it does not know it takes that of the round with the
/// nearest RTT.
#[derive(Clone, Debug)]
struct ByHeart {
    knows: Arc<Vec<Known>>,
    /// The RTTs of the flows that were run, in seconds.
    seen: Arc<Mutex<Vec<f64>>>,
    acks: u64,
    mss: Bytes,
    cwnd: Bytes,
}

/// An RTT in seconds, and the best window there in packets.
#[derive(Clone, Copy, Debug)]
struct Known {
    rtt_s: f64,
    window_pkts: u64,
}

impl Controller for ByHeart {
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.acks += 1;
        if self.acks != LOOKS_AFTER {
            return;
        }
        let rtt_s = event.rtt.min.as_secs_f64();
        self.seen.lock().expect("nobody panicked").push(rtt_s);
        let nearest =
            |one: &&Known, other: &&Known| (one.rtt_s - rtt_s).abs().total_cmp(&(other.rtt_s - rtt_s).abs());
        if let Some(known) = self.knows.iter().min_by(nearest) {
            self.cwnd = Bytes(known.window_pkts * self.mss.0);
        }
    }

    fn on_loss(&mut self, _event: &LossEvent) {}

    fn on_timeout(&mut self, _event: &TimeoutEvent) {}

    fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    fn recovery(&self) -> Recovery {
        Recovery::Own
    }
}

/// Builds [`ByHeart`] with what it knows.
#[derive(Debug, Default)]
struct School {
    knows: Arc<Vec<Known>>,
    seen: Arc<Mutex<Vec<f64>>>,
}

impl ControllerFactory for School {
    fn build(&self, connection: &Connection) -> Box<dyn DynController> {
        Box::new(ByHeart {
            knows: self.knows.clone(),
            seen: self.seen.clone(),
            acks: 0,
            mss: connection.mss,
            cwnd: connection.initial_window,
        })
    }
}

fn with(school: School) -> Registry {
    let mut registry = Registry::standard();
    let summary = "What was best in the nearest round";
    registry.add_controller_factory("by-heart", summary, Arc::new(school)).expect("its name is free");
    registry
}

fn plan(registry: &Registry, set: &RoundSet, names: &[String]) -> Plan {
    let candidates = names.iter().map(|name| Candidate::parse(registry, name)).collect::<Result<_, _>>();
    Plan::new(registry, set, Level::Quick, candidates.expect("schemes")).expect("a contest")
}

/// Every window in every public round: the best of each round, with the RTT of each of its flows.
fn learned() -> Vec<Known> {
    let windows: Vec<String> = WINDOWS.iter().map(|pkts| format!("external:cwnd={pkts}pkt")).collect();
    let tried = plan(&Registry::standard(), &RoundSet::Train, &windows).run(&Simulator, &()).expect("scores");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let registry = with(School { seen: seen.clone(), ..School::default() });
    let looking = plan(&registry, &RoundSet::Train, &["by-heart".to_string()]);
    let (scenarios, traces) = looking.scenarios(0);
    let mut knows = Vec::new();
    for (round, scenario) in scenarios.iter().enumerate() {
        let worth = |pkts: u64| {
            let name = format!("external:cwnd={pkts}pkt");
            let scored = tried.candidates.iter().find(|scored| scored.scheme == name).expect("it was tried");
            scored.rounds[round].utility.sum()
        };
        let best = WINDOWS.into_iter().max_by(|one, other| worth(*one).total_cmp(&worth(*other)));
        seen.lock().expect("nobody panicked").clear();
        Simulator.run(scenario, traces).expect("a run");
        let rtts = seen.lock().expect("nobody panicked").clone();
        knows.extend(
            rtts.into_iter().map(|rtt_s| Known { rtt_s, window_pkts: best.expect("there are windows") }),
        );
    }
    knows
}

#[test]
#[ignore = "minutes of simulations: scripts/prove"]
fn a_sender_that_learned_the_public_rounds_by_heart_falls_on_hidden_ones() {
    let registry = with(School { knows: Arc::new(learned()), ..School::default() });
    let hidden = RoundSet::of_key(b"a key for the page of the arena").expect("a key");
    let names = ["by-heart", "copa", "bbr3"].map(String::from);
    let scores = [RoundSet::Train, hidden]
        .map(|set| plan(&registry, &set, &names).run(&Simulator, &()).expect("scores"));
    let of = |arena: usize, name: &str| {
        scores[arena].candidates.iter().find(|scored| scored.scheme == name).expect("it competed").clone()
    };
    let mut table = String::from("| sender | `train` | hidden |\n|---|---|---|\n");
    for name in &names {
        let [known, hidden] = [of(0, name), of(1, name)];
        table += &format!("| `{name}` | {} | {} |\n", with_interval(&known), with_interval(&hidden));
    }
    let [known, hidden] = [of(0, "by-heart").score, of(1, "by-heart").score];
    assert!(known > 0.0 && hidden < 0.8 * known, "{table}");
    part::check("../arena", "by heart", &table);
}
