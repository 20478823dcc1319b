//! The eBPF programs: loading, listing and removing them.
//!
//! Everything is held by links (struct_ops, tcx, cgroup), so it goes when the process that loaded it ends,
//! however it ends, unless the links are pinned.

mod attempts;
mod claim;
#[cfg(test)]
mod differential;
mod endpoint;
#[cfg(test)]
mod layout;
mod merging;
mod objects;
mod router;
mod shaper;
mod status;
mod watch;
mod weights;

pub use attempts::attempts;
pub use endpoint::{Endpoint, load, unload};
pub use objects::bpffs_is_mounted;
pub use router::Router;
pub use status::{Status, status};
pub use watch::connections;
