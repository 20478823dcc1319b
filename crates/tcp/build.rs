//! Compiles the eBPF programs, where the feature `bpf` asks for them.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-changed=kmod");
    #[cfg(feature = "bpf")]
    bpf::compile();
}

#[cfg(feature = "bpf")]
mod bpf {
    use std::path::Path;

    use libbpf_cargo::SkeletonBuilder;

    /// For each file `bpf/NAME.bpf.c` an object and its skeleton, in which the C structures are Rust
    /// structures.
    const OBJECTS: [&str; 7] = ["abc", "connections", "option", "receiver", "router", "stamp", "wdc"];

    pub fn compile() {
        let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
        // Debian keeps asm/types.h apart by architecture, and clang does not look there for the BPF target.
        let architecture = std::env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the target");
        let headers = format!("-I/usr/include/{architecture}-linux-gnu");
        for name in OBJECTS {
            let object = Path::new(&out).join(format!("{name}.bpf.o"));
            SkeletonBuilder::new()
                .source(format!("bpf/{name}.bpf.c"))
                .obj(&object)
                .clang_args(["-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-mcpu=v3", &headers])
                .reference_obj(true)
                .build_and_generate(Path::new(&out).join(format!("{name}.skel.rs")))
                .unwrap_or_else(|error| {
                    panic!("clang cannot compile bpf/{name}.bpf.c (`scripts/setup test` installs what it needs): {error:#}")
                });
        }
        // The arithmetic once more for this machine's processor: the tests hold it against the core's.
        cc::Build::new()
            .files(["bpf/host.c", "kmod/host.c"])
            .include("bpf")
            .warnings(true)
            .compile("brakelight_tcp_host");
    }
}
