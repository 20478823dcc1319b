//! `trace fetch` from a server on this machine: what it downloads, verifies, keeps and says, and that a
//! comparison then needs no network.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Output;
use std::thread;

use brakelight_scenario::identity::sha256;
use support::{Scratch, text};

/// A second at 12 Mbit/s, and its one-way delay: 20 ms, later 30 ms.
fn files() -> [(&'static str, String); 2] {
    let capacity: String = (1..=1000).map(|ms| format!("{ms}\n")).collect();
    let delay: String = (0..100).map(|line| if line < 50 { "20\n" } else { "30\n" }).collect();
    [("/bw.txt", capacity), ("/delay.txt", delay)]
}

/// Answers so many requests for these files on a port of its own, which it returns.
fn serve(requests: usize) -> (u16, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        for _ in 0..requests {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
            let request = lines.next().unwrap();
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let file = files().into_iter().find(|(path, _)| request.starts_with(&format!("GET {path} ")));
            let (status, body) = file.map_or(("404 Not Found", String::new()), |(_, body)| ("200 OK", body));
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
            .unwrap();
        }
    });
    (port, server)
}

fn catalogue(scratch: &Scratch, port: u16, change: impl Fn(String) -> String) {
    let [(capacity, bw), (delay, ms)] = files();
    let file = |path: &str, body: &str| {
        format!("{{ url = \"http://127.0.0.1:{port}{path}\", sha256 = \"{}\" }}", sha256(body.as_bytes()))
    };
    let toml = format!(
        "[[entry]]\nname = \"orbit\"\nabout = \"a satellite\"\nlicence = \"MIT\"\ncitation = \"Lai et al. 2025\"\n\
         page = \"https://example.org\"\ncapacity = {}\ndelay = {}\n",
        file(capacity, &bw),
        file(delay, &ms)
    );
    std::fs::write(scratch.path("catalogue.toml"), change(toml)).unwrap();
}

fn run(scratch: &Scratch, arguments: &[&str]) -> Output {
    let mut command = scratch.command(arguments);
    command.env("BRAKELIGHT_CACHE", scratch.path("cache")).output().unwrap()
}

fn said(output: &Output) -> String {
    text(&output.stderr)
}

const FETCH: [&str; 5] = ["trace", "fetch", "orbit", "--catalogue", "catalogue.toml"];

#[test]
fn a_recording_is_fetched_compared_and_there_without_a_network() {
    let scratch = Scratch::new("fetch");
    let (port, server) = serve(2);
    catalogue(&scratch, port, |toml| toml);
    let fetched = run(&scratch, &FETCH);
    server.join().unwrap();
    assert!(fetched.status.success(), "{}", said(&fetched));
    let lines = said(&fetched);
    for line in ["orbit fetched: 1.00 s, mean 12.0 Mbit/s, in ", "license: MIT\n", "cite: Lai et al. 2025\n"]
    {
        assert!(lines.contains(line), "`{line}` in {lines}");
    }
    // Nobody listens there any more.
    let again = run(&scratch, &FETCH);
    assert!(said(&again).contains("orbit was there already"), "{}", said(&again));
    let list = run(&scratch, &["trace", "fetch", "--catalogue", "catalogue.toml"]);
    assert!(text(&list.stdout).contains("here"), "{}", text(&list.stdout));
    let compare = ["compare", "--trace", "orbit", "--schemes", "cubic", "--runs", "1", "--format", "json"];
    let compared = run(&scratch, &[&compare[..], &["--duration", "3s"]].concat());
    assert!(compared.status.success(), "{}", said(&compared));
    let rows: serde_json::Value = serde_json::from_slice(&compared.stdout).unwrap();
    let row = &rows["runs"][0];
    assert_eq!((&row["trace"], row["setup"]["rtt_ms"].as_f64()), (&"orbit".into(), Some(40.0)), "{rows}");
}

#[test]
fn what_is_not_the_file_of_the_catalogue_is_refused_in_a_line() {
    let scratch = Scratch::new("fetch-refused");
    let refused = |arguments: &[&str], words: &str| {
        let output = run(&scratch, arguments);
        let lines = said(&output);
        assert_eq!((output.status.code(), lines.lines().count()), (Some(2), 1), "{lines}");
        assert!(lines.contains(words), "`{words}` in {lines}");
    };
    let (port, server) = serve(2);
    let [(_, bw), _] = files();
    let hash = sha256(bw.as_bytes());
    catalogue(&scratch, port, |toml| toml.replace(&hash, &"0".repeat(64)));
    refused(&FETCH, "the file has changed: its SHA-256 is ");
    catalogue(&scratch, port, |toml| toml.replace("/bw.txt", "/gone.txt"));
    refused(&FETCH, "404");
    server.join().unwrap();
    refused(&FETCH, "127.0.0.1");
    refused(&["trace", "fetch", "orbitt", "--catalogue", "catalogue.toml"], "did you mean `orbit`");
    catalogue(&scratch, port, |toml| toml.replace("orbit", "../orbit"));
    refused(&FETCH, "catalogue.toml: `../orbit` is not a name");
    refused(&["trace", "fetch", "irish-5g"], "cannot be fetched as a file");
    refused(&["compare", "--trace", "irish-5g"], "`brakelight trace fetch irish-5g` says how to get it");
    assert!(!scratch.path("cache").exists());
}
