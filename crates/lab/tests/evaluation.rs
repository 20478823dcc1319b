//! The boards of docs/evaluation.md are what the kept evaluations say, and these are of today's criteria. To
//! make them again:
//!
//! ```sh
//! brakelight evaluate cubic newreno westwood ctcp vegas copa vivace bbr bbr2 bbr3 verus sprout gcc nada \
//!   quicdc abc bmcc --format json > docs/evaluation.json
//! brakelight evaluate bbr bbr2 bbr3 --kit bbr --format json > docs/evaluation-bbr.json
//! brakelight evaluate gcc nada scream cubic newreno westwood vegas copa bbr bbr2 bbr3 vivace prague quicdc \
//!   abc bmcc --kit media --format json > docs/evaluation-media.json
//! # With the feature `stacks`; newreno, cubic, bbr and bbr3 beside them are ours.
//! stacks="quinn/newreno quinn/cubic quinn/bbr noq/cubic noq/bbr3 s2n-quic/cubic s2n-quic/bbr"
//! brakelight evaluate newreno cubic bbr bbr3 ${stacks/quinn\/bbr/} --format json \
//!   > docs/evaluation-stacks.json
//! brakelight evaluate newreno cubic bbr bbr3 $stacks --kit media --format json \
//!   > docs/evaluation-stacks-media.json
//! brakelight evaluate bbr bbr3 quinn/bbr noq/bbr3 s2n-quic/bbr --kit bbr --format json \
//!   > docs/evaluation-stacks-bbr.json
//! BRAKELIGHT_BLESS=1 cargo test -p brakelight-lab --test evaluation
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use brakelight_lab::evaluate::{Level, Plan};
use brakelight_lab::text::evaluation::board;
use brakelight_registry::Registry;
use brakelight_scenario::documents::{Evaluation, Judgment};
use brakelight_scenario::experiment;
use brakelight_scenario::scheme::Scheme;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

fn kept(file: &str) -> Evaluation {
    serde_json::from_str(&std::fs::read_to_string(path(file)).unwrap()).unwrap()
}

/// The boards, by the name of their part in the page, and what each is made of.
const BOARDS: [(&str, &str); 6] = [
    ("board", "evaluation.json"),
    ("bbr", "evaluation-bbr.json"),
    ("media", "evaluation-media.json"),
    ("stacks", "evaluation-stacks.json"),
    ("stacks-bbr", "evaluation-stacks-bbr.json"),
    ("stacks-media", "evaluation-stacks-media.json"),
];

#[test]
fn the_boards_are_what_was_kept() {
    for (part, file) in BOARDS {
        let text = std::fs::read_to_string(path("evaluation.md")).unwrap();
        let (before, rest) = text.split_once(&format!("<!-- {part} -->\n")).unwrap();
        let (shown, after) = rest.split_once("<!-- end -->").unwrap();
        let made = board(&kept(file));
        if std::env::var_os("BRAKELIGHT_BLESS").is_some() {
            let new = format!("{before}<!-- {part} -->\n{made}<!-- end -->{after}");
            std::fs::write(path("evaluation.md"), new).unwrap();
        } else {
            assert_eq!(shown, made, "BRAKELIGHT_BLESS=1 writes it again");
        }
    }
}

#[test]
fn the_picture_of_the_board_is_what_was_kept() {
    let drawn = brakelight_lab::figures::board(&kept("evaluation.json")).svg();
    if std::env::var_os("BRAKELIGHT_BLESS").is_some() {
        std::fs::write(path("images/board.svg"), &drawn).unwrap();
    }
    let shown = std::fs::read_to_string(path("images/board.svg")).unwrap_or_default();
    assert!(shown == drawn, "docs/images/board.svg: BRAKELIGHT_BLESS=1 draws it again");
}

#[test]
fn the_kept_evaluations_are_by_the_criteria_of_today() {
    for (_, file) in BOARDS {
        is_of_today(&kept(file));
    }
}

/// Stacks of others are in no registry of this build. Each of their boards has controls of ours beside them,
/// whose runs are of the same criteria.
fn is_of_today(kept: &Evaluation) {
    let ours = kept.schemes.iter().filter(|evaluated| !evaluated.scheme.contains('/'));
    let schemes: Vec<Scheme> = ours.map(|evaluated| Scheme::parse(&evaluated.scheme).unwrap()).collect();
    assert!(!schemes.is_empty(), "{}: a control of ours", kept.kit);
    let plan = Plan::new(&Registry::standard(), &kept.kit, Level::Quick, &schemes).unwrap();
    assert_eq!(plan.fits(kept), Ok(()));
}

/// What each of the standard controls fails is known: a large buffer fills (RFC 9743 5.1.2 says so).
#[test]
fn the_standard_controls_fail_only_what_is_known_of_them() {
    let kept = kept("evaluation.json");
    for name in ["cubic", "newreno"] {
        let evaluated = kept.schemes.iter().find(|evaluated| evaluated.scheme == name).unwrap();
        let failed = evaluated.criteria.iter().filter(|criterion| criterion.verdict == Judgment::Fail);
        let failed: Vec<&str> = failed.map(|criterion| criterion.id.as_str()).collect();
        assert_eq!(failed, ["5.1.2-bufferbloat"], "{name}");
    }
}

/// What BBRv3 fails of the draft's cases is known, and said on the page.
#[test]
fn the_third_version_of_bbr_fails_only_what_is_known_of_it() {
    let kept = kept("evaluation-bbr.json");
    let evaluated = kept.schemes.iter().find(|evaluated| evaluated.scheme == "bbr3").unwrap();
    let failed = evaluated.criteria.iter().filter(|criterion| criterion.verdict == Judgment::Fail);
    let failed: Vec<&str> = failed.map(|criterion| criterion.id.as_str()).collect();
    assert_eq!(failed, ["6-longterm"]);
}

/// The queues before the scheme's own flows, in each file that it runs.
fn queues_of(scheme: &str) -> BTreeMap<String, BTreeSet<String>> {
    let schemes = [Scheme::parse(scheme).unwrap()];
    let plan = Plan::new(&Registry::standard(), "rfc9743", Level::Full, &schemes).unwrap();
    let mut queues = BTreeMap::new();
    for file in plan.files() {
        let name = file.name.trim_start_matches("scenarios/1/").trim_end_matches(".toml").to_string();
        let experiment = experiment::read(&name, std::str::from_utf8(&file.contents).unwrap()).unwrap();
        let scenarios = experiment.jobs.iter().map(|job| &job.scenario);
        let own = scenarios.filter(|it| it.flows.iter().any(|flow| flow.controller.name() == scheme));
        queues.insert(name, own.map(|it| it.links[0].queue.words().to_string()).collect());
    }
    queues
}

#[test]
fn a_scheme_is_judged_behind_its_own_router_but_where_the_rfc_names_the_queue() {
    for (scheme, own, beside) in
        [("abc", "abc", "abc_dual"), ("bmcc", "bmcc", "bmcc:coexist=true"), ("cubic", "droptail", "droptail")]
    {
        let queues = queues_of(scheme);
        assert!(queues.len() > 25, "{scheme}: {queues:?}");
        for (file, queues) in queues {
            let queues: Vec<&str> = queues.iter().map(String::as_str).collect();
            match file.as_str() {
                "6.1-taildrop" => assert_eq!(queues, ["droptail"], "{scheme}"),
                "6.2-tunnel" => assert_eq!(queues, ["codel:ecn=true"], "{scheme}"),
                "7.1-aqm" => {
                    let aqms = ["codel", "codel:ecn=true", "fq_codel", "pie", "pie:ecn=true", "red:ecn=true"];
                    assert_eq!(queues, aqms, "{scheme}");
                }
                "7.6-misbehaving" => {
                    assert_eq!(queues.len(), 2, "{scheme}");
                    assert!(queues.contains(&"codel:ecn=true") && queues.contains(&beside), "{queues:?}");
                }
                "5.2.1-standard" | "5.2.2-realtime" | "5.2.3-mixed" | "7.8-transient" => {
                    assert_eq!(queues, [beside], "{scheme}: {file}");
                }
                _ => assert_eq!(queues, [own], "{scheme}: {file}"),
            }
        }
    }
}
