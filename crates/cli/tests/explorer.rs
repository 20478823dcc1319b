//! The explorer's module in Node beside the command: the outcomes must be the same, byte for byte.

mod support;

use std::path::Path;
use std::process::Command;
use std::thread;

use brakelight_core::time::Duration;
use brakelight_scenario::compare::Compare;
use brakelight_scenario::file;
use brakelight_scenario::scenario::Scenario;
use brakelight_scenario::scheme::Scheme;
use brakelight_testkit::skip::skip;
use support::{Scratch, ok};

/// `scripts/portable explorer` builds the module, and `scripts/check` says where it lies.
const MODULE: &str = "BRAKELIGHT_EXPLORER_MODULE";

/// One scenario of every experiment that has any, and four of `compare`.
fn scenarios() -> Vec<Scenario> {
    let mut all = brakelight_web::experiments::samples(Duration::from_secs(2)).unwrap();
    for (scheme, trace) in
        [("abc", "lte-driving"), ("bbr", "3g"), ("cubic+codel", "satellite"), ("bmcc", "step")]
    {
        let compare = Compare::mahimahi(Scheme::parse(scheme).unwrap(), trace);
        all.push(Scenario { duration: Duration::from_secs(10), ..compare.scenario().unwrap() });
    }
    all
}

#[test]
fn the_explorer_and_the_command_give_the_same_bytes() {
    let Some(module) = std::env::var_os(MODULE) else {
        let why = format!("{MODULE} names no module; see `scripts/portable explorer`");
        skip("the explorer's module in Node", why);
        return;
    };
    let scratch = Scratch::new("explorer");
    let scenarios = scenarios();
    assert!(scenarios.len() >= 50, "{} scenarios", scenarios.len());
    let name = |index: usize| format!("files/{index:03}.toml");
    for (index, scenario) in scenarios.iter().enumerate() {
        scratch.write(&name(index), file::write(scenario));
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/wasm/run.mjs");
    let node = Command::new("node").arg(program).arg(module).arg(scratch.path("files")).output();
    let output = match node {
        Ok(output) => output,
        Err(error) => {
            skip("the explorer's module in Node", format!("`node` does not start: {error}"));
            return;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let compare = |index: usize| {
        let command = scratch.brakelight(&["run", &name(index), "--format", "json"]);
        ok(&command);
        let document = String::from_utf8(command.stdout).unwrap();
        let outcome = std::fs::read_to_string(scratch.path(&name(index)).with_extension("json")).unwrap();
        // The row stands in a list in an object: each of its lines but the first four spaces further in.
        let row = outcome.replace('\n', "\n    ");
        assert!(document.contains(&row), "{}: the command has\n{document}", scenarios[index].name);
    };
    thread::scope(|scope| {
        for first in 0..2 {
            let compare = &compare;
            let all = (first..scenarios.len()).step_by(2);
            scope.spawn(move || all.for_each(compare));
        }
    });
}
