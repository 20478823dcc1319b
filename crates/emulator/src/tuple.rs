//! The addresses, ports and protocol that make a flow, for people: read once per flow, from its first packet.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crate::packet::{TCP, UDP, WITH_PORTS, skip_extensions};

/// Addresses, ports and protocol of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct FiveTuple {
    /// Sender; port 0 if the protocol has no ports.
    pub from: SocketAddr,
    /// Receiver; port 0 if the protocol has no ports.
    pub to: SocketAddr,
    /// The protocol's number.
    pub protocol: u8,
}

impl FiveTuple {
    /// Reads a packet that [`Header::read`](crate::packet::Header::read) accepts; `None` for other bytes.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (from, to, protocol, ports) = match bytes.first()? >> 4 {
            4 => {
                let address = |at: usize| <[u8; 4]>::try_from(bytes.get(at..at + 4)?).ok().map(IpAddr::from);
                let fragment = u16::from_be_bytes([*bytes.get(6)?, *bytes.get(7)?]) & 0x3fff != 0;
                let ports = bytes.get(usize::from(bytes[0] & 0x0f) * 4..).filter(|_| !fragment);
                (address(12)?, address(16)?, *bytes.get(9)?, ports)
            }
            6 => {
                let address =
                    |at: usize| <[u8; 16]>::try_from(bytes.get(at..at + 16)?).ok().map(IpAddr::from);
                let upper = skip_extensions(*bytes.get(6)?, bytes.get(40..)?);
                let ports = Some(upper.bytes).filter(|_| !upper.fragment);
                (address(8)?, address(24)?, upper.protocol, ports)
            }
            _ => return None,
        };
        let ports = ports.filter(|_| WITH_PORTS.contains(&protocol)).and_then(<[u8]>::first_chunk::<4>);
        let [a, b, c, d] = ports.copied().unwrap_or_default();
        let from = SocketAddr::new(from, u16::from_be_bytes([a, b]));
        Some(FiveTuple { from, to: SocketAddr::new(to, u16::from_be_bytes([c, d])), protocol })
    }
}

impl fmt::Display for FiveTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ICMP: u8 = 1;
        const ICMP_V6: u8 = 58;
        match self.protocol {
            TCP => f.write_str("tcp ")?,
            UDP => f.write_str("udp ")?,
            ICMP | ICMP_V6 => f.write_str("icmp ")?,
            other => write!(f, "protocol {other} ")?,
        }
        if self.from.port() == 0 && self.to.port() == 0 {
            write!(f, "{} > {}", self.from.ip(), self.to.ip())
        } else {
            write!(f, "{} > {}", self.from, self.to)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn v4(protocol: u8, fragment: u16) -> Vec<u8> {
        let mut bytes = vec![
            0x45, 0, 0, 24, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1, 0x13, 0x88, 0x14, 0x51,
        ];
        bytes[6..8].copy_from_slice(&fragment.to_be_bytes());
        bytes
    }

    #[test]
    fn flows_are_called_by_protocol_addresses_and_ports() {
        let name = |bytes: &[u8]| FiveTuple::read(bytes).unwrap().to_string();
        assert_eq!(name(&v4(TCP, 0)), "tcp 10.0.0.2:5000 > 10.0.0.1:5201");
        assert_eq!(name(&v4(1, 0)), "icmp 10.0.0.2 > 10.0.0.1");
        assert_eq!(name(&v4(UDP, 8)), "udp 10.0.0.2 > 10.0.0.1", "a fragment has no ports");
        let mut v6 = vec![0x60, 0, 0, 0, 0, 4, UDP, 64];
        v6.extend([0xfd; 16]);
        v6.extend([0xfe; 16]);
        v6.extend([0, 53, 1, 0]);
        let shown = name(&v6);
        assert!(shown.starts_with("udp [fdfd:") && shown.ends_with("]:256"), "{shown}");
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_asked(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = FiveTuple::read(&bytes).map(|tuple| tuple.to_string());
        }
    }
}
