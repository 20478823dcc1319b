//! The stability map for people.

use crate::analysis::stability::{Rule, Verdict};
use brakelight_scenario::trace::plot;

use super::table::{self, Column};
use super::{Screen, number, number_or_dash};
use crate::stability::waits::{Wait, Waits};
use crate::stability::{Map, Row};

/// Height of a picture of the delay over time.
const PLOT_ROWS: usize = 8;

fn letter(verdict: Verdict) -> char {
    match verdict {
        Verdict::Steady => '·',
        Verdict::Ripples => '~',
        Verdict::Oscillates => '#',
    }
}

/// Returns a table by numbers of flows and ratios; for a single point, the delay over time.
pub fn in_words(map: &Map, screen: &Screen) -> String {
    let (title, rule) = match map.rule {
        Rule::Paper { eta, target } => (
            "ABC: steady or not, by delta over tau",
            format!(", eta {eta}, target {} ms", number(target.as_millis_f64())),
        ),
        Rule::Adaptive => (
            "Self-tuning ABC: steady or not, by tau over the loop delay that the router assumes",
            String::new(),
        ),
    };
    let facts = format!(
        "{} Mbit/s, round trip {} ms{rule}; swing of the queueing delay in ms, · up to 5 % of the round trip, ~ up to 15 %, # above",
        number(map.rate_mbps),
        number(map.rtt_ms),
    );
    let mut text = format!("{}\n{}\n\n", screen.bold(title), screen.dim(&facts));
    if let [only] = map.points.as_slice() {
        return text + &one(only, map, screen);
    }
    let mut columns = vec![Column::text("flows"), Column::text("")];
    columns.extend(map.ratios.iter().map(|ratio| Column::number(&ratio.to_string(), "")));
    let mut rows = Vec::new();
    for of_flows in map.points.chunks(map.ratios.len()) {
        let flows = of_flows.first().map_or(0, |row| row.flows);
        let line = |what: &str, first: String, cell: &dyn Fn(&Row) -> (f64, Verdict)| {
            let cells = of_flows
                .iter()
                .map(cell)
                .map(|(width_ms, verdict)| format!("{} {}", number(width_ms), letter(verdict)));
            [first, what.to_string()].into_iter().chain(cells).collect::<Vec<_>>()
        };
        rows.push(line("model", flows.to_string(), &|row| {
            (row.fluid.high_ms - row.fluid.low_ms, row.fluid.verdict)
        }));
        rows.push(line("packets", String::new(), &|row| {
            (row.packets.p95_ms - row.packets.p5_ms, row.packets.verdict)
        }));
    }
    text += &table::render(&columns, &rows, screen);
    let [theorem, linear] = [map.theorem_limit, map.linear_limit];
    text + &match map.rule {
        Rule::Paper { .. } => format!(
            "\nThe theorem guarantees a steady queue for delta above {theorem:.3} tau, the linearized model from {linear:.3} tau.\n"
        ),
        Rule::Adaptive => format!(
            "\nThe theorem guarantees a steady queue for tau below {theorem:.3} loop delays, the linearized model up to {linear:.3}.\n"
        ),
    }
}

/// Returns a table of the longest waits by numbers of flows and factors.
pub fn waits_in_words(waits: &Waits, screen: &Screen) -> String {
    let title = "ABC: the longest that a packet can wait, by the factor that the link changes by";
    let facts = format!(
        "links from {} to {} Mbit/s, round trip {} ms, eta {}, target {} ms; queueing delay in ms",
        number(waits.low_mbps),
        number(waits.high_mbps),
        number(waits.rtt_ms),
        waits.eta,
        number(waits.target_ms)
    );
    let mut columns = vec![Column::text("flows"), Column::text("")];
    columns.extend(waits.changes.iter().map(|change| Column::number(&change.to_string(), "")));
    let mut rows = Vec::new();
    for of_flows in waits.points.chunks(waits.changes.len()) {
        let flows = of_flows.first().map_or(0, |wait| wait.flows);
        let line = |what: &str, first: String, cell: &dyn Fn(&Wait) -> Option<f64>| {
            let cells = of_flows.iter().map(|wait| number_or_dash(cell(wait)));
            [first, what.to_string()].into_iter().chain(cells).collect::<Vec<_>>()
        };
        rows.push(line("bound, fluid model", flows.to_string(), &|wait| wait.fluid_ms));
        rows.push(line("bound, packets", String::new(), &|wait| wait.packets_ms));
        rows.push(line("packets on stairs", String::new(), &|wait| Some(wait.stairs_ms)));
    }
    format!(
        "{}\n{}\n\n{}\nNo link of the class makes a packet wait longer than its bound. The stairs are one link of it.\n",
        screen.bold(title),
        screen.dim(&facts),
        table::render(&columns, &rows, screen)
    )
}

/// One point: the model and the packets over time.
fn one(row: &Row, map: &Map, screen: &Screen) -> String {
    let columns = screen.width.saturating_sub(12).min(100);
    let bin_s = map.rtt_ms * 0.2e-3;
    let picture = |series_ms: &[f64]| {
        let seconds = (series_ms.len() as f64 * bin_s * 10.0).round() / 10.0;
        plot::area(series_ms, columns, PLOT_ROWS, "queueing delay, ms", seconds)
    };
    let model = &row.fluid;
    let packets = &row.packets;
    format!(
        "{} from an empty queue: settles at {} ms, at the end between {} and {} ms {}\n{}\n\
         {} from the start of {} flows: mean {} ms, from {} (p5) to {} ms (p95) in the second half {}\n{}",
        screen.bold("Model,"),
        number(model.rest_ms),
        number(model.low_ms),
        number(model.high_ms),
        letter(model.verdict),
        picture(&model.series_ms),
        screen.bold("Packets,"),
        row.flows,
        number(packets.mean_ms),
        number(packets.p5_ms),
        number(packets.p95_ms),
        letter(packets.verdict),
        picture(&packets.series_ms),
    )
}
