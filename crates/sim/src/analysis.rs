//! The papers' mathematics as code, to be held against the packets.
//!
//! | module | holds |
//! |---|---|
//! | [`adpm`] | how far what a BMCC receiver hears lies from the load, beside random marking |
//! | [`fluid`] | ABC's fluid model: a delay-differential equation, its fixed points, its solver |
//! | [`stability`] | where that model and the packets settle, and where they oscillate |

pub mod adpm;
pub mod fluid;
pub mod stability;
