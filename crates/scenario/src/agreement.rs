//! Constants that sender, receiver and routers of one protocol must share: a load of 0.9 in the marks of one
//! is another load to another. A scheme gives an option to every part that has it; a scenario file gives each
//! part its own, so what disagrees is refused. Which constants these are is on the parts' lines in the
//! registry, as [`Protocol`].

use brakelight_core::parameters::OptionValues;
use brakelight_registry::{ControllerConfig, FeedbackConfig, Protocol, QueueConfig};

/// A constant in which two parts differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The constant.
    pub(crate) name: &'static str,
    /// Its value in the first part, as it would be given.
    pub(crate) value: String,
    /// Its value in the second.
    pub(crate) valid: String,
}

/// One end or router of a path.
pub(crate) trait Part {
    /// The protocol with whose other parts it shares constants.
    fn protocol(&self) -> Option<Protocol>;
    /// Its options with their values.
    fn settings(&self) -> OptionValues;
}

impl Part for ControllerConfig {
    fn protocol(&self) -> Option<Protocol> {
        self.needs().protocol
    }
    fn settings(&self) -> OptionValues {
        self.settings()
    }
}

impl Part for FeedbackConfig {
    fn protocol(&self) -> Option<Protocol> {
        self.protocol()
    }
    fn settings(&self) -> OptionValues {
        self.settings()
    }
}

impl Part for QueueConfig {
    fn protocol(&self) -> Option<Protocol> {
        self.traits().protocol
    }
    fn settings(&self) -> OptionValues {
        self.settings()
    }
}

/// Returns the first constant in which two parts of one protocol differ, or `None` if they agree or are not
/// of one protocol.
pub(crate) fn difference(one: &impl Part, other: &impl Part) -> Option<Difference> {
    let protocol =
        one.protocol().filter(|protocol| Some(protocol.name) == other.protocol().map(|p| p.name))?;
    let (ones, others) = (one.settings(), other.settings());
    let of = |settings: &OptionValues, name| {
        settings.iter().find(|(own, _)| *own == name).map(|(_, value)| value.clone())
    };
    protocol.shared.iter().find_map(|&name| {
        let (value, valid) = (of(&ones, name)?, of(&others, name)?);
        (value != valid).then_some(Difference { name, value, valid })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller(name: &str, options: &[(&str, &str)]) -> ControllerConfig {
        ControllerConfig::new(name, options).unwrap()
    }

    fn queue(name: &str, options: &[(&str, &str)]) -> QueueConfig {
        QueueConfig::new(name, options).unwrap()
    }

    #[test]
    fn defaults_agree_and_one_spelling_is_as_good_as_another() {
        for name in ["bmcc", "mlcp", "vcp"] {
            assert_eq!(difference(&controller(name, &[]), &queue(name, &[("interval", "0.2s")])), None);
        }
        assert_eq!(difference(&controller("bmcc", &[("eta", "0.6")]), &queue("droptail", &[])), None);
    }

    #[test]
    fn every_part_is_held_against_the_routers_and_the_ends_against_each_other() {
        for (name, option, value) in [
            ("bmcc", "eta", "0.6"),
            ("mlcp", "u", "1.5"),
            ("vcp", "low_load", "0.7"),
            ("bmcc", "interval", "100ms"),
        ] {
            let found = difference(&controller(name, &[(option, value)]), &queue(name, &[])).unwrap();
            assert_eq!((found.name, found.value.as_str()), (option, value));
            assert!(
                difference(&controller(name, &[(option, value)]), &queue(name, &[(option, value)])).is_none()
            );
        }
        let receiver = FeedbackConfig::new("bmcc", &[("bits", "3")]).unwrap();
        assert_eq!(difference(&receiver, &queue("bmcc", &[])).unwrap().name, "bits");
        let receiver = FeedbackConfig::new("bmcc", &[("coexist", "true")]).unwrap();
        assert_eq!(difference(&receiver, &controller("bmcc", &[])).unwrap().name, "coexist");
    }
}
