use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use brakelight_core::controller::{AckEvent, Connection, Controller, LossEvent, TimeoutEvent};
use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::facts::{Needs, Traits};
use brakelight_core::feedback::{AckAction, Arrival, Echo, Feedback, Receiver};
use brakelight_core::packet::{BoxedPacket, PacketId};
use brakelight_core::parameters::{OptionValues, Parameter, ParameterError, Parameters};
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::queue::Place;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_links::elements::{AnyElement, ELEMENTS, ElementConfig, RADIOS, RadioConfig};
use brakelight_links::link::{Link, fixed};
use brakelight_routers::{AnyQueue, QUEUES, QueueConfig};
use brakelight_senders::{AnyController, FeedbackConfig};
use brakelight_testkit::packet::Sample;

use super::*;
use crate::{RegisterError, Registry};

brakelight_core::parameters! {
    /// Settings of every algorithm here.
    pub struct Config {
        /// A number.
        packets: u32 = 20, in 1..=1000, from "chosen here";
    }
}

/// A window that never changes.
#[derive(Clone, Debug)]
struct Still(Bytes);

impl Controller for Still {
    fn on_ack(&mut self, _event: &AckEvent<'_>) {}
    fn on_loss(&mut self, _event: &LossEvent) {}
    fn on_timeout(&mut self, _event: &TimeoutEvent) {}
    fn cwnd(&self) -> Bytes {
        self.0
    }
}

impl Algorithm for Still {
    type Config = Config;
    const NAME: &'static str = "still";
    const ALIASES: &'static [&'static str] = &["fixed-window"];
    const SUMMARY: &'static str = "A window that never changes";
}

impl CustomController for Still {
    const NEEDS: Needs = Needs { feedback: "every", queue: Some("line"), ..Needs::PLAIN };

    fn build(config: &Config, connection: &Connection) -> Self {
        Still(Bytes(u64::from(config.packets) * connection.mss.0))
    }
    fn feedback_options(_config: &Config) -> Options<'static> {
        &[("packets", "7")]
    }
}

/// A receiver that acknowledges every packet at once.
#[derive(Clone, Debug)]
struct Every;

impl Feedback for Every {
    fn on_packet(&mut self, _arrival: &Arrival) -> AckAction {
        AckAction::Now
    }
    fn on_ack_sent(&mut self, _now: Time, _flush: bool) -> Echo {
        Echo::default()
    }
}

impl Algorithm for Every {
    type Config = Config;
    const NAME: &'static str = "every";
    const SUMMARY: &'static str = "An ACK for every packet";
}

impl CustomFeedback for Every {
    fn build(_config: &Config, _receiver: &Receiver) -> Self {
        Every
    }
}

/// Declares a queue from outside that is drop-tail, with what the table says of it.
macro_rules! line {
    ($Name:ident, $name:literal, $traits:expr) => {
        #[derive(Clone, Debug)]
        struct $Name(brakelight_routers::droptail::DropTail<BoxedPacket>);

        impl brakelight_core::queue::Queue<BoxedPacket> for $Name {
            fn enqueue(
                &mut self,
                now: Time,
                packet: BoxedPacket,
                link: &mut impl brakelight_core::queue::LinkView,
                drops: &mut brakelight_core::queue::Drops<BoxedPacket>,
            ) {
                self.0.enqueue(now, packet, link, drops);
            }
            fn dequeue(
                &mut self,
                now: Time,
                link: &mut impl brakelight_core::queue::LinkView,
                drops: &mut brakelight_core::queue::Drops<BoxedPacket>,
            ) -> Option<brakelight_core::queue::Dequeued<BoxedPacket>> {
                self.0.dequeue(now, link, drops)
            }
            fn backlog(&self) -> brakelight_core::queue::Backlog {
                self.0.backlog()
            }
            fn for_each(&self, visit: &mut dyn FnMut(&BoxedPacket)) {
                self.0.for_each(visit);
            }
        }

        impl Algorithm for $Name {
            type Config = Config;
            const NAME: &'static str = $name;
            const SUMMARY: &'static str = "Drop-tail";
        }

        impl CustomQueue for $Name {
            const TRAITS: Traits = $traits;

            fn build(config: &Config, place: &Place) -> Self {
                let place = Place { limit: Limit::Packets(config.packets), ..place.clone() };
                $Name(brakelight_routers::droptail::DropTail::new(&Default::default(), &place))
            }
        }
    };
}

line!(Line, "line", Traits { beside_others: Some("second-line"), ..Traits::PLAIN });
line!(SecondLine, "second-line", Traits::PLAIN);
line!(Misnamed, "Two words", Traits::PLAIN);
line!(Fifo, "fifo", Traits::PLAIN);

fn connection() -> Connection {
    Connection {
        mss: Bytes(1000),
        overhead: Bytes(40),
        initial_window: Bytes(10_000),
        now: Time::ZERO,
        random: Random::stream(0, "custom"),
    }
}

fn registry() -> Registry {
    let mut registry = Registry::standard();
    registry.add_feedback::<Every>().unwrap();
    registry.add_queue::<SecondLine>().unwrap();
    registry.add_queue::<Line>().unwrap();
    registry.add_controller::<Still>().unwrap();
    registry
}

#[test]
fn what_was_added_is_found_by_name_and_alias_with_its_options() {
    let registry = registry();
    for name in ["still", "fixed-window"] {
        let config = registry.controller(name, &[("packets", "50")]).unwrap();
        assert_eq!((config.name(), config.needs()), ("still", Still::NEEDS));
        assert_eq!(config.build(&connection()).cwnd(), Bytes(50_000));
        assert!(matches!(config.build(&connection()), AnyController::Custom(_)));
    }
    assert!(registry.controllers().any(|entry| entry.name == "still" && entry.parameters().len() == 1));
    assert!(registry.queues().any(|entry| entry.name == "line"));
}

#[test]
fn a_controller_brings_its_feedback_with_the_options_that_it_asks_for() {
    let registry = registry();
    let config = registry.controller("still", &[]).unwrap();
    assert_eq!(config.feedback(), registry.feedback("every", &[("packets", "7")]).unwrap());
    assert!(matches!(config.feedback(), FeedbackConfig::Custom(_)));
}

#[test]
fn a_queue_brings_the_one_that_takes_its_place_with_the_same_options() {
    let registry = registry();
    let config = registry.queue("line", &[("packets", "3")]).unwrap();
    let QueueConfig::Custom(config) = &config else { panic!("a queue from outside") };
    assert_eq!(config.beside_others(), Some(&registry.queue("second-line", &[("packets", "3")]).unwrap()));
}

#[test]
fn settings_are_equal_where_algorithm_and_options_are() {
    let registry = registry();
    let queue = |name: &str, packets: &str| registry.queue(name, &[("packets", packets)]).unwrap();
    assert_eq!(queue("line", "3"), queue("line", "3").clone());
    assert_ne!(queue("line", "3"), queue("line", "4"));
    assert_ne!(queue("line", "3"), queue("second-line", "3"));
    assert_ne!(queue("line", "3"), QueueConfig::new("droptail", &[]).unwrap());
}

#[test]
fn names_that_are_not_there_and_options_that_are_refused_are_told_with_what_is_valid() {
    let registry = registry();
    let error = registry.controller("stil", &[]).unwrap_err().to_string();
    assert!(
        error.starts_with("unknown controller `stil` (did you mean `still`?): valid are newreno, "),
        "{error}"
    );
    assert!(error.ends_with(", still"), "{error}");
    let error = registry.controller("still", &[("packets", "0")]).unwrap_err().to_string();
    assert_eq!(error, "still: packets = `0` is out of range: valid is 1 to 1000");
    let error = registry.controller("still", &[("pakets", "1")]).unwrap_err().to_string();
    assert_eq!(error, "still: unknown option `pakets` (did you mean `packets`?): valid are packets");
    let error = Registry::standard().queue("line", &[]).unwrap_err().to_string();
    assert!(error.starts_with("unknown queue `line`: valid are abc, "), "{error}");
}

#[test]
fn names_that_are_taken_or_no_names_are_refused() {
    let mut registry = registry();
    let error = registry.add_controller::<Still>().unwrap_err().to_string();
    assert_eq!(error, "`fixed-window` is another name for the controller `still`: choose another name");
    let error = registry.add_queue::<Line>().unwrap_err().to_string();
    assert_eq!(error, "`line` is the name of another queue: choose another name");
    let error = registry.add_queue::<Fifo>().unwrap_err().to_string();
    assert_eq!(error, "`fifo` is another name for the queue `droptail`: choose another name");
    let error = registry.add_queue::<Misnamed>().unwrap_err().to_string();
    assert_eq!(
        error,
        "`Two words` cannot be the name of a queue: valid are lower-case letters, digits, `-` and `_`, beginning with a \
         letter"
    );
}

#[test]
fn what_an_algorithm_names_must_be_there_before_it() {
    let mut registry = Registry::standard();
    let error = registry.add_controller::<Still>().unwrap_err();
    assert!(matches!(error, RegisterError::Refused { kind: "controller", name: "still", .. }), "{error}");
    registry.add_feedback::<Every>().unwrap();
    let error = registry.add_controller::<Still>().unwrap_err().to_string();
    assert!(error.starts_with("the controller `still` cannot be added: unknown queue `line`: "), "{error}");
    let error = registry.add_queue::<Line>().unwrap_err().to_string();
    assert!(error.contains("unknown queue `second-line`"), "{error}");
    assert!(registry.controllers().all(|entry| entry.name != "still"), "nothing is added by halves");
}

/// Packets of several flows and kinds, in bursts.
fn arrivals(encodings: &[Encoding]) -> Vec<(Time, Sample)> {
    let mut random = Random::stream(3, "arrivals");
    let mut now = Time::ZERO;
    let arrival = |id| {
        now += Duration::from_secs_f64(if id % 40 == 0 { 0.02 } else { 1e-4 } * random.exponential());
        let encoding = encodings[id as usize / 7 % encodings.len()];
        let ecn = if id % 5 == 0 { Ecn::NotEct } else { encoding.sent() };
        (
            now,
            Sample {
                flow: (id / 7 % 9) as u32,
                ecn,
                encoding,
                ..Sample::new(id, 1500 - (id % 3) as u32 * 700)
            },
        )
    };
    (0..3000).map(arrival).collect()
}

/// Everything that comes out, and what is inside half way.
fn outputs(mut element: AnyElement<Sample>, arrivals: &[(Time, Sample)]) -> (Vec<Output<Sample>>, Vec<u64>) {
    let mut outputs = Vec::new();
    let mut inside = Vec::new();
    for (count, &(at, packet)) in arrivals.iter().enumerate() {
        while let Some(due) = element.next_wakeup().filter(|due| *due <= at) {
            outputs.extend(core::iter::from_fn(|| element.poll(due)));
        }
        element.accept(at, packet);
        outputs.extend(core::iter::from_fn(|| element.poll(at)));
        if count == arrivals.len() / 2 {
            element.for_each(&mut |packet| inside.push(packet.id));
            // What is inside goes on in a copy as in the original.
            element = element.clone();
        }
    }
    while let Some(due) = element.next_wakeup() {
        outputs.extend(core::iter::from_fn(|| element.poll(due)));
    }
    (outputs, inside)
}

/// A link with this queue.
fn link(queue: AnyQueue<Sample>) -> AnyElement<Sample> {
    let config =
        fixed::Config::new(fixed::Values { rate: Rate::from_mbps(20), ..Default::default() }).unwrap();
    AnyElement::Link(Link::new(
        brakelight_links::elements::AnyService::Fixed(fixed::Fixed::new(&config)),
        queue,
    ))
}

#[test]
fn a_queue_behind_a_pointer_does_what_it_does_without() {
    for entry in QUEUES {
        let config = QueueConfig::new(entry.name, &[]).unwrap();
        let random = Random::stream(1, "queue");
        let place = Place { limit: Limit::Packets(60), nominal: Rate::from_mbps(20), random };
        let arrivals = arrivals(config.traits().speaks);
        let boxed = BoxedQueue::new(Box::new(config.build::<BoxedPacket>(&place)));
        let direct = outputs(link(config.build(&place)), &arrivals);
        assert!(direct.0.len() == arrivals.len() && !direct.1.is_empty(), "{}", entry.name);
        assert_eq!(outputs(link(AnyQueue::Custom(boxed)), &arrivals), direct, "{}", entry.name);
    }
}

#[test]
fn an_element_behind_a_pointer_does_what_it_does_without() {
    for (name, options) in ELEMENTS
        .iter()
        .map(|entry| (entry.name, &[][..]))
        .chain([("duplicate", &[("rate", "0.5")][..]), ("jitter", &[("keep_order", "false")])])
    {
        let config = ElementConfig::new(name, options).unwrap();
        let site = || Site { random: Random::stream(1, "element"), ids: PacketId(1 << 40) };
        let arrivals = arrivals(&[Encoding::None, Encoding::Classic]);
        let boxed = BoxedElement::new(Box::new(config.build::<BoxedPacket>(site())) as Box<dyn DynElement>);
        let direct = outputs(config.build(site()), &arrivals);
        assert!(direct.0.len() >= arrivals.len(), "{name}");
        assert_eq!(outputs(AnyElement::Custom(boxed), &arrivals), direct, "{name}");
    }
}

#[test]
fn a_radio_serves_a_queue_from_outside() {
    let queue = registry().queue("line", &[("packets", "60")]).unwrap();
    for entry in RADIOS {
        let config = RadioConfig::new(entry.name, &[]).unwrap();
        let site = || Site { random: Random::stream(1, "radio"), ids: PacketId(1 << 40) };
        let arrivals = arrivals(&[Encoding::None]);
        let radio = |queue: &QueueConfig| AnyElement::Radio(config.build(queue, Limit::Packets(60), site()));
        let standard = outputs(radio(&QueueConfig::new("droptail", &[]).unwrap()), &arrivals);
        assert_eq!(outputs(radio(&queue), &arrivals), standard, "{}", entry.name);
    }
}

/// Builds [`Still`] or [`Line`] under a name of run time.
#[derive(Debug)]
struct Factory;

impl ControllerFactory for Factory {
    fn build(&self, connection: &Connection) -> Box<dyn DynController> {
        Box::new(Still(connection.mss))
    }
}

impl QueueFactory for Factory {
    fn build(&self, place: &Place) -> Box<dyn DynQueue> {
        Box::new(<Line as CustomQueue>::build(&Config::default(), place))
    }
}

/// The same with a parameter, as a binding to another language has it.
#[derive(Debug)]
struct Set;

impl Set {
    fn parameters() -> &'static [Parameter] {
        Config::describe().leak()
    }

    fn settings(options: Options<'_>) -> Result<OptionValues, ParameterError> {
        Config::from_options(options.iter().copied()).map(|config| config.settings())
    }
}

impl ControllerFactory for Set {
    fn parameters(&self) -> &'static [Parameter] {
        Set::parameters()
    }
    fn settings(&self, options: Options<'_>) -> Result<OptionValues, ParameterError> {
        Set::settings(options)
    }
    fn build(&self, connection: &Connection) -> Box<dyn DynController> {
        Box::new(Still(connection.mss))
    }
    fn build_with(&self, settings: &OptionValues, connection: &Connection) -> Box<dyn DynController> {
        let packets: u64 = settings[0].1.parse().unwrap();
        Box::new(Still(Bytes(packets * connection.mss.0)))
    }
}

impl QueueFactory for Set {
    fn parameters(&self) -> &'static [Parameter] {
        Set::parameters()
    }
    fn settings(&self, options: Options<'_>) -> Result<OptionValues, ParameterError> {
        Set::settings(options)
    }
    fn build(&self, place: &Place) -> Box<dyn DynQueue> {
        QueueFactory::build(&Factory, place)
    }
}

#[test]
fn a_factory_adds_an_algorithm_for_which_no_type_stands() {
    let mut registry = Registry::standard();
    let factory = Arc::new(Factory);
    registry.add_controller_factory("mine", "Made at run time", factory.clone()).unwrap();
    registry.add_queue_factory("mine", "Made at run time", factory.clone()).unwrap();
    let config = registry.controller("mine", &[]).unwrap();
    assert_eq!((config.name(), config.settings().len()), ("mine", 0));
    assert_eq!(config, registry.clone().controller("mine", &[]).unwrap());
    let refused = registry.controller("mine", &[("packets", "7")]).unwrap_err();
    assert_eq!(refused.to_string(), "mine: unknown option `packets`: there are none");
    assert_eq!(registry.queue("mine", &[]).unwrap().name(), "mine");
    registry.add_controller_factory("set", "Made and set at run time", Arc::new(Set)).unwrap();
    registry.add_queue_factory("set", "Made and set at run time", Arc::new(Set)).unwrap();
    let listed: Vec<Parameter> = registry.controllers().last().unwrap().parameters();
    assert_eq!((listed.len(), listed[0].name), (1, "packets"));
    let config = |options| registry.controller("set", options).unwrap();
    assert_eq!(config(&[("packets", "7")]).settings(), [("packets", "7".to_string())]);
    assert_eq!(config(&[]), config(&[("packets", "20")]));
    assert_ne!(config(&[]), config(&[("packets", "7")]));
    assert_eq!(config(&[("packets", "7")]).build(&connection()).cwnd(), Bytes(7_000));
    let refused = registry.queue("set", &[("packets", "0")]).unwrap_err();
    assert_eq!(refused.to_string(), "set: packets = `0` is out of range: valid is 1 to 1000");
    let taken = registry.add_controller_factory("cubic", "", factory.clone()).unwrap_err();
    assert_eq!(taken.to_string(), "`cubic` is the name of another controller: choose another name");
    let malformed = registry.add_queue_factory("My Own", "", factory).unwrap_err();
    assert!(malformed.to_string().starts_with("`My Own` cannot be the name of a queue: valid are"));
}
