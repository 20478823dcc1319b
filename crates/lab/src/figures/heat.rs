//! Tables of numbers whose shades say how large they are.

use super::Figure;
use super::canvas::{Anchor, Canvas, Colour, Point, shortened};
use super::chart::{SMALL, TEXT, TWO_COLUMNS};
use super::font;
use crate::summary;
use crate::table::Table;
use crate::text;

/// One shade from pale to dark, so that it can be told without colour, too.
const PALE: Colour = Colour(247, 250, 253);
const DARK: Colour = Colour(8, 64, 129);

/// A table of shades.
pub(super) struct Heat {
    pub title: String,
    pub rows: Vec<String>,
    pub columns: Vec<String>,
    /// By row and column.
    pub values: Vec<Vec<Option<f64>>>,
    /// Whether equal factors differ by equal shades.
    pub logarithmic: bool,
}

/// The least and the greatest value of some tables: of the palest and of the darkest shade.
pub(super) fn range(heats: &[Heat]) -> (f64, f64) {
    let values = heats.iter().flat_map(|heat| heat.values.iter().flatten().flatten());
    let values = values.copied().filter(|value| value.is_finite());
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

impl Heat {
    /// How wide the words before the rows are.
    fn names(&self, most: f64) -> f64 {
        self.rows.iter().map(|row| font::width(row, SMALL)).fold(0.0, f64::max).min(most) + 6.0
    }

    const ROW: f64 = 12.0;
    const HEAD: f64 = 24.0;

    /// How high it is.
    pub fn height(&self) -> f64 {
        Heat::HEAD + self.rows.len() as f64 * Heat::ROW + 8.0
    }

    /// Where column number `place` begins, if it is drawn within `width` from `left` on.
    pub fn edge(&self, left: f64, width: f64, place: usize) -> f64 {
        let names = self.names(width * 0.4);
        left + names + (width - names - 6.0) / self.columns.len() as f64 * place as f64
    }

    /// Draws it within a width from its upper left corner on, with shades for values of this range.
    pub fn draw(&self, canvas: &mut Canvas, (left, top): Point, width: f64, range: (f64, f64)) {
        let names = self.names(width * 0.4);
        let own = (width - names - 6.0) / self.columns.len() as f64;
        let middle = left + names + own * self.columns.len() as f64 / 2.0;
        canvas.text((middle, top + TEXT), &shortened(&self.title, TEXT, width), TEXT, Anchor::Middle);
        for (place, column) in self.columns.iter().enumerate() {
            let x = left + names + (place as f64 + 0.5) * own;
            let words = shortened(column, SMALL, own - 2.0);
            canvas.text((x, top + Heat::HEAD - 4.0), &words, SMALL, Anchor::Middle);
        }
        let scale = |value: f64| if self.logarithmic { libm::log(value.max(1e-3)) } else { value };
        let (low, high) = (scale(range.0), scale(range.1));
        for (row, (name, values)) in self.rows.iter().zip(&self.values).enumerate() {
            let y = top + Heat::HEAD + row as f64 * Heat::ROW;
            let base = y + Heat::ROW / 2.0 + 0.35 * SMALL;
            canvas.text((left + names - 3.0, base), &shortened(name, SMALL, names - 3.0), SMALL, Anchor::End);
            for (column, value) in values.iter().enumerate() {
                let Some(value) = value.filter(|value| value.is_finite()) else { continue };
                let share = if high > low { (scale(value) - low) / (high - low) } else { 0.0 };
                let fill = PALE.towards(DARK, share);
                let x = left + names + column as f64 * own;
                canvas.rectangle((x + 0.3, y + 0.3), (x + own - 0.3, y + Heat::ROW - 0.3), fill);
                let ink = if share > 0.5 { Colour::WHITE } else { Colour::BLACK };
                let words = text::number(value);
                if font::width(&words, SMALL) < own {
                    canvas.coloured_text((x + own / 2.0, base), &words, SMALL, Anchor::Middle, ink);
                }
            }
        }
    }
}

/// Utilization and delay of every scheme on every trace.
pub(super) fn schemes_on_traces(table: &Table) -> [Figure; 2] {
    let schemes = summary::distinct(&table.runs, |run| &run.scheme);
    let traces = summary::distinct(&table.runs, |run| &run.trace);
    let heat =
        |title: &str, logarithmic, value: &dyn Fn(&brakelight_scenario::outcome::Run) -> Option<f64>| {
            let of = |scheme: &str, trace: &str| {
                table.runs.iter().find(|run| run.scheme == scheme && run.trace == trace).and_then(value)
            };
            Heat {
                title: title.into(),
                rows: schemes.iter().map(ToString::to_string).collect(),
                columns: traces.iter().map(ToString::to_string).collect(),
                values: schemes
                    .iter()
                    .map(|scheme| traces.iter().map(|trace| of(scheme, trace)).collect())
                    .collect(),
                logarithmic,
            }
        };
    let utilization = heat("utilization (%)", false, &|run| Some(100.0 * summary::used(run)));
    let delay = heat("95th percentile of the queueing delay (ms)", true, &summary::p95);
    let figure = |name, what: &str, heat: &Heat| {
        let mut canvas = Canvas::new(TWO_COLUMNS, heat.height());
        heat.draw(&mut canvas, (0.0, 4.0), TWO_COLUMNS, range(std::slice::from_ref(heat)));
        Figure::new(&[name], format!("{what} of every scheme on every trace."), canvas)
    };
    [
        figure("grid-utilization", "Utilization", &utilization),
        figure("grid-delay", "95th percentile of the queueing delay", &delay),
    ]
}
