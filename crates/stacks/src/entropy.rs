//! Random numbers from the scenario's seed, for code that asks the operating system for them.
//!
//! [The crate's page](crate#randomness) says why. [`Entropy::within`] lends a connection's stream of random
//! numbers to the thread for as long as a call into the stack takes.

use std::cell::Cell;
use std::sync::OnceLock;

use brakelight_core::random::Random;

thread_local! {
    /// The stream of the connection whose stack this thread is inside of.
    static LENT: Cell<Option<Random>> = const { Cell::new(None) };
}

/// One end's own stream of random numbers.
#[derive(Debug)]
pub(crate) struct Entropy(Option<Random>);

impl Entropy {
    pub(crate) fn new(random: Random) -> Self {
        Entropy(Some(random))
    }

    /// Runs `act`, which gets all its random numbers from this stream. It must not be inside of another.
    pub(crate) fn within<R>(&mut self, act: impl FnOnce() -> R) -> R {
        /// Takes the stream back, after a panic too.
        struct Loan<'a>(&'a mut Option<Random>);
        impl Drop for Loan<'_> {
            fn drop(&mut self) {
                *self.0 = LENT.take();
            }
        }
        LENT.set(self.0.take());
        let _loan = Loan(&mut self.0);
        act()
    }

    /// Has the thread's generator of the crate `rand`, which it keeps from one call to the next, begin anew
    /// from this stream.
    pub(crate) fn reseed_thread(&mut self) -> Result<(), String> {
        // A thread that has none yet seeds it here, and not from this stream.
        let mut generator = rand::rng();
        let reseeded = self.within(|| generator.reseed());
        reseeded.map_err(|error| format!("there are no random numbers: {error}"))
    }
}

/// Returns why what asks the operating system for random numbers would not get those of the seed.
pub(crate) fn check() -> Result<(), String> {
    static FOLLOWS: OnceLock<bool> = OnceLock::new();
    let follows = *FOLLOWS.get_or_init(|| {
        let mut bytes = [0_u8; 32];
        let mut entropy = Entropy::new(Random::stream(1, "check"));
        let filled = entropy.within(|| rand::TryRng::try_fill_bytes(&mut rand::rngs::SysRng, &mut bytes));
        let mut expected = [0_u8; 32];
        fill(&mut Random::stream(1, "check"), &mut expected);
        filled.is_ok() && bytes == expected
    });
    if follows {
        return Ok(());
    }
    let reason = "its random numbers cannot follow the seed in this program: that takes Linux, and a program \
                  of its own, not a library in another";
    Err(reason.to_string())
}

/// Returns why what asks BoringSSL for random numbers would not get those of the seed.
#[cfg(feature = "stacks-c")]
pub(crate) fn check_boringssl() -> Result<(), String> {
    static FOLLOWS: OnceLock<bool> = OnceLock::new();
    let follows = *FOLLOWS.get_or_init(|| {
        let mut bytes = [0_u8; 32];
        let mut entropy = Entropy::new(Random::stream(2, "check"));
        let filled = entropy.within(|| boring::rand::rand_bytes(&mut bytes));
        let mut expected = [0_u8; 32];
        fill(&mut Random::stream(2, "check"), &mut expected);
        filled.is_ok() && bytes == expected
    });
    if follows {
        return Ok(());
    }
    Err("the random numbers of its BoringSSL cannot follow the seed in this program".to_string())
}

fn fill(random: &mut Random, bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&random.bits().to_le_bytes()[..chunk.len()]);
    }
}

/// Fills `bytes` from the stream that this thread was lent. Returns `false` if there is none.
pub(crate) fn fill_from_lent(bytes: &mut [u8]) -> bool {
    // Not there once the thread ends.
    let lent = LENT.try_with(Cell::take).ok().flatten();
    let Some(mut random) = lent else { return false };
    fill(&mut random, bytes);
    LENT.set(Some(random));
    true
}

/// The C library's function of this name, for the whole program.
///
/// # Safety
/// As for the C library's: `buffer` has room for `length` bytes.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(
    buffer: *mut libc::c_void,
    length: libc::size_t,
    flags: libc::c_uint,
) -> libc::ssize_t {
    if length > 0 && !buffer.is_null() {
        // SAFETY: The caller owns that many bytes. They may not be initialized, so they are zeroed first.
        let bytes = unsafe {
            buffer.cast::<u8>().write_bytes(0, length);
            std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length)
        };
        if fill_from_lent(bytes) {
            return length as libc::ssize_t;
        }
    }
    // SAFETY: The kernel checks its arguments, which are the caller's.
    unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) as libc::ssize_t }
}

/// BoringSSL's function of this name, for the whole program. BoringSSL's own asks the kernel by a system call
/// and keeps a generator, so that no seed of a connection would reach it.
///
/// # Safety
/// As for BoringSSL's: `buffer` has room for `length` bytes.
#[cfg(all(target_os = "linux", feature = "stacks-c"))]
#[unsafe(no_mangle)]
unsafe extern "C" fn RAND_bytes(buffer: *mut u8, length: libc::size_t) -> std::ffi::c_int {
    let mut done = 0;
    while done < length {
        // SAFETY: The caller owns that many bytes.
        let got = unsafe { getrandom(buffer.add(done).cast(), length - done, 0) };
        match usize::try_from(got) {
            Ok(got) => done += got,
            Err(_) if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
            // BoringSSL's ends the program as well, rather than give keys that can be guessed.
            Err(_) => std::process::abort(),
        }
    }
    1
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn system() -> [u8; 16] {
        let mut bytes = [0; 16];
        rand::TryRng::try_fill_bytes(&mut rand::rngs::SysRng, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_thread_inside_gets_the_seed_and_others_get_the_kernel() {
        check().unwrap();
        let inside = |seed| Entropy::new(Random::stream(seed, "test")).within(system);
        assert_eq!(inside(1), inside(1));
        assert_ne!(inside(1), inside(2));
        assert_ne!(system(), system());
        let (one, other) = Entropy::new(Random::stream(1, "test"))
            .within(|| (system(), std::thread::spawn(system).join().unwrap()));
        assert_eq!(one, inside(1));
        assert_ne!(other, inside(1));
    }

    #[cfg(feature = "stacks-c")]
    #[test]
    fn boringssl_gets_the_seed_inside_and_the_kernel_outside() {
        check_boringssl().unwrap();
        let drawn = || {
            let mut bytes = [0; 16];
            boring::rand::rand_bytes(&mut bytes).unwrap();
            bytes
        };
        assert_eq!(
            Entropy::new(Random::stream(1, "test")).within(drawn),
            Entropy::new(Random::stream(1, "test")).within(system)
        );
        assert_ne!(drawn(), drawn());
    }

    #[test]
    fn a_stream_goes_on_where_it_was_left_and_survives_a_panic() {
        let mut entropy = Entropy::new(Random::stream(3, "test"));
        let first = entropy.within(system);
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            entropy.within(|| {
                let _ = system();
                panic!("deliberate");
            })
        }));
        assert!(panic.is_err());
        let third = entropy.within(system);
        let mut whole = Entropy::new(Random::stream(3, "test"));
        let all = [0, 1, 2].map(|_| whole.within(system));
        assert_eq!([first, third], [all[0], all[2]]);
        assert_ne!(system(), third);
    }

    #[test]
    fn the_thread_s_generator_begins_anew() {
        let drawn = || {
            let mut entropy = Entropy::new(Random::stream(5, "test"));
            entropy.reseed_thread().unwrap();
            rand::random::<u64>()
        };
        assert_eq!(drawn(), drawn());
    }
}
