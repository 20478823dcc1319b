//! Every example runs, is short, and is shown in the crate's README.

use std::fs;
use std::path::Path;

#[path = "../examples/claim.rs"]
mod claim;
#[path = "../examples/compare.rs"]
mod compare;
#[path = "../examples/controller.rs"]
mod controller;
#[path = "../examples/element.rs"]
mod element;
#[path = "../examples/evaluate.rs"]
mod evaluate;
#[path = "../examples/queue.rs"]
mod queue;
#[cfg(feature = "quic")]
#[path = "../examples/real_quic.rs"]
mod real_quic;
#[path = "../examples/scenario.rs"]
mod scenario;
#[path = "../examples/series.rs"]
mod series;
#[path = "../examples/stepping.rs"]
mod stepping;
#[path = "../examples/sweep.rs"]
mod sweep;

#[test]
fn claim_runs() {
    claim::main().unwrap();
}

#[test]
fn compare_runs() {
    compare::main().unwrap();
}

#[test]
fn controller_runs() {
    controller::main().unwrap();
}

#[test]
fn element_runs() {
    element::main().unwrap();
}

#[test]
fn evaluate_runs() {
    evaluate::main().unwrap();
}

#[test]
fn queue_runs() {
    queue::main().unwrap();
}

#[cfg(feature = "quic")]
#[test]
fn real_quic_runs() {
    real_quic::main().unwrap();
}

#[test]
fn scenario_runs() {
    scenario::main().unwrap();
}

#[test]
fn series_runs() {
    series::main().unwrap();
}

#[test]
fn stepping_runs() {
    stepping::main().unwrap();
}

#[test]
fn sweep_runs() {
    sweep::main().unwrap();
}

#[test]
fn every_example_has_at_most_forty_lines_and_a_line_in_the_readme() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(folder.join("README.md")).unwrap();
    let mut found = 0;
    for entry in fs::read_dir(folder.join("examples")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_string();
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= 40, "{name} has {lines} lines");
        assert!(readme.contains(&format!("[`{name}`](examples/{name}.rs)")), "{name} is not in the README");
        found += 1;
    }
    assert_eq!(found, 11);
}
