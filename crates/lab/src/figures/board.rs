//! What several schemes make of the criteria of a kit.

use brakelight_scenario::documents::{Criterion, Evaluation, Judgment};

use super::Figure;
use super::canvas::{Anchor, Canvas, Colour};
use super::chart::{SMALL, TWO_COLUMNS};
use super::font;

const ROW: f64 = 9.5;
/// Between the criteria of two sections.
const GAP: f64 = 2.5;
const MARGIN: f64 = 4.0;

/// Shade and sign of a verdict, so that it can be told without colour, too.
fn look(verdict: Judgment) -> Option<(Colour, &'static str, Colour)> {
    match verdict {
        Judgment::Pass => Some((Colour(214, 230, 244), "", Colour::BLACK)),
        Judgment::Unsure => Some((Colour(240, 200, 110), "?", Colour::BLACK)),
        Judgment::Fail => Some((Colour(186, 54, 30), "x", Colour::WHITE)),
        Judgment::NotApplicable => None,
    }
}

/// The section of a criterion without its last number: 5.1 of 5.1.3.
fn chapter(criterion: &Criterion) -> &str {
    let end = criterion.section.match_indices('.').nth(1).map_or(criterion.section.len(), |(at, _)| at);
    &criterion.section[..end]
}

/// Returns the verdicts as a table of colours: a row for each criterion, a column for each scheme, and below
/// how many each scheme fails.
pub fn board(evaluation: &Evaluation) -> Figure {
    let schemes = &evaluation.schemes;
    let criteria = schemes.first().map_or(&[][..], |evaluated| &evaluated.criteria);
    let widest = |words: &mut dyn Iterator<Item = &str>| {
        words.map(|words| font::width(words, SMALL)).fold(0.0, f64::max) + MARGIN
    };
    let names =
        widest(&mut criteria.iter().map(|criterion| criterion.id.as_str()).chain(["failed"])) + MARGIN;
    let head = widest(&mut schemes.iter().map(|evaluated| evaluated.scheme.as_str())) + MARGIN;
    let own = ((TWO_COLUMNS - names) / schemes.len().max(1) as f64).min(40.0);
    let gaps = criteria.windows(2).filter(|pair| chapter(&pair[0]) != chapter(&pair[1])).count();
    let rows = (criteria.len() + 1) as f64 * ROW + (gaps + 1) as f64 * GAP;
    let mut canvas = Canvas::new(names + own * schemes.len() as f64, head + rows + MARGIN);
    let base = |top: f64| top + ROW / 2.0 + 0.35 * SMALL;
    let left = |column: usize| names + column as f64 * own;
    for (column, evaluated) in schemes.iter().enumerate() {
        let x = left(column) + own / 2.0 + 0.35 * SMALL;
        canvas.vertical_text((x, head / 2.0), &evaluated.scheme, SMALL);
    }
    let mut top = head;
    for (place, criterion) in criteria.iter().enumerate() {
        if place > 0 && chapter(&criteria[place - 1]) != chapter(criterion) {
            top += GAP;
        }
        canvas.text((names - MARGIN, base(top)), &criterion.id, SMALL, Anchor::End);
        for (column, evaluated) in schemes.iter().enumerate() {
            let verdict = evaluated.criteria.get(place).map(|criterion| criterion.verdict);
            let Some((fill, sign, ink)) = verdict.and_then(look) else { continue };
            let x = left(column);
            canvas.rectangle((x + 0.4, top + 0.4), (x + own - 0.4, top + ROW - 0.4), fill);
            canvas.coloured_text((x + own / 2.0, base(top)), sign, SMALL, Anchor::Middle, ink);
        }
        top += ROW;
    }
    top += GAP;
    canvas.text((names - MARGIN, base(top)), "failed", SMALL, Anchor::End);
    for (column, evaluated) in schemes.iter().enumerate() {
        let failed =
            evaluated.criteria.iter().filter(|criterion| criterion.verdict == Judgment::Fail).count();
        canvas.text((left(column) + own / 2.0, base(top)), &failed.to_string(), SMALL, Anchor::Middle);
    }
    let caption = format!(
        "Verdicts of the kit {}: pale is a pass, dark with a cross a fail, with a question mark unsure, and blank is not applicable.",
        evaluation.kit
    );
    Figure::new(&["evaluation"], caption, canvas)
}
