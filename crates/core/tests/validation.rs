//! The validation pages say what the code does.

mod support;

use support::page::{check, measured, parameters};

fn page(controller: &str) {
    check(controller, "parameters", &parameters(controller));
    check(controller, "measured", &measured(controller));
}

#[test]
fn bbr() {
    page("bbr");
}

#[test]
fn bbr2() {
    page("bbr2");
}

#[test]
fn bbr3() {
    page("bbr3");
}

#[test]
fn vivace() {
    page("vivace");
}
