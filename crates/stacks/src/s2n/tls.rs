//! TLS for s2n-quic: the settings of [`crate::tls`], which rustls runs with ring, behind the traits of
//! s2n-quic-core. s2n-quic's own providers bring a second cryptography library, and random numbers that
//! follow no seed.

use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::Side;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::pki_types::ServerName as RustlsName;
use rustls::quic::{self, ClientConnection, Connection, KeyChange, Secrets, ServerConnection, Version};
use s2n_codec::{Encoder, EncoderValue};
use s2n_quic_core::application::ServerName;
use s2n_quic_core::crypto::packet_protection::Error as ProtectionError;
use s2n_quic_core::crypto::retry::{self, IntegrityTag};
use s2n_quic_core::crypto::tls::{
    self, ApplicationParameters, ChainError, CipherSuite, ConnectionInfo, Context, TlsExportError,
};
use s2n_quic_core::crypto::{self, CryptoSuite, HeaderProtectionMask, scatter};
use s2n_quic_core::transport;

/// rfc9001 5.3: every cipher of TLS 1.3 for QUIC has a tag of 16 bytes.
const TAG: usize = 16;
/// What the two ends agree on: s2n-quic refuses a connection without (rfc9001 8.1).
const PROTOCOL: &[u8] = b"brakelight";
/// The first byte of a short header whose packet number has four bytes (rfc9000 17.3.1).
const FOUR_BYTES: u8 = 0b11;

/// Makes the sessions of one end.
#[derive(Clone, Debug)]
pub(super) enum Tls {
    Client(Arc<rustls::ClientConfig>),
    Server(Arc<rustls::ServerConfig>),
}

impl Tls {
    pub(super) fn client() -> Result<Self, String> {
        let mut config = crate::tls::client()?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Tls::Client(Arc::new(config)))
    }

    pub(super) fn server() -> Result<Self, String> {
        let mut config = crate::tls::server()?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        // The client resumes nothing.
        config.send_tls13_tickets = 0;
        Ok(Tls::Server(Arc::new(config)))
    }
}

impl tls::Endpoint for Tls {
    type Session = Session;

    fn new_server_session<P: EncoderValue>(&mut self, parameters: &P, _info: ConnectionInfo) -> Session {
        let Tls::Server(config) = self else { unreachable!("an end that opens connections accepts none") };
        let connection = ServerConnection::new(config.clone(), Version::V1, parameters.encode_to_vec());
        Session::new(connection.expect("the settings are valid for QUIC").into())
    }

    fn new_client_session<P: EncoderValue>(&mut self, parameters: &P, _name: ServerName) -> Session {
        let Tls::Client(config) = self else { unreachable!("an end that accepts connections opens none") };
        let name = RustlsName::try_from(crate::tls::NAME).expect("it is a name");
        let connection = ClientConnection::new(config.clone(), Version::V1, name, parameters.encode_to_vec());
        Session::new(connection.expect("the settings are valid for QUIC").into())
    }

    fn max_tag_length(&self) -> usize {
        TAG
    }
}

/// Whose packets carry the handshake's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Initial,
    Handshake,
    Application,
}

/// One handshake.
pub(super) struct Session {
    connection: Connection,
    /// What is read next, and what is written next.
    reads: Level,
    writes: Level,
    is_complete: bool,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Session { reads, writes, .. } = self;
        f.debug_struct("Session").field("reads", reads).field("writes", writes).finish_non_exhaustive()
    }
}

impl Session {
    fn new(connection: Connection) -> Self {
        Session { connection, reads: Level::Initial, writes: Level::Initial, is_complete: false }
    }

    /// Passes on what arrived. Returns whether that was anything.
    fn read<C: Context<Self>>(&mut self, context: &mut C) -> Result<bool, transport::Error> {
        let arrived = match self.reads {
            Level::Initial => context.receive_initial(None),
            Level::Handshake => context.receive_handshake(None),
            Level::Application => context.receive_application(None),
        };
        let Some(data) = arrived else { return Ok(false) };
        match self.connection.read_hs(&data) {
            Ok(()) => Ok(true),
            // rfc9001 4.8: the alert becomes the error of the connection.
            Err(_) => {
                let code = self.connection.alert().map(u8::from);
                Err(code.map_or(tls::Error::INTERNAL_ERROR, tls::Error::new).into())
            }
        }
    }

    /// Writes what there is, up to a change of keys. Returns whether that was anything.
    fn write<C: Context<Self>>(&mut self, context: &mut C) -> Result<bool, transport::Error> {
        let can_write = match self.writes {
            Level::Initial => context.can_send_initial(),
            Level::Handshake => context.can_send_handshake(),
            Level::Application => context.can_send_application(),
        };
        if !can_write {
            return Ok(false);
        }
        let mut data = Vec::new();
        let change = self.connection.write_hs(&mut data);
        let is_anything = change.is_some() || !data.is_empty();
        if !data.is_empty() {
            let data = Bytes::from(data);
            match self.writes {
                Level::Initial => context.send_initial(data),
                Level::Handshake => context.send_handshake(data),
                Level::Application => context.send_application(data),
            }
        }
        match change {
            Some(KeyChange::Handshake { keys }) => {
                let (keys, headers) = split(keys, None);
                context.on_handshake_keys(keys, headers)?;
                (self.reads, self.writes) = (Level::Handshake, Level::Handshake);
            }
            Some(KeyChange::OneRtt { keys, next }) => {
                let (keys, headers) = split(keys, Some(next));
                let missing = || transport::Error::from(tls::Error::MISSING_EXTENSION);
                let transport_parameters = self.connection.quic_transport_parameters().ok_or_else(missing)?;
                context.on_one_rtt_keys(keys, headers, ApplicationParameters { transport_parameters })?;
                self.writes = Level::Application;
            }
            None => {}
        }
        Ok(is_anything)
    }
}

impl tls::Session for Session {
    fn poll<C: Context<Self>>(&mut self, context: &mut C) -> Poll<Result<(), transport::Error>> {
        loop {
            let has_read = self.read(context)?;
            let mut has_written = false;
            while self.write(context)? {
                has_written = true;
            }
            if !self.is_complete && self.writes == Level::Application && !self.connection.is_handshaking() {
                self.is_complete = true;
                self.reads = Level::Application;
                context.on_server_name(ServerName::from_static(crate::tls::NAME))?;
                context.on_application_protocol(Bytes::from_static(PROTOCOL))?;
                context.on_handshake_complete()?;
                context.on_tls_exporter_ready(self)?;
            }
            if self.is_complete {
                return Poll::Ready(Ok(()));
            }
            if !has_read && !has_written {
                return Poll::Pending;
            }
        }
    }
}

impl tls::TlsSession for Session {
    fn tls_exporter(&self, label: &[u8], context: &[u8], output: &mut [u8]) -> Result<(), TlsExportError> {
        let exported = self.connection.export_keying_material(output, label, Some(context));
        exported.map(|_| ()).map_err(|_| TlsExportError::failure())
    }

    fn cipher_suite(&self) -> CipherSuite {
        match self.connection.negotiated_cipher_suite().map(|suite| suite.suite()) {
            Some(rustls::CipherSuite::TLS13_AES_128_GCM_SHA256) => CipherSuite::TLS_AES_128_GCM_SHA256,
            Some(rustls::CipherSuite::TLS13_AES_256_GCM_SHA384) => CipherSuite::TLS_AES_256_GCM_SHA384,
            Some(rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256) => {
                CipherSuite::TLS_CHACHA20_POLY1305_SHA256
            }
            _ => CipherSuite::Unknown,
        }
    }

    fn peer_cert_chain_der(&self) -> Result<Vec<Vec<u8>>, ChainError> {
        let chain = self.connection.peer_certificates().ok_or_else(ChainError::failure)?;
        Ok(chain.iter().map(|certificate| certificate.to_vec()).collect())
    }

    fn client_cert_chain_der(&self) -> Result<Option<Vec<u8>>, ChainError> {
        Err(ChainError::failure())
    }

    fn selected_cert_der(&self) -> Result<Option<Vec<Vec<u8>>>, ChainError> {
        Err(ChainError::failure())
    }
}

impl CryptoSuite for Session {
    type HandshakeKey = Keys;
    type HandshakeHeaderKey = HeaderKeys;
    type InitialKey = Keys;
    type InitialHeaderKey = HeaderKeys;
    type OneRttKey = Keys;
    type OneRttHeaderKey = HeaderKeys;
    type ZeroRttKey = Keys;
    type ZeroRttHeaderKey = HeaderKeys;
    type RetryKey = RetryKey;
}

/// The keys of both directions.
pub(super) struct Keys {
    local: Box<dyn quic::PacketKey>,
    remote: Box<dyn quic::PacketKey>,
    /// Where the next keys come from, once the handshake is over.
    next: Option<Secrets>,
}

/// What hides the headers of both directions.
pub(super) struct HeaderKeys {
    local: Box<dyn quic::HeaderProtectionKey>,
    remote: Box<dyn quic::HeaderProtectionKey>,
}

fn split(keys: quic::Keys, next: Option<Secrets>) -> (Keys, HeaderKeys) {
    let quic::Keys { local, remote } = keys;
    let headers = HeaderKeys { local: local.header, remote: remote.header };
    (Keys { local: local.packet, remote: remote.packet, next }, headers)
}

/// rfc9001 5.2: the first packets are protected with keys that follow from the connection ID.
fn initial(connection_id: &[u8], side: Side) -> (Keys, HeaderKeys) {
    let suite = TLS13_AES_128_GCM_SHA256.tls13().and_then(rustls::Tls13CipherSuite::quic_suite);
    split(suite.expect("the suite is one for QUIC").keys(connection_id, side, Version::V1), None)
}

impl crypto::Key for Keys {
    fn decrypt(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Result<(), ProtectionError> {
        let opened = self.remote.decrypt_in_place(number, header, payload);
        opened.map(|_| ()).map_err(|_| ProtectionError::DECRYPT_ERROR)
    }

    fn encrypt(
        &mut self,
        number: u64,
        header: &[u8],
        payload: &mut scatter::Buffer<'_>,
    ) -> Result<(), ProtectionError> {
        let buffer = payload.flatten();
        let (written, _) = buffer.split_mut();
        let tag = self.local.encrypt_in_place(number, header, written);
        buffer.write_slice(tag.map_err(|_| ProtectionError::INTERNAL_ERROR)?.as_ref());
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.local.tag_len()
    }

    fn aead_confidentiality_limit(&self) -> u64 {
        self.local.confidentiality_limit()
    }

    fn aead_integrity_limit(&self) -> u64 {
        self.remote.integrity_limit()
    }

    fn cipher_suite(&self) -> CipherSuite {
        // For events alone, which nobody reads here.
        CipherSuite::Unknown
    }
}

impl crypto::InitialKey for Keys {
    type HeaderKey = HeaderKeys;

    fn new_server(connection_id: &[u8]) -> (Self, HeaderKeys) {
        initial(connection_id, Side::Server)
    }

    fn new_client(connection_id: &[u8]) -> (Self, HeaderKeys) {
        initial(connection_id, Side::Client)
    }
}

impl crypto::OneRttKey for Keys {
    fn derive_next_key(&self) -> Self {
        let mut next = self.next.clone().expect("keys of 1-RTT packets have their secrets");
        let quic::PacketKeySet { local, remote } = next.next_packet_keys();
        Keys { local, remote, next: Some(next) }
    }
}

impl crypto::HandshakeKey for Keys {}
impl crypto::ZeroRttKey for Keys {}

impl crypto::HeaderKey for HeaderKeys {
    fn opening_header_protection_mask(&self, sample: &[u8]) -> HeaderProtectionMask {
        mask(&*self.remote, sample)
    }

    fn opening_sample_len(&self) -> usize {
        self.remote.sample_len()
    }

    fn sealing_header_protection_mask(&self, sample: &[u8]) -> HeaderProtectionMask {
        mask(&*self.local, sample)
    }

    fn sealing_sample_len(&self) -> usize {
        self.local.sample_len()
    }
}

impl crypto::InitialHeaderKey for HeaderKeys {}
impl crypto::HandshakeHeaderKey for HeaderKeys {}
impl crypto::OneRttHeaderKey for HeaderKeys {}
impl crypto::ZeroRttHeaderKey for HeaderKeys {}

/// The mask of rfc9001 5.4.1. rustls applies it at once, and to zeroes that gives the mask itself: of the
/// first byte those five bits that a short header hides.
fn mask(key: &dyn quic::HeaderProtectionKey, sample: &[u8]) -> HeaderProtectionMask {
    let mut mask = [FOUR_BYTES, 0, 0, 0, 0];
    let [first, number @ ..] = &mut mask;
    key.encrypt_in_place(sample, first, number).expect("the sample has its length");
    mask[0] ^= FOUR_BYTES;
    mask
}

/// Tags of Retry packets (rfc9001 5.8).
pub(super) struct RetryKey;

impl crypto::RetryKey for RetryKey {
    fn generate_tag(payload: &[u8]) -> IntegrityTag {
        let key = UnboundKey::new(&AES_128_GCM, &retry::SECRET_KEY_BYTES).expect("the key has its length");
        let nonce = Nonce::assume_unique_for_key(retry::NONCE_BYTES);
        let tag = LessSafeKey::new(key).seal_in_place_separate_tag(nonce, Aad::from(payload), &mut []);
        let tag = tag.expect("nothing is not too long");
        tag.as_ref().try_into().expect("the tag has its length")
    }

    fn validate(payload: &[u8], tag: IntegrityTag) -> Result<(), ProtectionError> {
        if Self::generate_tag(payload) == tag { Ok(()) } else { Err(ProtectionError::DECRYPT_ERROR) }
    }
}

#[cfg(test)]
mod tests {
    use s2n_quic_core::crypto::{HeaderKey as _, InitialKey as _, Key as _, RetryKey as _, retry};

    use super::*;

    /// rfc9001 A.2 and A.3: the samples and their masks.
    #[test]
    fn masks_are_those_of_the_rfc() {
        let id = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
        let (_, client) = Keys::new_client(&id);
        let (_, server) = Keys::new_server(&id);
        let sample = 0xd1b1_c98d_d768_9fb8_ec11_d242_b123_dc9b_u128.to_be_bytes();
        let mask = [0x43 & 0x1f, 0x7b, 0x9a, 0xec, 0x36];
        assert_eq!(client.sealing_header_protection_mask(&sample), mask);
        assert_eq!(server.opening_header_protection_mask(&sample), mask);
        let sample = 0x2cd0_991c_d25b_0aac_406a_5816_b639_4100_u128.to_be_bytes();
        let mask = [0x2e & 0x1f, 0xc0, 0xd8, 0x35, 0x6a];
        assert_eq!(server.sealing_header_protection_mask(&sample), mask);
        assert_eq!(client.opening_header_protection_mask(&sample), mask);
    }

    /// rfc9001 A.4.
    #[test]
    fn the_tag_of_a_retry_is_that_of_the_rfc() {
        let tag = RetryKey::generate_tag(&retry::example::PSEUDO_PACKET);
        assert_eq!(tag, retry::example::EXPECTED_TAG);
        assert!(RetryKey::validate(&retry::example::PSEUDO_PACKET, tag).is_ok());
        assert!(RetryKey::validate(&retry::example::PSEUDO_PACKET, [0; 16]).is_err());
    }

    #[test]
    fn what_one_end_seals_the_other_opens_and_nobody_else() {
        let (mut client, _) = Keys::new_client(&[1; 8]);
        let (server, _) = Keys::new_server(&[1; 8]);
        let mut bytes = *b"hello, world\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        let mut buffer = s2n_codec::EncoderBuffer::new(&mut bytes);
        buffer.set_position(12);
        client.encrypt(7, b"header", &mut scatter::Buffer::new(buffer)).unwrap();
        let mut forged = bytes;
        forged[0] ^= 1;
        assert!(server.decrypt(7, b"header", &mut forged).is_err());
        assert!(server.decrypt(8, b"header", &mut { bytes }).is_err());
        server.decrypt(7, b"header", &mut bytes).unwrap();
        assert_eq!(&bytes[..12], b"hello, world");
    }
}
