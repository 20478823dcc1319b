//! TLS 1.3 by rustls, with all that is random in it from the connection's stream.
//!
//! - The certificate's key is Ed25519, whose signatures are no draws, and it is the same in each run.
//! - The key exchange has X25519's name and the lengths of its keys and secrets, and no secret: whoever sees
//!   the two public keys knows what they agree on. X25519 itself would ask the kernel for each key.
//! - The time of day is always the same.
//! - The ciphers read what they encrypt ([`frames`]).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::crypto::{ActiveKeyExchange, CryptoProvider, GetRandomFailed, SecureRandom, SharedSecret};
use rustls::crypto::{SupportedKxGroup, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, Error, NamedGroup, PeerMisbehaved, RootCertStore, ServerConfig, version};

use crate::{entropy, frames};

/// The name of the server.
pub(crate) const NAME: &str = "localhost";
/// rfc8410 7: a private key of Ed25519 in PKCS#8, up to its 32 bytes.
const ED25519: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
/// Bytes of a key of X25519, and of what two of them agree on.
const KEY: usize = 32;
/// The time of day in every simulation, from the start of 1970: a day of 2023.
pub(crate) const TODAY: Duration = Duration::from_secs(1_700_000_000);

/// Returns the settings of a client that trusts the server, and resumes nothing.
pub(crate) fn client() -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate().0).map_err(words)?;
    let builder = ClientConfig::builder_with_details(provider(), Arc::new(Today));
    let builder = builder.with_protocol_versions(&[&version::TLS13]).map_err(words)?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

/// Returns the settings of the server.
pub(crate) fn server() -> Result<ServerConfig, String> {
    let (certificate, key) = certificate();
    let builder = ServerConfig::builder_with_details(provider(), Arc::new(Today));
    let builder = builder.with_protocol_versions(&[&version::TLS13]).map_err(words)?;
    builder.with_no_client_auth().with_single_cert(vec![certificate], key).map_err(words)
}

fn words(error: impl std::fmt::Display) -> String {
    format!("TLS: {error}")
}

/// The certificate and its key: no secret, and the same in each process.
pub(crate) fn certificate() -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    static CERTIFICATE: OnceLock<(CertificateDer<'static>, Vec<u8>)> = OnceLock::new();
    let (certificate, key) = CERTIFICATE.get_or_init(|| {
        let key = [&ED25519[..], &[7; KEY]].concat();
        let pair = rcgen::KeyPair::try_from(&PrivatePkcs8KeyDer::from(key.clone())).expect("it is a key");
        let parameters = rcgen::CertificateParams::new(vec![NAME.to_string()]).expect("it is a name");
        let certificate = parameters.self_signed(&pair).expect("the key signs");
        (certificate.der().clone(), key)
    });
    (certificate.clone(), PrivatePkcs8KeyDer::from(key.clone()).into())
}

fn provider() -> Arc<CryptoProvider> {
    let plain = ring::default_provider();
    let kx_groups = vec![&KeyExchange as &dyn SupportedKxGroup];
    let cipher_suites = frames::reading(&plain.cipher_suites);
    Arc::new(CryptoProvider { kx_groups, cipher_suites, secure_random: &FromSeed, ..plain })
}

/// The time of day for TLS.
#[derive(Debug)]
struct Today;

impl TimeProvider for Today {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(TODAY))
    }
}

/// Random numbers of the connection whose stack the thread is inside of.
#[derive(Debug)]
struct FromSeed;

impl SecureRandom for FromSeed {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        if entropy::fill_from_lent(bytes) { Ok(()) } else { Err(GetRandomFailed) }
    }
}

/// Keys as long as those of X25519.
#[derive(Debug)]
struct KeyExchange;

impl SupportedKxGroup for KeyExchange {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut key = [0; KEY];
        FromSeed.fill(&mut key)?;
        Ok(Box::new(Key(key)))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

struct Key([u8; KEY]);

impl ActiveKeyExchange for Key {
    /// The two keys, bit by bit what differs: the same at both ends.
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        if peer.len() != KEY {
            return Err(PeerMisbehaved::InvalidKeyShare.into());
        }
        let both: Vec<u8> = self.0.iter().zip(peer).map(|(own, other)| own ^ other).collect();
        Ok(SharedSecret::from(both))
    }

    fn pub_key(&self) -> &[u8] {
        &self.0
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}
