//! The simulator: a scenario in, an outcome out.
//!
//! | module | holds |
//! |---|---|
//! | [`engine`] | events in a total order; moves packets between endpoints and path elements |
//! | [`statistics`] | streamed measurements |

#![forbid(unsafe_code)]

pub mod engine;
pub mod statistics;
