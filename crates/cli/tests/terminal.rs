//! Text from outside must not reach a terminal as commands to it: neither control characters nor those that
//! reorder a line.

mod support;

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;

use support::{Scratch, TWO_FLOWS, ok, text};

/// Clears the screen, rings, turns the rest of the line around, and does so by C1 control and DEL too.
const HOSTILE: &str = r"\u001b[2J\u0007\u202e\u2066\u009b\u007f\u200b";

/// Whether a terminal prints every character of `text` where it stands.
fn plain(text: &str) -> bool {
    let obeyed = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    !text.contains(obeyed)
}

#[test]
fn names_of_a_scenario_are_shown_without_what_a_terminal_obeys() {
    let scratch = Scratch::new("terminal-names");
    // Links and flows have plain names or are refused; what a scenario is called is its author's.
    let hostile = TWO_FLOWS.replacen("two flows", &format!("two flows{HOSTILE}"), 1);
    scratch.write("hostile.toml", hostile.replace("10s", "2s").replace("4s", "1s"));
    for format in ["table", "csv", "json"] {
        let output = scratch.brakelight(&["run", "hostile.toml", "--format", format]);
        let shown = ok(&output);
        assert!(shown.contains("two flows"), "{format}: {shown:?}");
        assert!(plain(&shown), "{format}: {shown:?}");
        assert!(plain(&text(&output.stderr)), "{format}: {:?}", text(&output.stderr));
        if format == "json" {
            let document: serde_json::Value = serde_json::from_str(&shown).unwrap();
            let name = format!("{}", document["runs"][0]["scheme"]);
            assert!(name.contains('\u{202e}'), "JSON keeps what it escapes: {name:?}");
        }
    }
}

#[test]
fn errors_that_quote_input_are_shown_without_what_a_terminal_obeys() {
    let scratch = Scratch::new("terminal-errors");
    scratch.write("key.toml", format!("\"na{HOSTILE}me\" = 1\n"));
    scratch.write("words.csv", "start_s,mbps\n0,\u{202e}fast\u{1b}[2J\u{9b}\n");
    let name = "\u{202e}\u{1b}[2Jgone.toml";
    for arguments in [
        &["run", "key.toml"][..],
        &["run", name],
        &["trace", "show", name],
        &["trace", "convert", "words.csv"],
        &["compare", "--schemes", "cu\u{202e}bik\u{1b}[2J"],
        &["list", "\u{202e}\u{1b}[2J"],
        &["perf", "127.0.0.1:4433", "--pin", "\u{2066}\u{7}"],
    ] {
        let output = scratch.brakelight(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said:?}");
        assert!(plain(&said) && said.lines().count() == 1, "{arguments:?}: {said:?}");
    }
}

/// Connects to a measuring server whose certificate is `certificate`, and leaves with `reason`.
fn leave(server: SocketAddr, certificate: rustls::pki_types::CertificateDer<'static>, reason: &[u8]) {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider);
    let tls = tls.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
    let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![brakelight_quic::perf::wire::ALPN.to_vec()];
    let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
    let config = quinn::ClientConfig::new(Arc::new(crypto));
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let connection = endpoint.connect_with(config, server, "localhost").unwrap().await.unwrap();
        connection.close(7_u32.into(), reason);
        endpoint.wait_idle().await;
    });
}

#[test]
fn a_peers_reason_is_logged_without_what_a_terminal_obeys() {
    let scratch = Scratch::new("terminal-peer");
    let made = rcgen::generate_simple_self_signed(["localhost".to_string()]).unwrap();
    scratch.write("cert.pem", made.cert.pem());
    let key = scratch.write("key.pem", made.signing_key.serialize_pem());
    std::fs::set_permissions(key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let arguments = ["perf-server", "--listen", "127.0.0.1:0", "--cert", "cert.pem", "--key", "key.pem"];
    let mut server = scratch.command(&arguments).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines().map(Result::unwrap);
    let listening = lines.next().unwrap();
    let address = listening.strip_prefix("listening on ").and_then(|rest| rest.split(';').next()).unwrap();
    leave(
        address.parse().unwrap(),
        made.cert.der().clone(),
        "gone\n\u{1b}[2J\u{7}\u{202e}[::1]:1: connected".as_bytes(),
    );
    let left = lines.find(|line| line.contains("gone"));
    server.kill().unwrap();
    server.wait().unwrap();
    let left = left.expect("the reason is logged");
    assert!(plain(&left) && left.contains("connected"), "{left:?}");
}
