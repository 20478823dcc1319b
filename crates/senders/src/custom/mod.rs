//! Controllers, feedbacks and hosts from outside: what a program adds at run time.

mod controller;
mod feedback;
mod host;

pub use controller::{
    ControllerFactory, CustomController, CustomControllerConfig, DynController, FindFeedback,
};
pub use feedback::{CustomFeedback, CustomFeedbackConfig, DynFeedback};
pub use host::HostedConfig;
