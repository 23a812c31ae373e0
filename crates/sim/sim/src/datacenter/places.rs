//! Where everybody is in a world of racks below spines: a node for each kind, a place for each of them.

use crate::events::Address;

pub(super) const CLIENTS: Address = Address::node(0);
pub(super) const SPINES: Address = Address::node(1);
pub(super) const LEAVES: Address = Address::node(2);
pub(super) const WORKERS: Address = Address::node(3);
/// The first pool's clock; the others' follow.
const CLOCKS: u8 = 4;
/// Pools that fit one world.
pub(super) const POOLS_MAX: usize = (u8::MAX - CLOCKS) as usize;

/// Where a pool's clock strikes.
pub(super) fn clock_of(pool: usize) -> Address {
    assert!(pool < POOLS_MAX, "as many pools as nodes have clocks");
    Address::node(CLOCKS + pool as u8)
}

/// Whose clock it is.
pub(super) const fn pool_of(clock: Address) -> usize {
    (clock.of_node() - CLOCKS) as usize
}
