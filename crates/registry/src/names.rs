//! Names that stand for more than one algorithm: defaults, shorthands, and what a comparison has.

/// What a sender runs where nothing else is said, as Linux's do.
pub const DEFAULT_CONTROLLER: &str = "cubic";

/// What a link has where nothing else is said.
pub const DEFAULT_QUEUE: &str = "droptail";

/// A name of its own for a controller with options, in schemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shorthand {
    /// The name.
    pub name: &'static str,
    /// The controller that it stands for.
    pub controller: &'static str,
    /// The options that come with it, unless the scheme gives others.
    pub options: &'static [(&'static str, &'static str)],
}

/// The shorthands.
pub const SHORTHANDS: &[Shorthand] = &[
    Shorthand { name: "abc-adaptive", controller: "abc", options: &[("variant", "adaptive")] },
    Shorthand { name: "abc-authors", controller: "abc", options: &[("variant", "prototype")] },
];

/// The schemes of a comparison that names none, the one that the others are held against first: ABC's rules,
/// what hosts and routers can run today, and what else the papers here propose.
pub const COMPARED: &[&str] = &[
    "abc",
    "abc-adaptive",
    "abc-authors",
    "cubic",
    "cubic+fq_codel",
    "cubic+cake",
    "bbr3",
    "copa",
    "prague",
    "bmcc",
    "quicdc",
];
