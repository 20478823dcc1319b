//! Headers as the RFCs draw them, bytes at random, and checksums computed the long way.

use super::*;
use proptest::prelude::*;

/// The one's complement sum of a header, its own checksum field included: 0xffff when that is right
/// (rfc1071).
fn sum(header: &[u8]) -> u16 {
    let mut sum: u32 = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// An IPv4 packet of `payload` with a right checksum.
fn ipv4(
    protocol: u8,
    ecn: Ecn,
    identification: u16,
    fragment: u16,
    options: usize,
    payload: &[u8],
) -> Vec<u8> {
    let start = IPV4_HEADER + options * 4;
    let mut bytes = vec![0; start];
    bytes[0] = 0x40 | (start / 4) as u8;
    bytes[1] = 0xb8 | ecn as u8;
    bytes[2..4].copy_from_slice(&((start + payload.len()) as u16).to_be_bytes());
    bytes[4..6].copy_from_slice(&identification.to_be_bytes());
    bytes[6..8].copy_from_slice(&fragment.to_be_bytes());
    bytes[8] = 64;
    bytes[9] = protocol;
    bytes[12..20].copy_from_slice(&[10, 1, 2, 3, 10, 4, 5, 6]);
    let checksum = !sum(&bytes);
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// An IPv6 packet whose first header behind the fixed one is `next`.
fn ipv6(next: u8, ecn: Ecn, behind: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; IPV6_HEADER];
    bytes[0] = 0x6b;
    bytes[1] = 0x80 | (ecn as u8) << 4 | 0x0c;
    bytes[4..6].copy_from_slice(&(behind.len() as u16).to_be_bytes());
    bytes[6] = next;
    bytes[7] = 64;
    for (place, byte) in bytes[8..40].iter_mut().enumerate() {
        *byte = place as u8;
    }
    bytes.extend_from_slice(behind);
    bytes
}

fn segment(source: u16, sequence: u32) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    bytes[0..2].copy_from_slice(&source.to_be_bytes());
    bytes[2..4].copy_from_slice(&443_u16.to_be_bytes());
    bytes[4..8].copy_from_slice(&sequence.to_be_bytes());
    bytes
}

const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

#[test]
fn size_ecn_and_identification_are_read_where_the_rfcs_put_them() {
    for ecn in ALL {
        let header = Header::read(&ipv4(TCP, ecn, 0xbeef, 0x4000, 0, &segment(1000, 1))).unwrap();
        assert_eq!((header.size, header.ecn, header.hash16), (60, ecn, 0xbeef));
        let header = Header::read(&ipv6(TCP, ecn, &segment(1000, 1))).unwrap();
        assert_eq!((header.size, header.ecn), (80, ecn));
    }
}

#[test]
fn flows_differ_by_port_and_protocol_and_not_by_sequence_number_or_options() {
    let flow = |bytes: Vec<u8>| Header::read(&bytes).unwrap().flow;
    let one = flow(ipv4(TCP, Ecn::Ect0, 1, 0, 0, &segment(1000, 1)));
    assert_eq!(flow(ipv4(TCP, Ecn::Ce, 2, 0x4000, 10, &segment(1000, 2))), one);
    assert_ne!(flow(ipv4(TCP, Ecn::Ect0, 1, 0, 0, &segment(1001, 1))), one);
    assert_ne!(flow(ipv4(UDP, Ecn::Ect0, 1, 0, 0, &segment(1000, 1))), one);
    let six = flow(ipv6(TCP, Ecn::Ect0, &segment(1000, 1)));
    assert_ne!(flow(ipv6(TCP, Ecn::Ect0, &segment(1001, 1))), six);
}

#[test]
fn all_fragments_of_a_packet_are_of_one_flow() {
    let flow =
        |fragment, payload: &[u8]| Header::read(&ipv4(UDP, Ecn::Ect0, 9, fragment, 0, payload)).unwrap().flow;
    let first = flow(0x2000, &segment(1000, 1));
    assert_eq!(flow(0x2003, &[7; 64]), first);
    assert_eq!(flow(0x0006, &[8; 3]), first);
    let part = |offset: u16, payload: &[u8]| {
        let mut behind = vec![UDP, 0, (offset >> 8) as u8, offset as u8, 0, 0, 0, 9];
        behind.extend_from_slice(payload);
        Header::read(&ipv6(44, Ecn::Ect0, &behind)).unwrap().flow
    };
    let first = part(0x0001, &segment(1000, 1));
    assert_eq!(part(0x0019, &[7; 64]), first);
    // An atomic fragment is a whole packet (rfc6946).
    assert_eq!(
        part(0, &segment(1000, 1)),
        Header::read(&ipv6(UDP, Ecn::Ect0, &segment(1000, 1))).unwrap().flow
    );
}

#[test]
fn ports_are_found_behind_extension_headers() {
    let plain = Header::read(&ipv6(TCP, Ecn::Ect0, &segment(1000, 1))).unwrap();
    let mut behind = vec![0; 8 + 16 + 12];
    behind[0] = 60;
    behind[8..10].copy_from_slice(&[51, 1]);
    behind[24..26].copy_from_slice(&[TCP, 1]);
    behind.extend_from_slice(&segment(1000, 1));
    let header = Header::read(&ipv6(0, Ecn::Ect0, &behind)).unwrap();
    assert_eq!((header.flow, header.hash16), (plain.flow, plain.hash16));
}

#[test]
fn the_hash_differs_from_packet_to_packet_where_the_identification_does_not() {
    let of = |bytes: Vec<u8>| Header::read(&bytes).unwrap().hash16;
    let distinct = |hashes: Vec<u16>| {
        let mut sorted = hashes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.len()
    };
    let without = (0..256).map(|n| of(ipv4(TCP, Ecn::Ect0, 0, 0x4000, 0, &segment(1, n * 1448)))).collect();
    let six = (0..256).map(|n| of(ipv6(TCP, Ecn::Ect0, &segment(1, n * 1448)))).collect();
    let datagrams = (0..256_u32)
        .map(|n| {
            let payload = [&[0; 8][..], &n.to_be_bytes(), &[5; 40]].concat();
            of(ipv4(UDP, Ecn::Ect0, 77, 0x4000, 0, &payload))
        })
        .collect();
    // 256 of 65,536: about one pair falls together.
    for hashes in [without, six, datagrams] {
        assert!(distinct(hashes) > 245);
    }
    // A receiver that has nothing but the datagram computes the same.
    let payload: Vec<u8> = (0..100).collect();
    assert_eq!(
        of(ipv4(UDP, Ecn::Ect0, 5, 0, 0, &[&[9; 8][..], &payload].concat())),
        payload_hash16(&payload[..32])
    );
}

#[test]
fn what_is_no_packet_is_refused_with_the_reason() {
    let good = ipv4(TCP, Ecn::Ect0, 1, 0, 0, &segment(1, 1));
    assert_eq!(Header::read(&[]), Err(Malformed::Truncated { have: 0, need: 20 }));
    assert_eq!(Header::read(&[0x50; 60]), Err(Malformed::Version { version: 5 }));
    assert_eq!(Header::read(&good[..19]), Err(Malformed::Truncated { have: 19, need: 20 }));
    assert_eq!(Header::read(&good[..59]), Err(Malformed::Truncated { have: 59, need: 60 }));
    assert_eq!(Header::read(&ipv6(6, Ecn::Ce, &[])[..39]), Err(Malformed::Truncated { have: 39, need: 40 }));
    let mut short = good.clone();
    short[0] = 0x44;
    assert_eq!(Header::read(&short), Err(Malformed::HeaderLength { bytes: 16 }));
    let mut long = good;
    long[3] = 40;
    long[0] = 0x4f;
    assert_eq!(Header::read(&long), Err(Malformed::HeaderLength { bytes: 60 }));
}

#[test]
fn hosts_and_codepoints_are_read() {
    let four = Header::read(&ipv4(UDP, Ecn::Ect0, 7, 0, 0, &[0; 16])).unwrap();
    let six = Header::read(&ipv6(UDP, Ecn::Ect0, &[0; 16])).unwrap();
    // Type of service 0xb8: expedited forwarding; the same traffic class.
    assert_eq!((four.dscp, six.dscp), (46, 46));
    let mut turned = ipv4(UDP, Ecn::Ect0, 7, 0, 0, &[0; 16]);
    turned[12..20].copy_from_slice(&[10, 4, 5, 6, 10, 1, 2, 3]);
    let turned = Header::read(&turned).unwrap();
    assert_ne!(four.hosts.source, four.hosts.destination);
    assert_eq!((turned.hosts.source, turned.hosts.destination), (four.hosts.destination, four.hosts.source));
    let other = Header::read(&ipv4(TCP, Ecn::Ect0, 9, 0, 0, &segment(80, 1))).unwrap();
    assert_eq!(other.hosts, four.hosts);
}

#[test]
fn what_tcp_acknowledges_is_read() {
    // A pure ACK with these flags and options.
    let ack = |flags: u8, options: &[u8], data: usize| {
        let mut bytes = vec![0; 20];
        bytes[8..12].copy_from_slice(&4_000_000_000_u32.to_be_bytes());
        bytes[12] = ((20 + options.len()) / 4) as u8 * 16;
        bytes[13] = flags;
        bytes.extend_from_slice(options);
        bytes.resize(bytes.len() + data, 0);
        Header::read(&ipv4(TCP, Ecn::NotEct, 7, 0, 0, &bytes)).unwrap().acknowledges
    };
    let plain = TcpAck { number: 4_000_000_000, echo: 0, pure: true, replaceable: true };
    assert_eq!(ack(0x10, &[], 0), Some(plain));
    // Timestamps, as Linux pads them.
    assert_eq!(ack(0x10, &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2], 0), Some(plain));
    let sack = [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    assert_eq!(ack(0x10, &sack, 0), Some(TcpAck { replaceable: false, ..plain }));
    assert_eq!(ack(0x50, &[], 0), Some(TcpAck { echo: 1, ..plain }));
    assert_eq!(ack(0x10, &[], 100), Some(TcpAck { pure: false, ..plain }));
    // FIN and PSH say something of their own; a SYN and what does not acknowledge are none.
    assert_eq!(ack(0x11, &[], 0), Some(TcpAck { replaceable: false, ..plain }));
    assert_eq!(ack(0x18, &[], 0), Some(TcpAck { replaceable: false, ..plain }));
    assert_eq!((ack(0x12, &[], 0), ack(0x02, &[], 0)), (None, None));
    assert_eq!(Header::read(&ipv4(UDP, Ecn::NotEct, 7, 0, 0, &[0; 40])).unwrap().acknowledges, None);
}

#[test]
fn flows_that_accelerate_are_told_from_ordinary_ones() {
    let plain = Header::read(&ipv4(UDP, Ecn::NotEct, 7, 0, 0, &[0; 16])).unwrap();
    let header = |flow, ecn| Header { flow: FlowId(flow), ecn, ..plain };
    let mut reading = Reading::of_those(Classifier::Accelerates, Encoding::Abc);
    assert_eq!(reading.of(&header(1, Ecn::Ect0), &[]), Encoding::Classic);
    assert_eq!(reading.of(&header(1, Ecn::Ect1), &[]), Encoding::Abc);
    // Braked by a router before this one.
    assert_eq!(reading.of(&header(1, Ecn::Ect0), &[]), Encoding::Abc);
    assert_eq!(reading.of(&header(2, Ecn::Ce), &[]), Encoding::Classic);
    assert_eq!(reading.of(&header(1, Ecn::NotEct), &[]), Encoding::None);
    let mut all = Reading::all(Encoding::Bmcc);
    assert_eq!(
        [Ecn::Ect0, Ecn::NotEct].map(|ecn| all.of(&header(3, ecn), &[])),
        [Encoding::Bmcc, Encoding::None]
    );
    let mut l4s = Reading::all(Encoding::L4s);
    assert_eq!(
        [Ecn::Ect0, Ecn::Ect1].map(|ecn| l4s.of(&header(3, ecn), &[])),
        [Encoding::Classic, Encoding::L4s]
    );
}

#[test]
fn packets_that_their_headers_tell_apart_have_the_encoding_of_the_queue() {
    let mut reading = Reading::of_those("address=10.4.5.0/24".parse().unwrap(), Encoding::Abc);
    let mut of = |packet: &[u8]| reading.of(&Header::read(packet).unwrap(), packet);
    // The codepoint of a packet that an earlier router braked is that of classic ECN.
    assert_eq!(of(&ipv4(UDP, Ecn::Ect0, 7, 0, 0, &[0; 16])), Encoding::Abc);
    assert_eq!(of(&ipv6(UDP, Ecn::Ect1, &[0; 16])), Encoding::Classic);
    assert_eq!(of(&ipv4(UDP, Ecn::NotEct, 7, 0, 0, &[0; 16])), Encoding::None);
}

fn codepoint() -> impl Strategy<Value = Ecn> {
    (0..4_u8).prop_map(Ecn::from_bits)
}

proptest! {
    #[test]
    fn rewriting_leaves_a_right_checksum_and_everything_else(
        from in codepoint(), to in codepoint(), identification: u16, options in 0..=10_usize,
        payload in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let before = ipv4(TCP, from, identification, 0, options, &payload);
        let mut bytes = before.clone();
        prop_assert_eq!(write_ecn(&mut bytes, to), from != to);
        prop_assert_eq!(sum(&bytes[..IPV4_HEADER + options * 4]), 0xffff);
        prop_assert_eq!(Header::read(&bytes).unwrap().ecn, to);
        // The same bytes but for the two bits and the checksum.
        bytes[1] = before[1];
        bytes[10..12].copy_from_slice(&before[10..12]);
        prop_assert_eq!(&bytes, &before);

        let before = ipv6(UDP, from, &payload);
        let mut bytes = before.clone();
        prop_assert_eq!(write_ecn(&mut bytes, to), from != to);
        prop_assert_eq!(Header::read(&bytes).unwrap().ecn, to);
        bytes[1] = before[1];
        prop_assert_eq!(&bytes, &before);
    }

    #[test]
    fn any_bytes_are_read_or_refused_and_what_is_read_can_be_rewritten(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..120), version in 0..16_u8, to in codepoint(),
    ) {
        if let Some(first) = bytes.first_mut() {
            *first = *first & 0x0f | version << 4;
        }
        if let Ok(header) = Header::read(&bytes) {
            prop_assert!(header.size as usize <= bytes.len());
            // Padding behind the packet changes nothing.
            let padded = [&bytes[..], &[0xa5; 9]].concat();
            prop_assert_eq!(Header::read(&padded), Ok(header));
            write_ecn(&mut bytes, to);
            prop_assert_eq!(Header::read(&bytes), Ok(Header { ecn: to, ..header }));
        }
    }

    #[test]
    fn a_packet_cut_short_anywhere_is_refused(cut in 0..80_usize, six: bool) {
        let whole = if six { ipv6(TCP, Ecn::Ect0, &segment(1, 1)) } else { ipv4(TCP, Ecn::Ect0, 1, 0, 5, &segment(1, 1)) };
        let cut = cut % whole.len();
        prop_assert!(Header::read(&whole[..cut]).is_err());
    }

    #[test]
    fn chains_of_extension_headers_end(kinds in proptest::collection::vec(0..=255_u8, 0..20), lengths: [u8; 20]) {
        let mut behind = Vec::new();
        for (place, &kind) in kinds.iter().enumerate() {
            behind.extend_from_slice(&[kind, lengths[place] % 4, 0, 1, 0, 0, 0, 0]);
        }
        prop_assert!(Header::read(&ipv6(0, Ecn::Ect1, &behind)).is_ok());
    }
}

#[test]
fn headers_are_those_of_ip_and_of_tcp_or_udp() {
    assert_eq!(headers(&ipv4(UDP, Ecn::Ect0, 9, 0, 0, &[0; 40])), 20 + 8);
    let mut segment = [0; 100];
    // rfc9293 3.1: eight words, ten of whose bytes are timestamps.
    segment[12] = 8 << 4;
    assert_eq!(headers(&ipv4(TCP, Ecn::Ect0, 9, 0, 0, &segment)), 20 + 32);
    assert_eq!(headers(&[]), 0);
}
