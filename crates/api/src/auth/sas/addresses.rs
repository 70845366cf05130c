//! The addresses from which a shared access signature may be used.

use std::net::IpAddr;

/// Addresses from one to another, both included and of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Addresses {
    first: IpAddr,
    last: IpAddr,
}

impl Addresses {
    /// Reads one address, or two with a hyphen between.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last): (IpAddr, IpAddr) = (first.parse().ok()?, last.parse().ok()?);
        (first.is_ipv4() == last.is_ipv4() && first <= last).then_some(Self { first, last })
    }

    /// Whether `address` is one of them.
    pub(super) fn contain(&self, address: IpAddr) -> bool {
        self.first.is_ipv4() == address.is_ipv4() && (self.first..=self.last).contains(&address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_addresses_includes_both_ends() {
        let cases = [
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false),
            ("10.0.0.1-10.0.0.9", "10.0.0.9", true),
            ("10.0.0.1-10.0.0.9", "10.0.0.10", false),
            ("10.0.0.1-10.0.0.9", "::1", false),
            ("::1-::ff", "::10", true),
            ("::1-::ff", "0.0.0.16", false),
        ];
        for (range, address, expected) in cases {
            let range = Addresses::parse(range).unwrap();
            assert_eq!(range.contain(address.parse().unwrap()), expected, "{range:?} {address}");
        }
        for text in ["", "-", "10.0.0.1-", "10.0.0.9-10.0.0.1", "10.0.0.1-::1", "10.0.0.0/8", "host"] {
            assert_eq!(Addresses::parse(text), None, "{text}");
        }
    }
}
