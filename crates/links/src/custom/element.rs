//! Path elements from outside.

use alloc::boxed::Box;
use core::fmt::{self, Debug};
use core::marker::PhantomData;

use brakelight_core::custom::{Algorithm, Of, Settings, configure};
use brakelight_core::facts::{BuildError, Options};
use brakelight_core::packet::{BoxedPacket, Duplicate};
use brakelight_core::path::{Departed, Output, PathElement, Site};
use brakelight_core::queue::Dropped;
use brakelight_core::time::Time;

use crate::elements::{AnyElement, ElementConfig, Order, Role};

/// A path element that a program adds to a registry. It may be generic over the packet, as the built-in
/// ones are; what is added is the element for [`BoxedPacket`]s.
pub trait CustomElement:
    Algorithm + PathElement<BoxedPacket> + Clone + Debug + Send + Sync + 'static
{
    /// Returns an element without packets.
    fn build(config: &Self::Config, site: Site) -> Self;

    /// Returns which packets leave it in the order in which they entered it.
    fn order(_config: &Self::Config) -> Order {
        Order::Kept
    }

    /// Returns what it is to a path as a whole.
    fn role(_config: &Self::Config) -> Role {
        Role::Plain
    }
}

/// A path element behind a pointer. Every element for [`BoxedPacket`]s that can be cloned and sent to another
/// thread is one.
pub trait DynElement: PathElement<BoxedPacket> + Debug + Send + Sync {
    /// Returns a copy of it.
    fn clone_boxed(&self) -> Box<dyn DynElement>;
}

impl<E: PathElement<BoxedPacket> + Clone + Debug + Send + Sync + 'static> DynElement for E {
    fn clone_boxed(&self) -> Box<dyn DynElement> {
        Box::new(self.clone())
    }
}

/// A path element or a radio from outside, between a host's packets and the boxed ones for which it is
/// compiled.
pub struct BoxedElement<P, E: ?Sized> {
    pub(super) inner: Box<E>,
    packets: PhantomData<fn() -> P>,
}

impl<P, E: ?Sized> BoxedElement<P, E> {
    /// Returns `element`, for packets of type `P`.
    pub fn new(element: Box<E>) -> Self {
        BoxedElement { inner: element, packets: PhantomData }
    }
}

impl<P, E: ?Sized> Clone for BoxedElement<P, E>
where
    Box<E>: Clone,
{
    fn clone(&self) -> Self {
        BoxedElement::new(self.inner.clone())
    }
}

impl<P, E: ?Sized + Debug> Debug for BoxedElement<P, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<P: Duplicate, E: PathElement<BoxedPacket> + ?Sized> PathElement<P> for BoxedElement<P, E> {
    fn accept(&mut self, now: Time, packet: P) {
        self.inner.accept(now, BoxedPacket::new(packet));
    }

    fn poll(&mut self, now: Time) -> Option<Output<P>> {
        let left = |Departed { at, packet, queued, mark }: Departed<BoxedPacket>| Departed {
            at,
            packet: packet.into_inner(),
            queued,
            mark,
        };
        Some(match self.inner.poll(now)? {
            Output::Departed(departed) => Output::Departed(left(departed)),
            Output::Duplicated(departed) => Output::Duplicated(left(departed)),
            Output::Dropped(Dropped { at, packet, reason }) => {
                Output::Dropped(Dropped { at, packet: packet.into_inner(), reason })
            }
        })
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.inner.next_wakeup()
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.inner.for_each(&mut |packet| visit(packet.inner()));
    }
}

trait ElementSettings: Settings {
    fn clone_boxed(&self) -> Box<dyn ElementSettings>;
    fn order(&self) -> Order;
    fn role(&self) -> Role;
    fn build(&self, site: Site) -> Box<dyn DynElement>;
}

impl<E: CustomElement> ElementSettings for Of<E> {
    fn clone_boxed(&self) -> Box<dyn ElementSettings> {
        Box::new(self.clone())
    }
    fn order(&self) -> Order {
        E::order(&self.0)
    }
    fn role(&self) -> Role {
        E::role(&self.0)
    }
    fn build(&self, site: Site) -> Box<dyn DynElement> {
        Box::new(E::build(&self.0, site))
    }
}

clone_by_box!(DynElement, ElementSettings);

/// The settings of a path element from outside.
#[derive(Clone)]
pub struct CustomElementConfig {
    settings: Box<dyn ElementSettings>,
}

settings_in_a_box!(CustomElementConfig);

impl CustomElementConfig {
    /// Returns the settings of the element with `options` applied in order.
    ///
    /// # Errors
    /// An option is refused.
    pub fn resolve<E: CustomElement>(options: Options<'_>) -> Result<ElementConfig, BuildError> {
        let settings = Box::new(Of::<E>(configure::<E>(options)?));
        Ok(ElementConfig::Custom(CustomElementConfig { settings }))
    }

    pub(crate) fn order(&self) -> Order {
        self.settings.order()
    }

    pub(crate) fn role(&self) -> Role {
        self.settings.role()
    }

    pub(crate) fn build<P: Duplicate>(&self, site: Site) -> AnyElement<P> {
        AnyElement::Custom(BoxedElement::new(self.settings.build(site)))
    }
}
