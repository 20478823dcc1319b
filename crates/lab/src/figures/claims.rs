//! Measured numbers beside those that claims state, as ratios.

use brakelight_scenario::documents::{Claim, Verdict};
use brakelight_scenario::experiment::{Experiment, TOLERANCE};

use super::Figure;
use super::canvas::{Anchor, Canvas, Colour, Point, Shape, Stroke, shortened};
use super::chart::{SMALL, TEXT, TWO_COLUMNS};
use super::font;
use crate::reproduce::numbers::{Number, WIDEST, numbers};

const TICKS: [(f64, &str); 7] =
    [(0.125, "1/8"), (0.25, "1/4"), (0.5, "1/2"), (1.0, "1"), (2.0, "2"), (4.0, "4"), (8.0, "8")];
const NAMES: f64 = 196.0;
const RADIUS: f64 = 2.5;
const HEAD: f64 = 34.0;
/// Of a row, above and below its marks.
const ROOM: f64 = 2.6;

/// Colors of Okabe and Ito, which color-blind readers can tell apart; each verdict has a mark of its own,
/// too.
const KINDS: [(Verdict, &str, Colour, &[Point]); 4] = [
    (Verdict::Holds, "holds", Colour(0, 114, 178), &[]),
    (Verdict::Fails, "fails", Colour(213, 94, 0), &[(0.0, -1.25), (1.15, 0.85), (-1.15, 0.85)]),
    (Verdict::Refuted, "refuted", Colour(0, 0, 0), &[(0.0, -1.35), (1.2, 0.0), (0.0, 1.35), (-1.2, 0.0)]),
    (
        Verdict::NeedsRecordings,
        "hangs on recordings",
        Colour(0, 158, 115),
        &[(-0.95, -0.95), (0.95, -0.95), (0.95, 0.95), (-0.95, 0.95)],
    ),
];

/// A measured number beside the number of a claim.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Mark {
    ratio: f64,
    bound: bool,
    verdict: Verdict,
}

impl Mark {
    fn new(Number { ratio, bound, .. }: Number, verdict: Verdict) -> Self {
        Mark { ratio, bound, verdict }
    }

    /// Where it is: 0 at the left end of the axis, 1 at the right.
    fn place(self) -> f64 {
        let ratio = self.ratio.clamp(1.0 / WIDEST, WIDEST);
        (libm::log(ratio) / libm::log(WIDEST) + 1.0) / 2.0
    }
}

/// Marks of one row and the lines that they stand on: 0 is the middle one.
fn stacked(mut marks: Vec<Mark>, width: f64) -> Vec<(Mark, f64, i32)> {
    marks.sort_by(|a, b| a.place().total_cmp(&b.place()));
    let mut placed: Vec<(Mark, f64, i32)> = Vec::new();
    for mark in marks {
        let x = mark.place() * width;
        let taken =
            |line: i32| placed.iter().any(|(_, other, on)| *on == line && (x - other).abs() < 2.5 * RADIUS);
        let lines = (0..).flat_map(|line| if line == 0 { vec![0] } else { vec![-line, line] });
        let line = lines.into_iter().find(|line| !taken(*line)).expect("there is always another line");
        placed.push((mark, x, line));
    }
    placed
}

fn draw(canvas: &mut Canvas, verdict: Verdict, bound: bool, (x, y): Point) {
    let Some((.., colour, corners)) = KINDS.iter().find(|(kind, ..)| *kind == verdict) else { return };
    let (fill, stroke) =
        (Some(if bound { Colour::WHITE } else { *colour }), Some(Stroke::solid(*colour, 0.9)));
    canvas.shapes.push(match corners {
        [] => Shape::Circle { centre: (x, y), radius: RADIUS, fill, stroke },
        corners => {
            let points = corners.iter().map(|(across, down)| (x + across * RADIUS, y + down * RADIUS));
            Shape::Area { points: points.collect(), fill, stroke }
        }
    });
}

/// Returns a figure called `name` with a row for every experiment that states numbers, and a mark for each of
/// them at the ratio of what was measured to it; none where no claim states one. `claims` are the verdicts on
/// all claims of `experiments`, in their order.
pub fn claims(name: &str, experiments: &[Experiment], claims: &[Claim]) -> Option<Figure> {
    let mut rest = claims;
    let width = TWO_COLUMNS - NAMES - 8.0;
    let mut rows = Vec::new();
    for experiment in experiments {
        let (own, others) = rest.split_at(experiment.claims.len());
        rest = others;
        let pairs = experiment.claims.iter().zip(own);
        let stated = pairs.flat_map(|(claim, judged)| {
            numbers(&claim.check, judged).into_iter().map(|number| Mark::new(number, judged.verdict))
        });
        let marks: Vec<Mark> = stated.collect();
        if !marks.is_empty() {
            rows.push((experiment, stacked(marks, width)));
        }
    }
    let lines = |placed: &[(Mark, f64, i32)]| {
        let of = |line: fn(i32) -> i32| placed.iter().map(|(.., on)| line(*on)).max().unwrap_or(0).max(0);
        (f64::from(of(|on| -on)), f64::from(of(|on| on)))
    };
    let step = 2.5 * RADIUS;
    let height = |placed: &[(Mark, f64, i32)]| {
        let (above, below) = lines(placed);
        2.0 * ROOM + (above + below + 1.0) * step
    };
    let all: f64 = rows.iter().map(|(_, placed)| height(placed)).sum();
    let count: usize = rows.iter().map(|(_, placed)| placed.len()).sum();
    if count == 0 {
        return None;
    }
    let mut canvas = Canvas::new(TWO_COLUMNS, HEAD + all + 34.0);
    let (top, bottom) = (HEAD, HEAD + all);
    let x = |ratio: f64| NAMES + Mark { ratio, bound: false, verdict: Verdict::Holds }.place() * width;
    canvas.rectangle((x(1.0 - TOLERANCE), top), (x(1.0 + TOLERANCE), bottom), Colour(226, 238, 247));
    let mut at = 4.0;
    for (kind, words, ..) in KINDS {
        draw(&mut canvas, kind, false, (at + RADIUS, 8.0));
        canvas.text((at + 9.0, 10.6), words, TEXT, Anchor::Start);
        at += 20.0 + font::width(words, TEXT);
    }
    draw(&mut canvas, Verdict::Holds, true, (at + RADIUS, 8.0));
    canvas.text((at + 9.0, 10.6), "hollow: the claim states a bound", TEXT, Anchor::Start);
    for (tick, words) in TICKS {
        canvas.line([(x(tick), top), (x(tick), bottom + 2.5)], Stroke::solid(Colour::PALE, 0.6));
        canvas.text((x(tick), top - 4.0), words, SMALL, Anchor::Middle);
        canvas.text((x(tick), bottom + 10.0), words, SMALL, Anchor::Middle);
    }
    canvas.line([(x(1.0), top), (x(1.0), bottom)], Stroke::solid(Colour::GREY, 0.8));
    let mut y = top;
    for (experiment, placed) in &rows {
        let (above, _) = lines(placed);
        let middle = y + ROOM + (above + 0.5) * step;
        let words = format!("{}  {}", experiment.id, experiment.title);
        canvas.text(
            (4.0, middle + 0.35 * SMALL),
            &shortened(&words, SMALL, NAMES - 12.0),
            SMALL,
            Anchor::Start,
        );
        for (mark, across, line) in placed {
            draw(&mut canvas, mark.verdict, mark.bound, (NAMES + across, middle + f64::from(*line) * step));
        }
        y += height(placed);
        canvas.line([(4.0, y), (NAMES + width, y)], Stroke::solid(Colour::PALE, 0.4));
    }
    let middle = NAMES + width / 2.0;
    canvas.text(
        (middle, bottom + 22.0),
        "measured here, as a multiple of the claim's number",
        TEXT,
        Anchor::Middle,
    );
    let caption = format!(
        "{count} numbers that claims state, by figure or table: each mark is at the ratio of what was measured to the \
         claim's number; the band is 15 % around it. Marks beyond a factor of 8 are at the edge."
    );
    Some(Figure::new(&[name], caption, canvas))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_one_place_stand_on_lines_of_their_own() {
        let mark = Mark { ratio: 1.0, bound: false, verdict: Verdict::Holds };
        let lines: Vec<i32> = stacked(vec![mark; 4], 100.0).iter().map(|(.., line)| *line).collect();
        assert_eq!(lines, [0, -1, 1, -2]);
        let far = Mark { ratio: 100.0, ..mark };
        assert_eq!(stacked(vec![mark, far], 100.0), [(mark, 50.0, 0), (far, 100.0, 0)]);
    }
}
