//! How measurements end over a path that swallows datagrams for a while, just when the end is told.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use brakelight_core::registry::ControllerConfig;
use brakelight_quic::adapter::{ControlSettings, PacketSender, Path};
use brakelight_quic::perf::client::{Plan, Until, Work, measure};
use brakelight_quic::perf::identity::{Identity, Trust};
use brakelight_quic::perf::server::{Limits, Server, ServerSettings};
use brakelight_quic::perf::{Control, Error};

/// Which way a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    ToServer,
    ToClient,
}

/// Returns where to send what is for `server`. Of what passes, a datagram is lost where `lost` says so, by
/// its way, the time since the first datagram, and its bytes.
fn relay(
    server: SocketAddr,
    lost: impl Fn(Way, Duration, &[u8]) -> bool + Clone + Send + 'static,
) -> SocketAddr {
    let socket = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (near, far) = (Arc::new(socket()), Arc::new(socket()));
    far.connect(server).unwrap();
    let address = near.local_addr().unwrap();
    // The client and when it was first heard.
    let client = Arc::new(Mutex::new(None));
    let (back, seen, lost_back) = (near.clone(), client.clone(), lost.clone());
    let out = far.clone();
    std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok((length, from)) = near.recv_from(&mut bytes) {
            let (_, began) = *client.lock().unwrap().get_or_insert((from, Instant::now()));
            if !lost(Way::ToServer, began.elapsed(), &bytes[..length]) {
                // Full buffers are a path's loss, too.
                let _ = out.send(&bytes[..length]);
            }
        }
    });
    std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length) = far.recv(&mut bytes) {
            let Some((to, began)) = *seen.lock().unwrap() else { continue };
            if !lost_back(Way::ToClient, began.elapsed(), &bytes[..length]) {
                let _ = back.send_to(&bytes[..length], to);
            }
        }
    });
    address
}

fn cubic() -> ControlSettings {
    let controller = ControllerConfig::new("cubic", &[]).unwrap();
    ControlSettings::new(controller, PacketSender::Driver, Path::Own).unwrap()
}

/// A server that lives as long as the test's process.
fn serve(limits: Limits) -> SocketAddr {
    let settings = ServerSettings {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        control: cubic(),
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

fn plan(server: SocketAddr, work: Work, time: Duration) -> Plan {
    Plan {
        server,
        server_name: "localhost".to_string(),
        trust: Trust::Anyone,
        token: None,
        control: Control::Ours(Box::new(cubic())),
        work,
        until: Until::Time(time),
        connections: 1,
        probe: None,
        qlog: None,
    }
}

#[test]
fn a_client_that_hears_late_of_its_end_hears_the_reason() {
    let told = |work| {
        let server = serve(Limits { duration: Duration::from_secs(1), ..Limits::default() });
        // The server looks at its limits every second: at one second, or at two.
        let silence = Duration::from_millis(800)..Duration::from_millis(2600);
        let address = relay(server, move |way, at, _| way == Way::ToClient && silence.contains(&at));
        measure(&plan(address, work, Duration::from_secs(30)), |_, _| ()).unwrap_err().to_string()
    };
    std::thread::scope(|scope| {
        for work in [Work::Upload, Work::Download] {
            scope.spawn(move || {
                let said = told(work);
                assert!(said.contains("the server's limit of 1 s is reached"), "{work:?}: {said}");
            });
        }
    });
}

#[test]
fn an_upload_of_which_nothing_comes_through_in_its_time_is_one_of_no_bytes() {
    // A packet with a short header: the first bit is not set. RFC 9000 section 17.3
    let is_data = |bytes: &[u8]| bytes.first().is_some_and(|first| first & 0x80 == 0);
    let address = relay(serve(Limits::default()), move |way, at, bytes| {
        way == Way::ToServer && is_data(bytes) && at < Duration::from_millis(1200)
    });
    let measured = measure(&plan(address, Work::Upload, Duration::from_millis(300)), |_, _| ());
    let measured = measured.unwrap_or_else(|error: Error| panic!("{error}"));
    let received = measured.flows[0].received;
    assert!(received.done && received.payload == 0, "{received:?}");
}
