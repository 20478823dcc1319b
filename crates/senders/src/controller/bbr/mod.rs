//! BBR, in its three versions. All of them pace at a gain times the estimated bandwidth and bound what is in
//! flight by a gain times the estimated bandwidth-delay product; they differ in how they probe and in what
//! loss means to them.
//!
//! | version | registry | file | probing | loss |
//! |---|---|---|---|---|
//! | 1 | `bbr` | `v1.rs` | eight phases of one RTT each: 5/4, 3/4, six of 1 | no signal, but for policers |
//! | 2 | `bbr2` | `v2.rs` | down, cruise, refill, up: every 2 to 3 s or Reno's pace | bounds inflight |
//! | 3 | `bbr3` | `v3.rs` | as version 2, upwards until the bandwidth stops growing | as version 2 |
//!
//! Version 1 is a machine of its own; versions 2 and 3 are settings of one machine, spread over the files by
//! concept.
//!
//! | file | concept |
//! |---|---|
//! | `round.rs` | packet-timed round trips |
//! | `model.rs` | bandwidth-delay product, send quantum, pacing rate, ACK aggregation |
//! | `policer.rs` | version 1's long-term bandwidth |
//! | `machine.rs` | versions 2 and 3: state, events, window and pacing rate |
//! | `startup.rs`, `drain.rs`, `probe_bw.rs`, `probe_rtt.rs` | its states |
//! | `bounds.rs` | what losses teach it |
//! | `ecn.rs` | what marks teach it, where it is told to use ECN |
//! | `mvfst.rs` | what version 2 does otherwise in mvfst |
//! | `settings.rs` | what distinguishes the versions |
//!
//! The files of versions 2 and 3 import each other, since they are one type's methods: the draft's state
//! machine is one state read and written by every concept, and a file per concept reads better than one of
//! 1,500 lines.

mod bounds;
mod drain;
pub mod ecn;
pub mod machine;
mod model;
mod mvfst;
mod policer;
mod probe_bw;
mod probe_rtt;
mod round;
pub mod settings;
mod startup;
pub mod v1;
pub mod v2;
pub mod v3;

pub use v1::{Bbr, Config};

#[cfg(test)]
mod tests;
