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

/// The end of a pair that lies in a namespace of its own.
pub(crate) struct Wire {
    /// Reads and writes frames. The pair goes when it is closed.
    pub(crate) socket: OwnedFd,
    netlink: Netlink,
    index: u32,
}

impl Wire {
    /// Waits until frames pass, once the other end is up.
    pub(crate) fn wait_until_connected(&mut self) -> io::Result<()> {
        self.netlink.wait_until_connected(self.index)
    }
}

/// Makes an interface of this name in the present network namespace, and gives its other end.
pub(crate) fn open(name: &str, mtu: u32) -> io::Result<Wire> {
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
    let wire = listen();
    setns(&here, CloneFlags::CLONE_NEWNET)?;
    wire
}

/// Sets up the other end, in its namespace, and opens its socket.
fn listen() -> io::Result<Wire> {
    let index = nix::net::if_::if_nametoindex(FAR_END)?;
    let mut netlink = Netlink::open()?;
    netlink.set_up(index, None)?;
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
    Ok(Wire { socket, netlink, index })
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

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, UdpSocket};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::netlink::Prefix;

    /// Addresses of the interface and of what lies behind it.
    const HERE: &str = "192.0.2.1:9001";
    const THERE: &str = "192.0.2.2:9001";

    /// The interface `near` of a pair, up and with an address. It takes what is sent to 192.0.2.0/24.
    fn pair() -> io::Result<Wire> {
        let mut wire = open("near", 1500)?;
        let index = nix::net::if_::if_nametoindex("near")?;
        let mut netlink = Netlink::open()?;
        netlink.set_up(index, None)?;
        let address = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        netlink.add_address(index, Prefix { address, length: 24 })?;
        netlink.wait_until_connected(index)?;
        wire.wait_until_connected()?;
        Ok(wire)
    }

    /// A datagram for the interface, as a frame: what the interface itself sends, turned round.
    fn frame(wire: &Wire) -> Vec<u8> {
        let sender = UdpSocket::bind(HERE).unwrap();
        sender.send_to(b"the first", THERE).unwrap();
        let mut buffer = [0; 2048];
        loop {
            match nix::unistd::read(&wire.socket, &mut buffer) {
                Ok(length) if buffer[..length].ends_with(b"the first") => {
                    // IP's addresses, after an Ethernet header (RFC 791 3.1). The ports are equal.
                    let (from, to) = buffer[26..34].split_at_mut(4);
                    from.swap_with_slice(to);
                    return buffer[..length].to_vec();
                }
                _ => thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    #[test]
    fn the_first_frame_arrives() {
        let run = || {
            if unshare(CloneFlags::CLONE_NEWNET).is_err() {
                brakelight_testkit::skip(
                    "network: a pair of devices",
                    "it needs the right to make namespaces",
                );
                return;
            }
            let mut known = None;
            for _ in 0..20 {
                let wire = pair().unwrap();
                let frame = known.get_or_insert_with(|| frame(&wire));
                let receiver = UdpSocket::bind(HERE).unwrap();
                receiver.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
                nix::unistd::write(&wire.socket, frame).unwrap();
                assert_eq!(
                    receiver.recv(&mut [0; 16]).expect("the first frame was lost"),
                    b"the first".len()
                );
                drop((receiver, wire));
                // The kernel takes the pair away behind our back.
                while nix::net::if_::if_nametoindex("near").is_ok() {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        };
        thread::scope(|scope| scope.spawn(run).join()).unwrap();
    }
}
