//! Where /dev/net/tun is closed: a pair of virtual Ethernet devices instead of a TUN device. One end is the
//! interface; the other lies in a network namespace of its own, where nothing but a packet socket (packet(7))
//! is, through which frames are read and written.
//!
//! All interfaces have one and the same hardware address and ask for no other (`IFF_NOARP`): so a frame that
//! is read on one side is valid on the other as it is.

use std::fs;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};

use crate::netlink::Netlink;
use crate::sysctl::set;

/// A locally administered address (ieee802 8.4).
const HARDWARE: [u8; 6] = [0x02, 0x62, 0x72, 0x6b, 0x6c, 0x74];

/// The end with the socket.
const FAR_END: &str = "wire";

/// linux/ethtool.h: checksums, segmentation by the device, segmentation in general; each is to be done before
/// a frame is handed over.
const SWITCHED_OFF: [u32; 3] = [0x17, 0x1f, 0x24];

/// Bytes that the kernel holds for us.
const BUFFER: libc::c_int = 8 << 20;

/// Makes an interface of this name in the present network namespace, and gives the socket of its other end.
/// The interface goes when the socket is closed.
pub(crate) fn open(name: &str, mtu: u32) -> io::Result<OwnedFd> {
    let here = fs::File::open("/proc/thread-self/ns/net")?;
    unshare(CloneFlags::CLONE_NEWNET)?;
    // The kernel itself is to say nothing there.
    let _ = set("net/ipv6/conf/all/disable_ipv6", "1");
    let _ = set("net/ipv6/conf/default/disable_ipv6", "1");
    let wire = fs::File::open("/proc/thread-self/ns/net")?;
    setns(&here, CloneFlags::CLONE_NEWNET)?;
    Netlink::open()?.add_veth(name, FAR_END, wire.as_raw_fd(), HARDWARE, mtu)?;
    for command in SWITCHED_OFF {
        switch_off(name, command)?;
    }
    setns(&wire, CloneFlags::CLONE_NEWNET)?;
    let socket = listen();
    setns(&here, CloneFlags::CLONE_NEWNET)?;
    socket
}

/// The socket, in the namespace of the other end.
fn listen() -> io::Result<OwnedFd> {
    let index = nix::net::if_::if_nametoindex(FAR_END)?;
    Netlink::open()?.set_up(index, None)?;
    let all = (libc::ETH_P_ALL as u16).to_be();
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: takes numbers only.
    let fd = Errno::result(unsafe { libc::socket(libc::AF_PACKET, kind, i32::from(all)) })?;
    // SAFETY: the kernel has just made it for this process.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    for (level, option, value) in [
        (libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER),
        (libc::SOL_SOCKET, libc::SO_SNDBUF, BUFFER),
        (libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1),
    ] {
        let length = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: the option's value is an integer, which lives through the call.
        let set = unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), length) };
        Errno::result(set)?;
    }
    // SAFETY: an address of zeros is a valid one.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = all;
    address.sll_ifindex = index as i32;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address is there and as long as it says.
    Errno::result(unsafe { libc::bind(fd, (&raw const address).cast(), length) })?;
    Ok(socket)
}

/// Switches off what the device says it does for the kernel.
fn switch_off(name: &str, command: u32) -> io::Result<()> {
    /// `struct ethtool_value`.
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    let any = std::net::UdpSocket::bind("127.0.0.1:0").or_else(|_| std::net::UdpSocket::bind("[::]:0"))?;
    let mut value = Value { command, data: 0 };
    // SAFETY: a request of zeros is a valid one.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the request and what it points to live through the call.
    Errno::result(unsafe { libc::ioctl(any.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) })?;
    Ok(())
}
