//! What the tables say of an algorithm, held against what it does.

use brakelight_core::controller::{Connection, Controller, SendEvent};
use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::packet::{Header, HeaderKind};
use brakelight_core::queue::{Drops, LinkView, Place, Queue};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_registry::{
    CONTROLLERS, Carries, ControllerConfig, DEFAULT_CONTROLLER, DEFAULT_QUEUE, QUEUES, QueueConfig, Routers,
};
use brakelight_senders::controller::abc;
use brakelight_testkit::Sample;

fn controllers() -> impl Iterator<Item = (&'static str, ControllerConfig)> {
    CONTROLLERS.iter().map(|entry| (entry.name, ControllerConfig::new(entry.name, &[]).unwrap()))
}

fn queues() -> impl Iterator<Item = (&'static str, QueueConfig)> {
    QUEUES.iter().map(|entry| (entry.name, QueueConfig::new(entry.name, &[]).unwrap()))
}

fn connection() -> Connection {
    Connection {
        mss: Bytes(1448),
        overhead: Bytes(52),
        initial_window: Bytes(14_480),
        now: Time::ZERO,
        random: Random::stream(0, "table"),
    }
}

fn first_header(config: &ControllerConfig) -> Header {
    let event = SendEvent {
        now: Time::ZERO,
        size: Bytes(1448),
        number: 0,
        retransmission: false,
        replaces: None,
        inflight: Bytes::ZERO,
        app_limited: false,
        srtt: None,
    };
    config.build(&connection()).on_send(&event).header
}

#[test]
fn the_defaults_are_there() {
    assert!(ControllerConfig::new(DEFAULT_CONTROLLER, &[]).is_ok());
    assert!(QueueConfig::new(DEFAULT_QUEUE, &[]).is_ok());
}

#[test]
fn what_a_controller_brings_exists_and_speaks_its_encoding() {
    for (name, config) in controllers() {
        assert_eq!(config.feedback().name(), config.needs().feedback, "{name}");
        let encoding = config.build(&connection()).encoding();
        if let Some(queue) = config.needs().queue {
            let queue = QueueConfig::new(queue, &[]).unwrap();
            assert!(queue.speaks(encoding), "{name} on {}", queue.name());
            let own = queue.own_encoding().or(queue.traits().writes.map(|_| Encoding::Explicit));
            assert_eq!(own, Some(encoding), "{name} on {}", queue.name());
        }
    }
}

#[test]
fn a_controller_sends_the_header_that_it_reads_and_its_routers_write() {
    for (name, config) in controllers() {
        let needs = config.needs();
        assert_eq!(first_header(&config).kind(), needs.reads, "{name}");
        assert_eq!(needs.reads.is_some(), config.feedback().carries() == Carries::Header, "{name}");
        assert!(needs.reads.is_some() || needs.routers == Routers::Any, "{name}");
        if let Some(queue) = needs.queue {
            assert_eq!(QueueConfig::new(queue, &[]).unwrap().traits().writes, needs.reads, "{name}");
        }
    }
}

#[test]
fn queues_that_need_a_header_are_told_from_those_that_need_two_bits_or_none() {
    let writing = queues().filter(|(_, queue)| queue.traits().writes.is_some()).map(|(name, _)| name);
    assert_eq!(writing.collect::<Vec<_>>(), ["eabc", "rcp", "xcp", "xcpw", "mlcp", "vcp"]);
}

#[test]
fn a_receiver_says_when_packets_arrived_where_its_controller_must_be_told() {
    for (name, config) in controllers() {
        let told = config.feedback().carries() == Carries::ReceiveTimes;
        assert_eq!(told, config.needs().receive_times, "{name}");
    }
    for other in abc::Other::ALL {
        let config = ControllerConfig::new("abc", &[("other", other.name())]).unwrap();
        let told = config.feedback().carries() == Carries::ReceiveTimes;
        assert_eq!(told, other.needs().receive_times, "{}", other.name());
    }
}

/// In ABC's place behind ABC's routers a second window gets neither headers nor marks of another scheme.
#[test]
fn second_windows_need_no_router_and_survive_without_marks() {
    for other in abc::Other::ALL {
        let config = ControllerConfig::new(other.name(), &[]).unwrap();
        assert_eq!((config.name(), config.needs()), (other.name(), other.needs()));
        assert_eq!(config.needs().queue, None, "{}", other.name());
        assert!(config.survives_without_marks(), "{}", other.name());
        let encoding = config.build(&connection()).encoding();
        assert!(matches!(encoding, Encoding::None | Encoding::Classic), "{}", other.name());
    }
}

#[test]
fn abc_survives_without_marks_where_it_has_a_second_window() {
    let survives = |name, options| ControllerConfig::new(name, options).unwrap().survives_without_marks();
    assert!(survives("abc", &[]));
    assert!(!survives("abc", &[("second_window", "false")]));
    assert!(!survives("abc", &[("variant", "prototype")]));
    assert!(!survives("bmcc", &[]));
}

/// What the ECN field of a flow of each encoding says, and what it says to each queue that can be told to
/// misread it.
#[test]
fn a_queue_misreads_only_what_it_was_told_to() {
    use Encoding::{Abc, AbcProxied, Bmcc, Classic, Explicit, L4s, None};
    for (name, queue) in queues() {
        let told = QueueConfig::new(name, &[("misread", "true")]);
        for encoding in [None, Classic, Abc, AbcProxied, Bmcc, L4s, Explicit] {
            assert!(!queue.misreads_flows_of(encoding), "{name} {encoding}");
            let Ok(told) = &told else { continue };
            assert!(told.speaks(encoding), "{name} {encoding}");
            let right = match name {
                // ECT(0) is a brake to ABC's router, and nothing to an L4S router.
                "abc" | "abc_dual" => matches!(encoding, None | Abc | Explicit),
                _ => matches!(encoding, None | Classic | L4s | Explicit),
            };
            assert_eq!(told.misreads_flows_of(encoding), !right, "{name} {encoding}");
        }
    }
    let can: Vec<_> = queues()
        .map(|(name, _)| name)
        .filter(|name| QueueConfig::new(name, &[("misread", "true")]).is_ok())
        .collect();
    assert_eq!(can, ["abc", "abc_dual", "abc_l4s", "dualpi2"]);
}

#[test]
fn a_queue_that_takes_anothers_place_takes_its_options() {
    let options = |name: &str| {
        let entry = QUEUES.iter().find(|entry| entry.name == name).unwrap();
        entry.parameters().into_iter().map(|parameter| parameter.name).collect::<Vec<_>>()
    };
    for (name, queue) in queues() {
        let Some(other) = queue.traits().beside_others else { continue };
        let takes = options(other);
        assert!(options(name).iter().all(|option| takes.contains(option)), "{other} for {name}");
    }
}

#[test]
fn presets_are_options_of_their_queues() {
    for (name, queue) in queues() {
        if let Some(preset) = queue.traits().preset {
            assert!(QueueConfig::new(name, preset.options).is_ok(), "{name}");
        }
    }
}

/// A link that notes whether it is asked what it could have carried.
#[derive(Default)]
struct Asked(bool);

impl LinkView for Asked {
    fn capacity(&mut self, _window: Duration) -> Rate {
        self.0 = true;
        Rate::from_mbps(12)
    }
    fn unused(&mut self) -> Bytes {
        Bytes::ZERO
    }
    fn opportunity(&self) -> Bytes {
        Bytes(1500)
    }
    fn lookahead(&mut self, _ahead: Duration, _window: Duration) -> Option<Rate> {
        None
    }
}

/// Whether a queue asks its link what it could have carried, while two seconds of packets pass it.
fn asks_its_link(config: &QueueConfig) -> bool {
    let place = Place {
        limit: Limit::Packets(100),
        nominal: Rate::from_mbps(12),
        random: Random::stream(0, "table"),
    };
    let (mut link, mut drops) = (Asked::default(), Drops::new());
    let mut queue = config.build::<Sample>(&place);
    let header = match config.traits().writes {
        Some(HeaderKind::Xcp) => Header::Xcp { cwnd_bytes: 15e3, rtt_s: 0.1, feedback_bytes: f32::INFINITY },
        Some(HeaderKind::Rate) => Header::Rate { bps: f32::INFINITY, rtt_s: 0.1 },
        Some(_) => Header::Load { code: 0 },
        None => Header::None,
    };
    let own = config.own_encoding();
    let ecn = if own.is_some() { Ecn::Ect1 } else { Ecn::NotEct };
    let sample = Sample { ecn, encoding: own.unwrap_or(Encoding::None), header, ..Sample::new(0, 1500) };
    for id in 0..2000 {
        let now = Time::ZERO + Duration::from_millis(id);
        queue.enqueue(now, Sample { id, ..sample }, &mut link, &mut drops);
        // Every other one stays, so that there is a queue.
        if id % 2 == 0 {
            queue.dequeue(now, &mut link, &mut drops);
        }
    }
    link.0
}

#[test]
fn a_queue_that_asks_for_the_links_rate_says_so() {
    let busy = ["bmcc", "vcp", "mlcp"].map(|name| (name, [("load", "busy-time")]));
    let variants = ["prototype", "adaptive"].map(|variant| ("abc", [("variant", variant)]));
    let more = busy.iter().chain(&variants);
    let more = more.map(|(name, options)| (*name, QueueConfig::new(name, options).unwrap()));
    for (name, config) in queues().chain(more) {
        assert_eq!(asks_its_link(&config), config.needs_link_rate(), "{name} {:?}", config.settings());
    }
}
