//! The translation that lets the inner side reach the network of the outer: one table of nftables, which the
//! kernel removes with the socket that made it (`NFT_TABLE_F_OWNER`, Linux 5.12), however the socket's
//! process ends.
//!
//! The name of a table says what forwarding was before the first emulator came: `brakelight-TOKEN-V4V6`, each
//! `0`, `1`, or `-` for left alone. So emulators that overlap agree on what to restore, and the last one does
//! it.

use std::io;
use std::time::{Duration, Instant};

use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};

use crate::address::{Addresses, V4_LENGTH, V6_LENGTH};
use crate::sysctl::{get, set};

// include/uapi/linux/netfilter/nfnetlink.h, nf_tables.h, netlink.h
const NFTABLES: u16 = 10;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEW_TABLE: u16 = NFTABLES << 8;
const GET_TABLE: u16 = NFTABLES << 8 | 1;
const NEW_CHAIN: u16 = NFTABLES << 8 | 3;
const NEW_RULE: u16 = NFTABLES << 8 | 6;
const REQUEST: u16 = 0x1;
const ACK: u16 = 0x4;
const DUMP: u16 = 0x300;
const CREATE: u16 = 0x400;
const EXCL: u16 = 0x200;
const APPEND: u16 = 0x800;
const NESTED: u16 = 0x8000;
const MESSAGE_ERROR: u16 = 2;
const MESSAGE_DONE: u16 = 3;
const TABLE_OWNER: u32 = 2;
const FAMILY_UNSPEC: u8 = 0;
const FAMILY_INET: u8 = 1;
const FAMILY_V4: u8 = 2;
const FAMILY_V6: u8 = 10;
const HOOK_POSTROUTING: u32 = 4;
/// Where source addresses are translated: `NF_IP_PRI_NAT_SRC`.
const PRIORITY_SOURCE: u32 = 100;
const META_FAMILY: u32 = 15;
const NETWORK_HEADER: u32 = 1;
const REGISTER: u32 = 1;

/// Whether packets were forwarded before the emulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forwarding {
    /// IPv4.
    pub(crate) v4: bool,
    /// IPv6.
    pub(crate) v6: Option<bool>,
}

const V4: &str = "net/ipv4/ip_forward";
const V6: &str = "net/ipv6/conf/all/forwarding";

impl Forwarding {
    /// Reads the current state; `v6` says whether IPv6 will be changed.
    pub(crate) fn read(v6: bool) -> io::Result<Self> {
        let v4 = get(V4)? != "0";
        let v6 = v6.then(|| get(V6)).transpose()?.map(|value| value != "0");
        Ok(Forwarding { v4, v6 })
    }

    /// Lets packets be forwarded.
    pub(crate) fn switch_on(self) -> io::Result<()> {
        if !self.v4 {
            set(V4, "1")?;
        }
        if self.v6 == Some(false) {
            set(V6, "1")?;
        }
        Ok(())
    }

    /// Restores the recorded state.
    pub(crate) fn restore(self) -> io::Result<()> {
        if !self.v4 {
            set(V4, "0")?;
        }
        if self.v6 == Some(false) {
            set(V6, "0")?;
        }
        Ok(())
    }
}

/// The name of a table, and what it remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// Different for every emulator.
    pub(crate) token: u64,
    /// What forwarding was before.
    pub(crate) before: Forwarding,
}

impl Table {
    fn name(&self) -> String {
        let digit = |on: bool| if on { '1' } else { '0' };
        format!(
            "brakelight-{:016x}-{}{}",
            self.token,
            digit(self.before.v4),
            self.before.v6.map_or('-', digit)
        )
    }

    fn parse(name: &str) -> Option<Self> {
        let (token, before) = name.strip_prefix("brakelight-")?.split_once('-')?;
        let mut digits = before.chars().map(|c| match c {
            '0' => Some(false),
            '1' => Some(true),
            _ => None,
        });
        let v4 = digits.next()??;
        let v6 = digits.next()?;
        digits.next().is_none().then_some(())?;
        Some(Table { token: u64::from_str_radix(token, 16).ok()?, before: Forwarding { v4, v6 } })
    }

    /// The tables of all emulators in the present network namespace.
    pub(crate) fn all() -> io::Result<Vec<Self>> {
        let mut socket = open()?;
        socket.send(&message(GET_TABLE, REQUEST | DUMP, FAMILY_INET, 0, &[]), 0)?;
        let mut names = Vec::new();
        receive(&mut socket, |kind, body| {
            if kind == NEW_TABLE {
                names.extend(attributes(body.get(4..).unwrap_or_default()).find(|(kind, _)| *kind == 1).map(
                    |(_, value)| {
                        String::from_utf8_lossy(value.strip_suffix(&[0]).unwrap_or(value)).into_owned()
                    },
                ));
            }
        })?;
        Ok(names.iter().filter_map(|name| Table::parse(name)).collect())
    }
}

/// The lock on changing the current network namespace, held by one emulator at a time: a table of a name that
/// only those who may change the network can create, and that the kernel removes with its holder.
#[derive(Debug)]
pub(crate) struct NetworkLock {
    _owner: Socket,
}

impl NetworkLock {
    /// How often it is tried.
    const AGAIN: Duration = Duration::from_millis(2);

    /// Waits for the lock, at most `patience`.
    pub(crate) fn take(patience: Duration) -> io::Result<Self> {
        let until = Instant::now() + patience;
        loop {
            match Self::try_take() {
                // Another's table must not even be looked at.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EEXIST | libc::EPERM)) => {}
                other => return other,
            }
            if Instant::now() >= until {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "another emulator holds the network"));
            }
            std::thread::sleep(Self::AGAIN);
        }
    }

    fn try_take() -> io::Result<Self> {
        let mut socket = open()?;
        let table = [text(1, "brakelight-turn"), number(2, TABLE_OWNER)].concat();
        let batch = [
            message(BATCH_BEGIN, REQUEST, FAMILY_UNSPEC, NFTABLES, &[]),
            message(NEW_TABLE, REQUEST | ACK | CREATE | EXCL, FAMILY_INET, 0, &table),
            message(BATCH_END, REQUEST, FAMILY_UNSPEC, NFTABLES, &[]),
        ];
        socket.send(&batch.concat(), 0)?;
        receive(&mut socket, |_, _| {})?;
        Ok(NetworkLock { _owner: socket })
    }
}

/// The address translation, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Translation {
    _owner: Socket,
}

impl Translation {
    /// Translates the source addresses of the inner side to the address of the interface that packets leave
    /// by (masquerading).
    pub(crate) fn start(table: &Table, addresses: Addresses) -> io::Result<Self> {
        let mut socket = open()?;
        let name = table.name();
        let mut batch = message(BATCH_BEGIN, REQUEST, FAMILY_UNSPEC, NFTABLES, &[]);
        let made =
            |kind, flags, body: &[u8]| message(kind, REQUEST | ACK | CREATE | flags, FAMILY_INET, 0, body);
        batch.extend(made(NEW_TABLE, EXCL, &[text(1, &name), number(2, TABLE_OWNER)].concat()));
        let hook = [number(1, HOOK_POSTROUTING), number(2, PRIORITY_SOURCE)].concat();
        let chain = [text(1, &name), text(3, "postrouting"), nested(4, &hook), text(7, "nat")].concat();
        batch.extend(made(NEW_CHAIN, 0, &chain));
        let v4 = &addresses.inner().octets()[..usize::from(V4_LENGTH) / 8];
        let v6 = addresses.inner6().map(|address| address.octets()[..usize::from(V6_LENGTH) / 8].to_vec());
        // Where the source address stands: rfc791 3.1, rfc8200 3.
        let rules = std::iter::once((FAMILY_V4, 12, v4)).chain(v6.as_deref().map(|v6| (FAMILY_V6, 8, v6)));
        let mut acknowledgements = 2;
        for (family, offset, prefix) in rules {
            let expressions = [
                expression("meta", &[number(1, REGISTER), number(2, META_FAMILY)].concat()),
                equals(&[family]),
                expression(
                    "payload",
                    &[
                        number(1, REGISTER),
                        number(2, NETWORK_HEADER),
                        number(3, offset),
                        number(4, prefix.len() as u32),
                    ]
                    .concat(),
                ),
                equals(prefix),
                expression("masq", &[]),
            ]
            .concat();
            let rule = [text(1, &name), text(2, "postrouting"), nested(4, &expressions)].concat();
            batch.extend(made(NEW_RULE, APPEND, &rule));
            acknowledgements += 1;
        }
        batch.extend(message(BATCH_END, REQUEST, FAMILY_UNSPEC, NFTABLES, &[]));
        socket.send(&batch, 0)?;
        for _ in 0..acknowledgements {
            receive(&mut socket, |_, _| {})?;
        }
        Ok(Translation { _owner: socket })
    }
}

fn open() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_NETFILTER)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    // The kernel answers within the call that asks; should it not, nobody is to hang here.
    let patience = nix::sys::time::TimeVal::new(10, 0);
    nix::sys::socket::setsockopt(&SocketFd(&socket), nix::sys::socket::sockopt::ReceiveTimeout, &patience)?;
    Ok(socket)
}

/// A socket of netlink-sys as nix takes descriptors.
struct SocketFd<'a>(&'a Socket);

impl std::os::fd::AsFd for SocketFd<'_> {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        use std::os::fd::AsRawFd;
        // SAFETY: the socket is open for as long as it is borrowed.
        unsafe { std::os::fd::BorrowedFd::borrow_raw(self.0.as_raw_fd()) }
    }
}

/// Netlink's header, nfnetlink's header, the body.
fn message(kind: u16, flags: u16, family: u8, resource: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(20 + body.len());
    bytes.extend((20 + body.len() as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([family, 0]);
    bytes.extend(resource.to_be_bytes());
    bytes.extend(body);
    bytes
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4 + value.len().next_multiple_of(4));
    bytes.extend((4 + value.len() as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn nested(kind: u16, value: &[u8]) -> Vec<u8> {
    attribute(kind | NESTED, value)
}

fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_be_bytes())
}

fn text(kind: u16, value: &str) -> Vec<u8> {
    attribute(kind, &[value.as_bytes(), &[0]].concat())
}

fn expression(name: &str, data: &[u8]) -> Vec<u8> {
    nested(1, &[text(1, name), nested(2, data)].concat())
}

/// Continues with the rule only if the register holds `value`.
fn equals(value: &[u8]) -> Vec<u8> {
    expression("cmp", &[number(1, REGISTER), number(2, 0), nested(3, &attribute(1, value))].concat())
}

/// The attributes of a body.
fn attributes(mut body: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(body.get(0..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(body.get(2..4)?.try_into().ok()?);
        let value = body.get(4..length)?;
        body = body.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & !NESTED, value))
    })
}

/// Hands on messages up to the end of a dump or an acknowledgement; an error is the kernel's.
fn receive(socket: &mut Socket, mut each: impl FnMut(u16, &[u8])) -> io::Result<()> {
    loop {
        let (datagram, _) = socket.recv_from_full()?;
        let mut rest = &datagram[..];
        while rest.len() >= 16 {
            let field = |at: usize| -> [u8; 4] { rest[at..at + 4].try_into().unwrap_or_default() };
            let length = (u32::from_ne_bytes(field(0)) as usize).clamp(16, rest.len());
            let kind = u16::from_ne_bytes([rest[4], rest[5]]);
            let body = &rest[16..length];
            match kind {
                MESSAGE_DONE => return Ok(()),
                MESSAGE_ERROR => {
                    let code = body
                        .get(..4)
                        .map_or(0, |code| i32::from_ne_bytes(code.try_into().unwrap_or_default()));
                    return if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-code)) };
                }
                _ => each(kind, body),
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_remembers_what_was_before() {
        for (v4, v6) in [(false, None), (true, Some(false)), (false, Some(true))] {
            let table = Table { token: 0xfeed, before: Forwarding { v4, v6 } };
            assert_eq!(Table::parse(&table.name()), Some(table));
        }
        assert_eq!(
            Table { token: 1, before: Forwarding { v4: false, v6: None } }.name(),
            "brakelight-0000000000000001-0-"
        );
        for other in
            ["filter", "brakelight", "brakelight-1", "brakelight-x-00", "brakelight-1-000", "brakelight-1-"]
        {
            assert_eq!(Table::parse(other), None, "{other}");
        }
    }

    #[test]
    fn attributes_read_back_as_they_were_written() {
        let body = [text(1, "abc"), number(2, 7)].concat();
        let read: Vec<(u16, &[u8])> = attributes(&body).collect();
        assert_eq!(read, [(1, &b"abc\0"[..]), (2, &[0, 0, 0, 7][..])]);
        assert_eq!(attributes(&[9, 0, 1]).count(), 0, "cut off");
        assert_eq!(attributes(&[3, 0, 1, 0]).count(), 0, "shorter than its own head");
    }
}
