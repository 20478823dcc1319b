//! Finding algorithms by their names, and adding them.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

use brakelight_core::controller::{Connection, Controller};
use brakelight_core::custom::{self, Algorithm, Named};
use brakelight_core::facts::{BuildError, Entry, Listed, Options, Routers, find, is_called, unknown};
use brakelight_core::host::{HostFactory, HostedController};
use brakelight_core::parameters::Parameter;
use brakelight_core::random::Random;
use brakelight_core::time::Time;
use brakelight_core::units::Bytes;
use brakelight_links::elements::{ELEMENTS, ElementConfig, RADIOS, RadioConfig};
use brakelight_links::{CustomElement, CustomElementConfig, CustomRadio, CustomRadioConfig};
use brakelight_routers::{CustomQueue, CustomQueueConfig, QUEUES, QueueConfig, QueueFactory};
use brakelight_senders::{
    CONTROLLERS, ControllerConfig, ControllerFactory, CustomController, CustomControllerConfig,
    CustomFeedback, CustomFeedbackConfig, FEEDBACKS, FeedbackConfig, HostedConfig,
};

use super::DEFAULT_QUEUE;

/// The algorithms that names in scenarios and scheme strings can mean.
///
/// A registry is a value: whoever reads a scenario or a scheme says which one it is read with.
/// [`Registry::standard`] holds what Brakelight brings. A program adds its own algorithms to it; they are
/// then found by name as the built-in ones are.
///
/// ```
/// use brakelight_registry::Registry;
///
/// let registry = Registry::standard();
/// let config = registry.queue("codel", &[("target", "20ms")]).unwrap();
/// assert_eq!(config.name(), "codel");
/// assert!(registry.controllers().any(|entry| entry.name == "cubic"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Registry {
    controllers: Vec<Added<ControllerConfig>>,
    feedbacks: Vec<Added<FeedbackConfig>>,
    queues: Vec<Added<QueueConfig>>,
    elements: Vec<Added<ElementConfig>>,
    radios: Vec<Added<RadioConfig>>,
    applications: Vec<Added<AnyConfig>>,
    hosts: Vec<AddedHost>,
}

/// A host that a program added, by its name.
type AddedHost = (&'static str, Arc<dyn HostFactory>);

/// The settings of something that this crate does not know.
pub type AnyConfig = Box<dyn Any + Send + Sync>;

/// How the settings of an algorithm are made of its options.
type Resolve<C> = Arc<dyn Fn(&Registry, Options<'_>) -> Result<C, BuildError> + Send + Sync>;

/// An algorithm that a program added.
struct Added<C> {
    entry: Entry,
    /// How the names of files end that stand for it, and the option that takes them.
    files: Option<(&'static str, &'static str)>,
    resolve: Resolve<C>,
}

impl<C> fmt::Debug for Added<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entry.fmt(f)
    }
}

impl<C> Clone for Added<C> {
    fn clone(&self) -> Self {
        Added { entry: self.entry.clone(), files: self.files, resolve: self.resolve.clone() }
    }
}

/// Why an algorithm could not be added.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterError {
    /// Its name, or another name for it, cannot stand in a scheme string.
    Malformed {
        /// `controller`, `feedback`, `queue`, `path element`, `radio` or `application`.
        kind: &'static str,
        /// The name as given.
        name: &'static str,
    },
    /// An algorithm of the same kind has one of its names.
    Taken {
        /// What it is.
        kind: &'static str,
        /// The name as given.
        name: &'static str,
        /// The registered name of the one that has it.
        by: &'static str,
    },
    /// It cannot be built from its defaults, or something that it names is not in the registry.
    Refused {
        /// What it is.
        kind: &'static str,
        /// Its name.
        name: &'static str,
        /// Why.
        error: BuildError,
    },
    /// The queue that a controller brings does not serve it.
    Unserved {
        /// The controller.
        name: &'static str,
        /// The queue.
        queue: &'static str,
        /// What the queue does not do.
        lacks: String,
    },
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegisterError::Malformed { kind, name } => write!(
                f,
                "`{name}` cannot be the name of a {kind}: valid are lower-case letters, digits, `-` and `_`, \
                 beginning with a letter"
            ),
            RegisterError::Taken { kind, name, by } if name == by => {
                write!(f, "`{name}` is the name of another {kind}: choose another name")
            }
            RegisterError::Taken { kind, name, by } => {
                write!(f, "`{name}` is another name for the {kind} `{by}`: choose another name")
            }
            RegisterError::Refused { kind, name, error } => {
                write!(f, "the {kind} `{name}` cannot be added: {error}")
            }
            RegisterError::Unserved { name, queue, lacks } => {
                write!(f, "the controller `{name}` cannot be added: its queue `{queue}` does not {lacks}")
            }
        }
    }
}

impl core::error::Error for RegisterError {}

/// The standard entries, and after them what was added.
fn all<'a, C>(standard: &'a [Entry], added: &'a [Added<C>]) -> impl Iterator<Item = &'a Entry> + Clone {
    standard.iter().chain(added.iter().map(|added| &added.entry))
}

impl Registry {
    /// Returns what Brakelight brings.
    pub const fn standard() -> Self {
        Registry {
            controllers: Vec::new(),
            feedbacks: Vec::new(),
            queues: Vec::new(),
            elements: Vec::new(),
            radios: Vec::new(),
            applications: Vec::new(),
            hosts: Vec::new(),
        }
    }

    /// Returns every controller.
    pub fn controllers(&self) -> impl Iterator<Item = &Entry> + Clone {
        all(CONTROLLERS, &self.controllers)
    }

    /// Returns every feedback.
    pub fn feedbacks(&self) -> impl Iterator<Item = &Entry> + Clone {
        all(FEEDBACKS, &self.feedbacks)
    }

    /// Returns every queue.
    pub fn queues(&self) -> impl Iterator<Item = &Entry> + Clone {
        all(QUEUES, &self.queues)
    }

    /// Returns every path element but links and radios.
    pub fn elements(&self) -> impl Iterator<Item = &Entry> + Clone {
        all(ELEMENTS, &self.elements)
    }

    /// Returns every radio.
    pub fn radios(&self) -> impl Iterator<Item = &Entry> + Clone {
        all(RADIOS, &self.radios)
    }

    /// Returns every application that was added.
    pub fn applications(&self) -> impl Iterator<Item = &Entry> + Clone {
        all(&[], &self.applications)
    }

    /// Returns every host that was added, by its name.
    pub fn hosts(&self) -> impl Iterator<Item = (&'static str, &dyn HostFactory)> {
        self.hosts.iter().map(|(name, factory)| (*name, &**factory))
    }

    /// Returns the settings of the controller called `name`, with `options` applied in order.
    ///
    /// # Errors
    /// No controller has the name, or it refuses an option.
    pub fn controller(&self, name: &str, options: Options<'_>) -> Result<ControllerConfig, BuildError> {
        match added(&self.controllers, name) {
            Some(added) => (added.resolve)(self, options),
            None => match name.split_once('/') {
                Some((host, _)) if !self.hosts.iter().any(|(known, _)| *known == host) => {
                    Err(BuildError::NoHost { name: name.to_string(), host: host.to_string() })
                }
                _ => listing(ControllerConfig::new(name, options), self.controllers()),
            },
        }
    }

    /// Returns the controller that the file called `name` stands for in a scheme, by the ending of its name,
    /// and the option that takes the file.
    pub fn controller_of_file(&self, name: &str) -> Option<(&'static str, &'static str)> {
        self.controllers.iter().find_map(|added| {
            let (ending, option) = added.files?;
            (name.len() > ending.len() && name.ends_with(ending)).then_some((added.entry.name, option))
        })
    }

    /// Returns the settings of the feedback called `name`, with `options` applied in order.
    ///
    /// # Errors
    /// No feedback has the name, or it refuses an option.
    pub fn feedback(&self, name: &str, options: Options<'_>) -> Result<FeedbackConfig, BuildError> {
        match added(&self.feedbacks, name) {
            Some(added) => (added.resolve)(self, options),
            None => listing(FeedbackConfig::new(name, options), self.feedbacks()),
        }
    }

    /// Returns the settings of the queue called `name`, with `options` applied in order.
    ///
    /// # Errors
    /// No queue has the name, or it refuses an option.
    pub fn queue(&self, name: &str, options: Options<'_>) -> Result<QueueConfig, BuildError> {
        match added(&self.queues, name) {
            Some(added) => (added.resolve)(self, options),
            None => listing(QueueConfig::new(name, options), self.queues()),
        }
    }

    /// Returns the settings of the path element called `name`, with `options` applied in order.
    ///
    /// # Errors
    /// No path element has the name, or it refuses an option.
    pub fn element(&self, name: &str, options: Options<'_>) -> Result<ElementConfig, BuildError> {
        match added(&self.elements, name) {
            Some(added) => (added.resolve)(self, options),
            None => listing(ElementConfig::new(name, options), self.elements()),
        }
    }

    /// Returns the settings of the radio called `name`, with `options` applied in order.
    ///
    /// # Errors
    /// No radio has the name, or it refuses an option.
    pub fn radio(&self, name: &str, options: Options<'_>) -> Result<RadioConfig, BuildError> {
        match added(&self.radios, name) {
            Some(added) => (added.resolve)(self, options),
            None => listing(RadioConfig::new(name, options), self.radios()),
        }
    }

    /// Returns the settings of the application called `name`, with `options` applied in order, as whoever
    /// added it made them.
    ///
    /// # Errors
    /// No application has the name, or it refuses an option.
    pub fn application(&self, name: &str, options: Options<'_>) -> Result<AnyConfig, BuildError> {
        match added(&self.applications, name) {
            Some(added) => (added.resolve)(self, options),
            None => Err(unknown("application", name, self.applications())),
        }
    }

    /// Adds a controller, after the feedback and the queue that it names.
    ///
    /// # Errors
    /// A name is malformed or taken, its defaults are refused, or the feedback or the queue that it brings is
    /// not there or does not serve it.
    pub fn add_controller<C: CustomController>(&mut self) -> Result<(), RegisterError> {
        self.add_checked_controller(added_by::<C, _>(|registry, options| {
            CustomControllerConfig::resolve::<C>(options, &|name, options| registry.feedback(name, options))
        }))
    }

    /// Adds the controller that `factory` builds under the name `name`: one for which no type stands.
    /// `summary` says in one line what it is.
    ///
    /// # Errors
    /// As of [`add_controller`](Self::add_controller).
    pub fn add_controller_factory(
        &mut self,
        name: &'static str,
        summary: &'static str,
        factory: Arc<dyn ControllerFactory>,
    ) -> Result<(), RegisterError> {
        let entry = plain_entry(name, summary, factory.parameters());
        let named = Named::new(name, factory);
        let resolve = move |registry: &Registry, options: Options<'_>| {
            CustomControllerConfig::named(&named, options, &|name, options| registry.feedback(name, options))
        };
        self.add_checked_controller(Added { entry, files: None, resolve: Arc::new(resolve) })
    }

    fn add_checked_controller(&mut self, added: Added<ControllerConfig>) -> Result<(), RegisterError> {
        const KIND: &str = "controller";
        let name = added.entry.name;
        check(KIND, &added.entry, self.controllers())?;
        let config = (added.resolve)(self, &[]).map_err(refused(KIND, name))?;
        let needs = config.needs();
        let queue = self.queue(needs.queue.unwrap_or(DEFAULT_QUEUE), &[]).map_err(refused(KIND, name))?;
        let unserved = |lacks| RegisterError::Unserved { name, queue: queue.name(), lacks };
        let encoding = config.build(&anywhere()).encoding();
        if !queue.speaks(encoding) {
            return Err(unserved(format!("speak its ECN encoding `{encoding}`")));
        }
        if needs.routers != Routers::Any && queue.traits().writes != needs.reads {
            return Err(unserved("write the header that it reads".to_string()));
        }
        self.controllers.push(added);
        Ok(())
    }

    /// Adds a host called `name`, with all its controllers, each by the name `host/controller`.
    ///
    /// # Errors
    /// A name is malformed or taken, a controller's name does not begin with the host's, or its defaults are
    /// refused.
    pub fn add_host(
        &mut self,
        name: &'static str,
        factory: Arc<dyn HostFactory>,
    ) -> Result<(), RegisterError> {
        const KIND: &str = "host";
        if !is_plain(name) {
            return Err(RegisterError::Malformed { kind: KIND, name });
        }
        if self.hosts.iter().any(|(taken, _)| *taken == name) {
            return Err(RegisterError::Taken { kind: KIND, name, by: name });
        }
        let mut controllers = Vec::new();
        for HostedController { name: full, summary, parameters } in factory.controllers() {
            match full.split_once('/') {
                Some((host, controller)) if host == name && is_plain(controller) => {}
                _ => return Err(RegisterError::Malformed { kind: "controller of a host", name: full }),
            }
            let all = self.controllers().chain(controllers.iter().map(|added: &Added<_>| &added.entry));
            if let Some(other) = find(all, full) {
                return Err(RegisterError::Taken { kind: "controller", name: full, by: other.name });
            }
            let own = factory.clone();
            let resolve = move |registry: &Registry, options: Options<'_>| {
                HostedConfig::resolve(full, &own, options, &|name, options| registry.feedback(name, options))
            };
            resolve(self, &[]).map_err(refused("controller", full))?;
            let entry = Entry { name: full, aliases: &[], summary, parameters: Listed::By(parameters) };
            controllers.push(Added { entry, files: None, resolve: Arc::new(resolve) });
        }
        self.controllers.extend(controllers);
        self.hosts.push((name, factory));
        Ok(())
    }

    /// Adds a feedback.
    ///
    /// # Errors
    /// A name is malformed or taken, or its defaults are refused.
    pub fn add_feedback<F: CustomFeedback>(&mut self) -> Result<(), RegisterError> {
        const KIND: &str = "feedback";
        let added = added_by::<F, _>(|_, options| CustomFeedbackConfig::resolve::<F>(options));
        check(KIND, &added.entry, self.feedbacks())?;
        (added.resolve)(self, &[]).map_err(refused(KIND, F::NAME))?;
        self.feedbacks.push(added);
        Ok(())
    }

    /// Adds a queue, after the queue that takes its place beside others.
    ///
    /// # Errors
    /// A name is malformed or taken, its defaults or the options of its preset are refused, or the queue that
    /// takes its place is not there.
    pub fn add_queue<Q: CustomQueue>(&mut self) -> Result<(), RegisterError> {
        const KIND: &str = "queue";
        let added = added_by::<Q, _>(|registry, options| {
            CustomQueueConfig::resolve::<Q>(options, &|name, options| registry.queue(name, options))
        });
        check(KIND, &added.entry, self.queues())?;
        let preset = Q::TRAITS.preset.map_or(&[][..], |preset| preset.options);
        for options in [&[], preset] {
            (added.resolve)(self, options).map_err(refused(KIND, Q::NAME))?;
        }
        self.queues.push(added);
        Ok(())
    }

    /// Adds the queue that `factory` builds under the name `name`: one for which no type stands. `summary`
    /// says in one line what it is.
    ///
    /// # Errors
    /// Its name is malformed or taken, or its defaults are refused.
    pub fn add_queue_factory(
        &mut self,
        name: &'static str,
        summary: &'static str,
        factory: Arc<dyn QueueFactory>,
    ) -> Result<(), RegisterError> {
        let entry = plain_entry(name, summary, factory.parameters());
        let named = Named::new(name, factory);
        let resolve = move |_: &Registry, options: Options<'_>| CustomQueueConfig::named(&named, options);
        let added = Added { entry, files: None, resolve: Arc::new(resolve) };
        check("queue", &added.entry, self.queues())?;
        (added.resolve)(self, &[]).map_err(refused("queue", name))?;
        self.queues.push(added);
        Ok(())
    }

    /// Adds a path element.
    ///
    /// # Errors
    /// A name is malformed or taken, or its defaults are refused.
    pub fn add_element<E: CustomElement>(&mut self) -> Result<(), RegisterError> {
        const KIND: &str = "path element";
        let added = added_by::<E, _>(|_, options| CustomElementConfig::resolve::<E>(options));
        check(KIND, &added.entry, self.elements())?;
        (added.resolve)(self, &[]).map_err(refused(KIND, E::NAME))?;
        self.elements.push(added);
        Ok(())
    }

    /// Adds a radio.
    ///
    /// # Errors
    /// A name is malformed or taken, or its defaults are refused.
    pub fn add_radio<R: CustomRadio>(&mut self) -> Result<(), RegisterError> {
        const KIND: &str = "radio";
        let added = added_by::<R, _>(|_, options| CustomRadioConfig::resolve::<R>(options));
        check(KIND, &added.entry, self.radios())?;
        (added.resolve)(self, &[]).map_err(refused(KIND, R::NAME))?;
        self.radios.push(added);
        Ok(())
    }

    /// Adds an application, of which this crate knows no more than its name and that `resolve` makes its
    /// settings: programs call `add_application` of `brakelight-apps`, which knows what an application is.
    ///
    /// # Errors
    /// A name is malformed or taken, or its defaults are refused.
    pub fn add_any_application<A: Algorithm>(
        &mut self,
        resolve: fn(&Registry, Options<'_>) -> Result<AnyConfig, BuildError>,
    ) -> Result<(), RegisterError> {
        const KIND: &str = "application";
        let added = added_by::<A, _>(resolve);
        check(KIND, &added.entry, self.applications())?;
        (added.resolve)(self, &[]).map_err(refused(KIND, A::NAME))?;
        self.applications.push(added);
        Ok(())
    }
}

/// A connection on which a controller is asked what it means by its ECN field.
fn anywhere() -> Connection {
    Connection {
        mss: Bytes(1448),
        overhead: Bytes(52),
        initial_window: Bytes(14_480),
        now: Time::ZERO,
        random: Random::stream(0, "anywhere"),
    }
}

fn added_by<A: Algorithm, C>(
    resolve: impl Fn(&Registry, Options<'_>) -> Result<C, BuildError> + Send + Sync + 'static,
) -> Added<C> {
    Added { entry: custom::entry::<A>(), files: A::FILES, resolve: Arc::new(resolve) }
}

/// The entry of an algorithm that a factory builds.
fn plain_entry(name: &'static str, summary: &'static str, parameters: &'static [Parameter]) -> Entry {
    Entry { name, aliases: &[], summary, parameters: Listed::Here(parameters) }
}

fn added<'a, C>(list: &'a [Added<C>], name: &str) -> Option<&'a Added<C>> {
    list.iter().find(|added| is_called(&added.entry, name))
}

/// The result, whose error lists all entries where the name is unknown.
fn listing<'a, C>(
    result: Result<C, BuildError>,
    entries: impl IntoIterator<Item = &'a Entry>,
) -> Result<C, BuildError> {
    result.map_err(|error| match error {
        BuildError::Unknown { kind, name, .. } => unknown(kind, &name, entries),
        error => error,
    })
}

fn refused(kind: &'static str, name: &'static str) -> impl Fn(BuildError) -> RegisterError {
    move |error| RegisterError::Refused { kind, name, error }
}

/// Refuses names that cannot stand in a scheme string, and names that one of `others` has.
fn check<'a>(
    kind: &'static str,
    entry: &Entry,
    others: impl Iterator<Item = &'a Entry> + Clone,
) -> Result<(), RegisterError> {
    for &name in entry.aliases.iter().chain([&entry.name]) {
        if !is_plain(name) {
            return Err(RegisterError::Malformed { kind, name });
        }
        if let Some(other) = find(others.clone(), name) {
            return Err(RegisterError::Taken { kind, name, by: other.name });
        }
    }
    Ok(())
}

/// Whether `name` can stand in a scheme string.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(plain)
}
