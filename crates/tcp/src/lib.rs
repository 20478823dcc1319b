//! Linux TCP endpoints and a router as eBPF programs: any application speaks ABC on a stock kernel.
//!
//! | module | holds |
//! |---|---|
//! | [`settings`] | requests and results as plain data |
//! | [`doctor`] | what this kernel can do, and what to do where it cannot |
//! | [`qdisc`] | the router as a kernel module, `kmod/`: installing, querying and removing the qdisc |
//! | [`shaper`] | rate setters on a real device: a daemon that sets the rate of a `cake` or `tbf` |
//! | `bpf` | with the feature `bpf`: loading, listing and removing the programs |
//!
//! The programs are in `bpf/`: C that clang compiles for the BPF target, and whose arithmetic the tests
//! compile for this machine too and hold against the algorithms. Without the feature the programs are left
//! out, and clang is not needed.

pub mod doctor;
pub mod error;
pub mod qdisc;
pub mod settings;
pub mod shaper;

#[cfg(feature = "bpf")]
pub mod bpf;

/// Whether this build contains the eBPF programs.
pub const BUILT: bool = cfg!(feature = "bpf");

/// The message for builds without them.
pub const NOT_BUILT: &str = "this build has no eBPF programs: the Debian package and the container image have them, and so does `make install` with clang and the headers of libelf and zlib (Debian: clang, libelf-dev, zlib1g-dev)";
