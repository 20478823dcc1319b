//! An evaluation for people, for a pull request, and for a CI server.

use brakelight_scenario::documents::{Criterion, Evaluated, Evaluation, Judgment};

use super::{Screen, number};
use crate::evaluate::{FailOn, tally};

/// Every verdict, the one first that asks for a reader.
const VERDICTS: [Judgment; 4] = [Judgment::Fail, Judgment::Unsure, Judgment::Pass, Judgment::NotApplicable];

/// Returns a verdict in words.
pub fn verdict(verdict: Judgment) -> &'static str {
    match verdict {
        Judgment::Pass => "pass",
        Judgment::Fail => "fail",
        Judgment::Unsure => "unsure",
        Judgment::NotApplicable => "not applicable",
    }
}

/// Returns the counts of a scheme's verdicts: `2 fail, 1 unsure, 30 pass`.
pub fn counts(evaluated: &Evaluated) -> String {
    let tally = tally(evaluated);
    let count = |which: &Judgment| Some(format!("{} {}", tally.get(which)?, verdict(*which)));
    let regressed = evaluated.criteria.iter().filter(|criterion| criterion.regression.is_some()).count();
    let regressed = (regressed > 0).then(|| format!("{regressed} worse than before"));
    VERDICTS.iter().filter_map(count).chain(regressed).collect::<Vec<_>>().join(", ")
}

/// Returns what decided: `4.2 (at most 5.1)`; empty where no number did.
fn decided(criterion: &Criterion) -> String {
    let Some(point) = criterion.deciding() else { return String::new() };
    let limit = if criterion.at_most { "at most" } else { "at least" };
    format!("{} ({limit} {})", number(point.measured), number(point.bound))
}

/// Returns the baseline's number; empty where there is none.
fn baseline(criterion: &Criterion) -> String {
    criterion.deciding().and_then(|point| point.baseline).map(number).unwrap_or_default()
}

/// Returns what else there is to say of a criterion: where it was decided, why it could not be, what became
/// worse.
pub fn remarks(criterion: &Criterion) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(point) = criterion.deciding() {
        let place = if point.place.is_empty() { String::new() } else { format!(", at {}", point.place) };
        remarks.push(format!("{}{place}", criterion.measure));
        if criterion.verdict == Judgment::Unsure
            && let Some([low, high]) = point.within
        {
            remarks.push(format!("{} to {} within the bound", number(low), number(high)));
        }
    }
    if !criterion.note.is_empty() {
        remarks.push(criterion.note.clone());
    }
    if let Some(worse) = &criterion.regression {
        let place = if worse.place.is_empty() { String::new() } else { format!(" at {}", worse.place) };
        remarks.push(format!(
            "worse than before{place}: {} was {}",
            number(worse.after),
            number(worse.before)
        ));
    }
    remarks
}

/// Returns a line for each criterion, with another below it where it did not simply pass.
pub fn in_words(evaluation: &Evaluation, screen: &Screen) -> String {
    let mut text = String::new();
    for evaluated in &evaluation.schemes {
        let widest = |of: &dyn Fn(&Criterion) -> usize| evaluated.criteria.iter().map(of).max().unwrap_or(0);
        let id = widest(&|criterion| criterion.id.len());
        let number = widest(&|criterion| decided(criterion).chars().count());
        let beside = widest(&|criterion| baseline(criterion).len()).max("baseline".len());
        text += &format!("{}  {}\n", screen.bold(&evaluated.scheme), counts(evaluated));
        text += &screen.dim(&format!(
            "{:id$}  {:14}  {:number$}  {:>beside$}",
            "criterion", "verdict", "measured", "baseline"
        ));
        text += "\n";
        for criterion in &evaluated.criteria {
            let verdict = format!("{:14}", verdict(criterion.verdict));
            let plain = criterion.verdict == Judgment::Pass || criterion.verdict == Judgment::NotApplicable;
            let verdict = if plain { verdict } else { screen.bold(&verdict) };
            let line = format!(
                "{:id$}  {verdict}  {:number$}  {:>beside$}",
                criterion.id,
                decided(criterion),
                baseline(criterion)
            );
            text += line.trim_end();
            text += "\n";
            if criterion.verdict != Judgment::Pass || criterion.regression.is_some() {
                for remark in std::iter::once(criterion.criterion.clone()).chain(remarks(criterion)) {
                    text += &format!("{:id$}    {remark}\n", "");
                }
            }
        }
        text += "\n";
    }
    text
}

/// A cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// The head of a table of criteria.
const HEAD: &str = "| criterion | verdict | measured | baseline | |\n|---|---|---|---|---|\n";

/// Returns what a pull request shows: a table of what needs a reader, and the rest folded away.
pub fn markdown(evaluation: &Evaluation) -> String {
    let mut text = String::new();
    let row = |criterion: &Criterion| {
        let mut remarks = remarks(criterion);
        remarks.insert(0, criterion.criterion.clone());
        format!(
            "| {} | {} | {} | {} | {} |\n",
            criterion.id,
            verdict(criterion.verdict),
            cell(&decided(criterion)),
            baseline(criterion),
            cell(&remarks.join("; "))
        )
    };
    for evaluated in &evaluation.schemes {
        let (quiet, loud): (Vec<&Criterion>, Vec<&Criterion>) = evaluated
            .criteria
            .iter()
            .partition(|criterion| criterion.verdict < Judgment::Unsure && criterion.regression.is_none());
        text += &format!("### `{}` by {}: {}\n\n", evaluated.scheme, evaluation.kit, counts(evaluated));
        if !loud.is_empty() {
            text += HEAD;
            text.extend(loud.iter().copied().map(row));
            text += "\n";
        }
        text += &format!("<details><summary>{} more</summary>\n\n{HEAD}", quiet.len());
        text.extend(quiet.iter().copied().map(row));
        text += "\n</details>\n\n";
    }
    text
}

/// Returns a table in Markdown of every criterion by every scheme.
pub fn board(evaluation: &Evaluation) -> String {
    let schemes = evaluation.schemes.iter().map(|evaluated| format!(" `{}` |", evaluated.scheme));
    let mut text = format!("| criterion |{}\n", schemes.collect::<String>());
    text += &format!("|---|{}\n", "---|".repeat(evaluation.schemes.len()));
    let criteria = evaluation.schemes.first().map_or(&[][..], |evaluated| &evaluated.criteria);
    for (place, criterion) in criteria.iter().enumerate() {
        let sign = |evaluated: &Evaluated| match evaluated.criteria.get(place).map(|it| it.verdict) {
            Some(Judgment::Pass) => " + |",
            Some(Judgment::Fail) => " - |",
            Some(Judgment::Unsure) => " ? |",
            Some(Judgment::NotApplicable) | None => " |",
        };
        text += &format!("| {} |{}\n", criterion.id, evaluation.schemes.iter().map(sign).collect::<String>());
    }
    let failed = evaluation.schemes.iter().map(|evaluated| {
        format!(" {} |", tally(evaluated).get(&Judgment::Fail).copied().unwrap_or_default())
    });
    text + &format!("| failed |{}\n", failed.collect::<String>())
}

/// `text` within XML; control characters, which XML has none of, are left out.
fn xml(text: &str) -> String {
    let kept = text.chars().filter(|c| !c.is_control() || *c == '\n' || *c == '\t');
    let mut escaped = String::with_capacity(text.len());
    for c in kept {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Returns JUnit XML: a suite for each scheme and a case for each criterion. What `fail_on` includes is a
/// failure; what else did not pass is skipped, with the reason.
pub fn junit(evaluation: &Evaluation, fail_on: FailOn) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"brakelight evaluate\">\n",
    );
    for evaluated in &evaluation.schemes {
        let fails = |criterion: &&Criterion| fail_on.includes(criterion);
        let skipped = |criterion: &&Criterion| !fails(criterion) && criterion.verdict != Judgment::Pass;
        text += &format!(
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\">\n",
            xml(&evaluated.scheme),
            evaluated.criteria.len(),
            evaluated.criteria.iter().filter(fails).count(),
            evaluated.criteria.iter().filter(skipped).count()
        );
        for criterion in &evaluated.criteria {
            let remarks = remarks(criterion).join("; ");
            let said = match decided(criterion) {
                empty if empty.is_empty() => format!("{}; {remarks}", verdict(criterion.verdict)),
                decided => format!("{}: {decided}; {remarks}", verdict(criterion.verdict)),
            };
            let case = format!(
                "    <testcase classname=\"{}.{}\" name=\"{}: {}\"",
                xml(&evaluation.kit),
                xml(&evaluated.scheme),
                xml(&criterion.id),
                xml(&criterion.criterion)
            );
            let inner = if fails(&criterion) {
                format!("<failure message=\"{}\">{}</failure>", xml(&said), xml(&criterion.why))
            } else if skipped(&criterion) {
                format!("<skipped message=\"{}\"/>", xml(&said))
            } else {
                format!("<system-out>{}</system-out>", xml(&said))
            };
            text += &format!("{case}>{inner}</testcase>\n");
        }
        text += "  </testsuite>\n";
    }
    text + "</testsuites>\n"
}
