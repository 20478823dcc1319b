//! Which packets or intervals of a file become the trace, where the file holds more than one direction.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// What is taken of a file that may hold both directions of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// All of it; refused where it holds both directions.
    #[default]
    OneDirection,
    /// All of it, whatever it is.
    All,
    /// iperf3, tables, logs: from the client to the server.
    Up,
    /// iperf3, tables, logs: from the server to the client.
    Down,
    /// Captures: packets from this address.
    From(IpAddr),
    /// Captures: packets to this address.
    To(IpAddr),
    /// Captures: packets from the first address and port to the second.
    Flow(SocketAddr, SocketAddr),
}

impl Selection {
    /// Reads the one flow that `--flow` names: `192.0.2.1:443-192.0.2.2:50000`, `[2001:db8::1]:443-...`.
    pub fn flow(text: &str) -> Result<Self, String> {
        let ends = text.split_once('-').and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
        let (from, to) = ends.ok_or_else(|| {
            format!("`{text}` is not a flow: give ADDRESS:PORT-ADDRESS:PORT, from and to, such as `192.0.2.1:443-192.0.2.2:50000`")
        })?;
        Ok(Selection::Flow(from, to))
    }
}

impl FromStr for Selection {
    type Err = String;

    /// Reads the direction that `--direction` names.
    fn from_str(text: &str) -> Result<Self, String> {
        let valid = "valid are `from:ADDRESS` and `to:ADDRESS` (captures), `up` and `down` (iperf3, tables, logs), `all`";
        let address =
            |address: &str| address.parse().map_err(|_| format!("`{address}` is not an IP address; {valid}"));
        match text.split_once(':') {
            Some(("from", from)) => Ok(Selection::From(address(from)?)),
            Some(("to", to)) => Ok(Selection::To(address(to)?)),
            _ => match text {
                "all" => Ok(Selection::All),
                "up" => Ok(Selection::Up),
                "down" => Ok(Selection::Down),
                _ => Err(format!("unknown direction `{text}`: {valid}")),
            },
        }
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selection::OneDirection => f.write_str("one direction"),
            Selection::All => f.write_str("all"),
            Selection::Up => f.write_str("up"),
            Selection::Down => f.write_str("down"),
            Selection::From(address) => write!(f, "from:{address}"),
            Selection::To(address) => write!(f, "to:{address}"),
            Selection::Flow(from, to) => write!(f, "{from}-{to}"),
        }
    }
}
