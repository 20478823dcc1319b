//! The spelling of a direction, right and wrong.

use super::*;
use brakelight_scenario::trace::recording::{RecordedCapacity, Recording};

fn parse(service: &str, queue: &str) -> Result<Bottleneck, SpecError> {
    Bottleneck::parse("up", service, queue, BUFFER, &Names::default())
}

#[test]
fn a_service_is_a_rate_steps_a_name_or_a_file() {
    assert_eq!(parse("12Mbps", "droptail").unwrap().spec().service, Service::Fixed(Rate::from_mbps(12)));
    let steps = parse("500ms:12Mbps,1s:0bps", "codel").unwrap();
    let expected = Steps {
        steps: vec![(Duration::from_millis(500), Rate::from_mbps(12)), (Duration::from_secs(1), Rate::ZERO)],
        repeat: true,
    };
    assert_eq!(steps.spec().service, Service::Steps(expected));
    assert_eq!(steps.spec().overhead, Bytes::ZERO);
    let named = parse("lte-driving", "droptail").unwrap();
    assert!(named.trace().is_some());
    assert_eq!((named.spec().opportunity, named.spec().overhead), (Bytes(1504), Bytes(4)));
    let file = std::env::temp_dir().join(format!("brakelight-spec-{}.trace", std::process::id()));
    std::fs::write(&file, "3\n5\n").unwrap();
    let from_file = parse(file.to_str().unwrap(), "droptail");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(from_file.unwrap().trace().unwrap().opportunities(), 2);
}

#[test]
fn what_is_wrong_is_said_with_what_would_be_valid() {
    let error = |service: &str, queue: &str| parse(service, queue).unwrap_err().to_string();
    let unknown = error("12Mpbs", "droptail");
    assert!(
        unknown.contains("`12Mpbs`") && unknown.contains("lte-driving") && unknown.contains("12Mbps"),
        "{unknown}"
    );
    assert!(error("500ms:12Mbps,oops", "droptail").contains("oops"));
    assert!(error("0s:12Mbps", "droptail").contains("longer than 0s"));
    assert!(error("1s:0bps", "droptail").contains("above zero"));
    assert_eq!(error("0bps", "droptail"), "rate `0bps` is out of range: valid is 1bps to 1000Gbps");
    assert!(error("12Mbps", "cod:el:").contains("is not a queue such as"));
    assert!(error("12Mbps", "codel:tagret=5ms").contains("unknown option `tagret`"));
    assert!(error("12Mbps", "nope").contains("unknown queue `nope`"));
}

#[test]
fn every_queue_either_works_or_is_refused_with_the_list_of_those_that_do() {
    let usable = usable_queues();
    assert_eq!(
        usable,
        [
            "abc", "abc_dual", "abc_l4s", "bmcc", "cake", "codel", "droptail", "dualpi2", "fq_codel", "pie",
            "red"
        ]
    );
    for entry in QUEUES {
        match parse("12Mbps", entry.name) {
            Ok(_) => assert!(usable.contains(&entry.name)),
            Err(error) => {
                let text = error.to_string();
                assert!(!usable.contains(&entry.name), "{text}");
                assert!(usable.iter().all(|name| text.contains(name)), "{text}");
            }
        }
    }
}

#[test]
fn elements_come_in_the_order_link_elements_loss_delay() {
    let mut direction = DirectionSpec::open("up", 1);
    assert!(direction.build().is_empty());
    direction.link = Some(parse("12Mbps", "droptail").unwrap());
    direction.elements = vec![ElementConfig::new("jitter", &[]).unwrap()];
    direction.loss = 0.1;
    direction.delay = Duration::from_millis(5);
    let built = direction.build();
    assert!(matches!(
        built.as_slice(),
        [AnyElement::Link(_), AnyElement::Jitter(_), AnyElement::Loss(_), AnyElement::Delay(_)]
    ));
}

#[test]
fn an_element_is_spelled_as_in_a_scenario() {
    let parse = |text| parse_element_with(&Registry::standard(), text);
    let jitter = parse("jitter:mean=20ms,spread=20ms").unwrap();
    assert_eq!(jitter, ElementConfig::new("jitter", &[("mean", "20ms"), ("spread", "20ms")]).unwrap());
    assert_eq!(parse("burst-loss").unwrap(), ElementConfig::new("gilbert-elliott", &[]).unwrap());
    let refused = |text| parse(text).unwrap_err().to_string();
    assert!(
        refused("jitter:mean").contains("`jitter:mean` is not a path element such as"),
        "{}",
        refused("jitter:mean")
    );
    assert!(refused("jiter").contains("jitter"), "{}", refused("jiter"));
    assert!(refused("loss:rate=2").contains("0 to 1"), "{}", refused("loss:rate=2"));
    for tunnel in ["encapsulate", "decapsulate"] {
        let text = refused(tunnel);
        assert!(text.contains(tunnel) && text.contains("valid are delay, delay-steps, loss"), "{text}");
    }
}

#[test]
fn recorded_delay_and_loss_come_behind_the_link_and_back() {
    let mut recording = Recording::new(Duration::from_secs(1));
    let rates = vec![(Duration::ZERO, Rate::from_mbps(12))];
    recording.down.capacity = Some(RecordedCapacity::Rates(rates));
    recording.down.delays = vec![(Duration::ZERO, Duration::from_millis(20))];
    recording.up.losses = vec![(Duration::ZERO, 5)];
    let names = Names::default().with_trace("recording", recording.trace(None).unwrap());
    let link = Bottleneck::parse("up", "recording", "droptail", BUFFER, &names).unwrap();
    let (mut up, mut down) = (DirectionSpec::open("up", 1), DirectionSpec::open("down", 1));
    (up.link, down.opposite) = (Some(link.clone()), Some(link));
    assert!(matches!(up.build().as_slice(), [AnyElement::Link(_), AnyElement::Replay(_)]));
    assert!(matches!(down.build().as_slice(), [AnyElement::Replay(_)]));
    assert_eq!((up.replays_delay(), down.replays_delay()), (true, false));
}
