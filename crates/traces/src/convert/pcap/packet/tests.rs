use super::*;

fn v4(source: u8, destination: u8, length: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([
        0,
        0,
        0,
        0,
        64,
        17,
        0,
        0,
        10,
        0,
        0,
        source,
        10,
        0,
        0,
        destination,
        0x01,
        0xbb,
        0xc3,
        0x50,
    ]);
    packet
}

fn packet(source: u8, destination: u8, length: u32) -> Frame {
    let address = |last| IpAddr::from([10, 0, 0, last]);
    let ports = Some((443, 50_000));
    Frame::Ip(Packet { source: address(source), destination: address(destination), ports, length })
}

fn ethernet(kinds: &[u16], inner: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    for (index, kind) in kinds.iter().enumerate() {
        if index > 0 {
            frame.extend([0, 7]);
        }
        frame.extend(kind.to_be_bytes());
    }
    frame.extend(inner);
    frame
}

#[test]
fn packets_are_found_behind_the_header_of_each_link() {
    let inner = v4(1, 2, 1500);
    let behind = |length: usize, at: usize| {
        let mut frame = vec![0; length];
        if at < length {
            frame[at..at + 2].copy_from_slice(&[0x08, 0x00]);
        }
        [frame, inner.clone()].concat()
    };
    for (link, data, header) in [
        (Linktype::ETHERNET, behind(14, 12), 14),
        (Linktype::LINUX_SLL, behind(16, 14), 16),
        (Linktype::LINUX_SLL2, behind(20, 0), 20),
        (Linktype::NULL, behind(4, 9), 4),
        (Linktype::RAW, behind(0, 9), 0),
        (Linktype::ETHERNET, ethernet(&[0x8100, 0x0800], &inner), 18),
        (Linktype::ETHERNET, ethernet(&[0x88a8, 0x8100, 0x0800], &inner), 22),
        (
            Linktype::ETHERNET,
            ethernet(&[0x8864], &[&[0x11, 0, 0, 0, 0, 0, 0, 0x21][..], &inner].concat()),
            22,
        ),
    ] {
        assert_eq!(parse(link, &data, header + 1500), packet(1, 2, 1500), "{link}");
    }
    assert!(!is_known(Linktype(127)), "radiotap");
}

#[test]
fn the_packet_says_its_length_unless_it_cannot() {
    let parsed = |length: u16, wire| parse(Linktype::RAW, &v4(1, 2, length), wire);
    assert_eq!(parsed(40, 46), packet(1, 2, 40), "padded");
    assert_eq!(parsed(0, 100_000), packet(1, 2, 100_000), "joined by the host");
    assert_eq!(parsed(1500, 1000), packet(1, 2, 1000), "never more than the frame");
}

#[test]
fn version_6_has_addresses_and_ports_too() {
    let mut data = vec![0x60, 0, 0, 0, 0x05, 0xb4, 6, 64];
    data.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    data.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    data.extend([0x01, 0xbb, 0xc3, 0x50]);
    let (source, destination) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
    let expected = Packet { source, destination, ports: Some((443, 50_000)), length: 1500 };
    assert_eq!(parse(Linktype::RAW, &data, 1500), Frame::Ip(expected));
}

#[test]
fn what_is_cut_or_is_no_ip_says_so() {
    let whole = ethernet(&[0x0800], &v4(1, 2, 1500));
    for captured in [0, 13, 14, 15, 33] {
        let frame = parse(Linktype::ETHERNET, &whole[..captured], 1514);
        assert_eq!(frame, Frame::Cut(1500), "{captured} bytes");
    }
    assert!(matches!(parse(Linktype::ETHERNET, &whole[..34], 1514), Frame::Ip(Packet { ports: None, .. })));
    assert_eq!(parse(Linktype::ETHERNET, &ethernet(&[0x0806], &[0; 28]), 60), Frame::Other);
    assert_eq!(parse(Linktype::RAW, &[0x10; 40], 40), Frame::Other);
    // A later fragment has no ports.
    let mut fragment = v4(1, 2, 1500);
    fragment[7] = 1;
    assert!(matches!(parse(Linktype::RAW, &fragment, 1500), Frame::Ip(Packet { ports: None, .. })));
}
