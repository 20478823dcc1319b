//! A read-only tap on the stack's cryptography: it sees each packet of the application data space (0-RTT and
//! 1-RTT) decrypted just before the stack does, reads the ECN counts of its ACK frames and publishes them,
//! and it notes which codepoint each outgoing packet is to carry.
//!
//! `quinn-proto` counts ECN marks for itself and tells its controllers of CE alone. Its `crypto` traits are
//! public, though, and `PacketKey::decrypt` is called synchronously before `Controller::on_ack` and
//! `on_end_acks` of the same packet: what the tap publishes there is in time for them. Nothing is ever
//! changed: every call goes to the wrapped implementation, every byte comes from it, and the tap looks at the
//! result. All other modules know only [`Listener`], so that this one can go on the day the stack offers the
//! counts itself.
//!
//! 0-RTT packets are numbered, acknowledged and counted by ECN in the same space as 1-RTT packets (RFC 9000
//! section 12.3), so their keys are tapped too: a packet that left without the tap would be in the peer's
//! counts and not in ours. What the stack discards of them without a word, the tap learns where the stack
//! asks its session: see [`Listener::on_early_discarded`].
//!
//! Counts are cumulative, so those of an ACK that was overtaken by a newer one would run backwards: they are
//! published only when the ACK's largest acknowledged packet is above every one before (RFC 9000
//! section 13.4.2.1).

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::BytesMut;
use quinn_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig,
    Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

use self::frames::Ack;
use self::parameters::Parameters;
use crate::stamps::Stamps;

pub mod frames;
pub mod parameters;

/// Who is told what passes the tap of one connection. Called from within the stack, so it must return at
/// once.
pub trait Listener: Send + Sync {
    /// An ACK frame of the application data space; `newest` if its largest acknowledged packet is above that
    /// of every one before. An older frame may have older counts.
    fn on_ack(&self, ack: &Ack<'_>, newest: bool);

    /// The peer's transport parameters have come.
    fn on_parameters(&self, _parameters: &Parameters) {}

    /// The 0-RTT or 1-RTT packet `number` was decrypted. The stack may still drop it as one that it has seen
    /// before.
    fn on_open(&self, _number: u64) {}

    /// The frames of a 0-RTT or 1-RTT packet that is about to be encrypted, and then sealed.
    fn on_frames(&self, _payload: &[u8]) {}

    /// The 0-RTT packets sent so far are discarded, since the server rejected them or answered them with a
    /// Retry. The stack takes them out of flight and does not tell its controller; the server did not process
    /// them, so no ACK and no ECN count will ever include them.
    fn on_early_discarded(&self) {}

    /// The 0-RTT or 1-RTT packet `number` is encrypted and about to leave, its header not yet protected;
    /// `eliciting` tells whether it asks for an ACK. Returns the codepoint that it is to carry, or `None` for
    /// the one that the stack chose.
    fn on_seal(&self, number: u64, packet: &[u8], eliciting: bool) -> Option<brakelight_core::ecn::Ecn>;
}

/// Makes the listener of a new connection.
pub type Open = Arc<dyn Fn() -> Arc<dyn Listener> + Send + Sync>;

/// The state that the wrapped TLS configurations share.
#[derive(Clone)]
pub struct Tap {
    open: Open,
    stamps: Arc<Stamps>,
}

impl Tap {
    /// Returns a tap that calls `open` as each connection begins, on the thread and before the call that
    /// makes its controller, and leaves the codepoints of outgoing packets in `stamps`.
    pub fn new(open: Open, stamps: Arc<Stamps>) -> Self {
        Tap { open, stamps }
    }

    /// Returns a client's configuration with the tap.
    pub fn client(&self, inner: Arc<dyn ClientConfig>) -> Arc<dyn ClientConfig> {
        Arc::new(Tapped { inner, tap: self.clone() })
    }

    /// Returns a server's configuration with the tap.
    pub fn server(&self, inner: Arc<dyn ServerConfig>) -> Arc<dyn ServerConfig> {
        Arc::new(Tapped { inner, tap: self.clone() })
    }

    fn session(&self, inner: Box<dyn Session>) -> Box<dyn Session> {
        let connection =
            Connection { listener: (self.open)(), stamps: self.stamps.clone(), next: AtomicU64::new(0) };
        Box::new(TappedSession { inner, connection: Arc::new(connection) })
    }
}

impl std::fmt::Debug for Tap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tap").finish_non_exhaustive()
    }
}

/// A configuration with the tap.
struct Tapped<C: ?Sized> {
    tap: Tap,
    inner: Arc<C>,
}

impl ClientConfig for Tapped<dyn ClientConfig> {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let session = self.inner.clone().start_session(version, server_name, params)?;
        Ok(self.tap.session(session))
    }
}

impl ServerConfig for Tapped<dyn ServerConfig> {
    fn initial_keys(&self, version: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.inner.initial_keys(version, dst_cid)
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(self: Arc<Self>, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        let session = self.inner.clone().start_session(version, params);
        self.tap.session(session)
    }
}

/// One connection, as all keys of its session see it.
struct Connection {
    listener: Arc<dyn Listener>,
    stamps: Arc<Stamps>,
    /// One above the largest packet number that an ACK has acknowledged.
    next: AtomicU64,
}

impl Connection {
    fn read(&self, payload: &[u8]) {
        // A malformed payload is the stack's to refuse; what came before the fault was said all the same.
        let _ = frames::acks(payload, |ack| {
            let next = ack.largest + 1;
            let newest = self.next.fetch_max(next, Ordering::Relaxed) < next;
            self.listener.on_ack(ack, newest);
        });
    }
}

struct TappedSession {
    inner: Box<dyn Session>,
    connection: Arc<Connection>,
}

impl TappedSession {
    fn pair(&self, keys: KeyPair<Box<dyn PacketKey>>) -> KeyPair<Box<dyn PacketKey>> {
        let tap = |inner| Box::new(TappedKey::new(inner, self.connection.clone(), false));
        KeyPair { local: tap(keys.local), remote: tap(keys.remote) }
    }
}

impl Session for TappedSession {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        self.inner.initial_keys(dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let (header, inner) = self.inner.early_crypto()?;
        Some((header, Box::new(TappedKey::new(inner, self.connection.clone(), true))))
    }

    // The stack of a client asks once, as the handshake ends and before any 1-RTT packet, and acts on the
    // answer.
    fn early_data_accepted(&self) -> Option<bool> {
        let accepted = self.inner.early_data_accepted();
        if accepted == Some(false) {
            self.connection.listener.on_early_discarded();
        }
        accepted
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let parameters = self.inner.transport_parameters()?;
        if let Some(parameters) = &parameters {
            self.connection.listener.on_parameters(&Parameters::of(parameters));
        }
        Ok(parameters)
    }

    // Handshake keys come this way too; their packets have long headers, by which `TappedKey` tells them.
    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let keys = self.inner.write_handshake(buf)?;
        Some(Keys { header: keys.header, packet: self.pair(keys.packet) })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.inner.next_1rtt_keys()?;
        Some(self.pair(keys))
    }

    // Asked last of all that makes a Retry valid; the stack then sends all 0-RTT data again.
    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let valid = self.inner.is_valid_retry(orig_dst_cid, header, payload);
        if valid {
            self.connection.listener.on_early_discarded();
        }
        valid
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

/// One direction's key.
struct TappedKey {
    inner: Box<dyn PacketKey>,
    connection: Arc<Connection>,
    /// Whether it is of 0-RTT packets, which have long headers.
    early: bool,
    /// Of `inner`. The stack asks for it several times a packet.
    tag_len: usize,
}

impl TappedKey {
    fn new(inner: Box<dyn PacketKey>, connection: Arc<Connection>, early: bool) -> Self {
        let tag_len = inner.tag_len();
        TappedKey { inner, connection, early, tag_len }
    }
}

/// Whether `first` begins a packet of the 1-RTT space (rfc9000 17.3).
fn is_short(first: Option<&u8>) -> bool {
    first.is_some_and(|first| first & 0x80 == 0)
}

impl PacketKey for TappedKey {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        if !self.early && !is_short(buf.first()) {
            return self.inner.encrypt(packet, buf, header_len);
        }
        let end = buf.len().saturating_sub(self.tag_len);
        let payload = buf.get(header_len..end).unwrap_or_default();
        self.connection.listener.on_frames(payload);
        let eliciting = frames::is_eliciting(payload);
        self.inner.encrypt(packet, buf, header_len);
        if let Some(ecn) = self.connection.listener.on_seal(packet, buf, eliciting) {
            self.connection.stamps.leave(buf, ecn);
        }
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        self.inner.decrypt(packet, header, payload)?;
        let short = is_short(header.first());
        if self.early || short {
            self.connection.listener.on_open(packet);
        }
        // A 0-RTT packet may hold no ACK (rfc9000 12.5).
        if short {
            self.connection.read(payload);
        }
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.tag_len
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}
