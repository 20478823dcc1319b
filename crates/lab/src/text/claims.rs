//! Judged claims, for people and for a document.

use brakelight_scenario::documents::{Claim, Verdict};
use brakelight_scenario::experiment::Experiment;

use super::table::{self, Column};
use super::{Screen, count};

/// Every verdict, in the order in which they are counted.
const VERDICTS: [Verdict; 5] =
    [Verdict::Holds, Verdict::Fails, Verdict::Refuted, Verdict::NeedsRecordings, Verdict::NotCheckable];

/// Returns a verdict by its name in JSON.
pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Fails => "fails",
        Verdict::Refuted => "refuted",
        Verdict::NeedsRecordings => "needs-recordings",
        Verdict::NotCheckable => "not-checkable",
    }
}

/// A line that counts the claims of papers by their verdicts, and one more for those of no paper.
fn tally(claims: &[Claim]) -> String {
    let line = |ours: bool, (one, many): (&str, &str)| {
        let of = |which: Verdict| move |claim: &&Claim| claim.ours == ours && claim.verdict == which;
        let counts = VERDICTS.map(|which| (claims.iter().filter(of(which)).count(), which));
        let all = counts.iter().map(|(count, _)| count).sum();
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> =
            counts.map(|(count, which)| format!("{count} {}", verdict(*which))).collect();
        (all > 0).then(|| format!("{}: {}\n", count(all, one, many), counts.join(", ")))
    };
    let papers = line(false, ("claim", "claims"));
    let ours = line(true, ("claim of no paper", "claims of no paper"));
    papers.into_iter().chain(ours).collect()
}

/// Returns one block per claim: a row would be wider than any screen.
pub fn in_words(claims: &[Claim], screen: &Screen) -> String {
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
    text + "\n" + &tally(claims)
}

/// Returns a section with a table for every experiment, whose own note stands above it once.
pub fn markdown(experiments: &[Experiment], claims: &[Claim]) -> String {
    sections(experiments, claims) + &tally(claims)
}

/// Returns the same without the counts at its end.
pub fn sections(experiments: &[Experiment], claims: &[Claim]) -> String {
    sections_beside(experiments, claims, "", &vec![None; claims.len()])
}

/// Returns the same with a column called `name`, in the tables of experiments of which `beside` says
/// something: what another simulator says of each claim, in the order of `claims`.
pub fn sections_beside(
    experiments: &[Experiment],
    claims: &[Claim],
    name: &str,
    beside: &[Option<String>],
) -> String {
    let mut text = String::new();
    let (mut rest, mut rest_beside) = (claims, beside);
    for experiment in experiments {
        let (own, others) = rest.split_at(experiment.claims.len());
        rest = others;
        let (said, others) = rest_beside.split_at(experiment.claims.len());
        rest_beside = others;
        let has_column = said.iter().any(Option::is_some);
        text += &format!("### {}: {}\n\n{}.", experiment.id, experiment.title, experiment.source);
        if !experiment.note.is_empty() {
            text += &format!(" Setup: {}.", experiment.note);
        }
        if !experiment.rule.is_empty() {
            text += &format!("\n\nRule: {}.", experiment.rule);
        }
        let (heading, line) = if has_column { (format!(" {name} |"), "---|") } else { (String::new(), "") };
        text += &format!("\n\n| id | claim | paper |{heading} measured | verdict | note |\n");
        text += &format!("|---|---|---|{line}---|---|---|\n");
        for (claim, said) in own.iter().zip(said) {
            let note = claim.note.strip_suffix(&experiment.note).unwrap_or(&claim.note);
            let note = note.strip_suffix("; ").unwrap_or(note);
            let said = has_column.then(|| said.as_deref().unwrap_or(""));
            let cells = [Some(claim.id.as_str()), Some(&claim.claim), Some(&claim.paper), said];
            let rest = [Some(claim.measured.as_str()), Some(verdict(claim.verdict)), Some(note)];
            let cells = cells.into_iter().chain(rest).flatten();
            let cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
            text += &format!("| {} |\n", cells.join(" | "));
        }
        text += "\n";
    }
    text
}

/// Returns a table that counts claims by their verdicts, a row for each of `groups`.
pub fn counts(groups: &[(&str, Vec<&Claim>)]) -> String {
    let mut table = String::from(
        "| | claims | hold | fail | refuted | hang on recordings | not checkable |\n|---|---|---|---|---|---|---|\n",
    );
    for (name, claims) in groups {
        let of = |which| claims.iter().filter(|claim| claim.verdict == which).count();
        let cells = VERDICTS.map(of).map(|count| if count == 0 { String::new() } else { count.to_string() });
        table += &format!("| {name} | {} | {} |\n", claims.len(), cells.join(" | "));
    }
    table
}

#[cfg(test)]
mod tests {
    use brakelight_scenario::experiment;

    use super::*;

    #[test]
    fn words_stand_below_each_other_whatever_a_claim_lacks() {
        let claim = |id: &str, verdict, note: &str| Claim {
            id: id.into(),
            claim: "More is more".into(),
            paper: "2x".into(),
            measured: if note.is_empty() { "2.013".into() } else { String::new() },
            verdict,
            note: note.into(),
            ours: false,
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
                    rule = \"as printed\"\n[[claim]]\nclaim = \"a | b\"\npaper = \"1\"\ncheck = \"not-checkable\"\nnote = \"lost\"";
        let experiment = experiment::read("x.toml", text).unwrap();
        let claims = experiment.judge(None, &mut |_| None);
        insta::assert_snapshot!(markdown(&[experiment], &claims), @r"
        ### X: t

        s 1. Setup: made up.

        Rule: as printed.

        | id | claim | paper | measured | verdict | note |
        |---|---|---|---|---|---|
        | X | a \| b | 1 |  | not-checkable | lost |

        1 claim: 1 not-checkable
        ");
    }

    #[test]
    fn another_simulator_has_a_column_where_it_says_something() {
        let text = |id: &str| {
            format!(
                "id = \"{id}\"\ntitle = \"t\"\nsource = \"s 1\"\n[[claim]]\nclaim = \"a\"\npaper = \"1\"\n\
                 check = \"not-checkable\"\nnote = \"n\"\n[[claim]]\nclaim = \"b\"\npaper = \"2\"\n\
                 check = \"not-checkable\"\nnote = \"n\""
            )
        };
        let experiments = ["X", "Y"].map(|id| experiment::read("x.toml", &text(id)).unwrap());
        let claims: Vec<Claim> = experiments.iter().flat_map(|one| one.judge(None, &mut |_| None)).collect();
        let beside = [None, Some("2.1 | so".to_string()), None, None];
        insta::assert_snapshot!(sections_beside(&experiments, &claims, "ns-2", &beside), @r"
        ### X: t

        s 1.

        | id | claim | paper | ns-2 | measured | verdict | note |
        |---|---|---|---|---|---|---|
        | X | a | 1 |  |  | not-checkable | n |
        | X | b | 2 | 2.1 \| so |  | not-checkable | n |

        ### Y: t

        s 1.

        | id | claim | paper | measured | verdict | note |
        |---|---|---|---|---|---|
        | Y | a | 1 |  | not-checkable | n |
        | Y | b | 2 |  | not-checkable | n |
        ");
    }
}
