//! Modules: what is refused and why, what a call may cost, and what becomes of a module that fails. The
//! modules are texts, so that no compiler is needed.

use brakelight_core::controller::{Controller, Timeout};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::CustomController;
use brakelight_sandbox::abi::{BYTES, Field, ModuleEvent};
use brakelight_sandbox::controller::{Config, Sandboxed, Values};
use brakelight_sandbox::module::WasmModule;
use brakelight_testkit::events::{MSS, ack, connection, packet, timeout};
use proptest::prelude::*;

/// A module with the exports that are required, unless `parts` has others under their names.
fn text(parts: &str) -> String {
    let required = [
        ("memory", "(memory (export \"memory\") 1)"),
        ("brakelight_abi", "(func (export \"brakelight_abi\") (result i32) (i32.const 1))"),
        ("brakelight_buffer", "(func (export \"brakelight_buffer\") (result i32) (i32.const 64))"),
        ("init", "(func (export \"init\"))"),
        ("on_ack", "(func (export \"on_ack\"))"),
        ("on_loss", "(func (export \"on_loss\"))"),
        ("on_timeout", "(func (export \"on_timeout\"))"),
    ];
    let missing = required.iter().filter(|(name, _)| !parts.contains(&format!("\"{name}\"")));
    // What is imported comes first.
    format!("(module {parts} {})", missing.map(|(_, text)| *text).collect::<String>())
}

fn bytes(parts: &str) -> Vec<u8> {
    let text = text(parts);
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn load(parts: &str) -> Result<WasmModule, String> {
    WasmModule::from_bytes("mine.wasm".to_string(), bytes(parts)).map_err(|error| error.to_string())
}

/// A flow of the module, at its start.
fn started(module: WasmModule) -> Sandboxed {
    let config = Config::new(Values { module }).expect("any module is in range");
    Sandboxed::build(&config, &connection(10))
}

/// A flow of the module with these parts, at its start.
fn start(parts: &str) -> Sandboxed {
    let module = load(parts).unwrap_or_else(|error| panic!("{error}"));
    started(module)
}

/// Where a field is, in the memory of modules with the buffer of [`text`].
fn at(field: Field) -> usize {
    64 + field.offset()
}

fn set(field: Field, value: &str) -> String {
    format!("(f64.store (i32.const {}) (f64.const {value}))", at(field))
}

fn on(event: ModuleEvent, body: &str) -> String {
    format!("(func (export \"{}\") {body})", event.export())
}

fn failure(flow: &Sandboxed) -> &str {
    &flow.failure().expect("it failed").reason
}

#[test]
fn the_shipped_module_is_its_text() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/modules");
    let made = wat::parse_file(format!("{folder}/newreno.wat")).unwrap();
    let path = format!("{folder}/newreno.wasm");
    if std::env::var_os("BRAKELIGHT_BLESS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    assert!(std::fs::read(path).unwrap() == made, "BRAKELIGHT_BLESS=1 writes newreno.wasm anew");
    assert_eq!(WasmModule::shipped().source(), "shipped");
}

#[test]
fn operators_after_the_end_of_a_function_are_refused() {
    let mut bytes = bytes("(global $g i32 (i32.const 0)) (func (nop) (nop) (drop (global.get $g)))");
    // nop, nop, global.get 0, drop, end
    let body = [0x01, 0x01, 0x23, 0x00, 0x1a, 0x0b];
    let place = bytes.windows(body.len()).position(|window| window == body).unwrap();
    bytes[place] = 0x0b;
    let error = WasmModule::from_bytes("mine.wasm".to_string(), bytes).unwrap_err().to_string();
    assert!(error.starts_with("it is no WebAssembly module that can run: "), "{error}");
}

#[test]
fn what_cannot_be_a_controller_is_refused_with_the_reason() {
    let file = "(import \"wasi_snapshot_preview1\" \"fd_write\" (func (param i32 i32 i32 i32) (result i32)))";
    let table = "(table 2 funcref)";
    let cases = [
        (
            file.to_string(),
            "it imports `wasi_snapshot_preview1.fd_write`; a module gets nothing from outside",
        ),
        (
            (0..6).map(|n| format!("(import \"env\" \"f{n}\" (func))")).collect(),
            "it imports `env.f0`, `env.f1`, `env.f2`, `env.f3` and 2 more; ",
        ),
        ("(func $now) (start $now)".to_string(), "it has a start function"),
        ("(memory 1) (global (export \"memory\") i32 (i32.const 0))".to_string(), "`memory` is a global"),
        (
            "(func (export \"on_ack\") (param i32))".to_string(),
            "its export `on_ack` is a function (i32) -> (); valid is a function () -> ()",
        ),
        (
            "(func (export \"on_timer\") (result f64) (f64.const 0))".to_string(),
            "its export `on_timer` is a function () -> (f64)",
        ),
        (
            "(func (export \"brakelight_abi\") (result i32) (i32.const 2))".to_string(),
            "its `brakelight_abi` returns 2; valid is 1",
        ),
        (
            "(func (export \"brakelight_buffer\") (result i32) (i32.const 65300))".to_string(),
            "its buffer of 336 bytes at 65300 is not inside its memory of 65536 bytes",
        ),
        (
            "(func (export \"brakelight_buffer\") (result i32) (i32.const -1))".to_string(),
            "at 4294967295 is not inside",
        ),
        (
            "(func (export \"brakelight_abi\") (result i32) (loop (br 0)) (unreachable))".to_string(),
            "it cannot be started: ",
        ),
        (
            format!("{table} (func (table.set 0 (i32.const 0) (ref.null func)))"),
            "it has the instruction `table.set`",
        ),
        ("(data \"x\") (func (data.drop 0))".to_string(), "it has the instruction `data.drop`"),
        ("(memory (export \"memory\") 257)".to_string(), "it cannot be started: "),
        ("(memory i64 1)".to_string(), "it is no WebAssembly module that can run: "),
        (
            "(memory 1 1) (memory (export \"memory\") 1)".to_string(),
            "it is no WebAssembly module that can run: ",
        ),
        ("(func (param v128))".to_string(), "it is no WebAssembly module that can run: "),
    ];
    for (parts, words) in cases {
        let refused = load(&parts).expect_err(&parts);
        assert!(refused.contains(words), "{parts}: {refused}");
        assert!(!refused.contains('\n'), "{refused}");
    }
    for event in ModuleEvent::ALL {
        let without = text("").replace(&format!("(func (export \"{}\"))", event.export()), "");
        let module = WasmModule::from_bytes("mine.wasm".to_string(), wat::parse_str(without).unwrap());
        assert_eq!(module.is_err(), event.is_required(), "{event:?}");
        if let Err(refused) = module {
            let words = format!("it does not export `{}`, a function () -> ()", event.export());
            assert_eq!(refused.to_string(), words);
        }
    }
    let none =
        WasmModule::from_bytes("mine.wasm".to_string(), wat::parse_str("(module)").unwrap()).unwrap_err();
    assert!(none.to_string().contains("it has no exports"), "{none}");
}

#[test]
fn fields_are_where_they_are_said_to_be() {
    assert_eq!(BYTES, 336);
    assert_eq!((Field::Cwnd.offset(), Field::Now.offset(), Field::AppLimited.offset()), (32, 64, 328));
    // The module answers with what it was told: a field of the event as the window.
    let told = |field: Field| {
        let body =
            format!("(f64.store (i32.const {}) (f64.load (i32.const {})))", at(Field::Cwnd), at(field));
        let mut flow = start(&on(ModuleEvent::Ack, &body));
        let acked = [packet(7, Time::from_secs(1_000_000))];
        let mut event = ack(Time::from_secs(2_000_000), &acked, Duration::from_secs(3_000_000));
        event.delivered = Bytes(4_000_000);
        event.total_lost = Bytes(5_000_000);
        event.round = 6_000_000;
        flow.on_ack(&event);
        assert!(flow.failure().is_none());
        flow.cwnd().0
    };
    for (field, value) in [
        (Field::Now, 2_000_000),
        (Field::Rtt, 3_000_000),
        (Field::Srtt, 3_000_000),
        (Field::Delivered, 4_000_000),
        (Field::TotalLost, 5_000_000),
        (Field::Round, 6_000_000),
        (Field::PacketSentAt, 1_000_000),
        (Field::PacketDelivered, 7_000),
        (Field::InitialWindow, 10_000),
        // What is less than a packet is raised to one.
        (Field::Overhead, MSS.0),
    ] {
        assert_eq!(told(field), value, "{field:?}");
    }
}

#[test]
fn a_decision_is_read_after_every_call() {
    let mut flow = start(&format!(
        "{}{}",
        on(ModuleEvent::Init, &(set(Field::Cwnd, "123456.9") + &set(Field::PacingRate, "250000"))),
        on(
            ModuleEvent::Timeout,
            &(set(Field::Cwnd, "1") + &set(Field::PacingRate, "0") + &set(Field::Ssthresh, "4e4"))
        ),
    ));
    assert_eq!(
        (flow.cwnd(), flow.pacing_rate(), flow.ssthresh()),
        (Bytes(123_456), Some(Rate::from_mbps(2)), None)
    );
    flow.on_timeout(&timeout(Time::from_secs(1), Timeout::Rto));
    assert_eq!((flow.cwnd(), flow.pacing_rate(), flow.ssthresh()), (MSS, None, Some(Bytes(40_000))));
    flow.cap_cwnd(Bytes(20_000));
    assert_eq!(flow.cwnd(), MSS);
    let mut flow = start(&on(ModuleEvent::Init, &set(Field::Cwnd, "1e30")));
    assert_eq!(flow.cwnd(), Bytes(1_000_000_000_000));
    flow.cap_cwnd(Bytes(20_000));
    assert_eq!(flow.cwnd(), Bytes(20_000));
}

#[test]
fn a_module_that_fails_says_where_and_why_and_decides_nothing_more() {
    let fuel = "it did not come to an end within 1000000 units of fuel";
    let grows = "(loop (drop (memory.grow (i32.const 1))) (br 0))";
    let deep = "(call $deep)";
    for (event, body, words) in [
        (ModuleEvent::Ack, "(loop (br 0))", fuel),
        (ModuleEvent::Ack, grows, fuel),
        (ModuleEvent::Ack, "(unreachable)", "unreachable"),
        (ModuleEvent::Ack, "(drop (i32.load (i32.const -4)))", "out of bounds"),
        (ModuleEvent::Ack, "(drop (i32.div_u (i32.const 1) (i32.const 0)))", "divi"),
        (ModuleEvent::Ack, deep, "stack"),
        (ModuleEvent::Init, "(loop (br 0))", "within 10000000 units of fuel"),
        (ModuleEvent::Ack, &set(Field::Cwnd, "nan"), "it set cwnd to NaN: valid is 0 bytes or more"),
        (ModuleEvent::Ack, &set(Field::Cwnd, "inf"), "it set cwnd to inf: valid is 0 bytes or more"),
        (ModuleEvent::Ack, &set(Field::Cwnd, "-1"), "it set cwnd to -1: valid is 0 bytes or more"),
        (
            ModuleEvent::Ack,
            &set(Field::PacingRate, "nan"),
            "it set pacing_rate to NaN: valid is 0 bytes/s or more",
        ),
        (ModuleEvent::Ack, &set(Field::NextTimer, "-inf"), "it set next_timer to -inf: valid is 0 s or more"),
    ] {
        let mut flow = start(&format!("(func $deep (call $deep)) {}", on(event, body)));
        assert_eq!(flow.failure().is_some(), event == ModuleEvent::Init, "{body}");
        let now = Time::from_millis(1_500);
        flow.on_ack(&ack(now, &[packet(0, Time::ZERO)], Duration::from_millis(40)));
        let said = failure(&flow);
        assert!(said.starts_with(&format!("mine.wasm: `{}`: ", event.export())), "{said}");
        assert!(said.contains(words), "{body}: {said}");
        assert!(!said.contains('\n'), "{said}");
        let failed = flow.failure().cloned();
        assert_eq!(failed.as_ref().unwrap().at, if event == ModuleEvent::Init { Time::ZERO } else { now });
        assert_eq!((flow.cwnd(), flow.pacing_rate(), flow.next_timer()), (MSS, None, None));
        flow.on_timeout(&timeout(Time::from_secs(3), Timeout::Rto));
        assert_eq!((flow.failure().cloned(), flow.clone().failure().cloned()), (failed.clone(), failed));
    }
}

#[test]
fn memory_grows_to_sixteen_mebibytes_and_no_further() {
    // The window is the number of pages that there are in the end.
    let counts = format!(
        "(block $full (loop (br_if $full (i32.eq (memory.grow (i32.const 1)) (i32.const -1))) (br 0)))
         (f64.store (i32.const {}) (f64.convert_i32_u (i32.mul (memory.size) (i32.const 1000))))",
        at(Field::Cwnd)
    );
    let flow = start(&on(ModuleEvent::Init, &counts));
    assert_eq!((flow.cwnd(), flow.failure()), (Bytes(256_000), None));
    // A copy has as much.
    assert_eq!(flow.clone().cwnd(), flow.cwnd());
}

#[test]
fn a_timer_that_is_due_at_once_again_and_again_is_put_off() {
    let again =
        format!("(f64.store (i32.const {}) (f64.load (i32.const {})))", at(Field::NextTimer), at(Field::Now));
    let mut flow = start(&format!(
        "{}{}",
        on(ModuleEvent::Init, &set(Field::NextTimer, "2")),
        on(ModuleEvent::Timer, &again)
    ));
    assert_eq!(flow.next_timer(), Some(Time::from_secs(2)));
    flow.on_timer(Time::from_secs(2));
    assert_eq!(flow.next_timer(), Some(Time::from_secs(2) + Duration::from_micros(1)));
    // Without a function for it no timer is set.
    assert_eq!(start(&on(ModuleEvent::Init, &set(Field::NextTimer, "2"))).next_timer(), None);
}

#[test]
fn a_mark_is_told_as_a_loss_where_a_module_has_no_word_for_it() {
    let loss = brakelight_testkit::events::loss(Time::from_secs(1));
    let halves = on(ModuleEvent::Loss, &set(Field::Cwnd, "5000"));
    let mut flow = start(&halves);
    flow.on_ce(&loss);
    assert_eq!(flow.cwnd(), Bytes(5000));
    let mut flow = start(&(halves + &on(ModuleEvent::Ce, &set(Field::Cwnd, "9000"))));
    flow.on_ce(&loss);
    assert_eq!(flow.cwnd(), Bytes(9000));
}

/// A window that counts ACKs, in a global that nobody exports and in memory.
fn counter() -> String {
    let body = format!(
        "(global.set $seen (i32.add (global.get $seen) (i32.const 1)))
         (i32.store (i32.const 4000) (i32.add (i32.load (i32.const 4000)) (i32.const 2)))
         (f64.store (i32.const {}) (f64.convert_i32_u
            (i32.mul (i32.const 1000) (i32.add (global.get $seen) (i32.load (i32.const 4000))))))",
        at(Field::Cwnd)
    );
    format!(
        "(global $seen (mut i32) (i32.const 0)) (global $fixed i64 (i64.const 9)) {}",
        on(ModuleEvent::Ack, &body)
    )
}

#[test]
fn a_copy_goes_on_from_where_it_was_taken_and_the_original_does_not_notice() {
    let count = |flow: &mut Sandboxed, times: u64| {
        for _ in 0..times {
            flow.on_ack(&ack(Time::from_secs(1), &[packet(0, Time::ZERO)], Duration::from_millis(40)));
        }
        flow.cwnd().0
    };
    let mut flow = start(&counter());
    assert_eq!(count(&mut flow, 5), 15_000);
    let mut copy = flow.clone();
    assert_eq!(copy.cwnd(), flow.cwnd());
    assert_eq!(count(&mut copy, 2), 21_000);
    assert_eq!(count(&mut flow, 1), 18_000);
}

/// A module whose section of exports comes with a length of five bytes, as some linkers write it.
#[test]
fn a_length_may_have_more_bytes_than_it_needs() {
    let short = bytes(&counter());
    let mut place = 8;
    // The lengths of these sections have at most two bytes.
    let (at, length, digits) = loop {
        let (low, high) = (usize::from(short[place + 1]), usize::from(short[place + 2]));
        let (length, digits) = if low < 128 { (low, 1) } else { (low - 128 + 128 * high, 2) };
        if short[place] == 7 {
            break (place, length, digits);
        }
        place += 1 + digits + length;
    };
    let mut long = short[..=at].to_vec();
    long.extend([(length & 0x7f) as u8 | 0x80, (length >> 7) as u8 | 0x80, 0x80, 0x80, 0]);
    long.extend(&short[at + 1 + digits..]);
    let module =
        WasmModule::from_bytes("mine.wasm".to_string(), long).unwrap_or_else(|error| panic!("{error}"));
    let mut flow = started(module).clone();
    flow.on_ack(&ack(Time::from_secs(1), &[packet(0, Time::ZERO)], Duration::from_millis(40)));
    assert_eq!(flow.cwnd(), Bytes(3000));
}

/// The bits of a NaN would differ between machines; here there is one.
#[test]
fn a_nan_has_the_same_bits_whatever_it_comes_from() {
    for nan in [
        "(f64.div (f64.const 0) (f64.const 0))",
        "(f64.sqrt (f64.const -1))",
        "(f64.add (f64.const -nan:0x4000000000001) (f64.const 1))",
    ] {
        let body = format!(
            "(f64.store (i32.const {}) (f64.convert_i64_u (i64.shr_u (i64.reinterpret_f64 {nan}) (i64.const 48))))",
            at(Field::Cwnd)
        );
        assert_eq!(start(&on(ModuleEvent::Init, &body)).cwnd(), Bytes(0x7ff8), "{nan}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is read, it is a module or an error of one line.
    #[test]
    fn no_bytes_make_it_panic(
        head in prop::sample::select(vec![&b""[..], b"\0asm\x01\0\0\0"]),
        rest in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let read = WasmModule::from_bytes("mine.wasm".to_string(), [head, &rest].concat());
        prop_assert!(read.is_err_and(|error| !error.to_string().contains('\n')));
    }

    /// A file that was cut off, or has a few other bytes.
    #[test]
    fn no_damage_makes_it_panic(
        length in 0..2000_usize,
        damage in prop::collection::vec((0..2000_usize, any::<u8>()), 0..4),
    ) {
        let mut bytes = include_bytes!("../modules/newreno.wasm").to_vec();
        bytes.truncate(length.max(8));
        for (place, byte) in damage {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        if let Ok(module) = WasmModule::from_bytes("mine.wasm".to_string(), bytes) {
            let mut flow = started(module);
            for ms in 1..20 {
                let acked = [packet(ms, Time::ZERO)];
                flow.on_ack(&ack(Time::from_millis(ms), &acked, Duration::from_millis(1)));
                flow.on_timeout(&timeout(Time::from_millis(ms), Timeout::Rto));
                prop_assert!(flow.cwnd() >= MSS);
                prop_assert!(flow.clone().cwnd() == flow.cwnd());
            }
        }
    }
}
