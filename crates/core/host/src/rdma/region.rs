//! One region of memory: who may write where. The memory itself is not here.

use sluice_wire::roce::Rkey;

use super::RdmaError;

/// Names a region at its endpoint; never given twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u32);

/// How a region is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionSpec {
    /// What a writer must show.
    pub rkey: Rkey,
    /// The address of its first byte, as writers number it. Where it lies here is nobody's affair.
    pub address: u64,
    /// How long it is.
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

    /// Where `bytes` bytes from `address` on lie in the region; `None` unless all of them do.
    #[inline]
    pub(super) fn offset_of(&self, address: u64, bytes: usize) -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(self.spec.address)?).ok()?;
        let end = offset.checked_add(bytes)?;
        (end <= self.spec.bytes).then_some(offset)
    }
}
