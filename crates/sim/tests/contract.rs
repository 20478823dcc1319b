//! The modelled hosts keep the contract with every controller, whatever the path and the application do: see
//! `brakelight_core::controller`, "The contract". `PROPTEST_CASES=N` tries N others, drawn anew.

use std::fmt::Write;

use brakelight_core::endpoint::Endpoint;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_registry::{CONTROLLERS, ControllerConfig};
use brakelight_scenario::file::read;
use brakelight_scenario::scenario::Scenario;
use brakelight_sim::Traces;
use brakelight_sim::host::{FlowConfig, FlowHost};
use brakelight_sim::packet::SimPacket;
use brakelight_sim::report::{FlowCounters, Reporting};
use brakelight_sim::simulation::run_with;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// What happens to the packets, and what the application does.
#[derive(Clone, Debug)]
struct Roughness {
    seed: u64,
    rtt_ms: u32,
    rate_kbps: u32,
    buffer: u32,
    /// A link that stands still, for so long.
    outage_ms: u32,
    /// A router that restarts and loses what waits.
    restart_ms: Option<u32>,
    loss: f64,
    burst_loss: bool,
    reorder: Option<(f64, u32)>,
    duplicate: f64,
    ack_loss: f64,
    ack_thin: u32,
    /// A route that becomes longer by up to this, for a while: timeouts that were none.
    spike_ms: u32,
    ack_every: u32,
    /// When the path's MTU changes, in milliseconds, and the payload of a packet from then on.
    mtu: Option<(u32, u32)>,
    traffic: &'static str,
    flows: u32,
    stop: bool,
}

fn roughness() -> impl Strategy<Value = Roughness> {
    let traffic = prop_oneof![
        3 => Just("backlogged"),
        1 => Just("{ kind = \"size\", size = \"200kB\" }"),
        1 => Just("{ kind = \"on-off\", on = \"700ms\", off = \"900ms\", random = true }"),
        1 => Just("{ kind = \"rate-limited\", rate = \"600kbps\" }"),
        1 => Just("{ kind = \"request-response\", request = \"300B\", response = \"60kB\", think = \"250ms\" }"),
        1 => Just("{ kind = \"short-flows\", per_second = 4, size = \"30kB\" }"),
        1 => Just("\"video\""),
    ];
    let path = (
        any::<u64>(),
        5_u32..300,
        200_u32..30_000,
        3_u32..400,
        prop_oneof![Just(0), 100_u32..4_000],
        prop::option::weighted(0.2, 50_u32..1_500),
    );
    let faults = (
        prop_oneof![3 => Just(0.0), 1 => 0.0..0.2],
        prop::bool::weighted(0.2),
        prop::option::weighted(0.3, (0.0..0.3, 1_u32..120)),
        prop_oneof![3 => Just(0.0), 1 => 0.0..0.2],
        prop_oneof![2 => Just(0.0), 1 => 0.0..0.7],
        1_u32..4,
        prop_oneof![2 => Just(0), 1 => 50_u32..2_500],
    );
    let mtu = prop::option::weighted(0.3, (0_u32..5_000, 500_u32..1_460));
    let hosts = (1_u32..5, mtu, traffic, 1_u32..3, prop::bool::weighted(0.2));
    (path, faults, hosts).prop_map(|(path, faults, hosts)| {
        let (seed, rtt_ms, rate_kbps, buffer, outage_ms, restart_ms) = path;
        let (loss, burst_loss, reorder, duplicate, ack_loss, ack_thin, spike_ms) = faults;
        let (ack_every, mtu, traffic, flows, stop) = hosts;
        Roughness {
            seed: seed >> 1,
            rtt_ms,
            rate_kbps,
            buffer,
            outage_ms,
            restart_ms,
            loss,
            burst_loss,
            reorder,
            duplicate,
            ack_loss,
            ack_thin,
            spike_ms,
            ack_every,
            mtu,
            traffic,
            flows,
            stop,
        }
    })
}

/// Six seconds of it, for one controller on one host.
fn scenario(rough: &Roughness, controller: &str, queue: &str, host: &str) -> Scenario {
    let mut text = format!("duration = \"6s\"\nseed = {}\n[[link]]\nname = \"link\"\n", rough.seed);
    match rough.outage_ms {
        0 => writeln!(text, "rate = \"{}kbps\"", rough.rate_kbps),
        outage => {
            let rate = rough.rate_kbps;
            writeln!(
                text,
                "steps = [[\"1500ms\", \"{rate}kbps\"], [\"{outage}ms\", \"1kbps\"], [\"1s\", \"{rate}kbps\"]]"
            )
        }
    }
    .unwrap();
    writeln!(text, "buffer = \"{}pkt\"\nqueue = \"{queue}\"", rough.buffer).unwrap();
    if let Some(down) = rough.restart_ms {
        writeln!(text, "restarts = [{{ at = \"2s\", down = \"{down}ms\", waiting = \"lost\" }}]").unwrap();
    }
    let mut path = vec!["link".to_owned()];
    let mut add = |wanted: bool, element: String| {
        if wanted {
            path.push(element);
        }
    };
    add(rough.loss > 0.0, format!("loss:rate={:.4}", rough.loss));
    add(rough.burst_loss, "gilbert-elliott:p=0.01,r=0.2".into());
    if let Some((rate, hold)) = rough.reorder {
        add(true, format!("reorder:rate={rate:.4},hold={hold}ms"));
    }
    add(rough.duplicate > 0.0, format!("duplicate:rate={:.4}", rough.duplicate));
    let spike = format!("jitter:mean={0}ms,spread={0}ms,max=6s,hold=600ms", rough.spike_ms / 2);
    add(rough.spike_ms > 0, spike);
    let mut reverse = Vec::new();
    if rough.ack_loss > 0.0 {
        reverse.push(format!("ack-loss:rate={:.4}", rough.ack_loss));
    }
    if rough.ack_thin > 1 {
        reverse.push(format!("ack-thin:every={}", rough.ack_thin));
    }
    let Roughness { rtt_ms, ack_every, traffic, flows, .. } = rough;
    let traffic =
        if traffic.starts_with(['{', '"']) { (*traffic).to_owned() } else { format!("\"{traffic}\"") };
    write!(
        text,
        "[[flow]]\ncontroller = \"{controller}\"\nhost = \"{host}\"\nrtt = \"{rtt_ms}ms\"\npath = {path:?}\n\
         reverse = {reverse:?}\nack_every = {ack_every}\ntraffic = {traffic}\ncount = {flows}\n"
    )
    .unwrap();
    if rough.stop {
        text.push_str("stop = \"4s\"\n");
    }
    read("contract.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A host on a path whose MTU changes once.
struct Host {
    inner: FlowHost,
    change: Option<(Time, Bytes)>,
}

impl Host {
    fn new(config: FlowConfig, mtu: Option<(u32, u32)>) -> Self {
        let change = mtu.map(|(at, mss)| (Time::from_millis(at.into()), Bytes(mss.into())));
        Host { inner: FlowHost::new(FlowConfig { check_contract: true, ..config }), change }
    }
}

impl Endpoint<SimPacket> for Host {
    fn accept(&mut self, now: Time, packet: SimPacket) {
        self.inner.accept(now, packet);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<SimPacket> {
        if let Some((_, mss)) = self.change.take_if(|(at, _)| *at <= now) {
            self.inner.set_mss(mss);
        }
        self.inner.poll_transmit(now)
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.inner.next_wakeup()
    }

    fn release(&mut self, packet: SimPacket) {
        self.inner.release(packet);
    }
}

impl Reporting for Host {
    const HOST: &'static str = FlowHost::HOST;

    fn counters(&self) -> FlowCounters {
        Reporting::counters(&self.inner)
    }

    fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.inner.take_rtt_sample()
    }

    fn cwnd(&self) -> Bytes {
        self.inner.cwnd()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.inner.inspect(visit);
    }

    fn application(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        self.inner.application(now, visit);
    }
}

/// Runs it with every host held to the contract, which panics where it is broken.
fn hold(scenario: &Scenario, rough: &Roughness) {
    run_with(scenario, &Traces::default(), |config| Ok(Host::new(config, rough.mtu)))
        .expect("a sound scenario");
}

/// How many scenarios to try, if that is said.
fn cases() -> Option<u32> {
    std::env::var("PROPTEST_CASES").ok()?.parse().ok()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases().unwrap_or(24),
        // The same scenarios in every run of the tests; others where somebody asks for more of them.
        rng_seed: if cases().is_some() { RngSeed::Random } else { RngSeed::Fixed(20_261_122) },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_modelled_hosts_keep_the_contract_with_every_controller(rough in roughness()) {
        for entry in CONTROLLERS {
            let config = ControllerConfig::new(entry.name, &[]).unwrap();
            let queue = config.needs().queue.unwrap_or("droptail");
            for host in ["tcp", "quic"] {
                hold(&scenario(&rough, entry.name, queue, host), &rough);
            }
        }
    }
}

/// A timer declares the last packets lost within an episode, nothing is sent again, and the application
/// pauses: no ACK lists them before the flow restarts.
#[test]
fn losses_that_no_ack_lists_are_told_before_a_restart() {
    let rough = Roughness {
        seed: 1_065_653_017_814_969_427,
        rtt_ms: 39,
        rate_kbps: 17_741,
        buffer: 9,
        outage_ms: 749,
        restart_ms: None,
        loss: 0.0,
        burst_loss: false,
        reorder: Some((0.2121391653332592, 35)),
        duplicate: 0.115_381_156_456_131_37,
        ack_loss: 0.188_414_758_501_360_39,
        ack_thin: 3,
        spike_ms: 0,
        ack_every: 1,
        mtu: None,
        traffic: "{ kind = \"on-off\", on = \"700ms\", off = \"900ms\", random = true }",
        flows: 1,
        stop: false,
    };
    for entry in CONTROLLERS {
        let queue = ControllerConfig::new(entry.name, &[]).unwrap().needs().queue.unwrap_or("droptail");
        hold(&scenario(&rough, entry.name, queue, "quic"), &rough);
    }
}

/// The check must change nothing, or it would hold something else to the contract than what runs.
#[test]
fn a_run_that_is_held_to_the_contract_has_the_same_outcome() {
    let rough = Roughness {
        seed: 5,
        rtt_ms: 60,
        rate_kbps: 8_000,
        buffer: 60,
        outage_ms: 700,
        restart_ms: None,
        loss: 0.01,
        burst_loss: false,
        reorder: None,
        duplicate: 0.0,
        ack_loss: 0.1,
        ack_thin: 1,
        spike_ms: 0,
        ack_every: 2,
        mtu: None,
        traffic: "backlogged",
        flows: 2,
        stop: false,
    };
    for (controller, queue) in [("cubic", "droptail"), ("bbr3", "droptail"), ("abc", "abc")] {
        let scenario = scenario(&rough, controller, queue, "tcp");
        let traces = Traces::default();
        let held = |config| Ok(FlowHost::new(FlowConfig { check_contract: true, ..config }));
        let plain = brakelight_sim::run(&scenario, &traces).unwrap();
        let checked = run_with(&scenario, &traces, held).unwrap();
        assert_eq!(format!("{plain:?}"), format!("{checked:?}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// A host lists no packets for Cubic, which does not read them. Where it is held to the contract it
    /// lists them.
    #[test]
    fn a_controller_that_reads_no_list_does_the_same_with_one(rough in roughness()) {
        let scenario = scenario(&rough, "cubic", "droptail", "tcp");
        let traces = Traces::default();
        let held = |config| Ok(FlowHost::new(FlowConfig { check_contract: true, ..config }));
        let plain = brakelight_sim::run(&scenario, &traces).unwrap();
        let listed = run_with(&scenario, &traces, held).unwrap();
        prop_assert_eq!(format!("{plain:?}"), format!("{listed:?}"));
    }
}
