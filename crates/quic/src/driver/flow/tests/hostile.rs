//! Paths and peers that lie about ECN, or about anything else: no panic, no stall, and the fallback that is
//! documented.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::BytesMut;
use quinn_proto::crypto::{
    CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side as StackSide, TransportError};

use super::*;
use crate::adapter::Times;
use crate::validation::{Fault, State};

/// Changes what an ACK frame says, given how many came before.
type Lie = fn(u64, &mut AckFields<'_>);

/// The integers of an ACK frame with counts, each of which keeps its length.
struct AckFields<'a> {
    largest: &'a mut [u8],
    counts: [&'a mut [u8]; 3],
}

fn value(field: &[u8]) -> u64 {
    let first = u64::from(field[0] & 0x3f);
    field[1..].iter().fold(first, |value, byte| value << 8 | u64::from(*byte))
}

/// Writes `value`, or the most that fits.
fn set(field: &mut [u8], value: u64) {
    let bits = 8 * field.len() as u32 - 2;
    let form = field[0] & 0xc0;
    let bytes = value.min((1 << bits) - 1).to_be_bytes();
    let length = field.len();
    field.copy_from_slice(&bytes[8 - length..]);
    field[0] |= form;
}

fn take<'a>(rest: &mut &'a mut [u8]) -> &'a mut [u8] {
    let length = 1 << (rest[0] >> 6);
    let (field, after) = std::mem::take(rest).split_at_mut(length);
    *rest = after;
    field
}

/// Tells `lie` of the ACK frame with counts that `payload` begins with, if it does.
fn rewrite(payload: &mut [u8], lie: impl FnOnce(&mut AckFields<'_>)) {
    if payload.first() != Some(&0x03) {
        return;
    }
    let mut rest = &mut payload[1..];
    let largest = take(&mut rest);
    let _delay = take(&mut rest);
    let further = value(take(&mut rest));
    let _first = take(&mut rest);
    for _ in 0..2 * further {
        let _ = take(&mut rest);
    }
    let counts = std::array::from_fn(|_| take(&mut rest));
    lie(&mut AckFields { largest, counts });
}

struct Liar<T: ?Sized> {
    inner: Arc<T>,
    lie: Lie,
}

fn liar(inner: Arc<dyn ServerConfig>, lie: Lie) -> Arc<dyn ServerConfig> {
    Arc::new(Liar { inner, lie })
}

impl ServerConfig for Liar<dyn ServerConfig> {
    fn initial_keys(&self, version: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.inner.initial_keys(version, dst_cid)
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(self: Arc<Self>, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        let inner = self.inner.clone().start_session(version, params);
        Box::new(LyingSession { inner, lie: self.lie, told: Arc::default() })
    }
}

struct LyingSession {
    inner: Box<dyn Session>,
    lie: Lie,
    told: Arc<AtomicU64>,
}

impl LyingSession {
    fn wrap(&self, keys: KeyPair<Box<dyn PacketKey>>) -> KeyPair<Box<dyn PacketKey>> {
        let local = Box::new(LyingKey { inner: keys.local, lie: self.lie, told: self.told.clone() });
        KeyPair { local, remote: keys.remote }
    }
}

impl Session for LyingSession {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: StackSide) -> Keys {
        self.inner.initial_keys(dst_cid, side)
    }
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }
    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }
    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto()
    }
    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }
    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }
    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(buf)
    }
    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }
    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let keys = self.inner.write_handshake(buf)?;
        Some(Keys { header: keys.header, packet: self.wrap(keys.packet) })
    }
    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.inner.next_1rtt_keys()?;
        Some(self.wrap(keys))
    }
    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(orig_dst_cid, header, payload)
    }
    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

struct LyingKey {
    inner: Box<dyn PacketKey>,
    lie: Lie,
    told: Arc<AtomicU64>,
}

impl PacketKey for LyingKey {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        if buf[0] & 0x80 == 0 {
            let end = buf.len() - self.inner.tag_len();
            rewrite(&mut buf[header_len..end], |ack| {
                (self.lie)(self.told.fetch_add(1, Ordering::Relaxed), ack);
            });
        }
        self.inner.encrypt(packet, buf, header_len);
    }
    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        self.inner.decrypt(packet, header, payload)
    }
    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }
    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }
    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}

/// ABC over `path` for ten seconds; what it made of the last five, in Mbit/s.
fn abc(path: &Path) -> (Seen, f64) {
    let early = run(settings("abc", &[]), path, 5).flow.received();
    let seen = run(settings("abc", &[]), path, 10);
    let late = (seen.flow.received() - early) as f64 * 8e-6 / 5.0;
    (seen, late)
}

#[test]
fn bleached_marks_leave_the_second_window_in_charge() {
    let (seen, late) = abc(&Path { rewrite: |_, _| Ecn::NotEct, ..Path::default() });
    assert_eq!(seen.flow.adapter().validation(), State::Failed(Fault::Missing));
    assert!(late > 9.0, "{late}");
    // Nothing is marked any more.
    let marked = seen.left.iter().filter(|packet| packet.3 != Ecn::NotEct);
    assert!(marked.count() <= crate::validation::TESTED as usize);
}

#[test]
fn marks_bleached_in_the_middle_of_a_connection_do_too() {
    let rewrite = |place, ecn| if place > 1000 { Ecn::NotEct } else { ecn };
    let (seen, late) = abc(&Path { rewrite, ..Path::default() });
    // The receiver goes on counting what it saw before: the sum falls behind.
    assert_eq!(seen.flow.adapter().validation(), State::Failed(Fault::TooFew));
    assert!(late > 9.0, "{late}");
}

#[test]
fn accelerates_that_all_became_brakes_are_seen_through() {
    let rewrite = |_, ecn| if ecn == Ecn::Ect1 { Ecn::Ect0 } else { ecn };
    let (seen, late) = abc(&Path { rewrite, ..Path::default() });
    assert_eq!(seen.flow.adapter().validation(), State::Capable);
    assert!(late > 8.5, "{late}");
}

#[test]
fn a_path_that_marks_everything_is_congested_all_the_time() {
    let rewrite = |_, ecn| if ecn == Ecn::NotEct { ecn } else { Ecn::Ce };
    let (seen, late) = abc(&Path { rewrite, ..Path::default() });
    assert_eq!(seen.flow.adapter().validation(), State::Capable);
    // One or two packets per round trip: slow, but not stalled.
    assert!((0.2..3.0).contains(&late), "{late}");
}

#[test]
fn a_path_that_loses_what_is_marked_is_used_without() {
    let (seen, late) = abc(&Path { lose: |_, ecn| ecn != Ecn::NotEct, ..Path::default() });
    assert!(late > 8.5, "{late}");
    assert_eq!(seen.flow.adapter().validation(), State::Failed(Fault::Dropped));
    let marked = seen.left.iter().filter(|packet| packet.3 != Ecn::NotEct);
    assert_eq!(marked.count(), crate::validation::TESTED as usize);
}

#[test]
fn counts_that_go_backwards_end_ecn() {
    let wrap = |crypto| {
        liar(crypto, |told, ack| {
            if told > 200 {
                let count = value(ack.counts[1]);
                set(ack.counts[1], count / 2);
            }
        })
    };
    let (seen, late) = abc(&Path { wrap, ..Path::default() });
    assert_eq!(seen.flow.adapter().validation(), State::Failed(Fault::Backwards));
    assert!(late > 9.0, "{late}");
}

#[test]
fn counts_of_more_packets_than_were_sent_end_ecn() {
    let wrap = |crypto| {
        liar(crypto, |told, ack| {
            if told > 200 {
                set(ack.counts[1], u64::MAX)
            }
        })
    };
    let (seen, late) = abc(&Path { wrap, ..Path::default() });
    assert_eq!(seen.flow.adapter().validation(), State::Failed(Fault::TooMany));
    assert!(late > 9.0, "{late}");
}

/// rfc9000 13.1: the stack closes the connection over it.
#[test]
fn an_ack_of_packets_that_were_never_sent_closes_the_connection() {
    let wrap = |crypto| {
        liar(crypto, |told, ack| {
            if told > 200 {
                let largest = value(ack.largest);
                set(ack.largest, largest + 5_000);
            }
        })
    };
    let seen = run(settings("abc", &[]), &Path { wrap, ..Path::default() }, 5);
    let reason = seen.flow.closed().expect("the connection is over");
    assert!(reason.contains("unsent packet"), "{reason}");
    let last = seen.left.last().unwrap().0;
    assert!(last < Time::from_secs(4), "it falls silent, at {last:?}");
}

#[test]
fn every_wrong_count_that_fits_the_field_is_survived_by_every_marking_controller() {
    let mut random = Random::stream(5, "counts");
    for name in ["abc", "prague", "bmcc", "newreno"] {
        for _ in 0..4 {
            static WRONG: AtomicU64 = AtomicU64::new(0);
            WRONG.store(random.bits(), Ordering::Relaxed);
            let wrap = |crypto| {
                liar(crypto, |told, ack| {
                    let wrong = WRONG.load(Ordering::Relaxed);
                    if told > wrong % 300 {
                        let field = (wrong >> 32) as usize % 3;
                        set(ack.counts[field], wrong.wrapping_mul(told) >> (told % 64));
                    }
                })
            };
            let options: &[_] = if name == "newreno" { &[("ecn", "true")] } else { &[] };
            let seen = run(settings(name, options), &Path { wrap, ..Path::default() }, 4);
            assert!(mbps(&seen, 4) > 1.0, "{name}: {}", mbps(&seen, 4));
        }
    }
}

#[test]
fn feedback_datagrams_of_any_content_change_nothing() {
    let meddle = |arrived: u64, flow: &mut Flow| {
        if let Some(connection) = flow.receiver.connection() {
            let mut noise = Random::stream(arrived, "noise");
            let mut datagram: Vec<u8> = (0..noise.bits() % 60).map(|_| noise.bits() as u8).collect();
            if datagram.len() > 4 {
                datagram[..2].copy_from_slice(&[0x8b, 205]);
            }
            let _ = connection.datagrams().send(datagram.into(), true);
        }
    };
    for name in ["quicdc", "bmcc"] {
        let seen = run(settings(name, &[]), &Path { meddle, ..Path::default() }, 5);
        assert!(seen.flow.adapter().counters().malformed_reports > 1000);
        assert!(mbps(&seen, 5) > 7.5, "{name}: {}", mbps(&seen, 5));
    }
}

#[test]
fn quicdc_goes_by_round_trips_where_the_peer_does_not_report() {
    let bounded = |reports| {
        let options = [("threshold", "20ms")];
        let seen = run(FlowSettings { reports, ..settings("quicdc", &options) }, &Path::default(), 10);
        (seen.flow.adapter().times(), mbps(&seen, 10), seen.flow.adapter().smoothed_rtt().unwrap())
    };
    let (times, rate, rtt) = bounded(true);
    assert_eq!(times, Times::Reported);
    assert!(rate > 9.0 && rtt < Duration::from_millis(75), "{rate} {rtt}");
    let (times, rate, rtt) = bounded(false);
    assert_eq!(times, Times::RoundTrip);
    assert!(rate > 9.0 && rtt < Duration::from_millis(75), "{rate} {rtt}");
}
