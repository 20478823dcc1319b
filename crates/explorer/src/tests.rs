use super::*;

const PAGE: &[File] = &[
    ("index.html", b"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'\" />"),
    ("app.js", b"1;"),
];

/// What a server of `PAGE` answers to these bytes.
fn ask(bytes: &[u8]) -> String {
    let server = Server::of(PAGE, 0).unwrap();
    let mut client = TcpStream::connect(server.address).unwrap();
    client.write_all(bytes).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let (stream, _) = server.listener.accept().unwrap();
    let _ = server.answer(stream);
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn files_are_served_by_their_names_and_nothing_else_is() {
    let page = ask(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html"), "{page}");
    assert!(
        page.contains("\r\nContent-Length: 74\r\n") && page.ends_with("content=\"default-src 'none'\" />"),
        "{page}"
    );
    assert!(page.contains("\r\nContent-Security-Policy: default-src 'none'\r\n"), "{page}");
    assert!(ask(b"GET /app.js?x=1 HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n1;"));
    assert!(ask(b"HEAD /app.js HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
    for other in ["/nothing", "/../Cargo.toml", "/%2e%2e/x", "//app.js", "app.js", "http://other/app.js"] {
        let answer = ask(format!("GET {other} HTTP/1.1\r\n\r\n").as_bytes());
        assert!(answer.starts_with("HTTP/1.1 404 "), "{other}: {answer}");
    }
    assert!(ask(b"POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
}

#[test]
fn a_policy_that_would_end_its_header_is_none() {
    const BROKEN: &[File] =
        &[("index.html", b"<meta http-equiv=\"Content-Security-Policy\" content=\"x\r\nX: y\">")];
    assert_eq!(policy(BROKEN), None);
    assert_eq!(policy(&[("index.html", b"<p>")]), None);
    assert_eq!(policy(PAGE), Some("default-src 'none'"));
}

#[test]
fn what_is_no_request_is_answered_or_dropped() {
    assert!(ask(b"").starts_with("HTTP/1.1 405 "));
    assert!(ask(b"\r\n\r\n").starts_with("HTTP/1.1 405 "));
    ask(&[0xff; 100]);
    ask(&vec![b'a'; 100_000]);
}

#[test]
fn a_build_without_a_page_and_a_taken_port_are_said() {
    assert!(Server::of(&[], 0).unwrap_err().to_string().contains("make explorer"));
    let first = Server::of(PAGE, 0).unwrap();
    let taken = Server::of(PAGE, first.address.port()).unwrap_err().to_string();
    assert!(taken.starts_with(&format!("port {}: ", first.address.port())), "{taken}");
    assert!(first.url().starts_with("http://127.0.0.1:"));
}

#[test]
fn a_page_that_is_embedded_is_whole() {
    if FILES.is_empty() {
        return;
    }
    for name in ["index.html", "app.js", "module.js", "style.css", "claims.js", "service.js"] {
        assert!(FILES.iter().any(|(file, contents)| *file == name && !contents.is_empty()), "{name}");
    }
}
