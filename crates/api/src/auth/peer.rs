//! Who is at the other end of the connection.

use std::net::IpAddr;

/// The other end of a connection, as the accept loop knows it: an extension of each request. Without one, whatever asks
/// for an address or for TLS is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// Its address.
    pub address: Option<IpAddr>,
    /// Whether the connection is encrypted.
    pub secure: bool,
}

impl Peer {
    /// A peer at `address`. An IPv4 address that is written as an IPv6 one is taken for what it is.
    pub fn at(address: IpAddr, secure: bool) -> Self {
        Self { address: Some(address.to_canonical()), secure }
    }
}
