//! The pictures of `docs/validation/bmcc.md`, drawn from the analysis itself.

use std::ops::Range;

use brakelight_core::random::Random;
use brakelight_testkit::sources::hold_picture;
use plotters::prelude::*;

use super::super::picture::{Axes, draw, line};
use super::{Growth, Sharing, errors};

/// B-U6.
#[test]
fn the_error_of_the_estimate() {
    let all: Vec<_> = (2..=16).map(|power| errors(1 << power, 1)).collect();
    let over = |of: fn(&crate::analysis::adpm::Errors) -> f64| {
        all.iter().map(move |error| (f64::from(error.n), of(error))).collect::<Vec<_>>()
    };
    let lines = [
        line("ADPM", over(|error| error.adaptive)),
        line("1 / n", over(|error| 1.0 / f64::from(error.n))),
        line("random marking", over(|error| error.random)),
        line("three static bits", over(|error| error.fixed)),
    ];
    let axes = Axes {
        title: "What n packets tell of the load factor",
        x: (4.0..65536.0).log_scale(),
        x_label: "packets",
        y: (1e-5..1.0).log_scale(),
        y_label: "root mean square error",
        legend: SeriesLabelPosition::LowerLeft,
    };
    hold_picture("bmcc-estimate.svg", &draw(axes, &lines));
}

/// B-TH: figure 3's setting.
#[test]
fn rates_come_together_by_a_power_of_mu() {
    let model = Sharing::new(500.0, 2, 0.5, 1.2);
    let mut random = Random::stream(1, "figure");
    let backoffs = 0..=24;
    let drawn: Vec<_> =
        backoffs.clone().map(|i| (i as f64, model.imbalance(i, 20_000, &mut random))).collect();
    let power = |less: i32| {
        backoffs.clone().map(move |i| (i as f64, model.mu().powi(i as i32 - less))).collect::<Vec<_>>()
    };
    let lines = [
        line("drawn at random, 20,000 times", drawn),
        line("mu^i", power(0)),
        line("mu^(i-1), as printed", power(1)),
    ];
    let axes = Axes {
        title: "Theorem 1: two flows on 20 Mbit/s, what is left of their difference",
        x: 0.0..24.0,
        x_label: "back-offs i",
        y: (0.05..1.2).log_scale(),
        y_label: "share of the first difference",
        legend: SeriesLabelPosition::LowerLeft,
    };
    hold_picture("bmcc-convergence.svg", &draw(axes, &lines));
}

/// B-F4: 10,000 packets per slot, 550 flows.
#[test]
fn what_the_overload_mark_costs_and_tells() {
    let us: Range<u32> = 105..200;
    let of = |value: fn(&Sharing) -> f64| {
        us.clone()
            .map(|hundredths| f64::from(hundredths) / 100.0)
            .map(|u| (u, value(&Sharing::new(10_000.0, 550, 0.5, u))))
            .collect::<Vec<_>>()
    };
    let lines = [
        line("E[beta]: mean factor per back-off", of(Sharing::mu)),
        line("P: share of flows that hear of it", of(|model| model.detects(1.0 + model.excess()))),
    ];
    let axes = Axes {
        title: "Figure 4: what u decides, 550 flows",
        x: 1.05..2.0,
        x_label: "u, the load at which CE is set",
        y: 0.4..1.05,
        y_label: "probability or factor",
        legend: SeriesLabelPosition::LowerLeft,
    };
    hold_picture("bmcc-overload.svg", &draw(axes, &lines));
}

/// B-IVB, figure 5's setting.
#[test]
fn how_a_new_flow_grows() {
    let model = Growth { capacity: 250_000.0, rtt_s: 0.2 };
    let times = || (1..=70).map(|tenth| f64::from(tenth) * 0.1);
    let of = |value: &dyn Fn(f64) -> f64| times().map(|t| (t, value(t))).collect::<Vec<_>>();
    let lines = [
        line("window", of(&|t| model.window(t))),
        line("delivered: corrected", of(&|t| model.delivered(t))),
        line("delivered: integral", of(&|t| model.delivered_by_integral(t))),
        line("delivered: as printed", of(&|t| model.delivered_as_printed(t))),
    ];
    let axes = Axes {
        title: "One new flow on 2 Gbit/s, 200 ms: the model of section IV-B",
        x: 0.0..7.0,
        x_label: "seconds",
        y: (1.0..3e6).log_scale(),
        y_label: "packets",
        legend: SeriesLabelPosition::LowerRight,
    };
    hold_picture("bmcc-growth.svg", &draw(axes, &lines));
}
