//! What goes into the file. How it looks is the browser test's business.

use serde_json::Value;

use super::*;
use crate::testing;

fn sample(title: &str, bins: usize) -> String {
    let outcomes = testing::outcomes(bins);
    let runs: Vec<Run> = outcomes.iter().map(|outcome| outcome.run.clone()).collect();
    let report = Report {
        title: title.into(),
        setting: vec![("RTT".into(), "100ms".into())],
        caveats: vec!["lte: a buffer of 10pkt".into()],
        notes: vec!["codel: target = 50ms".into()],
        origin: &testing::origin(),
        overall: summary::overall(&runs, &[], Some("abc")),
        decision: None,
        advice: Vec::new(),
        runs: &runs,
        series: outcomes
            .iter()
            .enumerate()
            .map(|(run, outcome)| Recorded {
                run,
                series: outcome.series.as_ref().unwrap(),
                links: 1,
                paths: Vec::new(),
            })
            .collect(),
        reference: Some("abc"),
    };
    report.html()
}

fn data(html: &str) -> Value {
    let (_, rest) = html.split_once("id=\"data\">").unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(json).unwrap()
}

#[test]
fn fills_every_place_once_and_needs_no_network() {
    let html = sample("six schemes", 600);
    assert!(!html.contains("{{"), "a place was left open");
    for tag in ["<script src", "<link rel=\"stylesheet\"", "@import", "url("] {
        let own = html.replace(PLOTLY, "");
        assert!(!own.contains(tag), "{tag} would reach for the network");
    }
    let data = data(&html);
    assert_eq!(data["schemes"].as_array().unwrap().len(), 6);
    assert_eq!(data["pictures"].as_array().unwrap().len(), 30);
    assert_eq!(data["overall"][0]["power"], 1.0);
    if let Ok(path) = std::env::var("BRAKELIGHT_SAMPLE_REPORT") {
        std::fs::write(path, html).unwrap();
    }
}

#[test]
fn a_flow_is_drawn_on_the_links_that_its_data_pass() {
    let outcome = &testing::outcomes(10)[0];
    let mut series = outcome.series.clone().unwrap();
    series.links.truncate(1);
    series.links.push(series.links[0].clone());
    series.flows.truncate(1);
    series.flows.push(series.flows[0].clone());
    let recorded = Recorded { run: 0, series: &series, links: 2, paths: vec![vec![1], vec![0, 1]] };
    let runs = [outcome.run.clone()];
    let report = Report {
        title: "paths".into(),
        setting: Vec::new(),
        caveats: Vec::new(),
        notes: Vec::new(),
        origin: &testing::origin(),
        overall: Vec::new(),
        decision: None,
        advice: Vec::new(),
        runs: &runs,
        series: vec![recorded],
        reference: None,
    };
    let places: Vec<Vec<usize>> =
        report.data().pictures.iter().map(|it| it.flows.iter().map(|flow| flow.place).collect()).collect();
    assert_eq!(places, [vec![1], vec![0, 1]]);
}

#[test]
fn text_cannot_break_out_of_its_place() {
    let html = sample("</script><script>alert(1)</script>{{script}}<!-- & >", 10);
    assert_eq!(html.matches("alert(1)").count(), 2, "once as the page's title, once as data");
    assert!(!html.contains("<script>alert"));
    assert_eq!(data(&html)["title"], "</script><script>alert(1)</script>{{script}}<!-- & >");
}

#[test]
fn five_traces_of_six_schemes_stay_below_3_megabytes_however_long_the_run() {
    for bins in [600, 30_000] {
        let html = sample("six schemes", bins);
        assert!(html.len() < 3_000_000, "{} bytes for {bins} bins", html.len());
        let data = data(&html);
        let picture = &data["pictures"][0];
        let points = picture["capacity"]["count"].as_u64().unwrap() as usize;
        assert!(points <= MOST_POINTS, "{points} points");
        let seconds = picture["bin_s"].as_f64().unwrap() * points as f64;
        assert!((seconds - bins as f64 * 0.1).abs() < 1e-6, "{seconds} s");
    }
}
