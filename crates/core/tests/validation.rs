//! The validation pages say what the code does.

mod support;

use brakelight_core::path::elements::{ELEMENTS, SERVICES};
use brakelight_core::registry::{FEEDBACKS, QUEUES};
use support::page::{measured, parameters, table_of};
use support::part::check;

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

#[test]
fn newreno() {
    page("newreno");
}

#[test]
fn cubic() {
    page("cubic");
}

#[test]
fn vegas() {
    page("vegas");
}

#[test]
fn westwood() {
    page("westwood");
}

#[test]
fn quicdc() {
    page("quicdc");
}

#[test]
fn ctcp() {
    page("ctcp");
}

#[test]
fn copa() {
    page("copa");
}

#[test]
fn abc_sender() {
    check("abc-sender", "parameters", &parameters("abc"));
    let delayed = FEEDBACKS.iter().find(|entry| entry.name == "delayed").expect("a registered receiver");
    check("abc-sender", "delayed", &table_of(delayed));
}

#[test]
fn links() {
    for entry in SERVICES {
        check("links", entry.name, &table_of(entry));
    }
}

#[test]
fn path_elements() {
    let list: String =
        ELEMENTS.iter().map(|entry| format!("| `{}` | {} |\n", entry.name, entry.summary)).collect();
    check("path-elements", "elements", &format!("| element | what it does |\n|---|---|\n{list}"));
    for entry in ELEMENTS {
        check("path-elements", entry.name, &table_of(entry));
    }
}

#[test]
fn prague() {
    check("prague", "parameters", &parameters("prague"));
    let receiver = FEEDBACKS.iter().find(|entry| entry.name == "accecn").expect("a registered name");
    check("prague", "receiver", &table_of(receiver));
}

#[test]
fn queues() {
    for (name, page) in [("dualpi2", "dualpi2"), ("fq_codel", "fq-codel"), ("pie", "pie"), ("red", "red")] {
        let queue = QUEUES.iter().find(|entry| entry.name == name).expect("a registered name");
        check(page, "parameters", &table_of(queue));
    }
}

#[test]
fn sprout() {
    page("sprout");
    let receiver = FEEDBACKS.iter().find(|entry| entry.name == "sprout").expect("a registered name");
    check("sprout", "receiver", &table_of(receiver));
}

#[test]
fn verus() {
    page("verus");
}

/// Explicit schemes: sender and router. What they do is measured where there are routers, in the simulator's tests.
fn explicit(page: &str, controller: &str, queues: &[&str]) {
    check(page, "sender", &parameters(controller));
    for queue in queues {
        let entry = QUEUES.iter().find(|entry| entry.name == *queue).expect("a registered queue");
        check(page, queue, &table_of(entry));
    }
}

#[test]
fn xcp() {
    explicit("xcp", "xcp", &["xcp", "xcpw"]);
}

#[test]
fn rcp() {
    explicit("rcp", "rcp", &["rcp"]);
}

#[test]
fn e_abc() {
    explicit("e-abc", "e-abc", &["eabc"]);
}

#[test]
fn vcp() {
    explicit("vcp", "vcp", &["vcp"]);
}

#[test]
fn mlcp() {
    explicit("mlcp", "mlcp", &["mlcp"]);
}

#[test]
fn bmcc() {
    explicit("bmcc", "bmcc", &["bmcc"]);
    let receiver = FEEDBACKS.iter().find(|entry| entry.name == "bmcc").expect("a registered receiver");
    check("bmcc", "receiver", &table_of(receiver));
}
