//! Queues from outside.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::{self, Debug};
use core::marker::PhantomData;

use brakelight_core::custom::{Algorithm, Named, Of, Settings, configure, without_parameters};
use brakelight_core::ecn::Encoding;
use brakelight_core::facts::{BuildError, Options, Traits};
use brakelight_core::packet::{BoxedPacket, Duplicate};
use brakelight_core::parameters::{OptionValues, Parameter, ParameterError};
use brakelight_core::queue::{Backlog, Dequeued, Dropped, Drops, LinkKind, LinkView, Misfit, Place, Queue};
use brakelight_core::time::Time;
use brakelight_core::units::Limit;

use crate::{AnyQueue, QueueConfig};

/// A queue that a program adds to a registry. It may be generic over the packet, as the built-in ones
/// are; what is added is the queue of [`BoxedPacket`]s.
pub trait CustomQueue: Algorithm + Queue<BoxedPacket> + Clone + Debug + Send + Sync + 'static {
    /// What it is, whatever its settings. The queue that takes its place beside others must be in the
    /// registry before it.
    const TRAITS: Traits = Traits::PLAIN;

    /// Returns an empty queue.
    fn build(config: &Self::Config, place: &Place) -> Self;

    /// Returns the encoding whose marks it gives, if that is neither none nor ordinary ECN's CE.
    fn own_encoding(_config: &Self::Config) -> Option<Encoding> {
        None
    }

    /// Returns `true` if it asks the link what it could have carried ([`LinkView::capacity`]), which a real
    /// router must measure or be told.
    fn needs_link_rate(_config: &Self::Config) -> bool {
        false
    }

    /// Returns `true` if it serves flows of its own encoding and others in different ways, by flow.
    fn tells_flows_apart(_config: &Self::Config) -> bool {
        false
    }

    /// Returns up to which limit it fills behind `buffer`, if it drops nothing before it is full.
    fn fills_up_to(_config: &Self::Config, _buffer: Limit) -> Option<Limit> {
        None
    }

    /// Returns an error if its settings do not fit a link of this kind.
    fn fits(_config: &Self::Config, _link: &LinkKind) -> Result<(), Misfit> {
        Ok(())
    }
}

/// Builds a queue whose name is known only at run time, and for which no type of its own stands: what a
/// binding to another language adds.
pub trait QueueFactory: Debug + Send + Sync + 'static {
    /// Returns what the queue is.
    fn traits(&self) -> Traits {
        Traits::PLAIN
    }

    /// Returns the encoding whose marks it gives, if that is neither none nor ordinary ECN's CE.
    fn own_encoding(&self) -> Option<Encoding> {
        None
    }

    /// Returns `true` if it asks the link what it could have carried ([`LinkView::capacity`]), which a real
    /// router must measure or be told.
    fn needs_link_rate(&self) -> bool {
        false
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

    /// Returns an empty queue.
    fn build(&self, place: &Place) -> Box<dyn DynQueue>;

    /// Returns one with `settings`, as [`settings`](Self::settings) returned them.
    fn build_with(&self, _settings: &OptionValues, place: &Place) -> Box<dyn DynQueue> {
        self.build(place)
    }
}

/// A queue behind a pointer. Every queue of [`BoxedPacket`]s that can be cloned and sent to another thread is
/// one. The methods are those of [`Queue`], under names of their own so that a call on a queue is not
/// ambiguous.
pub trait DynQueue: Debug + Send + Sync {
    /// Returns a copy of it.
    fn clone_boxed(&self) -> Box<dyn DynQueue>;
    /// See [`Queue::enqueue`].
    fn enqueue_boxed(
        &mut self,
        now: Time,
        packet: BoxedPacket,
        link: &mut dyn LinkView,
        drops: &mut Drops<BoxedPacket>,
    );
    /// See [`Queue::dequeue`].
    fn dequeue_boxed(
        &mut self,
        now: Time,
        link: &mut dyn LinkView,
        drops: &mut Drops<BoxedPacket>,
    ) -> Option<Dequeued<BoxedPacket>>;
    /// See [`Queue::backlog`].
    fn backlog_boxed(&self) -> Backlog;
    /// See [`Queue::held_until`].
    fn held_until_boxed(&self) -> Time;
    /// See [`Queue::waiting_since`].
    fn waiting_since_boxed(&self) -> Option<Time>;
    /// See [`Queue::inspect`].
    fn inspect_boxed(&self, visit: &mut dyn FnMut(&'static str, f64));
    /// See [`Queue::for_each`].
    fn for_each_boxed(&self, visit: &mut dyn FnMut(&BoxedPacket));
}

impl<Q: Queue<BoxedPacket> + Clone + Debug + Send + Sync + 'static> DynQueue for Q {
    fn clone_boxed(&self) -> Box<dyn DynQueue> {
        Box::new(self.clone())
    }
    fn enqueue_boxed(
        &mut self,
        now: Time,
        packet: BoxedPacket,
        mut link: &mut dyn LinkView,
        drops: &mut Drops<BoxedPacket>,
    ) {
        Queue::enqueue(self, now, packet, &mut link, drops);
    }
    fn dequeue_boxed(
        &mut self,
        now: Time,
        mut link: &mut dyn LinkView,
        drops: &mut Drops<BoxedPacket>,
    ) -> Option<Dequeued<BoxedPacket>> {
        Queue::dequeue(self, now, &mut link, drops)
    }
    fn backlog_boxed(&self) -> Backlog {
        Queue::backlog(self)
    }
    fn held_until_boxed(&self) -> Time {
        Queue::held_until(self)
    }
    fn waiting_since_boxed(&self) -> Option<Time> {
        Queue::waiting_since(self)
    }
    fn inspect_boxed(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        Queue::inspect(self, visit);
    }
    fn for_each_boxed(&self, visit: &mut dyn FnMut(&BoxedPacket)) {
        Queue::for_each(self, visit);
    }
}

/// A queue from outside, between a host's packets and the boxed ones for which it is compiled.
pub struct BoxedQueue<P> {
    inner: Box<dyn DynQueue>,
    /// Kept between calls for its memory alone.
    drops: Drops<BoxedPacket>,
    packets: PhantomData<fn() -> P>,
}

impl<P> BoxedQueue<P> {
    /// Returns `queue`, for packets of type `P`.
    pub fn new(queue: Box<dyn DynQueue>) -> Self {
        BoxedQueue { inner: queue, drops: Vec::new(), packets: PhantomData }
    }
}

impl<P> Clone for BoxedQueue<P> {
    fn clone(&self) -> Self {
        BoxedQueue::new(self.inner.clone())
    }
}

impl<P> Debug for BoxedQueue<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<P: Duplicate> BoxedQueue<P> {
    fn pass_drops_on(&mut self, drops: &mut Drops<P>) {
        drops.extend(self.drops.drain(..).map(|Dropped { at, packet, reason }| Dropped {
            at,
            packet: packet.into_inner(),
            reason,
        }));
    }
}

impl<P: Duplicate> Queue<P> for BoxedQueue<P> {
    fn enqueue(&mut self, now: Time, packet: P, link: &mut impl LinkView, drops: &mut Drops<P>) {
        self.inner.enqueue_boxed(now, BoxedPacket::new(packet), link, &mut self.drops);
        self.pass_drops_on(drops);
    }

    fn dequeue(&mut self, now: Time, link: &mut impl LinkView, drops: &mut Drops<P>) -> Option<Dequeued<P>> {
        let dequeued = self.inner.dequeue_boxed(now, link, &mut self.drops);
        self.pass_drops_on(drops);
        let Dequeued { packet, arrived, mark } = dequeued?;
        Some(Dequeued { packet: packet.into_inner(), arrived, mark })
    }

    fn backlog(&self) -> Backlog {
        self.inner.backlog_boxed()
    }

    fn held_until(&self) -> Time {
        self.inner.held_until_boxed()
    }

    fn waiting_since(&self) -> Option<Time> {
        self.inner.waiting_since_boxed()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.inner.inspect_boxed(visit);
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.inner.for_each_boxed(&mut |packet| visit(packet.inner()));
    }
}

trait QueueSettings: Settings {
    fn clone_boxed(&self) -> Box<dyn QueueSettings>;
    fn traits(&self) -> Traits;
    fn own_encoding(&self) -> Option<Encoding>;
    fn needs_link_rate(&self) -> bool;
    fn tells_flows_apart(&self) -> bool;
    fn fills_up_to(&self, buffer: Limit) -> Option<Limit>;
    fn fits(&self, link: &LinkKind) -> Result<(), Misfit>;
    fn build(&self, place: &Place) -> Box<dyn DynQueue>;
}

impl<Q: CustomQueue> QueueSettings for Of<Q> {
    fn clone_boxed(&self) -> Box<dyn QueueSettings> {
        Box::new(self.clone())
    }
    fn traits(&self) -> Traits {
        Q::TRAITS
    }
    fn own_encoding(&self) -> Option<Encoding> {
        Q::own_encoding(&self.0)
    }
    fn needs_link_rate(&self) -> bool {
        Q::needs_link_rate(&self.0)
    }
    fn tells_flows_apart(&self) -> bool {
        Q::tells_flows_apart(&self.0)
    }
    fn fills_up_to(&self, buffer: Limit) -> Option<Limit> {
        Q::fills_up_to(&self.0, buffer)
    }
    fn fits(&self, link: &LinkKind) -> Result<(), Misfit> {
        Q::fits(&self.0, link)
    }
    fn build(&self, place: &Place) -> Box<dyn DynQueue> {
        Box::new(Q::build(&self.0, place))
    }
}

impl QueueSettings for Named<dyn QueueFactory> {
    fn clone_boxed(&self) -> Box<dyn QueueSettings> {
        Box::new(self.clone())
    }
    fn traits(&self) -> Traits {
        self.factory.traits()
    }
    fn own_encoding(&self) -> Option<Encoding> {
        self.factory.own_encoding()
    }
    fn needs_link_rate(&self) -> bool {
        self.factory.needs_link_rate()
    }
    fn tells_flows_apart(&self) -> bool {
        false
    }
    fn fills_up_to(&self, _buffer: Limit) -> Option<Limit> {
        None
    }
    fn fits(&self, _link: &LinkKind) -> Result<(), Misfit> {
        Ok(())
    }
    fn build(&self, place: &Place) -> Box<dyn DynQueue> {
        self.factory.build_with(&self.settings, place)
    }
}

clone_by_box!(DynQueue, QueueSettings);

/// Finds a queue by its name, and applies options.
pub type FindQueue<'a> = &'a dyn Fn(&str, Options<'_>) -> Result<QueueConfig, BuildError>;

/// The settings of a queue from outside, with the queue that takes its place beside others.
#[derive(Clone)]
pub struct CustomQueueConfig {
    settings: Box<dyn QueueSettings>,
    beside_others: Option<Box<QueueConfig>>,
}

settings_in_a_box!(CustomQueueConfig);

impl CustomQueueConfig {
    /// Returns the settings of a `Q` with `options` applied in order. `queue` finds the queue that takes its
    /// place beside others.
    ///
    /// # Errors
    /// An option is refused, or that queue is not found.
    pub fn resolve<Q: CustomQueue>(
        options: Options<'_>,
        queue: FindQueue<'_>,
    ) -> Result<QueueConfig, BuildError> {
        let settings = Box::new(Of::<Q>(configure::<Q>(options)?));
        let beside_others = Q::TRAITS.beside_others.map(|name| queue(name, options)).transpose()?;
        let beside_others = beside_others.map(Box::new);
        Ok(QueueConfig::Custom(CustomQueueConfig { settings, beside_others }))
    }

    /// Returns the settings of a queue that a factory builds.
    ///
    /// # Errors
    /// The factory refused an option.
    pub fn named(named: &Named<dyn QueueFactory>, options: Options<'_>) -> Result<QueueConfig, BuildError> {
        let settings = Box::new(named.set(named.factory.settings(options))?);
        Ok(QueueConfig::Custom(CustomQueueConfig { settings, beside_others: None }))
    }

    pub(crate) fn traits(&self) -> Traits {
        self.settings.traits()
    }

    pub(crate) fn own_encoding(&self) -> Option<Encoding> {
        self.settings.own_encoding()
    }

    pub(crate) fn needs_link_rate(&self) -> bool {
        self.settings.needs_link_rate()
    }

    pub(crate) fn tells_flows_apart(&self) -> bool {
        self.settings.tells_flows_apart()
    }

    pub(crate) fn fills_up_to(&self, buffer: Limit) -> Option<Limit> {
        self.settings.fills_up_to(buffer)
    }

    pub(crate) fn fits(&self, link: &LinkKind) -> Result<(), Misfit> {
        self.settings.fits(link)
    }

    /// The queue that takes its place, with the same options, where flows pass that do not speak its
    /// encoding.
    pub fn beside_others(&self) -> Option<&QueueConfig> {
        self.beside_others.as_deref()
    }

    pub(crate) fn build<P: Duplicate>(&self, place: &Place) -> AnyQueue<P> {
        AnyQueue::Custom(BoxedQueue::new(self.settings.build(place)))
    }
}
