//! Whom a request says it wants to reach.

use std::net::IpAddr;

/// True if a `Host` header names this machine's loopback interface. A page from elsewhere that a browser is tricked
/// into sending here (DNS rebinding) names its own host.
pub fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_loopback_interface_are_answered() {
        for host in ["localhost", "LOCALHOST:9192", "127.0.0.1:9192", "127.8.8.8", "[::1]:9192", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["", "evil.example", "evil.example:9192", "10.0.0.1:9192", "localhost.evil.example"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
