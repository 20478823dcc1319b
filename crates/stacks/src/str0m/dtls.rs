//! DTLS for str0m by dimpl, with all that is random in it from the connection's stream.
//!
//! - The certificate and its key, of ECDSA on P-256, are files beside this one, and no secret. A signature
//!   is no draw: dimpl makes it by RFC 6979.
//! - The key exchange has X25519's name and the lengths of its keys and secrets, and no secret, as in
//!   [`tls`](crate::tls). X25519 itself would ask the kernel for each key.

use std::sync::Arc;
use std::time::Instant;

use dimpl::crypto::{ActiveKeyExchange, Buf, SecureRandom, SupportedKxGroup, rust_crypto};
use dimpl::{Config, CryptoError as KeyError, Dtls, NamedGroup};
use str0m::config::DtlsVersion;
use str0m::crypto::dtls::{DtlsCert, DtlsImplError, DtlsInstance, DtlsOutput, DtlsProvider, ProtocolVersion};
use str0m::crypto::{CryptoError, CryptoProvider};

use crate::entropy;

/// Bytes of a key of X25519, and of what two of them agree on.
const KEY: usize = 32;

/// Returns str0m's provider of cryptography in Rust, with DTLS as above.
pub(super) fn provider() -> CryptoProvider {
    CryptoProvider { dtls_provider: &Provider, ..str0m_rust_crypto::default_provider() }
}

/// Returns the certificate of both ends.
pub(super) fn certificate() -> DtlsCert {
    let certificate = include_bytes!("certificate.der").to_vec();
    DtlsCert { certificate, private_key: include_bytes!("key.der").to_vec() }
}

/// Makes the DTLS of one end.
#[derive(Debug)]
struct Provider;

impl DtlsProvider for Provider {
    fn generate_certificate(&self) -> Option<DtlsCert> {
        Some(certificate())
    }

    fn new_dtls(
        &self,
        certificate: &DtlsCert,
        now: Instant,
        _version: DtlsVersion,
        mtu: Option<usize>,
    ) -> Result<Box<dyn DtlsInstance>, CryptoError> {
        let words = |what: &dyn std::fmt::Display| CryptoError::Other(what.to_string());
        let mut seed = [0; 8];
        if !entropy::fill_from_lent(&mut seed) {
            return Err(words(&"there are no random numbers"));
        }
        let crypto = dimpl::crypto::CryptoProvider {
            kx_groups: &[&KeyExchange],
            secure_random: &FromSeed,
            ..rust_crypto::default_provider()
        };
        // ICE has seen that the address is the peer's, as in str0m's own providers.
        let mut config = Config::builder().use_server_cookie(false).with_crypto_provider(crypto);
        config = config.dangerously_set_rng_seed(u64::from_le_bytes(seed));
        if let Some(mtu) = mtu {
            config = config.mtu(mtu);
        }
        let config = config.build().map_err(|error| words(&error))?;
        Ok(Box::new(Instance(Dtls::new_12(Arc::new(config), certificate.clone(), now))))
    }
}

/// The DTLS of one end, in str0m's terms.
struct Instance(Dtls);

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance").finish_non_exhaustive()
    }
}

impl DtlsInstance for Instance {
    fn set_active(&mut self, active: bool) {
        self.0.set_active(active);
    }

    fn handle_packet(&mut self, packet: &[u8]) -> Result<(), DtlsImplError> {
        self.0.handle_packet(packet)
    }

    fn poll_output<'a>(&mut self, buffer: &'a mut [u8]) -> DtlsOutput<'a> {
        self.0.poll_output(buffer)
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), DtlsImplError> {
        self.0.handle_timeout(now)
    }

    fn send_application_data(&mut self, data: &[u8]) -> Result<(), DtlsImplError> {
        self.0.send_application_data(data)
    }

    fn is_active(&self) -> bool {
        self.0.is_active()
    }

    fn protocol_version(&self) -> Option<ProtocolVersion> {
        self.0.protocol_version()
    }

    fn is_closing(&self) -> bool {
        self.0.is_closing()
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    fn close(&mut self) -> Result<(), DtlsImplError> {
        self.0.close()
    }
}

/// Random numbers of the connection whose stack the thread is inside of.
#[derive(Debug)]
struct FromSeed;

impl SecureRandom for FromSeed {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), KeyError> {
        if entropy::fill_from_lent(bytes) {
            Ok(())
        } else {
            Err(KeyError::InvalidPublicKey(NamedGroup::X25519))
        }
    }
}

/// Keys as long as those of X25519.
#[derive(Debug)]
struct KeyExchange;

impl SupportedKxGroup for KeyExchange {
    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }

    fn start_exchange(&self, _buffer: Buf) -> Result<Box<dyn ActiveKeyExchange>, KeyError> {
        let mut key = [0; KEY];
        FromSeed.fill(&mut key)?;
        Ok(Box::new(Key(key)))
    }
}

#[derive(Debug)]
struct Key([u8; KEY]);

impl ActiveKeyExchange for Key {
    fn pub_key(&self) -> &[u8] {
        &self.0
    }

    /// The two keys, bit by bit what differs: the same at both ends.
    fn complete(self: Box<Self>, peer: &[u8], shared: &mut Buf) -> Result<(), KeyError> {
        if peer.len() != KEY {
            return Err(KeyError::InvalidPublicKey(NamedGroup::X25519));
        }
        let both: Vec<u8> = self.0.iter().zip(peer).map(|(own, other)| own ^ other).collect();
        shared.clear();
        shared.extend_from_slice(&both);
        Ok(())
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}
