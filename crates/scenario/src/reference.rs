//! Real measurements, and how close a model of them must lie: kernel TCP and the ABC authors' router, each
//! run for 60 s through Mahimahi, one run at a time on an idle machine; one flow, RTT 100 ms, a 250-packet
//! buffer, 12 Mbit/s back. The tolerances come from how far real runs lie from each other, and were written
//! down before the first comparison.
//!
//! The rule is one: the median of ten simulated seeds must lie within the tolerance of the range of the real
//! runs.

use crate::scheme::Scheme;

/// Relative tolerances on throughput and on the 95th percentile of the queueing delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// On throughput.
    pub throughput: f64,
    /// On the 95th percentile of the queueing delay.
    pub p95: f64,
}

/// A scheme as really run, the scheme that models it, and how close the model must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// What was run.
    pub real: &'static str,
    /// What models it, in the words of `compare`.
    pub scheme: &'static str,
    /// How close it must be.
    pub tolerance: Tolerance,
}

/// The one table of tolerances.
pub const MODELS: &[Model] = &[
    Model {
        real: "abc",
        scheme: "abc:variant=prototype",
        tolerance: Tolerance { throughput: 0.05, p95: 0.20 },
    },
    Model { real: "bbr", scheme: "bbr", tolerance: Tolerance { throughput: 0.05, p95: 0.25 } },
    // Linux 6.12 tcp_cubic.c: W_est never catches up, and the curve is read one smallest RTT ahead.
    Model {
        real: "cubic",
        scheme: "cubic:reno_catch_up=false,horizon=min_rtt",
        tolerance: Tolerance { throughput: 0.03, p95: 0.35 },
    },
    Model {
        real: "cubic+codel",
        scheme: "cubic+codel:reno_catch_up=false,horizon=min_rtt,target=50ms,interval=100ms,drop=behind-head",
        tolerance: Tolerance { throughput: 0.08, p95: 0.30 },
    },
    Model {
        real: "cubic+pie",
        scheme: "cubic+pie:reno_catch_up=false,horizon=min_rtt,variant=mahimahi,target=50ms,max_burst=100ms",
        tolerance: Tolerance { throughput: 0.07, p95: 0.25 },
    },
];

/// Lowest and highest of the real runs of one scheme on one recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Real {
    /// The recording.
    pub trace: &'static str,
    /// The scheme, as in [`Model::real`].
    pub scheme: &'static str,
    /// Throughput, Mbit/s.
    pub throughput_mbps: [f64; 2],
    /// 95th percentile of the queueing delay, ms.
    pub p95_ms: [f64; 2],
}

const fn real(
    trace: &'static str,
    scheme: &'static str,
    throughput_mbps: [f64; 2],
    p95_ms: [f64; 2],
) -> Real {
    Real { trace, scheme, throughput_mbps, p95_ms }
}

/// What was measured.
pub const REAL: &[Real] = &[
    real("Verizon-LTE-short.down", "abc", [4.091, 4.091], [114.0, 114.0]),
    real("Verizon-LTE-short.down", "cubic+codel", [3.230, 3.409], [148.0, 219.0]),
    real("Verizon-LTE-short.down", "cubic", [4.581, 4.583], [1110.0, 1399.0]),
    real("Verizon-LTE-short.up", "abc", [5.234, 5.234], [86.0, 86.0]),
    real("Verizon-LTE-short.up", "cubic+codel", [3.434, 3.434], [124.0, 124.0]),
    real("Verizon-LTE-short.up", "cubic", [5.589, 5.589], [933.0, 933.0]),
    real("ATT-LTE-driving-2016.down", "abc", [3.599, 3.599], [117.0, 117.0]),
    real("ATT-LTE-driving-2016.down", "cubic+codel", [2.981, 3.105], [164.0, 201.0]),
    real("ATT-LTE-driving-2016.down", "cubic", [3.948, 3.948], [1449.0, 1449.0]),
    real("ATT-LTE-driving-2016.up", "abc", [1.413, 1.413], [327.0, 327.0]),
    real("ATT-LTE-driving-2016.up", "cubic+codel", [1.029, 1.029], [208.0, 208.0]),
    real("ATT-LTE-driving-2016.up", "cubic", [1.688, 1.688], [2573.0, 2573.0]),
    real("TMobile-LTE-short.down", "abc", [11.984, 11.984], [146.0, 146.0]),
    real("TMobile-LTE-short.down", "cubic+codel", [6.602, 6.602], [118.0, 118.0]),
    real("TMobile-LTE-short.down", "cubic", [13.235, 13.235], [354.0, 354.0]),
    real("TMobile-LTE-short.up", "abc", [5.737, 5.737], [101.0, 101.0]),
    real("TMobile-LTE-short.up", "cubic+codel", [4.466, 4.466], [65.0, 65.0]),
    real("TMobile-LTE-short.up", "cubic", [6.356, 6.356], [806.0, 806.0]),
    real("Verizon-LTE-short.down", "bbr", [4.421, 4.421], [704.0, 704.0]),
    real("Verizon-LTE-short.up", "bbr", [5.314, 5.314], [793.0, 793.0]),
    real("ATT-LTE-driving-2016.down", "bbr", [3.848, 3.848], [1280.0, 1280.0]),
    real("ATT-LTE-driving-2016.up", "bbr", [1.726, 1.726], [2270.0, 2270.0]),
    real("TMobile-LTE-short.down", "bbr", [12.943, 12.943], [403.0, 403.0]),
    real("TMobile-LTE-short.up", "bbr", [6.099, 6.099], [537.0, 537.0]),
    real("Verizon-LTE-short.down", "cubic+pie", [2.993, 3.035], [66.0, 69.0]),
    real("ATT-LTE-driving-2016.down", "cubic+pie", [2.791, 2.791], [87.0, 87.0]),
];

impl Model {
    /// Returns the model of what was run under this name.
    pub fn of(real: &str) -> Option<&'static Model> {
        MODELS.iter().find(|model| model.real == real)
    }

    /// Returns the tolerance of a flow of this controller at this queue, by their registered names; none
    /// where no such pair was measured.
    pub fn tolerance(controller: &str, queue: &str) -> Option<Tolerance> {
        let model = MODELS.iter().find(|model| {
            Scheme::parse(model.scheme).is_ok_and(|scheme| {
                (scheme.controller().name(), scheme.queue().name()) == (controller, queue)
            })
        })?;
        Some(model.tolerance)
    }
}

impl Real {
    /// Returns what was measured of this scheme on this recording.
    pub fn find(trace: &str, scheme: &str) -> Option<&'static Real> {
        REAL.iter().find(|row| (row.trace, row.scheme) == (trace, scheme))
    }
}

/// Returns how far `value` lies outside `range`, relative to its nearer end; zero inside.
pub fn outside(value: f64, [low, high]: [f64; 2]) -> f64 {
    ((low - value) / low).max((value - high) / high).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_model_whose_scheme_exists() {
        for row in REAL {
            let model = Model::of(row.scheme).unwrap();
            let scheme = Scheme::parse(model.scheme).unwrap();
            assert_eq!(
                Model::tolerance(scheme.controller().name(), scheme.queue().name()),
                Some(model.tolerance)
            );
            assert!(row.throughput_mbps[0] <= row.throughput_mbps[1] && row.p95_ms[0] <= row.p95_ms[1]);
        }
        assert_eq!(Model::tolerance("vegas", "droptail"), None);
    }

    #[test]
    fn a_value_is_outside_by_its_distance_from_the_nearer_end() {
        assert_eq!(outside(5.0, [4.0, 6.0]), 0.0);
        assert_eq!(outside(3.0, [4.0, 6.0]), 0.25);
        assert_eq!(outside(9.0, [4.0, 6.0]), 0.5);
    }
}
