//! Feedbacks from outside.

use alloc::boxed::Box;
use core::fmt::Debug;

use super::{Algorithm, Of, Settings, clone_by_box, configure, settings_in_a_box};
use crate::feedback::{Feedback, Receiver};
use crate::registry::{AnyFeedback, BuildError, Carries, FeedbackConfig, Options, Protocol, Registry};

/// A feedback that a program adds to a [`Registry`].
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
    pub(in crate::registry) fn resolve<F: CustomFeedback>(
        _registry: &Registry,
        options: Options<'_>,
    ) -> Result<FeedbackConfig, BuildError> {
        let settings = Box::new(Of::<F>(configure::<F>(options)?));
        Ok(FeedbackConfig::Custom(CustomFeedbackConfig { settings }))
    }

    pub(in crate::registry) fn carries(&self) -> Carries {
        self.settings.carries()
    }

    pub(in crate::registry) fn protocol(&self) -> Option<Protocol> {
        self.settings.protocol()
    }

    pub(in crate::registry) fn build(&self, receiver: &Receiver) -> AnyFeedback {
        AnyFeedback::Custom(self.settings.build(receiver))
    }
}
