//! Schemes: the shorthand of `compare` for a controller with its feedback and its queue.
//!
//! ```text
//! scheme = controller [ "+" queue ] [ ":" option "=" value { "," option "=" value } ]
//! list   = scheme { "," scheme }        an item that contains "=" and no ":" continues the scheme before it
//! ```
//!
//! An option goes to every one of controller, feedback and queue that declares its name. A controller that
//! cannot do without its router brings it; otherwise the queue is drop-tail. Some controllers with options
//! have a name of their own ([`SHORTHANDS`]): `abc-adaptive` is `abc:variant=adaptive`. A file stands for the
//! controller that runs such files: `mine.wasm` is `wasm:module=mine.wasm`.

use std::fmt;

use brakelight_core::ecn::Encoding;
use brakelight_core::parameters::Parameter;
use brakelight_core::time::Duration;
use brakelight_registry::{
    BuildError, ControllerConfig, DEFAULT_QUEUE, Entry, FeedbackConfig, Host, QueueConfig, Registry,
    SHORTHANDS, find, names,
};

use crate::problem::{InputError, Problem};
use crate::routers;
use crate::scenario::FlowSpec;
use crate::scheme_string::{ByName, Options, SchemeString, Words};

/// A controller with its feedback, its queue and its host.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheme {
    /// The canonical spelling: registered names, the queue only where it was asked for.
    text: String,
    controller: SchemeString<ControllerConfig>,
    feedback: SchemeString<FeedbackConfig>,
    queue: SchemeString<QueueConfig>,
    /// Whether the queue was asked for by name.
    queue_named: bool,
    notes: Vec<String>,
}

impl Scheme {
    /// Reads one scheme of algorithms that Brakelight brings.
    pub fn parse(text: &str) -> Result<Self, InputError> {
        Self::parse_with(&Registry::standard(), text)
    }

    /// Reads one scheme of algorithms of `registry`.
    pub fn parse_with(registry: &Registry, text: &str) -> Result<Self, InputError> {
        let given = text.trim();
        let spelled_out = of_file(registry, given);
        let text = spelled_out.as_deref().unwrap_or(given);
        let key = || format!("scheme `{given}`");
        let mut words = Words::parse(text).ok_or_else(|| {
            refuse(Problem::Malformed {
                key: "scheme".to_string(),
                value: text.to_string(),
                expected: "a scheme such as `cubic`, `cubic+codel` or `abc:delta=133ms,eta=0.98`".to_string(),
            })
        })?;
        let name = words.name.clone();
        // A controller's own name may hold a plus: `westwood+`.
        let (mut controller, queue) = match name.rsplit_once('+') {
            Some((controller, queue)) if find(registry.controllers(), &name).is_none() => {
                (controller.trim(), Some(queue.trim()))
            }
            _ => (name.as_str(), None),
        };
        if let Some(shorthand) = SHORTHANDS.iter().find(|shorthand| shorthand.name == controller) {
            controller = shorthand.controller;
            for (option, value) in shorthand.options.iter().rev() {
                if words.options.iter().all(|(given, _)| given != option) {
                    words.options.insert(0, (option.to_string(), value.to_string()));
                }
            }
        }
        let unknown = |kind: &str, name: &str, valid: String| {
            refuse(Problem::UnknownName { key: key(), what: kind.to_string(), name: name.to_string(), valid })
        };
        let controller = find(registry.controllers(), controller).ok_or_else(|| {
            if let Err(error @ BuildError::NoHost { .. }) = registry.controller(controller, &[]) {
                return refuse(Problem::Algorithm { key: key(), error });
            }
            let shorthands = SHORTHANDS.iter().map(|shorthand| shorthand.name).collect::<Vec<_>>().join(", ");
            unknown("controller", controller, format!("{}, {shorthands}", names(registry.controllers())))
        })?;
        let needs = registry
            .controller(controller.name, &[])
            .expect("a registered controller is built from its defaults")
            .needs();
        let brought = needs.queue.unwrap_or(DEFAULT_QUEUE);
        let queue_name = queue.unwrap_or(brought);
        let queue = find(registry.queues(), queue_name)
            .ok_or_else(|| unknown("queue", queue_name, names(registry.queues())))?;
        let feedback =
            find(registry.feedbacks(), needs.feedback).expect("a controller's feedback is registered");
        let parts = [controller, feedback, queue].map(Part::of);
        let mut options = [const { Options::new() }; 3];
        let preset = registry
            .queue(queue.name, &[])
            .expect("a registered queue is built from its defaults")
            .traits()
            .preset;
        let mut notes = Vec::new();
        if let Some(preset) = preset {
            let given = |name: &str| words.options.iter().any(|(option, _)| option == name);
            let missing: Vec<_> = preset.options.iter().filter(|(name, _)| !given(name)).collect();
            if !missing.is_empty() {
                let list: Vec<String> =
                    missing.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                notes.push(format!("{}: {}, {}", queue.name, list.join(", "), preset.why));
            }
            options[2].extend(missing.iter().map(|(name, value)| (name.to_string(), value.to_string())));
        }
        for (name, value) in &words.options {
            let mut takers = 0;
            for (part, options) in parts.iter().zip(&mut options) {
                if part.declares(name) {
                    options.push((name.clone(), value.clone()));
                    takers += 1;
                }
            }
            if takers == 0 {
                let valid: Vec<String> = parts.iter().filter_map(Part::list).collect();
                return Err(refuse(Problem::UnknownName {
                    key: key(),
                    what: "option".to_string(),
                    name: name.clone(),
                    valid: if valid.is_empty() { "none".to_string() } else { valid.join("; ") },
                }));
            }
        }
        let [for_controller, mut for_feedback, for_queue] = options;
        let queue_named = queue.name != brought;
        let name = if queue_named {
            format!("{}+{}", controller.name, queue.name)
        } else {
            controller.name.to_string()
        };
        let controller: SchemeString<ControllerConfig> =
            build(registry, key(), controller.name, for_controller)?;
        for (option, value) in controller.feedback_options() {
            if for_feedback.iter().all(|(given, _)| given != option) {
                for_feedback.push((option.to_string(), value.to_string()));
            }
        }
        let scheme = Scheme {
            text: Words { name, options: words.options.clone() }.to_string(),
            controller,
            feedback: build(registry, key(), feedback.name, for_feedback)?,
            queue: build(registry, key(), queue.name, for_queue)?,
            queue_named,
            notes,
        };
        let encoding = scheme.encoding();
        if !scheme.queue.speaks(encoding) {
            let reason = format!(
                "queue `{}` does not speak the ECN encoding `{encoding}` of controller `{}`{}",
                queue.name,
                scheme.controller.name(),
                routers::how_to_misread(&scheme.queue)
            );
            return Err(refuse(Problem::Contradiction { key: key(), reason }));
        }
        if let Some(reason) = routers::lacking(&scheme.controller, [("bottleneck", &*scheme.queue)]) {
            return Err(refuse(Problem::Contradiction { key: key(), reason }));
        }
        Ok(scheme)
    }

    /// Reads a list of schemes of algorithms that Brakelight brings. No two of them are the same.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, InputError> {
        Self::parse_list_with(&Registry::standard(), text)
    }

    /// Reads a list of schemes of algorithms of `registry`. No two of them are the same.
    pub fn parse_list_with(registry: &Registry, text: &str) -> Result<Vec<Self>, InputError> {
        let mut items: Vec<String> = Vec::new();
        for item in text.split(',') {
            match items.last_mut() {
                Some(last) if item.contains('=') && !item.contains(':') => {
                    last.push(if last.contains(':') { ',' } else { ':' });
                    last.push_str(item);
                }
                _ => items.push(item.to_string()),
            }
        }
        let mut schemes: Vec<Scheme> = Vec::new();
        for item in &items {
            let scheme = Scheme::parse_with(registry, item.trim())?;
            if schemes.iter().any(|other| other.text == scheme.text) {
                let reason = format!("`{scheme}` is given twice");
                return Err(refuse(Problem::Contradiction { key: format!("schemes `{text}`"), reason }));
            }
            schemes.push(scheme);
        }
        Ok(schemes)
    }

    /// Returns the sender's controller.
    pub fn controller(&self) -> &SchemeString<ControllerConfig> {
        &self.controller
    }

    /// Returns the receiver's feedback.
    pub fn feedback(&self) -> &SchemeString<FeedbackConfig> {
        &self.feedback
    }

    /// Returns the router's queue.
    pub fn queue(&self) -> &SchemeString<QueueConfig> {
        &self.queue
    }

    /// Returns whether the queue was asked for by name and is not what the controller would have brought.
    pub fn queue_named(&self) -> bool {
        self.queue_named
    }

    /// Returns the same controller behind `queue`.
    #[must_use]
    pub fn behind(&self, queue: SchemeString<QueueConfig>) -> Self {
        let options = self.text.split_once(':').map_or(String::new(), |(_, options)| format!(":{options}"));
        Scheme {
            text: format!("{}+{}{options}", self.controller.name(), queue.name()),
            queue,
            queue_named: true,
            ..self.clone()
        }
    }

    /// Returns the scheme that takes its place where flows of `other` share its queue, if one does. ABC's
    /// router has a second queue for traffic that does not speak ABC (abc20 4.3). BMCC's parts have a variant
    /// in which other flows hear their AQM (bmcc VI).
    pub fn beside(&self, other: &Scheme) -> Option<Self> {
        let speaks_abc = matches!(other.encoding(), Encoding::Abc | Encoding::AbcProxied);
        if let Some(queue) = self.queue.beside_others().filter(|_| !speaks_abc) {
            return Some(self.behind(queue));
        }
        let protocol = |scheme: &Scheme| scheme.controller.needs().protocol;
        let options = protocol(self).filter(|own| protocol(other) != Some(*own))?.beside_others;
        let text = options.iter().fold(self.text.clone(), |text, (name, value)| {
            let separator = if text.contains(':') { ',' } else { ':' };
            let is_given = text.contains(&format!("{name}="));
            if is_given { text } else { format!("{text}{separator}{name}={value}") }
        });
        // What a program added is read by its own registry, and has no such variant.
        Self::parse(&text).ok().filter(|_| text != self.text)
    }

    /// Returns the profile of the hosts.
    pub fn host(&self) -> Host {
        self.controller.needs().host
    }

    /// Returns what a reader of the results should know of the settings.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns what flows of this scheme mean by their ECN bits.
    pub fn encoding(&self) -> Encoding {
        self.flow("encoding", Duration::from_millis(100)).encoding()
    }

    /// Returns the name that a table has room for: the shorthand, where one stands for the controller with
    /// some of the options.
    pub fn short_name(&self) -> String {
        short_name(&self.text)
    }

    /// Returns a backlogged flow of this scheme, with an empty path.
    pub fn flow(&self, name: &str, rtt: Duration) -> FlowSpec {
        let mut flow = FlowSpec::new(name, self.controller.clone(), rtt, Vec::new());
        flow.feedback = self.feedback.clone();
        flow
    }
}

/// The canonical spelling; [`Scheme::parse`] reads it back as the same scheme.
impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns what a scheme stands for whose controller is a file: `wasm+codel:module=mine.wasm` for
/// `mine.wasm+codel`.
fn of_file(registry: &Registry, text: &str) -> Option<String> {
    let (name, options) = text.split_once(':').unwrap_or((text, ""));
    let (file, queue) = match registry.controller_of_file(name) {
        Some(_) => (name, String::new()),
        None => name.rsplit_once('+').map(|(file, queue)| (file.trim(), format!("+{queue}")))?,
    };
    let (controller, option) = registry.controller_of_file(file)?;
    let separator = if options.is_empty() { "" } else { "," };
    Some(format!("{controller}{queue}:{option}={file}{separator}{options}"))
}

/// Returns the shorter spelling of a scheme's canonical one, with a shorthand in it where one fits:
/// `abc-adaptive` for `abc:variant=adaptive`. Any other text is returned as it is.
pub fn short_name(text: &str) -> String {
    let Some(words) = Words::parse(text) else { return text.to_string() };
    let short = SHORTHANDS.iter().find_map(|shorthand| {
        let (controller, queue) = match words.name.split_once('+') {
            Some((controller, queue)) => (controller, Some(queue)),
            None => (words.name.as_str(), None),
        };
        let is_its =
            |(name, value): &(String, String)| shorthand.options.contains(&(name.as_str(), value.as_str()));
        let (its, options): (Vec<_>, Vec<_>) = words.options.iter().cloned().partition(is_its);
        (controller == shorthand.controller && its.len() == shorthand.options.len()).then(|| {
            let queue = queue.map_or(String::new(), |queue| format!("+{queue}"));
            Words { name: format!("{}{queue}", shorthand.name), options }.to_string()
        })
    });
    short.unwrap_or_else(|| text.to_string())
}

/// One of controller, feedback and queue, and what it takes.
struct Part {
    name: &'static str,
    parameters: Vec<Parameter>,
}

impl Part {
    fn of(entry: &Entry) -> Self {
        Part { name: entry.name, parameters: entry.parameters() }
    }

    fn declares(&self, option: &str) -> bool {
        self.parameters.iter().any(|parameter| parameter.name == option)
    }

    /// The options in words, if there are any.
    fn list(&self) -> Option<String> {
        let names: Vec<&str> = self.parameters.iter().map(|parameter| parameter.name).collect();
        (!names.is_empty()).then(|| format!("{} for {}", names.join(", "), self.name))
    }
}

fn build<C: ByName>(
    registry: &Registry,
    key: String,
    name: &str,
    options: Options,
) -> Result<SchemeString<C>, InputError> {
    SchemeString::from_words_with(registry, Words { name: name.to_string(), options })
        .map_err(|error| refuse(Problem::Algorithm { key, error }))
}

fn refuse(problem: Problem) -> InputError {
    InputError { file: None, line: None, owner: String::new(), problem: Box::new(problem) }
}

#[cfg(test)]
#[path = "scheme_tests.rs"]
mod tests;
