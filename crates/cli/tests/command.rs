//! What commands print and write when all goes well.

#[path = "command/compare.rs"]
mod compare;
#[cfg(unix)]
#[path = "command/profile.rs"]
mod profile;
mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Scratch, ended, ok, text};

const SMALL: &[&str] = &[
    "compare",
    "--trace",
    "step",
    "--trace",
    "fixed",
    "--schemes",
    "abc,cubic+codel",
    "--setup",
    "mahimahi",
    "--duration",
    "5s",
];

fn json(output: &str) -> Value {
    serde_json::from_str(output).unwrap_or_else(|error| panic!("{error}: {output}"))
}

/// `make run` is `cargo run`, which asks what is meant where several packages have programs.
#[test]
fn cargo_run_without_a_name_starts_the_command() {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata = json(&text(&cargo.stdout));
    let defaults = metadata["workspace_default_members"].as_array().unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let run =
        packages.filter(|package| defaults.contains(&package["id"]) && !package["default_run"].is_null());
    let run: Vec<_> = run.map(|package| &package["default_run"]).collect();
    assert_eq!(run, ["brakelight"]);
}

#[test]
fn json_is_one_document_with_a_row_per_scheme_and_trace() {
    let scratch = Scratch::new("command-json");
    let output = scratch.brakelight(&[SMALL, &["--format", "json"]].concat());
    let document = json(&ok(&output));
    assert_eq!(text(&output.stderr), "", "nobody watches a progress bar in a pipe");
    let rows = document["runs"].as_array().unwrap();
    let names: Vec<(&str, &str)> =
        rows.iter().map(|row| (row["trace"].as_str().unwrap(), row["scheme"].as_str().unwrap())).collect();
    assert_eq!(
        names,
        [("step", "abc"), ("step", "cubic+codel"), ("fixed", "abc"), ("fixed", "cubic+codel")],
        "in the order of the arguments"
    );
    for row in rows {
        let utilization = row["utilization"].as_f64().unwrap();
        let ratio = row["throughput_mbps"].as_f64().unwrap() / row["capacity_mbps"].as_f64().unwrap();
        assert!((utilization - ratio).abs() < 1e-9, "{row}");
        assert!(row["queueing_delay_ms"]["p95"].as_f64().unwrap() > 0.0, "{row}");
        assert_eq!(row["run_id"].as_str().map(str::len), Some(32), "{row}");
    }
    let origin = &document["origin"];
    assert_eq!(origin["seed"], 1);
    assert_eq!(origin["command"], format!("brakelight {} --format json", SMALL.join(" ")));
    assert_eq!(origin["version"], env!("CARGO_PKG_VERSION"));
    assert!(origin["host"].as_str().unwrap().contains("core"), "{origin}");
}

#[test]
fn the_same_seed_gives_the_same_rows_however_many_threads_there_are() {
    let scratch = Scratch::new("command-threads");
    let rows = |threads: &str, seed: &str| {
        let arguments = [SMALL, &["--format", "csv", "--runs", "3", "--seed", seed]].concat();
        ok(&scratch.command(&arguments).env("RAYON_NUM_THREADS", threads).output().unwrap())
    };
    let alone = rows("1", "7");
    assert_eq!(alone, rows("4", "7"));
    assert_ne!(alone, rows("4", "8"), "another seed is another draw");
}

#[test]
fn the_stability_map_has_the_model_and_the_packets_at_every_point() {
    let scratch = Scratch::new("command-stability");
    let map = ["stability", "--flows", "8,32", "--ratios", "0.2,1.33", "--duration", "20s"];
    let document =
        json(&ok(&scratch.brakelight(&[&map[..], &["--format", "json", "--out", "map"]].concat())));
    let verdicts: Vec<[&str; 2]> = document["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| ["fluid", "packets"].map(|side| point[side]["verdict"].as_str().unwrap()))
        .collect();
    let expected =
        [["steady", "ripples"], ["steady", "ripples"], ["oscillates", "oscillates"], ["steady", "ripples"]];
    assert_eq!(verdicts, expected);
    let page = std::fs::read_to_string(scratch.path("map/stability.html")).unwrap();
    assert!(page.contains("\"delta_over_tau\":1.33"), "the page has the points");
    assert!(!page.contains("{{"), "every place of the page is filled");
    let one = ok(&scratch.brakelight(&["stability", "--flows", "8", "--ratios", "1", "--duration", "5s"]));
    assert!(one.contains("Model, from an empty queue: settles at 50.7 ms"), "{one}");
}

#[test]
fn several_runs_become_medians_with_their_spread() {
    let scratch = Scratch::new("command-runs");
    let document = json(&ok(&scratch.brakelight(&[SMALL, &["--format", "json", "--runs", "5"]].concat())));
    for row in document["runs"].as_array().unwrap() {
        let spread = &row["spread"];
        assert_eq!(spread["n"], 5);
        let (low, high) = (spread["p95_ms"][0].as_f64().unwrap(), spread["p95_ms"][1].as_f64().unwrap());
        let median = row["queueing_delay_ms"]["p95"].as_f64().unwrap();
        assert!(low <= median && median <= high, "{row}");
    }
}

#[test]
fn a_table_tells_order_settings_and_the_best_first() {
    let scratch = Scratch::new("command-table");
    let table = ok(&scratch.brakelight(SMALL));
    let answer = table.split("All traces").nth(1).unwrap();
    let schemes: Vec<&str> = answer.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let place = |name: &str| schemes.iter().position(|scheme| *scheme == name).unwrap();
    assert!(place("abc") < place("cubic+codel"), "{table}");
    assert!(table.contains("Sorted by power"), "{table}");
    assert!(table.contains("note: codel: target = 50ms"), "presets are told: {table}");
    assert!(!table.contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn a_folder_gets_everything_that_was_asked_for_and_nothing_else() {
    let scratch = Scratch::new("command-out");
    let asked = ["--out", "a/report", "--series", "csv", "--link-logs", "--format", "json"];
    let output = scratch.brakelight(&[SMALL, &asked].concat());
    let printed = ok(&output);
    let files: Vec<String> = scratch.list().into_iter().filter(|path| scratch.path(path).is_file()).collect();
    let mut expected =
        vec!["a/report/report.html".to_string(), "a/report/runs.csv".into(), "a/report/runs.json".into()];
    for run in ["abc.fixed", "abc.step", "cubic+codel.fixed", "cubic+codel.step"] {
        for link in ["forward", "reverse"] {
            expected.push(format!("a/report/links/{run}.{link}.log"));
            expected.push(format!("a/report/series/{run}.link-{link}.csv"));
        }
        expected.push(format!("a/report/series/{run}.flow-main.csv"));
    }
    expected.sort();
    assert_eq!(files, expected);
    assert_eq!(std::fs::read_to_string(scratch.path("a/report/runs.json")).unwrap(), printed);
    let log = std::fs::read_to_string(scratch.path("a/report/links/abc.step.forward.log")).unwrap();
    assert!(log.starts_with("# mahimahi mm-link (forward)"), "{}", &log[..100]);
    assert!(text(&output.stderr).contains("report.html"), "people are told where it is");
    // Again into the same place: what was there is replaced.
    ok(&scratch.brakelight(&[SMALL, &["--out", "a/report"]].concat()));
    assert_eq!(scratch.list().iter().filter(|path| path.contains("partial")).count(), 0);
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    let scratch = Scratch::new("command-interrupt");
    // Hours of simulation, to be interrupted in its first second.
    let arguments = ["compare", "--trace", "5g", "--runs", "10000", "--out", "a/report"];
    let mut child = scratch.command(&arguments).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    while scratch.list().is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(30), "the folder in the making never appeared");
        std::thread::sleep(Duration::from_millis(10));
    }
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let status = ended(&mut child);
    assert_eq!(status.code(), Some(130));
    assert_eq!(scratch.list(), [] as [&str; 0]);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let scratch = Scratch::new("command-pipe");
    let mut child = scratch
        .command(&["trace", "synth", "5g"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_scenario_runs_with_its_traces_beside_it() {
    let scratch = Scratch::new("command-run");
    scratch.write("inner/own.down", (1..=1000).map(|ms| format!("{ms}\n")).collect::<String>());
    let toml = support::TWO_FLOWS.replacen("rate = \"12Mbps\"", "trace = \"own.down\"", 1);
    scratch.write("inner/two.toml", toml);
    let document =
        json(&ok(&scratch.brakelight(&["run", "inner/two.toml", "--format", "json", "--runs", "2"])));
    let row = &document["runs"][0];
    assert_eq!(row["flows"].as_array().unwrap().len(), 2);
    assert_eq!(row["links"][1]["name"], "second");
    assert!(row["jain"].as_f64().unwrap() > 0.5, "{row}");
    let table = ok(&scratch.brakelight(&["run", "inner/two.toml"]));
    for word in ["first", "second", "early", "late", "Jain"] {
        assert!(table.contains(word), "{word} in {table}");
    }
    let quic =
        json(&ok(&scratch.brakelight(&["run", "inner/two.toml", "--host", "quic", "--format", "json"])));
    assert_ne!(quic["runs"][0]["goodput_mbps"], row["goodput_mbps"], "another host has other headers");
}

#[test]
fn lists_show_what_the_registry_holds() {
    let scratch = Scratch::new("command-list");
    for (kind, entries) in [
        ("controllers", brakelight_registry::CONTROLLERS),
        ("queues", brakelight_registry::QUEUES),
        ("feedbacks", brakelight_registry::FEEDBACKS),
        ("elements", brakelight_links::elements::ELEMENTS),
        ("radios", brakelight_links::elements::RADIOS),
        ("setters", brakelight_links::shaper::SETTERS),
        ("applications", brakelight_scenario::file::APPLICATIONS),
    ] {
        let document = json(&ok(&scratch.brakelight(&["list", kind, "--format", "json"])));
        let table = ok(&scratch.brakelight(&["list", kind]));
        let listed = document[kind].as_array().unwrap();
        // With each of the features `onnx` and `wasm` the command has one more.
        let features = usize::from(cfg!(feature = "onnx")) + usize::from(cfg!(feature = "wasm"));
        let added = if kind == "controllers" { features } else { 0 };
        assert_eq!(listed.len(), entries.len() + added, "{kind}");
        for (entry, listed) in entries.iter().zip(listed) {
            assert_eq!(listed["name"], entry.name);
            assert_eq!(listed["parameters"].as_array().unwrap().len(), entry.parameters().len());
            assert!(table.contains(entry.summary.split(' ').next().unwrap()), "{}", entry.name);
        }
        assert!(!table.contains("  any  "), "choices are named: {table}");
    }
    scratch.write("mine/commute.down", "10\n20\n");
    scratch.write("mine/readme.txt", "not a trace");
    let listed =
        scratch.command(&["list", "traces", "--format", "json"]).env("BRAKELIGHT_TRACES", "mine").output();
    let traces = json(&ok(&listed.unwrap()));
    let names: Vec<&str> =
        traces["traces"].as_array().unwrap().iter().map(|trace| trace["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"lte-driving") && names.contains(&"commute.down"), "{names:?}");
    assert_eq!(
        traces["traces"].as_array().unwrap().last().unwrap()["mean_mbps"],
        Value::Null,
        "a file that is none"
    );
}

#[test]
fn schemas_are_one_document_each_with_a_version() {
    let scratch = Scratch::new("command-schema");
    for document in ["scenario", "outcome", "experiment", "attack"] {
        let schema = json(&ok(&scratch.brakelight(&["schema", document])));
        assert_eq!(schema["$id"], format!("urn:brakelight:schema:{document}:1"));
        assert!(schema["properties"].is_object(), "{schema}");
    }
}

#[test]
fn an_attack_writes_a_scenario_that_replays_to_the_number_it_says() {
    let scratch = Scratch::new("command-attack");
    let bounds = "duration=2s,rate=1Mbps..6Mbps,rtt=40ms";
    let attack = |more: &[&str]| {
        let words =
            ["attack", "cubic", "--space", "steps", "--bounds", bounds, "--budget", "24", "--out", "worst"];
        ok(&scratch.brakelight(&[&words, more].concat()))
    };
    let found = json(&attack(&["--format", "json"]));
    assert_eq!((&found["objective"], &found["links"]), (&Value::from("delay"), &Value::from(24)));
    assert!(found["origin"]["command"].as_str().unwrap().contains("attack cubic"), "{found}");
    let schema = json(&ok(&scratch.brakelight(&["schema", "attack"])));
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&schema["properties"]), keys(&found));
    let run = json(&ok(&scratch.brakelight(&["run", "worst/worst.toml", "--format", "json"])));
    let reference = json(&ok(&scratch.brakelight(&["run", "worst/reference.toml", "--format", "json"])));
    let p95 = |run: &Value| run["runs"][0]["flows"][0]["queueing_delay_ms"]["p95"].as_f64().unwrap();
    let damage = found["damage"].as_f64().unwrap();
    assert!((p95(&run) - p95(&reference) - damage).abs() < 1e-9 && damage > 0.0, "{damage}");
    // The same command goes on, here from its end, and says the same.
    let table = attack(&[]);
    assert!(
        table.starts_with("cubic: the worst of 24 links, steps\n") && table.contains("capacity: "),
        "{table}"
    );
}

#[test]
fn traces_are_made_shown_and_converted_back_and_forth() {
    let scratch = Scratch::new("command-trace");
    let synth =
        |seed: &str| ok(&scratch.brakelight(&["trace", "synth", "3g", "--duration", "5s", "--seed", seed]));
    assert_eq!(synth("4"), synth("4"));
    assert_ne!(synth("4"), synth("5"));
    ok(&scratch.brakelight(&[
        "trace",
        "synth",
        "3g",
        "--duration",
        "5s",
        "--seed",
        "4",
        "--out",
        "own.down",
    ]));
    assert_eq!(std::fs::read_to_string(scratch.path("own.down")).unwrap(), synth("4"));
    let statistics = json(&ok(&scratch.brakelight(&["trace", "show", "own.down", "--format", "json"])));
    assert_eq!(statistics["statistics"]["duration_s"], 5.0);
    let shown = ok(&scratch.brakelight(&["trace", "show", "own.down"]));
    assert!(shown.contains("mean rate") && shown.contains("Mbit/s"), "{shown}");
    ok(&scratch
        .brakelight(&["trace", "convert", "own.down", "--to", "csv", "--bin", "1s", "--out", "own.csv"]));
    let back = ok(&scratch.brakelight(&["trace", "convert", "own.csv"]));
    let lines = |text: &str| text.lines().count() as i64;
    assert!((lines(&back) - lines(&synth("4"))).abs() <= 1, "as many opportunities as before");
}

#[test]
fn an_unwritable_standard_output_is_said() {
    if !std::path::Path::new("/dev/full").exists() {
        brakelight_testkit::skip("a full device", "there is no /dev/full");
        return;
    }
    let scratch = Scratch::new("command-full");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = scratch.command(&["list", "traces"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).starts_with("error: standard output cannot be written"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn claims_are_judged_and_those_without_their_recordings_say_so() {
    let scratch = Scratch::new("command-reproduce");
    let document = json(&ok(&scratch.brakelight(&["reproduce", "ABC-U1", "abc-f1", "--format", "json"])));
    let claims = document["claims"].as_array().unwrap();
    let verdict = |id: &str| {
        let verdicts: Vec<&str> = claims
            .iter()
            .filter(|claim| claim["id"] == id)
            .map(|claim| claim["verdict"].as_str().unwrap())
            .collect();
        assert!(!verdicts.is_empty(), "{id} in {document}");
        verdicts
    };
    assert_eq!(verdict("ABC-U1"), ["holds"]);
    assert!(verdict("ABC-F1").iter().all(|verdict| *verdict == "needs-recordings"));
    assert!(claims.iter().all(|claim| claim["id"] != "ABC-F12"), "a beginning ends at a hyphen");
    let table = ok(&scratch.brakelight(&["reproduce", "ABC-U1"]));
    assert!(table.contains("1 claim: 1 holds"), "{table}");
    scratch.write(
        "mine.toml",
        "id = \"MINE\"\ntitle = \"Mine\"\nsource = \"me\"\nschemes = [\"vegas\"]\ntraces = [\"fixed\"]\nseeds = 1\n\
         duration = \"5s\"\n[[claim]]\nclaim = \"it sends\"\ncheck = \"utilization > 0.1\"\n",
    );
    let document = json(&ok(&scratch.brakelight(&["reproduce", "mine.toml", "--format", "json"])));
    let claims = document["claims"].as_array().unwrap();
    assert_eq!((claims.len(), &claims[0]["id"], &claims[0]["verdict"]), (1, &"MINE".into(), &"holds".into()));
    let (all, each) = (&document["summary"], &document["experiments"][0]);
    assert_eq!(
        (&all["holds"], &all["fails"], &each["id"], &each["holds"]),
        (&1.into(), &0.into(), &"MINE".into(), &1.into())
    );
    // The bound is kept.
    assert_eq!((&all["error"]["numbers"], &each["error"]["mean"]), (&1.into(), &0.0.into()));
}

#[test]
fn a_quick_look_at_the_claims_says_what_it_leaves_out() {
    let scratch = Scratch::new("command-quick");
    let file = |id: &str, seconds: u32| {
        format!(
            "id = \"{id}\"\ntitle = \"t\"\nsource = \"me\"\nschemes = [\"vegas\"]\ntraces = [\"fixed\"]\nseeds = 2\n\
             duration = \"{seconds}s\"\n[[claim]]\nclaim = \"it sends\"\ncheck = \"utilization > 0.1\"\n"
        )
    };
    scratch.write("short.toml", file("SHORT", 5));
    scratch.write("long.toml", file("LONG", 250_000));
    let output = scratch.brakelight(&[
        "reproduce",
        "short.toml",
        "long.toml",
        "--quick",
        "--out",
        "rows",
        "--format",
        "json",
    ]);
    let said = text(&output.stderr).to_string();
    assert!(
        said.contains("one seed of each run") && said.contains("left out for their length: LONG"),
        "{said}"
    );
    let document = json(&ok(&output));
    let claims = document["claims"].as_array().unwrap();
    assert_eq!((claims.len(), &claims[0]["id"]), (1, &"SHORT".into()));
    // One of its two seeds, below the heading.
    assert_eq!(std::fs::read_to_string(scratch.path("rows/runs.csv")).unwrap().lines().count(), 2);
}

#[test]
fn a_row_of_the_benchmark_is_a_process_of_its_own() {
    let scratch = Scratch::new("command-bench");
    let row = json(&ok(&scratch.brakelight(&["bench", "--row", "S1"])));
    // 12 Mbit/s for 60 s are 60,000 packets of 1500 bytes.
    let packets = row["packets"].as_f64().unwrap();
    assert!((57_000.0..60_000.0).contains(&packets), "{row}");
    assert!(
        (row["packets_per_s"].as_f64().unwrap() * row["wall_s"].as_f64().unwrap() / packets - 1.0).abs()
            < 1e-9
    );
    assert!(row["peak_rss_mb"].as_f64().unwrap() < 100.0, "{row}");
    assert_eq!(scratch.brakelight(&["bench", "--row", "S9"]).status.code(), Some(2));
}
