//! Linux TCP endpoints and a router as eBPF programs. Without the feature `bpf` only the commands' words are here: each
//! says how to get the rest.
