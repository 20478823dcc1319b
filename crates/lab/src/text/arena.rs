//! The scores of a contest, for people and for a pull request.

use super::table::{self, Column};
use super::{Screen, count};
use crate::arena::{Arena, Scored};

/// Columns of a bar from 0 to 1.
const BAR: f64 = 20.0;

fn score(value: f64) -> String {
    format!("{value:+.3}")
}

fn interval(scored: &Scored) -> String {
    scored.interval95.map_or_else(|| "–".to_string(), |[low, high]| format!("{low:+.2} to {high:+.2}"))
}

/// A bar of what lies between 0 and 1.
fn bar(value: f64) -> String {
    "█".repeat((value.clamp(0.0, 1.0) * BAR).round() as usize)
}

/// Returns who is first, and how sure that is.
fn decision(arena: &Arena) -> Option<String> {
    let first = arena.candidates.first()?;
    let sure = match first.interval95 {
        Some([low, _]) if low > 0.0 => "better than Cubic",
        Some([_, high]) if high < 0.0 => "worse than Cubic",
        Some(_) => "not told apart from Cubic",
        None => "too few rounds for an interval",
    };
    Some(format!("{}: score {} ({}), {sure}", first.scheme, score(first.score), interval(first)))
}

/// The runs that failed.
fn failures(arena: &Arena) -> impl Iterator<Item = String> + '_ {
    arena.candidates.iter().flat_map(|scored| {
        let failed = scored.rounds.iter().filter(|round| !round.failed.is_empty());
        failed.map(|round| format!("failed: {} in round {}: {}", scored.scheme, round.round, round.failed))
    })
}

fn heading(arena: &Arena) -> String {
    let rounds = arena.candidates.first().map_or(0, |scored| scored.rounds.len());
    let id = arena.set_id.map_or_else(String::new, |id| id.to_string());
    format!("{} of the set `{}` ({id})", count(rounds, "round", "rounds"), arena.set)
}

/// Returns the first line, and a table with a bar for each candidate.
pub fn in_words(arena: &Arena, screen: &Screen) -> String {
    let mut columns = vec![
        Column::text("candidate"),
        Column::number("score", "0 Cubic, 1 ideal"),
        Column::number("95 %", ""),
    ];
    let names = arena.candidates.first().map(|scored| scored.parts.named()).unwrap_or_default();
    let spare = names.iter().zip(1..).map(|((name, _), spare)| Column::number(name, "").spare(spare));
    columns.extend(spare);
    columns.push(Column::text("0 to 1"));
    let rows: Vec<Vec<String>> = arena
        .candidates
        .iter()
        .map(|scored| {
            let mut row = vec![scored.scheme.clone(), score(scored.score), interval(scored)];
            row.extend(scored.parts.named().iter().map(|(_, value)| score(*value)));
            row.push(bar(scored.score));
            row
        })
        .collect();
    let mut text = decision(arena).map_or_else(String::new, |line| format!("{}\n\n", screen.bold(&line)));
    text += &table::render(&columns, &rows, screen);
    text.extend(failures(arena).map(|line| line + "\n"));
    text + &format!("\n{}. The columns from throughput to harm sum up to the score.\n", heading(arena))
}

/// Returns what a pull request shows.
pub fn markdown(arena: &Arena) -> String {
    let mut text = decision(arena).map_or_else(String::new, |line| format!("{line}.\n\n"));
    text += "| candidate | score | 95 % | throughput | delay | loss | fairness | harm |\n|---|---|---|---|---|---|---|---|\n";
    for scored in &arena.candidates {
        let parts = scored.parts.named().map(|(_, value)| score(value)).join(" | ");
        text +=
            &format!("| `{}` | {} | {} | {parts} |\n", scored.scheme, score(scored.score), interval(scored));
    }
    text.extend(failures(arena).map(|line| format!("\n{}\n", line.replace('|', "\\|"))));
    text + &format!("\n{}. 0 is Cubic, 1 a sender that knows the future.\n", heading(arena))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{Parts, RoundScore};

    fn arena() -> Arena {
        let parts = Parts { throughput: -0.1, delay: 0.6, ..Parts::default() };
        let failed = RoundScore { round: "3: fixed".into(), failed: "a | b".into(), ..RoundScore::default() };
        let best = Scored {
            scheme: "copa".into(),
            score: 0.5,
            interval95: Some([0.25, 0.75]),
            parts,
            rounds: vec![RoundScore::default(), failed],
            ..Scored::default()
        };
        let other = Scored { scheme: "mine".into(), score: -0.02, ..Scored::default() };
        Arena { set: "train".into(), candidates: vec![best, other], ..Arena::default() }
    }

    #[test]
    fn the_first_line_says_who_is_first_and_how_sure_that_is() {
        let shown = in_words(&arena(), &Screen::default());
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0], "copa: score +0.500 (+0.25 to +0.75), better than Cubic");
        assert!(lines[5].starts_with("copa") && lines[5].ends_with(" ██████████"), "{shown}");
        assert!(lines[6].starts_with("mine") && lines[6].contains("-0.020"), "{shown}");
        assert!(shown.contains("failed: copa in round 3: fixed: a | b"), "{shown}");
        assert!(shown.contains("2 rounds of the set `train`"), "{shown}");
        let mut unsure = arena();
        unsure.candidates[0].interval95 = Some([-0.1, 0.75]);
        assert!(in_words(&unsure, &Screen::default()).contains("not told apart from Cubic"));
        assert!(markdown(&arena()).contains("| `copa` | +0.500 | +0.25 to +0.75 | -0.100 | +0.600 |"));
        assert!(markdown(&arena()).contains("a \\| b"));
    }
}
