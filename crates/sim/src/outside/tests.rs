use std::sync::Arc;
use std::time::Duration as StdDuration;

use brakelight_core::ecn::Encoding;
use brakelight_core::host::{About, End, HostFactory, HostedController, Pair, SenderState, Setup, Transmit};
use brakelight_core::parameters::{OptionValues, ParameterError};
use brakelight_registry::{Options, Registry};

use super::*;
use crate::network::Traces;
use crate::simulation::{RunError, Simulation};

/// What a host of these tests does at 1 s.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    Panic,
    Hang,
    Spin,
    Flood,
    Giant,
    Close,
}

const FAULTS: [(&str, Fault); 7] = [
    ("toy/fine", Fault::None),
    ("toy/panics", Fault::Panic),
    ("toy/hangs", Fault::Hang),
    ("toy/spins", Fault::Spin),
    ("toy/floods", Fault::Flood),
    ("toy/giant", Fault::Giant),
    ("toy/closes", Fault::Close),
];

#[derive(Debug)]
struct Toy;

impl HostFactory for Toy {
    fn about(&self) -> About {
        About {
            summary: "A datagram every ten milliseconds",
            version: "1.2.3",
            licence: "MIT",
            shows: &[],
            encoding: Encoding::None,
            messages: false,
        }
    }
    fn controllers(&self) -> Vec<HostedController> {
        let entry = |&(name, _): &(&'static str, Fault)| HostedController {
            name,
            summary: "None",
            parameters: Vec::new,
        };
        FAULTS.iter().map(entry).collect()
    }
    fn settings(&self, _: &str, options: Options<'_>) -> Result<OptionValues, ParameterError> {
        match options.first() {
            None => Ok(OptionValues::new()),
            Some((name, _)) => Err(ParameterError::Unknown { name: name.to_string(), known: String::new() }),
        }
    }
    fn pair(&self, setup: &Setup<'_>) -> Result<Pair, String> {
        let fault = FAULTS.iter().find(|(name, _)| *name == setup.controller).expect("one of them").1;
        let sender = Box::new(Sender { fault, next_at: None, waiting: 0, closed: false });
        Ok(Pair { sender, receiver: Box::new(Receiver::default()) })
    }
}

/// Sends what was written every ten milliseconds, and hopes.
struct Sender {
    fault: Fault,
    next_at: Option<Time>,
    waiting: u64,
    closed: bool,
}

impl End for Sender {
    fn connect(&mut self, now: Time) {
        self.next_at = Some(now);
    }
    fn receive(&mut self, _: Time, _: brakelight_core::ecn::Ecn, _: &[u8]) {}
    fn transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<Transmit> {
        let late = now >= Time::from_secs(1);
        match self.fault {
            Fault::Panic if late => panic!("a deliberate panic"),
            Fault::Hang if late => loop {
                std::thread::sleep(StdDuration::from_millis(10));
            },
            Fault::Close => self.closed = late,
            _ => {}
        }
        let floods = self.fault == Fault::Flood && late;
        if !floods && (self.next_at.is_none_or(|at| at > now) || self.waiting == 0) {
            return None;
        }
        self.next_at = self.next_at.map(|at| at + Duration::from_millis(10));
        let size = if self.fault == Fault::Giant && late { 3000 } else { self.waiting.min(1000) };
        self.waiting = self.waiting.saturating_sub(size);
        payload.resize(size as usize, 0);
        Some(Transmit { ecn: brakelight_core::ecn::Ecn::NotEct, data: true })
    }
    fn next_wakeup(&self) -> Option<Time> {
        match self.fault {
            Fault::Spin => Some(Time::ZERO),
            _ => self.next_at.filter(|_| self.waiting > 0),
        }
    }
    fn on_wakeup(&mut self, now: Time) {
        self.next_at = self.next_at.map(|at| at.max(now));
    }
    fn write(&mut self, _: Time, size: u64) -> u64 {
        self.waiting += size;
        size
    }
    fn read(&mut self, _: Time) -> u64 {
        0
    }
    fn state(&self) -> SenderState {
        SenderState { cwnd: Bytes(1000), ..SenderState::default() }
    }
    fn closed(&self) -> Option<String> {
        self.closed.then(|| "it gave up".to_string())
    }
}

#[derive(Default)]
struct Receiver(u64);

impl End for Receiver {
    fn connect(&mut self, _: Time) {}
    fn receive(&mut self, _: Time, _: brakelight_core::ecn::Ecn, payload: &[u8]) {
        self.0 += payload.len() as u64;
    }
    fn transmit(&mut self, _: Time, _: &mut Vec<u8>) -> Option<Transmit> {
        None
    }
    fn next_wakeup(&self) -> Option<Time> {
        None
    }
    fn on_wakeup(&mut self, _: Time) {}
    fn write(&mut self, _: Time, _: u64) -> u64 {
        0
    }
    fn read(&mut self, _: Time) -> u64 {
        std::mem::take(&mut self.0)
    }
}

fn registry() -> Registry {
    let mut registry = Registry::standard();
    registry.add_host("toy", Arc::new(Toy)).unwrap();
    registry
}

pub(super) fn scenario(first: &str, more: &str) -> Scenario {
    let text = format!(
        "duration = \"3s\"\n[[link]]\nname = \"up\"\nrate = \"12Mbps\"\n\
         [[flow]]\nname = \"a\"\ncontroller = \"{first}\"\nrtt = \"40ms\"\npath = [\"up\"]\n{more}"
    );
    brakelight_scenario::file::read_with(&registry(), "toy.toml", &text).unwrap()
}

fn failure(controller: &str) -> String {
    let scenario = scenario(controller, "");
    let result = watch::watched(&scenario, &Traces::new(), StdDuration::from_millis(50), 100);
    result.unwrap_err().to_string()
}

#[test]
fn a_host_from_outside_is_a_controller_like_any_other_beside_modelled_flows() {
    let more = "[[flow]]\nname = \"b\"\ncontroller = \"cubic\"\nrtt = \"40ms\"\npath = [\"up\"]\n";
    let scenario = scenario("toy/fine", more);
    let run = crate::run(&scenario, &Traces::new()).unwrap().run;
    assert_eq!(run.flows[0].controller, "toy/fine");
    // 1,000 bytes every 10 ms.
    assert!((0.7..0.81).contains(&run.flows[0].goodput_mbps), "{}", run.flows[0].goodput_mbps);
    assert!(run.flows[1].goodput_mbps > 9.0);
    assert_eq!(crate::run(&scenario, &Traces::new()).unwrap().run, run);
}

#[test]
fn a_stack_that_panics_hangs_or_never_stops_fails_its_run_by_name() {
    let panics = failure("toy/panics");
    assert!(panics.starts_with("flow `a` (toy/panics), at 1.0"), "{panics}");
    assert!(panics.ends_with("it panicked: a deliberate panic"), "{panics}");
    let hangs = failure("toy/hangs");
    assert!(hangs.starts_with("flow `a` (toy/hangs), at 1.0") && hangs.contains("it hangs"), "{hangs}");
    for (controller, reason) in [
        ("toy/spins", "it asked 10000 times in a row to be woken at once"),
        ("toy/floods", "it sent 1048576 datagrams at one moment"),
        ("toy/giant", "it sent a datagram of 3000 bytes over a path that carries 1472"),
    ] {
        let message = failure(controller);
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn a_connection_that_ends_before_its_time_makes_its_run_unreliable() {
    let run = crate::run(&scenario("toy/closes", ""), &Traces::new()).unwrap().run;
    assert!(run.unreliable);
    let [reason] = &run.unreliable_because[..] else { panic!("{:?}", run.unreliable_because) };
    assert!(reason.starts_with("flow `a` (toy/closes): its connection ended at 1.0"), "{reason}");
    assert!(reason.ends_with("sender: it gave up"), "{reason}");
}

#[test]
fn a_run_of_modelled_hosts_alone_refuses_it_and_so_does_what_it_cannot_have() {
    let error = Simulation::new(&scenario("toy/fine", ""), &Traces::new()).unwrap_err().to_string();
    assert_eq!(error, "flow `a`: `toy/fine` is a host from outside, and this run has modeled hosts alone");
    for (line, reason) in [
        ("host = \"tcp\"\n", "host: `toy/fine` runs in its own host: leave `host` out"),
        ("initial_window = 20\n", "initial_window: `toy/fine` has its own: leave it out"),
        ("mss = \"500B\"\n", "mss: its packets are too small for `toy/fine`: valid are 1228 bytes and more"),
        ("traffic = \"game\"\n", "traffic: `toy/fine` carries no messages, which this application needs"),
    ] {
        let error = crate::run(&scenario("toy/fine", line), &Traces::new()).unwrap_err();
        assert!(matches!(error, RunError::Setup(_)));
        assert_eq!(error.to_string(), format!("flow `a`: {reason}"));
    }
}

/// The version is part of the identity, and of the canonical words.
#[test]
fn another_version_is_another_run() {
    let config = registry().controller("toy/fine", &[]).unwrap();
    assert_eq!(config.settings(), [("version", "1.2.3".to_string())]);
    assert_eq!(registry().controller("toy/fine", &[("version", "1.2.3")]).unwrap(), config);
    let error = registry().controller("toy/fine", &[("version", "1.2.4")]).unwrap_err().to_string();
    assert_eq!(error, "toy/fine: version = `1.2.4` is not there: this build has 1.2.3");
    let error = registry().controller("toy/fine", &[("beta", "1")]).unwrap_err().to_string();
    assert_eq!(error, "toy/fine: unknown option `beta`: there are none");
    let error = registry().controller("toy/fin", &[]).unwrap_err().to_string();
    assert!(error.starts_with("unknown controller `toy/fin` (did you mean `toy/fine`?)"), "{error}");
}
