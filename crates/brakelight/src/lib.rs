#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub use brakelight_apps as apps;
pub use brakelight_lab as lab;
pub use brakelight_scenario as scenario;
pub use brakelight_sim as sim;

/// The contract, and every algorithm beside the trait that it implements.
pub mod core {
    pub use brakelight_core::{
        choices, ecn, endpoint, frugal, host, packet, parameters, random, sender, suggest, time, units,
    };
    pub use brakelight_estimates as estimate;
    pub use brakelight_registry as registry;

    /// The contract between host and controller, and the controllers.
    pub mod controller {
        pub use brakelight_core::controller::*;
        pub use brakelight_senders::controller::*;
    }

    /// What receivers say, and the receivers.
    pub mod feedback {
        pub use brakelight_core::feedback::*;
        pub use brakelight_senders::feedback::*;
    }

    /// What a queue is, and the queues.
    pub mod queue {
        pub use brakelight_core::queue::*;
        pub use brakelight_routers::*;
    }

    /// What a path element is, and the elements.
    pub mod path {
        pub use brakelight_core::path::*;
        pub use brakelight_links::*;
    }
}

/// The names that most programs need: `use brakelight::prelude::*;`.
pub mod prelude {
    pub use brakelight_core::time::{Duration, Time};
    pub use brakelight_core::units::{Bytes, Limit, Rate};
    pub use brakelight_lab::sweep::{Folder, Shard, Sweep};
    pub use brakelight_lab::text::Screen;
    pub use brakelight_lab::{self as lab, Attack, Compare, Error, Grid, Progress, Runner, Simulator, Table};
    pub use brakelight_registry::Registry;
    pub use brakelight_scenario::outcome::{Outcome, Run, Series};
    pub use brakelight_scenario::scenario::{FlowSpec, Hop, LinkSpec, Record, Scenario, TraceOffset};
    pub use brakelight_scenario::scheme::Scheme;
    pub use brakelight_scenario::scheme_string::SchemeString;
    pub use brakelight_scenario::trace::names::Names;
    pub use brakelight_sim::{Simulation, Traces};
}

/// What an algorithm of one's own needs: `use brakelight::extend::*;`. It is added to a
/// [`Registry`](prelude::Registry); then schemes and scenarios that are read with this registry know its
/// name.
pub mod extend {
    pub use std::collections::VecDeque;

    pub use brakelight_core::controller::{
        AckEvent, Connection, Controller, LossEvent, SendDirective, SendEvent, TimeoutEvent,
    };
    pub use brakelight_core::ecn::{Ecn, Encoding, Mark};
    pub use brakelight_core::feedback::{AckAction, Arrival, Echo, Feedback, Receiver};
    pub use brakelight_core::packet::{BoxedPacket, Packet};
    pub use brakelight_core::parameters;
    pub use brakelight_core::path::{Departed, Output, PathElement, Site};
    pub use brakelight_core::queue::{Backlog, Dequeued, Dropped, Drops, LinkView, Place, Queue, Reason};
    pub use brakelight_registry::{
        Algorithm, CustomController, CustomElement, CustomFeedback, CustomQueue, CustomRadio, Needs, Traits,
    };
    pub use brakelight_routers::fifo::Fifo;
    pub use brakelight_scenario::file::read_with;
}
