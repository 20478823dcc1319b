//! Controllers from outside.

use alloc::boxed::Box;
use core::fmt::Debug;

use brakelight_core::controller::{Connection, Controller};
use brakelight_core::custom::{Algorithm, Named, Of, Settings, configure, without_parameters};
use brakelight_core::facts::{BuildError, Needs, Options};
use brakelight_core::parameters::{OptionValues, Parameter, ParameterError};
use brakelight_core::time::Duration;

use super::HostedConfig;
use crate::{AnyController, ControllerConfig, FeedbackConfig};

/// A controller that a program adds to a registry.
pub trait CustomController: Algorithm + Controller + Clone + Debug + Send + Sync + 'static {
    /// What it needs of its receiver, its routers and its host. The feedback and the queue that it names must
    /// be in the registry before it.
    const NEEDS: Needs = Needs::PLAIN;

    /// Returns an instance for a new connection.
    fn build(config: &Self::Config, connection: &Connection) -> Self;

    /// Returns options of the feedback it brings that its own settings ask for.
    fn feedback_options(_config: &Self::Config) -> Options<'static> {
        &[]
    }

    /// Returns `true` if it still answers congestion where the path clears the ECN field.
    fn survives_without_marks(_config: &Self::Config) -> bool {
        true
    }

    /// Returns the one-way queueing delay at which it reacts, where its settings say one.
    fn delay_threshold(_config: &Self::Config) -> Option<Duration> {
        None
    }
}

/// Builds a controller whose name is known only at run time, and for which no type of its own stands: what a
/// binding to another language adds.
pub trait ControllerFactory: Debug + Send + Sync + 'static {
    /// Returns what the controller needs of its receiver, its routers and its host.
    fn needs(&self) -> Needs {
        Needs::PLAIN
    }

    /// Returns its parameters: none unless a factory says otherwise.
    fn parameters(&self) -> &'static [Parameter] {
        &[]
    }

    /// Returns every parameter with its value in canonical form, once `options` are applied in order.
    ///
    /// # Errors
    /// An option is unknown, or its value is refused.
    fn settings(&self, options: Options<'_>) -> Result<OptionValues, ParameterError> {
        without_parameters(options)
    }

    /// Returns an instance for a new connection.
    fn build(&self, connection: &Connection) -> Box<dyn DynController>;

    /// Returns an instance with `settings`, as [`settings`](Self::settings) returned them.
    fn build_with(&self, _settings: &OptionValues, connection: &Connection) -> Box<dyn DynController> {
        self.build(connection)
    }
}

/// A controller behind a pointer. Every controller that can be cloned and sent to another thread is one.
pub trait DynController: Controller + Debug + Send + Sync {
    /// Returns a copy of it.
    fn clone_boxed(&self) -> Box<dyn DynController>;
}

impl<C: Controller + Clone + Debug + Send + Sync + 'static> DynController for C {
    fn clone_boxed(&self) -> Box<dyn DynController> {
        Box::new(self.clone())
    }
}

pub(super) trait ControllerSettings: Settings {
    fn clone_boxed(&self) -> Box<dyn ControllerSettings>;
    fn needs(&self) -> Needs;
    fn feedback_options(&self) -> Options<'static>;
    fn survives_without_marks(&self) -> bool;
    fn delay_threshold(&self) -> Option<Duration>;
    fn build(&self, connection: &Connection) -> Box<dyn DynController>;
    fn hosted(&self) -> Option<&HostedConfig> {
        None
    }
}

impl<C: CustomController> ControllerSettings for Of<C> {
    fn clone_boxed(&self) -> Box<dyn ControllerSettings> {
        Box::new(self.clone())
    }
    fn needs(&self) -> Needs {
        C::NEEDS
    }
    fn feedback_options(&self) -> Options<'static> {
        C::feedback_options(&self.0)
    }
    fn survives_without_marks(&self) -> bool {
        C::survives_without_marks(&self.0)
    }
    fn delay_threshold(&self) -> Option<Duration> {
        C::delay_threshold(&self.0)
    }
    fn build(&self, connection: &Connection) -> Box<dyn DynController> {
        Box::new(C::build(&self.0, connection))
    }
}

impl ControllerSettings for Named<dyn ControllerFactory> {
    fn clone_boxed(&self) -> Box<dyn ControllerSettings> {
        Box::new(self.clone())
    }
    fn needs(&self) -> Needs {
        self.factory.needs()
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
        self.factory.build_with(&self.settings, connection)
    }
}

clone_by_box!(DynController, ControllerSettings);

/// Finds a feedback by its name, and applies options.
pub type FindFeedback<'a> = &'a dyn Fn(&str, Options<'_>) -> Result<FeedbackConfig, BuildError>;

/// The settings of a controller from outside, with the feedback that it brings.
#[derive(Clone)]
pub struct CustomControllerConfig {
    pub(super) settings: Box<dyn ControllerSettings>,
    pub(super) feedback: Box<FeedbackConfig>,
}

settings_in_a_box!(CustomControllerConfig);

impl CustomControllerConfig {
    /// Returns the settings of a `C` with `options` applied in order.
    ///
    /// # Errors
    /// An option is refused, or the feedback that it names is not found.
    pub fn resolve<C: CustomController>(
        options: Options<'_>,
        feedback: FindFeedback<'_>,
    ) -> Result<ControllerConfig, BuildError> {
        let config = configure::<C>(options)?;
        let feedback = Box::new(feedback(C::NEEDS.feedback, C::feedback_options(&config))?);
        let settings = Box::new(Of::<C>(config));
        Ok(ControllerConfig::Custom(CustomControllerConfig { settings, feedback }))
    }

    /// Returns the settings of a controller that a factory builds.
    ///
    /// # Errors
    /// The factory refused an option, or the feedback that it names is not found.
    pub fn named(
        named: &Named<dyn ControllerFactory>,
        options: Options<'_>,
        feedback: FindFeedback<'_>,
    ) -> Result<ControllerConfig, BuildError> {
        let settings = Box::new(named.set(named.factory.settings(options))?);
        let feedback = Box::new(feedback(named.factory.needs().feedback, &[])?);
        Ok(ControllerConfig::Custom(CustomControllerConfig { settings, feedback }))
    }

    /// Returns the host from outside that it lives in, if it does.
    pub fn hosted(&self) -> Option<&HostedConfig> {
        self.settings.hosted()
    }

    pub(crate) fn needs(&self) -> Needs {
        self.settings.needs()
    }

    pub(crate) fn feedback_options(&self) -> Options<'static> {
        self.settings.feedback_options()
    }

    pub(crate) fn survives_without_marks(&self) -> bool {
        self.settings.survives_without_marks()
    }

    pub(crate) fn delay_threshold(&self) -> Option<Duration> {
        self.settings.delay_threshold()
    }

    pub(crate) fn feedback(&self) -> FeedbackConfig {
        (*self.feedback).clone()
    }

    pub(crate) fn build(&self, connection: &Connection) -> AnyController {
        AnyController::Custom(self.settings.build(connection))
    }
}
