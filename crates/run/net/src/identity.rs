//! A host's identity: 64 bits that no other start shares, and an address that others can reach.

use std::fs::File;
use std::io::Read as _;
use std::net::SocketAddr;

use sluice_wire::Endpoint;

use crate::NetError;

/// 64 random bits from the kernel, for a life or an incarnation.
pub(crate) fn random_bits() -> Result<u64, NetError> {
    let mut bits = [0; 8];
    let read = File::open("/dev/urandom").and_then(|mut kernel| kernel.read_exact(&mut bits));
    read.map_err(|why| NetError::Random { why })?;
    Ok(u64::from_ne_bytes(bits))
}

/// The address that a host tells others. An error if no one could send to it.
pub(crate) fn reachable(at: SocketAddr) -> Result<Endpoint, NetError> {
    if at.ip().is_unspecified() {
        return Err(NetError::Unreachable { at });
    }
    Ok(at.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_starts_share_their_bits() {
        assert_ne!(random_bits().expect("the kernel has some"), random_bits().expect("the kernel has some"));
    }

    #[test]
    fn an_address_that_stands_for_all_is_not_given_to_others() {
        assert!(reachable("0.0.0.0:5".parse().expect("literal")).is_err());
        assert!(reachable("127.0.0.1:5".parse().expect("literal")).is_ok());
    }
}
