//! Which packets are ABC's at a router with two queues, by what their IP headers say (abc20 4.3).
//!
//! ```text
//! FIELD = accelerates | address=ADDRESS[/BITS] | flow-label=N | ipid=N
//! ```
//!
//! The paper leaves the choice to the operator: the address of a proxy at the base station, or a value that
//! ABC's senders write into IPv6's flow label or IPv4's identification. `accelerates` needs no agreement: a
//! flow is ABC's once it has sent ECT(1).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::str::FromStr;

use ipnet::IpNet;

/// The flow labels there are, of 20 bits; 0 is that of a packet without one (rfc6437 2).
const LABELS: RangeInclusive<u32> = 1..=0xf_ffff;

/// The identifications there are (rfc791 3.1). Most hosts send 0 where a packet must not be fragmented.
const IDENTIFICATIONS: RangeInclusive<u32> = 1..=0xffff;

/// What says that a packet is ABC's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Classifier {
    /// Its flow has sent a packet with ECT(1).
    #[default]
    Accelerates,
    /// It comes from an address of this network, or goes to one.
    Address(IpNet),
    /// IPv6's flow label (rfc8200 3): 1 to 1048575.
    FlowLabel(u32),
    /// IPv4's identification (rfc791 3.1): 1 to 65535.
    Identification(u16),
}

/// Why words do not name a classifier.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClassifierError {
    /// No such field.
    #[error(
        "`{text}` is no field of a packet: give `accelerates`, `address=192.0.2.0/24`, `flow-label=0xabc` or `ipid=0xabc`"
    )]
    Field {
        /// The words.
        text: String,
    },
    /// Not an address or a network.
    #[error(
        "address `{text}` is neither an address such as `192.0.2.7` nor a network such as `2001:db8::/32`"
    )]
    Address {
        /// The words.
        text: String,
    },
    /// Not a number that the field can have.
    #[error("{field} `{text}` is not a whole number from {} to {}, such as `2748` or `0xabc`", .valid.start(), .valid.end())]
    Number {
        /// The field.
        field: &'static str,
        /// The words.
        text: String,
        /// What the field can have.
        valid: RangeInclusive<u32>,
    },
}

impl Classifier {
    /// Returns `true` if the header says so. `packet` is an IP packet that `Header::read` accepted.
    /// [`Classifier::Accelerates`] hangs on a flow and not on one header: it returns `false`.
    #[inline]
    pub fn by_header(self, packet: &[u8]) -> bool {
        match (self, packet.first().map(|first| first >> 4)) {
            (Classifier::Address(network), _) => addresses(packet)
                .is_some_and(|addresses| addresses.iter().any(|address| network.contains(address))),
            (Classifier::FlowLabel(label), Some(6)) => packet
                .first_chunk::<4>()
                .is_some_and(|word| u32::from_be_bytes(*word) & LABELS.end() == label),
            (Classifier::Identification(identification), Some(4)) => {
                packet.get(4..6).is_some_and(|bytes| bytes == identification.to_be_bytes())
            }
            _ => false,
        }
    }
}

/// Returns where a packet comes from and where it goes to.
fn addresses(packet: &[u8]) -> Option<[IpAddr; 2]> {
    match packet.first()? >> 4 {
        4 => {
            let at = |start| packet.get(start..)?.first_chunk::<4>().copied();
            Some([at(12)?, at(16)?].map(|bytes| IpAddr::V4(Ipv4Addr::from(bytes))))
        }
        _ => {
            let at = |start| packet.get(start..)?.first_chunk::<16>().copied();
            Some([at(8)?, at(24)?].map(|bytes| IpAddr::V6(Ipv6Addr::from(bytes))))
        }
    }
}

impl FromStr for Classifier {
    type Err = ClassifierError;

    fn from_str(text: &str) -> Result<Self, ClassifierError> {
        let text = text.trim();
        let unknown = || ClassifierError::Field { text: text.to_string() };
        if text == "accelerates" {
            return Ok(Classifier::Accelerates);
        }
        let (field, value) = text.split_once('=').ok_or_else(unknown)?;
        match field {
            "address" => {
                let network = value.parse().or_else(|_| value.parse::<IpAddr>().map(IpNet::from));
                network
                    .map(|network: IpNet| Classifier::Address(network.trunc()))
                    .map_err(|_| ClassifierError::Address { text: value.to_string() })
            }
            "flow-label" => number("flow-label", value, LABELS).map(Classifier::FlowLabel),
            "ipid" => {
                number("ipid", value, IDENTIFICATIONS).map(|value| Classifier::Identification(value as u16))
            }
            _ => Err(unknown()),
        }
    }
}

fn number(field: &'static str, text: &str, valid: RangeInclusive<u32>) -> Result<u32, ClassifierError> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    match parsed {
        Ok(value) if valid.contains(&value) => Ok(value),
        _ => Err(ClassifierError::Number { field, text: text.to_string(), valid }),
    }
}

impl fmt::Display for Classifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Classifier::Accelerates => f.write_str("accelerates"),
            Classifier::Address(network) => write!(f, "address={network}"),
            Classifier::FlowLabel(label) => write!(f, "flow-label={label:#x}"),
            Classifier::Identification(identification) => write!(f, "ipid={identification:#x}"),
        }
    }
}

#[cfg(test)]
mod tests;
