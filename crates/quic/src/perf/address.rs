//! Servers by name or address.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};

/// Where a server listens when nothing else is said.
pub const PORT: u16 = 4433;

/// Text that names no server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The port.
    #[error("`{text}`: `{port}` is not a port: valid are 0 to 65535")]
    Port {
        /// All of it.
        text: String,
        /// Its end.
        port: String,
    },
    /// The name.
    #[error("`{text}`: {reason}; valid are `NAME:PORT`, `127.0.0.1:4433` and `[::1]:4433`")]
    Name {
        /// All of it.
        text: String,
        /// Why it leads nowhere.
        reason: String,
    },
}

/// Returns the address that `text` names, and the name by which its certificate should know it. Names are
/// looked up. Without a port it is [`PORT`].
pub fn resolve(text: &str) -> Result<(SocketAddr, String), AddressError> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok((address, address.ip().to_string()));
    }
    if let Ok(address) = text.parse() {
        return Ok((SocketAddr::new(address, PORT), text.to_string()));
    }
    let (name, port) = match text.rsplit_once(':') {
        None => (text, PORT),
        Some((name, digits)) => {
            let invalid = |_| AddressError::Port { text: text.to_string(), port: digits.to_string() };
            (name, digits.parse().map_err(invalid)?)
        }
    };
    let unknown = |reason: String| AddressError::Name { text: text.to_string(), reason };
    let mut found = match (name, port).to_socket_addrs() {
        Ok(found) => found,
        // rfc6761 6.3: the loopback's, also where neither a file nor a server says so.
        Err(_) if name.eq_ignore_ascii_case("localhost") => {
            return Ok(((Ipv4Addr::LOCALHOST, port).into(), name.to_string()));
        }
        Err(error) => return Err(unknown(error.to_string())),
    };
    let address = found.next().ok_or_else(|| unknown("no address of that name".to_string()))?;
    Ok((address, name.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port_though_none_is_written() {
        let found = |text: &str| resolve(text).map(|(address, name)| (address.to_string(), name));
        assert_eq!(found("192.0.2.7"), Ok(("192.0.2.7:4433".to_string(), "192.0.2.7".to_string())));
        assert_eq!(found("192.0.2.7:1"), Ok(("192.0.2.7:1".to_string(), "192.0.2.7".to_string())));
        assert_eq!(found("::1"), Ok(("[::1]:4433".to_string(), "::1".to_string())));
        assert_eq!(found("[::1]:9"), Ok(("[::1]:9".to_string(), "::1".to_string())));
        let (address, name) = resolve("localhost:80").unwrap();
        assert!(address.ip().is_loopback() && address.port() == 80 && name == "localhost");
    }

    #[test]
    fn what_leads_nowhere_is_said() {
        assert_eq!(
            resolve("localhost:99999").unwrap_err().to_string(),
            "`localhost:99999`: `99999` is not a port: valid are 0 to 65535"
        );
        let error = resolve("no such name:1").unwrap_err().to_string();
        assert!(error.starts_with("`no such name:1`: "), "{error}");
        assert!(error.ends_with("; valid are `NAME:PORT`, `127.0.0.1:4433` and `[::1]:4433`"), "{error}");
    }
}
