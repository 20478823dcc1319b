//! A link of the emulator: how it is served and its queue, a line each. Names, rates and options are tried.
//! The name of a trace could be a file, so it is left out.
#![no_main]

use brakelight_core::units::Limit;
use brakelight_emulator::spec::Bottleneck;
use brakelight_scenario::trace::names::Names;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Some((service, queue)) = text.split_once('\n') else { return };
    if service.contains(['/', '.', '#']) {
        return;
    }
    let _ = Bottleneck::parse("down", service, queue, Limit::Packets(100), &Names::default());
});
