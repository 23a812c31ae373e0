//! The ends of links between spaces.

/// The largest packet on a link: native XDP on veth keeps a frame in one page, with room before and behind
/// it.
pub const MTU_BYTES: u32 = 3_400;

/// One end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkEnd {
    /// Its name in its space.
    pub name: String,
    /// Its index in its space.
    pub index: u32,
    pub mac: [u8; 6],
}
