//! What `compare` assumes where nothing is asked for, and what it says of it.

use serde_json::Value;

use super::json;
use crate::support::{Scratch, ok};

/// A file with this many delivery opportunities in every millisecond of a second.
fn steady(scratch: &Scratch, name: &str, per_millisecond: usize) {
    let line = |ms: usize| format!("{ms}\n").repeat(per_millisecond);
    scratch.write(name, (1..=1000).map(line).collect::<String>());
}

/// The rows of a comparison.
fn rows(scratch: &Scratch, arguments: &[&str]) -> Vec<Value> {
    let output = scratch.brakelight(&[&["compare", "--format", "json"], arguments].concat());
    json(&ok(&output))["runs"].as_array().unwrap().clone()
}

#[test]
fn a_fast_link_is_not_held_back_by_its_acks() {
    let scratch = Scratch::new("compare-acks");
    // 746 Mbit/s: an ACK for every second packet takes 14 Mbit/s.
    steady(&scratch, "fast.down", 62);
    let fast = ["--trace", "fast.down", "--schemes", "cubic", "--rtt", "20ms", "--buffer", "4MB"];
    let used = |more: &[&str]| {
        let rows = rows(&scratch, &[&fast[..], &["--duration", "4s", "--runs", "1"], more].concat());
        rows[0]["utilization"].as_f64().unwrap()
    };
    let (free, limited) = (used(&[]), used(&["--reverse", "12Mbps"]));
    assert!(free > 0.93 && limited < 0.9, "{free} without a limit, {limited} with 12 Mbit/s back");
}

#[test]
fn a_recording_is_run_to_its_end() {
    let scratch = Scratch::new("compare-whole");
    scratch.write("long.down", (1..=700).map(|i| format!("{}\n", 100 * i)).collect::<String>());
    let rows = rows(&scratch, &["--trace", "long.down", "--schemes", "cubic", "--runs", "1"]);
    assert_eq!(rows[0]["duration_s"], 70.0);
}

#[test]
fn a_buffer_holds_what_a_fast_path_does() {
    let scratch = Scratch::new("compare-buffer");
    // 240 Mbit/s and 100 ms are 2,000 packets.
    steady(&scratch, "fast.down", 20);
    let rows =
        rows(&scratch, &["--trace", "fast.down", "--schemes", "newreno", "--duration", "10s", "--runs", "1"]);
    assert!(rows[0]["utilization"].as_f64().unwrap() > 0.9, "{}", rows[0]);
}

#[test]
fn what_is_assumed_stands_above_the_table_and_in_every_row() {
    let scratch = Scratch::new("compare-setup");
    steady(&scratch, "fast.down", 5);
    let fast = ["--trace", "fast.down", "--schemes", "abc,cubic", "--duration", "2s"];
    let output = scratch.brakelight(&[&["compare"], &fast[..]].concat());
    let table = ok(&output);
    let above = table.split("fast.down").next().unwrap();
    for said in [
        "RTT            100ms",
        "buffer         500pkt",
        "return path    no limit",
        "length         2s",
        "runs           8, seeds 1 to 8",
        "opportunities  spread over their millisecond, a grid of the file (0 % in bursts)",
    ] {
        assert!(above.contains(said), "{said} in {above}");
    }
    assert!(table.contains(" ± "), "{table}");
    let document = json(&ok(&scratch.brakelight(&[&["compare", "--format", "json"], &fast[..]].concat())));
    let (rows, every) = (document["runs"].as_array().unwrap(), document["every_run"].as_array().unwrap());
    assert_eq!((rows.len(), every.len()), (2, 16));
    for row in rows {
        assert_eq!(row["setup"]["rtt_ms"], 100.0);
        assert_eq!((&row["setup"]["buffer"], &row["setup"]["reverse"]), (&"500pkt".into(), &"none".into()));
        assert_eq!(row["setup"]["trace_offset_s"], Value::Null, "each run has its own");
        assert_eq!(row["run_id"].as_str().map(str::len), Some(32));
        let throughput = row["throughput_mbps"].as_f64().unwrap();
        let interval = &row["interval95"]["throughput_mbps"];
        assert!(interval[0].as_f64().unwrap() <= throughput && throughput <= interval[1].as_f64().unwrap());
    }
    let places: Vec<f64> =
        every[..8].iter().map(|run| run["setup"]["trace_offset_s"].as_f64().unwrap()).collect();
    assert_eq!(places, [0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875]);
    assert_eq!(rows[1]["versus"]["scheme"], "abc");
    let papers = rows_of_the_papers(&scratch);
    let setup = &papers[0]["setup"];
    assert_eq!((&setup["buffer"], &setup["reverse"]), (&"250pkt".into(), &"12Mbps".into()));
    assert_eq!(setup["trace_offset_s"], 0.0);
    assert!((papers[0]["duration_s"].as_f64().unwrap() - 60.0).abs() < 1e-9);
    assert!(papers[0].get("spread").is_none(), "one run");
}

fn rows_of_the_papers(scratch: &Scratch) -> Vec<Value> {
    rows(scratch, &["--trace", "3g", "--schemes", "cubic", "--setup", "mahimahi"])
}

#[test]
fn every_run_is_a_row_of_the_csv() {
    let scratch = Scratch::new("compare-csv");
    let table = ok(&scratch.brakelight(&[
        "compare",
        "--trace",
        "fixed",
        "--schemes",
        "abc,cubic",
        "--runs",
        "3",
        "--duration",
        "1s",
        "--against",
        "newreno",
        "--format",
        "csv",
    ]));
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    let column =
        |name: &str| lines[0].iter().position(|own| *own == name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(lines.len(), 1 + 9, "ABC with a second queue, without, and Cubic: {table}");
    for (index, line) in lines[1..].iter().enumerate() {
        assert_eq!(line[column("seed")], ["1", "2", "3"][index % 3]);
        assert_eq!(line[column("rtt_ms")], "100");
        assert_eq!(line[column("buffer")], "250pkt");
        assert_eq!(line[column("reverse")], "none");
        assert_eq!(line[column("trace_offset_s")], ["0", "20", "40"][index % 3]);
        assert_eq!(line[column("trace_spread")], "false");
        assert_eq!(line[column("against")], "newreno");
        assert!(line[column("share")].parse::<f64>().is_ok());
    }
    let ids: std::collections::BTreeSet<&str> =
        lines[1..].iter().map(|line| line[column("run_id")]).collect();
    assert_eq!(ids.len(), 9);

    let spread = ["compare", "--trace", "fixed", "--schemes", "abc", "--duration", "1s", "--spread"];
    let table = ok(&scratch.brakelight(&[&spread[..], &["--runs", "2", "--format", "csv"]].concat()));
    let column = table.lines().next().unwrap().split(',').position(|own| own == "trace_spread").unwrap();
    let said: Vec<&str> = table.lines().skip(1).map(|line| line.split(',').nth(column).unwrap()).collect();
    assert_eq!(said, ["true", "true"]);
}

#[test]
fn beside_a_competitor_the_measured_flow_stands_alone_and_a_bully_ranks_low() {
    let scratch = Scratch::new("compare-against");
    let shared = ["--trace", "fixed", "--schemes", "abc,cubic,copa", "--against", "cubic"];
    let shared = [&shared[..], &["--duration", "10s", "--runs", "4"]].concat();
    let rows = rows(&scratch, &shared);
    let names: Vec<&str> = rows.iter().map(|row| row["scheme"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["abc+abc_dual", "abc", "cubic", "copa"],
        "ABC's router with and without a second queue"
    );
    let queues: Vec<&str> = rows.iter().map(|row| row["links"][0]["queue"].as_str().unwrap()).collect();
    assert_eq!(queues, ["abc_dual", "abc", "droptail", "droptail"]);
    for row in &rows {
        let fairness = &row["fairness"];
        let number = |key: &str| fairness[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"));
        // The row's numbers are medians, each by itself.
        assert!((number("own_mbps") - row["flows"][0]["throughput_mbps"].as_f64().unwrap()).abs() < 1e-9);
        let own = row["flows"][0]["queueing_delay_ms"]["p95"].as_f64().unwrap();
        assert_eq!(row["queueing_delay_ms"]["p95"].as_f64(), Some(own), "the measured flow's alone");
        assert!((0.0..=1.0).contains(&number("share")) && row["jain"].as_f64().unwrap() >= 0.5);
        assert!(number("harm_throughput") < 1.0 && number("harm_delay") > -1.0);
    }
    let delay = |row: &Value, flow: usize| row["flows"][flow]["queueing_delay_ms"]["p95"].as_f64().unwrap();
    assert!(
        delay(&rows[0], 0) < 0.6 * delay(&rows[0], 1),
        "the second queue keeps ABC's packets apart: {}",
        rows[0]
    );
    // Beside its own kind a scheme does no harm but by chance.
    assert!(rows[2]["fairness"]["harm_delay"].as_f64().unwrap().abs() < 0.2, "{}", rows[2]);
    let table = ok(&scratch.brakelight(&[&["compare"], &shared[..]].concat()));
    for column in ["own", "competitor", "share", "Jain", "harm"] {
        assert!(table.contains(column), "{column} in {table}");
    }
}

#[test]
fn a_second_queue_that_is_in_the_list_is_compared_once() {
    let scratch = Scratch::new("compare-twice");
    let shared = ["--trace", "fixed", "--schemes", "abc,abc+abc_dual", "--against", "cubic"];
    let rows = rows(&scratch, &[&shared[..], &["--duration", "1s", "--runs", "1"]].concat());
    let names: Vec<&str> = rows.iter().map(|row| row["scheme"].as_str().unwrap()).collect();
    assert_eq!(names, ["abc+abc_dual", "abc"]);
}

#[test]
fn the_decision_comes_first_and_what_one_can_change_decides_what_is_compared() {
    let scratch = Scratch::new("compare-decision");
    scratch.write("two.toml", crate::support::TWO_FLOWS);
    let short = ["--trace", "fixed", "--duration", "2s", "--runs", "3"];
    let list = ["--schemes", "abc-adaptive,cubic,copa,bbr3,cubic+fq_codel,prague"];
    let table = ok(&scratch.brakelight(&[&["compare"], &short[..], &list].concat()));
    let first: Vec<&str> = table.lines().take(8).collect();
    assert!(first[0].starts_with("What to deploy"), "{table}");
    for start in ["senders only  ", "queue only    cubic+fq_codel", "both          "] {
        assert!(first.iter().any(|line| line.starts_with(start)), "{start} in {table}");
    }
    assert!(!table.contains("variant="), "a shorthand where there is one: {table}");
    assert!(table.contains("† its router is told the link's true rate"), "{table}");
    assert!(table.contains("abc-adaptive *†") && !table.contains("copa *†"), "{table}");
    let of = |can: &str| {
        let rows = rows(&scratch, &[&short[..], &list, &["--can", can]].concat());
        rows.iter().map(|row| row["scheme"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    let document =
        json(&ok(&scratch.brakelight(&[&["compare", "--format", "json"], &short[..], &list].concat())));
    let decision = &document["decision"];
    assert_eq!(decision["today"], "cubic");
    let choices = decision["choices"].as_array().unwrap();
    let changes: Vec<&str> = choices.iter().map(|it| it["change"].as_str().unwrap()).collect();
    assert_eq!(changes, ["senders", "queue", "both"]);
    for (choice, line) in choices.iter().zip(&first[4..]) {
        let best = choice["best"]["scheme"].as_str().unwrap();
        assert!(line.contains(&brakelight_scenario::scheme::short_name(best)), "{choice} and {line}");
    }
    assert!(choices[0]["next"]["scheme"].is_string() && choices[0]["significant"] == true, "{decision}");
    // A group of one has no runner-up.
    assert!(choices[1]["next"].is_null() && choices[1]["ahead"].is_null(), "{decision}");
    assert!(choices[2]["p95"]["value"].as_f64().unwrap() < 0.5, "{decision}");
    assert_eq!(
        choices[2]["best"],
        serde_json::json!({ "scheme": "abc:variant=adaptive", "link_rate": true })
    );
    let scenario = json(&ok(&scratch.brakelight(&["run", "two.toml", "--format", "json"])));
    assert!(scenario.get("decision").is_none(), "{scenario}");
    assert_eq!(of("senders"), ["cubic", "copa", "bbr3"]);
    assert_eq!(of("queue"), ["cubic", "cubic+fq_codel"]);
    assert_eq!(of("both").len(), 6);
    let row = &rows(&scratch, &[&short[..], &["--schemes", "abc-adaptive"]].concat())[0];
    assert_eq!(row["scheme"], "abc:variant=adaptive", "names in JSON stay");
    assert_eq!(row["deployment"], serde_json::json!({ "change": "both", "link_rate": true }));
}

#[test]
fn a_slow_start_is_told_with_what_marked_and_how_responsive_the_path_is() {
    let scratch = Scratch::new("compare-start");
    let short = ["--trace", "fixed", "--schemes", "prague,abc", "--duration", "15s", "--runs", "2"];
    let rows = rows(&scratch, &short);
    let number = |row: &Value, path: &str| {
        row.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path}: {row}"))
    };
    let [prague, abc] = &rows[..] else { panic!("two rows") };
    let (whole, later) = (number(prague, "/utilization"), number(prague, "/second_half/utilization"));
    assert!(whole < 0.7 && later > 0.85, "{whole} and {later}");
    assert_eq!(number(prague, "/second_half/from_s"), 7.5);
    let by = |part: &str| number(prague, &format!("/links/0/marked_by/{part}"));
    assert!(by("threshold") > 0.0 && by("overload") == 0.0, "{prague}");
    assert!(abc["links"][0].get("marked_by").is_none(), "its queue does not say it");
    for row in &rows {
        let rpm = number(row, "/responsiveness/rpm");
        let p98 = number(row, "/responsiveness/working_latency_p98_ms");
        // 100 ms and less than 60 ms of queue; the mean of the shortest is below the 98th percentile.
        assert!((400.0..=600.0).contains(&rpm), "{rpm}");
        assert!(60_000.0 / rpm <= p98 && p98 >= number(row, "/rtt_ms/p95"), "{row}");
    }
    let table = ok(&scratch.brakelight(&[&["compare"], &short[..]].concat()));
    assert!(table.contains("in the second half alone: ") && table.contains("prague 89"), "{table}");
    assert!(table.contains("marks of prague: "), "{table}");
}

#[test]
fn abc_without_its_router_is_told_with_the_fix() {
    let scratch = Scratch::new("compare-unmarked");
    scratch.write("two.toml", crate::support::TWO_FLOWS.replacen("\"cubic\"", "\"abc\"", 1));
    let said = |arguments: &[&str]| {
        let output = scratch.brakelight(arguments);
        ok(&output) + &crate::support::text(&output.stderr)
    };
    let fix = "queue = \"abc\" at link `first`";
    let run = said(&["run", "two.toml"]);
    assert!(run.contains("warning: controller `abc` gets no marks") && run.contains(fix), "{run}");
    let compared =
        ["compare", "--trace", "fixed", "--schemes", "abc+droptail,cubic", "--runs", "1", "--duration", "1s"];
    assert!(said(&compared).contains("caution: controller `abc` gets no marks"));
    assert!(
        said(&[&compared[..], &["--format", "csv"]].concat())
            .contains("warning: controller `abc` gets no marks")
    );
    let own =
        said(&["compare", "--trace", "fixed", "--schemes", "abc,cubic", "--runs", "1", "--duration", "1s"]);
    assert!(!own.contains("gets no marks"), "{own}");
}

#[test]
fn a_scheme_of_l4s_on_a_grid_of_milliseconds_is_told() {
    let scratch = Scratch::new("compare-grid");
    steady(&scratch, "grid.down", 4);
    let table = |schemes: &str, more: &[&str]| {
        let grid =
            ["compare", "--trace", "grid.down", "--schemes", schemes, "--runs", "1", "--duration", "1s"];
        ok(&scratch.brakelight(&[&grid[..], more].concat()))
    };
    let as_in_the_file = ["--spread=false"];
    let said = table("prague,cubic", &as_in_the_file);
    assert!(
        said.contains("caution: `prague` on traces in whole milliseconds") && said.contains("grid.down 4.0"),
        "{said}"
    );
    assert!(!table("cubic", &as_in_the_file).contains("whole milliseconds"));
    let said = table("prague,cubic", &[]);
    assert!(!said.contains("caution"), "{said}");
    let line = "opportunities  spread over their millisecond, a grid of the file (0 % in bursts)";
    assert!(said.contains(line), "{said}");
}
