//! Hosts from outside in the command: what it says without them, and what it does with them.
#![cfg(unix)]

mod support;

use support::{Scratch, text};

#[cfg(not(feature = "stacks"))]
#[test]
fn a_host_that_is_not_built_in_says_how_to_build_it() {
    let scratch = Scratch::new("stacks-missing");
    let file =
        "[[link]]\nname = \"up\"\nrate = \"12Mbps\"\n[[flow]]\ncontroller = \"noq/bbr3\"\npath = [\"up\"]\n";
    scratch.write("flow.toml", file);
    let compare = ["compare", "--trace", "step", "--schemes", "quinn/cubic+codel"];
    for arguments in [&compare[..], &["run", "flow.toml"]] {
        let output = scratch.brakelight(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains("there is no host `") && error.contains("list hosts"), "{error}");
    }
    assert!(text(&scratch.brakelight(&["list", "hosts"]).stdout).contains("There are none."));
}

#[cfg(feature = "stacks")]
mod built_in {
    use std::path::Path;
    use std::process::Command;

    use serde_json::Value;

    use super::{Scratch, text};
    use crate::support::ok;

    fn json(output: &std::process::Output) -> Value {
        serde_json::from_str(&ok(output)).expect("a document")
    }

    #[test]
    fn lists_say_what_the_hosts_are() {
        let scratch = Scratch::new("stacks-lists");
        let hosts = json(&scratch.brakelight(&["list", "hosts", "--format", "json"]));
        let hosts = hosts["hosts"].as_array().unwrap();
        let names: Vec<&str> = hosts.iter().map(|host| host["name"].as_str().unwrap()).collect();
        let in_c: &[&str] = if cfg!(feature = "stacks-c") { &["quiche"] } else { &[] };
        assert_eq!(names, [&["quinn", "noq", "brakelight-noq", "s2n-quic", "str0m"], in_c].concat());
        for host in hosts {
            let (licence, controllers) = match host["name"].as_str().unwrap() {
                "quiche" => ("BSD-2-Clause", 3),
                "brakelight-noq" => ("MIT OR Apache-2.0", 5),
                "s2n-quic" => ("Apache-2.0", 2),
                "str0m" => ("MIT OR Apache-2.0", 1),
                _ => ("MIT OR Apache-2.0", 3),
            };
            assert_eq!(host["licence"], licence, "{host}");
            assert_eq!(host["version"].as_str().unwrap().split('.').count(), 3, "{host}");
            assert_eq!(host["controllers"].as_array().unwrap().len(), controllers, "{host}");
            let shows = host["shows"].as_array().unwrap();
            assert_eq!(shows.iter().any(|name| name == "mtu_bytes"), host["name"] != "str0m", "{host}");
        }
        let table = ok(&scratch.brakelight(&["list", "hosts"]));
        assert!(table.contains("quinn/bbr") && table.contains("MIT OR Apache-2.0"), "{table}");
        let schemes = json(&scratch.brakelight(&["list", "schemes", "--format", "json"]));
        let rows = schemes["schemes"].as_array().unwrap();
        let row = rows.iter().find(|row| row["scheme"] == "noq/bbr3").unwrap();
        assert_eq!(row["host"], "noq");
    }

    #[test]
    fn wrong_names_and_options_are_one_line_and_exit_code_2() {
        let scratch = Scratch::new("stacks-wrong");
        for (scheme, reason) in [
            ("quinn/cubik", "did you mean `quinn/cubic`?"),
            ("quic/cubic", "there is no host `quic`"),
            ("quinn/cubic:initial_windw=3", "did you mean `initial_window`?"),
            ("noq/bbr3:initial_window=0", "valid is 1 to 10000"),
            ("quinn/newreno:beta=high", "beta = `high` is not"),
            ("s2n-quic/bbr:initial_window=0", "valid is 1 to 10000"),
            ("s2n-quic/bbr3", "did you mean `s2n-quic/bbr`?"),
        ] {
            let output = scratch.brakelight(&["compare", "--trace", "step", "--schemes", scheme]);
            let error = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{scheme}: {error}");
            assert!(error.lines().count() == 1 && error.contains(reason), "{scheme}: {error}");
        }
    }

    #[test]
    fn where_only_our_controllers_can_be_a_host_s_is_refused() {
        let scratch = Scratch::new("stacks-refused");
        let file = "[[link]]\nname = \"up\"\nrate = \"12Mbps\"\n[[flow]]\ncontroller = \"quinn/cubic\"\npath = [\"up\"]\n";
        scratch.write("flow.toml", file);
        scratch.write("beside.toml", format!("{file}[[flow]]\ncontroller = \"cubic\"\npath = [\"up\"]\n"));
        scratch.write("small.toml", format!("{file}mss = \"1000B\"\n"));
        for (arguments, reason) in [
            (&["run", "flow.toml", "--host", "quinn"][..], "leave --host out"),
            (&["run", "flow.toml", "--host", "tcp"], "leave --host out"),
            (&["run", "beside.toml", "--on", "emulator"], "the emulator's hosts are QUIC: valid is `quic`"),
            (&["run", "small.toml", "--on", "emulator"], "its packets are too small for `quinn/cubic`"),
            (&["parity", "beside.toml", "--host", "stacks"], "`cubic` lives in no stack of others"),
            (&["perf", "localhost", "--controller", "quinn/cubic"], "`quinn/cubic` runs in its own host"),
        ] {
            let output = scratch.brakelight(arguments);
            let error = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
            assert!(error.contains(reason), "{arguments:?}: {error}");
        }
    }

    #[test]
    fn schemes_of_hosts_run_wherever_schemes_do() {
        let scratch = Scratch::new("stacks-run");
        let schemes = "quinn/newreno,quinn/cubic+codel,quinn/bbr,noq/newreno,noq/cubic:initial_window=32,noq/bbr3,\
                       s2n-quic/cubic:initial_window=32,s2n-quic/bbr+codel";
        let compare = [
            "compare",
            "--trace",
            "fixed",
            "--schemes",
            schemes,
            "--duration",
            "3s",
            "--runs",
            "1",
            "--format",
            "json",
        ];
        let rows = json(&scratch.brakelight(&compare));
        let rows = rows["runs"].as_array().unwrap();
        assert_eq!(rows.len(), 8);
        for row in rows {
            assert!(row["utilization"].as_f64().unwrap() > 0.5, "{row}");
        }
        let against = [
            "compare",
            "--trace",
            "fixed",
            "--schemes",
            "noq/cubic",
            "--against",
            "cubic",
            "--duration",
            "3s",
            "--runs",
            "2",
        ];
        assert!(ok(&scratch.brakelight(&against)).contains("noq/cubic"));
        scratch.write(
            "grid.toml",
            "[axes]\nscheme = [\"quinn/cubic\", \"noq/bbr3\"]\ntrace = \"fixed\"\nduration = \"2s\"\n",
        );
        let rows = ok(&scratch.brakelight(&["sweep", "grid.toml"]));
        assert_eq!(rows.lines().count(), 3, "{rows}");
        assert_eq!(rows, ok(&scratch.brakelight(&["sweep", "grid.toml"])), "the same bytes");
    }

    #[cfg(feature = "stacks-c")]
    #[test]
    fn schemes_of_quiche_run_as_others_do() {
        let scratch = Scratch::new("stacks-quiche");
        let schemes = "quiche/reno,quiche/cubic+codel,quiche/bbr2:initial_window=32";
        let run = ["compare", "--trace", "fixed", "--schemes", schemes, "--duration", "3s", "--runs", "1"];
        let format = ["--format", "json"];
        let rows = json(&scratch.brakelight(&[&run[..], &format].concat()));
        let rows = rows["runs"].as_array().unwrap();
        assert_eq!(rows.len(), 3);
        for row in rows {
            assert!(row["utilization"].as_f64().unwrap() > 0.5, "{row}");
        }
    }

    #[test]
    fn a_flow_of_a_host_has_the_curves_of_any_other() {
        let scratch = Scratch::new("stacks-curves");
        let run = ["compare", "--trace", "fixed", "--schemes", "noq/bbr3", "--duration", "2s", "--runs", "1"];
        ok(&scratch.brakelight(&[&run[..], &["--out", "out", "--series", "csv"]].concat()));
        let series =
            scratch.list().into_iter().find(|path| path.contains(".flow-")).expect("a flow's series");
        let series = std::fs::read_to_string(scratch.path(&series)).unwrap();
        let heading = series.lines().next().unwrap();
        for column in ["throughput_mbps", "cwnd_bytes", "inflight_bytes", "rtt_ms", "pacing_rate_bps"] {
            assert!(heading.split(',').any(|name| name == column), "{column}: {heading}");
        }
    }

    /// Two stacks and ours beside them over real sockets, each with its application of the simulation.
    #[cfg(target_os = "linux")]
    #[test]
    fn stacks_on_the_emulator_give_the_rows_of_their_simulation() {
        use crate::support::{judge, unreliable};
        if !crate::support::world::can_emulate("stacks on the emulator") {
            return;
        }
        let scratch = Scratch::new("stacks-emulated");
        let mut file =
            "duration = \"4s\"\nmeasure_from = \"1s\"\n[[link]]\nname = \"up\"\nrate = \"8Mbps\"\n\
                        buffer = \"40pkt\"\n"
                .to_string();
        for (name, more) in [
            ("quinn/cubic", ""),
            ("s2n-quic/cubic", "traffic = { kind = \"size\", size = \"1MB\" }\n"),
            ("newreno", "host = \"quic\"\n"),
        ] {
            file += &format!("[[flow]]\ncontroller = \"{name}\"\n{more}rtt = \"20ms\"\npath = [\"up\"]\n");
        }
        scratch.write("three.toml", &file);
        let line = ["run", "three.toml", "--format", "json"];
        let simulated = json(&scratch.brakelight(&line))["runs"][0].clone();
        judge("stacks on the emulator", || {
            let output = scratch.brakelight(&[&line[..], &["--on", "emulator"]].concat());
            let emulated = json(&output)["runs"][0].clone();
            (agree(&emulated, &simulated), unreliable(&text(&output.stderr)))
        });
    }

    /// What is wrong with three flows of the emulator beside those of the simulation.
    #[cfg(target_os = "linux")]
    fn agree(emulated: &Value, simulated: &Value) -> Result<(), String> {
        let check = |holds: bool, what: String| if holds { Ok(()) } else { Err(what) };
        // The link is full in both.
        for name in ["/throughput_mbps", "/queueing_delay_ms/p50"] {
            let [there, here] =
                [emulated, simulated].map(|run| run.pointer(name).and_then(Value::as_f64).unwrap());
            check((0.5..2.0).contains(&(there / here)), format!("{name}: {there}, simulated {here}"))?;
        }
        let [there, here] = [emulated, simulated].map(|run| run["flows"].as_array().unwrap());
        assert_eq!(there.len(), here.len());
        for (flow, other) in there.iter().zip(here) {
            assert_eq!((&flow["name"], &flow["controller"]), (&other["name"], &other["controller"]));
            check(flow["goodput_mbps"].as_f64().unwrap() > 0.1, format!("goodput_mbps: {flow}"))?;
            check(flow["rtt_ms"]["p50"].as_f64().is_some_and(|rtt| rtt >= 20.0), format!("rtt_ms: {flow}"))?;
        }
        let completion = emulated.pointer("/flows/1/application/completion_ms").and_then(Value::as_f64);
        check(completion.is_some_and(|ms| ms > 0.0), format!("completion_ms: {}", emulated["flows"][1]))
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn parity_of_a_stack_holds_it_against_itself() {
        if !crate::support::world::can_emulate("parity of a stack") {
            return;
        }
        let scratch = Scratch::new("stacks-parity");
        let file = "duration = \"3s\"\n[[link]]\nname = \"up\"\nrate = \"8Mbps\"\nbuffer = \"40pkt\"\n\
                    [[flow]]\ncontroller = \"noq/newreno\"\nrtt = \"20ms\"\npath = [\"up\"]\n";
        scratch.write("one.toml", file);
        let line = ["parity", "one.toml", "--host", "stacks", "--runs", "2", "--format", "json"];
        let output = scratch.brakelight(&line);
        let document: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
        let row = &document["rows"][0];
        let cells = row["cells"].as_array().unwrap();
        let bars: Vec<f64> =
            cells.iter().map(|cell| cell["tolerance_percent"].as_f64().unwrap().round()).collect();
        assert_eq!(bars, [3.0, 15.0]);
        assert_eq!((&row["simulator"]["runs"], &row["emulator"]["runs"]), (&10.into(), &2.into()));
        let within = cells
            .iter()
            .all(|cell| cell["off_percent"].as_f64().unwrap() <= cell["tolerance_percent"].as_f64().unwrap());
        assert_eq!(row["verdict"], if within { "within" } else { "outside" });
        assert_eq!(output.status.code(), Some(if within { 0 } else { 1 }), "{}", text(&output.stderr));
    }

    #[test]
    fn a_connection_that_its_stack_ends_is_a_warning_with_its_time() {
        let scratch = Scratch::new("stacks-gaps");
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/stacks/too-many-gaps.toml");
        let output = scratch.brakelight(&["run", file.to_str().unwrap()]);
        let error = text(&output.stderr);
        assert!(ok(&output).contains("UNRELIABLE"));
        assert!(error.contains("its connection ended at 1.") && error.contains("too many gaps"), "{error}");
    }

    /// Those that are marked by `needs=stacks`, which `guides.rs` does not run.
    #[test]
    fn the_commands_of_the_guide_run() {
        let scratch = Scratch::new("stacks-guide");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let page = std::fs::read_to_string(root.join("docs/guides/stacks.md")).unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_brakelight"));
        let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
        let mut ran = 0;
        for block in page.split("```sh,needs=stacks").skip(1) {
            let (mark, rest) = block.split_once('\n').unwrap();
            let script = rest.split_once("```").unwrap().0;
            let folder = if mark == ",in=clone" { root.clone() } else { scratch.path("") };
            let mut shell = Command::new("sh");
            shell.args(["-euc", script]).current_dir(folder).env("PATH", &path);
            ok(&shell.output().unwrap());
            ran += 1;
        }
        assert_eq!(ran, 3);
    }
}
