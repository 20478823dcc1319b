//! The papers' mathematics as code, to be held against the packets.
//!
//! | module | holds |
//! |---|---|
//! | [`adpm`] | how far what a BMCC receiver hears lies from the load, beside random marking |
//! | [`bound`] | how long a packet can wait at ABC's router on every link of a class |
//! | [`fluid`] | ABC's fluid model: a delay-differential equation, its fixed points, its solver |
//! | [`outstanding`] | the same of the rule that tunes itself, with the loop's delay known, or known wrong |
//! | [`stability`] | where these models and the packets settle, and where they oscillate |

pub mod adpm;
pub mod bound;
pub mod fluid;
pub mod outstanding;
pub mod stability;
