//! The addresses that a probe may connect to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Ranges that are neither loopback nor private, and yet hold no registry: this network, link-local (metadata services),
/// protocol assignments, documentation, benchmarks, multicast, reserved (RFC 6890), and Azure's and Alibaba's metadata.
const NEVER: [(Ipv4Addr, u32); 12] = [
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(100, 100, 100, 200), 32),
];
/// Loopback, private and shared addresses (RFC 1918, RFC 6598).
const PRIVATE: [(Ipv4Addr, u32); 5] = [
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
];
/// Within global unicast (`2000::/3`): protocol assignments with Teredo, documentation, 6to4.
const NEVER_V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const UNIQUE_LOCAL: (Ipv6Addr, u32) = (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7);
/// Amazon's metadata service; a unique local address.
const AMAZON: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
/// Google's.
const GOOGLE: Ipv6Addr = Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254);

/// Returns true if the address may be probed; `private` also allows loopback and private ones, and no others.
pub(super) fn is_allowed(address: IpAddr, private: bool) -> bool {
    match address {
        IpAddr::V4(address) => is_allowed_v4(address, private),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => is_allowed_v4(mapped, private),
            None => is_allowed_v6(address, private),
        },
    }
}

fn is_allowed_v4(address: Ipv4Addr, private: bool) -> bool {
    let is_in = |(network, bits): &(Ipv4Addr, u32)| {
        let rest = 32_u32.saturating_sub(*bits);
        (u64::from(address.to_bits()) >> rest) == (u64::from(network.to_bits()) >> rest)
    };
    !NEVER.iter().any(is_in) && (private || !PRIVATE.iter().any(is_in))
}

fn is_allowed_v6(address: Ipv6Addr, private: bool) -> bool {
    let is_in = |(network, bits): &(Ipv6Addr, u32)| {
        let rest = 128_u32.saturating_sub(*bits);
        address.to_bits().checked_shr(rest) == network.to_bits().checked_shr(rest)
    };
    let is_private = address == Ipv6Addr::LOCALHOST || is_in(&UNIQUE_LOCAL);
    let is_metadata = address == AMAZON || address == GOOGLE;
    (is_in(&GLOBAL_V6) && !NEVER_V6.iter().any(is_in)) || (private && is_private && !is_metadata)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::is_allowed;

    #[rstest]
    #[case::public("8.8.8.8", true, true)]
    #[case::public_v6("2606:4700::1111", true, true)]
    #[case::just_outside_private("172.32.0.1", true, true)]
    #[case::loopback("127.0.0.1", false, true)]
    #[case::all_of_loopback("127.255.255.254", false, true)]
    #[case::ten("10.1.2.3", false, true)]
    #[case::end_of_172("172.31.255.255", false, true)]
    #[case::home("192.168.0.1", false, true)]
    #[case::shared("100.64.0.1", false, true)]
    #[case::loopback_v6("::1", false, true)]
    #[case::unique_local("fd12::1", false, true)]
    #[case::mapped_loopback("::ffff:127.0.0.1", false, true)]
    #[case::mapped_public("::ffff:8.8.8.8", true, true)]
    #[case::metadata("169.254.169.254", false, false)]
    #[case::mapped_metadata("::ffff:169.254.169.254", false, false)]
    #[case::amazon("fd00:ec2::254", false, false)]
    #[case::azure("168.63.129.16", false, false)]
    #[case::alibaba("100.100.100.200", false, false)]
    #[case::link_local_v6("fe80::1", false, false)]
    #[case::unspecified("0.0.0.0", false, false)]
    #[case::unspecified_v6("::", false, false)]
    #[case::translated("64:ff9b::7f00:1", false, false)]
    #[case::compatible("::127.0.0.1", false, false)]
    #[case::six_to_four("2002:7f00:1::", false, false)]
    #[case::teredo("2001::1", false, false)]
    #[case::multicast("224.0.0.1", false, false)]
    #[case::multicast_v6("ff02::1", false, false)]
    #[case::broadcast("255.255.255.255", false, false)]
    #[case::documentation("192.0.2.1", false, false)]
    fn only_addresses_of_registries_are_probed(#[case] address: &str, #[case] public: bool, #[case] private: bool) {
        let address = address.parse().unwrap();
        assert_eq!((is_allowed(address, false), is_allowed(address, true)), (public, private));
    }
}
