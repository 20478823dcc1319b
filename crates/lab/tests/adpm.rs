//! BMCC's estimate of the load beside random marking: the table of its validation page.

use brakelight_lab::analysis::adpm::errors;
use brakelight_testkit::part::check;

/// B-U6: the estimate's error falls as 1 / n, random marking's as 1 / sqrt(n), and three bits stay where they
/// are.
#[test]
fn the_estimate_errs_by_one_in_n() {
    let mut table = String::from(
        "| packets | 1 / n | ADPM | three static bits | random marking | mean square below random |\n|---|---|---|---|---|---|\n",
    );
    for bits in [2, 4, 6, 8, 10, 12, 14, 16] {
        let at = errors(1 << bits, 1);
        let n = f64::from(at.n);
        let below = (at.random / at.adaptive).powi(2);
        table += &format!(
            "| {} | {:.1e} | {:.1e} | {:.1e} | {:.1e} | {below:.0} times |\n",
            at.n,
            1.0 / n,
            at.adaptive,
            at.fixed,
            at.random
        );
        assert!(at.adaptive * n < 2.0, "{table}");
        assert!(bits < 10 || below > 100.0, "{table}");
    }
    check("bmcc", "error", &table);
}
