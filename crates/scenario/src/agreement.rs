//! Constants that sender, receiver and routers of one protocol must share: a load of 0.9 in the marks of one
//! is another load to another. A scheme gives an option to every part that has it; a scenario file gives each
//! part its own, so what disagrees is refused.

use brakelight_core::parameters::Value;
use brakelight_core::registry::{ControllerConfig, FeedbackConfig, QueueConfig};

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

/// The first of these fields in which two settings differ.
macro_rules! difference {
    ($one:expr, $other:expr, $($field:ident),+) => {
        [$(($one.$field != $other.$field).then(|| Difference {
            name: stringify!($field),
            value: $one.$field.show(),
            valid: $other.$field.show(),
        })),+].into_iter().flatten().next()
    };
}

/// Where a sender differs from a router of its protocol.
pub(crate) fn with_router(controller: &ControllerConfig, queue: &QueueConfig) -> Option<Difference> {
    match (controller, queue) {
        (ControllerConfig::Bmcc(sender), QueueConfig::Bmcc(router)) => {
            difference!(sender, router, interval, eta_0, eta, u, coexist)
        }
        (ControllerConfig::Mlcp(sender), QueueConfig::Mlcp(router)) => {
            difference!(sender, router, interval, eta_0, eta, u)
        }
        (ControllerConfig::Vcp(sender), QueueConfig::Vcp(router)) => {
            difference!(sender, router, interval, low_load)
        }
        _ => None,
    }
}

/// Where a receiver differs from a router of its protocol.
pub(crate) fn of_receiver(feedback: &FeedbackConfig, queue: &QueueConfig) -> Option<Difference> {
    match (feedback, queue) {
        (FeedbackConfig::Bmcc(receiver), QueueConfig::Bmcc(router)) => {
            difference!(receiver, router, eta_0, eta, u, bits, coexist)
        }
        _ => None,
    }
}

/// Where a receiver differs from its sender, which may meet no router of its protocol.
pub(crate) fn of_ends(feedback: &FeedbackConfig, controller: &ControllerConfig) -> Option<Difference> {
    match (feedback, controller) {
        (FeedbackConfig::Bmcc(receiver), ControllerConfig::Bmcc(sender)) => {
            difference!(receiver, sender, eta_0, eta, u, coexist)
        }
        _ => None,
    }
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
            assert_eq!(with_router(&controller(name, &[]), &queue(name, &[("interval", "0.2s")])), None);
        }
        assert_eq!(with_router(&controller("bmcc", &[("eta", "0.6")]), &queue("droptail", &[])), None);
    }

    #[test]
    fn every_part_is_held_against_the_routers_and_the_ends_against_each_other() {
        for (name, option, value) in [
            ("bmcc", "eta", "0.6"),
            ("mlcp", "u", "1.5"),
            ("vcp", "low_load", "0.7"),
            ("bmcc", "interval", "100ms"),
        ] {
            let found = with_router(&controller(name, &[(option, value)]), &queue(name, &[])).unwrap();
            assert_eq!((found.name, found.value.as_str()), (option, value));
            assert!(
                with_router(&controller(name, &[(option, value)]), &queue(name, &[(option, value)]))
                    .is_none()
            );
        }
        let receiver = FeedbackConfig::new("bmcc", &[("bits", "3")]).unwrap();
        assert_eq!(of_receiver(&receiver, &queue("bmcc", &[])).unwrap().name, "bits");
        let receiver = FeedbackConfig::new("bmcc", &[("coexist", "true")]).unwrap();
        assert_eq!(of_ends(&receiver, &controller("bmcc", &[])).unwrap().name, "coexist");
    }
}
