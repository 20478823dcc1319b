//! Controllers made wrong on purpose, one fault each: the criteria of RFC 9743 must find every one of them by
//! a criterion that names the fault's kind. They are New Reno in everything but the fault.

use std::sync::Arc;

use brakelight_core::controller::{
    AckEvent, Connection, Controller, Decision, IdleEvent, LossEvent, Recovery, SendDirective, SendEvent,
    SpuriousEvent, TimeoutEvent,
};
use brakelight_core::ecn::Encoding;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_lab::Simulator;
use brakelight_lab::evaluate::{Level, Plan};
use brakelight_registry::{AnyController, ControllerConfig, ControllerFactory, DynController, Registry};
use brakelight_scenario::documents::Judgment;
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::names::Names;

/// What is wrong with a mutant.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// A loss changes nothing: beta is 1.
    IgnoresLoss,
    /// A loss changes nothing below a loss rate of 10 %.
    IgnoresLossBelowTenPercent,
    /// Slow start goes on after every loss.
    NeverLeavesSlowStart,
    /// The additive increase is that of an RTT of 100 ms over the square of the RTT.
    FavorsShortRtts,
    /// The window grows while the application is the limit.
    GrowsWhenLimited,
    /// A CE mark changes nothing.
    IgnoresCe,
    /// A timeout changes nothing.
    IgnoresTimeouts,
    /// A window of 2000 packets, whatever happens.
    FixedLargeWindow,
    /// A window of four packets at most.
    SmallWindow,
    /// An RTT 10 % above the smallest is taken for a loss, once per round trip.
    FleesFromDelay,
    /// A loss is acted upon two seconds late.
    ReactsLate,
    /// It stops growing five seconds after its start.
    StopsGrowing,
    /// It paces at 2 Mbit/s, whatever the window is.
    PacesTooSlowly,
    /// It panics at the first loss.
    Panics,
}

/// Each mutant: its name, its fault, the experiment that must find it, and a criterion there that fails.
const MUTANTS: &[(&str, Fault, &str, &str)] = &[
    ("ignores-loss", Fault::IgnoresLoss, "5.1.3-loss", "5.1.3-loss"),
    ("ignores-loss-10", Fault::IgnoresLossBelowTenPercent, "5.1.3-loss", "5.1.3-loss"),
    ("endless-slow-start", Fault::NeverLeavesSlowStart, "5.1.3-loss", "5.1.3-loss"),
    ("favors-short-rtts", Fault::FavorsShortRtts, "5.1.4-rtt", "5.1.4-rtt"),
    ("grows-when-limited", Fault::GrowsWhenLimited, "5.1.3-limited", "5.1.3-limited"),
    ("ignores-ce", Fault::IgnoresCe, "7.1-aqm", "7.1-delay"),
    ("ignores-timeouts", Fault::IgnoresTimeouts, "5.1.1-overload", "5.1.1-loss"),
    ("fixed-window", Fault::FixedLargeWindow, "5.2-silence", "5.2-silence"),
    ("small-window", Fault::SmallWindow, "6.3-wired", "6.3-utilization"),
    ("flees-from-delay", Fault::FleesFromDelay, "7.3-delay", "7.3-utilization"),
    ("reacts-late", Fault::ReactsLate, "5.1.3-loss", "5.1.3-loss"),
    ("stops-growing", Fault::StopsGrowing, "5.1.4-fairness", "5.1.4-fairness"),
    ("paces-too-slowly", Fault::PacesTooSlowly, "6.3-wired", "6.3-utilization"),
    ("panics", Fault::Panics, "6.3-wired", "6.3-utilization"),
];

/// New Reno with a fault.
#[derive(Clone, Debug)]
struct Mutant {
    fault: Fault,
    reno: AnyController,
    mss: Bytes,
    started: Option<Time>,
    /// Bytes delivered and lost, as of the last ACK.
    delivered: Bytes,
    lost: Bytes,
    /// When a loss is acted upon.
    due: Option<LossEvent>,
    /// What slow start added that New Reno does not know of.
    extra: Bytes,
    /// The round trip in which a delay was last taken for a loss.
    fled: Option<u64>,
}

impl Mutant {
    fn new(fault: Fault, connection: &Connection) -> Self {
        let options: &[(&str, &str)] = if fault == Fault::IgnoresCe { &[("ecn", "true")] } else { &[] };
        Mutant {
            fault,
            reno: ControllerConfig::new("newreno", options).unwrap().build(connection),
            mss: connection.mss,
            started: None,
            delivered: Bytes(0),
            lost: Bytes(0),
            due: None,
            extra: Bytes(0),
            fled: None,
        }
    }

    /// Grows by `event` as if so many times as much had been acknowledged, in steps that New Reno knows.
    fn grow(&mut self, event: &AckEvent<'_>, times: f64) {
        self.reno.on_ack(&AckEvent { growth: Bytes((event.growth.as_f64() * times) as u64), ..*event });
    }
}

impl Controller for Mutant {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        self.reno.on_send(event)
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        let started = *self.started.get_or_insert(event.now);
        (self.delivered, self.lost) = (event.delivered, event.total_lost);
        if let Some(due) = self.due.filter(|due| event.now.since(due.now) > Duration::from_secs(2)) {
            self.due = None;
            self.reno.on_loss(&LossEvent { now: event.now, ..due });
        }
        match self.fault {
            Fault::FavorsShortRtts => {
                let rtts = 0.1 / event.rtt.smoothed.as_secs_f64().max(0.001);
                self.grow(event, (rtts * rtts).min(100.0));
            }
            Fault::NeverLeavesSlowStart if !event.in_recovery() && event.cwnd_limited => {
                self.extra = Bytes(self.extra.0 + event.growth.0);
            }
            Fault::GrowsWhenLimited => self.reno.on_ack(&AckEvent { cwnd_limited: true, ..*event }),
            Fault::StopsGrowing if event.now.since(started) > Duration::from_secs(5) => {}
            Fault::FleesFromDelay => {
                let late = event
                    .rtt
                    .sample
                    .is_some_and(|sample| sample.as_secs_f64() > 1.1 * event.rtt.min.as_secs_f64());
                if late && self.fled != Some(event.round) && !event.in_recovery() {
                    self.fled = Some(event.round);
                    self.reno.on_loss(&LossEvent {
                        now: event.now,
                        sent_at: event.now,
                        inflight: event.inflight_before,
                        lost: Bytes(0),
                        srtt: event.rtt.smoothed,
                        min_rtt: event.rtt.min,
                    });
                }
                self.reno.on_ack(event);
            }
            _ => self.reno.on_ack(event),
        }
    }

    fn on_loss(&mut self, event: &LossEvent) {
        match self.fault {
            Fault::IgnoresLoss => {}
            Fault::IgnoresLossBelowTenPercent if self.lost.0 * 9 < self.delivered.0 => {}
            Fault::ReactsLate => {
                self.due.get_or_insert(*event);
            }
            Fault::Panics => panic!("a window of nothing"),
            Fault::NeverLeavesSlowStart => self.extra = Bytes(self.extra.0 / 2),
            _ => self.reno.on_loss(event),
        }
    }

    fn on_ce(&mut self, event: &LossEvent) {
        if self.fault != Fault::IgnoresCe {
            self.reno.on_ce(event);
        }
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        if self.fault != Fault::IgnoresTimeouts {
            self.reno.on_timeout(event);
        }
    }

    fn on_spurious_loss(&mut self, event: &SpuriousEvent) {
        self.reno.on_spurious_loss(event);
    }

    fn on_recovery_exit(&mut self, now: Time) {
        self.reno.on_recovery_exit(now);
    }

    fn on_idle_restart(&mut self, event: &IdleEvent) {
        self.reno.on_idle_restart(event);
    }

    fn cwnd(&self) -> Bytes {
        match self.fault {
            Fault::FixedLargeWindow => Bytes(2000 * self.mss.0),
            Fault::SmallWindow => self.reno.cwnd().min(Bytes(4 * self.mss.0)),
            _ => Bytes(self.reno.cwnd().0 + self.extra.0),
        }
    }

    fn ssthresh(&self) -> Option<Bytes> {
        if self.fault == Fault::NeverLeavesSlowStart { None } else { self.reno.ssthresh() }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        if self.fault == Fault::PacesTooSlowly { Some(Rate::from_mbps(2)) } else { self.reno.pacing_rate() }
    }

    fn decision(&self) -> Decision {
        Decision { cwnd: self.cwnd(), pacing_rate: self.pacing_rate(), next_timer: self.next_timer() }
    }

    fn recovery(&self) -> Recovery {
        self.reno.recovery()
    }

    fn encoding(&self) -> Encoding {
        self.reno.encoding()
    }
}

impl ControllerFactory for Fault {
    fn build(&self, connection: &Connection) -> Box<dyn DynController> {
        Box::new(Mutant::new(*self, connection))
    }
}

fn registry() -> Registry {
    let mut registry = Registry::standard();
    for (name, fault, ..) in MUTANTS {
        registry.add_controller_factory(name, "New Reno with a fault", Arc::new(*fault)).unwrap();
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
    let mut made = "| mutant | fails |\n|---|---|\n".to_string();
    for (name, _, _, criterion) in MUTANTS {
        made += &format!("| {} | {criterion} |\n", name.replace('-', " "));
    }
    if std::env::var_os("BRAKELIGHT_BLESS").is_some() {
        let new = format!("{before}<!-- mutants -->\n{made}<!-- end -->{after}");
        std::fs::write(path, new).unwrap();
    } else {
        assert_eq!(shown, made, "BRAKELIGHT_BLESS=1 writes it again");
    }
}

#[test]
fn every_mutant_fails_the_criterion_of_its_fault() {
    let registry = registry();
    let schemes: Vec<Scheme> =
        MUTANTS.iter().map(|(name, ..)| Scheme::parse_with(&registry, name).unwrap()).collect();
    let mut plan = Plan::new(&registry, "rfc9743", Level::Quick, &schemes).unwrap();
    plan.retain(|scheme, experiment| {
        MUTANTS.iter().any(|(name, _, by, _)| *name == scheme && *by == experiment)
    });
    let evaluation = plan.run(&Simulator, &Names::default(), &()).unwrap();
    let mut missed = Vec::new();
    for (evaluated, (name, _, _, id)) in evaluation.schemes.iter().zip(MUTANTS) {
        let criterion = evaluated.criteria.iter().find(|criterion| criterion.id == *id).unwrap();
        if criterion.verdict != Judgment::Fail {
            missed.push(format!("{name}: {id} is {:?} at {:?}", criterion.verdict, criterion.points));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    let panicked = &evaluation.schemes.last().unwrap().criteria[0];
    assert!(panicked.note.ends_with("it panicked: a window of nothing"), "{}", panicked.note);
}
