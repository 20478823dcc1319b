//! Files name algorithms that a program brings, as they name those that Brakelight brings.

use brakelight_apps::{Application, Applications, CustomApplication, Socket};
use brakelight_core::controller::{AckEvent, Connection, Controller, LossEvent, TimeoutEvent};
use brakelight_core::parameters;
use brakelight_core::units::Bytes;
use brakelight_registry::{Algorithm, CustomController, Registry};
use brakelight_scenario::file;
use brakelight_scenario::traffic::Traffic;

parameters! {
    /// Settings of both algorithms below.
    pub struct Config {
        /// The window, or the payload of a write.
        size: Bytes = Bytes(3000), in Bytes(100)..=Bytes(100_000), from "chosen here";
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
    const SUMMARY: &'static str = "A window that never changes";
}

impl CustomController for Still {
    fn build(config: &Config, _connection: &Connection) -> Self {
        Still(config.size)
    }
}

/// One write.
#[derive(Clone, Debug)]
struct Drip(Bytes);

impl Application for Drip {
    fn start(&mut self, socket: &mut impl Socket) {
        socket.write(self.0);
    }
}

impl Algorithm for Drip {
    type Config = Config;
    const NAME: &'static str = "drip";
    const SUMMARY: &'static str = "One write";
}

impl CustomApplication for Drip {
    fn build(config: &Config, _mss: Bytes) -> Self {
        Drip(config.size)
    }
}

const TEXT: &str = r#"
[[link]]
name = "up"
rate = "12Mbps"
[[flow]]
name = "main"
controller = "still:size=6kB"
traffic = "drip:size=1kB"
path = ["up"]
"#;

fn registry() -> Registry {
    let mut registry = Registry::standard();
    registry.add_controller::<Still>().unwrap();
    registry.add_application::<Drip>().unwrap();
    registry
}

#[test]
fn a_file_names_algorithms_of_the_registry_and_survives() {
    let registry = registry();
    let scenario = file::read_with(&registry, "x.toml", TEXT).unwrap();
    assert_eq!(scenario.flows[0].controller.name(), "still");
    let Traffic::Custom(custom) = &scenario.flows[0].traffic else { panic!("an application from outside") };
    assert_eq!(custom.to_string(), "drip:size=1kB");
    assert_eq!(file::read_with(&registry, "x.toml", &file::write(&scenario)), Ok(scenario.clone()));
    let json = serde_json::to_string(&scenario).unwrap();
    let again = file::deserialize_with(&registry, &mut serde_json::Deserializer::from_str(&json)).unwrap();
    assert_eq!(again, scenario);
}

#[test]
fn what_is_wrong_with_them_is_said_as_of_any_other() {
    let registry = registry();
    let refused = |from: &str, to: &str| {
        assert!(TEXT.contains(from), "{from}");
        file::read_with(&registry, "x.toml", &TEXT.replace(from, to)).unwrap_err().to_string()
    };
    let range = "size = `1B` is out of range: valid is 100B to 100kB";
    assert_eq!(refused("6kB", "1B"), format!("x.toml:7: flow `main`: controller: still: {range}"));
    assert_eq!(refused("1kB", "1B"), format!("x.toml:8: flow `main`: traffic: drip: {range}"));
    assert!(
        refused("drip", "drop")
            .starts_with("x.toml:8: flow `main`: traffic = `drop:size=1kB` is not a kind of")
    );
    let standard = file::read("x.toml", TEXT).unwrap_err().to_string();
    assert!(
        standard.starts_with("x.toml:7: flow `main`: controller: unknown controller `still`: "),
        "{standard}"
    );
}
