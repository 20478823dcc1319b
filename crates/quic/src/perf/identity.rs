//! Who a server is, and how a client makes sure of it.

use std::any::Any;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use brakelight_scenario::input;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, OtherError, SignatureScheme};

use super::Error;
use super::wire::ALPN;

/// inode(7): `S_IROTH`
pub(super) const OTHERS_READ: u32 = 0o004;

/// SHA-256 of a certificate, as a client pins it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    fn of(certificate: &CertificateDer<'_>) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
        Fingerprint(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }

    /// Reads 64 hexadecimal digits, with or without colons.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: Vec<u8> = text
            .chars()
            .filter(|c| *c != ':')
            .map(|c| c.to_digit(16).map(|digit| digit as u8))
            .collect::<Option<_>>()?;
        let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        (digits.len() == 64).then(|| Fingerprint(bytes.try_into().expect("64 digits are 32 bytes")))
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A server's certificate and key.
#[derive(Debug)]
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Returns a fresh one, signed by itself, for `localhost`.
    pub fn self_signed() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_string()])
            .expect("a certificate for localhost can be made");
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Identity { chain: vec![made.cert.der().clone()], key: key.into() }
    }

    /// Returns what the two PEM files hold. Fails if one cannot be read, holds something else, or if
    /// everybody may read the key.
    pub fn read(certificates: &Path, key: &Path) -> Result<Self, Error> {
        let chain = read_certificates(certificates)?;
        let bytes = read(key, "a private key")?;
        let mode = std::fs::metadata(key).map_or(0, |metadata| metadata.permissions().mode());
        if mode & OTHERS_READ != 0 {
            let reason =
                "everybody can read it; `chmod o-r` it, and use another key if it was readable for long";
            return Err(Error::File { file: key.into(), reason: reason.to_string() });
        }
        let key =
            PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| refused(key, "a private key", &error))?;
        Ok(Identity { chain, key })
    }

    /// Returns the fingerprint of the server's own certificate.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.chain[0])
    }

    pub(crate) fn crypto(&self) -> Result<quinn::crypto::rustls::QuicServerConfig, rustls::Error> {
        let mut tls = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), self.key.clone_key())?;
        tls.alpn_protocols = vec![ALPN.to_vec()];
        // No client of a measurement comes back to its session: none is kept for a stranger either.
        tls.send_tls13_tickets = 0;
        tls.try_into().map_err(|_| rustls::Error::General("no cipher suite of QUIC".to_string()))
    }
}

/// Returns the certificates of the PEM file at `path`, at least one.
pub fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let bytes = read(path, "certificates")?;
    match CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>() {
        Ok(certificates) if certificates.is_empty() => Err(Error::File {
            file: path.into(),
            reason: "it holds no certificate; give one in PEM".to_string(),
        }),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(refused(path, "certificates", &error)),
    }
}

fn read(path: &Path, what: &str) -> Result<Vec<u8>, Error> {
    let failed = |error| Error::File { file: path.into(), reason: format!("{error}; give {what} in PEM") };
    input::read(path, input::DOCUMENT).map_err(failed)
}

fn refused(path: &Path, what: &str, error: &rustls::pki_types::pem::Error) -> Error {
    Error::File { file: path.into(), reason: format!("{error}; give {what} in PEM") }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Which servers a client trusts.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Any at all.
    Anyone,
    /// The one with this certificate.
    Pinned(Fingerprint),
    /// Those that one of these vouches for, under the name they are called by.
    Roots(Vec<CertificateDer<'static>>),
}

impl Trust {
    pub(crate) fn crypto(&self) -> Result<quinn::crypto::rustls::QuicClientConfig, rustls::Error> {
        let builder = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?;
        let builder = match self {
            Trust::Roots(certificates) => {
                let mut roots = rustls::RootCertStore::empty();
                for certificate in certificates {
                    roots.add(certificate.clone())?;
                }
                builder.with_root_certificates(roots)
            }
            Trust::Anyone => builder.dangerous().with_custom_certificate_verifier(Verifier::new(None)),
            Trust::Pinned(pin) => {
                builder.dangerous().with_custom_certificate_verifier(Verifier::new(Some(*pin)))
            }
        };
        let mut tls = builder.with_no_client_auth();
        tls.alpn_protocols = vec![ALPN.to_vec()];
        tls.try_into().map_err(|_| rustls::Error::General("no cipher suite of QUIC".to_string()))
    }
}

/// Of what a peer showed of itself.
pub(crate) fn fingerprint(identity: Option<Box<dyn Any>>) -> Option<Fingerprint> {
    let chain = identity?.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    chain.first().map(Fingerprint::of)
}

/// The server showed another certificate than the pinned one.
#[derive(thiserror::Error)]
#[error("the server's certificate has the SHA-256 {0}, which is not the pinned one")]
struct NotPinned(Fingerprint);

/// The stack shows errors of verifiers by this.
impl std::fmt::Debug for NotPinned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// Why a handshake failed, without what rustls puts around the words of a verifier.
pub(crate) fn plain(reason: String) -> String {
    match reason.split_once("Other(OtherError(") {
        Some((_, own)) => own.trim_end_matches(')').to_string(),
        None => reason,
    }
}

/// Takes one certificate, or any; that its owner holds the key is checked all the same.
#[derive(Debug)]
struct Verifier {
    pin: Option<Fingerprint>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    fn new(pin: Option<Fingerprint>) -> Arc<Self> {
        Arc::new(Verifier { pin, algorithms: provider().signature_verification_algorithms })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.pin {
            Some(pin) if pin != Fingerprint::of(end_entity) => {
                let found = NotPinned(Fingerprint::of(end_entity));
                Err(CertificateError::Other(OtherError(Arc::new(found))).into())
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_reads_back_with_and_without_colons() {
        let fingerprint = Identity::self_signed().fingerprint();
        let text = fingerprint.to_string();
        assert_eq!(Fingerprint::parse(&text), Some(fingerprint));
        let pairs: Vec<String> =
            text.as_bytes().chunks(2).map(|pair| String::from_utf8_lossy(pair).into_owned()).collect();
        assert_eq!(Fingerprint::parse(&pairs.join(":").to_uppercase()), Some(fingerprint));
        assert_eq!(Fingerprint::parse(&text[1..]), None);
        assert_eq!(Fingerprint::parse("zz"), None);
    }
}
