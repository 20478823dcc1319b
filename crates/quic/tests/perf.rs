//! Measuring over this machine's loopback: what is asked for is what is done, and what is counted adds up.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use brakelight_core::units::Bytes;
use brakelight_quic::adapter::{ControlSettings, PacketSender, Path};
use brakelight_quic::driver::net;
use brakelight_quic::perf::client::{Measurement, Plan, Until, Work, measure};
use brakelight_quic::perf::identity::{Fingerprint, Identity, Trust};
use brakelight_quic::perf::qlog::Logs;
use brakelight_quic::perf::server::{self, Server};
use brakelight_quic::perf::token::Token;
use brakelight_quic::perf::{Control, Error};
use brakelight_registry::ControllerConfig;

fn settings(name: &str, packet_sender: PacketSender) -> ControlSettings {
    ControlSettings::new(ControllerConfig::new(name, &[]).unwrap(), packet_sender, Path::Own).unwrap()
}

/// Under our driver.
fn ours(name: &str) -> Control {
    Control::Ours(Box::new(settings(name, PacketSender::Driver)))
}

/// In an application of quinn.
fn in_quinn(name: &str) -> Control {
    Control::Ours(Box::new(settings(name, PacketSender::Stack)))
}

/// A server that lives as long as the test's process.
fn serve(controller: &str) -> (SocketAddr, Fingerprint) {
    serve_and_log(controller, None)
}

fn serve_and_log(controller: &str, qlog: Option<Logs>) -> (SocketAddr, Fingerprint) {
    let settings = server::ServerSettings {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        control: settings(controller, PacketSender::Driver),
        identity: Identity::self_signed(),
        token: None,
        qlog,
        limits: server::Limits::default(),
    };
    let server = Server::bind(&settings, |_| ()).unwrap();
    let found = (server.address(), server.fingerprint());
    std::thread::spawn(move || server.serve());
    found
}

fn plan(server: SocketAddr, control: Control, work: Work, until: Until) -> Plan {
    Plan {
        server,
        server_name: "localhost".to_string(),
        trust: Trust::Anyone,
        token: None,
        control,
        work,
        until,
        connections: 1,
        probe: None,
        qlog: None,
    }
}

fn run(plan: &Plan) -> Measurement {
    measure(plan, |_, _| ()).unwrap()
}

#[test]
fn a_server_with_a_token_serves_those_who_know_it() {
    let token = |secret: &[u8]| Some(Token::new(secret).unwrap());
    let settings = server::ServerSettings {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        control: settings("cubic", PacketSender::Driver),
        identity: Identity::self_signed(),
        token: token(b"what both of us know"),
        qlog: None,
        limits: server::Limits::default(),
    };
    let server = Server::bind(&settings, |_| ()).unwrap();
    let address = server.address();
    std::thread::spawn(move || server.serve());
    for control in [ours("cubic"), in_quinn("cubic")] {
        let with = |token| Plan { token, ..plan(address, control.clone(), Work::Upload, Until::Bytes(1000)) };
        let refused = |token| measure(&with(token), |_, _| ()).unwrap_err().to_string();
        let none = refused(None);
        assert!(none.contains("requires its token"), "{none}");
        let wrong = refused(token(b"what none of us knows"));
        // Which of the two comes first, the end of the stream or that of the connection, is open.
        let said = ["the token is not this server's", "rejects the token"];
        assert!(said.iter().any(|words| wrong.contains(words)), "{wrong}");
        assert_eq!(run(&with(token(b"what both of us know"))).flows[0].received.payload, 1000);
    }
    // A server without one takes all comers.
    let (open, _) = serve("cubic");
    let plan = Plan {
        token: token(b"what both of us know"),
        ..plan(open, ours("cubic"), Work::Upload, Until::Bytes(9))
    };
    assert_eq!(run(&plan).flows[0].received.payload, 9);
}

/// A server with these limits that lives as long as the test's process.
fn serve_within(limits: server::Limits) -> SocketAddr {
    let settings = server::ServerSettings {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        control: settings("cubic", PacketSender::Driver),
        identity: Identity::self_signed(),
        token: None,
        qlog: None,
        limits,
    };
    let server = Server::bind(&settings, |_| ()).unwrap();
    let address = server.address();
    std::thread::spawn(move || server.serve());
    address
}

/// What a server with these limits says to a client that would go on for a minute.
fn ended_by(limits: server::Limits, work: Work) -> String {
    let address = serve_within(limits);
    let plan = plan(address, ours("cubic"), work, Until::Time(Duration::from_secs(60)));
    measure(&plan, |_, _| ()).unwrap_err().to_string()
}

#[test]
fn a_measurement_that_fails_takes_its_connections_with_it() {
    let connections = net::Limits { per_address: 2, ..net::Limits::default() };
    let address = serve_within(server::Limits { connections, ..server::Limits::default() });
    for control in [ours("cubic"), in_quinn("cubic")] {
        let by = |connections| Plan {
            connections,
            ..plan(address, control.clone(), Work::Upload, Until::Bytes(9))
        };
        let refused = measure(&by(3), |_, _| ()).unwrap_err().to_string();
        assert!(refused.contains("refused"), "{refused}");
        // What the server knows nothing of it would keep for half a minute, in the way of this one.
        let until = Instant::now() + Duration::from_secs(10);
        while measure(&by(2), |_, _| ()).is_err() {
            assert!(Instant::now() < until, "the server keeps what the failed measurement opened");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn a_connection_that_passes_a_limit_of_the_server_is_ended_with_it() {
    let bytes = server::Limits { bytes: Bytes(1_000_000), ..server::Limits::default() };
    let duration = server::Limits { duration: Duration::from_secs(1), ..server::Limits::default() };
    for work in [Work::Upload, Work::Download] {
        let said = ended_by(bytes, work);
        assert!(said.contains("the server's limit of 1MB is reached"), "{work:?}: {said}");
        let said = ended_by(duration, work);
        assert!(said.contains("the server's limit of 1 s is reached"), "{work:?}: {said}");
    }
}

#[test]
fn an_upload_of_bytes_arrives_whole_over_all_connections() {
    let (server, fingerprint) = serve("cubic");
    let controls = [
        ours("cubic"),
        ours("abc"),
        ours("bbr"),
        ours("vivace"),
        in_quinn("cubic"),
        in_quinn("abc"),
        Control::StockCubic,
    ];
    for control in controls {
        let plan = Plan {
            connections: 3,
            trust: Trust::Pinned(fingerprint),
            ..plan(server, control, Work::Upload, Until::Bytes(1_000_001))
        };
        let measured = run(&plan);
        let payload: Vec<u64> = measured.flows.iter().map(|flow| flow.received.payload).collect();
        assert_eq!(payload, [333_334, 333_334, 333_333]);
        assert_eq!(measured.peer, Some(fingerprint));
        for flow in &measured.flows {
            assert!(flow.received.wire > flow.received.payload && flow.report.sent_packets > 200, "{flow:?}");
        }
    }
}

#[test]
fn a_download_of_bytes_arrives_whole_and_its_sender_tells_of_it() {
    let (server, _) = serve("newreno");
    let measured = run(&plan(server, ours("cubic"), Work::Download, Until::Bytes(700_000)));
    let flow = &measured.flows[0];
    assert_eq!(flow.received.payload, 700_000);
    assert_eq!(flow.report.controller, "newreno");
    assert!(flow.report.sent_packets > 400);
}

#[test]
fn uploads_and_downloads_end_when_their_time_is_up() {
    let (server, _) = serve("cubic");
    for work in [Work::Upload, Work::Download] {
        let until = Until::Time(Duration::from_millis(300));
        let measured = run(&plan(server, ours("cubic"), work, until));
        let received = measured.flows[0].received;
        assert!(received.done && received.payload > 0 && received.micros <= 1_000_000, "{received:?}");
        assert!(measured.flows[0].report.rtt.count() > 0);
    }
}

#[test]
fn exchanges_follow_one_another_and_each_is_timed() {
    let (server, _) = serve("cubic");
    let work = Work::Exchange { request: 1000, response: 20_000 };
    let measured = run(&plan(server, ours("cubic"), work, Until::Bytes(210_000)));
    let flow = &measured.flows[0];
    assert_eq!(flow.exchanges.as_ref().unwrap().count(), 10);
    assert_eq!(flow.received.payload, 200_000);
}

#[test]
fn a_probe_runs_beside_the_bulk_flow() {
    let (server, _) = serve("cubic");
    let plan = Plan {
        probe: Some(Duration::from_millis(10)),
        ..plan(server, ours("cubic"), Work::Upload, Until::Time(Duration::from_millis(400)))
    };
    assert!(run(&plan).probe.unwrap().count() >= 2);
}

#[test]
fn both_ends_report_to_a_sender_that_goes_by_receive_times_or_single_marks() {
    let (server, _) = serve("quicdc");
    for (controller, work) in [("quicdc", Work::Upload), ("bmcc", Work::Upload), ("cubic", Work::Download)] {
        let measured = run(&plan(server, ours(controller), work, Until::Bytes(2_000_000)));
        let report = &measured.flows[0].report;
        assert!(report.notes.is_empty(), "{controller}: {:?}", report.notes);
        assert_eq!(report.controller, if work == Work::Upload { controller } else { "quicdc" });
        assert!(report.rtt.count() > 0);
    }
}

#[test]
fn a_server_with_another_certificate_is_refused() {
    let (server, _) = serve("cubic");
    let pin = Trust::Pinned(Identity::self_signed().fingerprint());
    let plan = Plan { trust: pin, ..plan(server, ours("cubic"), Work::Upload, Until::Bytes(1)) };
    let error = measure(&plan, |_, _| ()).unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error}");
    assert!(error.to_string().contains("not the pinned one"), "{error}");
}

#[test]
fn a_key_that_everybody_may_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder =
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("key-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_string()]).unwrap();
    let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let with_mode = |mode| {
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        Identity::read(&certificate, &key).map_err(|error| error.to_string())
    };
    let (open, closed) = (with_mode(0o644), with_mode(0o640));
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(open.is_err_and(|error| error.contains("everybody can read it")));
    assert!(closed.is_ok());
}

#[test]
fn logs_of_both_ends_are_qlog_and_name_their_end() {
    let folder =
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("qlog-{}", std::process::id()));
    let logs = Logs { folder: folder.clone(), limit: Bytes(100_000_000) };
    let (server, _) = serve_and_log("cubic", Some(logs.clone()));
    let plan = Plan { qlog: Some(logs), ..plan(server, ours("cubic"), Work::Upload, Until::Bytes(300_000)) };
    run(&plan);
    let text = std::fs::read_to_string(folder.join("client-1.sqlog")).unwrap();
    assert!(folder.join("server-1.sqlog").exists());
    std::fs::remove_dir_all(&folder).unwrap();
    // rfc7464: each record begins with a separator and ends with a line feed.
    let records: Vec<serde_json::Value> =
        text.split('\u{1e}').skip(1).map(|record| serde_json::from_str(record).unwrap()).collect();
    let head = &records[0];
    assert_eq!((&head["qlog_version"], &head["qlog_format"]), (&"0.3".into(), &"JSON-SEQ".into()));
    assert_eq!(head["trace"]["vantage_point"]["type"], "client");
    // What qvis's loader and its congestion graph ask for.
    let events = &records[1..];
    let groups: std::collections::BTreeSet<_> =
        events.iter().map(|event| event["group_id"].as_str()).collect();
    assert_eq!(groups.len(), 1, "{groups:?}");
    assert!(events.is_sorted_by_key(|event| event["time"].as_f64().unwrap()));
    let sent = events.iter().filter(|event| event["name"] == "transport:packet_sent");
    for event in sent {
        assert!(event["data"]["header"]["packet_number"].is_u64(), "{event}");
        assert!(event["data"]["raw"]["length"].as_u64().unwrap() > 0, "{event}");
        assert!(event["data"]["header"]["packet_size"].is_null() && event["data"]["packet_type"].is_null());
    }
    let named = |name: &str| records.iter().filter(|record| record["name"] == name).count();
    assert!(named("transport:packet_sent") > 200, "{}", named("transport:packet_sent"));
    let windows = records.iter().filter(|record| record["data"]["congestion_window"].is_number()).count();
    // A busy receiver may acknowledge a whole window by one packet. From 10 packets (rfc9002 7.2), doubled by
    // each such acknowledgement at most, 300 kB take five windows: four of them end before the last is sent.
    assert!(named("recovery:metrics_updated") >= windows && windows >= 4, "{windows}");
}

#[test]
fn exchanges_go_on_as_long_as_they_are_asked_for() {
    let (server, _) = serve("cubic");
    for control in [ours("cubic"), in_quinn("cubic")] {
        // Short ones, so that the server's answer often comes before the client says that it has asked.
        let exchange = Work::Exchange { request: 1_000, response: 10 };
        let until = Until::Bytes(3_000 * 1_010);
        let measured = run(&Plan { connections: 2, ..plan(server, control, exchange, until) });
        let counts: Vec<u64> =
            measured.flows.iter().map(|flow| flow.exchanges.as_ref().unwrap().count()).collect();
        assert_eq!(counts, [1_500, 1_500]);
    }
}

#[test]
fn who_does_not_answer_is_said() {
    // A socket that is there and says nothing.
    let silent = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = silent.local_addr().unwrap();
    for control in [ours("cubic"), in_quinn("cubic")] {
        let upload = plan(address, control, Work::Upload, Until::Bytes(9));
        let said = std::thread::spawn(move || measure(&upload, |_, _| ()).unwrap_err().to_string());
        let said = said.join().unwrap();
        assert!(said.contains(&address.to_string()) && said.contains("did not answer"), "{said}");
        assert!(said.contains("perf-server"), "{said}");
    }
}
