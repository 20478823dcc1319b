//! Hosts from outside, and their controllers as controllers of the registry.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use alloc::sync::Arc;
use core::any::Any;
use core::fmt;

use brakelight_core::controller::{AckEvent, Connection, Controller, LossEvent, TimeoutEvent};
use brakelight_core::custom::Settings;
use brakelight_core::ecn::Encoding;
use brakelight_core::facts::{BuildError, Host, Needs, Options};
use brakelight_core::host::{About, HostFactory, Pair, Setup};
use brakelight_core::parameters::{OptionValues, ParameterError};
use brakelight_core::time::Duration;
use brakelight_core::units::Bytes;

use super::controller::ControllerSettings;
use super::{CustomControllerConfig, DynController, FindFeedback};
use crate::ControllerConfig;

/// The pseudo-option by which the identity of a run tells versions of a host apart. It may be given, and must
/// then be the version that is there.
const VERSION: &str = "version";

/// The controller of a host from outside, with its settings: what a flow needs to have both ends of that
/// host.
#[derive(Clone)]
pub struct HostedConfig {
    name: &'static str,
    factory: Arc<dyn HostFactory>,
    /// With the version.
    settings: OptionValues,
    /// Without it.
    own: OptionValues,
}

impl HostedConfig {
    /// Returns the settings of the host's controller called `name` with `options` applied in order.
    ///
    /// # Errors
    /// An option is refused, or names a version that is not there.
    pub fn resolve(
        name: &'static str,
        factory: &Arc<dyn HostFactory>,
        options: Options<'_>,
        feedback: FindFeedback<'_>,
    ) -> Result<ControllerConfig, BuildError> {
        let refused = |error| BuildError::Option { name, error };
        let version = factory.about().version;
        let own = |option: &&(&str, &str)| option.0 != VERSION;
        if let Some((_, given)) = options.iter().find(|option| !own(option) && option.1 != version) {
            let reason = format!("version = `{given}` is not there: this build has {version}");
            return Err(refused(ParameterError::Conflict { reason }));
        }
        let options: alloc::vec::Vec<(&str, &str)> = options.iter().filter(own).copied().collect();
        let own = factory.settings(name, &options).map_err(refused)?;
        let mut settings = own.clone();
        settings.push((VERSION, version.to_string()));
        let hosted = HostedConfig { name, factory: factory.clone(), settings, own };
        Ok(ControllerConfig::Custom(CustomControllerConfig {
            settings: Box::new(hosted),
            feedback: Box::new(feedback(NEEDS.feedback, &[])?),
        }))
    }

    /// Returns the controller's registered name: `host/controller`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns what the host is.
    pub fn about(&self) -> About {
        self.factory.about()
    }

    /// Returns both ends of a connection over a path that carries UDP payloads of up to `datagram` bytes,
    /// with its own stream of random numbers.
    ///
    /// # Errors
    /// The reason, in words, why there can be no such connection.
    pub fn pair(
        &self,
        datagram: u16,
        random: brakelight_core::random::Random,
    ) -> Result<Pair, alloc::string::String> {
        self.factory.pair(&Setup { controller: self.name, settings: &self.own, datagram, random })
    }
}

/// What every controller of a host needs.
const NEEDS: Needs = Needs { host: Host::Quic, ..Needs::PLAIN };

/// As the settings themselves.
impl fmt::Debug for HostedConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.name).field(&self.settings).finish()
    }
}

/// By name, version and settings.
impl PartialEq for HostedConfig {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.settings == other.settings
    }
}

impl Settings for HostedConfig {
    fn name(&self) -> &'static str {
        self.name
    }
    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self == other)
    }
    fn settings(&self) -> OptionValues {
        self.settings.clone()
    }
}

impl ControllerSettings for HostedConfig {
    fn clone_boxed(&self) -> Box<dyn ControllerSettings> {
        Box::new(self.clone())
    }
    fn needs(&self) -> Needs {
        NEEDS
    }
    fn feedback_options(&self) -> Options<'static> {
        &[]
    }
    fn survives_without_marks(&self) -> bool {
        true
    }
    fn delay_threshold(&self) -> Option<Duration> {
        None
    }
    fn build(&self, connection: &Connection) -> Box<dyn DynController> {
        Box::new(Elsewhere { cwnd: connection.initial_window, encoding: self.about().encoding })
    }
    fn hosted(&self) -> Option<&HostedConfig> {
        Some(self)
    }
}

/// Stands for a controller that lives in its own host, where only its ECN encoding is asked for. Hosts that
/// are not its own refuse it.
#[derive(Clone, Debug)]
struct Elsewhere {
    cwnd: Bytes,
    encoding: Encoding,
}

impl Controller for Elsewhere {
    fn on_ack(&mut self, _event: &AckEvent<'_>) {}
    fn on_loss(&mut self, _event: &LossEvent) {}
    fn on_timeout(&mut self, _event: &TimeoutEvent) {}
    fn cwnd(&self) -> Bytes {
        self.cwnd
    }
    fn encoding(&self) -> Encoding {
        self.encoding
    }
}
