//! The first paragraph of a report: what the rows say, in sentences that are made from their numbers.

use brakelight_core::registry::DEFAULT_CONTROLLER;
use brakelight_scenario::outcome::{Fairness, Ratio, Run};
use brakelight_scenario::scheme::Scheme;

use crate::summary::{Overall, distinct, p95, used};
use crate::text::number;

/// A scheme that loses more says so in the conclusion, in percent.
const LOSES_MUCH: f64 = 5.0;

/// Most schemes that one sentence names.
const MOST_NAMES: usize = 6;

/// Returns sentences, the most important first: what the subject did, how others compare with it, which
/// schemes no other beats, what they need, and what should make a reader careful. None where there is nothing
/// to compare.
pub(super) fn conclusion(runs: &[Run], overall: &[Overall], reference: Option<&str>) -> Vec<String> {
    let mut sentences = Vec::new();
    let Some(subject) = reference.or_else(|| overall.first().map(|row| row.scheme.as_str())) else {
        return sentences;
    };
    let own: Vec<&Run> = runs.iter().filter(|run| run.scheme == subject).collect();
    sentences.extend(alone(subject, &own));
    for other in compared(overall, subject) {
        sentences.extend(beside(other, subject));
    }
    sentences.extend(competition(runs, subject));
    sentences.extend(frontier(overall));
    sentences.extend(needs(overall));
    sentences.extend(losers(overall));
    sentences.extend(two_outcomes(runs));
    sentences.extend(unsure(overall, subject));
    sentences
}

/// What the subject used and how long its packets waited.
fn alone(subject: &str, runs: &[&Run]) -> Option<String> {
    let percent = |run: &&Run| 100.0 * used(run);
    let (first, rest) = runs.split_first()?;
    let waits: Vec<(&str, f64)> =
        runs.iter().filter_map(|run| Some((run.trace.as_str(), p95(run)?))).collect();
    let shortest = waits.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let longest = waits.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    if rest.is_empty() {
        return Some(format!(
            "{subject} used {:.0} % of what {} could carry, and one packet in twenty waited longer than {} ms.",
            percent(first),
            first.trace,
            number(longest.1)
        ));
    }
    let least = runs.iter().min_by(|a, b| percent(a).total_cmp(&percent(b)))?;
    let most = runs.iter().max_by(|a, b| percent(a).total_cmp(&percent(b)))?;
    Some(format!(
        "On {} traces {subject} used {:.0} % ({}) to {:.0} % ({}) of what the links could carry; one packet in twenty waited longer than {} ms ({}) to {} ms ({}).",
        runs.len(),
        percent(least),
        least.trace,
        percent(most),
        most.trace,
        number(shortest.1),
        shortest.0,
        number(longest.1),
        longest.0
    ))
}

/// Which schemes are held against the subject in words: what most hosts run today, what carried most, and
/// what has most power.
fn compared<'a>(overall: &'a [Overall], subject: &str) -> Vec<&'a Overall> {
    let others = || overall.iter().filter(|row| row.scheme != subject && row.throughput.is_some());
    let today = others().find(|row| row.scheme == DEFAULT_CONTROLLER);
    let carried = |row: &Overall| row.throughput.map_or(0.0, |ratio| ratio.value);
    let most = others().max_by(|a, b| carried(a).total_cmp(&carried(b)));
    let power = others().find(|row| row.power.is_some());
    let mut chosen: Vec<&Overall> = Vec::new();
    for row in [today, most, power].into_iter().flatten() {
        if !chosen.iter().any(|other| other.scheme == row.scheme) {
            chosen.push(row);
        }
    }
    chosen
}

/// How a scheme compares with the subject.
fn beside(row: &Overall, subject: &str) -> Option<String> {
    let carried = difference(&row.throughput?, ["more", "less"], "as much");
    let waited = difference(&row.p95?, ["longer", "shorter"], "as long");
    let carried =
        carried.map_or("a throughput that these runs cannot tell apart".into(), |it| format!("{it} data"));
    let waited = waited.map_or("a delay that they cannot tell apart".into(), |it| {
        format!("a 95th percentile of queueing {it}")
    });
    Some(format!("Beside {subject}, {}: {carried}, {waited}.", row.scheme))
}

/// A ratio in words; none where its interval holds 1.
fn difference(ratio: &Ratio, [more, less]: [&str; 2], as_much: &str) -> Option<String> {
    if ratio.interval95.is_some() && !ratio.is_significant() {
        return None;
    }
    let percent = 100.0 * (ratio.value - 1.0);
    Some(match ratio.value {
        value if value >= 2.0 => format!("{} times {as_much}", number(value)),
        _ if percent.abs() < 0.5 => as_much.to_string(),
        _ if percent > 0.0 => format!("{percent:.0} % {more}"),
        _ => format!("{:.0} % {less}", -percent),
    })
}

/// A competitor that keeps less of what it has beside its own kind is harmed.
const HARM: f64 = 0.25;

/// What the subject had of a link that it shared, and which schemes harm their competitor: means over traces.
fn competition(runs: &[Run], subject: &str) -> Option<String> {
    let against = runs.iter().find_map(|run| run.setup.as_ref()?.against.clone())?;
    let mean = |scheme: &str, value: fn(&Fairness) -> Option<f64>| {
        let own = runs.iter().filter(|run| run.scheme == scheme);
        let values: Vec<f64> = own.filter_map(|run| value(run.fairness.as_ref()?)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let share = mean(subject, |fairness| Some(fairness.share))?;
    let harm: Vec<String> = distinct(runs, |run| &run.scheme)
        .into_iter()
        .filter_map(|scheme| Some((scheme, mean(scheme, |fairness| fairness.harm_throughput)?)))
        .filter(|(_, harm)| *harm > HARM)
        .map(|(scheme, harm)| format!("{scheme} ({:.0} %)", 100.0 * harm))
        .collect();
    let harmed = match harm.as_slice() {
        [] => format!(" No scheme took a quarter or more of what {against} has beside its own kind."),
        names => format!(" These took much of what {against} has beside its own kind: {}.", list(names)),
    };
    Some(format!(
        "Beside one flow of {against}, {subject} had {:.0} % of what both carried.{harmed}",
        100.0 * share
    ))
}

/// Which schemes no other beats.
fn frontier(overall: &[Overall]) -> Option<String> {
    let best: Vec<&str> = overall.iter().filter(|row| row.pareto).map(|row| row.scheme.as_str()).collect();
    (overall.len() > 2 && !best.is_empty())
        .then(|| format!("No other scheme carried more with less delay than {}.", list(&best)))
}

/// Which of the frontier need marks from a router, and the best that does not.
fn needs(overall: &[Overall]) -> Option<String> {
    let marked: Vec<&str> = overall
        .iter()
        .filter(|row| row.pareto && needs_router(&row.scheme))
        .map(|row| row.scheme.as_str())
        .collect();
    if marked.is_empty() {
        return None;
    }
    let (verb, whom) = if marked.len() == 1 { ("needs", "it") } else { ("need", "them") };
    let alone = overall.iter().find(|row| row.power.is_some() && runs_on_any_router(&row.scheme));
    let alone = alone.map_or(String::new(), |row| {
        format!(" Of those that work with any router, {} has most power (throughput over delay).", row.scheme)
    });
    Some(format!("{} {verb} a router that marks for {whom}.{alone}", list(&marked)))
}

/// Schemes that lost much.
fn losers(overall: &[Overall]) -> Option<String> {
    let lost = overall.iter().filter(|row| row.loss_percent > LOSES_MUCH);
    let lost: Vec<String> = lost.map(|row| format!("{} ({:.0} %)", row.scheme, row.loss_percent)).collect();
    (!lost.is_empty())
        .then(|| format!("Much of what they sent was lost on at least one trace: {}.", list(&lost)))
}

/// Rows whose runs fall into two groups.
fn two_outcomes(runs: &[Run]) -> Option<String> {
    let rows = runs.iter().filter_map(|run| {
        let [a, b] = run.modes?;
        let between = format!("{} or {} Mbit/s", number(a.throughput_mbps), number(b.throughput_mbps));
        Some(format!("{} on {} ({between})", run.scheme, run.trace))
    });
    let rows: Vec<String> = rows.collect();
    (!rows.is_empty()).then(|| format!("Two outcomes rather than one have {}.", list(&rows)))
}

/// That there is no interval, where there is none.
fn unsure(overall: &[Overall], subject: &str) -> Option<String> {
    let others = overall.iter().filter(|row| row.scheme != subject);
    let ratios: Vec<&Ratio> = others.filter_map(|row| row.throughput.as_ref()).collect();
    (!ratios.is_empty() && ratios.iter().all(|ratio| ratio.interval95.is_none()))
        .then(|| "There are too few runs to say how sure any of this is; `--runs 10` says it.".to_string())
}

/// Whether a scheme's controller brings a router that marks for it.
fn needs_router(scheme: &str) -> bool {
    Scheme::parse(scheme).is_ok_and(|scheme| scheme.controller().needs().queue.is_some())
}

/// Whether a scheme is a controller alone that asks its router for nothing.
fn runs_on_any_router(scheme: &str) -> bool {
    Scheme::parse(scheme).is_ok_and(|it| it.controller().needs().queue.is_none() && !it.queue_named())
}

/// Names as a sentence has them: at most a few, then how many more.
fn list<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let (shown, rest) = names.split_at(names.len().min(MOST_NAMES));
    match (shown, rest.len()) {
        ([one], 0) => (*one).to_string(),
        ([first @ .., last], 0) => format!("{} and {last}", first.join(", ")),
        (shown, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use brakelight_scenario::outcome::{Mode, Setup};

    use super::*;
    use crate::summary;
    use crate::testing::run;

    /// Rows of ten runs each, which scatter by a tenth of `spread`.
    fn every(rows: &[Run], spread: f64) -> Vec<Vec<Run>> {
        let vary = |row: &Run, i: i32| {
            let by = 1.0 + spread * f64::from((i * 7) % 10 - 5) / 50.0;
            Run { throughput_mbps: row.throughput_mbps * by, ..row.clone() }
        };
        rows.iter().map(|row| (0..10).map(|i| vary(row, i)).collect()).collect()
    }

    #[test]
    fn the_words_are_those_of_the_numbers() {
        let rows =
            [run("abc", "lte", 9.0, 40.0), run("cubic", "lte", 9.9, 400.0), run("copa", "lte", 8.1, 30.0)];
        let overall = summary::overall(&rows, &every(&rows, 0.0), Some("abc"));
        let text = conclusion(&rows, &overall, Some("abc")).join("\n");
        assert_eq!(
            text,
            "abc used 90 % of what lte could carry, and one packet in twenty waited longer than 40.0 ms.\n\
             Beside abc, cubic: 10 % more data, a 95th percentile of queueing 10.0 times as long.\n\
             Beside abc, copa: 10 % less data, a 95th percentile of queueing 25 % shorter.\n\
             No other scheme carried more with less delay than copa, abc and cubic.\n\
             abc needs a router that marks for it. Of those that work with any router, copa has most power \
             (throughput over delay)."
        );
    }

    #[test]
    fn a_difference_that_the_runs_do_not_show_is_not_told() {
        let rows = [run("abc", "lte", 9.0, 40.0), run("cubic", "lte", 9.01, 40.0)];
        let mut runs = every(&rows, 0.0);
        for (i, run) in runs[1].iter_mut().enumerate() {
            run.throughput_mbps *= if i % 2 == 0 { 1.2 } else { 0.82 };
        }
        let overall = summary::overall(&rows, &runs, Some("abc"));
        let text = conclusion(&rows, &overall, Some("abc")).join("\n");
        assert!(text.contains("a throughput that these runs cannot tell apart"), "{text}");
        assert!(!text.contains("more data") && !text.contains("less data"), "{text}");
    }

    #[test]
    fn one_run_losses_and_two_outcomes_make_a_reader_careful() {
        let mut rows = [run("abc", "lte", 9.0, 40.0), run("bbr", "lte", 6.0, 80.0)];
        rows[1].loss_percent = 27.4;
        let mode = |throughput_mbps| Mode { n: 5, throughput_mbps, p95_ms: Some(80.0) };
        rows[1].modes = Some([mode(1.6), mode(6.1)]);
        let single: Vec<Vec<Run>> = rows.iter().map(|run| vec![run.clone()]).collect();
        let overall = summary::overall(&rows, &single, Some("abc"));
        let text = conclusion(&rows, &overall, Some("abc")).join("\n");
        assert!(text.contains("bbr (27 %)"), "{text}");
        assert!(text.contains("bbr on lte (1.60 or 6.10 Mbit/s)"), "{text}");
        assert!(text.contains("too few runs"), "{text}");
    }

    #[test]
    fn a_bully_is_named() {
        let mut rows = [run("abc", "lte", 4.5, 40.0), run("bbr", "lte", 8.0, 80.0)];
        for (row, (share, harm)) in rows.iter_mut().zip([(0.48, 0.02), (0.9, 0.81)]) {
            row.setup = Some(Setup { against: Some("cubic".into()), ..Setup::default() });
            row.fairness = Some(Fairness { share, harm_throughput: Some(harm), ..Fairness::default() });
        }
        let text = competition(&rows, "abc").unwrap();
        assert_eq!(
            text,
            "Beside one flow of cubic, abc had 48 % of what both carried. These took much of what cubic has \
             beside its own kind: bbr (81 %)."
        );
        let text = competition(&rows[..1], "abc").unwrap();
        assert!(
            text.ends_with("No scheme took a quarter or more of what cubic has beside its own kind."),
            "{text}"
        );
        rows[0].setup = None;
        assert_eq!(competition(&rows[..1], "abc"), None);
    }

    #[test]
    fn several_traces_give_their_range_and_no_rows_give_nothing() {
        let rows = [run("abc", "lte", 9.0, 40.0), run("abc", "3g", 2.4, 300.0)];
        let overall = summary::overall(&rows, &[], Some("abc"));
        assert_eq!(
            conclusion(&rows, &overall, Some("abc"))[0],
            "On 2 traces abc used 24 % (3g) to 90 % (lte) of what the links could carry; one packet in twenty \
             waited longer than 40.0 ms (lte) to 300 ms (3g)."
        );
        assert_eq!(conclusion(&[], &[], None), [] as [String; 0]);
    }
}
