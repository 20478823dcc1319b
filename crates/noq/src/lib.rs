//! Brakelight's congestion controllers for programs that use noq.
//!
//! ```
//! let mut transport = noq_proto::TransportConfig::default();
//! transport.congestion_controller_factory(brakelight_noq::factory("copa", &[])?);
//! # Ok::<(), brakelight_noq::Unsupported>(())
//! ```
//!
//! noq tells a controller what became of each packet, and paces by the controller's rate. So controllers
//! that send at a rate of their own (BBR, BBRv3) run as well as those of a window. It sends ECT(0) alone, and
//! tells of a mark only that an ACK had CE. Controllers that give the ECN field another meaning (ABC, BMCC,
//! Prague) are therefore refused, as are those that need a header or a receiver of their own. QUIC-DC takes
//! its receive times from round trips.
//!
//! | module | holds |
//! |---|---|
//! | [`controller`] | noq's trait |
//! | `sender` | what was sent, what became of it, and the events made of that |
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::Instant;

use brakelight_core::controller::{Connection, Controller as _};
use brakelight_core::ecn::Encoding;
use brakelight_core::random::Random;
use brakelight_core::time::Time;
use brakelight_core::units::Bytes;
use brakelight_registry::{BuildError, CONTROLLERS, Carries, ControllerConfig, Options};
use noq_proto::congestion::{Controller, ControllerFactory};

pub mod controller;
mod sender;

use controller::NoqController;

/// Headers of IPv4 and UDP that go with each datagram.
const OVERHEAD: Bytes = Bytes(28);

/// Packets of the window before the first ACK, unless the controller sets its own (rfc9002 7.2).
const INITIAL_WINDOW: u64 = 10;

/// Why a controller cannot run in noq.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// There is no such controller, or it does not take the options.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// noq does not do what it needs.
    #[error("controller: `{name}` needs {what}: valid in noq are {valid}")]
    Needs {
        /// The controller.
        name: &'static str,
        /// What it needs.
        what: &'static str,
        /// Those that work.
        valid: String,
    },
}

/// Returns a factory of the controller with this name and these options, for any number of connections.
///
/// # Errors
/// No controller has this name, an option is unknown or out of range, or noq does not do what it needs.
pub fn factory(name: &str, options: Options<'_>) -> Result<Arc<Factory>, Unsupported> {
    let config = ControllerConfig::new(name, options)?;
    match lacks(&config) {
        None => Ok(Arc::new(Factory { config })),
        Some(what) => Err(Unsupported::Needs { name: config.name(), what, valid: valid().join(", ") }),
    }
}

/// Returns the names of all controllers that run in noq with their default options.
pub fn valid() -> Vec<&'static str> {
    let works = |name: &&'static str| {
        ControllerConfig::new(name, &[])
            .is_ok_and(|config| lacks(&config).is_none() && !config.needs().driven)
    };
    CONTROLLERS.iter().map(|entry| entry.name).filter(works).collect()
}

/// What the controller needs and noq does not do.
fn lacks(config: &ControllerConfig) -> Option<&'static str> {
    match config.feedback().carries() {
        Carries::Header => return Some("a header that routers write to, which QUIC's packets do not have"),
        Carries::Forecast => return Some("its receiver's forecast of the link"),
        Carries::LoadFactor => return Some("the mark of each packet, which noq does not tell"),
        Carries::Nothing | Carries::ReceiveTimes => {}
    }
    let connection = connection(Time::ZERO, 1200);
    match config.build(&connection).encoding() {
        Encoding::None | Encoding::Classic => None,
        _ => Some("ECN codepoints of its own, and noq sends ECT(0) alone"),
    }
}

fn connection(now: Time, mtu: u16) -> Connection {
    let mss = Bytes(u64::from(mtu));
    let random = Random::stream(0, "controller");
    Connection { mss, overhead: OVERHEAD, initial_window: Bytes(INITIAL_WINDOW * mss.0), now, random }
}

/// Makes a controller for each path of a connection.
#[derive(Clone, Debug)]
pub struct Factory {
    config: ControllerConfig,
}

impl Factory {
    /// Returns the registered name of its controller.
    pub fn name(&self) -> &'static str {
        self.config.name()
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(NoqController::new(&self.config, now, current_mtu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_of_a_window_and_of_a_rate_run_and_others_are_refused_with_a_reason() {
        let valid = valid();
        for name in ["copa", "bbr3", "bbr", "cubic", "newreno", "quicdc", "vegas"] {
            assert!(valid.contains(&name), "{name}: {valid:?}");
        }
        let refusal = |name| factory(name, &[]).unwrap_err().to_string();
        for (name, what) in [
            ("abc", "ECN codepoints of its own"),
            ("prague", "ECN codepoints of its own"),
            ("bmcc", "the mark of each packet"),
            ("xcp", "a header that routers write to"),
            ("sprout", "forecast"),
        ] {
            let text = refusal(name);
            assert!(text.contains(&format!("`{name}` needs")) && text.contains(what), "{text}");
            assert!(text.contains("copa") && !valid.contains(&name), "{text}");
        }
        assert!(refusal("coopa").contains("copa"));
        assert!(factory("copa", &[("delta", "-1")]).is_err());
        assert_eq!(factory("copa", &[("delta", "0.1")]).unwrap().name(), "copa");
    }
}
