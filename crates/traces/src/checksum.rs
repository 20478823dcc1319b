//! SHA-256 (FIPS 180-4) in hexadecimal, by which files and runs are known.

use sha2::{Digest, Sha256};

/// Returns the SHA-256 of `bytes` in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// Returns `bytes` as hexadecimal digits, two for each, in lower case.
pub fn hexadecimal(bytes: &[u8]) -> String {
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16));
    bytes.iter().flat_map(digits).flatten().collect()
}
