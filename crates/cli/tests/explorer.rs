//! The explorer: its module in Node gives the command's outcomes, byte for byte, and `brakelight explore`
//! serves the page that the command embeds, to this machine alone.

mod support;

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use brakelight_core::time::Duration;
use brakelight_scenario::compare::Compare;
use brakelight_scenario::file;
use brakelight_scenario::scenario::Scenario;
use brakelight_scenario::scheme::Scheme;
use brakelight_testkit::skip::skip;
use brakelight_web::workbench::Workbench;
use serde_json::{Value, json};
use support::world::{code, eventually, send};
use support::{Scratch, ended, ok, text};

/// `scripts/portable explorer` builds the module, and `scripts/check` says where it lies.
const MODULE: &str = "BRAKELIGHT_EXPLORER_MODULE";

/// How many scenarios of every experiment are compared: 1 unless it says otherwise; all 1,319 where it says a
/// large number, as `scripts/prove` does.
const SCENARIOS: &str = "BRAKELIGHT_EXPLORER_SCENARIOS";

/// Scenarios of every experiment that has any, and four of `compare`.
fn scenarios() -> Vec<Scenario> {
    let most = std::env::var(SCENARIOS).map_or(1, |text| text.parse().unwrap());
    let mut all = brakelight_web::experiments::samples(most, Duration::from_secs(2)).unwrap();
    for (scheme, trace) in
        [("abc", "lte-driving"), ("bbr", "3g"), ("cubic+codel", "satellite"), ("bmcc", "step")]
    {
        let compare = Compare::mahimahi(Scheme::parse(scheme).unwrap(), trace);
        all.push(Scenario { duration: Duration::from_secs(10), ..compare.scenario().unwrap() });
    }
    all
}

#[test]
fn the_explorer_and_the_command_give_the_same_bytes() {
    let Some(module) = std::env::var_os(MODULE) else {
        let why = format!("{MODULE} names no module; see `scripts/portable explorer`");
        skip("the explorer's module in Node", why);
        return;
    };
    let scratch = Scratch::new("explorer");
    let scenarios = scenarios();
    assert!(scenarios.len() >= 50, "{} scenarios", scenarios.len());
    let name = |index: usize| format!("files/{index:03}.toml");
    for (index, scenario) in scenarios.iter().enumerate() {
        scratch.write(&name(index), file::write(scenario));
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/wasm/run.mjs");
    let node = Command::new("node").arg(program).arg(module).arg(scratch.path("files")).output();
    let output = match node {
        Ok(output) => output,
        Err(error) => {
            skip("the explorer's module in Node", format!("`node` does not start: {error}"));
            return;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let compare = |index: usize| {
        let command = scratch.brakelight(&["run", &name(index), "--format", "json"]);
        ok(&command);
        let document = String::from_utf8(command.stdout).unwrap();
        let outcome = std::fs::read_to_string(scratch.path(&name(index)).with_extension("json")).unwrap();
        // The row stands in a list in an object: each of its lines but the first four spaces further in.
        let row = outcome.replace('\n', "\n    ");
        assert!(document.contains(&row), "{}: the command has\n{document}", scenarios[index].name);
    };
    thread::scope(|scope| {
        for first in 0..2 {
            let compare = &compare;
            let all = (first..scenarios.len()).step_by(2);
            scope.spawn(move || all.for_each(compare));
        }
    });
}

/// What the page's field "The same as a command" says, which web/tests/page.test.js reads there, for a
/// shorter run.
const COMMAND: &str = "compare --trace lte-driving --schemes abc,cubic,cubic+codel --rtt 60ms --buffer 250pkt \
                       --duration 10s --runs 3 --seed 1 --reverse 12Mbps --trace-offset random";

#[test]
fn the_command_that_the_page_gives_has_the_numbers_of_the_page() {
    let scratch = Scratch::new("explorer-command");
    let words: Vec<&str> = COMMAND.split_whitespace().chain(["--format", "json"]).collect();
    let document: Value = serde_json::from_str(&ok(&scratch.brakelight(&words))).unwrap();
    let rows = document["every_run"].as_array().unwrap();
    assert_eq!(rows.len(), 9);
    let mut workbench = Workbench::new();
    let mut ask = |request: Value| {
        let answer: Value =
            serde_json::from_str(&workbench.answer(request.to_string().as_bytes(), b"")).unwrap();
        answer["ok"].clone()
    };
    for row in rows {
        // As web/src/model.ts asks for it.
        let setup = json!({
            "scheme": row["scheme"], "trace": "lte-driving", "rtt": "60ms", "buffer": "250pkt", "duration": "10s",
            "trace_offset": "random", "reverse_rate": "12Mbps",
        });
        ask(json!({ "do": "begin", "what": { "setup": setup }, "seed": row["seed"] }));
        ask(json!({ "do": "advance", "seconds": 60 }));
        let finished = ask(json!({ "do": "finish" }));
        let page: Value = serde_json::from_str(finished["outcome"].as_str().unwrap()).unwrap();
        for name in ["throughput_mbps", "capacity_mbps", "queueing_delay_ms", "rtt_ms", "delivered_packets"] {
            assert_eq!(page[name], row[name], "{name} of {} with seed {}", row["scheme"], row["seed"]);
        }
    }
}

/// The command while it serves.
struct Serving {
    child: Child,
    /// `127.0.0.1:8600`.
    address: String,
}

impl Serving {
    /// Starts it at any port. `None` if this build has no page.
    fn start(scratch: &Scratch) -> Option<Self> {
        // In place of the system's command that opens a browser.
        let opener = scratch.write("bin/xdg-open", "#!/bin/sh\necho \"$@\" > opened\n");
        std::fs::set_permissions(&opener, Permissions::from_mode(0o755)).unwrap();
        let mut command = scratch.command(&["explore", "--port", "0", "--open"]);
        command.env("PATH", scratch.path("bin"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some(rest) = line.strip_prefix("The explorer is at http://") else {
            let output = child.wait_with_output().unwrap();
            let said = text(&output.stderr);
            assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
            assert!(said.contains("make explorer"), "{said}");
            skip("the embedded explorer", "web/dist was not built before; see `scripts/explorer build`");
            return None;
        };
        let address = rest.split('/').next().unwrap().to_string();
        Some(Serving { child, address })
    }

    /// The head and the body of the answer to a request line.
    fn ask(&self, request: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(format!("{request} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address).as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        (text(&answer[..end]), answer[end + 4..].to_vec())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_page_is_served_until_an_interrupt_and_nothing_else_is() {
    let scratch = Scratch::new("explore");
    let Some(mut serving) = Serving::start(&scratch) else { return };
    let types = [
        ("/", "text/html; charset=utf-8"),
        ("/index.html", "text/html; charset=utf-8"),
        ("/app.js", "text/javascript; charset=utf-8"),
        ("/module.js", "text/javascript; charset=utf-8"),
        ("/service.js", "text/javascript; charset=utf-8"),
        ("/style.css", "text/css; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
        ("/manifest.webmanifest", "application/manifest+json"),
    ];
    for (path, kind) in types {
        let (head, body) = serving.ask(&format!("GET {path}"));
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{path}: {head}");
        assert!(head.contains(&format!("\r\nContent-Type: {kind}\r\n")), "{path}: {head}");
        assert!(head.contains("\r\nX-Content-Type-Options: nosniff\r\n"), "{path}: {head}");
        assert!(
            head.contains("\r\nContent-Security-Policy: default-src 'none'; script-src 'self'"),
            "{head}"
        );
        assert!(!body.is_empty(), "{path}");
    }
    eventually("the browser is opened", || {
        std::fs::read_to_string(scratch.path("opened"))
            .is_ok_and(|text| text == format!("http://{}/\n", serving.address))
    });
    // The page's own policy and that of the header are one.
    let (head, body) = serving.ask("GET /");
    let policy = head.lines().find_map(|line| line.strip_prefix("Content-Security-Policy: ")).unwrap();
    assert!(text(&body).contains(&format!("content=\"{policy}\"")), "{policy}");
    for path in
        ["/../Cargo.toml", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/..\\x", "/no"]
    {
        let (head, body) = serving.ask(&format!("GET {path}"));
        assert!(head.starts_with("HTTP/1.1 404 "), "{path}: {head}");
        assert_eq!(text(&body), "There is no such file.\n", "{path}");
    }
    assert!(serving.ask("DELETE /").0.starts_with("HTTP/1.1 405 "));
    // The port is taken now.
    let port = serving.address.rsplit(':').next().unwrap().to_string();
    let second = scratch.brakelight(&["explore", "--port", &port]);
    let said = text(&second.stderr);
    assert_eq!((second.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains(&format!("port {port}: ")), "{said}");
    send(serving.child.id() as i32, "INT");
    assert_eq!(code(ended(&mut serving.child)), 130);
    assert!(TcpStream::connect(&serving.address).is_err(), "nobody answers any more");
}
