//! What the generated parts of validation pages hold, see `part`.

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Rate;
use brakelight_registry::{CONTROLLERS, Entry};

use crate::world::{FlowSpec, Link, World};

/// Returns the table of a controller's parameters, from the registry.
pub fn parameters(controller: &str) -> String {
    table_of(CONTROLLERS.iter().find(|entry| entry.name == controller).expect("a known controller"))
}

/// Returns the table of an entry's parameters.
pub fn table_of(entry: &Entry) -> String {
    let mut table = String::from(
        "| parameter | meaning | unit | default | range | source |\n|---|---|---|---|---|---|\n",
    );
    for p in entry.parameters() {
        table += &format!(
            "| `{}` | {} | {} | {} | {} | {} |\n",
            p.name,
            p.meaning,
            p.unit.replace('|', "or"),
            p.default,
            p.range,
            p.source
        );
    }
    table
}

/// Returns what a controller does over links whose rate and delay are known: the same table on every page.
pub fn measured(controller: &str) -> String {
    let rtt = Duration::from_millis(100);
    let second = Time::from_secs;
    let mut table = String::from(
        "| link | flows | throughput Mbit/s | queueing delay mean / p95 ms | lost % |\n|---|---|---|---|---|\n",
    );
    let mut row = |name: &str, link: Link, starts: &[u64], from: u64, to: u64| {
        let flows: Vec<_> = starts
            .iter()
            .map(|start| FlowSpec { start: second(*start), ..FlowSpec::bulk(controller, rtt) })
            .collect();
        let mut world = World::new(link, &flows);
        world.run(second(to), |_, _, _| {});
        let (from, to) = (second(from), second(to));
        let shares: Vec<_> = (0..flows.len())
            .map(|flow| format!("{:.2}", world.throughput(flow, from, to).as_mbps_f64()))
            .collect();
        let sojourns = world.sojourns(from, to);
        let mean = sojourns.iter().map(|d| d.as_millis_f64()).sum::<f64>() / sojourns.len() as f64;
        let p95 = world.sojourn_quantile(from, to, 0.95).as_millis_f64();
        let drops = world.drops.iter().filter(|(at, _)| *at > from && *at <= to).count();
        let lost = 100.0 * drops as f64 / (drops + sojourns.len()) as f64;
        table += &format!(
            "| {name} | {} | {} | {mean:.1} / {p95:.1} | {lost:.2} |\n",
            flows.len(),
            shares.join(" and ")
        );
    };
    let mbps = Rate::from_mbps;
    row("12 Mbit/s, 250 packets, 0 to 60 s", Link::fixed(mbps(12), 250), &[0], 0, 60);
    row("12 Mbit/s, 20 packets, 10 to 60 s", Link::fixed(mbps(12), 20), &[0], 10, 60);
    row("1 Mbit/s, 250 packets, 10 to 60 s", Link::fixed(mbps(1), 250), &[0], 10, 60);
    let mut steps = Link::fixed(mbps(6), 250);
    steps.rates.extend((1..6).map(|i| (second(10 * i), mbps(if i % 2 == 0 { 6 } else { 24 }))));
    row("6 and 24 Mbit/s in turn, 10 s each, 250 packets, 0 to 60 s", steps, &[0], 0, 60);
    row(
        "24 Mbit/s, 400 packets, second flow from 5 s, 30 to 90 s",
        Link::fixed(mbps(24), 400),
        &[0, 5],
        30,
        90,
    );
    table
}
