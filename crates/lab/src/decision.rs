//! What to deploy, by what somebody can change: of the schemes that need no more, the one with most power,
//! how sure it is that the next one has less, and what it brings against what runs today.

pub use brakelight_scenario::decision::{Candidate, Choice, Decision};
use brakelight_scenario::deployment::Change;
use brakelight_scenario::outcome::{Ratio, Run};

use crate::summary::{self, Overall};

/// Returns the answer of the rows in `runs`, each of which is made of the runs in the same place of `every`;
/// `overall` has the schemes by power. What runs today stands among the senders, who need not change
/// anything. None where there is nothing to choose from, or no comparison.
pub fn decision(runs: &[Run], every: &[Vec<Run>], overall: &[Overall]) -> Option<Decision> {
    let deployment = |scheme: &str| runs.iter().find(|run| run.scheme == scheme)?.deployment;
    let change = |scheme: &str| deployment(scheme).map(|it| it.change);
    let today = overall.iter().find(|row| change(&row.scheme) == Some(Change::Nothing));
    let today = today.map(|row| row.scheme.clone());
    let against = runs.iter().find_map(|run| run.setup.as_ref()?.against.clone());
    if overall.len() < 2 {
        return None;
    }
    let candidate = |row: &Overall| Candidate {
        scheme: row.scheme.clone(),
        link_rate: deployment(&row.scheme).is_some_and(|it| it.link_rate),
    };
    let choice = |group: Change| {
        let is_in_it = |row: &&Overall| match change(&row.scheme) {
            Some(Change::Nothing) => group == Change::Senders,
            own => own == Some(group),
        };
        let mut rows = overall.iter().filter(is_in_it).filter(|row| row.power.is_some());
        let best = rows.next()?;
        let next = rows.next();
        let ratio = |other: &str, value| {
            (other != best.scheme).then(|| summary::over(runs, every, &best.scheme, other, value))
        };
        let beside_today = |value: fn(&Run) -> Option<f64>| ratio(today.as_deref()?, value).flatten();
        let ahead = next.and_then(|row| ratio(&row.scheme, summary::power).flatten());
        Some(Choice {
            change: group,
            best: candidate(best),
            next: next.map(candidate),
            ahead,
            significant: ahead.and_then(|it: Ratio| it.interval95.map(|_| it.is_significant())),
            throughput: beside_today(|run| Some(summary::throughput(run))),
            p95: beside_today(summary::p95),
        })
    };
    let choices: Vec<Choice> =
        [Change::Senders, Change::Queue, Change::Both].into_iter().filter_map(choice).collect();
    (!choices.is_empty()).then_some(Decision { today, against, choices })
}

#[cfg(test)]
mod tests {
    use brakelight_scenario::deployment::Deployment;
    use brakelight_scenario::scheme::Scheme;

    use super::*;
    use crate::testing;

    /// A row with what its scheme needs.
    fn run(scheme: &str, throughput_mbps: f64, p95_ms: f64) -> Run {
        let deployment: Deployment = Scheme::parse(scheme).unwrap().deployment();
        let name = Scheme::parse(scheme).unwrap().to_string();
        Run { deployment: Some(deployment), ..testing::run(&name, "lte", throughput_mbps, p95_ms) }
    }

    /// Ten runs a row, which scatter by a tenth of `spread`, each scheme in its own order.
    fn every(rows: &[Run], spread: f64) -> Vec<Vec<Run>> {
        let vary = |row: &Run, i: usize, salt: usize| {
            let by = 1.0 + spread * (((i * 7 + salt * 3) % 10) as f64 - 4.5) / 45.0;
            Run { throughput_mbps: row.throughput_mbps * by, ..row.clone() }
        };
        rows.iter().enumerate().map(|(salt, row)| (0..10).map(|i| vary(row, i, salt)).collect()).collect()
    }

    fn decide(rows: &[Run], every: &[Vec<Run>]) -> Option<Decision> {
        decision(rows, every, &summary::overall(rows, every, None))
    }

    #[test]
    fn the_best_of_each_group_is_held_against_the_next_and_against_today() {
        let rows = [
            run("cubic", 9.5, 450.0),
            run("copa", 9.0, 50.0),
            run("bbr3", 9.2, 150.0),
            run("cubic+codel", 8.0, 70.0),
            run("abc", 9.1, 40.0),
            run("abc-adaptive", 9.1, 10.0),
        ];
        let every = every(&rows, 0.01);
        let Decision { today, choices, .. } = decide(&rows, &every).unwrap();
        assert_eq!(today.as_deref(), Some("cubic"));
        let next = |it: &Choice| it.next.as_ref().map(|next| next.scheme.clone());
        let names: Vec<_> = choices.iter().map(|it| (it.change, it.best.scheme.as_str(), next(it))).collect();
        assert_eq!(
            names,
            [
                (Change::Senders, "copa", Some("bbr3".to_string())),
                (Change::Queue, "cubic+codel", None),
                (Change::Both, "abc:variant=adaptive", Some("abc".to_string())),
            ]
        );
        assert_eq!(choices.iter().map(|it| it.best.link_rate).collect::<Vec<_>>(), [false, false, true]);
        let ahead = choices[0].ahead.unwrap();
        // 9.0 / 100 ms over 9.2 / 200 ms.
        assert!((ahead.value - 1.957).abs() < 0.01 && ahead.is_significant(), "{ahead:?}");
        assert_eq!(
            choices.iter().map(|it| it.significant).collect::<Vec<_>>(),
            [Some(true), None, Some(true)]
        );
        assert!((choices[1].p95.unwrap().value - 70.0 / 450.0).abs() < 1e-9);
        assert!((choices[1].throughput.unwrap().value - 8.0 / 9.5).abs() < 0.01);
    }

    #[test]
    fn a_scheme_that_failed_on_a_trace_is_not_the_best_for_it() {
        let on = |trace: &str, run: Run| Run { trace: trace.to_string(), ..run };
        let rows = [
            on("lte", run("cubic", 9.5, 450.0)),
            on("lte", run("copa", 9.0, 50.0)),
            on("lte", run("vegas", 9.0, 20.0)),
            on("wifi", run("cubic", 9.5, 450.0)),
            on("wifi", run("copa", 5.0, 80.0)),
        ];
        let choices = decide(&rows, &every(&rows, 0.01)).unwrap().choices;
        assert_eq!(choices[0].best.scheme, "copa");
    }

    #[test]
    fn a_lead_within_the_intervals_is_not_significant() {
        let rows = [run("cubic", 9.5, 450.0), run("copa", 9.0, 50.0), run("vegas", 8.95, 50.0)];
        let choice = decide(&rows, &every(&rows, 1.0)).unwrap().choices.remove(0);
        let ahead = choice.ahead.unwrap();
        assert!(ahead.interval95.is_some() && !ahead.is_significant(), "{ahead:?}");
        assert_eq!(choice.significant, Some(false));
        let single: Vec<Vec<Run>> = rows.iter().map(|run| vec![run.clone()]).collect();
        let choice = decide(&rows, &single).unwrap().choices.remove(0);
        assert_eq!((choice.ahead.unwrap().interval95, choice.significant), (None, None));
    }

    #[test]
    fn what_runs_today_may_be_the_best_and_may_be_missing() {
        let rows = [run("cubic", 9.5, 50.0), run("copa", 5.0, 50.0)];
        let decision = decide(&rows, &every(&rows, 0.01)).unwrap();
        assert_eq!((decision.choices[0].best.scheme.as_str(), decision.choices[0].p95), ("cubic", None));
        let rows = [run("abc", 9.5, 50.0), run("copa", 5.0, 50.0)];
        let decision = decide(&rows, &every(&rows, 0.01)).unwrap();
        assert_eq!((decision.today, decision.choices.len()), (None, 2));
        assert_eq!(decision.choices[0].throughput, None);
    }

    #[test]
    fn one_scheme_and_a_scenario_leave_nothing_to_decide() {
        let one = [run("abc", 9.5, 50.0)];
        assert_eq!(decide(&one, &every(&one, 0.0)), None);
        let scenario = [testing::run("a", "lte", 9.0, 40.0), testing::run("b", "lte", 9.0, 40.0)];
        assert_eq!(decide(&scenario, &every(&scenario, 0.0)), None);
    }
}
