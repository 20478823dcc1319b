//! Rtnetlink's messages about qdiscs, as bytes: `include/uapi/linux/rtnetlink.h`, `pkt_sched.h`,
//! `gen_stats.h`, `netlink.h`, and the attributes of `kmod/pkt_sched_abc.h`. Whatever comes in is read
//! without trust.
//!
//! By hand, because `netlink-packet-route` 0.34 cannot say it: it writes `TCA_OPTIONS` without
//! `NLA_F_NESTED`, which the module's `nla_parse_nested` requires, and of a kind that it does not know it
//! returns the options unread; so the module's attributes would be written and read here all the same.

use std::time::Duration;

use super::{Buffer, Counts, QdiscSettings};
use crate::settings::Variant;

pub(super) const NEW: u16 = 36;
pub(super) const DELETE: u16 = 37;
pub(super) const GET: u16 = 38;
pub(super) const REQUEST: u16 = 0x1;
pub(super) const ACK: u16 = 0x4;
pub(super) const DUMP: u16 = 0x300;
pub(super) const REPLACE: u16 = 0x100;
pub(super) const CREATE: u16 = 0x400;

const ERROR: u16 = 2;
const DONE: u16 = 3;
/// An error's answer has attributes.
const HAS_ATTRIBUTES: u16 = 0x200;
const ERROR_WORDS: u16 = 1;

const NESTED: u16 = 0x8000;
const TYPE: u16 = 0x3fff;

pub(super) const KIND: u16 = 1;
pub(super) const OPTIONS: u16 = 2;
pub(super) const STATS2: u16 = 7;
pub(super) const STATS_BASIC: u16 = 1;
pub(super) const STATS_QUEUE: u16 = 3;
const STATS_APP: u16 = 4;

const RATE64: u16 = 2;
const SHAPE: u16 = 3;
const LIMIT: u16 = 4;
const LIMIT_BYTES: u16 = 5;
const TARGET: u16 = 6;
const DELTA: u16 = 7;
const WINDOW: u16 = 8;
const ETA: u16 = 9;
const TOKEN_LIMIT: u16 = 10;
const ENCODING: u16 = 11;
const DELAY: u16 = 12;
const VARIANT: u16 = 13;

/// `SHARE_ONE` of `bpf/router.h`.
const ONE: f64 = (1_u32 << 20) as f64;

/// One attribute, padded.
pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// `TCA_OPTIONS` of these.
pub(super) fn nested(options: &[Vec<u8>]) -> Vec<u8> {
    attribute(NESTED | OPTIONS, &options.concat())
}

/// A request about the qdisc of a device below `parent`; of kind `abc` where attributes follow.
pub(super) fn request(
    kind: u16,
    flags: u16,
    sequence: u32,
    device: i32,
    parent: u32,
    options: Option<&[u8]>,
) -> Vec<u8> {
    let attributes = options.map(|options| [&attribute(KIND, b"abc\0"), options].concat());
    let place = Place { device, handle: 0, parent };
    request_at(kind, flags, sequence, &place, &attributes.unwrap_or_default())
}

/// Which qdisc a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Index of the device.
    pub(super) device: i32,
    /// The qdisc's number; 0 for whichever stands there.
    pub(super) handle: u32,
    pub(super) parent: u32,
}

/// A request about the qdisc at `place`, with attributes.
pub(super) fn request_at(kind: u16, flags: u16, sequence: u32, place: &Place, attributes: &[u8]) -> Vec<u8> {
    // struct tcmsg: family and padding, device, handle, parent, info
    let mut body = vec![0; 4];
    body.extend(place.device.to_ne_bytes());
    body.extend(place.handle.to_ne_bytes());
    body.extend(place.parent.to_ne_bytes());
    body.extend(0_u32.to_ne_bytes());
    body.extend(attributes);
    let length = u32::try_from(16 + body.len()).unwrap_or(u32::MAX);
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend(0_u32.to_ne_bytes());
    message.extend(body);
    message
}

fn micros(time: Duration) -> [u8; 4] {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX).to_ne_bytes()
}

fn share(value: f64) -> [u8; 4] {
    // Above what fits, the largest; the kernel refuses that.
    ((value * ONE).round() as u32).to_ne_bytes()
}

/// Every setting as `TCA_OPTIONS`, but for those that the variant goes without.
pub(super) fn options(settings: &QdiscSettings) -> Vec<u8> {
    let (packets, bytes) = match settings.buffer {
        Buffer::Packets(packets) => (packets, 0),
        Buffer::Bytes(bytes) => (0, bytes),
    };
    // 0 would be no rate: less than a byte per second is one byte, which the kernel refuses.
    let rate = settings.rate_bps.map_or(0, |bps| (bps / 8).max(1));
    let mut attributes = vec![
        attribute(RATE64, &rate.to_ne_bytes()),
        attribute(SHAPE, &[u8::from(settings.shape)]),
        attribute(LIMIT, &packets.to_ne_bytes()),
        attribute(LIMIT_BYTES, &bytes.to_ne_bytes()),
        attribute(WINDOW, &micros(settings.window)),
        attribute(VARIANT, &[settings.variant as u8]),
    ];
    if settings.variant != Variant::L4s {
        attributes.extend([
            attribute(ETA, &share(settings.eta)),
            attribute(TOKEN_LIMIT, &share(settings.token_limit)),
            attribute(ENCODING, &[u8::from(settings.proxied)]),
        ]);
    }
    if settings.variant == Variant::Paper {
        attributes.extend([
            attribute(TARGET, &micros(settings.target)),
            attribute(DELTA, &micros(settings.delta)),
            attribute(DELAY, &[u8::from(settings.sojourn)]),
        ]);
    }
    nested(&attributes)
}

/// The attributes in some bytes, up to where they make no sense.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)? & TYPE;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

pub(super) fn find(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// What the kernel answers.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer<T> {
    /// A qdisc of the kind that was asked for.
    Qdisc(Box<T>),
    /// Done, or refused: the error's number and the kernel's own words.
    End(i32, Option<String>),
    /// Anything else.
    Other,
}

/// A qdisc of kind `abc`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Abc {
    /// Index of the device.
    pub(super) device: i32,
    pub(super) handle: u32,
    pub(super) parent: u32,
    pub(super) settings: QdiscSettings,
    pub(super) counts: Counts,
}

/// The answers with that sequence number in what was received at once, about qdiscs of kind `abc`.
#[cfg(any(test, fuzzing))]
pub(super) fn answers(bytes: &[u8], sequence: u32) -> Vec<Answer<Abc>> {
    answers_of(bytes, sequence, abc)
}

/// The same, where `read` reads a qdisc from `struct tcmsg` and attributes.
pub(super) fn answers_of<T>(
    mut bytes: &[u8],
    sequence: u32,
    read: impl Fn(&[u8]) -> Option<T>,
) -> Vec<Answer<T>> {
    let mut answers = Vec::new();
    while let Some(length) = u32_at(bytes, 0).map(|length| length as usize) {
        let Some(body) = bytes.get(16..length) else { break };
        if u32_at(bytes, 8) == Some(sequence) {
            let flags = u16_at(bytes, 6).unwrap_or_default();
            answers.push(match u16_at(bytes, 4) {
                Some(ERROR) => end(body, flags),
                Some(DONE) => end(body, 0),
                Some(NEW) => read(body).map_or(Answer::Other, |qdisc| Answer::Qdisc(Box::new(qdisc))),
                _ => Answer::Other,
            });
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    answers
}

fn end<T>(body: &[u8], flags: u16) -> Answer<T> {
    let error = u32_at(body, 0).map_or(0, |error| (error as i32).wrapping_neg());
    // The error, the request's header, attributes.
    let words = body
        .get(20..)
        .filter(|_| flags & HAS_ATTRIBUTES != 0)
        .and_then(|attributes| find(attributes, ERROR_WORDS))
        .map(|words| String::from_utf8_lossy(words).trim_end_matches('\0').to_string());
    Answer::End(error, words)
}

/// Reads a qdisc of kind `abc`.
pub(super) fn abc(body: &[u8]) -> Option<Abc> {
    let attributes = body.get(20..)?;
    if find(attributes, KIND)? != b"abc\0" {
        return None;
    }
    let statistics = find(attributes, STATS2).unwrap_or_default();
    let settings = settings(find(attributes, OPTIONS)?)?;
    Some(Abc {
        device: u32_at(body, 4)? as i32,
        handle: u32_at(body, 8)?,
        parent: u32_at(body, 12)?,
        counts: counts(statistics, settings.variant)?,
        settings,
    })
}

fn settings(options: &[u8]) -> Option<QdiscSettings> {
    let number = |kind| u32_at(find(options, kind)?, 0);
    let flag = |kind| Some(*find(options, kind)?.first()? != 0);
    let time = |kind| Some(Duration::from_micros(u64::from(number(kind)?)));
    let packets = number(LIMIT)?;
    Some(QdiscSettings {
        rate_bps: Some(u64_at(find(options, RATE64)?, 0)?.saturating_mul(8)).filter(|rate| *rate > 0),
        shape: flag(SHAPE)?,
        buffer: if packets > 0 { Buffer::Packets(packets) } else { Buffer::Bytes(number(LIMIT_BYTES)?) },
        variant: variant(options)?,
        target: time(TARGET)?,
        delta: time(DELTA)?,
        window: time(WINDOW)?,
        eta: f64::from(number(ETA)?) / ONE,
        token_limit: f64::from(number(TOKEN_LIMIT)?) / ONE,
        proxied: flag(ENCODING)?,
        sojourn: flag(DELAY)?,
    })
}

/// A module of before it had one has the paper's.
fn variant(options: &[u8]) -> Option<Variant> {
    let Some(value) = find(options, VARIANT) else { return Some(Variant::Paper) };
    [Variant::Paper, Variant::Adaptive, Variant::L4s].into_iter().find(|variant| value == [*variant as u8])
}

fn counts(statistics: &[u8], variant: Variant) -> Option<Counts> {
    let basic = find(statistics, STATS_BASIC)?;
    let queue = find(statistics, STATS_QUEUE)?;
    let own = find(statistics, STATS_APP)?;
    let small = |at| Some(f64::from(u32_at(own, at)?));
    let loop_delay_us = u32_at(own, 96).filter(|us| *us > 0);
    let forecasts = loop_delay_us.is_some() || variant == Variant::L4s;
    Some(Counts {
        bytes: u64_at(basic, 0)?,
        packets: u32_at(basic, 8)?,
        waiting_packets: u32_at(queue, 0)?,
        waiting_bytes: u32_at(queue, 4)?,
        drops: u32_at(queue, 8)?,
        accelerates: u64_at(own, 0)?,
        turned: u64_at(own, 8)?,
        brakes: u64_at(own, 16)?,
        ce: u64_at(own, 24)?,
        others: u64_at(own, 32)?,
        unwritten: u64_at(own, 40)?,
        shares: u64_at(own, 48)? as f64 / ONE,
        sojourn_sum_us: u64_at(own, 56)?,
        capacity_bps: u64_at(own, 64)?.saturating_mul(8),
        measured_bps: u64_at(own, 72)?.saturating_mul(8),
        f: small(80)? / ONE,
        tokens: small(84)? / ONE,
        sojourn_ms: small(88)? / 1000.0,
        sojourn_max_ms: small(92)? / 1000.0,
        loop_delay_ms: loop_delay_us.map(|us| f64::from(us) / 1000.0),
        forecast_error_bytes: u32_at(own, 100).filter(|_| forecasts),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn some_settings() -> QdiscSettings {
        QdiscSettings { rate_bps: Some(12_000_000), proxied: true, ..QdiscSettings::default() }
    }

    /// What the kernel would answer about a qdisc with these settings and the number `n` in every count.
    fn described(settings: &QdiscSettings, n: u8) -> Vec<u8> {
        let own = [[n, 0, 0, 0, 0, 0, 0, 0].repeat(10), [n, 0, 0, 0].repeat(6)].concat();
        let statistics = [
            attribute(STATS_BASIC, &[[n, 0, 0, 0].repeat(3), vec![0; 4]].concat()),
            attribute(STATS_QUEUE, &[n, 0, 0, 0].repeat(5)),
            attribute(STATS_APP, &own),
        ];
        let tail = [options(settings), attribute(NESTED | STATS2, &statistics.concat())].concat();
        request(NEW, 0, 7, 3, 0xffff_ffff, Some(&tail))
    }

    #[test]
    fn what_is_sent_is_what_is_read() {
        let read = answers(&described(&some_settings(), 9), 7);
        let [Answer::Qdisc(abc)] = read.as_slice() else { panic!("{read:?}") };
        assert_eq!((abc.device, abc.parent), (3, 0xffff_ffff));
        assert_eq!(abc.settings, QdiscSettings { eta: (0.98 * ONE).round() / ONE, ..some_settings() });
        assert_eq!((abc.counts.drops, abc.counts.ce, abc.counts.capacity_bps), (9, 9, 72));
        assert_eq!(abc.counts.sojourn_max_ms, 0.009);
        assert_eq!((abc.counts.loop_delay_ms, abc.counts.forecast_error_bytes), (Some(0.009), Some(9)));
        // Answers to others are left alone.
        assert_eq!(answers(&described(&some_settings(), 9), 8), []);
    }

    #[test]
    fn the_adaptive_variant_is_sent_without_what_it_has_no_use_for() {
        let settings = QdiscSettings { variant: Variant::Adaptive, eta: 1.0, ..QdiscSettings::default() };
        let bytes = options(&settings);
        assert_eq!(find(&bytes[4..], VARIANT), Some(&[1][..]));
        assert_eq!([TARGET, DELTA, DELAY].map(|kind| find(&bytes[4..], kind)), [None; 3]);
        // The kernel shows them as they were.
        let there = [TARGET, DELTA].map(|kind| attribute(kind, &7_000_u32.to_ne_bytes())).concat();
        let shown = [&bytes[4..], &there, &attribute(DELAY, &[0])].concat();
        let read = super::settings(&shown).unwrap();
        assert_eq!((read.variant, read.target), (Variant::Adaptive, Duration::from_millis(7)));
        // A module of before there were variants says none, and has no loop's delay.
        let paper = options(&QdiscSettings::default());
        let older: Vec<u8> = attributes(&paper[4..])
            .filter(|(kind, _)| *kind != VARIANT)
            .flat_map(|(kind, value)| attribute(kind, value))
            .collect();
        assert_eq!(find(&older, VARIANT), None);
        assert_eq!(super::settings(&older).unwrap().variant, Variant::Paper);
        let own = attribute(STATS_APP, &[1; 96]);
        let statistics = [attribute(STATS_BASIC, &[0; 16]), attribute(STATS_QUEUE, &[0; 20]), own].concat();
        assert_eq!(counts(&statistics, Variant::Paper).unwrap().loop_delay_ms, None);
    }

    #[test]
    fn the_law_for_l4s_is_sent_without_what_belongs_to_the_others() {
        let settings = QdiscSettings { variant: Variant::L4s, eta: 1.0, ..QdiscSettings::default() };
        let bytes = options(&settings);
        assert_eq!(find(&bytes[4..], VARIANT), Some(&[2][..]));
        let of_others = [TARGET, DELTA, DELAY, ETA, TOKEN_LIMIT, ENCODING];
        assert_eq!(of_others.map(|kind| find(&bytes[4..], kind)), [None; 6]);
        // It has no loop's delay, and a forecast all the same.
        let own = [vec![1; 96], vec![0; 4], vec![7, 0, 0, 0]].concat();
        let statistics =
            [attribute(STATS_BASIC, &[0; 16]), attribute(STATS_QUEUE, &[0; 20]), attribute(STATS_APP, &own)]
                .concat();
        let shown = |variant| {
            let counts = counts(&statistics, variant).unwrap();
            (counts.loop_delay_ms, counts.forecast_error_bytes)
        };
        assert_eq!(shown(Variant::L4s), (None, Some(7)));
        assert_eq!(shown(Variant::Paper), (None, None));
    }

    #[test]
    fn a_rate_of_a_few_bits_is_not_taken_for_none() {
        let told = |rate_bps| {
            let bytes = options(&QdiscSettings { rate_bps, ..QdiscSettings::default() });
            u64_at(find(&bytes[4..], RATE64).unwrap(), 0)
        };
        assert_eq!([None, Some(1), Some(7), Some(15), Some(16)].map(told), [0, 1, 1, 1, 2].map(Some));
    }

    #[test]
    fn the_kernel_s_own_words_come_with_its_refusal() {
        let mut body = (-22_i32).to_ne_bytes().to_vec();
        body.extend([0; 16]);
        body.extend(attribute(ERROR_WORDS, b"abc: no\0"));
        assert_eq!(end::<Abc>(&body, HAS_ATTRIBUTES), Answer::End(22, Some("abc: no".into())));
        assert_eq!(end::<Abc>(&body, 0), Answer::End(22, None));
    }

    proptest! {
        #[test]
        fn no_answer_however_broken_is_read_beyond_its_end(
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            spoil in prop::collection::vec((0_usize..300, any::<u8>()), 0..6),
            cut in 0_usize..400,
        ) {
            answers(&bytes, 7);
            let mut message = described(&some_settings(), 1);
            for (at, value) in spoil {
                let length = message.len();
                message[at % length] = value;
            }
            message.truncate(cut);
            answers(&message, 7);
        }
    }
}
