//! The board of docs/evaluation.md is what the kept evaluation says, and the kept evaluation is of today's
//! criteria. To make it again:
//!
//! ```sh
//! brakelight evaluate cubic newreno vegas copa bbr bbr3 --format json > docs/evaluation.json
//! BRAKELIGHT_BLESS=1 cargo test -p brakelight-lab --test evaluation
//! ```

use std::path::PathBuf;

use brakelight_lab::evaluate::{Level, Plan};
use brakelight_lab::text::evaluation::board;
use brakelight_registry::Registry;
use brakelight_scenario::documents::{Evaluation, Judgment};
use brakelight_scenario::scheme::Scheme;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

fn kept() -> Evaluation {
    serde_json::from_str(&std::fs::read_to_string(path("evaluation.json")).unwrap()).unwrap()
}

#[test]
fn the_board_is_what_was_kept() {
    let text = std::fs::read_to_string(path("evaluation.md")).unwrap();
    let (before, rest) = text.split_once("<!-- board -->\n").unwrap();
    let (shown, after) = rest.split_once("<!-- end -->").unwrap();
    let made = board(&kept());
    if std::env::var_os("BRAKELIGHT_BLESS").is_some() {
        let new = format!("{before}<!-- board -->\n{made}<!-- end -->{after}");
        std::fs::write(path("evaluation.md"), new).unwrap();
    } else {
        assert_eq!(shown, made, "BRAKELIGHT_BLESS=1 writes it again");
    }
}

#[test]
fn the_kept_evaluation_is_by_the_criteria_of_today() {
    let kept = kept();
    let schemes: Vec<Scheme> =
        kept.schemes.iter().map(|evaluated| Scheme::parse(&evaluated.scheme).unwrap()).collect();
    let plan = Plan::new(&Registry::standard(), &kept.kit, Level::Quick, &schemes).unwrap();
    assert_eq!(plan.fits(&kept), Ok(()));
}

/// What each of the standard controls fails is known: a large buffer fills (RFC 9743 5.1.2 says so).
#[test]
fn the_standard_controls_fail_only_what_is_known_of_them() {
    let kept = kept();
    for name in ["cubic", "newreno"] {
        let evaluated = kept.schemes.iter().find(|evaluated| evaluated.scheme == name).unwrap();
        let failed = evaluated.criteria.iter().filter(|criterion| criterion.verdict == Judgment::Fail);
        let failed: Vec<&str> = failed.map(|criterion| criterion.id.as_str()).collect();
        assert_eq!(failed, ["5.1.2-bufferbloat"], "{name}");
    }
}
