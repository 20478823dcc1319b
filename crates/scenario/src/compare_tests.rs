//! `compare`'s scenario is the reference setup.

use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Limit, Rate};

use super::{Compare, Reverse};
use crate::file::{read, write};
use crate::scenario::{Direction, Hop, Service};
use crate::scheme::Scheme;

fn newreno() -> Compare {
    Compare::mahimahi(Scheme::parse("newreno").unwrap(), "some-trace")
}

#[test]
fn is_the_reference_setup() {
    let scenario = newreno().scenario().unwrap();
    assert_eq!(scenario.duration, Duration::from_secs(60));
    assert_eq!(scenario.measure_from, Duration::ZERO);
    let [forward, reverse] = scenario.links.as_slice() else { panic!("two links") };
    assert_eq!(forward.service, Service::Trace("some-trace".to_string()));
    assert_eq!(forward.buffer, Limit::Packets(250));
    assert_eq!((forward.opportunity, forward.overhead), (Bytes(1504), Bytes(4)));
    assert_eq!(forward.queue.name(), "droptail");
    assert_eq!(reverse.service, Service::Fixed(Rate::from_mbps(12)));
    assert_eq!(reverse.queue.name(), "droptail");
    let [flow] = scenario.flows.as_slice() else { panic!("one flow") };
    assert_eq!((flow.start, flow.start_within), (Duration::ZERO, Duration::from_millis(100)));
    assert_eq!(flow.propagation(0, Direction::Forward), Duration::from_millis(50));
    assert_eq!(flow.propagation(0, Direction::Reverse), Duration::from_millis(50));
    assert_eq!(flow.path, [Hop::Link("forward".to_string())]);
    assert_eq!(flow.reverse, [Hop::Link("reverse".to_string())]);
    assert_eq!((flow.mss, flow.overhead, flow.ack_every), (Bytes(1448), Bytes(52), 2));
}

#[test]
fn a_way_back_has_no_limit_a_rate_or_a_trace() {
    for (text, expected) in [
        ("none", Reverse::Unlimited),
        ("5Mbps", Reverse::Rate(Rate::from_mbps(5))),
        ("up.trace", Reverse::Trace("up.trace".to_string())),
    ] {
        assert_eq!(Reverse::parse(text), expected);
        assert_eq!(expected.to_string(), text);
    }
    let scenario = |reverse| Compare { reverse, ..newreno() }.scenario().unwrap();
    let free = scenario(Reverse::Unlimited);
    assert_eq!((free.links.len(), &free.flows[0].reverse), (1, &Vec::new()));
    let traced = scenario(Reverse::Trace("up.trace".to_string()));
    assert_eq!(traced.links[1].service, Service::Trace("up.trace".to_string()));
    assert_eq!(traced.flows[0].reverse, [Hop::Link("reverse".to_string())]);
    assert_eq!(read("x.toml", &write(&free)).unwrap(), free);
}

#[test]
fn can_be_written_as_a_scenario_file() {
    let scenario = newreno().scenario().unwrap();
    assert_eq!(read("x.toml", &write(&scenario)).unwrap(), scenario);
}

#[test]
fn a_competitor_shares_the_queue() {
    let against = Some(Scheme::parse("newreno:beta=0.7").unwrap());
    let scenario = Compare { against, ..newreno() }.scenario().unwrap();
    assert_eq!(scenario.flows[1].path, scenario.flows[0].path);
    assert_eq!(scenario.flows[1].controller.words().to_string(), "newreno:beta=0.7");
}

#[test]
fn beside_other_traffic_abcs_router_has_a_second_queue() {
    let queue = |scheme: &str, against: &str| {
        let against = Some(Scheme::parse(against).unwrap());
        let compare = Compare { against, ..Compare::mahimahi(Scheme::parse(scheme).unwrap(), "some-trace") };
        compare.scenario().unwrap().links[0].queue.words().to_string()
    };
    assert_eq!(queue("abc:delta=200ms,eta=0.9", "cubic"), "abc_dual:delta=200ms,eta=0.9");
    assert_eq!(queue("abc", "abc:variant=prototype"), "abc");
    assert_eq!(queue("abc+abc_dual:weights=zombie", "cubic"), "abc_dual:weights=zombie");
    assert_eq!(queue("cubic", "newreno"), "droptail");
}

#[test]
fn beside_other_traffic_bmcc_is_the_variant_for_it() {
    let beside = |scheme: &str, against: &str| {
        let against = Some(Scheme::parse(against).unwrap());
        let compare = Compare { against, ..Compare::mahimahi(Scheme::parse(scheme).unwrap(), "some-trace") };
        let runs = compare.scenario().unwrap();
        let queue = runs.links[0].queue.words().to_string();
        (compare.beside_others().map(|scheme| scheme.to_string()), queue)
    };
    let (scheme, queue) = beside("bmcc", "cubic:ecn=true");
    assert_eq!((scheme.as_deref(), queue.as_str()), (Some("bmcc:coexist=true"), "bmcc:coexist=true"));
    assert_eq!(beside("bmcc:gamma=1", "cubic").0.as_deref(), Some("bmcc:gamma=1,coexist=true"));
    assert_eq!(beside("bmcc:coexist=false", "cubic").0, None);
    assert_eq!(beside("bmcc", "bmcc:gamma=1").0, None);
}

#[test]
fn abcs_router_can_keep_its_one_queue() {
    let against = Some(Scheme::parse("cubic").unwrap());
    let scheme = Scheme::parse("abc:delta=200ms").unwrap();
    let compare = Compare { against, as_given: true, ..Compare::mahimahi(scheme.clone(), "some-trace") };
    assert_eq!(compare.scenario().unwrap().links[0].queue.name(), "abc");
    let second = compare.beside_others().unwrap();
    assert_eq!(second.to_string(), "abc+abc_dual:delta=200ms");
    assert_eq!(Scheme::parse(&second.to_string()).unwrap(), second, "the spelling is one that is read");
}

#[test]
fn refuses_what_cannot_run() {
    let zero = Duration::ZERO;
    let errors = [
        Compare { rtt: zero, ..newreno() },
        Compare { duration: zero, ..newreno() },
        Compare { buffer: Limit::Packets(0), ..newreno() },
        Compare { buffer: Limit::Bytes(Bytes(1499)), ..newreno() },
        Compare { trace: String::new(), ..newreno() },
    ]
    .map(|compare| compare.scenario().unwrap_err().to_string());
    insta::assert_snapshot!(errors.join("\n"), @r"
    newreno on some-trace: rtt = `0s` is out of range: valid is 1ns to 3600s
    newreno on some-trace: duration = `0s` is out of range: valid is 1ns to 280800s
    newreno on some-trace: buffer = `0pkt` is out of range: valid is 1pkt or more
    newreno on some-trace: path: a full packet of 1.5kB does not fit the buffer of link `forward`, 1.499kB
    newreno on : trace = `` is out of range: valid is the name or file of a trace
    ");
}
