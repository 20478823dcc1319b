//! Those who come to a measuring server and want nothing good: they cost it little, and others are served
//! meanwhile.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use support::stranger::{be_served, crypto, endpoint, first_packet, server};

mod support;

/// Answers by the type of their long header (RFC 9000 17.2): Initial and Retry.
fn answers(socket: &UdpSocket) -> (usize, usize) {
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let (mut initials, mut retries) = (0, 0);
    let mut buffer = [0; 2048];
    while let Ok(length) = socket.recv(&mut buffer) {
        match buffer[..length].first().map(|first| first & 0xf0) {
            Some(0xc0) => initials += 1,
            Some(0xf0) => retries += 1,
            _ => {}
        }
    }
    (initials, retries)
}

#[test]
fn under_load_first_packets_are_answered_by_retry_and_kept_by_nobody() {
    const STRANGERS: usize = 300;
    let server = server();
    let address = server.address();
    std::thread::spawn(move || server.serve());
    let crypto = crypto();
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (mut initials, mut retries) = (0, 0);
    // In portions that the sockets' buffers hold.
    for _ in 0..STRANGERS / 50 {
        for _ in 0..50 {
            let (_, packet) = first_packet(&mut endpoint(), &crypto, address);
            socket.send_to(&packet, address).unwrap();
        }
        let found = answers(&socket);
        initials += found.0;
        retries += found.1;
    }
    assert!(
        retries >= STRANGERS / 2,
        "{retries} of {STRANGERS} were answered by Retry, {initials} by Initial"
    );
    // Who is there answers the Retry and is let in.
    let took = be_served(address);
    assert!(took < Duration::from_secs(2), "served after {took:?}");
}
