//! The proxies in front of the API whose headers about the caller are trusted.

use std::net::IpAddr;

use ipnet::IpNet;

/// The addresses of trusted proxies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies(Vec<IpNet>);

/// A header about the caller is trusted only from a trusted proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// The request comes from a configured proxy.
    Proxy,
    /// It comes from anybody else.
    Stranger,
}

// === impl Proxies ===

impl Proxies {
    /// Returns the proxies of `server.proxies`, or the first fault in it.
    pub fn new(addresses: &[String]) -> Result<Self, String> {
        let parse = |(index, text): (usize, &String)| {
            let address = text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
            let fault = || format!("server.proxies[{index}]: must be an IP address or a network such as 10.0.0.0/24");
            address.map(|network| network.trunc()).ok_or_else(fault)
        };
        addresses.iter().enumerate().map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the trust in the headers of a peer.
    pub(super) fn trust(&self, peer: Option<IpAddr>) -> Trust {
        // A listener on `::` sees IPv4 peers as mapped addresses.
        let peer = peer.map(|peer| peer.to_canonical());
        let trusted = peer.is_some_and(|peer| self.0.iter().any(|network| network.contains(&peer)));
        if trusted { Trust::Proxy } else { Trust::Stranger }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trusts(addresses: &[&str], peer: &str) -> bool {
        let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        Proxies::new(&addresses).unwrap().trust(Some(peer.parse().unwrap())) == Trust::Proxy
    }

    #[test]
    fn only_configured_peers_are_trusted() {
        assert!(trusts(&["10.1.0.0/16"], "10.1.2.3"));
        assert!(trusts(&["10.1.2.3"], "::ffff:10.1.2.3"));
        assert!(trusts(&["fd00::/8"], "fd00::1"));
        assert!(!trusts(&["10.1.0.0/16"], "10.2.0.1"));
        assert!(!trusts(&[], "127.0.0.1"));
        assert_eq!(Proxies::default().trust(None), Trust::Stranger);
        assert_eq!(
            Proxies::new(&["gateway".to_owned()]),
            Err("server.proxies[0]: must be an IP address or a network such as 10.0.0.0/24".to_owned())
        );
    }
}
