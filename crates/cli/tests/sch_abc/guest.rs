//! What the first process of the virtual machine does: it loads the module, and holds what comes out against
//! the core.
//!
//! Packets are frames of our own on one end of a pair of virtual Ethernet devices, and are read at the other.

mod frames;
mod network;

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::parameters::Parameters;
use brakelight_core::queue::{Place, Queue};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration as CoreDuration, Time};
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_routers::abc::{Abc, Config};
use brakelight_routers::abc_l4s::{self, AbcL4s};
use brakelight_tcp::qdisc::{self, Buffer, Counts, QdiscSettings, ROOT};
use brakelight_tcp::settings::Variant;
use brakelight_testkit::{Fixed, Sample};
use frames::{Frame, Port};
use serde_json::Value;

/// What is said at the end.
pub const ALL_IS_WELL: &str = "all is well";

/// The device with the qdisc, and the other end.
const OUT: &str = "abc0";
const IN: &str = "abc1";

#[test]
#[ignore = "the first process of a virtual machine"]
fn all() {
    network::prepare();
    let checks: [(&str, fn()); 15] = [
        ("module_and_parameters", module_and_parameters),
        ("what_is_no_option_is_refused", what_is_no_option_is_refused),
        ("marks_are_the_cores", marks_are_the_cores),
        ("marks_that_tune_themselves_are_the_cores", marks_that_tune_themselves_are_the_cores),
        ("marks_for_l4s_are_the_cores", marks_for_l4s_are_the_cores),
        ("the_delay_is_the_packets_or_the_queues", the_delay_is_the_packets_or_the_queues),
        ("what_finds_no_room_is_dropped", what_finds_no_room_is_dropped),
        ("no_faster_than_the_rate", no_faster_than_the_rate),
        ("settings_given_again_send_nothing_early", settings_given_again_send_nothing_early),
        ("the_rate_of_a_class_is_measured", the_rate_of_a_class_is_measured),
        ("segments_are_marked_one_by_one", segments_are_marked_one_by_one),
        ("the_command", the_command),
        ("a_device_goes_with_what_waits", a_device_goes_with_what_waits),
        ("a_thousand_times", a_thousand_times),
        ("and_out", and_out),
    ];
    let mut failed = Vec::new();
    for (name, check) in checks {
        let begin = Instant::now();
        if std::panic::catch_unwind(check).is_err() {
            failed.push(name);
            // What it left behind is not the next one's business.
            let _ = run("ip netns del far");
            let _ = run(&format!("ip link del {OUT}"));
            network::pair(OUT, IN);
        }
        println!("{name}: {:.2} s by its clock", begin.elapsed().as_secs_f64());
    }
    assert!(failed.is_empty(), "{failed:?}");
    let log = network::kernel_log();
    let alarms = ["BUG", "WARNING", "Oops", "refcount", "Call Trace"];
    let found: Vec<_> = log.lines().filter(|line| alarms.iter().any(|alarm| line.contains(alarm))).collect();
    assert!(found.is_empty(), "{found:?}");
    println!("{ALL_IS_WELL}");
    network::power_off();
}

/// The end of a TCP connection that only reads, in a network namespace of its own.
#[test]
#[ignore = "started inside the virtual machine"]
fn reader() {
    network::read_all();
}

/// Runs a program; what it prints, or what it complains of.
fn run(line: &str) -> Result<String, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn done(line: &str) -> String {
    run(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// The only qdisc `abc` there is.
fn only() -> qdisc::Qdisc {
    let mut found = qdisc::list(None).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn counts() -> Counts {
    only().counts
}

fn shaped(mbps: u64) -> QdiscSettings {
    QdiscSettings {
        rate_bps: Some(mbps * 1_000_000),
        buffer: Buffer::Packets(10_000),
        ..QdiscSettings::default()
    }
}

/// Holds everything but a packet in the queue: the slowest rate there is.
fn held(settings: &QdiscSettings) -> QdiscSettings {
    QdiscSettings { rate_bps: Some(8_000), ..settings.clone() }
}

fn remove() {
    qdisc::remove(OUT, ROOT).unwrap();
    assert_eq!(qdisc::list(None).unwrap(), []);
}

fn module_and_parameters() {
    network::load("sch_abc", "rate_kbit=12000 limit=77");
    done(&format!("tc qdisc add dev {OUT} root abc"));
    let found = only();
    assert_eq!((found.device.as_str(), found.parent), (OUT, ROOT));
    let defaults =
        QdiscSettings { rate_bps: Some(12_000_000), buffer: Buffer::Packets(77), ..QdiscSettings::default() };
    assert!((found.settings.eta - 0.98).abs() < 1e-6);
    assert_eq!(QdiscSettings { eta: 0.98, ..found.settings }, defaults);
    let shown = done(&format!("tc -s qdisc show dev {OUT}"));
    println!("{shown}");
    assert!(shown.contains("qdisc abc"), "{shown}");
    // It cannot go while it is in use.
    assert!(network::unload("sch_abc").is_err());
    remove();
    // Parameters are for those that come after, and are checked.
    fs::write("/sys/module/sch_abc/parameters/rate_kbit", "0").unwrap();
    fs::write("/sys/module/sch_abc/parameters/proxied", "Y").unwrap();
    done(&format!("tc qdisc add dev {OUT} root abc"));
    let found = only().settings;
    assert_eq!((found.rate_bps, found.shape, found.proxied), (None, false, true));
    remove();
    fs::write("/sys/module/sch_abc/parameters/proxied", "N").unwrap();
    fs::write("/sys/module/sch_abc/parameters/eta_permille", "20").unwrap();
    let refused = run(&format!("tc qdisc add dev {OUT} root abc")).unwrap_err();
    println!("{refused}");
    assert!(refused.contains("abc: eta must be from 0.1 to 1"), "{refused}");
    fs::write("/sys/module/sch_abc/parameters/eta_permille", "0").unwrap();
    // The rule that tunes itself has an eta of its own, and no use for a target.
    fs::write("/sys/module/sch_abc/parameters/adaptive", "Y").unwrap();
    done(&format!("tc qdisc add dev {OUT} root abc"));
    let found = only().settings;
    assert_eq!((found.variant, found.eta), (Variant::Adaptive, 1.0));
    remove();
    fs::write("/sys/module/sch_abc/parameters/target_us", "5000").unwrap();
    let refused = run(&format!("tc qdisc add dev {OUT} root abc")).unwrap_err();
    println!("{refused}");
    assert!(refused.contains("adaptive goes without target_us, delta_us and sojourn"), "{refused}");
    fs::write("/sys/module/sch_abc/parameters/target_us", "50000").unwrap();
    fs::write("/sys/module/sch_abc/parameters/adaptive", "N").unwrap();
}

fn what_is_no_option_is_refused() {
    const SHARE_ONE: u32 = 1 << 20;
    let u32s = |value: u32| value.to_ne_bytes().to_vec();
    let cases: Vec<(u16, Vec<u8>, &str)> = vec![
        (2, 999_u64.to_ne_bytes().to_vec(), "the rate must be"),
        (2, ((1_u64 << 36) + 1).to_ne_bytes().to_vec(), "the rate must be"),
        (2, u32s(1), "invalid attribute length"),
        (4, u32s(0), "a limit must be given"),
        (6, u32s(100_000_001), "the target must be at most 100 s"),
        (7, u32s(0), "delta must be above 0"),
        (7, u32s(100_000_001), "delta must be above 0 and at most 100 s"),
        (8, u32s(999), "the window must be from 1 ms to 10 s"),
        (8, u32s(10_000_001), "the window must be"),
        (9, u32s(SHARE_ONE / 10 - 1), "eta must be from 0.1 to 1"),
        (9, u32s(SHARE_ONE + 1), "eta must be"),
        (10, u32s(SHARE_ONE), "the token limit must be above 1"),
        (11, vec![2], "the encoding must be 0 (legacy) or 1 (proxied)"),
        (12, vec![2], "the delay must be 0 (backlog) or 1 (sojourn)"),
        (13, vec![3], "the variant must be 0 (paper), 1 (adaptive) or 2 (l4s)"),
        (14, u32s(0), "nknown attribute"),
    ];
    for there in [false, true] {
        if there {
            qdisc::set(OUT, ROOT, &shaped(12)).unwrap();
        }
        for (kind, value, words) in &cases {
            let refused = qdisc::set_raw(OUT, ROOT, &qdisc::raw_options(&[(*kind, value)])).unwrap_err();
            assert!(refused.to_string().contains(words), "{kind} {value:?}: {refused}");
            assert_eq!(qdisc::list(None).unwrap().len(), usize::from(there), "{kind} {value:?}");
        }
        // Attributes that do not say that they hold others; those that end in the middle.
        let options = qdisc::raw_options(&[(4, &u32s(9))]);
        let mut flat = options.clone();
        flat[3] &= 0x7f;
        assert!(
            qdisc::set_raw(OUT, ROOT, &flat).unwrap_err().to_string().contains("NLA_F_NESTED is missing")
        );
    }
    let after = only().settings;
    assert_eq!((after.rate_bps, after.buffer), (Some(12_000_000), Buffer::Packets(10_000)));
    // Options of the paper's rule beside another.
    for (kind, value) in [(6, u32s(5_000)), (7, u32s(60_000)), (12, vec![0])] {
        let options = qdisc::raw_options(&[(13, &[1]), (kind, &value)]);
        let refused = qdisc::set_raw(OUT, ROOT, &options).unwrap_err().to_string();
        assert!(refused.contains("the adaptive variant goes without target, delta and x"), "{refused}");
    }
    for (kind, value) in [(6, u32s(5_000)), (9, u32s(SHARE_ONE)), (10, u32s(2 * SHARE_ONE)), (11, vec![0])] {
        let options = qdisc::raw_options(&[(13, &[2]), (kind, &value)]);
        let refused = qdisc::set_raw(OUT, ROOT, &options).unwrap_err().to_string();
        assert!(refused.contains("the l4s variant goes without target"), "{refused}");
    }
    assert_eq!(only().settings, after);
    // What is not given stays.
    qdisc::set_raw(OUT, ROOT, &qdisc::raw_options(&[(4, &u32s(9))])).unwrap();
    assert_eq!(only().settings, QdiscSettings { buffer: Buffer::Packets(9), ..after });
    remove();
}

/// The fields with which the core lets packets leave that all wait when the link begins to serve them.
fn by_core(frames: &[Frame], mbps: u64, proxied: bool, variant: &str) -> Vec<Ecn> {
    let rate = Rate::from_mbps(mbps);
    let encoding = if proxied { "proxied" } else { "abc" };
    let config = Config::from_options([("encoding", encoding), ("variant", variant)]).unwrap();
    let place = Place { limit: Limit::Packets(10_000), nominal: rate, random: Random::stream(1, "queue") };
    let mut core: Abc<Sample> = Abc::new(&config, &place);
    let sent = |(frame, id): (&Frame, u64)| Sample::abc(id, frame.bytes().len() as u32, frame.ecn());
    served(&mut core, frames.iter().zip(0..).map(sent), rate)
}

/// The fields with which a queue lets packets leave that all wait when a link of this rate begins to serve
/// them.
fn served(core: &mut impl Queue<Sample>, sent: impl Iterator<Item = Sample>, rate: Rate) -> Vec<Ecn> {
    let (mut link, mut drops) = (Fixed(rate), Vec::new());
    for packet in sent {
        core.enqueue(Time::ZERO, packet, &mut link, &mut drops);
    }
    let mut now = Time::ZERO + CoreDuration::from_secs(1);
    let mut fields = Vec::new();
    while let Some(left) = core.dequeue(now, &mut link, &mut drops) {
        now += rate.time_for(Bytes(u64::from(left.packet.size)));
        fields.push(left.packet.ecn);
    }
    fields
}

/// Thousands of packets of both versions, all sizes and all fields wait behind a link that is then set free:
/// the queue drains from far above the target to nothing, and each packet's time of leaving is known.
fn marks_are_the_cores() {
    const MBPS: u64 = 60;
    let (out, into) = (Port::out(OUT), Port::into(IN));
    for proxied in [false, true] {
        let mut random = Random::stream(7, "frames");
        let settings = QdiscSettings { proxied, ..shaped(MBPS) };
        qdisc::set(OUT, ROOT, &held(&settings)).unwrap();
        // It leaves at once, and its Not-ECT field takes no part in the marking.
        let first = Frame::new(0, Ecn::NotEct, false, false, 100);
        out.send(&first);
        assert_eq!(into.receive().bytes(), first.bytes());
        let frames: Vec<Frame> = (1..3000)
            .map(|id| {
                let draw = random.exponential();
                let ecn = match (draw * 1000.0) as u64 % 20 {
                    0 => Ecn::NotEct,
                    1 => Ecn::Ce,
                    2..=4 => Ecn::Ect0,
                    _ => Ecn::Ect1,
                };
                let size = 70 + (random.exponential() * 500.0).min(1400.0) as usize;
                Frame::new(id, ecn, random.chance(0.5), random.chance(0.1), size)
            })
            .collect();
        for frame in &frames {
            out.send(frame);
        }
        assert_eq!(counts().waiting_packets as usize, frames.len());
        std::thread::sleep(Duration::from_millis(100));
        qdisc::set(OUT, ROOT, &settings).unwrap();

        let expected = by_core(&frames, MBPS, proxied, "paper");
        let accelerate = |ecn: Ecn| ecn == Ecn::Ect1 || (proxied && ecn == Ecn::Ect0);
        let (mut by_core, mut by_module, mut differ) = (0_u64, 0_u64, 0_u64);
        let mut turned: BTreeMap<(u8, u8), u64> = BTreeMap::new();
        for (sent, core) in frames.iter().zip(expected) {
            let left = into.receive();
            let brake = if proxied { Ecn::Ce } else { Ecn::Ect0 };
            assert!(left.ecn() == sent.ecn() || (accelerate(sent.ecn()) && left.ecn() == brake));
            // Nothing else is touched, and an IPv4 header's checksum is right.
            let unchanged = left.bytes() == sent.received_with(left.ecn()).bytes();
            assert!(unchanged, "{:?} came as {:?}", &sent.bytes()[..60], &left.bytes()[..60]);
            by_core += u64::from(accelerate(core));
            by_module += u64::from(accelerate(left.ecn()));
            differ += u64::from(core != left.ecn());
            *turned.entry((sent.ecn() as u8, left.ecn() as u8)).or_default() += 1;
        }
        let numbers = format!(
            "{} packets, proxied {proxied}: {by_core} accelerates by the core, {by_module} by the module, {differ} differ; {turned:?}",
            frames.len()
        );
        println!("  {numbers}");
        assert!(by_core > 500, "{numbers}");
        assert!(by_core.abs_diff(by_module) * 1000 <= by_core, "{numbers}");
        let counts = counts();
        assert_eq!(counts.accelerates, by_module);
        assert_eq!(counts.accelerates + counts.turned + counts.brakes + counts.ce + counts.others, 3000);
        assert_eq!((counts.packets, counts.drops, counts.unwritten, counts.waiting_packets), (3000, 0, 0, 0));
        // Algorithm 1: what accelerates took its token from the sum of f.
        assert!(by_module as f64 <= counts.shares, "{} of {}", by_module, counts.shares);
        assert!(by_module as f64 + 6.0 > counts.shares, "{} of {}", by_module, counts.shares);
        remove();
    }
}

/// The same by the rule that tunes itself, which begins as the link is set free. Its bins begin when the
/// machine's clock has them begin, not the core's, so a few marks fall otherwise.
fn marks_that_tune_themselves_are_the_cores() {
    const MBPS: u64 = 60;
    let (out, into) = (Port::out(OUT), Port::into(IN));
    let paper = shaped(MBPS);
    let settings = QdiscSettings { variant: Variant::Adaptive, eta: 1.0, ..paper.clone() };
    qdisc::set(OUT, ROOT, &held(&paper)).unwrap();
    out.send(&Frame::new(0, Ecn::NotEct, false, false, 100));
    into.receive();
    let frames: Vec<Frame> = (1..2000).map(|id| Frame::new(id, Ecn::Ect1, false, false, 1000)).collect();
    for frame in &frames {
        out.send(frame);
    }
    std::thread::sleep(Duration::from_millis(100));
    qdisc::set(OUT, ROOT, &settings).unwrap();
    let expected = by_core(&frames, MBPS, false, "adaptive");
    let by_core = expected.iter().filter(|ecn| **ecn == Ecn::Ect1).count();
    let by_module = frames.iter().filter(|_| into.receive().ecn() == Ecn::Ect1).count();
    let counts = counts();
    println!(
        "  {} packets: {by_core} accelerates by the core, {by_module} by the module, loop {:?} ms, error {:?} bytes",
        frames.len(),
        counts.loop_delay_ms,
        counts.forecast_error_bytes
    );
    // Its least share, a sixteenth, at the beginning, and more in the end.
    assert!((150..1000).contains(&by_core), "{by_core}");
    assert!(by_core.abs_diff(by_module) * 50 <= by_core, "{by_core}, {by_module}");
    // Lags are compared after 400 ms, and they have left in 267.
    assert_eq!(counts.loop_delay_ms, Some(100.0));
    // Back to the paper's rule, which shows no loop.
    qdisc::set(OUT, ROOT, &paper).unwrap();
    assert_eq!(qdisc::list(None).unwrap()[0].counts.loop_delay_ms, None);
    remove();
}

/// The same for senders of L4S, of which the module knows as many marks as the core: of all that wait those
/// that leave 1 ms of the link and two packets behind them.
fn marks_for_l4s_are_the_cores() {
    const MBPS: u64 = 60;
    let (out, into) = (Port::out(OUT), Port::into(IN));
    let settings = QdiscSettings { variant: Variant::L4s, eta: 1.0, ..shaped(MBPS) };
    qdisc::set(OUT, ROOT, &held(&shaped(MBPS))).unwrap();
    out.send(&Frame::new(0, Ecn::NotEct, false, false, 100));
    into.receive();
    let frames: Vec<Frame> =
        (1..1000).map(|id| Frame::new(id, Ecn::Ect1, id % 2 == 0, false, 1000)).collect();
    for frame in &frames {
        out.send(frame);
    }
    std::thread::sleep(Duration::from_millis(100));
    qdisc::set(OUT, ROOT, &settings).unwrap();
    let rate = Rate::from_mbps(MBPS);
    let place = Place { limit: Limit::Packets(10_000), nominal: rate, random: Random::stream(1, "queue") };
    let mut core: AbcL4s<Sample> = AbcL4s::new(&abc_l4s::Config::default(), &place);
    let sent = |id, frame: &Frame| {
        let size = frame.bytes().len() as u32;
        Sample { ecn: Ecn::Ect1, encoding: Encoding::L4s, ..Sample::new(id, size) }
    };
    let expected = served(&mut core, frames.iter().zip(0..).map(|(frame, id)| sent(id, frame)), rate);
    let by_core = expected.iter().filter(|ecn| **ecn == Ecn::Ce).count();
    let received: Vec<Ecn> = frames.iter().map(|_| into.receive().ecn()).collect();
    let by_module = received.iter().filter(|ecn| **ecn == Ecn::Ce).count();
    println!("  {} packets: {by_core} marked CE by the core, {by_module} by the module", frames.len());
    assert!(by_core > 900 && by_core < frames.len(), "{by_core}");
    assert!(by_core.abs_diff(by_module) * 50 <= by_core, "{by_core}, {by_module}");
    // What left while all were held back left by the paper's rule, which turns ECT(1) into ECT(0).
    let turned = received.iter().filter(|ecn| **ecn != Ecn::Ect1).count();
    assert!(turned - by_module <= 1, "{turned}, {by_module}");
    assert_eq!(counts().turned, turned as u64);
    assert_eq!(counts().loop_delay_ms, None);
    remove();
}

fn the_delay_is_the_packets_or_the_queues() {
    let (out, into) = (Port::out(OUT), Port::into(IN));
    for sojourn in [false, true] {
        let settings = QdiscSettings { sojourn, ..shaped(24) };
        qdisc::set(OUT, ROOT, &held(&settings)).unwrap();
        for id in 0..31 {
            out.send(&Frame::new(id, Ecn::Ect1, false, false, 1000));
        }
        into.receive();
        std::thread::sleep(Duration::from_millis(300));
        qdisc::set(OUT, ROOT, &settings).unwrap();
        // 10 ms wait behind the first, 300 ms have they waited.
        let accelerates = (1..31).filter(|_| into.receive().ecn() == Ecn::Ect1).count();
        println!("  x by sojourn {sojourn}: {accelerates} of 30 accelerate");
        assert!(if sojourn { accelerates == 0 } else { accelerates > 10 }, "{accelerates}");
        let counts = counts();
        assert!(counts.sojourn_max_ms >= 290.0, "{counts:?}");
        remove();
    }
}

fn what_finds_no_room_is_dropped() {
    let (out, into) = (Port::out(OUT), Port::into(IN));
    for (buffer, stay) in [(Buffer::Packets(10), 10), (Buffer::Bytes(5_999), 5)] {
        let settings = QdiscSettings { buffer, ..shaped(24) };
        qdisc::set(OUT, ROOT, &held(&settings)).unwrap();
        for id in 0..31 {
            out.send(&Frame::new(id, Ecn::Ect1, false, false, 1000));
        }
        let before = counts();
        assert_eq!(
            (before.packets, before.waiting_packets, before.drops),
            (1, stay, 30 - stay),
            "{buffer:?}"
        );
        assert_eq!(before.waiting_bytes, stay * 1000);
        // A smaller buffer drops what is too much at once.
        qdisc::set(OUT, ROOT, &held(&QdiscSettings { buffer: Buffer::Packets(3), ..settings.clone() }))
            .unwrap();
        let after = counts();
        // The change of the rate's settings sets the link free for one packet.
        let left = after.packets - before.packets;
        assert_eq!((after.waiting_packets + left, after.drops), (3, 30 - 3), "{buffer:?}");
        assert_eq!(into.receive().id(), 0);
        qdisc::set(OUT, ROOT, &settings).unwrap();
        for _ in 0..3 {
            into.receive();
        }
        remove();
    }
}

fn no_faster_than_the_rate() {
    let (out, into) = (Port::out(OUT), Port::into(IN));
    qdisc::set(OUT, ROOT, &shaped(12)).unwrap();
    let begin = Instant::now();
    for id in 0..301 {
        out.send(&Frame::new(id, Ecn::Ect1, false, false, 1000));
    }
    for _ in 0..301 {
        into.receive();
    }
    // The first goes at once, the others take 200 ms.
    let took = begin.elapsed().as_secs_f64();
    println!("  300 packets of 1000 bytes at 12 Mbit/s took {:.1} ms", took * 1e3);
    assert!((0.200..0.300).contains(&took), "{took}");
    let counts = counts();
    // 30 packets in a window of 20 ms, or 31.
    assert!((12_000_000..=12_400_000).contains(&counts.measured_bps), "{counts:?}");
    remove();
}

/// Settings that are given again while packets wait set the first of them free, and no others.
fn settings_given_again_send_nothing_early() {
    const TIMES: u32 = 10;
    let (out, into) = (Port::out(OUT), Port::into(IN));
    let settings = shaped(12);
    qdisc::set(OUT, ROOT, &settings).unwrap();
    let begin = Instant::now();
    for id in 0..301 {
        out.send(&Frame::new(id, Ecn::Ect1, false, false, 1000));
    }
    for _ in 0..TIMES {
        std::thread::sleep(Duration::from_millis(5));
        qdisc::set(OUT, ROOT, &settings).unwrap();
    }
    let counts = counts();
    let took = begin.elapsed().as_secs_f64();
    println!("  set {TIMES} times in {:.1} ms: {} packets left", took * 1e3, counts.packets);
    assert!(counts.waiting_packets > 0, "{counts:?}");
    // One at once, 1500 each second, and one for each time.
    let most = 1.0 + took * 1500.0 + f64::from(TIMES);
    assert!(f64::from(counts.packets) <= most, "{} of {most}: {counts:?}", counts.packets);
    // The window is not forgotten: 30 packets of a backlog in 20 ms, and at most five that were set free.
    assert!((12_000_000..=14_400_000).contains(&counts.measured_bps), "{counts:?}");
    for _ in 0..301 {
        into.receive();
    }
    remove();
}

fn the_rate_of_a_class_is_measured() {
    let (out, into) = (Port::out(OUT), Port::into(IN));
    done(&format!("tc qdisc add dev {OUT} root handle 1: htb default 10"));
    done(&format!("tc class add dev {OUT} parent 1: classid 1:10 htb rate 12mbit burst 3000 cburst 3000"));
    let class = 0x1_0010;
    qdisc::set(OUT, class, &QdiscSettings::default()).unwrap();
    assert_eq!((counts().capacity_bps, only().parent), (0, class));
    for id in 0..200 {
        out.send(&Frame::new(id, Ecn::Ect1, false, false, 1000));
    }
    let accelerates = (0..200).filter(|_| into.receive().ecn() == Ecn::Ect1).count();
    let measured = counts();
    println!(
        "  under htb at 12 Mbit/s: measured {:.3} Mbit/s, {accelerates} of 200 accelerate, cr {:.3} Mbit/s",
        measured.capacity_bps as f64 / 1e6,
        measured.measured_bps as f64 / 1e6
    );
    assert!((11_500_000..=12_500_000).contains(&measured.capacity_bps), "{measured:?}");
    // The same where the rate is told, and under tbf.
    let told = QdiscSettings { rate_bps: Some(12_000_000), shape: false, ..QdiscSettings::default() };
    qdisc::set(OUT, class, &told).unwrap();
    assert_eq!(counts().capacity_bps, 12_000_000);
    done(&format!("tc qdisc del dev {OUT} root"));
    done(&format!("tc qdisc add dev {OUT} root handle 1: tbf rate 12mbit burst 3000 limit 1000000"));
    qdisc::set(OUT, 0x1_0001, &QdiscSettings::default()).unwrap();
    for id in 0..200 {
        out.send(&Frame::new(id, Ecn::Ect1, false, false, 1000));
    }
    for id in 0..200 {
        assert_eq!(into.receive().id(), id);
    }
    let measured = counts();
    println!("  under tbf at 12 Mbit/s: measured {:.3} Mbit/s", measured.capacity_bps as f64 / 1e6);
    assert!((11_500_000..=12_500_000).contains(&measured.capacity_bps), "{measured:?}");
    done(&format!("tc qdisc del dev {OUT} root"));
}

/// TCP hands over trains of segments; each leaves alone, and the parents' counts come out even.
fn segments_are_marked_one_by_one() {
    done("ip netns add far");
    done(&format!("ip link set {IN} netns far"));
    done(&format!("ip -n far addr add 10.9.0.2/24 dev {IN}"));
    done(&format!("ip -n far link set {IN} up"));
    done(&format!("ip addr add 10.9.0.1/24 dev {OUT}"));
    done(&format!("tc qdisc add dev {OUT} root handle 1: htb default 10"));
    done(&format!("tc class add dev {OUT} parent 1: classid 1:10 htb rate 50mbit"));
    // Less than the two trains that a connection may have waiting below it, so that some segments find no
    // room.
    qdisc::set(OUT, 0x1_0010, &QdiscSettings { buffer: Buffer::Packets(8), ..QdiscSettings::default() })
        .unwrap();
    const BYTES: usize = 3_000_000;
    network::write_to_far(BYTES);
    let counts = counts();
    println!("  {BYTES} bytes of TCP left in {} packets, {} dropped", counts.packets, counts.drops);
    assert!(counts.packets as usize >= BYTES / 1448, "{counts:?}");
    let marked = counts.accelerates + counts.turned + counts.brakes + counts.ce + counts.others;
    assert_eq!(marked, u64::from(counts.packets), "{counts:?}");
    assert!(counts.drops > 0, "{counts:?}");
    assert_eq!((counts.waiting_packets, counts.waiting_bytes), (0, 0));
    // In words, because tc's JSON of a qdisc that it cannot parse is none.
    let parents = done(&format!("tc -s qdisc show dev {OUT}"));
    assert_eq!(parents.matches(" backlog 0b 0p ").count(), 2, "{parents}");
    done(&format!("ip link del {OUT}"));
    done("ip netns del far");
    network::pair(OUT, IN);
}

fn the_command() {
    let command = |line: &str| run(&format!("brakelight router qdisc {line}"));
    command(&format!("set {OUT} --rate 12Mbps --buffer 100pkt --encoding proxied --x sojourn --target 20ms"))
        .unwrap();
    let settings = only().settings;
    assert_eq!((settings.rate_bps, settings.buffer), (Some(12_000_000), Buffer::Packets(100)));
    assert!(settings.proxied && settings.sojourn && settings.target == Duration::from_millis(20));
    let (out, into) = (Port::out(OUT), Port::into(IN));
    for id in 0..20 {
        out.send(&Frame::new(id, Ecn::Ect1, false, false, 1000));
    }
    for _ in 0..20 {
        into.receive();
    }
    let shown: Value = serde_json::from_str(&command(&format!("show {OUT} --format json")).unwrap()).unwrap();
    assert_eq!(shown["qdiscs"][0]["counts"]["packets"], 20);
    assert_eq!(shown["qdiscs"][0]["settings"]["encoding"], "proxied");
    println!("{}", command("show").unwrap());
    for id in 0..100 {
        out.send(&Frame::new(id, Ecn::Ect1, false, false, 1000));
    }
    let watched = command(&format!("watch {OUT} --interval 40ms --count 2")).unwrap();
    println!("{watched}");
    assert_eq!(watched.lines().count(), 3, "{watched}");
    command(&format!("set {OUT} --rate 12Mbps --variant adaptive")).unwrap();
    for id in 0..100 {
        out.send(&Frame::new(id, Ecn::Ect1, false, false, 1000));
    }
    let watched = command(&format!("watch {OUT} --interval 40ms --count 2")).unwrap();
    println!("{}{watched}", command("show").unwrap());
    assert!(watched.lines().next().unwrap().ends_with("loop ms") && watched.contains("  100\n"), "{watched}");
    command(&format!("set {OUT} --rate 12Mbps --variant l4s")).unwrap();
    let shown = command("show").unwrap();
    assert!(shown.contains(", l4s") && shown.contains("turned into CE"), "{shown}");
    let refused = command(&format!("set {OUT} --rate 12Mbps --variant l4s --eta 0.9")).unwrap_err();
    assert!(refused.contains("--eta belongs to ABC's marks"), "{refused}");
    let refused = command(&format!("set {OUT} --rate 1kbps")).unwrap_err();
    assert!(refused.contains("the rate must be 0 (measured) or from 8 kbit/s"), "{refused}");
    let refused = command(&format!("remove {IN}")).unwrap_err();
    assert!(refused.starts_with("error: "), "{refused}");
    let refused = command("set nowhere0").unwrap_err();
    assert!(refused.contains("there is no device `nowhere0`"), "{refused}");
    command(&format!("remove {OUT}")).unwrap();
    assert_eq!(command("show").unwrap(), "");
}

fn a_device_goes_with_what_waits() {
    qdisc::set(OUT, ROOT, &held(&shaped(1))).unwrap();
    let out = Port::out(OUT);
    for id in 0..100 {
        out.send(&Frame::new(id, Ecn::Ect1, false, false, 1000));
    }
    // Down and up again: what waited is gone, the settings are not.
    done(&format!("ip link set {OUT} down"));
    done(&format!("ip link set {OUT} up"));
    assert_eq!((counts().waiting_packets, only().settings.rate_bps), (0, Some(8_000)));
    for id in 0..100 {
        out.send(&Frame::new(id, Ecn::Ect1, false, false, 1000));
    }
    done(&format!("tc qdisc replace dev {OUT} root pfifo"));
    assert_eq!(qdisc::list(None).unwrap(), []);
    qdisc::set(OUT, ROOT, &held(&shaped(1))).unwrap();
    for id in 0..100 {
        out.send(&Frame::new(id, Ecn::Ect1, false, false, 1000));
    }
    assert!(counts().waiting_packets > 90);
    done(&format!("ip link del {OUT}"));
    assert_eq!(qdisc::list(None).unwrap(), []);
    network::pair(OUT, IN);
}

fn a_thousand_times() {
    let out = Port::out(OUT);
    let before = network::free_kilobytes();
    for _ in 0..1000 {
        qdisc::set(OUT, ROOT, &held(&shaped(1))).unwrap();
        for id in 0..10 {
            out.send(&Frame::new(id, Ecn::Ect1, false, false, 1000));
        }
        qdisc::remove(OUT, ROOT).unwrap();
    }
    let lost = before.saturating_sub(network::free_kilobytes());
    println!("  after a thousand times {lost} kB less are free");
    // Each had 64 kB for its window, and some 20 kB of packets.
    assert!(lost < 8_000, "{lost} kB");
}

fn and_out() {
    network::unload("sch_abc").unwrap();
    let refused = qdisc::set(OUT, ROOT, &QdiscSettings::default()).unwrap_err();
    assert!(refused.to_string().contains("the module sch_abc is not installed"), "{refused}");
    assert!(!fs::read_to_string("/proc/modules").unwrap().contains("sch_abc"));
}
