//! One HTML file that needs no network: the page, its style, its script and the charting library, with the
//! results as JSON inside. The script draws; this module only decides what it gets.

use brakelight_scenario::documents::Origin;
use std::collections::BTreeMap;

use brakelight_scenario::outcome::{FlowOutcome, FlowSeries, LinkOutcome, LinkSeries, Run, Series, Summary};
use brakelight_scenario::scheme::short_name;
use serde::Serialize;
use serde_json::{Value, json};

use self::points::{Points, Span};
use crate::decision::Decision;
use crate::{summary, text};

mod points;
#[cfg(test)]
mod tests;

const PAGE: &str = include_str!("page.html");
const BODY: &str = include_str!("report.html");
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("report.js");
const PLOTLY: &str = include_str!("../../vendor/plotly/plotly-basic.min.js");

/// Most points of one line: more than a wide screen has pixels would only make the file heavy.
const MOST_POINTS: usize = 1200;

/// Most points of all lines together: about 1.5 MB of the file. A report of many schemes has fewer in each.
const MOST_POINTS_IN_ALL: usize = 700_000;

/// Most flows of one run whose lines are drawn.
const MOST_FLOWS: usize = 12;

/// Most flows of one run in the table of flows.
const MOST_ROWS: usize = 100;

/// Everything a report shows.
#[derive(Debug)]
pub struct Report<'a> {
    /// The heading.
    pub title: String,
    /// What was the same for every run: name and value.
    pub setting: Vec<(String, String)>,
    /// What a reader must know before reading any number.
    pub caveats: Vec<String>,
    /// What a reader should know besides.
    pub notes: Vec<String>,
    /// Where it came from.
    pub origin: &'a Origin,
    /// One row per scheme over all traces.
    pub overall: Vec<summary::Overall>,
    /// What to deploy; none where there is nothing to choose from.
    pub decision: Option<Decision>,
    /// The same, where it was asked for one thing that can be changed: a block for each direction.
    pub advice: Vec<text::advice::Block>,
    /// The rows.
    pub runs: &'a [Run],
    /// Time series.
    pub series: Vec<Recorded<'a>>,
    /// The scheme that ratios are to, where it is among the rows.
    pub reference: Option<&'a str>,
}

/// The time series of one row.
#[derive(Clone, Debug)]
pub struct Recorded<'a> {
    /// Index of the row.
    pub run: usize,
    /// Its series.
    pub series: &'a Series,
    /// How many of its links are shown.
    pub links: usize,
    /// For every flow, the places of the links that its data pass; of flows beyond these, the first.
    pub paths: Vec<Vec<usize>>,
}

/// The results as the page's script reads them.
#[derive(Serialize)]
struct Data<'a> {
    title: &'a str,
    setting: &'a [(String, String)],
    decision: Option<&'a Decision>,
    advice: &'a [text::advice::Block],
    /// What must be known to read the decision.
    remarks: Vec<String>,
    /// The names that tables and charts have room for, where they are not the schemes' own.
    short_names: BTreeMap<&'a str, String>,
    caveats: &'a [String],
    notes: &'a [String],
    origin: Vec<(&'static str, String)>,
    schemes: Vec<&'a str>,
    traces: Vec<&'a str>,
    reference: Option<&'a str>,
    overall: &'a [summary::Overall],
    runs: Vec<Value>,
    pictures: Vec<Picture<'a>>,
    /// The points of all lines, packed: see [`Points::text`].
    points: String,
}

/// The time series of one link in one run.
#[derive(Serialize)]
struct Picture<'a> {
    /// Index of the row.
    run: usize,
    scheme: &'a str,
    /// What the choice above the charts is between.
    group: &'a str,
    label: String,
    /// Which of the run's links it is, and of how many.
    place: usize,
    links: usize,
    /// Numbers beside the label.
    facts: Vec<String>,
    start_s: f64,
    bin_s: f64,
    capacity: Span,
    throughput: Span,
    lower: Vec<Line>,
    flows: Vec<Flow<'a>>,
}

#[derive(Serialize)]
struct Flow<'a> {
    name: &'a str,
    /// Which of the run's flows it is: the same colour on every link.
    place: usize,
    /// None where it is the link's own.
    throughput: Option<Span>,
    lower: Vec<Line>,
}

/// One quantity over time, for the chart below.
#[derive(Serialize)]
struct Line {
    name: String,
    unit: &'static str,
    values: Span,
}

impl Report<'_> {
    /// Returns the file.
    pub fn html(&self) -> String {
        page(&self.title, BODY, &self.data(), SCRIPT)
    }

    fn data(&self) -> Data<'_> {
        let mut points = Points::new(self.most_points());
        let mut pictures = Vec::new();
        for recorded in &self.series {
            self.draw(recorded, &mut points, &mut pictures);
        }
        Data {
            title: &self.title,
            setting: &self.setting,
            decision: self.decision.as_ref(),
            advice: &self.advice,
            remarks: self.decision.as_ref().map(text::decision::remarks).unwrap_or_default(),
            short_names: self.short_names(),
            caveats: &self.caveats,
            notes: &self.notes,
            origin: origin_rows(self.origin),
            schemes: summary::distinct(self.runs, |run| &run.scheme),
            traces: summary::distinct(self.runs, |run| &run.trace),
            reference: self.reference,
            overall: &self.overall,
            runs: self.runs.iter().map(row).collect(),
            pictures,
            points: points.text(),
        }
    }

    fn short_names(&self) -> BTreeMap<&str, String> {
        let schemes = summary::distinct(self.runs, |run| &run.scheme);
        let names = schemes.into_iter().map(|scheme| (scheme, short_name(scheme)));
        names.filter(|(scheme, short)| scheme != short).collect()
    }

    /// Returns how many points a line may have, so that all lines together stay within their bound.
    fn most_points(&self) -> usize {
        let lines = |recorded: &Recorded<'_>| {
            let flows = &recorded.series.flows;
            let flows = if flows.len() <= MOST_FLOWS { flows.as_slice() } else { &[] };
            5 * recorded.links + flows.iter().map(|flow| 3 + flow.state.len()).sum::<usize>()
        };
        let lines: usize = self.series.iter().map(lines).sum();
        (MOST_POINTS_IN_ALL / lines.max(1)).clamp(1, MOST_POINTS)
    }

    /// Adds a picture of every link of a run.
    fn draw<'a>(&self, recorded: &Recorded<'a>, points: &mut Points, pictures: &mut Vec<Picture<'a>>)
    where
        Self: 'a,
    {
        let Recorded { run: index, series, links, ref paths } = *recorded;
        let run = &self.runs[index];
        let links = &series.links[..links.min(series.links.len())];
        let several = links.len() > 1;
        let passes = |flow: usize, link: usize| match paths.get(flow) {
            Some(path) => path.contains(&link),
            None => link == 0,
        };
        let alone = !several && series.flows.len() == 1;
        for (place, link) in links.iter().enumerate() {
            let shown = if series.flows.len() <= MOST_FLOWS { series.flows.as_slice() } else { &[] };
            let shown = shown.iter().enumerate().filter(|(flow, _)| passes(*flow, place));
            pictures.push(Picture {
                run: index,
                scheme: &run.scheme,
                group: &run.trace,
                facts: facts(run.links.get(place)),
                label: if several {
                    format!("{} · {}", short_name(&run.scheme), link.name)
                } else {
                    short_name(&run.scheme)
                },
                place,
                links: links.len(),
                start_s: link.time_s.first().copied().unwrap_or(0.0),
                bin_s: series.bin_s * points.merged(link.time_s.len()) as f64,
                capacity: points.add(&link.capacity_mbps, mean),
                throughput: points.add(&link.throughput_mbps, mean),
                lower: link_lines(link, points),
                flows: shown.map(|(place, it)| flow(place, it, alone, points)).collect(),
            });
        }
    }
}

/// Returns a page that needs no network: `body` between heading and origin, `data` for `script`, the style
/// and the charting library.
pub fn page(title: &str, body: &str, data: &impl Serialize, script: &str) -> String {
    let data = serde_json::to_string(data).expect("plain data is always JSON");
    // Inside a script element only `</` could end it early, and `<!--` confuse it.
    let data = data.replace('<', "\\u003c");
    let parts = [
        ("{{title}}", escape(&format!("Brakelight: {title}"))),
        ("{{style}}", STYLE.to_string()),
        ("{{body}}", body.to_string()),
        ("{{data}}", data),
        ("{{plotly}}", PLOTLY.to_string()),
        ("{{script}}", script.to_string()),
    ];
    let mut html =
        String::with_capacity(parts.iter().map(|(_, text)| text.len()).sum::<usize>() + PAGE.len());
    let mut rest = PAGE;
    // Left to right, so that nothing inside one part is taken for the place of another.
    for (place, text) in &parts {
        let (before, after) =
            rest.split_once(place).expect("the page has a place for every part, in this order");
        html.push_str(before);
        html.push_str(text);
        rest = after;
    }
    html.push_str(rest);
    html
}

/// Returns the origin as names and texts.
pub fn origin_rows(origin: &Origin) -> Vec<(&'static str, String)> {
    vec![
        ("command", origin.command.clone()),
        ("seed", origin.seed.to_string()),
        ("version", format!("brakelight {}", origin.version)),
        ("commit", origin.git.clone().unwrap_or_else(|| "unknown".into())),
        ("host", origin.host.clone()),
    ]
}

fn row(run: &Run) -> Value {
    let summary = |delay: Option<Summary>| {
        delay.map(|d| json!({ "mean": d.mean, "p50": d.p50, "p95": d.p95, "p99": d.p99, "max": d.max }))
    };
    json!({
        "scheme": run.scheme, "trace": run.trace, "capacity_mbps": run.capacity_mbps,
        "throughput_mbps": run.throughput_mbps, "goodput_mbps": run.goodput_mbps, "utilization": summary::used(run),
        "queueing": summary(run.queueing_delay_ms), "one_way": summary(run.one_way_delay_ms), "rtt": summary(run.rtt_ms),
        "loss_percent": run.loss_percent, "retransmitted_packets": run.retransmitted_packets, "jain": run.jain,
        "spread": run.spread, "interval95": run.interval95, "modes": run.modes, "versus": run.versus, "fairness": run.fairness, "setup": run.setup,
        "deployment": run.deployment, "responsiveness": run.responsiveness, "second_half": run.second_half,
        "flows": flow_rows(run),
    })
}

/// The flows, where there is more to them than the row itself says.
fn flow_rows(run: &Run) -> Vec<Value> {
    let plain = run.flows.len() < 2 && run.flows.iter().all(|flow| flow.application.is_none());
    let shown = if plain { &[] } else { &run.flows[..run.flows.len().min(MOST_ROWS)] };
    let row = |flow: &FlowOutcome| {
        json!({
            "name": flow.name, "controller": flow.controller, "throughput_mbps": flow.throughput_mbps,
            "goodput_mbps": flow.goodput_mbps, "rtt": flow.rtt_ms, "loss_percent": flow.loss_percent,
            "retransmitted_packets": flow.retransmitted_packets, "application": flow.application,
        })
    };
    shown.iter().map(row).collect()
}

/// What a link carried, in a few numbers.
fn facts(link: Option<&LinkOutcome>) -> Vec<String> {
    let Some(link) = link else { return Vec::new() };
    vec![
        format!("{} Mbit/s", text::number(link.throughput_mbps)),
        format!("{:.1} %", 100.0 * link.utilization),
        format!("p95 {} ms", text::number_or_dash(link.queueing_delay_ms.map(|delay| delay.p95))),
    ]
}

fn link_lines(link: &LinkSeries, points: &mut Points) -> Vec<Line> {
    let line = |name: &str, unit, values| Line { name: name.into(), unit, values };
    let mut lines = vec![
        line("queueing delay, p95", "ms", points.add_some(&link.queueing_delay_p95_ms, most)),
        line("queueing delay, mean", "ms", points.add_some(&link.queueing_delay_mean_ms, mean)),
    ];
    if link.accelerate_fraction.iter().any(Option::is_some) {
        let values = points.add_some(&link.accelerate_fraction, mean);
        lines.push(line("accelerates among the marks", "share", values));
    }
    lines
}

/// What a controller says of itself that the line of the window or of the RTT shows already.
const SHOWN_ALREADY: [&str; 2] = ["cwnd_bytes", "srtt_ms"];

fn flow<'a>(place: usize, flow: &'a FlowSeries, alone: bool, points: &mut Points) -> Flow<'a> {
    let line = |name: &str, unit, values| Line { name: name.into(), unit, values };
    let mut lower = vec![
        line("window", "packets", points.add(&flow.cwnd_pkts, mean)),
        line("RTT", "ms", points.add_some(&flow.rtt_ms, mean)),
    ];
    for (name, values) in flow.state.iter().filter(|(name, _)| !SHOWN_ALREADY.contains(&name.as_str())) {
        lower.push(line(name, "", points.add(values, mean)));
    }
    let throughput = (!alone).then(|| points.add(&flow.throughput_mbps, mean));
    Flow { name: &flow.name, place, throughput, lower }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
