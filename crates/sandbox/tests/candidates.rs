//! The examples in Rust and in C are compiled where there are compilers, and send the same packets.

use std::path::{Path, PathBuf};
use std::process::Command;

use brakelight_registry::Registry;
use brakelight_scenario::file;
use brakelight_scenario::outcome::Outcome;
use brakelight_sim::Traces;
use brakelight_testkit::skip::skip;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/candidate");

/// Runs a compiler; none where it is not there, or lacks the target or the linker.
fn compiled(command: &mut Command, to: &Path) -> Result<PathBuf, String> {
    // What another run made must not be taken for this one's.
    let _ = std::fs::remove_file(to);
    let output = command.output().map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        Ok(to.to_path_buf())
    } else {
        Err(said.lines().take(3).collect::<Vec<_>>().join("; "))
    }
}

fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("sandbox-examples");
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn from_rust() -> Result<PathBuf, String> {
    let to = folder().join("rust.wasm");
    let mut rustc = Command::new("rustc");
    rustc.args([
        "--edition",
        "2024",
        "--target",
        "wasm32-unknown-unknown",
        "--crate-type",
        "cdylib",
        "-O",
        "-o",
    ]);
    compiled(rustc.arg(&to).arg(format!("{EXAMPLES}/short_queue.rs")), &to)
}

/// By clang and its linker, or by the linker that comes with the compiler of Rust.
fn from_c() -> Result<PathBuf, String> {
    let (to, object) = (folder().join("c.wasm"), folder().join("c.o"));
    let source = format!("{EXAMPLES}/short_queue.c");
    let mut clang = Command::new("clang");
    clang.args(["--target=wasm32", "-O2", "-Wall", "-Wextra", "-Werror", "-c", "-o"]);
    compiled(clang.arg(&object).arg(source), &object)?;
    let mut linker = Command::new("wasm-ld");
    let linked = compiled(linker.arg("--no-entry").arg("-o").arg(&to).arg(&object), &to);
    linked.or_else(|_| {
        let mut rustc = Command::new("rustc");
        let output = rustc.args(["--print", "target-libdir"]).output().map_err(|error| error.to_string())?;
        let libraries = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        let mut linker = Command::new(libraries.with_file_name("bin").join("rust-lld"));
        compiled(linker.args(["-flavor", "wasm", "--no-entry", "-o"]).arg(&to).arg(&object), &to)
    })
}

fn run(module: &Path) -> Outcome {
    let text = format!(
        r#"
        duration = "30s"
        record = {{ series = true, link_logs = true }}
        [[link]]
        name = "bottleneck"
        steps = [["4s", "12Mbps"], ["4s", "4Mbps"], ["4s", "24Mbps"]]
        buffer = "80pkt"
        [[flow]]
        name = "one"
        controller = "wasm:module={}"
        rtt = "40ms"
        path = ["bottleneck"]
        "#,
        module.display()
    );
    let mut registry = Registry::standard();
    brakelight_sandbox::add_to(&mut registry).expect("its name is free");
    let scenario =
        file::read_with(&registry, "candidate.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    brakelight_sim::run(&scenario, &Traces::new()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_examples_use_the_link_keep_the_queue_short_and_send_the_same_packets() {
    let modules: Vec<PathBuf> = [("Rust", from_rust()), ("C", from_c())]
        .into_iter()
        .filter_map(|(language, made)| {
            made.map_err(|why| skip(&format!("a module of WebAssembly from {language}"), why)).ok()
        })
        .collect();
    let outcomes: Vec<Outcome> = modules.iter().map(|module| run(module)).collect();
    for outcome in &outcomes {
        let p95 = outcome.run.queueing_delay_ms.expect("packets passed").p95;
        assert!(outcome.run.utilization > 0.85 && p95 < 60.0, "{} {p95}", outcome.run.utilization);
    }
    assert!(outcomes.windows(2).all(|pair| pair[0].link_logs == pair[1].link_logs));
}
