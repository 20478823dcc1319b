//! The module in Node beside the same code as a program: the outcome must be the same, byte for byte.

use std::path::Path;
use std::process::Command;

use brakelight_testkit::skip::skip;

/// `scripts/portable` builds the module, and `scripts/check` says where it lies.
const MODULE: &str = "BRAKELIGHT_WASM_MODULE";

#[test]
fn node_and_a_program_give_the_same_bytes() {
    let Some(module) = std::env::var_os(MODULE) else {
        skip("the simulation in Node", format!("{MODULE} names no module; see `scripts/portable module`"));
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let scenario = folder.join("scenario.toml");
    let command = Command::new("node").arg(folder.join("run.mjs")).arg(module).arg(&scenario).output();
    let output = match command {
        Ok(output) => output,
        Err(error) => {
            skip("the simulation in Node", format!("`node` does not start: {error}"));
            return;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = brakelight_wasm_example::outcome(&std::fs::read_to_string(scenario).unwrap()).unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}
