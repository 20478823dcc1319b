//! Sockets of the outer side in the hands of a program on the inner one, which can so be both ends of a flow.
//!
//! A socket belongs to the network namespace in which it was made, wherever the process is that has it. The
//! first process of the namespaces is on the outer side: it makes the sockets and leaves them open for the
//! program, as inetd and systemd do. `$BRAKELIGHT_SOCKETS` has their descriptors, in the order in which they
//! were asked for: `5,7`.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{BorrowedFd, FromRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::socket::{SockType, getsockopt, sockopt};

/// The environment variable with the descriptors.
pub(crate) const VARIABLE: &str = "BRAKELIGHT_SOCKETS";

/// A UDP socket at each port, over IPv4, in the present network namespace.
pub(crate) fn open(ports: &[u16]) -> io::Result<Vec<UdpSocket>> {
    ports.iter().map(|port| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, *port))).collect()
}

/// The value of the environment variable.
pub(crate) fn describe(descriptors: &[RawFd]) -> String {
    descriptors.iter().map(RawFd::to_string).collect::<Vec<_>>().join(",")
}

/// Between fork and exec: leaves a descriptor open for the program. Makes system calls only.
pub(crate) fn keep(descriptor: RawFd) -> io::Result<()> {
    // SAFETY: the descriptor is one of the parent's, of which this process is a copy.
    let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
    fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok(())
}

/// Returns the sockets that this process inherited, in the order in which their ports were asked for. None if
/// it was not started by an emulator, and at every call but the first.
///
/// # Errors
/// If the variable does not name UDP sockets that are open: `InvalidInput`.
pub fn sockets() -> io::Result<Vec<UdpSocket>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let Some(text) = std::env::var(VARIABLE).ok().filter(|_| !TAKEN.swap(true, Ordering::Relaxed)) else {
        return Ok(Vec::new());
    };
    let refuse = |reason: &str| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{VARIABLE} is `{text}`: {reason}"))
    };
    let descriptors = text.split(',').map(str::parse).collect::<Result<Vec<RawFd>, _>>();
    let descriptors = descriptors.map_err(|_| refuse("valid are descriptors with commas between"))?;
    let mut sorted = descriptors.clone();
    sorted.sort_unstable();
    sorted.dedup();
    // 0 to 2 are the standard streams.
    if sorted.len() != descriptors.len() || sorted.first().is_some_and(|first| *first < 3) {
        return Err(refuse("valid are descriptors from 3 upwards, each once"));
    }
    let mut sockets = Vec::new();
    for descriptor in descriptors {
        // SAFETY: takes numbers only; where the descriptor is not open, the kernel says so.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0 {
            return Err(refuse("these are not open UDP sockets"));
        }
        // SAFETY: it is open, and what opened it left it to this loop.
        let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
        if getsockopt(&borrowed, sockopt::SockType) != Ok(SockType::Datagram) {
            return Err(refuse("these are not open UDP sockets"));
        }
        fcntl(borrowed, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        // SAFETY: the emulator opened it for this process, nothing here has taken it before, and this loop
        // takes each once.
        sockets.push(unsafe { UdpSocket::from_raw_fd(descriptor) });
    }
    Ok(sockets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_kept_socket_survives_the_start_of_a_program_and_others_do_not() {
        let sockets = open(&[0, 0]).unwrap();
        let [kept, other] = [0, 1].map(|place: usize| sockets[place].as_raw_fd());
        assert_eq!(describe(&[kept, other]), format!("{kept},{other}"));
        keep(kept).unwrap();
        let line = format!("test -e /proc/self/fd/{kept} && ! test -e /proc/self/fd/{other}");
        let status = std::process::Command::new("sh").args(["-c", &line]).status().unwrap();
        assert!(status.success());
    }
}
