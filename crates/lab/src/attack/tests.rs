//! Attacks with small budgets on short runs.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use brakelight_core::random::Random;
use brakelight_scenario::file;

use super::*;

fn bounds(more: &str) -> Bounds {
    format!("duration=2s,rate=1Mbps..6Mbps,rtt=20ms..60ms{more}").parse().unwrap()
}

fn request(scheme: &str, objective: Objective, space: Space, budget: u32) -> Attack {
    let bounds = bounds("");
    Attack { objective, space, bounds, budget, ..Attack::new(Scheme::parse(scheme).unwrap()) }
}

/// A folder of this test's own that goes with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("brakelight-attack-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Scratch(path)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Asks to stop after so many links.
struct Until(usize, AtomicUsize);

impl Progress for Until {
    fn step(&self, _: &str) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }

    fn is_cancelled(&self) -> bool {
        self.1.load(Ordering::SeqCst) >= self.0
    }
}

#[test]
fn every_place_of_every_space_is_a_link_within_its_bounds_that_a_file_can_hold() {
    let mut random = Random::stream(1, "places");
    for (name, space) in Space::ALL {
        let bounds = bounds(",variation=0.4,loss=0.02");
        let calm = self::bounds(",variation=0.4,change=1.5");
        let dimension = space.dimension(&bounds);
        for _ in 0..50 {
            let place: Vec<f64> = (0..dimension).map(|_| random.uniform()).collect();
            let link = space.link(&place, &bounds);
            assert!((20..=60).contains(&link.rtt_ms) && link.buffer_pkts >= 10, "{name}: {link:?}");
            assert!(
                link.steps.iter().all(|(ms, kbps)| *ms > 0 && (1_000..=6_000).contains(kbps)),
                "{link:?}"
            );
            let time: f64 = link.steps.iter().map(|(ms, _)| *ms as f64).sum();
            let mean_of = |f: &dyn Fn(f64) -> f64| {
                link.steps
                    .iter()
                    .map(|(ms, kbps)| f(libm::log(*kbps as f64)) * *ms as f64 / time)
                    .sum::<f64>()
            };
            let mean = mean_of(&|value| value);
            let deviation = libm::sqrt(mean_of(&|value| (value - mean) * (value - mean)));
            let calm = space.link(&place, &calm);
            assert!(calm.is_within(1.5) && calm.steps.iter().all(|(_, kbps)| *kbps >= 1_000), "{calm:?}");
            assert!(deviation < 0.41, "{name}: {deviation}");
            assert!(link.delays_ms.iter().all(|delay| *delay <= 50) && link.beat_ms <= 50);
            assert!(link.loss_per_million <= 20_000);
            for (_, objective) in Objective::ALL {
                let attack = Attack { objective, space, ..request("abc", objective, space, 8) };
                let scenario = objective::scenario(&attack, &link, 7).unwrap();
                assert_eq!(file::read("worst.toml", &file::write(&scenario)).unwrap(), scenario);
            }
        }
    }
}

#[test]
fn the_same_attack_has_the_same_bytes_whatever_interrupts_it_and_however_many_threads_run() {
    let request = request("abc", Objective::Delay, Space::Cellular, 100);
    let whole = Scratch::new("whole");
    attack_into(&whole.0, &request, &Simulator, &()).unwrap();
    let parts = Scratch::new("parts");
    let error = attack_into(&parts.0, &request, &Simulator, &Until(30, AtomicUsize::new(0))).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
    // A line that ends early, as a kill leaves it.
    let journal = parts.0.join("evaluations.jsonl");
    let begun = fs::read_to_string(&journal).unwrap();
    assert!((20..90).contains(&begun.lines().count()), "{}", begun.lines().count());
    fs::write(&journal, begun + "{\"damage\":12").unwrap();
    let go_on = || attack_into(&parts.0, &request, &Simulator, &()).unwrap();
    #[cfg(feature = "parallel")]
    let Written { found, files, .. } =
        rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap().install(go_on);
    #[cfg(not(feature = "parallel"))]
    let Written { found, files, .. } = go_on();
    assert_eq!(files.len(), 5);
    for name in ["evaluations.jsonl", "found.json", "worst.toml", "reference.toml", "worst.svg"] {
        assert!(whole.read(name) == parts.read(name), "{name}");
    }
    // Once more, nothing is simulated but the figures.
    let again = attack_into(&parts.0, &request, &Simulator, &()).unwrap().found;
    assert!(again.runs == 0 && found.runs > 0 && again.document == found.document);
    assert_eq!(attack(&request, &()).unwrap().document, found.document);
    // A larger budget goes on, too.
    let more = Attack { budget: 140, ..request.clone() };
    let more = attack_into(&parts.0, &more, &Simulator, &()).unwrap().found;
    assert!(more.document.links > found.document.links && more.runs < 2 * 80, "{}", more.runs);
}

#[test]
fn the_file_that_is_written_replays_to_the_number_that_is_said() {
    let runs: [(&str, Objective, Space); 3] = [
        ("cubic", Objective::Waste, Space::Mixed),
        ("abc", Objective::Loss, Space::Cross),
        ("newreno", Objective::Starve, Space::Delay),
    ];
    for (scheme, objective, space) in runs {
        let folder = Scratch::new(scheme);
        let request = request(scheme, objective, space, 24);
        let found = attack_into(&folder.0, &request, &Simulator, &()).unwrap().found;
        let replay = |name: &str| {
            let scenario = file::read(name, &folder.read(name)).unwrap();
            brakelight_sim::run(&scenario, &Traces::new()).unwrap().run
        };
        let (document, worst) = (&found.document, replay("worst.toml"));
        let share = |run: &brakelight_scenario::outcome::Run| {
            100.0 * run.flows[0].throughput_mbps / run.capacity_mbps
        };
        let damage = match objective {
            Objective::Waste => share(&replay("reference.toml")) - share(&worst),
            Objective::Loss => worst.flows[0].loss_percent - replay("reference.toml").flows[0].loss_percent,
            _ => worst.capacity_mbps / 2.0 / worst.flows[0].throughput_mbps,
        };
        assert_eq!(document.own.throughput_mbps, worst.flows[0].throughput_mbps, "{scheme}");
        assert_eq!(document.own.p95_ms, worst.flows[0].queueing_delay_ms.map(|delay| delay.p95), "{scheme}");
        assert!(damage == document.damage || damage >= 1000.0, "{scheme}: {damage}, {}", document.damage);
        assert_eq!(folder.0.join("reference.toml").exists(), !objective.has_two_flows());
    }
}

/// A window of ten packets is too small for no link but those of a large bandwidth-delay product: the search
/// comes to the largest there is, and nothing is left of what does not matter.
#[test]
fn the_link_that_a_constant_window_wastes_most_of_is_the_longest_and_fastest() {
    let request = request("external:cwnd=10pkt", Objective::Waste, Space::Steps, 400);
    let found = attack(&request, &()).unwrap();
    let document = &found.document;
    // 10 packets of 1500 bytes in 60 ms are 2 Mbit/s of 6.
    assert!(document.damage_before > document.damage_random_worst, "{document:?}");
    assert!(document.damage >= 0.8 * document.damage_before && document.damage > 30.0, "{document:?}");
    assert!(found.link.steps.len() == 1, "{:?}", found.link);
    let [low, median, high] = document.damage_seeds;
    assert!(low <= median && median <= high && low <= document.damage && document.damage <= high);
}

#[test]
fn the_best_of_several_references_counts() {
    let one = |against: &str| {
        let schemes = Scheme::parse_list(against).unwrap();
        let request = Attack { against: schemes, ..request("cubic", Objective::Delay, Space::Steps, 8) };
        objective::judge(&request, &request.space.link(&[], &request.bounds), 1, &Simulator).unwrap()
    };
    let (abc, codel, both) = (one("abc"), one("cubic+codel"), one("abc,cubic+codel"));
    assert!(abc.damage != codel.damage);
    // The one with less delay, as both carry as much as Cubic.
    let enough = 0.9 * both.own.throughput_mbps;
    assert!(abc.beside.throughput_mbps > enough && codel.beside.throughput_mbps > enough);
    assert_eq!(both.damage, abc.damage.max(codel.damage));
}

#[test]
fn what_cannot_be_attacked_is_refused_before_anything_runs() {
    let refused = |attack: Attack| {
        let error = super::attack(&attack, &()).unwrap_err();
        assert!(error.is_input());
        error.to_string()
    };
    let starve = request("bbr", Objective::Starve, Space::Delay, 8);
    let two = Attack { against: Scheme::parse_list("cubic,bbr").unwrap(), ..starve.clone() };
    assert_eq!(refused(two), "starve: one flow runs beside that of `bbr`, so give one scheme");
    let queue = Attack { against: Scheme::parse_list("cubic+codel").unwrap(), ..starve.clone() };
    assert!(refused(queue).starts_with("`cubic+codel` names a queue, but its flow shares that of `bbr`"));
    assert_eq!(
        refused(Attack { budget: 3, ..starve }),
        "budget: `3` is not a whole number from 8 to 10000000"
    );
    for (wrong, said) in [
        ("rate=5Mbps..1Mbps", "rate = `5Mbps..1Mbps` is out of range"),
        ("speed=1Mbps", "unknown option `speed`"),
        ("rate", "`rate` has no `=`"),
        ("loss=2", "loss = `2` is out of range"),
    ] {
        let error = wrong.parse::<Bounds>().unwrap_err();
        assert!(error.starts_with(said), "{error}");
    }
    assert_eq!(
        "speed".parse::<Objective>().unwrap_err(),
        "`speed` is no objective: valid are delay, longest, waste, unfair, loss, starve"
    );
}

#[test]
fn a_folder_has_one_attack() {
    let folder = Scratch::new("one");
    let request = request("newreno", Objective::Delay, Space::Steps, 8);
    attack_into(&folder.0, &request, &Simulator, &()).unwrap();
    let other = Attack { seed: 2, ..request.clone() };
    let error = attack_into(&folder.0, &other, &Simulator, &()).unwrap_err();
    assert!(matches!(error, Error::AttackExists(_)) && error.is_input(), "{error}");
    let held = Journal::open(&folder.0, &request).unwrap();
    let error = attack_into(&folder.0, &request, &Simulator, &()).unwrap_err();
    assert!(cfg!(not(unix)) || matches!(error, Error::AttackRunning(_)), "{error}");
    drop(held);
}
