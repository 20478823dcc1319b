use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use flate2::read::ZlibDecoder;

use super::*;
use crate::compare::{self, Compare};
use crate::jobs::JobOutcome;
use crate::table::Drawn;
use crate::testing;

/// A comparison of six schemes on five traces, each row made of three runs.
fn comparison() -> Table {
    let results = testing::outcomes(300).into_iter().map(|first| {
        let other = |share: f64| {
            let mut run = first.run.clone();
            run.throughput_mbps *= share;
            run.utilization *= share;
            run
        };
        let every = vec![first.run.clone(), other(0.97), other(1.02), other(0.99), other(1.01)];
        JobOutcome::of_runs(every, first).unwrap()
    });
    let drawn = Drawn { links: 1, paths: vec![vec![0]] };
    let mut table = Table::of(results.collect(), &drawn);
    table.reference = Some("abc".into());
    table
}

/// What is written in a PDF, piece by piece.
fn words_of_pdf(bytes: &[u8]) -> Vec<String> {
    let begins = bytes.windows(7).position(|some| some == b"stream\n").unwrap() + 7;
    let mut content = String::new();
    let mut inflated = Vec::new();
    ZlibDecoder::new(&bytes[begins..]).read_to_end(&mut inflated).unwrap();
    content.extend(inflated.into_iter().map(char::from));
    content.lines().filter_map(|line| line.strip_suffix(" Tj")).map(string).collect()
}

/// A string of a PDF, which is in parentheses or in hexadecimal.
fn string(text: &str) -> String {
    if let Some(plain) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
        return plain.into();
    }
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| char::from((16 * pair[0] + pair[1]) as u8)).collect()
}

/// The words of an SVG, and a check that it is well-formed: elements end as they began.
fn words_of_svg(svg: &str) -> Vec<String> {
    let (mut open, mut words) = (Vec::new(), Vec::new());
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("every element ends");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "{svg}");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap().to_string());
            words.push(text.trim().to_string());
        }
    }
    assert!(open.is_empty(), "{open:?}");
    words.retain(|words| !words.is_empty());
    words
}

#[test]
fn every_kind_of_figure_of_a_comparison_is_there_and_names_the_schemes() {
    let table = comparison();
    let figures = super::table(&table);
    let names: Vec<&str> = figures.iter().map(Figure::name).collect();
    for name in [
        "scatter",
        "scatter-all",
        "bars.3g-slow",
        "cdf.3g-slow",
        "grid-utilization",
        "grid-delay",
        "series.cubic+pie.3g-slow",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert_eq!(names.len(), 1 + 1 + 5 + 5 + 2 + 30, "one for each trace, one for each row");
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "no two have a name");
    let schemes = summary::distinct(&table.runs, |run| &run.scheme);
    for figure in figures.iter().filter(|figure| !figure.name().starts_with("series.")) {
        for (kind, words) in [("svg", words_of_svg(&figure.svg())), ("pdf", words_of_pdf(&figure.pdf()))] {
            for scheme in &schemes {
                assert!(
                    words.iter().any(|word| word == scheme),
                    "{} {kind}: {scheme}: {words:?}",
                    figure.name()
                );
            }
        }
    }
    let series = figures.iter().find(|figure| figure.name() == "series.abc.3g-slow").unwrap();
    let words = words_of_pdf(&series.pdf());
    for word in ["throughput of abc", "capacity", "time (s)", "Mbit/s", "p95 delay (ms)"] {
        assert!(words.iter().any(|other| other == word), "{word}: {words:?}");
    }
}

#[test]
fn equal_results_have_equal_bytes_and_figures_are_as_wide_as_columns() {
    let bytes = || files(&super::table(&comparison())).collect::<Vec<File>>();
    let files = bytes();
    assert!(files == bytes());
    assert_eq!(files.last().unwrap().name, "figures.html");
    for figure in super::table(&comparison()) {
        let millimetres = figure.canvas.width * 25.4 / 72.0;
        assert!([84.0, 178.0].iter().any(|column| (millimetres - column).abs() < 1e-9), "{}", figure.name());
        assert!(figure.canvas.height < 240.0 / 25.4 * 72.0, "{}: {}", figure.name(), figure.canvas.height);
    }
}

#[test]
fn nothing_is_drawn_beyond_the_edges_of_a_figure() {
    fn ends(shape: &canvas::Shape) -> Vec<canvas::Point> {
        use canvas::{Anchor, Shape};
        match shape {
            Shape::Line(points, _) | Shape::Area { points, .. } => points.clone(),
            Shape::Circle { centre: (x, y), radius, .. } => {
                vec![(x - radius, y - radius), (x + radius, y + radius)]
            }
            Shape::Text { at: (x, y), words, size, anchor, vertical, .. } => {
                let wide = font::width(words, *size);
                let from = match anchor {
                    Anchor::Start => 0.0,
                    Anchor::Middle => -wide / 2.0,
                    Anchor::End => -wide,
                };
                match vertical {
                    true => vec![(x - size, y - from), (*x, y - from - wide)],
                    false => vec![(x + from, y - size), (x + from + wide, *y)],
                }
            }
            Shape::Within(from, to, _) => vec![*from, *to],
        }
    }
    for figure in super::table(&comparison()) {
        let canvas = &figure.canvas;
        for shape in &canvas.shapes {
            let within = |(x, y): &canvas::Point| {
                (-0.01..=canvas.width + 0.01).contains(x) && (-0.01..=canvas.height + 0.01).contains(y)
            };
            assert!(
                ends(shape).iter().all(within),
                "{}: {shape:?} of {} x {}",
                figure.name(),
                canvas.width,
                canvas.height
            );
        }
    }
}

#[test]
fn a_pdf_s_table_says_where_its_objects_are() {
    let figure = super::table(&comparison()).remove(0);
    let bytes = figure.pdf();
    // A character for each byte, so that places are those of the file.
    let text: String =
        bytes.iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { '?' }).collect();
    assert!(text.starts_with("%PDF-1.") && text.trim_end().ends_with("%%EOF"));
    let table: usize =
        text.rsplit("startxref").next().unwrap().split_whitespace().next().unwrap().parse().unwrap();
    assert!(text[table..].starts_with("xref"));
    let places: Vec<usize> = text[table..]
        .lines()
        .filter_map(|line| line.strip_suffix(" 00000 n").or(line.strip_suffix(" 00000 n ")))
        .map(|line| line.trim().parse().unwrap())
        .collect();
    assert_eq!(places.len(), 8);
    for (number, place) in (1..).zip(places) {
        assert!(text[place..].starts_with(&format!("{number} 0 obj")), "{number}");
    }
    assert!(text.contains("/FontFile2") && !text.contains("CreationDate"), "its font is in it, and no date");
}

#[test]
fn names_that_xml_or_pdf_would_trip_over_are_written_as_text() {
    let mut canvas = Canvas::new(100.0, 20.0);
    canvas.text((2.0, 10.0), "<a> & \"b\" (c) \\ µ", 8.0, canvas::Anchor::Start);
    let figure = Figure::new(&["x/../y z"], "caption </title>".into(), canvas);
    assert_eq!(figure.name(), "x-..-y-z");
    assert_eq!(words_of_svg(&figure.svg())[1], "&lt;a&gt; &amp; &quot;b&quot; (c) \\ µ");
    assert_eq!(words_of_pdf(&figure.pdf()), ["<a> & \"b\" (c) \\ \u{b5}"]);
}

#[test]
fn a_sweep_has_lines_for_every_axis_and_a_grid_for_every_pair() {
    let mut rows = Rows::default();
    for scheme in ["abc", "cubic"] {
        for (r, rtt) in ["20ms", "100ms", "200ms"].iter().enumerate() {
            for (b, buffer) in ["50pkt", "250pkt"].iter().enumerate() {
                for seed in ["1", "2", "3"] {
                    let axes = [
                        ("scheme", scheme),
                        ("rtt", rtt),
                        ("buffer", buffer),
                        ("duration", "10s"),
                        ("seed", seed),
                    ];
                    let axes = axes.map(|(name, value)| (name.to_string(), value.to_string()));
                    rows.add(&axes, &testing::run(scheme, "t", 5.0 + r as f64, 40.0 * (b + 1) as f64));
                }
            }
        }
    }
    let figures = grid(&rows);
    let names: Vec<&str> = figures.iter().map(Figure::name).collect();
    assert_eq!(
        names,
        ["scatter", "lines.rtt", "lines.buffer", "grid-utilization.rtt.buffer", "grid-delay.rtt.buffer"]
    );
    for figure in &figures {
        let words = words_of_svg(&figure.svg());
        assert!(["abc", "cubic"].iter().all(|scheme| words.iter().any(|word| word == scheme)), "{words:?}");
    }
    let shown = words_of_svg(&figures[4].svg());
    assert!(
        ["40.0", "80.0", "20ms", "250pkt"].iter().all(|word| shown.iter().any(|other| other == word)),
        "{shown:?}"
    );
}

#[test]
fn a_run_of_one_scenario_has_its_series_and_its_distribution() {
    let mut first = testing::outcomes(50).remove(0);
    first.run.scheme = "mine".into();
    let one = JobOutcome::of_runs(vec![first.run.clone()], first).unwrap();
    let table = Table::of(vec![one], &Drawn { links: 1, paths: vec![vec![0]] });
    let names: Vec<String> = super::table(&table).iter().map(|figure| figure.name().to_string()).collect();
    assert_eq!(names, ["scatter", "cdf.lte-driving", "series.mine.lte-driving"]);
}

/// `brakelight compare --figures DIR` draws it as `scatter-all.svg`.
#[test]
fn the_picture_in_the_readme_is_what_the_code_draws() {
    let drawn = scatter::overall(&compare::compare(&Compare::default()).unwrap()).unwrap().svg();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images/compare.svg");
    if std::env::var_os("BRAKELIGHT_BLESS").is_some() {
        std::fs::write(&path, &drawn).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == drawn,
        "docs/images/compare.svg is not what the code draws: BRAKELIGHT_BLESS=1 draws it again"
    );
}
