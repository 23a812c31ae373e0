//! One region of memory, without the memory: its key, its address and its size.

use sluice_wire::roce::Rkey;

use super::RdmaError;

/// A region's name at its endpoint; an endpoint never reuses a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u32);

/// The settings of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionSpec {
    /// The key that a writer must show.
    pub rkey: Rkey,
    /// The address of the first byte, as writers see it. It says nothing about where the driver keeps the
    /// memory.
    pub address: u64,
    /// The length in bytes.
    pub bytes: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    id: RegionId,
    spec: RegionSpec,
}

impl Region {
    pub(super) fn new(id: RegionId, spec: RegionSpec) -> Result<Self, RdmaError> {
        if spec.bytes == 0 {
            return Err(RdmaError::NoBytes);
        }
        let last = u64::try_from(spec.bytes - 1).ok().and_then(|more| spec.address.checked_add(more));
        last.map(|_| Self { id, spec }).ok_or(RdmaError::Address)
    }

    pub(super) const fn id(&self) -> RegionId {
        self.id
    }

    pub(super) const fn key(&self) -> u32 {
        self.spec.rkey.0
    }

    /// The offset in the region of `bytes` bytes from `address` on; `None` unless all of them lie inside.
    #[inline]
    pub(super) fn offset_of(&self, address: u64, bytes: usize) -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(self.spec.address)?).ok()?;
        let end = offset.checked_add(bytes)?;
        (end <= self.spec.bytes).then_some(offset)
    }
}
