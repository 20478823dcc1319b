//! Those who come to a measuring server and want nothing good: they cost it little, and others are served
//! meanwhile.

use std::collections::HashSet;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use support::stranger::{be_served, crypto, endpoint, first_packet, server};

mod support;

/// Far longer than an answer takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The connection IDs of a packet with a long header: whom it is for, and whom it is from. RFC 9000 17.2
fn ids(packet: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (destination, rest) = packet[6..].split_at(packet[5].into());
    (destination.to_vec(), rest[1..][..rest[0].into()].to_vec())
}

/// Waits for an answer to every one of these connection IDs. Returns how many were answered first by an
/// Initial, and how many by a Retry.
fn answers(socket: &UdpSocket, mut asked: HashSet<Vec<u8>>) -> (usize, usize) {
    let (mut initials, mut retries) = (0, 0);
    let mut buffer = [0; 2048];
    while !asked.is_empty() {
        let length = socket.recv(&mut buffer).unwrap_or_else(|_| panic!("{} were not answered", asked.len()));
        // A long header and its type. The bit between them may be anything (RFC 9287).
        let first = match buffer[0] & 0xb0 {
            0x80 => &mut initials,
            0xb0 => &mut retries,
            _ => continue,
        };
        *first += usize::from(asked.remove(&ids(&buffer[..length]).0));
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
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut initials, mut retries) = (0, 0);
    // In portions that the sockets' buffers hold.
    for _ in 0..STRANGERS / 50 {
        let mut asked = HashSet::new();
        for _ in 0..50 {
            let (_, packet) = first_packet(&mut endpoint(), &crypto, address);
            socket.send_to(&packet, address).unwrap();
            asked.insert(ids(&packet).1);
        }
        let found = answers(&socket, asked);
        initials += found.0;
        retries += found.1;
    }
    assert!(
        retries >= STRANGERS / 2,
        "{retries} of {STRANGERS} were answered by Retry, {initials} by Initial"
    );
    // Who is there answers the Retry and is let in. It gives up long before a stranger's place would be free:
    // after ten seconds, and the half-open ones stay for thirty.
    be_served(address);
}
