//! The emulator: real applications over the links and routers of the simulator, in real time.
//!
//! A command runs in a network namespace of its own. What it sends comes out of a TUN device there, passes
//! the same `core::path` elements and `core::queue` disciplines that a simulation runs, and goes into a TUN
//! device on the outer side; the other direction likewise.
//!
//! | module | holds |
//! |---|---|
//! | [`spec`] | one direction as data, and its spelling on the command line |
//! | [`classify`] | what in a packet's header says that it is ABC's |
//! | [`packet`] | what queues see of an IP packet, and the rewriting of its ECN field |
//! | [`device`] | where packets are read from and written to: TUN devices; `veth`, where there are none |
//! | [`clock`] | time in nanoseconds, how precisely this thread sleeps, how late it was |
//! | [`segment`] | TCP's large buffers, cut into packets and joined from them |
//! | [`slots`] | the memory packets wait in |
//! | [`forward`] | the thread that carries packets from device to device through the elements |
//! | [`watch`] | how measuring hears of what happens on the path |
//! | [`measure`], [`outcome`] | what one direction is measured by; both as a row of results |
//! | [`log`], [`meter`] | the link's log while it grows; counters for a display |
//! | [`doctor`] | what is missing on this machine, and what to do about it |
//! | [`mod@tuple`] | a flow's addresses and ports |
//! | [`workload`] | a scenario's flows by real hosts: kernel TCP and iperf3, or a program with QUIC |
//! | [`inherited`] | sockets of the outer side for a program on the inner one |
//! | [`emulation`] | all of it together: a command behind a link |
//! | [`command`] | programs on both sides: their start, their end, signals |
//! | [`namespace`], [`address`] | the namespaces, devices and addresses of both sides |
//! | [`channel`] | what the first process of the namespaces is told, and what it reports |
//! | `sysctl`, `buffers` | settings of a network namespace; those that hold a fast flow back |
//! | [`window_limited`] | which flows their windows held back, by the kernel's counters |
//! | `nat`, `supervisor` | the way to the real network; how things are undone when the emulator is killed |

pub mod address;
mod buffers;
pub mod channel;
pub mod classify;
pub mod clock;
pub mod command;
pub mod device;
pub mod doctor;
pub mod emulation;
pub mod forward;
pub mod inherited;
pub mod log;
pub mod measure;
pub mod meter;
pub mod namespace;
mod nat;
mod netlink;
pub mod outcome;
pub mod packet;
pub mod probe;
pub mod segment;
pub mod slots;
pub mod spec;
mod supervisor;
mod sysctl;
pub mod tuple;
mod veth;
pub mod watch;
pub mod window_limited;
pub mod workload;
