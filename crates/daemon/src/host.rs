//! Hosts of addresses.

use std::net::IpAddr;

/// Returns true if `host`, a name or an address with or without brackets, is this machine: what is sent there in clear text
/// passes no network.
pub fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Returns the host of `HOST:PORT/…`.
pub fn host_of(address: &str) -> Option<&str> {
    let authority = address.split('/').next()?;
    Some(authority.rsplit_once(':').map_or(authority, |(host, _port)| host))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("localhost", true)]
    #[case("LocalHost", true)]
    #[case("127.0.0.1", true)]
    #[case("127.8.8.8", true)]
    #[case("::1", true)]
    #[case("[::1]", true)]
    #[case("::ffff:127.0.0.1", true)]
    #[case("0.0.0.0", false)]
    #[case("10.0.0.1", false)]
    #[case("localhost.example.com", false)]
    #[case("127.0.0.1.example.com", false)]
    #[case("", false)]
    fn loopback_is_this_machine_only(#[case] host: &str, #[case] expect: bool) {
        assert_eq!(is_loopback(host), expect);
    }
}
