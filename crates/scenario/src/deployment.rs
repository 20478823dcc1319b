//! What somebody must change to use a scheme in place of what runs today: Cubic's senders and drop-tail
//! queues.

use std::fmt;

use brakelight_registry::{ControllerConfig, DEFAULT_CONTROLLER, DEFAULT_QUEUE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scheme::Scheme;

/// Where something must change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Nowhere: it is what runs today.
    #[default]
    Nothing,
    /// At the hosts: senders, and receivers where the scheme has a feedback of its own.
    Senders,
    /// At the router's queue.
    Queue,
    /// At both.
    Both,
}

impl Change {
    /// Returns `true` if somebody who can change `self` can make the change `needed`.
    pub fn allows(self, needed: Change) -> bool {
        self == Change::Both || needed == Change::Nothing || needed == self
    }
}

/// As a table has it.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Change::Nothing => "nothing",
            Change::Senders => "senders only",
            Change::Queue => "queue only",
            Change::Both => "both",
        })
    }
}

/// What a scheme needs to be deployed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Deployment {
    /// Where something must change.
    pub change: Change,
    /// Whether its router asks the link what it could have carried: the simulator says the truth, and a real
    /// router must measure it or be told.
    pub link_rate: bool,
}

impl Scheme {
    /// Returns what must be changed to use it, by what the registry says of its controller and its queue.
    pub fn deployment(&self) -> Deployment {
        let todays_senders =
            ControllerConfig::new(DEFAULT_CONTROLLER, &[]).as_ref() == Ok(&**self.controller());
        let todays_queue = self.queue().name() == DEFAULT_QUEUE;
        let change = match (todays_senders, todays_queue) {
            (true, true) => Change::Nothing,
            (false, true) => Change::Senders,
            (true, false) => Change::Queue,
            (false, false) => Change::Both,
        };
        Deployment { change, link_rate: self.queue().needs_link_rate() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(scheme: &str) -> (Change, bool) {
        let Deployment { change, link_rate } = Scheme::parse(scheme).unwrap().deployment();
        (change, link_rate)
    }

    #[test]
    fn what_must_change_follows_from_controller_and_queue() {
        assert_eq!(of("cubic"), (Change::Nothing, false));
        assert_eq!(of("cubic:beta=0.7"), (Change::Nothing, false));
        assert_eq!(of("cubic:hystart=off"), (Change::Senders, false));
        assert_eq!(of("copa"), (Change::Senders, false));
        assert_eq!(of("cubic+fq_codel"), (Change::Queue, false));
        assert_eq!(of("cubic+codel:target=5ms"), (Change::Queue, false));
        assert_eq!(of("bbr3+codel"), (Change::Both, false));
        assert_eq!(of("prague"), (Change::Both, false));
        assert_eq!(of("abc"), (Change::Both, true));
        assert_eq!(of("abc-adaptive"), (Change::Both, true));
        assert_eq!(of("bmcc:load=busy-time"), (Change::Both, false));
    }

    #[test]
    fn who_can_change_both_can_change_each_and_everybody_can_change_nothing() {
        for can in [Change::Senders, Change::Queue, Change::Both] {
            assert!(can.allows(can) && can.allows(Change::Nothing) && Change::Both.allows(can));
        }
        assert!(!Change::Senders.allows(Change::Queue) && !Change::Queue.allows(Change::Both));
    }
}
