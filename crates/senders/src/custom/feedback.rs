//! Feedbacks from outside.

use alloc::boxed::Box;
use core::fmt::Debug;

use brakelight_core::custom::{Algorithm, Of, Settings, configure};
use brakelight_core::facts::{BuildError, Carries, Options, Protocol};
use brakelight_core::feedback::{Feedback, Receiver};

use crate::{AnyFeedback, FeedbackConfig};

/// A feedback that a program adds to a registry.
pub trait CustomFeedback: Algorithm + Feedback + Clone + Debug + Send + Sync + 'static {
    /// The protocol with whose other parts it shares constants.
    const PROTOCOL: Option<Protocol> = None;

    /// An instance for a new connection.
    fn build(config: &Self::Config, receiver: &Receiver) -> Self;

    /// Returns what its ACKs carry besides acknowledgements and counts of marks.
    fn carries(_config: &Self::Config) -> Carries {
        Carries::Nothing
    }
}

/// A feedback behind a pointer. Every feedback that can be cloned and sent to another thread is one.
pub trait DynFeedback: Feedback + Debug + Send + Sync {
    /// Returns a copy of it.
    fn clone_boxed(&self) -> Box<dyn DynFeedback>;
}

impl<F: Feedback + Clone + Debug + Send + Sync + 'static> DynFeedback for F {
    fn clone_boxed(&self) -> Box<dyn DynFeedback> {
        Box::new(self.clone())
    }
}

trait FeedbackSettings: Settings {
    fn clone_boxed(&self) -> Box<dyn FeedbackSettings>;
    fn carries(&self) -> Carries;
    fn protocol(&self) -> Option<Protocol>;
    fn build(&self, receiver: &Receiver) -> Box<dyn DynFeedback>;
}

impl<F: CustomFeedback> FeedbackSettings for Of<F> {
    fn clone_boxed(&self) -> Box<dyn FeedbackSettings> {
        Box::new(self.clone())
    }
    fn carries(&self) -> Carries {
        F::carries(&self.0)
    }
    fn protocol(&self) -> Option<Protocol> {
        F::PROTOCOL
    }
    fn build(&self, receiver: &Receiver) -> Box<dyn DynFeedback> {
        Box::new(F::build(&self.0, receiver))
    }
}

clone_by_box!(DynFeedback, FeedbackSettings);

/// The settings of a feedback from outside.
#[derive(Clone)]
pub struct CustomFeedbackConfig {
    settings: Box<dyn FeedbackSettings>,
}

settings_in_a_box!(CustomFeedbackConfig);

impl CustomFeedbackConfig {
    /// Returns the settings of an `F` with `options` applied in order.
    ///
    /// # Errors
    /// An option is refused.
    pub fn resolve<F: CustomFeedback>(options: Options<'_>) -> Result<FeedbackConfig, BuildError> {
        let settings = Box::new(Of::<F>(configure::<F>(options)?));
        Ok(FeedbackConfig::Custom(CustomFeedbackConfig { settings }))
    }

    pub(crate) fn carries(&self) -> Carries {
        self.settings.carries()
    }

    pub(crate) fn protocol(&self) -> Option<Protocol> {
        self.settings.protocol()
    }

    pub(crate) fn build(&self, receiver: &Receiver) -> AnyFeedback {
        AnyFeedback::Custom(self.settings.build(receiver))
    }
}
