//! Congestion controllers, one file an algorithm.
//!
//! To add one: a new file here with the head (formulas, symbol table, deviations), a `Config`,
//! `impl Controller`, and one line in the table (`table.rs`).

pub mod abc;
pub mod bbr;
pub mod bmcc;
pub mod copa;
pub mod ctcp;
pub mod cubic;
pub mod eabc;
pub mod external;
mod hystart;
mod load;
pub mod mlcp;
pub mod newreno;
pub mod prague;
pub mod quicdc;
pub mod rcp;
mod rounds;
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
