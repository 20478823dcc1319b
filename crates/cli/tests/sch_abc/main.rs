//! The kernel module `sch_abc` in a kernel: built against its headers, loaded in a virtual machine without
//! KVM, whose clock counts instructions and therefore does not depend on how busy this machine is. The
//! machine's first process is this very file.
//!
//! It needs qemu-system-x86_64, a C compiler, and a kernel with its headers and modules: in `target/kernel`,
//! where `scripts/setup test` unpacks Debian's, or under /boot and /lib/modules, or where `BRAKELIGHT_KERNEL`
//! says.
#![allow(clippy::print_stdout, reason = "what the virtual machine says is read from its standard output")]

mod guest;
mod machine;
#[path = "../support/mod.rs"]
mod support;

use machine::Kernel;
use support::Scratch;

#[test]
fn the_module_does_in_a_kernel_what_the_core_does() {
    let kernel = match Kernel::find() {
        Ok(kernel) => kernel,
        Err(reason) => {
            brakelight_testkit::skip("sch_abc in a kernel", reason);
            return;
        }
    };
    let scratch = Scratch::new("sch-abc");
    let module = kernel.build(&scratch);
    let said = kernel.boot(&scratch, &module, "guest::all");
    assert!(said.contains(guest::ALL_IS_WELL), "Linux {}:\n{said}", kernel.release);
    // What was measured, for whoever asks with --nocapture.
    println!("Linux {}:\n{said}", kernel.release);
}
