//! Addresses on the command line.

use std::{fmt, net::SocketAddr};

/// A host and a port as a person writes them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// A name or an address, without brackets.
    pub host: String,
    /// The port; 0 for any.
    pub port: u16,
}

/// What is wrong with an address.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no HOST:PORT (examples: 127.0.0.1:9092, broker.example:9092, [::1]:9092)")]
pub struct EndpointError {
    text: String,
}

impl Endpoint {
    /// Reads `HOST:PORT`.
    ///
    /// # Errors
    /// [`EndpointError`] if it is none.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let error = || EndpointError { text: text.to_owned() };
        let (host, port) = text.rsplit_once(':').ok_or_else(error)?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let port = port.parse().map_err(|_| error())?;
        if host.is_empty() { Err(error()) } else { Ok(Self { host: host.to_owned(), port }) }
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        Self { host: address.ip().to_string(), port: address.port() }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_addresses_and_brackets_are_read_and_shown_alike() {
        for text in ["127.0.0.1:9092", "broker.example:1", "[::1]:0"] {
            assert_eq!(Endpoint::parse(text).map(|endpoint| endpoint.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn an_address_without_a_port_is_refused_by_name() {
        for text in ["localhost", ":9092", "host:port", "host:70000"] {
            let error = Endpoint::parse(text).expect_err("no address");
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
