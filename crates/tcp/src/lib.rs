//! Linux TCP endpoints and a router as eBPF programs: any application speaks ABC on a stock kernel.
//!
//! | module | holds |
//! |---|---|
//! | [`settings`] | what can be asked for, and what is told: plain data |
//! | [`doctor`] | what this kernel can do, and what to do where it cannot |
//! | [`qdisc`] | the router as a module of the kernel, `kmod/`: put on a device, asked and taken off |
//! | `bpf` | with the feature `bpf`: the programs, how they are loaded, listed and taken out |
//!
//! The programs are in `bpf/`: C that clang compiles for the BPF target, and whose arithmetic the tests compile for this
//! machine too and hold against `brakelight-core`. Without the feature only the words are here, and nothing needs clang.

pub mod doctor;
pub mod error;
pub mod qdisc;
pub mod settings;

#[cfg(feature = "bpf")]
pub mod bpf;

/// Whether this build has the programs.
pub const BUILT: bool = cfg!(feature = "bpf");

/// What to say where they are missing.
pub const NOT_BUILT: &str = "this build is without the eBPF programs: `scripts/setup test`, which installs clang, \
    then `cargo build --release --features bpf`";
