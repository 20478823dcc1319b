//! `reproduce`: the papers' claims, run and judged. The experiments are files; this runs their jobs, all seeds of all
//! experiments at once, and prints the verdicts.

use std::collections::BTreeMap;
use std::path::Path;

use brakelight_scenario::documents::{Claim, Claims, Verdict};
use brakelight_scenario::experiment::{self, EMBEDDED, Experiment, Job, Table};
use brakelight_scenario::scenario::Scenario;
use brakelight_scenario::trace::names::{NameError, Names};
use brakelight_sim::Traces;
use rayon::prelude::*;

use crate::arguments::{ClaimFormat, Reproduce};
use crate::failure::Failure;
use crate::origin;
use crate::progress::Progress;
use crate::run::{set_host, text_of};
use crate::simulate::{self, Runner};
use crate::text::table::{self, Column};
use crate::text::{self, Screen};

/// Runs the command. A claim that fails makes the command fail, after everything has been printed.
pub fn execute(arguments: &Reproduce) -> Result<(), Failure> {
    let (files, ids): (Vec<String>, Vec<String>) =
        arguments.ids.iter().cloned().partition(|id| id.ends_with(".toml"));
    let mut experiments = match (files.is_empty(), ids.is_empty()) {
        (false, true) => Vec::new(),
        _ => chosen(&all()?, &ids)?,
    };
    for file in &files {
        experiments.push(experiment::read(file, &text_of(Path::new(file), "an experiment")?)?);
    }
    let mut runner: Runner = brakelight_sim::run;
    if let Some(host) = arguments.host {
        for experiment in &mut experiments {
            for job in &mut experiment.jobs {
                runner = set_host(&mut job.scenario, host)
                    .map_err(|fault| Failure::input(format!("{}: {fault}", experiment.id)))?;
            }
        }
    }
    let names = Names::from_environment().map_err(Failure::input)?;
    let claims = judge(runner, &experiments, &names, arguments.force)?;
    let document = Claims { origin: origin::origin(1), claims };
    match arguments.format {
        ClaimFormat::Json => text::print_json(&document)?,
        ClaimFormat::Markdown => text::print(&markdown(&experiments, &document.claims))?,
        ClaimFormat::Table => text::print(&in_words(&document.claims, &Screen::standard_output()))?,
    }
    let failing = document.claims.iter().filter(|claim| claim.verdict == Verdict::Fails).count();
    match failing {
        0 => Ok(()),
        _ => {
            let (of, all) = (text::count(failing, "claim fails", "claims fail"), document.claims.len());
            Err(Failure::run(format!("{of}, of {all}")))
        }
    }
}

/// Every experiment that the program ships.
fn all() -> Result<Vec<Experiment>, Failure> {
    EMBEDDED.iter().map(|(file, text)| experiment::read(file, text).map_err(Failure::from)).collect()
}

/// Those with a claim that one of `ids` names, with these claims only, and those that it names where no claim is called so; all where
/// none is named.
fn chosen(all: &[Experiment], ids: &[String]) -> Result<Vec<Experiment>, Failure> {
    let is_claim =
        |id: &str| all.iter().flat_map(|experiment| &experiment.claims).any(|claim| names(id, &claim.id));
    let (ids, titles): (Vec<&String>, Vec<&String>) = ids.iter().partition(|id| is_claim(id));
    for id in &titles {
        if !all.iter().any(|experiment| names(id, &experiment.id)) {
            let mut known: Vec<&str> = Vec::new();
            for claim in all.iter().flat_map(|experiment| &experiment.claims) {
                if !known.contains(&claim.id.as_str()) {
                    known.push(&claim.id);
                }
            }
            return Err(Failure::input(format!("unknown claim `{id}`: valid are {}", known.join(", "))));
        }
    }
    let mut chosen = all.to_vec();
    for experiment in &mut chosen {
        let whole = ids.is_empty() && titles.is_empty() || titles.iter().any(|id| names(id, &experiment.id));
        experiment.claims.retain(|claim| whole || ids.iter().any(|id| names(id, &claim.id)));
    }
    chosen.retain(|experiment| !experiment.claims.is_empty());
    Ok(chosen)
}

/// Whether `id` names `claim`: in full, up to a hyphen, or up to the letter of a part: `B-F6` names `B-F6a` and `B-F6cap`.
fn names(id: &str, claim: &str) -> bool {
    let (id, claim) = (id.to_ascii_lowercase(), claim.to_ascii_lowercase());
    let part = |rest: &str| {
        id.ends_with(|c: char| c.is_ascii_digit()) && rest.starts_with(|c: char| c.is_ascii_alphabetic())
    };
    claim.strip_prefix(&id).is_some_and(|rest| rest.is_empty() || rest.starts_with('-') || part(rest))
}

/// The traces of an experiment; none where a recording is not there.
fn traces(experiment: &Experiment, names: &Names) -> Result<Option<Traces>, Failure> {
    let mut traces = Traces::new();
    for name in experiment.traces() {
        match names.load(name) {
            Ok(trace) => traces.insert(name.to_string(), trace),
            Err(NameError::Unknown { .. }) => return Ok(None),
            Err(error) => return Err(Failure::input(error)),
        };
    }
    Ok(Some(traces))
}

fn judge(
    runner: Runner,
    experiments: &[Experiment],
    names: &Names,
    force: bool,
) -> Result<Vec<Claim>, Failure> {
    let traces: Vec<Option<Traces>> =
        experiments.iter().map(|experiment| traces(experiment, names)).collect::<Result<_, _>>()?;
    let plan = Plan::new(experiments, |index| traces[index].is_some());
    for &(index, job) in plan.distinct.iter().filter(|_| !force) {
        if let Some(traces) = &traces[index] {
            simulate::check_one(&experiments[index].id, &experiments[index].jobs[job].scenario, traces)?;
        }
    }
    let progress = Progress::new("reproducing", plan.distinct.len());
    let outcomes = plan
        .distinct
        .par_iter()
        .map(|&(index, job)| {
            let experiment = &experiments[index];
            let traces = traces[index].as_ref().expect("only experiments with their traces have jobs here");
            let outcome = runner(&experiment.jobs[job].scenario, traces);
            progress.step(&experiment.id);
            outcome.map_err(|error| Failure::run(format!("{}: {error}", experiment.id)))
        })
        .collect::<Result<Vec<_>, _>>()?;
    drop(progress);
    let mut tables: Vec<Option<Table>> = experiments
        .iter()
        .zip(&traces)
        .map(|(experiment, traces)| traces.as_ref().map(|_| Table::new(&experiment.dimensions)))
        .collect();
    for &(index, job, distinct) in &plan.jobs {
        if let Some(table) = &mut tables[index] {
            table.add(&experiments[index].jobs[job].point, &outcomes[distinct].run);
        }
    }
    let judged = experiments.iter().zip(&tables);
    let claims = judged
        .flat_map(|(experiment, table)| experiment.judge(table.as_ref(), &mut brakelight_sim::checks::run));
    Ok(claims.collect())
}

/// What to run. Several figures of a paper show the same runs; each is run once.
struct Plan {
    /// An experiment and one of its jobs, for every scenario that differs from all others.
    distinct: Vec<(usize, usize)>,
    /// Every experiment and job, and the place in `distinct` of its scenario.
    jobs: Vec<(usize, usize, usize)>,
}

impl Plan {
    /// The jobs of those of `experiments` that `can_run`.
    fn new(experiments: &[Experiment], can_run: impl Fn(usize) -> bool) -> Self {
        let mut plan = Plan { distinct: Vec::new(), jobs: Vec::new() };
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        for (index, experiment) in experiments.iter().enumerate().filter(|(index, _)| can_run(*index)) {
            for (job, Job { scenario, .. }) in experiment.jobs.iter().enumerate() {
                // A scenario's name says nothing of what happens in it, and its spelling says everything.
                let scenario = Scenario { name: String::new(), ..scenario.clone() };
                let place = *known.entry(format!("{scenario:?}")).or_insert_with(|| {
                    plan.distinct.push((index, job));
                    plan.distinct.len() - 1
                });
                plan.jobs.push((index, job, place));
            }
        }
        plan
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Fails => "fails",
        Verdict::NeedsRecordings => "needs-recordings",
        Verdict::NotCheckable => "not-checkable",
    }
}

fn tally(claims: &[Claim]) -> String {
    let verdicts = [Verdict::Holds, Verdict::Fails, Verdict::NeedsRecordings, Verdict::NotCheckable];
    let counts = verdicts.map(|which| (claims.iter().filter(|claim| claim.verdict == which).count(), which));
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    counts.map(|(count, which)| format!("{count} {}", verdict(*which))).collect::<Vec<_>>().join(", ")
}

/// One block per claim: a row would be wider than any screen.
fn in_words(claims: &[Claim], screen: &Screen) -> String {
    let widest = claims.iter().map(|claim| claim.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    for claim in claims {
        let head = format!("{:<widest$}  {:<16}", claim.id, verdict(claim.verdict));
        text += &format!("{}  {}\n", screen.bold(&head), claim.claim);
        let parts = [("paper", &claim.paper), ("measured", &claim.measured), ("note", &claim.note)];
        let parts = parts.into_iter().filter(|(_, value)| !value.is_empty());
        let rows: Vec<Vec<String>> =
            parts.map(|(name, value)| vec![format!("{:widest$}  {name:<8}", ""), value.clone()]).collect();
        text += &table::plain(&[Column::text(""), Column::text("")], &rows, screen);
    }
    text + &format!("\n{}: {}\n", text::count(claims.len(), "claim", "claims"), tally(claims))
}

/// A section with a table for every experiment, whose own note stands above it once.
fn markdown(experiments: &[Experiment], claims: &[Claim]) -> String {
    let mut text = String::new();
    let mut rest = claims;
    for experiment in experiments {
        let (own, others) = rest.split_at(experiment.claims.len());
        rest = others;
        text += &format!("### {}: {}\n\n{}.", experiment.id, experiment.title, experiment.source);
        if !experiment.note.is_empty() {
            text += &format!(" Setup: {}.", experiment.note);
        }
        text += "\n\n| id | claim | paper | measured | verdict | note |\n|---|---|---|---|---|---|\n";
        for claim in own {
            let note = claim.note.strip_suffix(&experiment.note).unwrap_or(&claim.note);
            let note = note.strip_suffix("; ").unwrap_or(note);
            let cells =
                [&claim.id, &claim.claim, &claim.paper, &claim.measured, verdict(claim.verdict), note];
            let cells = cells.map(|cell: &str| cell.replace('|', "\\|").replace('\n', " "));
            text += &format!("| {} |\n", cells.join(" | "));
        }
        text += "\n";
    }
    text + &format!("{}: {}\n", text::count(claims.len(), "claim", "claims"), tally(claims))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_a_claim_in_full_or_up_to_a_hyphen() {
        assert!(names("ABC-F1", "ABC-F1"));
        assert!(names("abc", "ABC-F1"));
        assert!(names("ABC-F8", "ABC-F8-UTIL"));
        assert!(!names("ABC-F1", "ABC-F12"));
        assert!(names("B-F6", "B-F6a") && names("B-F6", "B-F6cap") && !names("B-F", "B-F6a"));
        assert!(!names("ABC-F12", "ABC-F1"));
    }

    #[test]
    fn a_scenario_that_two_experiments_share_runs_once() {
        let text = |id: &str, schemes: &str| {
            format!(
                "id = \"{id}\"\ntitle = \"t\"\nsource = \"s\"\nschemes = {schemes}\ntraces = [\"one\"]\nseeds = 3\n\
                 [[claim]]\nclaim = \"c\"\ncheck = \"utilization > 0\""
            )
        };
        let read = |id, schemes| experiment::read("x.toml", &text(id, schemes)).unwrap();
        let experiments =
            [read("EX-1", "[\"cubic\", \"vegas\"]"), read("EX-2", "{ a = \"newreno\", b = \"vegas\" }")];
        let plan = Plan::new(&experiments, |_| true);
        assert_eq!(plan.distinct, [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 0), (1, 1), (1, 2)]);
        assert_eq!(plan.jobs.len(), 12);
        assert_eq!(plan.jobs[9..], [(1, 3, 3), (1, 4, 4), (1, 5, 5)]);
        assert_eq!(Plan::new(&experiments, |index| index == 1).distinct.len(), 6);
    }

    #[test]
    fn an_unknown_id_is_refused_with_the_known_ones() {
        let failure = chosen(&all().unwrap(), &["ABC-F99".to_string()]).unwrap_err();
        assert_eq!(failure.code, 2);
        assert!(failure.message.starts_with("unknown claim `ABC-F99`: valid are "), "{failure}");
        assert!(failure.message.contains("ABC-F1"), "{failure}");
    }

    #[test]
    fn an_experiment_s_own_id_stands_for_all_of_its_claims_where_no_claim_has_it() {
        let all = all().unwrap();
        let one = |id: &str| chosen(&all, &[id.to_string()]).unwrap();
        assert!(all.iter().flat_map(|experiment| &experiment.claims).all(|claim| claim.id != "B-U"));
        let [statements] = one("B-U").try_into().unwrap();
        assert_eq!(statements.id, "B-U");
        assert!(statements.claims.len() > 10);
        assert_eq!(one("FIRST").len(), 3);
        for experiment in &all {
            assert!(!one(&experiment.id).is_empty(), "{}", experiment.id);
        }
    }

    #[test]
    fn words_stand_below_each_other_whatever_a_claim_lacks() {
        let claim = |id: &str, verdict, note: &str| Claim {
            id: id.into(),
            claim: "More is more".into(),
            paper: "2x".into(),
            measured: if note.is_empty() { "2.013".into() } else { String::new() },
            verdict,
            note: note.into(),
        };
        let claims = [
            claim("ABC-F2", Verdict::Holds, ""),
            claim(
                "ABC-ABS-1",
                Verdict::NeedsRecordings,
                "a note so long that it does not fit into one line of sixty",
            ),
        ];
        let screen = Screen { width: 60, terminal: false, colour: false };
        insta::assert_snapshot!(in_words(&claims, &screen));
    }

    #[test]
    fn markdown_says_the_setup_once_and_its_cells_cannot_break_the_table() {
        let text = "id = \"X\"\ntitle = \"t\"\nsource = \"s 1\"\nnote = \"made up\"\n\
                    [[claim]]\nclaim = \"a | b\"\npaper = \"1\"\ncheck = \"not-checkable\"\nnote = \"lost\"";
        let experiment = experiment::read("x.toml", text).unwrap();
        let claims = experiment.judge(None, &mut |_| None);
        insta::assert_snapshot!(markdown(&[experiment], &claims), @r"
        ### X: t

        s 1. Setup: made up.

        | id | claim | paper | measured | verdict | note |
        |---|---|---|---|---|---|
        | X | a \| b | 1 |  | not-checkable | lost |

        1 claim: 1 not-checkable
        ");
    }
}
