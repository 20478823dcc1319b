//! The report in a real browser, at a desktop's and a phone's width: it draws, complains about nothing, stays
//! within the screen, zooms, hides and shows, and axe-core finds it accessible. The folder that
//! `BRAKELIGHT_PICTURES` names gets pictures to look at.

mod support;

use std::path::Path;

use serde_json::json;
use support::browser::{self, Browser};
use support::{Scratch, ok};

/// Starts a browser, or prints why none can be started.
fn browser() -> Option<Browser> {
    let program = browser::find();
    if program.is_none() {
        brakelight_testkit::skip("a browser", "there is no Chromium; scripts/setup test installs it");
    }
    Some(Browser::start(&program?, Path::new(env!("CARGO_TARGET_TMPDIR"))))
}

/// Leaves a picture of the page if someone wants to look at it.
fn picture(browser: &mut Browser, name: &str) {
    if let Some(folder) = std::env::var_os("BRAKELIGHT_PICTURES") {
        browser.picture(&Path::new(&folder).join(format!("{name}.png")));
    }
}

/// How many elements match.
fn count(browser: &mut Browser, selector: &str) -> u64 {
    browser.value(&format!("document.querySelectorAll({selector:?}).length")).as_u64().unwrap()
}

/// Fails if the page is wider than the screen.
fn fits(browser: &mut Browser, name: &str) {
    let within = "document.documentElement.scrollWidth <= document.documentElement.clientWidth";
    assert_eq!(browser.value(within), json!(true), "{name}: the page is wider than the screen");
}

/// Fails if axe-core finds anything serious or critical in the page.
fn is_accessible(browser: &mut Browser, name: &str) {
    let Some(axe) = axe() else { return };
    browser.value(&axe);
    let serious =
        "axe.run().then(found => found.violations.filter(rule => ['serious', 'critical'].includes(rule.impact))
        .map(rule => `${rule.id}: ${rule.nodes.map(node => node.html.slice(0, 200)).join(' ')}`))";
    assert_eq!(browser.value(serious), json!([]), "{name}");
}

/// The accessibility checker that the explorer's tests use.
fn axe() -> Option<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/node_modules/axe-core/axe.min.js");
    let text = std::fs::read_to_string(&file).ok();
    if text.is_none() {
        brakelight_testkit::skip("axe-core", "web/node_modules is not there; scripts/explorer installs it");
    }
    text
}

/// From where to where the time axis goes.
fn range(browser: &mut Browser) -> (f64, f64) {
    let range = browser.value("document.getElementById('series').layout.xaxis.range.map(Number)");
    (range[0].as_f64().unwrap(), range[1].as_f64().unwrap())
}

/// The middle of an element, after scrolling it into view, and its width and height.
fn place(browser: &mut Browser, selector: &str) -> (f64, f64, f64, f64) {
    let script = format!(
        "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{ block: 'center' }});
           const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2, r.width, r.height]; }})()"
    );
    let found = browser.value(&script);
    let number = |index: usize| found[index].as_f64().unwrap();
    (number(0), number(1), number(2), number(3))
}

#[test]
fn a_comparison_draws_at_both_widths_without_a_complaint() {
    let Some(mut browser) = browser() else { return };
    let scratch = Scratch::new("browser-compare");
    let arguments = [
        "compare",
        "--trace",
        "lte-driving",
        "--trace",
        "step",
        "--trace",
        "fixed",
        "--duration",
        "20s",
        "--runs",
        "6",
    ];
    ok(&scratch.brakelight(
        &[&arguments[..], &["--schemes", "abc,cubic,cubic+codel,newreno", "--out", "report"]].concat(),
    ));
    for (name, width, height, phone, theme) in [
        ("desktop", 1400, 900, false, "light"),
        ("phone", 390, 844, true, "light"),
        ("dark", 1400, 900, false, "dark"),
    ] {
        browser.prefer(theme);
        browser.open(&scratch.path("report/report.html"), width, height, phone);
        assert_eq!(count(&mut browser, "#schemes .chip"), 4);
        assert_eq!(count(&mut browser, "#answer tbody tr"), 4);
        // Newreno, Cubic over CoDel and ABC: a row for what may be changed.
        assert_eq!(count(&mut browser, "#decision tbody tr"), 3, "{name}");
        let first = "document.querySelector('main section:not([hidden]) h2').textContent";
        assert_eq!(browser.value(first), json!("What to deploy"), "{name}");
        assert_eq!(count(&mut browser, "#table tbody tr"), 12);
        // Four named points; the frontier is a line without points.
        assert_eq!(count(&mut browser, "#scatter .scatterlayer .textpoint"), 4, "{name}");
        assert_eq!(count(&mut browser, "#bars .barlayer .point"), 2 * 4 * 3, "{name}");
        // For each scheme capacity, throughput and delay.
        assert_eq!(count(&mut browser, "#series .scatterlayer .trace"), 4 * 3, "{name}");
        let lines =
            "[...document.querySelectorAll('#series .js-line')].map(line => line.getAttribute('d').length)";
        let lengths = browser.value(lines);
        let drawn =
            lengths.as_array().unwrap().iter().filter(|length| length.as_u64().unwrap() > 500).count();
        assert!(drawn >= 4 * 2, "{name}: throughput and delay of four schemes, drawn are {lengths}");
        assert_eq!(count(&mut browser, "#series .js-fill"), 4, "{name}: capacity behind each throughput");
        fits(&mut browser, name);
        let charts = "[...document.querySelectorAll('.chart .main-svg')].every(svg => svg.getBoundingClientRect().right <= innerWidth)";
        assert_eq!(browser.value(charts), json!(true), "{name}: a chart is wider than the screen");
        picture(&mut browser, &format!("report-{name}"));
        is_accessible(&mut browser, name);
        assert_eq!(browser.complaints, [] as [String; 0], "{name}");
    }
}

#[test]
fn every_scheme_fits_a_screen_a_phone_and_three_pages() {
    let Some(mut browser) = browser() else { return };
    let scratch = Scratch::new("browser-every");
    let arguments = [
        "compare",
        "--trace",
        "lte-driving",
        "--trace",
        "step",
        "--schemes",
        "all",
        "--runs",
        "2",
        "--duration",
        "6s",
        "--out",
        "report",
    ];
    ok(&scratch.brakelight(&arguments));
    let report = scratch.path("report/report.html");
    let size = std::fs::metadata(&report).unwrap().len();
    assert!(size < 3_000_000, "{size} bytes");
    for (name, width, height, phone) in [("desktop", 1400, 900, false), ("phone", 390, 844, true)] {
        browser.prefer("light");
        browser.open(&report, width, height, phone);
        let schemes = count(&mut browser, "#schemes .chip");
        assert!(schemes >= 26, "{schemes}");
        // Two numbers a trace stand in a table, where bars would be a cloud.
        assert_eq!(count(&mut browser, "#matrix tbody tr"), schemes, "{name}");
        assert_eq!(count(&mut browser, "#matrix tbody tr:first-child td"), 4, "{name}");
        // Six schemes over time until more are asked for.
        assert_eq!(count(&mut browser, "#series .scatterlayer .trace"), 6 * 3, "{name}");
        browser.value("document.getElementById('series-more').click()");
        assert_eq!(count(&mut browser, "#series .scatterlayer .trace"), schemes * 3, "{name}");
        // What is hidden is hidden in tables too.
        browser.value("document.getElementById('pareto-schemes').click()");
        let shown = count(&mut browser, "#schemes .chip[aria-pressed=true]");
        assert!(shown >= 1 && shown < schemes, "{name}: {shown}");
        for table in ["answer", "matrix"] {
            assert_eq!(count(&mut browser, &format!("#{table} tbody tr")), shown, "{name}: {table}");
        }
        assert_eq!(count(&mut browser, "#table tbody tr"), 2 * shown, "{name}");
        browser.value("document.getElementById('all-schemes').click()");
        assert_eq!(count(&mut browser, "#answer tbody tr"), schemes, "{name}");
        fits(&mut browser, name);
        picture(&mut browser, &format!("report-every-{name}"));
        is_accessible(&mut browser, name);
    }
    let pages = browser.print(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("report-every.pdf"));
    assert!(pages <= 3, "{pages} pages");
    assert_eq!(browser.complaints, [] as [String; 0]);
}

#[test]
fn time_zooms_by_dragging_and_by_buttons_for_every_scheme_at_once() {
    let Some(mut browser) = browser() else { return };
    let scratch = Scratch::new("browser-zoom");
    let arguments = [
        "compare",
        "--trace",
        "step",
        "--duration",
        "20s",
        "--schemes",
        "abc,cubic",
        "--setup",
        "mahimahi",
        "--out",
        "report",
    ];
    ok(&scratch.brakelight(&arguments));
    browser.open(&scratch.path("report/report.html"), 1400, 900, false);
    assert_eq!(range(&mut browser), (0.0, 20.0));
    let (x, y, width, _) = place(&mut browser, "#series .nsewdrag[data-subplot=xy]");
    browser.drag((x - width / 4.0, y), (x + width / 4.0, y));
    browser.until("Number(document.getElementById('series').layout.xaxis.range[0]) > 4");
    let (from, to) = range(&mut browser);
    assert!(
        (from - 5.0).abs() < 0.3 && (to - 15.0).abs() < 0.3,
        "a drag over the middle half showed {from} to {to}"
    );
    // All charts share the axis, so that what happened at once stands above each other.
    assert_eq!(
        browser.value(
            "Object.keys(document.getElementById('series').layout).filter(k => /^xaxis/.test(k)).length"
        ),
        json!(1)
    );
    // A zoom outlives a change of what is shown.
    browser.value("document.querySelector('#schemes .chip').click()");
    assert_eq!(range(&mut browser), (from, to));
    assert_eq!(count(&mut browser, "#series .scatterlayer .trace"), 3, "one scheme of two is hidden");
    browser.value("document.querySelector('#schemes .chip').click()");
    browser.value("document.getElementById('whole').click()");
    browser.until("Number(document.getElementById('series').layout.xaxis.range[0]) === 0");
    assert_eq!(range(&mut browser), (0.0, 20.0));

    browser.open(&scratch.path("report/report.html"), 390, 844, true);
    browser.value("document.getElementById('in').click()");
    assert_eq!(range(&mut browser), (5.0, 15.0));
    browser.value("document.getElementById('later').click()");
    assert_eq!(range(&mut browser), (10.0, 20.0));
    browser.value("document.getElementById('out').click()");
    assert_eq!(range(&mut browser), (0.0, 20.0));
    assert_eq!(browser.complaints, [] as [String; 0]);
}

#[test]
fn choices_redraw_and_everything_may_be_hidden() {
    let Some(mut browser) = browser() else { return };
    let scratch = Scratch::new("browser-choices");
    let arguments = [
        "compare",
        "--trace",
        "step",
        "--trace",
        "fixed",
        "--duration",
        "10s",
        "--schemes",
        "abc,cubic",
        "--setup",
        "mahimahi",
    ];
    ok(&scratch.brakelight(&[&arguments[..], &["--out", "report"]].concat()));
    browser.open(&scratch.path("report/report.html"), 1400, 900, false);
    let choose = |browser: &mut Browser, id: &str, index: usize| {
        browser.value(&format!(
            "(() => {{ const s = document.getElementById('{id}'); s.selectedIndex = {index}; s.dispatchEvent(new Event('change')); }})()"
        ));
    };
    let title = "document.getElementById('series').layout.annotations[0].text";
    let before = browser.value(title);
    choose(&mut browser, "series-trace", 1);
    assert_ne!(browser.value(title), before, "another trace has other numbers");
    for (id, options) in [("series-lower", 4), ("scatter-trace", 4), ("scatter-delay", 3)] {
        let there =
            browser.value(&format!("document.getElementById('{id}').options.length")).as_u64().unwrap();
        assert!(there >= options, "{id} offers {there}");
        for index in 0..there {
            choose(&mut browser, id, index as usize);
        }
    }
    choose(&mut browser, "series-lower", 0);
    for _ in 0..2 {
        browser.value("document.querySelectorAll('#schemes .chip').forEach((_, i) => document.querySelectorAll('#schemes .chip')[i].click())");
        let shown = count(&mut browser, "#series .scatterlayer .trace");
        let pressed = count(&mut browser, "#schemes .chip[aria-pressed=true]");
        assert_eq!(shown, pressed * 3);
    }
    browser.value("document.querySelector('#table th button').click()");
    assert_eq!(browser.value("document.querySelector('#table th[aria-sort]').textContent"), json!("scheme"));
    assert_eq!(browser.complaints, [] as [String; 0]);
}

#[test]
fn a_scenario_with_several_links_and_flows_draws_them_all() {
    let Some(mut browser) = browser() else { return };
    let scratch = Scratch::new("browser-run");
    scratch.write("two.toml", support::TWO_FLOWS);
    ok(&scratch.brakelight(&["run", "two.toml", "--out", "report"]));
    browser.open(&scratch.path("report/report.html"), 390, 844, true);
    // Two links, each with its capacity, the throughput of the two flows that pass it, and its delay.
    assert_eq!(count(&mut browser, "#series .scatterlayer .trace"), 4 + 4);
    assert_eq!(browser.value("document.getElementById('scatter-section').hidden"), json!(true));
    assert_eq!(browser.complaints, [] as [String; 0]);
    picture(&mut browser, "report-run");
}

#[test]
fn the_stability_map_draws_and_shows_a_point_over_time_when_pressed() {
    let Some(mut browser) = browser() else { return };
    let scratch = Scratch::new("browser-stability");
    let arguments =
        ["stability", "--flows", "4,32", "--ratios", "0.4,0.7,1.33", "--duration", "10s", "--out", "map"];
    ok(&scratch.brakelight(&arguments));
    for (name, width, height, phone) in [("desktop", 1400, 900, false), ("phone", 390, 844, true)] {
        browser.open(&scratch.path("map/stability.html"), width, height, phone);
        assert_eq!(count(&mut browser, "#map .scatterlayer .point"), 2 * 6, "{name}");
        assert_eq!(count(&mut browser, "#series .scatterlayer .js-line"), 2, "{name}");
        assert_eq!(count(&mut browser, "#table tr"), 1 + 6, "{name}");
        fits(&mut browser, name);
        picture(&mut browser, &format!("stability-{name}"));
        // A choice shows another point.
        let facts = "document.getElementById('facts').textContent";
        let before = browser.value(facts);
        browser.value("(() => { const s = document.getElementById('flows'); s.selectedIndex = 0; s.dispatchEvent(new Event('change')); })()");
        assert_ne!(browser.value(facts), before, "{name}");
        assert_eq!(browser.complaints, [] as [String; 0], "{name}");
    }
}
