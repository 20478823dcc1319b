//! Utilization and delay of every scheme on a trace, side by side; the flows' throughputs where one competes.

use brakelight_scenario::outcome::Run;

use super::axis::Axis;
use super::canvas::{Anchor, Canvas, Colour, shortened};
use super::chart::{Chart, DELAY, SMALL, TEXT, TWO_COLUMNS};
use super::look::Look;
use super::{Figure, font, of_runs};
use crate::summary;
use crate::table::Table;

/// The height of a scheme's line.
const ROW: f64 = 11.0;

/// A quantity that is drawn: of a row its value and between which values it lies.
struct Quantity {
    name: String,
    value: fn(&Run) -> Option<f64>,
    interval: fn(&Run) -> Option<[f64; 2]>,
}

/// The bars of one trace; none where there is one scheme only.
pub(super) fn bars(table: &Table, trace: &str) -> Option<Figure> {
    let rows = summary::on_trace(&table.runs, trace);
    if rows.len() < 2 {
        return None;
    }
    let against = rows.iter().find_map(|run| run.setup.as_ref()?.against.as_deref());
    let mut quantities = vec![
        Quantity {
            name: "utilization (%)".into(),
            value: |run| Some(100.0 * summary::used(run)),
            interval: match against {
                // What is known is the interval of the link's, not of one flow's.
                Some(_) => |_| None,
                None => |run| Some(run.interval95?.utilization.map(|share| 100.0 * share)),
            },
        },
        Quantity { name: DELAY.into(), value: summary::p95, interval: |run| run.interval95?.p95_ms },
    ];
    if let Some(against) = against {
        quantities.push(Quantity {
            name: format!("share against {against} (%)"),
            value: |run| Some(100.0 * run.fairness?.share),
            interval: |_| None,
        });
    }
    let caption = format!(
        "Every scheme on {trace}, by power (throughput over delay): {}; {}.",
        quantities.iter().map(|quantity| quantity.name.as_str()).collect::<Vec<_>>().join(", "),
        of_runs(&table.every)
    );
    Some(Figure::new(&["bars", trace], caption, page_of(&rows, &quantities)))
}

fn page_of(rows: &[&Run], quantities: &[Quantity]) -> Canvas {
    let names = rows.iter().map(|run| font::width(&run.scheme, TEXT)).fold(0.0, f64::max).min(130.0) + 10.0;
    let inside = rows.len() as f64 * ROW + 3.0;
    let mut canvas = Canvas::new(TWO_COLUMNS, inside + SMALL + TEXT + 20.0);
    let width = (TWO_COLUMNS - names) / quantities.len() as f64;
    for (place, run) in rows.iter().enumerate() {
        let name = shortened(&run.scheme, TEXT, names - 8.0);
        canvas.text((names - 4.0, middle_of(place) + 0.35 * TEXT), &name, TEXT, Anchor::End);
    }
    for (column, quantity) in quantities.iter().enumerate() {
        let left = names + column as f64 * width;
        let most = |run: &&Run| {
            let high = (quantity.interval)(run).map_or(0.0, |[_, high]| high);
            (quantity.value)(run).unwrap_or(0.0).max(high)
        };
        // Beyond the longest bar there is room for its number.
        let x = Axis::from_zero(rows.iter().map(|run| 1.18 * most(run)));
        let chart =
            Chart { left, top: 4.0, right: left + width - 16.0, bottom: 4.0 + inside, x, y: no_ticks() };
        draw(&mut canvas, &chart, rows, quantity);
    }
    canvas
}

fn middle_of(place: usize) -> f64 {
    4.0 + 1.5 + (place as f64 + 0.5) * ROW
}

fn no_ticks() -> Axis {
    let mut axis = Axis::linear(0.0, 1.0);
    axis.ticks.clear();
    axis
}

fn draw(canvas: &mut Canvas, chart: &Chart, rows: &[&Run], quantity: &Quantity) {
    // A bar's colour says nothing that its name does not.
    let colour = Look::of(0).colour.towards(Colour::WHITE, 0.35);
    for (place, run) in rows.iter().enumerate() {
        let Some(value) = (quantity.value)(run) else { continue };
        let (middle, right) = (middle_of(place), chart.across(value));
        canvas.rectangle((chart.left, middle - 0.36 * ROW), (right, middle + 0.36 * ROW), colour);
        let mut end = right;
        if let Some([low, high]) = (quantity.interval)(run) {
            let level = 1.0 - (middle - chart.top) / (chart.bottom - chart.top);
            chart.error_bar(canvas, (low, level), (high, level), Colour::BLACK);
            end = end.max(chart.across(high));
        }
        let words = crate::text::number(value);
        canvas.text((end + 2.5, middle + 0.35 * SMALL), &words, SMALL, Anchor::Start);
    }
    chart.frame(canvas, "", &quantity.name, "");
}
