//! A secret that a server and its clients share, so that nobody else is served.
//!
//! The client proves that it knows the secret, and does not say it: it sends the HMAC (RFC 2104) under the
//! secret of 32 bytes that the TLS session exports (RFC 8446 section 7.5). Who stands between the two has
//! another session with each of them, so that what one sends is of no use with the other.

use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use brakelight_core::units::Bytes;
use brakelight_scenario::input;
use ring::hmac;

use super::Error;
use super::identity::OTHERS_READ;

/// Bytes of a proof.
pub const PROOF_LENGTH: usize = 32;

/// What a session exports is for this purpose alone.
const LABEL: &[u8] = b"EXPORTER-brakelight-perf-token";

/// The shortest secret: what a person makes up is guessed sooner.
const SHORTEST: usize = 16;

/// The most that a file with a secret may hold.
const LONGEST: Bytes = Bytes(4096);

/// A secret that client and server share.
#[derive(Clone)]
pub struct Token(hmac::Key);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// What a session exports: the same bytes at both of its ends, and at no others.
#[derive(Clone, Copy)]
pub(crate) struct Session([u8; 32]);

impl Session {
    /// Of a connection whose handshake is complete; none of any other.
    pub(crate) fn of(export: impl FnOnce(&mut [u8], &[u8], &[u8]) -> bool) -> Option<Self> {
        let mut bytes = [0; 32];
        export(&mut bytes, LABEL, b"").then_some(Session(bytes))
    }
}

impl Token {
    /// Returns the token of `secret`, or an error message if it is shorter than 16 bytes.
    pub fn new(secret: &[u8]) -> Result<Self, String> {
        if secret.len() < SHORTEST {
            return Err(format!(
                "the token has {} bytes: valid are {SHORTEST} or more, such as `openssl rand -hex 16` prints",
                secret.len()
            ));
        }
        Ok(Token(hmac::Key::new(hmac::HMAC_SHA256, secret)))
    }

    /// Reads a secret: what `file` holds without white space around it. Fails if everybody may read the file.
    pub fn read(file: &Path) -> Result<Self, Error> {
        let failed = |reason: String| Error::File { file: file.into(), reason };
        let bytes = input::read(file, LONGEST)
            .map_err(|error| failed(format!("{error}; give a file with a token")))?;
        let mode = std::fs::metadata(file).map_or(0, |metadata| metadata.permissions().mode());
        // Of a pipe nothing can be said; who may read it has been decided by who made it.
        if mode & OTHERS_READ != 0 && file.is_file() {
            let reason =
                "everybody can read it; `chmod o-r` it, and use another token if it was readable for long";
            return Err(failed(reason.to_string()));
        }
        Token::new(bytes.trim_ascii()).map_err(failed)
    }

    /// That this end of a session knows the secret.
    pub(crate) fn prove(&self, session: Session) -> [u8; PROOF_LENGTH] {
        let tag = hmac::sign(&self.0, &session.0);
        tag.as_ref().try_into().expect("SHA-256 has 32 bytes")
    }

    /// Whether the other end does. Takes the same time whatever the proof holds.
    pub(crate) fn is_proved(&self, session: Session, proof: &[u8; PROOF_LENGTH]) -> bool {
        hmac::verify(&self.0, &session.0, proof).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_one_secret_and_one_session() {
        let (mine, other) =
            (Token::new(b"sixteen bytes ab").unwrap(), Token::new(b"sixteen bytes ac").unwrap());
        let (here, there) = (Session([1; 32]), Session([2; 32]));
        let proof = mine.prove(here);
        assert!(mine.is_proved(here, &proof));
        assert!(!mine.is_proved(there, &proof));
        assert!(!other.is_proved(here, &proof));
        assert!(Token::new(b"fifteen bytes a").unwrap_err().contains("15 bytes"));
    }

    #[test]
    fn a_file_that_everybody_may_read_holds_no_secret() {
        let path = std::env::temp_dir().join(format!("brakelight-token-{}", std::process::id()));
        std::fs::write(&path, "  0123456789abcdef\n").unwrap();
        let set = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        set(0o644);
        let open = Token::read(&path);
        set(0o600);
        let closed = Token::read(&path);
        std::fs::remove_file(&path).unwrap();
        assert!(open.unwrap_err().to_string().contains("everybody can read it"));
        let session = Session([3; 32]);
        let expected = Token::new(b"0123456789abcdef").unwrap();
        assert!(expected.is_proved(session, &closed.unwrap().prove(session)));
    }
}
