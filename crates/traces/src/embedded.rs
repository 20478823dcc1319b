//! The traces that come with the program: recipes of synthetic links, made into traces when asked for. None
//! is a recording, nor derived from one beyond the parameters that its recipe shows.

use brakelight_links::trace::Trace;

use super::recipe::Recipe;

mod facts;

pub use facts::Facts;

/// A trace that is embedded in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Embedded {
    /// Its name.
    pub name: &'static str,
    /// Its recipe, as TOML.
    pub recipe: &'static str,
    /// The embedded trace whose recipe it takes, if it has none of its own.
    pub same_as: Option<&'static str>,
    /// Whether `compare` takes it when no trace is named.
    pub default: bool,
}

macro_rules! of {
    ($name:literal) => {
        $name
    };
    ($name:literal, $of:literal) => {
        $of
    };
}

macro_rules! same_as {
    () => {
        None
    };
    ($of:literal) => {
        Some($of)
    };
}

macro_rules! embedded {
    ($($name:literal $(= $of:literal)? $default:literal;)*) => {
        /// Every embedded trace, in the order in which lists show them.
        pub const EMBEDDED: &[Embedded] = &[$(Embedded {
            name: $name,
            recipe: include_str!(concat!("../traces/", of!($name $(, $of)?), ".toml")),
            same_as: same_as!($($of)?),
            default: $default,
        }),*];
    };
}

embedded! {
    "lte-driving" true;
    "lte-walking" true;
    "3g" true;
    "5g" = "5g-sa" true;
    "satellite" = "starlink" true;
    "step" true;
    "fixed" true;
    "fit-att-driving-down" false;
    "fit-att-driving-up" false;
    "fit-verizon-down" false;
    "fit-verizon-up" false;
    "5g-sa" false;
    "5g-nsa" false;
    "mmwave" false;
    "starlink" false;
    "wifi" false;
    "5g-chosen" false;
    "satellite-chosen" false;
}

/// The recipes that were fitted to recordings, each with the recording's file name.
pub const FITTED: &[(&str, &str)] = &[
    ("fit-att-driving-down", "ATT-LTE-driving-2016.down"),
    ("fit-att-driving-up", "ATT-LTE-driving-2016.up"),
    ("fit-verizon-down", "Verizon-LTE-short.down"),
    ("fit-verizon-up", "Verizon-LTE-short.up"),
];

impl Embedded {
    /// Returns the embedded trace called `name`.
    pub fn find(name: &str) -> Option<&'static Embedded> {
        EMBEDDED.iter().find(|embedded| embedded.name == name)
    }

    /// Returns its recipe.
    pub fn recipe(&self) -> Recipe {
        self.recipe.parse().expect("a test reads every embedded recipe")
    }

    /// Returns what lists say of it, without making it.
    pub fn facts(&self) -> Facts {
        let own = self.same_as.unwrap_or(self.name);
        let of = |&&(name, ..): &&(&str, f64, f64, f64)| name == own;
        let &(_, mean_mbps, cv_100ms, duration_s) =
            facts::FACTS.iter().find(of).expect("a test finds every embedded trace");
        Facts { mean_mbps, cv_100ms, duration_s }
    }

    /// Returns the trace, made afresh: a few milliseconds of work.
    pub fn trace(&self) -> Trace {
        self.recipe().generate().expect("a test makes every embedded trace")
    }
}

#[cfg(test)]
mod tests;
