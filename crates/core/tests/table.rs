//! What the tables say of an algorithm, held against what it does.

use brakelight_core::controller::{Connection, Controller, SendEvent, abc};
use brakelight_core::ecn::Encoding;
use brakelight_core::packet::Header;
use brakelight_core::random::Random;
use brakelight_core::registry::{
    CONTROLLERS, Carries, ControllerConfig, DEFAULT_CONTROLLER, DEFAULT_QUEUE, QUEUES, QueueConfig, Routers,
};
use brakelight_core::time::Time;
use brakelight_core::units::Bytes;

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

#[test]
fn a_queue_that_takes_anothers_place_takes_its_options() {
    let options = |name: &str| {
        let entry = QUEUES.iter().find(|entry| entry.name == name).unwrap();
        (entry.parameters)().into_iter().map(|parameter| parameter.name).collect::<Vec<_>>()
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
