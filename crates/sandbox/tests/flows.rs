//! Modules in simulations: the same packets as the built-in controllers that they imitate, and runs that
//! fail.

use std::path::PathBuf;

use brakelight_registry::Registry;
use brakelight_scenario::file;
use brakelight_scenario::outcome::Outcome;
use brakelight_scenario::scheme::Scheme;
use brakelight_sim::{Simulation, Traces};

brakelight_testkit::conformance_controller!(registry(), "wasm");

fn registry() -> Registry {
    let mut registry = Registry::standard();
    brakelight_sandbox::add_to(&mut registry).expect("its name is free");
    registry
}

/// A file with the module `text` in a folder of this test.
fn module(name: &str, text: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("sandbox-flows");
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join(name);
    std::fs::write(&path, wat::parse_str(text).expect("a module")).expect("a file");
    path
}

/// Two flows of `controller` with losses, timeouts, mistaken losses, idle times and a change of the packets'
/// size. What each packet met at the link is recorded.
fn scenario(controller: &str) -> String {
    format!(
        r#"
        seed = 5
        duration = "40s"
        record = {{ series = true, link_logs = true }}

        [[link]]
        name = "bottleneck"
        steps = [["6s", "12Mbps"], ["1500ms", "30kbps"], ["4s", "20Mbps"], ["2s", "3Mbps"]]
        buffer = "60pkt"

        [[flow]]
        name = "pausing"
        controller = "{controller}"
        rtt = "60ms"
        traffic = {{ kind = "on-off", on = "3s", off = "2s" }}
        path = ["bottleneck"]

        [[flow]]
        name = "bulk"
        controller = "{controller}"
        rtt = "25ms"
        start = "3s"
        path = ["bottleneck"]
        "#
    )
}

fn run(text: &str) -> Result<Outcome, String> {
    let scenario = file::read_with(&registry(), "flows.toml", text).unwrap_or_else(|error| panic!("{error}"));
    brakelight_sim::run(&scenario, &Traces::new()).map_err(|error| error.to_string())
}

/// All of it as text: a rate that no bin has is NaN, which is not equal to itself. Only its digest, for a
/// message that can be read.
fn shown(outcome: &impl std::fmt::Debug) -> String {
    brakelight_scenario::identity::sha256(format!("{outcome:?}").as_bytes())
}

#[test]
fn newreno_as_a_module_sends_the_packets_of_newreno() {
    let [module, built_in] = ["wasm", "newreno"].map(|name| run(&scenario(name)).unwrap());
    assert!(built_in.run.loss_percent > 0.1 && built_in.link_logs[0].events.len() > 10_000);
    assert!(module.link_logs == built_in.link_logs);
    assert_eq!(shown(&module.series), shown(&built_in.series));
    assert_eq!(shown(&run(&scenario("wasm")).unwrap()), shown(&module));
}

#[test]
fn a_run_goes_on_alike_from_a_copy() {
    let scenario = file::read_with(&registry(), "flows.toml", &scenario("wasm")).unwrap();
    let whole = brakelight_sim::run(&scenario, &Traces::new()).unwrap();
    let mut simulation = Simulation::new(&scenario, &Traces::new()).unwrap();
    simulation.advance(brakelight_core::time::Time::from_millis(9_300));
    let mut copy = simulation.clone();
    copy.advance(copy.end());
    simulation.advance(simulation.end());
    assert_eq!(shown(&copy.finish().unwrap()), shown(&whole));
    assert_eq!(shown(&simulation.finish().unwrap()), shown(&whole));
}

#[test]
fn a_run_whose_module_fails_has_failed_with_the_flow_the_time_and_the_reason() {
    let path = module(
        "late.wasm",
        r#"(module
            (memory (export "memory") 1)
            (func (export "brakelight_abi") (result i32) (i32.const 1))
            (func (export "brakelight_buffer") (result i32) (i32.const 0))
            (func (export "init"))
            (func (export "on_ack") (if (f64.gt (f64.load (i32.const 64)) (f64.const 4)) (then (unreachable))))
            (func (export "on_loss"))
            (func (export "on_timeout")))"#,
    );
    let path = path.display();
    let said = run(&scenario(&format!("wasm:module={path}"))).unwrap_err();
    assert!(said.starts_with("flow `pausing` (wasm), at "), "{said}");
    assert!(said.contains(&format!("{path}: `on_ack`: ")) && said.contains("unreachable"), "{said}");
    // The connections of a bundle end, and are gone with their controllers.
    let short = format!(
        r#"
        duration = "20s"
        [[link]]
        name = "bottleneck"
        rate = "12Mbps"
        [[flow]]
        name = "short"
        controller = "wasm:module={path}"
        rtt = "40ms"
        traffic = {{ kind = "short-flows", load = "2Mbps", size = "30kB" }}
        path = ["bottleneck"]
        "#
    );
    let said = run(&short).unwrap_err();
    assert!(said.starts_with("flow `short` (wasm), at 4."), "{said}");
}

#[test]
fn a_file_stands_for_its_controller_wherever_a_scheme_does() {
    let path = module("Mine.wasm", include_str!("../modules/newreno.wat"));
    let path = path.display();
    let registry = registry();
    let of = |text: &str| Scheme::parse_with(&registry, text).map(|scheme| scheme.to_string());
    assert_eq!(of(&format!("{path}")).unwrap(), format!("wasm:module={path}"));
    assert_eq!(
        of(&format!(" {path}+codel:target=9ms")).unwrap(),
        format!("wasm+codel:module={path},target=9ms")
    );
    let list = Scheme::parse_list_with(&registry, &format!("cubic,{path},abc")).unwrap();
    assert_eq!(list.len(), 3);
    let refused = of("no/such.wasm").unwrap_err().to_string();
    assert!(
        refused.contains("module = `no/such.wasm` is not a module that can decide: it cannot be read"),
        "{refused}"
    );
    // Without the controller a file stands for nothing.
    let refused = Scheme::parse("mine.wasm").unwrap_err().to_string();
    assert!(refused.contains("unknown controller `mine.wasm`"), "{refused}");
}
