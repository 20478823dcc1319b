//! Radios from outside.

use alloc::boxed::Box;
use core::fmt::Debug;

use brakelight_core::custom::{Algorithm, Of, Settings, configure};
use brakelight_core::facts::{BuildError, Options};
use brakelight_core::packet::{BoxedPacket, Duplicate};
use brakelight_core::path::{PathElement, Site};
use brakelight_core::time::Time;
use brakelight_core::units::{Bytes, Limit};
use brakelight_routers::QueueConfig;

use super::element::BoxedElement;
use crate::elements::{AnyRadio, RadioConfig};

/// A radio that a program adds to a registry: an element that serves queues of its own, built from the
/// link's queue. It may be generic over the packet, as the built-in ones are; what is added is the radio for
/// [`BoxedPacket`]s.
pub trait CustomRadio: Algorithm + PathElement<BoxedPacket> + Clone + Debug + Send + Sync + 'static {
    /// Returns a radio without packets, whose queues hold at most `limit` each.
    fn build(config: &Self::Config, queue: &QueueConfig, limit: Limit, site: Site) -> Self;

    /// Returns what it can carry in `from <= t < to`, used or not.
    fn capacity_between(&self, from: Time, to: Time) -> Bytes;
}

/// A radio behind a pointer. Every [`CustomRadio`] is one.
pub trait DynRadio: PathElement<BoxedPacket> + Debug + Send + Sync {
    /// Returns a copy of it.
    fn clone_boxed(&self) -> Box<dyn DynRadio>;
    /// See [`CustomRadio::capacity_between`].
    fn capacity_between_boxed(&self, from: Time, to: Time) -> Bytes;
}

impl<R: CustomRadio> DynRadio for R {
    fn clone_boxed(&self) -> Box<dyn DynRadio> {
        Box::new(self.clone())
    }
    fn capacity_between_boxed(&self, from: Time, to: Time) -> Bytes {
        self.capacity_between(from, to)
    }
}

impl<P> BoxedElement<P, dyn DynRadio> {
    pub(crate) fn capacity_between(&self, from: Time, to: Time) -> Bytes {
        self.inner.capacity_between_boxed(from, to)
    }
}

trait RadioSettings: Settings {
    fn clone_boxed(&self) -> Box<dyn RadioSettings>;
    fn build(&self, queue: &QueueConfig, limit: Limit, site: Site) -> Box<dyn DynRadio>;
}

impl<R: CustomRadio> RadioSettings for Of<R> {
    fn clone_boxed(&self) -> Box<dyn RadioSettings> {
        Box::new(self.clone())
    }
    fn build(&self, queue: &QueueConfig, limit: Limit, site: Site) -> Box<dyn DynRadio> {
        Box::new(R::build(&self.0, queue, limit, site))
    }
}

clone_by_box!(DynRadio, RadioSettings);

/// The settings of a radio from outside.
#[derive(Clone)]
pub struct CustomRadioConfig {
    settings: Box<dyn RadioSettings>,
}

settings_in_a_box!(CustomRadioConfig);

impl CustomRadioConfig {
    /// Returns the settings of the radio with `options` applied in order.
    ///
    /// # Errors
    /// An option is refused.
    pub fn resolve<R: CustomRadio>(options: Options<'_>) -> Result<RadioConfig, BuildError> {
        let settings = Box::new(Of::<R>(configure::<R>(options)?));
        Ok(RadioConfig::Custom(CustomRadioConfig { settings }))
    }

    pub(crate) fn build<P: Duplicate>(&self, queue: &QueueConfig, limit: Limit, site: Site) -> AnyRadio<P> {
        AnyRadio::Custom(BoxedElement::new(self.settings.build(queue, limit, site)))
    }
}
