//! The addresses of nodes in virtual time.

use sluice_wire::Endpoint;

/// An address in the world: a node, and one of its places (a node may be many hosts of one kind).
///
/// Switches' tables and packets hold it too, as the last bytes of an [`Endpoint`]'s IP address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address(u32);

/// The place takes the lower bits, the node the upper ones.
const PLACE_BITS: u32 = 24;
/// The port of all endpoints: in virtual time the address alone tells places apart.
const PORT: u16 = 1;

impl Address {
    /// The first place of a node.
    pub const fn node(node: u8) -> Self {
        Self((node as u32) << PLACE_BITS)
    }

    /// Another place of the same node; there are 2²⁴ at most.
    #[inline]
    #[must_use]
    pub const fn at(self, place: u32) -> Self {
        Self(self.0 >> PLACE_BITS << PLACE_BITS | place)
    }

    /// The number of the node.
    #[inline]
    pub const fn of_node(self) -> u8 {
        (self.0 >> PLACE_BITS) as u8
    }

    /// The number of the place at its node.
    #[inline]
    pub const fn place(self) -> u32 {
        self.0 & ((1 << PLACE_BITS) - 1)
    }

    /// The address as an endpoint, for packets and tables.
    #[inline]
    pub const fn endpoint(self) -> Endpoint {
        let [a, b, c, d] = self.0.to_be_bytes();
        Endpoint { ip: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d], port: PORT }
    }

    /// The address of an endpoint that [`Address::endpoint`] made.
    #[inline]
    pub const fn of(endpoint: &Endpoint) -> Self {
        let [.., a, b, c, d] = endpoint.ip;
        Self(u32::from_be_bytes([a, b, c, d]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_names_its_place() {
        for (node, place) in [(0, 0), (3, 31), (u8::MAX, (1 << PLACE_BITS) - 1)] {
            let address = Address::node(node).at(place);
            assert_eq!(Address::of(&address.endpoint()), address);
            assert_eq!((address.of_node(), address.place()), (node, place));
        }
    }
}
