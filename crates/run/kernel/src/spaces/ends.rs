//! The ends of links between spaces.

/// The largest packet on a link: native XDP on veth keeps a frame in one page, with headroom and tailroom.
pub const MTU_BYTES: u32 = 3_400;

/// One end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkEnd {
    /// The link's name in its namespace.
    pub name: String,
    /// The link's index in its namespace.
    pub index: u32,
    pub mac: [u8; 6],
}
