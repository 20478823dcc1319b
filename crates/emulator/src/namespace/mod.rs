//! The namespaces of an emulation: a network for the command, behind the link, and one for where the link leads, under a first process
//! with whose death everything ends.
//!
//! | process | is | ends when |
//! |---|---|---|
//! | the emulator | outside, as it was called | it is done |
//! | the owner | its child, which made the namespaces | the emulator dies (parent-death signal), or init has ended |
//! | init | process 1 of the new process namespace | the emulator or the owner dies (a closed channel; parent-death signal) |
//! | the programs | children of init | the kernel kills them all when init ends |
//!
//! The emulator itself enters no namespace. It is handed the two devices as descriptors, which work wherever their holder is.
//!
//! | module | holds |
//! |---|---|
//! | [`error`] | why they could not be created |
//! | `plan` | what they are to be like, and what this process may do |
//! | `start` | the process that makes them |
//! | `init`, `listening`, `capability` | their first process: what it starts, waits for, and what programs may do |
//! | `build` | both sides: mounts, network namespaces, devices, addresses |

pub(crate) mod build;
mod capability;
pub mod error;
mod init;
mod listening;
pub(crate) mod plan;
pub(crate) mod start;
