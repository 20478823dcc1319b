//! A module in WebAssembly competes in the arena, and is refused with one line where it cannot.
#![cfg(feature = "wasm")]

mod support;

use serde_json::Value;
use support::{Scratch, ok, text};

/// NewReno as a module, which is part of the program.
const NEWRENO: &[u8] = include_bytes!("../../sandbox/modules/newreno.wasm");

/// The scores of `candidates` in a hidden set, by threads.
fn arena(scratch: &Scratch, candidates: &[&str], threads: &str) -> (Option<i32>, String, String) {
    let words = [&["--quiet", "arena"][..], candidates, &["--hidden", "key", "--format", "json"]].concat();
    let mut command = scratch.command(&words);
    let output = command.env("RAYON_NUM_THREADS", threads).output().unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_module_has_the_scores_of_its_algorithm_whatever_the_threads_and_the_digest_of_its_bytes() {
    let scratch = Scratch::new("wasm-arena");
    scratch.write("mine.wasm", NEWRENO);
    scratch.write("key", "0123456789abcdef");
    let candidates = ["mine.wasm", "newreno"];
    let (code, once, said) = arena(&scratch, &candidates, "1");
    assert_eq!(code, Some(0), "{said}");
    let (_, again, _) = arena(&scratch, &candidates, "8");
    let scores = |text: &str| {
        let mut document: Value = serde_json::from_str(text).unwrap();
        document.as_object_mut().unwrap().remove("origin");
        document
    };
    assert_eq!(scores(&once), scores(&again));
    let document = scores(&once);
    let of = |name: &str| {
        let candidates = document["candidates"].as_array().unwrap();
        candidates.iter().find(|scored| scored["scheme"] == name).unwrap().clone()
    };
    let (module, built_in) = (of("wasm:module=mine.wasm"), of("newreno"));
    assert_eq!(module["rounds"], built_in["rounds"]);
    assert_eq!(module["score"], built_in["score"]);
    let digest = brakelight_scenario::identity::sha256(NEWRENO);
    assert_eq!((&module["digest"], &built_in["digest"]), (&Value::from(digest), &Value::Null));
}

#[test]
fn a_module_that_traps_loses_its_rounds_and_the_others_keep_theirs() {
    let scratch = Scratch::new("wasm-traps");
    scratch.write("mine.wasm", trapping());
    scratch.write("key", "0123456789abcdef");
    let (code, scores, said) = arena(&scratch, &["mine.wasm", "newreno"], "2");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("48 runs failed"), "{said}");
    let document: Value = serde_json::from_str(&scores).unwrap();
    let [built_in, module] = &document["candidates"].as_array().unwrap()[..] else { panic!("{scores}") };
    assert_eq!(
        (&built_in["scheme"], &module["scheme"]),
        (&"newreno".into(), &"wasm:module=mine.wasm".into())
    );
    assert!(built_in["rounds"].as_array().unwrap().iter().all(|round| round["failed"].is_null()));
    for round in module["rounds"].as_array().unwrap() {
        let failed = round["failed"].as_str().unwrap();
        assert!(failed.contains("(wasm), at ") && failed.contains("mine.wasm: `on_ack`: "), "{failed}");
    }
}

/// The smallest module whose `on_ack` traps, section by section (WebAssembly 2.0 section 5.5).
fn trapping() -> Vec<u8> {
    let exports: [(&str, u8, u8); 7] = [
        ("memory", 2, 0),
        ("brakelight_abi", 0, 0),
        ("brakelight_buffer", 0, 1),
        ("init", 0, 2),
        ("on_loss", 0, 2),
        ("on_timeout", 0, 2),
        ("on_ack", 0, 3),
    ];
    let mut section = vec![exports.len() as u8];
    for (name, kind, index) in exports {
        section.push(name.len() as u8);
        section.extend(name.as_bytes());
        section.extend([kind, index]);
    }
    let mut bytes = b"\0asm\x01\0\0\0".to_vec();
    // Types () -> (i32) and () -> (); four functions; a memory of one page.
    bytes.extend([1, 8, 2, 0x60, 0, 1, 0x7f, 0x60, 0, 0]);
    bytes.extend([3, 5, 4, 0, 0, 1, 1]);
    bytes.extend([5, 3, 1, 0, 1]);
    bytes.extend([7, section.len() as u8]);
    bytes.extend(section);
    // Returns 1; returns 0; nothing; traps.
    bytes.extend([10, 18, 4, 4, 0, 0x41, 1, 0x0b, 4, 0, 0x41, 0, 0x0b, 2, 0, 0x0b, 3, 0, 0, 0x0b]);
    bytes
}

#[test]
fn what_is_no_module_is_refused_and_a_module_is_a_scheme_everywhere() {
    let scratch = Scratch::new("wasm-scheme");
    scratch.write("mine.wasm", NEWRENO);
    scratch.write("text.wasm", "not a module");
    for (file, words) in
        [("text.wasm", "it is no WebAssembly module that can run"), ("none.wasm", "it cannot be read")]
    {
        let output = scratch.brakelight(&["arena", file]);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(&format!("module = `{file}`")) && said.contains(words), "{said}");
    }
    let compare =
        ["compare", "--trace", "step", "--schemes", "newreno,mine.wasm", "--duration", "5s", "--runs", "1"];
    let table = ok(&scratch.brakelight(&[&compare[..], &["--format", "json"]].concat()));
    let document: Value = serde_json::from_str(&table).unwrap();
    let [one, other] = &document["runs"].as_array().unwrap()[..] else { panic!("{table}") };
    assert_eq!(other["scheme"], "wasm:module=mine.wasm");
    assert_eq!(one["throughput_mbps"], other["throughput_mbps"]);
    let listed = ok(&scratch.brakelight(&["list", "controllers"]));
    assert!(listed.contains("wasm"), "{listed}");
}
