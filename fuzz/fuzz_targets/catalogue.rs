//! A catalogue of recordings; the bytes behind the first NUL are the file that each of its entries names.
#![no_main]

use brakelight_scenario::trace::catalogue::Catalogue;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (text, contents) = bytes.split_at(end);
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Ok(catalogue) = Catalogue::parse(text) else { return };
    for entry in catalogue.entries.iter().take(4) {
        let files = vec![contents.get(1..).unwrap_or_default().to_vec(); entry.files().count()];
        let _ = entry.convert(&files);
    }
});
