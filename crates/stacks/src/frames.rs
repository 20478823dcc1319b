//! How much of a stream has left: what stands in packets before they are encrypted.
//!
//! quinn-proto, noq-proto and s2n-quic tell nobody how many bytes of a stream they have sent. rustls encrypts
//! for all three, so its ciphers are replaced by some that read each packet first. A stack writes its packets
//! inside of a call from here, in one thread, and [`take`] says what was in them.

use std::cell::Cell;
use std::sync::OnceLock;

use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Tag};
use rustls::{CipherSuiteCommon, Error, SupportedCipherSuite, Tls13CipherSuite};

thread_local! {
    /// The furthest end of a STREAM frame in the packets that this thread has encrypted.
    static FURTHEST: Cell<u64> = const { Cell::new(0) };
}

/// Returns the furthest end of a STREAM frame that this thread has encrypted since the last call, in bytes of
/// the stream; zero if there was none.
pub(crate) fn take() -> u64 {
    FURTHEST.take()
}

/// Returns the same cipher suites, which read what they encrypt for QUIC.
pub(crate) fn reading(suites: &[SupportedCipherSuite]) -> Vec<SupportedCipherSuite> {
    static SUITES: OnceLock<Vec<SupportedCipherSuite>> = OnceLock::new();
    // rustls wants references that live for ever: there is one set of them in a process.
    SUITES.get_or_init(|| suites.iter().map(reads).collect()).clone()
}

fn reads(suite: &SupportedCipherSuite) -> SupportedCipherSuite {
    let Some((suite, quic)) = suite.tls13().and_then(|suite| Some((suite, suite.quic?))) else {
        return *suite;
    };
    let common = CipherSuiteCommon {
        suite: suite.common.suite,
        hash_provider: suite.common.hash_provider,
        confidentiality_limit: suite.common.confidentiality_limit,
    };
    let quic: &'static Reading = Box::leak(Box::new(Reading(quic)));
    let suite = Tls13CipherSuite {
        common,
        hkdf_provider: suite.hkdf_provider,
        aead_alg: suite.aead_alg,
        quic: Some(quic),
    };
    SupportedCipherSuite::Tls13(Box::leak(Box::new(suite)))
}

/// A cipher whose keys read what they encrypt.
struct Reading(&'static dyn Algorithm);

impl Algorithm for Reading {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn PacketKey> {
        Box::new(Key(self.0.packet_key(key, iv)))
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn HeaderProtectionKey> {
        self.0.header_protection_key(key)
    }

    fn aead_key_len(&self) -> usize {
        self.0.aead_key_len()
    }

    fn fips(&self) -> bool {
        self.0.fips()
    }
}

/// A key that reads what it encrypts.
struct Key(Box<dyn PacketKey>);

impl PacketKey for Key {
    fn encrypt_in_place(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Result<Tag, Error> {
        note(payload);
        self.0.encrypt_in_place(number, header, payload)
    }

    fn encrypt_in_place_for_path(
        &self,
        path: u32,
        number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Tag, Error> {
        note(payload);
        self.0.encrypt_in_place_for_path(path, number, header, payload)
    }

    fn decrypt_in_place<'a>(
        &self,
        number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        self.0.decrypt_in_place(number, header, payload)
    }

    fn decrypt_in_place_for_path<'a>(
        &self,
        path: u32,
        number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        self.0.decrypt_in_place_for_path(path, number, header, payload)
    }

    fn tag_len(&self) -> usize {
        self.0.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}

/// Takes note of a packet's frames.
fn note(frames: &[u8]) {
    let end = furthest(frames);
    // Not there once the thread ends.
    let _ = FURTHEST.try_with(|furthest| furthest.set(furthest.get().max(end)));
}

/// Returns the furthest end of a STREAM frame among `frames`, up to the first one of an unknown kind; zero if
/// there is none.
fn furthest(frames: &[u8]) -> u64 {
    let mut rest = Frames(frames);
    let mut furthest = 0;
    while let Some(end) = rest.next_end() {
        furthest = furthest.max(end);
    }
    furthest
}

/// The frames of a packet that were not read yet.
struct Frames<'a>(&'a [u8]);

impl Frames<'_> {
    /// Reads one frame. Returns the end of its bytes in its stream, or zero if it has none; `None` where the
    /// packet ends or cannot be read.
    fn next_end(&mut self) -> Option<u64> {
        // rfc9000 19, by the frames' types
        match self.varint()? {
            // PADDING, PING, HANDSHAKE_DONE, IMMEDIATE_ACK (draft-ietf-quic-ack-frequency)
            0x00 | 0x01 | 0x1e | 0x1f => {}
            kind @ (0x02 | 0x03) => {
                // ACK: largest, delay, ranges, then the first and two numbers for each other.
                self.varints(2)?;
                let ranges = self.varint()?;
                self.varints(ranges.checked_mul(2)?.checked_add(1)?)?;
                self.varints(if kind == 0x03 { 3 } else { 0 })?;
            }
            // RESET_STREAM
            0x04 => self.varints(3)?,
            // STOP_SENDING, MAX_STREAM_DATA, STREAM_DATA_BLOCKED
            0x05 | 0x11 | 0x15 => self.varints(2)?,
            // MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID
            0x10 | 0x12 | 0x13 | 0x14 | 0x16 | 0x17 | 0x19 => self.varints(1)?,
            // CRYPTO
            0x06 => {
                self.varint()?;
                let length = self.varint()?;
                self.skip(length)?;
            }
            // NEW_TOKEN, and DATAGRAM with a length (rfc9221 4)
            0x07 | 0x31 => {
                let length = self.varint()?;
                self.skip(length)?;
            }
            // STREAM: the bits are those of an offset, of a length and of the end (rfc9000 19.8).
            kind @ 0x08..=0x0f => {
                self.varint()?;
                let offset = if kind & 0x04 != 0 { self.varint()? } else { 0 };
                let length = if kind & 0x02 != 0 { self.varint()? } else { self.0.len() as u64 };
                self.skip(length)?;
                return offset.checked_add(length);
            }
            // NEW_CONNECTION_ID: two numbers, an ID with its length in a byte, a token.
            0x18 => {
                self.varints(2)?;
                let length = u64::from(*self.0.first()?);
                self.skip(1 + length + 16)?;
            }
            // PATH_CHALLENGE, PATH_RESPONSE
            0x1a | 0x1b => self.skip(8)?,
            // ACK_FREQUENCY (draft-ietf-quic-ack-frequency)
            0xaf => self.varints(4)?,
            // DATAGRAM up to the end, or what closes the connection, or what is not known here.
            _ => return None,
        }
        Some(0)
    }

    /// rfc9000 16: the first two bits say how many bytes a number has.
    fn varint(&mut self) -> Option<u64> {
        let first = *self.0.first()?;
        let (bytes, rest) = self.0.split_at_checked(1 << (first >> 6))?;
        self.0 = rest;
        let [first, others @ ..] = bytes else { return None };
        let start = u64::from(first & 0x3f);
        Some(others.iter().fold(start, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn varints(&mut self, count: u64) -> Option<()> {
        (0..count).try_for_each(|_| self.varint().map(|_| ()))
    }

    fn skip(&mut self, length: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(length).ok()?..)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rfc9000 A.1
    #[test]
    fn numbers_are_read_as_in_the_rfc() {
        let read = |bytes: &[u8]| Frames(bytes).varint();
        assert_eq!(read(&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]), Some(151_288_809_941_952_652));
        assert_eq!(read(&[0x9d, 0x7f, 0x3e, 0x7d]), Some(494_878_333));
        assert_eq!(read(&[0x7b, 0xbd]), Some(15_293));
        assert_eq!(read(&[0x25]), Some(37));
        assert_eq!(read(&[0x40, 0x25]), Some(37));
        assert_eq!(read(&[0x40]), None);
    }

    #[test]
    fn a_stream_frame_is_found_behind_others_with_and_without_offset_and_length() {
        // Stream 2, offset 1,000, 5 bytes, then padding.
        let whole = [0x0e, 0x02, 0x43, 0xe8, 0x05, 1, 2, 3, 4, 5, 0, 0];
        assert_eq!(furthest(&whole), 1005);
        // Up to the packet's end.
        assert_eq!(furthest(&[0x0c, 0x02, 0x43, 0xe8, 1, 2, 3]), 1003);
        assert_eq!(furthest(&[0x08, 0x02, 1, 2, 3]), 3);
        // The end of the stream, without bytes.
        assert_eq!(furthest(&[0x0f, 0x02, 0x43, 0xe8, 0x00]), 1000);
        let ack = [0x02, 0x0a, 0x01, 0x01, 0x02, 0x00, 0x03];
        let ack_with_ecn = [0x03, 0x0a, 0x01, 0x00, 0x02, 0x01, 0x02, 0x03];
        let id = [&[0x18, 0x01, 0x00, 0x04][..], &[9; 4 + 16]].concat();
        let message = [0x31, 0x02, 0x0f, 0x0f];
        let frequency = [0x40, 0xaf, 0x01, 0x02, 0x43, 0xe8, 0x01];
        let others: [&[u8]; 12] = [
            &ack,
            &ack_with_ecn,
            &id,
            &message,
            &frequency,
            &[0x01],
            &[0x1e],
            &[0x06, 0x00, 0x02, 0x0f, 0x0f],
            &[0x07, 0x01, 0x0f],
            &[0x1a, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0x10, 0x41, 0x00],
            &[0x11, 0x02, 0x41, 0x00],
        ];
        for other in others {
            assert_eq!(furthest(&[other, &whole].concat()), 1005, "{other:x?}");
            assert_eq!(furthest(other), 0, "{other:x?}");
        }
        assert_eq!(furthest(&others.concat()), 0);
    }

    #[test]
    fn what_is_not_known_or_cut_off_counts_nothing_and_ends_the_reading() {
        assert_eq!(furthest(&[]), 0);
        assert_eq!(furthest(&[0x0e, 0x02, 0x43, 0xe8, 0x05, 1, 2]), 0);
        assert_eq!(furthest(&[0x21, 0x0c, 0x02, 0x01, 0xff]), 0);
        // An ACK that claims more ranges than there can be.
        assert_eq!(furthest(&[0x02, 0x0a, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), 0);
    }

    #[test]
    fn every_cipher_for_quic_reads() {
        let plain = rustls::crypto::ring::default_provider().cipher_suites;
        let suites = reading(&plain);
        let names =
            |suites: &[SupportedCipherSuite]| suites.iter().map(|suite| suite.suite()).collect::<Vec<_>>();
        assert_eq!(names(&suites), names(&plain));
        let version = rustls::quic::Version::V1;
        for suite in suites.iter().filter_map(|suite| suite.tls13()?.quic_suite()) {
            let [client, server] =
                [rustls::Side::Client, rustls::Side::Server].map(|side| suite.keys(&[7; 8], side, version));
            let mut packet = [0x08, 0x02, 1, 2, 3, 0, 0];
            take();
            let tag = client.local.packet.encrypt_in_place(1, b"header", &mut packet).unwrap();
            assert_eq!(take(), 5);
            assert_eq!(take(), 0);
            let mut arrived = [&packet[..], tag.as_ref()].concat();
            let read = server.remote.packet.decrypt_in_place(1, b"header", &mut arrived).unwrap();
            assert_eq!(read, [0x08, 0x02, 1, 2, 3, 0, 0]);
        }
    }
}
