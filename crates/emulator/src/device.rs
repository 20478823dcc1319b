//! Where packets are read from and written to. A [`Port`] is a TUN device, or anything else that keeps
//! packets apart.
//!
//! The device leaves TCP's and UDP's checksums open, with a word of ten bytes before each packet that says
//! where it goes (`IFF_VNET_HDR`): the word is handed on with the packet, so that the receiving side knows as
//! well, and nobody sums up what never left the machine's memory. It also takes TCP's data in the large
//! buffers that the sending kernel makes, which are cut into their packets before anything else sees them
//! ([`segment`](crate::segment)).

use std::fs::OpenOptions;
use std::io::{self, IoSlice, IoSliceMut, PipeWriter, Read as _};
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use brakelight_files::process::never_returns;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::sys::stat::Mode;
use nix::sys::uio::{readv, writev};
use nix::sys::wait::waitpid;
use nix::unistd::{self, ForkResult, fork};

use crate::segment::HEAD;

/// Settings of a TUN device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunSettings {
    /// The largest packet: bytes at the IP layer.
    pub mtu: u32,
    /// Packets the kernel queues for us before it drops, so that none are lost while our thread is not
    /// scheduled. It is set over netlink because the ioctl for it is refused in a user namespace.
    pub queue: u32,
}

impl Default for TunSettings {
    fn default() -> Self {
        TunSettings { mtu: 1500, queue: 4096 }
    }
}

/// Why a device could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// /dev/net/tun does not exist, or this user may not open it.
    #[error("/dev/net/tun: {0}; it needs the kernel's tun driver, and a user who may open it")]
    Open(io::Error),
    /// The name is empty, longer than 15 bytes, or contains a byte that interface names may not.
    #[error("interface `{0}`: a name has 1 to 15 bytes and no space, `/` or `:`")]
    Name(String),
    /// The system refused.
    #[error("interface `{name}`: {what}: {error}")]
    Refused {
        /// The interface.
        name: String,
        /// What was asked for.
        what: &'static str,
        /// What the system said.
        error: Errno,
    },
}

/// An Ethernet header.
const ETHERNET: usize = 14;

/// Offloads that the device accepts: packets without checksums, and unsegmented TCP data, also of ECN-capable
/// connections.
const OFFLOADS: libc::c_uint = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;

/// Size of the largest buffer that is read, in bytes, including the virtio header before it.
pub const LARGEST: usize = 65_535 + HEAD;

/// A non-blocking device or socket that packets are read from and written to.
#[derive(Debug)]
pub struct Port {
    fd: OwnedFd,
    name: String,
    /// Bytes before each packet.
    head: usize,
    mtu: usize,
}

/// The result of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// A packet of so many bytes, including [`Port::head`].
    Packet(usize),
    /// No packet is waiting.
    Empty,
    /// The device or the other end is gone.
    Closed,
}

impl Port {
    /// Creates a TUN device in this thread's network namespace. It is down and has no address, and is removed
    /// when the port is dropped.
    pub fn tun(name: &str, settings: &TunSettings) -> Result<Self, DeviceError> {
        let fd: OwnedFd = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")
            .map_err(DeviceError::Open)?
            .into();
        let refused = |what| move |error| DeviceError::Refused { name: name.to_string(), what, error };
        let mut request = request(name)?;
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
        ioctl(&fd, libc::TUNSETIFF as _, &mut request).map_err(refused("cannot be made"))?;
        // SAFETY: the request takes an integer, not a pointer, and `fd` is open.
        let done =
            unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETOFFLOAD as _, libc::c_ulong::from(OFFLOADS)) };
        Errno::result(done).map_err(refused("checksums cannot be left open, nor data uncut"))?;
        // Any socket will do to name the namespace's interfaces.
        let any = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
            .map_err(refused("no socket"))?;
        request.ifr_ifru.ifru_mtu = settings.mtu as libc::c_int;
        ioctl(&any, libc::SIOCSIFMTU as _, &mut request).map_err(refused("the MTU is refused"))?;
        Ok(Port { fd, name: name.to_string(), head: HEAD, mtu: settings.mtu as usize })
    }

    /// Returns a port over `fd`, such as one end of a socket pair. Reads and writes must be whole packets and
    /// must not block.
    pub fn over(fd: OwnedFd, name: &str, mtu: u32) -> Self {
        Port { fd, name: name.to_string(), head: 0, mtu: mtu as usize }
    }

    /// Returns a port over the descriptor `fd` of a TUN device that [`tun`](Self::tun) created, possibly in
    /// another process.
    pub fn of_tun(fd: OwnedFd, name: &str, mtu: u32) -> Self {
        Port { fd, name: name.to_string(), head: HEAD, mtu: mtu as usize }
    }

    /// Returns a port over a packet socket at the other end of an interface. It reads and writes Ethernet
    /// frames.
    pub fn of_frames(fd: OwnedFd, name: &str, mtu: u32) -> Self {
        Port { fd, name: name.to_string(), head: ETHERNET, mtu: mtu as usize }
    }

    /// Returns whether a buffer may hold the data of many packets, as the virtio header before it says.
    pub fn uncut(&self) -> bool {
        self.head == HEAD
    }

    /// Returns the descriptor, to be passed to another process.
    pub fn into_fd(self) -> OwnedFd {
        self.fd
    }

    /// Returns the interface.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the bytes before each packet, which are passed on unchanged. Both ends of a path must have the
    /// same number.
    pub fn head(&self) -> usize {
        self.head
    }

    /// Returns the largest packet: bytes at the IP layer.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// Reads one packet, with the [`head`](Self::head) before it, into `into`; what does not fit goes into
    /// `rest`.
    #[inline]
    pub fn read(&self, into: &mut [u8], rest: &mut [u8]) -> Result<Read, Errno> {
        match readv(&self.fd, &mut [IoSliceMut::new(into), IoSliceMut::new(rest)]) {
            Ok(0) => Ok(Read::Closed),
            Ok(length) => Ok(Read::Packet(length)),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(Read::Empty),
            // The device was unregistered, or its namespace ended.
            Err(Errno::EBADFD | Errno::ENODEV | Errno::ENETDOWN | Errno::ECONNRESET) => Ok(Read::Closed),
            Err(error) => Err(error),
        }
    }

    /// Writes one buffer that lies in several pieces.
    pub fn write_pieces(&self, pieces: &[IoSlice<'_>]) -> Result<(), Errno> {
        writev(&self.fd, pieces).map(drop)
    }

    /// Returns the packets that the kernel dropped because its queue for us was full. `None` if that is
    /// unknown: for a port that is neither a TUN device nor a packet socket, and for a device in a namespace
    /// that may not be entered.
    ///
    /// For a TUN device this starts a process that enters the device's namespace; for a socket it resets the
    /// count. Call it once, at the end of a run.
    pub fn missed(&self) -> Option<u64> {
        if !self.uncut() {
            return self.missed_by_a_socket();
        }
        // SAFETY: the request takes no argument; what it returns is a new descriptor or -1.
        let network = unsafe { libc::ioctl(self.fd.as_raw_fd(), SIOCGSKNS) };
        if network < 0 {
            return None;
        }
        // SAFETY: the descriptor is new, and nobody else has it.
        let network = unsafe { OwnedFd::from_raw_fd(network) };
        let (mut heard, word) = io::pipe().ok()?;
        // SAFETY: other threads may have held locks at the fork, the allocator's among them. The child makes
        // system calls only, takes no lock, does not allocate and never returns.
        let child = match unsafe { fork() }.ok()? {
            ForkResult::Parent { child } => child,
            ForkResult::Child => never_returns(|| i32::from(tell_interfaces(&network, &word).is_none())),
        };
        drop(word);
        let mut table = String::new();
        let read = heard.read_to_string(&mut table);
        while waitpid(child, None) == Err(Errno::EINTR) {}
        read.ok().and_then(|_| dropped_on_the_way_out(&table, &self.name))
    }

    /// The same, of a packet socket: packet(7), `PACKET_STATISTICS`.
    fn missed_by_a_socket(&self) -> Option<u64> {
        let mut counts = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = mem::size_of_val(&counts) as libc::socklen_t;
        // SAFETY: the kernel writes no more than `length` bytes into the counts, which live through the call.
        let asked = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut counts).cast(),
                &raw mut length,
            )
        };
        (asked == 0 && length as usize == mem::size_of_val(&counts)).then_some(u64::from(counts.tp_drops))
    }

    /// Writes one packet, with the [`head`](Self::head) before it.
    #[inline]
    pub fn write(&self, bytes: &[u8]) -> Result<(), Errno> {
        unistd::write(&self.fd, bytes).map(drop)
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Writes what /proc/net/dev says in a network namespace. Does not allocate. The process must have a single
/// thread.
fn tell_interfaces(network: &OwnedFd, to: &PipeWriter) -> Option<()> {
    enter(network)?;
    let table = open(c"/proc/thread-self/net/dev", OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty()).ok()?;
    let mut buffer = [0; 4096];
    loop {
        let length = match unistd::read(&table, &mut buffer) {
            Ok(0) => return Some(()),
            Err(Errno::EINTR) => continue,
            read => read.ok()?,
        };
        let mut rest = &buffer[..length];
        while !rest.is_empty() {
            match unistd::write(to, rest) {
                Err(Errno::EINTR) => {}
                written => rest = &rest[written.ok()?..],
            }
        }
    }
}

/// Enters a network namespace, after the user namespace that owns it: its creator has all capabilities there,
/// but only inside. The process must have a single thread.
fn enter(network: &OwnedFd) -> Option<()> {
    // SAFETY: the request takes no argument; what it returns is a new descriptor or -1.
    let user = unsafe { libc::ioctl(network.as_raw_fd(), NS_GET_USERNS) };
    if user >= 0 {
        // SAFETY: the descriptor is new, and nobody else has it.
        let user = unsafe { OwnedFd::from_raw_fd(user) };
        // Refused for the namespace that this process is in already.
        let _ = setns(user, CloneFlags::CLONE_NEWUSER);
    }
    setns(network, CloneFlags::CLONE_NEWNET).ok()
}

/// Says by which user namespace a namespace is owned: ioctl_nsfs(2).
const NS_GET_USERNS: libc::Ioctl = 0xb701;

/// Says in which network namespace a socket or a TUN device is.
const SIOCGSKNS: libc::Ioctl = 0x894c;

/// What /proc/net/dev says that an interface dropped of what was sent.
fn dropped_on_the_way_out(table: &str, name: &str) -> Option<u64> {
    let numbers = table.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    // Eight columns of what was received; bytes, packets, errors and drops of what was sent.
    numbers.split_whitespace().nth(11)?.parse().ok()
}

/// An empty request about the interface called `name`.
fn request(name: &str) -> Result<libc::ifreq, DeviceError> {
    let bytes = name.as_bytes();
    let valid = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b':' | b'%');
    if bytes.is_empty() || bytes.len() >= libc::IFNAMSIZ || !bytes.iter().all(valid) {
        return Err(DeviceError::Name(name.to_string()));
    }
    // SAFETY: all its members are numbers and arrays of them, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, &from) in request.ifr_name.iter_mut().zip(bytes) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

fn ioctl(fd: &impl AsRawFd, what: libc::Ioctl, request: &mut libc::ifreq) -> Result<(), Errno> {
    // SAFETY: every request made here takes a pointer to an ifreq, which lives through the call.
    Errno::result(unsafe { libc::ioctl(fd.as_raw_fd(), what, &raw mut *request) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_read_from_their_column() {
        let table = "Inter-|   Receive                                                |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
            lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
            inside: 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36\n";
        assert_eq!(dropped_on_the_way_out(table, "inside"), Some(32));
        assert_eq!(dropped_on_the_way_out(table, "lo"), Some(12));
        assert_eq!(dropped_on_the_way_out(table, "in"), None);
    }

    #[test]
    fn names_that_no_interface_can_have_are_refused() {
        for name in ["", "sixteen-bytes-xx", "a b", "a/b", "a:b", "%d"] {
            assert!(matches!(request(name), Err(DeviceError::Name(_))), "{name}");
        }
        assert!(request("fifteen-bytes-x").is_ok());
    }
}
