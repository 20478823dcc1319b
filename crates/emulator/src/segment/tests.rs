//! Cutting and joining are each other's inverse, and what is cut is what a kernel would have cut.

use super::*;
use crate::packet::Header;
use proptest::prelude::*;

/// A buffer with `data` bytes behind headers of TCP with timestamps, as a kernel hands it over.
fn buffer(six: bool, flags: u8, tos: u8, sequence: u32, size: u16, data: &[u8]) -> Vec<u8> {
    let ip = if six { IPV6_HEADER } else { IPV4_HEADER };
    let place = Place { six, tcp: HEAD + ip, data: HEAD + ip + 32 };
    let mut bytes = vec![0; place.data];
    if six {
        bytes[HEAD] = 0x60;
        bytes[HEAD + 1] = tos << 4;
        bytes[HEAD + 6] = TCP;
    } else {
        bytes[HEAD] = 0x45;
        bytes[HEAD + 1] = tos;
        put_u16(&mut bytes, HEAD + 4, 0xfffe);
        put_u16(&mut bytes, HEAD + 6, 0x4000);
        bytes[HEAD + 9] = TCP;
    }
    bytes[place.tcp + 4..place.tcp + 8].copy_from_slice(&sequence.to_be_bytes());
    bytes[place.tcp + 12] = 8 << 4;
    bytes[place.tcp + 13] = flags;
    bytes[place.tcp + 20..place.tcp + 32].copy_from_slice(&[1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
    bytes.extend_from_slice(data);
    let length = bytes.len() - HEAD;
    put_length(&mut bytes, place, length);
    put_word(&mut bytes, place, (data.len() > usize::from(size)).then_some(size));
    bytes
}

fn cut(bytes: &[u8]) -> Vec<Vec<u8>> {
    let large = Large::read(bytes, bytes.len()).unwrap();
    let packet = |index| {
        let mut packet = vec![0; LONGEST];
        let start = large.write_headers(index, &mut packet);
        packet.truncate(start);
        packet.extend_from_slice(&bytes[large.data_of(index)]);
        packet
    };
    (0..large.packets()).map(packet).collect()
}

/// TCP's checksum as the receiver would compute it once the open one is filled in: right when zero.
fn tcp_checksum(packet: &[u8]) -> u16 {
    let place = Place::find(packet).unwrap();
    // The field holds the sum of the pseudo header; with the sum of all else it is what the checksum
    // completes.
    let filled = !sum(&packet[place.tcp..], 0);
    let mut complete = packet.to_vec();
    put_u16(&mut complete, place.tcp + TCP_CHECKSUM, filled);
    let addresses = if place.six { HEAD + 8..HEAD + 40 } else { HEAD + 12..HEAD + 20 };
    let length = (packet.len() - place.tcp) as u32;
    let pseudo = sum(&packet[addresses], length + u32::from(TCP));
    !sum(&complete[place.tcp..], u32::from(pseudo))
}

#[test]
fn numbers_count_up_and_flags_go_to_the_packets_they_are_for() {
    let data: Vec<u8> = (0..250).collect();
    let bytes = buffer(false, ACK | PUSH | FIN | CWR, 0, u32::MAX - 50, 100, &data);
    let packets = cut(&bytes);
    let seen: Vec<_> = packets
        .iter()
        .map(|packet| {
            let tcp = HEAD + IPV4_HEADER;
            (u16_at(packet, HEAD + 4), u32_at(packet, tcp + 4), packet[tcp + 13], packet.len() - HEAD)
        })
        .collect();
    let first = u32::MAX - 50;
    assert_eq!(
        seen,
        [
            (0xfffe, first, ACK | CWR, 152),
            (0xffff, first.wrapping_add(100), ACK, 152),
            (0x0000, first.wrapping_add(200), ACK | PUSH | FIN, 102)
        ]
    );
}

#[test]
fn packets_that_can_be_marked_or_say_more_than_data_are_not_joined() {
    let data = [7; 100];
    let one = |flags, tos| Joined::begin(&buffer(false, flags, tos, 1, 1000, &data)).is_some();
    assert!(one(ACK, 0) && one(ACK | ECE, 0xb8) && one(ACK | PUSH, 0));
    for ecn in 1..4 {
        assert!(!one(ACK, ecn));
        assert!(Joined::begin(&buffer(true, ACK, ecn, 1, 1000, &data)).is_none());
    }
    for flag in [FIN, 0x02, 0x04, 0x20, CWR] {
        assert!(!one(ACK | flag, 0));
    }
    assert!(Joined::begin(&buffer(false, ACK, 0, 1, 1000, &[])).is_none());
    let mut summed = buffer(false, ACK, 0, 1, 1000, &data);
    summed[0] = 0;
    assert!(Joined::begin(&summed).is_none());
}

#[test]
fn only_what_continues_is_joined() {
    let packets = cut(&buffer(false, ACK, 0, 1000, 100, &[5; 400]));
    let joins = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut joined = Joined::begin(&packets[0]).unwrap();
        let mut second = packets[1].clone();
        change(&mut second);
        joined.join(&second)
    };
    let tcp = HEAD + IPV4_HEADER;
    assert!(joins(&|_| {}));
    assert!(!joins(&|packet| packet[tcp + 7] += 1), "another sequence number");
    assert!(!joins(&|packet| packet[tcp + 11] += 1), "another acknowledgement");
    assert!(!joins(&|packet| packet[tcp + 1] += 1), "another port");
    assert!(!joins(&|packet| packet[tcp + 25] += 1), "another timestamp");
    assert!(!joins(&|packet| packet[tcp + 15] += 1), "another window");
    assert!(!joins(&|packet| packet[HEAD + 8] += 1), "another time to live");
    assert!(!joins(&|packet| packet[HEAD + 5] ^= 1), "another identification");
    assert!(!joins(&|packet| packet[HEAD + 1] = 2), "ECN-capable");
    assert!(!joins(&|packet| packet.push(0)), "longer than the first");
    let mut joined = Joined::begin(&packets[0]).unwrap();
    assert!(!joined.join(&packets[2]), "a gap");
    assert!(joined.join(&packets[1][..packets[1].len() - 1]));
    assert!(!joined.join(&packets[2]), "behind a short one");
}

proptest! {
    #[test]
    fn what_is_cut_is_whole_and_joins_to_what_it_was(
        six: bool, sequence: u32, size in 1..1461_u16, push: bool, tos in 0..4_u8, data in 2..20_000_usize, seed: u8,
    ) {
        let data: Vec<u8> = (0..data.max(usize::from(size) + 1)).map(|n| (n as u8).wrapping_mul(31) ^ seed).collect();
        let flags = ACK | if push { PUSH } else { 0 };
        let bytes = buffer(six, flags, tos, sequence, size, &data);
        let packets = cut(&bytes);
        let mut whole = Vec::new();
        for packet in &packets {
            let header = Header::read(&packet[HEAD..]).unwrap();
            prop_assert_eq!(header.size as usize, packet.len() - HEAD);
            prop_assert_eq!(header.ecn as u8, tos);
            if !six {
                prop_assert_eq!(sum(&packet[HEAD..HEAD + IPV4_HEADER], 0), 0xffff);
            }
            prop_assert_eq!(tcp_checksum(packet), 0);
            whole.extend_from_slice(&packet[Place::find(packet).unwrap().data..]);
        }
        prop_assert_eq!(&whole, &data);
        if tos == 0 {
            let mut joined = Joined::begin(&packets[0]).unwrap();
            prop_assert!(packets[1..].iter().all(|packet| joined.join(packet)));
            prop_assert_eq!(joined.packets(), packets.len());
            let (headers, start) = joined.headers();
            let mut back = headers[..start].to_vec();
            packets.iter().for_each(|packet| back.extend_from_slice(&packet[start..]));
            prop_assert_eq!(back, bytes);
        }
    }

    #[test]
    fn any_bytes_are_cut_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 10..400), six: bool) {
        bytes[0] = CHECKSUM_OPEN;
        bytes[1] = if six { TCP_OVER_6 } else { TCP_OVER_4 };
        let start = u16::from(bytes[6]) % 60;
        bytes[6..8].copy_from_slice(&start.to_ne_bytes());
        if let Some(first) = bytes.get_mut(HEAD) {
            *first = if six { 0x60 } else { 0x45 };
        }
        if let Some(large) = Large::read(&bytes, bytes.len()) {
            let mut packet = vec![0; LONGEST];
            for index in 0..large.packets() {
                large.write_headers(index, &mut packet);
                prop_assert!(large.data_of(index).end <= bytes.len());
            }
        }
        bytes[1] = PLAIN;
        if let Some(mut joined) = Joined::begin(&bytes) {
            joined.join(&bytes);
        }
    }
}

/// The virtio header says where TCP begins, IPv4's how long it is: whoever may write packets of his own can
/// make them disagree.
#[test]
fn a_buffer_whose_headers_disagree_is_not_segmented() {
    let data = [7; 300];
    let mut bytes = buffer(false, ACK, 0, 1, 100, &data);
    assert_eq!(Large::read(&bytes, bytes.len()).unwrap().packets(), 3);
    // 60 bytes of IPv4's header, where TCP begins after 20.
    bytes[HEAD] = 0x4f;
    assert!(Large::read(&bytes, bytes.len()).is_none());
}
