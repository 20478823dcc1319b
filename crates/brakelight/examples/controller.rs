//! A controller of one's own, beside Cubic: a window that never changes.
use brakelight::extend::*;
use brakelight::prelude::*;

parameters! {
    /// Its settings.
    pub struct Config {
        /// The window, in packets.
        packets: u32 = 40, in 1..=1000, from "chosen here";
    }
}
#[derive(Clone, Debug)]
struct Still(Bytes);
impl Algorithm for Still {
    type Config = Config;
    const NAME: &'static str = "still";
    const SUMMARY: &'static str = "A window that never changes";
}
impl CustomController for Still {
    fn build(config: &Config, connection: &Connection) -> Self {
        Still(Bytes(connection.mss.0 * u64::from(config.packets)))
    }
}
impl Controller for Still {
    fn on_ack(&mut self, _event: &AckEvent<'_>) {}
    fn on_loss(&mut self, _event: &LossEvent) {}
    fn on_timeout(&mut self, _event: &TimeoutEvent) {}
    fn cwnd(&self) -> Bytes {
        self.0
    }
}
/// Registers it, and compares it under two of its settings.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut registry = Registry::standard();
    registry.add_controller::<Still>()?;
    let schemes = Scheme::parse_list_with(&registry, "cubic,still,still:packets=100")?;
    let request = Compare { traces: vec!["step".into()], schemes, runs: Some(2), ..Compare::default() };
    println!("{}", lab::compare(&request)?.comparison(&Screen::default()));
    Ok(())
}
