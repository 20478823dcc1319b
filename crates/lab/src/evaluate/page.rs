//! An evaluation as a page: one line a criterion, which opens for the numbers of its points and seeds.

use brakelight_scenario::documents::{Criterion, Evaluated, Evaluation};
use serde::Serialize;
use serde_json::{Value, json};

use super::{KITS, Level};
use crate::report::{origin_rows, page};
use crate::text::evaluation::{counts, remarks, verdict};

const BODY: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");

/// What the page's script reads.
#[derive(Serialize)]
struct Data<'a> {
    title: String,
    setting: [(&'static str, String); 2],
    origin: Vec<(&'static str, String)>,
    schemes: Vec<Value>,
    against: Option<&'a str>,
}

/// Returns the file.
pub fn html(evaluation: &Evaluation) -> String {
    let title = format!("Is it fit for the Internet? {}", titled(&evaluation.kit));
    let scheme = |evaluated: &Evaluated| {
        let row = |criterion| row(criterion, again(evaluation, &evaluated.scheme, criterion));
        json!({
            "name": evaluated.scheme,
            "counts": counts(evaluated),
            "criteria": evaluated.criteria.iter().map(row).collect::<Vec<_>>(),
        })
    };
    let data = Data {
        title: title.clone(),
        setting: [("level", evaluation.level.clone()), ("criteria", evaluation.criteria.clone())],
        origin: origin_rows(&evaluation.origin),
        schemes: evaluation.schemes.iter().map(scheme).collect(),
        against: evaluation.against.as_ref().map(|origin| origin.command.as_str()),
    };
    page(&title, BODY, &data, SCRIPT)
}

/// A kit's name as people write it.
fn titled(kit: &str) -> String {
    match kit {
        "bbr" => "The test cases of draft-ietf-ccwg-bbr".to_string(),
        "all" => "All criteria".to_string(),
        rfc => rfc.strip_prefix("rfc").map_or_else(|| rfc.to_string(), |number| format!("RFC {number}")),
    }
}

/// Where a criterion is from, and by which word it is asked for.
fn asked(criterion: &Criterion) -> String {
    let Criterion { section, requirement, .. } = criterion;
    match section.strip_prefix("case ") {
        Some(number) => format!("It is case {number} of the appendix of draft-ietf-ccwg-bbr."),
        None => format!("RFC 9743 section {section} asks for it with “{requirement}”."),
    }
}

/// The command that judges a scheme by one criterion again.
fn again(evaluation: &Evaluation, scheme: &str, criterion: &Criterion) -> String {
    let kit = match evaluation.kit.as_str() {
        kit if kit == KITS[0] => String::new(),
        kit => format!(" --kit {kit}"),
    };
    let level = match evaluation.level.as_str() {
        level if level == Level::Quick.name() => String::new(),
        level => format!(" --level {level}"),
    };
    format!("brakelight evaluate {scheme}{kit}{level} --only {}", criterion.id)
}

fn row(criterion: &Criterion, again: String) -> Value {
    json!({
        "id": criterion.id, "section": criterion.section, "title": criterion.title,
        "asked": asked(criterion), "criterion": criterion.criterion, "why": criterion.why,
        "measure": criterion.measure, "at_most": criterion.at_most, "verdict": verdict(criterion.verdict),
        "remarks": remarks(criterion), "decides": criterion.decides, "points": criterion.points,
        "worse": criterion.regression.is_some(),
        "again": (!criterion.points.is_empty()).then_some(again),
    })
}
