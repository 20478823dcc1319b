//! The language says what it seems to say, refuses everything else with a message that helps, and never
//! panics.

use std::fmt::Write;

use brakelight_core::random::Random;
use brakelight_testkit::mutate::{fuzz_inputs, mutate};
use proptest::prelude::*;

use super::evaluate::short;
use super::{At, Expression, Function, Link, Node, Operator, Selector, Value};
use crate::experiment::table::{Dimension, Table};
use crate::outcome::{FlowOutcome, LinkOutcome, Run, Summary};

/// Three schemes on two traces, three seeds each; throughput, p95 delay and utilisation as given, the other
/// seeds off by a little so that only the median is as given.
fn table() -> Table {
    let dimension = |name: &str, labels: &[&str]| Dimension {
        name: name.to_string(),
        labels: labels.iter().map(|label| label.to_string()).collect(),
    };
    let dimensions = [
        dimension("scheme", &["abc", "cubic", "cubic+codel"]),
        dimension("trace", &["up", "down"]),
        dimension("eta", &["0.98"]),
    ];
    let cells = [
        ([0, 0, 0], 6.0, 90.0),
        ([0, 1, 0], 3.0, 110.0),
        ([1, 0, 0], 7.0, 900.0),
        ([1, 1, 0], 4.0, 1100.0),
        ([2, 0, 0], 4.0, 95.0),
        ([2, 1, 0], 2.0, 100.0),
    ];
    let mut table = Table::new(&dimensions);
    for (point, throughput, p95) in cells {
        for off in [-0.5, 0.0, 0.9] {
            let flow = FlowOutcome {
                name: "main-1".to_string(),
                throughput_mbps: throughput,
                ..FlowOutcome::default()
            };
            let run = Run {
                throughput_mbps: throughput + off,
                queueing_delay_ms: Some(Summary { p95: p95 + off, ..Summary::default() }),
                jain: (off > 0.0).then_some(0.9),
                flows: vec![flow],
                ..Run::default()
            };
            table.add(&point, &run);
        }
    }
    table
}

fn show(text: &str) -> String {
    let table = table();
    Expression::parse(text).unwrap().evaluate(&table).unwrap().show(&table)
}

fn holds(text: &str) -> bool {
    Expression::parse(text).unwrap().check(&table()).unwrap().holds()
}

#[test]
fn arithmetic_has_the_usual_precedence() {
    assert_eq!(show("1 + 2 * 3 - 4 / 2"), "5");
    assert_eq!(show("(1 + 2) * -3"), "-9");
    assert_eq!(show("10 - 4 - 3"), "3");
    assert_eq!(show("16 / 4 / 2"), "2");
    assert_eq!(show("50% + 1.5e1"), "15.5");
    assert_eq!(show("--2"), "2");
    assert_eq!(show("log10(1000) + abs(-1)"), "4");
}

#[test]
fn a_metric_is_the_median_over_seeds_at_every_point_left() {
    assert_eq!(show("throughput_mbps['abc', trace = 'up']"), "6");
    assert_eq!(show("throughput_mbps[\"cubic+codel\"]"), "up: 4, down: 2");
    assert_eq!(show("queueing_delay_ms.p95[trace = 'down']"), "abc: 110, cubic: 1100, cubic+codel: 100");
    assert_eq!(show("throughput_mbps['abc', eta = 0.98] * 2"), "up: 12, down: 6");
    assert_eq!(show("flows.main_1.throughput_mbps['cubic', trace = 'up']"), "7");
    assert_eq!(show("throughput_mbps[scheme != 'abc', trace = 'up']"), "cubic: 7, cubic+codel: 4");
    assert_eq!(show("max(throughput_mbps[scheme != 'abc', scheme != 'cubic'], scheme)"), "up: 4, down: 2");
}

#[test]
fn arithmetic_goes_point_by_point_and_reductions_over_what_they_are_told() {
    assert_eq!(show("throughput_mbps['abc'] / throughput_mbps['cubic+codel']"), "up: 1.5, down: 1.5");
    assert_eq!(show("mean(throughput_mbps['abc']) / mean(throughput_mbps['cubic'])"), "0.8182");
    assert_eq!(show("mean(throughput_mbps, trace)"), "abc: 4.5, cubic: 5.5, cubic+codel: 3");
    // The roots of 6 * 3, 7 * 4 and 4 * 2.
    assert_eq!(show("geomean(throughput_mbps, trace)"), "abc: 4.243, cubic: 5.292, cubic+codel: 2.828");
    assert_eq!(show("max(throughput_mbps, scheme)"), "up: 7, down: 4");
    assert_eq!(show("count(throughput_mbps) + sum(throughput_mbps['abc'])"), "15");
    assert_eq!(show("median(throughput_mbps)"), "4");
    assert_eq!(
        show("throughput_mbps['abc'] - throughput_mbps[trace = 'up', scheme = 'abc']"),
        "up: 0, down: -3"
    );
}

/// One scheme at two settings, of which the second has one flow more; two links.
fn table_of_lists() -> Table {
    let delta = Dimension { name: "delta".to_string(), labels: vec!["1".to_string(), "5.5".to_string()] };
    let mut table = Table::new(&[delta]);
    for (point, rates) in [(0, &[2.0, 2.0, 9.0][..]), (1, &[3.0, 1.0, 9.0, 2.0])] {
        let names = ["long-1", "long-2", "cross", "long-10"];
        let flow = |(name, rate): (&&str, &f64)| FlowOutcome {
            name: name.to_string(),
            throughput_mbps: *rate,
            ..FlowOutcome::default()
        };
        let link = |name: &str, utilization| LinkOutcome {
            name: name.to_string(),
            utilization,
            ..LinkOutcome::default()
        };
        let run = Run {
            flows: names.iter().zip(rates).map(flow).collect(),
            links: vec![link("up", 0.9), link("down", 0.5)],
            ..Run::default()
        };
        table.add(&[point], &run);
    }
    table
}

#[test]
fn a_star_spreads_a_metric_over_the_elements_of_a_list() {
    let table = table_of_lists();
    let show = |text: &str| Expression::parse(text).unwrap().evaluate(&table).unwrap().show(&table);
    assert_eq!(show("links.*.utilization[delta = 1]"), "up: 0.9, down: 0.5");
    assert_eq!(show("min(links.*.utilization, links)"), "delta 1: 0.5, delta 5.5: 0.5");
    assert_eq!(show("mean(flows.long_*.throughput_mbps, flows)"), "delta 1: 2, delta 5.5: 2");
    assert_eq!(show("count(flows.*.throughput_mbps, flows)"), "delta 1: 3, delta 5.5: 4");
    assert_eq!(show("3*links.up.utilization[delta = 1]"), "2.7");
    let points = Expression::parse("links.*.utilization > 0.8").unwrap().check(&table).unwrap();
    assert_eq!(points.failures(&table), ["delta 1 down", "delta 5.5 down"]);
    for wrong in ["lanes.*.utilization > 0", "links.*.colour > 0", "links.side_*.utilization > 0"] {
        Expression::parse(wrong).unwrap().check(&table).unwrap_err();
    }
}

#[test]
fn jain_reduces_like_a_mean() {
    let table = table_of_lists();
    let show = |text: &str| Expression::parse(text).unwrap().evaluate(&table).unwrap().show(&table);
    // (3 + 1 + 2)^2 / (3 (9 + 1 + 4)) = 36 / 42
    assert_eq!(show("jain(flows.long_*.throughput_mbps, flows)"), "delta 1: 1, delta 5.5: 0.8571");
}

#[test]
fn the_value_of_a_dimension_is_the_number_that_its_labels_are() {
    let table = table_of_lists();
    let show = |text: &str| Expression::parse(text).unwrap().evaluate(&table).unwrap().show(&table);
    assert_eq!(show("links.up.utilization / value(delta)"), "delta 1: 0.9, delta 5.5: 0.1636");
    let error = Expression::parse("value(trace) > 1").unwrap().check(&self::table()).unwrap_err();
    assert_eq!(error.to_string(), "at character 1: expected a dimension of numbers, found one of words");
}

#[test]
fn a_check_holds_when_it_does_at_every_point() {
    assert!(holds("throughput_mbps['cubic'] > throughput_mbps['abc']"));
    assert!(!holds("throughput_mbps['abc'] > 3"));
    assert!(holds("throughput_mbps['abc'] >= 3"));
    assert!(holds("2 < throughput_mbps['abc'] <= 6 < 7"));
    assert!(!holds("2 < throughput_mbps['abc'] <= 6 < 5"));
    let table = table();
    let points = Expression::parse("throughput_mbps > 3").unwrap().check(&table).unwrap();
    assert_eq!(points.failures(&table), ["abc down", "cubic+codel down"]);
}

#[test]
fn ranges_include_their_ends() {
    assert!(holds("1.5 in 1.5 .. 2"));
    assert!(holds("2 in 1.5..2"));
    assert!(!holds("2.01 in 1.5 .. 2"));
    assert!(holds("11 in 10 +- 1"));
    assert!(!holds("11.1 in 10 +- 1"));
    assert!(holds("11.5 in 10 +- 15%"));
    assert!(!holds("11.6 in 10 +- 15%"));
    assert!(holds("-11.5 in -10 +- 15 %"));
    assert!(holds("11.5 ~ 10 and not (11.6 ~ 10)"));
}

#[test]
fn and_binds_tighter_than_or_and_not_tighter_than_both() {
    assert!(holds("1 < 2 or 1 < 2 and 2 < 1"));
    assert!(holds("not 2 < 1 and 1 < 2"));
    assert!(!holds("not (1 < 2 or 2 < 1)"));
    assert!(holds("not not 1 < 2"));
}

#[test]
fn order_along_a_dimension_is_strict_and_as_in_the_file() {
    assert!(holds("decreasing(throughput_mbps['abc'], trace)"));
    assert!(!holds("increasing(throughput_mbps, scheme)"));
    assert!(!holds("increasing(throughput_mbps - throughput_mbps, trace)"));
    let table = table();
    let points =
        Expression::parse("increasing(queueing_delay_ms.p95, trace)").unwrap().check(&table).unwrap();
    assert!(points.holds());
}

#[test]
fn pareto_means_that_no_other_scheme_is_better_in_both_by_the_margin() {
    assert!(holds("pareto('abc')"));
    assert!(holds("pareto('cubic')"));
    let table = table();
    let points = Expression::parse("pareto('cubic+codel')").unwrap().check(&table).unwrap();
    // On `up` ABC has 50 % more throughput and 5 % less delay; on `down` its delay is higher.
    assert_eq!(points.failures(&table), ["up"]);
}

#[test]
fn a_value_that_is_not_there_is_an_error_and_not_a_pass() {
    let error = Expression::parse("jain > 0 or 1 < 2").unwrap().check(&table()).unwrap_err();
    assert_eq!(error.to_string(), "at character 1: no value of `jain` at abc up eta 0.98");
}

#[test]
fn shows_four_significant_digits() {
    let shown =
        [0.0, 1.0, 0.123_456, 12.345_6, 1_234.56, 123_456.7, -0.000_123_456, f64::INFINITY].map(short);
    assert_eq!(shown, ["0", "1", "0.1235", "12.35", "1235", "123457", "-0.0001235", "inf"]);
}

#[test]
fn refuses_bad_expressions_in_the_users_words() {
    let mut shown = String::new();
    let nested = "(".repeat(100);
    let long = "1+".repeat(600);
    let texts = [
        "",
        "1 +",
        "1 2",
        "(1",
        "1)",
        "a[",
        "throughput_mbps['abc'",
        "throughput_mbps['abc]",
        "throughput_mbps[trace]",
        "1e999",
        "1 in 2",
        "1 in 2 +- ",
        "1 $ 2",
        "mead(1)",
        "mean()",
        "mean(1, 2, 3, 4, 5)",
        "increasing(1)",
        nested.as_str(),
        long.as_str(),
        "1",
        "throughput_mbps",
        "-(1 < 2) > 0",
        "(1 < 2) + 1 > 0",
        "not 1",
        "\"abc\" > 1",
        "throughput > 1",
        "throughput_mbps['vegas'] > 1",
        "throughput_mbps[place = 'here'] > 1",
        "mean(throughput_mbps, 3) > 1",
        "mean(throughput_mbps, place) > 1",
        "increasing(throughput_mbps, eta)",
        "increasing(1, trace)",
        "pareto(1)",
        "pareto('vegas')",
        "increasing(throughput_mbps, trace) > 1",
        "flows.*.colour > 1",
        "throughput_mbps[flows = 'main_1'] > 1",
        "value(1)",
    ];
    let table = table();
    for text in texts {
        let error = match Expression::parse(text) {
            Ok(expression) => expression.check(&table).map(|_| ()).expect_err(text),
            Err(error) => error,
        };
        let text = if text.len() > 60 { &text[..20] } else { text };
        writeln!(shown, "{text}\n    {error}").unwrap();
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn never_panics_and_what_it_accepts_reads_back() {
    let mut random = Random::stream(4, "expressions");
    let corpus = [
        "mean(throughput_mbps[\"abc\"]) / mean(throughput_mbps[\"cubic+codel\"]) in 1.5 +- 15%",
        "increasing(queueing_delay_ms.p95['abc', eta = 0.98], trace) and not 1 < 2 <= 3 or pareto('abc')",
        "max(flows.main_1.throughput_mbps - 3 * -2e3, scheme) ~ (4 + 5%) / 2 and 1 in 0 .. 1",
        "jain(flows.*.throughput_mbps, flows) >= value(eta) or min(flows.ma*.throughput_mbps) > 0",
    ];
    let corpus = corpus.map(String::from);
    let table = table();
    let mut evaluated = 0;
    for _ in 0..fuzz_inputs() {
        let text = mutate(&corpus, &mut random);
        if let Ok(expression) = Expression::parse(&text) {
            if let Ok(again) = Expression::parse(&expression.to_string()) {
                assert_eq!(again.root, expression.root, "{text}");
            } else {
                // Only the parentheses that the display adds may make it too long or too deep to read again.
                let shown = expression.to_string();
                assert!(shown.len() > 1_000 || text.matches('(').count() > 10, "{text}\n{shown}");
            }
            evaluated += u64::from(matches!(expression.evaluate(&table), Ok(Value::Truth(_))));
        }
    }
    assert!(evaluated > fuzz_inputs() / 50, "{evaluated} evaluated");
}

fn node() -> impl Strategy<Value = Node> {
    let metric = ("[a-z][a-z0-9_]{0,5}(\\.[a-z0-9_]{1,5})?", prop::collection::vec("[a-z +0-9.]{1,6}", 0..3));
    let metric = metric
        .prop_filter("not a keyword", |(name, _)| !["and", "or", "not", "in"].contains(&name.as_str()))
        .prop_map(|(name, labels)| {
            let selector = |label: String| {
                let except = label.len().is_multiple_of(2);
                Selector { at: At(0), dimension: "scheme".to_string(), label, except }
            };
            Node::Metric(At(0), name, labels.into_iter().map(selector).collect())
        });
    let leaf = prop_oneof![(0.0..1e9).prop_map(Node::Number), metric];
    let number =
        leaf.prop_recursive(4, 24, 3, |inner| {
            let operator =
                prop::sample::select(vec![Operator::Plus, Operator::Minus, Operator::Times, Operator::Over]);
            prop_oneof![
                inner.clone().prop_map(|node| Node::Negative(Box::new(node))),
                (inner.clone(), operator, inner.clone()).prop_map(
                    |(left, operator, right)| Node::Arithmetic(Box::new(left), operator, Box::new(right))
                ),
                inner.prop_map(|node| Node::Call(At(0), Function::Mean, vec![node])),
            ]
        });
    let link = (0..7, number.clone(), number.clone()).prop_map(|(kind, one, two)| match kind {
        0 => Link::Less(one),
        1 => Link::AtMost(one),
        2 => Link::More(one),
        3 => Link::AtLeast(one),
        4 => Link::About(one),
        5 => Link::Between(one, two),
        _ => Link::Around(one, two, true),
    });
    let comparison = (number, prop::collection::vec(link, 1..3))
        .prop_map(|(first, links)| Node::Comparison(At(0), Box::new(first), links));
    comparison.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|node| Node::Not(Box::new(node))),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Node::And),
            prop::collection::vec(inner, 2..4).prop_map(Node::Or),
        ]
    })
}

proptest! {
    #[test]
    fn every_tree_reads_back_from_its_display(node in node()) {
        let shown = node.to_string();
        prop_assume!(shown.len() <= 1_000);
        let again = Expression::parse(&shown).map_err(|error| TestCaseError::fail(format!("{shown}: {error}")))?;
        prop_assert_eq!(again.root, node, "{}", shown);
    }
}

/// Seeds 1 to 3 off by -0.5, 0 and 0.9: their mean is 0.4 / 3 above the median.
#[test]
fn reduces_over_the_runs_of_each_point_where_seeds_are_named() {
    assert_eq!(show("mean(throughput_mbps['abc'], seeds)"), "up: 6.133, down: 3.133");
    assert_eq!(show("max(throughput_mbps['abc'], trace, seeds)"), "6.9");
    assert_eq!(show("count(throughput_mbps, trace, scheme, seeds)"), "18");
    // Squares 0.4011, 0.01778 and 0.5878 of what each is off the mean; their mean is 0.3356.
    assert_eq!(show("deviation(throughput_mbps['abc', trace = 'up'], seeds)"), "0.5793");
    assert_eq!(show("deviation(throughput_mbps['abc'], trace)"), "1.5");
    // What is reduced inside is each run's own.
    assert_eq!(show("mean(max(throughput_mbps['abc'], trace), seeds)"), "6.133");
    assert!(holds("mean(throughput_mbps, seeds) - median(throughput_mbps, seeds) in 0.13 .. 0.14"));
}
