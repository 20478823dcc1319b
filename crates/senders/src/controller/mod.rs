//! Congestion controllers, one file an algorithm.
//!
//! To add one: a new file here with the head (formulas, symbol table, deviations), a `Config`,
//! `impl Controller`, and one line in the table (`table.rs`).
//!
//! # Settings
//!
//! A configuration takes no values that were not checked, neither when it is made:
//!
//! ```compile_fail,E0560
//! use brakelight_senders::controller::cubic;
//! let config = cubic::Config { c: -1.0, ..cubic::Config::default() };
//! ```
//!
//! nor later:
//!
//! ```compile_fail,E0594
//! use brakelight_senders::controller::cubic;
//! let mut config = cubic::Config::default();
//! config.c = -1.0;
//! ```
//!
//! and values are no configuration:
//!
//! ```compile_fail,E0308
//! use brakelight_core::controller::Connection;
//! use brakelight_senders::controller::cubic;
//! fn build(connection: &Connection) -> cubic::Cubic {
//!     cubic::Cubic::new(cubic::Values { c: -1.0, ..cubic::Values::default() }, connection)
//! }
//! ```

pub mod abc;
pub mod bbr;
pub mod bmcc;
pub mod copa;
pub mod ctcp;
pub mod cubic;
pub mod eabc;
pub mod external;
pub mod gcc;
mod hystart;
mod load;
pub mod mlcp;
pub mod nada;
pub mod newreno;
pub mod prague;
pub mod quicdc;
pub mod rcp;
mod rounds;
pub mod scream;
mod second;
pub mod sprout;
pub mod vcp;
pub mod vegas;
pub mod verus;
pub mod vivace;
pub mod westwood;
mod window;
pub mod xcp;
pub mod xcpw;

pub use bbr::{v2 as bbr2, v3 as bbr3};
