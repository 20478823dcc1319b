//! Output files and folders: complete, or not there at all, also where root writes for the user who called
//! sudo.
//!
//! | module | holds |
//! |---|---|
//! | [`folder`], [`mod@file`] | output that is moved into place once it is complete |
//! | [`scratch`] | folders for what is needed only for a while |
//! | [`system`] | what these need of the operating system |
#![cfg_attr(
    target_os = "linux",
    doc = "| [`account`], [`invoker`] | the user who called sudo; files on behalf of that user |\n\
           | [`hold`] | marks of what is being made |\n\
           | [`process`], [`survivor`], [`janitor`] | child processes; one that outlives this process; one that cleans up after it |"
)]
//! | [`error`] | what can go wrong |
//!
//! What is being made is known to the whole process, because an interrupt or a kill concerns the whole
//! process: one [folder](folder::Folder) or file at a time.

#[cfg(target_os = "linux")]
pub mod account;
pub mod error;
pub mod file;
pub mod folder;
#[cfg(target_os = "linux")]
pub mod hold;
#[cfg(target_os = "linux")]
pub mod invoker;
#[cfg(target_os = "linux")]
pub mod janitor;
#[cfg(target_os = "linux")]
pub mod process;
pub mod scratch;
#[cfg(target_os = "linux")]
pub mod survivor;
pub mod system;

pub use error::Error;
