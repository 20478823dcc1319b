//! The table of embedded traces in the book is what the code makes.

use std::path::Path;

use brakelight_traces::OPPORTUNITY;
use brakelight_traces::embedded::EMBEDDED;
use brakelight_traces::statistics::Statistics;

#[test]
fn the_book_shows_the_embedded_traces_as_they_are() {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/traces.md");
    let book = std::fs::read_to_string(book).expect("docs/traces.md is part of the project");
    let mut rows = String::new();
    for embedded in EMBEDDED.iter().filter(|embedded| embedded.default) {
        let s = Statistics::of(&embedded.trace(), OPPORTUNITY);
        rows += &format!(
            "| `{}` | {:.0} | {:.2} | {:.2}, {:.2}, {:.2} | {:.2} | {}, {} | {:.1}, {:.1} |\n",
            embedded.name,
            s.duration_s,
            s.mean_mbps,
            s.variation.cv_20ms,
            s.variation.cv_100ms,
            s.variation.cv_1s,
            s.autocorrelation_at(1_000).unwrap_or(0.0),
            s.outages.count,
            s.outages.longest_ms,
            s.doubles * 100.0,
            s.halves * 100.0,
        );
    }
    assert!(book.contains(&rows), "the table in docs/traces.md should be\n{rows}");
}
