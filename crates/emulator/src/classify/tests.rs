//! What headers say of ABC's packets, against headers written down byte by byte.

use proptest::prelude::*;

use super::*;

/// An IPv4 header (rfc791 3.1) from 192.0.2.7 to 198.51.100.1 with an identification of 0x0abc.
const V4: [u8; 20] = [0x45, 1, 0, 20, 0x0a, 0xbc, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 7, 198, 51, 100, 1];

/// An IPv6 header (rfc8200 3) from 2001:db8::7 to 2001:db8:1::1 with ECT(1) and a flow label of 0x60abc.
const V6: [u8; 40] = [
    0x60, 0x16, 0x0a, 0xbc, 0, 0, 59, 64, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0x20, 1,
    0xd, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
];

fn classifier(text: &str) -> Classifier {
    text.parse().unwrap()
}

#[test]
fn an_address_may_be_at_either_end() {
    for text in ["address=192.0.2.7", "address=192.0.2.0/24", "address=198.51.100.1", "address=0.0.0.0/0"] {
        assert!(classifier(text).by_header(&V4), "{text}");
        assert!(!classifier(text).by_header(&V6), "{text}");
    }
    for text in ["address=2001:db8::7", "address=2001:db8:1::/48", "address=2001:db8::/32"] {
        assert!(classifier(text).by_header(&V6), "{text}");
        assert!(!classifier(text).by_header(&V4), "{text}");
    }
    assert!(!classifier("address=192.0.2.8").by_header(&V4));
    assert!(!classifier("address=2001:db8:2::/48").by_header(&V6));
}

#[test]
fn a_flow_label_is_ipv6s_and_an_identification_ipv4s() {
    assert!(
        classifier("flow-label=0x60abc").by_header(&V6),
        "the codepoint beside the label is not a part of it"
    );
    assert!(classifier("flow-label=395964").by_header(&V6));
    assert!(!classifier("flow-label=0xabc").by_header(&V6));
    assert!(classifier("ipid=0xabc").by_header(&V4));
    assert!(!classifier("ipid=0xabd").by_header(&V4));
    assert!(!classifier("flow-label=0x60abc").by_header(&V4) && !classifier("ipid=0xabc").by_header(&V6));
}

#[test]
fn words_that_say_nothing_of_a_packet_are_refused_with_what_would_be_valid() {
    let refused = |text: &str| text.parse::<Classifier>().unwrap_err().to_string();
    assert!(
        refused("port=80").contains("`port=80` is no field") && refused("port=80").contains("flow-label=")
    );
    assert!(refused("address=here").contains("address `here`"));
    assert!(refused("address=192.0.2.0/33").contains("network such as"));
    assert!(refused("flow-label=0").contains("from 1 to 1048575"));
    assert!(refused("flow-label=0x100000").contains("from 1 to 1048575"));
    assert!(refused("ipid=65536").contains("ipid `65536` is not a whole number from 1 to 65535"));
}

fn any_classifier() -> impl Strategy<Value = Classifier> {
    prop_oneof![
        Just(Classifier::Accelerates),
        (any::<IpAddr>(), 0..=32u8)
            .prop_map(|(address, bits)| Classifier::Address(IpNet::new(address, bits).unwrap().trunc())),
        LABELS.prop_map(Classifier::FlowLabel),
        (1..=u16::MAX).prop_map(Classifier::Identification),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(classifier in any_classifier()) {
        prop_assert_eq!(classifier.to_string().parse::<Classifier>(), Ok(classifier));
    }

    #[test]
    fn no_words_and_no_bytes_do_harm(text in ".*", classifier in any_classifier(), packet in any::<Vec<u8>>()) {
        let _ = text.parse::<Classifier>();
        let _ = classifier.by_header(&packet);
    }
}
