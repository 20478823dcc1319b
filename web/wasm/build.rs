//! Bounds the module's memory: what a hostile input makes it ask for ends the worker, not the browser.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "wasm32") {
        // Bytes, a whole number of pages of 64 KiB.
        println!("cargo:rustc-cdylib-link-arg=--max-memory={}", 1024 * 1024 * 1024);
    }
}
