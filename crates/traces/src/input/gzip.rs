//! Files that gzip packed (rfc1952), unpacked up to a limit. A small file may unpack to a thousand times its
//! size, so what counts is the length afterwards.

use std::fmt;
use std::io::{self, Read};

use brakelight_core::units::Bytes;
use flate2::bufread::MultiGzDecoder;

use super::{BYTE_ORDER_MARK, HEAD, Kind, TooLong};

/// rfc1952 2.3.1: the two magic bytes, and deflate, the only method there is.
const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

/// A packed file cannot be unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Damaged {
    reason: String,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its gzip data is damaged or cut off ({}): pack it again", self.reason)
    }
}

impl std::error::Error for Damaged {}

/// Returns `true` if gzip packed these contents.
pub fn is_packed(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Returns the contents of a file without a byte order mark, unpacked if gzip packed them. `most` is given up
/// to 64 KiB of what was packed. Fails if the data is damaged, or holds more than `most`.
pub fn unpacked(bytes: Vec<u8>, most: impl FnOnce(&[u8]) -> Bytes) -> io::Result<Vec<u8>> {
    if !is_packed(&bytes) {
        return Ok(bytes);
    }
    let mut decoder = MultiGzDecoder::new(bytes.as_slice());
    let mut contents = Vec::new();
    let damaged =
        |error: io::Error| io::Error::new(io::ErrorKind::InvalidData, Damaged { reason: error.to_string() });
    decoder.by_ref().take(HEAD as u64).read_to_end(&mut contents).map_err(damaged)?;
    if contents.starts_with(BYTE_ORDER_MARK) {
        contents.drain(..BYTE_ORDER_MARK.len());
    }
    let most = most(&contents);
    // One more than may be there, to see whether it is.
    let rest = (most.0 + 1).saturating_sub(contents.len() as u64);
    decoder.take(rest).read_to_end(&mut contents).map_err(damaged)?;
    if contents.len() as u64 > most.0 {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, TooLong { most, kind: Kind::Unpacked }));
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_small_file_that_unpacks_to_a_large_one_is_refused() {
        let bomb = packed(&vec![b'0'; 50_000_000]);
        assert!(bomb.len() < 100_000, "{}", bomb.len());
        let refused = unpacked(bomb, |_| Bytes(4_000_000)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(refused.to_string(), "unpacked it is longer than 4MB, the most that such a file may hold");
    }

    #[test]
    fn the_limit_is_chosen_by_what_was_packed() {
        let file = packed("\u{feff}start_s,mbps\n".as_bytes());
        let contents = unpacked(file, |head| {
            assert_eq!(head, b"start_s,mbps\n");
            Bytes(13)
        });
        assert_eq!(contents.unwrap(), b"start_s,mbps\n");
    }

    #[test]
    fn a_file_that_breaks_off_says_so() {
        let mut cut = packed(b"1\n2\n3\n");
        cut.truncate(cut.len() - 9);
        let refused = unpacked(cut, |_| Bytes(100)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
        assert!(refused.to_string().contains("damaged or cut off"), "{refused}");
    }

    #[test]
    fn several_members_are_one_file_and_what_is_not_packed_stays() {
        let two = [packed(b"1\n"), packed(b"2\n")].concat();
        assert_eq!(unpacked(two, |_| Bytes(4)).unwrap(), b"1\n2\n");
        assert_eq!(unpacked(b"1\n2\n".to_vec(), |_| Bytes(0)).unwrap(), b"1\n2\n");
    }

    proptest! {
        #[test]
        fn unpacking_gives_what_was_packed(bytes in prop::collection::vec(any::<u8>(), 0..3_000)) {
            let most = Bytes(bytes.len() as u64);
            let marked = bytes.starts_with(BYTE_ORDER_MARK);
            prop_assert!(marked || unpacked(packed(&bytes), |_| most).unwrap() == bytes);
            let less = Bytes(most.0.saturating_sub(1));
            prop_assert_eq!(unpacked(packed(&bytes), |_| less).is_err(), !bytes.is_empty());
        }

        #[test]
        fn no_damage_brings_it_down(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            end in any::<prop::sample::Index>(),
        ) {
            let mut file = packed(&bytes);
            for (at, byte) in edits {
                let at = at.index(file.len());
                file[at] = byte;
            }
            file.truncate(1 + end.index(file.len()));
            let contents = unpacked(file, |_| Bytes(1_000));
            prop_assert!(contents.is_err() || contents.unwrap().len() <= 1_000);
        }
    }
}
