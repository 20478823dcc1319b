//! Applications from outside: what a program adds to a [`Registry`] at run time.

use std::any::Any;
use std::fmt::{self, Debug};

use brakelight_core::parameters::{self, Parameters};
use brakelight_core::time::Time;
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::{Algorithm, AnyConfig, BuildError, Options, RegisterError, Registry};

use crate::application::Application;
use crate::socket::{Datagram, Socket};
use crate::traffic::{NAMES, Traffic};

/// An application that a program adds to a [`Registry`].
pub trait CustomApplication: Algorithm + Application + Clone + Debug + Send + Sync + 'static {
    /// The names under which [`Application::outcome`] may report numbers.
    const OUTCOME: &'static [&'static str] = &[];

    /// Returns an application over packets whose payload is at most `mss`.
    fn build(config: &Self::Config, mss: Bytes) -> Self;

    /// Returns the most that it offers, as a mean over the run; `None` for no bound. A run's cost is
    /// estimated by it.
    fn offers(_config: &Self::Config) -> Option<Rate> {
        None
    }
}

/// An application behind a pointer. Every application that can be cloned and sent to another thread is one.
/// The methods are those of [`Application`], under names of their own so that a call on an application is not
/// ambiguous.
pub trait DynApplication: Debug + Send + Sync {
    /// Returns a copy of it.
    fn clone_boxed(&self) -> Box<dyn DynApplication>;
    /// See [`Application::start`].
    fn start_boxed(&mut self, socket: &mut dyn Socket);
    /// See [`Application::stop`].
    fn stop_boxed(&mut self, socket: &mut dyn Socket);
    /// See [`Application::on_timer`].
    fn on_timer_boxed(&mut self, socket: &mut dyn Socket);
    /// See [`Application::next_timer`].
    fn next_timer_boxed(&self) -> Time;
    /// See [`Application::listens`].
    fn listens_boxed(&self) -> bool;
    /// See [`Application::on_delivered`].
    fn on_delivered_boxed(&mut self, socket: &mut dyn Socket);
    /// See [`Application::on_datagram`].
    fn on_datagram_boxed(&mut self, datagram: &Datagram, socket: &mut dyn Socket);
    /// See [`Application::is_over`].
    fn is_over_boxed(&self) -> bool;
    /// See [`Application::outcome`].
    fn outcome_boxed(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64));
}

impl<A: Application + Clone + Debug + Send + Sync + 'static> DynApplication for A {
    fn clone_boxed(&self) -> Box<dyn DynApplication> {
        Box::new(self.clone())
    }
    fn start_boxed(&mut self, mut socket: &mut dyn Socket) {
        self.start(&mut socket);
    }
    fn stop_boxed(&mut self, mut socket: &mut dyn Socket) {
        self.stop(&mut socket);
    }
    fn on_timer_boxed(&mut self, mut socket: &mut dyn Socket) {
        self.on_timer(&mut socket);
    }
    fn next_timer_boxed(&self) -> Time {
        self.next_timer()
    }
    fn listens_boxed(&self) -> bool {
        self.listens()
    }
    fn on_delivered_boxed(&mut self, mut socket: &mut dyn Socket) {
        self.on_delivered(&mut socket);
    }
    fn on_datagram_boxed(&mut self, datagram: &Datagram, mut socket: &mut dyn Socket) {
        self.on_datagram(datagram, &mut socket);
    }
    fn is_over_boxed(&self) -> bool {
        self.is_over()
    }
    fn outcome_boxed(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        self.outcome(now, visit);
    }
}

impl Clone for Box<dyn DynApplication> {
    fn clone(&self) -> Self {
        (**self).clone_boxed()
    }
}

/// So that it stands in the enum of all applications as the others do.
impl Application for Box<dyn DynApplication> {
    fn start(&mut self, socket: &mut impl Socket) {
        (**self).start_boxed(socket);
    }
    fn stop(&mut self, socket: &mut impl Socket) {
        (**self).stop_boxed(socket);
    }
    fn on_timer(&mut self, socket: &mut impl Socket) {
        (**self).on_timer_boxed(socket);
    }
    fn next_timer(&self) -> Time {
        (**self).next_timer_boxed()
    }
    fn listens(&self) -> bool {
        (**self).listens_boxed()
    }
    fn on_delivered(&mut self, socket: &mut impl Socket) {
        (**self).on_delivered_boxed(socket);
    }
    fn on_datagram(&mut self, datagram: &Datagram, socket: &mut impl Socket) {
        (**self).on_datagram_boxed(datagram, socket);
    }
    fn is_over(&self) -> bool {
        (**self).is_over_boxed()
    }
    fn outcome(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        (**self).outcome_boxed(now, visit);
    }
}

/// The settings of an application from outside, with the options that they were made of.
pub struct CustomTraffic {
    settings: Box<dyn Settings>,
    options: Vec<(String, String)>,
}

trait Settings: Any + Debug + Send + Sync {
    fn clone_boxed(&self) -> Box<dyn Settings>;
    fn equals(&self, other: &dyn Any) -> bool;
    fn name(&self) -> &'static str;
    fn settings(&self) -> parameters::OptionValues;
    fn outcome(&self) -> &'static [&'static str];
    fn offers(&self) -> Option<Rate>;
    fn build(&self, mss: Bytes) -> Box<dyn DynApplication>;
}

struct Of<A: Algorithm>(A::Config);

impl<A: Algorithm> Debug for Of<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(A::NAME).field(&self.0).finish()
    }
}

impl<A: CustomApplication> Settings for Of<A> {
    fn clone_boxed(&self) -> Box<dyn Settings> {
        Box::new(Of::<A>(self.0.clone()))
    }
    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self.0 == other.0)
    }
    fn name(&self) -> &'static str {
        A::NAME
    }
    fn settings(&self) -> parameters::OptionValues {
        self.0.settings()
    }
    fn outcome(&self) -> &'static [&'static str] {
        A::OUTCOME
    }
    fn offers(&self) -> Option<Rate> {
        A::offers(&self.0)
    }
    fn build(&self, mss: Bytes) -> Box<dyn DynApplication> {
        Box::new(A::build(&self.0, mss))
    }
}

impl Clone for CustomTraffic {
    fn clone(&self) -> Self {
        CustomTraffic { settings: self.settings.clone_boxed(), options: self.options.clone() }
    }
}

impl Debug for CustomTraffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}

impl PartialEq for CustomTraffic {
    fn eq(&self, other: &Self) -> bool {
        let settings: &dyn Any = &*other.settings;
        self.settings.equals(settings)
    }
}

impl CustomTraffic {
    /// Returns the application's registered name.
    pub fn name(&self) -> &'static str {
        self.settings.name()
    }

    /// Returns every option with its value in canonical form: equal settings read the same.
    pub fn settings(&self) -> parameters::OptionValues {
        self.settings.settings()
    }

    /// Returns the options that were given, in order.
    pub fn options(&self) -> &[(String, String)] {
        &self.options
    }

    /// Returns the names under which the application may report numbers.
    pub fn outcome(&self) -> &'static [&'static str] {
        self.settings.outcome()
    }

    /// Returns the most that the application offers, as a mean over the run; `None` for no bound.
    pub fn offers(&self) -> Option<Rate> {
        self.settings.offers()
    }

    pub(crate) fn build(&self, mss: Bytes) -> Box<dyn DynApplication> {
        self.settings.build(mss)
    }
}

/// As in a scenario: `name` or `name:option=value,option=value`.
impl fmt::Display for CustomTraffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        for (index, (name, value)) in self.options.iter().enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

/// The applications of a registry.
pub trait Applications {
    /// Adds an application.
    ///
    /// # Errors
    /// A name is malformed or taken, also by a built-in application, or its defaults are refused.
    fn add_application<A: CustomApplication>(&mut self) -> Result<(), RegisterError>;

    /// Returns the traffic of the application called `name`, with `options` applied in order.
    ///
    /// # Errors
    /// No application that was added has the name, or it refuses an option.
    fn traffic(&self, name: &str, options: Options<'_>) -> Result<Traffic, BuildError>;
}

impl Applications for Registry {
    fn add_application<A: CustomApplication>(&mut self) -> Result<(), RegisterError> {
        for name in A::ALIASES.iter().chain([&A::NAME]) {
            if let Some(by) = NAMES.iter().find(|built_in| *built_in == name) {
                return Err(RegisterError::Taken { kind: "application", name, by });
            }
        }
        self.add_any_application::<A>(resolve::<A>)
    }

    fn traffic(&self, name: &str, options: Options<'_>) -> Result<Traffic, BuildError> {
        let config = self.application(name, options)?;
        let traffic = config.downcast().expect("applications are added by `add_application`");
        Ok(Traffic::Custom(*traffic))
    }
}

fn resolve<A: CustomApplication>(
    _registry: &Registry,
    options: Options<'_>,
) -> Result<AnyConfig, BuildError> {
    let config = A::Config::from_options(options.iter().copied())
        .map_err(|error| BuildError::Option { name: A::NAME, error })?;
    let own = |&(name, text): &(&str, &str)| (name.to_string(), text.to_string());
    let options = options.iter().map(own).collect();
    Ok(Box::new(CustomTraffic { settings: Box::new(Of::<A>(config)), options }))
}

#[cfg(test)]
mod tests {
    use brakelight_core::parameters;

    use super::*;
    use crate::any::AnyApplication;

    parameters! {
        /// Settings of [`Drip`].
        pub struct Config {
            /// The payload of one write.
            size: Bytes = Bytes(100), in Bytes(1)..=Bytes(1000), from "chosen here";
        }
    }

    /// One write, and no more.
    #[derive(Clone, Debug)]
    struct Drip(Bytes);

    impl Application for Drip {
        fn start(&mut self, socket: &mut impl Socket) {
            socket.write(self.0);
        }
        fn listens(&self) -> bool {
            true
        }
        fn outcome(&self, _now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
            visit("size_bytes", self.0.as_f64());
        }
    }

    impl Algorithm for Drip {
        type Config = Config;
        const NAME: &'static str = "drip";
        const SUMMARY: &'static str = "One write";
    }

    impl CustomApplication for Drip {
        const OUTCOME: &'static [&'static str] = &["size_bytes"];

        fn build(config: &Config, _mss: Bytes) -> Self {
            Drip(config.size)
        }
    }

    #[test]
    fn an_application_that_was_added_is_found_and_built_with_its_options() {
        let mut registry = Registry::standard();
        registry.add_application::<Drip>().unwrap();
        let traffic = registry.traffic("drip", &[("size", "300B")]).unwrap();
        let Traffic::Custom(custom) = &traffic else { panic!("an application from outside") };
        assert_eq!(custom.to_string(), "drip:size=300B");
        assert_eq!(custom.outcome(), ["size_bytes"]);
        let application = AnyApplication::new(&traffic, Bytes(1448)).clone();
        assert!(application.listens());
        let mut seen = Vec::new();
        application.outcome(Time::ZERO, &mut |name, value| seen.push((name, value)));
        assert_eq!(seen, [("size_bytes", 300.0)]);
        assert_eq!(traffic.clone(), traffic);
        assert_ne!(traffic, registry.traffic("drip", &[]).unwrap());
    }

    /// A call of another kind, under the built-in one's name or with it as another name.
    #[derive(Clone, Debug)]
    struct Call<const IS_ALIAS: bool>;

    impl<const IS_ALIAS: bool> Application for Call<IS_ALIAS> {
        fn start(&mut self, _socket: &mut impl Socket) {}
    }

    impl<const IS_ALIAS: bool> Algorithm for Call<IS_ALIAS> {
        type Config = Config;
        const NAME: &'static str = if IS_ALIAS { "my-call" } else { "call" };
        const ALIASES: &'static [&'static str] = if IS_ALIAS { &["video"] } else { &[] };
        const SUMMARY: &'static str = "A call";
    }

    impl<const IS_ALIAS: bool> CustomApplication for Call<IS_ALIAS> {
        fn build(_config: &Config, _mss: Bytes) -> Self {
            Call
        }
    }

    #[test]
    fn the_names_of_the_built_in_applications_are_taken() {
        let mut registry = Registry::standard();
        let error = registry.add_application::<Call<false>>().unwrap_err().to_string();
        assert_eq!(error, "`call` is the name of another application: choose another name");
        let error = registry.add_application::<Call<true>>().unwrap_err().to_string();
        assert_eq!(error, "`video` is the name of another application: choose another name");
        assert_eq!(registry.applications().count(), 0);
    }

    #[test]
    fn what_is_not_there_and_what_is_refused_is_told() {
        let mut registry = Registry::standard();
        registry.add_application::<Drip>().unwrap();
        assert!(registry.add_application::<Drip>().is_err());
        let error = registry.traffic("drop", &[]).unwrap_err().to_string();
        assert_eq!(error, "unknown application `drop` (did you mean `drip`?): valid are drip");
        let error = registry.traffic("drip", &[("size", "0B")]).unwrap_err().to_string();
        assert_eq!(error, "drip: size = `0B` is out of range: valid is 1B to 1kB");
    }
}
