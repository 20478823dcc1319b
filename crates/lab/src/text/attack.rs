//! What an attack found, for people.

use std::time::Duration;

use brakelight_scenario::documents::Found;

use super::table::{self, Column};
use crate::attack::{self, Attack};

use super::{Screen, number, number_or_dash, thousands};

/// Returns the worst link, and what the scheme and the reference did on it.
pub fn in_words(found: &Found, screen: &Screen) -> String {
    let columns = [
        Column::text("scheme"),
        Column::number("throughput", "Mbit/s"),
        Column::number("of capacity", "%"),
        Column::number("queueing p95", "ms"),
        Column::number("loss", "%"),
    ];
    let rows: Vec<Vec<String>> = [&found.own, &found.beside]
        .map(|flow| {
            let numbers = [number(flow.throughput_mbps), number(flow.share_percent)];
            let rest = [number_or_dash(flow.p95_ms), number(flow.loss_percent)];
            [flow.scheme.clone()].into_iter().chain(numbers).chain(rest).collect()
        })
        .to_vec();
    let title = format!("{}: the worst of {} links, {}", found.scheme, found.links, found.space);
    let damage = |value: f64| format!("{} {}", number(value), found.unit);
    let [low, _, high] = found.damage_seeds;
    let facts = [
        format!(
            "{}: {}, {} to {} with five seeds",
            meaning(&found.objective),
            damage(found.damage),
            number(low),
            damage(high)
        ),
        format!(
            "{} before the link was simplified; random links: {} in the median, {} at worst",
            damage(found.damage_before),
            damage(found.damage_random_median),
            damage(found.damage_random_worst)
        ),
    ];
    let lines = facts.iter().chain(&found.link).fold(String::new(), |text, line| text + line + "\n");
    format!(
        "{}\n{}\n{}\n{lines}",
        screen.bold(&title),
        screen.dim(&found.bounds),
        table::render(&columns, &rows, screen)
    )
}

/// What the damage of an objective is.
fn meaning(objective: &str) -> &str {
    match objective {
        "delay" => "more p95 queueing delay than the reference",
        "longest" => "the longest queueing delay of a packet",
        "waste" => "less of the capacity used than by the reference",
        "loss" => "more packets dropped than of the reference",
        "unfair" => "the larger throughput over the smaller",
        "starve" => "half of the capacity over what the first flow had",
        other => other,
    }
}

/// Returns how fast it was, which no document says; nothing where nothing ran.
pub fn speed(found: &attack::Found, request: &Attack, wall: Duration) -> Option<String> {
    let (runs, seconds, each) = (found.runs, wall.as_secs_f64(), request.bounds.duration.as_secs_f64());
    (runs > 0 && seconds > 0.0).then(|| {
        let rate = runs as f64 / seconds;
        format!(
            "{} runs of {} s in {} s: {} runs per second, {} times real time",
            thousands(runs as f64),
            number(each),
            number(seconds),
            number(rate),
            thousands(rate * each)
        )
    })
}
