//! The module in Node beside the same code as a program: the outcome must be the same, byte for byte.

use std::path::Path;
use std::process::Command;

/// `scripts/portable` builds the module, and `scripts/check` says where it lies.
const MODULE: &str = "BRAKELIGHT_WASM_MODULE";

#[test]
fn node_and_a_program_give_the_same_bytes() {
    let Some(module) = std::env::var_os(MODULE) else {
        eprintln!("not run: the simulation in Node: {MODULE} does not name a module (`scripts/portable module`)");
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let scenario = folder.join("scenario.toml");
    let command = Command::new("node").arg(folder.join("run.mjs")).arg(module).arg(&scenario).output();
    let output = match command {
        Ok(output) => output,
        Err(error) => {
            eprintln!("not run: the simulation in Node: `node` does not start: {error}");
            return;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = brakelight_wasm_example::outcome(&std::fs::read_to_string(scenario).unwrap()).unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}
