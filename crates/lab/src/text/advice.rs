//! Advice in a few lines for each direction of a link.

use std::fmt::Write;

use brakelight_scenario::outcome::Ratio;
use brakelight_scenario::scheme::short_name;
use serde::Serialize;

use super::{Screen, number};
use crate::advise::{Advice, Advised, Can, Candidate, Deploy, LEAST_THROUGHPUT, Way};

/// The advice for one direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Block {
    /// Which direction of which link.
    pub title: String,
    /// What was run.
    pub about: String,
    /// What to deploy, how, what it brings, how sure that is, and what would change it: a name, and a line or
    /// more.
    pub rows: Vec<(&'static str, Vec<String>)>,
}

/// Returns the advice for each direction.
pub fn blocks(advice: &Advice) -> Vec<Block> {
    advice.directions.iter().map(|advised| block(advised, advice.can)).collect()
}

/// Returns the advice as text.
pub fn advice(advice: &Advice, screen: &Screen) -> String {
    let each = blocks(advice).into_iter().map(|block| {
        let mut text = format!("{}  {}\n", screen.bold(&block.title), screen.dim(&block.about));
        for (name, lines) in &block.rows {
            for (place, line) in lines.iter().enumerate() {
                let _ = writeln!(text, "  {:<8} {line}", if place == 0 { name } else { "" });
            }
        }
        text
    });
    each.collect::<Vec<_>>().join("\n")
}

fn block(advised: &Advised, can: Can) -> Block {
    let way = match advised.direction {
        Way::Download => "Download",
        Way::Upload => "Upload",
    };
    let about = format!(
        "{} Mbit/s on average, runs of {} s at {} ms",
        number(advised.mean_mbps),
        number(advised.duration_s),
        number(advised.rtt_ms)
    );
    Block { title: format!("{way} over {}", advised.trace), about, rows: rows(advised, can) }
}

fn rows(advised: &Advised, can: Can) -> Vec<(&'static str, Vec<String>)> {
    let today = &advised.today;
    let Some(deploy) = &advised.deploy else {
        return vec![
            ("deploy", vec!["nothing: none of what you can change is better than today".to_string()]),
            ("today", vec![measured(today)]),
            ("unless", unless(advised, today)),
        ];
    };
    let name = match can {
        Can::Shaper => format!("{}, in your router {}", deploy.name, place(advised.direction)),
        _ => short_name(&deploy.name),
    };
    let best = candidate(advised, &deploy.name);
    let brings = format!(
        "queueing p95 {} ms, today {}; throughput {} Mbit/s, today {}",
        number(best.queueing_p95_ms),
        number(today.queueing_p95_ms),
        number(best.throughput_mbps),
        number(today.throughput_mbps)
    );
    let beside = deploy.beside_today.map(|share| {
        let today = short_name(&today.name);
        format!("one {today} flow in the same queue: {:.0} % of the throughput of both", 100.0 * share)
    });
    let mut rows = vec![
        ("deploy", vec![name]),
        ("set", deploy.settings.clone()),
        ("brings", vec![brings]),
        ("beside", beside.into_iter().collect()),
        ("sure", sure(advised, deploy)),
        ("unless", unless(advised, best)),
    ];
    rows.retain(|(_, lines)| !lines.is_empty());
    rows
}

fn place(direction: Way) -> &'static str {
    match direction {
        Way::Download => "behind the link",
        Way::Upload => "before the link",
    }
}

fn candidate<'a>(advised: &'a Advised, name: &str) -> &'a Candidate {
    advised.candidates.iter().find(|candidate| candidate.name == name).unwrap_or(&advised.today)
}

fn measured(candidate: &Candidate) -> String {
    format!(
        "{} Mbit/s, queueing p95 {} ms",
        number(candidate.throughput_mbps),
        number(candidate.queueing_p95_ms)
    )
}

/// How sure it is that the advice is better than today's, and than the next.
fn sure(advised: &Advised, deploy: &Deploy) -> Vec<String> {
    let runs = super::count(advised.runs, "run", "runs");
    let lead = match deploy.power {
        Some(Ratio { value, interval95: Some([low, high]) }) => {
            let (value, low, high) = (number(value), number(low), number(high));
            format!("{value} times the power of today, 95 % interval {low} to {high}")
        }
        Some(Ratio { value, interval95: None }) => {
            format!("{} times the power of today, too few runs for an interval", number(value))
        }
        None => "power of today unknown".to_string(),
    };
    let mut lines = vec![format!("{runs}: {lead}")];
    if let Some(next) = deploy.next.as_deref().filter(|next| *next != advised.today.name) {
        let same = deploy.ahead.is_some_and(|ahead| ahead.interval95.is_some() && !ahead.is_significant());
        let verdict = if same { "may be as good" } else { "has less" };
        lines.push(format!("the next, {}, {verdict}", short_name(next)));
    }
    lines
}

/// What would change the advice for `own`, a line each.
fn unless(advised: &Advised, own: &Candidate) -> Vec<String> {
    let mut reasons = Vec::new();
    let quicker = advised.candidates.iter().filter(|it| it.queueing_p95_ms < 0.8 * own.queueing_p95_ms);
    let quicker = quicker.filter(|it| it.throughput_of_today > 0.25);
    if let Some(other) = quicker.min_by(|a, b| a.queueing_p95_ms.total_cmp(&b.queueing_p95_ms)) {
        reasons.push(format!("delay matters more: {}, {}", short_name(&other.name), measured(other)));
    }
    let faster = advised.candidates.iter().filter(|it| it.throughput_mbps > 1.05 * own.throughput_mbps);
    let faster = faster.filter(|it| it.name != advised.today.name);
    if let Some(other) = faster.max_by(|a, b| a.throughput_mbps.total_cmp(&b.throughput_mbps)) {
        reasons.push(format!("throughput matters more: {}, {}", short_name(&other.name), measured(other)));
    }
    if own.link_rate {
        reasons.push("the router cannot know its link's rate, which this one must".to_string());
    }
    if reasons.is_empty() {
        let share = 100.0 * LEAST_THROUGHPUT;
        reasons.push(format!("less than {share:.0} % of today's throughput is enough"));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(name: &str, throughput_mbps: f64, queueing_p95_ms: f64) -> Candidate {
        let throughput_of_today = throughput_mbps / 10.0;
        let eligible = throughput_of_today >= LEAST_THROUGHPUT;
        let name = name.to_string();
        let link_rate = false;
        Candidate { name, throughput_mbps, queueing_p95_ms, throughput_of_today, eligible, link_rate }
    }

    fn advised(deploy: Option<Deploy>) -> Advised {
        let today = candidate("cubic", 10.0, 900.0);
        let candidates = vec![
            candidate("copa", 8.0, 60.0),
            today.clone(),
            candidate("vegas", 4.0, 20.0),
            candidate("bbr3", 9.9, 200.0),
        ];
        Advised {
            direction: Way::Upload,
            trace: "mine.up".into(),
            mean_mbps: 10.4,
            runs: 8,
            duration_s: 20.0,
            rtt_ms: 100.0,
            today,
            deploy,
            candidates,
        }
    }

    #[test]
    fn advice_fits_eighty_columns() {
        let power = Some(Ratio { value: 9.6, interval95: Some([8.1, 11.2]) });
        let deploy = Deploy {
            name: "copa".into(),
            settings: vec!["senders: somewhere".into()],
            throughput: None,
            queueing_p95: None,
            power,
            next: Some("bbr3".into()),
            ahead: Some(Ratio { value: 1.2, interval95: Some([0.9, 1.5]) }),
            beside_today: Some(0.08),
        };
        let directions = vec![advised(Some(deploy)), advised(None)];
        let text = advice(&Advice { can: Can::Senders, directions }, &Screen::default());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }
}
