//! Other files that become traces. The first byte says of which format and direction.
#![no_main]

use brakelight_core::units::Bytes;
use brakelight_scenario::input::gzip::unpacked;
use brakelight_scenario::trace::convert::{ConvertOptions, Format, Selection, convert};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let selections = ["all", "up", "down", "from:10.0.0.1", "to:10.0.0.1"];
    let selection = selections.get(usize::from(kind / 10 % 8)).and_then(|text| text.parse().ok());
    let options = ConvertOptions { selection: selection.unwrap_or(Selection::OneDirection), ..ConvertOptions::default() };
    let formats = [
        Format::Csv,
        Format::Pcap,
        Format::Iperf3,
        Format::detect(bytes),
        Format::Columns,
        Format::Iperf3Text,
        Format::Nuttcp,
        Format::Genet,
        Format::CakeAutorate,
        Format::Qlog,
    ];
    // Beyond all others, so that the first bytes of the corpus mean what they did.
    let format = match kind {
        250.. => Format::CellReplay,
        249 => Format::Packets,
        248 => Format::Flent,
        247 => Format::LinkLog,
        _ => formats[usize::from(kind) % formats.len()],
    };
    let _ = convert(bytes, format, options.clone());
    if kind == &246
        && let Ok(contents) = unpacked(bytes.to_vec(), |_| Bytes(1_000_000))
    {
        let _ = convert(&contents, Format::detect(&contents), options);
    }
});
