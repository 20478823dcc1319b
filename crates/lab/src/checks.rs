//! The papers' statements about the rules themselves, measured on the code: what `reproduce` asks for by
//! `builtin:NAME`. Each check drives the same controller, receiver or router that every run uses, through its
//! trait.

use brakelight_scenario::experiment::Finding;

mod bias;
mod bmcc;
#[cfg(test)]
mod book;
mod cellular;
mod coexistence;
mod deployment;
mod driven;
mod fluid;
#[cfg(test)]
mod picture;
mod router;
mod sender;
mod wifi;

/// A check: its name and what it does.
type Entry = (&'static str, fn() -> Finding);

/// Every check, by name.
const CHECKS: &[Entry] = &[
    ("abc-window-after-one-rtt", sender::window_after_one_rtt),
    ("abc-token-bucket", router::token_bucket),
    ("abc-routers-in-series", router::routers_in_series),
    ("abc-marks-only-fall", router::marks_only_fall),
    ("abc-lost-acks", sender::lost_acks),
    ("abc-steady-window", sender::steady_window),
    ("abc-drain", router::drain),
    ("abc-stability", fluid::stability),
    ("vcp-doubling", fluid::vcp_doubling),
    ("abc-window-cap", sender::window_cap),
    ("abc-mark-echo", sender::mark_echo),
    ("abc-extremes", sender::extremes),
    ("bmcc-new-flow", bmcc::new_flow),
    ("bmcc-severe-overload", bmcc::severe_overload),
    ("bmcc-concave", bmcc::concave),
    ("bmcc-mode-threshold", bmcc::mode_threshold),
    ("bmcc-decrease", bmcc::decrease),
    ("bmcc-options", bmcc::options),
    ("bmcc-resolution", bmcc::resolution),
    ("bmcc-estimate-error", bmcc::estimate_error),
    ("bmcc-mean-cut", bmcc::mean_cut),
    ("bmcc-theorem-1", bmcc::theorem_1),
    ("bmcc-lemma-1", bmcc::lemma_1),
    ("bmcc-detection", bmcc::detection_of_unequal_flows),
    ("bmcc-backoff-over-u", bmcc::backoff_over_u),
    ("bmcc-growth-model", bmcc::growth_model),
    ("cellular-hypothetical", cellular::hypothetical),
    ("cellular-truth", cellular::truth),
    ("cellular-naive", cellular::naive),
    ("cellular-fairness", cellular::fairness),
    ("wifi-inter-ack-time", wifi::inter_ack_time),
    ("wifi-estimate", wifi::estimate),
    ("wifi-estimate-cap", wifi::estimate_cap),
    ("quicdc-rtt-bias", bias::rtt_bias),
    ("abc-governing-window", coexistence::governing_window),
    ("abc-window-rises", coexistence::window_rises),
    ("abc-weight-unfairness", coexistence::weight_unfairness),
    ("abc-heavy-flows", coexistence::heavy_flows),
    ("abc-brake-echoed-once", deployment::brake_echoed_once),
    ("abc-leaves-ecn-alone", deployment::leaves_ecn_alone),
    ("abc-sender-demand", deployment::sender_demand),
    ("abc-brake-probes", deployment::brake_probes),
    ("wireless-rate-swings", deployment::rate_doubles_and_halves),
];

/// Runs the check called `name`, if there is one.
pub fn run(name: &str) -> Option<Finding> {
    CHECKS.iter().find(|(other, _)| *other == name).map(|(_, check)| check())
}

/// Returns the names of all checks.
pub fn names() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|(name, _)| *name)
}

fn finding(holds: bool, measured: String) -> Finding {
    Finding { holds, measured, note: String::new() }
}

#[cfg(test)]
mod tests {
    use brakelight_scenario::experiment::{EMBEDDED, read};

    use super::*;

    #[test]
    fn every_check_that_an_experiment_asks_for_is_there_and_no_other() {
        let experiments = EMBEDDED.iter().map(|(file, text)| read(file, text).unwrap());
        let asked: Vec<String> = experiments
            .flat_map(|experiment| experiment.builtins().map(str::to_string).collect::<Vec<_>>())
            .collect();
        for name in names() {
            assert!(asked.iter().any(|other| other == name), "no experiment asks for `{name}`");
        }
        for name in &asked {
            assert!(names().any(|other| other == name), "there is no check `{name}`");
        }
    }

    /// The statements are checked by so many tests, each by its share.
    const SHARES: usize = 6;

    /// Checks every [`SHARES`]th statement, from `first` on.
    fn every_statement_holds(first: usize) {
        for name in names().skip(first).step_by(SHARES) {
            let found = run(name).unwrap();
            assert!(found.holds, "{name}: {}", found.measured);
            assert_eq!(run(name), Some(found), "{name} is not a function of nothing");
        }
    }

    /// A test for each share of the statements.
    macro_rules! shares {
        ($($name:ident $first:literal)*) => {
            $(
                #[test]
                fn $name() {
                    every_statement_holds($first);
                }
            )*

            #[test]
            fn every_statement_is_in_a_share() {
                assert_eq!([$($first),*], std::array::from_fn::<usize, SHARES, _>(|share| share));
            }
        };
    }

    shares! {
        every_statement_holds_0 0
        every_statement_holds_1 1
        every_statement_holds_2 2
        every_statement_holds_3 3
        every_statement_holds_4 4
        every_statement_holds_5 5
    }

    #[test]
    fn a_check_that_is_not_there_is_not_run() {
        assert_eq!(run("no such check"), None);
    }
}
