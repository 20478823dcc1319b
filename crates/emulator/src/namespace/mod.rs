//! The namespaces of an emulation: a network for the command, behind the link, and one for where the link
//! leads, under a first process with whose death everything ends.
//!
//! | process | is | ends when |
//! |---|---|---|
//! | the emulator | outside, as it was called | it is done |
//! | the owner | its child, which created the namespaces | the emulator dies, or init has ended |
//! | init | process 1 of the new process namespace | the emulator or the owner dies |
//! | the programs | children of init | the kernel kills them all when init ends |
//!
//! The owner and init get a parent-death signal; init also ends when the emulator's channel is closed.
//!
//! The emulator itself enters no namespace. It is handed the two devices as descriptors, which work wherever
//! their holder is.
//!
//! | module | holds |
//! |---|---|
//! | [`error`] | why they could not be created |
//! | `plan` | the addresses, account and MTU they are built with; what this process is allowed to do |
//! | `start` | the process that creates them |
//! | `init`, `listening`, `capability` | their first process; waiting for servers; programs' capabilities |
//! | `build` | both sides: mounts, network namespaces, devices, addresses |

pub(crate) mod build;
mod capability;
pub mod error;
mod init;
mod listening;
pub(crate) mod plan;
pub(crate) mod start;
