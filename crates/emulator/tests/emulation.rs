//! A whole emulation as a library sees it: it ends when the thread that carries packets does, however that
//! ends, and knows what the kernel dropped without being root.

use std::thread;

use brakelight_core::time::{Duration, Time};
use brakelight_emulator::command::Setting;
use brakelight_emulator::emulation::{EmulationError, Setup, run};
use brakelight_emulator::forward::ForwardSettings;
use brakelight_emulator::packet::IpPacket;
use brakelight_emulator::spec::DirectionSpec;
use brakelight_emulator::watch::Watch;
use brakelight_links::elements::AnyElement;

fn setup(command: &[&str]) -> Setup {
    Setup {
        up: DirectionSpec { delay: Duration::from_millis(1), ..DirectionSpec::open("up", 1) },
        down: DirectionSpec::open("down", 1),
        setting: Setting { nat: false, mtu: 1500, keep_sysctls: false },
        forward: ForwardSettings { fifo: false, ..ForwardSettings::default() },
        servers: Vec::new(),
        command: command.iter().map(Into::into).collect(),
        ports: Vec::new(),
        bounded: None,
    }
}

/// Whether it could begin at all; says what is not run where it could not.
fn began<T>(ended: Result<T, EmulationError>, what: &str) -> Option<Result<T, EmulationError>> {
    match ended {
        Err(EmulationError::Command(why)) => {
            brakelight_testkit::skip(what, why);
            None
        }
        other => Some(other),
    }
}

/// Has a mistake in it.
struct Mistaken;

impl Watch for Mistaken {
    fn rest(&mut self, _now: Time, _link: Option<&AnyElement<IpPacket>>) {
        panic!("a mistake, for a test");
    }
}

#[test]
fn a_panic_of_the_carrying_thread_ends_the_command_with_an_error_of_its_own() {
    let begun = began(run(setup(&["true"]), [(), ()], |_| Ok(())), "a panic");
    if begun.is_none() {
        return;
    }
    let ended = run(setup(&["sleep", "1000"]), [Mistaken, Mistaken], |_| Ok(()));
    assert!(matches!(ended, Err(EmulationError::Panicked)), "{:?}", ended.map(|ended| ended.code));
}

#[test]
fn a_user_knows_what_the_kernel_dropped() {
    let as_a_user = || {
        if nix::unistd::Uid::effective().is_root() {
            let nobody = 65534;
            // SAFETY: takes numbers only; it is this thread's identity that is given up, and that of those it
            // starts.
            let given_up = unsafe { libc::syscall(libc::SYS_setresuid, nobody, nobody, nobody) };
            assert_eq!(given_up, 0);
            nix::sys::prctl::set_dumpable(true).unwrap();
        }
        began(run(setup(&["true"]), [(), ()], |_| Ok(())), "drops, without root")
    };
    let Some(ended) = thread::spawn(as_a_user).join().unwrap() else { return };
    let ended = ended.unwrap();
    assert_eq!((ended.code, ended.up.facts.missed, ended.down.facts.missed), (0, Some(0), Some(0)));
}
