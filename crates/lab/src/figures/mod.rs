//! Figures fit for a paper: vector graphics as wide as one column (84 mm) or two (178 mm), words of 7 and 8
//! points, looks that differ without colour. Each as SVG and as PDF; equal results have equal bytes.
//!
//! | figure | of | shows |
//! |---|---|---|
//! | `scatter` | [`table`] | throughput against delay, a chart a trace, with 95 % intervals |
//! | `scatter-all` | [`table`] | the same over all traces, as ratios to the reference scheme |
//! | `bars.TRACE` | [`table`] | utilisation and delay of every scheme |
//! | `cdf.TRACE` | [`table`] | the share of packets with at most that queueing delay |
//! | `grid-utilization`, `grid-delay` | [`table`] | every scheme on every trace |
//! | `series.SCHEME.TRACE` | [`table`] | capacity, throughput and delay over time |
//! | `scatter` | [`grid`] | utilisation against delay over all rows of a sweep |
//! | `lines.AXIS` | [`grid`] | utilisation and delay by the values of an axis |
//! | `grid-utilization.AXIS.AXIS`, `grid-delay.AXIS.AXIS` | [`grid`] | the same by two axes |
//! | `stability` | [`stability`()] | the swing of ABC's queue, by model and packets |
//! | `worst` | [`attack`()] | the worst link for a scheme, and what it made of it |
//! | `evaluation` | [`board()`] | every scheme by every criterion of a kit |
//! | `claims` | [`judged`] | what was measured beside the numbers of claims, as ratios |

use brakelight_scenario::experiment::Experiment;
use brakelight_scenario::outcome::Run;

pub use self::attack::attack;
pub use self::board::board;
pub use self::claims::claims;
pub use self::stability::{stability, waits};

use self::canvas::Canvas;
use self::look::Look;
use self::rows::Rows;
use crate::interval::FEWEST;
use crate::output::File;
use crate::reproduce::Judged;
use crate::series::file_name;
use crate::summary;
use crate::table::Table;

mod attack;
mod axis;
mod bars;
mod board;
mod canvas;
mod cdf;
mod chart;
mod claims;
mod font;
mod heat;
mod look;
mod pdf;
pub mod rows;
mod scatter;
mod series;
mod stability;
mod svg;
#[cfg(test)]
mod tests;

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    name: String,
    caption: String,
    canvas: Canvas,
}

impl Figure {
    /// A figure called by `parts` with points between.
    fn new(parts: &[&str], caption: String, canvas: Canvas) -> Self {
        let parts: Vec<String> = parts.iter().map(|part| file_name(part)).collect();
        Figure { name: parts.join("."), caption, canvas }
    }

    /// Returns its name: that of its files without their endings.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what it shows, in a sentence or two that a paper can begin from.
    pub fn caption(&self) -> &str {
        &self.caption
    }

    /// Returns it as SVG. Text is text, in Helvetica or what the reader has instead.
    pub fn svg(&self) -> String {
        svg::document(&self.canvas, &self.caption)
    }

    /// Returns it as a PDF of one page, with its font embedded. Characters beyond Western European ones
    /// become question marks.
    pub fn pdf(&self) -> Vec<u8> {
        pdf::document(&self.canvas, &self.caption)
    }
}

/// Returns the figures of a comparison or a run: of everything that its rows and series can show.
pub fn table(table: &Table) -> Vec<Figure> {
    let runs = &table.runs;
    let traces = summary::distinct(runs, |run| &run.trace);
    let mut figures = scatter::by_trace(table);
    figures.extend(scatter::overall(table));
    for trace in &traces {
        figures.extend(bars::bars(table, trace));
        figures.extend(cdf::cdf(table, trace));
    }
    if traces.len() > 1 {
        figures.extend(heat::schemes_on_traces(table));
    }
    figures.extend(series::series(table));
    figures
}

/// Returns the figures of a sweep's rows.
pub fn grid(rows: &Rows) -> Vec<Figure> {
    rows::figures(rows, None)
}

/// Returns the figures of every experiment whose runs were measured, whose names begin with its id, and that
/// of all their [`claims`()].
pub fn judged(experiments: &[Experiment], judged: &Judged) -> Vec<Figure> {
    let mut figures: Vec<Figure> = claims("claims", experiments, &judged.claims).into_iter().collect();
    for some in judged.measurements.chunk_by(|a, b| a.experiment == b.experiment) {
        let mut rows = Rows::default();
        for one in some {
            rows.add(&one.axes, &one.run);
        }
        figures.extend(rows::figures(&rows, some.first().map(|one| one.experiment.as_str())));
    }
    figures
}

/// Returns the files of figures: each as SVG and PDF, and `figures.html`, which shows all of them with their
/// captions. Each file is made when it is asked for.
pub fn files(figures: &[Figure]) -> impl Iterator<Item = File> + '_ {
    let each = figures.iter().flat_map(|figure| {
        let svg = File::new(format!("{}.svg", figure.name), figure.svg());
        [svg, File::new(format!("{}.pdf", figure.name), figure.pdf())]
    });
    each.chain(std::iter::once_with(|| File::new("figures.html", page(figures))))
}

/// A page with every figure and its caption.
fn page(figures: &[Figure]) -> String {
    let figure = |figure: &Figure| {
        let (name, caption) = (svg::escape(&figure.name), svg::escape(&figure.caption));
        format!(
            "<figure id=\"{name}\">\n<img src=\"{name}.svg\" alt=\"{caption}\">\n\
             <figcaption>{caption} (<a href=\"{name}.pdf\">{name}.pdf</a>)</figcaption>\n</figure>\n"
        )
    };
    let figures: String = figures.iter().map(figure).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Brakelight: figures</title>\n\
         <style>body {{ font: 15px sans-serif; margin: 2em auto; max-width: 60em; padding: 0 1em }} \
         figure {{ margin: 2em 0 }} img {{ max-width: 100%; background: #fff }}</style>\n</head>\n<body>\n\
         <h1>Figures</h1>\n{figures}</body>\n</html>\n"
    )
}

/// The look of a scheme: that of its place among the schemes of the table, in all of its figures.
fn look_of(schemes: &[&str], scheme: &str) -> Look {
    Look::of(schemes.iter().position(|other| *other == scheme).unwrap_or_default())
}

/// How many runs rows are made of, and what their bars mean.
fn of_runs(every: &[Vec<Run>]) -> String {
    match every.iter().map(Vec::len).max().unwrap_or(1) {
        0 | 1 => "one run each".into(),
        runs if runs < FEWEST => format!("medians of {runs} runs"),
        runs => format!("medians of {runs} runs, bars are 95 % intervals, dots the runs of two modes"),
    }
}
