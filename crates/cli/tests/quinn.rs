//! `run --host quinn`: the real QUIC stack in the simulator, beside the modelled host.

mod support;

use brakelight_testkit::part::check;
use serde_json::Value;
use support::{Scratch, ok};

fn scenario(controller: &str, queue: &str, more: &str) -> String {
    format!(
        r#"
name = "one flow"
duration = "20s"
measure_from = "2s"

[[link]]
name = "link"
rate = "12Mbps"
buffer = "100pkt"
queue = "{queue}"

[[flow]]
name = "main"
controller = "{controller}"
rtt = "50ms"
path = ["link"]
{more}
"#
    )
}

fn run(scratch: &Scratch, file: &str, host: &str) -> Value {
    let output = scratch.brakelight(&["run", file, "--host", host, "--format", "json"]);
    serde_json::from_str(&ok(&output)).unwrap()
}

fn number(run: &Value, path: &[&str]) -> f64 {
    path.iter().fold(run, |value, key| &value[*key]).as_f64().unwrap_or_else(|| panic!("{path:?} of {run}"))
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_does_not() {
    let scratch = Scratch::new("quinn-seed");
    scratch.write("a.toml", scenario("abc", "abc", "jitter = \"1ms\""));
    let arguments = ["run", "a.toml", "--host", "quinn", "--format", "csv"];
    let [first, second] = [0, 1].map(|_| ok(&scratch.brakelight(&arguments)));
    assert_eq!(first, second);
    let text = scenario("abc", "abc", "jitter = \"1ms\"")
        .replace("name = \"one flow\"", "name = \"one flow\"\nseed = 2");
    scratch.write("a.toml", text);
    assert_ne!(ok(&scratch.brakelight(&arguments)), first);
}

/// The modelled host follows RFC 9002, and so does the stack: what is between them is the handshake and the
/// sizes of frames. A controller whose marks, rate or receive times did not arrive would be far off.
#[test]
fn the_real_stack_does_as_the_modelled_host_does() {
    let scratch = Scratch::new("quinn-model");
    for (controller, queue) in [
        ("cubic", "droptail"),
        ("newreno", "droptail"),
        ("abc", "abc"),
        ("bbr", "droptail"),
        ("quicdc:threshold=20ms", "droptail"),
        ("bmcc", "bmcc"),
        ("prague", "dualpi2"),
    ] {
        scratch.write("a.toml", scenario(controller, queue, ""));
        let [model, real] = ["quic", "quinn"].map(|host| run(&scratch, "a.toml", host)["runs"][0].clone());
        let rate = |run| number(run, &["throughput_mbps"]);
        let delay = |run| number(run, &["queueing_delay_ms", "p95"]);
        let (used, queued) = (rate(&real) / rate(&model), delay(&real) - delay(&model));
        assert!((0.94..1.06).contains(&used), "{controller}: {} against {}", rate(&real), rate(&model));
        let slack = 3.0 + 0.3 * delay(&model);
        assert!(queued.abs() < slack, "{controller}: {} against {} ms", delay(&real), delay(&model));
    }
}

/// A flow alone on a link of 12 Mbit/s, 50 ms, for half a minute.
fn over(traffic: &str) -> String {
    let flow = format!("controller = \"cubic\"\nrtt = \"50ms\"\npath = [\"link\"]\ntraffic = {traffic}\n");
    format!(
        "duration = \"30s\"\n[[link]]\nname = \"link\"\nrate = \"12Mbps\"\nbuffer = \"100pkt\"\n[[flow]]\n{flow}"
    )
}

/// Every application over the modelled host and over the stack. What may lie between them is the handshake,
/// one round trip before the first byte and one and a half before the first request, and the headers of
/// frames, which are two packets in a hundred. Loss episodes fall elsewhere, which moves the mean of a
/// backlogged application by some per cent: 15 % leaves room for them, and for no segment or request that
/// comes twice or not at all.
#[test]
fn every_application_does_over_the_stack_as_over_the_modelled_host() {
    let scratch = Scratch::new("quinn-applications");
    // Name, most that the stack lies above or below in per cent, and beside that by so much.
    type Claim = (&'static str, f64, f64);
    let kinds: [(&str, &[Claim]); 9] = [
        ("{ kind = \"size\", size = \"3MB\" }", &[("completion_ms", 15.0, 60.0)]),
        ("{ kind = \"on-off\", on = \"1s\", off = \"2s\" }", &[("delivered_mbps", 15.0, 0.0)]),
        (
            "{ kind = \"rate-limited\", rate = \"2Mbps\" }",
            &[("offered_mbps", 1.0, 0.0), ("delivered_mbps", 2.0, 0.0)],
        ),
        (
            "{ kind = \"request-response\", request = \"4kB\", response = \"60kB\" }",
            &[("response_ms_p50", 15.0, 0.0), ("responses", 15.0, 0.0)],
        ),
        // Pauses at every length around the timeout after which a window starts over.
        (
            "{ kind = \"request-response\", request = \"4kB\", response = \"60kB\", think = \"100ms\" }",
            &[("response_ms_p50", 15.0, 0.0), ("responses", 15.0, 0.0)],
        ),
        ("\"game\"", &[("rtt_ms_p50", 3.0, 0.0), ("updates", 1.0, 0.0), ("updates_lost_percent", 0.0, 0.2)]),
        ("\"video\"", &[("bitrate_mbps", 15.0, 0.0), ("stalls", 0.0, 0.0), ("startup_ms", 15.0, 80.0)]),
        ("\"call\"", &[("bitrate_mbps", 5.0, 0.0), ("frame_delay_ms_p50", 15.0, 0.0), ("freezes", 0.0, 0.0)]),
        (
            "{ kind = \"short-flows\", per_second = 10, size = \"30kB\" }",
            // The handshake of each connection, and a fifth of what the rest takes: other draws, other
            // collisions.
            &[("completion_ms_p50", 20.0, 60.0), ("flows_completed", 25.0, 0.0)],
        ),
    ];
    for (traffic, claims) in kinds {
        scratch.write("a.toml", over(traffic));
        let [model, real] =
            ["quic", "quinn"].map(|host| run(&scratch, "a.toml", host)["runs"][0]["flows"][0].clone());
        for &(name, percent, beside) in claims {
            let of = |flow| number(flow, &["application", name]);
            let (model, real) = (of(&model), of(&real));
            let slack = model.abs() * percent / 100.0 + beside;
            assert!(
                (real - model).abs() <= slack + 1e-9,
                "{traffic}: {name} is {real}, with the model {model}"
            );
        }
        let said = |name: &str| number(&real, &["application", name]);
        let bytes = number(&real, &["goodput_mbps"]) * 30.0e6 / 8.0;
        if traffic.contains("request-response") {
            let whole = said("responses") * 60_000.0;
            // The flow starts within a round trip, and its goodput is of the time since then.
            let least = bytes * (30.0 - 0.05) / 30.0;
            assert!(bytes >= whole && least <= whole + 60_000.0, "{bytes} of {whole}");
        }
        if traffic.contains("short-flows") {
            assert!((0.0..5.0).contains(&(said("flows_started") - said("flows_completed"))), "{real}");
            let whole = said("flows_completed") * 30_000.0;
            assert!((whole - 10.0..whole + 5.0 * 30_000.0).contains(&bytes), "{bytes} of {whole}");
        }
    }
}

#[test]
fn losses_reordering_and_copies_on_the_way_are_survived() {
    let scratch = Scratch::new("quinn-damage");
    let text = scenario("cubic", "droptail", "traffic = { kind = \"size\", size = \"2MB\" }").replace(
        "path = [\"link\"]",
        "path = [\"loss:rate=0.01\", \"link\", \"reorder:rate=0.01,hold=5ms\", \"duplicate:rate=0.01\"]",
    );
    scratch.write("a.toml", text);
    let document = run(&scratch, "a.toml", "quinn");
    let flow = &document["runs"][0]["flows"][0];
    assert!(number(flow, &["application", "completion_ms"]) < 18_000.0, "{flow}");
}

#[test]
fn a_receiver_that_does_not_report_is_said_to_be_one() {
    let scratch = Scratch::new("quinn-report");
    scratch.write("a.toml", scenario("quicdc:threshold=20ms", "droptail", "feedback = \"delayed\""));
    let document = run(&scratch, "a.toml", "quinn");
    let row = &document["runs"][0];
    let flow = &row["flows"][0];
    assert_eq!(number(flow, &["application", "times_of_round_trips"]), 1.0);
    // The delay is bounded all the same.
    assert!(number(row, &["queueing_delay_ms", "p95"]) < 40.0, "{row}");
    scratch.write("a.toml", scenario("quicdc:threshold=20ms", "droptail", ""));
    let document = run(&scratch, "a.toml", "quinn");
    assert!(document["runs"][0]["flows"][0]["application"].is_null(), "{document}");
}

/// One flow's row of a page: throughput, queueing delay, losses, medians of three seeds.
fn cells(scratch: &Scratch, text: &str, host: &str) -> String {
    scratch.write("row.toml", text);
    let output = scratch.brakelight(&["run", "row.toml", "--host", host, "--runs", "3", "--format", "json"]);
    let document: Value = serde_json::from_str(&ok(&output)).unwrap();
    let run = &document["runs"][0];
    let delay = |name| number(run, &["queueing_delay_ms", name]);
    let (mbps, lost) = (number(run, &["throughput_mbps"]), number(run, &["loss_percent"]));
    format!("{mbps:.2} | {:.1} / {:.1} | {lost:.2}", delay("mean"), delay("p95"))
}

#[test]
fn the_page_says_what_model_and_stack_do() {
    let scratch = Scratch::new("quinn-page");
    let places = [
        ("12 Mbit/s, 50 ms, 100 packets", "rate = \"12Mbps\"\nbuffer = \"100pkt\"", "50ms", "\"link\""),
        (
            "the same, 1 % lost before it",
            "rate = \"12Mbps\"\nbuffer = \"100pkt\"",
            "50ms",
            "\"loss:rate=0.01\", \"link\"",
        ),
        ("`lte-driving`, 100 ms, 250 packets", "trace = \"lte-driving\"", "100ms", "\"link\""),
    ];
    let mut table = String::from(
        "| path | controller | modeled: Mbit/s | delay mean / p95 ms | lost % | real: Mbit/s | delay mean / p95 ms | lost % |\n|---|---|---|---|---|---|---|---|\n",
    );
    for (place, link, rtt, path) in places {
        for (controller, queue) in [
            ("cubic", "droptail"),
            ("newreno", "droptail"),
            ("abc", "abc"),
            ("quicdc", "droptail"),
            ("bbr", "droptail"),
        ] {
            let text = format!(
                "duration = \"30s\"\n[[link]]\nname = \"link\"\n{link}\nqueue = \"{queue}\"\n[[flow]]\ncontroller = \"{controller}\"\nrtt = \"{rtt}\"\npath = [{path}]\n"
            );
            let [model, real] = ["quic", "quinn"].map(|host| cells(&scratch, &text, host));
            table += &format!("| {place} | `{controller}` | {model} | {real} |\n");
        }
    }
    check("../quic", "hosts", &table);
}

#[test]
fn the_page_says_what_rare_acks_cost_abc() {
    let scratch = Scratch::new("quinn-acks");
    let mut table = String::from(
        "| link | packets per ACK | modeled, bursts of 10: Mbit/s | delay mean / p95 ms | lost % | real, bursts of 10: Mbit/s | delay mean / p95 ms | lost % | real, bursts of 2: Mbit/s | delay mean / p95 ms | lost % |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (name, link, rtt) in [
        ("12 Mbit/s, 50 ms", "rate = \"12Mbps\"", "50ms"),
        ("`lte-driving`, 100 ms", "trace = \"lte-driving\"", "100ms"),
    ] {
        for every in [1, 2, 10] {
            let [model, real, smooth] = [("quic", 10), ("quinn", 10), ("quinn", 2)].map(|(host, burst)| {
                let text = format!(
                    "duration = \"30s\"\nmeasure_from = \"2s\"\n[[link]]\nname = \"link\"\n{link}\nqueue = \"abc\"\n[[flow]]\ncontroller = \"abc\"\nrtt = \"{rtt}\"\npath = [\"link\"]\nack_every = {every}\npacing_burst = {burst}\n"
                );
                cells(&scratch, &text, host)
            });
            table += &format!("| {name} | {every} | {model} | {real} | {smooth} |\n");
        }
    }
    check("../quic", "acks", &table);
}
