//! The validation pages say what the code does.

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Rate;
use brakelight_links::elements::{ELEMENTS, RADIOS, SERVICES};
use brakelight_registry::{FEEDBACKS, QUEUES};
use brakelight_senders::controller::abc;
use brakelight_testkit::page::{measured, parameters, table_of};
use brakelight_testkit::part::check;
use brakelight_testkit::{FlowSpec, Link, World};

fn page(controller: &str) {
    check(controller, "parameters", &parameters(controller));
    check(controller, "measured", &measured(controller));
}

#[test]
fn bbr() {
    page("bbr");
}

#[test]
fn bbr2() {
    page("bbr2");
}

#[test]
fn bbr3() {
    page("bbr3");
}

#[test]
fn vivace() {
    page("vivace");
}

#[test]
fn newreno() {
    page("newreno");
}

#[test]
fn cubic() {
    page("cubic");
}

#[test]
fn vegas() {
    page("vegas");
}

#[test]
fn westwood() {
    page("westwood");
}

#[test]
fn quicdc() {
    page("quicdc");
}

#[test]
fn gcc() {
    page("gcc");
}

#[test]
fn nada() {
    page("nada");
}

#[test]
fn scream() {
    page("scream");
}

#[test]
fn ctcp() {
    page("ctcp");
}

#[test]
fn copa() {
    page("copa");
}

#[test]
fn abc_sender() {
    check("abc-sender", "parameters", &parameters("abc"));
    let delayed = FEEDBACKS.iter().find(|entry| entry.name == "delayed").expect("a registered receiver");
    check("abc-sender", "delayed", &table_of(delayed));
    check("abc-sender", "others", &others());
}

/// ABC behind a drop-tail bottleneck, for everything that can stand in Cubic's place, and that by itself.
fn others() -> String {
    let mut table = String::from(
        "| `other` | throughput Mbit/s | queueing delay mean / p95 ms | lost % | by itself |\n|---|---|---|---|---|\n",
    );
    let alone = |controller: &str, options: &[(&str, &str)]| {
        let flow = FlowSpec { options, ..FlowSpec::bulk(controller, Duration::from_millis(100)) };
        let mut world = World::new(Link::fixed(Rate::from_mbps(12), 250), &[flow]);
        let (from, to) = (Time::from_secs(10), Time::from_secs(60));
        world.run(to, |_, _, _| {});
        let sojourns = world.sojourns(from, to);
        let mean_ms = sojourns.iter().map(|delay| delay.as_millis_f64()).sum::<f64>() / sojourns.len() as f64;
        let p95_ms = world.sojourn_quantile(from, to, 0.95).as_millis_f64();
        let drops = world.drops.iter().filter(|(at, _)| *at > from && *at <= to).count();
        let lost = 100.0 * drops as f64 / (drops + sojourns.len()) as f64;
        let mbps = world.throughput(0, from, to).as_mbps_f64();
        (format!("{mbps:.2}"), format!("{mean_ms:.1} / {p95_ms:.1}"), format!("{lost:.2}"))
    };
    for other in abc::Other::ALL {
        let name = other.name();
        let (mbps, delay, lost) = alone("abc", &[("other", name)]);
        let (own_mbps, own_delay, own_lost) = alone(name, &[]);
        table += &format!("| `{name}` | {mbps} | {delay} | {lost} | {own_mbps}; {own_delay}; {own_lost} |\n");
    }
    table
}

#[test]
fn links() {
    for entry in SERVICES {
        check("links", entry.name, &table_of(entry));
    }
}

#[test]
fn path_elements() {
    let list: String =
        ELEMENTS.iter().map(|entry| format!("| `{}` | {} |\n", entry.name, entry.summary)).collect();
    check("path-elements", "elements", &format!("| element | what it does |\n|---|---|\n{list}"));
    for entry in ELEMENTS {
        check("path-elements", entry.name, &table_of(entry));
    }
}

#[test]
fn radios() {
    let radio = RADIOS.iter().find(|entry| entry.name == "nr").expect("a registered name");
    check("nr", "parameters", &table_of(radio));
}

#[test]
fn prague() {
    check("prague", "parameters", &parameters("prague"));
    let receiver = FEEDBACKS.iter().find(|entry| entry.name == "accecn").expect("a registered name");
    check("prague", "receiver", &table_of(receiver));
}

#[test]
fn queues() {
    let pages = [
        ("abc_dual", "abc-dual"),
        ("cake", "cake"),
        ("dualpi2", "dualpi2"),
        ("fq_codel", "fq-codel"),
        ("pie", "pie"),
        ("red", "red"),
    ];
    for (name, page) in pages {
        let queue = QUEUES.iter().find(|entry| entry.name == name).expect("a registered name");
        check(page, "parameters", &table_of(queue));
    }
}

#[test]
fn sprout() {
    page("sprout");
    let receiver = FEEDBACKS.iter().find(|entry| entry.name == "sprout").expect("a registered name");
    check("sprout", "receiver", &table_of(receiver));
}

#[test]
fn verus() {
    page("verus");
}

/// Explicit schemes: sender and router. What they do is measured where there are routers, in the simulator's
/// tests.
fn explicit(page: &str, controller: &str, queues: &[&str]) {
    check(page, "sender", &parameters(controller));
    for queue in queues {
        let entry = QUEUES.iter().find(|entry| entry.name == *queue).expect("a registered queue");
        check(page, queue, &table_of(entry));
    }
}

#[test]
fn xcp() {
    explicit("xcp", "xcp", &["xcp", "xcpw"]);
}

#[test]
fn rcp() {
    explicit("rcp", "rcp", &["rcp"]);
}

#[test]
fn e_abc() {
    explicit("e-abc", "e-abc", &["eabc"]);
}

#[test]
fn vcp() {
    explicit("vcp", "vcp", &["vcp"]);
}

#[test]
fn mlcp() {
    explicit("mlcp", "mlcp", &["mlcp"]);
}

#[test]
fn bmcc() {
    explicit("bmcc", "bmcc", &["bmcc"]);
    let receiver = FEEDBACKS.iter().find(|entry| entry.name == "bmcc").expect("a registered receiver");
    check("bmcc", "receiver", &table_of(receiver));
}
