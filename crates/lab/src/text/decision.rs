//! What to deploy, for people: the first lines of a comparison.

use brakelight_scenario::outcome::Ratio;
use brakelight_scenario::scheme::short_name;

use super::comparison::{LINK_RATE, LINK_RATE_MARK, SAME, mark};
use super::table::{self, Column};
use super::{Screen, number};
use crate::decision::{Candidate, Choice, Decision};

/// Returns a table with a row for everything that somebody may be able to change.
pub fn table(decision: &Decision, screen: &Screen) -> String {
    let today = decision.today.as_deref().map(short_name);
    let mut columns = vec![
        Column::text("change"),
        Column::text("best"),
        Column::text("next"),
        Column::number("ahead", "in power"),
    ];
    if let Some(today) = &today {
        let unit = format!("/ {today}");
        columns.extend([Column::number("throughput", &unit), Column::number("queueing p95", &unit)]);
    }
    let name = |candidate: &Candidate| {
        let mark = if candidate.link_rate { format!(" {LINK_RATE_MARK}") } else { String::new() };
        short_name(&candidate.scheme) + &mark
    };
    let ratio = |ratio: Option<Ratio>| ratio.map_or_else(|| "–".into(), |it| number(it.value)) + mark(ratio);
    let row = |choice: &Choice| {
        let is_today = decision.today.as_ref() == Some(&choice.best.scheme);
        let beside_today = |it| if is_today { "1 ".to_string() } else { ratio(it) };
        let mut row = vec![
            choice.change.to_string(),
            name(&choice.best),
            choice.next.as_ref().map_or_else(|| "–".into(), name),
            ratio(choice.ahead),
        ];
        if today.is_some() {
            row.extend([beside_today(choice.throughput), beside_today(choice.p95)]);
        }
        row
    };
    let rows: Vec<Vec<String>> = decision.choices.iter().map(row).collect();
    let mut text = format!(
        "{}  {}\n{}",
        screen.bold("What to deploy"),
        screen.dim("by what you can change; power: throughput over p95 one-way delay"),
        table::render(&columns, &rows, screen)
    );
    for line in remarks(decision) {
        text += &format!("{}\n", screen.dim(&line));
    }
    text
}

/// Returns what must be known to read the table, a line each.
pub fn remarks(decision: &Decision) -> Vec<String> {
    let mut lines = Vec::new();
    let ahead: Vec<&Ratio> = decision.choices.iter().filter_map(|choice| choice.ahead.as_ref()).collect();
    if ahead.iter().any(|ratio| ratio.interval95.is_none()) {
        lines.push("Too few runs for confidence intervals; use `--runs 8`.".to_string());
    }
    let ratios = decision.choices.iter().flat_map(|it| [it.ahead, it.throughput, it.p95]).flatten();
    if ratios.into_iter().any(|ratio| ratio.interval95.is_some() && !ratio.is_significant()) {
        lines.push(format!("{SAME} not significantly different, by 95 % intervals over the runs."));
    }
    if decision.choices.iter().any(Choice::needs_link_rate) {
        lines.push(format!("{LINK_RATE_MARK} {LINK_RATE}."));
    }
    if decision.choices.iter().any(|choice| choice.next.is_none()) {
        lines.push("– no other scheme in this comparison needs the same change.".to_string());
    }
    if decision.against.is_none() {
        lines.push("Each scheme had the link to itself: `--against cubic` shows how it shares.".to_string());
    }
    if decision.today.is_none() {
        lines.push("Add `cubic` to the schemes to compare them with today's default.".to_string());
    }
    lines
}

#[cfg(test)]
mod tests {
    use brakelight_scenario::deployment::Change;

    use super::*;

    fn ratio(value: f64, reach: f64) -> Option<Ratio> {
        Some(Ratio { value, interval95: Some([value - reach, value + reach]) })
    }

    fn decision() -> Decision {
        let choice = |change, best: &str, next: Option<&str>| Choice {
            change,
            best: Candidate { scheme: best.into(), link_rate: change == Change::Both },
            next: next.map(|scheme| Candidate { scheme: scheme.into(), link_rate: false }),
            ahead: next.and(ratio(1.32, 0.1)),
            significant: next.map(|_| true),
            throughput: ratio(0.97, 0.01),
            p95: ratio(0.31, 0.05),
        };
        let both = choice(Change::Both, "abc:variant=adaptive", Some("prague"));
        Decision {
            today: Some("cubic".into()),
            against: None,
            choices: vec![
                choice(Change::Senders, "copa", Some("bbr3")),
                choice(Change::Queue, "cubic+fq_codel", None),
                Choice { ahead: ratio(1.02, 0.05), significant: Some(false), ..both },
            ],
        }
    }

    #[test]
    fn the_decision_fits_eighty_columns() {
        let screen = Screen { width: 80, terminal: true, colour: false };
        let text = table(&decision(), &screen);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn what_is_missing_is_told() {
        let mut decision = Decision { today: None, ..decision() };
        for choice in &mut decision.choices {
            (choice.throughput, choice.p95) = (None, None);
            choice.ahead = choice.ahead.map(|ratio| Ratio { interval95: None, ..ratio });
        }
        let text = table(&decision, &Screen::default());
        assert!(!text.contains("queueing") && text.contains("Add `cubic`"), "{text}");
        assert!(text.contains("Too few runs") && text.contains("--against cubic"), "{text}");
        let beside = table(&Decision { against: Some("cubic".into()), ..decision }, &Screen::default());
        assert!(!beside.contains("--against"), "{beside}");
    }
}
