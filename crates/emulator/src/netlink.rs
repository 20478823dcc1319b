//! Interfaces, addresses and routes of the present network namespace, over a blocking rtnetlink socket.
//!
//! A socket belongs to the namespace in which it was opened; open one after every change of namespace.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::RawFd;
use std::thread;
use std::time::{Duration, Instant};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, State,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// Far longer than the kernel takes, on whatever machine, for what it does after it has answered.
const DONE_WITHIN: Duration = Duration::from_secs(60);

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    /// Any address in it.
    pub(crate) address: IpAddr,
    /// Leading bits that all addresses in it share.
    pub(crate) length: u8,
}

/// What is known of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Where it leads.
    pub(crate) to: Prefix,
    /// Whether it leads to this namespace itself.
    pub(crate) is_local: bool,
    /// Whether a router's advertisement made it, which the kernel forgets when forwarding is switched on.
    pub(crate) advertised: bool,
}

/// A socket of the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// A socket of the present namespace.
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// Sets an interface up, with so many packets waiting for it at most where that is said.
    pub(crate) fn set_up(&mut self, index: u32, queue: Option<u32>) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        message.attributes.extend(queue.map(LinkAttribute::TxQueueLen));
        self.change(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Waits until what is sent through an end of a pair arrives. The end that was up first is connected when
    /// the other is, but the kernel gives it a queue later, in its link watch (net/core/link_watch.c,
    /// `linkwatch_do_dev`). Until then each packet is lost, and nobody is told.
    pub(crate) fn wait_until_connected(&mut self, index: u32) -> io::Result<()> {
        self.wait_until("connect the pair of devices", |netlink| {
            let mut message = LinkMessage::default();
            message.header.index = index;
            netlink.send(RouteNetlinkMessage::GetLink(message), NLM_F_REQUEST | NLM_F_ACK)?;
            Ok(netlink.answers()?.into_iter().any(|answer| match answer {
                RouteNetlinkMessage::NewLink(link) => {
                    link.attributes.contains(&LinkAttribute::OperState(State::Up))
                }
                _ => false,
            }))
        })
    }

    /// Waits for `what` the kernel does after it has answered.
    fn wait_until(&mut self, what: &str, is_done: impl Fn(&mut Self) -> io::Result<bool>) -> io::Result<()> {
        let asked = Instant::now();
        while !is_done(self)? {
            if asked.elapsed() > DONE_WITHIN {
                let why = format!("the kernel did not {what} within {} s", DONE_WITHIN.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Makes a pair of virtual Ethernet devices, one here and one in another namespace, with one hardware
    /// address that nobody asks for.
    pub(crate) fn add_veth(
        &mut self,
        name: &str,
        peer: &str,
        peer_namespace: RawFd,
        hardware: [u8; 6],
        mtu: u32,
    ) -> io::Result<()> {
        let end = |name: &str| {
            let mut message = LinkMessage::default();
            message.header.flags = LinkFlags::Noarp;
            message.header.change_mask = LinkFlags::Noarp;
            message.attributes.push(LinkAttribute::IfName(name.to_string()));
            message.attributes.push(LinkAttribute::Address(hardware.to_vec()));
            message.attributes.push(LinkAttribute::Mtu(mtu));
            message
        };
        let mut far = end(peer);
        far.attributes.push(LinkAttribute::NetNsFd(peer_namespace));
        let mut near = end(name);
        near.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far))),
        ]));
        self.change(RouteNetlinkMessage::NewLink(near), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Asks for a change of the loopback interface that changes nothing; refused where no change is allowed.
    pub(crate) fn change_nothing(&mut self) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = 1;
        self.change(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Gives an interface an address, without asking whether somebody else has it. Returns once the kernel
    /// has a local route to it.
    ///
    /// The local route of an IPv6 address comes later, from a work item that waits for its turn to change the
    /// network (net/ipv6/addrconf.c, `addrconf_dad_work`). Until then each packet to the address is lost, and
    /// nobody is told.
    pub(crate) fn add_address(&mut self, index: u32, prefix: Prefix) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(prefix.address);
        message.header.prefix_len = prefix.length;
        message.header.index = index;
        message.attributes.push(AddressAttribute::Local(prefix.address));
        message.attributes.push(AddressAttribute::Address(prefix.address));
        if prefix.address.is_ipv6() {
            message.header.flags = AddressHeaderFlags::Nodad;
            message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        self.change(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)?;
        self.wait_until(&format!("add a local route to {}", prefix.address), |netlink| {
            let routes = netlink.routes()?;
            Ok(routes.iter().any(|route| route.is_local && route.to.address == prefix.address))
        })
    }

    /// Sends everything that has no better route through an interface.
    pub(crate) fn add_default_route(&mut self, index: u32, v6: bool) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = if v6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = if v6 { RouteScope::Universe } else { RouteScope::Link };
        message.header.kind = RouteType::Unicast;
        message.attributes.push(RouteAttribute::Oif(index));
        self.change(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Every address of every interface.
    pub(crate) fn addresses(&mut self) -> io::Result<Vec<Prefix>> {
        let answers = self.dump(RouteNetlinkMessage::GetAddress(AddressMessage::default()))?;
        let prefix = |answer| match answer {
            RouteNetlinkMessage::NewAddress(message) => {
                let address = message.attributes.iter().find_map(|attribute| match attribute {
                    AddressAttribute::Address(address) => Some(*address),
                    _ => None,
                })?;
                Some(Prefix { address, length: message.header.prefix_len })
            }
            _ => None,
        };
        Ok(answers.into_iter().filter_map(prefix).collect())
    }

    /// Every route of every table.
    pub(crate) fn routes(&mut self) -> io::Result<Vec<Route>> {
        let answers = self.dump(RouteNetlinkMessage::GetRoute(RouteMessage::default()))?;
        let route = |answer| match answer {
            RouteNetlinkMessage::NewRoute(message) => Some(Route {
                to: Prefix {
                    address: destination(&message),
                    length: message.header.destination_prefix_length,
                },
                is_local: message.header.kind == RouteType::Local,
                advertised: message.header.protocol == RouteProtocol::Ra,
            }),
            _ => None,
        };
        Ok(answers.into_iter().filter_map(route).collect())
    }

    /// Asks for a change and waits until it is made or refused.
    pub(crate) fn change(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.send(message, NLM_F_REQUEST | NLM_F_ACK | flags)?;
        self.answers().map(|_| ())
    }

    fn dump(&mut self, message: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.send(message, NLM_F_REQUEST | NLM_F_DUMP)?;
        self.answers()
    }

    fn send(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
        message.finalize();
        let mut buffer = vec![0; message.buffer_len()];
        message.serialize(&mut buffer);
        self.socket.send(&buffer, 0).map(|_| ())
    }

    /// The answers to the last message, up to its acknowledgement or the end of the dump.
    fn answers(&mut self) -> io::Result<Vec<RouteNetlinkMessage>> {
        let mut answers = Vec::new();
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            let mut rest = &datagram[..];
            while !rest.is_empty() {
                let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
                let length = (message.header.length as usize).next_multiple_of(4).min(rest.len());
                rest = &rest[length..];
                if message.header.sequence_number != self.sequence {
                    continue;
                }
                match message.payload {
                    NetlinkPayload::InnerMessage(answer) => answers.push(answer),
                    NetlinkPayload::Done(_) => return Ok(answers),
                    NetlinkPayload::Error(error) => {
                        return match error.code {
                            None => Ok(answers),
                            Some(_) => Err(error.to_io()),
                        };
                    }
                    _ => {}
                }
            }
        }
    }
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet }
}

/// Where a route leads; a default route names no address.
fn destination(message: &RouteMessage) -> IpAddr {
    let named = message.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Destination(RouteAddress::Inet(address)) => Some(IpAddr::V4(*address)),
        RouteAttribute::Destination(RouteAddress::Inet6(address)) => Some(IpAddr::V6(*address)),
        _ => None,
    });
    named.unwrap_or(match message.header.address_family {
        AddressFamily::Inet6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use nix::sched::{CloneFlags, unshare};

    use super::*;

    #[test]
    fn what_is_sent_to_a_new_address_arrives() {
        let run = || {
            if unshare(CloneFlags::CLONE_NEWNET).is_err() {
                brakelight_testkit::skip("network: a new address", "it needs the right to make namespaces");
                return;
            }
            let mut netlink = Netlink::open().unwrap();
            netlink.set_up(1, None).unwrap();
            for last in 1..=100 {
                let address = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last));
                netlink.add_address(1, Prefix { address, length: 64 }).unwrap();
                let socket = UdpSocket::bind((address, 0)).unwrap();
                socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
                socket.send_to(b"the first", socket.local_addr().unwrap()).unwrap();
                assert!(socket.recv(&mut [0; 16]).is_ok(), "what was sent to {address} was lost");
            }
        };
        thread::scope(|scope| scope.spawn(run).join()).unwrap();
    }
}
