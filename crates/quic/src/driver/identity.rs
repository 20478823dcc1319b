//! A certificate for endpoints that know each other, and the TLS configurations around it.

use std::sync::Arc;

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::crypto::{ClientConfig, ServerConfig};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SerialNumber};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, crypto::ring, version::TLS13};

/// The name in the fixed certificate.
pub const NAME: &str = "brakelight";

/// PKCS #8 around an Ed25519 seed (rfc8410 7).
const PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// Why an identity or a configuration could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The certificate.
    #[error("certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// TLS would not have it.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// No cipher suite that QUIC can start with.
    #[error("TLS: no initial cipher suite")]
    NoSuite,
}

/// A certificate and its key.
#[derive(Debug)]
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

impl Identity {
    /// Returns the same one each time. Its key is public: it proves nothing, and is for simulation alone.
    pub fn fixed() -> Result<Self, IdentityError> {
        let key = PrivatePkcs8KeyDer::from([&PREFIX[..], &[0x42; 32]].concat());
        let pair = KeyPair::from_pkcs8_der_and_sign_algo(&key, &PKCS_ED25519)?;
        let mut parameters = CertificateParams::new(vec![NAME.to_string()])?;
        parameters.serial_number = Some(SerialNumber::from(1u64));
        let certificate = parameters.self_signed(&pair)?;
        Ok(Identity { certificate: certificate.der().clone(), key })
    }

    /// Returns a client's configuration that trusts this certificate alone.
    pub fn client(&self) -> Result<Arc<dyn ClientConfig>, IdentityError> {
        let quic = QuicClientConfig::try_from(self.client_tls()?).map_err(|_| IdentityError::NoSuite)?;
        Ok(Arc::new(quic))
    }

    pub(super) fn client_tls(&self) -> Result<rustls::ClientConfig, IdentityError> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone())?;
        Ok(rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth())
    }

    /// Returns a server's configuration with this certificate, which issues no session tickets.
    pub fn server(&self) -> Result<Arc<dyn ServerConfig>, IdentityError> {
        let mut tls = self.server_tls()?;
        tls.send_tls13_tickets = 0;
        let quic = QuicServerConfig::try_from(tls).map_err(|_| IdentityError::NoSuite)?;
        Ok(Arc::new(quic))
    }

    pub(super) fn server_tls(&self) -> Result<rustls::ServerConfig, IdentityError> {
        Ok(rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], PrivateKeyDer::Pkcs8(self.key.clone_key()))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_identity_is_the_same_each_time() {
        let [a, b] = [Identity::fixed().unwrap(), Identity::fixed().unwrap()];
        assert_eq!(a.certificate, b.certificate);
        a.client().unwrap();
        a.server().unwrap();
    }
}
