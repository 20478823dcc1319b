//! Which devices have a router.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::error::Error;

/// Marks a device as one that has a router, until this is dropped or the process ends, however that comes.
///
/// It is an abstract address (unix(7)), of which each network namespace has its own, as it has its own
/// devices. A process ID would not do: another container of the same network may have the same one.
#[derive(Debug)]
pub(super) struct Claim {
    _socket: UnixDatagram,
}

impl Claim {
    /// Claims `device`.
    ///
    /// # Errors
    /// If the device has a router.
    pub(super) fn of(device: &str) -> Result<Self, Error> {
        let name = format!("brakelight router of {device}");
        let socket = SocketAddr::from_abstract_name(&name).and_then(|name| UnixDatagram::bind_addr(&name));
        socket.map(|socket| Claim { _socket: socket }).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => Error::Input(format!(
                "`{device}` already has a router: end that one first, `ss -xap | grep '{name}'` shows its process"
            )),
            _ => Error::kernel(format!("claiming {device}"), error),
        })
    }
}
